"""`extract`: derive a definition from a Python or Java class."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.diff import Side, render_differences
from schemactl.cli.parser import add_options
from schemactl.cli.schema_input import read_file, render_for_client
from schemactl.cli.show import print_text
from schemactl.cli.states import States
from schemactl.cli.topic_selection import PART_HELP, resolve_output_file
from schemactl.core import atomic_files
from schemactl.core.catalog import Topic
from schemactl.core.errors import ExitCode, InvalidSchema, SchemactlError, UsageError
from schemactl.core.json_values import json_text
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Release, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.classes.extraction import Role


CLASS_HELP: Final = "the class: shop.models:Order, or shop.models:Order.Line for one inside another"

_TYPES: Final = ("AVRO", "JSON", "PROTOBUF_NATIVE")


def configure_extract(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `extract`."""
    parser.description = (
        "Print the definition of a Python class: a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or "
        "the class of a protobuf message. For the last two, Pulsar's Python client registers the same definition. With --jar and "
        "--class: the definition that Pulsar's Java client registers for a Java class.\n\n"
        "MODULE is imported as `python -m` would, from the working folder and from packages that are installed with schemactl: "
        "its code runs in this process. Only this command and verify-client run code; nothing that reads declarations does."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl extract shop.models:Order\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc          write it next to the declaration\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc --check  are the two one version? (exit 100 if not)\n"
        "  schemactl extract shop.models:Order --topic orders --check                the same, with the declaration in the files here\n"
        "  schemactl extract click_pb2:Click --out click.proto\n"
        "  schemactl extract --jar app.jar --jar 'lib/*' --class com.shop.Order --topic orders --check\n"
    )
    parser.add_argument("class_", metavar="MODULE:CLASS", nargs="?", help=CLASS_HELP)
    add_options(
        parser,
        "--jar PATH...: with --class: a jar, a folder of classes or 'lib/*', with Pulsar's client among them, which runs in a JVM; may be "
        "repeated",
    )
    parser.add_argument(
        "--class", dest="java_class", metavar="NAME", help="with --jar: the Java class, such as com.shop.Order"
    )
    add_class_options(parser, "no; of a Java class, yes")
    add_options(
        parser,
        "--out FILE: write it to this file: .avsc; of a protobuf message .proto, .binpb, or .json as pulsar-admin takes it",
        "--force: write FILE even if it has other content",
        "--check: write nothing; exit 100 unless FILE, or the declared schema of TOPIC, is the same version",
        f"--topic TOPIC: with --check (of a KEY_VALUE topic, its value): {PART_HELP}",
    )


def add_class_options(parser: argparse.ArgumentParser, default: str = "no") -> None:
    """Add the options of the conversion from a class to a definition."""
    parser.add_argument("--type", choices=_TYPES, help="(default: AVRO; of a protobuf message PROTOBUF_NATIVE)")
    parser.add_argument(
        "--always-allow-null",
        action=argparse.BooleanOptionalAction,
        default=None,
        help=f"make fields of object types nullable with default null, as Java's SchemaDefinition does by default (default: {default})",
    )
    add_options(
        parser,
        "--jsr310: write datetime and time in milliseconds, as Java's java.time classes with "
        "withJSR310ConversionEnabled; prints the property to declare",
    )


def run_extract(args: argparse.Namespace, context: Context) -> int:
    """Print, write or compare the definition; return 100 if it is another version than --check expects, else 0."""
    from schemactl.declare.project import load_project

    if args.check and (args.out is None) == (args.topic is None):
        raise UsageError("--check needs either --out FILE or --topic TOPIC")
    if args.topic and not args.check:
        raise UsageError("--topic requires --check")
    if args.force and (args.check or not args.out):
        raise UsageError("--force requires --out, without --check")
    if bool(args.jar) != bool(args.java_class) or bool(args.java_class) == bool(args.class_):
        raise UsageError(
            "name one class",
            fix="schemactl extract MODULE:CLASS, or for Java: schemactl extract --jar app.jar --class com.shop.Order",
        )
    args.class_ = args.class_ or args.java_class
    declared = _read_declared(args.topic, context) if args.topic else None
    if declared:
        follow_type(args, declared[1])
    folder, release = context.directory, Project().release
    with suppress(SchemactlError):
        # Outside of a project, the default release counts.
        release = load_project(folder, context.config)[0].release
    expected: list[SchemaInfo] = []
    if declared:
        expected = [declared[1]]
    elif args.out and args.out.lower().endswith(".avsc") and Path(context.directory, args.out).is_file():
        with suppress(SchemactlError):
            expected = [read_file(args.out, context, type_=SchemaType[args.type or "AVRO"])]
    info = extract_schema(args, folder, release, expected=expected, context=context)
    if info.type.name == "JSON" and not args.java_class:
        from schemactl.classes.extraction import find_json_differences, load_class

        for difference in find_json_differences(load_class(args.class_, folder)):
            context.note(f"{difference.text} Fix: {difference.fix}.")
    if args.jsr310 and info.type.name == "AVRO":
        from schemactl.formats.avro.logical_types import JSR310_PROPERTY

        # Java's producers register this property with the definition.
        if declared is None or declared[1].properties.get(JSR310_PROPERTY) != "true":
            where = "its schema" if declared is None else f"the schema of {declared[0]}"
            context.say(
                f'declare it with {where}, because it tells Java\'s consumers how to read times: properties: {{{JSR310_PROPERTY}: "true"}}'
            )
    if args.check:
        return _check_version(args, context, info, declared)
    if args.out:
        return _write_definition(args, context, info)
    from schemactl.formats import spec

    print_text(spec(info).to_text(info) or "")
    return 0


