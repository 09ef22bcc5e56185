"""Read, upload, test and delete the schemas of a topic over the admin API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from types import NoneType
from typing import Any
from urllib.parse import quote

from schemactl.core.errors import InvalidSchema, RegistryError, SchemaRejected
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import WITHOUT_SCHEMA, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import SPECS, spec
from schemactl.registry.pulsar.error_causes import find_cause
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.responses import (
    Reply,
    can_succeed_later,
    find_exception,
    is_concurrent_modification,
    is_too_big,
    parse_strategy,
)

_CONFLICT, _INVALID, _SERVER_ERROR = 409, 422, 500
_OUTCOME_BY_EXCEPTION = {
    "IncompatibleSchemaException": Outcome.INCOMPATIBLE,
    "InvalidSchemaDataException": Outcome.INVALID,
}
MAX_VERSIONS = 100_000
"""More versions than a topic can have: the list is one entry of the metadata store, of about a megabyte, with some 50 bytes for
each version."""
_MAX_TIMESTAMP_MS = 4_102_444_800_000 * 2
"""The latest plausible timestamp, in the year 2229."""
_RESPONSE_SHAPE = {"version": int, "type": str, "data": str | None, "properties": dict | None, "timestamp": int | None}
"""The shape of a GetSchemaResponse."""


def read_versions(connection: AdminConnection, topic: TopicName) -> tuple[SchemaVersion, ...]:
    """Return every stored entry of the topic, ordered by number.

    Pulsar shows only the versions after the last tombstone. Earlier versions cannot be read, so they count as tombstones.
    """
    answer = connection.get(
        f"{_make_path(topic)}/schemas", {"getSchemaResponses": [_RESPONSE_SHAPE]}, absent={"getSchemaResponses": ()}
    )
    readable = [_parse_version(topic, response) for response in answer["getSchemaResponses"]]
    if any(later.number <= earlier.number for earlier, later in pairwise(readable)):
        raise RegistryError(f"{topic}: the registry lists its versions out of order")
    first = readable[0].number if readable else read_next_number(connection, topic)
    return (*map(_make_tombstone, range(first)), *readable)


@lru_cache(maxsize=MAX_VERSIONS)
def _make_tombstone(number: int) -> SchemaVersion:
    """Return the tombstone with a number; topics share these objects, so a hostile registry cannot exhaust the memory."""
    return SchemaVersion(number, None)


def get(connection: AdminConnection, topic: TopicName, number: int | None) -> SchemaVersion | None:
    """Return the readable version with this number, or the latest version; None if it does not exist."""
    path = f"{_make_path(topic)}/schema" + ("" if number is None else f"/{number}")
    answer = connection.get(path, _RESPONSE_SHAPE, absent=None)
    return None if answer is None else _parse_version(topic, answer)


def put(connection: AdminConnection, topic: TopicName, info: SchemaInfo) -> int:
    """Upload a schema and return its version number.

    Raises:
        SchemaRejected: if the registry rejects it.
        RegistryError: if there is no response, or the upload would do harm that Pulsar does not prevent.
    """
    if info.type in WITHOUT_SCHEMA:
        raise RegistryError(
            f"{topic}: a {info.type.name} schema is not uploaded: Pulsar would store it and then refuse all others",
            fix="declare the topic without `schema`",
        )
    payload = _make_upload(info)
    reply = connection.send("POST", f"{_make_path(topic)}/schema", payload)
    if reply.is_success:
        answer = connection.read_json(reply, f"upload to {topic}", {"version": {"version": int}})
        number: int = answer["version"]["version"]
        return number
    if is_too_big(reply, len(info.schema)):
        raise SchemaRejected(
            Outcome.ERROR,
            f"{topic}: the definition is too big for Pulsar: {len(info.schema):,} bytes",
            fix="stay below 5,242,710 bytes",
        )
    outcome = _find_outcome(reply)
    if outcome is None:
        connection.expect(reply, f"upload to {topic}", of=f"namespace {topic.namespace_name}")
    raise SchemaRejected(outcome or Outcome.ERROR, connection.error_message(reply))


def test(connection: AdminConnection, topic: TopicName, info: SchemaInfo) -> Answer:
    """Return the answer of the compatibility endpoint, which reports a rejection as an unexpected error."""
    reply = connection.send("POST", f"{_make_path(topic)}/compatibility", _make_upload(info))
    if reply.is_success:
        return Answer(Outcome.OK)
    if reply.status != _SERVER_ERROR:
        connection.expect(reply, f"compatibility test for {topic}", of=f"namespace {topic.namespace_name}")
    name = find_exception(reply)
    return Answer(_OUTCOME_BY_EXCEPTION.get(name, Outcome.ERROR), None, connection.error_message(reply), name)


def delete(connection: AdminConnection, topic: TopicName, *, force: bool) -> int | None:
    """Append a tombstone and return its number; with `force`, delete all versions and return None."""
    path = f"{_make_path(topic)}/schema"
    if force:
        connection.change("DELETE", f"{path}?force=true")
        return None
    # Each soft delete writes another tombstone, so a lost response must not lead to a second request.
    expected = read_next_number(connection, topic)

    def find_lost_reply() -> Reply | None:
        number = read_next_number(connection, topic) - 1
        return Reply(200, body=b'{"version": %d}' % number) if number >= expected else None

    reply = connection.send("DELETE", path, find_lost_reply=find_lost_reply)
    connection.expect(reply, f"DELETE {path}")
    number: int = connection.read_json(reply, f"DELETE {path}", {"version": int})["version"]
    return number


def test_for_strategy(connection: AdminConnection, topic: TopicName) -> CompatibilityStrategy | None:
    """Return the strategy that the compatibility endpoint applies to a topic, which need not exist, or None without permission."""
    reply = connection.send("POST", f"{_make_path(topic)}/compatibility", _make_upload(SchemaInfo(SchemaType.STRING)))
    if not reply.is_success:
        return None
    answer = connection.read_json(reply, f"compatibility test for {topic}", {"schemaCompatibilityStrategy": str})
    return parse_strategy(answer["schemaCompatibilityStrategy"])


def read_next_number(connection: AdminConnection, topic: TopicName) -> int:
    """Return one more than the number of the last entry, tombstones included."""
    metadata = connection.get(f"{_make_path(topic)}/metadata", ({"info": {"version": int}}, NoneType), absent=None)
    return _check_number(topic, metadata["info"]["version"]) + 1 if metadata else 0


def _make_path(topic: TopicName) -> str:
    # Brokers decode the topic in these paths twice (SchemasResource), and everywhere else once.
    local_name = quote(quote(topic.topic, safe=""), safe="")
    return f"schemas/{topic.tenant}/{topic.namespace}/{local_name}"


def _check_number(topic: TopicName, number: int) -> int:
    """Return a version number of the registry; raise RegistryError if no version list can be so long."""
    if not 0 <= number < MAX_VERSIONS:
        raise RegistryError(
            f"{topic}: the registry reports a version {number}, and a version list cannot be so long",
            fix="check that `registry` of the target is the address of Pulsar's admin API",
        )
    return number


def _make_upload(info: SchemaInfo) -> dict[str, Any]:
    # Without the types of key and value in the properties, Pulsar silently drops both definitions.
    if spec(info).language == "pair":
        missing = {"key.schema.type", "value.schema.type"} - info.properties.keys()
        if missing:
            raise RegistryError(f"a KEY_VALUE schema needs the properties {', '.join(sorted(missing))}")
    text = spec(info).to_text(info)
    if text is None:
        raise SchemaRejected(Outcome.INVALID, f"the {info.type.name} definition is not UTF-8")
    return {"type": info.type.name, "schema": text, "properties": dict(info.properties)}


def _parse_version(topic: TopicName, response: Mapping[str, Any]) -> SchemaVersion:
    try:
        schema_type = SchemaType[response["type"]]
    except KeyError:
        raise RegistryError(
            f"{topic}: v{response['version']} has the schema type {response['type'][:60]!r}, which this version does not know",
            fix="upgrade schemactl",
        ) from None
    number, timestamp_ms = _check_number(topic, response["version"]), response.get("timestamp")
    text, properties = response.get("data") or "", response.get("properties") or {}
    if not all(isinstance(value, str) for value in properties.values()):
        raise RegistryError(f"{topic}: v{number} has a property that is not a string")
    if timestamp_ms is not None and abs(timestamp_ms) > _MAX_TIMESTAMP_MS:
        raise RegistryError(f"{topic}: v{number} has a timestamp that is not a time")
    try:
        info = SPECS[schema_type].from_text(schema_type, text, properties)
    except (InvalidSchema, ValueError) as error:
        raise RegistryError(
            f"{topic}: v{response['version']} is not a valid {schema_type.name} schema: {error}"
        ) from error
    return SchemaVersion(number, info, timestamp_ms=timestamp_ms)


def _find_outcome(reply: Reply) -> Outcome | None:
    """Return the outcome of an upload, or None if the reply is not about the definition."""
    if reply.status == _CONFLICT and not is_concurrent_modification(reply):
        return Outcome.INCOMPATIBLE
    if reply.status == _INVALID:
        return Outcome.INVALID
    cause = find_cause(reply)
    is_stored_badly = cause is not None and cause.is_lasting
    is_rejected = (
        reply.status == _SERVER_ERROR and find_exception(reply) and not can_succeed_later(reply) and not is_stored_badly
    )
    return Outcome.ERROR if is_rejected else None
