"""PROTOBUF_NATIVE schema bytes: reading, writing and identity; descriptors printed as `.proto`; and the places of pointers in a `.proto`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from corpora import read_rows
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from protobuf_corpus import compile_definition, descriptor_sets, read_public_rows

from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.findings import Breakage
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import SPECS, find_problems, identity
from schemactl.formats.protobuf.definition import (
    BROKER_MESSAGE,
    field_path,
    find_place,
    is_shipped,
    make_source,
    parse,
    proto_text,
)
from schemactl.formats.protobuf.descriptor import Span, default_json_name
from schemactl.formats.protobuf.protoc import Proto, compile_all, compile_proto, read_descriptor_set
from schemactl.formats.protobuf.rendering import render_set

pytestmark = pytest.mark.slow

FORMAT = SPECS[SchemaType.PROTOBUF_NATIVE]

CLICK = 'syntax = "proto3"; package web; message Click { message At { int32 x = 1; } string user_id = 1; At at = 2; }'


def read_envelope(schema: bytes) -> dict[str, Any]:
    envelope: dict[str, Any] = json.loads(schema)
    return envelope


def make_native(**changed: Any) -> SchemaInfo:
    """Return web.Click's definition with changed values in its JSON object; None removes a key."""
    values = read_envelope(compile_definition(CLICK, "web.Click").schema) | changed
    text = json.dumps({key: value for key, value in values.items() if value is not None})
    return SchemaInfo(SchemaType.PROTOBUF_NATIVE, text.encode())


def files_of(info: SchemaInfo) -> FileDescriptorSet:
    return FileDescriptorSet.FromString(base64.b64decode(read_envelope(info.schema)["fileDescriptorSet"]))


def with_files(info: SchemaInfo, files: FileDescriptorSet, indent: int | None = None) -> SchemaInfo:
    """Return the definition with changed descriptors."""
    encoded = base64.b64encode(files.SerializeToString()).decode()
    text = json.dumps(read_envelope(info.schema) | {"fileDescriptorSet": encoded}, indent=indent)
    return SchemaInfo(SchemaType.PROTOBUF_NATIVE, text.encode())


def read_problem(info: SchemaInfo) -> str:
    [problem] = FORMAT.find_problems(info, Release.R4_0)
    assert problem.message.startswith(BROKER_MESSAGE)
    return problem.message.removeprefix(f"{BROKER_MESSAGE}: ")


def test_broker_accepts_the_same_definitions() -> None:
    judged = 0
    for row in read_rows("broker_public"):
        if row["new"].get("type") == "PROTOBUF_NATIVE":
            data = base64.b64decode(row["new"].get("schema_b64") or "")
            problems = list(FORMAT.find_problems(SchemaInfo(SchemaType.PROTOBUF_NATIVE, data), Release.R4_0))
            assert bool(problems) is (row["verdict"] == "invalid"), row["id"]
            judged += 1
    assert judged > 100


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"fileDescriptorSet": None}, "`fileDescriptorSet` is missing"),
        ({"fileDescriptorSet": "!!"}, "`fileDescriptorSet` is not base64"),
        ({"fileDescriptorSet": "AAA"}, "`fileDescriptorSet` is not base64"),
        ({"fileDescriptorSet": "////"}, "not a serialized FileDescriptorSet"),
        ({"fileDescriptorSet": ["x"]}, "`fileDescriptorSet` is not base64"),
        ({"rootMessageTypeName": ["x"]}, "its values are text"),
        ({"rootFileDescriptorName": None}, "`rootFileDescriptorName` is missing"),
        ({"rootFileDescriptorName": "b.proto"}, "the descriptor set has no file 'b.proto'"),
        ({"rootMessageTypeName": None}, "`rootMessageTypeName` is missing"),
        ({"rootMessageTypeName": "web.Visit"}, "schema.proto declares no message 'web.Visit'"),
        ({"rootMessageTypeName": "Click.At"}, "schema.proto declares no message 'Click.At'"),
    ],
)
def test_definition_that_no_broker_can_read_is_rejected_with_its_reason(changed: dict[str, Any], reason: str) -> None:
    assert read_problem(make_native(**changed)).startswith(reason)


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"nope", b"{", b"\xff", b"[" * 100_000])
def test_text_that_is_not_a_json_object_is_rejected(text: bytes) -> None:
    assert read_problem(SchemaInfo(SchemaType.PROTOBUF_NATIVE, text)).startswith("not a JSON object")


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "web.Click"),
        ({"rootMessageTypeName": "Click"}, "web.Click"),
        ({"rootMessageTypeName": "web.Click.At"}, "web.Click.At"),
        ({"foo": 1}, "web.Click"),
    ],
)
def test_pulsars_leniency_is_kept(changed: dict[str, Any], name: str) -> None:
    assert parse(make_native(**changed).schema).root.full_name == name


