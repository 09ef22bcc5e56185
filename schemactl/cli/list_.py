"""`list`: show the topics that a project declares."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.topic_selection import add_filters
from schemactl.core.errors import DeclarationError, SchemactlError, UsageError, did_you_mean
from schemactl.core.json_values import make_view
from schemactl.core.names import NamespaceName, TopicName, select_known_topics
from schemactl.core.terminal import count_columns, format_table, get_terminal_width, on_one_line
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.checks.check_report import TopicCheck
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo
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

    def view(self, project: Project) -> TopicView:
        """Return the entry in JSON, without properties."""
        topic = self.topic
        metadata = self.catalog.metadata(topic.name)
        strategy, level = self.catalog.strategy(topic.name, project.defaults)
        return make_view(
            TopicView,
            metadata,
            topic=topic.name,
            type=topic.schema.type.name if topic.schema else None,
            kinds=tuple(kind.key for kind in topic.kinds),
            version=self.version,
            strategy=strategy,
            level=level,
            lifecycle=topic.lifecycle,
            deprecated=metadata.deprecated.values() if metadata.deprecated else None,
            change=self.change.change if self.change else None,
            next_version=self.change.version if self.change else None,
            file=topic.source.path if topic.source else None,
            line=topic.source.line if topic.source else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic of the list in JSON.

    Attributes:
        kinds: the keys of its kinds of events.
        version: the number of the version in force.
        level: the level that sets the strategy.
        deprecated: the set values of the deprecation.
        change: the difference between the files and the approved topic.
        next_version: the number that the files would get.
        file: the file that declares it, and `line`, the line in it.
        properties: the properties of its schema; null if the definition cannot be read.
    """

    topic: TopicName
    type: str | None
    kinds: tuple[str, ...]
    version: int | None
    strategy: CompatibilityStrategy
    level: str
    lifecycle: str | None
    owner: str
    description: str
    labels: Mapping[str, str]
    links: Mapping[str, str]
    deprecated: Mapping[str, str] | None
    change: str | None
    next_version: int | None
    file: str | None
    line: int | None
    properties: Mapping[str, str] | None = None


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
    history = listing.approved
    views = {entry.topic.name: entry.view(project) for entry in listing.entries}
    selected = select_known_topics(
        views, [*args.topics, *args.topic], args.namespace, where="the files or the approved history"
    )
    views = {name: view for name, view in views.items() if name in selected}
    words_by_option = {
        "owner": (args.owner, {view.owner for view in views.values()} - {""}),
        "label": (
            [label.partition("=")[0] for label in args.label],
            {name for view in views.values() for name in view.labels},
        ),
        "type": (args.type, {view.type for view in views.values() if view.type}),
    }
    for option, (words, known_words) in words_by_option.items():
        for word in words:
            if word not in known_words:
                raise UsageError(f"--{option} {word}: no topic has this {option}{did_you_mean(word, known_words)}")
    views = {name: view for name, view in views.items() if _matches_filters(view, args)}
    if args.format == "codeowners":
        _print_codeowners(listing.declared, frozenset(views), context)
    elif args.format == "json":
        schemas = {entry.topic.name: entry.topic.schema for entry in listing.entries}
        topics = [replace(view, properties=_read_properties(schemas[name])) for name, view in views.items()]
        context.report_json(ref=history.ref, tip=history.tip, topics=topics)
    elif views:
        columns = get_terminal_width()
        rows = _make_topic_rows([*views.values()], columns)
        context.report("\n".join(format_table(rows, width=columns, numeric={2}, whole={0})))
    elif listing.entries:
        context.report("No topic matches.")
    else:
        context.report(f"Neither the files nor {history.ref} declare a topic.")
    for name in views:
        if error := history.undecided.get(name.schema_id):
            raise error
    return 0


