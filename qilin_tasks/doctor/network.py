"""Whether the hub answers, asked once; where it does not, all else looks into its cache and waits for nothing."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from qilin_tasks.doctor.findings import Finding

SECONDS = 5.0


def hub() -> Finding:
    """One request to the hub, given up after SECONDS (twice that where the name server is silent too)."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return Finding("hub", "ok", "HF_HUB_OFFLINE is set: files come from the cache alone")
    errors: list[str] = []
    asking = threading.Thread(target=_ask, args=(constants.ENDPOINT, errors), daemon=True)
    asking.start()
    asking.join(2 * SECONDS)
    if not asking.is_alive() and not errors:
        return Finding("hub", "ok", f"{constants.ENDPOINT} answers")
    reason = errors[0] if errors else "no answer"
    fix = "what is not in its cache has to be fetched on a connected machine (HF_HOME), or named as a folder"
    return Finding("hub", "warn", f"{constants.ENDPOINT} can't be reached ({reason})", fix)


def _ask(endpoint: str, errors: list[str]) -> None:
    try:
        request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310 (the user's own HF_ENDPOINT)
        urllib.request.urlopen(request, timeout=SECONDS).close()  # noqa: S310
    except urllib.error.HTTPError:
        pass  # An answer, whatever it says.
    except (OSError, ValueError) as error:
        errors.append(str(error))


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
