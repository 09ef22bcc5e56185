"""`schemactl plan --base`: the plan of a merge, whose digest equals the digest of the plan after the merge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from estate import NAMESPACE, PROJECT, Estate, make_order_info
from scratch import record

pytestmark = pytest.mark.slow

DIGEST = "Digest: "
STRING = "topic: shop/sales/notes\nschema: {type: STRING}\n"


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply one version, and check out a branch that adds another and a topic."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.run("apply", "--auto-approve")
    estate.scratch.git("switch", "-q", "-c", "note")
    change(estate, {"namespaces/orders.avsc": record("id", note=0), "namespaces/notes.yaml": STRING})
    return estate


def change(shop: Estate, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = shop.scratch.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    shop.scratch.git("add", ".")
    shop.scratch.git("commit", "-q", "-m", "Change")


def read_digest(shop: Estate, *arguments: str) -> str:
    return shop.run("plan", *arguments).out.rpartition(DIGEST)[2].strip()


def squash_branch(shop: Estate) -> None:
    shop.scratch.git("switch", "-q", "main")
    shop.scratch.git("merge", "-q", "--squash", "note")
    shop.scratch.git("commit", "-q", "-m", "Notes (#1)")


def test_a_squash_leaves_the_digest_that_was_reviewed(estate: Estate) -> None:
    refs = estate.scratch.git("for-each-ref")
    printed = estate.run("plan", "--base", "main").out
    assert "merged into main, answers" in printed
    assert "notes" in printed
    assert estate.scratch.git("for-each-ref") == refs
    assert estate.scratch.git("status", "--porcelain") == ""
    reviewed = printed.rpartition(DIGEST)[2].strip()
    assert read_digest(estate, "--base", "main") == reviewed
    squash_branch(estate)
    assert read_digest(estate) == reviewed
    estate.run("apply", "--expect-digest", reviewed)
    assert len(estate.read_definitions()) == 2


def test_what_is_rejected_beside_it_leaves_the_digest_alone(estate: Estate) -> None:
    """Its reason names a commit, whose id changes with a squash."""
    change(estate, {"namespaces/orders.avsc": record("id", "total")})
    printed = estate.run("plan", "--base", "main", code=100).out
    assert "would be rejected" in printed
    assert "Fix: change the definition before the merge: this version is not approved yet.\n   or: approve" in printed
    squash_branch(estate)
    assert estate.run("plan", code=100).out.rpartition(DIGEST)[2] == printed.rpartition(DIGEST)[2]


def test_what_others_had_merged_since_counts(estate: Estate) -> None:
    reviewed = read_digest(estate, "--base", "main")
    estate.scratch.git("switch", "-q", "main")
    change(estate, {"namespaces/others.yaml": STRING.replace("notes", "others")})
    estate.scratch.git("switch", "-q", "note")
    both = read_digest(estate, "--base", "main")
    assert both != reviewed
    squash_branch(estate)
    estate.run("apply", "--expect-digest", reviewed, code=4)
    assert len(estate.read_definitions()) == 1
    estate.run("apply", "--expect-digest", both)


def test_a_registry_that_moved_on_is_another_plan(estate: Estate) -> None:
    reviewed = read_digest(estate, "--base", "main")
    squash_branch(estate)
    estate.put(make_order_info("id", note=0))
    assert read_digest(estate) != reviewed
    estate.run("apply", "--expect-digest", reviewed, code=4)
    assert len(estate.read_definitions()) == 2


def test_other_contents_are_another_plan(estate: Estate) -> None:
    reviewed = read_digest(estate, "--base", "main")
    change(estate, {"namespaces/orders.avsc": record("id", note=0, more=0)})
    assert read_digest(estate, "--base", "main") != reviewed


def test_a_plan_before_the_merge_is_not_applied(estate: Estate) -> None:
    said = estate.run("plan", "--base", "main", "--out", "plan.json").err
    command = f"schemactl apply --target local --expect-digest {estate.read_json('plan.json')['digest']}"
    assert said == f"To carry out exactly this, once it is merged: {command}\n"
    assert "merged into main" in estate.run("plan", "show", "plan.json").out
    refused = estate.run("apply", "plan.json", code=1).err
    assert f"that is not approved yet; nothing was changed\n  Fix: once it is merged: {command}" in refused
    estate.run("plan", "--base", "main", "--at", "main", code=64)


def test_overlays_and_numbers_are_those_after_the_merge(estate: Estate) -> None:
    overlay = "overlay: topic\ntopic: shop/sales/notes\npartitions: 4\n"
    change(
        estate,
        {
            "schemactl.yaml": PROJECT.replace("}", ", overlays: over.yaml}"),
            "over.yaml": overlay.replace("overlay: topic\n", ""),
        },
    )
    reviewed = read_digest(estate, "--base", "main")
    assert "4 partitions" in estate.run("plan", "--base", "main").out
    squash_branch(estate)
    assert read_digest(estate) == reviewed


def test_a_partial_clone_fetches_what_the_merge_compares(estate: Estate, tmp_path: Path) -> None:
    text = (estate.scratch.path / "schemactl.yaml").read_text()
    change(estate, {"schemactl.yaml": text + "severities: {DELETED_TOPIC: error}\n"})
    estate.scratch.git("switch", "-q", "main")
    change(estate, {"schemactl.yaml": f"# Ours.\n\n\n\n{text}"})
    estate.scratch.git("config", "uploadpack.allowFilter", "true")
    origin = f"file://{estate.scratch.path}"
    estate.scratch.git("clone", "-q", "--filter=blob:none", "--branch", "note", origin, str(tmp_path / "clone"))
    estate.scratch.path = tmp_path / "clone"
    assert "notes" in estate.run("plan", "--base", "origin/main").out


@pytest.mark.parametrize(
    "target",
    [
        '{registry: "http://127.0.0.1:9"}',
        '{registry: "sqlite:.schemactl/registry.db", token_env: SECRET}',
        '{registry: "sqlite:.schemactl/registry.db", after: [new]}\n  new: {registry: "http://127.0.0.1:9"}',
    ],
)
def test_a_change_sends_no_secret_anywhere(estate: Estate, target: str) -> None:
    change(estate, {"schemactl.yaml": f"version: 1\ntargets:\n  local: {target}\n"})
    assert "changes its registry or credentials" in estate.run("plan", "--base", "main", code=1).err


def test_conflicting_work_is_to_be_merged_first(estate: Estate) -> None:
    estate.scratch.git("switch", "-q", "main")
    change(estate, {"namespaces/orders.avsc": record("id", other=1)})
    estate.scratch.git("switch", "-q", "note")
    marker = estate.scratch.path / "ran"
    estate.scratch.git("config", "merge.mine.driver", f"touch {marker}")
    for name, value in {"filter.mine.clean": f"touch {marker}", "merge.renormalize": "true"}.items():
        estate.scratch.git("config", name, value)
    (estate.scratch.path / ".git/info/attributes").write_text("*.avsc merge=mine filter=mine\n")
    for _ in range(2):
        assert "conflict\n  Fix: `git merge main`" in estate.run("plan", "--base", "main", code=1).err
        (estate.scratch.path / ".git/info/attributes").unlink(missing_ok=True)
    assert not marker.exists()


def test_a_plan_on_a_branch_names_what_is_not_approved_yet_and_the_command_that_shows_it(estate: Estate) -> None:
    note = (
        f"note: the changes of HEAD ({estate.scratch.git('rev-parse', '--short=9', 'HEAD')}) are not approved in main yet, and not "
        "in this plan: namespaces/notes.yaml, namespaces/orders.avsc; for the plan of its merge: schemactl plan --target local --base main\n"
    )
    printed = estate.run("plan", "--format", "json")
    assert printed.err == note
    assert json.loads(printed.out)["notes"] == []
    assert estate.run("apply").err == note
    estate.run(*note.partition("schemactl ")[2].split())


def test_changes_that_are_not_committed_are_in_no_plan_and_named_first(estate: Estate) -> None:
    estate.scratch.git("switch", "-q", "main")
    estate.scratch.git("config", "filter.mine.clean", f"touch {estate.scratch.path / 'ran'}; cat")
    (estate.scratch.path / ".git/info/attributes").write_text("*.avsc filter=mine\n")

    def write(name: str, text: str) -> None:
        (estate.scratch.path / name).write_text(text)

    estate.run("plan")
    assert estate.run("plan").err == ""
    orders = (estate.scratch.path / "namespaces/orders.avsc").read_text()
    write("namespaces/orders.avsc", orders)  # Another time, the same content.
    write("notes.yaml", "not: a declaration\n")
    write("namespaces/code.py", "")
    assert estate.run("plan").err == ""
    write("namespaces/orders.avsc", orders.replace("string", "bytes"))
    edited = "note: 1 file has changes that are not committed, and not in this plan: namespaces/orders.avsc\n"
    assert estate.run("plan").err == estate.run("plan", "--base", "main").err == estate.run("apply").err == edited
    assert not (estate.scratch.path / "ran").exists()
    (estate.scratch.path / ".git/info/attributes").unlink()
    estate.scratch.git("add", "namespaces/orders.avsc")
    assert estate.run("plan").err == edited
    write("namespaces/new.yaml", STRING.replace("notes", "new"))
    (estate.scratch.path / "namespaces/sales.yaml").unlink()
    write("schemactl.yaml", (estate.scratch.path / "schemactl.yaml").read_text() + "\n")
    changed = "namespaces/new.yaml, namespaces/orders.avsc, namespaces/sales.yaml, schemactl.yaml"
    assert (
        f"note: 4 files have changes that are not committed, and not in this plan: {changed}\n"
        in estate.run("plan").err
    )


def test_only_declarations_that_are_not_approved_are_named(estate: Estate) -> None:
    estate.scratch.git("switch", "-q", "-c", "code", "main")
    change(estate, {"README.md": "Orders.\n", "deploy.yaml": "replicas: 2\n"})
    assert estate.run("plan").err == ""
    change(estate, {"namespaces/sales.yaml": "namespace: shop/sales\n"})
    assert "in this plan: namespaces/sales.yaml; for" in estate.run("plan").err
    change(estate, {"namespaces/sales.yaml": NAMESPACE})
    assert estate.run("plan").err == ""


def test_nothing_is_said_of_a_branch_that_was_squashed_or_of_an_older_commit(estate: Estate) -> None:
    squash_branch(estate)
    assert estate.run("plan").err == ""
    estate.scratch.git("switch", "-q", "note")
    assert estate.run("plan").err == ""
    estate.scratch.git("switch", "-q", "--detach", "main~1")
    assert estate.run("plan").err == ""


def test_the_merge_that_a_build_server_checks_out_is_what_is_not_approved(estate: Estate) -> None:
    estate.scratch.git("switch", "-q", "main")
    change(estate, {"namespaces/others.yaml": STRING.replace("notes", "others")})
    estate.scratch.git("switch", "-q", "--detach", "main")
    estate.scratch.git("merge", "-q", "--no-ff", "-m", "Merge", "note")
    assert "in this plan: namespaces/notes.yaml, namespaces/orders.avsc; for" in estate.run("plan").err
    estate.scratch.git("branch", "-f", "main", "HEAD")
    assert estate.run("plan").err == ""


def test_work_that_has_no_commit_in_common_with_what_was_approved_stops_no_plan(estate: Estate) -> None:
    estate.scratch.git("switch", "-q", "--orphan", "other")
    change(estate, {"namespaces/notes.yaml": STRING, "schemactl.yaml": PROJECT})
    assert estate.run("plan").err == ""
