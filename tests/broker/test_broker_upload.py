"""Every recorded decision of Pulsar's registry classes, and properties of all decisions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from corpora import Json, make_definition, make_versions, read_rows
from hypothesis import given
from hypothesis import strategies as st

from schemactl.broker.upload import VersionList, find_unreadable_version, find_version
from schemactl.broker.validation import SchemaData, read_stored, read_upload
from schemactl.core.findings import Answer, Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.formats import SPECS
from schemactl.formats.avro.json_text import InvalidAvro
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import JavaException, Schema, equal

ROWS = read_rows("broker_public")
KINDS = sorted({row["kind"] for row in ROWS})


def select_rows(kind: str) -> list[Json]:
    return [row for row in ROWS if row["kind"] == kind]


def summarize(answer: Answer) -> tuple[str, int | None, str]:
    return answer.outcome.value, answer.version, answer.exception


def read_answer(row: Json, answer: Json) -> tuple[str, int | None, str]:
    outcome = "unchanged" if answer["verdict"] == "ok" and not row["stored"] else answer["verdict"]
    return outcome, answer.get("version"), answer.get("exception", "")


@pytest.mark.parametrize("kind", KINDS)
def test_an_upload_is_answered_as_4_0_7_answers_it(kind: str) -> None:
    for row in select_rows(kind):
        strategy = CompatibilityStrategy(row["strategy"])
        answer = VersionList(make_versions(row["existing"]), Release.R4_0).put(make_definition(row["new"]), strategy)
        assert summarize(answer) == read_answer(row, row), row["id"]
        prefix = row.get("message_prefix", "")
        # The message of a NullPointerException depends on Java's source code, so only its class is compared.
        if "NullPointerException" not in (row.get("exception", "") + prefix):
            assert (answer.message or "null").startswith(prefix) or not prefix, row["id"]


@pytest.mark.parametrize(("release", "key"), [(Release.R4_2, "pulsar_4_2_4"), (Release.R5_0, "pulsar_5_0_1")])
def test_newer_releases_answer_an_upload_as_recorded(release: Release, key: str) -> None:
    for row in ROWS:
        strategy = CompatibilityStrategy(row["strategy"])
        answer = summarize(
            VersionList(make_versions(row["existing"]), release).put(make_definition(row["new"]), strategy)
        )
        if key in row:
            # The record does not say whether it was stored, but the number does.
            outcome = "ok" if answer[0] == "unchanged" else answer[0]
            expected = row[key]["verdict"], row[key].get("version"), row[key].get("exception", "")
            assert (outcome, *answer[1:]) == expected, row["id"]
        else:
            assert answer[:2] == read_answer(row, row)[:2], row["id"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_compatibility_endpoint_answers_as_4_0_7(kind: str) -> None:
    for row in select_rows(kind):
        strategy = CompatibilityStrategy(row["strategy"])
        answer = VersionList(make_versions(row["existing"]), Release.R4_0).test(make_definition(row["new"]), strategy)
        expected = row["test"]["verdict"], row["test"].get("exception", "")
        assert (answer.outcome.value, answer.exception) == expected, row["id"]
        assert answer.version is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_is_answered_as_4_0_7_answers_it(kind: str) -> None:
    for row in select_rows(kind):
        strategy = CompatibilityStrategy(row["strategy"])
        answer = VersionList(make_versions(row["existing"]), Release.R4_0).check_consumer(
            make_definition(row["new"]), strategy
        )
        expected = row["consumer"]["verdict"], row["consumer"].get("exception", "")
        assert (answer.outcome.value, answer.exception) == expected, row["id"]


def test_versions_are_found_by_type_and_bytes() -> None:
    for row in ROWS:
        assert find_version(make_versions(row["existing"]), make_definition(row["new"])) == row["found"], row["id"]


# Definitions of every recorded kind, and bytes that are not definitions.
recorded_definitions = st.sampled_from([make_definition(row["new"]) for row in ROWS])
definitions = recorded_definitions | st.builds(
    SchemaInfo,
    st.sampled_from(SchemaType),
    st.binary(max_size=30) | st.just(b'"int"'),
    st.just({"key.schema.type": "AVRO", "value.schema.type": "STRING"}) | st.just({}),
)
histories = st.lists(st.none() | definitions, max_size=4).map(
    lambda infos: [SchemaVersion(number, info) for number, info in enumerate(infos)]
)
strategies = st.sampled_from(CompatibilityStrategy)
releases = st.sampled_from(Release)


@given(histories, definitions, strategies, releases)
def test_the_same_upload_twice_is_one_version(
    history: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> None:
    first = VersionList(history, release).put(new, strategy)
    if first.outcome is not Outcome.OK or first.version is None:
        return
    second = VersionList([*history, SchemaVersion(first.version, new)], release).put(new, strategy)
    stored_as_none = new.type.value < 0
    if second.outcome is Outcome.UNCHANGED:
        assert second.version == first.version
    else:
        # A bad default, a legacy definition or a type that is never stored: the topic is stuck, and nothing is added.
        assert second.outcome is Outcome.ERROR or stored_as_none


@given(histories, definitions, strategies, releases)
def test_every_question_has_an_answer(
    history: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> None:
    upload = VersionList(history, release).put(new, strategy)
    assert (upload.version is None) == (upload.outcome not in (Outcome.OK, Outcome.UNCHANGED))
    assert (upload.exception == "") == (upload.outcome in (Outcome.OK, Outcome.UNCHANGED))
    assert VersionList(history, release).test(new, strategy).outcome is not Outcome.UNCHANGED
    VersionList(history, release).check_consumer(new, strategy)
    assert find_version(history, new) in {-1, *range(len(history))}


@given(histories, definitions, strategies, releases)
def test_only_versions_after_the_last_tombstone_count(
    history: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> None:
    assert all(version.info is not None for version in get_live_versions(history))
    assert (
        VersionList(get_live_versions(history) or history, release).put(new, strategy).outcome
        is VersionList(history, release).put(new, strategy).outcome
    )
    deleted = [*history, SchemaVersion(len(history), None)]
    assert get_live_versions(deleted) == ()
    answer = VersionList(deleted, release).put(new, strategy)
    assert answer.version in (None, len(deleted))


@given(st.lists(st.none() | definitions, max_size=6), strategies, releases)
def test_list_with_appended_versions_answers_like_a_new_list(
    uploads: Sequence[SchemaInfo | None], strategy: CompatibilityStrategy, release: Release
) -> None:
    stored = VersionList([], release)
    for upload in uploads:
        if upload is None:
            stored.append(SchemaVersion(len(stored.versions), None))
            continue
        answer = stored.put(upload, strategy)
        assert answer == VersionList(stored.versions, release).put(upload, strategy)
        assert stored.test(upload, strategy) == VersionList(stored.versions, release).test(upload, strategy)
        assert stored.check_consumer(upload, strategy) == VersionList(stored.versions, release).check_consumer(
            upload, strategy
        )
        if answer.outcome is Outcome.OK and answer.version is not None:
            stored.append(SchemaVersion(answer.version, upload))


def scan(versions: Sequence[SchemaVersion], new: SchemaData, release: Release) -> int | str:
    """Search as the broker's code does: each version in turn, with Java's `equals`. Return the number, or the name of the exception."""
    try:
        for version in versions:
            old = read_stored(version.info or make_definition({}))
            if SPECS[new.type].language != "avro":
                is_equal = old.content == new.content
            elif SPECS[old.type].language == "avro":
                # Both are parsed before the types are compared.
                schema, old_schema = parse_strictly(new, release), parse_strictly(old, release)
                is_equal = equal(old_schema, schema) and old.type is new.type
            else:
                parse_strictly(new, release)
                is_equal = False
            if is_equal:
                return version.number
    except JavaException as thrown:
        return thrown.exception
    return -1


def parse_strictly(data: SchemaData, release: Release) -> Schema:
    try:
        return parse(data.text, release, validate_defaults=True)
    except InvalidAvro as problem:
        raise JavaException(problem.exception) from problem


spellings = st.sampled_from(
    [
        SchemaInfo(schema_type, text.encode())
        for schema_type in (SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF)
        for text in (
            '"int"',
            '{"type": "int"}',
            '{"type": "int", "logicalType": "date"}',
            '{"type": "record", "name": "R", "fields": []}',
            '{"type": "record", "name": "R", "doc": "d", "aliases": ["S"], "fields": []}',
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1}]}',
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": "x"}]}',
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "R"}}]}',
            '{"type": "enum", "name": "E", "symbols": ["A"]}',
            '{"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}',
            '["null", "int"]',
            "{",
        )
    ]
)


@given(st.lists(spellings | recorded_definitions, max_size=6), spellings | recorded_definitions, releases)
def test_search_and_scan_with_equals_find_the_same_version(
    infos: Sequence[SchemaInfo], new: SchemaInfo, release: Release
) -> None:
    versions = [SchemaVersion(number, info) for number, info in enumerate(infos)]
    data = read_upload(new)
    try:
        number: int | str = VersionList(versions, release).find_equal(data)
    except JavaException as thrown:
        number = thrown.exception
    if versions and data.data is not None:
        assert number == scan(versions, data, release)


def test_no_version_is_stored_after_an_unreadable_version() -> None:
    blocked_topics = 0
    for row in ROWS:
        existing, new = make_versions(row["existing"]), make_definition(row["new"])
        if blocking_version := find_unreadable_version(existing, new, Release.R4_0):
            blocked_topics += 1
            answer = VersionList(existing, Release.R4_0).put(new, CompatibilityStrategy.ALWAYS_COMPATIBLE)
            # A version that is equal to an older one is found before the search fails.
            assert answer.outcome is Outcome.ERROR or (answer.version or 0) < blocking_version.number, row["id"]
    assert blocked_topics
