"""`show`: print a definition of a topic."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.cli.context import Context
from schemactl.cli.effective_values import show_effective
from schemactl.cli.parser import add_format, add_options, add_timeout
from schemactl.cli.states import STATE_HELP, WORK, NamedDefinition, States
from schemactl.cli.target_selection import add_target, has_target_option
from schemactl.cli.topic_selection import find_number_in_force
from schemactl.core.errors import InvalidSchema, SchemactlError, UsageError
from schemactl.core.findings import Breakage, Direction, Incompatibility
from schemactl.core.json_values import OPTIONAL, make_view
from schemactl.core.terminal import get_definition_stream
from schemactl.core.wording import format_version, format_version_numbers

if TYPE_CHECKING:
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.core.schema import Commit, SchemaInfo, SchemaVersion
    from schemactl.history.approved_history import History


Role = Literal["reader", "writer"]

_MAX_REASONS: Final = 20
"""The maximum number of reasons for a gap in the text report."""


def configure_show(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `show`."""
    parser.description = (
        "Print the definition of a topic. TOPIC: the approved text in force, from which readers are generated. "
        "TOPIC@N: the first text of version N, which is the uploaded one. TOPIC@work: the text in the working "
        "tree. TOPIC@REF: the text at a commit, branch or tag, approved or not. Standard error lists the versions "
        "that the definition can read and cannot read, with the reasons, and the versions that can read it."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl show orders@3 > orders-3.avsc\n"
        "  schemactl show orders@3 > /dev/null      since which version can readers of version 3 not read?\n"
        "  schemactl show orders@work               the definition as the files here have it\n"
        "  schemactl show orders@origin/feature     as a branch has it\n"
        "  schemactl show orders --format json      the same for programs, with type, properties and commit\n"
        "  schemactl show --effective orders --target prod    policies and partitions there, each with the line that sets it\n"
        "  schemactl show --effective orders --target prod --live    the same next to the values that the registry has\n"
    )
    parser.add_argument("topic", metavar="TOPIC[@N|@work|@REF]", help=STATE_HELP)
    add_options(
        parser,
        "--effective: the topic on a target with its policies, and the origin of each value",
        "--live: with --effective, the values in force in the target's registry next to Git's",
        "--textconv: TOPIC is the path of an .avsc file, and its outline is printed, for `git diff`: see `schemactl docs shared-types`",
    )
    add_target(parser, "with --effective: the target; without one, the declaration (default: $SCHEMACTL_TARGET)")
    add_format(parser)
    add_timeout(parser)


def run_show(args: argparse.Namespace, context: Context) -> int:
    """Print the definition to standard output and its versions to standard error, or with --effective the values in force."""
    if args.textconv:
        from schemactl.formats.avro.explanation import file_lines

        text = Path(context.directory, args.topic).read_bytes().decode(errors="replace")
        try:
            print("\n".join(file_lines(text)))
        except (InvalidSchema, ValueError, RecursionError):
            # Git shows no diff if this fails, so any other file is printed unchanged.
            print(text, end="")
        return 0
    if args.live and not (args.effective and args.target):
        raise UsageError(
            "--live compares with a registry, and requires --effective and --target",
            fix=f"schemactl show --effective {quote(args.topic)} --target NAME --live",
        )
    if args.effective:
        show_effective(args, context)
        return 0
    if has_target_option(args):
        raise UsageError("--target requires --effective: a definition is the same on every target")
    states = States(context, [args.topic])
    chosen, history = states.find_definition(args.topic), states.approved
    chosen.topic.load()
    info = chosen.info
    if info is None:
        raise SchemactlError(
            f"{chosen.topic.name} has {f'no schema at {chosen.state}' if chosen.state else 'never had a schema'}"
        )
    if args.format == "json":
        context.report_view(_make_definition_report(history, chosen, info))
        return 0
    context.say(_render_headline(history, chosen, info))
    print_definition(info, chosen.topic.name)
    return 0


