"""A generated package takes no other package's place."""

from __future__ import annotations

import sys

import pytest

from schemactl.declare import read_project
from schemactl.errors import DeclarationError

REFUSED = [
    "schemactl",
    "Schemactl",
    "pulsar_schemactl",
    "sys",
    "yaml",
    "numpy",
    "NumPy",
    "pyspark",
    "py4j",
    "pyarrow",
]
REFUSED += ["pandas", "google", "grpc", "pulsar", "pulsar_client", "fastavro", "git", "pydantic"]
REFUSED += sorted(set(sys.stdlib_module_names) - {"antigravity"})


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_where_it_is_named(name: str) -> None:
    with pytest.raises(DeclarationError, match=rf"^schemactl.yaml:2:21: `{name}` is "):
        read_project("schemactl.yaml", f"version: 1\ngenerate: {{package: {name}}}\n".encode())


@pytest.mark.parametrize("name", ["shop_schemas", "pyspark_schemas", "oss", "pulsar_topics", "_shop"])
def test_another_is_not(name: str) -> None:
    project = read_project("schemactl.yaml", f"version: 1\ngenerate: {{package: {name}}}\n".encode())
    assert project.generate
    assert project.generate.package == name
