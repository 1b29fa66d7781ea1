"""The sets of ReQA and where each is read from: the hub, a local folder, or the embedded sample (`REQA_DATA`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.hub_reach import reach_hub
from qilin_tasks.sources import nq
from qilin_tasks.sources.beir import RetrievalSet, assemble, read_beir
from qilin_tasks.sources.sample import cache_roots
from qilin_tasks.sources.squad import Paragraph, paragraphs_of_rows, read_squad

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "reqa_sample"


@dataclass(frozen=True)
class ReQASet:
    """One set: its language, its place on the hub, and the public file (or BEIR folder) names it has locally.

    A user's own set has a `path` instead.
    """

    language: str
    hub: str
    split: str
    files: tuple[str, ...]
    config: str | None = None
    beir: bool = False
    path: str | None = None


SETS: dict[str, ReQASet] = {
    "squad": ReQASet("en", "rajpurkar/squad", "validation", ("dev-v1.1.json",)),
    "nq": ReQASet("en", nq.HUB_ID, "validation", ("nq.dev.json",)),
    "squad_train": ReQASet("en", "rajpurkar/squad", "train", ("train-v1.1.json",)),
    "nq_train": ReQASet("en", nq.HUB_ID, "train", ("nq.train.json",)),
    "iapp": ReQASet("th", "iapp_wiki_qa_squad", "test", ("test.jsonl", "iapp.test.jsonl")),
    "xquad_en": ReQASet("en", "google/xquad", "validation", ("xquad.en.json",), config="xquad.en"),
    "xquad_zh": ReQASet("zh", "google/xquad", "validation", ("xquad.zh.json",), config="xquad.zh"),
    "xquad_th": ReQASet("th", "google/xquad", "validation", ("xquad.th.json",), config="xquad.th"),
    "mteb_nq": ReQASet("en", "mteb/nq", "test", ("mteb_nq",), beir=True),
    "mteb_hotpotqa": ReQASet("en", "mteb/hotpotqa", "test", ("mteb_hotpotqa", "hotpotqa"), beir=True),
    "mteb_fiqa": ReQASet("en", "mteb/fiqa", "test", ("mteb_fiqa", "fiqa"), beir=True),
    "mteb_msmarco": ReQASet("en", "mteb/msmarco", "dev", ("mteb_msmarco", "msmarco"), beir=True),
}
# Folders that a copy of several sets may keep them in, below the one that REQA_DATA names.
SUBFOLDERS = ("", "squad", "nq", "iapp", "xquad", "mteb", "beir")


def custom_set(path: str, *, language: str) -> ReQASet:
    """A user's own set: a SQuAD-format file, a folder that holds one, or a folder in BEIR format."""
    folder = Path(path).expanduser()
    beir = any((folder / f"corpus.jsonl{suffix}").is_file() for suffix in ("", ".gz"))
    split = "test"
    if beir and not any((folder / "qrels" / f"test.tsv{suffix}").is_file() for suffix in ("", ".gz")):
        splits = sorted({file.name.split(".")[0] for file in (folder / "qrels").glob("*.tsv*")})
        if len(splits) != 1:
            raise DataError(f"{folder}: no qrels/test.tsv, and {', '.join(splits) or 'no other split'} in its place")
        split = splits[0]
    return ReQASet(language, hub="", split=split, files=(), beir=beir, path=str(folder))


def _custom_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError(f"path {str(path)!r}: no such file or folder; give a SQuAD-format file or a BEIR folder")
    files = sorted(file for file in path.iterdir() if file.name.removesuffix(".gz").endswith((".json", ".jsonl")))
    if len(files) != 1:
        names = ", ".join(file.name for file in files[:5]) or "none"
        raise DataError(
            f"path {str(path)!r}: must hold one SQuAD-format file (.json or .jsonl; here: {names}) or a corpus.jsonl "
            "with queries.jsonl and qrels/test.tsv; name the file itself"
        )
    return files[0]


def data_spec(spec: str | None = None) -> str:
    """What REQA_DATA says: `hub` (the default), `sample`, or a folder."""
    return spec or os.environ.get("REQA_DATA") or "hub"


