"""Java's `SchemaCompatibility`: every incompatibility of a reader and a writer, its pointer and its trace.

Follows org.apache.avro.SchemaCompatibility of Avro 1.12.1 step by step: the same incompatibilities in the same order, at
the same locations, with the same messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import GeneratorType
from typing import Any, Final

from schemactl.core.findings import Incompatibility
from schemactl.core.schema import Release
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PROMOTIONS,
    Array,
    Deep,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
    children,
    run,
    size,
)

# Reasons, with their text in Java.


Location = tuple[Any, ...]
"""Where in the reader's definition: () for the root, otherwise the location around it, and the tokens that lead there.

A writer's branch, which Java's pointers count, too, is its index negated by `~`: the reader's text has no such place. Where
Java starts its pointer anew, inside a union, a location of one part is the root; the part is where that is.
"""

MAX_PROOF_STEPS: Final = 30_000
"""So much work is spent on one pair of definitions to see what Java's reader decodes all the same."""


Reason = tuple[str, Location, Any, Any]
"""A rule, the location where it is broken, what the reader has there (a schema or a field) and what the writer has.

It is put into words only when all are found: most that are found for a branch of a union are of no interest in the end.
"""

Reasons = tuple[Reason, ...]
"""Why a pair is incompatible; empty if it is compatible."""

COMPATIBLE: Final[Reasons] = ()


def described(reasons: Reasons) -> tuple[Incompatibility, ...]:
    """Return `reasons` with pointers and messages as Java gives them."""
    if not reasons:
        return ()
    proofs = _Proofs()
    if len(reasons) == 1:
        return (_described(reasons[0], proofs),)
    known = {id(reason): reason for reason in reasons}  # those for a pair are listed wherever it occurs
    once = {key: _described(reason, proofs) for key, reason in known.items()}
    return tuple([once[id(reason)] for reason in reasons])


def pointer(location: Location) -> str:
    """Return a location as Java prints it: a JSON pointer, but `/` for the root."""
    found: list[str] = []
    while len(location) > 1:
        for token in location[:0:-1]:
            found.append(f"/{token}" if type(token) is str or token >= 0 else f"/{~token}")  # noqa: PERF401  most often once
        location = location[0]
    found.reverse()
    return "".join(found) or "/"


def tokens(location: Location) -> tuple[str | int, ...]:
    """Return what leads from the roots of reader and writer to a location, the branches of both among it."""
    found: list[str | int] = []
    while location:
        found += location[:0:-1]
        location = location[0]
    return tuple(reversed(found))


def leaf_reasons(reader: Any, writer: Any, location: Location) -> Reasons:
    """Return what is found for a pair that holds nothing to compare further."""
    kind = type(reader) if type(reader) is type(writer) else None
    if kind is Enum:
        found = COMPATIBLE if reader.name == writer.name else name_reasons(reader, writer, location)
        if writer.symbols == reader.symbols or reader.default is not None:
            return found
        if not set(writer.symbols).issubset(reader.symbols):
            found += (("MISSING_ENUM_SYMBOLS", (location, "symbols"), reader, writer),)
        return found
    if kind is Fixed:
        found = name_reasons(reader, writer, location)
        if reader.size != writer.size:
            found += (("FIXED_SIZE_MISMATCH", (location, "size"), reader, writer),)
        return found
    return (("TYPE_MISMATCH", location, reader, writer),)


def name_reasons(reader: Named, writer: Schema, location: Location) -> Reasons:
    """Return what is found where two types of one kind do not match by name."""
    if isinstance(writer, Named) and names_match(reader, writer):
        return COMPATIBLE
    return (("NAME_MISMATCH", (location, "name"), reader, writer),)


def names_match(reader: Named, writer: Named) -> bool:
    """Whether names match without their namespaces, or through one of the reader's aliases."""
    # An alias in the null namespace does not count where the type has a namespace: Java writes a dot before it.
    return reader.name == writer.name or (
        writer.full_name in reader.aliases and bool(writer.namespace or not reader.namespace)
    )


def branch_for(schema: Schema, union: Union) -> int | None:
    """Return the index of the branch of `union` that is meant for `schema`: of its name, or of its type where types have none."""
    return _branches(union).get(_kind(schema))


@lru_cache(maxsize=8)  # a union may have 100,000 branches, and a reason for each
def _branches(union: Union) -> Mapping[tuple[str, str], int]:
    kinds = list(map(_kind, union.branches))
    return {kind: index for index, kind in reversed([*enumerate(kinds)])}


def _kind(schema: Schema) -> tuple[str, str]:
    return schema.type, schema.name if isinstance(schema, Named) else ""


def _described(reason: Reason, proofs: _Proofs) -> Incompatibility:
    rule, location, reader, writer = reason
    if rule == "MISSING_UNION_BRANCH":
        return MissingBranch(pointer(location), reason, proofs)
    # Java's own reader does not compare the names of records; but it looks for a field's aliases under its record's name.
    strict_only = rule == "NAME_MISMATCH" and isinstance(reader, Record) and not _needs_aliases(reader, writer)
    return Incompatibility(rule, pointer(location), _MESSAGES[rule](reader, writer), strict_only, location)


