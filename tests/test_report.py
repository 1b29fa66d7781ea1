"""The report's numbers and files, on results of the harness's shape."""

from __future__ import annotations

import argparse
import csv
import gzip
import html
import json
import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.report_runs import DOCUMENTS, HOSTILE, make
from support.runs import write_run

from qilin_tasks.commands import report as command
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.families import WITHIN_CANDIDATES
from qilin_tasks.report import packing, tables
from qilin_tasks.report.analysis import Analysis, analyse
from qilin_tasks.report.beside import write_beside
from qilin_tasks.report.build import build
from qilin_tasks.report.collect import Board, boards_of, shown_document
from qilin_tasks.report.latex import escape_latex
from qilin_tasks.report.markdown import markdown
from qilin_tasks.report.owners import owned
from qilin_tasks.report.plots import plots_of
from qilin_tasks.report.tables import BASELINE, MODEL, PUBLISHED, escaped, notes, table, warnings
from qilin_tasks.results import stats
from qilin_tasks.results.reader import find_results
from qilin_tasks.results.scores import load_scores, short_table

RESAMPLES = 800


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def boards(runs: Path) -> list[Board]:
    return boards_of(find_results([runs]))


@pytest.fixture(scope="module")
def dqa(boards: list[Board]) -> tuple[Board, Analysis]:
    return boards[0], analyse(boards[0], resamples=RESAMPLES, seed=1)


@pytest.fixture(scope="module")
def out(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["report", str(runs), "--out", str(folder), "--resamples", str(RESAMPLES)])
    assert args.run(args) == 0
    return folder


def test_conditions_stand_side_by_side_in_the_paper_s_order(boards: list[Board]) -> None:
    assert [board.name for board in boards] == ["qilin_dqa", "qilin_search_listwise"]
    assert [column.condition for column in boards[0].columns] == ["na", "bm25", "bert", "oracle"]
    assert boards[0].models[-2:] == ["lead", "reference"]
    assert boards[0].higher_is_better["empty_rate"] is False


def test_rows_of_another_signature_are_named_and_not_compared(dqa: tuple[Board, Analysis]) -> None:
    board, analysis = dqa
    assert board.warnings == ["qilin_dqa_bert, weak: other signature (note 300 instead of 600): not compared"]
    compared = {(row.condition, row.first, row.second) for row in analysis.pairs}
    assert ("bm25", "strong", "weak") in compared
    assert not [names for names in compared if names[0] == "bert" and "weak" in names]
    # A baseline reads no prompt: that it has no chat template is no difference.
    assert not [text for text in board.warnings if "lead" in text]


def test_numbers_are_those_of_the_statistics(dqa: tuple[Board, Analysis]) -> None:
    board, analysis = dqa
    column = board.columns[1]
    strong, weak = (board.row(column, model) for model in ("strong", "weak"))
    assert strong is not None
    assert weak is not None
    values = strong.scores.values["rouge_l"], weak.scores.values["rouge_l"]
    assert analysis.intervals["qilin_dqa_bm25", "strong", "rouge_l"] == stats.mean_interval(values[0])
    pair = next(
        p
        for p in analysis.pairs
        if (p.condition, p.metric, p.second) == ("bm25", "rouge_l", "weak") and p.first == "strong"
    )
    assert pair.test.difference.value == pytest.approx(values[0].mean() - values[1].mean())
    assert pair.test.p_holm < 0.01
    assert analysis.groups["qilin_dqa_bm25", "rouge_l"]["strong"] == "a"
    assert analysis.groups["qilin_dqa_bm25", "rouge_l"]["weak"] == "b"


