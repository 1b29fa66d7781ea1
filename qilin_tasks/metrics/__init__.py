"""Metrics: one file a quantity, pure functions; the families' tables (`<family>/scorer.py`) give them their names."""
