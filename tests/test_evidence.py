"""Chosen evidence: documents, citations, refusals and the grid, with baselines in closed form."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.dqa_folder import dqa_row, prepared, write_dqa
from support.evaluation import ScriptedModel, evaluate, metric

from qilin_tasks.errors import SettingError
from qilin_tasks.evidence.documents import arrange, build_evidence, build_noevidence, holds_answer
from qilin_tasks.evidence.settings import EvidenceSettings
from qilin_tasks.harness.baseline import QilinBaseline
from qilin_tasks.metrics.citations import score_citations
from qilin_tasks.metrics.refusal import ratio_values, refusal_f1, share_among
from qilin_tasks.parsing.citations import Citations, parse_citations, strip_citations

ROWS, CITED, NOTES = 12, 2, 12
PLACES = ("first", "middle", "last", "shuffled")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """12 questions; each cites two notes; ten others are BM25's, the first of which holds the answer of row 0."""
    alphabet = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥天地玄黄宇宙洪荒"
    notes = [(f"题{char}", f"{char * 3}的笔记{char}，说的是{char}。" * 2) for char in alphabet[: CITED + NOTES]]
    answers = [f"第{'零一二三四五六七八九十百'[i]}问的回答写在这里，内容各不相同。" for i in range(ROWS)]
    notes[CITED] = ("泄露", answers[0])
    ranking = [[float(i), 30.0 - i] for i in range(CITED + NOTES)]
    rows = [
        dqa_row(
            i, query=f"问{i}", dqa_output=answers[i], ref_note_idx_list=[0, 1], bm25_results=ranking, dpr_results=[]
        )
        for i in range(ROWS)
    ]
    monkeypatch.setenv("QILIN_DATA", str(write_dqa(tmp_path, rows, notes)))
    return tmp_path


def settings(**changes):
    values = {
        "bertscore": "off",
        "bertscore_model": "none",
        "bertscore_layer": 1,
        "bertscore_device": "auto",
        "bertscore_batch_size": 1,
        "contexts": None,
        "notes": 5,
        "distractors": 0.6,
        "place": "shuffled",
        "seed": 0,
        "note_chars": 600,
        "context_chars": 4000,
        "answers": "all",
    }
    return EvidenceSettings.from_metadata({**values, **changes})


def test_settings():
    assert settings().cited == 2
    assert settings(notes=1, distractors=0.8).cited == 1
    assert settings(distractors=1).cited == 0
    with pytest.raises(SettingError, match=r"distractors 1.5: must be a share from 0 to 1"):
        settings(distractors=1.5)
    with pytest.raises(SettingError, match="place 'end': choose from first, last, middle, shuffled"):
        settings(place="end")


def test_the_signature_names_the_run_that_the_distractors_come_from(folder):
    from qilin_tasks.evidence.scorer import CiteScorer, EvidenceScorer, NoEvidenceScorer

    notes = range(CITED, CITED + NOTES)
    runs = [
        prepared(folder, "dense", {row: [(note, 0.0) for note in order] for row in range(ROWS)}, name=name)
        for name, order in (("forth", notes), ("back", list(reversed(notes))))
    ]
    chosen = [settings(contexts=path) for path in (None, *runs)]
    assert build_evidence(chosen[1]) != build_evidence(chosen[2])
    for scorer in (EvidenceScorer, CiteScorer, NoEvidenceScorer):
        released, *given = [scorer(one).document_parts()["pool"] for one in chosen]
        assert released == "bm25-30-leak0.5"
        assert len(set(given)) == 2
        assert all(part.startswith("dense@") and part.endswith("-30-leak0.5") for part in given)


@pytest.mark.parametrize("place", PLACES)
def test_documents(folder, place):
    documents = build_evidence(settings(place=place))
    assert len(documents) == ROWS
    for doc in documents:
        assert len(doc["notes"]) == 5
        assert {doc["notes"][at - 1]["note_idx"] for at in doc["cited"]} == {0, 1}
        expected = {"first": [1, 2], "middle": [2, 3], "last": [4, 5]}
        if place in expected:
            assert doc["cited"] == expected[place]
    assert documents == build_evidence(settings(place=place))
    if place == "shuffled":
        assert documents != build_evidence(settings(place=place, seed=1))
        assert len({tuple(doc["cited"]) for doc in documents}) > 2


def test_a_distractor_that_holds_the_answer_is_left_out_and_counted(folder):
    documents = build_evidence(settings(distractors=1))
    assert [doc["leaked"] for doc in documents[:2]] == [1, documents[1]["leaked"]]
    assert all(doc["cited"] == [] for doc in documents)
    assert all(note["title"] != "泄露" for note in documents[0]["notes"])
    assert holds_answer("从120元到3天都有", "120元玩3天")
    assert not holds_answer("只要120元", "120元玩3天")
    assert not holds_answer("", "好")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("budget", [20, 40, 80])
