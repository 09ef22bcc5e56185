"""When two definitions are one version: by digests, which a history keeps in place of the definitions.

A definition with references is the text in one file and types of others. Which types it takes is looked at when its own
text changes; when another file's does, what that file's types are now is put beside what is known of the rest.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from schemactl.declare import Definitions, SchemaDeclaration
from schemactl.declare.files import AVRO_SUFFIXES, Files, decode, read_bytes, resolve
from schemactl.declare.json_text import PLAIN, read_json
from schemactl.errors import DeclarationError, InvalidSchema, Problem, Source
from schemactl.formats import avro, identity, key_value
from schemactl.formats.avro.composition import Composition, Type, composition, plain_composition
from schemactl.model import AVRO_DESCRIBED, SchemaInfo, SchemaType
from schemactl.source import MAX_DEPTH, JsonText

DIGEST_BYTES: Final = 20
_DIGESTS: Final = 1 << 8 * DIGEST_BYTES
"""How many digests there are."""

_INLINE: Final = ("{", "[", '"')
"""How a definition starts that is no path."""

_SHARED_KEPT: Final = 4096
"""Of so many revisions of files that others refer to, what they define is remembered."""


def digest(info: SchemaInfo) -> bytes:
    """Equal for two definitions exactly when `formats.identity` is.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    if info.type in AVRO_DESCRIBED:
        return _added(_own(info.type.name, composition(avro.parsed_by_any(info.schema))))
    if info.type is SchemaType.KEY_VALUE:
        both = key_value.split(info)
        return _digest(info.type.name, both.encoding, digest(both.key), digest(both.value))
    return _digest(info.type.name, repr(identity(info)))


class Shared:
    """What a file defines for others.

    Attributes:
        names: the full names of the types.
    """

    __slots__ = ("_reached", "_totals", "names")

    def __init__(self, reached: Mapping[str, frozenset[int]]) -> None:
        self._reached = reached
        self._totals: dict[tuple[str, ...], int] = {}
        self.names = frozenset(reached)

    def total(self, names: tuple[str, ...]) -> int:
        """The digests of the types `names` and of all that these lead to, added."""
        known = self._totals.get(names)
        if known is None:
            known = self._totals[names] = sum(frozenset().union(*[self._reached[name] for name in names]))
        return known


class Outline(NamedTuple):
    """A definition that takes types of other files.

    Attributes:
        own: the digests of its root and of its own types, added.
        taken: the files that it takes types of, and their names.
        names: those that each file it may take types of defines; where they change, other types may be meant.
    """

    type_name: str
    own: int
    taken: tuple[tuple[str, tuple[str, ...]], ...]
    names: Mapping[str, frozenset[str]]

    @classmethod
    def again(cls, type_name: str, own: bytes, files: Iterable[tuple[str, list[str], list[str]]]) -> Outline:
        """An outline with that `own_digest` and those `files`."""
        each = list(files)
        taken = tuple((path, tuple(names)) for path, names, _ in each if names)
        return cls(
            type_name, int.from_bytes(own, "big"), taken, {path: frozenset(all_) for path, _, all_ in each}
        )

    def own_digest(self) -> bytes:
        """The digests of its root and of its own types, added."""
        return _added(self.own)

    def files(self) -> Iterator[tuple[str, tuple[str, ...], frozenset[str]]]:
        """The files it may take types of, the names of those that it takes, and of all that each defines."""
        taken = dict(self.taken)
        yield from ((path, taken.get(path, ()), names) for path, names in self.names.items())

    def fits(self, path: str, shared: Callable[[str], Shared | None]) -> bool:
        """Whether the file at `path` is one that types are taken of, and still defines the same names."""
        if path not in self.names:
            return False
        found = shared(path)
        return found is not None and found.names == self.names[path]

    def digest(self, shared: Callable[[str], Shared | None]) -> bytes:
        """That of the whole definition, with the other files as they are now."""
        total = self.own
        for path, names in self.taken:
            if found := shared(path):
                total += found.total(names)
        return _added(total)


class Seen(NamedTuple):
    """What a look at a declared schema gave.

    Attributes:
        digest: None where there are problems.
        type_name: the schema's.
        paths: every file that the definition is made of, read or missed.
        outline: of a definition with references, where a change of those need not be a new look.
    """

    digest: bytes | None
    type_name: str
    paths: frozenset[str]
    outline: Outline | None = None
    problems: tuple[Problem, ...] = ()


class RevisedFiles(Files, Protocol):
    """Files that know the revision of each."""

    def revision(self, path: str) -> str | None:
        """What names the content of the file at `path`; None where there is no plain file."""
        ...


