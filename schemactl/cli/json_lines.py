"""Questions on standard input: one JSON object a line in, one a line out, in order; and definitions of every type in them."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TextIO

from schemactl.errors import SchemactlError
from schemactl.formats import SPECS, protobuf_native
from schemactl.model import SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.formats.protobuf_native.compile import Proto

Request = dict[str, Any]
Answer = dict[str, Any]

_CHUNK_BYTES = 1 << 20
_BATCH_LINES = 200
"""How much is read ahead where more has arrived."""


class Unreadable(Exception):
    """A line is not what the command expects."""


def answer_lines(
    lines: BinaryIO,
    out: TextIO,
    answer: Callable[[Request], Answer],
    *,
    ahead: Callable[[Sequence[Request]], None] | None = None,
) -> bool:
    """Write the answer of every one of `lines`, or what is wrong with it, to `out`; return whether all were read.

    Answers as soon as there is a line: who asks may wait for the answer before asking again.

    Args:
        lines: the questions, one a line; blank lines are left out.
        out: takes the answers.
        answer: may raise Unreadable or SchemactlError; that becomes the line's `error`.
        ahead: is shown the questions that have arrived together, before the first of them is answered.
    """
    complete = True
    for batch in _batches(lines):
        requests = [_request(line) for line in batch]
        if ahead is not None:
            ahead([request for request in requests if isinstance(request, dict)])
        for request in requests:
            id_ = request.get("id") if isinstance(request, dict) else None
            try:
                if isinstance(request, Unreadable):
                    raise request
                said = answer(request)
            except (Unreadable, SchemactlError) as error:
                complete = False
                said = {"error": str(error)}
            out.write(json.dumps({"id": id_, **said}, ensure_ascii=False) + "\n")
        out.flush()
    return complete


def _batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield the lines that have arrived, as they arrive; blank ones left out."""
    # In pieces: a long line that grows by each of them would be copied as often.
    begun: list[bytes] = []
    while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]  # buffered streams have it
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*begun, lines[0]])
            begun = []
        begun.append(rest)
        for start in range(0, len(lines), _BATCH_LINES):
            yield [line for line in lines[start : start + _BATCH_LINES] if line.strip()]
    if (last := b"".join(begun)).strip():
        yield [last]


def _no_json(word: str) -> NoReturn:
    """Refuse NaN and infinities, which Python reads and would write into the answer."""
    raise ValueError(f"{word} is no number there")


def _request(line: bytes) -> Request | Unreadable:
    try:
        request = json.loads(line, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"the line is not JSON: {error}")
    return request if isinstance(request, dict) else Unreadable("the line is not a JSON object")


def definition_of(entry: object, where: str) -> SchemaInfo:
    """Return the definition in `{"type", "schema", "properties"}`; with `schema_b64` in place of `schema` of those bytes.

    Raises:
        Unreadable: it is no such thing.
        InvalidSchema: the text of a KEY_VALUE is none, or a `.proto` does not compile.
    """
    if not isinstance(entry, dict):
        raise Unreadable(f"`{where}` is not a definition: expected an object with `type` and `schema`")
    kind = _kind(entry.get("type"), f"{where}.type")
    properties = properties_of(entry, where)
    if "schema_b64" in entry:
        return SchemaInfo(kind, _bytes(entry["schema_b64"], where), properties)
    schema = "" if entry.get("schema") is None else entry["schema"]
    if SPECS[kind].language == "protobuf" and (compiled := _compiled(schema)):
        return replace(compiled, properties=properties)
    if not isinstance(schema, str):
        raise Unreadable(f"`{where}.schema` is not a string")
    return SPECS[kind].from_text(kind, schema, properties)


def properties_of(entry: dict[str, Any], where: str) -> dict[str, str]:
    """Return the properties of a definition; raise Unreadable where they are none."""
    properties = entry.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise Unreadable(f"`{where}.properties` is not an object whose values are strings")
    return properties


