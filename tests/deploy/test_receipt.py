"""Plan files are receipts: `apply` makes the plan again, and applies it only if it is the same."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, PROJECT, Estate, avro
from forks import Say, assert_killed, forked

from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.receipt import MAX_SIZE_BYTES

LEGACY = TopicName("shop", "sales", "legacy")
LEGACY_TEXT = "topic: shop/sales/legacy\nschema: {type: STRING}\n"
STRING = SchemaInfo(SchemaType.STRING)
AGAIN = "make it again: schemactl plan --target local --out plan.json"

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Orders has a second version that is not applied; legacy is no longer declared, and still in the registry."""
    shop = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    shop.scratch.commit({"namespaces/legacy.yaml": LEGACY_TEXT})
    shop.run("apply", "--auto-approve")
    shop.scratch.commit({"namespaces/legacy.yaml": None})
    shop.orders("id", note=0)
    return shop


def write_plan(shop: Estate, *options: str, code: int = 0) -> Path:
    shop.run("plan", "--out", "plan.json", *options, code=code)
    return shop.scratch.path / "plan.json"


def forge(path: Path, change: Change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def held(shop: Estate) -> object:
    return shop.held(), shop.held(LEGACY)


def assert_stale(shop: Estate, *options: str) -> str:
    """Apply the plan file, which changes nothing, and return the difference that is printed."""
    before = held(shop)
    printed = shop.run("apply", "plan.json", *options, code=4)
    assert held(shop) == before
    assert "schemactl: plan.json is stale: " in printed.err
    assert printed.err.endswith(f"; nothing was changed\n  Fix: {AGAIN}\n")
    return printed.out


# The file


def test_the_file_has_the_text_and_what_the_plan_was_made_from(estate: Estate) -> None:
    options = ("--topic", "*/orders", "--topic", "legacy", "--skip", "refund*", "--namespace", "shop/sales")
    estate.scratch.commit({"namespaces/refunds.yaml": LEGACY_TEXT.replace("legacy", "refunds")})
    printed = estate.run("plan", "--out", "plan.json", *options, "--allow-delete", "legacy")
    receipt = estate.json("plan.json")
    assert list(receipt) == [
        "format_version",
        "schemactl",
        "target",
        "registry",
        "approved",
        "proposed",
        "scope",
        "options",
        "steps",
        "left_out",
        "misread",
        "digest",
        "text",
    ]
    assert receipt["format_version"] == 2
    assert receipt["target"] == "local"
    assert receipt["approved"]["commit"]["id"] == estate.scratch.git("rev-parse", "HEAD")
    assert receipt["scope"] == {"topics": ["*/orders", "legacy", "!refund*"], "namespaces": ["shop/sales"]}
    assert receipt["options"] == {
        "allow_delete": ["legacy"],
        "force_delete": [],
        "allow_data_loss": [],
        "relax_while_replaying": False,
        "create_tenants": False,
    }
    assert receipt["steps"] == 2
    assert receipt["text"] + "\n" == printed.out == estate.run("plan", "show", "plan.json").out
    estate.run("apply", "plan.json", "--allow-delete", "legacy")
    assert held(estate) == ([avro("id"), avro("id", note=0)], [STRING, None])


def test_the_text_has_no_colors_and_is_not_cut(estate: Estate) -> None:
    plain = estate.run("plan").out
    printed = estate.run("--color", "always", "plan", "--summary", "--out", "plan.json").out
    assert "\x1b[" in printed
    assert estate.json("plan.json")["text"] + "\n" == plain


@pytest.mark.parametrize("change", ["rejected", "misread"])
def test_the_file_of_a_plan_that_exits_with_100_says_why(estate: Estate, change: str) -> None:
    if change == "rejected":
        estate.orders("id", "needed")
    else:
        estate.put(avro("id", theirs=0))
    write_plan(estate, code=100)
    receipt = estate.json("plan.json")
    assert [entry["topic"] for entry in receipt["left_out"]] == ([str(ORDERS)] if change == "rejected" else [])
    assert receipt["misread"] == ([] if change == "rejected" else [str(ORDERS)])
    estate.run("plan", "show", "plan.json", code=100)
    estate.run("apply", "plan.json", code=100 if change == "rejected" else 3)


def test_show_exits_with_2_for_changes_if_asked(estate: Estate) -> None:
    write_plan(estate)
    estate.run("plan", "show", "plan.json")
    estate.run("plan", "show", "plan.json", "--detailed-exitcode", code=2)


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (("--skip", "refunds"), "--skip"),
        (("--skip=refunds",), "--skip"),
        (("--topic", "!refunds"), "--topic"),
        (("--topic=orders",), "--topic"),
        (("--namespace", "shop/sales"), "--namespace"),
        (("--create-tenants",), "--create-tenants"),
    ],
)
def test_what_shapes_a_plan_is_refused_by_its_name_where_a_file_is_read(
    estate: Estate, option: tuple[str, ...], named: str
) -> None:
    write_plan(estate)
    shown = estate.run("plan", "show", "plan.json", *option, code=64).err
    assert f"{named} applies when a plan is made, not to `plan show`" in shown
    applied = estate.run("apply", "plan.json", *option, code=64).err
    assert f"{named} applies when a plan is made: give it to `schemactl plan`" in applied


