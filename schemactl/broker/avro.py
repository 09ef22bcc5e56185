"""Definitions as the Avro inside a broker meets them: Java's text of the bytes, read once, asked in three ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from schemactl.broker.data import SchemaData
from schemactl.broker.exceptions import VALIDATION
from schemactl.broker.words import words
from schemactl.formats.avro import grammar
from schemactl.formats.avro.java import Thrown
from schemactl.formats.avro.parse import parse as parse_text
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.text import InvalidAvro
from schemactl.model import Release

_KEPT: Final = 4096
"""How many definitions, and pairs of them, are remembered: a topic's versions are looked at over and over."""


def parse(data: SchemaData, release: Release) -> Schema:
    """The schema in `data`, whatever its defaults, as validation and checkers read it.

    Raises:
        Thrown: what Java's parser throws.
    """
    return _schema(_read(data.text, release).lenient)


def parse_strictly(data: SchemaData, release: Release) -> Schema:
    """The schema in `data`, as the look-up of an upload reads it.

    Raises:
        Thrown: what Java's parser throws, also for a default that is no value of its field's type.
    """
    return _schema(_read(data.text, release).strict)


def require_readable(*, reader: Schema, writer: Schema, release: Release) -> None:
    """Nothing, when Avro's SchemaValidator in that release lets `reader` read what `writer` wrote.

    Raises:
        Thrown: SchemaValidationException where it does not; what the check itself throws, where it fails.
    """
    said = _can_read(reader, writer, release)
    if said.outcome == "error":
        raise Thrown(said.exception, said.message)
    if said.outcome == "incompatible":
        raise Thrown(VALIDATION, _unable_to_read(reader, writer))


def refusal(schema: Schema) -> Thrown:
    """What a validator that never accepts throws for `schema` (NeverSchemaValidator)."""
    return Thrown(VALIDATION, _unable_to_read(schema, schema))


@dataclass(frozen=True, slots=True)
class _Read:
    """A text as the parser reads it with its defaults validated (`strict`) and without."""

    strict: Schema | Thrown
    lenient: Schema | Thrown


@lru_cache(_KEPT)
def _read(text: str, release: Release) -> _Read:
    try:
        schema = parse_text(text, release, validate_defaults=True)
    except InvalidAvro as bad:
        strict = _thrown(text, bad, release)
    else:
        return _Read(schema, schema)
    try:
        return _Read(strict, parse_text(text, release))
    except InvalidAvro as bad:
        return _Read(strict, _thrown(text, bad, release))


def _thrown(text: str, problem: InvalidAvro, release: Release) -> Thrown:
    return Thrown(problem.exception, words(text, problem, release))


def _schema(found: Schema | Thrown) -> Schema:
    if isinstance(found, Thrown):
        raise found.with_traceback(None)
    return found


@lru_cache(_KEPT)
def _can_read(reader: Schema, writer: Schema, release: Release) -> grammar.GrammarAnswer:
    return grammar.can_read(reader=reader, writer=writer, release=release)


@lru_cache(64)
def _unable_to_read(reader: Schema, writer: Schema) -> str:
    # Long texts, and the same ones for an upload and its test.
    return grammar.unable_to_read(reader=reader, writer=writer)
