"""`decode` and `sample` of a topic with several kinds of events."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch

PROJECT = "version: 1\nroots: [topics]\napproved: main\n"
ONE = "topic: shop/web/users\nschema: {type: AVRO, definition: old.avsc}\n"
KINDS = """\
topic: shop/web/users
schema_compatibility_strategy: ALWAYS_COMPATIBLE
schemas:
  created: {type: AVRO, definition: created.avsc}
  moved: {type: JSON, definition: moved.avsc}
"""


def define(name: str, *fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": field, "type": "long"} for field in fields]})


@pytest.fixture
def kinds_repository(tmp_path: Path) -> Scratch:
    """Version 0 of no kind, 1 and 2 of two kinds, 3 of the first one, which is then removed."""
    scratch = Scratch(tmp_path / "shop")
    scratch.commit({"schemactl.yaml": PROJECT, "topics/users.yaml": ONE, "topics/old.avsc": define("Old", "id")})
    scratch.commit(
        {
            "topics/users.yaml": KINDS,
            "topics/old.avsc": None,
            "topics/created.avsc": define("Created", "id"),
            "topics/moved.avsc": define("Moved", "id"),
        }
    )
    scratch.commit({"topics/created.avsc": define("Created", "id", "at")})
    scratch.commit({"topics/users.yaml": KINDS.replace("  created: {type: AVRO, definition: created.avsc}\n", "")})
    scratch.flush()
    return scratch


@pytest.mark.parametrize(
    ("topic", "version", "payload", "value", "kind"),
    [
        ("users", 1, b"\x02", {"id": 1}, "created"),
        ("users", 2, b'{"id":2}', {"id": 2}, "moved"),
        ("users", 3, b"\x06\x08", {"id": 3, "at": 4}, "created"),
        ("users#created", 3, b"\x06\x08", {"id": 3, "at": 4}, "created"),
        ("users@1", 3, b"\x06\x08", {"id": 3}, "created"),
        ("users#created@1", 3, b"\x06\x08", {"id": 3}, "created"),
    ],
)
def test_decode_names_the_kind(
    kinds_repository: Scratch, topic: str, version: int, payload: bytes, value: object, kind: str
) -> None:
    arguments = ("--version", str(version), "--base64", base64.b64encode(payload).decode())
    result = schemactl(kinds_repository, "decode", topic, *arguments)
    assert json.loads(result.out) == value
    assert f"persistent://shop/web/users, kind {kind}, written with version {version} (" in result.err


@pytest.mark.parametrize(
    ("topic", "version", "reason"),
    [
        ("users", 0, "schema version 0 does not belong to any kind of events that was ever declared"),
        ("users#moved", 1, "schema version 1 is of the kind created, and not moved"),
        ("users@2", 3, "schema version 3 is of the kind created, and not moved"),
    ],
)
def test_a_message_of_another_kind_is_rejected(
    kinds_repository: Scratch, topic: str, version: int, reason: str
) -> None:
    result = schemactl(kinds_repository, "decode", topic, "--version", str(version), "--base64", "AgI=", code=100)
    assert (result.out, reason in result.err) == ("", True)


def test_a_version_of_another_kind_is_wrong_usage(kinds_repository: Scratch) -> None:
    schemactl(kinds_repository, "decode", "users#created@2", "--version", "1", "--base64", "Ag==", code=64)
    schemactl(kinds_repository, "decode", "users", "--version", "9", "--base64", "Ag==", code=64)


@pytest.mark.parametrize(
    ("topic", "fields"), [("users@1", ["id"]), ("users#created@3", ["id", "at"]), ("users#moved", ["id"])]
)
def test_samples_are_of_one_kind(kinds_repository: Scratch, topic: str, fields: list[str]) -> None:
    value = json.loads(schemactl(kinds_repository, "sample", topic, "-n", "1").out)
    assert [*value] == fields


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("Other", "readers then reject its messages, which are of no declared kind."),
        ("Created", "its messages are then decoded with its own definition."),
    ],
)
def test_drift_states_what_readers_do_with_a_foreign_version(kinds_repository: Scratch, name: str, effect: str) -> None:
    project = PROJECT + '\ntargets: {local: {registry: "sqlite:.schemactl/local.db"}}\n'
    kinds_repository.commit({"schemactl.yaml": project, "topics/users.yaml": KINDS})
    schemactl(kinds_repository, "apply", "--target", "local", "--yes")
    foreign = kinds_repository.path / "foreign.avsc"
    foreign.write_text(define(name, "id", "foreign"))
    schemactl(kinds_repository, "registry", "put", "shop/web/users", "--target", "local", "--file", "foreign.avsc")
    printed = schemactl(kinds_repository, "drift", "--target", "local", code=100).out
    assert effect in printed
