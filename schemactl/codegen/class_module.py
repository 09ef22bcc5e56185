"""Write dataclasses or pydantic models for a definition, as text from which `extract` takes the same definition."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from schemactl.codec.record_classes import LOGICAL
from schemactl.codegen.spark_types import PYTHON_TYPES, Decimal, literal, to_block_literal
from schemactl.codegen.topic_struct import StructOptions, convert
from schemactl.core.names import TopicName
from schemactl.core.project import ClassKind
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import pair_of, spec
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Schema,
    Union,
    parts,
)

# Defaults


_EMPTY: Final = {"[]": "list", "{}": "dict"}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def is_plain(schema: Schema) -> bool:
    """Whether a default in Python is written in Avro in one way alone."""
    match schema:
        case Record():
            return False
        case Union():
            return is_plain(schema.branches[0])
        case Array():
            return is_plain(schema.items)
        case Map():
            return is_plain(schema.values)
    return "logicalType" not in schema.properties


@dataclass(frozen=True)
class PythonNames:
    """What Python calls the types of a module.

    Attributes:
        classes: of each named type, by its identity.
        attributes: of each record by its identity, those of its fields by their names.
        base: the Python type of a value without parts.
    """

    classes: Mapping[int, str]
    attributes: Mapping[int, Mapping[str, str]]
    base: Callable[[Schema], str]


def is_factory(text: str) -> bool:
    """Whether what `default_text` gives is a function that makes the default."""
    return text in _EMPTY.values() or text.startswith("lambda:")


def default_text(schema: Schema, default: Any, names: PythonNames) -> str | None:
    """Return a default, given as JSON, as Python writes it: as a function where each instance has its own (`is_factory`); None: Python has no such value."""
    try:
        found = _text(schema, default, names)
    except (OverflowError, ValueError, TypeError, KeyError):
        return None
    first = schema.branches[0] if isinstance(schema, Union) else schema
    if isinstance(first, Array | Map | Record):
        return _EMPTY.get(found, f"lambda: {found}")
    return found


def _text(schema: Schema, value: Any, names: PythonNames) -> str:
    match schema:
        case Union():
            return _text(schema.branches[0], value, names)
        case Array():
            return f"[{', '.join(_text(schema.items, each, names) for each in value)}]"
        case Map():
            inner = (f"{literal(key)}: {_text(schema.values, each, names)}" for key, each in value.items())
            return f"{{{', '.join(inner)}}}"
        case Record():
            types, attributes = schema.fields_by_name, names.attributes[id(schema)]
            given = (
                f"{attributes[key]}={_text(types[key].schema, each, names)}"
                for key, each in value.items()
                if key in types
            )
            return f"{names.classes[id(schema)]}({', '.join(given)})"
        case Enum():
            return f"{names.classes[id(schema)]}({literal(value)})"
    return _leaf(schema, value, names)


def _leaf(schema: Schema, value: Any, names: PythonNames) -> str:
    kind = names.base(schema)
    if isinstance(value, str) and (schema.type == "bytes" or isinstance(schema, Fixed)):
        data = value.encode("latin-1")
        if kind == "Decimal":
            scale = schema.properties.get("scale", 0)
            unscaled = int.from_bytes(data, "big", signed=True)
            return f'Decimal("{unscaled}E-{scale}")' if scale else f'Decimal("{unscaled}")'
        return f"{names.classes[id(schema)]}({data!r})" if isinstance(schema, Fixed) else repr(data)
    if kind.startswith("dt."):
        return _moment(kind, value, str(schema.properties.get("logicalType", "")))
    if kind == "float" and not abs(value) < float("inf"):
        return f'float("{value}")'
    return literal(value) if kind == "str" else repr(value)


def _moment(kind: str, value: int, logical: str) -> str:
    if kind == "dt.date":
        day = dt.date(1970, 1, 1) + dt.timedelta(days=value)
        return f"dt.date({day.year}, {day.month}, {day.day})"
    at = _EPOCH + dt.timedelta(microseconds=value * (1000 if logical.endswith("millis") else 1))
    clock = (at.hour, at.minute, at.second, at.microsecond)
    if kind == "dt.time":
        return f"dt.time({', '.join(map(str, clock))})"
    zone = "" if logical.startswith("local") else ", tzinfo=dt.UTC"
    return f"dt.datetime({', '.join(map(str, (at.year, at.month, at.day, *clock)))}{zone})"


# Classes


_SMALL_NUMBERS: Final = ("int", "float")
"""The primitives that an annotation names: Python's `int` and `float` alone are Avro's `long` and `double`."""

_PLAIN_LOGICAL_TYPES: Final = {"dt.date": "date", "dt.datetime": "timestamp-micros", "dt.time": "time-micros"}
"""The logical types that Python's own types stand for."""

