"""Run a small HTTP server with scripted responses that records its requests."""

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
class Request:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def token(self) -> str | None:
        """The bearer token, or None."""
        return self.headers.get("Authorization", "").removeprefix("Bearer ") or None


@dataclass
class Response:
    """The response to a request; a `status` of 0 closes the connection instead."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None


def respond_json(value: Any, status: int = 200, **headers: str) -> Response:
    """Return a response with a JSON value."""
    return Response(status, json.dumps(value).encode(), headers=headers)


@dataclass
class Server:
    """A server with its URL and the requests so far."""

    url: str
    requests: list[Request]


@contextmanager
def serve(
    answer: Callable[[Request], Response | bytes | Iterable[bytes]], tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Run a server on loopback with these responses; after bytes, which are sent unchanged, the connection is closed."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise the body waits until the client acknowledges the head.
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path.removeprefix("/admin/v2"), dict(self.headers), body)
            requests.append(request)
            response = answer(request)
            if not isinstance(response, Response):
                self.close_connection = True
                # In some tests, the client closes the connection early.
                with suppress(OSError):
                    for part in [response] if isinstance(response, bytes) else response:
                        self.wfile.write(part)
                return
            if not response.status:
                self.close_connection = True
                return
            self.send_response(response.status, response.reason)
            for name, value in {"Content-Type": response.content_type, **response.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815  the base class's names

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002  the base class's name
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """Ignore errors, because in some tests the client closes the connection."""

    server = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        # In the accepting thread, a failed handshake would stop the server.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    scheme = "http" if tls is None else "https"
    try:
        yield Server(f"{scheme}://127.0.0.1:{server.server_address[1]}", requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