@pytest.mark.parametrize(
    "option", ["--format=json", "--format=text", "--summary", "--out=x", "--at=main", "--target=local"]
)
def test_show_takes_no_option_of_plan(estate: Estate, option: str) -> None:
    write_plan(estate)
    assert f"{option.partition('=')[0]} applies when a plan is made" in (
        estate.run("plan", "show", "plan.json", option, code=64).err
    )


def test_a_file_that_cannot_be_written_leaves_nothing(estate: Estate) -> None:
    error = estate.run("plan", "--out", "nowhere/plan.json", code=1).err
    assert "nowhere/plan.json cannot be written: No such file or directory" in error
    (estate.scratch.path / "folder/plan.json").mkdir(parents=True)
    error = estate.run("plan", "--out", "folder", code=1).err
    assert "folder/plan.json cannot be written: Is a directory" in error
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

    assert_killed(*forked(plan))
    assert path.read_bytes() == before
    estate.run("apply", "plan.json")


# What is not a plan file


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a plan of schemactl: it is not JSON"),
        (b"{", "is not a plan of schemactl: it is not JSON"),
        (b"\xff\xfe", "is not a plan of schemactl: it is not JSON"),
        (b"[" * 100_000, "is not a plan of schemactl: it is not JSON"),
        (b"9" * 100_000, "is not a plan of schemactl: it is not JSON"),
        (b"[]", "is not a plan of schemactl"),
        (b'"plan"', "is not a plan of schemactl"),
        (b"null", "is not a plan of schemactl"),
        (b"{}", "is not a plan of schemactl"),
        (b'{"format_version": 2}', "is not a plan of schemactl"),
        (b'{"format_version": 2, "digest": ""}', "is not a plan of schemactl: `target` is missing"),
        (b'{"format_version": 1, "digest": "", "steps": []}', "has format 1; this schemactl reads 2"),
        (b'{"format_version": "\\u001b[31m", "digest": ""}', "has format '\\x1b[31m'; this schemactl reads 2"),
        (None, "cannot be read: No such file or directory"),
        ("folder", "cannot be read: Is a directory"),
        ("huge", "is not a plan of schemactl: it is larger than 256 MiB"),
        ("half", "is not a plan of schemactl: it is not JSON"),
    ],
)
def test_what_is_not_a_plan_file_is_one_clear_error(estate: Estate, content: bytes | str | None, problem: str) -> None:
    path = estate.scratch.path / "other.json"
    if content == "folder":
        path.mkdir()
    elif content == "huge":
        path.touch()
        os.truncate(path, MAX_SIZE_BYTES + 1)
    elif content == "half":
        text = write_plan(estate).read_bytes()
        path.write_bytes(text[: len(text) // 2])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    for arguments in (("apply", "other.json"), ("plan", "show", "other.json")):
        printed = estate.run(*arguments, code=1)
        assert printed.out == ""
        shown = os.path.relpath(path)
        assert printed.err == f"schemactl: {shown} {problem}\n  Fix: make it again: schemactl plan --out {shown}\n"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda value: value.update(target=7), "`target` is a number, expected text"),
        (lambda value: value.update(text=None), "`text` is null, expected text"),
        (lambda value: value.pop("scope"), "`scope` is missing"),
        (lambda value: value["scope"].update(topics="orders"), "`scope.topics` is text, expected a list"),
        (lambda value: value["scope"]["topics"].append(1), "`scope.topics[0]` is a number, expected text"),
        (
            lambda value: value["options"].update(relax_while_replaying="yes"),
            "`options.relax_while_replaying` is text, expected true or false",
        ),
        (
            lambda value: value["approved"]["commit"].update(id="--upload-pack=x"),
            "`approved.commit.id` is not the full id of a commit",
        ),
        (lambda value: value.update(lists=[{"topic": "x", "versions": [7]}]), "`lists[0].versions[0]` is a number"),
    ],
)
def test_a_value_of_another_type_is_one_clear_error(estate: Estate, change: Change, problem: str) -> None:
    forge(write_plan(estate), change)
    for arguments in (("apply", "plan.json"), ("plan", "show", "plan.json")):
        assert f"plan.json is not a plan of schemactl: {problem}" in estate.run(*arguments, code=1).err


