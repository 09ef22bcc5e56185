"""The Python types of rows: decoded rows conform to them, and a type checker understands them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import count
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker
from topics_to_generate import ALL, CLICK, GENERATE, ODD, make_approved, make_info

import schemactl
from schemactl.codec import Unreadable, Unwritable
from schemactl.codegen.package import package_files
from schemactl.codegen.package_folder import compare, write
from schemactl.codegen.topics import PackageTopic
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.key_value import join
from schemactl.formats.protobuf import counterexample
from schemactl.generated import GeneratedTopic

SOURCE = Path(schemactl.__file__).parent
NUMBERS = count()


class Package:
    """The modules of topics, which are run without being written."""

    def __init__(self, *topics: PackageTopic, spark: str = "4.1", recursion_depth: int = 0) -> None:
        self.files = package_files(
            topics, replace(GENERATE, spark=spark), release=Release.R4_0, recursion_depth=recursion_depth
        )

    def get_topic(self, name: str) -> tuple[GeneratedTopic[Any], Any]:
        """Return the topic and the type of its rows."""
        folder = "shop_schemas/shop/sales"
        # Types are resolved in the module that defines them.
        module = ModuleType(f"generated_{name}_{next(NUMBERS)}")
        sys.modules[module.__name__] = module
        text = self.files[f"{folder}/{name}.py"].replace("shop_schemas._runtime", "schemactl.generated")
        exec(compile(text, name, "exec"), module.__dict__)  # noqa: S102  our own text
        generated_topic = module.__dict__[name.upper()]
        texts = {path.rpartition("/")[2]: text for path, text in self.files.items() if "/schemas/" in path}
        generated_topic._read_text = lambda file: texts[file] if file else ""
        (row,) = get_args(get_type_hints(module)[name.upper()])
        return generated_topic, row


def has_type(value: Any, kind: Any) -> bool:
    """Return whether the value has the type."""
    if kind is None or kind is NoneType:
        return value is None
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(has_type(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    if origin is list:
        return type(value) is list and all(has_type(item, arguments[0]) for item in value)
    if origin is dict:
        entries = value.items() if type(value) is dict else [(None, None)]
        return all(has_type(key, arguments[0]) and has_type(item, arguments[1]) for key, item in entries)
    if is_typeddict(kind):
        fields = get_type_hints(kind)
        return (
            type(value) is dict
            and value.keys() == fields.keys()
            and all(has_type(value[name], field_type) for name, field_type in fields.items())
        )
    return type(value) is kind


@EXAMPLES
@given(st.integers(0, 2**32))
def test_what_is_decoded_of_any_avro_schema_conforms(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    info = SchemaInfo(SchemaType.AVRO, json.dumps(schema).encode())
    (topic, row), (later, later_row) = (
        Package(make_approved("any", (info,)), spark=spark).get_topic("any") for spark in ("4.1", "4.2")
    )
    for _ in range(5):
        payload = topic.encode_one(maker.draw_value(schema))
        assert has_type(topic.decode_one(payload), row)
        # Up to Spark 4.1, times of day are numbers, but not every number is a time of day.
        with suppress(Unreadable):
            assert has_type(later.decode_one(payload), later_row)


@pytest.mark.parametrize(
    ("kind", "value", "row"),
    [
        ("INT8", 1, int),
        ("DOUBLE", 1.5, float),
        ("BOOLEAN", True, bool),
        ("STRING", "x", str),
        ("BYTES", b"x", bytes),
        *((name, 1_000_000, None) for name in ("DATE", "TIMESTAMP", "INSTANT", "LOCAL_DATE_TIME")),
        *((name, 1_000_000, None) for name in ("TIME", "LOCAL_TIME", "LOCAL_DATE")),
    ],
)
@pytest.mark.parametrize("spark", ["4.1", "4.2"])
def test_what_is_decoded_of_a_primitive_conforms(kind: str, value: Any, row: Any, spark: str) -> None:
    topic, row_type = Package(make_approved("any", (SchemaInfo(SchemaType[kind]),)), spark=spark).get_topic("any")
    value = time(12) if row_type is time else value
    with suppress(Unwritable):
        decoded = topic.decode_one(topic.encode_one(value))
        assert has_type(decoded, row_type)
    assert row in (None, row_type)


def test_what_is_decoded_of_protobuf_and_pairs_conforms() -> None:
    pair = join(key=CLICK, value=make_info({"name": "id", "type": "long"}), encoding="INLINE")
    package = Package(make_approved("clicks", (CLICK,)), make_approved("pairs", (pair,)))
    clicks, row = package.get_topic("clicks")
    element = {"tag": "a", "parts": {1: b"x"}}
    most = {
        "id": 2**64 - 1,
        "x": 1,
        "kind": "RIGHT",
        "path": [element],
        "by_tag": {"b": element},
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "held": timedelta(seconds=1),
        "key": "k",
        "g": 1.5,
        "h": True,
        "a": 1,
        "b": 2,
        "c": 3,
        "d": 4,
        "e": 5,
        "f": 6,
        "i": 7,
        "j": 8,
    }
    payloads = [*counterexample.list_messages(CLICK.schema), b"", clicks.encode_one({**clicks.decode_one(b""), **most})]
    values = [clicks.decode_one(payload) for payload in payloads]
    assert values[-1]["path"] == [element]
    assert [value for value in values if not has_type(value, row)] == []
    pairs, row = package.get_topic("pairs")
    for value in ({"key": None, "value": {"id": 1}}, {"key": values[0], "value": None}):
        assert has_type(pairs.decode_one(pairs.encode_one(value)), row)


NODE = b"""{"type": "record", "name": "Node", "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Node"]},
  {"name": "children", "type": {"type": "array", "items": "Node"}}]}"""


def test_a_recursive_record_is_as_deep_as_its_columns() -> None:
    info = SchemaInfo(SchemaType.AVRO, NODE)
    leaf: dict[str, Any] = {"id": 3, "next": None, "children": []}
    deep = {"id": 1, "next": {**leaf, "next": leaf}, "children": [leaf]}
    whole, _ = Package(make_approved("nodes", (info,)), recursion_depth=5).get_topic("nodes")
    with suppress(Unwritable):
        payload = whole.encode_one({**deep, "next": {**deep, "next": None}})
    for depth in (1, 2, 3):
        topic, row = Package(make_approved("nodes", (info,)), recursion_depth=depth).get_topic("nodes")
        decoded = topic.decode_one(payload)
        assert ("next" in decoded) == (depth > 1)
        assert has_type(decoded, row)


def test_the_types_name_what_the_schema_names() -> None:
    inner = {"type": "record", "name": "Money", "fields": [{"name": "amount", "type": "int"}]}
    other = {**inner, "namespace": "old", "fields": [{"name": "amount", "type": "long"}, {"name": "b", "type": "int"}]}
    kinds = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    info = make_info(
        {"name": "price", "type": inner},
        {"name": "again", "type": ["null", "Money"]},
        {"name": "former", "type": other},
        {"name": "kind", "type": ["null", kinds]},
        {"name": "either", "type": ["int", "string"]},
    )
    text = Package(make_approved("orders", (info,))).files["shop_schemas/shop/sales/orders.py"]
    for line in (
        "class Money(TypedDict):\n    amount: int\n",
        "class Money2(TypedDict):\n    amount: int\n    b: int\n",
        "    again: Money | None\n",
        "    former: Money2\n",
        '    kind: Literal["A", "B"] | None\n',
        "    either: OrderEither\n",
    ):
        assert line in text


STRANGE = (
    *("class", "from", "None", "self", "__private", "größe", "int", "str", "date", "Literal", "Topic", "SCHEMA"),
    *("ORDERS", "Order", "list", "_", "x" * 200),
)
NAMED = ("Topic", "class", "TypedDict", "date", "STRANGE", "_1")


def make_strange_record(name: str) -> dict[str, Any]:
    fields = [
        *({"name": field, "type": "int"} for field in STRANGE),
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "many", "type": {"type": "array", "items": "string"}},
    ]
    return {"type": "record", "name": name, "fields": fields}


def make_topics() -> list[PackageTopic]:
    """Return topics of every schema type, with strange names, recursion and many fields."""
    of_names = make_info(
        *({"name": f"f{number}", "type": make_strange_record(name)} for number, name in enumerate(NAMED))
    )
    wide = make_info(*({"name": f"c{number}", "type": ["null", "long"], "default": None} for number in range(2_000)))
    primitives = [SchemaInfo(schema_type) for schema_type in SchemaType if schema_type.name not in NOT_PRIMITIVE]
    return [
        *(*ALL, *ODD),
        make_approved("strange", (of_names,)),
        make_approved("wide", (wide,)),
        make_approved("nodes", (SchemaInfo(SchemaType.AVRO, NODE),)),
        *(make_approved(f"a-{info.type.name.lower()}", (info,)) for info in primitives),
    ]


NOT_PRIMITIVE = {"AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE"}

USER = """\
from pyspark.sql import Column, DataFrame
from shop_schemas import TARGET, TOPICS, topic
from shop_schemas._runtime import CodecUnavailable, Unreadable
from shop_schemas.shop.sales.a_string import A_STRING
from shop_schemas.shop.sales.clicks import CLICKS, Click
from shop_schemas.shop.sales.nodes import NODES
from shop_schemas.shop.sales.orders import ORDERS, SCHEMA, Order
from shop_schemas.shop.sales.plain import PLAIN
from shop_schemas.shop.sales.stock_levels import STOCK_LEVELS
from shop_schemas.shop.sales.strange import STRANGE
from shop_schemas.shop.sales.views import VIEWS
from shop_schemas.shop.sales.wide import WIDE


