"""`schemactl extract`: printed, written and compared definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch, declared

SHOP = """
from dataclasses import dataclass
from pydantic import BaseModel
print("the shop opens")

@dataclass
class Order:
    id: str
    total: float = 0.0

@dataclass
class Other:
    id: str

    class Inner(BaseModel):
        id: int

number = 1
"""
numbers = count()


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    """Write a module into the folder, and return its name."""
    name = f"extracted_{next(numbers)}"
    (tmp_path / f"{name}.py").write_text(SHOP)
    yield name
    sys.modules.pop(name, None)


def test_a_definition_is_printed_alone(tmp_path: Path, module: str) -> None:
    printed = schemactl(tmp_path, "extract", f"{module}:Order")
    assert printed.out == (
        '{\n  "type": "record",\n  "name": "Order",\n  "fields": [\n    {"name": "id", "type": "string"},\n'
        '    {"name": "total", "type": "double", "default": 0.0}\n  ]\n}\n'
    )
    # The output of the module is not part of the definition.
    assert printed.err == "the shop opens\n"
    assert schemactl(tmp_path, "extract", f"{module}:Other.Inner").out.count('"Inner"') == 1


def test_a_file_is_written_once_and_never_over_something_else(tmp_path: Path, module: str) -> None:
    file = tmp_path / "orders.avsc"
    write = ("extract", f"{module}:Order", "--out", "orders.avsc")
    assert schemactl(tmp_path, *write).out.endswith("orders.avsc: created\n")
    before = file.stat().st_mtime_ns
    assert schemactl(tmp_path, *write).out.endswith("orders.avsc: unchanged\n")
    assert file.stat().st_mtime_ns == before
    assert schemactl(tmp_path, *write, "--always-allow-null").out.endswith("orders.avsc: updated\n")
    for text in (file.read_text(), "notes"):
        file.write_text(text)
        output = schemactl(tmp_path, "extract", f"{module}:Other", "--out", "orders.avsc", code=1)
        assert "orders.avsc does not hold a definition of Other, and is left alone" in output.err
        assert file.read_text() == text
    schemactl(tmp_path, "extract", f"{module}:Other", "--out", "orders.avsc", "--force")
    assert '"Other"' in file.read_text()
    assert "goes into a file that ends in .avsc or .json" in schemactl(tmp_path, *write[:-1], "x.proto", code=64).err


def test_check_says_whether_class_and_declaration_are_one_version(tmp_path: Path, module: str) -> None:
    order = f"{module}:Order"
    schemactl(tmp_path, "extract", order, "--out", "topics/orders.avsc")
    repository = Scratch(tmp_path / "git")
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/orders.yaml": declared(),
            "topics/orders.avsc": (tmp_path / "topics/orders.avsc").read_text(),
            f"{module}.py": SHOP,
        },
        "orders",
    )
    repository.flush()
    for against in (("--out", "topics/orders.avsc"), ("--topic", "orders")):
        assert (
            f"and {order} are one version.\n" in schemactl(repository.path, "extract", order, "--check", *against).out
        )
        output = schemactl(repository.path, "extract", f"{module}:Other", "--check", *against, code=100).out
        assert '-      "name": "total",\n' in output
        assert f"{module}:Other reads" in output
        # Neither of them is a version.
        other = "topics/orders.avsc" if "--out" in against else "orders@work"
        assert f"the record was called Order in {other} and is called Other now" in output
    assert (
        "there is no file none.avsc"
        in schemactl(tmp_path, "extract", order, "--out", "none.avsc", "--check", code=1).err
    )
    assert "give --out FILE or --topic TOPIC" in schemactl(tmp_path, "extract", order, "--check", code=64).err


@pytest.mark.parametrize(
    "schema",
    [
        "{type: JSON, definition: orders.avsc}",
        "{type: KEY_VALUE, key: {type: STRING}, value: {type: JSON, definition: orders.avsc}}",
    ],
)
def test_a_class_is_compared_as_what_its_topic_takes(tmp_path: Path, module: str, schema: str) -> None:
    order = f"{module}:Order"
    schemactl(tmp_path, "extract", order, "--out", "topics/orders.avsc")
    repository = Scratch(tmp_path / "git")
    declaration = f"topic: shop/sales/orders\nschema: {schema}\n"
    text = (tmp_path / "topics/orders.avsc").read_text()
    project = "version: 1\nroots: [topics]\n"
    repository.commit(
        {"schemactl.yaml": project, "topics/orders.yaml": declaration, "topics/orders.avsc": text, f"{module}.py": SHOP}
    )
    repository.flush()
    check = ("extract", order, "--topic", "orders", "--check")
    assert "are one version" in schemactl(repository.path, *check).out
    assert "type: JSON -> AVRO" in schemactl(repository.path, *check, "--type", "AVRO", code=100).out


def test_a_module_that_fails_is_one_error_with_its_line(tmp_path: Path, module: str) -> None:
    def error(text: str) -> str:
        printed = schemactl(tmp_path, "extract", text, code=(1, 64))
        assert "Traceback" not in printed.err
        return printed.err

    for name, text, last in (
        ("raises", "import json\n\ndef fail():\n    return {}['key']\nfail()\n", "4: {} cannot be imported: KeyError: 'key'"),
        ("leaves", "import sys\nsys.exit(3)\n", "2: {} cannot be imported: SystemExit: 3"),
        ("parses", "x = (\n", "1: {} cannot be imported: SyntaxError: '(' was never closed"),
        ("misses", "import nothing_of_that_name\n", "1: {} cannot be imported: ModuleNotFoundError"),
    ):  # fmt: skip
        (tmp_path / f"{module}_{name}.py").write_text(text)
        assert f"{module}_{name}.py:{last.format(f'{module}_{name}')}" in error(f"{module}_{name}:Order")
    # For an error in an installed package, the line that calls it is reported.
    (tmp_path / f"{module}_calls.py").write_text("import json\n\njson.loads('{')\n")
    assert f"{module}_calls.py:3: {module}_calls cannot be imported: json.decoder.JSONDecodeError" in error(
        f"{module}_calls:Order"
    )
    assert "there is no module no_such_shop, neither in " in error("no_such_shop.models:Order")
    assert f"{module} has no class Ordr; did you mean Order?" in error(f"{module}:Ordr")
    assert "Fix: name one of Order, Other\n" in error(f"{module}:Ordr")
    assert "is not a class, but a value of type int" in error(f"{module}:number")
    assert "expected MODULE:CLASS, such as shop.models:Order" in error("orders.avsc")


def test_the_folder_of_the_module_is_looked_in_for_the_import_alone(tmp_path: Path, module: str) -> None:
    before = [*sys.path]
    schemactl(tmp_path, "extract", f"{module}:Order")
    assert sys.path == before
