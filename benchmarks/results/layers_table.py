"""The table and the sentences of the step `layers`: what each layer of BERTScore's encoder sees, and which to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PEOPLE = (
    "`people` is Spearman's correlation of the difference between two answers' F1 with what people preferred "
    "({labels} judgements of RAGChecker's English pairs)."
)


def table(result: Mapping[str, Any]) -> str:
    """Losses as a share of the loss to an unrelated note: what a reader loses most should cost most."""
    names = [key.removeprefix("loss ") for key in result["rows"][0] if key.startswith("loss ")]
    labelled = result.get("labels", 0) > 0
    lines = [
        "BERTScore's F1 falls by this share of its fall to an unrelated note; `unrelated` is F1 itself.",
        *([PEOPLE.format(labels=result["labels"])] if labelled else []),
        "",
        f"| layer | {' | '.join(names)} | unrelated | 95 % |{' people | 95 % |' if labelled else ''}",
        f"|---:|{'---:|' * len(names)}---:|---|{'---:|---|' if labelled else ''}",
    ]
    for row in result["rows"]:
        losses = " | ".join(f"{row[f'loss {name}']:.3f}" for name in names)
        interval = f"{row['unrelated low']:.3f} to {row['unrelated high']:.3f}"
        agrees = (
            f" {row['spearman']:.3f} | {row['spearman low']:.3f} to {row['spearman high']:.3f} |" if labelled else ""
        )
        lines.append(f"| {row['layer']} | {losses} | {row['unrelated']:.3f} | {interval} |{agrees}")
    return "\n".join([*lines, "", verdict(result)])


def verdict(result: Mapping[str, Any]) -> str:
    """Which layer weighs what most, and what follows for the choice."""
    rows = result["rows"]

    def most(name: str) -> Mapping[str, Any]:
        return max(rows, key=lambda row: row[f"loss {name}"])

    meaning, order = most("negated"), most("shuffled")
    said = [
        (
            f"Negation costs most at layer {meaning['layer']} ({meaning['loss negated']:.3f} of an unrelated note's "
            f"loss; wrong digits {meaning['loss digits']:.3f}), another order at layer {order['layer']} "
            f"({order['loss shuffled']:.3f})."
        )
    ]
    if all(row["loss negated"] < row["loss shuffled"] for row in rows):
        said.append("At every layer a note that says the opposite loses less than the same facts in another order.")
    if result.get("labels", 0) == 0:
        said.append(
            f"By these edits alone one would take layer {meaning['layer']}; they don't show that its scores follow "
            "people's labels best."
        )
    else:
        best, there = most_like_people(rows), f"{meaning['spearman']:.3f} at layer {meaning['layer']}"
        said.append(
            f"People's preferences are followed best at layer {best['layer']} ({best['spearman']:.3f}, "
            f"{best['spearman low']:.3f} to {best['spearman high']:.3f}; {there})."
        )
        near = [row["layer"] for row in rows if row["spearman"] >= best["spearman low"]]
        said.append(
            f"One would take layer {chosen(rows)['layer']}: of the layers within that interval ({_list(near)}) the one "
            "at which negation costs most."
        )
    said.append("No layer makes BERTScore a check of facts.")
    return " ".join(said)


def most_like_people(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The layer whose scores follow people's labels best."""
    return max(rows, key=lambda row: row["spearman"])


def chosen(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of the layers that follow people nearly as well as the best (within its interval), where negation costs most."""
    least = most_like_people(rows)["spearman low"]
    return max((row for row in rows if row["spearman"] >= least), key=lambda row: row["loss negated"])


def _list(layers: Sequence[int]) -> str:
    return ", ".join(map(str, layers))
