"""The report on a branch before the merge is true after it, for merges and rebases."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import Scratch

from schemactl.cli import main

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"
APART = "#\n#\n#\n#\n"
"""Separates lines so that Git can merge their changes."""

STRATEGIES = st.sampled_from(
    ["BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FULL_TRANSITIVE", "ALWAYS_COMPATIBLE", "UNDEFINED"]
)
FIELDS = st.lists(
    st.sampled_from(["a", "b", "a = 0", "b = 0", "a = ''", "c = 0"]), unique_by=lambda field: field[0], max_size=3
)
TOPICS = st.sampled_from(["t0", "t1"])

EDITS = st.one_of(
    st.tuples(st.just("fields"), TOPICS, FIELDS),
    st.tuples(st.just("strategy"), TOPICS, STRATEGIES),
    st.tuples(st.just("partitions"), TOPICS, st.sampled_from([0, 2, 3])),
    st.tuples(st.just("deleted"), TOPICS, st.booleans()),
    st.tuples(st.just("namespace"), st.just(""), STRATEGIES),
    st.tuples(st.just("shared"), st.just(""), FIELDS),
    st.tuples(st.just("new"), st.just(""), st.booleans()),
)
"""The edits of commits: the kind, the topic and the new value."""


class Side:
    """The files as one side has them, edit by edit."""

    def __init__(self, name: str, like: Side | None = None) -> None:
        self.name = name
        self.facts: dict[tuple[str, str], Any] = dict(like.facts) if like else {}

    def edit(self, kind: str, topic: str, value: object) -> dict[str, str | None]:
        """Return the files that the edit changes."""
        self.facts[kind, topic] = value
        if kind == "namespace":
            return {"topics/ns.yaml": f"namespace: a/b\nschema_compatibility_strategy: {value}\n"}
        if kind == "shared":
            return {"money.avsc": _record("Money", value)}
        if kind == "new":
            text = "topic: a/b/new\nschema: {type: STRING}\n" if value else None
            return {f"topics/{self.name}.yaml": text}
        if kind == "fields":
            return {f"topics/{topic}.avsc": _record(topic, value, "Money" if topic == "t1" else "")}
        return {f"topics/{topic}.yaml": None if self.get_fact("deleted", topic) else self._write_declaration(topic)}

    def get_fact(self, kind: str, topic: str) -> Any:
        return self.facts.get((kind, topic))

    def _write_declaration(self, topic: str) -> str:
        strategy, partitions = self.get_fact("strategy", topic), self.get_fact("partitions", topic)
        lines = [
            f"topic: a/b/{topic}",
            f"schema_compatibility_strategy: {strategy}" if strategy else "# no strategy",
            f"partitions: {partitions}" if partitions else "# no partitions",
            f"schema: {{type: AVRO, definition: {topic}.avsc, references: [../money.avsc]}}",
        ]
        return f"\n{APART}".join(lines) + "\n"


def _record(name: str, fields: Any, uses: str = "") -> str:
    columns: list[dict[str, Any]] = [{"name": "m", "type": uses}] if uses else []
    for field in fields:
        part, _, default = field.partition(" = ")
        kind = "int" if default == "0" else "string"
        columns.append({"name": part, "type": kind, **({"default": 0 if kind == "int" else ""} if default else {})})
    return json.dumps({"type": "record", "name": name, "fields": columns}, indent=1)


def _select_changes(repository: Scratch, branch: str, files: dict[str, str | None]) -> dict[str, str | None]:
    """Return the changes without deletions of missing files, which fast-import rejects."""
    present_paths = set(repository.git("ls-tree", "-r", "--name-only", branch).splitlines())
    return {path: text for path, text in files.items() if text is not None or path in present_paths}


def _report(repository: Scratch, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code = main(["-C", str(repository.path), *arguments, "--format", "json"])
    out = capsys.readouterr()
    return json.loads(out.out) if code != 1 else out.err


def _count_findings(report: Any) -> Counter[Any]:
    return Counter(
        (
            finding["rule"],
            finding["severity"],
            finding["topic"],
            finding["pointer"],
            finding["direction"],
            tuple(finding["against"]),
        )
        for finding in report["findings"]
        if finding["rule"] != "STEP_REFUSED"
    )


def _list_topics(report: Any) -> list[Any]:
    return [
        (topic["topic"], topic["change"], topic["strategy"], topic["version"], topic["broker"], topic["data"])
        for topic in report["topics"]
    ]


@REPOSITORIES
@given(ours=st.lists(EDITS, min_size=2, max_size=6), theirs=st.lists(EDITS, max_size=5), updates=st.booleans())
def test_the_report_on_a_branch_is_true_after_its_merge(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ours: list[tuple[str, str, Any]],
    theirs: list[tuple[str, str, Any]],
    *,
    updates: bool,
) -> None:
    shutil.rmtree(tmp_path / "r", ignore_errors=True)
    repository = Scratch(tmp_path / "r")
    repository.git("config", "user.name", "Ada")
    start = Side("main")
    files: dict[str, str | None] = {"schemactl.yaml": PROJECT}
    for kind, topic, value in (
        *(("fields", topic, ["a"]) for topic in ("t0", "t1")),
        *(("partitions", topic, 2) for topic in ("t0", "t1")),
        ("shared", "", ["a"]),
        ("namespace", "", "BACKWARD"),
    ):
        files |= start.edit(kind, topic, value)
    repository.commit(files, "start")
    for side, branch, edits in ((Side("main", start), "main", theirs), (Side("work", start), "work", ours)):
        for number, (kind, topic, value) in enumerate(edits):
            begin = "main" if branch == "main" else branch if number else repository.id(1)
            changed = _select_changes(repository, begin, side.edit(kind, topic, value))
            repository.commit(
                changed, f"{branch} {number}", branch=branch, start=None if number or branch == "main" else 1
            )
    if updates:
        repository.git("checkout", "-q", "work")
        repository.git("merge", "-q", "--no-edit", "main", check=False)
        assume(not repository.git("ls-files", "--unmerged"))
    repository.git("checkout", "-q", "--detach", "work")
    before = _report(repository, capsys, "check", "--base", "main")
    if isinstance(before, str):
        # The declarations of the branch are invalid, with or without a merge.
        return

    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "--no-commit", "work", check=False)
    assume(not repository.git("ls-files", "--unmerged"))
    merged = _report(repository, capsys, "check")
    if isinstance(merged, str):
        assert "INVALID_AFTER_MERGE" in {finding["rule"] for finding in before["findings"]}
        return
    assert _count_findings(before) == _count_findings(merged)
    assert _list_topics(before) == _list_topics(merged)

    repository.git("reset", "-q", "--hard")
    repository.git("checkout", "-q", "-b", "rebased", "work")
    repository.git("rebase", "-q", "--empty=keep", "main", check=False)
    if repository.git("ls-files", "--unmerged"):
        return
    repository.git("branch", "-f", "main", "rebased")
    logged = _report(repository, capsys, "log", "--all")
    numbers = {topic["topic"]: topic["current"] for topic in logged["topics"]}
    for topic in before["topics"]:
        if topic["version"] is not None:
            assert numbers[topic["topic"]] == topic["version_if_rebased"]
