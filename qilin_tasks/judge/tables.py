"""A judgement as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from qilin_tasks.judge.checks import Check
from qilin_tasks.judge.outcome import Judgement, Measured, Row


def verdict(made: Judgement) -> str:
    """One sentence: whether the numbers may be used."""
    failed = [one for one in made["checks"] if not one["passed"]]
    if failed:
        return f"This judge is bad: its scores say nothing of the answers ({'; '.join(map(said, failed))})."
    known = {one["name"] for one in made["checks"]}
    if not known & {"people_kappa", "people_spearman"}:
        return "No check failed, but nobody compared this judge with people (--labels)."
    return "No check failed."


def said(one: Check) -> str:
    """`kappa with people .10, at least .40`."""
    value = "not known" if one["value"] is None else f"{one['value']:.3f}"
    return f"{one['about']}: {value}, {'at least' if one['least'] else 'at most'} {one['limit']:g}"


def cell(measured: Measured | None) -> str:
    """`.512 (.480 to .544)`."""
    if measured is None:
        return "–"
    if measured["low"] is None:
        return f"{measured['value']:.3f}"
    return f"{measured['value']:.3f} ({measured['low']:.3f} to {measured['high']:.3f})"


def heads(made: Judgement) -> list[str]:
    """The columns of the table of results."""
    names = list(dict.fromkeys(name for row in made["rows"] for name in row["values"]))
    labelled = any(row["labels"] for row in made["rows"])
    return ["task", "answers of", "scored", *names, *(["corrected by labels", "labels alone"] if labelled else [])]


def cells(row: Row, columns: list[str]) -> list[str]:
    """A row of that table."""
    names = [name for name in columns[3:] if name not in ("corrected by labels", "labels alone")]
    values = [cell(row["values"].get(name)) for name in names]
    people = [f"{cell(row['corrected'])}, {row['labels']} labels", cell(row["people"])]
    return [
        row["task"],
        " against ".join(row["models"]),
        f"{row['scored']} of {row['answers']}",
        *values,
        *(people if "labels alone" in columns else []),
    ]


def markdown(made: Judgement) -> str:
    """The whole judgement."""
    return "\n".join(_lines(made)) + "\n"


def _lines(made: Judgement) -> Iterator[str]:
    yield f"# Answers judged by {made['judge']} ({made['mode']})"
    yield f"\n**{verdict(made)}**\n"
    columns = heads(made)
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for row in made["rows"]:
        yield f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells(row, columns))} |"
    yield (
        f"\n{made['documents']} documents; means with 95 % intervals. Answers that the judge could not be read on are "
        f"counted and have no score; {made['cut']} answers were cut to what a judge is shown."
    )
    yield "\n## Can this judge be trusted?\n"
    yield "| check | value | bound | |"
    yield "|---|---|---|---|"
    for one in made["checks"]:
        value = "not known" if one["value"] is None else f"{one['value']:.3f}"
        bound = f"{'≥' if one['least'] else '≤'} {one['limit']:g}"
        yield f"| {one['about']} | {value} | {bound} | {'passed' if one['passed'] else '**failed**'} |"
    yield f"\n`{made['signature']}`"
