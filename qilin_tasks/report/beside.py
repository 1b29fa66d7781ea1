"""Texts in files beside the page: small pages that hand their data to the page that opens them in a frame.

A page from a plain folder may not read other files; it may frame them, and they may post what they hold. So it works
from a folder as from a server. Each has a policy of its own: no script but the one line that posts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

from qilin_tasks.files import write_whole
from qilin_tasks.report.policy import sha256_source

FOLDER = "texts"
_OURS = re.compile(r"t\d+\.\d+\.\d+\.html")
#: Over a server only pages of its own get the texts; pages of a plain folder have no origin to name.
_POST = (
    'parent.postMessage(document.getElementById("data").textContent, '
    'location.protocol === "file:" ? "*" : location.origin);'
)


def write_beside(out: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files, and remove those of an earlier report; the folder is only made where there are texts."""
    folder = out / FOLDER
    paths = [folder / f"{name}.html" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_whole(path, _page(text))
    for path in folder.glob("t*.html"):
        if path not in paths and _OURS.fullmatch(path.name):
            path.unlink()
    return paths


def _page(text: str) -> str:
    policy = f"default-src 'none'; script-src '{sha256_source(_POST)}'"
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}"><title>texts</title>'
        f'<script type="text/plain" id="data">{text}</script><script>{_POST}</script>\n'
    )
