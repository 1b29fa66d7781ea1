"""Results -> statistics -> Markdown, CSV and one HTML page that needs nothing else."""
