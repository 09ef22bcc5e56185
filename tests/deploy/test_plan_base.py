"""`schemactl plan --base`: what the merge of a branch would do, and that its digest is that of the plan after the merge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from estate import NAMESPACE, PROJECT, Estate, avro
from scratch import record

pytestmark = pytest.mark.slow

DIGEST = "Digest: "
STRING = "topic: shop/sales/notes\nschema: {type: STRING}\n"


@pytest.fixture
def shop(tmp_path: Path) -> Estate:
    """One version that is applied, and a branch that adds another and a topic."""
    found = Estate(tmp_path / "shop")
    found.run("apply", "--auto-approve")
    found.scratch.git("switch", "-q", "-c", "note")
    change(found, {"namespaces/orders.avsc": record("id", note=0), "namespaces/notes.yaml": STRING})
    return found


def change(shop: Estate, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = shop.scratch.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    shop.scratch.git("add", ".")
    shop.scratch.git("commit", "-q", "-m", "Change")


def digest(shop: Estate, *arguments: str) -> str:
    return shop.run("plan", *arguments).out.rpartition(DIGEST)[2].strip()


def squash(shop: Estate) -> None:
    shop.scratch.git("switch", "-q", "main")
    shop.scratch.git("merge", "-q", "--squash", "note")
    shop.scratch.git("commit", "-q", "-m", "Notes (#1)")


def test_a_squash_leaves_the_digest_that_was_reviewed(shop: Estate) -> None:
    refs = shop.scratch.git("for-each-ref")
    printed = shop.run("plan", "--base", "main").out
    assert "merged into main, answers" in printed
    assert "notes" in printed
    assert shop.scratch.git("for-each-ref") == refs
    assert shop.scratch.git("status", "--porcelain") == ""
    reviewed = printed.rpartition(DIGEST)[2].strip()
    assert digest(shop, "--base", "main") == reviewed
    squash(shop)
    assert digest(shop) == reviewed
    shop.run("apply", "--expect-digest", reviewed)
    assert len(shop.held()) == 2


def test_what_is_rejected_beside_it_leaves_the_digest_alone(shop: Estate) -> None:
    """Its reason names a commit, which a squash makes anew."""
    change(shop, {"namespaces/orders.avsc": record("id", "total")})
    printed = shop.run("plan", "--base", "main", code=100).out
    assert "would be rejected" in printed
    assert "Fix: change the definition before the merge: this version is not approved yet.\n   or: approve" in printed
    squash(shop)
    assert shop.run("plan", code=100).out.rpartition(DIGEST)[2] == printed.rpartition(DIGEST)[2]


def test_what_others_had_merged_since_counts(shop: Estate) -> None:
    reviewed = digest(shop, "--base", "main")
    shop.scratch.git("switch", "-q", "main")
    change(shop, {"namespaces/others.yaml": STRING.replace("notes", "others")})
    shop.scratch.git("switch", "-q", "note")
    both = digest(shop, "--base", "main")
    assert both != reviewed
    squash(shop)
    shop.run("apply", "--expect-digest", reviewed, code=4)
    assert len(shop.held()) == 1
    shop.run("apply", "--expect-digest", both)


def test_a_registry_that_moved_on_is_another_plan(shop: Estate) -> None:
    reviewed = digest(shop, "--base", "main")
    squash(shop)
    shop.put(avro("id", note=0))
    assert digest(shop) != reviewed
    shop.run("apply", "--expect-digest", reviewed, code=4)
    assert len(shop.held()) == 2


def test_other_contents_are_another_plan(shop: Estate) -> None:
    reviewed = digest(shop, "--base", "main")
    change(shop, {"namespaces/orders.avsc": record("id", note=0, more=0)})
    assert digest(shop, "--base", "main") != reviewed


def test_a_plan_before_the_merge_is_not_applied(shop: Estate) -> None:
    said = shop.run("plan", "--base", "main", "--out", "plan.json").err
    command = f"schemactl apply --target local --expect-digest {shop.json('plan.json')['digest']}"
    assert said == f"To carry out exactly this, once it is merged: {command}\n"
    assert "merged into main" in shop.run("plan", "show", "plan.json").out
    refused = shop.run("apply", "plan.json", code=1).err
    assert f"that is not approved yet; nothing was changed\n  Fix: once it is merged: {command}" in refused
    shop.run("plan", "--base", "main", "--at", "main", code=64)


def test_overlays_and_numbers_are_those_after_the_merge(shop: Estate) -> None:
    overlay = "overlay: topic\ntopic: shop/sales/notes\npartitions: 4\n"
    change(
        shop,
        {
            "schemactl.yaml": PROJECT.replace("}", ", overlays: over.yaml}"),
            "over.yaml": overlay.replace("overlay: topic\n", ""),
        },
    )
    reviewed = digest(shop, "--base", "main")
    assert "4 partitions" in shop.run("plan", "--base", "main").out
    squash(shop)
    assert digest(shop) == reviewed


def test_a_partial_clone_fetches_what_the_merge_compares(shop: Estate, tmp_path: Path) -> None:
    text = (shop.scratch.path / "schemactl.yaml").read_text()
    change(shop, {"schemactl.yaml": text + "severities: {DELETED_TOPIC: error}\n"})
    shop.scratch.git("switch", "-q", "main")
    change(shop, {"schemactl.yaml": f"# Ours.\n\n\n\n{text}"})
    shop.scratch.git("config", "uploadpack.allowFilter", "true")
    origin = f"file://{shop.scratch.path}"
    shop.scratch.git("clone", "-q", "--filter=blob:none", "--branch", "note", origin, str(tmp_path / "clone"))
    shop.scratch.path = tmp_path / "clone"
    assert "notes" in shop.run("plan", "--base", "origin/main").out


@pytest.mark.parametrize(
    "target",
    [
        '{registry: "http://127.0.0.1:9"}',
        '{registry: "sqlite:.schemactl/registry.db", token_env: SECRET}',
        '{registry: "sqlite:.schemactl/registry.db", after: [new]}\n  new: {registry: "http://127.0.0.1:9"}',
    ],
)
def test_a_change_sends_no_secret_anywhere(shop: Estate, target: str) -> None:
    change(shop, {"schemactl.yaml": f"version: 1\ntargets:\n  local: {target}\n"})
    assert "with other credentials" in shop.run("plan", "--base", "main", code=1).err


def test_conflicting_work_is_to_be_merged_first(shop: Estate) -> None:
    shop.scratch.git("switch", "-q", "main")
    change(shop, {"namespaces/orders.avsc": record("id", other=1)})
    shop.scratch.git("switch", "-q", "note")
    marker = shop.scratch.path / "ran"
    shop.scratch.git("config", "merge.mine.driver", f"touch {marker}")
    for name, value in {"filter.mine.clean": f"touch {marker}", "merge.renormalize": "true"}.items():
        shop.scratch.git("config", name, value)
    (shop.scratch.path / ".git/info/attributes").write_text("*.avsc merge=mine filter=mine\n")
    for _ in range(2):
        assert "conflict\n  Fix: `git merge main`" in shop.run("plan", "--base", "main", code=1).err
        (shop.scratch.path / ".git/info/attributes").unlink(missing_ok=True)
    assert not marker.exists()


def test_a_plan_on_a_branch_names_what_is_not_approved_yet_and_the_command_that_shows_it(shop: Estate) -> None:
    note = (
        f"note: the changes of HEAD ({shop.scratch.git('rev-parse', '--short=9', 'HEAD')}) are not approved in main yet, and not "
        "in this plan: namespaces/notes.yaml, namespaces/orders.avsc; for the plan of its merge: schemactl plan --target local --base main\n"
    )
    printed = shop.run("plan", "--format", "json")
    assert printed.err == note
    assert json.loads(printed.out)["notes"] == []
    assert shop.run("apply").err == note
    shop.run(*note.partition("schemactl ")[2].split())


def test_changes_that_are_not_committed_are_in_no_plan_and_named_first(shop: Estate) -> None:
    shop.scratch.git("switch", "-q", "main")
    shop.scratch.git("config", "filter.mine.clean", f"touch {shop.scratch.path / 'ran'}; cat")
    (shop.scratch.path / ".git/info/attributes").write_text("*.avsc filter=mine\n")

    def write(name: str, text: str) -> None:
        (shop.scratch.path / name).write_text(text)

    shop.run("plan")
    assert shop.run("plan").err == ""
    orders = (shop.scratch.path / "namespaces/orders.avsc").read_text()
    write("namespaces/orders.avsc", orders)  # Another time, the same content.
    write("notes.yaml", "not: a declaration\n")
    write("namespaces/code.py", "")
    assert shop.run("plan").err == ""
    write("namespaces/orders.avsc", orders.replace("string", "bytes"))
    edited = "note: 1 file has changes that are not committed, and not in this plan: namespaces/orders.avsc\n"
    assert shop.run("plan").err == shop.run("plan", "--base", "main").err == shop.run("apply").err == edited
    assert not (shop.scratch.path / "ran").exists()
    (shop.scratch.path / ".git/info/attributes").unlink()
    shop.scratch.git("add", "namespaces/orders.avsc")
    assert shop.run("plan").err == edited
    write("namespaces/new.yaml", STRING.replace("notes", "new"))
    (shop.scratch.path / "namespaces/sales.yaml").unlink()
    write("schemactl.yaml", (shop.scratch.path / "schemactl.yaml").read_text() + "\n")
    changed = "namespaces/new.yaml, namespaces/orders.avsc, namespaces/sales.yaml, schemactl.yaml"
    assert (
        f"note: 4 files have changes that are not committed, and not in this plan: {changed}\n" in shop.run("plan").err
    )


def test_only_declarations_that_are_not_approved_are_named(shop: Estate) -> None:
    shop.scratch.git("switch", "-q", "-c", "code", "main")
    change(shop, {"README.md": "Orders.\n", "deploy.yaml": "replicas: 2\n"})
    assert shop.run("plan").err == ""
    change(shop, {"namespaces/sales.yaml": "namespace: shop/sales\n"})
    assert "in this plan: namespaces/sales.yaml; for" in shop.run("plan").err
    change(shop, {"namespaces/sales.yaml": NAMESPACE})
    assert shop.run("plan").err == ""


def test_nothing_is_said_of_a_branch_that_was_squashed_or_of_an_older_commit(shop: Estate) -> None:
    squash(shop)
    assert shop.run("plan").err == ""
    shop.scratch.git("switch", "-q", "note")
    assert shop.run("plan").err == ""
    shop.scratch.git("switch", "-q", "--detach", "main~1")
    assert shop.run("plan").err == ""


def test_the_merge_that_a_build_server_checks_out_is_what_is_not_approved(shop: Estate) -> None:
    shop.scratch.git("switch", "-q", "main")
    change(shop, {"namespaces/others.yaml": STRING.replace("notes", "others")})
    shop.scratch.git("switch", "-q", "--detach", "main")
    shop.scratch.git("merge", "-q", "--no-ff", "-m", "Merge", "note")
    assert "in this plan: namespaces/notes.yaml, namespaces/orders.avsc; for" in shop.run("plan").err
    shop.scratch.git("branch", "-f", "main", "HEAD")
    assert shop.run("plan").err == ""


def test_work_that_has_no_commit_in_common_with_what_was_approved_stops_no_plan(shop: Estate) -> None:
    shop.scratch.git("switch", "-q", "--orphan", "other")
    change(shop, {"namespaces/notes.yaml": STRING, "schemactl.yaml": PROJECT})
    assert shop.run("plan").err == ""
