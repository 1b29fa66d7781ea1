"""Stored answers before a judge that is held to account: nuggets, pairs, labels, and what the judge gets wrong."""
