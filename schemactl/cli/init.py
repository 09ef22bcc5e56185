"""`init`, `demo` and `new`: start a project, run the example, and add the files of a topic or namespace."""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core import atomic_files
from schemactl.core.errors import DeclarationError, SchemactlError, UsageError, did_you_mean
from schemactl.core.json_values import format_json
from schemactl.core.names import (
    NamespaceName,
    TopicName,
    describe_characters,
    find_invisible_characters,
    is_system_topic,
    remove_invisible_characters,
)
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import Generate
from schemactl.core.schema import SchemaType
from schemactl.core.terminal import render_file_diff

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog, Namespace, Topic
    from schemactl.core.project import Project
    from schemactl.declare.files import Files, WorktreeFiles
    from schemactl.declare.writer import Start


N = TypeVar("N")

_PROJECT: Final = """\
version: 1
roots: [namespaces]                      # folders that hold declarations
pulsar: "4.0"                            # whose answers to predict: 4.0, 4.2 or 5.0

{defaults}
require_declared_namespaces: true        # a typo in a topic's name makes no namespace

targets:
  local: {{registry: "sqlite:.schemactl/registry.db"}}

{generate}"""

_DEFAULTS: Final = """\
defaults:                                # what your brokers are configured with
  schema_compatibility_strategy: FULL
  is_allow_auto_update_schema: true
  schema_validation_enforced: false
"""

_GENERATE: Final = """\
generate:
  package: {package}
  out: generated
  spark: "{spark}"
"""

_NAMESPACE: Final = """\
namespace: public/default
schema_compatibility_strategy: BACKWARD
is_allow_auto_update_schema: false       # no producer registers a version: `apply` does
"""

_TOPIC: Final = """\
topic: persistent://public/default/greetings
schema:
  type: AVRO
  definition: greetings.avsc
"""

_DEFINITION: Final = """\
{
  "type": "record",
  "name": "Greeting",
  "fields": [
    {"name": "text", "type": "string"},
    {"name": "sent_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
  ]
}
"""

_HOOK_FILE: Final = ".pre-commit-config.yaml"

_HOOK_TYPES: Final = "default_install_hook_types: [pre-commit, pre-merge-commit]\n"

_HOOK: Final = """\
  - repo: local
    hooks:
      - id: schemactl-check
        name: {name}
        entry: {entry}
        language: system
        always_run: true
        pass_filenames: false
        verbose: true
"""

_GIT_LINES: Final = {".gitignore": ".schemactl/", ".gitattributes": "*.avsc diff=schemactl"}
"""The lines that keep the embedded registry out of Git and name a diff driver, which has no effect until it is configured."""

_DRIVER_COMMAND: Final = "git config diff.schemactl.textconv 'schemactl show --textconv'"

_COMMAND_WIDTH: Final = 35
"""The width of the commands that come next, up to the column of their meanings."""

_EXAMPLES: Final = {
    "shop": """\
A shop's schemas: three namespaces, sixteen topics, twenty commits.

Try:
  git log --oneline --graph
  schemactl list
  schemactl log orders                six versions, though the file changed more often
  schemactl show orders@2
  schemactl plan --target local       what would be registered?
  schemactl apply --target local      registers it, in a file
Then edit namespaces/sales/orders/orders.avsc, and:
  schemactl check                     would it break a reader?""",
    "environments": """\
One repository for three targets, dev, stage and prod: shop, a clone of origin.git. Two changes wait on the branches tags and amounts.

Try:
  cd shop
  schemactl targets
  schemactl plan --target dev         what would be registered?
  schemactl apply --target dev        registers it, in a file
  schemactl promote stage --to origin/main
  schemactl status                    which target has which version?
schemactl docs three-environments explains the rest.""",
}
"""The text that `init --example` prints, by the name of the example."""

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


# `schemactl init`.


