"""Read all declarations into one `Catalog`, or report every problem of the run; read overlays; cache valid files.

The cache knows a file as long as it and every file of its definitions have the same contents (Git's blob ids). Its declarations
are cached as plain values; definitions and the places of all parts are read from the file on use. Rules about several files
(names declared twice) are not cached: they are checked for all declarations on each run.
"""

from __future__ import annotations

import marshal
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from schemactl.core.catalog import Catalog, Client, Kind, KindName, Metadata, Namespace, Topic
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.escaping import escape_path
from schemactl.core.findings import Finding
from schemactl.core.garbage_collection import pause_garbage_collection, resume_garbage_collection
from schemactl.core.json_pointer import split_pointer
from schemactl.core.names import NamespaceName, TopicName, select_topics
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import EMPTY, DeferredInfo, Locator, Release, SchemaInfo, SchemaType
from schemactl.core.wording import describe_value
from schemactl.declare.definition import Definitions, Include, ResolvedDefinition
from schemactl.declare.document import (
    HOMES,
    BrokenDocument,
    Documents,
    Misfit,
    SchemaDeclaration,
    TopicDocument,
    build_overlay,
    check_scalable_topic,
    check_settings,
    limit_problems,
    locate_misfits,
    read_documents,
    read_shape,
)
from schemactl.declare.files import (
    MAX_PROBLEMS,
    SAMPLE_SUFFIXES,
    SUFFIXES,
    YAML_SUFFIXES,
    Files,
    decode,
    describe_folders,
    obstacle,
    read_bytes,
)
from schemactl.declare.project import place_in_project
from schemactl.declare.references import AvroFile
from schemactl.declare.yaml_parser import YamlDocument, YamlText, read_yaml
from schemactl.formats import find_problems as find_format_problems
from schemactl.formats import get_record_name


