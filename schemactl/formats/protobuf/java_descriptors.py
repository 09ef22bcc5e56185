"""Build the descriptors of files as Java does, and reject what it rejects (protobuf-java 3.25.5, Descriptors.java).

Pulsar 4.0.7 and 4.2.4 have this release (5.0.1 has 4.36.2), which ignores features of editions. Java accepts much that other runtimes
reject: JSON names that conflict, numbers above 2^29, ranges that overlap, map entries without a value, values of two enums with one name.
The page docs/reference/native-definitions.md lists all its checks.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from schemactl.core.errors import InvalidSchema
from schemactl.formats.avro.schema import JavaException, stack_overflow
from schemactl.formats.protobuf.kinds import BOOL, BYTES, DOUBLE, ENUM, FLOAT, GROUP, MESSAGE, PACKABLE, STRING, Kind

SymbolKind: TypeAlias = Literal["package", "message", "enum", "value", "field", "service", "method"]

_TYPES: Final = frozenset({"message", "enum"})
_AGGREGATES: Final = frozenset({"message", "enum", "package", "service"})
"""The kinds of symbols in which a name without a leading dot is looked up."""

IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_REPEATED = FieldDescriptorProto.LABEL_REPEATED

_SIGNED_32: Final = frozenset(
    {FieldDescriptorProto.TYPE_INT32, FieldDescriptorProto.TYPE_SINT32, FieldDescriptorProto.TYPE_SFIXED32}
)
_UNSIGNED_32: Final = frozenset({FieldDescriptorProto.TYPE_UINT32, FieldDescriptorProto.TYPE_FIXED32})
_SIGNED_64: Final = frozenset(
    {FieldDescriptorProto.TYPE_INT64, FieldDescriptorProto.TYPE_SINT64, FieldDescriptorProto.TYPE_SFIXED64}
)

_INTEGER: Final = re.compile(r"[+-]?\d+")
_HEX_INTEGER: Final = re.compile(r"[+-]?[\da-fA-F]+")
_SHORT_NUMBER: Final = 16
"""Java parses shorter texts of numbers with Long.parseLong, longer ones with BigInteger."""

_FLOAT_TEXT: Final = re.compile(
    r"[\x00-\x20]*(?P<number>[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?))[\x00-\x20]*"
)
"""The texts that Float.valueOf and Double.valueOf accept."""

_ESCAPE: Final = re.compile(
    rb"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
    rb"|(?P<letter>[abfnrtv\\'\"?])|(?P<invalid>[\s\S]?))"
)
_LETTERS: Final = dict(zip(b"abfnrtv\\'\"?", b"\a\b\f\n\r\t\v\\'\"?", strict=True))

Default: TypeAlias = int | float | bool | str | bytes


class RejectedDefinition(InvalidSchema):
    """A definition that Java rejects; `java` is the exception that Java throws."""

    def __init__(self, java: JavaException, message: str = "") -> None:
        super().__init__(message or java.message)
        self.java = java


class Symbol:
    """A named part of a file, which the file and its importers can refer to."""

    __slots__ = ("file", "full_name", "kind", "proto")

    def __init__(self, kind: SymbolKind, full_name: str, file: JavaFile, proto: Any = None) -> None:
        self.kind = kind
        self.full_name = full_name
        self.file = file
        self.proto = proto


class JavaFile:
    """A file and its namespace (FileDescriptor with its DescriptorPool).

    Attributes:
        visible_files: its imports and the public imports of these, which it can name types of.
        symbols: its own symbols by full name, its package, and the packages of the visible files.
    """

    def __init__(self, proto: FileDescriptorProto, dependencies: Sequence[JavaFile]) -> None:
        """Build the file, without its references to types (the constructors of Descriptors).

        Raises:
            RejectedDefinition: if Java rejects it.
        """
        self.proto = proto
        self.name = proto.name
        self.package = proto.package
        self.symbols: dict[str, Symbol] = {}
        visible_files: dict[JavaFile, None] = {}
        for dependency in dependencies:
            visible_files[dependency] = None
            pending = dependency.public_files[::-1]
            while pending:
                public_file = pending.pop()
                if public_file not in visible_files:
                    visible_files[public_file] = None
                    pending += public_file.public_files[::-1]
        self.visible_files = list(visible_files)
        for file in self.visible_files:
            self._add_package(file)

        self.public_files: list[JavaFile] = []
        for index in proto.public_dependency:
            if not 0 <= index < len(proto.dependency):
                raise invalid_part(self.name, "Invalid public dependency index.")
            self.public_files.append(next(file for file in dependencies if file.name == proto.dependency[index]))
        self._add_package(self)
        prefix = f"{self.package}." if self.package else ""
        for message in proto.message_type:
            self._add_message(message, prefix)
        for enum in proto.enum_type:
            self._add_enum(enum, prefix)
        for service in proto.service:
            for method in service.method:
                self._add("method", f"{prefix}{service.name}.", method)
            self._add("service", prefix, service)
        for extension in proto.extension:
            self._add_extension(extension, prefix)

    def find(self, full_name: str, kinds: frozenset[str] | None = None) -> Symbol | None:
        """Return the symbol of one of `kinds` (default: all), in this file or else in a visible one (DescriptorPool.findSymbol).

        If two visible files declare the symbol, Java takes one of them, depending on the addresses of objects.
        """
        symbol = self.symbols.get(full_name)
        if symbol is not None and (kinds is None or symbol.kind in kinds):
            return symbol
        for file in self.visible_files:
            symbol = file.symbols.get(full_name)
            if symbol is not None and (kinds is None or symbol.kind in kinds):
                return symbol
        return None

    def find_type(self, name: str, *, user: str) -> Symbol:
        """Return the message or enum that `name` means in the part `user` (DescriptorPool.lookupSymbol).

        The innermost scope that has the first part of the name decides, even if it does not have the rest.

        Raises:
            RejectedDefinition: if the name is not defined.
        """
        if name.startswith("."):
            symbol = self.find(name[1:], _TYPES)
        else:
            first_part, dot, _ = name.partition(".")
            scope = user
            while True:
                scope, has_scope, _ = scope.rpartition(".")
                if not has_scope:
                    symbol = self.find(name, _TYPES)
                    break
                symbol = self.find(f"{scope}.{first_part}", _AGGREGATES)
                if symbol is not None:
                    if dot:
                        symbol = self.find(f"{scope}.{name}", _TYPES)
                    break
        if symbol is None:
            raise invalid_part(user, f'"{name}" is not defined.')
        return symbol

    def find_message(self, name: str) -> Symbol | None:
        """Return the message at the top level of this file, or None (FileDescriptor.findMessageTypeByName)."""
        symbol = self.find(f"{self.package}.{name}" if self.package else name)
        return symbol if symbol is not None and symbol.kind == "message" and symbol.file is self else None

    def _add_package(self, file: JavaFile) -> None:
        name = file.package
        while name not in self.symbols:
            self.symbols[name] = Symbol("package", name, file)
            if "." not in name:
                break
            name = name.rpartition(".")[0]

    def _add(self, kind: SymbolKind, prefix: str, proto: Any) -> None:
        """Add a symbol (DescriptorPool.addSymbol)."""
        name = proto.name
        full_name = prefix + name
        if not IDENTIFIER.fullmatch(name):
            raise invalid_part(full_name, f'"{name}" is not a valid identifier.' if name else "Missing name.")
        old = self.symbols.get(full_name)
        if old is not None:
            scope, dot, last_part = full_name.rpartition(".")
            if old.file is not self:
                problem = f'"{full_name}" is already defined in file "{old.file.name}".'
            elif dot:
                problem = f'"{last_part}" is already defined in "{scope}".'
            else:
                problem = f'"{full_name}" is already defined.'
            raise invalid_part(full_name, problem)
        self.symbols[full_name] = Symbol(kind, full_name, self, proto)

    def _add_message(self, message: DescriptorProto, prefix: str) -> None:
        full_name = prefix + message.name
        inner = f"{full_name}."
        for nested in message.nested_type:
            self._add_message(nested, inner)
        for enum in message.enum_type:
            self._add_enum(enum, inner)
        members: list[list[FieldDescriptorProto]] = [[] for _ in message.oneof_decl]
        for field in message.field:
            if field.number <= 0:
                raise invalid_part(inner + field.name, "Field numbers must be positive integers.")
            if field.HasField("extendee"):
                raise invalid_part(inner + field.name, "FieldDescriptorProto.extendee set for non-extension field.")
            if field.HasField("oneof_index"):
                if not 0 <= field.oneof_index < len(members):
                    raise invalid_part(
                        inner + field.name, f"FieldDescriptorProto.oneof_index is out of range for type {message.name}"
                    )
                members[field.oneof_index].append(field)
            self._add("field", inner, field)
        for extension in message.extension:
            self._add_extension(extension, inner)
        has_synthetic = False
        for fields in members:
            if len(fields) == 1 and fields[0].proto3_optional:
                has_synthetic = True
            elif has_synthetic:
                raise invalid_part(full_name, "Synthetic oneofs must come last.")
        self._add("message", prefix, message)

    def _add_extension(self, extension: FieldDescriptorProto, prefix: str) -> None:
        full_name = prefix + extension.name
        if extension.number <= 0:
            raise invalid_part(full_name, "Field numbers must be positive integers.")
        if not extension.HasField("extendee"):
            raise invalid_part(full_name, "FieldDescriptorProto.extendee not set for extension field.")
        if extension.HasField("oneof_index"):
            raise invalid_part(full_name, "FieldDescriptorProto.oneof_index set for extension field.")
        self._add("field", prefix, extension)

    def _add_enum(self, enum: EnumDescriptorProto, prefix: str) -> None:
        full_name = prefix + enum.name
        if not enum.value:
            raise invalid_part(full_name, "Enums must contain at least one value.")
        for value in enum.value:
            self._add("value", f"{full_name}.", value)
        self._add("enum", prefix, enum)

    def link_types(self) -> None:
        """Look up all types, and check what depends on them (FileDescriptor.crossLink).

        Raises:
            RejectedDefinition: if Java rejects it.
        """
        prefix = f"{self.package}." if self.package else ""
        for message in self.proto.message_type:
            self._link_message(message, prefix)
        for service in self.proto.service:
            for method in service.method:
                for name in (method.input_type, method.output_type):
                    full_name = f"{prefix}{service.name}.{method.name}"
                    if self.find_type(name, user=full_name).kind != "message":
                        raise invalid_part(full_name, f'"{name}" is not a message type.')
        for extension in self.proto.extension:
            self._link_field(extension, prefix + extension.name, None)

    def _link_message(self, message: DescriptorProto, prefix: str) -> None:
        full_name = prefix + message.name
        inner = f"{full_name}."
        for nested in message.nested_type:
            self._link_message(nested, inner)
        names: dict[int, str] = {}
        for field in message.field:
            self._link_field(field, inner + field.name, message)
        for field in sorted(message.field, key=lambda field: field.number):
            if field.number in names:
                raise invalid_part(
                    inner + field.name,
                    f'Field number {field.number} has already been used in "{full_name}" by field "{names[field.number]}".',
                )
            names[field.number] = field.name
        for extension in message.extension:
            self._link_field(extension, inner + extension.name, None)

    def _link_field(self, field: FieldDescriptorProto, full_name: str, message: DescriptorProto | None) -> None:
        if message is None:
            message = self._link_extendee(field, full_name)
        type_ = field.type if field.HasField("type") else None
        enum: Symbol | None = None
        if field.HasField("type_name"):
            symbol = self.find_type(field.type_name, user=full_name)
            if type_ is None:
                if symbol.kind not in _TYPES:
                    raise invalid_part(full_name, f'"{field.type_name}" is not a type.')
                type_ = MESSAGE if symbol.kind == "message" else ENUM
            if type_ in (MESSAGE, GROUP):
                if symbol.kind != "message":
                    raise invalid_part(full_name, f'"{field.type_name}" is not a message type.')
                if field.HasField("default_value"):
                    raise invalid_part(full_name, "Messages can't have default values.")
            elif type_ == ENUM:
                if symbol.kind != "enum":
                    raise invalid_part(full_name, f'"{field.type_name}" is not an enum type.')
                enum = symbol
            else:
                raise invalid_part(full_name, "Field with primitive type has type_name.")
        elif type_ is None:
            raise RejectedDefinition(
                _null_pointer(
                    '"com.google.protobuf.Descriptors$FieldDescriptor$Type.getJavaType()" because "this.type" is null'
                ),
                f"{full_name}: the field has neither type nor type_name",
            )
        elif type_ in (MESSAGE, GROUP, ENUM):
            raise invalid_part(full_name, "Field with message or enum type missing type_name.")
        is_repeated = field.label == _REPEATED
        if field.options.packed and not (is_repeated and type_ in PACKABLE):
            raise invalid_part(full_name, "[packed = true] can only be specified for repeated primitive fields.")
        if field.HasField("default_value"):
            if is_repeated:
                raise invalid_part(full_name, "Repeated fields cannot have default values.")
            _check_default(field, full_name, type_, enum)
        if message.options.message_set_wire_format:
            if not field.HasField("extendee"):
                raise invalid_part(full_name, "MessageSets cannot have fields, only extensions.")
            if field.label != FieldDescriptorProto.LABEL_OPTIONAL or type_ != MESSAGE:
                raise invalid_part(full_name, "Extensions of MessageSets must be optional messages.")

    def _link_extendee(self, extension: FieldDescriptorProto, full_name: str) -> DescriptorProto:
        """Return the extended message, which must list the extension's number."""
        extendee = self.find_type(extension.extendee, user=full_name)
        if extendee.kind != "message":
            raise invalid_part(full_name, f'"{extension.extendee}" is not a message type.')
        message: DescriptorProto = extendee.proto
        # Java sorts starts and ends apart, as if ranges never overlapped.
        starts = sorted(range_.start for range_ in message.extension_range)
        ends = sorted(range_.end for range_ in message.extension_range)
        index = _search_last_start(starts, extension.number)
        if index < 0 or extension.number >= ends[index]:
            raise invalid_part(
                full_name, f'"{extendee.full_name}" does not declare {extension.number} as an extension number.'
            )
        return message


