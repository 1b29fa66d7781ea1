"""What a model wrote: an answer, or a ranking with its faults counted."""
