"""A run of upstream's folders under whatever lm-eval this Python imports: `python upstream_run.py OPTIONS` prints JSON.

Nothing of qilin_tasks is imported, so that the script runs where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import zlib
from collections.abc import Sequence
from typing import Any

import lm_eval
import lm_eval.evaluator
import lm_eval.tasks
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

# It lists every installed package through a pip process, for a report that no test reads.
lm_eval.evaluator.add_env_info = lambda results: None


def answer(request: Any, repeat: int = 0) -> Any:
    """The same answer to the same request, of every kind that a model gives."""
    likelihood = request.request_type == "loglikelihood"
    asked = "".join(request.args) if likelihood else request.args[0]
    chance = random.Random(zlib.crc32(f"{asked}|{repeat}".encode()))
    if likelihood:
        return -float(chance.randrange(1, 40)), False
    doc = request.doc
    texts = [
        str(doc.get("reference", "")),
        str(doc.get("reference", ""))[::-2],
        "",
        " \n",
        "<think>还没想完",
        "想一想</think>好的，",
        "<think>a</think> <answer>好的，</answer>",
        "ＡＩ garbage \ud83d 123 [话题]# 的的的 １２ ｶﾞ กำไร",
        "👩\u200d👩 e\u0301\u0301" + "\u0301" * 99 + " \u200b",
    ]
    ids = list(range(1, len(doc.get("candidates") or ()) + 1))
    chance.shuffle(ids)
    ranking = " > ".join(f"[{i}]" for i in ids)
    rankings = [
        ranking,
        ranking[: len(ranking) // 2],
        f"<think>[1]</think>{ranking} > [99]",
        str(ids),
        "\n".join(map(str, ids)),
    ]
    return chance.choice(rankings if ids else texts)


class Answers(LM):
    """Gives `answer`, and another one to each repeat of a request."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[Any, int] = {}

    def _all(self, requests: Sequence[Any]) -> list[Any]:
        answers = []
        for request in requests:
            repeat = self.asked.get(id(request), 0)
            self.asked[id(request)] = repeat + 1
            answers.append(answer(request, repeat))
        return answers

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        return self._all(requests)

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        return self._all(requests)

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError("no task of ours asks for it")


def run(folder: str, tasks: Sequence[str], *, repeats: int = 1, **options: Any) -> dict[str, Any]:
    """Values by task, and the samples' values and answers, of the folders in `folder`."""
    # As if the folders were merged: one imports from the other by its place in lm_eval.
    lm_eval.tasks.__path__.append(folder)
    manager = TaskManager(include_path=folder, include_defaults=False)
    if repeats > 1:
        options["repeats"] = repeats
    results = lm_eval.simple_evaluate(
        model=Answers(), tasks=list(tasks), task_manager=manager, bootstrap_iters=0, log_samples=True, **options
    )
    samples = {
        task: [
            {
                "prompts": [arguments[0] for arguments in sample["arguments"]],
                "resps": sample["resps"],
                "values": {name: sample[name] for name in sample["metrics"]},
            }
            for sample in rows
        ]
        for task, rows in results["samples"].items()
    }
    values = {
        task: {key: value for key, value in row.items() if isinstance(value, float)}
        for task, row in results["results"].items()
    }
    return {"lm_eval": lm_eval.__file__, "results": values, "samples": samples}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("tasks")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--predict_only", action="store_true")
    arguments = parser.parse_args()
    found = run(
        arguments.folder,
        arguments.tasks.split(","),
        repeats=arguments.repeats,
        limit=arguments.limit,
        predict_only=arguments.predict_only,
    )
    json.dump(found, sys.stdout)
