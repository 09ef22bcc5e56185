"""The comparison of two StructTypes: what a table of the first needs before it can take rows of the second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import Final, Literal

from schemactl.codegen import spark_types as spark
from schemactl.codegen.spark_types import Atomic, Decimal, SparkArray, SparkField, SparkMap, SparkType, Struct
from schemactl.codegen.topic_struct import Path

Effect = Literal[
    "rewrite", "type widened", "renamed column", "added column", "column no longer written", "may be null"
]

_OF_TYPES: Final[tuple[Effect, ...]] = ("rewrite", "type widened")
"""What happens to a column for its type, the graver first."""

_SHOWN: Final = 60
"""Of a type's text."""

_WHOLE: Final[dict[str, int]] = {"byte": 1, "short": 2, "integer": 3, "long": 4}
"""The whole numbers, each wider than those before."""

_DIGITS: Final[dict[str, int]] = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""How many digits before the point a decimal must have to take them; a byte lies in a file as an integer does."""

_OTHERS: Final = frozenset(
    {
        *((Atomic(name), spark.DOUBLE) for name in ("byte", "short", "integer", "float")),
        (spark.DATE, spark.TIMESTAMP_NTZ),
    }
)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What becomes of one column.

    Attributes:
        path: of the column as it is now, or was last if it is gone; see `Path`.
        before: its type, as SQL has it; "" for an added one. `after`: "" for one that is gone.
        former: the path that it had, if that was another.
        successor: of a column whose name another one had in older rows, the path of that other.
    """

    effect: Effect
    path: Path
    before: str
    after: str
    former: Path = ()
    successor: Path = ()

    @property
    def column(self) -> str:
        """The path for people: `address.zip`, `items.element.sku`."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Past:
    """What tables have besides the rows of the old columns.

    Attributes:
        structs: of older rows, the newest first.
        former_names: of the old columns.
    """

    structs: Sequence[Struct]
    former_names: Mapping[Path, Sequence[str]]


_NOTHING: Final = Past((), {})


def changes(
    old: Struct,
    new: Struct,
    former_names: Mapping[Path, Sequence[str]],
    past: Callable[[], Past] = lambda: _NOTHING,
) -> tuple[ColumnChange, ...]:
    """Return what is different, in the order of the new columns, those that are gone last; () if tables stay as they are.

    Columns are found by their names as Spark finds them, without regard to case; their order does not count.

    Args:
        old: of the rows that tables have.
        new: of the rows that they get.
        former_names: of the new columns.
        past: asked for where a column comes that the old ones lack.
    """
    return tuple(_StructComparison(former_names, past).structs((), (), old, new))


class _StructComparison:
    def __init__(
        self, former_names: Mapping[Path, Sequence[str]], past: Callable[[], Past] = lambda: _NOTHING
    ) -> None:
        self._former_names = former_names
        self._past = cache(past)
        # Asked for once a struct, which may have thousands of columns.
        self._older_types = cache(self._older_types_at)

    def structs(self, was: Path, at: Path, old: Struct, new: Struct) -> Iterator[ColumnChange]:
        """Yield what is different between the struct at `was` and what it has become, at `at`."""
        fold = _fold(old, new)
        left = {fold(field.name): field for field in old.fields}
        pairs = [(field, left.pop(fold(field.name), None)) for field in new.fields]
        for field, same in pairs:
            path = (*at, field.name)
            before = same or self._renamed(map(fold, self._former_names.get(path, ())), left)
            if before is None:
                yield from self._added(was, path, field)
                continue
            former = (*was, before.name)
            if same is None:
                yield ColumnChange("renamed column", path, sql(before.type), sql(field.type), former)
            yield from self.types(former, path, before.type, field.type)
            if field.nullable and not before.nullable:
                yield ColumnChange("may be null", path, sql(before.type), sql(field.type))
        for field in left.values():
            yield ColumnChange("column no longer written", (*was, field.name), sql(field.type), "")

    def _added(self, was: Path, path: Path, field: SparkField) -> Iterator[ColumnChange]:
        """Yield a column that the struct at `was` lacks. Rows that are older yet may have one under that name."""
        name = field.name.casefold()
        successor = self._successors.get((was, name))
        if successor is not None:
            yield ColumnChange("rewrite", path, "", sql(field.type), successor=successor)
            return
        found: list[ColumnChange] = []
        for types in self._older_types(was):
            if name in types:
                found += _StructComparison({}).types(path, path, types[name], field.type)
        worst = next((effect for effect in _OF_TYPES if any(each.effect == effect for each in found)), None)
        if worst is None:
            yield ColumnChange("added column", path, "", sql(field.type))
        yield from dict.fromkeys(each for each in found if each.effect == worst)

    @cached_property
    def _successors(self) -> dict[tuple[Path, str], Path]:
        """By the struct and the name that a column had there before, where it is now."""
        names = self._past().former_names
        return {(path[:-1], name.casefold()): path for path in names for name in names[path]}

    def _older_types_at(self, was: Path) -> list[dict[str, SparkType]]:
        """Return the columns that older rows have in the struct there."""
        structs = [_inside(struct, was) for struct in self._past().structs]
        return [
            {field.name.casefold(): field.type for field in struct.fields}
            for struct in structs
            if isinstance(struct, Struct)
        ]

    def _renamed(self, names: Iterable[str], left: dict[str, SparkField]) -> SparkField | None:
        """Return the column that is called otherwise now, taken from those that are left."""
        return next((left.pop(name) for name in names if name in left), None)

    def types(self, was: Path, at: Path, old: SparkType, new: SparkType) -> Iterator[ColumnChange]:
        """Yield what is different between the type of the column at `was` and that of what it has become, at `at`."""
        match old, new:
            case Struct(), Struct():
                yield from self.structs(was, at, old, new)
            case SparkArray(), SparkArray():
                yield from self._insides(was, at, "element", old.element, new.element)
                if new.contains_null and not old.contains_null:
                    yield ColumnChange("may be null", (*at, "element"), sql(old.element), sql(new.element))
            case SparkMap(), SparkMap():
                yield from self._insides(was, at, "key", old.key, new.key)
                yield from self._insides(was, at, "value", old.value, new.value)
                if new.value_contains_null and not old.value_contains_null:
                    yield ColumnChange("may be null", (*at, "value"), sql(old.value), sql(new.value))
            case _ if old != new:
                effect: Effect = "type widened" if widens(old, new) else "rewrite"
                yield ColumnChange(effect, at, sql(old), sql(new))

    def _insides(
        self, was: Path, at: Path, name: str, old: SparkType, new: SparkType
    ) -> Iterator[ColumnChange]:
        yield from self.types((*was, name), (*at, name), old, new)


def _inside(spark_type: SparkType | None, path: Path) -> SparkType | None:
    """Return the type of the column there; None: there is none."""
    for name in path:
        match spark_type:
            case Struct(fields):
                fold = name.casefold()
                spark_type = next((each.type for each in fields if each.name.casefold() == fold), None)
            case SparkArray(element) if name == "element":
                spark_type = element
            case SparkMap(value, key=key) if name in ("key", "value"):
                spark_type = key if name == "key" else value
            case _:
                return None
    return spark_type


def _fold(*structs: Struct) -> Callable[[str], str]:
    """Return what makes the same of names that are the same: case counts only where names of a struct differ in nothing else."""
    names = [[field.name.casefold() for field in struct.fields] for struct in structs]
    return str.casefold if all(len(set(each)) == len(each) for each in names) else str


def sql(spark_type: SparkType) -> str:
    """Return the type as SQL has it; of a long one the beginning."""
    # No more pieces than can be shown: a struct may hold thousands, each of them as many.
    text = "".join(islice(_sql(spark_type), _SHOWN + 1))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _sql(spark_type: SparkType) -> Iterator[str]:
    """Yield the pieces of the text."""
    match spark_type:
        case Atomic(name):
            yield spark.SQL_NAMES.get(name, name)
        case Decimal(precision, scale):
            yield f"decimal({precision},{scale})"
        case SparkArray(element):
            yield "array<"
            yield from _sql(element)
            yield ">"
        case SparkMap(value, key=key):
            yield "map<"
            yield from _sql(key)
            yield ","
            yield from _sql(value)
            yield ">"
        case Struct(fields):
            yield "struct<"
            for number, field in enumerate(fields):
                yield f"{',' if number else ''}{field.name}:"
                yield from _sql(field.type)
            yield ">"


def widens(old: SparkType, new: SparkType) -> bool:
    """Return whether `new` holds every value of `old`, and a file with `old` is read as `new`.

    Spark's Parquet reader and Delta's type widening agree on these (ParquetVectorUpdaterFactory; delta.enableTypeWidening). The rest is
    refused by both, or its bits are taken for something else, with two exceptions that only the Parquet reader knows: text and
    bytes, and timestamps with and without zone.
    """
    match old, new:
        case Decimal(), Decimal():
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case Atomic(), Decimal():
            return old.name in _DIGITS and new.precision - new.scale >= _DIGITS[old.name]
        case Atomic(), Atomic() if old.name in _WHOLE and new.name in _WHOLE:
            return _WHOLE[old.name] < _WHOLE[new.name]
        case _:
            return (old, new) in _OTHERS
