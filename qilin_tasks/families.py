"""The table of families: what tasks, rescore, report, doctor and upstream know of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qilin_tasks.dqa import baselines as dqa_baselines
from qilin_tasks.dqa.documents import DQADocument, build_dqa
from qilin_tasks.dqa.scorer import DQAScorer
from qilin_tasks.dqa.settings import DQASettings
from qilin_tasks.errors import unknown
from qilin_tasks.evidence import baselines as evidence_baselines
from qilin_tasks.evidence import scorer as evidence
from qilin_tasks.evidence.documents import EvidenceDocument, build_evidence, build_noevidence
from qilin_tasks.evidence.settings import EvidenceSettings
from qilin_tasks.family import Family
from qilin_tasks.metrics.metric import Metric, scoring_settings
from qilin_tasks.own_data.documents import OwnDataSettings, OwnDocument, build_own
from qilin_tasks.ranking import baselines as ranking_baselines
from qilin_tasks.ranking import scorer as ranking
from qilin_tasks.ranking.asking import GradesWithCovers, Windows, WindowsWithCovers, YesAndNo
from qilin_tasks.ranking.documents import GradedVisionDocument, RankingDocument, VisionDocument, build_ranking
from qilin_tasks.ranking.settings import GradedVisionSettings, ListwiseSettings, RankingSettings, VisionSettings
from qilin_tasks.ranking.vision import build_graded_vision, build_vision
from qilin_tasks.reqa import baselines as reqa_baselines
from qilin_tasks.reqa import documents as reqa_documents
from qilin_tasks.reqa import scorer as reqa
from qilin_tasks.reqa.asking import Likelihoods
from qilin_tasks.reqa.reader import ReaderScorer
from qilin_tasks.reqa.settings import CandidateSettings, GenerateSettings, LikelihoodSettings, ReaderSettings

#: Of the families that rank a first stage's candidates; `reqa_generate` and the retrievers alone rank the pool.
WITHIN_CANDIDATES = (
    "ReQA: MRR and R@k of these tasks rank a first stage's candidates (20 unless top_k says otherwise) and are not "
    "comparable with those of MrRank and ReQA, which rank the whole pool, as reqa_SET_generate does."
)

#: By the name that a task's YAML gives as `family` and its signature begins with.
FAMILIES: dict[str, Family] = {
    "dqa": Family(
        settings=DQASettings, document=DQADocument, load=build_dqa, scorer=DQAScorer, baselines=dqa_baselines.BASELINES
    ),
    "custom_dqa": Family(
        settings=OwnDataSettings,
        document=OwnDocument,
        load=build_own,
        scorer=DQAScorer,
        baselines=dqa_baselines.BASELINES,
    ),
    "dqa_cite": Family(
        settings=EvidenceSettings,
        document=EvidenceDocument,
        load=build_evidence,
        scorer=evidence.CiteScorer,
        baselines=evidence_baselines.CITE,
    ),
    "dqa_noevidence": Family(
        settings=EvidenceSettings,
        document=EvidenceDocument,
        load=build_noevidence,
        scorer=evidence.NoEvidenceScorer,
        baselines=evidence_baselines.NO_EVIDENCE,
    ),
    "dqa_grid": Family(
        settings=EvidenceSettings,
        document=EvidenceDocument,
        load=build_evidence,
        scorer=evidence.EvidenceScorer,
        baselines=evidence_baselines.GRID,
    ),
    "qilin-listwise": Family(
        settings=ListwiseSettings,
        document=RankingDocument,
        load=build_ranking,
        scorer=ranking.ListwiseScorer,
        baselines=ranking_baselines.BASELINES,
        asking=Windows,
    ),
    "qilin-pointwise": Family(
        settings=RankingSettings,
        document=RankingDocument,
        load=build_ranking,
        scorer=ranking.PointwiseScorer,
        baselines=ranking_baselines.BASELINES,
        asking=YesAndNo,
    ),
    "qilin-vision": Family(
        settings=VisionSettings,
        document=VisionDocument,
        load=build_vision,
        scorer=ranking.VisionScorer,
        baselines=ranking_baselines.BASELINES,
        asking=WindowsWithCovers,
    ),
    "qilin-vision-pointwise": Family(
        settings=GradedVisionSettings,
        document=GradedVisionDocument,
        load=build_graded_vision,
        scorer=ranking.GradedVisionScorer,
        baselines=ranking_baselines.GRADES,
        asking=GradesWithCovers,
    ),
    "reqa": Family(
        settings=CandidateSettings,
        document=reqa_documents.ListwiseDocument,
        load=reqa_documents.listwise_documents,
        scorer=reqa.ListwiseScorer,
        baselines=reqa_baselines.LISTWISE,
        note=WITHIN_CANDIDATES,
    ),
    "reqa_likelihood": Family(
        settings=LikelihoodSettings,
        document=reqa_documents.LikelihoodDocument,
        load=reqa_documents.likelihood_documents,
        scorer=reqa.LikelihoodScorer,
        baselines=reqa_baselines.LIKELIHOOD,
        asking=Likelihoods,
        note=WITHIN_CANDIDATES,
    ),
    "reqa_generate": Family(
        settings=GenerateSettings,
        document=reqa_documents.GenerateDocument,
        load=reqa_documents.generate_documents,
        scorer=reqa.GenerateScorer,
        baselines=reqa_baselines.GENERATE,
    ),
    "reqa_reader": Family(
        settings=ReaderSettings,
        document=reqa_documents.ReaderDocument,
        load=reqa_documents.reader_documents,
        scorer=ReaderScorer,
        baselines=reqa_baselines.READER,
    ),
}


def family(name: object, *, where: str) -> Family:
    """The family of that name. Raises SettingError with the choices."""
    if name not in FAMILIES:
        raise unknown(f"{where}: family", name, FAMILIES)
    return FAMILIES[str(name)]


def metric_rows(name: str) -> dict[str, Metric[Any]]:
    """The metric table of a family, {} for a name that is none."""
    return dict(FAMILIES[name].scorer.METRICS) if name in FAMILIES else {}


def notes(names: Iterable[str]) -> list[str]:
    """What a reader must know of the numbers of these families, each once; names of no family have none."""
    found = (FAMILIES[name].note for name in names if name in FAMILIES)
    return list(dict.fromkeys(note for note in found if note))


def scoring_names() -> tuple[str, ...]:
    """Settings of any family that only scoring reads: stored answers may be scored again with others."""
    names = (setting for found in FAMILIES.values() for setting in scoring_settings(found.scorer.METRICS))
    return tuple(dict.fromkeys([*names, "matcher", "dense_device", "dense_batch_size"]))
