"""The order in which fields of several writers' records are read, so that equal parts are read together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import lru_cache

from . import resolver
from .schema import FixedType

Schedule = tuple[tuple[tuple[int, ...], int], ...]
"""For each turn, the writers that take it, and which of its fields the first of them reads."""


@lru_cache(maxsize=256)
def schedule(signatures: tuple[tuple[Hashable, ...], ...]) -> Schedule:
    """Return turns for every field of every writer, in its order; fields of equal signature share one where that can be.

    `signatures` are those of each writer's fields.
    """
    at = [0] * len(signatures)
    left = [Counter(fields) for fields in signatures]
    turns: list[tuple[tuple[int, ...], int]] = []
    while True:
        heads: dict[Hashable, list[int]] = {}
        for writer, fields in enumerate(signatures):
            if at[writer] < len(fields):
                heads.setdefault(fields[at[writer]], []).append(writer)
        if not heads:
            return tuple(turns)
        # A field that another writer has further down is worth waiting for.
        ready = [
            head
            for head, writers in heads.items()
            if not any(left[other][head] for other in range(len(left)) if other not in writers)
        ]
        chosen = max(ready or heads, key=lambda head: len(heads[head]))
        writers = heads[chosen]
        turns.append((tuple(writers), at[writers[0]]))
        for writer in writers:
            at[writer] += 1
            left[writer][chosen] -= 1


def signature(step: resolver.Step) -> Hashable:
    """Return a value that is equal for two fields that are read alike, into one field of one reader.

    A recursive one, or one of very many records in one another, is equal to no other.
    """
    try:
        return _step(step, ())
    except _Recursive:
        return object()


_DEEP = 32


class _Recursive(Exception):
    """A record holds itself, or may as well."""


def _step(step: resolver.Step, around: tuple[int, ...]) -> Hashable:
    return None if step.is_skipped else step.name, _action(step.action, around)


def _action(action: resolver.Action, around: tuple[int, ...]) -> Hashable:
    match action:
        case resolver.ErrorAction():
            return "failed"
        case resolver.Promote():
            writer = action.writer
            return writer.type, writer.size if isinstance(writer, FixedType) else None
        case resolver.EnumAdjust():
            return action.table
        case resolver.Container():
            return action.writer.type, _action(action.action, around)
        case resolver.WriterUnion():
            return "union", tuple(_action(branch, around) for branch in action.branches)
        case resolver.ReaderUnion():
            return "chosen", action.index, _action(action.action, around)
        case resolver.RecordAdjust():
            if id(action) in around or len(around) > _DEEP:
                raise _Recursive
            inner = (*around, id(action))
            steps = tuple(_step(step, inner) for step in action.steps)
            return "record", steps, tuple(part.name for part in action.defaults)