def configure_init(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `init`."""
    parser.epilog = (
        "examples:\n"
        "  schemactl init                       in a folder with a project: adds what it lacks\n"
        "  schemactl -C my-repository init --bare\n  schemactl init --schemas\n"
        "  mkdir shop && schemactl -C shop init --example\n"
    )
    contents = parser.add_mutually_exclusive_group()
    add_options(
        contents,
        "--bare: without a first namespace and topic",
        "--schemas: only write the JSON Schemas for editors again: after an upgrade of schemactl",
    )
    contents.add_argument(
        "--example",
        nargs="?",
        const="shop",
        choices=[*_EXAMPLES],
        metavar="NAME",
        help="in an empty folder, the repository of an example, with its history, to play with: shop (default), or environments, "
        "with three targets and promotions",
    )
    add_result_formats(parser)


def run_init(args: argparse.Namespace, context: Context) -> int:
    """Write the files of a new project, the missing files of an existing one, or the example; overwrite no existing file."""
    from schemactl.declare.models import editor_schemas
    from schemactl.declare.project import PROJECT_FILE
    from schemactl.declare.writer import EDITOR_FOLDER, editor_line

    folder = Path(context.directory)
    context.record(written=[], changed=[], next=[])
    if args.example:
        if any(folder.iterdir()):
            raise SchemactlError(
                f"{folder} is not empty: nothing was written",
                fix=f"make a folder for the example, which has its own Git repository: mkdir {args.example} && "
                f"schemactl -C {args.example} init --example {args.example}",
            )
        _import_example(f"{args.example}.history").make(folder)
        print(_EXAMPLES[args.example])
        return 0
    schemas = {
        f"{EDITOR_FOLDER}/{name}.schema.json": f"{format_json(schema, 200)}\n".encode()
        for name, schema in editor_schemas().items()
    }
    if args.schemas:
        for name, data in schemas.items():
            atomic_files.write(folder / name, data, below=context.top)
            context.result["written"].append(name)
            print(f"wrote {name}")
        return 0
    if context.config:
        raise UsageError("--config cannot be combined with `init`, which writes schemactl.yaml")
    if os.path.lexists(folder / PROJECT_FILE):
        return _complete_project(schemas, context)
    files = {
        PROJECT_FILE: editor_line(PROJECT_FILE, "", "project")
        + _PROJECT.format(defaults=_DEFAULTS, generate=_format_generate(folder))
    }
    if not args.bare:
        for path, text in (
            ("namespaces/default/namespace.yaml", _NAMESPACE),
            ("namespaces/default/greetings.yaml", _TOPIC),
        ):
            files[path] = editor_line(path, "", "declarations") + text
        files["namespaces/default/greetings.avsc"] = _DEFINITION
    _write_new({name: text.encode() for name, text in files.items()} | schemas, context)
    _add_git_lines(context)
    _add_hook(context)
    has_repository = any((parent / ".git").exists() for parent in (folder, *folder.parents))
    _print_next_commands(
        context,
        *([] if has_repository else [("git init", "its history determines the version numbers")]),
        ("schemactl check", "the versions that a merge would approve"),
        (_format_commit_command(context), "approves them"),
        ("schemactl plan --target local", "the versions that apply would register"),
        ("schemactl apply --target local", "registers them"),
        ("pre-commit install", "checks every commit from now on"),
        (_DRIVER_COMMAND, "shows .avsc field by field in `git diff`"),
    )
    return 0


def _print_next_commands(context: Context, *commands: tuple[str, str]) -> None:
    """Print commands with their meanings in a second column, below a command that reaches into it."""
    context.result["next"] = [command for command, _ in commands]
    print("\nNext:")
    for command, meaning in commands:
        if len(command) <= _COMMAND_WIDTH:
            print(f"  {command:<{_COMMAND_WIDTH}} {meaning}")
        else:
            print(f"  {command}\n  {'':<{_COMMAND_WIDTH}} {meaning}")


def _format_commit_command(context: Context) -> str:
    """Return the command that commits the files of `init`; the hook of a project below the top of its repository lies above it."""
    hook_file = os.path.relpath(Path(context.top, _HOOK_FILE), Path(context.directory).resolve())
    paths = "." if hook_file == _HOOK_FILE else f". {shlex.quote(hook_file)}"
    return f"git add {paths} && git commit"


def find_spark_release() -> str:
    """Return the installed release of Spark, such as "4.3", or the default of `generate: {spark: ...}` without Spark 4."""
    for distribution in ("pyspark", "pyspark-client"):
        with suppress(metadata.PackageNotFoundError):
            major, minor = metadata.version(distribution).split(".")[:2]
            if int(major) >= 4:
                return f"{major}.{minor}"
    return Generate(package="").spark


def _format_generate(folder: Path) -> str:
    """Return the `generate` key of a project in this folder, after which the package is named."""
    name = re.sub(r"\W+", "_", folder.name.lower()).strip("_").removesuffix("schemas").strip("_")
    return _GENERATE.format(package=f"{name or 'my'}_schemas", spark=find_spark_release())


def _complete_project(schemas: Mapping[str, bytes], context: Context) -> int:
    """Add what the project in the folder lacks, and show it; change nothing that exists.

    Raises:
        SchemactlError: if the project file has problems; nothing is written then.
    """
    from schemactl.declare.project import PROJECT_FILE, load_project

    folder = Path(context.directory)
    project, _ = load_project(context.directory, str(folder / PROJECT_FILE))
    old_text = (folder / PROJECT_FILE).read_text(encoding="utf-8")
    new_text, missing = _complete_project_text(old_text, folder)
    try:
        if new_text != old_text:
            context.result["changed"].append(PROJECT_FILE)
            print("\n".join(render_file_diff(PROJECT_FILE, old_text, new_text, color=context.color)))
            atomic_files.write(folder / PROJECT_FILE, new_text.encode(), below=context.top)
    except OSError as error:
        raise _make_write_error(error) from error
    new_schemas = {name: data for name, data in schemas.items() if not os.path.lexists(folder / name)}
    _write_new(new_schemas, context)
    has_more = _add_git_lines(context) | _add_hook(context)
    if missing:
        print(f"\n{PROJECT_FILE} is not a block of keys, so add this to it by hand:\n\n{missing}", end="")
    if new_text == old_text and not new_schemas and not has_more and not missing:
        print("The project is complete: nothing was changed.")
        return 0
    targets = [f" --target {shlex.quote(name)}" for name in project.targets]
    _print_next_commands(
        context,
        ("schemactl check", "the versions that a merge would approve"),
        (_format_commit_command(context), "approves them"),
        ("schemactl generate", "the package with which Spark and Python read the topics"),
        (f"schemactl plan{targets[0] if targets else ''}", "the versions that apply would register"),
        ("pre-commit install", "checks every commit from now on"),
    )
    return 0


def _complete_project_text(text: str, folder: Path) -> tuple[str, str]:
    """Return the text of a project file with the keys that it lacks at its end, and the missing keys if they cannot be added there."""
    import yaml

    from schemactl.declare.project import PROJECT_FILE
    from schemactl.declare.writer import editor_line

    keys = yaml.safe_load(text)
    added = "\n".join(
        block for key, block in (("defaults", _DEFAULTS), ("generate", _format_generate(folder))) if key not in keys
    )
    head = "" if "yaml-language-server:" in text else editor_line(PROJECT_FILE, "", "project")
    if not added:
        return head + text, ""
    new_text = f"{head}{text.rstrip()}\n\n{added}"
    try:
        is_complete = yaml.safe_load(new_text) == {**keys, **yaml.safe_load(added)}
    except yaml.YAMLError:
        is_complete = False
    return (new_text, "") if is_complete else (head + text, added)


def _format_yaml_text(text: str) -> str:
    """Return a text as YAML, in quotes if it has other characters than letters, digits and the signs of paths."""
    return text if re.fullmatch(r"[-\w/. ]*\w", text) else json.dumps(text)


def _add_git_lines(context: Context) -> bool:
    """Add the missing lines to `.gitignore` and `.gitattributes` of the folder, and return whether any was missing."""
    is_missing = False
    try:
        for name, line in _GIT_LINES.items():
            path = Path(context.directory, name)
            data = atomic_files.read(path, below=context.top) or b""
            if line.encode() in data.splitlines():
                continue
            line_break = b"" if not data or data.endswith(b"\n") else b"\n"
            atomic_files.write(path, data + line_break + f"{line}\n".encode(), below=context.top)
            print(f"added {line} to {name}")
            context.result["changed"].append(name)
            is_missing = True
    except OSError as error:
        raise _make_write_error(error) from error
    return is_missing


def _add_hook(context: Context) -> bool:
    """Write the hook to the repository's `.pre-commit-config.yaml`, or print it if there is one; return whether it was missing.

    pre-commit reads the file at the top of a repository alone, and runs its hooks there.
    """
    folder = Path(context.directory).resolve().relative_to(context.top).as_posix()
    words = ["schemactl", *(() if folder == "." else ("-C", folder)), "check", "--staged"]
    entry = shlex.join(words)
    name = "check Pulsar schemas" + ("" if folder == "." else f" of {folder}")
    hook = _HOOK.format(name=_format_yaml_text(name), entry=_format_yaml_text(entry))
    path = Path(context.top, _HOOK_FILE)
    # As seen from the folder to work in.
    shown_path = os.path.relpath(path, Path(context.directory).resolve())
    if not os.path.lexists(path):
        try:
            atomic_files.write(path, f"{_HOOK_TYPES}repos:\n{hook}".encode(), below=context.top, is_new=True)
        except OSError as error:
            raise _make_write_error(error) from error
        print(f"wrote {shown_path}")
        context.result["written"].append(shown_path)
        return True
    try:
        text = (atomic_files.read(path, below=context.top) or b"").decode(errors="replace")
    except (OSError, SchemactlError):
        # A link, or a file that may not be read, is not changed.
        text = ""
    if _format_yaml_text(entry) in text or (folder == "." and "schemactl-check" in text):
        return False
    print(f"\n{shown_path} exists already. Add the hook below its `repos:`:\n\n{hook}", end="")
    if "default_install_hook_types" not in text:
        print(f"\nand at its top, so that merges are checked too:\n\n{_HOOK_TYPES}", end="")
    return True


def _write_new(files: Mapping[str, bytes], context: Context) -> None:
    """Write `files`, by path from the folder to work in, and print their paths.

    Raises:
        SchemactlError: if one of them exists already or cannot be written.
    """
    folder = Path(context.directory)
    existing = [name for name in files if os.path.lexists(folder / name)]
    if existing:
        raise SchemactlError(
            f"{', '.join(existing)} {'exists' if len(existing) == 1 else 'exist'} already in {folder}: nothing was written",
            fix=f"edit {'it' if len(existing) == 1 else 'them'}, or start in another folder with -C DIR",
        )
    try:
        for name, data in files.items():
            atomic_files.write(folder / name, data, below=context.top, is_new=True)
            context.result.setdefault("written", []).append(name)
            print(f"wrote {name}")
    except OSError as error:
        raise _make_write_error(error) from error


def _make_write_error(error: OSError) -> SchemactlError:
    return SchemactlError(
        f"{error.filename} cannot be written: {error.strerror}", fix="start in a folder you may write to, with -C DIR"
    )


# `schemactl demo`.


def configure_demo(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `demo`."""
    parser.description = (
        "Run the main job in a new folder: a Git repository of declarations, the embedded registry, the generated package, "
        "a Spark job over messages of every version, and a change that fails the check. It takes about half a minute, and contacts no server."
    )
    parser.epilog = "examples:\n  schemactl demo\n  schemactl demo my-demo\n"
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", default="schemactl-demo", help="the folder (default: schemactl-demo)"
    )


