"""`schemactl list`: the declared topics."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.selection import add_filters
from schemactl.core.errors import DeclarationError, UsageError, did_you_mean
from schemactl.core.json_values import commit_value, metadata_value
from schemactl.core.names import NamespaceName, TopicName, select_known
from schemactl.core.terminal import on_one_line, table, terminal_width
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.checks.check_report import TopicCheck
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.json_values import Json
    from schemactl.core.project import Project
    from schemactl.declare.reader import Declared
    from schemactl.history import History, Repository


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    parser.description = (
        "List the topics that the files declare, each with its schema type, the version in force, the compatibility strategy in "
        "force and the level that sets it, owner and labels, and what the files change of what was approved. A narrow terminal has no "
        "place for all of it: `| cat` shows every column."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl list 'shop/sales/*' '!*-dead-letter'\n"
        "  schemactl list --owner team-orders --label tier=gold --type AVRO\n"
        "  schemactl list --changed                    what a commit of these files would change\n"
        "  schemactl list --format json                with descriptions, links, and where each is declared\n"
        "  schemactl list --format codeowners > .github/CODEOWNERS\n"
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="the same as --topic")
    add_filters(parser)
    add_options(
        parser,
        "--owner NAME...: only what this one answers for; may be repeated",
        "--label NAME[=TEXT]...: only what has this label; may be repeated, and then all are needed",
        "--type TYPE...: only this schema type; may be repeated",
    )
    add_options(parser, "--deprecated: only what is deprecated", "--changed: only what the files change")
    choices = ("text", "json", "codeowners")
    text = "(default: text); codeowners: who reviews which file, for GitHub and GitLab"
    parser.add_argument("--format", choices=choices, default="text", help=text)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A topic of the list.

    Attributes:
        topic: the topic as declared by the files, or as approved if they no longer declare it.
        catalog: the catalog that has the topic.
        version: the number of the version in force; None: there is none.
        change: what the files change of the topic; None: nothing.
    """

    topic: Topic
    catalog: Catalog
    version: int | None
    change: TopicCheck | None

    def value(self, project: Project) -> dict[str, Any]:
        """Return the JSON value."""
        topic = self.topic
        strategy, level = self.catalog.strategy(topic.name, project.defaults)
        return {
            "topic": str(topic.name),
            "type": topic.schema.type.name if topic.schema else None,
            "version": self.version,
            "strategy": strategy.value,
            "level": level,
            "lifecycle": topic.lifecycle,
            **metadata_value(self.catalog.metadata(topic.name)),
            "change": self.change.change if self.change else None,
            "next_version": self.change.version if self.change else None,
            "file": topic.source.path if topic.source else None,
            "line": topic.source.line if topic.source else None,
        }


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed."""
    project, _ = context.project()
    declared, approved, entries = _read(context.repository, project, context)
    patterns = [*args.topics, *args.topic]
    names = [each.topic.name for each in entries]
    chosen = select_known(names, patterns, args.namespace, where="the files or the approved history")
    values = [(each, each.value(project)) for each in entries if each.topic.name in chosen]
    _require_known(args, [value for _, value in values])
    values = [(each, value) for each, value in values if _is_asked(value, args)]
    if args.format == "codeowners":
        _print_codeowners(declared, frozenset(each.topic.name for each, _ in values), context)
    elif args.format == "json":
        topics = [value for _, value in values]
        context.report_json(ref=approved.ref, tip=commit_value(approved.tip), topics=topics)
    elif values:
        columns = terminal_width()
        rows = _rows([value for _, value in values], columns)
        context.report("\n".join(table(rows, width=columns, numeric={2}, whole={0})))
    elif entries:
        context.report("No topic matches.")
    else:
        context.report(f"Neither the files nor {approved.ref} declare a topic.")
    return 0


def _read(
    repository: Repository, project: Project, context: Context
) -> tuple[Declared | None, History, list[_Entry]]:
    """Return the declared files, the approved history, and the topics of both by name.

    In a bare repository, and if the files have problems (which prints a note), the topics are those that were approved.
    """
    from schemactl import history
    from schemactl.checks.check import Fork, check
    from schemactl.checks.environments import read_files
    from schemactl.declare import files as declare_files

    progress = context.reading_history()
    forked = history.read_forked(repository, project, repository.commit("HEAD"), progress=progress)
    approved, base = forked.approved, forked.base
    context.note(*approved.notes)
    if repository.top is None:
        return None, approved, [*_entries(approved, approved.catalog, {})]
    worktree = declare_files.WorktreeFiles(str(repository.top), folders=project.roots)
    files = history.HashedFiles(worktree, repository.object_format)
    try:
        # What targets differ in is no part of the list.
        declared = read_files(repository, replace(project, targets={}), files).declared
    except DeclarationError as error:
        more = f" and {counted(len(error.problems) - 1, 'problem')} more" if len(error.problems) > 1 else ""
        context.note(f"this is what was approved, for the files cannot be read: {error.problems[0]}{more}")
        return None, approved, [*_entries(approved, approved.catalog, {})]
    changes = forked.changes(files, declared)
    report = check(
        declared.catalog,
        approved=approved.catalog,
        project=project,
        label="",
        fork=Fork(base.catalog, base.tip, changes.unchanged, changes.combined, changes.settled),
    )
    found = {each.topic: each for each in report.topics}
    return declared, approved, [*_entries(approved, declared.catalog, found)]


def _entries(
    approved: History, catalog: Catalog, changes: Mapping[TopicName, TopicCheck]
) -> Iterator[_Entry]:
    gone = {name for name, each in changes.items() if each.change == "removed"}
    for name in sorted({*catalog.topics, *gone}):
        held = approved.catalog if name in gone else catalog
        if not held.topics[name].deleted:
            yield _Entry(held.topics[name], held, approved.current(name), changes.get(name))


def _is_asked(value: Mapping[str, Any], args: argparse.Namespace) -> bool:
    labels = (label.partition("=") for label in args.label)
    return (
        (not args.owner or value["owner"] in args.owner)
        and (not args.type or value["type"] in args.type)
        and all(
            name in value["labels"] and (not equals or value["labels"][name] == text)
            for name, equals, text in labels
        )
        and (not args.deprecated or value["deprecated"] is not None)
        and (not args.changed or value["change"] is not None)
    )


def _require_known(args: argparse.Namespace, values: list[dict[str, Any]]) -> None:
    """Raise UsageError for an owner, label or type that none of the topics has."""
    known = {
        "--owner": (args.owner, {value["owner"] for value in values} - {""}),
        "--label": (
            [each.partition("=")[0] for each in args.label],
            {name for each in values for name in each["labels"]},
        ),
        "--type": (args.type, {value["type"] for value in values} - {None}),
    }
    for option, (asked, held) in known.items():
        for text in asked:
            if text not in held:
                raise UsageError(f"{option} {text}: no topic has that{did_you_mean(text, held)}")


_LEFT_OUT_FIRST: Final = ("labels", "deprecated", "set by", "owner")
"""The columns that a narrow terminal has no place for."""


def _rows(values: list[Json], width: int | None) -> list[list[str]]:
    """Return the head and a row for each topic, for a terminal of that width, without empty columns."""
    columns: dict[str, Callable[[Json], object]] = {
        "topic": lambda value: value["topic"].removeprefix("persistent://"),
        "type": lambda value: value["type"],
        "version": lambda value: value["version"],
        "strategy": lambda value: value["strategy"],
        "set by": lambda value: value["level"],
        "owner": lambda value: value["owner"],
        "labels": lambda value: ",".join(f"{name}={text}" for name, text in value["labels"].items()),
        "deprecated": lambda value: value["deprecated"] and value["deprecated"].get("remove_after", "yes"),
        "change": _change,
    }
    cells = {name: [of(value) for value in values] for name, of in columns.items()}
    shown = {
        name: [name.upper(), *("-" if each in (None, "") else on_one_line(str(each)) for each in column)]
        for name, column in cells.items()
        if name in ("type", "version") or any(each not in (None, "") for each in column)
    }
    for name in _LEFT_OUT_FIRST:
        if width is not None and sum(2 + max(map(len, column)) for column in shown.values()) - 2 > width:
            shown.pop(name, None)
    return [list(row) for row in zip(*shown.values(), strict=True)]


def _change(value: Mapping[str, Any]) -> str | None:
    """Return in a few words what the files change of a topic."""
    number = value["next_version"]
    match value["change"]:
        case "added":
            return "new"
        case "new version" | "older version":
            return f"version {number}"
        case other:
            return cast("str | None", other)


def _print_codeowners(declared: Declared | None, chosen: frozenset[TopicName], context: Context) -> None:
    """Print the owners of all files of the `chosen` topics and of their namespaces."""
    from schemactl.report import github

    if declared is None:
        raise UsageError("--format codeowners names files: it needs a working tree without problems")
    owners: defaultdict[str, set[str]] = defaultdict(set)
    catalog = declared.catalog
    names: list[NamespaceName | TopicName] = [*chosen, *{name.namespace_name for name in chosen}]
    for name in names:
        held = catalog.get(name)
        owner = catalog.metadata(name).owner
        if owner and held and held.source:
            definition = declared.dependencies.get(name, ()) if isinstance(name, TopicName) else ()
            for path in (held.source.path, *definition):
                # Of a folder that offers types, only what is taken has an owner.
                if not path.endswith("/"):
                    owners[path].add(owner)
    text, unknown = github.render_codeowners(owners)
    for each in unknown:
        context.note(
            f"left out: `{each}` is none to GitHub: write @user, @organization/team or an e-mail address"
        )
    print(text, end="")
