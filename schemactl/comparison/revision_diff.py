"""Find the differences between two states of the declarations: the facts of `diff FROM..TO` and of `changelog`. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from schemactl import formats
from schemactl.comparison.changes import (
    Change,
    NumbersDiffer,
    SchemaRemoved,
    TextDiffers,
    TopicAdded,
    VersionsMissing,
    find_changes,
)
from schemactl.comparison.compatibility import find_changed_values
from schemactl.comparison.fingerprint import compute_fingerprint, find_broker_waiver
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Direction, Waiver, WaiversAt
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy
from schemactl.core.schema import Commit, SchemaInfo, SchemaVersion, get_live_versions
from schemactl.formats.part_changes import PartChange, find_part_changes

NOT_APPROVED = "0" * 40
"""The commit id of changes that are not approved yet."""

MAX_SHOWN_TOPICS: Final = 50
"""The maximum number of topics of a plan or promotion whose changed fields and affected readers are shown."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Two states and all their differences.

    Attributes:
        before: the name of the older state.
        after: the name of the newer state.
        start: the commit of the older state, or None.
        end: the commit of the newer state, or None.
        subjects: the namespaces and topics with changes, by name, namespaces first.
        commits: the number of commits that only the newer state has.
        authors: the names of their authors, each once.
        author_of: the author of each commit with changes, by its id.
    """

    before: str
    after: str
    start: Commit | None
    end: Commit | None
    subjects: tuple[Subject, ...]
    commits: int = 0
    authors: tuple[str, ...] = ()
    author_of: dict[str, str] = field(default_factory=dict)

    @property
    def versions(self) -> int:
        """The number of new versions."""
        return sum(len(subject.versions) for subject in self.subjects)

    @property
    def breaking(self) -> list[tuple[Subject, NewVersion]]:
        """The new versions that break readers."""
        return [(subject, version) for subject in self.subjects for version in subject.versions if version.is_breaking]


@dataclass(frozen=True, slots=True)
class Subject:
    """A namespace or topic with changes.

    Attributes:
        name: the name in the newer state, or in the older if the newer does not declare it.
        former: the name in the older state, if `renamed_from` states it.
        changes: the differences except new versions (see `schemactl.comparison.changes`).
        versions: the new versions, oldest first.
        parts: the changes in the definition in force if it is another text of an earlier version.
        metadata_changes: the changed metadata: key, old value and new value.
        since: the commit since which the topic is unchanged; None if it is unknown, or for a namespace.
        is_gone: whether the newer state does not declare it.
    """

    name: NamespaceName | TopicName
    former: TopicName | None = None
    changes: tuple[Change, ...] = ()
    versions: tuple[NewVersion, ...] = ()
    parts: tuple[PartChange, ...] = ()
    metadata_changes: tuple[tuple[str, str, str], ...] = ()
    since: Commit | None = None
    is_gone: bool = False

    @property
    def namespace(self) -> NamespaceName:
        """The namespace itself, or the topic's."""
        return self.name if isinstance(self.name, NamespaceName) else self.name.namespace_name


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A new version with its changes since the version `before` (None for the first), and the readers that it breaks."""

    version: SchemaVersion
    before: SchemaVersion | None = None
    parts: tuple[PartChange, ...] = ()
    breaks: tuple[Break, ...] = ()

    @property
    def is_breaking(self) -> bool:
        """Whether readers that the strategy protects fail or get other values, except for warnings."""
        return any(break_.is_error for break_ in self.breaks)


@dataclass(frozen=True, slots=True)
class VersionEffect:
    """The effect of a version that is to be registered on readers and clients.

    Attributes:
        change: the version with its changes and the readers that it breaks.
        broken: the declared clients that break, each with the reason.
        safe: the declared clients that do not break.
        is_last: whether it is the last version that is to be registered; declared clients are clients of this version.
    """

    change: NewVersion
    broken: tuple[tuple[str, str], ...] = ()
    safe: tuple[str, ...] = ()
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Break:
    """A reason why readers that the strategy protects fail or get other values.

    Attributes:
        rule: the rule of the incompatibility or misreading.
        direction: its direction.
        against: the numbers of the versions it breaks with.
        reason: the explanation.
        strict_only: whether Pulsar's Java readers do not fail.
        waiver: the waiver that approved it, or None.
        is_warning: whether it is a misreading that is a warning by default.
    """

    rule: str
    direction: Direction
    against: tuple[int, ...]
    reason: str
    strict_only: bool
    waiver: Waiver | None = None
    is_warning: bool = False

    @property
    def is_error(self) -> bool:
        """Whether it is an error by default."""
        return not (self.strict_only or self.is_warning)


def find_subjects(
    older: Catalog,
    newer: Catalog,
    defaults: BrokerDefaults,
    waivers: WaiversAt,
    since: Callable[[TopicName], Commit | None],
) -> Iterator[Subject]:
    """Yield the differences between two states, by name, namespaces first.

    Args:
        older: the older state.
        newer: the newer state.
        defaults: the strategy to assume if none is declared.
        waivers: returns the waivers in the tree of a commit.
        since: returns the commit since which a topic is as in the newer state.
    """
    changes_by_name: dict[NamespaceName | TopicName, list[Change]] = {}
    for change in find_changes(older, newer):
        if not isinstance(change, NumbersDiffer):
            changes_by_name.setdefault(change.name, []).append(change)
    former_names = {
        name: topic.renamed_from
        for name, topic in newer.topics.items()
        if topic.renamed_from
        and topic.renamed_from in older.topics
        and any(isinstance(change, TopicAdded) for change in changes_by_name.get(name, ()))
    }
    for old_name in former_names.values():
        # The renamed topic appears under its new name only.
        if old_name and all(isinstance(change, SchemaRemoved) for change in changes_by_name.get(old_name, ())):
            changes_by_name.pop(old_name, None)
    newer_names: list[NamespaceName | TopicName] = [*newer.namespaces, *newer.topics]
    metadata_changes_by_name = {
        name: metadata_changes
        for name in newer_names
        if _is_declared(newer, name) and (metadata_changes := tuple(_find_metadata_changes(older, newer, name)))
    }
    changed_names = {*changes_by_name, *(name for name in metadata_changes_by_name if older.get(name))}
    for name in sorted(changed_names, key=lambda name: (isinstance(name, TopicName), str(name))):
        changes = changes_by_name.get(name, [])
        subject = Subject(
            name,
            changes=tuple(change for change in changes if not isinstance(change, VersionsMissing)),
            metadata_changes=metadata_changes_by_name.get(name, ()),
            is_gone=not _is_declared(newer, name),
        )
        if not isinstance(name, TopicName):
            yield subject
            continue
        topic, former_name = newer.topics.get(name, Topic(name)), former_names.get(name)
        former_versions = older.versions(former_name) if former_name else ()
        strategy, _ = newer.data_strategy(name, defaults)
        new_versions: list[NewVersion] = []
        parts: tuple[PartChange, ...] = ()
        for change in changes:
            if isinstance(change, VersionsMissing):
                new_versions += [
                    compare_version(topic, version, strategy, waivers, former_versions) for version in change.versions
                ]
            elif isinstance(change, TextDiffers):
                old_topic = older.topics.get(name)
                old_kind = old_topic.get_kind(change.kind) if old_topic else None
                old_schema = old_kind.schema if old_kind else old_topic.schema if old_topic else None
                if not change.kind or old_kind:
                    parts += _find_part_changes(old_schema, change.definition)
        yield replace(subject, former=former_name, since=since(name), versions=tuple(new_versions), parts=parts)


def compare_version(
    topic: Topic,
    version: SchemaVersion,
    strategy: CompatibilityStrategy,
    waivers: WaiversAt,
    former_versions: Sequence[SchemaVersion] = (),
) -> NewVersion:
    """Return a version with its changes since the version before it, and the readers that it breaks.

    Args:
        topic: the topic, with all its versions.
        version: a version of the topic.
        strategy: the strategy by which data is judged.
        waivers: returns the waivers in the tree of a commit.
        former_versions: the versions of the topic's old name, which count before the first version.
    """
    earlier = [other for other in topic.versions if other.number < version.number]
    stored = earlier or former_versions
    existing = [other for other in stored if not topic.kinds or other.kind == version.kind or not other.info]
    before = next((other for other in reversed(get_live_versions(existing)) if other.info), None)
    parts = _find_part_changes(before.info, version.info) if before else ()
    breaks = tuple(find_breaks(topic.name, existing, stored, version, strategy, waivers))
    return NewVersion(version, before, parts, breaks)


def _find_part_changes(old: SchemaInfo | None, new: SchemaInfo | None) -> tuple[PartChange, ...]:
    """Return the differences of two definitions, or () if one does not parse."""
    try:
        return tuple(find_part_changes(old=old, new=new))
    except InvalidSchema:
        return ()


def find_breaks(
    name: TopicName,
    existing: Sequence[SchemaVersion],
    stored: Sequence[SchemaVersion],
    version: SchemaVersion,
    strategy: CompatibilityStrategy,
    waivers: WaiversAt,
) -> Iterator[Break]:
    """Yield the reasons why a version breaks readers that a strategy protects, each once, with the waiver that approved it.

    Args:
        name: the topic.
        existing: the earlier versions of the same kind of events, oldest first.
        stored: all earlier versions of the topic.
        version: the version.
        strategy: the strategy by which data is judged.
        waivers: returns the waivers in the tree of a commit.
    """
    new = version.info
    if new is None:
        return
    breakages = find_changed_values(existing, new, strategy)
    groups: dict[tuple[str, str, Direction], list[Breakage]] = {}
    for breakage in breakages:
        incompatibility = breakage.incompatibility
        key = (incompatibility.rule, incompatibility.pointer, breakage.direction)
        groups.setdefault(key, []).append(breakage)
    commit_waivers = tuple(waivers(version.commit)) if version.commit and breakages else ()
    infos = {other.number: other.info for other in existing if other.info}
    for (rule, pointer, direction), group in groups.items():
        against = [infos[breakage.against] for breakage in group]
        change = compute_fingerprint(rule, name, new=new, against=against, pointer=pointer, direction=direction)
        keys = {(rule, name.schema_id, text) for text in (change, change.former)}
        waiver = next((waiver for waiver in commit_waivers if waiver.key in keys), None)
        yield Break(
            rule,
            direction,
            tuple(sorted({breakage.against for breakage in group})),
            formats.explain(group[0], new=new, old=against[0]).reason,
            all(breakage.incompatibility.strict_only for breakage in group),
            waiver or find_broker_waiver(commit_waivers, name, stored, new),
            all(breakage.incompatibility.is_warning for breakage in group),
        )


def _is_declared(catalog: Catalog, name: NamespaceName | TopicName) -> bool:
    declaration = catalog.get(name)
    return declaration is not None and not declaration.deleted


def _find_metadata_changes(
    older: Catalog, newer: Catalog, name: NamespaceName | TopicName
) -> Iterator[tuple[str, str, str]]:
    """Yield the changes of the metadata: the key, the old value, the new value."""
    sides: list[dict[str, str]] = []
    for catalog in (older, newer):
        declaration = catalog.get(name)
        values = declaration.metadata.words() if declaration and not declaration.deleted else {}
        if isinstance(declaration, Topic) and declaration.lifecycle != "stable":
            values["lifecycle"] = declaration.lifecycle
        sides.append(values)
    old_values, new_values = sides
    for key in {**old_values, **new_values}:
        if old_values.get(key, "") != new_values.get(key, ""):
            yield key, old_values.get(key, ""), new_values.get(key, "")
