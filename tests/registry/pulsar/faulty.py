"""A proxy before a registry that loses requests and answers, makes them late or twice, and answers in its own name."""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from scripted import Asked, Said, Server, said, serving

OWN_ANSWERS = [
    Said(409, b'{"reason":"Concurrent modification"}'),
    Said(412, b'{"reason":"Failed to find the ownership for the topic"}'),
    Said(429, b"slow down", "text/plain"),
    Said(500, b"<html><body>Internal Server Error</body></html>", "text/html"),
    said(
        {
            "reason": "\n --- An unexpected error occurred in the server ---\n\nMessage: x\n\nStacktrace:\n\njava.util.concurrent.TimeoutException: x"
        },
        500,
    ),
    Said(503, b"", "text/plain"),
]
CUT = Said(0)
_DROPPED_HEADERS = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}


class Faults:
    """What happens to each request, by a seed: two of three pass undisturbed."""

    def __init__(self, upstream: str, seed: int) -> None:
        self._host = urlsplit(upstream).netloc
        self._chance = random.Random(seed)  # noqa: S311  no secret
        self.injected = 0

    def __call__(self, asked: Asked) -> Said:
        if self._chance.random() < 2 / 3:
            return self._forwarded(asked)
        self.injected += 1
        kinds: list[Callable[[Asked], Said]] = [
            self._lost,
            self._unanswered,
            self._late,
            self._redirected,
            self._answered_before,
            self._answered_after,
        ]
        if asked.method != "DELETE":
            # Nobody could tell two deletions from one that was sent twice.
            kinds.append(self._twice)
        return self._chance.choice(kinds)(asked)

    def _lost(self, _: Asked) -> Said:
        return CUT

    def _unanswered(self, asked: Asked) -> Said:
        self._forwarded(asked)
        return CUT

    def _late(self, asked: Asked) -> Said:
        time.sleep(self._chance.random() / 100)
        return self._forwarded(asked)

    def _twice(self, asked: Asked) -> Said:
        self._forwarded(asked)
        return self._forwarded(asked)

    def _redirected(self, asked: Asked) -> Said:
        return Said(307, headers={"Location": f"http://{asked.headers['Host']}/admin/v2{asked.path}"})

    def _answered_before(self, _: Asked) -> Said:
        return self._chance.choice(OWN_ANSWERS)

    def _answered_after(self, asked: Asked) -> Said:
        self._forwarded(asked)
        return self._chance.choice(OWN_ANSWERS)

    def _forwarded(self, asked: Asked) -> Said:
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in _DROPPED_HEADERS}
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            connection.request(asked.method, f"/admin/v2{asked.path}", asked.body, headers)
            reply = connection.getresponse()
            body = reply.read()
        finally:
            connection.close()
        return Said(reply.status, body, reply.getheader("Content-Type") or "", reason=reply.reason)


@contextmanager
def faulty(upstream: str, seed: int) -> Iterator[tuple[Server, Faults]]:
    """The proxy's address, and what it did."""
    faults = Faults(upstream, seed)
    with serving(faults) as server:
        yield server, faults
