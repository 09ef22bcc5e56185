"""Descriptors printed as `.proto`, and compiled again: the same content."""

from __future__ import annotations

from pathlib import Path

import pytest
from protobuf_corpus import public

from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import SchemaInfo
from schemactl.formats import identity
from schemactl.formats.protobuf.definition import is_shipped, parse, proto_text
from schemactl.formats.protobuf.protoc import Proto, compile_all

pytestmark = pytest.mark.slow


def printed(info: SchemaInfo) -> Proto:
    """The definition's files, printed."""
    definition = parse(info.schema)
    names = [name for name in definition.reachable if not is_shipped(name)]
    texts = {name: proto_text(definition.image.files[name].proto).encode() for name in names}
    return Proto(definition.root.full_name, definition.root.file.name, texts)


def test_the_corpus_compiles_to_the_same_content_again() -> None:
    found = [info for _, *infos in public() for info in infos]
    again = compile_all([printed(info) for info in found])
    for before, after in zip(found, again, strict=True):
        assert isinstance(after, SchemaInfo), after
        assert identity(after) == identity(before), printed(before).sources


EVERYTHING = Path(__file__).with_name("everything")
"""The folder of files that say all that one can say."""


@pytest.mark.parametrize(("entry", "message"), [("x/all.proto", "x.v1.All"), ("x/edition.proto", "x.v1.New")])
def test_everything_a_file_can_say(entry: str, message: str) -> None:
    sources = {str(path.relative_to(EVERYTHING)): path.read_bytes() for path in EVERYTHING.rglob("*.proto")}
    [before] = compile_all([Proto(message, entry, sources)])
    assert isinstance(before, SchemaInfo), before
    [after] = compile_all([printed(before)])
    assert isinstance(after, SchemaInfo), after
    assert identity(after) == identity(before), printed(before).sources


def test_what_cannot_be_printed_is_refused() -> None:
    text = 'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }'
    [info] = compile_all([Proto.of_text(text, "M")])
    assert isinstance(info, SchemaInfo)
    with pytest.raises(InvalidSchema, match="the group g is not printed"):
        printed(info)
