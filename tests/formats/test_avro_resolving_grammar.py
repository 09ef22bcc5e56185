"""The broker's own check of two Avro schemas: the recorded answers, and each of its surprises by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_tables import read_cases
from corpora import Json, make_array, make_enum, make_field, make_fixed, map_of, parse_schema, read_rows, record

from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import Release
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.resolving_grammar import GrammarAnswer, can_read, decodes_all, describe_unreadable

pytestmark = pytest.mark.slow

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def ask_grammar(reader: Json, writer: Json, release: Release = Release.R4_0) -> GrammarAnswer:
    return can_read(reader=parse_schema(reader, release), writer=parse_schema(writer, release), release=release)


def get_outcome(reader: Json, writer: Json, release: Release = Release.R4_0) -> str:
    """Return the outcome, or the exception of an error."""
    result = ask_grammar(reader, writer, release)
    return result.exception or result.outcome


def test_every_labelled_chain_is_answered_as_by_java() -> None:
    for row in read_rows("avro_chains_public"):
        for version, definition in enumerate(row["existing"]):
            outcomes = [
                ask_grammar(row["new"], definition, Release.R4_2).outcome,
                ask_grammar(definition, row["new"], Release.R4_2).outcome,
            ]
            assert outcomes == [row["new_reads_old"][version], row["old_reads_new"][version]], row["id"]


def test_pair_that_can_decode_always_decoded_random_messages() -> None:
    decoded = dict.fromkeys(("all", "some", "none", "n/a"), 0)
    for row in read_rows("avro_public"):
        try:
            decoded[row["decode"]] += can_decode(row["reader"], row["writer"])
        except InvalidSchema:
            continue
    assert decoded["some"] == 0
    assert decoded["none"] == 0
    # Of 2,797 pairs. The six random messages of a pair do not reach every place, so some other pairs decoded by luck.
    assert decoded["all"] > 2650


def can_decode(reader: Json, writer: Json) -> bool:
    old = Release.R4_0
    return decodes_all(reader=parse_schema(reader, old), writer=parse_schema(writer, old), release=old)[0]


@pytest.mark.parametrize("writer", PRIMITIVES)
def test_only_promotions_read_another_primitive(writer: str) -> None:
    readers = {reader for reader in PRIMITIVES if get_outcome(reader, writer) == "ok"}
    promoted = {"int": {"long", "float", "double"}, "long": {"float", "double"}, "float": {"double"}}
    promoted |= {"string": {"bytes"}, "bytes": {"string"}}
    assert readers == {writer} | promoted.get(writer, set())


def test_only_a_default_symbol_lets_every_message_with_other_symbols_decode() -> None:
    assert not can_decode(make_enum("E", "A"), make_enum("E", "B", "C"))
    assert can_decode(make_enum("E", "A", default="A"), make_enum("E", "B"))


SURPRISES: dict[str, Json] = read_cases(
    Path(__file__).with_name("avro_grammar.yaml"), {"reader", "writer", "release", "outcome", "error"}
)


@pytest.mark.parametrize("fact", SURPRISES)
def test_the_answer_is_the_brokers(fact: str) -> None:
    case = SURPRISES[fact]
    arguments = case["reader"], case["writer"], Release[case.get("release", "R4_0")]
    if error := case.get("error"):
        assert ask_grammar(*arguments) == GrammarAnswer("error", *error)
    else:
        assert get_outcome(*arguments) == case["outcome"]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", 1.5),
        ("float", "1.5"),
        (make_array("int"), None),
        (make_array("int"), "x"),
        (make_array("int"), {"a": 1}),
        (map_of("int"), "x"),
        (map_of("int"), []),
        (make_fixed("F", 4), "ab"),
        (record("B", make_field("x", "int", default=1)), 7),
        (record("B", make_field("x", "int")), {"x": 2**80}),
    ],
)
def test_many_defaults_that_are_not_valid_can_be_encoded(type_: Json, default: Json) -> None:
    assert get_outcome(record("A", make_field("f", type_, default=default)), record("A")) == "ok"


@pytest.mark.parametrize(
    ("type_", "default", "message"),
    [
        ("int", "1", 'Non-numeric default value for int: "1"'),
        ("string", 1.0, "Non-string default value for string: 1.0"),
        ("bytes", {"a": []}, 'Non-string default value for bytes: {"a":[]}'),
        ("boolean", 0, "Non-boolean default for boolean: 0"),
        ("null", False, "Non-null default value for null type: false"),
        (make_fixed("F", 4), None, "Non-string default value for fixed: null"),
        (make_array("int"), [1, "x"], 'Non-numeric default value for int: "x"'),
        (record("B", make_field("x", "int")), {}, "No default value for: x"),
    ],
)
def test_other_defaults_throw_as_soon_as_they_are_needed(type_: Json, default: Json, message: str) -> None:
    reader = record("A", make_field("f", type_, default=default))
    assert ask_grammar(reader, record("A")) == GrammarAnswer("error", "AvroTypeException", message)
    assert ask_grammar(reader, record("A", make_field("f", type_))) == GrammarAnswer("ok")


@pytest.mark.parametrize("release", Release)
def test_an_alias_may_lie_in_the_null_namespace(release: Release) -> None:
    new = record("n.D", make_field("e", record("n.E", make_field("y", "int", aliases=["x"]), aliases=[".C"])))
    old = record("C", make_field("x", "int"), namespace="")
    assert get_outcome(new, record("n.D", make_field("e", old)), release) == "ok"
    assert get_outcome(new, record("n.D", make_field("e", old | {"name": "n.C"})), release) == "incompatible"


@pytest.mark.parametrize(
    "definition",
    [
        record("Node", make_field("value", "int"), make_field("next", ["null", "Node"])),
        record("Node", make_field("children", make_array("Node")), make_field("by_name", map_of("Node"))),
    ],
)
def test_a_list_and_a_tree_read_themselves(definition: Json) -> None:
    grown = definition | {"fields": [*definition["fields"], make_field("more", "int")]}
    assert get_outcome(definition, definition) == "ok"
    assert get_outcome(definition, grown) == "ok"
    assert get_outcome(grown, definition) == "incompatible"


@pytest.mark.parametrize(("filled", "newest"), [([None], "AvroRuntimeException"), ({}, "incompatible")])
def test_reading_a_default_back_overflows_the_stack_before_avro_1_12_1(filled: Json, newest: str) -> None:
    items = record("B", make_field("m", map_of("null")), make_field("l", make_array(record("C", make_field("c", "C")))))
    reader = record("A", make_field("f", items, default={"m": filled, "l": []}), make_field("missing", "int"))
    assert get_outcome(reader, record("A"), Release.R4_2) == "StackOverflowError"
    assert get_outcome(reader, record("A"), Release.R5_0) == newest


def test_some_records_that_lead_to_each_other_cannot_even_read_themselves() -> None:
    # Java copies Friend into the array while Person is still a hole in it, and never fills the copy (Symbol.flatten).
    friend = record("Friend", make_field("person", "Person"), make_field("others", make_array("Friend")))
    person = record("Person", make_field("friends", make_array(friend)))
    assert get_outcome(person, person) == "NullPointerException"
    endless = record("A", make_field("a", "A"))
    assert get_outcome(endless, endless) == "StackOverflowError"


def test_a_record_given_up_while_others_hold_it_is_a_null_pointer() -> None:
    def make_outer(kind: str, *more: Json) -> Json:
        inner = record("Inner", make_field("outer", ["null", "Outer"]), make_field("x", kind))
        return record("Outer", make_field("inner", inner), *more)

    reader = record(
        "Root", make_field("f", [make_outer("long", make_field("y", "int")), "null"]), make_field("g", "Inner")
    )
    writer = record("Root", make_field("f", ["null", make_outer("int")]), make_field("g", "Inner"))
    assert get_outcome(reader, writer) == "NullPointerException"


@pytest.mark.parametrize("depth", [100, 250])
def test_arrays_may_nest_as_deep_as_json(depth: int) -> None:
    arrays = parse('{"type": "array", "items": ' * depth + '"int"' + "}" * depth, Release.R4_0)
    assert can_read(reader=arrays, writer=arrays, release=Release.R4_0).outcome == "ok"
    assert describe_unreadable(reader=arrays, writer=arrays).count('"array"') == 2 * depth


def test_a_chain_of_ten_thousand_records_overflows_javas_stack_but_not_ours() -> None:
    links = [make_field(f"f{i}", record(f"R{i}", make_field("to", f"R{i - 1}" if i else "int"))) for i in range(10_000)]
    chain = record("Root", *links)
    assert get_outcome(chain, chain) == "StackOverflowError"


def test_a_grammar_that_would_fill_the_memory_is_not_laid_out() -> None:
    # Every record has two fields of the one before it, and all refer to the first.
    definitions = [record("R0", make_field("back", ["null", "Root"]))]
    for number in range(1, 60):
        last = f"R{number - 1}"
        definitions.append(record(f"R{number}", make_field("a", last), make_field("b", last)))
    root = record("Root", *(make_field(f"f{number}", one) for number, one in enumerate(definitions)))
    assert get_outcome(root, root) == "OutOfMemoryError"


def test_a_rejection_quotes_both_schemas_as_java_prints_them() -> None:
    reader = record("A", make_field("f", "int", default=1), namespace="n")
    assert describe_unreadable(reader=parse_schema(reader), writer=parse_schema(["null", "int"])).splitlines() == [
        "Unable to read schema: ",
        '[ "null", "int" ]',
        "using schema:",
        "{",
        '  "type" : "record",',
        '  "name" : "A",',
        '  "namespace" : "n",',
        '  "fields" : [ {',
        '    "name" : "f",',
        '    "type" : "int",',
        '    "default" : 1',
        "  } ]",
        "}",
    ]