def test_the_budget_never_takes_a_cited_note(folder, place, budget):
    roomy = {doc["doc_key"]: doc for doc in build_evidence(settings(place=place))}
    for doc in build_evidence(settings(place=place, context_chars=budget)):
        assert {doc["notes"][at - 1]["note_idx"] for at in doc["cited"]} == {0, 1}
        lengths = [len(note["title"]) + len(note["content"]) for note in doc["notes"]]
        assert sum(lengths) <= budget
        assert all(lengths[at - 1] > 0 for at in doc["cited"])
        assert len(doc["notes"]) <= len(roomy[doc["doc_key"]]["notes"])


def test_both_kinds_of_a_question(folder):
    documents = build_noevidence(settings())
    assert len(documents) == 2 * ROWS
    assert len({doc["doc_key"] for doc in documents}) == 2 * ROWS
    assert [bool(doc["cited"]) for doc in documents[:4]] == [False, True, False, True]


@given(st.lists(st.integers(), max_size=4), st.lists(st.integers(), max_size=6), st.sampled_from(PLACES))
def test_an_arrangement_keeps_every_note(cited, others, place):
    assert sorted(arrange(cited, others, place=place, key="k")) == sorted([*cited, *others])


@pytest.mark.parametrize(
    ("text", "numbers", "sentences", "uncited"),
    [
        ("好[1]。", (1,), 1, 0),
        ("好。[1]", (1,), 1, 0),
        ("好【1】。坏。", (1,), 2, 1),
        ("好［１］。", (1,), 1, 0),
        ("好[1][3]。", (1, 3), 1, 0),
        ("好[1,3]。", (1, 3), 1, 0),
        ("好[1，3]。", (1, 3), 1, 0),
        ("好[1、3]。", (1, 3), 1, 0),
        ("好[1-3]。", (1, 2, 3), 1, 0),
        ("根据笔记1，好。", (1,), 1, 0),
        ("笔记1和笔记3都说好。", (1, 3), 1, 0),
        ("好【笔记2】。", (2,), 1, 0),
        ("好¹。坏²³。", (1, 23), 2, 0),
        ("好[^2]。", (2,), 1, 0),
        ("好[1]，也可以[2]。第三句。", (1, 2), 2, 1),
        ("It is good [1]. See note 2.", (1, 2), 2, 0),
        ("好[3-1]。", (3, 1), 1, 0),
        ("[1]", (1,), 0, 0),
        ("没有编号。", (), 1, 1),
        ("笔记本15寸。", (), 1, 1),
        ("[2024年]好。", (), 1, 1),
        ("", (), 0, 0),
    ],
)
def test_citations(text, numbers, sentences, uncited):
    found = parse_citations(text)
    assert found.numbers == numbers
    if "It is" not in text:  # sentences are cut by Chinese rules
        assert (found.sentences, found.uncited) == (sentences, uncited)


@given(st.text(st.characters(codec=None, categories=None), max_size=80))
def test_any_text_has_citations_or_none(text):
    found = parse_citations(text)
    assert 0 <= found.uncited <= found.sentences
    assert isinstance(strip_citations(text), str)


