"""A local HTTP server that stands in for the Hugging Face hub: the calls that list a revision and fetch its files."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self


class HubServer:
    """Serves one data set repository with named revisions, each a folder of files.

    `requests` holds (method, path) of every call; `drop_next(times, after)` makes the next file downloads break
    off after some bytes; `fail_with(status)` makes every call fail until `fail_with(None)`.
    """

    def __init__(self, repo_id: str, revisions: Mapping[str, Path]) -> None:
        self.repo_id = repo_id
        self.folders: dict[str, Path] = {}
        self.refs: dict[str, str] = {}
        for name, folder in revisions.items():
            commit = hashlib.sha1(f"{name} {repo_id}".encode()).hexdigest()
            self.refs[name] = commit
            self.folders[commit] = folder
        self.requests: list[tuple[str, str]] = []
        self.status: int | None = None
        self.drops = 0
        self.drop_after = 0
        self._lock = threading.Lock()
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def drop_next(self, times: int, *, after: int) -> None:
        self.drops, self.drop_after = times, after

    def fail_with(self, status: int | None) -> None:
        self.status = status

    def downloads(self) -> list[str]:
        """The paths (inside the repository) of all file downloads so far, in order."""
        found = [re.search(r"/resolve/[^/]+/(.+)$", path) for method, path in self.requests if method == "GET"]
        return [match[1] for match in found if match]

    def note(self, method: str, path: str) -> None:
        with self._lock:
            self.requests.append((method, path))

    def take_drop(self) -> bool:
        with self._lock:
            if self.drops:
                self.drops -= 1
                return True
            return False

    def commit_of(self, revision: str) -> str | None:
        return revision if revision in self.folders else self.refs.get(revision)

    def entries(self, commit: str) -> list[dict[str, Any]]:
        """The files of a commit as the tree call lists them."""
        folder = self.folders[commit]
        return [
            {
                "type": "file",
                "path": path.relative_to(folder).as_posix(),
                "size": path.stat().st_size,
                "oid": hashlib.sha1(path.read_bytes()).hexdigest(),
            }
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        ]


def _one_level(entries: list[dict[str, Any]], *, depth: int) -> list[dict[str, Any]]:
    """The files at a depth of the tree, and the folders that hold the deeper ones."""
    level: dict[str, dict[str, Any]] = {}
    for entry in entries:
        parts = entry["path"].split("/")
        path = "/".join(parts[: depth + 1])
        folder = {"type": "directory", "path": path, "size": 0, "oid": hashlib.sha1(path.encode()).hexdigest()}
        level[path] = entry if len(parts) == depth + 1 else folder
    return list(level.values())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: HubServer

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        form = self.rfile.read(length)
        self.server_hub.note("POST", self._path())
        match = re.fullmatch(rf"/api/datasets/{self.server_hub.repo_id}/paths-info/([^/]+)", self._path())
        commit = self.server_hub.commit_of(match[1]) if match else None
        if commit is None:
            self._error(404, "RepoNotFound")
            return
        wanted = json.loads(form)["paths"] if form.startswith(b"{") else parse_qs(form.decode())["paths"]
        self._json([entry for entry in self.server_hub.entries(commit) if entry["path"] in wanted], commit, body=True)

    def _path(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _answer(self, *, body: bool) -> None:
        hub, path = self.server_hub, self._path()
        hub.note(self.command, path)
        if hub.status is not None:
            self._error(hub.status, "")
            return
        repository = re.escape(hub.repo_id)
        if match := re.fullmatch(rf"/api/datasets/{repository}(?:/revision/(.+))?", path):
            self._info(match[1] or "main", body=body)
        elif match := re.fullmatch(rf"/api/datasets/{repository}/tree/([^/]+)(?:/(.*))?", path):
            self._tree(match[1], match[2] or "", body=body)
        elif match := re.fullmatch(rf"/datasets/{repository}/resolve/([^/]+)/(.+)", path):
            self._file(match[1], match[2], body=body)
        else:
            self._error(404, "RepoNotFound")

    def _info(self, revision: str, *, body: bool) -> None:
        commit = self.server_hub.commit_of(revision)
        if commit is None:
            self._error(404, "RevisionNotFound")
            return
        siblings = [{"rfilename": entry["path"]} for entry in self.server_hub.entries(commit)]
        info = {
            "id": self.server_hub.repo_id,
            "sha": commit,
            "private": False,
            "gated": False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "siblings": siblings,
        }
        self._json(info, commit, body=body)

    def _tree(self, revision: str, prefix: str, *, body: bool) -> None:
        commit = self.server_hub.commit_of(revision)
        if commit is None:
            self._error(404, "RevisionNotFound")
            return
        inside = f"{prefix}/" if prefix else ""
        entries = [entry for entry in self.server_hub.entries(commit) if entry["path"].startswith(inside)]
        if prefix and not entries:
            self._error(404, "EntryNotFound", commit)
            return
        recursive = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in {"true", "1"}
        if not recursive:
            entries = _one_level(entries, depth=inside.count("/"))
        self._json(entries, commit, body=body)

    def _file(self, revision: str, name: str, *, body: bool) -> None:
        hub = self.server_hub
        commit = hub.commit_of(revision)
        if commit is None:
            self._error(404, "RevisionNotFound")
            return
        path = hub.folders[commit] / name
        if not path.is_file():
            self._error(404, "EntryNotFound", commit)
            return
        content = path.read_bytes()
        start = 0
        if match := re.match(r"bytes=(\d+)-", self.headers.get("Range") or ""):
            start = int(match[1])
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if not body:
            return
        if hub.take_drop():
            self.wfile.write(content[start : start + hub.drop_after])
            self.wfile.flush()
            self.close_connection = True
            self.connection.close()
            return
        self.wfile.write(content[start:])

    def _json(self, value: object, commit: str, *, body: bool) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def _error(self, status: int, code: str, commit: str | None = None) -> None:
        content = json.dumps({"error": code or "server error"}).encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        if commit:
            self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        return
