"""The definition of a PROTOBUF_NATIVE schema: its stored bytes, its `.proto` text, and the place of each part there.

The bytes are read as leniently as Pulsar reads it (ProtobufNativeSchemaUtils.deserialize, Jackson's defaults), written always alike.

A pointer names what it means and not where it lies, so that it survives edits and finds its like in another version:

    ""                                        the root message
    /messages/web.Click                       a message; its map entries are messages too
    /messages/web.Click/fields/3              a field by number; below it `type`, `name`, `default`, `json_name`, ...
    /messages/web.Click/oneofs/target         a oneof
    /enums/web.Kind                           an enum; below it `values/KIND_AD`
    /extensions/web.note                      an extension by its full name
    /services/web.Clicks/methods/List         an RPC; below it `input_type`, `output_type`, ...
    /files/web~1click.proto                   a file; below it `package`

What the text cannot say, or says only in ways that are not known here (groups, custom options), is refused. To be sure,
compile the text again and compare.
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
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.schema import Locator
from schemactl.formats.protobuf.descriptor import (
    ENUM,
    MAP,
    REPEATED,
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
)

# Stored bytes: a JSON object with a descriptor set and the name of the root message.


REFUSAL = "deserialize ProtobufNative Schema failed"
"""What a broker says of every definition that it cannot read."""

_KEYS = ("fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName")
_BASE64 = re.compile(r"(?:\s*+[A-Za-z0-9+/]{4})*+\s*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*+")
_SHIPPED = "google/protobuf/"
"""Where protoc's own files lie: their content follows the compiler's release, not the user's."""

_MAX_COMPARED = 10_000_000
"""Characters of a package times those of a root's name: Java would look for the one in the other for minutes."""

_SMALL_BYTES = 100_000
"""Definitions up to here are kept by the hundred once they are read, larger ones by the handful."""


@dataclass(frozen=True, eq=False)
class ProtoDefinition:
    """A PROTOBUF_NATIVE definition, read.

    Attributes:
        image: all files of the descriptor set.
        root: the root message.
        reachable: the names of the root's file and of what it imports, each after what it needs itself.
    """

    image: Image
    root: ProtoMessage
    reachable: tuple[str, ...]

    @cached_property
    def identity(self) -> tuple[str, str]:
        """The root's full name, and a digest of what the reachable files declare.

        Not in it: source info, the names and order of files (a moved file declares the same), JSON names that are
        spelled out though they are the default, and the content of the files that come with protoc.
        """
        contents = (_content(self.image.files[name].proto) for name in self.reachable if not is_shipped(name))
        digest = hashlib.sha256()
        for content in sorted(contents):
            digest.update(len(content).to_bytes(8, "big") + content)
        return self.root.full_name, digest.hexdigest()


def is_shipped(name: str) -> bool:
    """Whether the file `name` comes with protoc."""
    return name.startswith(_SHIPPED)


def render(root: ProtoMessage) -> bytes:
    """Return the schema bytes for `root`: the files it needs, sorted by name, without source info; one text for one content."""
    image = root.file.image
    values = _values(_serialized(image, _reachable(image, root.file.name)), root)
    return json.dumps(values, separators=(",", ":")).encode()


def of_class(message: type[Message]) -> bytes:
    """Return the schema bytes that Pulsar's Python client registers for the class of a message (ProtobufNativeSchema)."""
    files: dict[str, FileDescriptorProto] = {}

    def add(file: Any) -> None:
        if file.name not in files:
            for each in file.dependencies:
                add(each)
            files[file.name] = FileDescriptorProto()
            file.CopyToProto(files[file.name])

    root = message.DESCRIPTOR
    add(root.file)
    values = _values(FileDescriptorSet(file=files.values()).SerializeToString(), root)
    return json.dumps(values, indent=True).encode()


def _serialized(image: Image, names: Iterable[str]) -> bytes:
    """Return the files as a descriptor set, the same bytes for the same files."""
    files = FileDescriptorSet(file=[image.files[name].proto for name in sorted(names)])
    return files.SerializeToString(deterministic=True)


def _values(descriptor_set: bytes, root: Any) -> dict[str, str]:
    values = (base64.b64encode(descriptor_set).decode(), root.full_name, root.file.name)
    return dict(zip(_KEYS, values, strict=True))


