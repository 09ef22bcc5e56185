"""The pages of the documentation: in a wheel they are part of the package, and in a checkout in docs/."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def find_documentation() -> Path:
    """Return the folder of the pages."""
    in_wheel = Path(__file__).parents[1] / "_docs"
    return in_wheel if in_wheel.is_dir() else Path(__file__).parents[2] / "docs"
