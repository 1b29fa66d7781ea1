"""BERTScore: bert-score's numbers, whatever the order and the batches, and a score for anything a model writes."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qilin_tasks.metrics.bertscore import BertScorer, BertScores, bertscore_signature
from qilin_tasks.metrics.bertscore_model import load_encoder

TEXT = st.text(st.sampled_from("很好用的防晒霜,。 abcAB12ก้😀\ud83d[]"), max_size=30)
SENTENCES = [
    "油皮夏天建议选清爽的防晒霜，成膜快不搓泥。",
    "敏感肌推荐物理防晒，温和不刺激！",
    "iPhone15很好用，打3.5折",
    "今天天气很好，我们去公园散步。",
    "小猫喜欢吃鱼，也喜欢晒太阳，还喜欢在窗台上看外面的鸟。",
    "防晒霜",
    "护肤[话题]# 早C晚A 😀",
    "𠮷野家 ラーメン",
]


@pytest.fixture(scope="module")
def bert_zh(bert_chinese_cache: Path) -> str:
    """The thin random BERT of twelve layers, as a folder."""
    (folder,) = (bert_chinese_cache / "models--bert-base-chinese" / "snapshots").iterdir()
    return str(folder)


@pytest.fixture(scope="module")
def chinese_pairs() -> tuple[list[str], list[str]]:
    draw = random.Random(5)
    hypotheses = [draw.choice(SENTENCES) + draw.choice(SENTENCES) * draw.randrange(3) for _ in range(60)]
    references = [draw.choice(SENTENCES) + draw.choice(SENTENCES) * draw.randrange(9) for _ in range(60)]
    return hypotheses, references


def bert_score(hypotheses: Sequence[str], references: Sequence[str], *, model: str, layer: int) -> list[list[float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from bert_score import score

        values = score(list(hypotheses), list(references), model_type=model, num_layers=layer, device="cpu")
    return [value.tolist() for value in values]


def differences(ours: BertScores, theirs: Sequence[Sequence[float]]) -> float:
    return max(
        abs(mine - other) for a, b in zip(ours[:3], theirs, strict=True) for mine, other in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("layer", [0, 1, 8, 12])
@pytest.mark.slow
def test_bert_scores_numbers_in_chinese(bert_zh: str, chinese_pairs: tuple[list[str], list[str]], layer: int) -> None:
    ours = BertScorer(model=bert_zh, layer=layer, device="cpu").score(*chinese_pairs)
    assert differences(ours, bert_score(*chinese_pairs, model=bert_zh, layer=layer)) < 1e-5
    assert ours.cut == [False] * 60


@pytest.mark.slow
def test_bert_scores_numbers_with_a_trained_encoder(minilm: Path, shared: Path) -> None:
    """English questions, and questions against Chinese ones; some paragraphs longer than the encoder's 512 tokens."""
    texts = {}
    for language in ("en", "zh"):
        data = json.loads((shared / "data" / "xquad" / f"xquad.{language}.json").read_text(encoding="utf-8"))["data"]
        paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
        texts[language] = [qa["question"] for paragraph in paragraphs for qa in paragraph["qas"]][:12]
        texts[f"{language} long"] = ["".join(p["context"] for p in paragraphs[:8])]
    hypotheses = [*texts["en"], *texts["en"], *texts["en long"], *texts["zh long"]]
    references = [*reversed(texts["en"]), *texts["zh"], *texts["en"][:1], *texts["zh"][:1]]
    ours = BertScorer(model=str(minilm), layer=4, device="cpu").score(hypotheses, references)
    assert differences(ours, bert_score(hypotheses, references, model=str(minilm), layer=4)) < 1e-5
    assert ours.cut == [False] * 24 + [True] * 2


