"""The slot for a schema language: three questions that every SchemaType must answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

from schemactl.errors import InvalidSchema
from schemactl.model import Release, SchemaInfo
from schemactl.verdicts import Breakage, Counterexample, Incompatibility


@dataclass(frozen=True, slots=True)
class Explanation:
    """An incompatibility for people.

    Attributes:
        field: the path of the field in the new schema (or the old, where only that has it): `Order.lines[].price`.
        reason: one or two sentences: what differs, and what becomes of the messages.
        fix: what to write instead.
        place: JSON pointer of the nearest part that the new definition's own text has.
        older: JSON pointer of the part in the old definition, where it is that one's; None: it is not.
    """

    field: str
    reason: str
    fix: str
    place: str = ""
    older: str | None = None


class Format(Protocol):
    """One schema language. Implementations are stateless modules or objects in `schemactl.formats.FORMATS`."""

    def problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Every reason not to declare `info`: it does not parse, a default is invalid, that release would refuse it.

        Each problem's `pointer` says where in the definition. Nothing yielded means that a first upload is accepted
        and that no later upload will stumble over it.
        """
        ...

    def identity(self, info: SchemaInfo) -> Hashable:
        """Equal for two definitions exactly when they are one version.

        AVRO, JSON, PROTOBUF: Avro's `Schema.equals`, so doc, aliases and enum default do not count. PROTOBUF_NATIVE
        and KEY_VALUE: their normalised content. The SchemaType is part of the key.

        Raises:
            InvalidSchema: the definition does not parse.
        """
        ...

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Every reason `reader` may fail on a message written with `writer`, in document order.

        Both have the same SchemaType. Nothing yielded means that every such message decodes.

        Raises:
            InvalidSchema: a definition does not parse.
        """
        ...

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """`breakage` of `new` with `old` in words for people; who reads whom is its `direction`."""
        ...

    def counterexample(
        self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo
    ) -> Counterexample | None:
        """A message that proves `breakage`, and what its reader gets; None where none can exist, or none was found."""
        ...