def invalid_part(full_name: str, problem: str) -> RejectedDefinition:
    """Return the error for the part `full_name` (DescriptorValidationException)."""
    return RejectedDefinition(JavaException("DescriptorValidationException", f"{full_name}: {problem}"))


def _null_pointer(call: str) -> JavaException:
    return JavaException("NullPointerException", f"Cannot invoke {call}")


class RootMessage(NamedTuple):
    """The root message of a definition: its file, its full name, and the root file with its imports, each after its own imports."""

    file_name: str
    full_name: str
    reachable: tuple[str, ...]


def check_definition(
    files: Mapping[str, FileDescriptorProto], file_name: str | None, root_name: str | None
) -> RootMessage:
    """Return the root message of a definition with these files by name, as ProtobufNativeSchemaUtils.deserialize finds it.

    Raises:
        RejectedDefinition: if Java rejects a file, or does not find the root message.
    """
    built = build_files(files, file_name)
    try:
        root = find_root(built[file_name or ""], root_name)
        return RootMessage(root.file.name, root.full_name, tuple(built))
    finally:
        _release(built)


def check_files(files: Mapping[str, FileDescriptorProto], name: str) -> None:
    """Check that Java accepts the file `name` and its imports.

    Raises:
        RejectedDefinition: if Java rejects one.
    """
    _release(build_files(files, name))