def parse(schema: bytes) -> ProtoDefinition:
    """Return the definition in `schema`, accepted exactly where a broker accepts it.

    A root name without its package, keys that Pulsar does not know and files that nothing imports are fine.

    Raises:
        InvalidSchema: a broker refuses it; its words start with the broker's.
    """
    try:
        return _parse_small(schema) if len(schema) <= _SMALL_BYTES else _parse_large(schema)
    except InvalidSchema as error:
        raise InvalidSchema(f"{REFUSAL}: {error.what}", fix=error.fix) from error


def _parse(schema: bytes) -> ProtoDefinition:
    encoded, root_name, file_name = _envelope(schema)
    if encoded is None or not _BASE64.fullmatch(encoded):
        raise InvalidSchema("`fileDescriptorSet` is not base64")
    image = _image(base64.b64decode(encoded))
    if file_name not in image.files:
        raise InvalidSchema(f"the descriptor set has no file {file_name!r}, which `rootFileDescriptorName` names")
    reachable = tuple(_reachable(image, file_name))
    build_pool(image, reachable)
    file = image.files[file_name]
    if root_name is not None:
        if len(file.proto.package) * len(root_name) > _MAX_COMPARED:
            raise InvalidSchema(f"the package of {file_name} and `rootMessageTypeName` are too long")
        # Pulsar takes the package for a regular expression, and off wherever it first matches.
        package = "".join("." if character == "." else re.escape(character) for character in file.proto.package)
        path = re.sub(package, "", root_name, count=1).replace(".", "", 1).rstrip(".")
        root = file.declared.messages.get(file.qualified(path))
        if root is not None:
            return ProtoDefinition(image, root, reachable)
    raise InvalidSchema(f"{file_name} declares no message {root_name!r}, which `rootMessageTypeName` names")


_parse_small = lru_cache(maxsize=256)(_parse)
_parse_large = lru_cache(maxsize=8)(_parse)


def descriptor_set(schema: bytes) -> tuple[bytes, str]:
    """Return the serialized FileDescriptorSet in `schema`, as protoc would write it to a file, and the root's full name.

    Raises:
        InvalidSchema: a broker refuses it.
    """
    definition = parse(schema)
    return _serialized(definition.image, definition.reachable), definition.root.full_name


def from_descriptor_set(data: bytes, message: str) -> ProtoMessage:
    """Return the message with this full name in a serialized FileDescriptorSet (`protoc --descriptor_set_out`, `buf build`).

    Raises:
        InvalidSchema: it is no descriptor set, does not hold together, or has no such message.
    """
    image = _image(data)
    root = find_message(image, message)
    build_pool(image, tuple(_reachable(image, root.file.name)))
    return root


def _image(data: bytes) -> Image:
    try:
        return Image.of(FileDescriptorSet.FromString(data))
    except DecodeError as error:
        raise InvalidSchema(
            "not a serialized FileDescriptorSet", fix="write it with: protoc --include_imports --descriptor_set_out"
        ) from error


def find_message(image: Image, message: str, *, among: Collection[str] = ()) -> ProtoMessage:
    """Return the message with this full name; `among` are the files it should be in (empty: any).

    Raises:
        InvalidSchema: there is none; its pointer is /message, for that is what names it.
    """
    root = image.declared.messages.get(message)
    if root is not None and not root.is_map_entry and (not among or root.file.name in among):
        return root
    names = [
        other.full_name
        for other in image.declared.messages.values()
        if not other.is_map_entry and (other.file.name in among if among else not is_shipped(other.file.name))
    ]
    known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise InvalidSchema(
        f"no message is called {message!r}",
        pointer="/message",
        fix=f"write {'one of ' if len(names) > 1 else ''}{known}" if known else "declare it in the definition",
    )


def _envelope(schema: bytes) -> tuple[str | None, str | None, str | None]:
    """Return the three values of the JSON object, None for null or nothing; what follows the object does not matter."""
    try:
        text = schema.decode("utf-8-sig").lstrip()
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("not a JSON object with " + ", ".join(_KEYS)) from error
    if not isinstance(found, dict):
        raise InvalidSchema("not a JSON object with " + ", ".join(_KEYS))
    values = [found.get(key) for key in _KEYS]
    if any(isinstance(value, (dict, list)) for value in values):
        raise InvalidSchema("its values are text")
    encoded, root_name, file_name = (None if value is None else str(value) for value in values)
    return encoded, root_name, file_name