def read_set(
    name: str,
    *,
    chosen: ReQASet | None = None,
    spec: str | None = None,
    revision: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> list[Paragraph] | RetrievalSet:
    """The paragraphs of a SQuAD-format set, or a BEIR-format set (`limit`, `seed`: see beir.assemble).

    Raises SettingError for an unknown name, DataError where the set can't be found or read.

    >>> paragraphs = read_set("xquad_en", spec="sample")
    >>> paragraphs[0].title, paragraphs[0].text[:14]
    ('Lighthouse', 'The lighthouse')
    """
    if chosen is None:
        if name not in SETS:
            raise unknown("ReQA set", name, SETS)
        chosen = SETS[name]
    if chosen.path is not None:
        own = Path(chosen.path)
        return (
            read_beir(own, split=chosen.split, limit=limit, seed=seed) if chosen.beir else read_squad(_custom_file(own))
        )
    place = data_spec(spec)
    if place == "hub":
        return _from_hub(name, chosen, revision=revision, limit=limit, seed=seed)
    folder = SAMPLE if place == "sample" else Path(place).expanduser()
    path = _find(folder, chosen, place=place)
    return read_beir(path, split=chosen.split, limit=limit, seed=seed) if chosen.beir else read_squad(path)


def _find(folder: Path, chosen: ReQASet, *, place: str) -> Path:
    if not folder.is_dir():
        raise DataError(
            f"REQA_DATA {place!r} is no folder: give a folder that holds {chosen.files[0]}, 'sample' for the embedded "
            "sample, or 'hub' (the default)"
        )
    for sub in SUBFOLDERS:
        for file in chosen.files:
            for suffix in ("",) if chosen.beir else ("", ".gz"):
                path = folder / sub / f"{file}{suffix}"
                if path.is_dir() if chosen.beir else path.is_file():
                    return path
    kind = "the folder" if chosen.beir else "the file"
    below = ", ".join(sub for sub in SUBFOLDERS if sub)
    raise DataError(
        f"REQA_DATA {place!r} has neither {kind} {' nor '.join(chosen.files)}{'' if chosen.beir else ' (or .gz)'}, "
        f"there or in {below}; on the hub it is {chosen.hub}, {chosen.config or chosen.split}"
    )


def _from_hub(
    name: str, chosen: ReQASet, *, revision: str | None, limit: int | None, seed: int
) -> list[Paragraph] | RetrievalSet:
    if chosen.hub == nq.HUB_ID:
        file = cache_folder() / f"nq.{chosen.split}.json"
        return read_squad(nq.convert_nq(file, split=chosen.split, revision=revision))
    where = f"{chosen.hub} ({chosen.config or chosen.split})"
    if not chosen.beir:
        rows = _hub_rows(chosen.hub, chosen.config, split=chosen.split, revision=revision)
        return paragraphs_of_rows(rows, where=where)
    parts = [
        _hub_rows(chosen.hub, config, split=split, revision=revision)
        for config, split in (("corpus", "corpus"), ("queries", "queries"), ("default", chosen.split))
    ]
    return assemble(*parts, where=where, limit=limit, seed=seed)


def cache_folder() -> Path:
    """Where converted sets are kept: `reqa` below QILIN_TASKS_CACHE (default: `qilin-tasks` in the user's cache)."""
    return cache_roots()[0] / "reqa"


def _hub_rows(hub: str, config: str | None, *, split: str, revision: str | None) -> Iterable[Mapping[str, Any]]:
    import datasets

    reach_hub(hub)

    def load(wanted: str | None) -> Any:
        return datasets.load_dataset(hub, config, split=split, revision=wanted)

    try:
        try:
            return load(revision)  # type: ignore[no-any-return]
        except RuntimeError as error:
            # A repository whose data comes from a script: the hub keeps a parquet copy of it under this revision.
            if revision is not None or "script" not in str(error):
                raise
            return load("refs/convert/parquet")  # type: ignore[no-any-return]
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{hub}{f' ({config})' if config else ''} can't be read from the hub ({type(error).__name__}: "
            f"{(str(error).splitlines() or [''])[0][:200]}); set REQA_DATA to a folder with the public files, or to "
            "'sample' for the embedded sample"
        ) from error
