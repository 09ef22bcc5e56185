"""From a URL to an embedded registry: `sqlite:PATH`, `memory:`, or somebody's own storage, `module:Class?metadata=PATH`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final, cast
from urllib.parse import parse_qsl

from schemactl.errors import RegistryError, UsageError
from schemactl.model import BrokerDefaults, Release
from schemactl.output import refuse_links, top_of
from schemactl.registry.database import MEMORY
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.storage import MemoryStorage, SchemaStorage

_OWN = re.compile(
    r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)(?:\?(?P<options>.*))?", re.ASCII
)

ALLOWED: Final = "SCHEMACTL_ALLOW_STORAGE"
"""The environment variable that names the storages to import, as `module:Class`, separated by commas.

A URL stands in the repository, and importing a module, or calling a class with options, can run anything.
"""


def open_embedded(
    url: str, *, release: Release, defaults: BrokerDefaults, folder: Path
) -> EmbeddedRegistry | None:
    """The embedded registry that `url` names; None where it names none.

    Args:
        url: `sqlite:PATH`; `memory:` is gone with its process; `module:Class?metadata=PATH&option=value...` keeps schemas in
            what `Class(folder, option="value", ...)` returns, a `SchemaStorage`, and everything else in the SQLite file PATH.
        release: whose answers it gives.
        defaults: stand for the broker's own settings.
        folder: a relative PATH starts here.

    Raises:
        UsageError: the options of a storage are wrong.
        RegistryError: the user has not allowed the storage, or it cannot be imported or made.
        SchemactlError: the SQLite file is a link, or lies behind one, in the repository.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite" and rest:
        return EmbeddedRegistry(_path(rest, folder), url=url, release=release, defaults=defaults)
    if url == "memory:":
        return EmbeddedRegistry(MEMORY, storage=MemoryStorage(), url=url, release=release, defaults=defaults)
    own = _OWN.fullmatch(url)
    if own is None or scheme == "sqlite":
        return None
    _refuse_unless_allowed(f"{own['module']}:{own['name']}")
    options = dict(parse_qsl(own["options"] or "", keep_blank_values=True))
    metadata = options.pop("metadata", "")
    if not metadata:
        raise UsageError(
            f"{url}: a storage keeps schemas alone; nothing says where namespaces, topics and policies are kept",
            fix=f"name a SQLite file for them: {own['module']}:{own['name']}?metadata=.schemactl/metadata.db",
        )
    storage = _own_storage(own["module"], own["name"], folder, options)
    path = _path(metadata, folder)
    return EmbeddedRegistry(path, storage=storage, url=url, release=release, defaults=defaults)


def _refuse_unless_allowed(storage: str) -> None:
    allowed = [each.strip() for each in os.environ.get(ALLOWED, "").split(",")]
    if storage not in allowed:
        raise RegistryError(
            f"the schema storage {storage} is code of its own, and nobody allowed it to run",
            fix=f"if you trust it, set {ALLOWED}={storage} where schemactl runs",
        )


def _path(text: str, folder: Path) -> str:
    """Where SQLite keeps the registry: no link that came with a repository leads there, nor to what SQLite puts beside it.

    Raises:
        SchemactlError: one does.
    """
    if text == MEMORY:
        return text
    top = top_of(str(folder))
    for beside in ("", "-journal", "-wal", "-shm"):
        refuse_links(folder / f"{text}{beside}", below=top)
    return str(folder / text)


def _own_storage(module: str, name: str, folder: Path, options: dict[str, str]) -> SchemaStorage:
    try:
        make = cast("Callable[..., SchemaStorage]", getattr(import_module(module), name))
    except (ImportError, AttributeError) as error:
        raise RegistryError(
            f"the schema storage {module}:{name} cannot be imported: {error}",
            fix="install its package beside schemactl, or put its folder on PYTHONPATH",
        ) from error
    try:
        return make(folder, **options)
    except TypeError as error:
        raise UsageError(
            f"the schema storage {module}:{name} does not take these options: {error}"
        ) from error
