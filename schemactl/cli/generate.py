"""`schemactl generate`: the package with which Spark and Python read the topics."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.topic_selection import (
    VERSION_HELP,
    ReadingSetup,
    States,
    add_filters,
    add_numbers_of,
    add_recursion_depth,
    merge_of,
    output_file,
    reading,
)
from schemactl.core.errors import NEGATIVE, InvalidSchema, SchemactlError, UsageError
from schemactl.core.names import select_known
from schemactl.core.project import ClassKind

if TYPE_CHECKING:
    from schemactl.codegen.package import Brought
    from schemactl.codegen.topics import Approved
    from schemactl.core.project import Generate, Project
    from schemactl.history import Merged


def configure_generate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `generate`."""
    parser.description = (
        "Write an importable package (`generate` in the project file says its name and place) with, for every topic, its "
        "schemas, the types of its rows, its columns, and what decodes and encodes messages of every version. The package is "
        "that of what a merge of the files here puts on record: commit it with the change. With a target, check that the "
        "registry's numbers are the recorded ones (exit 100, and nothing is written, if not); what is written comes from "
        "files and Git alone."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl generate                           write the package, to be committed\n"
        "  schemactl generate --check                   is it up to date? (exit 100 if not; for CI)\n"
        "  schemactl generate --zip shop_schemas.zip    a package that needs no schemactl\n"
        "  spark-submit --py-files shop_schemas.zip job.py\n"
        "  schemactl generate --classes pydantic        with models for the records of each topic\n"
        "  schemactl generate --classes dataclass orders@2 > order_v2.py    the classes of one version alone\n"
        "  schemactl generate --wheel --with-commits    dist/shop_schemas-2026.3.1.220509-py3-none-any.whl, for pip\n"
    )
    parser.add_argument(
        "of", nargs="?", metavar="TOPIC[@N]", help=f"with --classes: print the classes of this version: {VERSION_HELP}"
    )
    add_options(
        parser,
        "--check: write nothing; exit 100 if a file would change",
        "--rebase: the branch will be rebased: each of its commits puts its versions on record, not the end alone",
        "--out DIR: write the package here (default: `generate.out`)",
        "--zip FILE: instead, pack the package with its run-time, for spark-submit --py-files (in a folder: PACKAGE.zip)",
    )
    add_options(
        parser,
        "--wheel DIR: instead, make a wheel of the package and its run-time in this folder (default: dist)",
        nargs="?",
        const="dist",
    )
    add_options(
        parser,
        "--wheel-version VERSION: the wheel's version (default: date and time of the approved tip, such as 2026.3.1.220509)",
        default="",
    )
    add_options(parser, "--with-commits: pack `versions.json`, too: the commit of every version, and its time")
    parser.add_argument(
        "--classes",
        choices=get_args(ClassKind),
        help="also write classes for the records of each topic (default: `generate.classes`)",
    )
    add_numbers_of(parser, "`generate.target`, else Git's numbers")
    add_recursion_depth(parser)
    add_filters(parser)


def run_generate(args: argparse.Namespace, context: Context) -> int:
    """Return 0: written, or up to date; 100: `--check` found stale files, or the target's registry contradicts the record."""
    _judge_usage(args)

    project, top = context.project()
    generate = project.generate
    if generate is None:
        raise SchemactlError(
            f"{project.path} has no `generate`",
            fix='add `generate: {package: my_schemas, out: generated, spark: "4.1"}`',
        )
    if args.of:
        return _print_classes(args, context, project, generate)
    generate = replace(generate, classes=args.classes or generate.classes)
    maker = _PackageMaker(args, context, project, top, generate)
    merged = merge_of(context, project, top, by_commit=args.rebase)
    package = maker.package(merged)
    context.note(*package.read.approved.notes)
    # The registry may forbid the package, but nothing of it comes from there: the same files make the same package.
    package.read.verified((one.topic for one in package.topics), context)
    if args.zip or args.wheel:
        return _pack(package, maker, merged)
    if merged is None and args.out is None:
        raise UsageError("a bare repository has no working tree for the package: name a folder with --out")
    return _check(package, maker, merged) if args.check else _write(package, maker, merged)


