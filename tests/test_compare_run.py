"""`qilin-tasks compare` end to end: real harness, real tasks on the embedded sample, a local chat server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.comparing import TASKS, arguments, main
from support.openai_server import ChatServer, by_prompt, chat_server

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.results.reader import find_results, iter_samples

# Every test here leans on one comparison of three models.
pytestmark = pytest.mark.slow

KEY = "sk-this-key-must-never-be-written-1234567890"


@pytest.fixture(autouse=True)
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with chat_server(broken={"broken"}) as running:
        yield running


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def models(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "models.yaml"
    header = {"Authorization": "Bearer ${QILIN_TEST_KEY}"}
    args = {"base_url": server.url, "num_concurrent": 4, "max_retries": 1}
    entries = [
        {"name": "good", "backend": "local-chat-completions", "args": {"model": "good", "header": header, **args}},
        {"name": "bad", "backend": "local-chat-completions", "args": {"model": "broken", **args}},
        {"name": "lead", "backend": "qilin-baseline", "args": {"strategy": "lead"}},
    ]
    path.write_text(yaml.safe_dump(entries))
    return path


@pytest.fixture(scope="module", autouse=True)
def first_run(out: Path, models: Path, server: ChatServer) -> tuple[int, str, str]:
    """Three models, one of which always fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        patch.setenv("QILIN_TEST_KEY", KEY)
        import contextlib
        import io

        said, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = main([str(models), *arguments(out, extra=("--gen_kwargs", "max_gen_toks=64"))])
        return code, said.getvalue(), errors.getvalue()


def again(out: Path, models: Path, *extra: str) -> list[str]:
    return [str(models), *arguments(out, extra=("--gen_kwargs", "max_gen_toks=64", *extra))]


def test_one_failure_leaves_its_log_and_the_others_go_on(first_run: tuple[int, str, str], out: Path) -> None:
    code, said, errors = first_run
    assert code == 1
    assert "qilin_dqa_bm25 (rouge_l)" in said
    assert "FAILED bad qilin_dqa_na" in errors
    assert "broken is out of order" in (out / "bad" / "log.txt").read_text()
    assert [(r.model, r.task) for r in find_results([out])] == [
        (model, task) for model in ("good", "lead") for task in ("qilin_dqa_bm25", "qilin_dqa_na")
    ]


def test_results_are_the_harness_s_with_every_answer(out: Path) -> None:
    result = next(r for r in find_results([out]) if (r.model, r.task) == ("good", "qilin_dqa_bm25"))
    samples = list(iter_samples(result))
    assert result.model_source == "local-chat-completions"
    assert result.n == len(samples) > 0
    for sample in samples:
        prompt = json.loads(sample.prompts[0])[0]["content"]
        assert sample.responses == [[by_prompt("good", prompt)]]
        assert "rouge_l" in sample.scores


def test_each_request_was_asked_once_and_greedily(server: ChatServer, out: Path) -> None:
    mine = {prompt: count for (model, prompt), count in server.asked.items() if model == "good"}
    assert len(mine) == sum(r.n for r in find_results([out]) if r.model == "good")
    assert set(mine.values()) == {1}
    assert {(p["temperature"], p["max_tokens"]) for p in server.payloads} == {(0.0, 64)}


def test_the_key_reaches_the_server_and_no_file(out: Path, first_run: tuple[int, str, str]) -> None:
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in first_run[1] + first_run[2]
    config = json.loads(next((out / "good").rglob("results_*.json")).read_text())["config"]
    assert config["model_args"]["header"] == {"Authorization": "Bearer ${QILIN_TEST_KEY}"}


def test_the_same_command_asks_only_what_is_missing(
    out: Path, models: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QILIN_TEST_KEY", KEY)
    before = dict(server.asked)
    server.broken.clear()
    assert main(again(out, models)) == 0
    assert server.headers.get("Authorization") != f"Bearer {KEY}"  # the last model asked has none
    assert {key: n for key, n in server.asked.items() if key[0] == "good"} == {
        key: n for key, n in before.items() if key[0] == "good"
    }
    assert main(again(out, models, "--dry-run")) == 0
    shown = capsys.readouterr().out
    assert shown.count("finished, ") == 6
    assert "in all: about 0 prompt tokens" in shown


def test_the_dry_run_of_a_new_folder(tmp_path: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]) -> None:
    asked = sum(server.asked.values())
    command = arguments(
        tmp_path / "new", f"local-chat-completions:m,base_url={server.url}", extra=("--dry-run", "--limit", "5")
    )
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "qilin_dqa_na: 5 documents, 5 requests, 0 answers reused" in shown
    assert "qilin-tasks run --model local-chat-completions" in shown
    assert "--limit 5" in shown
    assert not (tmp_path / "new").exists()
    assert sum(server.asked.values()) == asked


