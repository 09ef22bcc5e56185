"""The differences between two states of the declarations: the facts of `diff FROM..TO` and of `changelog`. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

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
from schemactl.comparison.compatibility import breakages
from schemactl.comparison.fingerprint import broker_waiver, fingerprint
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Direction, Waiver, WaiversAt
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults
from schemactl.core.schema import Commit, SchemaInfo, SchemaVersion, live
from schemactl.formats.type_spec import PartChange, part_changes

NOT_APPROVED = "0" * 40
"""The id of the commit of what is not approved yet."""


@dataclass(frozen=True, slots=True)
class Break:
    """A reason why readers that the strategy protects fail.

    Attributes:
        rule, direction: of the incompatibility.
        against: the numbers of the versions that it is with.
        reason: for people.
        strict_only: Pulsar's Java readers do not fail.
        waiver: by which it was approved, if it was.
    """

    rule: str
    direction: Direction
    against: tuple[int, ...]
    reason: str
    strict_only: bool
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A new version, with the changes since the one before it (None for the first one), and the readers that it breaks."""

    version: SchemaVersion
    before: SchemaVersion | None = None
    parts: tuple[PartChange, ...] = ()
    breaks: tuple[Break, ...] = ()

    @property
    def is_breaking(self) -> bool:
        """Whether readers that the strategy protects fail, and not only strict ones."""
        return any(not each.strict_only for each in self.breaks)


@dataclass(frozen=True, slots=True)
class Subject:
    """A namespace or topic with changes.

    Attributes:
        name: in the newer state, else in the older.
        former: its name in the older state, where `renamed_from` says so.
        changes: what differs besides new versions (see `schemactl.comparison.changes`).
        versions: new ones, oldest first.
        parts: the changes in the definition in force if it is a different text of a version that existed already.
        said: by key of its metadata, the old and the new value.
        is_gone: the newer state does not declare it.
        since: the commit since which the topic stands as it does; None: it is not known, or a namespace.
    """

    name: NamespaceName | TopicName
    former: TopicName | None = None
    changes: tuple[Change, ...] = ()
    versions: tuple[NewVersion, ...] = ()
    parts: tuple[PartChange, ...] = ()
    said: tuple[tuple[str, str, str], ...] = ()
    since: Commit | None = None
    is_gone: bool = False

    @property
    def namespace(self) -> NamespaceName:
        """The namespace itself, or the topic's."""
        return self.name if isinstance(self.name, NamespaceName) else self.name.namespace_name


