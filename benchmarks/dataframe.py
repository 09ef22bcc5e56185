"""Measure the decoding of a DataFrame: CPU seconds of the JVM and its Python workers together.

    python benchmarks/dataframe.py [--messages N] [--rounds N] [--folder FOLDER] [--jars FOLDER]

Nested orders in five versions, mixed, from Parquet to nowhere (`noop`), on two cores. `decode`, of every row with its reason and
bytes if it was rejected, is compared with a `CASE` of `from_avro` that is written by hand and fails at the first bad message.
It is also compared with the column of `decode_column`, and with fastavro in `mapInArrow`, on a quarter of the messages. JARS has Spark's Avro module (`make spark-jars` fetches it). The
ratios are medians over interleaved rounds, after an uncounted first round. FOLDER keeps the messages for the next time.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from pathlib import Path
from statistics import median

import fastavro
import pyarrow as pa
from orders import Orders
from pyspark.sql import DataFrame
from spark_cost import Cost, by_hand, make_session, measure_cost

from schemactl.spark import decode, decode_column
from schemactl.spark.column_types import struct_of

OUTSIDE = 4
"""Fastavro reads one message out of this number."""


def read_batches(
    batches: Iterable[pa.RecordBatch], *, schemas: list[str], columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The batches as fastavro reads them, row by row, in a worker."""
    parsed = [fastavro.parse_schema(json.loads(schema)) for schema in schemas]
    for batch in batches:
        rows = [
            fastavro.schemaless_reader(io.BytesIO(payload), parsed[number], parsed[-1])
            for payload, number in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=columns)


def discard(frame: DataFrame) -> Callable[[], None]:
    """A job that computes every row and column."""
    return lambda: frame.write.format("noop").mode("overwrite").save()


def main() -> None:
    """A line for each side, then the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "schemactl-orders"))
    parser.add_argument("--jars", type=Path, default=Path(".jars"))
    wanted = parser.parse_args()
    orders = Orders()
    codec = orders.codec
    spark = make_session(wanted.jars)
    few, whole = (
        spark.read.parquet(str(orders.make_parquet(wanted.folder, count)))
        for count in (wanted.messages // OUTSIDE, wanted.messages)
    )
    many = reduce(DataFrame.unionAll, [whole] * 4)
    reader = partial(read_batches, schemas=orders.schemas, columns=codec.columns)
    jobs = {
        "by hand": discard(by_hand(whole, orders.schemas)),
        "decode": discard(decode(whole, codec)),
        "as a column": discard(whole.select(decode_column(codec, "payload", "schema_version"))),
        "fastavro": discard(few.mapInArrow(reader, struct_of(codec.columns))),
    }
    costs_by_job: dict[str, list[Cost]] = {name: [] for name in jobs}
    for number in range(wanted.rounds + 1):
        for name, job in jobs.items():
            cost = measure_cost(job)
            if number:
                costs_by_job[name].append(cost)
    print(f"{wanted.messages} messages, medians of {wanted.rounds} rounds, CPU seconds")
    for name, costs in costs_by_job.items():
        times = OUTSIDE if name == "fastavro" else 1
        jvm, python = (median(cost[part] for cost in costs) * times for part in (0, 1))
        print(f"{name}: {jvm + python:.2f} (JVM {jvm:.2f}, Python {python:.2f})")

    def compute_ratio(one: str, other: str) -> float:
        return median(a.cpu_s / b.cpu_s for a, b in zip(costs_by_job[one], costs_by_job[other], strict=True))

    print(f"decode / by hand: {compute_ratio('decode', 'by hand'):.2f} (at most 1.25)")
    print(f"as a column / by hand: {compute_ratio('as a column', 'by hand'):.2f}")
    print(f"fastavro / decode: {compute_ratio('fastavro', 'decode') * OUTSIDE:.1f} (at least 8)")
    workers = (a.python_s / b.python_s for a, b in zip(costs_by_job["fastavro"], costs_by_job["decode"], strict=True))
    print(f"the same in the Python workers alone: {median(workers) * OUTSIDE:.0f} (at least 25)")
    once = max(cost.worker_mb for cost in costs_by_job["decode"])
    fourfold = measure_cost(discard(decode(many, codec))).worker_mb
    print(f"memory of a Python worker: {once:.0f} MB, with four times the messages {fourfold:.0f} MB")
    spark.stop()


if __name__ == "__main__":
    main()
