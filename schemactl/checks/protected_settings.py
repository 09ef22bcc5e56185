"""What a change does to the settings of the project file that judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from schemactl.checking.run import STRICT_POLICIES, Run
from schemactl.core.errors import Source, first_of
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import protects
from schemactl.core.project import Project
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


def _defaults(
    approved: Project, proposed: Project, run: Run, topics: tuple[TopicName, ...]
) -> Iterator[SettingChange]:
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
