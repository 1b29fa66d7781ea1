"""The metrics of RGB, CRUD-RAG and DomainRAG, written from their definitions: the same values on the same outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from qilin_tasks import rouge_l

#: As in lines.py: between the parts of an answer that are all needed.
PARTS = "␟"
#: What RGB's Chinese prompt asks a model to say.
REJECTION = "信息不足"


def rgb_accuracy(references: Sequence[str], predictions: Sequence[str]) -> float:
    """RGB's accuracy (Chinese): 1 where every part of an answer stands in the output and it does not say 信息不足."""
    output = predictions[0].replace(" ", "")
    return float(REJECTION not in output and any(_holds_all(output.lower(), gold.lower()) for gold in references))


def rgb_rejection(references: Sequence[str], predictions: Sequence[str]) -> float:
    """RGB's rejection rate: 1 where the output says that the passages do not hold the answer."""
    return float(REJECTION in predictions[0].replace(" ", ""))


def _holds_all(output: str, gold: str) -> bool:
    return all(part in output for part in gold.split(PARTS))


def crud_rouge_l(references: Sequence[str], predictions: Sequence[str]) -> float:
    """CRUD-RAG's rouge-L: F1 of the longest common subsequence over all of jieba's tokens, marks and blanks too."""
    return max(rouge_l(predictions[0], gold, tokenizer=_jieba).f1 for gold in references)


def crud_bleu(references: Sequence[str], predictions: Sequence[str]) -> float:
    """CRUD-RAG's bleu-avg: the geometric mean of the four n-gram precisions over jieba's tokens, without penalty."""
    return max(_precisions_mean(_jieba(predictions[0]), _jieba(gold)) for gold in references)


def _precisions_mean(ours: Sequence[str], theirs: Sequence[str]) -> float:
    precisions = []
    for n in range(1, 5):
        mine, gold = (Counter(zip(*(tokens[i:] for i in range(n)), strict=False)) for tokens in (ours, theirs))
        total = sum(mine.values())
        precisions.append(sum((mine & gold).values()) / total if total else 0.0)
    return math.exp(sum(map(math.log, precisions)) / 4) if min(precisions) > 0 else 0.0


def domain_em(references: Sequence[str], predictions: Sequence[str]) -> float:
    """DomainRAG's exact_match: the share of an answer's parts that stand in the output, of the best answer."""
    return _share(references, lambda part: part in predictions[0])


def domain_em_strict(references: Sequence[str], predictions: Sequence[str]) -> float:
    """DomainRAG's exact_match_strict: the share of an answer's parts that are the output, of the best answer."""
    return _share(references, lambda part: part == predictions[0])


def _share(references: Sequence[str], holds: Callable[[str], bool]) -> float:
    return max(sum(map(holds, gold.split(PARTS))) / len(gold.split(PARTS)) for gold in references)


def domain_f1(references: Sequence[str], predictions: Sequence[str]) -> float:
    """DomainRAG's f1: of the characters, blanks between jieba's tokens included, with the best answer."""
    return max(_character_f1(predictions[0], gold.replace(PARTS, " ")) for gold in references)


def _character_f1(output: str, gold: str) -> float:
    ours, theirs = (" ".join(_jieba(text)) for text in (output, gold))
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return 2 * precision * recall / (precision + recall)


def _jieba(text: str) -> list[str]:
    import jieba

    return list(jieba.cut(text))