def _release(files: Mapping[str, JavaFile]) -> None:
    """Free the memory of `files` without a garbage collection: files and symbols refer to each other."""
    for file in files.values():
        file.symbols.clear()


_MAX_IMPORT_DEPTH: Final = 1_750
"""How deeply files may import each other: the stack of a broker's thread overflows between 1,500 and 2,000."""


def build_files(files: Mapping[str, FileDescriptorProto], name: str | None) -> dict[str, JavaFile]:
    """Build the file `name` and its imports, and return them by name, each after its own imports. `name` None is not the name of a file.

    The imports are built in the order of ProtobufNativeSchemaUtils.deserializeFileDescriptor, so the first problem is also Java's first.

    Raises:
        RejectedDefinition: if Java rejects one; the Java exception is StackOverflowError if a file imports itself.
    """
    built: dict[str, JavaFile] = {}
    pending: list[tuple[FileDescriptorProto, Iterator[str]]] = []
    unfinished: set[str] = set()

    def begin(proto: FileDescriptorProto | None, problem: str) -> None:
        if proto is None:
            java = _null_pointer(
                '"com.google.protobuf.DescriptorProtos$FileDescriptorProto.getDependencyList()" '
                'because "fileDescriptorProto" is null'
            )
            raise RejectedDefinition(java, problem)
        if proto.name in unfinished:
            raise RejectedDefinition(stack_overflow(), f"{proto.name} imports itself, directly or through others")
        if len(unfinished) > _MAX_IMPORT_DEPTH:
            raise RejectedDefinition(stack_overflow(), f"{proto.name} is imported through too many other files")
        unfinished.add(proto.name)
        pending.append((proto, iter(proto.dependency)))

    problem = "`rootFileDescriptorName` is missing"
    if name is not None:
        problem = f"the descriptor set has no file {name!r}, which `rootFileDescriptorName` names"
    begin(None if name is None else files.get(name), problem)
    while pending:
        proto, imports = pending[-1]
        missing = next((dependency for dependency in imports if dependency not in built), None)
        if missing is not None:
            begin(files.get(missing), f"the descriptor set does not have {missing}, which is imported")
            continue
        pending.pop()
        file = JavaFile(proto, [built[dependency] for dependency in proto.dependency])
        file.link_types()
        built[proto.name] = file
        unfinished.discard(proto.name)
    return built


