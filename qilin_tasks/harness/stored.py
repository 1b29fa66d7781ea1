"""Any model of the harness, its responses on disk as they come: a restart asks only what is missing."""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from lm_eval.api.model import LM

from qilin_tasks.harness.response_store import ResponseStore, request_key, request_keys
from qilin_tasks.harness.usage import Usage, counter, device_peak

#: Requests that go to the model at once; a crash loses at most these.
CHUNK = 512

Progress = Callable[[int, int, int], None]


class Stopped(BaseException):
    """Nothing more may be asked: raised between answers, past every retry of the harness. What is stored stays."""


class StoredLM(LM):  # type: ignore[misc]
    """Wraps `model`; `store` and `progress(done, total, reused)` are set before each task.

    Requests that are not in the store go to the model in chunks; each chunk is on disk before the next begins.
    Generations go longest first; log-likelihoods sorted by their context, so that those which begin alike meet in a
    chunk and a prefix cache serves them. Backends that report single responses as they arrive (`cache_hook`: the API
    models) are kept one by one; kinds in `unchunked` are asked at once, for they are kept and counted in another way.
    Tokens are kept with each answer: what the backend reports to the hook, else what its tokenizer counts. Once
    `stopping()` says so, nothing more is asked and Stopped is raised.
    """

    def __init__(self, model: Any, *, chunk: int = CHUNK) -> None:
        super().__init__()
        self.model = model
        self.chunk = chunk
        self.unchunked: frozenset[str] = frozenset()
        self.store: ResponseStore | None = None
        self.progress: Progress = lambda done, total, reused: None
        self.stopping: Callable[[], bool] = lambda: False
        #: The share of the text of this run's requests that is answered.
        self.share = 0.0
        self._counter = counter(model)
        #: Of the requests asked now: how many there are, and how many the store had.
        self.asked = self.reused = 0
        hook = _Hook(self)
        model.set_cache_hook(hook)
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    @property
    def rank(self) -> int:
        return int(self.model.rank)

    @property
    def world_size(self) -> int:
        return int(self.model.world_size)

    @property
    def device(self) -> Any:
        return self.model.device

    @property
    def tokenizer_name(self) -> str:
        return str(self.model.tokenizer_name)

    def chat_template(self, chat_template: bool | str = False) -> Any:
        return self.model.chat_template(chat_template)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> Any:
        return self.model.apply_chat_template(chat_history, add_generation_prompt=add_generation_prompt)

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        return self._answer("generate_until", requests)

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return self._answer("loglikelihood", requests)

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        return self._answer("loglikelihood_rolling", requests)

    def _answer(self, kind: str, requests: Sequence[Any]) -> list[Any]:
        if self.store is None:
            raise RuntimeError("StoredLM has no store: set `store` before a task runs")
        keys = request_keys(kind, (request.args for request in requests))
        known = self.store.get(keys)
        self.asked, self.reused = len(keys), len(known)
        pending = sorted(
            (i for i, key in enumerate(keys) if key not in known), key=lambda i: (*_like(kind, requests[i].args), i)
        )
        lengths = [len(str(requests[i].args[0])) + 1 for i in pending]
        self.share, text = 0.0, sum(lengths)
        self.progress(len(known), len(keys), self.reused)
        chunk = max(len(pending), 1) if kind in self.unchunked else self.chunk
        for start in range(0, len(pending), chunk):
            self.check_stop()
            part = pending[start : start + chunk]
            with self.store.asking(device_peak):
                self._hook.expect(
                    kind, [(keys[i], requests[i].args) for i in part], done=len(known), total=len(keys), text=text
                )
                responses = getattr(self.model, kind)([requests[i] for i in part])
                answered = {keys[i]: response for i, response in zip(part, responses, strict=True)}
                usage = self._rest_of_usage(kind, {keys[i]: requests[i].args for i in part}, answered)
                self.store.put(answered.items(), usage=usage)
            known |= answered
            self.share = sum(lengths[: start + chunk]) / text
            self.progress(len(known), len(keys), self.reused)
        return [known[key] for key in keys]

    def check_stop(self) -> None:
        """Raises Stopped where nothing more may be asked."""
        if self.stopping():
            raise Stopped

    def count(self, kind: str, arguments: Sequence[Any], response: Any) -> Usage | None:
        """The tokens of an answer by the tokenizer, where there is one and the backend does not count itself."""
        if self._counter is None or self._hook.reports or kind in self.unchunked:
            return None
        return self._counter(kind, arguments, response)

    def report(self, usages: Sequence[Usage]) -> None:
        """A backend's own counts of the next responses that it tells the cache hook of, in that order."""
        self._hook.report(usages)

    def _rest_of_usage(
        self, kind: str, arguments: dict[str, Sequence[Any]], answered: dict[str, Any]
    ) -> dict[str, Usage]:
        """The tokens of a chunk's answers that are not counted yet.

        What the backend reported of responses that it did not tell of by name stands with one of the chunk's.
        """
        counted = self._hook.counted
        missing = [key for key in answered if key not in counted]
        usage = {
            key: tokens for key in missing if (tokens := self.count(kind, arguments[key], answered[key])) is not None
        }
        if (left := self._hook.unclaimed()) is not None:
            key = missing[0] if missing else next(iter(answered))
            usage[key] = counted[key].plus(left) if key in counted else left
        return usage


