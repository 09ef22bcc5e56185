"""`sample`: make plausible messages of a version, or read messages of a real topic."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, make_number_type, parse_seconds
from schemactl.cli.reading_setup import NESTING_DEPTHS, ReadingSetup, add_numbers_of, note_absent_fields, read_setup
from schemactl.cli.report_files import write_data
from schemactl.cli.states import STATE_HELP, NamedDefinition, States
from schemactl.cli.topic_selection import resolve_relative_path
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.checks.samples import SampleMessage
    from schemactl.codec import Definition, KeyValue
    from schemactl.core.catalog import Topic
    from schemactl.core.schema import SchemaInfo


_READING_S: Final = 30.0
"""The time for which `sample --from` reads messages without --timeout."""

_MIN_READING_S: Final = 0.1

_SAMPLE_FORMATS: Final = ("json", "messages", "bytes")

_SAMPLE_EPILOG: Final = """\
formats:
  json       the values, one a line: bytes in base64, dates and times in ISO 8601, decimals as texts
  messages   one a line: {"version", "payload_b64", "key_b64", "value"}; the form that `check` reads in a folder `samples`
  bytes      the payload alone: with --out, a file for each
With --out FILE.avro, the values go to an Avro container file. Values of --from are converted to the approved schema.

examples:
  schemactl sample orders@3 -n 5
  schemactl sample orders@work --seed 7                     as the files here have it
  schemactl sample orders -n 20 --out namespaces/samples    for `check`, in every pull request from now on
  schemactl sample orders@3 -n 20 --out orders.avro         for tools that read Avro files
  schemactl sample orders@3 -n 1 --format bytes | schemactl decode orders --version 3
  schemactl sample orders -n 50 --from pulsar://broker.example.com:6650 --out namespaces/samples
  schemactl sample shop/sales/x --from pulsar://broker.example.com:6650 --target prod     a topic that Git does not know
"""


def configure_sample(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sample`."""
    parser.description = (
        "Make plausible messages of a version, for tests: each is written by the codec of generated packages and read back. The same "
        "seed gives the same messages. With --from, read the first messages of a real topic instead, which needs no Spark and "
        "leaves nothing there: they may be personal data, so look at them before they go into Git."
    )
    parser.epilog = _SAMPLE_EPILOG
    parser.add_argument("topic", metavar="TOPIC[@N|@work|@REF]", help=STATE_HELP)
    add_options(parser, "-n, --count N: the number of messages (default: 1)", type=make_number_type(1), default=1)
    add_options(parser, "--seed S: the seed of the random values (default: 0)", type=int)
    parser.add_argument(
        "--format", choices=_SAMPLE_FORMATS, help="see below (default: json; with --out or --from: messages)"
    )
    add_options(
        parser, "--from URL: take the messages of the topic at these brokers, pulsar://HOST:6650", dest="brokers"
    )
    add_options(
        parser,
        "--out DIR: write TOPIC.jsonl, or TOPIC.vN.1.bin, ..., into this folder, and replace existing files of these names; or FILE.avro",
        "--token-env NAME: with --from: the environment variable with the token for the brokers",
    )
    add_options(
        parser,
        "--timeout SECONDS: give up after this many seconds, with exit code 1; --from stops reading a second earlier, and keeps the "
        f"messages that it has (default: no limit; --from reads for {_READING_S:g} seconds)",
        type=parse_seconds,
    )
    add_numbers_of(parser)


