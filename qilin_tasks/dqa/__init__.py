"""Qilin DQA: settings, documents, scorer and baselines of one family."""
