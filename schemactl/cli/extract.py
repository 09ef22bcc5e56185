"""`schemactl extract`: the definition that a Python class stands for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.schema_file import read_file
from schemactl.cli.selection import TOPIC_HELP, output_file
from schemactl.core import atomic_files
from schemactl.core.errors import NEGATIVE, InvalidSchema, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.core.schema import Release, SchemaInfo
    from schemactl.typed.records import Role

CLASS_HELP: Final = "the class: shop.models:Order, or shop.models:Order.Line for one inside another"
_TYPES: Final = ("AVRO", "JSON", "PROTOBUF_NATIVE")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `extract`."""
    parser.description = (
        "Print the definition that a Python class stands for: a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or "
        "the class of a protobuf message. For the last two, that is what Pulsar's Python client registers.\n\n"
        "MODULE is imported as `python -m` would, from the folder that is worked in and from what is installed beside schemactl: "
        "its code runs in this process. Only this command and verify-client run code; nothing that reads declarations does."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl extract shop.models:Order\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc          write it beside the declaration\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc --check  are the two one version? (exit 100 if not)\n"
        "  schemactl extract shop.models:Order --topic orders --check                the same, with what the files here declare\n"
        "  schemactl extract click_pb2:Click --out click.proto\n"
    )
    parser.add_argument("class_", metavar="MODULE:CLASS", help=CLASS_HELP)
    add_class_options(parser)
    add_options(
        parser,
        "--out FILE: write it to this file: .avsc; of a protobuf message .proto, .binpb, or .json as pulsar-admin takes it",
        "--force: write FILE even if something else is there",
        "--check: write nothing; exit 100 unless FILE, or what TOPIC is declared with, is the same version",
        f"--topic TOPIC: with --check (of a KEY_VALUE topic, its value): {TOPIC_HELP}",
    )


def add_class_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a class becomes a definition."""
    parser.add_argument(
        "--type", choices=_TYPES, help="(default: AVRO; of a protobuf message PROTOBUF_NATIVE)"
    )
    parser.add_argument(
        "--always-allow-null",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="as Java's SchemaDefinition does by default: what is an object in Java may be null, and is so by default (default: no)",
    )
    add_options(
        parser,
        "--jsr310: as Java's classes of java.time with withJSR310ConversionEnabled: datetime and time in milliseconds",
    )


def class_schema(
    args: argparse.Namespace,
    folder: str,
    release: Release,
    role: Role | None = None,
) -> SchemaInfo:
    """Return the schema of the class that the command line names, whose module is looked for in `folder` first.

    For `role` see `extract`.
    """
    from schemactl.classes.extraction import JavaOptions, extract, load_class
    from schemactl.core.schema import SchemaType

    found = load_class(args.class_, folder)
    java = JavaOptions(always_allow_null=args.always_allow_null, jsr310=args.jsr310)
    return extract(found, SchemaType[args.type] if args.type else None, java, release=release, role=role)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: printed, written, or the same version; 100: `--check` found another one."""
    if args.check and (args.out is None) == (args.topic is None):
        raise UsageError("--check compares with one thing: give --out FILE or --topic TOPIC")
    if args.topic and not args.check:
        raise UsageError("--topic belongs to --check")
    if args.force and (args.check or not args.out):
        raise UsageError("--force belongs to --out, without --check")
    declared = _declared(args.topic, context) if args.topic else None
    if declared:
        take_type(args, declared[1])
    info = class_schema(args, context.directory, _release(context))
    if args.check:
        return _check(args, context, info, declared)
    if args.out:
        return _write(args, context, info)
    from schemactl.cli.show import print_text
    from schemactl.formats import spec

    print_text(spec(info).text(info) or "")
    return 0


def _release(context: Context) -> Release:
    """Return the release of the project that the folder belongs to, or the default of one."""
    from schemactl.core.project import Project
    from schemactl.declare import project

    try:
        return project.load_project(context.directory, context.config)[0].release
    except SchemactlError:
        return Project().release


def take_type(args: argparse.Namespace, there: SchemaInfo) -> None:
    """Make a JSON schema of the class where the topic has one, and the command line names no type."""
    if args.type is None and there.type.name == "JSON":
        args.type = "JSON"