def _read_properties(schema: SchemaInfo | None) -> Mapping[str, str] | None:
    """Return the properties of a schema, or None if its definition cannot be read."""
    try:
        return schema.load().properties if schema else {}
    except SchemactlError:
        return None


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
    history = forked.approved_history
    context.note(*history.notes)
    if repository.top is None:
        return _Listing(None, history, _make_entries(history, history.catalog, {}))
    files = HashedFiles(context.open_files(project, str(repository.top)), repository.object_format)
    try:
        # The list shows the declarations, without the overlays of targets.
        declared = read_files(repository, replace(project, targets={}), files).declared
    except DeclarationError as error:
        more = f" and {format_count(len(error.problems) - 1, 'problem')} more" if len(error.problems) > 1 else ""
        context.note(f"showing the approved topics, because the working tree has errors: {error.problems[0]}{more}")
        return _Listing(None, history, _make_entries(history, history.catalog, {}))
    decided_topics = frozenset(
        name for name in {*declared.catalog.topics, *history.catalog.topics} if name.schema_id not in history.undecided
    )
    report = check_catalog(
        declared.catalog,
        approved_catalog=history.catalog,
        project=project,
        history_label="",
        selected=decided_topics,
        branch_point=BranchPoint.from_forked(forked, forked.compare_with_base(files, declared)),
    )
    # Of the kinds of a topic, the first one counts that is not removed.
    checks_by_topic = {
        check.topic: check for check in reversed(report.topics) if not (check.kind and check.change == "removed")
    }
    return _Listing(declared, history, _make_entries(history, declared.catalog, checks_by_topic))


def _make_entries(history: History, catalog: Catalog, checks: Mapping[TopicName, TopicCheck]) -> list[_Entry]:
    """Return an entry for each topic of `catalog`, and for each approved topic that the files remove."""
    removed = {name for name, check in checks.items() if check.change == "removed"}
    entries = []
    for name in sorted({*catalog.topics, *removed}):
        source = history.catalog if name in removed else catalog
        if not source.topics[name].deleted:
            version = None if name.schema_id in history.undecided else history.find_current_number(name)
            entries.append(_Entry(source.topics[name], source, version, checks.get(name)))
    return entries


def _matches_filters(view: TopicView, args: argparse.Namespace) -> bool:
    """Return whether the topic matches --owner, --type, --label, --deprecated and --changed."""
    if args.owner and view.owner not in args.owner:
        return False
    if args.type and view.type not in args.type:
        return False
    for label in args.label:
        name, equals, text = label.partition("=")
        if name not in view.labels or (equals and view.labels[name] != text):
            return False
    if args.deprecated and view.deprecated is None:
        return False
    return not args.changed or view.change is not None


def _make_topic_rows(views: list[TopicView], width: int | None) -> list[list[str]]:
    """Return the head and a row for each topic, without empty columns, and without columns that a terminal of `width` hides.

    Without a width, no column is hidden.
    """
    columns: dict[str, Callable[[TopicView], object]] = {
        "topic": lambda view: str(view.topic).removeprefix("persistent://"),
        "type": lambda view: view.type,
        "version": lambda view: view.version,
        "strategy": lambda view: view.strategy,
        "set by": lambda view: view.level,
        "owner": lambda view: view.owner,
        "labels": lambda view: ",".join(f"{name}={text}" for name, text in view.labels.items()),
        "deprecated": lambda view: view.deprecated and view.deprecated.get("remove_after", "yes"),
        "change": _describe_change,
    }
    texts_by_column = {}
    for name, read_cell in columns.items():
        cells = [read_cell(view) for view in views]
        if name in ("type", "version") or any(cell not in (None, "") for cell in cells):
            texts = ["-" if cell in (None, "") else on_one_line(str(cell)) for cell in cells]
            texts_by_column[name] = [name.upper(), *texts]
    for name in _FIRST_HIDDEN_COLUMNS:
        if (
            width is not None
            and sum(2 + max(map(count_columns, texts)) for texts in texts_by_column.values()) - 2 > width
        ):
            texts_by_column.pop(name, None)
    return [list(row) for row in zip(*texts_by_column.values(), strict=True)]


def _describe_change(view: TopicView) -> str | None:
    number = view.next_version
    match view.change:
        case "added":
            return "new"
        case "new version" | "older version":
            return f"version {number}"
        case change:
            return change


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
