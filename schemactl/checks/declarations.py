"""Find problems in a declaration outside of its schema: policies, partitions, namespaces, renames and deprecation."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any, Final

from schemactl.checks.check_report import PolicyChange
from schemactl.checks.proposal import STRICT_POLICIES, Proposal, Run, declared, is_rejected
from schemactl.checks.proposal import declared as declared_in
from schemactl.core.catalog import Catalog, Deprecated, Namespace, Topic
from schemactl.core.errors import InvalidSchema, Problem, did_you_mean
from schemactl.core.findings import Finding, Verdict
from schemactl.core.names import (
    NamespaceName,
    TopicName,
    describe_characters,
    find_invisible_characters,
    without_invisible_characters,
)
from schemactl.core.policies import SETTINGS, CompatibilityStrategy, Level, Policies, address, protects
from schemactl.core.schema import SchemaInfo
from schemactl.core.wording import counted, policy_origin, policy_word
from schemactl.core.wording import partitions as partitions_said
from schemactl.core.wording import versions as versions_said
from schemactl.formats.type_spec import outline


def changes(run: Run, names: Iterable[TopicName]) -> Iterator[PolicyChange]:
    """Yield the changed policies of every namespace, and of the topics `names` that were approved before."""
    for space in sorted({*run.approved.namespaces, *run.target.namespaces}):
        yield from _changes(run, space, run.approved.namespaces.get(space), run.target.namespaces.get(space))
    for name in names:
        if before := declared_in(run.approved, name):
            yield from _changes(run, name, before, declared_in(run.target, name))


def _changes(
    run: Run, name: NamespaceName | TopicName, before: Namespace | Topic | None, after: Namespace | Topic | None
) -> Iterator[PolicyChange]:
    for policy in Policies.names():
        was, will = (each.policies.get(policy) if each else None for each in (before, after))
        if was != will:
            yield PolicyChange(name, policy, was, will, _inherited(run, name, policy) if will is None else None)
    was, will = (getattr(each, "partitions", None) for each in (before, after))
    if was != will and after:
        yield PolicyChange(name, "partitions", was, will)


def _inherited(run: Run, name: NamespaceName | TopicName, policy: str) -> tuple[Any, Level] | None:
    """Return the value to which `apply` resets a policy, and the level that sets it; None: no file tells."""
    if policy in SETTINGS:
        space = run.target.namespaces.get(name.namespace_name) if isinstance(name, TopicName) else None
        above = space.policies.get(policy) if space else None
        return None if above is None else (above, "namespace")
    if isinstance(name, TopicName):
        return run.target.strategy(name, run.project.defaults)
    return getattr(run.project.defaults, policy), "default"


def relaxed(run: Run, proposal: Proposal, verdict: Verdict, old: CompatibilityStrategy) -> Iterator[Finding]:
    """Yield the finding that a strategy, which was `old`, changes together with a schema that the old one would reject."""
    name = proposal.topic.name
    if old == proposal.strategy or is_rejected(verdict):
        return
    if is_rejected(replace(proposal, strategy=old).verdict(run.project)):
        yield from run.find(
            "STRATEGY_RELAXED",
            proposal.topic,
            f"{name} goes from {old} to {proposal.strategy} together with a schema that {old} rejects.",
            source=run.strategy_place(proposal.topic),
        )


def tightened(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield the finding that approved versions do not satisfy a new strategy."""
    name = proposal.topic.name
    (old, _), _ = run.strategies(name)
    if old == proposal.strategy:
        return
    failing = _failing(run, proposal)
    if failing:
        yield from run.find(
            "STRATEGY_TIGHTENED",
            proposal.topic,
            f"{name} becomes {proposal.strategy} ({policy_origin(proposal.level)}), was {old}. What was approved does not satisfy "
            f"it: {versions_said(failing)}.",
            source=run.strategy_place(proposal.topic),
            against=tuple(failing),
        )


