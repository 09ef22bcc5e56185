"""Read and write the definition of a PROTOBUF_NATIVE schema, and find the place of each part in its `.proto` text.

The stored bytes are a JSON object with a descriptor set and the name of the root message. They are read as leniently as Pulsar
reads them (ProtobufNativeSchemaUtils.deserialize, Jackson's defaults), and always written the same way.

A pointer names a part instead of its position, so it survives edits and works in other versions:

    ""                                        the root message
    /messages/web.Click                       a message; its map entries are messages too
    /messages/web.Click/fields/3              a field by number; below it `type`, `name`, `default`, `json_name`, ...
    /messages/web.Click/oneofs/target         a oneof
    /enums/web.Kind                           an enum; below it `values/KIND_AD`
    /extensions/web.note                      an extension by its full name
    /services/web.Clicks/methods/List         an RPC; below it `input_type`, `output_type`, ...
    /files/web~1click.proto                   a file; below it `package`

The text printer rejects parts that it cannot print (groups, custom options). To verify a printed text, compile it again and compare.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from schemactl.codec.definition import Unreadable
from schemactl.codec.wire_format import decode_varint, encode_varint
from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.escaping import quote_proto
from schemactl.core.json_values import reject_constant
from schemactl.core.schema import Locator
from schemactl.formats.avro.schema import JavaException
from schemactl.formats.protobuf.default_texts import normalize_float_default
from schemactl.formats.protobuf.descriptor import (
    MAX_ENUM_NUMBER,
    MAX_FIELD_NUMBER,
    Element,
    EnumValue,
    File,
    Image,
    Method,
    Oneof,
    Path,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    Span,
    default_json_name,
    is_map_entry,
    iterate_fields,
)
from schemactl.formats.protobuf.java_descriptors import RejectedDefinition, check_definition, check_files
from schemactl.formats.protobuf.kinds import ENUM, FLOAT_KINDS, MAP, REPEATED, REQUIRED
from schemactl.formats.protobuf.python_runtime import adapt_files

BROKER_MESSAGE = "deserialize ProtobufNative Schema failed"
"""The message of a broker for every definition that it cannot read."""

ENVELOPE_KEYS: Final = ("fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName")
"""The keys of the JSON object that Pulsar stores (ProtobufNativeSchemaData)."""

_BASE64_PART = re.compile(r"(?:[\x00-\x20]*+[A-Za-z0-9+/]{4})*+[\x00-\x20]*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?+")
_BASE64 = re.compile(r"(?:[\x00-\x20]*+(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=))*+[\x00-\x20]*+")
"""Base64 as Jackson reads it: white space between groups of four, and padding."""

_WHITESPACE = " \t\r\n"
_ENCODED_VALUE = re.compile(r'("fileDescriptorSet"\s*:\s*")([^"\\]*)')
_CONTROL = re.compile(r"[\x00-\x20]+")
_NOT_UTF8 = re.compile(r"[\ud800-\udfff]")

_SHIPPED = "google/protobuf/"
"""The folder of protoc's own files: their content depends on the compiler's release, not on the user."""

_SMALL_BYTES = 100_000
"""Parsed definitions up to this size are cached by the hundred, larger ones by the handful."""

_NAMED_TYPES = (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM)
_REPEATED = FieldDescriptorProto.LABEL_REPEATED
_REQUIRED = FieldDescriptorProto.LABEL_REQUIRED

Place: TypeAlias = tuple[Element, str]
"""An element, and the label of a part of it, or "" for the whole element."""

# The paths from an element's descriptor to the parts with a label. A path is split if its first half leads to the `features` of
# options: then the text can name the part in several ways, and the nearest one counts.
_LABELS: Mapping[type, Mapping[str, tuple[Path, Path]]] = {
    ProtoField: {"name": ((), (1,)), "type": ((), (5,)), "default": ((), (7,)), "json_name": ((), (10,))},
    ProtoMessage: {"message_set_wire_format": ((), (7, 1)), "json_format": ((7, 12), (6,))},
    ProtoEnum: {"enum_type": ((3, 7), (2,)), "json_format": ((3, 7), (6,))},
    EnumValue: {"number": ((), (2,))},
    Method: {"input_type": ((), (2,)), "output_type": ((), (3,)), "idempotency_level": ((), (4, 34))},
    File: {"package": ((), (2,))},
}


@dataclass(frozen=True, eq=False)
class ProtoDefinition:
    """A parsed PROTOBUF_NATIVE definition.

    Attributes:
        image: all files of the descriptor set.
        root: the root message.
        reachable: the names of the root's file and of its direct and indirect imports, each after its own imports.
    """

    image: Image
    root: ProtoMessage
    reachable: tuple[str, ...]

    @cached_property
    def identity(self) -> tuple[str, str]:
        """The root's full name, and a digest of the declarations in the reachable files.

        Source info, the names and order of files (a moved file declares the same), JSON names that equal the default, the texts
        of float defaults, and the content of protoc's own files do not count. Type names count as they were stored, with or without a leading dot.
        """
        return self.root.full_name, digest_files(self.image.files[name].stored_proto for name in self.reachable)


def parse(schema: bytes) -> ProtoDefinition:
    """Return the definition in `schema`; accept exactly the definitions that a broker accepts.

    A root name without its package, unknown keys and files without an import are accepted.

    Raises:
        InvalidSchema: if a broker rejects it; the message starts with the broker's.
    """
    try:
        return _parse_small(schema) if len(schema) <= _SMALL_BYTES else _parse_large(schema)
    except RejectedDefinition as error:
        raise RejectedDefinition(error.java, f"{BROKER_MESSAGE}: {error.message}") from error
    except InvalidSchema as error:
        raise InvalidSchema(f"{BROKER_MESSAGE}: {error.message}", fix=error.fix) from error


def _parse(schema: bytes) -> ProtoDefinition:
    data, root_name, file_name = _read_envelope(schema)
    image = _read_image(data)
    root = check_definition(image.stored_protos, file_name, root_name)
    return ProtoDefinition(image, image.files[root.file_name].declared.messages[root.full_name], root.reachable)


_parse_small = lru_cache(maxsize=256)(_parse)
_parse_large = lru_cache(maxsize=8)(_parse)


def _read_envelope(schema: bytes) -> tuple[bytes, str | None, str | None]:
    """Return the three values of the JSON object, as Jackson reads ProtobufNativeSchemaData; text after the object is ignored.

    Raises:
        InvalidSchema: if Jackson rejects them, or there is no descriptor set.
    """
    encoding = json.detect_encoding(schema)
    text = schema.decode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "replace").lstrip(_WHITESPACE)
    problem = "not a JSON object with " + ", ".join(ENVELOPE_KEYS)
    try:
        try:
            envelope, end = _DECODER.raw_decode(text)
        except ValueError:
            # Jackson skips white space in base64, even if it is not escaped.
            text = _ENCODED_VALUE.sub(lambda match: match[1] + _CONTROL.sub(" ", match[2]), text, count=1)
            envelope, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(problem) from error
    if envelope is None:
        java = JavaException(
            "NullPointerException",
            'Cannot invoke "org.apache.pulsar.common.protocol.schema.ProtobufNativeSchemaData.getFileDescriptorSet()" '
            'because "schemaData" is null',
        )
        raise RejectedDefinition(java, problem)
    if not isinstance(envelope, _JsonObject) or _NOT_UTF8.search(text, 0, end) or _is_nested_too_deeply(text[:end]):
        raise InvalidSchema(problem)
    data: bytes | None = None
    names: dict[str, str | None] = {}
    for key, value in envelope.pairs:
        if key == ENVELOPE_KEYS[0]:
            data = _decode_bytes(value)
        elif key in ENVELOPE_KEYS:
            if isinstance(value, (_JsonObject, list)):
                raise InvalidSchema("its values are text")
            names[key] = value if value is None or isinstance(value, str) else "true" if value else "false"
    if data is None:
        java = JavaException("NullPointerException", 'Cannot read the array length because "data" is null')
        raise RejectedDefinition(java, "`fileDescriptorSet` is missing")
    return data, names.get(ENVELOPE_KEYS[1]), names.get(ENVELOPE_KEYS[2])


def _is_nested_too_deeply(text: str) -> bool:
    """Return whether Jackson rejects the JSON text for its depth."""
    if text.count("[") + text.count("{") <= _MAX_DEPTH:
        return False
    depth = max_depth = 0
    for token in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        max_depth = max(max_depth, depth)
    return max_depth > _MAX_DEPTH


class _JsonObject:
    """A JSON object with all its pairs, of which Jackson reads each."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


