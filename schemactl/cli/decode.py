"""`decode`: show messages of a topic as JSON."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.json_lines import (
    Answer,
    Request,
    answer_standard_input,
    parse_nanoseconds,
    read_options,
    recursion_depth,
)
from schemactl.cli.parser import Parser, add_options, add_timeout
from schemactl.cli.reading_setup import (
    NESTING_DEPTHS,
    STRICT_OPTION,
    ReadingSetup,
    add_numbers_of,
    note_absent_fields,
    read_setup,
)
from schemactl.cli.target_selection import has_target_option
from schemactl.cli.topic_selection import PART_HELP, choose, find_version, parse_version_bytes, resolve_relative_path
from schemactl.core.errors import ExitCode, SchemactlError, UsageError
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
from schemactl.core.wording import format_version, format_version_numbers

if TYPE_CHECKING:
    from schemactl.codec import Options
    from schemactl.core.catalog import Topic


class VersionNotRegistered(SchemactlError):
    """The registry of the target has no version with the number of the message."""

    exit_code = ExitCode.NEGATIVE


_DECODE_EPILOG: Final = """\
The value goes to standard output as JSON: bytes in base64, dates and times in ISO 8601, decimals as texts. Exit code 100: the
message cannot be decoded; the reason is on standard error.

JSON lines: {"id", "type", "writer", "reader", "messages_b64": [...]} in, {"id", "rows": [<value> | {"error": "<reason>"}]} or
{"id", "error"} out. Definitions are as for `schemactl struct`; a SEPARATED KEY_VALUE has `keys_b64` next to its messages. There bytes
are base64, decimals texts, timestamps microseconds, dates days since 1970, NaN and infinities texts, and a map is a list of its
pairs, sorted by key. The option `nanoseconds` is as for `struct`. AVRO messages for which Spark's from_avro returns no row are also
rejected: messages whose schema is, at the top level, a union with a record or of several types; and a top-level null, except for
number types, where from_avro returns 0.

examples:
  schemactl decode orders --version 3 --base64 AAEGZm9v
  schemactl decode orders@5 --version-bytes 0000000000000003 --file message.bin     as readers of version 5 see it
  schemactl decode orders --target prod --version 6 --file message.bin     by the numbers of prod's registry, which is contacted
  schemactl decode shop/sales/x --target prod --version 2 --file message.bin     a topic or version that Git does not know
  schemactl decode --file orders.avro     an Avro container file, which has its own schema; orders@5: as readers of version 5 see it
  schemactl decode --jsonl < messages.jsonl
