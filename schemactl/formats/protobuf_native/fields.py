"""buf's rules on fields and extensions, one function a rule. Ids, conditions and words are buf's (bufcheckserverhandle)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from google.protobuf.descriptor_pb2 import EDITION_2024, EDITION_PROTO2, FieldOptions

from schemactl.formats.protobuf_native.default import (
    can_have_default,
    default_of,
    is_zero,
    printed,
    same_default,
)
from schemactl.formats.protobuf_native.descriptor import (
    BYTES,
    ENUM,
    EXPLICIT,
    GROUP,
    IMPLICIT,
    KIND_NAMES,
    MAP,
    REPEATED,
    REQUIRED,
    STRING,
    Enum,
    Field,
    Kind,
)
from schemactl.formats.protobuf_native.features import (
    CPP_STRING_TYPES,
    JAVA_UTF8_VERIFY,
    UTF8_VALIDATIONS,
    edition_of,
)
from schemactl.formats.protobuf_native.violation import Violation, violation

FieldRule = Callable[[Field, Field], Iterator[Violation]]


def _groups(*groups: str) -> dict[Kind, int]:
    """A number for each kind; kinds named together share it."""
    numbers = {name: index for index, group in enumerate(groups) for name in group.split()}
    return {kind: numbers.get(name, len(groups) + kind) for kind, name in KIND_NAMES.items()}


WIRE_GROUPS: Mapping[Kind, int] = _groups(
    "int32 int64 uint32 uint64 bool", "sint32 sint64", "fixed32 sfixed32", "fixed64 sfixed64"
)
"""Kinds of which a reader of one makes sense of another's bytes."""

WIRE_JSON_GROUPS: Mapping[Kind, int] = _groups(
    "int32 uint32", "int64 uint64", "fixed32 sfixed32", "fixed64 sfixed64"
)

WIRE_CARDINALITIES = {EXPLICIT: 1, IMPLICIT: 1, REQUIRED: 2, REPEATED: 3, MAP: 3}
WIRE_JSON_CARDINALITIES = WIRE_CARDINALITIES | {MAP: 4}

_PROTO3_UPDATING = "https://developers.google.com/protocol-buffers/docs/proto3#updating"
_WIRE_NOTE = f" See {_PROTO3_UPDATING} for wire compatibility rules."
_WIRE_JSON_NOTE = (
    f" See {_PROTO3_UPDATING} for wire compatibility rules and "
    "https://developers.google.com/protocol-buffers/docs/proto3#json for JSON compatibility rules."
)
_UTF8_NOTE = (
    " Note that while string and bytes are compatible if the data is valid UTF-8, there is no way to enforce that a "
    "bytes field is UTF-8, so these fields may be incompatible."
)


def described(field: Field, *, name: bool = True) -> str:
    """`Field "3" with name "id" on message "Click"`, as buf begins its sentences."""
    shown = f' with name "{field.name}"' if name else ""
    if field.proto.extendee:
        return (
            f'Extension "{field.proto.number}"{shown} on message "{field.proto.extendee.removeprefix(".")}"'
        )
    message = field.message.proto.name if field.message else ""
    return f'Field "{field.proto.number}"{shown} on message "{message}"'


def _kind_name(field: Field) -> str:
    if field.kind == GROUP and edition_of(field.file.proto) != EDITION_PROTO2:
        return "message (delimited encoding)"
    return KIND_NAMES[field.kind]


def _changed_type(rule: str, old: Field, new: Field, note: str = "") -> Violation:
    words = f'{described(new)} changed type from "{_kind_name(old)}" to "{_kind_name(new)}".{note}'
    return violation(rule, words, (new, "type"))


def _changed_type_name(rule: str, old: Field, new: Field) -> Violation:
    words = f'{described(new)} changed type from "{old.type_name}" to "{new.type_name}".'
    return violation(rule, words, (new, "type"))


def same_type(old: Field, new: Field) -> Iterator[Violation]:
    """The kind, and the name of a message or enum type."""
    if old.kind != new.kind:
        yield _changed_type("FIELD_SAME_TYPE", old, new)
    elif new.proto.type_name and old.type_name != new.type_name:
        yield _changed_type_name("FIELD_SAME_TYPE", old, new)


