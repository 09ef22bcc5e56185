"""`schemactl decode`: one message of a topic as JSON, or many on JSON lines."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemactl.cli.context import Context
from schemactl.cli.parser import Parser, add_options
from schemactl.cli.reading import STRICT_OPTION, add_numbers_of, reading
from schemactl.cli.selection import TOPIC_HELP, EnvironmentTarget, choose, number_of, version_of
from schemactl.codegen.topics import codec_of, require_codec, schema_of
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.cli.json_lines import Answer, Request
    from schemactl.codec import Options
    from schemactl.core.schema import SchemaInfo
    from schemactl.declare.target_numbers import TargetVersion

_EPILOG = """\
The value goes to standard output as JSON: bytes in base64, dates and times in ISO 8601, decimals as texts. Exit code 100: the
message cannot be decoded; the reason is on standard error.

JSON lines: {"id", "type", "writer", "reader", "messages_b64": [...]} in, {"id", "rows": [<value> | {"error": "<reason>"}]} or
{"id", "error"} out. Definitions are as for `schemactl struct`; a SEPARATED KEY_VALUE has `keys_b64` next to its messages. There bytes
are base64, decimals texts, timestamps microseconds, dates days since 1970, NaN and infinities texts, and a map is a list of its
pairs, sorted by key. AVRO messages for which Spark's from_avro makes no row are rejected, too: those whose schema is, at the top,
a union with a record or of several types; and a null at the top, except for number types, where from_avro returns 0.

examples:
  schemactl decode orders --version 3 --base64 AAEGZm9v
  schemactl decode orders@5 --version-bytes 0000000000000003 --file message.bin     as readers of version 5 see it
  schemactl decode orders --target prod --version 6 --file message.bin     by the numbers of prod's registry, which is asked
  schemactl decode --jsonl < messages.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `decode`."""
    parser.description = (
        "Decode one message of a topic, and show which commit introduced the schema it was written with."
    )
    parser.epilog = _EPILOG
    if isinstance(parser, Parser):
        parser.renamed = {"--read-as": "TOPIC@N"}
    parser.add_argument(
        "topic",
        nargs="?",
        metavar="TOPIC[@N]",
        help=f"{TOPIC_HELP}; @N: read into the schema of Git's version N (default: the writer's own)",
    )
    written = parser.add_mutually_exclusive_group()
    add_options(written, "--version N: the version number in the message: which schema wrote it", type=int)
    add_options(written, "--version-bytes HEX: the same, as the message carries it")
    source = parser.add_mutually_exclusive_group()
    add_options(
        source,
        "--base64 TEXT: the payload",
        "--file FILE: the file that holds the payload (default: standard input)",
    )
    add_options(parser, "--key-base64 TEXT: the message's key, of a SEPARATED KEY_VALUE")
    add_numbers_of(parser)
    add_options(
        parser,
        STRICT_OPTION,
        "--json-defaults: missing fields of a JSON payload get their defaults",
        "--jsonl: any definitions and messages, on JSON lines",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: read; 100: the message cannot be read; 1: a line of --jsonl cannot."""
    require_codec()
    if args.jsonl:
        one = ("topic", "version", "version_bytes", "base64", "file", "key_base64")
        target = args.target is not None and not isinstance(args.target, EnvironmentTarget)
        if (
            any(getattr(args, name) is not None for name in one)
            or target
            or args.strict
            or args.json_defaults
        ):
            raise UsageError(
                "--jsonl reads everything from its lines: remove TOPIC and the options of a single message"
            )
        from schemactl.cli.json_lines import answer_lines

        return 0 if answer_lines(sys.stdin.buffer, sys.stdout, _lines) else 1
    if not args.topic:
        raise UsageError("name the TOPIC of the message, or ask for --jsonl")
    if args.version is None and args.version_bytes is None:
        raise UsageError("name the message's schema version with --version or --version-bytes")
    from schemactl.codec import CodecError, Options, Unreadable
    from schemactl.codec.json_form import json_value

    read = reading(context, args.target)
    topic, into = choose(args.topic, read.approved.catalog)
    read.require_target([topic], context)
    topic.load()
    number = args.version if args.version is not None else number_of(args.version_bytes)
    payload = _payload(args)
    key = None if args.key_base64 is None else _bytes(args.key_base64, "--key-base64")
    read = read.verified([topic], context)
    writer = next((each for each in read.versions(topic) if each.number == number), None)
    if read.target is None:
        version_of(topic, number)
    # Where the number stands for nothing, any reader will do: the message is rejected.
    known = (version.info for version in topic.versions if version.info)
    reader = into.info if into else (writer and writer.info) or next(known, None)
    options = Options(strict=args.strict, recursion_depth=64, json_defaults=args.json_defaults)
    message = f"{topic.name}, {_writer(writer, number, args.target)}"
    try:
        codec = codec_of(topic, options, reader=reader, on_target=read.on_target(topic, None))
        value = codec.decode_one(payload, number, key)
    except Unreadable as error:
        print(f"schemactl: {message}: {error.reason}", file=sys.stderr)
        return NEGATIVE
    except CodecError as error:
        raise SchemactlError(f"{topic.name}: {error}") from None
    context.say(f"{topic.name}, written with {_writer(writer, number, args.target)}")
    if codec.separated and key is None:
        context.note(
            "a SEPARATED KEY_VALUE has its key beside the payload, so here it is null: give it with --key-base64"
        )
    print(json.dumps(json_value(value), indent=2, ensure_ascii=False))
    return 0


