"""The broker's own check of two Avro schemas: every labelled case, and each of its surprises by name."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemactl.errors import InvalidSchema
from schemactl.formats.avro.grammar import GrammarAnswer, can_read, decodes_all, unable_to_read
from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.schema import Schema
from schemactl.model import Release

CORPUS = Path(__file__).parent.parent / "corpus"
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

Json = Any


def rows(name: str) -> Iterator[Json]:
    path = CORPUS / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        yield from map(json.loads, lines)


def schema(definition: Json, release: Release = Release.R4_0) -> Schema:
    return parse(json.dumps(definition), release)


def record(name: str, *fields: Json, **more: Json) -> Json:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type_: Json, **more: Json) -> Json:
    return {"name": name, "type": type_, **more}


def enum(name: str, *symbols: str, **more: Json) -> Json:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


def answer(reader: Json, writer: Json, release: Release = Release.R4_0) -> GrammarAnswer:
    return can_read(reader=schema(reader, release), writer=schema(writer, release), release=release)


def says(reader: Json, writer: Json, release: Release = Release.R4_0) -> str:
    """The outcome; of an error, the exception."""
    found = answer(reader, writer, release)
    return found.exception or found.outcome


def broker_says(reader: Json, writer: Json, release: Release) -> dict[str, str] | None:
    """What the compatibility endpoint says by strategy; None if a definition is not one for that release."""
    try:
        new, old = schema(reader, release), schema(writer, release)
    except InvalidSchema:
        return None
    # A SchemaParseException out of the check is an incompatibility to the broker.
    backward, forward = (
        "incompatible" if found.exception == "SchemaParseException" else found.outcome
        for found in (
            can_read(reader=new, writer=old, release=release),
            can_read(reader=old, writer=new, release=release),
        )
    )
    return {"BACKWARD": backward, "FORWARD": forward, "FULL": forward if forward != "ok" else backward}


@pytest.mark.parametrize("name", ["avro_public.jsonl.gz", "named_cases.jsonl"])
@pytest.mark.parametrize("release", [Release.R4_0, Release.R4_2])
def test_every_labelled_pair_is_answered_as_by_the_broker(name: str, release: Release) -> None:
    wrong = []
    checked = 0
    for row in rows(name):
        labels = row["pulsar"].get(release.value) or row["pulsar"]["4.0"]
        found = broker_says(row["reader"], row["writer"], release)
        for strategy, label in labels.items():
            if label["test"] == "invalid":  # refused before the check, for what it is
                continue
            checked += 1
            if found is None or found[strategy] != label["test"]:
                wrong.append((row["id"], strategy, label["test"], found))
    assert not wrong
    assert checked > 200


def test_every_labelled_chain_is_answered_as_by_java() -> None:
    wrong = []
    for row in rows("avro_chains_public.jsonl.gz"):
        new = schema(row["new"], Release.R4_2)
        for version, definition in enumerate(row["existing"]):
            old = schema(definition, Release.R4_2)
            for label, reader, writer in (("new_reads_old", new, old), ("old_reads_new", old, new)):
                found = can_read(reader=reader, writer=writer, release=Release.R4_2).outcome
                if found != row[label][version]:
                    wrong.append((row["id"], version, label, row[label][version], found))
    assert not wrong


def test_what_is_said_to_decode_always_did() -> None:
    decoded = dict.fromkeys(("all", "some", "none", "n/a"), 0)
    for row in rows("avro_public.jsonl.gz"):
        try:
            reader, writer = schema(row["reader"]), schema(row["writer"])
        except InvalidSchema:
            continue
        decoded[row["decode"]] += decodes_all(reader=reader, writer=writer, release=Release.R4_0)[0]
    assert decoded["some"] == 0
    assert decoded["none"] == 0
    # Of 2,797: six random messages do not meet everything, so some others decoded by luck.
    assert decoded["all"] > 2650


@pytest.mark.parametrize("writer", PRIMITIVES)
def test_only_promotions_read_another_primitive(writer: str) -> None:
    readers = {reader for reader in PRIMITIVES if says(reader, writer) == "ok"}
    promoted = {"int": {"long", "float", "double"}, "long": {"float", "double"}, "float": {"double"}}
    promoted |= {"string": {"bytes"}, "bytes": {"string"}}
    assert readers == {writer} | promoted.get(writer, set())


def test_names_of_records_are_never_compared() -> None:
    assert says(record("a.A", field("f", "int")), record("b.B", field("f", "int"))) == "ok"


def test_enum_symbols_are_never_compared() -> None:
    reader, writer = enum("E", "A"), enum("E", "B", "C")
    assert says(reader, writer) == "ok"
    assert not decodes_all(reader=schema(reader), writer=schema(writer), release=Release.R4_0)[0]


def test_a_default_symbol_lets_every_message_decode() -> None:
    reader, writer = enum("E", "A", default="A"), enum("E", "B")
    assert decodes_all(reader=schema(reader), writer=schema(writer), release=Release.R4_0)[0]


@pytest.mark.parametrize(
    "make", [lambda name: enum(name, "A"), lambda name: {"type": "fixed", "name": name, "size": 2}]
)
def test_enums_and_fixed_match_by_unqualified_name(make: Any) -> None:
    assert says(make("a.E"), make("b.E")) == "ok"
    assert says(make("a.E"), make("a.F")) == "incompatible"


def test_inside_a_union_that_grew_they_match_by_full_name() -> None:
    assert says(["null", enum("a.E", "A")], ["null", enum("b.E", "A")]) == "ok"
    assert says(["null", enum("a.E", "A"), "int"], ["null", enum("b.E", "A")]) == "incompatible"


def test_fixed_sizes_must_be_equal() -> None:
    assert (
        says({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3})
        == "incompatible"
    )


def test_a_union_settles_on_one_branch_and_stays_with_it() -> None:
    fits = record("B", field("f", "long"))
    clashes = record("A", field("f", "string"))
    assert says([clashes, fits], record("A", field("f", "int"))) == "incompatible"  # by full name
    assert says([clashes, fits], record("C", field("f", "int"))) == "ok"  # by structure
    assert says(["double", "long"], "int") == "ok"


def test_only_errors_directly_in_fields_keep_a_record_from_matching_by_structure() -> None:
    first = record("A", field("f", array("string")))
    second = record("B", field("f", array("int")))
    assert says([first, second], record("C", field("f", array("int")))) == "incompatible"


def test_the_last_branch_of_the_same_unqualified_name_is_preferred_among_structures() -> None:
    same_shape = record("a.A", field("f", array("string")))
    same_name = record("b.C", field("f", array("int")))
    assert says([same_shape, same_name], record("c.C", field("f", array("int")))) == "ok"


def test_errors_in_unions_that_look_alike_do_not_count() -> None:
    reader = record(
        "A",
        field("e", "int"),
        field("u", ["null", record("x.R", field("f", {"type": "map", "values": "int"}))]),
    )
    writer = record(
        "A",
        field("e", "int"),
        field("u", ["null", record("y.R", field("f", {"type": "map", "values": "int"}))]),
    )
    assert says(reader, writer) == "ok"
    reader["fields"][1]["type"].append("string")
    assert says(reader, writer) == "ok"  # by structure


def test_a_missing_field_needs_a_default() -> None:
    writer = record("A")
    assert says(record("A", field("f", "int")), writer) == "incompatible"
    assert says(record("A", field("f", ["null", "int"])), writer) == "incompatible"
    assert says(record("A", field("f", ["null", "int"], default=None)), writer) == "ok"
    assert says(record("A", field("f", enum("E", "A", default="A"))), writer) == "incompatible"


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", 1.5),
        ("float", "1.5"),
        (array("int"), None),
        (array("int"), "x"),
        (array("int"), {"a": 1}),
        ({"type": "map", "values": "int"}, "x"),
        ({"type": "map", "values": "int"}, []),
        ({"type": "fixed", "name": "F", "size": 4}, "ab"),
        (record("B", field("x", "int", default=1)), 7),
        (record("B", field("x", "int")), {"x": 2**80}),
    ],
)
def test_many_defaults_that_are_not_valid_can_be_encoded(type_: Json, default: Json) -> None:
    assert says(record("A", field("f", type_, default=default)), record("A")) == "ok"


@pytest.mark.parametrize(
    ("type_", "default", "message"),
    [
        ("int", "1", 'Non-numeric default value for int: "1"'),
        ("string", 1.0, "Non-string default value for string: 1.0"),
        ("bytes", {"a": []}, 'Non-string default value for bytes: {"a":[]}'),
        ("boolean", 0, "Non-boolean default for boolean: 0"),
        ("null", False, "Non-null default value for null type: false"),
        ({"type": "fixed", "name": "F", "size": 4}, None, "Non-string default value for fixed: null"),
        (array("int"), [1, "x"], 'Non-numeric default value for int: "x"'),
        (record("B", field("x", "int")), {}, "No default value for: x"),
    ],
)
def test_other_defaults_throw_as_soon_as_they_are_needed(type_: Json, default: Json, message: str) -> None:
    reader = record("A", field("f", type_, default=default))
    assert answer(reader, record("A")) == GrammarAnswer("error", "AvroTypeException", message)
    assert answer(reader, record("A", field("f", type_))) == GrammarAnswer("ok")


def test_an_array_as_the_default_of_a_map_cannot_be_read_back() -> None:
    reader = record("A", field("f", {"type": "map", "values": "null"}, default=[None]))
    assert answer(reader, record("A")) == GrammarAnswer(
        "error", "AvroRuntimeException", "java.io.EOFException"
    )


def test_a_string_of_an_unknown_class_cannot_be_read_back_before_avro_1_12_1() -> None:
    text = {"type": "string", "avro.java.string": "Rope"}
    reader = record("A", field("f", text, default=""))
    assert says(reader, record("A"), Release.R4_2) == "IllegalArgumentException"
    assert says(reader, record("A"), Release.R5_0) == "ok"


def test_before_avro_1_12_a_default_belongs_to_the_first_branch() -> None:
    reader = record("A", field("f", ["int", "string"], default="x"))
    assert says(reader, record("A"), Release.R4_0) == "AvroTypeException"
    assert says(reader, record("A"), Release.R4_2) == "ok"


def test_avro_1_12_takes_the_first_branch_that_could_hold_the_kind_of_value() -> None:
    reader = record("A", field("f", [enum("E", "A"), "string"], default="x"))
    assert says(reader, record("A"), Release.R5_0) == "TracingAvroTypeException"
    assert (
        answer(reader, record("A"), Release.R5_0).message
        == "enum value 'x' is not in the enum symbol set: [A]"
    )
    assert (
        says(record("A", field("f", ["null", "int"], default="x")), record("A"), Release.R5_0)
        == "AvroTypeException"
    )


def test_an_unknown_default_symbol_is_a_null_pointer_to_avro_1_11() -> None:
    assert says(record("A", field("f", enum("E", "A"), default="x")), record("A")) == "NullPointerException"


def test_a_default_that_needs_itself_overflows_the_stack() -> None:
    assert says(record("A", field("next", "A", default={})), record("B")) == "StackOverflowError"


def test_only_the_readers_aliases_count() -> None:
    new = record("A", field("new", "int", aliases=["old"]))
    old = record("A", field("old", "int"))
    assert says(new, old) == "ok"
    assert says(old, new) == "incompatible"


def test_field_aliases_count_only_where_the_record_is_the_same_or_an_alias() -> None:
    new = record("B", field("new", "int", aliases=["old"]))
    old = record("A", field("old", "int"))
    assert says(new, old) == "incompatible"
    assert says(new | {"aliases": ["A"]}, old) == "ok"


@pytest.mark.parametrize("release", Release)
def test_an_alias_may_lie_in_the_null_namespace(release: Release) -> None:
    new = record("n.E", field("y", "int", aliases=["x"]), aliases=[".C"])
    old = record("C", field("x", "int"), namespace="")
    assert says(record("n.D", field("e", new)), record("n.D", field("e", old)), release) == "ok"
    assert says(
        record("n.D", field("e", new)), record("n.D", field("e", old | {"name": "n.C"})), release
    ) == ("incompatible")


def test_any_alias_makes_java_validate_the_defaults_of_the_writer() -> None:
    writer = record("A", field("f", "int", default="x"))
    assert says(record("A", field("f", "int")), writer) == "ok"
    found = answer(record("A", field("f", "int"), aliases=["Z"]), writer)
    assert found == GrammarAnswer(
        "error", "AvroTypeException", 'Invalid default for field f: "x" not a "int"'
    )


def test_an_equal_schema_is_not_rebuilt() -> None:
    same = record("A", field("f", "int", default="x"), aliases=["Z"])
    assert says(same, same) == "ok"


def test_renaming_must_not_bring_two_fields_together() -> None:
    found = answer(
        record("A", field("x", "int", aliases=["y"])), record("A", field("x", "int"), field("y", "long"))
    )
    message = "Duplicate field x in record A: x type:LONG pos:1 and x type:INT pos:0."
    assert found == GrammarAnswer("error", "AvroRuntimeException", message)


def test_renaming_must_not_bring_two_branches_together() -> None:
    writer = record("A", field("u", [enum("E", "A"), enum("F", "A")]))
    reader = record("A", field("u", enum("E", "A", aliases=["F"])))
    assert answer(reader, writer) == GrammarAnswer("error", "AvroRuntimeException", "Duplicate in union:E")


def test_a_union_without_branches_has_no_default_in_avro_1_11() -> None:
    no_branch = "IndexOutOfBoundsException"
    reader = record("A", field("f", [], default=None))
    assert says(reader, record("A")) == no_branch
    assert says(record("A", field("g", "int", default=1, aliases=["h"])), reader) == no_branch
    assert (
        says(record("A", field("g", "int", default=1, aliases=["h"])), reader, Release.R4_2)
        == "AvroTypeException"
    )


def test_renaming_refuses_a_dollar_that_the_parser_had_let_in() -> None:
    writer = record("A", field("f", record("O$A")))
    assert says(record("A", field("f", record("O"))), writer, Release.R4_2) == "ok"
    found = answer(record("A", field("f", record("O", aliases=["P"]))), writer, Release.R4_2)
    assert found == GrammarAnswer("error", "SchemaParseException", "Illegal character in: O$A")


def test_renaming_cannot_validate_the_default_of_a_record_in_the_making() -> None:
    writer = record("A", field("f", "int"), field("next", ["null", "A"], default=None))
    assert says(record("A", field("f", "int"), aliases=["Z"]), writer) == "ok"
    writer = record("A", field("f", "int"), field("next", array("A"), default=[{}]))
    found = answer(record("A", field("f", "int"), aliases=["Z"]), writer)
    assert found == GrammarAnswer("error", "AvroRuntimeException", "Schema fields not set yet")


def test_of_two_types_with_one_alias_the_last_visited_has_it() -> None:
    reader = record("R", field("a", enum("E", "A", aliases=["X"])), field("b", enum("F", "A", aliases=["X"])))
    assert says(reader, record("R", field("a", enum("E", "A")), field("b", enum("X", "A")))) == "ok"
    assert says(reader, record("R", field("a", enum("X", "A")), field("b", enum("F", "A")))) == "incompatible"


def test_a_list_and_a_tree_read_themselves() -> None:
    linked = record("Node", field("value", "int"), field("next", ["null", "Node"]))
    tree = record(
        "Node", field("children", array("Node")), field("by_name", {"type": "map", "values": "Node"})
    )
    for definition in (linked, tree):
        assert says(definition, definition) == "ok"
        grown = json.loads(json.dumps(definition))
        grown["fields"].append(field("more", "int"))
        assert says(definition, grown) == "ok"
        assert says(grown, definition) == "incompatible"


def test_a_record_that_must_contain_itself_overflows_the_stack() -> None:
    endless = record("A", field("a", "A"))
    assert says(endless, endless) == "StackOverflowError"
    assert says(record("B"), record("B", field("skipped", array(endless)))) == "StackOverflowError"
    assert says(record("B", field("f", array(endless), default=[])), record("B")) == "StackOverflowError"


def test_reading_a_default_back_overflows_the_stack_before_avro_1_12_1() -> None:
    endless = record("C", field("c", "C"))
    items = record("B", field("m", {"type": "map", "values": "null"}), field("l", array(endless)))
    reader = record("A", field("f", items, default={"m": [None], "l": []}), field("missing", "int"))
    assert says(reader, record("A"), Release.R4_2) == "StackOverflowError"
    assert says(reader, record("A"), Release.R5_0) == "AvroRuntimeException"
    reader["fields"][0]["default"] = {"m": {}, "l": []}
    assert says(reader, record("A"), Release.R4_2) == "StackOverflowError"
    assert says(reader, record("A"), Release.R5_0) == "incompatible"


def test_some_records_that_lead_to_each_other_cannot_even_read_themselves() -> None:
    # Java copies Friend into the array while Person is still a hole in it, and never fills the copy (Symbol.flatten).
    friend = record("Friend", field("person", "Person"), field("others", array("Friend")))
    person = record("Person", field("friends", array(friend)))
    assert says(person, person) == "NullPointerException"


def test_a_record_given_up_while_others_hold_it_is_a_null_pointer() -> None:
    inner = record("Inner", field("outer", ["null", "Outer"]), field("x", "long"))
    reader = record(
        "Root",
        field("f", [record("Outer", field("inner", inner), field("y", "int")), "null"]),
        field("g", "Inner"),
    )
    inner = record("Inner", field("outer", ["null", "Outer"]), field("x", "int"))
    writer = record("Root", field("f", ["null", record("Outer", field("inner", inner))]), field("g", "Inner"))
    assert says(reader, writer) == "NullPointerException"


@pytest.mark.parametrize("depth", [100, 250])
def test_arrays_may_nest_as_deep_as_json(depth: int) -> None:
    definition = '{"type": "array", "items": ' * depth + '"int"' + "}" * depth
    arrays = parse(definition, Release.R4_0)
    assert can_read(reader=arrays, writer=arrays, release=Release.R4_0).outcome == "ok"
    assert unable_to_read(reader=arrays, writer=arrays).count('"array"') == 2 * depth


def test_a_chain_of_ten_thousand_records_overflows_javas_stack_but_not_ours() -> None:
    links = [field(f"f{i}", record(f"R{i}", field("to", f"R{i - 1}" if i else "int"))) for i in range(10_000)]
    chain = record("Root", *links)
    reader, writer = schema(chain), schema(chain)
    assert can_read(reader=reader, writer=writer, release=Release.R4_0).exception == "StackOverflowError"


def test_a_grammar_that_would_fill_the_memory_is_not_laid_out() -> None:
    # Every record holds the one before it twice, and all lead back to the first.
    definitions = [record("R0", field("back", ["null", "Root"]))]
    for number in range(1, 60):
        last = f"R{number - 1}"
        definitions.append(record(f"R{number}", field("a", last), field("b", last)))
    root = record("Root", *(field(f"f{number}", one) for number, one in enumerate(definitions)))
    assert says(root, root) == "OutOfMemoryError"


def test_a_refusal_quotes_both_schemas_as_java_prints_them() -> None:
    items = ["null", {"type": "int", "logicalType": "date"}]
    reader = record("A", field("f", array(items), default=[]), namespace="n")
    assert unable_to_read(reader=schema(reader), writer=schema(["null", "int"])).splitlines() == [
        "Unable to read schema: ",
        '[ "null", "int" ]',
        "using schema:",
        "{",
        '  "type" : "record",',
        '  "name" : "A",',
        '  "namespace" : "n",',
        '  "fields" : [ {',
        '    "name" : "f",',
        '    "type" : {',
        '      "type" : "array",',
        '      "items" : [ "null", {',
        '        "type" : "int",',
        '        "logicalType" : "date"',
        "      } ]",
        "    },",
        '    "default" : [ ]',
        "  } ]",
        "}",
    ]
