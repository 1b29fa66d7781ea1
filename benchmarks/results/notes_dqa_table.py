"""The table and the sentences of the step `notes_dqa`: contexts by models, and what the paired intervals carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_retriever_table import told

ABOUT = (
    "Questions of this project's own, each with a written answer that cites one or two of the notes. They were written "
    "with the notes at hand and share their words: the share of cited notes among the five shown is {found}. So the "
    "contexts differ in what stands beside the cited notes, hardly in whether these are there. ROUGE-L over "
    "characters, 95 % bootstrap intervals over questions. `lead` is the first five sentences of what is shown."
)


def notes_dqa_table(result: Mapping[str, Any]) -> str:
    """Contexts as rows, models as columns, then the paired differences in words."""
    rows = result["rows"]
    models = list(dict.fromkeys(row["model"] for row in rows))
    contexts = list(dict.fromkeys(row["context"] for row in rows))
    cell = {(row["model"], row["context"]): row for row in rows}
    lines = [
        ABOUT.format(found=", ".join(f"{name} {share:.2f}" for name, share in result["found"].items())),
        "",
        f"| context | {' | '.join(models)} |",
        f"|---|{'---|' * len(models)}",
    ]
    for context in contexts:
        shown = [cell[model, context] for model in models]
        values = " | ".join(f"{row['rouge_l']:.3f} ({row['low']:.3f} to {row['high']:.3f})" for row in shown)
        lines.append(f"| {context} | {values} |")
    lines.append("")
    lines += [
        f"* **{model}**: {'; '.join(told([row for row in result['differences'] if row['model'] == model]))}."
        for model in models
    ]
    return "\n".join(lines)


def plotted(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows as `interval_plot` takes them."""
    return [
        {"system": f"{row['model'][:14]}, {row['context'].partition(' (')[0]}", "mrr": row["rouge_l"], **_ends(row)}
        for row in result["rows"]
    ]


def _ends(row: Mapping[str, Any]) -> dict[str, float]:
    return {"low": row["low"], "high": row["high"]}
