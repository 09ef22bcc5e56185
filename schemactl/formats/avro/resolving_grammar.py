"""The broker's own compatibility check of two Avro schemas, by resolving grammars.

Pulsar asks Java's `Symbol.hasErrors(ResolvingGrammarGenerator.generate(writer, reader))`: Resolver makes a tree of actions, the
generator a grammar of the tree, and error symbols are looked for in the grammar. That is not schema resolution as specified:
enum symbols and record names are never compared, a needed default is encoded at once and throws where it does not fit, a union
settles on one branch and stays with it. Here the grammar is made in one go, in the same order, without what cannot go wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final, Literal

from schemactl.core.schema import Release
from schemactl.formats.avro.aliases import apply_aliases
from schemactl.formats.avro.defaults import encode_default
from schemactl.formats.avro.equality import children, equal
from schemactl.formats.avro.grammar_symbols import (
    Mark,
    Sequence,
    Skip,
    Symbol,
    alternative,
    check_layout,
    marks,
    repeater,
)
from schemactl.formats.avro.java import JavaException, out_of_memory, stack_overflow
from schemactl.formats.avro.recursion import Deep, gather, run
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PROMOTIONS,
    Array,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.schema_text import schema_text

STACK_LEVELS: Final = 1_500
"""Types inside one another, after which Java's recursion is taken to overflow its stack.

Where it really does depends on what the JVM has compiled: 1,000 nested arrays, the most that its JSON reader lets in, and 2,000
records that lead to each other by name were seen to pass with the usual stack of 1 MiB; 3,000 records were not, nor were
1,000 with an array around each.
"""


MAX_STEPS: Final = 300_000
"""More work than this, as two unions of 800 records each may ask for, is taken to exhaust a broker's memory."""

_IN_PASSING: Final = 16
"""So many branches of a union, or fields of a record, are looked at in passing in one step."""


@dataclass(frozen=True, slots=True)
class GrammarAnswer:
    """The check's answer: `ok`, `incompatible`, or `error`: it throws `exception` (simple class name) with `message`."""

    outcome: Literal["ok", "incompatible", "error"]
    exception: str = ""
    message: str = ""


OK: Final = GrammarAnswer("ok")
INCOMPATIBLE: Final = GrammarAnswer("incompatible")


def can_read(*, reader: Schema, writer: Schema, release: Release) -> GrammarAnswer:
    """Return what the check in that release answers to: can `reader` read what was written with `writer`?

    `ok` does not mean that every message decodes (see `decodes_all`), nor `incompatible` that none does. Source:
    ValidateMutualRead.canRead, Resolver, ResolvingGrammarGenerator, Symbol; Avro 1.11.4 in Pulsar 4.0, 1.12 in 4.2 and 5.0.
    """
    try:
        found = Resolution(release, reader).marks(writer=writer, reader=reader)
    except JavaException as thrown:
        return GrammarAnswer("error", thrown.exception, thrown.message)
    return INCOMPATIBLE if Mark.ERROR in found else OK


def decodes_all(
    *, reader: Schema, writer: Schema, release: Release, steps: int = MAX_STEPS
) -> tuple[bool, int]:
    """Return whether that release's GenericDatumReader decodes every message of `writer` with `reader`, and the `steps` left.

    It does where the check passes and the reader knows, or has an enum default for, every enum symbol it can meet; False where
    the steps do not suffice. Avro 1.12.2 (Pulsar 5.0) may refuse such messages all the same: it counts what the items of an
    array must need by the reader's schema.
    """
    resolution = Resolution(release, reader, steps)
    try:
        found = resolution.marks(writer=writer, reader=reader)
    except JavaException:
        return False, max(resolution.steps, 0)
    return not found, resolution.steps


def unable_to_read(*, reader: Schema, writer: Schema) -> str:
    """Return the message of the SchemaValidationException by which the check says `incompatible`."""
    written, used = schema_text(writer, pretty=True), schema_text(reader, pretty=True)
    return f"Unable to read schema: \n{written}\nusing schema:\n{used}"


