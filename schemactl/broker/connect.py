"""Decide whether a producer, consumer or reader may connect, and name the numbered rule behind the decision.

docs/reference/connects.md has them, which this module reads. ServerCnx.handleProducer, ServerCnx.handleSubscribe and AbstractTopic are
their source; tests compare the rows with real brokers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from schemactl.broker.checkers import known_to
from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, INCOMPATIBLE, INVALID, NOT_EXIST, answer
from schemactl.broker.upload import NOT_FOUND, check_consumer, find_equal, put
from schemactl.broker.validation import SchemaData, halves, parse_avro, stored, uploaded
from schemactl.core.catalog import Catalog
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import WITHOUT_SCHEMA, Release, SchemaInfo, SchemaType, SchemaVersion, live
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.schema import Enum, Fixed, JavaException, Record, Schema

# The numbered rules: `admit` names the one behind each decision

_ROW: Final = re.compile(r"^\| ([PCJ]\d+) \| (.+?) \| (.+?) \| \[\w+\]\((\S+)\) \|$", re.MULTILINE)


class ConnectRule(NamedTuple):
    """A row: which client connects where, what the broker does, and the address of the class that decides it."""

    when: str
    then: str
    source: str


@cache
def connect_rules() -> Mapping[str, ConnectRule]:
    """Return the rows by their ids: of producers, of consumers and readers, and of Java's client."""
    # In a wheel the page lies beside this module.
    page = Path(__file__).with_name("_connects.md")
    if not page.is_file():
        page = Path(__file__).parents[2] / "docs" / "reference" / "connects.md"
    return {row: ConnectRule(*cells) for row, *cells in _ROW.findall(page.read_text(encoding="utf-8"))}


# Refusals of Pulsar's Java client: AUTO_CONSUME, AUTO_PRODUCE_BYTES on a topic whose schema they cannot use

_UNSUPPORTED: Final = frozenset({SchemaType.PROTOBUF, SchemaType.EXTERNAL})
_AVRO_TEXT: Final = frozenset({SchemaType.AVRO, SchemaType.JSON})


def require_consumable(latest: SchemaInfo, release: Release) -> None:
    """Raise what AUTO_CONSUME throws on a topic whose latest schema this is (AutoConsumeSchema.generateSchema)."""
    data = stored(latest)
    if data.type not in _AVRO_TEXT:
        _require_instance(data, release)
    elif isinstance(_parse(data, release), Enum | Fixed) and data.type is SchemaType.JSON:
        # It looks for a Java class of that name, which an application hardly ever has.
        raise JavaException(ILLEGAL_ARGUMENT, "Must specify one of the pojo or jsonDef for the schema definition.")


def require_producible(latest: SchemaInfo, release: Release) -> None:
    """Raise what AUTO_PRODUCE_BYTES throws on a topic whose latest schema this is (PulsarClientImpl.createProducerAsync)."""
    data = stored(latest)
    if data.type is SchemaType.PROTOBUF:
        _require_record(data, release)
    else:
        _require_instance(data, release)


def _require_instance(data: SchemaData, release: Release) -> None:
    """Follow AutoConsumeSchema.getSchema."""
    if data.type in _UNSUPPORTED:
        raise JavaException(
            ILLEGAL_ARGUMENT,
            f"Retrieve schema instance from schema info for type '{data.type.name}' is not supported yet",
        )
    if data.type is SchemaType.KEY_VALUE:
        for half in halves(data, release):
            _require_instance(half, release)
    elif data.type in _AVRO_TEXT:
        _require_record(data, release)


def _require_record(data: SchemaData, release: Release) -> None:
    schema = _parse(data, release)
    if not isinstance(schema, Record):
        kind = schema.type
        raise JavaException(
            "AvroRuntimeException",
            f"Schema typed [org.apache.avro.Schema${kind.capitalize()}Schema], simple-type:[{kind.upper()}] is not supported. "
            f"schema-content: {schema_text(schema)}",
        )


