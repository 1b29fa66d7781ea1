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


HANG_SECONDS = 3.0
SECRET = "sk-" + "q1" * 12


def _choice(content: Any, reason: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **more}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


#: What servers were seen to answer when they have no answer: status, and a body (None: the connection is cut).
FAULTS: dict[str, tuple[int, dict[str, Any] | str | None]] = {
    "error 200": (200, {"error": {"message": "the engine is overloaded", "key": SECRET}}),
    "no choices": (200, {"object": "chat.completion", "usage": "no choice was made"}),
    "empty choices": (200, {"choices": [], "note": "nothing was chosen"}),
    "null": (200, _choice(None, "stop", note="nothing was said")),
    "null without a reason": (200, _choice(None, None, note="nothing was said")),
    "no message": (200, {"choices": [{"index": 0, "note": "no message"}]}),
    "broken json": (200, '{"choices": [{"index": 0, "mess'),
    "page": (502, "<html><h1>Bad Gateway</h1></html>"),
    "list": (200, "[1, 2]"),
    "busy": (429, {"error": {"message": "too many requests"}}),
    "cut": (200, None),
    "hang": (200, _choice("too late", "stop")),
    "filtered": (200, _choice("half an", "content_filter")),
    "refused": (400, {"error": {"message": "the prompt was flagged", "code": "content_filter", "type": None}}),
    "inspected": (400, {"error": {"message": "may be bad", "code": "data_inspection_failed"}}),
    "declined": (200, _choice(None, "stop", refusal="I can't help with that")),
}
REFUSED = ("filtered", "refused", "inspected", "declined")


@dataclass
class ChatServer:
    """`asked` counts the requests of each (model, prompt); `headers` are those of the last one."""

    url: str = ""
    delay: float = 0.0
    answer: Callable[[str, str], str] = by_prompt
    #: Say in `usage` how many tokens there were: a character is one, a tenth of an answer was reasoning.
    counts: bool = False
    #: Answer 500 to the models named here.
    broken: set[str] = field(default_factory=set)
    #: What goes wrong with a request, by how many came before it: a name of FAULTS, or None.
    fault: Callable[[int], str | None] = lambda number: None
    #: How many requests went wrong.
    faults: int = 0
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    payloads: list[dict[str, Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def usage(self, prompt: str, answer: str) -> dict[str, Any]:
        details = {"reasoning_tokens": len(answer) // 10}
        return {"prompt_tokens": len(prompt), "completion_tokens": len(answer), "completion_tokens_details": details}

    def handle(self, payload: dict[str, Any]) -> tuple[int, dict[str, Any] | str | None]:
        model, prompt = payload["model"], "\n".join(m["content"] for m in payload["messages"])
        with self.lock:
            self.asked[model, prompt] += 1
            fault = self.fault(len(self.payloads))
            self.payloads.append(payload)
            self.faults += fault is not None
        if self.delay:
            time.sleep(self.delay)
        if fault == "hang":
            time.sleep(HANG_SECONDS)
        if fault is not None:
            return FAULTS[fault]
        if model in self.broken:
            return 500, {"error": {"message": f"{model} is out of order"}}
        message = {"role": "assistant", "content": self.answer(model, prompt)}
        return 200, {
            **({"usage": self.usage(prompt, message["content"])} if self.counts else {}),
            "object": "chat.completion",
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }


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
            body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            try:
                if answer is None:  # the connection is cut in the middle of the headers
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                    self.close_connection = True
                    return
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
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
