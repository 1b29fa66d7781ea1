"""What a page's content policy calls a script or a style: its hash."""

from __future__ import annotations

import base64
import hashlib


def sha256_source(text: str) -> str:
    """`sha256-…`, as a source of a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