def find_root(file: JavaFile, name: str | None) -> Symbol:
    """Return the message that `name` refers to in the root file, with or without the package (ProtobufNativeSchemaUtils.deserialize).

    Raises:
        RejectedDefinition: if the file does not declare it, or if the package is not a regular expression.
    """
    if name is None:
        java = _null_pointer(
            '"String.replaceFirst(String, String)" because the return value of '
            '"org.apache.commons.lang3.StringUtils.removeFirst(String, String)" is null'
        )
        raise RejectedDefinition(java, "`rootMessageTypeName` is missing")
    problem = f"{file.name} declares no message {name!r}, which `rootMessageTypeName` names"
    nested_name = _remove_package(name, file).replace(".", "", 1)
    # Java's split omits empty texts at the end, but returns an empty text unchanged.
    parts = nested_name.rstrip(".").split(".")
    if nested_name and parts == [""]:
        java = JavaException("ArrayIndexOutOfBoundsException", "Index 0 out of bounds for length 0")
        raise RejectedDefinition(java, problem)
    message = file.find_message(parts[0])
    method = "getFullName()"
    for part in parts[1:]:
        if message is None:
            method = "findNestedTypeByName(String)"
            break
        nested = message.file.find(f"{message.full_name}.{part}")
        message = nested if nested is not None and nested.kind == "message" else None
    if message is None:
        call = f'"com.google.protobuf.Descriptors$Descriptor.{method}" because "descriptor" is null'
        raise RejectedDefinition(_null_pointer(call), problem)
    return message


