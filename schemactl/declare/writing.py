"""Declarations as YAML text, for what is written by the tool itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

Value = str | int | Sequence[str] | Mapping[str, "Value"]

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./:+-]*(?<!:)")
_WORDS: Final = re.compile(r"(?i:null|true|false|yes|no|on|off|y|n)")
"""Other readers of YAML take some of these for no text."""

_UNPRINTABLE: Final = re.compile(
    "[^\n\r\t -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def yaml_text(values: Mapping[str, Value]) -> str:
    """`values` as one YAML document, keys in their order. An empty mapping is left out."""
    return "".join(f"{line}\n" for line in _lines(values, 0))


def _lines(values: Mapping[str, Value], depth: int) -> Iterator[str]:
    for key, value in values.items():
        label = f"{'  ' * depth}{scalar(key)}:"
        if isinstance(value, str | int):
            yield f"{label} {scalar(value)}"
        elif not isinstance(value, Mapping):
            yield f"{label} [{', '.join(map(scalar, value))}]"
        elif value:
            yield label
            yield from _lines(value, depth + 1)


def scalar(value: str | int) -> str:
    """`value` as YAML writes it on one line, in quotes where it needs them."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and not _WORDS.fullmatch(value):
        return value
    # JSON's text in quotes is YAML's, but for what YAML wants escaped and JSON does not.
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
