"""Check whether Java's clients get the times of a topic as they were written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from schemactl.checks.check_report import Change
from schemactl.checks.proposal import Comparison, Proposal
from schemactl.codegen.codecs import get_wire_options
from schemactl.core.catalog import Client, Topic
from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.findings import Finding
from schemactl.core.schema import SchemaInfo, SchemaType, find_by_number, get_live_versions
from schemactl.core.terminal import on_one_line
from schemactl.formats import get_parts
from schemactl.formats.avro import parse_by_any
from schemactl.formats.avro.logical_types import JSR310_PROPERTY, ValueType, find_times

_NEW_VERSION: Final = ("added", "new version")


def check_java_times(
    comparison: Comparison, proposal: Proposal, approved_topic: Topic | None, change: Change
) -> Iterator[Finding]:
    """Yield findings about times that Java's clients lose, because of the form in JSON or of a property of the schema."""
    yield from _check_json_times(comparison, proposal, approved_topic, is_new_version=change in _NEW_VERSION)
    if change in _NEW_VERSION:
        yield from _check_missing_switch(comparison, proposal)
    if change in (*_NEW_VERSION, "not stored"):
        yield from _check_changed_switch(comparison, proposal, is_stored=change in _NEW_VERSION)


def _check_json_times(
    comparison: Comparison, proposal: Proposal, approved_topic: Topic | None, *, is_new_version: bool
) -> Iterator[Finding]:
    topic = proposal.topic
    pointer = _find_json_time(comparison, topic, proposal.schema)
    was_so = (
        approved_topic and approved_topic.schema and _find_json_time(comparison, approved_topic, approved_topic.schema)
    )
    if pointer is None or (was_so and not is_new_version):
        return
    yield from comparison.make_finding(
        "JSON_TIMES",
        topic,
        f"{_name_java_clients(comparison, topic)} reads {topic.name} in Java, and generated packages write its times into JSON as whole numbers in "
        "the unit of their type: Java's classes read such a number as seconds, which gives a wrong time, or they throw an exception.",
        source=proposal.schema.locate(pointer),
        pointer=pointer,
    )


def _find_json_time(comparison: Comparison, topic: Topic, schema: SchemaInfo) -> str | None:
    """Return the place of the first time that is written as a number and that a declared Java client cannot read, or None."""
    is_java = get_wire_options(topic, comparison.project.generate).get("json_times") == "java"
    if is_java or not _list_java_clients(comparison, topic):
        return None
    for prefix, part in _list_parts(schema, SchemaType.JSON):
        for pointer, value_type in _list_times(part):
            # Java's JSON reader also reads a date from a whole number in the unit of its type.
            if value_type.kind != "date":
                return prefix + pointer
    return None


def _check_missing_switch(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    topic = proposal.topic
    if not _list_java_clients(comparison, topic):
        return
    for prefix, part in _list_parts(proposal.schema, SchemaType.AVRO):
        times = _list_times(part)
        if not times or JSR310_PROPERTY in part.properties:
            continue
        pointer, value_type = times[0]
        yield from comparison.make_finding(
            "JSR310_MISSING",
            topic,
            f"Version {proposal.number} of {topic.name} has a {value_type.logical} and is declared without the property {JSR310_PROPERTY}, "
            f"which tells Java's consumers ({_name_java_clients(comparison, topic)}) whether times are classes of java.time. "
            "Without it, a field `Instant` receives a number: with Pulsar 4.0 the time is 1,000 times too large, and "
            "with 4.2 every message throws an exception.\n"
            "Adding the property later makes no version: registries keep the properties of the first upload. The ways "
            "out are then: annotate the "
            "fields of Java's classes with @AvroSchema, declare a new version with the property (messages of this "
            "version do not change), or, "
            f"if the topic retains no messages, write `generation: {topic.generation + 1}`.",
            source=proposal.schema.locate(prefix + pointer),
            pointer=prefix + pointer,
        )


def _check_changed_switch(comparison: Comparison, proposal: Proposal, *, is_stored: bool) -> Iterator[Finding]:
    topic, versions = proposal.topic, get_live_versions(proposal.versions)
    old_version = versions[-1] if is_stored and versions else None
    if not is_stored:
        old_version = find_by_number(versions, proposal.number)
    if old_version is None or old_version.info is None:
        return
    old_parts = dict(_list_parts(old_version.info, SchemaType.AVRO))
    for prefix, part in _list_parts(proposal.schema, SchemaType.AVRO):
        old_part = old_parts.get(prefix)
        if old_part is None or _is_enabled(part) == _is_enabled(old_part):
            continue
        if not _list_times(part) and not _list_times(old_part):
            continue
        new_state, old_state = (
            f'"{side.properties[JSR310_PROPERTY]}"' if JSR310_PROPERTY in side.properties else "absent"
            for side in (part, old_part)
        )
        effect = (
            "Java's consumers use the property of the version that wrote a message, so one class cannot read the times of both versions."
            if is_stored
            else f"The registry has version {old_version.number} already and keeps its properties: the new value has no effect on it."
        )
        yield from comparison.make_finding(
            "JSR310_CHANGED",
            topic,
            f"The property {JSR310_PROPERTY} of {topic.name} is {new_state}, and {old_state} in version {old_version.number}. {effect}",
            source=_locate_switch(comparison, topic, f"/schema{prefix}"),
            pointer=prefix,
            against=(old_version.number,),
        )


def _locate_switch(comparison: Comparison, topic: Topic, pointer: str) -> Source | None:
    """Return the place of the property: in the topic's schema, else in its namespace, else of the schema without it."""
    own_source = topic.locate(f"{pointer}/properties/{JSR310_PROPERTY}")
    namespace = comparison.declared.namespaces.get(topic.name.namespace_name)
    is_own = own_source not in (topic.locate(pointer), topic.locate(f"{pointer}/properties"))
    if is_own or namespace is None or JSR310_PROPERTY not in namespace.schema_properties:
        return own_source
    return namespace.locate(f"/schema_properties/{JSR310_PROPERTY}")


def _list_times(part: SchemaInfo) -> list[tuple[str, ValueType]]:
    """Return the times of a definition with their places, or an empty list if it does not parse, which is another finding."""
    with suppress(InvalidSchema):
        return [*find_times(parse_by_any(part.schema))]
    return []


def _is_enabled(part: SchemaInfo) -> bool:
    # As Boolean.parseBoolean.
    return part.properties.get(JSR310_PROPERTY, "").lower() == "true"


def _list_parts(schema: SchemaInfo, type_: SchemaType) -> list[tuple[str, SchemaInfo]]:
    """Return the schema, or the key and value of a pair, if it has the type; each with the JSON pointer of its definition."""
    return [(prefix, part) for prefix, part in get_parts(schema.load()).items() if part.type is type_]


def _list_java_clients(comparison: Comparison, topic: Topic) -> list[Client]:
    return [
        client for client in topic.clients if client.language.lower() == "java" and client.runs_on(*comparison.targets)
    ]


def _name_java_clients(comparison: Comparison, topic: Topic) -> str:
    return ", ".join(on_one_line(client.display_name) for client in _list_java_clients(comparison, topic))