_MAX_DIGITS = 1_000
"""How many digits of a number Jackson reads."""

_MAX_DEPTH = 1_000
"""How many levels of objects and arrays Jackson reads."""

_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]')


class _Number(str):
    """A JSON number in its own digits: Jackson also accepts it as text."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_DIGITS and sum(map(str.isdecimal, text)) > _MAX_DIGITS:
            raise ValueError("a number has too many digits")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_JsonObject, parse_int=_Number, parse_float=_Number, parse_constant=reject_constant
)


def _decode_bytes(value: Any) -> bytes | None:
    """Return the bytes that Jackson reads from base64 or from an array of numbers, or None for null."""
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, _Number):
        if not _BASE64.fullmatch(value):
            raise InvalidSchema("`fileDescriptorSet` is not base64")
        # After padding, another text in base64 may follow.
        return b"".join(base64.b64decode(part) for part in _BASE64_PART.findall(value))
    if isinstance(value, list):
        try:
            numbers = [0 if item is None else int(float(item) if "." in item else item) for item in value]
            if all(-0x80 <= number <= 0xFF for number in numbers):
                return bytes(number & 0xFF for number in numbers)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InvalidSchema("`fileDescriptorSet` is not base64")


def _read_image(data: bytes) -> Image:
    """Return the files of a serialized descriptor set; text that is not UTF-8 is read as Java reads it, with U+FFFD.

    Raises:
        InvalidSchema: if it is not a descriptor set.
    """
    try:
        try:
            # protobuf's own parser of descriptors does not check that texts are UTF-8.
            _make_strict_class().FromString(data)
        except DecodeError:
            data = _rewrite_as_java_reads(data, FileDescriptorSet.DESCRIPTOR)
        files = FileDescriptorSet.FromString(data)
    except DecodeError as error:
        raise InvalidSchema(
            "not a serialized FileDescriptorSet", fix="write it with: protoc --include_imports --descriptor_set_out"
        ) from error
    if not files.IsInitialized():
        raise InvalidSchema("an uninterpreted option lacks a required field")
    return Image.of(files)


@cache
def _make_strict_class() -> Any:
    """Make the class of descriptor sets whose texts are validated."""
    file = FileDescriptorProto()
    FileDescriptorSet.DESCRIPTOR.file.CopyToProto(file)
    file.syntax, file.edition = "editions", EDITION_2023
    features = file.options.features
    features.utf8_validation, features.enum_type = FeatureSet.VERIFY, FeatureSet.CLOSED
    pending = list(file.message_type)
    while pending:
        message = pending.pop()
        pending += message.nested_type
        for field in message.field:
            if field.label == _REQUIRED:
                field.label = FieldDescriptorProto.LABEL_OPTIONAL
            field.options.ClearField("packed")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(FileDescriptorSet.DESCRIPTOR.full_name))


def _rewrite_as_java_reads(data: bytes, message: Any) -> bytes:
    """Return a serialized `message` in the usual form: Java accepts tags and sizes of up to ten bytes, and texts that are not UTF-8.

    Raises:
        DecodeError: if it is not a message.
    """
    rewritten = bytearray()
    position = 0

    def read_number(position: int) -> tuple[int, int]:
        try:
            value, position = decode_varint(data, position)
        except Unreadable as error:
            raise DecodeError(str(error)) from None
        return value & 0xFFFFFFFF, position

    while position < len(data):
        tag, start = read_number(position)
        rewritten += encode_varint(tag)
        wire_type, position = tag & 7, start
        if wire_type == 2:
            size, start = read_number(position)
            position = start + size
            body = data[start:position]
            field = message.fields_by_number.get(tag >> 3)
            if field is not None and field.type == FieldDescriptorProto.TYPE_STRING:
                body = body.decode("utf-8", "replace").encode()
            elif field is not None and field.message_type:
                body = _rewrite_as_java_reads(body, field.message_type)
            rewritten += encode_varint(len(body)) + body
        elif wire_type == 0:
            _, position = read_number(start)
            rewritten += data[start:position]
        else:
            position += {1: 8, 5: 4}.get(wire_type, 0)
            rewritten += data[start:position]
        if position > len(data):
            raise DecodeError("the message ends early")
    return bytes(rewritten)


def find_message(image: Image, message: str, *, among: Collection[str] = ()) -> ProtoMessage:
    """Return the message with this full name in the files `among`, or in any file if `among` is empty.

    Raises:
        InvalidSchema: if there is no such message; its pointer is /message, the key that names the message.
    """
    root = image.declared.messages.get(message)
    if root is not None and (not among or root.file.name in among):
        return root
    names = [
        other.full_name
        for other in image.declared.messages.values()
        if not other.is_map_entry and (other.file.name in among if among else not is_shipped(other.file.name))
    ]
    choices = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise InvalidSchema(
        f"no message is called {message!r}",
        pointer="/message",
        fix=f"write {'one of ' if len(names) > 1 else ''}{choices}" if choices else "declare it in the definition",
    )


def find_required_cycles(root: ProtoMessage) -> Iterator[list[ProtoField]]:
    """Yield the required fields by which a message that `root` reaches must contain itself, from that message back to it.

    No such message can be written. If a message has several such fields, its first one counts.
    """
    required_fields: dict[str, list[ProtoField]] = {}
    users: dict[str, list[str]] = {}
    pending = [root]
    while pending:
        message = pending.pop()
        if message.full_name in required_fields:
            continue
        fields = [field for field in message.fields().values() if field.is_message]
        required_fields[message.full_name] = [field for field in fields if field.cardinality == REQUIRED]
        for field in required_fields[message.full_name]:
            users.setdefault(field.type_name, []).append(message.full_name)
        pending.extend(field.message_type for field in reversed(fields))

    # A message can be written as soon as all its required fields can be.
    counts = {name: len(fields) for name, fields in required_fields.items()}
    writable = [name for name, count in counts.items() if not count]
    for name in writable:
        for user in users.get(name, ()):
            counts[user] -= 1
            if not counts[user]:
                writable.append(user)

    # Each other message has a required field of an unwritable type: the way along these fields ends in a cycle.
    next_fields = {
        name: next(field for field in fields if counts[field.type_name])
        for name, fields in required_fields.items()
        if counts[name]
    }
    visited: set[str] = set()
    for start in next_fields:
        way: list[str] = []
        name = start
        while name not in visited:
            visited.add(name)
            way.append(name)
            name = next_fields[name].type_name
        if name in way:
            yield [next_fields[member] for member in way[way.index(name) :]]


def is_shipped(name: str) -> bool:
    """Return whether the file `name` comes with protoc."""
    return name.startswith(_SHIPPED)


def digest_files(files: Iterable[FileDescriptorProto]) -> str:
    """Return a digest of the declarations in `files`, without protoc's own files."""
    return combine_digests(digest_content(file) for file in files if not is_shipped(file.name))


