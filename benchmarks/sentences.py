"""Sentences a paragraph and answers cut by a sentence's end, for each language of XQuAD.

    git clone https://github.com/google-deepmind/xquad && python benchmarks/sentences.py --data xquad

`--data` holds `xquad.LANGUAGE.json`. The files are translations of one another: 240 paragraphs, 1,190 answers each, and
1,174 sentences (4.89 a paragraph) in the official boundaries of the English text. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

ENGLISH_SENTENCES = 4.89
LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    parser.add_argument("--show", action="store_true", help="the answers that are cut")
    arguments = parser.parse_args()

    from qilin_tasks.sources.squad import read_squad
    from qilin_tasks.text.sentences import sentence_spans

    report = {}
    for language in arguments.languages:
        paragraphs = read_squad(arguments.data / f"xquad.{language}.json")
        sentences, answers, cut = 0, 0, []
        for paragraph in paragraphs:
            spans = sentence_spans(paragraph.text, language=language)
            sentences += len(spans)
            for answer in (answer for question in paragraph.questions for answer in question.answers):
                answers += 1
                if not any(a <= answer.start and answer.start + len(answer.text) <= b for a, b in spans):
                    cut.append(answer.text)
        each = sentences / len(paragraphs)
        report[language] = {"sentences": sentences, "a_paragraph": round(each, 2), "cut": len(cut), "answers": answers}
        of_english = each / ENGLISH_SENTENCES
        print(f"{language}: {each:.2f} a paragraph ({of_english:.2f} of English), {len(cut)} of {answers} cut")
        for text in cut if arguments.show else ():
            print(f"    {text!r}")
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
