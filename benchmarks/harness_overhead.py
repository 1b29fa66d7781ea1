"""What our DQA tasks add to a plain exact-match task of the harness over the same prompts, BERTScore aside.

    python benchmarks/harness_overhead.py /tmp/qilin_full

A model with a constant answer runs the four tasks, then four stock tasks (no Python of ours) over the very same
prompts and references; building, answering, scoring and collecting are timed, reading the data is not (see
dqa_documents.py). Sides alternate in one process, the best of the repetitions counts. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from typing import Any

ANSWER = "可以先看看大家的经验，再按自己的预算和时间安排，注意提前预约，避开周末和节假日的人流高峰。"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="QILIN_DATA: a folder, sample, or a hub id")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    os.environ |= {"QILIN_DATA": args.data, "HF_HUB_OFFLINE": "1"}

    import datasets
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.tasks import TaskManager

    from qilin_tasks import tasks_folder
    from qilin_tasks.metrics import rouge_l
    from qilin_tasks.text import tokens

    logging.disable(logging.WARNING)
    datasets.disable_progress_bars()

    class Constant(LM):  # type: ignore[misc]
        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            return [ANSWER] * len(requests)

        def loglikelihood(self, requests: Any) -> Any:
            raise TypeError("not asked")

        loglikelihood_rolling = loglikelihood

    manager = TaskManager(include_path=str(tasks_folder()), include_defaults=False, metadata={"bertscore": "off"})
    ours = manager.load(["qilin_dqa"])["tasks"]

    def plain(task: Any) -> ConfigurableTask:
        template = task.config.doc_to_text
        return ConfigurableTask(
            config={
                "task": f"plain_{task.config.task}",
                "custom_dataset": lambda **_: task.dataset,
                "test_split": "test",
                "num_fewshot": 0,
                "output_type": "generate_until",
                "doc_to_text": template,
                "doc_to_target": "reference",
                "generation_kwargs": dict(task.config.generation_kwargs),
                "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
            }
        )

    stock = {name: plain(task) for name, task in ours.items()}
    best = dict.fromkeys(("stock", "ours"), float("inf"))
    for _ in range(args.repeat):
        for side, tasks in (("stock", stock), ("ours", ours)):
            # A run is a process of its own: it begins without jieba's dictionary and without any reference read.
            tokens._jieba.cache_clear()
            rouge_l._reference_tokens.cache_clear()
            start = time.perf_counter()
            lm_eval.evaluate(Constant(), {"tasks": tasks, "groups": {}}, log_samples=True, bootstrap_iters=0)
            seconds = time.perf_counter() - start
            print(side, round(seconds, 2), flush=True)
            best[side] = min(best[side], seconds)
    print(
        json.dumps(
            {
                "benchmark": "harness_overhead",
                "documents": sum(len(task.eval_docs) for task in ours.values()),
                "stock_seconds": round(best["stock"], 2),
                "our_seconds": round(best["ours"], 2),
                "ratio": round(best["ours"] / best["stock"], 3),
                "ratio_target": 1.1,
            }
        )
    )


if __name__ == "__main__":
    main()
