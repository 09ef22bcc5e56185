"""Render declarations for the topics of a registry, version by version, for `import`.

Each rendered file is read back with `declare` before it is written, and must have the registry's content. Topics that cannot be
declared are left out and reported.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from shlex import quote
from unicodedata import normalize

from schemactl.broker.upload import find_blocking_version
from schemactl.comparison.changes import content_identity, get_upload_commit
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.invisible_characters import describe_characters, find_invisible_characters
from schemactl.core.names import NamespaceName, TopicName, is_system_topic
from schemactl.core.policies import REPLICATION, SETTINGS, Policies
from schemactl.core.schema import WITHOUT_SCHEMA, Release, SchemaInfo, SchemaVersion, get_live_versions
from schemactl.core.wording import format_policy_value, format_version_numbers
from schemactl.declare.shared_types import CommonTypes
from schemactl.declare.writer import Files, Paths, declared_topic_files, find_misread_topics, namespace_text
from schemactl.deploy.refusals import describe_way_out
from schemactl.formats import get_pair, get_record_name, spec


@dataclass(frozen=True, slots=True)
class ImportNote:
    """A note for the user about a namespace or topic."""

    name: NamespaceName | TopicName
    message: str


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """One version of a topic as files by path; None removes a file of the previous version."""

    topic: TopicName
    version: SchemaVersion
    files: Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The files to write.

    Attributes:
        namespace_files: the files without versions: namespaces, topics without schema, and shared types.
        revisions: the versions of all topics, oldest first.
        notes: the notes, sorted by name.
        counts: the numbers of declared namespaces and topics.
        topics_with_other_numbers: the topics whose version numbers will differ from Git's if every revision is a separate commit.
        shared_files: the files of `namespace_files` with types that topics share.
        unexplained: the topics with older versions from commits of another history, which a plan leaves out.
    """

    namespace_files: Mapping[str, bytes]
    revisions: tuple[VersionFiles, ...]
    notes: tuple[ImportNote, ...]
    counts: tuple[int, int]
    topics_with_other_numbers: tuple[TopicName, ...] = ()
    shared_files: tuple[str, ...] = ()
    unexplained: tuple[TopicName, ...] = ()

    @property
    def latest(self) -> dict[str, bytes]:
        """All files after the last revision."""
        files: dict[str, bytes | None] = dict(self.namespace_files)
        for revision in self.revisions:
            files |= revision.files
        return {path: text for path, text in files.items() if text is not None}


def import_catalog(
    registered: Catalog,
    *,
    root: str,
    target: str,
    release: Release,
    declared: Catalog,
    exists: Callable[[str], bool],
    every_version: bool,
) -> ImportResult:
    """Render declarations of everything in `registered` that `declared` does not have.

    Args:
        registered: the content of the registry, by the names to declare.
        root: the folder for declarations, relative to the repository's top level.
        target: the target, for the commands in notes.
        release: the registry's Pulsar release.
        declared: the declarations so far, which stay unchanged.
        exists: returns whether a path exists.
        every_version: whether to declare every readable version of a topic, not only the latest.
    """
    importer = _Importer(registered, Paths(root, exists), root, target, release)
    importer.add_namespaces(declared)
    importer.add_topics(declared, every_version=every_version)
    # All revisions by time of upload. Revisions of one topic stay in order of number, even if the clock of the registry jumped.
    timed = []
    for revisions in importer.revisions:
        latest_ms = 0
        for revision in revisions:
            latest_ms = max(latest_ms, revision.version.timestamp_ms or 0)
            timed.append(((latest_ms, revision.topic, revision.version.number), revision))
    return ImportResult(
        {**importer.namespace_files, **importer.shared_files},
        tuple(revision for _, revision in sorted(timed, key=lambda entry: entry[0])),
        tuple(sorted(importer.notes, key=lambda note: str(note.name))),
        (importer.namespace_count, importer.topic_count),
        tuple(importer.topics_with_other_numbers),
        tuple(importer.shared_files),
        tuple(importer.unexplained),
    )


