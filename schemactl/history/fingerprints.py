"""Fingerprints of definitions: equal exactly when `formats.identity` is.

The fingerprint of an Avro definition is a hash over the sorted list of what it is made of: its root, and every named type,
each spelled out by itself (see `formats.avro.equality`). So a definition with references need not be written out: its
own file and each file that it takes types of are parsed by themselves, once for each revision.
"""

from __future__ import annotations

import posixpath
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from schemactl.core.errors import DeclarationError, InvalidSchema, Problem, Source
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.declare.definition import Definitions, depth_of, read_json
from schemactl.declare.document import SchemaDeclaration
from schemactl.declare.files import AVRO_SUFFIXES, decode, read_bytes, resolve
from schemactl.declare.references import files_of, folder_of, is_pattern
from schemactl.declare.source_location import MAX_DEPTH, JsonText
from schemactl.formats import SPECS, avro, identity
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.schema import Composition, composition
from schemactl.history.files import GitFiles

_BYTES: Final = 20

_MAX_TEXT: Final = 1 << 20
"""Longer definitions, which may be too long for a broker, are always written out."""

_FEW_BRACKETS: Final = 60

_REVISIONS: Final = 4096
"""For so many revisions of files that others take types of, what they define is remembered."""


class SharedTypes(NamedTuple):
    """What a file defines for others.

    Attributes:
        reached: by a type's full name, the hashes of the type and of all types that it leads to.
        depth: how deep all of them may nest, one inside the other.
        size: characters.
    """

    reached: dict[str, frozenset[bytes]]
    depth: int
    size: int


class DefinitionParts(NamedTuple):
    """A definition that may take types of other files.

    Attributes:
        own: the hashes of its root and of its own types.
        depth: how deep its own text nests; `size`: its characters.
        taken: by file, the names of all types that it defines, and of those that are taken.
        paths: every file that it is made of.
    """

    own: frozenset[bytes]
    depth: int
    size: int
    taken: dict[str, tuple[frozenset[str], tuple[str, ...]]]
    paths: frozenset[str]


class Inspected(NamedTuple):
    """What a declared schema was found to be.

    Attributes:
        fingerprint: None where there are problems.
        type: the schema's.
        paths: every file that the definition is made of, read or missed.
        parts: where a change of the files it takes types of may not take another inspection.
    """

    fingerprint: bytes | None
    type: SchemaType
    paths: frozenset[str]
    parts: DefinitionParts | None = None
    problems: tuple[Problem, ...] = ()


