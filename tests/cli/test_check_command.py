"""`check` in real repositories, and `waive`: their arguments, their output, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import shop
from command import process, run_json, schemactl
from scratch import Scratch

from schemactl.checks.check_report import CheckReport
from schemactl.cli.waive import select_findings
from schemactl.core.errors import UsageError
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.schema import Release

pytestmark = pytest.mark.slow

BREAKING = (shop.STATUS, shop.WITHOUT_SHIPPED)


@pytest.fixture
def shop_folder(tmp_path: Path) -> Path:
    return shop.make(tmp_path)


@pytest.fixture(scope="module")
def broken_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a shop whose working tree breaks orders. No test changes it."""
    folder = shop.make(tmp_path_factory.mktemp("broken"))
    shop.edit(folder / shop.ORDERS, *BREAKING)
    return folder


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("", 100),
        ("--staged", 0),
        ("--topic */payments", 0),
        ("--topic shop/sales/*", 100),
        ("--namespace shop/web", 0),
        ("--topic nothing*", 64),
    ],
)
def test_only_the_files_and_topics_asked_for_are_judged(broken_shop: Path, options: str, code: int) -> None:
    shop.run(broken_shop, "check", *options.split(), code=code)


def test_it_works_from_a_folder_inside_the_project(broken_shop: Path) -> None:
    done = shop.run(broken_shop / "namespaces" / "web", "check", code=100)
    assert f"\n  --> {shop.ORDERS}:14:20\n" in done.out


def test_staged_is_the_index_and_not_the_working_tree(shop_folder: Path) -> None:
    shop.edit(shop_folder / shop.ORDERS, *BREAKING)
    shop.git(shop_folder, "add", ".")
    shop.run(shop_folder, "check", "--staged", code=100)
    shop.git(shop_folder, "checkout", "HEAD", "--", ".")
    shop.edit(shop_folder / shop.ORDERS, *BREAKING)
    shop.run(shop_folder, "check", "--staged")


def test_warnings_fail_only_when_asked_to(shop_folder: Path) -> None:
    (shop_folder / "namespaces/web/sessions.yaml").unlink()
    shop.run(shop_folder, "check")
    shop.run(shop_folder, "check", "--strict", code=100)


def test_a_rule_can_be_turned_off_and_another_up(shop_folder: Path) -> None:
    sessions = shop_folder / "namespaces/web/sessions.yaml"
    project = shop_folder / "schemactl.yaml"
    declared = project.read_text(encoding="utf-8")
    project.write_text(declared + "severities: {DELETED_TOPIC: error}\n", encoding="utf-8")
    shop.git(shop_folder, "commit", "-q", "-a", "-m", "A topic stays")
    sessions.unlink()
    shop.run(shop_folder, "check", code=100)
    project.write_text(declared + "severities: {DELETED_TOPIC: 'off'}\n", encoding="utf-8")
    shop.git(shop_folder, "commit", "-q", "-m", "A topic may go", "schemactl.yaml")
    done = shop.run(shop_folder, "check", "--strict")
    assert "DELETED_TOPIC" not in done.out


def test_a_breaking_draft_only_warns(shop_folder: Path) -> None:
    topic = shop_folder / "namespaces/sales/orders/orders.yaml"
    topic.write_text(
        topic.read_text(encoding="utf-8").replace("partitions: 4\n", "partitions: 4\nlifecycle: draft\n"),
        encoding="utf-8",
    )
    shop.git(shop_folder, "commit", "-q", "-a", "-m", "Nobody reads orders yet")
    shop.edit(shop_folder / shop.ORDERS, *BREAKING)
    shop.run(shop_folder, "check")


def in_days(days: int) -> str:
    """Return the date `days` after today. Today is not the day of collection if midnight has passed."""
    return str(datetime.now(UTC).date() + timedelta(days=days))


SOON = in_days(30)
SYMBOLS = "MISSING_ENUM_SYMBOLS"
MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "status", "type": {"type": "enum", "name": "S", "symbols": [%s]}}]}'
PROJECT = "version: 1\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"