def test_lift_and_share_of_the_gap(dqa: tuple[Board, Analysis]) -> None:
    board, analysis = dqa
    lift = next(x for x in analysis.lifts if (x.model, x.condition, x.metric) == ("strong", "bm25", "rouge_l"))
    by_condition = {c.condition: board.row(c, "strong") for c in board.columns}
    means = {name: row.scores.values["rouge_l"].mean() for name, row in by_condition.items() if row}
    assert lift.lift.difference.value == pytest.approx(means["bm25"] - means["na"])
    assert lift.share is not None
    assert lift.share.value == pytest.approx((means["bm25"] - means["na"]) / (means["oracle"] - means["na"]))
    assert lift.share.low < lift.share.value < lift.share.high
    # The reference answers the same under every condition: there is no gap to close.
    assert [x.share for x in analysis.lifts if x.model == "reference"] == [None] * 6


def test_published_rows_stand_beside_ours(dqa: tuple[Board, Analysis], boards: list[Board]) -> None:
    rows = {row.name: row for row in table(*dqa, "rouge_l")}
    assert [rows[name].kind for name in ("strong", "lead", "GPT4o-mini")] == [MODEL, BASELINE, PUBLISHED]
    # Qilin, Table 11, ROUGE-L.
    assert [cell.value for cell in rows["GPT4o-mini"].cells if cell] == [0.316, 0.384, 0.380, 0.429]
    search = boards[1]
    found = {row.name: row for row in table(search, analyse(search, resamples=100, seed=0), "mrr@10")}
    # Qilin, Table 10, search, MRR@10.
    assert [cell.value for cell in found["DCN-V2"].cells if cell] == [0.56]


def test_numbers_over_a_sample_are_not_taken_for_the_published_ones(
    dqa: tuple[Board, Analysis], monkeypatch: pytest.MonkeyPatch
) -> None:
    (said,) = [text for text in warnings(*dqa) if "published rows" in text]
    assert said.startswith("qilin_dqa_na, qilin_dqa_bm25, ")
    assert f"qilin_dqa_oracle: {DOCUMENTS} documents here (a sample, or --limit), 2,932 in the data that" in said
    (note,) = notes(dqa[0])
    assert note.startswith("Published: Qilin")
    assert "Table 11: zero-shot" in note
    monkeypatch.setattr(tables, "ENOUGH", DOCUMENTS / 3000)
    assert not [text for text in warnings(*dqa) if "published rows" in text]


