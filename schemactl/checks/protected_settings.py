"""Find changes of the settings that judge a change: project file, targets and overlays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from schemactl.checks.check_report import CheckReport
from schemactl.checks.proposal import STRICT_POLICIES, Run, is_same_schema
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import Source, first_of
from schemactl.core.findings import Finding
from schemactl.core.names import NamespaceName, TopicName, select
from schemactl.core.policies import CompatibilityStrategy, Policies, protects, strategy_of
from schemactl.core.project import Project, Target
from schemactl.core.rules import Rule

_WEIGHT: Final = {"off": 0, "note": 1, "warning": 2, "error": 3}


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that judges, changed.

    Attributes:
        key: its place in the project file.
        what: what becomes of it, as one sentence without its full stop.
        loses: it judges less than before.
        topics: the approved ones that this concerns.
        source: its place, where that is in another file.
        targets: those that it is about; (): it is about all, or one that is there no more.
    """

    key: tuple[str, ...]
    what: str
    loses: bool
    topics: tuple[TopicName, ...]
    source: Source | None = None
    targets: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What becomes of it, and for which topics."""
        return f"{self.what} (for {first_of(self.topics, 3)})" if self.topics else self.what


def setting_changes(approved: Project, proposed: Project, run: Run) -> Iterator[SettingChange]:
    """Yield what a change does to the settings that judge, for the topics that `run` knows."""
    if approved == proposed:
        return
    topics = tuple(sorted(name for name, topic in run.approved.topics.items() if not topic.deleted))
    yield from _severities(approved, proposed, run.rules, topics)
    yield from _roots(approved, proposed, run)
    yield from _defaults(approved, proposed, run, topics)
    yield from _protobuf(approved, proposed, topics)
    for key, what in (("approved", "versions"), ("waivers", "waivers")):
        was, will = (getattr(project, key) or "the default branch" for project in (approved, proposed))
        if was != will:
            said = f"{what} are read from {will}, not from {was}"
            yield SettingChange((key,), said, loses=True, topics=topics)
    if proposed.pulsar != approved.pulsar:
        older = proposed.release < approved.release
        yield SettingChange(
            ("pulsar",),
            f"answers are predicted for Pulsar {proposed.pulsar}, not {approved.pulsar}",
            loses=older,
            topics=topics,
        )
    if proposed.require_declared_namespaces != approved.require_declared_namespaces:
        required = proposed.require_declared_namespaces
        lost = {name for name in run.target.topics if name.namespace_name not in run.target.namespaces}
        yield SettingChange(
            ("require_declared_namespaces",),
            f"a namespace {'has to' if required else 'need not'} be declared",
            loses=not required,
            topics=tuple(sorted(lost)) if required else topics,
        )
    if approved.generate and not proposed.generate:
        yield SettingChange(
            ("generate",), "what becomes of tables is not looked at any more", loses=True, topics=topics
        )


def _severities(
    approved: Project, proposed: Project, rules: Mapping[str, Rule], topics: tuple[TopicName, ...]
) -> Iterator[SettingChange]:
    spaces = {*approved.namespace_severities, *proposed.namespace_severities}
    for space in (None, *sorted(spaces, key=str)):
        named = {*_own(approved, space), *_own(proposed, space)}
        concerned = tuple(name for name in topics if space in (None, name.namespace_name))
        if not concerned:
            continue
        key = ("severities",) if space is None else ("severities", str(space))
        for rule in sorted(each for each in named & rules.keys() if rules[each].verdict != "lint"):
            before = _severity(approved, space, rules[rule])
            after = _severity(proposed, space, rules[rule])
            if before != after:
                where = f" in {space}" if space else ""
                yield SettingChange(
                    (*key, rule),
                    f"{rule} is {after}{where}, was {before}",
                    loses=_WEIGHT[after] < _WEIGHT[before],
                    topics=concerned,
                )


def _own(project: Project, space: NamespaceName | None) -> Mapping[str, str]:
    return project.severities if space is None else project.namespace_severities.get(space, {})


def _severity(project: Project, space: NamespaceName | None, rule: Rule) -> str:
    return _own(project, space).get(rule.id) or project.severities.get(rule.id, rule.severity)


def _roots(approved: Project, proposed: Project, run: Run) -> Iterator[SettingChange]:
    for root in approved.roots:
        if any(is_below(root, each) for each in proposed.roots):
            continue
        lost = tuple(
            sorted(
                name
                for name, topic in run.target.topics.items()
                if topic.source
                and is_below(topic.source.path, root)
                and not any(is_below(topic.source.path, each) for each in proposed.roots)
            )
        )
        if lost:
            yield SettingChange(
                ("roots",),
                f"`{root or '.'}` is no root any more, and what is declared there counts as removed",
                loses=True,
                topics=lost,
            )


def is_below(path: str, folder: str) -> bool:
    """Return whether `path` is `folder`, or in it."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _defaults(approved: Project, proposed: Project, run: Run, topics: tuple[TopicName, ...]) -> Iterator[SettingChange]:
    before, after = approved.defaults, proposed.defaults
    old, new = before.schema_compatibility_strategy, after.schema_compatibility_strategy
    if old is not new:
        concerned = tuple(name for name in topics if run.approved.strategy(name, before)[1] == "default")
        yield SettingChange(
            ("defaults", "schema_compatibility_strategy"),
            f"the default strategy is {new}, was {old}",
            loses=bool(concerned) and not protects(old) <= protects(new),
            topics=concerned,
        )
    for name, strict in STRICT_POLICIES.items():
        was, will = getattr(before, name), getattr(after, name)
        if was != will:
            yield SettingChange(
                ("defaults", name),
                f"the default of {name} is {str(will).lower()}, was {str(was).lower()}",
                loses=was is strict,
                topics=topics,
            )


