"""Convert dataclasses and shared types to and from JSON, for plans, results and reports. Keys are never renamed.

A document of a report is a dataclass whose fields are its keys. `make_view` fills it from an object of the domain, and `to_json`
encodes it by the types of its values; `from_json` decodes a document that is read again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar, cast

from schemactl.core.catalog import Client
from schemactl.core.errors import SchemactlError
from schemactl.core.findings import Answer, Breakage, Direction, Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.core.terminal import escape

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic_core import ErrorDetails

Json = dict[str, Any]

JsonValue = str | int | float | bool | list[Any] | dict[str, Any] | None

T = TypeVar("T")

OPTIONAL: Final = {"is_optional": True}
"""The metadata of a field that is left out of the JSON object if it is None."""

_JSON_STRING = json.encoder.encode_basestring
_ASCII_STRING = json.encoder.encode_basestring_ascii
"""Encode a text as JSON, the second in ASCII; `json.dumps` makes an encoder for each call."""

_ENCODE_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

_LONE_SURROGATES: Final = r"[\ud800-\udfff]"

_SCALAR_TYPES: Final = frozenset({bool, int, float, str})

_KINDS: Final = {
    str: "text",
    int: "a number",
    float: "a number with a fraction",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    NoneType: "null",
}
"""The kinds of JSON values by Python's types, for messages."""

_EXPECTED_KINDS: Final = {
    "string_type": "text",
    "int_type": "a number",
    "bool_type": "true or false",
    "dataclass_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
}
"""The expected kind by pydantic's type of an error."""

_TOO_DEEP: Final = "it is nested too deeply"


def json_text(value: Any) -> str:
    """Return a value as indented JSON, with keys in their order and lone surrogates escaped.

    Raises:
        ValueError: if it contains a number that JSON cannot represent.
    """
    try:
        text = _indent_json(value, "\n")
    except (TypeError, RecursionError):
        # For keys that are not texts, and for the errors of values that are not JSON.
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return text if text.isascii() else escape(text, _LONE_SURROGATES)


def _indent_json(value: Any, line_start: str) -> str:
    """Return the text of `json.dumps` with an indent of 2, in half the time: with an indent, `json.dumps` does not run C code."""
    if value is None:
        return "null"
    inner_start = line_start + "  "
    if isinstance(value, dict) and value:
        members = [
            f"{_JSON_STRING(key)}: {_JSON_STRING(member) if type(member) is str else _indent_json(member, inner_start)}"
            for key, member in value.items()
        ]
        return f"{{{inner_start}{f',{inner_start}'.join(members)}{line_start}}}"
    if isinstance(value, (list, tuple)) and value:
        members = [
            _JSON_STRING(member) if type(member) is str else _indent_json(member, inner_start) for member in value
        ]
        return f"[{inner_start}{f',{inner_start}'.join(members)}{line_start}]"
    return _JSON_STRING(value) if type(value) is str else _ENCODE_JSON(value)


def json_pieces(document: DataclassInstance) -> Iterator[str]:
    """Yield the text of a document in pieces, so that neither the values nor the text of a large report exist as a whole.

    A piece is a line, a member, or an entry of a tuple or list that is a member.
    """
    opening = "{\n"
    for key, member in list_members(document):
        yield f"{opening}  {json_text(key)}: "
        opening = ",\n"
        if not isinstance(member, tuple | list) or not member:
            yield json_text(to_json(member)).replace("\n", "\n  ")
            continue
        for index, entry in enumerate(member):
            yield ("," if index else "[") + "\n    " + json_text(to_json(entry)).replace("\n", "\n    ")
        yield "\n  ]"
    yield "\n}"


def format_json(value: Any, width: int) -> str:
    """Return a value as JSON, with each list and object on one line if it fits into `width` characters."""
    return _lay_out(value, width, "")[1]


