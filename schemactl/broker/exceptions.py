"""The Java exceptions of a broker's registry: the class decides the answer, the text is its message."""

from __future__ import annotations

from typing import Final

from schemactl.core.findings import Answer, Outcome
from schemactl.formats.avro.schema import JavaException

INCOMPATIBLE: Final = "IncompatibleSchemaException"
INVALID: Final = "InvalidSchemaDataException"
NOT_EXIST: Final = "NotExistSchemaException"
SERIALIZATION: Final = "SchemaSerializationException"
PARSE: Final = "SchemaParseException"
VALIDATION: Final = "SchemaValidationException"
ILLEGAL_ARGUMENT: Final = "IllegalArgumentException"
NULL_POINTER: Final = "NullPointerException"
IO: Final = "IOException"
"""Stands for every exception of Jackson's: the broker treats them alike."""

_PACKAGES: Final = {
    "AvroRuntimeException": "org.apache.avro",
    "AvroTypeException": "org.apache.avro",
    PARSE: "org.apache.avro",
    VALIDATION: "org.apache.avro",
    "TracingAvroTypeException": "org.apache.avro.path",
    SERIALIZATION: "org.apache.pulsar.client.api",
    "JsonSyntaxException": "com.google.gson",
    "BufferUnderflowException": "java.nio",
}
"""Where an exception lives; java.lang when it is not here."""

_OUTCOMES: Final = {INCOMPATIBLE: Outcome.INCOMPATIBLE, INVALID: Outcome.INVALID}

_ERRORS: Final = frozenset({"StackOverflowError", "OutOfMemoryError"})
"""Errors in Java's sense: `catch (Exception e)` does not hold them."""


def answer(thrown: JavaException) -> Answer:
    """Return what the registry answers when `thrown` reaches its caller."""
    outcome = _OUTCOMES.get(thrown.exception, Outcome.ERROR)
    return Answer(outcome, None, thrown.message, thrown.exception)


def is_error(thrown: JavaException) -> bool:
    """Whether it is a java.lang.Error."""
    return thrown.exception in _ERRORS


def shown(thrown: JavaException) -> str:
    """Return what Java's Throwable.toString does: the full class name, and the message if there is one."""
    name = f"{_PACKAGES.get(thrown.exception, 'java.lang')}.{thrown.exception}"
    return f"{name}: {thrown.message}" if thrown.message else name


def incompatible(message: str) -> JavaException:
    """Return the registry's own "no"."""
    return JavaException(INCOMPATIBLE, message)


def invalid(message: str) -> JavaException:
    """Return the registry's answer to data that is not a definition of its type."""
    return JavaException(INVALID, message)