def test_text_after_the_object_does_not_matter() -> None:
    info = make_native()
    assert parse(b"\xef\xbb\xbf " + info.schema + b" trailing").root.full_name == "web.Click"


def test_descriptors_that_do_not_fit_together_are_rejected() -> None:
    files = files_of(make_native())
    files.file[0].message_type[0].field[1].type_name = ".web.Gone"
    assert "web.Gone" in read_problem(with_files(make_native(), files))


def test_missing_and_circular_imports_are_rejected() -> None:
    files = files_of(make_native())
    files.file[0].dependency.append("other.proto")
    assert "does not have other.proto" in read_problem(with_files(make_native(), files))
    files.file.add(name="other.proto", dependency=["schema.proto"])
    assert "imports itself" in read_problem(with_files(make_native(), files))


def test_every_public_definition_is_written_unchanged() -> None:
    for _, old, new in read_public_rows():
        for info in (old, new):
            assert render_set(parse(info.schema).root) == info.schema
            # The corpus has messages that must contain themselves, which brokers store.
            assert [
                problem.message
                for problem in FORMAT.find_problems(info, Release.R5_0)
                if "contain itself" not in problem.message
            ] == []


def test_the_bytes_have_pulsars_keys_and_no_source_info() -> None:
    info = compile_definition(f"// a comment\n{CLICK}", "web.Click")
    assert info.schema == compile_definition(CLICK, "web.Click").schema
    assert list(read_envelope(info.schema)) == ["fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName"]


COMMON = b'syntax = "proto3"; package common; message Money { int64 units = 1; }'
ORDER = b'syntax = "proto3"; import "common/money.proto"; message M { common.Money price = 1; }'


def test_only_needed_files_are_written_in_the_order_of_javas_client() -> None:
    sources = {"z.proto": ORDER, "common/money.proto": COMMON, "unused.proto": COMMON.replace(b"common", b"other")}
    info = compile_proto(Proto("M", "z.proto", sources))
    assert [file.name for file in files_of(info).file] == ["z.proto", "common/money.proto"]


def native_identity(info: SchemaInfo) -> object:
    return FORMAT.identity(info)


def test_one_content_is_one_version_whoever_wrote_it() -> None:
    info = compile_proto(Proto("M", "z.proto", {"z.proto": ORDER, "common/money.proto": COMMON}))
    files = files_of(info)
    for file in files.file:
        for message in file.message_type:
            for field in message.field:
                # Like in Java's generated code.
                field.ClearField("json_name")
        file.source_code_info.location.add(path=[4, 0], span=[0, 0, 1])
    reordered = FileDescriptorSet(file=reversed(files.file))
    assert native_identity(with_files(info, reordered, indent=2)) == native_identity(info)


def test_a_file_of_another_name_or_folder_is_the_same_version() -> None:
    moved = ORDER.replace(b"common/money.proto", b"money.proto")
    one = compile_proto(Proto("M", "a.proto", {"a.proto": ORDER, "common/money.proto": COMMON}))
    other = compile_proto(Proto("M", "web/b.proto", {"web/b.proto": moved, "money.proto": COMMON}))
    assert one.schema != other.schema
    assert native_identity(one) == native_identity(other)


@pytest.mark.parametrize(
    "other",
    [
        CLICK.replace("user_id", "user"),
        CLICK.replace("string user_id = 1", "string user_id = 3"),
        CLICK.replace("string user_id = 1", 'string user_id = 1 [json_name = "uid"]'),
        CLICK.replace("proto3", "proto2")
        .replace("string", "optional string")
        .replace("At at", "optional At at")
        .replace("int32", "optional int32"),
        CLICK + " message More {}",
    ],
)
def test_another_content_is_another_version(other: str) -> None:
    assert native_identity(compile_definition(other, "web.Click")) != native_identity(
        compile_definition(CLICK, "web.Click")
    )


