"""A registry whose numbers are not Git's: it is told, recorded, and then counted with."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, PROJECT, Estate, avro
from scratch import record

from schemactl.changes import COMMIT_PROPERTY
from schemactl.formats import key_value
from schemactl.model import CompatibilityStrategy, NamespaceName, Policies, SchemaInfo, SchemaType, TopicName
from schemactl.registry.database import Database, SqliteStorage
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.entries import entry

pytestmark = pytest.mark.slow

NEXT = "schemactl drift --target local --accept --reason TEXT"
FOREIGN = avro("id", foreign=0)


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """Somebody took number 1, which Git then gave to a version of its own; nothing of that is applied yet."""
    found = Estate(tmp_path / "shop")
    assert found.run("apply", "--auto-approve") == 0
    assert found.put(FOREIGN) == [1]
    found.orders("id", own=0)
    return found


def numbers(estate: Estate, name: str = "local") -> str:
    """The lines of the numbers file that are no comment."""
    lines = (estate.scratch.path / f"numbers/{name}.yaml").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


def apart(told: Any) -> list[tuple[int, int | None, str, bool]]:
    return [
        (each["registry"], each["git"], each["state"], each["recorded"]) for each in told["numbers_apart"]
    ]


def test_every_command_says_that_messages_would_be_misread(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["plan"], ["drift"], ["log", "orders", "--target", "local"]):
        capsys.readouterr()
        assert estate.run(*command) == 100
        out = capsys.readouterr().out
        assert f"{ORDERS}" in out
        assert "v1 is not known to Git" in out
        assert "misread" in out
        assert "schemactl drift --target local --accept --reason TEXT" in out
    capsys.readouterr()
    assert estate.run("apply", "--auto-approve") == 3
    out = capsys.readouterr().out
    assert out.count("v1 is not known to Git, v2 is Git's v1") == 2  # before it is done, and afterwards
    assert estate.run("apply", "--auto-approve") == 100
    out = capsys.readouterr().out
    assert "No changes, but messages of 1 topic would be misread." in out
    assert "nothing is broken" not in out


@pytest.mark.parametrize("command", [["plan"], ["drift"], ["log", "orders", "--target", "local"]])
def test_programs_are_told_the_same(
    estate: Estate, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for recorded, code in ((False, 100), (True, 0)):
        capsys.readouterr()
        assert estate.run(*command, "--format", "json") == code
        found = apart(json.loads(capsys.readouterr().out))
        assert found[0] == (1, None, "readable", recorded)
        assert found[1:] == ([(2, 1, "readable", recorded)] if command == ["plan"] else [])
        assert estate.accept() == 0


def test_what_is_recorded_needs_to_be_approved(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert estate.run("drift", "--accept", "--reason", " uploaded by hand ") == 0
    out = capsys.readouterr().out
    assert f"{ORDERS}: v1 is not known to Git" in out
    assert "Next: commit numbers/local.yaml with what it names, and merge it" in out
    today = datetime.now(UTC).date().isoformat()
    file = next(
        line.split("foreign: ")[1].split(",")[0] for line in numbers(estate).splitlines() if "foreign" in line
    )
    assert numbers(estate) == (
        f'{ORDERS}:\n  1: {{foreign: {file}, type: AVRO, reason: "uploaded by hand", accepted: {today}}}'
    )
    assert (estate.scratch.path / "numbers" / file).read_bytes() == FOREIGN.schema
    assert estate.run("plan") == 100
    assert estate.run("drift", "--accept", "--reason", "again") == 0
    assert "Nothing to record" in capsys.readouterr().out
    assert "again" not in numbers(estate)
    estate.scratch.git("add", "numbers")
    estate.scratch.git("commit", "-q", "-m", "Record numbers")
    capsys.readouterr()
    assert estate.run("plan") == 0
    assert "Next:" not in capsys.readouterr().out


def test_with_the_record_apply_and_what_follows_are_plain_again(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    assert estate.accept() == 0
    assert estate.run("apply", "--auto-approve") == 0
    assert estate.held() == [avro("id"), FOREIGN, avro("id", own=0)]
    capsys.readouterr()
    assert estate.run("plan", "--detailed-exitcode") == 0
    assert "No changes. The registry has everything that Git approved." in capsys.readouterr().out
    assert estate.run("apply", "--auto-approve") == 0
    capsys.readouterr()
    assert estate.run("drift", "--detailed-exitcode") == 0
    assert "No drift." in capsys.readouterr().out
    assert estate.run("log", "orders", "--target", "local") == 0
    estate.orders("id", own=0, more=0)
    assert estate.run("apply", "--auto-approve") == 0
    assert estate.run("plan", "--detailed-exitcode") == 0


def test_a_foreign_number_counts_before_git_has_another_version(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    assert estate.run("apply", "--auto-approve") == 0
    estate.put(FOREIGN)
    assert [estate.run(command) for command in ("plan", "drift")] == [100, 100]


def test_approving_the_foreign_content_leads_nowhere_without_a_record(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    """Git's version 1 is number 2 and its version 2 is number 1."""
    assert estate.run("apply", "--auto-approve") == 3
    estate.scratch.commit({"namespaces/orders.avsc": record("id", own=0, foreign=0)})
    estate.put(avro("id", own=0, foreign=0))
    estate.scratch.commit({"namespaces/orders.avsc": FOREIGN.schema})
    capsys.readouterr()
    assert estate.run("plan") == 100
    assert "v1 is Git's v3, v2 is Git's v1, v3 is Git's v2" in capsys.readouterr().out
    assert estate.accept() == 0
    assert estate.run("plan", "--detailed-exitcode") == 0
    assert estate.run("drift", "--detailed-exitcode") == 0


