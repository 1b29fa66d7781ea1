"""Stand-ins, under their hub names, for the models that ReQA names by default: for loading, not for scoring."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

REVISION = "0" * 40
ENCODERS = ("roberta-large", "bert-base-multilingual-cased")
SENTENCE_ENCODERS = (
    "sentence-transformers/all-mpnet-base-v2",
    "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
)


def add_reqa_models(cache: Path, *, minilm: Path) -> None:
    """Put them into a hub cache that holds `bert-base-chinese`: that one, claiming more layers, and the real MiniLM."""
    (bert,) = (cache / "models--bert-base-chinese" / "snapshots").iterdir()
    for name in ENCODERS:
        snapshot = _repository(cache, name, bert)
        if snapshot is not None:
            config = json.loads((snapshot / "config.json").read_text(encoding="utf-8"))
            (snapshot / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 24}), encoding="utf-8")
    for name in SENTENCE_ENCODERS:
        _repository(cache, name, minilm)


def _repository(cache: Path, name: str, source: Path) -> Path | None:
    """The new snapshot, or None where the cache holds the model already."""
    repository = cache / f"models--{name.replace('/', '--')}"
    if repository.exists():
        return None
    snapshot = repository / "snapshots" / REVISION
    shutil.copytree(source, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION, encoding="utf-8")
    return snapshot
