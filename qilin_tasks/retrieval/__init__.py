"""Ranked ids for queries; knows nothing of prompts."""
