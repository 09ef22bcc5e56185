"""Small messages of a schema, and the parts of a schema that no message can have."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from schemactl.core.schema import Release
from schemactl.formats.avro.datum_encoding import Datum, UnionValue
from schemactl.formats.avro.defaults import MISSING_SYMBOL, encode_default, find_altered_parts
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Fixed,
    JavaException,
    Map,
    Record,
    Schema,
    Union,
    children,
    locate_parts,
    pointer,
)

ZEROS: Final[dict[str, Any]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": b"",
    "string": "",
}

ONES: Final[dict[str, Any]] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.0,
    "double": 1.0,
    "bytes": b"1",
    "string": "1",
}

_DISTINCTIVE: Final = ONES | {"float": 1.5, "double": 1.5, "bytes": b"\xff", "string": "é"}

MAX_VALUES: Final = 2_000
"""The maximum number of values in a message, where each byte of a fixed counts; a larger message is not shown."""

MAX_DEPTH: Final = 100
"""The maximum depth of nested values in a message that is shown."""


def list_candidates(
    schema: Schema, *, uncommon_symbols: Collection[str] = (), primitives: Mapping[str, Any] | None = None
) -> Iterator[Datum]:
    """Yield the smallest message, then a message for each place in the schema that reaches it, with every enum symbol and branch.

    Nothing is yielded if no message can be written (a record must contain itself, an enum has no symbols) or if every message is
    too large.

    Args:
        schema: the writer's schema.
        uncommon_symbols: enum symbols to try before the others.
        primitives: the values of primitives by type; ZEROS by default.
    """
    samples = SampleMessages(schema, uncommon_symbols, primitives)
    if samples.is_small(schema):
        yield samples.make_smallest(schema)
    yield from samples.list_variants(schema)


def make_messages(schema: Schema) -> Iterator[Datum]:
    """Yield small messages. A primitive has one, with a distinctive value: zeros and empty texts look alike in many types."""
    return iter([_DISTINCTIVE[schema.type]]) if schema.type in _DISTINCTIVE else list_candidates(schema)


class SampleMessages:
    """Small messages of a writer's schema."""

    def __init__(
        self, schema: Schema, uncommon_symbols: Collection[str] = (), primitives: Mapping[str, Any] | None = None
    ) -> None:
        self._least_sizes = compute_least_sizes(schema)
        self._uncommon_symbols = frozenset(uncommon_symbols)
        self._primitives = primitives or ZEROS

    def is_small(self, schema: Schema, depth: int = 0) -> bool:
        """Return whether the smallest value of a part, inside `depth` other values, is small enough to show."""
        values, levels = self._least_sizes.get(schema, (MAX_VALUES + 1, 0))
        return values <= MAX_VALUES and depth + levels <= MAX_DEPTH

    def make_smallest(self, schema: Schema) -> Datum:
        """Return the simplest value of a part that `is_small`: zeros, empty containers, first symbols, null if a union has it."""
        match schema:
            case Record():
                return {field.name: self.make_smallest(field.schema) for field in schema.fields}
            case Union():
                index = find_simplest_branch(schema, self._least_sizes)
                return UnionValue(index, self.make_smallest(schema.branches[index]))
            case Array():
                return []
            case Map():
                return {}
            case Enum():
                return schema.symbols[0]
            case Fixed():
                return self._primitives["bytes"][:1] * schema.size or bytes(schema.size)
        return self._primitives[schema.type]

    def list_variants(self, schema: Schema, entered: frozenset[int] = frozenset(), depth: int = 0) -> Iterator[Datum]:
        """Yield values that differ from the smallest in one symbol, branch or item; each record is `entered` once."""
        if isinstance(schema, Enum):
            # The smallest value has the first symbol.
            yield from sorted(schema.symbols[1:], key=lambda symbol: symbol not in self._uncommon_symbols)
        if isinstance(schema, Record):
            if id(schema) in entered or not self.is_small(schema, depth):
                return
            entered |= {id(schema)}
        for _, part, enclose in self._list_parts(schema):
            if isinstance(schema, Union) and id(part) in entered:
                if self.is_small(part, depth + 1):
                    yield enclose(self.make_smallest(part))
            elif isinstance(schema, Record):
                yield from map(enclose, self.list_variants(part, entered, depth + 1))
            else:
                yield from map(enclose, self._list_values(part, entered, depth + 1))

    def list_along(self, schema: Schema, trace: Sequence[str | int], depth: int = 0) -> Iterator[Datum]:
        """Yield values that `trace` leads into (see `Tokens`), with the smallest value and its variants at the end."""
        if not trace:
            yield from self._list_values(schema, frozenset(), depth)
            return
        if depth > MAX_DEPTH:
            return
        # If the reader has no union, the trace has no token for a branch, and every branch is tried.
        is_union_of_writer = isinstance(schema, Union) and not isinstance(trace[0], int)
        for token, part, enclose in self._list_parts(schema):
            if is_union_of_writer or token == trace[0]:
                rest = trace if is_union_of_writer else trace[1:]
                yield from map(enclose, self.list_along(part, rest, depth + 1))

    def make_along(self, schema: Schema, trace: Sequence[str | int], value: Datum) -> Datum | None:
        """Return a datum of `schema` with `value` where `trace` leads (see `Tokens`), or None if it is too large to show."""
        if len(trace) > MAX_DEPTH:
            return None
        encloses: list[Callable[[Datum], Datum]] = []
        for token in trace:
            part = next((part for part in self._list_parts(schema) if part[0] == token), None)
            if part is None:
                return None
            _, schema, enclose = part
            encloses.append(enclose)
        for enclose in reversed(encloses):
            value = enclose(value)
        return value

    def _list_values(self, schema: Schema, entered: frozenset[int], depth: int) -> Iterator[Datum]:
        """Yield the smallest value, then its variants."""
        if depth > MAX_DEPTH:
            return
        if self.is_small(schema):
            yield self.make_smallest(schema)
        yield from self.list_variants(schema, entered, depth)

    def _list_parts(self, schema: Schema) -> Iterator[tuple[str | int, Schema, Callable[[Datum], Datum]]]:
        """Yield for each part of `schema` its token, its schema, and a function that makes a value of `schema` around the part's."""
        match schema:
            case Union():
                for index, branch in enumerate(schema.branches):
                    yield index, branch, partial(UnionValue, index)
            case Array():
                yield "items", schema.items, lambda item: [item]
            case Map():
                yield "values", schema.values, lambda item: {"k": item}
            case Record() if self.is_small(schema):
                smallest = self.make_smallest(schema)
                for field in schema.fields:

                    def replace_field(value: Datum, name: str = field.name) -> Datum:
                        return {**smallest, name: value}

                    yield field.name, field.schema, replace_field