def test_another_root_is_another_version() -> None:
    assert native_identity(compile_definition(CLICK, "web.Click")) != native_identity(
        compile_definition(CLICK, "web.Click.At")
    )


def test_protocs_own_files_may_change_with_its_release() -> None:
    text = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp at = 1; }'
    )
    info = compile_definition(text)
    files = files_of(info)
    [shipped] = [file for file in files.file if file.name.startswith("google/")]
    shipped.options.csharp_namespace = "Elsewhere"
    assert native_identity(with_files(info, files)) == native_identity(info)


@pytest.mark.parametrize(
    ("name", "json_name"),
    [("user_id", "userId"), ("a", "a"), ("a_1b", "a1b"), ("_a", "A"), ("a__b_", "aB"), ("aB", "aB")],
)
def test_default_json_names_are_protocs(name: str, json_name: str) -> None:
    assert default_json_name(name) == json_name
    info = compile_definition(f'syntax = "proto3"; message M {{ int32 {name} = 1; }}')
    assert parse(info.schema).root.fields()[1].json_name == json_name


def test_a_descriptor_set_is_a_definition() -> None:
    info = compile_definition(CLICK, "web.Click")
    read = read_descriptor_set(files_of(info).SerializeToString(), "web.Click.At", path="web/click.binpb")
    assert parse(read.schema).root.full_name == "web.Click.At"
    assert str(read.locate("/messages/web.Click")) == "web/click.binpb:1:1"


@pytest.mark.parametrize(
    ("data", "where", "pointer", "message"),
    [
        (b"\xff", "web/click.binpb:1:1: ", "", "not a serialized FileDescriptorSet"),
        # The declaration names the message, so the error is not at the set.
        (b"", "", "/message", "no message is called 'M'"),
    ],
)
def test_a_bad_descriptor_set_is_one_clear_error(data: bytes, where: str, pointer: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message) as raised:
        read_descriptor_set(data, "M", path="web/click.binpb")
    assert str(raised.value).startswith(f"{where}{raised.value.message}")
    assert raised.value.pointer == pointer


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("message M { required M m = 1; }", {"/messages/M/fields/1": "M.m"}),
        ("message M { required N n = 2; } message N { optional M o = 1; required M m = 3; }", {"/messages/M/fields/2": "M.n.m"}),
        ("message M { optional N n = 1; } message N { required N n = 1; }", {"/messages/N/fields/1": "N.n"}),
        ("message M { repeated N n = 1; } message N { required O o = 1; } message O { required O o = 7; }", {"/messages/O/fields/7": "O.o"}),
        ("message M { map<string, N> n = 1; } message N { required N n = 1; }", {"/messages/N/fields/1": "N.n"}),
        ("message M { required group G = 1 { required M m = 2; } }", {"/messages/M/fields/1": "M.g.m"}),
        (
            "message M { required A a = 1; required B b = 2; } message A { required A a = 1; } message B { required B b = 1; }",
            {"/messages/A/fields/1": "A.a", "/messages/B/fields/1": "B.b"},
        ),
        ("message M { optional M m = 1; }", {}),
        ("message M { required N n = 1; } message N { repeated M m = 1; }", {}),
        ("message M { required N n = 1; } message N { map<int32, M> m = 1; }", {}),
        ("message M { required N n = 1; } message N { oneof o { M m = 1; int32 i = 2; } }", {}),
        ("message M { required N a = 1; required N b = 2; } message N { required int32 i = 1; }", {}),
        ("message M { optional int32 i = 1; } message N { required N n = 1; }", {}),
    ],
)  # fmt: skip
def test_message_that_must_contain_itself_is_an_error_at_the_field(text: str, paths: dict[str, str]) -> None:
    info = compile_definition(f'syntax = "proto2"; {text}')
    assert {
        problem.pointer: problem.message.partition(": ")[0].rpartition(" ")[2]
        for problem in FORMAT.find_problems(info, Release.R4_0)
    } == paths
    assert parse(info.schema).root.full_name == "M", "an approved version stays readable"


def test_message_that_must_contain_itself_is_an_error_for_the_proto_of_an_avro_definition() -> None:
    avro = b'{"type": "record", "name": "M", "fields": []}'
    info = SchemaInfo(
        SchemaType.PROTOBUF, avro, proto=compile_definition('syntax = "proto2"; message M { required M m = 1; }')
    )
    [problem] = find_problems(info, Release.R4_0)
    assert "M must contain itself by the required field M.m" in problem.message


