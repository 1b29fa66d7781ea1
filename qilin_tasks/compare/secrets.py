"""Keys come from the environment as `${NAME}` and are never written: what looks like one elsewhere is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qilin_tasks.errors import SettingError

REFERENCE = re.compile(r"\$\{(\w+)\}")
_WORDS = {"key", "apikey", "secret", "password", "passwd", "credential", "credentials", "authorization", "bearer"}
# Many settings end in "token" (bos_token, think_end_token): these do hold keys.
_TOKENS = {"", "auth", "access", "api", "hf", "hub", "bearer", "session"}
#: Keys by the look of them, anywhere in a text: prefixes that their makers publish, JSON Web Tokens, what follows
#: `Bearer`, and what stands in an address (a password, a parameter that is named for a key).
_SHAPES = re.compile(
    r"\b(?:sk|hf|gsk|xai|pk|gh[pousr]|glpat|github_pat|pplx|nvapi|r8|tgp|co|fw)[-_][A-Za-z0-9_-]{16,}"
    r"|\bA(?:KIA|SIA)[0-9A-Z]{16}\b|\bAIza[\w-]{20,}|\bya29\.[\w.-]{20,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?<=\bBearer )(?!\$)\S{8,}|(?<=\bBasic )(?!\$)[A-Za-z0-9+/=]{12,}"
    r"|(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"
    r"|(?<=[?&])(?:[\w-]*(?:key|token|secret|signature|password|credential)|sig|code)=(?!\$\{)[^&\s\"'}]+",
    re.IGNORECASE,
)
_SHORT = re.compile(r"^(?:sk|hf|gsk|xai|pk|ghp|glpat)[-_][A-Za-z0-9_-]{8,}$")
#: The headers of a request, of which those that say what is sent and wanted hold no key.
_HEADERS = {"header", "headers", "extra_headers", "default_headers"}
_PLAIN_HEADERS = {"accept", "content-type", "user-agent", "accept-language", "connection", "accept-encoding"}


def blot(text: str, hidden: Iterable[str] = ()) -> str:
    """A text with `hidden` and everything that looks like a key as ***."""
    for value in hidden:
        text = text.replace(value, "***")
    return _SHAPES.sub("***", text)


def _looks_secret(value: str) -> bool:
    return bool(_SHAPES.search(value) or _SHORT.search(value))


def _inner_name(name: str, key: str) -> str:
    """The name of a setting inside another; a header is taken for a key, unless it is one that holds none."""
    plain = name.lower() not in _HEADERS or key.lower() in _PLAIN_HEADERS
    return key if plain or names_a_secret(key) else f"{key} key"


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, _inner_name(name, str(key)))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, value


def names_a_secret(name: str) -> bool:
    """Whether a setting or variable of that name holds a key: `api_key`, `HF_TOKEN`, `Authorization`."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    if words[-1:] == ["token"] and "_".join(words[:-1][-1:]) in _TOKENS:
        return True
    return bool(_WORDS.intersection(words))


def is_secret(name: str, value: Any) -> bool:
    """Whether a setting holds a key: by its name or by the look of its value; references don't count."""
    if not isinstance(value, str) or not value or REFERENCE.search(value):
        return False
    return names_a_secret(name) or _looks_secret(value)


def refuse_secrets(values: Any, *, where: str) -> None:
    """Raises SettingError where a key is written out."""
    for name, value in _leaves(values):
        if is_secret(name, value):
            raise SettingError(
                f"{where}: {name!r} holds a key, which would end up in files; put it into an environment variable and "
                f"write {name}: ${{{re.sub(chr(92) + 'W', '_', name).upper()}}}"
            )


def references(values: Any) -> list[str]:
    """The names of the environment variables that values refer to."""
    return sorted({n for _, value in _leaves(values) if isinstance(value, str) for n in REFERENCE.findall(value)})


def resolve(values: Any) -> Any:
    """Values with `${NAME}` replaced. Raises SettingError where a variable is not set."""
    if isinstance(values, Mapping):
        return {key: resolve(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [resolve(value) for value in values]
    return REFERENCE.sub(_value, values) if isinstance(values, str) else values


def _value(found: re.Match[str]) -> str:
    if found[1] not in os.environ:
        raise SettingError(f"environment variable {found[1]} is not set: export it before running this command")
    return os.environ[found[1]]


def redact(values: Mapping[str, Any]) -> dict[str, Any]:
    """Model arguments for the results file: references stay as they are, anything that looks like a key is hidden."""

    def hidden(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: hidden(_inner_name(name, str(key)), inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [hidden(name, inner) for inner in value]
        return "***" if is_secret(name, value) else value

    return {key: hidden(key, value) for key, value in values.items()}


def secret_values(*settings: Any) -> list[str]:
    """The values behind references whose variable or setting looks like a key: what no log may show."""
    found = set()
    for values in settings:
        for name, value in _leaves(values):
            for variable in REFERENCE.findall(value) if isinstance(value, str) else ():
                content = os.environ.get(variable, "")
                if names_a_secret(variable) or names_a_secret(name) or _looks_secret(content):
                    found.add(content)
    for variable, content in os.environ.items():
        if names_a_secret(variable):
            found.add(content)
    # Shorter ones would blot out words of the log.
    return sorted((content for content in found if len(content) >= 6), key=len, reverse=True)