def extract_schema(
    args: argparse.Namespace,
    folder: str,
    release: Release,
    role: Role | None = None,
    *,
    expected: Sequence[SchemaInfo] = (),
    context: Context | None = None,
) -> SchemaInfo:
    """Return the schema of the class that the command line names.

    Its module is imported from `folder`, or from an installed package. For `role` see `schemactl.classes.extraction.extract`. If the
    definition in the spelling of the class is one of the `expected`, it stays so, although Go's client registers another one.
    """
    from schemactl.classes.extraction import JavaOptions, extract, load_class
    from schemactl.comparison.changes import content_identity

    if getattr(args, "java_class", None):
        from schemactl.classes.java_classes import extract_java_class

        # A class path is relative to the folder that is worked in.
        jars = [str(Path(folder, jar)) for jar in args.jar]
        for option, path in zip(args.jar, jars, strict=True):
            if not (Path(path).parent.is_dir() if Path(path).name == "*" else Path(path).exists()):
                raise UsageError(f"--jar {option}: no such file")
        always_allow_null = args.always_allow_null is not False
        java_type = SchemaType[args.type or "AVRO"]
        return extract_java_class(
            args.java_class, jars, java_type, always_allow_null=always_allow_null, jsr310=args.jsr310
        )
    class_ = load_class(args.class_, folder)
    java = JavaOptions(always_allow_null=bool(args.always_allow_null), jsr310=args.jsr310)
    type_ = SchemaType[args.type] if args.type else None
    if expected:
        info = extract(class_, type_, java, release=release, role=role, is_portable=False)
        if any(content_identity(info) == content_identity(schema) for schema in expected):
            return info
    on_note = context.note if context else None
    return extract(class_, type_, java, release=release, role=role, on_note=on_note)


def follow_type(args: argparse.Namespace, topic_schema: SchemaInfo) -> None:
    """Set --type to JSON if the topic has a JSON schema and the command line does not name a type."""
    if args.type is None and topic_schema.type.name == "JSON":
        args.type = "JSON"


def _read_declared(topic: str, context: Context) -> tuple[str, SchemaInfo]:
    """Return the declared schema of a topic, or the value's schema of a KEY_VALUE topic, with a name for it."""
    from schemactl.formats import get_pair

    states = States(context, [topic])
    named = states.find_in_working_tree(topic)
    if (declared_topic := states.work.catalog.topics.get(named.topic.name)) and not topic.endswith(
        f"#{named.topic.kind}"
    ):
        require_kind(topic, [kind.key for kind in declared_topic.kinds])
    if named.info is None:
        raise SchemactlError(f"{named.topic.name} is declared without a schema")
    name, pair = f"{named.topic.name.topic}@work", get_pair(named.info)
    return (f"the value of {name}", pair.value) if pair else (name, named.info)


