"""A generated package takes no other package's place."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemactl import codec
from schemactl.core.errors import DeclarationError
from schemactl.declare.project import read_project

TAKEN = """
schemactl Schemactl pulsar_schemactl sys numpy NumPy pyspark py4j pyarrow pandas google protobuf ptars pulsar pulsar_client
fastavro pydantic test sitecustomize usercustomize _runtime _shop _distutils_hack _pytest
__main__ __init__ __pycache__ __future__
"""
FREE = ("tests", "torch", "shop_schemas", "pyspark_schemas", "oss", "pulsar_topics", "shop_", "testing_shop")


def read_package(name: str) -> str | None:
    """Return the package of a project file that names it `name`."""
    generate = read_project("schemactl.yaml", f"version: 1\ngenerate: {{package: {name}}}\n".encode()).generate
    return generate.package if generate else None


def test_it_is_rejected_where_it_is_named_and_another_is_not() -> None:
    for name in (*TAKEN.split(), *sys.stdlib_module_names):
        with pytest.raises(DeclarationError, match=rf"^schemactl.yaml:2:21: `{name}` is ") as raised:
            read_package(name)
        (suggested_name,) = re.findall(r"such as (\w+)", str(raised.value))
        assert read_package(suggested_name) == suggested_name
    assert [read_package(name) for name in FREE] == list(FREE)


def imported_packages() -> Iterator[str]:
    """Yield the packages that the run-time of generated packages imports, apart from Python's own."""
    for path in Path(codec.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module or ""]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
                modules = [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
            yield from (module.partition(".")[0] for module in modules)


def test_every_package_that_the_run_time_imports_is_rejected() -> None:
    packages = {*imported_packages()} - sys.stdlib_module_names
    assert packages >= {"numpy", "pyarrow", "google", "pulsar"}
    for package in packages:
        with pytest.raises(DeclarationError, match="is a package that generated code imports"):
            read_package(package)
