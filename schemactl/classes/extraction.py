"""Load a user's class, and write the Avro definition that it has, with its defaults (`extract`).

Only `load_class` and `load_module` run a user's code; no declaration is read with them.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar, get_args, get_origin
from uuid import UUID

from schemactl import formats
from schemactl.codec.record_classes import (
    NO_DEFAULT,
    ONE_NAME,
    ORDERED,
    SINGLE,
    ClassField,
    Hint,
    Role,
    UnclearField,
    avro_of,
    doc_of,
    fields_of,
    is_fixed,
    is_record,
    member_of,
    read,
    symbol,
)
from schemactl.core.errors import SchemactlError, UsageError, did_you_mean
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import protobuf

# Defaults in JSON


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
            return {each.name: self.json(getattr(value, each.attribute), types[each.name]) for each in fields_of(kind)}
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


# Import of a user's class, as `python -m` would


def name_of(kind: type) -> str:
    """Return the full name of a class, with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


def load_class(text: str, folder: str) -> type:
    """Return the class that `text` names as MODULE:CLASS. This runs the module, and what it imports.

    Args:
        text: `shop.models:Order`; `shop.models:Order.Line` for a class inside another.
        folder: where to look for the module before what is installed.

    Raises:
        UsageError: the text is not of that form.
        SchemactlError: there is no such module or class, or the module cannot be imported.
    """
    module_name, colon, path = text.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module_name.split("."), *path.split(".")))):
        raise UsageError(f"{text}: expected MODULE:CLASS, such as shop.models:Order")
    found: Any = load_module(module_name, folder)
    for part in path.split("."):
        if not hasattr(found, part):
            classes = {name: value for name, value in vars(found).items() if isinstance(value, type)}
            # A module that only passes on others' classes has none of its own.
            own = [name for name, value in classes.items() if value.__module__ == module_name] or classes
            raise SchemactlError(
                f"{found.__name__} has no class {part}{did_you_mean(part, classes)}",
                fix=f"name one of {', '.join(sorted(own))}" if own else "name a module that defines classes",
            )
        found = getattr(found, part)
    if not isinstance(found, type):
        raise SchemactlError(f"{text} is not a class, but a value of type {type(found).__name__}", fix="name a class")
    return found


def load_module(name: str, folder: str) -> Any:
    """Return the module of that name, imported. For `folder` and what is raised see `load_class`."""
    with _looking_in(folder), redirect_stdout(sys.stderr):
        try:
            return importlib.import_module(name)
        except KeyboardInterrupt:
            raise
        # A module may do anything, and leave by sys.exit.
        except BaseException as error:  # noqa: BLE001
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and (name == missing or name.startswith(f"{missing}.")):
                raise SchemactlError(
                    f"there is no module {missing}, neither in {folder} nor installed beside schemactl",
                    fix="start in the folder that the module's name begins in, or install its package here",
                ) from None
            place = _place(error, folder)
            at = f"{place}: " if place else ""
            last = traceback.format_exception_only(error)[-1].strip()
            raise SchemactlError(
                f"{at}{name} cannot be imported: {last}", fix="repair the module, or install what it needs"
            ) from None


