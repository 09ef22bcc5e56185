"""An edit of a shared type is one cause in every format, with all the topics that it reaches."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command import schemactl
from consumers import workflow_commands
from hypothesis import given
from hypothesis import strategies as st
from scratch import Files, Scratch

from schemactl.checks.check_report import Cause, CheckReport, group_findings
from schemactl.core.errors import Source
from schemactl.core.findings import Direction, Finding
from schemactl.core.names import TopicName
from schemactl.core.schema import Release
from schemactl.report import CHECK_FORMATS, render_check

pytestmark = pytest.mark.slow

FORMATS = ("json", "markdown", "github", "sarif", "junit", "gitlab", "azure", "html")
TOPICS = [f"shop/sales/t{number:02}" for number in range(40)]
STRATEGIES = {"shop/sales/t00": "FULL", "shop/sales/t17": "FULL", "shop/sales/t39": "FULL_TRANSITIVE"}
"""Of topics that set one; their namespace's is BACKWARD_TRANSITIVE."""


def _make_money(amount: str, *more: str) -> str:
    fields = [{"name": "amount", "type": amount}, *({"name": name, "type": "string"} for name in more)]
    return json.dumps({"type": "record", "name": "Money", "namespace": "shop", "fields": fields}, indent=2)


def _make_proto(amount: str, *more: str) -> str:
    values = "".join(f" {name} = {number};" for number, name in enumerate(("NEW", *more)))
    return (
        f'syntax = "proto3";\npackage shop;\nmessage Money {{\n  {amount} amount = 1;\n}}\nenum State {{{values} }}\n'
    )


def _declare_topic(topic: str, schema: str) -> str:
    own = f"schema_compatibility_strategy: {STRATEGIES[topic]}\n" if topic in STRATEGIES else ""
    return f"topic: {topic}\n{own}schema: {{{schema}}}\n"


def _make_repository(path: Path, files: dict[str, str], settings: str = "") -> Scratch:
    namespace = "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD_TRANSITIVE\n"
    repository = Scratch(path)
    repository.commit({"schemactl.yaml": f"version: 1\n{settings}", "namespaces/sales.yaml": namespace, **files})
    return repository


def _of_avro(path: Path, settings: str = "") -> Scratch:
    """A repository whose topics use one Avro type, each in another place."""
    files = {"namespaces/money.avsc": _make_money("long", "note")}
    for number, topic in enumerate(TOPICS):
        before = [{"name": f"f{at}", "type": "int"} for at in range(number % 3)]
        fields = [*before, {"name": f"price{number}", "type": "shop.Money"}]
        record = {"type": "record", "name": f"R{number}", "namespace": "shop", "fields": fields}
        files[f"namespaces/t{number}.avsc"] = json.dumps(record)
        files[f"namespaces/t{number}.yaml"] = _declare_topic(
            topic, f"type: AVRO, definition: t{number}.avsc, references: [money.avsc]"
        )
    return _make_repository(path, files, settings)


def _of_protobuf(path: Path) -> Scratch:
    """A repository whose topics import one `.proto`."""
    files = {"namespaces/money.proto": _make_proto("int64", "DONE")}
    for number, topic in enumerate(TOPICS):
        files[f"namespaces/t{number}.proto"] = (
            f'syntax = "proto3";\npackage shop;\nimport "namespaces/money.proto";\n'
            f"message R{number} {{\n  Money price = {number + 1};\n  State state = 99;\n}}\n"
        )
        files[f"namespaces/t{number}.yaml"] = _declare_topic(
            topic,
            f"type: PROTOBUF_NATIVE, definition: t{number}.proto, message: shop.R{number}, references: [money.proto]",
        )
    return _make_repository(path, files, "protobuf: {rules: WIRE}\n")


def _read_reports(repository: Scratch, *options: str) -> dict[str, str]:
    formats = [f"--format={name}=out/{name}" for name in FORMATS]
    text = schemactl(repository, "check", "--format=text", *formats, *options, code=100).out
    return {"text": text} | {name: (repository.path / "out" / name).read_text() for name in FORMATS}


