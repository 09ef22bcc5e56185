"""Find the differences between two catalogs, as a flat list of values.

`plan` and `drift` compare a registry (base) with the approved history (target).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from schemactl import formats
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import EMPTY, SchemaInfo, SchemaVersion, get_live_versions
from schemactl.formats.digest import compute_digest, compute_text_digest, get_known_digest, hash_identity
from schemactl.formats.primitive import CHARSET

COMMIT_PROPERTY = "schemactl.commit"
"""The SchemaInfo property for the commit of an upload. No comparison uses it."""

STAMPED_PROPERTY = "schemactl.stamped"
"""The property with the names of the other properties that an upload got from its target, as a JSON list.

So every reader can distinguish them from declared properties, also after the project file sets others.
"""

UNSET = (None, CompatibilityStrategy.UNDEFINED)
"""The values of a policy that make the next level decide."""

_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_DECLARED = {"key.schema.name", "value.schema.name"}


def find_changes(base: Catalog, target: Catalog) -> tuple[Change, ...]:
    """Return every difference of the target from the base: namespaces first, then topics, each sorted by name.

    A topic marked `deleted` counts as absent, but its versions still count: content that returns is not a new version. A policy that
    is None in the target never differs. Contents are compared by their format's identity, so reformatting changes no version.
    """
    return (*_find_namespace_changes(base, target), *_find_topic_changes(base, target))


def _find_namespace_changes(base: Catalog, target: Catalog) -> Iterator[Change]:
    for name in sorted(base.namespaces.keys() | target.namespaces.keys()):
        base_namespace, target_namespace = base.namespaces.get(name), target.namespaces.get(name)
        if base_namespace is None:
            yield NamespaceAdded(name)
        if target_namespace is not None:
            base_policies = base_namespace.policies if base_namespace else Policies()
            yield from _find_policy_changes(name, base_policies, target_namespace.policies)
        if base_namespace is not None:
            yield from _find_former_policies(name, base_namespace.policies, target)


def _find_topic_changes(base: Catalog, target: Catalog) -> Iterator[Change]:
    for name in sorted(base.topics.keys() | target.topics.keys()):
        before, after = base.topics.get(name), target.topics.get(name)
        is_in_base = before is not None and not before.deleted
        is_in_target = after is not None and not after.deleted
        if after is not None and is_in_target:
            if before is None or not is_in_base:
                yield TopicAdded(name, after)
            elif after.partitions is not None and after.partitions != before.partitions:
                yield PartitionsChanged(name, before.partitions, after.partitions)
            yield from _find_policy_changes(name, before.policies if before else Policies(), after.policies)
        elif before is not None and is_in_base:
            yield SchemaRemoved(name)
        if before is not None and is_in_base:
            yield from _find_former_policies(name, before.policies, target)
        if after is not None and after.schema is not None:
            yield from _find_schema_changes(name, before or Topic(name), after, after.schema)
        elif before is not None and before.schema is not None and (is_in_target or not is_in_base):
            yield SchemaRemoved(name)


def _find_policy_changes(
    name: NamespaceName | TopicName, before: Policies, after: Policies
) -> Iterator[PoliciesChanged]:
    changed = []
    for policy, new_value in after.managed().items():
        old_value = before.get(policy)
        if new_value != old_value and not (new_value in UNSET and old_value in UNSET):
            changed.append(policy)
    if changed:
        yield PoliciesChanged(
            name,
            Policies.of({policy: before.get(policy) for policy in changed}),
            Policies.of({policy: after.get(policy) for policy in changed}),
        )


def _find_former_policies(
    name: NamespaceName | TopicName, before: Policies, target: Catalog
) -> Iterator[PoliciesUndeclared]:
    last = target.former.get(name, Policies()).managed()
    values = {policy: value for policy, value in before.managed().items() if policy in last and value not in UNSET}
    if values:
        yield PoliciesUndeclared(name, Policies.of(values), Policies.of({policy: last[policy] for policy in values}))


def _find_schema_changes(name: TopicName, before: Topic, after: Topic, schema: SchemaInfo) -> Iterator[Change]:
    if lacks_newest_generation(before.versions, after.versions):
        yield GenerationBegins(name, last_tombstone(after.versions))
        target_contents = VersionIndex([version for version in after.versions if version.info])
        unknown = tuple(
            version
            for version in get_live_versions(before.versions)
            if version.info and not target_contents.find(version.info)
        )
        if unknown:
            yield VersionsUnknown(name, unknown)
        before = replace(before, schema=None, versions=())
    base_contents = VersionIndex(before.versions)
    if after.versions:
        yield from _find_version_changes(name, base_contents, VersionIndex(after.versions))
    if after.kinds:
        yield from _find_kind_texts(name, base_contents, after)
        return
    if before.schema is not None and has_same_text(before.schema, schema):
        return
    version = base_contents.find(schema)
    if version and base_contents.latest:
        is_old = version is not base_contents.latest
        if is_old or not (version.info and has_same_text(version.info, schema)):
            yield TextDiffers(name, schema, version.number, base_contents.latest.number)


def _find_kind_texts(name: TopicName, base_contents: VersionIndex, after: Topic) -> Iterator[TextDiffers]:
    """Yield each kind of events whose definition in force has another text in the base, or is not the latest version of the kind there."""
    latest_by_kind = {
        after.find_kind_key(formats.get_record_name(version.info)): version
        for version in base_contents.live
        if version.info
    }
    for kind in after.kinds:
        version, latest = base_contents.find(kind.schema), latest_by_kind.get(kind.key)
        if version is None or version.info is None or latest is None:
            continue
        if version is not latest or not has_same_text(version.info, kind.schema):
            yield TextDiffers(name, kind.schema, version.number, latest.number, kind.key)


def _find_version_changes(name: TopicName, base: VersionIndex, target: VersionIndex) -> Iterator[Change]:
    missing = tuple(version for version in target.live if version.info and base.find(version.info) is None)
    if missing:
        yield VersionsMissing(name, missing)
    unknown, pairs = [], []
    for version in base.live:
        target_version = target.find(version.info) if version.info else None
        if target_version is None:
            unknown.append(version)
        elif target_version.number != version.number:
            pairs.append((version.number, target_version.number))
    if unknown:
        yield VersionsUnknown(name, tuple(unknown))
    if pairs:
        yield NumbersDiffer(name, tuple(pairs))


def last_tombstone(versions: Sequence[SchemaVersion]) -> int:
    """Return the number of the last tombstone, or -1 without one."""
    return next((version.number for version in reversed(versions) if version.info is None), -1)


def lacks_newest_generation(registry: Sequence[SchemaVersion], git: Sequence[SchemaVersion]) -> bool:
    """Return whether a registry's version list of the topic lacks the tombstone before Git's newest generation."""
    return last_tombstone(registry) < last_tombstone(git)


# Kinds of changes


@dataclass(frozen=True, slots=True)
class NamespaceAdded:
    """A namespace that only the target has. Its policies follow as `PoliciesChanged`."""

    name: NamespaceName


@dataclass(frozen=True, slots=True)
class TopicAdded:
    """A topic that only the target has (or has again). Its policies and schema follow as separate changes."""

    name: TopicName
    topic: Topic


@dataclass(frozen=True, slots=True)
class PoliciesChanged:
    """Policies that the target manages and that differ. Both sides have only these policies; the others are None."""

    name: NamespaceName | TopicName
    before: Policies
    after: Policies


@dataclass(frozen=True, slots=True)
class PoliciesUndeclared:
    """Policies that the target no longer declares and that the base still sets.

    Both sides have only these policies: `before` the base's values, `last` the values that the target declared last.
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
    """A definition in force that has another text but the same content in the base, so an upload stores nothing.

    Attributes:
        definition: the target's definition.
        number: the number of the base's version with this content.
        latest: the number of the base's latest live version, or of the latest one of the `kind`.
        kind: the key of the kind of events, or "" for a topic with one schema.
    """

    name: TopicName
    definition: SchemaInfo
    number: int
    latest: int
    kind: str = ""


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
    """The versions of the target whose content the base lacks, oldest first."""

    name: TopicName
    versions: tuple[SchemaVersion, ...]


