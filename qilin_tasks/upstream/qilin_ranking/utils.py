"""Search and recommendation of Qilin (arXiv:2503.00501, Table 10): rankings to MRR and MAP."""

import html
import re
import unicodedata
from collections import defaultdict
from functools import partial
from statistics import fmean

from lm_eval.tasks.qilin.utils import answer_of


# One notation for what means the same: `>` for arrows, [3] for other brackets and labels.
_ARROW = re.compile(r"\\(?:succ|gt|to|rightarrow)(?![a-z])|[≻→⇒➔»]|[-=]+>|>{2,}")
_NOISE = re.compile(r"```\w*|\\(?:boxed|text)|[*`\"'“”$\\{}\u200b]")
_BRACKETS = str.maketrans("【〔「『】〕」』", "[[[[]]]]")
_LABEL = re.compile(
    r"(?:\b(?:passage|document|doc|note|candidate|item)s?|\b[dp]|文档|笔记|候选|编号|#)"
    r"[^\S\n]*(?=\[?\s*\d)",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"\[\s*(-?\d+(?:[\s,;、>]+-?\d+)*)\s*(,?)\s*(\]|\Z)")
_ID, _NUMBER = r"\[-?\d{1,6}\]", r"(?<![\w.,\[-])\d{1,4}(?![\w\]]|[.,]\d)"
# [3] (0.9) > [1] a title > [2], or of bare numbers, or of numbers in parentheses.
_COMPARISON = re.compile(
    rf"{_ID}(?:[^\n\[\]>]{{0,80}}\s*>\s*{_ID})+|{_NUMBER}(?:\s*>\s*{_NUMBER})+"
    r"|\(\d{1,4}\)(?:\s*>\s*\(\d{1,4}\))+"
)
_SEPARATOR = (
    r"(?:[\s,;:、。|=-]|and|then|和|以及|\([^()]{0,40}\)|\d+(?:st|nd|rd|th)?[.):])"
)
_ROW = re.compile(
    rf"{_ID}(?:{_SEPARATOR}{{0,12}}{_ID})+"
    r"|(?:^|[:=(])[\s(]*\d{1,4}(?:[\s,;、]+(?:then\s+)?\d{1,4})+[\s).。;]*$"
)
_ITEM = re.compile(
    r"(?:(?:rank|อันดับ|第)?\s*(?P<ordinal>\d{1,3})(?:st|nd|rd|th|名)?\s*(?:[.):|]|(?=\[)))?"
    r"\s*(?:\[(?P<id>-?\d{1,6})\]|(?P<number>\d{1,4})$)",
    re.IGNORECASE,
)
_ONE = re.compile(
    rf"(?im){_ID}|(?:answer|ranking|答案|结果)[^\d\n\[]{{1,20}}\d{{1,4}}\W*$"
)
# Before a ranking on its line: it is not the answer.
_EXAMPLE = re.compile(r"example|e\.g\.|original|例如|格式|原", re.IGNORECASE)


def normalised(text):
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_BRACKETS)
    text = "".join(
        str(unicodedata.digit(c)) if c.isdecimal() else c
        for c in text.replace("،", ",")
    )
    text = _LABEL.sub("", _NOISE.sub("", _ARROW.sub(">", text)))
    return _IN_BRACKETS.sub(separated, text)


def separated(match):
    """[3, 1, 2] as [3], [1], [2], without the last number where that may be cut off."""
    numbers = re.findall(r"-?\d+", match[1])
    if not match[3] and not match[2]:
        numbers.pop()
    return ", ".join(f"[{number}]" for number in numbers)


def lists(text):
    """Pairs of what stands before a list, and its ids: on one line, or one a line."""
    items, last = [], 0
    for line in text.splitlines():
        line = line.strip(" \t|>*•-+")
        row, item = _ROW.search(line), _ITEM.match(line)
        ordinal = int(item["ordinal"] or 0) if item else 0
        ends = row or not item and not last or item and not last <= ordinal
        if items and line and (ends or item and bool(last) != bool(ordinal)):
            yield "", items
            items = []
        if row:
            yield line[: row.start()], ids_in(row[0])
        elif item:
            items.append(int(item["id"] or item["number"]))
            last = ordinal
    yield "", items