@dataclass(frozen=True, slots=True)
class BrokenDeclaration:
    """A declaration with problems, in its file or in a file of its definition.

    Attributes:
        name: the topic or namespace that it declares, or None if that cannot be read.
        path: the file that declares it.
        problems: its problems.
    """

    name: TopicName | NamespaceName | None
    path: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """The result of reading the files of a project.

    Attributes:
        catalog: every namespace and topic without problems.
        problems: all problems, ordered by place; if there are any, the catalog is incomplete.
        broken: the declarations with problems, which are not in the catalog.
        dependencies: by topic, the files of its definition except the YAML file, including missing ones.
        findings: the findings about valid declarations.
        avro_files: by topic, the Avro files of its definition, except for topics of files that a cache knows.
        samples: the files of sample messages, in folders named `samples`.
    """

    catalog: Catalog
    problems: tuple[Problem, ...] = ()
    dependencies: Mapping[TopicName, frozenset[str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    avro_files: Mapping[TopicName, tuple[AvroFile, ...]] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    broken: tuple[BrokenDeclaration, ...] = ()

    @property
    def broken_topics(self) -> frozenset[TopicName]:
        """The topics whose own declaration or definition has problems."""
        return frozenset(broken.name for broken in self.broken if isinstance(broken.name, TopicName))

    @property
    def common_problems(self) -> tuple[Problem, ...]:
        """The problems of no declaration, such as a root without files: they concern every topic."""
        problems_of_declarations = {problem for broken in self.broken for problem in broken.problems}
        return tuple(problem for problem in self.problems if problem not in problems_of_declarations)

    def select_broken(
        self, topics: Collection[TopicName] | None = None, paths: Sequence[str] = ()
    ) -> tuple[BrokenDeclaration, ...]:
        """Return the broken declarations that work on `topics`, or on all topics (None), needs: theirs, and their namespaces'.

        Broken declarations with a problem at or below one of `paths` are also needed.
        """
        if topics is None:
            return self.broken
        needed_names = {*topics, *(name.namespace_name for name in topics)}
        return tuple(
            broken
            for broken in self.broken
            if broken.name in needed_names
            or any(is_at(path, paths) for path in (broken.path, *(problem.source.path for problem in broken.problems)))
        )

    def find_topics_at(self, paths: Sequence[str]) -> frozenset[TopicName]:
        """Return the topics that files at or below `paths` declare or define, and all topics of namespaces that they declare."""
        namespaces = {
            name
            for name, namespace in self.catalog.namespaces.items()
            if namespace.source and is_at(namespace.source.path, paths)
        }
        return frozenset(
            name
            for name, topic in self.catalog.topics.items()
            if name.namespace_name in namespaces
            or (topic.source and is_at(topic.source.path, paths))
            # A definition may be made of a whole folder.
            or any(
                is_at(path, paths) or any(is_at(other, (path,)) for other in paths)
                for path in self.dependencies.get(name, ())
            )
        ) | frozenset(broken.name for broken in self.select_broken((), paths) if isinstance(broken.name, TopicName))

    def filter_readable(self, topics: Iterable[TopicName]) -> frozenset[TopicName]:
        """Return the topics that are not broken and whose namespace is not broken."""
        broken_names = {broken.name for broken in self.broken}
        return frozenset(topic for topic in topics if broken_names.isdisjoint((topic, topic.namespace_name)))


def is_at(path: str, paths: Sequence[str]) -> bool:
    """Return whether a path of the repository is one of `paths` or below one of them; "" is the top."""
    return any(not above or path == above or path.startswith(f"{above}/") for above in paths)


def describe_unused_paths(declared: Declared, paths: Sequence[str], topics: Collection[TopicName]) -> Iterator[str]:
    """Yield a note if `paths` select none of the topics."""
    if not topics and not declared.select_broken((), paths):
        yield f"{', '.join(path or '.' for path in paths)}: no selected topic is declared or defined there"


def describe_broken(declarations: Iterable[BrokenDeclaration]) -> Iterator[str]:
    """Yield a line for each problem of declarations that nothing of the requested work needs, and their number if there are many."""
    problems = sorted({problem for broken in declarations for problem in broken.problems})
    yield from (
        f"not requested, and it cannot be read: {problem.source}: {problem.message}"
        for problem in problems[:MAX_PROBLEMS]
    )
    if len(problems) > MAX_PROBLEMS:
        yield f"{len(problems) - MAX_PROBLEMS:,} more problems of declarations that were not requested"


_MAX_OUTSIDE_FILES: Final = 200
"""Maximum number of files that are read to find declarations outside of the roots."""

_DECLARED_NAME: Final = re.compile(
    r"""^(?:namespace|topic):[ ]+["']?((?:(?:(?:non-)?persistent|topic)://)?[^\s/"'#:]+(?:/[^\s/"'#:]+){1,2})["']?[ ]*(?:\#.*)?$""",
    re.MULTILINE,
)
"""A line that declares a namespace or a topic by its full name. In files of other tools, such keys have names without a slash."""


def read_valid_catalog(files: Files, project: Project) -> Catalog:
    """Read all declarations of the project, none of which may have a problem.

    Raises:
        DeclarationError: all problems of all files.
    """
    declared = read(files, project)
    if declared.problems:
        raise DeclarationError(declared.problems)
    return declared.catalog


def read(files: Files, project: Project, *, cache: ValidationCache | None = None) -> Declared:
    """Read all declarations of the project, and all their problems.

    A file that `cache` knows is not checked again, and is read only if its definitions or places are used.
    """
    paths = sorted(files.paths())
    problems: list[Problem] = list(_find_empty_roots(files, project, paths))
    documents: list[Documents | KnownFile] = []
    samples = []
    unreadable: list[BrokenDeclaration] = []
    with pause_garbage_collection():
        for path in (path for path in paths if in_roots(path, project)):
            if path.endswith(YAML_SUFFIXES) or not path.endswith(SUFFIXES):
                reason = obstacle(files, path)
                if reason is not None:
                    problem = Problem(Source(escape_path(path)), reason, "put the file itself here, or remove the link")
                    unreadable.append(BrokenDeclaration(None, path, (problem,)))
                elif path.endswith(YAML_SUFFIXES) and escape_path(path) != path:
                    message = (
                        "the name of this file is not UTF-8, or contains a line break or another control character"
                    )
                    problem = Problem(Source(escape_path(path)), message, "rename it")
                    unreadable.append(BrokenDeclaration(None, path, (problem,)))
                elif path.endswith(YAML_SUFFIXES):
                    documents.append((cache and cache.known(path)) or _read_documents(files, path))
                elif path.endswith(SAMPLE_SUFFIXES) and "/samples/" in f"/{path}":
                    samples.append(path)
        declared = _Builder(files, project, cache).build(documents)
    problems += [problem for broken in unreadable for problem in broken.problems]
    return replace(
        declared,
        problems=tuple(sorted({*problems, *declared.problems})),
        samples=tuple(samples),
        broken=(*declared.broken, *unreadable),
    )


def in_roots(path: str, project: Project, *, previous: bool = False) -> bool:
    """Return whether `path` is a file of declarations: below a root, not hidden, and not the project file or the waiver file.

    With `previous`, the roots of older commits count as well.
    """
    if path in (project.path, project.waivers):
        return False
    for root in (*project.roots, *(project.previous_roots if previous else ())):
        prefix = root + "/" if root else ""
        if path.startswith(prefix) or path == root:
            return not any(part.startswith(".") for part in path[len(prefix) :].split("/"))
    return False


def build(documents: Iterable[Documents], files: Files, project: Project, *, has_targets: bool = True) -> Declared:
    """Build the catalog of `documents`, and read the definitions that they name from `files`.

    Without `has_targets`, the documents are for a registry of any release, and not for the project's targets.
    """
    return _Builder(files, project, has_targets=has_targets).build(documents)


class _Builder:
    """Builds the catalog in one pass over all documents."""

    def __init__(
        self, files: Files, project: Project, cache: ValidationCache | None = None, *, has_targets: bool = True
    ) -> None:
        self.has_targets = has_targets
        self.project = project
        self.cache = cache
        self.definitions = cache.definitions if cache else Definitions(files, include=Include.of(project))
        self.namespaces: dict[NamespaceName, Namespace] = {}
        self.topics: dict[TopicName, Topic] = {}
        self.topics_by_schema: dict[str, Topic] = {}
        self.dependencies: dict[TopicName, frozenset[str]] = {}
        # The problems of declarations, by name and file.
        self.problems: dict[tuple[TopicName | NamespaceName | None, str], list[Problem]] = defaultdict(list)
        self.findings: list[Finding] = []
        # By namespace, also for the definitions of known files, which are read later.
        self.schema_properties: dict[NamespaceName, Mapping[str, str]] = cache.schema_properties if cache else {}
        self.avro_files: dict[TopicName, tuple[AvroFile, ...]] = {}

    def build(self, documents: Iterable[Documents | KnownFile]) -> Declared:
        documents = list(documents)
        unknown_files = (file for file in documents if isinstance(file, Documents))
        topics = (
            document for file in unknown_files for document in file.documents if isinstance(document, TopicDocument)
        )
        declarations = [declaration for topic in topics for declaration in topic.declarations]
        if any(map(is_compiled, declarations)):
            resume_garbage_collection()
        self.definitions.prepare(declarations)
        for file in documents:
            for namespace in _list_namespaces(file):
                self.schema_properties.setdefault(namespace.name, namespace.schema_properties)
        for file in documents:
            if isinstance(file, KnownFile):
                self._add_known_file(file)
                continue
            for document in file.broken or ([BrokenDocument(None, file.problems)] if file.problems else []):
                self._add_problems(document.name, file.path, document.problems)
                for schema in file.unread:
                    if schema.document == document.number:
                        self._add_problems(document.name, file.path, self.definitions.check_paths(schema))
            cacheable: list[tuple[Document, tuple[Kind, ...], tuple[str, ...]]] = []
            for declaration in file.documents:
                paths: tuple[str, ...] | None = ()
                kinds: tuple[Kind, ...] = ()
                if isinstance(declaration, TopicDocument):
                    paths = self._add_topic(declaration)
                    kinds = self.topics[declaration.topic.name].kinds if paths is not None else ()
                else:
                    self._add_namespace(declaration)
                if paths is not None:
                    cacheable.append((declaration, kinds, paths))
            if self.cache and len(cacheable) == len(file.documents) and not (file.problems or file.unread):
                self.cache.add(file.path, cacheable)
        for topic in self.topics.values():
            self._add_problems(topic.name, _get_path(topic), _check_client_targets(topic, self.project))
        broken = tuple(
            BrokenDeclaration(name, path, tuple(sorted(set(problems))))
            for (name, path), problems in self.problems.items()
        )
        broken_names = {declaration.name for declaration in broken}
        return Declared(
            Catalog(
                {name: entry for name, entry in self.namespaces.items() if name not in broken_names},
                {name: topic for name, topic in self.topics.items() if name not in broken_names},
            ),
            tuple(sorted({problem for declaration in broken for problem in declaration.problems})),
            self.dependencies,
            tuple(finding for finding in self.findings if finding.topic not in broken_names),
            self.avro_files,
            broken=broken,
        )

    def _add_problems(self, name: TopicName | NamespaceName | None, path: str, problems: Iterable[Problem]) -> None:
        if problems := list(problems):
            self.problems[name, path] += problems

    def _add_namespace(self, namespace: Namespace) -> None:
        first = self.namespaces.setdefault(namespace.name, namespace)
        if first is not namespace and namespace.source:
            message = f"the namespace {first.name} is declared for the second time; first at {first.source}"
            problem = Problem(namespace.source, message, "keep one of the two")
            self._add_problems(namespace.name, namespace.source.path, [problem])

    def _add_known_file(self, file: KnownFile) -> None:
        """Add the declarations of a file that the cache knows."""
        for declared, dependencies in file.declared:
            if isinstance(declared, Namespace):
                self._add_namespace(declared)
            elif self._is_first(declared):
                self.topics[declared.name] = declared
                if declared.schema is not None:
                    self.dependencies[declared.name] = dependencies

    def _is_first(self, topic: Topic) -> bool:
        """Return whether no earlier topic has this name, or shares its schemas in Pulsar; otherwise add a problem."""
        first = self.topics_by_schema.setdefault(topic.name.schema_id, topic)
        if first is not topic and topic.source:
            if topic.name == first.name:
                message = f"{topic.name} is declared for the second time; first at {first.source}"
                fix = "keep one of the two"
            else:
                message = f"{topic.name} and {first.name} ({first.source}) share one list of schemas in Pulsar"
                fix = "keep one of the two, or give one another name"
            problem = Problem(topic.source, message, fix)
            # Either of the two may be the wrong one.
            self._add_problems(first.name, _get_path(first), [problem])
            self._add_problems(topic.name, topic.source.path, [problem])
        return first is topic

    def _add_topic(self, document: TopicDocument) -> tuple[str, ...] | None:
        """Add a topic, and return the files of its definition, or None if the cache must not keep them."""
        topic = document.topic
        if not self._is_first(topic):
            return None
        # It depends on the targets, so the cache keeps no scalable topic.
        if self.has_targets:
            self._add_problems(topic.name, _get_path(topic), _find_release_problems(topic, self.project))
        if not document.declarations:
            self.topics[topic.name] = topic
            return None if topic.name.is_scalable else ()
        defaults = self.schema_properties.get(topic.name.namespace_name, EMPTY)
        document = document.with_default_properties(defaults)
        results = [self._read_schema(topic, declaration) for declaration in document.declarations]
        infos = [info for info, _ in results if info]
        clients = read_clients(document, self.definitions, self.project)
        problems = [*clients.problems]
        for client in clients.clients:
            problems += _find_schema_problems(client.schema, self.project.release) if client.schema else ()
        is_complete = len(infos) == len(results)
        if document.kinds and is_complete:
            problems += find_kind_problems(document, infos)
        self._add_problems(topic.name, _get_path(topic), problems)
        self.dependencies[topic.name] |= clients.paths
        if not is_complete:
            return None
        topic = replace(topic, schema=infos[-1], clients=clients.clients)
        self.topics[topic.name] = with_kinds(topic, document, infos)
        is_sound = all(is_sound for _, is_sound in results) and not problems
        is_cacheable = (
            is_sound
            and not topic.name.is_scalable
            and not document.clients
            and not any(map(is_compiled, document.declarations))
        )
        # The type of a payload is known only once its file is read.
        is_cacheable = is_cacheable and all(declaration.payload is None for declaration in document.declarations)
        return tuple(self.dependencies[topic.name]) if is_cacheable else None

    def _read_schema(self, topic: Topic, declaration: SchemaDeclaration) -> tuple[SchemaInfo | None, bool]:
        """Return a schema of a topic, or None if it cannot be read, and whether it has neither problems nor findings."""
        name = topic.name
        definition = self.definitions.read(declaration, topic.get_rendering(self.project.rendering))
        self.dependencies[name] = self.dependencies.get(name, frozenset()) | definition.paths
        self.avro_files[name] = (*self.avro_files.get(name, ()), *definition.avro_files)
        problems = list(definition.problems)
        if definition.info:
            problems += _find_schema_problems(definition.info, self.project.release)
        findings = list(_find_unused_references(name, declaration, definition))
        self._add_problems(name, _get_path(topic), problems)
        self.findings += findings if definition.info else []
        return definition.info, not problems and not findings


def with_kinds(topic: Topic, document: TopicDocument, infos: Iterable[SchemaInfo]) -> Topic:
    """Return the topic with the kinds of its document, which have these definitions; without kinds, the topic itself."""
    if not document.kinds:
        return topic
    kinds = tuple(
        Kind(key, info, get_record_name(info), document.readers.get(key, "latest"))
        for key, info in zip(document.kinds, infos, strict=True)
    )
    return replace(topic, kinds=kinds, kind_names=tuple(KindName(kind.key, kind.record) for kind in kinds))


def find_kind_problems(document: TopicDocument, infos: Iterable[SchemaInfo]) -> Iterator[Problem]:
    """Yield a problem for each kind without a record, or with the record name of an earlier kind: versions belong to kinds by it.

    Args:
        document: the document with the kinds.
        infos: the definitions of the kinds, in the same order.
    """
    first_keys: dict[str, str] = {}
    for (key, declaration), info in zip(document.kinds.items(), infos, strict=True):
        record = get_record_name(info)
        source = declaration.definition_source
        if not record:
            message = (
                f"the kind `{key}` has no record at its root, and a version belongs to a kind by the name of its record"
            )
            yield Problem(source, message, "wrap it in a record, or declare a separate topic for it")
            continue
        first_key = first_keys.setdefault(record, key)
        if first_key != key:
            message = f"the kinds `{first_key}` and `{key}` both have the record {escape_path(record)}, so no version shows which of the two it is"
            yield Problem(source, message, "give one record another name, or remove one of the two kinds")


class ReadClients(NamedTuple):
    """The clients of a topic with their own definitions, and the files of these definitions."""

    clients: tuple[Client, ...]
    problems: tuple[Problem, ...] = ()
    paths: frozenset[str] = frozenset()


def read_clients(document: TopicDocument, definitions: Definitions, project: Project) -> ReadClients:
    """Read the clients of the topic, with their own definitions, each in the form of the client's language."""
    topic = document.topic
    if not document.clients:
        return ReadClients(topic.clients)
    rendering = topic.get_rendering(project.rendering)
    languages = {client.name: client.client_language or rendering for client in topic.clients}
    results = {name: definitions.read(declaration, languages[name]) for name, declaration in document.clients.items()}
    clients = tuple(
        replace(client, schema=results[client.name].info) if client.name in results else client
        for client in topic.clients
    )
    problems = tuple(problem for result in results.values() for problem in result.problems)
    return ReadClients(clients, problems, frozenset().union(*(result.paths for result in results.values())))


def _check_client_targets(topic: Topic, project: Project) -> Iterator[Problem]:
    """Yield a problem for each unknown target of a client, and for each client that runs only on targets without the topic."""
    if not any(client.targets for client in topic.clients):
        return
    topic_targets = [target.name for target in project.targets.values() if select_topics([topic.name], target.globs)]
    for index, client in enumerate(topic.clients):
        pointer = f"/clients/{index}/targets"
        unknown_indexes = [number for number, target in enumerate(client.targets) if target not in project.targets]
        for number in unknown_indexes:
            if source := topic.locate(f"{pointer}/{number}"):
                names = ", ".join(project.targets)
                fix = f"the targets are {names}" if names else "declare it, or remove the key"
                yield Problem(source, f"{project.path} has no target `{escape_path(client.targets[number])}`", fix)
        if client.targets and not unknown_indexes and topic_targets and {*topic_targets}.isdisjoint(client.targets):
            message = f"{topic.name} is not on {' or '.join(client.targets)}, where this client runs"
            if source := topic.locate(pointer):
                yield Problem(source, message, f"the topic is on {', '.join(topic_targets)}")


def _find_release_problems(topic: Topic, project: Project) -> Iterator[Problem]:
    """Yield the problem of a scalable topic that is on a target, or without targets in a project, of a release without them."""
    if not topic.name.is_scalable or topic.source is None:
        return
    fix = 'write pulsar: "5.0"{} if that is what the brokers run'
    if not project.targets and project.release < Release.R5_0:
        message = f"{topic.name} is a scalable topic, which Pulsar {project.release} does not have"
        yield Problem(
            topic.source, message, f"{fix.format(f' in {escape_path(project.path)}')}, or declare a persistent topic"
        )
    for target in project.targets.values():
        release = target.release or project.release
        if release < Release.R5_0 and select_topics([topic.name], target.globs):
            message = (
                f"{topic.name} is a scalable topic, which Pulsar {release} on the target {target.name} does not have"
            )
            way_out = f"name the topic in `exclude` of {target.name}"
            yield Problem(
                topic.source,
                message,
                f"{fix.format(f' for {target.name} in {escape_path(project.path)}')}, or {way_out}",
            )


def is_compiled(declaration: SchemaDeclaration) -> bool:
    """Return whether protoc compiles the definition, its key or its value: the result depends on more than the files."""
    return (
        declaration.is_proto
        or declaration.proto is not None
        or any(is_compiled(half) for half in (declaration.key, declaration.value) if half)
    )


def _find_schema_problems(info: SchemaInfo, release: Release) -> Iterator[Problem]:
    """Yield the problems of the definition `info` for the release, with their places."""
    for problem in find_format_problems(info, release):
        source = info.locate(problem.pointer)
        if source is not None:
            yield Problem(source, problem.message, problem.fix)


def _list_namespaces(file: Documents | KnownFile) -> Iterator[Namespace]:
    if isinstance(file, KnownFile):
        yield from (declared for declared, _ in file.declared if isinstance(declared, Namespace))
    else:
        yield from (document for document in file.documents if isinstance(document, Namespace))


def _get_path(topic: Topic) -> str:
    return topic.source.path if topic.source else ""


def _find_unused_references(
    topic: TopicName, declaration: SchemaDeclaration, definition: ResolvedDefinition
) -> Iterator[Finding]:
    for parts in definition.unused:
        yield Finding(
            "REFERENCE_UNUSED",
            "warning",
            "declaration",
            topic,
            declaration.locate(*parts),
            f"{topic} lists a file under `references` that its definition does not use.",
            "Remove it from `references`, or list its folder: the definition need not use all files of a folder.",
        )


def _read_documents(files: Files, path: str) -> Documents:
    try:
        return read_documents(path, read_bytes(files, path))
    except DeclarationError as error:
        return Documents(path, (), error.problems)


def _find_empty_roots(files: Files, project: Project, paths: list[str]) -> Iterator[Problem]:
    """Yield a problem for each root without files, unless all are empty; a previous root may be empty."""
    has_files = [any(path.startswith(root + "/") or not root for path in paths) for root in project.roots]
    for index, root in enumerate(project.roots):
        if any(has_files) and not has_files[index] and root not in project.previous_roots:
            text = YamlText(project.path, read_bytes(files, project.path))
            folders = describe_folders(files, project.folder)
            yield Problem(
                text.locate(0, ("roots", str(index))),
                f"there is no file in the folder `{root}`",
                f"name a folder that contains declarations, or remove the entry{f'; {folders}' if folders else ''}",
            )


# Declarations outside of the roots


def describe_outside_declarations(files: Files, project: Project, paths: Iterable[str]) -> Iterator[str]:
    """Yield a note for each of the `paths` that declares topics or namespaces of the project outside of its roots.

    Overlays, hidden files and files of a project in a subfolder are left out.
    """
    prefix = f"{project.folder}/" if project.folder else ""
    file_name = posixpath.basename(project.path)
    paths = sorted(path for path in paths if path.startswith(prefix))
    other_folders = {
        posixpath.dirname(path) for path in paths if posixpath.basename(path) == file_name and path != project.path
    }
    overlays = {path for target in project.targets.values() for path in target.overlays}
    candidates = (
        path
        for path in paths
        if path.endswith(YAML_SUFFIXES)
        and not in_roots(path, project, previous=True)
        and path not in overlays
        and not any(part.startswith(".") for part in path.removeprefix(prefix).split("/"))
        and not any(path.startswith(f"{folder}/") for folder in other_folders)
    )
    roots = ", ".join(f"`{root or '.'}`" for root in project.roots)
    for path in islice(candidates, _MAX_OUTSIDE_FILES):
        names: list[str] = []
        with suppress(DeclarationError, OSError):
            if files.kind(path) == "file":
                names = _DECLARED_NAME.findall(decode(path, read_bytes(files, path)))
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield (
                f"{escape_path(path)} declares {names[0]}{more} outside of the roots ({roots}), so it is not read: move the file, or add its "
                f"folder to `roots` of {project.path}"
            )


# Overlay files

D = TypeVar("D", Namespace, Topic)

NO_OVERLAYS: Final = Catalog()

_DOCUMENT_FIX: Final = "write the differences of the target: `namespace: ...` or `topic: ...`, and its policies"

_CONSTANT_HOMES: Final = {
    "topic": ("a topic", "a topic or a namespace"),
    "namespace": ("a topic or a namespace", "the declaration of a namespace"),
}
"""The homes (see `HOMES`) of keys whose values are the same on every target."""


def read_overlays(files: Files, project: Project, target: Target, *, may_miss: bool = False) -> Catalog:
    """Read the overlays of `target`: namespaces and topics by their declared names, with only the values of the overlay files.

    The files are layers: a value in a later file replaces the value in an earlier one.

    Args:
        files: the files of the repository.
        project: the project that declares the target.
        target: the target.
        may_miss: whether to ignore a missing file, which is otherwise a problem.

    Raises:
        DeclarationError: all problems of the files.
    """
    problems: list[Problem] = []
    namespaces: dict[NamespaceName, Namespace] = {}
    topics: dict[TopicName, Topic] = {}
    for index, path in enumerate(target.overlays):
        if may_miss and files.kind(path) == "missing":
            continue
        if reason := obstacle(files, path):
            has_project_file = files.kind(project.path) == "file"
            key = ("targets", target.name, "overlays", str(index))
            source = place_in_project(files, project, key) if has_project_file else Source(escape_path(path))
            problems.append(Problem(source, reason, "write the file, or remove it from `overlays`"))
            continue
        try:
            overlays = _read_overlay_file(path, read_bytes(files, path))
        except DeclarationError as error:
            problems += error.problems
            continue
        sources: dict[NamespaceName | TopicName, Source | None] = {}
        for overlay in overlays:
            if overlay.name in sources and overlay.source:
                message = f"{overlay.name} has a second overlay in this file; the first is at {sources[overlay.name]}"
                problems.append(
                    Problem(overlay.source, message, "join the two, or move one to a later file of `overlays`")
                )
            sources.setdefault(overlay.name, overlay.source)
            if isinstance(overlay, Topic):
                earlier_topic = topics.get(overlay.name)
                topics[overlay.name] = apply_overlay(earlier_topic, overlay) if earlier_topic else overlay
            else:
                earlier = namespaces.get(overlay.name)
                namespaces[overlay.name] = apply_overlay(earlier, overlay) if earlier else overlay
    if problems:
        raise DeclarationError(problems)
    return Catalog(namespaces, topics)


def apply_overlay(declared: D, overlay: D) -> D:
    """Return a declared namespace or topic, or an earlier overlay, with the policies and partitions of `overlay`.

    Each value keeps its source location.
    """
    overlaid_keys = {*overlay.policies.managed()}
    values: dict[str, Any] = {"policies": declared.policies.override_with(overlay.policies)}
    if isinstance(declared, Topic) and isinstance(overlay, Topic) and overlay.partitions is not None:
        overlaid_keys.add("partitions")
        values["partitions"] = overlay.partitions

    def locate(pointer: str) -> Source:
        holder = overlay if overlaid_keys.intersection(split_pointer(pointer)[:1]) else declared
        source = holder.locate(pointer)
        assert source  # noqa: S101  both are declared in files
        return source

    return replace(declared, **values, locator=locate if declared.source else None)


@lru_cache(64)
def _read_overlay_file(path: str, data: bytes) -> tuple[Topic | Namespace, ...]:
    """Read the overlays in one file, which several targets and most commits may share.

    Raises:
        DeclarationError: all problems of the file.
    """
    documents, problems = read_yaml(path, data)
    text = YamlText(path, data)
    places = {problem.source for problem in problems}
    overlays: list[Topic | Namespace] = []
    for number, document in enumerate(documents):
        shape, errors = _read_overlay(document, escape_path(path))
        problems += [problem for problem in errors if problem.source not in places]
        if not errors:
            overlays.append(build_overlay(shape, document, text, number))
    if problems:
        raise DeclarationError(limit_problems(problems))
    return tuple(overlays)


def _read_overlay(document: YamlDocument, path: str) -> tuple[Any, list[Problem]]:
    """Return the model of an overlay document, and its problems; with problems, the model does not count."""
    value = document.value
    if not isinstance(value, dict):
        misfit = Misfit((), f"expected a mapping, found {describe_value(value)}", _DOCUMENT_FIX)
        return None, locate_misfits([misfit], document.node, path)
    kind, may_differ = ("topic", "policies and partitions") if "topic" in value else ("namespace", "policies")
    misfits = []
    constant_keys = [key for key in value if HOMES.get(key) in _CONSTANT_HOMES[kind] and key != "partitions"]
    for key in constant_keys:
        fix = f"set it where the {kind} is declared: only its {may_differ} may differ"
        misfits.append(Misfit((key,), f"`{key}` is the same on every target", fix, of_key=True))
    if [*value] == [kind]:
        misfits.append(
            Misfit((kind,), f"the overlay of this {kind} sets no value", "add the values that differ, or remove it")
        )

    def check(overlay: Any) -> Iterator[Misfit]:
        yield from check_settings(overlay)
        if kind == "topic":
            yield from check_scalable_topic(overlay)

    overlay = {key: part for key, part in value.items() if key not in constant_keys}
    shape, problems = read_shape(f"{kind} overlay", overlay, document.node, path, check)
    return shape, sorted([*problems, *locate_misfits(misfits, document.node, path)])


# Cache of valid files

Document = TopicDocument | Namespace

_CLIENT_ATTRIBUTES: Final = ("name", "role", "versions", "team", "language", "contact", "targets", "kind")
"""The cached attributes of a client. The file of a topic whose client has its own definition is not cached."""

_get_client_values: Final = attrgetter(*_CLIENT_ATTRIBUTES)

_TOPIC_ATTRIBUTES: Final = (
    *("partitions", "generation", "reader", "recursion_depth", "json_times", "integers", "nanoseconds"),
    *("rendering", "lifecycle"),
)
"""The attributes of a topic that `marshal` can store without a conversion."""

_get_topic_values: Final = attrgetter(*_TOPIC_ATTRIBUTES)


class KnownFile(NamedTuple):
    """A valid file: its declarations, each with the files of its definition."""

    declared: tuple[tuple[Topic | Namespace, frozenset[str]], ...]


class ValidationCache:
    """The valid declaration files of one state of a repository.

    Args:
        definitions: the definitions of that state.
        blob: returns the blob id of the file at a path, or another text that identifies its state.
        content: the result of `content` of the previous check.
        project: the project, which has the form of `.proto` definitions.
        earlier: the cache of the previous check in this process, in place of `content`.
    """

    def __init__(
        self,
        definitions: Definitions,
        blob: Callable[[str], str],
        content: bytes = b"",
        *,
        project: Project,
        earlier: ValidationCache | None = None,
    ) -> None:
        self.definitions = definitions
        self._project = project
        self._blob = blob
        self._blobs: dict[str, str] = {}
        self._previous: dict[str, Any] = {}
        # The restored files of this process, with their cached entries.
        self.restored_files: dict[str, tuple[Any, KnownFile]] = {}
        # The default properties of the topics of each namespace, which restored files look up when their definitions are read.
        self.schema_properties: dict[NamespaceName, Mapping[str, str]] = {}
        if earlier:
            self._previous = earlier.entries
            # Definitions that were read with other default properties are read again.
            if not earlier.schema_properties:
                self.restored_files, self.schema_properties = earlier.restored_files, earlier.schema_properties
        elif content:
            self._previous = marshal.loads(content)  # noqa: S302  the caller authenticates it
        self._current: dict[str, Any] = {}

    @property
    def entries(self) -> dict[str, Any]:
        """The known files, by path."""
        return self._previous | self._current

    def known(self, path: str) -> KnownFile | None:
        """Return the declarations of the file, or None if it must be read and checked."""
        entry = self._previous.get(path)
        if entry is None:
            return None
        blobs, documents = entry
        if any(self._get_blob(dependency) != blob for dependency, blob in blobs):
            return None
        self._current[path] = entry
        if path not in self.restored_files or self.restored_files[path][0] is not entry:
            file = _LazyFile(self.definitions, path, self.schema_properties, self._project)
            restored = (_restore_document(file, position, values) for position, values in enumerate(documents))
            self.restored_files[path] = entry, KnownFile(tuple(restored))
        return self.restored_files[path][1]

    def add(self, path: str, documents: Iterable[tuple[Document, tuple[Kind, ...], tuple[str, ...]]]) -> None:
        """Add a valid file: its documents, each with its kinds and the files of its definition."""
        entries = list(documents)
        paths = dict.fromkeys((path, *(dependency for _, _, dependencies in entries for dependency in dependencies)))
        blobs = tuple((dependency, self._get_blob(dependency)) for dependency in paths)
        self._current[path] = blobs, tuple(_to_values(*entry) for entry in entries)

    def content(self) -> bytes | None:
        """Return the content for the next check, or None if it has not changed."""
        return None if self._current == self._previous else marshal.dumps(self._current)

    def content_so_far(self) -> bytes:
        """Return the content for the next check after a check that did not end: with all earlier files."""
        return marshal.dumps(self.entries)

    def _get_blob(self, path: str) -> str:
        if path not in self._blobs:
            self._blobs[path] = self._blob(path)
        return self._blobs[path]


class _LazyFile:
    """A declaration file that is read when a value that is not cached is used."""

    def __init__(
        self,
        definitions: Definitions,
        path: str,
        schema_properties: Mapping[NamespaceName, Mapping[str, str]],
        project: Project,
    ) -> None:
        self.definitions = definitions
        self.path = path
        self._schema_properties = schema_properties
        self._project = project

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        return read_documents(self.path, read_bytes(self.definitions.files, self.path)).documents

    def locate(self, position: int, pointer: str) -> Source:
        """Return the nearest place to `pointer` in the document at this position."""
        document = self.documents[position]
        declaration = document.topic if isinstance(document, TopicDocument) else document
        source = declaration.locate(pointer)
        assert source  # noqa: S101  it is declared in a file
        return source

    def definition(self, position: int, key: str = "") -> SchemaInfo:
        """Read the definition of the document at this position, or of its kind `key`.

        Raises:
            DeclarationError: if the files have changed since their blob ids were compared.
        """
        document = self.documents[position]
        declaration = None
        if isinstance(document, TopicDocument):
            declaration = document.kinds.get(key) if key else document.schema
        if isinstance(document, Namespace) or declaration is None:
            source = document.source or Source(escape_path(self.path))
            raise DeclarationError([Problem(source, "the file changed while it was checked")])
        defaults = self._schema_properties.get(document.topic.name.namespace_name, EMPTY)
        rendering = document.topic.get_rendering(self._project.rendering)
        definition = self.definitions.read(declaration.with_default_properties(defaults), rendering)
        if definition.info is None:
            raise DeclarationError(definition.problems)
        return definition.info


def _to_values(document: Document, kinds: tuple[Kind, ...], dependencies: tuple[str, ...]) -> tuple[Any, ...]:
    """Convert a document to plain values."""
    if isinstance(document, Namespace):
        assert document.source  # noqa: S101  it is declared in a file
        position = document.source.line, document.source.column
        values = str(document.name), _policies_to_values(document.policies), document.metadata.values(), position
        return *values, dict(document.schema_properties)
    kind_values = tuple((kind.key, kind.schema.type.name, kind.record, kind.reader) for kind in kinds)
    return topic_to_values(document), document.schema and document.schema.type.name, kind_values, dependencies


def topic_to_values(document: TopicDocument) -> tuple[Any, ...]:
    """Convert a declared topic to plain values, without its definitions; `topic_from_values` restores it."""
    topic = document.topic
    return (
        str(topic.name),
        _policies_to_values(topic.policies),
        topic.metadata.values(),
        (document.source.line, document.source.column, document.source.end_column),
        topic.renamed_from and str(topic.renamed_from),
        topic.kinds_compatibility and topic.kinds_compatibility.value,
        tuple(map(_get_client_values, topic.clients)),
        _get_topic_values(topic),
    )


def topic_from_values(values: tuple[Any, ...], path: str, locator: Locator, **definitions: Any) -> Topic:
    """Restore a topic from the values of `topic_to_values`; `definitions` are its attributes with definitions."""
    name, policies, metadata, position, renamed_from, kinds_compatibility, clients, others = values
    return Topic(
        TopicName.parse(name),
        policies=_policies_from_values(policies),
        metadata=Metadata.parse(metadata),
        source=Source(path, *position),
        locator=locator,
        renamed_from=TopicName.parse(renamed_from) if renamed_from else None,
        kinds_compatibility=CompatibilityStrategy(kinds_compatibility) if kinds_compatibility else None,
        clients=tuple(Client(**dict(zip(_CLIENT_ATTRIBUTES, client, strict=True))) for client in clients),
        **dict(zip(_TOPIC_ATTRIBUTES, others, strict=True)),
        **definitions,
    )


def _policies_to_values(policies: Policies) -> tuple[Any, ...]:
    strategy = policies.schema_compatibility_strategy
    return (
        strategy.value if strategy else None,
        policies.is_allow_auto_update_schema,
        policies.schema_validation_enforced,
        dict(policies.settings),
    )


def _policies_from_values(values: tuple[Any, ...]) -> Policies:
    strategy, *others = values
    return Policies(CompatibilityStrategy(strategy) if strategy else None, *others)


def _restore_document(
    file: _LazyFile, position: int, values: tuple[Any, ...]
) -> tuple[Topic | Namespace, frozenset[str]]:
    """Restore a declaration from the values of `_to_values`, with the files of its definition."""
    locator = partial(file.locate, position)
    if isinstance(values[0], str):
        name, policies, metadata, place, schema_properties = values
        namespace = Namespace(
            NamespaceName.parse(name),
            _policies_from_values(policies),
            Metadata.parse(metadata),
            Source(file.path, *place),
            locator,
            schema_properties=schema_properties,
        )
        return namespace, frozenset()
    topic_values, type_, kind_values, dependencies = values
    kinds = tuple(
        Kind(key, DeferredInfo.of(SchemaType[kind_type], partial(file.definition, position, key)), record, reader)
        for key, kind_type, record, reader in kind_values
    )
    schema = DeferredInfo.of(SchemaType[type_], partial(file.definition, position)) if type_ else None
    topic = topic_from_values(
        topic_values,
        file.path,
        locator,
        schema=kinds[-1].schema if kinds else schema,
        kinds=kinds,
        kind_names=tuple(KindName(kind.key, kind.record) for kind in kinds),
    )
    return topic, frozenset(dependencies)