def _reachable(image: Image, name: str) -> Iterator[str]:
    """`name` and the files it imports, each after what it imports itself.

    Raises:
        InvalidSchema: an import is missing, or files import each other.
    """
    imports: dict[str, Sequence[str]] = {}
    todo = [name]
    while todo:
        current = todo.pop()
        if current not in image.files:
            raise InvalidSchema(f"the descriptor set does not have {current}, which is imported")
        if current not in imports:
            imports[current] = image.files[current].proto.dependency
            todo.extend(imports[current])
    try:
        yield from TopologicalSorter(imports).static_order()
    except CycleError as error:
        raise InvalidSchema(f"{error.args[1][0]} imports itself, directly or through others") from None


def build_pool(image: Image, names: Collection[str]) -> DescriptorPool:
    """Return the files as protobuf's runtime knows them, when they fit together: every type is there, none twice.

    Raises:
        InvalidSchema: they do not.
    """
    pool = DescriptorPool()
    try:
        for name in names:
            pool.AddSerializedFile(image.files[name].proto.SerializeToString())
    except TypeError as error:
        _, _, reason = str(error).partition("descriptor pool: ")
        raise InvalidSchema(reason or str(error)) from error
    return pool


def _content(file: FileDescriptorProto) -> bytes:
    """Return what `file` declares, as bytes that are equal for equal content."""
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    for field in ("name", "dependency", "public_dependency", "weak_dependency", "option_dependency"):
        copy.ClearField(field)
    if copy.syntax == "proto2":
        copy.ClearField("syntax")
    fields = list(copy.extension)
    todo: list[DescriptorProto] = list(copy.message_type)
    while todo:
        message = todo.pop()
        fields += [*message.field, *message.extension]
        todo.extend(message.nested_type)
    for each in fields:
        if each.json_name == default_json_name(each.name):
            each.ClearField("json_name")
    return copy.SerializeToString(deterministic=True)


def default_json_name(name: str) -> str:
    """Return the JSON name of a field that has no option for it: `user_id` becomes `userId`."""
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


# Places in the `.proto` file.


Place: TypeAlias = tuple[Element, str]
"""A part of an element by its label, the element as a whole by ""."""

# From an element's descriptor to the part a label means. Where the tuple is split, its first half leads to an options'
# `features`: any piece of text about these will do.
_LABELS: Mapping[type, Mapping[str, tuple[Path, Path]]] = {
    ProtoField: {"name": ((), (1,)), "type": ((), (5,)), "default": ((), (7,)), "json_name": ((), (10,))},
    ProtoMessage: {"message_set_wire_format": ((), (7, 1)), "json_format": ((7, 12), (6,))},
    ProtoEnum: {"enum_type": ((3, 7), (2,)), "json_format": ((3, 7), (6,))},
    EnumValue: {"number": ((), (2,))},
    Method: {"input_type": ((), (2,)), "output_type": ((), (3,)), "idempotency_level": ((), (4, 34))},
    File: {"package": ((), (2,))},
}


def span_of(place: Place) -> Span | None:
    """Return where `place` stands, as protoc counts; None when the text does not have it, and for a file as a whole.

    What protoc made for a map field stands at that field's type.
    """
    element, label = place
    file = element.file
    if isinstance(element, ProtoField) and label == "type":
        # A group has both, for a name is its type.
        by_name = file.places.span((*element.path, 6)) if element.type_name else None
        found = by_name or file.places.span((*element.path, 5))
    elif label:
        features, rest = _LABELS[type(element)][label]
        prefix = (*element.path, *features)
        found = file.places.span((*prefix, *rest)) or (_nearest(file, prefix, rest) if features else None)
    else:
        found = file.places.span(element.path) if element.path else None
    message = element.message if isinstance(element, ProtoField) else element
    if found or not isinstance(message, ProtoMessage) or not message.is_map_entry or message.parent is None:
        return found
    fields = (field for field in message.parent.fields().values() if field.type_name == message.full_name)
    return next((span_of((field, "type")) for field in fields), None)


