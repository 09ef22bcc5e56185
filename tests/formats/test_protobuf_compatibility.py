"""The data verdict of PROTOBUF_NATIVE, compared with protobuf's own parser; and the rules, places and messages of `buf breaking`."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from corpora import read_rows
from protobuf_corpus import compile_definition, compile_images, read_public_rows

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage
from schemactl.core.project import ProtoCategory
from schemactl.core.rules import get_builtin_rules
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import SPECS
from schemactl.formats.protobuf.advanced_checker import find_advanced_violations
from schemactl.formats.protobuf.buf_rules import CATEGORIES, find_violations
from schemactl.formats.protobuf.compatibility import list_fields
from schemactl.formats.protobuf.counterexample import encode_required, make_message_class
from schemactl.formats.protobuf.definition import parse
from schemactl.formats.protobuf.descriptor import Image, ProtoField, ProtoMessage
from schemactl.formats.protobuf.kinds import BYTES, ENUM, MAP, STRING

pytestmark = pytest.mark.slow

FORMAT = SPECS[SchemaType.PROTOBUF_NATIVE]

PROTO2 = 'syntax = "proto2"; '
PROTO3 = 'syntax = "proto3"; '
EDITION = 'edition = "2023"; '


def list_incompatibilities(*, reader: SchemaInfo, writer: SchemaInfo) -> list[tuple[str, str]]:
    return [
        (incompatibility.rule, incompatibility.pointer)
        for incompatibility in FORMAT.resolve(reader=reader, writer=writer)
    ]


def both_ways(old: str, new: str, message: str = "M") -> tuple[list[str], list[str]]:
    """Return the rules that the new schema breaks as a reader of the old one, and the old schema as a reader of the new one."""
    before, after = compile_definition(old, message), compile_definition(new, message)
    return (
        [rule for rule, _ in list_incompatibilities(reader=after, writer=before)],
        [rule for rule, _ in list_incompatibilities(reader=before, writer=after)],
    )


TYPE, CARDINALITY = "FIELD_WIRE_COMPATIBLE_TYPE", "FIELD_WIRE_COMPATIBLE_CARDINALITY"
REQUIRED, DEFAULT = "MESSAGE_SAME_REQUIRED_FIELDS", "FIELD_SAME_DEFAULT"
ONEOF, VALUE = "FIELD_SAME_ONEOF", "ENUM_VALUE_NO_DELETE"


PROTO3_CASES = [
    ("int64 x = 1;", "int64 renamed = 1;", [], []),
    ("int64 x = 1;", "string x = 1;", [TYPE], [TYPE]),
    ("int64 x = 1;", "bool x = 1;", [], []),
    ("sint32 x = 1;", "int32 x = 1;", [TYPE], [TYPE]),
    ("fixed64 x = 1;", "sfixed64 x = 1;", [], []),
    ("string x = 1;", "bytes x = 1;", [], [TYPE]),
    ("string x = 1;", "repeated bytes x = 1;", [CARDINALITY], [TYPE]),
    ("int32 x = 1;", "repeated int32 x = 1;", [CARDINALITY], [CARDINALITY]),
    ("int32 x = 1;", "optional int32 x = 1;", [], []),
    ("int32 x = 1; int32 y = 2;", "int32 x = 1;", [], []),
    ("int32 x = 1;", "int32 x = 2;", [], []),
    ("map<string, int32> x = 1;", "repeated E x = 1; message E { string k = 1; int32 v = 2; }", [], []),
    ("map<string, int32> x = 1;", "repeated E x = 1; message E { string k = 1; bytes v = 2; }", [TYPE], [TYPE]),
    ("A x = 1; message A { int32 y = 1; }", "B x = 1; message B { int32 z = 1; }", [], []),
    ("A x = 1; message A { int32 y = 1; }", "B x = 1; message B { string y = 1; }", [TYPE], [TYPE]),
    ("int32 x = 1; int32 y = 2;", "oneof o { int32 x = 1; int32 y = 2; }", [ONEOF], []),
    ("int32 x = 1;", "oneof o { int32 x = 1; int32 y = 2; }", [], []),
    ("oneof o { int32 x = 1; int32 y = 2; }", "oneof p { int32 x = 1; int32 y = 2; }", [], []),
    ("oneof o { int32 x = 1; int32 y = 2; } int32 z = 3;", "oneof o { int32 x = 1; int32 y = 2; int32 z = 3; }", [ONEOF], []),
    ("E x = 1; enum E { A = 0; B = 1; }", "E x = 1; enum E { A = 0; }", [], []),
    ("E x = 1; enum E { A = 0; B = 1; }", "F x = 1; enum F { C = 0; D = 1; }", [], []),
    ("E x = 1; enum E { A = 0; }", "int32 x = 1;", [TYPE], [TYPE]),
]  # fmt: skip
PROTO2_CASES = [
    ("optional int32 x = 1;", "required int32 x = 1;", [REQUIRED], []),
    ("", "required int32 x = 1;", [REQUIRED], []),
    ("optional int32 x = 1 [default = 3];", "optional int32 x = 1 [default = 4];", [DEFAULT], [DEFAULT]),
    ("optional int32 x = 1;", "optional int32 x = 1 [default = 0];", [], []),
    ("required int32 x = 1 [default = 3];", "required int32 x = 1 [default = 4];", [], []),
    ("optional E x = 1; enum E { A = 1; B = 2; }", "optional E x = 1; enum E { A = 1; }", [VALUE], []),
    ("optional E x = 1; enum E { A = 1; B = 2; }", "optional E x = 1; enum E { reserved 2; A = 1; }", [VALUE], []),
    ("optional E x = 1; enum E { A = 1; B = 2; }", "optional E x = 1; enum E { B = 2; A = 1; }", [DEFAULT], [DEFAULT]),
    ("optional group G = 1 { }", "optional G g = 1; message G { }", [TYPE], [TYPE]),
    ("extensions 4 to 9;", "extensions 4 to 9; extend M { optional int32 e = 4; }", [], []),
    ("extensions 4 to 9; extend M { optional string e = 4; }",
     "extensions 4 to 9; extend M { optional int32 e = 4; }", [TYPE], [TYPE]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "old", "new", "new_reads_old", "old_reads_new"),
    [(PROTO3, *case) for case in PROTO3_CASES] + [(PROTO2, *case) for case in PROTO2_CASES],
)
def test_unreadable_messages_are_incompatibilities(
    head: str, old: str, new: str, new_reads_old: list[str], old_reads_new: list[str]
) -> None:
    rules_by_direction = both_ways(f"{head} message M {{ {old} }}", f"{head} message M {{ {new} }}")
    assert rules_by_direction == (new_reads_old, old_reads_new)


def test_a_required_field_of_an_edition_is_seen() -> None:
    new = "int32 x = 1 [features.field_presence = LEGACY_REQUIRED];"
    assert both_ways(f"{EDITION} message M {{ int32 x = 1; }}", f"{EDITION} message M {{ {new} }}") == ([REQUIRED], [])


def test_delimited_encoding_is_other_bytes() -> None:
    old = f"{EDITION} message M {{ M x = 1; }}"
    new = f"{EDITION} message M {{ M x = 1 [features.message_encoding = DELIMITED]; }}"
    assert both_ways(old, new) == ([TYPE], [TYPE])


def test_a_root_message_of_another_name_in_another_package_reads_the_same_bytes() -> None:
    old = compile_definition(f"{PROTO3} package a; message Old {{ N n = 1; }} message N {{ int32 x = 1; }}", "a.Old")
    new = compile_definition(f"{PROTO3} package b; message New {{ X n = 1; }} message X {{ int32 x = 1; }}", "b.New")
    assert list_incompatibilities(reader=new, writer=old) == []


def test_unreachable_type_is_not_compared() -> None:
    old = f"{PROTO3} message M {{ int32 x = 1; }} message Other {{ int32 y = 1; }}"
    new = (
        f"{PROTO3} message M {{ int32 x = 1; }} message Other {{ string y = 1; }} service S {{ rpc R(M) returns (M); }}"
    )
    assert both_ways(old, new) == ([], [])


def test_a_message_met_at_many_places_is_judged_once() -> None:
    old = f"{PROTO3} message M {{ N a = 1; N b = 2; M m = 3; }} message N {{ int32 x = 1; }}"
    new = f"{PROTO3} message M {{ N a = 1; N b = 2; M m = 3; }} message N {{ string x = 1; }}"
    assert list_incompatibilities(reader=compile_definition(new), writer=compile_definition(old)) == [
        (TYPE, "/messages/N/fields/1/type")
    ]


def test_every_public_definition_reads_itself() -> None:
    for _, old, new in read_public_rows():
        assert list_incompatibilities(reader=old, writer=old) == list_incompatibilities(reader=new, writer=new) == []


def test_every_breakage_of_a_public_pair_has_a_counterexample() -> None:
    """Protobuf's parser confirms each: no pair counts as breaking that it reads correctly."""
    proved = 0
    for row, old, new in read_public_rows():
        for reader, writer, direction in ((new, old, "new_reads_old"), (old, new, "old_reads_new")):
            for incompatibility in FORMAT.resolve(reader=reader, writer=writer):
                counterexample = FORMAT.counterexample(Breakage(incompatibility, direction, 0), new=new, old=old)  # type: ignore[arg-type]
                if encode_required(parse(writer.schema).root, leave_out=set()) is None:
                    # A message that must contain itself cannot be written.
                    assert counterexample is None
                    continue
                assert counterexample is not None, (row["id"], direction, incompatibility)
                assert counterexample.result
                proved += 1
    assert proved > 200


