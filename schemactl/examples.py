"""The example project: in a wheel it is below this package, in a checkout beside it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def shop(module: str) -> ModuleType:
    """Return a module of the example, `history` or `demo`."""
    try:
        return import_module(f"schemactl._examples.shop.{module}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("schemactl._examples"):
            raise
    return import_module(f"examples.shop.{module}")