def _lay_out(value: Any, width: int, indent: str) -> tuple[str, str]:
    """Return a value as JSON on one line, and as `format_json` returns it."""
    if type(value) is str:
        flat = _ASCII_STRING(value)
        return flat, flat
    inner_indent = indent + "  "
    flat_parts: list[str] = []
    parts: list[str] = []
    if isinstance(value, dict):
        opening, closing = "{}"
        for key, member in value.items():
            name = _ASCII_STRING(key) + ": "
            flat, text = _lay_out(member, width, inner_indent)
            flat_parts.append(name + flat)
            parts.append(name + text)
    elif isinstance(value, list):
        opening, closing = "[]"
        for member in value:
            flat, text = _lay_out(member, width, inner_indent)
            flat_parts.append(flat)
            parts.append(text)
    else:
        flat = json.dumps(value)
        return flat, flat
    flat = f"{opening}{', '.join(flat_parts)}{closing}"
    if len(indent) + len(flat) < width:
        return flat, flat
    return flat, f"{opening}\n{inner_indent}" + f",\n{inner_indent}".join(parts) + f"\n{indent}{closing}"


def reject_constant(name: str) -> NoReturn:
    """Reject NaN and infinities, the `parse_constant` of a decoder: Python reads them, although they are not JSON."""
    raise ValueError(f"{name} is not a JSON number")


def read_document(path: Path, *, kind: str, keys: set[str], version: int, fix: str) -> Json:
    """Read the JSON object in a file that schemactl wrote, with its `format_version`.

    Args:
        path: the path of the file.
        kind: the kind of file, such as "a plan of schemactl".
        keys: the required keys.
        version: the required format version.
        fix: the next step if the file is not valid.

    Raises:
        SchemactlError: if the file cannot be read, or is not valid.
    """
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise SchemactlError(f"{path} cannot be read: {error.strerror}", fix=fix) from error
    except (ValueError, RecursionError) as error:
        raise SchemactlError(f"{path} is not {kind}: it is not JSON", fix=fix) from error
    if not isinstance(value, dict) or not {"format_version", *keys} <= value.keys():
        raise SchemactlError(f"{path} is not {kind}", fix=fix)
    if value["format_version"] != version:
        actual_version = value["format_version"]
        raise SchemactlError(f"{path} has format {actual_version!r}; this schemactl reads {version}", fix=fix)
    return value


def to_json(value: Any) -> Any:
    """Encode a value as JSON values.

    A dataclass becomes an object with its fields as keys, in their order, unless its method `to_json` encodes it. Names of topics and
    namespaces become text, dates ISO 8601, enums their values, paths POSIX paths, bytes base64, and collections lists.
    """
    kind = type(value)
    if value is None or kind in _SCALAR_TYPES:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int | float):
        return value
    if kind is TopicName or kind is NamespaceName:
        return str(value)
    if is_dataclass(kind):
        encode = getattr(value, "to_json", None)
        return encode() if encode else {name: to_json(member) for name, member in list_members(value)}
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(member) for key, member in value.items()}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return [to_json(member) for member in value]


def list_members(document: DataclassInstance) -> list[tuple[str, Any]]:
    """Return the names and values of the fields of a dataclass, without optional fields that are None."""
    return [
        (name, member)
        for name, is_optional in _list_keys(type(document))
        if (member := getattr(document, name)) is not None or not is_optional
    ]


@cache
def _list_keys(view: type[DataclassInstance]) -> list[tuple[str, bool]]:
    """Return the names of the fields of a dataclass, each with whether it is left out if it is None."""
    return [(member.name, "is_optional" in member.metadata) for member in fields(view)]