@given(st.lists(st.integers(min_value=1, max_value=99), min_size=1, max_size=5, unique=True))
def test_what_is_written_is_read(numbers):
    written = "".join(f"[{n}]" for n in numbers)
    assert parse_citations(f"好{written}。").numbers == tuple(numbers)
    assert strip_citations(f"好{written}。") == "好。"


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((1, 2), (1.0, 1.0, 1.0, 0.0)),
        ((1,), (1.0, 1 / 2, 2 / 3, 0.0)),
        ((1, 2, 3, 4, 5), (2 / 5, 1.0, 4 / 7, 0.0)),
        ((9,), (0.0, 0.0, 0.0, 1.0)),
        ((1, 9), (1 / 2, 1 / 2, 1 / 2, 1 / 2)),
        ((), (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_citation_scores(numbers, expected):
    assert score_citations(Citations(numbers, 1, 0), cited=[1, 2], shown=5)[:4] == pytest.approx(expected)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_refusal_f1_is_the_mean_of_its_values(pairs):
    refused, due = [a for a, _ in pairs], [b for _, b in pairs]
    hits = sum(a and b for a, b in pairs)
    total = sum(refused) + sum(due)
    assert sum(refusal_f1(refused, due)) / len(pairs) == pytest.approx(2 * hits / total if total else 0.0)
    among = share_among(refused, due)
    assert sum(among) / len(pairs) == pytest.approx(hits / sum(due) if any(due) else 0.0)


def test_values_of_a_ratio_have_its_standard_error():
    """Delta method by hand: n = (1, 0, 1), d = (2, 1, 1): R = 1/2, values R + (n - R d) / (4/3)."""
    assert ratio_values([1, 0, 1], [2, 1, 1]) == pytest.approx([0.5, 0.5 - 0.375, 0.5 + 0.375])


def run(task, strategy, **metadata):
    return evaluate([task], QilinBaseline(strategy=strategy), metadata=metadata)


def test_citing_baselines_are_their_closed_forms(folder):
    task, options = "qilin_dqa_cite", {"notes": 5, "distractors": 0.6}
    oracle = run(task, "cite_oracle", **options)
    for name, value in {
        "cite_f1": 1,
        "cite_precision": 1,
        "cite_recall": 1,
        "invented_rate": 0,
        "uncited_rate": 0,
    }.items():
        assert metric(oracle, task, name) == pytest.approx(value), name
    assert metric(oracle, task, "rouge_l") == pytest.approx(1.0)  # the marks are gone
    everything = run(task, "cite_all", **options)
    assert metric(everything, task, "cite_precision") == pytest.approx(2 / 5)
    assert metric(everything, task, "cite_recall") == pytest.approx(1.0)
    assert metric(everything, task, "cite_f1") == pytest.approx(4 / 7)
    reference = run(task, "reference", **options)
    assert metric(reference, task, "cite_f1") == 0.0
    assert metric(reference, task, "uncited_rate") == 1.0


def test_citing_at_random_has_precision_c_of_n():
    """Exactly in expectation; over 3,000 seeded draws within five standard errors."""
    from qilin_tasks.evidence.baselines import CITE

    docs = [{"doc_key": i, "reference": "好", "notes": [{}] * 5, "cited": [1, 4]} for i in range(3000)]
    values = [
        score_citations(parse_citations(CITE["cite_random"].generate(doc)), cited=doc["cited"], shown=5).precision
        for doc in docs
    ]
    assert sum(values) / len(values) == pytest.approx(2 / 5, abs=5 * 0.3 / 3000**0.5)


def test_refusing_baselines_are_their_closed_forms(folder):
    task = "qilin_dqa_noevidence"
    always = run(task, "always_refuse")
    expected = {"refusal_f1": 2 / 3, "refusal_precision": 1 / 2, "refusal_recall": 1, "false_refusal_rate": 1}
    for name, value in expected.items():
        assert metric(always, task, name) == pytest.approx(value), name
    never = run(task, "never_refuse")
    for name in expected:
        assert metric(never, task, name) == 0.0
    perfect = evaluate([task], ScriptedModel(lambda r: "好" if r.doc["cited"] else "笔记中没有提到"))
    for name, value in {"refusal_f1": 1, "refusal_precision": 1, "refusal_recall": 1, "false_refusal_rate": 0}.items():
        assert metric(perfect, task, name) == pytest.approx(value), name


@pytest.mark.parametrize(
    ("reader", "curve"),
    [
        ("read_first", {"first": 1.0, "middle": 0.0, "last": 0.0}),
        ("read_last", {"first": 0.0, "middle": 0.0, "last": 1.0}),
        ("read_cited", {"first": 1.0, "middle": 1.0, "last": 1.0}),
    ],
)
def test_scripted_readers_return_their_curve(folder, reader, curve):
    tasks = {place: f"qilin_dqa_grid_n5_d80_{place}" for place in curve}
    results = evaluate(list(tasks.values()), QilinBaseline(strategy=reader))
    for place, value in curve.items():
        assert metric(results, tasks[place], "rouge_l") == pytest.approx(value), place


def test_the_quick_group_holds_eight_cells_of_the_grid(repo: Path):
    def members(name: str) -> list[str]:
        return yaml.safe_load((repo / "lm_eval_tasks" / "qilin" / f"{name}.yaml").read_text(encoding="utf-8"))["task"]

    assert len(members("qilin_dqa_grid_quick")) == 8
    assert set(members("qilin_dqa_grid_quick")) < set(members("qilin_dqa_grid"))


def test_every_cell_runs_on_the_sample(monkeypatch):
    monkeypatch.setenv("QILIN_DATA", "sample")
    results = evaluate(["qilin_dqa_grid", "qilin_dqa_cite", "qilin_dqa_noevidence"], ScriptedModel("好"), limit=2)
    assert len(results["results"]) >= 25
    for name, config in results["configs"].items():
        assert "|notes:" in config["metadata"]["signature"], name


def test_citations_that_no_note_can_have_are_left_out_as_in_oracle(tmp_path, monkeypatch):
    notes = [(f"题{i}", f"内容{i}" * 9) for i in range(8)]
    ranking = [[float(i), 9.0 - i] for i in range(8)]
    cited = [[0, 1], [99, 0], [1, -1], [99]]
    rows = [
        dqa_row(i, query=f"问{i}", dqa_output="回答", ref_note_idx_list=ids, bm25_results=ranking, dpr_results=[])
        for i, ids in enumerate(cited)
    ]
    monkeypatch.setenv("QILIN_DATA", str(write_dqa(tmp_path, rows, notes)))
    shown = [[doc["notes"][place - 1]["note_idx"] for place in doc["cited"]] for doc in build_evidence(settings())]
    assert [sorted(ids) for ids in shown] == [[0, 1], [0], [1]]
