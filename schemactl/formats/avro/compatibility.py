"""Compare two Avro schemas like Java's `SchemaCompatibility`: every incompatibility of a reader with a writer, and its place.

Follows org.apache.avro.SchemaCompatibility of Avro 1.12.1 step by step: the same incompatibilities in the same order, at the same
locations, with the same messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from schemactl.core.findings import Breakage, Incompatibility
from schemactl.core.schema import Release
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
    children,
    count_parts,
    run_recursion,
)
from schemactl.formats.type_spec import Explanation

Location = tuple[Any, ...]
"""A place in the reader's definition: () for the root, otherwise an outer location, and the tokens that lead from there.

Java's pointers also count the writer's branches, for which the reader's text has no place: such a token is the branch index
negated by `~`. Inside a union, Java starts a new pointer: the location of its root is a tuple with one part, the outer location of that
root.
"""

Reason = tuple[str, Location, Any, Any]
"""A rule, the location where it is broken, the reader's schema or field there, and the writer's.

It is described only when the comparison is complete: most reasons for a branch of a union are discarded.
"""

Reasons = tuple[Reason, ...]
"""The reasons why a pair is incompatible; empty if it is compatible."""

COMPATIBLE: Final[Reasons] = ()

Pair = tuple[Any, ...]
"""A reader and a writer; for a primitive also its container, because one node represents many places."""

MAX_LISTED: Final = 200_000
"""The maximum number of reasons in the lists of all pairs; a reason counts again for each pair around its own.

Java has no such limit: a record with two fields of another such record, and so on for 60 levels, has 2^60 reasons.
"""

MAX_BRANCHES: Final = 200_000
"""The maximum number of comparisons with union branches; after it, only branches that match by type and name are compared.

Java has no such limit, and spends hours on two unions of 100,000 records.
"""

MAX_REMEMBERED: Final = 100_000
"""The maximum number of named types in KnownVerdicts; then it forgets all of them."""

MAX_PROOF_STEPS: Final = 30_000
"""The maximum effort for one pair of definitions to prove that Java's reader can decode a value despite a missing branch."""


class AmbiguousAlias(Exception):
    """The name and aliases of a reader's field match several fields of the writer's record, so Java throws.

    In Java the whole check ends with an AvroRuntimeException, without the incompatibilities before it.

    Attributes:
        pointer: the reader's field.
        trace: as in Incompatibility.
    """

    def __init__(self, name: str, location: Location) -> None:
        super().__init__(f"Reader record field {name} matches multiple fields in writer record schema")
        self.pointer = pointer(location)
        self.trace = location


def find_incompatibilities(*, reader: Schema, writer: Schema, location: Location = ()) -> tuple[Incompatibility, ...]:
    """Return every reason why `reader` may fail on data of `writer`, in Java's order.

    Args:
        reader: the reader's schema.
        writer: the writer's schema.
        location: the place of both in outer definitions.

    Raises:
        AmbiguousAlias: if Java throws instead of returning a list.
    """
    return describe_reasons(_find_reasons(reader, writer, location))


class PartNumbers:
    """Numbers for the parts of many definitions: two parts with one number differ in nothing that reading depends on."""

    def __init__(self, describe: Callable[[Schema], Iterable[Hashable]]) -> None:
        """Start without parts. `describe` yields the attributes of a part that reading depends on, except its children."""
        self._describe = describe
        self._unused = itertools.count()
        self._numbers: dict[Hashable, int] = {}
        self._parts: dict[Schema, int | None] = {}

    def __getitem__(self, part: Schema) -> int | None:
        """Return the number of an added part, or None for a type that reaches a record that contains itself."""
        return self._parts[part]

    @property
    def is_full(self) -> bool:
        """Whether the number of parts exceeds MAX_REMEMBERED."""
        return len(self._parts) > MAX_REMEMBERED

    def add(self, *schemas: Schema) -> None:
        """Compute the number of every part of some definitions."""
        run_recursion(lambda: [self._number_part(schema) for schema in schemas])

    def clear(self) -> None:
        """Forget all parts; their numbers are not used again."""
        self._numbers, self._parts = {}, {}

    def _number_part(self, schema: Schema) -> int | None:
        if schema in self._parts:
            return self._parts[schema]
        if isinstance(schema, Named):
            self._parts[schema] = None  # until the number is known: a reference to it means that it contains itself
        try:
            child_numbers = [self._number_part(child) for child in children(schema)]
        except RecursionError:
            self._parts.pop(schema, None)  # `run_recursion` calls again
            raise
        number = None
        if None not in child_numbers:
            key = (schema.type, *self._describe(schema), *child_numbers)
            number = self._numbers.setdefault(key, next(self._unused))
        self._parts[schema] = number
        return number