def _nearest(file: File, prefix: Path, rest: Path) -> Span | None:
    """Return the first piece of text inside what is sought, or else the longest known part of the path below `prefix`."""
    sought = (*prefix, *rest)
    inside = file.places.first_below(sought)
    if inside is not None:
        return file.places.span(inside)
    longer = (sought[:length] for length in range(len(sought), len(prefix) - 1, -1))
    return next(filter(None, map(file.places.span, longer)), None)


def find(image: Image, pointer: str) -> Place | None:
    """Return the nearest place to `pointer` that `image` has: the part, its element, or what encloses it. None: nothing."""
    around, label = pointer, ""
    while around:
        element = image.by_pointer.get(around)
        if element is not None:
            return element, label if label in _LABELS.get(type(element), ()) else ""
        around, _, label = around.rpartition("/")
        if around in ("/messages", "/enums"):
            # Of a message or enum that is gone, the message around it is the nearest.
            parent = label.rpartition(".")[0]
            around, label = parent and f"/messages/{parent}", ""
    return None


def locator(
    read_root: Callable[[], ProtoMessage], *, paths: Mapping[str, str], texts: Mapping[str, bytes], elsewhere: Source
) -> Locator:
    """Return what finds the place in the user's files that is nearest to a pointer.

    `read_root` is called at the first question: descriptors with source info are large, and most are never asked about.
    `paths` and `texts` are by import name. What is in no file of `paths` stands where the root message does, and what
    is nowhere, at `elsewhere`.
    """
    read_once = cache(read_root)

    def located(place: Place) -> Source | None:
        span, name = span_of(place), place[0].file.name
        if span is None and isinstance(place[0], File) and not place[1]:
            span = Span(1, 1)
        if span is None or name not in paths:
            return None
        return source_at(paths[name], texts.get(name, b""), span)

    def locate(pointer: str) -> Source:
        root = read_once()
        found = find(root.file.image, pointer)
        places = [found, (found[0], ""), (root, "")] if found else [(root, "")]
        return next(filter(None, map(located, places)), elsewhere)

    return locate


def comments(read_root: Callable[[], ProtoMessage]) -> Mapping[str, str]:
    """Return the comments of the user's files, by the pointers of what they are about."""
    elements = read_root().file.image.by_pointer
    own = {pointer: each for pointer, each in elements.items() if not is_shipped(each.file.name)}
    found = {pointer: each.file.places.comment(each.path) for pointer, each in own.items()}
    return {pointer: text for pointer, text in found.items() if text}


def doc_of(field: ProtoField, comments: Mapping[str, str]) -> str:
    """Return the comment of a field, else of the message or enum that its values are of, else ""."""
    value = field.value
    held = value.message_type if value.is_message else value.enum if value.kind == ENUM else None
    return comments.get(field.pointer) or (comments.get(held.pointer, "") if held else "")


def source_at(path: str, text: bytes, span: Span) -> Source:
    """Return the place in code points: protoc counts bytes, and a tab as reaching to the next multiple of eight."""
    lines = text.split(b"\n", span.line)
    line = lines[span.line - 1].decode(errors="replace") if span.line <= len(lines) else ""
    column, end = _column(line, span.column), len(line.rstrip()) + 1
    return Source(path, span.line, column, end if end > column else None)


def _column(line: str, reported: int) -> int:
    if line.isascii() and "\t" not in line:
        return reported
    reached = 0
    for column, character in enumerate(line, start=1):
        if reached >= reported - 1:
            return column
        reached += 8 - reached % 8 if character == "\t" else len(character.encode())
    return len(line) + 1 if line else reported


def field_path(pointer: str, *roots: ProtoMessage) -> str:
    """Return the fields on the way to `pointer`, for people: `Click.user.emails[]`, from the first root that leads there.

    What no field leads to goes by its own name.
    """
    places = [(root, find(root.file.image, pointer)) for root in roots]
    found = [(root, place[0]) for root, place in places if place and pointer.startswith(place[0].pointer)]
    named = (path for root, element in found if (path := _path_to(root, element)))
    return next(named, found[0][1].nested_name if found else roots[0].nested_name)


