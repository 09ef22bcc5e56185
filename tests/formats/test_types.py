"""What holds for the specification of every schema type; and that a new one is a file and a row."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from columns_type import ColumnsSpec
from scratch import Scratch

from schemactl import formats
from schemactl.cli import main
from schemactl.comparison.compatibility import judge
from schemactl.core.errors import InvalidSchema
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import SPECS, spec
from schemactl.formats.key_value import join
from schemactl.formats.type_spec import ReaderFailure, UnknownWire, Wire, changes, outline


def made_up() -> SchemaType:
    """A further member of the enumeration, as if Pulsar had that type."""
    found = object.__new__(SchemaType)
    found._name_, found._value_ = "COLUMNS", 99
    return found


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


def definitions(type_: SchemaType) -> tuple[SchemaInfo, SchemaInfo]:
    """Two definitions of a type, which are two versions where the type has a definition."""
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
    one, other = definitions(type_)
    known = spec(one)
    assert not list(known.problems(one, Release.R5_0)) or known.undeclarable
    for info in (one, other):
        assert hash(formats.identity(info)) == hash(formats.identity(known.declared(info)))
        assert formats.identity(info)[0] is type_  # type: ignore[index]
        assert formats.same_text(info, info)
        assert not list(formats.resolve(reader=info, writer=info))
        assert outline(info)
        assert not list(changes(old=info, new=info))
        text = known.text(info)
        assert text is not None
        assert formats.identity(known.from_text(type_, text, info.properties)) == formats.identity(info)
        assert known.lines(info) or not text
        pair = known.pair(info)
        assert (pair is None) == (type_ is not SchemaType.KEY_VALUE)
        for wire in known.messages(info):
            assert known.read(wire, info)
        with contextlib.suppress(ReaderFailure, UnknownWire):
            known.read(Wire(b"\xff"), info)
        known.require_newest(info)
    existing = [SchemaVersion(0, one)]
    for release in Release:
        verdict = judge(existing, other, CompatibilityStrategy.FULL, release)
        assert verdict.broker.outcome
        for breakage in verdict.data:
            told = formats.explain(breakage, new=other, old=one)
            assert told.reason
            assert told.fix
            assert formats.counterexample(breakage, new=other, old=one) or type_ is SchemaType.PROTOBUF


@pytest.mark.usefixtures("with_columns")
@pytest.mark.parametrize("type_", [*SPECS, COLUMNS], ids=lambda type_: str(type_.name))
@pytest.mark.parametrize("schema", [b"", b"{", b"null", b"\xff\0", b"[" * 5_000])
def test_whatever_the_bytes_are_there_is_an_answer(type_: SchemaType, schema: bytes) -> None:
    info = SchemaInfo(type_, schema)
    list(formats.problems(info, Release.R4_0))
    spec(info).lines(info)
    for ask in (formats.identity, outline, spec(info).content, spec(info).require_newest, spec(info).text):
        with contextlib.suppress(InvalidSchema, RecursionError):
            ask(info)


@pytest.fixture
def repository(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "repository")


@pytest.mark.usefixtures("with_columns")
def test_a_made_up_type_goes_all_the_way(repository: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        try:
            code = main(["-C", str(repository.path), *arguments])
        except SystemExit as left:
            code = int(left.code or 0)
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    def declared(*columns: str) -> dict[str, str]:
        schema = {"type": "COLUMNS", "definition": {"columns": columns}}
        return {"namespaces/orders.yaml": json.dumps({"topic": "shop/sales/orders", "schema": schema})}

    project = "version: 1\napproved: main\ntargets:\n  local: {registry: 'sqlite:registry.db'}\n"
    repository.commit({"schemactl.yaml": project, **declared("id")})
    repository.commit(declared("id", "total"))
    repository.git("checkout", "-qf", "main")
    assert run("check")[0] == 0
    code, shown = run("plan", "--target", "local", "--out", "plan.json", "--detailed-exitcode")
    assert (code, "orders" in shown) == (2, True), shown
    code, shown = run("apply", "plan.json")
    assert code == 0, shown
    assert run("plan", "--target", "local", "--detailed-exitcode")[0] == 0
    code, shown = run("log", "shop/sales/orders")
    assert (code, shown.count("COLUMNS")) >= (0, 1), shown
    assert '"total"' in run("show", "shop/sales/orders@1")[1]
    assert "total: column" in run("diff", "shop/sales/orders@0", "shop/sales/orders@1")[1]
    (repository.path / "namespaces/orders.yaml").write_text(declared("total")["namespaces/orders.yaml"])
    code, shown = run("check")
    assert code == 100, shown
    assert "The column id is not in every message." in shown


def test_who_reads_whom_has_one_answer_with_its_reason() -> None:
    def version(number: int, text: str, type_: SchemaType = SchemaType.AVRO) -> SchemaVersion:
        return SchemaVersion(number, SchemaInfo(type_, text.encode()))

    def order(name: str, *fields: str) -> str:
        return json.dumps(
            {"type": "record", "name": name, "fields": [{"name": each, "type": "int"} for each in fields]}
        )

    plain, renamed = version(0, order("Order", "id")), version(1, order("Purchase", "id"))
    assert formats.reading(reader=plain, writer=plain) == ("yes", "")
    assert formats.reading(reader=renamed, writer=plain).answer == "strict"
    assert formats.reading(reader=plain, writer=renamed).answer == "strict"
    more = version(2, order("Order", "id", "total"))
    assert formats.reading(reader=plain, writer=more) == ("yes", "")
    unread = formats.reading(reader=more, writer=plain)
    assert unread.answer == "no"
    assert "version 0" in unread.reason
    assert formats.reading(reader=plain, writer=version(1, "{")).answer == "no"
    other = version(3, order("Order", "id"), SchemaType.JSON)
    assert formats.reading(reader=other, writer=plain).reason.startswith("The schema type was AVRO and is JSON")
