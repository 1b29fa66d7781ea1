"""`qilin-tasks judge`: scripted judges of known error, people's labels, and judges that must be called bad."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.openai_server import ChatServer, chat_server
from support.runs import write_run

from qilin_tasks.cli import main
from qilin_tasks.judge.agreement import kappa, spearman
from qilin_tasks.judge.corrected import corrected_mean
from qilin_tasks.judge.nuggets import Nuggets, read_frozen
from qilin_tasks.judge.pairs import values_of, verdict_of
from qilin_tasks.judge.prompts import PLACES, read_prompts
from qilin_tasks.judge.readings import Nugget, read_nuggets, read_pair, read_support

TASK = "qilin_dqa_bm25"
DOCUMENTS = 120
Reply = Callable[[str, str], str]


def facts(document: int) -> list[str]:
    return [f"alpha{document}x", f"beta{document}x", f"gamma{document}x"]


def held(model: str, document: int) -> list[str]:
    """The facts that a model's answer holds."""
    every = facts(document)
    return every[: document % 4] if model == "good" else every[: document % 2]


def share(model: str, document: int) -> float:
    return len(held(model, document)) / 3


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models' answers, which hold none to three of the reference's facts."""
    folder = tmp_path_factory.mktemp("runs")
    docs = [{"doc_key": i, "query": f"question {i}", "reference": ", ".join(facts(i))} for i in range(DOCUMENTS)]
    for model in ("good", "poor"):
        texts = [" and ".join(held(model, i)) for i in range(DOCUMENTS)]
        scores = [{"rouge_l": 0.1} for _ in docs]
        write_run(folder / model, model=model, task=TASK, docs=docs, responses=texts, scores=scores)
    return folder


def between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].split(end, 1)[0].strip()


def honest(model: str, prompt: str) -> str:
    """A judge that makes no mistake."""
    if "Split the reference" in prompt:
        found = between(prompt, "Reference answer:", "Statements:").split(", ")
        return "\n".join(f"{'okay' if i else 'vital'}: {fact}" for i, fact in enumerate(found))
    if "Does the answer" in prompt:
        inside = between(prompt, "Statement:", "Verdict:") in between(prompt, "Answer:\n", "Statement:")
        return "supported" if inside else "not supported"
    wanted = between(prompt, "Reference answer:", "[Answer 1]").split(", ")
    shown = between(prompt, "[Answer 1]", "[Answer 2]"), between(prompt, "[Answer 2]", "Verdict:")
    first, second = (sum(fact in text for fact in wanted) for text in shown)
    return "tie" if first == second else "answer 1" if first > second else "answer 2"


def too_kind(model: str, prompt: str) -> str:
    """As the honest one, but says "supported" to half of what is not."""
    said = honest(model, prompt)
    unlucky = hashlib.sha256(prompt.encode()).digest()[0] < 128
    return "supported" if said == "not supported" and unlucky else said


def fickle(model: str, prompt: str) -> str:
    """Nuggets as they are, a verdict by the prompt's digest alone."""
    if "Split the reference" in prompt:
        return honest(model, prompt)
    return ("supported", "not supported")[hashlib.sha256(prompt.encode()).digest()[1] % 2]


@pytest.fixture
def served() -> Iterator[Callable[[Reply], ChatServer]]:
    contexts = []

    def serve(answer: Reply) -> ChatServer:
        context = chat_server(answer=answer)
        contexts.append(context)
        return context.__enter__()

    yield serve
    for context in contexts:
        context.__exit__(None, None, None)


def judge(server: ChatServer, runs: Path, out: Path, *options: str) -> int:
    spec = f"local-chat-completions:judge,base_url={server.url},num_concurrent=8"
    return main(["judge", str(runs), "--judge", spec, "--out", str(out), "--prompts", "en", *options])


def made(out: Path, mode: str = "nuggets") -> dict[str, Any]:
    return dict(json.loads((out / f"judgement-{mode}.json").read_text(encoding="utf-8")))


