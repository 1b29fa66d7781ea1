"""Qilin's questions with chosen evidence: cited notes among distractors, to cite, to refuse, or to find."""