def _describe_for_verdict(schema: Schema) -> Iterator[Hashable]:
    """Yield the attributes of a part that SchemaCompatibility compares, except its children."""
    if isinstance(schema, Named):
        yield from (schema.full_name, schema.aliases)
    if isinstance(schema, Record):
        yield from ((field.name, field.aliases, field.default is NO_DEFAULT) for field in schema.fields)
    elif isinstance(schema, Enum):
        yield from (schema.symbols, schema.default is None)
    elif isinstance(schema, Fixed):
        yield schema.size


class KnownVerdicts:
    """Verdicts for many pairs of definitions that have most of their parts in common, such as the versions of topics.

    Equal records are compared once, wherever they are, unless one reaches a record that contains itself: the reasons for such a
    pair depend on the pairs around it.
    """

    def __init__(self) -> None:
        self.numbers = PartNumbers(_describe_for_verdict)
        self.reasons: dict[tuple[int, int], Reasons] = {}
        """The reasons for two records, by the numbers of reader and writer."""

    def can_read(self, *, reader: Schema, writer: Schema) -> bool:
        """Return whether `find_incompatibilities` returns nothing; an ambiguous alias counts as an incompatibility."""
        if self.numbers.is_full:
            self.numbers.clear()
            self.reasons = {}
        self.numbers.add(reader, writer)
        try:
            return not _find_reasons(reader, writer, (), self)
        except AmbiguousAlias:
            return False


def _find_reasons(reader: Schema, writer: Schema, location: Location, verdicts: KnownVerdicts | None = None) -> Reasons:
    return run_recursion(lambda: _PairComparison(verdicts).compare(reader, writer, location, None, None))


