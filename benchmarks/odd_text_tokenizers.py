"""Seconds that tokenizers, analyzers, splitters and the trimmer take for long texts of one thing; one JSON line a row.

python benchmarks/odd_text_tokenizers.py [--size 1000000] [--only jieba]

Processor time, after a first call that loads dictionaries. A row that is far above the others of its column, or that
grows fourfold where --size doubles, is quadratic.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

from qilin_tasks.text.analyzers import ANALYZERS
from qilin_tasks.text.notes import plain, trim
from qilin_tasks.text.sentences import sentence_spans
from qilin_tasks.text.tokens import Codes, encode_chars, tokenize_chars, tokenize_jieba

UNITS = {
    "underscore": "_", "full stop": ".", "exclamation mark": "!", "hash": "#", "quotation mark": '"', "blank": " ",
    "line": "\n", "joiner": "\u200d", "accent": "\u0301", "variation selector": "\ufe0f", "letter": "a", "digit": "1",
    "ideograph": "的", "ideograph without a word": "夨", "ideographic full stop": "。", "katakana": "ア",
    "hangul": "한", "thai": "ก", "thai and blank": "ก ", "family": "👨\u200d👩\u200d👧",
    "flag": "🇹🇭", "keycap": "1\ufe0f\u20e3",
    "letter and underscore": "a_", "word": "ab ",
    "chinese": "我爱北京天安门", "reference": ".[1]",
}  # fmt: skip

FUNCTIONS: dict[str, Callable[[str], object]] = {
    "chars": tokenize_chars,
    "chars encoded": lambda text: encode_chars(text, Codes()),
    "jieba": tokenize_jieba,
    **{f"analyzer {language}": function for language, function in ANALYZERS.items()},
    **{f"sentences {name}": lambda text, name=name: sentence_spans(text, language=name) for name in ("en", "zh", "th")},  # type: ignore[misc]
    "plain": plain,
    "trim": lambda text: trim(text, 600),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000, help="characters (default %(default)s)")
    parser.add_argument("--only", nargs="+", choices=sorted(FUNCTIONS), default=list(FUNCTIONS))
    arguments = parser.parse_args()
    for name in arguments.only:
        FUNCTIONS[name]("a 中文 ก")
        for unit, characters in UNITS.items():
            text = (characters * arguments.size)[: arguments.size]
            begun = time.process_time()
            FUNCTIONS[name](text)
            seconds = round(time.process_time() - begun, 3)
            print(json.dumps({"function": name, "text": unit, "characters": len(text), "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
