"""`import`: write declarations for the topics of a registry, as files or as commits."""

from __future__ import annotations

import argparse
import os
import posixpath
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, add_timeout
from schemactl.cli.target_selection import choose_approved_target
from schemactl.cli.topic_selection import add_selection, parse_namespaces
from schemactl.core.atomic_files import write
from schemactl.core.catalog import Catalog
from schemactl.core.errors import DeclarationError, HistoryError, MissingProject, SchemactlError, UsageError, join_first
from schemactl.core.names import NamespaceName, TargetNames, select_known_topics
from schemactl.core.policies import SETTINGS
from schemactl.core.project import Project, Target
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count, format_time, get_name_type

if TYPE_CHECKING:
    from schemactl.core.schema import Commit
    from schemactl.deploy.registry_import import ImportResult
    from schemactl.history.git import Repository
    from schemactl.history.new_commits import NewCommit
    from schemactl.registry.interface import Registry


def configure_import(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `import`."""
    parser.description = (
        "Write declarations of everything in a registry that the files do not declare yet: namespaces with their policies, "
        "topics, and their definitions, formatted. Existing files are not overwritten, and the registry is not changed. "
        "Every definition is verified before it is written; parts that cannot be declared are skipped and listed."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl import --target prod --commit-each-version     every version as a commit: Git counts as the registry does\n"
        "  schemactl import --target prod --one-commit              only the latest versions\n"
        "  schemactl import --target prod --namespace shop/sales    files to look at, without a commit\n"
        "  schemactl import --target prod --registry https://pulsar.example.com:8443    in a repository without project file\n"
    )
    add_selection(parser)
    add_options(
        parser,
        "--registry URL: where there is no project file: the target's registry, written into a new one",
        "--out DIR: the folder for declarations, inside one of the project's roots (default: the first of them)",
    )
    commits = parser.add_mutually_exclusive_group()
    add_options(
        commits,
        "--one-commit: commit the latest version of everything at once",
        "--commit-each-version: a commit for each version that can be read, in order of their upload and with its time",
    )
    add_timeout(parser)
    add_result_formats(parser)


def run_import(args: argparse.Namespace, context: Context) -> int:
    """Write the declarations of everything in the registry that can be declared."""
    from schemactl.declare import reader
    from schemactl.declare.writer import project_text
    from schemactl.deploy.registry_import import import_catalog

    repository = context.repository
    if repository.top is None:
        raise UsageError("a bare repository has no working tree to import into", fix="work in a clone of it")
    top = repository.top
    project, is_new = _load_or_make_project(args, context, top)
    # Without a project file, the user has named the registry on the command line.
    trusting_context = replace(context, trust_working_tree=is_new or context.trust_working_tree)
    chosen = choose_approved_target(args.target, project, str(top), trusting_context)
    target = chosen.target
    if args.out is None:
        root = project.roots[0]
    else:
        root = _relative_to_top(args.out, context, top)
        if not any(not parent or root == parent or root.startswith(f"{parent}/") for parent in project.roots):
            raise UsageError(
                f"--out {args.out} is in none of the roots of {project.path}: {', '.join(project.roots)}",
                fix="name a folder inside one of them, or add it to `roots`",
            )
    files = context.open_files(project, str(top))
    declared = Catalog() if is_new else reader.read_valid_catalog(files, project)
    with closing(chosen.open(context)) as registry:
        registered = _read_registry(args, registry, target)
        imported = import_catalog(
            registered,
            root=root,
            target=target.name,
            release=registry.release,
            declared=declared,
            exists=lambda path: os.path.lexists(top / path),
            every_version=args.commit_each_version,
        )
        if is_new:
            root_in_project = project.roots[0].removeprefix(f"{project.folder}/" if project.folder else "")
            text = project_text(
                root=root_in_project, target=target.name, registry=target.registry, release=registry.release
            )
            imported = replace(imported, namespace_files={project.path: text, **imported.namespace_files})
    tip = _write_declarations(args, context, repository, imported, target)
    ref_elsewhere = _find_ref_elsewhere(context, project, tip) if tip else None
    context.record(
        target=target.name,
        registry=target.registry,
        namespaces=imported.counts[0],
        topics=imported.counts[1],
        written=sorted(imported.latest),
        committed=tip.id if tip else None,
        shared_files=list(imported.shared_files),
        notes=[{get_name_type(note.name): str(note.name), "message": note.message} for note in imported.notes],
        numbers_apart=[str(name) for name in imported.topics_with_other_numbers],
    )
    _print_report(args, imported, target)
    if any(imported.counts):
        _print_next_steps(args, project, imported, target, ref_elsewhere, registered)
    return 0


def _load_or_make_project(args: argparse.Namespace, context: Context, top: Path) -> tuple[Project, bool]:
    """Return the project, and whether its file has to be written."""
    from schemactl.declare import project as declare_project
    from schemactl.registry import url

    two_registries = "--registry requires a repository without project file, and there is one"
    try:
        project, _ = declare_project.load_project(context.directory, context.config)
    except MissingProject:
        pass
    except DeclarationError as error:
        if args.registry:
            raise UsageError(two_registries) from error
        raise
    else:
        if args.registry:
            raise UsageError(two_registries)
        return project, False
    if not args.registry:
        raise UsageError(
            f"{declare_project.PROJECT_FILE} not found, so no target has a registry",
            fix="pass --registry URL, or write the project file: schemactl init --bare",
        )
    try:
        url.parse(args.registry)
    except ValueError as error:
        raise UsageError(f"--registry: {error.args[0]}", fix=(*error.args, "")[1]) from None
    project_folder = Path(context.directory).resolve().relative_to(top).as_posix().removeprefix(".")
    prefix = f"{project_folder}/" if project_folder else ""
    target = Target(args.target or "local", args.registry)
    return Project(
        folder=project_folder,
        path=f"{prefix}{declare_project.PROJECT_FILE}",
        roots=(_relative_to_top(args.out or "namespaces", context, top),),
        targets={target.name: target},
    ), True


def _relative_to_top(folder: str, context: Context, top: Path) -> str:
    """Return `folder`, which may be relative to the current folder, relative to the repository's top level."""
    path = Path(os.path.normpath(Path(context.directory).resolve() / folder))
    if not path.is_relative_to(top):
        raise UsageError(f"--out {folder} is outside the repository")
    return path.relative_to(top).as_posix().removeprefix(".")


def _read_registry(args: argparse.Namespace, registry: Registry, target: Target) -> Catalog:
    """Return the selected part of the registry, by declared names."""
    from schemactl.deploy.target_catalog import rename_catalog
    from schemactl.registry.interface import Scope

    registered = registry.read_scope(parse_namespaces(args.namespace))
    topics = select_known_topics(
        frozenset(registered.topics),
        args.topic,
        args.namespace,
        where=target.name,
        known_namespaces=map(str, registered.namespaces),
    )
    topic_namespaces = frozenset(topic.namespace_name for topic in topics)
    if args.topic:
        namespaces = topic_namespaces
    else:
        namespaces = frozenset(
            name for name in registered.namespaces if not args.namespace or str(name) in args.namespace
        )
    declared_names: dict[NamespaceName, NamespaceName] = {}
    for name in sorted(namespaces | topic_namespaces):
        declared = target.names.declared(name)
        if declared is None:
            raise SchemactlError(
                f"target {target.name}: its `tenants` and `namespaces` have no declared name for {name}",
                fix=f"add `{name}: {name}` to its `namespaces`, the name to declare first; or leave it out with --namespace",
            )
        declared_names[name] = declared
    names = TargetNames(target.name, namespaces=declared_names if target.names else {})
    of_topics = frozenset(setting.name for setting in SETTINGS.values() if setting.topic_path)
    settings = dict.fromkeys(namespaces | topic_namespaces, frozenset(SETTINGS)) | dict.fromkeys(topics, of_topics)
    return rename_catalog(registry.read(Scope(namespaces, topics, settings)), names)


def _write_declarations(
    args: argparse.Namespace, context: Context, repository: Repository, imported: ImportResult, target: Target
) -> Commit | None:
    """Write the declarations as commits and return the last one, or write files only and return None."""
    from schemactl.history.new_commits import NewCommit, add_commits

    if args.commit_each_version:
        return add_commits(repository, _make_commits(imported, target))
    files = imported.latest
    if args.one_commit:
        subject = f"Import {_count_text(imported)} from {target.name}"
        return add_commits(repository, [NewCommit(f"{subject}\n", int(time.time()), files)] if files else [])
    # Write each definition before the declaration that names it, so that an interrupted import can be repeated.
    for path in sorted(files, key=lambda path: (path.endswith(".yaml"), path)):
        file = Path(repository.top or "", path)
        try:
            write(file, files[path], below=str(repository.top), is_new=True)
        except OSError as error:
            raise SchemactlError(
                f"{file} cannot be written: {error.strerror}", fix="run it again: files that were written are kept"
            ) from error
        context.say(f"wrote {path}")
    return None


def _find_ref_elsewhere(context: Context, project: Project, tip: Commit) -> str | None:
    """Return the approved ref, or None if it is at `tip`."""
    from schemactl.history.approved_history import resolve_approved_ref
    from schemactl.history.git import Repository

    try:
        # The repository that was open before has the refs as they were before the import.
        with Repository.open(context.directory) as repository:
            ref, commit = resolve_approved_ref(repository, project)
    except HistoryError:
        return project.approved
    return None if commit and commit.id == tip.id else ref


def _print_report(args: argparse.Namespace, imported: ImportResult, target: Target) -> None:
    """Print the imported counts, and notes about them."""
    if imported.notes:
        print("\n".join(on_one_line(f"{note.name}: {note.message}.") for note in imported.notes) + "\n")
    if any(imported.counts):
        print(f"Imported {_count_text(imported)} from {target.name}.")
    else:
        print("Nothing to import: everything there is declared.")
    if imported.shared_files:
        folder = posixpath.commonpath([posixpath.dirname(path) for path in imported.shared_files])
        print(
            f"{format_count(len(imported.shared_files), 'file')} with definitions that several topics share, below "
            f"{on_one_line(folder)}/; the topics list them in `references`."
        )
    older_count = sum(1 for revision in imported.revisions if revision.version.number)
    if older_count and not args.commit_each_version:
        print(
            f"{older_count} of the topics {'has' if older_count == 1 else 'have'} older versions, which the import leaves out: "
            f"Git's numbers start at 0, and those in {target.name} are higher; `schemactl log TOPIC --target "
            f"{quote(target.name)}` shows both. With --commit-each-version the numbers are equal."
        )
    if imported.topics_with_other_numbers:
        print(
            f"Version numbers of {target.name} are not Git's: messages of {join_first(imported.topics_with_other_numbers, 8)} would be "
            "decoded with the wrong schema. "
            "Record the numbers after the merge, as shown below."
        )


def _print_next_steps(
    args: argparse.Namespace,
    project: Project,
    imported: ImportResult,
    target: Target,
    ref_elsewhere: str | None,
    registered: Catalog,
) -> None:
    """Print the commands that follow an import, and the namespaces that are still open to every producer."""
    from schemactl.report.target_blocks import describe_next_step

    option = f"--target {quote(target.name)}"
    print("\nNext:")
    if not (args.one_commit or args.commit_each_version):
        print("  git add . && git commit")
    if ref_elsewhere:
        print(
            f"  merge the commits into {ref_elsewhere} by rebase or fast-forward: a squash or a merge commit would make them one version"
        )
    if imported.topics_with_other_numbers:
        print(f"  {describe_next_step(target.name)}")
    difference = f", except for {join_first(imported.unexplained, 8)}" if imported.unexplained else ""
    steps = [
        (f"schemactl plan {option}", f"nothing to do: the files equal the registry{difference}"),
        ("schemactl init", "the hook, the package, and the other missing files of a project"),
        ("schemactl check", "the files equal the approved state"),
        ("schemactl generate", "the package with which Spark and Python read the topics"),
        ("pre-commit install", "checks every commit from now on"),
    ]
    if project.generate is not None:
        steps = [step for step in steps if step[0] != "schemactl init"]
    for command, purpose in steps:
        print(f"  {command:<34} {purpose}")
    used_names = {topic.namespace_name for topic in registered.topics}
    open_namespaces = sorted(
        name
        for name, namespace in registered.namespaces.items()
        if name in used_names and namespace.policies.is_allow_auto_update_schema is not False
    )
    if open_namespaces:
        print(
            f"\nEvery producer may still register versions without a review in {join_first(open_namespaces, 8)} "
            "(is_allow_auto_update_schema is not false). To close them, one by one:\n"
            f"  schemactl clients {option} --namespace {quote(str(open_namespaces[0]))}\n"
            "      the connected clients: a producer with a schema that is not declared will be rejected\n"
            "  write `is_allow_auto_update_schema: false` into the declaration of the namespace, merge it, then\n"
            f"  schemactl apply {option}"
        )


def _count_text(imported: ImportResult) -> str:
    namespaces, topics = imported.counts
    return f"{format_count(namespaces, 'namespace')} and {format_count(topics, 'topic')}"


def _make_commits(imported: ImportResult, target: Target) -> Iterator[NewCommit]:
    """Yield a commit of everything that has no versions, then a commit of each version."""
    from schemactl.history.new_commits import NewCommit

    now_s = int(time.time())
    if imported.namespace_files:
        yield NewCommit(f"Import the namespaces of {target.name}\n", now_s, imported.namespace_files)
    for revision in imported.revisions:
        number, uploaded_ms = revision.version.number, revision.version.timestamp_ms
        upload_text = f", uploaded {format_time(uploaded_ms)} UTC" if uploaded_ms else ""
        yield NewCommit(
            f"{revision.topic}: version {number} of {target.name}\n\nImported from {target.registry}{upload_text}.\n",
            # A registry may report any time; Git gets neither a negative one nor one in the future.
            min(max(uploaded_ms // 1000, 0), now_s) if uploaded_ms else now_s,
            revision.files,
        )
