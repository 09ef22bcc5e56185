"""`diff` and `changelog`: the changes between two versions of a topic, or between two states of the declarations."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.show import reason_value
from schemactl.cli.topic_selection import STATE_HELP, WORK, NamedDefinition, States, add_filters
from schemactl.core.errors import CHANGES, UsageError
from schemactl.core.names import matching
from schemactl.core.terminal import paint, paint_diff, redirected
from schemactl.core.wording import day

if TYPE_CHECKING:
    from schemactl.comparison.revision_diff import Revision
    from schemactl.core.catalog import Topic
    from schemactl.core.findings import Direction, Incompatibility, Waiver
    from schemactl.core.names import NamespaceName
    from schemactl.core.schema import Commit, SchemaInfo
    from schemactl.formats.type_spec import PartChange
    from schemactl.history import History, Repository


# States to compare.


def is_range(text: str, states: States) -> bool:
    """Return whether `text` names two states, `FROM..TO`, and no topic."""
    return ".." in text and not matching(text.rpartition("@")[0] or text, states.approved.catalog.topics)


def read_revision(
    states: States, text: str | None, topics: Sequence[str] = (), namespaces: Collection[str] = ()
) -> Revision:
    """Return what changed between the states that `text` names; None: what a merge of the files here changes.

    Args:
        states: of the project.
        text: `FROM..TO`, or `FROM...TO`, which starts from their merge base; an omitted end is HEAD.
        topics: globs of the topics to look at; none: all.
        namespaces: to look at; none: all.

    Raises:
        UsageError: there is no such state, or no such topic.
        DeclarationError: the files at hand have problems.
    """
    from schemactl import history
    from schemactl.comparison.revision_diff import NOT_APPROVED, Revision, find_subjects
    from schemactl.core.catalog import only
    from schemactl.core.names import TopicName, select_known

    before, after = _named(text, states)
    older, newer = (states.approved if each is None else states.at(each) for each in (before, after))
    names = {*older.catalog.topics, *newer.catalog.topics}
    chosen = select_known(names, topics, [*namespaces], where="the two states")
    spaces = {name.namespace_name for name in chosen} if topics or namespaces else None
    if (concerned := newer.concerned_since(older)) is not None:
        # What no commit between the two concerns need not be read.
        chosen = frozenset(name for name in chosen if name.schema_id in concerned)
    former = (topic.renamed_from for name in chosen if (topic := newer.catalog.topics.get(name)))
    told = chosen.union(filter(None, former))

    def is_told(name: NamespaceName | TopicName) -> bool:
        return name in told if isinstance(name, TopicName) else spaces is None or name in spaces

    one, other = (only(each.catalog, is_told).load() for each in (older, newer))
    repository = states.context.repository

    @cache
    def waivers(commit: Commit) -> Sequence[Waiver]:
        return () if commit.id == NOT_APPROVED else history.waivers_at(repository, states.project, commit)

    subjects = tuple(find_subjects(one, other, states.project.defaults, waivers, newer.since))
    ids = {each.version.commit.id for subject in subjects for each in subject.versions if each.version.commit}
    ids |= {subject.since.id for subject in subjects if subject.since}
    commits, authors = _between(repository, older, newer)
    return Revision(
        older.ref if before is None else before,
        "the files here" if after == WORK else newer.ref if after is None else after,
        older.tip,
        None if after == WORK else newer.tip,
        subjects,
        commits,
        authors,
        authors_of(repository, ids - {NOT_APPROVED}),
    )


def _named(text: str | None, states: States) -> tuple[str | None, str | None]:
    """Return the names of both states; None: the approved history."""
    if text is None:
        return None, WORK

    dots = "..." if "..." in text else ".."
    before, _, after = text.partition(dots)
    before, after = before or "HEAD", after or "HEAD"
    if dots == "..." and after != WORK:
        repository = states.context.repository
        head, tip = (_commit(repository, each) for each in (before, after))
        found = repository.merge_base(head, tip)
        if found is None:
            raise UsageError(f"{before} and {after} have no commit in common", fix=f"write {before}..{after}")
        before = found.id
    return before, after


def _commit(repository: Repository, name: str) -> Commit:
    from schemactl import history

    found = history.resolve_shared(repository, name)
    if found is None:
        raise UsageError(f"there is no ref or commit {name!r} in this repository", fix="`git branch --all` lists them")
    return found[1]


def _between(repository: Repository, older: History, newer: History) -> tuple[int, tuple[str, ...]]:
    """Return the number of commits that only the newer state has, and their authors."""
    from schemactl.comparison.revision_diff import NOT_APPROVED

    end = newer.tip
    if end and end.id == NOT_APPROVED:
        end = repository.commit("HEAD")
    if end is None:
        return 0, ()
    without = [f"^{older.tip.id}"] if older.tip else []
    listed = repository.run("log", "--format=%aN", end.id, *without, "--").decode("utf-8", "replace").splitlines()
    return len(listed), tuple(sorted({*listed}))


def authors_of(repository: Repository, ids: Collection[str]) -> dict[str, str]:
    """Return the author of each of these commits, by its id."""
    if not ids:
        return {}
    given = "".join(f"{each}\n" for each in sorted(ids)).encode()
    listed = repository.run("log", "--no-walk=unsorted", "--format=%H %aN", "--stdin", standard_input=given)
    rows = (line.partition(" ") for line in listed.decode("utf-8", "replace").splitlines())
    return {commit: name for commit, _, name in rows}


# `schemactl diff`.


def configure_diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    parser.description = (
        "Show what changed from one definition to another: the text, the fields, and who can read whom, in both directions. With one "
        "TOPIC: from the definition that is approved to the one in the working tree. With one TOPIC@N or TOPIC@REF: from that to "
        "the working tree.\n\n"
        "Without a topic: all topics and namespaces that are added, removed or renamed, with new versions and policies. FROM..TO are "
        "two commits, branches or tags (`work`: the files here; left out: HEAD); FROM...TO starts from their merge base. Without "
        "any argument: what a merge of the files here would change."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl diff                       what do the files here change, in all topics?\n"
        "  schemactl diff orders                what do they change in this one?\n"
        "  schemactl diff orders@2 orders@4     what changed between two versions\n"
        "  schemactl diff orders@v1.0 orders    from a tag to what is approved\n"
        "  schemactl diff orders invoices       two topics, as approved\n"
        "  schemactl diff v1.0..v1.1            what changed between two tags\n"
        "  schemactl diff main...feature        what a branch brings\n"
    )
    parser.add_argument("old", metavar="TOPIC[@...] | FROM..TO", nargs="?", help=STATE_HELP)
    parser.add_argument("new", metavar="TOPIC[@...]", nargs="?", help="the same")
    add_filters(parser)
    add_options(parser, "--detailed-exitcode: exit with 2 if there is a difference")
    add_format(parser)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two definitions, None if the topic has none; with a label for people, and its name on the command line."""

    topic: Topic
    state: str
    number: int | None
    name: str
    label: str
    info: SchemaInfo | None

    def value(self) -> dict[str, Any]:
        """Return the JSON value."""
        return {"topic": str(self.topic.name), "state": self.state or None, "version": self.number, "label": self.label}


