from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from support.covers import draw

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.harness.response_store import (
    BrokenStoreError,
    ResponseStore,
    request_key,
    request_keys,
    stored_count,
)
from qilin_tasks.harness.store_repair import repair
from qilin_tasks.harness.stored import StoredLM
from qilin_tasks.ranking.images import Covers, StackedCover, _clicked

IDENTITY = {"backend": "hf", "args": {"pretrained": "m"}}


class Parrot(LM):
    """Answers with the prompt; dies at the given prompt; tells the hook of each answer if asked to."""

    def __init__(self, *, dies_at: str = "", tells: bool = False) -> None:
        super().__init__()
        self.dies_at, self.tells, self.asked = dies_at, tells, []  # type: ignore[var-annotated]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        answers = []
        for request in requests:
            if request.args[0] == self.dies_at:
                raise MemoryError(self.dies_at)
            self.asked.append(request.args[0])
            answers.append(f"{request.args[0]}!{len(self.asked)}")
            if self.tells:
                self.cache_hook.add_partial("generate_until", request.args, answers[-1])
        return answers

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return [(-float(len(r.args[1])), False) for r in requests]

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        return [-1.5 for _ in requests]


def ask(*prompts: str, kind: str = "generate_until", **options: Any) -> list[Instance]:
    return [
        Instance(kind, {}, (p, options) if kind == "generate_until" else (p, "cont"), i)  # type: ignore[arg-type]
        for i, p in enumerate(prompts)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Callable[[], ResponseStore]:
    return lambda: ResponseStore(tmp_path / "responses" / "t.sqlite", identity=IDENTITY)


def test_what_was_put_is_there_again(store: Callable[[], ResponseStore]) -> None:
    values: dict[str, Any] = {"a": "答\ud800", "b": (-1.25, True), "c": float("-inf")}
    with store() as first:
        first.put(values.items())
    with store() as second:
        assert second.get([*values, "d"]) == values
        assert len(second) == 3


def test_more_keys_than_a_statement_takes(store: Callable[[], ResponseStore]) -> None:
    keys = [str(i) for i in range(2500)]
    with store() as one:
        one.put((key, key) for key in keys)
        assert one.get(keys) == dict(zip(keys, keys, strict=True))


def test_another_model_is_refused(store: Callable[[], ResponseStore], tmp_path: Path) -> None:
    store().close()
    path = tmp_path / "responses" / "t.sqlite"
    with pytest.raises(SettingError, match="another model or other settings"):
        ResponseStore(path, identity={**IDENTITY, "backend": "vllm"})
    with pytest.raises(SettingError, match="another model"):
        stored_count(path, identity={})


def test_damage_and_other_formats(store: Callable[[], ResponseStore], tmp_path: Path) -> None:
    path = tmp_path / "responses" / "t.sqlite"
    store().close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET value='99' WHERE name='format'")
    connection.close()
    with pytest.raises(DataError, match="format 99"):
        store()
    path.write_bytes(b"no database at all, but long enough to be read" * 100)
    with pytest.raises(DataError, match="--repair"):
        store()


def filled(path: Path, count: int = 400) -> dict[str, Any]:
    values: dict[str, Any] = {request_key("g", (i,)): f"答{i} " * (i % 200) for i in range(count)}
    values[f"raw:{'a' * 64}#1"] = "raw"
    with ResponseStore(path, identity=IDENTITY) as one:
        one.put(values.items())
    return values


def check_damaged(path: Path, values: dict[str, Any], *, kept: int) -> None:
    """Damage is named, never served; a repair keeps at least `kept` rows, all of them right."""
    try:
        with ResponseStore(path, identity=IDENTITY) as one:
            assert one.get(list(values)) == values  # the damage met nothing that is read
            return
    except BrokenStoreError as error:
        assert "--repair" in str(error)
    damaged = path.read_bytes()
    done = repair(path, identity=IDENTITY)
    assert done is not None
    assert done[1].read_bytes() == damaged
    with ResponseStore(path, identity=IDENTITY) as one:
        rows = one.get(list(values))
    assert rows.items() <= values.items()
    assert len(rows) == done[0] >= kept
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, done[1].name])
    assert repair(path, identity=IDENTITY) is None


def test_a_cut_store_is_named_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    values = filled(path)
    path.write_bytes(path.read_bytes()[:-3000])
    check_damaged(path, values, kept=len(values) - 40)


def test_garbage_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(b"no database at all, but long enough to be read" * 300)
    check_damaged(path, {"a": "b"}, kept=0)


@pytest.mark.slow
def test_a_byte_flipped_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    values = filled(path, 60)
    whole = path.read_bytes()
    rng = random.Random(1)
    # The header, the schema, the first bytes of each page, and anywhere.
    places = [*range(0, 108, 9), *range(3700, 4096, 40), *range(4096, len(whole), 4096)]
    for place in [*places, *(rng.randrange(len(whole)) for _ in range(40))]:
        for leftover in tmp_path.iterdir():
            leftover.unlink()
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        check_damaged(path, values, kept=0)


def test_a_row_of_another_model_is_no_row_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    values = filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET value=? WHERE name='identity'", (json.dumps({"backend": "other"}),))
    connection.close()
    check_damaged(path, values, kept=len(values))


