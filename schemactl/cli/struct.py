"""`struct`: print Spark's types for definitions on JSON lines."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from schemactl.cli.context import Context
from schemactl.cli.json_lines import (
    Answer,
    Request,
    answer_standard_input,
    parse_nanoseconds,
    read_options,
    recursion_depth,
)
from schemactl.cli.parser import add_options
from schemactl.core.errors import InvalidSchema, SchemactlError, UsageError
from schemactl.core.schema import Release

_STRUCT_EPILOG: Final = """\
reads one JSON object per line and writes one per line, in the same order; a line that cannot be parsed gets an `error`:
  {"id": "7", "type": "AVRO", "schema": "<text>", "options": {"recursiveFieldMaxDepth": 2}}
  {"id": "7", "struct": <Spark's JSON of the type>, "nullable": false, "error": null}

`schema` is the definition, as a text or as the JSON itself; of a KEY_VALUE {"key": ..., "value": ...}, with Pulsar's `properties` for
the types of key and value; of protobuf the broker's wrapper, or {"proto": "<text>", "message": "a.B"}. Where Spark rejects it, `struct`
is null, `error` is the simple name of the exception it throws, `condition` the error condition that this has, if any, and `message`
says why. Options, as Spark names them: recursiveFieldMaxDepth, enableStableIdentifiersForUnionType, stableIdentifierPrefixForUnionType. The option
nanoseconds is truncated or bigint, as under `generate:`.

examples:
  schemactl struct --spark 4.3 < schemas.jsonl > structs.jsonl
  echo '{"id": 1, "type": "AVRO", "schema": {"type": "array", "items": "long"}}' | schemactl struct
"""


def configure_struct(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `struct`."""
    parser.description = (
        "Print Spark's types for definitions in bulk, as Spark's own SchemaConverters makes them, with its errors."
    )
    parser.epilog = _STRUCT_EPILOG
    add_options(parser, "--spark MAJOR.MINOR: the release of Spark to follow (default: 4.1)", default="4.1")


def run_struct(args: argparse.Namespace, context: Context) -> int:  # noqa: ARG001  every command has this shape
    """Answer the lines on standard input; return 1 if one has an error, else 0."""
    from schemactl.codegen.topic_struct import StructOptions

    try:
        _ = StructOptions(args.spark).release
    except SchemactlError as error:
        raise UsageError(f"--spark: {error.message}", fix=error.fix) from None
    return answer_standard_input(partial(_convert_schema, spark=args.spark))


def _convert_schema(request: Request, *, spark: str) -> Answer:
    from schemactl.codegen.spark_types import UnsupportedBySpark, to_json
    from schemactl.codegen.topic_struct import StructOptions, convert, struct_of
    from schemactl.formats import spec
    from schemactl.formats.avro.json_text import InvalidAvro
    from schemactl.formats.avro.parser import parse_for_spark
    from schemactl.formats.json_definitions import InvalidInput, read_request_definition

    request_options = read_options(request)
    options = StructOptions(
        spark,
        recursive_field_max_depth=recursion_depth(request_options, default=-1),
        stable_union_identifiers=str(request_options.get("enableStableIdentifiersForUnionType")).lower() == "true",
        nanoseconds=parse_nanoseconds(request_options),
        stable_union_prefix=str(
            request_options.get("stableIdentifierPrefixForUnionType", StructOptions().stable_union_prefix)
        ),
    )
    try:
        info = read_request_definition(request, "schema")
        if spec(info).payload in ("avro", "json"):
            column = convert(parse_for_spark(info.schema, options.release), options)
            return {"struct": to_json(column.type), "nullable": column.nullable, "error": None}
        struct = struct_of(info, options, Release.R4_2)
    except UnsupportedBySpark as error:
        return _make_failure(error.error, error.message, condition=error.condition)
    except InvalidAvro as error:
        return _make_failure(error.exception, error.message)
    except InvalidSchema as error:
        return _make_failure("SchemaParseException", error.message)
    if struct is None:
        raise InvalidInput(f"there is no description of the payloads of {info.type.name}")
    return {"struct": to_json(struct), "nullable": False, "error": None}


def _make_failure(error: str, message: str, *, condition: str | None = None) -> Answer:
    return {"struct": None, "nullable": None, "error": error, "condition": condition, "message": message}
