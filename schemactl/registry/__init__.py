"""Registries behind one protocol; which one is a matter of the URL."""

from __future__ import annotations

from pathlib import Path

from schemactl.errors import RegistryError, UsageError
from schemactl.model import BrokerDefaults, Release, Target
from schemactl.registry.base import OnProgress, Registry, Scope, Warn, no_progress, no_warning
from schemactl.registry.storage_url import open_embedded

__all__ = ["Registry", "Scope", "open_registry"]


def open_registry(
    target: Target,
    *,
    release: Release,
    defaults: BrokerDefaults,
    folder: Path,
    progress: OnProgress = no_progress,
    warn: Warn = no_warning,
) -> Registry:
    """The registry at `target.registry`. Nothing is created before it is first written to.

    Args:
        target: says where, by the scheme of its URL.
        release: the Pulsar release to answer as, where the registry itself does not know.
        defaults: stand for the broker's own settings, likewise.
        folder: a relative path in the URL or in the credentials starts here.
        progress: told of a long reading.
        warn: told when the registry is waited for.

    Raises:
        UsageError: no registry has that URL.
        RegistryError: a schema storage of one's own cannot be made, or the target's credentials cannot be used.
    """
    if target.registry.startswith(("http://", "https://")):
        try:
            from schemactl.registry.pulsar import Credentials, PulsarRegistry
        except ImportError as error:
            if (error.name or "").split(".")[0] != "urllib3":
                raise
            raise RegistryError(
                "a Pulsar is spoken to with urllib3, which is not installed",
                fix='pip install "pulsar-schemactl[pulsar]"',
            ) from error
        credentials = Credentials.of(target.credentials, folder)
        return PulsarRegistry(
            target.registry,
            credentials=credentials,
            release=release,
            defaults=defaults,
            progress=progress,
            warn=warn,
        )
    embedded = open_embedded(target.registry, release=release, defaults=defaults, folder=folder)
    if embedded is None:
        raise UsageError(
            f"target {target.name}: {target.registry!r} names no registry this version can open",
            fix="write `https://HOST:PORT` for the admin API of a Pulsar (not the pulsar:// of its clients), or `sqlite:PATH`",
        )
    return embedded