settings_of_generation = st.dictionaries(
    st.sampled_from(["temperature", "until", "max_gen_toks", "seed", "top_p"]),
    st.one_of(st.integers(), st.floats(allow_nan=False), st.lists(st.text(max_size=3), max_size=2)),
)


@settings(max_examples=80, deadline=None)
@given(st.text(), settings_of_generation, settings_of_generation)
def test_a_key_holds_every_setting_and_not_their_order(text: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    key = request_key("generate_until", (text, one))
    assert key == request_key("generate_until", (text, dict(reversed(one.items()))))
    assert (key == request_key("generate_until", (text, other))) == (
        repr(sorted(one.items())) == repr(sorted(other.items()))
    )
    assert key != request_key("loglikelihood", (text, one))


def test_images_count_by_content() -> None:
    from PIL import Image

    def key(colour: str) -> str:
        image = Image.new("RGB", (4, 4), colour)
        return request_key("generate_until", ("what is it?", {}, {"visual": [image]}))

    assert key("red") == key("red")
    assert key("red") != key("blue")
    assert request_key("g", (b"a",)) != request_key("g", (b"b",))
    with pytest.raises(TypeError, match="object"):
        request_key("g", (object(),))


def test_covers_count_by_their_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of pictures that the tasks hand over are opened late: the key is of what they show, not of paths."""
    monkeypatch.setenv("QILIN_IMAGES", str(tmp_path))

    def keys() -> list[str]:
        _clicked.cache_clear()
        shown = [Covers(["a.png", "b.png"], max_side=20), Covers(["b.png", "a.png"], max_side=20)]
        stacked = [StackedCover("a.png", None, side=20), StackedCover("a.png", ["b.png"], side=20)]
        return [request_key("generate_until", ("which?", {}, {"visual": one})) for one in (*shown, *stacked)]

    draw(tmp_path / "a.png", shade=10)
    draw(tmp_path / "b.png", shade=200)
    before = keys()
    assert len(set(before)) == 4
    assert keys() == before
    draw(tmp_path / "b.png", shade=90)
    assert [one == other for one, other in zip(before, keys(), strict=True)] == [False, False, True, False]


def test_repeats_keep_their_own_answers(store: Callable[[], ResponseStore]) -> None:
    assert len(set(request_keys("g", [("a",), ("a",), ("b",)]))) == 3
    model = Parrot()
    lm = StoredLM(model, chunk=2)
    with store() as lm.store:
        first = lm.generate_until(ask("a", "a", "a"))
        assert len(set(first)) == 3
        assert lm.generate_until(ask("a", "a", "a")) == first
    assert len(model.asked) == 3


def test_a_crash_loses_the_chunk_in_flight_at_most(store: Callable[[], ResponseStore]) -> None:
    prompts = [f"{i:02}" for i in range(10)]
    with store() as kept:
        dying = StoredLM(Parrot(dies_at="05"), chunk=2)
        dying.store = kept
        with pytest.raises(MemoryError):
            dying.generate_until(ask(*prompts))
        assert len(kept) == 4
    seen: list[tuple[int, int, int]] = []
    model = Parrot()
    lm = StoredLM(model, chunk=2)
    lm.progress = lambda *counts: seen.append(counts)
    with store() as lm.store:
        answers = lm.generate_until(ask(*prompts))
    assert model.asked == prompts[4:]
    assert [answer[:2] for answer in answers] == prompts
    assert seen == [(4, 10, 4), (6, 10, 4), (8, 10, 4), (10, 10, 4)]


def test_a_backend_that_tells_of_each_answer_loses_none(store: Callable[[], ResponseStore]) -> None:
    with store() as kept:
        dying = StoredLM(Parrot(dies_at="05", tells=True), chunk=100)
        dying.store = kept
        with pytest.raises(MemoryError):
            dying.generate_until(ask(*[f"{i:02}" for i in range(10)]))
        assert len(kept) == 5


def test_answers_come_in_the_order_asked_longest_first_inside(store: Callable[[], ResponseStore]) -> None:
    model = Parrot()
    lm = StoredLM(model, chunk=2)
    with store() as lm.store:
        answers = lm.generate_until(ask("a", "ccc", "bb"))
    assert [a.split("!")[0] for a in answers] == ["a", "ccc", "bb"]
    assert model.asked == ["ccc", "bb", "a"]


def test_other_generation_settings_are_asked_again(store: Callable[[], ResponseStore]) -> None:
    model = Parrot()
    lm = StoredLM(model)
    with store() as lm.store:
        lm.generate_until(ask("a", temperature=0.0))
        lm.generate_until(ask("a", temperature=0.7))
    assert model.asked == ["a", "a"]


def test_log_likelihoods(store: Callable[[], ResponseStore]) -> None:
    lm = StoredLM(Parrot())
    with store() as lm.store:
        first = lm.loglikelihood(ask("a", kind="loglikelihood"))
        assert first == lm.loglikelihood(ask("a", kind="loglikelihood")) == [(-4.0, False)]
        assert lm.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, ("a",), 0)]) == [-1.5]


def test_the_wrapped_model_shows_through() -> None:
    model = Parrot()
    model.tokenizer = "its own"  # type: ignore[attr-defined]
    lm = StoredLM(model)
    assert (lm.tokenizer, lm.rank, lm.world_size) == ("its own", 0, 1)
    assert not hasattr(lm, "get_model_info")
    with pytest.raises(RuntimeError, match="no store"):
        lm.generate_until(ask("a"))
