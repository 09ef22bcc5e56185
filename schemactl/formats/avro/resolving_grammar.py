"""Predict the answer of a broker's own compatibility check of two Avro schemas.

Pulsar calls Java's `Symbol.hasErrors(ResolvingGrammarGenerator.generate(writer, reader))`: Resolver makes a tree of actions, the
generator turns the tree into a grammar, and hasErrors searches the grammar for error symbols. This is not the schema resolution
of the specification: enum symbols and record names are never compared, a default that the reader needs is encoded at once and
throws if it does not fit, and a union chooses one branch for good.

This module builds the grammar in one pass, in Java's order, and leaves out symbols that cannot fail. The order matters for
recursive records: Java flattens the grammar by copying the productions of records into one another, and while two records are
unfinished at the same time, some copies are never completed. Java then throws, even if a schema is compared with itself. A check of
the pairs alone, without the grammar, is much simpler, but it changes 105 of 9,000 answers to random pairs, all where Java throws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final, Literal, TypeVar

from schemactl.core.schema import Release
from schemactl.formats.avro.alias_renaming import apply_aliases
from schemactl.formats.avro.defaults import encode_default
from schemactl.formats.avro.grammar_symbols import (
    Mark,
    Sequence,
    Skip,
    Symbol,
    check_layout,
    find_marks,
    make_alternative,
    make_repeater,
)
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PROMOTIONS,
    Array,
    Fixed,
    JavaException,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    TooDeep,
    Union,
    children,
    equal,
    out_of_memory,
    run_recursion,
    stack_overflow,
)
from schemactl.formats.avro.schema import Enum as EnumSchema

MAX_STEPS: Final = 300_000
"""The number of steps that is assumed to exhaust a broker's memory; two unions of 800 records each can need more."""

_ITEMS_PER_STEP: Final = 16
"""The number of union branches or record fields that count as one step."""