def print_definition(info: SchemaInfo, of: TopicName) -> None:
    """Print the stored definition of the topic `of`.

    Raises:
        SchemactlError: if the definition is not text.
    """
    from schemactl.formats import spec

    text = spec(info).to_text(info)
    if text is None:
        raise SchemactlError(f"the definition of {of} is not text", fix="`--format json` shows its bytes in Base64")
    print_text(text)


def print_text(text: str) -> None:
    """Print a definition, with a line break at its end."""
    print(text, end="" if text.endswith("\n") or not text else "\n", file=get_definition_stream(sys.stdout))


def definition_value(info: SchemaInfo) -> dict[str, Any]:
    """Return the JSON value of a definition."""
    from schemactl.formats import spec

    text = spec(info).to_text(info)
    return {
        "type": info.type.name,
        "schema": text,
        **({"schema_b64": base64.b64encode(info.schema).decode()} if text is None else {}),
        "properties": dict(info.properties),
    }


def _render_headline(history: History, chosen: NamedDefinition, info: SchemaInfo) -> str:
    """Return a line that names the definition, and lines with the versions that it can read and that can read it."""
    type_alone = "" if info.schema else " (the type alone, without a definition)"
    if chosen.version:
        origin = format_version(chosen.version)
    elif chosen.state:
        origin = f"{'in the working tree' if chosen.state == WORK else f'at {chosen.state}'}, {chosen.version_text}"
    elif chosen.topic.deleted or history.find_current_number(chosen.topic.name) is None:
        last = next(version for version in reversed(chosen.topic.versions) if version.info)
        origin = f"no longer declared; the last was {format_version(last)}"
    else:
        origin = f"in force, {chosen.version_text}"
    lines = [f"{chosen.name}: {origin}, {info.type.name}{type_alone}"]
    if kinds := list_kinds(history, chosen.topic):
        texts = []
        for kind in kinds:
            state = "removed" if kind.removed else f"version {kind.version}"
            texts.append(f"{kind.kind} ({state})")
        lines.append(f"  kinds of the topic: {', '.join(texts)}")
    lines += [f"  {key}: {text}" for key, text in history.catalog.metadata(chosen.topic.name).words().items()]
    verbs_by_role: dict[Role, tuple[str, str]] = {
        "reader": ("reads", "cannot read"),
        "writer": ("is read by", "cannot be read by"),
    }
    for role, (verb, negated) in verbs_by_role.items():
        gaps = _find_gaps(chosen, info, role=role)
        numbers = _list_numbers_outside(chosen, gaps)
        lines.append(f"  {verb} {format_version_numbers(numbers)}" if numbers else f"  {verb} no version")
        lines += [f"  {negated} " + "\n  ".join(gap.render()) for gap in gaps]
    for language in _list_client_languages(chosen, info):
        gaps = _find_gaps(chosen, info, role="reader", language=language)
        numbers, client = _list_numbers_outside(chosen, gaps), f"a consumer in {language.capitalize()}"
        lines.append(
            f"  {client} reads {format_version_numbers(numbers)}" if numbers else f"  {client} reads no version"
        )
        lines += [f"  {client} cannot read " + "\n  ".join(gap.render()) for gap in gaps]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindView:
    """A kind of events of a topic in JSON; `version` is the number in force."""

    kind: str
    type: str
    version: int | None
    versions: tuple[int, ...]
    removed: bool


def list_kinds(history: History, topic: Topic) -> tuple[KindView, ...]:
    """Return the kinds of events that a topic has or had, by the approved history."""
    whole = history.catalog.topics.get(topic.name)
    parts = [(key, whole.find_part(key)) for key in whole.list_kind_keys()] if whole else []
    return tuple(
        KindView(
            kind=key,
            type=next(version.info.type.name for version in reversed(part.versions) if version.info),
            version=find_number_in_force(history, part),
            versions=tuple(version.number for version in part.versions if version.info),
            removed=part.deleted,
        )
        for key, part in parts
        if part
    )


def _list_client_languages(chosen: NamedDefinition, info: SchemaInfo) -> list[str]:
    """Return the languages of declared consumers that read otherwise than Java's clients."""
    from schemactl.formats import spec

    languages = dict.fromkeys(client.known_language for client in chosen.topic.clients if client.reads)
    return [language for language in languages if spec(info).has_client_rules(language)]


