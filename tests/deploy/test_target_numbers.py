"""The meaning of each version number of a target with its record, and the accepted entries of a registry."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

import pytest
from estate import ORDERS, make_order_info
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl.comparison.changes import VersionIndex, content_identity
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.declare.numbers_writer import record_versions
from schemactl.declare.target_numbers import (
    AcceptanceReason,
    NumberEntry,
    TargetNumbers,
    TopicNumbers,
    records_other_numbers,
    target_number,
    target_versions,
)
from schemactl.deploy.rebuild import find_recorded_lists
from schemactl.deploy.version_numbers import find_topic_mismatches

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


def accept_list(git: Topic, registry: Registry, before: TopicNumbers | None = None) -> TopicNumbers | None:
    return record_versions(git.versions, registry, before, AcceptanceReason("a test", accepted=DAY))


def read_with(git: Topic, recorded: TopicNumbers | None) -> Truth:
    """Return the schema with which readers decode the messages of each number."""
    numbers = TargetNumbers("prod", "numbers/prod.yaml", {ORDERS: recorded} if recorded else {})
    return {version.number: version.info for version in target_versions(git, numbers) if version.info}


def make_record(*entries: NumberEntry) -> TopicNumbers:
    return TopicNumbers({entry.number: entry for entry in entries})


def make_git(number: int, git: int, **more: Any) -> NumberEntry:
    """The entry of a number that has Git's version `git`."""
    return NumberEntry(number, git=git, reason="a test", accepted=DAY, **more)


def make_foreign(number: int, content: int, **more: Any) -> NumberEntry:
    """The entry of a number whose content Git does not have."""
    return NumberEntry(number, foreign=CONTENTS[content], reason="a test", accepted=DAY, **more)


def make_deleted(number: int) -> NumberEntry:
    """The entry of a number whose content is unknown."""
    return NumberEntry(number, deleted=True, reason="a test", accepted=DAY)


class RecordCase(NamedTuple):
    """Git's versions and a registry's list, as places in CONTENTS, and the record before and after the list is accepted."""

    git: tuple[int, ...]
    registry: tuple[int | None, ...]
    after: TopicNumbers | None
    before: TopicNumbers | None = None


DISPLACED = make_record(make_foreign(1, 5), make_git(2, 1))
OLDER = NumberEntry(0, git=0, deleted=True), NumberEntry(1, deleted=True)
BEFORE = AcceptanceReason("before", accepted=DAY)
KEPT = record_versions(make_topic(0, 1).versions, make_entries(0, 5, 1), None, BEFORE)

RECORD_CASES = {
    "Git's own numbers need no record": RecordCase((0, 1), (0, 1), None),
    "versions that are not registered yet need no record": RecordCase((0, 1, 2), (0,), None),
    "a foreign version took a number": RecordCase((0, 1), (0, 5, 1), DISPLACED),
    # Git's version 0 was never applied: it follows the registered numbers.
    "the last number is recorded, so that later ones count from there": RecordCase(
        (0, 1), (5, 1), make_record(make_foreign(0, 5), make_git(1, 1))
    ),
    "numbers that a registry no longer shows are deleted": RecordCase(
        (0, 1), (None, None, None), make_record(make_deleted(0), make_deleted(1), make_deleted(2))
    ),
    "numbers that it still shows before a tombstone keep their meaning": RecordCase(
        (0,),
        (0, 5, None, 0),
        make_record(make_git(0, 0, deleted=True), make_foreign(1, 5, deleted=True), make_deleted(2), make_git(3, 0)),
    ),
    # The version list may have been lost and restarted, so the deleted entry is not necessarily the recorded one.
    "numbers that were deleted after the record lose their meaning": RecordCase(
        (0, 1),
        (None, None, None, None, 0, 1),
        make_record(*map(make_deleted, range(4)), make_git(4, 0), make_git(5, 1)),
        before=DISPLACED,
    ),
    "a shorter list after a deletion counts from its own numbers": RecordCase(
        (0, 1),
        (None, None, 0, 1),
        make_record(make_deleted(0), make_deleted(1), make_git(2, 0), make_git(3, 1)),
        before=DISPLACED,
    ),
    "a recorded meaning of a deleted number stays": RecordCase(
        (0, 1), (None, None, None, 1), make_record(*OLDER, make_deleted(2), make_git(3, 1)), before=make_record(*OLDER)
    ),
    "an entry that is still right keeps its reason": RecordCase(
        (0, 1, 5), (0, 5, 1, 6), make_record(*KEPT.entries.values(), make_foreign(3, 6)) if KEPT else None, before=KEPT
    ),
}