STACK_LEVELS: Final = 1_500
"""The depth of nested types at which Java's recursion is assumed to overflow its stack.

The real limit depends on the code that the JVM has compiled. With the default stack of 1 MiB, 1,000 nested arrays (the maximum of Java's
JSON reader) and 2,000 records that refer to each other by name passed; 3,000 records, or 1,000 records with an array around
each, did not.
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GrammarAnswer:
    """The answer of a broker's check.

    Attributes:
        outcome: `error` if the check throws.
        exception: the simple class name of the Java exception; "" without one.
        message: the message of the Java exception.
    """

    outcome: Literal["ok", "incompatible", "error"]
    exception: str = ""
    message: str = ""


OK: Final = GrammarAnswer("ok")

INCOMPATIBLE: Final = GrammarAnswer("incompatible")


def can_read(*, reader: Schema, writer: Schema, release: Release) -> GrammarAnswer:
    """Predict the answer of a broker of that release to: can `reader` read messages of `writer`?

    `ok` does not mean that every message decodes (see `decodes_all`), and `incompatible` does not mean that none does. Source:
    ValidateMutualRead.canRead, Resolver, ResolvingGrammarGenerator, Symbol; Avro 1.11.4 in Pulsar 4.0, 1.12 in 4.2 and 5.0.
    """
    try:
        marks = Resolution(release, reader).find_marks(writer=writer, reader=reader)
    except JavaException as exception:
        return GrammarAnswer("error", exception.exception, exception.message)
    return INCOMPATIBLE if Mark.ERROR in marks else OK


def decodes_all(*, reader: Schema, writer: Schema, release: Release, steps: int = MAX_STEPS) -> tuple[bool, int]:
    """Return whether that release's GenericDatumReader decodes every message of `writer`, and the remaining steps.

    It does if the check passes and the reader has every enum symbol of the writer, or an enum default. The result is False if
    `steps` do not suffice. Avro 1.12.2 (Pulsar 5.0) can still reject a message: it compares the minimum size of array items in
    the reader's schema with the remaining bytes.
    """
    resolution = Resolution(release, reader, steps)
    try:
        marks = resolution.find_marks(writer=writer, reader=reader)
    except JavaException:
        return False, max(resolution.steps, 0)
    return not marks, resolution.steps


def describe_unreadable(*, reader: Schema, writer: Schema) -> str:
    """Return the message of the SchemaValidationException that a broker throws if the schemas are incompatible."""
    writer_text, reader_text = schema_text(writer, pretty=True), schema_text(reader, pretty=True)
    return f"Unable to read schema: \n{writer_text}\nusing schema:\n{reader_text}"


# Resolver.resolve and ResolvingGrammarGenerator.generate


class Resolution:
    """One run of Resolver.resolve and ResolvingGrammarGenerator.generate, with the memos that Java keeps for it.

    Attributes:
        steps: the remaining steps; negative after the run needed more than it had.
    """

    def __init__(self, release: Release, reader: Schema, steps: int = MAX_STEPS) -> None:
        self.steps = steps
        self._release = release
        self._root = reader
        self._records: dict[tuple[int, int], Symbol | None] = {}  # by identity of writer and reader
        self._has_recursion = False
        self._error_free_records: list[tuple[Record, Sequence]] = []  # of one side, or the same on both
        self._reaches_recursion: dict[Record, bool] = {}
        self._likeness = Likeness()
        self._chosen_branches: dict[tuple[Schema, Union], Schema | None] = {}

    @property
    def is_exhausted(self) -> bool:
        """Whether the steps did not suffice, so that Java's result is unknown."""
        return self.steps < 0

    def find_marks(self, *, writer: Schema, reader: Schema) -> frozenset[Mark]:
        """Return the marks in the grammar of `writer` and `reader`.

        Raises:
            JavaException: if Java throws while it resolves the schemas, or while it generates or searches the grammar.
        """
        writer = apply_aliases(writer=writer, reader=reader, release=self._release)
        symbol = self._run(lambda: self._resolve(writer, reader))
        return find_marks(symbol, has_recursion=self._has_recursion)

    def choose_branch(self, *, writer: Schema, reader: Union) -> Schema | None:
        """Return the branch of `reader` for every value of `writer`, or None if Java throws."""
        pair = writer, reader
        if pair not in self._chosen_branches:
            self._chosen_branches[pair] = self._run(lambda: self._find_branch(writer, reader))
        return self._chosen_branches[pair]

    def _run(self, call: Callable[[], T]) -> T:
        steps = self.steps

        def forget() -> None:
            self._records.clear()
            self._error_free_records.clear()
            self.steps = steps

        try:
            return run_recursion(call, forget)
        except TooDeep:
            raise stack_overflow() from None

    def _resolve(self, writer: Schema, reader: Schema) -> Symbol | None:
        """Follow Resolver.resolve, WriterUnion.resolve and ReaderUnion.resolve."""
        if isinstance(writer, Union):
            if not isinstance(reader, Union) or not self._likeness.are_alike(writer, reader):
                return make_alternative([self._resolve(branch, reader) for branch in writer.branches])
            # Two like unions are compared branch by branch, and errors in them do not count.
            for writer_branch, reader_branch in zip(writer.branches, reader.branches, strict=True):
                if not _is_same_primitive(writer_branch, reader_branch):
                    self._resolve(writer_branch, reader_branch)
            return self._generate(reader)
        if isinstance(reader, Union):
            # One branch is chosen, and no other one is tried.
            branch = self._find_branch(writer, reader)
            return Mark.ERROR if branch is None else make_alternative([self._resolve(writer, branch)])
        if isinstance(writer, Record) and isinstance(reader, Record):
            return self._resolve_records(writer, reader)
        if isinstance(writer, Array) and isinstance(reader, Array):
            return make_repeater(self._resolve(writer.items, reader.items))
        if isinstance(writer, Map) and isinstance(reader, Map):
            return make_repeater(self._resolve(writer.values, reader.values))
        return compare_leaves(writer, reader)

    def _find_branch(self, writer: Schema, reader: Union) -> Schema | None:
        """Find a branch by name, else by structure, else by promotion (ReaderUnion.firstMatchingBranch), or return None."""
        self._count_steps(1 + len(reader.branches) // _ITEMS_PER_STEP)
        structural_match: Schema | None = None
        for branch in reader.branches:
            if branch.type != writer.type:
                continue
            if not isinstance(branch, Named) or branch.full_name == writer.full_name:
                return branch
            if isinstance(writer, Record) and isinstance(branch, Record):
                symbol = self._resolve_records(writer, branch)
                # The record or one of its fields is an error (ReaderUnion.hasMatchError); errors inside a field do not count.
                matches = symbol is not Mark.ERROR and not (isinstance(symbol, Sequence) and Mark.ERROR in symbol.parts)
                # The first branch that matches, or the last one that also has the writer's unqualified name.
                if matches and (structural_match is None or branch.name == writer.name):
                    structural_match = branch
        return structural_match or next((branch for branch in reader.branches if _is_promoted(writer, branch)), None)

    def _resolve_records(self, writer: Record, reader: Record) -> Symbol | None:
        """Follow RecordAdjust.resolve: the writer's fields in their order, then the fields that only the reader has."""
        pair = (id(writer), id(reader))
        if pair in self._records:
            symbol = self._records[pair]
            if isinstance(symbol, Sequence) and not symbol.complete:
                self._has_recursion = True
            return symbol
        parts: list[Symbol] = []
        self._records[pair] = sequence = Sequence(parts)
        if len(self._records) == STACK_LEVELS // 4 and _is_deeper(self._root, STACK_LEVELS):
            raise stack_overflow()
        self._count_steps(1 + len(writer.fields) // _ITEMS_PER_STEP)
        for field in writer.fields:
            reader_field = reader.fields_by_name.get(field.name)
            if reader_field is None:
                skipped = self._generate(field.schema)
                symbol = None if skipped is None else Skip(skipped)
            elif _is_same_primitive(field.schema, reader_field.schema):
                continue
            else:
                symbol = self._resolve(field.schema, reader_field.schema)
            if symbol is not None:
                parts.append(symbol)
        only_reader = reader.fields_by_name.keys() - writer.fields_by_name.keys()
        if only_reader and not self._add_defaults(reader, only_reader, parts):
            sequence.abandoned = True
            self._records[pair] = Mark.ERROR
            return Mark.ERROR
        sequence.complete = True
        if not parts:
            self._records[pair] = None
        return self._records[pair]

    def _add_defaults(self, reader: Record, names: AbstractSet[str], parts: list[Symbol]) -> bool:
        """Add the symbols of the reader's fields with these `names` to `parts`; return False if one lacks a default."""
        for field in reader.fields:
            if field.name not in names:
                continue
            if field.default is NO_DEFAULT:
                return False
            # Java encodes the default and reads the bytes back.
            encoding = encode_default(field, self._release)
            symbol = self._generate(field.schema)
            if symbol is not None:
                parts.append(symbol)
                if encoding and encoding.read_by_grammar:
                    check_layout(symbol)
            if encoding and encoding.unreadable:
                raise encoding.unreadable
        return True

    def _count_steps(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise out_of_memory()

    def _generate(self, schema: Schema) -> Symbol | None:
        """Follow ResolvingGrammarGenerator.simpleGen: a grammar without errors, which matters only for recursive records."""
        if isinstance(schema, Primitive):
            return None
        records = _list_outermost_records([schema])
        if not self._reaches_recursion.keys() >= {*records}:
            self._reaches_recursion |= _find_recursion(records)
        if not any(self._reaches_recursion[record] for record in records):
            return None
        self._has_recursion = True
        return self._generate_error_free(schema)

    def _generate_error_free(self, schema: Schema) -> Symbol | None:
        match schema:
            case Record():
                for record, sequence in self._error_free_records:
                    if schema is record or equal(schema, record):
                        return sequence
                sequence = Sequence([], complete=True)
                self._error_free_records.append((schema, sequence))
                for field in schema.fields:
                    symbol = self._generate_error_free(field.schema)
                    if symbol is not None:
                        sequence.parts.append(symbol)
                return sequence
            case Array():
                return make_repeater(self._generate_error_free(schema.items))
            case Map():
                return make_repeater(self._generate_error_free(schema.values))
            case Union():
                return make_alternative([self._generate_error_free(branch) for branch in schema.branches])
            case _:
                return None


def compare_leaves(writer: Schema, reader: Schema) -> Mark | None:
    """Return the symbol for two schemas of different types, or of a type without inner schemas."""
    if writer.type != reader.type:
        return None if _is_promoted(writer, reader) else Mark.ERROR
    if isinstance(writer, Fixed) and isinstance(reader, Fixed):
        return None if writer.name == reader.name and writer.size == reader.size else Mark.ERROR
    if isinstance(writer, EnumSchema) and isinstance(reader, EnumSchema):
        if writer.name != reader.name:
            return Mark.ERROR
        if reader.default is None and not set(writer.symbols) <= set(reader.symbols):
            return Mark.MISSING_SYMBOL
    return None


def _is_promoted(writer: Schema, reader: Schema) -> bool:
    """Return whether a value of `writer` is promoted to another type (Resolver.Promote)."""
    return writer.type != reader.type and writer.type in PROMOTIONS.get(reader.type, ())


def _is_same_primitive(writer: Schema, reader: Schema) -> bool:
    """Return whether both are the same primitive, or unions of the same primitives: a shortcut for the most frequent pairs."""
    if isinstance(writer, Union) and isinstance(reader, Union):
        return len(writer.branches) == len(reader.branches) and all(
            isinstance(branch, Primitive) and branch.type == reader_branch.type
            for branch, reader_branch in zip(writer.branches, reader.branches, strict=True)
        )
    return isinstance(writer, Primitive) and writer.type == reader.type


class Likeness:
    """Resolver.unionEquiv: the same structure, unqualified names and enum symbols in the same order, at every level."""

    def __init__(self) -> None:
        self._alike: set[tuple[Schema, Schema]] = set()
        self._unlike: set[tuple[Schema, Schema]] = set()

    def are_alike(self, writer: Schema, reader: Schema) -> bool:
        """Return whether the two are alike. Results for their parts are memoized."""
        root = writer, reader
        parents: dict[tuple[Schema, Schema], tuple[Schema, Schema] | None] = {root: None}
        pending = [root]
        while pending:
            pair = pending.pop()
            if pair in self._alike:
                continue
            if pair in self._unlike or pair[0].type != pair[1].type or not _is_alike_without_children(*pair):
                # The pairs around an unlike pair are unlike as well.
                unlike: tuple[Schema, Schema] | None = pair
                while unlike:
                    self._unlike.add(unlike)
                    unlike = parents[unlike]
                return False
            if not isinstance(pair[0], Primitive):
                for child in zip(*map(children, pair), strict=True):
                    if child not in parents:
                        parents[child] = pair
                        pending.append(child)
        self._alike |= parents.keys()
        return True


def _is_alike_without_children(writer: Schema, reader: Schema) -> bool:
    """Return whether two schemas of one type are alike, except for the schemas inside them."""
    match writer, reader:
        case Union() as w, Union() as r:
            return len(w.branches) == len(r.branches)
        case Record() as w, Record() as r:
            return w.name == r.name and [f.name for f in w.fields] == [f.name for f in r.fields]
        case EnumSchema() as w, EnumSchema() as r:
            return w.name == r.name and w.symbols == r.symbols
        case Fixed() as w, Fixed() as r:
            return w.name == r.name and w.size == r.size
        case _:
            return True


def _list_outermost_records(schemas: Iterable[Schema]) -> list[Record]:
    """Return the records in `schemas` that are not inside other records."""
    records = []
    pending = list(schemas)
    while pending:
        schema = pending.pop()
        if isinstance(schema, Record):
            records.append(schema)
        else:
            pending += children(schema)
    return records


def _find_recursion(records: Iterable[Record]) -> dict[Record, bool]:
    """Map each record, and each record inside it, to whether it reaches a record that contains itself."""
    inner_records: dict[Record, list[Record]] = {}
    pending = [*records]
    while pending:
        record = pending.pop()
        if record not in inner_records:
            inner_records[record] = _list_outermost_records([field.schema for field in record.fields])
            pending += inner_records[record]
    reaches_recursion = dict.fromkeys(inner_records, True)
    sorter = TopologicalSorter(inner_records)
    with suppress(CycleError):  # after it, the sorter still returns every record that reaches no cycle
        sorter.prepare()
    while ready := sorter.get_ready():
        reaches_recursion |= dict.fromkeys(ready, False)
        sorter.done(*ready)
    return reaches_recursion


def _is_deeper(schema: Schema, levels: int) -> bool:
    """Return whether types are nested deeper than `levels`, in Java's order of visits: the last field first."""
    visited: set[Schema] = set()
    pending = [(schema, 1)]
    while pending:
        schema, depth = pending.pop()
        if depth > levels:
            return True
        if not isinstance(schema, Primitive) and schema not in visited:
            visited.add(schema)
            pending += [(child, depth + 1) for child in children(schema)]
    return False
