"""The versions that a merge will record are judged before it: on branches, in CI checkouts and in merge queues."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from command import run_json, schemactl
from scratch import Files, Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"
ORDERS = "persistent://shop/sales/orders"


def make_orders(*fields: str, **default: Any) -> dict[str, str]:
    """Return the definition of the topic as files of a commit."""
    return {"topics/orders.avsc": record("id", *fields, **default)}


def make_orders_without_defaults(*fields: str, **default: Any) -> dict[str, str]:
    """Return the same definition without defaults of the number fields."""
    return {path: re.sub(', "default": 0', "", text) for path, text in make_orders(*fields, **default).items()}


TEXT = {"topics/orders.avsc": record("id", "note").replace("}]}", ', "default": ""}]}')}
"""The definition with a text note, which is a number in the others."""


@pytest.fixture
def orders_repository(tmp_path: Path) -> Scratch:
    """Commit one topic to a new repository."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"schemactl.yaml": PROJECT, "topics/orders.yaml": write_declaration(), **make_orders()}, "v0")
    return scratch


def check(repository: Scratch) -> dict[str, Any]:
    """Return the report of `check --base main`."""
    printed = schemactl(repository, "check", "--base", "main", "--format", "json", code=(0, 100))
    report: dict[str, Any] = json.loads(printed.out)
    assert printed.code == (100 if report["errors"] else 0)
    return report


def list_rules(report: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in report["findings"]]


def check_out(repository: Scratch, ref: str) -> None:
    repository.git("checkout", "-q", "--detach", ref)


def test_a_base_that_is_not_a_ref_is_named_once(orders_repository: Scratch) -> None:
    said = schemactl(orders_repository, "check", "--base", "mian", code=1).err
    assert said.count("mian") == 1
    assert said.startswith("schemactl: this repository has no ref 'mian'")


def test_an_intermediate_commit_that_breaks_is_distinguished_from_the_last(orders_repository: Scratch) -> None:
    step = orders_repository.commit(make_orders_without_defaults(note=0), "A note", branch="work", start=1)
    orders_repository.commit(make_orders(note=0), "The note has a default", branch="work")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    (finding,) = report["findings"]
    assert (finding["rule"], finding["severity"]) == ("STEP_REFUSED", "warning")
    assert finding["commit"] == {"id": orders_repository.id(step), "subject": "A note"}
    assert '"A note", 1 of 2 on this branch' in finding["message"]
    assert "rebase merge or a fast-forward" in finding["message"]
    assert (
        "A merge commit or a squash approves only the end of the branch, which is checked separately."
        in finding["message"]
    )
    assert not finding["only_at_tip"]
    orders_repository.commit(make_orders_without_defaults(note=0, more=0), "worse", branch="work")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    findings = {(finding["rule"], finding["severity"], finding["commit"] is None) for finding in report["findings"]}
    assert findings == {
        ("READER_FIELD_MISSING_DEFAULT_VALUE", "error", True),
        ("BROKER_INCOMPATIBLE", "error", True),
        ("STEP_REFUSED", "warning", False),
    }


@pytest.mark.parametrize(("severity", "errors", "finding_count"), [("error", 1, 1), ("off", 0, 0), ("warning", 0, 1)])
def test_a_team_that_rebases_makes_a_broken_commit_an_error_and_one_that_squashes_turns_it_off(
    orders_repository: Scratch, severity: str, errors: int, finding_count: int
) -> None:
    approved = orders_repository.commit({"schemactl.yaml": f"{PROJECT}severities: {{STEP_REFUSED: {severity}}}\n"})
    orders_repository.commit(make_orders_without_defaults(note=0), branch="work", start=approved)
    orders_repository.commit(make_orders(note=0), branch="work")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    assert (report["errors"], len(report["findings"])) == (errors, finding_count)


class Step(NamedTuple):
    """A commit on a branch, which begins at the commit with the subject `start`."""

    branch: str
    subject: str
    files: Files = MappingProxyType({})
    start: str = "v0"
    merge: str = ""


class BranchCase(NamedTuple):
    """Commits after the first, of which the last branch that is not main is checked.

    Attributes:
        findings: each rule, with the subject of its commit, the versions that it compares with, and the topic if it is not orders.
        topics: of each changed topic the number after a squash, the number after a rebase, the latest one, and the verdict.
        merge_base: the subject of the reported merge base.
        messages: parts of the findings and notes.
    """

    steps: tuple[Step, ...]
    findings: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    merge_base: str | None = None
    messages: tuple[str, ...] = ()


