"""A topic that moves to the other domain keeps its versions, which both domains share in the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import process, run_json, schemactl
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = (
    "version: 1\nroots: [topics]\napproved: main\ntargets: {local: {registry: 'sqlite:registry.db'}}\n"
    "defaults: {schema_compatibility_strategy: BACKWARD}\n"
)
DOMAINS = ["persistent", "non-persistent"]
BREAKING, FINE = record("id", "reason"), record("id", reason=1)
STRICT = "schema_compatibility_strategy: FULL\n"


def name(domain: str) -> str:
    return f"{domain}://shop/sales/orders"


class Work:
    """A repository with a topic that is registered in one domain and redeclared in the other on a branch."""

    def __init__(self, path: Path, domain: str, more: str = "") -> None:
        self.domain = domain
        self.other = DOMAINS[1 - DOMAINS.index(domain)]
        self.scratch = Scratch(path / "r")
        files = {"topics/orders.yaml": write_declaration(name(domain), more=more), "topics/orders.avsc": record("id")}
        self.scratch.commit({"schemactl.yaml": PROJECT, **files}, "approved")
        self.scratch.git("symbolic-ref", "HEAD", "refs/heads/work")

    def declare_in_other_domain(self, definition: str, more: str = "") -> None:
        """Declare the topic in the other domain."""
        own = write_declaration(name(self.other), "other.avsc", more=more)
        gone = {"topics/orders.yaml": None, "topics/orders.avsc": None}
        files = {"topics/other.yaml": own, "topics/other.avsc": definition, **gone}
        self.scratch.commit(files, "redeclared", branch="work", start=1)
        self.scratch.flush()

    def report(self, *command: str, code: int = 0) -> Any:
        """Return the report of a command that exits with `code`."""
        return run_json(self.scratch, *command, code=code)

    def hook(self) -> int:
        """Run the hook in a separate process, and return its exit code."""
        return process(self.scratch, "check", "--staged").code


def list_error_rules(report: Any) -> set[str]:
    return {finding["rule"] for finding in report["findings"] if finding["severity"] == "error"}


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_break_in_the_other_domain_is_found_by_check_and_by_plan(tmp_path: Path, domain: str) -> None:
    work = Work(tmp_path, domain)
    work.declare_in_other_domain(BREAKING)
    for option in ([], ["--base", "main"], ["--staged"]):
        if option == ["--staged"]:
            work.scratch.uncommit()
        report = work.report("check", *option, code=100)
        assert list_error_rules(report) == {"READER_FIELD_MISSING_DEFAULT_VALUE", "BROKER_INCOMPATIBLE"}
        (seen,) = (topic for topic in report["topics"] if topic["topic"] == name(work.other))
        assert (seen["change"], seen["version"]) == ("new version", 1)
    assert work.hook() == 100
    work.scratch.git("commit", "-q", "-m", "redeclared")
    # If the change is approved anyway, the plan repeats the finding of the check.
    schemactl(work.scratch, "apply", "--auto-approve")
    work.scratch.git("branch", "-f", "main", "work")
    work.report("plan", code=100)


@pytest.mark.parametrize("domain", DOMAINS)
def test_numbers_go_on_in_the_other_domain_for_check_log_and_plan(tmp_path: Path, domain: str) -> None:
    work = Work(tmp_path, domain)
    work.declare_in_other_domain(FINE)
    schemactl(work.scratch, "apply", "--auto-approve")
    report = work.report("check", "--base", "main")
    (seen,) = (topic for topic in report["topics"] if topic["topic"] == name(work.other))
    assert (seen["change"], seen["version"]) == ("new version", 1)
    assert [work.hook() for _ in range(2)] == [0, 0]
    work.scratch.git("branch", "-f", "main", "work")
    log = work.report("log", name(work.other))
    assert [version["version"] for version in log["topics"][0]["versions"]] == [0, 1]
    schemactl(work.scratch, "apply", "--auto-approve")
    schemactl(work.scratch, "plan", "--detailed-exitcode")
    numbers = work.report("log", name(work.other), "--target", "local")
    assert [(version["git"], version["registry"]) for version in numbers["topics"][0]["versions"]] == [(0, 0), (1, 1)]


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_strategy_is_relaxed_in_the_other_domain_as_in_its_own(tmp_path: Path, domain: str) -> None:
    work = Work(tmp_path, domain, more=STRICT)
    work.declare_in_other_domain(BREAKING, more=STRICT.replace("FULL", "ALWAYS_COMPATIBLE"))
    assert list_error_rules(work.report("check", "--base", "main", code=100)) == {"STRATEGY_RELAXED"}


def test_the_same_definition_in_the_other_domain_is_the_version_it_was(tmp_path: Path) -> None:
    work = Work(tmp_path, "persistent")
    work.declare_in_other_domain(record("id"))
    report = work.report("check", "--base", "main")
    (seen,) = (topic for topic in report["topics"] if topic["topic"] == name("non-persistent"))
    assert (seen["version"], list_error_rules(report)) == (0, set())
