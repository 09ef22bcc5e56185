"""Decide whether a producer, consumer or reader may connect, with the number of the rule behind the decision.

The rules are the rows of docs/reference/connects.md, which this module reads. Their source is ServerCnx.handleProducer,
ServerCnx.handleSubscribe and AbstractTopic; tests compare them with real brokers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal, NamedTuple

from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, INCOMPATIBLE, INVALID, NOT_EXIST, to_answer
from schemactl.broker.upload import NOT_FOUND, VersionList
from schemactl.broker.validation import SchemaData, parse_avro, read_stored, read_upload, split_key_value
from schemactl.core.catalog import Catalog
from schemactl.core.documentation import find_documentation
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import WITHOUT_SCHEMA, Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.schema import Enum, Fixed, JavaException, Record, Schema

Role = Literal["producer", "consumer", "reader", "message"]
"""`message`: a connected producer that sends one message with this schema."""

_SERVER_ERRORS: Final = {INCOMPATIBLE: "IncompatibleSchema", INVALID: "IncompatibleSchema"}
"""BrokerServiceException.getClientErrorCode; all other exceptions are an UnknownError, which clients retry."""

_NOT_UPDATED: Final = "Schema not found and schema auto updating is disabled."

_UNSUPPORTED: Final = frozenset({SchemaType.PROTOBUF, SchemaType.EXTERNAL})
_AVRO_TEXT: Final = frozenset({SchemaType.AVRO, SchemaType.JSON})

_ROW: Final = re.compile(r"^\| ([PCJ]\d+) \| (.+?) \| (.+?) \| \[\w+\]\((\S+)\) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of a topic before a connect.

    Attributes:
        versions: every stored version, oldest first, including tombstones.
        producers: the number of connected producers.
        consumers: the number of connected consumers, including those without a schema, but not those with AUTO_CONSUME.
        has_data: whether the topic has messages; for a non-persistent topic, whether it had one since it was loaded.
    """

    versions: tuple[SchemaVersion, ...] = ()
    producers: int = 0
    consumers: int = 0
    has_data: bool = False


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """The policies that result from the settings of topic, namespace and broker."""

    strategy: CompatibilityStrategy = CompatibilityStrategy.FULL
    is_allow_auto_update_schema: bool = True
    schema_validation_enforced: bool = False
    checkers: tuple[str, ...] = ()
    """The optional checkers of the broker, and after a `!` the default checkers that it does not have."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision whether a client may connect.

    Attributes:
        allowed: whether it may connect.
        row: the id of the rule behind the decision, as `admit` prints it.
        error: the wire protocol's ServerError, or the exception of a client that fails by itself; "" if allowed.
        message: the error's message; "" if allowed.
        version: the schema version of a producer's messages, or None if they have no version.
        registered: the number of the version that the connect adds to the topic, or None.
        by_client: whether Java's client itself rejects the topic's schema.
    """

    allowed: bool
    row: str
    error: str = ""
    message: str = ""
    version: int | None = None
    registered: int | None = None
    by_client: bool = False

    @property
    def first_line(self) -> str:
        """The first line of the message, without the definitions that may follow."""
        return self.message.partition("\n")[0].strip().rstrip(":")


