"""`schemactl check --fix`, `--diff` and `--rename`: which edits are made, and that nothing else of a file changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run_json, schemactl
from scratch import Scratch

pytestmark = pytest.mark.slow

PROJECT = "version: 1\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"
TOPIC = "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n"
AVSC = "namespaces/orders.avsc"
YAML = "namespaces/orders.yaml"


def record(*fields: str, name: str = "Order") -> str:
    """An Avro record on one line."""
    return f'{{"type": "record", "name": "{name}", "fields": [{", ".join(fields)}]}}\n'


ID = '{"name": "id", "type": "long"}'
COLORS = '{"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}}'
RED = COLORS.replace(', "BLUE"', "")


@pytest.fixture
def empty_project(tmp_path: Path) -> Scratch:
    """Start a project without a topic."""
    return Scratch(tmp_path / "shop")


def change(
    repository: Scratch, old: str, new: str, path: str = AVSC, topic: str = TOPIC, project: str = PROJECT
) -> None:
    """Approve `old` as the content of the file, and write `new` to the working tree."""
    files = {"schemactl.yaml": project, YAML: topic, path: old}
    repository.commit(files)
    repository.flush()
    (repository.path / path).write_bytes(new.encode())


def read(repository: Scratch, path: str = AVSC) -> str:
    return (repository.path / path).read_bytes().decode()


EDITS = {
    "default of a new field": (
        record(ID),
        record(ID, '{"name": "note", "type": "string"}'),
        record(ID, '{"name": "note", "type": "string", "default": ""}'),
    ),
    "default of a new nullable field": (
        record(ID),
        record(ID, '{"name": "note", "type": ["null", "string"], "doc": "free text"}'),
        record(ID, '{"name": "note", "type": ["null", "string"], "default": null, "doc": "free text"}'),
    ),
    "defaults of several new fields": (
        record(ID),
        record('{"name": "a", "type": "int"}', ID, '{"name": "b", "type": {"type": "map", "values": "int"}}'),
        record(
            '{"name": "a", "type": "int", "default": 0}',
            ID,
            '{"name": "b", "type": {"type": "map", "values": "int"}, "default": {}}',
        ),
    ),
    "default of an enum that lost a symbol": (
        record(COLORS),
        record(RED),
        record(RED.replace('["RED"]', '["RED"], "default": "RED"')),
    ),
    "type that became narrower": (
        record(ID, '{"name": "total", "type": {"type": "array", "items": "double"}}'),
        record('{"name": "id", "type": "int"}', '{"name": "total", "type": {"type": "array", "items": "float"}}'),
        record(ID, '{"name": "total", "type": {"type": "array", "items": "double"}}'),
    ),
    "branch that became narrower": (
        record('{"name": "id", "type": ["null", "long"]}'),
        record('{"name": "id", "type": ["null", "int"]}'),
        record('{"name": "id", "type": ["null", "long"]}'),
    ),
    "own lines, and CRLF": (
        record(ID),
        (
            '{\r\n\t"type": "record",\r\n\t"name": "Order",\r\n\t"fields": [\r\n\t\t{"name": "id", "type": "long"},\r\n\t\t{\r\n'
            '\t\t\t"name" : "n",\r\n\t\t\t"type" : "int"\r\n\t\t}\r\n\t]\r\n}'
        ),
        (
            '{\r\n\t"type": "record",\r\n\t"name": "Order",\r\n\t"fields": [\r\n\t\t{"name": "id", "type": "long"},\r\n\t\t{\r\n'
            '\t\t\t"name" : "n",\r\n\t\t\t"type" : "int",\r\n\t\t\t"default" : 0\r\n\t\t}\r\n\t]\r\n}'
        ),
    ),
    "no blanks at all": (
        record(ID),
        '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"int"}]}',
        '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":0}]}',
    ),
    "type before name, and a comma that starts its line": (
        record(ID),
        '{"type": "record", "name": "Order", "fields": [\n  {"name": "id", "type": "long"},\n  { "type": "int"\n  , "name": "n"\n  }\n]}\n',
        (
            '{"type": "record", "name": "Order", "fields": [\n  {"name": "id", "type": "long"},\n'
            '  { "type": "int"\n  , "default": 0\n  , "name": "n"\n  }\n]}\n'
        ),
    ),
    "comments after the type": (
        record(ID),
        (
            '{"type": "record", "name": "Order", "fields": [\n  {"name": "id", "type": "long"},\n  {\n    "name": "a",\n'
            '    "type": "int" // cents\n  },\n  {\n    "name": "b",\n    "type": "int", /* cents */\n    "doc": "x"\n  }\n]}\n'
        ),
        (
            '{"type": "record", "name": "Order", "fields": [\n  {"name": "id", "type": "long"},\n  {\n    "name": "a",\n'
            '    "type": "int", // cents\n    "default": 0\n  },\n  {\n    "name": "b",\n    "type": "int", /* cents */\n'
            '    "default": 0,\n    "doc": "x"\n  }\n]}\n'
        ),
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), EDITS.values(), ids=EDITS)
def test_edit_that_is_the_only_one_is_made(empty_project: Scratch, old: str, new: str, expected: str) -> None:
    change(empty_project, old, new)
    printed = schemactl(empty_project, "check", "--diff", code=100)
    assert read(empty_project) == new
    assert f"--- a/{AVSC}\n+++ b/{AVSC}\n" in printed.out
    assert "      = edit     `schemactl check --fix` makes it\n" in printed.out
    fixed = schemactl(empty_project, "check", "--fix")
    assert read(empty_project) == expected
    assert f"edited {AVSC}\n" in fixed.err
    assert schemactl(empty_project, "check", "--fix").err == (
        "no finding has a fix with exactly one possible edit; no file was edited\n"
    )
    assert read(empty_project) == expected


LEFT = {
    "field that may be renamed": (
        record('{"name": "amount", "type": "long"}'),
        record('{"name": "total", "type": "long"}'),
    ),
    "type without a wider one": (record(ID), record('{"name": "id", "type": "string"}')),
    "narrower logical type": (
        record('{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}'),
        record('{"name": "at", "type": {"type": "int", "logicalType": "date"}}'),
    ),
    "union that became its branch": (
        record('{"name": "id", "type": ["null", "long"]}'),
        record('{"name": "id", "type": "int"}'),
    ),
    "record with another name": (record(ID), record(ID, name="Sale")),
}


@pytest.mark.parametrize(("old", "new"), LEFT.values(), ids=LEFT)
def test_finding_with_several_fixes_is_left_to_a_person(empty_project: Scratch, old: str, new: str) -> None:
    change(empty_project, old, new, project=PROJECT + "severities: {NAME_MISMATCH: error}\n")
    assert "no file was edited" in schemactl(empty_project, "check", "--fix", code=100).err
    assert read(empty_project) == new


@pytest.mark.parametrize(
    ("definition", "field", "expected"),
    [
        ("|\n    {lead}\n", '{"name": "n", "type": "int"}', '{"name": "n", "type": "int", "default": 0}'),
        (
            "|\n    {lead}\n",
            '{\n        "name": "n",\n        "type": "int"\n    }',
            '{\n        "name": "n",\n        "type": "int",\n        "default": 0\n    }',
        ),
    ],
)
def test_json_in_a_block_of_yaml_is_edited(empty_project: Scratch, definition: str, field: str, expected: str) -> None:
    topic = "topic: shop/sales/orders  # the orders\nschema:\n  type: AVRO\n  definition: "
    old, new, fixed = (
        topic + definition.replace("{lead}", record(*fields)) for fields in ((ID,), (ID, field), (ID, expected))
    )
    change(empty_project, old, new, path=YAML, topic=old)
    schemactl(empty_project, "check", "--fix")
    assert read(empty_project, YAML) == fixed


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("      - {name: n, type: int}\n", "      - {name: n, type: int, default: 0}\n"),
        (
            "      - name: n  # a number\n        type: int\n",
            "      - name: n  # a number\n        type: int\n        default: 0\n",
        ),
        (
            "      - name: n\n        type:\n          type: array\n          items: 'int'\n",
            "      - name: n\n        default: []\n        type:\n          type: array\n          items: 'int'\n",
        ),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_definition_in_yaml_is_edited_in_its_layout(
    empty_project: Scratch, field: str, expected: str, line_end: str
) -> None:
    head = (
        "topic: shop/sales/orders\nschema:\n  type: AVRO\n  definition:\n    type: record\n    name: Order\n    fields:\n"
        "      - {name: id, type: long}\n"
    )
    old, new, fixed = (text.replace("\n", line_end) for text in (head, head + field, head + expected))
    change(empty_project, old, new, path=YAML, topic=old)
    schemactl(empty_project, "check", "--fix")
    assert read(empty_project, YAML) == fixed


def test_shared_type_is_edited_once_for_all_of_its_topics(empty_project: Scratch) -> None:
    money = "namespaces/money.avsc"
    topics = "---\n".join(
        f"topic: shop/sales/{name}\nschema: {{type: AVRO, definition: {name}.avsc, references: [money.avsc]}}\n"
        for name in ("orders", "refunds")
    )
    users = {
        f"namespaces/{name}.avsc": record('{"name": "price", "type": "Money"}', name=name.title())
        for name in ("orders", "refunds")
    }
    empty_project.commit({"schemactl.yaml": PROJECT, YAML: topics, money: record(ID, name="Money"), **users})
    empty_project.write({money: record(ID, '{"name": "currency", "type": "string"}', name="Money")})
    printed = schemactl(empty_project, "check", "--fix")
    assert read(empty_project, money) == record(
        ID, '{"name": "currency", "type": "string", "default": ""}', name="Money"
    )
    assert printed.err == f"edited {money}\n1 finding fixed in 1 file\n"


def test_value_of_a_pair_is_edited(empty_project: Scratch) -> None:
    topic = (
        "topic: shop/sales/orders\nschema: {type: KEY_VALUE, encoding: INLINE, key: {type: STRING}, "
        "value: {type: AVRO, definition: orders.avsc}}\n"
    )
    change(empty_project, record(ID), record(ID, '{"name": "n", "type": "int"}'), topic=topic)
    schemactl(empty_project, "check", "--fix")
    assert read(empty_project) == record(ID, '{"name": "n", "type": "int", "default": 0}')


# Renames


AMOUNT, TOTAL = ('{"name": "amount", "type": "long"}', '{"name": "total", "type": "long"}')
RENAMES = {
    "field": (
        record(AMOUNT),
        record(TOTAL),
        "amount=total",
        record('{"name": "total", "aliases": ["amount"], "type": "long"}'),
    ),
    "field of a record": (
        record(AMOUNT),
        record(TOTAL),
        "Order.amount=Order.total",
        record('{"name": "total", "aliases": ["amount"], "type": "long"}'),
    ),
    "field with another alias": (
        record(AMOUNT),
        record('{"name": "total", "aliases": ["sum"], "type": "long"}'),
        "amount=total",
        record('{"name": "total", "aliases": ["sum", "amount"], "type": "long"}'),
    ),
    "field with a default, which the check accepts": (
        record(AMOUNT),
        record('{"name": "total", "type": "long", "default": 0}'),
        "amount=total",
        record('{"name": "total", "aliases": ["amount"], "type": "long", "default": 0}'),
    ),
    "one of two candidates, and the default of the other": (
        record(AMOUNT),
        record(TOTAL, '{"name": "tax", "type": "long"}'),
        "amount=total",
        record(
            '{"name": "total", "aliases": ["amount"], "type": "long"}', '{"name": "tax", "type": "long", "default": 0}'
        ),
    ),
    "record": (
        record(ID),
        record(ID, name="Sale"),
        "Order=Sale",
        record(ID, name='Sale", "aliases": ["Order').replace('["Order"', '["Order"]'),
    ),
}


@pytest.mark.parametrize(("old", "new", "rename", "expected"), RENAMES.values(), ids=RENAMES)
def test_rename_adds_an_alias(empty_project: Scratch, old: str, new: str, rename: str, expected: str) -> None:
    change(empty_project, old, new)
    schemactl(empty_project, "check", "--fix", "--rename", rename)
    assert read(empty_project) == expected
    # The alias exists, so the same command edits nothing.
    schemactl(empty_project, "check", "--fix", "--rename", rename)
    assert read(empty_project) == expected


def test_rename_that_is_not_in_the_change_is_wrong_usage(empty_project: Scratch) -> None:
    change(empty_project, record(AMOUNT), record(TOTAL))
    for rename, message in {
        "amount": "--rename amount: expected OLD=NEW",
        "total=amount": "--rename total=amount: no changed definition has amount now and had total before",
        "amuont=total": "--rename amuont=total: no changed definition has total now and had amuont before",
        "Other.amount=total": "no changed definition has total now",
    }.items():
        assert message in schemactl(empty_project, "check", "--fix", "--rename", rename, code=64).err
    assert "--rename is an edit" in schemactl(empty_project, "check", "--rename", "amount=total", code=64).err
    assert read(empty_project) == record(TOTAL)


def test_json_topic_gets_no_alias(empty_project: Scratch) -> None:
    topic = TOPIC.replace("AVRO", "JSON")
    change(empty_project, record(AMOUNT), record(TOTAL), topic=topic)
    printed = schemactl(empty_project, "check", "--fix", "--rename", "amount=total", code=64)
    assert "persistent://shop/sales/orders is a JSON topic, whose readers know no aliases" in printed.err
    assert read(empty_project) == record(TOTAL)


# The index, HEAD and the merge


NEW = record(ID, '{"name": "n", "type": "int"}')
FIXED = record(ID, '{"name": "n", "type": "int", "default": 0}')


def test_staged_fix_edits_a_file_without_unstaged_changes_only(empty_project: Scratch) -> None:
    change(empty_project, record(ID), NEW)
    empty_project.git("add", "-A")
    printed = schemactl(empty_project, "check", "--staged", "--fix")
    assert read(empty_project) == FIXED
    assert printed.err.endswith(f"1 finding fixed in 1 file; to commit them: `git add -- {AVSC}`\n")
    empty_project.write({AVSC: NEW.replace("int", "float")})
    printed = schemactl(empty_project, "check", "--staged", "--fix", code=1)
    assert f"{AVSC}:1:1: orders.avsc has unstaged changes" in printed.err
    assert read(empty_project) == NEW.replace("int", "float")


def test_fix_of_a_pull_request_edits_what_is_committed(empty_project: Scratch) -> None:
    empty_project.commit({"schemactl.yaml": PROJECT, YAML: TOPIC, AVSC: record(ID)})
    empty_project.commit({AVSC: NEW}, branch="work", start=1)
    empty_project.git("checkout", "-q", "work")
    empty_project.write({AVSC: NEW + "\n"})
    printed = schemactl(empty_project, "check", "--base", "main", "--fix", code=1)
    assert "orders.avsc has uncommitted changes" in printed.err
    empty_project.write({AVSC: NEW})
    schemactl(empty_project, "check", "--base", "main", "--fix")
    assert read(empty_project) == FIXED


def test_fix_of_a_branch_edits_its_own_text(empty_project: Scratch) -> None:
    base = empty_project.commit({"schemactl.yaml": PROJECT, YAML: TOPIC, AVSC: record(ID)})
    empty_project.commit({AVSC: record(ID, '{"name": "late", "type": "string", "default": ""}')})
    empty_project.commit({AVSC: NEW}, branch="work", start=base)
    empty_project.git("checkout", "-q", "work")
    schemactl(empty_project, "check", "--fix")
    assert read(empty_project) == FIXED


def test_diff_goes_to_standard_error_beside_another_format(empty_project: Scratch) -> None:
    change(empty_project, record(ID), NEW)
    printed = schemactl(empty_project, "check", "--diff", "--format", "json", code=100)
    assert json.loads(printed.out)["errors"] == 1
    assert '+{"type": "record"' in printed.err
    assert read(empty_project) == NEW


def test_fix_and_diff_together_write_and_show(empty_project: Scratch) -> None:
    change(empty_project, record(ID), NEW)
    assert f"+++ b/{AVSC}" in schemactl(empty_project, "check", "--fix", "--diff").out
    assert read(empty_project) == FIXED


def test_remaining_findings_fail_the_check(empty_project: Scratch) -> None:
    change(
        empty_project,
        record(ID, AMOUNT),
        record('{"name": "id", "type": "string"}', AMOUNT, '{"name": "n", "type": "int"}'),
    )
    printed = schemactl(empty_project, "check", "--fix", code=100)
    assert "TYPE_MISMATCH" in printed.out
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" not in printed.out
    assert '"name": "n", "type": "int", "default": 0' in read(empty_project)


def test_waived_finding_is_not_fixed(empty_project: Scratch) -> None:
    change(empty_project, record(ID), NEW)
    report = run_json(empty_project, "check", code=100)
    [fingerprint] = [finding["fingerprint"] for finding in report["findings"] if finding["verdict"] == "data"]
    from datetime import UTC, datetime, timedelta

    until = str((datetime.now(UTC) + timedelta(days=30)).date())
    arguments = ("--reason", "no message", "--until", until, "--owner", "ada")
    schemactl(empty_project, "waive", fingerprint.removeprefix("sha256:"), *arguments)
    schemactl(empty_project, "check", "--fix")
    assert read(empty_project) == NEW


def test_link_is_not_written_through(empty_project: Scratch, tmp_path: Path) -> None:
    change(empty_project, record(ID), NEW)
    outside = tmp_path / "outside.avsc"
    outside.write_text(NEW)
    (empty_project.path / AVSC).unlink()
    (empty_project.path / AVSC).symlink_to(outside)
    schemactl(empty_project, "check", "--fix", code=1)
    assert outside.read_text() == NEW


# `.proto`


CLICK = "namespaces/click.proto"
CLICKS = "topic: shop/web/clicks\nschema: {type: PROTOBUF_NATIVE, definition: click.proto, message: Click}\n"
PROTO_EDITS = {
    "narrower type": (
        'syntax = "proto3";\nmessage Click {\n  repeated  int64 n = 1; // clicks\n}\n',
        'syntax = "proto3";\nmessage Click {\n  repeated  int32 n = 1; // clicks\n}\n',
        'syntax = "proto3";\nmessage Click {\n  repeated  int64 n = 1; // clicks\n}\n',
    ),
    "deleted field": (
        'syntax = "proto3";\r\nmessage Click {\r\n\tint64 n = 1;\r\n\tstring url = 2;\r\n}\r\n',
        'syntax = "proto3";\r\nmessage Click {\r\n\tint64 n = 1;\r\n}\r\n',
        'syntax = "proto3";\r\nmessage Click {\r\n\treserved 2;\r\n\treserved "url";\r\n\tint64 n = 1;\r\n}\r\n',
    ),
    "deleted field of a message on one line": (
        'syntax = "proto3"; message Click { Inner i = 1; message Inner { int32 a = 1; int32 b = 2; } }\n',
        'syntax = "proto3"; message Click { Inner i = 1; message Inner { int32 a = 1; } }\n',
        'syntax = "proto3"; message Click { Inner i = 1; message Inner { reserved 2; reserved "b"; int32 a = 1; } }\n',
    ),
    "deleted enum value": (
        'syntax = "proto3";\nmessage Click {\n  enum Kind {\n    A = 0;\n    B = 1;\n  }\n  Kind kind = 1;\n}\n',
        'syntax = "proto3";\nmessage Click {\n  enum Kind {\n    A = 0;\n  }\n  Kind kind = 1;\n}\n',
        'syntax = "proto3";\nmessage Click {\n  enum Kind {\n    reserved 1;\n    reserved "B";\n    A = 0;\n  }\n  Kind kind = 1;\n}\n',
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), PROTO_EDITS.values(), ids=PROTO_EDITS)
def test_proto_file_is_edited(empty_project: Scratch, old: str, new: str, expected: str) -> None:
    project = f"{PROJECT}protobuf: {{rules: WIRE_JSON}}\n"
    empty_project.commit({"schemactl.yaml": project, YAML: CLICKS, CLICK: old})
    empty_project.flush()
    (empty_project.path / CLICK).write_bytes(new.encode())
    schemactl(empty_project, "check", "--fix")
    assert read(empty_project, CLICK) == expected
    assert "findings" not in schemactl(empty_project, "check", "--fix").err
