"""DCN-V2 over the release's features: a planted crossing that a linear model can't see, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.dqa_folder import write_config
from test_train import run

from qilin_tasks.commands import rank as rank_command
from qilin_tasks.commands import train as train_command
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.results.reader import find_results
from qilin_tasks.sources.layout import arrow_schemas
from qilin_tasks.sources.qilin import QilinSource, open_qilin
from qilin_tasks.sources.runs import read_run
from qilin_tasks.systems import dcn_v2
from qilin_tasks.systems.dcn_features import HISTORY, UNSEEN, FeatureEncoder, one_hot, read_impressions
from qilin_tasks.systems.dcn_v2 import DcnSettings, _go_on, load_dcn, train_dcn
from qilin_tasks.systems.train_dcn import train_dcn_into

USERS, NOTES = 60, 200
SMALL: dict[str, Any] = {
    "dimension": 8,
    "cross_layers": 2,
    "hidden": (32,),
    "learning_rate": 5e-3,
    "weight_decay": 1e-4,
    "batch_size": 256,
    "epochs": 6,
    "seed": 0,
}


def release(folder: Path, *, requests: int, drop: tuple[str, ...] = ()) -> QilinSource:
    """Planted: a user clicks notes of the kind that fits the user's gender, and rather those that many clicked."""
    chance = np.random.default_rng(0)
    schemas = arrow_schemas()
    notes = [dict.fromkeys(schemas["notes"].names) for _ in range(NOTES)]
    for number, note in enumerate(notes):
        kind = int(chance.integers(1, 3))
        note.update(note_idx=number, note_title="题", note_content="文", note_type=kind, image_path=[], image_num=1)
        note.update(content_length=3, click_num=float(chance.integers(0, 1000)), taxonomy1_id=f"t{number % 5}")
    users = [dict.fromkeys(schemas["user_feat"].names) for _ in range(USERS)]
    for number, user in enumerate(users):
        user.update(user_idx=number, gender=str(chance.choice(["male", "female"])), platform="iOS", age="19-22")
        user.update(location="x", fans_num=float(number), follows_num=1.0)
    for config in ("search_train", "search_test"):
        rows = []
        for number in range(requests):
            user = users[int(chance.integers(USERS))]
            details = []
            for place, note_idx in enumerate(chance.choice(NOTES, 8, replace=False).tolist()):
                note = notes[note_idx]
                fits = (note["note_type"] == 1) == (user["gender"] == "male")
                odds = (2.5 if fits else -2.5) + 2 * (note["click_num"] / 500 - 1)
                details.append(
                    {
                        "note_idx": float(note_idx),
                        "position": float(place),
                        "click": float(chance.random() < 1 / (1 + np.exp(-odds))),
                        "like": 0.0,
                    }
                )
            row = dict.fromkeys(schemas[config].names)
            row.update(search_idx=number, session_idx=number, user_idx=user["user_idx"], query="词", query_from_type=1)
            row.update(recent_clicked_note_idxs=[3, 2, 1], search_result_details_with_idx=details)
            if config == "search_test":
                row.update(search_results=[int(each["note_idx"]) for each in details])
            rows.append(row)
        write_config(folder, config, rows, schemas[config])
    kept = [field for field in schemas["user_feat"] if field.name not in drop]
    write_config(folder, "user_feat", users, _schema(kept))
    kept = [field for field in schemas["notes"] if field.name not in drop]
    write_config(folder, "notes", notes, _schema(kept))
    return open_qilin(str(folder))


def _schema(kept: list[Any]) -> Any:
    import pyarrow as pa

    return pa.schema(kept)


