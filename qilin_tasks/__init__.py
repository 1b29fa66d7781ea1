"""Qilin and ReQA as tasks of lm-evaluation-harness.

The names of `PUBLIC` are the Python interface: `from qilin_tasks import rouge_l`. Each is imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

# As type checkers read it; `typing` itself would be a tenth of the time that `qilin-tasks --help` takes.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from qilin_tasks.harness.python import evaluate as evaluate
    from qilin_tasks.metrics.bertscore import BertScorer as BertScorer
    from qilin_tasks.metrics.fact_agreement import fact_f1 as fact_f1
    from qilin_tasks.metrics.meteor import meteor as meteor
    from qilin_tasks.metrics.ranking import score_ranking as score_ranking
    from qilin_tasks.metrics.rouge_l import rouge_l as rouge_l
    from qilin_tasks.metrics.rouge_l import rouge_l_batch as rouge_l_batch
    from qilin_tasks.metrics.squad import exact_match as exact_match
    from qilin_tasks.metrics.squad import token_f1 as token_f1
    from qilin_tasks.parsing.answers import strip_reasoning as strip_reasoning
    from qilin_tasks.parsing.rankings import parse_ranking as parse_ranking
    from qilin_tasks.reqa.ranks import best_rank as best_rank
    from qilin_tasks.results.stats import compare_systems as compare_systems
    from qilin_tasks.results.stats import holm as holm
    from qilin_tasks.results.stats import mean_interval as mean_interval
    from qilin_tasks.retrieval.bm25 import BM25 as BM25
    from qilin_tasks.sources.qilin import open_qilin as open_qilin
    from qilin_tasks.sources.reqa import read_set as read_set

__version__ = "0.1.0"

#: Every public name and its module, by subject (a test holds it to the imports above).
PUBLIC = {
    "evaluate": "qilin_tasks.harness.python",
    "rouge_l": "qilin_tasks.metrics.rouge_l",
    "rouge_l_batch": "qilin_tasks.metrics.rouge_l",
    "BertScorer": "qilin_tasks.metrics.bertscore",
    "fact_f1": "qilin_tasks.metrics.fact_agreement",
    "exact_match": "qilin_tasks.metrics.squad",
    "token_f1": "qilin_tasks.metrics.squad",
    "meteor": "qilin_tasks.metrics.meteor",
    "score_ranking": "qilin_tasks.metrics.ranking",
    "best_rank": "qilin_tasks.reqa.ranks",
    "strip_reasoning": "qilin_tasks.parsing.answers",
    "parse_ranking": "qilin_tasks.parsing.rankings",
    "open_qilin": "qilin_tasks.sources.qilin",
    "read_set": "qilin_tasks.sources.reqa",
    "BM25": "qilin_tasks.retrieval.bm25",
    "mean_interval": "qilin_tasks.results.stats",
    "compare_systems": "qilin_tasks.results.stats",
    "holm": "qilin_tasks.results.stats",
}


def __getattr__(name: str) -> object:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Kept, so that the next use is an ordinary look-up.
    value = globals()[name] = getattr(import_module(PUBLIC[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})


def tasks_folder() -> Path:
    """The folder with the task YAML, for the harness's `--include_path`.

    An installed wheel carries it inside the package, a checkout beside it.
    """
    packaged = Path(__file__).parent / "_lm_eval_tasks"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "lm_eval_tasks"
