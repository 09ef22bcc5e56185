"""The meaning of each version number of a target with its record, and the accepted entries of a registry."""

from __future__ import annotations

from datetime import date

from estate import ORDERS, make_order_info
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl.comparison.changes import Contents, content_identity
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion, get_live_versions
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
from schemactl.deploy.version_numbers import find_topic_apart

CONTENTS = [make_order_info("id", **{f"f{number}": 0}) for number in range(8)]
DAY = date(2026, 11, 22)

Registry = list[SchemaVersion]
Truth = dict[int, SchemaInfo]
"""The schema behind each number, whether or not a registry still shows it."""


def make_entries(*contents: int | None) -> Registry:
    """A registry's list: the contents by their place in CONTENTS, None for a tombstone."""
    return [SchemaVersion(n, None if c is None else CONTENTS[c]) for n, c in enumerate(contents)]


def make_topic(*contents: int) -> Topic:
    versions = tuple(SchemaVersion(number, CONTENTS[content]) for number, content in enumerate(contents))
    return Topic(ORDERS, versions[-1].info if versions else None, versions)


def accept_list(git: Topic, held: Registry, before: TopicNumbers | None = None) -> TopicNumbers | None:
    return accept(git.versions, held, before, AcceptanceReason("a test", accepted=DAY))


def read_with(git: Topic, recorded: TopicNumbers | None) -> Truth:
    """Return the schema with which readers decode the messages of each number."""
    numbers = TargetNumbers("prod", "numbers/prod.yaml", {ORDERS: recorded} if recorded else {})
    return {version.number: version.info for version in target_versions(git, numbers) if version.info}


def summarize(recorded: TopicNumbers | None) -> dict[int, tuple[int | None, bool, bool]]:
    assert recorded
    return {number: (entry.git, entry.foreign is not None, entry.deleted) for number, entry in recorded.entries.items()}


def test_what_is_gits_own_needs_no_record() -> None:
    assert accept_list(make_topic(0, 1), make_entries(0, 1)) is None
    assert accept_list(make_topic(0, 1, 2), make_entries(0)) is None


def test_somebody_took_a_number() -> None:
    result = accept_list(make_topic(0, 1), make_entries(0, 5, 1))
    assert summarize(result) == {1: (None, True, False), 2: (1, False, False)}
    assert result
    assert {(entry.reason, entry.accepted) for entry in result.entries.values()} == {("a test", DAY)}


def test_the_last_number_is_pinned_so_that_later_ones_count_from_there() -> None:
    """Git's version 0 was never applied: it follows the numbers that are there."""
    assert summarize(accept_list(make_topic(0, 1), make_entries(5, 1))) == {
        0: (None, True, False),
        1: (1, False, False),
    }


def test_what_a_registry_no_longer_shows_is_deleted() -> None:
    assert summarize(accept_list(make_topic(0, 1), make_entries(None, None, None))) == {
        0: (None, False, True),
        1: (None, False, True),
        2: (None, False, True),
    }


def test_what_it_still_shows_behind_a_tombstone_is_kept() -> None:
    assert summarize(accept_list(make_topic(0), make_entries(0, 5, None, 0))) == {
        0: (0, False, True),
        1: (None, True, True),
        2: (None, False, True),
        3: (0, False, False),
    }


def test_of_what_was_deleted_since_a_record_says_only_that() -> None:
    """The version list may have been lost and restarted, so the deleted entry is not necessarily the recorded one."""
    git = make_topic(0, 1)
    first = accept_list(git, make_entries(0, 5, 1))
    gone = dict.fromkeys(range(4), (None, False, True))
    again = {4: (0, False, False), 5: (1, False, False)}
    assert summarize(accept_list(git, make_entries(None, None, None, None, 0, 1), first)) == {**gone, **again}
    assert summarize(accept_list(git, make_entries(None, None, 0, 1), first)) == {
        0: (None, False, True),
        1: (None, False, True),
        2: (0, False, False),
        3: (1, False, False),
    }


def test_what_somebody_recorded_of_a_deleted_number_stays() -> None:
    git = make_topic(0, 1)
    first = TopicNumbers({0: NumberEntry(0, git=0, deleted=True), 1: NumberEntry(1, deleted=True)})
    result = accept_list(git, make_entries(None, None, None, 1), first)
    assert summarize(result) == {
        0: (0, False, True),
        1: (None, False, True),
        2: (None, False, True),
        3: (1, False, False),
    }


