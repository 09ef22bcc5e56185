"""Run the server of `schemactl serve`: the endpoint of each path, the server process, and the guard against foreign hosts."""

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
from schemactl.core.names import DOMAINS
from schemactl.core.schema import Release
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.server import cluster, namespaces, policies, scalable, schemas, topics
from schemactl.registry.server.http import (
    JSON,
    AdminCall,
    Endpoint,
    ErrorPage,
    Rejection,
    Unexpected,
    accepts_json,
    decode_names,
    get_content_type,
    read_path,
    respond_json,
)

LARGEST_BODY_BYTES: Final = 32 << 20
"""The largest body. It has room for the largest definition of a broker with every character escaped."""

_BODIES_BYTES: Final = 4 * LARGEST_BODY_BYTES
"""The maximum number of bytes of concurrent request bodies; a further request gets 503."""

_MAX_CHECKS: Final = 2
"""The maximum number of concurrent requests with a definition. Further ones wait; requests without a definition never wait for them."""

_MAX_LENGTH_DIGITS: Final = 20
"""The maximum number of digits of a `Content-Length`."""

_MISDIRECTED, _FORBIDDEN = 421, 403
_MAX_SHOWN: Final = 100
"""The maximum number of characters of a host name in a message."""


_GRACE_S: Final = 5
"""The time limit of open requests when the server stops."""

_NAMESPACE = "/namespaces/{tenant}/{namespace}"
_TOPIC = "/{tenant}/{namespace}/{topic}"
_SCHEMAS = f"/schemas{_TOPIC}"


