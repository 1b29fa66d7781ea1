"""The rule of RankLLM (castorini/rank_llm, `clean_ranking_response` and `ListwiseRankLLM.receive_permutation`).

Other tools read a ranking like this; their figures compare with ours only where both rules are applied.
"""

from __future__ import annotations

import unicodedata


def simple_ranking(text: str | None, n: int) -> tuple[int, ...]:
    """All numbers of the text in order, without repetitions and what is outside 1..n; never raises.

    Only what follows the last `</think>` counts. A digit is what Unicode calls one, circled and raised ones included.
    What isn't mentioned is left out: RankLLM appends it in shown order, as `metrics.ranking.repair` does.
    """
    answer = (text or "").rpartition("</think>")[2]
    digits = "".join(str(unicodedata.digit(c)) if c.isdigit() else " " for c in answer)
    longest = len(str(max(n, 0)))
    stripped = (number.lstrip("0") for number in digits.split())
    return tuple(dict.fromkeys(int(i) for i in stripped if i and len(i) <= longest and int(i) <= n))
