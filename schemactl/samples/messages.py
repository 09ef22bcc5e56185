"""A message of a topic by itself: its payload, its version, its key; and as a line of a file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from schemactl.codec import Codec, Definition, KeyValue, Version
from schemactl.codec.json_form import json_value
from schemactl.samples.values import OPTIONS, values


class SampleMessage(NamedTuple):
    """A message; `version` is the number of its schema, None: it says none."""

    payload: bytes | None
    version: int | None
    key: bytes | None = None

    def line(self, value: Any = None) -> str:
        """Return the message as a line of a file of samples, with its value where it is known."""
        coded = {"payload_b64": self.payload, "key_b64": self.key}
        texts = {name: base64.b64encode(held).decode() for name, held in coded.items() if held is not None}
        shown = {} if value is None else {"value": json_value(value)}
        return json.dumps({"version": self.version} | texts | shown, ensure_ascii=False)


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
