"""The versions of a topic, for every kind of change in Git."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from readings import ORDERS, PROJECT, list_subjects, read, read_commands
from scratch import FIRST_COMMIT_S, Files, Scratch, record, write_declaration

from schemactl.core.errors import HistoryError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import Project
from schemactl.core.schema import DeferredInfo, SchemaInfo, SchemaType
from schemactl.declare.references import Inlined
from schemactl.formats import identity
from schemactl.history.approved_history import read_history
from schemactl.history.git import Repository
from schemactl.history.merge import read_forked

pytestmark = pytest.mark.slow


def list_versions(scratch: Scratch, topic: TopicName = ORDERS, project: Project = PROJECT) -> list[str]:
    """List the subjects of the commits that added the topic's versions."""
    return list_subjects(read(scratch, project), topic)


@pytest.fixture
def topic_repository(tmp_path: Path, request: pytest.FixtureRequest) -> Scratch:
    """A repository with one topic, declared in the commit `v0`."""
    scratch = Scratch(tmp_path / "r", object_format=getattr(request, "param", "sha1"))
    scratch.commit(FIRST, "v0")
    return scratch


USES: dict[str, Callable[[SchemaInfo, SchemaInfo], object]] = {
    "part": lambda one, _: one.schema,
    "place": lambda one, _: one.locate(""),
    "two": lambda one, other: one == other,
    "one": lambda one, _: one == SchemaInfo(SchemaType.AVRO),
    "hash": lambda one, _: hash(one),
    "identity": lambda one, _: identity(one),
    "replace": lambda one, _: replace(one, source=None),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_definition_is_read_when_it_is_used(
    topic_repository: Scratch, use: Callable[[SchemaInfo, SchemaInfo], object]
) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", note=0)}, "v1")
    topic_repository.flush()
    with Repository.open(topic_repository.path) as repository:
        topic = read_history(repository, PROJECT).catalog.topics[ORDERS]
    one, other = (version.info for version in topic.versions)
    assert one
    assert other
    assert (one.type, repr(one)) == (SchemaType.AVRO, "DeferredInfo(type=SchemaType.AVRO)")
    use(one, other)
    assert repr(one) != "DeferredInfo(type=SchemaType.AVRO)"
    assert topic.load() is topic
    assert (one.schema.decode(), one == other) == (record("id"), False)


INLINE = 'topic: shop/sales/orders\nschema:\n  type: AVRO\n  definition: "%s"\n'


@pytest.mark.parametrize(
    ("changes", "mentioned", "unmentioned"),
    [
        ({"topics/orders.avsc": record("id", "Memo_2")}, ["id", "ID", "memo_2", "name"], ["memo", "_2", "other"]),
        (
            {
                "topics/orders.yaml": write_declaration(more="  references: [money.avsc]\n"),
                "topics/orders.avsc": record("id")[:-2] + ', {"name": "price", "type": "Money"}]}',
                "topics/money.avsc": record("amount", name="Money"),
            },
            ["price", "amount"],
            ["other"],
        ),
        (
            {"topics/orders.yaml": f"# A note\n{write_declaration(definition=repr(record('id', 'extra')))}"},
            ["extra"],
            ["other"],
        ),
        ({"topics/orders.avsc": record("id", doc="A \\ and a \n.")}, ["id"], ["memo"]),
        # Escaped letters may be any name.
        ({"topics/orders.avsc": record("id", doc="Ü")}, ["id", "memo"], []),
        ({"topics/orders.yaml": INLINE % record("id").replace('"', '\\"')}, ["id", "memo"], []),
    ],
    ids=["a file", "two files", "in the declaration", "escaped signs", "an escaped letter", "escapes in YAML"],
)
def test_names_of_a_definition_are_known_before_it_is_read(
    topic_repository: Scratch, changes: dict[str, str], mentioned: list[str], unmentioned: list[str]
) -> None:
    topic_repository.commit(changes, "changed")
    topic_repository.commit(
        {"topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id"), "topics/money.avsc": None},
        "back",
    )
    topic_repository.flush()
    with Repository.open(topic_repository.path) as repository:
        topic = read_history(repository, PROJECT).catalog.topics[ORDERS]
    for info in filter(None, (version.info for version in topic.versions)):
        assert [name for name in (*mentioned, *unmentioned) if info.may_mention(name)] == mentioned
        assert repr(info) == "DeferredInfo(type=SchemaType.AVRO)"


