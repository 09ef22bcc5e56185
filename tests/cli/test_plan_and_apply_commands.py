"""`schemactl plan` and `schemactl apply` in real repositories: screens, files, exit codes."""

from __future__ import annotations

import io
import json
import pty
import signal
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from estate import NAMESPACE, ORDERS, PROJECT, Estate

from schemactl.cli import Context
from schemactl.core.names import TopicName
from schemactl.core.policies import Policies
from schemactl.registry.embedded import EmbeddedRegistry

TWO_TARGETS = PROJECT + '  prod: {registry: "sqlite:prod.db", namespaces: {shop/sales: shop-prod/sales}}\n'
WRONG_DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def shop(tmp_path: Path) -> Estate:
    """Two versions that are not applied."""
    found = Estate(tmp_path / "shop")
    found.orders("id", note=0)
    return found


def held_by_prod(shop: Estate) -> int:
    """How many versions the other target holds."""
    with closing(EmbeddedRegistry(str(shop.scratch.path / "prod.db"))) as registry:
        return len(registry.versions(TopicName("shop-prod", "sales", "orders")))


def test_plan_shows_apply_does_and_then_there_is_nothing_left(shop: Estate) -> None:
    *_, summed_up, digest = shop.run("plan", "--detailed-exitcode", code=2).out.splitlines()
    assert summed_up == "Plan: 1 namespace, 1 topic, 2 versions to register."
    assert digest.startswith("Digest: sha256:")
    assert not (shop.scratch.path / ".schemactl").exists()
    shop.run("plan")
    out, err, _ = shop.run("apply", "--auto-approve")
    assert out.endswith("Applied: 1 namespace, 1 topic, 2 versions registered.\n")
    assert err.splitlines()[-1] == f"[5/5] {ORDERS}: register v1"
    assert len(shop.held()) == 2
    assert "No changes." in shop.run("plan", "--detailed-exitcode").out
    assert "No changes." in shop.run("apply").out


def test_a_plan_file_is_applied_once_without_a_question_and_without_commits_since(shop: Estate) -> None:
    digest = json.loads(shop.run("plan", "--format", "json", "--out", "plan.json").out)["digest"]
    shop.orders("id", note=0, city=0)
    shop.run("apply", "plan.json", "--result", "result.json")
    result = shop.json("result.json")
    assert (result["outcome"], len(result["done"]), result["left"]) == ("applied", 5, [])
    assert result["plan"] == shop.json("plan.json")["digest"] == digest
    err = shop.run("apply", "plan.json", "--result", "again.json", code=4).err
    assert "plan.json is stale" in err
    assert shop.json("again.json")["outcome"] == "failed"
    assert len(shop.held()) == 2


def test_a_result_file_that_cannot_be_written_stops_the_apply(shop: Estate) -> None:
    err = shop.run("apply", "--auto-approve", "--result", "nowhere/result.json", code=1).err
    assert "nowhere/result.json cannot be written" in err
    assert shop.held() == []


def test_a_plan_for_another_registry_is_refused(shop: Estate) -> None:
    shop.run("plan", "--out", "plan.json")
    shop.scratch.commit({"schemactl.yaml": PROJECT.replace("registry.db", "other.db")})
    err = shop.run("apply", "plan.json", code=1).err
    assert "target local is now sqlite:.schemactl/other.db" in err


def test_what_shapes_a_plan_does_not_go_with_a_plan_file(shop: Estate) -> None:
    shop.run("plan", "--out", "plan.json")
    shaping = "--topic=*", "--namespace=shop/sales", "--allow-delete=orders", "--relax-while-replaying"
    for option in shaping:
        shop.run("apply", "plan.json", option, code=64)


def test_a_topic_that_would_be_rejected_is_left_out_as_a_whole(shop: Estate) -> None:
    shop.orders("id", "needed", note=0)
    assert "needed" in shop.run("plan", "--out", "plan.json", code=100).out
    shop.run("apply", "--auto-approve", "--fail-fast", code=100)
    shop.run("apply", "plan.json", "--fail-fast", code=100)
    out = shop.run("apply", "plan.json", code=3).out
    assert out.endswith("Applied: 1 namespace; left out: 1 topic.\n")
    # Nothing else is left to do.
    shop.run("apply", "--auto-approve", code=100)
    assert shop.held() == []
    shop.run("plan", "--topic", "shop/sales/orders", "--relax-while-replaying")
    shop.run("apply", "--auto-approve", "--relax-while-replaying")
    assert len(shop.held()) == 3


def test_only_the_approved_plan_is_applied(shop: Estate) -> None:
    digest = shop.run("plan").out.rpartition("Digest: ")[2].strip()
    err = shop.run("apply", "--expect-digest", WRONG_DIGEST, code=4).err
    assert "its digest is " + digest in err
    shop.run("plan", "--out", "plan.json")
    assert shop.json("plan.json")["digest"] == digest
    shop.run("apply", "plan.json", "--expect-digest", WRONG_DIGEST, code=4)
    shop.run("plan", "--detailed-exitcode", code=2)
    shop.run("apply", "--expect-digest", digest)
    # Where nothing is left to do, nothing is done that was not approved.
    shop.run("apply", "--expect-digest", digest)


def test_without_a_terminal_nobody_is_asked(shop: Estate) -> None:
    assert "standard input is not a terminal" in shop.run("apply", code=64, stdin="yes\n").err
    assert shop.held() == []


