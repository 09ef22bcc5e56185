"""Answer, for each version of a topic, which readers stop at it, and for each pair of declared clients, whether one reads the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from schemactl.comparison.revision_diff import find_breaks
from schemactl.core.catalog import Client, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, WaiversAt
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaVersion
from schemactl.core.wording import format_count, format_ranges, format_version_numbers
from schemactl.formats import ReadingAnswer, counterexample, judge_reading, resolve, spec

READER_WINDOW: Final = 8
"""The maximum number of earlier versions whose readers are compared with a version."""

_FAILURES: Final = ("no", "misread")
"""The answers of a reader that fails, or that gets other values."""

_OWN_FILE: Final = 1_000_000
"""The number of a client's own definition, which is not a version of the topic."""

VerdictKind = Literal["first", "safe", "breaks", "waived", "hurts", "deleted"]


@dataclass(frozen=True)
class Verdict:
    """The consequence of one version for readers.

    Attributes:
        kind: `hurts` if a declared client breaks today, else `waived` if waivers approved each break.
        readers: the versions whose readers stop here: they can read the versions before, and not this one.
        stopped: the versions whose readers had stopped at an earlier version.
        messages: the versions whose messages readers of this version cannot read, although readers of the version before can.
        reasons: why, each with the versions that it applies to.
        clients: the names of the declared clients that break at this version.
        until: the last day of the first waiver to expire, or "".
        waiver: the reason and the owner of the waiver, or "".
    """

    kind: VerdictKind
    readers: tuple[int, ...] = ()
    stopped: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    reasons: tuple[tuple[tuple[int, ...], str], ...] = ()
    clients: tuple[str, ...] = ()
    until: str = ""
    waiver: str = ""

    @property
    def is_breaking(self) -> bool:
        """Whether readers stop, or messages become unreadable, at this version."""
        return self.kind in ("breaks", "waived", "hurts")

    @property
    def text(self) -> str:
        """The words of the chip."""
        if self.kind == "hurts":
            names = ", ".join(self.clients[:2])
            return f"breaks {names}{f' and {len(self.clients) - 2} more' if len(self.clients) > 2 else ''}"
        if self.kind == "waived":
            return f"waived until {self.until}"
        if self.kind == "breaks":
            return (
                f"breaks readers {format_span(self.readers)}"
                if self.readers
                else f"cannot read {format_span(self.messages)}"
            )
        return {"first": "first version", "deleted": "deleted"}.get(self.kind, "safe")

    @property
    def summary(self) -> str:
        """A sentence about the readers, or "" if no reader stops."""
        parts = []
        if self.readers:
            parts.append(f"Readers of {format_span(self.readers)} stop here.")
        if self.messages:
            parts.append(f"Readers of this version cannot read messages of {format_span(self.messages)}.")
        return " ".join(parts)


FIRST: Final = Verdict("first")
DELETED: Final = Verdict("deleted")


def format_span(numbers: Sequence[int]) -> str:
    """Return version numbers as short text, such as `v0-v3, v5`."""
    return re.sub(r"\d+", r"v\g<0>", format_ranges(numbers)).replace("-", "\N{EN DASH}")


class Readings:
    """The answers of readers of one topic, each computed once."""

    def __init__(self) -> None:
        self._answers: dict[tuple[int, int, str], ReadingAnswer] = {}

    def get_answer(self, reader: SchemaVersion, writer: SchemaVersion, language: str = "") -> ReadingAnswer:
        """Return whether readers with one version can read the messages of another."""
        key = (reader.number, writer.number, language)
        if key not in self._answers:
            self._answers[key] = judge_reading(reader=reader, writer=writer, language=language, explains=False).answer
        return self._answers[key]

    def fails(self, reader: SchemaVersion, writer: SchemaVersion, language: str = "") -> bool:
        """Return whether the reader fails, or gets other values."""
        return self.get_answer(reader, writer, language) in _FAILURES

    def explain(self, reader: SchemaVersion, writer: SchemaVersion, language: str = "") -> str:
        """Return the first reason against the reader, or ""."""
        if self.get_answer(reader, writer, language) == "yes":
            return ""
        return judge_reading(reader=reader, writer=writer, language=language).reason


@dataclass(frozen=True)
class Break:
    """The version that a producer writes, and the version of a consumer that cannot read it."""

    writer: SchemaVersion
    reader: SchemaVersion
    reason: str

    @property
    def writer_text(self) -> str:
        """The version of the writer."""
        return _name_build(self.writer)

    @property
    def reader_text(self) -> str:
        """The version of the reader."""
        return _name_build(self.reader)


