"""Recursion as deep as the data, kept on the heap.

Definitions come from strangers, and a chain of references can be as long as the text. A recursive function is
written as a generator that yields the call it needs and gets its result back: `child = yield walk(node.items)`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

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
