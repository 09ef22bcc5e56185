"""Avro of the plain kind, and changes of it that no broker and no reader minds.

What this reads is valid in every Pulsar release; what it takes for two versions are two; where it says that a reader reads,
every broker and every reader says so. What it leaves open may still be fine.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

MAX_DEPTH = 30

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
LOGICAL = {
    "int": ("date", "time-millis"),
    "long": ("time-micros", "timestamp-millis", "timestamp-micros"),
    "string": ("uuid",),
}
"""Logical types that every release knows, by the type that carries them."""

_KEYS = {
    "record": frozenset(("type", "name", "namespace", "doc", "fields")),
    "enum": frozenset(("type", "name", "namespace", "doc", "symbols", "default")),
    "fixed": frozenset(("type", "name", "namespace", "doc", "size")),
}
_INSIDE = {"array": "items", "map": "values"}
_DECIMAL_KEYS = frozenset(("type", "logicalType", "precision", "scale"))
_FIELD_KEYS = frozenset(("name", "type", "doc", "default"))


class NotPlain(ValueError):
    """Not of the plain kind."""


class Definition:
    """A definition, however it is spread over texts and files.

    Attributes:
        root: the type itself: a primitive's or a named type's full name, or a tuple of what it is and of what.
        names: what its named types are: ("record", {field: (type, default)}), ("enum", symbols) or ("fixed", size).
    """

    __slots__ = ("names", "root")

    def __init__(self, root: Any, names: dict[str, Any]) -> None:
        self.root = root
        self.names = names

    def __eq__(self, other: object) -> bool:
        """Whether they may be one version; False: they certainly are two."""
        return isinstance(other, Definition) and (self.root, _ordered(self.names)) == (
            other.root,
            _ordered(other.names),
        )

    __hash__ = None  # type: ignore[assignment]

    def reads(self, writer: Definition) -> bool:
        """Whether every reader of this reads what `writer` wrote; False: perhaps not."""
        # All types that both know, wherever they are used: names alone are compared below.
        return _reads(self.root, writer.root) and all(
            _same_name_reads(self.names[name], writer.names[name])
            for name in self.names.keys() & writer.names.keys()
        )


def parse(text: bytes | str) -> Any:
    """The value of a definition's JSON text.

    Raises:
        NotPlain: it may be right, or wrong.
    """
    try:
        # Escapes can spell half a character.
        if ("\\u" in text) if isinstance(text, str) else (b"\\u" in text):
            raise NotPlain
        if isinstance(text, bytes):
            text = text.decode()
        return json.loads(text, object_pairs_hook=_members, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise NotPlain from error


class Outline:
    """What a text or file says by itself.

    Attributes:
        root: see Definition.
        names: what its own named types are.
        used: the names of types that it takes from other files.
    """

    __slots__ = ("names", "root", "used")

    def __init__(self, value: Any, elsewhere: frozenset[str] = frozenset()) -> None:
        """Reads the value of a definition, which may take the types called `elsewhere` from other files.

        Raises:
            NotPlain: it may be right, or wrong.
        """
        reader = _Reader(elsewhere)
        self.root = reader.type(value, "", 0)
        self.names = reader.names
        self.used = reader.used
        if not elsewhere.isdisjoint(self.names):
            raise NotPlain


def joined(own: Outline, references: Sequence[Outline]) -> Definition:
    """The definition that `own` is, with the types that it takes from `references`.

    Raises:
        NotPlain: it may be right, or wrong: it is no record, or a reference is of no use.
    """
    names = dict(own.names)
    for reference in references:
        wanted = [name for name in own.used if name in reference.names]
        if not wanted:
            raise NotPlain
        while wanted:
            name = wanted.pop()
            if name not in names:
                names[name] = reference.names[name]
                wanted += _names_in(names[name])
    if own.names.get(own.root, ("",))[0] != "record":
        raise NotPlain
    return Definition(own.root, names)


def known(references: Sequence[Outline]) -> frozenset[str]:
    """The names of the types that `references` define.

    Raises:
        NotPlain: two of them define the same one.
    """
    names = [name for reference in references for name in reference.names]
    if len(names) != len(set(names)):
        raise NotPlain
    return frozenset(names)


class _Reader:
    """One pass over a definition, in document order: the named types met so far, and the names of those taken."""

    def __init__(self, elsewhere: frozenset[str]) -> None:
        self.elsewhere = elsewhere
        self.names: dict[str, Any] = {}
        self.used: set[str] = set()
        self._open: set[str] = set()

    def type(self, value: Any, namespace: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotPlain
        if value.__class__ is str:
            return value if value in PRIMITIVES else self._named(value, namespace)
        if value.__class__ is list:
            return self._union(value, namespace, depth)
        if value.__class__ is not dict:
            raise NotPlain
        kind = value.get("type")
        if kind.__class__ is not str:
            raise NotPlain
        if kind in ("record", "enum", "fixed"):
            return self._definition(kind, value, namespace, depth)
        if kind in _INSIDE:
            if value.keys() != {"type", _INSIDE[kind]}:
                raise NotPlain
            return kind, self.type(value[_INSIDE[kind]], namespace, depth + 1)
        return _logical(kind, value) if len(value) > 1 else self.type(kind, namespace, depth + 1)

    def _union(self, value: list[Any], namespace: str, depth: int) -> Any:
        branches = tuple(self.type(branch, namespace, depth + 1) for branch in value)
        kinds = {_kind(branch) for branch in branches}
        if not branches or len(kinds) < len(branches) or "union" in kinds:
            raise NotPlain
        return "union", branches

    def _named(self, written: str, namespace: str) -> str:
        name = written if "." in written or not namespace else f"{namespace}.{written}"
        # A type that is not complete yet contains itself.
        if name in self._open:
            raise NotPlain
        if name not in self.names:
            if name not in self.elsewhere:
                raise NotPlain
            self.used.add(name)
        return name

    def _definition(self, kind: str, value: dict[str, Any], namespace: str, depth: int) -> str:
        name, space = value.get("name"), value.get("namespace", namespace)
        if not value.keys() <= _KEYS[kind] or name.__class__ is not str or space.__class__ is not str:
            raise NotPlain
        if "doc" in value and value["doc"].__class__ is not str:
            raise NotPlain
        if (
            not _is_name(name)
            or name in PRIMITIVES
            or not (space == namespace or all(map(_is_name, space.split("."))))
        ):
            raise NotPlain
        full_name = f"{space}.{name}" if space else name
        if full_name in self.names or full_name in self._open:
            raise NotPlain
        self._open.add(full_name)
        content = self._content(kind, value, space, depth)
        self._open.remove(full_name)
        self.names[full_name] = kind, content
        return full_name

    def _content(self, kind: str, value: dict[str, Any], namespace: str, depth: int) -> Any:
        if kind == "fixed":
            size = value.get("size")
            if size.__class__ is not int or not 0 < size < 1 << 20:
                raise NotPlain
            return size
        if kind == "enum":
            symbols = value.get("symbols")
            if symbols.__class__ is not list or not symbols or len(set(map(str, symbols))) < len(symbols):
                raise NotPlain
            if not all(symbol.__class__ is str and _is_name(symbol) for symbol in symbols):
                raise NotPlain
            if "default" in value and value["default"] not in symbols:
                raise NotPlain
            return tuple(symbols)
        fields = value.get("fields")
        if fields.__class__ is not list or not fields:
            raise NotPlain
        found: dict[str, Any] = {}
        for field in fields:
            name, what = self._field(field, namespace, depth)
            if name in found:
                raise NotPlain
            found[name] = what
        return found

    def _field(self, value: Any, namespace: str, depth: int) -> tuple[str, Any]:
        if value.__class__ is not dict or not value.keys() <= _FIELD_KEYS or "type" not in value:
            raise NotPlain
        name, doc = value.get("name"), value.get("doc", "")
        if name.__class__ is not str or not _is_name(name) or doc.__class__ is not str:
            raise NotPlain
        of = self.type(value["type"], namespace, depth + 1)
        return name, (of, self._default(value["default"], of) if "default" in value else None)

    def _default(self, value: Any, of: Any) -> str:
        """A default of that type, as a text: an equal one where definitions with either could be one version."""
        if of[0] == "union" and of.__class__ is tuple:
            of = of[1][0]
        kind = _kind(of)
        if kind in self.elsewhere:
            raise NotPlain
        if of.__class__ is str and of in self.names:
            kind, content = self.names[of]
            fits = kind == "enum" and value in content
        elif kind == "null":
            fits = value is None
        elif kind in ("boolean", "string"):
            fits = value.__class__ is (bool if kind == "boolean" else str)
        elif kind in ("int", "long"):
            fits = value.__class__ is int and -(1 << 31) <= value < 1 << 31
        elif kind in ("float", "double"):
            fits = value.__class__ in (int, float) and abs(value) < 1 << 50
            # 1 and 1.0 may be taken for equal or not.
            value = float(value) if fits else value
        else:
            fits = value in ([], {}) and value.__class__ is {"array": list, "map": dict}.get(kind)
        if not fits:
            raise NotPlain
        return repr(value)


def _logical(kind: str, value: dict[str, Any]) -> Any:
    """A primitive type that means something."""
    logical = value.get("logicalType")
    if value.keys() == {"type", "logicalType"} and logical in LOGICAL.get(kind, ()):
        return "logical", kind, logical
    if kind == "bytes" and logical == "decimal" and value.keys() == _DECIMAL_KEYS:
        precision, scale = value["precision"], value["scale"]
        if (
            precision.__class__ is int
            and scale.__class__ is int
            and 0 <= scale <= precision <= 38
            and precision
        ):
            return "logical", kind, precision, scale
    raise NotPlain


def _is_name(text: str) -> bool:
    # Of ASCII, Python's identifiers are Avro's names.
    return text.isascii() and text.isidentifier()


def _reads(reader: Any, writer: Any) -> bool:
    """Whether a place of one type reads what was written for another; named types are compared apart."""
    if reader == writer:
        return True
    if reader.__class__ is not tuple:
        return False
    if reader[0] == "union":
        written = writer[1] if writer.__class__ is tuple and writer[0] == "union" else (writer,)
        return all(branch in reader[1] for branch in written)
    same = writer.__class__ is tuple and reader[0] == writer[0] and reader[0] in ("array", "map")
    return same and _reads(reader[1], writer[1])


def _same_name_reads(reader: Any, writer: Any) -> bool:
    if reader[0] != writer[0]:
        return False
    if reader[0] == "record":
        return all(
            _reads(of, writer[1][name][0]) if name in writer[1] else default is not None
            for name, (of, default) in reader[1].items()
        )
    if reader[0] == "enum":
        return set(writer[1]) <= set(reader[1])
    return bool(reader == writer)


def _ordered(names: dict[str, Any]) -> dict[str, Any]:
    """Named types, the fields of records in their order."""
    return {
        name: (kind, tuple(content.items()) if kind == "record" else content)
        for name, (kind, content) in names.items()
    }


def _names_in(content: Any) -> list[str]:
    """The names of the types that a named type is made of."""
    kind, inner = content
    return [name for of, _ in inner.values() for name in _names_of(of)] if kind == "record" else []


def _names_of(of: Any) -> Iterable[str]:
    if of.__class__ is str:
        if of not in PRIMITIVES:
            yield of
    elif of[0] == "union":
        for branch in of[1]:
            yield from _names_of(branch)
    elif of[0] in ("array", "map"):
        yield from _names_of(of[1])


def _kind(of: Any) -> Any:
    """What must differ between the branches of a union."""
    if of.__class__ is str:
        return of
    return of[1] if of[0] == "logical" else of[0]


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotPlain
    return found


def _no_number(word: str) -> None:
    raise NotPlain(word)
