"""What names and numbers carry on the page: whose they are, and links into the samples, whose view is the fragment."""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode


def samples_link(
    text: str, *, task: str, a: str, metric: str, b: str = "", largest_first: bool = False, only: str = ""
) -> str:
    """An HTML link (`text` is HTML) to the samples of a model or pair: the largest differences first, or a filter's.

    The names are those of `script/view.js`.
    """
    view = {"task": task, "a": a, "b": b, "metric": metric, "only": only} | (
        {"sort": "gap", "down": "1"} if largest_first else {}
    )
    fragment = urlencode({name: value for name, value in view.items() if value})
    return f'<a class="samples" href="#{escape(fragment)}">{text}</a>'


def owner_mark(owner: str) -> str:
    """Whose a row is, behind its name; nothing where the report is of one folder."""
    return f' <small class="owner">from {escape(owner)}</small>' if owner else ""
