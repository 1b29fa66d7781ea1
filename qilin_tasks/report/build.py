"""Results folders -> report folder: report.md, report.tex, results.csv, pairs.csv, index.html."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qilin_tasks.errors import DataError
from qilin_tasks.files import write_whole
from qilin_tasks.report.analysis import analyse
from qilin_tasks.report.beside import write_beside
from qilin_tasks.report.collect import boards_of
from qilin_tasks.report.grid_panel import grid_panel
from qilin_tasks.report.judge_panel import judge_panel
from qilin_tasks.report.latex import latex
from qilin_tasks.report.markdown import markdown
from qilin_tasks.report.owners import owned
from qilin_tasks.report.packing import pack
from qilin_tasks.report.page import page
from qilin_tasks.report.tables import pairs_csv, results_csv, warnings
from qilin_tasks.report.validity_panel import validity_panel
from qilin_tasks.results.cost import priced
from qilin_tasks.results.reader import find_results

#: The page's packed data; tables, plots and the program come on top of it.
BUDGET = 22_000_000


@dataclass(frozen=True)
class Built:
    """What was written, and what a reader should be told."""

    files: list[Path]
    warnings: list[str]


def build(
    runs: Sequence[Path],
    out: Path,
    *,
    title: str,
    resamples: int,
    seed: int,
    say: Callable[[str], None] = lambda text: None,
    prices: Path | None = None,
    validity: Path | None = None,
    judged: Sequence[Path] = (),
    one_file: bool = False,
) -> Built:
    """Write the whole report; damaged results are left out and named. Raises DataError where none is whole.

    `prices` is a YAML file whose prices go over those that the results note; `validity` and `judged` are stored JSON of
    `qilin-tasks validate --json` and `judge`, shown as panels. With `one_file`
    texts are shortened until the page holds them all; else those for which it has no room lie beside it.
    """
    stored = [validity_panel(validity)] if validity is not None else []
    stored += [judge_panel(path, name=f"judge{i or ''}") for i, path in enumerate(judged)]
    faults: list[str] = []
    results = find_results(runs, faults=faults)
    if prices is not None:
        results = priced(results, prices)
    results = owned(results, runs)
    boards = boards_of(results, faults=faults, say=say)
    if not boards:
        raise DataError("no whole result is left:\n" + "\n".join(faults))
    analysed = []
    for board in boards:
        say(f"statistics of {board.name}")
        analysed.append((board, analyse(board, resamples=resamples, seed=seed)))
    say("packing the samples")
    packed = pack(boards, budget=BUDGET, title=title, one_file=one_file)
    say("writing")
    grid = grid_panel(analysed)
    panels = [*([grid] if grid is not None else []), *stored]
    texts = {
        "report.md": markdown(analysed, resamples=resamples, seed=seed, title=title),
        "report.tex": latex(analysed, resamples=resamples, seed=seed, title=title),
        "results.csv": results_csv(analysed),
        "pairs.csv": pairs_csv(analysed),
        "index.html": "".join(page(analysed, packed, resamples=resamples, seed=seed, title=title, panels=panels)),
    }
    write_beside(out, packed.beside)
    for name, text in texts.items():
        write_whole(out / name, text)
    said = faults + [f"{board.name}: {text}" for board, analysis in analysed for text in warnings(board, analysis)]
    return Built([out / name for name in texts], said)
