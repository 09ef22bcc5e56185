"""`decode` and `struct`: the recorded rows of Spark through them, and single messages of an approved topic."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import shop
from command import schemactl
from scratch import Scratch

from schemactl.codec import Codec, Definition, Version
from schemactl.codec.values import decode_text

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).parent.parent / "corpus"
Row = dict[str, Any]


def read_corpus(name: str) -> list[Row]:
    with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def answer_lines(requests: Iterable[Row | str], *arguments: str, status: int = 0) -> list[Row]:
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    printed = shop.run(Path(), *arguments, stdin="\n".join(lines), code=status)
    assert printed.err == ""
    return [json.loads(line) for line in printed.out.splitlines()]


@pytest.fixture(scope="module")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop.make(tmp_path_factory.mktemp("decode"))


@pytest.mark.parametrize("spark", ["4.1", "4.3"])
def test_types_are_those_spark_recorded(spark: str) -> None:
    cases = read_corpus("spark_types_public")
    requests = [
        {"id": case["id"], "type": "AVRO", "schema": case["avro"], "options": case.get("options")} for case in cases
    ]
    for case, answer in zip(cases, answer_lines(requests, "struct", "--spark", spark), strict=True):
        newer = spark == "4.3"
        expected = case["struct_430"] if newer and "struct_430" in case else case["struct"]
        assert (answer["id"], answer["struct"]) == (case["id"], expected)
        if case["error"] is None:
            assert (answer["nullable"], answer["error"]) == (case["nullable"], None)
        else:
            assert (answer["id"], answer["error"]) == (case["id"], case["error"])


def test_definitions_of_every_type_have_a_struct() -> None:
    definitions: list[Row] = [
        {"type": "AVRO", "schema": "string"},
        {"type": "AVRO", "schema": '"string"'},
        {"type": "INT64"},
        {"type": "JSON", "schema": {"type": "record", "name": "R", "fields": []}},
        {"type": "EXTERNAL"},
        {"type": "NOPE"},
        {"type": "AVRO", "schema": 1},
        *(
            {"type": "AVRO", "schema": "string", "options": {"recursiveFieldMaxDepth": depth}}
            for depth in ("x", 2.5, True)
        ),
    ]
    answers = answer_lines(
        [{"id": number, **definition} for number, definition in enumerate(definitions)], "struct", status=1
    )
    assert [answer.get("struct") for answer in answers[:4]] == [
        "string",
        "string",
        {"type": "struct", "fields": [{"name": "value", "type": "long", "nullable": False, "metadata": {}}]},
        {"type": "struct", "fields": []},
    ]
    assert all("error" in answer for answer in answers[4:])
    failed = shop.run(Path(), "struct", "--spark", "four", code=64)
    assert "--spark: 'four' is not a Spark release" in failed.err


REJECTED = {"error": "..."}


def test_messages_are_those_spark_recorded() -> None:
    cases = read_corpus("spark_values_public")
    answers = answer_lines(
        ({key: case.get(key) for key in ("id", "writer", "reader", "messages_b64")} for case in cases),
        "decode",
        "--jsonl",
        status=1 if any("error" in case for case in cases) else 0,
    )
    for case, answer in zip(cases, answers, strict=True):
        assert answer["id"] == case["id"]
        if "error" in case:
            assert "error" in answer
            continue
        for row, expected in zip(answer["rows"], case["rows"], strict=True):
            is_rejected = isinstance(expected, dict) and set(expected) == {"error"}
            assert (isinstance(row, dict) and set(row) == {"error"}) == is_rejected
            if not is_rejected:
                assert repair_text(row, expected) == expected


def test_a_union_that_is_the_whole_message_is_read_where_from_avro_reads_it() -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    # The rows of Spark 4.1.1, except that a null number, which Spark returns as 0, stays null.
    expected: list[tuple[Any, bytes, Any]] = [
        (["null", "int"], b"\0", None),
        (["null", "int"], b"\2\2", 1),
        (["null", "int", "long"], b"\0", None),
        (["null", {"type": "long", "logicalType": "timestamp-millis"}], b"\0", None),
        (["null", "string"], b"\2\2a", "a"),
        (["null", "string"], b"\0", REJECTED),
        (["null", "bytes"], b"\0", REJECTED),
        (["null", {"type": "bytes", "logicalType": "decimal", "precision": 4}], b"\0", REJECTED),
        (["null", {"type": "array", "items": "int"}], b"\0", REJECTED),
        (["null", {"type": "array", "items": "int"}], b"\2\0", []),
        (["int", "string"], b"\0\2", REJECTED),
        ([record], b"\0\2", REJECTED),
        (record, b"\2", {"a": 1}),
        (["null"], b"\0", {}),
        (["null", record | {"fields": []}], b"\0", {}),
    ]
    lines = [
        {"writer": kind, "reader": kind, "messages_b64": [base64.b64encode(payload).decode()]}
        for kind, payload, _ in expected
    ]
    read_corpus = [answer["rows"][0] for answer in answer_lines(lines, "decode", "--jsonl")]
    are_rejected = [isinstance(row, dict) and row.keys() == {"error"} for row in read_corpus]
    assert [REJECTED if is_rejected else row for is_rejected, row in zip(are_rejected, read_corpus, strict=True)] == [
        answer for _, _, answer in expected
    ]


def repair_text(value: Any, expected: Any) -> Any:
    """Return the row with Spark's raw bytes in place of text that is not UTF-8, which `decode` prints with U+FFFD."""
    if isinstance(expected, dict) and "invalid_utf8" in expected:
        raw = base64.b64decode(expected["invalid_utf8"])
        return expected if value == decode_text(raw) else value
    if isinstance(expected, dict) and isinstance(value, dict):
        return {key: repair_text(item, expected.get(key)) for key, item in value.items()}
    if isinstance(expected, list) and isinstance(value, list) and len(value) == len(expected):
        return [repair_text(item, expected_item) for item, expected_item in zip(value, expected, strict=True)]
    return value


