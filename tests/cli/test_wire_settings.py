"""The settings of a topic's bytes: the form of times in JSON, and the byte order of integers."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest
from command import schemactl
from imported_package import import_package
from scratch import Scratch

PROJECT = (
    "version: 1\nroots: [topics]\napproved: main\n"
    'generate: {package: shop_schemas, out: generated, spark: "4.1", json_times: java}\n'
)
EVENT = {
    "type": "record",
    "name": "Event",
    "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
}
TOPICS = """\
namespace: shop/web
---
topic: shop/web/events
schema: {type: JSON, definition: event.avsc}
---
topic: shop/web/go-events
generate: {json_times: number}
schema: {type: JSON, definition: event.avsc}
---
topic: shop/web/counts
generate: {integers: little}
schema: {type: INT64}
"""


@pytest.fixture
def wire_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "shop")
    scratch.commit({"schemactl.yaml": PROJECT, "topics/topics.yaml": TOPICS, "topics/event.avsc": json.dumps(EVENT)})
    scratch.flush()
    return scratch


def test_a_package_writes_what_the_settings_say(wire_repository: Scratch) -> None:
    # The second run reads the declarations from the cache.
    assert schemactl(wire_repository, "check").code == 0
    assert schemactl(wire_repository, "check").code == 0
    schemactl(wire_repository, "generate")
    with import_package(wire_repository.path / "generated", "shop_schemas") as package:
        events, go_events, counts = (
            package.topic(f"persistent://shop/web/{name}") for name in ("events", "go-events", "counts")
        )
        value = {"at": 1_704_164_645_678_000}
        assert events.encode_one(value) == b'{"at":1704164645.678000000}'
        assert events.encode_one(value, json_times="number") == b'{"at":1704164645678}'
        assert go_events.encode_one(value) == b'{"at":1704164645678}'
        assert counts.encode_one(1) == struct.pack("<q", 1)
        assert counts.decode_one(struct.pack("<q", -2)) == -2


def test_pairs_of_integers_have_a_byte_order(wire_repository: Scratch) -> None:
    pair = "{type: KEY_VALUE, key: {type: INT32}, value: {type: STRING}}"
    wire_repository.write(
        {"topics/topics.yaml": TOPICS.replace("shop/web/counts", "shop/web/pairs").replace("{type: INT64}", pair)}
    )
    schemactl(wire_repository, "check")


def test_commands_use_the_settings(wire_repository: Scratch) -> None:
    payload = base64.b64encode(struct.pack("<q", 258)).decode()
    assert schemactl(wire_repository, "decode", "counts", "--version", "0", "--base64", payload).out == "258\n"
    schemactl(wire_repository, "sample", "shop/web/events", "-n", "1", "--format", "bytes", "--out", "samples")
    (payload_file,) = (path for path in wire_repository.path.glob("samples/**/*") if path.is_file())
    assert b'{"at":' in payload_file.read_bytes()
    assert isinstance(json.loads(payload_file.read_bytes())["at"], float)
    effective = schemactl(wire_repository, "show", "counts", "--effective").out
    assert "generate.integers" in effective
    assert "little" in effective


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("integers: little", "integers: native", "native"),
        ("json_times: number", "json_times: go", "go"),
        (
            "{type: INT64}",
            "{type: DOUBLE}",
            "`integers` is the byte order of INT16, INT32, INT64, but the schema is DOUBLE",
        ),
        ("schema: {type: INT64}", "integers: little\nschema: {type: INT64}", "`integers` does not belong here"),
        ("integers: little", "nanoseconds: micros", "micros"),
        (
            "integers: little",
            "nanoseconds: bigint",
            "`nanoseconds` is the column of INSTANT, LOCAL_TIME, LOCAL_DATE_TIME, but the schema is INT64",
        ),
    ],
)
def test_a_wrong_setting_is_a_problem_with_its_place(
    wire_repository: Scratch, old: str, new: str, problem: str
) -> None:
    wire_repository.write({"topics/topics.yaml": TOPICS.replace(old, new)})
    result = schemactl(wire_repository, "check", code=1)
    assert problem in result.err + result.out
    assert "topics/topics.yaml:" in result.err + result.out
