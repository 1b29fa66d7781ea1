"""Runs under one harness version, in a process of its own: what our tasks give there, as JSON that versions share.

`python versions_script.py FOLDER OUT.json`; FOLDER holds the YAML that `write_folder` makes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

OFF = {"bertscore": "off", "meteor": "off"}
#: A task of each family, and a strategy that answers it in part.
FAMILIES = {
    "qilin_dqa_bm25": "lead",
    "qilin_dqa_oracle": "reference",
    "qilin_search_listwise": "first_stage",
    "qilin_recommendation_listwise": "constant",
    "qilin_search_pointwise": "random",
    "qilin_search_vlm": "oracle",
    "reqa_iapp": "first_stage",
    "reqa_iapp_likelihood": "random",
    "reqa_iapp_generate": "empty",
    "reqa_iapp_reader_oracle": "oracle",
}
MINE = """
def has_digit(references, predictions):
    return float(any(char.isdigit() for char in predictions[0]))


def share(references, predictions, docs):
    rows = zip(references, predictions, docs)
    return [len(given[0]) / (len(doc["query"]) + len(gold[0])) for gold, given, doc in rows]
"""


def write_folder(folder: Path, tasks: Path) -> Path:
    """A user's own tasks over our base files: metrics, repeats, a group that overrides a setting two levels down."""
    base = tasks / "qilin" / "_dqa_yaml"
    metadata = "metadata:\n  version: 1.0\n  context: bm25\n"
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    own = (
        "metric_list:\n  - metric: rouge_l\n  - metric: !function mine.has_digit\n"
        "  - metric: !function mine.share\n    batch: true\n    higher_is_better: false\n"
    )
    (folder / "my_metrics.yaml").write_text(f"include: {base}\ntask: my_metrics\n{own}{metadata}", encoding="utf-8")
    sampled = "repeats: 3\ngeneration_kwargs: {until: [], do_sample: true, temperature: 0.7, max_gen_toks: 64}\n"
    (folder / "my_repeats.yaml").write_text(f"include: {base}\ntask: my_repeats\n{sampled}{metadata}", encoding="utf-8")
    (folder / "my_group.yaml").write_text(
        "group: my_group\ntask:\n  - group: inner\n    task:\n      - task: qilin_dqa_bm25\n"
        "        metadata: {top_k: 1}\n  - qilin_dqa_na\n",
        encoding="utf-8",
    )
    return folder


