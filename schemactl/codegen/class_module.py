"""Generate dataclasses or pydantic models for a definition, from which `extract` makes the same definition again."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from schemactl.codec.record_classes import LOGICAL
from schemactl.codegen.spark_types import PYTHON_TYPES, Decimal, literal, to_block_literal
from schemactl.codegen.topic_struct import StructOptions, convert
from schemactl.core.names import TopicName
from schemactl.core.project import ClassKind
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import get_parts, spec
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

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_FACTORIES: Final = {"[]": "list", "{}": "dict"}
"""The functions that make empty defaults."""

_SMALL_NUMBERS: Final = ("int", "float")
"""The primitives that need an annotation, since Python's `int` and `float` alone mean Avro's `long` and `double`."""

_PLAIN_LOGICAL_TYPES: Final = {"dt.date": "date", "dt.datetime": "timestamp-micros", "dt.time": "time-micros"}
"""The logical types that Python's types mean without an annotation."""

_NUMBER_PAIRS: Final = ({"int", "long"}, {"float", "double"})
"""Unions that are one number in Spark, and so in codecs."""

_IMPORTS: Final = {
    "dataclasses": ("dataclass(", "field("),
    "decimal": ("Decimal",),
    "enum": ("StrEnum",),
    "typing": ("Annotated[",),
}
"""The names that classes use from each module, with the character after them."""

_PYDANTIC_IMPORTS: Final = ("BaseModel", "ConfigDict", "Field(")

_RESERVED_NAMES: Final = frozenset(
    {"bool", "bytes", "dict", "float", "int", "list", "str", "dt", "annotations"}
    | {name.rstrip("([") for names in (*_IMPORTS.values(), _PYDANTIC_IMPORTS) for name in names}
)
"""Names that a class of the same name would hide."""

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
"""Methods of a pydantic model that a field would hide, in addition to names that begin with `model_` or `_`."""


