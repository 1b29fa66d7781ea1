"""Chains in JSON-like objects: `{"id": 3, "rank": 1}`, one object a candidate."""

from __future__ import annotations

import re

from qilin_tasks.parsing.ranking_chains import Chain

_OBJECT = re.compile(r"\{([^{}]{1,4000})\}")
_KIND = r"(?:doc|document|passage|note|candidate|item|sentence)"
_ID = re.compile(
    rf"(?:^|[,\s])(?:id|index|{_KIND}(?:[_ ]?(?:id|index|number))?|编号|序号)\s*:\s*\[?\s*(-?[0-9]{{1,9}})(?![0-9.])",
    re.IGNORECASE,
)
_RANK = re.compile(r"(?:^|[,\s])(?:rank|position|order|排名|名次)\s*:\s*([0-9]{1,9})(?![0-9.])", re.IGNORECASE)


def object_chains(text: str) -> list[Chain]:
    """The ids of the objects in normalised text as one chain: by their `rank` where all have one, else as written."""
    items = []
    for found in _OBJECT.finditer(text):
        identifier = _ID.search(found[1])
        rank = _RANK.search(found[1])
        if identifier:
            items.append((int(rank[1]) if rank else None, int(identifier[1])))
    if not items:
        return []
    if all(rank is not None for rank, _ in items):
        items.sort(key=lambda item: item[0] or 0)
    return [Chain(tuple(identifier for _, identifier in items), structured=True)]
