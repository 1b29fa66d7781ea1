"""`qilin-tasks train`: recipes, what is drawn, LAMB by hand, and trainings that were stopped."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dqa_folder import write_config
from support.ranking_folder import SEARCH_SCHEMA, search_row, write_ranking
from test_dense import tiny_bert  # noqa: F401

from qilin_tasks.commands import rank as rank_command
from qilin_tasks.commands import train as command
from qilin_tasks.errors import DataError, DependencyError, SettingError
from qilin_tasks.results.reader import find_results
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.systems import losses
from qilin_tasks.systems.examples import Shown, draw, read_shown
from qilin_tasks.systems.lamb import lamb
from qilin_tasks.systems.losses import TRAINED
from qilin_tasks.systems.recipe import RECIPES, TRAINING_CONFIGS, load_recipe

SMALL = {"batch_size": 2, "negatives": 1, "max_length": 16}


def run(module: Any, name: str, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    args = parser.parse_args([name, *arguments])
    return int(args.run(args))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight notes; the first four say `zzz`, and in every request it is one of them that was clicked."""
    letters = "abcdefgh"
    notes = [
        {"note_idx": i, "note_title": letter, "note_content": "zzz" * (i < 4), "note_type": 1, "image_path": []}
        for i, letter in enumerate(letters)
    ]
    rows = [search_row(i, [4 + (i + 1) % 4, i % 4, 4 + (i + 2) % 4], [i % 4], query=letters[i] * 2) for i in range(8)]
    folder = write_ranking(tmp_path / "data", notes=notes, search=rows)
    write_config(folder, "search_train", [*rows, search_row(8, [1, 2], [], query="x")], SEARCH_SCHEMA)
    monkeypatch.setenv("QILIN_DATA", str(folder))
    return tmp_path


def small(out: Path, system: str, model: Path, *more: str) -> int:
    given = ["--system", system, "--model", str(model), "--out", str(out), "--device", "cpu", "--quiet"]
    sizes = [part for name, value in SMALL.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    return run(command, "train", *given, *sizes, *more)


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))


def test_the_paper_s_recipes_are_those_of_the_official_files() -> None:
    rows = {
        ("bert-bi", "search_train"): (320, 6, 256, "pair"),
        ("bert-bi", "recommendation_train"): (96, 18, 256, "pair"),
        ("bert-cross", "search_train"): (80, 10, 512, "string"),
        ("bert-cross", "recommendation_train"): (512, 1, 512, "string"),
    }
    for (system, config), expected in rows.items():
        recipe, differs = load_recipe("paper", system=system, config=config, changes={})
        assert (recipe.batch_size, recipe.negatives, recipe.max_length, recipe.input) == expected
        assert (recipe.optimizer, recipe.learning_rate, recipe.weight_decay) == ("lamb", 1e-3, 0.0)
        # torch's LinearLR: a third of the rate at first, all of it after ten steps.
        assert [round(recipe.rate(step), 4) for step in (0, 5, 10, 11)] == [0.3333, 0.6667, 1.0, 1.0]
        assert len(differs) == 5


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("config", TRAINING_CONFIGS)
@pytest.mark.parametrize("system", sorted(TRAINED))
def test_changes_are_named_as_differences(name: str, config: str, system: str) -> None:
    changes = {"batch_size": 3, "epochs": None}
    recipe, differs = load_recipe(name, system=system, config=config, changes=changes)
    assert recipe.batch_size == 3 and differs[-1] == "batch_size is 3 here (asked for)"


def test_lamb_by_hand() -> None:
    import torch

    weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    frozen = torch.nn.Parameter(torch.tensor([1.0]))
    zero = torch.nn.Parameter(torch.tensor([0.0]))
    optimizer = lamb([weight, frozen, zero], learning_rate=0.1, weight_decay=0.0, betas=(0.9, 0.999), eps=0.0)
    weight.grad, zero.grad = torch.tensor([1.0, -1.0]), torch.tensor([2.0])
    optimizer.step()
    # 0.1 g / sqrt(0.001 g²) = ±sqrt(10); its length is sqrt(20), that of the weights 5: a step of 0.1 * 5 / sqrt 2.
    assert weight.tolist() == pytest.approx([3 - 0.5 / 2**0.5, 4 + 0.5 / 2**0.5], abs=1e-5)
    assert frozen.item() == 1.0
    # Weights of norm 0 have the ratio 1.
    assert zero.item() == pytest.approx(-0.1 * 10**0.5, abs=1e-5)
    large = torch.nn.Parameter(torch.tensor([30.0, 40.0]))
    optimizer = lamb([large], learning_rate=0.1, weight_decay=0.0, betas=(0.9, 0.999), eps=0.0)
    large.grad = torch.tensor([1.0, 1.0])
    optimizer.step()
    # A norm of 50 counts as 10: a step of length 0.1 * 10.
    assert large.tolist() == pytest.approx([30 - 1 / 2**0.5, 40 - 1 / 2**0.5], abs=1e-4)


