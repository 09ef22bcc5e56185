"""Digest the content of a definition, by which versions are counted.

Two digests are equal exactly if `formats.identity` of the definitions is. The digest of an Avro definition is a hash over the sorted
hashes of its root and of every named type, each written out by itself (see `avro.schema`), so it can be combined from the
hashes of several files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable
from enum import Enum
from hashlib import blake2b
from typing import Final

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import SPECS, avro, identity
from schemactl.formats.avro.schema import Composition, make_composition

_DIGEST_BYTES: Final = 20


def compute_digest(info: SchemaInfo) -> bytes:
    """Compute the digest of a definition, unless it is known before the definition is read.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    known_digest = get_known_digest(info)
    if known_digest is not None:
        return known_digest
    if is_avro(info.type):
        parts = make_composition(avro.parse_by_any(info.schema))
        return combine_hashes(info.type, frozenset(hash_types(parts).values()))
    return hash_identity(info.type, identity(info))


def get_known_digest(info: SchemaInfo) -> bytes | None:
    """Return the digest of a definition from the history of Git, or None for another definition."""
    # A copy of a definition from the history may have another content.
    return getattr(info, "digest", None)


def compute_text_digest(info: SchemaInfo, ignored_properties: Collection[str] = ()) -> bytes:
    """Compute the digest of everything that a registry stores of a definition, without some of its properties."""
    properties = sorted(item for item in info.properties.items() if item[0] not in ignored_properties)
    texts = [text.encode("utf-8", "surrogatepass") for item in properties for text in item]
    return _hash(info.type.name.encode(), info.schema, *texts)


def is_known_plain(info: SchemaInfo) -> bool:
    """Return whether a definition from the history of Git is known to be plain (see `avro.plain`)."""
    return getattr(info, "is_plain", False)


def is_avro(type_: SchemaType) -> bool:
    """Return whether definitions of the type are in Avro."""
    return SPECS[type_].language == "avro"


def hash_identity(type_: SchemaType, identity_: Hashable) -> bytes:
    """Compute the digest of a definition that is not in Avro from its identity."""
    return _hash(type_.name.encode(), encode_identity(identity_).encode())


def encode_identity(identity_: object) -> str:
    """Encode an identity, or a part of one, as JSON: the same text in every process, as sets are sorted."""
    return json.dumps(_to_json_value(identity_))


def _to_json_value(key: object) -> object:
    match key:
        case tuple():
            return [_to_json_value(part) for part in key]
        case frozenset():
            return ["set", *sorted(map(json.dumps, map(_to_json_value, key)))]
        case bytes():
            return ["bytes", key.hex()]
        case Enum():
            return key.name
    return key


def hash_types(parts: Composition) -> dict[str, bytes]:
    """Hash the root, under "", and each named type."""
    hashes = {"": _hash(b"root", _encode(parts.root.text))}
    for name, part in parts.types.items():
        hashes[name] = _hash(b"type", _encode(name), _encode(part.text))
    return hashes


def combine_hashes(type_: SchemaType, hashes: frozenset[bytes]) -> bytes:
    """Compute the digest of an Avro definition from the hashes of its root and of all its types."""
    return _hash(type_.name.encode(), *sorted(hashes))


def _hash(*parts: bytes) -> bytes:
    """Hash a list: the length of each part, then the part."""
    return blake2b(b"".join([b"%d:%b" % (len(part), part) for part in parts]), digest_size=_DIGEST_BYTES).digest()


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
