"""Single values of the published data, however they were exported, in their plain types."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

ABSENT = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>"})


class UnreadableValueError(ValueError):
    """A value that can't be read; the caller adds the file, the row and the column."""


class _NamedNumbers(ast.NodeTransformer):
    """`nan` and `inf` as Python prints them inside lists, turned into constants for ast.literal_eval."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in {"nan", "inf"}:
            return ast.copy_location(ast.Constant(float(node.id)), node)
        if node.id == "null":
            return ast.copy_location(ast.Constant(None), node)
        return node


def is_absent(value: object) -> bool:
    """None, NaN, and the words exporters write for them."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in ABSENT


def parse_literal(text: str) -> Any:
    """A JSON or Python-literal string as a value (json.loads, else ast.literal_eval; nothing is executed)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        tree = _NamedNumbers().visit(ast.parse(text.strip(), mode="eval"))
        return ast.literal_eval(tree)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        shown = text if len(text) <= 60 else text[:60] + "…"
        raise UnreadableValueError(f"{shown!r} is neither JSON nor a Python literal") from None


def as_int(value: Any) -> int:
    """An id: an integer, or a float or a string that holds one."""
    if isinstance(value, bool) or value is None:
        raise UnreadableValueError(f"{value!r} is not an integer")
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UnreadableValueError(f"{value!r} is not an integer") from None
    if not number.is_integer():  # also NaN and the infinities
        raise UnreadableValueError(f"{value!r} is not an integer")
    return int(number)


def as_number(value: Any) -> int | float | None:
    """A number, an int where it is whole; None for null and NaN."""
    if is_absent(value):
        return None
    if isinstance(value, int):
        return int(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UnreadableValueError(f"{value!r} is not a number") from None
    return int(number) if number.is_integer() else number


def as_list(value: Any) -> list[Any]:
    """A list, from a list or its JSON or Python-literal string; null and blank text are the empty list."""
    if isinstance(value, str):
        value = None if is_absent(value) else parse_literal(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return []
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, list):
        raise UnreadableValueError(f"a list is expected, not {type(value).__name__} {value!r:.60}")
    return value
