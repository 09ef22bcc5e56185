"""Read all declarations into one `Catalog`, or report every problem of the run; read overlays; cache valid files.

A file is known as long as it and every file its definitions are made of have the contents (Git's blob ids) that were judged. What it
declares is kept as plain values; definitions, and the places of everything, are read from the file when somebody asks for them.
Rules about several files (names declared twice) are not kept: they are asked of everything that is declared, each time.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

from schemactl.core.catalog import Catalog, Client, Metadata, Namespace, Topic
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.findings import Finding
from schemactl.core.names import NamespaceName, TopicName, select
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import DeferredInfo, Release, SchemaInfo, SchemaType
from schemactl.core.wording import found
from schemactl.declare.definition import Definitions, ResolvedDefinition
from schemactl.declare.document import (
    HOMES,
    Documents,
    Misfit,
    NamespaceDocument,
    SchemaDeclaration,
    TopicDocument,
    capped,
    located,
    read_documents,
    settings_misfits,
    to_document,
    validation_errors,
)
from schemactl.declare.files import SAMPLE_SUFFIXES, SUFFIXES, YAML_SUFFIXES, Files, obstacle, read_bytes, shown
from schemactl.declare.project import place_in_project
from schemactl.declare.references import AvroFile
from schemactl.declare.yaml_parser import YamlDocument, YamlText, read_yaml
from schemactl.formats import problems as format_problems


@dataclass(frozen=True, slots=True)
class Declared:
    """What the files declare.

    Attributes:
        catalog: every namespace and topic without problems.
        problems: everything wrong, ordered by place; if there are any, the catalog is incomplete.
        dependencies: by topic, the files of its definition besides the YAML file, including missing ones.
        findings: what is allowed but worth a look.
        written: by topic, the Avro definitions in files that make up its own; not for files that a cache knows.
        samples: the files of sample messages, in folders called `samples`.
    """

    catalog: Catalog
    problems: tuple[Problem, ...] = ()
    dependencies: Mapping[TopicName, frozenset[str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    written: Mapping[TopicName, tuple[AvroFile, ...]] = field(default_factory=dict)
    samples: tuple[str, ...] = ()


def load(files: Files, project: Project) -> Catalog:
    """Return everything the project's files declare.

    Raises:
        DeclarationError: all problems of all files.
    """
    return load_all(files, project).catalog


def load_all(files: Files, project: Project) -> Declared:
    """Return everything the project's files declare, with its dependencies.

    Raises:
        DeclarationError: all problems of all files.
    """
    declared = read(files, project)
    if declared.problems:
        raise DeclarationError(declared.problems)
    return declared


def read(files: Files, project: Project, *, cache: ValidationCache | None = None) -> Declared:
    """Return everything the project's files declare, and everything that is wrong with them.

    A file that `cache` knows is not checked again, and read only if its definitions or places are used.
    """
    paths = sorted(files.paths())
    problems: list[Problem] = list(_empty_roots(files, project, paths))
    documents: list[Documents | KnownFile] = []
    samples = []
    for path in (path for path in paths if in_roots(path, project)):
        if path.endswith(YAML_SUFFIXES) or not path.endswith(SUFFIXES):
            why = obstacle(files, path)
            if why is not None:
                problems.append(Problem(Source(shown(path)), why, "put the file itself here, or remove the link"))
            elif path.endswith(YAML_SUFFIXES) and shown(path) != path:
                what = "the name of this file is not UTF-8, or contains a line break or another control character"
                problems.append(Problem(Source(shown(path)), what, "rename it"))
            elif path.endswith(YAML_SUFFIXES):
                documents.append((cache and cache.known(path)) or _read_documents(files, path))
            elif path.endswith(SAMPLE_SUFFIXES) and "/samples/" in f"/{path}":
                samples.append(path)
    declared = _Builder(files, project, cache).build(documents)
    every = tuple(sorted({*problems, *declared.problems}))
    return replace(declared, problems=every, samples=tuple(samples))


def in_roots(path: str, project: Project, *, previous: bool = False) -> bool:
    """Return whether `path` lies in a folder of declarations: below a root, no part of it hidden, not the project's own file.

    With `previous` the folders of older commits count, too.
    """
    if path in (project.path, project.waivers):
        return False
    for root in (*project.roots, *(project.previous_roots if previous else ())):
        prefix = root + "/" if root else ""
        if path.startswith(prefix) or path == root:
            return not any(part.startswith(".") for part in path[len(prefix) :].split("/"))
    return False


def build(documents: Iterable[Documents], files: Files, project: Project) -> Declared:
    """Return the catalog of `documents`, with the definitions they name read from `files`."""
    return _Builder(files, project).build(documents)


class _Builder:
    """One run over all documents."""

    def __init__(self, files: Files, project: Project, cache: ValidationCache | None = None) -> None:
        self.project = project
        self.cache = cache
        self.definitions = cache.definitions if cache else Definitions(files)
        self.namespaces: dict[NamespaceName, Namespace] = {}
        self.topics: dict[TopicName, Topic] = {}
        self.by_schema: dict[str, Topic] = {}
        self.dependencies: dict[TopicName, frozenset[str]] = {}
        self.problems: list[Problem] = []
        self.findings: list[Finding] = []
        self.written: dict[TopicName, tuple[AvroFile, ...]] = {}

    def build(self, documents: Iterable[Documents | KnownFile]) -> Declared:
        documents = list(documents)
        read = (file for file in documents if isinstance(file, Documents))
        topics = (each for file in read for each in file.documents if isinstance(each, TopicDocument))
        self.definitions.prepare(topic.schema for topic in topics if topic.schema)
        for file in documents:
            if isinstance(file, KnownFile):
                self._known(file)
                continue
            self.problems += file.problems
            for schema in file.unread:
                self.problems += self.definitions.check_paths(schema)
            made_of = []
            for document in file.documents:
                if isinstance(document, TopicDocument):
                    made_of.append(self._topic(document))
                else:
                    self._namespace(document.namespace)
                    made_of.append(())
            whole = [each for each in made_of if each is not None]
            if self.cache and len(whole) == len(made_of) and not (file.problems or file.unread):
                self.cache.add(file.path, zip(file.documents, whole, strict=True))
        for topic in self.topics.values():
            self.problems += _wrong_targets(topic, self.project)
        return Declared(
            Catalog(self.namespaces, self.topics),
            tuple(sorted(set(self.problems))),
            self.dependencies,
            tuple(self.findings),
            self.written,
        )

    def _namespace(self, namespace: Namespace) -> None:
        first = self.namespaces.setdefault(namespace.name, namespace)
        if first is not namespace and namespace.source:
            what = f"the namespace {first.name} is declared for the second time; first at {first.source}"
            self.problems.append(Problem(namespace.source, what, "keep one of the two"))

    def _known(self, file: KnownFile) -> None:
        """Add the declarations of a file that the cache knows."""
        for declared, made_of in file.declared:
            if isinstance(declared, Namespace):
                self._namespace(declared)
            elif self._is_first(declared):
                self.topics[declared.name] = declared
                if declared.schema:
                    self.dependencies[declared.name] = made_of

    def _is_first(self, topic: Topic) -> bool:
        """Return whether no earlier topic has this name, or shares its schemas in Pulsar; add a problem if one does."""
        first = self.by_schema.setdefault(topic.name.schema_id, topic)
        if first is not topic and topic.source:
            self.problems.append(_twice(topic, first, topic.source))
        return first is topic

    def _topic(self, document: TopicDocument) -> tuple[str, ...] | None:
        """Return the files that the topic's definition is made of; None: they must be read again by the next check."""
        topic = document.topic
        if not self._is_first(topic):
            return None
        if document.schema is None:
            self.topics[topic.name] = topic
            return ()
        info, is_sound = self._schema(topic.name, document.schema)
        clients = read_clients(document, self.definitions)
        self.problems += clients.problems
        for client in clients.clients:
            self.problems += judged(client.schema, self.project.release) if client.schema else ()
        self.dependencies[topic.name] |= clients.paths
        if info is None:
            return None
        self.topics[topic.name] = replace(topic, schema=info, clients=clients.clients)
        is_kept = is_sound and not document.clients and not _is_compiled(document.schema)
        return tuple(self.dependencies[topic.name]) if is_kept else None

    def _schema(self, name: TopicName, declaration: SchemaDeclaration) -> tuple[SchemaInfo | None, bool]:
        """Return the schema of a topic, None if it cannot be read, and whether it has neither problems nor findings."""
        definition = self.definitions.read(declaration)
        self.dependencies[name] = definition.paths
        self.written[name] = definition.written
        problems = list(definition.problems)
        if definition.info:
            problems += judged(definition.info, self.project.release)
        findings = list(_unused(name, declaration, definition))
        self.problems += problems
        self.findings += findings if definition.info else []
        return definition.info, not problems and not findings


