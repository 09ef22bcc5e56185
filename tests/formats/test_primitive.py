"""The types without a definition."""

from __future__ import annotations

import json

import pytest

from schemactl import formats
from schemactl.core.findings import Breakage
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import SPECS


def make_string(charset: str | None = None) -> SchemaInfo:
    return SchemaInfo(SchemaType.STRING, b"", {"__charset": charset} if charset else {})


def to_declared(info: SchemaInfo) -> SchemaInfo:
    return SPECS[info.type].to_declared(info)


@pytest.mark.parametrize("kind", [kind for kind, type_spec in SPECS.items() if type_spec.payload == "value"])
def test_a_primitive_has_no_definition(kind: SchemaType) -> None:
    assert not list(formats.find_problems(SchemaInfo(kind), Release.R4_0))
    (problem,) = formats.find_problems(SchemaInfo(kind, b'"int"'), Release.R4_0)
    assert kind.name in problem.message


@pytest.mark.parametrize("kind", [SchemaType.BYTES, SchemaType.NONE, SchemaType.AUTO, SchemaType.AUTO_CONSUME])
def test_type_that_is_never_registered_is_rejected(kind: SchemaType) -> None:
    (problem,) = formats.find_problems(SchemaInfo(kind), Release.R5_0)
    assert problem.fix


def test_external_is_known_from_4_2_on() -> None:
    external = SchemaInfo(SchemaType.EXTERNAL)
    assert list(formats.find_problems(external, Release.R4_0))
    assert not list(formats.find_problems(external, Release.R4_2))


def test_strings_of_java_and_python_are_two_versions() -> None:
    python = SchemaInfo(SchemaType.STRING, b"null")
    assert not list(formats.find_problems(python, Release.R4_0))
    assert formats.identity(python) != formats.identity(make_string())


def test_strings_of_all_clients_have_one_declaration() -> None:
    for properties in ({}, {"__charset": "UTF-8"}, {"__charset": "utf8"}):
        for text in (b"", b"null"):
            assert to_declared(SchemaInfo(SchemaType.STRING, text, properties)) == make_string()
    other = SchemaInfo(SchemaType.STRING, b"null", {"__charset": "UTF-16", "owner": "ada"})
    assert to_declared(other) == other
    assert to_declared(SchemaInfo(SchemaType.JSON, b"null")).schema == b"null"


def test_an_unknown_charset_is_rejected() -> None:
    (problem,) = formats.find_problems(make_string("UTF-9"), Release.R4_0)
    assert "UTF-9" in problem.message
    assert list(formats.resolve(reader=make_string(), writer=make_string("UTF-9")))
    assert not list(formats.resolve(reader=make_string("UTF-9"), writer=make_string("UTF-9")))


@pytest.mark.parametrize(
    ("reader", "writer", "breaks"),
    [
        (None, "utf8", False),
        ("ISO-8859-1", "latin1", False),
        (None, "US-ASCII", False),
        ("ISO-8859-1", "US-ASCII", False),
        ("UTF-16", "US-ASCII", True),
        ("US-ASCII", None, True),
        (None, "ISO-8859-1", True),
    ],
)
def test_a_reader_decodes_with_its_own_charset(reader: str | None, writer: str | None, *, breaks: bool) -> None:
    incompatibilities = list(formats.resolve(reader=make_string(reader), writer=make_string(writer)))
    assert [incompatibility.rule for incompatibility in incompatibilities] == ["STRING_CHARSET_CHANGED"] * breaks
    if incompatibilities:
        breakage = Breakage(incompatibilities[0], "new_reads_old", 0)
        assert "charset" in formats.explain(breakage, new=make_string(reader), old=make_string(writer)).reason
        proof = formats.counterexample(breakage, new=make_string(reader), old=make_string(writer))
        assert proof
        read = proof.data.decode(reader or "UTF-8", "replace")
        assert proof.result == f"reads {json.dumps(read, ensure_ascii=False)}" != f"reads {proof.message}"


DEEP = '{"type":"array","items":' * 240 + '"int"' + "}" * 240


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('{"type": "string"}', '{\n"type":"string"}', True),
        ('{"type": "string"}', '"string"', False),
        ('// a comment\n{"type": "string"}', '{"type":"string"}', True),
        (DEEP, f"{DEEP} ", True),
    ],
)
def test_layout_and_comments_do_not_count_as_text(one: str, other: str, *, is_same: bool) -> None:
    infos = (SchemaInfo(SchemaType.AVRO, text.encode()) for text in (one, other))
    assert formats.has_same_text(*infos) is is_same


def test_properties_count_as_text() -> None:
    assert formats.has_same_text(make_string(), make_string())
    assert not formats.has_same_text(make_string(), make_string("UTF-16"))
