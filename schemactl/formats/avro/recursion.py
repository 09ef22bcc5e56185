"""Recursion of any depth, with its stack on the heap.

Definitions come from strangers, and a chain of references can be as long as the text. A recursive function is
written as a generator that yields the call it needs and gets its result back: `child = yield walk(node.items)`.
Where every step counts a function returns its result at once, and such a generator only where other parts are inside.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

Deep = Generator["Deep[Any]", Any, T]
"""A call that has not run yet and will return a T."""


def gather(calls: Iterable[Deep[T]]) -> Deep[list[T]]:
    """Return what each of `calls` returns; one is made when the one before it has ended."""
    results: list[T] = []
    for call in calls:
        result = yield call
        results.append(result)
    return results


def run(call: Deep[T]) -> T:
    """Return what `call` returns. An exception raised in it comes out here; the calls around it do not see it."""
    around: list[Any] = []
    send, result = call.send, None
    while True:
        try:
            inner = send(result)
        except StopIteration as finished:
            result = finished.value
            if not around:
                return result  # type: ignore[no-any-return]
            send = around.pop()
        else:
            around.append(send)
            send, result = inner.send, None
