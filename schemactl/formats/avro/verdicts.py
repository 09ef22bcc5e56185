"""Yes or no: can a reader decode what a writer wrote? For many pairs of definitions that have most of their parts in common.

The answers are those of `resolution`, which gives reasons. Here definitions are boiled down to shapes, that is what reading
depends on: equal parts of all definitions are one shape, and two shapes are compared once, wherever they stand. So the
versions of a topic, each against each, cost little more than what is new in each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from schemactl.formats.avro.equality import children
from schemactl.formats.avro.reasons import leaf_reasons, names_match
from schemactl.formats.avro.recursion import Deep, run
from schemactl.formats.avro.resolution import PROMOTIONS, AmbiguousAlias, incompatibilities
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PRIMITIVES,
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

_LOOP: Final = 1
"""Among what a shape leads to: a record that contains itself."""

_FIELD_ALIASES: Final = 2
"""A field with aliases."""

_CHOICE: Final = 4
"""A union of several records, one of which leads to a loop or to a field with aliases."""

_MAX_KEY: Final = 1_000
"""Parts of a loop that is compared with others."""


class Shape:
    """What reading depends on in a schema, as reader or as writer.

    Attributes:
        schema: one that has it; the parts of that may have another, equal shape's.
        fields: of a record: name, shape, whether a writer may lack it, aliases.
        sources: the same shapes by name.
        inner: an array's items, a map's values, a union's branches.
        named: a union's branches by their names and aliases, once somebody has asked for one.
        leads_to: _LOOP and the like.
        open: the records around it that it leads back to.
        key: tells it apart, as long as there are such; None where it gets too long.
        reads: the writers that have been compared with it, and whether it reads them.
    """

    __slots__ = ("fields", "inner", "key", "leads_to", "named", "open", "reads", "schema", "sources")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.fields: Sequence[tuple[str, Shape, bool, tuple[str, ...]]] = ()
        self.sources: Mapping[str, Shape] = {}
        self.inner: Sequence[Shape] = ()
        self.named: dict[str, list[Shape]] = {}
        self.leads_to = 0
        self.open: frozenset[Shape] = frozenset()
        self.key: Key | None = None
        self.reads: dict[Shape, bool] = {}


Key = tuple[Hashable, ...]
"""What tells shapes apart: for one in a loop all of the loop written out, else its parts will do."""

Pair = tuple[Shape, Shape]
"""A reader and a writer."""


class Verdicts:
    """Verdicts on pairs of schemas. It keeps the schemas it has seen, and what it has found about their parts."""

    def __init__(self) -> None:
        self._primitives = {name: Shape(schema) for name, schema in PRIMITIVES.items()}
        for name, shape in self._primitives.items():
            shape.reads = {other: written in PROMOTIONS[name] for written, other in self._primitives.items()}
        self._count = 0
        self._shapes: dict[Schema, Shape] = {}  # of named types and of whole definitions
        self._equal: dict[Hashable, Shape] = {}  # by what tells them apart

    @property
    def count(self) -> int:
        """How many definitions it has seen."""
        return self._count

    def can_read(self, *, reader: Schema, writer: Schema) -> bool:
        """Whether two whole definitions have no `incompatibilities`; an ambiguous alias counts as one."""
        used = self._shapes.get(reader) or self.shape(reader)
        written = self._shapes.get(writer) or self.shape(writer)
        known = used.reads.get(written)
        if known is not None:
            return known
        loop = used.leads_to & written.leads_to & _LOOP
        if used.leads_to & _CHOICE and (loop or used.leads_to & _FIELD_ALIASES):
            # Here Java's answer depends on the order in which it comes to things.
            try:
                return not incompatibilities(reader=reader, writer=writer)
            except AmbiguousAlias:
                return False
        return _reads_in_loop(used, written) if loop else _reads(used, written)

    def shape(self, definition: Schema) -> Shape:
        """The shape of a whole definition."""
        found = self._shape(definition)
        shape = self._shapes[definition] = found if isinstance(found, Shape) else run(found)
        self._count += 1
        return shape

    def _shape(self, schema: Schema) -> Shape | Deep[Shape]:
        if type(schema) is Primitive:
            return self._primitives[schema.type]
        if type(schema) is Record:
            return self._shapes.get(schema) or self._record(schema)
        if type(schema) is Enum or type(schema) is Fixed:
            return self._shapes.get(schema) or self._leaf(schema)
        return self._container(schema)  # type: ignore[arg-type]  # no other is left

    def _leaf(self, leaf: Enum | Fixed) -> Shape:
        about: Key = (leaf.size,) if type(leaf) is Fixed else (leaf.symbols, leaf.default is None)  # type: ignore[union-attr]  # an Enum
        key = (leaf.type, leaf.full_name, leaf.aliases, *about)
        shape = self._shapes[leaf] = self._finished(Shape(leaf), (), key)
        return shape

    def _record(self, record: Record) -> Deep[Shape]:
        shape = self._shapes[record] = Shape(record)
        shape.leads_to = _LOOP  # for what leads back to it from inside
        shape.open = frozenset([shape])
        shape.key = ("under way", record.full_name)
        fields = []
        leads_to = 0
        key: list[Hashable] = ["record", record.full_name, record.aliases, len(record.fields)]
        for field in record.fields:
            part = self._shape(field.schema)
            if not isinstance(part, Shape):
                part = yield part
            is_optional = field.default is not NO_DEFAULT
            fields.append((field.name, part, is_optional, field.aliases))
            key += (field.name, is_optional)
            if field.aliases:
                key.append(field.aliases)
                leads_to = _FIELD_ALIASES
        shape.fields = fields
        shape.sources = {name: part for name, part, _, _ in fields}
        finished = self._shapes[record] = self._finished(shape, shape.sources.values(), key, leads_to)
        return finished

    def _container(self, schema: Array | Map | Union) -> Deep[Shape]:
        shape = Shape(schema)
        inner: list[Shape] = []
        for part in children(schema):
            found = self._shape(part)
            inner.append(found if isinstance(found, Shape) else (yield found))
        shape.inner = inner
        leads_to = 0
        if len(inner) > 1:
            records = [part for part in inner if type(part.schema) is Record]
            if len(records) > 1 and any(part.leads_to & (_LOOP | _FIELD_ALIASES) for part in records):
                leads_to = _CHOICE
        return self._finished(shape, inner, [schema.type, len(inner)], leads_to)

    def _finished(
        self, shape: Shape, parts: Iterable[Shape], about: Iterable[Hashable], leads_to: int = 0
    ) -> Shape:
        """`shape`, or the equal one that there is; `about` it, and by its parts, it is told apart."""
        key = [*about]
        is_open: set[Shape] = set()
        is_long = False
        for part in parts:
            leads_to |= part.leads_to
            if part.open:
                is_open |= part.open
                is_long = is_long or part.key is None
                key += part.key or ()
            else:
                key.append(part)
        is_open.discard(shape)
        is_long = is_long or len(key) > _MAX_KEY
        shape.leads_to = leads_to
        shape.open = frozenset(is_open)
        shape.key = None
        if is_long:
            return shape
        if is_open:
            shape.key = tuple(key)
            return shape
        if not leads_to & _FIELD_ALIASES:
            shape.reads[shape] = True
        return self._equal.setdefault(tuple(key), shape)


def _reads(reader: Shape, writer: Shape) -> bool:
    """The verdict where no more than one of the two loops: parts first."""
    todo: list[Pair] = [(reader, writer)]
    while todo:
        reader, writer = todo[-1]
        found = _look(reader, writer)
        if isinstance(found, bool):
            reader.reads[writer] = found
            todo.pop()
        else:
            todo += found
    return reader.reads[writer]


def _reads_in_loop(reader: Shape, writer: Shape) -> bool:
    """The verdict where both loop: without choices, all parts that they lead to must be read."""
    todo: list[Pair] = [(reader, writer)]
    met = set(todo)
    while todo:
        found = _look(*todo.pop())
        for pair in found if isinstance(found, list) else ():
            used, written = pair
            if used.leads_to & written.leads_to & _LOOP:
                if pair not in met:
                    met.add(pair)
                    todo.append(pair)
            elif not _reads(used, written):
                found = False
        if not found:
            reader.reads[writer] = False
            return False
    for used, written in met:
        used.reads[written] = True
    return True


def _look(reader: Shape, writer: Shape) -> bool | list[Pair]:
    """The verdict on two shapes as far as those on their parts are known; else the pairs of parts to compare."""
    used, written = reader.schema, writer.schema
    if type(used) is Record and type(written) is Record:
        return _look_at_fields(reader, writer) if names_match(used, written) else False
    if type(written) is Union:
        return _all((reader, branch) for branch in writer.inner)
    if type(used) is Union:
        return _any((branch, writer) for branch in _branches_like(written, reader))
    if type(used) is type(written) and reader.inner:
        return _all([(reader.inner[0], writer.inner[0])])
    return not leaf_reasons(used, written, ())


def _branches_like(written: Schema, reader: Shape) -> Iterable[Shape]:
    """The branches of a union that `written` may be for: no other reads it."""
    branches: Iterable[Shape] = reader.inner
    if isinstance(written, Named):
        if not reader.named:
            for branch in reader.inner:
                if isinstance(branch.schema, Named):
                    for name in (branch.schema.name, *branch.schema.aliases):
                        reader.named.setdefault(name, []).append(branch)
        named = reader.named
        branches = dict.fromkeys((*named.get(written.name, ()), *named.get(written.full_name, ())))
    return (branch for branch in branches if type(branch.schema) is type(written))


def _look_at_fields(reader: Shape, writer: Shape) -> bool | list[Pair]:
    unknown = []
    sources = writer.sources
    for name, part, is_optional, aliases in reader.fields:
        source = sources.get(name)
        if aliases:
            there = [sources[each] for each in (name, *aliases) if each in sources]
            if len(there) > 1:
                return False
            source = there[0] if there else None
        if source is None:
            # Java takes an enum's default for the field's, and compares the enum with the whole record, in vain.
            if is_optional:
                continue
            return False
        known = part.reads.get(source)
        if known is None:
            unknown.append((part, source))
        elif not known:
            return False
    return unknown or True


def _all(pairs: Iterable[Pair]) -> bool | list[Pair]:
    unknown = []
    for reader, writer in pairs:
        known = reader.reads.get(writer)
        if known is None:
            unknown.append((reader, writer))
        elif not known:
            return False
    return unknown or True


def _any(pairs: Iterable[Pair]) -> bool | list[Pair]:
    unknown = []
    for reader, writer in pairs:
        known = reader.reads.get(writer)
        if known:
            return True
        if known is None:
            unknown.append((reader, writer))
    return unknown or False
