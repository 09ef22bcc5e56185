"""Read a message with another schema as Java does."""

from __future__ import annotations

from dataclasses import dataclass

from schemactl.core.schema import Release
from schemactl.formats.avro.alias_renaming import apply_aliases
from schemactl.formats.avro.datum_encoding import Datum, Tokens
from schemactl.formats.avro.defaults import encode_default
from schemactl.formats.avro.grammar_symbols import Mark
from schemactl.formats.avro.resolving_grammar import Likeness, Resolution, compare_leaves
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    JavaException,
    Map,
    Record,
    Schema,
    Union,
    children,
)


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """A place in a message where its reader throws.

    Attributes:
        exception: the simple class name of the Java exception.
        message: its message.
        tokens: the tokens to the place in the writer's message: field names, branch indices, `items`, `values`.
    """

    exception: str
    message: str
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class LostValue:
    """A value that the reader of a message replaces by a default.

    An alias of `field` names `source`, but Java searches the aliases of fields only under their record's name.

    Attributes:
        field: the reader's field, read as its default.
        source: the writer's field with the value.
        value: the written value.
        tokens: the tokens to the record, as in ReadFailure.
    """

    field: Field
    source: Field
    value: Datum
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class MessageReading:
    """The result of reading one message.

    Attributes:
        failures: the places where the reader fails, in the order of reading; empty for a readable message. Java stops at the
            first; it would stop at the next if the ones before were repaired.
        lost_values: the values that the reader replaces by a default in a readable message.
    """

    failures: list[ReadFailure]
    lost_values: list[LostValue]

    def add_failure(self, message: str, tokens: Tokens) -> None:
        """Add a place where the reader fails by Avro's own rules."""
        self.failures.append(ReadFailure("AvroTypeException", message, tokens))


class Unclear(Exception):
    """It takes too much work to find out whether a message is readable."""


class DatumReader:
    """A reader of messages of one schema with another, like GenericDatumReader in the newest release."""

    def __init__(self, *, writer: Schema, reader: Schema) -> None:
        self._reader = reader
        self._likeness = Likeness()
        self._resolution = Resolution(Release.R5_0, reader)
        self._default_errors: dict[Field, JavaException | None] = {}
        self._writer: Schema | JavaException
        try:
            self._writer = apply_aliases(writer=writer, reader=reader, release=Release.R5_0)
        except JavaException as exception:
            self._writer = exception

    def read(self, datum: Datum) -> MessageReading:
        """Read a message of the writer.

        An exception that Java throws before it reads is the only failure, without tokens.

        Raises:
            Unclear: if it takes too much work to find out what Java does.
        """
        reading = MessageReading([], [])
        try:
            if isinstance(self._writer, JavaException):
                raise self._writer
            self._read(datum, self._writer, self._reader, reading, ())
        except JavaException as exception:
            if self._resolution.is_exhausted:
                raise Unclear from None
            return MessageReading([ReadFailure(exception.exception, exception.message, ())], [])
        return MessageReading(reading.failures, []) if reading.failures else reading

    def _read(self, datum: Datum, writer: Schema, reader: Schema, reading: MessageReading, tokens: Tokens) -> None:
        """Read one value, in the order and with the choices of Resolver and ResolvingDecoder."""
        if isinstance(writer, Union):
            match = reader
            if isinstance(reader, Union) and self._likeness.are_alike(writer, reader):
                match = reader.branches[datum.branch]
            branch = writer.branches[datum.branch]
            self._read(datum.value, branch, match, reading, (*tokens, datum.branch))
        elif isinstance(reader, Union):
            reader_branch = self._resolution.choose_branch(writer=writer, reader=reader)
            if reader_branch is None:
                reading.add_failure(f"Found {writer.full_name}, expecting union", tokens)
            else:
                self._read(datum, writer, reader_branch, reading, tokens)
        elif isinstance(writer, Record) and isinstance(reader, Record):
            self._read_record(datum, writer, reader, reading, tokens)
        elif isinstance(writer, Array | Map) and writer.type == reader.type:
            (writer_item,), (reader_item,) = children(writer), children(reader)
            items, token = (datum, "items") if isinstance(writer, Array) else (datum.values(), "values")
            for item in items:
                self._read(item, writer_item, reader_item, reading, (*tokens, token))
        elif compare_leaves(writer, reader) is Mark.ERROR:
            reading.add_failure(f"Found {writer.full_name}, expecting {reader.full_name}", tokens)
        elif isinstance(reader, Enum) and datum not in reader.symbols and reader.default is None:
            reading.add_failure(f"No match for {datum}", tokens)

    def _read_record(
        self, datum: Datum, writer: Record, reader: Record, reading: MessageReading, tokens: Tokens
    ) -> None:
        for field in reader.fields:
            if field.name in writer.fields_by_name:
                continue
            if field.default is NO_DEFAULT:
                message = f"Found {writer.full_name}, expecting {reader.full_name}, missing required field {field.name}"
                reading.add_failure(message, tokens)
                continue
            exception = self._check_default(field)
            if exception:
                reading.failures.append(ReadFailure(exception.exception, exception.message, tokens))
            unused_aliases = (alias for alias in field.aliases if alias not in reader.fields_by_name)
            source = next(filter(None, map(writer.fields_by_name.get, unused_aliases)), None)
            if source:
                # Aliases may have renamed the writer's fields, so the datum has other names.
                value = [*datum.values()][writer.fields.index(source)]
                reading.lost_values.append(LostValue(field, source, value, tokens))
        for field, value in zip(writer.fields, datum.values(), strict=True):
            match = reader.fields_by_name.get(field.name)
            if match is not None:
                self._read(value, field.schema, match.schema, reading, (*tokens, field.name))

    def _check_default(self, field: Field) -> JavaException | None:
        """Return the exception of Java on filling in the default of a field that the writer lacks, or None."""
        if field not in self._default_errors:
            try:
                encoding = encode_default(field, Release.R5_0)
                self._default_errors[field] = encoding.unreadable if encoding else None
            except JavaException as exception:
                self._default_errors[field] = exception
        return self._default_errors[field]
