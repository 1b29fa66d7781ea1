"""Chains in JSON: lists of ids, objects with ranks or scores, maps from ids to ranks, however nested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from qilin_tasks.parsing.json_values import Found, Pairs, Written, json_values
from qilin_tasks.parsing.ranking_forms import Chain, Form
from qilin_tasks.parsing.ranking_tables import ID_KEY, id_of
from qilin_tasks.parsing.ranking_values import RANK_KEY, SCORE_KEY, Value, ordered, scalar

_NESTED = re.compile(r"\[\s{0,8}[\[(]")
_TUPLE = re.compile(r"\( ?([0-9]{1,9}) ?, ?([0-9.]{1,20}) ?\)")
_BESIDE = re.compile(r"[\s,;]{0,8}(?:(?:[-*]|[0-9]{1,3}[.)])\s{0,8})?")
_RANK_NAME = re.compile(
    r"\W*(?:(?:rank|top|place|position|no|第|อันดับ|ลำดับ)[ _.#-]*(?P<number>[0-9]{1,3})\W*[名位]?"
    r"|(?P<count>[0-9]{1,3})(?:st|nd|rd|th|[名位]).*"
    r"|.{0,12}(?:first|second|third|fourth|fifth|best|worst|最|most|least).{0,20})",
    re.IGNORECASE,
)
_ID_NAME = re.compile(r"[^\w\[(#]*(?P<word>[^\W\d]*)[ :.#-]*[\[(#]*(?P<id>[0-9]{1,9})[\W_]*")
_MARKED = re.compile(r"\W*(?:\[ ?#?[0-9]{1,9} ?\]|[^\W\d_]{1,16}[ _-]?[0-9]{1,9})\W*")
_SEVERAL = re.compile(r"[0-9]\W*[<>,;\n]|[0-9][^0-9]{1,80}[0-9]")
_ENOUGH, _SHORT = 0.6, 24

Part = str | Chain


def object_parts(text: str) -> list[Part]:
    """The text with a chain in the place of each JSON value that holds one, and with what is quoted in it."""
    if "[(" in text:
        text = _TUPLE.sub(r"[\1, \2]", text)
    if "{" not in text and not _NESTED.search(text):
        return [text]
    parts: list[Part] = []
    end = 0
    for found in _neighbours(json_values(text), text):
        pieces = list(_pieces(found.value, ""))
        single = isinstance(found.value, list) and not any(
            isinstance(part, str) or len(part.ids) > 1 for part in pieces if part
        )
        if any(pieces) and not single:
            parts += [text[end : found.start], *pieces]
            end = found.end
    return [*parts, text[end:]]


def _neighbours(values: Sequence[Found], text: str) -> Iterator[Found]:
    """Objects that stand side by side, as JSON lines or items of a list, as one list."""
    place = 0
    while place < len(values):
        last = place
        while last + 1 < len(values) and all(isinstance(values[i].value, Pairs) for i in (last, last + 1)):
            if not _BESIDE.fullmatch(text, values[last].end, values[last + 1].start):
                break
            last += 1
        group: list[Written] = [found.value for found in values[place : last + 1]]
        value = group if len(group) > 1 else group[0]
        yield Found(value, values[place].start, values[last].end)
        place = last + 1


def _pieces(value: Written, key: str) -> Iterator[Part]:
    """Chains, and texts with the key that they stand under, in the order in which they are written."""
    if isinstance(value, str):
        if re.search("[0-9]", value):
            text = value.replace("\\n", "\n")
            yield f"{_named(key)}\n{text}" if _SEVERAL.search(text) else f"{_named(key)} {text}"
        return
    chain = _map(value, key) if isinstance(value, Pairs) else _list(value, key)
    if chain:
        yield _named(key)
        yield chain
    else:
        for name, inner in value.items if isinstance(value, Pairs) else [(key, item) for item in value]:
            yield from _pieces(inner, name)


def _named(key: str) -> str:
    return f"{key}:" if key else ""


def _map(value: Pairs, key: str) -> Chain | None:
    """A map from ids to ranks or scores, or from ranks to ids; or one object that has an id."""
    names = [name for name, _ in value.items]
    if not names:
        return None
    ranked = [_RANK_NAME.fullmatch(name) for name in names]
    held = [id_of(inner) if isinstance(inner, str) else None for _, inner in value.items]
    if len(names) > 1 and all(ranked) and None not in held:
        places = [int(found["number"] or found["count"] or 0) for found in ranked if found]
        return Chain(ordered([i for i in held if i is not None], places, ranks=True))
    ids = _ids_of_names(names)
    if ids is None:
        identifier, rank = _record(value)
        return Chain((identifier,)) if identifier is not None and rank is not None else None
    if all(isinstance(inner, str) and _MARKED.fullmatch(inner) for _, inner in value.items):
        return Chain(ordered([i for i in held if i is not None], ids, ranks=True))
    return _ordered(list(zip(ids, [_value(inner) for _, inner in value.items], strict=True)), key)


def _ids_of_names(names: Sequence[str]) -> list[int] | None:
    """The ids that all keys of a map are, with one word before them or none."""
    found = [_ID_NAME.fullmatch(name) for name in names]
    words = {match["word"].lower() for match in found if match}
    if len(words) != 1 or not all(found) or RANK_KEY.search(next(iter(words))):
        return None
    return [int(match["id"]) for match in found if match]


def _list(value: Sequence[Written], key: str) -> Chain | None:
    if not value:
        return None
    if all(isinstance(item, str) for item in value):
        return _scalars([item for item in value if isinstance(item, str)], key)
    if all(isinstance(item, Pairs) for item in value):
        objects = [item for item in value if isinstance(item, Pairs)]
        wordy = any(isinstance(inner, str) and len(inner) > _SHORT for item in objects for _, inner in item.items)
        return _ordered([_record(item) for item in objects], key, form=Form.PROSE if wordy else Form.PLAIN)
    rows = [item for item in value if isinstance(item, list) and item and all(isinstance(cell, str) for cell in item)]
    return _rows(rows, key) if len(rows) == len(value) else None


def _scalars(items: list[str], key: str) -> Chain | None:
    if SCORE_KEY.search(key) and not RANK_KEY.search(key):
        scores = [number for number in map(scalar, items) if number is not None]
        shown = range(1, len(items) + 1)
        return Chain(ordered(shown, scores, ranks=False)) if len(scores) == len(items) > 1 else None
    if any(_SEVERAL.search(item) and re.search("[<>,]", item) for item in items):
        return None
    ids = [i for i in map(id_of, items) if i is not None]
    short = all(len(item) <= _SHORT for item in items)
    return Chain(tuple(ids), Form.PLAIN if short else Form.LIST) if len(ids) >= len(items) * _ENOUGH else None


def _rows(rows: list[list[Written]], key: str) -> Chain | None:
    """`[[3, 0.9], [1, 0.2]]` are ids with values, `[[3], [1, 2]]` groups of ids."""
    cells = [[cell for cell in row if isinstance(cell, str)] for row in rows]
    flat = [id_of(cell) for row in cells for cell in row]
    if None not in flat and len(set(flat)) == len(flat):
        return Chain(tuple(i for i in flat if i is not None))
    return _ordered([(id_of(row[0]), _value(row[1]) if len(row) > 1 else None) for row in cells], key)


def _record(item: Pairs) -> tuple[int | None, Value | None]:
    """The id of an object and its rank, else its score."""
    identifiers: list[tuple[bool, int]] = []
    rank = score = marked = None
    for name, inner in item.items:
        number = scalar(inner) if isinstance(inner, str) else None
        if RANK_KEY.search(name):
            rank = Value("rank", number) if number is not None else rank
        elif SCORE_KEY.search(name):
            score = Value("score", number) if number is not None else score
        elif ID_KEY.search(name):
            identifier = id_of(inner) if isinstance(inner, str) else _inner_id(inner)
            if identifier is not None:
                identifiers.append((not re.search("id|编号|หมายเลข", name, re.IGNORECASE), identifier))
        elif isinstance(inner, str) and marked is None and re.match(r"\W{0,3}\[[0-9]{1,9}\]", inner):
            marked = id_of(inner)
    if not identifiers and len(item.items) == 1:
        ids, value = _ids_of_names([item.items[0][0]]), _value(item.items[0][1])
        return (ids[0] if ids else None), value
    return (min(identifiers, key=lambda found: found[0])[1] if identifiers else marked), rank or score


def _inner_id(value: Written) -> int | None:
    return _record(value)[0] if isinstance(value, Pairs) else None


def _value(written: Written) -> Value | None:
    """The rank or the score that stands behind an id."""
    if isinstance(written, Pairs):
        return _record(written)[1]
    if isinstance(written, list):
        return _value(written[0]) if written and isinstance(written[0], str) else None
    number = scalar(written)
    if number is None:
        return None
    kind = "rank" if RANK_KEY.search(written) else "number" if number.is_integer() and "." not in written else "score"
    return Value(kind, number)


def _ordered(pairs: Sequence[tuple[int | None, Value | None]], key: str, *, form: Form = Form.PROSE) -> Chain | None:
    """The ids by their ranks, smallest first, or scores, highest first. Plain numbers are ranks where they are 1..k."""
    known = [(i, value) for i, value in pairs if i is not None]
    if not known or len(known) < len(pairs) * _ENOUGH:
        return None
    valued = [(i, value) for i, value in known if value is not None]
    if len(valued) < max(len(known) * _ENOUGH, 1):
        return Chain(tuple(i for i, _ in known), form)
    kinds = {value.kind for _, value in valued}
    numbers = [value.number for _, value in valued]
    counted = sorted(numbers) in ([*range(1, len(numbers) + 1)], [*range(len(numbers))])
    named = "score" if SCORE_KEY.search(key) else "rank" if RANK_KEY.search(key) else ""
    ranks = kinds == {"rank"} or (kinds == {"number"} and (named == "rank" or (counted and named != "score")))
    left = [i for i, value in known if value is None]
    return Chain((*ordered([i for i, _ in valued], numbers, ranks=ranks), *left))