@dataclass(frozen=True, slots=True)
class VersionsUnknown:
    """The live versions of the base whose content the target lacks, oldest first."""

    name: TopicName
    versions: tuple[SchemaVersion, ...]


@dataclass(frozen=True, slots=True)
class NumbersDiffer:
    """The versions with the same content and different numbers, as pairs (base, target) in the order of the base."""

    name: TopicName
    pairs: tuple[tuple[int, int], ...]


Change = (
    NamespaceAdded
    | TopicAdded
    | PoliciesChanged
    | PoliciesUndeclared
    | PartitionsChanged
    | TextDiffers
    | SchemaRemoved
    | GenerationBegins
    | VersionsMissing
    | VersionsUnknown
    | NumbersDiffer
)


# Versions by content


class VersionIndex:
    """The live versions of one topic, searchable by content."""

    def __init__(self, versions: Sequence[SchemaVersion]) -> None:
        self.live = get_live_versions(versions)
        self._by_text: dict[bytes, SchemaVersion] = {}
        self._by_spelling: dict[Hashable, SchemaVersion] = {}
        digests = [get_known_digest(version.info) if version.info else None for version in self.live]
        # Versions from Git have different digests, so none of them has to be read.
        self._is_from_git = None not in digests
        self._by_content: dict[bytes, SchemaVersion] | None = None
        if self._is_from_git:
            self._by_content = {digest: version for digest, version in zip(digests, self.live, strict=True) if digest}

    @property
    def latest(self) -> SchemaVersion | None:
        """The newest live version, or None without live versions."""
        return self.live[-1] if self.live else None

    def find(self, info: SchemaInfo) -> SchemaVersion | None:
        """Return the version with the content of `info`: with the same bytes, else the oldest with the same identity.

        Otherwise return the oldest that is the same primitive in another client's spelling, which a broker treats as another
        version, or None.
        """
        if self._is_from_git and self._by_content is not None and (digest := get_known_digest(info)):
            version = self._by_content.get(digest)
            if version is not None or not formats.spec(info).has_spellings:
                return version
        if not self._by_text:
            for candidate in self.live:
                if candidate.info is not None:
                    self._by_text.setdefault(_get_text_digest(candidate.info), candidate)
        # Nearly every version matches by its text; only the others have to be parsed.
        version = self._by_text.get(_get_text_digest(info))
        if version is not None or not self.live:
            return version
        if self._by_content is None:
            self._by_content = {}
            for candidate in self.live:
                if candidate.info is not None:
                    self._by_content.setdefault(_compute_content_digest(candidate.info), candidate)
        version = self._by_content.get(_compute_content_digest(info))
        if version is None and formats.spec(info).has_spellings:
            if not self._by_spelling:
                for candidate in self.live:
                    if candidate.info is not None and formats.spec(candidate.info).has_spellings:
                        self._by_spelling.setdefault(_spelling_key(candidate.info), candidate)
            return self._by_spelling.get(_spelling_key(info))
        return version


