"""Definitions that are read when somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from schemactl.errors import Source
from schemactl.model import SchemaInfo, SchemaType

_PARTS: Final = ("schema", "properties", "source", "locator", "proto")
"""Of a SchemaInfo, beside its type."""


class DeferredInfo(SchemaInfo):
    """A definition of which only the type is known, and maybe its place, until somebody looks at the rest."""

    __slots__ = ("_read",)

    @classmethod
    def of(
        cls, type_: SchemaType, read: Callable[[], SchemaInfo], *, source: Source | None = None
    ) -> SchemaInfo:
        """Return the definition that `read` gives; where `source` is given, it stands there."""
        info = cls.__new__(cls)
        object.__setattr__(info, "type", type_)
        object.__setattr__(info, "_read", read)
        if source:
            object.__setattr__(info, "source", source)
        return info

    def __getattr__(self, name: str) -> Any:
        """Read the rest for an attribute that has no value yet."""
        if name not in _PARTS:
            raise AttributeError(name)
        read: SchemaInfo = object.__getattribute__(self, "_read")()
        for part in _PARTS:
            object.__setattr__(self, part, getattr(read, part))
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SchemaInfo):
            return NotImplemented
        return (self.type, self.schema, self.properties) == (other.type, other.schema, other.properties)

    __hash__ = SchemaInfo.__hash__
