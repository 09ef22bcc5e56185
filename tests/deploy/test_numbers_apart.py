"""A registry whose numbers are not Git's: it is told, recorded, and then counted with."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from estate import ORDERS, PROJECT, Estate, make_order_info
from scratch import record

from schemactl.comparison.changes import COMMIT_PROPERTY
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import key_value
from schemactl.registry.embedded import EmbeddedRegistry, make_entry
from schemactl.registry.storage import Database, SqliteStorage

pytestmark = pytest.mark.slow

NEXT = "schemactl drift --target local --accept --reason TEXT"
FOREIGN = make_order_info("id", foreign=0)


@pytest.fixture(scope="module")
def one_version(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply one version. No test changes it."""
    applied_estate = Estate(tmp_path_factory.mktemp("applied") / "shop")
    applied_estate.run("apply", "--auto-approve")
    return applied_estate


@pytest.fixture
def applied_estate(one_version: Estate, tmp_path: Path) -> Estate:
    return one_version.copy_to(tmp_path / "applied")


@pytest.fixture(scope="module")
def module_estate(one_version: Estate, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Upload a foreign version 1, and approve another version 1 in Git without applying it."""
    apart_numbers = one_version.copy_to(tmp_path_factory.mktemp("prepared") / "shop")
    assert apart_numbers.put(FOREIGN) == [1]
    apart_numbers.commit_orders("id", own=0)
    return apart_numbers


def read_numbers(estate: Estate, name: str = "local") -> str:
    """Return the lines of the numbers file without comments."""
    lines = (estate.scratch.path / f"numbers/{name}.yaml").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


def test_every_command_says_that_messages_would_be_misread(estate: Estate) -> None:
    for command in (["plan"], ["drift"], ["log", "orders", "--target", "local"]):
        out = estate.run(*command, code=100).out
        assert f"{ORDERS}" in out
        assert "v1 is not known to Git" in out
        assert "misread" in out
        assert "schemactl drift --target local --accept --reason TEXT" in out
    out = estate.run("apply", "--auto-approve", code=3).out
    assert out.count("v1 is not known to Git, v2 is Git's v1") == 2  # before it is done, and afterwards
    out = estate.run("apply", "--auto-approve", code=100).out
    assert "No changes, but messages of 1 topic would be misread." in out
    assert "nothing is broken" not in out


@pytest.mark.parametrize("command", [["plan"], ["drift"], ["log", "orders", "--target", "local"]])
def test_programs_are_told_the_same(estate: Estate, command: list[str]) -> None:
    for recorded, code in ((False, 100), (True, 0)):
        versions = json.loads(estate.run(*command, "--format", "json", code=code).out)["numbers_apart"]
        assert {(version["state"], version["recorded"]) for version in versions} == {("readable", recorded)}
        numbers = [(version["registry"], version["git"]) for version in versions]
        assert numbers == [(1, None), *([(2, 1)] if command == ["plan"] else [])]
        estate.accept()


def test_what_is_recorded_needs_to_be_approved(estate: Estate) -> None:
    out = estate.run("drift", "--accept", "--reason", " uploaded by hand ").out
    assert f"{ORDERS}: v1 is not known to Git" in out
    assert "Next: commit numbers/local.yaml and the files that it names, and merge them" in out
    today = datetime.now(UTC).date().isoformat()
    file = next(
        line.split("foreign: ")[1].split(",")[0] for line in read_numbers(estate).splitlines() if "foreign" in line
    )
    assert read_numbers(estate) == (
        f'{ORDERS}:\n  1: {{foreign: {file}, type: AVRO, reason: "uploaded by hand", accepted: {today}}}'
    )
    assert (estate.scratch.path / "numbers" / file).read_bytes() == FOREIGN.schema
    estate.run("plan", code=100)
    assert "Nothing was written. The version numbers of" in estate.run("drift", "--accept", "--reason", "again").out
    assert "again" not in read_numbers(estate)
    estate.scratch.git("add", "numbers")
    estate.scratch.git("commit", "-q", "-m", "Record numbers")
    assert "Next:" not in estate.run("plan").out


def test_with_the_record_apply_and_what_follows_are_plain_again(estate: Estate) -> None:
    estate.accept()
    estate.run("apply", "--auto-approve")
    assert estate.read_definitions() == [make_order_info("id"), FOREIGN, make_order_info("id", own=0)]
    out = estate.run("plan", "--detailed-exitcode").out
    assert "No changes. The registry has everything that Git approved." in out
    estate.run("apply", "--auto-approve")
    assert "No drift." in estate.run("drift", "--detailed-exitcode").out
    estate.run("log", "orders", "--target", "local")
    estate.commit_orders("id", own=0, more=0)
    estate.run("apply", "--auto-approve")
    estate.run("plan", "--detailed-exitcode")


def test_a_foreign_number_counts_before_git_has_another_version(applied_estate: Estate) -> None:
    applied_estate.put(FOREIGN)
    for command in ("plan", "drift"):
        applied_estate.run(command, code=100)


def test_approving_the_foreign_content_leads_nowhere_without_a_record(estate: Estate) -> None:
    """Git's version 1 is number 2 and its version 2 is number 1."""
    estate.run("apply", "--auto-approve", code=3)
    estate.scratch.commit({"namespaces/orders.avsc": record("id", own=0, foreign=0)})
    estate.put(make_order_info("id", own=0, foreign=0))
    estate.scratch.commit({"namespaces/orders.avsc": FOREIGN.schema})
    assert "v1 is Git's v3, v2 is Git's v1, v3 is Git's v2" in estate.run("plan", code=100).out
    estate.accept()
    estate.run("plan", "--detailed-exitcode")
    estate.run("drift", "--detailed-exitcode")


def test_a_content_that_is_approved_after_it_was_recorded_stays_as_recorded(estate: Estate) -> None:
    estate.accept()
    before = read_numbers(estate)
    estate.scratch.commit({"namespaces/orders.avsc": FOREIGN.schema})
    estate.run("apply", "--auto-approve")
    assert estate.read_definitions() == [make_order_info("id"), FOREIGN, make_order_info("id", own=0)]
    for command in ("plan", "drift"):
        estate.run(command)
    estate.accept()
    assert read_numbers(estate) == before
    estate.commit_orders("id", own=0, more=0)
    estate.run("apply", "--auto-approve")
    for command in ("plan", "drift"):
        estate.run(command)


def test_a_deletion_sets_numbers_apart(applied_estate: Estate) -> None:
    applied_estate.put(None)
    applied_estate.run("drift", code=100)
    applied_estate.accept()
    assert [line.split(" reason")[0] for line in read_numbers(applied_estate).splitlines()] == [
        f"{ORDERS}:",
        "  0: {git: 0, deleted: true,",
        "  1: {deleted: true,",
    ]
    applied_estate.run("drift")
    applied_estate.run("apply", "--auto-approve")
    applied_estate.run("plan", "--detailed-exitcode")
    # Once more, unforeseen: the record goes on saying what the numbers before were.
    applied_estate.put(None)
    assert "v3 is deleted" in applied_estate.run("drift", code=100).out
    applied_estate.accept()
    assert [line.split(" reason")[0] for line in read_numbers(applied_estate).splitlines()][1:] == [
        "  0: {git: 0, deleted: true,",
        "  1: {deleted: true,",
        "  2: {git: 0, deleted: true,",
        "  3: {deleted: true,",
    ]
    applied_estate.run("apply", "--auto-approve")


def test_replaying_under_a_relaxed_strategy_says_first_that_numbers_come_apart(applied_estate: Estate) -> None:
    """Version 1 was lost, and version 2 has the number 1."""
    applied_estate.commit_orders("id", own=0)
    applied_estate.commit_orders("id", own=0, more=0)
    applied_estate.put(make_order_info("id", own=0, more=0))
    assert "v1 is Git's v2, v2 is Git's v1" in applied_estate.run("plan", "--relax-while-replaying", code=100).out
    applied_estate.run("apply", "--relax-while-replaying", "--auto-approve", code=3)
    applied_estate.accept()
    applied_estate.run("plan", "--detailed-exitcode")


def test_a_plan_says_what_only_it_will_set_apart(tmp_path: Path) -> None:
    """The registry takes Git's version 1 for its number 0: it compares the bytes of a pair, not how it is encoded."""
    estate = Estate(tmp_path / "shop")
    for encoding, fields in (("INLINE", ("id",)), ("SEPARATED", ("id",)), ("SEPARATED", ())):
        value = "value: {type: AVRO, definition: value.avsc}"
        text = f"topic: shop/sales/pairs\nschema: {{type: KEY_VALUE, encoding: {encoding}, key: {{type: STRING}}, {value}}}\n"
        estate.scratch.commit({"namespaces/pairs.yaml": text, "namespaces/value.avsc": record(*fields)})
    out = estate.run("plan", "--topic", "*/pairs", code=100).out
    assert "After this apply, local will have version numbers that are not Git's" in out
    assert "Next: apply this; then `schemactl drift --target local --accept" in out
    estate.run("apply", "--auto-approve", "--topic", "*/pairs", code=3)
    estate.accept()
    estate.run("plan", "--topic", "*/pairs")


def test_accepting_needs_a_reason(estate: Estate) -> None:
    estate.run("drift", "--accept", code=64)
    estate.run("drift", "--accept", "--reason", "  ", code=64)
    estate.run("drift", "--reason", "x", code=64)
    assert not (estate.scratch.path / "numbers").exists()


def test_where_nothing_differs_nothing_is_written(applied_estate: Estate) -> None:
    assert "Nothing was written. The version numbers of" in applied_estate.run("drift", "--accept", "--reason", "x").out
    assert not (applied_estate.scratch.path / "numbers").exists()


def test_a_part_of_the_topics_is_accepted_and_the_rest_of_the_record_kept(estate: Estate) -> None:
    web = TopicName("shop", "sales", "web")
    estate.scratch.commit({"namespaces/web.yaml": "topic: shop/sales/web\nschema: {type: STRING}\n"})
    estate.run("apply", "--auto-approve", code=3)
    with estate.registry() as registry:
        registry.set_namespace_policies(
            NamespaceName("shop", "sales"), Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE)
        )
    estate.put(SchemaInfo(SchemaType.INT32), topic=web)
    estate.run("drift", "--accept", "--reason", "first", "--topic", "*/web")
    first = read_numbers(estate)
    assert "orders" not in first
    estate.run("drift", "--accept", "--reason", "second", "--topic", "*/orders")
    assert read_numbers(estate).endswith(first)
    assert "second" in read_numbers(estate)


