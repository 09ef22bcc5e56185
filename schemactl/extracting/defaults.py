"""The default of a field as Avro's JSON has it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from schemactl.core.errors import SchemactlError
from schemactl.typed.records import fields_of, is_record
from schemactl.typed.values import symbol

Json = Any

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class DefaultWriter:
    """Writes the default of one field.

    Attributes:
        definitions: of the named types, by their full names.
        place: what the field is called in an error.
    """

    definitions: Mapping[str, Json]
    place: str

    def json(self, value: Any, type_: Json) -> Json:
        """Return a value of `type_` as Avro's JSON has it; of a union, it is of the first member.

        Raises:
            SchemactlError: there is no such value in Avro.
        """
        node = type_[0] if isinstance(type_, list) else type_
        node = self.definitions.get(node, {}) if isinstance(node, str) else node
        match value:
            case list() | tuple():
                return [self.json(each, node.get("items")) for each in value]
            case dict():
                return {key: self.json(each, node.get("values")) for key, each in value.items()}
        kind: Any = type(value)
        if is_record(kind):
            types = {each["name"]: each["type"] for each in node["fields"]}
            if types.keys() != {each.name for each in fields_of(kind)}:
                raise SchemactlError(
                    f"{self.place}: its default is of the class itself, whose fields are not known before it",
                    fix="leave out the default",
                )
            return {
                each.name: self.json(getattr(value, each.attribute), types[each.name])
                for each in fields_of(kind)
            }
        return self._leaf(value, node)

    def _leaf(self, value: Any, node: Mapping[str, Any]) -> Json:
        match value:
            case Enum():
                return symbol(value)
            case float() if not math.isfinite(value):
                return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
            case None | bool() | int() | float() | str():
                return value
            case bytes():
                return value.decode("latin-1")
            case UUID():
                return str(value)
            case Decimal():
                return self._unscaled(value, node).decode("latin-1")
            case datetime() | date() | time():
                return _number(value, str(node.get("logicalType", "")))
        raise SchemactlError(
            f"{self.place}: Avro has no value for its default, {value!r}",
            fix="give a default that the annotation allows",
        )

    def _unscaled(self, value: Decimal, node: Mapping[str, Any]) -> bytes:
        unscaled = value.scaleb(node.get("scale", 0))
        if unscaled != int(unscaled):
            raise SchemactlError(
                f"{self.place}: its default, {value}, has more digits behind the point than its type",
                fix="round it, or give the type more",
            )
        number = int(unscaled)
        # As few bytes as Java's BigInteger.toByteArray.
        size = node.get("size") or (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(size, "big", signed=True)


def _number(value: datetime | date | time, logical: str) -> int:
    """Return the number that stands for a moment, a day or a time of day."""
    if isinstance(value, time):
        since = datetime.combine(date.min, value) - datetime.combine(date.min, time())
    elif not isinstance(value, datetime):
        return value.toordinal() - _EPOCH.toordinal()
    else:
        # A moment without zone is one of UTC, and of nowhere where the type is local.
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        since = aware - _EPOCH
    micros = since // _MICRO
    return micros // 1000 if logical.endswith("millis") else micros