def make_topic(name: str, more: str = "owner: ada\n") -> dict[str, str]:
    definition = f"{{type: record, name: {name}, fields: [{{name: total, type: Money}}]}}"
    schema = f"{{type: AVRO, definition: {definition}, references: [money.avsc]}}"
    return {f"namespaces/{name}.yaml": f"topic: shop/sales/{name}\n{more}schema: {schema}\n"}


@pytest.fixture
def shared_type_repository(tmp_path: Path) -> Scratch:
    """Three topics share a type, and two of them have an owner; in the working tree a symbol of it is gone."""
    new_repository = Scratch(tmp_path / "r")
    files = {"namespaces/money.avsc": MONEY % '"A", "B"', "schemactl.yaml": PROJECT}
    new_repository.commit({**files, "namespaces/sales.yaml": "namespace: shop/sales\n"})
    new_repository.commit({**make_topic("a"), **make_topic("b"), **make_topic("c", "")})
    new_repository.git("checkout", "-q", "-b", "work", "main")
    new_repository.write({"namespaces/money.avsc": MONEY % '"A"'})
    return new_repository


def report(scratch: Scratch, *, code: int = 100) -> dict[str, Any]:
    check_report: dict[str, Any] = run_json(scratch, "check", code=code)
    return check_report


def run_waive(scratch: Scratch, *words: str, code: int = 0, **options: str) -> str:
    all_options = {"reason": "none had it", "until": SOON, **options}
    arguments = [part for name, value in all_options.items() for part in (f"--{name}", value)]
    done = schemactl(scratch, "waive", *words, *arguments, code=code)
    return done.out + done.err


def list_fingerprints(check_report: Mapping[str, Any]) -> dict[str, str]:
    """Fingerprints by topic."""
    return {finding["topic"].rpartition("/")[2]: finding["fingerprint"] for finding in check_report["findings"]}


def read_waivers(scratch: Scratch) -> str:
    path = scratch.path / "waivers.yaml"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_a_finding_of_one_topic_is_waived_alone(shared_type_repository: Scratch) -> None:
    names = list_fingerprints(report(shared_type_repository))
    assert len({*names.values()}) == 3
    assert "Wrote 1 waiver to waivers.yaml:" in run_waive(shared_type_repository, names["a"])
    after = report(shared_type_repository)
    assert [finding["topic"][-1] for finding in after["findings"] if finding["waiver"]] == ["a"]
    assert [finding["topic"][-1] for finding in after["findings"] if not finding["waiver"]] == ["b", "c"]


def test_a_cause_is_waived_with_an_entry_for_each_topic_and_its_owner(shared_type_repository: Scratch) -> None:
    (cause,) = report(shared_type_repository)["causes"]
    text = schemactl(shared_type_repository, "check", code=100).out
    assert f'= waive    schemactl waive {cause["id"][:12]} --reason "..." --until YYYY-MM-DD --owner NAME\n' in text
    said = run_waive(shared_type_repository, cause["id"][:12], code=64)
    assert "persistent://shop/sales/c has no owner" in said
    assert read_waivers(shared_type_repository) == ""
    assert "Wrote 3 waivers" in run_waive(shared_type_repository, cause["id"][:12], owner="bob")
    assert read_waivers(shared_type_repository).count("owner: bob") == 3
    after = report(shared_type_repository, code=0)
    assert (after["errors"], len(after["findings"]), len(after["waivers"])) == (0, 3, 3)


def test_the_owner_is_the_topics_unless_another_is_given(shared_type_repository: Scratch) -> None:
    names = list_fingerprints(report(shared_type_repository))
    run_waive(shared_type_repository, names["a"])
    run_waive(shared_type_repository, names["b"], owner="bob")
    assert [line for line in read_waivers(shared_type_repository).splitlines() if "owner" in line] == [
        "  owner: ada",
        "  owner: bob",
    ]


