"""What a family of tasks is, without the harness: settings, documents, how a document is asked, and a scorer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from qilin_tasks.metrics.metric import Table, recipes, rows, score_table, unavailable
from qilin_tasks.settings import Settings
from qilin_tasks.signature import digest_all
from qilin_tasks.strategy import Strategy

Document = Mapping[str, Any]
S = TypeVar("S", bound=Settings)
B = TypeVar("B")
Kind = Literal["generate_until", "loglikelihood"]


class Scorer(ABC, Generic[S, B]):
    """Documents and responses in, values a document out; tasks and `rescore` use it alike.

    A family sets METRICS and says how a batch is made; the settings are those of the task.
    """

    METRICS: ClassVar[Table[Any]]
    #: Metrics of which `asides` gives another tool's value.
    ASIDES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: S) -> None:
        self.settings = settings

    def check(self) -> None:
        """What must not wait until the responses are in (packages, models). Raises QilinTasksError."""

    @abstractmethod
    def batch(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> B:
        """What the metrics read; `responses[i]` holds one entry for each request of document i."""

    def unavailable(self) -> dict[str, str]:
        """Metrics that the settings switch off, each with the reason."""
        return unavailable(self.METRICS, self.settings)

    def score(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> list[dict[str, float]]:
        """One dict of METRICS a document, in order, without those that are switched off or don't count it."""
        return rows(score_table(self.METRICS, self.batch(docs, responses), off=self.unavailable()))

    def asides(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> list[dict[str, float]]:
        """Columns a document for its samples alone, no metrics: what another tool makes of the same responses."""
        return [{} for _ in docs]

    def signature_parts(self) -> dict[str, Any]:
        """The settings that change a number, in the order of the signature; the metrics' recipes come last."""
        return {**self.document_parts(), **recipes(self.METRICS, self.settings)}

    @abstractmethod
    def document_parts(self) -> dict[str, Any]:
        """The signature's parts that describe the documents and how they are asked."""

    def data_parts(self, documents: Sequence[Document]) -> dict[str, Any]:
        """The signature's parts that name the documents themselves."""
        return {"data": digest_all(documents)}

    def shown(self, response: Any) -> Any:
        """What the samples file shows as the filtered response."""
        return response


@dataclass(frozen=True)
class Request:
    """One question to the model: `arguments` as the harness takes them, `doc` as a baseline reads it.

    A generation holds its prompt alone, a log-likelihood its context and continuation; `images` are opened later.
    """

    doc: Document
    arguments: tuple[str, ...]
    images: Any = None


class Asking:
    """How a document becomes requests; the default is one prompt a document, its variables the document itself."""

    kind: Kind = "generate_until"
    multimodal = False

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def check(self) -> None:
        """What only a model's run needs, looked at before anything is asked. Raises QilinTasksError."""

    def views(self, doc: Document) -> list[Document]:
        """The variables of each of the document's prompts."""
        return [doc]

    def requests(self, doc: Document, prompts: Sequence[str], choices: Sequence[str]) -> list[Request]:
        """The requests of a document, in order, from the prompts of its views (and the YAML's `doc_to_choice`)."""
        return [Request(doc, (prompt,)) for prompt in prompts]


@dataclass(frozen=True, kw_only=True)
class Family:
    """One row of FAMILIES; `document` is the TypedDict of a document, `load` makes them all from the settings.

    `note` is what a reader must know of its numbers; it stands wherever they do.
    """

    settings: type[Settings]
    document: type
    load: Callable[[Any], Sequence[Mapping[str, Any]]]
    scorer: type[Scorer[Any, Any]]
    baselines: Mapping[str, Strategy]
    asking: type[Asking] = Asking
    note: str = ""
