"""The fields of classes that stand for records: dataclasses, pydantic models and attrs classes, told apart without importing any of these."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, get_type_hints

from .annotations import UnclearField


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

ONE_NAME: Final = 'give it one `alias`, or say what messages call it: Field(..., json_schema_extra={"avro": {"name": "..."}})'
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