class Looks:
    """Looks at declared schemas in files that change: each revision of a file that others refer to is read once."""

    def __init__(self, files: RevisedFiles) -> None:
        self._files = files
        self._shared: dict[str, Shared | None] = {}

    def look(self, declaration: SchemaDeclaration, definitions: Definitions) -> Seen:
        """Which definition `declaration` declares now; `definitions` reads the same files."""
        type_name = declaration.type.name
        if declaration.type in AVRO_DESCRIBED and not declaration.proto:
            seen = self._plain(declaration, type_name)
            if seen is not None:
                return seen
        definition = definitions.read(declaration)
        if definition.info is None:
            return Seen(None, type_name, definition.paths, problems=definition.problems)
        try:
            return Seen(digest(definition.info), type_name, definition.paths)
        except InvalidSchema as error:
            source = definition.info.locate(error.pointer) or declaration.source
            problem = Problem(source, error.what, error.fix)
            return Seen(None, type_name, definition.paths, problems=(problem,))

    def shared(self, path: str) -> Shared | None:
        """What the file at `path` defines for others; None where that takes a closer look."""
        revision = self._files.revision(path)
        if revision is None:
            return None
        if revision not in self._shared:
            found = self._composition(path)
            self._shared[revision] = _shared(found) if found else None
            while len(self._shared) > _SHARED_KEPT:
                del self._shared[next(iter(self._shared))]
        return self._shared[revision]

    def _plain(self, declaration: SchemaDeclaration, type_name: str) -> Seen | None:
        """The look at a definition of the usual kind, without writing it out with its references; None: it is another."""
        written = declaration.definition
        if not isinstance(written, str):
            return None
        is_inline = written.lstrip().startswith(_INLINE)
        if is_inline and not declaration.references:
            made = _composed(written, ())
            return Seen(_added(_own(type_name, made)), type_name, frozenset()) if made else None
        folder = posixpath.dirname(declaration.text.path)
        try:
            references = [resolve(folder, each) for each in declaration.references]
            paths = references if is_inline else [resolve(folder, written), *references]
        except ValueError:
            return None
        if len(set(paths)) < len(paths) or not all(map(self._is_usual, paths)):
            return None
        elsewhere: dict[str, str] = {}
        shared: dict[str, Shared] = {}
        for path in references:
            found = self.shared(path)
            if found is None or not elsewhere.keys().isdisjoint(found.names):
                return None
            shared[path] = found
            elsewhere.update(dict.fromkeys(found.names, path))
        made = _composed(written, elsewhere) if is_inline else self._composition(paths[0], elsewhere)
        if made is None:
            return None
        outline = _outline(type_name, made, elsewhere, shared)
        return Seen(outline.digest(shared.get), type_name, frozenset(paths), outline if references else None)

    def _is_usual(self, path: str) -> bool:
        return path.endswith(AVRO_SUFFIXES) and self._files.kind(path) == "file"

    def _composition(self, path: str, elsewhere: Collection[str] = ()) -> Composition | None:
        try:
            return _composed(decode(path, read_bytes(self._files, path)), elsewhere)
        except DeclarationError:
            return None


def _composed(text: str, elsewhere: Collection[str]) -> Composition | None:
    """What a definition is made of that is of the usual kind, and without fault as JSON."""
    try:
        found = plain_composition(text, PLAIN.decode(text), elsewhere)
    except (ValueError, RecursionError):
        return None
    if found is None:
        return None
    made, keys = found
    if keys != text.count(":") or text.count("{") + text.count("[") > MAX_DEPTH:
        try:
            read_json(JsonText(text, lambda _: Source("")))
        except DeclarationError:
            return None
    return made


def _shared(found: Composition) -> Shared | None:
    """What a file defines; None where it takes types of further files itself."""
    own = {name: _type_number(name, each) for name, each in found.types.items()}
    types = {}
    for name in own:
        reached, todo = {name}, [name]
        while todo:
            for used in found.types[todo.pop()].uses - reached:
                if used not in own:
                    return None
                reached.add(used)
                todo.append(used)
        types[name] = frozenset(own[each] for each in reached)
    return Shared(types) if found.root.uses <= own.keys() else None


def _outline(
    type_name: str, made: Composition, elsewhere: Mapping[str, str], shared: Mapping[str, Shared]
) -> Outline:
    taken: dict[str, list[str]] = {}
    if elsewhere:
        for name in made.root.uses.union(*[each.uses for each in made.types.values()]) - made.types.keys():
            taken.setdefault(elsewhere[name], []).append(name)
    names = {path: found.names for path, found in shared.items()}
    return Outline(
        type_name, _own(type_name, made), tuple((path, tuple(each)) for path, each in taken.items()), names
    )


def _own(type_name: str, made: Composition) -> int:
    """The digests of a definition's root and types, added: so their order does not count, and others can be added."""
    root = _number(f"{type_name} {made.root.text}")
    return root + sum([_type_number(name, each) for name, each in made.types.items()])


def _type_number(name: str, type_: Type) -> int:
    return _number(f"type {name} {type_.text}")


def _number(text: str) -> int:
    raw = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
    return int.from_bytes(raw, "big")


def _added(total: int) -> bytes:
    return (total % _DIGESTS).to_bytes(DIGEST_BYTES, "big")


def _digest(*parts: str | bytes) -> bytes:
    raw = [each if isinstance(each, bytes) else each.encode("utf-8", "surrogatepass") for each in parts]
    return blake2b(
        b"".join([b"%d:%b" % (len(each), each) for each in raw]), digest_size=DIGEST_BYTES
    ).digest()
