"""The differences between two catalogs, as a flat list of values.

`plan` and `drift` ask what separates a registry (base) from the approved history (target).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from schemactl import formats
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.formats.primitive import CHARSET

COMMIT_PROPERTY = "schemactl.commit"
"""The SchemaInfo property that names the commit an upload came from. It takes no part in any comparison."""

UNSET = (None, CompatibilityStrategy.UNDEFINED)
"""The values of a policy that leave it to the next level."""

_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

_NOT_OWN = {COMMIT_PROPERTY, "key.schema.name", "value.schema.name"}


def stamp(info: SchemaInfo | None) -> str | None:
    """Return the id of the commit that an `apply` uploaded `info` from; None if something else uploaded it."""
    found = info.properties.get(COMMIT_PROPERTY, "") if info else ""
    return found if _COMMIT_ID.fullmatch(found) else None


@dataclass(frozen=True, slots=True)
class NamespaceAdded:
    """A namespace that only the target has. Its policies follow as `PoliciesChanged`."""

    name: NamespaceName


@dataclass(frozen=True, slots=True)
class TopicAdded:
    """A topic that only the target has (or has again). Policies and schema follow as changes of their own."""

    name: TopicName
    topic: Topic


@dataclass(frozen=True, slots=True)
class PoliciesChanged:
    """Policies that the target manages and that differ. Both sides hold those only; the others are None."""

    name: NamespaceName | TopicName
    before: Policies
    after: Policies


@dataclass(frozen=True, slots=True)
class PoliciesFormer:
    """Policies that the target declared once and declares no longer, where the base has a value.

    Both sides hold those only: what the base has, and what the target declared `last`.
    """

    name: NamespaceName | TopicName
    before: Policies
    last: Policies


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """The target has another number of partitions; `before` is None for a topic that is not partitioned."""

    name: TopicName
    before: int | None
    after: int


@dataclass(frozen=True, slots=True)
class TextDiffers:
    """A definition in force whose content the base has as a different text, so that an upload stores nothing.

    Attributes:
        text: the target's definition.
        number: of the base's version with that content.
        latest: of the base's latest live version.
    """

    name: TopicName
    text: SchemaInfo
    number: int
    latest: int


@dataclass(frozen=True, slots=True)
class SchemaRemoved:
    """A topic, or its definition in force, that only the base has."""

    name: TopicName


@dataclass(frozen=True, slots=True)
class GenerationBegins:
    """A topic whose versions in the target follow the tombstone `number`, which the base does not have."""

    name: TopicName
    number: int


@dataclass(frozen=True, slots=True)
class VersionsMissing:
    """The versions of the target whose content the base does not hold, oldest first."""

    name: TopicName
    versions: tuple[SchemaVersion, ...]


@dataclass(frozen=True, slots=True)
class VersionsUnknown:
    """The live versions of the base whose content the target does not know, oldest first."""

    name: TopicName
    versions: tuple[SchemaVersion, ...]


@dataclass(frozen=True, slots=True)
class NumbersDiffer:
    """The versions with one content and two numbers, as pairs (base, target) in the order of the base's."""

    name: TopicName
    pairs: tuple[tuple[int, int], ...]


Change = (
    NamespaceAdded
    | TopicAdded
    | PoliciesChanged
    | PoliciesFormer
    | PartitionsChanged
    | TextDiffers
    | SchemaRemoved
    | GenerationBegins
    | VersionsMissing
    | VersionsUnknown
    | NumbersDiffer
)


def last_tombstone(versions: Sequence[SchemaVersion]) -> int:
    """Return the number of the last tombstone; -1 if there is none."""
    return next((version.number for version in reversed(versions) if version.info is None), -1)


def is_behind(registry: Sequence[SchemaVersion], git: Sequence[SchemaVersion]) -> bool:
    """Return whether Git has a generation that a registry's list of the topic does not have yet."""
    return last_tombstone(registry) < last_tombstone(git)