def test_lines_that_cannot_be_read_are_answered() -> None:
    requests: list[Row | str] = [
        {"id": 1, "type": "STRING", "messages_b64": ["YQ==", None]},
        {"id": 2, "type": "STRING", "messages_b64": ["?"]},
        {"id": 3, "writer": {"type": "nope"}, "reader": "string", "messages_b64": []},
        {"id": 4, "type": "EXTERNAL", "messages_b64": []},
        {"id": 5, "writer": "string", "reader": "string"},
        "no JSON",
    ]
    first, *others = answer_lines(requests, "decode", "--jsonl", status=1)
    assert first["rows"][0] == "a"
    assert "no payload" in first["rows"][1]["error"]
    assert all("error" in answer for answer in others)


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE"])
def test_what_a_line_lacks_is_called_missing(kind: str) -> None:
    bare: list[Row] = [{"id": 1, "type": kind, "messages_b64": []}, {"id": 2, "type": "STRING"}]
    no_writer, no_messages = answer_lines([*bare], "decode", "--jsonl", status=1)
    assert no_writer["error"].startswith(f"`writer` is missing: give the definition of {kind}, ")
    assert no_messages["error"].startswith("`messages_b64` is missing: ")
    no_schema, no_type = answer_lines([{"id": 1, "type": kind}, {"id": 2, "schema": "int"}], "struct", status=1)
    assert no_schema["error"].startswith(f"`schema` is missing: give the definition of {kind}, ")
    assert no_type["error"].startswith("`type` is missing: ")


DEEP = '{"type": "array", "items": ' * 990 + '"int"' + "}" * 990
FIXED = {"type": "fixed", "name": "F", "logicalType": "decimal", "precision": 9}
SELF = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
PAIR = {"key": "", "value": ORDER}
HALVES = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}
CLICK = {
    "proto": 'syntax = "proto3"; message Click { int32 at = 1; map<string, bool> seen = 2; uint64 id = 3; Click last = 4; }',
    "message": "Click",
}


def make_pair(key: bytes | None, value: bytes | None) -> bytes:
    """Return an INLINE payload, as org.apache.pulsar.common.schema.KeyValue.encode makes it."""
    return b"".join(struct.pack(">i", -1 if part is None else len(part)) + (part or b"") for part in (key, value))


