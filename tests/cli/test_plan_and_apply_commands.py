"""`schemactl plan` and `schemactl apply` in real repositories: screens, files, exit codes."""

from __future__ import annotations

import io
import pty
import signal
from contextlib import closing
from threading import Event

import pytest
from estate import NAMESPACE, ORDERS, PROJECT, Estate

from schemactl.cli import Context
from schemactl.core.names import TopicName
from schemactl.core.policies import Policies
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

TWO_TARGETS = PROJECT + '  prod: {registry: "sqlite:prod.db", namespaces: {shop/sales: shop-prod/sales}}\n'
WRONG_DIGEST = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Approve two versions, and apply nothing."""
    new_estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    new_estate.commit_orders("id", note=0)
    return new_estate


def held_by_prod(shop: Estate) -> int:
    """Return the number of versions in the registry of the other target."""
    with closing(EmbeddedRegistry(str(shop.scratch.path / "prod.db"))) as registry:
        return len(registry.versions(TopicName("shop-prod", "sales", "orders")))


def test_plan_shows_apply_does_and_then_there_is_nothing_left(estate: Estate) -> None:
    *_, summed_up, digest = estate.run("plan", "--detailed-exitcode", code=2).out.splitlines()
    assert summed_up == "Plan: 1 namespace, 1 topic, 2 versions to register."
    assert digest.startswith("Digest: sha256:")
    assert not (estate.scratch.path / ".schemactl").exists()
    estate.run("plan")
    out, err, _ = estate.run("apply", "--auto-approve")
    assert out.endswith("Applied: 1 namespace, 1 topic, 2 versions registered.\n")
    assert err.splitlines()[-1] == f"[5/5] {ORDERS}: register v1"
    assert len(estate.read_definitions()) == 2
    assert "No changes." in estate.run("plan", "--detailed-exitcode").out
    assert "No changes." in estate.run("apply").out


def test_a_plan_file_is_applied_once_without_a_question_and_without_commits_since(estate: Estate) -> None:
    digest = estate.run_json("plan", "--out", "plan.json")["digest"]
    estate.commit_orders("id", note=0, city=0)
    estate.run("apply", "plan.json", "--result", "result.json")
    result = estate.read_json("result.json")
    assert (result["outcome"], len(result["done"]), result["left"]) == ("applied", 5, [])
    assert result["plan"] == estate.read_json("plan.json")["digest"] == digest
    err = estate.run("apply", "plan.json", "--result", "again.json", code=4).err
    assert "plan.json is stale" in err
    assert estate.read_json("again.json")["outcome"] == "failed"
    assert len(estate.read_definitions()) == 2


def test_a_result_file_that_cannot_be_written_stops_the_apply(estate: Estate) -> None:
    err = estate.run("apply", "--auto-approve", "--result", "nowhere/result.json", code=1).err
    assert "nowhere/result.json cannot be written" in err
    assert estate.read_definitions() == []


def test_a_plan_for_another_registry_is_refused(estate: Estate) -> None:
    estate.run("plan", "--out", "plan.json")
    estate.scratch.commit({"schemactl.yaml": PROJECT.replace("registry.db", "other.db")})
    err = estate.run("apply", "plan.json", code=1).err
    assert "target local is now sqlite:.schemactl/other.db" in err


def test_what_shapes_a_plan_does_not_go_with_a_plan_file(estate: Estate) -> None:
    estate.run("plan", "--out", "plan.json")
    shaping = "--topic=*", "--namespace=shop/sales", "--allow-delete=orders", "--relax-while-replaying"
    for option in shaping:
        estate.run("apply", "plan.json", option, code=64)


def test_a_topic_that_would_be_rejected_is_left_out_as_a_whole(estate: Estate) -> None:
    estate.commit_orders("id", "needed", note=0)
    assert "needed" in estate.run("plan", "--out", "plan.json", code=100).out
    estate.run("apply", "--auto-approve", "--fail-fast", code=100)
    estate.run("apply", "plan.json", "--fail-fast", code=100)
    out = estate.run("apply", "plan.json", code=3).out
    assert out.endswith("Applied: 1 namespace; left out: 1 topic.\n")
    # Nothing else is left to do.
    estate.run("apply", "--auto-approve", code=100)
    assert estate.read_definitions() == []
    estate.run("plan", "--topic", "shop/sales/orders", "--relax-while-replaying")
    estate.run("apply", "--auto-approve", "--relax-while-replaying")
    assert len(estate.read_definitions()) == 3


def test_only_the_approved_plan_is_applied(estate: Estate) -> None:
    digest = estate.run("plan").out.rpartition("Digest: ")[2].strip()
    err = estate.run("apply", "--expect-digest", WRONG_DIGEST, code=4).err
    assert "its digest is " + digest in err
    estate.run("plan", "--out", "plan.json")
    assert estate.read_json("plan.json")["digest"] == digest
    estate.run("apply", "plan.json", "--expect-digest", WRONG_DIGEST, code=4)
    estate.run("plan", "--detailed-exitcode", code=2)
    estate.run("apply", "--expect-digest", digest)
    # Where nothing is left to do, nothing is done that was not approved.
    estate.run("apply", "--expect-digest", digest)


def test_without_a_terminal_nobody_is_asked(estate: Estate) -> None:
    assert "standard input is not a terminal" in estate.run("apply", code=64, stdin="yes\n").err
    assert estate.read_definitions() == []


@pytest.mark.parametrize(
    ("typed", "code", "version_count"), [("yes\n", 0, 2), ("y\n", 1, 0), ("\n", 1, 0), ("\x04", 1, 0)]
)
def test_on_a_terminal_only_yes_goes_ahead(estate: Estate, typed: str, code: int, version_count: int) -> None:
    ours, theirs = pty.openpty()
    with open(ours, "wb", buffering=0) as keyboard, open(theirs) as terminal:  # noqa: PTH123  no paths
        keyboard.write(typed.encode())
        out, err, _ = estate.run("apply", code=code, stdin=terminal)
    assert "Apply this plan? Enter `yes` to continue" in err
    assert ("Nothing was applied." in out) == (version_count == 0)
    assert len(estate.read_definitions()) == version_count


def test_a_plan_is_stale_if_the_registry_changed_before_it_was_confirmed(estate: Estate) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, _size: int | None = -1) -> str:  # type: ignore[override]  # typeshed: StringIO is also a stream of bytes
            with estate.registry() as registry:
                registry.create_namespace(ORDERS.namespace_name)
            return "yes\n"

    err = estate.run("apply", stdin=Terminal(), code=4).err
    assert "has changed since the plan was made" in err
    assert estate.read_definitions() == []


def test_after_a_failure_halfway_the_next_apply_goes_on(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM, as a pipeline sends it, after the fourth step."""
    heard = Event()

    def say(_: Context, text: str) -> None:
        if text.startswith("[4/5]"):
            signal.raise_signal(signal.SIGTERM)
            assert heard.wait(60)

    with monkeypatch.context() as patched:
        patched.setattr(Context, "say", say)
        # The first reaction of the main thread to the signal.
        patched.setattr(EmbeddedRegistry, "stop_other_threads", lambda _: heard.set())
        out = estate.run("apply", "--auto-approve", "--result", "result.json", code=3).out
    assert "Applied 4 of 5 steps." in out
    result = estate.read_json("result.json")
    assert (result["outcome"], len(result["done"]), len(result["left"])) == ("partly applied", 4, 1)
    versions = result["topics"][0]["versions"]
    assert [(version["registry"], version["git"]) for version in versions] == [(0, 0), (None, 1)]
    assert len(estate.read_definitions()) == 1
    estate.run("apply", "--auto-approve")
    assert len(estate.read_definitions()) == 2


