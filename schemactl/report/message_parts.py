"""Split the message that proves a finding, so that each format can mark the guilty value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from schemactl.core.findings import Counterexample
from schemactl.core.terminal import on_one_line, truncate

_MAX_VALUE: Final = 40
"""The maximum number of characters of a value in a message, except the guilty value."""

_MAX_PAIRS: Final = 2
"""The number of values that are shown before the guilty value of a message."""


class MessagePart(NamedTuple):
    """A part of the text of a message, and whether it is the value that the reader cannot read."""

    text: str
    is_guilty: bool = False


def list_message_parts(proof: Counterexample, field: str) -> list[MessagePart]:
    """Return the text of the message that proves a finding, with the value of `field` apart and other long values cut."""
    try:
        value = json.loads(proof.message)
    except ValueError:
        return [MessagePart(on_one_line(truncate(proof.message, 300)))]
    part, _, path = field.partition(".")
    keys = re.findall(r"[^.\[\]]+|\[\]", path)
    if part in ("key", "value") and isinstance(value, dict) and part in value and not value.keys() - {"key", "value"}:
        # The key or value of a pair, whose fields start with the name of a record.
        keys = [part, *keys[1:]]
    if not keys:
        return [MessagePart(_dump(value))]
    return [part for part in _split_message(value, keys) if part.text]


def _split_message(value: Any, keys: Sequence[str]) -> Iterator[MessagePart]:
    """Yield the parts of a value; `keys` lead to the guilty value inside of it, which is the value itself without keys."""
    if not keys:
        yield MessagePart(_dump(value), is_guilty=True)
        return
    key, *rest = keys
    if key == "[]" and isinstance(value, list) and value:
        yield MessagePart("[")
        yield from _split_message(value[0], rest)
        yield MessagePart(", ...]" if len(value) > 1 else "]")
    elif isinstance(value, dict):
        yield MessagePart("{")
        pairs = [*value.items()]
        names = [name for name, _ in pairs]
        position = names.index(key) if key in names else len(names)
        first = pairs[: min(position, _MAX_PAIRS)]
        yield MessagePart("".join(f"{_dump(name)}: {_dump(item)}, " for name, item in first))
        if position > _MAX_PAIRS:
            yield MessagePart("..., ")
        if key in names:
            yield MessagePart(f"{_dump(key)}: ")
            yield from _split_message(value[key], rest)
            yield MessagePart(", ...}" if position < len(names) - 1 else "}")
        else:
            yield MessagePart(f"no {on_one_line(key)}", is_guilty=True)
            yield MessagePart("}")
    else:
        yield MessagePart(_dump(value), is_guilty=True)


def _dump(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > _MAX_VALUE and isinstance(value, dict | list):
        text = "{...}" if isinstance(value, dict) else "[...]"
    return on_one_line(truncate(text, 2 * _MAX_VALUE))
