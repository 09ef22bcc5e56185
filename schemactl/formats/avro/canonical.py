"""Parsing canonical form and its fingerprints, as Java's SchemaNormalization gives them.

See "Parsing Canonical Form for Schemas" in the Avro specification. The form keeps only what a writer's data depends on:
defaults, aliases, properties, sort order and doc are gone, so equal forms do not mean equal compatibility.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from schemactl.formats.avro.schema import Array, Enum, Fixed, Map, Named, Record, Schema, Union

_EMPTY: Final = 0xC15D213AA4D7A795
"""CRC-64-AVRO of no bytes; also its polynomial."""


def canonical_form(schema: Schema) -> str:
    """The schema as JSON with full names and without whitespace; a named type is written where it first occurs."""
    written: set[str] = set()
    pieces: list[str] = []
    todo: list[Schema | str] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, Named) and node.full_name in written:
            pieces.append(f'"{node.full_name}"')
        else:
            if isinstance(node, Named):
                written.add(node.full_name)
            todo.extend(reversed(list(_written_out(node))))
    return "".join(pieces)


def crc64(data: bytes) -> int:
    """CRC-64-AVRO of `data`, the "Rabin" fingerprint of the specification, as an unsigned number."""
    crc = _EMPTY
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


def fingerprints(form: str) -> tuple[str, str]:
    """CRC-64-AVRO and SHA-256 of a canonical form's UTF-8 bytes, in hex."""
    data = form.encode()
    return f"{crc64(data):016x}", hashlib.sha256(data).hexdigest()


def _written_out(node: Schema) -> Iterator[Schema | str]:
    match node:
        case Array():
            yield '{"type":"array","items":'
            yield node.items
            yield "}"
        case Map():
            yield '{"type":"map","values":'
            yield node.values
            yield "}"
        case Union():
            for index, branch in enumerate(node.branches):
                yield "," if index else "["
                yield branch
            yield "]" if node.branches else "[]"
        case Fixed():
            yield f'{{"name":"{node.full_name}","type":"fixed","size":{node.size}}}'
        case Enum():
            symbols = ",".join(f'"{symbol}"' for symbol in node.symbols)
            yield f'{{"name":"{node.full_name}","type":"enum","symbols":[{symbols}]}}'
        case Record():
            yield f'{{"name":"{node.full_name}","type":"record","fields":['
            for index, field in enumerate(node.fields):
                yield f'{"," if index else ""}{{"name":"{field.name}","type":'
                yield field.schema
                yield "}"
            yield "]}"
        case _:
            yield f'"{node.type}"'


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_EMPTY if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE: Final = _table()
