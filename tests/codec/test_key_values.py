"""KEY_VALUE messages of any types: encoding and decoding keeps values, and damage has the same result alone and in a batch."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker, damage_payload
from sample_codecs import codec_of, decode_both_ways, make_record

from schemactl.codec import Definition, KeyValue, Unreadable

pytestmark = pytest.mark.slow

RECORD = json.dumps(make_record("long", {"type": "array", "items": "string"}))
PARTS: list[tuple[Definition, list[Any]]] = [
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
def test_a_damaged_pair_has_the_same_result_alone_and_in_a_batch(encoding: Any, data: st.DataObject) -> None:
    maker = Maker(data.draw(st.integers(0, 2**32)))
    random = maker.random
    (key, keys), (value, values) = random.choice(PARTS), random.choice(PARTS)
    codec = codec_of(KeyValue(key, value, encoding))
    pairs = [{"key": random.choice([None, *keys]), "value": random.choice([None, *values])} for _ in range(50)]
    payloads = [codec.encode_one(pair) for pair in pairs]
    key_column = [codec.encode_key(pair) for pair in pairs]
    decoded = codec.decode_batch(pa.array(payloads, pa.binary()), keys=pa.array(key_column, pa.binary()))
    assert decoded.rows.to_pylist() == pairs
    encoded = codec.encode_batch(decoded.rows)
    assert encoded.payloads.to_pylist() == payloads
    assert encoded.keys is None or encoded.keys.to_pylist() == key_column
    damaged = [payload and damage_payload(maker, payload) for payload in payloads]
    if encoding == "INLINE":
        # Wrong lengths.
        damaged[:5] = [
            size.to_bytes(4, "big", signed=True) + (payload or b"")[4:]
            for size, payload in zip((-1, -2, 2**31 - 1, 5, -(2**31)), damaged, strict=False)
        ]
    together = decode_both_ways(codec, damaged, keys=key_column)
    for payload, key_bytes, reason in zip(damaged, key_column, together.errors, strict=True):
        with pytest.raises(Unreadable) if reason.is_valid else nullcontext():
            codec.decode_one(payload, 0, key_bytes)
