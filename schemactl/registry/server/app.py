"""The ASGI application: which endpoint answers which path, and the checks before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from schemactl.core.errors import SchemactlError
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.serve import cluster, namespaces, schemas, settings, topics
from schemactl.serve.answers import JSON, ErrorPage, Rejection, Unexpected, accepts_json
from schemactl.serve.call import AdminCall, Endpoint
from schemactl.serve.guard import Guard

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
    **{f"{_SPACE}{path}": methods for path, methods in settings.of_namespaces().items()},
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
                for path, methods in settings.of_topics().items()
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
        Route(f"/admin/v2{path}", _Resource(registry, path, methods, limits))
        for path, methods in ENDPOINTS.items()
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
            call = AdminCall(
                self._registry, request.scope["path"], names, request.query_params, bytes(body), host
            )
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
