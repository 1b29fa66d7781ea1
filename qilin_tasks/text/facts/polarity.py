"""Claims of a text: common predicates, affirmed or denied."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Questions that leave it open, and words that only look like a predicate.
_OPEN = re.compile(
    r"是不是|有没有|能不能|会不会|要不要|可不可以|好不好[吃用]|值不值得|喜不喜欢|适不适合|需不需要|不得不"
)
_TWICE = re.compile(
    r"(?:不是|没有|并非)不(?=可以|能|会|要|需要|推荐|建议|适合|支持|值得|喜欢|好吃|好用)|(?<=能)不(?=[一-鿿])"
)
_PREDICATE = re.compile(
    r"(?P<neg>没有|[不没别未无])?(?:太|很|再|怎么|特别|那么|一定|都)?"
    r"(?P<word>可以|(?<![功可智技潜性])能(?![力量耗源])|(?<![机社聚开约宴展一])会(?![员议所场计])"
    r"|需要|推荐|建议|适合|支持|值得|喜欢|好吃|好用"
    r"|(?<![主重需只必])要(?![求点是么素])|(?<![但还可于总要老])是(?!否)|(?<![所拥现])有(?![点些名效机趣关时限]))"
)
#: A clause without any of these makes no claim.
_SOME = re.compile("[可能会需推建适支值喜好要是有a-z]")
_ASPECT = re.compile(r"[去开想用买吃看见试到来做完过等]|发现")
_ENGLISH = re.compile(
    r"\b(?P<word>is|are|was|were|be|can|could|may|will|would|has|have|had|do|does|did|should|must)"
    r"(?P<neg>\s?n[o']t\b|n't\b|\s+(?:not|never|no)\b)?"
)
_LEMMAS = {
    **dict.fromkeys(("is", "are", "was", "were", "be"), "be"),
    **dict.fromkeys(("can", "could", "may"), "can"),
    **dict.fromkeys(("will", "would"), "will"),
    **dict.fromkeys(("has", "have", "had"), "have"),
    **dict.fromkeys(("do", "does", "did"), "do"),
}


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def claims(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """(start, end, predicate, affirmed) of each claim of a text in comparing form, in order.

    不是不, 没有不 and 能不 before a predicate cancel out; 是不是 and its like say nothing.
    """
    if _SOME.search(text) is None:
        return
    text = _TWICE.sub(_blank, _OPEN.sub(_blank, text)).replace("不能 ", " 能 ")
    for match in _PREDICATE.finditer(text):
        word, negator = match["word"], match["neg"]
        if negator == "没有" and word not in ("好吃", "好用"):
            yield match.start(), match.start() + 2, "有", False
            negator = None
        if word == "有" and _ASPECT.match(text, match.end()) and negator == "没":
            continue
        affirmed = negator is None
        if (
            affirmed
            and word in ("好吃", "好用")
            and re.search("没有[^,。!?]{1,5}$", text[max(0, match.start() - 8) : match.start()])
        ):
            affirmed = False
        yield match.start(), match.end(), word, affirmed
    for match in _ENGLISH.finditer(text):
        yield match.start(), match.end(), _LEMMAS.get(match["word"], match["word"]), match["neg"] is None
