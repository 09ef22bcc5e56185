"""`schemactl init`: a new project."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core import atomic_files
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.json_values import laid_out

PROJECT = """\
version: 1
roots: [namespaces]                      # folders that hold declarations
pulsar: "4.0"                            # whose answers to predict: 4.0, 4.2 or 5.0

defaults:                                # what your brokers are configured with
  schema_compatibility_strategy: FULL
  is_allow_auto_update_schema: true
  schema_validation_enforced: false

require_declared_namespaces: true        # a typo in a topic's name makes no namespace

targets:
  local: {{registry: "sqlite:.schemactl/registry.db"}}

generate:
  package: {package}
  out: generated
  spark: "4.1"
"""

NAMESPACE = """\
namespace: public/default
schema_compatibility_strategy: BACKWARD
is_allow_auto_update_schema: false       # no producer registers a version: `apply` does
"""

TOPIC = """\
topic: persistent://public/default/greetings
schema:
  type: AVRO
  definition: greetings.avsc
"""

DEFINITION = """\
{
  "type": "record",
  "name": "Greeting",
  "fields": [
    {"name": "text", "type": "string"},
    {"name": "sent_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
  ]
}
"""

HOOK_TYPES = "default_install_hook_types: [pre-commit, pre-merge-commit]\n"
HOOK = """\
  - repo: local
    hooks:
      - id: schemactl-check
        name: check Pulsar schemas
        entry: schemactl check --staged
        language: system
        always_run: true
        pass_filenames: false
        verbose: true
"""


LINES = {".gitignore": ".schemactl/", ".gitattributes": "*.avsc diff=schemactl"}
"""What keeps the embedded registry out of Git, and what names Git's diff driver; without the driver it changes nothing."""

DRIVER = "git config diff.schemactl.textconv 'schemactl show --textconv'"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `init`."""
    parser.epilog = (
        "examples:\n  schemactl init\n  schemactl -C my-repository init --bare\n  schemactl init --schemas\n"
        "  mkdir shop && schemactl -C shop init --example\n"
    )
    what = parser.add_mutually_exclusive_group()
    add_options(
        what,
        "--bare: without a first namespace and topic",
        "--schemas: only the JSON Schemas for editors, anew: after an upgrade of schemactl",
        "--example: in an empty folder, the repository of an example, with its history, to play with",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the files are written; nothing that exists is overwritten."""
    from schemactl.declare.models import editor_schemas
    from schemactl.declare.writer import EDITOR_FOLDER, editor_line

    folder = Path(context.directory)
    if args.example:
        return _make_example(folder)
    schemas = {
        f"{EDITOR_FOLDER}/{name}.schema.json": f"{laid_out(schema, 200)}\n".encode()
        for name, schema in editor_schemas().items()
    }
    if args.schemas:
        return _write_schemas(schemas, context)
    if context.config:
        raise UsageError("init writes schemactl.yaml: --config does not go with it")
    package = re.sub(r"\W+", "_", folder.name.lower()).strip("_")
    files = {
        "schemactl.yaml": editor_line("schemactl.yaml", "", "project")
        + PROJECT.format(package=f"{package or 'my'}_schemas")
    }
    if not args.bare:
        files |= {
            **{
                path: editor_line(path, "", "declarations") + text
                for path, text in (
                    ("namespaces/default/namespace.yaml", NAMESPACE),
                    ("namespaces/default/greetings.yaml", TOPIC),
                )
            },
            "namespaces/default/greetings.avsc": DEFINITION,
        }
    hooked = os.path.lexists(folder / ".pre-commit-config.yaml")
    hook = {} if hooked else {".pre-commit-config.yaml": f"{HOOK_TYPES}repos:\n{HOOK}"}
    write_new({name: text.encode() for name, text in (files | hook).items()} | schemas, context)
    try:
        for name, line in LINES.items():
            if _add_line(folder / name, line, context.top):
                print(f"added {line} to {name}")
    except OSError as error:
        raise _unwritable(error) from error
    if hooked:
        print(
            f"\n.pre-commit-config.yaml is there already; below its `repos:`, the hook would be:\n\n{HOOK}"
            f"\nand at its top, so that merges are checked too:\n\n{HOOK_TYPES}",
            end="",
        )
    print("\nNext:")
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        print("  git init                            its history determines the version numbers")
    print(
        "  schemactl check                     what would be approved?\n"
        "  git add . && git commit             approves it\n"
        "  schemactl plan --target local       what would be registered?\n"
        "  schemactl apply --target local      registers it\n"
        "  pre-commit install                  checks every commit from now on\n"
        f"  {DRIVER}\n"
        "                                      shows .avsc field by field in `git diff`"
    )
    return 0


def _write_schemas(schemas: Mapping[str, bytes], context: Context) -> int:
    for name, data in schemas.items():
        atomic_files.write(Path(context.directory, name), data, below=context.top)
        print(f"wrote {name}")
    return 0


def _make_example(folder: Path) -> int:
    """Return 0 after the example's repository is made in the folder."""
    from schemactl.examples import shop

    if any(folder.iterdir()):
        raise SchemactlError(
            f"{folder} is not empty: nothing was written", fix="name an empty folder with -C DIR"
        )
    shop("history").make(folder)
    print(
        "A shop's schemas: three namespaces, sixteen topics, nineteen commits.\n\nTry:\n"
        "  git log --oneline --graph\n"
        "  schemactl list\n"
        "  schemactl log orders                six versions, though the file changed more often\n"
        "  schemactl show orders@2\n"
        "  schemactl plan --target local       what would be registered?\n"
        "  schemactl apply --target local      registers it, in a file\n"
        "Then edit namespaces/sales/orders/orders.avsc, and:\n"
        "  schemactl check                     would it break a reader?"
    )
    return 0


def write_new(files: Mapping[str, bytes], context: Context) -> None:
    """Write `files`, by path from the folder to work in, and print their paths.

    Raises:
        SchemactlError: one of them is there already, or cannot be written.
    """
    folder = Path(context.directory)
    taken = [name for name in files if os.path.lexists(folder / name)]
    if taken:
        raise SchemactlError(
            f"{', '.join(taken)} {'exists' if len(taken) == 1 else 'exist'} already in {folder}: nothing was written",
            fix=f"edit {'it' if len(taken) == 1 else 'them'}, or start in another folder with -C DIR",
        )
    try:
        for name, data in files.items():
            atomic_files.write(folder / name, data, below=context.top, is_new=True)
            print(f"wrote {name}")
    except OSError as error:
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> SchemactlError:
    return SchemactlError(
        f"{error.filename} cannot be written: {error.strerror}",
        fix="start in a folder you may write to, with -C DIR",
    )


def _add_line(path: Path, line: str, top: str) -> bool:
    """Add a line to a file that may be there, and return whether it lacked it."""
    present = atomic_files.read(path, below=top) or b""
    if line.encode() in present.splitlines():
        return False
    joint = b"" if not present or present.endswith(b"\n") else b"\n"
    atomic_files.write(path, present + joint + f"{line}\n".encode(), below=top)
    return True
