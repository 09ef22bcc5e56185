"""References to types that are defined further down: Avro 1.12 resolves them once the whole text is read.

Follows org.apache.avro.ParseContext and util.SchemaResolver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

from schemactl.formats.avro.equality import children
from schemactl.formats.avro.names import Path, first_repeated, pointer
from schemactl.formats.avro.schema import (
    Array,
    Field,
    Map,
    NamedSchema,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.text import InvalidAvro, shown

Holder = Field | Array | Map | Union

_FULL_NAME: Final = attrgetter("full_name")

_MAX_STEPS: Final = 2_000_000
"""So much work `completion_order` does at most. It grows with the square of the definition at worst."""


class Unresolved(Record):
    """Stands for the type called `target` until references are resolved: as in Java an empty record, equal to no other."""

    __slots__ = ("path", "target")

    def __init__(self, target: str, path: Path, number: int) -> None:
        Record.__init__(self, f"{target} ({number})", target, None)
        self.target = target
        self.path = path


def resolve(
    root: Schema,
    references: Sequence[Unresolved],
    holders: Sequence[Holder],
    types: Mapping[str, NamedSchema],
) -> None:
    """Put types in place of the `references` in a definition; `holders` have them.

    Raises:
        InvalidAvro: there is no such type, or a union now has a branch twice.
    """
    for reference in references:
        if reference.target not in types or reference is root:
            exception = "NullPointerException" if reference is root else "AvroTypeException"
            what = f"{shown(reference.target)} is not defined anywhere in this definition"
            fix = "define it, or correct the name"
            raise InvalidAvro(what, pointer=pointer(reference.path), fix=fix, exception=exception)
    for holder in holders:
        if isinstance(holder, Union):
            place = next(branch.path[0] for branch in holder.branches if isinstance(branch, Unresolved))
            holder.branches = tuple([_resolved(branch, types) for branch in holder.branches])
            check_branches(holder, place)
        elif isinstance(holder, Field):
            holder.schema = _resolved(holder.schema, types)
        elif isinstance(holder, Array):
            holder.items = _resolved(holder.items, types)
        else:
            holder.values = _resolved(holder.values, types)


def check_branches(union: Union, path: Path) -> None:
    """Reject a union inside a union, and two branches of one type; named types differ by name.

    Raises:
        InvalidAvro: there is such a branch.
    """
    if len(union.branches) == 2:
        one, other = union.branches
        if one.full_name != other.full_name and one.full_name != "union" != other.full_name:
            return
    different = set(map(_FULL_NAME, union.branches))
    if len(different) == len(union.branches) and "union" not in different:
        return
    # A type of one's own may be called so, too.
    nested = [isinstance(branch, Union) for branch in union.branches]
    if any(nested):
        place = pointer((path, nested.index(True)))
        fix = "list the inner union's branches in the outer one"
        what = "a union directly inside a union"
        raise InvalidAvro(what, pointer=place, fix=fix, exception="AvroRuntimeException")
    if len(different) == len(union.branches):
        return
    names = list(map(_FULL_NAME, union.branches))
    twice = first_repeated(names)
    what = f"the union has two branches {names[twice]}"
    raise InvalidAvro(what, pointer=pointer((path, twice)), exception="AvroRuntimeException")


def completion_order(root: Schema, types: Mapping[str, NamedSchema]) -> list[Record]:
    """Return the records of a definition with references unresolved, in the order in which Java completes its copies of them.

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
                inside = list(children(node))
                todo.extend(
                    (part, visited, False) for part in (inside if isinstance(node, Union) else inside[::-1])
                )
    return order


def _resolved(schema: Schema, types: Mapping[str, NamedSchema]) -> Schema:
    return types[schema.target] if isinstance(schema, Unresolved) else schema
