"""All declarations together: one catalog, or every problem of the run."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from schemactl.declare.deferred import DeferredInfo
from schemactl.declare.definition import Definition, Definitions, avro_files, avro_source
from schemactl.declare.describe import nearest
from schemactl.declare.document import (
    Documents,
    NamespaceDocument,
    SchemaDeclaration,
    TopicDocument,
    read_documents,
)
from schemactl.declare.files import (
    SUFFIXES,
    YAML_SUFFIXES,
    Files,
    folders_with_yaml,
    obstacle,
    read_bytes,
    shown,
)
from schemactl.declare.yaml_text import YamlText
from schemactl.errors import DeclarationError, Problem, Source
from schemactl.formats import problems as format_problems
from schemactl.model import Catalog, Namespace, NamespaceName, Project, Release, SchemaInfo, Topic, TopicName
from schemactl.verdicts import Finding


@dataclass(frozen=True, slots=True)
class Declared:
    """What the files declare.

    Attributes:
        catalog: every namespace and topic without problems.
        problems: everything wrong, ordered by place; where there is any, the catalog is not the whole.
        dependencies: the files that a topic's definition is made of, read or missed, besides the YAML file.
        findings: what is allowed but worth a look.
    """

    catalog: Catalog
    problems: tuple[Problem, ...] = ()
    dependencies: Mapping[TopicName, frozenset[str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


class Soundness(Protocol):
    """Which definitions are known to be sound: allowed as they are declared, with nothing to be said of them.

    That hangs on nothing but the contents of the files, the release, and what this installation makes of both.
    """

    def knows(self, path: str, document: int, made_of: tuple[str, ...]) -> bool:
        """Whether the definition that this document of the file declares, made of those files, is known to be sound."""
        ...

    def add(self, path: str, document: int, made_of: tuple[str, ...]) -> None:
        """Record that it is sound."""
        ...


def load(files: Files, project: Project) -> Catalog:
    """Everything the project's files declare.

    Raises:
        DeclarationError: all problems of all files.
    """
    declared = read(files, project)
    if declared.problems:
        raise DeclarationError(declared.problems)
    return declared.catalog


def read(files: Files, project: Project, *, soundness: Soundness | None = None) -> Declared:
    """Everything the project's files declare, and everything that is wrong with them.

    A definition that `soundness` knows is read when somebody looks at it, and not judged again.
    """
    paths = sorted(files.paths())
    problems: list[Problem] = list(_empty_roots(files, project, paths))
    documents = []
    for path in (path for path in paths if in_roots(path, project)):
        if path.endswith(YAML_SUFFIXES) or not path.endswith(SUFFIXES):
            why = obstacle(files, path)
            if why is not None:
                problems.append(
                    Problem(Source(shown(path)), why, "put the file itself here, or take this away")
                )
            elif path.endswith(YAML_SUFFIXES) and shown(path) != path:
                what = "the name of this file is no UTF-8, or holds a line break or another control character"
                problems.append(Problem(Source(shown(path)), what, "rename it"))
            elif path.endswith(YAML_SUFFIXES):
                documents.append(_read(files, path))
    declared = _Builder(files, project, soundness).build(documents)
    return replace(declared, problems=tuple(sorted({*problems, *declared.problems})))


def in_roots(path: str, project: Project, *, previous: bool = False) -> bool:
    """Whether `path` lies in a folder of declarations: below a root, no part of it hidden, not the project's own file.

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

    def __init__(self, files: Files, project: Project, soundness: Soundness | None = None) -> None:
        self.project = project
        self.soundness = soundness
        self.definitions = Definitions(files)
        self.namespaces: dict[NamespaceName, Namespace] = {}
        self.topics: dict[TopicName, Topic] = {}
        self.by_schema: dict[str, TopicDocument] = {}
        self.dependencies: dict[TopicName, frozenset[str]] = {}
        self.problems: list[Problem] = []
        self.findings: list[Finding] = []

    def build(self, documents: Iterable[Documents]) -> Declared:
        documents = list(documents)
        topics = (each for file in documents for each in file.documents if isinstance(each, TopicDocument))
        self.definitions.prepare(topic.schema for topic in topics if topic.schema)
        for file in documents:
            self.problems += file.problems
            for schema in file.unread:
                self.problems += self.definitions.missing(schema)
            for document in file.documents:
                if isinstance(document, TopicDocument):
                    self._topic(document)
                else:
                    self._namespace(document)
        return Declared(
            Catalog(self.namespaces, self.topics),
            tuple(sorted(set(self.problems))),
            self.dependencies,
            tuple(self.findings),
        )

    def _namespace(self, document: NamespaceDocument) -> None:
        first = self.namespaces.setdefault(document.namespace.name, document.namespace)
        if first is not document.namespace:
            what = f"the namespace {first.name} is declared for the second time; first at {first.source}"
            self.problems.append(Problem(document.source, what, "keep one of the two"))

    def _topic(self, document: TopicDocument) -> None:
        topic = document.topic
        first = self.by_schema.setdefault(topic.name.schema_id, document)
        if first is not document:
            self.problems.append(_twice(document, first))
            return
        if document.schema is not None:
            info = self._schema(topic.name, document.schema)
            if info is None:
                return
            topic = replace(topic, schema=info)
        self.topics[topic.name] = topic

    def _schema(self, name: TopicName, declaration: SchemaDeclaration) -> SchemaInfo | None:
        """Return the schema of a topic; None, and problems, where it cannot be read."""
        here = declaration.text.path
        paths = avro_files(declaration)
        if paths and self.soundness and self.soundness.knows(here, declaration.document, paths):
            self.dependencies[name] = frozenset(paths) - {here}
            source = avro_source(declaration, paths[0])
            return DeferredInfo.of(declaration.type, partial(self._read, declaration), source=source)
        definition = self.definitions.read(declaration)
        self.dependencies[name] = definition.paths
        problems = list(definition.problems)
        if definition.info:
            problems += judged(definition.info, self.project.release)
        findings = list(_unused(name, declaration, definition))
        if self.soundness and paths and not problems and not findings:
            self.soundness.add(here, declaration.document, paths)
        self.problems += problems
        self.findings += findings if definition.info else []
        return definition.info

    def _read(self, declaration: SchemaDeclaration) -> SchemaInfo:
        """Return the schema of a declaration that was known to be sound."""
        definition = self.definitions.read(declaration)
        if definition.info is None:
            # Somebody changes the files at this moment.
            raise DeclarationError(definition.problems)
        return definition.info


