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
    "Codec": "topic",
    "Decoded": "batches",
    "Encoded": "batches",
    "KindsCodec": "kinds",
    "Options": "arrow_types",
}
"""The modules of names that are not in `definition`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'definition')}"), name)
