"""Which of the chains in a text is the answer: not an example, not the shown order, not the reasons behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from qilin_tasks.parsing.ranking_forms import Chain, Form, ascending

_ASIDE = re.compile(
    r"example|for instance|e\.g\.|such as|\bsample|instead of|rather than|alternativ|template|placeholder|original"
    r"|\binitial|\bbaseline|(?:given|shown|input|presented|listed|default|previous|old|wrong) (?:order|ranking|list)"
    r"|as (?:given|shown|listed|presented)|(?<!requested )(?<!required )(?<!specified )(?<!correct )\bformat"
    r"|例如|比如|譬如|示例|例子|样例|格式如|格式为|格式是|如下格式|以下格式|输出格式|原始|原来|原先|原顺序|原排序|初始|输入顺序"
    r"|给定的?顺序|展示顺序|默认顺序|之前的|而不是|而非|备选|ตัวอย่าง|เช่น|รูปแบบ|ลำดับเดิม|ลำดับเริ่มต้น|ต้นฉบับ"
    r"|ejemplo|exemple|beispiel|esempio|exemplo|пример|исходн|例えば|元の順|예시|예를|원래|مثال|الأصلي|उदाहरण|मूल",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"final|answer|conclu|therefore|\bthus|\bhence|correct|revised|updated|re-?rank|new order|new ranking"
    r"|最终|最后|最終|答案|结论|因此|所以|综上|修正|重新排序|คำตอบ|สุดท้าย|สรุป|respuesta|réponse|antwort|ответ|итог|답|답변|答え"
    r"|الإجابة|النهائي|अंतिम|उत्तर",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[!?;]|\.(?= ?(?:[A-Z\u3040-\u9fff\u0e00-\u0e7f]|$))")
_REMARK = re.compile(r" ?(?:\([^()\[\]\d\n]{1,60}\)|(?:,? ?(?:which|this|that) )?(?:is|was|是|为)[^()\[\]\d\n]{1,60})")
_EARLIER = re.compile(r"\]|[<>] ?\d+")
_REACH = 120


def choose(chains: Sequence[Chain], lines: Sequence[str], *, n: int) -> Sequence[int]:
    """The ids, as written, of the chain that answers; `lines` is the normalised text that the chains stand in.

    What is said to be an example or another order counts only where nothing else does. A comparison, or a complete
    ranking without words, beats a later list with words. The last complete ranking wins, else the longest; the shown
    order loses to any other complete one.
    """
    usable = [chain for chain in chains if _ranked(chain, n) and (_full(chain, n) or not chain.doubtful)]
    if not usable:
        return next((chain.ids for chain in reversed(chains) if chain.marked and chain.form > Form.MENTION), ())
    left = [chain for chain in usable if not _said(_ASIDE, chain, lines)] or usable
    marked = any(chain.marked and chain.form > Form.MENTION for chain in left)
    left = _kept(left, lambda chain: chain.marked or chain.form == Form.ARROW or _full(chain, n) or not marked)
    left = _without_shown_order(left, n)
    left = _without_reasons(left, lines, n)
    left = _kept(left, lambda chain: chain.form > Form.MENTION)
    complete = [chain for chain in left if _full(chain, n)]
    if complete:
        best = max(complete, key=lambda chain: (chain.form > Form.PROSE, _said(_FINAL, chain, lines), _place(chain)))
        return best.ids
    return max(left, key=lambda chain: (_ranked(chain, n), _place(chain))).ids


def _kept(chains: list[Chain], keeps: Callable[[Chain], bool]) -> list[Chain]:
    """Those that a rule keeps, or all where it keeps none."""
    return [chain for chain in chains if keeps(chain)] or chains


def _without_shown_order(chains: list[Chain], n: int) -> list[Chain]:
    """Without 1..n as they were shown, where another complete ranking stands that is more than words behind ids."""
    others = [chain for chain in chains if _full(chain, n) and not _is_shown(chain, n)]
    if not others:
        return chains
    explained = all(chain.form <= Form.PROSE for chain in others)
    return [chain for chain in chains if not _is_shown(chain, n) or (explained and chain.form > Form.LIST)]


def _without_reasons(chains: list[Chain], lines: Sequence[str], n: int) -> list[Chain]:
    """Without the lists with words that stand behind a ranking, and those in shown order anywhere."""
    statements = [
        chain
        for chain in chains
        if len(set(chain.ids)) > 1
        and (
            (chain.form == Form.ARROW and (chain.standing or _full(chain, n)))
            or (chain.form == Form.PLAIN and _full(chain, n))
        )
    ]
    if not statements:
        return _kept(chains, lambda chain: chain.form != Form.PROSE or not ascending(chain.ids))
    first = min(map(_place, statements))

    def keeps(chain: Chain) -> bool:
        if chain.form not in (Form.LIST, Form.PROSE):
            return True
        if ascending(chain.ids):
            return False
        final = chain.form == Form.LIST and _full(chain, n) and _said(_FINAL, chain, lines)
        return _place(chain) < first or final

    return _kept(chains, keeps)


def _place(chain: Chain) -> tuple[int, int]:
    return chain.line, chain.start


def _ranked(chain: Chain, n: int) -> int:
    return len({i for i in chain.ids if 1 <= i <= n})


def _full(chain: Chain, n: int) -> bool:
    return _ranked(chain, n) == n


def _is_shown(chain: Chain, n: int) -> bool:
    return _full(chain, n) and ascending(tuple(dict.fromkeys(i for i in chain.ids if 1 <= i <= n)))


def _said(words: re.Pattern[str], chain: Chain, lines: Sequence[str]) -> bool:
    """Whether the sentence before a chain, a heading above it, or a remark right behind it says so."""
    line = lines[chain.line]
    before = line[max(0, chain.start - _REACH) : chain.start]
    if not re.search(r"[^\W\d_]", before):
        above = next((lines[i] for i in range(chain.line - 1, max(-1, chain.line - 3), -1) if lines[i]), "")
        before = above[-_REACH:] if above.endswith(":") or above.startswith("#") else ""
        before = before.rstrip(":")
    stops = [found.end() for found in _SENTENCE_END.finditer(before) if before[found.end() - 3 : found.end()] != ".g."]
    ids = [found.end() for found in _EARLIER.finditer(before)]
    if words.search(before[max([0, *stops, *ids]) :]):
        return True
    remark = _REMARK.match(line, chain.end) if words is _ASIDE and chain.end else None
    return remark is not None and words.search(remark[0]) is not None
