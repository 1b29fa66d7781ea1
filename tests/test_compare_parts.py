"""The parts of a comparison one by one: view, processes, logs, what vLLM's steps leave on disk."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qilin_tasks.compare import processes
from qilin_tasks.compare.run import ended
from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.compare.state import Options, Pair, Planned, job_of
from qilin_tasks.compare.view import Lines, Live, Standing, duration, standing
from qilin_tasks.errors import DataError
from qilin_tasks.files import locked
from qilin_tasks.harness.response_store import ResponseStore, request_keys
from qilin_tasks.harness.stored import StoredLM
from qilin_tasks.harness.vllm_stream import can_stream, stream

TASK = Planned("t", 10, 10, None, ("m",), 100, 50, 500)


def pair(name: str = "a") -> Pair:
    return Pair(ModelSpec(name, "qilin-baseline", {"strategy": "lead"}), TASK, None, 3)


def test_a_finished_status_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a" / "status" / "t.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"state": "finished", "time": 50.0}))
    assert standing(pair(), tmp_path, since=40.0) == Standing("finished", 10, 10, 3, 50.0)


@pytest.mark.parametrize(("seconds", "text"), [(5, "5.0 s"), (125, "02:05"), (3723, "1:02:03")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_status_file_of_an_earlier_run_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a" / "status" / "t.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"state": "asking", "time": 50.0, "done": 7, "total": 10, "reused": 3}))
    assert standing(pair(), tmp_path, since=40.0) == Standing("asking", 7, 10, 3, 50.0)
    assert standing(pair(), tmp_path, since=60.0) == Standing("waiting", 3, 10, 3)
    path.write_text('{"state"')
    assert standing(pair(), tmp_path, since=40.0).state == "waiting"


def test_a_process_that_went_without_a_word_has_failed(tmp_path: Path) -> None:
    options = Options(tasks=("t",), out=tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log.txt").write_text("loading\nKilled: out of memory\n")
    how = ended(Standing("asking", 5, 10), pair(), options)
    assert (how.state, how.done) == ("failed", 5)
    assert "ended while asking: loading\nKilled: out of memory" in how.error
    assert ended(Standing("finished"), pair(), options).state == "finished"


def test_lines_say_each_change_once() -> None:
    stream_ = io.StringIO()
    with Lines(stream=stream_) as lines:
        lines.show([pair()], [Standing("waiting", 3, 10, 3)])
        for done in (3, 4, 5):
            lines.show([pair()], [Standing("asking", done, 10, 3)])
        lines.show([pair()], [Standing("failed", 5, 10, 3, error="boom")])
    said = stream_.getvalue().splitlines()
    assert [line.split(",")[0] for line in said] == ["a t: waiting", "a t: asking 3/10", "a t: failed"]
    assert "3 already there" in said[0]
    assert said[2].endswith("boom")


def test_the_live_table_shows_every_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Live() as live:
        live.show([pair("first"), pair("[red]second")], [Standing("asking", 4, 10, 1), Standing("finished", 10, 10)])
    text = written.getvalue()
    assert "first" in text
    assert "[red]second" in text
    assert "4/10" in text
    assert "1 of 2 done" in text


def test_logs_hold_no_key_however_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-1234567890abcdef"
    source, sink = os.pipe()
    log = io.BytesIO()
    with os.fdopen(source, "rb") as reader:
        copying = threading.Thread(target=processes._copy, args=(reader, log, [key]))
        copying.start()
        for part in (b"a " + key[:7].encode(), key[7:].encode() + b" b\r", key.encode(), b"\nlast " + key.encode()):
            os.write(sink, part)
        os.close(sink)
        copying.join()
    assert log.getvalue() == b"a *** b\r***\nlast ***"


def test_a_killed_worker_is_cleaned_up_after_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process group goes as a whole: what a worker started does not outlive it."""
    child = (
        "import os, signal, subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(p.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    monkeypatch.setattr(processes, "command_of", lambda path: [sys.executable, "-c", child])
    options = Options(tasks=("t",), out=tmp_path)
    job = job_of(pair().model, options, [TASK], identity={})
    (tmp_path / "a").mkdir()
    code = processes.run_job(job, {"QILIN_TEST": "1"}, str(tmp_path / "a" / "log.txt"))
    assert code == -9
    grandchild = int((tmp_path / "a" / "log.txt").read_text().splitlines()[-1])
    state = Path(f"/proc/{grandchild}/stat")
    end = time.monotonic() + 30
    while state.exists() and state.read_text().split()[2] not in ("Z", "X"):
        assert time.monotonic() < end, "the grandchild lives on"
        time.sleep(0.05)


def test_a_worker_ends_when_its_parent_is_gone() -> None:
    code = (
        "import time\nfrom qilin_tasks.compare.worker import die_with_parent\n"
        "die_with_parent()\nprint('up', flush=True)\ntime.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.stdin.close()
    assert process.wait(timeout=60) == -9
    process.stdout.close()


class Engine:
    """vLLM's engine as the harness sees it: a step finishes one request; dies at the given step."""

    def __init__(self) -> None:
        self.queue: list[tuple[int, list[int]]] = []
        self.steps = 0
        self.dies_at = -1

    def step(self) -> list[Any]:
        self.steps += 1
        if self.steps == self.dies_at:
            raise RuntimeError("the engine died")
        # The last one asked finishes first.
        number, tokens = self.queue.pop()
        answer = SimpleNamespace(text=f"{tokens[0]} by step {self.steps}")
        return [SimpleNamespace(request_id=number, prompt_token_ids=tokens, finished=True, outputs=[answer])]


class Backend:
    """The harness's vLLM backend, as far as generation goes."""

    data_parallel_size = 1
    rank, world_size, device, tokenizer_name = 0, 1, None, ""

    def __init__(self) -> None:
        self.model = SimpleNamespace(llm_engine=Engine())

    def set_cache_hook(self, hook: Any) -> None:
        return

    def _model_generate(
        self, requests: list[list[int]], generate: bool = False, sampling_params: Any = None
    ) -> list[Any]:
        engine = self.model.llm_engine
        engine.queue = list(enumerate(requests))
        done = []
        while engine.queue:
            done += engine.step()
        return sorted(done, key=lambda output: output.request_id)

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        if len(requests) > 2 or any(request.args[0] == "dies" for request in requests):
            raise RuntimeError("the engine died")
        return [(-1.0, False)] * len(requests)

    def generate_until(self, requests: list[Any]) -> list[str]:
        tokens = [[ord(c) for c in request.args[0]] for request in requests]
        outputs = self._model_generate(tokens, generate=True, sampling_params=["greedy"] * len(tokens))
        return [output.outputs[0].text for output in outputs]


def test_answers_of_vllm_s_one_batch_are_on_disk_as_they_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.api.instance import Instance

    from qilin_tasks.harness import vllm_stream

    monkeypatch.setattr(vllm_stream, "SECONDS_BETWEEN_WRITES", 0.0)
    asked = [Instance("generate_until", {}, (letter, {}), i) for i, letter in enumerate("abcda")]
    backend = Backend()
    assert can_stream(backend)
    backend.model.llm_engine.dies_at = 4
    lm = StoredLM(backend)
    stream(lm)
    with (
        ResponseStore(tmp_path / "r.sqlite", identity={}) as lm.store,
        pytest.raises(RuntimeError, match="engine died"),
    ):
        lm.generate_until(asked)
    again = Backend()
    engine = again.model.llm_engine
    engine.steps = 100
    fresh = StoredLM(again)
    stream(fresh)
    seen: list[tuple[int, int, int]] = []
    fresh.progress = lambda *counts: seen.append(counts)
    with ResponseStore(tmp_path / "r.sqlite", identity={}) as fresh.store:
        answers = fresh.generate_until(asked)
        # Two of five were missing, and each repeat of a prompt keeps its own answer.
        assert engine.steps == 102
        assert answers == ["97 by step 1", "98 by step 102", "99 by step 3", "100 by step 2", "97 by step 101"]
        assert fresh.generate_until(asked) == answers
        assert engine.steps == 102
        assert len(fresh.store) == 5
    assert seen[0] == (0, 5, 0)
    assert max(done for done, _, _ in seen) == 5


def test_log_likelihoods_of_vllm_stay_in_chunks_of_what_begins_alike(tmp_path: Path) -> None:
    from lm_eval.api.instance import Instance

    asked = [Instance("loglikelihood", {}, (context, f"{i}"), i) for i, context in enumerate(["b", "dies", "a", "b"])]
    stream(lm := StoredLM(Backend(), chunk=2))
    with ResponseStore(tmp_path / "r.sqlite", identity={}) as lm.store:
        with pytest.raises(RuntimeError, match="engine died"):
            lm.loglikelihood(asked)
        kept = lm.store.get(request_keys("loglikelihood", [request.args for request in asked]))
    assert len(kept) == 2


def test_the_multimodal_backend_of_vllm_is_kept_in_chunks() -> None:
    class Multimodal(Backend):
        def _multimodal_model_generate(self) -> None:
            """The harness's name of it."""

    assert not can_stream(Multimodal())


def test_log_likelihoods_and_other_backends_are_left_alone(tmp_path: Path) -> None:
    backend = Backend()
    stream(lm := StoredLM(backend))
    with ResponseStore(tmp_path / "r.sqlite", identity={}) as lm.store:
        assert len(backend._model_generate([[1], [2]], generate=False)) == 2
        assert len(lm.store) == 0
    assert not can_stream(SimpleNamespace(model=SimpleNamespace()))
    other = Backend()
    other.data_parallel_size = 2
    assert not can_stream(other)


def test_a_lock_that_stays_is_an_error(tmp_path: Path) -> None:
    held, again = (locked(tmp_path / "x.json", seconds=0.1, held="running already") for _ in range(2))
    with held, pytest.raises(DataError, match=r"x\.json: running already"), again:
        pytest.fail("two hold it")