@pytest.mark.slow
def test_bert_scores_numbers_with_byte_level_bpe(tmp_path: Path) -> None:
    """RoBERTa: other special tokens, positions counted from the padding index."""
    model = tiny_roberta(tmp_path)
    hypotheses, references = ["the cat sat", "a dog", "cats " * 60], ["a cat sat down", "the dog runs", "dogs " * 70]
    ours = BertScorer(model=model, layer=1, device="cpu").score(hypotheses, references)
    assert differences(ours, bert_score(hypotheses, references, model=model, layer=1)) < 1e-5
    assert ours.cut == [False, False, True]


def tiny_roberta(folder: Path) -> str:
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = ByteLevelBPETokenizer(add_prefix_space=True)
    trained.train_from_iterator(["the cat sat down", "a dog runs"], vocab_size=300, special_tokens=special)
    trained.save_model(str(folder))
    RobertaTokenizerFast.from_pretrained(folder, model_max_length=30).save_pretrained(folder)
    torch.manual_seed(3)
    config = RobertaConfig(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        pad_token_id=1,
    )
    RobertaModel(config).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("batch_size", [1, 7, 500])
@pytest.mark.slow
def test_order_and_batches_change_nothing(
    bert_zh: str, chinese_pairs: tuple[list[str], list[str]], batch_size: int
) -> None:
    whole = BertScorer(model=bert_zh, layer=8, device="cpu").score(*chinese_pairs)
    order = list(range(60))
    random.Random(batch_size).shuffle(order)
    shuffled = BertScorer(model=bert_zh, layer=8, device="cpu", batch_size=batch_size).score(
        *([texts[i] for i in order] for texts in chinese_pairs)
    )
    expected = [[values[i] for i in order] for values in whole[:3]]
    assert differences(shuffled, expected) < 1e-6


def test_one_pair_at_a_time_gives_the_same(bert_zh: str) -> None:
    scorer = BertScorer(model=bert_zh, layer=8, device="cpu")
    pairs = list(zip(SENTENCES, SENTENCES[::-1], strict=True))
    alone = [scorer.score([hypothesis], [reference]).f1[0] for hypothesis, reference in pairs]
    assert scorer.score(SENTENCES, SENTENCES[::-1]).f1 == pytest.approx(alone, abs=1e-6)


def test_the_process_may_allow_tf32_and_autocast(bert_zh: str) -> None:
    import torch

    scorer = BertScorer(model=bert_zh, layer=8, device="cpu")
    expected = scorer.score(SENTENCES, SENTENCES[::-1])
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = scorer.score(SENTENCES, SENTENCES[::-1])
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert differences(found, expected[:3]) < 1e-6


@pytest.mark.parametrize("output", [None, "", " \n\u3000", "\ud83d", "\x00\x1b\x07", "\u200b", "[CLS]", "[SEP][SEP]"])
def test_empty_scores_zero(bert_zh: str, output: str | None) -> None:
    """bert-score 0.3.13 raises AttributeError for these, or divides by 0."""
    scorer = BertScorer(model=bert_zh, layer=2, device="cpu")
    zeros = BertScores([0.0], [0.0], [0.0], [False], [0.0])
    assert scorer.score([output], ["防晒霜"]) == scorer.score(["防晒霜"], [output]) == zeros
    assert scorer.score([output], [output]) == zeros


@pytest.mark.parametrize("output", ["😀🎉", "</p><br/>\x00", "好\ud83d", "a" * 100_000, "[MASK]", "\ud83d\ude00"])
def test_bad_output_has_a_score(bert_zh: str, output: str) -> None:
    scores = BertScorer(model=bert_zh, layer=2, device="cpu").score([output], ["防晒霜很好用"])
    assert all(-1 <= values[0] < 1 for values in scores[:3])


def test_long_text_is_cut_and_counted(bert_zh: str, caplog: pytest.LogCaptureFixture) -> None:
    scorer = BertScorer(model=bert_zh, layer=2, device="cpu")
    scores = scorer.score(["好" * 100_000, "好" * 510, "好" * 511, "用"], ["好", "好", "好", "好" * 511])
    assert scores.cut == [True, False, True, True]
    assert scores.f1[0] == scores.f1[1] == scores.f1[2]
    assert "3 of 4 pairs hold a text cut at the encoder's limit" in caplog.text


