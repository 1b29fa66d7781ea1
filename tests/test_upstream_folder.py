"""`qilin-tasks upstream`: the folders score as the package does, and a harness without the package accepts them."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import venv
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.evaluation import ScriptedModel, evaluate
from test_upstream_sdist import SELECTED, names, source_distribution  # noqa: F401 (a fixture)

from qilin_tasks import tasks_folder
from qilin_tasks.cli import main
from qilin_tasks.dqa import scorer as package_dqa
from qilin_tasks.errors import DataError, QilinTasksError
from qilin_tasks.settings import BertScoreSettings
from qilin_tasks.upstream.assemble import assemble
from qilin_tasks.upstream.checkout import python, write_upstream
from qilin_tasks.upstream.documents import publish_documents
from qilin_tasks.upstream.families import FAMILIES, carried, carried_tasks
from qilin_tasks.upstream.task_table import with_row

COMPARED = (
    "qilin_dqa_na", "qilin_dqa_oracle", "qilin_search_listwise", "qilin_recommendation_pointwise", "reqa_xquad_zh",
    "reqa_xquad_en_likelihood",
)  # fmt: skip
REQA_SETS = ("reqa_xquad_en", "reqa_xquad_en_likelihood")
TABLE = """\
# Tasks

| Task Family | Description | Language(s) |
|---|---|---|
| [aime](aime/README.md) | a | English |
| zulu | z | Zulu |
"""


def fake_checkout(folder: Path) -> Path:
    (folder / "lm_eval" / "tasks" / "aime").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project]\nname = "lm_eval"\n', encoding="utf-8")
    (folder / "lm_eval" / "tasks" / "README.md").write_text(TABLE, encoding="utf-8")
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's ready documents of both families."""
    folder = tmp_path_factory.mktemp("documents")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        patch.setenv("REQA_DATA", "sample")
        for name in FAMILIES:
            publish_documents(folder, name, metadata={})
    return folder


