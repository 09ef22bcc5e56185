"""The JSON Schema for editors, which comes from the pydantic models; run this file to write it anew."""

from __future__ import annotations

from pathlib import Path

from schemactl import declare
from schemactl.declare.shapes import KINDS, editor_schema, mismatches
from schemactl.json_values import laid_out

SCHEMA = Path(declare.__file__).with_name("schemactl.schema.json")


def test_it_is_up_to_date() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == laid_out(editor_schema(), 200) + "\n", f"run {__file__}"


def test_it_has_every_key_and_type() -> None:
    schema = editor_schema()["$defs"]
    for kind, shape in KINDS.items():
        keys = {field.alias or name for name, field in shape.model_fields.items()}
        assert keys == set(schema[shape.__name__]["properties"]), kind
        assert mismatches(kind, 5)
    types = {
        name for shape in schema.values() for name in shape["properties"].get("type", {}).get("enum", ())
    }
    assert {"AVRO", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE", "STRING", "EXTERNAL"} <= types


if __name__ == "__main__":
    SCHEMA.write_text(laid_out(editor_schema(), 200) + "\n", encoding="utf-8")