def combine_digests(digests: Iterable[bytes]) -> str:
    """Return the digest of files in any order from the `digest_content` of each."""
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def digest_content(file: FileDescriptorProto) -> bytes:
    """Return bytes of fixed length that are equal for files with equal declarations (see `ProtoDefinition.identity`)."""
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    for attribute in ("name", "dependency", "public_dependency", "weak_dependency", "option_dependency"):
        copy.ClearField(attribute)
    if copy.syntax == "proto2":
        copy.ClearField("syntax")
    for field, _ in iterate_fields(copy):
        if field.json_name == default_json_name(field.name):
            field.ClearField("json_name")
        if field.type in FLOAT_KINDS and field.HasField("default_value"):
            field.default_value = normalize_float_default(field.default_value, field.type)
    return hashlib.sha256(copy.SerializeToString(deterministic=True)).digest()


def from_descriptor_set(data: bytes, message: str) -> ProtoMessage:
    """Return the message with this full name in a serialized FileDescriptorSet (`protoc --descriptor_set_out`, `buf build`).

    Raises:
        InvalidSchema: if `data` is not a descriptor set, its files do not fit together, or it has no such message.
    """
    image = _read_image(data)
    find_message(image, message)
    # Of several files that declare it, the root's file imports the others.
    files = [file for file in image.files.values() if message in file.declared.messages]
    root_file = max(files, key=lambda file: len(image.list_reachable(file.name)))
    check_files(image.stored_protos, root_file.name)
    return root_file.declared.messages[message]


