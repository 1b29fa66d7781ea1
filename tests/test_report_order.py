"""The order of a report's systems: every table and plot of a board has that of its standings."""

from __future__ import annotations

import re
from pathlib import Path

from support.runs import write_run

from qilin_tasks.report.build import build

#: By name, zebra comes last and ten before two; by the first metric zebra leads; by the second it is the worst.
QUALITY = {"ten": (0.2, 0.4), "two": (0.3, 0.5), "zebra": (0.6, 0.1), "absent": (0.0, 0.6)}


def test_systems_stand_in_one_order_the_best_first(tmp_path: Path) -> None:
    """Ordered by the headline metric of the condition that the page opens with; who has no number there comes last."""
    docs = [{"doc_key": key, "query": "q", "reference": "r"} for key in range(40)]
    for condition in ("na", "bm25"):
        for model, (first, second) in {**QUALITY, "lead": (0.9, 0.9)}.items():
            if model == "absent" and condition == "bm25":
                continue
            write_run(
                tmp_path / "runs" / condition / model,
                model=model,
                task=f"qilin_dqa_{condition}",
                docs=docs,
                responses=["x" * (1 + key) for key in range(40)],
                scores=[
                    {"rouge_l": first + key % 5 / 100, "bertscore_f1": second + key % 3 / 100} for key in range(40)
                ],
                signature=f"dqa|ctx:{condition}|data:d|n:40|v:1.0",
                metadata={"context": condition},
                source="qilin-baseline" if model == "lead" else "vllm",
            )
    build([tmp_path / "runs"], tmp_path / "out", title="order", resamples=200, seed=1)
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    tables = re.findall(r"<h3>(?:rouge_l|bertscore_f1) <span.*?</table>", page, flags=re.DOTALL)
    plots = re.findall(r'aria-label="[a-z0-9_]+: mean and 95.*?</svg>', page, flags=re.DOTALL)
    assert len(tables) == len(plots) == 2
    expected = ["zebra", "two", "ten", "absent", "lead"]
    for table in tables:
        names = re.findall(r"<tr[^>]*><td>([a-z]+)<", table)
        assert [name for name in names if name in expected] == expected
    for plot in plots:
        assert re.findall(r'class="label"[^>]*>([a-z]+)<', plot) == expected
    lifts = page[page.index("Lift over no context") :]
    assert list(dict.fromkeys(re.findall(r"<tr><td>(zebra|two|ten|lead)<", lifts)))[:3] == ["zebra", "two", "ten"]


def test_a_long_table_of_lifts_is_folded(tmp_path: Path) -> None:
    docs = [{"doc_key": key, "query": "q", "reference": "r"} for key in range(20)]
    for models, folded in ((3, False), (30, True)):
        for condition in ("na", "bm25"):
            for model in range(models):
                write_run(
                    tmp_path / f"{models}" / condition / f"m{model}",
                    model=f"m{model}",
                    task=f"qilin_dqa_{condition}",
                    docs=docs,
                    responses=["x"] * 20,
                    scores=[{"rouge_l": (key + model) % 7 / 10} for key in range(20)],
                    signature=f"dqa|ctx:{condition}|data:d|n:20|v:1.0",
                    metadata={"context": condition},
                )
        build([tmp_path / f"{models}"], tmp_path / f"out{models}", title="lifts", resamples=100, seed=1)
        page = (tmp_path / f"out{models}" / "index.html").read_text("utf-8")
        assert ("<summary>Lift over no context" in page) is folded
        assert ("<h3>Lift over no context" in page) is not folded
