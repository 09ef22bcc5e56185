"""References to types that are defined further down: Avro 1.12 resolves them once the whole text is read.

Follows org.apache.avro.ParseContext and util.SchemaResolver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from schemactl.formats.avro.names import Path, pointer
from schemactl.formats.avro.schema import (
    NO_PROPERTIES,
    Array,
    Field,
    Map,
    NamedSchema,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.text import InvalidAvro, shown

_MAX_STEPS: Final = 2_000_000
"""So much work `completion_order` does at most. It grows with the square of the definition at worst."""


class Unresolved(Record):
    """Stands for the type called `target` until references are resolved: as in Java an empty record, equal to no other."""

    __slots__ = ("path", "target")

    def __init__(self, target: str, path: Path, number: int) -> None:
        super().__init__(
            f"{target} ({number})", target, None, (), None, NO_PROPERTIES, (), {}, is_error=False
        )
        self.target = target
        self.path = path


def resolve(root: Schema, types: Mapping[str, NamedSchema]) -> Schema:
    """`root` with every Unresolved in it replaced by its type.

    Raises:
        InvalidAvro: there is no such type, or a union now has a branch twice.
    """
    if isinstance(root, Unresolved):
        raise _undefined(root, "NullPointerException")
    records: set[int] = set()
    todo: list[Schema | Field] = [root]
    while todo:
        holder = todo.pop()
        match holder:
            case Field():
                holder.schema = _resolved(holder.schema, types)
            case Array():
                holder.items = _resolved(holder.items, types)
            case Map():
                holder.values = _resolved(holder.values, types)
            case Union():
                _resolve_union(holder, types)
            case Record() if id(holder) in records:
                continue
            case Record():
                records.add(id(holder))
        todo.extend(reversed(list(_inside(holder))))
    return root


def duplicate_branch(branches: Sequence[Schema]) -> int | None:
    """The index of the first branch that is of the same type as an earlier one; named types differ by name."""
    seen: set[str] = set()
    for index, branch in enumerate(branches):
        if branch.full_name in seen:
            return index
        seen.add(branch.full_name)
    return None


def completion_order(root: Schema, types: Mapping[str, NamedSchema]) -> list[Record]:
    """The records of a definition with references unresolved, in the order in which Java completes its copies of them.

    Follows Schemas.visit with SchemaResolver.ResolvingVisitor: each type in turn is copied from its parts up. A
    reference to a type that has not been begun starts a walk of its own, which passes through begun types once more.

    Raises:
        InvalidAvro: the references are so tangled that this takes too long.
    """
    order: list[Record] = []
    begun: set[int] = set()
    complete: set[int] = set()
    steps = 0
    for start in (*types.values(), root):
        todo: list[tuple[Schema, set[int], bool]] = [(start, set(), False)]
        while todo:
            node, visited, is_done = todo.pop()
            steps += 1
            if steps > _MAX_STEPS:
                raise InvalidAvro(
                    "the types refer to each other in too tangled a way to check their defaults"
                )
            if isinstance(node, Unresolved):
                target = types.get(node.target)
                if isinstance(target, Record) and id(target) not in begun:
                    begun.add(id(target))
                    todo.append((target, set(), False))
            elif is_done:
                if id(node) not in complete and isinstance(node, Record):
                    complete.add(id(node))
                    order.append(node)
            elif id(node) not in visited:
                visited.add(id(node))
                begun.add(id(node))
                todo.append((node, visited, True))
                # A record's fields are visited from first to last, a union's branches from last to first.
                parts = list(_inside(node))
                schemas = [part.schema if isinstance(part, Field) else part for part in parts]
                todo.extend(
                    (part, visited, False) for part in (schemas if isinstance(node, Union) else schemas[::-1])
                )
    return order


def _inside(holder: Schema | Field) -> Iterator[Schema | Field]:
    match holder:
        case Field():
            yield holder.schema
        case Array():
            yield holder.items
        case Map():
            yield holder.values
        case Union():
            yield from holder.branches
        case Record():
            yield from holder.fields


def _resolved(schema: Schema, types: Mapping[str, NamedSchema]) -> Schema:
    if not isinstance(schema, Unresolved):
        return schema
    found = types.get(schema.target)
    if found is None:
        raise _undefined(schema, "AvroTypeException")
    return found


def _resolve_union(union: Union, types: Mapping[str, NamedSchema]) -> None:
    references = [branch for branch in union.branches if isinstance(branch, Unresolved)]
    if not references:
        return
    union.branches = tuple(_resolved(branch, types) for branch in union.branches)
    twice = duplicate_branch(union.branches)
    if twice is not None:
        raise InvalidAvro(
            f"the union has two branches {union.branches[twice].full_name}",
            pointer=pointer(references[0].path[0]),
            exception="AvroRuntimeException",
        )


def _undefined(reference: Unresolved, exception: str) -> InvalidAvro:
    return InvalidAvro(
        f"{shown(reference.target)} is not defined anywhere in this definition",
        pointer=pointer(reference.path),
        fix="define it, or correct the name",
        exception=exception,
    )
