"""Parse the `registry` URL of a target."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from schemactl.core.errors import find_close_match

_STORAGE = re.compile(r"(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)(?:\?(?P<options>.*))?", re.ASCII)
_SCHEMES = ("https", "http", "sqlite", "memory")
_EXAMPLES = 'write "sqlite:.schemactl/registry.db" or "https://HOST:PORT"'


HostPort = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RegistryUrl:
    """A parsed registry URL.

    Attributes:
        kind: a Pulsar cluster's admin API, an SQLite file, a registry in memory, or the user's own schema storage.
        addresses: every `scheme://host:port[/prefix]` of a cluster, without a trailing slash.
        path: the SQLite file; for a storage, the file for everything except schemas, or "".
        storage: `module:Class` of the storage.
        options: the other parameters of the storage.
    """

    kind: Literal["pulsar", "sqlite", "memory", "storage"]
    addresses: tuple[str, ...] = ()
    path: str = ""
    storage: str = ""
    options: dict[str, str] = field(default_factory=dict)


def parse(url: str) -> RegistryUrl:
    """Parse a registry URL.

    Raises:
        ValueError: if the URL is not valid; its arguments are the problem and the fix.
    """
    scheme, separator, rest = url.partition(":")
    if scheme in ("http", "https"):
        return RegistryUrl("pulsar", addresses=_parse_addresses(url))
    if scheme == "sqlite" and rest.strip():
        return RegistryUrl("sqlite", path=rest)
    if url == "memory:":
        return RegistryUrl("memory")
    if scheme in ("pulsar", "pulsar+ssl"):
        raise ValueError(
            f"`{url[:60]}` is the address for Pulsar's clients, not of its admin API", "write https://HOST:PORT"
        )
    storage = _STORAGE.fullmatch(url)
    if storage and scheme != "sqlite":
        options = dict(parse_qsl(storage["options"] or "", keep_blank_values=True))
        return RegistryUrl("storage", path=options.pop("metadata", ""), storage=storage["name"], options=options)
    suggestion = find_close_match(scheme, _SCHEMES)
    advice = f"did you mean `{suggestion}:`?" if suggestion and separator and suggestion != scheme else _EXAMPLES
    raise ValueError(f"`{url[:60]}` is not a registry URL", advice)


def split_addresses(url: str) -> tuple[str, ...]:
    """Split the addresses of a cluster; `https://a:1,b:2` is short for `https://a:1,https://b:2`."""
    first, *others = [part.strip().rstrip("/") for part in url.split(",")]
    scheme = first.partition("://")[0]
    return (first, *(other if "://" in other else f"{scheme}://{other}" for other in others if other))


def parse_address(url: str) -> HostPort:
    """Return the host and port of an address; raise ValueError if it is not valid."""
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def _parse_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses of a cluster's admin API; raise ValueError if one is not valid."""
    if "@" in url:
        raise ValueError(
            "a registry's URL must not contain a password: this file is in Git", "use token_env or token_file"
        )
    addresses = split_addresses(url)
    for address in addresses:
        try:
            parts = urlsplit(address)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ValueError(f"`{address[:60]}` is not an address of an admin API", "write https://HOST:PORT")
    return addresses
