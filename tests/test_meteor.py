"""METEOR by nltk: goldens, WordNet where it is, and what is said where it isn't."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qilin_tasks.errors import DependencyError, SettingError
from qilin_tasks.metrics import meteor as module
from qilin_tasks.metrics.meteor import check_meteor, meteor, meteor_signature


@pytest.fixture
def without_wordnet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    import nltk

    module._wordnet.cache_clear()
    monkeypatch.setattr(module, "DEBIAN", tmp_path)
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    yield
    module._wordnet.cache_clear()


def needs_wordnet() -> None:
    try:
        check_meteor(synonyms="wordnet")
    except DependencyError as error:
        pytest.skip(str(error))


def words(text: str) -> list[str]:
    return text.split()


def test_goldens_of_nltk() -> None:
    """nltk 3.10.4's documentation of `meteor_score` gives 0.6944 for these with WordNet; none of them is a synonym."""
    hypothesis = "It is a guide to action which ensures that the military always obeys the commands of the party"
    references = [
        "It is a guide to action that ensures that the military will forever heed Party commands",
        "It is the guiding principle which guarantees the military forces always being under the command of the Party",
        "It is the practical guide for the army always to heed the directions of the party",
    ]
    value = meteor(words(hypothesis), [words(reference) for reference in references], synonyms="none")
    assert value == pytest.approx(0.6944, abs=5e-5)


def test_identity_nothing_and_empty() -> None:
    assert meteor(["a", "b", "c"], [["a", "b", "c"]], synonyms="none") == pytest.approx(1 - 0.5 / 27)
    assert meteor(["a"], [["b"]], synonyms="none") == 0.0
    assert meteor([], [["b"]], synonyms="none") == 0.0


def test_synonyms_count_with_wordnet() -> None:
    """nltk looks stems up: `car` is one that is a word (its synset holds `auto`), `automobil` is none."""
    needs_wordnet()
    reference = [words("the auto is red")]
    assert meteor(words("the car is red"), reference, synonyms="wordnet") == pytest.approx(1 - 0.5 / 64)
    assert meteor(words("the car is red"), reference, synonyms="none") < 0.7
    assert meteor_signature(synonyms="wordnet").endswith("+wordnet3.0")


def test_absent_wordnet_is_said_before_generation(without_wordnet: None) -> None:
    with pytest.raises(DependencyError, match=r"apt-get install wordnet-base .* meteor_download: on, or meteor: off"):
        check_meteor(synonyms="wordnet")
    check_meteor(synonyms="none")


def test_download_on_request_that_fails_says_the_same(without_wordnet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    asked = []
    monkeypatch.setattr(nltk, "download", lambda name, quiet: asked.append(name))
    with pytest.raises(DependencyError, match="METEOR needs WordNet"):
        check_meteor(synonyms="wordnet", download=True)
    assert asked == ["wordnet"]


def test_unknown_synonyms() -> None:
    with pytest.raises(SettingError, match="synonyms 'thesaurus': choose from none, wordnet"):
        check_meteor(synonyms="thesaurus")