def test_what_an_apply_uploaded_from_a_lost_commit_is_not_accepted(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.commit_orders("id", own=0)
    estate.run("apply", "--auto-approve")
    estate.scratch.git("reset", "-q", "--hard", estate.scratch.id(1))
    assert "--accept" not in estate.run("drift", code=100).out
    out = estate.run("drift", "--accept", "--reason", "x", code=100).out
    assert f"Not accepted: {ORDERS}: v1 is from a commit that the approved history does not have" in out
    assert not (estate.scratch.path / "numbers").exists()


def test_a_record_that_holds_no_more_is_told(estate: Estate) -> None:
    """The topic was deleted and made again, and counts from 0."""
    estate.accept()
    estate.run("apply", "--auto-approve")
    with estate.registry() as registry:
        registry.delete_topic(ORDERS)
    said = estate.run("plan", code=100).out
    assert "v1 is Git's v1, and recorded as something else" in said
    assert "run `schemactl rebuild --target local` first: it restores their numbers" in said
    estate.run("apply", "--auto-approve", code=3)
    estate.accept()
    assert "orders" not in read_numbers(estate)
    estate.run("plan", "--detailed-exitcode")


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(SchemaType.AVRO, '{"type": "record", "name": "Ö", "fields": []}'.encode()),
        SchemaInfo(SchemaType.JSON, make_order_info("id").schema, {"a\nb": "c: 'd' \u2028 #", "\ud800": "\x1b[2J"}),
        SchemaInfo(SchemaType.STRING, b"", {"__charset": "ISO-8859-1"}),
        SchemaInfo(SchemaType.INT64),
        SchemaInfo(SchemaType.AVRO, b"\xff\xfe"),
        key_value.join(key=SchemaInfo(SchemaType.STRING), value=make_order_info("id"), encoding="SEPARATED"),
        SchemaInfo(SchemaType.KEY_VALUE, b"\0\0\0\0\0"),
        SchemaInfo(SchemaType.BYTES),
    ],
)
def test_whatever_somebody_stored_can_be_recorded(estate: Estate, info: SchemaInfo) -> None:
    with closing(SqliteStorage(Database(str(estate.scratch.path / ".schemactl/registry.db")))) as storage:
        storage.put(ORDERS.schema_id, lambda _stored: make_entry(info, 0))
    estate.accept()
    estate.run("drift")
    estate.run("drift", "--accept", "--reason", "again")
    assert "again" not in read_numbers(estate)


