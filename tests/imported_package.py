"""Packages that tests generate, imported for a while."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def import_package(folder: Path, package: str) -> Iterator[ModuleType]:
    """Import the package in that folder again, and unload it afterwards."""
    _forget(package)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(package)
    finally:
        sys.path.remove(str(folder))
        _forget(package)


def _forget(package: str) -> None:
    for name in [module_name for module_name in sys.modules if module_name.split(".")[0] == package]:
        del sys.modules[name]
