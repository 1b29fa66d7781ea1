"""Text to index terms, as Anserini's analyzers do it: Chinese bigrams, English stems, segmented Thai."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import pairwise

from qilin_tasks.errors import DependencyError, unknown
from qilin_tasks.text.languages import LANGUAGES
from qilin_tasks.text.standard_tokenizer import standard_tokens
from qilin_tasks.text.stop_words import CJK_STOP_WORDS, ENGLISH_STOP_WORDS, THAI_STOP_WORDS

Analyzer = Callable[[str], list[str]]

_HALFWIDTH_KANA = (
    "・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゙゚"
)
_VOICED = dict(
    zip("ウカキクケコサシスセソタチツテトハヒフヘホヽ", "ヴガギグゲゴザジズゼゾダヂヅデドバビブベボヾ", strict=True)
)
_SEMI_VOICED = dict(zip("ハヒフヘホ", "パピプペポ", strict=True))


# PyThaiNLP's rejoining of numbers is quadratic in a run of digits.
_LONG_NUMBER = re.compile(r"(\d{300,})")


class _SimpleLower(dict[int, int]):
    """`str.translate` table of Java's Character.toLowerCase: one character for one, whatever stands around it."""

    def __missing__(self, code: int) -> int:
        lower = chr(code).lower()
        self[code] = ord(lower) if len(lower) == 1 else ord(lower[0])
        return self[code]


_LOWER = _SimpleLower()


def lower_case(text: str) -> str:
    """Lower case, character by character (LowerCaseFilter): `İ` gives `i`, a final capital sigma gives `σ`."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def fold_width(text: str) -> str:
    """Full-width ASCII and half-width kana in their usual width, as Lucene's CJKWidthFilter folds them."""
    if text.isascii():
        return text
    folded: list[str] = []
    for character in text:
        code = ord(character)
        if 0xFF01 <= code <= 0xFF5E:
            folded.append(chr(code - 0xFEE0))
        elif 0xFF65 <= code <= 0xFF9F:
            marks = {0xFF9E: _VOICED, 0xFF9F: _SEMI_VOICED}.get(code, {})
            if folded and folded[-1] in marks:
                folded[-1] = marks[folded[-1]]
            else:
                folded.append(_HALFWIDTH_KANA[code - 0xFF65])
        else:
            folded.append(character)
    return "".join(folded)


def _bigrams(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for left, right in pairwise(run):
        yield left + right


def analyze_zh(text: str) -> list[str]:
    """Terms of Lucene's CJKAnalyzer (Anserini `-language zh`): bigrams of adjacent CJK characters, other words
    whole, width and case folded, English stop words left out; a CJK character that stands alone is a term.
    """
    terms: list[str] = []
    run: list[str] = []
    run_end = -1
    for start, end, is_cjk in standard_tokens(text, single=False):
        if run and (not is_cjk or start != run_end):
            terms.extend(_bigrams("".join(run)))
            run.clear()
        folded = lower_case(fold_width(text[start:end]))
        if is_cjk:
            run.append(folded)
            run_end = end
        else:
            terms.append(folded)
    terms.extend(_bigrams("".join(run)))
    return [term for term in terms if term not in CJK_STOP_WORDS]


def _without_possessive(word: str) -> str:
    return word[:-2] if word[-1:] in ("s", "S") and word[-2:-1] in ("'", "’", "＇") else word


@cache
def _english_term() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stemmer = PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)

    @lru_cache(maxsize=1_000_000)
    def term(word: str) -> str:
        lowered = lower_case(_without_possessive(word))
        return "" if lowered in ENGLISH_STOP_WORDS else str(stemmer.stem(lowered, to_lowercase=False))

    return term


def analyze_en(text: str) -> list[str]:
    """Terms of Anserini's default English analyzer: possessive s dropped, lower case, Lucene's 33 stop words,
    Porter stemming (the author's extended version, which Lucene carries).
    """
    term = _english_term()
    return [word for start, end, _ in standard_tokens(text) if (word := term(text[start:end]))]


@cache
def _thai_segmenter() -> Callable[[str], list[str]]:
    try:
        from pythainlp.tokenize import word_tokenize
    except ImportError as error:
        raise DependencyError(
            "language 'th' needs the package pythainlp: pip install 'qilin-tasks[retrieval]'"
        ) from error
    return lambda text: [
        word
        for piece in _LONG_NUMBER.split(text)
        for word in (
            [piece] if _LONG_NUMBER.fullmatch(piece) else word_tokenize(piece, engine="newmm", keep_whitespace=False)
        )
    ]


def analyze_th(text: str) -> list[str]:
    """Terms of Thai text: words of PyThaiNLP's newmm, lower case, decimal digits as ASCII, Lucene's Thai stop
    words left out (Lucene's ThaiAnalyzer with a kept segmenter in place of the JDK's).
    """
    terms = []
    for segment in _thai_segmenter()(text):
        for start, end, _ in standard_tokens(segment):
            lowered = lower_case(segment[start:end])
            word = lowered
            if not (lowered.isascii() or lowered.isalpha()):
                word = "".join(str(int(mark)) if mark.isdecimal() else mark for mark in lowered)
            if word not in THAI_STOP_WORDS:
                terms.append(word)
    return terms


def analyze_words(text: str) -> list[str]:
    """Terms of Lucene's StandardAnalyzer without stop words: words of UAX 29 in compatibility form and lower case."""
    folded = unicodedata.normalize("NFKC", text)
    return [lower_case(folded[start:end]) for start, end, _ in standard_tokens(folded)]


#: Lucene's CJKAnalyzer serves Chinese, Japanese and Korean; languages without an analyzer of their own get words.
ANALYZERS: dict[str, Analyzer] = {
    **dict.fromkeys(LANGUAGES, analyze_words),
    **dict.fromkeys(("ja", "ko", "zh"), analyze_zh),
    "en": analyze_en,
    "th": analyze_th,
}


def analyzer(language: str) -> Analyzer:
    """The function from text to terms (with repeats, in order) for a language; SettingError for others."""
    try:
        return ANALYZERS[language]
    except KeyError:
        raise unknown("language", language, ANALYZERS) from None
