"""The table of systems."""

from __future__ import annotations

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.systems.bert_bi import BiEncoder
from qilin_tasks.systems.bert_cross import CrossEncoder
from qilin_tasks.systems.bm25 import ListBM25
from qilin_tasks.systems.dcn_ranker import DcnRanker
from qilin_tasks.systems.run_file import RunFile
from qilin_tasks.systems.system import System, SystemSettings

#: By the name of `--system`.
SYSTEMS: dict[str, type[System]] = {
    "bm25": ListBM25,
    "bert-bi": BiEncoder,
    "bert-cross": CrossEncoder,
    "dcn-v2": DcnRanker,
    "file": RunFile,
}
_GIVEN = {"model": "--model FOLDER (or a hub name)", "run_file": "--run FILE"}


def make_system(name: str, settings: SystemSettings) -> System:
    """The system of that name, loaded and checked. SettingError for an unknown one and for what it lacks or ignores."""
    if name not in SYSTEMS:
        raise unknown("--system", name, SYSTEMS)
    needs = SYSTEMS[name].needs
    for field, option in _GIVEN.items():
        given = getattr(settings, field) is not None
        if field == needs and not given:
            raise SettingError(f"--system {name} needs {option}")
        if field != needs and given:
            raise SettingError(f"--system {name} takes no {option.split()[0]}: leave it out")
    return SYSTEMS[name](settings)