def make_descriptor_set(schema: bytes) -> tuple[bytes, str]:
    """Return the FileDescriptorSet in `schema` with all its files in their order, and the root's full name.

    Raises:
        InvalidSchema: if a broker rejects it.
    """
    definition = parse(schema)
    files = FileDescriptorSet(file=definition.image.stored_protos.values())
    return files.SerializeToString(deterministic=True), definition.root.full_name


def adapt_for_python(schema: bytes) -> bytes:
    """Return the definition as Python's protobuf can load it: the same bytes if it can, else with the same messages on the wire.

    Raises:
        InvalidSchema: if a broker rejects it, or if Python's protobuf cannot have its types.
    """
    definition = parse(schema)
    root, image = definition.root, definition.image
    files = adapt_files(image, definition.reachable)
    try:
        envelope = json.loads(schema)
        is_usual = base64.b64decode(envelope[ENVELOPE_KEYS[0]], validate=True) and envelope[ENVELOPE_KEYS[1]] in (
            root.full_name,
            root.nested_name,
        )
        if files is None and is_usual and image.files[envelope[ENVELOPE_KEYS[2]]] is root.file:
            return schema
    except (ValueError, TypeError, KeyError):
        pass
    protos = files or [image.files[name].proto for name in definition.reachable]
    data = FileDescriptorSet(file=protos).SerializeToString(deterministic=True)
    values = (base64.b64encode(data).decode(), root.full_name, root.file.name)
    return json.dumps(dict(zip(ENVELOPE_KEYS, values, strict=True)), separators=(",", ":")).encode()