def _print_classes(args: argparse.Namespace, context: Context, project: Project, generate: Generate) -> int:
    """Print the classes of one version, without making the package."""
    from schemactl.codegen.class_module import topic_classes
    from schemactl.codegen.topic_struct import StructOptions

    kind = args.classes or generate.classes
    if kind is None or args.check or args.zip or args.wheel or args.out:
        raise UsageError(f"{args.of}: one version alone is for --classes, which prints its classes")
    named = States(context).definition(args.of)
    if named.info is None:
        raise UsageError(f"{named.topic.name} has no schema")
    options = StructOptions(generate.spark, args.recursion_depth, as_decoded=True)
    text = topic_classes(named.topic.name, named.number or 0, named.info.load(), kind, options, project.release)
    if not text:
        raise SchemactlError(
            f"{named.topic.name} is {named.info.type.name}, and no record of Avro's: it has no classes",
            fix="for protobuf, `protoc --python_out` writes classes",
        )
    print(text, end="")
    return 0


@dataclass(frozen=True, slots=True)
class _Package:
    read: ReadingSetup
    topics: list[Approved]
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _PackageMaker:
    """Makes the package for different states of the topics, with the arguments of one run."""

    args: argparse.Namespace
    context: Context
    project: Project
    top: str
    generate: Generate

    @property
    def out(self) -> Path:
        """The folder of the package."""
        args = self.args
        return Path(self.top, self.generate.out) if args.out is None else Path(self.context.directory, args.out)

    def package(self, merged: Merged | None) -> _Package:
        """Return the package of what a merge leaves; None: of what is approved."""
        from schemactl.codegen.package import package_files

        args, project = self.args, (self.project, self.top)
        target = args.target or self.generate.target
        read = reading(self.context, target, project=project, merged=merged)
        topics = _chosen(args, read)
        read.require_target((one.topic for one in topics), self.context)
        files = package_files(
            topics,
            self.generate,
            release=self.project.release,
            target=read.target.name if read.target else None,
            recursion_depth=args.recursion_depth,
        )
        return _Package(read, topics, files)

    def brought(self, merged: Merged | None) -> Brought:
        """Return a function that says whether the merge itself brings a file."""
        top = Path(self.top)

        def is_brought(path: Path, text: str | None) -> bool:
            if merged is None or not path.is_relative_to(top):
                return False
            content = None if text is None else text.encode()
            return merged.brought.has(path.relative_to(top).as_posix(), content)

        return is_brought


def _check(package: _Package, maker: _PackageMaker, merged: Merged | None) -> int:
    from schemactl.codegen.package import compare

    args, out = maker.args, maker.out
    shown = maker.generate.out if args.out is None else args.out
    difference = compare(package.files, out, below=maker.context.top, brought=maker.brought(merged))
    if difference and merged and merged.has_commits and not args.rebase:
        other = maker.package(merge_of(maker.context, maker.project, maker.top, by_commit=True))
        of_rebase = compare(other.files, out, below=maker.context.top, brought=maker.brought(merged))
        if not of_rebase:
            maker.context.say(
                "note: the package is right if the branch is rebased; a merge commit or a squash puts other versions on record"
            )
            difference = of_rebase
    stale = sorted([*difference.changed, *difference.extra, *difference.foreign])
    for name in stale:
        print(f"stale: {shown}/{name}")
    print(f"{len(package.files)} files, {len(stale)} stale.")
    if not stale:
        return 0
    for line in _renumbered(package, out, difference.changed):
        print(line)
    command = "schemactl generate --rebase" if args.rebase else "schemactl generate"
    if merged and merged.is_behind:
        ref = merged.approved.ref
        print(f"{ref} has moved on since this branch left it. Run `git merge {ref}`, then `{command}`.")
    else:
        print(f"Run `{command}`, and commit what it writes.")
    return NEGATIVE


