"""Changed policies are shown in every format, and typos do not create namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_json, schemactl
from estate import NAMESPACE, PROJECT, Estate
from scratch import Files, Scratch, record, write_declaration

from schemactl.core.names import NamespaceName
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.slow

SPACE = "topics/space.yaml"
ORDERS = "topics/orders.yaml"
BEFORE = {
    "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
    SPACE: "namespace: shop/sales\nschema_compatibility_strategy: FULL\nis_allow_auto_update_schema: false\n",
    ORDERS: "topic: shop/sales/orders\npartitions: 3\nschema: {type: STRING}\n",
}
SALES, TOPIC = "shop/sales", "persistent://shop/sales/orders"
STRATEGY, AUTO_UPDATE = "schema_compatibility_strategy", "is_allow_auto_update_schema"


@pytest.fixture
def topic_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "r")
    scratch.commit(BEFORE)
    return scratch


@pytest.mark.parametrize(
    ("files", "rows", "rules"),
    [
        (
            {SPACE: BEFORE[SPACE].replace("FULL", "FORWARD")},
            [(SALES, STRATEGY, "FULL", "FORWARD")],
            ["PROTECTION_LOST"],
        ),
        ({SPACE: BEFORE[SPACE].replace("FULL", "FULL_TRANSITIVE")}, [(SALES, STRATEGY, "FULL", "FULL_TRANSITIVE")], []),
        (
            {SPACE: BEFORE[SPACE] + "schema_validation_enforced: true\n"},
            [(SALES, "schema_validation_enforced", None, True)],
            [],
        ),
        ({SPACE: None}, [(SALES, STRATEGY, "FULL", None), (SALES, AUTO_UPDATE, False, None)], ["PROTECTION_LOST"]),
        (
            {ORDERS: BEFORE[ORDERS] + "schema_compatibility_strategy: ALWAYS_COMPATIBLE\n"},
            [(TOPIC, STRATEGY, None, "ALWAYS_COMPATIBLE")],
            ["PROTECTION_LOST"],
        ),
        (
            {SPACE: BEFORE[SPACE].replace("is_allow_auto_update_schema: false\n", "")},
            [(SALES, AUTO_UPDATE, False, None)],
            ["PROTECTION_LOST"],
        ),
        ({ORDERS: BEFORE[ORDERS].replace("3", "6")}, [(TOPIC, "partitions", 3, 6)], []),
        (
            {"topics/other.yaml": "namespace: shop/other\nschema_compatibility_strategy: FULL\n"},
            [("shop/other", STRATEGY, None, "FULL")],
            [],
        ),
        ({"topics/other.yaml": "topic: shop/sales/other\npartitions: 2\nschema: {type: STRING}\n"}, [], []),
    ],
    ids=["relaxed", "tightened", "added", "file_deleted", "of_a_topic", "removed", "more_partitions", "space", "topic"],
)
@pytest.mark.parametrize("option", [[], ["--staged"], ["--base", "main"]], ids=" ".join)
def test_a_policy_that_changes_is_a_row(
    topic_repository: Scratch,
    files: dict[str, str | None],
    rows: list[tuple[object, ...]],
    rules: list[str],
    option: list[str],
) -> None:
    topic_repository.git("checkout", "-q", "-b", "work")
    topic_repository.write(files)
    topic_repository.git("add", "--all")
    if option == ["--base", "main"]:
        topic_repository.git("commit", "-q", "-m", "policies")
    report = run_json(topic_repository, "check", *option)
    assert [tuple(row.values())[:4] for row in report["policies"]] == rows
    assert sorted({finding["rule"] for finding in report["findings"]}) == rules
    # The output does not depend on the scope of the check.
    for form in () if option else ("text", "markdown"):
        output = schemactl(topic_repository, "check", "--format", form).out
        assert ("after the merge" in output) == bool(rows)
        assert f"{len(rows)} polic" in output or not rows


def test_a_policy_that_others_changed_is_not_listed(topic_repository: Scratch) -> None:
    topic_repository.commit({"README.md": "work"}, branch="work", start=1)
    topic_repository.commit({SPACE: None})
    topic_repository.git("checkout", "-q", "work")
    report = run_json(topic_repository, "check", "--base", "main")
    assert (report["policies"], report["findings"]) == ([], [])


OVERRIDE = f"{STRATEGY}: ALWAYS_COMPATIBLE\n"


@pytest.mark.parametrize(
    ("orders", "space", "inherited", "said"),
    [
        (BEFORE[ORDERS], BEFORE[SPACE], "FULL", "FULL (set by its namespace)"),
        (BEFORE[ORDERS], None, "BACKWARD", "BACKWARD (the default of schemactl.yaml)"),
        (None, BEFORE[SPACE], "FULL", "FULL (set by its namespace)"),
    ],
    ids=["line", "namespace_too", "topic"],
)
def test_a_row_of_what_is_declared_no_longer_says_what_it_is_reset_to(
    tmp_path: Path, orders: str | None, space: str | None, inherited: str, said: str
) -> None:
    scratch = Scratch(tmp_path / "r")
    project = BEFORE["schemactl.yaml"] + f"defaults: {{{STRATEGY}: BACKWARD}}\n"
    scratch.commit({**BEFORE, "schemactl.yaml": project, ORDERS: BEFORE[ORDERS] + OVERRIDE})
    scratch.write({ORDERS: orders, SPACE: space} if space != BEFORE[SPACE] else {ORDERS: orders})
    report = run_json(scratch, "check")
    assert report["policies"][-1] == {
        "name": TOPIC, "policy": STRATEGY, "before": "ALWAYS_COMPATIBLE", "after": None, "inherited": inherited,
        "targets": [],
    }  # fmt: skip
    for form in ("text", "markdown"):
        assert said in schemactl(scratch, "check", "--format", form).out


def test_where_the_default_protects_as_much_nothing_is_lost(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({**BEFORE, "schemactl.yaml": BEFORE["schemactl.yaml"] + f"defaults: {{{AUTO_UPDATE}: false}}\n"})
    scratch.write({SPACE: BEFORE[SPACE].replace(f"{AUTO_UPDATE}: false\n", "")})
    report = run_json(scratch, "check")
    assert [row["inherited"] for row in report["policies"]] == [False]
    assert report["findings"] == []


CLOSED = "is_allow_auto_update_schema: false\n"
REQUIRED = PROJECT + "require_declared_namespaces: true\n"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("shop/salse/refunds", "; did you mean shop/sales?"),
        ("shop/Sales/refunds", "; did you mean shop/sales?"),
        ("shpo/sales/refunds", "; did you mean shop/sales?"),
        ("shpo/billing/refunds", "; did you mean the tenant shop?"),
        ("shop/ops/refunds", ""),
        ("other/thing/refunds", ""),
    ],
)
def test_the_name_that_was_meant_is_offered(tmp_path: Path, name: str, meant: str) -> None:
    scratch = Estate(tmp_path / "shop", project=REQUIRED).scratch
    scratch.write({"namespaces/new.yaml": write_declaration(name)})
    (finding,) = run_json(scratch, "check", code=100)["findings"]
    space = name.rpartition("/")[0]
    assert finding["message"] == f"persistent://{name} is in the namespace {space}, which no file declares{meant}"
    path = f"namespaces/{space.partition('/')[2]}-namespace.yaml"
    assert path in finding["fix"]
    scratch.write({path: f"namespace: {space}\n{CLOSED}"})
    assert run_json(scratch, "check")["findings"] == []


NEW = {"namespaces/new.yaml": write_declaration("shop/salse/refunds")}
UNDECLARED: dict[str, tuple[str, Files, list[str], dict[str, str]]] = {
    "it is not required": (PROJECT, NEW, [], {"NAMESPACE_UNDECLARED": "warning"}),
    "it is not required, and warnings fail": (PROJECT, NEW, ["--strict"], {"NAMESPACE_UNDECLARED": "warning"}),
    "it is required": (REQUIRED, NEW, [], {"NAMESPACE_UNDECLARED": "error"}),
    "it is required, and a filter skips the topic": (REQUIRED, NEW, ["--topic", "orders"], {}),
    "the change stops requiring it": (
        REQUIRED, {**NEW, "schemactl.yaml": PROJECT}, [], {"GATE_CHANGED": "warning", "NAMESPACE_UNDECLARED": "error"},
    ),
    "the change requires it": (
        PROJECT, {**NEW, "schemactl.yaml": REQUIRED}, [], {"GATE_CHANGED": "warning", "NAMESPACE_UNDECLARED": "error"},
    ),
    "the change removes the declaration": (
        REQUIRED, {"namespaces/sales.yaml": None}, ["--staged"], {"NAMESPACE_UNDECLARED": "error"},
    ),
}  # fmt: skip
"""The approved project file, the change, options, and severities by rule."""


@pytest.mark.parametrize(("project", "change", "options", "expected"), UNDECLARED.values(), ids=UNDECLARED)
def test_an_undeclared_namespace_is_an_error_where_declarations_are_required(
    tmp_path: Path, project: str, change: Files, options: list[str], expected: dict[str, str]
) -> None:
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.write(change)
    estate.scratch.git("add", "-A")
    code = 100 if "error" in expected.values() or "--strict" in options else 0
    findings = estate.run_json("check", *options, code=code)["findings"]
    assert {finding["rule"]: finding["severity"] for finding in findings} == expected


def test_a_change_that_requires_declared_namespaces_is_judged_by_that(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.scratch.commit({"namespaces/sales.yaml": None})
    estate.scratch.write({"schemactl.yaml": REQUIRED})
    findings = estate.run_json("check", code=100)["findings"]
    assert [(finding["rule"], finding["severity"]) for finding in findings] == [
        ("GATE_CHANGED", "warning"),
        ("NAMESPACE_UNDECLARED", "error"),
    ]
    assert (
        "This finding results from the settings of this change, as they will be after the merge, and not from the approved settings."
        in findings[1]["message"]
    )


def test_plan_rejects_an_approved_topic_in_an_undeclared_namespace(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=REQUIRED)
    estate.scratch.commit({"namespaces/new.yaml": write_declaration("shpo/sales/refunds")})
    printed = estate.run("plan", code=100).out
    assert "no file declares the namespace shpo/sales" in printed
    estate.run("apply", "--auto-approve", code=3)
    assert len(estate.read_definitions()) == 1
    with estate.registry() as registry:
        assert not registry.read(Scope(frozenset({NamespaceName("shpo", "sales")}), frozenset())).namespaces
    estate.scratch.commit({"namespaces/shpo.yaml": "namespace: shpo/sales\n"})
    estate.run("apply", "--auto-approve")


def test_plan_names_the_namespace_as_it_has_to_be_declared(tmp_path: Path) -> None:
    renamed = 'tenants: {shop: shop}, namespaces: {shop/ops: shop-prod/ops}, registry: "sqlite:prod.db"'
    estate = Estate(tmp_path / "shop")
    project = REQUIRED.replace("targets:\n", f"targets:\n  prod: {{{renamed}}}\n")
    estate.scratch.commit(
        {"schemactl.yaml": project, "namespaces/new.yaml": write_declaration("shop/ops/measurements")}
    )
    assert "`namespace: shop/ops`" in estate.run("plan", "--target", "prod", code=100).out


def test_plan_creates_namespaces_where_the_project_does_not_require_them(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.scratch.commit({"namespaces/sales.yaml": None, "namespaces/x.yaml": NAMESPACE.replace("sales", "x")})
    assert "shop/sales" in estate.run("plan").out


def test_a_project_of_init_requires_declared_namespaces(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "new")
    schemactl(scratch, "init")
    assert run_json(scratch, "check")["findings"] == []
    scratch.write({"namespaces/default/more.yaml": write_declaration("public/defualt/more")})
    scratch.write({"namespaces/default/orders.avsc": record("id")})
    (finding,) = run_json(scratch, "check", code=100)["findings"]
    assert "did you mean public/default?" in finding["message"]
