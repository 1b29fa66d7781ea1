"""Whether the hub answers, asked once; where it does not, all else looks into its cache and waits for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qilin_tasks.doctor.findings import Finding
from qilin_tasks.hub_reach import why_unreachable


def hub() -> Finding:
    """One request to the hub."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return Finding("hub", "ok", "HF_HUB_OFFLINE is set: files come from the cache alone")
    reason = why_unreachable(constants.ENDPOINT)
    if not reason:
        return Finding("hub", "ok", f"{constants.ENDPOINT} answers")
    fix = "what is not in its cache has to be fetched on a connected machine (HF_HOME), or named as a folder"
    return Finding("hub", "warn", f"{constants.ENDPOINT} can't be reached ({reason})", fix)


@contextmanager
def offline(wanted: bool) -> Iterator[None]:
    """While the hub can't be reached, its client shall not try again, five times for each file."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or wanted
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
