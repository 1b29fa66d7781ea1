"""examples/own_data: made-up rows in the layouts of RGB, CRUD-RAG and DomainRAG, and their metrics by hand."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.evaluation import ScriptedModel

from qilin_tasks import cli

RGB = [
    {
        "id": 7,
        "query": "展览有几件展品？",
        "answer": ["70", ["三层", "3层"]],
        "positive": ["展品70件，共三层。", "共70件，分3层。"],
        "negative": ["门票十元。", "周一闭馆。", "可以拍照。"],
    },
    {"id": 8, "query": "几点开门？", "answer": "九点", "positive": ["早上九点开门。"], "negative": ["门票十元。"]},
]
CRUD = {
    "questanswer_1doc": [{"ID": "a1", "news1": "桥长三公里。", "questions": "桥多长？", "answers": "三公里"}],
    "questanswer_2docs": [
        {
            "ID": "a2",
            "event": "e",
            "news1": "甲镇下雨。",
            "news2": "乙镇下雪。",
            "questions": "天气？",
            "answers": "雨和雪",
        }
    ],
    "questanswer_3docs": [],
}
DOMAIN = [
    {
        "question": "用哪些语言？",
        "answers": [["汉语", "法语"], ["中文", "法语"]],
        "positive_reference": [{"title": "语 言", "contents": "用 汉语 和 法语 。", "id": "1", "psg_id": 0}],
        "retrieved_psgs": [
            {"title": "门 票", "contents": "十 元 。", "id": "2"},
            {"title": "语 言", "contents": "用 汉语 和 法语 。", "id": "1"},
        ],
    },
    {
        "history_qa": [{"question": "谁？", "answers": ["甲"], "positive_reference": {"title": "", "contents": "甲"}}],
        "question": "何时？",
        "date": "2023",
        "answers": ["1939年"],
        "positive_reference": {"title": "史", "contents": "成立 于 1939 年 。"},
    },
]


@pytest.fixture(scope="module")
def folder(repo: Path) -> Path:
    return repo / "examples" / "own_data"


@pytest.fixture(scope="module")
def metrics(folder: Path) -> ModuleType:
    sys.path.insert(0, str(folder / "tasks"))
    try:
        return importlib.import_module("their_metrics")
    finally:
        sys.path.pop(0)


def converted(folder: Path, script: str, file: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    """Run a converter and the command that it prints; the questions that it wrote, with their notes' texts."""
    command = [sys.executable, str(folder / script), str(file), "--out", str(out), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    words = ran.stdout.split()
    assert words[:3] == ["qilin-tasks", "new-data", "FOLDER"]
    assert cli.main(["new-data", str(out / "made"), *words[3:]]) == 0
    rows = [json.loads(line) for line in (out / "qa.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = (out / "notes.jsonl").read_text(encoding="utf-8").splitlines()
    notes = {note["id"]: note["text"] for note in map(json.loads, lines)}
    return [{**row, **{name: [notes[key] for key in row.get(name, ())] for name in ("notes", "cited")}} for row in rows]


def test_rgb(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "zh.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in RGB), encoding="utf-8")
    first, second = converted(folder, "rgb.py", file, tmp_path, "--noise-rate", "0.4", "--passages", "4")
    assert first["answers"] == ["70␟三层", "70␟3层"] and second["answers"] == ["九点"]
    # ceil(0.4 x 4) = 2 of noise, in the order of the seed; the second row has too little of either.
    assert sorted(first["notes"]) == sorted([*RGB[0]["positive"], "门票十元。", "周一闭馆。"])
    assert sorted(first["cited"]) == sorted(RGB[0]["positive"])
    assert sorted(second["notes"]) == ["早上九点开门。", "门票十元。"]


def test_rgb_with_groups_of_evidence(folder: Path, tmp_path: Path) -> None:
    groups = {**RGB[0], "positive": [["甲一", "甲二"], ["乙一"]]}
    file = tmp_path / "zh_int.json"
    file.write_text(json.dumps(groups), encoding="utf-8")
    (row,) = converted(folder, "rgb.py", file, tmp_path, "--passages", "4")
    assert sorted(row["notes"]) == sorted(["甲一", "甲二", "乙一", "门票十元。"])
    assert sorted(row["cited"]) == sorted(["甲一", "甲二", "乙一"])


def test_crud_rag(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "part_1").write_text("别的新闻。\n\n桥长三公里。\n", encoding="utf-8")
    file = tmp_path / "split_merged.json"
    file.write_text(json.dumps(CRUD), encoding="utf-8")
    rows = converted(folder, "crud_rag.py", file, tmp_path, "--docs", str(tmp_path / "docs"))
    assert [row["id"] for row in rows] == ["questanswer_1doc/a1", "questanswer_2docs/a2"]
    assert [row["cited"] for row in rows] == [["桥长三公里。"], ["甲镇下雨。", "乙镇下雪。"]]
    assert len((tmp_path / "notes.jsonl").read_text(encoding="utf-8").splitlines()) == 4


def test_domain_rag(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "qa.jsonl.theirs"
    file.write_text("".join(json.dumps(row) + "\n" for row in DOMAIN), encoding="utf-8")
    first, second = converted(folder, "domain_rag.py", file, tmp_path)
    assert first["answers"] == ["汉语␟法语", "中文␟法语"]
    assert (first["notes"], first["cited"]) == (["十元。", "用汉语和法语。"], ["用汉语和法语。"])
    assert second["question"] == "问：谁？\n答：甲\n问：2023年 何时？" and second["cited"] == ["成立于1939年。"]


@pytest.mark.slow
def test_rgb_runs_with_its_metrics(folder: Path, tmp_path: Path) -> None:
    import lm_eval

    from qilin_tasks.harness.task_manager import task_manager

    file = tmp_path / "zh.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in RGB), encoding="utf-8")
    converted(folder, "rgb.py", file, tmp_path)
    metadata = {"path": str(tmp_path / "made"), "bertscore": "off"}
    manager = task_manager(["rgb_zh"], metadata=metadata, include_path=[str(folder / "tasks")])
    model = ScriptedModel(lambda request: "7 0 件，共3层" if request.doc["question_id"] == "7" else "信息 不足")
    results = lm_eval.simple_evaluate(model=model, tasks=["rgb_zh"], task_manager=manager, bootstrap_iters=0)
    values = results["results"]["rgb_zh"]
    assert (values["rgb_accuracy,none"], values["rgb_rejection,none"]) == (0.5, 0.5)
    assert all("信息不足" in request.args[0] and "九点开门" in model.seen[1].args[0] for request in model.seen)


@pytest.mark.parametrize("name", ["rgb_zh", "crud_rag_bm25", "domain_rag"])
def test_every_task_names_metrics_that_are_there(folder: Path, metrics: ModuleType, name: str) -> None:
    from qilin_tasks.families import FAMILIES

    text = (folder / "tasks" / f"{name}.yaml").read_text(encoding="utf-8")
    named = re.findall(r"metric: !function their_metrics\.(\w+)", text)
    assert named and all(callable(getattr(metrics, function)) for function in named)
    assert set(re.findall(r"metric: (\w+)$", text, re.MULTILINE)) <= set(FAMILIES["custom_dqa"].scorer.METRICS)


@pytest.mark.parametrize(
    ("metric", "references", "output", "value"),
    [
        ("rgb_accuracy", ["70␟三层", "70␟3层"], "有7 0件，3层", 1.0),
        ("rgb_accuracy", ["70␟三层", "70␟3层"], "有70件", 0.0),
        ("rgb_accuracy", ["70"], "信息不足，也许70", 0.0),
        ("rgb_accuracy", ["CD"], "cd", 1.0),
        ("rgb_rejection", ["70"], "信息 不足", 1.0),
        ("domain_em", ["汉语␟法语", "中文"], "用汉语", 0.5),
        ("domain_em_strict", ["汉语␟法语", "中文"], "法语", 0.5),
        ("domain_em_strict", ["汉语␟法语", "中文"], "用中文", 0.0),
        # 我 爱 你 beside 我 爱: 3 of 5 and 3 of 3 characters, the blanks between jieba's words among them.
        ("domain_f1", ["我爱"], "我爱你", None),
        ("domain_f1", ["我"], "天", 0.0),
        ("crud_bleu", ["今天天气很好，我们去公园散步"], "今天天气很好，我们去公园散步", 1.0),
        ("crud_bleu", ["今天"], "", 0.0),
    ],
)
def test_a_value_by_hand(
    metrics: ModuleType, metric: str, references: list[str], output: str, value: float | None
) -> None:
    if value is None:
        import jieba

        ours, theirs = (" ".join(jieba.cut(text)) for text in (output, references[0]))
        common = sum(min(ours.count(c), theirs.count(c)) for c in set(ours))
        value = 2 * common / (len(ours) + len(theirs))
    assert getattr(metrics, metric)(references, [output]) == pytest.approx(value, abs=1e-12)


TEXTS = [
    ("今天天气很好，我们去公园散步吧。", "今天天气很好，大家一起去公园散步。"),
    ("会议于3月5日在北京举行，共有120人参加。", "3月5日，会议在北京举行，120人参加了会议。"),
    ("不知道", "桥长三公里，由两个省共同建设。"),
]


@pytest.mark.parametrize(("output", "gold"), TEXTS)
def test_crud_rags_values_are_those_of_the_tools_that_it_calls(metrics: ModuleType, output: str, gold: str) -> None:
    import jieba
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    class Words:
        def tokenize(self, text: str) -> list[str]:
            return list(jieba.cut(text))

    wanted = RougeScorer(["rougeL"], tokenizer=Words()).score(gold, output)["rougeL"].fmeasure
    assert metrics.crud_rouge_l([gold], [output]) == wanted
    ours, theirs = (" ".join(jieba.cut(text)) for text in (output, gold))
    bleu = sacrebleu.sentence_bleu(ours, [theirs], smooth_method="none", tokenize="none")
    assert metrics.crud_bleu([gold], [output]) == pytest.approx(bleu.score / 100 / bleu.bp, abs=1e-9)
