"""The Avro definition of a class with annotations. docs/how-to/extract.md has the table of types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, get_args, get_origin
from uuid import UUID

from schemactl.core.errors import SchemactlError
from schemactl.extracting.defaults import DefaultWriter
from schemactl.extracting.loading import name_of
from schemactl.typed.annotations import ORDERED, SINGLE, Hint, UnclearField, read
from schemactl.typed.records import (
    NO_DEFAULT,
    ONE_NAME,
    ClassField,
    Role,
    avro_of,
    doc_of,
    fields_of,
    is_fixed,
    is_record,
)
from schemactl.typed.values import member_of, symbol

if TYPE_CHECKING:
    from schemactl.extracting.java_options import JavaOptions

Json = Any

_PRIMITIVES: Final[Mapping[Any, str]] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    None: "null",
}

_JAVA_PRIMITIVES: Final = (bool, int, float)
"""What is no object in Java, and so never null."""

_FIXES: Final[Mapping[Any, str]] = {
    Any: "name the type",
    object: "name the type",
    set: "write list[...]: Avro has no sets",
    frozenset: "write list[...]: Avro has no sets",
    Sequence: "write list[...]",
    Mapping: "write dict[str, ...]",
    list: "say of what: list[str]",
    tuple: "write list[...], or tuple[X, ...] of one type",
    dict: "say of what: dict[str, int]",
    complex: "write a class with two fields",
    timedelta: "write a number with its unit in the name: timeout_ms: int",
    Self: "write the name of the class",
    TypeVar: "write a class for it, with the type itself",
    Flag: "write int: flags are combined, and an enum is one of its symbols",
}


def definition(kind: type, java: JavaOptions, role: Role | None) -> Json:
    """Return the definition of a record as JSON (see `extract`).

    Raises:
        SchemactlError: it has something that Avro has not; the message names class and field.
    """
    return _Definer(java, role).record(kind, "")


class _Definer:
    """Makes one definition: a type that was defined is named where it comes again."""

    def __init__(self, java: JavaOptions, role: Role | None) -> None:
        self._java = java
        self._role = role
        self._owners: dict[str, Any] = {}
        self._definitions: dict[str, Json] = {}

    def record(self, kind: type, namespace: str) -> Json:
        """Return the record that a class stands for, where types without a namespace are in `namespace`."""
        node, own, is_known = self._named(
            kind, {"type": "record", "name": kind.__name__, **_about(kind)}, namespace
        )
        if is_known:
            return node
        node["fields"] = []
        for each in _fields(kind):
            place = f"{name_of(kind)}.{each.attribute}"
            if each.read_as and self._role is None:
                raise SchemactlError(
                    f"{place} is written as {each.name} and read as {each.read_as}, and a definition has one name for both",
                    fix=ONE_NAME,
                )
            if self._role != "consumer":
                node["fields"].append(self._field(each, own, place))
            elif not each.is_computed:
                node["fields"].append(self._field(replace(each, name=each.read_as or each.name), own, place))
        return node

    def _field(self, field: ClassField, namespace: str, place: str) -> Json:
        hint = self._read(field.annotation, place)
        default, given = field.default, field.default is not NO_DEFAULT
        first = member_of_default(hint, field.default, place) if given else None
        type_ = self._type(hint, namespace, place, first=first)
        adds_null = None in hint.members or type(None) in hint.members
        is_object = hint.type not in _JAVA_PRIMITIVES and not hint.members and hint.verbatim is None
        java_null = self._java.always_allow_null and is_object
        if java_null:
            type_ = [type_, "null"] if given and default is not None else ["null", type_]
        found: dict[str, Json] = {"name": field.name, "type": type_}
        doc = field.doc if field.doc is not None else hint.doc or None
        if doc is not None:
            found["doc"] = doc
        if "default" in field.avro:
            found["default"] = field.avro["default"]
        elif given:
            found["default"] = DefaultWriter(self._definitions, place).json(default, type_)
        elif (adds_null and ORDERED not in hint.markers) or java_null:
            found["default"] = None
        return {**found, **field.avro}

    def _read(self, annotation: Any, place: str) -> Hint:
        try:
            hint = read(annotation)
        except UnclearField as error:
            raise SchemactlError(f"{place}: {error.what}", fix=error.fix) from None
        if hint.attributes and len(hint.members) - (type(None) in hint.members) > 1:
            raise SchemactlError(
                f"{place}: Annotated says of a union what belongs to one of its types",
                fix='write it beside that type: Annotated[int, "int"] | str',
            )
        if hint.attributes and is_record(hint.type):
            raise SchemactlError(
                f"{place}: what Annotated says of {_shown(hint.type)} belongs to the class itself",
                fix='write it there: __avro__ = {"...": ...}',
            )
        return hint

    def _type(self, hint: Hint, namespace: str, place: str, *, first: int | None = None) -> Json:
        """Return the type that an annotation stands for; the default of a field is of the member `first` of a union."""
        if hint.verbatim is not None:
            return hint.verbatim
        if hint.members:
            return self._union(hint, namespace, place, first)
        found = self._single(hint, namespace, place)
        return [found] if SINGLE in hint.markers else found

    def _union(self, hint: Hint, namespace: str, place: str, first: int | None) -> Json:
        members = [*hint.members]
        if ORDERED not in hint.markers:
            null = next((at for at, each in enumerate(members) if each is type(None)), None)
            at = first if first is not None else null
            if at is not None:
                members.insert(0, members.pop(at))
        return [self._type(self._read(each, place), namespace, place) for each in members]

    def _single(self, hint: Hint, namespace: str, place: str) -> Json:
        kind, arguments = get_origin(hint.type) or hint.type, get_args(hint.type)
        attributes = dict(hint.attributes)
        if is_record(kind):
            return self.record(kind, namespace)
        if isinstance(kind, type) and issubclass(kind, Enum) and not issubclass(kind, Flag):
            symbols = [symbol(each) for each in kind]
            found = {"type": "enum", "name": kind.__name__, **_about(kind), "symbols": symbols}
            return self._named(kind, found | attributes, namespace)[0]
        if is_fixed(kind):
            found = {"type": "fixed", "name": kind.__name__, **_about(kind)}
            return self._named(kind, found | attributes, namespace)[0]
        if kind is Literal:
            return self._literal(arguments, attributes, namespace, place)
        if kind is list or (kind is tuple and arguments[1:] == (...,)):
            if not arguments:
                raise self._unsupported(kind, place)
            items = self._type(self._read(arguments[0], place), namespace, place)
            return {"type": "array", "items": items, **attributes}
        if kind is dict and arguments:
            if arguments[0] is not str:
                raise SchemactlError(
                    f"{place}: the keys of a map are texts in Avro, not {_shown(arguments[0])}",
                    fix="write dict[str, ...]",
                )
            held = self._type(self._read(arguments[1], place), namespace, place)
            return {"type": "map", "values": held, **attributes}
        found = self._primitive(kind, attributes, place)
        if found.get("type") == "fixed" or "name" in found:
            return self._named(str(sorted(found.items(), key=str)), found, namespace)[0]
        return found["type"] if found.keys() == {"type"} else found

    def _primitive(self, kind: Any, attributes: dict[str, Json], place: str) -> dict[str, Json]:
        """Return the primitive or logical type of a Python type without parts, or what `attributes` say."""
        if not isinstance(kind, type):
            raise self._unsupported(kind, place)
        if kind in _PRIMITIVES:
            return {"type": _PRIMITIVES[kind], **attributes}
        if kind is Decimal:
            found = {"type": "bytes", "logicalType": "decimal", **attributes}
            if "precision" not in found:
                raise SchemactlError(
                    f"{place}: Avro's decimals have a fixed number of digits, and Decimal alone does not say how many",
                    fix='write Annotated[Decimal, "decimal(12, 2)"], with all digits and those behind the point',
                )
            return found
        unit = "millis" if self._java.jsr310 else "micros"
        logical_types = {
            datetime: ("long", f"timestamp-{unit}"),
            date: ("int", "date"),
            time: ("int" if self._java.jsr310 else "long", f"time-{unit}"),
            UUID: ("string", "uuid"),
        }
        logical = logical_types.get(kind)
        if logical:
            return {"type": logical[0], "logicalType": logical[1], **attributes}
        if "type" in attributes:
            return attributes
        raise self._unsupported(kind, place)

    def _unsupported(self, kind: Any, place: str) -> SchemactlError:
        key = TypeVar if isinstance(kind, TypeVar) else Flag if isinstance(kind, type(Flag)) else kind
        fix = _FIXES.get(key, "write a dataclass, or the type that travels, such as str")
        return SchemactlError(f"{place}: Avro has no type for {_shown(kind)}", fix=fix)

    def _literal(
        self, symbols: tuple[Any, ...], attributes: dict[str, Json], namespace: str, place: str
    ) -> Json:
        if not all(isinstance(each, str) for each in symbols):
            texts = [each for each in symbols if isinstance(each, str) and not isinstance(each, Enum)]
            others = [type(each) for each in symbols if each not in texts]
            types = [str(Literal[(*texts,)]).removeprefix("typing.")] if texts else []
            types += ["None" if each is type(None) else each.__name__ for each in dict.fromkeys(others)]
            raise SchemactlError(
                f"{place}: of a Literal, only texts are symbols of an enum", fix=f"write {' | '.join(types)}"
            )
        of_class, _, field = place.rpartition(".")
        name = of_class.rpartition(".")[2] + "".join(part[:1].upper() + part[1:] for part in field.split("_"))
        found = {"type": "enum", "name": name, "symbols": [*symbols], **attributes}
        return self._named(symbols, found, namespace)[0]

    def _named(self, owner: Any, node: dict[str, Json], namespace: str) -> tuple[Json, str, bool]:
        """Return a named type, the namespace that it is in, and whether it was defined before, and is a name here."""
        own = node.get("namespace", namespace)
        full = f"{own}.{node['name']}" if own else node["name"]
        if full in self._owners:
            if self._owners[full] != owner:
                raise SchemactlError(
                    f"two types are called {full}: {_shown(self._owners[full])} and {_shown(owner)}",
                    fix='give one of them another name or namespace: __avro__ = {"name": "..."}',
                )
            return (node["name"] if own == namespace else full), own, True
        if own == namespace:
            node.pop("namespace", None)
        self._owners[full], self._definitions[full] = owner, node
        return node, own, False


def _fields(kind: type) -> Sequence[ClassField]:
    """Return the fields of a class. Raise SchemactlError if it does not say what they are."""
    if getattr(kind, "__pydantic_root_model__", False):
        raise SchemactlError(
            f"{name_of(kind)} is a RootModel, whose messages are no records",
            fix="write the type of its root instead: `Ids = list[str]` in place of `class Ids(RootModel[list[str]])`",
        )
    if "[" in kind.__name__:
        raise SchemactlError(
            f"Avro has no name for {name_of(kind)}", fix=f"give it one: class OrderPage({kind.__name__})"
        )
    try:
        return fields_of(kind)
    except UnclearField as error:
        raise SchemactlError(f"{name_of(kind)}: {error.what}", fix=error.fix) from None
    except (NameError, TypeError, AttributeError) as error:
        raise SchemactlError(
            # Of pydantic's, an address follows.
            f"{name_of(kind)}: its annotations cannot be evaluated: {str(error).partition(chr(10))[0]}",
            fix="import what they name in the module itself, not only for type checking",
        ) from None
    # A factory may raise anything.
    except Exception as error:  # noqa: BLE001
        raise SchemactlError(
            f"{name_of(kind)}: a default factory fails: {error!r}",
            fix="make it work without any surroundings",
        ) from None


def member_of_default(hint: Hint, default: Any, place: str) -> int | None:
    """Return the number of the member of a union that a default fits; None: there is no union, or it has no null for a default of None."""
    if not hint.members:
        return None
    if default is None:
        return next((at for at, each in enumerate(hint.members) if each is type(None)), None)
    others = [at for at, each in enumerate(hint.members) if each is not type(None)]
    try:
        return others[member_of(default, [read(hint.members[at]) for at in others])]
    except TypeError as error:
        raise SchemactlError(
            f"{place}: its default fits no member of the union: {error}",
            fix="give another default, or add its type to the union",
        ) from None


def _about(kind: type) -> dict[str, Json]:
    """Return what a class says of its type besides its members."""
    avro, doc = avro_of(kind), doc_of(kind)
    first = {"namespace": avro["namespace"]} if "namespace" in avro else {}
    return {**first, **({"doc": doc} if doc else {}), **avro}


def _shown(kind: Any) -> str:
    return (
        name_of(kind)
        if isinstance(kind, type) and kind.__module__ != "builtins"
        else getattr(kind, "__name__", str(kind))
    )
