"""Measure decoding into one schema and encoding, against fastavro: CPU of one core, the same messages in the same run.

    python benchmarks/codec.py [MESSAGES] [ROUNDS]

Nested orders in five versions, mixed. Both sides start from bytes and end at Arrow columns, or the other way round. The
ratios are medians over rounds; memory is this process's peak.
"""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from orders import Orders

_BATCH_ROWS = 10_000


def cpu_s(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    gc.collect()
    started_s = time.process_time()
    work()
    return time.process_time() - started_s


class Sides:
    """Messages for both sides, as bytes and as columns."""

    def __init__(self, count: int) -> None:
        self.orders = Orders()
        self.codec = self.orders.codec
        self.messages = list(self.orders.draw_batches(count, rows=_BATCH_ROWS))
        self.rows = self.decode()

    def decode(self) -> list[pa.RecordBatch]:
        """By the codec."""
        return [self.codec.decode_batch(batch["payload"], batch["schema_version"]).rows for batch in self.messages]

    def decode_fastavro(self) -> list[pa.RecordBatch]:
        """By fastavro, row by row, then to columns."""
        return [
            pa.RecordBatch.from_pylist(
                [
                    self.orders.read(payload, number)
                    for payload, number in zip(*(column.to_pylist() for column in batch.columns), strict=True)
                ],
                schema=self.codec.columns,
            )
            for batch in self.messages
        ]

    def encode(self) -> list[pa.BinaryArray]:
        """By the codec."""
        return [self.codec.encode_batch(batch).payloads for batch in self.rows]

    def encode_fastavro(self) -> list[pa.BinaryArray]:
        """By fastavro, from columns to rows, row by row."""
        return [
            pa.array([self.orders.write(row, -1) for row in batch.to_pylist(maps_as_pydicts="strict")])
            for batch in self.rows
        ]


def main(count: int = 100_000, rounds: int = 5) -> None:
    """Two lines: decode and encode."""
    sides = Sides(count)
    print(f"{count} messages in batches of {_BATCH_ROWS}, medians of {rounds} rounds")
    for ours, theirs in ((sides.decode, sides.decode_fastavro), (sides.encode, sides.encode_fastavro)):
        if ours() != theirs():
            raise SystemExit(f"{ours.__name__}: the two sides differ")
        pairs = [(cpu_s(ours), cpu_s(theirs)) for _ in range(rounds)]
        ratio = statistics.median(other / mine for mine, other in pairs)
        rate = count / statistics.median(mine for mine, _ in pairs)
        print(
            f"{ours.__name__}: {ratio:5.1f} times less CPU than fastavro ({rate / 1000:.0f} thousand messages a second)"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    print(f"memory: {peak:.0f} MB at the most, both sides and the messages together")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