def test_a_content_that_is_approved_after_it_was_recorded_stays_as_recorded(estate: Estate) -> None:
    assert estate.accept() == 0
    before = numbers(estate)
    estate.scratch.commit({"namespaces/orders.avsc": FOREIGN.schema})
    assert estate.run("apply", "--auto-approve") == 0
    assert estate.held() == [avro("id"), FOREIGN, avro("id", own=0)]
    assert [estate.run(command) for command in ("plan", "drift")] == [0, 0]
    assert estate.accept() == 0
    assert numbers(estate) == before
    estate.orders("id", own=0, more=0)
    assert estate.run("apply", "--auto-approve") == 0
    assert [estate.run(command) for command in ("plan", "drift")] == [0, 0]


def test_a_deletion_sets_numbers_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = Estate(tmp_path / "shop")
    assert estate.run("apply", "--auto-approve") == 0
    estate.put(None)
    assert estate.run("drift") == 100
    assert estate.accept() == 0
    assert [line.split(" reason")[0] for line in numbers(estate).splitlines()] == [
        f"{ORDERS}:",
        "  0: {git: 0, deleted: true,",
        "  1: {deleted: true,",
    ]
    assert estate.run("drift") == 0
    assert estate.run("apply", "--auto-approve") == 0
    assert estate.run("plan", "--detailed-exitcode") == 0
    # Once more, unforeseen: the record goes on saying what the numbers before were.
    estate.put(None)
    capsys.readouterr()
    assert estate.run("drift") == 100
    assert "v3 is deleted" in capsys.readouterr().out
    assert estate.accept() == 0
    assert [line.split(" reason")[0] for line in numbers(estate).splitlines()][1:] == [
        "  0: {git: 0, deleted: true,",
        "  1: {deleted: true,",
        "  2: {git: 0, deleted: true,",
        "  3: {deleted: true,",
    ]
    assert estate.run("apply", "--auto-approve") == 0


def test_replaying_under_a_relaxed_strategy_says_beforehand_that_it_sets_numbers_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version 1 was lost, version 2 is there as number 1."""
    estate = Estate(tmp_path / "shop")
    assert estate.run("apply", "--auto-approve") == 0
    estate.orders("id", own=0)
    estate.orders("id", own=0, more=0)
    estate.put(avro("id", own=0, more=0))
    capsys.readouterr()
    assert estate.run("plan", "--relax-while-replaying") == 100
    assert "v1 is Git's v2, v2 is Git's v1" in capsys.readouterr().out
    assert estate.run("apply", "--relax-while-replaying", "--auto-approve") == 3
    assert estate.accept() == 0
    assert estate.run("plan", "--detailed-exitcode") == 0


def test_a_plan_says_what_only_it_will_set_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The registry takes Git's version 1 for its number 0: it compares the bytes of a pair, not how it is encoded."""
    estate = Estate(tmp_path / "shop")
    for encoding, fields in (("INLINE", ("id",)), ("SEPARATED", ("id",)), ("SEPARATED", ())):
        value = "value: {type: AVRO, definition: value.avsc}"
        text = f"topic: shop/sales/pairs\nschema: {{type: KEY_VALUE, encoding: {encoding}, key: {{type: STRING}}, {value}}}\n"
        estate.scratch.commit({"namespaces/pairs.yaml": text, "namespaces/value.avsc": record(*fields)})
    capsys.readouterr()
    code = estate.run("plan", "--topic", "*/pairs")
    out = capsys.readouterr().out
    assert code == 100
    assert "When this is applied, nothing approved says" in out
    assert "Next: apply this; then schemactl drift --target local --accept" in out
    assert estate.run("apply", "--auto-approve", "--topic", "*/pairs") == 3
    assert estate.accept() == 0
    assert estate.run("plan", "--topic", "*/pairs") == 0


