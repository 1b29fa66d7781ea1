"""Model folders out of nothing, or out of the model files that packages on PyPI carry (none of their code runs)."""
