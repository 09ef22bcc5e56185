"""Measure the CPU time of an executor that gets a generated package for the first time: find the zip, import it, decode one message.

    python benchmarks/cold_executor.py [--rounds 9]

Each round is a separate process, which has the zip on its path as Spark's workers do, and nothing of schemactl. The import of pyarrow and
numpy, which the worker of any job pays, is measured separately. Where pandas is installed, Arrow imports it when it first makes an array;
so everything is measured with it and without.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from examples.shop import history
from schemactl.cli import main as schemactl

WORKER = """
import sys, time
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
if sys.argv[5] == "without":
    sys.meta_path.insert(0, Absent())
began = time.process_time()
import pyarrow, pyarrow.compute, numpy
arrow = time.process_time()
sys.path.insert(0, sys.argv[1])
from importlib import import_module
import shop_schemas
topic = shop_schemas.topic(sys.argv[2])
imported = time.process_time()
payload = bytes.fromhex(sys.argv[3])
# Made of buffers, as messages come from the JVM: `pyarrow.array` would import pandas.
buffers = [None, pyarrow.py_buffer(numpy.array([0, len(payload)], "<i4")), pyarrow.py_buffer(payload)]
payloads = pyarrow.Array.from_buffers(pyarrow.binary(), 1, buffers)
number = pyarrow.py_buffer(numpy.array([int(sys.argv[4])], "<i8"))
decoded = topic.decode_batch(payloads, pyarrow.Array.from_buffers(pyarrow.int64(), 1, [None, number]))
assert decoded.errors.null_count == 1, decoded.errors
done = time.process_time()
import json
print(json.dumps([arrow - began, imported - arrow, done - imported]))
"""

VALUES = {
    "persistent://shop/sales/payments": {
        "payment_id": "P-1",
        "order_id": "O-1",
        "amount": {"amount": 1, "currency": "EUR", "tax_included": True},
        "paid_at": 0,
        "method": "CARD",
    },
    "persistent://shop/web/page-views": {"url": "/", "viewed_at": 0, "visitor": "v1", "referrer": None},
    "persistent://shop/web/clicks": {"visitor": "v1", "target": "buy", "clicked_at_ms": 1, "path": ["a"]},
}
"""A message of the newest version, of a topic of each kind of payload."""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        shop, packed = Path(folder, "shop"), Path(folder, "shop_schemas.zip")
        history.make(shop)
        if schemactl(["-C", str(shop), "-q", "generate", "--zip", str(packed)]):
            raise SystemExit("the package was not made")
        print(f"{packed.stat().st_size / 1000:.0f} kB packed")
        sys.path.insert(0, str(packed))
        import shop_schemas

        for name, value in VALUES.items():
            topic = shop_schemas.topic(name)
            version = topic.codec.versions[-1].number
            payload = topic.encode_one(value, version)
            for pandas in ("without", "with"):
                arguments = [str(packed), name, payload.hex(), str(version), pandas]
                results = [
                    json.loads(
                        subprocess.run(
                            [sys.executable, "-c", WORKER, *arguments], capture_output=True, check=True, text=True
                        ).stdout
                    )
                    for _ in range(rounds)
                ]
                arrow, imported, decoded = (statistics.median(column) for column in zip(*results, strict=True))
                print(
                    f"{name}, {pandas} pandas: import {imported:.3f} s, first decode {decoded:.3f} s: {imported + decoded:.3f} s "
                    f"(at most {max(sum(result[1:]) for result in results):.3f} s); pyarrow and numpy before it {arrow:.3f} s"
                )


if __name__ == "__main__":
    main()
