"""Every rule by its example and by cases: changes that fire it, changes that only look like it, and the location.

`tests/cases/<RULE>.yaml` maps names to cases, of which there are five kinds:

    before, after, expect         a repository: the approved files (or a list of such, one commit each), then what changes in
                                  the working tree (null deletes), and all findings of `check`, in order. `strategy`,
                                  `pulsar` and `project` set the values of `schemactl.yaml`. `branch` is committed on a branch
                                  before that (files, or a list of such), and then `after` as well; `meanwhile` is approved
                                  after the branch began.
    existing, new, expect         definitions that come from no file: `type` and `schema`
    category, old, new, expect    a `.proto` text, or several by path of which the first has the root message; buf's category,
                                  and all that it finds, in order, with the place in the new text. A text without `syntax`
                                  gets two lines, which places count: proto3, and the package `web`
    checker, old, new, expect     the same for Pulsar's opt-in checker under that strategy
    files, expect                 the files of a project, and all that `lint` finds, in order; `fixed` are the files that `--fix`
                                  changes, as it leaves them

A finding has the severity of its rule unless the case sets another severity. A case that expects nothing of its own rule is a near miss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from case_tables import read_cases
from scratch import Scratch

from schemactl.checks.check import check_catalog
from schemactl.checks.check_report import make_undecided_report
from schemactl.checks.checked_files import CheckRequest
from schemactl.checks.lint import apply_harmless_edits, lint
from schemactl.checks.project_check import check_project
from schemactl.comparison.compatibility import judge
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.deadline import run_within
from schemactl.core.errors import DeclarationError, InvalidSchema
from schemactl.core.findings import Finding, Outcome
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import Project
from schemactl.core.rules import Rule, get_builtin_rules
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.declare import files as declare_files
from schemactl.declare import project as declare_project
from schemactl.declare import reader
from schemactl.formats import resolve
from schemactl.formats.protobuf.advanced_checker import find_advanced_violations
from schemactl.formats.protobuf.buf_rules import CATEGORIES, find_violations
from schemactl.formats.protobuf.definition import parse
from schemactl.formats.protobuf.protoc import Proto, compile_all

pytestmark = pytest.mark.slow

CASES = Path(__file__).parents[1] / "cases"
TODAY = date(2027, 1, 31)
"""The day of each case."""

Case = Mapping[str, Any]
Side = str | Mapping[str, str]

_SETTINGS = {"strategy", "pulsar", "project"}
_KINDS = (
    {"before", "branch", "meanwhile", "after", "expect", *_SETTINGS},
    {"existing", "new", "expect"},
    {"category", "old", "new", "expect"},
    {"checker", "old", "new", "expect"},
    {"files", "fixed", "expect", *_SETTINGS},
)
"""The keys of cases of each kind."""

_HEAD = 'syntax = "proto3";\npackage web;\n'
_SYNTAX = re.compile("syntax|edition")


@cache
def read_rule_cases(rule: str) -> Mapping[str, Case]:
    """Return the cases of one rule by name."""
    return read_cases(CASES / f"{rule}.yaml", *_KINDS)


def of_kind(key: str) -> list[Any]:
    """The cases that have `key`, as pytest's parameters."""
    return [
        pytest.param(case, id=f"{path.stem}: {name}")
        for path in sorted(CASES.glob("*.yaml"))
        for name, case in read_rule_cases(path.stem).items()
        if key in case
    ]