@pytest.mark.parametrize("case", RECORD_CASES.values(), ids=RECORD_CASES)
def test_a_registrys_list_is_recorded_where_it_differs_from_git(case: RecordCase) -> None:
    assert accept_list(make_topic(*case.git), make_entries(*case.registry), case.before) == case.after


@st.composite
def draw_life(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Steps of a topic's life: approvals, applies, uploads by others, deletions, records."""
    kinds = st.sampled_from(["approve", "apply", "foreign", "foreign", "delete", "forget", "accept", "accept"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 7)), min_size=1, max_size=14))


class Life:
    """A topic in Git and in a registry, with the schema behind each number."""

    def __init__(self, git: Topic) -> None:
        self.git = git
        self.registered = Registry()
        self.truth: Truth = {}
        self.record: TopicNumbers | None = None

    def upload(self, info: SchemaInfo | None) -> None:
        if info and VersionIndex(self.registered).find(info) is None:
            self.truth[len(self.registered)] = info
            self.registered = [*self.registered, SchemaVersion(len(self.registered), info)]

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
            self.record = accept_list(self.git, self.registered, self.record)
        else:
            visible_versions = (
                [SchemaVersion(version.number, None) for version in self.registered]
                if kind == "forget"
                else self.registered
            )
            self.registered = [*visible_versions, SchemaVersion(len(visible_versions), None)]

    def list_misread(self) -> set[int]:
        """Return the numbers whose messages are decoded with another schema than the writer's."""
        result = read_with(self.git, self.record)
        return {
            entry.number
            for entry in self.registered
            if (info := result.get(entry.number))
            and (
                (written := self.truth.get(entry.number)) is None or content_identity(info) != content_identity(written)
            )
        }

    def list_apart(self) -> set[int]:
        """The numbers that are told to be otherwise than recorded."""
        result = find_topic_mismatches(self.git, self.registered, self.record).numbers
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
            assert {version.number for version in get_live_versions(life.registered)} <= read_with(
                life.git, life.record
            ).keys()
            assert accept_list(life.git, life.registered, life.record) == life.record


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
    return TargetNumbers("prod", "numbers/prod.yaml", {ORDERS: make_record(*entries)})


MEANINGS: dict[str, tuple[int, tuple[NumberEntry, ...], dict[int, int | str]]] = {
    "unlisted numbers below the highest are Git's": (2, (*DISPLACED.entries.values(),), {0: 0, 1: "foreign", 2: 1}),
    "later versions follow": (4, (*DISPLACED.entries.values(),), {0: 0, 1: "foreign", 2: 1, 3: 2, 4: 3}),
    "a version that was never applied follows though its number is taken": (
        2, (NumberEntry(1, foreign=FOREIGN),), {0: 0, 1: "foreign", 2: 1},
    ),
    "deleted versions are registered again under new numbers": (
        2, (make_deleted(0), make_deleted(1), make_deleted(2)), {0: "rejected", 1: "rejected", 2: "rejected", 3: 0, 4: 1},
    ),
    "a deleted number with a recorded meaning is read": (
        2, (make_git(0, 0, deleted=True), make_git(1, 1, deleted=True), make_deleted(2)), {0: 0, 1: 1, 2: "rejected", 3: 0, 4: 1},
    ),
    # Git's version 1 is not registered yet, and number 1 has no record.
    "a number beyond Git's versions stays without meaning": (1, (make_git(2, 0),), {0: 0, 2: 0}),
    # The numbers between have no meaning, so that one line of a file does not generate megabytes of code.
    "a high number has no numbers before it": (2, (make_deleted(100_000),), {0: 0, 1: 1, 100_000: "rejected"}),
    "versions follow a high number": (
        2, (NumberEntry(99_999, foreign=FOREIGN), make_deleted(1)), {0: 0, 1: "rejected", 99_999: "foreign", 100_000: 1},
    ),
    "one version may have several numbers": (
        2,
        (make_git(0, 0), make_git(1, 1), make_git(2, 0), make_git(3, 0, deleted=True)),
        {0: 0, 1: 1, 2: 0, 3: 0},
    ),
    "a foreign content is Git's version once it is approved": (
        3, (NumberEntry(1, foreign=TEXTS[2]), make_git(2, 1)), {0: 0, 1: 2, 2: 1},
    ),
    "a foreign content that is not approved yet is foreign": (
        2, (NumberEntry(1, foreign=TEXTS[2]), make_git(2, 1)), {0: 0, 1: "foreign", 2: 1},
    ),
    "versions follow a foreign content that was approved": (
        4, (NumberEntry(1, foreign=TEXTS[2]), make_git(2, 1)), {0: 0, 1: 2, 2: 1, 3: 3},
    ),
}  # fmt: skip
"""The number of Git's versions, the recorded entries, and the meaning of each number: Git's number, `foreign` or `rejected`."""


