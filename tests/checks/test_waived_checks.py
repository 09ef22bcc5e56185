"""Waivers work the same in the working tree, the hook, a pull request and a merge queue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from command import run_json, schemactl
from scratch import Scratch

from schemactl.checks.checked_files import CheckRequest
from schemactl.checks.project_check import check_project
from schemactl.core.deadline import Deadline

pytestmark = pytest.mark.slow

TODAY = datetime.now(UTC).date()
SOON = str(TODAY + timedelta(days=30))
PROJECT = "version: 1\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"
READER = "READER_FIELD_MISSING_DEFAULT_VALUE"
BROKER = "BROKER_INCOMPATIBLE"
SYMBOLS = "MISSING_ENUM_SYMBOLS"


def make_topic(name: str, fields: str, more: str = "owner: ada\n") -> dict[str, str]:
    definition = f"{{type: record, name: Order, fields: [{fields}]}}"
    text = f"topic: shop/sales/{name}\n{more}schema: {{type: AVRO, definition: {definition}}}\n"
    return {f"namespaces/{name}.yaml": text}


def make_status(*symbols: str) -> str:
    return f"{{name: status, type: {{type: enum, name: Status, symbols: [{', '.join(symbols)}]}}}}"


ALIASED = "{name: status, type: {type: enum, name: Status, symbols: [PAID], aliases: [State]}}"
NOTE = "{name: id, type: long}, {name: note, type: string}"
APPROVED = {
    "schemactl.yaml": PROJECT,
    "namespaces/sales.yaml": "namespace: shop/sales\n",
    **make_topic("orders", make_status("PAID", "OPEN")),
    **make_topic("notes", "{name: id, type: long}"),
}
BREAK = make_topic("orders", make_status("PAID"))
OTHER_BREAK = make_topic("orders", make_status("OPEN"))
REJECTED = make_topic("notes", NOTE)
FINE = make_topic("fine", "{name: id, type: long}")

MODES: Mapping[str, list[str]] = {
    "working tree": [],
    "hook": ["--staged"],
    "pull request": ["--base", "main"],
    "merge queue": ["--base", "main"],
}


class Work(Scratch):
    """A change on a branch of a repository whose topics are approved on main."""

    mode: str
    commits = 0

    def change(self, files: Mapping[str, str | None]) -> None:
        """Write the files to the place that the mode checks."""
        self.write(files)
        if self.mode == "working tree":
            return
        self.git("add", "-A")
        if self.mode == "hook":
            return
        if self.mode == "merge queue" and self.commits:
            # The checkout keeps the staged files.
            self.git("stash", "-q")
            self.git("checkout", "-q", "work")
            self.git("stash", "pop", "-q", "--index")
        self.git("commit", "-q", "-m", "work", *(["--amend"] if self.commits else []))
        self.commits += 1
        if self.mode == "merge queue":
            self.git("checkout", "-q", "--detach", "main")
            self.git("merge", "-q", "--no-ff", "-m", "queue", "work")

    def check(self, *, code: int = 0) -> dict[str, Any]:
        report: dict[str, Any] = run_json(self, "check", *MODES[self.mode], code=code)
        return report

    def waive_finding(self, fingerprint: str, *more: str, code: int = 0) -> str:
        options = ("--reason", "none had it", "--until", SOON, *MODES[self.mode], *more)
        printed = schemactl(self, "waive", fingerprint, *options, code=code)
        return printed.out + printed.err

    def waive_break(self) -> None:
        """Change a definition so that readers break, and waive that in the same change."""
        self.change(BREAK)
        self.waive_finding(name_of(self.check(code=100), SYMBOLS))
        self.change(self.read_waivers())

    def read_waivers(self) -> dict[str, str]:
        """Return the waiver file of the working tree."""
        return {"waivers.yaml": (self.path / "waivers.yaml").read_text(encoding="utf-8")}


EVERYWHERE = pytest.mark.parametrize("waiver_work", MODES, indirect=True)
"""Runs a test in every mode, because each mode reads the waivers from another place."""


@pytest.fixture
def waiver_work(request: pytest.FixtureRequest, tmp_path: Path) -> Work:
    work = Work(tmp_path / "r")
    work.mode = getattr(request, "param", "pull request")
    work.commit(APPROVED)
    work.commit({"README.md": "main"})
    work.flush()
    work.configure_author()
    work.git("checkout", "-q", "-b", "work", "main~1")
    return work


def list_reported_rules(report: dict[str, Any], *, waived: bool = False) -> list[str]:
    return [finding["rule"] for finding in report["findings"] if bool(finding["waiver"]) is waived]


def name_of(report: dict[str, Any], rule: str) -> str:
    (fingerprint,) = {finding["fingerprint"] for finding in report["findings"] if finding["rule"] == rule}
    return str(fingerprint)


@EVERYWHERE
def test_a_waived_break_passes_and_is_listed_first(waiver_work: Work) -> None:
    waiver_work.change({**BREAK, "namespaces/notes.yaml": None})
    before = waiver_work.check(code=100)
    assert list_reported_rules(before) == ["DELETED_TOPIC", SYMBOLS]
    assert "shop/sales/orders, until" in waiver_work.waive_finding(name_of(before, SYMBOLS)[:12])
    waiver_work.change(waiver_work.read_waivers())
    report = waiver_work.check()
    assert [finding["rule"] for finding in report["findings"]] == [SYMBOLS, "DELETED_TOPIC"]
    assert (report["errors"], report["warnings"]) == (0, 1)
    (waiver,) = report["waivers"]
    assert waiver == report["findings"][0]["waiver"]
    assert (waiver["reason"], waiver["owner"], waiver["until"]) == ("none had it", "ada", SOON)
    text = schemactl(waiver_work, "check", *MODES[waiver_work.mode]).out
    first, block, *_ = text.split("\n\n")
    assert first.startswith("! 1 schema breaks readers, waived: orders v1.")
    assert block.startswith(f"waived[{SYMBOLS}]: ")
    assert f"= waived   Waived by ada until {SOON}: none had it" in block
    assert "all fine" not in text
    assert text.endswith("(1 waived, 1 warning).\n")
    schemactl(waiver_work, "check", *MODES[waiver_work.mode], "--strict", "--topic", "orders")


class WaivedCase(NamedTuple):
    """A change of which one rule is waived, and the rules of the next check, with `more` files in the change.

    With `is_alone`, the waiver of the broker's rejection is left out.
    """

    change: dict[str, str]
    rule: str
    reported: list[str]
    waived: list[str]
    more: Mapping[str, str] = MappingProxyType({})
    is_alone: bool = False


WAIVED_CASES = {
    "the broker's rejection is waived with the finding about data": WaivedCase(REJECTED, READER, [], [READER, BROKER]),
    "a waiver of data alone leaves the broker's rejection": WaivedCase(
        REJECTED, READER, [BROKER], [READER], is_alone=True
    ),
    "the next edit takes another waiver": WaivedCase(BREAK, SYMBOLS, ["WAIVER_UNUSED", SYMBOLS], [], more=OTHER_BREAK),
    "an alias that comes with the change takes another waiver": WaivedCase(
        BREAK, SYMBOLS, ["WAIVER_UNUSED", SYMBOLS], [], more=make_topic("orders", ALIASED)
    ),
    "a second break next to a waived one is an error": WaivedCase(
        {**BREAK, **REJECTED}, SYMBOLS, [READER, BROKER], [SYMBOLS]
    ),
}


@pytest.mark.parametrize("case", WAIVED_CASES.values(), ids=WAIVED_CASES)
def test_a_waiver_is_for_one_finding_of_one_change(waiver_work: Work, case: WaivedCase) -> None:
    waiver_work.change(case.change)
    before = waiver_work.check(code=100)
    is_rejected = case.rule == READER
    assert f"Wrote {1 + is_rejected} waiver" in waiver_work.waive_finding(name_of(before, case.rule))
    text = waiver_work.read_waivers()["waivers.yaml"]
    waiver_work.change({**case.more, "waivers.yaml": text.partition(f"- rule: {BROKER}")[0] if case.is_alone else text})
    report = waiver_work.check(code=100 if case.reported else 0)
    assert (list_reported_rules(report), list_reported_rules(report, waived=True)) == (case.reported, case.waived)
    if "WAIVER_UNUSED" in case.reported:
        assert name_of(report, SYMBOLS) in report["findings"][0]["message"]


@EVERYWHERE
def test_waivers_count_in_the_change_that_moves_them_and_the_move_is_a_warning(waiver_work: Work) -> None:
    waiver_work.change(BREAK)
    waiver_work.waive_finding(name_of(waiver_work.check(code=100), SYMBOLS))
    elsewhere = {
        "schemactl.yaml": f"{PROJECT}waivers: docs/w.yaml\n",
        "docs/w.yaml": waiver_work.read_waivers()["waivers.yaml"],
    }
    waiver_work.change({**elsewhere, "waivers.yaml": None})
    report = waiver_work.check()
    assert (list_reported_rules(report), list_reported_rules(report, waived=True)) == (["GATE_CHANGED"], [SYMBOLS])
    [warning] = [finding for finding in report["findings"] if finding["rule"] == "GATE_CHANGED"]
    assert "`waivers` is docs/w.yaml (was not set)" in warning["message"]


@EVERYWHERE
def test_a_waiver_that_is_taken_away_with_the_break_still_there_fails_again(waiver_work: Work) -> None:
    waiver_work.waive_break()
    waiver_work.check()
    waiver_work.change({"waivers.yaml": None})
    assert list_reported_rules(waiver_work.check(code=100)) == [SYMBOLS]


@EVERYWHERE
def test_a_waiver_file_with_problems_decides_nothing(waiver_work: Work) -> None:
    waiver_work.change({**BREAK, "waivers.yaml": "- {rule: '*'}\n"})
    report = waiver_work.check(code=1)
    assert not report["decided"]
    assert {finding["file"] for finding in report["findings"]} == {"waivers.yaml"}


def test_a_waiver_counts_to_the_end_of_its_last_day(waiver_work: Work) -> None:
    waiver_work.waive_break()
    staged, base = waiver_work.mode == "hook", "main" if "--base" in MODES[waiver_work.mode] else None

    def list_rules(today: date) -> tuple[list[str], list[str]]:
        request = CheckRequest(str(waiver_work.path), staged=staged, approved_ref=base, today=today)
        report = check_project(request, Deadline(60, "checking"))
        return [finding.rule for finding in report.findings], [finding.rule for finding in report.waived]

    last = date.fromisoformat(SOON)
    assert list_rules(last) == ([], [SYMBOLS])
    assert list_rules(last + timedelta(days=1)) == (["WAIVER_EXPIRED", SYMBOLS], [])


@EVERYWHERE
def test_what_was_approved_under_a_waiver_needs_it_no_more(waiver_work: Work) -> None:
    waiver_work.waive_break()
    if waiver_work.mode in ("working tree", "hook"):
        waiver_work.git("add", "-A")
        waiver_work.git("commit", "-q", "-m", "approved")
    waiver_work.git("branch", "-f", "main", "HEAD")
    waiver_work.git("checkout", "-q", "-B", "work", "main")
    waiver_work.commits = 0
    for files in ({"README.md": "next"}, {"waivers.yaml": None}):
        waiver_work.change(files)
        report = waiver_work.check()
        assert (report["findings"], report["topics"]) == ([], [])


def test_nothing_says_fine_about_a_change_whose_tables_or_data_are_waived(waiver_work: Work) -> None:
    waiver_work.change({**REJECTED, **FINE})
    waiver_work.waive_finding(name_of(waiver_work.check(code=100), READER))
    waiver_work.change(waiver_work.read_waivers())
    for name in ("text", "markdown", "github"):
        assert "all fine" not in schemactl(waiver_work, "check", *MODES[waiver_work.mode], "--format", name).out


def test_a_waiver_in_a_later_commit_than_its_break_is_a_finding_where_commits_are_approved_one_by_one(
    tmp_path: Path,
) -> None:
    work = Work(tmp_path / "r")
    work.mode = "pull request"
    work.commit(APPROVED)
    work.configure_author()
    work.git("checkout", "-q", "-b", "work")
    work.change(BREAK)
    work.waive_finding(name_of(work.check(code=100), SYMBOLS))
    work.commits = 0
    work.change(work.read_waivers())
    report = work.check()
    assert (list_reported_rules(report), list_reported_rules(report, waived=True)) == (["STEP_REFUSED"], [SYMBOLS])
    assert (
        "Its waiver is in a later commit, but only the waivers in a version's own commit apply to it."
        in report["findings"][1]["message"]
    )
    work.git("reset", "-q", "--soft", "main")
    work.commits = 0
    work.change({})
    assert list_reported_rules(work.check()) == []


@pytest.fixture
def waived_branch(tmp_path: Path) -> Work:
    """Make a branch whose first commit has a breaking change and its waiver."""
    work = Work(tmp_path / "r")
    work.mode = "hook"
    work.commit(APPROVED)
    work.configure_author()
    work.git("checkout", "-q", "-b", "work")
    work.waive_break()
    assert list_reported_rules(work.check(), waived=True) == [SYMBOLS]
    work.git("commit", "-q", "-m", "break")
    return work


@pytest.mark.parametrize(
    ("change", "reported"),
    [(FINE, []), ({"waivers.yaml": None}, [SYMBOLS])],
    ids=["another topic", "the waiver is removed"],
)
def test_the_hook_reports_an_earlier_break_only_without_its_waiver(
    waived_branch: Work, change: dict[str, str | None], reported: list[str]
) -> None:
    waived_branch.change(change)
    report = waived_branch.check(code=100 if reported else 0)
    assert (list_reported_rules(report), list_reported_rules(report, waived=True), report["notes"]) == (
        reported,
        [],
        [],
    )


def test_a_commit_that_brings_the_waiver_of_an_earlier_one_lists_it(waived_branch: Work) -> None:
    waivers = waived_branch.read_waivers()
    waived_branch.write({"waivers.yaml": None})
    waived_branch.git("commit", "-q", "-a", "--amend", "-m", "without waiver")
    waived_branch.change(waivers)
    assert (list_reported_rules(waived_branch.check()), list_reported_rules(waived_branch.check(), waived=True)) == (
        [],
        [SYMBOLS],
    )


def test_the_hook_checks_only_the_waivers_of_the_commit(waived_branch: Work) -> None:
    unused = waived_branch.read_waivers()["waivers.yaml"].replace("orders", "notes")
    waived_branch.change(
        {"waivers.yaml": waived_branch.read_waivers()["waivers.yaml"] + unused[unused.index("- rule") :]}
    )
    assert list_reported_rules(waived_branch.check()) == ["WAIVER_UNUSED"]
    waived_branch.git("commit", "-q", "-m", "unused")
    waived_branch.change(FINE)
    assert list_reported_rules(waived_branch.check()) == []


def test_the_waiver_of_a_warning_expires_as_a_warning(tmp_path: Path) -> None:
    work = Work(tmp_path / "r")
    work.mode = "working tree"
    approved = {**APPROVED, "schemactl.yaml": f"{PROJECT}severities: {{{SYMBOLS}: warning}}\n"}
    work.commit(approved)
    work.git("checkout", "-q", "-b", "work")
    work.change(BREAK)
    work.waive_finding(name_of(work.check(), SYMBOLS))
    request = CheckRequest(str(work.path), today=date.fromisoformat(SOON) + timedelta(days=1))
    report = check_project(request, Deadline(60, "checking"))
    assert {finding.rule: finding.severity for finding in report.findings} == {
        "WAIVER_EXPIRED": "warning",
        SYMBOLS: "warning",
    }


@pytest.mark.parametrize(
    ("gone", "rule"),
    [
        ({"namespaces/orders.yaml": None}, "DELETED_TOPIC"),
        ({"namespaces/orders.yaml": "topic: shop/sales/orders\n"}, "SCHEMA_REMOVED"),
    ],
    ids=lambda parameter: parameter if isinstance(parameter, str) else "",
)
def test_a_topic_may_go_with_a_waiver(waiver_work: Work, gone: dict[str, str | None], rule: str) -> None:
    waiver_work.change(gone)
    (finding,) = (finding for finding in waiver_work.check()["findings"] if finding["rule"] == rule)
    waiver_work.waive_finding(finding["fingerprint"], "--owner", "sales")
    waiver_work.change(waiver_work.read_waivers())
    report = waiver_work.check()
    assert (list_reported_rules(report), list_reported_rules(report, waived=True)) == ([], [rule])
    # The waiver covers only this removal of the topic.
    waiver_work.change({**APPROVED, **BREAK, "namespaces/sales.yaml": APPROVED["namespaces/sales.yaml"]})
    assert list_reported_rules(waiver_work.check(code=100), waived=True) == []


def waiver_text(fingerprint: str, *, owner: str = "ada", days: int = 30) -> dict[str, str | None]:
    """Return a waiver file with one entry that ends a number of days after today."""
    until = TODAY + timedelta(days=days)
    names = f'rule: {SYMBOLS}, topic: shop/sales/orders, fingerprint: "{fingerprint}"'
    return {"waivers.yaml": f'- {{{names}, reason: meant, owner: "{owner}", until: {until}}}\n'}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"days": 367}, "which is more than 366 days ahead\n  Fix: write `until: "),
        ({"days": 100_000}, "which is more than 366 days ahead"),
        ({"owner": r"\u200b"}, r"the owner '\u200b' has no visible letter"),
        ({"owner": "..."}, "the owner '...' has no visible letter"),
        ({"owner": r"\u3164"}, r"the owner '\u3164' has no visible letter"),
    ],
    ids=str,
)
def test_a_new_waiver_needs_an_end_and_an_owner(waiver_work: Work, values: dict[str, Any], message: str) -> None:
    waiver_work.change(BREAK)
    fingerprint = name_of(waiver_work.check(code=100), SYMBOLS)
    waiver_work.change(waiver_text(fingerprint, **values))
    error = schemactl(waiver_work, "check", *MODES[waiver_work.mode], code=1).err
    assert error.startswith("waivers.yaml:1:3: ")
    assert message in error
    waiver_work.change(waiver_text(fingerprint, days=366))
    waiver_work.check()


def test_an_approved_waiver_stays_and_may_not_be_prolonged_without_end(waiver_work: Work) -> None:
    approved = waiver_text("sha256:" + "0f" * 32, owner="...", days=400)
    waiver_work.git("checkout", "-q", "main")
    waiver_work.write(approved)
    waiver_work.git("add", "-A")
    waiver_work.git("commit", "-q", "-m", "waiver")
    waiver_work.git("checkout", "-q", "-B", "work", "main")
    waiver_work.change({"README.md": "work"})
    waiver_work.check()
    waiver_work.change(waiver_text("sha256:" + "0f" * 32, owner="...", days=401))
    assert "more than 366 days ahead" in schemactl(waiver_work, "check", "--base", "main", code=1).err


def test_an_approved_waiver_counts_under_its_former_fingerprint(waiver_work: Work) -> None:
    waiver_work.change(BREAK)
    former = name_of(waiver_work.check(code=100), SYMBOLS)
    waiver_work.change({**make_topic("orders", ALIASED), **waiver_text(former)})
    assert former != name_of(waiver_work.check(code=100), SYMBOLS)
    waiver_work.git("checkout", "-q", "main")
    waiver_work.write(waiver_text(former))
    waiver_work.git("add", "-A")
    waiver_work.git("commit", "-q", "-m", "waiver")
    waiver_work.git("checkout", "-q", "-B", "work", "main")
    waiver_work.commits = 0
    waiver_work.change(make_topic("orders", ALIASED))
    assert list_reported_rules(waiver_work.check(), waived=True) == [SYMBOLS]


@pytest.mark.parametrize("letter", ["\x85", "\u2028", "\u2029"])
def test_an_entry_behind_a_character_that_ends_no_line_is_a_comment(waiver_work: Work, letter: str) -> None:
    waiver_work.change(BREAK)
    fingerprint = name_of(waiver_work.check(code=100), SYMBOLS)
    entry = waiver_text(fingerprint)["waivers.yaml"]
    waiver_work.change({"waivers.yaml": f"# reviewed{letter}{entry}"})
    assert list_reported_rules(waiver_work.check(code=100)) == [SYMBOLS]