@pytest.mark.parametrize("case", of_kind("before"))
def test_check_finds_exactly_this(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each check looks at every repository in the cache, and there are hundreds of cases.
    monkeypatch.setenv("SCHEMACTL_CACHE", str(tmp_path / "cache"))
    repository = Scratch(tmp_path / "repository")
    first, *more = case["before"] if isinstance(case["before"], list) else [case["before"]]
    for files in ({"schemactl.yaml": make_project(case), **first}, *more):
        start = repository.commit(files)
    for number, files in enumerate(case.get("branch", ())):
        repository.commit(files, branch="work", start=None if number else start)
    if "meanwhile" in case:
        repository.commit(case["meanwhile"])
    if "branch" in case:
        repository.commit(case["after"], branch="work")
        repository.git("checkout", "-q", "work")
    else:
        repository.write(case["after"])
    assert found_in(repository.path, "main" if "branch" in case else None) == [
        with_defaults(finding) for finding in case["expect"]
    ]


def make_project(case: Case) -> str:
    """The project file of a case."""
    lines = {
        "version": 1,
        "pulsar": case.get("pulsar", "4.0"),
        "defaults": {"schema_compatibility_strategy": case.get("strategy", "BACKWARD")},
        **case.get("project", {}),
    }
    return yaml.safe_dump(lines)


def found_in(path: Path, base: str | None) -> list[dict[str, Any]]:
    """Return the findings of `check` in the working tree at `path`, or between `base` and HEAD."""
    request = CheckRequest(str(path), approved_ref=base, today=TODAY)
    try:
        report = run_within(60, partial(check_project, request))
    except DeclarationError as error:
        report = make_undecided_report(error)
    return [to_expectation(finding) for finding in report.findings]


def to_expectation(finding: Finding) -> dict[str, Any]:
    """Return the values of a finding that a case states."""
    # The waiver file takes no other rule.
    assert not finding.fingerprint or get_builtin_rules()[finding.rule].is_waivable, finding.rule
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "place": str(finding.source),
        "pointer": finding.pointer,
        "direction": finding.direction,
        "against": list(finding.against),
        "older": str(finding.older or ""),
    }


def with_defaults(finding: Case) -> dict[str, Any]:
    """Complete an expected finding with the defaults that its case omits."""
    severity = get_builtin_rules()[finding["rule"]].severity
    return {
        "severity": severity,
        "place": "None",
        "pointer": "",
        "direction": None,
        "against": [],
        "older": "",
        **finding,
    }


@pytest.mark.parametrize("case", of_kind("existing"))
def test_check_finds_exactly_this_in_catalogs_from_elsewhere(case: Case) -> None:
    name = TopicName.parse("shop/sales/orders")
    versions = tuple(SchemaVersion(number, make_info(definition)) for number, definition in enumerate(case["existing"]))
    approved = Catalog(topics={name: Topic(name, versions[-1].info, versions)} if versions else {})
    target = Catalog(topics={name: Topic(name, make_info(case["new"]))})
    report = check_catalog(target, approved_catalog=approved, project=Project(), history_label="a registry")
    assert [to_expectation(finding) for finding in report.findings] == [
        with_defaults(finding) for finding in case["expect"]
    ]


def make_info(definition: Mapping[str, str]) -> SchemaInfo:
    """The definition of a case."""
    return SchemaInfo(SchemaType[definition["type"]], definition["schema"].encode())


@pytest.mark.parametrize("case", of_kind("category"))
def test_a_category_of_bufs_finds_exactly_this(case: Case) -> None:
    old, new = compile_sides(case)
    violations = find_violations(old=parse(old.schema).image, new=parse(new.schema).image, category=case["category"])
    assert [{"rule": violation.rule, "place": str(new.locate(violation.pointer))} for violation in violations] == case[
        "expect"
    ]


@pytest.mark.parametrize("case", of_kind("checker"))
def test_the_opt_in_checker_finds_exactly_this(case: Case) -> None:
    old, new = compile_sides(case)
    violations = find_advanced_violations(reader=parse(new.schema).root, writer=parse(old.schema).root)
    assert [{"rule": violation.rule, "place": str(new.locate(violation.pointer))} for violation in violations] == case[
        "expect"
    ]
    answer = judge(
        [SchemaVersion(0, old)],
        new,
        CompatibilityStrategy(case["checker"]),
        Release.R5_0,
        checkers=("ProtobufNativeSchemaAdvancedCompatibilityCheck",),
    ).broker
    assert (answer.outcome is Outcome.OK) == (not case["expect"])
    assert answer.message.startswith(case["expect"][0]["rule"] if case["expect"] else "")


def compile_sides(case: Case) -> Sequence[SchemaInfo]:
    """The two definitions of a case."""
    return [all_compiled()[make_proto(case[side]).digest()] for side in ("old", "new")]


@cache
def all_compiled() -> Mapping[str, SchemaInfo]:
    """The definitions of every case, in one run of protoc: it takes longer to start than to work."""
    proto_cases = [parameter.values[0] for parameter in (*of_kind("category"), *of_kind("checker"))]
    protos = [make_proto(case[side]) for case in proto_cases for side in ("old", "new")]
    infos = compile_all(protos)
    assert not [result for result in infos if isinstance(result, InvalidSchema)]
    return {source.digest(): info for source, info in zip(protos, infos, strict=True) if isinstance(info, SchemaInfo)}


