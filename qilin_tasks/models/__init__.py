"""Baselines as harness models."""