def admit(
    role: Role, client: SchemaInfo | None, topic: TopicState, policies: PoliciesInForce, release: Release
) -> Decision:
    """Decide whether a client may connect to a topic.

    Args:
        role: the client's role.
        client: the client's schema; None, BYTES and NONE mean no schema. A client with AUTO_PUBLISH (Java's AUTO_PRODUCE_BYTES) or
            AUTO_CONSUME, which no broker checks, fetches the topic's latest schema first, and fails if it cannot use it.
        topic: the state of the topic.
        policies: the policies in force for the topic.
        release: the broker's release.
    """
    live_versions = get_live_versions(topic.versions)
    latest = live_versions[-1].info if live_versions else None
    if client is not None and latest is not None:
        try:
            if client.type is SchemaType.AUTO_CONSUME:
                _require_consumable(latest, release)
            elif client.type is SchemaType.AUTO_PUBLISH:
                _require_producible(latest, release)
        except JavaException as thrown:
            return Decision(allowed=False, row="J1", error=thrown.exception, message=thrown.message, by_client=True)
    if client is not None and client.type is SchemaType.AUTO_PUBLISH:
        client = latest
    if client is not None and client.type in WITHOUT_SCHEMA:
        client = None
    if role in ("consumer", "reader"):
        return _admit_consumer(client, topic, policies, release)
    if client is None:
        if policies.schema_validation_enforced and live_versions:
            # The broker's message lacks the space as well.
            message = (
                "Producers cannot connect or send message without a schema to topics with a schema"
                "when SchemaValidationEnforced is enabled"
            )
            return Decision(allowed=False, row="P3", error="IncompatibleSchema", message=message)
        return Decision(allowed=True, row="P2" if live_versions else "P1")
    result = _add_schema(client, topic, policies, release)
    if result.outcome is Outcome.OK:
        row = "P6" if live_versions else "P5"
    elif result.outcome is Outcome.UNCHANGED:
        row = "P4"
    elif result.message == _NOT_UPDATED:
        row = "P8"
    else:
        row = {Outcome.INCOMPATIBLE: "P7", Outcome.INVALID: "P9"}.get(result.outcome, "P10")
    return _make_decision(result, row)


def _admit_consumer(
    client: SchemaInfo | None, topic: TopicState, policies: PoliciesInForce, release: Release
) -> Decision:
    if client is None or client.type is SchemaType.AUTO_CONSUME:
        return Decision(allowed=True, row="C2" if client else "C1")
    if get_live_versions(topic.versions) or topic.producers or topic.consumers or topic.has_data:
        versions = VersionList(topic.versions, release, checker_changes=policies.checkers)
        result = versions.check_consumer(client, policies.strategy)
        if result.exception == NOT_EXIST:
            message = (
                f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {client.type.name}"
            )
            result = Answer(Outcome.INCOMPATIBLE, None, message, INCOMPATIBLE)
        if get_live_versions(topic.versions):
            rows = {Outcome.INCOMPATIBLE: "C7", Outcome.ERROR: "C10"}
            return _make_decision(result, rows.get(result.outcome, "C6"))
        return _make_decision(result, "C9" if result.exception else "C8")
    result = _add_schema(client, topic, policies, release)
    if result.outcome is Outcome.INVALID:
        # The broker mistakes the exception for a lost ledger (ignoreUnrecoverableBKException) and stores nothing.
        return Decision(allowed=True, row="C5")
    row = {Outcome.OK: "C3", Outcome.UNCHANGED: "C3", Outcome.INCOMPATIBLE: "C4"}.get(result.outcome, "C10")
    return replace(_make_decision(result, row), version=None)


def _add_schema(client: SchemaInfo, topic: TopicState, policies: PoliciesInForce, release: Release) -> Answer:
    """Answer like AbstractTopic.addSchema: an upload, or without auto-update a search without validation."""
    if policies.is_allow_auto_update_schema:
        versions = VersionList(topic.versions, release, checker_changes=policies.checkers)
        return versions.put(client, policies.strategy)
    try:
        number = VersionList(topic.versions, release).find_equal(read_upload(client))
    except JavaException as thrown:
        return to_answer(thrown)
    if number == NOT_FOUND:
        return Answer(Outcome.INCOMPATIBLE, None, _NOT_UPDATED, INCOMPATIBLE)
    return Answer(Outcome.UNCHANGED, number)


def _make_decision(result: Answer, row: str) -> Decision:
    if result.outcome in (Outcome.OK, Outcome.UNCHANGED):
        registered = result.version if result.outcome is Outcome.OK else None
        return Decision(allowed=True, row=row, version=result.version, registered=registered)
    error = _SERVER_ERRORS.get(result.exception, "UnknownError")
    return Decision(allowed=False, row=row, error=error, message=result.message)


# The client's decision: Pulsar's Java client with AUTO_CONSUME or AUTO_PRODUCE_BYTES, which uses the topic's schema


