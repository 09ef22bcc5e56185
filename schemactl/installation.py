"""The name and version of the installed distribution."""

from __future__ import annotations

from typing import Final

DISTRIBUTION: Final = "pulsar-schemactl"
"""What installers call it; the package and the command are `schemactl`."""

OTHER: Final = "schemactl"
"""A distribution that has nothing to do with this one, with a package and a command of the same names."""


def version() -> str:
    """Return the version of this installation."""
    from importlib import metadata

    return metadata.version(DISTRIBUTION)


def is_shared() -> bool:
    """Return whether the other distribution is installed here, too: each has written over files of the other."""
    from importlib import metadata

    try:
        metadata.distribution(OTHER)
    except metadata.PackageNotFoundError:
        return False
    return True


def home() -> str:
    """Return the address where the project is at home, as the distribution says; "": it says none."""
    from importlib import metadata

    addresses = metadata.metadata(DISTRIBUTION).get_all("Project-URL") or []
    found = dict(each.split(", ", 1) for each in addresses)
    return found.get("Documentation") or found.get("Homepage") or ""
