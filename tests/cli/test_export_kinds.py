"""`export` of a topic with several kinds of events: one document, table or message for each declared kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch
from tangled_definitions import make_mutual_lists

KINDS = """\
topic: shop/web/users
schema_compatibility_strategy: ALWAYS_COMPATIBLE
schemas:
  created: {type: AVRO, definition: created.avsc}
  moved: {type: AVRO, definition: moved.avsc}
"""


@pytest.fixture
def kinds_repository(tmp_path: Path) -> Scratch:
    """Two kinds, and a removed one."""
    scratch = Scratch(tmp_path / "shop")
    files = {
        f"topics/{name}.avsc": json.dumps({"type": "record", "name": name, "fields": [{"name": name, "type": "long"}]})
        for name in ("created", "moved", "asked")
    }
    project = "version: 1\nroots: [topics]\napproved: main\n"
    asked_kind = "  asked: {type: AVRO, definition: asked.avsc}\n"
    scratch.commit({"schemactl.yaml": project, "topics/users.yaml": KINDS + asked_kind, **files})
    scratch.commit({"topics/users.yaml": KINDS, "topics/asked.avsc": None})
    scratch.flush()
    return scratch


@pytest.mark.parametrize(
    ("format_", "suffix"),
    [("jsonschema", "schema.json"), ("ddl", "sql"), ("datacontract", "odcs.yaml"), ("avro", "avsc")],
)
def test_each_kind_is_a_file(kinds_repository: Scratch, format_: str, suffix: str) -> None:
    schemactl(kinds_repository, "export", format_, "--out", "exported")
    folder = kinds_repository.path / "exported/shop/web"
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert texts.keys() == {f"users.created.{suffix}", f"users.moved.{suffix}"}
    for kind in ("created", "moved"):
        assert kind in texts[f"users.{kind}.{suffix}"]
        assert "asked" not in texts[f"users.{kind}.{suffix}"]


def test_tables_and_messages_are_called_by_their_kinds(kinds_repository: Scratch) -> None:
    ddl = schemactl(kinds_repository, "export", "ddl").out
    assert [line.split("`")[1] for line in ddl.splitlines() if "CREATE" in line] == ["users_created", "users_moved"]
    document = json.loads(schemactl(kinds_repository, "export", "asyncapi").out)
    (channel,) = document["channels"].values()
    titles = {key: message["title"] for key, message in channel["messages"].items()}
    assert titles == {"created": "created, version 0", "moved": "moved, version 1"}


def test_a_kind_that_a_format_cannot_express_is_named(kinds_repository: Scratch) -> None:
    kinds_repository.commit(
        {
            "topics/users.yaml": f"{KINDS}  tangled: {{type: AVRO, definition: tangled.avsc}}\n",
            "topics/tangled.avsc": json.dumps(make_mutual_lists()),
        }
    )
    note = "note: persistent://shop/web/users#tangled: left out: "
    assert note in schemactl(kinds_repository, "export", "ddl").err
    result = schemactl(kinds_repository, "export", "asyncapi", "--out", "asyncapi.json")
    assert note in result.err
    assert "wrote 1 topic to " in result.out + result.err
    (channel,) = json.loads((kinds_repository.path / "asyncapi.json").read_text())["channels"].values()
    assert [*channel["messages"]] == ["created", "moved"]
