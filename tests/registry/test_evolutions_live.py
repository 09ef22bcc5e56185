"""Random histories of all schema types at a real broker: each upload, compatibility test and deletion has the predicted answer."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import admin_rest
import brokers
import pytest
from lenient_texts import PAIR, list_uploads
from random_avro import Maker
from random_protobuf import ProtoMaker, read_json_definition

from schemactl.broker import upload
from schemactl.cli.compare import _parse_new
from schemactl.core.findings import Answer, Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaType, SchemaVersion

pytestmark = pytest.mark.broker

HISTORIES = int(os.environ.get("SCHEMACTL_EVOLUTIONS", "60"))
"""The number of histories for each release; `make soak` has 1,000."""
STEPS = 4
OUTCOMES = {
    200: {Outcome.OK, Outcome.UNCHANGED},
    409: {Outcome.INCOMPATIBLE},
    422: {Outcome.INVALID},
    500: {Outcome.ERROR},
}
_NO_DEFINITION = [
    kind.name
    for kind in SchemaType
    if kind.value >= 0 and kind.name not in ("AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE")
]


class Difference(NamedTuple):
    """An answer that was not predicted."""

    seed: int
    step: int
    endpoint: str
    request: Any
    answer: str
    predicted: Answer


def make_definitions(seed: int, release: str) -> Iterator[dict[str, Any]]:
    """Yield definitions without end, most of which evolve from one of the first."""
    chance = random.Random(seed)  # noqa: S311  reproducible, not secret
    maker, protos = Maker(seed), ProtoMaker(seed)
    records = [maker.record(2)]
    kind = chance.choice(["AVRO", "AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE", "any"])
    oddities = list(list_uploads(release))
    while True:
        records.append(maker.evolve_schema(chance.choice(records)))
        texts = [make_odd(chance, record) for record in records]
        this_kind = kind if chance.random() < 0.85 else "any"
        if this_kind == "any":
            odd_kind, text, properties, _ = chance.choice(oddities)
            plain = chance.choice(_NO_DEFINITION)
            yield chance.choice(
                [
                    {"type": odd_kind, "schema": text, "properties": properties},
                    {"type": plain, "schema": chance.choice(["", "", "null", "x"]), "properties": {}},
                    {"type": plain, "schema": "", "properties": {"a": "b"}},
                ]
            )
        elif this_kind == "PROTOBUF_NATIVE":
            definition = read_json_definition(chance.choice([protos.file, protos.change_file()]), protos.root).text
            yield {"type": this_kind, "schema": chance.choice([definition] * 6 + ["{}", texts[0]]), "properties": {}}
        elif this_kind == "KEY_VALUE":
            types = [chance.choice(["STRING", "INT32", "AVRO", "JSON", "BYTES"]) for _ in range(2)]
            halves = ['""' if half in ("STRING", "INT32", "BYTES") else chance.choice(texts) for half in types]
            properties = PAIR | {"key.schema.type": types[0], "value.schema.type": types[1]}
            yield {"type": this_kind, "schema": f'{{"key":{halves[0]},"value":{halves[1]}}}', "properties": properties}
        else:
            yield {"type": this_kind, "schema": chance.choice(texts), "properties": chance.choice([{}, {"x": "y"}])}


def make_odd(chance: random.Random, record: Any) -> str:
    """Return a record as text, now and then with a name, default or text that some release rejects."""
    match chance.randrange(14):
        case 0:
            record = record | {"namespace": chance.choice(["a-b", "a.1b", "", "a.b"])}
        case 1:
            record = record | {"name": chance.choice(["A$B", "1A", "Å"])}
        case 2:
            bad = {"name": "bad", "type": ["null", "int"], "default": chance.choice([1, "x", None])}
            record = record | {"fields": [*record["fields"], bad]}
        case 3:
            record = chance.choice([["null", record], [record], "string", {"type": "array", "items": record}])
        case 4:
            return json.dumps(record) + chance.choice([" x", "}", "\n"])
        case 5:
            record = record | {"doc": "changed"}
    return json.dumps(record)


def live_through(seed: int, release: str, url: str, tenant: str) -> list[Difference]:
    """Drive the history of a seed, and return the answers that were not predicted."""
    chance = random.Random(-seed)  # noqa: S311
    strategy = chance.choice(list(CompatibilityStrategy))
    in_force = CompatibilityStrategy.FULL if strategy is CompatibilityStrategy.UNDEFINED else strategy
    path = f"/schemas/{tenant}/{strategy.value.lower()}/t{seed}"
    definitions, versions, differences = make_definitions(seed, release), list[SchemaVersion](), list[Difference]()
    with closing(admin_rest.Client(url)) as client:
        for step in range(STEPS):
            if chance.random() < 0.05:
                number = client.call("DELETE", f"{path}/schema").json()["version"]
                assert number == len(versions)
                versions.append(SchemaVersion(number, None))
            request = next(definitions)
            new = _parse_new({"new": request})
            if step:
                reply = client.call("POST", f"{path}/compatibility", request)
                predicted = upload.VersionList(versions, Release(release)).test(new, in_force)
                is_compatible = reply.status < 300 and reply.json()["compatibility"]
                if is_compatible != (predicted.outcome is Outcome.OK):
                    differences.append(Difference(seed, step, "compatibility", request, reply.text[:300], predicted))
            reply = client.call("POST", f"{path}/schema", request)
            predicted = upload.VersionList(versions, Release(release)).put(new, in_force)
            number = reply.json()["version"]["version"] if reply.status == 200 else None
            if predicted.outcome not in OUTCOMES[reply.status] or predicted.version != number:
                differences.append(
                    Difference(seed, step, "upload", request, f"{reply.status} {reply.text[:300]}", predicted)
                )
            if number == len(versions):
                versions.append(SchemaVersion(number, new))
    return differences


@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_each_answer_is_predicted(release: str) -> None:
    url, tenant = brokers.start_broker(release).url, brokers.new_tenant()
    with closing(admin_rest.Client(url)) as client:
        for strategy in CompatibilityStrategy:
            policies = {"schema_compatibility_strategy": strategy.value}
            client.create_namespace(f"{tenant}/{strategy.value.lower()}", policies)
    run = partial(live_through, release=release, url=url, tenant=tenant)
    with ThreadPoolExecutor(8) as threads:
        differences = [difference for differences in threads.map(run, range(HISTORIES)) for difference in differences]
    assert differences == []
