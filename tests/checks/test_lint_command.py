"""`schemactl lint`: exit codes, the index, `--fix`, and rules of other packages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import run_json, schemactl
from scratch import Scratch

from schemactl.core.environment import list_entry_points
from schemactl.report import CHECK_FORMATS

TOPIC = "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n"
FINE = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long", "default": 0}]}\n'
MISSPELT = FINE.replace("default", "defualt")


@pytest.fixture
def misspelled_repository(tmp_path: Path) -> Scratch:
    """Commit a project with one topic that has a misspelled key."""
    scratch = Scratch(tmp_path / "shop")
    files = {"schemactl.yaml": "version: 1\n", "namespaces/orders.yaml": TOPIC}
    scratch.commit({**files, "namespaces/orders.avsc": MISSPELT})
    scratch.git("reset", "-q", "--hard")
    return scratch


def test_warnings_fail_only_on_request_and_errors_always(misspelled_repository: Scratch) -> None:
    assert "1 topic linted: 1 warning." in schemactl(misspelled_repository, "lint").out
    schemactl(misspelled_repository, "lint", "--strict", code=100)
    misspelled_repository.write({"schemactl.yaml": "version: 1\nseverities: {KEY_IGNORED: error}\n"})
    schemactl(misspelled_repository, "lint", code=100)
    assert schemactl(misspelled_repository, "lint", "--namespace", "shop/web", code=64).err.startswith(
        "schemactl: --namespace shop/web: unknown namespace in the declared files"
    )


def test_what_does_not_parse_is_an_error_with_its_place(misspelled_repository: Scratch) -> None:
    misspelled_repository.write({"namespaces/orders.avsc": '{"type": "recrod"}'})
    assert "namespaces/orders.avsc:1:" in schemactl(misspelled_repository, "lint", code=1).err


@pytest.mark.parametrize("name", ["json", "text"])
def test_an_error_replaces_the_report_of_an_earlier_run(misspelled_repository: Scratch, name: str) -> None:
    report = misspelled_repository.path / "report"
    report.write_text("an earlier run")
    misspelled_repository.write({"namespaces/orders.avsc": '{"type": "recrod"}'})
    schemactl(misspelled_repository, "lint", "--format", f"{name}=report", code=1)
    text = report.read_text()
    assert "recrod" in text
    assert "NOT_DECIDED" in text


def test_the_index_is_linted_and_not_the_working_tree(misspelled_repository: Scratch) -> None:
    misspelled_repository.write({"namespaces/orders.avsc": FINE})
    assert "1 warning" in schemactl(misspelled_repository, "lint", "--staged").out
    misspelled_repository.git("add", "-A")
    misspelled_repository.write({"namespaces/orders.avsc": MISSPELT})
    assert "all fine" in schemactl(misspelled_repository, "lint", "--staged").out


def test_fix_edits_the_file_keeps_its_permissions_and_says_so(misspelled_repository: Scratch) -> None:
    path = misspelled_repository.path / "namespaces" / "orders.avsc"
    path.chmod(0o600)
    printed = schemactl(misspelled_repository, "lint", "--fix")
    assert printed.err.startswith("fixed namespaces/orders.avsc\n1 finding fixed")
    assert "all fine" in printed.out
    assert (path.read_text(), path.stat().st_mode & 0o777) == (FINE, 0o600)


def test_fix_leaves_a_definition_that_a_client_is_built_with(misspelled_repository: Scratch) -> None:
    """A running client has no default that somebody adds to its file."""
    nullable = '{"type": "record", "name": "Order", "fields": [{"name": "note", "type": ["null", "string"]}]}\n'
    client = "clients: [{name: billing, role: consumer, schema: orders.avsc, language: python}]\n"
    misspelled_repository.write({"namespaces/orders.yaml": TOPIC + client, "namespaces/orders.avsc": nullable})
    schemactl(misspelled_repository, "lint", "--fix", code=(0, 100))
    assert (misspelled_repository.path / "namespaces/orders.avsc").read_text() == nullable
    misspelled_repository.write({"namespaces/orders.yaml": TOPIC})
    schemactl(misspelled_repository, "lint", "--fix", code=(0, 100))
    assert '"default": null' in (misspelled_repository.path / "namespaces/orders.avsc").read_text()


def test_fix_names_git_diff_only_for_files_that_git_tracks(misspelled_repository: Scratch) -> None:
    def count_fixed() -> str:
        return schemactl(misspelled_repository, "lint", "--fix").err.splitlines()[-1]

    assert count_fixed() == "1 finding fixed; `git diff` shows how"
    further = {"namespaces/returns.yaml": TOPIC.replace("orders", "returns"), "namespaces/returns.avsc": MISSPELT}
    misspelled_repository.write(further)
    assert count_fixed() == "1 finding fixed"
    misspelled_repository.write({**further, "namespaces/orders.avsc": MISSPELT})
    assert count_fixed() == "2 findings fixed; `git diff` shows how, but not in 1 file that Git does not track"
    misspelled_repository.write(further)
    misspelled_repository.git("add", ".")
    assert count_fixed() == "1 finding fixed; `git diff` shows how"
    shutil.rmtree(misspelled_repository.path / ".git")
    misspelled_repository.path.joinpath("namespaces/orders.avsc").write_text(MISSPELT)
    assert count_fixed() == "1 finding fixed"


@pytest.mark.parametrize("name", CHECK_FORMATS)
def test_every_format_of_check_has_the_finding(name: str, misspelled_repository: Scratch) -> None:
    output = schemactl(misspelled_repository, "lint", "--format", name).out
    assert "KEY_IGNORED" in output
    assert "defualt" in output


OWNER_MISSING = """
from schemactl.checks.lint import Remark
from schemactl.core.rules import Rule

