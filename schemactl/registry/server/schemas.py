"""Serve the endpoints of SchemasResource: the schemas of a topic."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.responses import Response

from schemactl.broker.upload import find_version
from schemactl.core.errors import InvalidSchema, SchemaRejected
from schemactl.core.findings import Outcome
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.formats import SPECS, spec
from schemactl.registry.server.http import (
    AdminCall,
    ErrorPage,
    RestError,
    Unexpected,
    read_object,
    respond_empty,
    respond_json,
    to_text,
    to_texts,
)

_PAYLOAD: Final = "org.apache.pulsar.common.protocol.schema.PostSchemaPayload"
_NOT_FOUND: Final = "Schema not found"
_LARGEST_LONG: Final = (1 << 63) - 1
_LONG: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]{1,19})")

_REFUSALS: Final = {Outcome.INCOMPATIBLE: 409, Outcome.INVALID: 422}
"""The status of a rejected upload; brokers answer any other outcome as an uncaught exception."""


def get_latest(call: AdminCall) -> Response:
    """GET schema."""
    return _respond_version(get_live_versions(call.registry.versions(call.topic))[-1:])


def get_version(call: AdminCall) -> Response:
    """GET schema/{version}."""
    number = _parse_long(call.names["version"])
    versions = get_live_versions(call.registry.versions(call.topic))
    return _respond_version([version for version in versions if version.number == number])


def list_versions(call: AdminCall) -> Response:
    """GET schemas: the live versions."""
    return respond_json(
        {
            "getSchemaResponses": [
                _convert_version(version) for version in get_live_versions(call.registry.versions(call.topic))
            ]
        }
    )


def get_metadata(call: AdminCall) -> Response:
    """GET metadata: the storage of each version and tombstone, with made-up ledger entries."""
    index = [
        {"ledgerId": version.number, "entryId": 0, "version": version.number}
        for version in call.registry.versions(call.topic)
    ]
    return respond_json({"info": index[-1], "index": index}) if index else respond_empty(200)


def upload(call: AdminCall) -> Response:
    """POST schema."""
    payload, topic = _read_payload(call), call.topic
    call.require_namespace()
    info = _read_info(call, payload, data_first=True)
    if None in _read_properties(payload).values() and call.registry.judge(topic, info).outcome is Outcome.OK:
        # A broker fails on a null property only when it stores the schema.
        raise Unexpected("")
    try:
        number = call.registry.put_schema(topic, info)
    except SchemaRejected as rejected:
        outcome = Outcome(rejected.outcome)
        if outcome in _REFUSALS:
            raise ErrorPage(_REFUSALS[outcome], rejected.message) from None
        raise Unexpected(rejected.message) from None
    return respond_json({"version": {"version": number}})


def delete(call: AdminCall) -> Response:
    """DELETE schema; the namespace need not exist."""
    number = call.registry.delete_schema(call.topic, force=call.has_flag("force"))
    return respond_json({"version": -1 if number is None else number})


def test_compatibility(call: AdminCall) -> Response:
    """POST compatibility: a status of 500 for an incompatible schema."""
    payload, topic = _read_payload(call), call.topic
    call.require_namespace()
    info = _read_info(call, payload)
    answer, strategy = call.registry.test_with_strategy(topic, info)
    if answer.outcome is not Outcome.OK:
        raise Unexpected(answer.message, answer.exception)
    return respond_json({"schemaCompatibilityStrategy": strategy.value, "compatibility": True}, 202)


def find_number(call: AdminCall) -> Response:
    """POST version: the number of a version with the same bytes."""
    info = _read_info(call, _read_payload(call))
    return respond_json({"version": find_version(call.registry.versions(call.topic), info)})


def _read_payload(call: AdminCall) -> dict[str, Any] | None:
    fields = read_object(call.body, _PAYLOAD)
    if fields is not None:
        # Jackson checks the whole object before it calls the endpoint.
        to_text(fields.get("type"))
        to_text(fields.get("schema"))
        to_texts(fields.get("properties"))
    return fields


def _read_properties(payload: dict[str, Any] | None) -> dict[str, str | None]:
    return to_texts((payload or {}).get("properties")) or {}


def _read_info(call: AdminCall, payload: dict[str, Any] | None, *, data_first: bool = False) -> SchemaInfo:
    """Return the uploaded schema; an upload checks the data before the type, other endpoints after it."""
    if payload is None:
        raise Unexpected(f'Cannot invoke "{_PAYLOAD}.getType()" because "payload" is null')
    type_name = to_text(payload.get("type"))
    schema = to_text(payload.get("schema"))
    if data_first:
        _require_data(schema)
    schema_type = _parse_type(type_name, call.registry.release)
    properties = {key: value or "" for key, value in _read_properties(payload).items()}
    data = _require_data(schema)
    try:
        return SPECS[schema_type].from_text(schema_type, data, properties)
    except InvalidSchema as error:
        raise Unexpected(error.message) from None


def _require_data(schema: str | None) -> str:
    if schema is None:
        raise Unexpected(
            'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because the return value of '
            f'"{_PAYLOAD}.getSchema()" is null'
        )
    return schema


def _parse_type(name: str | None, release: Release) -> SchemaType:
    if name is None:
        raise Unexpected("Name is null")
    schema_type = SchemaType.__members__.get(name)
    if schema_type is None or release < SPECS[schema_type].first_release:
        raise Unexpected(f"No enum constant org.apache.pulsar.common.schema.SchemaType.{name}")
    return schema_type


def _respond_version(versions: list[SchemaVersion] | tuple[SchemaVersion, ...]) -> Response:
    if not versions:
        raise RestError(404, _NOT_FOUND)
    return respond_json(_convert_version(versions[0]))


def _convert_version(version: SchemaVersion) -> dict[str, Any]:
    info = version.info or SchemaInfo(SchemaType.NONE)
    try:
        data = spec(info).to_text(info) or info.schema.decode(errors="replace")
    except InvalidSchema as error:
        raise Unexpected(error.message) from None
    return {
        "version": version.number,
        "type": info.type.name,
        "timestamp": version.timestamp_ms,
        "data": data,
        "properties": dict(info.properties),
    }


def _parse_long(text: str) -> int:
    match = _LONG.fullmatch(text)
    number = int(match["sign"] + match["digits"]) if match else _LARGEST_LONG + 1
    if abs(number) > _LARGEST_LONG:
        raise Unexpected(f'For input string: "{text}"')
    return number
