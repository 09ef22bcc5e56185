"""The versions of a topic with several kinds of events, for every kind of change in Git."""

from __future__ import annotations

from pathlib import Path

import pytest
from readings import PROJECT, read
from scratch import Files, Scratch, record, write_declaration

from schemactl.core.catalog import Client, Topic
from schemactl.core.names import TopicName
from schemactl.formats import record_name

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


def list_versions(topic: Topic) -> list[tuple[int, str, str, str]]:
    """List number, kind, record and commit of every version."""
    return [
        (
            version.number,
            version.kind,
            record_name(version.info) if version.info else "",
            version.commit.subject if version.commit else "",
        )
        for version in topic.versions
    ]


def list_kinds(topic: Topic) -> list[tuple[str, str, int]]:
    """List key, record and the newest number of the versions of every declared kind."""
    return [(kind.key, kind.record, topic.select_kind(kind).versions[-1].number) for kind in topic.kinds]


def test_kinds_of_one_commit_take_their_numbers_in_the_order_of_the_keys(empty_repository: Scratch) -> None:
    empty_repository.commit(FIRST, "first")
    topic = read_users(empty_repository)
    assert list_versions(topic) == [
        (0, "created", "Created", "first"),
        (1, "moved", "Moved", "first"),
        (2, "asked", "Asked", "first"),
    ]
    assert list_kinds(topic) == [("created", "Created", 0), ("moved", "Moved", 1), ("asked", "Asked", 2)]
    assert topic.schema
    assert record_name(topic.schema) == "Asked"
    assert read(empty_repository).current(USERS) == 2


def test_only_changed_kinds_take_numbers(empty_repository: Scratch) -> None:
    empty_repository.commit(FIRST, "first")
    empty_repository.commit(
        {ASKED: record("id", name="Asked", note=0), CREATED: record("id", name="Created", note=0)}, "two"
    )
    empty_repository.commit(
        {TOPIC: THREE.replace("topic:", "owner: team\ntopic:"), MOVED: record("id", name="Moved", doc="x")}, "none"
    )
    topic = read_users(empty_repository)
    assert list_versions(topic)[3:] == [(3, "created", "Created", "two"), (4, "asked", "Asked", "two")]
    assert list_kinds(topic) == [("created", "Created", 3), ("moved", "Moved", 1), ("asked", "Asked", 4)]


def test_another_order_of_the_keys_changes_no_number(empty_repository: Scratch) -> None:
    empty_repository.commit(FIRST, "first")
    empty_repository.commit(
        {TOPIC: declare_kinds(asked="asked.avsc", moved="moved.avsc", created="created.avsc")}, "order"
    )
    topic = read_users(empty_repository)
    assert [version[:3] for version in list_versions(topic)] == [
        (0, "created", "Created"),
        (1, "moved", "Moved"),
        (2, "asked", "Asked"),
    ]
    assert [kind.key for kind in topic.kinds] == ["asked", "moved", "created"]


def test_versions_from_the_time_of_one_schema_belong_to_kinds_by_record_name(empty_repository: Scratch) -> None:
    one = write_declaration("shop/web/users", "users.avsc")
    empty_repository.commit({TOPIC: one, "topics/users.avsc": record("id", name="Created")}, "created")
    empty_repository.commit({"topics/users.avsc": record("id", name="Old")}, "old")
    empty_repository.commit({"topics/users.avsc": record("id", name="Moved")}, "moved")
    empty_repository.commit({**FIRST, "topics/users.avsc": None}, "kinds")
    topic = read_users(empty_repository)
    assert list_versions(topic) == [
        (0, "created", "Created", "created"),
        (1, "", "Old", "old"),
        (2, "moved", "Moved", "moved"),
        (3, "asked", "Asked", "kinds"),
    ]
    assert list_kinds(topic) == [("created", "Created", 0), ("moved", "Moved", 2), ("asked", "Asked", 3)]