class _PairComparison:
    """One run of Java's ReaderWriterCompatibilityChecker.

    Reasons for a pair are memoized by the identities of reader and writer, and keep the location of the first visit, as in Java.
    While a pair is being compared, it counts as compatible.
    """

    __slots__ = ("_branch_comparisons", "_branches_by_name", "_listed", "_reasons", "_verdicts")

    def __init__(self, verdicts: KnownVerdicts | None) -> None:
        """Start a run. Equal parts in `verdicts` are not compared again, so locations may belong to another pair."""
        self._verdicts = verdicts
        self._reasons: dict[Pair, Reasons] = {}
        self._listed = self._branch_comparisons = 0
        self._branches_by_name: dict[Union, dict[str, list[int]]] = {}

    def compare(
        self, reader: Any, writer: Any, location: Location, reader_holder: object, writer_holder: object
    ) -> Reasons:
        """Return the reasons for a pair; the holders are the fields, containers or unions of reader and writer."""
        reader_kind, writer_kind = type(reader), type(writer)
        pair: Pair = reader, writer
        if reader_kind is Primitive or writer_kind is Primitive:
            if _reads_primitive(reader, writer):
                return COMPATIBLE
            # The node of a primitive represents many places; its holder distinguishes them.
            pair = (
                reader,
                writer,
                reader_holder if reader_kind is Primitive else None,
                writer_holder if writer_kind is Primitive else None,
            )
        reasons = self._reasons.get(pair)
        if reasons is not None:
            return reasons
        self._reasons[pair] = COMPATIBLE
        if reader_kind is Record and writer_kind is Record:
            reasons = self._compare_records(reader, writer, location)
        elif writer_kind is Union:
            reasons = self._compare_writer_union(reader, writer, location, reader_holder)
        elif reader_kind is Union:
            reasons = self._compare_reader_union(reader, writer, location, writer_holder)
        elif reader_kind is Array and writer_kind is Array:
            reasons = self.compare(reader.items, writer.items, (location, "items"), reader, writer)
        elif reader_kind is Map and writer_kind is Map:
            reasons = self.compare(reader.values, writer.values, (location, "values"), reader, writer)
        else:
            reasons = compare_leaves(reader, writer, location)
        self._reasons[pair] = reasons
        return reasons

    def _compare_records(self, reader: Record, writer: Record, location: Location) -> Reasons:
        """Compare two records, unless KnownVerdicts has the reasons for two equal records."""
        if self._verdicts is None:
            return self._compare_fields(reader, writer, location)
        reader_number, writer_number = self._verdicts.numbers[reader], self._verdicts.numbers[writer]
        if reader_number is None or writer_number is None:
            return self._compare_fields(reader, writer, location)
        reasons = self._verdicts.reasons.get((reader_number, writer_number))
        if reasons is None:
            reasons = self._compare_fields(reader, writer, location)
            self._verdicts.reasons[reader_number, writer_number] = reasons
        return reasons

    def _compare_fields(self, reader: Record, writer: Record, location: Location) -> Reasons:
        reasons = [] if reader.name == writer.name else [*compare_names(reader, writer, location)]
        writer_fields = writer.fields_by_name
        for index, field in enumerate(reader.fields):
            writer_field = writer_fields.get(field.name)
            if field.aliases:
                # Java's lookupWriterField.
                matches = [name for name in (field.name, *field.aliases) if name in writer_fields]
                if len(matches) > 1:
                    raise AmbiguousAlias(field.name, (location, "fields", index))
                writer_field = writer_fields[matches[0]] if matches else None
            if writer_field is not None:
                field_reader, field_writer = field.schema, writer_field.schema
                if field_reader is field_writer and type(field_reader) is Primitive:
                    continue
                field_location = (location, "fields", index, "type")
                self._add(reasons, self.compare(field_reader, field_writer, field_location, field, writer_field))
            elif field.default is NO_DEFAULT:
                missing_location = (location, "fields", index)
                if isinstance(field.schema, Enum) and field.schema.default is not None:
                    # Java takes the enum's default for the field's, and compares the enum with the whole record.
                    self._add(reasons, self.compare(field.schema, writer, (missing_location, "type"), field, None))
                else:
                    self._add(reasons, (("READER_FIELD_MISSING_DEFAULT_VALUE", missing_location, field, writer),))
        return tuple(reasons)

    def _compare_writer_union(self, reader: Any, writer: Union, location: Location, reader_holder: object) -> Reasons:
        """Compare every branch of the writer. A reader that is also a union only reports which branches it cannot read."""
        into_union = type(reader) is Union
        reasons: list[Reason] = []
        for index, branch in enumerate(writer.branches):
            if into_union and type(branch) is Primitive and branch in reader.branches:
                continue
            branch_location = (location, ~index)
            if not into_union:
                self._add(reasons, self.compare(reader, branch, branch_location, reader_holder, writer))
            elif self.compare(reader, branch, (branch_location,), reader_holder, writer):
                self._add(reasons, (("MISSING_UNION_BRANCH", branch_location, reader, branch),))
        return tuple(reasons)

    def _compare_reader_union(self, reader: Union, writer: Any, location: Location, writer_holder: object) -> Reasons:
        """Search for a branch that reads the writer; the reasons of other branches do not count."""
        for index in self._list_candidates(writer, reader):
            branch = reader.branches[index]
            if type(branch) is Primitive:
                if _reads_primitive(branch, writer):
                    return COMPATIBLE
            elif not self.compare(branch, writer, ((location, index),), reader, writer_holder):
                return COMPATIBLE
        return (("MISSING_UNION_BRANCH", location, reader, writer),)

    def _list_candidates(self, writer: Schema, reader: Union) -> Iterable[int]:
        """Return the indices of the branches to compare with `writer`, in order."""
        self._branch_comparisons += len(reader.branches)
        if self._branch_comparisons <= MAX_BRANCHES:
            return range(len(reader.branches))
        branches_by_name = self._branches_by_name.get(reader)
        if branches_by_name is None:
            branches_by_name = self._branches_by_name[reader] = {}
            for index, branch in enumerate(reader.branches):
                names = (f"{branch.type} {branch.name}", *branch.aliases) if isinstance(branch, Named) else ("",)
                for name in names:
                    branches_by_name.setdefault(name, []).append(index)
        if not isinstance(writer, Named):
            return branches_by_name.get("", ())
        by_name = branches_by_name.get(f"{writer.type} {writer.name}", ())
        by_alias = branches_by_name.get(writer.full_name, ())
        return sorted({*by_name, *by_alias})

    def _add(self, reasons: list[Reason], more: Reasons) -> None:
        """Add `more` to `reasons` within MAX_LISTED; the first reason is always added, because it decides."""
        if not more:
            return
        self._listed += len(more)
        if self._listed <= MAX_LISTED:
            reasons += more
        elif not reasons:
            reasons.append(more[0])


