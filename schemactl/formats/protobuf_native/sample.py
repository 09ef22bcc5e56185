"""A few small messages of a definition, and what protobuf's own parser makes of bytes that may be anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Parsed
from google.protobuf.message_factory import GetMessageClass

from schemactl.formats.protobuf_native.encoding import encoded, required, values
from schemactl.formats.protobuf_native.wire import fields_of
from schemactl.formats.protobuf_native.wrapper import build_pool, parse

_MAX_FIELDS: Final = 3


def messages(schema: bytes) -> Iterator[bytes]:
    """Small messages: one field set, for the first few, then none but those it cannot do without.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    root = parse(schema).root
    for field in islice(fields_of(root).values(), _MAX_FIELDS):
        needed = required(root, leave_out={field.proto.number})
        value = list(islice(values(field), 1))
        if needed is not None and value:
            yield needed + encoded(field, value[0])
    needed = required(root, leave_out=set())
    if needed is not None:
        yield needed


def read(data: bytes, schema: bytes) -> str:
    """The message in `data` as JSON text.

    Raises:
        ValueError: the parser refuses it; says why.
        InvalidSchema: the definition does not parse.
    """
    definition = parse(schema)
    pool = build_pool(definition.image, definition.reachable)
    message: Parsed = GetMessageClass(pool.FindMessageTypeByName(definition.root.full_name))()
    try:
        message.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    if not message.IsInitialized():
        missing = message.FindInitializationErrors()  # type: ignore[attr-defined]  # the stubs lack it
        raise ValueError(f"it lacks {', '.join(missing)}")
    text: str = MessageToJson(message, preserving_proto_field_name=True, indent=None)
    return text
