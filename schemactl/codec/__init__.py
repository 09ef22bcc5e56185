"""Decode and encode the messages of a topic, in generated packages and in schemactl.

Generated packages contain a copy of this package, so it imports nothing of schemactl outside this folder, and only with relative imports.
"""

from __future__ import annotations

# Names are imported on use, because importing one module of this package does not need all others.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrow_types import Options
    from .batches import Decoded, Encoded
    from .definition import (
        BatchTooLarge,
        CodecError,
        CodecUnavailable,
        Definition,
        InvalidDefinition,
        KeyValue,
        Numbers,
        TargetVersions,
        UnknownTarget,
        UnknownVersion,
        Unreadable,
        Unwritable,
        Version,
    )
    from .kinds import KindsCodec
    from .topic import Codec


__all__ = [
    "BatchTooLarge",
    "Codec",
    "CodecError",
    "CodecUnavailable",
    "Decoded",
    "Definition",
    "Encoded",
    "InvalidDefinition",
    "KeyValue",
    "KindsCodec",
    "Numbers",
    "Options",
    "TargetVersions",
    "UnknownTarget",
    "UnknownVersion",
    "Unreadable",
    "Unwritable",
    "Version",
]

_MODULES = {
    "BatchTooLarge": "definition",
    "Codec": "topic",
    "CodecError": "definition",
    "CodecUnavailable": "definition",
    "Decoded": "batches",
    "Definition": "definition",
    "Encoded": "batches",
    "InvalidDefinition": "definition",
    "KeyValue": "definition",
    "KindsCodec": "kinds",
    "Numbers": "definition",
    "Options": "arrow_types",
    "TargetVersions": "definition",
    "UnknownTarget": "definition",
    "UnknownVersion": "definition",
    "Unreadable": "definition",
    "Unwritable": "definition",
    "Version": "definition",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if module := _MODULES.get(name):
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
