"""Writes tests/data/e5_vectors.json, what tests/test_models_made.py holds the encoder's vectors to:

python tests/support/e5_vectors.py .models/multilingual-e5-small
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "data" / "e5_vectors.json"
#: Components of each vector that are stored; all 384 are in the cosines.
STORED = 8
QUERIES = {
    "en": "how much protein does an adult need per day",
    "zh": "成年人每天需要多少蛋白质？",
    "th": "ผู้ใหญ่ต้องการโปรตีนวันละเท่าไร",
}
PASSAGES = {
    "en": "Adults need about 0.8 grams of protein per kilogram of body weight a day.",
    "zh": "成年人每天每公斤体重大约需要0.8克蛋白质。",
    "th": "ผู้ใหญ่ต้องการโปรตีนวันละประมาณ 0.8 กรัมต่อน้ำหนักตัวหนึ่งกิโลกรัม",
    "other": "The night train to Kyoto leaves at nine from platform 4.",
}


def vectors(folder: Path) -> dict[str, list[list[float]]]:
    """The first components of every vector and all cosines of queries (rows) with passages, as lists."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(str(folder), device="cpu")
    queries = encoder.encode_query(list(QUERIES.values()))
    passages = encoder.encode_document(list(PASSAGES.values()))
    return {
        "queries": queries[:, :STORED].tolist(),
        "passages": passages[:, :STORED].tolist(),
        "cosines": (queries @ passages.T).tolist(),
    }


def main() -> None:
    import sentence_transformers
    import torch

    found = {key: [[round(x, 5) for x in row] for row in rows] for key, rows in vectors(Path(sys.argv[1])).items()}
    how = f"python tests/support/e5_vectors.py MODEL; sentence-transformers {sentence_transformers.__version__}, "
    made = {"made_by": f"{how}torch {torch.__version__}", **found}
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in made.items())
    FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