_MAX_SEARCH_WORK: Final = 10_000_000
"""The maximum product of the lengths of a package and a root name: Java would search one in the other for minutes."""

_EXPRESSION: Final = re.compile(r"[*+?|^$\\(\[{)]")
_QUANTIFIER: Final = re.compile(r"\{\d+(?:,\d*)?\}|[*+?]")
_MAX_QUANTIFIERS: Final = 2
_MAX_SEARCHED_LENGTH: Final = 500
"""The limits of a package with quantifiers and of the root name: a search can take the power of one with the other."""

_NOT_SEARCHED: Final = re.compile(r"\{(?!\d+(?:,\d*)?\})|\\p|\[.*(?:&&|--|~~|\|\||\[)|\)[*+?{]", re.IGNORECASE)
"""Parts that Java reads in another way than Python (single braces, properties of characters, sets of sets), and repeated groups."""


def _remove_package(name: str, file: JavaFile) -> str:
    """Remove the first match of the package, which Pulsar uses as a regular expression, anywhere in the name."""
    package = file.package
    is_plain = not _EXPRESSION.search(package)
    if is_plain and name.startswith(package):
        return name[len(package) :]
    if len(package) * len(name) > _MAX_SEARCH_WORK:
        raise RejectedDefinition(stack_overflow(), f"the package of {file.name} and `rootMessageTypeName` are too long")
    pattern: str | None = package.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    if is_plain:
        pattern = "".join(
            r"[^\n\r\u0085\u2028\u2029]" if character == "." else re.escape(character) for character in package
        )
    elif quoted := re.fullmatch(r"\\Q(.*?)(?:\\E)?", package, re.DOTALL):
        pattern = re.escape(quoted[1])
    elif (
        _NOT_SEARCHED.search(package)
        or len(_QUANTIFIER.findall(package)) > _MAX_QUANTIFIERS
        or len(name) > _MAX_SEARCHED_LENGTH
    ):
        pattern = None
    if pattern is not None:
        with suppress(re.error):
            return re.sub(pattern, "", name, count=1)
    java = JavaException("PatternSyntaxException")
    raise RejectedDefinition(java, f"the package {package!r} of {file.name} is not a regular expression")