class OwnerMissing:
    rule = Rule("OUR_OWNER", "lint", "warning", "A record has no owner.", "Why.", "{}", "Add `owner`.", "https://example.com")

    def look(self, definition):
        for part in definition.of_kind("record"):
            if "owner" not in part.keys:
                yield Remark(part.parts, f"{part.full_name} has no owner.")
"""


@pytest.fixture
def entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make the entry points file of an installed package with a rule."""
    info = tmp_path / "our_rules-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-rules\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[schemactl.lint_rules]\nOUR_OWNER = our_rules:OwnerMissing\n")
    (tmp_path / "our_rules.py").write_text(OWNER_MISSING)
    monkeypatch.syspath_prepend(str(tmp_path))
    list_entry_points.cache_clear()
    yield info / "entry_points.txt"
    list_entry_points.cache_clear()


@pytest.mark.usefixtures("entry_point")
def test_another_package_brings_a_rule_with_severity_and_explanation(misspelled_repository: Scratch) -> None:
    misspelled_repository.write({"schemactl.yaml": "version: 1\nseverities: {OUR_OWNER: error, KEY_IGNORED: 'off'}\n"})
    findings = run_json(misspelled_repository, "lint", code=100)["findings"]
    assert [(finding["rule"], finding["severity"], finding["message"], finding["line"]) for finding in findings] == [
        ("OUR_OWNER", "error", "Order has no owner.", 1)
    ]
    assert "OUR_OWNER" in schemactl(misspelled_repository, "lint", "--format", "sarif", code=100).out
    assert "Add `owner`." in schemactl(misspelled_repository, "explain", "our_owner").out


def test_a_rule_of_another_package_takes_no_name_of_ours(entry_point: Path, misspelled_repository: Scratch) -> None:
    entry_point.write_text("[schemactl.lint_rules]\nKEY_IGNORED = our_rules:OwnerMissing\n")
    assert "is not a separate lint rule" in schemactl(misspelled_repository, "lint", code=1).err