def labelled(path: Path, *, every: int) -> Path:
    """What people would say of some of the good model's answers: the truth."""
    verdicts = {
        i: ["supported" if fact in held("good", i) else "not" for fact in facts(i)] for i in range(0, DOCUMENTS, every)
    }
    lines = [{"task": TASK, "key": i, "model": "good", "verdicts": said} for i, said in verdicts.items()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_judge_without_error_gives_the_truth_and_is_asked_once(
    served: Any, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = served(honest)
    labels = labelled(tmp_path / "labels.jsonl", every=5)
    assert judge(server, runs, tmp_path / "out", "--labels", str(labels)) == 0
    found = made(tmp_path / "out")
    assert found["bad"] == [] and "No check failed." in capsys.readouterr().out
    for row in found["rows"]:
        (model,) = row["models"]
        truth = np.mean([share(model, i) for i in range(DOCUMENTS)])
        assert row["values"]["nuggets_all"]["value"] == pytest.approx(truth, abs=1e-12)
        assert row["scored"] == DOCUMENTS
    good = next(row for row in found["rows"] if row["models"] == ["good"])
    assert good["labels"] == DOCUMENTS // 5
    assert max(server.asked.values()) == 1
    asked = sum(server.asked.values())
    assert judge(server, runs, tmp_path / "out", "--labels", str(labels)) == 0
    assert sum(server.asked.values()) == asked and made(tmp_path / "out") == found
    assert "nuggets:" in found["signature"] and "prompts:en@" in found["signature"]


@pytest.mark.slow
def test_labels_correct_a_judge_of_known_error(served: Any, runs: Path, tmp_path: Path) -> None:
    labels = labelled(tmp_path / "labels.jsonl", every=3)
    assert judge(served(too_kind), runs, tmp_path / "out", "--labels", str(labels)) == 0
    good = next(row for row in made(tmp_path / "out")["rows"] if row["models"] == ["good"])
    truth = np.mean([share("good", i) for i in range(DOCUMENTS)])
    judged, corrected = good["values"]["nuggets_all"], good["corrected"]
    # Half of the quarter that is missing from answers which are not empty.
    assert judged["value"] == pytest.approx(truth + 0.125, abs=0.04)
    assert judged["low"] > truth
    assert corrected["low"] < truth < corrected["high"]
    assert abs(corrected["value"] - truth) < abs(judged["value"] - truth) / 2


@pytest.mark.slow
def test_a_judge_by_chance_is_called_bad(
    served: Any, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = labelled(tmp_path / "labels.jsonl", every=2)
    assert judge(served(fickle), runs, tmp_path / "out", "--labels", str(labels)) == 0
    assert "This judge is bad" in capsys.readouterr().out
    assert {"controls", "people_kappa"} <= set(made(tmp_path / "out")["bad"])


@pytest.mark.slow
def test_what_cannot_be_read_is_counted_and_never_a_score(served: Any, runs: Path, tmp_path: Path) -> None:
    def silent(model: str, prompt: str) -> str:
        return honest(model, prompt) if "Split the reference" in prompt else "I would rather not say."

    assert judge(served(silent), runs, tmp_path / "out") == 0
    found = made(tmp_path / "out")
    assert "failed" in found["bad"]
    # Empty answers support nothing, whoever judges; no other has a value.
    empty = {model: sum(not held(model, i) for i in range(DOCUMENTS)) for model in ("good", "poor")}
    assert {row["models"][0]: row["scored"] for row in found["rows"]} == empty


def test_a_judge_that_makes_no_nuggets(served: Any, runs: Path, tmp_path: Path) -> None:
    assert judge(served(lambda model, prompt: "…"), runs, tmp_path / "out", "--limit", "5") == 0
    found = made(tmp_path / "out")
    assert "without_nuggets" in found["bad"]
    assert all(row["scored"] == 0 for row in found["rows"])


def test_a_judge_of_pairs(served: Any, runs: Path, tmp_path: Path) -> None:
    assert judge(served(honest), runs, tmp_path / "out", "--mode", "pairs") == 0
    found = made(tmp_path / "out", "pairs")
    (row,) = found["rows"]
    assert row["models"] == ["good", "poor"] and found["bad"] == []
    truth = [(share("good", i) > share("poor", i)) + 0.5 * (held("good", i) == held("poor", i)) for i in range(120)]
    assert row["values"]["win_rate"]["value"] == pytest.approx(np.mean(truth), abs=1e-12)
    assert row["values"]["position_inconsistency"]["value"] == 0.0


def test_a_judge_that_always_takes_the_first_is_called_bad(served: Any, runs: Path, tmp_path: Path) -> None:
    assert judge(served(lambda model, prompt: "answer 1"), runs, tmp_path / "out", "--mode", "pairs") == 0
    found = made(tmp_path / "out", "pairs")
    assert {"inconsistent", "controls"} <= set(found["bad"])
    assert found["rows"][0]["values"]["win_rate"]["value"] == 0.5


def test_a_server_out_of_order_stops_and_the_same_command_goes_on(
    served: Any, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = served(honest)
    options = ("--limit", "12")
    server.broken.add("judge")
    spec = f"local-chat-completions:judge,base_url={server.url},num_concurrent=2,max_retries=1"
    command = ["judge", str(runs), "--judge", spec, "--out", str(tmp_path), "--prompts", "en", *options]
    assert main(command) != 0
    assert "out of order" in capsys.readouterr().err
    assert not (tmp_path / "judgement-nuggets.json").exists()
    server.broken.clear()
    assert main(command) == 0
    assert made(tmp_path)["bad"] == []


@pytest.mark.slow
def test_a_killed_judge_goes_on_without_asking_what_is_stored(served: Any, runs: Path, tmp_path: Path) -> None:
    running: list[subprocess.Popen[bytes]] = []
    asked_before_the_end = 60

    def deadly(model: str, prompt: str) -> str:
        if running and len(server.payloads) == asked_before_the_end:
            running[0].send_signal(signal.SIGKILL)
            running.clear()
        return honest(model, prompt)

    server = served(deadly)
    out = tmp_path / "out"
    spec = f"local-chat-completions:judge,base_url={server.url},num_concurrent=1"
    command = ["judge", str(runs), "--judge", spec, "--out", str(out), "--prompts", "en", "--limit", "20"]
    process = subprocess.Popen([sys.executable, "-m", "qilin_tasks.cli", *command], stdout=-3, stderr=-3)
    running.append(process)
    assert process.wait() == -signal.SIGKILL
    first = Counter(server.asked)
    assert sum(first.values()) == asked_before_the_end and not (out / "judgement-nuggets.json").exists()
    # The one request whose answer never arrived.
    assert main(command) == 0
    assert sum(count - 1 for count in server.asked.values()) == 1
    undisturbed = tmp_path / "undisturbed"
    assert main([str(undisturbed) if part == str(out) else part for part in command]) == 0
    assert made(out) == made(undisturbed)


def test_a_judge_whose_answers_are_all_stored_is_not_loaded(
    served: Any, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = served(honest)
    assert judge(server, runs, tmp_path, "--limit", "6", "--repeats", "2") == 0
    found, asked = made(tmp_path), sum(server.asked.values())

    def broken(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError("this model can't be loaded")

    monkeypatch.setattr("qilin_tasks.harness.lone_prompts.load_model", broken)
    assert judge(server, runs, tmp_path, "--limit", "6", "--repeats", "2") == 0
    assert made(tmp_path) == found and sum(server.asked.values()) == asked
    with pytest.raises(RuntimeError, match="can't be loaded"):
        judge(server, runs, tmp_path, "--limit", "6", "--mode", "pairs")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", "labels"),
        ('{"task": "t", "key": 1, "model": "good", "score": 2}', "line 1"),
        ('{"task": "t", "key": 1, "model": "good", "verdicts": ["perhaps"]}', "choose from supported, partial, not"),
        ('{"task": "qilin_dqa_bm25", "key": 999, "model": "good", "score": 1}', "name no judged answer"),
        ('{"task": "qilin_dqa_bm25", "key": 1, "model": "good", "verdicts": ["not"]}', "frozen nuggets"),
    ],
)
def test_labels_that_do_not_fit(
    line: str, message: str, served: Any, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text(line + "\n", encoding="utf-8")
    assert judge(served(honest), runs, tmp_path / "out", "--labels", str(labels), "--limit", "4") != 0
    assert message in capsys.readouterr().err


def test_a_baseline_is_no_judge(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(runs), "--judge", "qilin-baseline:lead", "--out", str(tmp_path)]) != 0
    assert "choose a language model" in capsys.readouterr().err


@pytest.mark.slow
def test_a_real_model_that_is_a_bad_judge(
    runs: Path, tiny_llm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A random network through the harness's own backend writes nothing that can be read."""
    nuggets = Nuggets({"made": "by hand"}, {}, [])
    from qilin_tasks.judge.answers import stored_answers

    answers = stored_answers([runs], tasks=(), models=(), most_chars=100)
    by_item = {answer.item: [Nugget(answer.reference[:6], True)] for answer in answers}
    file = tmp_path / "nuggets.json"
    Nuggets(nuggets.recipe, by_item, []).write(file)
    command = ["judge", str(runs), "--judge", f"hf:{tiny_llm}", "--out", str(tmp_path / "out"), "--limit", "3"]
    assert main([*command, "--nuggets", str(file)]) == 0
    assert "This judge is bad" in capsys.readouterr().out


def test_frozen_nuggets_are_not_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nuggets.json"
    nuggets = Nuggets({"model": "m"}, {"a": [Nugget("x", True)]}, ["b"])
    nuggets.write(path)
    assert read_frozen(path) == nuggets
    path.write_text(path.read_text(encoding="utf-8").replace('"x"', '"y"'), encoding="utf-8")
    with pytest.raises(Exception, match="it was edited"):
        read_frozen(path)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("支持", "supported"),
        ("不支持。", "not"),
        ("部分支持", "partial"),
        ("Partially supported.", "partial"),
        ("Not supported", "not"),
        ("<think>supported?</think>not supported", "not"),
        ("<think>supported", None),
        ("It could be supported or not supported.", None),
        ("supported or not supported? Verdict: not supported", "not"),
        ("", None),
        (None, None),
    ],
)
def test_support_is_read(text: str | None, verdict: str | None) -> None:
    assert read_support(text) == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("回答1", "first"),
        ("回答 2。", "second"),
        ("平局", "tie"),
        ("2", "second"),
        ("Answer 1", "first"),
        ("answer 12", None),
    ],
)
def test_a_pair_is_read(text: str, verdict: str | None) -> None:
    assert read_pair(text) == verdict


def test_nuggets_are_read() -> None:
    text = "1. **关键**：早上七点开门\n- 次要: 门票 40 元\n- 次要: 门票 40 元\n废话\nVital: opens at 7"
    assert read_nuggets(text) == [Nugget("早上七点开门", True), Nugget("门票 40 元", False), Nugget("opens at 7", True)]
    assert read_nuggets("nothing of the kind") is None
    assert len(read_nuggets("\n".join(f"vital: {n}" for n in range(40))) or ()) == 10


@given(st.text() | st.text("支持不部分回答12平局vital关键:： \n"))
def test_any_text_can_be_read(text: str) -> None:
    read_nuggets(text)
    assert read_support(text) in (None, "supported", "partial", "not")
    assert read_pair(text) in (None, "first", "tie", "second")


def test_both_languages_have_every_prompt() -> None:
    for language in ("zh", "en"):
        prompts = read_prompts(language)
        for name, places in PLACES.items():
            filled = prompts.fill(name, **{place: f"<{{answer}} {place}>" for place in places})
            assert all(f"<{{answer}} {place}>" in filled for place in places)


def test_orders_that_contradict_are_a_tie() -> None:
    assert (verdict_of("first", "second"), verdict_of("first", "first"), verdict_of(None, "tie")) == (
        "first",
        "tie",
        None,
    )
    values = values_of("first", "first")
    assert values is not None and values["position_inconsistency"] == 1.0 and values["first_shown_preferred"] == 1.0


VERDICTS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=3, max_size=40)


