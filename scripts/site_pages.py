"""mkdocs hook: pages that lie outside of docs/, and the reference, which is made from the code at each build.

A page's relative links are read as the repository has them; a link to a file that is no page becomes plain text.
"""

from __future__ import annotations

import argparse
import inspect
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from qilin_tasks import PUBLIC, cli, tasks_folder
from qilin_tasks.families import FAMILIES
from qilin_tasks.metrics.metric import Metric
from qilin_tasks.metrics.ranking import RANKING_METRICS

REPO = Path(__file__).resolve().parents[1]
OUTSIDE = {"index.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "CONTRIBUTING.md": "CONTRIBUTING.md"}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)

#: Where the formula and the source of a metric stand, but for those of rankings, which `RANKING_METRICS` holds.
FORMULAS = {
    "rouge_l": "rouge_l:rouge_l",
    "bertscore_f1": "bertscore:BertScorer",
    "fact_f1": "fact_agreement:fact_f1",
    "supported_rate": "fact_agreement:supported_rate",
    "contradicted_rate": "fact_agreement:contradicted_rate",
    "copy_coverage": "copying:copied",
    "copy_density": "copying:copied",
    "cite_f1": "citations:score_citations",
    "refusal_f1": "refusal:refusal_f1",
    "em": "squad:exact_match",
    "f1": "squad:token_f1",
    "meteor": "meteor:meteor",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that docs/ doesn't hold, and those that no entry of `nav` names to its end."""
    outside = {name: (REPO / path).read_text(encoding="utf-8") for name, path in OUTSIDE.items()}
    tasks = {path.relative_to(REPO).as_posix(): path.read_text("utf-8") for path in tasks_folder().glob("*/*.md")}
    made = {f"reference/{name}.md": make() for name, make in REFERENCE.items()}
    for uri, content in {**outside, **tasks, **made}.items():
        files.append(File.generated(config, uri, content=content))
    named = set(_leaves(config.nav or []))
    rest = sorted(file.src_uri for file in files.documentation_pages() if file.src_uri not in named)
    if rest and config.nav is not None:
        config.nav.append({"More": rest})
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page's text with its links as the site has them; code stays as it is."""
    source = OUTSIDE.get(page.file.src_uri, page.file.src_uri)
    if page.file.generated_by is None or source.startswith("reference/"):
        source = f"docs/{source}"
    sites = {_repository_path(file.src_uri, file.generated_by): file.src_uri for file in files}

    def link(match: re.Match[str]) -> str:
        text, (target, hash_, anchor) = match[1], match[2].partition("#")
        if not target or ":" in target:
            return match[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if place not in sites:
            return text
        return (
            f"[{text}]({posixpath.relpath(sites[place], posixpath.dirname(page.file.src_uri) or '.')}{hash_}{anchor})"
        )

    parts = FENCED.split(markdown)
    return "".join(part if number % 2 else LINK.sub(link, part) for number, part in enumerate(parts))


def _repository_path(uri: str, generated_by: str | None) -> str:
    if generated_by is None:
        return f"docs/{uri}"
    return OUTSIDE.get(uri, uri)


def _leaves(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for child in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(child)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Raises where two entries of `nav` name one page: the reader would be sent back and forth."""
    uris = [page.file.src_uri for page in nav.pages]
    if len(set(uris)) != len(uris):
        raise ValueError(f"mkdocs.yml names a page twice: {sorted(uri for uri in uris if uris.count(uri) > 1)}")
    return nav


def table(head: str, rows: Iterator[tuple[str, ...]]) -> str:
    """A Markdown table; `|` inside a cell is escaped."""
    names = head.split("|")
    lines = [names, ["---"] * len(names), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def metrics_page() -> str:
    """Every metric of every family: definition, range, direction; then formulas and sources."""
    parts = ["# Metrics\n\nMade from the tables of metrics. The first row of a family is its headline.\n"]
    for name, family in FAMILIES.items():
        rows = (_metric_row(metric, row) for metric, row in family.scorer.METRICS.items())
        parts.append(f"## {name}\n\n{table('metric|for one document|range|better|settings', rows)}")
    parts.append("## Formulas and sources\n")
    functions = {
        **{name: _function(f"qilin_tasks.metrics.{place}") for name, place in FORMULAS.items()},
        **{f"{name}@k": function for name, function in RANKING_METRICS.items()},
    }
    for name, function in functions.items():
        about = "\n\n".join(filter(None, (inspect.getdoc(import_module(function.__module__)), _explained(function))))
        parts.append(f"### `{name}`\n\n{about}\n")
    return "\n".join(parts)


def _metric_row(name: str, row: Metric[Any]) -> tuple[str, ...]:
    least = "" if row.low < -1 else f"{row.low:g}"
    bounds = f"{least} to {row.high:g}" if row.high is not None else f"{least} and up" if least else "any"
    better = {True: "higher", False: "lower", None: "–"}[row.higher_is_better]
    settings = ", ".join(f"`{setting}`" for setting in (*filter(None, [row.switch]), *row.settings))
    return f"`{name}`", row.about, bounds, better, settings


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _explained(value: object) -> str:
    """A docstring without its examples."""
    return (inspect.getdoc(value) or "").split("\n>>>")[0].strip()


def settings_page() -> str:
    """The settings of each family, with kinds, choices and the defaults of its base file."""
    head = (
        "# Settings\n\nGiven as `--metadata '{\"name\": value}'` or in a YAML's `metadata`. Made from the classes of "
        "settings and the base files; a default of – is set by each task.\n"
    )
    parts = [head]
    defaults = _defaults()
    for name, family in FAMILIES.items():
        kind = family.settings
        rows = (
            (
                f"`{field.name}`",
                ", ".join(map(str, kind.CHOICES[field.name])) if field.name in kind.CHOICES else str(field.type),
                f"{kind.MINIMUM[field.name]}" if field.name in kind.MINIMUM else "",
                f"`{defaults[name][field.name]}`" if field.name in defaults[name] else "–",
            )
            for field in fields(kind)
        )
        parts.append(f"## {name}\n\n{_explained(kind)}\n\n{table('setting|choices or kind|least|default', rows)}")
    return "\n".join(parts)


def _defaults() -> dict[str, dict[str, Any]]:
    """By family what its base file sets, where one base serves one family or several."""
    found: dict[str, dict[str, Any]] = {name: {} for name in FAMILIES}
    for path in sorted(tasks_folder().rglob("*.yaml")):
        content = _read(path)
        base = _read(path.parent / content["include"]) if "include" in content else {}
        shared = base.get("dataset_kwargs") or {}
        family = {**shared, **(content.get("metadata") or {})}.get("family")
        if family in found:
            found[family] = dict(shared)
    return found


def _read(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8").replace("!function ", "")) or {})


def commands_page() -> str:
    """The help of every command, as it prints it in a terminal of 100 columns."""
    os.environ["COLUMNS"] = "100"
    parts = ["# Commands\n\nMade from the parsers: what `qilin-tasks COMMAND --help` prints.\n"]
    for name, line in cli.COMMANDS.items():
        module = cli.module_of(name)
        text = getattr(module, "HELP", "")
        if not hasattr(module, "run_raw"):
            parser = argparse.ArgumentParser(prog="qilin-tasks")
            subparsers = parser.add_subparsers()
            module.add_parser(subparsers)
            text = subparsers.choices[name].format_help()
        parts.append(f"## `{name}`\n\n{line[0].upper()}{line[1:]}.\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


def python_page() -> str:
    """Signature and docstring of each public name; the examples are run by a test."""
    parts = ["# Python\n\n`from qilin_tasks import …`. Each name is imported when it is first used.\n"]
    for name, module in PUBLIC.items():
        value = _function(f"{module}:{name}")
        signature = str(inspect.signature(value)).replace("'", "")
        text, _, examples = (inspect.getdoc(value) or "").partition("\n>>>")
        shown = f"\n```pycon\n>>>{examples}\n```\n" if examples else ""
        parts.append(f"## `{name}`\n\n```python\n{name}{signature}\n```\n\n{text.strip()}\n{shown}")
        parts.append(f"Module `{module}`.\n")
    return "\n".join(parts)


REFERENCE = {"metrics": metrics_page, "settings": settings_page, "commands": commands_page, "python": python_page}
