"""The symbols of a resolving grammar, and the search for errors in them (Symbol.flatten and Symbol.hasErrors)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from schemactl.formats.avro.schema import JavaException, out_of_memory, run_recursion, stack_overflow

MAX_SYMBOLS: Final = 20_000_000
"""The number of symbols in a flattened grammar, copies included, that is assumed to exhaust a broker's memory."""

_HARMLESS: Final = object()
"""A symbol of a production that cannot fail."""


class Mark(Enum):
    """A symbol without parts that can fail."""

    ERROR = "the reader can read no value of the writer here (Java's ErrorAction)"
    MISSING_SYMBOL = "the reader lacks an enum symbol of the writer; Java throws only when it reads the symbol"
    HOLE = "Java has not flattened a skipped part completely, and throws on skipping it"


@dataclass(slots=True, eq=False)
class Sequence:
    """A record.

    Attributes:
        parts: the symbols of its fields, in order.
        complete: whether all fields are resolved.
        abandoned: whether the record turned out to be unreadable; symbols of other records may already refer to it.
    """

    parts: list[Symbol]
    complete: bool = False
    abandoned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Repeater:
    """An array or map of `part`."""

    part: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """The branches of a union, or the single chosen branch (Java's UnionAdjustAction)."""

    parts: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """A value that only the writer has. It is flattened like every symbol, but not searched for errors."""

    part: Symbol


Symbol = Sequence | Repeater | Alternative | Skip | Mark
"""A part of a grammar. Functions return None instead of a symbol that cannot fail."""


def make_repeater(part: Symbol | None) -> Symbol | None:
    """Return the symbol of an array or map of `part`."""
    return None if part is None else Repeater(part)


def make_alternative(parts: Iterable[Symbol | None]) -> Symbol | None:
    """Return the symbol of a union of `parts`."""
    failing_parts = tuple(part for part in parts if part is not None)
    return Alternative(failing_parts) if failing_parts else None


def find_marks(root: Symbol | None, *, has_recursion: bool) -> frozenset[Mark]:
    """Return the marks in a grammar. If Java stops at an error symbol, marks after ERROR may be missing.

    Args:
        root: the symbol of the whole schema.
        has_recursion: whether a record in the grammar contains itself.

    Raises:
        JavaException: if Java throws while it generates, flattens or searches the grammar.
    """
    if root is None:
        return frozenset()
    if has_recursion:
        sequences = _list_sequences(root)
        if any(sequence.abandoned for sequence in sequences):  # Java throws already on generating the grammar
            raise JavaException("NullPointerException")
        # Unless a field is itself a record, no production is copied, so none can have holes.
        if any(isinstance(part, Sequence) for sequence in sequences for part in sequence.parts):
            return _find_flattened_marks(run_recursion(lambda: _Flattening(root, sequences).flatten()))
    return frozenset(symbol for symbol in _walk(root, into_skipped=False) if isinstance(symbol, Mark))


def check_layout(root: Symbol) -> None:
    """Check that Java can flatten the grammar.

    Raises:
        JavaException: StackOverflowError if a record must contain itself.
    """
    _production_sizes(_list_sequences(root))


def _list_sequences(root: Symbol) -> list[Sequence]:
    return [symbol for symbol in _walk(root, into_skipped=True) if isinstance(symbol, Sequence)]


def _walk(root: Symbol, *, into_skipped: bool) -> Iterator[Symbol]:
    """Yield every symbol that is reached from `root`, and each record once."""
    visited: set[Sequence] = set()
    pending = [root]
    while pending:
        symbol = pending.pop()
        if isinstance(symbol, Sequence):
            if symbol in visited:
                continue
            visited.add(symbol)
        yield symbol
        match symbol:
            case Sequence() | Alternative():
                pending += symbol.parts
            case Repeater():
                pending.append(symbol.part)
            case Skip() if into_skipped:
                pending.append(symbol.part)


def _production_sizes(sequences: list[Sequence]) -> dict[Sequence, int]:
    """Map each record to the number of symbols in its production, including the copies of records in its fields.

    Raises:
        JavaException: StackOverflowError if a record must contain itself.
    """
    inner = {sequence: [part for part in sequence.parts if isinstance(part, Sequence)] for sequence in sequences}
    sizes: dict[Sequence, int] = {}
    try:
        for sequence in TopologicalSorter(inner).static_order():
            other_parts = len(sequence.parts) - len(inner[sequence]) + 1
            sizes[sequence] = other_parts + sum(sizes[part] for part in inner[sequence])
    except CycleError:
        raise stack_overflow() from None
    return sizes


