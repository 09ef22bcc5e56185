"""Check one topic: its change, and both verdicts on its schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from shlex import quote

from schemactl.checks import clients, declarations, java_times, kinds, schemas, table_impact
from schemactl.checks.check_report import Change, TopicCheck
from schemactl.checks.proposal import (
    TOPIC_RULES,
    BrokerView,
    Comparison,
    KindKey,
    Proposal,
    find_older_number_in_force,
    get_declared_topic,
    is_same_schema,
)
from schemactl.comparison.fingerprint import compute_fingerprint
from schemactl.core.catalog import Topic
from schemactl.core.findings import DataState, Finding, Verdict
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_version_numbers
from schemactl.formats import identity
from schemactl.formats.native_definitions import list_native_parts


def check_topic(comparison: Comparison, name: TopicName) -> tuple[list[TopicCheck], list[Finding]]:
    """Check one topic, and return its results, one for each changed kind of events, with its findings.

    A topic with one schema has one result, or no result without a change.
    """
    declared_topic = get_declared_topic(comparison.declared, name)
    approved_topic = get_declared_topic(comparison.approved, name)
    if declared_topic is None:
        topic_check, findings = _report_removed_topic(comparison, approved_topic) if approved_topic else (None, [])
    elif declared_topic.kinds or (approved_topic and approved_topic.kinds):
        return _check_kinds(comparison, declared_topic, approved_topic)
    else:
        topic_check, findings = _check_declared(comparison, declared_topic, approved_topic)
    return [topic_check] if topic_check else [], findings


def _check_kinds(
    comparison: Comparison, declared_topic: Topic, approved_topic: Topic | None
) -> tuple[list[TopicCheck], list[Finding]]:
    """Check each kind of events of a topic as if the topic had only this kind, and the topic as a whole.

    Kinds are compared by `kinds_compatibility`. A broker compares an upload with the versions of all kinds by the strategy of the topic,
    including the versions that earlier kinds of this change add.
    """
    name = declared_topic.name
    findings = [*declarations.check_partitions(comparison, declared_topic, approved_topic)]
    topic_checks: list[TopicCheck] = []
    last_topic = comparison.find_approved(name)
    stored_versions = _append_tombstones(last_topic, declared_topic)
    if last_topic and not (approved_topic and declared_topic.generation > last_topic.generation):
        findings += declarations.check_tightened_topic(comparison, declared_topic, last_topic.load().versions)
    strategy, level = comparison.declared.strategy(name, comparison.project.defaults)
    if last_topic and declared_topic.schema:
        proposal = Proposal.create(declared_topic, declared_topic.schema, stored_versions, strategy, level)
        findings += _check_generation(comparison, proposal, last_topic)
    known_versions = kinds.predict_versions(declared_topic, last_topic, stored_versions)
    findings += clients.check_client_versions(comparison, declared_topic, known_versions)
    for kind_part in replace(declared_topic, versions=known_versions).split():
        part = replace(kind_part, versions=())
        kind_comparison = kinds.narrow_to_kind(comparison, part)
        broker = BrokerView(stored_versions, strategy, level)
        approved_part = get_declared_topic(kind_comparison.approved, name)
        topic_check, kind_findings = _check_declared(
            kind_comparison, kind_comparison.declared.topics[name], approved_part, broker
        )
        if part.schema and topic_check and topic_check.version == get_next_number(stored_versions):
            new_version = SchemaVersion(topic_check.version, part.schema, kind=part.kind)
            stored_versions = (*stored_versions, new_version)
        known_keys = {(finding.rule, finding.source) for finding in findings}
        topic_findings = [finding for finding in kind_findings if finding.rule in TOPIC_RULES]
        findings += [finding for finding in topic_findings if (finding.rule, finding.source) not in known_keys]
        findings += [finding for finding in kind_findings if finding.rule not in TOPIC_RULES]
        if topic_check and topic_check.change == "policies":
            topic_check = replace(topic_check, kind="")
            if topic_check in topic_checks:
                continue
        if topic_check:
            topic_checks.append(topic_check)
    if any(finding.rule == "STRATEGY_RELAXED" for finding in findings):
        findings = [finding for finding in findings if finding.rule != "PROTECTION_LOST"]
    if approved_topic:
        removed_checks, removed_findings = kinds.check_removed_kinds(comparison, declared_topic, approved_topic)
        topic_checks += removed_checks
        findings += removed_findings
    return topic_checks, findings


def _check_declared(
    comparison: Comparison, declared_topic: Topic, approved_topic: Topic | None, broker: BrokerView | None = None
) -> tuple[TopicCheck | None, list[Finding]]:
    """Check a declared topic with one schema, or one kind of events, which a `broker` compares with other kinds."""
    name = declared_topic.name
    (old_strategy, _), (strategy, level) = comparison.get_strategies(name)
    other_change = _classify_other_change(declared_topic, approved_topic, is_same_strategy=old_strategy is strategy)
    if (
        approved_topic
        and not other_change
        and _is_same_declaration(approved_topic, declared_topic)
        and _has_approved_proto(comparison, (name, declared_topic.kind), approved_topic.schema)
    ):
        return None, []
    topic_check = TopicCheck(
        name,
        # A topic that has only findings, such as one about its reader, is listed among the changed policies.
        other_change or "policies",
        strategy,
        level,
        strategy_before=old_strategy if approved_topic and old_strategy is not strategy else None,
        source=declared_topic.source,
        owner=comparison.declared.metadata(name).owner,
        kind=declared_topic.kind,
    )
    findings = (
        [] if declared_topic.kind else [*declarations.check_partitions(comparison, declared_topic, approved_topic)]
    )
    if declared_topic.schema is not None:
        last_topic = comparison.find_approved(name)
        is_new_generation = last_topic is not None and declared_topic.generation > last_topic.generation
        versions = _append_tombstones(last_topic, declared_topic, broker)
        proposal = Proposal.create(declared_topic, declared_topic.schema, versions, strategy, level, broker)
        proposal = replace(proposal, older_in_force=find_older_number_in_force(approved_topic))
        findings += declarations.check_pinned_reader(comparison, proposal)
        findings += declarations.check_draft_versions(comparison, proposal, approved_topic)
        # A generation ends the versions of all kinds, which is one finding of the topic.
        findings += _check_generation(comparison, proposal, last_topic) if last_topic and not broker else ()
        topic_check, schema_findings = _check_schema(
            comparison,
            topic_check,
            proposal,
            approved_topic.schema if approved_topic and not is_new_generation else None,
        )
        findings += schema_findings
        if topic_check.verdict is not None:
            findings += table_impact.check_equal_names(comparison, proposal)
        findings += clients.check_clients(
            comparison, proposal, approved_topic, is_changed=topic_check.verdict is not None
        )
        findings += java_times.check_java_times(comparison, proposal, approved_topic, topic_check.change)
        if approved_topic:
            topic_check = replace(topic_check, tables=table_impact.compare_tables(comparison, proposal, approved_topic))
            findings += table_impact.check_tables(comparison, proposal, topic_check.tables)
    elif approved_topic is None:
        topic_check = replace(topic_check, change="added")
    elif approved_topic.schema:
        topic_check = replace(topic_check, change="schema removed")
        findings += comparison.make_finding(
            "SCHEMA_REMOVED",
            declared_topic,
            f"{name} no longer declares a schema. The registry keeps the versions it has, and so does the approved history.",
            fingerprint=_make_end_fingerprint("SCHEMA_REMOVED", approved_topic),
        )
    if approved_topic and not any(finding.rule == "STRATEGY_RELAXED" for finding in findings):
        findings += declarations.check_protection(comparison, declared_topic, approved_topic)
    has_same_settings = (
        approved_topic and old_strategy is strategy and approved_topic.partitions == declared_topic.partitions
    )
    if topic_check.change in ("policies", "clients") and not findings and has_same_settings:
        # The report lists changed policies by themselves, and clients that no change affects not at all.
        return None, []
    return topic_check, findings


def _append_tombstones(
    approved_topic: Topic | None, declared_topic: Topic, broker: BrokerView | None = None
) -> tuple[SchemaVersion, ...]:
    """Return the approved versions, followed by a tombstone for each generation that `declared_topic` begins.

    For one kind of events, the `broker` has all versions, whose numbers count.
    """
    versions, generation = (approved_topic.versions, approved_topic.generation) if approved_topic else ((), 1)
    if broker:
        known_numbers = {version.number for version in versions}
        new_tombstones = [
            version for version in broker.versions if version.info is None and version.number not in known_numbers
        ]
        return (*versions, *new_tombstones)
    first_number = get_next_number(versions)
    tombstones = range(first_number, first_number + declared_topic.generation - generation)
    return (*versions, *(SchemaVersion(number, None) for number in tombstones))


def _classify_other_change(
    declared_topic: Topic, approved_topic: Topic | None, *, is_same_strategy: bool
) -> Change | None:
    """Return `policies` if strategy, policies or partitions changed, `clients` if only clients changed, else None."""
    if (
        approved_topic is None
        or not is_same_strategy
        or approved_topic.partitions != declared_topic.partitions
        or approved_topic.policies != declared_topic.policies
    ):
        return "policies"
    return None if approved_topic.clients == declared_topic.clients else "clients"


def _is_same_declaration(approved_topic: Topic, declared_topic: Topic) -> bool:
    """Return whether both declare the same schema in the same form, reader, generation and lifecycle."""
    return (
        is_same_schema(approved_topic.schema, declared_topic.schema)
        and approved_topic.reader == declared_topic.reader == "latest"
        and approved_topic.generation == declared_topic.generation
        and not (approved_topic.lifecycle == "draft" and declared_topic.lifecycle == "stable")
        and _list_native_texts(approved_topic.schema) == _list_native_texts(declared_topic.schema)
    )


def _list_native_texts(schema: SchemaInfo | None) -> list[bytes]:
    """Return the bytes of the PROTOBUF_NATIVE definitions in a schema, in the form that is registered."""
    return [part.schema for part in list_native_parts(schema)] if schema else []


def _has_approved_proto(comparison: Comparison, key: KindKey, approved_schema: SchemaInfo | None) -> bool:
    """Return whether the approved `.proto` of a topic or kind is unchanged, if the change replaces or removes it."""
    return key not in comparison.protos or is_same_schema(approved_schema, comparison.protos[key])


def _check_generation(comparison: Comparison, proposal: Proposal, approved_topic: Topic) -> Iterator[Finding]:
    """Yield a finding if the proposal begins a generation, or returns to an older one."""
    topic, approved_generation = proposal.topic, approved_topic.generation
    ended_versions = get_live_versions(approved_topic.versions)
    if topic.generation < approved_generation:
        yield from comparison.make_finding(
            "GENERATION_LOWERED",
            topic,
            f"{topic.name} declares generation {topic.generation}, and the approved generation is "
            f"{approved_generation}: a registry cannot restore deleted versions.",
            source=topic.locate("/generation"),
            fix=f"Write `generation: {approved_generation}`.",
        )
    elif topic.generation > approved_generation and ended_versions and topic.name.is_scalable:
        yield from comparison.make_finding(
            "NEW_GENERATION",
            topic,
            f"{topic.name} begins generation {topic.generation}, and `apply` cannot begin one for a scalable topic: "
            "the number of messages in its segments is unknown.",
            source=topic.locate("/generation"),
            fix=f"Write `generation: {approved_generation}`, or declare a new topic with `renamed_from`.",
        )
    elif topic.generation > approved_generation and ended_versions:
        yield from comparison.make_finding(
            "NEW_GENERATION",
            topic,
            f"{topic.name} begins generation {topic.generation}: `apply` deletes "
            f"{format_version_numbers([version.number for version in ended_versions])} from the "
            "registry, and later versions are not compared with them. A broker then cannot return a schema for these "
            "numbers, so consumers fail on messages written with them. `apply` therefore does it only if the topic "
            "retains no messages, including offloaded and compacted messages.",
            source=topic.locate("/generation"),
            # All versions end, and targets may have different numbers of them, so the fingerprint does not name versions.
            fingerprint=compute_fingerprint(
                "NEW_GENERATION", topic.name, new=proposal.schema, against=[], pointer=f"/generation/{topic.generation}"
            ),
        )


def _check_schema(
    comparison: Comparison, topic_check: TopicCheck, proposal: Proposal, approved_schema: SchemaInfo | None
) -> tuple[TopicCheck, Iterable[Finding]]:
    """Compare the declared schema with the approved one; complete the result of the topic, and return it with the findings."""
    key = (topic_check.topic, topic_check.kind)
    if is_same_schema(approved_schema, proposal.schema) and _has_approved_proto(comparison, key, approved_schema):
        return topic_check, declarations.check_tightened_strategy(comparison, proposal)
    change: Change
    if approved_schema is not None and identity(approved_schema) == identity(proposal.schema):
        change = "not stored"
    elif proposal.is_known:
        change = "older version"
    else:
        change = "new version" if proposal.versions else "added"
    verdict = _judge(comparison, proposal, change, approved_schema)
    renamed = None if change == "not stored" else schemas.make_renamed_proposal(comparison, proposal)
    renamed_verdict = renamed.judge(comparison.project) if renamed else None
    findings = [*_check_change(comparison, proposal, verdict, change)]
    if change != "not stored":
        findings += schemas.check_renamed_topic(comparison, proposal.topic, renamed, renamed_verdict)
    if key in comparison.protos:
        # Readers still have the approved `.proto`, so it judges as well.
        approved_proposal = replace(proposal, schema=comparison.protos[key])
        other_verdict = _judge(comparison, approved_proposal, change, approved_schema)
        known_keys = {(finding.rule, finding.pointer, finding.direction) for finding in findings}
        findings += [
            finding
            for finding in schemas.check_readers(comparison, approved_proposal, other_verdict)
            if (finding.rule, finding.pointer, finding.direction) not in known_keys
        ]
        if other_verdict.breakages:
            verdict = replace(
                verdict,
                state=other_verdict.state if other_verdict.data else verdict.state,
                data=tuple(dict.fromkeys((*verdict.data, *other_verdict.data))),
                misread=tuple(dict.fromkeys((*verdict.misread, *other_verdict.misread))),
                approved=tuple(breakage for breakage in verdict.approved if breakage in other_verdict.approved),
            )
    if verdict.state is DataState.NOT_JUDGED and comparison.is_enabled(schemas.UNPROTECTED, topic_check.topic):
        other_verdict = _judge(
            comparison, replace(proposal, strategy=CompatibilityStrategy.FULL), change, approved_schema
        )
        findings += schemas.check_unprotected_readers(comparison, proposal, other_verdict)
        verdict = _replace_data(verdict, other_verdict)
    if renamed_verdict and not proposal.versions and verdict.state is not DataState.UNPARSABLE:
        # Brokers know only the new topic, and readers also the messages of the old one.
        verdict = _replace_data(verdict, renamed_verdict)
    old_topic = (
        None if proposal.versions else comparison.approved.topics.get(proposal.topic.renamed_from or topic_check.topic)
    )
    topic_check = replace(
        topic_check,
        change=change,
        version=proposal.number,
        latest=proposal.latest,
        verdict=verdict,
        schema=proposal.schema,
        before=approved_schema,
        versions=old_topic.versions if old_topic else proposal.versions,
        clients=clients.list_client_impacts(proposal, comparison.find_approved(topic_check.topic)),
    )
    return topic_check, findings


def _replace_data(verdict: Verdict, other: Verdict) -> Verdict:
    """Return `verdict` with the data verdict of `other`."""
    return replace(verdict, state=other.state, data=other.data, misread=other.misread, approved=other.approved)


def _judge(comparison: Comparison, proposal: Proposal, change: Change, approved_schema: SchemaInfo | None) -> Verdict:
    verdict = proposal.judge(comparison.project)
    if approved_schema and change == "not stored":
        return schemas.remove_known_breakages(verdict, proposal, approved_schema)
    return verdict


def _check_change(comparison: Comparison, proposal: Proposal, verdict: Verdict, change: Change) -> Iterator[Finding]:
    yield from schemas.check_readers(comparison, proposal, verdict)
    yield from clients.check_broken_clients(comparison, proposal, verdict)
    yield from clients.check_client_defaults(comparison, proposal)
    yield from schemas.check_buf_rules(comparison, proposal, verdict)
    if change == "not stored":
        if not verdict.breakages:
            yield from schemas.check_ignored_edit(comparison, proposal)
        yield from declarations.check_tightened_strategy(comparison, proposal)
        return
    if change == "older version":
        yield from schemas.check_reverted_content(comparison, proposal)
    else:
        yield from schemas.check_unusable_defaults(comparison, proposal, verdict)
        yield from schemas.check_unapplied_defaults(comparison, proposal)
        yield from schemas.check_type_namespaces(comparison, proposal, verdict)
        yield from schemas.check_record_name(comparison, proposal, verdict)
        yield from schemas.check_own_release(comparison, proposal, verdict)
        yield from schemas.check_other_releases(comparison, proposal, verdict)
    if comparison.find_approved(proposal.topic.name):
        strategy, _ = comparison.get_strategies(proposal.topic.name).before
        yield from declarations.check_relaxed_strategy(comparison, proposal, verdict, strategy)


def _report_removed_topic(comparison: Comparison, approved_topic: Topic) -> tuple[TopicCheck, list[Finding]]:
    name = approved_topic.name
    (strategy, level), _ = comparison.get_strategies(name)
    latest = approved_topic.versions[-1].number if approved_topic.versions else None
    topic_check = TopicCheck(name, "removed", strategy, level, latest=latest, source=approved_topic.source)
    if any(topic.renamed_from == name for topic in comparison.declared.topics.values()):
        return topic_check, []
    client_names = ", ".join(
        f"the {client.role} {on_one_line(client.display_name)}" for client in approved_topic.clients
    )
    findings = comparison.make_finding(
        "DELETED_TOPIC",
        approved_topic,
        f"{name} is no longer declared. Its version numbers stay taken, and registries keep its schemas until "
        f"`apply --allow-delete {quote(str(name))}` deletes them."
        + (f"\nIts declared clients: {client_names}." if client_names else ""),
        before_change=True,
        fingerprint=_make_end_fingerprint("DELETED_TOPIC", approved_topic),
    )
    return topic_check, [*findings]


def _make_end_fingerprint(rule: str, approved_topic: Topic) -> str:
    """Return the fingerprint of a finding about a schema that is no longer declared."""
    return compute_fingerprint(
        rule, approved_topic.name, new=None, against=[approved_topic.schema] if approved_topic.schema else []
    )
