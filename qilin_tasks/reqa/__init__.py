"""ReQA as generation: settings, pools, documents, scorers and baselines of one family."""