def customer(payload: bytes, version: int) -> int:
    try:
        ORDERS.validate(payload, version)
    except (Unreadable, CodecUnavailable):
        return 0
    return ORDERS.decode_one(payload, version)["customer"]


new: Order = {"id": 1, "customer": 2, "tags": {"a": ["b"]}, "größe": "x"}
written: bytes | None = ORDERS.encode_one(new)
old: bytes | None = ORDERS.encode_one({"id": 1, "customer_id": 2}, 0)
pair = STOCK_LEVELS.decode_one(b"", 0, b"key")
key: bytes | None = STOCK_LEVELS.encode_key({"key": pair["key"], "value": 1})
number: int | None = PLAIN.decode_one(b"")
click: Click = CLICKS.decode_one(b"")
text: str = A_STRING.decode_one(b"") + str(number)
view: int = VIEWS.decode_one(b"{}")["id"]
node = NODES.decode_one(b"")["next"]
deeper: int = node["id"] if node else 0
odd = STRANGE.decode_one(b"")["f1"]
odder: int = odd["class"] + odd["from"] + odd["__private"] + odd["day"].year
last: int | None = WIDE.decode_one(b"")["c1999"]


def read(messages: DataFrame) -> tuple[DataFrame, Column]:
    return ORDERS.decode(messages, mode="FAILFAST"), ORDERS.decode(messages["value"], "__schemaVersion")