class ReadClients(NamedTuple):
    """The clients of a topic, each with its own definition if it has one, and the files read for that."""

    clients: tuple[Client, ...]
    problems: tuple[Problem, ...] = ()
    paths: frozenset[str] = frozenset()


def read_clients(document: TopicDocument, definitions: Definitions) -> ReadClients:
    """Return the clients that the topic declares, with their own definitions where they have one."""
    if not document.clients:
        return ReadClients(document.topic.clients)
    read = {name: definitions.read(each) for name, each in document.clients.items()}
    clients = tuple(
        replace(client, schema=read[client.name].info) if client.name in read else client
        for client in document.topic.clients
    )
    problems = tuple(problem for found in read.values() for problem in found.problems)
    return ReadClients(clients, problems, frozenset().union(*(found.paths for found in read.values())))


def _wrong_targets(topic: Topic, project: Project) -> Iterator[Problem]:
    """Yield unknown targets of the topic's clients, and clients none of whose targets has the topic."""
    if not any(client.targets for client in topic.clients):
        return
    having = [each.name for each in project.targets.values() if select([topic.name], each.globs)]
    for index, client in enumerate(topic.clients):
        pointer = f"/clients/{index}/targets"
        unknown = [at for at, target in enumerate(client.targets) if target not in project.targets]
        for at in unknown:
            if source := topic.locate(f"{pointer}/{at}"):
                known = ", ".join(project.targets)
                fix = f"the targets are {known}" if known else "declare it, or remove the key"
                yield Problem(source, f"{project.path} has no target `{shown(client.targets[at])}`", fix)
        if client.targets and not unknown and having and {*having}.isdisjoint(client.targets):
            what = f"{topic.name} is not on {' or '.join(client.targets)}, where this client runs"
            if source := topic.locate(pointer):
                yield Problem(source, what, f"the topic is on {', '.join(having)}")