def test_an_attribute_that_another_thread_has_read_meanwhile_is_returned() -> None:
    info = DeferredInfo.of(SchemaType.STRING, lambda: SchemaInfo(SchemaType.STRING, b"x"))
    info.load()
    # Python calls this method after it did not find the attribute.
    assert DeferredInfo.__getattr__(info, "schema") == b"x"  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        DeferredInfo.__getattr__(info, "unknown")  # type: ignore[arg-type]


def test_a_read_definition_is_located_in_its_file_and_keeps_only_its_text(topic_repository: Scratch) -> None:
    for note in (None, 0, 1):
        text = record("id") if note is None else record("id", note=note)
        topic_repository.commit({"topics/orders.avsc": text}, f"note {note}")
    gc.collect()
    objects_before = {id(value) for value in gc.get_objects() if isinstance(value, Inlined)}
    topic = read(topic_repository).catalog.topics[ORDERS].load()
    gc.collect()
    assert not [value for value in gc.get_objects() if isinstance(value, Inlined) and id(value) not in objects_before]
    for version in topic.versions:
        source = version.info.locate("/fields/0/name") if version.info else None
        assert source
        assert (source.path, source.line) == ("topics/orders.avsc", 1)


@pytest.mark.parametrize("topic_repository", ["sha1", "sha256"], indirect=True)
def test_versions_count_from_zero_with_the_commit_that_brought_them(topic_repository: Scratch) -> None:
    topic_repository.commit({"README.md": "x"}, "no schema")
    mark = topic_repository.commit({"topics/orders.avsc": record("id", note=0)}, "v1")
    assert list_versions(topic_repository) == ["v0", "v1"]
    approved = read(topic_repository)
    version = approved.catalog.topics[ORDERS].versions[1]
    assert version.commit
    assert (version.commit.id, version.commit.time_s) == (topic_repository.id(mark), FIRST_COMMIT_S + mark)
    assert version.info
    assert version.info.schema.decode() == record("id", note=0)
    assert approved.ref == "main"
    assert approved.tip
    assert approved.tip.id == topic_repository.id(mark)
    assert approved.notes == ()
    assert approved.find_current_number(ORDERS) == 1