def _reads_primitive(reader: Schema, writer: Schema) -> bool:
    """Return whether `writer` is a primitive that `reader` or an equal branch reads: the most frequent case."""
    if type(writer) is not Primitive:
        return False
    if type(reader) is Primitive:
        return writer.type in PROMOTIONS[reader.type]
    return type(reader) is Union and writer in reader.branches


def compare_leaves(reader: Any, writer: Any, location: Location) -> Reasons:
    """Return the reasons for two schemas of different types, or of a type without inner schemas."""
    kind = type(reader) if type(reader) is type(writer) else None
    if kind is Enum:
        reasons = COMPATIBLE if reader.name == writer.name else compare_names(reader, writer, location)
        if writer.symbols == reader.symbols or reader.default is not None:
            return reasons
        if not set(writer.symbols).issubset(reader.symbols):
            reasons += (("MISSING_ENUM_SYMBOLS", (location, "symbols"), reader, writer),)
        return reasons
    if kind is Fixed:
        reasons = compare_names(reader, writer, location)
        if reader.size != writer.size:
            reasons += (("FIXED_SIZE_MISMATCH", (location, "size"), reader, writer),)
        return reasons
    return (("TYPE_MISMATCH", location, reader, writer),)


def compare_names(reader: Named, writer: Schema, location: Location) -> Reasons:
    """Return the reasons if two named types of one kind do not match by name."""
    if isinstance(writer, Named) and names_match(reader, writer):
        return COMPATIBLE
    return (("NAME_MISMATCH", (location, "name"), reader, writer),)


def names_match(reader: Named, writer: Named) -> bool:
    """Return whether names match without their namespaces, or through one of the reader's aliases."""
    # An alias in the null namespace does not count if the type has a namespace: Java writes a dot before it.
    return reader.name == writer.name or (
        writer.full_name in reader.aliases and bool(writer.namespace or not reader.namespace)
    )


def find_branch(schema: Schema, union: Union) -> int | None:
    """Return the index of the branch of `union` with the name of `schema`, or with its type for an unnamed type, or None."""
    return _index_branches(union).get(_branch_key(schema))


@lru_cache(maxsize=8)  # a union can have 100,000 branches, and a reason for each
def _index_branches(union: Union) -> Mapping[tuple[str, str], int]:
    keys = list(map(_branch_key, union.branches))
    return {key: index for index, key in reversed([*enumerate(keys)])}


def _branch_key(schema: Schema) -> tuple[str, str]:
    return schema.type, schema.name if isinstance(schema, Named) else ""


# Reasons, with the pointers and messages of Java


def describe_reasons(reasons: Reasons) -> tuple[Incompatibility, ...]:
    """Return `reasons` with the pointers and messages of Java."""
    if not reasons:
        return ()
    proofs = _Proofs()
    if len(reasons) == 1:
        return (_describe_reason(reasons[0], proofs),)
    # The reasons for a pair are listed wherever the pair occurs.
    distinct_reasons = {id(reason): reason for reason in reasons}
    descriptions = {key: _describe_reason(reason, proofs) for key, reason in distinct_reasons.items()}
    return tuple([descriptions[id(reason)] for reason in reasons])


