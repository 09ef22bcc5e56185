"""Check declarations outside of their schemas: policies, partitions, names, namespaces, renames and deprecation."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any, Final

from schemactl.broker.upload import VersionList
from schemactl.checks.check_report import PolicyChange
from schemactl.checks.proposal import STRICT_POLICIES, Comparison, Proposal, get_declared_topic, is_rejected
from schemactl.core.catalog import Catalog, Deprecated, Namespace, Topic
from schemactl.core.errors import InvalidSchema, Problem, did_you_mean
from schemactl.core.findings import Finding, Outcome, Verdict
from schemactl.core.invisible_characters import (
    describe_characters,
    find_invisible_characters,
    remove_invisible_characters,
)
from schemactl.core.names import NamespaceName, TopicName, is_system_topic
from schemactl.core.policies import (
    SETTINGS,
    CompatibilityStrategy,
    Level,
    Policies,
    get_setting_address,
    list_guarantees,
)
from schemactl.core.schema import SchemaVersion
from schemactl.core.wording import (
    describe_policy_origin,
    format_count,
    format_partitions,
    format_policy_value,
    format_version_numbers,
)
from schemactl.formats.part_changes import outline

_PROTECTION_TEXTS: Final = {
    "new_reads_old": "new readers of old messages",
    "old_reads_new": "old readers of new messages",
    "all versions": "readers and messages of versions before the latest",
    "nothing may follow": "the schema from every change",
}

_MIN_SIMILARITY: Final = 0.6
"""Minimum similarity of two definitions for one to count as the successor of the other."""

_Outline = frozenset[tuple[str, str]]
"""The names of a definition's parts with their types."""


# Policies


def find_policy_changes(comparison: Comparison, names: Iterable[TopicName]) -> Iterator[PolicyChange]:
    """Yield the changed policies of every namespace, and of the topics `names` that were approved before."""
    for namespace in sorted({*comparison.approved.namespaces, *comparison.declared.namespaces}):
        yield from _compare_policies(
            comparison,
            namespace,
            comparison.approved.namespaces.get(namespace),
            comparison.declared.namespaces.get(namespace),
        )
    for name in names:
        if approved_topic := get_declared_topic(comparison.approved, name):
            yield from _compare_policies(
                comparison, name, approved_topic, get_declared_topic(comparison.declared, name)
            )


def _compare_policies(
    comparison: Comparison,
    name: NamespaceName | TopicName,
    before: Namespace | Topic | None,
    after: Namespace | Topic | None,
) -> Iterator[PolicyChange]:
    for policy in Policies.names():
        old_value, new_value = (entry.policies.get(policy) if entry else None for entry in (before, after))
        if old_value != new_value:
            yield PolicyChange(
                name,
                policy,
                old_value,
                new_value,
                _find_inherited_value(comparison, name, policy) if new_value is None else None,
            )
    old_value, new_value = (getattr(entry, "partitions", None) for entry in (before, after))
    if old_value != new_value and after:
        yield PolicyChange(name, "partitions", old_value, new_value)


def _find_inherited_value(
    comparison: Comparison, name: NamespaceName | TopicName, policy: str
) -> tuple[Any, Level] | None:
    """Return the value to which `apply` resets a policy, and the level that sets it, or None if no file sets it."""
    if policy in SETTINGS:
        namespace = comparison.declared.namespaces.get(name.namespace_name) if isinstance(name, TopicName) else None
        inherited = namespace.policies.get(policy) if namespace else None
        return None if inherited is None else (inherited, "namespace")
    if isinstance(name, TopicName):
        return comparison.declared.strategy(name, comparison.project.defaults)
    return getattr(comparison.project.defaults, policy), "default"