def run_sample(args: argparse.Namespace, context: Context) -> int:
    """Print the messages, or write them to files with --out."""
    from schemactl.codegen.codecs import require_codec, to_codec_schema

    is_container = bool(args.out) and args.out.lower().endswith(".avro")
    if is_container and args.format:
        raise UsageError(f"--out {args.out} is an Avro container file: leave --format out")
    form = args.format or ("messages" if args.out or args.brokers else "json")
    if form == "json" and (args.out or args.brokers):
        raise UsageError(
            "--format json prints values, not messages: --out and --from require --format messages or bytes"
        )
    if form == "bytes" and not args.out and args.count > 1:
        raise UsageError("several payloads on standard output cannot be separated: add --out DIR, or -n 1")
    require_codec()
    setup = None
    try:
        chosen = States(context, [args.topic]).find_definition(args.topic)
    except UsageError as error:
        if not args.brokers:
            raise
        topic, setup = read_setup(context, args.target).read_undeclared(args.topic, error, context)
        infos = [version.info for version in setup.list_versions(topic) if version.info]
        chosen = NamedDefinition(topic, info=infos[-1] if infos else None)
    chosen.topic.load()
    if chosen.info is None:
        raise SchemactlError(f"{chosen.topic.name} has no schema there, so its messages cannot be decoded")
    schema = to_codec_schema(chosen.info)
    if args.brokers:
        messages = _read_messages(args, context, chosen, schema, setup)
    else:
        messages = _make_messages(args, context, chosen, schema)
    samples = list(islice(messages, args.count))
    if args.brokers:
        infos_by_number = {version.number: version.info for version in chosen.topic.versions}
        payloads_by_version: dict[int, tuple[Definition | KeyValue, list[bytes | None]]] = {}
        for message, _ in samples:
            # With a target, the number is not Git's.
            if message.version is None or message.target is not None:
                continue
            if info := infos_by_number.get(message.version):
                payloads_by_version.setdefault(message.version, (to_codec_schema(info), []))[1].append(message.payload)
        note_absent_fields(context, payloads_by_version)
    if is_container:
        _write_container(resolve_relative_path(args.out, context), samples, chosen, chosen.info, context)
    elif args.out:
        _write_files(Path(context.directory, args.out), form, samples, chosen, context)
    elif form == "bytes":
        sys.stdout.buffer.write(b"".join(message.payload or b"" for message, _ in samples))
    else:
        from schemactl.codec.readable_json import to_json

        for message, value in samples:
            print(json.dumps(to_json(value), ensure_ascii=False) if form == "json" else message.to_line(value))
    return 0


def _make_messages(
    args: argparse.Namespace, context: Context, chosen: NamedDefinition, schema: Definition | KeyValue
) -> Iterator[tuple[SampleMessage, Any]]:
    from schemactl.codec import CodecError, Options
    from schemactl.codegen.codecs import get_wire_options
    from schemactl.publish.sample_messages import explain_omissions, generate_messages

    if args.token_env:
        raise UsageError("--token-env requires --from")
    number, name = chosen.number_or_next, chosen.topic.name
    if chosen.number is None:
        context.say(
            f"{name}: {chosen.version_text}, so the messages get the number that the version would have: {number}"
        )
    try:
        if omissions := explain_omissions(schema):
            context.note(f"{name}: {omissions}")
        options = Options(**get_wire_options(chosen.topic, context.project()[0].generate))
        yield from generate_messages(schema, number, name=name.topic, seed=args.seed or 0, options=options)
    except CodecError as error:
        raise SchemactlError(f"{name}: {error}") from None