# Places in the `.proto` file


def find_span(place: Place) -> Span | None:
    """Return the position of `place` in the text, or None if the text does not have it or it is a whole file.

    The parts of a map entry, which protoc makes for a map field, are at the type of this field.
    """
    element, label = place
    file = element.file
    if isinstance(element, ProtoField) and label == "type":
        # A group has both, because its name is its type.
        type_name_span = file.places.span((*element.path, 6)) if element.type_name else None
        span = type_name_span or file.places.span((*element.path, 5))
    elif label:
        features, rest = _LABELS[type(element)][label]
        prefix = (*element.path, *features)
        path = (*prefix, *rest)
        span = file.places.span(path)
        if span is None and features:
            # The first part below the path, or else the longest known part of the path below the features.
            nearest_paths = [path[:length] for length in range(len(path), len(prefix) - 1, -1)]
            if inner_path := file.places.first_below(path):
                nearest_paths = [inner_path]
            span = next(filter(None, map(file.places.span, nearest_paths)), None)
    else:
        span = file.places.span(element.path) if element.path else None
    message = element.message if isinstance(element, ProtoField) else element
    if span or not isinstance(message, ProtoMessage) or not message.is_map_entry or message.parent is None:
        return span
    map_fields = (field for field in message.parent.fields().values() if field.type_name == message.full_name)
    return next((find_span((field, "type")) for field in map_fields), None)


def find_place(image: Image, pointer: str) -> Place | None:
    """Return the place in `image` nearest to `pointer` (the part, its element or an enclosing element), or None."""
    prefix, label = pointer, ""
    while prefix:
        element = image.by_pointer.get(prefix)
        if element is not None:
            return element, label if label in _LABELS.get(type(element), ()) else ""
        prefix, _, label = prefix.rpartition("/")
        if prefix in ("/messages", "/enums"):
            # For a removed message or enum, the enclosing message is the nearest.
            parent = label.rpartition(".")[0]
            prefix, label = parent and f"/messages/{parent}", ""
    return None


