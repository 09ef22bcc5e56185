"""Convert instances of dataclasses, pydantic models and attrs classes to values that a codec takes, and back."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from ctypes import c_float
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NewType,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

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
                "pydantic reads it from another form than it holds", "write the type that it holds, such as bytes"
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


# The fields of classes that stand for records: dataclasses, pydantic models and attrs classes, told
# apart without importing any of these.


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelInstance(Protocol):
    """An instance of a pydantic model."""

    __pydantic_fields__: ClassVar[dict[str, Any]]


Instance = DataclassInstance | ModelInstance

Role = Literal["consumer", "producer"]
"""What a class does with messages."""

AVRO: Final = "__avro__"
"""The attribute of a class that says of the Avro type what Python has no words for: `namespace`, `aliases`, another `name`."""

NO_DEFAULT: Final = dataclasses.MISSING
ONE_NAME: Final = (
    'give it one `alias`, or say what messages call it: Field(..., json_schema_extra={"avro": {"name": "..."}})'
)
"""What to do about a field of which pydantic has several names."""


@dataclass(frozen=True)
class ClassField:
    """A field of a class.

    Attributes:
        attribute: what Python calls it.
        argument: what the class takes it as; "": it does not.
        name: what Avro calls it.
        read_as: what a message that the class reads calls it, where that is another name than the one it writes; "": the same.
        annotation: its type.
        default: its value where none is given; NO_DEFAULT: there must be one.
        doc: what it says for people; None: nothing.
        avro: what else Avro's field has: `aliases`, `order`, a `default` as JSON.
        is_computed: an instance works it out from the others, and cannot be told.
    """

    attribute: str
    argument: str
    name: str
    annotation: Any
    default: Any = NO_DEFAULT
    doc: str | None = None
    avro: Mapping[str, Any] = field(default_factory=dict)
    is_computed: bool = False
    read_as: str = ""


def is_record(kind: Any) -> bool:
    """Whether it is a class with fields that `fields_of` knows."""
    return isinstance(kind, type) and any(
        hasattr(kind, name) for name in ("__dataclass_fields__", "__pydantic_fields__", "__attrs_attrs__")
    )


def is_fixed(kind: Any) -> bool:
    """Whether it is a class of bytes that stands for a fixed type."""
    return isinstance(kind, type) and issubclass(kind, bytes) and AVRO in vars(kind)


def avro_of(kind: type) -> Mapping[str, Any]:
    """Return what the class itself, and not one that it inherits from, says of its Avro type."""
    found: Mapping[str, Any] = vars(kind).get(AVRO, {})
    return found


def doc_of(kind: type) -> str:
    """Return what the class says for people; "" where Python or a library has written it."""
    doc = vars(kind).get("__doc__") or ""
    made_up = doc.startswith(f"{kind.__name__}(") or doc in ("An enumeration.", "")
    return "" if made_up else inspect.cleandoc(doc)


@cache
def fields_of(kind: Any) -> tuple[ClassField, ...]:
    """Return the fields of a class for which `is_record` holds: of a pydantic model, what it dumps.

    Raises:
        NameError: an annotation names what its module does not have.
        UnclearField: no name is known by which a field is read.
    """
    if hasattr(kind, "__pydantic_fields__"):
        return (*_of_pydantic(kind), *_computed(kind))
    hints = get_type_hints(kind, include_extras=True)
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(_of_attrs(kind, hints))
    return tuple(_of_dataclass(kind, hints))


def _of_dataclass(kind: Any, hints: Mapping[str, Any]) -> Iterator[ClassField]:
    for each in dataclasses.fields(kind):
        made = each.default_factory
        default = each.default if made is NO_DEFAULT else _constant(made)
        argument = each.name if each.init else ""
        yield _field(each.name, argument, hints[each.name], default, each.metadata.get("avro", {}))


def _of_attrs(kind: Any, hints: Mapping[str, Any]) -> Iterator[ClassField]:
    attr: Any = sys.modules["attr"]
    for each in kind.__attrs_attrs__:
        default = each.default
        if default is attr.NOTHING:
            default = NO_DEFAULT
        elif isinstance(default, attr.Factory):
            default = NO_DEFAULT if default.takes_self else _constant(default.factory)
        annotation = hints.get(each.name, each.type)
        argument = each.alias if each.init else ""
        yield _field(each.name, argument, annotation, default, each.metadata.get("avro", {}))


def _of_pydantic(kind: Any) -> Iterator[ClassField]:
    # A model knows more than its module: the types of generic ones, and those of the function that it is defined in.
    if hasattr(kind, "__dataclass_fields__"):
        config = kind.__pydantic_config__
        sys.modules["pydantic.dataclasses"].rebuild_dataclass(kind)
    else:
        config = kind.model_config
        kind.model_rebuild()
    for name, info in kind.__pydantic_fields__.items():
        if info.init_var or info.exclude:
            continue
        default = NO_DEFAULT
        if info.default_factory is not None and not info.default_factory_takes_validated_data:
            default = _constant(info.default_factory)
        elif info.default_factory is None and not info.is_required():
            default = info.default
        avro = _avro_of_pydantic(info)
        written, read = _written_as(name, info, config), _read_as(name, info, config)
        if not read and "name" not in avro:
            raise UnclearField(f"{name} is written as {written} and read from within another field", ONE_NAME)
        argument = written if written in read else next(iter(read), "")
        read_as = "" if written in read or "name" in avro else argument
        annotation = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        argument = "" if info.init is False else argument
        yield _field(name, argument, annotation, default, {"name": written, **avro}, read_as=read_as)


def _computed(kind: Any) -> Iterator[ClassField]:
    """Yield what a pydantic model dumps besides its fields."""
    for name, each in kind.__pydantic_decorators__.computed_fields.items():
        avro = {"name": each.info.alias or name, **_avro_of_pydantic(each.info)}
        yield _field(name, "", each.info.return_type, NO_DEFAULT, avro, is_computed=True)


def _avro_of_pydantic(info: Any) -> dict[str, Any]:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return {"doc": info.description, **extra.get("avro", {})}


def _written_as(name: str, info: Any, config: Mapping[str, Any]) -> str:
    """Return what pydantic calls a field where it dumps by aliases, as it can be told to."""
    by_name = config.get("serialize_by_alias") is False
    alias: str | None = None if by_name else info.serialization_alias
    return alias or name


def _read_as(name: str, info: Any, config: Mapping[str, Any]) -> list[str]:
    """Return what pydantic takes a field as, first what comes first."""
    alias = info.validation_alias
    # AliasChoices has several, and AliasPath the way to a value within others.
    choices = [alias] if isinstance(alias, str) else getattr(alias, "choices", [alias])
    paths = (getattr(each, "path", [each]) for each in choices if each is not None)
    found = [path[0] for path in paths if len(path) == 1] if config.get("validate_by_alias", True) else []
    is_by_name = config.get("populate_by_name") or config.get("validate_by_name") or alias is None
    return [*found, name] if is_by_name else found


def _constant(make: Callable[[], Any]) -> Any:
    """Return what a default factory makes; NO_DEFAULT: that is another value for each message, as a moment or an id is."""
    if is_record(make):
        return NO_DEFAULT if any(each.default is NO_DEFAULT for each in fields_of(make)) else make()
    made = make()
    # Only what can be changed needs a factory to be the same for each.
    is_constant = isinstance(made, list | tuple | dict) or is_record(type(made))
    return made if is_constant and made == make() else NO_DEFAULT


def _field(
    attribute: str, argument: str, annotation: Any, default: Any, avro: Mapping[str, Any], **more: Any
) -> ClassField:
    rest = {name: value for name, value in avro.items() if name not in ("name", "doc")}
    name, doc = avro.get("name", attribute), avro.get("doc")
    return ClassField(attribute, argument, name, annotation, default, doc, rest, **more)


# Instances as values, and back


T = TypeVar("T")


def to_value(instance: Any) -> Any:
    """Return the codec's value for an instance of a class; any other value is returned unchanged.

    Raise TypeError if a value fits no member of the union that its annotation names.
    """
    if isinstance(instance, dict):
        # Of a KEY_VALUE, each half may be one.
        is_pair = instance.keys() == {"key", "value"}
        return {name: to_value(value) for name, value in instance.items()} if is_pair else instance
    return _written(instance, type(instance)) if is_record(type(instance)) else instance


def from_value(kind: type[T], value: Any) -> T:
    """Return the instance of the class `kind` for a codec's value."""
    made: T = _made(value, kind)
    return made