@dataclass(frozen=True)
class Pair:
    """A producer, or None for unknown producers, a consumer of the same topic, and the versions that the consumer cannot read.

    Attributes:
        writes: the versions that the producer is built with, newest first.
        reads: the versions that the consumer is built with, newest first.
        proof: a message of the producer that the consumer cannot read, or None.
    """

    producer: Client | None
    consumer: Client
    writes: tuple[SchemaVersion, ...]
    reads: tuple[SchemaVersion, ...]
    breaks: tuple[Break, ...] = ()
    proof: Counterexample | None = None

    @property
    def written_texts(self) -> list[str]:
        """The versions that the producer writes."""
        return [*map(_name_build, self.writes)]

    @property
    def written(self) -> str:
        """The versions that the producer writes, as one text."""
        return ", ".join(self.written_texts)

    @property
    def read(self) -> str:
        """The versions that the consumer is built with."""
        return ", ".join(map(_name_build, self.reads))


@dataclass(frozen=True)
class TopicVerdicts:
    """The verdicts of a topic: of each version by its number, and of each pair of clients."""

    versions: Mapping[int, Verdict]
    pairs: Sequence[Pair] = ()
    readings: Readings = field(default_factory=Readings)
    older_problems: Sequence[Pair] = ()
    """The pairs whose consumer breaks today, and already broke before the newest change."""

    @property
    def alarms(self) -> list[Pair]:
        """The pairs whose consumer breaks since the newest change."""
        return [pair for pair in self.broken if pair not in self.older_problems]

    @property
    def broken(self) -> list[Pair]:
        """The pairs whose consumer breaks today."""
        return [pair for pair in self.pairs if pair.breaks]

    @property
    def broken_consumers(self) -> list[str]:
        """The names of the consumers that break today."""
        return list(dict.fromkeys(pair.consumer.name for pair in self.broken))


def judge_topic(
    topic: Topic, current: int | None, strategy: CompatibilityStrategy, waivers: WaiversAt
) -> TopicVerdicts:
    """Return the verdicts of a topic.

    Args:
        topic: the topic with its versions, all read.
        current: the number of the version in force, or None if the schema was removed.
        strategy: the strategy by which the data of its readers is judged.
        waivers: returns the waivers in the tree of a commit.
    """
    readings = Readings()
    verdicts: dict[int, Verdict] = {}
    # The version at which the readers of a version stopped, and at which its messages became unreadable.
    stops: dict[int, int] = {}
    losses: dict[int, int] = {}
    versions_by_kind: dict[str, list[SchemaVersion]] = {}
    for version in topic.versions:
        if version.info is None:
            verdicts[version.number] = DELETED
            continue
        earlier = versions_by_kind.setdefault(version.kind, [])
        if not earlier:
            verdicts[version.number] = FIRST
            earlier.append(version)
            continue
        stopped = tuple(other.number for other in earlier if other.number in stops)
        readers: list[int] = []
        messages: list[int] = []
        rows: list[tuple[int, str]] = []
        for other in earlier[-READER_WINDOW:]:
            if other.number not in stops and readings.fails(other, version):
                stops[other.number] = version.number
                readers.append(other.number)
                rows.append((other.number, readings.explain(other, version)))
            if other.number not in losses and readings.fails(version, other):
                losses[other.number] = version.number
                messages.append(other.number)
                rows.append((other.number, readings.explain(version, other)))
        reasons = tuple((tuple(numbers), reason) for numbers, reason in group_reasons(rows))
        kind: VerdictKind = "breaks" if readers or messages else "safe"
        verdicts[version.number] = Verdict(kind, tuple(readers), stopped, tuple(messages), reasons)
        earlier.append(version)
    pairs = [*_judge_pairs(topic, current, readings)]
    harmed_clients: dict[int, dict[str, None]] = {}
    for pair in pairs:
        for pair_break in pair.breaks:
            number = _find_break_number(pair_break, stops, losses)
            if number is not None:
                harmed_clients.setdefault(number, {})[pair.consumer.name] = None
    for number, clients in harmed_clients.items():
        verdicts[number] = replace(verdicts[number], kind="hurts", clients=(*clients,))
    for number, verdict in verdicts.items():
        if verdict.kind == "breaks":
            verdicts[number] = _apply_waivers(topic, number, verdict, strategy, waivers)
    older_problems = []
    # A return to an older version is newer than every version.
    if current is not None and current == max(verdicts, default=None):
        for pair in pairs:
            break_numbers = [_find_break_number(pair_break, stops, losses) for pair_break in pair.breaks]
            if break_numbers and all(number is not None and number < current for number in break_numbers):
                older_problems.append(pair)
    return TopicVerdicts(verdicts, pairs, readings, older_problems)


