"""`schemactl sample`: plausible messages of a version, or some of a real topic."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, number
from schemactl.cli.reading import add_numbers_of, reading
from schemactl.cli.states import STATE_HELP, States
from schemactl.cli.time_limit import seconds
from schemactl.codegen.topics import require_codec, schema_of
from schemactl.core.errors import SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.checks.samples import SampleMessage
    from schemactl.cli.states import NamedDefinition
    from schemactl.codec import Definition, KeyValue

_FORMATS: Final = ("json", "messages", "bytes")

_EPILOG: Final = """\
formats:
  json       the values, one a line: bytes in base64, dates and times in ISO 8601, decimals as texts
  messages   one a line: {"version", "payload_b64", "key_b64", "value"}; what `check` reads in a folder `samples`
  bytes      the payload alone: with --out, a file for each

examples:
  schemactl sample orders@3 -n 5
  schemactl sample orders@work --seed 7                     as the files here have it
  schemactl sample orders -n 20 --out namespaces/samples    for `check`, in every pull request from now on
  schemactl sample orders@3 -n 1 --format bytes | schemactl decode orders --version 3
  schemactl sample orders -n 50 --from pulsar://broker.example.com:6650 --out namespaces/samples
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sample`."""
    parser.description = (
        "Make plausible messages of a version, for tests: each is written by the codec of generated packages and read back. The same "
        "seed gives the same messages. With --from, read the first messages of a real topic instead, which needs no Spark and "
        "leaves nothing there: they may be personal data, so look at them before they go into Git."
    )
    parser.epilog = _EPILOG
    parser.add_argument("topic", metavar="TOPIC[@N|@work|@REF]", help=STATE_HELP)
    add_options(parser, "-n, --count N: how many messages (default: 1)", type=number(1), default=1)
    add_options(parser, "--seed S: a number; another one gives other messages (default: 0)", type=int)
    parser.add_argument(
        "--format", choices=_FORMATS, help="see below (default: json; with --out or --from: messages)"
    )
    add_options(
        parser,
        "--from URL: take the messages of the topic at these brokers, pulsar://HOST:6650",
        dest="brokers",
    )
    add_options(
        parser,
        "--out DIR: write into this folder TOPIC.jsonl, or TOPIC.vN.1.bin, ..., in place of files there that are called so",
        "--token-env NAME: with --from: the environment variable that holds the token for the brokers",
    )
    add_options(
        parser,
        "--timeout S: with --from: stop after so many seconds (default: 30)",
        type=seconds,
        default=30.0,
    )
    add_numbers_of(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the messages are written."""
    form = args.format or ("messages" if args.out or args.brokers else "json")
    if form == "json" and (args.out or args.brokers):
        raise UsageError("values alone are no messages: --out and --from go with --format messages or bytes")
    if form == "bytes" and not args.out and args.count > 1:
        raise UsageError("payloads behind each other could not be told apart: add --out DIR, or -n 1")
    require_codec()
    chosen = States(context).definition(args.topic)
    chosen.topic.load()
    if chosen.info is None:
        raise SchemactlError(f"{chosen.topic.name} has no schema there: nothing says what its messages are")
    schema = schema_of(chosen.info)
    source = _pulled if args.brokers else _plausible
    made = list(islice(source(args, context, chosen, schema), args.count))
    if args.out:
        _write_files(Path(context.directory, args.out), form, made, chosen, context)
    elif form == "bytes":
        sys.stdout.buffer.write(b"".join(message.payload or b"" for message, _ in made))
    else:
        from schemactl.codec.json_form import json_value

        for message, value in made:
            shown = (
                json.dumps(json_value(value), ensure_ascii=False) if form == "json" else message.line(value)
            )
            print(shown)
    return 0


def _plausible(
    args: argparse.Namespace, context: Context, chosen: NamedDefinition, schema: Definition | KeyValue
) -> Iterator[tuple[SampleMessage, Any]]:
    from schemactl.codec import CodecError
    from schemactl.publish.sample_messages import plausible

    if args.token_env:
        raise UsageError("--token-env goes with --from")
    number, name = chosen.number_or_next, chosen.topic.name
    if chosen.number is None:
        context.say(f"{name}: {chosen.standing}, so with the number it would have: {number}")
    try:
        yield from plausible(schema, number, name=name.topic, seed=args.seed or 0)
    except CodecError as error:
        raise SchemactlError(f"{name}: {error}") from None


def _pulled(
    args: argparse.Namespace, context: Context, chosen: NamedDefinition, schema: Definition | KeyValue
) -> Iterator[tuple[SampleMessage, Any]]:
    """Yield messages by Git's numbers, without their values."""
    from schemactl.codec import KeyValue
    from schemactl.samples.pulling import pulled

    if args.seed is not None or chosen.state or chosen.version:
        raise UsageError("--from reads messages of all versions: name the TOPIC alone, without --seed")
    token = None
    if args.token_env:
        token = os.environ.get(args.token_env)
        if not token:
            raise UsageError(f"the environment variable {args.token_env} (--token-env) is not set")
    topic = chosen.topic
    read = reading(context, args.target)
    read.require_target([topic], context)
    read = read.verified([topic], context)
    there = read.target.names.there(topic.name) if read.target else topic.name
    pairs = isinstance(schema, KeyValue) and schema.encoding == "SEPARATED"
    numbers = {each.number: each.git.number for each in read.versions(topic) if each.git}
    context.say(
        f"messages of {there} at {args.brokers}: they may be personal data, so look at them before they go into Git"
    )
    found = 0
    for message in pulled(args.brokers, str(there), pairs=pairs, token=token, timeout_s=args.timeout):
        if message.version is not None and message.version not in numbers:
            context.say(f"left out: a message of version {message.version}, which is not approved")
            continue
        found += 1
        version = None if message.version is None else numbers[message.version]
        yield message._replace(version=version), None
    if not found:
        raise SchemactlError(
            f"{there} at {args.brokers} gave no message of an approved version within {args.timeout:g} s"
        )


def _write_files(
    folder: Path,
    form: str,
    made: list[tuple[SampleMessage, Any]],
    chosen: NamedDefinition,
    context: Context,
) -> None:
    """Write the messages as `samples.files` reads them."""
    from schemactl.core import atomic_files
    from schemactl.core.wording import counted

    name = chosen.topic.name.topic
    files = {f"{name}.jsonl": "".join(f"{message.line(value)}\n" for message, value in made).encode()}
    if form == "bytes":
        files = {}
        for at, (message, _) in enumerate(made, start=1):
            if message.payload is None or message.version is None or message.key is not None:
                raise SchemactlError(
                    "a file of bytes holds a payload alone, and its name the version: this message has no payload, no version, or "
                    "a key",
                    fix="--format messages",
                )
            files[f"{name}.v{message.version}.{at}.bin"] = message.payload
    replaced = sum((folder / file).exists() for file in files)
    for file, content in files.items():
        try:
            atomic_files.write(folder / file, content, below=context.top)
        except OSError as error:
            raise SchemactlError(f"cannot write {folder / file}: {error.strerror}") from error
    instead = f", in place of {counted(replaced, 'file')} that stood there" if replaced else ""
    context.say(f"wrote {counted(len(made), 'message')} to {folder}{instead}")