def described(request: Request, role: str) -> SchemaInfo:
    """Return the definition that a line has under `role`, as a text or as the JSON itself, of its `type` and with its `properties`.

    Raises:
        Unreadable: it is no such thing.
        InvalidSchema: the text of a KEY_VALUE is none, or a `.proto` does not compile.
    """
    kind, schema = _kind(request.get("type"), "type"), request.get(role)
    if schema is None and SPECS[kind].language:
        raise Unreadable(
            f"`{role}` is missing: give the definition of {kind.name}, as a text or as the JSON itself"
        )
    entry = {"type": kind.name, "schema": schema, "properties": request.get("properties")}
    if SPECS[kind].declared_as == "protobuf" and (compiled := _compiled(schema)):
        return replace(definition_of({**entry, "schema": None}, role), proto=compiled)
    if SPECS[kind].payload in ("avro", "json"):
        entry["schema"] = _definition_text(schema, role)
    elif SPECS[kind].language == "pair" and isinstance(schema, dict):
        entry["schema"] = json.dumps({name: _half(half) for name, half in schema.items()})
    elif isinstance(schema, dict | list) and not proto_of(schema):
        entry["schema"] = json.dumps(schema)
    return definition_of(entry, role)


def options_of(request: Request) -> dict[str, Any]:
    """Return the options of a line.

    Raises:
        Unreadable: it has something else there.
    """
    given = request.get("options") or {}
    if not isinstance(given, dict):
        raise Unreadable("`options` is not an object")
    return given


def recursion_depth(options: dict[str, Any], *, default: int) -> int:
    """Return the maximum recursion depth of a record.

    Raises:
        Unreadable: `options` has no number there that Java has.
    """
    try:
        # Spark's options are texts; numbers are taken as well.
        given = options.get("recursiveFieldMaxDepth", default)
        depth = None if isinstance(given, float | bool) else int(given)
    except (TypeError, ValueError):
        depth = None
    if depth is None or not -(1 << 31) <= depth < 1 << 31:
        raise Unreadable("`options.recursiveFieldMaxDepth` is not a number of 32 bits")
    return depth


def _half(half: object) -> object:
    """Return a half of a KEY_VALUE as the admin API's text has it, which is the JSON itself: of a text, and of a `.proto`, too."""
    if compiled := _compiled(half):
        return json.loads(compiled.schema)
    if isinstance(half, str) and not half.isidentifier():
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(half)
    return half


def _compiled(schema: object) -> SchemaInfo | None:
    """Return what the `.proto` in `schema` compiles to; None: there is none."""
    proto = proto_of(schema)
    return protobuf_native.load("compile").compile_proto(proto) if proto else None


def _kind(name: object, where: str) -> SchemaType:
    if name is None:
        raise Unreadable(f"`{where}` is missing: write AVRO, JSON or another of Pulsar's schema types")
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise Unreadable(f"`{where}` is {json.dumps(name)}, which is not a schema type")
    return SchemaType[name]


def _definition_text(value: object, where: str) -> str:
    """Return the text of an Avro definition that a line gives as a text or as the JSON itself."""
    if isinstance(value, bool | int | float):
        raise Unreadable(f"`{where}` is {json.dumps(value)}, which is no definition")
    # A bare word is the JSON of a primitive type: its text would stand in quotes.
    if isinstance(value, str) and not value.isidentifier():
        return value
    return json.dumps(value)


def proto_of(schema: object) -> Proto | None:
    """Return the `.proto` in `{"proto": "<text>", "message": "a.B"}`, as an object or as its text; None: it is no such thing."""
    if isinstance(schema, str) and '"proto"' in schema:
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            return None
    if not isinstance(schema, dict):
        return None
    text, message = schema.get("proto"), schema.get("message")
    if not isinstance(text, str) or not isinstance(message, str):
        return None
    proto: Proto = protobuf_native.load("compile").Proto.of_text(text, message)
    return proto


def _bytes(text: object, where: str) -> bytes:
    if text is None:
        # What answers for a broker is loaded only where somebody asks about one.
        from schemactl.broker import NO_DATA

        return NO_DATA
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            return base64.b64decode(text, validate=True)
    raise Unreadable(f"`{where}.schema_b64` is not base64")