def _like(kind: str, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Sorts like to like: chunks of one length waste least, and running out of memory shows at once."""
    text = str(arguments[0])
    return (text,) if kind == "loglikelihood" else (-len(text),)


class _Hook:
    """The harness's cache hook: `add_partial` is called with each response that a backend has.

    `check_stop` may be asked before each request. Before `add_partial`, `report` may be called with the tokens of these
    responses, in the same order.
    """

    # The harness asks for it.
    dbdict = None

    def __init__(self, owner: StoredLM) -> None:
        self.owner = owner
        #: Whether the backend ever reported tokens.
        self.reports = False
        #: What was stored with single answers of this chunk.
        self.counted: dict[str, Usage] = {}
        self._waiting: dict[str, list[str]] = defaultdict(list)
        self._reported: deque[Usage] = deque()
        self._unknown: list[Usage] = []
        self._done = self._total = self._text = 0

    def check_stop(self) -> None:
        self.owner.check_stop()

    def expect(
        self, kind: str, requests: Sequence[tuple[str, Sequence[Any]]], *, done: int, total: int, text: int
    ) -> None:
        self._waiting.clear()
        self._reported.clear()
        self._unknown.clear()
        self.counted.clear()
        self._done, self._total, self._text = done, total, text
        for key, arguments in requests:
            self._waiting[request_key(kind, arguments)].append(key)

    def report(self, usages: Sequence[Usage]) -> None:
        self.reports = self.reports or bool(usages)
        self._reported.extend(usages)

    def unclaimed(self) -> Usage | None:
        """The sum of what was reported and met no response of a known name; it is gone then."""
        left = [*self._unknown, *self._reported]
        self._unknown.clear()
        self._reported.clear()
        return functools.reduce(Usage.plus, left) if left else None

    def add_partial(self, attr: str, req: Sequence[Any], res: Any) -> None:
        usage = self._reported.popleft() if self._reported else None
        # Backends name a request as they like: what is not recognised is stored with its chunk.
        try:
            waiting = self._waiting.get(request_key(attr, req))
        except TypeError:
            waiting = None
        if not waiting or self.owner.store is None:
            if usage is not None:
                self._unknown.append(usage)
            return
        key = waiting.pop(0)
        usage = usage or self.owner.count(attr, req, res)
        self.owner.store.put([(key, res)], usage={} if usage is None else {key: usage})
        if usage is not None:
            self.counted[key] = usage
        self._done += 1
        self.owner.share += (len(str(req[0])) + 1) / self._text
        self.owner.progress(self._done, self._total, self.owner.reused)