def _check_version(
    args: argparse.Namespace, context: Context, info: SchemaInfo, declared: tuple[str, SchemaInfo] | None
) -> int:
    from schemactl.comparison.changes import content_identity, has_same_text
    from schemactl.formats.native_definitions import find_rendering

    name, expected = declared or (args.out, read_file(args.out, context, type_=info.type, message=_message_name(info)))
    if content_identity(expected) == content_identity(info):
        if declared is None and args.out.endswith(".proto"):
            expected = render_for_client(expected, "python")
        if info.type is SchemaType.PROTOBUF_NATIVE and expected.schema != info.schema:
            rendering = find_rendering(expected)
            form = (
                f"as {rendering.capitalize()}'s client sends it"
                if rendering
                else "in a form that no Pulsar client sends"
            )
            print(
                f"{name} and {args.class_} have the same content, but are two versions to a broker, which compares bytes: {name} is registered "
                f"{form}, and {args.class_} is sent as Python's client does.\n"
                "  Fix: declare `protobuf: {rendering: python}` if its producers use Python, or send the registered text: "
                "`schemactl docs protobuf-forms`"
            )
            return ExitCode.NEGATIVE
        docs = "" if has_same_text(expected, info) else "; docs, aliases or properties differ, which makes no version"
        print(f"{name} and {args.class_} are one version{docs}.")
        return 0
    topic = Topic(TopicName("", "", name))
    old = Side(topic, "", None, name, name, expected)
    new = Side(topic, "", None, args.class_, args.class_, info)
    print("\n".join(render_differences(old, new, color=context.color)))
    print(f"\n{name} and {args.class_} are two versions.")
    return ExitCode.NEGATIVE


def _write_definition(args: argparse.Namespace, context: Context, info: SchemaInfo) -> int:
    from schemactl.comparison.changes import has_same_text

    path = resolve_output_file(args.out, context, name=f"{args.class_.rpartition(':')[2]}.avsc")
    from schemactl.formats.avro.logical_types import JSR310_PROPERTY

    if args.jsr310 and info.type.name == "AVRO" and path.suffix.lower() == ".json":
        info = replace(info, properties={JSR310_PROPERTY: "true"})
    data = _render_definition(info, path)
    old_data = atomic_files.read(path, below=context.top)
    if old_data is not None and not args.force:
        old_info = None
        with suppress(SchemactlError):
            old_info = read_file(str(path.absolute()), context, type_=info.type, message=_message_name(info))
        if old_info is None or _full_name(old_info) != _full_name(info):
            raise SchemactlError(
                f"{path} does not have a definition of {_full_name(info)}; it was not changed",
                fix="name another file, or overwrite it with --force",
            )
        if old_data == data or has_same_text(old_info, info):
            print(f"{path}: unchanged")
            return 0
    atomic_files.write(path, data, below=context.top)
    print(f"{path}: {'created' if old_data is None else 'updated'}")
    return 0


def _render_definition(info: SchemaInfo, path: Path) -> bytes:
    """Return the content of the file, in the format that its suffix names."""
    from schemactl.formats import protobuf, spec

    suffix = path.suffix.lower()
    if spec(info).language == "avro" and suffix == ".avsc":
        from schemactl.declare.json_formatter import format_json

        return format_json(info.schema.decode()).encode()
    if spec(info).language == "protobuf" and suffix == ".binpb":
        data: bytes = protobuf.load("definition").make_descriptor_set(info.schema)[0]
        return data
    if spec(info).language == "protobuf" and suffix == ".proto":
        root = protobuf.load("definition").parse(info.schema).root
        imports = [path for path in root.file.proto.dependency if not path.startswith("google/protobuf/")]
        if imports:
            raise SchemactlError(
                f"{root.full_name} is declared over several files: it imports {', '.join(imports)}",
                fix=f"write a descriptor set, which contains all files: --out {quote(str(path.with_suffix('.binpb')))}",
            )
        text: str = protobuf.load("definition").proto_text(root.file.proto)
        return text.encode()
    if suffix == ".json":
        payload = {"type": info.type.name, "schema": info.schema.decode(), "properties": dict(info.properties)}
        return (json_text(payload) + "\n").encode()
    suffixes = ".avsc" if spec(info).language == "avro" else ".proto, .binpb"
    raise UsageError(
        f"--out {path}: a definition of type {info.type.name} goes into a file that ends in {suffixes} or .json"
    )


def _message_name(info: SchemaInfo) -> str | None:
    return _full_name(info) if info.type.name == "PROTOBUF_NATIVE" else None


def _full_name(info: SchemaInfo) -> str:
    """Return the full name of the record or message, or "" for an invalid definition."""
    from schemactl.formats import protobuf, spec

    try:
        if spec(info).language == "protobuf":
            name: str = protobuf.load("definition").parse(info.schema).root.full_name
            return name
        from schemactl.formats.avro.parser import parse

        return parse(info.schema, Release.R4_0).full_name
    except InvalidSchema:
        return ""


def require_kind(text: str, keys: Sequence[str]) -> None:
    """Raise UsageError if `text` names a topic with kinds of events of these keys as a whole: a class is of one kind."""
    if keys:
        names = " or ".join(quote(f"{text}#{key}") for key in keys)
        raise UsageError(
            f"{text}: the topic has several kinds of events, and a class describes only one kind", fix=f"write {names}"
        )