def make_proto(side: Side) -> Proto:
    """Return the files of one side to compile; the first message of the first file is the root."""
    files = {"click.proto": side} if isinstance(side, str) else side
    files = {path: text if _SYNTAX.match(text) else f"{_HEAD}{text}" for path, text in files.items()}
    entry, text = next(iter(files.items()))
    return Proto(find_root_name(text), entry, {path: content.encode() for path, content in files.items()})


def find_root_name(text: str) -> str:
    """The full name of the first message."""
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    message = re.search(r"^message (\w+)", text, re.MULTILINE)
    assert message
    return f"{package[1]}.{message[1]}" if package else message[1]


@pytest.mark.parametrize("case", of_kind("files"))
def test_lint_reports_the_expected_findings_and_makes_safe_fixes(case: Case, tmp_path: Path) -> None:
    for path, text in {"schemactl.yaml": make_project(case), **case["files"]}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    settings, top = declare_project.load_project(str(tmp_path))
    files = declare_files.WorktreeFiles(top)
    declared = reader.read(files, settings)
    assert declared.problems == ()
    report, linted = lint(declared, settings, frozenset(declared.catalog.topics))
    assert [to_expectation(finding) for finding in report.findings] == [
        with_defaults(finding) for finding in case["expect"]
    ]
    mended = {path: text.decode() for path, text in apply_harmless_edits(files, settings, declared, linted).items()}
    assert mended == case.get("fixed", {})


@pytest.mark.parametrize("rule", get_builtin_rules())
def test_a_rule_has_a_case_that_fires_it_and_a_near_miss(rule: str) -> None:
    fires = [any(finding["rule"] == rule for finding in case["expect"]) for case in read_rule_cases(rule).values()]
    assert set(fires) == {True, False}
    misses = [name for name, fired in zip(read_rule_cases(rule), fires, strict=True) if not fired]
    assert [name for name in misses if not name.startswith("near miss, ")] == []


def test_every_file_of_cases_is_of_a_rule() -> None:
    assert {path.stem for path in CASES.iterdir()} == set(get_builtin_rules())


DATA_OF_AVRO = [
    "READER_FIELD_MISSING_DEFAULT_VALUE",
    "TYPE_MISMATCH",
    "MISSING_ENUM_SYMBOLS",
    "MISSING_UNION_BRANCH",
    "NAME_MISMATCH",
    "FIXED_SIZE_MISMATCH",
    "AMBIGUOUS_ALIAS",
]


@pytest.mark.parametrize("rule", DATA_OF_AVRO)
@pytest.mark.parametrize("suffix", [".avsc", ".yaml"])
def test_a_rule_on_avro_points_into_files_and_into_yaml(rule: str, suffix: str) -> None:
    assert any(path.endswith(suffix) for path in paths_of(rule))


def paths_of(rule: str) -> Iterator[str]:
    """The files that findings of the rule are in."""
    for case in read_rule_cases(rule).values():
        yield from (finding["place"].split(":")[0] for finding in case["expect"] if finding["rule"] == rule)


@pytest.mark.parametrize("rule", get_builtin_rules().values(), ids=lambda rule: rule.id)
def test_rule_page_has_summary_reason_fix_and_source(rule: Rule) -> None:
    for text in (rule.summary, rule.why, rule.fix):
        assert re.fullmatch(r"[A-Z`].*[.!)]", text.strip(), re.DOTALL), text
    assert rule.summary.count(". ") == 0
    assert rule.example.strip()
    assert re.fullmatch(r"https://\S+", rule.link)


def test_a_rule_that_is_asked_for_is_in_that_category() -> None:
    for rule in get_builtin_rules().values():
        category = re.search(r"rules: (\w+)", rule.enabled_by)
        categories = [name for name, members in CATEGORIES.items() if rule.id in members]
        assert (category is not None) == (bool(categories) and rule.verdict != "data"), rule.id
        assert category is None or category[1] in categories


def test_the_index_has_a_row_for_each_page() -> None:
    folder = Path(__file__).parents[2] / "docs" / "rules"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert {path.stem for path in folder.iterdir()} == {*get_builtin_rules(), "README"}
    rule_ids: list[str] = []
    for chapter in index.split("\n## ")[1:]:
        head, *lines = chapter.splitlines()
        rows = [line for line in lines if line.startswith("| [")]
        for row, rule in zip(rows, [get_builtin_rules()[row[3:].partition("]")[0]] for row in rows], strict=True):
            severity = "" if rule.enabled_by else f" | {rule.severity}"
            assert row == f"| [{rule.id}]({rule.id}.md){severity} | {rule.summary} |"
            assert head == f"`{rule.enabled_by}`" if rule.enabled_by else head.startswith(CHAPTERS[rule.verdict])
            rule_ids.append(rule.id)
    assert rule_ids == [*get_builtin_rules()]