def test_compatible_reader_reads_random_messages_unchanged() -> None:
    rng = random.Random(7)  # noqa: S311  no secret
    read = 0
    for row, old, new in read_public_rows():
        for reader, writer in ((new, old), (old, new)):
            if any(FORMAT.resolve(reader=reader, writer=writer)):
                continue
            readers, writers = parse(reader.schema), parse(writer.schema)
            read_class, written_class = make_message_class(readers), make_message_class(writers)
            for _ in range(3):
                written = written_class()
                fill(written, rng, depth=0)
                if written.IsInitialized():
                    got = read_class()
                    got.ParseFromString(written.SerializeToString())
                    assert got.IsInitialized(), row["id"]
                    assert_same_values(written, got, writers.root, readers.root)
                    read += 1
    assert read > 500


def make_circle(length: int, last: str = "int32 x = 2;") -> str:
    messages = "".join(f"message A{n} {{ A{(n + 1) % length} next = 1; {last} }}" for n in range(length))
    return f"{PROTO3} message M {{ A0 a = 1; }} {messages}"


def test_a_tangle_of_circles_is_rejected() -> None:
    reader, writer = compile_definition(make_circle(200)), compile_definition(make_circle(201))
    with pytest.raises(InvalidSchema, match="in more than"):
        list(FORMAT.resolve(reader=reader, writer=writer))
    *_, last = find_advanced_violations(reader=parse(reader.schema).root, writer=parse(writer.schema).root)
    assert last.rule == "COMPARISON_LIMIT_EXCEEDED"


