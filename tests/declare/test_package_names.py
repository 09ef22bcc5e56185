"""A generated package takes no other package's place."""

from __future__ import annotations

import re
import sys

import pytest

from schemactl.declare import read_project
from schemactl.errors import DeclarationError

TAKEN = """
schemactl Schemactl pulsar_schemactl sys yaml numpy NumPy pyspark py4j pyarrow pandas google grpc pulsar pulsar_client
fastavro git pydantic test conftest sitecustomize usercustomize _runtime _shop _distutils_hack _pytest torch tensorflow
Tensorflow keras jax xgboost scipy sklearn scikit_learn PIL tests __main__ __init__ __pycache__ __future__
"""
STANDARD = sorted(set(sys.stdlib_module_names) - {"antigravity"})


@pytest.mark.parametrize("name", [*TAKEN.split(), *STANDARD])
def test_it_is_rejected_where_it_is_named(name: str) -> None:
    with pytest.raises(DeclarationError, match=rf"^schemactl.yaml:2:21: `{name}` is ") as raised:
        read_project("schemactl.yaml", f"version: 1\ngenerate: {{package: {name}}}\n".encode())
    advised = re.findall(r"such as (\w+)", str(raised.value))
    assert read_project("schemactl.yaml", f"version: 1\ngenerate: {{package: {advised[0]}}}\n".encode())


@pytest.mark.parametrize(
    "name", ["shop_schemas", "pyspark_schemas", "oss", "pulsar_topics", "shop_", "testing_shop"]
)
def test_another_is_not(name: str) -> None:
    project = read_project("schemactl.yaml", f"version: 1\ngenerate: {{package: {name}}}\n".encode())
    assert project.generate
    assert project.generate.package == name
