"""The versions of a topic with several kinds of events, for every kind of change in Git."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from readings import PROJECT, read
from scratch import Files, Scratch, record, write_declaration

from schemactl.core.catalog import Client, Topic
from schemactl.core.names import TopicName
from schemactl.formats import get_record_name

USERS = TopicName.parse("shop/web/users")
TOPIC = "topics/users.yaml"
CREATED, MOVED, ASKED = ("topics/created.avsc", "topics/moved.avsc", "topics/asked.avsc")


def declare_kinds(more: str = "", **definitions: str) -> str:
    """Return the declaration of a topic with these kinds: key to definition file."""
    lines = [f"  {key}: {{type: AVRO, definition: {path}}}\n" for key, path in definitions.items()]
    return f"topic: shop/web/users\n{more}schemas:\n{''.join(lines)}"


THREE = declare_kinds(created="created.avsc", moved="moved.avsc", asked="asked.avsc")
FIRST: Files = {
    TOPIC: THREE,
    CREATED: record("id", name="Created"),
    MOVED: record("id", name="Moved"),
    ASKED: record("id", name="Asked"),
}


@pytest.fixture
def empty_repository(tmp_path: Path) -> Scratch:
    """A repository without commits."""
    return Scratch(tmp_path / "r")


def read_users(scratch: Scratch) -> Topic:
    return read(scratch).catalog.topics[USERS]


class KindsCase(NamedTuple):
    """Commits by subject, and the topic after them.

    Attributes:
        versions: kind, record and subject of the commit of each version.
        kinds: key, record and newest number of each declared kind.
    """

    commits: dict[str, Files]
    versions: list[tuple[str, str, str]]
    kinds: list[tuple[str, str, int]]


def change_record(path: str, name: str, **more: Any) -> Files:
    return {path: record("id", name=name, **more)}


WITHOUT_MOVED: Files = {TOPIC: declare_kinds(created="created.avsc", asked="asked.avsc")}
FIRST_VERSIONS = [("created", "Created", "first"), ("moved", "Moved", "first"), ("asked", "Asked", "first")]
FIRST_KINDS = [("created", "Created", 0), ("moved", "Moved", 1), ("asked", "Asked", 2)]
MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"%s}]}'
PAID = '{"type": "record", "name": "%s", "fields": [{"name": "sum", "type": "Money"}]}'
PAYMENTS = "".join(
    f"  {key}: {{type: AVRO, definition: {key}.avsc, references: [money.avsc]}}\n" for key in ("paid", "owed")
)

KINDS_CASES = {
    "kinds of one commit take their numbers in the order of the keys": KindsCase(
        {"first": FIRST}, FIRST_VERSIONS, FIRST_KINDS
    ),
    "only changed kinds take numbers": KindsCase(
        {
            "first": FIRST,
            "two": {**change_record(ASKED, "Asked", note=0), **change_record(CREATED, "Created", note=0)},
            "none": {TOPIC: THREE.replace("topic:", "owner: team\ntopic:"), MOVED: record("id", name="Moved", doc="x")},
        },
        [*FIRST_VERSIONS, ("created", "Created", "two"), ("asked", "Asked", "two")],
        [("created", "Created", 3), ("moved", "Moved", 1), ("asked", "Asked", 4)],
    ),
    "another order of the keys changes no number": KindsCase(
        {"first": FIRST, "order": {TOPIC: declare_kinds(asked="asked.avsc", moved="moved.avsc", created="created.avsc")}},
        FIRST_VERSIONS,
        FIRST_KINDS[::-1],
    ),
    "earlier versions of one schema belong to kinds by record name": KindsCase(
        {
            "created": {TOPIC: write_declaration("shop/web/users", "users.avsc"), **change_record("topics/users.avsc", "Created")},
            "old": change_record("topics/users.avsc", "Old"),
            "moved": change_record("topics/users.avsc", "Moved"),
            "kinds": {**FIRST, "topics/users.avsc": None},
        },
        [("created", "Created", "created"), ("", "Old", "old"), ("moved", "Moved", "moved"), ("asked", "Asked", "kinds")],
        [("created", "Created", 0), ("moved", "Moved", 2), ("asked", "Asked", 3)],
    ),
    "all versions belong to the new key of a kind": KindsCase(
        {"first": FIRST, "key": {TOPIC: declare_kinds(born="created.avsc", moved="moved.avsc", asked="asked.avsc")}},
        [("born", "Created", "first"), *FIRST_VERSIONS[1:]],
        [("born", "Created", 0), *FIRST_KINDS[1:]],
    ),
    "both names of a renamed record belong to the key": KindsCase(
        {"first": FIRST, "record": change_record(CREATED, "Born")},
        [*FIRST_VERSIONS, ("created", "Born", "record")],
        [("created", "Born", 3), *FIRST_KINDS[1:]],
    ),
    "a removed kind keeps its versions": KindsCase(
        {"first": FIRST, "without": WITHOUT_MOVED}, FIRST_VERSIONS, [FIRST_KINDS[0], FIRST_KINDS[2]]
    ),
    "a kind that returns has its old numbers": KindsCase(
        {
            "first": FIRST,
            "without": WITHOUT_MOVED,
            "with": {TOPIC: THREE},
            "change": change_record(MOVED, "Moved", note=0),
        },
        [*FIRST_VERSIONS, ("moved", "Moved", "change")],
        [("created", "Created", 0), ("moved", "Moved", 3), ("asked", "Asked", 2)],
    ),
    "with one schema again all versions keep their kinds": KindsCase(
        {"first": FIRST, "one": {TOPIC: write_declaration("shop/web/users", "created.avsc")}}, FIRST_VERSIONS, []
    ),
    "a removed topic keeps the kinds of its versions": KindsCase({"first": FIRST, "gone": {TOPIC: None}}, FIRST_VERSIONS, []),
    "types of other files count for each kind": KindsCase(
        {
            "first": {
                TOPIC: f"topic: shop/web/users\nschemas:\n{PAYMENTS}  asked: {{type: AVRO, definition: asked.avsc}}\n",
                "topics/money.avsc": MONEY % "",
                "topics/paid.avsc": PAID % "Paid",
                "topics/owed.avsc": PAID % "Owed",
                ASKED: record("id", name="Asked"),
            },
            "money": {"topics/money.avsc": MONEY % ', "default": 0'},
        },
        [
            ("paid", "Paid", "first"), ("owed", "Owed", "first"), ("asked", "Asked", "first"),
            ("paid", "Paid", "money"), ("owed", "Owed", "money"),
        ],
        [("paid", "Paid", 3), ("owed", "Owed", 4), ("asked", "Asked", 2)],
    ),
    "a new generation counts all kinds again": KindsCase(
        {"first": FIRST, "again": {TOPIC: THREE.replace("schemas:", "generation: 2\nschemas:")}},
        [*FIRST_VERSIONS, ("", "", "again"), *((kind, name, "again") for kind, name, _ in FIRST_VERSIONS)],
        [("created", "Created", 4), ("moved", "Moved", 5), ("asked", "Asked", 6)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KINDS_CASES.values(), ids=KINDS_CASES)
def test_versions_have_the_kinds_of_their_topic(empty_repository: Scratch, case: KindsCase) -> None:
    for subject, files in case.commits.items():
        empty_repository.commit(files, subject)
    topic = read_users(empty_repository)
    assert [version.number for version in topic.versions] == [*range(len(case.versions))]
    assert [
        (
            version.kind,
            get_record_name(version.info) if version.info else "",
            version.commit.subject if version.commit else "",
        )
        for version in topic.versions
    ] == case.versions
    assert [(kind.key, kind.record, topic.make_part(kind).versions[-1].number) for kind in topic.kinds] == case.kinds


def test_the_schema_of_a_topic_is_its_last_kind(empty_repository: Scratch) -> None:
    empty_repository.commit(FIRST, "first")
    topic = read_users(empty_repository)
    assert topic.schema
    assert get_record_name(topic.schema) == "Asked"
    assert read(empty_repository).find_current_number(USERS) == 2


def test_a_part_of_a_topic_has_the_versions_of_its_kind_and_the_tombstones(empty_repository: Scratch) -> None:
    for files in KINDS_CASES["a new generation counts all kinds again"].commits.values():
        empty_repository.commit(files)
    [created, *_] = read_users(empty_repository).split()
    assert [(version.number, version.kind) for version in created.versions] == [(0, "created"), (3, ""), (4, "created")]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({MOVED: record("id", "more", name="Created")}, "both have the record Created"),
        ({MOVED: record("id", name="Created")}, "both have the record Created"),
        ({MOVED: '"string"'}, "has no record at its root"),
        ({MOVED: '{"type": "enum", "name": "Moved", "symbols": ["A"]}'}, "has no record at its root"),
        ({MOVED: "{"}, "JSON"),
    ],
)
def test_a_commit_with_unusable_kinds_makes_no_version(empty_repository: Scratch, files: Files, message: str) -> None:
    empty_repository.commit(FIRST, "first")
    empty_repository.commit({**files, ASKED: record("id", name="Asked", note=0)}, "broken")
    history = read(empty_repository)
    assert len(history.catalog.topics[USERS].versions) == 3
    [note] = history.notes
    assert message in note.problem.message or message in str(note.problem.source.path) or "moved.avsc" in str(note)


def test_kinds_have_their_own_reader_and_clients(empty_repository: Scratch) -> None:
    clients = (
        "clients:\n"
        "  - {name: born, role: consumer, schema: 0}\n"
        "  - {name: range, role: consumer, schema: 0..1}\n"
        "  - {name: all, role: consumer}\n"
        "  - {name: mail, role: producer, kind: asked}\n"
        "  - {name: file, role: producer, kind: moved, schema: moved.avsc}\n"
    )
    pinned = THREE.replace("definition: moved.avsc", "definition: moved.avsc, reader: 1")
    empty_repository.commit({**FIRST, TOPIC: pinned + clients}, "first")
    topic = read_users(empty_repository)
    created, moved, requested = topic.split()
    assert [part.reader for part in (created, moved, requested)] == ["latest", 1, "latest"]

    def list_names(part: Topic) -> list[str]:
        return [client.name for client in part.clients]

    assert [*map(list_names, (created, moved, requested))] == [
        ["born", "range", "all"],
        ["range", "all", "file"],
        ["all", "mail"],
    ]
    assert str(requested.locate("/clients/1/role")).startswith(f"{TOPIC}:10:")
    assert str(moved.locate("/schema/definition")).startswith(f"{TOPIC}:4:")
    assert str(moved.locate("/reader")).startswith(f"{TOPIC}:4:")
    all_reader = Client("all", "consumer")
    assert [build.number for build in all_reader.builds(moved.versions)] == [1]


def test_the_kinds_of_a_file_that_the_cache_knows_are_the_same(empty_repository: Scratch) -> None:
    empty_repository.commit(FIRST, "first")
    first = read_users(empty_repository)
    empty_repository.commit({CREATED: record("id", name="Created", note=0)}, "two")
    second = read_users(empty_repository)
    assert second.versions[:3] == first.versions
    assert second.kind_names == first.kind_names
    assert PROJECT.roots == ("topics",)