def make_locator(
    read_root: Callable[[], ProtoMessage], *, paths: Mapping[str, str], texts: Mapping[str, bytes], elsewhere: Source
) -> Locator:
    """Return a function that finds the place in the user's files nearest to a pointer.

    Args:
        read_root: reads the root message; called for the first pointer, because descriptors with source info are large.
        paths: the paths of the user's files by import name. A part in no such file is located at the root message.
        texts: the texts of these files by import name.
        elsewhere: the result if the root message has no place, either.
    """
    read_once = cache(read_root)

    def to_source(place: Place) -> Source | None:
        span, name = find_span(place), place[0].file.name
        if span is None and isinstance(place[0], File) and not place[1]:
            span = Span(1, 1)
        if span is None or name not in paths:
            return None
        return make_source(paths[name], texts.get(name, b""), span)

    def locate(pointer: str) -> Source:
        root = read_once()
        nearest = find_place(root.file.image, pointer)
        places = [nearest, (nearest[0], ""), (root, "")] if nearest else [(root, "")]
        return next(filter(None, map(to_source, places)), elsewhere)

    return locate


def make_source(path: str, text: bytes, span: Span) -> Source:
    """Convert protoc's position, which counts bytes and expands a tab to the next multiple of eight, to code points."""
    lines = text.split(b"\n", span.line)
    line = lines[span.line - 1].decode(errors="replace") if span.line <= len(lines) else ""
    column, end = _to_code_point_column(line, span.column), len(line.rstrip()) + 1
    return Source(path, span.line, column, end if end > column else None)


def _to_code_point_column(line: str, protoc_column: int) -> int:
    if line.isascii() and "\t" not in line:
        return protoc_column
    width = 0
    for column, character in enumerate(line, start=1):
        if width >= protoc_column - 1:
            return column
        width += 8 - width % 8 if character == "\t" else len(character.encode())
    return len(line) + 1 if line else protoc_column


def read_comments(read_root: Callable[[], ProtoMessage]) -> Mapping[str, str]:
    """Return the comments in the user's files, by the pointers of the elements that they describe."""
    comments_by_pointer = {}
    for pointer, element in read_root().file.image.by_pointer.items():
        comment = "" if is_shipped(element.file.name) else element.file.places.comment(element.path)
        if comment:
            comments_by_pointer[pointer] = comment
    return comments_by_pointer


def get_doc(field: ProtoField, comments: Mapping[str, str]) -> str:
    """Return the comment of a field, else the comment of its message or enum type, else ""."""
    value = field.value
    value_type = value.message_type if value.is_message else value.enum if value.kind == ENUM else None
    return comments.get(field.pointer) or (comments.get(value_type.pointer, "") if value_type else "")


def field_path(pointer: str, *roots: ProtoMessage) -> str:
    """Return the path of fields to `pointer`, such as `Click.user.emails[]`, from the first root that reaches it.

    An element that no field reaches has its own name instead.
    """
    places = [(root, find_place(root.file.image, pointer)) for root in roots]
    elements = [(root, place[0]) for root, place in places if place and pointer.startswith(place[0].pointer)]
    paths = (path for root, element in elements if (path := _find_path(root, element)))
    return next(paths, elements[0][1].nested_name if elements else roots[0].nested_name)


def _find_path(root: ProtoMessage, element: Element) -> str:
    """Return the shortest path of fields from `root` to an element, or "" if no field reaches it."""
    paths = {root.full_name: root.proto.name}
    queue = deque([root])
    while queue:
        message = queue.popleft()
        for field in message.fields().values():
            if field.type_name and field.type_name not in paths:
                paths[field.type_name] = paths[message.full_name] + _field_step(field)
                if field.is_message:
                    queue.append(field.message_type)
    match element:
        case ProtoMessage() | ProtoEnum():
            return paths.get(element.full_name, "")
        case EnumValue():
            return paths.get(element.enum.full_name, "")
        case ProtoField() | Oneof() if element.message and element.message.full_name in paths:
            step = _field_step(element) if isinstance(element, ProtoField) else f".{element.name}"
            return paths[element.message.full_name] + step
    return ""


