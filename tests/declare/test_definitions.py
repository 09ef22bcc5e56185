"""From declared schemas to what Pulsar stores, and back to the places in the files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_files import MemoryFiles

from schemactl.declare import read
from schemactl.declare.files import Kind
from schemactl.errors import Source
from schemactl.formats import SPECS
from schemactl.formats.key_value import split
from schemactl.model import Project, Release, SchemaInfo, SchemaType, TopicName

PROJECT = Project(roots=("topics",))
TOPIC = TopicName.parse("shop/sales/a")


def schema_of(schema: str, **files: str | bytes) -> SchemaInfo:
    """The schema of a topic with this `schema:` line; `files` by name, `__` for the slash and `_` for the dot."""
    named = {path.replace("__", "/").replace("_", "."): text for path, text in files.items()}
    declared = read(
        MemoryFiles({"topics/a.yaml": f"topic: shop/sales/a\nschema: {schema}\n", **named}), PROJECT
    )
    assert declared.problems == ()
    info = declared.catalog.topics[TOPIC].schema
    assert info is not None
    return info


def record(name: str, *types: Any, **more: Any) -> str:
    """A record with a field of each type, as JSON."""
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return json.dumps({"type": "record", "name": name, **more, "fields": fields})


# What is stored.


def test_a_definition_is_stored_as_the_file_has_it() -> None:
    text = '{ /* a comment */ "type": "record",\n\n  "name": "A", "fields": [] }\n'
    assert schema_of("{type: AVRO, definition: a.avsc}", topics__a_avsc=text).schema == text.encode()


def test_line_ends_of_windows_are_stored_as_line_ends() -> None:
    info = schema_of("{type: AVRO, definition: a.avsc}", topics__a_avsc=b'{"type":\r\n "string"}\r\n')
    assert info.schema == b'{"type":\n "string"}\n'
    assert info.locate("/type") == Source("topics/a.avsc", 2, 2)


def test_json_in_yaml_is_stored_as_it_is_written() -> None:
    info = schema_of('\n  type: JSON\n  definition: |\n    {"type":\n      "string"}')
    assert info.schema == b'{"type":\n  "string"}\n'
    assert info.type is SchemaType.JSON


def test_yaml_is_rendered_with_two_spaces_in_the_order_it_is_written() -> None:
    info = schema_of("{type: AVRO, definition: {name: A, type: enum, symbols: [É, no], default: no}}")
    assert info.schema.decode() == (
        '{\n  "name": "A",\n  "type": "enum",\n  "symbols": [\n    "É",\n    "no"\n  ],\n  "default": "no"\n}'
    )
    assert info.source == Source("topics/a.yaml", 2, 34)


@pytest.mark.parametrize(
    "name",
    [each.name for each in SchemaType if each.value not in (0, 2, 3, 4, 15, 20, 21) and each.value > 0],
)
def test_primitives_store_nothing(name: str) -> None:
    info = schema_of(f"{{type: {name}, properties: {{owner: orders-team}}}}")
    assert (info.type.name, info.schema, dict(info.properties)) == (name, b"", {"owner": "orders-team"})


def test_a_charset_is_a_property() -> None:
    assert schema_of("{type: STRING, properties: {__charset: ISO-8859-1}}").properties == {
        "__charset": "ISO-8859-1"
    }


def test_key_value_is_stored_as_pulsars_client_stores_it() -> None:
    info = schema_of(
        "{type: KEY_VALUE, encoding: SEPARATED, key: {type: STRING, properties: {b: '2', a: '1'}},"
        " value: {type: AVRO, definition: a.avsc}, properties: {owner: x}}",
        topics__a_avsc='"int"',
    )
    assert info.schema == b'\x00\x00\x00\x00\x00\x00\x00\x05"int"'
    assert info.properties == {
        "kv.encoding.type": "SEPARATED",
        "key.schema.name": "",
        "key.schema.type": "STRING",
        "key.schema.properties": '{"a":"1","b":"2"}',
        "value.schema.name": "",
        "value.schema.type": "AVRO",
        "value.schema.properties": "{}",
        "owner": "x",
    }
    assert (
        split(schema_of("{type: KEY_VALUE, key: {type: BYTES}, value: {type: INT32}}")).encoding == "INLINE"
    )


def test_external_needs_a_release_that_knows_it() -> None:
    files = MemoryFiles({"topics/a.yaml": "topic: shop/sales/a\nschema: {type: EXTERNAL}\n"})
    assert read(files, PROJECT).problems
    assert not read(files, Project(roots=("topics",), release=Release.R4_2)).problems


def test_a_topic_without_schema_has_none() -> None:
    declared = read(MemoryFiles({"topics/a.yaml": "topic: shop/sales/a\n"}), PROJECT)
    assert declared.catalog.topics[TOPIC].schema is None


PROTO = 'syntax = "proto3";\npackage web;\nimport "common/money.proto";\nmessage Click { common.Money price = 1; }\n'
MONEY = 'syntax = "proto3";\npackage common;\nmessage Money { int64 units = 1; }\n'


def test_a_proto_is_compiled_with_its_references() -> None:
    info = schema_of(
        "{type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click, references: [../common/money.proto]}",
        topics__click_proto=PROTO,
        common__money_proto=MONEY,
    )
    assert json.loads(info.schema)["rootMessageTypeName"] == "web.Click"
    assert info.source == Source("topics/click.proto")
    assert info.locate("/messages/web.Click/fields/1") == Source("topics/click.proto", 4, 17)
    assert info.locate("/messages/common.Money/fields/1") == Source("common/money.proto", 3, 17)


@pytest.mark.parametrize(
    "written",
    [
        'package web; import "common/money.proto";',
        "package web;\n  import\t'common/money.proto';",
        'package web; /* of all */ import public"common/money.proto";',
        'package web;\nimport weak "common/money.proto";',
    ],
)
def test_an_import_is_found_however_it_is_written(written: str) -> None:
    info = schema_of(
        "{type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click, references: [../common/money.proto]}",
        topics__click_proto=f'syntax = "proto3"; {written} message Click {{ common.Money price = 1; }}',
        common__money_proto=MONEY,
    )
    assert json.loads(info.schema)["rootMessageTypeName"] == "web.Click"


def test_moving_a_proto_makes_no_other_version() -> None:
    here = schema_of(
        "{type: PROTOBUF_NATIVE, definition: a.proto, message: common.Money}", topics__a_proto=MONEY
    )
    there = schema_of(
        "{type: PROTOBUF_NATIVE, definition: x/b.proto, message: common.Money}", topics__x__b_proto=MONEY
    )
    identity = SPECS[SchemaType.PROTOBUF_NATIVE].identity
    assert identity(here) == identity(there)


def test_a_protobuf_schema_knows_its_proto() -> None:
    info = schema_of(
        "{type: PROTOBUF, definition: a.avsc, proto: click.proto, message: web.Click,"
        " references: [b.avsc, ../common/money.proto]}",
        topics__a_avsc=record("A", "B"),
        topics__b_avsc=record("B"),
        topics__click_proto=PROTO,
        common__money_proto=MONEY,
    )
    assert info.type is SchemaType.PROTOBUF
    assert info.proto is not None
    assert info.proto.type is SchemaType.PROTOBUF_NATIVE
    assert b'"name": "B"' in info.schema


# References.


def test_a_referenced_type_is_defined_where_it_is_used_first() -> None:
    info = schema_of(
        "{type: AVRO, definition: a.avsc, references: [b.avsc]}",
        topics__a_avsc=record("A", ["null", "common.B"], {"type": "array", "items": "common.B"}),
        topics__b_avsc=record("B", "int", namespace="common"),
    )
    fields = json.loads(info.schema)["fields"]
    assert fields[0]["type"] == ["null", json.loads(record("B", "int", namespace="common"))]
    assert fields[1]["type"] == {"type": "array", "items": "common.B"}


def test_references_may_use_each_other() -> None:
    info = schema_of(
        "{type: AVRO, definition: a.avsc, references: [b.avsc, c.avsc]}",
        topics__a_avsc=record("A", {"type": "map", "values": "B"}, "C"),
        topics__b_avsc=record("B", "C", "C"),
        topics__c_avsc=json.dumps({"type": "enum", "name": "C", "symbols": ["X"]}),
    )
    b = json.loads(info.schema)["fields"][0]["type"]["values"]
    assert b["fields"][0]["type"]["symbols"] == ["X"]
    assert b["fields"][1]["type"] == "C"
    assert json.loads(info.schema)["fields"][1]["type"] == "C"


def test_an_inlined_type_keeps_its_own_namespace() -> None:
    info = schema_of(
        "{type: AVRO, definition: a.avsc, references: [b.avsc, c.avsc, d.avsc]}",
        topics__a_avsc=record("A", "Inner", "Bare", "other.D", namespace="shop"),
        topics__b_avsc=record("Outer", {"type": "fixed", "name": "Inner", "size": 2}, namespace="shop"),
        topics__c_avsc=record("Bare", {"type": "enum", "name": "E", "symbols": ["X"]}),
        topics__d_avsc=record("other.D", "E2", {"type": "enum", "name": "E2", "symbols": ["X"]}),
    )
    inner, bare, d = (each["type"] for each in json.loads(info.schema)["fields"])
    assert inner == {"type": "fixed", "name": "Inner", "size": 2}
    assert (bare["name"], bare["namespace"]) == ("Bare", "")
    assert d["fields"][0]["type"] == {"type": "enum", "name": "E2", "symbols": ["X"]}
    assert d["fields"][1]["type"] == "other.E2"


def test_a_type_that_contains_itself_is_no_circle() -> None:
    info = schema_of(
        "{type: AVRO, definition: a.avsc, references: [b.avsc]}",
        topics__a_avsc=record("A", "Node"),
        topics__b_avsc=record("Node", ["null", "Node"]),
    )
    assert json.loads(info.schema)["fields"][0]["type"]["fields"][0]["type"] == ["null", "Node"]


def test_types_of_one_file_find_each_other() -> None:
    info = schema_of(
        "{type: AVRO, definition: {type: B}, references: [b.avsc]}",
        topics__b_avsc=f"[{record('A', 'int')}, {record('B', 'A', 'A')}]",
    )
    fields = json.loads(info.schema)["fields"]
    assert fields[0]["type"]["name"] == "A"
    assert fields[1]["type"] == "A"


def test_the_text_stays_when_nothing_is_inlined() -> None:
    files = MemoryFiles(
        {
            "topics/a.yaml": "topic: shop/sales/a\nschema: {type: AVRO, definition: a.avsc, references: [b.avsc]}\n",
            "topics/a.avsc": '"string"\n',
            "topics/b.avsc": record("B"),
        }
    )
    declared = read(files, PROJECT)
    assert declared.catalog.topics[TOPIC].schema == SchemaInfo(SchemaType.AVRO, b'"string"\n')
    assert [(each.rule, each.source) for each in declared.findings] == [
        ("REFERENCE_UNUSED", Source("topics/a.yaml", 2, 55))
    ]


def test_a_reference_that_a_half_does_not_use_is_found() -> None:
    text = (
        "topic: shop/sales/a\nschema:\n  type: KEY_VALUE\n  key: {type: STRING}\n"
        "  value: {type: AVRO, definition: '\"int\"', references: [b.avsc]}\n"
    )
    declared = read(MemoryFiles({"topics/a.yaml": text, "topics/b.avsc": record("B")}), PROJECT)
    assert [each.source for each in declared.findings] == [Source("topics/a.yaml", 5, 57)]


def test_findings_lead_into_the_file_that_a_part_came_from() -> None:
    info = schema_of(
        "{type: AVRO, definition: a.avsc, references: [../common/b.avsc]}",
        topics__a_avsc='{"type": "record", "name": "A", "fields": [\n  {"name": "x", "type": ["null", "B"]},\n'
        '  {"name": "y", "type": "B"}]}',
        common__b_avsc='{"type": "record", "name": "B",\n "fields": [\n  {"name": "z", "type": "int"}]}',
    )
    assert info.locate("/fields/0") == Source("topics/a.avsc", 2, 3)
    assert info.locate("/fields/0/type/1") == Source("common/b.avsc", 1, 1)
    assert info.locate("/fields/0/type/1/fields/0/type") == Source("common/b.avsc", 3, 25)
    assert info.locate("/fields/0/type/1/symbols") == Source("common/b.avsc", 1, 1)
    assert info.locate("/fields/1/type/fields/0") == Source("topics/a.avsc", 3, 25)
    assert info.locate("/") == Source("topics/a.avsc", 1, 1)
    assert info.source == Source("topics/a.avsc", 1, 1)


def test_halves_have_places_of_their_own() -> None:
    info = schema_of(
        "\n  type: KEY_VALUE\n  key: {type: STRING}\n  value:\n    type: AVRO\n    definition: a.avsc",
        topics__a_avsc='{"type":\n "string"}',
    )
    assert info.locate("/value/type") == Source("topics/a.avsc", 2, 2)
    assert info.locate("/key") == Source("topics/a.yaml", 4, 8)
    assert info.locate("") == Source("topics/a.yaml", 3, 3)
    assert info.locate("/encoding") == Source("topics/a.yaml", 3, 3)


def test_dependencies_name_every_file_read_or_missed() -> None:
    files = MemoryFiles(
        {
            "topics/a.yaml": "topic: shop/sales/a\nschema: {type: AVRO, definition: a.avsc, references: [../x/b.avsc]}\n",
            "x/b.avsc": record("B"),
        }
    )
    declared = read(files, PROJECT)
    assert declared.dependencies == {TOPIC: {"topics/a.avsc", "x/b.avsc"}}
    assert TOPIC not in declared.catalog.topics


@pytest.mark.parametrize(
    ("apart", "what"),
    [
        ({"topics/a.avsc": "symlink"}, "`topics/a.avsc` is a symbolic link; links are not followed"),
        ({"topics/x": "symlink"}, "`topics/x` is a symbolic link; links are not followed"),
        (
            {"topics/x": "submodule"},
            "`topics/x` is another repository (a submodule); its files are not part of this one",
        ),
    ],
)
def test_links_and_submodules_are_not_followed(apart: dict[str, Kind], what: str) -> None:
    definition = "a.avsc" if "topics/a.avsc" in apart else "x/a.avsc"
    files = MemoryFiles(
        {
            "topics/a.yaml": f"topic: shop/sales/a\nschema: {{type: AVRO, definition: {definition}}}\n",
        },
        apart=apart,
    )
    fixes = {problem.fix for problem in read(files, PROJECT).problems if problem.what == what}
    assert fixes
    assert f"write {definition}" not in fixes


# The law of references: what stands alone means the same as what was spread over files.

NAMES = [f"n{number}.T{number}" for number in range(6)]


@st.composite
def spread(draw: st.DrawFn) -> list[list[Any]]:
    """Types n0.T0 to n5.T5, each as the types of its fields; a type uses only types of larger numbers."""
    found = []
    for number in range(len(NAMES)):
        uses = st.sampled_from(["int", "string", *NAMES[number + 1 :]])
        shapes = (
            uses
            | uses.map(lambda use: {"type": "array", "items": use})
            | uses.map(lambda use: {"type": "map", "values": use})
        )
        found.append(
            draw(st.lists(shapes | uses.map(lambda use: use if use == "null" else ["null", use]), max_size=4))
        )
    return found


@given(spread(), st.permutations(range(1, len(NAMES))))
def test_a_definition_spread_over_files_means_what_it_means_in_one(
    types: list[list[Any]], order: list[int]
) -> None:
    parts = [record(name, *fields) for name, fields in zip(NAMES, types, strict=True)]
    files = {f"topics/{number}.avsc": text for number, text in enumerate(parts)}
    listed = ", ".join(f"{number}.avsc" for number in order)
    files["topics/a.yaml"] = (
        f"topic: shop/sales/a\nschema: {{type: AVRO, definition: 0.avsc, references: [{listed}]}}\n"
    )
    declared = read(MemoryFiles(files), PROJECT)
    assert declared.problems == ()
    info = declared.catalog.topics[TOPIC].schema
    assert info is not None

    defined: set[str] = set()

    def whole(schema: Any) -> Any:
        if isinstance(schema, list):
            return [whole(branch) for branch in schema]
        if isinstance(schema, dict):
            return {
                key: whole(value) if key in ("items", "values") else value for key, value in schema.items()
            }
        if schema not in NAMES or schema in defined:
            return schema
        defined.add(schema)
        fields = types[NAMES.index(schema)]
        made = json.loads(record(schema, *fields))
        for field in made["fields"]:
            field["type"] = whole(field["type"])
        return made

    assert json.loads(info.schema) == whole(NAMES[0])