@given(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.data())
def test_what_is_drawn(epoch: int, seed: int, negatives: int, data: st.DataObject) -> None:
    ids = st.lists(st.integers(0, 19), min_size=1, max_size=8, unique=True)
    requests = []
    for row in range(data.draw(st.integers(1, 4))):
        shown = data.draw(ids)
        clicks = data.draw(st.integers(1, len(shown)))
        requests.append(Shown(row, f"q{row}", tuple(shown[:clicks]), tuple(shown[clicks:])))
    options: dict[str, int] = {"epoch": epoch, "seed": seed, "negatives": negatives, "note_count": 20}
    examples = draw(requests, **options)
    assert examples == draw(requests, **options)
    by_query = {example.query: example for example in examples}
    assert sorted(by_query) == sorted(one.query for one in requests)
    for one in requests:
        example = by_query[one.query]
        assert example.clicked in one.clicked and not set(example.others) & set(one.clicked)
        assert len(set(example.others)) == len(example.others) == negatives
        assert len(set(example.others) & set(one.skipped)) >= min(negatives, len(one.skipped))


def test_rows_without_query_or_click_are_left_out(data: Path) -> None:
    found = read_shown(open_qilin(), "search_train", rows=None)
    assert [one.row for one in found] == list(range(8))
    assert (found[0].clicked, found[0].skipped) == ((0,), (5, 6))
    with pytest.raises(DataError, match="8 notes are too few for 8 negatives"):
        draw(found, epoch=0, seed=0, negatives=8, note_count=8)


@pytest.mark.parametrize("system", sorted(TRAINED))
def test_it_learns_and_ranks(data: Path, tiny_bert: Path, system: str) -> None:  # noqa: F811
    out = data / "model"
    more = ["--epochs", "20", "--learning-rate", "0.02", "--recipe", "ours"]
    assert small(out, system, tiny_bert, *more) == 0
    told = json.loads((out / "training.json").read_text("utf-8"))
    assert told["steps"] == 80 == len(told["losses"]) and told["recipe"]["negatives"] == 1
    first, last = sum(told["losses"][:4]) / 4, sum(told["losses"][-4:]) / 4
    assert last < first
    assert not list(data.glob(".model*"))
    given = ["--system", system, "--model", str(out), "--max-length", "16", "--device", "cpu", "--quiet"]
    assert run(rank_command, "rank", *given, "--config", "search_test", "--out", str(data / "runs")) == 0
    (result,) = find_results([data / "runs"])
    # The signal that was planted: by chance the clicked one of three would have 0.61.
    assert result.n == 8 and result.values["mrr@10"] > 0.9


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_stopped_training_ends_the_same(
    data: Path,
    tiny_bert: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
) -> None:
    more = ["--recipe", recipe, "--epochs", "2", "--save-every", "3"]
    assert small(data / "whole", "bert-cross", tiny_bert, *more) == 0
    calls = 0
    real = losses.CrossTraining.loss

    def stops(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(losses.CrossTraining, "loss", stops)
        with pytest.raises(KeyboardInterrupt):
            small(data / "stopped", "bert-cross", tiny_bert, *more)
    assert not (data / "stopped").exists()
    calls = -100
    with monkeypatch.context() as patch:
        patch.setattr(losses.CrossTraining, "loss", stops)
        assert small(data / "stopped", "bert-cross", tiny_bert, *more) == 0
    # Eight steps in all, saved after the third.
    assert calls == -100 + 5
    whole, stopped = weights(data / "whole"), weights(data / "stopped")
    assert whole.keys() == stopped.keys()
    for name, tensor in whole.items():
        assert tensor.allclose(stopped[name], atol=1e-6), name
    # Another seed gives another model.
    assert small(data / "other", "bert-cross", tiny_bert, *more, "--seed", "1") == 0
    assert any(not tensor.allclose(whole[name], atol=1e-6) for name, tensor in weights(data / "other").items())


def test_bad_input_stops_before_any_work(data: Path, tiny_bert: Path) -> None:  # noqa: F811
    (data / "there").mkdir()
    for arguments, kind, message in (
        (["--system", "dcn"], SettingError, "--system 'dcn': choose from bert-bi, bert-cross"),
        (["--recipe", "mine"], SettingError, "--recipe 'mine': choose from ours, paper"),
        (["--config", "dqa"], SettingError, "--config 'dqa': choose from recommendation_train, search_train"),
        (["--batch-size", "0"], SettingError, "batch_size 0: choose a number from 1"),
        (["--input", "both"], SettingError, "input 'both': choose from pair, string"),
        (["--learning-rate", "0"], SettingError, r"learning_rate 0\.0: choose a number above 0"),
        (["--max-length", "5000"], SettingError, "--max-length 5000: the model .* takes .* tokens at most"),
        (["--steps", "0"], SettingError, "--steps 0: choose a number from 1"),
        (["--model", str(data / "nowhere")], DependencyError, "can't be loaded"),
        (["--out", str(data / "there")], SettingError, "is there already"),
        (["--config", "recommendation_train"], DataError, "no files of config 'recommendation_train'"),
    ):
        with pytest.raises(kind, match=message):
            small(data / "model", "bert-cross", tiny_bert, *arguments)
    assert not (data / "model").exists()
