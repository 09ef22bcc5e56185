"""`generate`: write, check or pack the package with which Spark and Python read the topics."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, get_args

from schemactl.cli.context import Context
from schemactl.cli.package_maker import GeneratedPackage, PackageMaker
from schemactl.cli.parser import add_options, add_timeout
from schemactl.cli.reading_setup import ReadingSetup, add_recursion_depth
from schemactl.cli.states import States
from schemactl.cli.target_selection import add_target, choose_approved_target
from schemactl.cli.topic_selection import VERSION_HELP, add_filters, resolve_output_file, select_readable
from schemactl.core.catalog import Catalog
from schemactl.core.errors import DeclarationError, ExitCode, SchemactlError, UsageError, join_first
from schemactl.core.project import ClassKind, Generate, Project
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.checks.project_files import CheckCache
    from schemactl.codegen.manifest import Manifest
    from schemactl.declare.files import Files
    from schemactl.history.merge import Merged


_MAX_LISTED: Final = 10
"""The most versions or findings that are listed by name."""


def configure_generate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `generate`."""
    parser.description = (
        "Write an importable package (`generate` in the project file sets its name and folder). It contains, for "
        "every topic, the schemas, the types of its rows, its columns, and functions to decode and encode messages of "
        "every version. The package has the versions that exist after a merge of the working tree: commit it with the "
        "change. Versions that are not approved yet are listed on "
        "standard error, and the exit code is 100 if `check` rejects the content; --approved omits versions that are "
        "not approved. It has the version numbers of all targets, from "
        "their numbers files. With a target, and without --check, verify that the registry's numbers are the recorded ones (exit 100, and "
        "nothing is written, if not); the package itself comes from files and Git alone."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl generate                           write the package, to be committed\n"
        "  schemactl generate --check                   is it up to date? (exit 100 if not; for CI)\n"
        "  schemactl generate --staged                  after `git add -p`, without what is not staged\n"
        "  schemactl generate --approved --wheel        a release: only approved versions\n"
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
        "--check: write nothing; exit 100 if a file would change; only files are compared, and no registry is contacted",
        "--staged: the package of the index, not of the working tree",
        "--rebase: assume a rebase merge, in which every commit of the branch adds its versions, not only the last commit",
    )
    scope = parser.add_mutually_exclusive_group()
    add_options(
        scope,
        "--approved: the package of the approved ref alone, without the working tree",
        "--draft: write the package even if `check` rejects its content",
    )
    add_options(
        parser,
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
    add_options(parser, "--with-commits: also pack `versions.json`: the commit of every version, and its time")
    parser.add_argument(
        "--classes",
        choices=get_args(ClassKind),
        help="also write classes for the records of each topic (default: `generate.classes`)",
    )
    add_target(
        parser,
        "the target whose numbers count where a program selects none with for_target or SCHEMACTL_TARGET (default: `generate.target`, "
        "else Git's numbers)",
        from_environment=False,
    )
    add_timeout(parser)
    add_recursion_depth(parser)
    add_filters(parser)


def run_generate(args: argparse.Namespace, context: Context) -> int:
    """Write, check or pack the package.

    Return 100 if --check finds stale files or the registry of the target contradicts the record, else 0.

    Raises:
        ContentRejected: if `check` rejects content that is not approved yet, unless --draft is given; nothing is written.
        DeclarationError: after the package, if a requested topic cannot be read; the package has it as approved.
    """
    from schemactl.checks.project_files import CheckCache

    _require_compatible_options(args)
    project, top = _load_project(args, context)
    generate = project.generate
    if generate is None:
        raise SchemactlError(
            f"{project.path} has no `generate`",
            fix='add `generate: {package: my_schemas, out: generated, spark: "4.1"}`',
        )
    if args.of:
        return _print_classes(args, context, project, generate)
    generate = replace(generate, classes=args.classes or generate.classes)
    maker = PackageMaker(args, context, project, top, generate, CheckCache())
    merged = None if args.approved else maker.merge(by_commit=args.rebase)
    error = None
    if merged and merged.declared and merged.declared.broken:
        # The problems of the requested topics; the package has them as approved.
        topics = merged.history.catalog.topics
        names = [name for name, topic in topics.items() if topic.schema and not topic.deleted]
        broken = replace(merged.declared, catalog=Catalog())
        where = "the declared files with a schema"
        _, error = select_readable(broken, args.topic, args.namespace, context, others=names, where=where)
    is_packed = args.zip or args.wheel
    # A comparison trusts no record, and the numbers of a registry are verified for all topics.
    is_recorded = not (args.check or is_packed or args.target or generate.target)
    manifest = maker.read_manifest() if is_recorded else None
    package = maker.make_package(merged, manifest)
    rejection = None
    if merged is not None and merged.history is not merged.approved_history:
        _list_pending_versions(package, merged, context, staged=args.staged)
        rejection = None if args.draft else _find_rejection(args, context, maker.check_cache)
        if rejection and not args.check:
            if error is None:
                raise rejection
            print(f"schemactl: {rejection}", file=sys.stderr)
            raise error
    reported = error.problems if error else ()
    context.note(*(note for note in package.history.notes if note.problem not in reported))
    for name, reason in package.files.skipped.items():
        context.note(f"{name}: skipped: {reason}")
    if package.files.skipped:
        context.note(
            "for recursive records, set `recursion_depth` under `generate` of the topic or the project: deeper records are dropped"
        )
    # The registry can only reject the package: the same files always make the same package. So a comparison of files asks no registry.
    if not args.check and package.target is not None:
        place = choose_approved_target(package.target, project, top, context)
        setup = ReadingSetup(project, package.history, place, package.records[package.target], {})
        setup.verify_numbers((packaged_topic.topic for packaged_topic in package.topics), context)
    if is_packed:
        exit_code = _pack(package, maker)
    elif context.repository.top is None and args.out is None:
        raise UsageError("a bare repository has no working tree for the package: name a folder with --out")
    else:
        exit_code = _check(package, maker) if args.check else _write(package, maker, manifest)
    if error:
        raise error
    if rejection:
        raise rejection
    return exit_code


def _load_project(args: argparse.Namespace, context: Context) -> tuple[Project, str]:
    """Return the project of the working tree, the index (--staged) or the approved ref (--approved), and the top of the repository.

    Raises:
        SchemactlError: with --approved, if the approved ref has no project.
    """
    from schemactl.declare.project import load_project
    from schemactl.history.approved_history import find_approved_project
    from schemactl.history.commit_files import CommitFiles, IndexFiles

    if args.staged:
        return load_project(context.directory, context.config, files=IndexFiles(context.repository))
    try:
        project, top = context.project()
    except DeclarationError:
        head = context.repository.commit("HEAD")
        if not args.approved or head is None:
            raise
        # The project file of the working tree does not count.
        files = CommitFiles(context.repository, head)
        project, top = load_project(context.directory, context.config, files=files)
    if not args.approved:
        return project, top
    approved_project = find_approved_project(context.directory, context.config, project, local=True)
    if approved_project is None:
        raise SchemactlError(
            f"--approved: no commit of the approved ref has {project.path} yet",
            fix="merge the project first, or leave --approved out: the package then has the versions of the working tree",
        )
    return approved_project.project, top


class ContentRejected(SchemactlError):
    """`check` rejects content that the package would have."""

    exit_code = ExitCode.NEGATIVE


def _list_pending_versions(package: GeneratedPackage, merged: Merged, context: Context, *, staged: bool) -> None:
    """Print the versions of the package that are not approved yet, each with the reason."""
    from schemactl.history.commit_files import CommitFiles

    repository = context.repository
    files_at_head = CommitFiles(repository, repository.commit("HEAD"))
    approved_topics = merged.approved_history.catalog.topics
    ref = merged.approved_history.ref
    lines = []
    for topic in (packaged_topic.topic for packaged_topic in package.topics):
        approved_topic = approved_topics.get(topic.name)
        approved_numbers = {version.number for version in approved_topic.versions} if approved_topic else set()
        versions = [version for version in topic.versions if version.number not in approved_numbers]
        if not versions:
            continue
        dependencies = merged.declared.dependencies.get(topic.name, ()) if merged.declared else ()
        paths = {*([topic.source.path] if topic.source else []), *dependencies}
        changed_paths = [path for path in sorted(paths) if _is_changed(path, merged.files, files_at_head)]
        for version in versions:
            reason = f"committed, and not in {ref}"
            definitions_of_others = {
                kind.schema.source.path for kind in topic.kinds if kind.key != version.kind and kind.schema.source
            }
            own_paths = [path for path in changed_paths if path not in definitions_of_others]
            # The kinds of a topic can get their versions in one commit.
            if version.commit == versions[-1].commit and own_paths:
                reason = f"{join_first(own_paths, 1)} {'staged' if staged else 'changed'}, and not committed"
            kind = f"#{version.kind}" if version.kind else ""
            lines.append(f"{topic.name.schema_id}{kind}@{version.number}: {reason}")
    if lines:
        context.note(f"{format_count(len(lines), 'version')} not approved yet:{_list_lines(lines)}")


def _list_lines(lines: Sequence[str]) -> str:
    """Return the first lines of a list below a sentence, and the number of the others."""
    omitted = [f"and {len(lines) - _MAX_LISTED:,} more"] if len(lines) > _MAX_LISTED else []
    return "".join(f"\n  {line}" for line in [*lines[:_MAX_LISTED], *omitted])


def _is_changed(path: str, files: Files, files_at_head: Files) -> bool:
    """Return whether a file exists and has another content than at HEAD."""
    return files.kind(path) == "file" and not (
        files_at_head.kind(path) == "file" and files.read(path) == files_at_head.read(path)
    )


def _find_rejection(args: argparse.Namespace, context: Context, check_cache: CheckCache) -> ContentRejected | None:
    """Return the errors of `check` on the topics of the package, or None if it accepts them.

    `check_cache` has the files that were read for the package.
    """
    from schemactl.checks.check_report import UNDECIDED
    from schemactl.checks.checked_files import CheckRequest
    from schemactl.checks.project_check import check_project

    request = CheckRequest(
        context.directory,
        context.config,
        staged=args.staged,
        topics=tuple(args.topic),
        namespaces=tuple(args.namespace),
        check_cache=check_cache,
        requires_base=False,
    )
    try:
        report = check_project(request, context.deadline, repository=context.repository)
    except DeclarationError:
        # The caller reports the problems of requested topics, and the package has the others as approved.
        return None
    errors = [finding for finding in report.findings if finding.severity == "error" and finding.topic]
    errors = [finding for finding in errors if finding.rule != UNDECIDED]
    if not errors:
        return None
    lines = [
        f"{finding.source or finding.topic}: {finding.rule}: {' '.join(finding.message.splitlines())}"
        for finding in errors
    ]
    check = "schemactl check" + (" --staged" if args.staged else "")
    return ContentRejected(
        f"`{check}` rejects the content of the package:{_list_lines(lines)}",
        fix="fix or waive these findings; or add --draft to write the package anyway, or --approved for the approved versions alone",
    )


def _require_compatible_options(args: argparse.Namespace) -> None:
    is_packed = args.zip or args.wheel
    if is_packed and (args.check or args.out):
        raise UsageError("--zip and --wheel pack the package instead, and cannot be combined with --check or --out")
    if args.wheel_version and not args.wheel:
        raise UsageError("--wheel-version requires --wheel")
    if args.with_commits and not is_packed:
        raise UsageError("--with-commits requires --zip or --wheel: a committed file cannot name its own commit")
    if args.approved and (args.staged or args.rebase):
        raise UsageError(
            "--approved is the package of the approved ref: leave "
            + ("--staged" if args.staged else "--rebase")
            + " out"
        )
    if args.staged and args.of:
        raise UsageError(f"--staged applies to the whole package, and cannot be combined with {args.of}")


def _print_classes(args: argparse.Namespace, context: Context, project: Project, generate: Generate) -> int:
    """Print the classes of one version, without making the package."""
    from schemactl.codegen.class_module import topic_classes
    from schemactl.codegen.topic_struct import decoded_options

    kind = args.classes or generate.classes
    if kind is None or args.check or args.zip or args.wheel or args.out:
        raise UsageError(f"{args.of}: a single version requires --classes, which prints its classes")
    named = States(context, [args.of]).find_definition(args.of)
    if named.info is None:
        raise UsageError(f"{named.topic.name} has no schema")
    generate = generate.with_recursion_depth(named.topic.recursion_depth)
    generate = generate.with_recursion_depth(args.recursion_depth)
    options = decoded_options(generate)
    text = topic_classes(named.topic.name, named.number or 0, named.info.load(), kind, options, project.release)
    if not text:
        raise SchemactlError(
            f"{named.topic.name} is {named.info.type.name}, not an Avro record: it has no classes",
            fix="for protobuf, `protoc --python_out` writes classes",
        )
    print(text, end="")
    return 0


def _check(package: GeneratedPackage, maker: PackageMaker) -> int:
    from schemactl.codegen.package_folder import compare, find_numbered_schema

    args, out, merged = maker.args, maker.out, package.merged
    out_text = maker.generate.out if args.out is None else args.out
    brought = maker.make_merge_predicate(merged)
    difference = compare(package.files, out, below=maker.context.top, brought=brought)
    if difference and merged and merged.has_commits and not args.rebase:
        rebased = maker.make_package(maker.merge(by_commit=True))
        rebased_difference = compare(rebased.files, out, below=maker.context.top, brought=brought)
        if not rebased_difference:
            maker.context.say(
                "note: the package is correct if the branch is merged by rebase; a merge commit or a squash gives its versions other numbers"
            )
            difference = rebased_difference
    stale = sorted([*difference.changed, *difference.extra, *difference.foreign])
    for name in stale:
        print(f"stale: {out_text}/{name}")
    maker.context.summarize(f"{package.files.count} files, {len(stale)} stale.")
    if not stale:
        return 0
    # Schema files in the folder whose text has another version number now.
    versions_by_text: dict[tuple[str, str], int] = {}
    for name, text in package.files.items():
        if schema_file := find_numbered_schema(name):
            versions_by_text.setdefault((schema_file.module, text), schema_file.version)
    for name in difference.changed:
        schema_file = find_numbered_schema(name)
        path = out / name
        if schema_file is None or not path.is_file():
            continue
        module, version = schema_file.module, schema_file.version
        new_version = versions_by_text.get((module, path.read_text("utf-8", "replace")))
        if new_version is not None and new_version != version:
            print(
                f"stale number: version {version} of {module} here becomes version {new_version}, because another "
                f"version {version} was approved in the meantime"
            )
    command = "schemactl generate" + (" --staged" if args.staged else "") + (" --rebase" if args.rebase else "")
    if merged and merged.is_behind:
        ref = merged.approved_history.ref
        print(f"{ref} has new commits since this branch was created. Run `git merge {quote(ref)}`, then `{command}`.")
    else:
        print(f"Run `{command}`, and commit what it writes.")
    return ExitCode.NEGATIVE


def _write(package: GeneratedPackage, maker: PackageMaker, earlier: Manifest | None) -> int:
    """Write the package and its manifest; `earlier` is the manifest of the files before."""
    from schemactl.codegen.package_folder import compare, write

    out, below, merged = maker.out, maker.context.top, package.merged
    brought, unchanged = maker.make_merge_predicate(merged), package.files.unchanged
    difference = compare(package.files, out, below=below, brought=brought, unchanged=unchanged)
    created = sum(not (out / name).exists() for name in difference.changed)
    write(package.files, out, difference, below=below)
    updated, deleted = len(difference.changed) - created, len(difference.extra)
    maker.context.summarize(f"{package.files.count} files: {created} created, {updated} updated, {deleted} deleted.")
    # The texts and the manifest of a large package need not be in memory together.
    package.files.clear()
    tip = package.approved.tip
    if earlier and tip and earlier.tip == tip.id and not (difference or package.topics):
        manifest: Manifest | None = earlier
    else:
        manifest = maker.make_manifest(package, earlier)
        # Of a branch that is behind, files that the merge will bring are not as generated.
        if manifest and not (merged and merged.is_behind):
            maker.save_manifest(manifest)
    if merged and merged.has_commits and not maker.args.rebase:
        rebased = maker.make_package(maker.merge(by_commit=True), manifest).files
        if compare(rebased, out, below=below, brought=brought, unchanged=rebased.unchanged):
            maker.context.say(
                "note: if this branch is merged by rebase, its versions get other numbers: run `generate --rebase`"
            )
    return 0


def _pack(package: GeneratedPackage, maker: PackageMaker) -> int:
    from schemactl.codegen.package_folder import pack
    from schemactl.codegen.wheel import complete, make_wheel, render_commits

    args, context, name = maker.args, maker.context, maker.generate.package
    tip, merged = package.history.tip, package.merged
    if merged and merged.history is not merged.approved_history:
        # A package that equals the package of the approved history is a release of its tip.
        released = maker.make_package(merged._replace(history=merged.approved_history))
        is_released = released.files == package.files
        package, tip = (released, merged.approved_history.tip) if is_released else (package, None)
    files = complete(package.files, name, package.topics)
    if args.with_commits:
        if tip is None:
            raise UsageError(
                "--with-commits names the commit of every version, and the files here add content that is not approved yet",
                fix="merge it first, or leave --with-commits out",
            )
        files = {**files, f"{name.replace('.', '/')}/versions.json": render_commits(package.topics)}
    wheel = make_wheel(files, name, package.topics, tip=tip, version=args.wheel_version) if args.wheel else None
    if args.zip:
        zip_path = resolve_output_file(args.zip, context, name=f"{name}.zip")
        pack(files, zip_path, below=context.top)
        print(args.zip if zip_path.name == Path(args.zip).name else Path(args.zip, zip_path.name))
    if wheel:
        pack(wheel.files, Path(context.directory, args.wheel, wheel.name), below=context.top)
        print(Path(args.wheel, wheel.name))
    return 0
