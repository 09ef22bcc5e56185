"""`diff`: show what changed in the files, between versions, or between commits."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.revisions import is_range, read_revision
from schemactl.cli.show import ReasonView
from schemactl.cli.states import STATE_HELP, WORK, NamedDefinition, States
from schemactl.cli.topic_selection import add_filters, find_number_in_force
from schemactl.core.errors import ExitCode, UsageError
from schemactl.core.findings import Breakage, Direction, Incompatibility
from schemactl.core.json_values import make_view
from schemactl.core.names import find_matching_topics, format_kind_name
from schemactl.core.schema import find_by_number
from schemactl.core.terminal import paint, paint_diff
from schemactl.core.wording import format_day

if TYPE_CHECKING:
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.core.schema import SchemaInfo
    from schemactl.formats.part_changes import PartChange


def configure_diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    parser.description = (
        "Show what changed from one definition to another: the text, the fields, and who can read whom, in both directions. With one "
        "TOPIC: from the definition that is approved to the one in the working tree. With one TOPIC@N or TOPIC@REF: from that to "
        "the working tree.\n\n"
        "Without a topic: all topics and namespaces that are added, removed or renamed, with new versions and policies. FROM..TO are "
        "two commits, branches or tags (`work`: the working tree; omitted: HEAD); FROM...TO starts from their merge base. Without "
        "any argument: the effect of a merge of the files here."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl diff                       what do the files here change, in all topics?\n"
        "  schemactl diff orders                what do they change in this one?\n"
        "  schemactl diff orders@2 orders@4     the changes between two versions\n"
        "  schemactl diff orders@v1.0 orders    from a tag to the approved state\n"
        "  schemactl diff orders invoices       two topics, as approved\n"
        "  schemactl diff v1.0..v1.1            what changed between two tags\n"
        "  schemactl diff main...feature        the changes of a branch\n"
    )
    parser.add_argument("old", metavar="TOPIC[@...] | FROM..TO", nargs="?", help=STATE_HELP)
    parser.add_argument("new", metavar="TOPIC[@...]", nargs="?", help="the same")
    add_filters(parser)
    add_options(parser, "--detailed-exitcode: exit with 2 if there is a difference")
    add_format(parser)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two definitions.

    Attributes:
        topic: the topic.
        state: `work` or a ref; "" for the approved history.
        number: the approved version, or None if the definition is not one.
        name: the name on the command line, such as `orders@3`.
        label: the name with its commit or its approval.
        info: the definition, or None if the topic has no schema.
    """

    topic: Topic
    state: str
    number: int | None
    name: str
    label: str
    info: SchemaInfo | None

    @property
    def view(self) -> SideView:
        """The side in JSON."""
        return SideView(
            topic=self.topic.name,
            kind=self.topic.kind or None,
            state=self.state or None,
            version=self.number,
            label=self.label,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SideView:
    """A `Side` in JSON."""

    topic: TopicName
    kind: str | None
    state: str | None
    version: int | None
    label: str


@dataclass(frozen=True, slots=True)
class PartView:
    """A changed part of a definition in JSON."""

    sign: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceView:
    """The differences of two definitions, as `diff --format json` prints them.

    Attributes:
        text: the lines of the text diff.
        new_reads_old: the reasons why the new definition cannot read the old one.
        old_reads_new: the reasons why the old definition cannot read the new one.
        new_misreads_old: the places where the new definition reads another value than the old one wrote.
        old_misreads_new: the same in the other direction.
    """

    old: SideView
    new: SideView
    text: list[str]
    fields: tuple[PartView, ...]
    new_reads_old: tuple[ReasonView, ...]
    old_reads_new: tuple[ReasonView, ...]
    new_misreads_old: tuple[ReasonView, ...]
    old_misreads_new: tuple[ReasonView, ...]

    @classmethod
    def from_sides(cls, old: Side, new: Side) -> DifferenceView:
        """Return the view of the differences of two definitions."""
        diff_lines, parts = _find_changes(old, new)
        return cls(
            old=old.view,
            new=new.view,
            text=diff_lines,
            fields=tuple(PartView(part.sign, part.text) for part in parts),
            new_reads_old=_view_reasons(_resolve_sides(new, old)),
            old_reads_new=_view_reasons(_resolve_sides(old, new)),
            new_misreads_old=_view_reasons(_find_misreadings(new, old)),
            old_misreads_new=_view_reasons(_find_misreadings(old, new)),
        )


def _view_reasons(incompatibilities: Iterable[Incompatibility]) -> tuple[ReasonView, ...]:
    return tuple(make_view(ReasonView, incompatibility) for incompatibility in incompatibilities)


def run_diff(args: argparse.Namespace, context: Context) -> int:
    """Print the differences; return 2 if there are some and --detailed-exitcode is set, else 0."""
    from schemactl.report import changes, changes_json

    states = States(context, [*filter(None, [args.old, args.new]), *args.topic], args.namespace)
    if args.old is None or (args.new is None and is_range(args.old, states)):
        revision = read_revision(states, args.old, args.topic, args.namespace)
        error = states.find_broken(args.topic, args.namespace)
        if args.format == "json":
            print(changes_json.render_revision_json(revision))
        else:
            context.report(changes.render_revision_text(revision, color=context.color))
        if error:
            raise error
        return ExitCode.CHANGES if args.detailed_exitcode and revision.subjects else 0
    if args.topic or args.namespace:
        raise UsageError("--topic, --namespace and --skip select among all topics, and cannot be combined with TOPIC")
    name, at, range_ = args.old.rpartition("@")
    if at and ".." in range_ and args.new is None:
        first, _, second = range_.partition("..")
        args.old, args.new = f"{name}@{first}", f"{name}@{second.removeprefix('.') or WORK}"
    catalog = states.approved.catalog
    texts = [args.old]
    if args.new is None and (
        find_matching_topics(args.old, catalog.topics) or not any(sign in args.old for sign in "@#")
    ):
        # A topic with kinds of events as a whole means all of them.
        name = states.find_old_and_new(args.old)[0].topic.name
        topics = [source.topics[name] for source in (catalog, states.work.catalog) if name in source.topics]
        keys = dict.fromkeys(kind.key for topic in topics for kind in topic.kinds)
        texts = [format_kind_name(name, key) for key in keys] or texts
    pairs = [_choose_sides(states, text, args.new) for text in texts]
    are_same = all(old.info == new.info for old, new in pairs)
    if args.format == "json":
        differences = [DifferenceView.from_sides(old, new) for old, new in pairs]
        if len(differences) == 1:
            context.report_view(differences[0])
        else:
            context.report_json(kinds=differences)
    else:
        blocks = []
        for old, new in pairs:
            names = [format_kind_name(side.topic.name, side.topic.kind) for side in (old, new)]
            heading = paint(" -> ".join(dict.fromkeys(names)), "bold", color=context.color)
            blocks.append("\n".join([heading, "", *render_differences(old, new, color=context.color)]))
        print("\n\n".join(blocks))
        if are_same and args.new is None and len(pairs) == 1:
            topic = pairs[0][0].topic
            numbers = [version.number for version in topic.versions if version.info]
            if len(numbers) > 1:
                part_name = f"{topic.name.topic}{f'#{topic.kind}' if topic.kind else ''}"
                older, newer = (quote(f"{part_name}@{number}") for number in numbers[-2:])
                context.say(f"the two newest versions: `schemactl diff {older} {newer}`")
    return ExitCode.CHANGES if args.detailed_exitcode and not are_same else 0


def _choose_sides(states: States, old: str, new: str | None) -> tuple[Side, Side]:
    if new is not None:
        first, second = states.find_definition(old), states.find_definition(new)
    elif "@" in old and not find_matching_topics(old, states.approved.catalog.topics):
        first = states.find_definition(old)
        second = states.find_in_working_tree(first.name)
    else:
        first, second = states.find_old_and_new(old)
    if new is not None or (first.info is None and second.info is None):
        for definition in (first, second):
            if definition.info is None:
                state = definition.state
                raise UsageError(
                    f"{definition.topic.name} has {f'no schema at {state}' if state else 'never had a schema'}"
                )
    return _make_side(states, first), _make_side(states, second)


def _make_side(states: States, named: NamedDefinition) -> Side:
    topic = named.topic
    suffix = named.state or ("" if named.number is None else str(named.number))
    name = f"{topic.name.topic}{f'#{topic.kind}' if topic.kind else ''}{f'@{suffix}' if suffix else ''}"
    if named.info is None:
        return Side(topic, named.state, None, name, f"{name}: no definition", None)
    if named.state:
        label = f"{name} ({named.version_text})"
    else:
        is_declared = find_number_in_force(states.approved, topic) is not None
        standing = ", in force" if is_declared else ", no longer declared"
        if named.version:
            standing = ""
        version = find_by_number(topic.versions, named.number)
        commit = f" ({version.commit.short}, {format_day(version.commit)})" if version and version.commit else ""
        label = f"{name}{commit}{standing}"
    return Side(topic, named.state, named.number, name, label, named.info)


def render_differences(old: Side, new: Side, *, color: bool) -> list[str]:
    """Return lines with the differences of two definitions, and whether each can read the other."""
    text, parts = _find_changes(old, new)
    fields = [f"  {part.sign} {part.text}" for part in parts]
    lines = [paint_diff(line, color=color) for line in text]
    if not text:
        lines += [f"- {old.label}", f"+ {new.label}", "The text is the same."]
    lines.append("")
    if fields:
        lines += ["Fields:", *fields]
    else:
        lines.append("No field differs" + (": only order, docs, aliases and the like do." if text else "."))
    if old.info and new.info:
        lines += ["", *_explain_reading(old, new, newer_reads=True), *_explain_reading(old, new, newer_reads=False)]
    return lines


def _find_changes(old: Side, new: Side) -> tuple[list[str], list[PartChange]]:
    """Return the lines of the text diff, and the parts that differ in more than documentation."""
    from schemactl.formats.part_changes import diff_definitions, find_part_changes

    parts = find_part_changes(old=old.info, new=new.info)
    text = diff_definitions(old=old.info, new=new.info, labels=(old.label, new.label))
    return text, [part for part in parts if part.kind != "documented"]


def _explain_reading(old: Side, new: Side, *, newer_reads: bool) -> Iterator[str]:
    """Yield whether one side can read the other, and the reasons if it cannot."""
    from schemactl.formats import explain

    if old.info is None or new.info is None:
        return
    reader, writer = (new, old) if newer_reads else (old, new)
    incompatibilities, misreadings = _resolve_sides(reader, writer), _find_misreadings(reader, writer)
    if any(incompatibility.is_error for incompatibility in incompatibilities):
        answer = "no"
    elif any(misreading.is_error for misreading in misreadings):
        answer = "as other values"
    elif incompatibilities:
        answer = "Java yes, strict readers no"
    else:
        answer = "yes, with a warning" if misreadings else "yes"
    yield f"{reader.name} reads {writer.name}: {answer}."
    direction: Direction = "new_reads_old" if newer_reads else "old_reads_new"
    for incompatibility in (*incompatibilities, *misreadings):
        breakage = Breakage(incompatibility, direction, old.number or 0, "" if old.number is not None else old.name)
        explanation = explain(breakage, new=new.info, old=old.info)
        yield f"  {incompatibility.rule}: {explanation.reason}"


def _resolve_sides(reader: Side, writer: Side) -> list[Incompatibility]:
    from schemactl.formats import resolve

    if reader.info is None or writer.info is None:
        return []
    return list(resolve(reader=reader.info, writer=writer.info))


def _find_misreadings(reader: Side, writer: Side) -> list[Incompatibility]:
    from schemactl.formats import find_misreadings

    if reader.info is None or writer.info is None:
        return []
    return list(find_misreadings(reader=reader.info, writer=writer.info))
