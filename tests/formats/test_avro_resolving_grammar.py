"""The broker's own check of two Avro schemas: the recorded answers, and each of its surprises by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from corpora import Json, array, enum, field, fixed, map_of, record, rows, schema

from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import Release
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.resolving_grammar import GrammarAnswer, can_read, decodes_all, unable_to_read

pytestmark = pytest.mark.slow

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def answer(reader: Json, writer: Json, release: Release = Release.R4_0) -> GrammarAnswer:
    return can_read(reader=schema(reader, release), writer=schema(writer, release), release=release)


def outcome(reader: Json, writer: Json, release: Release = Release.R4_0) -> str:
    """Return the outcome, or the exception of an error."""
    result = answer(reader, writer, release)
    return result.exception or result.outcome


def test_every_labelled_chain_is_answered_as_by_java() -> None:
    for row in rows("avro_chains_public"):
        for version, definition in enumerate(row["existing"]):
            outcomes = [
                answer(row["new"], definition, Release.R4_2).outcome,
                answer(definition, row["new"], Release.R4_2).outcome,
            ]
            assert outcomes == [row["new_reads_old"][version], row["old_reads_new"][version]], row["id"]


def test_what_is_said_to_decode_always_did() -> None:
    decoded = dict.fromkeys(("all", "some", "none", "n/a"), 0)
    for row in rows("avro_public"):
        try:
            decoded[row["decode"]] += decodes(row["reader"], row["writer"])
        except InvalidSchema:
            continue
    assert decoded["some"] == 0
    assert decoded["none"] == 0
    # Of 2,797 pairs. The six random messages of a pair do not reach every place, so some other pairs decoded by luck.
    assert decoded["all"] > 2650


def decodes(reader: Json, writer: Json) -> bool:
    old = Release.R4_0
    return decodes_all(reader=schema(reader, old), writer=schema(writer, old), release=old)[0]


@pytest.mark.parametrize("writer", PRIMITIVES)
def test_only_promotions_read_another_primitive(writer: str) -> None:
    readers = {reader for reader in PRIMITIVES if outcome(reader, writer) == "ok"}
    promoted = {"int": {"long", "float", "double"}, "long": {"float", "double"}, "float": {"double"}}
    promoted |= {"string": {"bytes"}, "bytes": {"string"}}
    assert readers == {writer} | promoted.get(writer, set())


def test_only_a_default_symbol_lets_every_message_with_other_symbols_decode() -> None:
    assert not decodes(enum("E", "A"), enum("E", "B", "C"))
    assert decodes(enum("E", "A", default="A"), enum("E", "B"))


SURPRISES: dict[str, Json] = yaml.safe_load(Path(__file__).with_name("avro_grammar.yaml").read_text())


@pytest.mark.parametrize("fact", SURPRISES)
def test_the_answer_is_the_brokers(fact: str) -> None:
    case = SURPRISES[fact]
    arguments = case["reader"], case["writer"], Release[case.get("release", "R4_0")]
    if error := case.get("error"):
        assert answer(*arguments) == GrammarAnswer("error", *error)
    else:
        assert outcome(*arguments) == case["outcome"]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", 1.5),
        ("float", "1.5"),
        (array("int"), None),
        (array("int"), "x"),
        (array("int"), {"a": 1}),
        (map_of("int"), "x"),
        (map_of("int"), []),
        (fixed("F", 4), "ab"),
        (record("B", field("x", "int", default=1)), 7),
        (record("B", field("x", "int")), {"x": 2**80}),
    ],
)
def test_many_defaults_that_are_not_valid_can_be_encoded(type_: Json, default: Json) -> None:
    assert outcome(record("A", field("f", type_, default=default)), record("A")) == "ok"


@pytest.mark.parametrize(
    ("type_", "default", "message"),
    [
        ("int", "1", 'Non-numeric default value for int: "1"'),
        ("string", 1.0, "Non-string default value for string: 1.0"),
        ("bytes", {"a": []}, 'Non-string default value for bytes: {"a":[]}'),
        ("boolean", 0, "Non-boolean default for boolean: 0"),
        ("null", False, "Non-null default value for null type: false"),
        (fixed("F", 4), None, "Non-string default value for fixed: null"),
        (array("int"), [1, "x"], 'Non-numeric default value for int: "x"'),
        (record("B", field("x", "int")), {}, "No default value for: x"),
    ],
)
def test_other_defaults_throw_as_soon_as_they_are_needed(type_: Json, default: Json, message: str) -> None:
    reader = record("A", field("f", type_, default=default))
    assert answer(reader, record("A")) == GrammarAnswer("error", "AvroTypeException", message)
    assert answer(reader, record("A", field("f", type_))) == GrammarAnswer("ok")


@pytest.mark.parametrize("release", Release)
def test_an_alias_may_lie_in_the_null_namespace(release: Release) -> None:
    new = record("n.D", field("e", record("n.E", field("y", "int", aliases=["x"]), aliases=[".C"])))
    old = record("C", field("x", "int"), namespace="")
    assert outcome(new, record("n.D", field("e", old)), release) == "ok"
    assert outcome(new, record("n.D", field("e", old | {"name": "n.C"})), release) == "incompatible"


@pytest.mark.parametrize(
    "definition",
    [
        record("Node", field("value", "int"), field("next", ["null", "Node"])),
        record("Node", field("children", array("Node")), field("by_name", map_of("Node"))),
    ],
)
def test_a_list_and_a_tree_read_themselves(definition: Json) -> None:
    grown = definition | {"fields": [*definition["fields"], field("more", "int")]}
    assert outcome(definition, definition) == "ok"
    assert outcome(definition, grown) == "ok"
    assert outcome(grown, definition) == "incompatible"


@pytest.mark.parametrize(("filled", "newest"), [([None], "AvroRuntimeException"), ({}, "incompatible")])
def test_reading_a_default_back_overflows_the_stack_before_avro_1_12_1(filled: Json, newest: str) -> None:
    items = record("B", field("m", map_of("null")), field("l", array(record("C", field("c", "C")))))
    reader = record("A", field("f", items, default={"m": filled, "l": []}), field("missing", "int"))
    assert outcome(reader, record("A"), Release.R4_2) == "StackOverflowError"
    assert outcome(reader, record("A"), Release.R5_0) == newest


def test_some_records_that_lead_to_each_other_cannot_even_read_themselves() -> None:
    # Java copies Friend into the array while Person is still a hole in it, and never fills the copy (Symbol.flatten).
    friend = record("Friend", field("person", "Person"), field("others", array("Friend")))
    person = record("Person", field("friends", array(friend)))
    assert outcome(person, person) == "NullPointerException"
    endless = record("A", field("a", "A"))
    assert outcome(endless, endless) == "StackOverflowError"


def test_a_record_given_up_while_others_hold_it_is_a_null_pointer() -> None:
    def outer(kind: str, *more: Json) -> Json:
        inner = record("Inner", field("outer", ["null", "Outer"]), field("x", kind))
        return record("Outer", field("inner", inner), *more)

    reader = record("Root", field("f", [outer("long", field("y", "int")), "null"]), field("g", "Inner"))
    writer = record("Root", field("f", ["null", outer("int")]), field("g", "Inner"))
    assert outcome(reader, writer) == "NullPointerException"


@pytest.mark.parametrize("depth", [100, 250])
def test_arrays_may_nest_as_deep_as_json(depth: int) -> None:
    arrays = parse('{"type": "array", "items": ' * depth + '"int"' + "}" * depth, Release.R4_0)
    assert can_read(reader=arrays, writer=arrays, release=Release.R4_0).outcome == "ok"
    assert unable_to_read(reader=arrays, writer=arrays).count('"array"') == 2 * depth


def test_a_chain_of_ten_thousand_records_overflows_javas_stack_but_not_ours() -> None:
    links = [field(f"f{i}", record(f"R{i}", field("to", f"R{i - 1}" if i else "int"))) for i in range(10_000)]
    chain = record("Root", *links)
    assert outcome(chain, chain) == "StackOverflowError"


def test_a_grammar_that_would_fill_the_memory_is_not_laid_out() -> None:
    # Every record has two fields of the one before it, and all refer to the first.
    definitions = [record("R0", field("back", ["null", "Root"]))]
    for number in range(1, 60):
        last = f"R{number - 1}"
        definitions.append(record(f"R{number}", field("a", last), field("b", last)))
    root = record("Root", *(field(f"f{number}", one) for number, one in enumerate(definitions)))
    assert outcome(root, root) == "OutOfMemoryError"


def test_a_refusal_quotes_both_schemas_as_java_prints_them() -> None:
    reader = record("A", field("f", "int", default=1), namespace="n")
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
        '    "type" : "int",',
        '    "default" : 1',
        "  } ]",
        "}",
    ]