print(SCHEMA, ORDERS.struct, ORDERS.commit(0), topic(TOPICS[ORDERS.name]).name, TARGET, click["path"])
"""

WRONG = {
    'ORDERS.decode_one(b"")["customr"]': 'TypedDict "Order" has no key "customr"',
    'number: str = VIEWS.decode_one(b"")["id"]': 'expression has type "int", variable has type "str"',
    'ORDERS.encode_one({"id": "x"})': 'No overload variant of "encode_one"',
    "ORDERS.nothing": 'has no attribute "nothing"',
}


def run_mypy(folder: Path, *arguments: str) -> str:
    # Reading the types of Spark and Arrow takes most of a minute, and these files do not depend on them.
    options = ["--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *options, *arguments],
        cwd=folder,
        env={**os.environ, "MYPYPATH": f"{folder}:{SOURCE.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.slow
def test_the_package_and_who_uses_it_are_typed_strictly(tmp_path: Path) -> None:
    files: Mapping[str, str] = package_files(make_topics(), GENERATE, release=Release.R4_0, recursion_depth=3)
    write(files, tmp_path, compare(files, tmp_path))
    (tmp_path / "user.py").write_text(USER)
    imports = "\n".join(line for line in USER.splitlines() if line.startswith("from"))
    (tmp_path / "wrong.py").write_text("\n".join([imports, *WRONG]))
    output = run_mypy(tmp_path, "-p", "shop_schemas", "-m", "user", "-m", "wrong")
    errors = [line for line in output.splitlines() if "error:" in line]
    assert [error for error in errors if not error.startswith("wrong.py:")] == []
    assert len(errors) == len(WRONG), output
    assert [message for error, message in zip(errors, WRONG.values(), strict=True) if message not in error] == []


def test_every_module_can_be_run() -> None:
    package = Package(*make_topics(), recursion_depth=3)
    for name in ("strange", "wide", "nodes", "clicks", "odd_3", "plain"):
        topic, row = package.get_topic(name)
        assert topic.name.endswith(name.replace("_", "-"))
        assert row
