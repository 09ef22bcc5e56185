"""The broker's own check of two Avro schemas: the recorded answers, and each of its surprises by name."""

from __future__ import annotations

import pytest
from corpora import Json, array, enum, field, fixed, map_of, record, rows, schema

from schemactl.errors import InvalidSchema
from schemactl.formats.avro.grammar import GrammarAnswer, can_read, decodes_all, unable_to_read
from schemactl.formats.avro.parse import parse
from schemactl.model import Release

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def answer(reader: Json, writer: Json, release: Release = Release.R4_0) -> GrammarAnswer:
    return can_read(reader=schema(reader, release), writer=schema(writer, release), release=release)


def outcome(reader: Json, writer: Json, release: Release = Release.R4_0) -> str:
    """The outcome; of an error, the exception."""
    found = answer(reader, writer, release)
    return found.exception or found.outcome


def test_every_labelled_chain_is_answered_as_by_java() -> None:
    for row in rows("avro_chains_public"):
        for version, definition in enumerate(row["existing"]):
            found = [
                answer(row["new"], definition, Release.R4_2).outcome,
                answer(definition, row["new"], Release.R4_2).outcome,
            ]
            assert found == [row["new_reads_old"][version], row["old_reads_new"][version]], row["id"]


def test_what_is_said_to_decode_always_did() -> None:
    decoded = dict.fromkeys(("all", "some", "none", "n/a"), 0)
    for row in rows("avro_public"):
        try:
            decoded[row["decode"]] += decodes(row["reader"], row["writer"])
        except InvalidSchema:
            continue
    assert decoded["some"] == 0
    assert decoded["none"] == 0
    # Of 2,797: six random messages do not meet everything, so some others decoded by luck.
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


FITS, CLASHES = record("B", field("f", "long")), record("A", field("f", "string"))
INTS, STRINGS = field("f", array("int")), field("f", array("string"))
ONE_INT = record("A", field("f", "int"))
LOOSE = field("f", "int", default="x")
ROPE = {"type": "string", "avro.java.string": "Rope"}


def alike(space: str, *more: Json) -> Json:
    inner = record(f"{space}.R", field("f", map_of("int")))
    return record("A", field("e", "int"), field("u", ["null", inner, *more]))