def _describe_reason(reason: Reason, proofs: _Proofs) -> Incompatibility:
    rule, location, reader, writer = reason
    if rule == "MISSING_UNION_BRANCH":
        return MissingBranch(pointer(location), reason, proofs)
    # Java's own reader does not compare the names of records; but it looks for a field's aliases under its record's name.
    strict_only = rule == "NAME_MISMATCH" and isinstance(reader, Record) and not needs_aliases(reader, writer)
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


def needs_aliases(reader: Record, writer: Schema) -> bool:
    """Return whether a field of `reader` gets its values only by an alias."""
    writer_fields = writer.fields_by_name if isinstance(writer, Record) else {}
    fields: tuple[Field, ...] = reader.fields
    return any(
        field.name not in writer_fields and any(alias in writer_fields for alias in field.aliases) for field in fields
    )


def pointer(location: Location) -> str:
    """Return a location as Java prints it: a JSON pointer, but `/` for the root."""
    steps: list[str] = []
    while len(location) > 1:
        for token in location[:0:-1]:
            steps.append(f"/{token}" if type(token) is str or token >= 0 else f"/{~token}")  # noqa: PERF401  most often once
        location = location[0]
    steps.reverse()
    return "".join(steps) or "/"


def reader_pointer(location: Location) -> str:
    """Return the JSON pointer of a location into the reader's definition, without the branches of the writer; `/` for the root."""
    return "".join(f"/{token}" for token in tokens(location) if not is_writer_branch(token)) or "/"


def tokens(location: Location) -> tuple[str | int, ...]:
    """Return the tokens from the roots of reader and writer to a location, including the branches of both."""
    reversed_tokens: list[str | int] = []
    while location:
        reversed_tokens += location[:0:-1]
        location = location[0]
    return tuple(reversed(reversed_tokens))


class MissingBranch(Incompatibility):
    """A missing branch of a union. The proof that Java's reader decodes the value anyway is expensive, and made on demand."""

    __slots__ = ("_proofs", "_reason")

    _reason: Reason
    _proofs: _Proofs

    def __init__(self, pointer: str, reason: Reason, proofs: _Proofs) -> None:
        rule, _, _, writer = reason
        set_attribute = object.__setattr__
        set_attribute(self, "rule", rule)
        set_attribute(self, "pointer", pointer)
        set_attribute(self, "message", f"reader union lacking writer type: {writer.type.upper()}")
        set_attribute(self, "_reason", reason)
        set_attribute(self, "_proofs", proofs)

    def move_to(self, pointer: str) -> Incompatibility:
        """See Incompatibility."""
        return MissingBranch(pointer, self._reason, self._proofs)

    @property
    def is_warning(self) -> bool:
        """See Incompatibility."""
        return False

    @property
    def strict_only(self) -> bool:
        """See Incompatibility."""
        _, _, reader, writer = self._reason
        return self._proofs.can_decode(reader, writer)

    @property
    def trace(self) -> Location:
        """See Incompatibility."""
        _, location, reader, writer = self._reason
        branch = find_branch(writer, reader)
        if branch is None and self.strict_only:
            branch = [branch.type for branch in reader.branches].index(writer.type)
        return location if branch is None else (location, branch)


class _Proofs:
    """Proofs that Java's reader decodes values without a branch of their name."""

    def __init__(self) -> None:
        self._steps = MAX_PROOF_STEPS
        self._results: dict[tuple[Union, Schema], bool] = {}

    def can_decode(self, reader: Union, writer: Schema) -> bool:
        """Return whether Java's reader decodes the value: it finds a record with another name by its structure."""
        if not isinstance(writer, Record | Array | Map):
            return False
        if (reader, writer) in self._results:
            return self._results[reader, writer]
        if self._steps > 0:
            self._steps -= count_parts(writer, at_most=self._steps) + count_parts(reader, at_most=self._steps)
        decodes = False
        if self._steps > 0 and any(_has_sources(branch, writer) for branch in reader.branches):
            from schemactl.formats.avro.resolving_grammar import decodes_all

            decodes, self._steps = decodes_all(reader=reader, writer=writer, release=Release.R5_0, steps=self._steps)
        self._results[reader, writer] = decodes
        return decodes