def _field_step(field: ProtoField) -> str:
    """Return the step to the values of a field: `.emails[]` for a list, `.tags{}` for a map."""
    if field.in_map_entry:
        return "" if field.proto.number == 2 else ".key"
    return f".{field.proto.name}" + {MAP: "{}", REPEATED: "[]"}.get(field.cardinality, "")


# Text of a file descriptor


def proto_text(file: FileDescriptorProto, comments: Mapping[str, str] | None = None) -> str:
    """Return the text of `file`: indented by two spaces, in the descriptor's order, with the full names of types.

    Args:
        file: the file.
        comments: a line to write before each message with this full name, as a comment.

    Raises:
        InvalidSchema: if it has a part that cannot be printed.
    """
    return "\n".join(_Printer(file, comments or {}).list_lines()) + "\n"


class _Printer:
    """The lines of one file and its parts."""

    def __init__(self, file: FileDescriptorProto, comments: Mapping[str, str]) -> None:
        self._file = file
        self._comments = comments
        self._syntax = file.syntax or "proto2"

    def list_lines(self) -> Iterator[str]:
        file = self._file
        if self._syntax == "editions":
            yield f'edition = "{Edition.Name(file.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{self._syntax}";'
        if file.package:
            yield f"package {file.package};"
        for number, name in enumerate(file.dependency):
            kind = "public " if number in file.public_dependency else ""
            kind = "weak " if number in file.weak_dependency else kind
            yield f"import {kind}{quote_proto(name)};"
        yield from _option_lines(file.options)
        for message in file.message_type:
            yield from ("", *self._message_lines(message, file.package))
        for enum in file.enum_type:
            yield from ("", *self._enum_lines(enum))
        if file.extension:
            yield from ("", *self._extension_lines(file.extension))
        for service in file.service:
            lines = [*_option_lines(service.options)]
            for method in service.method:
                request = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
                response = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
                head = f"rpc {method.name} ({request}) returns ({response})"
                options = [*_option_lines(method.options)]
                lines += _block_lines(head, options) if options else [f"{head};"]
            yield from ("", *_block_lines(f"service {service.name}", lines))

    def _message_lines(self, message: DescriptorProto, scope: str) -> Iterator[str]:
        full_name = f"{scope}.{message.name}" if scope else message.name
        if full_name in self._comments:
            yield f"// {self._comments[full_name]}"
        lines = [*_option_lines(message.options), *self._fields_and_messages(message, full_name)]
        for enum in message.enum_type:
            lines += self._enum_lines(enum)
        for extension_range in message.extension_range:
            last = "max" if extension_range.end == MAX_FIELD_NUMBER + 1 else extension_range.end - 1
            options = _bracket_options(_list_options(extension_range.options))
            lines.append(f"extensions {extension_range.start} to {last}{options};")
        if message.extension:
            lines += self._extension_lines(message.extension)
        for reserved_range in message.reserved_range:
            last = "max" if reserved_range.end == MAX_FIELD_NUMBER + 1 else reserved_range.end - 1
            lines.append(f"reserved {reserved_range.start} to {last};")
        lines += self._reserved_name_lines(message.reserved_name)
        yield from _block_lines(f"message {message.name}", lines)

    def _fields_and_messages(self, message: DescriptorProto, full_name: str) -> Iterator[str]:
        entries = {nested.name: nested for nested in message.nested_type if is_map_entry(nested)}
        # The entry of a map field is also a nested message, at the place of the field: the other nested messages keep their
        # places before and after it.
        remaining = list(message.nested_type)
        printed_oneofs: set[int] = set()
        for field in message.field:
            # A list of the messages that protoc made for a map field is printed as the map.
            entry = entries.get(field.type_name.rpartition(".")[2]) if field.label == _REPEATED else None
            if entry is not None and entry in remaining:
                index = remaining.index(entry)
                for nested in remaining[:index]:
                    yield from self._message_lines(nested, full_name)
                remaining = remaining[index + 1 :]
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield self._field_line(field, entry)
            elif field.oneof_index not in printed_oneofs:
                printed_oneofs.add(field.oneof_index)
                oneof = message.oneof_decl[field.oneof_index]
                members = [
                    member for member in message.field if member.HasField("oneof_index") and not member.proto3_optional
                ]
                member_lines = [
                    self._field_line(member, None) for member in members if member.oneof_index == field.oneof_index
                ]
                yield from _block_lines(f"oneof {oneof.name}", [*_option_lines(oneof.options), *member_lines])
        for nested in remaining:
            yield from self._message_lines(nested, full_name)

    def _enum_lines(self, enum: EnumDescriptorProto) -> Iterator[str]:
        lines = [*_option_lines(enum.options)]
        lines += [
            f"{value.name} = {value.number}{_bracket_options(_list_options(value.options))};" for value in enum.value
        ]
        for reserved_range in enum.reserved_range:
            last = "max" if reserved_range.end == MAX_ENUM_NUMBER else reserved_range.end
            lines.append(f"reserved {reserved_range.start} to {last};")
        lines += self._reserved_name_lines(enum.reserved_name)
        return _block_lines(f"enum {enum.name}", lines)

    def _reserved_name_lines(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield f"reserved {name if self._syntax == 'editions' else quote_proto(name)};"

    def _extension_lines(self, fields: Sequence[FieldDescriptorProto]) -> Iterator[str]:
        for field in fields:
            yield from _block_lines(f"extend {field.extendee}", [self._field_line(field, None)])

    def _field_line(self, field: FieldDescriptorProto, entry: DescriptorProto | None) -> str:
        if entry is not None:
            key, value = entry.field
            kind = f"map<{_type_text(key)}, {_type_text(value)}>"
        else:
            kind = f"{self._label(field)}{_type_text(field)}"
        options = []
        if field.HasField("default_value"):
            default = field.default_value
            if field.type == FieldDescriptorProto.TYPE_STRING:
                default = quote_proto(default)
            elif field.type == FieldDescriptorProto.TYPE_BYTES:
                default = f'"{default}"'  # already escaped
            options.append(f"default = {default}")
        options += _list_options(field.options)
        if field.json_name and field.json_name != default_json_name(field.name) and not field.extendee:
            options.append(f"json_name = {quote_proto(field.json_name)}")
        return f"{kind} {field.name} = {field.number}{_bracket_options(options)};"

    def _label(self, field: FieldDescriptorProto) -> str:
        if field.label == _REPEATED:
            return "repeated "
        if field.label == _REQUIRED and self._syntax == "proto2":
            return "required "
        optional = field.proto3_optional or (self._syntax == "proto2" and not field.HasField("oneof_index"))
        return "optional " if optional else ""


def _type_text(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_GROUP:
        raise InvalidSchema(f"the group {field.name} is not printed")
    if field.type in _NAMED_TYPES:
        return field.type_name
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _list_options(options: Message, prefix: str = "") -> Iterator[str]:
    """Yield the options that are set, as `name = value`."""
    for descriptor, value in options.ListFields():
        name = f"{prefix}{descriptor.name}"
        if descriptor.is_extension or (descriptor.message_type and isinstance(value, Sequence)):
            raise InvalidSchema(f"the option {descriptor.full_name} is not printed")
        if isinstance(value, Message):
            yield from _list_options(value, f"{name}.")
        else:
            items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            yield from (f"{name} = {_option_text(descriptor, item)}" for item in items)


def _option_text(descriptor: Any, value: object) -> str:
    if descriptor.enum_type is not None:
        return str(descriptor.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote_proto(value) if isinstance(value, str) else str(value)


def _option_lines(options: Message) -> Iterator[str]:
    return (f"option {option};" for option in _list_options(options))


def _bracket_options(options: Iterable[str]) -> str:
    text = ", ".join(options)
    return f" [{text}]" if text else ""


def _block_lines(head: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"  {line}" for line in lines)
    yield "}"
