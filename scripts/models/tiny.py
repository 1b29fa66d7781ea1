"""Random models of a megabyte or two, out of nothing: everything about them is real but what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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


def make_qwen2(folder: Path, contents: Sequence[bytes]) -> None:
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


def make_bert(folder: Path, contents: Sequence[bytes]) -> None:
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
