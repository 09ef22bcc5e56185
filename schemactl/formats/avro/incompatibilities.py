"""The reasons why a reader may fail on a writer's messages, and their text in Java's SchemaCompatibility."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from schemactl.core.findings import Incompatibility
from schemactl.core.schema import Release
from schemactl.formats.avro.equality import size
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Schema,
    Union,
)

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
    strict_only = (
        rule == "NAME_MISMATCH" and isinstance(reader, Record) and not _needs_aliases(reader, writer)
    )
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
        field.default is not NO_DEFAULT
        or field.name in there
        or any(alias in there for alias in field.aliases)
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
        from schemactl.formats.avro.grammar import decodes_all

        decodes, self._steps = decodes_all(
            reader=reader, writer=writer, release=Release.R5_0, steps=self._steps
        )
        return decodes