def group_reasons(rows: Sequence[tuple[int, str]]) -> list[tuple[list[int], str]]:
    """Return each reason once, with the versions that it applies to; `rows` has a version and its reason."""
    numbers_by_reason: dict[str, list[int]] = {}
    for number, reason in rows:
        # The reasons of several versions differ in the number alone.
        numbers_by_reason.setdefault(re.sub(rf"\bversion {number}\b", "version {}", reason), []).append(number)
    return [
        (numbers, reason.replace("version {}", format_version_numbers(numbers)))
        for reason, numbers in numbers_by_reason.items()
    ]


def _apply_waivers(
    topic: Topic, number: int, verdict: Verdict, strategy: CompatibilityStrategy, waivers: WaiversAt
) -> Verdict:
    """Return the verdict `waived` if waivers approved every break of protected readers, else `verdict`."""
    version = next(version for version in topic.versions if version.number == number)
    stored = [other for other in topic.versions if other.number < number]
    existing = [other for other in stored if other.kind == version.kind or not other.info]
    try:
        breaks = [
            version_break
            for version_break in find_breaks(topic.name, existing, stored, version, strategy, waivers)
            if version_break.is_error
        ]
    except InvalidSchema:
        return verdict
    approvals = [version_break.waiver for version_break in breaks]
    if not approvals or not all(approvals):
        return verdict
    first = min((waiver for waiver in approvals if waiver), key=lambda waiver: waiver.until)
    return replace(verdict, kind="waived", until=str(first.until), waiver=f"{first.reason} ({first.owner})")


def _judge_pairs(topic: Topic, current: int | None, readings: Readings) -> Iterator[Pair]:
    """Yield a pair for each declared producer and consumer; without producers, messages are of the version in force."""
    producers: list[Client | None] = [client for client in topic.clients if not client.reads]
    for producer in producers or [None]:
        if producer:
            writes = _list_builds(producer, topic)
        else:
            writes = tuple(version for version in topic.versions if version.number == current)
        for consumer in topic.clients:
            if consumer.reads:
                reads = _list_builds(consumer, topic)
                breaks = tuple(_find_pair_breaks(writes, reads, consumer, readings))
                proof = next(filter(None, map(_find_proof, breaks)), None)
                yield Pair(producer, consumer, writes, reads, breaks, proof)


def _list_builds(client: Client, topic: Topic) -> tuple[SchemaVersion, ...]:
    """Return the versions that a client is built with; one on `latest` counts as after its next build."""
    builds = client.builds(topic.versions)
    by_number = {version.number: version for version in topic.versions}
    offset = _OWN_FILE + (not client.reads)
    return tuple(
        by_number[build.number] if build.number is not None else SchemaVersion(offset, build.info) for build in builds
    )


def _find_pair_breaks(
    writes: Sequence[SchemaVersion], reads: Sequence[SchemaVersion], consumer: Client, readings: Readings
) -> Iterator[Break]:
    for writer in writes:
        for reader in reads:
            if writer.kind != reader.kind and max(writer.number, reader.number) < _OWN_FILE:
                continue
            language = consumer.known_language
            if not (reader.info and spec(reader.info).has_client_rules(language)):
                language = ""
            # Clients' own definitions share one number, so their answers are not cached.
            is_own = max(writer.number, reader.number) >= _OWN_FILE
            answers = Readings() if is_own else readings
            if answers.fails(reader, writer, language):
                yield Break(writer, reader, answers.explain(reader, writer, language))


def _find_proof(pair_break: Break) -> Counterexample | None:
    """Return a message that proves a break, or None if no such message was found."""
    writer, reader = pair_break.writer, pair_break.reader
    if writer.info is None or reader.info is None:
        return None
    is_newer = reader.number > writer.number
    old, new = (writer, reader) if is_newer else (reader, writer)
    assert old.info  # noqa: S101  both have a definition
    assert new.info  # noqa: S101
    try:
        for incompatibility in resolve(reader=reader.info, writer=writer.info):
            direction: Literal["new_reads_old", "old_reads_new"] = "new_reads_old" if is_newer else "old_reads_new"
            proof = counterexample(Breakage(incompatibility, direction, old.number), new=new.info, old=old.info)
            if proof:
                return proof
    except InvalidSchema:
        return None
    return None


def _find_break_number(pair_break: Break, stops: Mapping[int, int], losses: Mapping[int, int]) -> int | None:
    """Return the version at which a consumer broke, or None if a client has its own definition."""
    reader, writer = pair_break.reader.number, pair_break.writer.number
    if max(reader, writer) >= _OWN_FILE:
        return None
    return stops.get(reader, writer) if reader < writer else losses.get(writer, reader)


def _name_build(version: SchemaVersion) -> str:
    return f"v{version.number}" if version.number < _OWN_FILE else "own file"


def count_broken(names: Sequence[str], consumers: int) -> str:
    """Return how many consumers break, such as `1 of 3 consumers breaks today`."""
    verb = "breaks" if len(names) == 1 else "break"
    return f"{len(names)} of {format_count(consumers, 'consumer')} {verb} today"
