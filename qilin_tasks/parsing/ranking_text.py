"""What a model wrote as a ranking, brought to one notation: ASCII digits, `[3]` for a bracketed id, no markup."""

from __future__ import annotations

import re

from qilin_tasks.parsing.ranking_symbols import fold

LABEL = (
    r"(?:passage|document|doc|note|candidate|sentence|item|id|article|paragraph|snippet|chunk|(?<![a-z])[pds]"
    r"|文档|文章|段落|笔记|候选|编号|句子|材料|资料|选项|片段|เอกสาร|ข้อความ|ประโยค|บทความ|โน้ต|หมายเลข)"
)
# What a model puts between two ids of one ranking, beside signs.
CONNECTIVES = (
    r"(?:and|then|finally|lastly|next|followed by|over|before|和|以及|与|及|然后|接着|其次|再|最后是?|优于|高于|大于"
    r"|และ|ตามด้วย|แล้ว|จากนั้น)"
)
_FENCE = re.compile(
    r"(?:`{3,}|~{3,}) ?(?:(?:json[5lc]?|te?xt|plain(?:text)?|py(?:thon)?|markdown|md|ya?ml|csv|tsv|html|xml|bash|none)"
    r"(?![\w:])|[A-Za-z+-]{1,20}(?=\n|\Z))?"
)
_TAG = re.compile(r"</?(?P<name>[a-zA-Z][a-zA-Z0-9]{0,15})(?: [^<>\n]{0,200})? ?/?>")
_BLOCK_TAGS = frozenset({"br", "p", "li", "ol", "ul", "tr", "div", "table", "tbody", "thead", "h1", "h2", "h3", "pre"})
_ENCLOSED = re.compile(
    rf"(?<![0-9\])])(?<![0-9\])] )< ?(?P<angle>(?:{LABEL}[ _#:-]?)?#?[0-9]{{1,4}}) ?>"
    rf"|\{{ ?(?P<brace>(?:{LABEL}[ _#:-]?)?#?[0-9]{{1,4}}) ?\}}",
    re.IGNORECASE,
)
_GREATER = re.compile(
    r"\\(?:succ(?:eq)?|gg|gt|geq?|to|implies|(?:[Ll]ong)?[Rr]ightarrow)(?![a-zA-Z])|[-=~]{1,3}>|\|>|>{2,}"
)
_LESS = re.compile(r"\\(?:prec(?:eq)?|ll|lt|leq?|(?:[Ll]ong)?[Ll]eftarrow)(?![a-zA-Z])|<[-=~]{1,3}(?!>)|<{2,}")
_BOXED = re.compile(r"\\(?:boxed|fbox) ?(?=\{)")
_LATEX = re.compile(
    r"\\(?:text(?:bf|it|rm|tt)?|mathbf|mathrm|mathit) ?(?=\{)|\\(?:left|right|[lr]brack|displaystyle)(?![a-zA-Z])"
    r"|\\(?:q?quad(?![a-zA-Z])|[,;:! ])|\\(?=[\[\](){}_<>#*|-])|\$"
)
_NOISE = re.compile("[*`\"']|~~|(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])")
_LINK = re.compile(r"(?<=\])\((?:#|https?:|\.?/)[^()\s]{0,200}\)")
_PARENTHESES = re.compile(r"\( ?(\[[^\[\]()\n]{1,20}\]) ?\)")
_NUMBER = rf"(?:{LABEL}[ _#:-]?|# ?)?-?[0-9]{{1,9}}"
_LIST = re.compile(
    rf"\[\s?(?P<items>{_NUMBER}(?:\s?[,;|>/]\s?{_NUMBER}|\s{_NUMBER})+)\s?(?P<stop>[,;>]?)\s?(?:(?P<close>\])|\Z)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"-?[0-9]{1,9}")
_ID = r"(?:\[|[0-9(#]|" + LABEL + r"\s?[0-9\[])"
_GOES_ON = re.compile(rf"[>,;&] ?\n(?={_ID})|(?<=[\])0-9]) ?\n> ?(?={_ID})", re.IGNORECASE)
# A list that begins on the line of its heading.
_LEAD_IN = re.compile(r": ?(?=\(?1 ?[.)] ?\[-?[0-9])")
_SEVERAL = re.compile(r"[0-9][^\n0-9]{1,12}[0-9]")


def normalise(text: str) -> str:
    """One notation for what means the same; `[3, 1, 2]` becomes `[3] , [1] , [2]`. Idempotent on ids and signs.

    Digits, brackets and arrows of any script, LaTeX and HTML, fences, Markdown emphasis and quotes go, and so do blank
    lines. A list that isn't closed loses its last number where that may be cut.
    """
    text = _single_spaced(fold(text))
    text = _LATEX.sub("", _BOXED.sub(" answer: " if text.count("\\boxed") == 1 else "", _FENCE.sub("\n", text)))
    text = _TAG.sub(_untagged, _ENCLOSED.sub(_bracketed, text))
    text = _LESS.sub("<", _GREATER.sub(">", text))
    text = _single_spaced(_PARENTHESES.sub(r"\1", _NOISE.sub("", _LINK.sub("", text))))
    return _LEAD_IN.sub(":\n", _LIST.sub(_spread, _joined(_unquoted(text))))


def _single_spaced(text: str) -> str:
    """No white space but single spaces and line ends, no blank lines: what is searched then never looks back far."""
    lines = (line.strip() for line in re.sub(r"[^\S\n]+", " ", text).split("\n"))
    return "\n".join(line for line in lines if line)


def _untagged(tag: re.Match[str]) -> str:
    name = tag["name"].lower()
    return "\n" if name in _BLOCK_TAGS else "|" if name in ("td", "th") else " "


def _bracketed(enclosed: re.Match[str]) -> str:
    return f"[{enclosed['angle'] or enclosed['brace']}]"


def _unquoted(text: str) -> str:
    """Without Markdown's quote marks, where every line has one."""
    lines = text.split("\n")
    if len(lines) > 1 and all(line.startswith(">") for line in lines):
        return "\n".join(line[1:].lstrip() for line in lines)
    return text


def _joined(text: str) -> str:
    """A ranking that is wrapped over lines, on one line; a list with one id a line stays as it is."""
    place = end = 0
    pieces: list[str] = []
    for found in _GOES_ON.finditer(text):
        start = text.rfind("\n", max(place, found.start() - 2000), found.start()) + 1
        if found[0][0] == ">" or "\n>" in found[0] or _SEVERAL.search(text, max(start, place), found.start()):
            pieces += [text[end : found.start()], found[0].replace("\n", " ")]
            end = found.end()
        place = found.end()
    return "".join([*pieces, text[end:]])


def _spread(match: re.Match[str]) -> str:
    numbers = _ITEM.findall(match["items"])
    if match["close"] is None and not match["stop"]:
        numbers.pop()
    sign = " > " if ">" in match["items"] else " , "
    return sign.join(f"[{number}]" for number in numbers)