def test_a_text_of_somebody_else_does_not_reach_the_terminal_raw(estate: Estate) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\r\u202e\x9b2K\ud800\n::error::no\n##vso[task.complete]"
    forge(write_plan(estate), lambda value: value.update(text=hostile, digest="sha256:\x1b[2J"))
    for color in ("never", "always"):
        shown = estate.run("--color", color, "plan", "show", "plan.json").out
        applied = estate.run("--color", color, "apply", "plan.json", code=4)
        assert "\\u001b]0;owned\\u0007\\u001b[2J\\u001b[31mred" in shown
        for text in (shown, applied.out, applied.err):
            assert not {"\x07", "\r", "\u202e", "\x9b", "\ud800"}.intersection(text)
            assert "\x1b[2J" not in text
            assert "\x1b[31mred" not in text
            assert "\n::error" not in text
            assert "##vso" not in text


# Stale plans


def test_a_stale_plan_shows_how_the_plan_has_changed(estate: Estate) -> None:
    write_plan(estate)
    old = estate.json("plan.json")
    with estate.registry() as registry:
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(CompatibilityStrategy.FULL))
    estate.scratch.commit({"namespaces/more.yaml": "namespace: shop/more\n"})
    new_digest = json.loads(estate.run("plan", "--format", "json", "--at", "HEAD~1").out)["digest"]
    head, *_, note, _, total, _ = old["text"].split("\n")
    version = next(line for line in old["text"].split("\n") if "v1 AVRO" in line)
    assert assert_stale(estate).split("\n") == [
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
        "@@ -6,5 +9,5 @@",
        " Stays as it is:",
        f" {note}",
        " ",
        f"-{total}",
        f"-Digest: {old['digest']}",
        f"+{total.replace('1 topic', '1 namespace, 1 topic', 1)}",
        f"+Digest: {new_digest}",
        "",
    ]


def put_other_version(shop: Estate) -> None:
    shop.put(avro("id", theirs=0))


def delete_version(shop: Estate) -> None:
    shop.put(None)


def set_policy(shop: Estate) -> None:
    with shop.registry() as registry:
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(CompatibilityStrategy.FULL))


def set_enforcement(shop: Estate) -> None:
    """The policy is not declared, so the plan does not show it."""
    with shop.registry() as registry:
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(schema_validation_enforced=True))


def apply_already(shop: Estate) -> None:
    shop.run("apply", "--auto-approve")


def change_release(shop: Estate) -> None:
    shop.scratch.commit({"schemactl.yaml": PROJECT + 'pulsar: "4.2"\n'})


def change_names(shop: Estate) -> None:
    target = PROJECT.replace('registry.db"', 'registry.db", namespaces: {shop/sales: shop/other}')
    shop.scratch.commit({"schemactl.yaml": target})


def exclude_topic(shop: Estate) -> None:
    shop.scratch.commit({"schemactl.yaml": PROJECT.replace('registry.db"', 'registry.db", exclude: [orders]')})


def forge_older_commit(shop: Estate) -> None:
    commit = {"id": shop.scratch.git("rev-parse", "HEAD~1"), "time_s": 0, "subject": ""}
    forge(shop.scratch.path / "plan.json", lambda value: value["approved"].update(commit=commit))