class Resolution:
    """One run of Resolver.resolve and ResolvingGrammarGenerator.generate, with the memos that Java keeps for it."""

    def __init__(self, release: Release, reader: Schema, steps: int = MAX_STEPS) -> None:
        self.steps = steps
        self._release = release
        self._root = reader
        self._records: dict[tuple[int, int], Symbol | None] = {}  # by identity of writer and reader
        self._recursive = False  # whether a record has met itself
        self._plain: list[tuple[Record, Sequence]] = []  # records that only one side has, or both alike
        self._endless: dict[Record, bool] = {}  # whether a record leads to one that leads back to itself
        self._likeness = Likeness()
        self._chosen: dict[tuple[Schema, Union], Schema | None] = {}

    @property
    def is_exhausted(self) -> bool:
        """Whether there was more work to do than there is room for: what Java settles on is not known."""
        return self.steps < 0

    def choose(self, *, writer: Schema, reader: Union) -> Schema | None:
        """Return the branch of `reader` for a value of `writer`, whatever it may hold; None: Java throws."""
        pair = writer, reader
        if pair not in self._chosen:
            self._chosen[pair] = run(self.branch(writer, reader))
        return self._chosen[pair]

    def marks(self, *, writer: Schema, reader: Schema) -> frozenset[Mark]:
        """Return the marks that the grammar holds.

        Raises:
            JavaException: Java throws on the way.
        """
        writer = apply_aliases(writer=writer, reader=reader, release=self._release)
        return marks(run(self._resolve(writer, reader)), recursive=self._recursive)

    def _resolve(self, writer: Schema, reader: Schema) -> Deep[Symbol | None]:
        """Return the call that finds the symbol for `writer` and `reader`."""
        if isinstance(writer, Union):
            return self._writer_union(writer, reader)
        if isinstance(reader, Union):
            return self._reader_union(writer, reader)
        if isinstance(writer, Record) and isinstance(reader, Record):
            return self._record(writer, reader)
        if isinstance(writer, Array) and isinstance(reader, Array):
            return self._repeater(writer.items, reader.items)
        if isinstance(writer, Map) and isinstance(reader, Map):
            return self._repeater(writer.values, reader.values)
        return _leaf(writer, reader)

    def _work(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise out_of_memory()

    def _repeater(self, writer: Schema, reader: Schema) -> Deep[Symbol | None]:
        return repeater((yield self._resolve(writer, reader)))

    def _record(self, writer: Record, reader: Record) -> Deep[Symbol | None]:
        """RecordAdjust.resolve: the writer's fields in their order, then those that only the reader has."""
        pair = (id(writer), id(reader))
        if pair in self._records:
            known = self._records[pair]
            if isinstance(known, Sequence) and not known.complete:
                self._recursive = True
            return known
        parts: list[Symbol] = []
        self._records[pair] = sequence = Sequence(parts)
        if len(self._records) == STACK_LEVELS // 4 and _is_deeper(self._root, STACK_LEVELS):
            raise stack_overflow()
        self._work(1 + len(writer.fields) // _IN_PASSING)
        for field in writer.fields:
            match = reader.fields_by_name.get(field.name)
            if match is not None and _is_same_primitive(field.schema, match.schema):
                continue
            symbol = (yield self._resolve(field.schema, match.schema)) if match else self._skip(field.schema)
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
        """Whether the reader's fields of these `names` can do without a writer; their symbols are added to `parts`."""
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

    def _skip(self, writer: Schema) -> Symbol | None:
        symbol = self._generate(writer)
        return None if symbol is None else Skip(symbol)

    def _writer_union(self, writer: Union, reader: Schema) -> Deep[Symbol | None]:
        """WriterUnion.resolve. Unions that look alike go branch by branch, and errors in them do not count."""
        if isinstance(reader, Union) and self._likeness.holds(writer, reader):
            for branch, match in zip(writer.branches, reader.branches, strict=True):
                if not _is_same_primitive(branch, match):
                    yield self._resolve(branch, match)
            return self._generate(reader)
        return alternative((yield gather(self._resolve(branch, reader) for branch in writer.branches)))

    def _reader_union(self, writer: Schema, reader: Union) -> Deep[Symbol | None]:
        """ReaderUnion.resolve: settles on one branch, and resolves against that alone."""
        found = yield self.branch(writer, reader)
        if found is None:
            return Mark.ERROR
        symbol = yield self._resolve(writer, found)
        return alternative([symbol])

    def branch(self, writer: Schema, reader: Union) -> Deep[Schema | None]:
        """Find a branch by name, else by structure, else by promotion (ReaderUnion.firstMatchingBranch); None: there is none."""
        self._work(1 + len(reader.branches) // _IN_PASSING)
        found: Schema | None = None
        for branch in reader.branches:
            if branch.type != writer.type:
                continue
            if not isinstance(branch, Named) or branch.full_name == writer.full_name:
                return branch
            if isinstance(writer, Record) and isinstance(branch, Record):
                matches = not _has_match_error((yield self._record(writer, branch)))
                # The first branch that matches, or the last such one with the writer's unqualified name.
                if matches and (found is None or branch.name == writer.name):
                    found = branch
        return found or next((branch for branch in reader.branches if _promotes(writer, branch)), None)

    def _generate(self, schema: Schema) -> Symbol | None:
        """ResolvingGrammarGenerator.simpleGen: a grammar without errors, of interest where records lead back to themselves."""
        if isinstance(schema, Primitive) or not self._is_recursive(schema):
            return None
        self._recursive = True
        return run(self._simple(schema))

    def _simple(self, schema: Schema) -> Deep[Symbol | None]:
        match schema:
            case Record():
                for known, sequence in self._plain:
                    if schema is known or equal(schema, known):
                        return sequence
                sequence = Sequence([], complete=True)
                self._plain.append((schema, sequence))
                for field in schema.fields:
                    symbol = yield self._simple(field.schema)
                    if symbol is not None:
                        sequence.parts.append(symbol)
                return sequence
            case Array():
                return repeater((yield self._simple(schema.items)))
            case Map():
                return repeater((yield self._simple(schema.values)))
            case Union():
                return alternative((yield gather(map(self._simple, schema.branches))))
            case _:
                return None

    def _is_recursive(self, schema: Schema) -> bool:
        """Whether some record in `schema` leads back to itself."""
        records = _nearest_records([schema])
        if not self._endless.keys() >= {*records}:
            self._endless |= _endless(records)
        return any(self._endless[record] for record in records)


def _leaf(writer: Schema, reader: Schema) -> Deep[Mark | None]:
    yield from ()  # a call like the others, though it makes none itself
    return leaf_mark(writer, reader)


def leaf_mark(writer: Schema, reader: Schema) -> Mark | None:
    """Return the symbol for two schemas that hold no others, or differ in type."""
    if writer.type != reader.type:
        return None if _promotes(writer, reader) else Mark.ERROR
    if isinstance(writer, Fixed) and isinstance(reader, Fixed):
        return None if writer.name == reader.name and writer.size == reader.size else Mark.ERROR
    if isinstance(writer, Enum) and isinstance(reader, Enum):
        if writer.name != reader.name:
            return Mark.ERROR
        if reader.default is None and not set(writer.symbols) <= set(reader.symbols):
            return Mark.MISSING_SYMBOL
    return None


def _promotes(writer: Schema, reader: Schema) -> bool:
    """Whether values of `writer` become those of another type (Resolver.Promote)."""
    return writer.type != reader.type and writer.type in PROMOTIONS.get(reader.type, ())


def _is_same_primitive(writer: Schema, reader: Schema) -> bool:
    """Whether both are one primitive: a shortcut past the most frequent pairs."""
    return isinstance(writer, Primitive) and writer.type == reader.type


def _has_match_error(symbol: Symbol | None) -> bool:
    """ReaderUnion.hasMatchError: the record is an error or a field of it is, not something deeper in the field."""
    return symbol is Mark.ERROR or (isinstance(symbol, Sequence) and Mark.ERROR in symbol.parts)


class Likeness:
    """Resolver.unionEquiv: the same structure and unqualified names all the way down, enum symbols in the same order."""

    def __init__(self) -> None:
        self._alike: set[tuple[Schema, Schema]] = set()
        self._unlike: set[tuple[Schema, Schema]] = set()

    def holds(self, writer: Schema, reader: Schema) -> bool:
        """Whether the two are alike. What was learned of their parts is remembered."""
        root = writer, reader
        around: dict[tuple[Schema, Schema], tuple[Schema, Schema] | None] = {root: None}
        pending = [root]
        while pending:
            pair = pending.pop()
            if pair in self._alike:
                continue
            if pair in self._unlike or pair[0].type != pair[1].type or not _look_alike_outside(*pair):
                # Nor is alike what is around it.
                unlike: tuple[Schema, Schema] | None = pair
                while unlike:
                    self._unlike.add(unlike)
                    unlike = around[unlike]
                return False
            if not isinstance(pair[0], Primitive):
                for inner in zip(*map(children, pair), strict=True):
                    if inner not in around:
                        around[inner] = pair
                        pending.append(inner)
        self._alike |= around.keys()
        return True


def _look_alike_outside(writer: Schema, reader: Schema) -> bool:
    """Whether two schemas of one type look alike but for the schemas inside them."""
    match writer, reader:
        case Union() as w, Union() as r:
            return len(w.branches) == len(r.branches)
        case Record() as w, Record() as r:
            return w.name == r.name and [f.name for f in w.fields] == [f.name for f in r.fields]
        case Enum() as w, Enum() as r:
            return w.name == r.name and w.symbols == r.symbols
        case Fixed() as w, Fixed() as r:
            return w.name == r.name and w.size == r.size
        case _:
            return True


def _endless(records: Iterable[Record]) -> dict[Record, bool]:
    """Return the `records` and all that are inside them: whether each leads to one that leads back to itself."""
    inside: dict[Record, list[Record]] = {}
    pending = [*records]
    while pending:
        record = pending.pop()
        if record not in inside:
            inside[record] = _nearest_records([field.schema for field in record.fields])
            pending += inside[record]
    endless = dict.fromkeys(inside, True)
    sorter = TopologicalSorter(inside)
    with suppress(CycleError):  # then all are ready in turn that lead to no cycle
        sorter.prepare()
    while ready := sorter.get_ready():
        endless |= dict.fromkeys(ready, False)
        sorter.done(*ready)
    return endless


def _is_deeper(schema: Schema, levels: int) -> bool:
    """Whether types are inside one another deeper than `levels`, on the way that Java takes: last field first."""
    seen: set[Schema] = set()
    pending = [(schema, 1)]
    while pending:
        schema, depth = pending.pop()
        if depth > levels:
            return True
        if not isinstance(schema, Primitive) and schema not in seen:
            seen.add(schema)
            pending += [(child, depth + 1) for child in children(schema)]
    return False


def _nearest_records(schemas: Iterable[Schema]) -> list[Record]:
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
