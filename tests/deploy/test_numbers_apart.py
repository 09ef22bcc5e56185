"""A registry whose version numbers are not Git's: commands report them, `drift --accept` records them, and then they count."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from estate import ORDERS, Estate, make_order_info
from scenarios import Scenario, read_scenarios, run_scenario

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import key_value
from schemactl.registry.embedded import make_entry
from schemactl.registry.storage import Database, SqliteStorage

pytestmark = pytest.mark.slow

FOREIGN = make_order_info("id", foreign=0)


@pytest.mark.parametrize("scenario", read_scenarios(__file__))
def test_numbers_that_differ(scenario: Scenario, tmp_path: Path) -> None:
    run_scenario(scenario, tmp_path)


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Upload a foreign version 1, and approve another version 1 in Git without applying it."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.run("apply", "--auto-approve")
    assert estate.put(FOREIGN) == [1]
    estate.commit_orders("id", own=0)
    return estate


def read_numbers(estate: Estate) -> str:
    """Return the lines of the numbers file without comments."""
    lines = (estate.scratch.path / "numbers/local.yaml").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


def test_an_apply_reports_the_numbers_before_it_changes_anything_and_afterwards(estate: Estate) -> None:
    out = estate.run("apply", "--auto-approve", code=3).out
    assert out.count("v1 is not known to Git, v2 is Git's v1") == 2
    out = estate.run("apply", "--auto-approve", code=100).out
    assert "No changes, but messages of 1 topic would be misread." in out
    assert "nothing is broken" not in out


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


def test_a_link_is_not_written_through(estate: Estate, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    estate.scratch.flush()
    (estate.scratch.path / "numbers").symlink_to(outside)
    estate.run("drift", "--accept", "--reason", "x", code=1)
    assert not list(outside.iterdir())
