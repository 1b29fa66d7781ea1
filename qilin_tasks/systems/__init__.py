"""Systems that rank what the user of a request was shown: the paper's Table 10 without language models."""