def _search_last_start(starts: Sequence[int], number: int) -> int:
    """Return the index of the last start up to `number`, or -1; Arrays.binarySearch selects between equal starts."""
    low, high = 0, len(starts) - 1
    while low <= high:
        middle = (low + high) // 2
        if starts[middle] == number:
            return middle
        if starts[middle] < number:
            low = middle + 1
        else:
            high = middle - 1
    return low - 1


# Defaults


def _check_default(field: FieldDescriptorProto, full_name: str, type_: Kind, enum: Symbol | None) -> None:
    if enum is not None:
        value = enum.file.find(f"{enum.full_name}.{field.default_value}")
        if value is None or value.kind != "value":
            raise invalid_part(full_name, f'Unknown enum default value: "{field.default_value}"')
        return
    try:
        parse_default(field.default_value, type_)
    except EscapeError as error:
        raise invalid_part(full_name, f"Couldn't parse default value: {error}") from None
    except ValueError:
        raise invalid_part(full_name, f'Could not parse default value: "{field.default_value}"') from None


class EscapeError(ValueError):
    """An escape sequence in the default of a field of type bytes is invalid."""


def parse_default(text: str, type_: Kind) -> Default:
    """Return the value of a default as Java parses it; `type_` is not an enum or a message.

    Raises:
        ValueError: if Java throws NumberFormatException.
        EscapeError: if Java throws InvalidEscapeSequenceException.
    """
    if type_ == STRING:
        return text
    if type_ == BYTES:
        return _unescape(text)
    if type_ == BOOL:
        return text.lower() == "true"
    if type_ in (FLOAT, DOUBLE):
        return _parse_float(text, single=type_ == FLOAT)
    is_signed = type_ in _SIGNED_32 or type_ in _SIGNED_64
    return _parse_integer(text, bits=32 if type_ in _SIGNED_32 or type_ in _UNSIGNED_32 else 64, is_signed=is_signed)