def test_lower_limit(bert_zh: str) -> None:
    lower = BertScorer(model=bert_zh, layer=2, device="cpu", max_tokens=5)
    scores = lower.score(["防晒霜很好", "防晒霜"], ["防晒霜", "很好"])
    assert scores.cut == [True, False]
    assert scores.f1[0] == 1.0


def test_identical_texts_score_exactly_one(bert_zh: str) -> None:
    scores = BertScorer(model=bert_zh, layer=8, device="cpu").score(SENTENCES, SENTENCES)
    assert scores.precision == scores.recall == scores.f1 == [1.0] * len(SENTENCES)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(TEXT, TEXT), max_size=6))
def test_any_text_has_a_score(bert_zh: str, pairs: list[tuple[str, str]]) -> None:
    scorer = BertScorer(model=bert_zh, layer=2, device="cpu")
    hypotheses, references = [h for h, _ in pairs], [r for _, r in pairs]
    scores, swapped = scorer.score(hypotheses, references), scorer.score(references, hypotheses)
    assert all(-1 <= value <= 1 for values in scores[:3] for value in values)
    assert (scores.precision, scores.recall) == (swapped.recall, swapped.precision)
    assert scores.f1 == pytest.approx(swapped.f1, abs=1e-12)


def test_each_distinct_text_is_encoded_once(bert_zh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(bert_zh, layer=2, device="cpu")
    encoded: list[Sequence[int]] = []
    forward = encoder.forward
    monkeypatch.setattr(encoder, "forward", lambda batch: encoded.extend(batch) or forward(batch))
    hypotheses = ["防晒霜", "很好", "防晒霜", "公园散步", "同样"]
    references = ["很好", "防晒霜", "防晒", "防晒", "同样"]
    BertScorer(model=bert_zh, layer=2, device="cpu", batch_size=2).score(hypotheses, references)
    assert len(encoded) == len(set(map(tuple, encoded))) == 4
    assert [len(ids) for ids in encoded] == sorted(map(len, encoded))


def test_weights_load_once_a_process(bert_zh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_encoder.cache_clear()
    loaded: list[str] = []
    original = load_encoder.__wrapped__.__globals__["_load_network"]
    monkeypatch.setattr(
        "qilin_tasks.metrics.bertscore_model._load_network",
        lambda model, config: loaded.append(model) or original(model, config),
    )
    for _ in range(3):
        BertScorer(model=bert_zh, layer=2, device="cpu").score(["好"], ["很好"])
    assert loaded == [bert_zh]


def test_layers_above_are_not_loaded(bert_zh: str) -> None:
    assert len(load_encoder(bert_zh, layer=2, device="cpu").network.encoder.layer) == 2


def test_no_pairs(bert_zh: str) -> None:
    assert BertScorer(model=bert_zh, layer=2, device="cpu").score([], []) == BertScores([], [], [], [], [])


def test_lengths_must_agree(bert_zh: str) -> None:
    with pytest.raises(ValueError, match="1 hypotheses and 2 references"):
        BertScorer(model=bert_zh, layer=2).score(["a"], ["b", "c"])


def test_signature(bert_zh: str) -> None:
    transformers = version("transformers")
    assert BertScorer().signature == f"bertscore:bert-base-chinese_L8_tf{transformers}"
    assert bertscore_signature(model="a/b", layer=3, max_tokens=256) == f"bertscore:a/b_L3_max256_tf{transformers}"
    name, rest = BertScorer(model=bert_zh, layer=2).signature.split("@")
    assert name == f"bertscore:{Path(bert_zh).name}"
    assert rest.removesuffix(f"_L2_tf{transformers}").isalnum()
