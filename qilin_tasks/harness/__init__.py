"""The harness layer: the only importer of lm_eval, and where it is told apart by what it can do."""
