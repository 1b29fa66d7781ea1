"""The README's table "your script gets this wrong": each number as a usual script gives it, and as it is here.

python scripts/wrong_numbers.py        # the table's rows, in Markdown
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from scipy.stats import ttest_ind

from qilin_tasks import best_rank, compare_systems, mean_interval, rouge_l, strip_reasoning

REFERENCE = "水开后下饺子，煮八分钟，中途加两次凉水。"
CUT_OFF = "<think>用户问饺子煮多久。水开后下饺子，煮八分钟，中途加两次凉水。再想一想"


def chinese_rouge() -> tuple[float, float]:
    """The reference itself, through rouge-score's own tokenizer and through ours."""
    theirs = RougeScorer(["rougeL"]).score(REFERENCE, REFERENCE)["rougeL"].fmeasure
    return float(theirs), rouge_l(REFERENCE, REFERENCE).f1


def ties() -> tuple[float, float]:
    """MRR of a model that gives 20 candidates one score, the answer listed first: a stable sort, and the mean rank."""
    scores = np.zeros(20)
    first = int(np.argsort(-scores, kind="stable").tolist().index(0)) + 1
    return 1 / first, 1 / best_rank(scores, [0])


def cut_off_reasoning() -> tuple[float, float]:
    """ROUGE-L of an output that ended inside its reasoning: closed blocks taken away by a pattern, and read whole."""
    theirs = re.sub(r"<think>.*?</think>", "", CUT_OFF, flags=re.DOTALL)
    return rouge_l(theirs, REFERENCE).f1, rouge_l(strip_reasoning(CUT_OFF).text, REFERENCE).f1


def empty_answers() -> tuple[float, float]:
    """Mean of ten answers, four of them empty and six with .5: over what was written, and over all."""
    scores: Sequence[float] = [0.5] * 6 + [0.0] * 4
    written = [score for score in scores if score]
    return sum(written) / len(written), mean_interval(scores).value


def unpaired_test() -> tuple[float, float]:
    """p of two models on 40 questions from easy to hard, the one .02 better on each but every fifth: Welch, paired."""
    hard = np.linspace(0.1, 0.7, 40)
    better = hard + np.where(np.arange(40) % 5 == 0, -0.01, 0.02)
    (paired,) = compare_systems(np.column_stack([better, hard]), resamples=10_000, seed=0)
    return float(ttest_ind(better, hard, equal_var=False).pvalue), paired.p


CASES = {
    "ROUGE-L of a Chinese answer with itself (`rouge_score`'s default tokenizer keeps ASCII only)": chinese_rouge,
    "MRR of a model that scores all 20 candidates alike (a stable sort keeps the list's order)": ties,
    "ROUGE-L of an output cut off inside `<think>` (a pattern finds closed blocks only)": cut_off_reasoning,
    "mean of ten answers, four of them empty (empty ones dropped)": empty_answers,
    "p of a model that is better on 32 of the same 40 questions (an unpaired test)": unpaired_test,
}


def rows() -> list[str]:
    """The table's rows, four decimals."""
    return [f"| {what} | {theirs:.4f} | {ours:.4f} |" for what, case in CASES.items() for theirs, ours in [case()]]


if __name__ == "__main__":
    print(*rows(), sep="\n")
