"""The classes of a generated package: its topics write and read their instances."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import shop
from command import schemactl
from imported_package import imported
from topics_to_generate import ALL, GENERATE

from schemactl.classes.extraction import extract
from schemactl.codegen.package import compare, complete, pack, package_files, wheel, write
from schemactl.core.project import ClassKind
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import identity

pytestmark = pytest.mark.slow

PACKAGE = "classy_schemas"


@pytest.fixture(params=get_args(ClassKind))
def package(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ModuleType]:
    generate = replace(GENERATE, package=PACKAGE, classes=request.param)
    files = package_files(ALL, generate, release=Release.R4_0)
    write(files, tmp_path, compare(files, tmp_path))
    with imported(tmp_path, PACKAGE) as module:
        yield module


def classes_of(topic: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.shop.sales.classes.{topic}")


def test_an_instance_is_written_and_every_version_read_as_one(package: ModuleType) -> None:
    orders, order = package.topic("persistent://shop/sales/orders"), classes_of("orders").Order
    instance = order(id=1, customer=2)
    payload = orders.encode_one(instance)
    assert orders.decode_one(payload) == {"id": 1, "customer": 2, "tags": {}, "größe": "\"'\\ M"}
    assert orders.decode_as(order, payload) == instance
    oldest = orders.encode_one({"id": 1, "customer_id": 2}, 0)
    assert orders.decode_as(order, oldest, 0) == instance
    (version,) = (version for version in orders.codec.versions if version.number == 2)
    info = SchemaInfo(SchemaType.AVRO, version.schema.text.encode())
    assert identity(extract(order, release=Release.R4_0)) == identity(info)


def test_json_and_the_halves_of_key_value_have_classes_and_nothing_else_has(package: ModuleType) -> None:
    views, view = package.topic("persistent://shop/sales/views"), classes_of("views").Order
    assert json.loads(views.encode_one(view(id=3))) == {"id": 3}
    stock, order = package.topic("persistent://shop/sales/stock"), classes_of("stock").Order
    payload = stock.encode_one({"key": "a", "value": order(id=1, customer_id=2)})
    assert stock.decode_one(payload) == {"key": "a", "value": {"id": 1, "customer_id": 2}}
    assert stock.decode_as(order, payload) == order(id=1, customer_id=2)
    levels, key = package.topic("persistent://shop/sales/stock-levels"), classes_of("stock_levels").Order
    assert levels.encode_key({"key": key(id=1, customer_id=2), "value": 5}) == b"\x02\x04"
    for topic in ("notes", "clicks", "bills", "plain"):
        with pytest.raises(ModuleNotFoundError):
            classes_of(topic)


def test_a_packed_package_brings_what_its_classes_need(tmp_path: Path) -> None:
    kinds: tuple[ClassKind, ...] = get_args(ClassKind)
    for kind in kinds:
        generate = replace(GENERATE, package=PACKAGE, classes=kind)
        files = complete(package_files(ALL, generate, release=Release.R4_0), PACKAGE, ALL)
        package_wheel = wheel(files, PACKAGE, ALL, tip=None, version="1")
        (metadata,) = (text for name, text in package_wheel.files.items() if name.endswith("METADATA"))
        assert ("Requires-Dist: pydantic" in metadata) is (kind == "pydantic")
        pack(files, tmp_path / "packed.zip")
        script = (
            f"import sys; sys.path.insert(0, {str(tmp_path / 'packed.zip')!r})\n"
            f"from {PACKAGE}.shop.sales.orders import ORDERS\n"
            f"from {PACKAGE}.shop.sales.classes.orders import Order\n"
            "print(ORDERS.decode_as(Order, ORDERS.encode_one(Order(id=1, customer=2))).customer)\n"
            "print(any(name.partition('.')[0] == 'schemactl' for name in sys.modules))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout == "2\nFalse\n"


def test_generate_writes_classes_where_the_project_or_the_command_says_so(tmp_path: Path) -> None:
    work = shop.make(tmp_path)
    orders = work / "generated/shop_schemas/shop/sales/classes/orders.py"
    schemactl(work, "generate", "--classes", "pydantic")
    assert "class Order(BaseModel):" in orders.read_text()
    assert (
        "stale: generated/shop_schemas/shop/sales/classes/orders.py"
        in schemactl(work, "generate", "--check", code=100).out
    )
    project = work / "schemactl.yaml"
    project.write_text(project.read_text() + "  classes: dataclass\n")
    schemactl(work, "generate")
    assert "@dataclass(kw_only=True)\nclass Order:" in orders.read_text()
    schemactl(work, "generate", "--check")
    oldest = schemactl(work, "generate", "orders@0", "--classes", "dataclass").out
    assert "The records of persistent://shop/sales/orders, version 0." in oldest
    compile(oldest, "orders", "exec")
    assert "is PROTOBUF_NATIVE, and no record of Avro's" in schemactl(work, "generate", "clicks", code=1).err
    assert "one version alone is for --classes" in schemactl(work, "generate", "orders@0", "--check", code=64).err