def _declared(topic: str, context: Context) -> tuple[str, SchemaInfo]:
    """Return what a topic is declared with, and what it is called; of a pair, the value."""
    from schemactl.cli.states import States
    from schemactl.formats import pair_of

    named = States(context).at_work(topic)
    if named.info is None:
        raise SchemactlError(f"{named.topic.name} is declared without a schema")
    name, pair = f"{named.topic.name.topic}@work", pair_of(named.info)
    return (f"the value of {name}", pair.value) if pair else (name, named.info)


def _check(
    args: argparse.Namespace, context: Context, info: SchemaInfo, declared: tuple[str, SchemaInfo] | None
) -> int:
    from schemactl.cli.diff import Side, differences
    from schemactl.comparison.changes import content_identity, same_text
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName

    what, there = declared or (
        args.out,
        read_file(args.out, context, type_=info.type, message=_message(info)),
    )
    if content_identity(there) == content_identity(info):
        docs = (
            "" if same_text(there, info) else "; docs, aliases or properties differ, which makes no version"
        )
        print(f"{what} and {args.class_} are one version{docs}.")
        return 0
    topic = Topic(TopicName("", "", what))
    old = Side(topic, "", None, what, what, there)
    new = Side(topic, "", None, args.class_, args.class_, info)
    print("\n".join(differences(old, new, color=context.color)))
    print(f"\n{what} and {args.class_} are two versions.")
    return NEGATIVE


def _write(args: argparse.Namespace, context: Context, info: SchemaInfo) -> int:
    from schemactl.comparison.changes import same_text

    path = output_file(args.out, context, name=f"{args.class_.rpartition(':')[2]}.avsc")
    data = _content(info, path)
    held = atomic_files.read(path, below=context.top)
    if held is not None and not args.force:
        there = _definition(path, context, info)
        if there is None or _title(there) != _title(info):
            raise SchemactlError(
                f"{path} does not hold a definition of {_title(info)}, and is left alone",
                fix="name another file, or overwrite it with --force",
            )
        if held == data or same_text(there, info):
            print(f"{path}: unchanged")
            return 0
    atomic_files.write(path, data, below=context.top)
    print(f"{path}: {'created' if held is None else 'updated'}")
    return 0


def _content(info: SchemaInfo, path: Path) -> bytes:
    """Return what the file of that name holds."""
    from schemactl.formats import protobuf, spec

    suffix = path.suffix.lower()
    if spec(info).language == "avro" and suffix == ".avsc":
        from schemactl.declare.formatter import laid_out_json

        return laid_out_json(info.schema.decode()).encode()
    if spec(info).language == "protobuf" and suffix == ".binpb":
        data: bytes = protobuf.load("definition").descriptor_set(info.schema)[0]
        return data
    if spec(info).language == "protobuf" and suffix == ".proto":
        root = protobuf.load("definition").parse(info.schema).root
        imports = [each for each in root.file.proto.dependency if not each.startswith("google/protobuf/")]
        if imports:
            raise SchemactlError(
                f"{root.full_name} is declared over several files: it imports {', '.join(imports)}",
                fix=f"write the descriptor set, which has all of them: --out {path.with_suffix('.binpb')}",
            )
        text: str = protobuf.load("definition").proto_text(root.file.proto)
        return text.encode()
    if suffix == ".json":
        from schemactl.core.json_values import json_text

        payload = {
            "type": info.type.name,
            "schema": info.schema.decode(),
            "properties": dict(info.properties),
        }
        return (json_text(payload) + "\n").encode()
    wanted = ".avsc" if spec(info).language == "avro" else ".proto, .binpb"
    raise UsageError(
        f"--out {path}: a definition of type {info.type.name} goes into a file that ends in {wanted} or .json"
    )


def _definition(path: Path, context: Context, info: SchemaInfo) -> SchemaInfo | None:
    """Return the definition in a file; None: it holds none."""
    try:
        return read_file(str(path.absolute()), context, type_=info.type, message=_message(info))
    except SchemactlError:
        return None


def _message(info: SchemaInfo) -> str | None:
    return _title(info) if info.type.name == "PROTOBUF_NATIVE" else None


def _title(info: SchemaInfo) -> str:
    """Return the full name of the record or message."""
    from schemactl.formats import protobuf, spec

    try:
        if spec(info).language == "protobuf":
            name: str = protobuf.load("definition").parse(info.schema).root.full_name
            return name
        from schemactl.core.schema import Release
        from schemactl.formats.avro.parser import parse

        return parse(info.schema, Release.R4_0).full_name
    except InvalidSchema:
        return ""
