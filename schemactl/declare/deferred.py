"""Definitions that are read lazily: with `load`, or when an attribute is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from schemactl.model import SchemaInfo, SchemaType

_PARTS: Final = ("schema", "properties", "source", "locator", "proto")
"""Of a SchemaInfo, besides its type."""


class DeferredInfo(SchemaInfo):
    """A definition of which only the type is known until it is loaded."""

    __slots__ = ("_read",)

    @classmethod
    def of(cls, type_: SchemaType, read: Callable[[], SchemaInfo]) -> SchemaInfo:
        """Return the definition that `read` gives."""
        info = cls.__new__(cls)
        object.__setattr__(info, "type", type_)
        object.__setattr__(info, "_read", read)
        return info

    def load(self) -> SchemaInfo:
        """Read the definition from Git, unless that was done."""
        try:
            object.__getattribute__(self, "schema")
        except AttributeError:
            read: SchemaInfo = object.__getattribute__(self, "_read")()
            for part in _PARTS:
                object.__setattr__(self, part, getattr(read, part))
        return self

    def __getattr__(self, name: str) -> Any:
        """Load the definition for an attribute that has no value yet."""
        if name not in _PARTS:
            raise AttributeError(name)
        return getattr(self.load(), name)

    def __eq__(self, other: object) -> bool:
        """Compare definitions, both loaded."""
        if not isinstance(other, SchemaInfo):
            return NotImplemented
        one, two = self.load(), other.load()
        return (one.type, one.schema, one.properties) == (two.type, two.schema, two.properties)

    __hash__ = SchemaInfo.__hash__