def test_payloads_of_every_kind_are_read() -> None:
    def make_line(kind: str, definition: Any, payloads: list[bytes | None], **more: Any) -> Row:
        encoded_payloads = [payload if payload is None else base64.b64encode(payload).decode() for payload in payloads]
        return {"type": kind, "writer": definition, "reader": definition, "messages_b64": encoded_payloads, **more}

    separated = {**HALVES, "kv.encoding.type": "SEPARATED"}
    click = b"\x08\x96\x01\x12\x05\x0a\x01k\x10\x01\x18" + b"\xff" * 9 + b"\x01"
    lines = [
        make_line("KEY_VALUE", PAIR, [make_pair(b"k", b"\x02"), make_pair(None, b"\x02")], properties=HALVES),
        make_line("KEY_VALUE", PAIR, [b"\x02", None], properties=separated, keys_b64=["aw==", None]),
        make_line("PROTOBUF_NATIVE", CLICK, [click, b""], options={"recursiveFieldMaxDepth": "1"}),
        make_line("PROTOBUF", CLICK, [click], options={"recursiveFieldMaxDepth": 1}),
        make_line("JSON", ORDER, [b'{"id": 7}', b'{"id": 7, "more": 1}']),
        make_line("STRING", None, [b"\xe9"], properties={"__charset": "ISO-8859-1"}),
        make_line("DATE", None, [struct.pack(">q", -1)]),
        make_line("LOCAL_DATE_TIME", None, [struct.pack(">qq", 1, 1_000)]),
    ]
    clicked = {"at": 150, "seen": [["k", True]], "id": str(2**64 - 1)}
    answers = answer_lines(lines, "decode", "--jsonl")
    assert [answer["rows"] for answer in answers] == [
        [{"key": "k", "value": {"id": 1}}, {"key": None, "value": {"id": 1}}],
        [{"key": "k", "value": {"id": 1}}, {"key": None, "value": None}],
        [clicked, {"at": 0, "seen": [], "id": "0"}],
        [clicked],
        [{"id": 7}, {"id": 7}],
        ["é"],
        [-1],
        [86_400_000_001],
    ]
    structs = answer_lines(({**make_line, "schema": make_line["writer"]} for make_line in lines), "struct")
    names = [[field["name"] for field in answer["struct"]["fields"]] for answer in structs]
    assert names == [["key", "value"]] * 2 + [["at", "seen", "id"]] * 2 + [["id"]] + [["value"]] * 3


def test_parts_of_a_pair_may_have_every_form_of_a_definition() -> None:
    properties = {"key.schema.type": "AVRO", "value.schema.type": "PROTOBUF_NATIVE"}
    payload = base64.b64encode(make_pair(b"\x02", b"\x08\x05")).decode()
    answers = []
    for key in ({"type": "long"}, '{"type": "long"}', "long", '"long"'):
        halves = {"key": key, "value": {"proto": 'syntax = "proto3"; message A { int32 at = 1; }', "message": "A"}}
        line = {"type": "KEY_VALUE", "writer": halves, "reader": halves, "properties": properties}
        [answer] = answer_lines([{**line, "messages_b64": [payload]}], "decode", "--jsonl")
        answers.append(answer["rows"])
    assert answers == [[{"key": 1, "value": {"at": 5}}]] * 4


def test_a_definition_that_java_rejects_is_rejected_in_a_pair_as_well() -> None:
    wrapped = {"type": {"type": "string"}}
    plain = {"type": "AVRO", "writer": wrapped, "reader": "string", "messages_b64": []}
    halves = {"key": "", "value": wrapped}
    pairs = {"type": "KEY_VALUE", "writer": halves, "reader": PAIR, "messages_b64": [], "properties": HALVES}
    for answer in answer_lines([plain, pairs], "decode", "--jsonl", status=1):
        assert '"type" is an object; expected the name of a type' in answer["error"]


def test_keys_of_separated_pairs_are_required() -> None:
    line = {"type": "KEY_VALUE", "writer": PAIR, "reader": PAIR, "messages_b64": ["Ag=="]}
    line["properties"] = {**HALVES, "kv.encoding.type": "SEPARATED"}
    [without, few] = answer_lines([line, {**line, "keys_b64": []}], "decode", "--jsonl", status=1)
    assert "give them as `keys_b64`" in without["error"]
    assert "`keys_b64` does not have one key for each message" in few["error"]