def check_protection(comparison: Comparison, topic: Topic, before: Topic | None) -> Iterator[Finding]:
    """Yield findings about relaxed policies of a topic that protected readers or messages, or rejected unchecked schemas."""
    if before is None:
        return
    (old_strategy, _), (new_strategy, level) = comparison.get_strategies(topic.name)
    if lost_protections := list_guarantees(old_strategy) - list_guarantees(new_strategy):
        yield from comparison.make_finding(
            "PROTECTION_LOST",
            topic,
            f"{topic.name} becomes {new_strategy} ({describe_policy_origin(level)}), was {old_strategy}. No longer protected:  "
            f"{', '.join(text for protection, text in _PROTECTION_TEXTS.items() if protection in lost_protections)}.",
            source=comparison.locate_strategy(topic),
        )
    yield from _check_schema_policies(comparison, topic, before)
    yield from _check_data_loss(comparison, topic, before)


def check_namespace_protection(comparison: Comparison) -> Iterator[Finding]:
    """Yield findings about relaxed policies of namespaces, including namespaces that are no longer declared."""
    for name, approved_namespace in sorted(comparison.approved.namespaces.items(), key=lambda item: str(item[0])):
        declared_namespace = comparison.declared.namespaces.get(name)
        yield from _check_schema_policies(comparison, declared_namespace, approved_namespace)
        yield from _check_data_loss(comparison, declared_namespace, approved_namespace)


def _check_schema_policies(
    comparison: Comparison, declared_entry: Topic | Namespace | None, approved_entry: Topic | Namespace
) -> Iterator[Finding]:
    """Yield findings about approved policies that rejected unchecked schemas and no longer do."""
    name = approved_entry.name
    for policy, strict in STRICT_POLICIES.items():
        value = getattr(declared_entry.policies, policy) if declared_entry else None
        old_value = getattr(approved_entry.policies, policy)
        if value == old_value:
            continue
        default = getattr(comparison.project.defaults, policy)
        in_force = _get_policy(comparison.declared, name, policy, default)
        if isinstance(approved_entry, Topic):
            old_value = _get_policy(comparison.approved, name, policy, default)
        if old_value is strict and in_force is not strict:
            change = f"{'reset to ' if value is None else ''}{str(in_force).lower()}"
            yield from comparison.make_finding(
                "PROTECTION_LOST",
                approved_entry if isinstance(approved_entry, Topic) else None,
                f"{policy} of {name} is {change}, was {str(strict).lower()}: clients add schemas without a check.",
                source=declared_entry.locate(f"/{policy}") if declared_entry else approved_entry.source,
                before_change=declared_entry is None,
            )


def _check_data_loss(
    comparison: Comparison, declared_entry: Topic | Namespace | None, approved_entry: Topic | Namespace
) -> Iterator[Finding]:
    """Yield findings about changed settings that can lose messages; undeclared settings have Pulsar's default."""
    for setting, description in SETTINGS.items():
        old_value, new_value = (
            _get_policy(catalog, approved_entry.name, setting, description.default)
            for catalog in (comparison.approved, comparison.declared)
        )
        is_declared = any(entry and setting in entry.policies.settings for entry in (declared_entry, approved_entry))
        if is_declared and new_value != old_value and (loss := description.loss(old_value, new_value)):
            yield from comparison.make_finding(
                "DATA_LOSS",
                approved_entry if isinstance(approved_entry, Topic) else None,
                f"{setting} of {approved_entry.name} becomes {format_policy_value(new_value)}, was {format_policy_value(old_value)}: {loss}.",
                fix=f"`apply` asks for --allow-data-loss {get_setting_address(approved_entry.name, setting)}",
                source=declared_entry.locate(f"/{setting}") if declared_entry else approved_entry.source,
                before_change=declared_entry is None,
            )


def _get_policy(catalog: Catalog, name: NamespaceName | TopicName, policy: str, default: Any) -> Any:
    """Return the declared policy of a namespace or topic, which a topic inherits from its namespace, or the default."""
    topic = get_declared_topic(catalog, name) if isinstance(name, TopicName) else None
    entries = (topic, catalog.namespaces.get(name.namespace_name))
    values = (entry.policies.get(policy) for entry in entries if entry)
    return next((value for value in values if value is not None), default)


