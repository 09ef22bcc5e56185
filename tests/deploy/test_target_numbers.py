"""What each number of a target stands for, given its record, and what is accepted of a registry."""

from __future__ import annotations

from datetime import date

from estate import ORDERS, avro
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl.comparison.changes import Contents, content_identity
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion, live
from schemactl.declare.numbers_file import accept
from schemactl.declare.target_numbers import (
    AcceptanceReason,
    NumberEntry,
    TargetNumbers,
    TopicNumbers,
    records_other_numbers,
    target_number,
    target_versions,
)
from schemactl.deploy.rebuild import recorded_lists
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


TEXTS = [avro("id"), avro("id", b=0), avro("id", b=0, c=0), avro("id", b=0, c=0, d=0)]
FOREIGN = avro("id", theirs=0)


def topic_of_versions(count: int) -> Topic:
    versions = tuple(SchemaVersion(number, info) for number, info in enumerate(TEXTS[:count]))
    return Topic(ORDERS, versions[-1].info, versions)


def numbers(*entries: NumberEntry) -> TargetNumbers:
    recorded = TopicNumbers({entry.number: entry for entry in entries})
    return TargetNumbers("prod", "numbers/prod.yaml", {ORDERS: recorded})


def meanings(count: int, *entries: NumberEntry) -> list[int | str]:
    """Git's number where there is one, else `foreign` or `rejected`."""
    return [
        each.git.number if each.git else "foreign" if each.info else "rejected"
        for each in target_versions(topic_of_versions(count), numbers(*entries))
    ]


def test_without_a_record_numbers_are_gits() -> None:
    for recorded in (None, TargetNumbers("prod", "numbers/prod.yaml"), numbers()):
        found = target_versions(topic_of_versions(3), recorded)
        assert [(each.number, each.git, each.info) for each in found] == [
            (version.number, version, version.info) for version in topic_of_versions(3).versions
        ]


def test_what_is_not_listed_below_the_highest_is_gits_own_and_the_rest_follows() -> None:
    entries = NumberEntry(1, foreign=FOREIGN), NumberEntry(2, git=1)
    assert meanings(2, *entries) == [0, "foreign", 1]
    assert meanings(3, *entries) == [0, "foreign", 1, 2]
    assert meanings(4, *entries) == [0, "foreign", 1, 2, 3]


def test_a_version_that_was_never_applied_follows_though_its_number_is_taken() -> None:
    assert meanings(2, NumberEntry(1, foreign=FOREIGN)) == [0, "foreign", 1]


def test_what_was_deleted_is_registered_again_under_new_numbers() -> None:
    gone = [NumberEntry(number, deleted=True) for number in range(3)]
    assert meanings(2, *gone) == ["rejected", "rejected", "rejected", 0, 1]
    kept = (NumberEntry(0, git=0, deleted=True), NumberEntry(1, git=1, deleted=True), NumberEntry(2, deleted=True))
    assert meanings(2, *kept) == [0, 1, "rejected", 0, 1]


def test_a_number_beyond_gits_versions_is_rejected_and_stays_so() -> None:
    """Git's version 1 is not there yet; what number 1 is, nobody recorded."""
    found = target_versions(topic_of_versions(1), numbers(NumberEntry(2, git=0)))
    assert [(each.number, each.info) for each in found] == [(0, TEXTS[0]), (2, TEXTS[0])]


def test_a_high_number_stands_for_itself_alone() -> None:
    """Whatever lies between is nobody's, so that one line of a file makes no code of megabytes."""
    found = target_versions(topic_of_versions(2), numbers(NumberEntry(100_000, deleted=True)))
    assert [each.number for each in found] == [0, 1, 100_000]
    later = target_versions(
        topic_of_versions(2), numbers(NumberEntry(99_999, foreign=FOREIGN), NumberEntry(1, deleted=True))
    )
    assert [each.number for each in later] == [0, 1, 99_999, 100_000]


def test_a_foreign_content_that_was_approved_since_is_gits_version() -> None:
    """Git's version 2 has what somebody uploaded as number 1."""
    entries = NumberEntry(1, foreign=TEXTS[2]), NumberEntry(2, git=1)
    assert meanings(2, *entries) == [0, "foreign", 1]
    assert meanings(3, *entries) == [0, 2, 1]
    assert meanings(4, *entries) == [0, 2, 1, 3]


def test_the_reason_is_told() -> None:
    entries = (
        NumberEntry(0, git=7, reason="moved by hand"),
        NumberEntry(1, deleted=True, reason="cleaned up"),
        NumberEntry(2, foreign=SchemaInfo(SchemaType.AVRO, b'{"type": "record"}'), reason="a test"),
    )
    assert [each.unreadable for each in target_versions(topic_of_versions(1), numbers(*entries))][:3] == [
        "number 0 of prod is recorded as Git's version 7, which the approved history does not have (moved by hand)",
        "number 1 of prod was deleted, and its definition was not recorded (cleaned up)",
        (
            'number 2 of prod is foreign, and its recorded definition cannot be used: "name" of this record is missing or null; '
            "expected a name (a test)"
        ),
    ]


def test_a_version_is_written_under_its_newest_number_that_is_not_deleted() -> None:
    found = target_versions(
        topic_of_versions(2),
        numbers(
            NumberEntry(0, git=0), NumberEntry(1, git=1), NumberEntry(2, git=0), NumberEntry(3, git=0, deleted=True)
        ),
    )
    assert target_number(found, 0) == 2
    assert target_number(found, 1) == 1
    assert target_number(found, 2) is None
    assert [each.git.number for each in found if each.git] == [0, 1, 0, 0]
    only_deleted = target_versions(
        topic_of_versions(1), numbers(NumberEntry(0, git=0, deleted=True), NumberEntry(1, deleted=True))
    )
    assert target_number(only_deleted[:2], 0) == 0
    assert target_number(only_deleted, 0) == 2


def test_a_record_that_says_what_git_says_is_none_of_other_numbers() -> None:
    assert not records_other_numbers(None)
    assert not records_other_numbers(TopicNumbers({1: NumberEntry(1, git=1)}))
    assert records_other_numbers(TopicNumbers({1: NumberEntry(1, git=0)}))
    assert records_other_numbers(TopicNumbers({1: NumberEntry(1, deleted=True)}))
    assert records_other_numbers(TopicNumbers({1: NumberEntry(1, foreign=FOREIGN)}))


def test_a_rebuild_deletes_up_to_a_number_that_is_nobodys() -> None:
    """Number 2 is neither listed nor Git's: its tombstone takes what comes before along."""
    catalog = Catalog(topics={ORDERS: topic_of_versions(2)})
    [found] = recorded_lists(catalog, numbers(NumberEntry(3, git=0), NumberEntry(4, foreign=FOREIGN))).values()
    assert [(pair.registry.number, pair.registry.info) for pair in found if pair.registry] == [
        (0, None),
        (1, None),
        (2, None),
        (3, TEXTS[0]),
        (4, FOREIGN),
    ]