_MESSAGES: Final[Mapping[str, Callable[[Any, Any], str]]] = {
    "FIXED_SIZE_MISMATCH": lambda reader, writer: f"expected: {writer.size}, found: {reader.size}",
    # Java sorts by UTF-16 units. Symbols are letters and digits of the basic plane, where this is the same order.
    "MISSING_ENUM_SYMBOLS": lambda reader, writer: (
        f"[{', '.join(sorted(set(writer.symbols).difference(reader.symbols)))}]"
    ),
    "NAME_MISMATCH": lambda _, writer: f"expected: {writer.full_name}",
    "READER_FIELD_MISSING_DEFAULT_VALUE": lambda field, _: str(field.name),
    "TYPE_MISMATCH": lambda reader, writer: (
        f"reader type: {reader.type.upper()} not compatible with writer type: {writer.type.upper()}"
    ),
}


def _needs_aliases(reader: Record, writer: Schema) -> bool:
    """Whether a field of `reader` finds its values by an alias only."""
    there = writer.fields_by_name if isinstance(writer, Record) else {}
    fields: tuple[Field, ...] = reader.fields
    return any(field.name not in there and any(alias in there for alias in field.aliases) for field in fields)


def _has_sources(branch: Schema, writer: Schema) -> bool:
    """Whether `branch` is of the writer's kind, and all its fields have a value there or a default: else it decodes nothing."""
    if not (isinstance(branch, Record) and isinstance(writer, Record)):
        return branch.type == writer.type
    there = writer.fields_by_name
    return all(
        field.default is not NO_DEFAULT or field.name in there or any(alias in there for alias in field.aliases)
        for field in branch.fields
    )


class MissingBranch(Incompatibility):
    """A union lacks a branch. Whether Java's reader decodes the value all the same is costly to prove: only when asked."""

    __slots__ = ("_proofs", "_reason")

    _reason: Reason
    _proofs: _Proofs

    def __init__(self, at: str, reason: Reason, proofs: _Proofs) -> None:
        rule, _, _, writer = reason
        keep = object.__setattr__
        keep(self, "rule", rule)
        keep(self, "pointer", at)
        keep(self, "message", f"reader union lacking writer type: {writer.type.upper()}")
        keep(self, "_reason", reason)
        keep(self, "_proofs", proofs)

    def moved(self, pointer: str) -> Incompatibility:
        """See Incompatibility."""
        return MissingBranch(pointer, self._reason, self._proofs)

    @property
    def strict_only(self) -> bool:
        """See Incompatibility."""
        _, _, reader, writer = self._reason
        return self._proofs.decodes(reader, writer)

    @property
    def trace(self) -> Location:
        """See Incompatibility."""
        _, location, reader, writer = self._reason
        nearest = branch_for(writer, reader)
        if nearest is None and self.strict_only:
            nearest = [branch.type for branch in reader.branches].index(writer.type)
        return location if nearest is None else (location, nearest)


class _Proofs:
    """What Java's reader makes of values that no branch is meant for."""

    def __init__(self) -> None:
        self._steps = MAX_PROOF_STEPS
        self._known: dict[tuple[Union, Schema], bool] = {}

    def decodes(self, reader: Union, writer: Schema) -> bool:
        """Whether Java's reader decodes the value all the same: it finds a record that only has another name by its structure."""
        if not isinstance(writer, Record | Array | Map):
            return False
        if (reader, writer) not in self._known:
            self._known[reader, writer] = self._prove(reader, writer)
        return self._known[reader, writer]

    def _prove(self, reader: Union, writer: Schema) -> bool:
        if self._steps > 0:
            self._steps -= size(writer, at_most=self._steps) + size(reader, at_most=self._steps)
        if self._steps <= 0 or not any(_has_sources(branch, writer) for branch in reader.branches):
            return False
        from schemactl.formats.avro.resolving_grammar import decodes_all

        decodes, self._steps = decodes_all(reader=reader, writer=writer, release=Release.R5_0, steps=self._steps)
        return decodes


# Comparison of a reader with a writer.


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

    def _compare(self, reader: Any, writer: Any, location: Location, used_in: object, written_in: object) -> Any:
        """Return the Reasons for a pair, or a generator that finds them where other pairs are inside (see `schema.Deep`).

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

    def _reader_union(self, pair: Pair, reader: Union, writer: Any, location: Location, written_in: object) -> Any:
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

    def _holder_in_union(self, reader: Union, writer: Record | Array | Map, location: Location) -> Deep[Reasons]:
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
                names = (f"{branch.type} {branch.name}", *branch.aliases) if isinstance(branch, Named) else ("",)
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


# Places in both definitions.


Part = Schema | Field

Token = str | int

Tokens = Sequence[Token]
"""Keywords, positions of fields and of the reader's branches; a writer's branch is its index negated by `~`."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where some tokens lead.

    Attributes:
        parts: of the schema on the way, the last being the deepest that exists.
        path: the same in people's words.
        pointer: to the nearest place in the definition.
    """

    parts: tuple[Part, ...]
    path: str
    pointer: str

    @property
    def field(self) -> Field | None:
        """The innermost field on the way."""
        return next((part for part in reversed(self.parts) if isinstance(part, Field)), None)

    @property
    def schema(self) -> Schema:
        """The innermost schema on the way; a field's own where the trace ends at the field."""
        return _schema(self.parts[-1])