@pytest.mark.parametrize(
    ("change", "kinds", "declared_kinds"),
    [
        pytest.param(
            {TOPIC: declare_kinds(born="created.avsc", moved="moved.avsc", asked="asked.avsc")},
            ["born", "moved", "asked"],
            ["born", "moved", "asked"],
            id="a key is renamed: all versions belong to the new key",
        ),
        pytest.param(
            {CREATED: record("id", name="Born")},
            ["created", "moved", "asked", "created"],
            ["created", "moved", "asked"],
            id="a record is renamed: both names belong to the key",
        ),
        pytest.param(
            {TOPIC: declare_kinds(created="created.avsc", asked="asked.avsc")},
            ["created", "moved", "asked"],
            ["created", "asked"],
            id="a removed kind keeps its versions",
        ),
        pytest.param(
            {TOPIC: write_declaration("shop/web/users", "created.avsc")},
            ["created", "moved", "asked"],
            [],
            id="one schema again: all versions keep their kinds",
        ),
        pytest.param(
            {TOPIC: None}, ["created", "moved", "asked"], [], id="a removed topic keeps the kinds of its versions"
        ),
    ],
)
def test_versions_keep_or_change_their_kind(
    empty_repository: Scratch, change: Files, kinds: list[str], declared_kinds: list[str]
) -> None:
    empty_repository.commit(FIRST, "first")
    empty_repository.commit(change, "change")
    topic = read_users(empty_repository)
    assert [version.kind for version in topic.versions] == kinds
    assert [kind.key for kind in topic.kinds] == declared_kinds


def test_a_kind_that_returns_has_its_old_numbers(empty_repository: Scratch) -> None:
    empty_repository.commit(FIRST, "first")
    empty_repository.commit({TOPIC: declare_kinds(created="created.avsc", asked="asked.avsc")}, "without")
    empty_repository.commit({TOPIC: THREE}, "with")
    empty_repository.commit({MOVED: record("id", name="Moved", note=0)}, "change")
    topic = read_users(empty_repository)
    assert list_kinds(topic) == [("created", "Created", 0), ("moved", "Moved", 3), ("asked", "Asked", 2)]


def test_a_new_generation_counts_all_kinds_again(empty_repository: Scratch) -> None:
    empty_repository.commit(FIRST, "first")
    empty_repository.commit({TOPIC: THREE.replace("schemas:", "generation: 2\nschemas:")}, "again")
    topic = read_users(empty_repository)
    assert list_versions(topic)[3:] == [
        (3, "", "", "again"),
        (4, "created", "Created", "again"),
        (5, "moved", "Moved", "again"),
        (6, "asked", "Asked", "again"),
    ]
    [created, *_] = topic.split()
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


def test_types_of_other_files_count_for_each_kind(empty_repository: Scratch) -> None:
    money = '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"%s}]}'
    paid = '{"type": "record", "name": "%s", "fields": [{"name": "sum", "type": "Money"}]}'
    kinds = "".join(
        f"  {key}: {{type: AVRO, definition: {key}.avsc, references: [money.avsc]}}\n" for key in ("paid", "owed")
    )
    empty_repository.commit(
        {
            TOPIC: f"topic: shop/web/users\nschemas:\n{kinds}  asked: {{type: AVRO, definition: asked.avsc}}\n",
            "topics/money.avsc": money % "",
            "topics/paid.avsc": paid % "Paid",
            "topics/owed.avsc": paid % "Owed",
            ASKED: record("id", name="Asked"),
        },
        "first",
    )
    empty_repository.commit({"topics/money.avsc": money % ', "default": 0'}, "money")
    topic = read_users(empty_repository)
    assert [version[:3] for version in list_versions(topic)] == [
        (0, "paid", "Paid"),
        (1, "owed", "Owed"),
        (2, "asked", "Asked"),
        (3, "paid", "Paid"),
        (4, "owed", "Owed"),
    ]


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
