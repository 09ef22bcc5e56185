"""The shapes of declared documents: what `schemactl.schema.json`, which editors read, says of them, with messages for what does not fit.

Of JSON Schema this follows what that file uses. A `title` is what a message calls the value that it expected; where a
`format` has a parser, that decides, and the `pattern` beside it is for editors.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from operator import itemgetter
from pkgutil import get_data
from typing import Any, Final, Literal, NamedTuple

import yaml

from schemactl import registry_url
from schemactl.declare.describe import found, nearest, shortened
from schemactl.declare.files import MAX_PROBLEMS
from schemactl.declare.package_names import advised, owner
from schemactl.errors import Problem, Source
from schemactl.formats import SPECS
from schemactl.model import NamespaceName, Release, SchemaType, TopicName
from schemactl.source import Tokens, key_node, node_at, node_place

Message = tuple[str, str]
"""What is wrong, and what to write ("" where nothing is known)."""

_Schema = Mapping[str, Any]


class ValidationError(NamedTuple):
    """A part of a document that does not fit.

    Attributes:
        parts: the keys and indexes that lead to it.
        message: makes its message.
        of_key: it is the key that is wrong, not its value.
    """

    parts: Tokens
    message: Callable[[], Message]
    of_key: bool = False

    @classmethod
    def of(cls, parts: Tokens, what: str, fix: str = "", *, of_key: bool = False) -> ValidationError:
        """Return one whose message is known already."""
        return cls(parts, lambda: (what, fix), of_key)


def located(errors: Iterable[ValidationError], root: yaml.Node, path: str) -> list[Problem]:
    """Return the errors in a document as problems, by place.

    From MAX_PROBLEMS on they are there to be counted, without messages of their own.
    """
    placed = sorted(((_place(root, each, path), each) for each in errors), key=itemgetter(0))
    # No more of one file are shown, and looking for near misses takes longer than all else.
    shown = [Problem(place, *error.message()) for place, error in placed[:MAX_PROBLEMS]]
    return shown + [Problem(place, "this does not belong here") for place, _ in placed[MAX_PROBLEMS:]]


def _place(root: yaml.Node, error: ValidationError, path: str) -> Source:
    node = node_at(root, error.parts)
    if error.of_key:
        node = key_node(node_at(root, error.parts[:-1]), error.parts[-1]) or node
    return node_place(path, node)


def validation_errors(
    kind: Literal["Topic", "Namespace", "Project"], value: Any
) -> Iterable[ValidationError]:
    """Return everything in `value` that does not fit the shape of such a document."""
    return _errors(definitions()[f"{kind}Shape"], value, ())


@cache
def definitions() -> Mapping[str, _Schema]:
    """Return the shapes by their names."""
    found: Mapping[str, _Schema] = json.loads(get_data(__package__, "schemactl.schema.json") or b"")["$defs"]
    return found


def _errors(schema: _Schema, value: Any, at: Tokens) -> Iterable[ValidationError]:
    """Yield what does not fit in `value`, which stands at `at`."""
    schema = _followed(schema)
    if "properties" in schema:
        return _in_mapping(schema, value, at)
    if "additionalProperties" in schema:
        return _in_free_mapping(schema, value, at)
    if "items" in schema:
        return _in_list(schema, value, at)
    if "oneOf" in schema and "title" not in schema:
        return _in_union(schema["oneOf"], value, at)
    return _in_scalar(schema, value, at)


def _followed(schema: _Schema) -> _Schema:
    reference = schema.get("$ref")
    return schema if reference is None else definitions()[reference.rpartition("/")[2]]


def _in_mapping(schema: _Schema, value: Any, at: Tokens) -> Iterator[ValidationError]:
    """Of a mapping with fixed keys."""
    if not isinstance(value, dict):
        yield _no_mapping(value, at)
        return
    keys = schema["properties"]
    for key in schema.get("required", ()):
        if key not in value:
            yield ValidationError.of((*at, key), f"the key `{key}` is missing")
    for key, each in value.items():
        if key in keys:
            yield from _errors(keys[key], each, (*at, key))
        else:
            yield ValidationError((*at, key), partial(_unknown_key, key, keys, value, at), of_key=True)


def _in_free_mapping(schema: _Schema, value: Any, at: Tokens) -> Iterator[ValidationError]:
    """Of a mapping whose keys are names."""
    if not isinstance(value, dict):
        yield _no_mapping(value, at)
    elif len(value) > schema.get("maxProperties", len(value)):
        yield _too_long(schema["maxProperties"], at)
    else:
        for key, each in value.items():
            if "propertyNames" in schema:
                wrong = _errors(schema["propertyNames"], key, (*at, key))
                yield from (error._replace(of_key=True) for error in wrong)
            yield from _errors(schema["additionalProperties"], each, (*at, key))


def _in_list(schema: _Schema, value: Any, at: Tokens) -> Iterator[ValidationError]:
    if not isinstance(value, list):
        fix = f"write [{value}]" if isinstance(value, str) and len(value) < 40 else ""
        yield ValidationError.of(at, f"expected a list, found {found(value)}", fix)
    elif len(value) < schema.get("minItems", 0):
        yield ValidationError.of(at, "expected at least one entry, found an empty list")
    elif len(value) > schema["maxItems"]:
        yield _too_long(schema["maxItems"], at)
    else:
        for index, item in enumerate(value):
            yield from _errors(schema["items"], item, (*at, str(index)))


def _in_union(shapes: list[_Schema], value: Any, at: Tokens) -> Iterator[ValidationError]:
    """Of one of several schemas, by its `type`; or of a mapping or something else."""
    if "$ref" not in shapes[0]:
        mapping, other = shapes
        yield from _errors(mapping if isinstance(value, dict) else other, value, at)
        return
    for shape in map(_followed, shapes):
        if isinstance(value, dict) and value.get("type") in shape["properties"]["type"]["enum"]:
            yield from _in_mapping(shape, value, at)
            return
    yield ValidationError.of((*at, "type"), *_type_message(value, is_half=len(at) > 1))


def _in_scalar(schema: _Schema, value: Any, at: Tokens) -> tuple[ValidationError, ...]:
    parse = PARSERS.get(schema.get("format", "")) if isinstance(value, str) else None
    if parse is None:
        return () if _fits(schema, value) else (ValidationError.of(at, *_message(schema, value)),)
    try:
        parse(value)
    except ValueError as error:
        return (ValidationError.of(at, *error.args),)
    return ()


_TYPES: Final = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}


def _fits(schema: _Schema, value: Any) -> bool:
    if "oneOf" in schema:
        return any(_fits(each, value) for each in schema["oneOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if "const" in schema:
        return value == schema["const"] and not isinstance(value, bool)
    names = schema["type"]
    if not any(isinstance(value, _TYPES[name]) for name in ([names] if isinstance(names, str) else names)):
        return False
    if isinstance(value, str) and "pattern" in schema:
        return bool(_compiled(schema["pattern"]).search(value))
    if names == "integer":
        return not isinstance(value, bool) and schema["minimum"] <= value <= schema["maximum"]
    return True


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # JSON Schema's `$` is the very end of the text, not also before a last line end.
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)


_TRUTHS: Final = {
    **dict.fromkeys(("yes", "on", "1"), "write true"),
    **dict.fromkeys(("no", "off", "0"), "write false"),
}

_NOT_OFFERED: Final = {
    **{
        ("category", name): (
            f"buf's category {name} is about generated code",
            "run `buf breaking` for that, and write one of WIRE, WIRE_JSON here",
        )
        for name in ("FILE", "PACKAGE")
    },
    **{
        ("checker", f"{language}SchemaCompatibilityCheck"): (
            f"`{language}SchemaCompatibilityCheck` is not optional: every broker has this checker",
            "remove it",
        )
        for language in ("Avro", "Json", "ProtobufNative", "External", "KeyValue")
    },
}
"""By format and value: what exists and is not to be written here."""


def _message(schema: _Schema, value: Any) -> Message:
    """Return the message for a value that does not fit."""
    title = schema.get("title", "true or false")
    what, fix = f"expected {title}, found {found(value)}", ""
    if "enum" in schema:
        choices = schema["enum"]
        near = None
        if isinstance(value, str):
            if known := _NOT_OFFERED.get((schema.get("format", ""), value.rpartition(".")[2])):
                return known
            what, near = f"`{shortened(value)}` is not {title}", nearest(value, choices)
        fix = f"write {near}" if near else f"write one of {', '.join(choices)}"
    elif schema.get("type") == "boolean":
        fix = _TRUTHS.get(str(value).lower(), "")
    elif schema.get("format") == "property":
        fix = "put it in quotes: Pulsar's properties are text"
    elif "const" in schema:
        fix = f"write {schema['const']}"
    elif "examples" in schema:
        quotes = "" if isinstance(value, str) else " with quotes"
        fix = f'write "{schema["examples"][0]}"{quotes}, for example'
    return what, fix


def _check_package(name: str) -> None:
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        what = f"`{name[:60]}` cannot be imported in Python"
        raise ValueError(what, "write letters, digits and _, a letter first")
    if whose := owner(name):
        what = f"`{shortened(name)}` is {whose}: a generated package of that name would take its place"
        raise ValueError(what, f"write another name, such as {shortened(advised(name))}")


PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "topic": TopicName.parse,
    "namespace": NamespaceName.parse,
    "registry": registry_url.parse,
    "package": _check_package,
}
"""By format; they raise ValueError: what is wrong, and perhaps what to write."""


def _unknown_key(key: str, keys: _Schema, value: _Schema, at: Tokens) -> Message:
    """Return the message for a key of the mapping `value` at `at`, which may have `keys`."""
    home = _HOMES.get(key, "")
    if "type" in keys and "`schema`" in home:
        is_half = SPECS[SchemaType[value["type"]]].declared_as == "protobuf" and len(at) > 1
        where = " as a half of a KEY_VALUE schema" if is_half else ""
        return f"{value['type']} has no {key}{where}", "remove it"
    near = nearest(key, keys)
    if near:
        return f"unknown key `{shortened(key)}`", f"write `{near}`"
    if home:
        return f"`{key}` does not belong here", f"it belongs to {home}"
    return f"unknown key `{shortened(key)}`", f"the keys here are {', '.join(keys)}"


_HOMES: Final = {
    **dict.fromkeys(("is_allow_auto_update_schema", "schema_validation_enforced"), "a namespace"),
    **dict.fromkeys(("partitions", "renamed_from", "reader", "lifecycle", "clients", "schema"), "a topic"),
    **dict.fromkeys(("type", "definition", "references", "properties"), "`schema`"),
    **dict.fromkeys(("encoding", "key", "value"), "`schema`, with the type KEY_VALUE"),
    "proto": "`schema`, with the type PROTOBUF",
    "message": "`schema`, with the type PROTOBUF_NATIVE (or PROTOBUF with `proto`)",
}
"""Where a key belongs that stands in the wrong mapping."""


def _type_message(schema: Any, *, is_half: bool) -> Message:
    """Return what is wrong with the `type` of a schema that has no shape."""
    if not isinstance(schema, dict):
        return f"expected a mapping with a `type`, found {found(schema)}", "write {type: STRING}, for example"
    if "type" not in schema:
        return "the key `type` is missing", "write the schema's type: AVRO, JSON, STRING, ..."
    name = schema["type"]
    if not isinstance(name, str):
        return f"expected a schema type, found {found(name)}", "write AVRO, JSON, STRING, ..."
    if name in SchemaType.__members__:
        spec = SPECS[SchemaType[name]]
        return (spec.unfit_half, "") if is_half else spec.undeclarable or ("", "")
    allowed = [
        type_.name
        for type_, spec in SPECS.items()
        if not spec.undeclarable and spec.first_release is Release.R4_0
    ]
    near = nearest(name, allowed)
    return f"`{shortened(name)}` is not a schema type", f"write {near or 'one of ' + ', '.join(allowed)}"


def _no_mapping(value: Any, at: Tokens) -> ValidationError:
    return ValidationError.of(at, f"expected a mapping, found {found(value)}")


def _too_long(most: int, at: Tokens) -> ValidationError:
    return ValidationError.of(at, f"at most {most:,} entries can stand here")
