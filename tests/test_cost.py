"""What answers took: counted by the server, kept through kills and resumes, shown, priced, and weighed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from support.comparing import arguments, main
from support.openai_server import FAULTS, ChatServer, chat_server
from support.runs import write_run

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.harness.response_store import ResponseStore, stored_spent
from qilin_tasks.harness.store_repair import repair
from qilin_tasks.harness.stored import StoredLM
from qilin_tasks.harness.usage import ENGINE, SERVER, TOKENIZER, Usage, counter, of_engine, reported
from qilin_tasks.report.build import build
from qilin_tasks.results.cost import Cost, Prices, cells, cost_of, frontier, read_entry, read_prices
from qilin_tasks.results.reader import find_results

TASK = "qilin_dqa_na"
WHO = {"backend": "b", "args": {}}


@pytest.fixture(autouse=True)
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")


def spec(server: ChatServer, concurrent: int) -> str:
    return f"local-chat-completions:m,base_url={server.url},max_retries=2,num_concurrent={concurrent}"


def served(server: ChatServer) -> dict[str, int]:
    """What the server counted over the answers that it gave, each request once."""
    sums = {"prompt": 0, "generated": 0, "reasoning": 0}
    for model, prompt in server.asked:
        usage = server.usage(prompt, server.answer(model, prompt))
        sums["prompt"] += usage["prompt_tokens"]
        sums["generated"] += usage["completion_tokens"]
        sums["reasoning"] += usage["completion_tokens_details"]["reasoning_tokens"]
    return sums


@pytest.mark.slow
@pytest.mark.parametrize("concurrent", [1, 3])
def test_a_server_s_counts_survive_faults_and_a_second_start(tmp_path: Path, concurrent: int) -> None:
    out = tmp_path / "out"
    faults = {3: "busy", 5: "error 200"}
    # Everything fails from the ninth request on: the answers before are there, and the run ends.
    with chat_server(counts=True, fault=lambda n: "error 200" if n >= 8 else faults.get(n)) as server:
        command = arguments(out, spec(server, concurrent), tasks=TASK)
        assert main(command) == 1
        [job] = out.rglob("jobs/*.json")
        before = stored_spent(next(out.rglob("*.sqlite")), identity=json.loads(job.read_text())["identity"])
        assert 0 < before.counted <= 6
        server.fault = lambda n: None
        assert main(command) == 0
        [result] = find_results([out])
        cost = cost_of(result)
        assert cost is not None
        assert {name: getattr(cost, name) for name in ("prompt", "generated", "reasoning")} == served(server)
    assert (cost.counted, cost.answers, cost.sources, cost.money) == (result.n, result.n, (SERVER,), None)
    assert cost.seconds >= before.seconds > 0
    assert not cost.estimated


@pytest.mark.slow
def test_what_the_server_does_not_say_is_not_made_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server() as server:
        assert main(arguments(tmp_path, spec(server, 1), tasks=TASK, extra=("--limit", "3"))) == 0
    cost = cost_of(find_results([tmp_path])[0])
    assert cost is not None
    assert (cost.counted, cost.answers, cost.sources, cost.tokens_per_second) == (0, 3, (), None)
    assert "(0 of 3)" in capsys.readouterr().out


@pytest.mark.slow
def test_prices_of_models_yaml_become_money(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = tmp_path / "models.yaml"
    with chat_server(counts=True) as server:
        args = f"{{model: m, base_url: '{server.url}'}}"
        models.write_text(
            f"- {{name: m, backend: local-chat-completions, args: {args},\n"
            "   prices: {input: 2, output: 5, currency: EUR}}"
        )
        out = tmp_path / "out"
        assert main([str(models), *arguments(out, tasks=TASK, extra=("--limit", "4"))]) == 0
        sums = served(server)
    [result] = find_results([out])
    cost = cost_of(result)
    assert cost is not None
    assert cost.money == pytest.approx((sums["prompt"] * 2 + sums["generated"] * 5) / 1e6)
    assert f"{cost.money:.4g} EUR" in capsys.readouterr().out
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {hour: 3600}")
    built = build([out], tmp_path / "report", title="t", resamples=200, seed=1, prices=prices)
    assert f"{cost.seconds:.4g}" in built.files[0].read_text()
    prices.write_text("other: {hour: 1}")
    with pytest.raises(SettingError, match="model 'other': choose from m"):
        build([out], tmp_path / "report", title="t", resamples=200, seed=1, prices=prices)


class Counting(LM):
    """Tells of answers and their tokens as an API backend does, or of neither by a name that is known."""

    def __init__(self, *, names: bool = True, dies_at: int = -1) -> None:
        super().__init__()
        self.names, self.dies_at, self.told = names, dies_at, []  # type: ignore[var-annotated]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        for number, request in enumerate(requests):
            if number == self.dies_at:
                raise MemoryError
            usage = Usage(len(request.args[0]), number + 1, None, SERVER)
            self.told.append(usage)
            self.cache_hook.report([usage])
            self.cache_hook.add_partial("generate_until", request.args if self.names else ("?",), "x")
        return ["x"] * len(requests)

    loglikelihood = loglikelihood_rolling = generate_until  # type: ignore[assignment]


def ask(count: int) -> list[Instance]:
    return [Instance("generate_until", {}, (f"prompt {i:03}", {}), i) for i in range(count)]  # type: ignore[arg-type]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.booleans(), st.integers(-1, 11))
def test_the_sum_is_what_was_told_of_the_answers_that_are_kept(
    tmp_path_factory: pytest.TempPathFactory, count: int, chunk: int, names: bool, dies_at: int
) -> None:
    path = tmp_path_factory.mktemp("s") / "s.sqlite"
    model = Counting(names=names, dies_at=dies_at)
    lm = StoredLM(model, chunk=chunk)
    with ResponseStore(path, identity=WHO) as lm.store:
        try:
            lm.generate_until(ask(count))
        except MemoryError:
            # A backend that names no answer loses its chunk, and the counts of it.
            kept = len(lm.store)
            model.told = model.told[: kept if names else kept // chunk * chunk]
        assert lm.store.spent().generated == sum(usage.generated for usage in model.told)
        assert lm.store.spent().prompt == sum(usage.prompt for usage in model.told)
    again = StoredLM(Counting(names=names), chunk=chunk)
    with ResponseStore(path, identity=WHO) as again.store:
        again.generate_until(ask(count))
        told = model.told + again.model.told
        assert again.store.spent().generated == sum(usage.generated for usage in told)
        assert len(again.store) == count
        spent = again.store.spent()
    assert repair(path, identity=WHO) is None
    path.write_bytes(path.read_bytes()[:-1])
    if repair(path, identity=WHO) is not None:
        assert stored_spent(path, identity=WHO).counted <= spent.counted


def test_a_mended_store_keeps_the_counts_that_hold(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    lm = StoredLM(Counting(), chunk=7)
    with ResponseStore(path, identity=WHO) as lm.store:
        lm.generate_until(ask(40))
        spent = lm.store.spent()
    whole = bytearray(path.read_bytes())
    whole[30] ^= 255  # in the header: no row is hurt
    path.write_bytes(whole)
    done = repair(path, identity=WHO)
    assert done is None or done[0] == 40
    assert stored_spent(path, identity=WHO) == spent


USAGES = st.dictionaries(
    st.sampled_from(["prompt_tokens", "completion_tokens", "completion_tokens_details", "total_tokens"]),
    st.none() | st.integers() | st.text() | st.booleans() | st.dictionaries(st.just("reasoning_tokens"), st.integers()),
)


@given(st.none() | st.integers() | USAGES, st.integers(1, 3))
def test_any_usage_is_read_or_left(usage: Any, choices: int) -> None:
    rows = reported({"usage": usage}, choices=choices)
    assert len(rows) in (0, choices)
    for name in ("prompt", "generated"):
        assert all(getattr(row, name) >= 0 for row in rows)
    if rows and isinstance(usage.get("completion_tokens"), int) and usage["completion_tokens"] > 1:
        assert sum(row.generated for row in rows) == usage["completion_tokens"]


def test_faults_have_no_usage() -> None:
    for status, body in FAULTS.values():
        if isinstance(body, dict) and status == 200:
            assert reported(body, choices=1) == []


def test_an_engine_s_counts_and_its_reasoning() -> None:
    def output(text: str, tokens: int) -> Any:
        return SimpleNamespace(prompt_token_ids=[1] * 7, outputs=[SimpleNamespace(text=text, token_ids=[0] * tokens)])

    def tokenizer(text: str, **ignored: Any) -> dict[str, list[int]]:
        return {"input_ids": [0] * len(text)}

    assert of_engine(output("煮八分钟", 5), tokenizer=tokenizer) == Usage(7, 5, 0, ENGINE)
    assert of_engine(output("<think>嗯</think>煮八分钟", 9), tokenizer=tokenizer) == Usage(7, 9, 5, ENGINE)
    assert of_engine(output("<think>嗯", 3), tokenizer=tokenizer) == Usage(7, 3, 3, ENGINE)
    assert of_engine(output("<think>嗯</think>煮", 4)) == Usage(7, 4, None, ENGINE)
    assert of_engine(SimpleNamespace(outputs=[])) is None


def test_a_tokenizer_counts_where_nobody_else_does() -> None:
    class Tokenizer:
        all_special_ids = (0,)

        def __call__(self, text: str, *, add_special_tokens: bool, **ignored: Any) -> dict[str, list[int]]:
            return {"input_ids": [0] * (len(text) + add_special_tokens)}

    count = counter(SimpleNamespace(tokenizer=Tokenizer()))
    assert count is not None
    assert count("generate_until", ("prompt", {}), "four") == Usage(7, 4, 0, TOKENIZER)
    assert count("loglikelihood", ("con", "text"), (-1.0, True)) == Usage(8, 0, 0, TOKENIZER)
    assert count("generate_until", (["a chat"], {}), "four") is None
    assert counter(SimpleNamespace(tokenizer=None)) is None
    assert counter(SimpleNamespace()) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8), st.randoms())
def test_the_frontier(points: list[tuple[float, float]], rng: Any) -> None:
    on = frontier(points)
    assert any(on) == bool(points)
    for i, (cost, quality) in enumerate(points):
        beaten = [q for c, q in points if (c < cost and q >= quality) or (c <= cost and q > quality)]
        assert on[i] == (not beaten)
    order = list(range(len(points)))
    rng.shuffle(order)
    assert frontier([points[i] for i in order]) == [on[i] for i in order]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"inputs": 1}, "price 'inputs': choose from"),
        ({"input": -1}, "input -1: a number from 0 on"),
        ({"output": True}, "output True"),
        ({"hour": float("nan")}, "hour nan"),
        ({"currency": 3}, "currency 3: a text"),
        ([], r"prices \[\]: a map"),
    ],
)
def test_wrong_prices_are_named(entry: Any, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        read_entry(entry, where="here")


def test_price_files(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("- {name: a, backend: vllm, prices: {input: 1}}\n- {name: b, backend: vllm}\n")
    assert read_prices(path) == {"a": Prices(input=1.0)}
    for text in ("3", "- {name: b}", "a: [", "\x00"):
        path.write_text(text)
        with pytest.raises(DataError):
            read_prices(path)


def test_cells_mark_what_a_tokenizer_counted() -> None:
    cost = Cost(10, 6, 2, 3, 3, (TOKENIZER,), 4.0, 3 << 30)
    assert cells(cost) == ("~10", "~2", "~4", "tokenizer", "4.0 s", "4", "3.0 GiB", "–")
    assert cells(None) == ("–",) * 8


@pytest.fixture
def priced_runs(tmp_path: Path) -> Callable[[], Path]:
    """Three models on one task: dear and good, cheap and poor, dear and poor."""
    costs = {"good": (5000, 0.8), "cheap": (1000, 0.4), "<poor|": (6000, 0.3)}

    def make() -> Path:
        for name, (tokens, quality) in costs.items():
            path = write_run(
                tmp_path / "runs" / str(tokens),
                model=name,
                task="qilin_dqa_bm25",
                docs=[{"doc_key": i, "query": f"q{i}"} for i in range(4)],
                responses=["x"] * 4,
                scores=[{"rouge_l": quality + i / 100} for i in range(4)],
                metadata={"context": "bm25"},
            )
            cost = {"prompt": tokens, "generated": 100, "reasoning": None, "counted": 4, "answers": 4}
            noted = {
                "cost": {**cost, "sources": ["server"], "seconds": 2.0, "peak_bytes": None},
                "prices": {"input": 1.0},
            }
            path.write_text(json.dumps({**json.loads(path.read_text()), "compare": noted}))
        return tmp_path / "runs"

    return make


def test_the_report_shows_the_frontier(priced_runs: Callable[[], Path], tmp_path: Path) -> None:
    built = build([priced_runs()], tmp_path / "report", title="t", resamples=200, seed=1)
    text = built.files[0].read_text()
    rows = [line for line in text.split("### Cost")[1].splitlines() if line.startswith("| ")][1:]
    assert [(line.split(" | ")[0], "★" in line) for line in rows] == [
        ("| cheap", True), ("| good", True), (r"| \<poor\|", False)
    ]  # fmt: skip
    assert "0.005" in rows[1]
    page = (tmp_path / "report" / "index.html").read_text()
    assert "against cost (money)" in page
    assert "&lt;poor|" in page
    assert "<poor|" not in page
    # Beside the quality: the money, in the order of the qualities.
    board = page[page.index('class="standings"') :]
    shown = re.findall(r'<td class="text price">([^<]*)</td>', board[: board.index("</table>")])
    assert shown[:3] == ["0.005", "0.001", "0.006"]


def test_a_report_without_costs_has_no_panel(tmp_path: Path) -> None:
    docs = [{"doc_key": 0, "query": "q"}]
    write_run(tmp_path / "r", model="m", task="t", docs=docs, responses=["x"], scores=[{"acc": 1.0}])
    build([tmp_path / "r"], tmp_path / "report", title="t", resamples=200, seed=1)
    assert "Cost" not in (tmp_path / "report" / "report.md").read_text()
    assert 'class="text price"' not in (tmp_path / "report" / "index.html").read_text()
