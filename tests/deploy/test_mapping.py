"""What each number of a target stands for, given its record."""

from __future__ import annotations

from estate import ORDERS, avro

from schemactl.core.catalog import Catalog, Topic
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.declare.target_numbers import (
    NumberEntry,
    TargetNumbers,
    TopicNumbers,
    records_other_numbers,
    target_number,
    target_versions,
)
from schemactl.deploy.rebuild import recorded_lists

TEXTS = [avro("id"), avro("id", b=0), avro("id", b=0, c=0), avro("id", b=0, c=0, d=0)]
FOREIGN = avro("id", theirs=0)


def topic(count: int) -> Topic:
    versions = tuple(SchemaVersion(number, info) for number, info in enumerate(TEXTS[:count]))
    return Topic(ORDERS, versions[-1].info, versions)


def numbers(*entries: NumberEntry) -> TargetNumbers:
    recorded = TopicNumbers({entry.number: entry for entry in entries})
    return TargetNumbers("prod", "numbers/prod.yaml", {ORDERS: recorded})


def meanings(count: int, *entries: NumberEntry) -> list[int | str]:
    """Git's number where there is one, else `foreign` or `rejected`."""
    return [
        each.git.number if each.git else "foreign" if each.info else "rejected"
        for each in target_versions(topic(count), numbers(*entries))
    ]


def test_without_a_record_numbers_are_gits() -> None:
    for recorded in (None, TargetNumbers("prod", "numbers/prod.yaml"), numbers()):
        found = target_versions(topic(3), recorded)
        assert [(each.number, each.git, each.info) for each in found] == [
            (version.number, version, version.info) for version in topic(3).versions
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
    found = target_versions(topic(1), numbers(NumberEntry(2, git=0)))
    assert [(each.number, each.info) for each in found] == [(0, TEXTS[0]), (2, TEXTS[0])]


def test_a_high_number_stands_for_itself_alone() -> None:
    """Whatever lies between is nobody's, so that one line of a file makes no code of megabytes."""
    found = target_versions(topic(2), numbers(NumberEntry(100_000, deleted=True)))
    assert [each.number for each in found] == [0, 1, 100_000]
    later = target_versions(topic(2), numbers(NumberEntry(99_999, foreign=FOREIGN), NumberEntry(1, deleted=True)))
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
    assert [each.unreadable for each in target_versions(topic(1), numbers(*entries))][:3] == [
        "number 0 of prod is recorded as Git's version 7, which the approved history does not have (moved by hand)",
        "number 1 of prod was deleted, and nobody recorded its definition (cleaned up)",
        (
            'number 2 of prod is foreign, and its recorded definition cannot be used: "name" of this record is missing or null; '
            "expected a name (a test)"
        ),
    ]


def test_a_version_is_written_under_its_newest_number_that_is_not_deleted() -> None:
    found = target_versions(
        topic(2),
        numbers(
            NumberEntry(0, git=0), NumberEntry(1, git=1), NumberEntry(2, git=0), NumberEntry(3, git=0, deleted=True)
        ),
    )
    assert target_number(found, 0) == 2
    assert target_number(found, 1) == 1
    assert target_number(found, 2) is None
    assert [each.git.number for each in found if each.git] == [0, 1, 0, 0]
    only_deleted = target_versions(topic(1), numbers(NumberEntry(0, git=0, deleted=True), NumberEntry(1, deleted=True)))
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
    catalog = Catalog(topics={ORDERS: topic(2)})
    [found] = recorded_lists(catalog, numbers(NumberEntry(3, git=0), NumberEntry(4, foreign=FOREIGN))).values()
    assert [(pair.registry.number, pair.registry.info) for pair in found if pair.registry] == [
        (0, None),
        (1, None),
        (2, None),
        (3, TEXTS[0]),
        (4, FOREIGN),
    ]
