"""Qilin search and recommendation: settings, documents, scorer and baselines of one family."""