_NUMBER_PAIRS: Final = ({"int", "long"}, {"float", "double"})
"""A union of these, and of null, is one number in Spark, and so in codecs."""

_IMPORTS: Final = {
    "dataclasses": ("dataclass(", "field("),
    "decimal": ("Decimal",),
    "enum": ("StrEnum",),
    "typing": ("Annotated[",),
}
"""The names that classes use of each module, as they begin in a text."""

_PYDANTIC_IMPORTS: Final = ("BaseModel", "ConfigDict", "Field(")

_TAKEN: Final = frozenset(
    {"bool", "bytes", "dict", "float", "int", "list", "str", "dt", "annotations"}
    | {name.rstrip("([") for names in (*_IMPORTS.values(), _PYDANTIC_IMPORTS) for name in names}
)
"""What other names of a module would hide."""

_PYDANTIC_METHODS: Final = frozenset(
    {
        "copy",
        "construct",
        "dict",
        "fields",
        "from_orm",
        "json",
        "parse_file",
        "parse_obj",
        "parse_raw",
        "schema",
        "schema_json",
        "update_forward_refs",
        "validate",
    }
)
"""Methods of a pydantic model that a field would hide; the others begin with `model_` or `_`."""


def topic_classes(
    topic: TopicName, number: int, info: SchemaInfo, kind: ClassKind, options: StructOptions, release: Release
) -> str:
    """Return the text of a module with the classes for a version of a topic; "": its definition is no Avro record.

    Args:
        topic: whose version it is.
        number: the version's.
        info: its schema; of a KEY_VALUE, both halves have classes.
        kind: what to write.
        options: for which Spark values are read, which decides on some of their types.
        release: whose Avro reads the definition.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    both = pair_of(info)
    halves = both.halves.values() if both else [info]
    schemas = [parse(half.schema, release) for half in halves if spec(half).payload in ("avro", "json")]
    return class_module(schemas, kind, options, f"The records of {topic}, version {number}.")


def class_module(schemas: Iterable[Schema], kind: ClassKind, options: StructOptions, doc: str) -> str:
    """Return the text of a module with the classes for all named types of those of the definitions that are records; "": none is."""
    classes = _Classes(kind, options)
    for each in schemas:
        if isinstance(each, Record):
            classes.add(each)
    if not classes.texts:
        return ""
    body = "\n\n".join(classes.texts)
    standard = "import datetime as dt\n" if _used("dt.", body) else ""
    standard += "".join(_import(module, names, body) for module, names in _IMPORTS.items())
    blocks = [f"{to_block_literal(doc)}\n", "from __future__ import annotations\n", standard]
    blocks += [_import("pydantic", _PYDANTIC_IMPORTS, body)] if kind == "pydantic" else []
    return "\n".join([*filter(None, blocks), f"\n{body}"])


def _import(module: str, names: Iterable[str], body: str) -> str:
    """Return the line that imports what a text uses of a module; "": nothing."""
    used = [name.rstrip("([") for name in names if _used(name, body)]
    return f"from {module} import {', '.join(used)}\n" if used else ""


def _used(name: str, body: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}", body) is not None


class _Classes:
    """The classes of a module, each after those that it uses."""

    def __init__(self, kind: ClassKind, options: StructOptions) -> None:
        self.texts: list[str] = []
        self._kind = kind
        self._options = options
        self._names: dict[int, str] = {}
        self._attributes: dict[int, dict[str, str]] = {}
        self._taken = {*_TAKEN}
        self._written: set[int] = set()
        self._python = PythonNames(self._names, self._attributes, self._base)

    def add(self, record: Record) -> None:
        """Add the classes of a definition."""
        named = [each for each in parts(record) if isinstance(each, Named) and id(each) not in self._names]
        for each in named:
            self._names[id(each)] = self._free(each.name, self._taken)
        for each in named:
            if isinstance(each, Record):
                taken = {*self._taken, *(_PYDANTIC_METHODS if self._kind == "pydantic" else ())}
                self._attributes[id(each)] = {field.name: self._attribute(field.name, taken) for field in each.fields}
        self._type(record, None)

    def _free(self, wanted: str, taken: set[str]) -> str:
        """Return a name for Python that is like `wanted`, and take it."""
        name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wanted))
        name = name if name.isidentifier() and not name.startswith("__") else f"f{name}"
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        return name

    def _attribute(self, name: str, taken: set[str]) -> str:
        if self._kind == "pydantic" and name.startswith(("_", "model_")):
            name = f"f_{name.lstrip('_')}"
        return self._free(name, taken)

    def _type(self, schema: Schema, namespace: str | None) -> str:
        """Return the annotation of a type, whose named types are written where they were not yet."""
        match schema:
            case Record() | Enum() | Fixed():
                if id(schema) not in self._written:
                    self._written.add(id(schema))
                    self.texts.append(self._definition(schema, namespace))
                return self._names[id(schema)]
            case Array():
                return _annotated(f"list[{self._type(schema.items, namespace)}]", _json(schema.properties))
            case Map():
                return _annotated(f"dict[str, {self._type(schema.values, namespace)}]", _json(schema.properties))
            case Union():
                return self._union(schema, namespace)
        base = self._base(schema)
        return _annotated(base, self._type_text(base, schema.type, schema.properties))

    def _base(self, schema: Schema) -> str:
        """Return the type of what a codec gives for a value without parts."""
        found = convert(schema, self._options).type
        if isinstance(found, Decimal) and not found.is_int:
            return "Decimal"
        name = "int" if isinstance(found, Decimal) else PYTHON_TYPES[getattr(found, "name", "")]
        return f"dt.{name}" if name in ("date", "datetime", "time", "timedelta") else name

    def _type_text(self, base: str, type_: str, properties: Mapping[str, Any]) -> str:
        """Return the text beside a Python type from which `extract` knows a primitive."""
        logical = properties.get("logicalType")
        if not properties:
            return type_ if type_ in _SMALL_NUMBERS else ""
        if properties.keys() == {"logicalType"} and LOGICAL.get(str(logical)) == type_:
            return "" if _PLAIN_LOGICAL_TYPES.get(base) == logical else str(logical)
        if base == "Decimal" and list(properties) in (["logicalType", "precision", "scale"], ["precision", "scale"]):
            return f"decimal({properties['precision']}, {properties['scale']})"
        return _json({"type": type_, **properties})

    def _union(self, union: Union, namespace: str | None, *, ordered: bool | None = None) -> str:
        kinds = [each.type for each in union.branches]
        if len(kinds) == 1:
            return _annotated(self._type(union.branches[0], namespace), "union")
        others = {*kinds} - {"null"}
        if len(others) == len(kinds) - ("null" in kinds) == 2 and others in _NUMBER_PAIRS:
            number = "float" if "double" in others else "int"
            null = " | None" if "null" in kinds else ""
            return _annotated(f"{number}{null}", json.dumps(json.loads(schema_text(union))))
        types = ["None" if each.type == "null" else self._type(each, namespace) for each in union.branches]
        if ordered is None:
            ordered = len(others) > 1 or kinds[0] != "null"
        if not ordered and types[0] == "None":
            types = [*types[1:], "None"]
        names = ", ".join(each.full_name for each in union.branches)
        return _annotated(" | ".join(types), f"ordered: {names}" if ordered else "")

    def _definition(self, schema: Record | Enum | Fixed, namespace: str | None) -> str:
        """Return the class of a named type; a fixed that Python has another type for is a name for that."""
        name = self._names[id(schema)]
        avro = self._avro(schema, name, namespace)
        match schema:
            case Fixed() if (base := self._base(schema)) != "bytes":
                definition = {"type": "fixed", "name": schema.name, "size": schema.size, **avro, **_doc(schema.doc)}
                return f"{name} = {_annotated(base, _json(definition))}\n"
            case Fixed():
                head, members = f"class {name}(bytes):", []
                avro = {"type": "fixed", "size": schema.size, **avro}
            case Enum():
                taken = {*dir(str), "name", "value", "mro"}
                names = [self._free(each.lstrip("_") or "_x", taken) for each in schema.symbols]
                head = f"class {name}(StrEnum):"
                members = [f"{each} = {literal(text)}" for each, text in zip(names, schema.symbols, strict=True)]
            case _ if self._kind == "pydantic":
                head = f"class {name}(BaseModel):"
                members = [self._field(each, schema) for each in schema.fields]
            case _:
                head = f"@dataclass(kw_only=True)\nclass {name}:"
                members = [self._field(each, schema) for each in schema.fields]
        blocks = []
        if schema.doc and _is_docstring(schema.doc, name):
            blocks.append(f'"""{schema.doc}"""')
        elif schema.doc is not None:
            avro["doc"] = schema.doc
        if self._kind == "pydantic" and isinstance(schema, Record):
            blocks.append("model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True)")
        if avro:
            blocks.append(f"__avro__ = {_python(avro)}")
        if members:
            blocks.append("\n    ".join(members))
        return f"{head}\n    " + "\n\n    ".join(blocks or ["pass"]) + "\n"

    def _avro(self, schema: Record | Enum | Fixed, name: str, namespace: str | None) -> dict[str, Any]:
        """Return what Avro has of a named type that the class does not say."""
        own = schema.namespace or ""
        found: dict[str, Any] = {"name": schema.name} if name != schema.name else {}
        if own or namespace:
            found["namespace"] = own
        if schema.aliases:
            found["aliases"] = [each.removeprefix(f"{own}.") if own else each for each in schema.aliases]
        if isinstance(schema, Enum) and schema.default is not None:
            found["default"] = schema.default
        if isinstance(schema, Record) and schema.is_error:
            found["type"] = "error"
        return found | dict(schema.properties)

    def _field(self, field: Field, record: Record) -> str:
        attribute = self._attributes[id(record)][field.name]
        annotation = self._annotation(field, record.namespace)
        avro: dict[str, Any] = {}
        if field.aliases:
            avro["aliases"] = [*field.aliases]
        if field.order != "ascending":
            avro["order"] = field.order
        avro |= field.properties
        default = ""
        if field.default is not NO_DEFAULT:
            default = default_text(field.schema, field.default, self._python) or ""
            if not (default and is_plain(field.schema)):
                avro["default"] = field.default
        write = _dataclass_field if self._kind == "dataclass" else _pydantic_field
        return f"{attribute}: {annotation}{write(field, attribute, default, avro)}"

    def _annotation(self, field: Field, namespace: str | None) -> str:
        """Return a field's annotation; a union with null says where no default follows from it."""
        union = field.schema
        if not isinstance(union, Union) or len(union.branches) == 1:
            return self._type(union, namespace)
        kinds = [each.type for each in union.branches]
        several = len(kinds) - ("null" in kinds) > 1
        return self._union(union, namespace, ordered=several or (field.default is NO_DEFAULT and "null" in kinds))


