"""A definition for people: each message, field and enum that the root reaches, on a line of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from schemactl.formats.protobuf_native.default import printed
from schemactl.formats.protobuf_native.descriptor import (
    ENUM,
    KIND_NAMES,
    MAP,
    REPEATED,
    REQUIRED,
    Enum,
    Field,
    Message,
)
from schemactl.formats.protobuf_native.wrapper import parse
from schemactl.model import SchemaInfo


def outline_of(info: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Name and content of each part, from the root down: `web.Click.id` is `1: int64`.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    root = parse(info.schema).root
    queue: deque[Message | Enum] = deque([root])
    seen = {root.full_name}
    while queue:
        element = queue.popleft()
        if isinstance(element, Enum):
            values = ", ".join(f"{name} = {number}" for name, number in element.numbers().items())
            yield element.full_name, f"{'closed ' if element.is_closed else ''}enum of {values}"
            continue
        if not element.is_map_entry:
            yield element.full_name, "message"
        for field in element.fields().values():
            if not element.is_map_entry:
                yield f"{element.full_name}.{field.name}", _said(field)
            if field.type_name and field.type_name not in seen:
                seen.add(field.type_name)
                queue.append(field.enum if field.kind == ENUM else field.file.image.message(field.type_name))


def _said(field: Field) -> str:
    what = _type(field)
    if field.cardinality in (REPEATED, REQUIRED):
        what = f"{field.cardinality} {what}"
    default = f" = {printed(field)}" if field.proto.HasField("default_value") else ""
    oneof = f" in oneof {field.oneof}" if field.oneof else ""
    return f"{field.proto.number}: {what}{default}{oneof}"


def _type(field: Field) -> str:
    if field.cardinality != MAP:
        return field.type_name or KIND_NAMES[field.kind]
    entry = field.file.image.message(field.type_name).fields()
    return f"map<{_type(entry[1])}, {_type(entry[2])}>"
