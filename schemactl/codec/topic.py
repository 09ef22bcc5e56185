"""Decode and encode the messages of a topic (`Codec`)."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrow_types import JsonTimes, Options, check_width
from .batches import (
    TOO_LARGE,
    BatchDecoder,
    Decoded,
    Encoded,
    check_lengths,
    make_reason_array,
    make_record_batch,
    to_binary,
)
from .byte_batch import Ints, Mask, replace_rows
from .definition import (
    BatchTooLarge,
    Definition,
    InvalidDefinition,
    KeyValue,
    Numbers,
    TargetVersions,
    UnknownTarget,
    UnknownVersion,
    Unreadable,
    Version,
)
from .key_value import KeyValueDecoder, mask_rows
from .message import (
    MessageColumns,
    MessageDecoder,
    MessageEncoder,
    RejectingDecoder,
    SingleDecoder,
    decode_singles,
    make_columns,
    make_message_encoder,
    make_payload_decoder,
)
from .schema_versions import NO_VERSION, group_rows, parse_version, parse_versions


class Codec(BatchDecoder):
    """Decodes the messages of a topic, of any version, into one schema, and encodes messages of any version.

    A message without a version is decoded as if it were written with the reader's schema, as by Pulsar's consumers.
    """

    def __init__(
        self,
        versions: Iterable[Version],
        *,
        reader: Definition | KeyValue | None = None,
        options: Options | None = None,
        numbers: Numbers | None = None,
        target: str | None = None,
        targets: Mapping[str, TargetVersions | None] | None = None,
        base: Codec | None = None,
        kind: str = "",
    ) -> None:
        """Create a codec without parsing its definitions, so that even codecs of unsupported types can be created.

        Args:
            versions: the versions that messages are written with.
            reader: the schema that messages are decoded into; by default the schema of the newest version.
            options: the options of decoding and encoding.
            numbers: the version numbers of a target; None if the versions have the numbers of Git. A message with another number is
                rejected, even if Git has a version of that number.
            target: the target that the messages are from, by default the target of `numbers`; None if no target was chosen.
            targets: the targets to choose from, each with its versions, or None for those with Git's numbers. As long as none is chosen,
                a message is rejected if its number does not mean the same content on all of them.
            base: the codec without a chosen target, if `target` is a default, which the target of a message overrides.
            kind: the kind of events that is decoded and encoded. The versions are the versions of all kinds; messages of another
                kind are rejected. "" if the topic has one schema; then versions with a kind are of kinds that it no longer declares.

        Raises:
            InvalidDefinition: there are no versions, and `reader` or `numbers` is missing; `reader` is enough for plain bytes.
        """
        self.versions = tuple(sorted(versions, key=lambda version: version.number))
        has_plain_bytes = isinstance(reader, Definition) and reader.type in ("BYTES", "NONE")
        if not self.versions and (reader is None or (numbers is None and not has_plain_bytes)):
            raise InvalidDefinition("a codec needs at least one version")
        self.numbers = numbers
        self.kind = kind
        self.target = numbers.target if numbers else target
        self.targets = targets
        self._base = base
        if reader is None:
            schemas = [version.schema for version in self.versions if version.kind == kind]
            if not schemas:
                raise InvalidDefinition(f"no version is of the kind {kind}")
            reader = schemas[-1]
        self.reader = reader
        self.options = options if options is not None else Options()
        self._by_number = {version.number: version for version in self.versions}
        self._decoders: dict[int | None, MessageDecoder] = {}
        self._encoders: dict[tuple[int | None, JsonTimes], MessageEncoder] = {}
        self._columns: dict[int | None, MessageColumns] = {}
        self._codecs: dict[tuple[int, bool], Codec] = {}
        self._width_checked: set[int | None] = set()
        self._for_target: dict[tuple[str, bool], Codec] = {}

    def __reduce__(self) -> Any:
        """Pickle only the definitions: a process compiles them once for all copies."""
        state = (
            self.versions,
            self.reader,
            self.options,
            self.numbers,
            self.target,
            self.targets,
            self._base,
            self.kind,
        )
        return _restore_codec, (pickle.dumps(state),)

    @property
    def columns(self) -> pa.Schema:
        """The columns that messages are decoded into, all nullable: the fields of a record; `key` and `value`; otherwise `value`.

        A record is also one column `value` if one of its fields is called `__schemaVersion`, `__error` or `__payload`, in upper or lower
        case, because DataFrames and tables have columns of these names.

        Raises:
            CodecUnavailable: there is no codec for the schema's type.
            InvalidDefinition: Spark and Arrow have no type for the reader's schema, or the columns are too many.
        """
        return self.columns_of(None)

    def columns_of(self, version: int | None) -> pa.Schema:
        """Return the columns of a version's own schema, which `encode_batch` takes; None is the reader's schema.

        Raises:
            CodecUnavailable, InvalidDefinition: see `columns`.
            UnknownVersion: the codec has no such version.
        """
        columns = self._make_columns(version).columns
        if version not in self._width_checked:
            check_width(columns.types)
            self._width_checked.add(version)
        return columns

    @cached_property
    def separated(self) -> bool:
        """Whether the reader's schema or the schema of any version, also of a target, is a SEPARATED KEY_VALUE."""
        if self._base is not None and self._base.separated:
            return True
        versions_of_targets = (on_target.versions for on_target in (self.targets or {}).values() if on_target)
        versions = itertools.chain(self.versions, *versions_of_targets)
        return any(_is_separated(schema) for schema in (self.reader, *(version.schema for version in versions)))

    def separates(self, version: int | None) -> bool:
        """Return whether the schema of a version is a SEPARATED KEY_VALUE; None is the reader's schema."""
        return _is_separated(self.schema(version))

    @property
    def is_record(self) -> bool:
        """Whether the fields of a value are columns."""
        return self._make_columns(None).is_flat

    def read_as(self, version: int) -> Codec:
        """Return a codec that decodes into the schema of `version`.

        With the version that a message was written with, it decodes the value as its producer saw it, like a Pulsar consumer with
        AUTO_CONSUME.

        Raises:
            UnknownVersion: the codec has no such version.
        """
        return self._get_codec(version)

    def for_target(self, target: str, *, is_default: bool = False) -> Codec:
        """Return a codec that decodes messages by the version numbers of `target`.

        With `is_default`, another target can be chosen from the codec. Without it, messages of other targets are rejected.

        Raises:
            UnknownTarget: the codec does not know the target, or another target was chosen.
        """
        if target == self.target:
            return self
        if self._base is not None:
            return self._base.for_target(target)
        if self.target is not None:
            raise UnknownTarget(f"the message is from the target {target}, and {self.target} was chosen")
        if not self.targets or target not in self.targets:
            known_targets = ", ".join(self.targets or ()) or "none"
            raise UnknownTarget(f"unknown target {target}: the targets with known version numbers are {known_targets}")
        if (target, is_default) not in self._for_target:
            on_target = self.targets[target]
            self._for_target[target, is_default] = Codec(
                on_target.versions if on_target else self.versions,
                reader=self.reader,
                options=self.options,
                numbers=on_target.numbers if on_target else None,
                target=target,
                base=self if is_default else None,
                kind=self.kind,
            )
        return self._for_target[target, is_default]

    @cached_property
    def _ambiguous(self) -> Mapping[int, str]:
        """The numbers that do not mean the same content on all targets, each with the reason for the rejection of its messages."""
        recorded = {name: on_target for name, on_target in (self.targets or {}).items() if on_target}
        if self.target is not None or not recorded:
            return {}
        versions_by_target = {
            name: {version.number: version for version in on_target.versions} for name, on_target in recorded.items()
        }
        targets_with_git_numbers = [name for name in self.targets or {} if name not in recorded]
        reasons = {}
        for number in sorted({number for name in recorded for number in recorded[name].all_numbers}):
            git = self._by_number.get(number)
            targets_by_meaning: dict[str, list[str]] = {}
            if git is not None:
                targets_by_meaning[f"Git's version {number}"] = [*targets_with_git_numbers]
            is_same = git is not None
            for name, versions in versions_by_target.items():
                if number not in recorded[name].all_numbers:
                    continue
                version = versions.get(number)
                is_same = is_same and version is not None and git is not None and version.schema == git.schema
                targets_by_meaning.setdefault(self._describe_meaning(version), []).append(name)
            if not is_same:
                meanings = "; ".join(
                    f"{meaning} on {', '.join(names)}" if names else f"{meaning} by Git's numbers"
                    for meaning, names in targets_by_meaning.items()
                )
                problem = "means different content on two targets" if git else "is not one of Git's numbers"
                reasons[number] = (
                    f"schema version {number} {problem} ({meanings}): choose the target that the messages are from, "
                    "with for_target or SCHEMACTL_TARGET"
                )
        return reasons

    def _describe_meaning(self, version: Version | None) -> str:
        """Describe a version that a target has at a number; None means that its schema is unknown."""
        if version is None:
            return "unreadable"
        if version.foreign:
            return "a foreign version"
        number = next((git.number for git in self.versions if git.schema == version.schema), None)
        return "another version" if number is None else f"Git's version {number}"

    def validate(self, payload: bytes | None, version: int, key: bytes | None = None) -> None:
        """Check that `payload` is a message of `version` to the last byte, for producers that send bytes (AUTO_PRODUCE_BYTES).

        Raises:
            Unreadable: it is not; `reason` has the place and the problem.
            UnknownVersion: the codec has no such version.
            CodecUnavailable: there is no codec for the schema's type.
        """
        validator = self._get_codec(version, is_strict=True)
        try:
            validator.decode_one(payload, version, key)
        except Unreadable:
            # Columns can have dates and times that Python's own types cannot represent.
            payloads, versions = pa.array([payload], pa.binary()), pa.array([version])
            keys = pa.array([key], pa.binary()) if validator.separated else None
            if validator.decode_batch(payloads, versions, keys).errors[0].is_valid:
                raise

    def _get_codec(self, version: int, *, is_strict: bool = False) -> Codec:
        """Return the codec that decodes into the schema of `version`, which is made once."""
        schema = self.schema(version)
        if (version, is_strict) not in self._codecs:
            options = replace(self.options, strict=True, loses_nanoseconds=True) if is_strict else self.options
            targets = self.targets and {
                name: on_target and on_target.with_reader(schema) for name, on_target in self.targets.items()
            }
            self._codecs[version, is_strict] = Codec(
                self.versions,
                reader=schema,
                options=options,
                numbers=self.numbers and replace(self.numbers, reader=version),
                target=self.target,
                targets=targets,
                kind=self.kind or self._by_number[version].kind,
            )
        return self._codecs[version, is_strict]

    def number_written(self, version: int | None = None) -> int | None:
        """Return the version number of encoded messages, or None if the reader's schema is not the schema of a version.

        Args:
            version: the version that messages are encoded with; None is the reader's schema.

        Raises:
            UnknownVersion: the codec has no such version, the target has no number for the reader's schema, or the number means
                another content on another target and no target was chosen.
        """
        if version is not None:
            self.schema(version)
        elif self.numbers is None:
            numbers = (version.number for version in reversed(self.versions) if version.schema == self.reader)
            version = next(numbers, None)
        else:
            self._require_number_of_reader()
            version = self.numbers.reader
        if version is not None and version in self._ambiguous:
            raise UnknownVersion(self._ambiguous[version])
        return version

    def _require_number_of_reader(self) -> None:
        """Raise UnknownVersion if the target has no number for the reader's schema."""
        if self.numbers is not None and self.numbers.reader is None:
            raise UnknownVersion(
                f"{self.numbers.target} has no number for the version that is written: `schemactl apply` registers it there"
            )

    def schema(self, version: int | None) -> Definition | KeyValue:
        """Return the schema of a version; None is the reader's schema.

        Raises:
            UnknownVersion: the codec has no such version.
        """
        if version is None:
            return self.reader
        if version not in self._by_number:
            raise UnknownVersion(self._explain_unknown_version(version))
        if self.kind and not self._is_of_kind(version):
            raise UnknownVersion(self._explain_other_kind(version))
        return self._by_number[version].schema

    def commit(self, version: int) -> str:
        """Return the commit that added `version`.

        Raises:
            UnknownVersion: the codec has no such version.
        """
        self.schema(version)
        return self._by_number[version].commit

    def decode_one(self, payload: bytes | None, version: int | bytes | None = None, key: bytes | None = None) -> Any:
        """Decode one message: a dict for a record or a KEY_VALUE, with `datetime` objects for dates and times.

        Args:
            payload: the bytes; None for a message without a payload.
            version: the number of the version it was written with, or Pulsar's schema version of eight bytes.
            key: the key of the message, of a SEPARATED KEY_VALUE.

        Raises:
            Unreadable: the message cannot be decoded; `reason` has the place and the problem.
            CodecUnavailable: there is no codec for the schema's type.
        """
        return self._get_decoder(parse_version(version)).decode_one(payload, key)

    def _decode(self, payloads: Any, versions: Any, keys: Any) -> Decoded:
        columns = self.columns
        check_lengths(payloads, versions, keys)
        payloads = to_binary(payloads)
        keys = None if keys is None else to_binary(keys)
        has_versions = versions is not None
        if versions is None:
            versions = pa.nulls(len(payloads), pa.int64())
        versions, version_reasons = parse_versions(versions)
        if self.kind and has_versions and versions.null_count:
            unversioned_rows = np.flatnonzero(np.asarray(versions.is_null())).tolist()
            version_reasons = dict.fromkeys(unversioned_rows, NO_VERSION) | version_reasons

        # The rows of each version are decoded together.
        groups = [(self._get_decoder(number), rows) for number, rows in group_rows(versions)]
        if len(groups) == 1:
            arrays, reasons = groups[0][0].decode_batch(payloads, keys)
        elif (decoded_together := decode_singles(groups, payloads)) is not None:
            arrays, reasons = decoded_together
        else:
            parts: list[list[tuple[Ints, pa.Array]]] = [[] for _ in columns]
            reasons = {}
            for decoder, rows in groups:
                index = pa.array(rows)
                decoded, rejected = decoder.decode_batch(
                    payloads.take(index), None if keys is None else keys.take(index)
                )
                for part, column in zip(parts, decoded, strict=True):
                    part.append((rows, column))
                reasons |= {int(rows[at]): reason for at, reason in rejected.items()}
            nulls = [pa.nulls(len(payloads), column_type) for column_type in columns.types]
            arrays = [replace_rows(column, part) for column, part in zip(nulls, parts, strict=True)]

        # A row with an invalid version was decoded with the reader's schema, so its values have no meaning.
        arrays = [mask_rows(column, version_reasons) for column in arrays]
        reasons |= version_reasons
        batch = make_record_batch(arrays, columns, len(payloads))
        return Decoded(batch, make_reason_array(reasons, len(payloads)))

    def encode_one(
        self, value: Any, version: int | None = None, *, json_times: JsonTimes | None = None
    ) -> bytes | None:
        """Encode a value; the payload is None only for the null value of a SEPARATED KEY_VALUE.

        Args:
            value: a value in the form that `decode_one` returns.
            version: the number of the version to encode with; None is the reader's schema.
            json_times: the form of times in JSON; None is the form in the options.

        Raises:
            Unwritable: the value does not fit the schema; `reason` has the place and the problem.
            UnknownVersion: the codec has no such version.
            CodecUnavailable: there is no codec for the schema's type.
        """
        return self._get_encoder(version, json_times).encode_payload(value)

    def encode_key(
        self, value: Any, version: int | None = None, *, json_times: JsonTimes | None = None
    ) -> bytes | None:
        """Encode the key of a SEPARATED KEY_VALUE; None if the key is null, or if the schema is of another type.

        See `encode_one` for the arguments and errors.
        """
        return self._get_encoder(version, json_times).encode_key(value)

    def encode_batch(
        self, rows: pa.RecordBatch, version: int | None = None, *, json_times: JsonTimes | None = None
    ) -> Encoded:
        """Encode rows with the columns of a version. A row that does not fit the schema has a reason instead of a payload.

        For `json_times` see `encode_one`.

        Raises:
            UnknownVersion: the codec has no such version.
            CodecUnavailable: there is no codec for the schema's type.
            BatchTooLarge: the payloads take more than 2 GiB; `encode_parts` returns several batches.
            ValueError: the columns differ from the columns of the version. (The columns of fields with defaults may be missing.)
        """
        encoded = next(self.encode_parts(rows, version, json_times=json_times))
        if len(encoded.payloads) < rows.num_rows:
            raise BatchTooLarge("the payloads take more than the 2 GiB that a column holds: use encode_parts")
        return encoded

    def encode_parts(
        self, rows: pa.RecordBatch, version: int | None = None, *, json_times: JsonTimes | None = None
    ) -> Iterator[Encoded]:
        """Encode as `encode_batch` does, into as few batches as needed for payloads of at most 2 GiB."""
        columns, is_flat = self.columns_of(version), self._make_columns(version).is_flat
        if set(rows.schema.names) == set(columns.names):
            rows = rows.select(columns.names)
        elif not is_flat or isinstance(self.schema(version), KeyValue):
            raise ValueError(f"expected the columns {', '.join(columns.names)}, found {', '.join(rows.schema.names)}")
        encoder = self._get_encoder(version, json_times)
        remaining = [rows]
        while remaining:
            part = remaining.pop()
            count = part.num_rows
            try:
                payloads, keys, reasons = encoder.encode_batch(part)
            except pa.ArrowCapacityError:
                if count > 1:
                    middle = count // 2
                    remaining += [part.slice(middle), part.slice(0, middle)]
                    continue
                payloads, reasons = pa.nulls(1, pa.binary()), {0: TOO_LARGE}
                keys = payloads if self.separates(version) else None
            yield Encoded(payloads, keys, make_reason_array(reasons, count))

    def _get_decoder(self, version: int | None) -> MessageDecoder:
        if version in self._decoders:
            return self._decoders[version]
        columns, is_flat = self._make_columns(None)
        types = tuple(columns.types)
        # Not cached, because damaged messages may have any number.
        if version is not None and (version in self._ambiguous or version not in self._by_number):
            return RejectingDecoder(self._explain_unknown_version(version), types)
        if version is not None and not self._is_of_kind(version):
            return RejectingDecoder(self._explain_other_kind(version), types)

        decoder: MessageDecoder
        reader_schema = self.reader
        writer_schema = reader_schema if version is None else self._by_number[version].schema
        try:
            match writer_schema, reader_schema:
                case Definition(), Definition():
                    decoder = SingleDecoder(make_payload_decoder(writer_schema, reader_schema, self.options), is_flat)
                case KeyValue(), KeyValue():
                    key = make_payload_decoder(writer_schema.key, reader_schema.key, self.options)
                    value = make_payload_decoder(writer_schema.value, reader_schema.value, self.options)
                    decoder = KeyValueDecoder(key, value, writer_schema.encoding, self.options.strict)
                case _:
                    names = _get_type_name(writer_schema), _get_type_name(reader_schema)
                    reason = f"version {version} is {names[0]}, which cannot be read as {names[1]}"
                    decoder = RejectingDecoder(reason, types)
        except InvalidDefinition as error:
            decoder = RejectingDecoder(f"version {version}: {error}", types)
        self._decoders[version] = decoder
        return decoder

    def _get_encoder(self, version: int | None, json_times: JsonTimes | None) -> MessageEncoder:
        times = json_times or self.options.json_times
        if (version, times) not in self._encoders:
            if version is None:
                self._require_number_of_reader()
            is_flat = self._make_columns(version).is_flat
            options = replace(self.options, json_times=times)
            self._encoders[version, times] = make_message_encoder(self.schema(version), options, is_flat=is_flat)
        return self._encoders[version, times]

    def _make_columns(self, version: int | None) -> MessageColumns:
        if version not in self._columns:
            self._columns[version] = make_columns(self.schema(version), self.options)
        return self._columns[version]

    def find_kind_key(self, version: int) -> str:
        """Return the kind of events of a version, or "" if it is unknown or no kind ever had a record of its name."""
        is_known = version in self._by_number and version not in self._ambiguous
        return self._by_number[version].kind if is_known else ""

    def mask_own_messages(
        self, versions: pa.Array | pa.ChunkedArray | None, count: int, *, with_unknown: bool = True
    ) -> Mask:
        """Return a mask of the messages that this codec is to decode or to reject: all that are not of another kind.

        Args:
            versions: as for `decode_batch`.
            count: the number of messages.
            with_unknown: whether messages without a kind, which are rejected, are among them.
        """
        if not self.kind or versions is None:
            return np.ones(count, bool)
        kinds_by_number = {version.number: self.find_kind_key(version.number) for version in self.versions}
        own_numbers = [number for number, kind in kinds_by_number.items() if kind == self.kind]
        other_numbers = [number for number, kind in kinds_by_number.items() if kind not in ("", self.kind)]
        version_numbers = parse_versions(versions)[0]
        if with_unknown:
            return ~np.asarray(pc.is_in(version_numbers, pa.array(other_numbers, pa.int64())))
        return np.asarray(pc.is_in(version_numbers, pa.array(own_numbers, pa.int64())))

    def _is_of_kind(self, version: int) -> bool:
        return self._by_number[version].kind == self.kind

    def _explain_other_kind(self, version: int) -> str:
        """Return the reason to reject a message of another kind than the codec's."""
        kind = self._by_number[version].kind
        if not self.kind:
            return f"schema version {version} is of the kind {kind}, which the topic no longer declares: read_as({version}) reads it"
        if kind:
            return f"schema version {version} is of the kind {kind}, and not {self.kind}"
        return f"schema version {version} does not belong to any kind of events that was ever declared"

    def _explain_unknown_version(self, version: int) -> str:
        if version in self._ambiguous:
            return self._ambiguous[version]
        if self.numbers is None:
            if not self.versions:
                return f"schema version {version} is unknown: the topic has no schema"
            first, last = self.versions[0].number, self.versions[-1].number
            return f"schema version {version} is not in the codec ({first} to {last}): generate it again"
        target = self.numbers.target
        if version in self.numbers.unreadable:
            return f"schema version {version} cannot be read: {self.numbers.unreadable[version]}"
        numbers = (*self._by_number, *self.numbers.unreadable)
        span = f"{min(numbers)} to {max(numbers)}" if numbers else "there are none"
        return (
            f"schema version {version} is not a version of {target} that Git knows ({span}): `schemactl drift --target "
            f"{target}` shows what it is"
        )


@lru_cache(maxsize=8)
def _restore_codec(state: bytes) -> Codec:
    """Unpickle a codec, once for all tasks of a Spark worker, because each task sends the codec again."""
    versions, reader, options, numbers, target, targets, base, kind = pickle.loads(state)  # noqa: S301  from `Codec.__reduce__`, inside another pickle
    return Codec(
        versions, reader=reader, options=options, numbers=numbers, target=target, targets=targets, base=base, kind=kind
    )


def _is_separated(schema: Definition | KeyValue) -> bool:
    return isinstance(schema, KeyValue) and schema.encoding == "SEPARATED"


def _get_type_name(schema: Definition | KeyValue) -> str:
    return schema.type if isinstance(schema, Definition) else "KEY_VALUE"
