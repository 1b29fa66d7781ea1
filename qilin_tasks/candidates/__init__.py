"""Qilin's search and recommendation requests to the lists of candidates that a model is asked to rank."""
