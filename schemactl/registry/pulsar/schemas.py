"""Schemas of a topic over the admin API: stored versions, uploads, tests and deletions."""

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
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.responses import (
    Reply,
    can_succeed_later,
    exception,
    is_concurrent_modification,
    is_too_big,
    strategy_named,
)

_CONFLICT, _INVALID, _SERVER_ERROR = 409, 422, 500
_REJECTED_BY = {"IncompatibleSchemaException": Outcome.INCOMPATIBLE, "InvalidSchemaDataException": Outcome.INVALID}
MAX_VERSIONS = 100_000
"""More versions of a topic than any Pulsar can list: the list is one entry of its metadata store, of a megabyte or so, with some
50 bytes for each."""
_LATEST_MS = 4_102_444_800_000 * 2
"""What no clock shows, and every calendar still has: the year 2229."""
_RESPONSE = {"version": int, "type": str, "data": str | None, "properties": dict | None, "timestamp": int | None}
"""A version as GetSchemaResponse tells it."""


def stored(connection: AdminConnection, topic: TopicName) -> tuple[SchemaVersion, ...]:
    """Return every stored entry of the topic, in order of number.

    Pulsar shows only the contents after the last tombstone. What stands before can no longer be read, so it counts as
    tombstones, too.
    """
    answer = connection.get(
        f"{_path(topic)}/schemas", {"getSchemaResponses": [_RESPONSE]}, absent={"getSchemaResponses": ()}
    )
    readable = [_version(topic, each) for each in answer["getSchemaResponses"]]
    if any(later.number <= one.number for one, later in pairwise(readable)):
        raise RegistryError(f"{topic}: the registry lists its versions out of order")
    first = readable[0].number if readable else next_number(connection, topic)
    return (*map(_tombstone, range(first)), *readable)


@lru_cache(maxsize=MAX_VERSIONS)
def _tombstone(number: int) -> SchemaVersion:
    """Return a tombstone, the same object for all topics: however many a registry claims, they take no memory."""
    return SchemaVersion(number, None)


def get(connection: AdminConnection, topic: TopicName, number: int | None) -> SchemaVersion | None:
    """Return the readable version with that number (None: the latest); None if there is none."""
    where = f"{_path(topic)}/schema" + ("" if number is None else f"/{number}")
    answer = connection.get(where, _RESPONSE, absent=None)
    return None if answer is None else _version(topic, answer)


def put(connection: AdminConnection, topic: TopicName, info: SchemaInfo) -> int:
    """Return the number that the registry gives to the upload.

    Raises:
        SchemaRejected: the registry refuses it.
        RegistryError: there is no response, or the upload would do harm that Pulsar does not prevent.
    """
    if info.type in WITHOUT_SCHEMA:
        raise RegistryError(
            f"{topic}: a {info.type.name} schema is not uploaded: Pulsar would store it and then refuse all others",
            fix="declare the topic without `schema`",
        )
    payload = _payload(info)
    reply = connection.send("POST", f"{_path(topic)}/schema", payload)
    if reply.fine:
        answer = connection.json(reply, f"upload to {topic}", {"version": {"version": int}})
        number: int = answer["version"]["version"]
        return number
    if is_too_big(reply, len(info.schema)):
        raise SchemaRejected(
            Outcome.ERROR,
            f"{topic}: the definition is too big for Pulsar: {len(info.schema):,} bytes",
            fix="stay below 5,242,710 bytes",
        )
    outcome = _outcome(reply)
    if outcome is None:
        connection.expect(reply, f"upload to {topic}", of=f"namespace {topic.namespace_name}")
    raise SchemaRejected(outcome or Outcome.ERROR, connection.error_message(reply))


def test(connection: AdminConnection, topic: TopicName, info: SchemaInfo) -> Answer:
    """Return the answer of the compatibility endpoint, where a refusal is an unexpected error."""
    reply = connection.send("POST", f"{_path(topic)}/compatibility", _payload(info))
    if reply.fine:
        return Answer(Outcome.OK)
    if reply.status != _SERVER_ERROR:
        connection.expect(reply, f"compatibility test for {topic}", of=f"namespace {topic.namespace_name}")
    name = exception(reply)
    return Answer(_REJECTED_BY.get(name, Outcome.ERROR), None, connection.error_message(reply), name)


