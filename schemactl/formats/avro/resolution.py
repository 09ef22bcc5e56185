"""Whether a reader can decode what a writer wrote, and every reason why it may not.

Follows org.apache.avro.SchemaCompatibility of Avro 1.12.1 step by step: the same incompatibilities in the same order, at
the same locations, with the same messages. `verdicts` answers yes or no only, and faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from schemactl.formats.avro.equality import size
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

MAX_LISTED: Final = 200_000
"""Of the reasons found for pairs inside one another, counted at each pair around them: what is more goes unlisted.

Java has no such bound: a record of two fields of another such record, and so on for 60 levels, has 2^60 reasons to it.
"""

MAX_BRANCHES: Final = 500_000
"""So many branches of a reader's unions are compared with what is written; then only those that it could be by type and name.

Java has no such bound, and spends hours on two unions of 100,000 records.
"""

MAX_PROOF_STEPS: Final = 200_000
"""So much work is spent on one pair of definitions to see what Java's reader decodes all the same."""


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
    comparison = _Comparison()
    found = comparison.compare(reader, writer, at)
    return comparison.settled(found if isinstance(found, tuple) else run(found))


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

    __slots__ = ("_branches", "_known", "_listed", "_unions", "_unsettled")

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Reasons] = {}
        self._listed = self._branches = 0
        self._unions: dict[Union, dict[str, list[int]]] = {}
        """The branches of unions by what they read: see `_like`."""
        self._unsettled: dict[int, tuple[Incompatibility, Union, Schema]] = {}
        """By its identity, that a branch is missing: in which union, and for what."""

    def compare(self, reader: Schema, writer: Schema, location: Location) -> Reasons | Deep[Reasons]:
        """What is found for a pair, or the call that will find it."""
        while True:  # containers lead straight on
            if isinstance(reader, Array) and isinstance(writer, Array):
                reader, writer, location = reader.items, writer.items, (location, "items")
            elif isinstance(reader, Map) and isinstance(writer, Map):
                reader, writer, location = reader.values, writer.values, (location, "values")
            else:
                break
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
        found = self._known[pair] = leaf_reasons(reader, writer, location)
        return found

    def _records(self, reader: Record, writer: Record, location: Location) -> Deep[Reasons]:
        reasons = [*_names(reader, writer, location)]
        place = (location, "fields")
        for index, field in enumerate(reader.fields):
            source = writer_field(field, writer, (place, index))
            if source is not None:
                found = self.compare(field.schema, source.schema, ((place, index), "type"))
                self._list(reasons, found if isinstance(found, tuple) else (yield found))
            elif field.default is NO_DEFAULT:
                self._list(reasons, self._missing_field(field, writer, (place, index)))
        found = self._known[id(reader), id(writer)] = tuple(reasons)
        return found

    def _list(self, reasons: list[Incompatibility], more: Reasons) -> None:
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
            found = self.compare(field.schema, writer, (location, "type"))
            return found if isinstance(found, tuple) else run(found)
        return _reason("READER_FIELD_MISSING_DEFAULT_VALUE", location, field.name)

    def _writer_union(self, reader: Schema, writer: Union, location: Location) -> Deep[Reasons]:
        """Every branch has to be read. A reader that is a union, too, only says which branch it does not read."""
        reasons: list[Incompatibility] = []
        for index, branch in enumerate(writer.branches):
            at_branch = (location, ~index)
            found = self.compare(reader, branch, (at_branch,) if isinstance(reader, Union) else at_branch)
            if not isinstance(found, tuple):
                found = yield found
            if found and isinstance(reader, Union):
                found = self._missing_branch(reader, branch, at_branch)
            self._list(reasons, found)
        found = self._known[id(reader), id(writer)] = tuple(reasons)
        return found

    def _reader_union(self, reader: Union, writer: Schema, location: Location) -> Deep[Reasons]:
        """One branch has to read the writer; why the others do not is of no interest."""
        reasons = COMPATIBLE
        for index in self._like(writer, reader):
            found = self.compare(reader.branches[index], writer, ((location, index),))
            if not isinstance(found, tuple):
                found = yield found
            if not found:
                break
        else:
            reasons = self._missing_branch(reader, writer, location)
        self._known[id(reader), id(writer)] = reasons
        return reasons

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

    def _missing_branch(self, reader: Union, writer: Schema, location: Location) -> Reasons:
        message = f"reader union lacking writer type: {writer.type.upper()}"
        like = self._like(writer, reader) if self._branches > MAX_BRANCHES else range(len(reader.branches))
        index = next((index for index in like if is_meant_for(reader.branches[index], writer)), None)
        found = _reason(
            "MISSING_UNION_BRANCH", location, message, way=(location, index) if index is not None else None
        )
        if isinstance(writer, Record | Array | Map):
            self._unsettled[id(found[0])] = found[0], reader, writer
        return found

    def settled(self, reasons: Reasons) -> Reasons:
        """`reasons`, and whether Java's reader decodes what a union lacks a branch for all the same.

        A record that is only called otherwise is found by its structure.
        """
        if not self._unsettled:
            return reasons
        from schemactl.formats.avro.grammar import proof

        room = MAX_PROOF_STEPS
        settled: dict[int, Incompatibility] = {}
        for reason in reasons:
            if id(reason) in settled or id(reason) not in self._unsettled:
                continue
            settled[id(reason)] = reason
            _, reader, writer = self._unsettled[id(reason)]
            room -= size(writer, at_most=room) + size(reader, at_most=room)
            if room <= 0:
                break
            room, decodes = proof(reader=reader, writer=writer, release=Release.R5_0, steps=room)
            if decodes:
                way = reason.way
                if branch_for(writer, reader) is None:
                    way = way, [branch.type for branch in reader.branches].index(writer.type)
                settled[id(reason)] = replace(reason, strict_only=True, way=way)
        return tuple(settled.get(id(reason), reason) for reason in reasons)


