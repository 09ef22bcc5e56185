"""Reading declarations, with the place of everything and repeated keys refused, against plain `yaml.load`.

usage: python benchmarks/declare_load.py

Prints CPU time for one document of each kind, the best of several interleaved rounds, and the ratio to `yaml.load` with
the C loader. Exits with 1 where reading values with their places takes more than 0.85 of it.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from functools import partial

import yaml

from schemactl.declare.document import read_documents
from schemactl.declare.yaml_parser import read_yaml

DEMAND = 0.85
ROUNDS = 15

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "com.example.shop",
    "doc": "What a customer ordered.",
    "fields": [
        {"name": f"field{number}", "type": ["null", "string"], "default": None, "doc": f"field {number} of an order"}
        for number in range(9)
    ],
}
HEAD = """\
# managed by the orders team
topic: persistent://shop/sales/orders
partitions: 4
schema_compatibility_strategy: BACKWARD_TRANSITIVE
clients:
  - {name: billing, role: consumer, schema: 3}
schema:
  type: AVRO
  properties: {owner: orders-team}
"""


def indent_text(text: str) -> str:
    """`text` four columns to the right."""
    return "".join(f"    {line}\n" for line in text.splitlines())


DOCUMENTS = {
    "Avro as JSON text": HEAD + "  definition: |\n" + indent_text(json.dumps(AVRO, indent=2)),
    "Avro as YAML": HEAD + "  definition:\n" + indent_text(yaml.safe_dump(AVRO, sort_keys=False)),
    "Avro in a file": HEAD + "  definition: orders.avsc\n  references: [../common/money.avsc]\n",
    "ten documents": "---\n".join(f"topic: shop/ops/sensor{number}\nschema: {{type: INT64}}\n" for number in range(10)),
}


def cpu_us(work: Callable[[], object], times: int) -> float:
    """CPU time of one call, in microseconds."""
    started_s = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started_s) / times * 1e6


def load_plainly(data: bytes) -> list[object]:
    """Load every document with `yaml.load`: the baseline, without locations and duplicate keys."""
    return list(yaml.load_all(data, Loader=yaml.CSafeLoader))


def main() -> int:
    """0 where the demand is met."""
    print(f"libyaml: {yaml.__with_libyaml__}; CPU in microseconds, best of {ROUNDS} rounds")
    print(f"{'':20} {'bytes':>6} {'yaml.load':>10} {'values and places':>24} {'declared, validated':>24}")
    worst = 0.0
    for name, text in DOCUMENTS.items():
        data = text.encode()
        works: list[Callable[[], object]] = [
            partial(load_plainly, data),
            partial(read_yaml, "orders.yaml", data),
            partial(read_documents, "orders.yaml", data),
        ]
        for work in works:
            work()
        gc.collect()
        rounds = [[cpu_us(work, 100) for work in works] for _ in range(ROUNDS)]
        plain, values, declared = (min(times) for times in zip(*rounds, strict=True))
        worst = max(worst, values / plain)
        print(
            f"{name:20} {len(data):6} {plain:10.0f} {values:14.0f} ({values / plain:.2f}x) {declared:15.0f} ({declared / plain:.2f}x)"
        )
    print(f"values and places: at most {worst:.2f}x of yaml.load; demanded: at most {DEMAND}x")
    return 0 if worst <= DEMAND else 1


if __name__ == "__main__":
    sys.exit(main())
