"""The symbols of a resolving grammar, and Java's Symbol.hasErrors (org.apache.avro.io.parsing.Symbol).

Only what decides is kept of a grammar: error symbols, and what leads to them. Where records lead back to themselves, order
counts as well: Java first flattens the grammar, copying the productions of records into one another, and where two records are
in the making at once some copies are never completed. It then throws, even for a schema that is compared to itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from schemactl.formats.avro.java import JavaException, out_of_memory, stack_overflow
from schemactl.formats.avro.recursion import Deep, gather, run

MAX_SYMBOLS: Final = 20_000_000
"""A grammar of more symbols than these, copies counted, is taken to exhaust the memory of a broker."""


class Mark(Enum):
    """A symbol without parts that is not harmless."""

    ERROR = "nothing that the writer writes here can be read (Java's ErrorAction)"
    MISSING_SYMBOL = (
        "the reader cannot take one of the writer's enum symbols, which Java notices on reading it only"
    )
    HOLE = "Java has not laid out completely what the reader skips, and throws on skipping it"


@dataclass(slots=True, eq=False)
class Sequence:
    """A record.

    Attributes:
        parts: of its fields, in order.
        complete: False as long as fields are still being resolved.
        abandoned: it cannot be read. Other records may have taken hold of it before that was known.
    """

    parts: list[Symbol]
    complete: bool = False
    abandoned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Repeater:
    """What is repeated in an array or map."""

    part: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """The branches of a union, or the one chosen from it (Java's UnionAdjustAction)."""

    parts: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """What is read and dropped. Flattened like everything else, but not searched."""

    part: Symbol


Symbol = Sequence | Repeater | Alternative | Skip | Mark
"""A part of a grammar. Where nothing can go wrong there is none: functions return None."""


def repeater(part: Symbol | None) -> Symbol | None:
    """Return an array or map of `part`."""
    return None if part is None else Repeater(part)


def alternative(parts: Iterable[Symbol | None]) -> Symbol | None:
    """Return a union of `parts`."""
    kept = tuple(part for part in parts if part is not None)
    return Alternative(kept) if kept else None


def marks(root: Symbol | None, *, recursive: bool) -> frozenset[Mark]:
    """Return the marks in a grammar; where Java stops at an error symbol, at least ERROR.

    `recursive`: some record in it leads back to itself.

    Raises:
        JavaException: Java throws while it generates, flattens or searches the grammar.
    """
    if root is None:
        return frozenset()
    if recursive:
        sequences = _sequences(root)
        if any(sequence.abandoned for sequence in sequences):  # met already when the grammar is generated
            raise JavaException("NullPointerException")
        # As long as no field is itself a record, no production is copied that could have holes.
        if any(isinstance(part, Sequence) for sequence in sequences for part in sequence.parts):
            return _marks_in(_Flattening(root, sequences).production())
    return frozenset(symbol for symbol in _walk(root, into_skipped=False) if isinstance(symbol, Mark))


def check_layout(root: Symbol) -> None:
    """Raise JavaException if Java cannot lay out the grammar.

    Raises:
        JavaException: StackOverflowError, where a record must contain itself.
    """
    _production_sizes(_sequences(root))


def _parts(symbol: Symbol) -> Iterable[Symbol]:
    match symbol:
        case Sequence() | Alternative():
            return symbol.parts
        case Repeater() | Skip():
            return (symbol.part,)
        case _:
            return ()


def _sequences(root: Symbol) -> list[Sequence]:
    """Every record's symbol in the grammar."""
    return [symbol for symbol in _walk(root, into_skipped=True) if isinstance(symbol, Sequence)]


def _walk(root: Symbol, *, into_skipped: bool) -> Iterator[Symbol]:
    """Every symbol that is reached from `root`, records once each."""
    seen: set[Sequence] = set()
    pending = [root]
    while pending:
        symbol = pending.pop()
        if isinstance(symbol, Sequence):
            if symbol in seen:
                continue
            seen.add(symbol)
        yield symbol
        if into_skipped or not isinstance(symbol, Skip):
            pending += _parts(symbol)


@dataclass(frozen=True, slots=True)
class _Skipped:
    """A flattened symbol that is not searched for errors."""

    symbol: Any


_HARMLESS: Final = object()
"""In a production: any symbol that is left out of the grammar here."""

Production = list[Any]
"""Flattened symbols: marks, harmless and skipped ones, inner productions, and None for holes: copies that were never made."""


class _Flattening:
    """Symbol.flatten.

    Every record gets one production, into which those of the records in its fields are copied. A record in the making has
    no symbols to copy yet: the place is noted, and filled when it is finished. What Java misses: symbols that are filled in
    this way may have such places themselves.
    """

    def __init__(self, root: Symbol, sequences: list[Sequence]) -> None:
        self._root = root
        self._sizes = _production_sizes(sequences)
        self._symbols = 0
        self._productions: dict[Sequence, Production] = {}
        # Records in the making: where they are awaited.
        self._open: dict[Sequence, list[tuple[Production, int]]] = {}

    def production(self) -> Production:
        """Return the production of the start symbol."""
        production = self._new_production(self._root)
        run(self._fill(production, [self._root]))
        return production

    def _new_production(self, symbol: Symbol) -> Production:
        size = self._size(symbol)
        self._symbols += size
        if self._symbols > MAX_SYMBOLS:
            raise out_of_memory()
        return [None] * size

    def _size(self, symbol: Symbol | object) -> int:
        return self._sizes[symbol] if isinstance(symbol, Sequence) else 1

    def _fill(self, production: Production, symbols: Iterable[Symbol | object]) -> Deep[None]:
        place = 0
        for symbol in symbols:
            flat = yield self._flat(symbol)
            if not isinstance(symbol, Sequence):
                production[place] = flat
            elif symbol in self._open:
                self._open[symbol].append((production, place))
            else:
                production[place : place + len(flat)] = flat
                for awaited in self._open.values():
                    awaited += [(production, place + there) for target, there in awaited if target is flat]
            place += self._size(symbol)

    def _flat(self, symbol: Symbol | object) -> Deep[Any]:
        match symbol:
            case Sequence():
                if symbol not in self._productions:
                    yield self._flatten(symbol)
                return self._productions[symbol]
            case Repeater(part):
                production = self._new_production(part)
                yield self._fill(production, [part])
                return production
            case Alternative(parts):
                return (yield gather(map(self._flat, parts)))
            case Skip(part):
                return _Skipped((yield self._flat(part)))
            case _:
                return symbol

    def _flatten(self, symbol: Sequence) -> Deep[None]:
        self._productions[symbol] = production = self._new_production(symbol)
        self._open[symbol] = []
        # Java keeps productions in reverse.
        yield self._fill(production, [*reversed(symbol.parts), _HARMLESS])
        for target, place in self._open.pop(symbol):
            target[place : place + len(production)] = production


def _production_sizes(sequences: list[Sequence]) -> dict[Sequence, int]:
    """How many symbols each record's production will have, those of the records in its fields included."""
    inner = {
        sequence: [part for part in sequence.parts if isinstance(part, Sequence)] for sequence in sequences
    }
    sizes: dict[Sequence, int] = {}
    try:
        for sequence in TopologicalSorter(inner).static_order():
            others = len(sequence.parts) - len(inner[sequence]) + 1
            sizes[sequence] = others + sum(sizes[part] for part in inner[sequence])
    except CycleError:  # a record must contain itself
        raise stack_overflow() from None
    return sizes


def _marks_in(root: Production) -> frozenset[Mark]:
    """Return what Symbol.hasErrors meets, and whether anything skipped has a hole.

    Raises:
        JavaException: NullPointerException on a hole.
    """
    found = set()
    for symbol in _search(root, into_skipped=False):
        if symbol is None:
            raise JavaException("NullPointerException")
        if isinstance(symbol, Mark):
            found.add(symbol)
            if symbol is Mark.ERROR:
                return frozenset(found)
    if None in _search(root, into_skipped=True):
        found.add(Mark.HOLE)
    return frozenset(found)


def _search(root: Production, *, into_skipped: bool) -> Iterator[Any]:
    """Every symbol in `root` that has no parts, depth first, as Java goes."""
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
