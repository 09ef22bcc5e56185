"""Parsing a definition: any text is a schema or one clear error, and layout changes neither identity nor canonical form."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_strategies import PRIMITIVES, draw_evolution, draw_schema

from schemactl.codec import InvalidDefinition
from schemactl.codec.avro_schema import parse as parse_for_codec
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import find_problems as find_format_problems
from schemactl.formats import identity
from schemactl.formats.avro.json_text import InvalidAvro, canonical_form, schema_fingerprints
from schemactl.formats.avro.parser import find_problems, parse
from schemactl.formats.avro.schema import equal, make_identity_key
from schemactl.formats.digest import compute_digest

pytestmark = pytest.mark.slow

Json = Any

THOROUGH = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEYS = [
    "type",
    "name",
    "namespace",
    "fields",
    "symbols",
    "items",
    "values",
    "size",
    "default",
    "aliases",
    "order",
    "doc",
]
WORDS = (*PRIMITIVES, *["record", "error", "enum", "array", "map", "fixed", "A", "n.B", "a-b", "$", "ignore"], "")

scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.sampled_from(WORDS)
nearly_schemas = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
        | st.builds(
            lambda kind, rest: {**rest, **kind},
            st.fixed_dictionaries({"type": st.sampled_from(WORDS), "name": st.sampled_from("AB")}),
            st.dictionaries(st.sampled_from(KEYS[2:]), inner, max_size=4),
        )
    ),
    max_leaves=20,
)
texts = nearly_schemas.map(json.dumps) | st.text(max_size=30) | st.binary(max_size=30)


def get_at(value: Json, pointer: str) -> Json:
    """Return the value at a pointer, whose last token may be a missing key."""
    tokens = pointer.split("/")[1:]
    for number, token in enumerate(tokens):
        is_last = number == len(tokens) - 1
        assert isinstance(value, list) or token in value or is_last, pointer
        value = value[int(token)] if isinstance(value, list) else value.get(token)
    return value


@THOROUGH
@given(texts, st.sampled_from(Release), st.booleans())
def test_any_text_is_a_schema_or_one_clear_error(text: str | bytes, release: Release, strict: bool) -> None:  # noqa: FBT001  drawn
    problem = find_error(text, release, strict=strict)
    if problem is None:
        assert not strict or [*find_problems(text, release)] == []
        return
    assert problem.message
    assert problem.exception.isidentifier()
    assert [*find_problems(text, release)] != []
    if problem.pointer:
        get_at(json.loads(text), problem.pointer)


def find_error(text: str | bytes, release: Release, *, strict: bool) -> InvalidAvro | None:
    try:
        parse(text, release, validate_defaults=strict)
    except InvalidAvro as problem:
        return problem
    return None


@THOROUGH
@given(draw_schema(), st.sampled_from(Release), st.sampled_from((None, 1, "\t")))
def test_layout_changes_neither_identity_nor_canonical_form(
    definition: Json, release: Release, indent: int | str | None
) -> None:
    one = parse(json.dumps(definition), release)
    other = parse(f"/* laid out */ {json.dumps(definition, indent=indent, ensure_ascii=False)}\n", release)
    assert equal(one, other)
    assert make_identity_key(one) == make_identity_key(other)
    assert schema_fingerprints(canonical_form(one)) == schema_fingerprints(canonical_form(other))


@THOROUGH
@given(draw_evolution(), st.sampled_from(Release))
def test_identities_are_equal_just_where_schemas_are(pair: tuple[Json, Json], release: Release) -> None:
    one, other = (parse(json.dumps(definition), release) for definition in pair)
    assert equal(one, other) is equal(other, one) is (make_identity_key(one) == make_identity_key(other))


ENUM = '{"type": "enum", "name": "E", "symbols": [%s]}'
NESTED = '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "%s"}]}'


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('"int", "default": 1', '"int", "default": 1.0', False),
        ('"double", "default": "1"', '"double", "default": 1.0', True),
        ('"int"', '{"type": "int"}', True),
        ('"int"', '"int", "doc": "x"', True),
        ('"int"', '"int", "order": "ascending"', True),
        ('"int"', '"int", "order": "ignore"', False),
        ('"int"', '"int", "x": 1', False),
        (ENUM % '"X"', ENUM % '"X", "Y"', False),
        ('{"type": "fixed", "name": "F", "size": 2}', '{"type": "fixed", "name": ".F", "size": 2}', True),
        ('["null", "R"]', '["null", "int"]', False),
        # Two types with one name, which only Avro 1.12.0 accepts.
        (NESTED % "int", NESTED % "long", False),
    ],
)
def test_versions_differ_exactly_if_schemas_are_not_equal(*, one: str, other: str, is_same: bool) -> None:
    record = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": %s}]}'
    infos = [SchemaInfo(SchemaType.AVRO, (record % type_).encode()) for type_ in (one, other)]
    for key in (identity, compute_digest):
        assert (key(infos[0]) == key(infos[1])) is is_same


def test_problem_in_the_schema_precedes_trailing_text() -> None:
    text = '{"type": "record", "name": "R", "fields": [{"name": "f", "type": "int", "default": "x"}]} x'
    for release in Release:
        with pytest.raises(InvalidAvro, match="follows the schema"):
            parse(text, release)
        with pytest.raises(InvalidAvro, match=r"the default of R\.f"):
            parse(text, release, validate_defaults=True)
        with pytest.raises(InvalidAvro, match='"Nobody" is not defined'):
            parse('{"type": "array", "items": "Nobody"} x', release)
        assert len(list(find_problems(text, release))) == 2


ITEM = '{"type": "record", "name": "Item", "fields": [{"name": "id", "type": "int"}, {"name": "tags", "type": {"type": "map", "values": "long"}}]}'
SUFFIXED = '{"type": "record", "name": "S", "fields": [{"name": "here", "type": "int"}, {"name": "set", "type": "string", "default": "x"}]}'


@pytest.mark.parametrize(
    ("type_", "default", "problem"),
    [
        ('"int"', '"x"', 'is "x"; expected a value of type int'),
        ('{"type": "array", "items": "int"}', '{"a": 1}', "is an object; expected a value of type array"),
        ('{"type": "array", "items": "int"}', "[1, 2.5]", "is 2.5 at [1]; expected a value of type int"),
        ('{"type": "array", "items": ["int", "null"]}', '[1, "x", "y"]', 'is "x" at [1]; expected a value of type one of int, null'),
        ('{"type": "array", "items": {"type": "array", "items": "int"}}', "[[], [1, null]]", "is null at [1][1]; expected a value of type int"),
        ('{"type": "map", "values": "int"}', '{"a": 1, "the key": []}', 'is an array at ["the key"]; expected a value of type int'),
        ('{"type": "map", "values": {"type": "array", "items": "boolean"}}', '{"k": [true, 0]}', 'is 0 at ["k"][1]; expected a value of type boolean'),
        (SUFFIXED, '{"set": "y"}', "lacks here, which has no default"),
        (SUFFIXED, '{"here": 1, "set": null}', "is null at set; expected a value of type string"),
        (ITEM, '{"id": 1, "tags": {"a": "b"}}', 'is "b" at tags["a"]; expected a value of type long'),
        (f'{{"type": "array", "items": {ITEM}}}', '[{"id": 1, "tags": {}}, {"id": 2}]', "lacks [1].tags, which has no default"),
        (f'[{ITEM}, "null"]', '{"id": 1, "tags": {"a": 1, "b": 2.5}}', 'is 2.5 at tags["b"]; expected a value of type long'),
    ],
)  # fmt: skip
def test_problem_of_a_default_names_its_part(type_: str, default: str, problem: str) -> None:
    text = f'{{"type": "record", "name": "R", "fields": [{{"name": "a", "type": {type_}, "default": {default}}}]}}'
    for release in Release:
        [rejected] = find_problems(text, release)
        assert rejected.message == f"the default of R.a {problem}"


def test_problem_of_a_deep_default_shows_the_end_of_the_path() -> None:
    depth = 100
    text = (
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": '
        + '{"type": "array", "items": ' * depth + '"int"' + "}" * depth
        + ', "default": ' + "[" * depth + '"x"' + "]" * depth + "}]}"
    )  # fmt: skip
    [rejected] = find_problems(text, Release.R4_2)
    assert rejected.message == f'the default of R.a is "x" at ...{"[0]" * 20}; expected a value of type int'


def test_default_of_a_record_that_contains_itself_by_defaults_is_a_problem() -> None:
    text = (
        '{"type": "record", "name": "R", "fields": [{"name": "list", "type": {"type": "array", "items": "R"}, "default": []}, '
        '{"name": "id", "type": "int"}, {"name": "b", "type": {"type": "array", "items": "R"}, "default": [{"list": []}]}]}'
    )
    assert [*find_problems(text, Release.R5_0)]


@pytest.mark.parametrize(
    ("type_", "record", "path", "pointer"),
    [
        ('"R"', "R", "R.a", "/fields/0"),
        ('{"type": "array", "items": {"type": "record", "name": "P", "fields": [{"name": "i", "type": "int"}, {"name": "p", "type": "P"}]}}', "P", "P.p", "/fields/0/type/items/fields/1"),
        ('{"type": "map", "values": {"type": "record", "name": "n.P", "fields": [{"name": "q", "type": {"type": "record", "name": "Q", "fields": [{"name": "p", "type": "P"}]}}]}}', "n.P", "P.q.p", "/fields/0/type/values/fields/0"),
        ('{"type": "record", "name": "W", "fields": [{"name": "p", "type": {"type": "record", "name": "P", "fields": [{"name": "p", "type": "P"}]}}]}', "P", "P.p", "/fields/0/type/fields/0/type/fields/0"),
    ],
)  # fmt: skip
def test_record_that_must_contain_itself_is_named_at_its_field(
    type_: str, record: str, path: str, pointer: str
) -> None:
    text = f'{{"type": "record", "name": "R", "fields": [{{"name": "a", "type": {type_}}}]}}'
    for release in Release:
        [problem] = find_format_problems(SchemaInfo(SchemaType.AVRO, text.encode()), release)
        assert problem.message.startswith(f"record {record} must contain itself ({path}): it has no finite value")
        assert problem.pointer == pointer


TWICE = '{"name": "f", "type": "int"}, {"name": "f", "type": "int"}'


@pytest.mark.parametrize(
    ("fields", "exception"),
    [
        ('{"name": "f-", "type": "double", "default": ""}', "NumberFormatException"),
        ('{"name": "f-", "type": "int", "order": "up"}', "IllegalArgumentException"),
        ('{"name": "f-", "type": "int", "default": "x"}', "SchemaParseException"),
        (f'{TWICE}, {{"name": "g-"}}', "SchemaParseException"),
        (TWICE, "AvroRuntimeException"),
    ],
)
def test_first_problem_of_java_is_reported(fields: str, exception: str) -> None:
    for release in Release:
        with pytest.raises(InvalidAvro) as rejected:
            parse(f'{{"type": "record", "name": "R", "fields": [{fields}]}}', release)
        assert rejected.value.exception == exception


@st.composite
def draw_damaged(draw: st.DrawFn) -> str:
    """Draw a definition with a part replaced, removed, added or doubled."""
    definition = copy.deepcopy(draw(draw_schema()))
    holder, key = draw(st.sampled_from([*_list_places(definition)]))
    holder[key] = draw(
        st.sampled_from((*WORDS, None, True, 0, -1, 1.5, 2**31, [], {}, ["int", "int"], ["null", ["int"]], holder[key]))
    )
    match draw(st.sampled_from(("replaced", "left out", "added", "doubled"))):
        case "left out":
            del holder[key]
        case "added" if isinstance(holder, dict):
            holder[draw(st.sampled_from(KEYS))] = draw(st.sampled_from((*WORDS, [], ["Old"], 5)))
        case "doubled" if isinstance(holder, list):
            holder.append(holder[0])
    return json.dumps(definition)


def _list_places(value: Json) -> Iterator[tuple[Json, Json]]:
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _list_places(value[key])


@THOROUGH
@given(texts.filter(lambda text: isinstance(text, str)) | draw_damaged())
def test_a_codec_reads_the_definitions_that_avro_reads_in_one_of_its_releases(text: str) -> None:
    errors = [find_error(text, release, strict=False) for release in Release]
    try:
        parse_for_codec(text)
    except InvalidDefinition:
        assert None not in errors
    else:
        # A codec may ignore the difference between two definitions of one type.
        assert None in errors or any(error and "is defined twice" in error.message for error in errors)
