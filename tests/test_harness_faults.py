"""Faults that users of the harness reported or met, through the real harness: each is refused, or works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.evaluation import ScriptedModel, evaluate
from support.openai_server import ChatServer, chat_server

from qilin_tasks import cli, tasks_folder
from qilin_tasks.errors import SettingError
from qilin_tasks.harness.metadata import parse_settings


@pytest.fixture(autouse=True)
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("REQA_DATA", "sample")
    monkeypatch.delenv("QILIN_IMAGES", raising=False)


# The harness's request cache knows neither settings nor data.


def test_cached_requests_are_never_those_of_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path))

    def prompts(cached: bool, **metadata: Any) -> list[str]:
        model = ScriptedModel("好")
        evaluate(["qilin_dqa_bm25"], model, metadata=metadata, cache_requests=cached)
        return [request.args[0] for request in model.seen]

    five = prompts(True, top_k=5)
    assert prompts(True, top_k=1) == prompts(False, top_k=1) != five
    assert prompts(True, top_k=5) == five


# `--metadata` is what the newest harness makes of it, in every command.

KEYS = st.text("abc_", min_size=1, max_size=5)
VALUES = st.one_of(
    st.integers(-50, 5000).map(str),
    st.floats(allow_nan=False).map(str),
    st.sampled_from(["true", "False", "None", "off", "[1,2]", "('a', 2)", "a=b", "bm25.parquet"]),
    st.text("abcXYZ/.-题", max_size=8),
)


@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_settings_are_read_as_the_harness_reads_them(groups: list[dict[str, str]]) -> None:
    import argparse

    from lm_eval._cli.utils import MergeDictAction

    words = [",".join(f"{key}={value}" for key, value in group.items()) for group in groups]
    parser = argparse.ArgumentParser()
    parser.add_argument("--metadata", nargs="+", action=MergeDictAction)
    assert parse_settings(words, flag="--metadata") == parser.parse_args(["--metadata", *words]).metadata


@given(
    st.dictionaries(
        KEYS, st.one_of(st.integers(), st.text(max_size=5), st.booleans(), st.none(), st.lists(st.integers()))
    )
)
def test_json_settings_are_read_as_json(settings: dict[str, Any]) -> None:
    assert parse_settings([json.dumps(settings)], flag="--metadata") == settings


@pytest.mark.parametrize("text", ["{note_chars:100}", "{'a': 1}", '{"a": 1', "a", "=1", "a=1,b"])
def test_broken_settings_are_one_line_with_the_way_out(text: str) -> None:
    with pytest.raises(SettingError, match=r"^--metadata .*(key=value|double quotes)") as raised:
        parse_settings([text], flag="--metadata")
    assert "\n" not in str(raised.value)


# Chat servers.

GENERATING = ["qilin_dqa", "qilin_search_listwise", "qilin_recommendation_listwise", "qilin_search_vlm", "reqa_iapp",
              "reqa_iapp_generate", "reqa_iapp_reader_bm25"]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Any:
    with chat_server(answer=lambda model, prompt: "[2] > [1]") as running:
        yield running


def through(server: ChatServer, tasks: list[str], out: Path, *more: str) -> int:
    return cli.main([
        "run", "--model", "local-chat-completions", "--model_args", f"model=m,base_url={server.url},num_concurrent=4",
        "--apply_chat_template", "--tasks", *tasks, "--output_path", str(out), "--log_samples", *more,
    ])  # fmt: skip


def test_every_generating_task_runs_through_a_chat_server(server: ChatServer, tmp_path: Path) -> None:
    server.payloads.clear()
    metadata = ("--metadata", "bertscore=off", "meteor=off")
    assert through(server, GENERATING, tmp_path, *metadata, "--limit", "2", "--seed", "7") == 0
    (file,) = tmp_path.rglob("results_*.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    assert all("|chat:1|" in config["metadata"]["signature"] for config in results["configs"].values())
    texts = [turn["content"] for payload in server.payloads for turn in payload["messages"]]
    assert len(texts) == 2 * (len(GENERATING) + 3)
    assert all(isinstance(text, str) and '"role"' not in text for text in texts)
    # The seed of the command reaches the server.
    assert {payload["seed"] for payload in server.payloads} == {7}


def test_log_likelihoods_are_refused_to_a_chat_server_by_name(
    server: ChatServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert through(server, ["qilin_search_pointwise"], tmp_path, "--limit", "2") == 1
    assert (
        "qilin_search_pointwise asks for log-likelihoods, which a chat server does not give" in capsys.readouterr().err
    )


# Examples out of the test set.


def own_yaml(folder: Path, text: str) -> Any:
    from qilin_tasks.harness.task_manager import task_manager

    base = tasks_folder() / "qilin" / "_dqa_yaml"
    whole = f"include: {base}\ntask: mine\n{text}metadata:\n  version: 1.0\n  context: bm25\n  bertscore: 'off'\n"
    (folder / "mine.yaml").write_text(whole, encoding="utf-8")
    return task_manager(["mine"], metadata={}, include_path=[str(folder)])


def test_examples_out_of_the_test_set_are_refused(tmp_path: Path) -> None:
    import lm_eval

    model = ScriptedModel("好")
    with pytest.raises(SettingError, match=r"mine: num_fewshot 3 would show documents of the test their own answers"):
        lm_eval.simple_evaluate(
            model=model, tasks=["mine"], task_manager=own_yaml(tmp_path, "num_fewshot: 3\n"), bootstrap_iters=0
        )
    assert model.seen == []


# Reasoning.


class Thinks(ScriptedModel):
    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return super().apply_chat_template(chat_history) + "<think>\n"


@pytest.mark.parametrize("marker", ["</think>", "</thinking></think>", "151668"])
def test_a_marker_that_hides_unfinished_reasoning_is_refused_with_the_way_out(marker: str) -> None:
    with pytest.raises(SettingError, match="think_end_token=keep-reasoning"):
        evaluate(["qilin_dqa_na"], Thinks("好"), apply_chat_template=True, metadata={"think_end_token": marker})


def test_thinking_can_be_switched_on(tiny_llm: Path, tmp_path: Path) -> None:
    """The harness's own hf model, whose output of rubbish is never a finished reasoning."""
    model = f"pretrained={tiny_llm},dtype=float32,enable_thinking=True,think_end_token=keep-reasoning"
    arguments = ["--model", "hf", "--device", "cpu", "--model_args", model, "--tasks", "qilin_dqa_na", "--limit", "2"]
    options = ["--apply_chat_template", "--metadata", "bertscore=off", "--gen_kwargs", "max_gen_toks=4"]
    assert cli.main(["run", *arguments, *options, "--output_path", str(tmp_path)]) == 0
    (file,) = tmp_path.rglob("results_*.json")
    values = json.loads(file.read_text(encoding="utf-8"))["results"]["qilin_dqa_na"]
    assert values["unfinished_reasoning_rate,none"] in (0.0, 1.0)
