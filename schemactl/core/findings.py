"""Define the results of checks: incompatibilities, verdicts, findings, and the waivers of findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Any, Final, Literal, Self, TypeVar

from schemactl.core.edits import TextEdit
from schemactl.core.errors import Source
from schemactl.core.names import TopicName
from schemactl.core.schema import Commit

Severity = Literal["error", "warning", "note"]


T = TypeVar("T")


Direction = Literal["new_reads_old", "old_reads_new", "both"]
"""The reader and the writer: `new_reads_old` protects consumers that upgrade first, `old_reads_new` consumers that upgrade last."""

_BROKER_MESSAGE: Final = "\nIts message: "
"""The text before the broker's own message, at the end of a finding's message."""

UpgradeFirst = Literal["consumers", "producers", "any order", "none"]
"""The clients to upgrade first to a new version; `none` if no order is safe."""


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A reason why a reader cannot read the messages of a writer, or reads another value than the written one (a misreading).

    Attributes:
        rule: the id in `schemactl.core.rules`, as in Avro's Java SchemaCompatibility or buf.
        pointer: the JSON pointer into the reader's definition as in Java, whose last token may be a branch of the writer.
        message: the message of the reference implementation; of a misreading, how the value is written and how it is read.
        written: for a misreading, the written type or the written names; "" if the message has neither.
        read: for a misreading, the type that it is read as; "" if the message does not name it.
        strict_only: whether only strict readers reject such messages, while Pulsar's Java reader decodes them.
        trace: data by which the format finds the location again; private to the format.
        is_warning: whether a misreading changes only the meaning of a value, or only some values, which is a warning by default.
    """

    rule: str
    pointer: str
    message: str = ""
    strict_only: bool = False
    trace: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)
    is_warning: bool = False
    written: str = field(default="", compare=False, repr=False)
    read: str = field(default="", compare=False, repr=False)

    @property
    def is_error(self) -> bool:
        """Whether it is an error by default: Pulsar's Java readers fail, or get another value than the written one."""
        return not (self.strict_only or self.is_warning)

    def move_to(self, pointer: str) -> Incompatibility:
        """Return the incompatibility with another pointer, for an outer or inner definition."""
        return replace(self, pointer=pointer)


@dataclass(frozen=True, slots=True)
class Breakage:
    """An incompatibility of a proposed schema with an earlier one.

    Attributes:
        against: the number of the earlier version.
        older: the name of the earlier version, or "" for `version N`.
    """

    incompatibility: Incompatibility
    direction: Direction
    against: int
    older: str = ""

    @property
    def older_name(self) -> str:
        """The name of the earlier version for messages."""
        return self.older or f"version {self.against}"

    def sides(self, *, new: T, old: T) -> tuple[T, T]:
        """Order the two sides as reader and writer."""
        return order_sides(self.direction, new=new, old=old)


def order_sides(direction: Direction, *, new: T, old: T) -> tuple[T, T]:
    """Return the reader and the writer of a direction."""
    return (old, new) if direction == "old_reads_new" else (new, old)


