"""Upstream's static folders score as the package does: on the sample, on hostile answers, and on any text."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.evaluation import evaluate
from support.upstream import load_utils, sample_documents, tasks_checkout
from support.upstream_run import Answers, run
from test_parse_rankings import OUTPUTS

from qilin_tasks.metrics.bertscore import BertScorer
from qilin_tasks.metrics.rouge_l import rouge_l
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.text.tokens import tokenize_chars

DQA = ("qilin_dqa_na", "qilin_dqa_bm25", "qilin_dqa_bert", "qilin_dqa_oracle")
HERE = Path(__file__).resolve().parents[1] / "qilin_tasks" / "upstream"
BLOCKS = [
    ("<think>", "</think>"), ("<THINK >", "</Think>"), ("<seed:think>", "</seed:think>"), ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"), ("<|START_THINKING|>", "<|END_THINKING|>"), ('<think lang="zh">', "</think>"),
    ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>"), ("<think:opensource>", "</think:opensource>"),
]  # fmt: skip
# No quotes or spaces around a mark: only the package tells a mark that an answer speaks of.
WORDS = st.text("好的a\n。\ud83d\u200b<>", max_size=6)
HOSTILE = [
    "",
    " \n",
    "\ud83d\ude00 \ud83d",
    "e" + "\u0301" * 200,
    "ＡＢＣ１２３ ｶﾞ ①",
    "กำไร ខ្មែរ မြန်မာ",
    "👩\u200d👩\ufe0f",
    "\x00\x85\u2028",
    "iPhone15 3.5",
    "_" * 99,
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every folder, over the sample's documents."""
    documents = sample_documents(tmp_path_factory.mktemp("documents"))
    return tasks_checkout(tmp_path_factory.mktemp("checkout"), documents=documents)


@pytest.fixture(scope="module")
def dqa() -> ModuleType:
    return load_utils(HERE / "qilin" / "utils.py")


@pytest.fixture(autouse=True)
def without_bertscore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_BERTSCORE", "off")
    monkeypatch.setenv("QILIN_DATA", "sample")


