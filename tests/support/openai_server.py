"""A local server that speaks the chat-completions API: counts every request, answers by the prompt alone."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHARACTERS = "旅行美食推荐攻略路线价格时间地点方法"


def by_prompt(model: str, prompt: str) -> str:
    """A few Chinese characters that depend on the model and the prompt."""
    digest = hashlib.sha256(f"{model}\0{prompt}".encode()).digest()
    return "".join(CHARACTERS[byte % len(CHARACTERS)] for byte in digest[: 4 + digest[0] % 12])


@dataclass
class ChatServer:
    """`asked` counts the requests of each (model, prompt); `headers` are those of the last one."""

    url: str = ""
    delay: float = 0.0
    answer: Callable[[str, str], str] = by_prompt
    #: Answer 500 to the models named here.
    broken: set[str] = field(default_factory=set)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    payloads: list[dict[str, Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, payload: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        model, prompt = payload["model"], "\n".join(m["content"] for m in payload["messages"])
        with self.lock:
            self.asked[model, prompt] += 1
            self.payloads.append(payload)
        if self.delay:
            time.sleep(self.delay)
        if model in self.broken:
            return 500, {"error": {"message": f"{model} is out of order"}}
        message = {"role": "assistant", "content": self.answer(model, prompt)}
        return 200, {"object": "chat.completion", "model": model, "choices": [{"index": 0, "message": message}]}


@contextmanager
def chat_server(**options: Any) -> Iterator[ChatServer]:
    """A server on a free loopback port for the length of the context."""
    server = ChatServer(**options)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.headers = dict(self.headers)
            status, answer = server.handle(payload)
            body = json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed resets its connection: that is what some tests are about."""

    http = Server(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1/chat/completions"
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