def forge_scope(topics: list[str], namespaces: list[str]) -> Callable[[Estate], None]:
    scope = {"topics": topics, "namespaces": namespaces}
    return lambda shop: forge(shop.scratch.path / "plan.json", lambda value: value.update(scope=scope))


def forge_options(**options: object) -> Callable[[Estate], None]:
    return lambda shop: forge(shop.scratch.path / "plan.json", lambda value: value["options"].update(options))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (put_other_version, "+  + v1 AVRO"),
        (delete_version, "+  "),
        (set_policy, "+  ~ schema_compatibility_strategy: FULL -> BACKWARD"),
        (set_enforcement, None),
        (apply_already, "+No changes. The registry has everything that Git approved; 1 deletion skipped."),
        (change_release, "4.2"),
        (change_names, "persistent://shop/other/orders"),
        (exclude_topic, "-Plan: 1 topic, 1 version to register; 1 deletion skipped."),
        (forge_older_commit, "-Plan: 1 topic, 1 version to register; 1 deletion skipped."),
        (forge_scope(["legacy"], []), "-Plan: 1 topic, 1 version to register; 1 deletion skipped."),
        (forge_scope(["!orders"], []), "-Plan: 1 topic, 1 version to register; 1 deletion skipped."),
        (forge_scope([], ["shop/sales"]), None),
        (forge_options(force_delete=["legacy"]), "+- topic persistent://shop/sales/legacy"),
        (forge_options(allow_delete=["shop/**"]), "+- topic persistent://shop/sales/legacy"),
    ],
)
def test_a_plan_is_stale_if_anything_that_it_follows_from_has_changed(
    estate: Estate, change: Callable[[Estate], None], line: str | None
) -> None:
    write_plan(estate)
    change(estate)
    difference = assert_stale(estate)
    if line is None:
        assert [text[:8] for text in difference.splitlines() if text.startswith(("+", "-"))] == [
            "--- plan",
            "+++ the ",
            "-Digest:",
            "+Digest:",
        ]
    else:
        assert line in difference


def test_a_forged_digest_is_the_digest_of_another_plan(estate: Estate) -> None:
    forge(write_plan(estate), lambda value: value.update(digest="sha256:" + "0" * 64))
    assert assert_stale(estate) == ""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (forge_scope(["secret"], []), "secret"),
        (forge_scope([], ["shop/secret"]), "--namespace shop/secret"),
        (forge_options(force_delete=["orders"]), f"{ORDERS} cannot be deleted: it is still declared"),
        (forge_options(allow_delete=["secret"]), "secret"),
        (forge_options(allow_data_loss=["x"]), "--allow-data-loss x: expected a namespace or topic and its setting"),
    ],
)
def test_a_plan_of_what_was_never_approved_cannot_be_made_again(
    estate: Estate, change: Callable[[Estate], None], problem: str
) -> None:
    write_plan(estate)
    change(estate)
    before = held(estate)
    error = estate.run("apply", "plan.json", code=4).err
    assert error.startswith("schemactl: plan.json cannot be made again: ")
    assert problem in error
    assert error.endswith(f"; nothing was changed\n  Fix: {AGAIN}\n")
    assert held(estate) == before


def test_the_result_of_a_stale_plan_says_that_nothing_was_done(estate: Estate) -> None:
    write_plan(estate)
    estate.put(avro("id", theirs=0))
    estate.run("apply", "plan.json", "--result", "result.json", code=4)
    result = estate.json("result.json")
    assert (result["outcome"], result["done"]) == ("failed", [])
    assert "plan.json is stale" in result["failure"]


# Plans of another place


def test_a_plan_of_another_repository_is_refused(estate: Estate, tmp_path: Path) -> None:
    other = Estate(tmp_path / "other")
    other.orders("id", theirs=0)
    text = write_plan(other).read_text()
    (estate.scratch.path / "plan.json").write_text(text)
    assert "not in the approved history" in estate.run("apply", "plan.json", code=1).err
    own = estate.scratch.git("rev-parse", "HEAD")
    forge(estate.scratch.path / "plan.json", lambda value: value["approved"]["commit"].update(id=own))
    assert "+  + v1 AVRO" in assert_stale(estate)