@pytest.mark.parametrize("length", [4, 12, 64])
@pytest.mark.parametrize("form", ["{}", "sha256:{}"])
def test_a_unique_beginning_is_enough(shared_type_repository: Scratch, length: int, form: str) -> None:
    digits = list_fingerprints(report(shared_type_repository))["a"].removeprefix("sha256:")
    run_waive(shared_type_repository, form.format(digits[:length].upper()))
    assert digits in read_waivers(shared_type_repository)


def test_what_is_waived_already_is_said_with_its_place(shared_type_repository: Scratch) -> None:
    name = list_fingerprints(report(shared_type_repository))["a"]
    run_waive(shared_type_repository, name)
    before = read_waivers(shared_type_repository)
    assert f"waivers.yaml:3:3: this finding is waived already, until {SOON}" in run_waive(
        shared_type_repository, name, code=1
    )
    assert read_waivers(shared_type_repository) == before
    # HEAD, which is judged now, has neither the break nor the waiver.
    shared_type_repository.git("commit", "-q", "-m", "break", "namespaces/money.avsc")
    assert "the waiver file has an entry" in run_waive(shared_type_repository, name, "--base", "main", code=1)


def test_an_unknown_fingerprint_lists_those_there_are(shared_type_repository: Scratch) -> None:
    (cause,) = report(shared_type_repository)["causes"]
    said = run_waive(shared_type_repository, "0000", code=64)
    assert "0000: no finding of this check has this fingerprint. Its fingerprints:" in said
    assert f"  {cause['id'][:12]}  {SYMBOLS} on persistent://shop/sales/a and 2 more topics" in said


