"""Definitions as text for people: as stored, and laid out so that two can be compared line by line."""

from __future__ import annotations

import json

from schemactl.errors import InvalidSchema
from schemactl.formats.key_value import to_text
from schemactl.formats.outline import outline
from schemactl.model import SchemaInfo, SchemaType


def stored_text(info: SchemaInfo) -> str | None:
    """The definition as the admin API shows it; "" for a type without one, None for bytes that are no text.

    Raises:
        InvalidSchema: a KEY_VALUE definition does not parse.
    """
    if info.type is SchemaType.KEY_VALUE:
        return to_text(info)
    try:
        return info.schema.decode()
    except UnicodeDecodeError:
        return None


def lines(info: SchemaInfo) -> list[str]:
    """The definition's lines, laid out the same for the same content: layout is no difference."""
    try:
        if info.type is SchemaType.PROTOBUF_NATIVE:
            # What is stored is a descriptor set in Base64.
            return [f"{part}: {what}" for part, what in outline(info).items()]
        text = stored_text(info) or ""
    except InvalidSchema:
        text = info.schema.decode(errors="replace")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError):
        return text.removesuffix("\n").split("\n") if text else []