def test_a_plan_of_a_branch_that_is_not_approved_is_refused(estate: Estate) -> None:
    estate.scratch.flush()
    estate.scratch.git("switch", "-qc", "proposed")
    estate.scratch.write({"namespaces/orders.avsc": avro("id", theirs=0).schema})
    estate.scratch.git("add", "-A")
    estate.scratch.git("commit", "-qm", "not reviewed")
    project = estate.scratch.path / "schemactl.yaml"
    text = project.read_text()
    project.write_text(text + "approved: proposed\n")
    write_plan(estate, "--trust-working-tree")
    project.write_text(text)
    before = held(estate)
    assert "not in the approved history" in estate.run("apply", "plan.json", code=1).err
    assert held(estate) == before


@pytest.mark.parametrize(
    ("change", "code", "problem"),
    [
        ({"target": "prod"}, 64, "--target prod: schemactl.yaml has local"),
        ({"registry": "sqlite:other.db"}, 1, "plan.json was made for sqlite:other.db, but target local is now sqlite:"),
        ({"proposed": True}, 1, "plan.json says what a merge would do, which is not approved yet; nothing was changed"),
    ],
)
def test_a_forged_target_is_refused(estate: Estate, change: dict[str, Any], code: int, problem: str) -> None:
    forge(write_plan(estate), lambda value: value.update(change))
    before = held(estate)
    assert problem in estate.run("apply", "plan.json", code=code).err
    assert held(estate) == before


def test_the_command_for_a_proposed_plan_repeats_its_options(estate: Estate) -> None:
    options = ("--topic", "legacy", "--allow-delete", "legacy")
    printed = estate.run("plan", "--base", "main", "--out", "plan.json", *options).err
    command = printed.partition("once it is merged: ")[2].strip()
    digest = estate.json("plan.json")["digest"]
    assert command == f"schemactl apply --target local --expect-digest {digest} --topic legacy --allow-delete legacy"
    assert command in estate.run("apply", "plan.json", code=1).err
    estate.run(*command.split()[1:])
    assert held(estate) == ([avro("id")], [STRING, None])


# Plans that are applied


def test_an_older_approved_commit_still_counts(estate: Estate) -> None:
    write_plan(estate)
    estate.orders("id", note=0, city=0)
    estate.run("apply", "plan.json")
    assert estate.held() == [avro("id"), avro("id", note=0)]


def test_another_layout_of_the_same_file_is_the_same_plan(estate: Estate) -> None:
    path = write_plan(estate)
    path.write_text(json.dumps({"comment": "read by me", **json.loads(path.read_text())}, sort_keys=True))
    estate.run("apply", "plan.json")


def test_what_was_declared_again_since_is_not_deleted(estate: Estate) -> None:
    write_plan(estate, "--force-delete", "legacy")
    estate.scratch.commit({"namespaces/legacy.yaml": LEGACY_TEXT})
    before = held(estate)
    error = estate.run("apply", "plan.json", "--force-delete", "legacy", code=4).err
    assert f"deletes the schema of {LEGACY}, which is declared; nothing was changed" in error
    assert held(estate) == before


@pytest.mark.parametrize("option", ["--allow-delete", "--force-delete"])
def test_what_is_deleted_is_allowed_where_it_is_applied_too(estate: Estate, option: str) -> None:
    advice = estate.run("plan", "--out", "plan.json", option, "legacy").err
    assert f"schemactl apply plan.json {option} shop/sales/legacy" in advice
    before = held(estate)
    assert f"if that was reviewed: schemactl apply plan.json {option}" in estate.run("apply", "plan.json", code=1).err
    other = "--force-delete" if option == "--allow-delete" else "--allow-delete"
    estate.run("apply", "plan.json", other, "legacy", code=64)
    estate.run("apply", "plan.json", option, "orders", code=64)
    assert held(estate) == before
    estate.run("apply", "plan.json", option, "legacy")
    assert estate.held(LEGACY) == ([] if option == "--force-delete" else [STRING, None])


