"""Packages that tests generate, imported for a while."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def imported(folder: Path, package: str) -> Iterator[ModuleType]:
    """The package in that folder, imported anew; afterwards nothing of it is left."""
    _forget(package)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(package)
    finally:
        sys.path.remove(str(folder))
        _forget(package)


def _forget(package: str) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == package]:
        del sys.modules[name]