def _renumbered(package: _Package, out: Path, changed: Sequence[str]) -> Iterator[str]:
    """Say which numbers of schemas in the folder are stale: the same text has another number now."""
    from schemactl.codegen.package import numbered

    numbers: dict[tuple[str, str], int] = {}
    for name, text in package.files.items():
        if found := numbered(name):
            numbers.setdefault((found.module, text), found.version)
    for name in changed:
        found = numbered(name)
        path = out / name
        now = numbers.get((found.module, path.read_text("utf-8", "replace"))) if found and path.is_file() else None
        if found and now is not None and now != found.version:
            yield (
                f"stale number: version {found.version} of {found.module} here becomes version {now}, "
                f"for another {found.version} was approved meanwhile"
            )


def _write(package: _Package, maker: _PackageMaker, merged: Merged | None) -> int:
    from schemactl.codegen.package import compare, write

    out, below = maker.out, maker.context.top
    difference = compare(package.files, out, below=below, brought=maker.brought(merged))
    created = sum(not (out / name).exists() for name in difference.changed)
    write(package.files, out, difference, below=below)
    updated, deleted = len(difference.changed) - created, len(difference.extra)
    print(f"{len(package.files)} files: {created} created, {updated} updated, {deleted} deleted.")
    if merged and merged.has_commits and not maker.args.rebase:
        other = maker.package(merge_of(maker.context, maker.project, maker.top, by_commit=True))
        if other.files != package.files:
            maker.context.say(
                "note: a rebase of this branch puts other versions on record than a merge commit or a squash: for that, --rebase"
            )
    return 0


def _pack(package: _Package, maker: _PackageMaker, merged: Merged | None) -> int:
    from schemactl.codegen import package as packed

    args, context, name = maker.args, maker.context, maker.generate.package
    tip = package.read.approved.tip
    if merged and merged.history is not merged.approved:
        released = maker.package(merged._replace(history=merged.approved))
        is_released = released.files == package.files
        package, tip = (released, merged.approved.tip) if is_released else (package, None)
    files = packed.complete(package.files, name, package.topics)
    if args.with_commits:
        if tip is None:
            raise UsageError(
                "--with-commits names the commit of every version, and the files here bring what is not approved yet",
                fix="merge it first, or leave --with-commits out",
            )
        files = {**files, f"{name.replace('.', '/')}/versions.json": packed.commits(package.topics)}
    wheel = None
    if args.wheel:
        wheel = packed.wheel(files, name, package.topics, tip=tip, version=args.wheel_version)
    if args.zip:
        zipped = output_file(args.zip, context, name=f"{name}.zip")
        packed.pack(files, zipped, below=context.top)
        print(args.zip if zipped.name == Path(args.zip).name else Path(args.zip, zipped.name))
    if wheel:
        packed.pack(wheel.files, Path(context.directory, args.wheel, wheel.name), below=context.top)
        print(Path(args.wheel, wheel.name))
    return 0


def _judge_usage(args: argparse.Namespace) -> None:
    is_packed = args.zip or args.wheel
    if is_packed and (args.check or args.out):
        raise UsageError("--zip and --wheel pack the package instead: leave --check and --out out")
    if args.wheel_version and not args.wheel:
        raise UsageError("--wheel-version needs --wheel")
    if args.with_commits and not is_packed:
        raise UsageError("--with-commits needs --zip or --wheel: what is committed cannot name its own commit")


def _chosen(args: argparse.Namespace, read: ReadingSetup) -> list[Approved]:
    """Return the declared topics with a schema that --topic and --namespace select."""
    from schemactl.codegen.topics import Approved

    approved, found = read.approved, {}
    for name, topic in approved.catalog.topics.items():
        current = approved.current(name)
        if current is not None and not topic.deleted:
            found[name] = Approved(topic, current)
    chosen = select_known(found, args.topic, args.namespace, where="the declared files with a schema")
    return [
        replace(one, on_target=read.on_target(one.topic.load(), _reader(one)))
        for one in (found[name] for name in found if name in chosen)
    ]


def _reader(one: Approved) -> int | None:
    """Return the number of the version to read messages as; None if the declaration pins one that does not exist."""
    try:
        return one.reader[0]
    except InvalidSchema:
        # `package_files` reports all such topics together.
        return None
