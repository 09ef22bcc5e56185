"""Small messages of an Avro schema: the smallest, and those that differ from it in one choice."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from schemactl.formats.avro.datum import Datum, In
from schemactl.formats.avro.equality import children
from schemactl.formats.avro.schema import Array, Enum, Fixed, Map, Record, Schema, Union

MAX_VALUES: Final = 2_000
"""In a message, the bytes of a fixed counted each: a larger one is not shown."""

MAX_DEPTH: Final = 100
"""Of values inside one another, for the same reason."""


def candidates(
    schema: Schema, *, uncommon: Collection[str] = (), primitives: Mapping[str, Any] | None = None
) -> Iterator[Datum]:
    """Yield the smallest message, then for each place in the schema one that goes there, each enum symbol and branch in turn.

    None at all where nothing can be written: with a record that must contain itself, or an enum without symbols; and where
    every message is large. Of enum symbols the `uncommon` ones come first. `primitives` are used in place of ZEROS.
    """
    sample = SampleMessages(schema, uncommon, primitives)
    if sample.is_small(schema):
        yield sample.smallest(schema)
    yield from sample.variants(schema)


def messages(schema: Schema) -> Iterator[Datum]:
    """Yield small messages, the most telling first: of a primitive zeros and empty texts look alike in many forms."""
    return iter([_TELLING[schema.type]]) if schema.type in _TELLING else candidates(schema)


class SampleMessages:
    """Messages of one writer's schema."""

    def __init__(
        self,
        schema: Schema,
        uncommon: Collection[str] = (),
        primitives: Mapping[str, Any] | None = None,
    ) -> None:
        self._least = least_messages(schema)
        self._uncommon = frozenset(uncommon)
        self._primitives = primitives or ZEROS

    def is_small(self, schema: Schema, depth: int = 0) -> bool:
        """Whether the smallest value of a part is worth showing, `depth` values around it."""
        values, deep = self._least.get(schema, (MAX_VALUES + 1, 0))
        return values <= MAX_VALUES and depth + deep <= MAX_DEPTH

    def smallest(self, schema: Schema) -> Datum:
        """Return the simplest value of a part that `is_small`: zeros, empty containers, the first symbol, null where a union has it."""
        match schema:
            case Record():
                return {field.name: self.smallest(field.schema) for field in schema.fields}
            case Union():
                index = simplest(schema, self._least)
                return In(index, self.smallest(schema.branches[index]))
            case Array():
                return []
            case Map():
                return {}
            case Enum():
                return schema.symbols[0]
            case Fixed():
                return self._primitives["bytes"][:1] * schema.size or bytes(schema.size)
        return self._primitives[schema.type]

    def variants(
        self, schema: Schema, inside: frozenset[int] = frozenset(), depth: int = 0
    ) -> Iterator[Datum]:
        """Yield values that differ from the smallest in one choice: a symbol, a branch, an item; each record is entered once."""
        if isinstance(schema, Enum):
            # The smallest has the first.
            yield from sorted(schema.symbols[1:], key=lambda symbol: symbol not in self._uncommon)
        if isinstance(schema, Record):
            if id(schema) in inside or not self.is_small(schema, depth):
                return
            inside |= {id(schema)}
        for _, part, around in self._places(schema):
            if isinstance(schema, Union) and id(part) in inside:
                if self.is_small(part, depth + 1):
                    yield around(self.smallest(part))
            elif isinstance(schema, Record):
                yield from map(around, self.variants(part, inside, depth + 1))
            else:
                yield from map(around, self._each(part, inside, depth + 1))

    def along(self, schema: Schema, trace: Sequence[str | int], depth: int = 0) -> Iterator[Datum]:
        """Yield values that `trace` leads into (see `Tokens`), and that also differ from the smallest at its end."""
        if not trace:
            yield from self._each(schema, frozenset(), depth)
            return
        if depth > MAX_DEPTH:
            return
        # Where the reader has no union, each branch is tried.
        is_only_here = isinstance(schema, Union) and not isinstance(trace[0], int)
        for token, part, around in self._places(schema):
            if is_only_here or token == trace[0]:
                rest = trace if is_only_here else trace[1:]
                yield from map(around, self.along(part, rest, depth + 1))

    def _places(self, schema: Schema) -> Iterator[tuple[str | int, Schema, Callable[[Datum], Datum]]]:
        """Yield the token to each part of a value of `schema`, the part's schema, and what makes the value of the part."""
        match schema:
            case Union():
                for index, branch in enumerate(schema.branches):
                    yield index, branch, partial(In, index)
            case Array():
                yield "items", schema.items, lambda item: [item]
            case Map():
                yield "values", schema.values, lambda item: {"k": item}
            case Record() if self.is_small(schema):
                least = self.smallest(schema)
                for field in schema.fields:
                    yield field.name, field.schema, partial(_with, least, field.name)

    def _each(self, schema: Schema, inside: frozenset[int], depth: int) -> Iterator[Datum]:
        """Yield the smallest value, then its variants."""
        if depth > MAX_DEPTH:
            return
        if self.is_small(schema):
            yield self.smallest(schema)
        yield from self.variants(schema, inside, depth)