RELATIVE = """
syntax = "proto2"; package a.b;
import "c.proto";
message M {
  extensions 100 to 200;
  enum Kind { NONE = 0; }
  message Kind2 { optional M up = 1; }
  optional Kind kind = 1;
  optional Kind2 kind2 = 2;
  map<string, Kind2> kinds = 3;
  optional group G = 4 { optional Kind kind = 1; }
  oneof o { Other other = 5; }
  optional c.Shared shared = 6;
  optional Outer outer = 7;
  optional Public public = 8;
  extend Other { optional M nested_extension = 100; }
}
message Other { extensions 100 to 200; }
extend M { optional Other extension = 100; }
service S { rpc Get(M) returns (M.Kind2); }
"""

# The names of the types above without a leading dot, by the full names: "a.b.M" can be M, b.M or a.b.M in its own package.
SPELLINGS = [
    lambda name: name,
    lambda name: name.removeprefix("a."),
    lambda name: name.removeprefix("a.").removeprefix("b."),
    lambda name: name.removeprefix("a.b."),
    lambda name: name.removeprefix("a.b.M.").removeprefix("a.b."),
]


def users_of_types(file: FileDescriptorProto) -> Iterator[tuple[Any, str]]:
    """Yield the descriptors that name a type, each with the attribute."""
    for service in file.service:
        for method in service.method:
            yield from ((method, "input_type"), (method, "output_type"))
    pending: list[Any] = [file]
    while pending:
        parent = pending.pop()
        pending += parent.message_type if parent is file else parent.nested_type
        for field in [*parent.extension, *([] if parent is file else parent.field)]:
            yield from ((field, attribute) for attribute in ("type_name", "extendee") if getattr(field, attribute))


@pytest.fixture(scope="module")
def complete() -> SchemaInfo:
    """The definition of RELATIVE as protoc writes it: with a dot before each type name."""
    texts = {
        "m.proto": RELATIVE,
        "c.proto": 'syntax = "proto2"; package a.b.c; import public "d.proto"; message Shared {}',
        "d.proto": 'syntax = "proto2"; package a; message Outer {} message Public {}',
    }
    return compile_proto(Proto("a.b.M", "m.proto", {name: text.encode() for name, text in texts.items()}))


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("with_type", [True, False])
def test_type_name_without_a_leading_dot_is_resolved_from_the_innermost_scope(
    complete: SchemaInfo, spelling: Callable[[str], str], *, with_type: bool
) -> None:
    files = files_of(complete)
    [file] = [file for file in files.file if file.name == "m.proto"]
    for user, attribute in users_of_types(file):
        name = getattr(user, attribute).removeprefix(".")
        # The service cannot see the messages inside M.
        setattr(user, attribute, spelling(name) if attribute != "output_type" else name)
        if (
            attribute == "type_name"
            and user.type in (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM)
            and not with_type
        ):
            user.ClearField("type")
    info = with_files(complete, files)

    assert not list(FORMAT.find_problems(info, Release.R4_0))
    read, expected = parse(info.schema), parse(complete.schema)
    assert read.image.files["m.proto"].proto == expected.image.files["m.proto"].proto
    assert not list(FORMAT.resolve(reader=info, writer=complete))
    assert dict(FORMAT.list_parts(info)) == dict(FORMAT.list_parts(complete))
    assert files_of(SchemaInfo(info.type, render_set(read.root))) == files, "the stored names are registered"
    assert identity(info) != identity(complete), "a broker stores both, because their bytes differ"


@pytest.mark.parametrize(
    "name", ["Missing", "M.Missing", "b.Missing", "a.b.S", "Kind.NONE", "kind", "b.c.M", "Kind2.M"]
)
def test_type_name_that_is_not_defined_in_its_scope_is_a_problem(complete: SchemaInfo, name: str) -> None:
    files = files_of(complete)
    [file] = [file for file in files.file if file.name == "m.proto"]
    file.message_type[0].field[0].type_name = name
    assert read_problem(with_files(complete, files)) == f'a.b.M.kind: "{name}" is not defined.'


