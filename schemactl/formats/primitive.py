"""The types without a definition: their wire form is fixed by Pulsar, so each reads only itself.

Sources: the codecs under `org.apache.pulsar.client.impl.schema` (StringSchema, IntSchema, TimestampSchema, ...) and
the broker's `PrimitiveSchemaDataValidator` and `StringSchemaDataValidator`.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Final

from schemactl.errors import InvalidSchema
from schemactl.formats.base import Explanation
from schemactl.model import CLIENT_SIDE, WITHOUT_SCHEMA, Release, SchemaInfo, SchemaType
from schemactl.verdicts import Breakage, Counterexample, Incompatibility

CHARSET: Final = "__charset"
"""The property of a STRING schema that names its Java charset; absent means UTF-8 (StringSchema)."""

_PYTHON_NULL: Final = b"null"
"""What the Python client sends as the definition of a STRING schema (`json.dumps(None)`)."""


def problems(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
    """Every reason not to declare `info`: a type that is never stored, data where there is none, an unknown charset."""
    if info.type in WITHOUT_SCHEMA:
        yield InvalidSchema(
            f"{info.type.name} means a topic without schema; an upload of it would lock the topic for every typed client",
            fix="leave `schema` away",
        )
    elif info.type in CLIENT_SIDE:
        yield InvalidSchema(
            f"{info.type.name} exists only inside a client and is never stored",
            fix="declare the type of the messages themselves",
        )
    elif info.type is SchemaType.EXTERNAL:
        if release is Release.R4_0:
            yield InvalidSchema("EXTERNAL exists from Pulsar 4.2 on; this project speaks of 4.0")
    elif info.schema and not (info.type is SchemaType.STRING and info.schema == _PYTHON_NULL):
        yield InvalidSchema(
            f"{info.type.name} has no definition, but {len(info.schema)} bytes are given",
            fix="leave the definition away",
        )
    if info.type is SchemaType.STRING and _codec(info) is None:
        yield InvalidSchema(
            f"{info.properties[CHARSET]!r} is not a charset that Java and Python know",
            fix="write UTF-8, US-ASCII, ISO-8859-1 or UTF-16, or leave it away for UTF-8",
        )


def identity(info: SchemaInfo) -> Hashable:
    """Type and bytes, as the broker compares them: STRING from Java (empty) and from Python (`null`) are two versions."""
    return info.type, info.schema


def declared(info: SchemaInfo) -> SchemaInfo:
    """`info` as a declaration spells it: a STRING without definition, and without the charset that all have by default.

    The broker takes exactly two texts for a STRING: none, which the clients for Java, Go, C++, Node.js and .NET send, and
    `null`, which the Python client sends. .NET always names the charset. All other primitives have one spelling.
    """
    if (
        info.type is not SchemaType.STRING
        or info.schema not in (b"", _PYTHON_NULL)
        or charset(info) != "utf-8"
    ):
        return info
    others = {key: value for key, value in info.properties.items() if key != CHARSET}
    return replace(info, schema=b"", properties=others)


def resolve(*, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
    """Nothing, but for two STRING schemas whose charsets differ: Pulsar's reader uses its own, never the writer's."""
    if reader.type is not SchemaType.STRING:
        return
    ours, theirs = charset(reader), charset(writer)
    if ours == theirs or (theirs == "ascii" and _extends_ascii(ours)):
        return
    yield Incompatibility(
        "STRING_CHARSET_CHANGED",
        "",
        f"reader charset: {reader.properties.get(CHARSET, 'UTF-8')} not compatible with "
        f"writer charset: {writer.properties.get(CHARSET, 'UTF-8')}",
    )


def explain(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
    """A changed charset, in words for people."""
    before, after, reader, writer = (
        info.properties.get(CHARSET, "UTF-8") for info in (old, new, *_ordered(breakage, new=new, old=old))
    )
    place = f"/properties/{CHARSET}"
    return Explanation(
        "",
        f"Version {breakage.against} says {before}, the new schema {after}. Pulsar compares no properties, so the registry "
        f"accepts this and stores nothing; a reader decodes with its own charset, {reader}, what was written in {writer}.",
        f"Keep {before}, or give the new messages a topic of their own.",
        place,
        place if breakage.direction == "old_reads_new" else None,
    )


def counterexample(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """A text of one letter that comes out as another; None where Python has no codec of the name."""
    reader, writer = (charset(info) for info in _ordered(breakage, new=new, old=old))
    for letter in "éß€A":
        try:
            data = letter.encode(writer)
            result = data.decode(reader, "replace")
        except (LookupError, UnicodeEncodeError):
            continue
        if result != letter:
            return Counterexample(
                json.dumps(letter, ensure_ascii=False),
                data,
                f"reads {json.dumps(result, ensure_ascii=False)}",
            )
    return None


def _ordered(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """Reader and writer."""
    return (old, new) if breakage.direction == "old_reads_new" else (new, old)


def charset(info: SchemaInfo) -> str:
    """The charset of a STRING schema under Python's name for it; a name that Python does not know stays as it is."""
    return _codec(info) or info.properties[CHARSET]


def _codec(info: SchemaInfo) -> str | None:
    try:
        return codecs.lookup(info.properties.get(CHARSET, "UTF-8")).name
    except (LookupError, ValueError):
        return None


def _extends_ascii(charset: str) -> bool:
    text = bytes(range(128))
    try:
        return text.decode(charset) == text.decode("ascii")
    except (LookupError, UnicodeDecodeError):
        return False
