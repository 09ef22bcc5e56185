"""`new`: write the files of a new topic or namespace."""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.init import write_new_files
from schemactl.cli.parser import add_options
from schemactl.core.errors import DeclarationError, SchemactlError, UsageError, did_you_mean
from schemactl.core.invisible_characters import (
    describe_characters,
    find_invisible_characters,
    remove_invisible_characters,
)
from schemactl.core.names import NamespaceName, TopicName, is_system_topic
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaType

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog, Namespace, Topic
    from schemactl.core.project import Project
    from schemactl.declare.files import Files, WorktreeFiles
    from schemactl.declare.new_declarations import Start


N = TypeVar("N")

_TYPES: Final = [type_.name for type_ in SchemaType if type_.value > 0]
"""The schema types that a topic can be declared with."""

_TYPES_BY_SUFFIX: Final = {
    ".avsc": "AVRO",
    ".json": "AVRO",
    ".proto": "PROTOBUF_NATIVE",
    ".binpb": "PROTOBUF_NATIVE",
    ".txt": "EXTERNAL",
}
"""The default type of a topic whose definition is a file with this suffix."""


def configure_new(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `new`."""
    parser.description = (
        "Write the files of a new topic or namespace next to the files of its namespace: a declaration, and a definition to edit. "
        "Existing files are not overwritten, and the new files pass `check`."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl new namespace shop/sales --strategy BACKWARD --owner team-sales\n"
        "  schemactl new topic shop/sales/orders\n"
        "  schemactl new topic shop/sales/carts --type KEY_VALUE --key STRING --value JSON\n"
        "  schemactl new topic shop/web/clicks --from proto/click.proto --message web.Click\n"
        "  schemactl new topic shop/sales/refunds --from refunds.json      a file for `pulsar-admin schemas upload`\n"
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, name in (("topic", "TENANT/NAMESPACE/TOPIC"), ("namespace", "TENANT/NAMESPACE")):
        summary = f"write the files of a new {kind}"
        subparser = kinds.add_parser(kind, help=summary, description=f"{summary.capitalize()}.", epilog=parser.epilog)
        omission = "; the domain may be omitted" if kind == "topic" else ""
        subparser.add_argument("name", metavar=name, help=f"its name{omission}")
        strategies = [strategy.value for strategy in CompatibilityStrategy if strategy.value != "UNDEFINED"]
        subparser.add_argument(
            "--strategy",
            choices=strategies,
            metavar="STRATEGY",
            help="its compatibility strategy (default: the strategy of the level above)",
        )
        add_options(subparser, "--owner NAME: who is responsible for it", "--description TEXT: its purpose")
        if kind == "topic":
            subparser.add_argument(
                "--type",
                choices=[*_TYPES, "NONE"],
                metavar="TYPE",
                help=f"the schema type: {', '.join(_TYPES)}; NONE: without schema (default: AVRO, or the type that --from needs)",
            )
            for part, default in (("key", "STRING"), ("value", "AVRO")):
                text = f"of a KEY_VALUE, the type of the {part} (default: {default})"
                subparser.add_argument(f"--{part}", choices=_TYPES, metavar="TYPE", help=text)
            add_options(
                subparser,
                "--from FILE: an existing definition: .avsc, .proto, .binpb or .txt, or .json as pulsar-admin uploads it; a "
                "file outside of the repository is copied",
                dest="definition_file",
            )
            add_options(
                subparser, "--message NAME: the root message in a .proto, where it has several: package.Message"
            )
            subparser.add_argument("--partitions", type=int, metavar="N", help="(default: not partitioned)")
        add_result_formats(subparser)


def run_new(args: argparse.Namespace, context: Context) -> int:
    """Write the files of a new topic or namespace."""
    from schemactl.declare import files as declare_files
    from schemactl.declare import new_declarations
    from schemactl.declare import reader as declare_catalog

    files, project, top = context.open_working_tree()
    # Problems in other files do not matter here.
    catalog = declare_catalog.read(files, project).catalog
    metadata = {key: text for key in ("owner", "description") if (text := getattr(args, key))}
    context.record(kind=args.kind, name=args.name, written=[], next=[])
    copied_files: dict[str, bytes] = {}
    if args.kind == "namespace":
        namespace = _parse_name(NamespaceName.parse, args.name)
        _require_new(catalog.namespaces.get(namespace))
        folder = new_declarations.namespace_folder(namespace, catalog, project)
        texts = new_declarations.namespace_files(namespace, folder, args.strategy or "", metadata)
        next_command = f"schemactl new topic {namespace}/NAME"
    else:
        name = _resolve_topic_name(args.name, catalog)
        stem = new_declarations.topic_stem(
            name, new_declarations.namespace_folder(name.namespace_name, catalog, project)
        )
        start, copied_files = _choose_start(args, context, top, stem)
        start = _find_references(start, stem, declare_files.ChangedFiles(copied_files, files), project)
        values: dict[str, str | int] = {} if args.partitions is None else {"partitions": args.partitions}
        values |= {"schema_compatibility_strategy": args.strategy} if args.strategy else {}
        texts = new_declarations.new_topic_files(name, stem, start, values, metadata)
        next_command = "schemactl check"
    declaration = next(iter(texts))
    if files.kind(posixpath.join(project.folder, new_declarations.EDITOR_FOLDER, "declarations.schema.json")) == "file":
        texts[declaration] = (
            new_declarations.editor_line(declaration, project.folder, "declarations") + texts[declaration]
        )
    contents = {path: text.encode() for path, text in texts.items()} | copied_files
    definition_file = args.definition_file if args.kind == "topic" else None
    _require_valid(contents, files, project, context, definition_file)
    files_by_shown_path = {os.path.relpath(Path(top, path), context.directory): data for path, data in contents.items()}
    write_new_files(files_by_shown_path, context)
    context.record(kind=args.kind, name=str(namespace if args.kind == "namespace" else name), next=[next_command])
    print("\nNext:")
    definitions = [path for path in files_by_shown_path if not path.endswith(".yaml")]
    if definitions and not definition_file:
        print(f"  edit {' and '.join(map(shlex.quote, definitions))}")
    print(f"  {next_command}")
    return 0


def _resolve_topic_name(text: str, catalog: Catalog) -> TopicName:
    """Return the full name of a new topic; `text` may omit tenant and namespace if only one declared namespace fits.

    Raises:
        UsageError: if the text is not a topic's name, or the topic is declared already.
        SchemactlError: if no file declares the namespace.
    """
    *prefix, local_name = text.split("/")
    candidates = sorted(namespace for namespace in catalog.namespaces if prefix in ([], [namespace.name]))
    if len(candidates) > 1:
        listed = ", ".join(f"{namespace}/{local_name}" for namespace in candidates[:5])
        raise UsageError(f"{text!r} may be in {len(candidates)} namespaces", fix=f"write one of {listed}")
    if len(prefix) == 1 and not candidates:
        near = did_you_mean(prefix[0], [namespace.name for namespace in catalog.namespaces])
        if near:
            raise UsageError(f"no file declares a namespace that is called {prefix[0]!r}{near}")
    if candidates:
        text = f"{candidates[0]}/{local_name}"
    name = _parse_name(TopicName.parse, text)
    if characters := find_invisible_characters(name.topic):
        raise UsageError(
            f"{text!a} contains {describe_characters(characters)}",
            fix=f"write {replace(name, topic=remove_invisible_characters(name.topic))}",
        )
    if is_system_topic(name):
        raise UsageError(f"{name} is a system topic of Pulsar, which belongs to the brokers", fix="choose another name")
    namespace = name.namespace_name
    if namespace not in catalog.namespaces:
        raise SchemactlError(
            f"no file declares the namespace {namespace}{did_you_mean(str(namespace), map(str, catalog.namespaces))}",
            fix=f"schemactl new namespace {namespace}",
        )
    same_topics = [topic for other, topic in catalog.topics.items() if other.schema_id == name.schema_id]
    _require_new(catalog.topics.get(name) or next(iter(same_topics), None))
    return name


def _parse_name(parse: Callable[[str], N], text: str) -> N:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _require_new(declared: Topic | Namespace | None) -> None:
    """Raise UsageError if a file declares the namespace, or the topic in either domain."""
    if declared:
        raise UsageError(f"{declared.name} is declared already, at {declared.source}")


def _choose_start(args: argparse.Namespace, context: Context, top: str, stem: str) -> tuple[Start, dict[str, bytes]]:
    """Return the first definition of a new topic, and the file to copy a definition from outside of the repository to.

    Raises:
        UsageError: if the options contradict each other, or the given definition cannot be read.
    """
    from schemactl.declare.new_declarations import Start
    from schemactl.formats import SPECS

    suffix = Path(args.definition_file or "").suffix
    if args.definition_file and suffix not in _TYPES_BY_SUFFIX:
        raise UsageError(f"--from {args.definition_file}: a definition's name ends with {', '.join(_TYPES_BY_SUFFIX)}")
    if suffix == ".json" and (payload_type := _read_payload_type(Path(context.directory, args.definition_file))):
        if args.key or args.value or args.message or args.type not in (None, payload_type.name):
            raise UsageError(
                f"--from {args.definition_file} is a file for pulsar-admin, which has the type {payload_type.name} itself",
                fix="leave out --type, --key, --value and --message",
            )
        start = Start(payload_type, is_payload=True)
        return _place_given_file(Path(context.directory, args.definition_file).resolve(), top, stem, start)
    type_ = args.type or ("KEY_VALUE" if args.key or args.value else _TYPES_BY_SUFFIX.get(suffix, "AVRO"))
    if (args.key or args.value) and type_ != "KEY_VALUE":
        raise UsageError(f"--key and --value require --type KEY_VALUE, and --type is {type_}")
    key_and_value = SchemaType[args.key or "STRING"], SchemaType[args.value or _TYPES_BY_SUFFIX.get(suffix, "AVRO")]
    if problem := SPECS[key_and_value[0]].unfit_half or SPECS[key_and_value[1]].unfit_half:
        raise UsageError(problem)
    if args.message and not args.definition_file:
        raise UsageError("--message names one in the file that --from names")
    start = Start(None if type_ == "NONE" else SchemaType[type_], *key_and_value)
    return _read_given_definition(args, context, top, stem, start) if args.definition_file else (start, {})


def _read_given_definition(
    args: argparse.Namespace, context: Context, top: str, stem: str, start: Start
) -> tuple[Start, dict[str, bytes]]:
    """Return `start` with the definition that --from names, and the file to copy it to if it is outside of the repository."""
    from schemactl.declare.document import PROTO_FILES
    from schemactl.declare.files import AVRO_SUFFIXES, EXTERNAL_SUFFIXES
    from schemactl.declare.new_declarations import list_message_names
    from schemactl.formats import SPECS

    path, suffix = Path(context.directory, args.definition_file).resolve(), Path(args.definition_file).suffix
    schema_type = start.value if start.type is SchemaType.KEY_VALUE else start.type or SchemaType.NONE
    form = SPECS[schema_type].declared_as
    suffixes = {"avro": AVRO_SUFFIXES, "protobuf": AVRO_SUFFIXES, "proto": PROTO_FILES, "text": EXTERNAL_SUFFIXES}
    if suffix not in suffixes.get(form, ()):
        raise UsageError(f"--from {args.definition_file}: {schema_type.name} is not defined by a file of that kind")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--from {args.definition_file}: {error.strerror}") from error
    message = args.message or ""
    if form == "proto" and not message:
        message_names = list_message_names(data.decode(errors="replace")) if suffix == ".proto" else []
        if len(message_names) != 1:
            listed = f": {', '.join(message_names[:10])}" if message_names else ""
            raise UsageError(f"--from {args.definition_file}: name its root message with --message{listed}")
        [message] = message_names
    return _place_given_file(path, top, stem, replace(start, message=message))


def _place_given_file(path: Path, top: str, stem: str, start: Start) -> tuple[Start, dict[str, bytes]]:
    """Return `start` with the path of the given file, and the file to copy it to if it is outside of the repository."""
    folder, base = posixpath.split(stem)
    if path.is_relative_to(top):
        return replace(start, existing_path=posixpath.relpath(path.relative_to(top).as_posix(), folder or ".")), {}
    is_half = start.type is SchemaType.KEY_VALUE and not start.is_payload
    name = f"{base}{'.value' * is_half}{path.suffix}"
    return replace(start, existing_path=name), {posixpath.join(folder, name): path.read_bytes()}


def _read_payload_type(path: Path) -> SchemaType | None:
    """Return the type in a file for `pulsar-admin schemas upload`, or None if the file is another one or cannot be read.

    Raises:
        DeclarationError: if it is meant as one, and has problems.
    """
    from schemactl.declare.payload import is_payload, read_payload

    try:
        data = path.read_bytes()
        is_meant = is_payload(json.loads(data))
    except (OSError, ValueError, RecursionError):
        return None
    return read_payload(path.name, data).type if is_meant else None


def _find_references(start: Start, stem: str, files: Files, project: Project) -> Start:
    """Return `start` with the files whose types the given definition uses; a definition with problems is left to the check."""
    from schemactl.declare.definition import Definitions, Include

    folder = posixpath.dirname(stem)
    if not start.existing_path or start.existing_path.endswith(".binpb") or start.is_payload:
        return start
    try:
        path = posixpath.normpath(posixpath.join(folder, start.existing_path))
        references = Definitions(files, include=Include.of(project)).find_references(path)
    except DeclarationError:
        return start
    return replace(start, references=tuple(posixpath.relpath(reference, folder or ".") for reference in references))


def _require_valid(
    contents: Mapping[str, bytes], files: WorktreeFiles, project: Project, context: Context, definition_file: str | None
) -> None:
    """Raise DeclarationError if `check` would reject the new files, because the definition of --from may have problems."""
    from schemactl.declare import document
    from schemactl.declare import files as declare_files
    from schemactl.declare import reader as declare_catalog

    path, data = next(iter(contents.items()))
    documents = [document.read_documents(path, data)]
    problems = [*declare_catalog.build(documents, declare_files.ChangedFiles(contents, files), project).problems]
    if not problems:
        return
    # An import that the repository lacks may be in a folder around the given file: the fix is to copy this folder.
    folders = Path(context.directory, definition_file or "").resolve().parents
    for position, problem in enumerate(problems):
        if missing := re.match(r'Import "([^"]+)" was not found', problem.message):
            path = missing[1]
            for folder in folders:
                if (folder / path).is_file():
                    fix = f"copy {(folder / path).parent} to {posixpath.join('proto', posixpath.dirname(path))} in the repository"
                    problems[position] = replace(problem, fix=fix)
                    break
    context.say("nothing was written, because `check` would reject it:")
    raise DeclarationError(problems)