def _protobuf(approved: Project, proposed: Project, topics: tuple[TopicName, ...]) -> Iterator[SettingChange]:
    order = (None, "WIRE", "WIRE_JSON")
    if approved.proto_rules != proposed.proto_rules:
        yield SettingChange(
            ("protobuf", "rules"),
            f"buf's category is {proposed.proto_rules or 'none'}, was {approved.proto_rules or 'none'}",
            loses=order.index(proposed.proto_rules) < order.index(approved.proto_rules),
            topics=topics,
        )
    before, after = {*approved.defaults.checkers}, {*proposed.defaults.checkers}
    if before != after:
        yield SettingChange(
            ("protobuf", "checkers"),
            f"the brokers' optional checkers are {', '.join(sorted(after)) or 'none'}, were {', '.join(sorted(before)) or 'none'}",
            loses=not before <= after,
            topics=topics,
        )


# Targets and overlays


ChangedOverlays = Mapping[str, tuple[Catalog, Catalog]]
"""By target that is judged for, what differs there as it was approved, and as the change has it."""


def target_changes(proposed: Project, overlays: ChangedOverlays, run: Run) -> Iterator[SettingChange]:
    """Yield what a change does to the approved targets of `run`, for the topics that it knows."""
    approved = run.project
    if approved.targets == proposed.targets and all(before == after for before, after in overlays.values()):
        # Mostly so; and which topics are declared is read from Git.
        return
    topics = tuple(sorted(name for name, topic in run.approved.topics.items() if not topic.deleted))
    judged = {_judges(target, proposed) for target in proposed.targets.values()}
    for name, before in approved.targets.items():
        after = proposed.targets.get(name)
        if after is None:
            yield SettingChange(
                ("targets",),
                f"{name} is no target any more, and nothing is judged for it",
                loses=_judges(before, approved) not in judged,
                topics=_of(before, topics),
            )
            continue
        if name in overlays:
            changes = [*_settings(before, after, approved, proposed, topics)]
            changes += _policies(name, *overlays[name], run, _of(after, topics))
            yield from (replace(each, targets=(name,)) for each in changes)


def _judges(target: Target, project: Project) -> tuple[object, ...]:
    """Return what a target is judged by; two with the same are judged alike."""
    release = target.release or project.release
    return release, target.overlays, target.include, target.exclude, target.numbers


def _of(target: Target, topics: tuple[TopicName, ...]) -> tuple[TopicName, ...]:
    """Return those of `topics` that `target` has."""
    chosen = select(topics, target.globs)
    return tuple(name for name in topics if name in chosen)


