"""A check rejects a change with a numbers file that `plan` and `decode` would reject."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Printed, schemactl
from estate import NAMESPACE, ORDERS, Estate
from scratch import record, write_declaration

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.declare.numbers_writer import write_numbers
from schemactl.declare.target_numbers import NumberEntry, TargetNumbers, TopicNumbers
from schemactl.history.early_exit import is_nothing_staged

pytestmark = pytest.mark.slow

NUMBERS = "numbers/local.yaml"
FOREIGN = "numbers/foreign/orders-1.avsc"
FINE = f"{ORDERS}:\n  1: {{foreign: foreign/orders-1.avsc, type: AVRO}}\n  2: {{git: 0}}\n"


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Estate:
    """Approve one topic with one version, and check out a branch."""
    monkeypatch.delenv("CI", raising=False)
    new_estate = Estate(tmp_path / "shop")
    new_estate.scratch.git("checkout", "-q", "-b", "work")
    monkeypatch.chdir(new_estate.scratch.path)
    return new_estate


def write(estate: Estate, files: dict[str, str]) -> None:
    """Write the files, and stage them."""
    for path, text in files.items():
        target = estate.scratch.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        estate.scratch.git("add", path)


def read_problems(estate: Estate) -> str:
    """Return the output of all three kinds of check, which exit with 1."""
    estate.scratch.git("commit", "-q", "-m", "Record numbers")
    [answer] = {check(*arguments, code=1).err for arguments in ([], ["--staged"], ["--base", "main"])}
    return answer


def check(*arguments: str, code: int = 0) -> Printed:
    return schemactl(Path(), "check", *arguments, code=code)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("1: {gti: 0}", "2:7", "unknown key `gti`"),
        ("1: {foreign: foreign/none.avsc, type: AVRO}", "2:16", "there is no file"),
        ("1: {foreign: ../namespaces/orders.avsc, type: AVRO}", "2:16", "is not in the numbers file's folder"),
        ("0: {git: 7}", "2:3", f"version 7 of {ORDERS}, which Git does not have: its versions are 0 to 0"),
        ("1: {foreign: foreign/garbage.avsc, type: AVRO}", "2:3", "numbers/foreign/garbage.avsc cannot be used"),
        ("1: {foreign: foreign/orders-1.avsc, type: NONE}", "2:3", "messages cannot have a version of the type NONE"),
        ("1: {foreign: foreign/orders-1.avsc, type: BYTES}", "2:3", "messages cannot have a version of the type BYTES"),
        ("1: {foreign: foreign/orders-1.avsc, type: AUTO_CONSUME}", "2:3", "of the type AUTO_CONSUME"),
        ("100001: {deleted: true}", "2:3", "expected a version number"),
    ],
)
def test_problems_of_a_numbers_file_are_reported_with_their_location(
    estate: Estate, text: str, place: str, message: str
) -> None:
    write(
        estate,
        {NUMBERS: f"{ORDERS}:\n  {text}\n", FOREIGN: record("id", theirs=0), "numbers/foreign/garbage.avsc": "garbage"},
    )
    output = read_problems(estate)
    assert f"{NUMBERS}:{place}: " in output
    assert message in output
    assert "Fix: " in output


def test_a_topic_that_was_never_declared_is_reported_and_an_earlier_one_is_not(estate: Estate) -> None:
    for path in ("namespaces/orders.yaml", "namespaces/orders.avsc"):
        estate.scratch.git("rm", "-q", path)
    write(estate, {NUMBERS: FINE, FOREIGN: record("id", theirs=0)})
    assert NUMBERS not in check().err
    write(estate, {NUMBERS: f"{FINE}other/sales/orders:\n  0: {{deleted: true}}\n"})
    output = read_problems(estate)
    assert f"{NUMBERS}:4:1: persistent://other/sales/orders is not declared, and never was" in output


def test_a_linked_definition_is_reported(estate: Estate) -> None:
    write(estate, {NUMBERS: FINE})
    link = estate.scratch.path / FOREIGN
    link.parent.mkdir(parents=True)
    link.symlink_to("../../namespaces/orders.avsc")
    estate.scratch.git("add", FOREIGN)
    assert f"{NUMBERS}:2:16: " in read_problems(estate)


def test_problems_of_numbers_and_declarations_are_reported_together(estate: Estate) -> None:
    write(estate, {NUMBERS: f"{ORDERS}:\n  1: {{gti: 0}}\n", "namespaces/sales.yaml": f"{NAMESPACE}nothing: 1\n"})
    output = read_problems(estate)
    assert NUMBERS in output
    assert "namespaces/sales.yaml" in output


def test_a_version_that_the_change_brings_can_be_recorded(estate: Estate) -> None:
    write(
        estate,
        {"namespaces/orders.avsc": record("id", own=0), NUMBERS: f"{ORDERS}:\n  0: {{git: 1}}\n  1: {{git: 0}}\n"},
    )
    check()
    check("--staged")
    estate.scratch.git("commit", "-q", "-m", "Both")
    check("--base", "main")


def test_a_topic_that_the_change_brings_can_be_recorded(estate: Estate) -> None:
    refunds = write_declaration("shop/sales/refunds", "refunds.avsc")
    write(
        estate,
        {
            "namespaces/refunds.yaml": refunds,
            "namespaces/refunds.avsc": record("id", name="Refund"),
            NUMBERS: "shop/sales/refunds:\n  0: {deleted: true}\n  1: {git: 0}\n",
        },
    )
    check()


@pytest.mark.parametrize("change", [NUMBERS, FOREIGN])
def test_a_numbers_file_is_checked_completely(estate: Estate, change: str) -> None:
    write(estate, {NUMBERS: FINE, FOREIGN: record("id", theirs=0)})
    estate.scratch.git("commit", "-q", "-m", "Record numbers")
    check("--staged")
    write(estate, {change: "garbage"})
    assert not is_nothing_staged()
    check("--staged", code=1)


def test_the_early_exit_sees_the_first_numbers_file(estate: Estate) -> None:
    check("--staged")
    assert is_nothing_staged()
    write(estate, {NUMBERS: "[]"})
    assert not is_nothing_staged()


def test_a_check_does_not_take_back_a_version_that_numbers_name(estate: Estate) -> None:
    write(
        estate,
        {"namespaces/orders.avsc": record("id", own=0), NUMBERS: f"{ORDERS}:\n  0: {{git: 1}}\n  1: {{git: 0}}\n"},
    )
    check("--staged")
    write(estate, {"namespaces/orders.avsc": record("id")})
    check("--staged", code=1)


@pytest.mark.parametrize(
    "registered",
    [SchemaInfo(SchemaType.AVRO, b"garbage"), SchemaInfo(SchemaType.BYTES), SchemaInfo(SchemaType.NONE, b"x")],
)
def test_the_numbers_file_of_accept_passes_for_every_registered_schema(estate: Estate, registered: SchemaInfo) -> None:
    entries = {1: NumberEntry(1, foreign=registered, reason="it is so")}
    numbers = TargetNumbers("local", NUMBERS, {ORDERS: TopicNumbers(entries)})
    written = write_numbers(numbers, estate.scratch.path)
    check()
    # The same definition under another file name was not accepted from a registry.
    own = estate.scratch.path / "numbers/foreign/own.avsc"
    own.write_bytes(registered.schema)
    name = written[0].removeprefix("numbers/")
    path = estate.scratch.path / NUMBERS
    path.write_text(path.read_text().replace(name, "foreign/own.avsc"))
    check(code=1)
