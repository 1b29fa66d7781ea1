from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from qilin_tasks.compare.secrets import is_secret, names_a_secret, redact, refuse_secrets, resolve, secret_values
from qilin_tasks.compare.specs import ModelSpec, check_models, folder_fingerprint, read_models, shorthand
from qilin_tasks.errors import DataError, QilinTasksError, SettingError
from qilin_tasks.harness.metadata import parse_settings

KEY = "sk-abcdefghijklmnop1234"


def chat(name: str = "m", **changes: Any) -> ModelSpec:
    args = {"model": "m", "base_url": "http://127.0.0.1:1/v1/chat/completions", **changes.pop("args", {})}
    return ModelSpec(name=name, backend=changes.pop("backend", "local-chat-completions"), args=args, **changes)


def test_models_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    entries = [
        {"name": "a", "backend": "qilin-baseline", "args": {"strategy": "lead"}},
        {"name": "b", "backend": "vllm", "args": {"pretrained": "x/y"}, "environment": {"CUDA_VISIBLE_DEVICES": 0}},
    ]
    path.write_text(yaml.safe_dump(entries))
    first, second = read_models(path)
    assert first == ModelSpec(name="a", backend="qilin-baseline", args={"strategy": "lead"})
    assert second.environment == {"CUDA_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: a", "a list of models"),
        ("- {name: a, backend: hf, arg: {}}", r"model 1: setting 'arg': choose from args, backend"),
        ("- {backend: hf}", "name None"),
        ("- just text", "is not a map"),
        ("- {name: a, backend: hf, args: [1]}", "a map is needed"),
        ("- {", "not YAML"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(content)
    with pytest.raises(QilinTasksError, match=message):
        read_models(path)


def test_shorthand() -> None:
    assert shorthand("vllm:Qwen/Qwen2.5-7B-Instruct") == ModelSpec(
        name="Qwen2.5-7B-Instruct", backend="vllm", args={"pretrained": "Qwen/Qwen2.5-7B-Instruct"}
    )
    assert shorthand("local-chat-completions:q,base_url=http://h:1/v1,num_concurrent=8").args == {
        "model": "q",
        "base_url": "http://h:1/v1",
        "num_concurrent": 8,
    }
    for text, message in (("vlm:x", "choose from hf"), ("vllm", "backend:name"), ("vllm:x,y", "is not key=value")):
        with pytest.raises(SettingError, match=message):
            shorthand(text)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], "no models"),
        ([chat("a"), chat("A")], "two models are called 'A'"),
        ([chat("../a")], "it becomes a folder"),
        ([chat(backend="gpt")], "backend 'gpt': choose from hf"),
        ([chat(args={"model": ""})], "args need 'model'"),
        ([ModelSpec("a", "vllm", {"pretrained": "/nowhere/model"})], "'/nowhere/model' does not exist"),
        ([chat(args={"auth_token": KEY})], "'auth_token' holds a key"),
        ([chat(args={"header": {"Authorization": "Bearer abcdefghijk"}})], "'Authorization' holds a key"),
        ([chat(args={"base_url": "http://user:secret@host/v1"})], "'base_url' holds a key"),
        ([chat(environment={"OPENAI_API_KEY": "x"})], "'OPENAI_API_KEY' holds a key"),
        ([chat(args={"auth_token": "${QILIN_TEST_UNSET}"})], "QILIN_TEST_UNSET is not set"),
    ],
)
def test_what_would_fail_later_is_refused_now(specs: list[ModelSpec], message: str) -> None:
    with pytest.raises(QilinTasksError, match=message):
        check_models(specs)


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no config\.json"):
        check_models([ModelSpec("a", "hf", {"pretrained": str(tmp_path)})])


def test_openai_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    spec = ModelSpec("a", "openai-chat-completions", {"model": "gpt-4o-mini"})
    with pytest.raises(SettingError, match="OPENAI_API_KEY, which is not set"):
        check_models([spec])
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    check_models([spec])


def test_identity_leaves_out_how_a_model_is_run(tmp_path: Path) -> None:
    assert chat(args={"num_concurrent": 8}).identity() == chat(args={"num_concurrent": 1}).identity()
    assert chat(args={"max_length": 8}).identity() != chat(args={"max_length": 9}).identity()
    (tmp_path / "config.json").write_text("{}")
    spec = ModelSpec("a", "hf", {"pretrained": str(tmp_path)})
    before = spec.identity()
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    assert spec.identity() != before


def test_fingerprint_sees_the_end_of_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(bytes(3 << 20) + b"a")
    before = folder_fingerprint(tmp_path)
    (tmp_path / "w").write_bytes(bytes(3 << 20) + b"b")
    assert folder_fingerprint(tmp_path) != before


@pytest.mark.parametrize(
    "name", ["api_key", "OPENAI_API_KEY", "HF_TOKEN", "auth_token", "Authorization", "db-password"]
)
def test_names_of_keys(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize("name", ["max_gen_toks", "tokenizer", "think_end_token", "bos_token", "add_bos_token", "seed"])
def test_names_that_only_look_like_it(name: str) -> None:
    assert not names_a_secret(name)
    refuse_secrets({name: "</think>"}, where="here")


def test_references_are_resolved_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_TEST_KEY", KEY)
    args = {"header": {"Authorization": "Bearer ${QILIN_TEST_KEY}"}, "model": "m", "odd": KEY, "many": [KEY]}
    assert resolve(args)["header"]["Authorization"] == f"Bearer {KEY}"
    assert redact(args) == {**args, "odd": "***", "many": ["***"]}
    assert KEY in secret_values(args)
    assert not is_secret("model", "sk-small")
    monkeypatch.delenv("QILIN_TEST_KEY")
    with pytest.raises(SettingError, match="QILIN_TEST_KEY is not set"):
        resolve(args)


def test_settings_of_the_command_line() -> None:
    parts = ["bertscore=off,top_k=3", '{"contexts": "a,b.parquet"}', "answers=engaged"]
    assert parse_settings(parts, flag="--metadata") == {
        "bertscore": "off",
        "top_k": 3,
        "contexts": "a,b.parquet",
        "answers": "engaged",
    }
    for bad in ("top_k", "{1", "[1]", "=3"):
        with pytest.raises(SettingError, match="--metadata"):
            parse_settings([bad], flag="--metadata")