def symbol(member: Enum) -> str:
    """Return Avro's symbol for the member of an enum: of an enum of texts the text, else the member's name."""
    return member.value if isinstance(member, str) else member.name


def _written(value: Any, annotation: Any) -> Any:
    hint = read(annotation)
    if hint.members and value is not None:
        members = _members(hint)
        at = member_of(value, [read(each) for each in members])
        written = _written(value, members[at])
        if len(members) == 1:
            return written
        return {f"member{number}": written if number == at else None for number in range(len(members))}
    kind: Any = type(value)
    if is_record(kind):
        fields = fields_of(kind)
        return {each.name: _written(getattr(value, each.attribute), each.annotation) for each in fields}
    if isinstance(hint.type, type) and issubclass(hint.type, Enum):
        # A model with `use_enum_values` holds the member's value.
        return symbol(hint.type(value))
    match value:
        case Enum():
            return symbol(value)
        case UUID():
            return str(value)
        case dict():
            of_values = (*get_args(hint.type), Any, Any)[1]
            return {key: _written(each, of_values) for key, each in value.items()}
        case list() | tuple():
            of_items = (*get_args(hint.type), Any)[0]
            return [_written(each, of_items) for each in value]
    return bytes(value) if is_fixed(kind) else value


def _made(value: Any, annotation: Any) -> Any:
    hint = read(annotation)
    if value is None:
        return None
    if hint.members:
        members = _members(hint)
        if len(members) == 1:
            return _made(value, members[0])
        at = next(number for number in range(len(members)) if value[f"member{number}"] is not None)
        return _made(value[f"member{at}"], members[at])
    kind, arguments = get_origin(hint.type) or hint.type, get_args(hint.type)
    if is_record(kind):
        return _instance(kind, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(member for member in kind if symbol(member) == value)
    if kind is UUID or is_fixed(kind):
        return kind(value)
    if kind is dict and arguments:
        return {key: _made(each, arguments[1]) for key, each in value.items()}
    if kind in (list, tuple) and arguments:
        return kind(_made(each, arguments[0]) for each in value)
    return value


def _instance(kind: Any, value: Mapping[str, Any]) -> Any:
    """Return the instance of a class with fields; what it computes itself is left to it."""
    named = [(each, each.read_as if each.read_as in value else each.name) for each in fields_of(kind)]
    held = [
        (each, _made(value[name], each.annotation)) for each, name in named if name in value and not each.is_computed
    ]
    found = kind(**{each.argument: part for each, part in held if each.argument})
    for each, part in held:
        if not each.argument:
            # Also where the class is frozen.
            object.__setattr__(found, each.attribute, part)
    return found


def _members(hint: Hint) -> list[Any]:
    return [each for each in hint.members if each is not types.NoneType]


def member_of(value: Any, members: list[Hint]) -> int:
    """Return the number of the member that a value is of: the first that has exactly such values, else the first of its type."""
    for exactly in (True, False):
        for number, each in enumerate(members):
            if _fits(value, each, exactly=exactly):
                return number
    wanted = ", ".join(getattr(each.type, "__name__", str(each.type)) for each in members)
    raise TypeError(f"expected one of {wanted}, found {type(value).__name__}: {value!r}")


def _fits(value: Any, hint: Hint, *, exactly: bool) -> bool:
    kind, attributes = get_origin(hint.type) or hint.type, hint.attributes
    if kind is Literal:
        return value in get_args(hint.type)
    if not isinstance(kind, type):
        return False
    if not exactly:
        wider = int if kind is float else bytes if issubclass(kind, bytes) else kind
        return isinstance(value, (kind, wider))
    is_of_it = type(value) is kind
    if kind is int and attributes.get("type") == "int":
        return is_of_it and -(2**31) <= value < 2**31
    if kind is float and attributes.get("type") == "float":
        return is_of_it and c_float(value).value == value
    if kind is Decimal:
        return is_of_it and value.as_tuple().exponent == -attributes.get("scale", 0)
    if kind is datetime:
        is_local = str(attributes.get("logicalType")).startswith("local")
        return is_of_it and (value.tzinfo is None) == is_local
    return is_of_it
