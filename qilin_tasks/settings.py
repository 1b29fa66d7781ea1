"""Settings of a task: the YAML's `metadata`, which `--metadata` overrides, checked before anything runs."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from typing_extensions import Self

from qilin_tasks.errors import SettingError, unknown

SWITCH = ("on", "off")


@dataclass(frozen=True)
class Settings:
    """Base of a family's settings: a field is a setting, its annotation the kind (int, float, str, `str | None`).

    The harness merges model arguments into `metadata`, so keys that are no field are left alone, unless one is so
    close to a field's name that it can only be a slip.
    """

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    MINIMUM: ClassVar[Mapping[str, int]] = {}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Self:
        """Raises SettingError for a missing, misspelt or impossible setting, naming it and its choices."""
        names = [field.name for field in fields(cls)]
        for key in metadata:
            close = difflib.get_close_matches(key, names, n=1, cutoff=0.88)
            if key not in names and close:
                raise SettingError(f"setting {key!r}: did you mean {close[0]!r}? Settings: {', '.join(names)}")
        missing = [name for name in names if name not in metadata]
        if missing:
            raise SettingError(f"settings {', '.join(missing)} are missing from the task's metadata (YAML)")
        return cls(**{f.name: cls._value(f.name, str(f.type), metadata[f.name]) for f in fields(cls)})

    @classmethod
    def _value(cls, name: str, kind: str, value: Any) -> Any:
        if name in cls.CHOICES:
            # YAML 1.1 and JSON read a bare on/off as a boolean.
            text = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
            if text not in cls.CHOICES[name]:
                raise unknown(name, value, cls.CHOICES[name])
            return text
        if value is None or value == "":
            if "None" in kind:
                return None
            raise SettingError(f"{name} {value!r}: a value of kind {kind} is needed")
        if kind.startswith(("int", "float")):
            number = cls._number(name, kind, value)
            if number < cls.MINIMUM.get(name, number):
                raise SettingError(f"{name} {value!r}: must be at least {cls.MINIMUM[name]}")
            return number
        return str(value)

    @staticmethod
    def _number(name: str, kind: str, value: Any) -> int | float:
        whole = kind.startswith("int")
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if isinstance(value, bool) or not math.isfinite(number) or (whole and not number.is_integer()):
            raise SettingError(f"{name} {value!r}: must be {'a whole number' if whole else 'a number'}")
        return int(number) if whole else number
