"""If two definitions have no findings, a reader of one gets the values that were written with the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from avro_pairs import make_pair
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_protobuf import ProtoMaker, read_json_definition
from written_values import find_difference, find_proto_difference

from schemactl.codec import Codec, Definition, Options, Unreadable, Unwritable, Version
from schemactl.comparison.compatibility import compare
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaType

pytestmark = pytest.mark.slow

SEEDS = st.integers(min_value=0, max_value=2**32)


@pytest.mark.parametrize("type_", [SchemaType.AVRO])
def test_reader_without_a_finding_gets_the_written_value(type_: SchemaType) -> None:
    kept_pairs = 0

    @given(SEEDS)
    @EXAMPLES
    def check_pair(seed: int) -> None:
        nonlocal kept_pairs
        maker, writer, reader = make_pair(seed)
        old, new = (SchemaInfo(type_, json.dumps(schema).encode()) for schema in (writer, reader))
        if compare([old], new, CompatibilityStrategy.BACKWARD).values != "kept":
            return
        kept_pairs += 1
        definitions = [Definition(type_.name, info.schema.decode()) for info in (old, new)]
        own_codec = Codec([Version(0, definitions[0])])
        codec = Codec([Version(0, definitions[0])], reader=definitions[1])
        for _ in range(8):
            try:
                payload = own_codec.encode_one(maker.draw_value(writer))
            except Unwritable:
                # The maker believes in a logical type that Avro ignores.
                continue
            written = own_codec.decode_one(payload)
            assert not find_difference(
                writer=writer, reader=reader, written=written, read=codec.decode_one(payload, 0)
            ), (writer, reader)

    check_pair()
    assert kept_pairs > EXAMPLES.max_examples // 20, kept_pairs


def swap_names(maker: ProtoMaker, file: Any) -> None:
    """Exchange the names of some fields and enum values, which keep their numbers."""
    pick = maker.random
    holders = [message.field for message in file.message_type] + [enum.value for enum in file.enum_type]
    for members in holders:
        if len(members) > 1 and pick.random() < 0.2:
            first, second = pick.sample(list(members), 2)
            first.name, second.name = second.name, first.name


def test_protobuf_reader_without_a_finding_gets_the_written_value() -> None:
    kept_pairs = 0

    @given(SEEDS)
    @EXAMPLES
    def check_pair(seed: int) -> None:
        nonlocal kept_pairs
        maker = ProtoMaker(seed)
        file = maker.change_file()
        swap_names(maker, file)
        writer, reader = maker.make_definition(), read_json_definition(file, maker.root)
        old, new = (SchemaInfo(SchemaType.PROTOBUF_NATIVE, side.text.encode()) for side in (writer, reader))
        if compare([old], new, CompatibilityStrategy.BACKWARD).values != "kept":
            return
        kept_pairs += 1
        own_codec = Codec([Version(0, writer)], options=Options(recursion_depth=1))
        codec = Codec([Version(0, writer)], reader=reader, options=Options(recursion_depth=1))
        for _ in range(8):
            payload = maker.make_payload()
            try:
                written = own_codec.decode_one(payload, 0)
            except Unreadable:
                # Times that no column holds.
                continue
            read = codec.decode_one(payload, 0)
            files = {"writer_file": maker.file, "reader_file": file, "message": maker.root}
            assert not find_proto_difference(**files, written=written, read=read)

    check_pair()
    assert kept_pairs > EXAMPLES.max_examples // 20, kept_pairs
