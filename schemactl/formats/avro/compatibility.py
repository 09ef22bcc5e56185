"""Whether a reader can decode a writer's messages, with every reason why not.

Follows org.apache.avro.SchemaCompatibility of Avro 1.12.1 step by step: the same incompatibilities in the same order, at
the same locations, with the same messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from types import GeneratorType
from typing import Any, Final

from schemactl.core.findings import Incompatibility
from schemactl.formats.avro.equality import children
from schemactl.formats.avro.incompatibilities import (
    COMPATIBLE,
    Location,
    Reason,
    Reasons,
    described,
    leaf_reasons,
    name_reasons,
    pointer,
)
from schemactl.formats.avro.recursion import Deep, run
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PROMOTIONS,
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

MAX_LISTED: Final = 200_000
"""Of the reasons found for pairs inside one another, counted at each pair around them: what is more goes unlisted.

Java has no such bound: a record of two fields of another such record, and so on for 60 levels, has 2^60 reasons to it.
"""

MAX_BRANCHES: Final = 200_000
"""So many branches of a reader's unions are compared with what is written; then only those that it could be by type and name.

Java has no such bound, and spends hours on two unions of 100,000 records.
"""

MAX_COMPARED: Final = 100_000
"""So many named types are remembered for more verdicts; then all are forgotten."""


class AmbiguousAlias(Exception):
    """A reader's field has several fields of the writer's record to its name and aliases: Java refuses to choose.

    The whole check ends with an AvroRuntimeException then, whatever else it has found.

    Attributes:
        pointer: the reader's field.
        trace: as in Incompatibility.
    """

    def __init__(self, name: str, location: Location) -> None:
        super().__init__(f"Reader record field {name} matches multiple fields in writer record schema")
        self.pointer = pointer(location)
        self.trace = location


def incompatibilities(*, reader: Schema, writer: Schema, at: Location = ()) -> tuple[Incompatibility, ...]:
    """Return every reason why `reader` may fail on data written with `writer`, in Java's order.

    Args:
        reader: what reads.
        writer: what has written.
        at: where both stand in others.

    Raises:
        AmbiguousAlias: Java gives no list, it throws.
    """
    return described(_PairComparison().run(reader, writer, at))


def writer_field(field: Field, writer: Record, location: Location) -> Field | None:
    """Return the one field of `writer` that the reader's `field` takes its values from (Java's lookupWriterField).

    Raises:
        AmbiguousAlias: there are several.
    """
    names = [name for name in (field.name, *field.aliases) if name in writer.fields_by_name]
    if len(names) > 1:
        raise AmbiguousAlias(field.name, location)
    return writer.fields_by_name[names[0]] if names else None


Pair = tuple[Any, ...]
"""A reader and a writer; for a primitive also what holds it, as one node stands for many places."""


_HOLDERS: Final = frozenset({Record, Array, Map})


class _PairComparison:
    """One run of Java's ReaderWriterCompatibilityChecker.

    What was found for a pair is remembered by the identity of reader and writer, and comes back with the location of
    the first visit, as in Java. A pair whose comparison is under way counts as compatible.
    """

    __slots__ = ("_branches", "_known", "_listed", "_unions", "_verdicts")

    def __init__(self, known: KnownVerdicts | None = None) -> None:
        """Start a run. What `known` has seen of equal parts is not compared again, so locations may be another pair's."""
        self._verdicts = known
        self._known: dict[Pair, Reasons] = {}
        self._listed = self._branches = 0
        self._unions: dict[Union, dict[str, list[int]]] = {}
        """The branches of unions by what they read: see `_like`."""

    def run(self, reader: Schema, writer: Schema, location: Location) -> Reasons:
        """Return what is found for two whole schemas."""
        found: Reasons | Deep[Reasons] = self._compare(reader, writer, location, None, None)
        return found if isinstance(found, tuple) else run(found)

    def _compare(
        self, reader: Any, writer: Any, location: Location, used_in: object, written_in: object
    ) -> Any:
        """Return the Reasons for a pair, or a generator that finds them where other pairs are inside (see `recursion`).

        The fields, containers or unions that hold the two are `used_in` and `written_in`.
        """
        kind, written = type(reader), type(writer)
        pair: Pair = reader, writer
        if kind is Primitive or written is Primitive:
            if _reads_primitive(reader, writer):
                return COMPATIBLE
            # A node that stands for many places, told apart by what holds it.
            pair = (
                reader,
                writer,
                used_in if kind is Primitive else None,
                written_in if written is Primitive else None,
            )
        known = self._known.get(pair)
        if known is not None:
            return known
        if kind is written:
            if kind is Enum or kind is Fixed:
                found = self._known[pair] = leaf_reasons(reader, writer, location)
                return found
            self._known[pair] = COMPATIBLE
            if kind is Record:
                if self._verdicts is None:
                    return self._records(reader, writer, location)
                return self._verdicts.compare(reader, writer, self._records(reader, writer, location))
            if kind is Array:
                return self._items(pair, reader.items, writer.items, (location, "items"))
            if kind is Map:
                return self._items(pair, reader.values, writer.values, (location, "values"))
        if written is Union:
            self._known[pair] = COMPATIBLE
            if kind is Union and _has_all(reader.branches, writer.branches):
                return COMPATIBLE
            return self._writer_union(pair, reader, writer, location, used_in)
        if kind is Union:
            self._known[pair] = COMPATIBLE
            return self._reader_union(pair, reader, writer, location, written_in)
        found = self._known[pair] = leaf_reasons(reader, writer, location)
        return found

    def _items(self, pair: Pair, used: Schema, written: Schema, location: Location) -> Any:
        found = self._compare(used, written, location, *pair)
        if type(found) is GeneratorType:
            return self._deep_items(pair, found)
        self._known[pair] = found
        return found

    def _deep_items(self, pair: Pair, call: Deep[Reasons]) -> Deep[Reasons]:
        found: Reasons = yield call
        self._known[pair] = found
        return found

    def _records(self, reader: Record, writer: Record, location: Location) -> Deep[Reasons]:
        reasons = [] if reader.name == writer.name else [*name_reasons(reader, writer, location)]
        sources = writer.fields_by_name
        for index, field in enumerate(reader.fields):
            if field.aliases:
                source = writer_field(field, writer, (location, "fields", index))
            else:
                source = sources.get(field.name)
            if source is not None:
                used, written = field.schema, source.schema
                if used is written and type(used) is Primitive:
                    continue
                found = self._compare(used, written, (location, "fields", index, "type"), field, source)
                if type(found) is GeneratorType:
                    found = yield found
                if found:
                    self._list(reasons, found)
            elif field.default is NO_DEFAULT:
                self._list(reasons, self._missing_field(field, writer, (location, "fields", index)))
        found = self._known[reader, writer] = tuple(reasons)
        return found

    def _list(self, reasons: list[Reason], more: Reasons) -> None:
        """Put down `more`, as long as there is room; one at least, which decides."""
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
            found: Reasons = self._compare(field.schema, writer, (location, "type"), field, None)
            return found
        return (("READER_FIELD_MISSING_DEFAULT_VALUE", location, field, writer),)

    def _writer_union(
        self, pair: Pair, reader: Any, writer: Union, location: Location, used_in: object
    ) -> Deep[Reasons]:
        """Compare every branch. A reader that is a union, too, only says which branch it does not read."""
        into_union = type(reader) is Union
        reasons: list[Reason] = []
        for index, branch in enumerate(writer.branches):
            if into_union and type(branch) is Primitive and branch in reader.branches:
                continue
            at_branch = (location, ~index)
            found = self._compare(reader, branch, (at_branch,) if into_union else at_branch, used_in, writer)
            if type(found) is GeneratorType:
                found = yield found
            if found:
                if into_union:
                    found = (("MISSING_UNION_BRANCH", at_branch, reader, branch),)
                self._list(reasons, found)
        found = self._known[pair] = tuple(reasons)
        return found

    def _reader_union(
        self, pair: Pair, reader: Union, writer: Any, location: Location, written_in: object
    ) -> Any:
        """Look for a branch that reads the writer; why the others do not is of no interest."""
        if type(writer) in _HOLDERS:
            return self._holder_in_union(reader, writer, location)
        for index in self._like(writer, reader):
            branch = reader.branches[index]
            if type(branch) is Primitive:
                if _reads_primitive(branch, writer):
                    return COMPATIBLE
            elif not self._compare(branch, writer, ((location, index),), reader, written_in):
                return COMPATIBLE
        found = self._known[pair] = (("MISSING_UNION_BRANCH", location, reader, writer),)
        return found

    def _holder_in_union(
        self, reader: Union, writer: Record | Array | Map, location: Location
    ) -> Deep[Reasons]:
        for index in self._like(writer, reader):
            branch = reader.branches[index]
            if type(branch) is not Primitive:
                found = self._compare(branch, writer, ((location, index),), reader, None)
                if type(found) is GeneratorType:
                    found = yield found
                if not found:
                    return COMPATIBLE
        found = self._known[reader, writer] = (("MISSING_UNION_BRANCH", location, reader, writer),)
        return found

    def _like(self, writer: Schema, reader: Union) -> Iterable[int]:
        """Return the branches that `writer` is compared with, in order."""
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


