"""Pairs whose halves are of any type: damage is judged alike alone and in a batch, and nothing is lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker, damage

from schemactl.codec import Codec, Definition, KeyValue, Unreadable, Version
from schemactl.codec.casting import to_numbers

pytestmark = pytest.mark.slow

RECORD = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "names", "type": {"type": "array", "items": "string"}},
        ],
    }
)
HALVES: list[tuple[Definition, list[Any]]] = [
    (Definition("AVRO", RECORD), [{"id": -(2**40), "names": ["a", ""]}, {"id": 0, "names": []}]),
    (Definition("JSON", RECORD), [{"id": 7, "names": ["ß"]}]),
    (Definition("AVRO", '"int"'), [0, -1, 2**31 - 1]),
    (Definition("STRING"), ["", "straße"]),
    (Definition("STRING", properties={"__charset": "UTF-16"}), ["", "é"]),
    (Definition("BYTES"), [b"", b"\0\xff"]),
    (Definition("INT32"), [0, -5]),
    (Definition("DOUBLE"), [0.5]),
    (Definition("BOOLEAN"), [True, False]),
]


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
@given(st.data())
@EXAMPLES
def test_a_damaged_pair_is_judged_alike_alone_and_in_a_batch(encoding: Any, data: st.DataObject) -> None:
    maker = Maker(data.draw(st.integers(0, 2**32)))
    pick = maker.random
    (key, keys), (value, values) = pick.choice(HALVES), pick.choice(HALVES)
    codec = Codec([Version(0, KeyValue(key, value, encoding))])
    pairs = [{"key": pick.choice([None, *keys]), "value": pick.choice([None, *values])} for _ in range(50)]
    payloads = [codec.encode_one(pair) for pair in pairs]
    own_keys = [codec.encode_key(pair) for pair in pairs]
    whole = codec.decode_batch(pa.array(payloads, pa.binary()), keys=pa.array(own_keys, pa.binary()))
    assert whole.rows.to_pylist() == pairs
    encoded = codec.encode_batch(whole.rows)
    assert encoded.payloads.to_pylist() == payloads
    assert encoded.keys is None or encoded.keys.to_pylist() == own_keys
    damaged = [payload and damage(maker, payload) for payload in payloads]
    if encoding == "INLINE":
        # Lengths that lie.
        damaged[:5] = [
            size.to_bytes(4, "big", signed=True) + (payload or b"")[4:]
            for size, payload in zip((-1, -2, 2**31 - 1, 5, -(2**31)), damaged, strict=False)
        ]
    together = codec.decode_batch(pa.array(damaged, pa.binary()), keys=pa.array(own_keys, pa.binary()))
    together.rows.validate(full=True)
    rows = to_numbers(together.rows.to_struct_array()).to_pylist()
    for number, payload in enumerate(damaged):
        alone = codec.decode_batch(
            pa.array([payload], pa.binary()), keys=pa.array([own_keys[number]], pa.binary())
        )
        assert alone.errors[0].as_py() == together.errors[number].as_py()
        assert repr(to_numbers(alone.rows.to_struct_array()).to_pylist()) == repr([rows[number]])
        if together.errors[number].is_valid:
            with pytest.raises(Unreadable):
                codec.decode_one(payload, 0, own_keys[number])
        else:
            codec.decode_one(payload, 0, own_keys[number])