# fmt: off
OUTCOMES: dict[str, tuple[Json, Json, str] | tuple[Json, Json, str, Release]] = {
    "names of records are not compared": (record("a.A", INTS), record("b.B", INTS), "ok"),
    "enum symbols are not compared": (enum("E", "A"), enum("E", "B", "C"), "ok"),
    "enums match by unqualified name": (enum("a.E", "A"), enum("b.E", "A"), "ok"),
    "enums of other names do not": (enum("a.E", "A"), enum("a.F", "A"), "incompatible"),
    "fixed match by unqualified name": (fixed("a.E", 2), fixed("b.E", 2), "ok"),
    "fixed of other names do not": (fixed("a.E", 2), fixed("a.F", 2), "incompatible"),
    "in unions alike too": (["null", enum("a.E", "A")], ["null", enum("b.E", "A")], "ok"),
    "in a union that grew by full name": (
        ["null", enum("a.E", "A"), "int"], ["null", enum("b.E", "A")], "incompatible"),
    "fixed sizes must be equal": (fixed("F", 2), fixed("F", 3), "incompatible"),
    "a union settles on a branch by full name": ([CLASHES, FITS], ONE_INT, "incompatible"),
    "else by structure": ([CLASHES, FITS], record("C", field("f", "int")), "ok"),
    "else by promotion": (["double", "long"], "int", "ok"),
    "an error deep in a field does not keep a record from matching by structure": (
        [record("A", STRINGS), record("B", INTS)], record("C", INTS), "incompatible"),
    "of structures, the last of the same unqualified name is preferred": (
        [record("a.A", STRINGS), record("b.C", INTS)], record("c.C", INTS), "ok"),
    "errors in unions that look alike do not count": (alike("x"), alike("y"), "ok"),
    "a union that grew finds the record by structure": (alike("x", "string"), alike("y"), "ok"),
    "a missing field needs a default": (ONE_INT, record("A"), "incompatible"),
    "null as first branch is none": (
        record("A", field("f", ["null", "int"])), record("A"), "incompatible"),
    "null by default is one": (
        record("A", field("f", ["null", "int"], default=None)), record("A"), "ok"),
    "an enum's own default is none": (
        record("A", field("f", enum("E", "A", default="A"))), record("A"), "incompatible"),
    "an unknown default symbol is a null pointer to Avro 1.11": (
        record("A", field("f", enum("E", "A"), default="x")), record("A"), "NullPointerException"),
    "a default that needs itself overflows the stack": (
        record("A", field("next", "A", default={})), record("B"), "StackOverflowError"),
    "the reader's aliases count": (
        record("A", field("new", "int", aliases=["old"])), record("A", field("old", "int")), "ok"),
    "the writer's do not": (
        record("A", field("old", "int")), record("A", field("new", "int", aliases=["old"])),
        "incompatible"),
    "field aliases do not count in another record": (
        record("B", field("new", "int", aliases=["old"])), record("A", field("old", "int")),
        "incompatible"),
    "but in one that is an alias": (
        record("B", field("new", "int", aliases=["old"]), aliases=["A"]),
        record("A", field("old", "int")), "ok"),
    "the writer's defaults are not validated": (ONE_INT, record("A", LOOSE), "ok"),
    "an equal schema is not rebuilt": (
        record("A", LOOSE, aliases=["Z"]), record("A", LOOSE, aliases=["Z"]), "ok"),
    "of two types with one alias, the last visited has it": (
        record("R", field("a", enum("E", "A", aliases=["X"])), field("b", enum("F", "A", aliases=["X"]))),
        record("R", field("a", enum("E", "A")), field("b", enum("X", "A"))), "ok"),
    "and the first has not": (
        record("R", field("a", enum("E", "A", aliases=["X"])), field("b", enum("F", "A", aliases=["X"]))),
        record("R", field("a", enum("X", "A")), field("b", enum("F", "A"))), "incompatible"),
    "renaming passes by a default of null in a record in the making": (
        record("A", field("f", "int"), aliases=["Z"]),
        record("A", field("f", "int"), field("next", ["null", "A"], default=None)), "ok"),
    "a record must not contain itself": (
        record("B"), record("B", field("skipped", array(record("A", field("a", "A"))))),
        "StackOverflowError"),
    "nor by default": (
        record("B", field("f", array(record("A", field("a", "A"))), default=[])), record("B"),
        "StackOverflowError"),
    "a union without branches has no default in Avro 1.11": (
        record("A", field("f", [], default=None)), record("A"), "IndexOutOfBoundsException"),
    "nor where Java rebuilds it": (
        record("A", field("g", "int", default=1, aliases=["h"])),
        record("A", field("f", [], default=None)), "IndexOutOfBoundsException"),
    "before Avro 1.12 a default belongs to the first branch": (
        record("A", field("f", ["int", "string"], default="x")), record("A"), "AvroTypeException"),
    "since then to the first that could hold it": (
        record("A", field("f", ["int", "string"], default="x")), record("A"), "ok", Release.R4_2),
    "by the kind of value": (
        record("A", field("f", ["null", "int"], default="x")), record("A"), "AvroTypeException", Release.R5_0),
    "a string of an unknown class is not read back before Avro 1.12.1": (
        record("A", field("f", ROPE, default="")), record("A"), "IllegalArgumentException", Release.R4_2),
    "since then it is": (record("A", field("f", ROPE, default="")), record("A"), "ok", Release.R5_0),
    "an empty union has no default that Avro 1.12 takes": (
        record("A", field("g", "int", default=1, aliases=["h"])),
        record("A", field("f", [], default=None)), "AvroTypeException", Release.R4_2),
    "a dollar is let in": (
        record("A", field("f", record("O"))), record("A", field("f", record("O$A"))), "ok", Release.R4_2),
}
ERRORS: dict[str, tuple[Json, Json, Release, str, str]] = {
    "an array as the default of a map cannot be read back": (
        record("A", field("f", map_of("null"), default=[None])), record("A"), Release.R4_0,
        "AvroRuntimeException", "java.io.EOFException"),
    "Avro 1.12 takes the first branch that could hold the kind of value": (
        record("A", field("f", [enum("E", "A"), "string"], default="x")), record("A"), Release.R5_0,
        "TracingAvroTypeException", "enum value 'x' is not in the enum symbol set: [A]"),
    "any alias makes Java validate the defaults of the writer": (
        record("A", field("f", "int"), aliases=["Z"]), record("A", LOOSE), Release.R4_0,
        "AvroTypeException", 'Invalid default for field f: "x" not a "int"'),
    "renaming must not bring two fields together": (
        record("A", field("x", "int", aliases=["y"])), record("A", field("x", "int"), field("y", "long")),
        Release.R4_0, "AvroRuntimeException",
        "Duplicate field x in record A: x type:LONG pos:1 and x type:INT pos:0."),
    "nor two branches": (
        record("A", field("u", enum("E", "A", aliases=["F"]))),
        record("A", field("u", [enum("E", "A"), enum("F", "A")])), Release.R4_0,
        "AvroRuntimeException", "Duplicate in union:E"),
    "renaming refuses a dollar that the parser has let in": (
        record("A", field("f", record("O", aliases=["P"]))), record("A", field("f", record("O$A"))),
        Release.R4_2, "SchemaParseException", "Illegal character in: O$A"),
    "renaming cannot validate the default of a record in the making": (
        record("A", field("f", "int"), aliases=["Z"]),
        record("A", field("f", "int"), field("next", array("A"), default=[{}])), Release.R4_0,
        "AvroRuntimeException", "Schema fields not set yet"),
}
# fmt: on


@pytest.mark.parametrize("fact", OUTCOMES)
def test_the_outcome_is_the_brokers(fact: str) -> None:
    reader, writer, expected, *release = OUTCOMES[fact]
    assert outcome(reader, writer, *release) == expected


@pytest.mark.parametrize("fact", ERRORS)
def test_the_error_is_javas(fact: str) -> None:
    reader, writer, release, *error = ERRORS[fact]
    assert answer(reader, writer, release) == GrammarAnswer("error", *error)


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
    # Every record holds the one before it twice, and all lead back to the first.
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
