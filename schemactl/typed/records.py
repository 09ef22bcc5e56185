"""The fields of classes that stand for records: dataclasses, pydantic models and attrs classes, told apart without importing any of these."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Protocol, get_type_hints


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelInstance(Protocol):
    """An instance of a pydantic model."""

    __pydantic_fields__: ClassVar[dict[str, Any]]


Instance = DataclassInstance | ModelInstance

AVRO: Final = "__avro__"
"""The attribute of a class that says of the Avro type what Python has no words for: `namespace`, `aliases`, another `name`."""

NO_DEFAULT: Final = dataclasses.MISSING


@dataclass(frozen=True)
class ClassField:
    """A field of a class.

    Attributes:
        attribute: what Python calls it.
        argument: what the class takes it as.
        name: what Avro calls it.
        annotation: its type.
        default: its value where none is given; NO_DEFAULT: there must be one.
        doc: what it says for people; None: nothing.
        avro: what else Avro's field has: `aliases`, `order`, a `default` as JSON.
    """

    attribute: str
    argument: str
    name: str
    annotation: Any
    default: Any = NO_DEFAULT
    doc: str | None = None
    avro: Mapping[str, Any] = field(default_factory=dict)


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
    """Return the fields of a class for which `is_record` holds.

    Raises:
        NameError: an annotation names what its module does not have.
    """
    hints = get_type_hints(kind, include_extras=True)
    if hasattr(kind, "__pydantic_fields__"):
        return tuple(_of_pydantic(kind, hints))
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(_of_attrs(kind, hints))
    return tuple(_of_dataclass(kind, hints))


def _of_dataclass(kind: Any, hints: Mapping[str, Any]) -> Iterator[ClassField]:
    for each in dataclasses.fields(kind):
        made = each.default_factory
        default = each.default if made is NO_DEFAULT else made()
        yield _field(each.name, each.name, hints[each.name], default, each.metadata.get("avro", {}))


def _of_attrs(kind: Any, hints: Mapping[str, Any]) -> Iterator[ClassField]:
    attr: Any = sys.modules["attr"]
    for each in kind.__attrs_attrs__:
        default = each.default
        if default is attr.NOTHING:
            default = NO_DEFAULT
        elif isinstance(default, attr.Factory):
            default = NO_DEFAULT if default.takes_self else default.factory()
        annotation = hints.get(each.name, each.type)
        yield _field(each.name, each.alias, annotation, default, each.metadata.get("avro", {}))


def _of_pydantic(kind: Any, hints: Mapping[str, Any]) -> Iterator[ClassField]:
    for name, info in kind.__pydantic_fields__.items():
        default = NO_DEFAULT
        if info.default_factory is not None and not info.default_factory_takes_validated_data:
            default = info.default_factory()
        elif info.default_factory is None and not info.is_required():
            default = info.default
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
        alias = info.alias or name
        annotation = Annotated[hints[name], *info.metadata] if info.metadata else hints[name]
        avro: Any = {"name": alias, "doc": info.description, **extra.get("avro", {})}
        yield _field(name, alias, annotation, default, avro)


def _field(
    attribute: str, argument: str, annotation: Any, default: Any, avro: Mapping[str, Any]
) -> ClassField:
    rest = {name: value for name, value in avro.items() if name not in ("name", "doc")}
    name, doc = avro.get("name", attribute), avro.get("doc")
    return ClassField(attribute, argument, name, annotation, default, doc, rest)
