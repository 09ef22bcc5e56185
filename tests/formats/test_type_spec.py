"""The specification of every schema type, the differences by field, and a new type with one file and one row."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from corpora import Json, make_array, make_enum, make_field, make_fixed, map_of, record
from scratch import Scratch

from schemactl import formats
from schemactl.cli import main
from schemactl.comparison.compatibility import judge
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import SPECS, spec
from schemactl.formats.key_value import join
from schemactl.formats.part_changes import find_part_changes, list_changes, outline
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.formats.type_spec import Explanation, ReaderFailure, TypeSpec, UnknownWire, Wire


def made_up() -> SchemaType:
    """Return a new member of the enumeration, as if Pulsar had that type."""
    member = object.__new__(SchemaType)
    member._name_, member._value_ = "COLUMNS", 99
    return member


COLUMNS = made_up()


@pytest.fixture
def with_columns(monkeypatch: pytest.MonkeyPatch) -> SchemaType:
    """Pulsar has the type COLUMNS, and the table has its row."""
    monkeypatch.setitem(SchemaType._member_map_, "COLUMNS", COLUMNS)
    monkeypatch.setitem(SchemaType._value2member_map_, 99, COLUMNS)
    monkeypatch.setattr(SchemaType, "_member_names_", [*SchemaType._member_names_, "COLUMNS"])
    monkeypatch.setitem(SPECS, COLUMNS, ColumnsSpec())
    return COLUMNS


AVRO = b'{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
OTHER = b'{"type": "record", "name": "R", "fields": [{"name": "name", "type": "string"}]}'


def make_definitions(type_: SchemaType) -> tuple[SchemaInfo, SchemaInfo]:
    """Return two definitions of a type, which are two versions if the type has definitions."""
    if type_ is COLUMNS:
        return (SchemaInfo(type_, b'{"columns": ["id"]}'), SchemaInfo(type_, b'{"columns": ["name"]}'))
    if spec(SchemaInfo(type_)).language == "avro":
        return SchemaInfo(type_, AVRO), SchemaInfo(type_, OTHER)
    if type_ is SchemaType.KEY_VALUE:
        one, other = SchemaInfo(SchemaType.INT32), SchemaInfo(SchemaType.STRING)
        return join(key=one, value=other, encoding="INLINE"), join(key=other, value=other, encoding="INLINE")
    if type_ is SchemaType.PROTOBUF_NATIVE:
        from schemactl.formats.protobuf.protoc import Proto, compile_proto

        texts = (f'syntax = "proto3"; message M {{ {kind} id = 1; }}' for kind in ("int64", "string"))
        one, other = (compile_proto(Proto.of_text(text, "M")) for text in texts)
        return one, other
    return SchemaInfo(type_), SchemaInfo(type_)


def test_every_type_has_a_row() -> None:
    assert set(SPECS) == set(SchemaType)


@pytest.mark.usefixtures("with_columns")
@pytest.mark.parametrize("type_", [*SPECS, COLUMNS], ids=lambda type_: str(type_.name))
def test_a_specification_answers_every_question(type_: SchemaType) -> None:
    one, other = make_definitions(type_)
    type_spec = spec(one)
    assert not list(type_spec.find_problems(one, Release.R5_0)) or type_spec.undeclarable
    for info in (one, other):
        assert hash(formats.identity(info)) == hash(formats.identity(type_spec.to_declared(info)))
        assert formats.identity(info)[0] is type_  # type: ignore[index]
        assert formats.has_same_text(info, info)
        assert not list(formats.resolve(reader=info, writer=info))
        assert outline(info)
        assert not list(list_changes(old=info, new=info))
        text = type_spec.to_text(info)
        assert text is not None
        assert formats.identity(type_spec.from_text(type_, text, info.properties)) == formats.identity(info)
        assert type_spec.format_lines(info) or not text
        pair = type_spec.get_pair(info)
        assert (pair is None) == (type_ is not SchemaType.KEY_VALUE)
        for wire in type_spec.make_messages(info):
            assert type_spec.read(wire, info)
        with contextlib.suppress(ReaderFailure, UnknownWire):
            type_spec.read(Wire(b"\xff"), info)
        type_spec.require_newest(info)
    existing = [SchemaVersion(0, one)]
    for release in Release:
        verdict = judge(existing, other, CompatibilityStrategy.FULL, release)
        assert verdict.broker.outcome
        for breakage in verdict.data:
            explanation = formats.explain(breakage, new=other, old=one)
            assert explanation.reason
            assert explanation.fix
            assert formats.counterexample(breakage, new=other, old=one) or type_ is SchemaType.PROTOBUF


@pytest.mark.usefixtures("with_columns")
@pytest.mark.parametrize("type_", [*SPECS, COLUMNS], ids=lambda type_: str(type_.name))
@pytest.mark.parametrize("schema", [b"", b"{", b"null", b"\xff\0", b"[" * 5_000])
def test_whatever_the_bytes_are_there_is_an_answer(type_: SchemaType, schema: bytes) -> None:
    info = SchemaInfo(type_, schema)
    list(formats.find_problems(info, Release.R4_0))
    spec(info).format_lines(info)
    for ask in (formats.identity, outline, spec(info).get_content, spec(info).require_newest, spec(info).to_text):
        with contextlib.suppress(InvalidSchema, RecursionError):
            ask(info)


@pytest.fixture
def types_repository(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "repository")


@pytest.mark.usefixtures("with_columns")
def test_a_made_up_type_goes_all_the_way(types_repository: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        try:
            code = main(["-C", str(types_repository.path), *arguments])
        except SystemExit as left:
            code = int(left.code or 0)
        output = capsys.readouterr()
        return code, output.out + output.err

    def make_declaration(*columns: str) -> dict[str, str]:
        schema = {"type": "COLUMNS", "definition": {"columns": columns}}
        return {"namespaces/orders.yaml": json.dumps({"topic": "shop/sales/orders", "schema": schema})}

    project = "version: 1\napproved: main\ntargets:\n  local: {registry: 'sqlite:registry.db'}\n"
    types_repository.commit({"schemactl.yaml": project, **make_declaration("id")})
    types_repository.commit(make_declaration("id", "total"))
    types_repository.git("checkout", "-qf", "main")
    assert run("check")[0] == 0
    code, output = run("plan", "--target", "local", "--out", "plan.json", "--detailed-exitcode")
    assert (code, "orders" in output) == (2, True), output
    code, output = run("apply", "plan.json")
    assert code == 0, output
    assert run("plan", "--target", "local", "--detailed-exitcode")[0] == 0
    code, output = run("log", "shop/sales/orders")
    assert (code, output.count("COLUMNS")) >= (0, 1), output
    assert '"total"' in run("show", "shop/sales/orders@1")[1]
    assert "total: column" in run("diff", "shop/sales/orders@0", "shop/sales/orders@1")[1]
    (types_repository.path / "namespaces/orders.yaml").write_text(make_declaration("total")["namespaces/orders.yaml"])
    code, output = run("check")
    assert code == 100, output
    assert "The column id is not in every message." in output


def test_reading_has_one_answer_with_its_reason() -> None:
    def make_version(number: int, text: str, type_: SchemaType = SchemaType.AVRO) -> SchemaVersion:
        return SchemaVersion(number, SchemaInfo(type_, text.encode()))

    def order(name: str, *fields: str) -> str:
        return json.dumps(
            {"type": "record", "name": name, "fields": [{"name": field_name, "type": "int"} for field_name in fields]}
        )

    plain, renamed = make_version(0, order("Order", "id")), make_version(1, order("Purchase", "id"))
    assert formats.judge_reading(reader=plain, writer=plain) == ("yes", "")
    assert formats.judge_reading(reader=renamed, writer=plain).answer == "strict"
    assert formats.judge_reading(reader=plain, writer=renamed).answer == "strict"
    more = make_version(2, order("Order", "id", "total"))
    assert formats.judge_reading(reader=plain, writer=more) == ("yes", "")
    unread = formats.judge_reading(reader=more, writer=plain)
    assert unread.answer == "no"
    assert "version 0" in unread.reason
    assert formats.judge_reading(reader=plain, writer=make_version(1, "{")).answer == "no"
    other = make_version(3, order("Order", "id"), SchemaType.JSON)
    assert formats.judge_reading(reader=other, writer=plain).reason.startswith("The schema type was AVRO and is JSON")


def make_avro(definition: Json, **properties: str) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode(), properties)


def order(*fields: Json) -> Json:
    return record("Order", *fields, namespace="shop")


def make_proto(body: str) -> SchemaInfo:
    return compile_proto(Proto.of_text(f'syntax = "proto3"; package web; {body}', "web.Click"))


def test_every_avro_field_has_a_line_and_named_types_are_spelled_out_once() -> None:
    amount = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    at = {"type": "long", "logicalType": "timestamp-millis", "unit": "x"}
    definition = order(
        make_field("id", "string", doc="ignored", aliases=["key"], order="descending"),
        make_field("total", record("Money", make_field("amount", amount))),
        make_field("refund", ["null", "Money"], default=None),
        make_field("status", make_enum("Status", "PAID", "OPEN", default="OPEN"), default="OPEN"),
        make_field("lines", make_array(map_of(["null", "Order"])), default=[{"a": None, "b": None}]),
        make_field("digest", make_fixed("Digest", 16)),
        make_field("at", at, owner="ada"),
    )
    assert outline(make_avro(definition, team="orders")) == {
        "Order": "record shop.Order",
        "Order.id": "string, order descending",
        "Order.total": "Money",
        "Order.refund": "null | Money = null",
        "Order.status": 'Status = "OPEN"',
        "Order.lines": 'array<map<null | Order>> = [{"a":null,"b":null}]',
        "Order.digest": "Digest",
        "Order.at": "long (timestamp-millis, unit x) (owner ada)",
        "Money": "record shop.Money",
        "Money.amount": "bytes (decimal, precision 9, scale 2)",
        "Status": "enum shop.Status, default OPEN",
        "Status.PAID": "symbol",
        "Status.OPEN": "symbol",
        "Digest": "fixed shop.Digest of 16 bytes",
        "property team": "orders",
    }


def test_avro_types_of_one_name_in_two_namespaces_keep_their_namespaces() -> None:
    parts = outline(make_avro(order(make_field("f", [make_fixed("a.X", 1), make_fixed("b.X", 2)]))))
    assert parts["Order.f"] == "a.X | b.X"
    assert parts["b.X"] == "fixed b.X of 2 bytes"


def test_an_avro_definition_may_have_no_name_and_be_deep() -> None:
    assert outline(make_avro("string")) == {"": "string"}
    deep: Json = "int"
    for _ in range(240):
        deep = make_array(deep)
    assert outline(make_avro(deep))[""].count("array<") == 240


def test_changes_are_gone_then_new_and_changed_ones_in_order() -> None:
    old = make_avro(record("Old", make_field("a", "int"), make_field("b", "int")), owner="ada")
    new = make_avro(record("Old", make_field("b", "long"), make_field("c", "int")), owner="bob")
    assert list(list_changes(old=old, new=new)) == [
        ("-", "Old.a: int"),
        ("~", "Old.b: int -> long"),
        ("+", "Old.c: int"),
        ("~", "property owner: ada -> bob"),
    ]
    assert list(list_changes(old=new, new=new)) == []


def test_another_type_is_one_change() -> None:
    old, new = SchemaInfo(SchemaType.INT32), SchemaInfo(SchemaType.INT64)
    assert outline(old) == {"": "INT32"}
    assert list(list_changes(old=old, new=new)) == [("~", "type: INT32 -> INT64")]


def test_key_and_value_are_outlined_under_their_names() -> None:
    key = SchemaInfo(SchemaType.STRING)
    value = make_avro(order(make_field("id", "string")))
    old = join(key=key, value=value, encoding="INLINE")
    assert outline(old) == {
        "encoding": "INLINE",
        "key": "STRING",
        "value": "AVRO",
        "value: Order": "record shop.Order",
        "value: Order.id": "string",
    }
    new = join(key=SchemaInfo(SchemaType.INT64), value=value, encoding="SEPARATED")
    assert list(list_changes(old=old, new=new)) == [
        ("~", "encoding: INLINE -> SEPARATED"),
        ("~", "key: STRING -> INT64"),
    ]


def test_protobuf_fields_are_known_by_their_numbers() -> None:
    old = make_proto(
        "message Click { string id = 1; repeated Kind kinds = 2; oneof who { string user = 3; int64 bot = 4; } "
        "map<string, int32> counts = 5; } enum Kind { NONE = 0; LEFT = 1; }"
    )
    assert outline(old) == {
        "": "message web.Click",
        "web.Click": "message",
        "web.Click 1": "string id",
        "web.Click 2": "repeated web.Kind kinds",
        "web.Click 3": "string user in oneof who",
        "web.Click 4": "int64 bot in oneof who",
        "web.Click 5": "map web.Click.CountsEntry counts",
        "web.Click.CountsEntry": "message",
        "web.Click.CountsEntry 1": "string key",
        "web.Click.CountsEntry 2": "int32 value",
        "web.Kind": "enum",
        "web.Kind.NONE": "number 0",
        "web.Kind.LEFT": "number 1",
    }
    new = make_proto("message Click { string key = 1; } enum Kind { NONE = 0; LEFT = 1; }")
    assert ("~", "web.Click 1: string id -> string key") in list(list_changes(old=old, new=new))


def test_changes_of_avro_fields_have_kinds() -> None:
    old = order(
        make_field("id", "string", doc="Its number."),
        make_field("amount", "int"),
        make_field("note", "string"),
        make_field("at", "long"),
        make_field("left", "string"),
        make_field("money", record("Money", make_field("units", "int"))),
    )
    new = order(
        make_field("id", "string", doc="Its number,\nas printed."),
        make_field("total", "long", aliases=["amount"]),
        make_field("note", ["null", "string"], default=None),
        make_field("at", "int"),
        make_field("money", record("Price", make_field("units", "double"), aliases=["Money"])),
        make_field("count", "int", default=1),
    )
    change_texts = [(change.kind, change.text) for change in find_part_changes(old=make_avro(old), new=make_avro(new))]
    assert change_texts == [
        ("removed", "Order.left: string"),
        ("documented", "Order.id: documentation"),
        ("renamed", "Order.total: int -> long, was Order.amount"),
        ("widened", "Order.note: string -> null | string = null"),
        ("changed", "Order.at: long -> int"),
        ("changed", "Order.money: Money -> Price"),
        ("added", "Order.count: int = 1"),
        ("renamed", "Price: record shop.Money -> record shop.Price, was Money"),
        ("widened", "Price.units: int -> double"),
    ]
    pair = [join(key=make_avro("string"), value=make_avro(definition), encoding="INLINE") for definition in (old, new)]
    assert [change.kind for change in find_part_changes(old=pair[0], new=pair[1])].count("documented") == 1
    assert {change.kind for change in find_part_changes(old=None, new=make_avro(new))} == {"added"}


@dataclass(frozen=True, kw_only=True)
class ColumnsSpec(TypeSpec):
    """COLUMNS: a reader fails if the line lacks one of its columns."""

    declared_as: Literal["avro"] = "avro"
    suffix: str = ".json"

    def find_problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        del release
        try:
            list_columns(info)
        except InvalidSchema as error:
            yield error

    def identity(self, info: SchemaInfo) -> Hashable:
        return info.type, list_columns(info)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        for number, name in enumerate(list_columns(reader)):
            if name not in list_columns(writer):
                yield Incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", f"/columns/{number}", name)

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        del new, old
        name = breakage.incompatibility.message
        return Explanation(name, f"The column {name} is not in every message.", "Keep it.", "/columns")

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample:
        _, writer = breakage.sides(new=new, old=old)
        (wire,) = self.make_messages(writer)
        line = self.read(wire, writer)
        return Counterexample(line, wire.payload or b"", f"no column {breakage.incompatibility.message}")

    def list_parts(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        return ((name, "column") for name in list_columns(info))

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        yield Wire(",".join("1" for _ in list_columns(info)).encode())

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        values = (wire.payload or b"").decode("latin-1").split(",")
        if len(values) < len(list_columns(info)):
            raise ReaderFailure("IndexOutOfBoundsException")
        return json.dumps(dict(zip(list_columns(info), values, strict=False)))


def list_columns(info: SchemaInfo) -> tuple[str, ...]:
    """The names of the columns."""
    try:
        return tuple(json.loads(info.schema)["columns"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InvalidSchema("expected {columns: [...]}", fix="list the columns") from None