def test_an_entry_that_still_holds_stays_as_it_is() -> None:
    git = make_topic(0, 1, 5)
    first = accept((make_topic(0, 1).versions), make_entries(0, 5, 1), None, AcceptanceReason("before", accepted=DAY))
    result = accept_list(git, make_entries(0, 5, 1, 6), first)
    assert result
    assert [entry.reason for entry in result.entries.values()] == ["before", "before", "a test"]
    assert result.entries[1].foreign


@st.composite
def draw_life(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Steps of a topic's life: approvals, applies, uploads by others, deletions, records."""
    kinds = st.sampled_from(["approve", "apply", "foreign", "foreign", "delete", "forget", "accept", "accept"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 7)), min_size=1, max_size=14))


class Life:
    """A topic in Git and in a registry, with the schema behind each number."""

    def __init__(self, git: Topic) -> None:
        self.git = git
        self.held = Registry()
        self.truth: Truth = {}
        self.record: TopicNumbers | None = None

    def upload(self, info: SchemaInfo | None) -> None:
        if info and Contents(self.held).find(info) is None:
            self.truth[len(self.held)] = info
            self.held = [*self.held, SchemaVersion(len(self.held), info)]

    def take_step(self, kind: str, content: int) -> None:
        """`delete` is the embedded registry's, which shows what stood before; `forget` is Pulsar's, which does not."""
        contents_known = [CONTENTS.index(version.info) for version in self.git.versions if version.info]
        if kind == "approve":
            self.git = make_topic(*dict.fromkeys([*contents_known, content]))
        elif kind == "apply":
            for version in self.git.versions:
                self.upload(version.info)
        elif kind == "foreign":
            self.upload(CONTENTS[content])
        elif kind == "accept":
            self.record = accept_list(self.git, self.held, self.record)
        else:
            visible_versions = (
                [SchemaVersion(version.number, None) for version in self.held] if kind == "forget" else self.held
            )
            self.held = [*visible_versions, SchemaVersion(len(visible_versions), None)]

    def list_misread(self) -> set[int]:
        """Return the numbers whose messages are decoded with another schema than the writer's."""
        result = read_with(self.git, self.record)
        return {
            entry.number
            for entry in self.held
            if (info := result.get(entry.number))
            and (
                (written := self.truth.get(entry.number)) is None or content_identity(info) != content_identity(written)
            )
        }

    def list_apart(self) -> set[int]:
        """The numbers that are told to be otherwise than recorded."""
        result = find_topic_apart(self.git, self.held, self.record).numbers
        return {number.registry for number in result if not number.recorded}


@settings(deadline=None)
@given(draw_life())
def test_no_number_that_was_accepted_is_read_as_something_else(steps: list[tuple[str, int]]) -> None:
    life = Life(make_topic(0))
    for kind, content in steps:
        life.take_step(kind, content)
        assert life.list_misread() <= life.list_apart()
        if kind == "accept":
            assert not life.list_misread()
            assert not life.list_apart()
            assert {version.number for version in get_live_versions(life.held)} <= read_with(
                life.git, life.record
            ).keys()
            assert accept_list(life.git, life.held, life.record) == life.record


@settings(deadline=None)
@given(draw_life())
def test_what_apply_adds_after_a_record_has_the_expected_number(steps: list[tuple[str, int]]) -> None:
    life = Life(make_topic(0))
    for kind, content in steps:
        life.take_step(kind, content)
    for kind in ("accept", "apply"):
        life.take_step(kind, 0)
    assert not life.list_apart()
    assert not life.list_misread()


TEXTS = [
    make_order_info("id"),
    make_order_info("id", b=0),
    make_order_info("id", b=0, c=0),
    make_order_info("id", b=0, c=0, d=0),
]
FOREIGN = make_order_info("id", theirs=0)


def topic_of_versions(count: int) -> Topic:
    versions = tuple(SchemaVersion(number, info) for number, info in enumerate(TEXTS[:count]))
    return Topic(ORDERS, versions[-1].info, versions)


def make_numbers(*entries: NumberEntry) -> TargetNumbers:
    recorded = TopicNumbers({entry.number: entry for entry in entries})
    return TargetNumbers("prod", "numbers/prod.yaml", {ORDERS: recorded})


def list_meanings(count: int, *entries: NumberEntry) -> list[int | str]:
    """Git's number where there is one, else `foreign` or `rejected`."""
    return [
        entry.git.number if entry.git else "foreign" if entry.info else "rejected"
        for entry in target_versions(topic_of_versions(count), make_numbers(*entries))
    ]