@pytest.fixture(scope="module")
def checkout(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = fake_checkout(tmp_path_factory.mktemp("checkout"))
    write_upstream(folder, list(FAMILIES), dataset=str(documents))
    return folder


def load_utils(path: Path) -> ModuleType:
    """As the harness loads it: executed before it is in sys.modules."""
    spec = importlib.util.spec_from_file_location(f"utils_of_{path.parent.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(request: Any) -> Any:
    """The same answer to the same request, of every kind that a model gives."""
    chance = random.Random(zlib.crc32(str(request.args[:1]).encode() + str(request.idx).encode()))
    if request.request_type == "loglikelihood":
        return -float(chance.randrange(1, 40))
    doc = request.doc
    texts = [
        str(doc.get("reference", "")),
        "",
        "<think>还没想完",
        "ＡＩ garbage \ud83d 123 [话题]# 的的的",
        "<think>a</think> 好的，",
    ]
    ids = list(range(1, len(doc.get("candidates", ())) + 1))
    chance.shuffle(ids)
    ranking = " > ".join(f"[{i}]" for i in ids)
    return chance.choice([*texts, ranking, ranking[: len(ranking) // 2], f"<think>[1]</think>{ranking} > [99]"])


def test_the_harness_gives_the_same_values_with_and_without_the_package(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("REQA_DATA", "sample")
    ours = evaluate(COMPARED, ScriptedModel(answer), log_samples=True)
    manager = TaskManager(
        include_path=str(checkout / "lm_eval" / "tasks"), include_defaults=False, metadata={"bertscore": "off"}
    )
    theirs = lm_eval.simple_evaluate(
        model=ScriptedModel(answer), tasks=list(COMPARED), task_manager=manager, log_samples=True, bootstrap_iters=100
    )
    for task in COMPARED:
        columns = {key for key in ours["results"][task] if "," in key}
        assert columns == {key for key in theirs["results"][task] if "," in key}
        assert any(key.endswith("_stderr,none") for key in columns)
        for key in columns:
            if isinstance(ours["results"][task][key], float):
                assert theirs["results"][task][key] == pytest.approx(ours["results"][task][key], abs=1e-12), (task, key)
        pairs = list(zip(ours["samples"][task], theirs["samples"][task], strict=True))
        assert len(pairs) >= 10
        for mine, other in pairs:
            assert mine["arguments"] == other["arguments"]
            assert mine["filtered_resps"] == other["filtered_resps"]
            assert {m: other[m] for m in mine["metrics"]} == pytest.approx(
                {m: mine[m] for m in mine["metrics"]}, abs=1e-12
            )
        assert len({sample[mine["metrics"][0]] for sample, _ in pairs}) > 1, "the answers should differ in score"


def test_bertscore_equals_the_packages(minilm: Path, checkout: Path) -> None:
    references = ["The cat sat on the mat.", "小红书的笔记 note", "Where is the station?", "x", "a long " * 400]
    docs = [{"reference": text, "notes": []} for text in references] * 3
    responses = [
        *references,
        *("A cat sat.", "<think>?</think>笔记", "", " \n", "a long text"),
        *("", "<think>x", "¿", "[1]", "b"),
    ]
    settings = BertScoreSettings(
        bertscore="on", bertscore_model=str(minilm), bertscore_layer=4, bertscore_device="cpu", bertscore_batch_size=4
    )
    ours = package_dqa.score(docs, responses, settings)  # type: ignore[arg-type]
    theirs = load_utils(checkout / "lm_eval" / "tasks" / "qilin" / "dqa" / "utils.py").score(docs, responses, settings)
    for mine, other in zip(ours, theirs, strict=True):
        assert other.keys() == mine.keys()
        for name, value in mine.items():
            assert other[name] == pytest.approx(value, abs=1e-6 if name.startswith("bertscore") else 1e-12), name
    assert {row["bertscore_cut_rate"] for row in theirs} == {0.0, 1.0}


def test_a_missing_package_stops_before_generation(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    utils = load_utils(checkout / "lm_eval" / "tasks" / "qilin" / "dqa" / "utils.py")
    monkeypatch.setattr(utils, "find_spec", lambda module: None if module == "jieba" else object())
    with pytest.raises(ModuleNotFoundError, match=r"jieba.*lm_eval\[qilin\]"):
        utils.DQATask(config={"metadata": {"bertscore": "off"}, "metric_list": []})


@pytest.mark.parametrize("name", FAMILIES)
def test_the_python_imports_nothing_of_ours_and_nothing_optional_at_the_top(name: str) -> None:
    for folder, _ in carried(name):
        text = python(folder)
        top = [line for line in text.splitlines() if re.match(r"(import|from) ", line)]
        assert not any(
            re.search(r"qilin_tasks|rapidfuzz|jieba|bert_score|torch|transformers|jinja", line) for line in top
        )
        assert "qilin_tasks" not in re.sub(r'"""[^"]*"""', "", text)


def test_every_task_is_carried_or_known_to_be_left_out() -> None:
    ours = {task for family in FAMILIES for task in names(tasks_folder() / family)}
    left_out = ours - {task for family in FAMILIES for task in carried_tasks(family)}
    assert all(task == "qilin_search_vlm" or "_generate" in task or "_reader_" in task for task in left_out), left_out
    assert {"qilin_dqa_oracle", "qilin_search_listwise", "reqa_squad", "reqa_nq_likelihood"} <= ours - left_out


@pytest.mark.parametrize("name", FAMILIES)
def test_the_readme_follows_upstreams_template_and_holds_the_report(name: str, checkout: Path) -> None:
    text = (checkout / "lm_eval" / "tasks" / name / "README.md").read_text(encoding="utf-8")
    headings = ["Paper", "Citation", "Groups, Tags, and Tasks", "Evaluation report", "Checklist", "Changelog"]
    assert [line[4:] for line in text.splitlines() if line[4:] in headings] == headings
    assert "@" not in re.sub(r"@misc|@inproceedings|[a-z_]+@[k0-9]+", "", text), "a marker was not filled in"
    for _, files in carried(name):
        assert all(f"`{file.name}`" in text or "<set>" in text for file in files)
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) >= 8 and all("|  |" in row for row in rows), "the column for a model on a GPU is empty"
    assert "qilin-tasks run --model qilin-baseline" in text and "lm_eval run --model vllm" in text


def test_the_published_rows_stand_beside(checkout: Path) -> None:
    text = (checkout / "lm_eval" / "tasks" / "qilin" / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| `rouge_l` | `qilin_dqa_oracle` |")]
    assert row.endswith("| 0.424 | 0.429 | 0.436 | 0.396 | 0.401 |")
    assert "1.000 (30)" in row, "the ceiling on the sample's 30 questions"


def test_writing_twice_changes_nothing(checkout: Path, documents: Path) -> None:
    before = tree(checkout)
    write_upstream(checkout, list(FAMILIES), dataset=str(documents))
    assert tree(checkout) == before
    table = (checkout / "lm_eval" / "tasks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[?(\w+)", table, re.MULTILINE)
    assert rows == ["Task", "aime", "qilin", "reqa", "zulu"]


def test_the_written_yaml_names_documents_by_task(tmp_path: Path) -> None:
    folder = fake_checkout(tmp_path)
    write_upstream(folder, ["qilin"], dataset="someone")
    dqa = folder / "lm_eval" / "tasks" / "qilin" / "dqa"
    base, task = (dqa / "_dqa_yaml").read_text("utf-8"), (dqa / "qilin_dqa_bm25.yaml").read_text("utf-8")
    assert base.startswith("dataset_path: someone/qilin-documents\n")
    assert "custom_dataset" not in base and "dataset_kwargs" not in base and "qilin_tasks" not in base
    assert "dataset_name: qilin_dqa_bm25\n" in task and "tag: qilin\n" in task and "  version: 1.0\n" in task
    assert not list(folder.rglob(".qilin-tasks*"))


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The message of a refusal that left everything as it was."""
    before = tree(folder)
    assert main(["upstream", str(folder), *arguments]) == 1
    assert tree(folder) == before
    assert not [path for path in folder.rglob(".*") if path.name.startswith(".qilin")]
    return capsys.readouterr().err


def test_a_folder_that_is_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "something"\n', encoding="utf-8")
    assert "no checkout of lm-evaluation-harness" in refused(tmp_path, capsys)


def test_other_files_of_that_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = fake_checkout(tmp_path)
    (folder / "lm_eval" / "tasks" / "reqa").mkdir()
    (folder / "lm_eval" / "tasks" / "reqa" / "theirs.yaml").write_text("task: theirs\n", encoding="utf-8")
    message = refused(folder, capsys, "--tasks", "qilin,reqa")
    assert "theirs.yaml" in message and "--replace" in message
    assert main(["upstream", str(folder), "--tasks", "reqa", "--replace"]) == 0
    assert not (folder / "lm_eval" / "tasks" / "reqa" / "theirs.yaml").exists()


def test_tasks_whose_contexts_were_never_computed(
    tmp_path: Path, documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = tmp_path / "documents" / "qilin-documents"
    for task in carried_tasks("qilin"):
        if task != "qilin_dqa_bert":
            (partial / task).mkdir(parents=True)
            (partial / task / "test-00000-of-00001.parquet").touch()
    folder = fake_checkout(tmp_path / "checkout")
    message = refused(folder, capsys, "--tasks", "qilin", "--dataset", str(partial.parent))
    assert "qilin_dqa_bert" in message and "publish-docs" in message
    assert "neither an owner" in refused(folder, capsys, "--dataset", "no/such/folder")


def test_an_unknown_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "choose from qilin, reqa" in refused(fake_checkout(tmp_path), capsys, "--tasks", "qilim")


def test_a_checkout_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fake_checkout(tmp_path)
    before, rename = tree(folder), Path.rename

    def fails_for_the_second(self: Path, target: Path) -> Path:
        if Path(target).name == "reqa":
            raise PermissionError(13, "Permission denied", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_for_the_second)
    with pytest.raises(QilinTasksError, match="Permission denied"):
        write_upstream(folder, ["qilin", "reqa"])
    assert tree(folder) == before


def test_the_table_keeps_its_order_where_it_is_not_quite_sorted() -> None:
    rows = [
        "| [acl](acl/README.md) | x | y |",
        "| [zz](zz/README.md) | x | y |",
        "| okapi/b | x | y |",
        "| [race](r) | x | y |",
    ]
    text = "| Task | D | L |\n|---|---|---|\n" + "\n".join(rows) + "\n\ntail\n"
    found = with_row(text, name="qilin", description="d", languages="Chinese")
    lines = found.splitlines()
    assert lines.index(next(line for line in lines if "qilin" in line)) == 5
    assert [line for line in lines if "qilin" not in line] == text.splitlines()
    with pytest.raises(DataError, match="no table"):
        with_row("nothing here", name="qilin", description="d", languages="Chinese")


def test_names_that_two_modules_share_stay_apart() -> None:
    template = (
        '"""Doc."""\n\nimport re\n\n\n# @take qilin_tasks.parsing.ranking_text: normalise\n'
        "# @take qilin_tasks.parsing.ranking_numbers: number_chains\n"
    )
    found: dict[str, Any] = {}
    exec(compile(assemble(template), "assembled", "exec"), found)
    assert found["normalise"]("【3】，[1, 2]") == "[3],[1] , [2]"
    assert [chain.ids for chain in found["number_chains"]("3 > 1 > 2")] == [(3, 1, 2)]
    assert {"_ITEM", "_RANKING_NUMBERS_ITEM"} <= found.keys()


def test_a_method_whose_needs_are_not_taken() -> None:
    template = '"""Doc."""\n\nimport re\n\n\nclass A:\n    # @take qilin_tasks.harness.dqa_task.DQATask: {}\n    pass\n'
    with pytest.raises(DataError, match="strip_reasoning"):
        assemble(template.format("shown_response"))
    with pytest.raises(DataError, match="no method 'nothing'"):
        assemble(template.format("nothing"))


@pytest.fixture(scope="module")
def clean(
    source_distribution: Path,  # noqa: F811
    documents: Path,
    bert_chinese_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a Python that has lm-eval from its source distribution, with our folders, and not this package."""
    folder = tmp_path_factory.mktemp("clean")
    with tarfile.open(source_distribution) as archive:
        # Its other task folders, more than ten thousand files, would only cost time.
        wanted = [
            item for item in archive.getmembers() if not re.match(r"[^/]+/lm_eval/tasks/(?!sciq/)[^/]+/", item.name)
        ]
        archive.extractall(folder, members=wanted, filter="data")
    (upstream,) = folder.glob("lm_eval-*")
    write_upstream(upstream, list(FAMILIES), dataset=str(documents))
    rest = folder / "site-packages"
    rest.mkdir()
    for entry in Path(pytest.__file__).parents[1].iterdir():
        if not entry.name.startswith(("lm_eval", "qilin", "_editable_impl_qilin", "__pycache__")):
            (rest / entry.name).symlink_to(entry)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "rest.pth").write_text(f"{rest}\n", encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("QILIN_DATA", "REQA_DATA", "PYTHONPATH")},
        "PYTHONPATH": str(upstream),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_CACHE": str(bert_chinese_cache),
        "HF_DATASETS_CACHE": str(folder / "datasets"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(folder / "venv" / "bin" / "python"), *arguments],
            cwd=upstream,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    run.upstream = upstream  # type: ignore[attr-defined]
    return run


@pytest.mark.slow
def test_the_clean_environment_has_no_trace_of_this_package(clean: Callable[..., Any]) -> None:
    ran = clean("-c", "import lm_eval; print(lm_eval.__file__); import qilin_tasks")
    assert ran.returncode == 1 and "No module named 'qilin_tasks'" in ran.stderr
    assert Path(ran.stdout.strip()).is_relative_to(clean.upstream)


@pytest.mark.slow
def test_upstreams_own_tests_pass_for_every_task(clean: Callable[..., Any]) -> None:
    tasks = [task for name in FAMILIES for task in carried_tasks(name)]
    (clean.upstream / "tests" / "__init__.py").touch()
    (clean.upstream / "tests" / "utils.py").write_text(f"def new_tasks():\n    return {tasks!r}\n", encoding="utf-8")
    ran = clean("-m", "pytest", "tests/test_tasks.py", "-k", SELECTED, "-p", "no:cacheprovider", "-q", "-rA")
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-3000:]
    passed = re.findall(rf"^PASSED tests/test_tasks\.py::{SELECTED}::\w+\[([\w.-]+)\]", ran.stdout, re.MULTILINE)
    assert set(passed) == set(tasks) and len(passed) == 13 * len(tasks)


@pytest.mark.slow
def test_upstreams_command_finds_and_runs_them(clean: Callable[..., Any], smollm: Path, tmp_path: Path) -> None:
    groups = [file.name for name in FAMILIES for _, files in carried(name) for file in files]
    found = clean("-m", "lm_eval", "validate", "--tasks", ",".join(groups))
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    assert "All tasks found and valid" in found.stdout + found.stderr
    dummy = ["qilin_dqa", "qilin_ranking", *REQA_SETS]
    real = ["qilin_dqa_na", "reqa_xquad_en"]
    models = (
        ("dummy", "", dummy),
        ("hf", f"pretrained={smollm},dtype=float32", real),
    )
    for model, arguments, tasks in models:
        output = tmp_path / model
        ran = clean(
            "-m", "lm_eval", "run", "--model", model, *(["--model_args", arguments] if arguments else []),
            "--tasks", ",".join(tasks), "--limit", "2", "--gen_kwargs", "max_gen_toks=4",
            "--output_path", str(output), "--log_samples", "--batch_size", "1",
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-6000:]
        (path,) = output.rglob("results_*.json")
        results = json.loads(path.read_text(encoding="utf-8"))
        assert all(results["n-samples"][task]["effective"] == 2 for task in results["n-samples"])
        if model == "dummy":
            assert isinstance(results["results"]["qilin_dqa"]["rouge_l,none"], float)
            assert isinstance(results["results"]["qilin_ranking"]["mrr@10,none"], float)
        assert 0 <= results["results"]["qilin_dqa_na"]["bertscore_f1,none"] <= 1


@pytest.mark.slow
def test_ruff_with_upstreams_configuration(clean: Callable[..., Any]) -> None:
    folders = [str(clean.upstream / "lm_eval" / "tasks" / name) for name in FAMILIES]
    config = ["--config", str(clean.upstream / "pyproject.toml"), "--no-cache"]
    for arguments in (["check", *config], ["format", *config], ["check", *config], ["format", "--check", *config]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, *folders], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout
    dqa = clean.upstream / "lm_eval" / "tasks" / "qilin" / "dqa"
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in dqa.rglob("*.py"))
    assert lines < 400
