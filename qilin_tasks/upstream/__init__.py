"""Our tasks as folders that lm-evaluation-harness could merge: Python out of our sources, YAML, README, data."""