@pytest.fixture(scope="module")
def avro_reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A field of the shared type becomes a string, and another one is new, in every format."""
    repository = _of_avro(tmp_path_factory.mktemp("avro") / "repository")
    repository.write({"namespaces/money.avsc": _make_money("string", "note", "currency")})
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        return _read_reports(repository)


EDITS = [
    ("TYPE_MISMATCH", "namespaces/money.avsc", 8),
    ("READER_FIELD_MISSING_DEFAULT_VALUE", "namespaces/money.avsc", 14),
]


def test_the_text_has_two_findings_and_all_topics_with_their_strategies(avro_reports: dict[str, str]) -> None:
    text = avro_reports["text"]
    assert re.findall(r"^error\[(\w+)\]: .*\n  --> (\S+:\d+):\d+$", text, re.MULTILINE) == [
        (rule, f"{path}:{line}") for rule, path, line in EDITS
    ]
    assert "40 changed, 40 failed (2 errors in 40 topics)." in text
    blocks = text.split("\n\n")[1:3]
    for block in blocks:
        assert "= message  {" in block
        # The broker's refusal is a line for each strategy.
        assert block.count("BROKER_INCOMPATIBLE") == 3
        assert re.findall(r"Likewise in (\d+) more topics?\.", block) == ["1", "36"]
        assert all(topic in block for topic in TOPICS)
        assert re.findall(r"^ {19}(\w+, version 0 \(\d+\)):", block, re.MULTILINE) == [
            "BACKWARD_TRANSITIVE, version 0 (37)",
            "FULL, version 0 (2)",
            "FULL_TRANSITIVE, version 0 (1)",
        ]
    assert len(text.splitlines()) < 110


def test_a_reader_that_fails_in_both_directions_is_one_finding_with_both_reasons(avro_reports: dict[str, str]) -> None:
    mismatch = avro_reports["text"].split("\n\n")[1]
    assert "the new schema expects string" in mismatch
    assert "readers of version 0 expect long" in mismatch
    assert mismatch.count("= message  {") == 2


def test_markdown_has_a_block_for_each_edit_and_all_topics(avro_reports: dict[str, str]) -> None:
    assert avro_reports["markdown"].count("<details") == 2
    assert all(topic in avro_reports["markdown"] for topic in TOPICS)


def test_github_has_an_annotation_for_each_edit_and_no_topic_is_left_out(avro_reports: dict[str, str]) -> None:
    assert [*workflow_commands(avro_reports["github"])] == ["error", "error"]
    assert all(avro_reports["github"].count(topic) >= 2 for topic in TOPICS)
    assert "more: run" not in avro_reports["github"]


def test_gitlab_and_sarif_have_an_entry_for_each_edit(avro_reports: dict[str, str]) -> None:
    entries = json.loads(avro_reports["gitlab"])
    assert [
        (entry["check_name"], entry["location"]["path"], entry["location"]["lines"]["begin"]) for entry in entries
    ] == EDITS
    (run,) = json.loads(avro_reports["sarif"])["runs"]
    assert [result["ruleId"] for result in run["results"]] == [rule for rule, *_ in EDITS]
    for result in run["results"]:
        names = [location["fullyQualifiedName"] for location in result["locations"][0]["logicalLocations"]]
        assert len({name.partition("#")[0] for name in names}) == 40


def test_junit_has_a_case_for_each_edit_in_each_topic(avro_reports: dict[str, str]) -> None:
    suites = ET.fromstring(avro_reports["junit"])  # noqa: S314  our own output
    assert (len(suites), suites.attrib["failures"], suites.attrib["tests"]) == (40, "80", "80")
    for suite in suites:
        assert [case[0].attrib["type"] for case in suite.iter("testcase")] == [rule for rule, *_ in EDITS]


def test_json_has_every_pair_with_its_cause(avro_reports: dict[str, str]) -> None:
    report = json.loads(avro_reports["json"])
    assert (report["format_version"], report["errors"], report["warnings"]) == (2, 2, 0)
    assert [(cause["rule"], cause["file"], cause["line"]) for cause in report["causes"]] == EDITS
    pairs = {(finding["rule"], finding["topic"], finding["direction"]) for finding in report["findings"]}
    # Three topics are judged in both directions; each is rejected by the broker.
    assert len(pairs) == len(report["findings"]) == 40 + 3 + 40 + 40
    for cause in report["causes"]:
        assert len(cause["topics"]) == len(cause["rejected"]) == 40
        members = {finding["topic"] for finding in report["findings"] if finding["cause"] == cause["id"]}
        assert members == {*cause["topics"]}


@pytest.mark.parametrize(("form", "entries"), [("text", 80), ("junit", 2)])
def test_the_name_that_a_format_prints_is_one_that_waive_takes(tmp_path: Path, form: str, entries: int) -> None:
    repository = _of_avro(tmp_path / "repository")
    repository.write({"namespaces/money.avsc": _make_money("long", "note", "currency")})
    printed = schemactl(repository, "check", f"--format={form}", code=100).out
    name = re.findall(r"schemactl waive (\w+)", printed)[0]
    until = datetime.now(UTC).date() + timedelta(days=30)
    schemactl(*(repository.path, "waive", name, "--reason", "never read", "--owner", "ada", "--until", str(until)))
    waivers = (repository.path / "waivers.yaml").read_text()
    assert waivers.count("rule:") == entries


def test_warning_that_only_strict_fails_can_be_waived(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "repository")
    settings = "version: 1\ndefaults: {schema_compatibility_strategy: ALWAYS_COMPATIBLE}\n"
    topic = "topic: shop/sales/totals\nowner: ada\nschema: {type: %s}\n"
    namespace = "namespace: shop/sales\n---\n"
    repository.commit({"schemactl.yaml": settings, "namespaces/t.yaml": namespace + topic % "STRING"})
    repository.write({"namespaces/t.yaml": namespace + topic % "INT64"})
    report = json.loads(schemactl(repository, "check", "--strict", "--format=json", code=100).out)
    until = datetime.now(UTC).date() + timedelta(days=30)
    name = report["findings"][0]["fingerprint"]
    schemactl(repository, "waive", name, "--reason", "never read", "--until", str(until))
    out = schemactl(repository, "check", "--strict").out
    assert "Waived by" in out
    assert "WAIVER_UNUSED" not in schemactl(repository, "check").out


BOTH_FIELDS_GONE = '{"type": "record", "name": "Money", "namespace": "shop", "fields": []}'
BACKWARD = "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n"
CAUSES: dict[str, tuple[Callable[[Path], Scratch], Files, list[tuple[str, str, int]], str]] = {
    "an edit of an imported .proto": (
        _of_protobuf,
        {"namespaces/money.proto": _make_proto("string")},
        [("FIELD_WIRE_COMPATIBLE_TYPE", "error", 40), ("ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED", "warning", 40)],
        "(1 error in 40 topics, 1 warning in 40 topics).",
    ),
    "a namespace that protects less": (
        _of_avro,
        {"namespaces/sales.yaml": BACKWARD},
        [("PROTECTION_LOST", "warning", 37)],
        "(1 warning in 37 topics).",
    ),
    "two fields that are gone from a shared type": (
        _of_avro,
        {"namespaces/money.avsc": BOTH_FIELDS_GONE},
        [("READER_FIELD_MISSING_DEFAULT_VALUE", "error", 3)] * 2,
        "(2 errors in 3 topics).",
    ),
}
"""A repository, the changed files, rule, severity and number of topics of each cause, and the sum of the text."""


@pytest.mark.parametrize(("make", "files", "causes", "total"), CAUSES.values(), ids=CAUSES)
def test_an_edit_that_many_topics_share_is_one_cause(
    tmp_path: Path, make: Callable[[Path], Scratch], files: Files, causes: list[tuple[str, str, int]], total: str
) -> None:
    repository = make(tmp_path / "repository")
    repository.write(files)
    outputs = ("--format=text", "--format=json=out/json", "--format=github=out/github")
    text = schemactl(repository, "check", "--strict", *outputs, code=100).out
    report = json.loads((repository.path / "out/json").read_text())
    assert [(cause["rule"], cause["severity"], len(cause["topics"])) for cause in report["causes"]] == causes
    assert len({cause["id"] for cause in report["causes"]}) == len(causes)
    assert re.findall(r"schemactl explain (\w+)", text) == [rule for rule, *_ in causes]
    assert total in text
    github = (repository.path / "out/github").read_text()
    assert [*workflow_commands(github)] == [severity for _, severity, _ in causes]


def test_a_refusal_that_no_data_finding_explains_is_a_cause_of_its_own(tmp_path: Path) -> None:
    repository = _make_repository(
        tmp_path / "repository",
        {
            "namespaces/clicks.yaml": "topic: shop/sales/clicks\nschema: {type: PROTOBUF_NATIVE, definition: c.proto, message: A}\n",
            "namespaces/c.proto": 'syntax = "proto3";\nmessage A { int64 at = 1; }\n',
        },
    )
    repository.write(
        {
            "namespaces/clicks.yaml": "topic: shop/sales/clicks\nschema: {type: PROTOBUF_NATIVE, definition: c.proto, message: B}\n",
            "namespaces/c.proto": 'syntax = "proto3";\nmessage B { string at = 1; }\n',
        }
    )
    out = schemactl(repository, "check", code=100).out
    assert re.findall(r"schemactl explain (\w+)", out) == ["FIELD_WIRE_COMPATIBLE_TYPE", "BROKER_INCOMPATIBLE"]
    assert "= fix      Keep the full name of the root message" in out
    assert "1 failed (2 errors)." in out


def test_a_refusal_stays_an_error_beside_a_data_finding_that_is_a_warning(tmp_path: Path) -> None:
    repository = _of_avro(tmp_path / "repository", "severities: {TYPE_MISMATCH: warning}\n")
    repository.write({"namespaces/money.avsc": _make_money("string", "note")})
    report = json.loads(schemactl(repository, "check", "--format=json", code=100).out)
    assert {cause["rule"]: cause["severity"] for cause in report["causes"]} == {
        "TYPE_MISMATCH": "warning",
        "BROKER_INCOMPATIBLE": "error",
    }


def test_a_comment_of_hundreds_of_topics_has_room_for_the_causes(tmp_path: Path) -> None:
    topics = [f"shop/sales/t{number:03}" for number in range(400)]
    definition = "schema: {type: AVRO, definition: item.avsc}\n"
    files = {"namespaces/all.yaml": "---\n".join(f"topic: {topic}\n{definition}" for topic in topics)}
    repository = _make_repository(tmp_path / "repository", {**files, "namespaces/item.avsc": '"int"'})
    repository.write({"namespaces/item.avsc": '"string"'})
    printed = schemactl(repository, "check", "--format=markdown", "--format=text=out/text", code=100)
    assert len(printed.out) < 65_536
    assert "_200 more: run `schemactl check` to see them._" in printed.out
    assert printed.out.count("<details") == 1
    assert "400 topics" in printed.out
    text = (repository.path / "out/text").read_text()
    assert "(1 error in 400 topics)." in text
    assert "and 300 more" in text
    assert all(topic in text for topic in topics)


def _make_finding(**details: Any) -> Finding:
    rule = details["rule"]
    verdict = "broker" if rule.startswith("BROKER") else "data" if rule.isupper() else "declaration"
    return Finding(verdict=verdict, message=f"{rule} at {details['topic']}", **details)  # type: ignore[arg-type]


DIRECTIONS: list[Direction | None] = [None, "new_reads_old", "old_reads_new"]
FINDINGS = st.lists(
    st.builds(
        _make_finding,
        rule=st.sampled_from(
            ["TYPE_MISMATCH", "MISSING_ENUM_SYMBOLS", "BROKER_INCOMPATIBLE", "BROKER_ERROR", "NOT_DECIDED"]
        ),
        severity=st.sampled_from(["error", "warning"]),
        topic=st.sampled_from([None, *(TopicName("shop", "sales", name) for name in "abc")]),
        source=st.sampled_from([None, Source("money.avsc", 1), Source("money.avsc", 2), Source("a.avsc", 1)]),
        pointer=st.sampled_from(["", "/fields/0", "/fields/1", "/fields/2/type/fields/0"]),
        direction=st.sampled_from(DIRECTIONS),
    ),
    max_size=12,
)


def list_members(groups: tuple[Cause, ...]) -> Iterator[Finding]:
    for cause in groups:
        yield from cause.findings
        yield from cause.refusals


@given(FINDINGS)
def test_every_finding_is_in_one_cause_and_only_refusals_in_several(findings: list[Finding]) -> None:
    groups = group_findings(findings)
    assert {*map(id, list_members(groups))} == {*map(id, findings)}
    assert all(refusal.rule == "BROKER_INCOMPATIBLE" for cause in groups for refusal in cause.refusals)
    single = [id(finding) for cause in groups for finding in cause.findings]
    assert len(single) == len({*single})
    for cause in groups:
        assert {(finding.rule, finding.severity) for finding in cause.findings} == {
            (cause.primary_finding.rule, cause.severity)
        }
        assert all(refusal.severity == cause.severity for refusal in cause.refusals)
    worst = {finding.severity for finding in findings}
    assert {cause.severity for cause in groups} == worst


@given(st.data(), FINDINGS)
def test_grouping_does_not_depend_on_the_order(data: st.DataObject, findings: list[Finding]) -> None:
    def as_sets(groups: tuple[Cause, ...]) -> list[tuple[str, list[int], list[int]]]:
        return sorted((group.id, sorted(map(id, group.findings)), sorted(map(id, group.refusals))) for group in groups)

    shuffled = data.draw(st.permutations(findings))
    assert as_sets(group_findings(shuffled)) == as_sets(group_findings(findings))


def _of_topics(count: int) -> CheckReport:
    """Make a report on an edit of a shared type that the broker also rejects."""
    findings: list[Finding] = []
    for number in range(count):
        at: dict[str, Any] = {"topic": TopicName("shop", "sales", f"t{number}"), "severity": "error"}
        money, own = Source("money.avsc", 3), Source(f"t{number}.avsc")
        findings += [
            _make_finding(rule="TYPE_MISMATCH", source=money, pointer=f"/fields/{number}/type", **at),
            _make_finding(rule="MISSING_ENUM_SYMBOLS", source=own, pointer="/symbols", **at),
            _make_finding(rule="BROKER_INCOMPATIBLE", source=own, **at),
        ]
    return CheckReport(Release.R4_0, "main", count, findings=tuple(findings))


def _cpu_s(form: str, report: CheckReport) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        render_check(report, form)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.timed
@pytest.mark.parametrize("form", CHECK_FORMATS)
def test_a_report_of_four_times_as_many_topics_takes_about_four_times_as_long(form: str) -> None:
    assert _cpu_s(form, _of_topics(2_000)) < 10 * _cpu_s(form, _of_topics(500)) + 0.05