def test_accepting_needs_a_reason(estate: Estate) -> None:
    assert estate.run("drift", "--accept") == 64
    assert estate.run("drift", "--accept", "--reason", "  ") == 64
    assert estate.run("drift", "--reason", "x") == 64
    assert not (estate.scratch.path / "numbers").exists()


def test_where_nothing_differs_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = Estate(tmp_path / "shop")
    assert estate.run("apply", "--auto-approve") == 0
    capsys.readouterr()
    assert estate.run("drift", "--accept", "--reason", "x") == 0
    assert "Nothing to record" in capsys.readouterr().out
    assert not (estate.scratch.path / "numbers").exists()


def test_a_part_of_the_topics_is_accepted_and_the_rest_of_the_record_kept(estate: Estate) -> None:
    web = TopicName("shop", "sales", "web")
    estate.scratch.commit({"namespaces/web.yaml": "topic: shop/sales/web\nschema: {type: STRING}\n"})
    assert estate.run("apply", "--auto-approve") == 3
    with estate.registry() as registry:
        registry.set_namespace_policies(
            NamespaceName("shop", "sales"), Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE)
        )
    estate.put(SchemaInfo(SchemaType.INT32), topic=web)
    assert estate.run("drift", "--accept", "--reason", "first", "--topic", "*/web") == 0
    first = numbers(estate)
    assert "orders" not in first
    assert estate.run("drift", "--accept", "--reason", "second", "--topic", "*/orders") == 0
    assert numbers(estate).endswith(first)
    assert "second" in numbers(estate)


def test_what_an_apply_uploaded_from_a_lost_commit_is_not_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate = Estate(tmp_path / "shop")
    estate.orders("id", own=0)
    assert estate.run("apply", "--auto-approve") == 0
    estate.scratch.git("reset", "-q", "--hard", estate.scratch.id(1))
    capsys.readouterr()
    assert estate.run("drift") == 100
    assert "--accept" not in capsys.readouterr().out
    assert estate.run("drift", "--accept", "--reason", "x") == 100
    out = capsys.readouterr().out
    assert f"Not accepted: {ORDERS}: v1 is from a commit that the approved history does not have" in out
    assert not (estate.scratch.path / "numbers").exists()


def test_a_record_that_holds_no_more_is_told(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    """The topic was deleted and made again, and counts from 0."""
    assert estate.accept() == 0
    assert estate.run("apply", "--auto-approve") == 0
    with estate.registry() as registry:
        registry.delete_topic(ORDERS)
    capsys.readouterr()
    assert estate.run("plan") == 100
    said = capsys.readouterr().out
    assert "v1 is Git's v1, and recorded as something else" in said
    assert "first: schemactl rebuild --target local gives those numbers back" in said
    assert estate.run("apply", "--auto-approve") == 3
    assert estate.accept() == 0
    assert "orders" not in numbers(estate)
    assert estate.run("plan", "--detailed-exitcode") == 0


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(SchemaType.AVRO, '{"type": "record", "name": "Ö", "fields": []}'.encode()),
        SchemaInfo(SchemaType.JSON, avro("id").schema, {"a\nb": "c: 'd' \u2028 #", "\ud800": "\x1b[2J"}),
        SchemaInfo(SchemaType.STRING, b"", {"__charset": "ISO-8859-1"}),
        SchemaInfo(SchemaType.INT64),
        SchemaInfo(SchemaType.AVRO, b"\xff\xfe"),
        key_value.join(key=SchemaInfo(SchemaType.STRING), value=avro("id"), encoding="SEPARATED"),
        SchemaInfo(SchemaType.KEY_VALUE, b"\0\0\0\0\0"),
        SchemaInfo(SchemaType.BYTES),
    ],
)
def test_whatever_somebody_stored_can_be_recorded(estate: Estate, info: SchemaInfo) -> None:
    with closing(SqliteStorage(Database(str(estate.scratch.path / ".schemactl/registry.db")))) as storage:
        storage.put(ORDERS.schema_id, lambda _stored: entry(info, 0))
    assert estate.accept() == 0
    assert estate.run("drift") == 0
    assert estate.run("drift", "--accept", "--reason", "again") == 0
    assert "again" not in numbers(estate)