def topic_classes(
    topic: TopicName, number: int, info: SchemaInfo, kind: ClassKind, options: StructOptions, release: Release
) -> str:
    """Return the text of a module with the classes for a version of a topic, or "" if the definition is not an Avro record.

    Args:
        topic: the topic's name.
        number: the version's number.
        info: the version's schema; of a KEY_VALUE, the key and the value get classes.
        kind: the kind of classes.
        options: the settings of the columns, whose Spark release decides on some types.
        release: the Pulsar release whose Avro parses the definition.

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    schemas = [
        parse(part.schema, release) for part in get_parts(info).values() if spec(part).payload in ("avro", "json")
    ]
    return class_module(schemas, kind, options, f"The records of {topic}, version {number}.")


def class_module(schemas: Iterable[Schema], kind: ClassKind, options: StructOptions, doc: str) -> str:
    """Return the text of a module with the classes for all named types of the records, or "" if no schema is a record.

    Args:
        schemas: definitions. Only records become classes.
        kind: the kind of classes.
        options: the settings of the columns, whose Spark release decides on some types.
        doc: the module's docstring.
    """
    classes = _Classes(kind, options)
    for schema in schemas:
        if isinstance(schema, Record):
            classes.add(schema)
    if not classes.texts:
        return ""
    body = "\n\n".join(classes.texts)
    standard_imports = "import datetime as dt\n" if _is_used("dt.", body) else ""
    standard_imports += "".join(_make_import(module, names, body) for module, names in _IMPORTS.items())
    blocks = [f"{to_block_literal(doc)}\n", "from __future__ import annotations\n", standard_imports]
    blocks += [_make_import("pydantic", _PYDANTIC_IMPORTS, body)] if kind == "pydantic" else []
    return "\n".join([*filter(None, blocks), f"\n{body}"])


def _make_import(module: str, names: Iterable[str], body: str) -> str:
    """Return the line that imports the names which a text uses from a module, or ""."""
    used_names = [name.rstrip("([") for name in names if _is_used(name, body)]
    return f"from {module} import {', '.join(used_names)}\n" if used_names else ""


def _is_used(name: str, body: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}", body) is not None


class _Classes:
    """The classes of a module, each after the classes that it uses.

    Attributes:
        texts: the text of each class.
    """

    def __init__(self, kind: ClassKind, options: StructOptions) -> None:
        self.texts: list[str] = []
        self._kind = kind
        self._options = options
        # By the identity of the schema: a named type, or a record and the names of its fields.
        self._class_names: dict[int, str] = {}
        self._attribute_names: dict[int, dict[str, str]] = {}
        self._reserved_names = {*_RESERVED_NAMES}
        self._defined: set[int] = set()

    def add(self, record: Record) -> None:
        """Add the classes of a definition."""
        named_types = [
            schema for schema in parts(record) if isinstance(schema, Named) and id(schema) not in self._class_names
        ]
        for schema in named_types:
            self._class_names[id(schema)] = _make_name(schema.name, self._reserved_names)
        for schema in named_types:
            if isinstance(schema, Record):
                reserved = {*self._reserved_names, *(_PYDANTIC_METHODS if self._kind == "pydantic" else ())}
                names = self._attribute_names[id(schema)] = {}
                for field in schema.fields:
                    is_hidden = self._kind == "pydantic" and field.name.startswith(("_", "model_"))
                    names[field.name] = _make_name(f"f_{field.name.lstrip('_')}" if is_hidden else field.name, reserved)
        self._annotate(record, None)

    # Classes of named types

    def _define(self, schema: Record | Enum | Fixed, namespace: str | None) -> str:
        """Return the class of a named type, or an alias for a fixed that has another type in Python."""
        name = self._class_names[id(schema)]
        avro = self._list_attributes(schema, name, namespace)
        members: list[str] = []
        match schema:
            case Fixed() if (base := self._find_base(schema)) != "bytes":
                definition = {
                    "type": "fixed",
                    "name": schema.name,
                    "size": schema.size,
                    **avro,
                    **_make_doc_attribute(schema.doc),
                }
                return f"{name} = {_add_annotation(base, _to_json(definition))}\n"
            case Fixed():
                head = f"class {name}(bytes):"
                avro = {"type": "fixed", "size": schema.size, **avro}
            case Enum():
                reserved = {*dir(str), "name", "value", "mro"}
                head = f"class {name}(StrEnum):"
                members = [
                    f"{_make_name(symbol.lstrip('_') or '_x', reserved)} = {literal(symbol)}"
                    for symbol in schema.symbols
                ]
            case _ if self._kind == "pydantic":
                head = f"class {name}(BaseModel):"
                members = [self._define_field(field, schema) for field in schema.fields]
            case _:
                head = f"@dataclass(kw_only=True)\nclass {name}:"
                members = [self._define_field(field, schema) for field in schema.fields]
        blocks = []
        if schema.doc and _is_docstring(schema.doc, name):
            blocks.append(f'"""{schema.doc}"""')
        elif schema.doc is not None:
            avro["doc"] = schema.doc
        if self._kind == "pydantic" and isinstance(schema, Record):
            blocks.append("model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True)")
        if avro:
            blocks.append(f"__avro__ = {_to_python(avro)}")
        if members:
            blocks.append("\n    ".join(members))
        return f"{head}\n    " + "\n\n    ".join(blocks or ["pass"]) + "\n"

    def _list_attributes(self, schema: Record | Enum | Fixed, name: str, namespace: str | None) -> dict[str, Any]:
        """Return the attributes of a named type in Avro that do not follow from the class."""
        own_namespace = schema.namespace or ""
        attributes: dict[str, Any] = {"name": schema.name} if name != schema.name else {}
        if own_namespace or namespace:
            attributes["namespace"] = own_namespace
        if schema.aliases:
            prefix = f"{own_namespace}." if own_namespace else ""
            attributes["aliases"] = [alias.removeprefix(prefix) for alias in schema.aliases]
        if isinstance(schema, Enum) and schema.default is not None:
            attributes["default"] = schema.default
        if isinstance(schema, Record) and schema.is_error:
            attributes["type"] = "error"
        return attributes | dict(schema.properties)

    def _define_field(self, field: Field, record: Record) -> str:
        attribute = self._attribute_names[id(record)][field.name]
        annotation = self._annotate_field(field, record.namespace)
        avro: dict[str, Any] = {}
        if field.aliases:
            avro["aliases"] = [*field.aliases]
        if field.order != "ascending":
            avro["order"] = field.order
        avro |= field.properties
        default = ""
        if field.default is not NO_DEFAULT:
            default = self._write_default(field.schema, field.default)
            if not (default and _has_unique_default(field.schema)):
                avro["default"] = field.default
        write = _write_dataclass_field if self._kind == "dataclass" else _write_pydantic_field
        return f"{attribute}: {annotation}{write(field, attribute, default, avro)}"

    # Annotations

    def _annotate_field(self, field: Field, namespace: str | None) -> str:
        """Return a field's annotation. It states the order of a union with null, unless the order follows from the default."""
        union = field.schema
        if not isinstance(union, Union) or len(union.branches) == 1:
            return self._annotate(union, namespace)
        types = [branch.type for branch in union.branches]
        has_several_types = len(types) - ("null" in types) > 1
        is_ordered = has_several_types or (field.default is NO_DEFAULT and "null" in types)
        return self._annotate_union(union, namespace, ordered=is_ordered)

    def _annotate(self, schema: Schema, namespace: str | None) -> str:
        """Return the annotation of a type, and define its named types that are not defined yet."""
        match schema:
            case Record() | Enum() | Fixed():
                if id(schema) not in self._defined:
                    self._defined.add(id(schema))
                    self.texts.append(self._define(schema, namespace))
                return self._class_names[id(schema)]
            case Array():
                items = self._annotate(schema.items, namespace)
                return _add_annotation(f"list[{items}]", _to_json(schema.properties))
            case Map():
                values = self._annotate(schema.values, namespace)
                return _add_annotation(f"dict[str, {values}]", _to_json(schema.properties))
            case Union():
                return self._annotate_union(schema, namespace)
        base = self._find_base(schema)
        return _add_annotation(base, _describe_primitive(base, schema.type, schema.properties))

    def _annotate_union(self, union: Union, namespace: str | None, *, ordered: bool | None = None) -> str:
        types = [branch.type for branch in union.branches]
        if len(types) == 1:
            return _add_annotation(self._annotate(union.branches[0], namespace), "union")
        other_types = {*types} - {"null"}
        if len(other_types) == len(types) - ("null" in types) == 2 and other_types in _NUMBER_PAIRS:
            number = "float" if "double" in other_types else "int"
            null = " | None" if "null" in types else ""
            return _add_annotation(f"{number}{null}", json.dumps(json.loads(schema_text(union))))
        annotations = [
            "None" if branch.type == "null" else self._annotate(branch, namespace) for branch in union.branches
        ]
        if ordered is None:
            ordered = len(other_types) > 1 or types[0] != "null"
        if not ordered and annotations[0] == "None":
            annotations = [*annotations[1:], "None"]
        names = ", ".join(branch.full_name for branch in union.branches)
        return _add_annotation(" | ".join(annotations), f"ordered: {names}" if ordered else "")

    def _find_base(self, schema: Schema) -> str:
        """Return the Python type that a codec decodes a type without parts to."""
        spark_type = convert(schema, self._options).type
        if isinstance(spark_type, Decimal):
            return "Decimal"
        name = PYTHON_TYPES[getattr(spark_type, "name", "")]
        return f"dt.{name}" if name in ("date", "datetime", "time", "timedelta") else name

    # Defaults

    def _write_default(self, schema: Schema, default: Any) -> str:
        """Return a default in Python, given as JSON, or "" if Python does not have the value.

        For lists, dicts and objects, which no two instances may share, it is a function that makes the default (`_is_factory`).
        """
        try:
            text = self._write_value(schema, default)
        except (OverflowError, ValueError, TypeError, KeyError):
            return ""
        first_branch = schema.branches[0] if isinstance(schema, Union) else schema
        if isinstance(first_branch, Array | Map | Record):
            return _FACTORIES.get(text, f"lambda: {text}")
        return text

    def _write_value(self, schema: Schema, value: Any) -> str:
        match schema:
            case Union():
                return self._write_value(schema.branches[0], value)
            case Array():
                return f"[{', '.join(self._write_value(schema.items, item) for item in value)}]"
            case Map():
                entries = (f"{literal(key)}: {self._write_value(schema.values, item)}" for key, item in value.items())
                return f"{{{', '.join(entries)}}}"
            case Record():
                fields, attributes = schema.fields_by_name, self._attribute_names[id(schema)]
                arguments = (
                    f"{attributes[key]}={self._write_value(fields[key].schema, item)}"
                    for key, item in value.items()
                    if key in fields
                )
                return f"{self._class_names[id(schema)]}({', '.join(arguments)})"
            case Enum():
                return f"{self._class_names[id(schema)]}({literal(value)})"
        return self._write_leaf(schema, value)

    def _write_leaf(self, schema: Schema, value: Any) -> str:
        base = self._find_base(schema)
        if isinstance(value, str) and (schema.type == "bytes" or isinstance(schema, Fixed)):
            data = value.encode("latin-1")
            if base == "Decimal":
                scale = schema.properties.get("scale", 0)
                unscaled = int.from_bytes(data, "big", signed=True)
                return f'Decimal("{unscaled}E-{scale}")' if scale else f'Decimal("{unscaled}")'
            return f"{self._class_names[id(schema)]}({data!r})" if isinstance(schema, Fixed) else repr(data)
        if base.startswith("dt."):
            return _write_time(base, value, str(schema.properties.get("logicalType", "")))
        if base == "float" and not abs(value) < float("inf"):
            return f'float("{value}")'
        return literal(value) if base == "str" else repr(value)


