"""`schemactl plan` and `schemactl apply` in real repositories: screens, files, exit codes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from schemactl.cli import Context, main
from schemactl.model import NamespaceName, Policies, TopicName
from schemactl.registry import Scope
from schemactl.registry.embedded import EmbeddedRegistry

PROJECT = """\
version: 1
targets:
  local: {registry: "sqlite:.schemactl/registry.db"}
"""

TWO_TARGETS = (
    PROJECT
    + """\
  prod:
    registry: "sqlite:prod.db"
    namespaces: {shop/sales: shop-prod/sales}
"""
)

NAMESPACE = "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"

ORDERS = TopicName("shop", "sales", "orders")


class Shop:
    """A repository with one topic, driven through the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(
            {"schemactl.yaml": PROJECT, ".gitignore": ".schemactl/\n", "namespaces/sales.yaml": NAMESPACE}
        )

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@shop.example"]
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "change")

    def orders(self, *fields: str) -> None:
        """A commit in which orders has these fields; one without default is written as `name!`."""
        told = [
            {"name": name.rstrip("!"), "type": "string", **({} if name.endswith("!") else {"default": ""})}
            for name in fields
        ]
        definition = json.dumps({"type": "record", "name": "Order", "fields": told})
        topic = f"topic: shop/sales/orders\nschema:\n  type: AVRO\n  definition: {definition}\n"
        self.commit({"namespaces/orders.yaml": topic})

    def run(self, *arguments: str) -> int:
        return main(["-C", str(self.folder), *arguments])

    def registry(self, name: str = ".schemactl/registry.db") -> EmbeddedRegistry:
        return EmbeddedRegistry(str(self.folder / name))

    def held(self, topic: TopicName = ORDERS, name: str = ".schemactl/registry.db") -> int:
        """How many versions the registry holds."""
        registry = self.registry(name)
        found = registry.read(Scope(frozenset(), frozenset({topic}))).topics.get(topic)
        registry.close()
        return len(found.versions) if found else 0


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = Shop(tmp_path)
    found.orders("id")
    found.orders("id", "note")
    return found


