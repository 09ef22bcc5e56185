"""One check judges all targets with their releases, version numbers and overlays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from estate import Estate, make_order_info
from scratch import record, write_declaration

from schemactl.declare.document import TopicDocument
from schemactl.history.approved_history import DeclaringFile, DefinitionLoader
from schemactl.history.early_exit import is_nothing_staged

pytestmark = pytest.mark.slow

PROJECT = """\
version: 1
targets:
  dev: {registry: "sqlite:.schemactl/dev.db", pulsar: "4.2"}
  test: {registry: "sqlite:.schemactl/test.db", pulsar: "4.2.4", labels: {region: eu}}
  stage: {registry: "sqlite:.schemactl/stage.db", overlays: environments/live.yaml, exclude: [clicks]}
  prod: {registry: "sqlite:.schemactl/prod.db", overlays: [environments/live.yaml, environments/prod.yaml]}
"""
LIVE = "namespace: shop/sales\nschema_compatibility_strategy: FULL_TRANSITIVE\n"
PROD = "topic: shop/sales/orders\npartitions: 4\nschema_compatibility_strategy: BACKWARD\n"
TARGETS = ("dev", "test", "stage", "prod")
CLICKS = "topic: shop/sales/clicks\nschema: {type: AVRO, definition: clicks.avsc}\n"

ORDERS = "namespaces/orders.avsc"
REQUIRED = record("id", note=0).replace(', "default": 0', "")
EDITS: dict[str, dict[str, str | bytes | None]] = {
    "nothing": {},
    "a field goes, which old readers want": {ORDERS: record("id")},
    "a field without default, as the foreign version": {ORDERS: REQUIRED},
    "another type": {ORDERS: record("id", "note", name="Other")},
    "two topics": {ORDERS: record("id", more=1), "namespaces/clicks.avsc": record("id", "more")},
    "a strategy": {"namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n"},
    "fewer partitions than on a target": {"namespaces/orders.yaml": write_declaration(more="partitions: 2\n")},
    "an overlay": {"environments/prod.yaml": PROD.replace("BACKWARD", "FORWARD"), ORDERS: record("id", more=1)},
    "a topic goes": {"namespaces/clicks.yaml": None, "namespaces/clicks.avsc": None},
    "a new topic": {"namespaces/new.yaml": "topic: shop/sales/new\nschema: {type: STRING}\n"},
}


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Approve orders with two versions, a foreign one on prod, and clicks, with overlays on four targets."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=PROJECT.replace("clicks", "orders"))
    estate.scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "environments/live.yaml": LIVE,
            "environments/prod.yaml": PROD,
            "namespaces/clicks.yaml": CLICKS,
            "namespaces/clicks.avsc": record("id"),
        }
    )
    estate.commit_orders("id", note=0)
    numbers = "shop/sales/orders: {2: {foreign: theirs.avsc, type: AVRO, reason: by hand, accepted: 2026-11-22}}\n"
    theirs = make_order_info("id", theirs=0).schema.decode()
    estate.scratch.commit({"numbers/prod.yaml": numbers, "numbers/theirs.avsc": theirs})
    estate.scratch.git("checkout", "-q", "-b", "work")
    return estate


def run_check(estate: Estate, *arguments: str) -> Any:
    return estate.run_json("check", *arguments, code=(0, 100))


def list_texts(report: Any, key: str, target: str) -> list[str]:
    """Return the entries of a report for one target, without attributes that name targets."""
    entries = [entry for entry in report[key] if target in entry["targets"] or not entry["targets"]]
    left_out = ("targets", "cause")
    texts = [{name: value for name, value in finding.items() if name not in left_out} for finding in entries]
    return sorted(json.dumps(text).replace(f" --target {target}", "") for text in texts)


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("base", [(), ("--base", "main")])
def test_one_check_says_for_each_target_what_a_check_for_it_alone_says(
    estate: Estate, edit: str, base: tuple[str, ...]
) -> None:
    if base:
        estate.scratch.commit({"namespaces/more.yaml": "topic: shop/sales/more\n", **EDITS[edit]})
        estate.scratch.git("checkout", "-q", "main")
        estate.scratch.commit({"environments/live.yaml": LIVE.replace("FULL_", "BACKWARD_")})
        estate.scratch.git("checkout", "-q", "work")
    else:
        estate.scratch.write(EDITS[edit])
    together = run_check(estate, *base)
    assert together["targets"] == {"dev": "4.2", "test": "4.2", "stage": "4.0", "prod": "4.0"}
    for target in TARGETS:
        alone = run_check(estate, *base, "--target", target)
        for key in ("findings", "topics", "policies"):
            assert list_texts(together, key, target) == list_texts(alone, key, target)


def list_rules(report: Any, key: str = "targets") -> set[tuple[str, ...]]:
    return {(finding["rule"], *finding[key]) for finding in report["findings"]}


def test_a_finding_names_the_targets_for_which_it_holds(estate: Estate) -> None:
    estate.scratch.write(EDITS["a field without default, as the foreign version"])
    targets_by_rule = list_rules(run_check(estate))
    # Version 0 has no `note`: FULL_TRANSITIVE on stage compares with it; BACKWARD on prod compares only with the foreign version.
    missing = "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert {finding for finding in targets_by_rule if finding[0] == missing} == {(missing, "stage"), (missing, "prod")}
    text = estate.run("check", code=100).out
    assert "messages of version 0 do not carry it, and reading one throws.\n                 For stage.\n" in text
    assert "messages of version 2 do not carry it, and reading one throws.\n                 For prod.\n" in text
    assert "orders (dev, test)  version 1, will be 2  BACKWARD " in text
    assert "for Pulsar 4.0 and 4.2, 1 changed, 1 failed" in text


def test_a_topic_that_did_not_change_is_read_for_no_target(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    run_check(estate)
    read: list[str] = []
    read_document = DefinitionLoader.read_document

    def count_read(loader: DefinitionLoader, file: DeclaringFile) -> TopicDocument:
        read.append(file.schema_id)
        return read_document(loader, file)

    monkeypatch.setattr(DefinitionLoader, "read_document", count_read)
    estate.scratch.write(EDITS["a field without default, as the foreign version"])
    run_check(estate)
    assert {*read} == {"shop/sales/orders"}


def test_an_overlay_that_is_staged_ends_the_early_exit(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    estate.scratch.flush()
    monkeypatch.chdir(estate.scratch.path)
    run_check(estate, "--staged")
    assert is_nothing_staged()
    estate.scratch.write({"environments/prod.yaml": PROD.replace("4", "8")})
    estate.scratch.git("add", "environments")
    assert not is_nothing_staged()


def test_where_nothing_differs_no_target_is_named(tmp_path: Path) -> None:
    project = 'version: 1\ntargets: {a: {registry: "sqlite:a.db"}, b: {registry: "sqlite:b.db", pulsar: "4.1"}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.write({ORDERS: record("id", "more")})
    [finding, *_] = run_check(estate)["findings"]
    assert finding["targets"] == ["a", "b"]
    text = estate.run("check", code=100).out
    assert "For a" not in text
    assert "(a" not in text


def test_topics_without_a_target_are_judged_as_declared(tmp_path: Path) -> None:
    project = 'version: 1\ntargets: {a: {registry: "sqlite:a.db", include: [clicks]}}\n'
    estate = Estate(tmp_path / "shop", project=project.replace("clicks", "orders"))
    estate.scratch.commit({"schemactl.yaml": project, "namespaces/clicks.yaml": "topic: shop/sales/clicks\n"})
    estate.scratch.write({ORDERS: record("id", "more")})
    assert ("READER_FIELD_MISSING_DEFAULT_VALUE",) in list_rules(run_check(estate))


EFFECTS = {
    "an overlay that protects less": (
        {"environments/prod.yaml": PROD.replace("BACKWARD", "ALWAYS_COMPATIBLE")},
        "environments/prod.yaml",
        "1 topic (persistent://shop/sales/orders) on prod is ALWAYS_COMPATIBLE, no longer BACKWARD",
    ),
    "an overlay that protects more": (
        {"environments/prod.yaml": PROD.replace("BACKWARD", "FULL_TRANSITIVE")},
        "environments/prod.yaml",
        "1 topic (persistent://shop/sales/orders) on prod is FULL_TRANSITIVE, no longer BACKWARD",
    ),
    "an overlay that is removed": (
        {"environments/live.yaml": "topic: shop/sales/clicks\npartitions: 2\n"},
        "environments/live.yaml",
        "schema_compatibility_strategy of shop/sales on stage is not set (was FULL_TRANSITIVE)",
    ),
    "a topic that is excluded": (
        {"schemactl.yaml": PROJECT.replace("prod.db", 'prod.db", exclude: [orders], numbers: "n.yaml')},
        "schemactl.yaml",
        "prod no longer has 1 topic (persistent://shop/sales/orders)",
    ),
    "an older release": (
        {"schemactl.yaml": PROJECT.replace('pulsar: "4.2"', 'pulsar: "4.0"')},
        "schemactl.yaml",
        "`targets.dev.pulsar` is 4.0 (was 4.2)",
    ),
    "a target that goes": (
        {"schemactl.yaml": "".join(PROJECT.splitlines(keepends=True)[:-1])},
        "schemactl.yaml",
        "the target prod is no longer set",
    ),
    "a target that comes": (
        {"schemactl.yaml": PROJECT + '  more: {registry: "sqlite:more.db", overlays: environments/live.yaml}\n'},
        "schemactl.yaml",
        "the target more is",
    ),
}


@pytest.mark.parametrize("change", EFFECTS)
def test_a_changed_target_or_overlay_is_a_warning_with_its_effect(estate: Estate, change: str) -> None:
    files, path, effect = EFFECTS[change]
    estate.scratch.write(files)
    warnings = [finding for finding in run_check(estate)["findings"] if finding["rule"] == "GATE_CHANGED"]
    assert path in {warning["file"] for warning in warnings}
    assert any(f"After the merge: {effect}" in warning["message"] for warning in warnings)
    # A changed schema makes no difference.
    estate.scratch.write({ORDERS: record("id", note=0, more=1)})
    assert "warning[GATE_CHANGED]: " in estate.run("check", code=(0, 100)).out


@pytest.mark.parametrize(
    ("prod", "effects"),
    [
        ("after: [stage]", ["`targets.prod.promoted` is no longer set (was origin/promoted/prod)"]),
        ("after: [stage], promoted: main", ["`targets.prod.promoted` is main (was origin/promoted/prod)"]),
        ("promoted: origin/promoted/prod", ['`targets.prod.after` is no longer set (was ["stage"])']),
        ("after: [stage], promoted: origin/promoted/prod", []),
    ],
)
def test_a_target_that_gets_sooner_what_is_approved_changes_the_gate(
    tmp_path: Path, prod: str, effects: list[str]
) -> None:
    def make_project(more: str) -> str:
        names = (("dev", ""), ("stage", ""), ("prod", f", {more}"))
        targets = (f'  {name}: {{registry: "sqlite:{name}.db"{more}}}\n' for name, more in names)
        return "version: 1\ntargets:\n" + "".join(targets)

    estate = Estate(tmp_path / "shop", project=make_project("promoted: origin/promoted/prod, after: [stage]"))
    estate.scratch.write({"schemactl.yaml": make_project(prod)})
    findings = run_check(estate)["findings"]
    assert [finding["rule"] for finding in findings] == ["GATE_CHANGED" for _ in effects]
    lines = [line for finding in findings for line in finding["message"].splitlines()[1:]]
    assert lines == [f"After the merge: {effect}." for effect in effects]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "topic: shop/sales/order\npartitions: 4\n---\nnamespace: shop/sale\nschema_validation_enforced: true\n",
            [
                "environments/prod.yaml:1:8: no file declares the topic persistent://shop/sales/order; did you mean persistent://shop/sales/orders?",
                "environments/prod.yaml:4:12: no file declares the namespace shop/sale; did you mean shop/sales?",
            ],
        ),
        (
            "topic: shop/sales/orders\nowner: me\nschema: {type: STRING}\npartition: 4\n---\ntopic: shop/sales/clicks\n---\n[]\n",
            [
                "environments/prod.yaml:2:1: `owner` is the same on every target\n  Fix: set it where the topic is declared",
                "environments/prod.yaml:3:1: `schema` is the same on every target",
                "environments/prod.yaml:4:1: unknown key `partition`\n  Fix: write `partitions`",
                "environments/prod.yaml:6:8: the overlay of this topic sets no value",
                "environments/prod.yaml:8:1: expected a mapping, found a list",
            ],
        ),
        (
            "namespace: shop/sales\nis_allow_auto_update_schema: false\nowner: me\n",
            [
                "environments/prod.yaml:3:1: `owner` is the same on every target\n  Fix: set it where the namespace is declared"
            ],
        ),
        (
            "namespace: shop/sales\nis_allow_auto_update_schema: false\n---\nnamespace: shop/sales\nschema_validation_enforced: true\n",
            [
                "environments/prod.yaml:4:12: shop/sales has a second overlay in this file; the first is at environments/prod.yaml:1:12"
            ],
        ),
        (None, ["schemactl.yaml:6:84: there is no file `environments/prod.yaml`"]),
    ],
)
def test_a_wrong_overlay_is_reported_with_its_location(estate: Estate, text: str | None, messages: list[str]) -> None:
    path = estate.scratch.path / "environments/prod.yaml"
    path.unlink() if text is None else path.write_text(text)
    error = estate.run("check", code=1).err
    for message in messages:
        assert message in error


def test_globs_without_a_match_and_missing_names_of_a_target_are_reported(estate: Estate) -> None:
    unused = PROJECT.replace("exclude: [clicks]", "exclude: [clicks, click]")
    estate.scratch.write({"schemactl.yaml": unused})
    note = "`exclude` of stage leaves out nothing: no topic is called `click`, now or before"
    assert note in estate.run("check", code=(0, 100)).err
    project = unused.replace("click]", "click], include: [orders, '*click']")
    project = project.replace('"4.2"}', '"4.2", namespaces: {shop/web: live/web}}')
    estate.scratch.write({"schemactl.yaml": project})
    error = estate.run("check", code=1).err
    assert (
        "schemactl.yaml:3:74: target dev: neither its `tenants` nor its `namespaces` have a name for shop/sales"
        in error
    )
    assert "no topic is called `*click`, now or before" in error


def test_plan_and_drift_have_what_the_target_has(estate: Estate) -> None:
    estate.scratch.git("checkout", "-q", "main")
    output = estate.run("plan", "--target", "prod", code=(0, 100)).out
    assert "4 partitions" in output
    assert "strategy: FULL_TRANSITIVE" in output
    assert "strategy: BACKWARD" in output
    stage = estate.run("apply", "--target", "stage", "--auto-approve").out
    assert "clicks" not in stage
    assert "FULL_TRANSITIVE" in stage
    assert "No drift" in estate.run("drift", "--target", "stage").out
    assert "FULL" not in estate.run("apply", "--target", "dev", "--auto-approve").out
    # The settings of the working tree count after their approval.
    estate.scratch.write({"environments/live.yaml": LIVE.replace("FULL_TRANSITIVE", "FULL")})
    assert "No changes" in estate.run("plan", "--target", "stage").out
    estate.scratch.git("commit", "-q", "-a", "-m", "Less strict")
    assert "FULL_TRANSITIVE" in estate.run("plan", "--target", "stage").out


def test_a_line_that_is_removed_from_an_overlay_is_reset(tmp_path: Path) -> None:
    target = '{registry: "sqlite:.schemactl/prod.db", overlays: [one.yaml, other.yaml]}'
    project = f"version: 1\ntargets: {{prod: {target}}}\n"
    estate = Estate(tmp_path / "shop", project="version: 1\n")
    line = "schema_validation_enforced: true\n"
    estate.scratch.commit({"schemactl.yaml": project, "one.yaml": LIVE + line, "other.yaml": PROD})
    estate.run("apply", "--auto-approve")
    assert "No changes" in estate.run("plan").out
    # An overlay file that is no longer listed has no effect, so the policy of the namespace counts again.
    estate.scratch.commit({"schemactl.yaml": project.replace(", other.yaml", ""), "one.yaml": LIVE})
    plan = estate.run("plan").out
    assert "- schema_validation_enforced: true (now false, the broker's default)" in plan
    assert "- schema_compatibility_strategy: BACKWARD (now FULL_TRANSITIVE, from its namespace)" in plan
    estate.run("apply", "--auto-approve")
    assert "No changes" in estate.run("plan").out


def test_what_overlays_set_is_reset_when_the_target_names_none(tmp_path: Path) -> None:
    project = 'version: 1\ntargets: {prod: {registry: "sqlite:.schemactl/prod.db"%s}}\n'
    estate = Estate(tmp_path / "shop", project=project % ", overlays: one.yaml")
    estate.scratch.commit({"one.yaml": LIVE + "schema_validation_enforced: true\n"})
    estate.run("apply", "--auto-approve")
    estate.scratch.commit({"schemactl.yaml": project % "", "one.yaml": None})
    assert "- schema_validation_enforced: true (now false, the broker's default)" in estate.run("plan").out
    estate.scratch.commit({"schemactl.yaml": project % ", include: ['shop/**']"})
    assert "- schema_validation_enforced: true (now false, the broker's default)" in estate.run("plan").out
    estate.run("apply", "--auto-approve")
    assert "No changes" in estate.run("plan").out
