"""The protection of a server without authentication: it answers only requests to host names that the user allows.

A web page can make a name of its own lead to this machine (DNS rebinding), or send requests here. Browsers put the name into
`Host` and the page's origin into `Origin`, and let no page change either.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from schemactl.serve.answers import ok

_MISDIRECTED, _FORBIDDEN = 421, 403
_MAX_SHOWN = 100


def is_loopback(name: str) -> bool:
    """Whether the host name, or address without brackets, is this machine's own."""
    try:
        return name.lower() == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def host_name(text: str) -> str:
    """Return the lowercased name in `NAME`, `NAME:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`; "" if there is none."""
    try:
        parts = urlsplit(f"//{text}")
        _ = parts.port
        is_host = parts.netloc == text and "@" not in text and not text.startswith(":")
    except ValueError:
        return ""
    return (parts.hostname or "") if is_host else ""


class Guard:
    """Middleware that admits requests for this machine or an `allowed` host, and from no other host's page."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = ()) -> None:
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as an ASGI application."""
        answer = self._refusal(scope) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._knows(host_name(hosts[0])):
            named = repr(hosts[0][:_MAX_SHOWN]) if len(hosts) == 1 else f"{len(hosts)} hosts"
            reason = (
                f"schemactl serve: the request names {named}, which is not a name of this server. Use localhost or its loopback "
                "address, or start the server with --allow-host NAME"
            )
            return ok({"reason": reason}, _MISDIRECTED)
        for name, value in headers:
            if name == b"origin" and not self._is_allowed_origin(value.decode("latin-1")):
                reason = "schemactl serve: the request comes from a web page of another host. Allow that with --allow-host NAME"
                return ok({"reason": reason}, _FORBIDDEN)
        return None

    def _is_allowed_origin(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._knows(host_name(host))

    def _knows(self, name: str) -> bool:
        return bool(name) and (is_loopback(name) or name in self._allowed)
