"""How far a metric can be trusted: what edits of a text do to it, and how it agrees with people."""
