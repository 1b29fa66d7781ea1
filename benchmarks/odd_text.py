"""Seconds that every tokenizer, analyzer, splitter and parser takes for a long text of one thing; a table, a JSON line.

    python benchmarks/odd_text.py [--size 1000000] [--only jieba] [--texts "full stop"] [--rows rows.jsonl]

Processor time, after a first call that loads dictionaries. The target is 2 s for 1,000,000 characters. A function takes
a hundredth, a tenth and then the whole of each text, and stops where the next would by its growth so far take more than
a minute: such a row says what it was foreseen to take (`foreseen`). `--rows` keeps each row as it comes and goes on
where a run was stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TypedDict

from qilin_tasks.judge.readings import read_nuggets, read_pair, read_support
from qilin_tasks.metrics.copying import copied
from qilin_tasks.metrics.fact_agreement import contradicted_rate, fact_f1
from qilin_tasks.metrics.meteor import meteor
from qilin_tasks.metrics.rouge_l import rouge_l
from qilin_tasks.metrics.squad import exact_match, token_f1
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.citations import parse_citations, strip_citations
from qilin_tasks.parsing.grades import parse_grade
from qilin_tasks.parsing.json_values import json_values
from qilin_tasks.parsing.prompts import opening_tag
from qilin_tasks.parsing.rankings import parse_ranking
from qilin_tasks.parsing.simple_ranking import simple_ranking
from qilin_tasks.text.analyzers import ANALYZERS
from qilin_tasks.text.facts.extract import extract
from qilin_tasks.text.languages import LANGUAGES, script_complaint
from qilin_tasks.text.notes import one_line, plain, trim
from qilin_tasks.text.refusals import is_refusal
from qilin_tasks.text.sentences import sentence_spans
from qilin_tasks.text.tokens import Codes, clean, encode_chars, is_blank, normalize, tokenize_chars, tokenize_jieba

TARGET = 2.0
MOST_FORESEEN = 60.0

#: What each text repeats: one symbol, one mark, one bracket, one digit, one word, one emoji sequence, a pair.
UNITS = {
    "underscore": "_", "full stop": ".", "comma": ",", "colon": ":", "exclamation mark": "!", "question mark": "?",
    "hash": "#", "quotation mark": '"', "apostrophe": "'", "backtick": "`", "hyphen": "-", "arrow": ">", "less": "<",
    "slash": "/", "backslash": "\\", "dollar": "$", "star": "*", "bar": "|", "tilde": "~", "percent": "%",
    "ideographic full stop": "。", "full-width comma": "，", "ellipsis": "…", "degree": "℃", "ligature": "ﷺ",
    "blank": " ", "tab": "\t", "line": "\n", "two-part line": "\r\n", "line separator": "\u2028",
    "wide blank": "\u3000",
    "null": "\0", "joiner": "\u200d", "accent": "\u0301", "enclosing mark": "\u20e3", "variation selector": "\ufe0f",
    "override": "\u202e", "lone surrogate": "\ud800", "private character": "\U000f0000",
    "bracket": "[", "closing bracket": "]", "brace": "{", "parenthesis": "(", "lenticular bracket": "【",
    "full-width bracket": "［", "angle": "《",
    "digit": "1", "nought": "0", "full-width digit": "１", "circled digit": "①", "thai digit": "๑",
    "ideographic digit": "一",
    "letter": "a", "capital": "A", "cyrillic": "я", "arabic": "ع", "hebrew": "א", "devanagari": "क", "ideograph": "的",
    "ideograph without a word": "夨", "katakana": "ア", "hangul": "한", "jamo": "ᄀ", "thai": "ก", "thai vowel": "ะ",
    "thai mark": "่", "khmer": "ក", "lao": "ກ", "burmese": "က",
    "word": "ab ", "english word": "supercalifragilistic", "thai word": "ภาษา", "chinese word": "天安门",
    "chinese": "我爱北京天安门", "title": "Dr. ", "negation": "是不", "number": "一万五", "amount": "5元",
    "note": "笔记1",
    "emoji": "😀", "family": "👨\u200d👩\u200d👧", "flag": "🇹🇭", "keycap": "1\ufe0f\u20e3", "skin": "👍🏽",
    "think": "<think>", "end of think": "</think>", "mentioned think": "`<think>` ", "cut think": "<thin",
    "think with attributes": "<think a=", "mistral think": "[THINK]", "mistral end": "[/THINK]", "kimi": "◁think▷",
    "kimi end": "◁/think▷", "seed": "<seed:think>", "channel": "<|channel|>",
    "analysis": "<|channel|>analysis<|message|>",
    "final": "<|channel|>final<|message|>", "start": "<|start|>assistant", "end of message": "<|end|>",
    "end of turn": "<|im_end|>", "cohere": "<|START_THINKING|>", "begin of thought": "<|begin_of_thought|>",
    "gemma": "<|channel>thought", "gemma end": "<channel|>", "kimi 3": "<|open|>think<|sep|>", "open": "<|open|>",
    "apertus": "<|inner_prefix|>", "glued analysis": "analysis", "glued final": "assistantfinal",
    "granite": "Here is my thought process:", "muse": "to=self<|message|>", "escaped": "&lt;think&gt;",
    "unknown mark": "<|reflect|>", "cut bar": "<|", "answer tag": "<answer>",
    "brackets": "[]", "braces": "{}", "nested object": '{"a":', "nested list": "[1,", "object": '{"1": 2}',
    "quoted": '"a ',
    "chain": "[1] > ", "numbers": "1, ", "ordinals": "1. ", "times": "1:", "cells": "| 1 ", "barred": "|1|\n",
    "lines of digits": "1\n", "lines of ids": "[1]\n", "lines of words": "rank 1\n", "fence": "```",
    "heading": "a:\n",
    "entity": "&gt;", "latex": "\\boxed{", "html": "<td>", "link": "](#",
    "letter and underscore": "a_", "letter and full stop": "a.", "thai and blank": "ก ", "thai and digit": "ก1",
    "thai and full stop": "ก.", "thai and letter": "กa", "thai consonants": "กข", "ideograph and digit": "的1",
    "ideograph and letter": "的a", "ideograph and full stop": "的。", "digit and letter": "1a", "reference": ".[1]",
    "closed stop": '."', "blank lines": "a\n\n", "hashtag": "#a[话题]",
}  # fmt: skip

_ANALYZERS = {function: language for language, function in sorted(ANALYZERS.items(), reverse=True)}
_RULES = ("en", "zh", "th", "de", "el", "ar", "hi")
_NOTE = "我爱北京天安门 10 元 a b c. ไทย"

FUNCTIONS: dict[str, Callable[[str], object]] = {
    "chars": tokenize_chars,
    "chars encoded": lambda text: encode_chars(text, Codes()),
    "jieba": tokenize_jieba,
    "clean, normal form, blank": lambda text: (clean(text), normalize(text), is_blank(text)),
    **{f"analyzer {language}": function for function, language in _ANALYZERS.items()},
    **{f"sentences {name}": lambda text, name=name: sentence_spans(text, language=name) for name in _RULES},  # type: ignore[misc]
    "script": lambda text: script_complaint([text], "de"),
    "plain, one line": lambda text: (plain(text), one_line(text)),
    "trim": lambda text: trim(text, 600),
    "trim by one": lambda text: trim(text, len(text) - 1),
    "facts": extract,
    "facts compared": lambda text: (fact_f1(text, text), contradicted_rate(text, text)),
    "refusal": is_refusal,
    "reasoning": strip_reasoning,
    "opened reasoning": lambda text: strip_reasoning(text, opened=True),
    "closed reasoning": lambda text: strip_reasoning(f"<think>{text}</think>{text[:99]}"),
    "behind reasoning": lambda text: strip_reasoning(f"<think>a</think>{text}"),
    "prompt's end": opening_tag,
    "citations": parse_citations,
    "without citations": strip_citations,
    "ranking": lambda text: parse_ranking(text, n=20),
    "simple ranking": lambda text: simple_ranking(text, 20),
    "grade": parse_grade,
    "json": json_values,
    "json within": lambda text: json_values("[" + text),
    "nuggets": read_nuggets,
    "verdicts": lambda text: (read_support(text), read_pair(text)),
    "copied": lambda text: copied(text, [_NOTE, text]),
    "rouge-l": lambda text: rouge_l(text, _NOTE),
    "exact match, f1": lambda text: (exact_match(text, [_NOTE]), token_f1(text, [_NOTE], tokenizer=tokenize_chars)),
    "meteor": lambda text: meteor(tokenize_chars(text), [tokenize_chars(_NOTE)], synonyms="none"),
}
assert set(_RULES) <= LANGUAGES.keys()


class Row(TypedDict):
    """One text through one function: `seconds` for `characters`, or what `size` characters were foreseen to take."""

    function: str
    text: str
    characters: int
    seconds: float
    foreseen: bool


def measured(function: Callable[[str], object], unit: str, size: int) -> tuple[int, float, bool]:
    """(characters taken, seconds or foreseen seconds for `size`, foreseen?)."""
    before = (0, 0.0)
    seconds, characters = 0.0, 1
    for characters in (size // 100, size // 10, size):
        growth = math.log(max(seconds, 1e-6) / before[1], characters / before[0]) if before[1] > 0.005 else 1.0
        growth = min(max(growth, 1.0), 3.0)
        if before[0] and (foreseen := seconds * (characters / before[0]) ** growth) > MOST_FORESEEN:
            return before[0], foreseen * (size / characters) ** growth, True
        text = (unit * (characters // len(unit) + 1))[:characters]
        before = (characters, seconds)
        begun = time.process_time()
        function(text)
        seconds = time.process_time() - begun
    return characters, seconds, False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000, help="characters (default %(default)s)")
    parser.add_argument("--only", nargs="+", choices=sorted(FUNCTIONS), default=list(FUNCTIONS))
    parser.add_argument("--texts", nargs="+", choices=sorted(UNITS), default=list(UNITS))
    parser.add_argument("--rows", type=Path, help="JSON lines of what is measured already, and of what will be")
    arguments = parser.parse_args()
    rows: list[Row] = []
    if arguments.rows and arguments.rows.exists():
        rows = [json.loads(line) for line in arguments.rows.read_text(encoding="utf-8").splitlines()]
    done = {(row["function"], row["text"]) for row in rows}
    for name in arguments.only:
        FUNCTIONS[name]("a 中文 ก [1] > [2]")
        for text in arguments.texts:
            if (name, text) in done:
                continue
            characters, seconds, foreseen = measured(FUNCTIONS[name], UNITS[text], arguments.size)
            row = Row(function=name, text=text, characters=characters, seconds=round(seconds, 3), foreseen=foreseen)
            rows.append(row)
            if arguments.rows:
                with arguments.rows.open("a", encoding="utf-8") as kept:
                    kept.write(json.dumps(row, ensure_ascii=False) + "\n")
    print("| function | slowest text | seconds | texts above 2 s |\n|---|---|---|---|")
    worst = {}
    for name in arguments.only:
        own = sorted((row for row in rows if row["function"] == name), key=lambda row: -row["seconds"])
        slow = ", ".join(
            f"{row['text']} {row['seconds']}{'?' * row['foreseen']}" for row in own if row["seconds"] > TARGET
        )
        worst[name] = own[0]
        print(f"| {name} | {own[0]['text']} | {own[0]['seconds']:.2f}{'?' * own[0]['foreseen']} | {slow} |")
    over = [f"{row['function']}: {row['text']}" for row in rows if row["seconds"] > TARGET]
    summary = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "characters": arguments.size,
        "rows": len(rows),
        "above_target": over,
        "worst": {name: [row["text"], row["seconds"]] for name, row in worst.items()},
    }
    print(json.dumps(summary, ensure_ascii=False))
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