def _make_name(name: str, reserved: set[str]) -> str:
    """Return a Python name that is like `name` and not reserved, and reserve it."""
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name))
    name = name if name.isidentifier() and not name.startswith("__") else f"f{name}"
    while name in reserved or keyword.iskeyword(name):
        name += "_"
    reserved.add(name)
    return name


def _describe_primitive(base: str, type_: str, properties: Mapping[str, Any]) -> str:
    """Return the annotation next to a Python type from which `extract` recognizes the primitive."""
    logical_type = properties.get("logicalType")
    if not properties:
        return type_ if type_ in _SMALL_NUMBERS else ""
    if properties.keys() == {"logicalType"} and LOGICAL.get(str(logical_type)) == type_:
        return "" if _PLAIN_LOGICAL_TYPES.get(base) == logical_type else str(logical_type)
    if base == "Decimal" and list(properties) in (["logicalType", "precision", "scale"], ["precision", "scale"]):
        return f"decimal({properties['precision']}, {properties['scale']})"
    return _to_json({"type": type_, **properties})


def _write_dataclass_field(field: Field, attribute: str, default: str, avro: dict[str, Any]) -> str:
    metadata = {**({"name": field.name} if attribute != field.name else {}), **_make_doc_attribute(field.doc), **avro}
    is_factory = _is_factory(default)
    if not metadata and not is_factory:
        return f" = {default}" if default else ""
    arguments = [f"default{'_factory' if is_factory else ''}={default}"] if default else []
    if metadata:
        arguments.append(f"metadata={_to_python({'avro': metadata})}")
    return f" = field({', '.join(arguments)})"


