"""Recursion as deep as the data, kept on the heap.

Definitions come from strangers, and a chain of references can be as long as the text. A recursive function is
written as a generator that yields the call it needs and gets its result back: `child = yield walk(node.items)`.
Where every step counts it is a plain function, and called again with `room` where Python's limit is too low for it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, TypeVar

T = TypeVar("T")

Deep = Generator["Deep[Any]", Any, T]
"""A call that has not run yet and will return a T."""


def run(call: Deep[T]) -> T:
    """What `call` returns. An exception raised in it comes out here; the calls around it do not see it."""
    stack: list[Deep[Any]] = [call]
    result: Any = None
    while stack:
        try:
            inner = stack[-1].send(result)
        except StopIteration as finished:
            stack.pop()
            result = finished.value
        else:
            stack.append(inner)
            result = None
    return result  # type: ignore[no-any-return]


@contextmanager
def room(frames: int) -> Iterator[None]:
    """Lets Python functions call each other `frames` deep: their frames are on the heap, Python's limit is all there is."""
    with _one_at_a_time:
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(usual + frames)
        try:
            yield
        finally:
            sys.setrecursionlimit(usual)


_one_at_a_time: Final = Lock()