def trace_of(found: Incompatibility) -> Tokens:
    """Return the tokens to `found` from the roots of reader and writer."""
    if found.trace is not None:
        return tokens(found.trace)
    return [int(token) if token.isdigit() else token for token in found.pointer.split("/") if token]


def is_writers(token: Token) -> bool:
    """Whether it is a branch of the writer's, of which the reader has no like."""
    return isinstance(token, int) and token < 0


def walk(schema: Schema, trace: Tokens) -> Walk:
    """Follow `trace` into the reader's schema. The path reads `Order.lines[].price`.

    Array items are `[]`, map values `{}`, a branch of a union `(Card)`. What lies beyond the schemas themselves (`name`,
    `symbols`, `size`) is no part.
    """
    parts: list[Part] = [schema]
    path = schema.name if isinstance(schema, Record) else ""
    pointer = ""
    for token in trace:
        if is_writers(token):
            continue
        pointer += f"/{token}"
        child = _child(parts[-1], token)
        if child is not None:
            path += _step_text(parts[-1], child)
            parts.append(child)
    return Walk(tuple(parts), path.removeprefix("."), pointer)


def counterpart(trace: Tokens, *, reader: Schema, writer: Schema) -> tuple[str, Schema]:
    """Follow `trace` into the writer's schema, as far as that has the like; return the pointer, and the innermost schema.

    The like of a field is the one of its name or alias, that of a branch the one of its name or type.
    """
    ours: Part = reader
    theirs: Part = writer
    pointer = ""
    for token in trace:
        mine = _child(ours, token)
        for step in _steps(ours, mine, token, theirs):
            if step is None:
                return pointer, _schema(theirs)
            pointer += f"/{step}"
            theirs = _child(theirs, step) or theirs
        ours = mine or ours
    return pointer, _schema(theirs)


def message_trace(reader: Schema, trace: Tokens) -> tuple[Token, ...]:
    """Return what `trace` comes through in a writer's message: field names, the writer's branch indices, `items`, `values`."""
    found: list[Token] = []
    part: Part = reader
    for token in trace:
        child = _child(part, token)
        if is_writers(token):
            found.append(~int(token))
        elif isinstance(child, Field):
            found.append(child.name)
        elif isinstance(part, Array | Map) and child:
            found.append(token)
        part = child or part
    return tuple(found)


def _steps(ours: Part, mine: Part | None, token: Token, theirs: Part) -> Iterator[Token | None]:
    """Yield what `token`, which leads from `ours` to `mine`, is on their side; None: there is nothing like it."""
    if is_writers(token):
        yield ~int(token)
    elif isinstance(ours, Union):
        # Where they have no union, their schema is the only branch.
        if isinstance(theirs, Union):
            yield branch_for(mine, theirs) if mine and not isinstance(mine, Field) else None
    else:
        if isinstance(theirs, Union) and not isinstance(ours, Field):
            index = branch_for(ours, theirs)
            yield index
            theirs = theirs if index is None else theirs.branches[index]
        if isinstance(mine, Field) and isinstance(theirs, Record):
            yield _field_like(mine, theirs)
        else:
            yield token if type(ours) is type(theirs) else None


def _field_like(field: Field, record: Record) -> int | None:
    names, aliases = _indices(record)
    found = [names[name] for name in (field.name, *field.aliases) if name in names]
    if field.name in aliases:
        found.append(aliases[field.name])
    return min(found, default=None)


@lru_cache(maxsize=8)  # a record may have 100,000 fields, and a reason for each
def _indices(record: Record) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Where in a record the fields are: by their names, and the first by each alias."""
    names = {field.name: index for index, field in enumerate(record.fields)}
    aliases: dict[str, int] = {}
    for index, field in enumerate(record.fields):
        for alias in field.aliases:
            aliases.setdefault(alias, index)
    return names, aliases


def _child(part: Part, token: Token) -> Part | None:
    """Return the part that `token` leads to."""
    match part, token:
        case Record(), int() if 0 <= token < len(part.fields):
            return part.fields[token]
        case Field(), "type":
            return part.schema
        case Array(), "items":
            return part.items
        case Map(), "values":
            return part.values
        case Union(), int() if 0 <= token < len(part.branches):
            return part.branches[token]
    return None


def _step_text(part: Part, child: Part) -> str:
    """Return the step from `part` to `child` as people write it."""
    match part, child:
        case _, Field():
            return f".{child.name}"
        case Array(), _:
            return "[]"
        case Map(), _:
            return "{}"
        case Union(), Primitive(type="null"):
            return ""
        case Union(), _ if len(part.branches) > 2:
            return f"({child.full_name.rpartition('.')[2]})"
    return ""


def _schema(part: Part) -> Schema:
    return part.schema if isinstance(part, Field) else part