def _path_to(root: ProtoMessage, element: Element) -> str:
    paths = _paths(root)
    match element:
        case ProtoMessage() | ProtoEnum():
            return paths.get(element.full_name, "")
        case EnumValue():
            return paths.get(element.enum.full_name, "")
        case ProtoField() | Oneof() if element.message and element.message.full_name in paths:
            step = _step(element) if isinstance(element, ProtoField) else f".{element.name}"
            return paths[element.message.full_name] + step
    return ""


def _paths(root: ProtoMessage) -> dict[str, str]:
    """Return the shortest path from the root to each message and enum it reaches."""
    paths = {root.full_name: root.proto.name}
    queue = deque([root])
    while queue:
        message = queue.popleft()
        for field in message.fields().values():
            if field.type_name and field.type_name not in paths:
                paths[field.type_name] = paths[message.full_name] + _step(field)
                if field.is_message:
                    queue.append(field.message_type)
    return paths


def _step(field: ProtoField) -> str:
    """`.emails[]` of a list, `.tags{}` of a map and so of its values."""
    if field.in_map_entry:
        return "" if field.proto.number == 2 else ".key"
    return f".{field.proto.name}" + {MAP: "{}", REPEATED: "[]"}.get(field.cardinality, "")


# Text of a file descriptor.


_MAX_FIELD = 1 << 29
"""One more than the highest number of a field: where `to max` ends in a message."""

