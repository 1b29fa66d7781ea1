"""Ranks and scores that stand behind ids: `[1]: 2`, `[1] (score 0.3)`, `{"id": 1, "rank": 2}`; and what they order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qilin_tasks.parsing.ranking_forms import ascending

RANK_KEY = re.compile(r"rank|position|^order$|^place$|排名|名次|排序|位次|อันดับ|ลำดับ", re.IGNORECASE)
SCORE_KEY = re.compile(
    r"scor|relevan|rating|grade|confiden|probab|similar|point|weight|得分|分数|评分|打分|相关|置信|คะแนน|ความเกี่ยวข้อง",
    re.IGNORECASE,
)
_RANK = r"(?:rank(?:ed|ing|s)?|position|排名|名次|排序|อันดับ(?:ที่)?|ลำดับ(?:ที่)?|第(?= ?[0-9]{1,3} ?[名位]))"
_SCORE = (
    r"(?:(?:relevance|similarity|confidence)? ?(?:score[sd]?|rating|grade)|relevance|confidence|similarity|probability"
    r"|得分|分数|评分|打分|相关度|相关性|置信度|คะแนน)"
)
_NUMBER = r"(?P<number>-?[0-9]{1,4}(?:\.[0-9]{1,9})?)(?P<unit> ?(?:/ ?[0-9]{1,3}|%|分|st|nd|rd|th|[名位]))?"
_BEHIND = re.compile(
    rf"(?P<signs>[ :=(|~>,-]{{0,4}})(?:(?P<rank>{_RANK})|(?P<score>{_SCORE}))?(?: ?is)?(?P<more>[ :=#>(]{{0,4}})"
    rf"{_NUMBER}"
    r" ?[)|]?(?![^\W_]|\.[0-9]| ?[.)] ?\[| ?[<>])",
    re.IGNORECASE,
)
_WITHIN = re.compile(
    rf"(?:(?P<rank>{_RANK})|(?P<score>{_SCORE}))(?: ?(?:is|of|as))?[ :=#(-]{{0,4}}{_NUMBER}", re.IGNORECASE
)
_SCALAR = re.compile(
    r"\W{0,6}?(?:(?:rank|第|top)\W{0,3})?(-?[0-9]{1,9}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,3})?)(?![0-9])", re.IGNORECASE
)


@dataclass(frozen=True)
class Value:
    """A number behind an id; `kind` is rank, score, or number where it doesn't say."""

    kind: str
    number: float
    end: int = 0
    """Where it ends in its line."""


def value_after(line: str, place: int) -> Value | None:
    """The value that follows an id which ends at `place`; None where what follows is something else."""
    found = _BEHIND.match(line, place)
    if found is None:
        return None
    signs = re.search("[:=(|>]", found["signs"] + found["more"])
    # `[4] (2) [1] (3)` numbers what follows.
    if re.search("[(|]", found["signs"]) and line[found.end() : found.end() + 2].strip().startswith("["):
        return None
    words = line[found.end() : found.end() + 2].strip()[:1].isalpha()
    if not (found["rank"] or found["score"]) and (words or not signs):
        return None
    return Value(_kind(found), float(found["number"]), found.end())


def value_within(text: str) -> Value | None:
    """The rank or score that a text speaks of by name."""
    found = _WITHIN.search(text)
    return Value(_kind(found), float(found["number"]), found.end()) if found else None


def scalar(written: str) -> float | None:
    """The number that a JSON value or a table's cell begins with."""
    found = _SCALAR.match(written)
    return float(found[1]) if found else None


def by_value(ids: Sequence[int], values: Sequence[Value | None], *, numbered: bool) -> tuple[int, ...]:
    """The ids in the order that their values say; as written where not all have one of a kind.

    Unnamed whole numbers order what stands as it was shown only: they are ranks where they are 1..k, else scores.
    `numbered`: the list has ordinals, which count unless it stands as it was shown.
    """
    known = [value for value in values if value is not None]
    kinds = {value.kind for value in known}
    shown = ascending(tuple(ids))
    if len(ids) < 2 or len(known) < len(ids) or len(kinds) > 1 or (numbered and not shown):
        return tuple(ids)
    numbers = [value.number for value in known]
    if kinds == {"number"} and not shown:
        return tuple(ids)
    ranks = kinds == {"rank"} or (kinds == {"number"} and sorted(numbers) == list(range(1, len(ids) + 1)))
    return ordered(ids, numbers, ranks=ranks)


def ordered(ids: Sequence[int], numbers: Sequence[float], *, ranks: bool) -> tuple[int, ...]:
    """The ids by rank, smallest first, or by score, highest first; equals as written."""
    places = sorted(range(len(ids)), key=lambda place: numbers[place] if ranks else -numbers[place])
    return tuple(ids[place] for place in places)


def _kind(found: re.Match[str]) -> str:
    unit = (found["unit"] or "").strip()
    if found["rank"] or unit in ("st", "nd", "rd", "th", "名", "位"):
        return "rank"
    return "score" if found["score"] or unit or "." in found["number"] else "number"
