"""`extract --jar`: the definition that Pulsar's Java client derives from a class, in a JVM."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import brokers
import pytest
from command import schemactl
from scratch import Scratch

ORDER = """\
package com.shop;

public class Order {
    public String id;
    public int count;
    public java.time.Instant at;

    public static class Line {
        public String sku;
    }
}
"""


@pytest.fixture
def classes_folder(tmp_path: Path) -> Path:
    """A folder with the compiled class."""
    if not shutil.which("javac"):
        pytest.skip("no javac")
    source = tmp_path / "source" / "com" / "shop" / "Order.java"
    source.parent.mkdir(parents=True)
    source.write_text(ORDER, encoding="utf-8")
    subprocess.run(["javac", *brokers.JAVAC, "-d", tmp_path / "classes", source], check=True, capture_output=True)
    return tmp_path / "classes"


@pytest.mark.broker
def test_a_class_has_the_definition_of_the_client(classes_folder: Path, tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "r")
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/lines.yaml": "topic: shop/sales/lines\nschema: {type: AVRO, definition: lines.avsc}\n",
            "topics/lines.avsc": '{"type": "record", "name": "Line", "namespace": "com.shop.Order", "fields": '
            '[{"name": "sku", "type": ["null", "string"], "default": null}]}',
        }
    )
    repository.flush()
    repository.git("reset", "-q", "--hard")
    jars = ("--jar", str(classes_folder), "--jar", f"{brokers.find_jars()}/*")
    definition = json.loads(schemactl(repository.path, "extract", *jars, "--class", "com.shop.Order$Line").out)
    assert definition["fields"] == [{"name": "sku", "type": ["null", "string"], "default": None}]
    strict = schemactl(repository.path, "extract", *jars, "--class", "com.shop.Order$Line", "--no-always-allow-null")
    assert json.loads(strict.out)["fields"] == [{"name": "sku", "type": "string"}]
    times = schemactl(repository.path, "extract", *jars, "--class", "com.shop.Order", "--jsr310")
    assert "timestamp-millis" in times.out
    check = ("extract", *jars, "--class", "com.shop.Order$Line", "--topic", "lines", "--check")
    schemactl(repository.path, *check)
    schemactl(repository.path, *check, "--no-always-allow-null", code=100)
    missing = schemactl(repository.path, "extract", *jars, "--class", "com.shop.Nothing", code=1)
    assert "no jar has this class" in missing.err
    other = schemactl(
        repository.path, "extract", *jars, "--class", "com.shop.Order", "--type", "PROTOBUF_NATIVE", code=1
    )
    assert "Pulsar's client has no schema of this type" in other.err


def test_a_class_path_without_the_client_is_an_error(classes_folder: Path) -> None:
    printed = schemactl(classes_folder, "extract", "--jar", ".", "--class", "com.shop.Order", code=1)
    assert "the class path has no Pulsar client" in printed.err
    assert "--jar 'lib/*'" in printed.err


@pytest.mark.parametrize("jar", ["nope.jar", "nope/*"])
def test_a_missing_jar_is_named(tmp_path: Path, jar: str) -> None:
    arguments = ("extract", "--jar", ".", "--jar", jar, "--class", "com.shop.Order")
    assert f"--jar {jar}: no such file" in schemactl(tmp_path, *arguments, code=64).err


@pytest.mark.parametrize("arguments", [(), ("a:B", "--jar", "x", "--class", "c"), ("--jar", "x"), ("--class", "c")])
def test_one_class_is_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert "name one class" in schemactl(tmp_path, "extract", *arguments, code=64).err
