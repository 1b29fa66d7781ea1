"""A small comparison with everything that a report must cope with, hostile outputs included."""

from __future__ import annotations

import random
from pathlib import Path

from support.runs import write_run

HOSTILE = (
    '</script><script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">'
    "<svg onload=alert(1)>=1+1 | `code` \u202e ]]>--><!-- </pre></template>"
)
QUERIES = ("北京三日游怎么安排", "敏感肌 防晒霜 推荐", "<b>粗体</b>问题", "how to cook rice")
CONDITIONS = ("na", "bm25", "bert", "oracle")
STRENGTH = {"na": 0.0, "bm25": 0.08, "bert": 0.09, "oracle": 0.2}
DOCUMENTS = 120


def documents(condition: str) -> list[dict[str, object]]:
    """DQA documents: keys of their own, notes where the condition shows some."""
    notes = [{"note_idx": n, "title": f"笔记{n}", "content": f"内容{n}" * 30, "trimmed": False} for n in range(3)]
    return [
        {
            "doc_key": 3 * i,
            "search_idx": i,
            "query": f"{QUERIES[i % len(QUERIES)]} {i}",
            "notes": [] if condition == "na" else notes,
            "reference": f"参考答案{i}",
        }
        for i in range(DOCUMENTS)
    ]


def make(folder: Path) -> Path:
    """Three models, one of them named like an attack, two baselines, one row of another signature, a ranking board."""
    for condition in CONDITIONS:
        docs = documents(condition)
        for place, (model, quality, source) in enumerate(
            [
                ("strong", 0.45, "vllm"),
                ("weak", 0.30, "vllm"),
                ("<img src=x onerror=alert(1)>", 0.31, "hf"),
                ("lead", 0.2, "qilin-baseline"),
                ("reference", 1.0, "qilin-baseline"),
            ]
        ):
            rng = random.Random(f"{condition}{model}")
            other = model == "weak" and condition == "bert"
            rouge = [min(1.0, max(0.0, quality + STRENGTH[condition] + rng.gauss(0, 0.1))) for _ in docs]
            if model == "reference":
                rouge = [1.0 for _ in docs]
            outputs = [f"{model}对{doc['query']}的回答" * rng.randint(1, 9) for doc in docs]
            if model == "strong":
                outputs[7] = HOSTILE
            chat = "" if source == "qilin-baseline" else "|chat:1"
            note = 300 if other else 600
            write_run(
                folder / f"m{place}" / condition,
                model=model,
                task=f"qilin_dqa_{condition}",
                docs=docs,
                responses=outputs,
                scores=[
                    {"rouge_l": r, "bertscore_f1": 0.5 + r / 2, "answer_chars": float(len(o)), "empty_rate": 0.0}
                    for r, o in zip(rouge, outputs, strict=True)
                ],
                signature=f"dqa|ctx:{condition}|note:{note}{chat}|data:{condition}|n:{DOCUMENTS}|v:1.0",
                metadata={"context": condition},
                source=source,
                lower_is_better=["empty_rate"],
            )
    ranking = [{"doc_key": i, "query": f"查询{i}", "candidates": [{"title": "a", "content": "b"}]} for i in range(60)]
    for model, best in (("strong", 2), ("weak", 6)):
        rng = random.Random(model)
        ranks = [rng.randint(0, best) for _ in ranking]
        write_run(
            folder / f"rank-{model}",
            model=model,
            task="qilin_search_listwise",
            docs=ranking,
            responses=["[1] > [2]" for _ in ranking],
            scores=[{"mrr@10": 1 / r if r else 0.0, "map@10": 1 / r if r else 0.0} for r in ranks],
            signature="qilin-listwise|config:search_test|data:r|n:60|v:1.0",
            metadata={"config": "search_test"},
        )
    return folder