def _write_pydantic_field(field: Field, attribute: str, default: str, avro: dict[str, Any]) -> str:
    is_factory = _is_factory(default)
    arguments = [f"default_factory={default}" if is_factory else default] if default else []
    if attribute != field.name:
        arguments.append(f"alias={literal(field.name)}")
    if field.doc:
        arguments.append(f"description={literal(field.doc)}")
    elif field.doc is not None:
        avro["doc"] = ""
    if avro:
        arguments.append(f"json_schema_extra={_to_python({'avro': avro})}")
    if arguments == [default] and not is_factory:
        return f" = {default}" if default else ""
    return f" = Field({', '.join(arguments)})" if arguments else ""


def _is_factory(text: str) -> bool:
    """Return whether the text of a default is a function that makes it."""
    return text in _FACTORIES.values() or text.startswith("lambda:")


def _has_unique_default(schema: Schema) -> bool:
    """Return whether a default in Python has only one form in Avro."""
    match schema:
        case Record():
            return False
        case Union():
            return _has_unique_default(schema.branches[0])
        case Array():
            return _has_unique_default(schema.items)
        case Map():
            return _has_unique_default(schema.values)
    return "logicalType" not in schema.properties


def _write_time(base: str, value: int, logical_type: str) -> str:
    if base == "dt.date":
        day = dt.date(1970, 1, 1) + dt.timedelta(days=value)
        return f"dt.date({day.year}, {day.month}, {day.day})"
    moment = _EPOCH + dt.timedelta(microseconds=value * (1000 if logical_type.endswith("millis") else 1))
    clock = (moment.hour, moment.minute, moment.second, moment.microsecond)
    if base == "dt.time":
        return f"dt.time({', '.join(map(str, clock))})"
    zone = "" if logical_type.startswith("local") else ", tzinfo=dt.UTC"
    return f"dt.datetime({', '.join(map(str, (moment.year, moment.month, moment.day, *clock)))}{zone})"


def _make_doc_attribute(doc: str | None) -> dict[str, str]:
    return {} if doc is None else {"doc": doc}


def _add_annotation(python_type: str, annotation: str) -> str:
    return f"Annotated[{python_type}, {literal(annotation)}]" if annotation else python_type


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value)) if value else ""


def _to_python(value: Any) -> str:
    """Return a JSON value as a Python expression."""
    match value:
        case str():
            return literal(value)
        case dict():
            return "{" + ", ".join(f"{literal(key)}: {_to_python(item)}" for key, item in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_to_python, value))}]"
        case float() if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  NaN
            return f'float("{value}")'
    return repr(value)


def _is_docstring(doc: str, name: str) -> bool:
    """Return whether `extract` reads the same documentation back from a class with this docstring."""
    is_plain = doc.isprintable() and doc.isascii() and not re.search(r'\\|"""|"$', doc)
    return is_plain and inspect.cleandoc(doc) == doc and not doc.startswith(f"{name}(") and doc != "An enumeration."