def _is_compiled(declaration: SchemaDeclaration) -> bool:
    """Return whether protoc compiles the definition, or a half of it: the result depends on more than the files."""
    return (
        declaration.is_proto
        or declaration.proto is not None
        or any(_is_compiled(half) for half in (declaration.key, declaration.value) if half)
    )


def judged(info: SchemaInfo, release: Release) -> Iterator[Problem]:
    """Yield every problem of the definition `info`, at its place."""
    for problem in format_problems(info, release):
        source = info.locate(problem.pointer)
        if source is not None:
            yield Problem(source, problem.what, problem.fix)


def _twice(topic: Topic, first: Topic, source: Source) -> Problem:
    name, other = topic.name, first.name
    if name == other:
        what, fix = f"{name} is declared for the second time; first at {first.source}", "keep one of the two"
    else:
        what = f"{name} and {other} ({first.source}) share one list of schemas in Pulsar"
        fix = "keep one of the two, or give one another name"
    return Problem(source, what, fix)


def _unused(topic: TopicName, declaration: SchemaDeclaration, definition: ResolvedDefinition) -> Iterator[Finding]:
    for at in definition.unused:
        yield Finding(
            "REFERENCE_UNUSED",
            "warning",
            "declaration",
            topic,
            declaration.locate(*at),
            f"{topic} lists a reference that its definition does not use.",
            "Remove it from `references`.",
        )


def _read_documents(files: Files, path: str) -> Documents:
    try:
        return read_documents(path, read_bytes(files, path))
    except DeclarationError as error:
        return Documents(path, (), error.problems)


def _empty_roots(files: Files, project: Project, paths: list[str]) -> Iterator[Problem]:
    """Yield roots without files, unless all are empty; a previous root may be empty."""
    filled = [any(path.startswith(root + "/") or not root for path in paths) for root in project.roots]
    for index, root in enumerate(project.roots):
        if any(filled) and not filled[index] and root not in project.previous_roots:
            text = YamlText(project.path, read_bytes(files, project.path))
            yield Problem(
                text.locate(0, ("roots", str(index))),
                f"there is no file in the folder `{root}`",
                "name a folder that holds declarations, or remove the entry",
            )


# Overlay files

NO_OVERLAYS: Final = Catalog()


