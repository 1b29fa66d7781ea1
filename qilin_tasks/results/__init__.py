"""Results of the harness: read, told apart, scored again, and what the papers print beside them."""