def test_the_digest_that_was_reviewed_allows_what_the_plan_does(estate: Estate) -> None:
    write_plan(estate)
    harmless = estate.json("plan.json")["digest"]
    write_plan(estate, "--force-delete", "legacy")
    digest = estate.json("plan.json")["digest"]
    before = held(estate)
    estate.run("apply", "plan.json", "--expect-digest", harmless, code=4)
    assert held(estate) == before
    estate.run("apply", "plan.json", "--expect-digest", digest)
    assert estate.held(LEGACY) == []


def test_relaxing_is_allowed_where_it_is_applied_too(estate: Estate) -> None:
    estate.orders("id", "needed")
    write_plan(estate, "--relax-while-replaying")
    assert "under ALWAYS_COMPATIBLE" in estate.run("apply", "plan.json", code=1).err
    estate.run("apply", "plan.json", "--relax-while-replaying")
    assert estate.held()[-1] == avro("id", "needed")


# Rebuilds


@pytest.fixture
def lost(estate: Estate) -> Estate:
    """The registry lost what `list.json` lists: Git's v0, somebody else's v1, and Git's v1 as v2."""
    assert estate.put(avro("id", theirs=0)) == [1]
    estate.run("apply", "--auto-approve", code=3)
    assert estate.held() == [avro("id"), avro("id", theirs=0), avro("id", note=0)]
    (estate.scratch.path / "list.json").write_text(estate.run("drift", "--format", "json", code=100).out)
    for file in (estate.scratch.path / ".schemactl").glob("registry.db*"):
        file.unlink()
    return estate


def write_rebuild(shop: Estate, *options: str) -> Path:
    shop.run("rebuild", "list.json", "--out", "plan.json", *options, code=100)
    return shop.scratch.path / "plan.json"


def test_a_plan_of_a_rebuild_has_a_copy_of_the_list(lost: Estate) -> None:
    out = lost.run("rebuild", "list.json", "--out", "plan.json", code=100).out
    assert f"Digest: {lost.json('plan.json')['digest']}\n" in out
    (lost.scratch.path / "list.json").unlink()
    lost.run("apply", "plan.json", code=3)
    assert lost.held() == [avro("id"), avro("id", theirs=0), avro("id", note=0)]


def versions_of_orders(value: dict[str, Any]) -> list[dict[str, Any]]:
    [topic] = [topic for topic in value["lists"] if topic["topic"] == str(ORDERS)]
    versions: list[dict[str, Any]] = topic["versions"]
    return versions


def forge_text_of_git(value: dict[str, Any]) -> None:
    text = {"type": "AVRO", "schema": avro("id", evil=0).schema.decode(), "properties": {}}
    next(version for version in versions_of_orders(value) if version["git"] == 1)["schema"] = text


def forge_foreign_text(value: dict[str, Any]) -> None:
    versions_of_orders(value)[1]["schema"]["schema"] = avro("id", evil=0).schema.decode()


def forge_order(value: dict[str, Any]) -> None:
    versions = versions_of_orders(value)
    versions[0]["registry"], versions[1]["registry"] = 1, 0


def forge_name(value: dict[str, Any]) -> None:
    value["lists"][0]["topic"] = "a:b:c"


def forge_type(value: dict[str, Any]) -> None:
    versions_of_orders(value)[1]["schema"]["type"] = "NOTHING"


def remove_list(value: dict[str, Any]) -> None:
    del value["lists"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (forge_text_of_git, 1),
        (forge_foreign_text, 4),
        (forge_order, 1),
        (forge_name, 1),
        (forge_type, 1),
        (remove_list, 4),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_forged_list_is_refused(lost: Estate, change: Change, code: int) -> None:
    forge(write_rebuild(lost), change)
    lost.run("apply", "plan.json", code=code)
    assert lost.held() == []


def test_a_rebuild_that_deletes_first_is_allowed_where_it_is_applied_too(lost: Estate) -> None:
    with lost.registry() as registry:
        registry.create_namespace(ORDERS.namespace_name)
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
    lost.put(avro("id", first=0))
    write_rebuild(lost, "--force-delete", "orders")
    assert "by force" in lost.run("apply", "plan.json", code=1).err
    lost.run("apply", "plan.json", "--force-delete", "orders", code=3)
    assert lost.held() == [avro("id"), avro("id", theirs=0), avro("id", note=0)]
