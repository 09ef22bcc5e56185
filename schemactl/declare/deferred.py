"""Definitions that are read only when `load` is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from schemactl.model import SchemaInfo, SchemaType

_PARTS: Final = ("schema", "properties", "source", "locator", "proto", "comments")
"""Of a SchemaInfo, besides its type."""


class DeferredInfo(SchemaInfo):
    """A definition of which only the type is known until `load` is called. Using any other part before that is a bug."""

    __slots__ = ("_read",)

    @classmethod
    def of(cls, type_: SchemaType, read: Callable[[], SchemaInfo]) -> SchemaInfo:
        """Return the definition that `read` gives."""
        info = cls.__new__(cls)
        object.__setattr__(info, "type", type_)
        object.__setattr__(info, "_read", read)
        return info

    def load(self) -> SchemaInfo:
        """Read the definition, unless that was done."""
        # One that `replace` made has all its parts from the beginning.
        if read := getattr(self, "_read", None):
            found: SchemaInfo = read()
            for part in _PARTS:
                object.__setattr__(self, part, getattr(found, part))
            object.__setattr__(self, "_read", None)
        return self

    def __getattr__(self, name: str) -> Any:
        """Raise for a part that was not read yet."""
        if name in _PARTS:
            raise RuntimeError(f"{name} of a definition was used before it was read: call load() first")
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        """Compare two definitions, which are read already."""
        if not isinstance(other, SchemaInfo):
            return NotImplemented
        return (self.type, self.schema, self.properties) == (other.type, other.schema, other.properties)

    __hash__ = SchemaInfo.__hash__

    def __repr__(self) -> str:
        """Return the definition, as far as it is read."""
        return f"DeferredInfo(type={self.type})" if getattr(self, "_read", None) else super().__repr__()