def test_a_long_circle_is_followed_to_its_end() -> None:
    assert (
        list_incompatibilities(
            reader=compile_definition(make_circle(2000)), writer=compile_definition(make_circle(2000))
        )
        == []
    )


def test_endless_required_messages_have_no_counterexample() -> None:
    old = f"{PROTO2} message M {{ required M m = 1; optional int32 x = 2; }}"
    new = f"{PROTO2} message M {{ required M m = 1; optional string x = 2; }}"
    reader, writer = compile_definition(new), compile_definition(old)
    [incompatibility] = FORMAT.resolve(reader=reader, writer=writer)
    breakage = Breakage(incompatibility, "new_reads_old", 0)
    assert FORMAT.counterexample(breakage, new=reader, old=writer) is None
    assert "No message can be shown: each would have to contain itself" in (
        FORMAT.explain(breakage, new=reader, old=writer).reason
    )


def test_a_bomb_of_required_messages_does_not_go_off() -> None:
    bomb = "".join(f"message B{n} {{ required B{n + 1} a = 1; required B{n + 1} b = 2; }}" for n in range(40))
    old = f"{PROTO2} message M {{ required B0 bomb = 1; optional int32 x = 2; }} {bomb} message B40 {{}}"
    reader, writer = compile_definition(old.replace("int32 x", "string x")), compile_definition(old)
    [incompatibility] = FORMAT.resolve(reader=reader, writer=writer)
    assert FORMAT.counterexample(Breakage(incompatibility, "new_reads_old", 0), new=reader, old=writer) is None


