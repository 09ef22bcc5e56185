"""Measure the decoding of JSON payloads, against `json.loads` and Arrow without any check: CPU of one core, one run.

    python benchmarks/json_codec.py [MESSAGES] [ROUNDS]

Nested orders. The other side is `json.loads`, then `RecordBatch.from_pylist` with the codec's columns: it checks nothing, takes
milliseconds for microseconds and decimals for doubles, and makes every field that is missing null. The ratio is a median over rounds.
"""

from __future__ import annotations

import json
import random
import statistics
import sys

import pyarrow as pa
from codec import cpu_s
from orders import make_versions, order

from schemactl.codec import Codec, Definition, Version

_BATCH_ROWS = 10_000


class Sides:
    """Messages for both sides."""

    def __init__(self, count: int) -> None:
        pick = random.Random(7)  # noqa: S311  reproducible, not secret
        self.codec = Codec([Version(0, Definition("JSON", json.dumps(make_versions()[-1])))])
        self.columns = pa.schema(
            [
                field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
                for field in self.codec.columns
            ]
        )
        payloads = pa.array([self.codec.encode_one(order(pick)) for _ in range(count)])
        self.messages = [payloads.slice(at, _BATCH_ROWS) for at in range(0, count, _BATCH_ROWS)]

    def decode(self) -> list[pa.RecordBatch]:
        """By the codec."""
        return [self.codec.decode_batch(payloads).rows for payloads in self.messages]

    def decode_unchecked(self) -> list[pa.RecordBatch]:
        """By `json.loads` and `from_pylist`."""
        return [
            pa.RecordBatch.from_pylist([json.loads(payload) for payload in payloads.to_pylist()], schema=self.columns)
            for payloads in self.messages
        ]


def main(count: int = 50_000, rounds: int = 3) -> None:
    """One line."""
    sides = Sides(count)
    pairs = [(cpu_s(sides.decode), cpu_s(sides.decode_unchecked)) for _ in range(rounds)]
    ratio = statistics.median(mine / other for mine, other in pairs)
    rate = count / statistics.median(mine for mine, _ in pairs)
    print(f"{count} messages in batches of {_BATCH_ROWS}, medians of {rounds} rounds")
    print(
        f"decode: {ratio:.2f} of the CPU of json.loads and from_pylist ({rate / 1000:.0f} thousand messages a second)"
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