@given(VERDICTS)
def test_agreement_is_that_of_other_tools(pairs: list[tuple[str, str]]) -> None:
    from scipy.stats import spearmanr
    from sklearn.metrics import cohen_kappa_score

    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(first + second)) > 1:
        assert kappa(first, second) == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
    else:
        assert kappa(first, second) is None
    numbers = [[float(ord(one)) for one in column] for column in (first, second)]
    if min(len(set(column)) for column in numbers) > 1:
        assert spearman(*numbers) == pytest.approx(spearmanr(*numbers).statistic, abs=1e-12)
    else:
        assert spearman(*numbers) is None


@pytest.mark.parametrize("labels", [30, 200])
def test_the_corrected_interval_covers_the_truth(labels: int) -> None:
    """2,000 simulations of a biased, noisy judge: 95 % intervals hold the mean label in 93 to 97 % of them."""
    rng = np.random.default_rng(7)
    simulations, answers, held_in = 2000, 1000, 0
    for _ in range(simulations):
        people = rng.beta(2, 3, answers)
        judged = np.clip(0.6 * people + 0.35 + rng.normal(0, 0.15, answers), 0, 1)
        found = corrected_mean(judged[labels:], labelled_judged=judged[:labels], labels=people[:labels])
        held_in += found.low <= 0.4 <= found.high
    assert 0.93 <= held_in / simulations <= 0.97


def test_a_judge_without_error_is_not_corrected() -> None:
    judged = np.linspace(0, 1, 40)
    found = corrected_mean(judged[10:], labelled_judged=judged[:10], labels=judged[:10])
    assert found.value == pytest.approx(judged[10:].mean(), abs=1e-12)