def _has_sources(branch: Schema, writer: Schema) -> bool:
    """Return whether `branch` has the writer's type, and each of its fields has a source or a default: otherwise it decodes nothing."""
    if not (isinstance(branch, Record) and isinstance(writer, Record)):
        return branch.type == writer.type
    writer_fields = writer.fields_by_name
    return all(
        field.default is not NO_DEFAULT
        or field.name in writer_fields
        or any(alias in writer_fields for alias in field.aliases)
        for field in branch.fields
    )


# Places in both definitions


Part = Schema | Field
Token = str | int

Tokens = Sequence[Token]
"""Keywords, and the indices of fields and of the reader's branches; a writer's branch is its index negated by `~`."""


def get_trace(incompatibility: Incompatibility) -> Tokens:
    """Return the tokens from the roots of reader and writer to an incompatibility."""
    return _parse_pointer(incompatibility.pointer) if incompatibility.trace is None else tokens(incompatibility.trace)


def _parse_pointer(pointer: str) -> Tokens:
    return [int(token) if token.isdigit() else token for token in pointer.split("/") if token]


def is_writer_branch(token: Token) -> bool:
    """Return whether a token is a branch of the writer, for which the reader has no token."""
    return isinstance(token, int) and token < 0


@dataclass(frozen=True, slots=True)
class Walk:
    """The way that some tokens lead through the reader's schema.

    Attributes:
        parts: the schemas and fields along the path; the last is the deepest that exists.
        path: the path in readable form, such as `Order.lines[].price`.
        pointer: the JSON pointer of the tokens.
    """

    parts: tuple[Part, ...]
    path: str
    pointer: str

    @property
    def field(self) -> Field | None:
        """The innermost field of the trace."""
        return next((part for part in reversed(self.parts) if isinstance(part, Field)), None)

    @property
    def schema(self) -> Schema:
        """The innermost schema of the trace; the schema of a field if the trace ends at the field."""
        return _schema_of(self.parts[-1])


def walk(schema: Schema, trace: Tokens) -> Walk:
    """Follow `trace` into the reader's schema.

    In the path, array items are `[]`, map values `{}`, and a branch of a union is `(Card)`. The attributes of a schema (`name`,
    `symbols`, `size`) are not parts.
    """
    parts: list[Part] = [schema]
    path = schema.name if isinstance(schema, Record) else ""
    pointer = ""
    for token in trace:
        if is_writer_branch(token):
            continue
        pointer += f"/{token}"
        child = _find_child(parts[-1], token)
        if child is None:
            continue
        match parts[-1], child:
            case _, Field():
                path += f".{child.name}"
            case Array(), _:
                path += "[]"
            case Map(), _:
                path += "{}"
            case Union() as union, _ if len(union.branches) > 2 and child.type != "null":
                path += f"({child.full_name.rpartition('.')[2]})"
        parts.append(child)
    return Walk(tuple(parts), path.removeprefix("."), pointer)


def find_field(schema: Schema, pointer: str) -> Field | None:
    """Return the innermost field that a JSON pointer leads through, or None."""
    return walk(schema, _parse_pointer(pointer)).field


def find_counterpart(trace: Tokens, *, reader: Schema, writer: Schema) -> tuple[str, Schema]:
    """Follow the reader's `trace` into the writer's schema as far as possible; return the pointer, and the innermost schema.

    The counterpart of a field has its name or alias, the counterpart of a branch has its name or type.
    """
    reader_part: Part = reader
    writer_part: Part = writer
    pointer = ""
    for token in trace:
        reader_child = _find_child(reader_part, token)
        for step in _list_writer_steps(reader_part, reader_child, token, writer_part):
            if step is None:
                return pointer, _schema_of(writer_part)
            pointer += f"/{step}"
            writer_part = _find_child(writer_part, step) or writer_part
        reader_part = reader_child or reader_part
    return pointer, _schema_of(writer_part)


