"""The rules on protobuf definitions.

Of the data verdict on PROTOBUF_NATIVE (and on PROTOBUF with `proto:`) by the names buf gives them; of buf's categories
WIRE, WIRE_JSON, PACKAGE and FILE, which are opt-in; and of Pulsar's opt-in checker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from schemactl.rules import (
    Rule,
    protobuf_advanced,
    protobuf_json,
    protobuf_options,
    protobuf_source,
    protobuf_wire,
)


def _asked_with(option: str, rules: Sequence[Rule]) -> Iterator[Rule]:
    """`rules`, which nobody looks for without the option."""
    return (replace(rule, asked_with=f"schemactl compare {option}") for rule in rules)


_FILE: Final = (*protobuf_source.RULES, *protobuf_options.RULES)

RULES: Final = (
    *protobuf_wire.DATA,
    *_asked_with("--proto-rules WIRE", protobuf_wire.OPT_IN),
    *_asked_with("--proto-rules WIRE_JSON", protobuf_json.RULES),
    *_asked_with("--proto-rules FILE", [rule for rule in _FILE if not rule.id.startswith("PACKAGE_")]),
    *_asked_with("--proto-rules PACKAGE", [rule for rule in _FILE if rule.id.startswith("PACKAGE_")]),
    *_asked_with(
        "--pulsar 5.0 --checker ProtobufNativeSchemaAdvancedCompatibilityCheck", protobuf_advanced.RULES
    ),
)
