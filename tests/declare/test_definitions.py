"""Read declared schemas into the definitions that Pulsar stores, with the places of their parts in the files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_files import MemoryFiles
from property_runs import EXAMPLES

from schemactl.core.errors import Source
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.declare.files import Kind
from schemactl.declare.reader import Declared, read
from schemactl.declare.references import files_of
from schemactl.formats import SPECS
from schemactl.formats.key_value import split

PROJECT = Project(roots=("topics",))
TOPIC = TopicName.parse("shop/sales/a")
AVRO = "{type: AVRO, definition: a.avsc}"


def declare(schema: str, **files: str) -> Declared:
    """Read a topic with this `schema:` line; `files` are next to it, by name with `_` for the dot."""
    files_by_path = {f"topics/{path.replace('_', '.')}": text for path, text in files.items()}
    text = f"topic: shop/sales/a\nschema: {schema}\n"
    return read(MemoryFiles({"topics/a.yaml": text, **files_by_path}), PROJECT)


def read_schema(schema: str, **files: str) -> SchemaInfo:
    """Return the schema of a topic without problems."""
    declared = declare(schema, **files)
    assert declared.problems == ()
    info = declared.catalog.topics[TOPIC].schema
    assert info is not None
    return info


def get_field_types(info: SchemaInfo) -> list[Any]:
    """Return the types of the fields of a record."""
    return [field["type"] for field in json.loads(info.schema)["fields"]]


def render_record(name: str, *types: Any, **attributes: Any) -> str:
    """Render a record with a field of each type."""
    fields = [{"name": f"f{number}", "type": type_} for number, type_ in enumerate(types)]
    return json.dumps({"type": "record", "name": name, **attributes, "fields": fields})


# Stored definitions


@pytest.mark.parametrize(
    ("schema", "files", "stored"),
    [
        (AVRO, {"a_avsc": '{ /* c */ "type": "record",\n\n "name": "A", "fields": [] }\n'}, None),
        (AVRO, {"a_avsc": '{"type":\r\n "string"}\r\n'}, '{"type":\n "string"}\n'),
        ('\n  type: JSON\n  definition: |\n    {"type":\n      "string"}', {}, '{"type":\n  "string"}\n'),
        (
            "{type: AVRO, definition: {name: A, type: enum, symbols: [É, no], default: no}}",
            {},
            '{\n  "name": "A",\n  "type": "enum",\n  "symbols": [\n    "É",\n    "no"\n  ],\n  "default": "no"\n}',
        ),
    ],
    ids=["as the file has it", "with line ends of LF", "as the text in YAML has it", "YAML as JSON"],
)
def test_a_definition_is_stored_as_it_is_written(schema: str, files: dict[str, str], stored: str | None) -> None:
    assert read_schema(schema, **files).schema.decode() == (stored or files["a_avsc"])


@pytest.mark.parametrize("type_", [type_ for type_ in SchemaType if SPECS[type_].declared_as == "plain"])
def test_a_type_without_definition_stores_its_properties_alone(type_: SchemaType) -> None:
    if SPECS[type_].undeclarable or SPECS[type_].first_release is not Release.R4_0:
        assert declare(f"{{type: {type_.name}}}").problems
        return
    info = read_schema(f"{{type: {type_.name}, properties: {{owner: orders-team}}}}")
    assert (info.type, info.schema, dict(info.properties)) == (type_, b"", {"owner": "orders-team"})


def test_key_value_is_stored_as_pulsars_client_stores_it() -> None:
    info = read_schema(
        "{type: KEY_VALUE, encoding: SEPARATED, key: {type: STRING, properties: {b: '2', a: '1'}},"
        " value: {type: AVRO, definition: a.avsc}, properties: {owner: x}}",
        a_avsc='"int"',
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
    inline = read_schema("{type: KEY_VALUE, key: {type: BYTES}, value: {type: INT32}}")
    assert split(inline).encoding == "INLINE"


@pytest.mark.parametrize("suffix", ["txt", "json", "proto"])
@pytest.mark.parametrize(
    "text", ["", "\n", "a\r\nb\n\n", '{"type": "record"}', "syntax = 'proto3'; import \"gone.proto\";"]
)
def test_an_external_definition_is_the_unchanged_text_of_its_file(suffix: str, text: str) -> None:
    path = f"topics/a.{suffix}"
    declaration = f"topic: shop/sales/a\nschema: {{type: EXTERNAL, definition: a.{suffix}, properties: {{a: b}}}}\n"
    files = MemoryFiles({"topics/a.yaml": declaration, path: text})
    declared = read(files, Project(roots=("topics",), release=Release.R4_2))
    info = declared.catalog.topics[TOPIC].schema
    assert declared.problems == ()
    assert info is not None
    assert (info.type, info.schema.decode(), dict(info.properties)) == (SchemaType.EXTERNAL, text, {"a": "b"})
    assert str(info.locate("")).startswith(path)


def test_external_needs_a_release_that_knows_it() -> None:
    files = MemoryFiles({"topics/a.yaml": "topic: shop/sales/a\nschema: {type: EXTERNAL}\n"})
    assert not read(files, Project(roots=("topics",), release=Release.R4_2)).problems


PROTO = "{type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click, references: [money.proto]}"
CLICK = 'syntax = "proto3";\npackage web;\nimport "money.proto";\nmessage Click { common.Money price = 1; }\n'
MONEY = 'syntax = "proto3";\npackage common;\nmessage Money { int64 units = 1; }\n'


def test_a_proto_is_compiled_with_its_references() -> None:
    info = read_schema(PROTO, click_proto=CLICK, money_proto=MONEY)
    assert json.loads(info.schema)["rootMessageTypeName"] == "web.Click"
    assert info.source == Source("topics/click.proto")
    assert info.locate("/messages/web.Click/fields/1") == Source("topics/click.proto", 4, 17)
    assert info.locate("/messages/common.Money/fields/1") == Source("topics/money.proto", 3, 17)


@pytest.mark.parametrize(
    "written",
    [
        'package web; import "money.proto";',
        "package web;\n  import\t'topics/money.proto';",
        'package web; /* of all */ import public"money.proto";',
        'package web;\nimport weak "topics/money.proto";',
    ],
)
def test_an_import_is_found_however_it_is_written(written: str) -> None:
    text = f'syntax = "proto3"; {written} message Click {{ common.Money price = 1; }}'
    info = read_schema(PROTO, click_proto=text, money_proto=MONEY)
    assert json.loads(info.schema)["rootMessageTypeName"] == "web.Click"


def test_moving_a_proto_makes_no_other_version() -> None:
    line = "{type: PROTOBUF_NATIVE, definition: NAME, message: common.Money}"
    schema = read_schema(line.replace("NAME", "a.proto"), a_proto=MONEY)
    moved_schema = read_schema(line.replace("NAME", "x/b.proto"), **{"x/b_proto": MONEY})
    identity = SPECS[SchemaType.PROTOBUF_NATIVE].identity
    assert identity(schema) == identity(moved_schema)


def test_a_protobuf_schema_knows_its_proto() -> None:
    info = read_schema(
        "{type: PROTOBUF, definition: a.avsc, proto: click.proto, message: web.Click, references: [b.avsc, money.proto]}",
        a_avsc=render_record("A", "B"),
        b_avsc=render_record("B"),
        click_proto=CLICK,
        money_proto=MONEY,
    )
    assert info.proto is not None
    assert (info.type, info.proto.type) == (SchemaType.PROTOBUF, SchemaType.PROTOBUF_NATIVE)
    assert b'"name": "B"' in info.schema


# References


def test_a_referenced_type_is_defined_where_it_is_used_first() -> None:
    info = read_schema(
        "{type: AVRO, definition: a.avsc, references: [b.avsc, c.avsc]}",
        a_avsc=render_record("A", {"type": "map", "values": "B"}, "C"),
        b_avsc=render_record("B", "C", "C"),
        c_avsc=json.dumps({"type": "enum", "name": "C", "symbols": ["X"]}),
    )
    first, second = get_field_types(info)
    used, again = (field["type"] for field in first["values"]["fields"])
    assert (used["symbols"], again, second) == (["X"], "C", "C")


def test_an_inlined_type_keeps_its_own_namespace() -> None:
    info = read_schema(
        "{type: AVRO, definition: a.avsc, references: [b.avsc, c.avsc, d.avsc]}",
        a_avsc=render_record("A", "Inner", "Bare", "other.D", namespace="shop"),
        b_avsc=render_record("Outer", {"type": "fixed", "name": "Inner", "size": 2}, namespace="shop"),
        c_avsc=render_record("Bare", {"type": "enum", "name": "E", "symbols": ["X"]}),
        d_avsc=render_record("other.D", "E2", {"type": "enum", "name": "E2", "symbols": ["X"]}),
    )
    inner, bare, d = get_field_types(info)
    assert inner == {"type": "fixed", "name": "Inner", "size": 2}
    assert (bare["name"], bare["namespace"]) == ("Bare", "")
    assert d["fields"][0]["type"] == {"type": "enum", "name": "E2", "symbols": ["X"]}
    assert d["fields"][1]["type"] == "other.E2"


def test_a_type_that_contains_itself_is_no_circle() -> None:
    info = read_schema(
        "{type: AVRO, definition: a.avsc, references: [b.avsc]}",
        a_avsc=render_record("A", "Node"),
        b_avsc=render_record("Node", ["null", "Node"]),
    )
    assert get_field_types(info)[0]["fields"][0]["type"] == ["null", "Node"]


def test_types_of_one_file_find_each_other() -> None:
    info = read_schema(
        "{type: AVRO, definition: {type: B}, references: [b.avsc]}",
        b_avsc=f"[{render_record('A', 'int')}, {render_record('B', 'A', 'A')}]",
    )
    first, second = get_field_types(info)
    assert (first["name"], second) == ("A", "A")


def test_the_text_stays_and_a_finding_comes_when_nothing_is_inlined() -> None:
    declared = declare(
        "{type: AVRO, definition: a.avsc, references: [b.avsc]}", a_avsc='"string"\n', b_avsc=render_record("B")
    )
    assert declared.catalog.topics[TOPIC].schema == SchemaInfo(SchemaType.AVRO, b'"string"\n')
    in_half = declare(
        "\n  type: KEY_VALUE\n  key: {type: STRING}\n"
        "  value: {type: AVRO, definition: '\"int\"', references: [b.avsc]}",
        b_avsc=render_record("B"),
    )
    findings = [(finding.rule, finding.source) for finding in (*declared.findings, *in_half.findings)]
    places = [Source("topics/a.yaml", 2, 55), Source("topics/a.yaml", 5, 57)]
    assert findings == [("REFERENCE_UNUSED", place) for place in places]


def test_findings_lead_into_the_file_that_a_part_came_from() -> None:
    info = read_schema(
        "{type: AVRO, definition: a.avsc, references: [b.avsc]}",
        a_avsc='{"type": "record", "name": "A", "fields": [\n  {"name": "x", "type": ["null", "B"]},\n'
        '  {"name": "y", "type": "B"}]}',
        b_avsc='{"type": "record", "name": "B",\n "fields": [\n  {"name": "z", "type": "int"}]}',
    )
    for pointer, name, line, column in (
        ("/fields/0", "a", 2, 3),
        ("/fields/0/type/1", "b", 1, 1),
        ("/fields/0/type/1/fields/0/type", "b", 3, 25),
        ("/fields/0/type/1/symbols", "b", 1, 1),
        ("/fields/1/type/fields/0", "a", 3, 25),
        ("/", "a", 1, 1),
    ):
        assert info.locate(pointer) == Source(f"topics/{name}.avsc", line, column)
    assert info.source == Source("topics/a.avsc", 1, 1)


def test_halves_have_places_of_their_own() -> None:
    info = read_schema(
        "\n  type: KEY_VALUE\n  key: {type: STRING}\n  value:\n    type: AVRO\n    definition: a.avsc",
        a_avsc='{"type":\n "string"}',
    )
    assert info.locate("/value/type") == Source("topics/a.avsc", 2, 2)
    assert info.locate("/key") == Source("topics/a.yaml", 4, 8)
    assert info.locate("") == info.locate("/encoding") == Source("topics/a.yaml", 3, 3)


def test_json_schema_of_old_clients_is_named_as_what_it_is() -> None:
    text = '{"type": "object", "id": "urn:jsonschema:A", "properties": {"x": {"type": "string"}}}'
    (problem,) = declare("{type: JSON, definition: a.avsc}", a_avsc=text).problems
    assert str(problem).startswith("topics/a.avsc:1:10: this is JSON Schema, in which clients before Pulsar 2.1")
    assert "write a record with the same fields" in problem.fix


def test_two_stars_stand_for_any_number_of_folders_each_by_itself() -> None:
    paths = ["a/b/m.avsc", "a/b/x/m.avsc", "a/x/b/m.avsc", "a/x/y/b/z/m.avsc"]
    files = MemoryFiles(dict.fromkeys([*paths, "a/m.avsc", "a/xb/m.avsc", "a/b/.x/m.avsc"], "{}"))
    assert files_of(files, "topics", "../a/**/b/**/m.avsc") == paths


@pytest.mark.parametrize("written", ["../a[b]/", "../a[b]/*.avsc", "../a[b]/**/m.avsc"])
def test_brackets_in_the_name_of_a_folder_are_no_range(written: str) -> None:
    files = MemoryFiles(dict.fromkeys(["a[b]/m.avsc", "ab/m.avsc"], "{}"))
    assert files_of(files, "topics", written) == ["a[b]/m.avsc"]


def test_dependencies_name_every_file_read_or_missed() -> None:
    declared = declare("{type: AVRO, definition: a.avsc, references: [b.avsc]}", b_avsc=render_record("B"))
    assert declared.dependencies == {TOPIC: {"topics/a.avsc", "topics/b.avsc"}}
    assert TOPIC not in declared.catalog.topics


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("a.avsc", "symlink", "is a symbolic link; links are not followed"),
        ("x", "symlink", "is a symbolic link; links are not followed"),
        ("x", "submodule", "is another repository (a submodule); its files are not part of this one"),
    ],
)
def test_links_and_submodules_are_not_followed(path: str, kind: Kind, message: str) -> None:
    definition = path if path == "a.avsc" else "x/a.avsc"
    text = f"topic: shop/sales/a\nschema: {{type: AVRO, definition: {definition}}}\n"
    files = MemoryFiles({"topics/a.yaml": text}, apart={f"topics/{path}": kind})
    fixes = {
        problem.fix for problem in read(files, PROJECT).problems if problem.message == f"`topics/{path}` {message}"
    }
    assert fixes
    assert f"write {definition}" not in fixes


# A definition that is split into several files has the same content as one file.

NAMES = [f"n{number}.T{number}" for number in range(6)]


@st.composite
def draw_types(draw: st.DrawFn) -> list[list[Any]]:
    """Draw types n0.T0 to n5.T5 as lists of field types; a type uses only types with larger numbers."""
    types = []
    for number in range(len(NAMES)):
        uses = st.sampled_from(["int", "string", *NAMES[number + 1 :]])
        arrays = uses.map(lambda use: {"type": "array", "items": use})
        maps = uses.map(lambda use: {"type": "map", "values": use})
        types.append(draw(st.lists(uses | arrays | maps | uses.map(lambda use: ["null", use]), max_size=4)))
    return types


@given(draw_types(), st.permutations(range(1, len(NAMES))))
@EXAMPLES
def test_a_definition_spread_over_files_means_what_it_means_in_one(types: list[list[Any]], order: list[int]) -> None:
    files = {f"{number}_avsc": render_record(name, *types[number]) for number, name in enumerate(NAMES)}
    listed = ", ".join(f"{number}.avsc" for number in order)
    info = read_schema(f"{{type: AVRO, definition: 0.avsc, references: [{listed}]}}", **files)
    defined: set[str] = set()

    def inline(schema: Any) -> Any:
        if isinstance(schema, list):
            return [inline(branch) for branch in schema]
        if isinstance(schema, dict):
            return {key: inline(value) if key in ("items", "values") else value for key, value in schema.items()}
        if schema not in NAMES or schema in defined:
            return schema
        defined.add(schema)
        definition = json.loads(render_record(schema, *types[NAMES.index(schema)]))
        for field in definition["fields"]:
            field["type"] = inline(field["type"])
        return definition

    assert json.loads(info.schema) == inline(NAMES[0])
