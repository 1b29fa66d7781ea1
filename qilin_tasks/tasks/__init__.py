"""Task classes and loaders that the YAML names: with `models`, the only importers of lm_eval."""