def _list_writer_steps(
    reader_part: Part, reader_child: Part | None, token: Token, writer_part: Part
) -> Iterator[Token | None]:
    """Yield the writer's tokens for the reader's `token` from `reader_part` to `reader_child`; None if there is no counterpart."""
    if is_writer_branch(token):
        yield ~int(token)
    elif isinstance(reader_part, Union):
        # If the writer has no union, its schema is the only branch.
        if isinstance(writer_part, Union):
            yield (
                None
                if reader_child is None or isinstance(reader_child, Field)
                else find_branch(reader_child, writer_part)
            )
    else:
        if isinstance(writer_part, Union) and not isinstance(reader_part, Field):
            index = find_branch(reader_part, writer_part)
            yield index
            writer_part = writer_part if index is None else writer_part.branches[index]
        if isinstance(reader_child, Field) and isinstance(writer_part, Record):
            indices_by_name, indices_by_alias = _index_fields(writer_part)
            names = (reader_child.name, *reader_child.aliases)
            indices = (indices_by_name[name] for name in names if name in indices_by_name)
            # An older reader does not know a new name, which has its name as an alias.
            yield next(indices, indices_by_alias.get(reader_child.name))
        else:
            yield token if type(reader_part) is type(writer_part) else None


@lru_cache(maxsize=8)  # a record can have 100,000 fields, and a reason for each
def _index_fields(record: Record) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Map the fields of a record to their indices: by name, and by alias to the first field that has it."""
    indices_by_name = {field.name: index for index, field in enumerate(record.fields)}
    indices_by_alias: dict[str, int] = {}
    for index, field in enumerate(record.fields):
        for alias in field.aliases:
            indices_by_alias.setdefault(alias, index)
    return indices_by_name, indices_by_alias


@dataclass(frozen=True)
class Case:
    """An incompatibility, and its places in the definitions of reader and writer.

    Attributes:
        is_upgraded: whether the reader is the new schema; otherwise it is the old one, whose consumers cannot be changed here.
        older: the name of the old schema.
        plain_json: whether messages are plain JSON.
    """

    incompatibility: Incompatibility
    reader: Schema
    writer: Schema
    is_upgraded: bool
    older: str
    plain_json: bool

    @classmethod
    def from_breakage(cls, breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool) -> Case:
        """Return the case of a `breakage` of `new` with `old`."""
        is_upgraded = breakage.direction != "old_reads_new"
        sides = breakage.sides(new=new, old=old)
        return cls(breakage.incompatibility, *sides, is_upgraded, breakage.older_name, plain_json)

    @cached_property
    def trace(self) -> Tokens:
        """The tokens from the roots of reader and writer to the incompatibility."""
        return get_trace(self.incompatibility)

    @cached_property
    def walk(self) -> Walk:
        """The way to the incompatibility in the reader's schema."""
        return walk(self.reader, self.trace)

    @cached_property
    def place(self) -> str:
        """The path of the reader's field, or the name or type of its schema."""
        return self.walk.path or getattr(self.walk.schema, "name", self.walk.schema.type)

    @cached_property
    def counterpart(self) -> tuple[str, Schema]:
        """The pointer to the same place in the writer's definition, and the schema there."""
        return find_counterpart(self.trace, reader=self.reader, writer=self.writer)

    def explain(self, reason: str, fix: str) -> Explanation:
        """Return the explanation with a reason and a fix, at the place in the new schema."""
        if self.is_upgraded:
            return Explanation(self.place, reason, fix, self.walk.pointer)
        return Explanation(self.place, reason, fix, self.counterpart[0], self.walk.pointer)


def make_message_trace(reader: Schema, trace: Tokens) -> tuple[Token, ...]:
    """Translate `trace` into the tokens of a writer's message: field names, the writer's branch indices, `items`, `values`."""
    message_tokens: list[Token] = []
    part: Part = reader
    for token in trace:
        child = _find_child(part, token)
        if is_writer_branch(token):
            message_tokens.append(~int(token))
        elif isinstance(child, Field):
            message_tokens.append(child.name)
        elif isinstance(part, Array | Map) and child:
            message_tokens.append(token)
        part = child or part
    return tuple(message_tokens)


def _find_child(part: Part, token: Token) -> Part | None:
    """Return the schema or field that `token` leads to, or None."""
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


def _schema_of(part: Part) -> Schema:
    return part.schema if isinstance(part, Field) else part
