"""Whether a reader can decode what a writer wrote, and every reason why it may not.

Follows org.apache.avro.SchemaCompatibility of Avro 1.12.1 step by step: the same incompatibilities in the same order, at
the same locations, with the same messages. `verdicts` answers yes or no only, and faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schemactl.formats.avro.recursion import Deep, run
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
)
from schemactl.model import Incompatibility, Release

PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "int": frozenset({"int"}),
    "long": frozenset({"int", "long"}),
    "float": frozenset({"int", "long", "float"}),
    "double": frozenset({"int", "long", "float", "double"}),
    "bytes": frozenset({"bytes", "string"}),
    "string": frozenset({"bytes", "string"}),
}
"""The writer's primitive types that a reader's primitive type reads."""

Location = tuple[Any, ...]
"""Where in the reader's definition: () for the root, otherwise the location around it and a token.

A writer's branch, which Java's pointers count, too, is its index negated by `~`: the reader's text has no such place. Where
Java starts its pointer anew, inside a union, a location of one part is the root; the part is where that is.
"""


Reasons = tuple[Incompatibility, ...]
"""Why a pair is incompatible; empty if it is compatible."""

COMPATIBLE: Final[Reasons] = ()


class AmbiguousAlias(Exception):
    """A reader's field has several fields of the writer's record to its name and aliases: Java refuses to choose.

    The whole check ends with an AvroRuntimeException then, whatever else it has found.

    Attributes:
        pointer: the reader's field.
        matches: the names of the writer's fields.
        way: as in Incompatibility.
    """

    def __init__(self, field: Field, matches: list[str], location: Location) -> None:
        super().__init__(f"Reader record field {field.name} matches multiple fields in writer record schema")
        self.field = field
        self.matches = matches
        self.pointer = pointer(location)
        self.way = location


def incompatibilities(*, reader: Schema, writer: Schema, at: Location = ()) -> Reasons:
    """Every reason why `reader` may fail on data written with `writer`, in Java's order; both stand at `at` of others.

    Raises:
        AmbiguousAlias: Java gives no list, it throws.
    """
    found = _Comparison().compare(reader, writer, at)
    return found if isinstance(found, tuple) else run(found)


def pointer(location: Location) -> str:
    """A location as Java prints it: a JSON pointer, but `/` for the root."""
    tokens: list[str] = []
    while len(location) > 1:
        location, token = location
        tokens.append(str(~token if isinstance(token, int) and token < 0 else token))
    return "/" + "/".join(reversed(tokens))


def tokens(location: Location) -> tuple[str | int, ...]:
    """What leads from the roots of reader and writer to a location, the branches of both among it."""
    found: list[str | int] = []
    while location:
        if len(location) == 1:
            (location,) = location
            continue
        location, token = location
        found.append(token)
    return tuple(reversed(found))


def writer_field(field: Field, writer: Record, location: Location) -> Field | None:
    """The one field of `writer` that the reader's `field` takes its values from (Java's lookupWriterField).

    Raises:
        AmbiguousAlias: there are several.
    """
    names = [name for name in (field.name, *field.aliases) if name in writer.fields_by_name]
    if len(names) > 1:
        raise AmbiguousAlias(field, names, location)
    return writer.fields_by_name[names[0]] if names else None


class _Comparison:
    """One run of Java's ReaderWriterCompatibilityChecker.

    What was found for a pair is remembered by the identity of reader and writer, and comes back with the location of
    the first visit, as in Java. A pair whose comparison is under way counts as compatible. Pairs of primitives are not
    remembered: Java meets each only once.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Reasons] = {}

    def compare(self, reader: Schema, writer: Schema, location: Location) -> Reasons | Deep[Reasons]:
        """What is found for a pair, or the call that will find it."""
        if isinstance(reader, Primitive) and isinstance(writer, Primitive):
            if writer.type in PROMOTIONS[reader.type]:
                return COMPATIBLE
            return _type_mismatch(reader, writer, location)
        pair = id(reader), id(writer)
        if pair in self._known:
            return self._known[pair]
        self._known[pair] = COMPATIBLE
        if isinstance(reader, Record) and isinstance(writer, Record):
            return self._records(reader, writer, location)
        if isinstance(writer, Union):
            return self._writer_union(reader, writer, location)
        if isinstance(reader, Union):
            return self._reader_union(reader, writer, location)
        if isinstance(reader, Array) and isinstance(writer, Array):
            return self.compare(reader.items, writer.items, (location, "items"))
        if isinstance(reader, Map) and isinstance(writer, Map):
            return self.compare(reader.values, writer.values, (location, "values"))
        found = self._known[pair] = _leaves(reader, writer, location)
        return found

    def _records(self, reader: Record, writer: Record, location: Location) -> Deep[Reasons]:
        reasons = _names(reader, writer, location)
        place = (location, "fields")
        for index, field in enumerate(reader.fields):
            source = writer_field(field, writer, (place, index))
            if source is not None:
                found = self.compare(field.schema, source.schema, ((place, index), "type"))
                reasons += found if isinstance(found, tuple) else (yield found)
            elif field.default is NO_DEFAULT:
                reasons += self._missing_field(field, writer, (place, index))
        self._known[id(reader), id(writer)] = reasons
        return reasons

    def _missing_field(self, field: Field, writer: Record, location: Location) -> Reasons:
        if isinstance(field.schema, Enum) and field.schema.default is not None:
            # Java takes the enum's default for the field's, and compares the enum with the whole record.
            found = self.compare(field.schema, writer, (location, "type"))
            return found if isinstance(found, tuple) else run(found)
        return _reason("READER_FIELD_MISSING_DEFAULT_VALUE", location, field.name)

    def _writer_union(self, reader: Schema, writer: Union, location: Location) -> Deep[Reasons]:
        """Every branch has to be read. A reader that is a union, too, only says which branch it does not read."""
        reasons = COMPATIBLE
        for index, branch in enumerate(writer.branches):
            at_branch = (location, ~index)
            found = self.compare(reader, branch, (at_branch,) if isinstance(reader, Union) else at_branch)
            if not isinstance(found, tuple):
                found = yield found
            if found:
                reasons += _missing_branch(reader, branch, at_branch) if isinstance(reader, Union) else found
        self._known[id(reader), id(writer)] = reasons
        return reasons

    def _reader_union(self, reader: Union, writer: Schema, location: Location) -> Deep[Reasons]:
        """One branch has to read the writer; why the others do not is of no interest."""
        reasons = COMPATIBLE
        for index, branch in enumerate(reader.branches):
            found = self.compare(branch, writer, ((location, index),))
            if not isinstance(found, tuple):
                found = yield found
            if not found:
                break
        else:
            reasons = _missing_branch(reader, writer, location)
        self._known[id(reader), id(writer)] = reasons
        return reasons


