"""Random protobuf messages: their descriptors, as PROTOBUF_NATIVE definitions, and values of them."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from google.protobuf import descriptor_pool, duration_pb2, empty_pb2, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from schemactl.codec import Definition

_KNOWN = [module.DESCRIPTOR for module in (timestamp_pb2, duration_pb2, empty_pb2, wrappers_pb2)]
_KNOWN_NAMES = [
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
    "google.protobuf.Empty",
    "google.protobuf.StringValue",
    "google.protobuf.UInt64Value",
]
_SCALARS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 18)
_KEYS = (3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 18)
_MESSAGE, _ENUM, _GROUP = 11, 14, 10
_DEFAULTS = {
    **dict.fromkeys((1, 2), ("1.5", "-0", "inf", "nan")),
    **dict.fromkeys((3, 16, 18), ("-9223372036854775808", "7")),
    **dict.fromkeys((4, 6), ("18446744073709551615", "0")),
    **dict.fromkeys((5, 15, 17), ("-2147483648", "7")),
    **dict.fromkeys((7, 13), ("4294967295", "0")),
    8: ("true", "false"),
    9: ("größe", ""),
    12: ("\\377\\000", "a"),
    _ENUM: ("ANOTHER", "C", "A"),
}
"""As `FieldDescriptorProto.default_value` has them, by type."""
_OPTIONAL, _REQUIRED, _REPEATED = 1, 2, 3


class ProtoMaker:
    """Makes a message type of a seed, changed versions of it, and messages."""

    def __init__(self, seed: int, *, groups: bool = False) -> None:
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.proto3 = self.random.random() < 0.6
        self._groups = groups and not self.proto3
        self._count = 0
        self.file = FileDescriptorProto(name="random.proto", package="r", syntax="proto3" if self.proto3 else "proto2")
        self.file.dependency.extend(file.name for file in _KNOWN)
        values = [("A", 0), ("B", 1), ("C", -5), ("ANOTHER", 1)]
        enum = self.file.enum_type.add(name="E")
        enum.options.allow_alias = True
        for name, number in values:
            enum.value.add(name=name, number=number)
        self.root = self._draw_message(2)
        self._class = class_of(self.file, self.root)

    def make_definition(self) -> Definition:
        """The root message as Pulsar has it."""
        return read_json_definition(self.file, self.root)

    def change_file(self) -> Any:
        """The file as another version might have it."""
        file: Any = FileDescriptorProto.FromString(self.file.SerializeToString())
        pick = self.random
        for message in file.message_type:
            for field in list(message.field):
                change = pick.random()
                if change < 0.15 and not field.HasField("oneof_index"):
                    message.field.remove(field)
                elif change < 0.3:
                    field.name = f"x_{field.name}"
                elif change < 0.45 and field.type in _SCALARS and not field.options.packed:
                    field.type = pick.choice(_SCALARS)
                    field.ClearField("default_value")
            if pick.random() < 0.5:
                message.field.add(name="added", number=900, type=pick.choice(_SCALARS), label=_OPTIONAL)
        return file

    def make_payload(self, *, deterministic: bool = True) -> bytes:
        """A message."""
        message = self._class()
        self._fill(message, 3)
        written: bytes = message.SerializePartialToString(deterministic=deterministic)
        return written

    def damage_payload(self, payload: bytes) -> bytes:
        """Return bytes that are not a message, or are another message."""
        pick = self.random
        kind = pick.random()
        if kind < 0.2:
            # Two messages behind each other are one: its fields come twice.
            return payload + self.make_payload()
        if not payload:
            return pick.randbytes(pick.randrange(6))
        at = pick.randrange(len(payload))
        if kind < 0.5:
            return (
                payload[:at]
                + bytes([pick.choice([0, 1, 0x7F, 0x80, 0xF7, 0xFF, pick.randrange(256)])])
                + payload[at + 1 :]
            )
        if kind < 0.7:
            return payload[:at] + b"\xf7" + b"\xff" * 8 + b"\x01" + payload[at:]
        return payload[:at] + payload[at + pick.randrange(3) :]

    def _draw_message(self, depth: int) -> str:
        pick = self.random
        name = f"M{self._count}"
        message: Any = DescriptorProto(name=name)
        self._count += 1
        numbers = iter(pick.sample([*range(1, 40), 200, 3000], 12))
        for index in range(pick.randrange(1, 9)):
            self._draw_field(message, f"f{index}", next(numbers), depth)
        if pick.random() < 0.4:
            message.oneof_decl.add(name="either")
            for side in ("left", "right"):
                field = message.field.add(name=side, number=next(numbers), label=_OPTIONAL, oneof_index=0)
                self._draw_kind(field, depth)
        if self.proto3:
            for field in message.field:
                if (
                    field.label == _OPTIONAL
                    and not field.HasField("oneof_index")
                    and field.type != _MESSAGE
                    and pick.random() < 0.4
                ):
                    field.proto3_optional = True
                    field.oneof_index = len(message.oneof_decl)
                    message.oneof_decl.add(name=f"_{field.name}")
        else:
            for field in message.field:
                plain = field.label == _OPTIONAL and not field.HasField("oneof_index")
                if plain and field.type in _DEFAULTS and pick.random() < 0.3:
                    field.default_value = pick.choice(_DEFAULTS[field.type])
        self.file.message_type.append(message)
        return name

    def _draw_field(self, message: Any, name: str, number: int, depth: int) -> None:
        pick = self.random
        field = message.field.add(name=name, number=number, label=_OPTIONAL)
        kind = pick.random()
        if kind < 0.15:
            entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=pick.choice(_KEYS), label=_OPTIONAL)
            value = entry.field.add(name="value", number=2, label=_OPTIONAL)
            self._draw_kind(value, depth)
            value.type = _MESSAGE if value.type == _GROUP else value.type
            field.type, field.type_name, field.label = _MESSAGE, f".r.{message.name}.{entry.name}", _REPEATED
            return
        self._draw_kind(field, depth)
        if kind < 0.4:
            field.label = _REPEATED
            if field.type not in (9, 11, 12) and pick.random() < 0.7:
                field.options.packed = pick.random() < 0.8
        elif kind < 0.5 and not self.proto3:
            field.label = _REQUIRED

    def _draw_kind(self, field: Any, depth: int) -> None:
        kind = self.random.random()
        if kind < 0.2 and depth:
            field.type, field.type_name = _MESSAGE, f".r.{self._draw_message(depth - 1)}"
            if self._groups and self.random.random() < 0.3:
                field.type = _GROUP
        elif kind < 0.3:
            field.type, field.type_name = _MESSAGE, f".{self.random.choice(_KNOWN_NAMES)}"
        elif kind < 0.35:
            # The current message, which contains itself.
            field.type, field.type_name = _MESSAGE, f".r.M{self.random.randrange(self._count)}"
        elif kind < 0.45:
            field.type, field.type_name = _ENUM, ".r.E"
        else:
            field.type = self.random.choice(_SCALARS)

    def _fill(self, message: Any, depth: int) -> None:
        pick = self.random
        for field in message.DESCRIPTOR.fields:
            if pick.random() < 0.3:
                continue
            entry = field.message_type
            if entry is not None and entry.GetOptions().map_entry:
                held = getattr(message, field.name)
                for _ in range(pick.randrange(3)):
                    key, value = self._draw_scalar(entry.fields_by_name["key"]), entry.fields_by_name["value"]
                    if value.message_type is None:
                        held[key] = self._draw_scalar(value)
                    else:
                        self._fill_message(held[key], depth)
            elif field.is_repeated:
                held = getattr(message, field.name)
                for _ in range(pick.randrange(3)):
                    if entry is None:
                        held.append(self._draw_scalar(field))
                    else:
                        self._fill_message(held.add(), depth)
            elif entry is None:
                setattr(message, field.name, self._draw_scalar(field))
            else:
                inner = getattr(message, field.name)
                inner.SetInParent()
                self._fill_message(inner, depth)

    def _fill_message(self, message: Any, depth: int) -> None:
        pick = self.random
        if message.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
            message.seconds = pick.choice([0, pick.randrange(-(10**10), 10**10), 2**62])
            message.nanos = pick.choice([0, pick.randrange(10**9), -7])
        elif message.DESCRIPTOR.full_name == "google.protobuf.Duration":
            message.seconds, message.nanos = pick.choice([(0, 0), (-3, -500_001), (5, 1), (pick.randrange(2**40), 0)])
        elif depth:
            self._fill(message, depth - 1)

    def _draw_scalar(self, field: Any) -> Any:
        pick = self.random
        kind = field.type
        if kind in (1, 2):
            return pick.choice([0.0, -0.0, 1.5, float("inf"), pick.random() * 1e30])
        if kind == 8:
            return pick.random() < 0.5
        if kind in (9, 12):
            text = pick.choice(["", "a", "größe", "x" * pick.randrange(200)])
            return text if kind == 9 else text.encode("latin-1")
        if kind == _ENUM:
            return pick.choice([0, 1, -5, 1, 7] if self.proto3 else [0, 1, -5])
        bits = 32 if kind in (5, 7, 13, 15, 17) else 64
        if kind in (4, 6, 7, 13):
            return pick.choice([0, 1, 2**bits - 1, pick.randrange(2**bits)])
        return pick.choice([0, -1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, pick.randrange(1000)])


def read_json_definition(file: Any, root: str) -> Definition:
    """A PROTOBUF_NATIVE definition."""
    files = FileDescriptorSet(file=[*(FileDescriptorProto.FromString(one.serialized_pb) for one in _KNOWN), file])
    wrapper = {
        "fileDescriptorSet": base64.b64encode(files.SerializeToString()).decode(),
        "rootMessageTypeName": f"r.{root}",
        "rootFileDescriptorName": file.name,
    }
    return Definition("PROTOBUF_NATIVE", json.dumps(wrapper))


def class_of(file: Any, root: str) -> Any:
    """The class of a message."""
    pool = descriptor_pool.DescriptorPool()
    for known_type in _KNOWN:
        pool.Add(FileDescriptorProto.FromString(known_type.serialized_pb))
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"r.{root}"))