class KnownVerdicts:
    """Yes or no for many pairs of definitions that have most of their parts in common: the versions of topics.

    Equal records are compared once, wherever they stand, unless one leads to a record inside itself: what is found for
    such a pair depends on what is around it.
    """

    def __init__(self) -> None:
        self._unused = itertools.count()
        self._numbers: dict[Hashable, int] = {}
        """A number for each part that differs from the others in what reading depends on."""
        self._parts: dict[Schema, int | None] = {}
        """The numbers of named types; None where one leads to a record inside itself."""
        self._found: dict[tuple[int, int], Reasons] = {}

    def can_read(self, *, reader: Schema, writer: Schema) -> bool:
        """Whether there are no `incompatibilities`; an ambiguous alias counts as one."""
        if len(self._parts) > MAX_COMPARED:
            self._numbers, self._parts, self._found = {}, {}, {}
        for schema in (reader, writer):
            number = self._number(schema)
            if type(number) is GeneratorType:
                run(number)
        try:
            return not _PairComparison(self).run(reader, writer, ())
        except AmbiguousAlias:
            return False

    def compare(self, reader: Record, writer: Record, comparison: Deep[Reasons]) -> Reasons | Deep[Reasons]:
        """Return what is known of two records that equal these, or a generator that makes the `comparison`."""
        used, written = self._parts[reader], self._parts[writer]
        if used is None or written is None:
            return comparison
        known = self._found.get((used, written))
        return self._compared((used, written), comparison) if known is None else known

    def _compared(self, numbers: tuple[int, int], comparison: Deep[Reasons]) -> Deep[Reasons]:
        found: Reasons = yield comparison
        self._found[numbers] = found
        return found

    def _number(self, schema: Schema) -> Any:
        """Return the number of a part, or a generator that finds it."""
        if type(schema) is Primitive:
            return self._numbers.setdefault(schema.type, next(self._unused))
        if schema in self._parts:
            return self._parts[schema]
        return self._number_by_parts(schema)

    def _number_by_parts(self, schema: Schema) -> Deep[int | None]:
        key: list[Hashable] = [schema.type]
        if isinstance(schema, Named):
            self._parts[schema] = None  # as long as this is under way, it is inside itself
            key += schema.full_name, schema.aliases
        if isinstance(schema, Record):
            key += [(field.name, field.aliases, field.default is NO_DEFAULT) for field in schema.fields]
        elif isinstance(schema, Enum):
            key += schema.symbols, schema.default is None
        elif isinstance(schema, Fixed):
            key.append(schema.size)
        inner: list[int | None] = []
        for child in children(schema):
            number = self._number(child)
            if type(number) is GeneratorType:
                number = yield number
            inner.append(number)
        if None in inner:
            return None
        number = self._numbers.setdefault((*key, *inner), next(self._unused))
        if isinstance(schema, Named):
            self._parts[schema] = number
        return number


def _has_all(branches: Sequence[Schema], written: Sequence[Schema]) -> bool:
    """Whether all that is `written` are primitives that are among the `branches` as they stand."""
    for branch in written:  # noqa: SIM110  all() takes longer than most unions
        if type(branch) is not Primitive or branch not in branches:
            return False
    return True


def _reads_primitive(reader: Schema, writer: Schema) -> bool:
    """Whether `writer` is a primitive that `reader`, or a branch of it as it stands, reads: as most of what is compared."""
    if type(writer) is not Primitive:
        return False
    if type(reader) is Primitive:
        return writer.type in PROMOTIONS[reader.type]
    return type(reader) is Union and writer in reader.branches
