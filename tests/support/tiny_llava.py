"""A random two-layer LLaVA over a given tokenizer, then the harness: `python tiny_llava.py TOKENIZER FOLDER ARGS…`."""

from __future__ import annotations

import sys


def make(tokenizer_folder: str, folder: str) -> None:
    import torch
    from transformers import (
        AutoTokenizer,
        CLIPVisionConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        Qwen2Config,
    )
    from transformers.models.clip import CLIPImageProcessorPil

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
        chat_template=tokenizer.chat_template,
    )
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2}
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, image_size=28, patch_size=14, projection_dim=32, **layers
    )
    text = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        **layers,
    )
    image_token = tokenizer.convert_tokens_to_ids("<image>")
    config = LlavaConfig(vision_config=vision, text_config=text, image_token_index=image_token, vision_feature_layer=-1)
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    processor.save_pretrained(folder)


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2])
    # One process: torch is imported once.
    from lm_eval.__main__ import cli_evaluate

    sys.argv = ["lm_eval", *sys.argv[3:]]
    cli_evaluate()
