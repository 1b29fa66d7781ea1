"""METEOR (Banerjee and Lavie 2005) by nltk, with WordNet's synonyms from wherever this machine has them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DependencyError, unknown

DEBIAN = Path("/usr/share/wordnet")
SYNONYMS = ("wordnet", "none")
# The lexicographer files in their fixed order (wordnet's lexnames(5WN)); Debian's package leaves that list out.
_LEXNAMES = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
    "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
    "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
    "noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition "
    "verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social "
    "verb.stative verb.weather adj.ppl"
)
_WAYS = (
    "apt-get install wordnet-base (Debian, Ubuntu), or python -m nltk.downloader wordnet, or the setting "
    "meteor_download: on, or meteor: off"
)


class _NoSynonyms:
    """Stands for WordNet where a language has none: METEOR then matches words and stems."""

    def synsets(self, word: str) -> list[Any]:
        return []


class _Stemmer:
    """nltk's own, each word once: a text that repeats itself would wait for the same stem again and again."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer

        self.stem = lru_cache(maxsize=100_000)(PorterStemmer().stem)


@lru_cache(maxsize=1)
def _stemmer() -> _Stemmer:
    return _Stemmer()


def check_meteor(*, synonyms: str, download: bool = False) -> None:
    """Loads what METEOR needs, before anything is generated. Raises DependencyError with the ways to get it."""
    if synonyms not in SYNONYMS:
        raise unknown("synonyms", synonyms, SYNONYMS)
    _nltk()
    if synonyms == "wordnet":
        _wordnet(download)


def meteor(hypothesis: Sequence[str], references: Sequence[Sequence[str]], *, synonyms: str) -> float:
    """METEOR in 0..1 of a token sequence against its best reference (nltk: alpha 0.9, beta 3, gamma 0.5).

    synonyms: `wordnet` (English) or `none`. 0 for an empty hypothesis. Raises DependencyError without nltk or WordNet.

    >>> meteor("水 开 下 饺子".split(), ["水 开 下 饺子".split()], synonyms="none") > 0.99
    True
    """
    if not hypothesis:
        return 0.0
    wordnet = _wordnet(False) if synonyms == "wordnet" else _NoSynonyms()
    golds = [list(reference) for reference in references]
    return float(_nltk().meteor_score(golds, list(hypothesis), stemmer=_stemmer(), wordnet=wordnet))


def meteor_signature(*, synonyms: str) -> str:
    """For example `nltk3.9.1+wordnet3.0`."""
    import nltk

    return f"nltk{nltk.__version__}+{'wordnet' + _wordnet(False).get_version() if synonyms == 'wordnet' else 'none'}"


def _nltk() -> Any:
    try:
        from nltk.translate import meteor_score
    except ImportError as error:
        raise DependencyError(
            "METEOR needs nltk: pip install 'qilin-tasks[readers]', or --metadata meteor=off"
        ) from error
    return meteor_score


@lru_cache(maxsize=1)
def _wordnet(download: bool) -> Any:
    """nltk's reader over nltk's own data or Debian's files; with `download` nltk fetches its data where both lack."""
    import nltk

    reader = _from_nltk() or _from_debian()
    if reader is None and download:
        nltk.download("wordnet", quiet=True)
        reader = _from_nltk()
    if reader is None:
        raise DependencyError(f"METEOR needs WordNet, which is neither in nltk's data nor in {DEBIAN}: {_WAYS}")
    return reader


def _from_nltk() -> Any:
    import nltk

    for name in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            return _reader(nltk.data.find(name))
        except LookupError:
            continue
    return None


def _from_debian() -> Any:
    import nltk

    if not (DEBIAN / "data.noun").is_file():
        return None
    # nltk reads only below its data folders.
    if str(DEBIAN) not in nltk.data.path:
        nltk.data.path.append(str(DEBIAN))
    return _reader(str(DEBIAN))


def _reader(root: Any) -> Any:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class EnglishWordNet(WordNetCorpusReader):  # type: ignore[misc]
        def open(self, file: str) -> Any:
            if file == "lexnames":
                return io.StringIO("".join(f"{n}\t{name}\t0\n" for n, name in enumerate(_LEXNAMES.split())))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """Serves other languages, and would need a second copy of the data."""

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The multilingual functions are not available")
        return EnglishWordNet(root, None)
