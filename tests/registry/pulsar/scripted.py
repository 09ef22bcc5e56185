"""A small HTTP server that answers as a test says, and keeps what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def token(self) -> str | None:
        """The bearer token that it brought."""
        return self.headers.get("Authorization", "").removeprefix("Bearer ") or None


@dataclass
class Said:
    """The answer to a request. `status` 0: the connection is cut instead."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None


def said(value: Any, status: int = 200, **headers: str) -> Said:
    """An answer with a JSON value."""
    return Said(status, json.dumps(value).encode(), headers=headers)


@dataclass
class Server:
    """The server's URL and the requests so far."""

    url: str
    asked: list[Asked]


@contextmanager
def serving(
    answer: Callable[[Asked], Said | bytes | Iterable[bytes]], tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """A server on loopback that gives these answers; bytes are sent as they are, and end the connection."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are written one after the other; without this the second waits for an acknowledgement.
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Asked(self.command, self.path.removeprefix("/admin/v2"), dict(self.headers), body)
            asked.append(request)
            reply = answer(request)
            if not isinstance(reply, Said):
                self.close_connection = True
                # Clients that have had enough are part of the tests.
                with suppress(OSError):
                    for part in [reply] if isinstance(reply, bytes) else reply:
                        self.wfile.write(part)
                return
            if not reply.status:
                self.close_connection = True
                return
            self.send_response(reply.status, reply.reason)
            for name, value in {"Content-Type": reply.content_type, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815  the base class's names

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002  the base class's name
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """Clients that go away are part of the tests."""

    server = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        # With the handshake in the accepting thread, a client that refuses would stop the server.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    scheme = "http" if tls is None else "https"
    try:
        yield Server(f"{scheme}://127.0.0.1:{server.server_address[1]}", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
