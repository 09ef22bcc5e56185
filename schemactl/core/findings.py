"""`Incompatibility`, `Breakage`, `Verdict`, `Counterexample`, `Finding`, `Waiver`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Any, Literal, Self, TypeVar

from schemactl.core.errors import Source
from schemactl.core.names import TopicName
from schemactl.core.schema import Commit


@dataclass(frozen=True, slots=True)
class Waiver:
    """An entry of the waiver file: one finding on one change is approved all the same.

    Attributes:
        rule: the finding's, as are `topic` and `fingerprint` (see `schemactl.comparison.fingerprint`).
        until: the last day, in UTC, on which it approves anything.
        source: where the entry stands.
        field: the finding's, for people.
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
        """What it has in common with the finding it waives: rule, topic without domain, fingerprint."""
        return self.rule, self.topic.schema_id, self.fingerprint


class Fingerprint(str):
    """The fingerprint of a finding (see `schemactl.comparison.fingerprint`).

    Attributes:
        former: the fingerprint without aliases, enum defaults and properties, by which waivers were approved before these counted.
    """

    __slots__ = ("former",)
    former: str

    def __new__(cls, text: str, former: str = "") -> Self:
        """Return the fingerprint `text`; it is also the former one by default."""
        fingerprint = super().__new__(cls, text)
        fingerprint.former = former or text
        return fingerprint


WaiversAt = Callable[[Commit], Sequence[Waiver]]
"""Returns the waivers in the tree of a commit."""


Severity = Literal["error", "warning", "note"]

T = TypeVar("T")

Direction = Literal["new_reads_old", "old_reads_new", "both"]
"""Who reads whom: `new_reads_old` protects consumers that upgrade first, `old_reads_new` those that upgrade last."""


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader cannot read what a writer wrote.

    Attributes:
        rule: id in `schemactl.core.rules`, as Avro's Java SchemaCompatibility or buf spell it.
        pointer: JSON pointer into the reader's definition as Java gives it (its last token may be a writer's branch).
        message: the message of the reference implementation.
        strict_only: only strict readers refuse such messages; Pulsar's Java reader decodes them.
        trace: how the format that found it finds the place again; private to that format.
    """

    rule: str
    pointer: str
    message: str = ""
    strict_only: bool = False
    trace: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)

    def moved(self, pointer: str) -> Incompatibility:
        """Return the same one at another pointer: in a definition around this one, or inside it."""
        return replace(self, pointer=pointer)


@dataclass(frozen=True, slots=True)
class Breakage:
    """An incompatibility of a proposed schema with an earlier one.

    Attributes:
        against: the number of the earlier version.
        older: a name for the earlier one; "" for `version N`.
    """

    incompatibility: Incompatibility
    direction: Direction
    against: int
    older: str = ""

    @property
    def older_name(self) -> str:
        """The name of the earlier schema, for people."""
        return self.older or f"version {self.against}"

    def sides(self, *, new: T, old: T) -> tuple[T, T]:
        """Return reader and writer."""
        return (old, new) if self.direction == "old_reads_new" else (new, old)


class Outcome(StrEnum):
    """What a broker's registry answers to an upload (all five) or to its compatibility endpoint (never `unchanged`)."""

    OK = "ok"
    UNCHANGED = "unchanged"
    INCOMPATIBLE = "incompatible"
    INVALID = "invalid"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Answer:
    """A broker's answer: the outcome, the version number it gives back (None when it refuses), and its words.

    `exception` is the simple name of the Java exception behind a refusal, where there is one.
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
    """The strategy protects nobody."""
    UNPARSABLE = "unparsable"
    """The new definition, or one it is compared with, does not parse under the newest release's rules."""

    @property
    def json(self) -> str | None:
        """What `compare` says of it, which answers for the strategy alone: null where something does not parse, compatible where nobody is protected."""
        if self is DataState.UNPARSABLE:
            return None
        return str(DataState.COMPATIBLE if self is DataState.NOT_JUDGED else self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Both verdicts on one proposed schema.

    Attributes:
        broker: what the registry answers to the upload.
        test: what its compatibility endpoint answers.
        state: the data verdict.
        data: every breakage, newest version first, new_reads_old before old_reads_new; empty unless `state` is BREAKING.
    """

    broker: Answer
    test: Answer
    state: DataState
    data: tuple[Breakage, ...] = ()

    @property
    def is_compatible(self) -> bool:
        """Whether the registry accepts the schema and every reader that the strategy protects can read.

        As the specification has it: a breakage that only strict readers meet counts.
        """
        accepted = self.broker.outcome in (Outcome.OK, Outcome.UNCHANGED)
        return accepted and self.state in (DataState.COMPATIBLE, DataState.NOT_JUDGED)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """One message that proves a breakage.

    Attributes:
        message: the smallest one, as JSON text.
        data: the same as bytes on the topic.
        result: what the other side gets: the exception, or the wrong value. It has been seen, not guessed.
    """

    message: str
    data: bytes
    result: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a report shows: a rule that fires, placed in a file, for somebody.

    Attributes:
        verdict: whose verdict it is: the broker's, the data's, the declaration's own (policies, history), or that of the
            tables that the topic feeds; `lint`: it breaks nothing yet.
        message: what happens and for whom, in full sentences.
        fix: what to write instead; may be empty.
        field: the path of the field for people (`Order.lines[].price`), "" for the whole.
        pointer: the JSON pointer, "" for the whole.
        against: the numbers of the versions that break.
        older: the place in the older version, where the pointer belongs to it.
        counterexample: a message that proves a breakage of data; None where none can exist, or none was found.
        before_change: the place is as it was approved: the line, or its file, is gone.
        only_at_tip: it was not so where the work left the approved history: what was approved since makes it so.
        commit: the one of the branch that it is about; None: it is about the end.
        fingerprint: what a waiver of it names (see `schemactl.comparison.fingerprint`); "": none can waive it.
        waiver: by which it is approved all the same; None: it is not.
        targets: those for which it holds; (): it is about no target in particular.
        owner: who answers for what it is about, where that is a client; "": whoever answers for the topic.
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

    @property
    def place(self) -> Source | None:
        """The place in the new files; None if it no longer exists there, so that no wrong line is marked."""
        return None if self.before_change else self.source

    @property
    def key(self) -> tuple[str, str, str] | None:
        """What it has in common with its waiver (see `Waiver.key`); None: none can waive it."""
        return (self.rule, self.topic.schema_id, self.fingerprint) if self.topic and self.fingerprint else None

    @property
    def former_key(self) -> tuple[str, str, str] | None:
        """What it has in common with an approved waiver that names its former fingerprint."""
        former = getattr(self.fingerprint, "former", self.fingerprint)
        return (self.rule, self.topic.schema_id, former) if self.topic and former else None