def compute_least_sizes(schema: Schema) -> dict[Schema, tuple[int, int]]:
    """Map each part of a schema to the number of values in its smallest value, itself included, and their depth.

    A part that must contain itself is missing, because its values never end. A smallest value contains only smaller ones, so
    parts are computed from the smallest up (Knuth's generalization of Dijkstra's algorithm).
    """
    # The parents of each part, once for each place, and a heap of the parts whose smallest value has no inner values: the number of
    # values, a number that keeps the order, and the part.
    parents: dict[Schema, list[Schema]] = {schema: []}
    ready: list[tuple[int, int, Schema]] = []
    pending = [schema]
    while pending:
        part = pending.pop()
        for child in children(part):
            if child not in parents:
                parents[child] = []
                pending.append(child)
            parents[child].append(part)
        if isinstance(part, Fixed):
            ready.append((1 + part.size, len(ready), part))
        elif not isinstance(part, Enum | Record | Union) or (
            part.symbols if isinstance(part, Enum) else isinstance(part, Record) and not part.fields
        ):
            ready.append((1, len(ready), part))
    heapq.heapify(ready)

    missing_fields = {part: len(part.fields) for part in parents if isinstance(part, Record)}
    turn = len(ready)
    sizes: dict[Schema, tuple[int, int]] = {}
    while ready:
        values, _, part = heapq.heappop(ready)
        if part in sizes:
            continue
        if isinstance(part, Union):
            sizes[part] = values, 1 + sizes[part.branches[find_simplest_branch(part, sizes)]][1]
        else:
            field_depths = [sizes[field.schema][1] for field in part.fields] if isinstance(part, Record) else []
            sizes[part] = values, 1 + max(field_depths, default=0)
        for parent in parents[part]:
            if isinstance(parent, Record):
                missing_fields[parent] -= 1
                if missing_fields[parent]:
                    continue
                inner_values = sum(sizes[field.schema][0] for field in parent.fields)
            elif isinstance(parent, Union):
                inner_values = values
            else:
                continue
            turn += 1
            heapq.heappush(ready, (1 + inner_values, turn, parent))
    return sizes