def ids_in(chain):
    return [
        int(i) for i in re.findall(r"\[(-?\d+)\]", chain) or re.findall(r"\d+", chain)
    ]


def read_ids(text, n):
    """The ids of the ranking in an answer, as written; [] without one.

    Comparisons, then lists, then a single id; of each the last that ranks most of 1..n.
    """
    text = normalised(text)
    comparisons = [
        (text[text.rfind("\n", 0, match.start()) + 1 : match.start()], ids_in(match[0]))
        for match in _COMPARISON.finditer(text)
    ]
    single = [("", ids_in(match[0])) for match in _ONE.finditer(text)]
    for level in (comparisons, lists(text), single):
        best = [0, 0], []
        for lead, ids in level:
            rank = [not _EXAMPLE.search(lead), len({*ids} & {*range(1, n + 1)})]
            best = (rank, ids) if rank[1] and rank >= best[0] else best
        if best[1]:
            return best[1]
    return []


def ranking_of(response, n):
    """`[3] > [1] > [2]`: the ids as written; None where the reasoning was cut off."""
    answer = answer_of(response)
    if answer is None:
        return None
    return " > ".join(f"[{i}]" for i in read_ids(answer, n))


def rankings(resps, docs):
    """Filter: the rankings of every repeat."""
    return [
        [ranking_of(response, len(doc["candidates"])) for response in repeats]
        for repeats, doc in zip(resps, docs, strict=True)
    ]


def measures(hits, n_relevant):
    """From the ranks of the clicked notes; MAP divides as the official code does."""
    scores = {}
    for k in (10, 100):
        scores[f"mrr@{k}"] = 1 / hits[0] if hits and hits[0] <= k else 0.0
        found = sum(i / rank for i, rank in enumerate(hits, 1) if rank <= k)
        scores[f"map@{k}"] = found / min(n_relevant, k)
    return scores


def score(doc, ranking):
    n, written = len(doc["candidates"]), ids_in(ranking or "")
    ranked = [i for i in dict.fromkeys(written) if 1 <= i <= n]
    hits = [rank for rank, i in enumerate(ranked, 1) if i in doc["relevant"]]
    return {
        **measures(hits, doc["n_relevant"]),
        "valid_rate": float(sorted(written) == list(range(1, n + 1))),
        "unfinished_reasoning_rate": float(ranking is None),
    }


def process_listwise(doc, results):
    """Means over the repeats."""
    # The filter's list as it is (0.5), or as that of the only request (0.4).
    repeats = results[0] if isinstance(results[0], list) else results
    rows = [score(doc, ranking) for ranking in repeats]
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def candidates(dataset):
    """A row for each candidate of each request."""

    def rows(batch):
        places = [
            (at, place, candidate)
            for at, shown in enumerate(batch["candidates"])
            for place, candidate in enumerate(shown, 1)
        ]
        same = ("doc_key", "query", "history", "n_relevant")
        return {
            **{key: [batch[key][at] for at, _, _ in places] for key in same},
            "place": [place for _, place, _ in places],
            "candidate": [candidate for _, _, candidate in places],
            "clicked": [place in batch["relevant"][at] for at, place, _ in places],
        }

    return dataset.map(rows, batched=True, remove_columns=dataset.column_names)


def process_pointwise(doc, results):
    """What a ranking of the request needs, for `over_requests`."""
    (yes, _), (no, _) = results
    margin = 0.0 if yes == no else yes - no  # -inf - -inf
    row = (doc["doc_key"], -margin, doc["place"], doc["clicked"], doc["n_relevant"])
    return dict.fromkeys(("mrr@10", "mrr@100", "map@10", "map@100"), row)


def over_requests(name, rows):
    """Aggregation: candidates ranked by their margin, ties in shown order."""
    requests = defaultdict(list)
    for request, *row in rows:
        requests[request].append(row)
    values = []
    for ranked in map(sorted, requests.values()):
        hits = [rank for rank, (_, _, clicked, _) in enumerate(ranked, 1) if clicked]
        values.append(measures(hits, ranked[0][-1])[name])
    return fmean(values)


mrr_10 = partial(over_requests, "mrr@10")
mrr_100 = partial(over_requests, "mrr@100")
map_10 = partial(over_requests, "map@10")
map_100 = partial(over_requests, "map@100")