def _dataclass_field(field: Field, attribute: str, default: str, avro: dict[str, Any]) -> str:
    extra = {**({"name": field.name} if attribute != field.name else {}), **_doc(field.doc), **avro}
    made = is_factory(default)
    if not extra and not made:
        return f" = {default}" if default else ""
    arguments = [f"default{'_factory' if made else ''}={default}"] if default else []
    if extra:
        arguments.append(f"metadata={_python({'avro': extra})}")
    return f" = field({', '.join(arguments)})"


def _pydantic_field(field: Field, attribute: str, default: str, avro: dict[str, Any]) -> str:
    made = is_factory(default)
    arguments = [f"default_factory={default}" if made else default] if default else []
    if attribute != field.name:
        arguments.append(f"alias={literal(field.name)}")
    if field.doc:
        arguments.append(f"description={literal(field.doc)}")
    elif field.doc is not None:
        avro["doc"] = ""
    if avro:
        arguments.append(f"json_schema_extra={_python({'avro': avro})}")
    if arguments == [default] and not made:
        return f" = {default}" if default else ""
    return f" = Field({', '.join(arguments)})" if arguments else ""


def _doc(doc: str | None) -> dict[str, str]:
    return {} if doc is None else {"doc": doc}


def _annotated(annotation: str, extra: str) -> str:
    return f"Annotated[{annotation}, {literal(extra)}]" if extra else annotation


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value)) if value else ""


def _python(value: Any) -> str:
    """Return a JSON value as Python writes it."""
    match value:
        case str():
            return literal(value)
        case dict():
            return "{" + ", ".join(f"{literal(key)}: {_python(each)}" for key, each in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_python, value))}]"
        case float() if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  NaN
            return f'float("{value}")'
    return repr(value)


def _is_docstring(doc: str, name: str) -> bool:
    """Whether a class has that doc again if it stands in it as its documentation."""
    plain = doc.isprintable() and doc.isascii() and not re.search(r'\\|"""|"$', doc)
    return plain and inspect.cleandoc(doc) == doc and not doc.startswith(f"{name}(") and doc != "An enumeration."