def _parse(data: SchemaData, release: Release) -> Schema:
    try:
        return parse_avro(data, release)
    except JavaException:
        # A client validates no namespaces; a broker newer than 4.0 does.
        return parse_avro(data, Release.R4_0)


# The broker's decision (ServerCnx, AbstractTopic)

Role = Literal["producer", "consumer", "reader", "message"]
"""`message`: a connected producer that sends one message with this schema."""

_ON_THE_WIRE: Final = {INCOMPATIBLE: "IncompatibleSchema", INVALID: "IncompatibleSchema"}
"""BrokerServiceException.getClientErrorCode; everything else is an UnknownError, which clients retry."""

_NOT_UPDATED: Final = "Schema not found and schema auto updating is disabled."

_AUTO: Final = {SchemaType.AUTO_CONSUME: require_consumable, SchemaType.AUTO_PUBLISH: require_producible}
"""What the clients that take the topic's own schema ask of it."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """What a connect meets.

    Attributes:
        versions: every stored version, oldest first, tombstones among them.
        producers: how many are connected.
        consumers: how many are connected, those with AUTO_CONSUME left out; one without schema counts.
        has_data: it holds messages (a non-persistent topic: it has ever had one since it was loaded).
    """

    versions: tuple[SchemaVersion, ...] = ()
    producers: int = 0
    consumers: int = 0
    has_data: bool = False


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """What topic, namespace and broker settings come to."""

    strategy: CompatibilityStrategy = CompatibilityStrategy.FULL
    is_allow_auto_update_schema: bool = True
    schema_validation_enforced: bool = False
    checkers: tuple[str, ...] = ()
    """The optional checkers that the broker is configured with."""


def policies_in_force(
    topic: Policies | None, namespace: Policies | None, defaults: BrokerDefaults, *, strategy: CompatibilityStrategy
) -> PoliciesInForce:
    """Return the policies that the levels come to, given the `strategy` that is in force.

    Auto-update is the namespace's alone; validation is enforced when any level says so (AbstractTopic).
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


