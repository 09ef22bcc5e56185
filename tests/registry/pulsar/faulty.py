"""Run a proxy that loses, delays and repeats requests and responses, and sends error responses itself."""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from scripted import Request, Response, Server, respond_json, serve

OWN_ANSWERS = [
    Response(409, b'{"reason":"Concurrent modification"}'),
    Response(412, b'{"reason":"Failed to find the ownership for the topic"}'),
    Response(429, b"slow down", "text/plain"),
    Response(500, b"<html><body>Internal Server Error</body></html>", "text/html"),
    respond_json(
        {
            "reason": "\n --- An unexpected error occurred in the server ---\n\nMessage: x\n\nStacktrace:\n\njava.util.concurrent.TimeoutException: x"
        },
        500,
    ),
    Response(503, b"", "text/plain"),
]
CUT = Response(0)
_DROPPED_HEADERS = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}


class Faults:
    """Random faults of requests, for a seed; two of three requests have none."""

    def __init__(self, upstream: str, seed: int) -> None:
        self._upstream = upstream
        self._chance = random.Random(seed)  # noqa: S311  no secret
        self.injected = 0

    def __call__(self, request: Request) -> Response:
        if self._chance.random() < 2 / 3:
            return self._forward(request)
        self.injected += 1
        kinds: list[Callable[[Request], Response]] = [
            self._lose_request,
            self._lose_response,
            self._delay,
            self._redirect,
            self._answer_instead,
            self._answer_after,
        ]
        if request.method != "DELETE":
            # A deletion that was sent twice looks like two deletions.
            kinds.append(self._send_twice)
        return self._chance.choice(kinds)(request)

    def _lose_request(self, _: Request) -> Response:
        return CUT

    def _lose_response(self, request: Request) -> Response:
        self._forward(request)
        return CUT

    def _delay(self, request: Request) -> Response:
        time.sleep(self._chance.random() / 100)
        return self._forward(request)

    def _send_twice(self, request: Request) -> Response:
        self._forward(request)
        return self._forward(request)

    def _redirect(self, request: Request) -> Response:
        return Response(307, headers={"Location": f"http://{request.headers['Host']}/admin/v2{request.path}"})

    def _answer_instead(self, _: Request) -> Response:
        return self._chance.choice(OWN_ANSWERS)

    def _answer_after(self, request: Request) -> Response:
        self._forward(request)
        return self._chance.choice(OWN_ANSWERS)

    def _forward(self, request: Request) -> Response:
        return forward(self._upstream, request)


def forward(upstream: str, request: Request) -> Response:
    """Return the response of the server at the URL `upstream`."""
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _DROPPED_HEADERS}
    connection = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=30)
    try:
        connection.request(request.method, f"/admin/v2{request.path}", request.body, headers)
        reply = connection.getresponse()
        body = reply.read()
    finally:
        connection.close()
    return Response(reply.status, body, reply.getheader("Content-Type") or "", reason=reply.reason)


@contextmanager
def run_faulty_proxy(upstream: str, seed: int) -> Iterator[tuple[Server, Faults]]:
    """Yield the proxy and its faults."""
    faults = Faults(upstream, seed)
    with serve(faults) as server:
        yield server, faults
