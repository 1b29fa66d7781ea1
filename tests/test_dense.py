"""Encoders, the vector file, exact search and re-ranking, with MiniLM and with tiny random BERTs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, DependencyError, SettingError
from qilin_tasks.retrieval import dense_search, encoders, rerank, vectors
from qilin_tasks.retrieval.corpus import JsonLinesCorpus
from qilin_tasks.retrieval.dense_search import search_vectors
from qilin_tasks.retrieval.encoders import EncoderSettings, SentenceTransformersEncoder, load_encoder, model_identity
from qilin_tasks.retrieval.vectors import encode_corpus

TEXTS = ["a cat sleeps", "the stock market fell", "kittens nap all day", "", "rates and shares dropped"]


class Lengths:
    """A toy encoder that counts its calls."""

    signature = "lengths"
    dimension = 2

    def __init__(self) -> None:
        self.encoded = 0

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        self.encoded += len(texts)
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)


@pytest.fixture
def corpus(tmp_path: Path) -> JsonLinesCorpus:
    path = tmp_path / "corpus.jsonl"
    lines = [json.dumps({"id": f"d{number}", "contents": text}) for number, text in enumerate(TEXTS)]
    path.write_text("\n".join(lines), "utf-8")
    return JsonLinesCorpus(path)


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT with one output and a vocabulary of single letters: what is tested is the way, not the model."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer, set_seed

    folder = tmp_path_factory.mktemp("tiny-bert")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *map(chr, range(97, 123)),
        *(f"##{chr(c)}" for c in range(97, 123)),
    ]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    set_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_minilm_finds_what_is_meant(minilm: Path) -> None:
    encoder = SentenceTransformersEncoder(str(minilm), EncoderSettings(batch_size=8))
    stored = encoder.encode(TEXTS)
    assert stored.shape == (5, 384)
    assert np.linalg.norm(stored[0]) == pytest.approx(1, abs=1e-4)
    found = search_vectors(encoder.encode(["a sleeping cat"], query=True), stored, np.arange(5), k=2)
    assert {position for position, _ in found[0]} == {0, 2}


def test_mean_pooling_is_the_mean_over_the_texts_own_tokens(tiny_bert: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    encoder = load_encoder(str(tiny_bert), backend="mean-pooling", batch_size=2, max_length=8)
    texts = ["abc", "a", "hello there this is long", ""]
    tokenizer, model = AutoTokenizer.from_pretrained(tiny_bert), AutoModel.from_pretrained(tiny_bert).eval()
    for text, vector in zip(texts, encoder.encode(texts), strict=True):
        tokens = tokenizer(text, truncation=True, max_length=8, return_tensors="pt")
        with torch.inference_mode():
            expected = model(**tokens).last_hidden_state[0].mean(0).numpy()
        assert vector == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("backend", ["mean-pooling", "sentence-transformers"])
@pytest.mark.slow
def test_several_devices_give_what_one_gives(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    texts = [f"text {number} " + "word " * (number % 5) for number in range(11)]
    alone = load_encoder(str(tiny_bert), backend=backend, batch_size=2, max_length=16).encode(texts)
    monkeypatch.setattr(encoders, "devices", lambda *_: ["cpu", "cpu"])
    together = load_encoder(str(tiny_bert), backend=backend, batch_size=2, max_length=16)
    for _ in range(2):
        assert together.encode(texts) == pytest.approx(alone, abs=1e-5)


def test_models_that_are_not_there_are_named(tmp_path: Path) -> None:
    for backend in ("mean-pooling", "sentence-transformers"):
        with pytest.raises(DependencyError, match="can't be loaded"):
            load_encoder(str(tmp_path / "none"), backend=backend, batch_size=1, max_length=None)
    with pytest.raises(SettingError, match="backend 'onnx': choose from mean-pooling, sentence-transformers, vllm"):
        load_encoder("x", backend="onnx", batch_size=1, max_length=None)


def test_a_models_identity_follows_its_content(tiny_bert: Path, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(tiny_bert, tmp_path / tiny_bert.name)
    assert model_identity(str(copy)) == model_identity(str(tiny_bert))
    (copy / "config.json").write_text((copy / "config.json").read_text().replace("gelu", "relu"))
    assert model_identity(str(copy)) != model_identity(str(tiny_bert))
    assert model_identity("org/model") == "org/model"


def test_encoding_goes_on_where_it_stopped(
    corpus: JsonLinesCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "CHUNK", 2)
    folder = tmp_path / "vectors"
    encoder = Lengths()
    whole = encode_corpus(corpus, encoder, folder, progress=False)
    assert whole.ids.tolist() == ["d0", "d1", "d2", "d3", "d4"]
    assert whole.vectors.dtype == np.float16
    assert np.isnan(whole.vectors[3]).all(), "no search finds a document without text"
    written = [0, 1, 2, 4]
    assert whole.vectors[written, 0].tolist() == [len(TEXTS[place]) for place in written]
    before = (folder / "vectors.f16").read_bytes()
    for chunk in (1, 2):
        (folder / f"ids-{chunk:06d}.npy").unlink()
    encode_corpus(corpus, encoder, folder, progress=False)
    assert encoder.encoded == 5 + 3
    assert (folder / "vectors.f16").read_bytes() == before


def test_vectors_of_another_model_or_corpus_are_refused(corpus: JsonLinesCorpus, tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    encode_corpus(corpus, Lengths(), folder, progress=False)
    other = Lengths()
    other.signature = "other"
    with pytest.raises(DataError, match="vectors of another encoder"):
        encode_corpus(corpus, other, folder, progress=False)
    path = tmp_path / "other.jsonl"
    path.write_text('{"id": "x", "contents": "y"}')
    with pytest.raises(DataError, match="vectors of another corpus"):
        encode_corpus(JsonLinesCorpus(path), Lengths(), folder, progress=False)
    (folder / "header.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        encode_corpus(corpus, Lengths(), folder, progress=False)
    (folder / "header.json").unlink()
    with pytest.raises(DataError, match="without a header"):
        encode_corpus(corpus, Lengths(), folder, progress=False)


def test_vectors_that_are_no_numbers_are_refused(corpus: JsonLinesCorpus, tmp_path: Path) -> None:
    class Broken(Lengths):
        def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
            return np.full((len(texts), 2), np.nan, dtype=np.float32)

    with pytest.raises(DataError, match="float16 can't hold"):
        encode_corpus(corpus, Broken(), tmp_path / "vectors", progress=False)


def test_no_space_for_vectors_is_said_before_encoding(corpus: JsonLinesCorpus, tmp_path: Path) -> None:
    import resource

    class Wide(Lengths):
        dimension = 4096

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(DataError, match="no space for"):
            encode_corpus(corpus, Wide(), tmp_path / "vectors", progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "vectors" / "vectors.f16").exists()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 8), st.integers(0, 10**6))
def test_blocks_find_what_one_product_finds(documents: int, queries: int, k: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    # Small whole numbers: products are exact, and many are equal.
    stored = generator.integers(-2, 3, size=(documents, 3)).astype(np.float16)
    asked = generator.integers(-2, 3, size=(queries, 3)).astype(np.float32)
    ids = generator.permutation(documents) * 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense_search, "BLOCK", 6)
        found = search_vectors(asked, stored, ids, k=k)
    scores = asked @ stored.T.astype(np.float32)
    for ranking, row in zip(found, scores, strict=True):
        expected = sorted(zip(ids.tolist(), row.tolist(), strict=True), key=lambda item: (-item[1], str(item[0])))
        assert ranking == expected[:k]


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(1, 2\) don't fit"):
        search_vectors(np.zeros((1, 2), np.float32), np.zeros((4, 3), np.float16), np.arange(4), k=1)


def test_faiss_is_asked_for_by_name_where_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(DependencyError, match=r"qilin-tasks\[faiss\]"):
        dense_search.search_faiss(np.zeros((1, 2), np.float32), np.zeros((4, 2), np.float16), np.arange(4), k=1)


def test_faiss_finds_most_of_what_exact_search_finds() -> None:
    generator = np.random.default_rng(3)
    # Documents lie around topics, as texts do.
    topics = generator.normal(size=(40, 16))
    stored = topics[generator.integers(0, 40, 4_000)] + 0.4 * generator.normal(size=(4_000, 16))
    stored = (stored / np.linalg.norm(stored, axis=1, keepdims=True)).astype(np.float16)
    asked = stored[generator.permutation(4_000)[:100]].astype(np.float32)
    ids = np.arange(4_000) * 3
    exact = search_vectors(asked, stored, ids, k=10)
    found = dense_search.search_faiss(asked, stored, ids, k=10)
    shared = [len({i for i, _ in one} & {i for i, _ in other}) / 10 for one, other in zip(exact, found, strict=True)]
    assert np.mean(shared) >= 0.95
    assert [ranking[0][0] for ranking in found[:5]] == [ranking[0][0] for ranking in exact[:5]]
    assert all(len(ranking) == 10 for ranking in found)


def test_faiss_with_few_documents_and_a_long_list() -> None:
    stored = np.eye(4, dtype=np.float16)
    found = dense_search.search_faiss(np.eye(4, dtype=np.float32), stored, np.arange(4), k=9)
    assert [ranking[0][0] for ranking in found] == [0, 1, 2, 3]
    assert all(len(ranking) == 4 for ranking in found)


class Overlap:
    """Scores a pair by its shared letters; breaks off after so many calls."""

    signature = "overlap"

    def __init__(self, *, calls: int = 10**6) -> None:
        self.calls = calls

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return [float(len(set(query) & set(text))) for query, text in pairs]


def texts_of(ids: Iterable[Any]) -> Mapping[Any, str]:
    held = {1: "abc", 2: "abd", 10: "xyz", 3: "a"}
    return {identifier: held[identifier] for identifier in ids}


def test_reranking_keeps_the_pool_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "PIECE", 1)
    queries = ["xyz", "abd", "q"]
    first = [[(1, 3.0), (2, 2.0), (10, 1.0)], [(1, 3.0), (2, 2.0), (3, 1.0)], []]
    again: dict[str, Any] = {"depth": 3, "k": 2, "folder": tmp_path, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        rerank.rerank(queries, first, texts_of, Overlap(calls=1), **again)
    scorer = Overlap()
    found = rerank.rerank(queries, first, texts_of, scorer, **again)
    assert found == [[(10, 3.0), (1, 0.0)], [(2, 3.0), (1, 2.0)], []]
    assert scorer.calls == 10**6 - 1


def test_a_cross_encoder_scores_pairs(tiny_bert: Path, tmp_path: Path) -> None:
    scorer = rerank.CrossEncoderScorer(str(tiny_bert), batch_size=2, max_length=16)
    found = rerank.rerank(
        ["ab"], [[(1, 3.0), (2, 2.0), (10, 1.0)]], texts_of, scorer, depth=2, k=5, folder=tmp_path, progress=False
    )
    assert {identifier for identifier, _ in found[0]} == {1, 2}
    alone = {i: float(scorer.score([("ab", texts_of([i])[i])])[0]) for i in (1, 2)}
    assert dict(found[0]) == pytest.approx(alone, abs=1e-5)


@pytest.mark.slow
def test_a_cross_encoder_on_several_devices(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("ab", f"text {number}") for number in range(7)]
    alone = rerank.CrossEncoderScorer(str(tiny_bert), batch_size=2, max_length=16).score(pairs)
    monkeypatch.setattr(rerank, "devices", lambda *_: ["cpu", "cpu"])
    together = rerank.CrossEncoderScorer(str(tiny_bert), batch_size=2, max_length=16).score(pairs)
    assert together == pytest.approx(alone, abs=1e-5)