def test_a_beginning_of_several_is_not_taken_for_one_of_them() -> None:
    findings = tuple(
        Finding(
            SYMBOLS, "error", "data", TopicName("shop", "sales", name), None, "", fingerprint=f"sha256:{digits * 8}"
        )
        for name, digits in (("a", "abcdef01"), ("b", "abcdef02"))
    )
    report = CheckReport(Release.R4_0, "main", 2, findings=findings)
    assert select_findings(report, "abcdef01", "") == [findings[0]]
    with pytest.raises(
        UsageError, match="abcd: several findings have a fingerprint with this beginning:\n  abcdef01abcd  MISSING"
    ):
        select_findings(report, "abcd", "abcd")


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (["nonsense"], {}, "`nonsense` is not a fingerprint: expected its first 4 hexadecimal digits or more"),
        (["abc"], {}, "`abc` is not a fingerprint"),
        (["sha256:"], {}, "is not a fingerprint"),
        (["abcd"], {"reason": " "}, "--reason is empty"),
        (["abcd"], {"owner": "\u2028"}, "--owner is empty"),
        (["abcd"], {"until": "tomorrow"}, "--until tomorrow: expected a day from"),
        (["abcd"], {"until": "20270131"}, "--until 20270131: expected a day from"),
        (["abcd"], {"until": "2027-02-30"}, "--until 2027-02-30: expected a day from"),
        (["abcd"], {"until": 0}, "expected a day in the future, at most 366 days ahead"),
        (["abcd"], {"until": 367}, "at most 366 days ahead"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_checked(
    shared_type_repository: Scratch, words: list[str], options: dict[str, str | int], message: str
) -> None:
    all_options = {name: in_days(value) if isinstance(value, int) else value for name, value in options.items()}
    assert message in run_waive(shared_type_repository, *words, code=64, **all_options)


def test_where_nothing_can_be_waived_it_says_so(shared_type_repository: Scratch) -> None:
    shared_type_repository.git("checkout", "-q", "--", ".")
    assert "this check has no finding that can be waived" in run_waive(shared_type_repository, "abcd", code=64)


def test_an_owner_has_a_visible_letter(shared_type_repository: Scratch) -> None:
    fingerprint = list_fingerprints(report(shared_type_repository))["a"]
    said = run_waive(shared_type_repository, fingerprint, owner="\u200b#1", code=64)
    assert "the owner '\\u200b#1' has no visible letter\n  Fix: give --owner" in said


@pytest.mark.parametrize("days", [1, 366])
def test_the_first_and_the_last_day_that_can_be_given(shared_type_repository: Scratch, days: int) -> None:
    run_waive(shared_type_repository, list_fingerprints(report(shared_type_repository))["a"], until=in_days(days))
    assert [waiver["topic"][-1] for waiver in report(shared_type_repository)["waivers"]] == ["a"]


def test_a_file_that_is_no_waiver_file_is_left_alone(shared_type_repository: Scratch) -> None:
    shared_type_repository.write({"waivers.yaml": "- 5\n"})
    assert "waivers.yaml:1:3: expected a mapping" in run_waive(shared_type_repository, "abcd", code=1)
    assert read_waivers(shared_type_repository) == "- 5\n"


def test_no_link_is_followed(shared_type_repository: Scratch, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("[]\n")
    (shared_type_repository.path / "waivers.yaml").symlink_to(outside)
    assert "symbolic link" in run_waive(shared_type_repository, "abcd", code=1)
    assert outside.read_text() == "[]\n"


@pytest.mark.parametrize(
    "reason", ["a\x1b]0;title\x07", "::error::x", "@everyone <img src=x> |", "\u202eevil", "x'\"\\\n: #", "ada\udc80"]
)
def test_a_hostile_reason_is_written_as_it_is_and_shown_as_text(shared_type_repository: Scratch, reason: str) -> None:
    said = run_waive(
        shared_type_repository, list_fingerprints(report(shared_type_repository))["a"], reason=reason, owner=reason
    )
    after = report(shared_type_repository)
    (waiver,) = after["waivers"]
    assert waiver["reason"] == waiver["owner"] == reason.strip().replace("\udc80", "?")
    for text in (
        said,
        *(
            schemactl(shared_type_repository, "check", "--format", name, code=100).out
            for name in ("text", "markdown", "junit", "sarif")
        ),
    ):
        assert not {"\x1b", "\x07", "\u202e"} & {*text}
    markdown = schemactl(shared_type_repository, "check", "--format", "markdown", code=100).out
    assert "<img" not in markdown
    assert "@everyone" not in markdown


def test_a_commit_of_something_else_still_ends_early_and_one_of_waivers_does_not(
    shared_type_repository: Scratch,
) -> None:
    (cause,) = report(shared_type_repository)["causes"]
    run_waive(shared_type_repository, cause["id"], owner="ada")
    shared_type_repository.git("add", "-A")

    def hook() -> str:
        done = process(shared_type_repository, "check", "--staged")
        assert done.code == 0, done
        return done.out + done.err

    assert "1 waived" in hook()
    shared_type_repository.git("commit", "-q", "-m", "break")
    hook()
    shared_type_repository.write({"README.md": "x"})
    shared_type_repository.git("add", "-A")
    assert "no staged file concerns a schema" in hook()
    shared_type_repository.write({"waivers.yaml": None})
    shared_type_repository.git("add", "-A")
    done = process(shared_type_repository, "check", "--staged")
    assert (done.code, SYMBOLS in done.out) == (100, True)


def test_a_cause_that_brokers_reject_is_waived_with_their_rejections(tmp_path: Path) -> None:
    new_repository = Scratch(tmp_path / "r")
    before = '{"type": "record", "name": "Money", "fields": [{"name": "id", "type": "long"}]}'
    new_repository.commit({"schemactl.yaml": PROJECT, "namespaces/sales.yaml": "namespace: shop/sales\n"})
    new_repository.commit({"namespaces/money.avsc": before, **make_topic("a"), **make_topic("b")})
    new_repository.git("checkout", "-q", "-b", "work", "main")
    new_repository.write({"namespaces/money.avsc": before.replace("}]", '}, {"name": "note", "type": "string"}]')})
    (cause,) = report(new_repository)["causes"]
    assert "Wrote 4 waivers" in run_waive(new_repository, cause["id"])
    after = report(new_repository, code=0)
    assert [(cause["rule"], len(cause["topics"]), len(cause["rejected"])) for cause in after["causes"]] == [
        ("READER_FIELD_MISSING_DEFAULT_VALUE", 2, 2)
    ]
    assert after["causes"][0]["waived"]
