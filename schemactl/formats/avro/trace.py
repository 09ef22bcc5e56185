"""The places of an incompatibility in both definitions, as JSON pointers and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from schemactl.core.findings import Incompatibility
from schemactl.formats.avro.incompatibilities import branch_for, tokens
from schemactl.formats.avro.schema import Array, Field, Map, Primitive, Record, Schema, Union

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