def _list_numbers_outside(chosen: NamedDefinition, gaps: Sequence[Gap]) -> list[int]:
    """Return the numbers of the versions that are in none of the gaps."""
    gap_numbers = {number for gap in gaps for number in gap.numbers}
    return [version.number for version in chosen.topic.versions if version.info and version.number not in gap_numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionReport:
    """A definition of a topic, as `show --format json` prints it.

    Attributes:
        state: `work` or a ref; null for the approved history.
        version: the number of the definition, if it is a version.
        in_force: the number of the version in force.
        latest: the highest number.
        schema_b64: the bytes in base64 of a definition that is not text.
        reads: the numbers of the versions that it can read.
        read_by: the numbers of the versions that can read it.
        unreadable_by_language: the versions that declared consumers in a language cannot read, if these read otherwise than Java's.
    """

    topic: TopicName
    kind: str | None
    kinds: tuple[KindView, ...]
    owner: str
    description: str
    labels: Mapping[str, str]
    links: Mapping[str, str]
    deprecated: Mapping[str, str] | None
    state: str | None
    version: int | None
    in_force: int | None
    latest: int | None
    deleted: bool
    type: str
    schema: str | None
    schema_b64: str | None = field(default=None, metadata=OPTIONAL)
    properties: Mapping[str, str]
    source: str | None
    commit: Commit | None
    reads: list[int]
    read_by: list[int]
    unreadable: tuple[GapView, ...]
    unread_by: tuple[GapView, ...]
    unreadable_by_language: Mapping[str, tuple[GapView, ...]] | None = field(default=None, metadata=OPTIONAL)


def _make_definition_report(history: History, chosen: NamedDefinition, info: SchemaInfo) -> DefinitionReport:
    topic = chosen.topic
    unreadable = _find_gaps(chosen, info, role="reader")
    unread_by = _find_gaps(chosen, info, role="writer")
    unreadable_by_language = {
        language: tuple(gap.view for gap in _find_gaps(chosen, info, role="reader", language=language))
        for language in _list_client_languages(chosen, info)
    }
    commit = None
    if chosen.version:
        commit = chosen.version.commit
    elif not chosen.state:
        commit = history.find_commit_of_state(topic.name)
    metadata = history.catalog.metadata(topic.name)
    return make_view(
        DefinitionReport,
        metadata,
        topic=topic.name,
        kind=topic.kind or None,
        kinds=list_kinds(history, topic),
        deprecated=metadata.deprecated.values() if metadata.deprecated else None,
        state=chosen.state or None,
        version=chosen.number if chosen.state or chosen.version else find_number_in_force(history, topic),
        in_force=find_number_in_force(history, topic),
        latest=topic.versions[-1].number if topic.versions else None,
        deleted=topic.deleted,
        **definition_value(info),
        source=str(info.source) if info.source else None,
        commit=commit,
        reads=_list_numbers_outside(chosen, unreadable),
        read_by=_list_numbers_outside(chosen, unread_by),
        unreadable=tuple(gap.view for gap in unreadable),
        unread_by=tuple(gap.view for gap in unread_by),
        unreadable_by_language=unreadable_by_language or None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonView:
    """An incompatibility in JSON."""

    rule: str
    pointer: str
    message: str
    strict_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GapReasonView(ReasonView):
    """A reason of a gap in JSON; `told` is the reason as a change from the older definition to the newer one."""

    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GapView:
    """A `Gap` in JSON."""

    versions: tuple[int, ...]
    border: int
    commit: Commit | None
    strict_readers_only: bool
    reasons: tuple[GapReasonView, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Consecutive versions that a definition cannot read, or that cannot read it.

    Attributes:
        numbers: their numbers, ascending.
        border: the version that is nearest to the definition.
        incompatibilities: the reasons why the border cannot read or be read.
        texts: the same reasons, as a change from the older definition to the newer one.
    """

    numbers: tuple[int, ...]
    border: SchemaVersion
    incompatibilities: tuple[Incompatibility, ...]
    texts: tuple[str, ...]

    @property
    def strict_only(self) -> bool:
        """Whether only strict readers fail, and Pulsar's Java readers do not."""
        return _concerns_strict_readers_only(self.incompatibilities)

    @property
    def view(self) -> GapView:
        """The gap in JSON."""
        return GapView(
            versions=self.numbers,
            border=self.border.number,
            commit=self.border.commit,
            strict_readers_only=self.strict_only,
            reasons=tuple(
                make_view(GapReasonView, incompatibility, told=text)
                for incompatibility, text in zip(self.incompatibilities, self.texts, strict=True)
            ),
        )

    def render(self) -> Iterator[str]:
        """Yield a line such as `versions 5-6, from version 5 (9f2c1abcd, 2026-03-02) "Count the orders"`, and indented reasons."""
        preposition = "from" if self.border.number == self.numbers[0] else "up to"
        row = f"{format_version_numbers(self.numbers)}, {preposition} " if len(self.numbers) > 1 else ""
        subject = f' "{self.border.commit.subject}"' if self.border.commit else ""
        remark = "; Java can, strict readers cannot" if self.strict_only else ""
        yield f"{row}{format_version(self.border)}{subject}{remark}"
        for incompatibility, text in [*zip(self.incompatibilities, self.texts, strict=True)][:_MAX_REASONS]:
            yield f"  {incompatibility.rule}: {text}"
        more = len(self.incompatibilities) - _MAX_REASONS
        if more > 0:
            yield f"  and {more:,} {'reason' if more == 1 else 'reasons'} more: `--format json` has them all"


def _find_gaps(chosen: NamedDefinition, info: SchemaInfo, *, role: Role, language: str = "") -> list[Gap]:
    """Return the versions of the topic that `info` cannot read (role `reader`), or that cannot read it (role `writer`).

    With a language, readers are Pulsar's clients in this language.
    """
    from schemactl.formats import explain, find_client_misreadings, find_misreadings, resolve

    number = chosen.number_or_next
    rows: list[list[tuple[SchemaVersion, SchemaInfo, list[Incompatibility]]]] = []
    for version in chosen.topic.versions:
        if version.info is None:
            continue
        reader, writer = (info, version.info) if role == "reader" else (version.info, info)
        if language:
            misreadings = find_client_misreadings(reader=reader, writer=writer, language=language)
            incompatibilities = [misreading for misreading in misreadings if misreading.is_error]
        else:
            incompatibilities = list(resolve(reader=reader, writer=writer))
            incompatibilities += [
                misreading for misreading in find_misreadings(reader=reader, writer=writer) if misreading.is_error
            ]
        if not incompatibilities:
            continue
        # A row continues with the next version on the same side of the definition if the same readers fail.
        last, _, last_incompatibilities = rows[-1][-1] if rows else (None, None, [])
        if (
            last
            and last.number == version.number - 1
            and not last.number <= number < version.number
            and _concerns_strict_readers_only(last_incompatibilities)
            == _concerns_strict_readers_only(incompatibilities)
        ):
            rows[-1].append((version, version.info, incompatibilities))
        else:
            rows.append([(version, version.info, incompatibilities)])
    gaps = []
    for row in rows:
        border, border_info, incompatibilities = row[0] if row[0][0].number > number else row[-1]
        # Explain the reasons as a change from the older of the two definitions to the newer one.
        is_newer = border.number <= number
        new, old = (info, border_info) if is_newer else (border_info, info)
        direction: Direction = "new_reads_old" if is_newer == (role == "reader") else "old_reads_new"
        older_number = min(number, border.number)
        texts = [
            explain(Breakage(incompatibility, direction, older_number), new=new, old=old).reason
            for incompatibility in incompatibilities
        ]
        gaps.append(Gap(tuple(version.number for version, _, _ in row), border, tuple(incompatibilities), tuple(texts)))
    return gaps


def _concerns_strict_readers_only(incompatibilities: Sequence[Incompatibility]) -> bool:
    return all(incompatibility.strict_only for incompatibility in incompatibilities)
