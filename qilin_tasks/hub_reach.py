"""Whether the Hugging Face hub answers: asked once, for its client asks again and again for every file."""

from __future__ import annotations

import os
import sys
import threading
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path

SECONDS = 5.0
OFFLINE = "HF_HUB_OFFLINE"


def reach_hub(name: str) -> None:
    """Call before `name` (a model or data set) may be fetched: a hub that can't be reached is said once, in one line.

    From then on this process and those it starts read the hub's cache alone, as with HF_HUB_OFFLINE=1, and wait for
    nothing. Does nothing for a folder that is there.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or Path(name).expanduser().exists():
        return
    reason = why_unreachable(constants.ENDPOINT)
    if not reason:
        return
    print(
        f"note: {constants.ENDPOINT} can't be reached ({reason}): going on with what its cache holds. {OFFLINE}=1 says "
        f"so from the start; what the cache lacks, as perhaps {name}, has to be a local folder",
        file=sys.stderr,
    )
    _go_offline()


@lru_cache(maxsize=4)
def why_unreachable(endpoint: str) -> str:
    """The reason, empty where it answers; given up after SECONDS (twice that where the name server is silent too)."""
    errors: list[str] = []
    asking = threading.Thread(target=_ask, args=(endpoint, errors), daemon=True)
    asking.start()
    asking.join(2 * SECONDS)
    return errors[0] if errors else "no answer" if asking.is_alive() else ""


def _ask(endpoint: str, errors: list[str]) -> None:
    try:
        request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310 (the user's own HF_ENDPOINT)
        urllib.request.urlopen(request, timeout=SECONDS).close()  # noqa: S310
    except urllib.error.HTTPError:
        pass  # An answer, whatever it says.
    except (OSError, ValueError) as error:
        errors.append(str(error))


def _go_offline() -> None:
    """For child processes by the variable; for this one by what its libraries made of the variable when imported."""
    from huggingface_hub import constants

    os.environ[OFFLINE] = "1"
    constants.HF_HUB_OFFLINE = True
    if (datasets := sys.modules.get("datasets")) is not None:
        datasets.config.HF_HUB_OFFLINE = datasets.config.HF_DATASETS_OFFLINE = True
    # transformers 4 keeps a copy.
    hub = sys.modules.get("transformers.utils.hub")
    if hub is not None and hasattr(hub, "_is_offline_mode"):
        vars(hub)["_is_offline_mode"] = True
