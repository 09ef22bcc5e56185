"""What other tools read of topics: Avro definitions, JSON Schemas, tables in SQL, data contracts, an AsyncAPI document."""

from __future__ import annotations

from collections.abc import Container
from itertools import count
from typing import Any

from schemactl.codegen.spark_types import Struct
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo

Json = dict[str, Any]


def filled(values: Json) -> Json:
    """Return the entries that say something: not None, and no empty text, list or object."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def columns_of(info: SchemaInfo, options: StructOptions, release: Release) -> Struct:
    """Return the columns that messages are decoded into.

    Raises:
        InvalidSchema: the definition does not parse.
        SchemactlError: a part of it has no column type, or nothing says what the bytes mean.
    """
    columns = struct_of(info, options, release)
    if columns is None:
        raise unknown_payload(info)
    return columns


def free_name(name: str, taken: Container[str]) -> str:
    """Return `name`, with a number behind it if it is taken: `name_2`."""
    if name not in taken:
        return name
    return next(each for number in count(2) if (each := f"{name}_{number}") not in taken)


def unknown_payload(info: SchemaInfo) -> SchemactlError:
    """Return the error for a schema that does not say what the bytes of a message are."""
    return SchemactlError(f"a schema of type {info.type.name} does not say what the bytes of a message are")
