"""Every rule of the catalogue, by cases: what fires it, what only looks like it, and the place that is shown.

`tests/cases/<RULE>.yaml` maps names of cases to cases. There are three kinds:

    before, after, expect       a repository: the approved files (or a list of such, a commit each), then what changes in
                                the working tree (null deletes), and all findings of `check` in their order. `strategy`,
                                `pulsar` and `project` say what is in `schemactl.yaml` beyond its first lines.
    category, old, new, expect  `.proto` texts (or files by path, the first one declares `message`), buf's category, and all
                                its findings, each with the place in the newer text
    checker, old, new, expect   the same for Pulsar's opt-in checker, in the direction new_reads_old

A near miss is a case that does not expect its file's rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from scratch import Scratch

from schemactl import declare, history
from schemactl.check import check
from schemactl.formats.protobuf_native.compile import Proto

CASES = Path(__file__).parent / "cases"

Case = Mapping[str, Any]


@cache
def cases(rule: str) -> Mapping[str, Case]:
    """The cases of one rule, by name."""
    found: dict[str, Case] = yaml.safe_load((CASES / f"{rule}.yaml").read_text(encoding="utf-8"))
    return found


def of_kind(key: str) -> Iterator[Any]:
    """The cases that have `key`, as pytest's parameters."""
    for path in sorted(CASES.glob("*.yaml")):
        for name, case in cases(path.stem).items():
            if key in case:
                yield pytest.param(case, id=f"{path.stem}: {name}")


@pytest.mark.parametrize("case", of_kind("before"))
def test_check_finds_exactly_this(case: Case, tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "repository")
    first, *more = case["before"] if isinstance(case["before"], list) else [case["before"]]
    for files in ({"schemactl.yaml": project(case), **first}, *more):
        repository.commit(files)
    repository.write(case["after"])
    assert found_by_check(repository.path) == [with_defaults(finding) for finding in case["expect"]]


def project(case: Case) -> str:
    """The project file of a case."""
    lines = {
        "version": 1,
        "pulsar": case.get("pulsar", "4.0"),
        "defaults": {"schema_compatibility_strategy": case.get("strategy", "BACKWARD")},
        **case.get("project", {}),
    }
    return yaml.safe_dump(lines)


def found_by_check(path: Path) -> list[dict[str, Any]]:
    """What `schemactl check` finds in the working tree at `path`."""
    settings, top = declare.load_project(str(path))
    declared = declare.read(declare.WorktreeFiles(top), settings)
    assert not declared.problems
    with history.Repository.open(str(path)) as repository:
        approved = history.read(repository, settings).catalog
        report = check(
            declared.catalog,
            base=approved,
            approved=approved,
            project=settings,
            label="main",
            declared=declared.findings,
        )
    return [
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "place": str(finding.source),
            "pointer": finding.pointer,
            "direction": finding.direction,
            "against": list(finding.against),
            "older": finding.older,
        }
        for finding in report.findings
    ]


def with_defaults(finding: Mapping[str, Any]) -> dict[str, Any]:
    """An expected finding with what its case leaves out."""
    return {"pointer": "", "direction": None, "against": [], "older": "", **finding}