def _read_messages(
    args: argparse.Namespace,
    context: Context,
    chosen: NamedDefinition,
    schema: Definition | KeyValue,
    setup: ReadingSetup | None,
) -> Iterator[tuple[SampleMessage, Any]]:
    """Yield messages of the real topic: with Git's version numbers, or with their values if Git does not know their version.

    `setup` is the setup of a topic that Git does not know, or None.
    """
    from schemactl.codec import KeyValue

    if args.seed is not None or chosen.state or chosen.version:
        raise UsageError("--from reads messages of all versions: name the TOPIC alone, without --seed")
    token = None
    if args.token_env:
        token = os.environ.get(args.token_env)
        if not token:
            raise UsageError(f"the environment variable {args.token_env} (--token-env) is not set")
    topic = chosen.topic
    is_undeclared = setup is not None
    if setup is None:
        setup = read_setup(context, args.target)
        setup.require_target([topic], context)
        setup = setup.verify_numbers([topic], context, read_foreign=True)
    source_name = setup.get_source_name(topic.name)
    has_separate_keys = isinstance(schema, KeyValue) and schema.encoding == "SEPARATED"
    versions = setup.list_versions(topic)
    git_numbers = {version.number: version.git.number for version in versions if version.git}
    foreign = {version.number: version.info for version in versions if version.info and not version.git}
    context.say(
        f"messages of {source_name} at {args.brokers}: they may be personal data, so look at them before they go into Git"
    )
    count = 0
    context.deadline.begin(f"reading {source_name} at {args.brokers}")
    timeout_s = _READING_S if args.timeout is None else max(_MIN_READING_S, context.deadline.remaining_s - 1)
    for message in _read_topic(
        args.brokers, str(source_name), pairs=has_separate_keys, token=token, timeout_s=timeout_s
    ):
        if message.version is not None and message.version not in git_numbers:
            # `check` reads sample files by Git's numbers, so messages of a declared topic with other versions do not belong there.
            info = foreign.get(message.version) if is_undeclared or not args.out else None
            if info is None:
                advice = "" if setup.target else "; with --target, its schema is read from the registry"
                context.say(f"left out: a message of version {message.version}, which is not approved{advice}")
                continue
            count += 1
            value = _decode_foreign(message, setup, topic, info, context)
            yield message._replace(target=setup.target.name if setup.target else None), value
            continue
        count += 1
        version = None if message.version is None else git_numbers[message.version]
        yield message._replace(version=version), None
    if not count:
        raise SchemactlError(
            f"{source_name} at {args.brokers} sent no message of an approved version within {timeout_s:.3g} s"
        )


def _decode_foreign(
    message: SampleMessage, setup: ReadingSetup, topic: Topic, info: SchemaInfo, context: Context
) -> Any:
    """Return the value of a message whose version Git does not know, or None if the message cannot be decoded."""
    from schemactl.codec import CodecError, Options, UnknownVersion, Unreadable
    from schemactl.codec.message import limit_nesting
    from schemactl.codegen.codecs import make_codec, to_codec_schema

    try:
        options = limit_nesting(to_codec_schema(info), Options(), NESTING_DEPTHS)
        codec = make_codec(topic, options, reader=info, on_target=setup.on_target(topic, None))
        return codec.decode_one(message.payload, message.version, message.key)
    except (Unreadable, UnknownVersion) as error:
        context.say(f"a message of version {message.version} cannot be decoded: {error}")
    except CodecError as error:
        raise SchemactlError(f"{topic.name}: {error}") from None
    return None


def _read_topic(url: str, topic: str, *, pairs: bool, token: str | None, timeout_s: float) -> Iterator[SampleMessage]:
    """Yield a topic's messages from its beginning, with the cluster's version numbers, until it ends or the time is up.

    They are read without a durable subscription.

    Args:
        url: the URL of the brokers, `pulsar://HOST:6650` or `pulsar+ssl://...`.
        topic: the full name of the topic.
        pairs: whether the messages are SEPARATED pairs, which have a key.
        token: the token to authenticate with, or None.
        timeout_s: the time limit for all messages together.

    Raises:
        SchemactlError: if pulsar-client is not installed, or the cluster does not respond.
    """
    from schemactl.checks.samples import SampleMessage
    from schemactl.codec.message import decode_pair_key, get_payload, get_version_number

    deadline = time.monotonic() + timeout_s
    try:
        pulsar: Any = import_module("pulsar")
    except ImportError:
        raise SchemactlError(
            "this needs pulsar-client, which is not installed", fix='pip install "pulsar-schemactl[pulsar]"'
        ) from None
    # The import of the client counts: it takes seconds on a busy machine.
    remaining_s = deadline - time.monotonic()
    try:
        client = pulsar.Client(
            url,
            authentication=None if token is None else pulsar.AuthenticationToken(token),
            operation_timeout_seconds=max(1, round(remaining_s)),
            connection_timeout_ms=max(1, round(remaining_s * 1000)),
            # By default it logs to standard output, where the messages go.
            logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
        )
        with closing(client):
            reader = client.create_reader(topic, pulsar.MessageId.earliest, subscription_role_prefix="schemactl")
            while (remaining_s := deadline - time.monotonic()) > 0 and reader.has_message_available():
                try:
                    message = reader.read_next(max(1, round(remaining_s * 1000)))
                except pulsar.Timeout:
                    return
                key = decode_pair_key(message.partition_key(), message.properties()) if pairs else None
                yield SampleMessage(get_payload(message), get_version_number(message._message), key)  # noqa: SLF001  has no wrapper
    except pulsar.Interrupted:
        # The client takes the signal, so that Python raises nothing.
        raise KeyboardInterrupt from None
    except (pulsar.ConnectError, pulsar.Timeout) as error:
        waited = f"no response for {timeout_s - (deadline - time.monotonic()):.1f} s; {error}"
        raise SchemactlError(
            f"cannot read {topic} at {url} ({waited})",
            fix="check that --from is the address of the brokers for clients, and give it more time with --timeout",
        ) from None
    except (pulsar.PulsarException, ValueError) as error:
        raise SchemactlError(f"cannot read {topic} at {url}: {error}") from None


