"""A plan and drift have the same content in every format; foreign names are shown and never interpreted."""

from __future__ import annotations

import json
import random
import re
import shutil
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from command import schemactl
from consumers import markdown_faults, workflow_commands
from scratch import Scratch, record
from test_machine_formats import HOSTILE

from schemactl.core.json_values import to_json
from schemactl.core.names import NamespaceName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.report import TARGET_FORMATS, render_target_reports
from schemactl.report.document import ReportLine, TargetReport, UnknownTargetDocument

PROJECT = (
    'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/a.db"}, other: {registry: "sqlite:.schemactl/b.db"}}\n'
)
NAMESPACE = "namespace: shop/sales\nschema_compatibility_strategy: FULL_TRANSITIVE\n"
ADDRESS = re.compile(r"sha256:[0-9a-f]{64}")


def _declare_topic(name: str) -> str:
    return f"topic: shop/sales/{name}\nschema: {{type: AVRO, definition: {name}.avsc}}\n"


@pytest.fixture(scope="module")
def replay_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics, one with a version that today's strategy rejects, so that a new registry cannot have it."""
    scratch = Scratch(tmp_path_factory.mktemp("reports") / "repository")
    fine: dict[str, str | bytes | None] = {
        "namespaces/fine.yaml": _declare_topic("fine"),
        "namespaces/fine.avsc": record("id"),
    }
    loose = {"namespaces/sales.yaml": NAMESPACE.replace("FULL_TRANSITIVE", "ALWAYS_COMPATIBLE")}
    old = {"namespaces/old.yaml": _declare_topic("old"), "namespaces/old.avsc": record("id")}
    scratch.commit({"schemactl.yaml": PROJECT, **loose, **fine, **old})
    scratch.commit({"namespaces/old.avsc": record("id", "more")})
    scratch.commit({"namespaces/sales.yaml": NAMESPACE})
    scratch.flush()
    return scratch.path


def _read_reports(repository: Path, command: str, *options: str, code: int) -> dict[str, str]:
    formats = [f"--format={name}=../out/{name}" for name in TARGET_FORMATS]
    schemactl(repository, command, *options, *formats, code=code)
    return {name: (repository.parent / "out" / name).read_text(encoding="utf-8") for name in TARGET_FORMATS}


def test_every_format_of_a_plan_has_summary_steps_rejections_and_digest(replay_repository: Path) -> None:
    reports = _read_reports(replay_repository, "plan", "--target", "local", code=100)
    document = json.loads(reports["json"])
    ((rejected,), (digest,)) = document["left_out"], {*ADDRESS.findall(reports["text"])}
    summary = reports["text"].splitlines()[-2]
    assert (summary.startswith("Plan: "), "left out: 1 topic" in summary) == (True, True)
    for name in ("markdown", "github", "html"):
        assert summary in reports[name], name
        assert digest in reports[name], name
        assert "Fix: " in reports[name], name
        assert rejected["topic"] in reports[name], name
    for name in ("markdown", "html"):
        assert "shop/sales/fine" in reports[name], name
    assert document["digest"] == digest
    assert [*workflow_commands(reports["github"])] == ["error"]
    assert markdown_faults(reports["markdown"]) == []
    assert reports["markdown"].startswith("<!-- schemactl:report:plan local -->\n")
    assert reports["markdown"].index("❌ <b>") < reports["markdown"].index("```diff")


def test_every_format_of_drift_has_summary_and_differences(replay_repository: Path, tmp_path: Path) -> None:
    replay_repository = shutil.copytree(replay_repository, tmp_path / "repository")
    schemactl(replay_repository, "apply", "--target", "local", "-y", code=3)
    with closing(EmbeddedRegistry(str(replay_repository / ".schemactl/a.db"))) as registry:
        registry.set_namespace_policies(NamespaceName("shop", "sales"), Policies(CompatibilityStrategy.FORWARD))
    reports = _read_reports(replay_repository, "drift", "--target", "local", code=0)
    document = json.loads(reports["json"])
    summary = reports["text"].splitlines()[-1]
    assert summary.startswith(f"Drift: {len(document['differences'])} differences in ")
    for name in ("markdown", "github", "html"):
        assert summary in reports[name], name
        assert all(item["message"] in unescape(reports[name]) for item in document["differences"]), name
    assert {*workflow_commands(reports["github"])} == {"warning"}
    assert markdown_faults(reports["markdown"]) == []


def test_a_report_on_several_targets_has_each_of_them(replay_repository: Path) -> None:
    reports = _read_reports(replay_repository, "plan", "--all-targets", code=100)
    assert [json.loads(line)["target"] for line in reports["json"].splitlines()] == ["local", "other"]
    assert reports["markdown"].count("```diff") == reports["text"].count("Digest: ") == 2
    assert re.findall(r"<h2>(\w+)</h2>", reports["html"]) == ["local", "other"]


