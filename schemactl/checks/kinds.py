"""Check the kinds of events of a topic: each is compared with its own versions, as if it were alone in the topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schemactl.checks.check_report import TopicCheck
from schemactl.checks.proposal import Comparison, StrategyChange
from schemactl.comparison.fingerprint import compute_fingerprint
from schemactl.core.catalog import Catalog, Kind, KindName, LazyMapping, Topic
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaVersion, get_live_versions, get_next_number
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_version_numbers
from schemactl.formats import assign_kinds, get_record_name, identity


def join_kind_names(approved_topic: Topic, declared_topic: Topic) -> tuple[KindName, ...]:
    """Return the kinds that were ever approved, followed by the declared ones, which decide."""
    declared_names = declared_topic.kind_names
    return (*(name for name in approved_topic.kind_names if name not in declared_names), *declared_names)


def narrow_to_kind(comparison: Comparison, part: Topic) -> Comparison:
    """Return the comparison of one kind with its own versions.

    Args:
        comparison: the comparison of the whole topic.
        part: the declared topic with this kind alone (see `Topic.split`); or a topic with one schema that had kinds before, which is
            compared with the versions of the kind that has its record.
    """
    name = part.name
    whole = comparison.declared.topics[name]
    approved_topics = {}
    for approved_name in {name, *name.same_names_elsewhere, part.renamed_from} - {None}:
        approved_topic = comparison.approved.topics.get(approved_name) if approved_name else None
        if approved_name and approved_topic:
            named_topic = replace(approved_topic, kind_names=join_kind_names(approved_topic, whole))
            record = get_record_name(part.schema) if part.schema else ""
            approved_key = part.kind or named_topic.find_kind_key(record)
            approved_topics[approved_name] = (
                _select_approved(named_topic, approved_key, record) if approved_key else approved_topic
            )
            has_versions = any(version.info for version in approved_topics[approved_name].versions)
            if approved_name == part.renamed_from and not has_versions:
                # The old topic had no messages of this kind.
                part = replace(part, renamed_from=None)
    approved_topic = comparison.find_approved(name)
    defaults = comparison.project.defaults
    before = comparison.approved.data_strategy(approved_topic.name, defaults) if approved_topic else None
    after = comparison.declared.data_strategy(name, defaults)
    return replace(
        comparison,
        declared=_with_topics(comparison.declared, {name: part}),
        approved=_with_topics(comparison.approved, approved_topics),
        strategies={name: StrategyChange(before or after, after)},
    )


def find_approved_kind(approved_topic: Topic, part: Topic) -> Kind | None:
    """Return the approved kind with the key of a declared kind, else with its record, or None if the topic had one schema before."""
    return _find_kind(approved_topic, part.kind, get_record_name(part.schema) if part.schema else "")


def _find_kind(topic: Topic, key: str, record: str) -> Kind | None:
    return topic.get_kind(key) or next((kind for kind in topic.kinds if kind.record == record), None)


def predict_versions(
    declared_topic: Topic, approved_topic: Topic | None, versions: Sequence[SchemaVersion]
) -> tuple[SchemaVersion, ...]:
    """Return the versions of a topic with their kinds, followed by the versions that its declared kinds add, in the order of their keys."""
    names = join_kind_names(approved_topic or declared_topic, declared_topic)
    known_versions = list(assign_kinds(versions, replace(declared_topic, kind_names=names)))
    contents = {identity(version.info) for version in get_live_versions(known_versions) if version.info}
    for kind in declared_topic.kinds:
        if identity(kind.schema.load()) not in contents:
            known_versions.append(SchemaVersion(get_next_number(known_versions), kind.schema, kind=kind.key))
    return tuple(known_versions)


def _select_approved(topic: Topic, key: str, record: str) -> Topic:
    """Return an approved topic with the versions, the definition and the clients of one kind alone.

    The definition belongs to the kind with this key, else to the kind or the former `schema` with this record.
    """
    versions = assign_kinds(topic.versions, topic)
    kind = _find_kind(topic, key, record)
    schema = kind.schema if kind else None
    if not topic.kinds and topic.schema and topic.find_kind_key(get_record_name(topic.schema)) == key:
        schema = topic.schema
    old_key = kind.key if kind else key
    return replace(
        topic,
        schema=schema,
        versions=tuple(version for version in versions if version.info is None or version.kind == key),
        reader=kind.reader if kind else topic.reader,
        clients=tuple(client for client in topic.clients if client.has_kind(old_key, versions) or client.kind == key),
        kinds=(),
        kind=key,
    )


def _with_topics(catalog: Catalog, topics: dict[TopicName, Topic]) -> Catalog:
    """Return the catalog with `topics` in place of its topics of the same names; all others are still read on use."""
    return replace(
        catalog,
        topics=LazyMapping(lambda: [*catalog.topics], lambda name: topics.get(name) or catalog.topics.get(name)),
    )


def check_removed_kinds(
    comparison: Comparison, declared_topic: Topic, approved_topic: Topic
) -> tuple[list[TopicCheck], list[Finding]]:
    """Return a result and a finding for each approved kind that is no longer declared, neither by its key nor by its record."""
    declared_keys = {kind.key for kind in declared_topic.kinds}
    records = {get_record_name(part.schema) for part in declared_topic.split() if part.schema}
    strategy, level = comparison.declared.data_strategy(declared_topic.name, comparison.project.defaults)
    topic_checks: list[TopicCheck] = []
    findings: list[Finding] = []
    for kind in approved_topic.kinds:
        if kind.key in declared_keys or kind.record in records:
            continue
        part = approved_topic.make_part(kind)
        numbers = [version.number for version in part.versions if version.info]
        clients = ", ".join(f"the {client.role} {on_one_line(client.display_name)}" for client in part.clients)
        client_note = f". Its declared clients: {clients}" if clients else ""
        stay, them = ("stays", "it") if len(numbers) == 1 else ("stay", "them")
        topic_checks.append(
            TopicCheck(
                declared_topic.name,
                "removed",
                strategy,
                level,
                latest=numbers[-1] if numbers else None,
                source=declared_topic.source,
                owner=comparison.declared.metadata(declared_topic.name).owner,
                kind=kind.key,
            )
        )
        findings += comparison.make_finding(
            "KIND_REMOVED",
            replace(declared_topic, kind=kind.key),
            f"{declared_topic.name} no longer declares this kind of events. {format_version_numbers(numbers).capitalize()} "
            f"{stay} registered, and generated packages can still read {them}{client_note}.",
            source=declared_topic.locate("/schemas") if declared_topic.kinds else declared_topic.source,
            fingerprint=compute_fingerprint("KIND_REMOVED", declared_topic.name, new=None, against=[kind.schema]),
        )
    return topic_checks, findings
