"""`init`: start a project in a repository, or complete one."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.demo import import_example
from schemactl.cli.parser import add_options
from schemactl.core import atomic_files
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.json_values import format_json
from schemactl.core.project import Generate
from schemactl.core.terminal import render_file_diff

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
    from schemactl.declare.new_declarations import EDITOR_FOLDER, editor_line
    from schemactl.declare.project import PROJECT_FILE

    folder = Path(context.directory)
    context.record(written=[], changed=[], next=[])
    if args.example:
        if any(folder.iterdir()):
            raise SchemactlError(
                f"{folder} is not empty: nothing was written",
                fix=f"make a folder for the example, which has its own Git repository: mkdir {args.example} && "
                f"schemactl -C {args.example} init --example {args.example}",
            )
        import_example(f"{args.example}.history").make(folder)
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
        _complete_project(schemas, context)
        return 0
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
    write_new_files({name: text.encode() for name, text in files.items()} | schemas, context)
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


def _complete_project(schemas: Mapping[str, bytes], context: Context) -> None:
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
    write_new_files(new_schemas, context)
    has_more = _add_git_lines(context) | _add_hook(context)
    if missing:
        print(f"\n{PROJECT_FILE} is not a block of keys, so add this to it by hand:\n\n{missing}", end="")
    if new_text == old_text and not new_schemas and not has_more and not missing:
        print("The project is complete: nothing was changed.")
        return
    targets = [f" --target {shlex.quote(name)}" for name in project.targets]
    _print_next_commands(
        context,
        ("schemactl check", "the versions that a merge would approve"),
        (_format_commit_command(context), "approves them"),
        ("schemactl generate", "the package with which Spark and Python read the topics"),
        (f"schemactl plan{targets[0] if targets else ''}", "the versions that apply would register"),
        ("pre-commit install", "checks every commit from now on"),
    )


def _complete_project_text(text: str, folder: Path) -> tuple[str, str]:
    """Return the text of a project file with the keys that it lacks at its end, and the missing keys if they cannot be added there."""
    import yaml

    from schemactl.declare.new_declarations import editor_line
    from schemactl.declare.project import PROJECT_FILE

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


def write_new_files(files: Mapping[str, bytes], context: Context) -> None:
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