def test_file_states_that_the_result_is_unknown_if_the_command_fails(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repository")
    scratch.commit({"schemactl.yaml": PROJECT, "namespaces/sales.yaml": NAMESPACE})
    scratch.write({".schemactl/a.db": "no database"})
    schemactl(scratch, "plan", "--target", "gone", "--format=markdown=a.md", code=64)
    assert not (scratch.path / "a.md").exists()
    done = schemactl(scratch, "plan", "--target", "local", "--format=markdown=a.md", code=1)
    text = unescape((scratch.path / "a.md").read_text(encoding="utf-8")).replace("\u200b", "")
    (problem,) = re.findall(r"^schemactl: (.*)", done.err, re.MULTILINE)
    assert problem in text
    assert "❌" in text
    # So it replaces the comment on that target.
    assert text.startswith("<!-- schemactl:report:plan local -->\n")


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_standard_output_has_the_error_in_the_formats_of_programs(tmp_path: Path, command: str) -> None:
    scratch = Scratch(tmp_path / "repository")
    scratch.commit({"schemactl.yaml": PROJECT, "namespaces/sales.yaml": NAMESPACE})
    scratch.write({".schemactl/a.db": "no database"})
    done = schemactl(scratch, command, "--target", "local", "--format", "json", code=1)
    document = json.loads(done.out)
    assert (document["format_version"], document["target"]) == (1, "local")
    assert document["problem"].splitlines()[0] == done.err.splitlines()[0].removeprefix("schemactl: ")
    done = schemactl(scratch, command, "--target", "local", "--format", "github", code=1)
    assert [*workflow_commands(done.out)] == ["error"]
    assert schemactl(scratch, command, "--target", "local", code=1).out == ""


def _draw_hostile_report(chance: random.Random) -> tuple[TargetReport, UnknownTargetDocument]:
    def draw_words() -> str:
        return "a" + "".join(chance.choices([*HOSTILE, "word "], k=6))

    def block() -> tuple[ReportLine, ...]:
        signs = chance.choices(["+", "-", "~", "!", "=", ""], k=3)
        return tuple(ReportLine(draw_words(), sign, depth) for depth, sign in enumerate(signs))  # type: ignore[arg-type]

    command = chance.choice(["plan", "drift"])
    parts = (tuple(block() for _ in range(20)), (block(),))
    report = TargetReport(command, draw_words(), draw_words(), *parts, (draw_words(), "bad"))  # type: ignore[arg-type]
    return report, UnknownTargetDocument(target=draw_words(), problem=draw_words())


@pytest.mark.parametrize("name", TARGET_FORMATS)
def test_names_in_a_plan_are_text_alone(name: str) -> None:
    for seed in range(30):
        target_report, document = _draw_hostile_report(random.Random(seed))  # noqa: S311  seeded
        for several in (1, 2):
            text = "".join(render_target_reports([(target_report, document)] * several, name))
            if name == "github":
                assert {*workflow_commands(text)} <= {"error", "warning"}
            elif name == "markdown":
                assert markdown_faults(text) == []
            elif name == "html":
                assert "<script>alert" not in text
            if name != "text":
                assert not {"\x1b", "\x00", "\u202e", "\r"} & {*text}
            if name == "json":
                assert (
                    [json.loads(line) for line in text.splitlines()] == [to_json(document)] * several
                    if several > 1
                    else True
                )


def test_a_comment_on_a_large_plan_is_within_its_limit() -> None:
    blocks = tuple(
        (ReportLine(f"topic t{number}", "+"), ReportLine("v0 " + "x" * 200, "+", 1)) for number in range(2_000)
    )
    target_report = TargetReport("plan", "prod", "head", blocks, blocks[:300], ("Plan: much.", "doubtful"))
    text = "".join(render_target_reports([(target_report, None)], "markdown"))
    assert len(text) < 65_536
    assert re.search(
        r"@@ \d+ more: run `schemactl plan` to see them @@|_\d+ more: run `schemactl plan` to see them\._", text
    )


def test_markdown_of_drift_has_sentences_as_text_and_signed_lines_as_code() -> None:
    block = (
        ReportLine("topic shop/sales/orders", strong="shop/sales/orders"),
        ReportLine("numbers apart: messages would be misread.", depth=1, strong="numbers apart"),
        ReportLine("Against Git's version 1, the nearest:", depth=2),
        ReportLine("Order.id: long", "+", 3),
        ReportLine("Order.at: int", "-", 3),
        ReportLine("Cause: a `person`.", depth=2),
        ReportLine("foreign version: v3.", depth=1, strong="foreign version"),
    )
    plain_block = (ReportLine("topic shop/sales/refunds", "+"), ReportLine("partitions: 4", "+", 1))
    target_report = TargetReport("drift", "prod", "head", (block, plain_block), (), ("Drift.", "doubtful"))
    text = "".join(render_target_reports([(target_report, None)], "markdown"))
    assert markdown_faults(text) == []
    changes = text.partition("<details open><summary>What differs</summary>\n\n")[2]
    assert changes.split("\n\n")[:-1] == [
        "**topic shop/sales/orders**",
        "❌ **numbers apart**: messages would be misread.  \nAgainst Git's version 1, the nearest:",
        "```diff\n+ Order.id: long\n- Order.at: int\n```",
        "Cause: a <code>person</code>.",
        "⚠️ **foreign version**: v3.",
        "```diff\n+ topic shop/sales/refunds\n+   partitions: 4\n```",
    ]