NOTE, BROKEN_NOTE = make_orders(note=0), make_orders_without_defaults(note=0)
NO_TOPIC = {"topics/orders.yaml": None}
REFUNDS = {"topics/refunds.yaml": "topic: shop/sales/refunds\nschema: {type: STRING}\n"}
REJECTED = ("READER_FIELD_MISSING_DEFAULT_VALUE", "BROKER_INCOMPATIBLE")
MONEY = record("amount", unit=0, name="Money")
USERS_OF_MONEY = {
    "money.avsc": record("amount", name="Money"),
    **dict.fromkeys(
        ("topics/one.avsc", "topics/two.avsc"), '{"type": "record", "name": "X", "fields": [{"name": "m", "type": "Money"}]}'
    ),
    **{
        f"topics/{name}.yaml": write_declaration(f"a/b/{name}", f"{name}.avsc", "  references: [../money.avsc]\n")
        for name in ("one", "two")
    },
}  # fmt: skip
TRY_AND_MEND = (Step("work", "break", BROKEN_NOTE), Step("work", "mend", NOTE))
MERGE_BY_CI = (*TRY_AND_MEND, Step("main", "before"), Step("ci", "merge", NOTE, start="before", merge="mend"))

ONE_OR_TWO = ("new version 1 (2) after 0: compatible",)
BREAK_REFUSED = ("STEP_REFUSED 'break' against [0]",)
BRANCHES = {
    "a commit is judged against earlier commits of the branch": BranchCase(
        (Step("work", "a number", NOTE), Step("work", "a text", TEXT)), ("STEP_REFUSED 'a text' against [1]",), ONE_OR_TWO,
    ),
    "commits without a violation or a new version have no findings": BranchCase(
        (
            Step("work", "a note", NOTE),
            Step("work", "unreadable", {"topics/orders.avsc": "{"}),
            Step("work", "back", make_orders()),
            Step("work", "gone", NO_TOPIC),
            Step("work", "more", {"topics/orders.yaml": write_declaration(), **make_orders(note=0, more=1)}),
        ),
        topics=ONE_OR_TWO,
    ),
    "a shared definition that breaks in a commit is reported for every topic": BranchCase(
        (
            Step("main", "money", USERS_OF_MONEY),
            Step("work", "break", {"money.avsc": MONEY.replace(', "default": 0', "")}, start="money"),
            Step("work", "mend", {"money.avsc": MONEY}),
        ),
        (f"{BREAK_REFUSED[0]} persistent://a/b/one", f"{BREAK_REFUSED[0]} persistent://a/b/two"),
        ONE_OR_TWO * 2,
    ),
    "a break at the base and at the tip is a finding of the branch": BranchCase(
        (Step("work", "break", BROKEN_NOTE), Step("main", "more", make_orders(more=0))),
        REJECTED, ("new version 2 (2) after 1: breaking",), "v0",
    ),
    "a break that was approved meanwhile is no longer a finding": BranchCase(
        (Step("work", "break", BROKEN_NOTE), Step("main", "the same", BROKEN_NOTE)),
        merge_base="v0", messages=("READER_FIELD_MISSING_DEFAULT_VALUE was reported at", '"the same"'),
    ),
    "only partitions were added, and the definition is the approved one": BranchCase(
        (
            Step("work", "partitions", {"topics/orders.yaml": write_declaration(more="partitions: 3\n")}),
            Step("main", "more", make_orders(more=0)),
        ),
        ("PARTITIONS_SHRUNK",), ("policies None (None) after None: None",), "v0",
    ),
    "a topic deleted here or there is deleted": BranchCase(
        (
            Step("main", "refunds", REFUNDS),
            Step("work", "gone", NO_TOPIC, start="refunds"),
            Step("main", "gone, too", dict.fromkeys(REFUNDS)),
        ),
        ("DELETED_TOPIC",), ("removed None (None) after 0: None",), "refunds",
    ),
    "a removed topic does not come back with its definition": BranchCase(
        (Step("work", "break", BROKEN_NOTE), Step("main", "gone", NO_TOPIC)), merge_base="v0",
    ),
    "a branch that merged the approved history is judged by its own commits": BranchCase(
        (
            *TRY_AND_MEND, Step("main", "theirs", REFUNDS),
            Step("work", "merge", REFUNDS, start="mend", merge="theirs"), Step("work", "more", {"README.md": "more"}),
        ),
        BREAK_REFUSED, ONE_OR_TWO,
        messages=(
            "1 of 3 on this branch",
            "after a fast-forward, the commits of this branch would be the approved first-parent line",
            "line, and versions would be numbered along them.",
        ),
    ),
    "the merge of a pull request by CI is judged by the pull request's commits": BranchCase(
        MERGE_BY_CI, BREAK_REFUSED, ONE_OR_TWO,
    ),
    "the merge of a pull request by CI, after main moved": BranchCase(
        (*MERGE_BY_CI, Step("main", "later", REFUNDS)), BREAK_REFUSED, ONE_OR_TWO, merge_base="before",
    ),
    "every merge of a merge queue is judged": BranchCase(
        (
            Step("one", "try", BROKEN_NOTE), Step("two", "readme", {"README.md": "two"}),
            Step("queue", "Merge one", BROKEN_NOTE, merge="try"), Step("queue", "Merge two", NOTE, merge="readme"),
        ),
        ("STEP_REFUSED 'try' against [0]",), ONE_OR_TWO,
    ),
    "a branch on a merged branch is judged by its further commits": BranchCase(
        (
            Step("first", "first", NOTE),
            Step("second", "second", make_orders(note=0, more=0), start="first"),
            Step("main", "Merge first", NOTE, merge="first"),
        ),
        topics=("new version 2 (2) after 1: compatible",), merge_base="first",
    ),
    "criss-cross merges have a merge base": BranchCase(
        (
            Step("work", "ours", make_orders(a=0)), Step("main", "theirs", make_orders(b=0)),
            Step("work", "theirs into ours", make_orders(a=0, b=0), start="ours", merge="theirs"),
            Step("main", "ours into theirs", make_orders(a=0, b=0), merge="ours"),
            Step("work", "more", make_orders(a=0, b=0, c=0)),
        ),
        topics=("new version 3 (3) after 2: compatible",), merge_base="theirs",
    ),
    "work at the tip has no steps": BranchCase((Step("main", "a", make_orders(a=0)), Step("work", "", start="a"))),
    "work behind the tip has no steps": BranchCase((Step("work", ""), Step("main", "a", make_orders(a=0))), merge_base="v0"),
}  # fmt: skip


