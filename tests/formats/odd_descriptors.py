"""Odd PROTOBUF_NATIVE definitions: compiled files with one to three random changes, most of which no compiler would write."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final

from corpora import read_rows
from google.protobuf.descriptor_pb2 import EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError
from protobuf_corpus import descriptor_sets

_IMPORTED: Final = 'syntax = "proto3"; package base.types; message Id { string text = 1; message Part { int32 n = 1; } } enum Unit { UNIT_NONE = 0; G = 1; }'
_PUBLIC: Final = 'syntax = "proto3"; package base; import public "types.proto"; message Note { string text = 1; }'

_PROTO3: Final = """
syntax = "proto3"; package shop; import "note.proto"; import "google/protobuf/timestamp.proto";
message Order {
  message Line { string sku = 1; int32 count = 2; enum Kind { KIND_NONE = 0; GIFT = 1; } Kind kind = 3; }
  string order_id = 1; repeated Line lines = 2; map<string, Line> by_sku = 3; base.Note note = 4; base.types.Id id = 5;
  oneof payment { string card = 6; Line voucher = 7; } optional int32 priority = 8; optional string hint = 9;
  google.protobuf.Timestamp at = 10; State state = 11; repeated int32 numbers = 12; base.types.Unit unit = 13;
  reserved 20 to 25; reserved "old";
}
enum State { STATE_NONE = 0; OPEN = 1; DONE = 2; }
service Orders { rpc Get (Order) returns (Order); rpc List (base.Note) returns (stream Order.Line); }
"""

_PROTO2: Final = """
syntax = "proto2"; package shop.old; import "note.proto";
message Item {
  required string name = 1 [default = "x"]; optional int32 i = 2 [default = -7]; optional uint64 u = 3 [default = 18446744073709551615];
  optional float f = 4 [default = 1.5]; optional double d = 5 [default = inf]; optional bool b = 6 [default = true];
  optional bytes raw = 7 [default = "a\\377"]; optional Size size = 8 [default = WIDE]; optional group Box = 9 { optional int32 w = 1; }
  repeated int32 packed = 10 [packed = true]; optional sint64 s = 11 [default = -9]; optional fixed32 x = 12 [default = 12];
  extensions 100 to 199; extensions 300 to max;
  enum Size { SMALL = 1; WIDE = 2; } optional base.Note note = 13; oneof choice { int32 left = 14; string right = 15; }
}
message Set { option message_set_wire_format = true; extensions 4 to max; }
message Tag { extend Set { optional Tag tag = 5; } optional string text = 1; }
extend Item { optional string color = 100; repeated Item parts = 101; }
"""

_EDITION: Final = """
edition = "2023"; package shop.next; option features.field_presence = IMPLICIT;
message Click { string user_id = 1; Target target = 2 [features.message_encoding = DELIMITED]; repeated int32 n = 3 [features.repeated_field_encoding = EXPANDED]; Mode mode = 4 [features.field_presence = EXPLICIT]; }
message Target { string url = 1 [features.field_presence = EXPLICIT]; map<int32, string> modes = 2; }
enum Mode { option features.enum_type = CLOSED; MODE_A = 1; MODE_B = 2; }
"""

_PLAIN: Final = 'syntax = "proto3"; message Plain { string a_b = 1; Inner inner = 2; message Inner { Plain up = 1; } repeated Plain children = 3; }'


@cache
def _compile_bases() -> tuple[tuple[bytes, str, str], ...]:
    """Return the serialized sets, without source info, with root message and root file."""
    imports = {"types.proto": _IMPORTED, "note.proto": _PUBLIC}
    definitions = [
        ({**imports, "order.proto": _PROTO3}, "shop.Order", "order.proto"),
        ({**imports, "order.proto": _PROTO3}, "shop.Order.Line", "order.proto"),
        ({**imports, "item.proto": _PROTO2}, "shop.old.Item", "item.proto"),
        ({"click.proto": _EDITION}, "shop.next.Click", "click.proto"),
        ({"plain.proto": _PLAIN}, "Plain", "plain.proto"),
        (imports, "base.Note", "note.proto"),
    ]
    compiled = descriptor_sets(*(files for files, _, _ in definitions))
    return tuple(
        (_clean_files(data).SerializeToString(), message, file_name)
        for data, (_, message, file_name) in zip(compiled, definitions, strict=True)
    )


_SMALL_BYTES: Final = 5_000


@cache
def _compile_corpus() -> tuple[tuple[bytes, str, str], ...]:
    """Return the same of small definitions in `proto_buf`, with a message of the last file as root."""
    bases = []
    for data in descriptor_sets(*(row[side] for row in read_rows("proto_buf") for side in ("old", "new"))):
        files = _clean_files(data)
        roots = [file for file in files.file if file.message_type]
        if roots and len(data) < _SMALL_BYTES:
            names = filter(None, (roots[-1].package, roots[-1].message_type[0].name))
            bases.append((files.SerializeToString(), ".".join(names), roots[-1].name))
    return tuple(bases)


def _clean_files(data: bytes) -> FileDescriptorSet:
    """Return the files of `descriptor_sets` without source info and without the file that imports them all."""
    files = FileDescriptorSet.FromString(data)
    proper_files = [file for file in files.file if file.name != "everything.proto"]
    for file in proper_files:
        file.ClearField("source_code_info")
    return FileDescriptorSet(file=proper_files)


_NAMES: Final = (
    "",
    "a",
    "T",
    "Line",
    "Order",
    "Note",
    "1a",
    "a-b",
    "a.b",
    "ä",
    "a b",
    "x_y",
    "xY",
    "_",
    "name",
    "Id",
    "shop",
    "base",
    "State",
)
_TYPE_NAMES: Final = (
    *("", ".", "Line", "Order.Line", "shop.Order.Line", ".shop.Order.Line", "Note", "base.Note", ".base.Note", "types.Id", "base.types.Id"),
    *(".base.types.Id", ".base.types.Id.Part", "Id", "State", ".shop.State", "Missing", ".Missing", "shop", "base", ".shop", "Orders", "OPEN"),
    *("old.Item", ".shop.old.Item", "Item.Size", ".shop.old.Item.Size", "Size", "order_id", ".shop.Order.order_id", "..shop.Order", "shop..Order"),
    *("Click", ".shop.next.Mode", "Plain", ".Plain", "Inner", ".Plain.Inner", "google.protobuf.Timestamp", "payment", "BySkuEntry"),
)  # fmt: skip
_NUMBERS: Final = (
    -1,
    0,
    1,
    2,
    3,
    5,
    99,
    100,
    199,
    200,
    18999,
    19000,
    19999,
    20000,
    299,
    536870911,
    536870912,
    2147483647,
    -2147483648,
)
_PACKAGES: Final = (
    *("", "a", "shop", "shop.Order", "base", "base.types", "a..b", ".a", "a.", ".", "a-b", "a b", "1a", "ä", "a(b", "a)b", "a[b", "a{b", "a}b", "a]b"),
    *("a*b", "*a", "a+", "a?b", "a|b", "^a", "a$", "a\\b", "a\\", "Order", "s.op", "shop.Order.Line", "Plain", "Or.er", "O", "e", "+", "a**"),
)  # fmt: skip
_FILE_NAMES: Final = (
    "",
    "order.proto",
    "note.proto",
    "types.proto",
    "missing.proto",
    "plain.proto",
    "ä.proto",
    "Order.proto",
)
_ROOTS: Final = (
    *("", ".", "..", "Order", "shop.Order", "Order.Line", "shop.Order.Line", "shop.Order.", "shop.Order..Line", ".shop.Order", ".Order"),
    *("Order.Missing", "Order.order_id", "Order.Line.Kind", "State", "Orders", "Orders.Get", "shop", "base.Note", "Note", "types.Id", "Id.Part"),
    *("base.types.Id", "shop.old.Item", "Item", "Item.Box", "Set", "Tag", "Tag.tag", "Item.Size.WIDE", "Plain", "Plain.Inner", "Inner", "next.Click"),
    *("Order.BySkuEntry", "shopxOrder", "Order shop.", "aOrder", "T", "a.T", "a b.Order", "a+.Order"),
)  # fmt: skip
_DEFAULTS: Final = (
    *("", "0", "-0", "7", "+7", "-7", "007", "08", "0x1F", "0x", "-0x10", "0X10", "1e3", "1.5", "1.5f", "1.5d", " 1", "1 ", "nan", "inf", "-inf", "NaN", "-nan"),
    *("Infinity", "-Infinity", "0x1p3", "1_000", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615"),
    *("18446744073709551616", "000000000000000000017", "0x0000000000000000ff", "true", "TRUE", "false", "t", "yes", "WIDE", "SMALL", "OPEN", "Order"),
    *("a\\377", "\\", "\\x", "\\xg", "\\x4", "\\x414", "\\u0041", "\\u12", "\\ud800", "\\U0001F600", "\\U00110000", "\\U0000d800", "\\q", "\\?", "\\'", "\\8"),
    *("ä", "1e400", "1e-400", "e", ".", ".5", "5.", "+.5e+3", "٣", "-", "--7", "0-7", "00x1", "-00000000000000000x1", "1L", "\x00", "1\x1f", "\u20281"),
)  # fmt: skip
_SYNTAXES: Final = ("", "proto2", "proto3", "proto4", "editions", "PROTO3", "proto3 ")
_EDITIONS: Final = (0, 1, 2, 900, 998, 999, 1000, 1001, 99997, 99999, 2147483647)

_INVALID_UTF8: Final = ("\x01\x02\x03\x04", b"\xff\xc3\x28\xe2")
"""Four characters that no name has, and the bytes that take their place after the set is serialized."""


class OddDefinition:
    """A definition to change: the files, and the values of the JSON object (absent keys are left out)."""

    def __init__(self, pick: random.Random) -> None:
        data, message, file_name = pick.choice(_compile_bases() if pick.random() < 0.7 else _compile_corpus())
        self.pick = pick
        self.files: Any = FileDescriptorSet.FromString(data)
        self.values: dict[str, Any] = {"rootMessageTypeName": message, "rootFileDescriptorName": file_name}
        self.file_name = file_name
        self.change_bytes: list[Callable[[bytes], bytes]] = []
        self.change_text: list[Callable[[bytes], bytes]] = []

    def root_file(self) -> Any:
        return next((file for file in self.files.file if file.name == self.file_name), self.files.file[-1])

    def some_file(self) -> Any:
        return self.root_file() if self.pick.random() < 0.7 else self.pick.choice(self.files.file)

    def list_messages(self) -> list[Any]:
        """Return the messages of some file that is not empty, nested ones included."""
        pending, messages = list(self.some_file().message_type), []
        while pending:
            message = pending.pop()
            messages.append(message)
            pending += message.nested_type
        return messages or [self.root_file().message_type.add(name="Added")]

    def some_message(self) -> Any:
        return self.pick.choice(self.list_messages())

    def some_field(self) -> Any:
        fields = [field for message in self.list_messages() for field in (*message.field, *message.extension)]
        fields += self.some_file().extension
        return self.pick.choice(fields or [self.some_message().field.add(name="added", number=77, type=5, label=1)])

    def some_enum(self) -> Any:
        file = self.some_file()
        enums = [*file.enum_type, *(enum for message in self.list_messages() for enum in message.enum_type)]
        if not enums:
            enums = [file.enum_type.add(name="Extra")]
            enums[0].value.add(name="EXTRA", number=0)
        return self.pick.choice(enums)

    def render(self) -> bytes:
        """Return the bytes of the definition."""
        data = self.files.SerializePartialToString()
        for change in self.change_bytes:
            data = change(data)
        values = {"fileDescriptorSet": base64.b64encode(data).decode(), **self.values}
        text = json.dumps({key: value for key, value in values.items() if value is not ...}).encode()
        for change in self.change_text:
            text = change(text)
        return text


def _rename(odd: OddDefinition) -> None:
    file = odd.some_file()
    parts = [*odd.list_messages(), odd.some_field(), odd.some_enum(), *odd.some_enum().value, *file.service]
    parts += [method for service in file.service for method in service.method]
    part = odd.pick.choice(parts)
    names = [*_NAMES, *(other.name for other in parts), odd.pick.choice(_INVALID_UTF8[:1])]
    if odd.pick.random() < 0.1:
        part.ClearField("name")
    else:
        part.name = odd.pick.choice(names)


def _change_number(odd: OddDefinition) -> None:
    odd.some_field().number = odd.pick.choice(_NUMBERS)


def _change_type(odd: OddDefinition) -> None:
    field = odd.some_field()
    if odd.pick.random() < 0.3:
        field.ClearField("type")
    else:
        field.type = odd.pick.choice(FieldDescriptorProto.Type.values())
    if odd.pick.random() < 0.4:
        field.ClearField("default_value")
    if odd.pick.random() < 0.3:
        field.ClearField("type_name")


def _change_type_name(odd: OddDefinition) -> None:
    fields = [field for message in odd.list_messages() for field in message.field if field.type_name]
    field = odd.pick.choice(fields) if fields and odd.pick.random() < 0.8 else odd.some_field()
    names = [field.type_name[1:], field.type_name.rpartition(".")[2], *_TYPE_NAMES]
    field.type_name = odd.pick.choice(names)
    if odd.pick.random() < 0.4:
        field.ClearField("type")


def _change_label(odd: OddDefinition) -> None:
    field = odd.some_field()
    field.label = odd.pick.choice((1, 2, 3))
    if odd.pick.random() < 0.2:
        field.ClearField("label")


def _change_default(odd: OddDefinition) -> None:
    field = odd.some_field()
    scalars = [
        other for message in odd.list_messages() for other in message.field if other.label != 3 and other.type != 11
    ]
    if scalars and odd.pick.random() < 0.9:
        field = odd.pick.choice(scalars)
        if odd.pick.random() < 0.6 and not field.type_name:
            field.type = odd.pick.choice(
                [number for number in FieldDescriptorProto.Type.values() if number not in (10, 11, 14)]
            )
    field.default_value = odd.pick.choice(_DEFAULTS)


def _change_json_name(odd: OddDefinition) -> None:
    fields = [field for message in odd.list_messages() for field in message.field]
    if fields:
        odd.pick.choice(fields).json_name = odd.pick.choice(
            [*_NAMES, *(field.json_name for field in fields), _INVALID_UTF8[0]]
        )


def _add_field(odd: OddDefinition) -> None:
    message = odd.some_message()
    names = [field.name for field in message.field] or ["a"]
    similar = odd.pick.choice(names)
    field = message.field.add(
        name=odd.pick.choice((similar.replace("_", ""), similar + "_", similar, "added", similar.upper())),
        label=1,
        type=5,
    )
    field.number = odd.pick.choice((500, 77, *_NUMBERS))
    if odd.pick.random() < 0.2:
        field.extendee = ".shop.old.Item"
    if odd.pick.random() < 0.2:
        field.oneof_index = odd.pick.choice((-1, 0, 1, 5))
    if odd.pick.random() < 0.1:
        field.proto3_optional = True


def _add_extension(odd: OddDefinition) -> None:
    holder = odd.some_file() if odd.pick.random() < 0.6 else odd.some_message()
    field = holder.extension.add(
        name=odd.pick.choice(("ext", *_NAMES)),
        number=odd.pick.choice((4, 100, 150, 300, 301, *_NUMBERS)),
        label=odd.pick.choice((1, 1, 2, 3)),
    )
    field.type = odd.pick.choice((5, 9, 11, 14))
    if field.type in (11, 14) or odd.pick.random() < 0.1:
        field.type_name = odd.pick.choice(_TYPE_NAMES)
    if odd.pick.random() < 0.9:
        field.extendee = odd.pick.choice(
            (".shop.old.Item", "Item", ".shop.old.Set", "Set", ".shop.Order", ".shop.old.Item.Size", "Missing", "")
        )
    if odd.pick.random() < 0.1:
        field.oneof_index = 0


def _change_ranges(odd: OddDefinition) -> None:
    message = odd.some_message()
    ranges = odd.pick.choice((message.extension_range, message.reserved_range))
    for _ in range(odd.pick.randrange(1, 3)):
        ranges.add(start=odd.pick.choice(_NUMBERS), end=odd.pick.choice(_NUMBERS))
    if odd.pick.random() < 0.3:
        del message.extension_range[:]
    if odd.pick.random() < 0.3:
        message.reserved_name.extend(odd.pick.choice(_NAMES) for _ in range(2))


def _change_oneofs(odd: OddDefinition) -> None:
    message = odd.some_message()
    action = odd.pick.randrange(6)
    fields = list(message.field)
    if action == 0:
        message.oneof_decl.add(name=odd.pick.choice(_NAMES))
    elif action == 1 and message.oneof_decl:
        del message.oneof_decl[odd.pick.randrange(len(message.oneof_decl)) :]
    elif action == 2 and fields:
        odd.pick.choice(fields).oneof_index = odd.pick.choice((-1, 0, 1, 2, 9))
    elif action == 3 and fields:
        field = odd.pick.choice(fields)
        field.proto3_optional = not field.proto3_optional
    elif action == 4 and len(message.oneof_decl) > 1:
        message.oneof_decl.reverse()
        for field in fields:
            if field.HasField("oneof_index"):
                field.oneof_index = len(message.oneof_decl) - 1 - field.oneof_index
    elif fields:
        odd.pick.choice(fields).ClearField("oneof_index")


def _change_map_entry(odd: OddDefinition) -> None:
    messages = odd.list_messages()
    entries = [message for message in messages if message.options.map_entry]
    entry = odd.pick.choice(entries or messages)
    action = odd.pick.randrange(6)
    if action == 0:
        entry.options.map_entry = not entry.options.map_entry
    elif action == 1 and entry.field:
        del entry.field[odd.pick.randrange(len(entry.field))]
    elif action == 2:
        entry.field.add(name="third", number=3, label=1, type=9)
    elif action == 3 and entry.field:
        odd.pick.choice(entry.field).number = odd.pick.choice((1, 2, 3))
    elif action == 4 and entry.field:
        entry.field[0].type = odd.pick.choice((1, 2, 11, 12))
    elif entry.field:
        odd.pick.choice(entry.field).label = odd.pick.choice((2, 3))


def _change_enum(odd: OddDefinition) -> None:
    enum: EnumDescriptorProto = odd.some_enum()
    action = odd.pick.randrange(7)
    if action == 0:
        del enum.value[:]
    elif action == 1:
        enum.value.add(
            name=odd.pick.choice([*_NAMES, *(value.name for value in enum.value)]), number=odd.pick.choice(_NUMBERS)
        )
    elif action == 2 and enum.value:
        odd.pick.choice(enum.value).number = odd.pick.choice(_NUMBERS)
    elif action == 3 and len(enum.value) > 1:
        enum.value.sort(key=lambda value: -value.number)
    elif action == 4:
        enum.options.allow_alias = not enum.options.allow_alias
    elif action == 5:
        enum.reserved_range.add(start=odd.pick.choice(_NUMBERS), end=odd.pick.choice(_NUMBERS))
    elif enum.value:
        odd.pick.choice(enum.value).ClearField("number")


def _change_options(odd: OddDefinition) -> None:
    action = odd.pick.randrange(7)
    if action == 0:
        odd.some_message().options.message_set_wire_format = True
    elif action == 1:
        odd.some_field().options.packed = True
    elif action == 2:
        odd.some_field().options.lazy = True
    elif action == 3:
        odd.some_field().options.weak = True
    elif action == 4:
        option = odd.some_message().options.uninterpreted_option.add(identifier_value="x")
        option.name.add(name_part="a", is_extension=False)
        if odd.pick.random() < 0.5:
            del option.name[:]
            option.name.add(name_part="a")
    elif action == 5:
        odd.some_field().options.features.field_presence = odd.pick.choice((1, 2, 3))
    else:
        odd.some_file().options.MergeFromString(
            odd.pick.choice((b"\xfa\xf0\x1a\x02hi", b"\x52\x03a\xffb", b"\x0a\x00", b"\x50\x01"))
        )


def _change_syntax(odd: OddDefinition) -> None:
    file = odd.some_file()
    file.syntax = odd.pick.choice(_SYNTAXES)
    if odd.pick.random() < 0.4:
        file.edition = odd.pick.choice(_EDITIONS)
    if odd.pick.random() < 0.2:
        file.ClearField("syntax")


def _change_imports(odd: OddDefinition) -> None:
    file = odd.some_file()
    action = odd.pick.randrange(9)
    if action == 0 and file.dependency:
        del file.dependency[odd.pick.randrange(len(file.dependency))]
    elif action == 1:
        file.dependency.append(odd.pick.choice((file.name, *(other.name for other in odd.files.file), *_FILE_NAMES)))
    elif action == 2 and file.dependency:
        file.dependency.append(file.dependency[0])
    elif action == 3:
        file.public_dependency.append(odd.pick.choice((-1, 0, 0, 1, 7)))
    elif action == 4:
        file.weak_dependency.append(odd.pick.choice((-1, 0, 1, 7)))
    elif action == 5 and len(odd.files.file) > 1:
        del odd.files.file[odd.pick.randrange(len(odd.files.file))]
    elif action == 6:
        del file.public_dependency[:]
    elif action == 7:
        copy = odd.files.file.add()
        copy.CopyFrom(file)
        copy.name = odd.pick.choice((file.name, "copy.proto"))
        if odd.pick.random() < 0.7 and copy.message_type:
            copy.message_type[0].name = odd.pick.choice((copy.message_type[0].name, "T"))
        odd.root_file().dependency.append(copy.name)
    else:
        odd.files.file.reverse()


def _change_package(odd: OddDefinition) -> None:
    file = odd.some_file()
    file.package = odd.pick.choice((*_PACKAGES, _INVALID_UTF8[0]))
    if odd.pick.random() < 0.5:
        # Names without the old package resolve again.
        for message in file.message_type:
            for field in message.field:
                if field.type_name and odd.pick.random() < 0.9:
                    field.type_name = field.type_name.rpartition(".")[2]
        del file.service[:], file.extension[:]
    if odd.pick.random() < 0.6:
        last = odd.values["rootMessageTypeName"].rpartition(".")[2]
        odd.values["rootMessageTypeName"] = odd.pick.choice((last, f"{file.package}.{last}", f"{file.package}{last}"))


def _change_file_name(odd: OddDefinition) -> None:
    file = odd.some_file()
    name = odd.pick.choice((*_FILE_NAMES, _INVALID_UTF8[0]))
    if odd.pick.random() < 0.5:
        odd.values["rootFileDescriptorName"] = name
        if odd.pick.random() < 0.5:
            file.name = name
    else:
        file.name = name


def _change_root(odd: OddDefinition) -> None:
    odd.values["rootMessageTypeName"] = odd.pick.choice(_ROOTS)


def _change_method(odd: OddDefinition) -> None:
    services = odd.some_file().service or [odd.root_file().service.add(name="Extra")]
    service = odd.pick.choice(services)
    names = [message.name for message in odd.root_file().message_type] or [""]
    method = odd.pick.choice(
        service.method or [service.method.add(name="Do", input_type=names[0], output_type=odd.pick.choice(names))]
    )
    attribute = odd.pick.choice(("input_type", "output_type", "name"))
    if odd.pick.random() < 0.2:
        method.ClearField(attribute)
    else:
        setattr(method, attribute, odd.pick.choice(_TYPE_NAMES))


def _nest_deeply(odd: OddDefinition) -> None:
    message = odd.some_message()
    for _ in range(odd.pick.choice((10, 90, 95, 97, 98, 99, 100, 120))):
        message = message.nested_type.add(name="N")


def _copy_part(odd: OddDefinition) -> None:
    message = odd.some_message()
    for parts in (message.nested_type, message.field, message.enum_type):
        if parts and odd.pick.random() < 0.4:
            copy = parts.add()
            copy.CopyFrom(odd.pick.choice(parts[:-1] or parts))
            if odd.pick.random() < 0.6:
                copy.name += "2"


def _change_wire(odd: OddDefinition) -> None:
    pick = odd.pick

    def change(data: bytes) -> bytes:
        index = pick.randrange(len(data) + 1)
        extra = pick.choice(
            (
                b"\x00",
                b"\x12\x01x",
                b"\x0b\x0c",
                b"\x0c",
                b"\x0e",
                b"\xf8\x01\x05",
                b"\x08\x01",
                b"\xff" * 5,
                b"\x0d\x01\x02\x03\x04",
                b"\x8a\x80\x80\x80\x80\x00\x00",
            )
        )
        match pick.randrange(5):
            case 0:
                return data + extra
            case 1:
                return extra + data
            case 2:
                return data[:index]
            case 3:
                return data[:index] + bytes([pick.randrange(256)]) + data[index + 1 :]
        return data[:index] + bytes([data[index - 1] ^ (1 << pick.randrange(8))]) + data[index + 1 :]

    odd.change_bytes.append(change)


def _change_envelope(odd: OddDefinition) -> None:
    pick = odd.pick
    keys = ("fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName")
    encoded = base64.b64encode(odd.files.SerializePartialToString()).decode()
    match pick.randrange(9):
        case 0:
            odd.values[pick.choice(keys)] = pick.choice(
                (..., None, 7, True, 1.5, [], {}, "", ["a"], [1, 2], [10, 200], -1)
            )
        case 1:
            odd.values["fileDescriptorSet"] = pick.choice(
                (encoded + "=", encoded + "\n", encoded.rstrip("="), encoded[:40] + "\r\n" + encoded[40:], " " + encoded, encoded[:41] + " " + encoded[41:],
                 encoded[:-1], encoded + "AAAA", encoded.replace("C", "-", 1), encoded + "====", encoded[:8] + "=" + encoded[8:], encoded + "A", encoded + " x", encoded + "ä", encoded + "A===")
            )  # fmt: skip
        case 2:
            odd.values["fileDescriptorSet"] = [
                byte - 256 if byte > 127 and pick.random() < 0.5 else byte
                for byte in odd.files.SerializePartialToString()
            ]
        case 3:
            odd.values["extra"] = pick.choice((None, {"a": [1]}, "x", 10**30, [[[]]], 1.0))
        case 4:
            key = pick.choice(keys)
            odd.change_text.append(lambda text: text[:-1] + b', "' + key.encode() + b'": null}')
        case 5:
            suffix = pick.choice((b" x", b"}", b"\xff", b"{}", b"\n", b",", b" null"))
            odd.change_text.append(lambda text: text + suffix)
        case 6:
            prefix = pick.choice(
                (b"\xef\xbb\xbf", b" \n", b"\t", b"/* */", b"[", b"x", b"\x0b", b"\x00", b"\xc2\xa0", b"null", b"#")
            )
            odd.change_text.append(lambda text: prefix + text)
        case 7:
            encoding = pick.choice(("utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32"))
            odd.change_text.append(lambda text: text.decode("utf-8", "replace").encode(encoding))
        case _:
            old, new = pick.choice(((b'"', b"'"), (b": ", b" : "), (b"}", b",}"), (b"{", b"{,"), (b"rootMessage", b"RootMessage"), (b'"}', b'" }'), (b'"r', b'"\\u0072'), (b", ", b",\r\n"), (b'": "', b'": "\\ud800'), (b"}", b', "n": NaN}'), (b"}", b', "n": 01}'), (b"}", b', "n": "\xff"}'), (b"}", b', "n": "\t"}')))  # fmt: skip
            odd.change_text.append(lambda text: text.replace(old, new))


CHANGES: Final = (
    *(_rename, _rename, _change_number, _change_type, _change_type_name, _change_type_name, _change_label, _change_default, _change_default),
    *(_change_json_name, _add_field, _add_extension, _change_ranges, _change_oneofs, _change_map_entry, _change_enum, _change_options),
    *(_change_syntax, _change_imports, _change_imports, _change_package, _change_file_name, _change_root, _change_method),
    *(_copy_part, _change_wire, _change_envelope),
)  # fmt: skip


def make_definition(seed: int) -> bytes:
    """Return the odd definition of a seed."""
    pick = random.Random(seed)  # noqa: S311  reproducible, not secret
    odd = OddDefinition(pick)
    changes = pick.sample(CHANGES, pick.choice((1, 1, 1, 2, 3)))
    if pick.random() < 0.01:
        changes.append(_nest_deeply)
    # The last one replaces texts that the others read.
    for change in sorted(changes, key=lambda change: change is _change_envelope):
        # A part that is nested too deeply cannot be copied.
        with suppress(DecodeError):
            change(odd)
    old, new = _INVALID_UTF8
    odd.change_bytes.insert(0, lambda data: data.replace(old.encode(), new))
    return odd.render()


def make_definitions(seeds: range) -> Iterator[bytes]:
    """Yield the odd definitions of the seeds, distinct ones once."""
    yield from dict.fromkeys(make_definition(seed) for seed in seeds)