def fill(message: Any, rng: random.Random, *, depth: int) -> None:
    """Fill a message with random values that every type of a group can have, to a limited depth."""
    for field in message.DESCRIPTOR.fields:
        wanted = field.is_required or rng.random() < (0.7 if depth < 4 else 0.1)
        if wanted and depth < 9:
            fill_field(message, field, rng, depth=depth + 1)


def fill_field(message: Any, field: Any, rng: random.Random, *, depth: int) -> None:
    container = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        key = draw_scalar(entry["key"], rng)
        if entry["value"].message_type is not None:
            fill(container[key], rng, depth=depth)
        else:
            container[key] = draw_scalar(entry["value"], rng)
    elif field.is_repeated and field.message_type is not None:
        for _ in range(rng.randrange(3)):
            fill(container.add(), rng, depth=depth)
    elif field.is_repeated:
        container.extend(draw_scalar(field, rng) for _ in range(rng.randrange(3)))
    elif field.message_type is not None:
        container.SetInParent()
        fill(container, rng, depth=depth)
    else:
        setattr(message, field.name, draw_scalar(field, rng))


def draw_scalar(field: Any, rng: random.Random) -> Any:
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    if field.type == field.TYPE_STRING:
        return rng.choice(["", "a", "é"])
    if field.type == field.TYPE_BYTES:
        return rng.choice([b"", b"\xff"])
    return rng.choice([0, 1])


def assert_same_values(written: Any, read: Any, writer: ProtoMessage, reader: ProtoMessage) -> None:
    """Assert that every common field has the same value, set or not."""
    writer_fields, reader_fields = writer.fields(), reader.fields()
    for number in writer_fields.keys() & reader_fields.keys():
        before, after = draw_field_value(written, writer_fields[number]), draw_field_value(read, reader_fields[number])
        if writer_fields[number].is_message:
            inner = [field.message_type for field in (writer_fields[number], reader_fields[number])]
            if MAP in (writer_fields[number].cardinality, reader_fields[number].cardinality):
                before, after = by_key(before, inner[0]), by_key(after, inner[1])
            if isinstance(read, Entry) and not before:
                # A map has a value for every key.
                continue
            assert len(before) == len(after)
            for one, other in zip(before, after, strict=True):
                assert_same_values(one, other, inner[0], inner[1])
        elif writer_fields[number].kind == STRING and reader_fields[number].kind == BYTES:
            assert (before.encode() if isinstance(before, str) else [text.encode() for text in before]) == after
        else:
            assert before == after
            assert (writer_fields[number].kind == ENUM) == (reader_fields[number].kind == ENUM)


def draw_field_value(message: Any, field: ProtoField) -> Any:
    """Return the value of a field: a list for messages, the entries by key for a map."""
    if isinstance(message, Entry):
        return message.get(field)
    name = {proto_field.number: proto_field.name for proto_field in message.DESCRIPTOR.fields}[field.proto.number]
    got = getattr(message, name)
    if field.cardinality == MAP:
        return [Entry(key, got[key]) for key in sorted(got)]
    if not field.is_message:
        return list(got) if field.is_repeated else got
    if field.is_repeated:
        return list(got)
    return [got] if message.HasField(name) else []


def by_key(entries: list[Any], message: ProtoMessage) -> list[Any]:
    """Sort entries by key, and keep the last of two with the same key, like a map."""
    keyed = {draw_field_value(entry, list_fields(message)[1]): entry for entry in entries}
    return [entry for _, entry in sorted(keyed.items())]


class Entry:
    """A map's entry, as a message of two fields."""

    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = key, value

    def get(self, field: ProtoField) -> Any:
        part = self.key if field.proto.number == 1 else self.value
        return [part] if field.is_message else part


EVERY: tuple[ProtoCategory, ...] = ("WIRE", "WIRE_JSON")


