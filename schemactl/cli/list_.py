"""`list`: show the topics that a project declares."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.topic_selection import add_filters
from schemactl.core.errors import DeclarationError, SchemactlError, UsageError, did_you_mean
from schemactl.core.json_values import Json, commit_value, metadata_value
from schemactl.core.names import NamespaceName, TopicName, select_known_topics
from schemactl.core.terminal import format_table, get_terminal_width, on_one_line
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.checks.check_report import TopicCheck
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.project import Project
    from schemactl.declare.reader import Declared
    from schemactl.history.approved_history import History


_FIRST_HIDDEN_COLUMNS: Final = ("labels", "deprecated", "set by", "owner")
"""The columns of `list` that a narrow terminal hides, in this order."""


def configure_list(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    parser.description = (
        "List the topics that the files declare, each with its schema type, the version in force, the compatibility strategy in "
        "force and the level that sets it, owner and labels, and the changes of the files against the approved state. "
        "Narrow terminals hide columns; pipe to `cat` to see all of them."
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
        "--owner NAME...: only topics with this owner; may be repeated",
        "--label NAME[=TEXT]...: only topics with this label; if repeated, all labels are required",
        "--type TYPE...: only topics of this schema type; may be repeated",
    )
    add_options(parser, "--deprecated: only deprecated topics", "--changed: only topics that the files change")
    choices = ("text", "json", "codeowners")
    text = "(default: text); codeowners: who reviews which file, for GitHub and GitLab"
    parser.add_argument("--format", choices=choices, default="text", help=text)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A topic of the list.

    Attributes:
        topic: the topic as declared by the files, or as approved if they no longer declare it.
        catalog: the catalog that has the topic.
        version: the number of the version in force, or None if the topic has no schema.
        change: the difference between the files and the approved topic, or None if they are equal.
    """

    topic: Topic
    catalog: Catalog
    version: int | None
    change: TopicCheck | None

    def to_json(self, project: Project) -> dict[str, Any]:
        """Return the JSON value."""
        topic = self.topic
        strategy, level = self.catalog.strategy(topic.name, project.defaults)
        return {
            "topic": str(topic.name),
            "type": topic.schema.type.name if topic.schema else None,
            "kinds": [kind.key for kind in topic.kinds],
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


@dataclass(frozen=True, slots=True)
class _Listing:
    """The topics to list, sorted by name.

    Attributes:
        declared: the declared files, or None if only the approved history could be read.
        approved: the approved history.
        entries: the topics of both.
    """

    declared: Declared | None
    approved: History
    entries: list[_Entry]


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print the topics that match every option.

    Raises:
        HistoryError: after the list, if the version number of a listed topic depends on the installed protoc.
    """
    project, _ = context.project()
    listing = _read_listing(project, context)
    approved = listing.approved
    values_by_topic = {entry.topic.name: entry.to_json(project) for entry in listing.entries}
    selected = select_known_topics(
        values_by_topic, [*args.topics, *args.topic], args.namespace, where="the files or the approved history"
    )
    values_by_topic = {name: value for name, value in values_by_topic.items() if name in selected}
    words_by_option = {
        "owner": (args.owner, {value["owner"] for value in values_by_topic.values()} - {""}),
        "label": (
            [label.partition("=")[0] for label in args.label],
            {name for value in values_by_topic.values() for name in value["labels"]},
        ),
        "type": (args.type, {value["type"] for value in values_by_topic.values()} - {None}),
    }
    for option, (words, known_words) in words_by_option.items():
        for word in words:
            if word not in known_words:
                raise UsageError(f"--{option} {word}: no topic has this {option}{did_you_mean(word, known_words)}")
    values_by_topic = {name: value for name, value in values_by_topic.items() if _matches_filters(value, args)}
    values = [*values_by_topic.values()]
    if args.format == "codeowners":
        _print_codeowners(listing.declared, frozenset(values_by_topic), context)
    elif args.format == "json":
        topics = {entry.topic.name: entry.topic for entry in listing.entries}
        for name, value in values_by_topic.items():
            schema = topics[name].schema
            try:
                value["properties"] = dict(schema.load().properties) if schema else {}
            except SchemactlError:
                # The definition cannot be read.
                value["properties"] = None
        context.report_json(ref=approved.ref, tip=commit_value(approved.tip), topics=values)
    elif values:
        columns = get_terminal_width()
        rows = _make_topic_rows(values, columns)
        context.report("\n".join(format_table(rows, width=columns, numeric={2}, whole={0})))
    elif listing.entries:
        context.report("No topic matches.")
    else:
        context.report(f"Neither the files nor {approved.ref} declare a topic.")
    for name in values_by_topic:
        if error := approved.undecided.get(name.schema_id):
            raise error
    return 0


def _read_listing(project: Project, context: Context) -> _Listing:
    """Read the files and the approved history.

    In a bare repository, and if the files have problems (which prints a note), the topics are the approved ones.
    """
    from schemactl.checks.check import BranchPoint, check_catalog
    from schemactl.checks.project_files import read_files
    from schemactl.history.commit_files import HashedFiles
    from schemactl.history.merge import read_forked

    repository, progress = context.repository, context.reading_history()
    forked = read_forked(repository, project, repository.commit("HEAD"), progress=progress)
    approved = forked.approved_history
    context.note(*approved.notes)
    if repository.top is None:
        return _Listing(None, approved, _make_entries(approved, approved.catalog, {}))
    files = HashedFiles(context.open_files(project, str(repository.top)), repository.object_format)
    try:
        # The list shows the declarations, without the overlays of targets.
        declared = read_files(repository, replace(project, targets={}), files).declared
    except DeclarationError as error:
        more = f" and {format_count(len(error.problems) - 1, 'problem')} more" if len(error.problems) > 1 else ""
        context.note(f"showing the approved topics, because the working tree has errors: {error.problems[0]}{more}")
        return _Listing(None, approved, _make_entries(approved, approved.catalog, {}))
    decided_topics = frozenset(
        name
        for name in {*declared.catalog.topics, *approved.catalog.topics}
        if name.schema_id not in approved.undecided
    )
    report = check_catalog(
        declared.catalog,
        approved_catalog=approved.catalog,
        project=project,
        history_label="",
        selected=decided_topics,
        branch_point=BranchPoint.from_forked(forked, forked.compare_with_base(files, declared)),
    )
    # Of the kinds of a topic, the first one counts that is not removed.
    checks_by_topic = {
        check.topic: check for check in reversed(report.topics) if not (check.kind and check.change == "removed")
    }
    return _Listing(declared, approved, _make_entries(approved, declared.catalog, checks_by_topic))


def _make_entries(approved: History, catalog: Catalog, checks: Mapping[TopicName, TopicCheck]) -> list[_Entry]:
    """Return an entry for each topic of `catalog`, and for each approved topic that the files remove."""
    removed = {name for name, check in checks.items() if check.change == "removed"}
    entries = []
    for name in sorted({*catalog.topics, *removed}):
        source = approved.catalog if name in removed else catalog
        if not source.topics[name].deleted:
            version = None if name.schema_id in approved.undecided else approved.find_current_number(name)
            entries.append(_Entry(source.topics[name], source, version, checks.get(name)))
    return entries


def _matches_filters(value: Mapping[str, Any], args: argparse.Namespace) -> bool:
    """Return whether the topic matches --owner, --type, --label, --deprecated and --changed."""
    if args.owner and value["owner"] not in args.owner:
        return False
    if args.type and value["type"] not in args.type:
        return False
    for label in args.label:
        name, equals, text = label.partition("=")
        if name not in value["labels"] or (equals and value["labels"][name] != text):
            return False
    if args.deprecated and value["deprecated"] is None:
        return False
    return not args.changed or value["change"] is not None


def _make_topic_rows(values: list[Json], width: int | None) -> list[list[str]]:
    """Return the head and a row for each topic, without empty columns, and without columns that a terminal of `width` hides.

    Without a width, no column is hidden.
    """
    columns: dict[str, Callable[[Json], object]] = {
        "topic": lambda value: value["topic"].removeprefix("persistent://"),
        "type": lambda value: value["type"],
        "version": lambda value: value["version"],
        "strategy": lambda value: value["strategy"],
        "set by": lambda value: value["level"],
        "owner": lambda value: value["owner"],
        "labels": lambda value: ",".join(f"{name}={text}" for name, text in value["labels"].items()),
        "deprecated": lambda value: value["deprecated"] and value["deprecated"].get("remove_after", "yes"),
        "change": _describe_change,
    }
    texts_by_column = {}
    for name, read_cell in columns.items():
        cells = [read_cell(value) for value in values]
        if name in ("type", "version") or any(cell not in (None, "") for cell in cells):
            texts = ["-" if cell in (None, "") else on_one_line(str(cell)) for cell in cells]
            texts_by_column[name] = [name.upper(), *texts]
    for name in _FIRST_HIDDEN_COLUMNS:
        if width is not None and sum(2 + max(map(len, texts)) for texts in texts_by_column.values()) - 2 > width:
            texts_by_column.pop(name, None)
    return [list(row) for row in zip(*texts_by_column.values(), strict=True)]


def _describe_change(value: Mapping[str, Any]) -> str | None:
    number = value["next_version"]
    match value["change"]:
        case "added":
            return "new"
        case "new version" | "older version":
            return f"version {number}"
        case change:
            return cast("str | None", change)


def _print_codeowners(declared: Declared | None, topics: frozenset[TopicName], context: Context) -> None:
    """Print the owners of all files of the topics and of their namespaces."""
    from schemactl.report.codeowners import render_codeowners

    if declared is None:
        raise UsageError("--format codeowners names files: it needs a working tree without problems")
    owners: defaultdict[str, set[str]] = defaultdict(set)
    catalog = declared.catalog
    names: list[NamespaceName | TopicName] = [*topics, *{name.namespace_name for name in topics}]
    for name in names:
        declaration = catalog.get(name)
        owner = catalog.metadata(name).owner
        if owner and declaration and declaration.source:
            definition_paths = declared.dependencies.get(name, ()) if isinstance(name, TopicName) else ()
            for path in (declaration.source.path, *definition_paths):
                # A folder in `references` also has types that the topic does not use.
                if not path.endswith("/"):
                    owners[path].add(owner)
    text, unknown_owners = render_codeowners(owners)
    for owner in unknown_owners:
        context.note(f"skipped owner `{owner}`: GitHub accepts only @user, @organization/team or an e-mail address")
    print(text, end="")
