"""Definitions from Python classes, and classes from definitions. Only `load_class` runs a user's code: no declaration is read with it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from schemactl import formats
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.extracting.java_options import JavaOptions as JavaOptions
from schemactl.extracting.loading import load_class as load_class
from schemactl.extracting.loading import load_module as load_module
from schemactl.extracting.loading import name_of
from schemactl.formats import protobuf
from schemactl.typed.records import Role, is_record

_NO_OPTIONS: Final = JavaOptions()


def extract(
    kind: type,
    type_: SchemaType | None = None,
    java: JavaOptions = _NO_OPTIONS,
    *,
    release: Release,
    role: Role | None = None,
) -> SchemaInfo:
    """Return the schema that a class stands for: what Pulsar's Python client registers for it, where that client takes it.

    Args:
        kind: a dataclass, a pydantic model, an attrs class, a `pulsar.schema.Record`, or the class of a protobuf message.
        type_: AVRO, JSON or PROTOBUF_NATIVE; None: the first that the class can be.
        java: the options of Java's `SchemaDefinition`; only for classes with annotations.
        release: which definitions a broker of that release takes.
        role: what the class does with messages: a consumer's does not read what it computes itself, and may read a field by another name
            than it writes it; None: both.

    Raises:
        SchemactlError: the class is none of these, or has something that Avro cannot express.
    """
    if _is_message(kind):
        _require_type(kind, "a protobuf message", type_, SchemaType.PROTOBUF_NATIVE)
        wrapper: Any = protobuf.load("definition")
        return SchemaInfo(SchemaType.PROTOBUF_NATIVE, wrapper.of_class(kind))
    if _is_pulsar_record(kind):
        _require_type(kind, "a pulsar.schema.Record", type_, SchemaType.AVRO, SchemaType.JSON)
        if java != _NO_OPTIONS:
            raise SchemactlError(
                f"{name_of(kind)} is a pulsar.schema.Record, whose `required` says what may be null",
                fix="leave out the options of Java's SchemaDefinition",
            )
        # To the byte what AvroSchema and JsonSchema of the client make of it.
        text = json.dumps(_definition_of_record(kind), indent=True)
    elif is_record(kind):
        _require_type(kind, "a class with annotations", type_, SchemaType.AVRO, SchemaType.JSON)
        from schemactl.declare.formatter import laid_out_json
        from schemactl.extracting.avro import definition

        text = laid_out_json(_json(definition(kind, java, role)))
    else:
        raise SchemactlError(
            f"no definition can be taken from {name_of(kind)}",
            fix="name a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or the class of a protobuf message",
        )
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


def _require_type(kind: type, what: str, asked: SchemaType | None, *possible: SchemaType) -> None:
    """Raise SchemactlError if a schema type is asked for that a class, which is `what`, cannot have."""
    if asked and asked not in possible:
        raise SchemactlError(
            f"{name_of(kind)} is {what}, of which no schema of type {asked.name} is made",
            fix=f"--type {' or '.join(each.name for each in possible)}",
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
