"""The ASGI application of `serve`: which endpoint answers which path, the server process, and the guard against foreign hosts.

The server has no authentication, so it answers only requests to host names that the user allows. A web page can make a name of
its own lead to this machine (DNS rebinding), or send requests here. Browsers put the name into `Host` and the page's origin into
`Origin`, and let no page change either.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from schemactl.core.errors import SchemactlError
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.server import cluster, namespaces, schemas, topics
from schemactl.registry.server.http import JSON, AdminCall, Endpoint, ErrorPage, Rejection, Unexpected, accepts_json, ok

LARGEST_BODY_BYTES: Final = 32 << 20
"""A body beyond this is not read. The largest definition that a broker stores fits, however it is escaped."""

_BODIES_BYTES: Final = 4 * LARGEST_BODY_BYTES
"""The most bytes of request bodies in memory at once; a further request gets 503."""

_JUDGES: Final = 2
"""How many requests with a definition are worked on at once. Others wait; what only reads never waits for them."""

_LONGEST_NUMBER: Final = 20

_SCHEMAS = "/schemas/{tenant}/{namespace}/{topic}"
_SPACE = "/namespaces/{tenant}/{namespace}"

ENDPOINTS: Final[Mapping[str, Mapping[str, Endpoint]]] = {
    f"{_SCHEMAS}/schema": {"GET": schemas.latest, "POST": schemas.upload, "DELETE": schemas.delete},
    f"{_SCHEMAS}/schema/{{version}}": {"GET": schemas.by_version},
    f"{_SCHEMAS}/schemas": {"GET": schemas.all_versions},
    f"{_SCHEMAS}/metadata": {"GET": schemas.metadata},
    f"{_SCHEMAS}/compatibility": {"POST": schemas.compatibility},
    f"{_SCHEMAS}/version": {"POST": schemas.version},
    "/namespaces/{tenant}": {"GET": namespaces.of_tenant},
    _SPACE: {"GET": namespaces.policies, "PUT": namespaces.create, "DELETE": namespaces.delete},
    f"{_SPACE}/topics": {"GET": namespaces.topics},
    f"{_SPACE}/schemaCompatibilityStrategy": {
        "GET": namespaces.get_strategy,
        "PUT": namespaces.set_strategy,
        "DELETE": namespaces.delete_bundle,
    },
    f"{_SPACE}/schemaAutoUpdateCompatibilityStrategy": {
        "GET": namespaces.get_auto_update_strategy,
        "PUT": namespaces.set_auto_update_strategy,
        "DELETE": namespaces.delete_bundle,
    },
    f"{_SPACE}/isAllowAutoUpdateSchema": {
        "GET": namespaces.get_allow_auto_update,
        "POST": namespaces.set_allow_auto_update,
        "DELETE": namespaces.delete_bundle,
    },
    f"{_SPACE}/schemaValidationEnforced": {
        "GET": namespaces.get_validation_enforced,
        "POST": namespaces.set_validation_enforced,
        "DELETE": namespaces.delete_bundle,
    },
    **{f"{_SPACE}{path}": methods for path, methods in namespaces.of_namespaces().items()},
    f"{_SPACE}/properties": {"GET": namespaces.properties, "PUT": namespaces.set_properties},
    f"{_SPACE}/property/{{key}}": {"DELETE": namespaces.delete_property},
    f"{_SPACE}/{{bundle}}": {"DELETE": namespaces.delete_bundle},
    **{
        f"/{domain}{path}": methods
        for domain in ("persistent", "non-persistent")
        for path, methods in {
            "/{tenant}/{namespace}": {"GET": topics.of_namespace},
            "/{tenant}/{namespace}/partitioned": {"GET": topics.partitioned},
            "/{tenant}/{namespace}/{topic}": {"PUT": topics.create, "DELETE": topics.delete},
            "/{tenant}/{namespace}/{topic}/partitions": {
                "GET": topics.partitions,
                "PUT": topics.create_partitioned,
                "POST": topics.grow_partitions,
                "DELETE": topics.delete_partitioned,
            },
            "/{tenant}/{namespace}/{topic}/stats": {"GET": topics.statistics},
            "/{tenant}/{namespace}/{topic}/partitioned-stats": {"GET": topics.statistics},
            "/{tenant}/{namespace}/{topic}/schemaCompatibilityStrategy": {
                "GET": topics.get_strategy,
                "PUT": topics.set_strategy,
                "DELETE": topics.delete_strategy,
            },
            "/{tenant}/{namespace}/{topic}/properties": {
                "GET": topics.properties,
                "PUT": topics.set_properties,
                "DELETE": topics.delete_property,
            },
            "/{tenant}/{namespace}/{topic}/schemaValidationEnforced": {
                "GET": topics.get_validation_enforced,
                "POST": topics.set_validation_enforced,
            },
            **{
                f"/{{tenant}}/{{namespace}}/{{topic}}{path}": methods
                for path, methods in namespaces.of_topics().items()
            },
        }.items()
    },
    "/clusters": {"GET": cluster.clusters},
    "/clusters/{cluster}": {"GET": cluster.cluster},
    "/tenants": {"GET": cluster.tenants},
    "/tenants/{tenant}": {
        "GET": cluster.tenant,
        "PUT": cluster.create_tenant,
        "POST": cluster.update_tenant,
        "DELETE": cluster.delete_tenant,
    },
    "/brokers": {"GET": cluster.brokers},
    "/brokers/version": {"GET": cluster.version},
    "/brokers/health": {"GET": cluster.health},
    "/brokers/ready": {"GET": cluster.health},
    "/brokers/configuration/runtime": {"GET": cluster.configuration},
    "/brokers/leaderBroker": {"GET": cluster.leader},
    "/brokers/{cluster}": {"GET": cluster.brokers},
}
"""Path below /admin/v2, method, endpoint; where two paths fit, the first counts."""


def build_app(registry: EmbeddedRegistry, allowed_hosts: Iterable[str] = ()) -> ASGIApp:
    """Build the admin REST API of `registry`; its host name in requests is a loopback name or one of `allowed_hosts`."""
    limits = _RequestLimits()
    routes = [
        Route(f"/admin/v2{path}", _Resource(registry, path, methods, limits)) for path, methods in ENDPOINTS.items()
    ]
    # HTTPException: what Starlette itself says no to, a path that nobody answers above all.
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_resource})
    app.router.redirect_slashes = False
    return Guard(_WithoutLastSlash(app), allowed_hosts)


class _RequestLimits:
    """The limits on concurrent requests."""

    def __init__(self) -> None:
        self.bodies_bytes = 0
        self.judges = CapacityLimiter(_JUDGES)


class _Resource:
    """The endpoints of one path, by method."""

    def __init__(
        self, registry: EmbeddedRegistry, path: str, methods: Mapping[str, Endpoint], limits: _RequestLimits
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._methods = methods
        resource = path.split("/")[1]
        self._is_of_schemas = resource == "schemas"
        self._domain = {"domain": resource} if resource in ("persistent", "non-persistent") else {}
        # There the class says what it takes, and so every method of it does, even those without a body.
        self._takes_only_json = resource in ("namespaces", "tenants")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        # Who goes away before the end of the request wants no answer.
        with suppress(ClientDisconnect):
            try:
                response = await self._answer(request)
            except Rejection as no:
                response = no.response(request)
            except SchemactlError as error:
                # The storage is out of order; what the registry itself rejects has been answered above.
                response = Unexpected(error.what).response(request)
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        endpoint = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is None:
            return self._other_method(request)
        if not accepts_json(request):
            raise ErrorPage(406)
        body = bytearray()
        try:
            await self._read(request, body)
            names = {**request.path_params, **self._domain}
            host = request.headers.get("host", "127.0.0.1")
            call = AdminCall(self._registry, request.scope["path"], names, request.query_params, bytes(body), host)
            # None: as many threads as there are for all that does not look at definitions.
            limiter = self._limits.judges if self._is_of_schemas and request.method == "POST" else None
            return await to_thread.run_sync(endpoint, call, limiter=limiter)
        finally:
            self._limits.bodies_bytes -= len(body)

    async def _read(self, request: Request, body: bytearray) -> None:
        """Read the request's body into `body`."""
        too_large = ErrorPage(413, "Request Entity Too Large")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:_LONGEST_NUMBER]) > LARGEST_BODY_BYTES:
            raise too_large
        async for chunk in request.stream():
            if len(body) + len(chunk) > LARGEST_BODY_BYTES:
                raise too_large
            if self._limits.bodies_bytes + len(chunk) > _BODIES_BYTES:
                raise ErrorPage(503, headers={"Retry-After": "1"})
            body += chunk
            self._limits.bodies_bytes += len(chunk)
        if (request.method in ("PUT", "POST") or self._takes_only_json) and not _is_json(request, body):
            raise ErrorPage(415)

    def _other_method(self, request: Request) -> Response:
        allowed = [*self._methods, "OPTIONS"]
        if request.method != "OPTIONS":
            raise ErrorPage(405, headers={"Allow": ",".join(allowed)})
        words = ", ".join(["HEAD", *allowed] if "GET" in allowed else allowed)
        return Response(words, headers={"Allow": words.replace(" ", "")}, media_type="text/plain")


def _is_json(request: Request, body: bytearray) -> bool:
    content_type = request.headers.get("content-type")
    return not body if content_type is None else content_type.split(";")[0].strip().lower() == JSON


def _no_resource(request: Request, error: Exception) -> Response:
    return ErrorPage(error.status_code if isinstance(error, HTTPException) else 500).response(request)


class _WithoutLastSlash:
    """Middleware that ignores a slash at the end of a path, as Jersey does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if len(path) > 1 and path.endswith("/"):
            scope = {**scope, "path": path[:-1]}
        await self._app(scope, receive, send)


# The guard against foreign hosts


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


# The server process


_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_GRACE_S = 5
"""How long requests under way may take once the server is asked to stop."""


def serve(
    registry: EmbeddedRegistry, *, host: str, port: int, ready: Callable[[str], None], allowed_hosts: Iterable[str] = ()
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