CHAPTERS = {"data": "Data", "broker": "Broker", "declaration": "Declarations", "tables": "Tables", "lint": "Lint"}
"""The first words of the chapters of the index, by the verdict of their rules."""

HEADS = ('syntax = "proto3";', 'syntax = "proto2";', 'edition = "2023";', "")


def has_two_texts(rule: Rule) -> bool:
    """Return whether the example consists of two texts of one file."""
    return rule.example.startswith("// before\n")


@pytest.mark.parametrize(
    "rule", [rule for rule in get_builtin_rules().values() if has_two_texts(rule)], ids=lambda rule: rule.id
)
def test_the_example_of_a_rule_on_protobuf_fires_it(rule: Rule) -> None:
    before, after = re.split(r"^// after.*\n", rule.example, flags=re.MULTILINE)
    texts = [complete_excerpt(side, head, rule.example) for head in HEADS for side in (before, after)]
    infos = compile_all([Proto(find_root_name(text), "a.proto", {"a.proto": text.encode()}) for text in texts])
    pairs = zip(infos[::2], infos[1::2], strict=True)
    assert any(rule.id in everything_found(old, new) for old, new in pairs)


def complete_excerpt(text: str, head: str, example: str) -> str:
    """Return the excerpt as a file that may compile under `head`, with the types that it only names, and a root for its enums."""
    text = re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^rpc .*$", r"service S { \g<0> }", text, flags=re.MULTILINE)
    named = set(re.findall(r"\b[A-Z][a-z]\w*", re.sub(r'"[^"]*"', "", example)))
    declared = set(re.findall(r"\b(?:message|enum|service) (\w+)", example))
    ranges = "extensions 100 to 199;" if "extend" in text else ""
    stubs = "".join(f"message {name} {{ {ranges} }}\n" for name in sorted(named - declared))
    enums = re.findall(r"\benum (\w+)", text)
    label = "" if "edition" in head + text else "optional"
    fields = "".join(f" {label} {name} f{number} = {number};" for number, name in enumerate(enums, start=2))
    return f"{head}\n{text}\nmessage Zoo {{ {label} string url = 1;{fields} }}\n{stubs}"


def everything_found(old: SchemaInfo | InvalidSchema, new: SchemaInfo | InvalidSchema) -> Iterator[str]:
    """Every rule that anybody finds."""
    if isinstance(old, InvalidSchema) or isinstance(new, InvalidSchema):
        return
    yield from (reason.rule for reason in resolve(reader=new, writer=old))
    before, after = parse(old.schema), parse(new.schema)
    for category in CATEGORIES:
        yield from (
            violation.rule for violation in find_violations(old=before.image, new=after.image, category=category)
        )
    yield from (violation.rule for violation in find_advanced_violations(reader=after.root, writer=before.root))


def test_every_example_fits_a_terminal_of_80_columns() -> None:
    long_lines = [
        (rule.id, line) for rule in get_builtin_rules().values() for line in rule.example.splitlines() if len(line) > 78
    ]
    assert long_lines == []


@pytest.mark.parametrize("rule", [get_builtin_rules()[name] for name in DATA_OF_AVRO], ids=lambda rule: rule.id)
def test_avro_example_of_a_rule_violates_it_at_the_marked_place(rule: Rule) -> None:
    # A comment is above each definition.
    definitions = re.findall(r"# (.+)\n((?:[^#].*\n?)+)", rule.example)
    written = "[]" if rule.id == "READER_FIELD_MISSING_DEFAULT_VALUE" else definitions.pop(0)[1]
    for comment, definition in definitions:
        reasons = {reason.rule for reason in resolve(reader=make_avro(definition), writer=make_avro(written))}
        assert reasons == (set() if "reads" in comment else {rule.id}), definition


def make_avro(definition: str) -> SchemaInfo:
    """The definition of a type, of a field, or of fields."""
    value = json.loads(definition)
    fields = value if isinstance(value, list) and all(isinstance(field, dict) for field in value) else [value]
    if all(isinstance(field, dict) and "type" in field and field["type"] not in ("enum", "fixed") for field in fields):
        value = {"type": "record", "name": "Order", "fields": fields}
    return SchemaInfo(SchemaType.AVRO, json.dumps(value).encode())
