"""`buf breaking` (1.75, rules v2): which rules a category has, which elements they compare, in which order they report.

Messages, enums and services are paired by full name over all files, fields and values by number, files by path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, TypeAlias, TypeVar

from schemactl.formats.protobuf_native.descriptor import Enum, Field, Method
from schemactl.formats.protobuf_native.fields import FIELD_RULES
from schemactl.formats.protobuf_native.files import FILE_RULES, IMAGE_RULES, Change
from schemactl.formats.protobuf_native.image import Image
from schemactl.formats.protobuf_native.messages import ENUM_RULES, MESSAGE_RULES
from schemactl.formats.protobuf_native.services import METHOD_RULES, SERVICE_RULES
from schemactl.formats.protobuf_native.violation import Violation

Category: TypeAlias = Literal["WIRE", "WIRE_JSON", "PACKAGE", "FILE"]

_EVERY = frozenset(
    {
        "FIELD_SAME_DEFAULT",
        "FIELD_SAME_ONEOF",
        "FILE_SAME_PACKAGE",
        "MESSAGE_SAME_REQUIRED_FIELDS",
        "RESERVED_ENUM_NO_DELETE",
        "RESERVED_MESSAGE_NO_DELETE",
        *METHOD_RULES,
    }
)
_BYTES = frozenset({"ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED", "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED"})
_JSON = frozenset(
    {
        "ENUM_SAME_JSON_FORMAT",
        "ENUM_VALUE_SAME_NAME",
        "FIELD_SAME_JSON_NAME",
        "FIELD_SAME_NAME",
        "MESSAGE_SAME_JSON_FORMAT",
    }
)
_SOURCE = frozenset(
    {
        "ENUM_SAME_TYPE",
        "ENUM_VALUE_NO_DELETE",
        "EXTENSION_MESSAGE_NO_DELETE",
        "FIELD_NO_DELETE",
        "FIELD_SAME_CARDINALITY",
        "FIELD_SAME_CPP_STRING_TYPE",
        "FIELD_SAME_JAVA_UTF8_VALIDATION",
        "FIELD_SAME_JSTYPE",
        "FIELD_SAME_TYPE",
        "FIELD_SAME_UTF8_VALIDATION",
        "MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR",
        "ONEOF_NO_DELETE",
        "RPC_NO_DELETE",
        *(rule for rule in FILE_RULES if rule.startswith("FILE_SAME_")),
    }
)

CATEGORIES: Mapping[Category, frozenset[str]] = {
    "WIRE": _EVERY | _BYTES | {"FIELD_WIRE_COMPATIBLE_CARDINALITY", "FIELD_WIRE_COMPATIBLE_TYPE"},
    "WIRE_JSON": _EVERY
    | _BYTES
    | _JSON
    | {
        "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED",
        "FIELD_NO_DELETE_UNLESS_NAME_RESERVED",
        "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY",
        "FIELD_WIRE_JSON_COMPATIBLE_TYPE",
    },
    "PACKAGE": _EVERY | _JSON | _SOURCE | {rule for rule in IMAGE_RULES if rule.startswith("PACKAGE_")},
    "FILE": _EVERY
    | _JSON
    | _SOURCE
    | {"FILE_NO_DELETE"}
    | {rule for rule in FILE_RULES if rule.endswith("_NO_DELETE")},
}
"""The rules of each category of buf's."""


def proto_rules(*, old: Image, new: Image, category: Category) -> list[Violation]:
    """Every violation of the category's rules, in the order of `buf breaking NEW --against OLD`."""
    change = Change(old, new)
    if any(_renumbered(*pair) for pair in change.enums()):
        # Fields of unchanged files may have another default then.
        change = Change(old, new, everything=True)
    found = set(_violations(change, CATEGORIES[category]))
    return sorted(found, key=lambda one: (one.file, one.line or 0, one.column or 0, one.rule, one.message))


def _violations(change: Change, rules: frozenset[str]) -> Iterator[Violation]:
    for check in _chosen(IMAGE_RULES, rules):
        yield from check(change)
    yield from _pairwise(change.pairs, _chosen(FILE_RULES, rules))
    yield from _pairwise(change.enums(), _chosen(ENUM_RULES, rules))
    yield from _pairwise(change.messages(), _chosen(MESSAGE_RULES, rules))
    yield from _pairwise(chain(_fields(change), change.extensions()), _chosen(FIELD_RULES, rules))
    yield from _pairwise(change.services(), _chosen(SERVICE_RULES, rules))
    yield from _pairwise(_methods(change), _chosen(METHOD_RULES, rules))


Check = TypeVar("Check")
Part = TypeVar("Part")


def _chosen(table: Mapping[str, Check], rules: frozenset[str]) -> list[Check]:
    return [check for rule, check in table.items() if rule in rules]


def _pairwise(
    pairs: Iterable[tuple[Part, Part]], checks: Sequence[Callable[[Part, Part], Iterator[Violation]]]
) -> Iterator[Violation]:
    for old, new in pairs:
        for check in checks:
            yield from check(old, new)


def _fields(change: Change) -> Iterator[tuple[Field, Field]]:
    for old, new in change.messages():
        after = new.fields()
        for number, field in old.fields().items():
            if number in after:
                yield field, after[number]


def _methods(change: Change) -> Iterator[tuple[Method, Method]]:
    for old, new in change.services():
        after = new.methods()
        for name, method in old.methods().items():
            if name in after:
                yield method, after[name]


def _renumbered(old: Enum, new: Enum) -> bool:
    """Whether the default of a field of this type may have become another number."""
    if old.proto == new.proto:
        return False
    before, after = old.numbers(), new.numbers()
    if list(before.values())[:1] != list(after.values())[:1]:
        return True
    return any(after.get(name, number) != number for name, number in before.items())
