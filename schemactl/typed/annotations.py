"""What an annotation says of an Avro type: the Python type, and what `Annotated` adds to it."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any, Final, NewType, Union, get_args, get_origin

PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")

LOGICAL: Final[Mapping[str, str]] = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
}
"""Avro's logical types without attributes, each with the primitive that it is written as."""

ORDERED: Final = "ordered"
"""Beside a union: its members are in the order in which they are written, and a field has no default but its own.

What follows after a colon tells two such apart, for Python takes `int | str` for the same as `str | int`, and may give the one where
the other is written.
"""

SINGLE: Final = "union"
"""Beside a type: it is the only member of a union."""

_PYDANTIC: Final[Mapping[str, tuple[type, Mapping[str, Any]]]] = {
    "NaiveDatetime": (datetime, {"logicalType": "local-timestamp-micros"}),
    **dict.fromkeys(("AwareDatetime", "PastDatetime", "FutureDatetime"), (datetime, {})),
    **dict.fromkeys(("PastDate", "FutureDate"), (date, {})),
}
"""Types of pydantic's that have other values, and what these say of Avro's."""

_RECODING: Final = ("EncodedBytes", "EncodedStr", "Json")
"""What pydantic's types of base64 and JSON are annotated with."""

_DECIMAL: Final = re.compile(r"decimal\((\d+), *(\d+)\)")


class UnclearField(ValueError):
    """A field whose class does not say what of it travels.

    Attributes:
        fix: what to write instead.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what = what
        self.fix = fix


@dataclass(frozen=True)
class Hint:
    """An annotation, read.

    Attributes:
        type: the Python type, without `Annotated` around it.
        attributes: of the Avro type, as its JSON has them; `type` and `logicalType` among them.
        verbatim: the whole Avro type as JSON; None: it follows from the rest.
        markers: ORDERED, SINGLE.
        doc: what the annotation says for people.
    """

    type: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)
    verbatim: Any = None
    markers: frozenset[str] = frozenset()
    doc: str = ""

    @property
    def members(self) -> tuple[Any, ...]:
        """The members of a union, None among them; empty if it is not a union.

        What is said of a type that may be None is said of the type.
        """
        members = get_args(self.type) if get_origin(self.type) in (Union, types.UnionType) else ()
        if not self.attributes:
            return members
        return tuple(each if each is types.NoneType else Annotated[each, self.attributes] for each in members)


def read(annotation: Any) -> Hint:
    """Return what an annotation says. Raise UnclearField if that cannot be understood."""
    attributes: dict[str, Any] = {}
    verbatim, markers, doc = None, set(), ""
    while True:
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            # `type Name = ...`, from Python 3.12 on.
            annotation = annotation.__value__
        elif getattr(annotation, "__module__", "") == "pydantic.types" and annotation.__name__ in _PYDANTIC:
            annotation, inside = _PYDANTIC[annotation.__name__]
            attributes = {**inside, **attributes}
        elif get_origin(annotation) is Annotated:
            annotation, *extras = get_args(annotation)
            around, attributes = attributes, {}
            for extra in extras:
                marker = extra.partition(":")[0] if isinstance(extra, str) else ""
                if marker in (ORDERED, SINGLE):
                    markers.add(marker)
                elif isinstance(extra, str) and extra.startswith("["):
                    verbatim = verbatim or _json(extra)
                elif (found := _attributes(extra)) is not None:
                    attributes |= found
                else:
                    doc = doc or _doc(extra)
            attributes |= around
        else:
            return Hint(annotation, attributes, verbatim, frozenset(markers), doc)


def _attributes(extra: Any) -> Mapping[str, Any] | None:
    """Return the attributes that something in `Annotated` gives to the type; None: it says nothing of it."""
    if isinstance(extra, Mapping):
        return extra
    if not isinstance(extra, str):
        if type(extra).__module__ == "pydantic.types" and type(extra).__name__ in _RECODING:
            raise UnclearField(
                "pydantic reads it from another form than it holds",
                "write the type that it holds, such as bytes",
            )
        # pydantic's limits of a Decimal, which `Field` of a type within another has among others.
        for each in getattr(extra, "metadata", [extra]):
            digits, places = (getattr(each, name, None) for name in ("max_digits", "decimal_places"))
            if isinstance(digits, int) and isinstance(places, int):
                return {"precision": digits, "scale": places}
        return None
    if extra in PRIMITIVES:
        return {"type": extra}
    if extra in LOGICAL:
        return {"type": LOGICAL[extra], "logicalType": extra}
    if numbers := _DECIMAL.fullmatch(extra):
        return {"precision": int(numbers[1]), "scale": int(numbers[2])}
    return dict(_json(extra)) if extra.startswith("{") else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UnclearField(
            f"a text in Annotated begins like JSON and does not parse: {error}",
            "correct the JSON, or begin the text with another character",
        ) from None


def _doc(extra: Any) -> str:
    # `Doc` of typing_extensions has its text in `documentation`.
    text = extra if isinstance(extra, str) else getattr(extra, "documentation", "")
    return text if isinstance(text, str) else ""