def test_plan_shows_apply_does_and_then_there_is_nothing_left(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shop.run("plan", "--detailed-exitcode") == 2
    *_, summed_up, digest = capsys.readouterr().out.splitlines()
    assert summed_up == "Plan: 1 namespace, 1 topic, 2 versions to register."
    assert digest.startswith("Digest: sha256:")
    assert not (shop.folder / ".schemactl").exists()
    assert shop.run("apply", "--auto-approve") == 0
    said = capsys.readouterr()
    assert said.out.endswith("Applied: 1 namespace, 1 topic, 2 versions registered.\n")
    assert said.err.splitlines()[-1] == f"[5/5] {ORDERS}: register v1"
    assert shop.held() == 2
    assert shop.run("plan", "--detailed-exitcode") == 0
    assert "No changes." in capsys.readouterr().out
    assert shop.run("apply") == 0
    assert "No changes." in capsys.readouterr().out


def test_plan_without_the_flag_exits_with_zero(shop: Shop) -> None:
    assert shop.run("plan") == 0


def test_a_plan_file_is_applied_once(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert shop.run("plan", "--out", "plan.json") == 0
    assert shop.run("apply", "plan.json", "--result", "result.json") == 0
    result = json.loads((shop.folder / "result.json").read_text())
    assert (result["outcome"], len(result["done"]), result["left"]) == ("applied", 5, [])
    assert result["plan"] == json.loads((shop.folder / "plan.json").read_text())["digest"]
    capsys.readouterr()
    assert shop.run("apply", "plan.json") == 4
    assert "no longer as it was when the plan was made" in capsys.readouterr().err
    assert shop.held() == 2


def test_a_result_file_that_cannot_be_written_stops_the_apply(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shop.run("apply", "--auto-approve", "--result", "nowhere/result.json") == 1
    assert "nowhere/result.json cannot be written" in capsys.readouterr().err
    assert shop.held() == 0


def test_a_stale_plan_leaves_a_result_that_says_so(shop: Shop) -> None:
    shop.run("plan", "--out", "plan.json")
    shop.run("apply", "--auto-approve")
    assert shop.run("apply", "plan.json", "--result", "result.json") == 4
    assert json.loads((shop.folder / "result.json").read_text())["outcome"] == "failed"


def test_a_plan_file_needs_no_question_and_no_commits_since(shop: Shop) -> None:
    shop.run("plan", "--out", "plan.json")
    shop.orders("id", "note", "city")
    assert shop.run("apply", "plan.json") == 0
    assert shop.held() == 2


def test_json_on_standard_output_is_the_plan_file(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert shop.run("plan", "--format", "json", "--out", "plan.json") == 0
    assert capsys.readouterr().out == (shop.folder / "plan.json").read_text()


def test_a_changed_plan_file_is_one_clear_error(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.run("plan", "--out", "plan.json")
    path = shop.folder / "plan.json"
    path.write_text(path.read_text().replace("FULL", "FORWARD"))
    assert shop.run("apply", "plan.json") == 1
    assert "was changed after it was written" in capsys.readouterr().err
    assert not (shop.folder / ".schemactl").exists()


def test_a_plan_for_another_registry_is_refused(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.run("plan", "--out", "plan.json")
    shop.commit({"schemactl.yaml": PROJECT.replace("registry.db", "other.db")})
    assert shop.run("apply", "plan.json") == 1
    assert "target local is now sqlite:.schemactl/other.db" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--topic=*", "--namespace=shop/sales", "--allow-delete=orders", "--relax-while-replaying"]
)
def test_what_shapes_a_plan_does_not_go_with_a_plan_file(shop: Shop, option: str) -> None:
    shop.run("plan", "--out", "plan.json")
    assert shop.run("apply", "plan.json", option) == 64


def test_a_predicted_refusal_exits_with_one_hundred_and_applies_nothing(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.orders("id", "note", "needed!")
    assert shop.run("plan", "--out", "plan.json") == 100
    assert "needed" in capsys.readouterr().out
    assert shop.run("apply", "--auto-approve") == 100
    assert shop.run("apply", "plan.json") == 100
    assert shop.held() == 0
    assert shop.run("plan", "--topic", "shop/sales/orders", "--relax-while-replaying") == 0
    assert shop.run("apply", "--auto-approve", "--relax-while-replaying") == 0
    assert shop.held() == 3


def test_only_the_approved_plan_is_applied(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.run("plan")
    digest = capsys.readouterr().out.rpartition("Digest: ")[2].strip()
    assert shop.run("apply", "--require-approved", "sha256:" + "0" * 64) == 4
    assert "its digest is " + digest in capsys.readouterr().err
    assert shop.run("plan", "--out", "plan.json") == 0
    assert json.loads((shop.folder / "plan.json").read_text())["digest"] == digest
    assert shop.run("apply", "plan.json", "--require-approved", "sha256:" + "0" * 64) == 4
    assert shop.run("plan", "--detailed-exitcode") == 2
    assert shop.run("apply", "--require-approved", digest) == 0
    # Where nothing is left to do, nothing is done that was not approved.
    assert shop.run("apply", "--require-approved", digest) == 0


def test_without_a_terminal_nobody_is_asked(shop: Shop) -> None:
    command = [sys.executable, "-m", "schemactl", "-C", str(shop.folder), "apply"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert "standard input is not a terminal" in done.stderr
    assert shop.held() == 0


@pytest.mark.parametrize(
    ("typed", "code", "held"), [("yes\n", 0, 2), ("y\n", 1, 0), ("\n", 1, 0), ("\x04", 1, 0)]
)
def test_on_a_terminal_only_yes_goes_ahead(shop: Shop, typed: str, code: int, held: int) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "schemactl", "-C", str(shop.folder), "apply"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        os.write(ours, typed.encode())
        out, err = process.communicate()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code
    assert "Apply this? Only `yes` goes ahead" in err
    assert ("Nothing was applied." in out) == (held == 0)
    assert shop.held() == held


def test_a_failure_halfway_exits_with_three_and_the_next_apply_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM, as a pipeline sends it, after the fourth step."""

    def say(_: Context, text: str) -> None:
        if text.startswith("[4/5]"):
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr(Context, "say", say)
        assert shop.run("apply", "--auto-approve", "--result", "result.json") == 3
    assert "Applied 4 of 5 steps." in capsys.readouterr().out
    result = json.loads((shop.folder / "result.json").read_text())
    assert (result["outcome"], len(result["done"]), len(result["left"])) == ("partly applied", 4, 1)
    assert [(each["registry"], each["git"]) for each in result["topics"][0]["versions"]] == [
        (0, 0),
        (None, 1),
    ]
    assert shop.held() == 1
    assert shop.run("apply", "--auto-approve") == 0
    assert shop.held() == 2


def test_a_deletion_needs_its_flag(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.run("apply", "--auto-approve")
    shop.git("rm", "--quiet", "namespaces/orders.yaml")
    shop.git("commit", "--quiet", "-m", "Orders are no topic any more")
    capsys.readouterr()
    assert shop.run("apply", "--auto-approve") == 0
    assert (
        "No changes. The registry has everything that Git approved; 1 deletion skipped."
        in capsys.readouterr().out
    )
    assert shop.held() == 2
    assert shop.run("apply", "--auto-approve", "--allow-delete", "sales/orders") == 0
    assert "1 topic, 1 schema deleted." in capsys.readouterr().out
    assert shop.held() == 3
    assert shop.run("apply", "--auto-approve", "--allow-delete", "sales/orders") == 0
    assert shop.held() == 3
    assert shop.run("apply", "--auto-approve", "--allow-delete", "sales/ordres") == 64
    shop.orders("id")
    shop.commit({"namespaces/refunds.yaml": "topic: shop/sales/refunds\n"})
    assert shop.run("plan", "--topic", "*/refunds", "--allow-delete", "sales/orders") == 64


def test_a_target_is_chosen_by_name_and_may_rename_namespaces(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.commit({"schemactl.yaml": TWO_TARGETS})
    assert shop.run("plan") == 64
    assert "--target is needed: schemactl.yaml has local, prod" in capsys.readouterr().err
    assert shop.run("plan", "--target", "test") == 64
    assert shop.run("apply", "--auto-approve", "--target", "prod") == 0
    assert shop.held(TopicName("shop-prod", "sales", "orders"), "prod.db") == 2
    assert shop.run("plan", "--target", "prod", "--detailed-exitcode") == 0
    assert shop.run("plan", "--target", "local", "--detailed-exitcode") == 2


def test_on_a_target_with_other_names_the_advised_deletion_is_accepted(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.commit({"schemactl.yaml": TWO_TARGETS})
    assert shop.run("apply", "--auto-approve", "--target", "prod") == 0
    shop.git("rm", "--quiet", "namespaces/orders.yaml")
    shop.git("commit", "--quiet", "-m", "Orders are no topic any more")
    capsys.readouterr()
    assert shop.run("plan", "--target", "prod") == 0
    advised = capsys.readouterr().out.partition("to delete it: ")[2].split()[:2]
    assert advised == ["--allow-delete", str(ORDERS)]
    assert shop.run("plan", "--target", "prod", *advised, "--out", "plan.json") == 0
    command = capsys.readouterr().err.partition("To carry out exactly this: schemactl ")[2].split("\n")[0]
    assert shop.run(*command.split()) == 0
    assert shop.held(TopicName("shop-prod", "sales", "orders"), "prod.db") == 3


def test_a_foreign_registry_file_is_one_clear_error(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.folder / ".schemactl").mkdir()
    (shop.folder / ".schemactl" / "registry.db").write_text("not a database, but quite some text")
    assert shop.run("plan") == 1
    assert "is not a readable SQLite file" in capsys.readouterr().err


def test_somebody_else_writing_is_seen(shop: Shop) -> None:
    shop.run("apply", "--auto-approve")
    registry = shop.registry()
    registry.set_namespace_policies(NamespaceName("shop", "sales"), Policies(schema_validation_enforced=True))
    registry.close()
    assert shop.run("plan", "--detailed-exitcode") == 0  # not managed in Git
    shop.commit({"namespaces/sales.yaml": NAMESPACE + "schema_validation_enforced: false\n"})
    assert shop.run("plan", "--detailed-exitcode") == 2