def test_the_record_goes_by_declared_names(tmp_path: Path) -> None:
    project = 'version: 1\ntargets: {p: {registry: "sqlite:p.db", namespaces: {shop/sales: prod/sales}, numbers: ops/p.yaml}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.run("apply", "--auto-approve")
    with closing(EmbeddedRegistry(str(estate.scratch.path / "p.db"))) as registry:
        registry.put_schema(TopicName("prod", "sales", "orders"), FOREIGN)
    estate.run("plan", code=100)
    estate.run("drift", "--accept", "--reason", "x")
    assert f"{ORDERS}:" in (estate.scratch.path / "ops/p.yaml").read_text()
    estate.scratch.git("add", "ops")
    estate.scratch.git("commit", "-q", "-m", "Record numbers")
    estate.run("plan", "--detailed-exitcode")


def test_a_link_is_not_written_through(estate: Estate, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    estate.scratch.flush()
    (estate.scratch.path / "numbers").symlink_to(outside)
    estate.run("drift", "--accept", "--reason", "x", code=1)
    assert not list(outside.iterdir())


def test_a_numbers_file_among_declarations_is_refused(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=PROJECT + "roots: [.]\n")
    estate.run("apply", "--auto-approve")
    estate.put(FOREIGN)
    assert "would be read as a declaration" in estate.run("drift", "--accept", "--reason", "x", code=64).err


def test_a_broken_numbers_file_is_one_clear_error(estate: Estate) -> None:
    estate.scratch.commit({"numbers/local.yaml": "shop/sales/orders: {1: {gti: 0}}\n"})
    for command in (["plan"], ["drift"], ["log", "orders", "--target", "local"], ["apply", "--auto-approve"]):
        assert "numbers/local.yaml:1:25: unknown key `gti`" in estate.run(*command, code=1).err


def test_an_import_of_latest_versions_says_what_to_do(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.scratch.configure_author()
    estate.run("apply", "--auto-approve")
    web = TopicName("shop", "web", "clicks")
    with estate.registry() as registry:
        registry.create_namespace(web.namespace_name)
        registry.create_topic(web, None)
        registry.put_schema(web, make_order_info("id"))
        registry.put_schema(web, FOREIGN)
    out = estate.run("import", "--one-commit").out
    assert f"messages of {web} would be decoded with the wrong schema" in out
    assert NEXT in out
    estate.run("plan", code=100)
    estate.accept()
    estate.run("plan")


def test_a_rebuild_from_git_alone_never_calls_other_numbers_gits(estate: Estate) -> None:
    estate.run("apply", "--auto-approve", code=3)
    out = estate.run("rebuild", "--auto-approve", code=100).out
    assert "Numbers of persistent://shop/sales/orders: the registry's, which are not Git's" in out
    assert NEXT in out
    estate.accept()
    estate.run("rebuild", "--auto-approve")


def test_the_stamp_of_somebody_elses_commit_is_not_written(estate: Estate) -> None:
    other = make_order_info("id", other=0)
    estate.put(SchemaInfo(other.type, other.schema, {COMMIT_PROPERTY: "no commit", "by": "hand"}))
    estate.accept()
    assert COMMIT_PROPERTY not in read_numbers(estate)
    assert 'properties: {"by": "hand"}' in read_numbers(estate)
