"""Read pickled values of listed classes only, so that a forged file of the cache cannot run code."""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from typing import Any


def loads(content: bytes | memoryview, classes: Collection[type] = ()) -> Any:
    """Read a pickled value that consists of built-in values and instances of `classes`.

    Raises:
        pickle.UnpicklingError: if the content names anything else, or is damaged.
    """
    try:
        return _Unpickler(content, classes).load()
    except (EOFError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise pickle.UnpicklingError(str(error)) from error


class _Unpickler(pickle.Unpickler):
    """An unpickler that finds only listed classes (see "Restricting Globals" in the documentation of `pickle`)."""

    def __init__(self, content: bytes | memoryview, classes: Collection[type]) -> None:
        super().__init__(io.BytesIO(content))
        self._classes = {(class_.__module__, class_.__qualname__): class_ for class_ in classes}

    def find_class(self, module: str, name: str) -> type:
        """Return the listed class of this name."""
        class_ = self._classes.get((module, name))
        if class_ is None:
            raise pickle.UnpicklingError(f"{module}.{name} is not a listed class")
        return class_
