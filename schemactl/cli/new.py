"""`schemactl new`: the files of a new topic or namespace."""

from __future__ import annotations

import argparse
import os
import posixpath
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schemactl.cli.context import Context
from schemactl.cli.init import write_new
from schemactl.cli.parser import add_options
from schemactl.core.errors import DeclarationError, SchemactlError, UsageError, did_you_mean
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaType

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog, Namespace, Topic
    from schemactl.core.project import Project
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.writer import Start

N = TypeVar("N")

_TYPES = [type_.name for type_ in SchemaType if type_.value > 0]
"""Those that a topic can be declared with."""
_SUFFIXES = {".avsc": "AVRO", ".json": "AVRO", ".proto": "PROTOBUF_NATIVE", ".binpb": "PROTOBUF_NATIVE"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `new`."""
    parser.description = (
        "Write the files of a new topic or namespace, where those of its namespace are: a declaration, and a definition to go on from. "
        "Nothing that exists is overwritten, and what is written passes `check`."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl new namespace shop/sales --strategy BACKWARD --owner team-sales\n"
        "  schemactl new topic shop/sales/orders\n"
        "  schemactl new topic shop/sales/carts --type KEY_VALUE --key STRING --value JSON\n"
        "  schemactl new topic shop/web/clicks --from proto/click.proto --message web.Click\n"
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, name in (("topic", "TENANT/NAMESPACE/TOPIC"), ("namespace", "TENANT/NAMESPACE")):
        summary = f"write the files of a new {kind}"
        added = kinds.add_parser(
            kind, help=summary, description=f"{summary.capitalize()}.", epilog=parser.epilog
        )
        added.add_argument(
            "name", metavar=name, help="its name" + "; the domain may be omitted" * (kind == "topic")
        )
        strategies = [each.value for each in CompatibilityStrategy if each.value != "UNDEFINED"]
        text = "its compatibility strategy (default: what the level above says)"
        added.add_argument("--strategy", choices=strategies, metavar="STRATEGY", help=text)
        add_options(added, "--owner NAME: who answers for it", "--description TEXT: what it is for")
        if kind == "topic":
            _add_schema(added)


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type",
        choices=[*_TYPES, "NONE"],
        metavar="TYPE",
        help=f"the schema type: {', '.join(_TYPES)}; NONE: without schema (default: AVRO, or what --from needs)",
    )
    for half, default in (("key", "STRING"), ("value", "AVRO")):
        text = f"of a KEY_VALUE, the type of the {half} (default: {default})"
        parser.add_argument(f"--{half}", choices=_TYPES, metavar="TYPE", help=text)
    add_options(
        parser,
        "--from FILE: a definition that there is: .avsc, .proto or .binpb; one outside of the repository is copied",
        dest="given",
    )
    add_options(parser, "--message NAME: the root message in a .proto, where it has several: package.Message")
    parser.add_argument("--partitions", type=int, metavar="N", help="(default: not partitioned)")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the files are written."""
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project
    from schemactl.declare import reader as declare_catalog
    from schemactl.declare import writer

    project, top = declare_project.load_project(context.directory, context.config)
    files = declare_files.WorktreeFiles(top, folders=project.roots)
    # What is wrong elsewhere stops nobody here.
    catalog = declare_catalog.read(files, project).catalog
    said = {key: text for key in ("owner", "description") if (text := getattr(args, key))}
    copied: dict[str, bytes] = {}
    if args.kind == "namespace":
        namespace = _parsed(NamespaceName.parse, args.name)
        _require_new(namespace, catalog.namespaces)
        folder = writer.namespace_folder(namespace, catalog, project)
        texts = writer.namespace_files(namespace, folder, args.strategy or "", said)
        following = f"schemactl new topic {namespace}/NAME"
    else:
        name = _topic_name(args.name, catalog)
        stem = writer.topic_stem(name, writer.namespace_folder(name.namespace_name, catalog, project))
        start, copied = _start(args, context, top, stem)
        values: dict[str, str | int] = {} if args.partitions is None else {"partitions": args.partitions}
        values |= {"schema_compatibility_strategy": args.strategy} if args.strategy else {}
        texts = writer.new_topic_files(name, stem, start, values, said)
        following = "schemactl check"
    declaration = next(iter(texts))
    if files.kind(posixpath.join(project.folder, writer.EDITOR_FOLDER, "declarations.schema.json")) == "file":
        texts[declaration] = (
            writer.editor_line(declaration, project.folder, "declarations") + texts[declaration]
        )
    contents = {path: text.encode() for path, text in texts.items()} | copied
    _expect_sound(contents, files, project, context)
    shown = {os.path.relpath(Path(top, path), context.directory): data for path, data in contents.items()}
    write_new(shown, context)
    print("\nNext:")
    definitions = [path for path in shown if not path.endswith(".yaml")]
    if definitions and not getattr(args, "given", None):
        print(f"  edit {' and '.join(map(shlex.quote, definitions))}")
    print(f"  {following}")
    return 0


def _topic_name(text: str, catalog: Catalog) -> TopicName:
    """Return the name of a topic in a declared namespace, of which `text` may leave out what can only be one.

    Raises:
        UsageError: it is none, or that of a topic that is declared.
        SchemactlError: no file declares its namespace.
    """
    *space, local = text.split("/")
    spaces = sorted(each for each in catalog.namespaces if space in ([], [each.name]))
    if len(spaces) > 1:
        listed = ", ".join(f"{each}/{local}" for each in spaces[:5])
        raise UsageError(f"{text!r} may be in {len(spaces)} namespaces", fix=f"write one of {listed}")
    if (
        len(space) == 1
        and not spaces
        and (near := did_you_mean(space[0], [each.name for each in catalog.namespaces]))
    ):
        raise UsageError(f"no file declares a namespace that is called {space[0]!r}{near}")
    if spaces:
        text = f"{spaces[0]}/{local}"
    name = _parsed(TopicName.parse, text)
    found = name.namespace_name
    if found not in catalog.namespaces:
        raise SchemactlError(
            f"no file declares the namespace {found}{did_you_mean(str(found), map(str, catalog.namespaces))}",
            fix=f"schemactl new namespace {found}",
        )
    _require_new(
        name, {each: topic for each, topic in catalog.topics.items() if each.schema_id == name.schema_id}
    )
    return name


def _parsed(parse: Callable[[str], N], text: str) -> N:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _require_new(name: TopicName | NamespaceName, known: Mapping[Any, Topic | Namespace]) -> None:
    """Raise UsageError where something in `known` has the name, or is a topic of it in the other domain."""
    held = known.get(name) or (next(iter(known.values()), None) if isinstance(name, TopicName) else None)
    if held:
        raise UsageError(f"{held.name} is declared already, at {held.source}")


def _start(args: argparse.Namespace, context: Context, top: str, stem: str) -> tuple[Start, dict[str, bytes]]:
    """Return what the definition begins with, and the file that it is copied to, if it is.

    Raises:
        UsageError: the options do not go together, or the given definition is no file.
    """
    from schemactl.declare.writer import Start
    from schemactl.formats import SPECS

    suffix = Path(args.given or "").suffix
    if args.given and suffix not in _SUFFIXES:
        raise UsageError(f"--from {args.given}: a definition's name ends with {', '.join(_SUFFIXES)}")
    type_ = args.type or ("KEY_VALUE" if args.key or args.value else _SUFFIXES.get(suffix, "AVRO"))
    if (args.key or args.value) and type_ != "KEY_VALUE":
        raise UsageError(f"--key and --value are of a KEY_VALUE, and --type says {type_}")
    halves = SchemaType[args.key or "STRING"], SchemaType[args.value or _SUFFIXES.get(suffix, "AVRO")]
    if why := SPECS[halves[0]].unfit_half or SPECS[halves[1]].unfit_half:
        raise UsageError(why)
    if args.message and not args.given:
        raise UsageError("--message names one in the file that --from names")
    start = Start(None if type_ == "NONE" else SchemaType[type_], *halves)
    return _given(args, context, top, stem, start) if args.given else (start, {})


def _given(
    args: argparse.Namespace, context: Context, top: str, stem: str, start: Start
) -> tuple[Start, dict[str, bytes]]:
    """Return `start` with the definition that --from names, and the file that it is copied to, if it is."""
    from schemactl.declare.writer import messages
    from schemactl.formats import SPECS

    path, suffix = Path(context.directory, args.given).resolve(), Path(args.given).suffix
    defined = start.value if start.type is SchemaType.KEY_VALUE else start.type or SchemaType.NONE
    form = SPECS[defined].declared_as
    if (form in ("avro", "protobuf")) != (_SUFFIXES[suffix] == "AVRO") or form == "plain":
        raise UsageError(f"--from {args.given}: {defined.name} is not defined by a file of that kind")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--from {args.given}: {error.strerror}") from error
    message = args.message or ""
    if form == "proto" and not message:
        found = messages(data.decode(errors="replace")) if suffix == ".proto" else []
        if len(found) != 1:
            listed = f": {', '.join(found[:10])}" if found else ""
            raise UsageError(f"--from {args.given}: name its root message with --message{listed}")
        [message] = found
    folder, base = posixpath.split(stem)
    if path.is_relative_to(top):
        given = posixpath.relpath(path.relative_to(top).as_posix(), folder or ".")
        return replace(start, given=given, message=message), {}
    given = f"{base}{'.value' * (start.type is SchemaType.KEY_VALUE)}{suffix}"
    return replace(start, given=given, message=message), {posixpath.join(folder, given): data}


def _expect_sound(
    contents: Mapping[str, bytes], files: WorktreeFiles, project: Project, context: Context
) -> None:
    """Raise DeclarationError where `check` would have something to say of the new files.

    A given definition may be wrong, or need files that the declaration has to refer to.
    """
    from schemactl.declare import document
    from schemactl.declare import files as declare_files
    from schemactl.declare import reader as declare_catalog

    path, data = next(iter(contents.items()))
    documents = [document.read_documents(path, data)]
    problems = declare_catalog.build(documents, declare_files.ChangedFiles(contents, files), project).problems
    if problems:
        context.say("nothing was written, for `check` would reject it:")
        raise DeclarationError(problems)
