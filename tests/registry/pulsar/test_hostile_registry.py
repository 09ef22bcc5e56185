"""Every command reports a hostile registry in one line, in bounded time and memory."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import scripted
from command import Printed, schemactl
from scratch import Scratch, record, write_declaration
from scripted import Request, Response

from schemactl.registry.interface import Warn
from schemactl.registry.pulsar import responses
from schemactl.registry.pulsar.http import WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry
from schemactl.registry.pulsar.responses import Reply

pytestmark = pytest.mark.slow

SHORT_WAITS = WaitTimes(first_retry_s=0.2, retry_s=0.2, longest_delay_s=0.05, visible_s=0.1, connects_follow_s=0.0)
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


def answer_well(path: str) -> Any:
    """Return the answer of Pulsar, or None for a 404."""
    plain = path.partition("?")[0]
    return GOOD.get(plain, GOOD.get(plain.rpartition("/")[2]))


def spoil(value: Any, dice: random.Random) -> bytes:
    """`value` as JSON, with some parts replaced by odd values."""
    holder = [copy.deepcopy(value)]
    for _ in range(dice.choice([1, 1, 2, 5])):
        places = list(_list_places(holder))
        where, key = dice.choice(places)
        if isinstance(where, dict) and dice.random() < 0.2:
            del where[key]
        elif dice.random() < 0.15 and isinstance(where, list):
            where.extend(copy.deepcopy(where[:50]) * 3)
        else:
            where[key] = copy.deepcopy(dice.choice(ODD))
    text = json.dumps(holder[0] if holder else None)
    return text.replace(f'"{NOT_JSON}"', dice.choice(["NaN", "1e999", "9" * 5_000, "", "'", "\\ud800"])).encode()


def _list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys: Iterable[Any] = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _list_places(value[key])


def make_response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Return the bytes of a response."""
    # The server announces that it closes the connection; otherwise the next request may be sent on it.
    head = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
    lines = [f"HTTP/1.1 {status}", *head, *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


Respond = Callable[[str, str], "bytes | Iterable[bytes]"]
"""The bytes to send, from a method and a path below /admin/v2/; then the connection is closed."""


@dataclass
class Hostile:
    """A server with its URL, its requests and its current responses."""

    url: str
    requests: list[Request]
    respond: Respond = lambda _method, _path: make_response(b"{}")


@contextmanager
def run_hostile_server() -> Iterator[Hostile]:
    """The server."""

    def respond(request: Request) -> Response | bytes | Iterable[bytes]:
        return hostile.respond(request.method, request.path.removeprefix("/"))

    with scripted.serve(respond) as server:
        hostile = Hostile(server.url, server.requests)
        yield hostile


ORDERS = "shop/sales/orders"
COMMANDS = [
    ("plan",),
    ("drift",),
    ("drift", "--unmanaged"),
    ("drift", "--format", "json"),
    ("rebuild", "--auto-approve"),
    ("import",),
    ("log", ORDERS, "--target", "live"),
    ("registry", "list", ORDERS),
    ("registry", "get", ORDERS),
    ("registry", "get", ORDERS, "--format", "json"),
    ("registry", "test", ORDERS, "--type", "STRING"),
    ("admit", "producer", ORDERS, "--target", "live"),
    ("apply", "--auto-approve"),
    ("drift", "--unmanaged", "--accept", "--reason", "x"),
    ("status",),
    ("status", "--unmanaged", "--format", "prometheus"),
]
SEEDS = int(os.environ.get("SCHEMACTL_HOSTILE_SEEDS", "20"))


class Place:
    """A repository whose target is the hostile registry."""

    def __init__(self, path: Path, server: Hostile) -> None:
        self.server = server
        self.scratch = Scratch(path)
        self.scratch.commit(
            {
                "schemactl.yaml": f'version: 1\ntargets: {{live: {{registry: "{server.url}"}}}}\n',
                "namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
                "namespaces/orders.yaml": write_declaration(),
                "namespaces/orders.avsc": record("id"),
            }
        )
        self.scratch.commit({"namespaces/orders.avsc": record("id", more=0)})
        self.scratch.flush()

    def run(self, *arguments: str) -> Printed:
        """Return the output of a command that must not change the working tree."""
        printed = schemactl(self.scratch.path, *arguments, code=range(256))
        if arguments[0] == "import" or "--accept" in arguments:
            self.scratch.git("clean", "-dfq")
        return printed


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with run_hostile_server() as server:
        yield Place(tmp_path_factory.mktemp("hostile") / "r", server)


@pytest.fixture
def waits() -> WaitTimes:
    return SHORT_WAITS


def expect_one_error(out: str, err: str, code: int, *words: str) -> None:
    """Check that a command ended with one error and exit code 1."""
    assert (code, out) == (1, ""), (code, out[:500], err[:2000])
    problems = [line for line in err.splitlines() if not line.startswith(("  Fix: ", "waiting: "))]
    assert len(problems) == 1, err[:2000]
    assert problems[0].startswith("schemactl: ")
    assert len(err) < 5_000
    for word in words:
        assert word in err


def test_answers_spoilt_at_random_end_in_a_verdict_or_one_error(place: Place) -> None:
    for seed in range(SEEDS):
        dice = random.Random(seed)  # noqa: S311  no secret
        place.server.respond = _respond_spoilt(dice.choice([*GOOD, *GOOD, ""]), dice)
        command = dice.choice(COMMANDS)
        out, err, code = place.run(*command)
        assert code in (0, 1, 2, 3, 4, 100), (seed, command, err)
        assert "Traceback" not in out + err, (seed, command)
        if code == 1 and not out:
            assert err.startswith(("schemactl: ", "note: ", "warning: ", "waiting: ")), (seed, err[:500])


def _respond_spoilt(bad: str, dice: random.Random) -> Respond:
    """Return the answer of Pulsar, except for the path or last part `bad`; "" replaces every answer."""

    def respond(_method: str, path: str) -> bytes:
        value = answer_well(path)
        if value is None:
            return make_response(b"{}", "404 Not Found")
        is_bad = bad in ("", path, path.rpartition("/")[2])
        return make_response(spoil(value, dice) if is_bad else json.dumps(value).encode())

    return respond


BROKEN = {
    "nothing": b"",
    "no http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    "half a status": b"HTTP/1.1 2",
    "a status of words": b"HTTP/1.1 abc def\r\n\r\n",
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 100_000,
    "a header without end": b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 3_000_000,
    "a defective header": b"HTTP/1.1 200 OK\r\n: x\r\nfolded\r\n  y\r\nContent-Length: 4\r\n\r\n[1]]",
    "a length below zero": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{]",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[]",
    "a length without digits": b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{]",
    "too short a body": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n[]",
    "a chunk cut off": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[",
    "a chunk of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n[]\r\n0\r\n\r\n",
    "a chunk size without end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 3_000_000,
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n0\r\n" + b"a: b\r\n" * 100_000,
    "continue without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000,
    "no gzip": make_response(b"[]", "200 OK", "Content-Encoding: gzip"),
    "an unknown encoding": make_response(b"[]", "200 OK", "Content-Encoding: schemactl"),
    "encodings": make_response(b"[]", "200 OK", "Content-Encoding: " + ", ".join(["gzip"] * 1_000)),
    "no utf-8": make_response(b'["\xff\xfe"]'),
    "half a pair": make_response(b'["\\ud800"]'),
    "deep": make_response(b"[" * 1_000_000),
    "deep and closed": make_response(b"[" * 100_000 + b"]" * 100_000),
    "not a number": make_response(b"NaN"),
    "a huge number": make_response(b"9" * 1_000_000),
    "a page": make_response(b"<html>welcome</html>"),
    "empty": make_response(b""),
    "null": make_response(b"null"),
    "a redirect to nowhere": make_response(b"", "307 x", "Location: http://[::1"),
    "a redirect to a name of no host": make_response(b"", "307 x", f"Location: http://{'x' * 300}/"),
    "a redirect to dots": make_response(b"", "307 x", "Location: http://a..b/"),
    "a redirect without place": make_response(b"", "307 x"),
    "a redirect to bytes": make_response(b"", "307 x", "Location: http://\xff\xfe/"),
    "an endless wait": make_response(b"{}", "503 x", f"Retry-After: {'9' * 400}"),
    "a deep refusal": make_response(b'{"reason":' * 100_000, "500 x"),
    "newlines": make_response(
        b'{"reason": "' + b"An unexpected error occurred in the server Message:" + b"\\n" * 20_000 + b'x"}', "500 x"
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_invalid_response_is_one_error(place: Place, how: str) -> None:
    place.server.respond = lambda _method, _path: BROKEN[how]
    number = [*BROKEN].index(how)
    # To the list of one topic, an empty answer says that there is no schema.
    command = COMMANDS[0] if how in ("empty", "null") else COMMANDS[(0, 7, 5)[number % 3]]
    expect_one_error(*place.run(*command))


@lru_cache
def make_bomb() -> bytes:
    """Return a response of 256 MB that is short if compressed."""
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = b"".join(squeezer.compress(b" " * (1 << 20)) for _ in range(256)) + squeezer.flush()
    return make_response(packed, "200 OK", "Content-Encoding: gzip")


def send_flood() -> Iterable[bytes]:
    """Yield an endless response."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["
    while True:
        yield b"1," * (1 << 19)


FLOODS: dict[str, Callable[[], bytes | Iterable[bytes]]] = {
    "much in little": make_bomb,
    "much in less": lambda: make_response(gzip.compress(make_bomb()), "200 OK", "Content-Encoding: gzip, gzip"),
    "an answer without end": send_flood,
    "much of nothing": lambda: make_response(b"[" + b"[]," * (21 << 19) + b"[]]"),
    "an announced terabyte": lambda: (
        part
        for whole in ([b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n["], send_flood())
        for part in whole
    ),
}

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
from schemactl.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("how", FLOODS)
def test_an_answer_beyond_all_measure_is_given_up_in_little_memory(place: Place, how: str) -> None:
    place.server.respond = lambda _method, _path: FLOODS[how]()
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "registry", "list", ORDERS],
        cwd=place.scratch.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    why = {"much in less": "a compression that was not requested", "much of nothing": "does not answer with JSON"}
    expect_one_error(done.stdout, done.stderr, done.returncode, why.get(how, "more than 67,108,864 bytes"))


@pytest.mark.parametrize("waits", [replace(SHORT_WAITS, response_s=0.5)], ids=["short response"])
@pytest.mark.parametrize(
    "drip",
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n[", b"1,"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n1\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 500 x\r\n\r\n", b"x"),
    ],
    ids=["headers", "body", "chunks", "continue", "refusal"],
)
def test_an_answer_that_drips_is_given_up(place: Place, drip: tuple[bytes, bytes]) -> None:
    def drip_bytes() -> Iterable[bytes]:
        yield drip[0]
        while True:
            time.sleep(0.05)
            yield drip[1]

    place.server.respond = lambda _method, _path: drip_bytes()
    expect_one_error(*place.run("registry", "list", ORDERS), "takes longer than")


def respond_with(values: dict[str, Any]) -> Respond:
    """Return the answer of Pulsar, except for these last parts of paths."""

    def respond(_method: str, path: str) -> bytes:
        value = values.get(path.rpartition("/")[2], answer_well(path))
        return make_response(json.dumps(value).encode(), "200 OK" if value is not None else "404 x")

    return respond


@pytest.mark.parametrize("version", [10**8, 2**62, 100_000, -1])
@pytest.mark.parametrize("where", ["schemas", "metadata"])
def test_a_number_that_no_list_can_have_is_not_counted_up_to(place: Place, version: int, where: str) -> None:
    documents = {
        "schemas": {"getSchemaResponses": [{**VERSION, "version": version}]},
        "metadata": {"info": {"version": version}},
    }
    if where == "metadata":
        documents["schemas"] = {"getSchemaResponses": []}

    place.server.respond = respond_with(documents)
    expect_one_error(*place.run("registry", "list", ORDERS), f"reports a version {version}")


def test_the_largest_number_is_listed(place: Place) -> None:
    last = {"getSchemaResponses": [{**VERSION, "version": 99_999}]}
    place.server.respond = respond_with({"schemas": last})
    assert place.run("plan").code in (0, 100)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)], ids=["", "quiet"])
def test_waiting_user_is_told_the_request_and_the_time_limit(
    place: Place, monkeypatch: pytest.MonkeyPatch, quiet: Sequence[str]
) -> None:
    was_warned = Event()

    def open_registry(url: str, *, warn: Warn, **options: Any) -> PulsarRegistry:
        def warn_and_note(text: str) -> None:
            warn(text)
            was_warned.set()

        waits = WaitTimes(first_retry_s=60.0, longest_delay_s=0.05, warn_after_s=1.0)
        return PulsarRegistry(url, warn=warn_and_note, waits=waits, **options)

    monkeypatch.setattr("schemactl.registry.pulsar.registry.PulsarRegistry", open_registry)
    place.server.respond = lambda _method, _path: make_response(b"", "404 x" if was_warned.is_set() else "503 x")
    err = place.run(*quiet, "registry", "list", ORDERS).err
    # On a slow machine, the first response may not have come when the time is up.
    state = r"(?:answers 503; trying again|no answer for \d+ s; waiting) for up to \d+ s"
    waiting = f"waiting: {re.escape(place.server.url)}: GET schemas/{ORDERS}/schemas: {state}"
    assert bool(re.match(waiting, err)) == (not quiet), err


@pytest.mark.parametrize("waits", [WaitTimes(first_retry_s=1000.0, retry_s=1000.0, total_s=0.0)], ids=["no total wait"])
def test_a_command_does_not_wait_again_and_again(place: Place) -> None:
    place.server.requests.clear()
    failing = iter([True])

    def respond(_method: str, path: str) -> bytes:
        # The first is answered at the second attempt; then the time is up, and the next one has one attempt.
        if next(failing, False) or path.endswith("/metadata"):
            return make_response(b"", "503 x")
        return make_response(b'{"getSchemaResponses": []}')

    place.server.respond = respond
    expect_one_error(*place.run("registry", "list", ORDERS), "answers 503")
    assert len(place.server.requests) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Message: no\n\nStacktrace:\n\na.B: no\n\tat x", "no"),
        ("Message: two\nlines\n\n  Stacktrace:\n\na.B", "two\nlines"),
        ("Message: no Stacktrace: here", "no Stacktrace: here"),
        ("Message: no", "no"),
        ("none", "An unexpected error occurred in the server none"),
        ("Message:\n\n\n", ""),
    ],
)
def test_the_words_of_an_unexpected_error_are_its_message(text: str, words: str) -> None:
    reply = Reply(500, body=f"An unexpected error occurred in the server {text}".encode())
    assert responses.error_message(reply) == words