@pytest.mark.parametrize(("count", "entries", "expected"), MEANINGS.values(), ids=MEANINGS)
def test_a_number_means_its_recorded_version(
    count: int, entries: tuple[NumberEntry, ...], expected: dict[int, int | str]
) -> None:
    topic = topic_of_versions(count)
    versions = target_versions(topic, make_numbers(*entries))
    assert {
        version.number: version.git.number if version.git else "foreign" if version.info else "rejected"
        for version in versions
    } == expected
    foreign_infos = {entry.number: entry.foreign for entry in entries if entry.foreign}
    assert [version.info for version in versions] == [
        version.git.info if version.git else foreign_infos.get(version.number) for version in versions
    ]


@pytest.mark.parametrize("numbers", [None, TargetNumbers("prod", "numbers/prod.yaml"), make_numbers()])
def test_without_a_record_numbers_are_gits(numbers: TargetNumbers | None) -> None:
    versions = topic_of_versions(3).versions
    assert [
        (version.number, version.git, version.info) for version in target_versions(topic_of_versions(3), numbers)
    ] == [(version.number, version, version.info) for version in versions]


def test_a_rejected_number_has_the_reason() -> None:
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


@pytest.mark.parametrize(
    ("count", "entries", "expected"),
    [
        pytest.param(
            2,
            (make_git(0, 0), make_git(1, 1), make_git(2, 0), make_git(3, 0, deleted=True)),
            [2, 1, None],
            id="its newest",
        ),
        pytest.param(
            1, (make_git(0, 0, deleted=True), make_deleted(1)), [2, None, None], id="the next after deleted ones"
        ),
    ],
)
def test_a_version_is_written_under_a_number_that_is_not_deleted(
    count: int, entries: tuple[NumberEntry, ...], expected: list[int | None]
) -> None:
    versions = target_versions(topic_of_versions(count), make_numbers(*entries))
    assert [target_number(versions, number) for number in range(3)] == expected


def test_a_version_whose_numbers_are_all_deleted_is_written_under_the_last_one() -> None:
    versions = target_versions(topic_of_versions(1), make_numbers(make_git(0, 0, deleted=True), make_deleted(1)))
    assert target_number(versions[:2], 0) == 0


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (None, False),
        (make_record(make_git(1, 1)), False),
        (make_record(make_git(1, 0)), True),
        (make_record(make_deleted(1)), True),
        (make_record(make_foreign(1, 0)), True),
    ],
    ids=["no record", "Git's number", "another number", "deleted", "foreign"],
)
def test_a_record_has_other_numbers_unless_it_repeats_gits(record: TopicNumbers | None, *, expected: bool) -> None:
    assert records_other_numbers(record) is expected


def test_a_rebuild_deletes_up_to_a_number_without_meaning() -> None:
    """Number 2 is neither listed nor Git's: its tombstone also deletes the numbers before it."""
    catalog = Catalog(topics={ORDERS: topic_of_versions(2)})
    [pairs] = find_recorded_lists(catalog, make_numbers(make_git(3, 0), NumberEntry(4, foreign=FOREIGN))).values()
    assert [(pair.registry.number, pair.registry.info) for pair in pairs if pair.registry] == [
        (0, None),
        (1, None),
        (2, None),
        (3, TEXTS[0]),
        (4, FOREIGN),
    ]
