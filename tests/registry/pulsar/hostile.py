"""A server on loopback that sends whatever bytes a test says, and answers of Pulsar's, spoilt at random."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import scripted
from scripted import Asked, Said

AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}'
VERSION = {"version": 0, "type": "AVRO", "timestamp": 1_700_000_000_000, "data": AVRO, "properties": {}}
KEY_VALUE = {
    **VERSION,
    "version": 1,
    "type": "KEY_VALUE",
    "data": json.dumps({"key": "", "value": json.loads(AVRO)}),
    "properties": {
        "key.schema.type": "STRING",
        "value.schema.type": "AVRO",
        "kv.encoding.type": "INLINE",
        "key.schema.properties": "{}",
        "value.schema.properties": "{}",
    },
}
SPACE = {
    "schema_compatibility_strategy": "BACKWARD",
    "schema_auto_update_compatibility_strategy": None,
    "is_allow_auto_update_schema": True,
    "schema_validation_enforced": False,
}

GOOD: dict[str, Any] = {
    "brokers/version": "4.0.7",
    "brokers/configuration/runtime": {"schemaCompatibilityStrategy": "FULL"},
    "brokers": ["127.0.0.1:1"],
    "clusters": ["standalone"],
    "tenants": ["shop"],
    "namespaces/shop": ["shop/sales"],
    "namespaces/shop/sales": SPACE,
    "persistent/shop/sales": ["persistent://shop/sales/orders", "persistent://shop/sales/others"],
    "persistent/shop/sales/partitioned": ["persistent://shop/sales/orders"],
    "non-persistent/shop/sales": [],
    "non-persistent/shop/sales/partitioned": [],
    "schemaCompatibilityStrategy": "BACKWARD",
    "schemaValidationEnforced": True,
    "properties": {"schemactl.relaxed_from": "FULL"},
    "partitions": {"partitions": 2},
    "schemas": {"getSchemaResponses": [VERSION, KEY_VALUE]},
    "schema": VERSION,
    "metadata": {"info": {"version": 1, "ledgerId": 1, "entryId": 1}, "index": []},
    "compatibility": {"schemaCompatibilityStrategy": "FULL", "compatibility": True},
}
"""By the path below /admin/v2, or its last part."""

NOT_JSON = "@not-json@"
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    3,
    1.5,
    99_998,
    10**6,
    10**8,
    -(2**63),
    2**64,
    10**400,
    "",
    " ",
    "x",
    "x" * 100_000,
    "\ud800",
    "\x00\x1b[31m\u202e\u2028::error::\n",
    "../../x?y=z#",
    "KEY_VALUE",
    "PROTOBUF_NATIVE",
    "AUTO_CONSUME",
    "NONE",
    "ALWAYS_COMPATIBLE",
    "persistent://shop/sales/\u202e",
    "[" * 5_000,
    '{"type":"record","name":"a","fields":[{"name":"b","type":"a","default":{}}]}',
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"version": {}},
    NOT_JSON,
]


def good(path: str) -> Any:
    """What Pulsar would answer; None: 404."""
    plain = path.partition("?")[0]
    return GOOD.get(plain, GOOD.get(plain.rpartition("/")[2]))


def spoilt(value: Any, dice: random.Random) -> bytes:
    """`value` as JSON, something in it replaced by what does not belong there."""
    holder = [copy.deepcopy(value)]
    for _ in range(dice.choice([1, 1, 2, 5])):
        places = list(_places(holder))
        where, key = dice.choice(places)
        if isinstance(where, dict) and dice.random() < 0.2:
            del where[key]
        elif dice.random() < 0.15 and isinstance(where, list):
            where.extend(copy.deepcopy(where[:50]) * 3)
        else:
            where[key] = copy.deepcopy(dice.choice(ODD))
    text = json.dumps(holder[0] if holder else None)
    return text.replace(f'"{NOT_JSON}"', dice.choice(["NaN", "1e999", "9" * 5_000, "", "'", "\\ud800"])).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys: Iterable[Any] = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An answer as it is sent."""
    # The server closes each connection, and says so: else the next request may still be sent on it.
    told = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
    lines = [f"HTTP/1.1 {status}", *told, *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


Answering = Callable[[str, str], "bytes | Iterable[bytes]"]
"""The bytes to send, from a method and a path below /admin/v2/; then the connection is closed."""


@dataclass
class Hostile:
    """The server's URL, what it was asked for, and how it answers now."""

    url: str
    asked: list[Asked]
    answering: Answering = lambda _method, _path: answer(b"{}")


@contextmanager
def serving() -> Iterator[Hostile]:
    """The server."""

    def answering(asked: Asked) -> Said | bytes | Iterable[bytes]:
        return found.answering(asked.method, asked.path.removeprefix("/"))

    with scripted.serving(answering) as server:
        found = Hostile(server.url, server.asked)
        yield found
