"""How often upstream's 100-line ranking parser and the package's disagree about what models wrote; one JSON line.

python benchmarks/upstream_parser.py results/ (samples files of listwise tasks, `--log_samples`)
python benchmarks/upstream_parser.py --written-forms (the table of tests/test_parse_rankings.py)
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
UPSTREAM = REPO / "qilin_tasks" / "upstream"


def upstream_parser() -> Any:
    """`qilin_ranking/utils.py`, which imports from its sister folder by its place in lm_eval."""
    import lm_eval.tasks

    lm_eval.tasks.__path__.append(str(UPSTREAM))
    spec = importlib.util.spec_from_file_location("upstream_ranking", UPSTREAM / "qilin_ranking" / "utils.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def logged(folders: list[Path]) -> Iterator[tuple[str, int]]:
    """(response, candidates shown) of every logged answer to a list of candidates."""
    for folder in folders:
        for path in sorted(folder.rglob("samples_*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                sample = json.loads(line)
                candidates = sample["doc"].get("candidates")
                shown = sample["doc"].get("windows") or [candidates]
                if candidates and isinstance(sample["resps"][0][0], str):
                    for repeats, ids in zip(sample["resps"], shown, strict=False):
                        yield from ((text, len(ids)) for text in repeats)


def written_forms() -> Iterator[tuple[str, int]]:
    """The table of outputs that the package's parser is tested with."""
    sys.path.insert(0, str(REPO / "tests"))
    from test_parse_rankings import OUTPUTS

    yield from ((text, n) for text, n, _ in OUTPUTS)


def main() -> None:
    """Print how many answers there were, in how many the ids differ, and how far apart the first ids are."""
    from qilin_tasks.parsing.rankings import parse_ranking

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--written-forms", action="store_true")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N disagreements to stderr")
    arguments = parser.parse_args()
    upstream = upstream_parser()
    answers = list(written_forms() if arguments.written_forms else logged(arguments.folders))
    differ = first = ranked = 0
    for text, n in answers:
        ours = parse_ranking(text, n=n)
        written = upstream.ids_in(upstream.ranking_of(text, n) or "")
        theirs = tuple(dict.fromkeys(i for i in written if 1 <= i <= n))
        ranked += bool(ours.ids)
        first += ours.ids[:1] != theirs[:1]
        if theirs != ours.ids:
            differ += 1
            if differ <= arguments.show:
                print(f"{text!r} of {n}: {ours.ids} here, {theirs} upstream", file=sys.stderr)
    found = {"answers": len(answers), "with_a_ranking": ranked, "ids_differ": differ, "first_id_differs": first}
    print(json.dumps({**found, "share": round(differ / max(len(answers), 1), 4)}))


if __name__ == "__main__":
    main()
