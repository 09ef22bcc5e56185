"""Find the parts of a definition that Go's client registers differently.

pulsar-client-go parses a definition with hamba/avro and prints it again. The printed text is another definition for a broker where
a default or an attribute changes, a `scale` of 0 or an empty namespace is dropped. Names that Java accepts may be errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

Parts = tuple[str, ...]
"""The location of a part, as tokens of a JSON pointer."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_TYPE_KEYS: Final = frozenset(
    {"type", "name", "namespace", "fields", "symbols", "items", "values", "size", "doc", "aliases"}
)
_FIELD_KEYS: Final = frozenset({"name", "type", "doc", "default", "aliases", "order"})

_EXACT: Final = 2**53
"""Up to this number, a float64 has every whole number."""

_PLAIN_FLOATS: Final = 1e21
"""Go prints whole floating-point numbers below this one without a point or an exponent."""


@dataclass(frozen=True, slots=True)
class GoChange:
    """A part that Go's client registers differently, or cannot read.

    Attributes:
        parts: the location, as tokens of a JSON pointer.
        message: the change, as a clause about the part.
        fix: the text to write, in the imperative.
    """

    parts: Parts
    message: str
    fix: str


def find_changes(value: Any) -> Iterator[GoChange]:
    """Yield the parts of a valid definition, as JSON values, that Go's client prints differently or rejects."""
    types: dict[str, Any] = {}
    _collect_types(value, "", types)
    yield from _Definition(types).check_type(value, (), "")


def find_default_changes(default: Any, schema: Any, namespace: str, types: Mapping[str, Any]) -> Iterator[GoChange]:
    """Yield the parts of a field's default that Go's client prints differently; `types` has the named types by full name."""
    yield from _Definition(types).check_default(default, schema, (), namespace)


@dataclass(frozen=True)
class _Definition:
    """The named types of a definition by full name, and the checks of its parts."""

    types: Mapping[str, Any]

    def check_type(self, value: Any, parts: Parts, namespace: str) -> Iterator[GoChange]:
        """Yield the parts of a type that Go's client prints differently or rejects."""
        if isinstance(value, list):
            for index, branch in enumerate(value):
                yield from self.check_type(branch, (*parts, str(index)), namespace)
        if not isinstance(value, dict):
            return
        if isinstance(value.get("name"), str):
            yield from _check_names(value, parts, namespace)
            _, namespace = _qualify(value, namespace)
        if isinstance(value.get("type"), dict | list):
            yield GoChange((*parts, "type"), "a type inside a type is an error", "Write the inner type in its place.")
        if value.get("type") == "enum" and not value.get("symbols"):
            yield GoChange((*parts, "symbols"), "an enum without symbols is an error", "Add a symbol.")
        is_decimal = value.get("logicalType") == "decimal" and value.get("type") in ("bytes", "fixed")
        if is_decimal and type(value.get("scale")) is int and value["scale"] == 0 and _has_digits(value):
            yield GoChange((*parts, "scale"), "the `scale` of 0 is dropped", "Remove `scale`: 0 is its default.")
        default_keys = {"default"} if value.get("type") == "enum" else set()
        for key, attribute in value.items():
            if key not in _TYPE_KEYS and key not in default_keys:
                yield from _check_attribute(attribute, (*parts, key), key)
        for index, field in enumerate(value.get("fields") or ()):
            field_parts = (*parts, "fields", str(index))
            for alias in (field.get("name"), *(field.get("aliases") or ())):
                yield from _check_name(alias, (*field_parts, "name"))
            for key, attribute in field.items():
                if key not in _FIELD_KEYS:
                    yield from _check_attribute(attribute, (*field_parts, key), key)
            if "default" in field:
                yield from self.check_default(field["default"], field.get("type"), (*field_parts, "default"), namespace)
            yield from self.check_type(field.get("type"), (*field_parts, "type"), namespace)
        yield from self.check_type(value.get("items"), (*parts, "items"), namespace)
        yield from self.check_type(value.get("values"), (*parts, "values"), namespace)

    def check_default(self, default: Any, schema: Any, parts: Parts, namespace: str) -> Iterator[GoChange]:
        """Yield the parts of a field's default that Go's client prints differently."""
        if isinstance(schema, list):
            if not schema:
                return
            if not self._is_of_type(default, schema[0], namespace):
                yield GoChange(
                    parts,
                    "a default of a later branch of the union is an error",
                    "Put the type of the default first in the union.",
                )
                return
            schema = schema[0]
        kind, definition, namespace = self._resolve(schema, namespace)
        match kind:
            case "bytes" if default:
                yield GoChange(
                    parts,
                    "the default of bytes is printed in base64, which is another value",
                    'Use the empty default "", or none.',
                )
            case "fixed":
                yield GoChange(
                    parts,
                    "the default of a fixed is printed as a list of numbers, which brokers reject",
                    "Remove the default, or make the field nullable with the default null.",
                )
            case "int" | "long" | "float" | "double":
                number = _describe_number(default, is_long=kind == "long")
                if number:
                    is_float = isinstance(default, float)
                    yield GoChange(
                        parts,
                        f"the default {default!r} becomes {number}",
                        f"Write {int(default)}." if is_float else f"Use a default of at most {_EXACT}.",
                    )
            case "array" if isinstance(default, list):
                for index, item in enumerate(default):
                    yield from self.check_default(item, definition.get("items"), (*parts, str(index)), namespace)
            case "map" if isinstance(default, dict):
                for key, item in default.items():
                    yield from self.check_default(item, definition.get("values"), (*parts, key), namespace)
            case "record" if isinstance(default, dict):
                missing = [field["name"] for field in definition["fields"] if field["name"] not in default]
                if missing:
                    yield GoChange(
                        parts,
                        f"the default gets the fields that it lacks ({', '.join(missing)})",
                        "Write every field of the default.",
                    )
                for field in definition["fields"]:
                    if field["name"] in default:
                        yield from self.check_default(
                            default[field["name"]], field["type"], (*parts, field["name"]), namespace
                        )

    def _resolve(self, schema: Any, namespace: str) -> tuple[str, Any, str]:
        """Return the kind, the definition and the inner namespace of a type, which may be a name."""
        if isinstance(schema, dict):
            kind = schema.get("type")
            if isinstance(schema.get("name"), str):
                _, namespace = _qualify(schema, namespace)
            if isinstance(kind, dict | list):
                return self._resolve(kind, namespace)
            return ("record" if kind == "error" else str(kind)), schema, namespace
        name = str(schema)
        definition = self.types.get(
            name if "." in name or not namespace else f"{namespace}.{name}", self.types.get(name)
        )
        return self._resolve(definition, namespace) if isinstance(definition, dict) else (name, {}, namespace)

    def _is_of_type(self, default: Any, schema: Any, namespace: str) -> bool:
        """Return whether a default can be of a type, by its form alone."""
        kind, _, _ = self._resolve(schema, namespace)
        match kind:
            case "null":
                return default is None
            case "boolean":
                return isinstance(default, bool)
            case "int" | "long" | "float" | "double":
                return isinstance(default, int | float) and not isinstance(default, bool)
            case "array":
                return isinstance(default, list)
            case "map" | "record":
                return isinstance(default, dict)
        return isinstance(default, str)


