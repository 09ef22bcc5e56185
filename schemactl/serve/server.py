"""The server process: a socket, uvicorn, and an orderly end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable

import uvicorn

from schemactl.core.errors import SchemactlError
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.serve.app import build_app

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_GRACE_S = 5
"""How long requests under way may take once the server is asked to stop."""


def serve(
    registry: EmbeddedRegistry,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    allowed_hosts: Iterable[str] = (),
) -> None:
    """Serve `registry` until SIGINT or SIGTERM comes and requests under way are answered.

    Args:
        registry: it is not closed.
        host: the address to listen on.
        port: likewise; 0 is any free one.
        allowed_hosts: the names, besides loopback's, by which clients may call the server.
        ready: called with the URL as soon as requests are answered.

    Raises:
        SchemactlError: the address cannot be listened on.
    """
    listening = _listen(host, port)
    bound = listening.getsockname()
    shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
    config = uvicorn.Config(
        build_app(registry, allowed_hosts),
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    # uvicorn raises the signal again once it has stopped; here it has then done its work.
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    try:
        asyncio.run(_Server(config, f"http://{shown}:{bound[1]}", ready).serve([listening]))
    finally:
        listening.close()
        for number, handler in before.items():
            signal.signal(number, handler)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, url: str, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._url = url
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready(self._url)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio switches Nagle's algorithm off; with it on, each answer takes 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise SchemactlError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            fix="name another port with --port, or 0 for one that is free",
        ) from error
    return listening