def _writer(writer: TargetVersion | None, number: int, target: str | None) -> str:
    """Return what wrote the message, with the commit that brought it."""
    from schemactl.core.wording import format_version

    git = writer.git if writer else None
    if target is None and git is not None:
        return format_version(git)
    if git is not None:
        return f"number {number} of {target}: Git's {format_version(git)}"
    return f"number {number} of {target}" + (", a foreign one" if writer and writer.info else "")


def _payload(args: argparse.Namespace) -> bytes:
    if args.base64 is not None:
        return _bytes(args.base64, "--base64")
    if args.file in (None, "-"):
        return sys.stdin.buffer.read()
    try:
        return Path(args.file).read_bytes()
    except OSError as error:
        raise SchemactlError(f"cannot read {args.file}: {error.strerror}") from error


def _bytes(text: str, option: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise UsageError(f"{option}: this is not base64") from None


def _lines(request: Request) -> Answer:
    from schemactl.cli.json_lines import options_of, recursion_depth
    from schemactl.codec import Codec, CodecError, Version
    from schemactl.codec import Options as CodecOptions
    from schemactl.codec.json_form import json_rows
    from schemactl.core.schema import Release
    from schemactl.formats import InvalidInput, described, pair_of, spec
    from schemactl.formats.avro.parser import parse

    line = {"type": "AVRO", **request}
    options = CodecOptions(recursion_depth=recursion_depth(options_of(line), default=0))
    writer, reader = (described(line, role) for role in ("writer", "reader"))
    payloads = _messages(line.get("messages_b64"), "messages_b64")
    keys = _messages(line["keys_b64"], "keys_b64") if "keys_b64" in line else None
    if keys is not None and len(keys) != len(payloads):
        raise InvalidInput("`keys_b64` has not one key for each message")
    for info in (writer, reader):
        both = pair_of(info)
        for each in (both.key, both.value) if both else (info,):
            if spec(each).payload in ("avro", "json"):
                # A codec reads what any release of Avro reads.
                parse(each.schema, Release.R5_0)
    try:
        codec = Codec([Version(0, schema_of(writer))], reader=schema_of(reader), options=options)
        if codec.separated and keys is None:
            raise InvalidInput("keys are not part of the payloads: give them as `keys_b64`")
        rows = json_rows(codec, payloads, 0, keys)
    except CodecError as error:
        raise InvalidInput(str(error)) from None
    return {"rows": _as_from_avro(rows, reader, options) if spec(reader).payload == "avro" else rows}


def _as_from_avro(rows: list[Any], reader: SchemaInfo, options: Options) -> list[Any]:
    """Return the rows; of a whole message that is of a union, only those that Spark's `from_avro` has, too."""
    from schemactl.codegen import spark_types, topic_struct
    from schemactl.core.schema import Release
    from schemactl.formats.avro.parser import parse
    from schemactl.formats.avro.schema import Union

    schema = parse(reader.schema, Release.R5_0)
    if not isinstance(schema, Union):
        return rows
    kind = topic_struct.convert(
        schema, topic_struct.StructOptions(recursive_field_max_depth=options.recursion_depth)
    ).type
    if isinstance(kind, spark_types.Struct):
        if not kind.fields:
            return [{} if row is None else row for row in rows]
        refusal = {"error": "Spark's from_avro has no row for a union of records, or of several types"}
        return [
            row if isinstance(row, dict) and isinstance(row.get("error"), str) and len(row) == 1 else refusal
            for row in rows
        ]
    if isinstance(kind, spark_types.Atomic) and kind not in (spark_types.STRING, spark_types.BINARY):
        return rows
    refusal = {"error": "Spark's from_avro has no row for a null"}
    return [refusal if row is None else row for row in rows]


def _messages(given: Any, where: str) -> list[bytes | None]:
    from schemactl.formats import InvalidInput

    if not isinstance(given, list):
        raise InvalidInput(
            f"`{where}` is {'missing' if given is None else 'not a list'}: give the bytes of each in base64"
        )
    try:
        return [None if text is None else base64.b64decode(text, validate=True) for text in given]
    except (TypeError, ValueError):
        raise InvalidInput(f"`{where}` has an item that is not base64") from None