def test_the_record_goes_by_declared_names(tmp_path: Path) -> None:
    project = 'version: 1\ntargets: {p: {registry: "sqlite:p.db", namespaces: {shop/sales: prod/sales}, numbers: ops/p.yaml}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    assert estate.run("apply", "--auto-approve") == 0
    with closing(EmbeddedRegistry(str(estate.scratch.path / "p.db"))) as registry:
        registry.put_schema(TopicName("prod", "sales", "orders"), FOREIGN)
    assert estate.run("plan") == 100
    assert estate.run("drift", "--accept", "--reason", "x") == 0
    assert f"{ORDERS}:" in (estate.scratch.path / "ops/p.yaml").read_text()
    estate.scratch.git("add", "ops")
    estate.scratch.git("commit", "-q", "-m", "Record numbers")
    assert estate.run("plan", "--detailed-exitcode") == 0


def test_a_link_is_not_written_through(estate: Estate, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    estate.scratch.flush()
    (estate.scratch.path / "numbers").symlink_to(outside)
    assert estate.run("drift", "--accept", "--reason", "x") == 1
    assert not list(outside.iterdir())


def test_a_numbers_file_among_declarations_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate = Estate(tmp_path / "shop", project=PROJECT + "roots: [.]\n")
    assert estate.run("apply", "--auto-approve") == 0
    estate.put(FOREIGN)
    capsys.readouterr()
    assert estate.run("drift", "--accept", "--reason", "x") == 64
    assert "would be read as a declaration" in capsys.readouterr().err


def test_a_broken_numbers_file_is_one_clear_error(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    estate.scratch.commit({"numbers/local.yaml": "shop/sales/orders: {1: {gti: 0}}\n"})
    for command in (["plan"], ["drift"], ["log", "orders", "--target", "local"], ["apply", "--auto-approve"]):
        capsys.readouterr()
        assert estate.run(*command) == 1
        assert "numbers/local.yaml:1:25: unknown key `gti`" in capsys.readouterr().err


def test_an_import_of_latest_versions_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate = Estate(tmp_path / "shop")
    for role in ("name", "email"):
        estate.scratch.git("config", f"user.{role}", "ada@shop.example")
    assert estate.run("apply", "--auto-approve") == 0
    web = TopicName("shop", "web", "clicks")
    with estate.registry() as registry:
        registry.create_namespace(web.namespace_name)
        registry.create_topic(web, None)
        registry.put_schema(web, avro("id"))
        registry.put_schema(web, FOREIGN)
    capsys.readouterr()
    assert estate.run("import", "--one-commit") == 0
    out = capsys.readouterr().out
    assert f"messages of {web} would be misread" in out
    assert NEXT in out
    assert estate.run("plan") == 100
    assert estate.accept() == 0
    assert estate.run("plan") == 0


def test_a_rebuild_from_git_alone_never_calls_other_numbers_gits(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    assert estate.run("apply", "--auto-approve") == 3
    capsys.readouterr()
    assert estate.run("rebuild", "--auto-approve") == 100
    out = capsys.readouterr().out
    assert "Numbers of persistent://shop/sales/orders: the registry's, which are not Git's" in out
    assert NEXT in out
    assert estate.accept() == 0
    assert estate.run("rebuild", "--auto-approve") == 0


def test_the_stamp_of_somebody_elses_commit_is_not_written(estate: Estate) -> None:
    other = avro("id", other=0)
    estate.put(SchemaInfo(other.type, other.schema, {COMMIT_PROPERTY: "no commit", "by": "hand"}))
    assert estate.accept() == 0
    assert COMMIT_PROPERTY not in numbers(estate)
    assert 'properties: {"by": "hand"}' in numbers(estate)