def list_endpoints(release: Release) -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints by path below /admin/v2 and method; the first path that matches counts."""
    return {
        f"{_SCHEMAS}/schema": {"GET": schemas.get_latest, "POST": schemas.upload, "DELETE": schemas.delete},
        f"{_SCHEMAS}/schema/{{version}}": {"GET": schemas.get_version},
        f"{_SCHEMAS}/schemas": {"GET": schemas.list_versions},
        f"{_SCHEMAS}/metadata": {"GET": schemas.get_metadata},
        f"{_SCHEMAS}/compatibility": {"POST": schemas.test_compatibility},
        f"{_SCHEMAS}/version": {"POST": schemas.find_number},
        "/namespaces/{tenant}": {"GET": namespaces.list_namespaces},
        _NAMESPACE: {"GET": namespaces.get_policies, "PUT": namespaces.create, "DELETE": namespaces.delete},
        f"{_NAMESPACE}/topics": {"GET": namespaces.list_topics},
        f"{_NAMESPACE}/schemaCompatibilityStrategy": {
            "GET": namespaces.get_strategy,
            "PUT": namespaces.set_strategy,
            "DELETE": namespaces.delete_bundle,
        },
        f"{_NAMESPACE}/schemaAutoUpdateCompatibilityStrategy": {
            "GET": namespaces.get_auto_update_strategy,
            "PUT": namespaces.set_auto_update_strategy,
            "DELETE": namespaces.delete_bundle,
        },
        f"{_NAMESPACE}/isAllowAutoUpdateSchema": {
            "GET": namespaces.get_allow_auto_update,
            "POST": namespaces.set_allow_auto_update,
            "DELETE": namespaces.delete_bundle,
        },
        f"{_NAMESPACE}/schemaValidationEnforced": {
            "GET": namespaces.get_validation_enforced,
            "POST": namespaces.set_validation_enforced,
            "DELETE": namespaces.delete_bundle,
        },
        **{f"{_NAMESPACE}{path}": methods for path, methods in policies.list_namespace_endpoints(release).items()},
        f"{_NAMESPACE}/bundles": {"GET": namespaces.get_bundles},
        f"{_NAMESPACE}/properties": {
            "GET": namespaces.get_properties,
            "PUT": namespaces.set_properties,
            "DELETE": namespaces.clear_properties,
        },
        f"{_NAMESPACE}/property/{{key}}": {"GET": namespaces.get_property, "DELETE": namespaces.delete_property},
        f"{_NAMESPACE}/property/{{key}}/{{value}}": {"PUT": namespaces.set_property},
        f"{_NAMESPACE}/{{bundle}}": {"DELETE": namespaces.delete_bundle},
        **{
            f"/{domain}{path}": methods
            for domain in ("persistent", "non-persistent")
            for path, methods in {
                "/{tenant}/{namespace}": {"GET": topics.list_topics},
                "/{tenant}/{namespace}/partitioned": {"GET": topics.list_partitioned},
                _TOPIC: {"PUT": topics.create, "DELETE": topics.delete},
                f"{_TOPIC}/partitions": {
                    "GET": topics.get_partitions,
                    "PUT": topics.create_partitioned,
                    "POST": topics.grow_partitions,
                    "DELETE": topics.delete_partitioned,
                },
                f"{_TOPIC}/createMissedPartitions": {"POST": topics.create_missed_partitions},
                f"{_TOPIC}/stats": {"GET": topics.get_statistics},
                f"{_TOPIC}/partitioned-stats": {"GET": topics.get_partitioned_statistics},
                f"{_TOPIC}/internalStats": {"GET": topics.get_internal_statistics},
                f"{_TOPIC}/partitioned-internalStats": {"GET": topics.get_partitioned_internal_statistics},
                f"{_TOPIC}/schemaCompatibilityStrategy": {
                    "GET": topics.get_strategy,
                    "PUT": topics.set_strategy,
                    "DELETE": topics.delete_strategy,
                },
                f"{_TOPIC}/properties": {
                    "GET": topics.get_properties,
                    "PUT": topics.set_properties,
                    "DELETE": topics.delete_property,
                },
                f"{_TOPIC}/schemaValidationEnforced": {
                    "GET": topics.get_validation_enforced,
                    "POST": topics.set_validation_enforced,
                },
                **{f"{_TOPIC}{path}": methods for path, methods in policies.list_topic_endpoints(release).items()},
            }.items()
        },
        **(scalable.list_endpoints() if release >= Release.R5_0 else {}),
        "/clusters": {"GET": cluster.list_clusters},
        "/clusters/{cluster}": {"GET": cluster.get_cluster},
        "/tenants": {"GET": cluster.list_tenants},
        "/tenants/{tenant}": {
            "GET": cluster.get_tenant,
            "PUT": cluster.create_tenant,
            "POST": cluster.update_tenant,
            "DELETE": cluster.delete_tenant,
        },
        "/brokers": {"GET": cluster.list_brokers},
        "/brokers/version": {"GET": cluster.get_version},
        "/brokers/health": {"GET": cluster.get_health},
        "/brokers/ready": {"GET": cluster.get_health},
        "/brokers/configuration": {"GET": cluster.list_dynamic_settings},
        "/brokers/configuration/values": {"GET": cluster.get_dynamic_settings},
        "/brokers/configuration/runtime": {"GET": cluster.get_configuration},
        "/brokers/internal-configuration": {"GET": cluster.get_internal_configuration},
        "/brokers/leaderBroker": {"GET": cluster.get_leader},
        "/brokers/{cluster}": {"GET": cluster.list_brokers},
    }


def serve(
    registry: EmbeddedRegistry, *, host: str, port: int, ready: Callable[[str], None], allowed_hosts: Iterable[str] = ()
) -> None:
    """Serve `registry` until SIGINT, SIGTERM or SIGHUP, then finish the open requests.

    Args:
        registry: the registry, which is not closed.
        host: the address to listen on.
        port: the port to listen on, or 0 for any free port.
        ready: called with the URL when the server accepts requests.
        allowed_hosts: further host names by which clients may call the server.

    Raises:
        SchemactlError: if the server cannot listen on the address.
    """
    server_socket = _open_socket(host, port)
    address = server_socket.getsockname()
    host_text = f"[{address[0]}]" if ":" in address[0] else address[0]
    config = uvicorn.Config(
        build_app(registry, allowed_hosts),
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config, f"http://{host_text}:{address[1]}", ready)
    # uvicorn raises the signals that it handles again after it has stopped, so they must be ignored here. SIGHUP is not one of them.
    handlers: dict[signal.Signals, Callable[..., None]] = dict.fromkeys(
        (signal.SIGINT, signal.SIGTERM), lambda *_: None
    )
    # `nohup` ignores SIGHUP.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = server.handle_exit
    old_handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        asyncio.run(server.serve([server_socket]))
    finally:
        server_socket.close()
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def build_app(registry: EmbeddedRegistry, allowed_hosts: Iterable[str] = ()) -> ASGIApp:
    """Build the admin REST API of `registry`, for requests to a loopback name or one of `allowed_hosts`."""
    limits = _RequestLimits()
    routes = [
        Route(f"/admin/v2{path}", _PathEndpoints(registry, path, methods, limits))
        for path, methods in list_endpoints(registry.release).items()
    ]
    # Starlette raises HTTPException, mostly for a path without endpoint.
    app = Starlette(routes=routes, exception_handlers={HTTPException: _reject_unknown_path})
    app.router.redirect_slashes = False
    return Guard(_PathReader(app, registry.release), allowed_hosts)


class _RequestLimits:
    """The limits on concurrent requests."""

    def __init__(self) -> None:
        self.bodies_bytes = 0
        self.checks = CapacityLimiter(_MAX_CHECKS)


class _PathEndpoints:
    """The endpoints of one path, by method."""

    def __init__(
        self, registry: EmbeddedRegistry, path: str, methods: Mapping[str, Endpoint], limits: _RequestLimits
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._methods = methods
        self._resource = resource = path.split("/")[1]
        domain = "topic" if resource == "scalable" else resource
        self._domain = {"domain": domain} if domain in DOMAINS else {}
        # These resource classes require JSON for all of their methods, even those without a body.
        self._takes_only_json = resource in ("namespaces", "tenants")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        # A client that disconnects early needs no response.
        with suppress(ClientDisconnect):
            try:
                response = await self._respond(request)
            except Rejection as rejection:
                response = rejection.make_response(request)
            except SchemactlError as error:
                # The storage failed; rejections of the registry are handled above.
                response = Unexpected(error.message).make_response(request)
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        endpoint = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is None:
            allowed = [*self._methods, "OPTIONS"]
            if request.method != "OPTIONS":
                raise ErrorPage(405, headers={"Allow": ",".join(allowed)})
            methods = ", ".join(["HEAD", *allowed] if "GET" in allowed else allowed)
            return Response(methods, headers={"Allow": methods.replace(" ", "")}, media_type="text/plain")
        if not accepts_json(request):
            raise ErrorPage(406)
        body = bytearray()
        try:
            await self._read_body(request, body)
            names = {**decode_names(request.path_params, self._resource), **self._domain}
            host = request.headers.get("host", "127.0.0.1")
            call = AdminCall(
                self._registry,
                request.scope["path"],
                names,
                request.query_params,
                bytes(body),
                get_content_type(request),
                host,
            )
            # None means the default limit of threads.
            limiter = self._limits.checks if self._resource == "schemas" and request.method == "POST" else None
            return await to_thread.run_sync(endpoint, call, limiter=limiter)
        finally:
            self._limits.bodies_bytes -= len(body)

    async def _read_body(self, request: Request, body: bytearray) -> None:
        """Read the body of the request into `body`, within the limits."""
        too_large = ErrorPage(413, "Request Entity Too Large")
        content_length = request.headers.get("content-length", "")
        if content_length.isdecimal() and int(content_length[:_MAX_LENGTH_DIGITS]) > LARGEST_BODY_BYTES:
            raise too_large
        async for chunk in request.stream():
            if len(body) + len(chunk) > LARGEST_BODY_BYTES:
                raise too_large
            if self._limits.bodies_bytes + len(chunk) > _BODIES_BYTES:
                raise ErrorPage(503, headers={"Retry-After": "1"})
            body += chunk
            self._limits.bodies_bytes += len(chunk)
        media_type = get_content_type(request)
        # The resource classes of topics do not name content types, so Jackson also reads the variants of JSON.
        is_variant = bool(self._domain) and media_type.endswith(("/json", "+json"))
        is_accepted = media_type == JSON or is_variant or (not media_type and not body)
        if (request.method in ("PUT", "POST") or self._takes_only_json) and not is_accepted:
            raise ErrorPage(415)


def _reject_unknown_path(request: Request, error: Exception) -> Response:
    return ErrorPage(error.status_code if isinstance(error, HTTPException) else 500).make_response(request)


class _PathReader:
    """Middleware that routes requests by their undecoded paths."""

    def __init__(self, app: ASGIApp, release: Release) -> None:
        self._app = app
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
            try:
                scope["path"] = read_path(scope["path"], self._release)
            except Rejection as rejection:
                await rejection.make_response(Request(scope))(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Guard:
    """Middleware that rejects requests to other hosts than this machine and `allowed`, or from web pages of other hosts.

    The server has no authentication. A web page can resolve its own name to this machine (DNS rebinding), or send requests
    here, but browsers set `Host` to the name and `Origin` to the origin of the page, and no page can change these headers.
    """

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = ()) -> None:
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as an ASGI application."""
        rejection = self._reject(scope) if scope["type"] == "http" else None
        await (rejection or self._app)(scope, receive, send)

    def _reject(self, scope: Scope) -> Response | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_known(parse_host_name(hosts[0])):
            names = repr(hosts[0][:_MAX_SHOWN]) if len(hosts) == 1 else f"{len(hosts)} hosts"
            reason = (
                f"schemactl serve: the request names {names}, which is not a name of this server. Use localhost or its loopback "
                "address, or start the server with --allow-host NAME"
            )
            return respond_json({"reason": reason}, _MISDIRECTED)
        for origin in (value.decode("latin-1") for name, value in headers if name == b"origin"):
            scheme, _, host = origin.partition("://")
            if scheme not in ("http", "https") or not self._is_known(parse_host_name(host)):
                reason = "schemactl serve: the request comes from a web page of another host. Allow that with --allow-host NAME"
                return respond_json({"reason": reason}, _FORBIDDEN)
        return None

    def _is_known(self, name: str) -> bool:
        return bool(name) and (is_loopback(name) or name in self._allowed)


def is_loopback(name: str) -> bool:
    """Return whether a host name, or an address without brackets, is a loopback name."""
    try:
        return name.lower() == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def parse_host_name(text: str) -> str:
    """Return the lowercase name in `NAME`, `NAME:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`, or "" if it is not valid."""
    try:
        parts = urlsplit(f"//{text}")
        _ = parts.port
        is_host = parts.netloc == text and "@" not in text and not text.startswith(":")
    except ValueError:
        return ""
    return (parts.hostname or "") if is_host else ""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, url: str, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._url = url
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready(self._url)


def _open_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for an explicit protocol; with it, each response takes 40 ms.
    server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server_socket.bind((host, port))
        server_socket.listen(1024)
    except OSError as error:
        server_socket.close()
        raise SchemactlError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            fix="name another port with --port, or 0 for a free port",
        ) from error
    return server_socket
