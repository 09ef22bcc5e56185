"""A user's class, imported as `python -m` would."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from schemactl.core.errors import SchemactlError, UsageError, did_you_mean


def name_of(kind: type) -> str:
    """Return the full name of a class, with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


def load_class(text: str, folder: str) -> type:
    """Return the class that `text` names as MODULE:CLASS. This runs the module, and what it imports.

    Args:
        text: `shop.models:Order`; `shop.models:Order.Line` for a class inside another.
        folder: where to look for the module before what is installed.

    Raises:
        UsageError: the text is not of that form.
        SchemactlError: there is no such module or class, or the module cannot be imported.
    """
    module_name, colon, path = text.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module_name.split("."), *path.split(".")))):
        raise UsageError(f"{text}: expected MODULE:CLASS, such as shop.models:Order")
    found: Any = load_module(module_name, folder)
    for part in path.split("."):
        if not hasattr(found, part):
            classes = {name: value for name, value in vars(found).items() if isinstance(value, type)}
            # A module that only passes on others' classes has none of its own.
            own = [name for name, value in classes.items() if value.__module__ == module_name] or classes
            raise SchemactlError(
                f"{found.__name__} has no class {part}{did_you_mean(part, classes)}",
                fix=f"name one of {', '.join(sorted(own))}" if own else "name a module that defines classes",
            )
        found = getattr(found, part)
    if not isinstance(found, type):
        raise SchemactlError(
            f"{text} is not a class, but a value of type {type(found).__name__}", fix="name a class"
        )
    return found


def load_module(name: str, folder: str) -> Any:
    """Return the module of that name, imported. For `folder` and what is raised see `load_class`."""
    with _looking_in(folder), redirect_stdout(sys.stderr):
        try:
            return importlib.import_module(name)
        except KeyboardInterrupt:
            raise
        # A module may do anything, and leave by sys.exit.
        except BaseException as error:  # noqa: BLE001
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and (name == missing or name.startswith(f"{missing}.")):
                raise SchemactlError(
                    f"there is no module {missing}, neither in {folder} nor installed beside schemactl",
                    fix="start in the folder that the module's name begins in, or install its package here",
                ) from None
            place = _place(error, folder)
            at = f"{place}: " if place else ""
            last = traceback.format_exception_only(error)[-1].strip()
            raise SchemactlError(
                f"{at}{name} cannot be imported: {last}", fix="repair the module, or install what it needs"
            ) from None


@contextmanager
def _looking_in(folder: str) -> Iterator[None]:
    before = [*sys.path]
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _place(error: BaseException, folder: str) -> str:
    """Return the file and line that failed, of the user's own files if there is one; "": unknown."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
    own = [each for each in frames if Path(folder) in Path(each.filename).parents]
    own = [each for each in own if "site-packages" not in each.filename] or frames[1:]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""