def find_simplest_branch(union: Union, sizes: Mapping[Schema, tuple[int, int]]) -> int:
    """Return the index of the branch with the smallest value, and of null if it is one of several."""
    indices = [index for index, branch in enumerate(union.branches) if branch in sizes]
    return min(indices, key=lambda index: (sizes[union.branches[index]][0], union.branches[index].type != "null"))


@lru_cache(maxsize=4)  # called for each of possibly thousands of findings
def can_be_written(schema: Schema) -> bool:
    """Return whether a message can exist. It cannot if a record must contain itself or an enum has no symbols."""
    return schema in compute_least_sizes(schema)


class EndlessRecord(NamedTuple):
    """A record that must contain itself.

    Attributes:
        full_name: its full name.
        field_path: the field that leads back to the record, or the fields, such as `Node.child.parent`.
        pointer: the pointer to the first of these fields.
    """

    full_name: str
    field_path: str
    pointer: str


def find_endless_record(schema: Schema) -> EndlessRecord | None:
    """Return the first record in a schema that must contain itself, or None without such a record."""
    sizes = compute_least_sizes(schema)
    paths = locate_parts(schema)

    # Each part without a finite value has a child without one, except empty enums and unions: the way along these children
    # ends there or in a cycle.
    next_children = {
        part: (index, child)
        for part in paths
        if part not in sizes
        for index, child in reversed([*enumerate(children(part))])
        if child not in sizes and not _is_empty(child)
    }
    visited: set[Schema] = set()
    for start in next_children:
        way: list[Schema] = []
        part = start
        while part in next_children and part not in visited:
            visited.add(part)
            way.append(part)
            part = next_children[part][1]
        if part in way:
            records = [member for member in way[way.index(part) :] if isinstance(member, Record)]
            fields = [record.fields[next_children[record][0]] for record in records]
            field_path = ".".join([records[0].name, *(field.name for field in fields)])
            first_index = next_children[records[0]][0]
            return EndlessRecord(records[0].full_name, field_path, pointer((paths[records[0]], "fields", first_index)))
    return None


def _is_empty(schema: Schema) -> bool:
    """Return whether it is an enum without symbols, or a union without branches."""
    return isinstance(schema, Enum) or (isinstance(schema, Union) and not schema.branches)


def find_missing_symbols(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the pointer of each default that sets an enum to a text that is not one of its symbols, and the problem.

    Avro accepts the definition, but its readers fail on every message that lacks the field, and a broker's check fails.
    """
    for part, path in locate_parts(schema).items():
        for index, field in enumerate(part.fields if isinstance(part, Record) else ()):
            if field.default is NO_DEFAULT:
                continue
            try:
                encode_default(field, Release.R5_0)
            except JavaException as exception:
                if exception.exception == MISSING_SYMBOL:
                    # The message without the list of symbols is the same in versions that list others.
                    enum_value = exception.message.partition(" is not in ")[0]
                    message = f"the default of {part.full_name}.{field.name} cannot be read: {enum_value} is not a symbol of the enum"
                    yield pointer((path, "fields", index, "default")), message


def find_altered_defaults(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the pointer of each default with a part that Java writes as another value, and the problem."""
    for part, path in locate_parts(schema).items():
        for index, field in enumerate(part.fields if isinstance(part, Record) else ()):
            if field.default is not NO_DEFAULT:
                for problem in find_altered_parts(field):
                    message = f"the default of {part.full_name}.{field.name} is not kept: {problem}"
                    yield pointer((path, "fields", index, "default")), message