def _write_container(
    path: Path, samples: list[tuple[SampleMessage, Any]], chosen: NamedDefinition, info: SchemaInfo, context: Context
) -> None:
    """Write the values of messages to an Avro container file with the definition `info` of `chosen`."""
    from schemactl.codec import Codec, CodecError, Definition, Version
    from schemactl.codegen.codecs import to_codec_schema
    from schemactl.publish.avro_files import AVRO_TYPES, make_container

    topic = chosen.topic
    if info.type not in AVRO_TYPES:
        raise UsageError(
            f"{topic.name} is {info.type.name}: an Avro container file holds values of AVRO and JSON topics"
        )
    definition = info.schema.decode()
    writer = Codec([Version(0, Definition("AVRO", definition))])
    versions = [Version(version.number, to_codec_schema(version.info)) for version in topic.versions if version.info]
    reader = Codec(versions or [Version(0, to_codec_schema(info))], reader=to_codec_schema(info))
    payloads = []
    for message, value in samples:
        try:
            # Messages of a real topic come without their values, unless Git does not know their version.
            decoded = reader.decode_one(message.payload, message.version) if value is None else value
            payloads.append(writer.encode_one(decoded))
        except CodecError as error:
            context.say(f"left out: a message of version {message.version}: {error}")
    metadata = {"schemactl.topic": str(topic.name)}
    if chosen.number is not None:
        metadata["schemactl.version"] = str(chosen.number)
    data = make_container(definition, [payload for payload in payloads if payload is not None], metadata)
    write_data(path, data, context)
    context.say(f"wrote {format_count(len(payloads), 'value')} to {path}")


def _write_files(
    folder: Path, form: str, samples: list[tuple[SampleMessage, Any]], chosen: NamedDefinition, context: Context
) -> None:
    """Write the messages in the format that `check` reads."""
    name = chosen.topic.name.topic
    files = {f"{name}.jsonl": "".join(f"{message.to_line(value)}\n" for message, value in samples).encode()}
    if form == "bytes":
        files = {}
        for position, (message, _) in enumerate(samples, start=1):
            if message.payload is None or message.version is None or message.key is not None:
                raise SchemactlError(
                    "--format bytes writes a file with only the payload, and the version in its name, but this "
                    "message has no payload, no version, or a key",
                    fix="--format messages",
                )
            files[f"{name}.v{message.version}.{position}.bin"] = message.payload
    replaced_count = sum((folder / file).exists() for file in files)
    for file, data in files.items():
        write_data(folder / file, data, context)
    replacement = f", in place of {format_count(replaced_count, 'file')} of an earlier run" if replaced_count else ""
    context.say(f"wrote {format_count(len(samples), 'message')} to {folder}{replacement}")
