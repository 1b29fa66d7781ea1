"""The harness's API backends held to what a server may say: an error is never an answer, a refusal is a counted one.

The harness turns what it can't read into "", which scores 0, and drops the body of an HTTP error. Here every response
is read before it counts; what is no answer is raised inside the harness's own retries, with the server's words.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qilin_tasks.errors import QilinTasksError
from qilin_tasks.harness.usage import reported
from qilin_tasks.parsing.answers import REFUSED

if TYPE_CHECKING:
    from aiohttp import ClientSession

#: `finish_reason`, or the code of an error, of Azure and OpenAI, DashScope, and DeepSeek's and GLM's servers.
REFUSALS = frozenset(
    {
        "content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "data_inspection_failed",
        "DataInspectionFailed", "sensitive", "1301",
    }
)  # fmt: skip
#: A body is quoted up to here.
MOST_CHARS = 500
_SECONDS_BETWEEN_LOOKS = 0.02


class ServerError(QilinTasksError, RuntimeError):
    """A server gave no answer; the message holds its own words."""


def can_guard(model: Any) -> bool:
    """Whether this is one of the harness's API backends."""
    return all(hasattr(model, name) for name in ("model_call", "amodel_call", "_create_payload", "parse_generations"))


def guard(model: Any, *, on_refusal: str) -> None:
    """Make an API backend of the harness read its responses as `read` does.

    A cache hook with `report` is told the tokens of each response before the response itself; one with `check_stop` is
    asked before each request, and what it raises comes out when the requests in flight are answered and kept.
    """
    flying = 0
    create = model._create_payload
    logprobs = model.parse_logprobs

    def payload(*args: Any, **kwargs: Any) -> dict[str, Any]:
        made: dict[str, Any] = create(*args, **kwargs)
        # An empty list of stops is not in OpenAI's schema, and some servers answer 400 to it.
        return {key: value for key, value in made.items() if key != "stop" or value}

    def asked(messages: Any, gen_kwargs: Any, more: Mapping[str, Any]) -> dict[str, Any]:
        text = model.create_message(messages)
        return payload(text, gen_kwargs=copy.deepcopy(gen_kwargs), seed=model._seed, **more)

    def checked(status: int, body: str, *, generate: bool) -> dict[str, Any]:
        return read(status, body, url=model.base_url, generate=generate, on_refusal=on_refusal)

    def check_stop() -> None:
        if hasattr(model.cache_hook, "check_stop"):
            model.cache_hook.check_stop()

    def tell(output: Mapping[str, Any]) -> None:
        if hasattr(model.cache_hook, "report"):
            model.cache_hook.report(reported(output, choices=len(output["choices"])))

    def call(messages: Any, *, generate: bool = True, gen_kwargs: Any = None, **more: Any) -> dict[str, Any]:
        import requests

        check_stop()
        content = asked(messages, gen_kwargs, {"generate": generate, "eos": model.eos_string, **more})
        try:
            response = requests.post(
                model.base_url,
                json=content,
                headers=model.header,
                verify=model.verify_certificate,
                timeout=model.timeout,
            )
        except (requests.RequestException, OSError) as error:
            raise _silent(model, error) from error
        output = checked(response.status_code, response.content.decode("utf-8", "replace"), generate=generate)
        tell(output)
        return output

    async def acall(
        session: ClientSession,
        sem: asyncio.Semaphore,
        messages: Any,
        *,
        generate: bool = True,
        cache_keys: Sequence[Any] | None = None,
        ctxlens: Any = None,
        gen_kwargs: Any = None,
        **more: Any,
    ) -> list[Any]:
        import aiohttp

        nonlocal flying
        content = asked(messages, gen_kwargs, {"generate": generate, **more})
        async with sem:
            try:
                check_stop()
            except BaseException:
                # The first exception ends all: the others' answers are on their way and paid for.
                while flying:
                    await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
                raise
            flying += 1
            try:
                async with session.post(model.base_url, json=content, headers=model.header) as response:
                    status, body = response.status, (await response.read()).decode("utf-8", "replace")
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                raise _silent(model, error) from error
            finally:
                flying -= 1
        outputs = checked(status, body, generate=generate)
        tell(outputs)
        if generate:
            answers = list(generations(outputs))
        else:
            answers = logprobs(outputs=outputs, tokens=messages, ctxlens=ctxlens)
        for key, answer in zip(cache_keys or (), answers, strict=False):
            model.cache_hook.add_partial("generate_until" if generate else "loglikelihood", key, answer)
        return answers

    def generations(outputs: Any, **_: Any) -> list[str]:
        given = outputs if isinstance(outputs, list) else [outputs]
        return [text for output in given for text in _texts(output, model)]

    model._create_payload = payload
    model.model_call, model.amodel_call, model.parse_generations = call, acall, generations


