"""The codec of one topic: every version it ever had, read into one schema."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, Final

import pyarrow as pa

from . import payload, version_number
from .batch import Decoded, Encoded, binaries, one_array, reason_array, record_batch, row_of_nulls
from .columns import Options, check_width
from .definition import Definition, KeyValue, Numbers, Version
from .errors import BatchTooLarge, InvalidDefinition, UnknownVersion, Unreadable
from .lanes import Ints, replaced
from .message import (
    KeyValueReader,
    MessageColumns,
    MessageReader,
    MessageWriter,
    NoReader,
    SingleReader,
    layout,
    message_writer,
    null_at,
    read_singles,
)

MAX_BATCH_BYTES: Final = 2**31 - 2**20
"""Of the payloads read at once: Arrow's offsets have 32 bits. Larger batches are read in parts."""

_TOO_LARGE: Final = "the value takes more than the 2 GiB that a column holds"


class Codec:
    """Decodes the messages of a topic, of any version, into one schema, and encodes with any version.

    A message without a version is taken as written with the reader's schema, as Pulsar's consumers do.
    """

    def __init__(
        self,
        versions: Iterable[Version],
        *,
        reader: Definition | KeyValue | None = None,
        options: Options | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        """Take `versions` to read by, and `reader` to read into, by default the newest version's schema.

        Nothing is parsed until it is needed, so that even the codec of an unsupported type can be made.

        Args:
            versions: what messages are read by.
            reader: the schema to read into.
            options: of reading and writing.
            numbers: whose numbers the versions have; None: Git's. A message of another number is rejected, whatever Git has there.

        Raises InvalidDefinition: there is no version, and no reader.
        """
        self.versions = tuple(sorted(versions, key=lambda version: version.number))
        if not self.versions and (reader is None or numbers is None):
            raise InvalidDefinition("a codec needs at least one version")
        self.numbers = numbers
        self.reader = reader if reader is not None else self.versions[-1].schema
        self.options = options if options is not None else Options()
        self._by_number = {version.number: version for version in self.versions}
        self._readers: dict[int | None, MessageReader] = {}
        self._writers: dict[int | None, MessageWriter] = {}
        self._layouts: dict[int | None, MessageColumns] = {}
        self._validators: dict[int, Codec] = {}
        self._read_as: dict[int, Codec] = {}
        self._width_checked: set[int | None] = set()

    def __reduce__(self) -> Any:
        """Pickle the definitions alone: a copy compiles for itself, once for all copies in its process."""
        return _restored, (pickle.dumps((self.versions, self.reader, self.options, self.numbers)),)

    @property
    def columns(self) -> pa.Schema:
        """The columns that messages are read into, all nullable: a record's fields; `key` and `value`; else `value`.

        A record is `value`, too, if a field of it is called `__schemaVersion`, `__error` or `__payload`, in whatever case: what
        DataFrames and tables have beside the values.

        Raises:
            CodecUnavailable: there is no codec for the schema's type.
            InvalidDefinition: Spark and Arrow have no type for the reader's schema, or the columns are too many.
        """
        return self.columns_of(None)

    def columns_of(self, version: int | None) -> pa.Schema:
        """Return the columns of one version's own schema, which `encode_batch` takes; None: the reader's.

        Raises as `columns`, and UnknownVersion: the codec has no such version.
        """
        columns = self._layout(version).columns
        if version not in self._width_checked:
            check_width(columns.types)
            self._width_checked.add(version)
        return columns

    @cached_property
    def separated(self) -> bool:
        """Whether keys travel apart from the payloads, in the reader's schema or in that of any version."""
        return any(
            _is_separated(schema) for schema in (self.reader, *(each.schema for each in self.versions))
        )

    def separates(self, version: int | None) -> bool:
        """Whether keys travel apart from the payloads that are written as `version`; None: as the reader's."""
        return _is_separated(self.schema(version))

    @property
    def is_record(self) -> bool:
        """Whether a value's fields are columns of their own."""
        return self._layout(None).many

    def read_as(self, version: int) -> Codec:
        """Return a codec that reads into the schema of `version`.

        Asked for the version that wrote a message, it gives the value as its producer saw it, every field by its own name,
        as a Pulsar consumer with AUTO_CONSUME does.

        Raises UnknownVersion: the codec has no such version.
        """
        if version not in self._read_as:
            self._read_as[version] = self._reading(version, self.options)
        return self._read_as[version]

    def validate(self, payload: bytes | None, version: int, key: bytes | None = None) -> None:
        """Raise Unreadable unless `payload` is a message of `version` to the last byte.

        For producers that send ready-made bytes, as with AUTO_PRODUCE_BYTES: what they send must be what their version says.

        Raises:
            Unreadable: it is not; `reason` says where and why.
            UnknownVersion: the codec has no such version.
            CodecUnavailable: there is no codec for the schema's type.
        """
        if version not in self._validators:
            options = replace(self.options, strict=True)
            self._validators[version] = self._reading(version, options)
        validator = self._validators[version]
        try:
            validator.decode_one(payload, version, key)
        except Unreadable:
            # Columns hold dates that Python's own types do not.
            payloads, versions = pa.array([payload], pa.binary()), pa.array([version])
            keys = pa.array([key], pa.binary()) if validator.separated else None
            if validator.decode_batch(payloads, versions, keys).errors[0].is_valid:
                raise

    def _reading(self, version: int, options: Options) -> Codec:
        """Return the codec that reads into the schema of `version`."""
        schema = self.schema(version)
        numbers = self.numbers and replace(self.numbers, reader=version)
        return Codec(self.versions, reader=schema, options=options, numbers=numbers)

    def number_written(self, version: int | None = None) -> int | None:
        """Return the number that the messages of `encode_one` and its like carry; None: the reader's schema is that of no version.

        Raises UnknownVersion: the codec has no such version, or the target whose numbers it has has none for the reader's schema.
        """
        if version is not None:
            self.schema(version)
            return version
        if self.numbers is None:
            return next((one.number for one in reversed(self.versions) if one.schema == self.reader), None)
        if self.numbers.reader is None:
            raise UnknownVersion(
                f"{self.numbers.target} has no number for the version that is written: `schemactl apply` registers it there"
            )
        return self.numbers.reader

    def schema(self, version: int | None) -> Definition | KeyValue:
        """Return the schema of a version; None: that which messages are read into. Raises UnknownVersion: the codec has no such version."""
        if version is None:
            return self.reader
        if version not in self._by_number:
            raise UnknownVersion(self._unknown(version))
        return self._by_number[version].schema

    def commit(self, version: int) -> str:
        """Return the commit that brought `version`. Raises UnknownVersion: the codec has no such version."""
        self.schema(version)
        return self._by_number[version].commit

    def decode_one(
        self, payload: bytes | None, version: int | bytes | None = None, key: bytes | None = None
    ) -> Any:
        """Return the value of one message: a dict for a record or a KEY_VALUE, with `datetime` objects for dates and times.

        Args:
            payload: the bytes; None for a message that has none.
            version: the number of the schema it was written with, or Pulsar's eight bytes of it.
            key: the message's key, of a SEPARATED KEY_VALUE.

        Raises:
            Unreadable: the message cannot be decoded; `reason` says where and why.
            CodecUnavailable: there is no codec for the schema's type.
        """
        return self._message_reader(version_number.number(version)).one(payload, key)

    def decode_batch(
        self,
        payloads: pa.Array | pa.ChunkedArray,
        versions: pa.Array | pa.ChunkedArray | None = None,
        keys: pa.Array | pa.ChunkedArray | None = None,
    ) -> Decoded:
        """Decode many messages at once, in order. Bad data never raises: it makes a row of nulls and a reason.

        Args:
            payloads: binary.
            versions: numbers, or Pulsar's eight bytes; null where a message has none.
            keys: the messages' keys, of a SEPARATED KEY_VALUE; null is a null key.

        Raises:
            CodecUnavailable: there is no codec for the schema's type.
            ValueError: keys are needed and not given, or not as many versions or keys as payloads.
            BatchTooLarge: a column would be larger than 2 GiB; `decode_parts` gives more than one.
        """
        parts = list(self.decode_parts(payloads, versions, keys))
        if len(parts) == 1:
            return parts[0]
        try:
            rows = pa.concat_batches([part.rows for part in parts])
        except pa.ArrowInvalid:
            raise BatchTooLarge(
                "a column of the decoded batch takes more than the 2 GiB that it holds: use decode_parts"
            ) from None
        return Decoded(rows, pa.concat_arrays([part.errors for part in parts]))

    def decode_parts(
        self,
        payloads: pa.Array | pa.ChunkedArray,
        versions: pa.Array | pa.ChunkedArray | None = None,
        keys: pa.Array | pa.ChunkedArray | None = None,
    ) -> Iterator[Decoded]:
        """Decode as `decode_batch` does, in as few parts as hold the rows, in order: a column takes 2 GiB at the most."""
        given = (payloads, keys) if keys is not None else (payloads,)
        if len(payloads) <= 1 or all(values.nbytes <= MAX_BATCH_BYTES for values in given):
            try:
                part = self._decode(payloads, versions, keys)
            except pa.ArrowCapacityError:
                if len(payloads) == 1:
                    part = Decoded(row_of_nulls(self.columns), pa.array([_TOO_LARGE]))
                else:
                    part = None
            if part is not None:
                yield part
                return
        middle = len(payloads) // 2
        for start, length in ((0, middle), (middle, len(payloads) - middle)):
            yield from self.decode_parts(
                payloads.slice(start, length),
                None if versions is None else versions.slice(start, length),
                None if keys is None else keys.slice(start, length),
            )

    def _decode(self, payloads: Any, versions: Any, keys: Any) -> Decoded:
        columns = self.columns
        for name, given in (("versions", versions), ("keys", keys)):
            if given is not None and len(given) != len(payloads):
                raise ValueError(f"{len(payloads)} payloads have {len(given)} {name}: give as many of each")
        payloads = binaries(payloads)
        keys = None if keys is None else binaries(keys)
        if versions is None:
            versions = pa.nulls(len(payloads), pa.int64())
        versions, reasons = version_number.numbers(one_array(versions))
        arrays, wrong = self._by_version(payloads, versions, keys)
        # What has no version was read as if it had the reader's: that says nothing where its version is damaged.
        arrays = [null_at(column, reasons) for column in arrays]
        reasons = wrong | reasons
        rows = record_batch(arrays, columns, len(payloads))
        return Decoded(rows, reason_array(reasons, len(payloads)))

    def encode_one(self, value: Any, version: int | None = None) -> bytes | None:
        """Return the payload of a value in the form that decoding gives; None only for the null value of a SEPARATED KEY_VALUE.

        Args:
            value: what to write.
            version: the number of the schema to write it with; None: the reader's.

        Raises:
            Unwritable: the value does not fit the schema; `reason` says where and why.
            UnknownVersion: the codec has no such version.
            CodecUnavailable: there is no codec for the schema's type.
        """
        return self._message_writer(version).payload(value)

    def encode_key(self, value: Any, version: int | None = None) -> bytes | None:
        """Return the message's key for a value of a SEPARATED KEY_VALUE; None where the key is null, or travels in the payload.

        Raises as `encode_one`.
        """
        return self._message_writer(version).key(value)

    def encode_batch(self, rows: pa.RecordBatch, version: int | None = None) -> Encoded:
        """Encode rows that have the columns of that version. A row that does not fit has no payload, but a reason.

        Raises:
            UnknownVersion: the codec has no such version.
            CodecUnavailable: there is no codec for the schema's type.
            BatchTooLarge: the payloads take more than 2 GiB; `encode_parts` gives them in more than one part.
            ValueError: a value, or a key and a value, come in other columns. (A record's missing fields have their defaults.)
        """
        encoded = next(self.encode_parts(rows, version))
        if len(encoded.payloads) < rows.num_rows:
            raise BatchTooLarge("the payloads take more than the 2 GiB that a column holds: use encode_parts")
        return encoded

    def encode_parts(self, rows: pa.RecordBatch, version: int | None = None) -> Iterator[Encoded]:
        """Encode as `encode_batch` does, in as few parts as hold the payloads, in order: a column takes 2 GiB at the most."""
        columns, flat = self._layout(version)
        if set(rows.schema.names) == set(columns.names):
            rows = rows.select(columns.names)
        elif not flat or isinstance(self.schema(version), KeyValue):
            raise ValueError(
                f"expected the columns {', '.join(columns.names)}, found {', '.join(rows.schema.names)}"
            )
        writer = self._message_writer(version)
        waiting = [rows]
        while waiting:
            part = waiting.pop()
            count = part.num_rows
            try:
                payloads, keys, reasons = writer.batch(part)
            except pa.ArrowCapacityError:
                if count > 1:
                    middle = count // 2
                    waiting += [part.slice(middle), part.slice(0, middle)]
                    continue
                payloads, reasons = pa.nulls(1, pa.binary()), {0: _TOO_LARGE}
                keys = payloads if self.separates(version) else None
            yield Encoded(payloads, keys, reason_array(reasons, count))

    def _message_reader(self, version: int | None) -> MessageReader:
        if version is not None and version not in self._by_number:
            # Not kept: damaged messages may name any number.
            return NoReader(self._unknown(version), tuple(self._layout(None).columns.types))
        if version not in self._readers:
            self._readers[version] = self._make_reader(version)
        return self._readers[version]

    def _make_reader(self, version: int | None) -> MessageReader:
        types = tuple(self._layout(None).columns.types)
        writer = self.reader if version is None else self._by_number[version].schema
        try:
            match writer, self.reader:
                case Definition(), Definition():
                    return SingleReader(
                        payload.reading(writer, self.reader, self.options), self._layout(None).many
                    )
                case KeyValue(), KeyValue():
                    key = payload.reading(writer.key, self.reader.key, self.options)
                    value = payload.reading(writer.value, self.reader.value, self.options)
                    return KeyValueReader(key, value, writer.encoding, self.options.strict)
        except InvalidDefinition as error:
            return NoReader(f"version {version}: {error}", types)
        return NoReader(
            f"version {version} is {_kind(writer)}, which cannot be read as {_kind(self.reader)}", types
        )

    def _message_writer(self, version: int | None) -> MessageWriter:
        if version not in self._writers:
            self.number_written(version)
            self._writers[version] = message_writer(
                self.schema(version), self.options, flat=self._layout(version).many
            )
        return self._writers[version]

    def _layout(self, version: int | None) -> MessageColumns:
        if version not in self._layouts:
            self._layouts[version] = layout(self.schema(version), self.options)
        return self._layouts[version]

    def _unknown(self, version: int) -> str:
        if self.numbers is None:
            first, last = self.versions[0].number, self.versions[-1].number
            return f"schema version {version} is not in the codec ({first} to {last}): generate it again"
        target = self.numbers.target
        if version in self.numbers.unreadable:
            return f"schema version {version} cannot be read: {self.numbers.unreadable[version]}"
        known = (*self._by_number, *self.numbers.unreadable)
        span = f"{min(known)} to {max(known)}" if known else "there are none"
        return (
            f"schema version {version} is not a version of {target} that Git knows ({span}): `schemactl drift --target "
            f"{target}` shows what it is"
        )

    def _by_version(
        self, payloads: pa.BinaryArray, versions: pa.Int64Array, keys: pa.BinaryArray | None
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """Return the columns, each version's rows decoded together and put back in order."""
        groups = version_number.grouped(versions)
        if len(groups) == 1:
            return self._message_reader(groups[0][0]).batch(payloads, keys)
        together = read_singles([(self._message_reader(number), rows) for number, rows in groups], payloads)
        if together is not None:
            return together
        parts: list[list[tuple[Ints, pa.Array]]] = [[] for _ in self.columns]
        reasons: dict[int, str] = {}
        for number, rows in groups:
            index = pa.array(rows)
            reader = self._message_reader(number)
            columns, wrong = reader.batch(payloads.take(index), None if keys is None else keys.take(index))
            for part, column in zip(parts, columns, strict=True):
                part.append((rows, column))
            reasons |= {int(rows[at]): reason for at, reason in wrong.items()}
        blank = [pa.nulls(len(payloads), kind) for kind in self.columns.types]
        return [replaced(column, part) for column, part in zip(blank, parts, strict=True)], reasons


@lru_cache(maxsize=8)
def _restored(state: bytes) -> Codec:
    """Kept, because a worker of Spark is handed the codec anew with each task."""
    versions, reader, options, numbers = pickle.loads(state)  # noqa: S301  from `Codec.__reduce__`, inside another pickle
    return Codec(versions, reader=reader, options=options, numbers=numbers)


def _is_separated(schema: Definition | KeyValue) -> bool:
    return isinstance(schema, KeyValue) and schema.encoding == "SEPARATED"


def _kind(schema: Definition | KeyValue) -> str:
    return schema.type if isinstance(schema, Definition) else "KEY_VALUE"