def _get_text_digest(info: SchemaInfo) -> bytes:
    """Return the digest of a definition's text, which is computed once, and not read if the digest is known."""
    if info.text_digest is None:
        # The properties of a KEY_VALUE include the types of its key and value and its encoding, so they belong to the content.
        object.__setattr__(info, "text_digest", compute_text_digest(info, _list_upload_properties(info)))
        assert info.text_digest  # noqa: S101  it was computed
    return info.text_digest


def _compute_content_digest(info: SchemaInfo) -> bytes:
    """Compute a digest that two definitions share exactly if they are one version; unparsable ones compare by bytes."""
    try:
        return compute_digest(info)
    except InvalidSchema:
        return hash_identity(info.type, info.schema)


def _spelling_key(info: SchemaInfo) -> Hashable:
    # With the charset, so that messages in one charset are never read in another.
    declared = formats.spec(info).to_declared(info)
    return declared.schema, declared.properties.get(CHARSET)


class Generations:
    """Git's versions of one topic, searchable by the entries of a registry's version list."""

    def __init__(self, versions: Sequence[SchemaVersion]) -> None:
        ends = [index for index, version in enumerate(versions) if version.info is None]
        # For each generation that ended: the number of its tombstone, and its contents.
        self._ended = [(versions[end].number, VersionIndex(versions[:end])) for end in ends]
        self._newest = VersionIndex(versions)

    def find(self, entry: SchemaVersion) -> SchemaVersion | None:
        """Return Git's version with the content of `entry`, in the generation of the entry's number, or None."""
        if entry.info is None:
            return None
        contents = next((ended for tombstone, ended in self._ended if entry.number <= tombstone), self._newest)
        return contents.find(entry.info)