FIRST: Files = {"topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}

NO_VERSION: dict[str, Files] = {
    "reformatted": {"topics/orders.avsc": record("id", indent=4)},
    "documented": {"topics/orders.avsc": record("id", doc="What a customer ordered.")},
    "aliased": {"topics/orders.avsc": record("id").replace("{", '{"aliases": ["Purchase"], ', 1)},
    "line ends": {"topics/orders.avsc": record("id", indent=2).replace("\n", "\r\n")},
    "comment": {"topics/orders.yaml": "# Orders of the shop.\n" + write_declaration()},
    "line ends of the declaration": {"topics/orders.yaml": write_declaration().replace("\n", "\r\n")},
    "properties": {"topics/orders.yaml": write_declaration(more="  properties: {owner: orders-team}\n")},
    "metadata": {
        "topics/orders.yaml": write_declaration(
            more="owner: ada\nlabels: {tier: gold}\ndeprecated: {use: shop/sales/all}\n"
        ),
        "topics/sales.yaml": "namespace: shop/sales\nowner: bob\n",
    },
    "partitions": {"topics/orders.yaml": write_declaration(more="partitions: 4\n")},
    "name spelled out": {"topics/orders.yaml": write_declaration(topic="persistent://shop/sales/orders")},
    "definition inside": {"topics/orders.yaml": write_declaration(definition="'" + record("id") + "'")},
    "declaration moved": {
        "topics/orders.yaml": None,
        "topics/deep/er/o.yml": write_declaration(definition="../../orders.avsc"),
    },
    "definition moved": {
        "topics/orders.yaml": write_declaration(definition="../x.json"),
        "topics/orders.avsc": None,
        "x.json": record("id"),
    },
    "document added": {"topics/orders.yaml": write_declaration() + "---\nnamespace: shop/sales\n"},
}
"""Changes that Pulsar would not store."""


A_VERSION: dict[str, Files] = {
    "field": {"topics/orders.avsc": record("id", count=1)},
    "name": {"topics/orders.avsc": record("id", name="Purchase")},
    "custom property": {
        "topics/orders.avsc": record("id").replace('"string"', '{"type": "string", "avro.java.string": "String"}')
    },
    "type": {"topics/orders.yaml": write_declaration().replace("AVRO", "JSON")},
    "other type": {"topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: STRING}\n"},
}


class TopicState(NamedTuple):
    """A topic of the approved history.

    Attributes:
        versions: the subjects of the commits that added its versions.
        current: the number of the version in force, or None.
        since: the subject of the commit since which this is so.
        deleted: whether it is no longer declared.
    """

    versions: tuple[str, ...]
    current: int | None
    since: str
    deleted: bool = False


class HistoryCase(NamedTuple):
    """Commits by subject, and the topics of the approved history after them, by name."""

    commits: dict[str, Files]
    topics: dict[str, TopicState]
    project: Project = PROJECT


def write_version(number: int, path: str = "topics/orders.avsc") -> Files:
    """Return the definition of version `number`, which has one field more than version 0."""
    fields: dict[str, Any] = {f"f{number}": 0} if number else {}
    return {path: record("id", **fields)}


GONE: Files = {"topics/orders.yaml": None, "topics/orders.avsc": None}
WITHOUT_SCHEMA: Files = {"topics/orders.yaml": "topic: shop/sales/orders\n"}
PURCHASES = write_declaration("shop/sales/purchases", more="renamed_from: shop/sales/orders\n")
OTHER_DOMAIN = "non-persistent://shop/sales/orders"
NEW_ROOT = Project(roots=("new",), previous_roots=("topics",))
SHARED = write_declaration("shop/sales/{}", "{}.avsc", "  references: [../common/money.avsc]\n")
PAIR = (
    "topic: shop/sales/pair\nschema: {type: KEY_VALUE, encoding: INLINE, key: {type: INT64}, value: {type: STRING}}\n"
)

HISTORY_CASES: dict[str, HistoryCase] = {
    **{
        f"no version: {name}": HistoryCase({"v0": FIRST, "no version": files}, {"orders": TopicState(("v0",), 0, "v0")})
        for name, files in NO_VERSION.items()
    },
    **{
        f"a version: {name}": HistoryCase({"v0": FIRST, "v1": files}, {"orders": TopicState(("v0", "v1"), 1, "v1")})
        for name, files in A_VERSION.items()
    },
    "a revert brings the old number back into force": HistoryCase(
        {"v0": FIRST, "v1": write_version(1), "revert": {"topics/orders.avsc": record("id", indent=2)}},
        {"orders": TopicState(("v0", "v1"), 0, "revert")},
    ),
    "a version after a revert has the next number": HistoryCase(
        {"v0": FIRST, "v1": write_version(1), "revert": write_version(0), "v2": write_version(2)},
        {"orders": TopicState(("v0", "v1", "v2"), 2, "v2")},
    ),
    "a bad default that was approved has a number": HistoryCase(
        {"v0": FIRST, "v1": {"topics/orders.avsc": record("id", a="none")}, "v2": write_version(2)},
        {"orders": TopicState(("v0", "v1", "v2"), 2, "v2")},
    ),
    "a deleted topic keeps its versions": HistoryCase(
        {"v0": FIRST, "gone": GONE}, {"orders": TopicState(("v0",), None, "gone", deleted=True)}
    ),
    "the same content after a deletion has its old number": HistoryCase(
        {"v0": FIRST, "gone": {"topics/orders.yaml": None}, "back": {"topics/again.yaml": write_declaration()}},
        {"orders": TopicState(("v0",), 0, "back")},
    ),
    "other content after a deletion has the next number": HistoryCase(
        {"v0": FIRST, "gone": GONE, "v1": {"topics/again.yaml": write_declaration(), **write_version(1)}},
        {"orders": TopicState(("v0", "v1"), 1, "v1")},
    ),
    "a topic that takes another name has new numbers": HistoryCase(
        {"v0": FIRST, "renamed": {"topics/orders.yaml": PURCHASES}},
        {"orders": TopicState(("v0",), None, "renamed", deleted=True), "purchases": TopicState(("renamed",), 0, "renamed")},
    ),
    "a topic that changes its domain goes on with its list": HistoryCase(
        {"v0": FIRST, "v1": {"topics/orders.yaml": write_declaration(OTHER_DOMAIN), **write_version(1)}},
        {
            "orders": TopicState(("v0", "v1"), None, "v1", deleted=True),
            OTHER_DOMAIN: TopicState(("v0", "v1"), 1, "v1"),
        },
    ),
    "a topic may get a schema": HistoryCase(
        {"declared": WITHOUT_SCHEMA, "v0": FIRST}, {"orders": TopicState(("v0",), 0, "v0")}
    ),
    "a topic without a schema has no versions": HistoryCase(
        {"declared": WITHOUT_SCHEMA}, {"orders": TopicState((), None, "declared")}
    ),
    "a topic whose schema is removed keeps its versions": HistoryCase(
        {"v0": FIRST, "removed": WITHOUT_SCHEMA}, {"orders": TopicState(("v0",), None, "removed")}
    ),
    "a topic moves from one root to another with its versions": HistoryCase(
        {
            "v0": FIRST,
            "v1": write_version(1),
            "moved": {"new/o.yaml": write_declaration(), **write_version(1, "new/orders.avsc"), **GONE},
            "v2": write_version(2, "new/orders.avsc"),
        },
        {"orders": TopicState(("v0", "v1", "v2"), 2, "v2")},
        NEW_ROOT,
    ),
    "of a topic in both roots the current root counts": HistoryCase(
        {
            "v0": FIRST,
            "v1": {"new/o.yaml": write_declaration(), **write_version(1, "new/orders.avsc")},
            "former root": write_version(2),
        },
        {"orders": TopicState(("v0", "v1"), 1, "v1")},
        NEW_ROOT,
    ),
    "a topic left in a former root is no longer declared": HistoryCase(
        {"v0": FIRST, "new": {"new/x.yaml": write_declaration("shop/sales/x"), **write_version(0, "new/orders.avsc")}},
        {"orders": TopicState(("v0",), None, "v0", deleted=True), "x": TopicState(("new",), 0, "new")},
        NEW_ROOT,
    ),
    "a shared definition gives each topic that uses it a version": HistoryCase(
        {
            "v0": {
                "common/money.avsc": record("amount", name="Money"),
                **{f"topics/{name}.yaml": SHARED.replace("{}", name) for name in ("one", "two", "three")},
                **{
                    f"topics/{name}.avsc": '{"type": "record", "name": "X", "fields": [{"name": "m", "type": "Money"}]}'
                    for name in ("one", "two")
                },
                "topics/three.avsc": record("id", name="X"),
            },
            "v1": {"common/money.avsc": record("amount", currency=0, name="Money")},
        },
        {
            "one": TopicState(("v0", "v1"), 1, "v1"),
            "two": TopicState(("v0", "v1"), 1, "v1"),
            "three": TopicState(("v0",), 0, "v0"),
        },
    ),
    # A broker would see no difference of the encoding, but version numbers follow the same rule for every type.
    "a pair has a version for each change": HistoryCase(
        {
            "v0": {"topics/pair.yaml": PAIR, "topics/text.yaml": "topic: shop/sales/text\nschema: {type: STRING}\n"},
            "v1": {"topics/pair.yaml": PAIR.replace("INLINE", "SEPARATED")},
            "v2": {"topics/pair.yaml": PAIR.replace("INLINE", "SEPARATED").replace("INT64", "INT32")},
        },
        {"pair": TopicState(("v0", "v1", "v2"), 2, "v2"), "text": TopicState(("v0",), 0, "v0")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HISTORY_CASES.values(), ids=HISTORY_CASES)
def test_topics_have_the_versions_that_commits_added(tmp_path: Path, case: HistoryCase) -> None:
    scratch = Scratch(tmp_path / "r")
    for subject, files in case.commits.items():
        scratch.commit(files, subject)
    approved = read(scratch, case.project)
    states = {}
    for name, topic in approved.catalog.topics.items():
        since = approved.find_commit_of_state(name)
        states[str(name).removeprefix("persistent://shop/sales/")] = TopicState(
            tuple(list_subjects(approved, name)),
            approved.find_current_number(name),
            since.subject if since else "",
            topic.deleted,
        )
    assert (states, approved.notes) == (case.topics, ())


def test_a_version_keeps_the_text_it_had_first_and_the_topic_has_the_newest(topic_repository: Scratch) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", doc="new")}, "documented")
    topic = read(topic_repository).catalog.topics[ORDERS]
    assert topic.schema
    assert topic.schema.schema.decode() == record("id", doc="new")
    assert topic.versions[0].info
    assert topic.versions[0].info.schema.decode() == record("id")


def test_a_renamed_topic_has_its_former_name(topic_repository: Scratch) -> None:
    topic_repository.commit({"topics/orders.yaml": PURCHASES}, "renamed")
    assert read(topic_repository).catalog.topics[TopicName.parse("shop/sales/purchases")].renamed_from == ORDERS


def test_a_merge_is_one_event_whatever_happened_on_its_branch(topic_repository: Scratch) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", a=0)}, "try", branch="side", start=1)
    side = topic_repository.commit({"topics/orders.avsc": record("id", b=0)}, "settle", branch="side")
    topic_repository.commit({"README.md": "x"}, "meanwhile")
    topic_repository.commit({"topics/orders.avsc": record("id", b=0)}, "merge", merge=side)
    assert list_versions(topic_repository) == ["v0", "merge"]


def test_a_fast_forward_to_a_branch_that_merged_main_changes_whose_line_counts(topic_repository: Scratch) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", a=0)}, "on main")
    side = topic_repository.commit({"topics/orders.avsc": record("id", b=0)}, "on side", branch="side", start=1)
    assert list_versions(topic_repository) == ["v0", "on main"]
    topic_repository.commit(
        {"topics/orders.avsc": record("id", a=0, b=0)}, "merge main", branch="side", start=side, merge=2
    )
    assert list_subjects(read(topic_repository, ref="side")) == ["v0", "on side", "merge main"]


def test_one_reading_tells_the_history_now_and_where_a_branch_left_it(
    topic_repository: Scratch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", a=0)}, "on side", branch="side", start=1)
    topic_repository.commit({"topics/orders.avsc": record("id", b=0)}, "v1")
    topic_repository.flush()
    with Repository.open(topic_repository.path) as repository:
        head = repository.commit("side")
        assert head
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(tmp_path / "trace"))
        now, base, *_ = read_forked(repository, PROJECT, head)
    assert len([command for command in read_commands(tmp_path / "trace") if "--raw" in command]) == 1
    assert len(now.catalog.topics[ORDERS].versions) == 2
    now.catalog.load()
    assert now.catalog == read(topic_repository).catalog
    assert len(base.catalog.topics[ORDERS].versions) == 1
    assert base.tip
    assert base.tip.id == topic_repository.id(1)


@pytest.mark.parametrize("head", [None, "main", "ahead"])
def test_work_on_top_of_what_was_approved_left_it_at_its_tip(topic_repository: Scratch, head: str | None) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", a=0)}, "ahead", branch="ahead", start=1)
    topic_repository.flush()
    with Repository.open(topic_repository.path) as repository:
        now, base, *_ = read_forked(repository, PROJECT, repository.commit(head) if head else None)
    assert now is base
    now.catalog.load()
    assert now.catalog == read(topic_repository).catalog


def test_a_branch_may_leave_a_commit_that_a_merge_brought(topic_repository: Scratch) -> None:
    side = topic_repository.commit({"topics/orders.avsc": record("id", a=0)}, "on side", branch="side", start=1)
    topic_repository.commit({"topics/orders.avsc": record("id", b=0)}, "v1")
    topic_repository.commit({"topics/orders.avsc": record("id", a=0, b=0)}, "merge", merge=side)
    topic_repository.commit({"README.md": "x"}, "more on side", branch="side")
    topic_repository.flush()
    with Repository.open(topic_repository.path) as repository:
        head = repository.commit("side")
        assert head
        now, base, *_ = read_forked(repository, PROJECT, head)
    assert list_subjects(now) == ["v0", "v1", "merge"]
    assert list_subjects(base) == ["v0", "on side"]


def test_unrelated_work_is_refused(topic_repository: Scratch) -> None:
    topic_repository.git("checkout", "-q", "--orphan", "fresh")
    topic_repository.git("commit", "-qm", "x")
    with Repository.open(topic_repository.path) as repository:
        head = repository.commit("fresh")
        assert head
        with pytest.raises(HistoryError, match="no commit in common"):
            read_forked(repository, PROJECT, head)


def test_a_root_that_is_forgotten_is_refused_instead_of_counted_anew(topic_repository: Scratch) -> None:
    topic_repository.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n"}, "project")
    with pytest.raises(HistoryError, match="had the root `topics`") as caught:
        read(topic_repository, Project(roots=("new",)))
    assert caught.value.fix == "add `topics` to `previous_roots` in schemactl.yaml"
    assert ORDERS in read(topic_repository, Project(roots=("new",), previous_roots=("topics",))).catalog.topics
    assert ORDERS in read(topic_repository, Project(roots=("",))).catalog.topics


def test_a_moved_project_is_refused_until_it_names_its_former_roots(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "mono")
    files = {
        "schemactl.yaml": "version: 1\nroots: [topics]\n",
        "topics/orders.yaml": write_declaration(),
        "topics/orders.avsc": record("id"),
    }
    scratch.commit({f"teams/a/{path}": text for path, text in files.items()}, "v0")
    moved = {f"lib/{path}": text for path, text in files.items()}
    scratch.commit({**moved, **{f"teams/a/{path}": None for path in files}}, "moved")
    project = Project(folder="lib", path="lib/schemactl.yaml", roots=("lib/topics",))
    with pytest.raises(HistoryError, match=r"teams/a/schemactl\.yaml before .* had the root") as caught:
        read(scratch, project)
    assert caught.value.fix == "add `../teams/a/topics` to `previous_roots` in lib/schemactl.yaml"
    assert list_versions(scratch, project=replace(project, previous_roots=("teams/a/topics",))) == ["v0"]


def test_a_project_beside_another_has_its_own_history(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "mono")
    scratch.commit({"a/schemactl.yaml": "version: 1\n", "a/namespaces/orders.yaml": write_declaration()}, "other")
    scratch.commit({"b/schemactl.yaml": "version: 1\n", "b/namespaces/b.yaml": "topic: a/b/c\n"}, "ours")
    scratch.commit({"a/schemactl.yaml": None, "a/namespaces/orders.yaml": None}, "gone")
    approved = read(scratch, Project(folder="b", path="b/schemactl.yaml", roots=("b/namespaces",)))
    assert [str(name) for name in approved.catalog.topics] == ["persistent://a/b/c"]


LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"
BROKEN: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "yaml": ({"topics/orders.yaml": "topic: [\n"}, "topics/orders.yaml"),
    "unknown key": ({"topics/orders.yaml": write_declaration() + "partitons: 4\n"}, "topics/orders.yaml"),
    "binary": ({"topics/orders.yaml": b"\xff\xfe"}, "topics/orders.yaml"),
    "empty": ({"topics/orders.yaml": ""}, "topics/orders.yaml"),
    "pointer": ({"topics/orders.yaml": LFS_POINTER}, "Git LFS"),
    "definition is a pointer": ({"topics/orders.avsc": LFS_POINTER}, "Git LFS"),
    "json": ({"topics/orders.avsc": '{"type": "record"'}, "topics/orders.avsc"),
    "avro": ({"topics/orders.avsc": '{"type": "rekord", "name": "Order", "fields": []}'}, "topics/orders.avsc"),
    "definition gone": ({"topics/orders.avsc": None}, "orders.avsc"),
    "huge": ({"topics/orders.avsc": b"x" * (5 * 1024 * 1024 + 1)}, "5,242,881 bytes"),
    "declared twice": ({"topics/twice.yaml": write_declaration()}, "declared twice"),
    "in two domains": ({"topics/twice.yaml": write_declaration(f"non-{ORDERS}")}, "declared twice"),
}


@pytest.mark.parametrize(("broken", "problem"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_makes_no_version_but_a_note(
    topic_repository: Scratch, broken: dict[str, str | bytes | None], problem: str
) -> None:
    topic_repository.commit(broken, "broken")
    approved = read(topic_repository)
    topic = approved.catalog.topics[ORDERS]
    assert [version.number for version in topic.versions] == [0]
    assert not topic.deleted
    assert topic.schema == topic.versions[0].info
    assert approved.find_current_number(ORDERS) == 0
    (note,) = approved.notes
    assert note.commit.subject == "broken"
    assert problem in str(note)
    repaired = {"topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id", a=0)}
    topic_repository.commit({**repaired, **{path: None for path in broken if path not in repaired}}, "v1")
    assert list_versions(topic_repository) == ["v0", "v1"]
    approved = read(topic_repository)
    assert (approved.notes, approved.repaired) == ((), (note,))


def test_of_a_file_with_one_broken_document_the_others_count(topic_repository: Scratch) -> None:
    both = write_declaration() + "---\n" + write_declaration("shop/sales/refunds")
    topic_repository.commit({"topics/orders.yaml": both}, "two")
    topic_repository.commit(
        {"topics/orders.yaml": both + "rubbish: 1\n", "topics/orders.avsc": record("id", a=0)}, "v1"
    )
    refunds = TopicName.parse("shop/sales/refunds")
    assert list_versions(topic_repository) == ["v0", "v1"]
    # The unreadable declaration keeps its earlier state, but its definition has changed.
    assert list_versions(topic_repository, refunds) == ["two", "v1"]


@pytest.mark.parametrize("mode", ["120000", "160000"])
@pytest.mark.parametrize("path", ["topics/orders.yaml", "topics/orders.avsc"])
def test_a_link_or_submodule_in_the_place_of_a_file_makes_no_version(
    topic_repository: Scratch, mode: str, path: str
) -> None:
    target = topic_repository.git("rev-parse", "main" if mode == "160000" else "main:topics/orders.avsc")
    topic_repository.git("update-index", "--cacheinfo", f"{mode},{target},{path}")
    topic_repository.git("commit", "-qm", "odd")
    assert list_versions(topic_repository) == ["v0"]
    approved = read(topic_repository)
    assert approved.find_current_number(ORDERS) == 0
    assert len(approved.notes) == 1


def test_an_executable_file_is_a_file(topic_repository: Scratch) -> None:
    topic_repository.commit({"topics/orders.avsc": record("id", a=0)}, "v1")
    topic_repository.git("update-index", "--chmod=+x", "topics/orders.avsc", "topics/orders.yaml")
    topic_repository.git("commit", "-qm", "executable")
    assert list_versions(topic_repository) == ["v0", "v1"]


def test_a_missing_definition_counts_once_it_is_there(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"topics/orders.yaml": write_declaration()}, "declared")
    assert ORDERS not in read(scratch).catalog.topics
    scratch.commit({"topics/orders.avsc": record("id")}, "v0")
    assert list_versions(scratch) == ["v0"]


def test_policies_and_namespaces_are_those_of_the_tip(topic_repository: Scratch) -> None:
    topic_repository.commit(
        {
            "topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FORWARD\n",
            "topics/orders.yaml": write_declaration(more="schema_compatibility_strategy: FULL\npartitions: 3\n"),
        },
        "policies",
    )
    topic_repository.commit(
        {"topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n"}, "tip"
    )
    catalog = read(topic_repository).catalog
    (namespace,) = catalog.namespaces.values()
    assert namespace.name == NamespaceName("shop", "sales")
    assert namespace.policies.schema_compatibility_strategy is CompatibilityStrategy.BACKWARD
    topic = catalog.topics[ORDERS]
    assert (topic.partitions, topic.policies.schema_compatibility_strategy) == (3, CompatibilityStrategy.FULL)


def test_without_commits_nothing_is_approved(tmp_path: Path) -> None:
    approved = read(Scratch(tmp_path / "r"))
    assert (approved.tip, dict(approved.catalog.topics), approved.notes) == (None, {}, ())


@pytest.mark.parametrize(
    "path", ["topics/a b.yaml", "topics/[x]*.yaml", "topics/:c.yaml", "topics/\u00e9.yaml", "topics/e\u0301.yaml"]
)
def test_declarations_may_have_odd_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    scratch = Scratch(tmp_path / "r.git", bare=True)
    monkeypatch.setenv("GIT_DIR", str(scratch.path))
    scratch.commit({path: write_declaration(), "topics/orders.avsc": record("id")}, "v0")
    assert list_versions(scratch) == ["v0"]


@pytest.mark.parametrize("path", ["topics/\udcff.yaml", "topics/new\nline.yaml"])
def test_a_name_that_cannot_be_printed_is_escaped_in_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    scratch = Scratch(tmp_path / "r.git", bare=True)
    monkeypatch.setenv("GIT_DIR", str(scratch.path))
    scratch.commit({path: write_declaration(), "topics/orders.avsc": record("id")}, "v0")
    source = read(scratch).catalog.topics[ORDERS].source
    assert source
    assert source.path.isprintable()


def test_a_version_of_a_pair_is_a_pair(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"topics/pair.yaml": PAIR}, "v0")
    [version] = read(scratch).catalog.topics[TopicName.parse("shop/sales/pair")].versions
    assert version.info
    assert version.info.type is SchemaType.KEY_VALUE


def test_gitpython_is_imported_only_to_read_a_repository() -> None:
    script = "import sys, schemactl.history.merge, schemactl.history.store; sys.exit('git' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
