"""Definitions from Python classes, and classes from definitions. Only `load_class` runs a user's code: no declaration is read with it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from schemactl import formats
from schemactl.errors import SchemactlError
from schemactl.extracting.loading import load_class as load_class
from schemactl.extracting.loading import load_module as load_module
from schemactl.extracting.loading import name_of
from schemactl.model import Release, SchemaInfo, SchemaType
from schemactl.typed.records import is_record


@dataclass(frozen=True, slots=True)
class JavaOptions:
    """The options of Java's `SchemaDefinition` that change a definition.

    Attributes:
        always_allow_null: `withAlwaysAllowNull`: what is an object in Java may be null, with null for its default.
        jsr310: `withJSR310ConversionEnabled`: moments are `timestamp-millis`, and times of day, as always in Java, `time-millis`.
    """

    always_allow_null: bool = False
    jsr310: bool = False


def extract(
    kind: type, type_: SchemaType | None = None, java: JavaOptions | None = None, *, release: Release
) -> SchemaInfo:
    """Return the schema that a class stands for: what Pulsar's Python client registers for it, where that client takes it.

    Args:
        kind: a dataclass, a pydantic model, an attrs class, a `pulsar.schema.Record`, or the class of a protobuf message.
        type_: AVRO, JSON or PROTOBUF_NATIVE; None: the first that the class can be.
        java: its options; only for classes with annotations.
        release: which definitions a broker of that release takes.

    Raises:
        SchemactlError: the class is none of these, or has something that Avro cannot express.
    """
    what = _what(kind)
    ways = "PROTOBUF_NATIVE" if _is_message(kind) else "AVRO or JSON"
    if type_ and type_.name not in ways:
        raise SchemactlError(
            f"{name_of(kind)} is {what}, of which no schema of type {type_.name} is made",
            fix=f"--type {ways}",
        )
    if _is_message(kind):
        wrapper: Any = formats.protobuf_native.load("wrapper")
        return SchemaInfo(SchemaType.PROTOBUF_NATIVE, wrapper.of_class(kind))
    if _is_pulsar_record(kind):
        if java:
            raise SchemactlError(
                f"{name_of(kind)} is {what}, whose `required` says what may be null",
                fix="leave out the options of Java's SchemaDefinition",
            )
        # To the byte what AvroSchema and JsonSchema of the client make of it.
        text = json.dumps(_definition_of_record(kind), indent=True)
    else:
        from schemactl.extracting.avro import definition
        from schemactl.layout.json_layout import laid_out

        text = laid_out(_json(definition(kind, java or JavaOptions())))
    info = SchemaInfo(type_ or SchemaType.AVRO, text.encode())
    for problem in formats.problems(info, release):
        where = f" at {problem.pointer}" if problem.pointer else ""
        raise SchemactlError(
            f"the definition of {name_of(kind)} is not valid{where}: {problem.what}",
            fix=problem.fix or "change the annotation or the default in the class",
        )
    return info


def _json(value: Any) -> str:
    """Return a definition as JSON, with control characters escaped: the bytes of a default are often no text."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\x7f-\xa0\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _definition_of_record(kind: Any) -> Any:
    try:
        return kind.schema()
    # The client raises exceptions of any type for a class that is wrong.
    except Exception as error:  # noqa: BLE001
        raise SchemactlError(f"{name_of(kind)}: Pulsar's client rejects the class: {error}") from None


def _what(kind: type) -> str:
    """Return what sort of class it is, for messages. Raise SchemactlError if no definition can be taken from it."""
    if _is_message(kind):
        return "a protobuf message"
    if _is_pulsar_record(kind):
        return "a pulsar.schema.Record"
    if is_record(kind):
        return "a class with annotations"
    raise SchemactlError(
        f"no definition can be taken from {name_of(kind)}",
        fix="name a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or the class of a protobuf message",
    )


def _is_pulsar_record(kind: type) -> bool:
    return any(
        each.__module__ == "pulsar.schema.definition" and each.__name__ == "Record" for each in kind.__mro__
    )


def _is_message(kind: type) -> bool:
    descriptor = getattr(kind, "DESCRIPTOR", None)
    return (
        hasattr(descriptor, "full_name")
        and hasattr(descriptor, "file")
        and hasattr(kind, "SerializeToString")
    )
