"""The versions that a merge will record are judged before it: on branches, in CI checkouts and in merge queues."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from scratch import Scratch, record, write_declaration

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
    repository.flush()
    printed = schemactl(repository.path, "check", "--base", "main", "--format", "json", code=(0, 100))
    report: dict[str, Any] = json.loads(printed.out)
    assert printed.code == (100 if report["errors"] else 0)
    return report


def list_rules(report: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in report["findings"]]


def check_out(repository: Scratch, ref: str) -> None:
    repository.git("checkout", "-q", "--detach", ref)


def test_a_base_that_is_not_a_ref_is_named_once(orders_repository: Scratch) -> None:
    orders_repository.flush()
    said = schemactl(orders_repository.path, "check", "--base", "mian", code=1).err
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


def test_a_commit_is_judged_against_those_before_it_on_the_branch(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders(note=0), "a number", branch="work", start=1)
    orders_repository.commit(TEXT, "a text", branch="work")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    (finding,) = report["findings"]
    assert (finding["rule"], finding["commit"]["subject"], finding["against"]) == ("STEP_REFUSED", "a text", [1])
    # The squash is version 1 and compatible, because no client has seen that number.
    (topic,) = report["topics"]
    assert (topic["version"], topic["version_if_rebased"], topic["pending"], topic["data"]) == (
        1,
        2,
        True,
        "compatible",
    )


def test_commits_that_a_rule_does_not_mind_or_that_make_no_version_are_no_findings(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders(note=0), branch="work", start=1)
    orders_repository.commit({"topics/orders.avsc": "{"}, "unreadable", branch="work")
    orders_repository.commit(make_orders(), "back", branch="work")
    orders_repository.commit({"topics/orders.yaml": None}, "gone", branch="work")
    orders_repository.commit({"topics/orders.yaml": write_declaration(), **make_orders(note=0, more=1)}, branch="work")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    assert list_rules(report) == []
    (topic,) = report["topics"]
    assert (topic["version"], topic["version_if_rebased"]) == (1, 2)


def test_a_shared_definition_that_breaks_in_a_commit_is_reported_for_every_topic(orders_repository: Scratch) -> None:
    topic = '{"type": "record", "name": "X", "fields": [{"name": "m", "type": "Money"}]}'
    files = {"money.avsc": record("amount", name="Money")}
    for name in ("one", "two"):
        files[f"topics/{name}.avsc"] = topic
        files[f"topics/{name}.yaml"] = write_declaration(
            f"a/b/{name}", f"{name}.avsc", "  references: [../money.avsc]\n"
        )
    start = orders_repository.commit(files)
    orders_repository.commit(
        {"money.avsc": record("amount", unit=0, name="Money").replace(', "default": 0', "")}, branch="work", start=start
    )
    orders_repository.commit({"money.avsc": record("amount", unit=0, name="Money")}, branch="work")
    check_out(orders_repository, "work")
    assert [(f["rule"], f["topic"]) for f in check(orders_repository)["findings"]] == [
        ("STEP_REFUSED", "persistent://a/b/one"),
        ("STEP_REFUSED", "persistent://a/b/two"),
    ]


def test_a_break_caused_by_later_approved_versions_is_marked(orders_repository: Scratch) -> None:
    orders_repository.commit(TEXT, branch="work", start=1)
    check_out(orders_repository, "work")
    assert list_rules(check(orders_repository)) == []
    theirs = orders_repository.commit(make_orders(note=0), "A note in numbers")
    report = check(orders_repository)
    assert list_rules(report) == ["TYPE_MISMATCH", "BROKER_INCOMPATIBLE"]
    assert all(finding["only_at_tip"] for finding in report["findings"])
    assert report["merge_base"] == orders_repository.id(1)
    assert f"Not reported at the merge base ({orders_repository.id(1)[:9]})" in report["findings"][0]["message"]
    assert f"version 1 ({orders_repository.id(theirs)[:9]}" in report["findings"][0]["message"]
    assert report["findings"][0]["message"].endswith('"A note in numbers".')


def test_what_breaks_at_both_is_the_branchs_own(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders_without_defaults(note=0), branch="work", start=1)
    orders_repository.commit(make_orders(more=0))
    check_out(orders_repository, "work")
    report = check(orders_repository)
    assert list_rules(report) == ["READER_FIELD_MISSING_DEFAULT_VALUE", "BROKER_INCOMPATIBLE"]
    assert not any(finding["only_at_tip"] for finding in report["findings"])
    assert "merge base" not in report["findings"][0]["message"]


def test_what_was_approved_meanwhile_may_settle_what_broke(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders_without_defaults(note=0), branch="work", start=1)
    theirs = orders_repository.commit(make_orders_without_defaults(note=0), "the same, by others")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    assert (list_rules(report), report["topics"]) == ([], [])
    assert "READER_FIELD_MISSING_DEFAULT_VALUE was reported at" in report["notes"][0]
    assert orders_repository.id(theirs)[:9] in report["notes"][0]


def test_a_stricter_strategy_that_was_approved_meanwhile_counts(orders_repository: Scratch) -> None:
    orders_repository.commit({"topics/orders.avsc": record()}, "the field goes", branch="work", start=1)
    check_out(orders_repository, "work")
    assert list_rules(check(orders_repository)) == []
    orders_repository.commit({"topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"})
    report = check(orders_repository)
    assert list_rules(report) == ["READER_FIELD_MISSING_DEFAULT_VALUE", "BROKER_INCOMPATIBLE"]
    assert "approved after it: other policies" in report["findings"][0]["message"]
    assert report["findings"][0]["direction"] == "old_reads_new"


def test_what_others_changed_in_the_same_topic_is_kept_and_what_both_did_is_judged_as_it_is_here(
    orders_repository: Scratch,
) -> None:
    orders_repository.commit({"topics/orders.yaml": write_declaration(more="partitions: 3\n")}, branch="work", start=1)
    orders_repository.commit(make_orders(more=0))
    check_out(orders_repository, "work")
    report = check(orders_repository)
    # The definition is the approved one; the branch only added partitions.
    assert list_rules(report) == ["PARTITIONS_SHRUNK"]
    assert [topic["change"] for topic in report["topics"]] == ["policies"]


def test_a_topic_deleted_here_or_there_is_deleted(orders_repository: Scratch) -> None:
    other = {"topics/refunds.yaml": "topic: shop/sales/refunds\nschema: {type: STRING}\n"}
    start = orders_repository.commit(other)
    orders_repository.commit({"topics/orders.yaml": None}, branch="work", start=start)
    orders_repository.commit({"topics/refunds.yaml": None})
    check_out(orders_repository, "work")
    assert [(f["rule"], f["topic"]) for f in check(orders_repository)["findings"]] == [("DELETED_TOPIC", ORDERS)]


def test_a_removed_topic_does_not_come_back_with_its_definition(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders_without_defaults(note=0), branch="work", start=1)
    orders_repository.commit({"topics/orders.yaml": None})
    check_out(orders_repository, "work")
    report = check(orders_repository)
    assert (list_rules(report), report["topics"]) == ([], [])


def test_a_topic_that_is_new_in_two_pull_requests_would_be_declared_twice(orders_repository: Scratch) -> None:
    text = "topic: shop/sales/notes\nschema: {type: STRING}\n"
    orders_repository.commit({"topics/notes.yaml": text}, branch="work", start=1)
    check_out(orders_repository, "work")
    assert list_rules(check(orders_repository)) == []
    orders_repository.commit({"topics/sales/notes.yaml": text})
    report = check(orders_repository)
    assert list_rules(report) == ["INVALID_AFTER_MERGE"]
    assert "topics/sales/notes.yaml:1:8" in report["findings"][0]["message"]
    assert report["findings"][0]["only_at_tip"]


def test_a_branch_that_merged_the_approved_history_is_judged_by_its_own_commits(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders_without_defaults(note=0), "break", branch="work", start=1)
    mend = orders_repository.commit(make_orders(note=0), "mend", branch="work")
    theirs = orders_repository.commit({"topics/refunds.yaml": "topic: shop/sales/refunds\nschema: {type: STRING}\n"})
    orders_repository.commit(
        {"topics/refunds.yaml": "topic: shop/sales/refunds\nschema: {type: STRING}\n"},
        "Merge branch 'main' into work",
        branch="work",
        start=mend,
        merge=theirs,
    )
    orders_repository.commit({"README.md": "more"}, branch="work")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    assert [(f["rule"], f["commit"]["subject"]) for f in report["findings"]] == [("STEP_REFUSED", "break")]
    assert "1 of 3 on this branch" in report["findings"][0]["message"]
    assert (report["merge_base"], [topic["topic"] for topic in report["topics"]]) == (None, [ORDERS])
    assert (
        "after a fast-forward, the commits of this branch would be the approved first-parent line, and versions would be numbered along them."
        in report["notes"][0]
    )


@pytest.mark.parametrize("moved", [False, True], ids=["at the tip", "after main moved"])
def test_cis_merge_of_a_pull_request_is_judged_by_the_pull_requests_commits(
    orders_repository: Scratch, *, moved: bool
) -> None:
    orders_repository.commit(make_orders_without_defaults(note=0), "break", branch="work", start=1)
    work = orders_repository.commit(make_orders(note=0), "mend", branch="work")
    base = orders_repository.commit({"README.md": "x"}, "before the merge")
    merge = orders_repository.commit(make_orders(note=0), "Merge work into main", branch="ci", start=base, merge=work)
    if moved:
        orders_repository.commit({"topics/refunds.yaml": "topic: shop/sales/refunds\nschema: {type: STRING}\n"})
    orders_repository.git("update-ref", "refs/remotes/pull/7/merge", orders_repository.id(merge))
    check_out(orders_repository, "refs/remotes/pull/7/merge")
    report = check(orders_repository)
    assert [(f["rule"], f["commit"]["subject"]) for f in report["findings"]] == [("STEP_REFUSED", "break")]
    assert [(topic["version"], topic["version_if_rebased"]) for topic in report["topics"]] == [(1, 2)]
    assert report["merge_base"] == (orders_repository.id(base) if moved else None)


def test_of_a_merge_queue_every_merge_is_judged(orders_repository: Scratch) -> None:
    one = orders_repository.commit(make_orders_without_defaults(note=0), "try", branch="one", start=1)
    two = orders_repository.commit({"README.md": "two"}, "readme", branch="two", start=1)
    orders_repository.commit(make_orders_without_defaults(note=0), "Merge one", branch="queue", start=1, merge=one)
    orders_repository.commit(make_orders(note=0), "Merge two", branch="queue", merge=two)
    check_out(orders_repository, "queue")
    report = check(orders_repository)
    assert [(f["rule"], f["commit"]["subject"]) for f in report["findings"]] == [("STEP_REFUSED", "try")]


def test_a_branch_stacked_on_one_that_was_merged_is_judged_by_what_it_has_beyond(orders_repository: Scratch) -> None:
    first = orders_repository.commit(make_orders(note=0), "first", branch="first", start=1)
    orders_repository.commit(make_orders(note=0, more=0), "second", branch="second", start=first)
    orders_repository.commit(make_orders(note=0), "Merge first", merge=first)
    check_out(orders_repository, "second")
    report = check(orders_repository)
    assert list_rules(report) == []
    assert [(t["version"], t["version_if_rebased"]) for t in report["topics"]] == [(2, 2)]
    assert report["merge_base"] == orders_repository.id(first)


def test_criss_cross_merges_have_a_merge_base(orders_repository: Scratch) -> None:
    ours = orders_repository.commit(make_orders(a=0), "ours", branch="work", start=1)
    theirs = orders_repository.commit(make_orders(b=0), "theirs")
    orders_repository.commit(make_orders(a=0, b=0), "theirs into ours", branch="work", start=ours, merge=theirs)
    orders_repository.commit(make_orders(a=0, b=0), "ours into theirs", merge=ours)
    orders_repository.commit(make_orders(a=0, b=0, c=0), "more", branch="work")
    check_out(orders_repository, "work")
    report = check(orders_repository)
    assert list_rules(report) == []
    assert [(topic["version"], topic["latest"]) for topic in report["topics"]] == [(3, 2)]


def test_work_behind_or_at_the_tip_has_no_steps(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders(a=0))
    for ref in ("main", "main~1"):
        check_out(orders_repository, ref)
        report = check(orders_repository)
        assert (report["topics"], report["findings"]) == ([], [])


def test_the_hook_and_a_plain_check_do_not_look_at_the_commits_of_a_branch(orders_repository: Scratch) -> None:
    orders_repository.commit(make_orders_without_defaults(note=0), branch="work", start=1)
    orders_repository.commit(make_orders(note=0), branch="work")
    orders_repository.git("checkout", "-q", "work")
    for option in ([], ["--staged"]):
        printed = schemactl(orders_repository.path, "check", *option, "--format", "json")
        assert json.loads(printed.out)["findings"] == []


def test_numbers_to_come_are_shown_as_such(orders_repository: Scratch) -> None:
    text = "topic: shop/sales/notes\nschema: {type: STRING}\n"
    orders_repository.commit({"topics/notes.yaml": text, **make_orders(note=0)}, branch="work", start=1)
    orders_repository.commit(make_orders(more=0), branch="work")
    check_out(orders_repository, "work")
    for form in ("text", "markdown"):
        out = schemactl(orders_repository.path, "check", "--base", "main", "--format", form).out
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
        out = schemactl(orders_repository.path, "check", "--base", "main", "--format", form, code=100).out
        assert "A step" in out, form
        assert "Not reported at the merge base" in out, form
    out = schemactl(orders_repository.path, "check", "--base", "main", "--format", "sarif", code=100).out
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
