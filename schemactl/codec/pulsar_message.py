"""What pulsar-client says of a message: its payload, its version, its key."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

SENDABLE: Final = ("AVRO", "JSON", "STRING", "PROTOBUF", "PROTOBUF_NATIVE")
"""The schema types whose versions pulsar-client can send with (docs/how-to/send-messages.md says why no others)."""


def payload_of(message: Any) -> bytes | None:
    """Return the payload of pulsar-client's message; None: it has none."""
    return None if message.has_null_value() else message.data()


def number_of(message: Any) -> int | None:
    """Return the number of the schema that a message was written with; None: it says none."""
    number: int = message.int_schema_version()
    return number if number >= 0 else None


def pair_key(text: str) -> bytes | None:
    """Return the key of a SEPARATED pair; None: it has none.

    Java's producers send it in base64, and a mark that pulsar-client hides.
    """
    if not text:
        return None
    key = text.encode()
    try:
        found = base64.b64decode(key, validate=True)
    except binascii.Error:
        return key
    # Anything else was not written by an encoder.
    return found if base64.b64encode(found) == key else key