def read(status: int, body: str, *, url: str, generate: bool, on_refusal: str) -> dict[str, Any]:
    """The response as the API describes it, a refused choice's text as REFUSED. Raises ServerError otherwise."""
    said = " ".join(body.split())[:MOST_CHARS] or "nothing"
    try:
        output = json.loads(body)
    except ValueError:
        raise ServerError(f"{url}: HTTP {status}, and what came is no JSON: {said}") from None
    refused = _refusals(output)
    if refused and on_refusal == "empty" and generate:
        choices = output.get("choices") or [{"index": 0}]
        return {"choices": [{"index": i, "refused": choice.get("index", i) in refused} | {"whole": choice}
                            for i, choice in enumerate(choices)], "usage": output.get("usage")}  # fmt: skip
    if refused:
        raise ServerError(
            f"{url}: the server's content filter refused a prompt (HTTP {status}: {said}); with on_refusal=empty it is "
            "counted (refused_rate), with an empty answer"
        )
    if not 200 <= status < 300 or not isinstance(output, dict) or output.get("error"):
        raise ServerError(f"{url}: HTTP {status}: {said}")
    choices = output.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        raise ServerError(f"{url}: HTTP {status} without choices: {said}")
    if generate and any(_text(choice) is None for choice in choices):
        raise ServerError(f"{url}: HTTP {status} with a choice that holds no text: {said}")
    return output


def _refusals(output: Any) -> set[int]:
    """The numbers of the refused choices; {0} where the whole request was refused."""
    if not isinstance(output, dict):
        return set()
    error = output.get("error")
    if isinstance(error, dict):
        inner = error.get("innererror")
        codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
        return {0} if any(str(code) in REFUSALS for code in codes) else set()
    choices = output.get("choices")
    found = set()
    for number, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict):
            message = choice.get("message")
            refusal = isinstance(message, dict) and message.get("content") is None and message.get("refusal")
            if choice.get("finish_reason") in REFUSALS or refusal:
                found.add(int(choice.get("index", number)))
    return found


def _text(choice: Mapping[str, Any]) -> str | None:
    """The text of a choice. Reasoning that no answer followed leaves none, and says so: that answer is empty."""
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    if text is None and isinstance(message, Mapping):
        reasoned = message.get("reasoning_content") or message.get("reasoning")
        return "" if reasoned or choice.get("finish_reason") == "length" else None
    return text if isinstance(text, str) else None


def _texts(output: Mapping[str, Any], model: Any) -> list[str]:
    choices = sorted(output["choices"], key=lambda choice: int(choice.get("index", 0)))
    marker = getattr(model, "think_end_token", None)
    texts = [REFUSED if choice.get("refused") else _text(choice.get("whole", choice)) or "" for choice in choices]
    return [text.split(marker)[-1].lstrip() if marker else text for text in texts]


def _silent(model: Any, error: BaseException) -> ServerError:
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)) or "timed out" in str(error):
        return ServerError(f"{model.base_url}: no answer within {model.timeout} s (argument `timeout`)")
    return ServerError(f"{model.base_url}: {type(error).__name__}: {error}")
