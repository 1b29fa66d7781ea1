"""`--metadata` and its like: `key=value` pairs and JSON objects, read as the harness's newest release reads them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from typing import Any

from qilin_tasks.errors import SettingError

_OPEN, _CLOSE, _QUOTES = "[({", "])}", "\"'"


def parse_settings(parts: Sequence[str], *, flag: str) -> dict[str, Any]:
    """The settings of a flag's values (`a=1,b=2`, `a=1 b=2`, `{"a": 1}`), later ones over earlier ones.

    Values are numbers, true and false, Python literals, and text otherwise. Raises SettingError for anything else.
    """
    settings: dict[str, Any] = {}
    for part in parts:
        if part.lstrip().startswith("{"):
            settings |= _json(part, flag=flag)
            continue
        for pair in _pairs(part):
            key, equals, text = pair.partition("=")
            if not equals or not key:
                raise SettingError(f"{flag} {part!r}: {pair!r} is not key=value (or give one JSON object)")
            settings[key] = _value(text)
    return settings


def _json(text: str, *, flag: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SettingError(
            f"{flag} {text!r}: not a JSON object ({error}); names and texts need double quotes, as in "
            '{"note_chars": 100}, or write note_chars=100'
        ) from None
    return dict(value)


def _pairs(text: str) -> Iterator[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    part, depth, quote = "", 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth = max(depth - 1, 0)
        elif char == "," and depth == 0:
            if part:
                yield part
            part = ""
            continue
        part += char
    if part:
        yield part


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        # The harness takes a sign or a blank for the beginning of a float, not of an integer.
        if kind is float or text.isdecimal():
            try:
                return kind(text)
            except ValueError:
                continue
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