def _require_consumable(latest: SchemaInfo, release: Release) -> None:
    """Raise the exception of AUTO_CONSUME on a topic with this latest schema (AutoConsumeSchema.generateSchema), if any."""
    data = read_stored(latest)
    if data.type not in _AVRO_TEXT:
        _require_instance(data, release)
    elif isinstance(_parse(data, release), Enum | Fixed) and data.type is SchemaType.JSON:
        # The client looks for a Java class of this name, which applications rarely have.
        raise JavaException(ILLEGAL_ARGUMENT, "Must specify one of the pojo or jsonDef for the schema definition.")


def _require_producible(latest: SchemaInfo, release: Release) -> None:
    """Raise the exception of AUTO_PRODUCE_BYTES on a topic with this latest schema (PulsarClientImpl.createProducerAsync), if any."""
    data = read_stored(latest)
    if data.type is SchemaType.PROTOBUF:
        _require_record(data, release)
    else:
        _require_instance(data, release)


def _require_instance(data: SchemaData, release: Release) -> None:
    """Raise the exception of AutoConsumeSchema.getSchema, if any."""
    if data.type in _UNSUPPORTED:
        raise JavaException(
            ILLEGAL_ARGUMENT,
            f"Retrieve schema instance from schema info for type '{data.type.name}' is not supported yet",
        )
    if data.type is SchemaType.KEY_VALUE:
        for part in split_key_value(data, release):
            _require_instance(part, release)
    elif data.type in _AVRO_TEXT:
        _require_record(data, release)


def _require_record(data: SchemaData, release: Release) -> None:
    schema = _parse(data, release)
    if not isinstance(schema, Record):
        name = schema.type
        raise JavaException(
            "AvroRuntimeException",
            f"Schema typed [org.apache.avro.Schema${name.capitalize()}Schema], simple-type:[{name.upper()}] is not supported. "
            f"schema-content: {schema_text(schema)}",
        )


def _parse(data: SchemaData, release: Release) -> Schema:
    try:
        return parse_avro(data, release)
    except JavaException:
        # A client does not validate namespaces, and brokers newer than 4.0 do.
        return parse_avro(data, Release.R4_0)


# The policies in force, and the numbered rules


def resolve_policies(
    topic: Policies | None, namespace: Policies | None, defaults: BrokerDefaults, *, strategy: CompatibilityStrategy
) -> PoliciesInForce:
    """Return the policies in force, given the `strategy` in force.

    Only the namespace can set auto-update. Validation is enforced by the topic or else the namespace, or by the broker (AbstractTopic).
    """
    levels = [policies for policies in (topic, namespace) if policies is not None]
    enforced = [policies.schema_validation_enforced for policies in levels]
    auto_update = namespace.is_allow_auto_update_schema if namespace else None
    return PoliciesInForce(
        strategy,
        defaults.is_allow_auto_update_schema if auto_update is None else auto_update,
        next((value for value in enforced if value is not None), False) or defaults.schema_validation_enforced,
        defaults.checkers,
    )


def resolve_policies_at(
    catalog: Catalog, name: TopicName, defaults: BrokerDefaults, *, strategy: CompatibilityStrategy
) -> PoliciesInForce:
    """Return the policies in force for a topic, given the policies of the topic and its namespace in `catalog`."""
    topic, namespace = catalog.topics.get(name), catalog.namespaces.get(name.namespace_name)
    return resolve_policies(
        topic.policies if topic else None, namespace.policies if namespace else None, defaults, strategy=strategy
    )


class ConnectRule(NamedTuple):
    """A rule: which client connects to which topic, the broker's response, and the URL of the class that decides."""

    when: str
    then: str
    source: str


@cache
def read_connect_rules() -> Mapping[str, ConnectRule]:
    """Return the rules of producers, of consumers and readers, and of Java's client, by id."""
    page = find_documentation() / "reference" / "connects.md"
    return {row: ConnectRule(*cells) for row, *cells in _ROW.findall(page.read_text(encoding="utf-8"))}
