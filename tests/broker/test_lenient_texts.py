"""Each release's predicted answers to texts that only lenient JSON parsers accept."""

from __future__ import annotations

import json
from contextlib import closing, suppress

import brokers
import pytest
from admin_rest import Client
from hypothesis import example, given
from hypothesis import strategies as st
from lenient_texts import list_uploads, request

from schemactl.broker.upload import VersionList
from schemactl.cli.compare import _parse_new
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release
from schemactl.formats import gson

STATUS = {"ok": 200, "invalid": 422, "error": 500}


@pytest.mark.parametrize("release", list(Release))
def test_each_text_has_the_recorded_outcome(release: Release) -> None:
    for kind, text, properties, outcome in list_uploads(str(release)):
        new = _parse_new({"new": request(kind, text, properties)})
        assert VersionList([], release).put(new, CompatibilityStrategy.FULL).outcome.value == outcome, (
            text,
            properties,
        )


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_the_recorded_outcomes_are_the_broker_s(release: str) -> None:
    broker = brokers.start_broker(release)
    namespace = f"{brokers.new_tenant()}/lenient"
    with closing(Client(broker.url)) as client:
        client.create_namespace(namespace)
        for number, (kind, text, properties, outcome) in enumerate(list_uploads(release)):
            reply = client.call("POST", f"/schemas/{namespace}/t{number}/schema", request(kind, text, properties))
            assert reply.status == STATUS[outcome], (text, properties, reply)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("// nothing", None),
        ("{a:b;'c'=[,];\"d\":'\\u0041\\\n'}", {"a": "b", "c": [None, None], "d": "A\n"}),
        ("[1 ; -0.5e3 ; 01 ; 1. ; TRUE ; nUlL]", ["1", "-0.5e3", "01", "1.", True, None]),
        ("[a b]", None),
        ("[#\n1/**/,/* * */2//\n]", ["1", "2"]),
        ("{a b:1}", None),
        ("[-Infinity,NaN,1e999]", ["-Infinity", "NaN", "1e999"]),
        ('["a\nb"]', ["a\nb"]),
    ],
)
def test_a_text_is_read_as_gson_reads_it(text: str, value: object) -> None:
    try:
        assert gson.parse(text) == value
    except gson.GsonError:
        assert value is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_strict_json_reads_equally_without_the_lenient_reader(value: object) -> None:
    text = json.dumps(value)
    assert gson._Reader(text).read_document() == gson.parse(text)


@given(st.text(alphabet="{}[]:,;=#/*'\"\\ \nabnul01.-\ufeff"))
@example("[" * 100_000)
def test_any_text_is_read_or_rejected(text: str) -> None:
    with suppress(gson.GsonError, RecursionError):
        gson.parse(text)
