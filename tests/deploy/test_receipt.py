"""Plan files are receipts: `apply` makes the plan again, and applies it only if it is the same."""

from __future__ import annotations

import json
import os
import signal
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from approved import make_catalog, plan_for
from estate import ORDERS, PROJECT, Estate, make_order_info
from forks import Say, assert_killed, fork_process

from schemactl.cli.permission_options import PERMISSION_OPTIONS, find_missing_permissions
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.receipt import MAX_SIZE_BYTES, PlanOptions
from schemactl.deploy.steps.delete_schema import DeleteSchema
from schemactl.deploy.steps.relax_strategy import RelaxStrategy
from schemactl.deploy.steps.set_policies import SetPolicies
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

LEGACY = TopicName("shop", "sales", "legacy")
LEGACY_TEXT = "topic: shop/sales/legacy\nschema: {type: STRING}\n"
STRING = SchemaInfo(SchemaType.STRING)
AGAIN = "make it again: schemactl plan --target local --out plan.json"
TOTAL = "Plan: 1 topic, 1 version to register; 1 deletion skipped."
ABSENT = object()


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Orders has a second version that is not applied; legacy is no longer declared, and still in the registry."""
    shop = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    shop.scratch.commit({"namespaces/legacy.yaml": LEGACY_TEXT})
    shop.run("apply", "--auto-approve")
    shop.scratch.commit({"namespaces/legacy.yaml": None})
    shop.commit_orders("id", note=0)
    return shop


def write_plan(shop: Estate, *options: str, code: int = 0) -> Path:
    shop.run("plan", "--out", "plan.json", *options, code=code)
    return shop.scratch.path / "plan.json"


def forge_plan(shop: Estate, changes: dict[str, object]) -> None:
    """Change values of the plan file, each by its keys with dots between them."""
    receipt = shop.read_json("plan.json")
    for pointer, value in changes.items():
        parent, (*keys, last) = receipt, [int(key) if key.isdigit() else key for key in pointer.split(".")]
        for key in keys:
            parent = parent[key]
        if value is ABSENT:
            del parent[last]
        else:
            parent[last] = value
    (shop.scratch.path / "plan.json").write_text(json.dumps(receipt))


def apply_in_vain(shop: Estate, *options: str, code: int) -> tuple[str, str]:
    """Run `apply plan.json`, which must change nothing, and return its output on both streams."""
    before = shop.read_definitions(), shop.read_definitions(LEGACY)
    printed = shop.run("apply", "plan.json", *options, code=code)
    assert (shop.read_definitions(), shop.read_definitions(LEGACY)) == before
    return printed.out, printed.err


# The file


def test_the_file_has_every_permission_option() -> None:
    assert [field.name for field in fields(PlanOptions)] == [option.name for option in PERMISSION_OPTIONS]
    assert {field.name for field in fields(Permissions)} == {option.attribute for option in PERMISSION_OPTIONS}


def test_missing_permissions_name_deletions_first() -> None:
    steps = (
        DeleteSchema(LEGACY, (0,), force=True, unreadable=True),
        SetPolicies(ORDERS, Policies(), Policies(settings={"message_ttl_in_seconds": 5}), loses="messages expire"),
        RelaxStrategy(ORDERS, CompatibilityStrategy.FULL, updates=False),
    )
    permitted: dict[str, Any] = {option.name: [] for option in PERMISSION_OPTIONS}
    with closing(EmbeddedRegistry(":memory:")) as registry:
        plan = replace(plan_for(registry, make_catalog()), steps=steps)
    assert find_missing_permissions(plan, Namespace(**permitted)) == [
        f"deletes the schema of {LEGACY} by force",
        f"makes messages of {LEGACY} unreadable",
        f"sets {ORDERS}:message_ttl_in_seconds, which can lose messages",
        "registers versions under ALWAYS_COMPATIBLE",
    ]


def test_the_file_has_the_text_and_what_the_plan_was_made_from(estate: Estate) -> None:
    scope = ("--topic", "*/orders", "--topic", "legacy", "--skip", "refund*", "--namespace", "shop/sales")
    estate.scratch.commit({"namespaces/refunds.yaml": LEGACY_TEXT.replace("legacy", "refunds")})
    plain = estate.run("plan", *scope, "--allow-delete", "legacy").out
    apply_output = estate.run(
        "--color", "always", "plan", "--summary", "--out", "plan.json", *scope, "--allow-delete", "legacy"
    )
    assert "\x1b[" in apply_output.out
    receipt = estate.read_json("plan.json")
    assert " ".join(receipt) == (
        "format_version schemactl target registry approved proposed scope options lists steps left_out misread digest text"
    )
    assert receipt["approved"]["commit"]["id"] == estate.scratch.git("rev-parse", "HEAD")
    assert receipt["scope"] == {"topics": ["*/orders", "legacy", "!refund*"], "namespaces": ["shop/sales"]}
    assert receipt["options"] == {
        "allow_delete": ["legacy"],
        "force_delete": [],
        "allow_data_loss": [],
        "allow_unreadable_messages": [],
        "relax_while_replaying": False,
        "create_tenants": False,
    }
    assert receipt["steps"] == 2
    assert receipt["text"] + "\n" == plain == estate.run("plan", "show", "plan.json").out
    estate.run("plan", "show", "plan.json", "--detailed-exitcode", code=2)
    estate.run("apply", "plan.json", "--allow-delete", "legacy")
    assert (estate.read_definitions(), estate.read_definitions(LEGACY)) == (
        [make_order_info("id"), make_order_info("id", note=0)],
        [STRING, None],
    )


@pytest.mark.parametrize("is_rejected", [True, False])
def test_the_file_of_a_plan_that_exits_with_100_says_why(estate: Estate, *, is_rejected: bool) -> None:
    if is_rejected:
        estate.commit_orders("id", "needed")
    else:
        estate.put(make_order_info("id", theirs=0))
    write_plan(estate, code=100)
    receipt = estate.read_json("plan.json")
    assert [entry["topic"] for entry in receipt["left_out"]] == [str(ORDERS)] * is_rejected
    assert receipt["misread"] == [str(ORDERS)] * (not is_rejected)
    estate.run("plan", "show", "plan.json", code=100)
    estate.run("apply", "plan.json", code=100 if is_rejected else 3)


@pytest.mark.parametrize("option", ["--skip=refunds", "--topic=!refunds", "--namespace=shop/sales", "--create-tenants"])
def test_what_shapes_a_plan_is_refused_by_its_name_where_a_file_is_read(estate: Estate, option: str) -> None:
    name, _, value = option.partition("=")
    for words in ([option], [name, value] if value else [name]):
        plan_text = estate.run("plan", "show", "plan.json", *words, code=64).err
        assert f"{name} applies when a plan is made, not to `plan show`" in plan_text
        applied = estate.run("apply", "plan.json", *words, code=64).err
        assert f"{name} applies when a plan is made: give it to `schemactl plan`" in applied


@pytest.mark.parametrize("option", ["--format=text", "--summary", "--out=x", "--at=main", "--target=local"])
def test_show_takes_no_option_of_plan(estate: Estate, option: str) -> None:
    error = estate.run("plan", "show", "plan.json", option, code=64).err
    assert f"{option.partition('=')[0]} applies when a plan is made" in error


def test_a_file_that_cannot_be_written_leaves_nothing(estate: Estate) -> None:
    error = estate.run("plan", "--out", "nowhere/plan.json", code=1).err
    assert "nowhere/plan.json cannot be written: No such file or directory" in error
    (estate.scratch.path / "folder/plan.json").mkdir(parents=True)
    assert "folder/plan.json cannot be written: Is a directory" in estate.run("plan", "--out", "folder", code=1).err
    assert [path.name for path in (estate.scratch.path / "folder").iterdir()] == ["plan.json"]


def test_a_plan_that_is_killed_while_it_writes_leaves_the_file_of_before(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_plan(estate, "--topic", "orders")
    before = path.read_bytes()

    def plan(_: Say) -> None:
        # The new text is written by then, under another name.
        monkeypatch.setattr(os, "replace", lambda *_a, **_k: os.kill(os.getpid(), signal.SIGKILL))
        write_plan(estate)

    assert_killed(*fork_process(plan))
    assert path.read_bytes() == before


# Other files


def write_huge_file(path: Path) -> None:
    path.touch()
    os.truncate(path, MAX_SIZE_BYTES + 1)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a plan of schemactl: it is not JSON"),
        (b'{"format_version": 2, "digest": "sha', "is not a plan of schemactl: it is not JSON"),
        (b"\xff\xfe", "is not a plan of schemactl: it is not JSON"),
        (b"[" * 100_000, "is not a plan of schemactl: it is not JSON"),
        (b"9" * 100_000, "is not a plan of schemactl: it is not JSON"),
        (b"[]", "is not a plan of schemactl"),
        (b"null", "is not a plan of schemactl"),
        (b'{"format_version": 2}', "is not a plan of schemactl"),
        (b'{"format_version": 2, "digest": ""}', "is not a plan of schemactl: `target` is missing"),
        (b'{"format_version": 1, "digest": "", "steps": []}', "has format 1; this schemactl reads 2"),
        (b'{"format_version": "\\u001b[31m", "digest": ""}', "has format '\\x1b[31m'; this schemactl reads 2"),
        (lambda _: None, "cannot be read: No such file or directory"),
        (Path.mkdir, "cannot be read: Is a directory"),
        (write_huge_file, "is not a plan of schemactl: it is larger than 256 MiB"),
    ],
)
def test_what_is_not_a_plan_file_is_one_clear_error(
    tmp_path: Path, estate: Estate, content: bytes | Callable[[Path], object], problem: str
) -> None:
    path = tmp_path / "other.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)
    plan_text = os.path.relpath(path)
    for command in (["apply"], ["plan", "show"]):
        printed = estate.run(*command, str(path), code=1)
        assert printed.out == ""
        assert (
            printed.err == f"schemactl: {plan_text} {problem}\n  Fix: make it again: schemactl plan --out {plan_text}\n"
        )


@pytest.mark.parametrize(
    ("pointer", "value", "problem"),
    [
        ("target", 7, "`target` is a number, expected text"),
        ("text", None, "`text` is null, expected text"),
        ("steps", 0.5, "`steps` is a number with a fraction, expected a number"),
        ("scope", ABSENT, "`scope` is missing"),
        ("scope.topics", "orders", "`scope.topics` is text, expected a list"),
        ("scope.topics", [1], "`scope.topics[0]` is a number, expected text"),
        ("options.create_tenants", "yes", "`options.create_tenants` is text, expected true or false"),
        ("options", {}, "`options.allow_delete` is missing"),
        ("approved.commit", "main", "`approved.commit` is text, expected an object"),
        ("approved.commit.id", "--output=x", "`approved.commit.id` is not the full id of a commit"),
        ("lists", [{"topic": "x", "versions": [7]}], "`lists[0].versions[0]` is a number, expected an object"),
        ("lists", [{"topic": "x", "versions": [{}]}], "`lists[0].versions[0].registry` is missing"),
        ("left_out", [{"reason": 1}], "`left_out[0].reason` is a number, expected text"),
    ],
)
def test_a_value_of_another_type_is_one_clear_error(estate: Estate, pointer: str, value: object, problem: str) -> None:
    write_plan(estate)
    forge_plan(estate, {pointer: value})
    for command in (["apply"], ["plan", "show"]):
        error = estate.run(*command, "plan.json", code=1).err
        assert f"plan.json is not a plan of schemactl: {problem}\n" in error


def test_a_text_of_somebody_else_does_not_reach_the_terminal_raw(estate: Estate) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\r\u202e\x9b2K\ud800\n::error::no\n##vso[task.complete]"
    write_plan(estate)
    forge_plan(estate, {"text": hostile, "digest": "sha256:\x1b[2J"})
    for color in ("never", "always"):
        plan_text = estate.run("--color", color, "plan", "show", "plan.json").out
        assert "\\u001b]0;owned\\u0007\\u001b[2J\\u001b[31mred" in plan_text
        applied = estate.run("--color", color, "apply", "plan.json", code=4)
        for text in (plan_text, applied.out, applied.err):
            for raw in ("\x07", "\r", "\u202e", "\x9b", "\ud800", "\x1b[2J", "\x1b[31mred", "\n::error", "##vso"):
                assert raw not in text


# Stale plans


def set_policies(shop: Estate, policies: Policies) -> None:
    with shop.registry() as registry:
        registry.set_namespace_policies(ORDERS.namespace_name, policies)


def test_a_stale_plan_shows_how_the_plan_has_changed(estate: Estate) -> None:
    write_plan(estate)
    old = estate.read_json("plan.json")
    set_policies(estate, Policies(CompatibilityStrategy.FULL))
    estate.scratch.commit({"namespaces/more.yaml": "namespace: shop/more\n"})
    new_digest = json.loads(estate.run("plan", "--format", "json", "--at", "HEAD~1").out)["digest"]
    lines = old["text"].split("\n")
    head, version, note = lines[0], lines[3], lines[lines.index("Unchanged:") + 1]
    difference, error = apply_in_vain(estate, "--result", "result.json", code=4)
    assert difference.split("\n") == [
        "--- plan.json",
        "+++ the plan now",
        "@@ -1,4 +1,7 @@",
        f"-{head}",
        f"+{head.replace(', answers', ' (1 later commit not planned), answers')}",
        "+",
        "+~ namespace shop/sales",
        "+  ~ schema_compatibility_strategy: FULL -> BACKWARD",
        " ",
        " ~ topic persistent://shop/sales/orders",
        f" {version}",
        "@@ -9,5 +12,5 @@",
        " Unchanged:",
        f" {note}",
        " ",
        f"-{TOTAL}",
        f"-Digest: {old['digest']}",
        "+Plan: 1 namespace, 1 topic, 1 version to register; 1 deletion skipped.",
        f"+Digest: {new_digest}",
        "",
    ]
    assert error == (
        "schemactl: plan.json is stale: the difference shows what has changed since it was made; nothing was changed\n"
        f"  Fix: {AGAIN}\n"
    )
    result = estate.read_json("result.json")
    assert (result["outcome"], result["done"]) == ("failed", [])
    assert "plan.json is stale" in result["failure"]


def test_the_difference_of_long_texts_is_one_hunk(estate: Estate) -> None:
    write_plan(estate)
    first, *others = estate.read_json("plan.json")["text"].split("\n")
    forge_plan(estate, {"text": "\n".join([first, *(["~ x"] * 30_000), *others]), "digest": "sha256:0"})
    difference = apply_in_vain(estate, code=4)[0].split("\n")
    assert difference == ["--- plan.json", "+++ the plan now", "@@ -2,30000 +2,0 @@", *(["-~ x"] * 30_000), ""]


def change_project(old: str, new: str) -> Callable[[Estate], object]:
    return lambda shop: shop.scratch.commit({"schemactl.yaml": PROJECT.replace(old, new)})


def forge_older_commit(shop: Estate) -> None:
    forge_plan(shop, {"approved.commit.id": shop.scratch.git("rev-parse", "HEAD~1")})


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda shop: shop.put(make_order_info("id", theirs=0)), "+  + v1 AVRO"),
        (lambda shop: shop.put(None), "+  "),
        (lambda shop: shop.run("apply", "--auto-approve"), "+No changes."),
        # Git does not declare this policy, so that the texts are the same.
        (lambda shop: set_policies(shop, Policies(schema_validation_enforced=True)), "its text is the same"),
        (change_project("version: 1\n", 'version: 1\npulsar: "4.2"\n'), "answers as of Pulsar 4.2"),
        (change_project('.db"', '.db", namespaces: {shop/sales: shop/other}'), "persistent://shop/other/orders"),
        (change_project('.db"', '.db", exclude: [orders]'), f"-{TOTAL}"),
        (forge_older_commit, f"-{TOTAL}"),
        (
            lambda shop: forge_plan(shop, {"digest": "sha256:" + "0" * 64}),
            "its text is the same, but its digest is not",
        ),
        (lambda shop: forge_plan(shop, {"scope.topics": ["legacy"]}), f"-{TOTAL}"),
        (lambda shop: forge_plan(shop, {"scope.topics": ["!orders"]}), f"-{TOTAL}"),
        (lambda shop: forge_plan(shop, {"scope.namespaces": ["shop/sales"]}), "its text is the same"),
        (
            lambda shop: forge_plan(shop, {"options.allow_delete": ["shop/**"]}),
            "+- topic persistent://shop/sales/legacy",
        ),
        (
            lambda shop: forge_plan(shop, {"options.force_delete": ["legacy"]}),
            "+- topic persistent://shop/sales/legacy",
        ),
    ],
)
def test_a_plan_is_stale_if_its_registry_commit_options_or_settings_are_others(
    estate: Estate, change: Callable[[Estate], object], line: str
) -> None:
    write_plan(estate)
    change(estate)
    difference, error = apply_in_vain(estate, code=4)
    assert line in difference + error
    assert error.endswith(f"; nothing was changed\n  Fix: {AGAIN}\n")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scope.topics": ["secret"]}, "secret"),
        ({"scope.namespaces": ["shop/secret"]}, "--namespace shop/secret"),
        ({"options.allow_delete": ["secret"]}, "secret"),
        ({"options.force_delete": ["orders"]}, f"{ORDERS} cannot be deleted: it is still declared"),
        ({"options.allow_data_loss": ["x"]}, "--allow-data-loss x: expected a namespace or topic and its setting"),
    ],
)
def test_a_plan_of_what_was_never_approved_cannot_be_made_again(
    estate: Estate, changes: dict[str, object], problem: str
) -> None:
    write_plan(estate)
    forge_plan(estate, changes)
    _, error = apply_in_vain(estate, code=4)
    assert error.startswith("schemactl: plan.json cannot be made again: ")
    assert problem in error
    assert error.endswith(f"; nothing was changed\n  Fix: {AGAIN}\n")


# Plans of another place


def test_a_plan_of_another_repository_is_refused(estate: Estate, tmp_path: Path) -> None:
    other = Estate(tmp_path / "other")
    other.commit_orders("id", theirs=0)
    (estate.scratch.path / "plan.json").write_text(write_plan(other).read_text())
    assert "not in the approved history" in apply_in_vain(estate, code=1)[1]
    forge_plan(estate, {"approved.commit.id": estate.scratch.git("rev-parse", "HEAD")})
    apply_in_vain(estate, code=4)


def test_a_plan_of_a_branch_that_is_not_approved_is_refused(estate: Estate) -> None:
    estate.scratch.flush()
    estate.scratch.git("switch", "-qc", "proposed")
    estate.scratch.write({"namespaces/orders.avsc": make_order_info("id", theirs=0).schema})
    estate.scratch.git("commit", "-qam", "not reviewed")
    project = estate.scratch.path / "schemactl.yaml"
    project.write_text(PROJECT + "approved: proposed\n")
    write_plan(estate, "--trust-working-tree")
    project.write_text(PROJECT)
    assert "not in the approved history" in apply_in_vain(estate, code=1)[1]


@pytest.mark.parametrize(
    ("key", "value", "code", "problem"),
    [
        ("target", "prod", 64, "--target prod: schemactl.yaml has local"),
        ("registry", "sqlite:x.db", 1, "plan.json was made for sqlite:x.db, but target local is now sqlite:"),
        ("proposed", True, 1, "plan.json is the plan of a merge that is not approved yet; nothing was changed"),
    ],
)
def test_a_forged_target_is_refused(estate: Estate, key: str, value: object, code: int, problem: str) -> None:
    write_plan(estate)
    forge_plan(estate, {key: value})
    assert problem in apply_in_vain(estate, code=code)[1]


def test_the_command_for_a_proposed_plan_repeats_its_options(estate: Estate) -> None:
    options = ("--topic", "legacy", "--allow-delete", "legacy")
    printed = estate.run("plan", "--base", "main", "--out", "plan.json", *options).err
    command = printed.partition("once it is merged: ")[2].strip()
    digest = estate.read_json("plan.json")["digest"]
    assert command == f"schemactl apply --target local --expect-digest {digest} --topic legacy --allow-delete legacy"
    assert command in apply_in_vain(estate, code=1)[1]
    estate.run(*command.split()[1:])
    assert (estate.read_definitions(), estate.read_definitions(LEGACY)) == ([make_order_info("id")], [STRING, None])


# Plans that are applied


def test_newer_commits_and_another_layout_of_the_file_do_not_matter(estate: Estate) -> None:
    path = write_plan(estate)
    path.write_text(json.dumps({"comment": "reviewed", **json.loads(path.read_text())}, sort_keys=True))
    estate.commit_orders("id", note=0, city=0)
    estate.run("apply", "plan.json")
    assert estate.read_definitions() == [make_order_info("id"), make_order_info("id", note=0)]


def test_what_was_declared_again_since_is_not_deleted(estate: Estate) -> None:
    write_plan(estate, "--force-delete", "legacy")
    estate.scratch.commit({"namespaces/legacy.yaml": LEGACY_TEXT})
    _, error = apply_in_vain(estate, "--force-delete", "legacy", code=4)
    assert f"deletes the schema of {LEGACY}, which is declared; nothing was changed" in error


@pytest.mark.parametrize("option", ["--allow-delete", "--force-delete"])
def test_what_is_deleted_is_allowed_where_it_is_applied_too(estate: Estate, option: str) -> None:
    advice = estate.run("plan", "--out", "plan.json", option, "legacy").err
    assert f"schemactl apply plan.json {option} shop/sales/legacy" in advice
    assert f"if that was reviewed: schemactl apply plan.json {option}" in apply_in_vain(estate, code=1)[1]
    other = "--force-delete" if option == "--allow-delete" else "--allow-delete"
    apply_in_vain(estate, other, "legacy", code=64)
    apply_in_vain(estate, option, "orders", code=64)
    estate.run("apply", "plan.json", option, "legacy")
    assert estate.read_definitions(LEGACY) == ([] if option == "--force-delete" else [STRING, None])


def test_the_digest_that_was_reviewed_allows_what_the_plan_does(estate: Estate) -> None:
    write_plan(estate)
    harmless = estate.read_json("plan.json")["digest"]
    write_plan(estate, "--force-delete", "legacy")
    apply_in_vain(estate, "--expect-digest", harmless, code=4)
    estate.run("apply", "plan.json", "--expect-digest", estate.read_json("plan.json")["digest"])
    assert estate.read_definitions(LEGACY) == []


def test_relaxing_is_allowed_where_it_is_applied_too(estate: Estate) -> None:
    estate.commit_orders("id", "needed")
    write_plan(estate, "--relax-while-replaying")
    assert "under ALWAYS_COMPATIBLE" in apply_in_vain(estate, code=1)[1]
    estate.run("apply", "plan.json", "--relax-while-replaying")
    assert estate.read_definitions()[-1] == make_order_info("id", "needed")


# Rebuilds


@pytest.fixture
def lost_estate(estate: Estate) -> Estate:
    """Lose the registry after `list.json` was saved with Git's v0, a foreign v1, and Git's v1 as v2."""
    assert estate.put(make_order_info("id", theirs=0)) == [1]
    estate.run("apply", "--auto-approve", code=3)
    assert estate.read_definitions() == [
        make_order_info("id"),
        make_order_info("id", theirs=0),
        make_order_info("id", note=0),
    ]
    (estate.scratch.path / "list.json").write_text(estate.run("drift", "--format", "json", code=100).out)
    for file in (estate.scratch.path / ".schemactl").glob("registry.db*"):
        file.unlink()
    return estate


def test_a_plan_of_a_rebuild_has_a_copy_of_the_list(lost_estate: Estate) -> None:
    out = lost_estate.run("rebuild", "list.json", "--out", "plan.json", code=100).out
    assert f"Digest: {lost_estate.read_json('plan.json')['digest']}\n" in out
    (lost_estate.scratch.path / "list.json").unlink()
    lost_estate.run("apply", "plan.json", code=3)
    assert lost_estate.read_definitions() == [
        make_order_info("id"),
        make_order_info("id", theirs=0),
        make_order_info("id", note=0),
    ]


FORGED = {"type": "AVRO", "schema": make_order_info("id", evil=0).schema.decode(), "properties": {}}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"versions.1.schema": FORGED}, 4),
        # Git has this version with another text.
        ({"versions.2.schema": FORGED}, 1),
        ({"versions.0.registry": 1, "versions.1.registry": 0}, 1),
        ({"versions.1.schema.type": "NOTHING"}, 1),
        ({"topic": "a:b:c"}, 1),
    ],
)
def test_a_forged_list_is_refused(lost_estate: Estate, changes: dict[str, Any], code: int) -> None:
    lost_estate.run("rebuild", "list.json", "--topic", "orders", "--out", "plan.json", code=100)
    forge_plan(lost_estate, {f"lists.0.{pointer}": value for pointer, value in changes.items()})
    apply_in_vain(lost_estate, code=code)


def test_a_rebuild_that_deletes_first_is_allowed_where_it_is_applied_too(lost_estate: Estate) -> None:
    with lost_estate.registry() as registry:
        registry.create_namespace(ORDERS.namespace_name)
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
    lost_estate.put(make_order_info("id", first=0))
    lost_estate.run("rebuild", "list.json", "--out", "plan.json", "--force-delete", "orders", code=100)
    assert "by force" in apply_in_vain(lost_estate, code=1)[1]
    lost_estate.run("apply", "plan.json", "--force-delete", "orders", code=3)
    assert lost_estate.read_definitions() == [
        make_order_info("id"),
        make_order_info("id", theirs=0),
        make_order_info("id", note=0),
    ]
