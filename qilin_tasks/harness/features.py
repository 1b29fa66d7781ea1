"""A document's TypedDict as the columns of a data set, so that an empty list keeps its type."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_SCALARS = {int: "int64", str: "string", float: "float64", bool: "bool"}


def features_of(document: type) -> Any:
    """`datasets.Features` of a TypedDict whose fields are numbers, texts, other TypedDicts, or lists of these.

    A scalar may be None (`bool | None`): every column of a data set can hold nulls.
    """
    import datasets

    def column(kind: Any) -> Any:
        if get_origin(kind) is UnionType:
            (kind,) = (one for one in get_args(kind) if one is not NoneType)
        if get_origin(kind) is list:
            return [column(get_args(kind)[0])]
        if kind in _SCALARS:
            return datasets.Value(_SCALARS[kind])
        return {name: column(inner) for name, inner in get_type_hints(kind).items()}

    return datasets.Features(column(document))
