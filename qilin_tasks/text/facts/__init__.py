"""Facts that a text states in so many words: numbers with units, dates, times, ranges, and claims with their sign."""