def delete(connection: AdminConnection, topic: TopicName, *, force: bool) -> int | None:
    """Return the number of the tombstone; None after a forced deletion, which leaves nothing."""
    where = f"{_path(topic)}/schema"
    if force:
        connection.change("DELETE", f"{where}?force=true")
        return None
    # Each soft delete that reaches the registry writes a tombstone, so an unclear end is looked into before another one.
    before = next_number(connection, topic)

    def done() -> Reply | None:
        number = next_number(connection, topic) - 1
        return Reply(200, body=b'{"version": %d}' % number) if number >= before else None

    reply = connection.send("DELETE", where, done=done)
    connection.expect(reply, f"DELETE {where}")
    number: int = connection.json(reply, f"DELETE {where}", {"version": int})["version"]
    return number


def _path(topic: TopicName) -> str:
    return f"schemas/{topic.tenant}/{topic.namespace}/{quote(topic.topic, safe='')}"


def next_number(connection: AdminConnection, topic: TopicName) -> int:
    """Return one more than the number of the last entry, tombstones included."""
    answer = connection.get(f"{_path(topic)}/metadata", ({"info": {"version": int}}, NoneType), absent=None)
    return _number(topic, answer["info"]["version"]) + 1 if answer else 0


def _number(topic: TopicName, answer: int) -> int:
    """Return a version number that the registry sent; raise RegistryError if no list of versions can be so long."""
    if not 0 <= answer < MAX_VERSIONS:
        raise RegistryError(
            f"{topic}: the registry says there is a version {answer}, but it cannot list so many",
            fix="check that `registry` of the target is the address of Pulsar's admin API",
        )
    return answer


def _payload(info: SchemaInfo) -> dict[str, Any]:
    # Types of halves stand in the properties, and without them Pulsar drops both halves without a word.
    if spec(info).language == "pair":
        missing = {"key.schema.type", "value.schema.type"} - info.properties.keys()
        if missing:
            raise RegistryError(f"a KEY_VALUE schema needs the properties {', '.join(sorted(missing))}")
    text = spec(info).text(info)
    if text is None:
        raise SchemaRejected(Outcome.INVALID, f"the {info.type.name} definition is not UTF-8")
    return {"type": info.type.name, "schema": text, "properties": dict(info.properties)}


def _version(topic: TopicName, answer: Mapping[str, Any]) -> SchemaVersion:
    try:
        kind = SchemaType[answer["type"]]
    except KeyError:
        raise RegistryError(
            f"{topic}: v{answer['version']} has the schema type {answer['type'][:60]!r}, which this version does not know",
            fix="upgrade schemactl",
        ) from None
    number, moment_ms = _number(topic, answer["version"]), answer.get("timestamp")
    text, properties = answer.get("data") or "", answer.get("properties") or {}
    if not all(isinstance(value, str) for value in properties.values()):
        raise RegistryError(f"{topic}: v{number} has a property that is not text")
    if isinstance(moment_ms, bool) or (moment_ms is not None and abs(moment_ms) > _LATEST_MS):
        raise RegistryError(f"{topic}: v{number} has a timestamp that is not a time")
    try:
        info = SPECS[kind].from_text(kind, text, properties)
    except (InvalidSchema, ValueError) as error:
        raise RegistryError(f"{topic}: v{answer['version']} is no {kind.name} schema: {error}") from error
    return SchemaVersion(number, info, timestamp_ms=moment_ms)


def _outcome(reply: Reply) -> Outcome | None:
    """Return the outcome of an upload from its reply; None if the reply is not about the definition."""
    if reply.status == _CONFLICT and not is_concurrent_modification(reply):
        return Outcome.INCOMPATIBLE
    if reply.status == _INVALID:
        return Outcome.INVALID
    is_rejected = reply.status == _SERVER_ERROR and exception(reply) and not can_succeed_later(reply)
    return Outcome.ERROR if is_rejected else None


def strategy_in_force(connection: AdminConnection, topic: TopicName) -> CompatibilityStrategy | None:
    """Return the strategy that the compatibility endpoint names; None if it may not be asked. `topic` need not exist."""
    reply = connection.send("POST", f"{_path(topic)}/compatibility", _payload(SchemaInfo(SchemaType.STRING)))
    if not reply.fine:
        return None
    answer = connection.json(reply, f"compatibility test for {topic}", {"schemaCompatibilityStrategy": str})
    return strategy_named(answer["schemaCompatibilityStrategy"])