def content_identity(info: SchemaInfo) -> Hashable:
    """Return a key that two definitions share exactly if they are one version; unparsable ones compare by bytes."""
    try:
        return formats.identity(info)
    except InvalidSchema:
        return info.type, info.schema


def is_stored_alike(left: SchemaInfo, right: SchemaInfo) -> bool:
    """Return whether a registry stores two definitions alike, except for the properties of uploads; known texts are not read."""
    return _get_text_digest(left) == _get_text_digest(right)


def has_same_text(left: SchemaInfo, right: SchemaInfo) -> bool:
    """Return whether two definitions are equal, including doc, aliases and properties.

    Layout, the properties of uploads, the names that clients give to the key and value of a KEY_VALUE, and a client's spelling of a
    primitive do not count.
    """
    if is_stored_alike(left, right):
        return True
    left_properties, right_properties = _declared_properties(left), _declared_properties(right)
    left = formats.spec(left).to_declared(replace(left, properties=left_properties))
    right = formats.spec(right).to_declared(replace(right, properties=right_properties))
    if left == right:
        return True
    try:
        return formats.has_same_text(left, right)
    except (InvalidSchema, ValueError):
        return False


def _declared_properties(info: SchemaInfo) -> dict[str, str]:
    names = _list_upload_properties(info) | _NOT_DECLARED
    return {key: value for key, value in info.properties.items() if key not in names}


def make_upload(version: SchemaVersion, properties: Mapping[str, str] = EMPTY) -> SchemaInfo:
    """Return the upload of `version` to a registry: its definition with its commit and `properties` of the target."""
    if version.info is None:
        raise ValueError(f"version {version.number} is a tombstone and cannot be uploaded")
    info = add_target_properties(version.info, properties)
    if version.commit is None:
        return info
    return info.add_properties({COMMIT_PROPERTY: version.commit.id})


def add_target_properties(info: SchemaInfo, properties: Mapping[str, str]) -> SchemaInfo:
    """Return a definition with the properties of a target, and their names; properties of the definition itself win."""
    declared = remove_upload_properties(info).properties
    stamped = {name: value for name, value in properties.items() if name not in declared}
    if not stamped:
        return info
    names = json.dumps(sorted(stamped), ensure_ascii=False)
    return info.add_properties({**stamped, STAMPED_PROPERTY: names})


def get_upload_commit(info: SchemaInfo | None) -> str | None:
    """Return the id of the commit in a definition that `apply` uploaded, or None for every other definition."""
    commit_id = info.properties.get(COMMIT_PROPERTY, "") if info else ""
    return commit_id if _COMMIT_ID.fullmatch(commit_id) else None


def remove_upload_properties(info: SchemaInfo) -> SchemaInfo:
    """Return `info` without the properties that `make_upload` adds."""
    return _without_properties(info, _list_upload_properties(info))


def is_upload_of(version: SchemaVersion, info: SchemaInfo) -> bool:
    """Return whether `info` is the upload of `version` to any target."""
    return make_upload(version) == _without_properties(info, {STAMPED_PROPERTY, *_list_stamped_names(info)})


def _list_upload_properties(info: SchemaInfo) -> set[str]:
    """Return the names of the properties that `make_upload` adds."""
    return {COMMIT_PROPERTY, STAMPED_PROPERTY, *_list_stamped_names(info)}


def _list_stamped_names(info: SchemaInfo) -> list[str]:
    """Return the names of the properties that an upload got from its target."""
    if STAMPED_PROPERTY not in info.properties:
        return []
    try:
        names = json.loads(info.properties[STAMPED_PROPERTY])
    except (ValueError, RecursionError):
        # Another party wrote it.
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _without_properties(info: SchemaInfo, names: Collection[str]) -> SchemaInfo:
    if info.properties.keys().isdisjoint(names):
        return info
    return replace(info, properties={key: value for key, value in info.properties.items() if key not in names})
