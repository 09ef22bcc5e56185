"""From an Avro schema's text to the model, rejecting what Java's Schema.Parser rejects in each Pulsar release.

The versions of Avro inside the releases differ in which names they take, and in when a type is known by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from schemactl.core.schema import Release
from schemactl.formats.avro.defaults import FieldDefaults
from schemactl.formats.avro.definition import DefinitionReader, bad_name, invalid
from schemactl.formats.avro.equality import equal
from schemactl.formats.avro.names import Path, qualify
from schemactl.formats.avro.references import resolve
from schemactl.formats.avro.schema import (
    PRIMITIVE_TYPES,
    Fixed,
    JsonValue,
    NamedSchema,
    Record,
    Schema,
)
from schemactl.formats.avro.text import (
    InvalidAvro,
    TrailingText,
    check_limits,
    decode,
    read,
    shown,
    without_comments,
)

_WITH_PARTS: Final = ("record", "enum", "array", "map", "fixed")
"""What a type is called that has fields, symbols, items, values or a size."""


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """Return the schema in `text`, as the Avro inside that Pulsar release reads it.

    Args:
        text: the definition.
        release: whose rules on names and references count.
        validate_defaults: a default must be a value of its field's type, as where the broker looks for an upload among
            the versions it has; otherwise it may be anything, as where the broker judges compatibility.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    if validate_defaults:
        return _read_until_bad(text, _DIALECTS[release], FieldDefaults(release))
    return _read(text, _DIALECTS[release], None)


def parse_for_spark(text: bytes | str, spark: tuple[int, int]) -> Schema:
    """Return the schema in `text`, as the Avro inside that release of Spark reads it, which validates defaults.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    dialect = AvroOfSpark40 if spark < (4, 1) else AvroOfSpark41
    return _read_until_bad(text, dialect, FieldDefaults(Release.R5_0))


def parse_file(text: bytes | str, json: JsonValue = None) -> tuple[Schema, frozenset[str]]:
    """Return the schema in one file's text, and the full names of the types that other files define: a fixed of each stands there.

    `json` is the value in the text, where it was read before. Raise InvalidAvro where the newest Avro refuses the text, even so.
    """
    decoded = decode(text)
    if json is None or "/" in decoded:
        # Where comments may stand is seen from the text.
        json = read(decoded)
    else:
        check_limits(decoded)
    reader = _FileReader(decoded, json, None)
    return reader.read(), frozenset(reader.missing)


def problems(text: bytes | str, release: Release) -> Iterator[InvalidAvro]:
    """Yield why `parse` refuses `text` with its defaults validated: every bad default, and one other error."""
    defaults = FieldDefaults(release)
    try:
        _read(text, _DIALECTS[release], defaults)
    except InvalidAvro as problem:
        yield problem
    yield from defaults.bad


def _read_until_bad(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults) -> Schema:
    try:
        return _read(text, dialect, defaults)
    finally:
        # Java stops at the first bad default, before it comes to what else is wrong further down.
        if defaults.bad:
            raise defaults.bad[0]


def _read(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults | None) -> Schema:
    decoded = decode(text)
    try:
        json = read(decoded)
    except TrailingText as trailing:
        dialect(decoded, trailing.value, defaults).read()
        raise
    return dialect(decoded, json, defaults).read()


class Avro111(DefinitionReader):
    """Avro 1.11.4 in Pulsar 4.0: a type is defined once, and before it is used; namespaces and properties are not looked at."""

    known_inside = True
    marks = "_"

    def _reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        known = self._known(name, namespace, path) or self._types.get(qualify(name, None)[0])
        if known is None:
            raise self._undefined(name, path)
        return known

    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        known = self._known(name, namespace, path)
        if known is None:
            raise self._undefined(name, (path, "type"))
        return known

    def _define(self, named: NamedSchema, path: Path) -> None:
        if self._types.setdefault(named.full_name, named) is not named:
            raise invalid(f"{named.full_name} is defined twice", path, "name", fix="refer to it by its name")

    def _check_properties(self, properties: Mapping[str, JsonValue], path: Path) -> None:
        pass

    def _known(self, name: str, namespace: str | None, path: Path) -> NamedSchema | None:
        full_name, local, _ = qualify(name, namespace)
        if not self._is_name(local):
            raise bad_name(local, "the type's name", path)
        return self._types.get(full_name)

    def _undefined(self, name: str, path: Path) -> InvalidAvro:
        import difflib

        known = [*PRIMITIVE_TYPES, *list(self._types)[:1000]]
        near = difflib.get_close_matches(name, known, 1) or difflib.get_close_matches(name.lower(), known, 1)
        if name in _WITH_PARTS:
            what = f"{shown(name)} is a type with parts, which is an object of its own"
            return invalid(
                what, path, fix=f'write {{"type": {{"type": {shown(name)}, ...}}}}, with its parts inside'
            )
        hint = f"write {shown(near[0])}, if that is meant; otherwise define" if near else "define"
        return invalid(
            f"{shown(name)} is not defined at this place", path, fix=f"{hint} it before its first use"
        )


class Avro1120(DefinitionReader):
    """Avro 1.12.0 in Pulsar 4.2: types are known as soon as they are named, which is before records have fields."""

    known_inside = True

    def _is_same(self, named: NamedSchema, earlier: NamedSchema) -> bool:
        if isinstance(named, Record):
            # The new one has no fields yet, and is equal only to one that has none, either.
            return isinstance(earlier, Record) and id(earlier) in self._open
        return equal(named, earlier)


class Avro1122(DefinitionReader):
    """Avro 1.12.2 in Pulsar 5.0, which reads `{"type": "Name"}` for it, with a JSON parser that refuses comments (AvroSchemaCompat)."""

    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        if without_comments(self._text) != self._text:
            what = f'"type" is {shown(name)}; expected a kind of type, because the definition has comments'
            raise invalid(what, path, "type", fix=f"write {shown(name)} in place of the object")
        return self._reference(name, namespace, path)


class _FileReader(Avro1122):
    """Reads one file of a definition; `missing` are the types that it does not define itself."""

    def read(self) -> Schema:
        root = self._schema(self._json, None, ())
        self.missing = {each.target for each in self._unresolved} - self._types.keys()
        for name in self.missing:
            namespace, _, local = name.rpartition(".")
            self._types[name] = stub = Fixed(name, local, namespace or None)
            stub.size = 1
        resolve(root, self._unresolved, self._holders, self._types)
        return root


class AvroOfSpark40(Avro1120):
    """Avro 1.12.0 in Spark 4.0."""

    marks = "_"


class AvroOfSpark41(DefinitionReader):
    """Avro 1.12.1 in Spark 4.1 to 4.3."""

    marks = "_"


_DIALECTS: Final[Mapping[Release, type[DefinitionReader]]] = {
    Release.R4_0: Avro111,
    Release.R4_2: Avro1120,
    Release.R5_0: Avro1122,
}
