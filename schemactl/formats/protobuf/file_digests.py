"""Identify `.proto` definitions in many states of their files, and compile each revision of a file once.

protoc compiles a file again if its own text changed, or the text of a direct or indirect import. So the work follows the changes,
for any number of definitions that share files, and only digests of the compiled files stay in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto

from schemactl.core.schema import SchemaType
from schemactl.formats.protobuf.definition import combine_digests, digest_content, is_shipped
from schemactl.formats.protobuf.imports import find_imports
from schemactl.formats.protobuf.protoc import Proto, compile_files, find_problem

_MAX_TEXT_BYTES: Final = 16 * 2**20
"""The size of the texts whose digests stay in memory."""


@dataclass(slots=True)
class _CompiledFile:
    """The facts about a revision of a file that identities depend on.

    Attributes:
        digest: the digest of its declarations.
        imports: the names of its imports.
        messages: the full names of its messages.
        closure: the digest of the file with its direct and indirect imports, or "" before it is needed.
    """

    digest: bytes
    imports: tuple[str, ...]
    messages: frozenset[str]
    closure: str = ""


@dataclass(frozen=True, slots=True)
class _Definition:
    """The revisions of the files of one definition.

    Attributes:
        proto: the definition.
        keys: by import name, a digest of the file's name and text and of the keys of its imports.
        missing: the names of imports that are not among the files; they may be protoc's own.
    """

    proto: Proto
    keys: Mapping[str, bytes]
    missing: frozenset[str]

    @property
    def entry_key(self) -> bytes:
        """The key of the file that declares the root message."""
        return self.keys[self.proto.entry]

    @property
    def path(self) -> str:
        """The path of this file in the repository."""
        return self.proto.paths.get(self.proto.entry, self.proto.entry)


@dataclass(slots=True)
class _Batch:
    """Definitions whose files one run of protoc compiles: each name has one text, and no file of another definition replaces a missing import."""

    definitions: list[_Definition] = field(default_factory=list)
    sources: dict[str, bytes] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def can_add(self, definition: _Definition) -> bool:
        sources = definition.proto.sources
        is_consistent = all(self.sources.get(name, text) == text for name, text in sources.items())
        is_separate = self.missing.isdisjoint(sources) and definition.missing.isdisjoint(self.sources)
        return is_consistent and is_separate

    def add(self, definition: _Definition) -> None:
        self.definitions.append(definition)
        self.sources.update(definition.proto.sources)
        self.missing |= definition.missing


class FileDigests:
    """The digests of compiled files, from which the identities of definitions follow. `close` it after use."""

    def __init__(self, *, max_files: int = 8_192) -> None:
        """Remember `max_files` revisions of files, the most recently used ones."""
        self._max_files = max_files
        self._files: dict[bytes, _CompiledFile] = {}
        # The definitions that did not compile last, by the path of their file: the key of that revision.
        self._failed_keys: dict[str, bytes] = {}
        # The definitions of the last call of `compile`, by the identity of the mapping with their files.
        self._definitions: dict[int, _Definition | None] = {}
        self._text_digests: dict[bytes, bytes] = {}
        self._text_bytes = 0
        # The folder of protoc, and the texts in it by import name.
        self._folder: TemporaryDirectory[str] | None = None
        self._written: dict[str, bytes] = {}

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def compile(self, protos: Iterable[Proto]) -> None:
        """Compile the new revisions of the files of all `protos`, in one run of protoc if that is possible.

        Raises:
            SchemactlError: if protoc is not installed.
        """
        self._definitions.clear()
        new_definitions: dict[bytes, _Definition] = {}
        for proto in protos:
            definition = self._read_definition(proto)
            if definition is None or self._failed_keys.get(definition.path) == definition.entry_key:
                continue
            if self._digest_closure(definition) is None:
                new_definitions[definition.entry_key] = definition
        batches: list[_Batch] = []
        for definition in new_definitions.values():
            # A definition with an error makes the whole run fail, and often still has an error in the next state.
            has_failed = definition.path in self._failed_keys
            batch = None if has_failed else next((batch for batch in batches if batch.can_add(definition)), None)
            if batch is None:
                batch = _Batch()
                batches.insert(0, batch) if has_failed else batches.append(batch)
            batch.add(definition)
        for batch in batches:
            self._compile_batch(batch)
        while len(self._files) > self._max_files:
            del self._files[next(iter(self._files))]

    def identify(self, proto: Proto) -> Hashable | None:
        """Return `formats.identity` of the definition after `compile`, or None if it does not compile, or has no such message."""
        definition = self._read_definition(proto)
        digest = self._digest_closure(definition) if definition else None
        if definition is None or digest is None or proto.message not in self._files[definition.entry_key].messages:
            return None
        return SchemaType.PROTOBUF_NATIVE, (proto.message, digest)

    def _read_definition(self, proto: Proto) -> _Definition | None:
        """Compute the keys of the files, or return None if protoc cannot compile them."""
        # The topics of one file share its mapping of files, but not their messages.
        cache_key = id(proto.sources)
        if cache_key not in self._definitions:
            self._definitions[cache_key] = self._compute_keys(proto)
        return self._definitions[cache_key]

    def _compute_keys(self, proto: Proto) -> _Definition | None:
        imports = {name: find_imports(text) for name, text in proto.sources.items()}
        graph = {name: [imported for imported in names if imported in imports] for name, names in imports.items()}
        try:
            ordered_names = [*TopologicalSorter(graph).static_order()]
        except CycleError:
            return None
        if find_problem(proto):
            return None
        keys: dict[str, bytes] = {}
        missing: set[str] = set()
        for name in ordered_names:
            digest = hashlib.sha256(
                (name.encode("utf-8", "surrogatepass") + b"\0") + self._digest_text(proto.sources[name])
            )
            for imported in imports[name]:
                if imported in keys:
                    digest.update(keys[imported])
                else:
                    missing.add(imported)
            keys[name] = digest.digest()
        return _Definition(proto, keys, frozenset(missing))

    def _digest_text(self, text: bytes) -> bytes:
        digest = self._text_digests.get(text)
        if digest is None:
            digest = hashlib.sha256(text).digest()
            self._text_bytes += len(text)
            if self._text_bytes > _MAX_TEXT_BYTES:
                self._text_digests.clear()
                self._text_bytes = len(text)
            self._text_digests[text] = digest
        return digest

    def _digest_closure(self, definition: _Definition) -> str | None:
        """Return the digest of all files that the definition reaches, or None if one was not compiled."""
        entry = self._files.get(definition.entry_key)
        if entry is None:
            return None
        if not entry.closure:
            digests = []
            names = [definition.proto.entry]
            visited = {*names}
            while names:
                name = names.pop()
                key = definition.keys.get(name)
                if key is None:
                    # One of protoc's own files, which import only each other.
                    continue
                file = self._files.pop(key, None)
                if file is None:
                    return None
                # The files that were used last are the last ones to be dropped.
                self._files[key] = file
                if not is_shipped(name):
                    digests.append(file.digest)
                new_names = [imported for imported in file.imports if imported not in visited]
                visited.update(new_names)
                names += new_names
            entry.closure = combine_digests(digests)
        return entry.closure

    def _compile_batch(self, batch: _Batch) -> None:
        keys = {name: key for definition in batch.definitions for name, key in definition.keys.items()}
        new_names = [name for name, key in keys.items() if key not in self._files]
        has_failed = batch.definitions[0].path in self._failed_keys
        if not has_failed and self._run_protoc(batch.sources, keys, new_names):
            return
        for definition in batch.definitions:
            proto = definition.proto
            # Some names of imports may be in comments, so that protoc does not need these files.
            if self._run_protoc(proto.sources, definition.keys, ["--include_imports", proto.entry]):
                self._failed_keys.pop(definition.path, None)
            else:
                self._failed_keys[definition.path] = definition.entry_key

    def _run_protoc(self, sources: Mapping[str, bytes], keys: Mapping[str, bytes], arguments: Sequence[str]) -> bool:
        """Compile some of the files, add them, and return whether protoc accepts them."""
        folder = self._write_files(sources)
        compiled = compile_files(folder, arguments) if folder else None
        if compiled is None:
            return False
        for proto in compiled.file:
            key = keys.get(proto.name)
            # A key depends on the imports that were found without protoc.
            if key and {*proto.dependency}.issubset(find_imports(sources[proto.name])):
                messages = frozenset(_list_messages(proto.message_type, f"{proto.package}." if proto.package else ""))
                self._files[key] = _CompiledFile(digest_content(proto), (*proto.dependency,), messages)
        return True

    def _write_files(self, sources: Mapping[str, bytes]) -> Path | None:
        """Write exactly these texts to the folder and return it, or return None if a file cannot be written."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="schemactl-protoc-")
            self._written.clear()
        folder = Path(self._folder.name)
        try:
            for name in self._written.keys() - sources.keys():
                (folder / "in" / name).unlink()
                del self._written[name]
            for name, text in sources.items():
                if self._written.get(name) != text:
                    path = folder / "in" / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(text)
                    self._written[name] = text
        except OSError:
            # A name may be the name of an earlier folder.
            self.close()
            return None
        return folder


def _list_messages(messages: Iterable[DescriptorProto], prefix: str) -> Iterator[str]:
    """Yield the full names of messages and of the messages in them."""
    for message in messages:
        yield f"{prefix}{message.name}"
        yield from _list_messages(message.nested_type, f"{prefix}{message.name}.")
