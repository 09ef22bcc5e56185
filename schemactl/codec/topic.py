"""`Codec` decodes every version of a topic into one schema, in batches and as rows of JSON, and counts what it decodes.

Clients before 2.4.0 sent 64 bytes, of which the first eight count (BookkeeperSchemaStorage.versionFromBytes).
"""

from __future__ import annotations

import base64
import decimal
import math
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import message
from .arrow_types import Options, check_width, to_numbers
from .byte_batch import Ints, replace_rows, to_binary_array
from .definition import (
    BatchTooLarge,
    Definition,
    InvalidDefinition,
    KeyValue,
    Numbers,
    UnknownVersion,
    Unreadable,
    Version,
)
from .key_value import KeyValueReader, mask_rows
from .message import (
    MessageColumns,
    MessageReader,
    MessageWriter,
    NoReader,
    SingleReader,
    layout,
    message_writer,
    read_singles,
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded batch.

    Attributes:
        rows: one row a message, in order; all columns null where the message cannot be read.
        errors: the reason for each such row, null for the others.
    """

    rows: pa.RecordBatch
    errors: pa.StringArray


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded batch.

    Attributes:
        payloads: one a row; null where the value is (SEPARATED), or where the row cannot be written.
        keys: of a SEPARATED KEY_VALUE, else None.
        errors: the reason for each row that cannot be written, null for the others.
    """

    payloads: pa.BinaryArray
    keys: pa.BinaryArray | None
    errors: pa.StringArray


def combine_chunks_of(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values in one piece."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def to_binaries(values: pa.Array | pa.ChunkedArray) -> pa.BinaryArray:
    """Return payloads or keys, however they came, as binary. Raises pa.ArrowCapacityError: they are more than one array holds."""
    whole = combine_chunks_of(values)
    if pa.types.is_large_binary(whole.type) or pa.types.is_large_string(whole.type):
        return to_binary_array(whole)
    try:
        return whole if whole.type == pa.binary() else whole.cast(pa.binary())
    except pa.ArrowInvalid:
        # Dictionary-encoded ones are longer than they look.
        raise pa.ArrowCapacityError("more than 2 GiB") from None


def record_batch(arrays: list[pa.Array], columns: pa.Schema, count: int) -> pa.RecordBatch:
    """Return the columns, of so many rows."""
    if not arrays:
        # A record without fields has rows all the same.
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def make_null_row(columns: pa.Schema) -> pa.RecordBatch:
    """Return one row of these columns, all null."""
    return record_batch([pa.nulls(1, kind) for kind in columns.types], columns, 1)


def make_reason_array(reasons: dict[int, str], count: int) -> pa.StringArray:
    """Return the reason for each row that has one, null for the others."""
    if not reasons:
        return pa.nulls(count, pa.string())
    return pa.array([reasons.get(row) for row in range(count)], pa.string())


# The number of the schema that a message was written with, as Pulsar sends it: eight bytes, big-
# endian.


SIZES: Final = (8, 64)
"""Of a version in bytes."""

ODD_SIZE: Final = "a schema version of {} bytes: expected 8, or none"
"""Why a version of another size is none."""


def number(version: int | bytes | None) -> int | None:
    """Return the number in a message's schema version; None where the message has none. Raises Unreadable: the bytes are no version."""
    if not isinstance(version, bytes | bytearray):
        return version
    if not version:
        return None
    if len(version) not in SIZES:
        raise Unreadable(ODD_SIZE.format(len(version)))
    return int.from_bytes(version[:8], "big", signed=True)


def numbers(versions: pa.Array) -> tuple[pa.Int64Array, dict[int, str]]:
    """Return the numbers in many schema versions, null where there is none, and the reason for each that is no version."""
    if pa.types.is_dictionary(versions.type):
        versions = versions.dictionary_decode()
    if pa.types.is_integer(versions.type) or pa.types.is_null(versions.type):
        # A number beyond 63 bits becomes a negative one, which is no version either.
        return versions.cast(pa.int64(), safe=False), {}
    versions = versions.cast(pa.binary())
    sizes = np.asarray(pc.fill_null(pc.binary_length(versions), 0))
    good = np.isin(sizes, SIZES)
    found = np.zeros(len(versions), np.int64)
    if good.any():
        first = pc.binary_slice(versions.filter(pa.array(good)), 0, 8)
        found[good] = np.frombuffer(first.buffers()[2], ">i8")[: len(first)]
    odd = np.flatnonzero(~good & (sizes != 0))
    return pa.array(found, mask=~good), {int(row): ODD_SIZE.format(sizes[row]) for row in odd}


def group_rows(numbers: pa.Int64Array) -> list[tuple[int | None, Ints]]:
    """Return the distinct numbers, each with its rows in order; None stands for those that are null. At least one group."""
    rows = np.flatnonzero(np.asarray(numbers.is_valid())) if numbers.null_count else np.arange(len(numbers))
    values = np.asarray(numbers.drop_null())
    groups: list[tuple[int | None, Ints]] = []
    if len(values):
        lowest = int(values.min())
        found: Ints | None = None
        codes = values - lowest
        if int(values.max()) - lowest < 2**16:
            # Short codes are sorted by digits, many times as fast.
            codes = codes.astype(np.uint16)
        else:
            found, codes = np.unique(values, return_inverse=True)
        order = rows.take(np.argsort(codes, kind="stable"))
        counts = np.bincount(codes)
        bounds = np.cumsum(counts)
        for code in np.flatnonzero(counts).tolist():
            number = lowest + code if found is None else int(found[code])
            groups.append((number, order[bounds[code] - counts[code] : bounds[code]]))
    if numbers.null_count or not groups:
        groups.append((None, np.flatnonzero(np.asarray(numbers.is_null()))))
    return groups


# Records of any version as text


class GenericRecord(dict[str, Any]):
    """A record of any version: a dict whose fields are attributes, too, where dicts have none of that name.

    `GenericRecord(id="a", lines=[])` builds one, which a producer takes as it takes a dict.

    Attributes:
        schema_version: the number of the version that it was written with; None: no message brought it.
    """

    schema_version: int | None = None

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the record has no field {name}: it has {', '.join(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def generic(value: Any) -> Any:
    """Return the value, its records as GenericRecords."""
    if isinstance(value, dict):
        return GenericRecord((name, generic(held)) for name, held in value.items())
    if isinstance(value, list):
        return [generic(held) for held in value]
    return value


# The codec


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
        return any(_is_separated(schema) for schema in (self.reader, *(each.schema for each in self.versions)))

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

    def decode_one(self, payload: bytes | None, version: int | bytes | None = None, key: bytes | None = None) -> Any:
        """Return the value of one message: a dict for a record or a KEY_VALUE, with `datetime` objects for dates and times.

        Args:
            payload: the bytes; None for a message that has none.
            version: the number of the schema it was written with, or Pulsar's eight bytes of it.
            key: the message's key, of a SEPARATED KEY_VALUE.

        Raises:
            Unreadable: the message cannot be decoded; `reason` says where and why.
            CodecUnavailable: there is no codec for the schema's type.
        """
        return self._message_reader(number(version)).one(payload, key)

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
            part: Decoded | None
            try:
                part = self._decode(payloads, versions, keys)
            except pa.ArrowCapacityError:
                part = Decoded(make_null_row(self.columns), pa.array([_TOO_LARGE])) if len(payloads) == 1 else None
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
        payloads = to_binaries(payloads)
        keys = None if keys is None else to_binaries(keys)
        if versions is None:
            versions = pa.nulls(len(payloads), pa.int64())
        versions, reasons = numbers(combine_chunks_of(versions))
        arrays, wrong = self._by_version(payloads, versions, keys)
        # What has no version was read as if it had the reader's: that says nothing where its version is damaged.
        arrays = [mask_rows(column, reasons) for column in arrays]
        reasons = wrong | reasons
        rows = record_batch(arrays, columns, len(payloads))
        return Decoded(rows, make_reason_array(reasons, len(payloads)))

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
            raise ValueError(f"expected the columns {', '.join(columns.names)}, found {', '.join(rows.schema.names)}")
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
            yield Encoded(payloads, keys, make_reason_array(reasons, count))

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
                    return SingleReader(message.reading(writer, self.reader, self.options), self._layout(None).many)
                case KeyValue(), KeyValue():
                    key = message.reading(writer.key, self.reader.key, self.options)
                    value = message.reading(writer.value, self.reader.value, self.options)
                    return KeyValueReader(key, value, writer.encoding, self.options.strict)
        except InvalidDefinition as error:
            return NoReader(f"version {version}: {error}", types)
        return NoReader(f"version {version} is {_kind(writer)}, which cannot be read as {_kind(self.reader)}", types)

    def _message_writer(self, version: int | None) -> MessageWriter:
        if version not in self._writers:
            self.number_written(version)
            self._writers[version] = message_writer(self.schema(version), self.options, flat=self._layout(version).many)
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
        groups = group_rows(versions)
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
        return [replace_rows(column, part) for column, part in zip(blank, parts, strict=True)], reasons


@lru_cache(maxsize=8)
def _restored(state: bytes) -> Codec:
    """Kept, because a worker of Spark is handed the codec anew with each task."""
    versions, reader, options, numbers = pickle.loads(state)  # noqa: S301  from `Codec.__reduce__`, inside another pickle
    return Codec(versions, reader=reader, options=options, numbers=numbers)


def _is_separated(schema: Definition | KeyValue) -> bool:
    return isinstance(schema, KeyValue) and schema.encoding == "SEPARATED"


def _kind(schema: Definition | KeyValue) -> str:
    return schema.type if isinstance(schema, Definition) else "KEY_VALUE"


# Which messages can be read, with one codec or with one that takes another's place; and how many of
# each version.


_ALL: Final = pc.CountOptions(mode="all")


class Count(NamedTuple):
    """The messages of one version.

    Attributes:
        version: its number; None: messages without one.
        messages: how many there are.
        unreadable: how many of them are rejected.
        unreadable_with_approved: how many of those the codec that is compared with cannot read either.
    """

    version: int | None
    messages: int = 0
    unreadable: int = 0
    unreadable_with_approved: int = 0

    def plus(self, more: Count) -> Count:
        """Return the sum of both, under this one's version."""
        return Count(self.version, *(one + other for one, other in zip(self[1:], more[1:], strict=True)))


class DecodingResult(NamedTuple):
    """What reading messages came to, row by row.

    Attributes:
        versions: the numbers of their schemas, null where a message says none.
        reasons: why each is rejected, null where it is read.
        with_approved: why the codec that is compared with rejects those, too; null for all others.
    """

    versions: pa.Array
    reasons: pa.Array
    with_approved: pa.Array

    def counts(self) -> Iterator[Count]:
        """Yield a count for each version."""
        unreadable = (column.is_valid().cast(pa.int64()) for column in (self.reasons, self.with_approved))
        table = pa.table([self.versions, *unreadable], names=["version", "unreadable", "with_approved"])
        sums = table.group_by("version", use_threads=False).aggregate(
            [("version", "count", _ALL), ("unreadable", "sum"), ("with_approved", "sum")]
        )
        return (Count(*row.values()) for row in sums.to_pylist())


def judge(
    codec: Codec, payloads: pa.Array, versions: pa.Array | None, keys: pa.Array | None, against: Codec | None = None
) -> DecodingResult:
    """Return which messages the codec reads, however large their values are, and which of the others `against` reads.

    The other arguments are as for `Codec.decode_batch`, as is what is raised.
    """
    reasons = _reasons(codec, payloads, versions, keys)
    with_approved = pa.nulls(len(payloads), pa.string())
    unreadable = reasons.is_valid()
    if against is not None and unreadable.true_count:
        lost = (None if each is None else each.filter(unreadable) for each in (payloads, versions, keys))
        with_approved = pc.replace_with_mask(with_approved, unreadable, _reasons(against, *lost))
    known = pa.nulls(len(payloads), pa.int64()) if versions is None else numbers(versions)[0]
    return DecodingResult(known, reasons, with_approved)


def summed(counts: Iterable[Count]) -> list[Count]:
    """Return one count for each version."""
    found: dict[int | None, Count] = {}
    for count in counts:
        found[count.version] = found.get(count.version, Count(count.version)).plus(count)
    return [*found.values()]


def _reasons(codec: Codec, payloads: pa.Array, versions: pa.Array | None, keys: pa.Array | None = None) -> pa.Array:
    keys = keys if codec.separated else None
    return pa.concat_arrays([part.errors for part in codec.decode_parts(payloads, versions, keys)])


# Values as JSON


def json_value(value: Any) -> Any:
    """Return a value for people: bytes in base64, dates and times in ISO 8601, decimals as texts, NaN and infinities by name."""
    match value:
        case dict():
            return {str(key): json_value(held) for key, held in value.items()}
        case list() | tuple():
            return [json_value(held) for held in value]
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case decimal.Decimal():
            return format(value, "f")
        case timedelta():
            return f"PT{format(decimal.Decimal(value // timedelta(microseconds=1)).scaleb(-6), 'f')}S"
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def json_rows(
    codec: Codec, payloads: Sequence[bytes | None], version: int, keys: Sequence[bytes | None] | None = None
) -> list[Any]:
    """Return for each message of `version` its value, or `{"error": reason}`.

    Numbers stand for dates (days) and times (microseconds), and a map is a list of its pairs, sorted by key.

    Raises CodecUnavailable, InvalidDefinition: as `Codec.decode_batch`.
    """
    versions = pa.array([version] * len(payloads), pa.int64())
    own_keys = None if keys is None else pa.array(keys, pa.binary())
    decoded = codec.decode_batch(pa.array(payloads, pa.binary()), versions, own_keys)
    rows = decoded.rows.to_struct_array()
    values = rows if codec.is_record else rows.field("value")
    return [
        {"error": reason} if reason is not None else _cell(row, values.type)
        for row, reason in zip(to_numbers(values).to_pylist(), decoded.errors.to_pylist(), strict=True)
    ]


def _cell(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _cell(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return sorted(
            ([json_value(key), _cell(held, kind.item_type)] for key, held in value), key=lambda pair: str(pair[0])
        )
    if pa.types.is_list(kind):
        return [_cell(held, kind.value_type) for held in value]
    return json_value(value)