def read_overlays(files: Files, project: Project, target: Target, *, may_miss: bool = False) -> Catalog:
    """Return the overlays of `target`: namespaces and topics by their declared names, with only what the overlay files set.

    Args:
        files: contain the overlay files.
        project: declares the target.
        target: the target.
        may_miss: ignore a missing file, which is otherwise a problem.

    Raises:
        DeclarationError: all problems of the files.
    """
    problems: list[Problem] = []
    namespaces: dict[NamespaceName, Namespace] = {}
    topics: dict[TopicName, Topic] = {}
    for index, path in enumerate(target.overlays):
        if may_miss and files.kind(path) == "missing":
            continue
        if why := obstacle(files, path):
            is_named = files.kind(project.path) == "file"
            key = ("targets", target.name, "overlays", str(index))
            place = place_in_project(files, project, key) if is_named else Source(shown(path))
            problems.append(Problem(place, why, "write the file, or remove it from `overlays`"))
            continue
        try:
            read = _read_overlay(path, read_bytes(files, path))
        except DeclarationError as error:
            problems += error.problems
            continue
        for each in read:
            first = (
                topics.setdefault(each.name, each)
                if isinstance(each, Topic)
                else namespaces.setdefault(each.name, each)
            )
            if first is not each and each.source:
                what = f"{each.name} has a second overlay on {target.name}; the first is at {first.source}"
                problems.append(Problem(each.source, what, "keep one of the two"))
    if problems:
        raise DeclarationError(problems)
    return Catalog(namespaces, topics)


@lru_cache(64)
def _read_overlay(path: str, data: bytes) -> tuple[Topic | Namespace, ...]:
    """Return the overlays in one file, which several targets and most commits may share; raise DeclarationError for its problems."""
    documents, problems = read_yaml(path, data)
    text = YamlText(path, data)
    places = {problem.source for problem in problems}
    result: list[Topic | Namespace] = []
    for number, document in enumerate(documents):
        errors = located(_misfits(document), document.node, shown(path))
        problems += [problem for problem in errors if problem.source not in places]
        if not errors:
            declared = to_document(document, text, number)
            result.append(declared.topic if isinstance(declared, TopicDocument) else declared.namespace)
    if problems:
        raise DeclarationError(capped(problems))
    return tuple(result)


def _misfits(document: YamlDocument) -> Iterator[Misfit]:
    value = document.value
    if not isinstance(value, dict):
        yield Misfit.of((), f"expected a mapping, found {found(value)}", _DOCUMENT)
        return
    kind, may_differ = ("topic", "policies and partitions") if "topic" in value else ("namespace", "policies")
    fixed = [key for key in value if HOMES.get(key) in _THE_SAME[kind] and key != "partitions"]
    for key in fixed:
        fix = f"set it where the {kind} is declared: only its {may_differ} may differ"
        yield Misfit.of((key,), f"`{key}` is the same on every target", fix, of_key=True)
    rest = {key: each for key, each in value.items() if key not in fixed}
    yield from [*validation_errors(f"{kind} overlay", rest)] or settings_misfits(rest)
    if [*value] == [kind]:
        yield Misfit.of((kind,), f"nothing of this {kind} is set here", "add what differs, or remove it")


_DOCUMENT: Final = "write what differs on the target: `namespace: ...` or `topic: ...`, and its policies"

_THE_SAME: Final = {"topic": ("a topic", "a topic or a namespace"), "namespace": ("a topic or a namespace",)}
"""The homes of the keys that an overlay of a topic or namespace does not have."""


# The cache of valid files, so that a check reads only what has changed

Document = TopicDocument | NamespaceDocument

_KEPT_PARTS: Final = ("name", "role", "versions", "team", "language", "contact", "targets")
"""Of a client, whose definition is not its own: the file of a topic with such a client is read each time."""

_KEPT: Final = attrgetter(*_KEPT_PARTS)


class KnownFile(NamedTuple):
    """A valid file: what it declares, and for each topic the files that its definition is made of."""

    declared: tuple[tuple[Topic | Namespace, frozenset[str]], ...]


