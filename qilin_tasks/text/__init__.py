"""Normalisation and tokenizers."""