def _settings(
    before: Target, after: Target, approved: Project, proposed: Project, topics: tuple[TopicName, ...]
) -> Iterator[SettingChange]:
    key = ("targets", after.name)
    was, will = (target.release or project.release for target, project in ((before, approved), (after, proposed)))
    if was != will and (before.release or after.release):
        what = f"answers of {after.name} are predicted for Pulsar {will}, not {was}"
        yield SettingChange((*key, "pulsar"), what, loses=will < was, topics=_of(after, topics))
    if lost := tuple(sorted({*_of(before, topics)} - {*_of(after, topics)})):
        at = "exclude" if before.exclude != after.exclude else "include"
        yield SettingChange((*key, at), f"{after.name} has fewer topics", loses=True, topics=lost)
    moved = tuple(name for name in _of(after, topics) if _there(before, name) not in (None, _there(after, name)))
    if moved:
        at = "namespaces" if before.namespaces != after.namespaces else "tenants"
        what = f"{after.name} has other names, and what it holds by the names so far is looked at no more"
        yield SettingChange((*key, at), what, loses=True, topics=moved)
    if before.promoted and before.promoted != after.promoted:
        what = f"{after.name} is at {after.promoted or 'the tip of what is approved'}, not at {before.promoted}"
        yield SettingChange((*key, "promoted"), what, loses=True, topics=_of(after, topics))
    if gone := [other for other in before.after if other not in after.after]:
        what = f"{after.name} waits no more for {', '.join(gone)}"
        yield SettingChange((*key, "after"), what, loses=True, topics=_of(after, topics))


def _there(target: Target, name: TopicName) -> TopicName | None:
    names = target.names
    return names.there(name) if names.has(name.namespace_name) else None


def _policies(
    target: str, before: Catalog, after: Catalog, run: Run, topics: tuple[TopicName, ...]
) -> Iterator[SettingChange]:
    """Yield what becomes of the approved topics and namespaces by what differs on a target alone."""
    spaces = [
        name for name in {*before.namespaces, *after.namespaces} if _differ(before.namespaces, after.namespaces, name)
    ]
    changed = {name for name in {*before.topics, *after.topics} if _differ(before.topics, after.topics, name)}
    weaker: dict[tuple[Source | None, str], list[TopicName]] = {}
    for name in topics:
        if name in changed or name.namespace_name in spaces:
            was, will = (_strategy(name, overlays, run) for overlays in (before, after))
            if not protects(was) <= protects(will):
                holder = after.topics.get(name) or after.namespaces.get(name.namespace_name)
                place = holder.locate("/schema_compatibility_strategy") if holder else None
                weaker.setdefault((place, f"{target} is {will}, was {was}"), []).append(name)
    for (place, what), names in weaker.items():
        yield SettingChange(("targets", target, "overlays"), what, loses=True, topics=tuple(names), source=place)
    for space in sorted(spaces):
        for policy, strict in STRICT_POLICIES.items():
            held, left = (_flag(space, policy, overlays, run) for overlays in (before, after))
            if held is strict and left is not strict:
                now = after.namespaces.get(space)
                what = f"{policy} of {space} on {target} is {str(left).lower()}, was {str(held).lower()}"
                source = now.locate(f"/{policy}") if now else None
                concerned = tuple(name for name in topics if name.namespace_name == space)
                key = ("targets", target, "overlays")
                yield SettingChange(key, what, loses=True, topics=concerned, source=source)


def _differ(before: Mapping[Any, Topic | Namespace], after: Mapping[Any, Topic | Namespace], name: object) -> bool:
    one, other = before.get(name), after.get(name)
    return (one.policies if one else Policies()) != (other.policies if other else Policies())


def _strategy(name: TopicName, overlays: Catalog, run: Run) -> CompatibilityStrategy:
    """Return the strategy of an approved topic with these overlays."""
    declared = (run.approved.topics.get(name), run.approved.namespaces.get(name.namespace_name))
    laid = (overlays.topics.get(name), overlays.namespaces.get(name.namespace_name))
    levels = [
        (below.policies if below else Policies()).overlaid(above.policies if above else Policies())
        for below, above in zip(declared, laid, strict=True)
    ]
    return strategy_of(*levels) or run.project.defaults.schema_compatibility_strategy


def _flag(space: NamespaceName, policy: str, overlays: Catalog, run: Run) -> bool:
    """Return a policy of an approved namespace with these overlays."""
    for holder in (overlays.namespaces.get(space), run.approved.namespaces.get(space)):
        value = getattr(holder.policies, policy) if holder else None
        if value is not None:
            return bool(value)
    return bool(getattr(run.project.defaults, policy))