def fingerprint(info: SchemaInfo) -> bytes:
    """Return the fingerprint of a definition.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    if _is_avro(info.type):
        found = composition(avro.parsed_by_any(info.schema))
        return _combined(info.type, frozenset(_hashes(found).values()))
    return _hash(info.type.name.encode(), _encoded(repr(identity(info))))


class Fingerprints:
    """Fingerprints of declared schemas in files that change.

    An Avro definition is put together from its parts where that can be: written out as a whole, those of the medium
    repository of benchmarks/history.py take five times as long, 38 s of CPU in place of 7.
    """

    def __init__(self, files: GitFiles) -> None:
        self._files = files
        self._shared: dict[str, SharedTypes | None] = {}

    def inspect(self, declaration: SchemaDeclaration, definitions: Definitions) -> Inspected:
        """Return which definition `declaration` declares now; `definitions` reads the same files."""
        if _is_avro(declaration.type) and not declaration.proto and isinstance(declaration.definition, str):
            parts = self._parts(declaration, declaration.definition)
            if parts and (found := self.refreshed(declaration.type, parts)):
                return Inspected(found, declaration.type, parts.paths, parts)
        read = definitions.read(declaration)
        if read.info is None:
            return Inspected(None, declaration.type, read.paths, problems=read.problems)
        try:
            return Inspected(fingerprint(read.info), declaration.type, read.paths)
        except InvalidSchema as error:
            source = read.info.locate(error.pointer) or declaration.source
            problem = Problem(source, error.what, error.fix)
            return Inspected(None, declaration.type, read.paths, problems=(problem,))

    def refreshed(self, type_: SchemaType, parts: DefinitionParts) -> bytes | None:
        """Return the fingerprint with the files it takes types of as they are now; None: it takes an inspection."""
        hashes, depth, size = parts.own, parts.depth, parts.size
        for path, (names, taken) in parts.taken.items():
            found = self._shared_types(path)
            if found is None or found.reached.keys() != names:
                return None
            hashes = hashes.union(*[found.reached[name] for name in taken])
            depth += found.depth
            size += found.size
        return _combined(type_, hashes) if depth <= MAX_DEPTH and size <= _MAX_TEXT else None

    def _parts(self, declaration: SchemaDeclaration, written: str) -> DefinitionParts | None:
        """Return what a definition is made of; None: it is unusual, or has problems."""
        folder = posixpath.dirname(declaration.text.path)
        try:
            references = [resolve(folder, each) for each in declaration.references if not is_pattern(each)]
            paths = references if declaration.is_inline else [resolve(folder, written), *references]
            patterns = [each for each in declaration.references if is_pattern(each)]
            folders = [folder_of(folder, each) for each in patterns]
            offered = {path for each in patterns for path in files_of(self._files, folder, each)}
        except ValueError:
            return None
        if len(set(paths)) < len(paths) or not all(map(self._is_usual, paths)) or (patterns and not offered):
            return None
        shared: dict[str, SharedTypes] = {}
        names: set[str] = set()
        for path in (*references, *sorted(offered.difference(paths))):
            found = self._shared_types(path)
            if found is None or not names.isdisjoint(found.reached):
                return None
            shared[path] = found
            names.update(found.reached)
        text = written if declaration.is_inline else self._text(paths[0])
        read = _composed(text, names) if text is not None else None
        if text is None or read is None:
            return None
        made, used, depth = read
        own = frozenset(value for name, value in _hashes(made).items() if name not in used)
        taken = {
            path: (frozenset(each.reached), (*used.intersection(each.reached),))
            for path, each in shared.items()
            # What is there for others makes no difference, as long as it is as it is.
            if path in references or not used.isdisjoint(each.reached)
        }
        return DefinitionParts(own, depth, len(text), taken, frozenset([*paths, *folders, *taken]))

    def _shared_types(self, path: str) -> SharedTypes | None:
        """Return what the file at `path` defines for others; None: it is unusual, or has problems."""
        entry = self._files.entry(path)
        if entry is None or not self._is_usual(path):
            return None
        if entry.blob not in self._shared:
            text = self._text(path)
            found = _composed(text, frozenset()) if text is not None else None
            self._shared[entry.blob] = _defined(found[0], found[2], len(text)) if text and found else None
            if len(self._shared) > _REVISIONS:
                del self._shared[next(iter(self._shared))]
        return self._shared[entry.blob]

    def _is_usual(self, path: str) -> bool:
        return path.endswith(AVRO_SUFFIXES) and self._files.kind(path) == "file"

    def _text(self, path: str) -> str | None:
        try:
            return decode(path, read_bytes(self._files, path))
        except DeclarationError:
            return None


def _composed(text: str, elsewhere: AbstractSet[str]) -> tuple[Composition, frozenset[str], int] | None:
    """Return what a definition is made of, which of the names `elsewhere` it takes, and how deep it nests.

    None where it has problems by itself, or takes other types, too: it is read as a whole then.
    """
    try:
        value = read_json(JsonText(text, lambda _: Source("")))
        schema, taken = parse_file(text, value)
    except (DeclarationError, InvalidSchema):
        return None
    made = composition(schema)
    # A name without namespace could be taken for another where types are defined in another order.
    simple = {name.rpartition(".")[2] for name in elsewhere}
    own = {name.rpartition(".")[2] for name in made.types.keys() - taken}
    if not taken <= elsewhere or not simple.isdisjoint(own):
        return None
    return made, taken, _depth(text, value)


def _defined(made: Composition, depth: int, size: int) -> SharedTypes:
    hashes = _hashes(made)
    reached: dict[str, frozenset[bytes]] = {}
    for name in made.types:
        names, todo = {name}, [name]
        while todo:
            used = made.types[todo.pop()].uses - names
            names |= used
            todo += used
        reached[name] = frozenset(hashes[each] for each in names)
    # Each type is written out once, inside of any other.
    return SharedTypes(reached, depth * (len(reached) + 1), size)


def _hashes(made: Composition) -> dict[str, bytes]:
    """Return the hashes of the root, by "", and of each named type."""
    types = {name: _hash(b"type", _encoded(name), _encoded(each.text)) for name, each in made.types.items()}
    return {"": _hash(b"root", _encoded(made.root.text)), **types}


def _combined(type_: SchemaType, hashes: frozenset[bytes]) -> bytes:
    return _hash(type_.name.encode(), *sorted(hashes))


def _hash(*parts: bytes) -> bytes:
    """Return the hash of a list: of each part its length, then the part."""
    return blake2b(b"".join([b"%d:%b" % (len(each), each) for each in parts]), digest_size=_BYTES).digest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _depth(text: str, value: Any) -> int:
    """Return how deep objects and arrays nest, at most: in a text of few brackets, how many there are."""
    brackets = text.count("{") + text.count("[")
    return brackets if brackets <= _FEW_BRACKETS else depth_of(value)


def _is_avro(type_: SchemaType) -> bool:
    return SPECS[type_].language == "avro"
