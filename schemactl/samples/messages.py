"""A message of a topic by itself: its payload, its version, its key; and as a line of a file."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from schemactl.checks.samples import SampleMessage
from schemactl.codec import Codec, Definition, KeyValue, Version
from schemactl.samples.values import OPTIONS, values


def plausible(
    schema: Definition | KeyValue, number: int, *, name: str, seed: int
) -> Iterator[tuple[SampleMessage, Any]]:
    """Yield messages of a schema without end, each with its value as its codec reads it; the same seed, the same messages.

    Args:
        schema: that of the version.
        number: of the version.
        name: what a value without fields is called.
        seed: any number.

    Raises as `samples.values.values`.
    """
    codec = Codec([Version(number, schema)], options=OPTIONS)
    for value in values(schema, name, Random(f"{seed} {name} {number}")):  # noqa: S311  plausible, not secret
        message = SampleMessage(codec.encode_one(value, number), number, codec.encode_key(value, number))
        yield message, codec.decode_one(message.payload, number, message.key)