def describe_finding(finding: dict[str, Any]) -> str:
    """Return the finding as the table has it."""
    commit = f" {finding['commit']['subject']!r} against {finding['against']}" if finding["commit"] else ""
    return f"{finding['rule']}{commit}" + (f" {finding['topic']}" if finding["topic"] != ORDERS else "")


@pytest.mark.parametrize("case", BRANCHES.values(), ids=BRANCHES)
def test_the_versions_that_a_merge_will_record_are_judged(orders_repository: Scratch, case: BranchCase) -> None:
    marks, tips = {"v0": 1}, {"main": 1}
    for branch, subject, files, start, merge in case.steps:
        begins = branch not in tips or start != "v0"
        tips[branch] = marks[subject] = orders_repository.commit(
            files, subject, branch=branch, start=marks[start] if begins else None, merge=marks[merge] if merge else None
        )
    tip = [*tips][-1]
    if tip == "ci":
        orders_repository.git("update-ref", "refs/remotes/pull/7/merge", orders_repository.id(tips[tip]))
        tip = "refs/remotes/pull/7/merge"
    check_out(orders_repository, tip)
    report = check(orders_repository)
    findings = [describe_finding(finding) for finding in report["findings"]]
    topics = [
        "{change} {version} ({version_if_rebased}) after {latest}: {data}".format_map(topic)
        for topic in report["topics"]
    ]
    assert (findings, topics) == ([*case.findings], [*case.topics])
    assert report["merge_base"] == (orders_repository.id(marks[case.merge_base]) if case.merge_base else None)
    assert not any(finding["only_at_tip"] or "merge base" in finding["message"] for finding in report["findings"])
    text = "\n".join([*(finding["message"] for finding in report["findings"]), *report["notes"]])
    assert [part for part in case.messages if part not in text] == []


