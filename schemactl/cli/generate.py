"""`schemactl generate`: the package with which Spark and Python read the topics."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli import NEGATIVE, Context
from schemactl.cli.parser import add_options
from schemactl.cli.reading import (
    ReadingSetup,
    add_numbers_of,
    add_recursion_depth,
    check_recursion_depth,
    reading,
)
from schemactl.cli.selection import add_filters, output_file
from schemactl.errors import InvalidSchema, SchemactlError, UsageError
from schemactl.topic_match import require_matches, select

if TYPE_CHECKING:
    from schemactl.codegen.approved import Approved


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `generate`."""
    parser.description = (
        "Write an importable package (`generate` in the project file says its name and place) with, for every topic of "
        "the approved history, its StructType, its versions with their commits, and functions that decode and encode "
        "messages of every version: one message, Arrow batches, DataFrames. With a target, check that the registry's "
        "numbers are the recorded ones (exit 100, and nothing is written, if not); what is written comes from Git alone."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl generate                           write the package\n"
        "  schemactl generate --check                   is it up to date? (exit 100 if not; for CI)\n"
        "  schemactl generate --vendor --zip shop_schemas.zip\n"
        "  spark-submit --py-files shop_schemas.zip job.py      a cluster without schemactl\n"
        "  schemactl generate --wheel                   dist/shop_schemas-2026.3.1.220509-py3-none-any.whl, for pip\n"
        "  schemactl generate --out build --wheel build/wheels --wheel-version 1.4.0\n"
    )
    add_options(
        parser,
        "--check: write nothing; exit 100 if a file would change",
        "--vendor: the package contains the run-time, and works without schemactl installed",
        "--out DIR: write the package here (default: `generate.out`)",
        "--zip FILE: also pack the package, for spark-submit --py-files (in a folder: PACKAGE.zip)",
    )
    add_options(
        parser,
        "--wheel DIR: also make a wheel of the package in this folder (default: dist)",
        nargs="?",
        const="dist",
    )
    add_options(
        parser,
        "--wheel-version VERSION: the wheel's version (default: date and time of the approved tip, such as 2026.3.1.220509)",
        default="",
    )
    add_numbers_of(parser, "`generate.target`, else Git's numbers")
    add_recursion_depth(parser)
    add_filters(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: written, or up to date; 100: `--check` found stale files, or the target's registry contradicts the record."""
    _judge_usage(args)
    from schemactl import history
    from schemactl.codegen import files as on_disk
    from schemactl.codegen.package import package_files
    from schemactl.codegen.wheel import wheel

    project, top = history.load_project(context.directory, context.config)
    generate = project.generate
    if generate is None:
        raise SchemactlError(
            f"{project.path} has no `generate`",
            fix='add `generate: {package: my_schemas, out: generated, spark: "4.1"}`',
        )
    with history.Repository.open(context.directory) as repository:
        if repository.top is None and args.out is None:
            raise UsageError(
                "a bare repository has no working tree for the package: name a folder with --out"
            )
    read = reading(context, args.target or generate.target, project=(project, top))
    approved = read.approved
    context.note(approved.notes)
    topics = _chosen(args, read)
    read.require_target(one.topic for one in topics)
    # The registry may forbid the package, but nothing of it comes from there: the same commit makes the same files.
    read.verified((one.topic for one in topics), context)
    files = package_files(
        topics, generate, release=project.release, recursion_depth=args.recursion_depth, vendor=args.vendor
    )
    out = Path(top, generate.out) if args.out is None else Path(context.directory, args.out)
    if args.check:
        difference = on_disk.compare(files, out, below=context.top)
        stale = [*difference.changed, *difference.extra, *difference.foreign]
        for name in sorted(stale):
            print(f"stale: {generate.out if args.out is None else args.out}/{name}")
        print(f"{len(files)} files, {len(stale)} stale.{' Run `schemactl generate`.' if stale else ''}")
        return NEGATIVE if stale else 0
    made = None
    if args.wheel:
        if approved.tip is None:
            raise SchemactlError(
                "nothing is approved yet, so there is nothing to make a wheel of",
                fix="commit a declaration first",
            )
        version, vendor = args.wheel_version, args.vendor
        made = wheel(files, generate.package, topics, tip=approved.tip, version=version, vendor=vendor)
    present = {name for name in files if (out / name).exists()}
    difference = on_disk.write(files, out, below=context.top)
    if args.zip:
        zipped = output_file(args.zip, context, name=f"{generate.package}.zip")
        on_disk.pack(files, zipped, below=context.top)
        print(args.zip if zipped.name == Path(args.zip).name else Path(args.zip, zipped.name))
    if made:
        on_disk.pack(made.files, Path(context.directory, args.wheel, made.name), below=context.top)
        print(Path(args.wheel, made.name))
    created = len({*difference.changed} - present)
    updated, deleted = len(difference.changed) - created, len(difference.extra)
    print(f"{len(files)} files: {created} created, {updated} updated, {deleted} deleted.")
    return 0


def _judge_usage(args: argparse.Namespace) -> None:
    if args.check and (args.zip or args.wheel):
        raise UsageError("--check writes nothing: leave --zip and --wheel out")
    if args.wheel_version and not args.wheel:
        raise UsageError("--wheel-version needs --wheel")
    check_recursion_depth(args)


def _chosen(args: argparse.Namespace, read: ReadingSetup) -> list[Approved]:
    """Return the topics that are declared at the tip and have a schema, as far as --topic and --namespace leave them."""
    from schemactl.codegen.approved import Approved

    approved, found = read.approved, {}
    for name, topic in approved.catalog.topics.items():
        current, since = approved.current(name), approved.since(name)
        if current is not None and since is not None and not topic.deleted:
            found[name] = Approved(topic, current, since.id)
    if args.topic or args.namespace:
        require_matches(found, args.topic, args.namespace, where="the approved history with a schema")
    chosen = select(found, args.topic, args.namespace)
    return [
        replace(one, on_target=read.on_target(one.topic.load(), _reader(one)))
        for one in (found[name] for name in found if name in chosen)
    ]


def _reader(one: Approved) -> int | None:
    """Return the number of the version that messages are read as; None: the declaration pins one that is not there."""
    try:
        return one.reader[0]
    except InvalidSchema:
        # `package_files` reports all such topics together.
        return None