"""


def configure_decode(parser: Parser) -> None:
    """Add the arguments of `decode`."""
    parser.description = (
        "Decode one message of a topic, and show which commit introduced the schema it was written with."
    )
    parser.epilog = _DECODE_EPILOG
    parser.renamed = {"--read-as": "TOPIC@N"}
    parser.add_argument(
        "topic",
        nargs="?",
        metavar="TOPIC[@N]",
        help=f"{PART_HELP}; @N: read into the schema of Git's version N (default: the writer's own)",
    )
    version_options = parser.add_mutually_exclusive_group()
    add_options(version_options, "--version N: the version number in the message: which schema wrote it", type=int)
    add_options(version_options, "--version-bytes HEX: the same, as the message carries it")
    payload_options = parser.add_mutually_exclusive_group()
    add_options(
        payload_options,
        "--base64 TEXT: the payload",
        "--file FILE: the file that holds the payload (default: standard input); or an Avro container file, which "
        "needs neither a version nor a TOPIC: its records are printed one per line",
    )
    add_options(parser, "--key-base64 TEXT: the message's key, of a SEPARATED KEY_VALUE")
    add_numbers_of(parser)
    add_timeout(parser)
    add_options(
        parser,
        STRICT_OPTION,
        "--json-defaults: fill missing fields of a JSON payload with their defaults",
        "--jsonl: any definitions and messages, on JSON lines",
    )


def run_decode(args: argparse.Namespace, context: Context) -> int:
    """Print the decoded message; return 100 if it cannot be decoded, else 0.

    With --jsonl, return 1 if a line cannot be answered, else 0.
    """
    from schemactl.codegen.codecs import require_codec

    require_codec()
    if args.jsonl:
        single_message_options = ("topic", "version", "version_bytes", "base64", "file", "key_base64")
        if (
            any(getattr(args, name) is not None for name in single_message_options)
            or has_target_option(args)
            or args.strict
            or args.json_defaults
        ):
            raise UsageError(
                "--jsonl reads everything from its lines: remove TOPIC and the options of a single message"
            )

        return answer_standard_input(_decode_line)
    if (container_path := _find_container(args, context)) is not None:
        return _decode_container(args, context, container_path)
    if not args.topic:
        raise UsageError("name the TOPIC of the message, or add --jsonl")
    if args.version is None and args.version_bytes is None:
        raise UsageError("name the message's schema version with --version or --version-bytes")
    return _decode_message(args, context)


def _decode_message(args: argparse.Namespace, context: Context) -> int:
    """Print the value of one message; return 100 if it cannot be decoded, else 0."""
    from schemactl.codec import CodecError, Options, Unreadable
    from schemactl.codec.message import limit_nesting
    from schemactl.codec.readable_json import to_json
    from schemactl.codegen.codecs import get_wire_options, make_codec, to_codec_schema

    number = args.version if args.version is not None else parse_version_bytes(args.version_bytes)
    message_topic = _find_topic(args, context, number)
    setup, topic = message_topic.setup, message_topic.topic
    is_piped = args.base64 is None and args.file in (None, "-")
    payload = _read_payload(args, context)
    key = None if args.key_base64 is None else _decode_base64(args.key_base64, "--key-base64")
    schemas = _choose_schemas(message_topic, number, args.target)

    if schemas.writer:
        note_absent_fields(context, {number: (to_codec_schema(schemas.writer), [payload])})
    wire_options = get_wire_options(topic, setup.project.generate)
    options = Options(strict=args.strict, json_defaults=args.json_defaults, **wire_options)
    try:
        if schemas.reader is not None:
            options = limit_nesting(to_codec_schema(schemas.reader), options, NESTING_DEPTHS)
        codec = make_codec(
            topic, options, reader=schemas.reader, on_target=setup.on_target(topic, None), kind=schemas.reader_kind
        )
        value = codec.decode_one(payload, number, key)
    except Unreadable as error:
        if is_piped and not payload:
            print(
                f"schemactl: standard input is empty, and no message of {topic.name}, {schemas.writer_text}, is empty\n"
                "  Fix: pipe the payload into the command, or give it with --file FILE or --base64 TEXT",
                file=sys.stderr,
            )
        else:
            print(f"schemactl: {topic.name}, {schemas.writer_text}: {error.reason}", file=sys.stderr)
        return ExitCode.NEGATIVE
    except CodecError as error:
        raise SchemactlError(f"{topic.name}: {error}") from None
    context.say(
        f"{topic.name}, {f'kind {schemas.writer_kind}, ' if schemas.writer_kind else ''}written with {schemas.writer_text}"
    )
    if options.max_nesting and options.max_nesting < NESTING_DEPTHS[0]:
        context.note(
            f"records below {options.max_nesting} levels of nesting are dropped: the definition has too many parts"
        )
    if codec.separated and key is None:
        context.note(
            "a SEPARATED KEY_VALUE has its key outside the payload, so here it is null: give it with --key-base64"
        )
    print(json.dumps(to_json(value), indent=2, ensure_ascii=False))
    return 0


def _read_payload(args: argparse.Namespace, context: Context) -> bytes:
    """Return the payload of the message, from --base64, --file or standard input."""
    if args.base64 is not None:
        return _decode_base64(args.base64, "--base64")
    if args.file in (None, "-"):
        return sys.stdin.buffer.read()
    try:
        return resolve_relative_path(args.file, context).read_bytes()
    except OSError as error:
        raise SchemactlError(f"cannot read {args.file}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _MessageSchemas:
    """The schemas of the writer and the reader of a message.

    Attributes:
        writer: the definition of the message's version, or None if it is unknown or deleted.
        writer_text: the version of the message, for reports.
        writer_kind: the kind of the message, or "".
        reader: the definition to read it with, or None if the topic has no definition.
        reader_kind: the kind of the codec, or "" if the topic has no kinds.
    """

    writer: SchemaInfo | None
    writer_text: str
    writer_kind: str
    reader: SchemaInfo | None
    reader_kind: str


def _choose_schemas(message_topic: _MessageTopic, number: int, target_name: str | None) -> _MessageSchemas:
    """Return the schemas of the writer and the reader of a message with this version number.

    Raises:
        UsageError: if the number is Git's, and the topic has no such version.
    """
    from schemactl.formats import get_record_name

    setup, topic, reader_version = message_topic.setup, message_topic.topic, message_topic.reader_version
    versions = setup.list_versions(topic)
    version = next((version for version in versions if version.number == number), None)
    if setup.target is None:
        find_version(topic, number)
    writer = version.info if version else None
    if version and version.git is not None:
        git_text = format_version(version.git)
        writer_text = git_text if target_name is None else f"number {number} of {target_name}: Git's {git_text}"
    else:
        writer_text = f"number {number} of {target_name}" + (", a foreign one" if writer else "")

    # A message of an unknown version or without a kind is rejected with any reader and any kind.
    reader = reader_version.info if reader_version else None
    if reader_version is None:
        reader = writer or next((version.info for version in versions if version.info), None)
    writer_kind, reader_kind = "", ""
    if topic.kinds:
        writer_kind = topic.find_kind_key(get_record_name(writer)) if writer else ""
        requested_kind = message_topic.kind or (reader_version.kind if reader_version else "")
        reader_kind = requested_kind or writer_kind or topic.kinds[0].key
    return _MessageSchemas(writer, writer_text, writer_kind, reader, reader_kind)


@dataclass(frozen=True, slots=True)
class _MessageTopic:
    """The topic of a message, as the command line names it.

    Attributes:
        setup: the schemas to read its messages with.
        topic: the topic with all its kinds of events, because messages have the numbers of all kinds.
        kind: the kind that the command line names, or "".
        reader_version: the version to read the message as, or None for the writer's own.
    """

    setup: ReadingSetup
    topic: Topic
    kind: str
    reader_version: SchemaVersion | None


def _find_topic(args: argparse.Namespace, context: Context, number: int) -> _MessageTopic:
    """Find the topic in Git, or else in the registry of --target, and verify the version number of the message there.

    Raises:
        UsageError: if there is no such topic, or a target has to be named.
        VersionNotRegistered: if the registry has the topic, and not this version.
        NumbersContradicted: if the registry contradicts the recorded meaning of the number.
    """
    setup = read_setup(context, args.target)
    catalog = setup.approved.catalog
    try:
        chosen_topic, reader_version = choose(args.topic, catalog)
    except UsageError as error:
        topic, setup = setup.read_undeclared(args.topic, error, context)
        registered_numbers = [version.number for version in setup.list_versions(topic)]
        if number not in registered_numbers and setup.target:
            raise VersionNotRegistered(
                f"{setup.target.name} has no version {number} of {topic.name}: it has {format_version_numbers(registered_numbers)}"
            ) from None
        return _MessageTopic(setup, topic, "", None)
    topic = catalog.topics[chosen_topic.name]
    setup.require_target([topic], context)
    topic.load()
    setup = setup.verify_numbers([topic], context, read_foreign=True, number=number)
    return _MessageTopic(setup, topic, chosen_topic.kind, reader_version)


def _find_container(args: argparse.Namespace, context: Context) -> Path | None:
    """Return the path of --file if it is an Avro container file, or None if it is a payload.

    Raises:
        UsageError: if options of a single message are given for a container file.
    """
    from schemactl.publish.avro_files import SUFFIX, is_container

    if args.file in (None, "-"):
        return None
    path = resolve_relative_path(args.file, context)
    has_version = args.version is not None or args.version_bytes is not None
    is_named_so = path.suffix.lower() == SUFFIX
    if not is_container(path) or (has_version and not is_named_so):
        if is_named_so and not has_version:
            if not path.exists():
                raise UsageError(f"--file {args.file}: no such file")
            raise SchemactlError(
                f"{args.file} is not an Avro container file",
                fix="to decode it as a payload, name its version with --version",
            )
        return None
    if has_version or has_target_option(args) or args.key_base64 is not None or args.json_defaults:
        raise UsageError(
            f"{args.file} is an Avro container file, which has its own schema: leave --version, --target, --key-base64 and "
            "--json-defaults out"
        )
    return path


def _decode_container(args: argparse.Namespace, context: Context, path: Path) -> int:
    """Print the records of an Avro container file, one a line; return 100 if one cannot be decoded, else 0."""
    from schemactl.codec import Codec, CodecError, Definition, Options, Unreadable, Version
    from schemactl.codec.message import limit_nesting
    from schemactl.codec.readable_json import to_json
    from schemactl.publish.avro_files import (
        AVRO_TYPES,
        describe_record,
        find_writer,
        find_writers,
        read_header,
        read_payloads,
    )

    definition = read_header(path).definition
    reader_text = definition
    if args.topic:
        approved = read_setup(context, None).approved
        topic, reader_version = choose(args.topic, approved.catalog)
        topic.load()
        version = find_writer(definition, topic)
        writers = [(topic, version)] if version else []
        if reader_version is not None and reader_version.info is not None:
            if reader_version.info.type not in AVRO_TYPES:
                raise UsageError(
                    f"{args.topic} is {reader_version.info.type.name}, and an Avro container file cannot be read as that"
                )
            reader_text = reader_version.info.load().schema.decode()
    else:
        writers = find_writers(definition, read_setup(context, None).approved.catalog)
    for topic, version in writers:
        context.say(f"{topic.name}, written with {format_version(version)}")
    if not writers:
        where = f"of {args.topic}" if args.topic else "in Git"
        context.note(
            f"the schema of the file, {describe_record(definition)}, is not a version {where}: it is read from the file"
        )
    reader = Definition("AVRO", reader_text)
    exit_code = 0
    try:
        options = limit_nesting(reader, Options(strict=args.strict), NESTING_DEPTHS)
        codec = Codec([Version(0, Definition("AVRO", definition))], reader=reader, options=options)
        for number, payload in enumerate(read_payloads(path), start=1):
            try:
                print(json.dumps(to_json(codec.decode_one(payload, 0)), ensure_ascii=False))
            except Unreadable as error:
                print(f"schemactl: {args.file}, record {number}: {error.reason}", file=sys.stderr)
                exit_code = ExitCode.NEGATIVE
    except CodecError as error:
        raise SchemactlError(f"{args.file}: {error}") from None
    return exit_code


def _decode_base64(text: str, option: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise UsageError(f"{option}: this is not base64") from None


def _decode_line(request: Request) -> Answer:
    from schemactl.codec import Codec, CodecError, Version
    from schemactl.codec import Options as CodecOptions
    from schemactl.codec.readable_json import decode_to_json
    from schemactl.codegen.codecs import to_codec_schema
    from schemactl.formats import get_pair, spec
    from schemactl.formats.avro.parser import parse
    from schemactl.formats.json_definitions import InvalidInput, read_request_definition

    line = {"type": "AVRO", **request}
    options = CodecOptions(
        recursion_depth=recursion_depth(read_options(line), default=0),
        nanoseconds=parse_nanoseconds(read_options(line)),
    )
    writer, reader = (read_request_definition(line, role) for role in ("writer", "reader"))
    payloads = _decode_messages(line.get("messages_b64"), "messages_b64")
    keys = _decode_messages(line["keys_b64"], "keys_b64") if "keys_b64" in line else None
    if keys is not None and len(keys) != len(payloads):
        raise InvalidInput("`keys_b64` does not have one key for each message")
    for info in (writer, reader):
        pair = get_pair(info)
        for part in (pair.key, pair.value) if pair else (info,):
            if spec(part).payload in ("avro", "json"):
                # The codec accepts what any release accepts, and R5_0 is the most lenient one.
                parse(part.schema, Release.R5_0)
    try:
        codec = Codec([Version(0, to_codec_schema(writer))], reader=to_codec_schema(reader), options=options)
        if codec.separated and keys is None:
            raise InvalidInput("keys are not part of the payloads: give them as `keys_b64`")
        rows = decode_to_json(codec, payloads, 0, keys)
    except CodecError as error:
        raise InvalidInput(str(error)) from None
    return {"rows": _reject_as_from_avro(rows, reader, options) if spec(reader).payload == "avro" else rows}


def _reject_as_from_avro(rows: list[Any], reader: SchemaInfo, options: Options) -> list[Any]:
    """Replace the rows that Spark's `from_avro` does not return by errors; only schemas with a union at the top have such rows."""
    from schemactl.codegen import spark_types, topic_struct
    from schemactl.formats.avro.parser import parse
    from schemactl.formats.avro.schema import Union

    schema = parse(reader.schema, Release.R5_0)
    if not isinstance(schema, Union):
        return rows
    spark_type = topic_struct.convert(
        schema, topic_struct.StructOptions(recursive_field_max_depth=options.recursion_depth)
    ).type
    if isinstance(spark_type, spark_types.Struct):
        if not spark_type.fields:
            return [{} if row is None else row for row in rows]
        error = {"error": "Spark's from_avro has no row for a union of records, or of several types"}

        def is_error(row: Any) -> bool:
            return isinstance(row, dict) and isinstance(row.get("error"), str) and len(row) == 1

        return [row if is_error(row) else error for row in rows]
    if isinstance(spark_type, spark_types.Atomic) and spark_type not in (spark_types.STRING, spark_types.BINARY):
        return rows
    error = {"error": "Spark's from_avro has no row for a null"}
    return [error if row is None else row for row in rows]


def _decode_messages(texts: Any, where: str) -> list[bytes | None]:
    from schemactl.formats.json_definitions import InvalidInput

    if not isinstance(texts, list):
        raise InvalidInput(
            f"`{where}` is {'missing' if texts is None else 'not a list'}: give the bytes of each in base64"
        )
    try:
        return [None if text is None else base64.b64decode(text, validate=True) for text in texts]
    except (TypeError, ValueError):
        raise InvalidInput(f"`{where}` has an item that is not base64") from None