def list_violations(old: Image, new: Image, category: ProtoCategory) -> list[tuple[str, int | None, str]]:
    return [
        (violation.rule, violation.line, violation.message)
        for violation in find_violations(old=old, new=new, category=category)
    ]


def by_buf(message: str) -> str:
    """Return a message of buf with the error in one of its format strings ("%sq moved") corrected."""
    return message.replace('"q moved', '" moved')


def test_every_public_pair_is_judged_as_buf_judges_it() -> None:
    pairs = [(row, {"a.proto": row["before"]}, {"a.proto": row["after"]}) for row, _, _ in read_public_rows()]
    compiled = iter(compile_images(*(files for _, before, after in pairs for files in (before, after))))
    for row, _, _ in pairs:
        old, new = next(compiled), next(compiled)
        for category in EVERY:
            expected = row["buf"][category]["violations"]
            assert sorted(list_violations(old, new, category), key=str) == sorted(
                ((one["rule"], one["line"], by_buf(one["message"])) for one in expected), key=str
            ), (row["id"], category)


def test_every_recorded_pair_is_judged_as_buf_judged_it_in_its_order() -> None:
    recorded = read_rows("proto_buf")
    fired_rules: set[str] = set()
    compiled = iter(compile_images(*(files for row in recorded for files in (row["old"], row["new"]))))
    for row in recorded:
        old, new = next(compiled), next(compiled)
        for category in EVERY:
            expected = [[*place, by_buf(message)] for *place, message in row["buf"][category]]
            violations = find_violations(old=old, new=new, category=category)
            assert [
                [violation.rule, violation.file, violation.line, violation.column, violation.message]
                for violation in violations
            ] == expected, (row["id"], category)
            fired_rules |= {violation.rule for violation in violations}
    assert fired_rules == set().union(*CATEGORIES.values())


def test_definition_violates_no_rule_against_itself() -> None:
    recorded = read_rows("proto_buf")[:40]
    for one, same in zip(
        compile_images(*(row["old"] for row in recorded)),
        compile_images(*(row["old"] for row in recorded)),
        strict=True,
    ):
        assert all(find_violations(old=one, new=same, category=category) == [] for category in EVERY)


def test_the_categories_are_as_large_as_bufs() -> None:
    assert {name: len(rules) for name, rules in CATEGORIES.items()} == {"WIRE": 15, "WIRE_JSON": 22}


def test_every_rule_has_a_page_of_the_catalogue() -> None:
    assert set().union(*CATEGORIES.values()) <= get_builtin_rules().keys()


def test_many_findings_in_a_large_file_are_all_found() -> None:
    count = 1000
    fields = "".join(f"string f{n} = {n}; map<string, int32> m{n} = {n + count};" for n in range(1, count))
    reserved = "".join(f"reserved {2 * n + 20_000};" for n in range(count))
    body = f"message M {{ {reserved} {fields} }}"
    changed = body.replace("int32", "double").replace("reserved 2", "reserved 3")
    old, new = compile_images(*({"a.proto": f'syntax = "proto3"; {text}'} for text in (body, changed)))
    violations_by_rule = Counter(violation.rule for violation in find_violations(old=old, new=new, category="WIRE"))
    assert violations_by_rule["FIELD_WIRE_COMPATIBLE_TYPE"] == count - 1
    assert violations_by_rule["RESERVED_MESSAGE_NO_DELETE"] == count


def test_a_default_may_change_in_a_file_that_did_not() -> None:
    shared = 'syntax = "proto2"; package web; enum Kind {{ {} }}'
    user = 'syntax = "proto2"; package web; import "kind.proto"; message Click { optional Kind kind = 1; }'
    old, new = compile_images(
        {"kind.proto": shared.format("AD = 0; LINK = 1;"), "click.proto": user},
        {"kind.proto": shared.format("LINK = 1; AD = 0;"), "click.proto": user},
    )
    [violation] = find_violations(old=old, new=new, category="WIRE")
    assert (violation.rule, violation.file, violation.pointer) == (
        "FIELD_SAME_DEFAULT",
        "click.proto",
        "/messages/web.Click/fields/1/default",
    )