class _Importer:
    def __init__(self, registered: Catalog, paths: Paths, root: str, target: str, release: Release) -> None:
        self.registered = registered
        # The topics to declare, with the policies that can be declared.
        self.topics: dict[TopicName, Topic] = {}
        self.paths = paths
        self.root = root
        self.target = target
        self.release = release
        self.namespace_files: dict[str, bytes] = {}
        self.shared_types = CommonTypes((), paths.of_shared)
        self.shared_files: dict[str, bytes] = {}
        self.revisions: list[tuple[VersionFiles, ...]] = []
        self.notes: list[ImportNote] = []
        self.topics_with_other_numbers: list[TopicName] = []
        self.unexplained: list[TopicName] = []
        # The readable versions of topics with several kinds of events, oldest first, with the keys of their kinds.
        self.kind_versions: dict[TopicName, list[SchemaVersion]] = {}
        self.namespace_count = self.topic_count = 0

    def add_namespaces(self, declared: Catalog) -> None:
        """Add a file for every namespace that is not declared."""
        for name, namespace in sorted(self.registered.namespaces.items()):
            if name not in declared.namespaces:
                declarable = replace(namespace, policies=self._select_policies(name, namespace.policies))
                self.namespace_files[f"{self.paths.of_namespace(name)}.yaml"] = namespace_text(declarable)
                self.namespace_count += 1

    def _select_policies(self, name: NamespaceName | TopicName, policies: Policies) -> Policies:
        """Return the policies to declare, and note the settings that cannot be declared.

        The clusters of a namespace that only one cluster has are left out: with them, every target would have to be that cluster.
        """
        settings = {}
        for setting, value in policies.settings.items():
            row = SETTINGS[setting]
            if isinstance(name, NamespaceName) and setting == REPLICATION and len(value) < 2:
                continue
            problem = (
                row.wrong(value)
                if row.shape.fits(value)
                else f"{format_policy_value(value)} is not a value that it takes"
            )
            if problem:
                self.notes.append(ImportNote(name, f"left out its {setting}, {format_policy_value(value)}: {problem}"))
            else:
                settings[setting] = value
        if isinstance(name, TopicName) and policies.schema_validation_enforced is False:
            namespace = self.registered.namespaces.get(name.namespace_name)
            if namespace and not namespace.policies.schema_validation_enforced:
                # Brokers answer false for a topic without a value, whose declaration would change nothing.
                policies = replace(policies, schema_validation_enforced=None)
        return replace(policies, settings=settings)

    def add_topics(self, declared: Catalog, *, every_version: bool) -> None:
        """Add files for every topic that is not declared and can be."""
        stems: dict[TopicName, str] = {}
        lists: dict[TopicName, list[SchemaVersion]] = {}
        for topic in self._select_topics({name.schema_id for name in declared.topics}):
            if topic.schema is None or topic.schema.type in WITHOUT_SCHEMA:
                stems[topic.name] = self.paths.of_topic(topic.name)
                self.namespace_files |= declared_topic_files(topic, {}, stems[topic.name])
                self.topic_count += 1
                if topic.schema is not None:
                    message = (
                        f"declared without `schema`: the registry holds a schema of type {topic.schema.type.name}, which does not "
                        "describe messages, and keeps typed clients out"
                    )
                    self.notes.append(ImportNote(topic.name, message))
            elif versions := self._list_readable_versions(topic, every_version=every_version):
                stems[topic.name] = self.paths.of_topic(topic.name)
                lists[topic.name] = versions
                if kind_versions := find_kinds(get_live_versions(topic.versions)):
                    self.kind_versions[topic.name] = kind_versions
                    keys = ", ".join(dict.fromkeys(version.kind for version in kind_versions))
                    message = f"its versions alternate between records, so that it is declared with several kinds of events: {keys}"
                    self.notes.append(ImportNote(topic.name, message))
        self.shared_types = CommonTypes(
            (
                (name, version.info)
                for name, versions in lists.items()
                for version in self.kind_versions.get(name, versions)
                if version.info
            ),
            self.paths.of_shared,
        )
        versions_with_files: dict[TopicName, list[tuple[SchemaVersion, Files]]] = {name: [] for name in lists}
        depth = 0
        # One version of each topic at a time, because files can declare a topic only once.
        while layer := {name: versions[depth] for name, versions in lists.items() if depth < len(versions)}:
            files_by_name = self._make_files(layer, stems, strictly=not depth)
            for name, version in layer.items():
                if name in files_by_name:
                    versions_with_files[name].append((version, files_by_name[name]))
                elif not depth:
                    lists[name] = []  # older versions are useless without the latest version
            depth += 1
        for name, declared_versions in versions_with_files.items():
            if declared_versions:
                self.topic_count += 1
                declared_versions.reverse()
                revisions: list[VersionFiles] = []
                previous_files: Mapping[str, bytes] = {}
                for version, files in declared_versions:
                    removed_files = dict.fromkeys(previous_files.keys() - files.keys())
                    revisions.append(VersionFiles(name, version, {**files, **removed_files}))
                    previous_files = files
                self.revisions.append(tuple(revisions))
                self._note_surprises(name, [version for version, _ in declared_versions], every_version=every_version)

    def _select_topics(self, declared: set[str]) -> Iterator[Topic]:
        """Yield the topics to declare."""
        taken_ids = set(declared)
        composed = {normalize("NFC", schema_id): schema_id for schema_id in declared}
        # Of two topics with one name, the persistent one comes first, because its messages are retained.
        for name, topic in sorted(
            self.registered.topics.items(), key=lambda item: (item[0].schema_id, item[0].domain != "persistent")
        ):
            if name.schema_id in taken_ids:
                if name.schema_id not in declared:
                    first = next(other for other in self.topics if other.schema_id == name.schema_id)
                    self._leave_out(name, f"it shares its list of schemas with {first}, which is declared")
            elif not name.is_scalable and name.scalable in self.registered.topics:
                self._leave_out(
                    name, f"it shares its list of schemas with {name.scalable}, which is declared in its place"
                )
            elif is_system_topic(name):
                self._leave_out(name, "it is a system topic of Pulsar, which belongs to the brokers")
            elif characters := find_invisible_characters(name.topic):
                self._leave_out(name, f"its name {str(name)!a} contains {describe_characters(characters)}")
            elif normalize("NFC", name.schema_id) in composed:
                alike = composed[normalize("NFC", name.schema_id)]
                self._leave_out(
                    name, f"its name {str(name)!a} and {alike!a} are equal after Unicode normalization (NFC)"
                )
            elif topic.deleted:
                self._leave_out(
                    name, "it has a schema, but the topic itself does not exist: create it, and import again"
                )
            else:
                self.topics[name] = replace(topic, policies=self._select_policies(name, topic.policies))
                taken_ids.add(name.schema_id)
                composed[normalize("NFC", name.schema_id)] = name.schema_id
                yield self.topics[name]

    def _list_readable_versions(self, topic: Topic, *, every_version: bool) -> list[SchemaVersion]:
        """Return the versions to declare, newest first, or [] if the topic is left out: a broker stores pairs that no client can read."""
        readable_versions: list[SchemaVersion] = []
        for version in [*reversed(get_live_versions(topic.versions))][: None if every_version else 1]:
            try:
                if version.info:
                    get_pair(version.info.load())
            except InvalidSchema as error:
                reason = f"version {version.number}: no client can read it: {error.message}"
                self._leave_out(topic.name, reason, all_of_it=not readable_versions)
                if not readable_versions:
                    return []
                continue
            readable_versions.append(version)
        return readable_versions

    def _make_files(
        self, layer: Mapping[TopicName, SchemaVersion], stems: Mapping[TopicName, str], *, strictly: bool
    ) -> dict[TopicName, Files]:
        """Render the files of these versions, read them back, and note versions that cannot be declared."""
        files_by_name: dict[TopicName, Files] = {}
        reasons: dict[TopicName, str] = {}
        ways = ((True, self.shared_types), (True, None), (False, None))
        for printed, shared in ways if self.shared_types.files else ways[1:]:
            tried: dict[TopicName, tuple[Files, list[SchemaInfo]]] = {}
            for name, version in layer.items():
                if name not in files_by_name:
                    # The version itself under "", or the newest version of each kind up to it, in the order in which the kinds
                    # began, so that each further version is the next number of Git.
                    infos = {
                        kind_version.kind: kind_version.info
                        for kind_version in self.kind_versions.get(name, [version])
                        if kind_version.info and kind_version.number <= version.number
                    }
                    try:
                        files = declared_topic_files(
                            self.topics[name], infos, stems[name], printed=printed, shared=shared
                        )
                        tried[name] = files, [*infos.values()]
                    except InvalidSchema as error:
                        reasons[name] = error.message
            misread_topics = find_misread_topics(tried, root=self.root, release=self.release, strictly=strictly)
            for name, (files, _) in tried.items():
                if name not in misread_topics:
                    # Shared types do not belong to a version: the first and the last version need them.
                    version_files = {path: text for path, text in files.items() if path not in self.shared_types.files}
                    self.shared_files |= {path: files[path] for path in files.keys() - version_files.keys()}
                    files_by_name[name] = version_files
            reasons |= misread_topics
        for name, version in layer.items():
            if name not in files_by_name:
                way_out = ""
                if strictly and find_blocking_version([version], self.release):
                    delete = f"`schemactl registry delete {quote(name.schema_id)} --force-delete --target {quote(self.target)}`"
                    way_out = (
                        f". The topic is blocked, because brokers of Pulsar {self.release} reject every schema after this one: "
                        f"{describe_way_out(delete)}"
                    )
                self._leave_out(name, f"version {version.number}: {reasons[name]}{way_out}", all_of_it=strictly)
        return files_by_name

    def _leave_out(self, name: TopicName, reason: str, *, all_of_it: bool = True) -> None:
        subject = "left out" if all_of_it else "left out a version"
        self.notes.append(ImportNote(name, f"{subject}: {reason}"))

    def _note_surprises(self, name: TopicName, declared: Sequence[SchemaVersion], *, every_version: bool) -> None:
        """Record unexpected facts about a topic, of which the versions `declared` are declared: in notes, and lists of such topics."""
        topic = self.registered.topics[name]
        current = get_live_versions(topic.versions)
        if current[0].number:
            message = (
                f"{format_version_numbers(range(current[0].number))} can no longer be read: a tombstone came after"
            )
            self.notes.append(ImportNote(name, message))
        if every_version:
            git_numbers: dict[object, int] = {}
            pairs = [
                (
                    version.number,
                    git_numbers.setdefault(
                        content_identity(spec(version.info).to_declared(version.info)), len(git_numbers)
                    ),
                )
                for version in declared
                if version.info
            ]
            if differing := [f"v{number} is Git's v{git}" for number, git in pairs if number != git]:
                self.notes.append(ImportNote(name, f"the registry's {', '.join(differing)}"))
        elif any(get_upload_commit(version.info) for version in current[:-1]):
            message = (
                "older versions were uploaded by `apply` from commits of another history, so that `plan` will fail for "
                "this topic: import with --commit-each-version instead"
            )
            self.notes.append(ImportNote(name, message))
            self.unexplained.append(name)

        # Whether Git will number the declared versions as the registry does.
        numbers = [version.number for version in topic.versions]
        if name in self.kind_versions and len(declared) == 1:
            # The newest version of each kind, in the order of the keys.
            declared = [*{version.kind: version for version in self.kind_versions[name]}.values()]
        contents = {
            content_identity(spec(version.info).to_declared(version.info)) for version in declared if version.info
        }
        if numbers != list(range(len(contents))) or [version.number for version in declared] != numbers:
            self.topics_with_other_numbers.append(name)


def find_kinds(versions: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    """Return the versions with the keys of the kinds of events that they belong to, or [] for a topic with one schema.

    Versions belong to kinds by the full names of their records, if the names alternate: one of them returns after another. Otherwise
    a new name is a rename.
    """
    records = [get_record_name(version.info) if version.info else "" for version in versions]
    changes = [record for record, before in zip(records, [None, *records], strict=False) if record != before]
    if not all(records) or len(changes) == len(set(changes)):
        return []
    keys: dict[str, str] = {}
    for record in records:
        if record not in keys:
            words = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|\W+"
            base = re.sub(words, "_", record.rpartition(".")[2], flags=re.ASCII)
            key = re.sub(r"^[^a-z]+", "", base.lower()) or "kind"
            taken = {*keys.values(), *keyword.kwlist}
            candidates = (f"{key}{'' if number == 1 else f'_{number}'}" for number in count(1))
            keys[record] = next(candidate for candidate in candidates if candidate not in taken)
    return [replace(version, kind=keys[record]) for version, record in zip(versions, records, strict=True)]
