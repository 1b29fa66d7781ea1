"""Many texts at once, as Python strings or as Arrow columns, seen as strings or as code points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Texts(Protocol):
    """A sequence of texts, nulls already empty."""

    def __len__(self) -> int:
        """The number of texts."""

    def tolist(self, positions: NDArray[np.int64] | None = None) -> list[str]:
        """The texts (at `positions`) as strings."""

    def code_points(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """All texts in a row, a blank behind each, and where each starts (one more entry: the end)."""


class ListTexts:
    """Python strings."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def tolist(self, positions: NDArray[np.int64] | None = None) -> list[str]:
        if positions is None:
            return list(self._texts)
        return [self._texts[position] for position in positions.tolist()]

    def code_points(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        lengths = np.fromiter(map(len, self._texts), dtype=np.int64, count=len(self._texts))
        joined = " ".join([*self._texts, ""]).encode("utf-32-le", errors="surrogatepass")
        return np.frombuffer(joined, dtype=np.uint32), _starts(lengths + 1)


class ArrowTexts:
    """Titles and contents as Arrow string arrays; a text is title, a space, content."""

    def __init__(self, titles: Any, contents: Any) -> None:
        import pyarrow.compute as pc

        self._joined = pc.binary_join_element_wise(
            titles, contents, "", " ", null_handling="replace", null_replacement=""
        )

    def __len__(self) -> int:
        return len(self._joined)

    def tolist(self, positions: NDArray[np.int64] | None = None) -> list[str]:
        chosen = self._joined if positions is None else self._joined.take(positions)
        # The blank that keeps a text from its neighbour in `code_points` is not its own.
        return [text[:-1] for text in chosen.to_pylist()]

    def code_points(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        import pyarrow.compute as pc

        lengths = pc.utf8_length(self._joined).to_numpy(zero_copy_only=False)
        offsets = np.frombuffer(self._joined.buffers()[1], dtype=np.int32)
        first, last = offsets[self._joined.offset], offsets[self._joined.offset + len(self._joined)]
        data = self._joined.buffers()[2]
        joined = (data.slice(first, last - first).to_pybytes() if data is not None else b"").decode("utf-8")
        return np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32), _starts(lengths)


def _starts(lengths: NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
