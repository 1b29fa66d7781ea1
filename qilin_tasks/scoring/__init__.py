"""Responses to per-document scores, without the harness: what tasks and rescoring share."""