def compared(
    checkout: Path, tasks: tuple[str, ...], metadata: dict[str, int] | None = None
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each document's sample from the package and from the folder, prompts and answers being equal."""
    ours = evaluate(tasks, Answers(), log_samples=True, metadata=metadata)
    theirs = run(str(checkout), tasks)
    for task in tasks:
        for key, value in theirs["results"][task].items():
            if "stderr" not in key:
                assert value == pytest.approx(ours["results"][task][key], abs=1e-12), (task, key)
        pairs = list(zip(ours["samples"][task], theirs["samples"][task], strict=True))
        assert len(pairs) >= 10
        for mine, other in pairs:
            assert [next(iter(arguments)) for arguments in mine["arguments"]] == other["prompts"]
            assert mine["resps"] == other["resps"]
            yield mine, other


def test_answers_have_the_packages_values(checkout: Path) -> None:
    seen = []
    for mine, other in compared(checkout, DQA):
        assert other["values"] == pytest.approx({name: mine[name] for name in other["values"]}, abs=1e-12)
        seen.append(other["values"])
    assert {"rouge_l", "empty_rate", "unfinished_reasoning_rate"} == seen[0].keys()
    assert all(len({row[name] for row in seen}) > 1 for name in seen[0]), "the answers should differ in every metric"


LISTWISE = ("qilin_search_listwise", "qilin_recommendation_listwise")
POINTWISE = ("qilin_search_pointwise", "qilin_recommendation_pointwise")
ONE_PROMPT = {"window": 400}


def test_written_rankings_have_the_packages_values(checkout: Path) -> None:
    seen = []
    for mine, other in compared(checkout, LISTWISE, metadata=ONE_PROMPT):
        assert other["values"] == pytest.approx({name: mine[name] for name in other["values"]}, abs=1e-12)
        seen.append(other["values"])
    assert len(seen[0]) == 6 and len({row["valid_rate"] for row in seen}) == 2


def test_rankings_by_likelihood_have_the_packages_values(checkout: Path) -> None:
    ours = evaluate(POINTWISE, Answers(), metadata=ONE_PROMPT)
    theirs = run(str(checkout), POINTWISE)
    for task in POINTWISE:
        assert len(theirs["results"][task]) == 4
        for key, value in theirs["results"][task].items():
            assert value == pytest.approx(ours["results"][task][key], abs=1e-12)
            assert 0 < value < 1


def test_equal_likelihoods_leave_the_shown_order() -> None:
    utils = ranking_utils()
    rows = [(7, -0.0, place, place == 2, 1) for place in (3, 1, 2)]
    rows += [(8, float(place), place, place == 3, 2) for place in (1, 2, 3)]
    assert utils.mrr_10(rows) == pytest.approx((1 / 2 + 1 / 3) / 2, abs=1e-12)
    assert utils.map_10(rows) == pytest.approx((1 / 2 + 1 / 3 / 2) / 2, abs=1e-12)
    doc = {"doc_key": 7, "place": 1, "clicked": True, "n_relevant": 1}
    infinite = [(float("-inf"), False), (float("-inf"), False)]
    assert utils.process_pointwise(doc, infinite)["mrr@10"] == (7, 0.0, 1, True, 1)


def ranking_utils() -> ModuleType:
    import lm_eval.tasks

    if str(HERE) not in lm_eval.tasks.__path__:
        lm_eval.tasks.__path__.append(str(HERE))
    return load_utils(HERE / "qilin_ranking" / "utils.py")


def test_written_forms_are_read_as_the_package_reads_them() -> None:
    """Its own table of outputs; what differs is listed, and the benchmark measures it on a model's answers."""
    utils = ranking_utils()
    differ = []
    for text, n, ids in OUTPUTS:
        ranking = utils.ranking_of(text, n)
        found = dict.fromkeys(i for i in utils.ids_in(ranking or "") if 1 <= i <= n)
        if tuple(found) != ids:
            differ.append(text)
    assert len(differ) <= 0.05 * len(OUTPUTS), differ


@given(
    st.permutations(range(1, 9)),
    st.sampled_from([" > ", ">", ", ", "\n", "、", " -> "]),
    st.sampled_from(["[{}]", "【{}】", "{}"]),
)
def test_any_order_is_read_back(ids: list[int], separator: str, form: str) -> None:
    text = separator.join(form.format(i) for i in ids)
    utils = ranking_utils()
    assert utils.ids_in(utils.ranking_of(f"排序结果：\n{text}", 8)) == ids
    doc = {"candidates": ids, "relevant": [ids[0]], "n_relevant": 1}
    values = utils.score(doc, utils.ranking_of(text, 8))
    assert values.pop("unfinished_reasoning_rate") == 0.0 and set(values.values()) == {1.0}


@given(st.text("[]()0123456789>,.:;\n -排序ranke|①٣第名", max_size=80), st.integers(1, 9))
def test_a_ranking_of_any_text(text: str, n: int) -> None:
    utils = ranking_utils()
    values = utils.score({"candidates": [0] * n, "relevant": [1], "n_relevant": 1}, utils.ranking_of(text, n))
    assert all(0 <= value <= 1 for value in values.values())


@given(st.text() | st.text("中文的。，abAB １\u0301\u200bกำ가ガｶﾞ️⃣"))
@example("e" + "\u0301" * 5000)
@example("ﷺ①½\u00adß\u0130")
def test_any_text_has_the_packages_tokens(text: str) -> None:
    tokenizer = load_utils(HERE / "qilin" / "utils.py").CharacterTokenizer()
    assert tokenizer.tokenize(text) == tokenize_chars(text)


def test_hostile_answers_have_the_packages_scores(dqa: ModuleType) -> None:
    references = ["羽绒服可以机洗，选轻柔模式。", "The 3.5 cats, 猫猫!", "กำไร", "①"]
    for reference in references:
        for text in [*HOSTILE, *references, reference * 9, reference[::-1]]:
            answer = strip_reasoning(text)
            found = dqa.process_results({"reference": reference}, [[dqa.answer_of(text)]])
            assert found["rouge_l"] == pytest.approx(rouge_l(answer.text, reference).f1, abs=1e-12)
            assert found["empty_rate"] == float(not answer.text)


@st.composite
def responses(draw: st.DrawFn) -> str:
    """Blocks of reasoning, then an answer or a block that was cut off; the prompt may have opened the first."""
    text = ""
    for number in range(draw(st.integers(0, 2))):
        opening, closing = draw(st.sampled_from(BLOCKS))
        inside = draw(WORDS) + draw(st.sampled_from(["", opening, "<think about it>"]))
        text += f"{draw(WORDS) if number else ''}{opening}{inside}{closing}"
    opened = draw(st.sampled_from(["", "想一想</think>好"])) if not text else ""
    answer = draw(WORDS)
    ends = [answer, f"<answer>{answer}</answer>\n", f"<answer>{answer}", f"<think/>{answer}", f"{answer}[THINK]想"]
    ends += ["<", "<answ", f"{answer}<|im_e"]
    return opened + text + draw(st.sampled_from(ends))


@given(responses())
@example("<think/><")
def test_reasoning_is_taken_off_as_the_package_takes_it(text: str) -> None:
    answer = strip_reasoning(text)
    found = load_utils(HERE / "qilin" / "utils.py").answer_of(text)
    assert (found is None, found or "") == (answer.unfinished, answer.text)


@given(st.text("<think>/[THINK]◁▷`|_STARENDG channelfinalmessage好", max_size=60))
def test_reasoning_of_any_text(text: str) -> None:
    found = load_utils(HERE / "qilin" / "utils.py").answer_of(text)
    assert found is None or found == found.strip()


def test_reasoning_cases(dqa: ModuleType, shared: Path) -> None:
    lines = (shared / "cases" / "reasoning.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if not case["prompt_ends"]]
    assert len(cases) >= 8
    for case in cases:
        found = dqa.answer_of(case["text"])
        assert (found is None, found or "") == (case["unfinished"], case["answer"]), case["kind"]


@pytest.mark.slow
def test_bertscore_is_the_packages(dqa: ModuleType, minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=str(minilm), num_layers=4)
    monkeypatch.setattr(dqa, "bert_scorer", lambda: scorer)
    references = ["The cat sat on the mat.", "小红书的笔记 note", "Where is the station?", "x", "a long " * 400]
    answers = [
        "A cat sat.",
        "",
        "<think>x",
        "¿",
        "[1]",
        "b",
        "<think>?</think>笔记",
        "a long text",
        *references,
        *HOSTILE,
    ]
    random.Random(1).shuffle(answers)
    package = BertScorer(model=str(minilm), layer=4, device="cpu")
    for reference in references:
        ours = package.score([strip_reasoning(text).text for text in answers], [reference] * len(answers)).f1
        theirs = [
            dqa.process_results({"reference": reference}, [[dqa.answer_of(text)]])["bertscore_f1"] for text in answers
        ]
        assert theirs == pytest.approx(ours, abs=1e-6)


def test_the_value_of_repeats_is_their_mean(dqa: ModuleType) -> None:
    doc = {"reference": "苹果很甜。"}
    answers = ["苹果很甜。", "苹果", "", None]
    single = [dqa.process_results(doc, [[answer]]) for answer in answers]
    assert [row["rouge_l"] for row in single] == pytest.approx([1.0, 2 * 1.0 * 0.5 / 1.5, 0.0, 0.0], abs=1e-12)
    for results in ([answers], answers):
        found = dqa.process_results(doc, results)
        assert found["rouge_l"] == pytest.approx((1.0 + 2 / 3) / 4, abs=1e-12)
        assert (found["empty_rate"], found["unfinished_reasoning_rate"]) == (0.5, 0.25)


def test_without_its_package_or_model_bertscore_is_left_out_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import bert_score

    def not_to_be_had(**kwargs: Any) -> None:
        assert kwargs == {"model_type": "bert-base-chinese", "num_layers": 8}
        raise OSError("We couldn't connect to 'https://huggingface.co'")

    utils = load_utils(HERE / "qilin" / "utils.py")
    doc = {"reference": "a"}
    assert "bertscore_f1" not in utils.process_results(doc, [["a"]]) and not caplog.records
    monkeypatch.delenv("QILIN_BERTSCORE")
    monkeypatch.setattr(bert_score, "BERTScorer", not_to_be_had)
    for module, reason in ((bert_score, "couldn't connect"), (None, "bert_score")):
        monkeypatch.setitem(sys.modules, "bert_score", module)
        utils.bert_scorer.cache_clear()
        for _ in range(2):
            assert utils.process_results(doc, [["a"]])["rouge_l"] == 1.0
            assert "bertscore_f1" not in utils.process_results(doc, [["a"]])
        (record,) = caplog.records
        assert "bertscore_f1 is left out" in record.message and reason in record.message
        caplog.clear()
