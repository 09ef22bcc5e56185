"""A plausible message of a topic, for people to look at."""

from __future__ import annotations

import json
from random import Random
from typing import Final

from schemactl.codec import CodecError
from schemactl.codec.json_form import json_value
from schemactl.codegen.topics import schema_of
from schemactl.core.errors import SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo
from schemactl.samples.values import values

_MAX_LENGTH: Final = 8_000


def example_of(info: SchemaInfo, name: TopicName) -> str:
    """Return a message's value as JSON, the same each time; "": there is no codec for the schema, or it has no such value."""
    try:
        value = next(values(schema_of(info), name.topic, Random(str(name))))  # noqa: S311  plausible, not secret
    except (CodecError, SchemactlError):
        return ""
    text = json.dumps(json_value(value), indent=2, ensure_ascii=False)
    return text if len(text) <= _MAX_LENGTH else ""
