"""List what happened to topics and namespaces: versions, returns, deletions, policies, deprecations and clients, by commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.core.catalog import Client, Deprecated, Namespace, Topic
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import Commit
from schemactl.core.wording import format_count, format_day, format_policies
from schemactl.formats.part_changes import PartChange
from schemactl.history.approved_history import History
from schemactl.publish.site_verdicts import Verdict

if TYPE_CHECKING:
    from schemactl.publish.site_catalog import TopicEntry

_MOST_SEPARATE: Final = 3
"""The maximum number of new topics of one namespace in one commit that are listed separately."""

EventKind = Literal["version", "return", "deletion", "policy", "deprecation", "clients"]

EVENT_KINDS: Final[Mapping[EventKind, str]] = {
    "version": "Versions",
    "return": "Returns",
    "policy": "Policies",
    "deletion": "Deletions",
    "deprecation": "Deprecations",
    "clients": "Clients",
}
"""The kinds of events, with the words of their filters."""

_KIND_TEXTS: Final[Mapping[EventKind, str]] = {
    "version": "",
    "return": "return to older content",
    "policy": "policy",
    "deletion": "deletion",
    "deprecation": "deprecation",
    "clients": "declared clients",
}


@dataclass(frozen=True)
class Event:
    """Something that a commit did to a topic or a namespace.

    Attributes:
        name: the topic or namespace.
        title: its name and version.
        number: the version, or None.
        verdict: the verdict of a version, or None.
        chip: the words at its end, if it has no verdict.
        parts: the changes of the definition.
        details: changes of settings, one line each.
        note: a further sentence, or "".
        owner: the owner of the topic or namespace, or "".
        topics: the topics, of an event of several topics.
    """

    commit: Commit
    kind: EventKind
    name: NamespaceName | TopicName
    title: str
    number: int | None = None
    verdict: Verdict | None = None
    chip: str = ""
    parts: Sequence[PartChange] = ()
    details: Sequence[str] = ()
    note: str = ""
    owner: str = ""
    author: str = ""
    topics: Sequence[TopicName] = ()

    @property
    def kind_text(self) -> str:
        """The name of the kind, or "" for a version."""
        return _KIND_TEXTS[self.kind]

    @property
    def is_breaking(self) -> bool:
        """Whether readers stop."""
        return self.verdict is not None and self.verdict.is_breaking

    @property
    def namespace(self) -> NamespaceName:
        """The namespace itself, or the namespace of the topic."""
        return self.name.namespace_name

    @property
    def month(self) -> str:
        """The month of the commit in UTC, `2026-04`."""
        return format_day(self.commit)[:7]

    @property
    def chip_kind(self) -> str:
        """The style of the chip."""
        if self.verdict and self.verdict.kind != "first":
            return self.verdict.kind
        return "waived" if self.kind == "deprecation" else "plain"

    @property
    def chip_text(self) -> str:
        """The words of the chip."""
        if self.verdict and self.verdict.kind != "first":
            return self.verdict.text
        return self.chip

    def to_value(self) -> dict[str, Any]:
        """Return the JSON value, without what is empty."""
        verdict = self.verdict
        values = {
            "kind": self.kind,
            "day": format_day(self.commit),
            "commit": self.commit.id,
            "subject": self.commit.subject,
            "author": self.author or None,
            "name": str(self.name),
            "topics": [str(topic) for topic in self.topics] or None,
            "namespace": str(self.namespace),
            "owner": self.owner or None,
            "version": self.number,
            "verdict": verdict.kind if verdict else None,
            "text": self.chip_text,
            "breaks_readers": [*verdict.readers] if verdict else [],
            "cannot_read": [*verdict.messages] if verdict else [],
            "clients": [*verdict.clients] if verdict else [],
            "waived_until": (verdict.until or None) if verdict else None,
            "reasons": [reason for _, reason in verdict.reasons] if verdict else [],
            "changes": [f"{part.sign} {part.text}" for part in self.parts] + [*self.details],
            "note": self.note,
        }
        return {key: value for key, value in values.items() if value not in (None, "", [])}


def list_topic_events(history: History, entry: TopicEntry) -> Iterator[Event]:
    """Yield the events of a topic: its versions, then returns and deletions, then changes of its declaration, each oldest first."""
    name, owner = entry.name, entry.metadata.owner
    for version in reversed(entry.latest_first):
        if version.version.commit and version.version.info:
            verdict = entry.verdicts.versions[version.version.number]
            yield Event(
                version.version.commit,
                "version",
                name,
                f"{name.topic} v{version.version.number}",
                number=version.version.number,
                verdict=verdict,
                chip="new topic" if verdict.kind == "first" else "",
                parts=version.changes,
                note=f"Waived: {verdict.waiver}." if verdict.waiver else "",
                owner=owner,
                author=version.author,
            )
    yield from _list_returns(history, entry)
    before: Topic | None = None
    is_first = True
    for commit, topic in history.trace_topic(name):
        if topic is not None:
            old = before or Topic(name)
            if not is_first:
                yield from _list_policy_events(commit, name, old.policies, topic.policies, owner)
            yield from _list_deprecation_events(commit, name, old.metadata.deprecated, topic.metadata.deprecated, owner)
            yield from _list_client_events(commit, name, old.clients, topic.clients, owner)
        before, is_first = topic, False


def _list_returns(history: History, entry: TopicEntry) -> Iterator[Event]:
    """Yield the returns to older versions, and the deletions."""
    name, owner = entry.name, entry.metadata.owner
    commits = {version.version.number: version.version.commit for version in entry.latest_first}
    previous: int | None = None
    had_schema = False
    for commit, number, kinds in history.trace_numbers(name):
        numbers = [*kinds.values()] or ([] if number is None else [number])
        if number is None and had_schema and previous is not None:
            yield Event(
                commit,
                "deletion",
                name,
                name.topic,
                chip="deleted",
                owner=owner,
                note="The registry keeps its schema until `apply --allow-delete`.",
            )
        for returned in numbers:
            version_commit = commits.get(returned)
            is_new = version_commit is not None and version_commit.id == commit.id
            if had_schema and not is_new and number == returned != previous:
                latest = max(commits)
                note = f"v{returned} is in force again."
                if latest != returned:
                    note += f" The latest version of the registry stays v{latest}."
                yield Event(
                    commit,
                    "return",
                    name,
                    f"{name.topic} returns to v{returned}",
                    returned,
                    chip=f"v{returned} again",
                    note=note,
                    owner=owner,
                )
        had_schema = had_schema or bool(numbers)
        previous = number


def list_namespace_events(history: History, owners: Mapping[NamespaceName, str]) -> Iterator[Event]:
    """Yield the changes of policies and deprecation in the declarations of all namespaces."""
    before: dict[NamespaceName, Namespace] = {}
    for commit, namespace in history.trace_namespaces():
        name = namespace.name
        owner = owners.get(name, "")
        if old := before.get(name):
            yield from _list_policy_events(commit, name, old.policies, namespace.policies, owner)
            yield from _list_deprecation_events(
                commit, name, old.metadata.deprecated, namespace.metadata.deprecated, owner
            )
        before[name] = namespace


def _list_policy_events(
    commit: Commit, name: NamespaceName | TopicName, old: Policies, new: Policies, owner: str
) -> Iterator[Event]:
    old_values, new_values = format_policies(old), format_policies(new)
    details = []
    for key in dict.fromkeys([*old_values, *new_values]):
        before, after = old_values.get(key, "inherited"), new_values.get(key, "inherited")
        if before != after:
            details.append(f"{key}: {before} is now {after}")
    if details:
        yield Event(commit, "policy", name, _name_subject(name), chip="policy", details=details, owner=owner)


def _list_deprecation_events(
    commit: Commit, name: NamespaceName | TopicName, old: Deprecated | None, new: Deprecated | None, owner: str
) -> Iterator[Event]:
    if new and new != old:
        chip = f"remove after {new.remove_after}" if new.remove_after else "deprecated"
        note = f"Use {new.use.schema_id} instead." if new.use else ""
        yield Event(commit, "deprecation", name, _name_subject(name), chip=chip, note=note, owner=owner)
    elif old and not new:
        yield Event(commit, "deprecation", name, _name_subject(name), chip="no longer deprecated", owner=owner)


def _list_client_events(
    commit: Commit, name: TopicName, old: Sequence[Client], new: Sequence[Client], owner: str
) -> Iterator[Event]:
    old_builds, new_builds = (
        {(client.name, client.role, client.kind): client.built for client in clients} for clients in (old, new)
    )
    details = []
    for key in dict.fromkeys([*old_builds, *new_builds]):
        before, after = old_builds.get(key), new_builds.get(key)
        if before is None:
            details.append(f"+ {key[0]}, {key[1]}, built with {after}")
        elif after is None:
            details.append(f"- {key[0]}, {key[1]}")
        elif before != after:
            details.append(f"~ {key[0]}, {key[1]}: built with {before}, now with {after}")
    if details:
        chip = format_count(len(details), "client")
        yield Event(commit, "clients", name, name.topic, chip=chip, details=details, owner=owner)


def _name_subject(name: NamespaceName | TopicName) -> str:
    return name.topic if isinstance(name, TopicName) else str(name)


def sort_events(events: Sequence[Event]) -> list[Event]:
    """Return the events, newest first, with the many new topics of one commit and namespace as one event."""
    new_topics: dict[tuple[str, NamespaceName], list[Event]] = {}
    rest: list[Event] = []
    for event in events:
        if event.verdict and event.verdict.kind == "first":
            new_topics.setdefault((event.commit.id, event.namespace), []).append(event)
        else:
            rest.append(event)
    for group in new_topics.values():
        if len(group) <= _MOST_SEPARATE:
            rest += group
            continue
        first = group[0]
        owners = {event.owner for event in group}
        topics = [event.name for event in group if isinstance(event.name, TopicName)]
        rest.append(
            Event(
                first.commit,
                "version",
                first.namespace,
                f"{len(topics)} topics in {first.namespace}",
                chip="new topics",
                owner=first.owner if len(owners) == 1 else "",
                author=first.author,
                topics=topics,
            )
        )
    return sorted(rest, key=lambda event: (-event.commit.time_s, event.title, event.kind))


@dataclass(frozen=True)
class Month:
    """The events of a month, newest first."""

    key: str
    events: Sequence[Event]

    @property
    def name(self) -> str:
        """The name of the month, such as `April 2026`."""
        return datetime.strptime(self.key, "%Y-%m").replace(tzinfo=UTC).strftime("%B %Y")

    @property
    def summary(self) -> str:
        """The number of its breaking changes, and of the clients that they broke."""
        breaking = [event for event in self.events if event.is_breaking]
        if not breaking:
            return "nothing broke"
        kinds = [event.verdict.kind for event in breaking if event.verdict]
        words = {"hurts": "broke a client", "waived": "waived", "breaks": "broke older readers"}
        details = ", ".join(
            f"{kinds.count(kind)} {words[kind]}" for kind in ("hurts", "breaks", "waived") if kind in kinds
        )
        return f"{format_count(len(breaking), 'breaking change')}: {details}"


def group_months(events: Sequence[Event]) -> list[Month]:
    """Return the events by month, newest first; `events` is sorted."""
    return [Month(key, [*group]) for key, group in groupby(events, key=lambda event: event.month)]
