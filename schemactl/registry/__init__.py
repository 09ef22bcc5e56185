"""Open the registry of a target: the URL decides which implementation."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from schemactl.core.atomic_files import find_top_folder, reject_links
from schemactl.core.deadline import PARALLEL
from schemactl.core.errors import RegistryError, UsageError
from schemactl.core.policies import BrokerDefaults
from schemactl.core.project import Target
from schemactl.core.schema import Release
from schemactl.registry.interface import OnProgress, Registry, Scope, Warn, no_progress, no_warning
from schemactl.registry.storage import MEMORY, SchemaStorage
from schemactl.registry.url import RegistryUrl, parse

if TYPE_CHECKING:
    from schemactl.registry.embedded import EmbeddedRegistry


__all__ = ["Registry", "Scope", "open_embedded", "open_registry"]

ALLOWED: Final = "SCHEMACTL_ALLOW_STORAGE"
"""The environment variable with the storages that may be imported, as `module:Class`, separated by commas.

A URL comes from the repository, so without this list, anyone who changes the repository could run any code.
"""


def open_registry(
    target: Target,
    *,
    release: Release,
    defaults: BrokerDefaults,
    folder: Path,
    progress: OnProgress = no_progress,
    warn: Warn = no_warning,
    parallel: int = PARALLEL,
) -> Registry:
    """Open the registry at `target.registry`. Nothing is created before the first write.

    Args:
        target: the target with the URL.
        release: the Pulsar release to assume if the registry does not report one.
        defaults: the broker settings to assume if the registry does not report them.
        folder: the folder for relative paths in the URL or in the credentials.
        progress: called during a long read.
        warn: called during a long wait for the registry.
        parallel: the number of requests of a long read that are sent at once.

    Raises:
        UsageError: if the URL is not valid.
        RegistryError: if the user's schema storage or the target's credentials cannot be used.
    """
    try:
        url = parse(target.registry)
    except ValueError as error:
        raise UsageError(f"target {target.name}: {error.args[0]}", fix=error.args[1]) from None
    if url.kind != "pulsar":
        return _open_embedded(target.registry, url, release=release, defaults=defaults, folder=folder)
    try:
        from schemactl.registry.pulsar.credentials import Credentials
        from schemactl.registry.pulsar.registry import PulsarRegistry
    except ImportError as error:
        if (error.name or "").split(".")[0] != "urllib3":
            raise
        raise RegistryError(
            "Pulsar registries require the `pulsar` extra", fix='pip install "pulsar-schemactl[pulsar]"'
        ) from error
    return PulsarRegistry(
        target.registry,
        credentials=Credentials.from_target(target.credentials, folder),
        release=release,
        defaults=defaults,
        progress=progress,
        warn=warn,
        cluster=target.cluster,
        parallel=parallel,
    )


def open_embedded(url: str, *, release: Release, defaults: BrokerDefaults, folder: Path) -> EmbeddedRegistry | None:
    """Open the embedded registry at `url`, or return None for another kind of URL.

    Args:
        url: `sqlite:PATH`; `memory:`, which ends with its process; or `module:Class?metadata=PATH&option=value...`, which
            stores schemas in `Class(folder, option="value", ...)`, a `SchemaStorage`, and everything else in the SQLite file
            PATH.
        release: the Pulsar release whose behavior it has.
        defaults: the settings of the simulated broker.
        folder: the folder for a relative PATH.

    Raises:
        UsageError: if the options of a storage are wrong.
        RegistryError: if the user has not allowed the storage, or it cannot be imported or created.
        SchemactlError: if the path of the SQLite file contains a symbolic link inside the repository.
    """
    try:
        parsed = parse(url)
    except ValueError:
        return None
    if parsed.kind == "pulsar":
        return None
    return _open_embedded(url, parsed, release=release, defaults=defaults, folder=folder)


def _open_embedded(
    url: str, parsed: RegistryUrl, *, release: Release, defaults: BrokerDefaults, folder: Path
) -> EmbeddedRegistry:
    from schemactl.registry.embedded import EmbeddedRegistry

    storage = _open_storage(url, parsed, folder) if parsed.kind == "storage" else None
    path = MEMORY if parsed.kind == "memory" else parsed.path
    if path != MEMORY:
        # SQLite adds files of these names.
        top = find_top_folder(str(folder))
        for suffix in ("", "-journal", "-wal", "-shm"):
            reject_links(folder / f"{path}{suffix}", below=top)
        path = str(folder / path)
    return EmbeddedRegistry(path, storage=storage, url=url, release=release, defaults=defaults)


def _open_storage(url: str, parsed: RegistryUrl, folder: Path) -> SchemaStorage:
    storage = parsed.storage
    allowed = [name.strip() for name in os.environ.get(ALLOWED, "").split(",")]
    if storage not in allowed:
        raise RegistryError(
            f"the schema storage {storage} is code that is not part of schemactl, and it is not allowed to run",
            fix=f"if you trust it, set {ALLOWED}={storage} where schemactl runs",
        )
    if not parsed.path:
        raise UsageError(
            f"{url}: a storage keeps only schemas, and the URL names no file for namespaces, topics and policies",
            fix=f"add an SQLite file: {storage}?metadata=.schemactl/metadata.db",
        )
    module, _, name = storage.partition(":")
    try:
        storage_class = cast("Callable[..., SchemaStorage]", getattr(import_module(module), name))
    except (ImportError, AttributeError) as error:
        raise RegistryError(
            f"the schema storage {storage} cannot be imported: {error}",
            fix="install its package where schemactl is installed, or put its folder on PYTHONPATH",
        ) from error
    try:
        return storage_class(folder, **parsed.options)
    except TypeError as error:
        raise UsageError(f"the schema storage {storage} does not take these options: {error}") from error
