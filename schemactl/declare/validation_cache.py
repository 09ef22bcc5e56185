"""The cache of declaration files that were found valid, so that a check reads only what has changed.

A file is known as long as it and every file its definitions are made of have the contents (Git's blob ids) that were judged. What it
declares is kept as plain values; definitions, and the places of everything, are read from the file when somebody asks for them.
Rules about several files (names declared twice) are not kept: they are asked of everything that is declared, each time.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

from schemactl.core.catalog import Client, Metadata, Namespace, Topic
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import DeferredInfo, SchemaInfo, SchemaType
from schemactl.declare.definition import Definitions
from schemactl.declare.document import NamespaceDocument, TopicDocument, read_documents
from schemactl.declare.files import read_bytes

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
        return KnownFile(
            tuple(_restored(text, position, values) for position, values in enumerate(documents))
        )

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


def _restored(
    text: _Text, position: int, values: tuple[Any, ...]
) -> tuple[Topic | Namespace, frozenset[str]]:
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
