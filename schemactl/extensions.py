"""Entry points of other installed packages; each group is looked up once."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoints, entry_points


@cache  # every installed package is looked at
def of_other_packages(group: str) -> EntryPoints:
    """Return the entry points of `group`."""
    return entry_points(group=group)