@contextmanager
def _looking_in(folder: str) -> Iterator[None]:
    before = [*sys.path]
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _place(error: BaseException, folder: str) -> str:
    """Return the file and line that failed, of the user's own files if there is one; "": unknown."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
    own = [each for each in frames if Path(folder) in Path(each.filename).parents]
    own = [each for each in own if "site-packages" not in each.filename] or frames[1:]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


@dataclass(frozen=True, slots=True)
class JavaOptions:
    """The options of Java's `SchemaDefinition` that change a definition.

    Attributes:
        always_allow_null: `withAlwaysAllowNull`: what is an object in Java may be null, with null for its default.
        jsr310: `withJSR310ConversionEnabled`: moments are `timestamp-millis`, and times of day, as always in Java, `time-millis`.
    """

    always_allow_null: bool = False
    jsr310: bool = False


# Definitions of classes of any kind


_NO_OPTIONS: Final = JavaOptions()


def extract(
    kind: type,
    type_: SchemaType | None = None,
    java: JavaOptions = _NO_OPTIONS,
    *,
    release: Release,
    role: Role | None = None,
) -> SchemaInfo:
    """Return the schema that a class stands for: what Pulsar's Python client registers for it, where that client takes it.

    Args:
        kind: a dataclass, a pydantic model, an attrs class, a `pulsar.schema.Record`, or the class of a protobuf message.
        type_: AVRO, JSON or PROTOBUF_NATIVE; None: the first that the class can be.
        java: the options of Java's `SchemaDefinition`; only for classes with annotations.
        release: which definitions a broker of that release takes.
        role: what the class does with messages: a consumer's does not read what it computes itself, and may read a field by another name
            than it writes it; None: both.

    Raises:
        SchemactlError: the class is none of these, or has something that Avro cannot express.
    """
    if _is_message(kind):
        _require_type(kind, "a protobuf message", type_, SchemaType.PROTOBUF_NATIVE)
        wrapper: Any = protobuf.load("definition")
        return SchemaInfo(SchemaType.PROTOBUF_NATIVE, wrapper.of_class(kind))
    if _is_pulsar_record(kind):
        _require_type(kind, "a pulsar.schema.Record", type_, SchemaType.AVRO, SchemaType.JSON)
        if java != _NO_OPTIONS:
            raise SchemactlError(
                f"{name_of(kind)} is a pulsar.schema.Record, whose `required` says what may be null",
                fix="leave out the options of Java's SchemaDefinition",
            )
        # To the byte what AvroSchema and JsonSchema of the client make of it.
        text = json.dumps(_definition_of_record(kind), indent=True)
    elif is_record(kind):
        _require_type(kind, "a class with annotations", type_, SchemaType.AVRO, SchemaType.JSON)
        from schemactl.declare.formatter import laid_out_json

        text = laid_out_json(_json(definition(kind, java, role)))
    else:
        raise SchemactlError(
            f"no definition can be taken from {name_of(kind)}",
            fix="name a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or the class of a protobuf message",
        )
    info = SchemaInfo(type_ or SchemaType.AVRO, text.encode())
    for problem in formats.problems(info, release):
        where = f" at {problem.pointer}" if problem.pointer else ""
        raise SchemactlError(
            f"the definition of {name_of(kind)} is not valid{where}: {problem.what}",
            fix=problem.fix or "change the annotation or the default in the class",
        )
    return info


def _json(value: Any) -> str:
    """Return a definition as JSON, with control characters escaped: the bytes of a default are often no text."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\x7f-\xa0\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _definition_of_record(kind: Any) -> Any:
    try:
        return kind.schema()
    # The client raises exceptions of any type for a class that is wrong.
    except Exception as error:  # noqa: BLE001
        raise SchemactlError(f"{name_of(kind)}: Pulsar's client rejects the class: {error}") from None


def _require_type(kind: type, what: str, asked: SchemaType | None, *possible: SchemaType) -> None:
    """Raise SchemactlError if a schema type is asked for that a class, which is `what`, cannot have."""
    if asked and asked not in possible:
        raise SchemactlError(
            f"{name_of(kind)} is {what}, of which no schema of type {asked.name} is made",
            fix=f"--type {' or '.join(each.name for each in possible)}",
        )


def _is_pulsar_record(kind: type) -> bool:
    return any(each.__module__ == "pulsar.schema.definition" and each.__name__ == "Record" for each in kind.__mro__)


def _is_message(kind: type) -> bool:
    descriptor = getattr(kind, "DESCRIPTOR", None)
    return hasattr(descriptor, "full_name") and hasattr(descriptor, "file") and hasattr(kind, "SerializeToString")


# Avro definitions of annotated classes: docs/how-to/extract.md has the table of types


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
        node, own, is_known = self._named(kind, {"type": "record", "name": kind.__name__, **_about(kind)}, namespace)
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

    def _literal(self, symbols: tuple[Any, ...], attributes: dict[str, Json], namespace: str, place: str) -> Json:
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
            f"{name_of(kind)}: a default factory fails: {error!r}", fix="make it work without any surroundings"
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
