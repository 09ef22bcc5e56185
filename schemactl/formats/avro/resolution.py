"""Whether a reader can decode what a writer wrote, and every reason why it may not.

Follows org.apache.avro.SchemaCompatibility of Avro 1.12.1 step by step: the same incompatibilities in the same order, at
the same locations, with the same messages. `verdicts` answers yes or no only, and faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from schemactl.formats.avro.reasons import (
    COMPATIBLE,
    Location,
    Reason,
    Reasons,
    leaf_reasons,
    name_reasons,
    pointer,
    told,
)
from schemactl.formats.avro.recursion import room
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
)
from schemactl.verdicts import Incompatibility

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

FRAMES_OF_THE_DEEPEST: Final = 100_000_000
"""More calls inside one another than there is memory for: a chain of references may be as long as a definition."""

MAX_LISTED: Final = 200_000
"""Of the reasons found for pairs inside one another, counted at each pair around them: what is more goes unlisted.

Java has no such bound: a record of two fields of another such record, and so on for 60 levels, has 2^60 reasons to it.
"""

MAX_BRANCHES: Final = 200_000
"""So many branches of a reader's unions are compared with what is written; then only those that it could be by type and name.

Java has no such bound, and spends hours on two unions of 100,000 records.
"""


class AmbiguousAlias(Exception):
    """A reader's field has several fields of the writer's record to its name and aliases: Java refuses to choose.

    The whole check ends with an AvroRuntimeException then, whatever else it has found.

    Attributes:
        pointer: the reader's field.
        matches: the names of the writer's fields.
        trace: as in Incompatibility.
    """

    def __init__(self, field: Field, matches: list[str], location: Location) -> None:
        super().__init__(f"Reader record field {field.name} matches multiple fields in writer record schema")
        self.field = field
        self.matches = matches
        self.pointer = pointer(location)
        self.trace = location


def incompatibilities(*, reader: Schema, writer: Schema, at: Location = ()) -> tuple[Incompatibility, ...]:
    """Every reason why `reader` may fail on data written with `writer`, in Java's order; both stand at `at` of others.

    Raises:
        AmbiguousAlias: Java gives no list, it throws.
    """
    try:
        return told(_Comparison().compare(reader, writer, at, None, None))
    except RecursionError:
        with room(FRAMES_OF_THE_DEEPEST):
            return told(_Comparison().compare(reader, writer, at, None, None))


def writer_field(field: Field, writer: Record, location: Location) -> Field | None:
    """The one field of `writer` that the reader's `field` takes its values from (Java's lookupWriterField).

    Raises:
        AmbiguousAlias: there are several.
    """
    names = [name for name in (field.name, *field.aliases) if name in writer.fields_by_name]
    if len(names) > 1:
        raise AmbiguousAlias(field, names, location)
    return writer.fields_by_name[names[0]] if names else None


Pair = tuple[Schema, Schema] | tuple[Schema, Schema, object, object]


class _Comparison:
    """One run of Java's ReaderWriterCompatibilityChecker.

    What was found for a pair is remembered by the identity of reader and writer, and comes back with the location of
    the first visit, as in Java. A pair whose comparison is under way counts as compatible.
    """

    __slots__ = ("_branches", "_known", "_listed", "_unions")

    def __init__(self) -> None:
        self._known: dict[Pair, Reasons] = {}
        self._listed = self._branches = 0
        self._unions: dict[Union, dict[str, list[int]]] = {}
        """The branches of unions by what they read: see `_like`."""

    def compare(
        self, reader: Schema, writer: Schema, location: Location, used_in: object, written_in: object
    ) -> Reasons:
        """What is found for a pair; the fields, containers or unions that hold the two are `used_in` and `written_in`."""
        kind, written = type(reader), type(writer)
        pair: Pair = reader, writer
        if kind is Primitive or written is Primitive:
            if _reads_primitive(reader, writer):
                return COMPATIBLE
            # A node that stands for many places, told apart by what holds it.
            pair = *pair, used_in if kind is Primitive else None, written_in if written is Primitive else None
        known = self._known.get(pair)
        if known is not None:
            return known
        self._known[pair] = COMPATIBLE
        if isinstance(writer, Record) and isinstance(reader, Record):
            found = self._records(reader, writer, location)
        elif isinstance(writer, Union):
            found = self._writer_union(reader, writer, location, used_in)
        elif isinstance(reader, Union):
            found = self._reader_union(reader, writer, location, written_in)
        elif isinstance(reader, Array) and isinstance(writer, Array):
            found = self.compare(reader.items, writer.items, (location, "items"), reader, writer)
        elif isinstance(reader, Map) and isinstance(writer, Map):
            found = self.compare(reader.values, writer.values, (location, "values"), reader, writer)
        else:
            found = leaf_reasons(reader, writer, location)
        self._known[pair] = found
        return found

    def _records(self, reader: Record, writer: Record, location: Location) -> Reasons:
        reasons = [] if reader.name == writer.name else [*name_reasons(reader, writer, location)]
        sources = writer.fields_by_name
        place = (location, "fields")
        for index, field in enumerate(reader.fields):
            source = writer_field(field, writer, (place, index)) if field.aliases else sources.get(field.name)
            if source is not None:
                if not _reads_primitive(field.schema, source.schema):
                    at = ((place, index), "type")
                    self._list(reasons, self.compare(field.schema, source.schema, at, field, source))
            elif field.default is NO_DEFAULT:
                self._list(reasons, self._missing_field(field, writer, (place, index)))
        return tuple(reasons)

    def _list(self, reasons: list[Reason], more: Reasons) -> None:
        """Puts down `more`, as long as there is room; one at least, which decides."""
        if not more:
            return
        self._listed += len(more)
        if self._listed <= MAX_LISTED:
            reasons += more
        elif not reasons:
            reasons.append(more[0])

    def _missing_field(self, field: Field, writer: Record, location: Location) -> Reasons:
        if isinstance(field.schema, Enum) and field.schema.default is not None:
            # Java takes the enum's default for the field's, and compares the enum with the whole record.
            return self.compare(field.schema, writer, (location, "type"), field, None)
        return (Reason("READER_FIELD_MISSING_DEFAULT_VALUE", location, field, writer),)

    def _writer_union(self, reader: Schema, writer: Union, location: Location, used_in: object) -> Reasons:
        """Every branch has to be read. A reader that is a union, too, only says which branch it does not read."""
        reasons: list[Reason] = []
        into_union = isinstance(reader, Union)
        for index, branch in enumerate(writer.branches):
            if _reads_primitive(reader, branch):
                continue
            at_branch = (location, ~index)
            place = (at_branch,) if into_union else at_branch
            found = self.compare(reader, branch, place, used_in, writer)
            if found and into_union:
                found = (Reason("MISSING_UNION_BRANCH", at_branch, reader, branch),)
            self._list(reasons, found)
        return tuple(reasons)

    def _reader_union(self, reader: Union, writer: Schema, location: Location, written_in: object) -> Reasons:
        """One branch has to read the writer; why the others do not is of no interest."""
        for index in self._like(writer, reader):
            branch = reader.branches[index]
            if type(branch) is Primitive:
                if _reads_primitive(branch, writer):
                    return COMPATIBLE
            elif not self.compare(branch, writer, ((location, index),), reader, written_in):
                return COMPATIBLE
        return (Reason("MISSING_UNION_BRANCH", location, reader, writer),)

    def _like(self, writer: Schema, reader: Union) -> Iterable[int]:
        """The branches that `writer` is compared with, in order."""
        self._branches += len(reader.branches)
        if self._branches <= MAX_BRANCHES:
            return range(len(reader.branches))
        like = self._unions.get(reader)
        if like is None:
            like = self._unions[reader] = {}
            for index, branch in enumerate(reader.branches):
                names = (
                    (f"{branch.type} {branch.name}", *branch.aliases) if isinstance(branch, Named) else ("",)
                )
                for name in names:
                    like.setdefault(name, []).append(index)
        if not isinstance(writer, Named):
            return like.get("", ())
        return sorted({*like.get(f"{writer.type} {writer.name}", ()), *like.get(writer.full_name, ())})


def _reads_primitive(reader: Schema, writer: Schema) -> bool:
    """Whether `writer` is a primitive that `reader`, or a branch of it as it stands, reads: as most of what is compared."""
    if type(writer) is not Primitive:
        return False
    if type(reader) is Primitive:
        return writer.type in PROMOTIONS[reader.type]
    return type(reader) is Union and writer in reader.branches