def test_without_a_record_numbers_are_gits() -> None:
    for recorded in (None, TargetNumbers("prod", "numbers/prod.yaml"), make_numbers()):
        result = target_versions(topic_of_versions(3), recorded)
        assert [(version.number, version.git, version.info) for version in result] == [
            (version.number, version, version.info) for version in topic_of_versions(3).versions
        ]


def test_what_is_not_listed_below_the_highest_is_gits_own_and_the_rest_follows() -> None:
    entries = NumberEntry(1, foreign=FOREIGN), NumberEntry(2, git=1)
    assert list_meanings(2, *entries) == [0, "foreign", 1]
    assert list_meanings(3, *entries) == [0, "foreign", 1, 2]
    assert list_meanings(4, *entries) == [0, "foreign", 1, 2, 3]


def test_a_version_that_was_never_applied_follows_though_its_number_is_taken() -> None:
    assert list_meanings(2, NumberEntry(1, foreign=FOREIGN)) == [0, "foreign", 1]


def test_what_was_deleted_is_registered_again_under_new_numbers() -> None:
    gone = [NumberEntry(number, deleted=True) for number in range(3)]
    assert list_meanings(2, *gone) == ["rejected", "rejected", "rejected", 0, 1]
    recorded_entries = (
        NumberEntry(0, git=0, deleted=True),
        NumberEntry(1, git=1, deleted=True),
        NumberEntry(2, deleted=True),
    )
    assert list_meanings(2, *recorded_entries) == [0, 1, "rejected", 0, 1]


def test_a_number_beyond_gits_versions_is_rejected_and_stays_so() -> None:
    """Git's version 1 is not registered yet, and number 1 has no record."""
    result = target_versions(topic_of_versions(1), make_numbers(NumberEntry(2, git=0)))
    assert [(version.number, version.info) for version in result] == [(0, TEXTS[0]), (2, TEXTS[0])]


def test_a_high_number_stands_for_itself_alone() -> None:
    """The numbers between have no meaning, so that one line of a file does not generate megabytes of code."""
    result = target_versions(topic_of_versions(2), make_numbers(NumberEntry(100_000, deleted=True)))
    assert [version.number for version in result] == [0, 1, 100_000]
    later = target_versions(
        topic_of_versions(2), make_numbers(NumberEntry(99_999, foreign=FOREIGN), NumberEntry(1, deleted=True))
    )
    assert [version.number for version in later] == [0, 1, 99_999, 100_000]


def test_a_foreign_content_that_was_approved_since_is_gits_version() -> None:
    """Git's version 2 has the content of the foreign number 1."""
    entries = NumberEntry(1, foreign=TEXTS[2]), NumberEntry(2, git=1)
    assert list_meanings(2, *entries) == [0, "foreign", 1]
    assert list_meanings(3, *entries) == [0, 2, 1]
    assert list_meanings(4, *entries) == [0, 2, 1, 3]


def test_the_reason_is_told() -> None:
    entries = (
        NumberEntry(0, git=7, reason="moved by hand"),
        NumberEntry(1, deleted=True, reason="cleaned up"),
        NumberEntry(2, foreign=SchemaInfo(SchemaType.AVRO, b'{"type": "record"}'), reason="a test"),
    )
    assert [entry.unreadable for entry in target_versions(topic_of_versions(1), make_numbers(*entries))][:3] == [
        "number 0 of prod is recorded as Git's version 7, which the approved history does not have (moved by hand)",
        "number 1 of prod was deleted, and its definition was not recorded (cleaned up)",
        (
            'number 2 of prod is foreign, and its recorded definition cannot be used: "name" of this record is missing or null; '
            "expected a name (a test)"
        ),
    ]


def test_a_version_is_written_under_its_newest_number_that_is_not_deleted() -> None:
    result = target_versions(
        topic_of_versions(2),
        make_numbers(
            NumberEntry(0, git=0), NumberEntry(1, git=1), NumberEntry(2, git=0), NumberEntry(3, git=0, deleted=True)
        ),
    )
    assert target_number(result, 0) == 2
    assert target_number(result, 1) == 1
    assert target_number(result, 2) is None
    assert [version.git.number for version in result if version.git] == [0, 1, 0, 0]
    only_deleted = target_versions(
        topic_of_versions(1), make_numbers(NumberEntry(0, git=0, deleted=True), NumberEntry(1, deleted=True))
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
    [result] = recorded_lists(catalog, make_numbers(NumberEntry(3, git=0), NumberEntry(4, foreign=FOREIGN))).values()
    assert [(pair.registry.number, pair.registry.info) for pair in result if pair.registry] == [
        (0, None),
        (1, None),
        (2, None),
        (3, TEXTS[0]),
        (4, FOREIGN),
    ]
