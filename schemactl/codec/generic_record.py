"""Represent records of any version as dicts with attributes (`GenericRecord`)."""

from __future__ import annotations

from typing import Any


class GenericRecord(dict[str, Any]):
    """A record of any version: a dict whose fields are also attributes, unless a dict has an attribute of that name.

        GenericRecord(id="a", lines=[])  # a producer accepts it like a dict

    Attributes:
        schema_version: the number of the version that it was written with, or None if it does not come from a message.
    """

    schema_version: int | None = None

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the record has no field {name}: it has {', '.join(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def to_generic(value: Any) -> Any:
    """Convert all records of a value to GenericRecords."""
    if isinstance(value, dict):
        return GenericRecord((name, to_generic(field)) for name, field in value.items())
    if isinstance(value, list):
        return [to_generic(item) for item in value]
    return value
