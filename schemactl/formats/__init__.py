"""One schema language a module, behind one slot (`formats.base.Format`), and the table that says which type speaks which."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, cast

from schemactl.errors import InvalidSchema
from schemactl.formats import avro, primitive, protobuf_native
from schemactl.formats.avro.text import decode, read
from schemactl.formats.base import Explanation, Format
from schemactl.formats.key_value import KeyValueFormat, split
from schemactl.model import AVRO_DESCRIBED, Release, SchemaInfo, SchemaType
from schemactl.verdicts import Breakage, Counterexample, Incompatibility


def _misreading(*, reader: SchemaInfo, writer: SchemaInfo) -> Counterexample | None:
    from schemactl.formats import wire

    return wire.misreading(reader=reader, writer=writer)


FORMATS: Final[dict[SchemaType, Format]] = dict.fromkeys(SchemaType, cast("Format", primitive))
"""Who answers for a type. A new schema language is one more module, and one more row here."""
FORMATS.update(dict.fromkeys(AVRO_DESCRIBED, avro.FORMAT))
FORMATS[SchemaType.PROTOBUF_NATIVE] = protobuf_native.FORMAT
FORMATS[SchemaType.KEY_VALUE] = KeyValueFormat(FORMATS, _misreading)


def problems(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
    """Every reason not to declare `info` (see Format.problems)."""
    return FORMATS[info.type].problems(info, release)


def identity(info: SchemaInfo) -> Hashable:
    """A key that is equal for two definitions exactly when they are one version (see Format.identity).

    Raises:
        InvalidSchema: the definition does not parse.
    """
    return FORMATS[info.type].identity(info)


def declared(info: SchemaInfo) -> SchemaInfo:
    """`info` as a declaration spells it: of a primitive, clients of several languages register several spellings."""
    return primitive.declared(info)


def resolve(*, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
    """Every reason `reader` may fail on a message of `writer`; both have one type (see Format.resolve).

    PROTOBUF definitions that both know their `.proto` are judged by its wire rules: those are the bytes on the topic.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    reader, writer = on_the_wire(reader, writer)
    return FORMATS[reader.type].resolve(reader=reader, writer=writer)


def is_sure_to_read(*, reader: SchemaInfo, writer: SchemaInfo) -> bool:
    """Whether it is known without `resolve`, and for less, that it finds nothing: of many versions that have much in common.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    reader, writer = on_the_wire(reader, writer)
    return reader.type in AVRO_DESCRIBED and avro.FORMAT.can_read(reader=reader, writer=writer)


def require_newest(info: SchemaInfo) -> None:
    """Nothing, when the newest release accepts the names in `info`; 4.0 accepts some that it does not.

    Raises:
        InvalidSchema: it does not.
    """
    if info.type in AVRO_DESCRIBED:
        avro.parsed(info.schema)
    elif info.type is SchemaType.KEY_VALUE:
        both = split(info)
        require_newest(both.key)
        require_newest(both.value)


def on_the_wire(one: SchemaInfo, other: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """Two definitions of one type as their bytes follow them: PROTOBUF by its `.proto`, where both know it."""
    return (one.proto, other.proto) if one.proto and other.proto else (one, other)


def explain(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
    """`breakage` of `new` with `old` in words for people."""
    if old.type is not new.type:
        return Explanation(
            "",
            f"The schema type was {old.type.name} and is {new.type.name}: the bytes on the topic mean something else "
            "from one message to the next, and no reader decodes both.",
            f"Keep {old.type.name}, or give the new messages a topic of their own.",
        )
    new, old = on_the_wire(new, old)
    return FORMATS[new.type].explain(breakage, new=new, old=old)


def counterexample(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """A message that proves `breakage`, and what its reader gets; None where none can exist, or none was found."""
    if old.type is not new.type:
        from schemactl.formats import wire

        return wire.counterexample(breakage.direction, new=new, old=old)
    new, old = on_the_wire(new, old)
    return FORMATS[new.type].counterexample(breakage, new=new, old=old)


def same_text(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Whether two definitions of one version say the same, doc, aliases and properties included; layout does not count."""
    try:
        return one.type is other.type and one.properties == other.properties and _said(one) == _said(other)
    except RecursionError:
        return one.schema == other.schema


def _said(info: SchemaInfo) -> object:
    if info.type in AVRO_DESCRIBED:
        return read(decode(info.schema))
    if info.type is SchemaType.KEY_VALUE:
        both = split(info)
        return _said(both.key), _said(both.value)
    return identity(info)
