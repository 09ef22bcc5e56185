"""Registries behind one protocol; which one is a matter of the URL."""

from __future__ import annotations

from pathlib import Path

from schemactl.errors import UsageError
from schemactl.model import BrokerDefaults, Release, Target
from schemactl.registry.base import Registry, Scope
from schemactl.registry.storage_url import open_embedded

__all__ = ["Registry", "Scope", "open_registry"]


def open_registry(target: Target, *, release: Release, defaults: BrokerDefaults, folder: Path) -> Registry:
    """The registry at `target.registry`. Nothing is created before it is first written to.

    Args:
        target: says where, by the scheme of its URL.
        release: the Pulsar release to answer as, where the registry itself does not know.
        defaults: stand for the broker's own settings, likewise.
        folder: a relative path in the URL starts here.

    Raises:
        UsageError: no registry has that URL.
        RegistryError: a schema storage of one's own cannot be made.
    """
    embedded = open_embedded(target.registry, release=release, defaults=defaults, folder=folder)
    if embedded is None:
        raise UsageError(
            f"target {target.name}: {target.registry!r} names no registry this version can open",
            fix="write `sqlite:PATH`, for example sqlite:.schemactl/registry.db",
        )
    return embedded
