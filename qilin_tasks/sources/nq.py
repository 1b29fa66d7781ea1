"""Natural Questions to SQuAD format: streamed once into a small local file, since the full set is tens of gigabytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.files import write_whole
from qilin_tasks.hub_reach import reach_hub

HUB_ID = "google-research-datasets/natural_questions"
SPLITS = {"validation": 7_830, "train": 307_373}
FILES = {"validation": "nq.dev.json", "train": "nq.train.json"}
# A state is written this often: at most so many rows are read twice after an interruption.
CHECKPOINT_ROWS = 200


def convert_nq(
    destination: Path,
    *,
    split: str = "validation",
    revision: str | None = None,
    source: Any = None,
    total: int | None = None,
    progress: bool = True,
) -> Path:
    """Write the split's usable examples to `destination` as SQuAD JSON; returns it, at once where it already exists.

    An interrupted run goes on where it stopped (state in `<destination>.part`). `source`: an iterable data set with
    `state_dict`/`load_state_dict` in place of the hub's. Raises DataError where the hub can't be read.
    """
    if destination.is_file():
        return destination
    destination.parent.mkdir(parents=True, exist_ok=True)
    part = destination.with_name(destination.name + ".part")
    stream = source if source is not None else _open_stream(split, revision)
    done = _resume(part, stream)
    rows = _copy(stream, part, done=done, total=total or SPLITS.get(split), progress=progress)
    articles = []
    for line in part.read_text(encoding="utf-8").rstrip("\n").split("\n"):
        articles.extend(json.loads(line)["articles"])
    if not articles:
        raise DataError(f"{HUB_ID} ({split}): none of {rows} examples has one short answer inside a <P> paragraph")
    write_whole(destination, json.dumps({"version": f"nq-{split}", "data": articles}, ensure_ascii=False))
    part.unlink()
    return destination


def _open_stream(split: str, revision: str | None) -> Any:
    import datasets

    reach_hub(HUB_ID)
    try:
        return datasets.load_dataset(HUB_ID, split=split, revision=revision, streaming=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{HUB_ID} ({split}) can't be streamed ({type(error).__name__}: {str(error).splitlines()[0][:200]}); put a "
            f"converted file {FILES[split]} into the folder that REQA_DATA names, or use REQA_DATA=sample"
        ) from error


def _resume(part: Path, stream: Any) -> int:
    """Rows that are already in `part`; the stream is moved behind them. A last line that was cut off is dropped."""
    if not part.is_file():
        return 0
    kept, state, rows = [], None, 0
    for line in part.read_bytes().splitlines(keepends=True):
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n"):
            break
        kept.append(line)
        state, rows = record["state"], record["rows"]
    write_whole(part, lambda file: file.writelines(kept))
    if state is not None:
        stream.load_state_dict(state)
    return rows


def _copy(stream: Any, part: Path, *, done: int, total: int | None, progress: bool) -> int:
    from tqdm import tqdm

    rows, written = done, done
    articles: list[dict[str, Any]] = []
    with (
        part.open("a", encoding="utf-8") as file,
        tqdm(total=total, initial=done, desc="Natural Questions", unit="row", disable=not progress) as bar,
    ):

        def checkpoint() -> None:
            record = {"rows": rows, "state": stream.state_dict(), "articles": articles}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()
            articles.clear()

        for row in stream:
            article = example_to_article(row)
            if article is not None:
                articles.append(article)
            rows += 1
            bar.update()
            if rows - written >= CHECKPOINT_ROWS:
                checkpoint()
                written = rows
        if rows > written:
            checkpoint()
    return rows


def example_to_article(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """One example as a SQuAD article, or None where it isn't used.

    Only the first annotation counts: it must have exactly one short answer and a long answer whose HTML block is `<P>`
    (ReQA, arXiv 1907.04780). The paragraph is the long answer without HTML tokens.
    """
    tokens = _tokens(row["document"])
    annotations = _annotations(row["annotations"])
    if not annotations:
        return None
    long_answer, short_answers = annotations[0]
    first, last = int(long_answer["start_token"]), int(long_answer["end_token"])
    starts, ends = list(short_answers["start_token"]), list(short_answers["end_token"])
    if len(starts) != 1 or not 0 <= first < last <= len(tokens) or tokens[first][0].upper() != "<P>":
        return None
    begin, end = int(starts[0]), int(ends[0])
    paragraph, offsets = _detokenise(tokens, first, last, page=row["document"].get("html"))
    inside = [offsets[n] for n in range(begin, end) if n in offsets]
    if not inside or not first <= begin < end <= last:
        return None
    answer = {"text": paragraph[inside[0][0] : inside[-1][1]], "answer_start": inside[0][0]}
    question = {"id": str(row["id"]), "question": row["question"]["text"].strip(), "answers": [answer]}
    title = str(row["document"].get("title") or "")
    return {"title": title, "paragraphs": [{"context": paragraph, "qas": [question]}]}


_TAG = re.compile(rb"<[^<>]*>")
Token = tuple[str, bool, int, int]


def _tokens(document: Mapping[str, Any]) -> Sequence[Token]:
    columns = document["tokens"]
    names = ("token", "is_html", "start_byte", "end_byte")
    if isinstance(columns, Mapping):
        return list(zip(*(columns[name] for name in names), strict=True))
    return [(t["token"], t["is_html"], t["start_byte"], t["end_byte"]) for t in columns]


def _annotations(annotations: Any) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    if isinstance(annotations, Mapping):
        return list(zip(annotations["long_answer"], annotations["short_answers"], strict=True))
    return [(annotation["long_answer"], annotation["short_answers"]) for annotation in annotations]


def _detokenise(
    tokens: Sequence[Token], begin: int, end: int, *, page: str | None
) -> tuple[str, dict[int, tuple[int, int]]]:
    """The text of a token range without its HTML tokens, and where each token stands in it.

    Two tokens are joined without a space where the page has nothing between them but tags, which the token list may
    lack: then the page itself tells. `H<sub>2</sub>O` gives `H2O`.
    """
    markup = page.encode("utf-8", "surrogatepass") if page else b""
    text = ""
    offsets: dict[int, tuple[int, int]] = {}
    previous_end: int | None = None
    for number in range(begin, end):
        token, is_html, start_byte, end_byte = tokens[number]
        apart = previous_end is not None and start_byte > previous_end
        if apart and text and not text.endswith(" "):
            between = markup[previous_end:start_byte]
            if not between or _TAG.sub(b"", between):
                text += " "
        previous_end = end_byte
        if not is_html:
            offsets[number] = (len(text), len(text) + len(token))
            text += token
    return text.rstrip(), offsets
