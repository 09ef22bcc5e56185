"""Measure the payloads per second that the Spark sink validates before it sends them: batches of 10,000 messages of about 80 bytes, one thread.

python benchmarks/validation.py [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import pyarrow as pa

from schemactl.codec import Codec, Definition, Options, Version
from schemactl.spark.pulsar.validation import Validator

COUNT = 10_000
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "quantity", "type": "long"}],
}
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "note", "type": "string"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["PLACED", "PAID"]}},
    {"name": "lines", "type": {"type": "array", "items": LINE}},
]
ORDER = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})


def measure(kind: str, rounds: int) -> float:
    """Return the CPU seconds for each payload, the median of the rounds."""
    codec = Codec([Version(0, Definition(kind, ORDER))], options=Options(strict=True))
    orders = (
        {"id": number, "note": f"note {number}", "status": "PAID", "lines": [{"sku": f"s{number}", "quantity": 2}] * 3}
        for number in range(COUNT)
    )
    payloads = pa.array([codec.encode_one(order) for order in orders], pa.binary())
    validator = Validator(codec, 0)
    times_s = []
    for _ in range(rounds + 1):
        start_s = time.process_time()
        reasons = validator.find_reasons(payloads, None)
        times_s.append(time.process_time() - start_s)
        if any(reasons):
            raise RuntimeError(f"a valid payload is rejected: {reasons}")
    return statistics.median(times_s[1:]) / COUNT


def main() -> None:
    """Print the figures of both types."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for kind in ("AVRO", "JSON"):
        print(f"{kind}: {1e6 * measure(kind, rounds):.1f} us a payload")


if __name__ == "__main__":
    main()
