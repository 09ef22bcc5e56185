"""What Delta's log says of a file: bounds that lose no row, whoever reads them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from schemactl.spark.message_columns import struct_of
from schemactl.spark.tables.delta import DeltaTable
from schemactl.spark.tables.landing_table import Addition

from .test_landing_delta import put

GREATEST = chr(0x10FFFF)


def told(path: Path, rows: pa.Table) -> dict[str, Any]:
    """The statistics of a file of these rows."""
    found: dict[str, Any] = json.loads(put(DeltaTable(str(path)), "f", rows).statistics, parse_float=str, parse_int=str)
    return found


@pytest.mark.parametrize(
    ("values", "kind", "bounds"),
    [
        ([3, None, -5], pa.int8(), ("-5", "3")),
        ([2**62], pa.int64(), (str(2**62), str(2**62))),
        ([0.1, -0.0], pa.float32(), ("-0.0", "0.10000000149011612")),
        ([1.5, float("inf")], pa.float64(), ("1.5", None)),
        ([Decimal("-3.45"), Decimal("1.20")], pa.decimal128(9, 2), ("-3.45", "1.20")),
        ([Decimal(f"1{'0' * 34}.01")], pa.decimal128(38, 2), (f"1{'0' * 34}.01",) * 2),
        ([date(2020, 1, 2), date(1, 1, 1)], pa.date32(), ("0001-01-01", "2020-01-02")),
        (["a", "b" * 33, "b"], pa.string(), ("a", "b" * 32 + GREATEST)),
        (["a" * 33, "b" * 32], pa.string(), ("a" * 32, "b" * 32)),
        ([GREATEST * 33], pa.string(), (GREATEST * 32, None)),
        (["x" * 5000], pa.string(), (None, None)),
        ([None, None], pa.string(), (None, None)),
        ([b"a"], pa.binary(), (None, None)),
        ([True], pa.bool_(), (None, None)),
        ([[1], None], pa.list_(pa.int64()), None),
        ([[("a", 1)]], pa.map_(pa.string(), pa.int64()), None),
    ],
    ids=str,
)
def test_values_have_bounds_as_delta_spells_them(
    tmp_path: Path, values: list[Any], kind: pa.DataType, bounds: tuple[str | None, str | None] | None
) -> None:
    rows = pa.table({"n": [0] * len(values), "x": pa.array(values, kind), "z": [9] * len(values)})
    found = told(tmp_path, rows)
    assert found["numRecords"] == str(len(values))
    least, greatest = bounds or (None, None)
    assert found["minValues"] == {"n": "0", **({"x": least} if least else {}), "z": "9"}
    assert found["maxValues"] == {"n": "0", **({"x": greatest} if greatest else {}), "z": "9"}
    nulls = {"x": str(values.count(None))} if bounds else {}
    assert found["nullCount"] == {"n": "0", **nulls, "z": "0"}


@pytest.mark.parametrize(("zone", "end"), [("UTC", "Z"), (None, "")])
def test_times_are_milliseconds_that_enclose_every_microsecond(tmp_path: Path, zone: str | None, end: str) -> None:
    times = pa.array([-1, 1_000_001, 2**62], pa.timestamp("us", zone))
    found = told(tmp_path, pa.table({"t": times[:2], "far": times[1:]}))
    assert found["minValues"] == {"t": f"1969-12-31T23:59:59.999{end}", "far": f"1970-01-01T00:00:01.000{end}"}
    assert found["maxValues"] == {"t": f"1970-01-01T00:00:01.001{end}"}


def test_parts_of_structs_have_bounds_and_nulls_with_those_of_the_structs(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64())), ("y", pa.struct([("z", pa.string())]))])
    rows = pa.table({"s": pa.array([{"x": 1, "l": [7], "y": {"z": "a"}}, None, {"x": 3}], inner), "n": [1, 2, 3]})
    assert told(tmp_path, rows) == {
        "numRecords": "3",
        "minValues": {"s": {"x": "1", "y": {"z": "a"}}, "n": "1"},
        "maxValues": {"s": {"x": "3", "y": {"z": "a"}}, "n": "3"},
        "nullCount": {"s": {"x": "1", "y": {"z": "2"}}, "n": "0"},
    }


def test_the_columns_that_delta_indexes_are_the_first_32_parts_of_structs_among_them(tmp_path: Path) -> None:
    struct = pa.array([{f"s{n}": 1 for n in range(20)}])
    found = told(tmp_path, pa.table({"l": [[1]], "s": struct, **{f"c{n}": [1] for n in range(20)}}))
    assert list(found["nullCount"]) == ["s", *(f"c{n}" for n in range(11))]


def test_readers_that_skip_files_by_statistics_find_every_row(tmp_path: Path) -> None:
    micros = datetime(2026, 11, 21, 12, 0, 0, 123_456, UTC)
    values = {
        "n": [5],
        "t": pa.array([micros], pa.timestamp("us", "UTC")),
        "local": pa.array([micros.replace(tzinfo=None)], pa.timestamp("us")),
        "text": ["b" * 40],
        "price": pa.array([Decimal("12345678901234567890.12")], pa.decimal128(38, 2)),
        "day": pa.array([date(2026, 11, 21)]),
    }
    rows = pa.table(values)
    table = DeltaTable(str(tmp_path / "t"))
    table.commit(Addition([put(table, "f", rows)], struct_of(rows.schema)))
    found = deltalake.DeltaTable(table.place)
    for column, [value] in rows.to_pydict().items():
        assert found.to_pyarrow_table(filters=[(column, "=", value)]).num_rows == 1, column
    # The engine of delta-rs reads the bounds in the log by itself.
    for predicate in (
        "n = 5",
        f"local = timestamp '{micros.replace(tzinfo=None).isoformat()}'",
        f"text = '{'b' * 40}'",
        "day = date '2026-11-21'",
    ):
        assert pa.table(found.scan(predicate=predicate).read_all()).num_rows == 1, predicate
