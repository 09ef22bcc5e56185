"""The endpoints of SchemasResource: a topic's schemas."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.responses import Response

from schemactl.broker.upload import find_version
from schemactl.core.errors import InvalidSchema, SchemaRejected
from schemactl.core.findings import Outcome
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, live
from schemactl.formats import SPECS, spec
from schemactl.registry.server.http import (
    AdminCall,
    ErrorPage,
    RestError,
    Unexpected,
    nothing,
    ok,
    read_object,
    text,
    texts,
)

_PAYLOAD: Final = "org.apache.pulsar.common.protocol.schema.PostSchemaPayload"
_NOT_FOUND: Final = "Schema not found"
_LARGEST_LONG: Final = (1 << 63) - 1
_LONG: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]{1,19})")

_REFUSALS: Final = {Outcome.INCOMPATIBLE: 409, Outcome.INVALID: 422}
"""Everything else that an upload ends with is an exception nobody catches."""


def latest(call: AdminCall) -> Response:
    """GET schema."""
    return _one(live(call.registry.versions(call.topic))[-1:])


def by_version(call: AdminCall) -> Response:
    """GET schema/{version}."""
    wanted = _long(call.names["version"])
    versions = live(call.registry.versions(call.topic))
    return _one([version for version in versions if version.number == wanted])


def all_versions(call: AdminCall) -> Response:
    """GET schemas: the live ones."""
    return ok({"getSchemaResponses": [_shown(version) for version in live(call.registry.versions(call.topic))]})


def metadata(call: AdminCall) -> Response:
    """GET metadata: where each version is stored, tombstones among them; the embedded registry has no ledgers."""
    index = [
        {"ledgerId": version.number, "entryId": 0, "version": version.number}
        for version in call.registry.versions(call.topic)
    ]
    return ok({"info": index[-1], "index": index}) if index else nothing(200)


def upload(call: AdminCall) -> Response:
    """POST schema."""
    payload, topic = _payload(call), call.topic
    call.need_namespace()
    info = _info(call, payload, data_first=True)
    if None in _properties(payload).values() and call.registry.judge(topic, info).outcome is Outcome.OK:
        # A property is not looked at before it is written down, and then has to have a value.
        raise Unexpected("")
    try:
        number = call.registry.put_schema(topic, info)
    except SchemaRejected as rejected:
        outcome = Outcome(rejected.outcome)
        if outcome in _REFUSALS:
            raise ErrorPage(_REFUSALS[outcome], rejected.what) from None
        raise Unexpected(rejected.what) from None
    return ok({"version": {"version": number}})


def delete(call: AdminCall) -> Response:
    """DELETE schema. A missing namespace is no obstacle."""
    number = call.registry.delete_schema(call.topic, force=call.flag("force"))
    return ok({"version": -1 if number is None else number})


def compatibility(call: AdminCall) -> Response:
    """POST compatibility: an incompatible schema is an error 500."""
    payload, topic = _payload(call), call.topic
    call.need_namespace()
    info = _info(call, payload)
    answer, strategy = call.registry.tested(topic, info)
    if answer.outcome is not Outcome.OK:
        raise Unexpected(answer.message, answer.exception)
    return ok({"schemaCompatibilityStrategy": strategy.value, "compatibility": True}, 202)


def version(call: AdminCall) -> Response:
    """POST version: the number of a version with the same bytes."""
    info = _info(call, _payload(call))
    return ok({"version": find_version(call.registry.versions(call.topic), info)})


def _payload(call: AdminCall) -> dict[str, Any] | None:
    fields = read_object(call.body, _PAYLOAD)
    if fields is not None:
        # Jackson makes the whole object before the endpoint sees any of it.
        for each in (fields.get("type"), fields.get("schema")):
            text(each)
        texts(fields.get("properties"))
    return fields


def _properties(payload: dict[str, Any] | None) -> dict[str, str | None]:
    return texts((payload or {}).get("properties")) or {}


def _info(call: AdminCall, payload: dict[str, Any] | None, *, data_first: bool = False) -> SchemaInfo:
    """Return the uploaded schema. An upload looks at the data before the type, the other endpoints after it."""
    if payload is None:
        raise Unexpected(f'Cannot invoke "{_PAYLOAD}.getType()" because "payload" is null')
    kind = text(payload.get("type"))
    schema = text(payload.get("schema"))
    if data_first:
        _need_data(schema)
    found = _type(kind, call.registry.release)
    properties = {key: value or "" for key, value in _properties(payload).items()}
    data = _need_data(schema)
    try:
        return SPECS[found].from_text(found, data, properties)
    except InvalidSchema as error:
        raise Unexpected(error.what) from None


def _need_data(schema: str | None) -> str:
    if schema is None:
        raise Unexpected(
            'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because the return value of '
            f'"{_PAYLOAD}.getSchema()" is null'
        )
    return schema


def _type(name: str | None, release: Release) -> SchemaType:
    if name is None:
        raise Unexpected("Name is null")
    found = SchemaType.__members__.get(name)
    if found is None or release < SPECS[found].first_release:
        raise Unexpected(f"No enum constant org.apache.pulsar.common.schema.SchemaType.{name}")
    return found


def _one(versions: list[SchemaVersion] | tuple[SchemaVersion, ...]) -> Response:
    if not versions:
        raise RestError(404, _NOT_FOUND)
    return ok(_shown(versions[0]))


def _shown(version: SchemaVersion) -> dict[str, Any]:
    info = version.info or SchemaInfo(SchemaType.NONE)
    try:
        data = spec(info).text(info) or info.schema.decode(errors="replace")
    except InvalidSchema as error:
        raise Unexpected(error.what) from None
    return {
        "version": version.number,
        "type": info.type.name,
        "timestamp": version.timestamp_ms,
        "data": data,
        "properties": dict(info.properties),
    }


def _long(name: str) -> int:
    found = _LONG.fullmatch(name)
    number = int(found["sign"] + found["digits"]) if found else _LARGEST_LONG + 1
    if abs(number) > _LARGEST_LONG:
        raise Unexpected(f'For input string: "{name}"')
    return number
