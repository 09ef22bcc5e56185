"""The releases of Pulsar whose answers are predicted."""

from __future__ import annotations

from enum import StrEnum

_MOST_DIGITS = 64


class Release(StrEnum):
    """The Pulsar releases whose answers are predicted; another one is read as the nearest lower."""

    R4_0 = "4.0"
    R4_2 = "4.2"
    R5_0 = "5.0"

    @classmethod
    def nearest(cls, version: str) -> Release | None:
        """Return the newest of these that is not newer than `version`; None: that is no release, or older than all."""
        parts = version.split(".")[:2]
        if not all(part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts):
            return None
        wanted = tuple(map(int, parts))
        known = [release for release in cls if tuple(map(int, release.split("."))) <= wanted]
        return known[-1] if known else None