def test_the_dry_run_tells_the_run(tiny_llm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The template that the model's tokenizer has, and the answer length of the model's own generation settings."""
    plain = tmp_path / "plain"
    shutil.copytree(tiny_llm, plain)
    (plain / "chat_template.jinja").unlink(missing_ok=True)
    config = json.loads((plain / "tokenizer_config.json").read_text(encoding="utf-8"))
    config.pop("chat_template", None)
    (plain / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    models = tmp_path / "models.yaml"
    entries = [
        {"name": "chat", "backend": "hf", "args": {"pretrained": str(tiny_llm)}, "generation": {"max_gen_toks": 12}},
        {"name": "short", "backend": "hf", "args": {"pretrained": str(tiny_llm)}, "generation": {"max_tokens": 13}},
        {"name": "base", "backend": "hf", "args": {"pretrained": str(plain)}},
    ]
    models.write_text(yaml.safe_dump(entries), encoding="utf-8")
    command = [str(models), *arguments(tmp_path / "out", tasks="qilin_dqa_na", extra=("--dry-run", "--limit", "5"))]
    assert main(command) == 0
    chat, base = capsys.readouterr().out.split("# base (hf)")
    assert "--apply_chat_template" in chat and "--apply_chat_template" not in base
    assert "(at most 60)" in chat and "(at most 65)" in chat and f"(at most {5 * 1024:,})" in base


def test_examples_and_unknown_settings_are_refused_by_name(tmp_path: Path) -> None:
    for extra, words in (
        (("--num_fewshot", "3"), "num_fewshot 3 would show documents of the test their own answers"),
        (("--metadata", "max_note_chars=9"), "none of the tasks has the setting 'max_note_chars'"),
    ):
        with pytest.raises(DataError, match=words):
            main(arguments(tmp_path / "out", "qilin-baseline:lead", extra=extra))


def test_other_settings_in_the_same_folder_are_refused(
    out: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QILIN_TEST_KEY", KEY)
    with pytest.raises(SettingError, match=r"limit was None, now 3\.0"):
        main(again(out, models, "--limit", "3"))
    with pytest.raises(SettingError, match=r"generation was .*64.*now .*65"):
        main([str(models), *arguments(out, extra=("--gen_kwargs", "max_gen_toks=65"))])
    other = yaml.safe_load(models.read_text())
    other[0]["args"]["model"] = "another"
    models.with_name("other.yaml").write_text(yaml.safe_dump(other))
    with pytest.raises(SettingError, match="other identity: args was"):
        main(again(out, models.with_name("other.yaml")))


def test_other_data_are_refused(out: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qilin_tasks.compare import run, state

    monkeypatch.setenv("QILIN_TEST_KEY", KEY)
    options = state.Options(
        tasks=tuple(TASKS.split(",")), out=out, metadata={"bertscore": "off"}, gen_kwargs={"max_gen_toks": 64}
    )
    tasks = run.make_plan(options, folder=out / ".plan")
    from dataclasses import replace

    changed = [replace(t, signature=(t.signature or "").replace("|data:", "|data:0")) for t in tasks]
    from qilin_tasks.compare.specs import read_models

    with pytest.raises(DataError, match="made on the data"):
        state.pair_up(read_models(models), changed, options)


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    command = arguments(tmp_path, "qilin-baseline:lead")
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(DataError, match=r"holds thesis\.tex but no compare\.json"):
        main(command)
    (tmp_path / "compare.json").write_text('{"format": 99, "version": "9.9"}')
    with pytest.raises(DataError, match=r"written by qilin-tasks 9\.9 \(format 99\)"):
        main(command)
    (tmp_path / "compare.json").write_text("[]")
    with pytest.raises(DataError, match="not a comparison's file"):
        main(command)


def test_unknown_tasks_come_with_their_neighbours(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"task 'qilin_dqa_bm26'.*qilin_dqa_bm25"):
        main(arguments(tmp_path, "qilin-baseline:lead", tasks="qilin_dqa_bm26"))


def test_two_at_once_in_one_folder_are_refused(tmp_path: Path) -> None:
    from qilin_tasks.compare.run import only_one

    with only_one(tmp_path), pytest.raises(DataError, match="another compare command"):
        main(arguments(tmp_path, "qilin-baseline:lead"))


@pytest.mark.parametrize("flags", [["--jobs", "0"], ["--chunk", "-1"], ["--limit", "0"], ["--tasks", ","]])
def test_impossible_numbers(tmp_path: Path, flags: list[str]) -> None:
    with pytest.raises(SettingError, match=flags[0]):
        main([*arguments(tmp_path, "qilin-baseline:lead"), *flags])
