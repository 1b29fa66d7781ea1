"""Cuts the network for the tests of this process: only the loopback interface stays reachable."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

REASON = "the tests may reach the loopback interface only"


class NetworkBlockedError(OSError):
    """A connection that the guard refused; an OSError, so clients treat it as a network that is down."""


class LookupBlockedError(socket.gaierror):
    """A name that the guard refused to look up."""


def is_loopback(host: object) -> bool:
    """Whether `host` (name, address, bytes or None for "this machine") stays on the loopback interface."""
    if host is None:
        return True
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if name in {"", "localhost", "0.0.0.0", "::"}:
        return True
    try:
        return ipaddress.ip_address(name.split("%")[0]).is_loopback
    except ValueError:
        return False


def cut() -> None:
    """Replace the connecting calls of `socket.socket` and the name lookup by guarded ones, for good."""
    connect, connect_ex, sendto = socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto
    lookup = socket.getaddrinfo

    def check(sock: socket.socket, address: Any) -> None:
        if sock.family in (socket.AF_INET, socket.AF_INET6) and not is_loopback(address[0]):
            raise NetworkBlockedError(f"connection to {address!r} refused: {REASON}")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        check(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        check(self, address)
        return connect_ex(self, address)

    def guarded_sendto(self: socket.socket, data: Any, *rest: Any) -> int:
        check(self, rest[-1])
        return sendto(self, data, *rest)

    def guarded_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_loopback(host):
            raise LookupBlockedError(socket.EAI_NONAME, f"look-up of {host!r} refused: {REASON}")
        return lookup(host, *args, **kwargs)

    socket.socket.connect = guarded_connect  # type: ignore[method-assign]
    socket.socket.connect_ex = guarded_connect_ex  # type: ignore[method-assign]
    socket.socket.sendto = guarded_sendto  # type: ignore[method-assign, assignment]
    socket.getaddrinfo = guarded_lookup
