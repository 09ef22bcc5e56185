"""Recorded messages of Pulsar's Java client: each is read as Java's classes read it, and written as they wrote it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from java_messages import CLASSES, Row, TopicMessages, list_differences, read, read_corpus

from schemactl.codec import Codec, Unreadable
from schemactl.codec.arrow_types import to_numbers

TOPICS = read_corpus()

WITH_INITIAL_VALUES = {"json-basic", "kv-inline-string-json", "kv-sep-json-json"}
"""The topics of a JSON class with primitive fields and a field with an initial value.

Where a message has nothing for such a field, Java leaves it as the class made it, and schemactl reads null.
"""

REJECTED_BY_BOTH = {"json-odd"}
"""The topics whose third version has a symbol of an enum that older classes do not have."""


@pytest.mark.parametrize("reader", ["java1", "java2", "java3", "auto"])
@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_message_is_read_as_by_java(topic: TopicMessages, reader: str) -> None:
    has_initial_values = has_rejections = False
    for row in topic.rows:
        java = row.received[reader]
        if isinstance(java, dict) and java.keys() == {"refused"}:
            continue
        number = row.version if reader == "auto" else topic.versions[int(reader[-1])]
        ours = read(topic.codec.read_as(number), row)
        if isinstance(java, dict) and java.keys() == {"error"}:
            assert isinstance(ours, Unreadable)
            has_rejections = True
            continue
        differences = [*list_differences(ours, java, is_raw=reader == "auto")]
        assert all(difference.is_initial for difference in differences), (row.payload, differences)
        has_initial_values |= bool(differences)
    assert has_initial_values == (reader == "java3" and topic.name in WITH_INITIAL_VALUES)
    assert has_rejections == (reader in ("java1", "java2") and topic.name in REJECTED_BY_BOTH)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_a_batch_has_the_values_of_single_messages(topic: TopicMessages) -> None:
    for version in (CLASSES[0], CLASSES[-1]):
        codec = topic.codec.read_as(topic.versions[version])
        versions = pa.array([row.version for row in topic.rows])
        keys = pa.array([row.key for row in topic.rows], pa.binary()) if codec.separated else None
        decoded = codec.decode_batch(pa.array([row.payload for row in topic.rows], pa.binary()), versions, keys)
        values = to_numbers(decoded.rows.to_struct_array()).to_pylist()
        for row, value, error in [*zip(topic.rows, values, decoded.errors.to_pylist(), strict=True)][::5]:
            single = codec.decode_batch(
                pa.array([row.payload], pa.binary()), pa.array([row.version]), keys and pa.array([row.key], pa.binary())
            )
            [single_value] = to_numbers(single.rows.to_struct_array()).to_pylist()
            assert repr(value) == repr(single_value)
            assert isinstance(read(codec, row), Unreadable) == (error is not None)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_value_is_written_as_java_wrote_it(topic: TopicMessages) -> None:
    for row in topic.rows:
        codec = topic.codec.read_as(row.version)
        value = codec.decode_one(row.payload, row.version, row.key)
        payload, key = codec.encode_one(value), codec.encode_key(value)
        if key is not None or row.key is not None:
            assert _is_same(codec, key, row.key)
        assert _is_same(codec, payload, row.payload)
        again = Row(row.writer, row.version, payload, key, {})
        assert repr(read(codec, again)) == repr(value)


def _is_same(codec: Codec, ours: bytes | None, java: bytes | None) -> bool:
    """Return whether two payloads or keys are equal, as bytes or as parsed JSON."""
    if ours == java or ours is None or java is None:
        return ours == java
    types = repr(codec.reader)
    if "type='PROTOBUF_NATIVE'" in types:
        # The entries of maps have no order.
        return sorted(ours) == sorted(java)
    if "type='JSON'" not in types:
        return False
    if "encoding='INLINE'" in types:
        pairs = zip(_split_pair(ours), _split_pair(java), strict=True)
        return all(our_part == part or _is_same_json(_parse(our_part), _parse(part)) for our_part, part in pairs)
    return _is_same_json(_parse(ours), _parse(java))


def _parse(text: bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


def _split_pair(pair: bytes) -> list[bytes]:
    """Return key and value of an INLINE pair: each follows its length, which is -1 for null."""
    parts: list[bytes] = []
    while pair:
        length = max(int.from_bytes(pair[:4], "big", signed=True), 0)
        parts.append(pair[4 : 4 + length])
        pair = pair[4 + length :]
    return parts


def _is_same_json(ours: Any, java: Any) -> bool:
    if isinstance(ours, dict) and isinstance(java, dict):
        return ours.keys() == java.keys() and all(_is_same_json(ours[name], java[name]) for name in java)
    if isinstance(ours, list) and isinstance(java, list):
        return len(ours) == len(java) and all(map(_is_same_json, ours, java))
    if isinstance(java, int | Decimal) and not isinstance(java, bool):
        # BigDecimal and BigInteger are written as text, and the shortest text of a float depends on the language.
        return Decimal(str(ours)) == Decimal(str(java)) or np.float32(ours) == np.float32(java)
    return type(ours) is type(java) and bool(ours == java)