def judged(info: SchemaInfo, release: Release) -> Iterator[Problem]:
    """Every reason not to declare `info`, at its place."""
    for problem in format_problems(info, release):
        source = info.locate(problem.pointer)
        if source is not None:
            yield Problem(source, problem.what, problem.fix)


def _twice(document: TopicDocument, first: TopicDocument) -> Problem:
    name, other = document.topic.name, first.topic.name
    if name == other:
        what, fix = f"{name} is declared for the second time; first at {first.source}", "keep one of the two"
    else:
        what = f"{name} and {other} ({first.source}) share one list of schemas in Pulsar"
        fix = "keep one of the two, or give one another name"
    return Problem(document.source, what, fix)


def _unused(topic: TopicName, declaration: SchemaDeclaration, definition: Definition) -> Iterator[Finding]:
    for way in definition.unused:
        yield Finding(
            "REFERENCE_UNUSED",
            "warning",
            "declaration",
            topic,
            declaration.locate(*way),
            f"{topic} lists a reference from which its definition takes no type.",
            "Remove it from `references`.",
        )


def _read(files: Files, path: str) -> Documents:
    try:
        return read_documents(path, read_bytes(files, path))
    except DeclarationError as error:
        return Documents(path, (), error.problems)


def _empty_roots(files: Files, project: Project, paths: list[str]) -> Iterator[Problem]:
    """Yield the roots without a single file, unless nothing is declared yet at all, and those that are misspelled."""
    filled = [any(path.startswith(root + "/") or not root for path in paths) for root in project.roots]
    for index, root in enumerate(project.roots):
        if filled[index]:
            continue
        folder = posixpath.dirname(root)
        near = nearest(root, folders_with_yaml(files, folder)) if root else None
        if near or any(filled):
            text = YamlText(project.path, read_bytes(files, project.path))
            written = posixpath.relpath(near, project.folder or ".") if near else ""
            yield Problem(
                text.locate(0, ("roots", str(index))),
                f"there is no folder `{root}`" if near else f"there is no file in the folder `{root}`",
                f"did you mean `{written}`?"
                if near
                else "name a folder that holds declarations, or remove the entry",
            )