def test_innermost_scope_with_the_first_part_of_a_type_name_decides() -> None:
    info = compile_definition(
        'syntax = "proto2"; message M { message B {} optional B b = 1; } message B { message C {} }'
    )
    files = files_of(info)
    files.file[0].message_type[0].field[0].type_name = "B.C"
    assert read_problem(with_files(info, files)) == 'M.b: "B.C" is not defined.'
    files.file[0].message_type[0].field[0].type_name = ".B.C"
    assert not list(FORMAT.find_problems(with_files(info, files), Release.R4_0))


def print_files(info: SchemaInfo) -> Proto:
    """Print the definition's files."""
    definition = parse(info.schema)
    names = [name for name in definition.reachable if not is_shipped(name)]
    texts = {name: proto_text(definition.image.files[name].proto).encode() for name in names}
    return Proto(definition.root.full_name, definition.root.file.name, texts)


def test_the_corpus_compiles_to_the_same_content_again() -> None:
    infos = [info for _, *infos in read_public_rows() for info in infos]
    again = compile_all([print_files(info) for info in infos])
    for before, after in zip(infos, again, strict=True):
        assert isinstance(after, SchemaInfo), after
        assert identity(after) == identity(before), print_files(before).sources


EVERYTHING = Path(__file__).with_name("everything")
"""The folder of files with every construct of the language."""


@pytest.mark.parametrize(("entry", "message"), [("x/all.proto", "x.v1.All"), ("x/edition.proto", "x.v1.New")])
def test_everything_a_file_can_say(entry: str, message: str) -> None:
    sources = {str(path.relative_to(EVERYTHING)): path.read_bytes() for path in EVERYTHING.rglob("*.proto")}
    [before] = compile_all([Proto(message, entry, sources)])
    assert isinstance(before, SchemaInfo), before
    [after] = compile_all([print_files(before)])
    assert isinstance(after, SchemaInfo), after
    assert identity(after) == identity(before), print_files(before).sources


def test_part_that_cannot_be_printed_is_rejected() -> None:
    text = 'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }'
    [info] = compile_all([Proto.of_text(text, "M")])
    assert isinstance(info, SchemaInfo)
    with pytest.raises(InvalidSchema, match="the group g is not printed"):
        print_files(info)


COMMENTED_CLICK = """\
syntax = "proto3";
package web;
option go_package = "web";
import "common/money.proto";

// A click.
message Click {
  message Position { int32 x = 1; }

  int64 id = 1;
  repeated Position at = 2 [json_name = "where"];
  map<string, Kind> tags = 3;
  oneof target { string ad = 4; common.Money price = 5; }
}

enum Kind { NONE = 0; AD = 7; }
service Clicks {
  rpc List(Click) returns (stream Click) { option idempotency_level = IDEMPOTENT; }
}
"""
MONEY = """\
syntax = "proto2";
package common;
message Money {
\toptional int64 units = 1 [default = 3];
\textensions 100 to 199;
}
extend Money { optional string note = 100; }
"""