# The settings that judge a change are those that were approved; a change that weakens them is a
# finding of its own.


_SETTINGS: Final = "What was approved judges this change; from its merge on, that no longer holds."
_TARGETS: Final = "A change is judged for the targets as it leaves them: this one for less than was approved."

Locate = Callable[[tuple[str, ...]], Source]
"""Returns the place of a key in the project file; of a removed one, that of the nearest key that is left."""


def judging(proposed: Project, approved: Project | None) -> Project:
    """Return the project by which a change is judged.

    Args:
        proposed: as the change has it: paths are its own.
        approved: as it was approved: the settings that judge are taken from here. Declarations are read under the roots of
            both, so that none goes missing. None: nothing was approved, and the change speaks for itself.
    """
    if approved is None:
        return proposed
    roots = {*proposed.roots, *approved.roots}
    return replace(
        proposed,
        roots=tuple(sorted(root for root in roots if not any(is_below(root, each) for each in roots - {root}))),
        previous_roots=tuple(
            sorted({*proposed.previous_roots, *approved.previous_roots, *approved.roots} - {*proposed.roots})
        ),
        approved=approved.approved,
        pulsar=approved.pulsar,
        release=approved.release,
        defaults=approved.defaults,
        severities=approved.severities,
        namespace_severities=approved.namespace_severities,
        proto_rules=approved.proto_rules,
        require_declared_namespaces=approved.require_declared_namespaces,
        waivers=approved.waivers,
        generate=approved.generate or proposed.generate,
        targets=approved.targets,
    )


def with_settings(
    report: CheckReport, run: Run, proposed: Project, locate: Locate, overlays: ChangedOverlays
) -> CheckReport:
    """Return `report` with what the change does to the settings that judge: findings and notes.

    A setting that judges less, and a topic that is a draft again, are findings that no severity of the project concerns: errors
    beside a changed schema, or where topics are removed, else warnings. The others are notes.

    Args:
        report: on the topics.
        run: whose project judges.
        proposed: the project as the change has it.
        locate: returns the place of a key in its file.
        overlays: of each target that was approved, as they were approved and as the change has them.
    """
    changes = [*setting_changes(run.project, proposed, run), *target_changes(proposed, overlays, run)]
    weaker = [change for change in changes if change.loses]
    named = sorted(name for name, topic in run.target.topics.items() if topic.lifecycle == "draft")
    drafts = [
        topic for topic in map(run.target.topics.__getitem__, named) if not (topic.deleted or run.is_draft(topic))
    ]
    removes = any(change.key == ("roots",) for change in weaker)

    def is_error(targets: tuple[str, ...], topics: tuple[TopicName, ...]) -> bool:
        """Whether a schema changes beside it: on one of the targets, or of one of these topics, which none may have any more."""
        beside = (seen for seen in report.topics if seen.change not in ("policies", "clients"))
        if removes or any(not (targets and seen.targets) or {*targets} & {*seen.targets} for seen in beside):
            return True
        both = ((run.approved.topics[name], run.target.topics.get(name)) for name in topics if targets)
        return any(now is None or not is_same_schema(was.schema, now.schema) for was, now in both)

    rule = run.rules["GATE_WEAKENED"]

    def finding(
        what: str,
        source: Source | None,
        topic: TopicName | None = None,
        targets: tuple[str, ...] = (),
        topics: tuple[TopicName, ...] = (),
        *,
        of_target: bool = False,
    ) -> Finding:
        return Finding(
            rule=rule.id,
            severity="error" if is_error(targets, topics) else "warning",
            verdict=rule.verdict,
            topic=topic,
            source=source,
            message=f"{what}. {_TARGETS if of_target else _SETTINGS}",
            fix=rule.fix,
            targets=targets,
        )

    found = [
        finding(
            change.sentence,
            change.source or locate(change.key),
            None,
            change.targets,
            change.topics,
            of_target=change.key[0] == "targets",
        )
        for change in weaker
    ]
    found += [
        finding(f"{topic.name} is a draft again, was stable", topic.locate("/lifecycle"), topic.name)
        for topic in drafts
    ]
    notes = [f"from the merge on, {change.sentence}" for change in changes if not change.loses]
    return replace(report, findings=(*found, *report.findings), notes=(*report.notes, *notes))