def from_json(kind: type[T], value: Any) -> T:
    """Decode the JSON values that `to_json` made of a dataclass; unknown keys are ignored, and lone surrogates are escaped.

    Raises:
        ValueError: if they do not fit the types of the fields; the message has the location, the value and the expected type.
    """
    from pydantic import TypeAdapter, ValidationError

    # In JSON, unlike in Python's values, pydantic's strict mode accepts an object as a dataclass.
    try:
        text = json.dumps(value, ensure_ascii=False)
        # An escape in JSON would be read as the surrogate again.
        text = re.sub(_LONE_SURROGATES, lambda match: "\\" + escape(match[0], _LONE_SURROGATES), text)
        return TypeAdapter(kind).validate_json(text, strict=True)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
    if detail["type"] == "json_invalid":
        raise ValueError(_TOO_DEEP)
    location = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in detail["loc"]).removeprefix(".")
    raise ValueError(f"`{location}` {_describe_mismatch(detail)}")


def _describe_mismatch(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] not in _EXPECTED_KINDS:
        return f"is not valid: {detail['msg']}"
    actual_kind = _KINDS[type(detail["input"])]
    return f"is {actual_kind}, expected {_EXPECTED_KINDS[detail['type']]}"


def make_view(view: type[T], source: object, /, **values: Any) -> T:
    """Return a dataclass with `values` as fields, and the other fields from the attributes of `source` with the same names.

    An attribute that is an empty text becomes None if the type of the field allows None. A field keeps its default if `source` does not
    have the attribute.
    """
    copied = {}
    for member in fields(cast("Any", view)):
        if member.name not in values and hasattr(source, member.name):
            value = getattr(source, member.name)
            # Annotations are text, because the modules of views postpone their evaluation.
            copied[member.name] = None if value == "" and member.type.endswith("| None") else value
    return view(**copied, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionView:
    """A definition in JSON, in base64 if its bytes are not text, as in a KEY_VALUE."""

    type: str
    schema: str | None = field(default=None, metadata=OPTIONAL)
    schema_b64: str | None = field(default=None, metadata=OPTIONAL)
    properties: dict[str, str]

    @classmethod
    def from_info(cls, info: SchemaInfo) -> DefinitionView:
        """Return the view of a definition."""
        values: Json = {"type": info.type.name, "properties": dict(info.properties)}
        if b"\0" not in info.schema:
            with suppress(UnicodeDecodeError):
                return cls(**values, schema=info.schema.decode())
        return cls(**values, schema_b64=base64.b64encode(info.schema).decode())

    def to_info(self) -> SchemaInfo:
        """Return the definition; raise ValueError if its type is unknown, its content is missing or its bytes are not base64."""
        if self.schema is None and self.schema_b64 is None:
            raise ValueError("it has neither `schema` nor `schema_b64`")
        if self.type not in SchemaType.__members__:
            raise ValueError(f"{self.type} is not a schema type")
        content = (self.schema or "").encode() if self.schema_b64 is None else base64.b64decode(self.schema_b64)
        return SchemaInfo(SchemaType[self.type], content, self.properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverView:
    """A waiver in JSON, without its location; `until` is its last valid day."""

    rule: str
    topic: TopicName
    field: str
    fingerprint: str
    reason: str
    owner: str
    until: date


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakageView:
    """An incompatibility with a stored version in JSON; `against` is the number of this version."""

    rule: str
    pointer: str
    direction: Direction
    against: int

    @classmethod
    def from_breakage(cls, breakage: Breakage) -> BreakageView:
        """Return the view of an incompatibility."""
        reason = breakage.incompatibility
        return make_view(BreakageView, breakage, rule=reason.rule, pointer=reason.pointer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientView:
    """A declared client in JSON; `runs_on` are its targets, or none for all targets."""

    name: str
    role: Literal["producer", "consumer", "reader"]
    team: str | None
    language: str | None
    contact: str | None
    built: str
    runs_on: tuple[str, ...]

    @classmethod
    def from_client(cls, client: Client) -> ClientView:
        """Return the view of a declared client."""
        return make_view(ClientView, client, runs_on=client.targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """A registry's answer to an upload in JSON."""

    answer: Outcome
    version: int | None
    message: str
    exception: str

    @classmethod
    def from_answer(cls, answer: Answer) -> AnswerView:
        """Return the view of an answer."""
        return make_view(cls, answer, answer=answer.outcome)
