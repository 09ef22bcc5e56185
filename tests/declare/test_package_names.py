"""A generated package takes no other package's place."""

from __future__ import annotations

import re
import sys

import pytest

from schemactl.core.errors import DeclarationError
from schemactl.declare.project import read_project

TAKEN = """
schemactl Schemactl pulsar_schemactl sys yaml numpy NumPy pyspark py4j pyarrow pandas google grpc pulsar pulsar_client
fastavro git pydantic test conftest sitecustomize usercustomize _runtime _shop _distutils_hack _pytest torch tensorflow
Tensorflow keras jax xgboost scipy sklearn scikit_learn PIL tests __main__ __init__ __pycache__ __future__
"""
FREE = ("shop_schemas", "pyspark_schemas", "oss", "pulsar_topics", "shop_", "testing_shop")


def package_of(name: str) -> str | None:
    """The package of a project that names it so."""
    generate = read_project("schemactl.yaml", f"version: 1\ngenerate: {{package: {name}}}\n".encode()).generate
    return generate.package if generate else None


def test_it_is_rejected_where_it_is_named_and_another_is_not() -> None:
    for name in (*TAKEN.split(), *sys.stdlib_module_names):
        with pytest.raises(DeclarationError, match=rf"^schemactl.yaml:2:21: `{name}` is ") as raised:
            package_of(name)
        (advised,) = re.findall(r"such as (\w+)", str(raised.value))
        assert package_of(advised) == advised
    assert [package_of(name) for name in FREE] == list(FREE)