def leaf_reasons(reader: Schema, writer: Schema, location: Location) -> Reasons:
    """What is found for a pair that holds nothing to compare further."""
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        return _names(reader, writer, location) + _symbols(reader, writer, location)
    if isinstance(reader, Fixed) and isinstance(writer, Fixed):
        return _names(reader, writer, location) + _sizes(reader, writer, location)
    return _type_mismatch(reader, writer, location)


def names_match(reader: Named, writer: Named) -> bool:
    """Whether names match without their namespaces, or through one of the reader's aliases."""
    # An alias in the null namespace does not count where the type has a namespace: Java writes a dot before it.
    return reader.name == writer.name or (
        writer.full_name in reader.aliases and bool(writer.namespace or not reader.namespace)
    )


def _names(reader: Named, writer: Named, location: Location) -> Reasons:
    if names_match(reader, writer):
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


def branch_for(schema: Schema, union: Union) -> int | None:
    """The index of the branch of `union` that is meant for `schema`: of its name, or of its type where types have none."""
    return next((index for index, branch in enumerate(union.branches) if is_meant_for(branch, schema)), None)


def is_meant_for(branch: Schema, schema: Schema) -> bool:
    """Whether `branch` has the name of `schema`, or its type where types have none."""
    return branch.type == schema.type and (
        not isinstance(branch, Named) or branch.name == schema.full_name.rpartition(".")[2]
    )


def _type_mismatch(reader: Schema, writer: Schema, location: Location) -> Reasons:
    message = f"reader type: {reader.type.upper()} not compatible with writer type: {writer.type.upper()}"
    return _reason("TYPE_MISMATCH", location, message)


def _reason(
    rule: str, location: Location, message: str, *, strict_only: bool = False, way: Location | None = None
) -> Reasons:
    return (Incompatibility(rule, pointer(location), message, strict_only, location if way is None else way),)
