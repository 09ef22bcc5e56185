"""Which types a column can widen to, so that old rows have their values.

Spark's Parquet reader and Delta's type widening agree on these: a file of the one type is read as the other, value by value
(ParquetVectorUpdaterFactory; delta.enableTypeWidening). What is not here is refused by both, or its bits are taken for something
else, with two exceptions that only the Parquet reader knows: text and bytes, and timestamps with and without zone.
"""

from __future__ import annotations

from typing import Final

from schemactl.codegen import spark_type as spark
from schemactl.codegen.spark_type import Atomic, Decimal, SparkType

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


def widens(old: SparkType, new: SparkType) -> bool:
    """Whether `new` holds every value of `old`, and a file with `old` is read as `new`."""
    match old, new:
        case Decimal(), Decimal():
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case Atomic(), Decimal():
            return old.name in _DIGITS and new.precision - new.scale >= _DIGITS[old.name]
        case Atomic(), Atomic() if old.name in _WHOLE and new.name in _WHOLE:
            return _WHOLE[old.name] < _WHOLE[new.name]
        case _:
            return (old, new) in _OTHERS