def test_a_deletion_needs_its_flag(estate: Estate) -> None:
    estate.run("apply", "--auto-approve")
    text = (estate.scratch.path / "namespaces/orders.yaml").read_text()
    estate.scratch.commit({"namespaces/orders.yaml": None})
    out = estate.run("apply", "--auto-approve").out
    assert "No changes. The registry has everything that Git approved; 1 deletion skipped." in out
    assert len(estate.read_definitions()) == 2
    allowed = ("apply", "--auto-approve", "--allow-delete", "sales/orders")
    assert "1 topic, 1 schema deleted." in estate.run(*allowed).out
    assert len(estate.read_definitions()) == 3
    estate.run(*allowed)
    assert len(estate.read_definitions()) == 3
    estate.run("apply", "--auto-approve", "--allow-delete", "sales/ordres", code=64)
    estate.scratch.commit({"namespaces/orders.yaml": text, "namespaces/refunds.yaml": "topic: shop/sales/refunds\n"})
    estate.run("plan", "--topic", "*/refunds", "--allow-delete", "sales/orders", code=64)


def test_a_target_is_chosen_by_name_and_may_rename_namespaces(estate: Estate) -> None:
    estate.scratch.commit({"schemactl.yaml": TWO_TARGETS})
    assert "--target is needed: schemactl.yaml has local, prod" in estate.run("plan", code=64).err
    estate.run("plan", "--target", "test", code=64)
    estate.run("apply", "--auto-approve", "--target", "prod")
    assert held_by_prod(estate) == 2
    estate.run("plan", "--target", "prod", "--detailed-exitcode")
    estate.run("plan", "--target", "local", "--detailed-exitcode", code=2)


def test_on_a_target_with_other_names_the_advised_deletion_is_accepted(estate: Estate) -> None:
    estate.scratch.commit({"schemactl.yaml": TWO_TARGETS})
    estate.run("apply", "--auto-approve", "--target", "prod")
    estate.scratch.commit({"namespaces/orders.yaml": None})
    advised = estate.run("plan", "--target", "prod").out.partition("to delete it: ")[2].split()[:2]
    assert advised == ["--allow-delete", str(ORDERS)]
    err = estate.run("plan", "--target", "prod", *advised, "--out", "plan.json").err
    command = err.partition("To carry out exactly this: schemactl ")[2].split("\n")[0]
    estate.run(*command.split())
    assert held_by_prod(estate) == 3


def test_a_foreign_registry_file_is_one_clear_error(estate: Estate) -> None:
    estate.scratch.write({".schemactl/registry.db": "not a database, but quite some text"})
    assert "is not a readable SQLite file" in estate.run("plan", code=1).err


def test_somebody_else_writing_is_seen(estate: Estate) -> None:
    estate.run("apply", "--auto-approve")
    with estate.registry() as registry:
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(schema_validation_enforced=True))
    estate.run("plan", "--detailed-exitcode")  # not managed in Git
    estate.scratch.commit({"namespaces/sales.yaml": NAMESPACE + "schema_validation_enforced: false\n"})
    estate.run("plan", "--detailed-exitcode", code=2)
