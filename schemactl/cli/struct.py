"""`schemactl struct`: Spark's type for any definition, on JSON lines."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.errors import InvalidSchema, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.cli.json_lines import Answer, Request

_EPILOG = """\
one JSON object a line in, one a line out, in order; a line that cannot be parsed is answered with an `error`:
  {"id": "7", "type": "AVRO", "schema": "<text>", "options": {"recursiveFieldMaxDepth": 2}}
  {"id": "7", "struct": <Spark's JSON of the type>, "nullable": false, "error": null}

`schema` is the definition, as a text or as the JSON itself; of a KEY_VALUE {"key": ..., "value": ...}, with Pulsar's `properties` for
the types of the halves; of protobuf the broker's wrapper, or {"proto": "<text>", "message": "a.B"}. Where Spark rejects it, `struct`
is null, `error` is the simple name of the exception it throws, `condition` the error condition that this has, if any, and `message`
says why. Options, as Spark names them: recursiveFieldMaxDepth, enableStableIdentifiersForUnionType, stableIdentifierPrefixForUnionType.

examples:
  schemactl struct --spark 4.3 < schemas.jsonl > structs.jsonl
  echo '{"id": 1, "type": "AVRO", "schema": {"type": "array", "items": "long"}}' | schemactl struct
"""

_PARSE_ERROR = "SchemaParseException"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `struct`."""
    parser.description = "Print Spark's types for definitions in bulk, as Spark's own SchemaConverters makes them, with its errors."
    parser.epilog = _EPILOG
    add_options(parser, "--spark MAJOR.MINOR: the release of Spark to follow (default: 4.1)", default="4.1")


def run(args: argparse.Namespace, context: Context) -> int:  # noqa: ARG001  every command has this shape
    """Return 0: every line was read; 1: at least one was not."""
    from schemactl.cli.json_lines import answer_lines
    from schemactl.codegen.topic_struct import StructOptions

    try:
        _ = StructOptions(args.spark).release
    except SchemactlError as error:
        raise UsageError(f"--spark: {error.what}", fix=error.fix) from None
    return 0 if answer_lines(sys.stdin.buffer, sys.stdout, partial(_struct, spark=args.spark)) else 1


def _struct(request: Request, *, spark: str) -> Answer:
    from schemactl.cli.json_lines import options_of, recursion_depth
    from schemactl.codegen.spark_types import UnsupportedBySpark, to_json
    from schemactl.codegen.topic_struct import StructOptions, convert, struct_of
    from schemactl.core.schema import Release
    from schemactl.formats import InvalidInput, described, spec
    from schemactl.formats.avro.json_text import InvalidAvro
    from schemactl.formats.avro.parser import parse_for_spark

    given = options_of(request)
    options = StructOptions(
        spark,
        recursive_field_max_depth=recursion_depth(given, default=-1),
        stable_union_identifiers=str(given.get("enableStableIdentifiersForUnionType")).lower() == "true",
        stable_union_prefix=str(
            given.get("stableIdentifierPrefixForUnionType", StructOptions().stable_union_prefix)
        ),
    )
    try:
        info = described(request, "schema")
        if spec(info).payload in ("avro", "json"):
            found = convert(parse_for_spark(info.schema, options.release), options)
            return {"struct": to_json(found.type), "nullable": found.nullable, "error": None}
        struct = struct_of(info, options, Release.R4_2)
    except UnsupportedBySpark as error:
        return _failure(error.error, error.what, condition=error.condition)
    except InvalidAvro as error:
        return _failure(error.exception, error.what)
    except InvalidSchema as error:
        return _failure(_PARSE_ERROR, error.what)
    if struct is None:
        raise InvalidInput(f"there is no description of the payloads of {info.type.name}")
    return {"struct": to_json(struct), "nullable": False, "error": None}


def _failure(error: str, message: str, *, condition: str | None = None) -> Answer:
    return {"struct": None, "nullable": None, "error": error, "condition": condition, "message": message}
