"""The generated package: what it holds, and that it works where nothing else is."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from topics_to_generate import ALL, GENERATE, ODD, ODD_TEXTS, ORDERS, approved

import schemactl
from schemactl.codec import CodecUnavailable, Unreadable
from schemactl.codegen.files import compare, pack, write
from schemactl.codegen.package import package_files
from schemactl.errors import SchemactlError
from schemactl.model import Generate, Release, SchemaInfo, SchemaType

pytestmark = pytest.mark.slow

SOURCE = Path(schemactl.__file__).parent
ORDERS_FILE = "shop_schemas/shop/sales/orders.py"


def files_of(topics: object = ALL, **options: object) -> Mapping[str, str]:
    return package_files(topics, GENERATE, release=Release.R4_0, **options)  # type: ignore[arg-type]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    write(files_of(), tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("shop_schemas")
    for name in [name for name in sys.modules if name.split(".")[0] == "shop_schemas"]:
        del sys.modules[name]


def test_a_topic_s_module_is_found_by_its_name(package: ModuleType) -> None:
    orders = package.topic("persistent://shop/sales/orders")
    assert orders.__name__ == "shop_schemas.shop.sales.orders"
    assert orders.TOPIC == "persistent://shop/sales/orders"
    assert package.topic("persistent://shop/sales/orders-partition-12") is orders
    with pytest.raises(KeyError, match="no topic of the package is called orders: TOPICS has the full names"):
        package.topic("orders")
    assert package.TOPICS["persistent://shop/sales/stock-levels"] == "shop_schemas.shop.sales.stock_levels"


def test_every_version_is_read_into_the_reader(package: ModuleType) -> None:
    orders = package.topic("persistent://shop/sales/orders")
    assert [(version.number, version.commit) for version in orders.VERSIONS] == [
        (number, f"{number:040x}") for number in range(3)
    ]
    payload = orders.encode_one({"id": 1, "customer_id": 2}, 0)
    assert orders.decode_one(payload, 0) == {"id": 1, "customer": 2, "tags": {}, "größe": "\"'\\ M"}
    for version, info in zip(orders.VERSIONS, ORDERS, strict=True):
        assert json.loads(version.schema.text) == json.loads(info.schema)
    assert orders.read_as(0).decode_one(payload, 0) == {"id": 1, "customer_id": 2}
    assert orders.read_as(0) is orders.read_as(0)
    orders.validate(payload, 0)
    with pytest.raises(Unreadable, match="1 bytes follow the value"):
        orders.validate(payload + b"x", 0)


def test_struct_and_columns_say_the_same(package: ModuleType) -> None:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    from schemactl.spark.arrow_types import struct_of

    def all_nullable(kind: Any) -> Any:
        match kind:
            case StructType():
                return StructType([StructField(part.name, all_nullable(part.dataType)) for part in kind])
            case ArrayType():
                return ArrayType(all_nullable(kind.elementType))
            case MapType():
                return MapType(kind.keyType, all_nullable(kind.valueType))
        return kind

    names = [name for name in package.TOPICS if not name.endswith("/bills")]
    assert len(names) == len(ALL) - 1
    for name in names:
        module = package.topic(name)
        assert (name, all_nullable(module.STRUCT)) == (name, struct_of(module.CODEC.columns))


def test_a_type_without_a_codec_says_so(package: ModuleType) -> None:
    bills = package.topic("persistent://shop/sales/bills")
    assert "no codec for PROTOBUF (without `proto:` nothing describes its payloads)" in bills.__doc__
    assert not hasattr(bills, "STRUCT")
    with pytest.raises(CodecUnavailable, match="PROTOBUF"):
        bills.decode_one(b"")


def test_the_reader_is_the_text_at_the_tip_or_what_the_topic_pins() -> None:
    one = approved("orders", ORDERS[:1])
    edited = json.dumps(json.loads(ORDERS[0].schema) | {"doc": "said later"})
    tip = replace(one, topic=replace(one.topic, schema=SchemaInfo(SchemaType.AVRO, edited.encode())))
    module = files_of([tip])[ORDERS_FILE]
    assert "READER = Definition(" in module
    assert module.count("said later") == 1
    assert "READER = VERSIONS[0].schema" in files_of([one])[ORDERS_FILE]
    pinned = files_of([approved("orders", ORDERS, reader=1)])[ORDERS_FILE]
    assert "READER = VERSIONS[1].schema" in pinned
    assert "read as version 1" in pinned


def test_defaults_of_json_are_applied_where_the_project_file_says_so() -> None:
    files = package_files(ALL, replace(GENERATE, json_defaults=True), release=Release.R4_0)
    views = files["shop_schemas/shop/sales/views.py"]
    assert "CODEC = Codec(VERSIONS, reader=READER, options=Options(json_defaults=True))" in views
    assert "json_defaults" not in files[ORDERS_FILE]


def test_odd_definitions_are_embedded_as_they_are() -> None:
    for one, text in zip(ODD, ODD_TEXTS, strict=True):
        (module,) = (text for name, text in files_of([one]).items() if "/odd_" in name)
        found: dict[str, Any] = {}
        exec(compile(module, "odd", "exec"), found)  # noqa: S102  our own text
        assert found["TOPIC"] == str(one.topic.name)
        info = one.versions[0].info
        assert info is not None
        assert (text, json.loads(found["VERSIONS"][0].schema.text)) == (text, json.loads(info.schema))


USER = """
from shop_schemas import TOPICS, topic
from shop_schemas.shop.sales import orders, stock_levels

