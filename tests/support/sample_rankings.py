"""How the frozen first-stage lists of the sample were made: `PYTHONPATH=tests python -m support.sample_rankings`.

`bm25_results`: the package's BM25 over the sample's notes. `dpr_results`: a stand-in for the bi-encoder (no Chinese
encoder can be had offline): cosine over single characters with tf-idf weights. Run it when notes or queries change.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import qilin_tasks
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.sources.sample import sources
from qilin_tasks.sources.sample_tables import load_yaml

DEPTH = 20
_WORD = re.compile(r"[a-z0-9]+|[㐀-鿿]+")


def characters(text: str) -> list[str]:
    """Single characters of Chinese runs, whole words otherwise."""
    return [term for run in _WORD.findall(text.lower()) for term in ([run] if run.isascii() else run)]


def cosine(documents: Sequence[str]) -> Callable[[str], list[float]]:
    """Cosine of tf-idf weighted single characters."""
    frequency = Counter(term for text in documents for term in set(characters(text)))

    def vector(text: str) -> dict[str, float]:
        weights = {
            term: (1 + math.log(tf)) * math.log(1 + len(documents) / frequency[term])
            for term, tf in Counter(characters(text)).items()
            if frequency[term]
        }
        norm = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        return {term: weight / norm for term, weight in weights.items()}

    vectors = [vector(text) for text in documents]

    def scores(query: str) -> list[float]:
        weights = vector(query)
        return [sum(weight * other.get(term, 0.0) for term, weight in weights.items()) for other in vectors]

    return scores


def best(scores: Sequence[float]) -> list[tuple[int, float]]:
    """The positive scores' documents, best first, ties by id; at most DEPTH."""
    ranked = sorted(enumerate(scores), key=lambda item: (-item[1], item[0]))[:DEPTH]
    return [(number, round(score, 4)) for number, score in ranked if score > 0]


def rankings() -> dict[str, dict[str, list[list[tuple[int, float]]]]]:
    """config -> column -> one list for each row."""
    files = sources()
    notes = load_yaml(files, "notes.yaml")
    requests = load_yaml(files, "requests.yaml")
    texts = [f"{note['title'] or ''} {note['content'] or ''}" for note in notes]
    systems = {"bm25_results": BM25(texts, language="zh").scores, "dpr_results": cosine(texts)}
    queries = {
        "dqa": load_yaml(files, "dqa.yaml"),
        "search_test": requests["search_test"],
        "search_train": requests["search_train"],
    }
    return {
        config: {
            column: [best(system(entry["query"])) for entry in entries]
            for column, system in systems.items()
            if config != "search_train" or column == "dpr_results"
        }
        for config, entries in queries.items()
    }


def main() -> None:
    """Write rankings.json beside the sample's YAML, one line a list."""
    path = Path(qilin_tasks.__file__).parent / "data" / "sample" / "rankings.json"
    blocks = []
    for config, columns in rankings().items():
        inner = []
        for column, lists in columns.items():
            lines = ",\n".join("   " + json.dumps(pairs, separators=(",", ":")) for pairs in lists)
            inner.append(f'  "{column}": [\n{lines}\n  ]')
        blocks.append(f' "{config}": {{\n' + ",\n".join(inner) + "\n }")
    path.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