def protection_lost(run: Run, topic: Topic, before: Topic | None) -> Iterator[Finding]:
    """Yield relaxed policies that protected readers, or kept unchecked schemas out."""
    if before is None:
        return
    (old, _), (new, level) = run.strategies(topic.name)
    if lost := protects(old) - protects(new):
        yield from run.find(
            "PROTECTION_LOST",
            topic,
            f"{topic.name} becomes {new} ({policy_origin(level)}), was {old}. Not protected any more: "
            f"{', '.join(text for each, text in _PROTECTED.items() if each in lost)}.",
            source=run.strategy_place(topic),
        )
    yield from _let_in(run, topic, before)
    yield from _lost(run, topic, before)


def namespaces(run: Run) -> Iterator[Finding]:
    """Yield the same for namespaces, also those that are no longer declared."""
    for name, before in sorted(run.approved.namespaces.items(), key=lambda item: str(item[0])):
        now = run.target.namespaces.get(name)
        yield from _let_in(run, now, before)
        yield from _lost(run, now, before)


def _let_in(run: Run, now: Topic | Namespace | None, before: Topic | Namespace) -> Iterator[Finding]:
    """Yield the policies that kept unchecked schemas out in `before` and no longer do."""
    for policy, strict in STRICT_POLICIES.items():
        value = getattr(now.policies, policy) if now else None
        in_force = getattr(run.project.defaults, policy) if value is None else value
        if getattr(before.policies, policy) is strict and in_force is not strict:
            is_now = f"{'reset to ' if value is None else ''}{str(in_force).lower()}"
            yield from run.find(
                "PROTECTION_LOST",
                before if isinstance(before, Topic) else None,
                f"{policy} of {before.name} is {is_now}, was {str(strict).lower()}: clients bring schemas that nobody has checked.",
                source=now.locate(f"/{policy}") if now else before.source,
                before_change=now is None,
            )


def _lost(run: Run, now: Topic | Namespace | None, before: Topic | Namespace) -> Iterator[Finding]:
    """Yield changed settings by which messages can be lost; a setting in no file has Pulsar's default."""
    for setting, row in SETTINGS.items():
        was = _setting(run.approved, before.name, setting)
        will = _setting(run.target, before.name, setting)
        declared = any(each and setting in each.policies.settings for each in (now, before))
        if declared and will != was and (how := row.loss(was, will)):
            yield from run.find(
                "DATA_LOSS",
                before if isinstance(before, Topic) else None,
                f"{setting} of {before.name} becomes {policy_word(will)}, was {policy_word(was)}: {how}.",
                fix=f"`apply` asks for --allow-data-loss {address(before.name, setting)}",
                source=now.locate(f"/{setting}") if now else before.source,
                before_change=now is None,
            )


def _setting(catalog: Catalog, name: NamespaceName | TopicName, setting: str) -> Any:
    """Return the value of a setting for a namespace or topic: from the files, else Pulsar's default."""
    own = declared_in(catalog, name) if isinstance(name, TopicName) else None
    holders = (own, catalog.namespaces.get(name.namespace_name))
    found = (each.policies.settings.get(setting) for each in holders if each)
    return next((value for value in found if value is not None), SETTINGS[setting].default)


_PROTECTED: Final = {
    "new_reads_old": "new readers of old messages",
    "old_reads_new": "old readers of new messages",
    "all versions": "readers and messages of versions before the latest",
    "nothing may follow": "the schema from every change",
}


def left_draft(run: Run, proposal: Proposal, before: Topic | None) -> Iterator[Finding]:
    """Yield the finding that a topic is no longer a draft, and versions from that time break its strategy."""
    name = proposal.topic.name
    if before is None or (before.lifecycle, proposal.topic.lifecycle) != ("draft", "stable"):
        return
    failing = _failing(run, proposal)
    if failing:
        yield from run.find(
            "DRAFT_VERSIONS_BREAK",
            proposal.topic,
            f"{name} is no draft any more, and is {proposal.strategy} ({policy_origin(proposal.level)}). Approved while it was one, and "
            f"not satisfying that: {versions_said(failing)}.",
            source=proposal.topic.locate("/lifecycle"),
            against=tuple(failing),
        )


