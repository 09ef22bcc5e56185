"""Pairs whose halves are of any type: damage is judged alike alone and in a batch, and nothing is lost on the way."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker, damage
from sample_codecs import codec_of, read_alike, record

from schemactl.codec import Definition, KeyValue, Unreadable

pytestmark = pytest.mark.slow

RECORD = json.dumps(record("long", {"type": "array", "items": "string"}))
HALVES: list[tuple[Definition, list[Any]]] = [
    (Definition("AVRO", RECORD), [{"f0": -(2**40), "f1": ["a", ""]}, {"f0": 0, "f1": []}]),
    (Definition("JSON", RECORD), [{"f0": 7, "f1": ["ß"]}]),
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
    codec = codec_of(KeyValue(key, value, encoding))
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
    together = read_alike(codec, damaged, keys=own_keys)
    for payload, key_bytes, reason in zip(damaged, own_keys, together.errors, strict=True):
        with pytest.raises(Unreadable) if reason.is_valid else nullcontext():
            codec.decode_one(payload, 0, key_bytes)