def test_clusters_of_a_paragraph(tmp_path: Path) -> None:
    docs = [{"doc_key": i, "question": "q", "paragraph": i // 4, "answers": ["a", "b"]} for i in range(40)]
    scores = [{"mrr": float(i // 4 % 2)} for i in range(40)]
    write_run(
        tmp_path, model="m", task="reqa_t", docs=docs, responses=["x"] * 40, scores=scores, signature="reqa|data:1"
    )
    result = find_results([tmp_path])[0]
    interval = load_scores(result).interval("mrr")
    assert (interval.n, interval.clusters) == (40, 10)
    assert interval.se == pytest.approx(float(np.std([0, 1] * 5, ddof=1)) / 10**0.5)
    board = boards_of([result])[0]
    assert analyse(board, resamples=100, seed=0).clusters == 10
    assert short_table([load_scores(result)]).splitlines()[1].startswith("m      0.5000 ± 0.16")


def test_models_with_other_documents_share_what_they_can(tmp_path: Path) -> None:
    for model, keys in (("a", range(30)), ("b", range(10, 40))):
        docs = [{"doc_key": key, "query": "q"} for key in keys]
        scores = [{"em": float(key % 2)} for key in keys]
        write_run(
            tmp_path / model, model=model, task="t", docs=docs, responses=["x"] * 30, scores=scores, signature=None
        )
    board = boards_of(find_results([tmp_path]))[0]
    analysis = analyse(board, resamples=100, seed=0)
    assert analysis.documents == 20
    assert analysis.notes == [
        "paired statistics use the 20 documents that all compared rows share (the largest row has 30)"
    ]


def test_all_files_hold_every_number_with_its_signature(out: Path) -> None:
    rows = list(csv.DictReader((out / "results.csv").open(encoding="utf-8")))
    mine = [row for row in rows if row["kind"] != "published"]
    assert len(mine) == 5 * 4 * 4 + 2 * 2
    assert all(row["signature"] and row["n"] in (str(DOCUMENTS), "60") for row in mine)
    assert {row["compared"] for row in mine if row["system"] == "weak" and row["condition"] == "bert"} == {"False"}
    pairs = list(csv.DictReader((out / "pairs.csv").open(encoding="utf-8")))
    assert {row["kind"] for row in pairs} == {"models", "lift"}
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "| GPT4o\\-mini" in text or "| GPT4o-mini (published)" in text
    assert "**Warning:** qilin\\_dqa\\_bert, weak" in text
    assert "| system | rank | rouge\\_l, bm25 |\n|---|---|---:|\n| strong | 1 |" in text
    assert "<img" not in text.replace("\\<img", "")


def test_the_page_asks_nothing_of_the_network_and_holds_no_markup_of_a_model(out: Path) -> None:
    page = (out / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "default-src 'none'" in html.unescape(page)
    assert HOSTILE not in page
    assert "<img" not in page
    assert page.count("<script>") == 1


def test_the_packed_texts_come_back(boards: list[Board]) -> None:
    packed = packing.pack(boards, budget=10**8, title="t", one_file=False)
    core = json.loads(gzip.decompress(b64decode(packed.core)))
    column = core["boards"][0]["columns"][0]
    strong = [row["model"] for row in column["rows"]].index("strong")
    block = json.loads(gzip.decompress(b64decode(packed.blocks[f"t{column['id']}.0"])))
    query, passages, reference, answers = block["texts"][7]
    assert (query, passages, reference) == ("how to cook rice 7", [], "参考答案7")
    assert answers[strong][0] == HOSTILE
    row = boards[0].row(boards[0].columns[0], "strong")
    assert row is not None
    data = json.loads(gzip.decompress(b64decode(packed.blocks[f"c{column['id']}"])))
    assert data["scores"][strong][0][7] == round(row.scores.values["rouge_l"][7] * packing.UNIT)


def test_texts_are_shortened_to_the_budget(boards: list[Board]) -> None:
    whole = packing.pack(boards, budget=10**8, title="t", one_file=True)
    budget = (whole.size + packing.pack(boards, budget=0, title="t", one_file=True).size) // 2
    tight = packing.pack(boards, budget=budget, title="t", one_file=True)
    assert tight.size <= budget
    assert tight.level < whole.level
    assert tight.core == whole.core


def test_texts_without_room_lie_beside_the_page(boards: list[Board], tmp_path: Path) -> None:
    whole = packing.pack(boards, budget=10**8, title="t", one_file=False)
    assert not whole.beside
    packed = packing.pack(boards, budget=0, title="t", one_file=False)
    assert packed.level == whole.level
    assert packed.blocks | packed.beside == whole.blocks
    assert {name[0] for name in packed.beside} == {"t"}
    assert {name[0] for name in packed.blocks} == {"c"}
    (tmp_path / "texts").mkdir()
    for name in ("t9.9.9.html", "the owner's.html"):
        (tmp_path / "texts" / name).write_text("x", encoding="utf-8")
    paths = write_beside(tmp_path, packed.beside)
    assert {p.name for p in (tmp_path / "texts").iterdir()} == {"the owner's.html", *(p.name for p in paths)}
    # What was stored is the block alone, behind a policy that knows one script.
    text = paths[0].read_text(encoding="utf-8")
    assert text.count("<script>") == 1 and "default-src 'none'" in html.unescape(text)
    write_beside(tmp_path / "none", {})
    assert not (tmp_path / "none").exists()


def test_plots_are_xml_with_every_name_escaped(dqa: tuple[Board, Analysis], boards: list[Board]) -> None:
    plots = plots_of(*dqa)
    search = boards[1]
    ranks = plots_of(search, analyse(search, resamples=100, seed=0))
    assert len(plots) == 2 + 4
    assert any("rank of the first relevant item" in plot for plot in ranks)
    for plot in [*plots, *ranks]:
        root = ET.fromstring(plot)
        assert root.tag == "svg"
        assert not root.findall(".//img")


@pytest.mark.parametrize(
    ("doc", "shown"),
    [
        ({"query": "q", "notes": [{"title": "t", "content": "c"}], "reference": "r"}, ("q", (("t", "c"),), "r")),
        ({"question": "q", "passages": ["a", "b"], "answers": ["x", "y"]}, ("q", (("", "a"), ("", "b")), "x ⏐ y")),
        ({"question": "q", "context": "one text"}, ("q", (("", "one text"),), "target")),
        ({"anything": 1}, ("", (), "target")),
    ],
)
def test_what_is_shown_of_a_document(doc: dict[str, object], shown: tuple[object, ...]) -> None:
    document = shown_document(doc, "target")
    assert (document.query, document.passages, document.reference) == shown


@given(st.text())
def test_names_can_not_break_a_markdown_table(name: str) -> None:
    text = escaped(name)
    assert "\n" not in text
    assert not re.search(r"(?<!\\)(?:\\\\)*[|<`]", text)


@given(st.text())
def test_names_are_text_in_latex(name: str) -> None:
    escaped = escape_latex(name)
    assert "\n" not in escaped and not re.search(r"(?<!\\)[&%#_]", escaped)
    # What is left without our own commands and escapes holds nothing that TeX reads.
    plain = re.sub(r"\\text\w+\{\}|\$\\?[<>\w-]+\$|\\[&%$#_{}]|\{\[\}", "", escaped)
    assert not re.search(r"[\\^~\[{}$]", plain)


def test_latex_tables_have_whole_rows(out: Path) -> None:
    text = (out / "report.tex").read_text(encoding="utf-8")
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 2 + 2 + 2
    for columns, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}\n\\toprule\n(.*?)\\bottomrule", text, re.DOTALL):
        rows = [line for line in body.splitlines() if line != r"\midrule"]
        assert len(rows) > 2
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}
        assert all(row.endswith(r" \\") for row in rows)
    assert "$<$img src=x onerror=alert(1)$>$" in text
    assert "qilin\\_dqa, bm25: rouge\\_l." in text


def test_bad_input(tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    few = parser.parse_args(["report", str(runs), "--out", str(tmp_path / "o"), "--resamples", "5"])
    with pytest.raises(SettingError, match="--resamples 5"):
        few.run(few)
    make(tmp_path / "cut")
    samples = next((tmp_path / "cut").rglob("samples_qilin_dqa_na*"))
    samples.write_bytes(samples.read_bytes()[:-9])
    cut = parser.parse_args(["report", str(tmp_path / "cut"), "--out", str(tmp_path / "o")])
    # The others are reported, the damaged one is named.
    assert cut.run(cut) == 0
    assert "line 120: not a whole JSON object" in capsys.readouterr().err
    for results in (tmp_path / "cut").rglob("results_*.json"):
        results.write_text("{")
    with pytest.raises(DataError):
        cut.run(cut)


def test_merged_folders_name_the_owner_of_each_row(tmp_path: Path) -> None:
    docs = [{"doc_key": key, "reference": "a"} for key in range(20)]
    for owner, model, base in (("ann", "m", 0.1), ("bob", "m", 0.5), ("bob", "only <b>", 0.2)):
        write_run(
            tmp_path / owner / "runs" / model,
            model=model,
            task="qilin_dqa_na",
            docs=docs,
            responses=["x"] * 20,
            scores=[{"rouge_l": base + key / 100} for key in range(20)],
            signature="dqa|ctx:na|data:x",
        )
    roots = [tmp_path / "ann", tmp_path / "bob"]
    build(roots, tmp_path / "out", title="t", resamples=100, seed=1)
    with (tmp_path / "out" / "results.csv").open(encoding="utf-8") as lines:
        rows = {row["system"]: row["owner"] for row in csv.DictReader(lines) if row["kind"] == "model"}
    assert sorted(rows.values()) == ["ann", "bob", "bob"]
    assert rows["only <b>"] == "bob"
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert 'only &lt;b&gt; <small class="owner">from bob</small>' in text
    assert "from ann" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    # One folder has one owner, who needs no name; folders of one name go by their paths.
    build([tmp_path], tmp_path / "one", title="t", resamples=100, seed=1)
    assert 'class="owner"' not in (tmp_path / "one" / "index.html").read_text(encoding="utf-8")
    same = [tmp_path / "ann" / "runs", tmp_path / "bob" / "runs"]
    assert {result.owner for result in owned(find_results(same), same)} == {str(root) for root in same}


def test_few_documents_and_no_direction(tmp_path: Path) -> None:
    """Three documents: intervals stay in the range, a line says that no test can tell anything; lengths rank nobody."""
    docs = [{"doc_key": key, "reference": "a"} for key in range(3)]
    for model, base in (("a", 0.0), ("b", 0.5)):
        write_run(
            tmp_path / model,
            model=model,
            task="qilin_dqa_na",
            docs=docs,
            responses=["x"] * 3,
            scores=[{"rouge_l": base + key / 5, "answer_chars": 9.0} for key in range(3)],
            signature="dqa|ctx:na|data:x",
        )
    (board,) = boards_of(find_results([tmp_path]))
    assert board.higher_is_better["answer_chars"] is None
    analysis = analyse(board, resamples=RESAMPLES, seed=1)
    assert any("too few for a test" in note for note in analysis.notes)
    for interval in analysis.intervals.values():
        assert interval.low >= 0
    assert all(analysis.intervals["qilin_dqa_na", model, "rouge_l"].high <= 1 for model in "ab")
    assert all(row.test.difference.low >= -1 and row.test.difference.high <= 1 for row in analysis.pairs)
    text = markdown([(board, analysis)], resamples=RESAMPLES, seed=1, title="t")
    assert "(no direction is better)" in text and "(higher is better)" in text


def test_answers_without_metrics_are_named_with_the_way_out(tmp_path: Path, runs: Path) -> None:
    docs = [{"doc_key": 1, "reference": "a"}]
    write_run(tmp_path / "p", model="m", task="qilin_dqa_na", docs=docs, responses=["x"], scores=[{"bypass": 999.0}])
    with pytest.raises(DataError, match=r"answers without metrics .* qilin-tasks rescore"):
        boards_of(find_results([tmp_path / "p"]))
    faults: list[str] = []
    assert boards_of([*find_results([tmp_path / "p"]), *find_results([runs])], faults=faults)
    assert len(faults) == 1 and "rescore" in faults[0]


@pytest.mark.parametrize(("family", "said"), [("reqa", True), ("reqa_likelihood", True), ("reqa_generate", False)])
def test_a_number_over_candidates_says_so_wherever_it_stands(tmp_path: Path, family: str, said: bool) -> None:
    docs = [{"doc_key": i, "query": f"q{i}"} for i in range(4)]
    write_run(
        tmp_path, model="m", task="reqa_t", docs=docs, responses=["1"] * 4, scores=[{"mrr": i / 4} for i in range(4)],
        signature=f"{family}|data:1|n:4",
    )  # fmt: skip
    folder = tmp_path / "report"
    build([tmp_path], folder, title="t", resamples=50, seed=1)
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("report.md", "report.tex", "index.html")]
    texts.append(short_table([load_scores(result) for result in find_results([tmp_path])]))
    spoken = [re.sub(r"[\\{}]", "", html.unescape(text)) for text in texts]
    assert [WITHIN_CANDIDATES.replace("_", "") in text.replace("_", "") for text in spoken] == [said] * 4


def test_the_readme_says_the_same_beside_its_numbers(repo: Path) -> None:
    text = (repo / "lm_eval_tasks" / "reqa" / "README.md").read_text(encoding="utf-8")
    assert " ".join(text.split()).count(WITHIN_CANDIDATES) == 2