def wire_compatible_type(old: Field, new: Field) -> Iterator[Violation]:
    """Kinds in one group, or string that becomes bytes; and the same message, or an enum that holds the old one."""
    if WIRE_GROUPS[old.kind] != WIRE_GROUPS[new.kind]:
        if (old.kind, new.kind) != (STRING, BYTES):
            note = _WIRE_NOTE + (_UTF8_NOTE if (old.kind, new.kind) == (BYTES, STRING) else "")
            yield _changed_type("FIELD_WIRE_COMPATIBLE_TYPE", old, new, note)
    else:
        yield from _compatible_type_name("FIELD_WIRE_COMPATIBLE_TYPE", old, new)


def wire_json_compatible_type(old: Field, new: Field) -> Iterator[Violation]:
    """As on the wire, with the kinds that JSON writes apart kept apart."""
    if WIRE_JSON_GROUPS[old.kind] != WIRE_JSON_GROUPS[new.kind]:
        yield _changed_type("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new, _WIRE_JSON_NOTE)
    else:
        yield from _compatible_type_name("FIELD_WIRE_JSON_COMPATIBLE_TYPE", old, new)


def _compatible_type_name(rule: str, old: Field, new: Field) -> Iterator[Violation]:
    if old.type_name == new.type_name:
        return
    if new.kind == ENUM and old.enum.proto.name == new.enum.proto.name and _holds(new.enum, old.enum):
        return
    if new.kind == ENUM or new.is_message:
        yield _changed_type_name(rule, old, new)


def _holds(larger: Enum, smaller: Enum) -> bool:
    return smaller.numbers().items() <= larger.numbers().items()


def _same_cardinality(rule: str, groups: Mapping[str, int] | None = None) -> FieldRule:
    def check(old: Field, new: Field) -> Iterator[Violation]:
        before, after = old.cardinality, new.cardinality
        # protoc makes the two fields of a map entry: what they seem to be follows from the file's syntax.
        if before == after or (old.in_map_entry and new.in_map_entry):
            return
        if groups is None or groups[before] != groups[after]:
            yield violation(
                rule, f'{described(new)} changed cardinality from "{before}" to "{after}".', (new, "")
            )

    return check


def same_default_value(old: Field, new: Field) -> Iterator[Violation]:
    """What readers get for a field that a message does not carry."""
    if not can_have_default(old) or not can_have_default(new):
        return
    if is_zero(default_of(old)) and is_zero(default_of(new)):
        return
    if not same_default(old, new):
        words = f"{described(new)} changed default value from {printed(old)} to {printed(new)}."
        yield violation("FIELD_SAME_DEFAULT", words, (new, "default"), (new, ""))


def same_oneof(old: Field, new: Field) -> Iterator[Violation]:
    """In no oneof, or in one of the same name."""
    if old.oneof == new.oneof or old.proto.extendee:
        return
    if old.oneof and new.oneof:
        words = f'{described(new)} moved from oneof "{old.oneof}" to oneof "{new.oneof}".'
    else:
        way = "from inside to outside" if old.oneof else "from outside to inside"
        words = f"{described(new)} moved {way} a oneof."
    yield violation("FIELD_SAME_ONEOF", words, (new, ""))


def same_name(old: Field, new: Field) -> Iterator[Violation]:
    """The name; of an extension the full one."""
    if old.name != new.name:
        words = f'{described(new, name=False)} changed name from "{old.name}" to "{new.name}".'
        yield violation("FIELD_SAME_NAME", words, (new, "name"), (new, ""))


def same_json_name(old: Field, new: Field) -> Iterator[Violation]:
    """The name in JSON."""
    before, after = old.proto.json_name, new.proto.json_name
    if before != after and not old.proto.extendee:
        words = f'{described(new)} changed option "json_name" from "{before}" to "{after}".'
        yield violation("FIELD_SAME_JSON_NAME", words, (new, "json_name"), (new, ""))


_INT64 = frozenset(kind for kind, name in KIND_NAMES.items() if name.endswith("64"))


def same_jstype(old: Field, new: Field) -> Iterator[Violation]:
    """How JavaScript holds a 64-bit integer."""
    before, after = old.proto.options.jstype, new.proto.options.jstype
    if before != after and {old.proto.type, new.proto.type} <= _INT64:
        names = FieldOptions.JSType.Name(before), FieldOptions.JSType.Name(after)
        words = '{} changed option "jstype" from "{}" to "{}".'.format(described(new), *names)
        yield violation("FIELD_SAME_JSTYPE", words, (new, "jstype"), (new, ""))


def same_utf8_validation(old: Field, new: Field) -> Iterator[Violation]:
    """Whether parsers check a string."""
    before, after = old.features.utf8_validation, new.features.utf8_validation
    if before != after and old.kind == new.kind == STRING:
        change = f"from {UTF8_VALIDATIONS[before]} to {UTF8_VALIDATIONS[after]}"
        words = f"{described(new)} changed UTF8 validation {change}."
        yield violation("FIELD_SAME_UTF8_VALIDATION", words, (new, "utf8_validation"), (new, ""))


def same_java_utf8_validation(old: Field, new: Field) -> Iterator[Violation]:
    """Whether Java's parser checks a string."""
    if old.kind != STRING or new.kind != STRING:
        return
    before, after = _java_utf8_validation(old), _java_utf8_validation(new)
    if before != after:
        words = f'{described(new)} changed Java string UTF8 validation from "{before}" to "{after}".'
        places = (new.file, "java_string_check_utf8"), (new, "java_utf8_validation"), (new, "")
        yield violation("FIELD_SAME_JAVA_UTF8_VALIDATION", words, *places)


def _java_utf8_validation(field: Field) -> str:
    file = field.file.proto
    if file.syntax != "editions" or file.options.HasField("java_string_check_utf8"):
        verifies = file.options.java_string_check_utf8
    else:
        verifies = field.features.java_utf8_validation == JAVA_UTF8_VERIFY
    return "VERIFY" if verifies else UTF8_VALIDATIONS[field.features.utf8_validation]


def same_cpp_string_type(old: Field, new: Field) -> Iterator[Violation]:
    """The C++ type of a string or bytes field; `string_piece` may become `string`."""
    if not {old.kind, new.kind} <= {STRING, BYTES} or (old.in_map_entry and new.in_map_entry):
        return
    before, after = _cpp_string_type(old), _cpp_string_type(new)
    if before != after and (before, after) != ("STRING_PIECE", "STRING"):
        words = f'{described(new)} changed C++ string type from "{before}" to "{after}".'
        yield violation(
            "FIELD_SAME_CPP_STRING_TYPE", words, (new, "ctype"), (new, "cpp_string_type"), (new, "")
        )


def _cpp_string_type(field: Field) -> str:
    options = field.proto.options
    if edition_of(field.file.proto) < EDITION_2024 and options.HasField("ctype"):
        return FieldOptions.CType.Name(options.ctype)
    return CPP_STRING_TYPES.get(field.features.cpp_string_type, "STRING")


FIELD_RULES: Mapping[str, FieldRule] = {
    "FIELD_SAME_CARDINALITY": _same_cardinality("FIELD_SAME_CARDINALITY"),
    "FIELD_SAME_CPP_STRING_TYPE": same_cpp_string_type,
    "FIELD_SAME_DEFAULT": same_default_value,
    "FIELD_SAME_JAVA_UTF8_VALIDATION": same_java_utf8_validation,
    "FIELD_SAME_JSON_NAME": same_json_name,
    "FIELD_SAME_JSTYPE": same_jstype,
    "FIELD_SAME_NAME": same_name,
    "FIELD_SAME_ONEOF": same_oneof,
    "FIELD_SAME_TYPE": same_type,
    "FIELD_SAME_UTF8_VALIDATION": same_utf8_validation,
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": _same_cardinality(
        "FIELD_WIRE_COMPATIBLE_CARDINALITY", WIRE_CARDINALITIES
    ),
    "FIELD_WIRE_COMPATIBLE_TYPE": wire_compatible_type,
    "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY": _same_cardinality(
        "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY", WIRE_JSON_CARDINALITIES
    ),
    "FIELD_WIRE_JSON_COMPATIBLE_TYPE": wire_json_compatible_type,
}