class ValidationCache:
    """The valid declaration files of one state of a repository.

    Args:
        definitions: reads the files of that state.
        blob: the id of the content of each file, or something else where it has none.
        content: what `content` gave the last time.
    """

    def __init__(self, definitions: Definitions, blob: Callable[[str], str], content: bytes = b"") -> None:
        self.definitions = definitions
        self._blob = blob
        self._blobs: dict[str, str] = {}
        self._before: dict[str, Any] = marshal.loads(content) if content else {}  # noqa: S302  authenticated by whoever kept it
        self._now: dict[str, Any] = {}

    def known(self, path: str) -> KnownFile | None:
        """Return what the file declares; None: it has to be read and judged."""
        entry = self._before.get(path)
        if entry is None:
            return None
        blobs, documents = entry
        if any(self._blob_of(each) != blob for each, blob in blobs):
            return None
        self._now[path] = entry
        text = _Text(self.definitions, path)
        return KnownFile(tuple(_restored(text, position, values) for position, values in enumerate(documents)))

    def add(self, path: str, documents: Iterable[tuple[Document, tuple[str, ...]]]) -> None:
        """Keep that the file is valid, with the files that the definition of each document is made of."""
        kept = [(document, tuple(made_of)) for document, made_of in documents]
        paths = dict.fromkeys((path, *(each for _, made_of in kept for each in made_of)))
        blobs = tuple((each, self._blob_of(each)) for each in paths)
        self._now[path] = blobs, tuple(_values(document, made_of) for document, made_of in kept)

    def content(self) -> bytes | None:
        """Return what to keep for the next time; None: what was kept already."""
        return None if self._now == self._before else marshal.dumps(self._now)

    def _blob_of(self, path: str) -> str:
        if path not in self._blobs:
            self._blobs[path] = self._blob(path)
        return self._blobs[path]


class _Text:
    """The file of some declarations, read when one of them is asked for more than is kept."""

    def __init__(self, definitions: Definitions, path: str) -> None:
        self.definitions = definitions
        self.path = path

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        return read_documents(self.path, read_bytes(self.definitions.files, self.path)).documents

    def locate(self, position: int, pointer: str) -> Source:
        """Return the nearest place to `pointer` in that document."""
        document = self.documents[position]
        found = document.topic if isinstance(document, TopicDocument) else document.namespace
        return found.locate(pointer) or document.source

    def definition(self, position: int) -> SchemaInfo:
        """Return the definition that the document declares.

        Raises:
            DeclarationError: the files have changed since they were compared.
        """
        document = self.documents[position]
        if isinstance(document, NamespaceDocument) or document.schema is None:
            raise DeclarationError([Problem(document.source, "the file changed while it was checked")])
        definition = self.definitions.read(document.schema)
        if definition.info is None:
            raise DeclarationError(definition.problems)
        return definition.info


def _values(document: Document, made_of: tuple[str, ...]) -> tuple[Any, ...]:
    """Return a document as plain values."""
    at = document.source.line, document.source.column
    if isinstance(document, NamespaceDocument):
        space = document.namespace
        return str(space.name), _plain(space.policies), space.metadata.values(), at
    topic = document.topic
    return (
        *(str(topic.name), _plain(topic.policies), topic.metadata.values(), at),
        *(document.schema and document.schema.type.name, made_of),
        *(topic.partitions, topic.generation, topic.renamed_from and str(topic.renamed_from)),
        *(topic.reader, topic.lifecycle),
        tuple(_KEPT(client) for client in topic.clients),
    )


def _plain(policies: Policies) -> tuple[Any, ...]:
    strategy = policies.schema_compatibility_strategy
    return (
        strategy.value if strategy else None,
        policies.is_allow_auto_update_schema,
        policies.schema_validation_enforced,
        dict(policies.settings),
    )


def _restored(text: _Text, position: int, values: tuple[Any, ...]) -> tuple[Topic | Namespace, frozenset[str]]:
    """Return what those values were made of."""
    name, (strategy, *others), said, (line, column), *rest = values
    policies = Policies(CompatibilityStrategy(strategy) if strategy else None, *others)
    metadata = Metadata.parse(said)
    source = Source(text.path, line, column)
    locator = partial(text.locate, position)
    if not rest:
        return Namespace(NamespaceName.parse(name), policies, metadata, source, locator), frozenset()
    type_, made_of, partitions, generation, renamed_from, reader, lifecycle, clients = rest
    topic = Topic(
        TopicName.parse(name),
        DeferredInfo.of(SchemaType[type_], partial(text.definition, position)) if type_ else None,
        policies=policies,
        partitions=partitions,
        generation=generation,
        renamed_from=TopicName.parse(renamed_from) if renamed_from else None,
        reader=reader,
        lifecycle=lifecycle,
        metadata=metadata,
        clients=tuple(Client(**dict(zip(_KEPT_PARTS, each, strict=True))) for each in clients),
        source=source,
        locator=locator,
    )
    return topic, frozenset(made_of)
