"""A random two-layer Idefics3 (SmolVLM's architecture) over a tokenizer: `tiny_idefics3.py TOKENIZER FOLDER`.

Of vLLM's vision models it is one that starts without torchvision, which has no wheel beside a CPU build of torch.
"""

from __future__ import annotations

import sys

TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}\n{% endfor %}assistant: "
)


def make(tokenizer_folder: str, folder: str) -> None:
    import torch
    from transformers import AutoTokenizer, Idefics3Config, Idefics3ForConditionalGeneration, Idefics3Processor
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<global-img>", "<row_1_col_1>"]})
    edge = {"longest_edge": 28}
    # Four patches of 14 pixels, two by two merged: one token a picture.
    processor = Idefics3Processor(
        image_processor=Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False),
        tokenizer=tokenizer,
        image_seq_len=1,
        chat_template=TEMPLATE,
    )
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2}
    config = Idefics3Config(
        vision_config={"hidden_size": 32, "intermediate_size": 64, "image_size": 28, "patch_size": 14, **layers},
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_key_value_heads": 2,
            "max_position_embeddings": 8192,
            "pad_token_id": tokenizer.pad_token_id,
            **layers,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=2,
    )
    Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    processor.save_pretrained(folder)


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2])