def run_demo(args: argparse.Namespace, context: Context) -> int:
    """Run the steps of the demo."""
    missing = [name for name in ("pyspark", "pyarrow", "grpc_tools") if find_spec(name) is None]
    if missing:
        raise SchemactlError(
            f"the demo needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            fix='pip install "pulsar-schemactl[spark,proto,java]"',
        )
    folder = Path(context.directory, args.folder).resolve()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{args.folder} is a file: name a folder")
    try:
        _import_example("shop.demo").main(folder)
    except SystemExit as error:
        raise SchemactlError(str(error.code)) from None
    return 0


def _import_example(module: str) -> ModuleType:
    """Import a module of the examples, such as `shop.demo`."""
    # The examples are below this package in a wheel, and next to it in a checkout.
    try:
        return import_module(f"schemactl._examples.{module}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("schemactl._examples"):
            raise
    return import_module(f"examples.{module}")


# `schemactl new`.


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
    from schemactl.declare import reader as declare_catalog
    from schemactl.declare import writer

    files, project, top = context.open_working_tree()
    # Problems in other files do not matter here.
    catalog = declare_catalog.read(files, project).catalog
    metadata = {key: text for key in ("owner", "description") if (text := getattr(args, key))}
    context.record(kind=args.kind, name=args.name, written=[], next=[])
    copied_files: dict[str, bytes] = {}
    if args.kind == "namespace":
        namespace = _parse_name(NamespaceName.parse, args.name)
        _require_new(namespace, catalog.namespaces)
        folder = writer.namespace_folder(namespace, catalog, project)
        texts = writer.namespace_files(namespace, folder, args.strategy or "", metadata)
        next_command = f"schemactl new topic {namespace}/NAME"
    else:
        name = _resolve_topic_name(args.name, catalog)
        stem = writer.topic_stem(name, writer.namespace_folder(name.namespace_name, catalog, project))
        start, copied_files = _choose_start(args, context, top, stem)
        start = _find_references(start, stem, declare_files.ChangedFiles(copied_files, files), project)
        values: dict[str, str | int] = {} if args.partitions is None else {"partitions": args.partitions}
        values |= {"schema_compatibility_strategy": args.strategy} if args.strategy else {}
        texts = writer.new_topic_files(name, stem, start, values, metadata)
        next_command = "schemactl check"
    declaration = next(iter(texts))
    if files.kind(posixpath.join(project.folder, writer.EDITOR_FOLDER, "declarations.schema.json")) == "file":
        texts[declaration] = writer.editor_line(declaration, project.folder, "declarations") + texts[declaration]
    contents = {path: text.encode() for path, text in texts.items()} | copied_files
    definition_file = args.definition_file if args.kind == "topic" else None
    _require_valid(contents, files, project, context, definition_file)
    files_by_shown_path = {os.path.relpath(Path(top, path), context.directory): data for path, data in contents.items()}
    _write_new(files_by_shown_path, context)
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
    _require_new(name, {other: topic for other, topic in catalog.topics.items() if other.schema_id == name.schema_id})
    return name


def _parse_name(parse: Callable[[str], N], text: str) -> N:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _require_new(name: TopicName | NamespaceName, declared_by_name: Mapping[Any, Topic | Namespace]) -> None:
    """Raise UsageError if a file declares the namespace, or the topic in either domain."""
    declared = declared_by_name.get(name) or (
        next(iter(declared_by_name.values()), None) if isinstance(name, TopicName) else None
    )
    if declared:
        raise UsageError(f"{declared.name} is declared already, at {declared.source}")


def _choose_start(args: argparse.Namespace, context: Context, top: str, stem: str) -> tuple[Start, dict[str, bytes]]:
    """Return the first definition of a new topic, and the file to copy a definition from outside of the repository to.

    Raises:
        UsageError: if the options contradict each other, or the given definition cannot be read.
    """
    from schemactl.declare.writer import Start
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
    from schemactl.declare.writer import list_message_names
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
        return replace(start, given=posixpath.relpath(path.relative_to(top).as_posix(), folder or ".")), {}
    is_half = start.type is SchemaType.KEY_VALUE and not start.is_payload
    name = f"{base}{'.value' * is_half}{path.suffix}"
    return replace(start, given=name), {posixpath.join(folder, name): path.read_bytes()}


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
    if not start.given or start.given.endswith(".binpb") or start.is_payload:
        return start
    try:
        path = posixpath.normpath(posixpath.join(folder, start.given))
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