@pytest.mark.slow
def test_the_planted_crossing_is_found_beside_a_linear_model(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    source = release(tmp_path / "data", requests=500)
    model = train_dcn(source, "search_train", DcnSettings(**SMALL))
    train, test = read_impressions(source, "search_train"), read_impressions(source, "search_test")
    columns = [one_hot(model.encoder.encode(source, shown), model.encoder) for shown in (train, test)]
    linear = LogisticRegression(max_iter=1000).fit(columns[0], train.clicked)
    ours = roc_auc_score(test.clicked, model.predict(source, test))
    theirs = roc_auc_score(test.clicked, linear.predict_proba(columns[1])[:, 1])
    print(f"AUC: DCN-V2 {ours:.4f}, logistic regression {theirs:.4f}")
    assert ours > 0.8 and ours > theirs + 0.1
    model.save(tmp_path / "model")
    assert np.array_equal(load_dcn(tmp_path / "model").predict(source, test), model.predict(source, test))
    again = train_dcn(source, "search_train", DcnSettings(**SMALL))
    assert np.allclose(again.predict(source, test), model.predict(source, test), atol=1e-4)


def test_features_by_hand(tmp_path: Path) -> None:
    source = release(tmp_path, requests=5)
    shown = read_impressions(source, "search_train", limit=3)
    assert len(shown) == 24 and sorted(set(shown.rows.tolist())) == [0, 1, 2]
    encoder = FeatureEncoder.fit(source, shown)
    features = encoder.encode(source, shown)
    assert features["numbers"].mean(0) == pytest.approx(np.zeros(features["numbers"].shape[1]), abs=1e-5)
    assert features["history"].shape == (24, HISTORY) and not features["history"][:, 3:].any()
    known = encoder.kinds["note_idx"]
    assert features["history"][0, :3].tolist() == [known.get(str(note), UNSEEN) for note in (3, 2, 1)]
    assert features["note_idx"].tolist() == [known[str(note)] for note in shown.notes.tolist()]
    other = encoder.encode(source, read_impressions(source, "search_test"))
    assert (other["note_idx"] == UNSEEN).any()


def test_what_is_missing_is_named_before_any_training(tmp_path: Path) -> None:
    source = release(tmp_path / "a", requests=3, drop=("click_num", "taxonomy2_id"))
    with pytest.raises(DataError, match=r"(?s)notes\.taxonomy2_id.*notes\.click_num"):
        train_dcn(source, "search_train", DcnSettings(**SMALL))
    with pytest.raises(SettingError, match="config 'dqa': choose from"):
        read_impressions(source, "dqa")
    for name, value in (("epochs", 0), ("hidden", ()), ("learning_rate", 0.0)):
        with pytest.raises(SettingError, match=name):
            DcnSettings(**{**SMALL, name: value})
    with pytest.raises(DataError, match="not a DCN-V2 of qilin-tasks"):
        load_dcn(tmp_path / "nothing")


@pytest.mark.slow
def test_trained_and_ranked_by_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = release(tmp_path / "data", requests=60).name
    shared = ["--data", data, "--quiet"]
    trained = ["--system", "dcn-v2", "--epochs", "3", "--batch-size", "64", *shared]
    assert run(train_command, "train", *trained, "--out", str(tmp_path / "dcn")) == 0
    ranked = ["--system", "dcn-v2", "--config", "search_test", "--out", str(tmp_path / "runs"), *shared]
    assert run(rank_command, "rank", *ranked, "--model", str(tmp_path / "dcn"), "--name", "DCN-V2") == 0
    (result,) = find_results([tmp_path / "runs"])
    assert result.model == "DCN-V2" and result.n > 0 and result.values["mrr@10"] > 0
    source = open_qilin(data)
    shown = read_impressions(source, "search_test")
    wanted = dict(
        zip(
            zip(shown.rows.tolist(), shown.notes.tolist(), strict=True),
            load_dcn(tmp_path / "dcn").predict(source, shown).tolist(),
            strict=True,
        )
    )
    made = read_run(next((tmp_path / "runs").rglob("search_test.run")))
    for query, note, score in zip(
        made.query_ids.tolist(), made.candidate_ids.tolist(), made.scores.tolist(), strict=True
    ):
        assert score == pytest.approx(wanted[query, note], abs=1e-5)
    with pytest.raises(SettingError, match="is there already"):
        run(train_command, "train", *trained, "--out", str(tmp_path / "dcn"))
    poorer = release(tmp_path / "poorer", requests=3, drop=("gender", "click_num")).name
    ranked = ["--system", "dcn-v2", "--config", "search_test", "--out", str(tmp_path / "none"), "--data", poorer]
    with pytest.raises(DataError, match=r"(?s)notes\.click_num.*user_feat\.gender"):
        run(rank_command, "rank", *ranked, "--model", str(tmp_path / "dcn"))
    assert not list((tmp_path / "none").rglob("*.run"))


@pytest.mark.slow
def test_a_stopped_training_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = release(tmp_path / "data", requests=40)
    settings = DcnSettings(**{**SMALL, "epochs": 3, "batch_size": 64})
    whole = train_dcn_into(tmp_path / "whole", source, "search_train", settings, rows=None)
    real, calls = dcn_v2.write_whole, []

    def stops_after_the_second_pass(path: Path, content: Any) -> None:
        real(path, content)
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(dcn_v2, "write_whole", stops_after_the_second_pass)
        train_dcn_into(tmp_path / "stopped", source, "search_train", settings, rows=None)
    assert not (tmp_path / "stopped").exists()
    passes: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(dcn_v2, "_go_on", lambda *given: passes.append(_go_on(*given)) or passes[-1])
        stopped = train_dcn_into(tmp_path / "stopped", source, "search_train", settings, rows=None)
    assert passes == [2]
    shown = read_impressions(source, "search_test")
    one, other = (load_dcn(folder).predict(source, shown) for folder in (whole, stopped))
    assert other == pytest.approx(one, abs=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")) == [
        "data", "stopped", "whole",
    ]  # fmt: skip


def test_what_dcn_does_not_take_is_refused_before_any_work(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    for more, message in (
        (["--model", "x"], "takes no --model"),
        (["--negatives", "3"], "takes no --negatives"),
        (["--recipe", "paper"], "BERT vectors"),
        (["--recipe", "best"], "--recipe"),
        (["--epochs", "0"], "epochs 0"),
    ):
        with pytest.raises(SettingError, match=message):
            run(train_command, "train", "--system", "dcn-v2", *out, *more)
    with pytest.raises(SettingError, match="needs --model"):
        run(train_command, "train", "--system", "bert-bi", *out)
    with pytest.raises(DataError, match="not a DCN-V2 of qilin-tasks"):
        ranked = ["--system", "dcn-v2", "--config", "search_test", "--data", "sample", *out]
        run(rank_command, "rank", *ranked, "--model", str(tmp_path))
