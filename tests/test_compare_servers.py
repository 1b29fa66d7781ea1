"""What servers say when they have no answer, through the harness's own backends: never an answer, never a score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from support.comparing import arguments, main
from support.openai_server import FAULTS, REFUSED, SECRET, ChatServer, chat_server

from qilin_tasks.harness.servers import ServerError, guard, read
from qilin_tasks.parsing import answers
from qilin_tasks.results.reader import find_results, iter_samples

CHAT = [{"role": "user", "content": "问"}]
GENERATION = {"until": [], "max_gen_toks": 12, "do_sample": False, "temperature": 0.0}
#: The fields of a request that the tasks set, by OpenAI's description of its API:
#: https://github.com/openai/openai-openapi (CreateChatCompletionRequest, read 2026-12).
SCHEMA = {
    "type": "object",
    "required": ["messages", "model"],
    "additionalProperties": False,
    "properties": {
        "model": {"type": "string"},
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "additionalProperties": False,
                "properties": {
                    "role": {"enum": ["system", "user", "assistant"]},
                    "content": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1}]},
                },
            },
        },
        "max_tokens": {"type": "integer"},
        "max_completion_tokens": {"type": "integer"},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "seed": {"type": "integer"},
        "stop": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "minItems": 1, "maxItems": 4, "items": {"type": "string"}},
            ]
        },
    },
}


@pytest.fixture(autouse=True)
def no_pause_between_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness waits a second and more before it asks again; what is asked and answered doesn't hang on that."""
    monkeypatch.setattr("tenacity.wait_exponential.__call__", lambda self, retry_state: 0.01)


def model_of(server: ChatServer, *, on_refusal: str = "stop", **options: Any) -> Any:
    made = {"model": "m", "base_url": server.url, "max_retries": 2, "timeout": 1, "num_concurrent": 1, **options}
    model = get_model("local-chat-completions").create_from_arg_obj(made, {})
    guard(model, on_refusal=on_refusal)
    return model


def ask(model: Any, **generation: Any) -> list[str]:
    prompt = model.apply_chat_template(CHAT)
    request = Instance("generate_until", {}, (prompt, {**GENERATION, **generation}), 0)  # type: ignore[arg-type]
    given: list[str] = model.generate_until([request], disable_tqdm=True)
    return given


@pytest.mark.parametrize("concurrent", [1, 2])
@pytest.mark.parametrize("fault", sorted(set(FAULTS) - set(REFUSED)))
def test_a_fault_is_asked_again_and_then_named(fault: str, concurrent: int) -> None:
    with chat_server(fault=lambda number: fault if number == 0 else None) as server:
        assert ask(model_of(server, num_concurrent=concurrent)) == [server.answer("m", "问")]
        assert sum(server.asked.values()) == 2
    with chat_server(fault=lambda number: fault) as server:
        with pytest.raises(ServerError) as caught:
            ask(model_of(server, num_concurrent=concurrent))
        assert sum(server.asked.values()) == 2
    body = FAULTS[fault][1]
    words = {"cut": "", "hang": "no answer within 1 s"}.get(fault)
    expected = words if words is not None else body if isinstance(body, str) else json.dumps(body)
    assert expected in str(caught.value)
    assert server.url in str(caught.value)


@pytest.mark.parametrize("concurrent", [1, 2])
@pytest.mark.parametrize("fault", REFUSED)
def test_a_refusal_stops_or_is_marked(fault: str, concurrent: int) -> None:
    with chat_server(fault=lambda number: fault) as server:
        with pytest.raises(ServerError, match=r"content filter refused a prompt.*on_refusal=empty"):
            ask(model_of(server, num_concurrent=concurrent))
        given = ask(model_of(server, num_concurrent=concurrent, on_refusal="empty"))
    assert given == [answers.REFUSED]
    assert answers.strip_reasoning(given[0]) == answers.Answer(text="", unfinished=False)


def test_reasoning_without_an_answer_is_an_empty_one() -> None:
    for more in ({"finish_reason": "length"}, {"message": {"content": None, "reasoning_content": "hm"}}):
        body = json.dumps({"choices": [{"index": 0, "message": {"content": None}, "finish_reason": "stop", **more}]})
        assert read(200, body, url="u", generate=True, on_refusal="stop")["choices"]


KEYS = ["choices", "error", "message", "content", "index", "code", "finish_reason", "refusal", "text"]
bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(bodies, st.sampled_from([200, 400, 500]))
def test_any_body_is_an_answer_or_a_named_error(body: Any, status: int) -> None:
    try:
        output = read(status, json.dumps(body), url="http://u", generate=True, on_refusal="stop")
    except ServerError as error:
        assert "http://u" in str(error)
    else:
        assert status == 200
        assert all(isinstance(choice, dict) for choice in output["choices"])


@pytest.mark.parametrize("concurrent", [1, 2])
@pytest.mark.parametrize("until", [[], ["\n\n"], ["a", "b", "c", "d", "e"]])
def test_every_request_is_one_by_the_schema(concurrent: int, until: list[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    with chat_server() as server:
        ask(model_of(server, num_concurrent=concurrent), until=until)
        [payload] = server.payloads
    jsonschema.validate(payload, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**payload, "stop": []}, SCHEMA)


@pytest.mark.slow
def test_a_comparison_counts_refusals_and_fails_on_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("QILIN_TEST_KEY", SECRET)
    with chat_server(fault=lambda number: "refused" if number % 3 == 0 else None) as server:
        command = arguments(
            tmp_path / "out",
            f"local-chat-completions:m,base_url={server.url},max_retries=1",
            tasks="qilin_dqa_na",
            extra=("--on_refusal", "empty", "--limit", "6"),
        )
        assert main(command) == 0
    [result] = find_results([tmp_path / "out"])
    assert result.values["refused_rate"] == pytest.approx(2 / 6)
    rows = [(s.responses[0][0], s.scores["refused_rate"], s.scores["answer_chars"]) for s in iter_samples(result)]
    assert [row[1:] for row in rows if row[0] == answers.REFUSED] == [(1.0, 0.0)] * 2
    assert all(row[1] == 0.0 and row[2] > 0 for row in rows if row[0] != answers.REFUSED)
    with chat_server(fault=lambda number: "error 200") as server:
        spec = f"local-chat-completions:m,base_url={server.url},max_retries=1"
        assert main(arguments(tmp_path / "bad", spec, tasks="qilin_dqa_na", extra=("--limit", "2"))) == 1
    said = capsys.readouterr().err
    assert "the engine is overloaded" in said
    assert SECRET not in said
    for path in (tmp_path / "bad").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
