"""Columns by their Spark types: their names and types as SQL has them, and what is inside of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import types

_NESTED: Final = (types.StructType, types.ArrayType, types.MapType)


def quoted(name: str) -> str:
    """Return the column's name as SQL has it, whatever it holds."""
    return f"`{name.replace('`', '``')}`"


def folding(*structs: types.StructType) -> Callable[[str], str]:
    """Return what makes the same of names that are the same: case counts where names of a struct differ in nothing else."""
    names = [[name.casefold() for name in struct.names] for struct in structs]
    return str.casefold if all(len({*each}) == len(each) for each in names) else str


def sql_type(of: types.DataType) -> str:
    """Return the type as SQL has it, names of fields quoted."""
    match of:
        case types.StructType():
            return f"struct<{', '.join(f'{quoted(each.name)}: {sql_type(each.dataType)}' for each in of)}>"
        case types.ArrayType():
            return f"array<{sql_type(of.elementType)}>"
        case types.MapType():
            return f"map<{sql_type(of.keyType)}, {sql_type(of.valueType)}>"
    return of.simpleString()


def parts(
    fields: Iterable[types.StructField], outer: str = "", *, maps: bool = True
) -> Iterator[tuple[str, types.StructField]]:
    """Yield each column with its path, at any depth, as SQL has it: `items.element.price`."""
    for each in fields:
        place = outer + each.name
        yield place, each
        match each.dataType:
            case types.StructType() as kind:
                yield from parts(kind, f"{place}.", maps=maps)
            case types.ArrayType() as kind:
                inner = types.StructField("element", kind.elementType, kind.containsNull)
                yield from parts([inner], f"{place}.", maps=maps)
            case types.MapType() as kind if maps:
                key = types.StructField("key", kind.keyType)
                value = types.StructField("value", kind.valueType, kind.valueContainsNull)
                yield from parts([key, value], f"{place}.")


def leaves(struct: types.StructType) -> Iterator[tuple[str, types.DataType]]:
    """Yield the type of each column with none inside, with its path: of an empty struct, too."""
    for place, column in parts(struct):
        kind = column.dataType
        if kind == types.StructType() or not isinstance(kind, _NESTED):
            yield place, kind


def has_part(kind: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    """Whether the type, or a part of it at any depth, is as wanted."""
    parts = (kind.field(number).type for number in range(kind.num_fields))
    return wanted(kind) or any(has_part(part, wanted) for part in parts)