def _with(least: Mapping[str, Datum], name: str, value: Datum) -> Datum:
    return {**least, name: value}


def least_messages(schema: Schema) -> dict[Schema, tuple[int, int]]:
    """Return for each part of a schema how many values its smallest value has, itself counted, and how deep they nest.

    What must contain itself, so that its values never end, is left out. A least value holds only lesser ones, so parts are
    settled from the least up (Knuth's generalisation of Dijkstra's algorithm).
    """
    around, ready = _parts(schema)
    unsettled = {part: len(part.fields) for part in around if isinstance(part, Record)}
    turn = len(ready)
    least: dict[Schema, tuple[int, int]] = {}
    while ready:
        values, _, part = heapq.heappop(ready)
        if part in least:
            continue
        if isinstance(part, Union):
            least[part] = values, 1 + least[part.branches[simplest(part, least)]][1]
        else:
            inner = [least[field.schema][1] for field in part.fields] if isinstance(part, Record) else []
            least[part] = values, 1 + max(inner, default=0)
        for outer in around[part]:
            if isinstance(outer, Record):
                unsettled[outer] -= 1
                if unsettled[outer]:
                    continue
                needed = sum(least[field.schema][0] for field in outer.fields)
            elif isinstance(outer, Union):
                needed = values
            else:
                continue
            turn += 1
            heapq.heappush(ready, (1 + needed, turn, outer))
    return least


@lru_cache(maxsize=4)  # asked for each of what may be thousands of findings
def can_be_written(schema: Schema) -> bool:
    """Whether there is a message of it: not where a record must contain itself, or an enum has no symbols."""
    return schema in least_messages(schema)


def has_endless(schema: Schema) -> bool:
    """Whether some part of it has no value that ends."""
    return len(least_messages(schema)) < len(_parts(schema)[0])


def simplest(union: Union, least: Mapping[Schema, tuple[int, int]]) -> int:
    """Return the index of the branch with the smallest value; null, where it is one of several."""
    known = [index for index, branch in enumerate(union.branches) if branch in least]
    return min(
        known, key=lambda index: (least[union.branches[index]][0], union.branches[index].type != "null")
    )


def _parts(schema: Schema) -> tuple[dict[Schema, list[Schema]], list[tuple[int, int, Schema]]]:
    """Each part of a schema with those directly around it, once for each place; and those that need no other to have a value.

    The latter come with the size of that value, and in order.
    """
    around: dict[Schema, list[Schema]] = {schema: []}
    ready: list[tuple[int, int, Schema]] = []
    pending = [schema]
    while pending:
        part = pending.pop()
        for child in children(part):
            if child not in around:
                around[child] = []
                pending.append(child)
            around[child].append(part)
        if isinstance(part, Fixed):
            ready.append((1 + part.size, len(ready), part))
        elif not isinstance(part, Enum | Record | Union) or (
            part.symbols if isinstance(part, Enum) else isinstance(part, Record) and not part.fields
        ):
            ready.append((1, len(ready), part))
    heapq.heapify(ready)
    return around, ready


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

_TELLING: Final = ONES | {"float": 1.5, "double": 1.5, "bytes": b"\xff", "string": "é"}