_MAX_ENUM = (1 << 31) - 1
_REPEATED = FieldDescriptorProto.LABEL_REPEATED
_REQUIRED = FieldDescriptorProto.LABEL_REQUIRED
_NAMED = (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def proto_text(file: FileDescriptorProto) -> str:
    """Return the text of `file`: two spaces of indentation, everything in the descriptor's order, types by their full names.

    Raises:
        InvalidSchema: it has something that is not printed here.
    """
    return "\n".join(_Printer(file).lines()) + "\n"


class _Printer:
    def __init__(self, file: FileDescriptorProto) -> None:
        self.file = file
        self.syntax = file.syntax or "proto2"

    def lines(self) -> Iterator[str]:
        file = self.file
        if self.syntax == "editions":
            yield f'edition = "{Edition.Name(file.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{self.syntax}";'
        if file.package:
            yield f"package {file.package};"
        for number, name in enumerate(file.dependency):
            kind = "public " if number in file.public_dependency else ""
            kind = "weak " if number in file.weak_dependency else kind
            yield f"import {kind}{_quoted(name)};"
        yield from _option_lines(file.options)
        for message in file.message_type:
            yield from ("", *self._message(message))
        for enum in file.enum_type:
            yield from ("", *self._enum(enum))
        if file.extension:
            yield from ("", *self._extensions(file.extension))
        for service in file.service:
            yield from ("", *_service(service))

    def _message(self, message: DescriptorProto) -> Iterator[str]:
        return _block(f"message {message.name}", self._inside(message))

    def _inside(self, message: DescriptorProto) -> Iterator[str]:
        yield from _option_lines(message.options)
        yield from self._fields_and_messages(message)
        for enum in message.enum_type:
            yield from self._enum(enum)
        for numbers in message.extension_range:
            last = "max" if numbers.end == _MAX_FIELD else numbers.end - 1
            yield f"extensions {numbers.start} to {last}{_bracketed(_options(numbers.options))};"
        if message.extension:
            yield from self._extensions(message.extension)
        for gap in message.reserved_range:
            yield f"reserved {gap.start} to {'max' if gap.end == _MAX_FIELD else gap.end - 1};"
        yield from self._reserved(message.reserved_name)

    def _fields_and_messages(self, message: DescriptorProto) -> Iterator[str]:
        entries = {each.name: each for each in message.nested_type if each.options.map_entry}
        # A map's entry is a nested message, too, where its field stands: the others keep their places around it.
        rest = list(message.nested_type)
        printed: set[int] = set()
        for field in message.field:
            entry = _entry(field, entries)
            if entry is not None and entry in rest:
                before = rest.index(entry)
                for nested in rest[:before]:
                    yield from self._message(nested)
                rest = rest[before + 1 :]
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield self._field(field, entry)
            elif field.oneof_index not in printed:
                printed.add(field.oneof_index)
                oneof = message.oneof_decl[field.oneof_index]
                members = [self._field(each, None) for each in message.field if _is_in(each, field.oneof_index)]
                yield from _block(f"oneof {oneof.name}", [*_option_lines(oneof.options), *members])
        for nested in rest:
            yield from self._message(nested)

    def _enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        values = (f"{each.name} = {each.number}{_bracketed(_options(each.options))};" for each in enum.value)
        reserved = (
            f"reserved {gap.start} to {'max' if gap.end == _MAX_ENUM else gap.end};" for gap in enum.reserved_range
        )
        parts = [*_option_lines(enum.options), *values, *reserved, *self._reserved(enum.reserved_name)]
        return _block(f"enum {enum.name}", parts)

    def _reserved(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield f"reserved {name if self.syntax == 'editions' else _quoted(name)};"

    def _extensions(self, fields: Sequence[FieldDescriptorProto]) -> Iterator[str]:
        for field in fields:
            yield from _block(f"extend {field.extendee}", [self._field(field, None)])

    def _field(self, field: FieldDescriptorProto, entry: DescriptorProto | None) -> str:
        if entry is not None:
            key, value = entry.field
            kind = f"map<{_type(key)}, {_type(value)}>"
        else:
            kind = f"{self._label(field)}{_type(field)}"
        options = [*_default(field), *_options(field.options)]
        if field.json_name and field.json_name != default_json_name(field.name) and not field.extendee:
            options.append(f"json_name = {_quoted(field.json_name)}")
        return f"{kind} {field.name} = {field.number}{_bracketed(options)};"

    def _label(self, field: FieldDescriptorProto) -> str:
        if field.label == _REPEATED:
            return "repeated "
        if field.label == _REQUIRED and self.syntax == "proto2":
            return "required "
        optional = field.proto3_optional or (self.syntax == "proto2" and not field.HasField("oneof_index"))
        return "optional " if optional else ""


def _service(service: ServiceDescriptorProto) -> Iterator[str]:
    methods = (line for method in service.method for line in _method(method))
    return _block(f"service {service.name}", [*_option_lines(service.options), *methods])


def _method(method: MethodDescriptorProto) -> Iterator[str]:
    taken = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
    given = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
    head, options = f"rpc {method.name} ({taken}) returns ({given})", list(_option_lines(method.options))
    return _block(head, options) if options else iter([f"{head};"])


def _entry(field: FieldDescriptorProto, entries: dict[str, DescriptorProto]) -> DescriptorProto | None:
    """Return the message behind a map's field."""
    return entries.get(field.type_name.rpartition(".")[2]) if field.label == _REPEATED else None


def _is_in(field: FieldDescriptorProto, oneof: int) -> bool:
    return field.HasField("oneof_index") and not field.proto3_optional and field.oneof_index == oneof


def _type(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_GROUP:
        raise InvalidSchema(f"the group {field.name} is not printed")
    if field.type in _NAMED:
        return field.type_name
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _default(field: FieldDescriptorProto) -> Iterator[str]:
    if field.HasField("default_value"):
        value = field.default_value
        if field.type == FieldDescriptorProto.TYPE_STRING:
            value = _quoted(value)
        elif field.type == FieldDescriptorProto.TYPE_BYTES:
            value = f'"{value}"'  # escaped already
        yield f"default = {value}"


def _options(options: Message, path: str = "") -> Iterator[str]:
    """Yield the options that are set, as `name = value`."""
    for descriptor, value in options.ListFields():
        name = f"{path}{descriptor.name}"
        if descriptor.is_extension or (descriptor.message_type and isinstance(value, Sequence)):
            raise InvalidSchema(f"the option {descriptor.full_name} is not printed")
        if isinstance(value, Message):
            yield from _options(value, f"{name}.")
        else:
            several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            yield from (f"{name} = {_option(descriptor, each)}" for each in several)


def _option(descriptor: Any, value: object) -> str:
    if descriptor.enum_type is not None:
        return str(descriptor.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else str(value)


def _bracketed(options: Iterable[str]) -> str:
    listed = ", ".join(options)
    return f" [{listed}]" if listed else ""


def _quoted(text: str) -> str:
    shown = (_ESCAPES.get(each) or (each if each >= " " else f"\\{ord(each):03o}") for each in text)
    return f'"{"".join(shown)}"'


def _option_lines(options: Message) -> Iterator[str]:
    return (f"option {each};" for each in _options(options))


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"  {line}" for line in lines)
    yield "}"
