"""Decode the messages of a topic with several kinds of events (`KindsCodec`), each with the codec of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from .batches import BatchDecoder, Decoded, check_lengths, make_reason_array, make_record_batch
from .byte_batch import Ints, Mask, replace_rows
from .definition import BatchTooLarge, Definition, InvalidDefinition, KeyValue, Unreadable
from .key_value import mask_rows
from .schema_versions import NO_VERSION, group_rows, parse_version, parse_versions
from .topic import Codec

KIND: Final = "__kind"
"""The column with the key of a message's kind, next to one struct for each kind."""


class Event(NamedTuple):
    """A decoded message.

    Attributes:
        kind: the key of its kind.
        value: its value.
    """

    kind: str
    value: Any


class KindsCodec(BatchDecoder):
    """Decodes the messages of all kinds of a topic: the version of a message shows its kind.

    Each row has its kind and one struct for each kind, of which all are null but one. Only a message whose version belongs to no kind
    that was ever declared, or that its own kind cannot decode, is rejected.
    """

    is_record: Final = True
    """The kind and the structs are columns."""

    separated: Final = False
    """Kinds are records, and not pairs."""

    def __init__(self, codecs: Mapping[str, Codec]) -> None:
        """Create a codec from the codec of each kind, by its key, all with the same versions.

        Raises:
            InvalidDefinition: there are no kinds.
        """
        if not codecs:
            raise InvalidDefinition("a codec of kinds needs at least one kind")
        self.codecs = dict(codecs)
        self._any = next(iter(self.codecs.values()))
        self.versions = self._any.versions
        self.numbers = self._any.numbers
        self.target = self._any.target
        self.targets = self._any.targets
        self.kind = ""

    @property
    def columns(self) -> pa.Schema:
        """The columns `__kind`, and one struct for each kind, called by its key.

        Raises:
            CodecUnavailable, InvalidDefinition: see `Codec.columns`.
        """
        structs = [
            (kind, pa.struct(list(codec.columns)) if codec.is_record else codec.columns.field(0).type)
            for kind, codec in self.codecs.items()
        ]
        return pa.schema([(KIND, pa.string()), *structs])

    def schema(self, version: int) -> Definition | KeyValue:
        """Return the schema of a version; raises UnknownVersion if it belongs to no kind."""
        return self.codecs.get(self._any.find_kind_key(version), self._any).schema(version)

    def for_target(self, target: str, *, is_default: bool = False) -> KindsCodec:
        """Return a codec that decodes messages by the version numbers of `target` (see `Codec.for_target`)."""
        if target == self.target:
            return self
        return KindsCodec(
            {kind: codec.for_target(target, is_default=is_default) for kind, codec in self.codecs.items()}
        )

    def decode_one(self, payload: bytes | None, version: int | bytes | None, key: bytes | None = None) -> Event:
        """Decode one message.

        Args:
            payload: the bytes; None for a message without a payload.
            version: the number of the version it was written with, or Pulsar's schema version of eight bytes.
            key: the key of the message, which no kind uses.

        Raises:
            Unreadable: the message cannot be decoded, or belongs to no kind.
            CodecUnavailable: there is no codec for the schema's type.
        """
        number = parse_version(version)
        if number is None:
            raise Unreadable(NO_VERSION)
        kind = self._any.find_kind_key(number)
        if kind not in self.codecs:
            raise Unreadable(self._explain(number))
        return Event(kind, self.codecs[kind].decode_one(payload, number, key))

    def mask_own_messages(self, versions: Any, count: int, *, with_unknown: bool = True) -> Mask:  # noqa: ARG002  see Codec
        """Return a mask of all messages (see `Codec.mask_own_messages`)."""
        return np.ones(count, bool)

    def _explain(self, number: int) -> str:
        """Return the reason to reject a message of a version without a kind."""
        try:
            self._any.decode_one(b"", number)
        except Unreadable as error:
            return error.reason
        raise AssertionError(f"version {number} has a kind")

    def _decode(self, payloads: Any, versions: Any, keys: Any) -> Decoded:
        count = len(payloads)
        check_lengths(payloads, versions, keys)
        if versions is None:
            return self.reject(count, NO_VERSION)
        version_numbers, version_reasons = parse_versions(versions)
        reasons: dict[int, str] = {}
        rows_by_kind: dict[str, list[Ints]] = {}
        for number, rows in group_rows(version_numbers):
            kind = "" if number is None else self._any.find_kind_key(number)
            if kind in self.codecs:
                rows_by_kind.setdefault(kind, []).append(rows)
            else:
                reasons |= dict.fromkeys(rows.tolist(), NO_VERSION if number is None else self._explain(number))
        reasons |= version_reasons

        columns = self.columns
        codes: Ints = np.full(count, -1)
        structs = []
        for code, (kind, codec) in enumerate(self.codecs.items()):
            struct = pa.nulls(count, columns.field(kind).type)
            if kind in rows_by_kind:
                rows = np.sort(np.concatenate(rows_by_kind[kind]))
                codes[rows] = code
                index = pa.array(rows)
                values, rejected = _decode_values(codec, payloads.take(index), version_numbers.take(index))
                struct = replace_rows(struct, [(rows, values)])
                reasons |= {int(rows[at]): reason for at, reason in rejected.items()}
            structs.append(struct)
        kinds = pa.array([*self.codecs], pa.string()).take(pa.array(codes, mask=codes < 0))
        rows = pa.RecordBatch.from_arrays([kinds, *structs], schema=columns)
        return Decoded(rows, make_reason_array(reasons, count))


