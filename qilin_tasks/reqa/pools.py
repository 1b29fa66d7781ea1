"""Reading and retrieval sets to candidate pools, by ReQA's official protocol (Ahmad et al. 2019, arXiv 1907.04780)."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.signature import digest_all
from qilin_tasks.sources.beir import RetrievalSet
from qilin_tasks.sources.reqa import SETS, ReQASet, data_spec, read_set
from qilin_tasks.sources.squad import Paragraph
from qilin_tasks.text.languages import script_complaint
from qilin_tasks.text.sentences import sentence_spans

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoolQuestion:
    """A distinct question text. `gold`: candidates with the text of an answer sentence; `documents`: their paragraphs.

    `paragraph` is the first that it was asked about; `sentences` are the (sentence, paragraph) entries of its official
    pairs; `answers` the gold answers of all of them.
    """

    key: str
    text: str
    gold: tuple[int, ...]
    sentences: tuple[int, ...]
    documents: tuple[int, ...]
    paragraph: int
    answers: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates (sentences or documents) in order of first appearance; `owners[i]` is candidate i's document.

    `pairs` counts the official (question, answer sentence) pairs, `problems` the records that were left out, by kind.
    """

    name: str
    language: str
    candidates: tuple[str, ...]
    owners: tuple[int, ...]
    questions: tuple[PoolQuestion, ...]
    pairs: int
    problems: dict[str, int] = field(default_factory=dict)
    document_ids: tuple[str, ...] = ()
    cut_answers: int = 0
    examples: tuple[str, ...] = ()

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """What run files call the candidates: a BEIR set's document ids, else 0, 1, … in order of first appearance."""
        return self.document_ids or tuple(map(str, range(len(self.candidates))))

    @property
    def sentences_a_paragraph(self) -> float:
        """Distinct sentences divided by paragraphs."""
        return len(self.candidates) / (max(self.owners) + 1)

    @property
    def summary(self) -> str:
        """What the pool holds and what was left out of it, in one line."""
        left_out = ", ".join(f"left out {count} x {kind}" for kind, count in sorted(self.problems.items()))
        return (
            f"{len(self.questions)} questions, {len(self.candidates)} candidates, {self.sentences_a_paragraph:.2f} a "
            f"paragraph, {self.cut_answers} answers cut by a sentence's end" + (f"; {left_out}" if left_out else "")
        )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the candidates and the questions with their gold candidates."""
        return digest_all([self.candidates, self.owners, *((q.key, q.text, q.sentences) for q in self.questions)])


class _Asked:
    """What is gathered about one question text, in order of first appearance."""

    def __init__(self, key: str, text: str) -> None:
        self.key, self.text = key, text
        self.sentences: dict[int, None] = {}
        self.answers: dict[str, None] = {}


OUTSIDE = "answer offset outside its paragraph"
OTHER_TEXT = "answer offset points at other text"
BETWEEN = "answer offset between sentences"
NO_ANSWER = "question without a usable answer"


def build_pool(paragraphs: Iterable[Paragraph], *, name: str, language: str, strict: bool) -> Pool:
    """The sentence pool of a SQuAD-format set.

    An answer whose offset is wrong is left out, counted in `problems` and logged, or with `strict` a DataError that
    names the record; so is a paragraph that holds no sentence (always an error).
    """
    candidates: list[str] = []
    owners: list[int] = []
    index: dict[tuple[str, int], int] = {}
    paragraph_ids: dict[str, int] = {}
    asked: dict[str, _Asked] = {}
    problems: Counter[str] = Counter()
    examples: list[str] = []
    pairs = cut_answers = 0

    def problem(kind: str, record: str) -> None:
        if strict:
            raise DataError(f"{name}: {record}: {kind} (strict: true stops here; strict: false counts and goes on)")
        problems[kind] += 1
        if len(examples) < 5:
            examples.append(f"{record}: {kind}")

    for number, paragraph in enumerate(paragraphs):
        spans = sentence_spans(paragraph.text, language=language)
        if not spans:
            raise DataError(
                f"{name}: paragraph {number} ({paragraph.title!r}) holds no sentence: {paragraph.text[:40]!r}"
            )
        owner = paragraph_ids.setdefault(paragraph.text, len(paragraph_ids))
        sentences = [paragraph.text[start:end] for start, end in spans]
        for sentence in sentences:
            if (sentence, owner) not in index:
                index[sentence, owner] = len(candidates)
                candidates.append(sentence)
                owners.append(owner)
        starts = [start for start, _ in spans]
        for question in paragraph.questions:
            record = f"question {question.id!r}"
            found: dict[int, str] = {}
            for answer in question.answers:
                fault = _fault(answer.start, answer.text, paragraph.text)
                at = bisect_right(starts, answer.start) - 1
                if fault is None and (at < 0 or answer.start >= spans[at][1]):
                    fault = BETWEEN
                if fault is not None:
                    problem(fault, f"{record}, answer {answer.text[:40]!r} at {answer.start}")
                    continue
                cut_answers += answer.start + len(answer.text.rstrip()) > spans[at][1]
                found.setdefault(index[sentences[at], owner], answer.text)
                asked.setdefault(question.text, _Asked(question.id, question.text)).answers[answer.text] = None
            if not found:
                problem(NO_ANSWER, record)
                continue
            pairs += len(found)
            for position in found:
                asked[question.text].sentences[position] = None
    if not asked:
        raise DataError(f"{name}: none of its questions has a usable answer ({'; '.join(examples)})")
    _report(name, problems, examples)
    return Pool(
        name,
        language,
        tuple(candidates),
        tuple(owners),
        tuple(_questions(asked.values(), candidates, owners)),
        pairs,
        dict(problems),
        cut_answers=cut_answers,
        examples=tuple(examples),
    )


def build_document_pool(raw: RetrievalSet, *, name: str, language: str) -> Pool:
    """The pool of a BEIR-format set: its documents are the candidates, each a document of its own."""
    positions = {key: position for position, key in enumerate(raw.documents)}
    candidates = list(raw.documents.values())
    asked: dict[str, _Asked] = {}
    pairs = 0
    for key, text in raw.queries.items():
        entry = asked.setdefault(text, _Asked(key, text))
        for document in raw.qrels[key]:
            entry.sentences[positions[document]] = None
            pairs += 1
    owners = list(range(len(candidates)))
    questions = tuple(_questions(asked.values(), candidates, owners))
    return Pool(name, language, tuple(candidates), tuple(owners), questions, pairs, document_ids=tuple(raw.documents))


def _questions(asked: Iterable[_Asked], candidates: Sequence[str], owners: Sequence[int]) -> Iterable[PoolQuestion]:
    """Any candidate with the text of an answer sentence counts as found, as in the official code."""
    same_text: dict[str, list[int]] = {}
    for position, text in enumerate(candidates):
        same_text.setdefault(text, []).append(position)
    for entry in asked:
        sentences = sorted(entry.sentences)
        gold = sorted({position for sentence in sentences for position in same_text[candidates[sentence]]})
        yield PoolQuestion(
            entry.key,
            entry.text,
            tuple(gold),
            tuple(sentences),
            tuple(sorted({owners[position] for position in gold})),
            min(owners[sentence] for sentence in sentences),
            tuple(entry.answers),
        )


def _fault(start: int, answer: str, paragraph: str) -> str | None:
    if not 0 <= start < len(paragraph):
        return OUTSIDE
    return None if answer and paragraph.startswith(answer, start) else OTHER_TEXT


def _report(name: str, problems: Counter[str], examples: Sequence[str]) -> None:
    if problems:
        counts = ", ".join(f"{count} x {kind}" for kind, count in sorted(problems.items()))
        logger.warning("%s: left out %s; for example %s", name, counts, "; ".join(examples))


def load_pool(
    name: str,
    *,
    chosen: ReQASet | None = None,
    strict: bool = False,
    revision: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    spec: str | None = None,
) -> Pool:
    """The pool of a named set, read as REQA_DATA (or `spec`) says; built once in a process for the same settings."""
    if chosen is None and name not in SETS:
        raise unknown("ReQA set", name, SETS)
    return _load(name, chosen or SETS[name], data_spec(spec), strict, revision, limit, seed)


@lru_cache(maxsize=4)
def _load(
    name: str, chosen: ReQASet, spec: str, strict: bool, revision: str | None, limit: int | None, seed: int
) -> Pool:
    raw = read_set(name, chosen=chosen, spec=spec, revision=revision, limit=limit, seed=seed)
    if isinstance(raw, RetrievalSet):
        pool = build_document_pool(raw, name=name, language=chosen.language)
    else:
        pool = build_pool(raw, name=name, language=chosen.language, strict=strict)
    if chosen.path is not None or chosen.split == "train":
        logger.info("%s: %d pairs, %s", chosen.path or name, pool.pairs, pool.summary)
    if chosen.path is not None and (complaint := script_complaint(pool.candidates, chosen.language)):
        logger.warning("%s: %s", chosen.path, complaint)
    return pool
