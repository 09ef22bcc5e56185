"""Accept the differences between a registry and the approved history, as the target's numbers file records them. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from schemactl.core.catalog import Catalog
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Target
from schemactl.declare.numbers_writer import record_versions
from schemactl.declare.target_numbers import AcceptanceReason, TargetNumbers, TopicNumbers, join_acceptances
from schemactl.deploy.broker_configuration import BrokerDifference
from schemactl.deploy.drift import DriftReport
from schemactl.deploy.drift_items import DriftItem
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.target_catalog import select_applicable
from schemactl.deploy.version_numbers import TopicMismatches, find_topic_mismatches


@dataclass(slots=True)
class AcceptedDrift:
    """The differences to record, and the differences that cannot be accepted.

    Attributes:
        old_numbers: the record so far.
        numbers: the new record.
        changed: the topics whose numbers are recorded again.
        left_out: topics with a version from a commit that the approved history does not have.
        accepted: other differences that are accepted from now on.
        brokers: settings of the brokers that are accepted from now on.
        removed: names whose acceptance is removed, because the registry does not match it any longer.
        repairable: differences that cannot be accepted, because they can be repaired.
        unnamed: namespaces of the target that have no declared name, so that no file can name them.
    """

    old_numbers: TargetNumbers
    numbers: TargetNumbers
    changed: list[TopicMismatches] = field(default_factory=list)
    left_out: list[TopicMismatches] = field(default_factory=list)
    accepted: list[DriftItem] = field(default_factory=list)
    brokers: list[BrokerDifference] = field(default_factory=list)
    removed: list[NamespaceName | TopicName] = field(default_factory=list)
    repairable: list[DriftItem] = field(default_factory=list)
    unnamed: set[NamespaceName] = field(default_factory=set)


def accept_differences(
    report: DriftReport,
    git: Catalog,
    old_numbers: TargetNumbers,
    target: Target,
    decision: AcceptanceReason,
    *,
    with_brokers: bool,
) -> AcceptedDrift:
    """Return the acceptance of all differences in a report that can be accepted.

    Args:
        report: the drift of the target, compared with `old_numbers`.
        git: the selected part of the approved history, by declared names.
        old_numbers: the record so far.
        target: the target.
        decision: the reason, with its owner and last day; without an owner, each topic's own counts.
        with_brokers: whether settings of the brokers are accepted as well.
    """
    # The version numbers that differ from Git's.
    topics: dict[TopicName, TopicNumbers] = dict(old_numbers.topics)
    acceptance = AcceptedDrift(old_numbers, old_numbers)
    for name, topic in sorted(select_applicable(git).topics.items()):
        entries = report.registered.versions(target.names.to_target(name))
        old_record = old_numbers.topics.get(name)
        # Other spellings of a version are recorded as well, since a generated package knows them only from this record.
        apart = find_topic_mismatches(topic, entries, old_record, twin_versions=git.twin_versions(name), spellings=True)
        if apart.recorded:
            continue
        if apart.unexplained:
            acceptance.left_out.append(replace(apart, name=name))
            continue
        reason = replace(decision, owner=decision.owner or git.metadata(name).owner)
        new_record = record_versions(topic.versions, entries, old_record, reason)
        topics.pop(name, None)
        if new_record:
            topics[name] = new_record
        acceptance.changed.append(replace(apart, name=name))

    # The other drift: each name with a new difference, with all its differences that can be accepted.
    accepted = dict(old_numbers.accepted)
    declared_names = {target.names.to_target(name): name for name in accepted}
    for unused_name in report.unused:
        del accepted[declared_names[unused_name]]
        acceptance.removed.append(declared_names[unused_name])
    # The version numbers are accepted already, or left out.
    kinds_of_numbers = (
        DriftKind.FOREIGN_VERSION,
        DriftKind.UNEXPLAINED_VERSION,
        DriftKind.TOMBSTONE,
        DriftKind.NUMBERS_APART,
    )
    items_by_name: dict[NamespaceName | TopicName, list[DriftItem]] = {}
    for item in report.items:
        if item.state:
            items_by_name.setdefault(item.name, []).append(item)
        elif item.accepted is None and not item.is_pending and item.kind not in kinds_of_numbers:
            acceptance.repairable.append(item)
    for holder, items in items_by_name.items():
        new_items = [item for item in items if item.accepted is None]
        declared_name: NamespaceName | TopicName | None = target.names.declared(holder)
        if declared_name is None:
            acceptance.unnamed.add(holder.namespace_name)
        elif new_items or declared_name in acceptance.removed:
            reason = replace(decision, owner=decision.owner or git.metadata(declared_name).owner)
            accepted[declared_name] = join_acceptances([item.state for item in items if item.state], reason)
            acceptance.accepted += new_items
    acceptance.numbers = replace(old_numbers, topics=topics, accepted=accepted)

    comparison = report.plan.brokers
    if with_brokers and comparison and not comparison.problem and (comparison.drift or comparison.unused):
        acceptance.brokers += comparison.drift
        acceptance.numbers = replace(acceptance.numbers, brokers=comparison.accept(decision))
    return acceptance
