"""`--budget`, the time left, `--only` and `--gpus`: limits that hold, estimates that help, GPUs that nobody shares."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from support.comparing import arguments, main
from support.openai_server import ChatServer, chat_server

from qilin_tasks.compare.budget import Budget, Limits, Spending, check_budget, parse_budget
from qilin_tasks.compare.devices import Pool, chosen_gpus, whole_gpus
from qilin_tasks.compare.run import only_one
from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.compare.state import Pair, Planned
from qilin_tasks.compare.time_left import time_left
from qilin_tasks.compare.view import Standing
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.harness.response_store import ResponseStore
from qilin_tasks.harness.servers import guard
from qilin_tasks.harness.stored import Stopped, StoredLM
from qilin_tasks.results.cost import Prices, cost_of
from qilin_tasks.results.reader import find_results

TASK = "qilin_dqa_na"


@pytest.fixture(autouse=True)
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def limits(budget: Budget, tmp_path: Path, *, prices: Prices | None = None, started: float = 0.0) -> Limits:
    return Limits.left(budget, [], started=started, stop=tmp_path / "stop", prices=prices or Prices())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["euros=3"], "--budget 'euros': choose from hours, money, tokens"),
        (["tokens=0"], "tokens=0: a number above 0"),
        (["hours=x"], "hours=x"),
        (["money=-1"], "money=-1"),
        (["money=true"], "a number above 0"),
    ],
)
def test_wrong_budgets_are_named(words: list[str], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        parse_budget(words)


def test_budgets_are_read() -> None:
    assert parse_budget(["money=2.5", "tokens=3e6"]) == Budget(money=2.5, tokens=3e6)
    assert not parse_budget([])
    spec = ModelSpec("m", "vllm", {"pretrained": "p"})
    check_budget(Budget(tokens=1.0), [spec])
    with pytest.raises(SettingError, match="model 'm' has no `prices:`"):
        check_budget(Budget(money=1.0), [spec])


def test_each_limit_is_reached_at_its_value(tmp_path: Path) -> None:
    spent = Spending(prompt=600, generated=400, seconds=36.0, answers=2, counted=2)
    prices = Prices(input=1000.0, output=500.0, hour=20.0)  # 0.6 + 0.2 + 0.2
    assert limits(Budget(tokens=1000), tmp_path).reached(spent)
    assert not limits(Budget(tokens=1001), tmp_path).reached(spent)
    assert limits(Budget(money=0.99), tmp_path, prices=prices).reached(spent)
    assert not limits(Budget(money=1.01), tmp_path, prices=prices).reached(spent)
    hours = limits(Budget(hours=2), tmp_path, started=100.0)
    assert not hours.reached(spent, clock=lambda: 7299.0)
    assert hours.reached(spent, clock=lambda: 7300.0)
    assert Limits.read(json.loads(json.dumps(hours, default=lambda value: value.__dict__))) == hours
    all_models = limits(Budget(tokens=9999), tmp_path)
    assert not all_models.used_up
    (tmp_path / "stop").touch()
    assert all_models.used_up


def test_what_others_spent_is_gone(tmp_path: Path) -> None:
    others = [
        (Spending(prompt=10, generated=5), Prices(output=1e6)),
        (Spending(prompt=1, seconds=3600), Prices(hour=2.0)),
    ]
    left = Limits.left(Budget(money=10, tokens=20), others, started=0.0, stop=tmp_path / "stop", prices=Prices())
    assert (left.money, left.tokens) == (3.0, 4.0)


def test_a_limit_on_tokens_that_nobody_counts_is_an_error(tmp_path: Path) -> None:
    blind = Spending(seconds=1.0, answers=3, counted=1)
    with pytest.raises(SettingError, match=r"2 of 3 answers came without a count.*use hours"):
        limits(Budget(tokens=10), tmp_path).reached(blind)
    with pytest.raises(SettingError, match="use hours"):
        limits(Budget(money=10), tmp_path, prices=Prices(input=1.0)).reached(blind)
    assert not limits(Budget(money=10), tmp_path, prices=Prices(hour=1.0)).reached(blind)


def served_model(server: ChatServer, concurrent: int) -> StoredLM:
    args = {"model": "m", "base_url": server.url, "max_retries": 2, "num_concurrent": concurrent}
    model = get_model("local-chat-completions").create_from_arg_obj(args, {})
    guard(model, on_refusal="stop")
    return StoredLM(model)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_a_budget_stops_between_answers_and_goes_on(concurrent: int, tmp_path: Path) -> None:
    with chat_server(counts=True, delay=0.01) as server:
        lm = served_model(server, concurrent)
        asked = [
            Instance("generate_until", {}, (lm.apply_chat_template([{"role": "user", "content": f"问{i}" * 5}]), {}), i)  # type: ignore[arg-type]
            for i in range(24)
        ]
        runs = 0
        for runs in range(1, 30):  # noqa: B007 (how many it took)
            with ResponseStore(tmp_path / "s.sqlite", identity={}) as store:
                limit = limits(Budget(tokens=60), tmp_path)
                lm.store, lm.stopping = (
                    store,
                    lambda limit=limit, store=store: limit.reached(  # type: ignore[misc]
                        Spending(
                            store.tally.prompt, store.tally.generated, 0.0, store.tally.answers, store.tally.counted
                        )
                    ),
                )
                before = store.spent().counted
                try:
                    lm.generate_until(asked)
                except Stopped:
                    # One answer here has at least 14 tokens: none was asked above the limit but those in flight.
                    new = store.spent().counted - before
                    assert 1 <= new <= 60 // 14 + concurrent
                    continue
                spent, answers = store.spent(), len(store)
                break
        assert 24 / (60 // 14 + concurrent) <= runs < 29
        # Nothing was asked twice, nothing paid for was lost.
        assert set(server.asked.values()) == {1}
        assert answers == spent.counted == len(server.asked) == 24
        assert spent.prompt == sum(len(prompt) for _, prompt in server.asked)


@pytest.mark.slow
def test_compare_stops_at_its_budget_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(counts=True) as server:
        spec = f"local-chat-completions:m,base_url={server.url},max_retries=1"
        command = arguments(tmp_path / "out", spec, tasks=TASK, extra=("--limit", "6"))
        assert main([*command, "--budget", "tokens=2"]) == 3
        assert "1 of 1 are not finished, their 1 answers are kept; the same command goes on" in capsys.readouterr().err
        assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".stop")]
        assert main([*command, "--budget", "hours=1e-9"]) == 3
        assert sum(server.asked.values()) == 1
        assert main([*command, "--budget", "tokens=1e6", "hours=9"]) == 0
        assert set(server.asked.values()) == {1}
    [result] = find_results([tmp_path / "out"])
    cost = cost_of(result)
    assert cost is not None
    assert cost.counted == cost.answers == result.n == 6


PLANNED = {"signature": None, "metrics": (), "most_answer_tokens": 0}


def planned(name: str, requests: int, tokens: int) -> Planned:
    return Planned(name=name, n=requests, requests=requests, prompt_tokens=tokens, answer_tokens=0, **PLANNED)  # type: ignore[arg-type]


def pair(model: str, task: Planned, backend: str = "vllm") -> Pair:
    return Pair(ModelSpec(model, backend, {"pretrained": "p"}), task, None, 0)


@given(
    st.integers(0, 2**32), st.floats(0.0, 0.5), st.floats(0.0, 3.0), st.floats(0.0, 0.002), st.integers(0, 40),
    st.integers(1, 3),
)  # fmt: skip
def test_the_time_left_is_within_a_factor_of_two_after_a_tenth(
    seed: int, spread: float, fixed: float, per_character: float, stored: int, tasks: int
) -> None:
    """Simulated: a request takes a fixed time and one by its length, a tenth of noise; the longest go first."""
    rng = random.Random(seed)
    work = []
    for number in range(tasks):
        lengths = sorted((rng.lognormvariate(7, spread) for _ in range(rng.randint(100, 300))), reverse=True)
        seconds = [(0.01 + fixed + per_character * length) * rng.uniform(0.9, 1.1) for length in lengths]
        work.append((planned(f"t{number}", stored + len(lengths), int(sum(lengths))), lengths, seconds))
    pairs = [pair("m", task) for task, _, _ in work]
    total, passed, seen = sum(sum(seconds) for _, _, seconds in work), 0.0, 0
    for current, (_, lengths, seconds) in enumerate(work):
        for done in range(1, len(lengths)):
            passed += seconds[done - 1]
            if done % 17:
                continue
            rows = []
            for number, (task, its, took) in enumerate(work):
                spent = {"seconds": sum(took[: done if number == current else None])}
                state = "finished" if number < current else "asking" if number == current else "waiting"
                count = {"finished": len(its), "asking": done, "waiting": 0}[state]
                share = sum(its[:count]) / sum(its)
                rows.append(
                    Standing(state, stored + count, task.requests, stored, share=share, spent=spent if count else {})
                )
            left = time_left(pairs, rows, jobs=1)
            if passed >= 0.15 * total:
                assert left is not None
            if left is not None and passed < 0.95 * total:
                seen += 1
                assert 0.5 <= left / (total - passed) <= 2
        passed += seconds[-1]
    assert seen


def test_time_left_leaves_out_what_is_over_and_counts_models_side_by_side() -> None:
    task = planned("t", 10, 1000)
    pairs = [pair("a", task), pair("b", task), pair("c", task), pair("d", task), pair("lead", task, "qilin-baseline")]
    half = Standing("asking", 5, 10, share=0.5, spent={"seconds": 8.0})
    rows = [half, Standing("reused", 10, 10, 10), Standing("waiting", 0, 10), half, Standing("waiting", 0, 10)]
    assert time_left(pairs, rows, jobs=1) == pytest.approx(8 + 16 + 8)
    assert time_left(pairs, rows, jobs=2) == pytest.approx(8 + 16)
    assert time_left(pairs, rows, jobs=3) == pytest.approx(16)
    assert time_left(pairs[2:3], rows[2:3], jobs=1) is None
    begun = [Standing("asking", 1, 10, share=0.05, spent={"seconds": 1.0})]
    assert time_left(pairs[:1], begun, jobs=1) is None


def test_only_one_call_holds_a_model(tmp_path: Path) -> None:
    held = pytest.raises(DataError, match="another compare")
    with only_one(tmp_path, ["a"]), only_one(tmp_path, ["b"]), held, only_one(tmp_path, ["a"]):
        pytest.fail("two hold it")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, names: str) -> Iterator[None]:
    script = folder / "nvidia-smi"
    script.write_text(f"#!/bin/sh\nprintf '%s\\n' {names}\n")
    script.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        yield


def test_the_gpus_of_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nvidia_smi(tmp_path, monkeypatch, "0 1 2"):
        assert chosen_gpus("all") == ["0", "1", "2"]
        assert chosen_gpus("2, 0") == ["2", "0"]
        for text, said in (("3", "GPU '3': choose from 0, 1, 2"), ("0,0", "each GPU once"), ("", "each GPU once")):
            with pytest.raises(SettingError, match=said):
                chosen_gpus(text)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-ab,GPU-cd")
        assert chosen_gpus("all") == ["GPU-ab", "GPU-cd"]
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        with pytest.raises(SettingError, match="no GPU here"):
            chosen_gpus("all")


def spec(name: str, **more: Any) -> ModelSpec:
    return ModelSpec(name, more.pop("backend", "vllm"), {"pretrained": "p", **more.pop("args", {})}, **more)


def test_how_many_gpus_a_model_holds() -> None:
    assert whole_gpus(spec("a")) == 1
    assert whole_gpus(spec("a", args={"tensor_parallel_size": 4})) == 4
    assert whole_gpus(spec("a", args={"tensor_parallel_size": 2, "data_parallel_size": 2})) == 4
    assert whole_gpus(spec("a", gpus=0.5)) == 1
    assert whole_gpus(spec("a", backend="local-completions")) == 0
    assert whole_gpus(spec("a", environment={"CUDA_VISIBLE_DEVICES": "7"})) == 0
    with pytest.raises(SettingError, match=r"model 'big' asks for 3 GPUs .* --gpus has 2: 0, 1"):
        Pool(["0", "1"]).check([spec("a"), spec("big", gpus=3)])


@given(st.lists(st.integers(1, 3), min_size=1, max_size=10), st.integers(3, 5))
def test_no_gpu_is_lent_twice_and_all_are_served(wanted: list[int], count: int) -> None:
    pool = Pool([str(i) for i in range(count)])
    held: list[str] = []
    most: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        with pool.lend(number) as names:
            with lock:
                assert len(names) == number
                assert not set(names) & set(held)
                held.extend(names)
                most.append(len(held))
            with lock:
                for name in names:
                    held.remove(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(most) == len(wanted)
    assert max(most) <= count
    with pool.lend(count) as names:
        assert names == pool.names


@pytest.mark.slow
def test_models_side_by_side_get_gpus_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        {"name": name, "backend": "qilin-baseline", "args": {"strategy": "lead"}, "gpus": gpus}
        for name, gpus in (("one", 1), ("two", 2), ("none", 0))
    ]
    models = tmp_path / "models.yaml"
    models.write_text(yaml.safe_dump(entries))
    command = [str(models), *arguments(tmp_path / "out", tasks=TASK, extra=("--limit", "3"))]
    with nvidia_smi(tmp_path, monkeypatch, "0 1 2"):
        assert main([*command, "--gpus", "all", "--only", "one", "--only", "two"]) == 0
    logs = {name: (tmp_path / "out" / name / "log.txt").read_text() for name in ("one", "two")}
    lent = {name: text.split(" on GPU ")[1].splitlines()[0].split(",") for name, text in logs.items()}
    assert {name: len(gpus) for name, gpus in lent.items()} == {"one": 1, "two": 2}
    assert sorted(lent["one"] + lent["two"]) == ["0", "1", "2"]
    assert not (tmp_path / "out" / "none").exists()
    head = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert sorted(head["models"]) == ["one", "two"]
    assert main([*command, "--only", "none"]) == 0
    head = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert sorted(head["models"]) == ["none", "one", "two"]
    with pytest.raises(SettingError, match="--only: model 'three': choose from"):
        main([*command, "--only", "three"])
