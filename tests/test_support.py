"""The guards and fixtures that the other tests rely on."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest


def test_another_machine_cannot_be_reached() -> None:
    with pytest.raises(OSError, match="loopback interface only"):
        socket.create_connection(("192.0.2.1", 80), timeout=5)
    with pytest.raises(urllib.error.URLError, match="loopback interface only"):
        urllib.request.urlopen("http://example.org/", timeout=5)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram,
        pytest.raises(OSError, match="loopback interface only"),
    ):
        datagram.sendto(b"x", ("192.0.2.1", 53))


def test_the_hub_is_offline_until_it_is_stood_in_for(hub_at: Callable[[str], Path]) -> None:
    import huggingface_hub
    from huggingface_hub import HfApi

    with pytest.raises(huggingface_hub.errors.OfflineModeIsEnabled):
        HfApi().dataset_info("THUIR/Qilin")

    asked = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        hub_at(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(huggingface_hub.errors.HfHubHTTPError):
            HfApi().dataset_info("THUIR/Qilin")
        server.shutdown()
    assert any(path.startswith("/api/datasets/THUIR/Qilin") for path in asked)


def test_the_tiny_model_writes_common_chinese_as_one_token_a_character(tiny_llm: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_llm)
    text = "请根据笔记回答问题：去北京旅游住在哪里比较方便？"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert len(tokenizer(text).input_ids) <= 1.2 * len(text)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )
    assert prompt.endswith("<|im_start|>assistant\n")
