"""Where the parts of an approved definition stand: read again from its commit, when a finding points there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from schemactl.declare import Definitions, TopicDocument, read_documents
from schemactl.declare.files import read_bytes
from schemactl.errors import SchemactlError, Source
from schemactl.history.files import CommitFiles
from schemactl.history.repository import Repository
from schemactl.model import Commit, SchemaInfo, TopicName


@dataclass(slots=True)
class Recall:
    """The definition that the file `path` declares for `topic` at `commit` of the repository around `directory`.

    It keeps no repository open, and nothing in memory until somebody asks: histories are long.
    """

    directory: Path
    commit: Commit
    path: str
    topic: TopicName
    _read: SchemaInfo | None = field(default=None, repr=False)

    def light(self, info: SchemaInfo) -> SchemaInfo:
        """`info`, which is that definition, with places that are looked up here."""
        proto = info.proto
        if proto:
            proto = replace(proto, locator=partial(self._locate, proto.source, of_proto=True))
        return replace(info, locator=partial(self._locate, info.source), proto=proto)

    def _locate(self, elsewhere: Source | None, pointer: str, *, of_proto: bool = False) -> Source:
        """The nearest place to `pointer`; `elsewhere` when the commit cannot be read any more."""
        elsewhere = elsewhere or Source(self.path)
        try:
            self._read = self._read or self._read_again()
        except SchemactlError:
            return elsewhere
        info = self._read.proto if of_proto and self._read else self._read
        return (info and info.locate(pointer)) or elsewhere

    def _read_again(self) -> SchemaInfo | None:
        with Repository.open(self.directory) as repository:
            files = CommitFiles(repository, self.commit)
            for document in read_documents(self.path, read_bytes(files, self.path)).documents:
                if (
                    isinstance(document, TopicDocument)
                    and document.topic.name == self.topic
                    and document.schema
                ):
                    return Definitions(files).read(document.schema).info
        return None