def _parse_integer(text: str, *, bits: int, is_signed: bool) -> int:
    """Parse decimal, hexadecimal (0x) and octal (0) digits (TextFormat.parseInteger)."""
    is_negative = text.startswith("-")
    if is_negative and not is_signed:
        raise ValueError("the number must be positive")
    digits, radix = text[is_negative:], 10
    if digits.startswith("0x"):
        digits, radix = digits[2:], 16
    elif digits.startswith("0"):
        radix = 8
    # A sign is accepted once more, after the prefix.
    if not (_HEX_INTEGER if radix == 16 else _INTEGER).fullmatch(digits):
        raise ValueError("not a number")
    value = int(digits, radix)
    if is_negative:
        value = -value
    if bits == 64 and len(digits) < _SHORT_NUMBER:
        # Java checks no bounds of 64-bit numbers with few digits.
        return value
    low, high = (-1 << bits - 1, 1 << bits - 1) if is_signed else (0, 1 << bits)
    if len(digits) >= _SHORT_NUMBER and not is_signed:
        # The length in bits of a negative number is checked instead of its sign.
        low = -1 << bits
    if not low <= value < high:
        raise ValueError("the number is out of range")
    return value


def _parse_float(text: str, *, single: bool) -> float:
    if text in ("inf", "-inf", "nan"):
        return float(text)
    match = _FLOAT_TEXT.fullmatch(text)
    if match is None:
        raise ValueError("not a number")
    number = match["number"]
    if "NaN" in number:
        return math.nan
    if "Infinity" in number:
        return -math.inf if number.startswith("-") else math.inf
    try:
        number = number.rstrip("fFdD")
        value = float.fromhex(number) if "x" in number.lower() else float(number)
    except OverflowError:
        value = -math.inf if number.startswith("-") else math.inf
    return to_float32(value) if single else value


def to_float32(value: float) -> float:
    """Return `value` rounded to 32 bits."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _unescape(text: str) -> bytes:
    """Return the bytes of a default (TextFormat.unescapeBytes)."""

    def replace(match: re.Match[bytes]) -> bytes:
        if match["octal"]:
            return bytes([int(match["octal"], 8) & 0xFF])
        if match["hex"]:
            return bytes([int(match["hex"], 16)])
        if match["letter"]:
            return bytes([_LETTERS[match["letter"][0]]])
        digits = match["short"] or match["long"]
        if digits:
            code = int(digits, 16)
            if code > 0x10FFFF:
                raise EscapeError(rf"Invalid escape sequence: '\U{digits.decode()}' is not a valid code point value")
            if 0xD800 <= code <= 0xDFFF:
                reference = (
                    rf"'\U{digits.decode()}' refers to a surrogate code unit"
                    if match["long"]
                    else r"'\u' refers to a surrogate"
                )
                raise EscapeError(f"Invalid escape sequence: {reference}")
            return chr(code).encode()
        invalid: bytes = match["invalid"]
        reason = {
            b"": r"'\' at end of string.",
            b"x": r"'\x' with no digits",
            b"u": r"'\u' with too few hex chars",
            b"U": r"'\U' with too few hex chars",
        }
        raise EscapeError("Invalid escape sequence: " + reason.get(invalid, rf"'\{invalid.decode('latin-1')}'"))

    return _ESCAPE.sub(replace, text.encode("utf-8", "replace"))