DEPTH = partial(dict.fromkeys, ["recursiveFieldMaxDepth"])
HOSTILE: list[Row | str] = [
    "[" * 100_000,
    '{"id": NaN}',
    '{"id": ' + "9" * 5_000 + "}",
    {"id": "x" * 1_000_000},
    {"type": None},
    {"type": []},
    {"type": "\ud800"},
    *(
        {"type": "AVRO", "schema": SELF, "writer": SELF, "reader": SELF, "options": options, "messages_b64": []}
        for options in (7, *map(DEPTH, ("x", None, [], 1e999, 10**30)))
    ),
    *(
        {"type": kind, "schema": text, "writer": text, "reader": text, "messages_b64": ["AA=="]}
        for kind in ("AVRO", "PROTOBUF_NATIVE")
        for text in (DEEP, "{", "\ud800", '{"a":' * 100_000, {"type": "fixed", "name": "F", "size": 10**30})
    ),
]


@pytest.mark.parametrize("command", [["struct"], ["decode", "--jsonl"]])
def test_hostile_lines_have_an_error_each_and_the_next_is_read(command: list[str]) -> None:
    good: Row = {"id": "good", "type": "AVRO", "schema": "int", "writer": "int", "reader": "int"}
    good |= {"messages_b64": ["Ag=="]}
    *answers, last = answer_lines([*HOSTILE, good], *command, status=1)
    assert [answer for answer in answers if not answer.get("error")] == []
    assert last.get("struct", last.get("rows")) in ("integer", [1])


def test_a_large_fixed_is_no_reason_to_count_to_its_largest_number() -> None:
    cases = {size: {**FIXED, "size": size} for size in (4, 5, 2_000, 2**28 + 1, 2**31 - 9)}
    structs = answer_lines([{"id": 1, "type": "AVRO", "schema": case} for case in cases.values()], "struct")
    # 2^28 + 1 bytes have a negative number of bits in Java's ints, which no decimal fits into.
    binary, decimal = "binary", "decimal(9,0)"
    assert [answer["struct"] for answer in structs] == [decimal, decimal, decimal, binary, binary]


def encode_order(folder: Path) -> str:
    """Return a message of version 0 of the shop's orders, in base64."""
    definition = shop.run(folder, "show", "orders@0", "--quiet").out
    codec = Codec([Version(0, Definition("AVRO", definition))])
    money = {"amount": 5, "currency": "EUR"}
    value = {"order_id": "O-1", "customer_id": 7, "status": "PAID", "total": money, "placed_at": 0, "lines": []}
    return base64.b64encode(codec.encode_one(value) or b"").decode()


def test_one_message_is_shown_with_the_commit_of_its_schema(shop_folder: Path, tmp_path: Path) -> None:
    payload = encode_order(shop_folder)
    done = shop.run(shop_folder, "decode", "orders", "--version", "0", "--base64", payload)
    assert json.loads(done.out)["order_id"] == "O-1"
    assert json.loads(done.out)["placed_at"] == "1970-01-01T00:00:00+00:00"
    assert "orders, written with version 0 (" in done.err
    path = tmp_path / "message"
    path.write_bytes(base64.b64decode(payload))
    newest = shop.run(
        shop_folder, "decode", "persistent://shop/sales/orders@5", "--version-bytes", "0" * 16, "--file", str(path)
    )
    assert json.loads(newest.out)["customer"] == 7


def test_of_a_separated_pair_it_is_said_that_the_key_was_not_given(shop_folder: Path) -> None:
    definition = json.loads(shop.run(shop_folder, "show", "carts@1", "--quiet").out)
    codec = Codec([Version(0, Definition("AVRO", json.dumps(definition["value"])))])
    cart = codec.encode_one({"visitor": "V-1", "skus": [], "coupon": None}) or b""
    payload = base64.b64encode(cart).decode()
    message = ("decode", "carts", "--version", "1", "--base64", payload)
    without_key = shop.run(shop_folder, *message)
    assert json.loads(without_key.out)["key"] is None
    assert without_key.err.endswith(
        "note: a SEPARATED KEY_VALUE has its key outside the payload, so here it is null: give it with --key-base64\n"
    )
    with_key = shop.run(shop_folder, *message, "--key-base64", base64.b64encode(b"C-1").decode())
    assert json.loads(with_key.out)["key"] == "C-1"
    assert "note" not in with_key.err