def main(folder: str, out: str) -> None:
    os.environ.update(QILIN_DATA="sample", REQA_DATA="sample", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from support.covers import draw_sample_covers

    os.environ["QILIN_IMAGES"] = str(draw_sample_covers(Path(folder) / "covers"))
    made: dict[str, Any] = {}
    for part in (families, own_yaml, saved, command):
        made |= part(Path(folder))
    whole = {"version": importlib.metadata.version("lm_eval"), "made": made}
    Path(out).write_text(json.dumps(whole, ensure_ascii=False, sort_keys=True, default=str), encoding="utf-8")


def evaluated(folder: Path, name: str, model: Any, **options: Any) -> dict[str, Any]:
    """Values, signature and documents of the tasks that a name stands for, by the task's own name."""
    import lm_eval

    from qilin_tasks.harness.task_manager import task_manager
    from support import evaluation  # noqa: F401  (quick)

    manager = task_manager([name], metadata={**OFF, **options.pop("metadata", {})}, include_path=[str(folder)])
    results = lm_eval.simple_evaluate(
        model=model, tasks=[name], task_manager=manager, bootstrap_iters=0, log_samples=True, **options
    )
    tasks = {}
    for entry, samples in results["samples"].items():
        metadata = results["configs"][entry]["metadata"]
        tasks[entry.rpartition("::")[2]] = {
            "values": {k: v for k, v in results["results"][entry].items() if "," in k and "_stderr" not in k},
            "signature": metadata["signature"],
            "variance": metadata.get("variance"),
            "documents": [
                [sample["doc"]["doc_key"], {metric: sample[metric] for metric in sample["metrics"]}]
                for sample in samples
            ],
            "prompts": [[request[0] for request in sample["arguments"]] for sample in samples],
        }
    groups = {
        name: {k: v for k, v in values.items() if "," in k and "_stderr" not in k}
        for name, values in (results.get("groups") or {}).items()
    }
    return {"tasks": tasks, "groups": {name: values for name, values in groups.items() if values}}


def families(folder: Path) -> dict[str, Any]:
    from qilin_tasks.harness.baseline import QilinBaseline

    return {
        f"{task}|{strategy}": evaluated(folder, task, QilinBaseline(strategy)) for task, strategy in FAMILIES.items()
    }


def sampler() -> Callable[[Any], str]:
    """Answers that differ from call to call, the same in every process."""
    count = iter(range(10**6))

    def answer(request: Any) -> str:
        return request.doc["reference"][: next(count) % 7 * 3] + "答1"

    return answer


def own_yaml(folder: Path) -> dict[str, Any]:
    from support.evaluation import ScriptedModel

    made = {
        "metrics of one's own": evaluated(folder, "my_metrics", ScriptedModel(sampler())),
        "repeats": evaluated(folder, "my_repeats", Repeating()),
        "override two levels down": evaluated(folder, "my_group", ScriptedModel("好")),
        "the whole folder": evaluated(folder, "qilin", Seeing(""), limit=2),
    }
    return made


def Repeating() -> Any:
    """A model whose n-th answer to a prompt depends on the prompt and n: harnesses ask repeats in other orders."""
    from collections import Counter

    from support.evaluation import ScriptedModel

    asked: Counter[str] = Counter()

    def answer(request: Any) -> str:
        asked[request.args[0]] += 1
        return request.doc["reference"][: asked[request.args[0]] * 5]

    return ScriptedModel(answer)


def Seeing(answer: Any) -> Any:
    """A model that takes images, and log-likelihoods of -1."""
    from support.evaluation import ScriptedModel

    class Model(ScriptedModel):
        MULTIMODAL = True

        def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> list[tuple[float, bool]]:
            return [(-1.0, False) for _ in requests]

    return Model(answer)


def quietly(*arguments: str) -> None:
    """One of our commands; its output only where it fails."""
    from qilin_tasks import cli

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = cli.main(list(arguments))
    if code != 0:
        raise SystemExit(f"{arguments}: exit code {code}\n{said.getvalue()[-3000:]}")


def values_of(folder: Path) -> dict[str, Any]:
    from qilin_tasks.results.reader import find_results, iter_samples

    return {
        f"{result.model} {result.task}": {
            "values": dict(result.values),
            "signature": result.signature,
            "variance": result.metadata.get("variance"),
            "filtered": [sample.filtered for sample in iter_samples(result)],
        }
        for result in find_results([folder])
    }


def saved(folder: Path) -> dict[str, Any]:
    """`run`, with and without metrics, then `rescore` and `report` over what was saved."""
    made = {}
    for name, task, extra in (
        ("plain", "qilin_dqa", ["--limit", "5"]),
        ("predicted", "qilin_dqa_bm25", ["--limit", "4", "--predict_only"]),
        ("own", "my_metrics", ["--limit", "5"]),
    ):
        out = folder / name
        quietly(
            "run", "--model", "qilin-baseline", "--model_args", "strategy=lead", "--tasks", task, "--log_samples",
            "--include_path", str(folder), "--metadata", "bertscore=off", "--output_path", str(out), *extra,
        )  # fmt: skip
        before = {} if name == "predicted" else values_of(out)
        quietly("rescore", str(out), "--include_path", str(folder))
        made[f"{name}, rescored"] = values_of(out)
        if before and before != made[f"{name}, rescored"]:
            raise SystemExit(f"{name}: rescoring changed {before} to {made[f'{name}, rescored']}")
        quietly("report", str(out), "--out", str(folder / f"{name}-report"), "--resamples", "200")
    return made


def command(folder: Path) -> dict[str, Any]:
    """`compare` over a group, and gone on with."""
    out = folder / "compared"
    arguments = ["compare", "--model", "qilin-baseline:lead", "--model", "qilin-baseline:empty", "--tasks", "qilin_dqa"]
    for _ in range(2):
        quietly(*arguments, "--metadata", "bertscore=off", "--limit", "3", "--out", str(out))
    return {"compared": values_of(out)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("out")
    given = parser.parse_args()
    main(given.folder, given.out)
