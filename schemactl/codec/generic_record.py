"""Records of any version, for people."""

from __future__ import annotations

from typing import Any


class GenericRecord(dict[str, Any]):
    """A record of any version: a dict whose fields are attributes, too, where dicts have none of that name.

    `GenericRecord(id="a", lines=[])` builds one, which a producer takes as it takes a dict.

    Attributes:
        schema_version: the number of the version that it was written with; None: no message brought it.
    """

    schema_version: int | None = None

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the record has no field {name}: it has {', '.join(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def generic(value: Any) -> Any:
    """Return the value, its records as GenericRecords."""
    if isinstance(value, dict):
        return GenericRecord((name, generic(held)) for name, held in value.items())
    if isinstance(value, list):
        return [generic(held) for held in value]
    return value
