"""`schemactl generate`: the package with which Spark and Python read the topics."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.errors import SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.codegen.topic_module import Approved
    from schemactl.history import History

STALE = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `generate`."""
    parser.description = (
        "Write an importable package (`generate` in the project file says its name and place) with, for every topic of the "
        "approved history, its StructType, its versions with their commits, and functions that decode and encode messages "
        "of every version: one message, Arrow batches, DataFrames."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl generate                           write the package\n"
        "  schemactl generate --check                   is it up to date? (exit 100 if not; for CI)\n"
        "  schemactl generate --vendor --zip shop_schemas.zip\n"
        "  spark-submit --py-files shop_schemas.zip job.py      a cluster without schemactl\n"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 100 if a file would change")
    parser.add_argument(
        "--vendor",
        action="store_true",
        help="the package carries the run-time, and needs no schemactl where it is used",
    )
    parser.add_argument("--zip", metavar="FILE", help="also pack the package, for spark-submit --py-files")
    parser.add_argument(
        "--recursion-depth",
        type=int,
        default=0,
        metavar="N",
        help="how often a record may hold itself before the field is dropped (default: recursive schemas are refused)",
    )
    parser.add_argument("--topic", action="append", metavar="GLOB", help="only topics whose name matches")
    parser.add_argument("--namespace", action="append", metavar="NS", help="only topics of this namespace")


def run(args: argparse.Namespace, context: Context) -> int:
    """0: written, or up to date; 100: `--check` found stale files."""
    if args.check and args.zip:
        raise UsageError("--check writes nothing: leave --zip out")
    if args.recursion_depth < 0:
        raise UsageError("--recursion-depth is a number from 0 on")
    from schemactl import declare, history
    from schemactl.codegen import files as on_disk
    from schemactl.codegen.package import package_files

    project, top = declare.load_project(context.directory, context.config)
    if project.generate is None:
        raise SchemactlError(
            f"{project.path} has no `generate`",
            fix='add `generate: {package: my_schemas, out: generated, spark: "4.1"}`',
        )
    with history.Repository.open(context.directory) as repository:
        approved = history.read(repository, project, progress=context.reading_history())
    for note in approved.notes:
        context.say(f"note: {note}")
    files = package_files(
        _chosen(args, approved),
        project.generate,
        release=project.release,
        recursion_depth=args.recursion_depth,
        vendor=args.vendor,
    )
    out = Path(top, project.generate.out)
    if args.check:
        difference = on_disk.compare(files, out)
        stale = [*difference.changed, *difference.extra, *difference.foreign]
        for name in sorted(stale):
            print(f"stale: {project.generate.out}/{name}")
        print(_summary(len(files), len(stale), checked=True))
        return STALE if stale else 0
    difference = on_disk.write(files, out)
    if args.zip:
        on_disk.pack(files, Path(context.directory, args.zip))
    print(_summary(len(files), len(difference.changed) + len(difference.extra), checked=False))
    return 0


def _chosen(args: argparse.Namespace, approved: History) -> list[Approved]:
    """The topics that are declared at the tip and have a schema, as far as --topic and --namespace leave them."""
    from schemactl.codegen.topic_module import Approved

    found = []
    for name, topic in approved.catalog.topics.items():
        current, since = approved.current(name), approved.since(name)
        if current is None or since is None or topic.deleted:
            continue
        if args.namespace and str(name.namespace_name) not in args.namespace:
            continue
        globs = args.topic or ["*"]
        if any(fnmatchcase(text, glob) for text in (str(name), name.schema_id) for glob in globs):
            found.append(Approved(topic, current, since.id))
    if not found and (args.topic or args.namespace):
        raise UsageError("no topic with an approved schema matches --topic and --namespace")
    return found


def _summary(count: int, differing: int, *, checked: bool) -> str:
    if checked:
        return f"{count} files, {differing} stale." + (" Run `schemactl generate`." if differing else "")
    return f"{count} files, {differing} written or removed."