def test_a_message_that_cannot_be_read_exits_with_100_and_the_reason(shop_folder: Path) -> None:
    done = shop.run(
        shop_folder, "decode", "orders", "--version", "0", "--base64", encode_order(shop_folder)[:8], code=100
    )
    assert done.out == ""
    assert "persistent://shop/sales/orders, version 0 (" in done.err
    assert "byte" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["orders", "--base64", "AA=="], "schema version with --version or --version-bytes"),
        (["--version", "0"], "name the TOPIC"),
        (["orders", "--version", "99", "--base64", "AA=="], "has no version 99"),
        (["orders@99", "--version", "0", "--base64", "AA=="], "has no version 99"),
        (["orders", "--version", "0", "--base64", "?"], "not base64"),
        (["orders", "--version", "0", "--base64", "é"], "not base64"),
        (["orders", "--version", "0", "--file", "none"], "cannot read none"),
        (["invoices", "--version", "0", "--base64", "AA=="], "add `proto:`"),
        (["orders", "--jsonl"], "--jsonl reads everything from its lines"),
        (["--jsonl", "--json-defaults"], "--jsonl reads everything from its lines"),
    ],
)
def test_what_is_missing_is_said(shop_folder: Path, arguments: list[str], message: str) -> None:
    done = shop.run(shop_folder, "decode", *arguments, code=(1, 64))
    assert message in done.err


BEAN = '{"type": "record", "name": "R", "fields": [{"name": "isActive", "type": %s}]}'


@pytest.mark.parametrize(
    ("kind", "payload", "code", "is_noted"),
    [
        ('["null", "boolean"]', '{"active": true}', 0, True),
        ('"boolean"', '{"active": true}', 100, True),
        ('["null", "boolean"]', '{"isActive": true, "more": 1}', 0, False),
        ('["null", "boolean"]', "{}", 0, False),
    ],
)
def test_a_field_that_a_message_has_by_another_name_is_noted(
    tmp_path: Path,
    kind: str,
    payload: str,
    code: int,
    is_noted: bool,  # noqa: FBT001  a parameter of a test
) -> None:
    repository = Scratch(tmp_path / "r")
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/bean.yaml": "topic: a/b/bean\nschema: {type: JSON, definition: bean.avsc}\n",
            "topics/bean.avsc": BEAN % kind,
        }
    )
    repository.flush()
    file = tmp_path / "message"
    file.write_text(payload)
    printed = schemactl(repository, "decode", "bean", "--version", "0", "--file", str(file), code=code)
    note = "note: version 0: isActive is absent in all messages, and read as null or rejected, while the messages have the unknown name active"
    assert (note in printed.err) is is_noted


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}, None),
        ({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}, None),
        # An empty message is the only one of an empty record.
        ({"type": "record", "name": "Order", "fields": []}, {}),
    ],
)
@pytest.mark.parametrize("options", [[], ["--file", "-"]])
def test_empty_standard_input_is_named(
    tmp_path: Path, definition: Row, expected: Row | None, options: list[str]
) -> None:
    scratch = Scratch(tmp_path / "shop")
    files = {
        "schemactl.yaml": "version: 1\n",
        "namespaces/orders.yaml": "topic: shop/sales/orders\nschema:\n  type: AVRO\n  definition: orders.avsc\n",
        "namespaces/orders.avsc": json.dumps(definition),
    }
    scratch.commit(files, "Begin")
    arguments = ("decode", "orders", "--version", "0", *options)
    printed = schemactl(scratch, *arguments, code=100 if expected is None else 0)
    if expected is None:
        assert "standard input is empty, and no message of persistent://shop/sales/orders" in printed.err
        assert "  Fix: pipe the payload into the command, or give it with --file FILE or --base64 TEXT\n" in printed.err
        other = schemactl(scratch, "decode", "orders", "--version", "0", "--base64", "", code=100).err
        assert "standard input" not in other
    else:
        assert json.loads(printed.out) == expected


@pytest.mark.parametrize("arguments", [["decode", "--jsonl"], ["sample", "orders"]])
def test_missing_packages_are_named(arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("numpy", "pyarrow")]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("schemactl.codec.")]:
        monkeypatch.delitem(sys.modules, name)
    error = schemactl(tmp_path, *arguments, code=1).err
    assert "decoding needs pyarrow and numpy, which are not installed" in error
