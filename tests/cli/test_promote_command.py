"""`schemactl promote`: the changes of a move along the approved line, and the moved ref."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from estate import Estate
from scratch import Scratch, record, write_declaration

from schemactl.core.names import TopicName
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

PROJECT = """\
version: 1
targets:
  stage: {{registry: "sqlite:.schemactl/stage.db"}}
  prod: {{registry: "sqlite:.schemactl/prod.db", promoted: {promoted}}}
"""
WAIVER = """\
- rule: BROKER_INCOMPATIBLE
  topic: shop/sales/orders
  fingerprint: "sha256:{0:064x}"
  reason: nobody reads these
  owner: team-orders
  until: 2027-01-31
"""


def make_estate(path: Path, promoted: str = "origin/promoted/prod") -> Estate:
    """Make a repository with a branch in its history, and return a clone of it."""
    upstream = Estate(path / "upstream", project=PROJECT.format(promoted=promoted))
    scratch = upstream.scratch
    upstream.commit_orders("id", note=0)
    scratch.git("branch", "second")
    upstream.commit_orders("id", note=0, tax=0)
    scratch.commit({"waivers.yaml": WAIVER.format(1)})
    scratch.commit(
        {
            "namespaces/sales.yaml": "namespace: shop/sales\nis_allow_auto_update_schema: false\n",
            "namespaces/refunds.yaml": write_declaration("shop/sales/refunds", more="partitions: 4\n"),
            "waivers.yaml": None,
        },
        "Refunds",
    )
    scratch.commit(
        {
            "namespaces/orders.yaml": write_declaration(more="generation: 2\n"),
            "namespaces/orders.avsc": record("number"),
            "namespaces/refunds.yaml": None,
        },
        "Orders begin again",
    )
    scratch.flush()
    scratch.git("clone", "-q", str(scratch.path), str(path / "clone"))
    clone = Estate.__new__(Estate)
    clone.scratch = Scratch.open_existing(path / "clone")
    clone.scratch.configure_author()
    return clone


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return make_estate(tmp_path)


def promote(estate: Estate, *arguments: str) -> dict[str, Any]:
    report: dict[str, Any] = estate.run_json("promote", "prod", *arguments)
    return report


def test_it_moves_the_local_branch_and_prints_the_push(estate: Estate) -> None:
    git = estate.scratch.git
    said = estate.run("promote", "prod", "--to", "origin/second").out
    assert said.startswith(
        f"prod was never promoted, and moves to {git('rev-parse', '--short=9', 'origin/second')} (2023-11-14: Orders have 2): 2 commits of the approved history\n"
    )
    assert "\ntopic persistent://shop/sales/orders\n  + a new topic\n  + v0 AVRO: " in said
    assert said.endswith(
        "\nWith it: 2 versions, 1 topic, 1 namespace.\n\n"
        "The branch promoted/prod was moved, here. Publish it: git push origin promoted/prod\n"
    )
    assert git("rev-parse", "promoted/prod") == git("rev-parse", "origin/second")
    said = estate.run("plan", "--target", "prod", code=1).err
    assert "this repository has no ref or commit 'origin/promoted/prod'" in said
    assert (
        "Fix: `git fetch origin promoted/prod`; or, when nothing was promoted yet, `schemactl promote prod --to "
        in said
    )
    git("push", "-q", "origin", "promoted/prod")
    assert "v1" in estate.run("plan", "--target", "prod").out
    again = estate.run("promote", "prod", "--to", "second~0", code=1).err
    assert "this repository has no ref or commit 'second~0'" in again
    again = estate.run("promote", "prod", "--to", "origin/second").out
    assert "origin/promoted/prod is there" in again
    assert "is already there, here. Publish it: git push origin promoted/prod" in again


def test_what_comes_with_it_is_said_before_anything_moves(estate: Estate) -> None:
    git = estate.scratch.git
    git("push", "-q", "origin", "origin/second:refs/heads/promoted/prod")
    git("fetch", "-q")
    text = estate.run("promote", "prod", "--to", "origin/main", "--dry-run").out
    assert "The branch promoted/prod was not moved (--dry-run)." in text
    assert git("branch", "--list", "promoted/prod") == ""
    report = promote(estate, "--to", "origin/main", "--dry-run")
    assert (report["commits"], report["back"], report["moved"]) == (4, False, False)
    changes = {(change["change"], change.get("topic") or change["namespace"]): change for change in report["changes"]}
    orders = "persistent://shop/sales/orders"
    assert changes["generation begins", orders]["tombstone"] == 3
    assert [version["version"] for version in changes["versions", orders]["versions"]] == [4]
    assert changes["policies", "shop/sales"]["after"] == {"is_allow_auto_update_schema": False}
    assert changes["policies reset", "shop/sales"]["before"] == {"schema_compatibility_strategy": "BACKWARD"}
    assert ("topic added", "persistent://shop/sales/refunds") not in changes
    between = promote(estate, "--to", "origin/main~1", "--dry-run")
    assert between["waivers"] == []
    added = {change["change"]: change for change in between["changes"] if change.get("topic", "").endswith("refunds")}
    assert added["topic added"]["partitions"] == 4
    assert "Waived:\n  BROKER_INCOMPATIBLE of persistent://shop/sales/orders, by team-orders, until 2027-01-31" in (
        estate.run("promote", "prod", "--to", "origin/main~2", "--dry-run").out
    )


def test_it_says_which_targets_are_not_as_far(estate: Estate) -> None:
    project = PROJECT.format(promoted="promoted/prod, after: [stage]")
    trusting = ("promote", "prod", "--to", "origin/main", "--dry-run", "--trust-working-tree")
    estate.scratch.write({"schemactl.yaml": project})
    assert "not as far" not in estate.run(*trusting).out
    estate.scratch.write({"schemactl.yaml": project.replace('stage.db"', 'stage.db", promoted: "origin/second"')})
    assert "stage does not have these versions yet: a plan for prod skips them" in estate.run(*trusting).out


def test_going_back_is_explained_and_asked_for(estate: Estate) -> None:
    git = estate.scratch.git
    git("push", "-q", "origin", "origin/main:refs/heads/promoted/prod")
    git("fetch", "-q")
    refused = estate.run("promote", "prod", "--to", "origin/second", code=1)
    assert "moves back to" in refused.out
    assert "A registry keeps its content:" in refused.out
    assert "an old text returns its old number" in refused.out
    assert "origin/second is older than the position of prod; prod was not moved" in refused.err
    assert git("branch", "--list", "promoted/prod") == ""
    moved = promote(estate, "--to", "origin/second", "--back")
    main = git("rev-parse", "origin/main")
    assert moved["push"] == f"git push --force-with-lease=promoted/prod:{main} origin promoted/prod"
    assert git("rev-parse", "promoted/prod") == git("rev-parse", "origin/second")
    git(*moved["push"].split()[1:])
    assert "v4" not in estate.run("plan", "--target", "prod").out


def test_a_position_beside_the_line_is_left_by_a_push_that_overrules_nobody(estate: Estate) -> None:
    git = estate.scratch.git
    git("commit", "-q", "--allow-empty", "-m", "Mine")
    git("push", "-q", "origin", "HEAD:refs/heads/promoted/prod")
    said = estate.run("plan", "--target", "prod", code=1).err
    assert "prod is `promoted: origin/promoted/prod`. origin/promoted/prod is " in said
    assert "`schemactl promote prod --to COMMIT`, and push that" in said
    push = promote(estate, "--to", "origin/second")["push"]
    assert push == f"git push --force-with-lease=promoted/prod:{git('rev-parse', 'HEAD')} origin promoted/prod"
    git(*push.split()[1:])
    estate.run("plan", "--target", "prod")


def test_a_position_off_the_line_is_refused(estate: Estate) -> None:
    estate.scratch.git("commit", "-q", "--allow-empty", "-m", "Mine")
    said = estate.run("promote", "prod", "--to", "HEAD", code=1).err
    assert "HEAD is " in said
    assert (
        "which is not on the first-parent line of origin/main: it was never approved, or this clone is behind" in said
    )


def test_a_branch_that_is_checked_out_stays(estate: Estate) -> None:
    estate.scratch.git("switch", "-q", "-c", "promoted/prod")
    said = estate.run("promote", "prod", "--to", "origin/second", code=1).err
    assert f"the branch promoted/prod is checked out in {estate.scratch.path}, whose files would stay behind" in said
    assert f"Fix: git -C {estate.scratch.path} switch --detach" in said


def test_a_tag_is_moved_and_fetching_does_not(tmp_path: Path) -> None:
    estate = make_estate(tmp_path, promoted="refs/tags/prod")
    said = estate.run("promote", "prod", "--to", "origin/second").out
    assert "The tag prod was moved, here. Publish it: git push --force origin refs/tags/prod\n" in said
    assert "Fetching does not move tags: elsewhere, `git fetch --force origin tag prod`." in said
    assert "refs/tags/prod at" in estate.run("plan", "--target", "prod").out


def test_a_target_without_promoted_is_at_the_tip(estate: Estate) -> None:
    said = estate.run("promote", "stage", "--to", "origin/main", code=64).err
    assert "stage has no `promoted`, so it always follows the tip of the approved history" in said
    assert "targets: {stage: {promoted: origin/promoted/stage}}" in said


def test_in_the_bare_repository_the_branch_itself_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = make_estate(tmp_path).scratch
    clone.git("clone", "-q", "--bare", str(tmp_path / "upstream"), str(tmp_path / "bare"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "bare"))
    bare = Estate.__new__(Estate)
    bare.scratch = Scratch.open_existing(tmp_path / "bare")
    said = bare.run("promote", "prod", "--to", "second").out
    assert said.endswith("The branch promoted/prod was moved.\n")
    assert bare.scratch.git("rev-parse", "promoted/prod") == bare.scratch.git("rev-parse", "second")
    assert "from origin/promoted/prod at " in bare.run("plan", "--target", "prod").out


@pytest.mark.parametrize("is_overlay", [False, True])
def test_a_target_that_goes_back_keeps_the_partitions_that_were_approved_later(
    tmp_path: Path, *, is_overlay: bool
) -> None:
    project = 'version: 1\ntargets: {prod: {registry: "sqlite:.schemactl/prod.db", promoted: promoted/prod, overlays: prod.yaml}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    scratch = estate.scratch
    scratch.commit(
        {
            "namespaces/orders.yaml": write_declaration(more="partitions: 3\n"),
            "prod.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n",
        }
    )
    first = scratch.git("rev-parse", "HEAD").strip()
    more = "namespace: shop/sales\nschema_compatibility_strategy: FULL\n---\ntopic: shop/sales/orders\npartitions: 6\n"
    scratch.commit(
        {"prod.yaml": more} if is_overlay else {"namespaces/orders.yaml": write_declaration(more="partitions: 6\n")}
    )
    for position in (first, "main"):
        scratch.flush()
        estate.run("promote", "prod", "--to", position)
        estate.run("apply", "--target", "prod", "--auto-approve")
    estate.run("promote", "prod", "--to", first, "--back")
    for command in ("plan", "drift"):
        estate.run(command, "--target", "prod", "--detailed-exitcode")
    # Partitions without approval are a different case.
    with closing(EmbeddedRegistry(str(scratch.path / ".schemactl/prod.db"))) as registry:
        registry.grow_partitions(TopicName("shop", "sales", "orders"), 8)
    assert "the topic has 8 partitions, but Git declares 3" in estate.run("plan", "--target", "prod", code=100).out