def run_diff(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the differences are printed; 2: with --detailed-exitcode, there are some."""
    states = States(context)
    if args.old is None or (args.new is None and is_range(args.old, states)):
        return _print_all(args, states, context)
    if args.topic or args.namespace:
        raise UsageError("--topic, --namespace and --skip choose among all topics: name either these or TOPIC")
    name, at, range_ = args.old.rpartition("@")
    if at and ".." in range_ and args.new is None:
        first, _, second = range_.partition("..")
        args.old, args.new = f"{name}@{first}", f"{name}@{second.removeprefix('.') or WORK}"
    old, new = _sides(states, args.old, args.new)
    is_same = old.info == new.info
    if args.format == "json":
        context.report_json(**_facts(old, new))
    else:
        print(_text(old, new, color=context.color))
        if is_same and args.new is None:
            _hint(old, context)
    return CHANGES if args.detailed_exitcode and not is_same else 0


def _hint(side: Side, context: Context) -> None:
    """Print how to see the last change, if the working tree has none."""
    numbers = [each.number for each in side.topic.versions if each.info]
    if len(numbers) > 1:
        one, other = (f"{side.topic.name.topic}@{number}" for number in numbers[-2:])
        context.say(f"the two newest versions: `schemactl diff {one} {other}`")


def _print_all(args: argparse.Namespace, states: States, context: Context) -> int:

    from schemactl.report import changes

    found = read_revision(states, args.old, args.topic, args.namespace)
    if args.format == "json":
        print(changes.render_revision_json(found))
    else:
        context.report(changes.render_revision_text(found, color=context.color))
    return CHANGES if args.detailed_exitcode and found.subjects else 0


def _sides(states: States, old: str, new: str | None) -> tuple[Side, Side]:
    if new is not None:
        first, second = states.definition(old), states.definition(new)
    elif "@" in old and not matching(old, states.approved.catalog.topics):
        first = states.definition(old)
        second = states.at_work(str(first.topic.name))
    else:
        first, second = states.both(old)
    if new is not None or (first.info is None and second.info is None):
        for each in (first, second):
            if each.info is None:
                raise UsageError(
                    f"{each.topic.name} has {f'no schema at {each.state}' if each.state else 'never had a schema'}"
                )
    return _side(states, first), _side(states, second)


def _side(states: States, named: NamedDefinition) -> Side:
    topic = named.topic
    own = named.state or ("" if named.number is None else str(named.number))
    name = f"{topic.name.topic}{f'@{own}' if own else ''}"
    if named.info is None:
        return Side(topic, named.state, None, name, f"{name}: no definition", None)
    if named.state:
        label = f"{name} ({named.standing})"
    else:
        in_force = states.approved.current(topic.name)
        standing = "" if named.version else ", no longer declared" if in_force is None else ", in force"
        version = next((each for each in topic.versions if each.number == named.number), None)
        commit = f" ({version.commit.short}, {day(version.commit)})" if version and version.commit else ""
        label = f"{name}{commit}{standing}"
    return Side(topic, named.state, named.number, name, label, named.info)


def _text(old: Side, new: Side, *, color: bool) -> str:
    topics = str(old.topic.name) if old.topic.name == new.topic.name else f"{old.topic.name} -> {new.topic.name}"
    return "\n".join([paint(topics, "bold", color=color), "", *differences(old, new, color=color)])


def differences(old: Side, new: Side, *, color: bool) -> list[str]:
    """Return the lines about the differences of two definitions, and about who can read whom."""
    text, parts = _changes(old, new)
    fields = [f"  {each.sign} {each.text}" for each in parts]
    lines = [paint_diff(line, color=color) for line in text]
    if not text:
        lines += [f"- {old.label}", f"+ {new.label}", "The text is the same."]
    lines.append("")
    if fields:
        lines += ["Fields:", *fields]
    else:
        lines.append("No field differs" + (": only order, docs, aliases and the like do." if text else "."))
    if old.info and new.info:
        lines += ["", *_verdict(old, new, newer_reads=True), *_verdict(old, new, newer_reads=False)]
    return lines


def _changes(old: Side, new: Side) -> tuple[list[str], list[PartChange]]:
    """Return the lines about changes, and the parts that differ in more than documentation."""
    from schemactl.formats.type_spec import line_changes, part_changes

    parts = part_changes(old=old.info, new=new.info)
    text = line_changes(old=old.info, new=new.info, labels=(old.label, new.label))
    return text, [each for each in parts if each.kind != "documented"]


def _verdict(old: Side, new: Side, *, newer_reads: bool) -> Iterator[str]:
    """Return whether one side can read the other, and the reasons if it cannot."""
    from schemactl.core.findings import Breakage
    from schemactl.formats import explain

    if old.info is None or new.info is None:
        return
    reader, writer = (new, old) if newer_reads else (old, new)
    found = _unreadable(reader, writer)
    sentence = f"{reader.name} reads {writer.name}"
    if not found:
        yield f"{sentence}: yes."
        return
    strict = all(each.strict_only for each in found)
    yield f"{sentence}: {'Java yes, strict readers no' if strict else 'no'}."
    for each in found:
        direction: Direction = "new_reads_old" if newer_reads else "old_reads_new"
        breakage = Breakage(each, direction, old.number or 0, "" if old.number is not None else old.name)
        explained = explain(breakage, new=new.info, old=old.info)
        yield f"  {each.rule}: {explained.reason}"


def _unreadable(reader: Side, writer: Side) -> list[Incompatibility]:
    from schemactl.formats import resolve

    if reader.info is None or writer.info is None:
        return []
    return list(resolve(reader=reader.info, writer=writer.info))


def _facts(old: Side, new: Side) -> dict[str, Any]:
    text, parts = _changes(old, new)
    return {
        "old": old.value(),
        "new": new.value(),
        "text": text,
        "fields": [{"sign": each.sign, "what": each.text} for each in parts],
        "new_reads_old": [reason_value(each) for each in _unreadable(new, old)],
        "old_reads_new": [reason_value(each) for each in _unreadable(old, new)],
    }


# `schemactl changelog`.


def configure_changelog(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `changelog`."""
    parser.description = (
        "What changed from one commit, branch or tag to another, for release notes, by namespace and topic: new versions and what "
        "became of each field, what breaks readers first and by which waiver, what is deleted, policies, commits and authors. The "
        "facts are those of `schemactl diff FROM..TO`."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl changelog v1.0..v1.1\n"
        "  schemactl changelog v1.1.. > release-notes.md            since a tag\n"
        "  schemactl changelog v1.0..v1.1 --format json\n"
        "  schemactl changelog v1.0..v1.1 --namespace shop/sales\n"
    )
    parser.add_argument("range", metavar="FROM..TO", help="two commits, branches or tags; left out: HEAD")
    add_filters(parser)
    add_format(parser, "markdown", "json")


def run_changelog(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the changelog is printed."""
    from schemactl.report import changes

    states = States(context)
    if not is_range(args.range, states):
        raise UsageError(f"{args.range}: expected FROM..TO", fix=f"write {args.range}..HEAD for all since then")
    found = read_revision(states, args.range, args.topic, args.namespace)
    render = changes.render_revision_json if args.format == "json" else changes.render_changelog
    print(render(found), file=redirected(sys.stdout))
    return 0