LATER_APPROVALS: dict[str, tuple[Files, Files, list[str], list[str]]] = {
    "another definition": (
        TEXT, NOTE, ["TYPE_MISMATCH", "BROKER_INCOMPATIBLE"],
        ["Not reported at the merge base ({base})", 'approved after it: version 1 ({later}, 2023-11-14) "later".'],
    ),
    "a stricter strategy": (
        {"topics/orders.avsc": record()},
        {"topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"},
        [*REJECTED],
        ["readers of version 0 need it", "approved after it: other policies"],
    ),
    "the same topic in another file": (
        REFUNDS, {"topics/sales/refunds.yaml": REFUNDS["topics/refunds.yaml"]},
        ["INVALID_AFTER_MERGE"], ["topics/sales/refunds.yaml:1:8"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "rules", "messages"), LATER_APPROVALS.values(), ids=LATER_APPROVALS)
def test_a_break_caused_by_what_was_approved_later_is_marked(
    orders_repository: Scratch, ours: Files, theirs: Files, rules: list[str], messages: list[str]
) -> None:
    orders_repository.commit(ours, branch="work", start=1)
    check_out(orders_repository, "work")
    assert list_rules(check(orders_repository)) == []
    later = orders_repository.id(orders_repository.commit(theirs, "later"))
    report = check(orders_repository)
    base = report["merge_base"]
    assert (list_rules(report), base) == (rules, orders_repository.id(1))
    assert all(finding["only_at_tip"] for finding in report["findings"])
    for message in messages:
        assert message.format(base=base[:9], later=later[:9]) in report["findings"][0]["message"]


def test_the_hook_and_a_plain_check_do_not_look_at_the_commits_of_a_branch(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders_without_defaults(note=0), branch="work", start=1)
    orders_repository.commit(make_orders(note=0), branch="work")
    orders_repository.git("checkout", "-q", "work")
    for option in ([], ["--staged"]):
        assert run_json(orders_repository, "check", *option)["findings"] == []


def test_numbers_to_come_are_shown_as_such(orders_repository: Scratch) -> None:
    text = "topic: shop/sales/notes\nschema: {type: STRING}\n"
    orders_repository.commit({"topics/notes.yaml": text, **make_orders(note=0)}, branch="work", start=1)
    orders_repository.commit(make_orders(more=0), branch="work")
    check_out(orders_repository, "work")
    for form in ("text", "markdown"):
        out = schemactl(orders_repository, "check", "--base", "main", "--format", form).out
        change = "v0 → v1" if form == "markdown" else "version 0, will be 1"
        assert f"{change} (2 after a rebase merge)" in out
        assert "new topic, will be version 0" in out
    pending = {topic["topic"]: topic["pending"] for topic in check(orders_repository)["topics"]}
    assert set(pending.values()) == {True}


def test_every_format_says_which_commit_and_which_side(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders_without_defaults(other=0), "A step", branch="work", start=1)
    orders_repository.commit(TEXT, branch="work")
    orders_repository.commit(make_orders(note=0), "theirs")
    check_out(orders_repository, "work")
    for form in ("text", "json", "markdown", "github", "sarif", "junit", "gitlab", "azure", "html"):
        out = schemactl(orders_repository, "check", "--base", "main", "--format", form, code=100).out
        assert "A step" in out, form
        assert "Not reported at the merge base" in out, form
    out = schemactl(orders_repository, "check", "--base", "main", "--format", "sarif", code=100).out
    (run,) = json.loads(out)["runs"]
    findings = [{key: result["properties"].get(key) for key in ("onlyAtTip", "commit")} for result in run["results"]]
    assert findings == [
        {"onlyAtTip": True, "commit": None},
        {"onlyAtTip": None, "commit": orders_repository.git("rev-parse", "work~1")},
    ]
    assert len({str(result["partialFingerprints"]) for result in run["results"]}) == 2


@pytest.mark.parametrize("topics", [1, 40])
@pytest.mark.parametrize("strategy", ["BACKWARD", "FULL"], ids=["fine in the end", "refused"])
def test_each_topic_gets_its_findings_however_many_there_are(tmp_path: Path, topics: int, strategy: str) -> None:
    repository = Scratch(tmp_path / "r")
    files = {"schemactl.yaml": PROJECT.replace("BACKWARD", strategy)}
    for number in range(topics):
        files[f"topics/t{number}.yaml"] = write_declaration(f"a/b/t{number}", f"t{number}.avsc")
        files[f"topics/t{number}.avsc"] = record("id", "gone")
    start = repository.commit(files)
    for number in range(topics):
        text = record("id", "gone", x=0).replace(', "default": 0', "")
        repository.commit({f"topics/t{number}.avsc": text}, branch="work", start=None if number else start)
    repository.commit({f"topics/t{number}.avsc": record("id", x=0) for number in range(topics)}, branch="work")
    repository.commit({"README.md": "meanwhile"})
    check_out(repository, "work")
    report = check(repository)
    broken = ["READER_FIELD_MISSING_DEFAULT_VALUE", "BROKER_INCOMPATIBLE"] if strategy == "FULL" else []
    assert list_rules(report) == [*broken, "STEP_REFUSED"] * topics
    if broken:
        assert report["findings"][0]["older"] == "topics/t0.avsc:1:82"
