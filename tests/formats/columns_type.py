"""A made-up schema type, COLUMNS: its definition is a list of columns, and a message is a line of values."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats.type_spec import Explanation, ReaderFailure, TypeSpec, Wire


@dataclass(frozen=True, kw_only=True)
class ColumnsSpec(TypeSpec):
    """COLUMNS: a reader fails where the line lacks one of its columns."""

    declared_as: Literal["avro"] = "avro"
    suffix: str = ".json"

    def problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        del release
        try:
            columns(info)
        except InvalidSchema as error:
            yield error

    def identity(self, info: SchemaInfo) -> Hashable:
        return info.type, columns(info)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        for number, name in enumerate(columns(reader)):
            if name not in columns(writer):
                yield Incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", f"/columns/{number}", name)

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        del new, old
        name = breakage.incompatibility.message
        return Explanation(name, f"The column {name} is not in every message.", "Keep it.", "/columns")

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample:
        _, writer = breakage.sides(new=new, old=old)
        (wire,) = self.messages(writer)
        line = self.read(wire, writer)
        return Counterexample(line, wire.payload or b"", f"no column {breakage.incompatibility.message}")

    def outline(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        return ((name, "column") for name in columns(info))

    def messages(self, info: SchemaInfo) -> Iterator[Wire]:
        yield Wire(",".join("1" for _ in columns(info)).encode())

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        values = (wire.payload or b"").decode("latin-1").split(",")
        if len(values) < len(columns(info)):
            raise ReaderFailure("IndexOutOfBoundsException")
        return json.dumps(dict(zip(columns(info), values, strict=False)))


def columns(info: SchemaInfo) -> tuple[str, ...]:
    """The names of the columns."""
    try:
        return tuple(json.loads(info.schema)["columns"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InvalidSchema("expected {columns: [...]}", fix="list the columns") from None