def find_changes(base: Catalog, target: Catalog) -> tuple[Change, ...]:
    """Return every difference of the target from the base: namespaces first, then topics, each sorted by name.

    A topic marked `deleted` counts as absent, but its versions are still known: content that comes back is no new version. A
    policy that is None in the target never differs. Contents are compared by their format's identity, so reformatting changes
    no version.
    """
    return tuple(_namespaces(base, target)) + tuple(_topics(base, target))


def same_text(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Whether two definitions say the same, doc, aliases and properties included.

    Layout, the commit's stamp, clients' names for the halves of a KEY_VALUE and their spelling of a primitive do not count.
    """
    one, other = (formats.spec(each).declared(replace(each, properties=_own(each))) for each in (one, other))
    if one == other:
        return True
    try:
        return formats.same_text(one, other)
    except (InvalidSchema, ValueError):
        return False


def upload(version: SchemaVersion) -> SchemaInfo:
    """Return the definition of `version` as it is sent to a registry: with its commit as a property."""
    if version.info is None:
        raise ValueError(f"version {version.number} is a tombstone and cannot be uploaded")
    if version.commit is None:
        return version.info
    return replace(version.info, properties={**version.info.properties, COMMIT_PROPERTY: version.commit.id})


def unstamped(info: SchemaInfo) -> SchemaInfo:
    """Return `info` without the commit property that `upload` adds."""
    if COMMIT_PROPERTY not in info.properties:
        return info
    own = {key: value for key, value in info.properties.items() if key != COMMIT_PROPERTY}
    return replace(info, properties=own)


def _own(info: SchemaInfo) -> dict[str, str]:
    return {key: value for key, value in info.properties.items() if key not in _NOT_OWN}


def content_identity(info: SchemaInfo) -> Hashable:
    """Return a value that is equal for two definitions exactly when they are one version; unparsable ones compare by bytes."""
    try:
        return formats.identity(info)
    except InvalidSchema:
        return info.type, info.schema


class Contents:
    """The live versions of one topic, searchable by content."""

    def __init__(self, versions: Sequence[SchemaVersion]) -> None:
        self.live = live(versions)
        self._by_text: dict[Hashable, SchemaVersion] = {}
        self._by_identity: dict[Hashable, SchemaVersion] | None = None
        self._by_spelling: dict[Hashable, SchemaVersion] = {}
        for version in self.live:
            if version.info is not None:
                self._by_text.setdefault(_text(version.info.load()), version)

    @property
    def latest(self) -> SchemaVersion | None:
        """The newest live version; None if there is none, or a tombstone is the newest entry."""
        return self.live[-1] if self.live else None

    def find(self, info: SchemaInfo) -> SchemaVersion | None:
        """Return the version with the content of `info`: with the same bytes, else the oldest with the same identity.

        Otherwise the oldest that is the same primitive in another client's spelling, which a broker keeps apart.
        """
        # Nearly every version is found by its text; only the others have to be parsed.
        found = self._by_text.get(_text(info))
        if found is not None or not self.live:
            return found
        if self._by_identity is None:
            self._by_identity = {}
            for version in self.live:
                if version.info is not None:
                    self._by_identity.setdefault(content_identity(version.info), version)
                    if formats.spec(version.info).has_spellings:
                        self._by_spelling.setdefault(_spelling(version.info), version)
        found = self._by_identity.get(content_identity(info))
        return self._by_spelling.get(_spelling(info)) if not found and formats.spec(info).has_spellings else found


class Generations:
    """Git's versions of one topic, searchable by the entries of a registry's list."""

    def __init__(self, versions: Sequence[SchemaVersion]) -> None:
        ends = [position for position, version in enumerate(versions) if version.info is None]
        # Of each generation that ended, the number of the tombstone.
        self._ended = [(versions[end].number, Contents(versions[:end])) for end in ends]
        self._newest = Contents(versions)

    def find(self, entry: SchemaVersion) -> SchemaVersion | None:
        """Return Git's version with the content of `entry`, of the generation that its number belongs to."""
        if entry.info is None:
            return None
        contents = next((found for end, found in self._ended if entry.number <= end), self._newest)
        return contents.find(entry.info)


def _namespaces(base: Catalog, target: Catalog) -> Iterator[Change]:
    for name in sorted(base.namespaces.keys() | target.namespaces.keys()):
        before, after = base.namespaces.get(name), target.namespaces.get(name)
        if before is None:
            yield NamespaceAdded(name)
        if after is not None:
            yield from _policies(name, before.policies if before else Policies(), after.policies)
        if before is not None:
            yield from _former(name, before.policies, target)


def _topics(base: Catalog, target: Catalog) -> Iterator[Change]:
    for name in sorted(base.topics.keys() | target.topics.keys()):
        before, after = base.topics.get(name), target.topics.get(name)
        there_before = before is not None and not before.deleted
        there_after = after is not None and not after.deleted
        if after is not None and there_after:
            if before is None or not there_before:
                yield TopicAdded(name, after)
            elif after.partitions is not None and after.partitions != before.partitions:
                yield PartitionsChanged(name, before.partitions, after.partitions)
            yield from _policies(name, before.policies if before else Policies(), after.policies)
        elif before is not None and there_before:
            yield SchemaRemoved(name)
        if before is not None and there_before:
            yield from _former(name, before.policies, target)
        if after is not None and after.schema is not None:
            yield from _schemas(name, before or Topic(name), after, after.schema)
        elif before is not None and before.schema is not None and (there_after or not there_before):
            yield SchemaRemoved(name)


def _policies(name: NamespaceName | TopicName, before: Policies, after: Policies) -> Iterator[PoliciesChanged]:
    differing = []
    for policy, new in after.managed().items():
        old = before.get(policy)
        if new != old and not (new in UNSET and old in UNSET):
            differing.append(policy)
    if differing:
        yield PoliciesChanged(
            name,
            Policies.of({policy: before.get(policy) for policy in differing}),
            Policies.of({policy: after.get(policy) for policy in differing}),
        )


def _former(name: NamespaceName | TopicName, before: Policies, target: Catalog) -> Iterator[PoliciesFormer]:
    last = target.former.get(name, Policies()).managed()
    held = {policy: value for policy, value in before.managed().items() if policy in last and value not in UNSET}
    if held:
        yield PoliciesFormer(name, Policies.of(held), Policies.of({policy: last[policy] for policy in held}))


def _schemas(name: TopicName, before: Topic, after: Topic, schema: SchemaInfo) -> Iterator[Change]:
    if is_behind(before.versions, after.versions):
        yield GenerationBegins(name, last_tombstone(after.versions))
        known = Contents([version for version in after.versions if version.info])
        unknown = tuple(each for each in live(before.versions) if each.info and not known.find(each.info))
        if unknown:
            yield VersionsUnknown(name, unknown)
        before = replace(before, schema=None, versions=())
    held = Contents(before.versions)
    if after.versions:
        yield from _versions(name, held, Contents(after.versions))
    if before.schema is not None and same_text(before.schema, schema):
        return
    found = held.find(schema)
    if found and held.latest:
        is_old = found is not held.latest
        if is_old or not (found.info and same_text(found.info, schema)):
            yield TextDiffers(name, schema, found.number, held.latest.number)


def _versions(name: TopicName, held: Contents, wanted: Contents) -> Iterator[Change]:
    missing = tuple(version for version in wanted.live if version.info and held.find(version.info) is None)
    if missing:
        yield VersionsMissing(name, missing)
    unknown, pairs = [], []
    for version in held.live:
        known = wanted.find(version.info) if version.info else None
        if known is None:
            unknown.append(version)
        elif known.number != version.number:
            pairs.append((version.number, known.number))
    if unknown:
        yield VersionsUnknown(name, tuple(unknown))
    if pairs:
        yield NumbersDiffer(name, tuple(pairs))


def _spelling(info: SchemaInfo) -> Hashable:
    # With the charset, so that messages in one are never read in another.
    spelled = formats.spec(info).declared(info)
    return spelled.schema, spelled.properties.get(CHARSET)


def _text(info: SchemaInfo) -> Hashable:
    # KEY_VALUE keeps the types of its halves and its encoding in properties, so they belong to the content.
    own = frozenset(item for item in info.properties.items() if item[0] != COMMIT_PROPERTY)
    return info.type, info.schema, own
