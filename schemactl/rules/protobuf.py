"""The rules on protobuf definitions.

Of the data verdict on PROTOBUF_NATIVE (and on PROTOBUF with `proto:`) by the names buf gives them; of buf's categories
WIRE, WIRE_JSON, PACKAGE and FILE, which are opt-in; and of Pulsar's opt-in checker.
"""

from __future__ import annotations

from typing import Final

from schemactl.rules import protobuf_advanced, protobuf_json, protobuf_options, protobuf_source, protobuf_wire

RULES: Final = (
    *protobuf_wire.DATA,
    *protobuf_wire.OPT_IN,
    *protobuf_json.RULES,
    *protobuf_source.RULES,
    *protobuf_options.RULES,
    *protobuf_advanced.RULES,
)