def check_relaxed_strategy(
    comparison: Comparison, proposal: Proposal, verdict: Verdict, old_strategy: CompatibilityStrategy
) -> Iterator[Finding]:
    """Yield a finding if the strategy changes together with a schema that `old_strategy` would reject."""
    name = proposal.topic.name
    if old_strategy == proposal.strategy or is_rejected(verdict):
        return
    if is_rejected(replace(proposal, strategy=old_strategy).judge(comparison.project)):
        yield from comparison.make_finding(
            "STRATEGY_RELAXED",
            proposal.topic,
            f"{name} goes from {old_strategy} to {proposal.strategy} together with a schema that {old_strategy} rejects.",
            source=comparison.locate_strategy(proposal.topic),
        )


def check_tightened_strategy(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    """Yield a finding if approved versions do not satisfy a new strategy."""
    name = proposal.topic.name
    (old_strategy, _), _ = comparison.get_strategies(name)
    if old_strategy == proposal.strategy:
        return
    failing = _find_failing_versions(comparison, proposal)
    if failing:
        yield from comparison.make_finding(
            "STRATEGY_TIGHTENED",
            proposal.topic,
            f"{name} becomes {proposal.strategy} ({describe_policy_origin(proposal.level)}), was {old_strategy}. "
            "Approved versions do not satisfy "
            f"it: {format_version_numbers(failing)}.",
            source=comparison.locate_strategy(proposal.topic),
            against=tuple(failing),
        )


def check_tightened_topic(comparison: Comparison, topic: Topic, versions: Sequence[SchemaVersion]) -> Iterator[Finding]:
    """Yield a finding if brokers would reject approved versions of a topic with kinds under its new strategy.

    Data is not judged by this strategy.
    """
    (old_strategy, _), (strategy, level) = comparison.get_strategies(topic.name)
    if old_strategy == strategy:
        return
    release = comparison.project.release
    stored = VersionList((), release, checker_changes=comparison.project.defaults.checkers)
    rejected: list[int] = []
    for version in versions:
        if version.info and stored.put(version.info, strategy).outcome not in (Outcome.OK, Outcome.UNCHANGED):
            rejected.append(version.number)
        stored.append(version)
    if rejected:
        yield from comparison.make_finding(
            "STRATEGY_TIGHTENED",
            topic,
            f"{topic.name} becomes {strategy} ({describe_policy_origin(level)}), was {old_strategy}. Brokers compare "
            "the kinds of a topic with each "
            f"other, and would reject what was approved: {format_version_numbers(rejected)}.",
            source=comparison.locate_strategy(topic),
            against=tuple(rejected),
        )


def check_draft_versions(comparison: Comparison, proposal: Proposal, approved_topic: Topic | None) -> Iterator[Finding]:
    """Yield a finding if a topic is no longer a draft, and versions of the draft break its strategy."""
    name = proposal.topic.name
    if approved_topic is None or (approved_topic.lifecycle, proposal.topic.lifecycle) != ("draft", "stable"):
        return
    failing = _find_failing_versions(comparison, proposal)
    if failing:
        yield from comparison.make_finding(
            "DRAFT_VERSIONS_BREAK",
            proposal.topic,
            f"{name} is no longer a draft, and is {proposal.strategy} ({describe_policy_origin(proposal.level)}). "
            f"Versions that were approved while it was a draft and violate this strategy: {format_version_numbers(failing)}.",
            source=proposal.topic.locate("/lifecycle"),
            against=tuple(failing),
        )


def _find_failing_versions(comparison: Comparison, proposal: Proposal) -> list[int]:
    """Return the numbers of the approved versions that the strategy would have rejected after their predecessors."""
    return [
        version.number
        for position, version in enumerate(proposal.versions)
        if version.info
        and is_rejected(
            replace(proposal, schema=version.info, versions=proposal.versions[:position], older_in_force=None).judge(
                comparison.project
            )
        )
    ]


# Partitions, readers and names


def check_partitions(comparison: Comparison, declared_topic: Topic, approved_topic: Topic | None) -> Iterator[Finding]:
    """Yield a finding if partitions are removed, or a topic becomes partitioned or unpartitioned."""
    if approved_topic is None or approved_topic.partitions == declared_topic.partitions:
        return
    if (
        approved_topic.partitions is None
        or declared_topic.partitions is None
        or declared_topic.partitions < approved_topic.partitions
    ):
        yield from comparison.make_finding(
            "PARTITIONS_SHRUNK",
            declared_topic,
            f"{declared_topic.name} goes from {format_partitions(approved_topic.partitions)} to "
            f"{format_partitions(declared_topic.partitions)}; Pulsar can only add partitions to "
            "a partitioned topic.",
            source=declared_topic.locate("/partitions"),
        )


def check_pinned_reader(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    """Yield a finding if `reader` names a version that the topic does not have."""
    pinned_version = proposal.topic.reader
    numbers = {version.number for version in proposal.versions} | {proposal.number}
    if pinned_version != "latest" and pinned_version not in numbers:
        yield from comparison.make_finding(
            "READER_VERSION_UNKNOWN",
            proposal.topic,
            f"{proposal.topic.name} pins its generated readers to version {pinned_version}; it has {format_version_numbers(sorted(numbers))}.",
            source=proposal.topic.locate("/reader"),
        )


def check_names(proposed_catalog: Catalog, approved_catalog: Catalog) -> Iterator[Problem]:
    """Yield the topics that belong to the brokers, and the new topics whose names a reviewer cannot distinguish from another name.

    The latter are names with invisible characters, and names that Unicode's canonical composition (NFC) makes equal. Approved topics keep
    such names, so that the history stays readable.
    """
    topics = sorted(proposed_catalog.topics.values(), key=lambda topic: str(topic.name))
    approved_ids = {name.schema_id for name in approved_catalog.topics}
    first_by_composed_name: dict[str, Topic] = {}
    # Approved topics come first, so that of two names that look the same the new one is reported.
    for topic in sorted(topics, key=lambda topic: topic.name.schema_id not in approved_ids):
        name = topic.name
        composed = unicodedata.normalize("NFC", name.schema_id)
        other = first_by_composed_name.setdefault(composed, topic)
        if topic.source is None:
            continue
        if is_system_topic(name):
            yield Problem(
                topic.source,
                f"{name} is a system topic of Pulsar: brokers register its schema and omit it from lists of topics",
                "remove this declaration, or give the topic another name",
            )
            continue
        if name.schema_id in approved_ids:
            continue
        if characters := find_invisible_characters(name.topic):
            text = remove_invisible_characters(name.topic)
            fix = f"write {replace(name, topic=text)}" if text else "write a name with visible characters"
            yield Problem(topic.source, f"{str(name)!a} contains {describe_characters(characters)}", fix)
        if other is not topic:
            yield Problem(
                topic.source,
                f"{str(name)!a} and {str(other.name)!a} ({other.source}) are equal after Unicode normalization (NFC)",
                "keep one of the two, or give one another name",
            )


# Namespaces


def check_undeclared_namespaces(comparison: Comparison, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each undeclared namespace, on one of its topics.

    Unless the project requires declared namespaces, only new namespaces count, in which no topic was ever approved.

    Args:
        comparison: the comparison.
        names: the topics to check, in this order.
    """
    known_namespaces = {*comparison.declared.namespaces}
    if not comparison.project.require_declared_namespaces:
        known_namespaces |= {name.namespace_name for name in comparison.approved.topics}
    topics_by_namespace: dict[NamespaceName, list[Topic]] = {}
    for name in names:
        topic = comparison.declared.topics.get(name)
        if topic and topic.source and name.namespace_name not in known_namespaces:
            topics_by_namespace.setdefault(name.namespace_name, []).append(topic)
    for namespace, topics in topics_by_namespace.items():
        first_topic = next((topic for topic in topics if not comparison.is_draft(topic)), topics[0])
        subject = f"{first_topic.name} is" if len(topics) == 1 else f"{format_count(len(topics), 'topic')} are"
        folder = posixpath.dirname(first_topic.source.path) if first_topic.source else ""
        yield from comparison.make_finding(
            "NAMESPACE_UNDECLARED",
            first_topic,
            f"{subject} in the namespace {namespace}, which no file declares{_suggest_namespace(namespace, known_namespaces)}",
            fix=f"Correct the name; or declare the namespace: `namespace: {namespace}`, for example in "
            f"{posixpath.join(folder, f'{namespace.name}-namespace.yaml')}",
            severity="error" if comparison.project.require_declared_namespaces else None,
        )


def _suggest_namespace(namespace: NamespaceName, known_namespaces: Collection[NamespaceName]) -> str:
    """Return `; did you mean X?` with a similar namespace of the same tenant, or of a tenant with a similar name."""
    names_of_tenant = {
        known_namespace.name: str(known_namespace)
        for known_namespace in known_namespaces
        if known_namespace.tenant == namespace.tenant
    }
    if names_of_tenant:
        return did_you_mean(namespace.name, names_of_tenant, shown=names_of_tenant)
    tenants = {known_namespace.tenant: f"the tenant {known_namespace.tenant}" for known_namespace in known_namespaces}
    tenants |= {
        known_namespace.tenant: str(known_namespace)
        for known_namespace in known_namespaces
        if known_namespace.name == namespace.name
    }
    return did_you_mean(namespace.tenant, tenants, shown=tenants)


def check_open_namespaces(comparison: Comparison, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each new namespace in which a producer can register its own schema as the next version.

    Opening an approved namespace is PROTECTION_LOST.
    """
    checked_names = {*comparison.approved.namespaces, *(name.namespace_name for name in comparison.approved.topics)}
    for name in names:
        topic, namespace = comparison.declared.topics.get(name), comparison.declared.namespaces.get(name.namespace_name)
        if namespace is None or namespace.name in checked_names:
            continue
        if topic is None or topic.schema is None or comparison.is_draft(topic):
            continue
        checked_names.add(namespace.name)
        allows_updates, enforces_validation = (
            _get_policy(comparison.declared, namespace.name, policy, getattr(comparison.project.defaults, policy))
            for policy in ("is_allow_auto_update_schema", "schema_validation_enforced")
        )
        if allows_updates and not enforces_validation:
            yield from comparison.make_finding(
                "NAMESPACE_OPEN",
                topic,
                f"Any producer that connects to a topic of {namespace.name} with its own schema registers that schema "
                "under the next version number, and Git then has no version for this number.",
                fix=f"Set `is_allow_auto_update_schema: false` for {namespace.name}: `apply` still registers versions. "
                "`schema_validation_enforced: true` also keeps out clients without a schema",
                source=namespace.locate("/is_allow_auto_update_schema"),
            )


# Undeclared renames


def check_undeclared_renames(comparison: Comparison, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each new topic among the changed topics `names` that seems to be the successor of a removed topic.

    It is an error if the schema breaks the old topic's strategy, because topics without `renamed_from` are not compared.
    """
    declared_ids = {name.schema_id for name in comparison.declared.topics}
    # An approved topic is read when it is accessed, so filter by name first.
    removed_names = [name for name in comparison.approved.topics if name.schema_id not in declared_ids]
    last_declared = {name for name in removed_names if not comparison.approved.topics[name].deleted}
    if not last_declared:
        return
    old_names = {topic.renamed_from for topic in comparison.declared.topics.values()}
    removed = _group_by_record(comparison.approved.topics[name] for name in last_declared - old_names)
    if not removed:
        return
    added = _group_by_record(
        topic
        for name in names
        if (topic := comparison.declared.topics.get(name))
        and topic.renamed_from not in last_declared
        and not get_declared_topic(comparison.approved, name)
    )
    for key, topics in added.items():
        candidates = removed.get(key, [])
        for topic, parts in topics:
            best_match = max(candidates, key=lambda candidate: _compute_similarity(parts, candidate[1]), default=None)
            if best_match is None or _compute_similarity(parts, best_match[1]) < _MIN_SIMILARITY:
                continue
            candidates.remove(best_match)
            old_topic = best_match[0].load()
            strategy, level = comparison.approved.strategy(old_topic.name, comparison.project.defaults)
            if topic.schema is None or not old_topic.versions:
                continue
            proposal = Proposal.create(topic, topic.schema.load(), old_topic.versions, strategy, level)
            is_breaking = old_topic.lifecycle == "stable" and is_rejected(proposal.judge(comparison.project))
            latest_number = old_topic.versions[-1].number
            # The finding is about the old topic, because its readers are affected even if the new topic is a draft.
            yield from comparison.make_finding(
                "RENAME_UNDECLARED",
                old_topic,
                f"{topic.name} is new, and {old_topic.name} ({old_topic.source} before the change), which had nearly the same definition, is removed."
                + (f" The new definition breaks readers that {strategy} protects there." if is_breaking else ""),
                fix=f"If it is the same topic, add `renamed_from: {old_topic.name}`, and its versions are compared as well; "
                "else remove the old topic in a separate change",
                source=topic.source,
                severity="error" if is_breaking else None,
                against=(latest_number,),
                fingerprint=proposal.make_fingerprint("RENAME_UNDECLARED", "", against=(latest_number,)),
            )


def _group_by_record(topics: Iterable[Topic]) -> dict[str, list[tuple[Topic, _Outline]]]:
    """Group topics with outlines by the name of their first record; topics without a record are left out."""
    topics_by_record: dict[str, list[tuple[Topic, _Outline]]] = {}
    for topic in sorted(topics, key=lambda topic: topic.name):
        parts: dict[str, str] = {}
        if topic.schema:
            with suppress(InvalidSchema):
                parts = outline(topic.schema.load())
        record = next((name.rpartition(".")[0] for name in parts if "." in name), None)
        if topic.schema and record:
            topics_by_record.setdefault(record, []).append((topic, frozenset(parts.items())))
    return topics_by_record


def _compute_similarity(left: _Outline, right: _Outline) -> float:
    return 2 * len(left & right) / (len(left) + len(right))


# Deprecation


def check_deprecations(comparison: Comparison, selected: frozenset[TopicName] | None, today: date) -> Iterator[Finding]:
    """Yield findings about overdue removals and undeclared replacements.

    A deprecated namespace gets one finding, on the first of its topics.

    Args:
        comparison: the comparison.
        selected: the topics to check, or None for all topics.
        today: the day in UTC.
    """
    checked_namespaces: set[Namespace] = set()
    for name in sorted(name for name in comparison.declared.topics if selected is None or name in selected):
        topic, namespace = comparison.declared.topics[name], comparison.declared.namespaces.get(name.namespace_name)
        if topic.metadata.deprecated:
            client_names = ", ".join(client.name for client in topic.clients)
            clients = f" Declared clients: {client_names}." if client_names else ""
            yield from _check_deprecation(comparison, topic, topic, topic.metadata.deprecated, today, clients)
        elif namespace and namespace.metadata.deprecated and namespace not in checked_namespaces:
            checked_namespaces.add(namespace)
            count = sum(topic_name.namespace_name == namespace.name for topic_name in comparison.declared.topics)
            topic_count = f" It has {format_count(count, 'topic')}."
            yield from _check_deprecation(
                comparison, topic, namespace, namespace.metadata.deprecated, today, topic_count
            )


def _check_deprecation(
    comparison: Comparison, topic: Topic, entry: Topic | Namespace, deprecation: Deprecated, today: date, details: str
) -> Iterator[Finding]:
    if deprecation.remove_after and deprecation.remove_after < today:
        suggestion = f" Use {deprecation.use} instead." if deprecation.use else ""
        yield from comparison.make_finding(
            "REMOVAL_OVERDUE",
            topic,
            f"{entry.name} is deprecated and was to be removed after {deprecation.remove_after}.{suggestion}{details}",
            source=entry.locate("/deprecated/remove_after"),
        )
    if deprecation.use and deprecation.use not in comparison.declared.topics:
        declared_names = [str(name) for name in comparison.declared.topics if name != entry.name]
        yield from comparison.make_finding(
            "REPLACEMENT_UNDECLARED",
            topic,
            f"{deprecation.use}, which is to be used instead of {entry.name}, is not declared"
            f"{did_you_mean(str(deprecation.use), declared_names)}",
            source=entry.locate("/deprecated/use"),
        )
