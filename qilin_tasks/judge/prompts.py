"""The judge's prompts: YAML files in Chinese and English, or the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.signature import digest

LANGUAGES = ("en", "zh")
#: Each prompt and the places that it must hold.
PLACES: Mapping[str, tuple[str, ...]] = {
    "nuggets": ("question", "reference"),
    "support": ("question", "answer", "nugget"),
    "pair": ("question", "reference", "first", "second"),
}
_PLACE = re.compile("{(" + "|".join(sorted({place for places in PLACES.values() for place in places})) + ")}")


@dataclass(frozen=True)
class Prompts:
    """`name` is the language or the file's name; `texts` by the keys of PLACES."""

    name: str
    texts: Mapping[str, str]

    @property
    def part(self) -> str:
        """The prompts in a signature."""
        return f"{self.name}@{digest(dict(self.texts))}"

    def fill(self, prompt: str, **values: str) -> str:
        """A prompt with its places filled; what looks like a place in a value stays as it is."""
        return _PLACE.sub(lambda match: values[match[1]], self.texts[prompt])


def read_prompts(chosen: str) -> Prompts:
    """The prompts of a language, or of a YAML file. Raises SettingError where a prompt or a place is missing."""
    if chosen in LANGUAGES:
        text, name = files("qilin_tasks.judge").joinpath(f"prompts_{chosen}.yaml").read_text("utf-8"), chosen
    elif Path(chosen).is_file():
        text, name = Path(chosen).read_text(encoding="utf-8"), Path(chosen).stem
    else:
        raise SettingError(f"--prompts {chosen!r}: choose from {', '.join(LANGUAGES)}, or give a YAML file")
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingError(f"--prompts {chosen}: not YAML: {error}") from error
    if not isinstance(found, Mapping):
        raise SettingError(f"--prompts {chosen}: a map with {', '.join(PLACES)} is needed")
    for key in found:
        if key not in PLACES:
            raise unknown(f"--prompts {chosen}: prompt", key, PLACES)
    texts = {}
    for key, places in PLACES.items():
        if not isinstance(found.get(key), str):
            raise SettingError(f"--prompts {chosen}: no prompt {key!r}")
        texts[key] = found[key]
        there = set(_PLACE.findall(texts[key]))
        if there != set(places):
            needed = ", ".join(f"{{{place}}}" for place in places)
            raise SettingError(f"--prompts {chosen}: {key} has the places {sorted(there)}, and needs {needed}")
    return Prompts(name, texts)
