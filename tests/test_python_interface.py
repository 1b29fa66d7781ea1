"""`from qilin_tasks import …`: every name is there, typed, with an example that runs, and costs nothing before."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import qilin_tasks
from qilin_tasks.errors import SettingError

#: Their example needs a model's weights, which nothing here can download.
NOT_RUN = {"BertScorer"}


@pytest.mark.parametrize("name", qilin_tasks.PUBLIC)
def test_a_public_name_has_an_example_that_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "hub")  # which the examples must not need
    value = getattr(qilin_tasks, name)
    module = import_module(qilin_tasks.PUBLIC[name])
    assert value is getattr(module, name)
    found = doctest.DocTestFinder(recurse=False).find(value, name, module=module)
    (examples,) = [test for test in found if test.name == name]
    assert examples.examples, f"{name} has no example"
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples)
    assert results.failed == 0
    skipped = [example for example in examples.examples if example.options.get(doctest.SKIP)]
    assert bool(skipped) == (name in NOT_RUN)


def test_the_table_and_the_typed_imports_are_one(repo: Path) -> None:
    tree = ast.parse((repo / "qilin_tasks" / "__init__.py").read_text(encoding="utf-8"))
    imports = [
        (alias.asname, statement.module)
        for node in tree.body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]
    assert sorted(imports) == sorted(qilin_tasks.PUBLIC.items())


def test_dir_names_them_and_another_name_is_an_attribute_error() -> None:
    assert set(qilin_tasks.PUBLIC) <= set(dir(qilin_tasks))
    with pytest.raises(AttributeError, match="rouge_x"):
        _ = qilin_tasks.rouge_x
    with pytest.raises(ImportError, match="rouge_x"):
        exec("from qilin_tasks import rouge_x")


def test_a_metric_is_imported_without_the_harness_and_torch(repo: Path) -> None:
    code = (
        "import sys, qilin_tasks\n"
        "light = [name for name in ('numpy', 'rapidfuzz') if name in sys.modules]\n"
        "from qilin_tasks import rouge_l, strip_reasoning, score_ranking\n"
        "heavy = [name for name in ('torch', 'lm_eval', 'datasets', 'transformers') if name in sys.modules]\n"
        "print(light, heavy)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=repo, capture_output=True, text=True, check=True)
    assert ran.stdout == "[] []\n"


def test_evaluate_takes_a_harness_model_and_refuses_what_is_not_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    from support.evaluation import ScriptedModel

    monkeypatch.setenv("QILIN_DATA", "sample")
    model = ScriptedModel("")
    results = qilin_tasks.evaluate(
        ["qilin_dqa_na", "qilin_dqa_bm25"], model, metadata={"bertscore": "off"}, limit=3, bootstrap_iters=0
    )
    assert {task: found["empty_rate,none"] for task, found in results["results"].items()} == {
        "qilin_dqa_na": 1.0,
        "qilin_dqa_bm25": 1.0,
    }
    assert len(model.seen) == 6 and len(results["samples"]["qilin_dqa_na"]) == 3
    for wrong, message in (
        ({"tasks": "qilin_dqa_bm26"}, "qilin_dqa_bm25"),
        ({"tasks": "qilin_dqa_na", "metadata": {"bert_score": "off"}}, "bertscore"),
        ({"tasks": "qilin_dqa_na", "metadata": {"bertscore": "of"}}, "choose from off, on"),
    ):
        with pytest.raises(SettingError, match=message):
            qilin_tasks.evaluate(wrong.pop("tasks"), model, **wrong)  # type: ignore[arg-type]
    assert len(model.seen) == 6


def test_evaluate_looks_at_the_model_folder_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from qilin_tasks.errors import DataError

    monkeypatch.setenv("QILIN_DATA", "sample")
    with pytest.raises(DataError, match="does not exist"):
        qilin_tasks.evaluate("qilin_dqa_na", "hf", model_args={"pretrained": str(tmp_path / "none")})