@pytest.fixture(scope="module")
def click_definition() -> SchemaInfo:
    return compile_proto(
        Proto(
            "web.Click",
            "click.proto",
            {"click.proto": COMMENTED_CLICK.encode(), "common/money.proto": MONEY.encode()},
            {"click.proto": "web/click.proto"},
        )
    )


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", "web/click.proto:7:1"),
        ("/messages/web.Click", "web/click.proto:7:1"),
        ("/messages/web.Click/fields/1", "web/click.proto:10:3"),
        ("/messages/web.Click/fields/1/type", "web/click.proto:10:3"),
        ("/messages/web.Click/fields/1/name", "web/click.proto:10:9"),
        ("/messages/web.Click/fields/2/type", "web/click.proto:11:12"),
        ("/messages/web.Click/fields/2/json_name", "web/click.proto:11:29"),
        ("/messages/web.Click/fields/1/json_name", "web/click.proto:10:3"),
        ("/messages/web.Click/fields/9", "web/click.proto:7:1"),
        ("/messages/web.Click/oneofs/target", "web/click.proto:13:3"),
        ("/messages/web.Click/oneofs/gone", "web/click.proto:7:1"),
        ("/messages/web.Click.Position/fields/1", "web/click.proto:8:22"),
        ("/messages/web.Click.Gone/fields/1", "web/click.proto:7:1"),
        ("/messages/web.Click.TagsEntry", "web/click.proto:12:3"),
        ("/messages/web.Click.TagsEntry/fields/2/type", "web/click.proto:12:3"),
        ("/enums/web.Kind", "web/click.proto:16:1"),
        ("/enums/web.Kind/values/AD", "web/click.proto:16:23"),
        ("/enums/web.Kind/values/AD/number", "web/click.proto:16:28"),
        ("/enums/web.Click.Gone", "web/click.proto:7:1"),
        ("/services/web.Clicks", "web/click.proto:17:1"),
        ("/services/web.Clicks/methods/List/input_type", "web/click.proto:18:12"),
        ("/services/web.Clicks/methods/List/idempotency_level", "web/click.proto:18:44"),
        ("/files/click.proto/package", "web/click.proto:2:1"),
        ("/files/common~1money.proto/package", "common/money.proto:2:1"),
        # protoc expands a tab to the ninth column; here columns are characters.
        ("/messages/common.Money/fields/1/type", "common/money.proto:4:11"),
        ("/messages/common.Money/fields/1/default", "common/money.proto:4:38"),
        ("/extensions/common.note", "common/money.proto:7:16"),
        ("/messages/web.Gone", "web/click.proto:7:1"),
        ("/nonsense/x", "web/click.proto:7:1"),
        ("nonsense", "web/click.proto:7:1"),
    ],
)
def test_pointer_is_located_at_the_nearest_part(click_definition: SchemaInfo, pointer: str, place: str) -> None:
    assert str(click_definition.locate(pointer)) == place


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("", "Click"),
        ("/messages/web.Click", "Click"),
        ("/messages/web.Click/fields/1/type", "Click.id"),
        ("/messages/web.Click.Position/fields/1", "Click.at[].x"),
        ("/enums/web.Kind", "Click.tags{}"),
        ("/enums/web.Kind/values/AD", "Click.tags{}"),
        ("/messages/web.Click.TagsEntry/fields/2", "Click.tags{}"),
        ("/messages/web.Click.TagsEntry/fields/1", "Click.tags{}.key"),
        ("/messages/web.Click/oneofs/target", "Click.target"),
        ("/messages/common.Money/fields/1/default", "Click.price.units"),
        ("/extensions/common.note", "note"),
        ("/services/web.Clicks/methods/List", "Clicks.List"),
        ("/files/click.proto/package", "click.proto"),
    ],
)
def test_people_name_the_fields_on_the_way(click_definition: SchemaInfo, pointer: str, path: str) -> None:
    assert field_path(pointer, parse(click_definition.schema).root) == path


def test_parts_of_protocs_own_files_are_located_at_the_root() -> None:
    text = 'syntax = "proto3";\nimport "google/protobuf/any.proto";\nmessage M { google.protobuf.Any x = 1; }'
    info = compile_proto(Proto.of_text(text, "M"))
    assert str(info.locate("/messages/google.protobuf.Any/fields/1")) == "schema.proto:3:1"


def test_parts_of_a_descriptor_set_are_located_at_the_set() -> None:
    [data] = descriptor_sets({"web/click.proto": 'syntax = "proto3";\nmessage M {\n  int32 x = 1;\n}'})
    info = read_descriptor_set(data, "M", path="click.binpb")
    assert info.locate("/messages/M/fields/1/type") == Source("click.binpb")


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [("\tx", 9, 2), ("a\tx", 9, 3), ("é x", 4, 3), ("😀x", 5, 2), ("abc", 2, 2), ("", 1, 1), ("é", 9, 2)],
)
def test_columns_are_counted_in_characters(text: str, column: int, expected: int) -> None:
    assert make_source("a.proto", f"\n{text}\n".encode(), Span(2, column)) == Source("a.proto", 2, expected)


def test_every_breakage_of_a_public_pair_has_a_place_and_a_name() -> None:
    for row, old, new in read_public_rows():
        for reader, writer, direction in ((new, old, "new_reads_old"), (old, new, "old_reads_new")):
            for incompatibility in FORMAT.resolve(reader=reader, writer=writer):
                place = find_place(parse(reader.schema).root.file.image, incompatibility.pointer)
                assert place is not None
                assert incompatibility.pointer.startswith(place[0].pointer), (row["id"], incompatibility)
                explanation = FORMAT.explain(Breakage(incompatibility, direction, 0), new=new, old=old)  # type: ignore[arg-type]
                roots = [row[root].rpartition(".")[2] for root in ("root_after", "root_before")]
                assert explanation.field.split(".")[0] in roots
                assert explanation.reason.endswith(".")
                assert explanation.fix
                assert "{" not in explanation.fix
