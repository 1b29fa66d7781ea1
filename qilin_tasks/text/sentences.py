"""Sentence boundaries behind one function, as spans over the untouched text.

English, Chinese and Thai have rules of their own here, the other languages those of `sentence_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from qilin_tasks.errors import unknown
from qilin_tasks.text.languages import LANGUAGES
from qilin_tasks.text.sentence_rules import rule_cuts

Span = tuple[int, int]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Written before a name: a full stop after one of these never ends a sentence.
_NEVER_END = frozenset(
    _words(
        """
    adm brig c ca capt cf cmdr col cpl dr e.g fr gen gov hon i.e lt maj messrs mlle mme mr mrs ms mt
    msgr mx pres prof rep reps rev rt sen sens sgt supt ste st v vs viz
    """
    )
)
# Written before a number: only there does the full stop belong to them.
_BEFORE_NUMBER = frozenset(_words("approx art arts ch fig figs no nos nr p pp sec vol vols"))
# End a sentence or not; they do where the next word is one that likes to open sentences (see _OPENERS).
_MAY_END = frozenset(
    _words(
        """
    al apr assn ave aug blvd bros co corp dec dept dist ed eds est etc feb govt inc intl jan jr ltd mfg
    mts natl nov oct ph.d pl plc rd sep sept sq sr univ
    """
    )
)
# Words that open English sentences and seldom go on with a name: pronouns, articles, conjunctions, adverbs.
_OPENERS = frozenset(
    _words(
        """
    a about after all also although among an and another any as at because before both but by despite
    during each even every few finally first for from furthermore given had has have he her here his how
    however i if in indeed instead is it its later like many more moreover most my neither nevertheless
    no nor not now of on once one only or other our over perhaps several she since so some soon still
    such than that the their then there these they this those though through throughout thus to today
    under unlike until upon was we were what when where whereas whether which while who why with within
    without yet you your
    """
    )
)
_CLOSERS = "\"'”’»)]}」』）】》〉〕"
_END = re.compile(rf"[.!?…]+[{re.escape(_CLOSERS)}]*|\n\s*\n")
_REFERENCES = re.compile(r"(?:\[[^\[\]\n]{1,30}\]){0,20}(?=\s)")
_LAST_WORD = re.compile(r"[^\s(\[{\"“‘—–/]*$")
_FIRST_WORD = re.compile(r"[\s\"'“‘«(\[—–]*(\w+)?(\.?)")


def _english_cuts(text: str) -> Iterator[int]:
    for match in _END.finditer(text):
        mark = match.group()
        if mark.isspace():
            yield match.start()
        elif after := _REFERENCES.match(text, match.end()):
            mark = text[match.start() : after.end()]
            if _ends_english(text, mark, start=match.start(), end=after.end()):
                yield after.end()


def _ends_english(text: str, mark: str, *, start: int, end: int) -> bool:
    rest = text[end : end + 200]
    following = rest.lstrip()
    if not following:
        return True
    if following[0] in ".…" or following[0].islower():
        return False
    if mark[0] != "." or mark.startswith(".."):
        return True
    found = _LAST_WORD.search(text, max(0, start - 40), start)
    word = found.group() if found else ""
    key = word.lower()
    capitals = len(word) > 1 and word.isupper() and "." not in word  # `CA`, `BP`: no abbreviation that wants a stop
    if capitals:
        return True
    if key in _NEVER_END:
        return False
    if key in _BEFORE_NUMBER:
        return not following.lstrip("([").startswith(tuple("0123456789"))
    initials = re.fullmatch(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}|[A-Z]", word) is not None
    if not initials and key not in _MAY_END:
        return True
    # A bracket or a quotation that closes after the abbreviation ends its sentence: `(in the U.S.) The`.
    return len(mark) > 1 or _opens_english(rest)


def _opens_english(rest: str) -> bool:
    first = _FIRST_WORD.match(rest)
    if first is None or first.group(1) is None or first.group(2):  # `J. A. Hobson`: A is an initial
        return False
    return first.group(1)[0].isupper() and first.group(1).lower() in _OPENERS


_ZH_END = re.compile(rf"(?:[。！？!?…｡]+|(?<=[⺀-鿿豈-﫿])\.(?=\s|$|[⺀-鿿豈-﫿]))[{re.escape(_CLOSERS)}]*|\n+")
_ZH_GOES_ON = re.compile(r"[ \t]*[，、；：,;:]")


def _chinese_cuts(text: str) -> Iterator[int]:
    for match in _ZH_END.finditer(text):
        # `“真的吗？”，他问`: what the quotation closes is not the sentence.
        if not _ZH_GOES_ON.match(text, match.end()):
            yield match.end()


# Thai writes no mark at the end of a sentence: a space may part clauses, list items, names or numbers. A space ends a
# sentence here when the sentence so far is long enough and neither neighbour says that it goes on.
_TH_LONG = 70
_TH_LONG_BEFORE_OPENER = 45
_TH_NAME = 10
_TH_LOOK = 100
_TH_OPENERS = _words(
    """
    นอกจาก อย่างไรก็ตาม อย่างไรก็ดี ดังนั้น ต่อมา หลังจาก ทั้งนี้ แม้ว่า อีกทั้ง เนื่องจาก เมื่อ ในปี
    ในช่วง ในขณะ ในทาง ตามที่ สำหรับ ในที่สุด ปัจจุบัน ในปัจจุบัน ขณะที่ เขา เธอ พวกเขา มัน ตัวอย่าง
    ส่วน ด้วยเหตุ จากนั้น นี่ นั่น สิ่งนี้ สิ่งเหล่านี้ การ ความ
    """
)
_TH_GOES_ON = _words(
    """
    ซึ่ง ที่ และ หรือ โดย แต่ เพื่อ ของ กับ จาก เป็น ได้ จน รวม เช่น ว่า คือ อัน แก่ ต่อ ถึง ตั้งแต่
    ระหว่าง ด้วย แล้ว ไม่ มี ให้ อยู่ จะ ก็ ถูก ๆ ฯ พร้อม ทำให้ เพราะ ตลอด ไป มา ไว้ ขึ้น ลง นี้ นั้น
    เหล่า เท่า ทั้ง
    """
)
_TH_WANTS_MORE = _words(
    """
    ใน ที่ ของ ว่า คือ และ หรือ กับ จาก โดย เป็น แก่ ต่อ ถึง ระหว่าง ด้วย มี ให้ ได้ชื่อว่า เรียกว่า
    เช่น ปี ค.ศ. พ.ศ. ซึ่ง แต่ เพื่อ ประมาณ เพียง จำนวน ชื่อ อัน กว่า ราว
    """
)
_TH_SPACE = re.compile(r"\s+")
_TH_BRACKET = re.compile(r"[(\[“{)\]”}]")
_TH_LETTER = re.compile(r"[\u0e01-\u0e4e]")
_TH_MARK = re.compile(rf"[^\s.]{{5,}}\.[{re.escape(_CLOSERS)}]*$|[!?…][{re.escape(_CLOSERS)}]*$")


def _thai_cuts(text: str) -> Iterator[int]:
    begin = len(text) - len(text.lstrip())
    depth = 0
    scanned = 0
    for match in _TH_SPACE.finditer(text):
        for bracket in _TH_BRACKET.findall(text, scanned, match.start()):
            depth += 1 if bracket in "([“{" else -1
        depth = max(depth, 0)
        scanned = match.end()
        length = match.start() - begin
        before, rest = text[match.start() - min(length, _TH_LOOK) : match.start()], text[match.end() : match.end() + 60]
        if "\n" in match.group() or (depth == 0 and _ends_thai(before, rest, length=length)):
            yield match.start()
            begin, depth = match.end(), 0


def _ends_thai(before: str, rest: str, *, length: int) -> bool:
    """`before` is the end of the sentence so far, which has `length` characters."""
    if not before or not rest:
        return False
    if _TH_MARK.search(before[-40:]):
        return True
    if not _TH_LETTER.match(rest) or rest.startswith(_TH_GOES_ON) or before.endswith(_TH_WANTS_MORE):
        return False
    if rest.startswith(_TH_OPENERS):
        return length >= _TH_LONG_BEFORE_OPENER
    shortest = min(len(before.split()[-1]), len(rest.split()[0]))
    return length >= _TH_LONG and shortest >= _TH_NAME


_CUTS: dict[str, Callable[[str], Iterator[int]]] = {
    "en": _english_cuts,
    "ja": _chinese_cuts,
    "th": _thai_cuts,
    "zh": _chinese_cuts,
}


def sentence_spans(text: str, *, language: str) -> list[Span]:
    """The sentences of a text as `(start, end)` character offsets, in order, without the white space around them.

    language: one of LANGUAGES. Spans never overlap and together hold every character that isn't white space; a text
    without any gives []. Raises SettingError for another language. Measured against the official boundaries of
    XQuAD-en in lm_eval_tasks/reqa/README.md.
    """
    if language not in LANGUAGES:
        raise unknown("language", language, LANGUAGES)
    own = _CUTS.get(language)
    cuts = own(text) if own is not None else rule_cuts(text, language=language)
    spans = []
    begin = 0
    for cut in [*cuts, len(text)]:
        piece = text[begin:cut]
        inner = piece.strip()
        if inner:
            start = begin + len(piece) - len(piece.lstrip())
            spans.append((start, start + len(inner)))
        begin = cut
    return spans


def split_sentences(text: str, *, language: str) -> list[str]:
    """The sentences of a text, as strings (see sentence_spans)."""
    return [text[start:end] for start, end in sentence_spans(text, language=language)]