class KindReplayCodec(KindsCodec):
    """Decodes the messages of one kind into its own columns, and rejects the messages of the others, each for its present reason.

    A replay of rejected messages keeps the rejected ones, so none may be left out.
    """

    def __init__(self, codecs: Mapping[str, Codec], kind: str) -> None:
        """Create a codec from the codec of each kind, for one of the kinds."""
        super().__init__(codecs)
        self.kind = kind

    @property
    def columns(self) -> pa.Schema:
        """The columns of the kind (see `Codec.columns`)."""
        return self.codecs[self.kind].columns

    def for_target(self, target: str, *, is_default: bool = False) -> KindReplayCodec:
        """Return a codec that decodes messages by the version numbers of `target` (see `Codec.for_target`)."""
        return KindReplayCodec(super().for_target(target, is_default=is_default).codecs, self.kind)

    def _decode(self, payloads: Any, versions: Any, keys: Any) -> Decoded:
        decoded = KindsCodec(self.codecs)._decode(payloads, versions, keys)  # noqa: SLF001  an object of the base class
        kinds = decoded.rows.column(KIND).to_pylist()
        reasons = [
            f"the message is of the kind {kind}: replay it" if reason is None and kind != self.kind else reason
            for kind, reason in zip(kinds, decoded.errors.to_pylist(), strict=True)
        ]
        struct = decoded.rows.column(self.kind)
        is_record = self.codecs[self.kind].is_record
        rows = make_record_batch(struct.flatten() if is_record else [struct], self.columns, len(struct))
        return Decoded(rows, pa.array(reasons, pa.string()))


def _decode_values(codec: Codec, payloads: Any, versions: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Decode messages of one kind into structs, null where one is rejected, and return them with the reasons of these rows.

    Raises:
        pa.ArrowCapacityError: they are more than one array holds.
    """
    try:
        decoded = codec.decode_batch(payloads, versions)
    except BatchTooLarge as error:
        raise pa.ArrowCapacityError(str(error)) from None
    reasons = {row: reason for row, reason in enumerate(decoded.errors.to_pylist()) if reason is not None}
    values = decoded.rows.to_struct_array() if codec.is_record else decoded.rows.column(0)
    return mask_rows(values, reasons), reasons
