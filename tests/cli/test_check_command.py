"""`check` in real repositories, and `waive`: which files and findings they take, what they write, and what they fail for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import shop
from command import process, schemactl
from scratch import Scratch

from schemactl.checks.check_report import CheckReport
from schemactl.cli.check import chosen
from schemactl.core.errors import UsageError
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.schema import Release

pytestmark = pytest.mark.slow

BREAKING = (shop.STATUS, shop.WITHOUT_SHIPPED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shop.make(tmp_path)


def test_staged_is_the_index_and_not_the_working_tree(folder: Path) -> None:
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check", code=100)
    shop.run(folder, "check", "--staged")
    shop.git(folder, "add", ".")
    shop.run(folder, "check", "--staged", code=100)
    shop.git(folder, "checkout", "HEAD", "--", ".")
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check", "--staged")


def test_warnings_fail_only_when_asked_to(folder: Path) -> None:
    (folder / "namespaces/web/sessions.yaml").unlink()
    shop.run(folder, "check")
    shop.run(folder, "check", "--strict", code=100)


def test_a_rule_can_be_turned_off_and_another_up(folder: Path) -> None:
    sessions = folder / "namespaces/web/sessions.yaml"
    project = folder / "schemactl.yaml"
    declared = project.read_text(encoding="utf-8")
    project.write_text(declared + "severities: {DELETED_TOPIC: error}\n", encoding="utf-8")
    shop.git(folder, "commit", "-q", "-a", "-m", "A topic stays")
    sessions.unlink()
    shop.run(folder, "check", code=100)
    project.write_text(declared + "severities: {DELETED_TOPIC: 'off'}\n", encoding="utf-8")
    shop.git(folder, "commit", "-q", "-m", "A topic may go", "schemactl.yaml")
    done = shop.run(folder, "check", "--strict")
    assert "DELETED_TOPIC" not in done.out


def test_only_the_topics_asked_for_are_judged(folder: Path) -> None:
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check", "--topic", "*/payments")
    shop.run(folder, "check", "--topic", "shop/sales/*", code=100)
    shop.run(folder, "check", "--namespace", "shop/web")
    shop.run(folder, "check", "--topic", "nothing*", code=64)


def test_it_works_from_a_folder_inside_the_project(folder: Path) -> None:
    shop.edit(folder / shop.ORDERS, *BREAKING)
    done = shop.run(folder / "namespaces" / "web", "check", code=100)
    assert f"\n  --> {shop.ORDERS}:14:20\n" in done.out


def test_a_breaking_draft_only_warns(folder: Path) -> None:
    topic = folder / "namespaces/sales/orders/orders.yaml"
    topic.write_text(
        topic.read_text(encoding="utf-8").replace("partitions: 4\n", "partitions: 4\nlifecycle: draft\n"),
        encoding="utf-8",
    )
    shop.git(folder, "commit", "-q", "-a", "-m", "Nobody reads orders yet")
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check")


def in_days(days: int) -> str:
    """The day that is so many after today: not that on which the tests were collected, which midnight may have ended."""
    return str(datetime.now(UTC).date() + timedelta(days=days))


SOON = in_days(30)
SYMBOLS = "MISSING_ENUM_SYMBOLS"
MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "status", "type": {"type": "enum", "name": "S", "symbols": [%s]}}]}'
PROJECT = "version: 1\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"


def topic(name: str, more: str = "owner: ada\n") -> dict[str, str]:
    definition = f"{{type: record, name: {name}, fields: [{{name: total, type: Money}}]}}"
    schema = f"{{type: AVRO, definition: {definition}, references: [money.avsc]}}"
    return {f"namespaces/{name}.yaml": f"topic: shop/sales/{name}\n{more}schema: {schema}\n"}


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """Three topics share a type, and two of them have an owner; in the working tree a symbol of it is gone."""
    made = Scratch(tmp_path / "r")
    files = {"namespaces/money.avsc": MONEY % '"A", "B"', "schemactl.yaml": PROJECT}
    made.commit({**files, "namespaces/sales.yaml": "namespace: shop/sales\n"})
    made.commit({**topic("a"), **topic("b"), **topic("c", "")})
    made.flush()
    made.git("checkout", "-q", "-b", "work", "main")
    made.write({"namespaces/money.avsc": MONEY % '"A"'})
    return made


def report(scratch: Scratch, *, code: int = 100) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schemactl(scratch.path, "check", "--format", "json", code=code).out)
    return found


def waive(scratch: Scratch, *words: str, code: int = 0, **options: str) -> str:
    given = {"reason": "none had it", "until": SOON, **options}
    arguments = [part for name, value in given.items() for part in (f"--{name}", value)]
    done = schemactl(scratch.path, "waive", *words, *arguments, code=code)
    return done.out + done.err


def fingerprints(found: Mapping[str, Any]) -> dict[str, str]:
    """Fingerprints by topic."""
    return {finding["topic"].rpartition("/")[2]: finding["fingerprint"] for finding in found["findings"]}


def written(scratch: Scratch) -> str:
    path = scratch.path / "waivers.yaml"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_a_finding_of_one_topic_is_waived_alone(scratch: Scratch) -> None:
    names = fingerprints(report(scratch))
    assert len({*names.values()}) == 3
    assert "Wrote 1 waiver to waivers.yaml:" in waive(scratch, names["a"])
    after = report(scratch)
    assert [finding["topic"][-1] for finding in after["findings"] if finding["waiver"]] == ["a"]
    assert [finding["topic"][-1] for finding in after["findings"] if not finding["waiver"]] == ["b", "c"]


def test_a_cause_is_waived_with_an_entry_for_each_topic_and_its_owner(scratch: Scratch) -> None:
    (cause,) = report(scratch)["causes"]
    text = schemactl(scratch.path, "check", code=100).out
    assert f'= waive    schemactl waive {cause["id"][:12]} --reason "..." --until YYYY-MM-DD --owner NAME\n' in text
    said = waive(scratch, cause["id"][:12], code=64)
    assert "persistent://shop/sales/c declares no owner" in said
    assert written(scratch) == ""
    assert "Wrote 3 waivers" in waive(scratch, cause["id"][:12], owner="bob")
    assert written(scratch).count("owner: bob") == 3
    after = report(scratch, code=0)
    assert (after["errors"], len(after["findings"]), len(after["waivers"])) == (0, 3, 3)


def test_the_owner_is_the_topics_unless_another_is_given(scratch: Scratch) -> None:
    names = fingerprints(report(scratch))
    waive(scratch, names["a"])
    waive(scratch, names["b"], owner="bob")
    assert [line for line in written(scratch).splitlines() if "owner" in line] == ["  owner: ada", "  owner: bob"]


@pytest.mark.parametrize("length", [4, 12, 64])
@pytest.mark.parametrize("form", ["{}", "sha256:{}"])
def test_a_unique_beginning_is_enough(scratch: Scratch, length: int, form: str) -> None:
    digits = fingerprints(report(scratch))["a"].removeprefix("sha256:")
    waive(scratch, form.format(digits[:length].upper()))
    assert digits in written(scratch)


def test_what_is_waived_already_is_said_with_its_place(scratch: Scratch) -> None:
    name = fingerprints(report(scratch))["a"]
    waive(scratch, name)
    before = written(scratch)
    assert f"waivers.yaml:3:3: this is waived already, until {SOON}" in waive(scratch, name, code=1)
    assert written(scratch) == before
    # HEAD, which is judged now, has neither the break nor the waiver.
    scratch.git("commit", "-q", "-m", "break", "namespaces/money.avsc")
    assert "the waiver file has an entry" in waive(scratch, name, "--base", "main", code=1)


def test_an_unknown_fingerprint_lists_those_there_are(scratch: Scratch) -> None:
    (cause,) = report(scratch)["causes"]
    said = waive(scratch, "0000", code=64)
    assert "0000: no finding of this check has that fingerprint. It has:" in said
    assert f"  {cause['id'][:12]}  {SYMBOLS} on persistent://shop/sales/a and 2 more topics" in said


def test_a_beginning_of_several_is_not_taken_for_one_of_them() -> None:
    findings = tuple(
        Finding(
            SYMBOLS, "error", "data", TopicName("shop", "sales", name), None, "", fingerprint=f"sha256:{digits * 8}"
        )
        for name, digits in (("a", "abcdef01"), ("b", "abcdef02"))
    )
    report = CheckReport(Release.R4_0, "main", 2, findings=findings)
    assert chosen(report, "abcdef01", "") == [findings[0]]
    with pytest.raises(UsageError, match="abcd: several findings begin so:\n  abcdef01abcd  MISSING"):
        chosen(report, "abcd", "abcd")


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
    scratch: Scratch, words: list[str], options: dict[str, str | int], message: str
) -> None:
    given = {name: in_days(value) if isinstance(value, int) else value for name, value in options.items()}
    assert message in waive(scratch, *words, code=64, **given)


@pytest.mark.parametrize("days", [1, 366])
def test_the_first_and_the_last_day_that_can_be_given(scratch: Scratch, days: int) -> None:
    waive(scratch, fingerprints(report(scratch))["a"], until=in_days(days))
    assert [waiver["topic"][-1] for waiver in report(scratch)["waivers"]] == ["a"]


def test_where_nothing_can_be_waived_it_says_so(scratch: Scratch) -> None:
    scratch.git("checkout", "-q", "--", ".")
    assert "this check has no finding that can be waived" in waive(scratch, "abcd", code=64)


def test_a_file_that_is_no_waiver_file_is_left_alone(scratch: Scratch) -> None:
    scratch.write({"waivers.yaml": "- 5\n"})
    assert "waivers.yaml:1:3: expected a mapping" in waive(scratch, "abcd", code=1)
    assert written(scratch) == "- 5\n"


def test_no_link_is_followed(scratch: Scratch, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("[]\n")
    (scratch.path / "waivers.yaml").symlink_to(outside)
    assert "symbolic link" in waive(scratch, "abcd", code=1)
    assert outside.read_text() == "[]\n"


@pytest.mark.parametrize(
    "reason", ["a\x1b]0;title\x07", "::error::x", "@everyone <img src=x> |", "\u202eevil", "x'\"\\\n: #", "ada\udc80"]
)
def test_a_hostile_reason_is_written_as_it_is_and_shown_as_text(scratch: Scratch, reason: str) -> None:
    said = waive(scratch, fingerprints(report(scratch))["a"], reason=reason, owner=reason)
    after = report(scratch)
    (waiver,) = after["waivers"]
    assert waiver["reason"] == waiver["owner"] == reason.strip().replace("\udc80", "?")
    for text in (
        said,
        *(
            schemactl(scratch.path, "check", "--format", name, code=100).out
            for name in ("text", "markdown", "junit", "sarif")
        ),
    ):
        assert not {"\x1b", "\x07", "\u202e"} & {*text}
    markdown = schemactl(scratch.path, "check", "--format", "markdown", code=100).out
    assert "<img" not in markdown
    assert "@everyone" not in markdown


def test_a_commit_of_something_else_still_ends_early_and_one_of_waivers_does_not(scratch: Scratch) -> None:
    (cause,) = report(scratch)["causes"]
    waive(scratch, cause["id"], owner="ada")
    scratch.git("add", "-A")

    def hook() -> str:
        done = process(scratch.path, "check", "--staged")
        assert done.code == 0, done
        return done.out + done.err

    assert "1 waived" in hook()
    scratch.git("commit", "-q", "-m", "break")
    hook()
    scratch.write({"README.md": "x"})
    scratch.git("add", "-A")
    assert "nothing that concerns a schema is staged" in hook()
    scratch.write({"waivers.yaml": None})
    scratch.git("add", "-A")
    done = process(scratch.path, "check", "--staged")
    assert (done.code, SYMBOLS in done.out) == (100, True)


def test_a_cause_that_brokers_reject_is_waived_with_their_rejections(tmp_path: Path) -> None:
    made = Scratch(tmp_path / "r")
    before = '{"type": "record", "name": "Money", "fields": [{"name": "id", "type": "long"}]}'
    made.commit({"schemactl.yaml": PROJECT, "namespaces/sales.yaml": "namespace: shop/sales\n"})
    made.commit({"namespaces/money.avsc": before, **topic("a"), **topic("b")})
    made.flush()
    made.git("checkout", "-q", "-b", "work", "main")
    made.write({"namespaces/money.avsc": before.replace("}]", '}, {"name": "note", "type": "string"}]')})
    (cause,) = report(made)["causes"]
    assert "Wrote 4 waivers" in waive(made, cause["id"])
    after = report(made, code=0)
    assert [(cause["rule"], len(cause["topics"]), len(cause["rejected"])) for cause in after["causes"]] == [
        ("READER_FIELD_MISSING_DEFAULT_VALUE", 2, 2)
    ]
    assert after["causes"][0]["waived"]


def test_an_owner_has_a_visible_letter(scratch: Scratch) -> None:
    said = waive(scratch, fingerprints(report(scratch))["a"], owner="\u200b#1", code=64)
    assert "the owner '\\u200b#1' has no visible letter\n  Fix: give --owner" in said