def customer(payload: bytes, version: int) -> str:
    orders.CODEC.validate(payload, version)
    return str(orders.decode_one(payload, version)["customer"])

written: bytes | None = orders.encode_one({"id": 1, "customer_id": 2}, 0)
key: bytes | None = stock_levels.encode_key({"key": None, "value": 1})
print(orders.STRUCT, orders.VERSIONS[0].commit, topic(TOPICS[orders.TOPIC]).__name__)
"""


def test_the_package_and_who_uses_it_are_typed_strictly(tmp_path: Path) -> None:
    write(files_of([*ALL, *ODD]), tmp_path)
    (tmp_path / "user.py").write_text(USER)
    # The types of Spark and Arrow take most of a minute to read, and are nothing to these files.
    alone = ["--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *alone, "-p", "shop_schemas", "-m", "user"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": f"{tmp_path}:{SOURCE.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_ruff_leaves_the_text_as_it_is(tmp_path: Path) -> None:
    write(files_of([*ALL, *ODD], vendor=True), tmp_path)
    for check in (["format", "--check"], ["check", "--select=E,F,I,D,ANN"]):
        command = [sys.executable, "-m", "ruff", *check, "--isolated", "--quiet", str(tmp_path)]
        assert subprocess.run(command, check=False).returncode == 0


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    assert files_of() == files_of(reversed(ALL))
    for name in ("one.zip", "other.zip"):
        pack(files_of(vendor=True), tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("schemactl", "pyspark", "fastavro"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
sys.path.insert(0, sys.argv[1])
import pyarrow as pa
import shop_schemas
orders = shop_schemas.topic("persistent://shop/sales/orders")
payload = orders.encode_one({"id": 1, "customer_id": 2}, 0)
decoded = orders.decode_batch(pa.array([payload, b"\\x80"]), pa.array([0, 0]))
print(decoded.rows.to_pylist()[0]["customer"], decoded.errors.to_pylist())
print(sorted(name for name in sys.modules if name.startswith(("schemactl", "pyspark", "fastavro"))))
"""


def test_a_packed_package_with_its_run_time_needs_no_schemactl(tmp_path: Path) -> None:
    archive = tmp_path / "shop_schemas.zip"
    pack(files_of(vendor=True), archive)
    command = [sys.executable, "-I", "-c", ALONE, str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["2 [None, 'id, byte 0: the message ends inside a number']", "[]"]


def test_the_run_time_is_carried_unchanged() -> None:
    files = files_of(vendor=True)
    for path in (SOURCE / "generated.py", *SOURCE.glob("codec/*.py"), *SOURCE.glob("spark/*.py")):
        name = f"shop_schemas/_runtime/{path.relative_to(SOURCE).as_posix()}"
        assert files[name].endswith(path.read_text(encoding="utf-8"))
    license_text = (SOURCE.parent / "LICENSE").read_text(encoding="utf-8")
    assert files["shop_schemas/_runtime/LICENSE"].endswith(license_text)


def test_what_is_no_longer_generated_is_removed_and_nothing_else(tmp_path: Path) -> None:
    assert write(files_of(), tmp_path)
    assert not compare(files_of(), tmp_path)
    own = tmp_path / "shop_schemas" / "shop" / "own.py"
    own.write_text("print('mine')\n")
    compiled = tmp_path / "shop_schemas" / "shop" / "sales" / "__pycache__"
    compiled.mkdir()
    (compiled / "bills.cpython-311.pyc").write_bytes(b"")
    difference = write(files_of([]), tmp_path)
    assert "shop_schemas/shop/sales/orders.py" in difference.extra
    write(files_of(vendor=True), tmp_path)
    assert (tmp_path / "shop_schemas/_runtime/LICENSE").is_file()
    write(files_of([]), tmp_path)
    assert not (tmp_path / "shop_schemas/_runtime").exists()
    assert own.exists()
    assert not (tmp_path / "shop_schemas" / "shop" / "sales").exists()


def test_a_file_of_one_s_own_is_not_overwritten(tmp_path: Path) -> None:
    own = tmp_path / "shop_schemas" / "shop" / "sales" / "orders.py"
    own.parent.mkdir(parents=True)
    own.write_text("print('mine')\n")
    with pytest.raises(SchemactlError, match=r"left alone: shop_schemas/shop/sales/orders\.py"):
        write(files_of(), tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]


def test_topics_that_have_no_columns_are_named_together() -> None:
    node = b'{"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}'
    wide = b'{"type": "bytes", "logicalType": "decimal", "precision": 40}'
    nodes, wides = (
        approved(name, (SchemaInfo(SchemaType.AVRO, text),))
        for name, text in (("nodes", node), ("wide", wide))
    )
    with pytest.raises(SchemactlError, match=r"shop/sales/nodes: the record N is recursive(.|\n)*") as raised:
        files_of([nodes, wides])
    assert "shop/sales/wide: a decimal of 40 digits" in str(raised.value)
    assert "recursion_depth=3" in files_of([nodes], recursion_depth=3)["shop_schemas/shop/sales/nodes.py"]


def test_a_package_that_cannot_be_imported_is_refused() -> None:
    with pytest.raises(SchemactlError, match="cannot import"):
        package_files(ALL, Generate("shop-schemas"), release=Release.R4_0)
