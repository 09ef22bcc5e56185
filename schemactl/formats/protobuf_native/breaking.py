"""`buf breaking` (1.75, rules v2) for the categories WIRE and WIRE_JSON: the elements it compares, in its order.

Files are paired by path, messages, enums and services by full name over all files, fields and values by number. buf's other
categories, FILE and PACKAGE, are about generated code and are left to buf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from schemactl.core.project import ProtoCategory
from schemactl.formats.protobuf_native.buf_rules import (
    ENUM_RULES,
    FIELD_RULES,
    FILE_RULES,
    MESSAGE_RULES,
    METHOD_RULES,
    Violation,
)
from schemactl.formats.protobuf_native.descriptor import (
    File,
    Image,
    Method,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    declared_by,
)

_WIRE_ONLY: Final = frozenset({"FIELD_WIRE_COMPATIBLE_CARDINALITY", "FIELD_WIRE_COMPATIBLE_TYPE"})

_JSON_ONLY: Final = frozenset(
    {
        "ENUM_SAME_JSON_FORMAT",
        "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED",
        "ENUM_VALUE_SAME_NAME",
        "FIELD_NO_DELETE_UNLESS_NAME_RESERVED",
        "FIELD_SAME_JSON_NAME",
        "FIELD_SAME_NAME",
        "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY",
        "FIELD_WIRE_JSON_COMPATIBLE_TYPE",
        "MESSAGE_SAME_JSON_FORMAT",
    }
)

_ALL: Final = frozenset({*FILE_RULES, *ENUM_RULES, *MESSAGE_RULES, *FIELD_RULES, *METHOD_RULES})

CATEGORIES: Final[Mapping[ProtoCategory, frozenset[str]]] = {
    "WIRE": _ALL - _JSON_ONLY,
    "WIRE_JSON": _ALL - _WIRE_ONLY,
}
"""The rules of each category."""

_Key = TypeVar("_Key")
_Part = TypeVar("_Part")
_Pairs: TypeAlias = Iterator[tuple[_Part, _Part]]


def proto_rules(*, old: Image, new: Image, category: ProtoCategory) -> list[Violation]:
    """Return every violation of the category's rules, in the order of `buf breaking NEW --against OLD`."""
    change = _Change(old, new)
    if any(_renumbered(*pair) for pair in change.enums()):
        # Fields of unchanged files may have another default then.
        change = _Change(old, new, everything=True)
    found = set(_violations(change, CATEGORIES[category]))
    return sorted(found, key=lambda one: (one.file, one.line, one.column, one.rule, one.message))


class _Change:
    """What the files that differ between two images declare.

    What an unchanged file declares is the same on both sides, so no rule needs to look there.
    """

    def __init__(self, old: Image, new: Image, *, everything: bool = False) -> None:
        self.everything = everything
        self.pairs = [
            (file, new.files[name])
            for name, file in old.files.items()
            if name in new.files and (everything or file.proto != new.files[name].proto)
        ]
        self.before = declared_by(_changed(old, new, (before for before, _ in self.pairs)))
        self.after = declared_by(_changed(new, old, (after for _, after in self.pairs)))

    def enums(self) -> _Pairs[ProtoEnum]:
        return _common(self.before.enums, self.after.enums)

    def messages(self) -> _Pairs[ProtoMessage]:
        """Yield each message that is in both and means something else."""
        for old, new in _common(self.before.messages, self.after.messages):
            if (
                self.everything
                or old.proto != new.proto
                or old.features != new.features
                or old.file.context != new.file.context
            ):
                yield old, new

    def fields(self) -> _Pairs[ProtoField]:
        """Yield each field and extension that is in both, by message and number."""
        for old, new in self.messages():
            yield from _common(old.fields(), new.fields())
        yield from _common(self.before.extensions, self.after.extensions)

    def methods(self) -> _Pairs[Method]:
        for old, new in _common(self.before.services, self.after.services):
            yield from _common(old.methods(), new.methods())


def _changed(image: Image, other: Image, both: Iterable[File]) -> Iterable[File]:
    return chain(both, (file for name, file in image.files.items() if name not in other.files))


def _common(before: Mapping[_Key, _Part], after: Mapping[_Key, _Part]) -> _Pairs[_Part]:
    return ((part, after[key]) for key, part in before.items() if key in after)


def _violations(change: _Change, rules: frozenset[str]) -> Iterator[Violation]:
    yield from _broken(change.pairs, FILE_RULES, rules)
    yield from _broken(change.enums(), ENUM_RULES, rules)
    yield from _broken(change.messages(), MESSAGE_RULES, rules)
    yield from _broken(change.fields(), FIELD_RULES, rules)
    yield from _broken(change.methods(), METHOD_RULES, rules)


def _broken(
    pairs: Iterable[tuple[_Part, _Part]],
    table: Mapping[str, Callable[[_Part, _Part], Iterator[Violation]]],
    rules: frozenset[str],
) -> Iterator[Violation]:
    checks = [check for rule, check in table.items() if rule in rules]
    for old, new in pairs:
        for check in checks:
            yield from check(old, new)


def _renumbered(old: ProtoEnum, new: ProtoEnum) -> bool:
    """Return whether the default of a field of this type may have become another number."""
    if old.proto == new.proto:
        return False
    before, after = old.numbers(), new.numbers()
    if list(before.values())[:1] != list(after.values())[:1]:
        return True
    return any(after.get(name, number) != number for name, number in before.items())
