"""Registries behind one protocol; which one is a matter of the URL."""

from __future__ import annotations

from pathlib import Path

from schemactl.errors import UsageError
from schemactl.model import BrokerDefaults, Release, Target
from schemactl.registry.base import Registry, Scope
from schemactl.registry.database import MEMORY
from schemactl.registry.embedded import EmbeddedRegistry

__all__ = ["Registry", "Scope", "open_registry"]


def open_registry(target: Target, *, release: Release, defaults: BrokerDefaults, folder: Path) -> Registry:
    """The registry at `target.registry`. Nothing is created before it is first written to.

    Args:
        target: says where, by the scheme of its URL.
        release: the Pulsar release to answer as, where the registry itself does not know.
        defaults: stand for the broker's own settings, likewise.
        folder: a relative path in the URL starts here.

    Raises:
        UsageError: no registry has that URL scheme.
    """
    scheme, separator, rest = target.registry.partition(":")
    if scheme != "sqlite" or not separator or not rest:
        raise UsageError(
            f"target {target.name}: {target.registry!r} names no registry this version can open",
            fix="write `sqlite:PATH`, for example sqlite:.schemactl/registry.db",
        )
    path = rest if rest == MEMORY else str(folder / rest)
    return EmbeddedRegistry(path, url=target.registry, release=release, defaults=defaults)