class Outcome(StrEnum):
    """The answer of a broker to an upload, or to a compatibility test, which never answers `unchanged`."""

    OK = "ok"
    UNCHANGED = "unchanged"
    INCOMPATIBLE = "incompatible"
    INVALID = "invalid"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a broker.

    Attributes:
        version: the version number, or None for a rejection.
        message: the message of the broker.
        exception: the simple name of the Java exception behind a rejection, or "".
    """

    outcome: Outcome
    version: int | None = None
    message: str = ""
    exception: str = ""


class DataState(StrEnum):
    """The data verdict on a proposed schema."""

    COMPATIBLE = "compatible"
    BREAKING = "breaking"
    NOT_JUDGED = "not_judged"
    """The strategy does not protect any reader."""
    UNPARSABLE = "unparsable"
    """The new definition, or an earlier one, does not parse by the rules of the newest release."""

    @property
    def json(self) -> str | None:
        """The value in the JSON of `compare`: None for a definition that does not parse, compatible if no reader is protected."""
        if self is DataState.UNPARSABLE:
            return None
        return str(DataState.COMPATIBLE if self is DataState.NOT_JUDGED else self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Both verdicts on one proposed schema.

    Attributes:
        broker: the answer of the registry to the upload.
        test: the answer of its compatibility endpoint.
        state: the data verdict.
        data: all breakages, newest version first, new_reads_old before old_reads_new; () unless `state` is BREAKING.
        misread: in the same order, the places where a reader decodes a message and gets another value than the written one.
        approved: the breakages in `data` and `misread` that the latest version also has, with the same earlier versions.
    """

    broker: Answer
    test: Answer
    state: DataState
    data: tuple[Breakage, ...] = ()
    misread: tuple[Breakage, ...] = ()
    approved: tuple[Breakage, ...] = ()

    @property
    def errors(self) -> tuple[Breakage, ...]:
        """The breakages that are errors by default: neither warnings nor approved before."""
        return tuple(
            breakage
            for breakage in self.breakages
            if breakage.incompatibility.is_error and breakage not in self.approved
        )

    @property
    def breakages(self) -> tuple[Breakage, ...]:
        """Every way in which a reader fails or gets another value: first `data`, then `misread`."""
        return (*self.data, *self.misread)

    @property
    def values(self) -> Literal["kept", "changed"] | None:
        """Whether every reader that the strategy protects gets the written values; None for a definition that does not parse."""
        if self.state is DataState.UNPARSABLE:
            return None
        return "changed" if self.breakages else "kept"

    @property
    def checked(self) -> str | None:
        """The data verdict of `check`, or None for a definition that does not parse.

        Messages that are read as other values are breaking as well: `compatible` promises the written value. Breakages that were
        approved before are not.
        """
        if self.state is DataState.UNPARSABLE:
            return None
        if self.state is DataState.BREAKING and all(breakage in self.approved for breakage in self.data):
            return str(DataState.BREAKING if self.errors else DataState.COMPATIBLE)
        is_misread = self.state is DataState.COMPATIBLE and bool(self.errors)
        return str(DataState.BREAKING if is_misread else self.state)

    @property
    def is_compatible(self) -> bool:
        """Whether the registry accepts the schema and every reader that the strategy protects gets the written values.

        By the Avro specification, a breakage for strict readers counts too.
        """
        is_accepted = self.broker.outcome in (Outcome.OK, Outcome.UNCHANGED)
        return is_accepted and self.values == "kept"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A message that proves a breakage.

    Attributes:
        message: the smallest message, as JSON text.
        data: the bytes of the message on the topic.
        result: the observed result of the reader: an exception or a wrong value.
    """

    message: str
    data: bytes
    result: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A violated rule at a location, as shown in reports.

    Attributes:
        verdict: the origin of the rule: the broker, readers of the data, the declaration (policies, history), or the tables
            that the topic feeds; `lint` for a probable mistake that breaks nothing yet.
        message: the consequences and who is affected, in full sentences.
        fix: the text to write instead, or "".
        edit: the edit of a file that makes the fix, if only one edit does.
        alternatives: the edits among which a person chooses, if there are several.
        field: the path of the field for messages (`Order.lines[].price`), or "".
        pointer: the JSON pointer, "" for the root.
        against: the numbers of the versions that break.
        older: the location in the older version, if the pointer belongs to it.
        counterexample: a message that proves a breakage, or None.
        before_change: whether the location is in the approved file, because the change removes it.
        only_at_tip: whether only changes that were approved after the branch began cause it.
        commit: the commit of the branch that causes it, or None for the last state of the branch.
        fingerprint: the identifier in waivers (see `schemactl.comparison.fingerprint`), or "" if it cannot be waived.
        waiver: the waiver that approves it, or None.
        targets: the targets that it concerns; () if it does not depend on a target.
        owner: the owner of the affected client, or "" for the owner of the topic.
        kind: the kind of events that it concerns, or "" for the whole topic.
        predates_change: whether the approved schema has the problem as well, so that it is not an error of the change.
        landing_stop: the sentence of `message` that says where landing stops, or "".
    """

    rule: str
    severity: Severity
    verdict: Literal["broker", "data", "declaration", "tables", "lint"]
    topic: TopicName | None
    source: Source | None
    message: str
    fix: str = ""
    field: str = ""
    pointer: str = ""
    direction: Direction | None = None
    against: tuple[int, ...] = ()
    older: Source | None = None
    counterexample: Counterexample | None = None
    before_change: bool = False
    only_at_tip: bool = False
    commit: Commit | None = None
    fingerprint: str = ""
    waiver: Waiver | None = None
    targets: tuple[str, ...] = ()
    owner: str = ""
    edit: TextEdit | None = None
    alternatives: tuple[TextEdit, ...] = ()
    kind: str = ""
    predates_change: bool = False
    landing_stop: str = ""

    @property
    def summary(self) -> str:
        """The first line of the message; in a data finding, the obligation that the schema breaks."""
        return self.message.partition("\n")[0]

    @property
    def details(self) -> str:
        """The lines of the message after the first; in a data finding, the reason why the obligation is broken."""
        return self.message.partition("\n")[2]

    @property
    def own_message(self) -> str:
        """The message without the broker's message at its end."""
        return self.message.partition(_BROKER_MESSAGE)[0]

    @property
    def place(self) -> Source | None:
        """The location in the new files, or None if it no longer exists there."""
        return None if self.before_change else self.source

    @property
    def key(self) -> tuple[str, str, str] | None:
        """The values that it shares with its waiver (see `Waiver.key`), or None if it cannot be waived."""
        return (self.rule, self.topic.schema_id, self.fingerprint) if self.topic and self.fingerprint else None

    @property
    def former_key(self) -> tuple[str, str, str] | None:
        """The values that it shares with an approved waiver that names its former fingerprint."""
        former = getattr(self.fingerprint, "former", self.fingerprint)
        return (self.rule, self.topic.schema_id, former) if self.topic and former else None


def quote_broker(message: str) -> str:
    """Return the end of a finding's message that quotes the broker's own message."""
    return f"{_BROKER_MESSAGE}{message}"


class Fingerprint(str):
    """The fingerprint of a finding (see `schemactl.comparison.fingerprint`).

    Attributes:
        former: the fingerprint without aliases, enum defaults and properties; waivers from before these were included name it.
    """

    __slots__ = ("former",)
    former: str

    def __new__(cls, text: str, former: str = "") -> Self:
        """Return the fingerprint `text`; it is also the former one by default."""
        fingerprint = super().__new__(cls, text)
        fingerprint.former = former or text
        return fingerprint


@dataclass(frozen=True, slots=True)
class Waiver:
    """An entry of the waiver file, which approves one finding on one change.

    Attributes:
        rule: the rule of the finding.
        topic: the topic of the finding.
        fingerprint: the fingerprint of the finding (see `schemactl.comparison.fingerprint`).
        until: its last valid day, in UTC.
        source: the location of the entry.
        field: the field of the finding, for information.
    """

    rule: str
    topic: TopicName
    fingerprint: str
    reason: str
    owner: str
    until: date
    source: Source | None = field(default=None, compare=False)
    field: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The values that it shares with its finding: rule, topic without domain, fingerprint."""
        return self.rule, self.topic.schema_id, self.fingerprint


WaiversAt = Callable[[Commit], Sequence[Waiver]]
"""Returns the waivers in the tree of a commit."""
