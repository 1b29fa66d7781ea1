"""One file a metric; pure functions."""