def policies_at(
    catalog: Catalog, name: TopicName, defaults: BrokerDefaults, *, strategy: CompatibilityStrategy
) -> PoliciesInForce:
    """Return the policies in force for a topic by what `catalog` holds of it and its namespace."""
    topic, namespace = catalog.topics.get(name), catalog.namespaces.get(name.namespace_name)
    return policies_in_force(
        topic.policies if topic else None, namespace.policies if namespace else None, defaults, strategy=strategy
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a client is let in.

    Attributes:
        allowed: it is.
        row: the row of Pulsar's rules behind it, as `admit` prints it.
        error: the wire protocol's ServerError, or the exception of a client that asks no broker; "" when allowed.
        message: its words, "" when allowed.
        version: the number that a producer stamps on its messages; None: they carry no version.
        registered: the number of the version that the connect adds to the topic; None: none.
        by_client: it is Java's client itself that refuses the topic's schema.
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
        """The message without the definitions that may follow."""
        return self.message.partition("\n")[0].strip().rstrip(":")


def admit(
    role: Role, client: SchemaInfo | None, topic: TopicState, policies: PoliciesInForce, release: Release
) -> Decision:
    """Decide what the broker does with a client.

    Args:
        role: of the client.
        client: the schema it brings. None, BYTES and NONE bring none; AUTO_PUBLISH is Java's AUTO_PRODUCE_BYTES, whose
            client fetches the topic's latest schema first, as AUTO_CONSUME does, which no broker checks. Either fails
            where it cannot use that schema.
        topic: as it is before.
        policies: in force for the topic.
        release: of the broker.
    """
    latest = _latest(topic)
    if client is not None and client.type in _AUTO and latest is not None:
        try:
            _AUTO[client.type](latest, release)
        except JavaException as thrown:
            return Decision(allowed=False, row="J1", error=thrown.exception, message=thrown.message, by_client=True)
    if client is not None and client.type is SchemaType.AUTO_PUBLISH:
        client = latest
    if client is not None and client.type in WITHOUT_SCHEMA:
        client = None
    if role in ("consumer", "reader"):
        return _admit_consumer(client, topic, policies, release)
    if client is None:
        return _admit_without_schema(topic, policies)
    answered = _add(client, topic, policies, release)
    if answered.outcome is Outcome.OK:
        return _decision(answered, "P6" if live(topic.versions) else "P5")
    return _decision(answered, _row_of_producer(answered))


def _row_of_producer(answered: Answer) -> str:
    if answered.outcome is Outcome.UNCHANGED:
        return "P4"
    if answered.message == _NOT_UPDATED:
        return "P8"
    return {Outcome.INCOMPATIBLE: "P7", Outcome.INVALID: "P9"}.get(answered.outcome, "P10")


def _latest(topic: TopicState) -> SchemaInfo | None:
    versions = live(topic.versions)
    return versions[-1].info if versions else None


def _admit_without_schema(topic: TopicState, policies: PoliciesInForce) -> Decision:
    if policies.schema_validation_enforced and live(topic.versions):
        # The words run together in the broker's source, too.
        message = (
            "Producers cannot connect or send message without a schema to topics with a schema"
            "when SchemaValidationEnforced is enabled"
        )
        return Decision(allowed=False, row="P3", error="IncompatibleSchema", message=message)
    return Decision(allowed=True, row="P2" if live(topic.versions) else "P1")


def _admit_consumer(
    client: SchemaInfo | None, topic: TopicState, policies: PoliciesInForce, release: Release
) -> Decision:
    if client is None or client.type is SchemaType.AUTO_CONSUME:
        return Decision(allowed=True, row="C2" if client else "C1")
    if live(topic.versions) or topic.producers or topic.consumers or topic.has_data:
        answered = check_consumer(
            topic.versions, client, policies.strategy, release, optional=known_to(release, policies.checkers)
        )
        if answered.exception == NOT_EXIST:
            message = (
                f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {client.type.name}"
            )
            answered = Answer(Outcome.INCOMPATIBLE, None, message, INCOMPATIBLE)
        if live(topic.versions):
            rows = {Outcome.INCOMPATIBLE: "C7", Outcome.ERROR: "C10"}
            return _decision(answered, rows.get(answered.outcome, "C6"))
        return _decision(answered, "C9" if answered.exception else "C8")
    answered = _add(client, topic, policies, release)
    if answered.outcome is Outcome.INVALID:
        # Taken for a ledger that is lost for ever (ignoreUnrecoverableBKException), it is let in, and nothing is stored.
        return Decision(allowed=True, row="C5")
    row = {Outcome.OK: "C3", Outcome.UNCHANGED: "C3", Outcome.INCOMPATIBLE: "C4"}.get(answered.outcome, "C10")
    return replace(_decision(answered, row), version=None)


def _add(client: SchemaInfo, topic: TopicState, policies: PoliciesInForce, release: Release) -> Answer:
    """AbstractTopic.addSchema: an upload, or a look-up without validation where schemas do not update themselves."""
    if policies.is_allow_auto_update_schema:
        optional = known_to(release, policies.checkers)
        return put(topic.versions, client, policies.strategy, release, optional=optional)
    try:
        number = find_equal(live(topic.versions), uploaded(client), release)
    except JavaException as thrown:
        return answer(thrown)
    if number == NOT_FOUND:
        return Answer(Outcome.INCOMPATIBLE, None, _NOT_UPDATED, INCOMPATIBLE)
    return Answer(Outcome.UNCHANGED, number)


def _decision(answered: Answer, row: str) -> Decision:
    if answered.outcome in (Outcome.OK, Outcome.UNCHANGED):
        registered = answered.version if answered.outcome is Outcome.OK else None
        return Decision(allowed=True, row=row, version=answered.version, registered=registered)
    error = _ON_THE_WIRE.get(answered.exception, "UnknownError")
    return Decision(allowed=False, row=row, error=error, message=answered.message)