@dataclass(frozen=True, slots=True)
class _Skipped:
    """A flattened symbol that is not searched for errors."""

    symbol: Any


Production = list[Any]
"""Flattened symbols: marks, harmless and skipped symbols, inner productions, and None for a hole: a copy that was never made."""


class _Flattening:
    """One run of Symbol.flatten.

    Every record gets one production, into which the productions of the records in its fields are copied. The symbols of an
    unfinished record cannot be copied yet: their position is recorded and filled when the record is finished. Java overlooks
    that the symbols it fills in may contain unfilled positions themselves.
    """

    def __init__(self, root: Symbol, sequences: list[Sequence]) -> None:
        self._root = root
        self._sizes = _production_sizes(sequences)
        self._symbol_count = 0
        self._productions: dict[Sequence, Production] = {}
        # By unfinished record: the positions in other productions that wait for its symbols.
        self._unfinished: dict[Sequence, list[tuple[Production, int]]] = {}

    def flatten(self) -> Production:
        """Return the production of the start symbol."""
        production = self._new_production(self._root)
        self._fill(production, [self._root])
        return production

    def _new_production(self, symbol: Symbol) -> Production:
        size = self._size(symbol)
        self._symbol_count += size
        if self._symbol_count > MAX_SYMBOLS:
            raise out_of_memory()
        return [None] * size

    def _size(self, symbol: Symbol | object) -> int:
        return self._sizes[symbol] if isinstance(symbol, Sequence) else 1

    def _fill(self, production: Production, symbols: Iterable[Symbol | object]) -> None:
        position = 0
        for symbol in symbols:
            flat = self._flatten(symbol)
            if not isinstance(symbol, Sequence):
                production[position] = flat
            elif symbol in self._unfinished:
                self._unfinished[symbol].append((production, position))
            else:
                production[position : position + len(flat)] = flat
                for waiting in self._unfinished.values():
                    waiting += [(production, position + offset) for target, offset in waiting if target is flat]
            position += self._size(symbol)

    def _flatten(self, symbol: Symbol | object) -> Any:
        match symbol:
            case Sequence():
                if symbol not in self._productions:
                    self._productions[symbol] = production = self._new_production(symbol)
                    self._unfinished[symbol] = []
                    # Java keeps productions in reverse.
                    self._fill(production, [*reversed(symbol.parts), _HARMLESS])
                    for target, position in self._unfinished.pop(symbol):
                        target[position : position + len(production)] = production
                return self._productions[symbol]
            case Repeater(part):
                production = self._new_production(part)
                self._fill(production, [part])
                return production
            case Alternative(parts):
                return [self._flatten(part) for part in parts]
            case Skip(part):
                return _Skipped(self._flatten(part))
            case _:
                return symbol


def _find_flattened_marks(root: Production) -> frozenset[Mark]:
    """Return the marks that Symbol.hasErrors visits, and HOLE if a skipped symbol has a hole.

    Raises:
        JavaException: NullPointerException if Symbol.hasErrors visits a hole.
    """
    marks = set()
    for symbol in _search(root, into_skipped=False):
        if symbol is None:
            raise JavaException("NullPointerException")
        if isinstance(symbol, Mark):
            marks.add(symbol)
            if symbol is Mark.ERROR:
                return frozenset(marks)
    if None in _search(root, into_skipped=True):
        marks.add(Mark.HOLE)
    return frozenset(marks)


def _search(root: Production, *, into_skipped: bool) -> Iterator[Any]:
    """Yield every symbol of `root` without parts, depth first like Java."""
    visited: set[int] = set()
    pending: list[Any] = [root]
    while pending:
        symbol = pending.pop()
        if isinstance(symbol, _Skipped):
            if into_skipped:
                pending.append(symbol.symbol)
        elif not isinstance(symbol, list):
            yield symbol
        elif id(symbol) not in visited:
            visited.add(id(symbol))
            pending += reversed(symbol)