def _collect_types(value: Any, namespace: str, types: dict[str, Any]) -> None:
    match value:
        case list():
            for branch in value:
                _collect_types(branch, namespace, types)
        case dict():
            if isinstance(value.get("name"), str):
                full_name, namespace = _qualify(value, namespace)
                types[full_name] = value
            for field in value.get("fields") or ():
                _collect_types(field.get("type"), namespace, types)
            _collect_types(value.get("items"), namespace, types)
            _collect_types(value.get("values"), namespace, types)


def _qualify(value: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """Return the full name and the namespace of a named type."""
    name = value["name"]
    if "." in name:
        own_namespace = name.rpartition(".")[0]
        return name.removeprefix("."), own_namespace
    own_namespace = str(value.get("namespace", namespace) or "")
    return f"{own_namespace}.{name}" if own_namespace else name, own_namespace


def _has_digits(value: Mapping[str, Any]) -> bool:
    """Return whether a decimal has a precision that Go's client accepts, and so is not kept as written."""
    precision, size = value.get("precision"), value.get("size")
    if type(precision) is not int or precision <= 0:
        return False
    return not isinstance(size, int) or precision <= math.floor(math.log10(2) * (8 * size - 1))


def _check_names(value: Mapping[str, Any], parts: Parts, namespace: str) -> Iterator[GoChange]:
    if value.get("namespace") == "" and namespace and "." not in value["name"]:
        yield GoChange(
            (*parts, "namespace"),
            f"the empty namespace is dropped, so that the type is {namespace}.{value['name']}",
            "Give the type a namespace.",
        )
    if value["name"].startswith(".") and namespace:
        yield GoChange((*parts, "name"), "the empty namespace is dropped", "Give the type a namespace.")
    names = f"{value.get('namespace') or ''}.{value['name']}".split(".")
    names += [part for alias in value.get("aliases") or () for part in alias.split(".")]
    for name in filter(None, names):
        yield from _check_name(name, (*parts, "name"))
    for index, symbol in enumerate(value.get("symbols") or ()):
        yield from _check_name(symbol, (*parts, "symbols", str(index)))


def _check_name(name: Any, parts: Parts) -> Iterator[GoChange]:
    if isinstance(name, str) and not _NAME.fullmatch(name):
        yield GoChange(
            parts,
            f"`{name}` is an invalid name: the client ends its process",
            "Use the letters A to Z, digits and underscores.",
        )


def _check_attribute(value: Any, parts: Parts, key: str) -> Iterator[GoChange]:
    match value:
        case dict():
            for name, child in value.items():
                yield from _check_attribute(child, (*parts, name), key)
        case list():
            for index, child in enumerate(value):
                yield from _check_attribute(child, (*parts, str(index)), key)
    if text := _describe_number(value):
        yield GoChange(parts, f"the number {value!r} of the attribute `{key}` becomes {text}", "Write it as text.")


def _describe_number(value: Any, *, is_long: bool = False) -> str:
    """Return how Go's client prints a number, which it converts to a float64 and, with `is_long`, to an int64; "" if it is equal."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN_FLOATS:
        return f"{int(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        number = float(value)
        # A float64 is printed with the fewest digits that tell it from others; int64 wraps.
        wrapped = (int(number) + 2**63) % 2**64 - 2**63
        printed = wrapped if is_long else int(Decimal(repr(number)))
        return "" if printed == value and abs(value) < _PLAIN_FLOATS else f"{printed}"
    return ""