@dataclass(frozen=True, slots=True)
class Revision:
    """Two states and all their differences.

    Attributes:
        before, after: the names of the states.
        start, end: their commits, if they have one.
        commits: how many commits only the newer has.
        authors: the names of their authors, each once.
        author_of: the author of each commit with changes, by its id.
        subjects: by name, namespaces first.
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
        """How many versions are new."""
        return sum(len(each.versions) for each in self.subjects)

    @property
    def breaking(self) -> list[tuple[Subject, NewVersion]]:
        """The new versions that break readers."""
        return [(each, version) for each in self.subjects for version in each.versions if version.is_breaking]


def find_subjects(
    older: Catalog,
    newer: Catalog,
    defaults: BrokerDefaults,
    waivers: WaiversAt,
    since: Callable[[TopicName], Commit | None],
) -> Iterator[Subject]:
    """Yield the differences between two states, by name, namespaces first.

    Args:
        older: one state.
        newer: the other.
        defaults: has the strategy to assume if none is declared.
        waivers: returns the waivers in the tree of a commit.
        since: returns the commit since which a topic is as in the newer state.
    """
    by_name: dict[NamespaceName | TopicName, list[Change]] = {}
    for each in find_changes(older, newer):
        if not isinstance(each, NumbersDiffer):
            by_name.setdefault(each.name, []).append(each)
    former = {
        name: topic.renamed_from
        for name, topic in newer.topics.items()
        if topic.renamed_from
        and topic.renamed_from in older.topics
        and any(isinstance(each, TopicAdded) for each in by_name.get(name, ()))
    }
    for was in former.values():
        # It is shown under its new name.
        if was and all(isinstance(each, SchemaRemoved) for each in by_name.get(was, ())):
            by_name.pop(was, None)
    for kind in (NamespaceName, TopicName):
        names: list[NamespaceName | TopicName] = [each for each in by_name if isinstance(each, kind)]
        names += [each for each in _said_otherwise(older, newer, kind) if each not in by_name]
        for name in sorted(names, key=str):
            changes = by_name.get(name, [])
            is_gone = not _is_there(newer, name)
            said = () if is_gone else tuple(_said(older, newer, name))
            found = Subject(name, said=said, is_gone=is_gone)
            if isinstance(name, TopicName):
                found = replace(found, former=former.get(name), since=since(name))
                found = _topic(found, changes, older, newer, defaults, waivers)
            yield replace(found, changes=tuple(each for each in changes if not isinstance(each, VersionsMissing)))


def _topic(
    found: Subject,
    changes: Iterable[Change],
    older: Catalog,
    newer: Catalog,
    defaults: BrokerDefaults,
    waivers: WaiversAt,
) -> Subject:
    name = found.name
    assert isinstance(name, TopicName)  # noqa: S101  the caller looked
    topic = newer.topics.get(name, Topic(name))
    former = older.versions(found.former) if found.former else ()
    strategy, _ = newer.strategy(name, defaults)
    versions: list[NewVersion] = []
    parts: tuple[PartChange, ...] = ()
    for change in changes:
        if isinstance(change, VersionsMissing):
            for version in change.versions:
                existing = [each.load() for each in topic.versions if each.number < version.number] or former
                version.load()
                before = next((each for each in reversed(live(existing)) if each.info), None)
                versions.append(
                    NewVersion(
                        version,
                        before,
                        _parts(before.info, version.info) if before else (),
                        tuple(
                            _breaks(
                                name,
                                existing,
                                version,
                                breakages(existing, version.info, strategy, by_any_release=True),
                                waivers,
                            )
                        )
                        if version.info
                        else (),
                    )
                )
        elif isinstance(change, TextDiffers):
            was = older.topics[name].schema if name in older.topics else None
            parts = _parts(was.load() if was else None, change.text.load())
    return replace(found, versions=tuple(versions), parts=parts)


def _parts(old: SchemaInfo | None, new: SchemaInfo | None) -> tuple[PartChange, ...]:
    """Return the differences of two definitions; none if one does not parse."""
    try:
        return tuple(part_changes(old=old, new=new))
    except InvalidSchema:
        return ()


def _breaks(
    name: TopicName,
    existing: Sequence[SchemaVersion],
    version: SchemaVersion,
    found: Sequence[Breakage],
    waivers: WaiversAt,
) -> Iterator[Break]:
    """Yield each reason once, with all versions that it applies to, and its waiver in the commit of the version."""
    infos = {each.number: each.info for each in existing if each.info}
    grouped: dict[tuple[str, str, Direction], list[Breakage]] = {}
    for each in found:
        what = each.incompatibility
        grouped.setdefault((what.rule, what.pointer, each.direction), []).append(each)
    known = tuple(waivers(version.commit)) if version.commit and found else ()
    new = version.info
    for (rule, pointer, direction), group in grouped.items():
        nearest = group[0]
        old = infos.get(nearest.against)
        if new is None or old is None:
            continue
        against = [info for each in group if (info := infos.get(each.against))]
        key = (
            rule,
            name.schema_id,
            fingerprint(rule, name, new=new, against=against, pointer=pointer, direction=direction),
        )
        waiver = next((each for each in known if each.key == key), None)
        yield Break(
            rule,
            direction,
            tuple(sorted({each.against for each in group})),
            formats.explain(nearest, new=new, old=old).reason,
            all(each.incompatibility.strict_only for each in group),
            waiver or broker_waiver(known, name, existing, new),
        )


def _is_there(catalog: Catalog, name: NamespaceName | TopicName) -> bool:
    held = catalog.get(name)
    return held is not None and not held.deleted


def _said_otherwise(
    older: Catalog, newer: Catalog, kind: type[NamespaceName | TopicName]
) -> Iterator[NamespaceName | TopicName]:
    """Yield the names that both states declare, with different metadata."""
    if kind is TopicName:
        both = (name for name in newer.topics if name in older.topics)
        yield from (name for name in both if not newer.topics[name].deleted and any(_said(older, newer, name)))
    else:
        yield from (name for name in newer.namespaces if name in older.namespaces and any(_said(older, newer, name)))


def _said(older: Catalog, newer: Catalog, name: NamespaceName | TopicName) -> Iterator[tuple[str, str, str]]:
    """Yield the changes of its metadata: the key, the old value, the new value."""
    sides: list[dict[str, str]] = []
    for catalog in (older, newer):
        held = catalog.get(name)
        sides.append(held.metadata.words() if held and not held.deleted else {})
        if isinstance(held, Topic) and held.lifecycle != "stable":
            sides[-1]["lifecycle"] = held.lifecycle
    before, after = sides
    for key in {**before, **after}:
        if before.get(key, "") != after.get(key, ""):
            yield key, before.get(key, ""), after.get(key, "")
