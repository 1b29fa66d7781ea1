from __future__ import annotations

import pytest

from qilin_tasks.dqa.settings import DQASettings
from qilin_tasks.errors import SettingError

GOOD = {
    "context": "bm25",
    "contexts": None,
    "top_k": 5,
    "note_chars": 600,
    "context_chars": 4000,
    "answers": "all",
    "bertscore": "on",
    "bertscore_model": "bert-base-chinese",
    "bertscore_layer": 8,
    "bertscore_device": "auto",
    "bertscore_batch_size": 64,
}


def settings(**changes):
    return DQASettings.from_metadata({**GOOD, **changes})


def test_values_keep_their_kinds():
    chosen = settings(top_k="3", bertscore_layer=9.0, contexts="")
    assert (chosen.top_k, chosen.bertscore_layer, chosen.contexts) == (3, 9, None)


def test_model_arguments_in_the_metadata_are_left_alone():
    assert settings(pretrained="x", dtype="float32", device="cpu", seed=1, top_p=0.9) == settings()


@pytest.mark.parametrize(("given", "kept"), [(True, "on"), (False, "off"), ("off", "off")])
def test_a_bare_switch_may_arrive_as_a_boolean(given, kept):
    assert settings(bertscore=given).bertscore == kept


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context": "bm26"}, r"context 'bm26': choose from bert, bm25, contexts, na, oracle"),
        ({"answers": "liked"}, r"answers 'liked': choose from all, engaged"),
        ({"bertscore": "maybe"}, r"bertscore 'maybe': choose from off, on"),
        ({"context": ["bm25"]}, r"context \['bm25'\]: choose from"),
        ({"top_k": 0}, r"top_k 0: must be at least 1"),
        ({"top_k": 2.5}, r"top_k 2\.5: must be a whole number"),
        ({"top_k": True}, r"top_k True: must be a whole number"),
        ({"note_chars": "many"}, r"note_chars 'many': must be a whole number"),
        ({"note_chars": float("nan")}, r"note_chars nan: must be a whole number"),
        ({"context_chars": -5}, r"context_chars -5: must be at least 20"),
        ({"bertscore_model": ""}, r"bertscore_model '': a value of kind str is needed"),
        ({"note_char": 100}, r"setting 'note_char': did you mean 'note_chars'\?"),
        ({"bertscore_modell": "x"}, r"did you mean 'bertscore_model'\?"),
    ],
)
def test_bad_settings_name_the_value_and_the_way_out(changes, message):
    with pytest.raises(SettingError, match=message):
        settings(**changes)


def test_missing_settings_are_named_together():
    with pytest.raises(SettingError, match="settings context, top_k are missing"):
        DQASettings.from_metadata({k: v for k, v in GOOD.items() if k not in ("context", "top_k")})
