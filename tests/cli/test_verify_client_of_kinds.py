"""`verify-client` for a class of one of several kinds of events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch

pytestmark = pytest.mark.slow

KINDS = """\
topic: shop/web/users
schema_compatibility_strategy: ALWAYS_COMPATIBLE
kinds_compatibility: BACKWARD_TRANSITIVE
schemas:
  created: {type: AVRO, definition: created.avsc}
  moved: {type: AVRO, definition: moved.avsc}
"""
CLASSES = """\
from dataclasses import dataclass

@dataclass
class Created:
    id: int
    name: str = "?"

@dataclass
class Moved:
    id: int
    city: str
"""


def define(record: str, **more: object) -> str:
    fields = [{"name": "id", "type": "long"}, *([more] if more else [])]
    return json.dumps({"type": "record", "name": record, "fields": fields})


@pytest.fixture
def kinds_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "shop")
    project = 'version: 1\nroots: [topics]\napproved: main\ngenerate: {package: kinds_of_users, spark: "4.1"}\n'
    files = {"schemactl.yaml": project, "topics/users.yaml": KINDS, "events.py": CLASSES}
    scratch.commit({**files, "topics/created.avsc": define("Created"), "topics/moved.avsc": define("Moved")})
    scratch.commit({"topics/created.avsc": define("Created", name="name", type="string", default="?")})
    schemactl(scratch, "generate")
    return scratch


@pytest.mark.parametrize("source", [(), ("--package", "kinds_of_users")])
@pytest.mark.parametrize(
    ("class_", "topic", "code", "text"),
    [
        ("Created", "users#created", 0, "version 2"),
        ("Moved", "users#moved", 100, "city"),
        ("Created", "users", 64, "write 'users#created' or 'users#moved'"),
        ("Created", "users#gone", 64, "created, moved"),
    ],
)
def test_a_class_is_verified_against_its_kind(
    kinds_repository: Scratch, source: tuple[str, ...], class_: str, topic: str, code: int, text: str
) -> None:
    command = ("verify-client", f"events:{class_}", "--topic", topic, "--role", "consumer", "--type", "AVRO", *source)
    result = subprocess.run(
        [sys.executable, "-m", "schemactl", *command],
        cwd=kinds_repository.path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(kinds_repository.path / "generated")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, text in result.stdout + result.stderr) == (code, True), result