@pytest.mark.parametrize(("typed", "code", "held"), [("yes\n", 0, 2), ("y\n", 1, 0), ("\n", 1, 0), ("\x04", 1, 0)])
def test_on_a_terminal_only_yes_goes_ahead(shop: Estate, typed: str, code: int, held: int) -> None:
    ours, theirs = pty.openpty()
    with open(ours, "wb", buffering=0) as keyboard, open(theirs) as terminal:  # noqa: PTH123  no paths
        keyboard.write(typed.encode())
        out, err, _ = shop.run("apply", code=code, stdin=terminal)
    assert "Apply this? Only `yes` goes ahead" in err
    assert ("Nothing was applied." in out) == (held == 0)
    assert len(shop.held()) == held


def test_a_plan_is_stale_if_the_registry_changed_before_it_was_confirmed(shop: Estate) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, _size: int | None = -1) -> str:  # type: ignore[override]  # typeshed: StringIO is also a stream of bytes
            with shop.registry() as registry:
                registry.create_namespace(ORDERS.namespace_name)
            return "yes\n"

    err = shop.run("apply", stdin=Terminal(), code=4).err
    assert "is no longer as it was when the plan was made" in err
    assert shop.held() == []


def test_after_a_failure_halfway_the_next_apply_goes_on(shop: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM, as a pipeline sends it, after the fourth step."""
    heard = Event()

    def say(_: Context, text: str) -> None:
        if text.startswith("[4/5]"):
            signal.raise_signal(signal.SIGTERM)
            assert heard.wait(60)

    with monkeypatch.context() as patched:
        patched.setattr(Context, "say", say)
        # What the main thread does first when it hears of it.
        patched.setattr(EmbeddedRegistry, "keep_others_waiting", lambda _: heard.set())
        out = shop.run("apply", "--auto-approve", "--result", "result.json", code=3).out
    assert "Applied 4 of 5 steps." in out
    result = shop.json("result.json")
    assert (result["outcome"], len(result["done"]), len(result["left"])) == ("partly applied", 4, 1)
    versions = result["topics"][0]["versions"]
    assert [(each["registry"], each["git"]) for each in versions] == [(0, 0), (None, 1)]
    assert len(shop.held()) == 1
    shop.run("apply", "--auto-approve")
    assert len(shop.held()) == 2


def test_a_deletion_needs_its_flag(shop: Estate) -> None:
    shop.run("apply", "--auto-approve")
    text = (shop.scratch.path / "namespaces/orders.yaml").read_text()
    shop.scratch.commit({"namespaces/orders.yaml": None})
    out = shop.run("apply", "--auto-approve").out
    assert "No changes. The registry has everything that Git approved; 1 deletion skipped." in out
    assert len(shop.held()) == 2
    allowed = ("apply", "--auto-approve", "--allow-delete", "sales/orders")
    assert "1 topic, 1 schema deleted." in shop.run(*allowed).out
    assert len(shop.held()) == 3
    shop.run(*allowed)
    assert len(shop.held()) == 3
    shop.run("apply", "--auto-approve", "--allow-delete", "sales/ordres", code=64)
    shop.scratch.commit({"namespaces/orders.yaml": text, "namespaces/refunds.yaml": "topic: shop/sales/refunds\n"})
    shop.run("plan", "--topic", "*/refunds", "--allow-delete", "sales/orders", code=64)


def test_a_target_is_chosen_by_name_and_may_rename_namespaces(shop: Estate) -> None:
    shop.scratch.commit({"schemactl.yaml": TWO_TARGETS})
    assert "--target is needed: schemactl.yaml has local, prod" in shop.run("plan", code=64).err
    shop.run("plan", "--target", "test", code=64)
    shop.run("apply", "--auto-approve", "--target", "prod")
    assert held_by_prod(shop) == 2
    shop.run("plan", "--target", "prod", "--detailed-exitcode")
    shop.run("plan", "--target", "local", "--detailed-exitcode", code=2)


def test_on_a_target_with_other_names_the_advised_deletion_is_accepted(shop: Estate) -> None:
    shop.scratch.commit({"schemactl.yaml": TWO_TARGETS})
    shop.run("apply", "--auto-approve", "--target", "prod")
    shop.scratch.commit({"namespaces/orders.yaml": None})
    advised = shop.run("plan", "--target", "prod").out.partition("to delete it: ")[2].split()[:2]
    assert advised == ["--allow-delete", str(ORDERS)]
    err = shop.run("plan", "--target", "prod", *advised, "--out", "plan.json").err
    command = err.partition("To carry out exactly this: schemactl ")[2].split("\n")[0]
    shop.run(*command.split())
    assert held_by_prod(shop) == 3


def test_a_foreign_registry_file_is_one_clear_error(shop: Estate) -> None:
    shop.scratch.write({".schemactl/registry.db": "not a database, but quite some text"})
    assert "is not a readable SQLite file" in shop.run("plan", code=1).err


def test_somebody_else_writing_is_seen(shop: Estate) -> None:
    shop.run("apply", "--auto-approve")
    with shop.registry() as registry:
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(schema_validation_enforced=True))
    shop.run("plan", "--detailed-exitcode")  # not managed in Git
    shop.scratch.commit({"namespaces/sales.yaml": NAMESPACE + "schema_validation_enforced: false\n"})
    shop.run("plan", "--detailed-exitcode", code=2)
