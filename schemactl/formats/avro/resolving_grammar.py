"""The broker's own compatibility check of two Avro schemas, predicted by Java's resolving grammars.

Only what decides is kept of a grammar: error symbols, and what leads to them. Where records lead back to themselves, order
counts as well: Java first flattens the grammar, copying the productions of records into one another, and where two records are
in the making at once some copies are never completed. It then throws, even for a schema that is compared to itself.

Pulsar asks Java's `Symbol.hasErrors(ResolvingGrammarGenerator.generate(writer, reader))`: Resolver makes a tree of actions, the
generator a grammar of the tree, and error symbols are looked for in the grammar. That is not schema resolution as specified:
enum symbols and record names are never compared, a needed default is encoded at once and throws where it does not fit, a union
settles on one branch and stays with it. Here the grammar is made in one go, in the same order, without what cannot go wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal, TypeVar

from schemactl.core.schema import Release
from schemactl.formats.avro.defaults import DefaultCheck, encode_default
from schemactl.formats.avro.json_text import json_text, schema_text
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    NO_PROPERTIES,
    PRIMITIVES,
    PROMOTIONS,
    Array,
    Deep,
    Field,
    Fixed,
    JavaException,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
    children,
    equal,
    gather,
    out_of_memory,
    parts,
    run,
    stack_overflow,
)
from schemactl.formats.avro.schema import Enum as EnumSchema

# Symbols, and Java's Symbol.hasErrors.


MAX_SYMBOLS: Final = 20_000_000
"""A grammar of more symbols than these, copies counted, is taken to exhaust the memory of a broker."""


class Mark(Enum):
    """A symbol without parts that is not harmless."""

    ERROR = "nothing that the writer writes here can be read (Java's ErrorAction)"
    MISSING_SYMBOL = "the reader cannot take one of the writer's enum symbols, which Java notices on reading it only"
    HOLE = "Java has not laid out completely what the reader skips, and throws on skipping it"


@dataclass(slots=True, eq=False)
class Sequence:
    """A record.

    Attributes:
        parts: of its fields, in order.
        complete: False as long as fields are still being resolved.
        abandoned: it cannot be read. Other records may have taken hold of it before that was known.
    """

    parts: list[Symbol]
    complete: bool = False
    abandoned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Repeater:
    """What is repeated in an array or map."""

    part: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """The branches of a union, or the one chosen from it (Java's UnionAdjustAction)."""

    parts: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """What is read and dropped. Flattened like everything else, but not searched."""

    part: Symbol


Symbol = Sequence | Repeater | Alternative | Skip | Mark
"""A part of a grammar. Where nothing can go wrong there is none: functions return None."""


def repeater(part: Symbol | None) -> Symbol | None:
    """Return an array or map of `part`."""
    return None if part is None else Repeater(part)


def alternative(parts: Iterable[Symbol | None]) -> Symbol | None:
    """Return a union of `parts`."""
    kept = tuple(part for part in parts if part is not None)
    return Alternative(kept) if kept else None


def marks(root: Symbol | None, *, recursive: bool) -> frozenset[Mark]:
    """Return the marks in a grammar; where Java stops at an error symbol, at least ERROR.

    `recursive`: some record in it leads back to itself.

    Raises:
        JavaException: Java throws while it generates, flattens or searches the grammar.
    """
    if root is None:
        return frozenset()
    if recursive:
        sequences = _sequences(root)
        if any(sequence.abandoned for sequence in sequences):  # met already when the grammar is generated
            raise JavaException("NullPointerException")
        # As long as no field is itself a record, no production is copied that could have holes.
        if any(isinstance(part, Sequence) for sequence in sequences for part in sequence.parts):
            return _marks_in(_Flattening(root, sequences).production())
    return frozenset(symbol for symbol in _walk(root, into_skipped=False) if isinstance(symbol, Mark))


def check_layout(root: Symbol) -> None:
    """Raise JavaException if Java cannot lay out the grammar.

    Raises:
        JavaException: StackOverflowError, where a record must contain itself.
    """
    _production_sizes(_sequences(root))


def _parts(symbol: Symbol) -> Iterable[Symbol]:
    match symbol:
        case Sequence() | Alternative():
            return symbol.parts
        case Repeater() | Skip():
            return (symbol.part,)
        case _:
            return ()


def _sequences(root: Symbol) -> list[Sequence]:
    """Every record's symbol in the grammar."""
    return [symbol for symbol in _walk(root, into_skipped=True) if isinstance(symbol, Sequence)]


def _walk(root: Symbol, *, into_skipped: bool) -> Iterator[Symbol]:
    """Every symbol that is reached from `root`, records once each."""
    seen: set[Sequence] = set()
    pending = [root]
    while pending:
        symbol = pending.pop()
        if isinstance(symbol, Sequence):
            if symbol in seen:
                continue
            seen.add(symbol)
        yield symbol
        if into_skipped or not isinstance(symbol, Skip):
            pending += _parts(symbol)


@dataclass(frozen=True, slots=True)
class _Skipped:
    """A flattened symbol that is not searched for errors."""

    symbol: Any


_HARMLESS: Final = object()
"""In a production: any symbol that is left out of the grammar here."""

Production = list[Any]
"""Flattened symbols: marks, harmless and skipped ones, inner productions, and None for holes: copies that were never made."""


class _Flattening:
    """Symbol.flatten.

    Every record gets one production, into which those of the records in its fields are copied. A record in the making has
    no symbols to copy yet: the place is noted, and filled when it is finished. What Java misses: symbols that are filled in
    this way may have such places themselves.
    """

    def __init__(self, root: Symbol, sequences: list[Sequence]) -> None:
        self._root = root
        self._sizes = _production_sizes(sequences)
        self._symbols = 0
        self._productions: dict[Sequence, Production] = {}
        # Records in the making: where they are awaited.
        self._open: dict[Sequence, list[tuple[Production, int]]] = {}

    def production(self) -> Production:
        """Return the production of the start symbol."""
        production = self._new_production(self._root)
        run(self._fill(production, [self._root]))
        return production

    def _new_production(self, symbol: Symbol) -> Production:
        size = self._size(symbol)
        self._symbols += size
        if self._symbols > MAX_SYMBOLS:
            raise out_of_memory()
        return [None] * size

    def _size(self, symbol: Symbol | object) -> int:
        return self._sizes[symbol] if isinstance(symbol, Sequence) else 1

    def _fill(self, production: Production, symbols: Iterable[Symbol | object]) -> Deep[None]:
        place = 0
        for symbol in symbols:
            flat = yield self._flat(symbol)
            if not isinstance(symbol, Sequence):
                production[place] = flat
            elif symbol in self._open:
                self._open[symbol].append((production, place))
            else:
                production[place : place + len(flat)] = flat
                for awaited in self._open.values():
                    awaited += [(production, place + there) for target, there in awaited if target is flat]
            place += self._size(symbol)

    def _flat(self, symbol: Symbol | object) -> Deep[Any]:
        match symbol:
            case Sequence():
                if symbol not in self._productions:
                    yield self._flatten(symbol)
                return self._productions[symbol]
            case Repeater(part):
                production = self._new_production(part)
                yield self._fill(production, [part])
                return production
            case Alternative(parts):
                return (yield gather(map(self._flat, parts)))
            case Skip(part):
                return _Skipped((yield self._flat(part)))
            case _:
                return symbol

    def _flatten(self, symbol: Sequence) -> Deep[None]:
        self._productions[symbol] = production = self._new_production(symbol)
        self._open[symbol] = []
        # Java keeps productions in reverse.
        yield self._fill(production, [*reversed(symbol.parts), _HARMLESS])
        for target, place in self._open.pop(symbol):
            target[place : place + len(production)] = production


def _production_sizes(sequences: list[Sequence]) -> dict[Sequence, int]:
    """How many symbols each record's production will have, those of the records in its fields included."""
    inner = {sequence: [part for part in sequence.parts if isinstance(part, Sequence)] for sequence in sequences}
    sizes: dict[Sequence, int] = {}
    try:
        for sequence in TopologicalSorter(inner).static_order():
            others = len(sequence.parts) - len(inner[sequence]) + 1
            sizes[sequence] = others + sum(sizes[part] for part in inner[sequence])
    except CycleError:  # a record must contain itself
        raise stack_overflow() from None
    return sizes


def _marks_in(root: Production) -> frozenset[Mark]:
    """Return what Symbol.hasErrors meets, and whether anything skipped has a hole.

    Raises:
        JavaException: NullPointerException on a hole.
    """
    found = set()
    for symbol in _search(root, into_skipped=False):
        if symbol is None:
            raise JavaException("NullPointerException")
        if isinstance(symbol, Mark):
            found.add(symbol)
            if symbol is Mark.ERROR:
                return frozenset(found)
    if None in _search(root, into_skipped=True):
        found.add(Mark.HOLE)
    return frozenset(found)


def _search(root: Production, *, into_skipped: bool) -> Iterator[Any]:
    """Every symbol in `root` that has no parts, depth first, as Java goes."""
    visited: set[int] = set()
    pending: list[Any] = [root]
    while pending:
        symbol = pending.pop()
        if isinstance(symbol, _Skipped):
            if into_skipped:
                pending.append(symbol.symbol)
        elif not isinstance(symbol, list):
            yield symbol
        elif id(symbol) not in visited:
            visited.add(id(symbol))
            pending += reversed(symbol)


# Aliases: Java's Schema.applyAliases, side effects included.


N = TypeVar("N", EnumSchema, Fixed, Record)

_NOT_SET: Final = (Field("", PRIMITIVES["null"]),)
"""Stands for the fields of a record that is being rebuilt, which equals no other record yet."""


def apply_aliases(*, writer: Schema, reader: Schema, release: Release) -> Schema:
    """Return `writer` with its types and fields renamed where `reader` lists their names as aliases.

    As soon as an unequal reader has any alias, Java rebuilds every record of the writer, and validates names and defaults
    that it had let pass before.

    Raises:
        JavaException: the writer has an invalid default or a `$` in a name; or two fields of a record, or two branches of a union,
            come to bear one name.
    """
    if not _has_aliases(reader) or equal(writer, reader):
        return writer
    renaming = _Renaming(release)
    run(renaming.collect(reader))
    return run(renaming.apply(writer))


def _has_aliases(schema: Schema) -> bool:
    return any(
        part.aliases or (isinstance(part, Record) and any(field.aliases for field in part.fields))
        for part in parts(schema)
        if isinstance(part, Named)
    )


class _Renaming:
    """The aliases of one reader, and the writer's records that have been rebuilt with them."""

    def __init__(self, release: Release) -> None:
        self._is_avro_1_11 = release is Release.R4_0
        self._types: dict[str, str] = {}  # alias to full name
        self._fields: dict[str, dict[str, str]] = {}  # by a record's names: alias to field
        self._collected: set[Record] = set()
        self._rebuilt: dict[Record, Record] = {}
        self._open: set[int] = set()  # by identity: rebuilt records whose fields are not known yet
        self._defaults = DefaultCheck(any_branch=not self._is_avro_1_11)

    def collect(self, reader: Schema) -> Deep[None]:
        """Take up the aliases in `reader`. Where two types claim one alias, the type visited last has it."""
        if isinstance(reader, Named):
            self._types.update(dict.fromkeys(reader.aliases, reader.full_name))
        match reader:
            case Record() if reader not in self._collected:
                self._collected.add(reader)
                for field in reader.fields:
                    if field.aliases:
                        names = self._fields.setdefault(reader.full_name, {})
                        names.update(dict.fromkeys(field.aliases, field.name))
                    yield self.collect(field.schema)
                if reader.full_name in self._fields:
                    names = self._fields[reader.full_name]
                    self._fields.update(dict.fromkeys(reader.aliases, names))
            case Union():
                for branch in reader.branches:
                    yield self.collect(branch)
            case Array():
                yield self.collect(reader.items)
            case Map():
                yield self.collect(reader.values)

    def apply(self, writer: Schema) -> Deep[Schema]:
        """Return `writer` renamed: records and unions always new, an array or map only where what it holds has changed."""
        renamed: Schema = writer
        match writer:
            case Record():
                renamed = self._rebuilt.get(writer) or (yield self._record(writer))
            case EnumSchema() if writer.full_name in self._types:
                renamed = self._renamed(writer)
                _check_names(writer.symbols)
            case Fixed() if writer.full_name in self._types:
                renamed = self._renamed(writer)
            case Array():
                items = yield self.apply(writer.items)
                if not equal(items, writer.items):
                    renamed = Array(items, writer.properties)
            case Map():
                values = yield self.apply(writer.values)
                if not equal(values, writer.values):
                    renamed = Map(values, writer.properties)
            case Union():
                renamed = yield self._union(writer)
        return renamed

    def _union(self, writer: Union) -> Deep[Union]:
        branches = yield gather(map(self.apply, writer.branches))
        names = set()
        for branch in branches:
            if branch.full_name in names:
                raise JavaException("AvroRuntimeException", f"Duplicate in union:{branch.full_name}")
            names.add(branch.full_name)
        return Union(tuple(branches))

    def _renamed(self, named: N) -> N:
        full_name = self._types.get(named.full_name, named.full_name)
        namespace, _, name = full_name.rpartition(".")
        _check_names([name])
        renamed = copy.copy(named)
        renamed.full_name, renamed.name, renamed.namespace = full_name, name, namespace or None
        renamed.aliases = ()
        return renamed

    def _record(self, writer: Record) -> Deep[Record]:
        record = self._renamed(writer)
        record.fields, record.fields_by_name, record.properties = _NOT_SET, {}, NO_PROPERTIES
        self._rebuilt[writer] = record
        self._open.add(id(record))
        names = self._fields.get(record.full_name, {})
        fields = []
        for field in writer.fields:
            renamed = copy.copy(field)
            renamed.schema = yield self.apply(field.schema)
            renamed.name = names.get(field.name, field.name)
            renamed.aliases = ()
            fields.append(renamed)
            self._check_field(renamed)
        _check_distinct(record, fields)
        record.fields = tuple(fields)
        record.fields_by_name = {field.name: field for field in fields}
        record.properties = writer.properties
        self._open.remove(id(record))
        return record

    def _check_field(self, field: Field) -> None:
        _check_names([field.name])
        if field.default is NO_DEFAULT:
            return
        if not self._defaults.is_valid(field.schema, field.default, self._open):
            schema = schema_text(field.schema, unfinished=self._open, one_definition=self._is_avro_1_11)
            default = json_text(field.default)
            raise JavaException(
                "AvroTypeException", f"Invalid default for field {field.name}: {default} not a {schema}"
            )


def _check_names(names: Iterable[str]) -> None:
    """Avro's own rule for names. Pulsar's parser has let in only one character that breaks it."""
    for name in names:
        if "$" in name:
            what = "Illegal initial character" if name.startswith("$") else "Illegal character in"
            raise JavaException("SchemaParseException", f"{what}: {name}")


def _check_distinct(record: Record, fields: list[Field]) -> None:
    places: dict[str, str] = {}
    for position, field in enumerate(fields):
        place = f"{field.name} type:{field.schema.type.upper()} pos:{position}"
        if field.name in places:
            raise JavaException(
                "AvroRuntimeException",
                f"Duplicate field {field.name} in record {record.full_name}: {place} and {places[field.name]}.",
            )
        places[field.name] = place


# The broker's check.


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


def decodes_all(*, reader: Schema, writer: Schema, release: Release, steps: int = MAX_STEPS) -> tuple[bool, int]:
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
    if isinstance(writer, EnumSchema) and isinstance(reader, EnumSchema):
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
        case EnumSchema() as w, EnumSchema() as r:
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
