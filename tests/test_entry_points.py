"""The entry points for coming harness releases: they resolve, and what they name also works by name in this one."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.harness_copies import release
from support.openai_server import chat_server

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# docs/plugins.md of EleutherAI/lm-evaluation-harness, main branch.
REGISTRIES = {
    "lm_eval.models": "model_registry",
    "lm_eval.filters": "filter_registry",
    "lm_eval.metrics": "metric_registry",
    "lm_eval.aggregations": "aggregation_registry",
}


def declared() -> list[importlib.metadata.EntryPoint]:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        importlib.metadata.EntryPoint(name=name, value=value, group=group)
        for group, entries in project["entry-points"].items()
        for name, value in entries.items()
    ]


def test_all_four_groups_are_declared() -> None:
    assert {entry.group for entry in declared()} == set(REGISTRIES)


@pytest.mark.slow
@pytest.mark.parametrize("entry", declared(), ids=lambda entry: entry.name)
def test_an_entry_point_names_the_object_that_its_module_registers(entry: importlib.metadata.EntryPoint) -> None:
    from lm_eval.api import registry

    found = entry.load()
    # The harness reconciles an entry point with the decorated object only where both say the same place.
    assert entry.value == f"{found.__module__}:{found.__name__}"
    assert getattr(registry, REGISTRIES[entry.group]).get(entry.name) is found


def test_a_metric_brings_its_aggregation_and_direction() -> None:
    from lm_eval.api.metrics import mean
    from lm_eval.api.registry import get_metric_aggregation, is_higher_better

    for entry in declared():
        if entry.group == "lm_eval.metrics":
            entry.load()
            assert get_metric_aggregation(entry.name) is mean
            assert is_higher_better(entry.name) is True


def test_mean_of_best() -> None:
    from qilin_tasks.harness.components import mean_of_best

    assert mean_of_best([("a", 0.5), ("b", 0.25), ("a", 1.0), ("b", 0.0)]) == (1.0 + 0.25) / 2


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=1))
def test_mean_of_best_lies_between_the_mean_and_the_best(items: list[tuple[int, float]]) -> None:
    from qilin_tasks.harness.components import mean_of_best

    values = [value for _, value in items]
    assert min(values) <= mean_of_best(items) <= max(values) + 1e-12
    once = list({key: (key, value) for key, value in items}.values())
    assert mean_of_best(once) == pytest.approx(sum(value for _, value in once) / len(once))


YAML = """
task: mine
custom_dataset: !function data.load
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{reference}}"
generation_kwargs: {until: []}
filter_list:
  - name: answer
    filter:
      - function: qilin_strip_reasoning
      - function: take_first
metric_list:
  - metric: qilin_rouge_l
  - metric: qilin_rouge_l_jieba
metadata: {version: 1.0}
"""
DATA = """
import datasets

def load(**ignored):
    docs = [
        {"question": "北京在哪", "reference": "<think>想</think>北京在中国北方"},
        {"question": "饺子怎么煮", "reference": "<think>没有想完"},
    ]
    return {"test": datasets.Dataset.from_list(docs)}
"""


@pytest.mark.slow
def test_a_yaml_of_somebody_elses_can_name_them(tmp_path: Path) -> None:
    copy = release(tmp_path / "harness")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mine.yaml").write_text(YAML, encoding="utf-8")
    (mine / "data.py").write_text(DATA, encoding="utf-8")
    answers = {"北京在哪": "<think>想</think>北京在中国北方", "饺子怎么煮": "<think>没有想完"}
    with chat_server(answer=lambda model, prompt: answers[prompt]) as server:
        ran = copy.command(
            "run", "--model", "local-chat-completions", "--model_args", f"model=m,base_url={server.url}",
            "--apply_chat_template", "--tasks", "mine", "--include_path", str(mine),
            "--output_path", str(tmp_path / "out"), "--log_samples",
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (file,) = (tmp_path / "out").rglob("samples_mine_*.jsonl")
    samples = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [sample["filtered_resps"] for sample in samples] == [["北京在中国北方"], [""]]
    # The answer's 7 characters are all in the reference, which has 10 tokens: think, 想, think and those 7.
    assert samples[0]["qilin_rouge_l"] == pytest.approx(2 * 7 / (7 + 10))
    assert samples[1]["qilin_rouge_l"] == samples[1]["qilin_rouge_l_jieba"] == 0.0