def _leaves(reader: Schema, writer: Schema, location: Location) -> Reasons:
    """What is found for a pair that holds nothing to compare further."""
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        return _names(reader, writer, location) + _symbols(reader, writer, location)
    if isinstance(reader, Fixed) and isinstance(writer, Fixed):
        return _names(reader, writer, location) + _sizes(reader, writer, location)
    return _type_mismatch(reader, writer, location)


def _names(reader: Named, writer: Named, location: Location) -> Reasons:
    """Names match without their namespaces, or through one of the reader's aliases."""
    if reader.name == writer.name:
        return COMPATIBLE
    # An alias in the null namespace does not count where the type has a namespace: Java writes a dot before it.
    if writer.full_name in reader.aliases and (writer.namespace or not reader.namespace):
        return COMPATIBLE
    # Java's own reader does not compare the names of records; but it looks for a field's aliases under its record's name.
    strict_only = (
        isinstance(reader, Record) and isinstance(writer, Record) and not _needs_aliases(reader, writer)
    )
    return _reason(
        "NAME_MISMATCH", (location, "name"), f"expected: {writer.full_name}", strict_only=strict_only
    )


def _needs_aliases(reader: Record, writer: Record) -> bool:
    """Whether a field of `reader` finds its values by an alias only."""
    there = writer.fields_by_name
    return any(
        field.name not in there and any(alias in there for alias in field.aliases) for field in reader.fields
    )


def _symbols(reader: Enum, writer: Enum, location: Location) -> Reasons:
    missing = set(writer.symbols).difference(reader.symbols)
    if not missing or reader.default is not None:
        return COMPATIBLE
    # Java sorts by UTF-16 units. Symbols are letters and digits of the basic plane, where this is the same order.
    return _reason("MISSING_ENUM_SYMBOLS", (location, "symbols"), f"[{', '.join(sorted(missing))}]")


def _sizes(reader: Fixed, writer: Fixed, location: Location) -> Reasons:
    if reader.size == writer.size:
        return COMPATIBLE
    return _reason(
        "FIXED_SIZE_MISMATCH", (location, "size"), f"expected: {writer.size}, found: {reader.size}"
    )


def _missing_branch(reader: Union, writer: Schema, location: Location) -> Reasons:
    from schemactl.formats.avro.grammar import decodes_all

    # A record that is only called otherwise is found by its structure, and decodes.
    strict_only = isinstance(writer, Record | Array | Map) and decodes_all(
        reader=reader, writer=writer, release=Release.R5_0
    )
    message = f"reader union lacking writer type: {writer.type.upper()}"
    index = branch_for(writer, reader)
    if index is None and strict_only:
        index = [branch.type for branch in reader.branches].index(writer.type)
    way = location if index is None else (location, index)
    return (Incompatibility("MISSING_UNION_BRANCH", pointer(location), message, strict_only, way),)


def branch_for(schema: Schema, union: Union) -> int | None:
    """The index of the branch of `union` that is meant for `schema`: of its name, or of its type where types have none."""
    for index, branch in enumerate(union.branches):
        if branch.type == schema.type and (
            not isinstance(branch, Named) or branch.name == schema.full_name.rpartition(".")[2]
        ):
            return index
    return None


def _type_mismatch(reader: Schema, writer: Schema, location: Location) -> Reasons:
    message = f"reader type: {reader.type.upper()} not compatible with writer type: {writer.type.upper()}"
    return _reason("TYPE_MISMATCH", location, message)


def _reason(rule: str, location: Location, message: str, *, strict_only: bool = False) -> Reasons:
    return (Incompatibility(rule, pointer(location), message, strict_only, location),)