def _failing(run: Run, proposal: Proposal) -> list[int]:
    """Return the approved versions that the proposal's strategy would have rejected after those before them."""
    return [
        version.number
        for position, version in enumerate(proposal.versions)
        if version.info
        and is_rejected(
            replace(proposal, schema=version.info, versions=proposal.versions[:position], in_force=None).verdict(
                run.project
            )
        )
    ]


def partitions(run: Run, declared: Topic, before: Topic | None) -> Iterator[Finding]:
    """Yield the finding that partitions are removed, or a topic becomes partitioned or not partitioned."""
    if before is None or before.partitions == declared.partitions:
        return
    if before.partitions is None or declared.partitions is None or declared.partitions < before.partitions:
        yield from run.find(
            "PARTITIONS_SHRUNK",
            declared,
            f"{declared.name} goes from {partitions_said(before.partitions)} to {partitions_said(declared.partitions)}; Pulsar can only add partitions to "
            "a partitioned topic.",
            source=declared.locate("/partitions"),
        )


def reader(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield the finding that `reader` names a version that the topic does not have."""
    pinned = proposal.topic.reader
    numbers = {version.number for version in proposal.versions} | {proposal.number}
    if pinned != "latest" and pinned not in numbers:
        yield from run.find(
            "READER_VERSION_UNKNOWN",
            proposal.topic,
            f"{proposal.topic.name} pins its generated readers to version {pinned}; it has {versions_said(sorted(numbers))}.",
            source=proposal.topic.locate("/reader"),
        )


# Names


def name_problems(declared: Catalog, approved: Catalog) -> Iterator[Problem]:
    """Yield the new topics whose names a reviewer cannot tell from other names.

    These are names with invisible characters, and names that Unicode's canonical composition (NFC) makes equal. Approved topics keep
    their names, so that the history stays readable.
    """
    topics = sorted(declared.topics.values(), key=lambda topic: str(topic.name))
    approved_ids = {name.schema_id for name in approved.topics}
    first_by_composed_name: dict[str, Topic] = {}
    # Approved topics come first, so that of two names that look the same the new one is reported.
    for topic in sorted(topics, key=lambda topic: topic.name.schema_id not in approved_ids):
        name = topic.name
        composed = unicodedata.normalize("NFC", name.schema_id)
        other = first_by_composed_name.setdefault(composed, topic)
        if name.schema_id in approved_ids or topic.source is None:
            continue
        if characters := find_invisible_characters(name.topic):
            text = without_invisible_characters(name.topic)
            fix = f"write {replace(name, topic=text)}" if text else "write a name with visible characters"
            yield Problem(topic.source, f"{str(name)!a} contains {describe_characters(characters)}", fix)
        if other is not topic:
            yield Problem(
                topic.source,
                f"{str(name)!a} and {str(other.name)!a} ({other.source}) are equal after Unicode normalization (NFC)",
                "keep one of the two, or give one another name",
            )


# Namespaces


def undeclared_namespaces(run: Run, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each namespace that no file declares, on one of its topics.

    Args:
        run: whose project says whether namespaces must be declared. If they need not be, only those are found in
            which no topic was ever approved: the ones that the change brings.
        names: look at these topics alone, in this order.
    """
    known = {*run.target.namespaces}
    if not run.project.require_declared_namespaces:
        known |= {name.namespace_name for name in run.approved.topics}
    lost: dict[NamespaceName, list[Topic]] = {}
    for name in names:
        topic = run.target.topics.get(name)
        if topic and topic.source and name.namespace_name not in known:
            lost.setdefault(name.namespace_name, []).append(topic)
    for space, topics in lost.items():
        first = next((topic for topic in topics if not run.is_draft(topic)), topics[0])
        concerned = f"{first.name} is" if len(topics) == 1 else f"{counted(len(topics), 'topic')} are"
        beside = posixpath.dirname(first.source.path) if first.source else ""
        yield from run.find(
            "NAMESPACE_UNDECLARED",
            first,
            f"{concerned} in the namespace {space}, which no file declares{_meant(space, known)}",
            fix=f"Correct the name; or declare the namespace: `namespace: {space}`, for example in "
            f"{posixpath.join(beside, f'{space.name}-namespace.yaml')}",
            severity="error" if run.project.require_declared_namespaces else None,
        )


def open_to_producers(run: Run, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield the namespaces that the change brings and where any producer with a schema of its own takes the next number.

    Where a change opens one that was there, that is PROTECTION_LOST.
    """
    seen = {*run.approved.namespaces, *(name.namespace_name for name in run.approved.topics)}
    for name in names:
        topic, space = run.target.topics.get(name), run.target.namespaces.get(name.namespace_name)
        if space is None or space.name in seen:
            continue
        if topic is None or topic.schema is None or run.is_draft(topic):
            continue
        seen.add(space.name)
        if _effective(run, space, "is_allow_auto_update_schema") and not _effective(
            run, space, "schema_validation_enforced"
        ):
            yield from run.find(
                "NAMESPACE_OPEN",
                topic,
                f"Any producer that connects to a topic of {space.name} with a schema of its own registers it, and takes the next version "
                "number, which Git then does not know.",
                fix=f"Set `is_allow_auto_update_schema: false` for {space.name}: `apply` registers versions all the same. "
                "`schema_validation_enforced: true` keeps out clients without a schema, too",
                source=space.locate("/is_allow_auto_update_schema"),
            )


def _effective(run: Run, space: Namespace, policy: str) -> bool:
    """Return the policy of a namespace, or the brokers' default where it does not say."""
    declared = getattr(space.policies, policy)
    return bool(getattr(run.project.defaults, policy) if declared is None else declared)


def _meant(space: NamespaceName, known: Collection[NamespaceName]) -> str:
    """Return `; did you mean X?`: a namespace of the same tenant, else of a tenant with nearly the same name."""
    beside = {each.name: str(each) for each in known if each.tenant == space.tenant}
    if beside:
        return did_you_mean(space.name, beside, shown=beside)
    tenants = {each.tenant: f"the tenant {each.tenant}" for each in known}
    tenants |= {each.tenant: str(each) for each in known if each.name == space.name}
    return did_you_mean(space.tenant, tenants, shown=tenants)


# Undeclared renames


_ALIKE: Final = 0.6
"""So much of two definitions is the same at least if one is the other's successor."""

Parts = frozenset[tuple[str, str]]


def undeclared_topics(run: Run, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each new topic among `names` that seems to be one that the change removes.

    It is an error where the schema breaks what the former name's strategy protects: without `renamed_from` the two are not compared.
    """
    kept = {name.schema_id for name in run.target.topics}
    # An approved topic is read when it is looked at, so by name first.
    lost = [name for name in run.approved.topics if name.schema_id not in kept]
    gone = {name for name in lost if not run.approved.topics[name].deleted}
    renamed = {topic.renamed_from for topic in run.target.topics.values()}
    removed = _by_record(run.approved.topics[name] for name in gone - renamed)
    if not removed:
        return
    added = _by_record(
        topic
        for name in names
        if (topic := run.target.topics.get(name))
        and topic.renamed_from not in gone
        and not declared(run.approved, name)
    )
    for key, topics in added.items():
        candidates = removed.get(key, [])
        for topic, parts in topics:
            found = max(candidates, key=lambda each: _alike(parts, each[1]), default=None)
            if found and _alike(parts, found[1]) >= _ALIKE:
                candidates.remove(found)
                yield from _renamed(run, topic, found[0])


def _by_record(topics: Iterable[Topic]) -> dict[str, list[tuple[Topic, Parts]]]:
    """Return topics, with the parts of their definitions, by the name of their first record; those without one are left out."""
    found: dict[str, list[tuple[Topic, Parts]]] = {}
    for topic in sorted(topics, key=lambda topic: topic.name):
        parts = _parts(topic.schema) if topic.schema else {}
        record = next((name.rpartition(".")[0] for name in parts if "." in name), None)
        if topic.schema and record:
            found.setdefault(record, []).append((topic, frozenset(parts.items())))
    return found


def _parts(schema: SchemaInfo) -> dict[str, str]:
    try:
        return outline(schema.load())
    except InvalidSchema:
        return {}


def _alike(one: Parts, other: Parts) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _renamed(run: Run, topic: Topic, former: Topic) -> Iterator[Finding]:
    former = former.load()
    strategy, level = run.approved.strategy(former.name, run.project.defaults)
    if topic.schema is None or not former.versions:
        return
    proposal = Proposal.of(topic, topic.schema.load(), former.versions, strategy, level)
    breaks = former.lifecycle == "stable" and is_rejected(proposal.verdict(run.project))
    latest = former.versions[-1].number
    # On the former topic: its readers are concerned, also where the new one is a draft.
    yield from run.find(
        "RENAME_UNDECLARED",
        former,
        f"{topic.name} is new, and {former.name} ({former.source} before the change) is gone, which had nearly the same definition."
        + (f" The new one breaks what {strategy} protects there." if breaks else ""),
        fix=f"If it is the same topic, add `renamed_from: {former.name}`, and its versions are compared, too; else remove the old one "
        "in a change of its own",
        source=topic.source,
        severity="error" if breaks else None,
        against=(latest,),
        fingerprint=proposal.fingerprint("RENAME_UNDECLARED", "", against=(latest,)),
    )


# Deprecation


def deprecations(run: Run, only: frozenset[TopicName] | None, today: date) -> Iterator[Finding]:
    """Yield topics that were to be removed before today, the day in UTC, and replacements that no file declares.

    Look at `only` these topics (None: all). A deprecated namespace is one finding, at the first of its topics.
    """
    said: set[Namespace] = set()
    for name in sorted(name for name in run.target.topics if only is None or name in only):
        topic, space = run.target.topics[name], run.target.namespaces.get(name.namespace_name)
        if topic.metadata.deprecated:
            names = ", ".join(client.name for client in topic.clients)
            clients = f" Declared clients: {names}." if names else ""
            yield from _deprecated(run, topic, topic, topic.metadata.deprecated, today, clients)
        elif space and space.metadata.deprecated and space not in said:
            said.add(space)
            count = sum(each.namespace_name == space.name for each in run.target.topics)
            text = f" It has {counted(count, 'topic')}."
            yield from _deprecated(run, topic, space, space.metadata.deprecated, today, text)


def _deprecated(
    run: Run, topic: Topic, holder: Topic | Namespace, said: Deprecated, today: date, more: str
) -> Iterator[Finding]:
    if said.remove_after and said.remove_after < today:
        use = f" Use {said.use} instead." if said.use else ""
        yield from run.find(
            "REMOVAL_OVERDUE",
            topic,
            f"{holder.name} is deprecated and was to be removed after {said.remove_after}.{use}{more}",
            source=holder.locate("/deprecated/remove_after"),
        )
    if said.use and said.use not in run.target.topics:
        others = [str(name) for name in run.target.topics if name != holder.name]
        yield from run.find(
            "REPLACEMENT_UNDECLARED",
            topic,
            f"{said.use}, which is to be used instead of {holder.name}, is declared by no file"
            f"{did_you_mean(str(said.use), others)}",
            source=holder.locate("/deprecated/use"),
        )
