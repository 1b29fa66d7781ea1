"""Results in the formats of others: Every Eval Ever, Hugging Face's `.eval_results`, Inspect's log."""
