"""What is accepted of a registry maps every number to what the registry holds, whatever happened there."""

from __future__ import annotations

from datetime import date

from estate import ORDERS, avro
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl.comparison.changes import Contents, content_identity
from schemactl.core.catalog import Topic
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.declare.numbers_file import accept
from schemactl.declare.target_numbers import AcceptanceReason, NumberEntry, TargetNumbers, TopicNumbers, target_versions
from schemactl.deploy.version_numbers import topic_apart

CONTENTS = [avro("id", **{f"f{number}": 0}) for number in range(8)]
DAY = date(2026, 11, 22)

Registry = list[SchemaVersion]
Truth = dict[int, SchemaInfo]
"""What was written under each number, whether or not a registry still shows it."""


def entries(*contents: int | None) -> Registry:
    """A registry's list: the contents by their place in CONTENTS, None for a tombstone."""
    return [SchemaVersion(n, None if c is None else CONTENTS[c]) for n, c in enumerate(contents)]


def topic(*contents: int) -> Topic:
    versions = tuple(SchemaVersion(number, CONTENTS[content]) for number, content in enumerate(contents))
    return Topic(ORDERS, versions[-1].info if versions else None, versions)


def accepted(git: Topic, held: Registry, before: TopicNumbers | None = None) -> TopicNumbers | None:
    return accept(git.versions, held, before, AcceptanceReason("a test", accepted=DAY))


def read_with(git: Topic, recorded: TopicNumbers | None) -> Truth:
    """What readers read the messages of each number with."""
    numbers = TargetNumbers("prod", "numbers/prod.yaml", {ORDERS: recorded} if recorded else {})
    return {each.number: each.info for each in target_versions(git, numbers) if each.info}


def told(recorded: TopicNumbers | None) -> dict[int, tuple[int | None, bool, bool]]:
    assert recorded
    return {number: (each.git, each.foreign is not None, each.deleted) for number, each in recorded.entries.items()}


def test_what_is_gits_own_needs_no_record() -> None:
    assert accepted(topic(0, 1), entries(0, 1)) is None
    assert accepted(topic(0, 1, 2), entries(0)) is None


def test_somebody_took_a_number() -> None:
    found = accepted(topic(0, 1), entries(0, 5, 1))
    assert told(found) == {1: (None, True, False), 2: (1, False, False)}
    assert found
    assert {(each.reason, each.accepted) for each in found.entries.values()} == {("a test", DAY)}


def test_the_last_number_is_pinned_so_that_later_ones_count_from_there() -> None:
    """Git's version 0 was never applied: it follows the numbers that are there."""
    assert told(accepted(topic(0, 1), entries(5, 1))) == {0: (None, True, False), 1: (1, False, False)}


def test_what_a_registry_no_longer_shows_is_deleted() -> None:
    assert told(accepted(topic(0, 1), entries(None, None, None))) == {
        0: (None, False, True),
        1: (None, False, True),
        2: (None, False, True),
    }


def test_what_it_still_shows_behind_a_tombstone_is_kept() -> None:
    assert told(accepted(topic(0), entries(0, 5, None, 0))) == {
        0: (0, False, True),
        1: (None, True, True),
        2: (None, False, True),
        3: (0, False, False),
    }


def test_of_what_was_deleted_since_a_record_says_only_that() -> None:
    """The list may have been lost and begun anew meanwhile: what was deleted need not be what was recorded."""
    git = topic(0, 1)
    first = accepted(git, entries(0, 5, 1))
    gone = dict.fromkeys(range(4), (None, False, True))
    again = {4: (0, False, False), 5: (1, False, False)}
    assert told(accepted(git, entries(None, None, None, None, 0, 1), first)) == {**gone, **again}
    assert told(accepted(git, entries(None, None, 0, 1), first)) == {
        0: (None, False, True),
        1: (None, False, True),
        2: (0, False, False),
        3: (1, False, False),
    }


def test_what_somebody_recorded_of_a_deleted_number_stays() -> None:
    git = topic(0, 1)
    first = TopicNumbers({0: NumberEntry(0, git=0, deleted=True), 1: NumberEntry(1, deleted=True)})
    found = accepted(git, entries(None, None, None, 1), first)
    assert told(found) == {0: (0, False, True), 1: (None, False, True), 2: (None, False, True), 3: (1, False, False)}


def test_an_entry_that_still_holds_stays_as_it_is() -> None:
    git = topic(0, 1, 5)
    first = accept((topic(0, 1).versions), entries(0, 5, 1), None, AcceptanceReason("before", accepted=DAY))
    found = accepted(git, entries(0, 5, 1, 6), first)
    assert found
    assert [each.reason for each in found.entries.values()] == ["before", "before", "a test"]
    assert found.entries[1].foreign


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Steps of a topic's life: approvals, applies, uploads by others, deletions, records."""
    kinds = st.sampled_from(["approve", "apply", "foreign", "foreign", "delete", "forget", "accept", "accept"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 7)), min_size=1, max_size=14))


class Life:
    """A topic in Git and in a registry, with what was written under each number."""

    def __init__(self, git: Topic) -> None:
        self.git = git
        self.held = Registry()
        self.truth: Truth = {}
        self.record: TopicNumbers | None = None

    def upload(self, info: SchemaInfo | None) -> None:
        if info and Contents(self.held).find(info) is None:
            self.truth[len(self.held)] = info
            self.held = [*self.held, SchemaVersion(len(self.held), info)]

    def step(self, kind: str, content: int) -> None:
        """`delete` is the embedded registry's, which shows what stood before; `forget` is Pulsar's, which does not."""
        known = [CONTENTS.index(version.info) for version in self.git.versions if version.info]
        if kind == "approve":
            self.git = topic(*dict.fromkeys([*known, content]))
        elif kind == "apply":
            for version in self.git.versions:
                self.upload(version.info)
        elif kind == "foreign":
            self.upload(CONTENTS[content])
        elif kind == "accept":
            self.record = accepted(self.git, self.held, self.record)
        else:
            shown = [SchemaVersion(each.number, None) for each in self.held] if kind == "forget" else self.held
            self.held = [*shown, SchemaVersion(len(shown), None)]

    def misread(self) -> set[int]:
        """The numbers whose messages are read with something else than what wrote them."""
        found = read_with(self.git, self.record)
        return {
            entry.number
            for entry in self.held
            if (info := found.get(entry.number))
            and (
                (written := self.truth.get(entry.number)) is None or content_identity(info) != content_identity(written)
            )
        }

    def apart(self) -> set[int]:
        """The numbers that are told to be otherwise than recorded."""
        found = topic_apart(self.git, self.held, self.record).numbers
        return {each.registry for each in found if not each.recorded}


@settings(deadline=None)
@given(lives())
def test_no_number_that_was_accepted_is_read_as_something_else(steps: list[tuple[str, int]]) -> None:
    life = Life(topic(0))
    for kind, content in steps:
        life.step(kind, content)
        assert life.misread() <= life.apart()
        if kind == "accept":
            assert not life.misread()
            assert not life.apart()
            assert {each.number for each in live(life.held)} <= read_with(life.git, life.record).keys()
            assert accepted(life.git, life.held, life.record) == life.record


@settings(deadline=None)
@given(lives())
def test_what_apply_adds_after_a_record_has_the_expected_number(steps: list[tuple[str, int]]) -> None:
    life = Life(topic(0))
    for kind, content in steps:
        life.step(kind, content)
    for kind in ("accept", "apply"):
        life.step(kind, 0)
    assert not life.apart()
    assert not life.misread()
