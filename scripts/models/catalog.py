"""Every model that can be made: out of what, by what, how large, under whose terms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from models import e5, gemma, smollm2, tiny
from models.errors import ModelError
from models.folders import is_made, make_whole
from models.wheels import CarriedFile, read

GEMMA_NOTICE = """\
Gemma is provided under and subject to the Gemma Terms of Use found at https://ai.google.dev/gemma/terms,
with the Prohibited Use Policy at https://ai.google.dev/gemma/prohibited_use_policy.
They apply to the weights and to what is made of them; whoever goes on agrees to them."""


@dataclass(frozen=True)
class Model:
    """`make(folder, contents)` fills a folder from the carried files' bytes; sizes in MB, rounded."""

    make: Callable[[Path, Sequence[bytes]], None]
    what: str
    licence: str
    disk_mb: int
    carried: tuple[CarriedFile, ...] = ()
    download_mb: int = 0
    #: How to ask it, where that is not obvious.
    hint: str | None = None
    #: Shown before anything is downloaded.
    notice: str | None = None


MODELS = {
    "tiny-qwen2": Model(tiny.make_qwen2, what="random, for tests", licence="MIT (made here)", disk_mb=2),
    "tiny-bert-zh": Model(tiny.make_bert, what="random, for tests", licence="MIT (made here)", disk_mb=3),
    "SmolLM2-135M-Instruct": Model(
        smollm2.make,
        what="chat model, English",
        licence="Apache-2.0",
        carried=smollm2.CARRIED,
        download_mb=93,
        disk_mb=542,
    ),
    "gemma-3-270m": Model(
        gemma.make,
        what="base model, multilingual",
        hint="no chat template (leave --apply_chat_template out); it repeats itself when it has nothing to say: ask "
        "for some 64 tokens and a stop at a blank line",
        licence="Gemma Terms of Use (Google)",
        carried=gemma.CARRIED,
        download_mb=239,
        disk_mb=1106,
        notice=GEMMA_NOTICE,
    ),
    "multilingual-e5-small": Model(
        e5.make,
        what="text encoder, multilingual",
        licence="MIT (intfloat/multilingual-e5-small)",
        carried=e5.CARRIED,
        download_mb=91,
        disk_mb=487,
    ),
}


def make(name: str, *, root: Path, anew: bool = False) -> Path:
    """The folder of model `name` under `root`, made unless it is there.

    Raises DownloadError where its packages can't be had, ModelError where they hold something else.
    """
    if name not in MODELS:
        raise ModelError(f"model {name!r}: choose from {', '.join(MODELS)}")
    model, folder = MODELS[name], root / name
    if is_made(folder) and not anew:
        return folder
    if model.notice:
        _tell(f"{name}: {model.licence}\n{model.notice}")

    def fill(made: Path) -> None:
        contents = []
        for carried in model.carried:
            if not carried.wheels(root / ".downloads"):
                _tell(f"{name}: downloading {carried.requirement} (of {model.download_mb} MB in all)")
            contents.append(read(carried, downloads=root / ".downloads"))
        _tell(f"{name}: writing {folder} ({model.disk_mb} MB)")
        model.make(made, contents)
        (made / "README.md").write_text(_readme(name, model), encoding="utf-8")

    make_whole(folder, fill, anew=anew)
    return folder


def _readme(name: str, model: Model) -> str:
    lines = [f"# {name}", "", f"{model.what[0].upper()}{model.what[1:]}. Licence: {model.licence}."]
    if model.hint:
        lines += ["", f"Asking it: {model.hint}."]
    if model.notice:
        lines += ["", model.notice]
    if model.carried:
        lines += ["", "Converted to float32 by scripts/make_models.py out of these files in packages on PyPI:", ""]
        lines += [f"* {c.requirement}: {c.member}, SHA-256 {c.sha256}" for c in model.carried]
    return "\n".join([*lines, ""])


def _tell(text: str) -> None:
    # Standard output is for the folders' names.
    print(text, file=sys.stderr, flush=True)
