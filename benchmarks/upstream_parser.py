"""How often upstream's 100-line ranking parser and the package's disagree about what models wrote; one JSON line.

python benchmarks/upstream_parser.py results/ (samples files of listwise tasks, `--log_samples`)
python benchmarks/upstream_parser.py --written-forms (the table of tests/test_parse_rankings.py)
python benchmarks/upstream_parser.py --model FOLDER --squad xquad.en.json [--answers 80] (asked here, on the CPU)
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
UPSTREAM = REPO / "qilin_tasks" / "upstream"


def upstream_parser() -> Any:
    """`qilin_ranking/utils.py`, which imports from its sister folder by its place in lm_eval."""
    import lm_eval.tasks

    lm_eval.tasks.__path__.append(str(UPSTREAM))
    spec = importlib.util.spec_from_file_location("upstream_ranking", UPSTREAM / "qilin_ranking" / "utils.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def logged(folders: list[Path]) -> Iterator[tuple[str, int]]:
    """(response, candidates shown) of every logged answer to a list of candidates."""
    for folder in folders:
        for path in sorted(folder.rglob("samples_*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                sample = json.loads(line)
                candidates = sample["doc"].get("candidates")
                shown = sample["doc"].get("windows") or [candidates]
                if candidates and isinstance(sample["resps"][0][0], str):
                    for repeats, ids in zip(sample["resps"], shown, strict=False):
                        yield from ((text, len(ids)) for text in repeats)


def written_forms() -> Iterator[tuple[str, int]]:
    """The table of outputs that the package's parser is tested with."""
    sys.path.insert(0, str(REPO / "tests"))
    from test_parse_rankings import OUTPUTS

    yield from ((text, n) for text, n, _ in OUTPUTS)


FORMS = (
    "Write only the numbers, like this: [2] > [1] > [3].",
    "Answer with a JSON list of the numbers, best first.",
    "List the numbers, one a line, best first.",
    "Write only the numbers, like this: 2 > 1 > 3.",
)


def asked(model: str, squad: Path, *, answers: int) -> Iterator[tuple[str, int]]:
    """(answer, passages) of a chat model that ranks 3 to 8 passages; temperature .7, 48 tokens, four forms in turn."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    chance = random.Random(0)
    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    data = json.loads(squad.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
    for number in range(answers):
        picked = chance.sample(paragraphs, chance.choice([3, 4, 5, 8]))
        shown = "\n".join(f"[{place}] {item['context'][:90]}" for place, item in enumerate(picked, start=1))
        prompt = (
            f"Below are {len(picked)} numbered candidates. Rank all of them by how well they answer the question, best "
            f"first. {FORMS[number % len(FORMS)]}\n\n{shown}\n\nQuestion: {chance.choice(picked)['qas'][0]['question']}"
            "\nRanking:"
        )
        turns = [{"role": "user", "content": prompt}]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            written = network.generate(**ids, max_new_tokens=48, do_sample=True, temperature=0.7)
        yield tokenizer.decode(written[0, ids["input_ids"].shape[1] :], skip_special_tokens=True), len(picked)


def main() -> None:
    """Print how many answers there were, in how many the ids differ, and how far apart the first ids are."""
    from qilin_tasks.parsing.rankings import parse_ranking

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--written-forms", action="store_true")
    parser.add_argument("--model", metavar="FOLDER")
    parser.add_argument("--squad", type=Path)
    parser.add_argument("--answers", type=int, default=80)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N disagreements to stderr")
    arguments = parser.parse_args()
    upstream = upstream_parser()
    if arguments.model:
        answers = list(asked(arguments.model, arguments.squad, answers=arguments.answers))
    else:
        answers = list(written_forms() if arguments.written_forms else logged(arguments.folders))
    differ = first = ranked = 0
    for text, n in answers:
        ours = parse_ranking(text, n=n)
        written = upstream.ids_in(upstream.ranking_of(text, n) or "")
        theirs = tuple(dict.fromkeys(i for i in written if 1 <= i <= n))
        ranked += bool(ours.ids)
        first += ours.ids[:1] != theirs[:1]
        if theirs != ours.ids:
            differ += 1
            if differ <= arguments.show:
                print(f"{text!r} of {n}: {ours.ids} here, {theirs} upstream", file=sys.stderr)
    found = {"answers": len(answers), "with_a_ranking": ranked, "ids_differ": differ, "first_id_differs": first}
    print(json.dumps({**found, "share": round(differ / max(len(answers), 1), 4)}))


if __name__ == "__main__":
    main()
