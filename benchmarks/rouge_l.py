"""ROUGE-L over 3,000 pairs of about 300 characters: rouge-score's values, and how many times faster than its own LCS.

    python benchmarks/rouge_l.py [--pairs 3000] [--compared 3000]

Times are processor time of this process. `times_faster` sets our whole work, tokenizing included, against rouge-score's
LCS table alone, over the same tokens.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from itertools import accumulate

from rouge_score import rouge_scorer, scoring

from qilin_tasks.metrics.rouge_l import rouge_l_batch
from qilin_tasks.text.tokens import tokenize_chars

CHARACTERS = 300
WORDS = ["iPhone15", "SPF50+", "vivo", "A醇", "3.5折", "OK", "citywalk", "2024", "😀", "[话题]#"]


class Characters:
    tokenize = staticmethod(tokenize_chars)


def hanzi() -> list[str]:
    """The first level of GB 2312, commonest characters of Chinese text."""
    cells = ((row, cell) for row in range(0xB0, 0xD7) for cell in range(0xA1, 0xFF))
    return [bytes(pair).decode("gb2312") for pair in cells]


def text(draw: random.Random, characters: list[str], weights: list[float], source: str = "") -> str:
    """About 300 characters; a third of them in runs from `source`, as an answer takes from its notes.

    `weights` are cumulated.
    """
    parts: list[str] = []
    while sum(map(len, parts)) < CHARACTERS:
        if source and draw.random() < 1 / 3:
            start = draw.randrange(len(source))
            parts.append(source[start : start + 12])
        else:
            parts.append("".join(draw.choices(characters, cum_weights=weights, k=12)))
        if draw.random() < 0.2:
            parts.append(draw.choice(WORDS))
        parts.append(draw.choice("，。！、\n") if draw.random() < 0.6 else "")
    return "".join(parts)[: CHARACTERS + draw.randrange(-20, 21)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3000)
    parser.add_argument("--compared", type=int, default=3000, help="pairs that rouge-score scores too (slow)")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()

    draw = random.Random(options.seed)
    characters = hanzi()
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(characters))))
    references = [text(draw, characters, weights) for _ in range(options.pairs)]
    hypotheses = [text(draw, characters, weights, reference) for reference in references]

    compared = min(options.compared, options.pairs)
    token_pairs = [(tokenize_chars(r), tokenize_chars(h)) for r, h in zip(references, hypotheses, strict=True)]
    seconds = {"ours": 0.0, "lcs": 0.0}
    ours: list[float] = []
    theirs: list[float] = []
    # In turns, so that a change of the machine's load falls on both.
    for start in range(0, compared, 50):
        part = slice(start, min(start + 50, compared))
        for reference, hypothesis in token_pairs[part]:
            begun = time.process_time()
            common = rouge_scorer._lcs_table(reference, hypothesis)[-1][-1]
            seconds["lcs"] += time.process_time() - begun
            theirs.append(scoring.fmeasure(common / len(hypothesis), common / len(reference)))
        begun = time.process_time()
        ours += rouge_l_batch(hypotheses[part], references[part])
        seconds["ours"] += time.process_time() - begun
    scorer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Characters())
    for pair in range(min(20, compared)):
        assert scorer.score(references[pair], hypotheses[pair])["rougeL"].fmeasure == theirs[pair]
    begun = time.process_time()
    all_at_once = rouge_l_batch(hypotheses, references)
    whole = time.process_time() - begun
    assert all_at_once[:compared] == ours
    print(
        json.dumps(
            {
                "benchmark": "rouge_l",
                "pairs": options.pairs,
                "compared": compared,
                "mean_characters": round(sum(map(len, references + hypotheses)) / (2 * options.pairs), 1),
                "mean_f1": round(sum(ours) / compared, 4),
                "largest_difference": max(abs(a - b) for a, b in zip(ours, theirs, strict=True)),
                "ours_seconds_all_pairs": round(whole, 4),
                "ours_ms_a_pair": round(1000 * seconds["ours"] / compared, 4),
                "rouge_score_lcs_ms_a_pair": round(1000 * seconds["lcs"] / compared, 3),
                "times_faster": round(seconds["lcs"] / seconds["ours"], 1),
                "targets": {"largest_difference": 1e-12, "times_faster": 200},
            }
        )
    )


if __name__ == "__main__":
    main()
