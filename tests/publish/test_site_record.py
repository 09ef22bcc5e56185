"""A later run of the catalog site makes only the pages that change, and the result equals a first run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = 'version: 1\nroots: [topics]\ntargets: {prod: {registry: "sqlite:p.db", promoted: refs/tags/prod}}\n'


@pytest.fixture
def shop(tmp_path: Path) -> Scratch:
    """A repository with two topics and a deprecated one."""
    shop = Scratch(tmp_path / "shop")
    clients = "clients:\n  - {name: billing, role: consumer, schema: 0}\n  - {name: loader, role: consumer, schema: loader.avsc}\n"
    shop.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/orders.yaml": write_declaration(more=clients),
            "topics/loader.avsc": record("id"),
            "topics/orders.avsc": record("id"),
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
            "topics/refunds.avsc": record("id", name="Refund"),
            "topics/old.yaml": "topic: shop/web/old\nschema: {type: STRING}\ndeprecated: {use: shop/sales/refunds}\n",
        }
    )
    shop.flush()
    shop.git("tag", "prod")
    return shop


def write_site(shop: Scratch, out: Path, *options: str) -> dict[str, bytes]:
    """Return the files of the site by path."""
    schemactl(shop.path, "site", "--out", str(out), "--title", "Shop", *options)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def read_times(out: Path) -> dict[str, int]:
    return {path.relative_to(out).as_posix(): path.stat().st_mtime_ns for path in out.rglob("*.html")}


CHANGES: dict[str, dict[str, str | bytes | None]] = {
    "a version": {"topics/refunds.avsc": record("id", "reason", name="Refund")},
    "a topic": {"topics/carts.yaml": "topic: shop/web/carts\nschema: {type: STRING}\n"},
    "a deletion": {"topics/refunds.yaml": None},
    "an owner of a namespace": {"topics/sales.yaml": "namespace: shop/sales\nowner: team-sales\n"},
    "a client": {"topics/orders.yaml": write_declaration(more="description: Sold.\n")},
    "the definition of a client": {"topics/loader.avsc": record("id", "amount")},
    "another topic of a type": {
        "topics/again.yaml": write_declaration("shop/web/again", "again.avsc"),
        "topics/again.avsc": record("id", "more"),
    },
    "a topic of another name": {
        "topics/refunds.yaml": write_declaration(
            "shop/sales/returns", "refunds.avsc", "renamed_from: shop/sales/refunds\n"
        )
    },
    "a deprecation": {
        "topics/orders.yaml": write_declaration(more="deprecated: {use: shop/sales/refunds, after: 2030-01-01}\n")
    },
    "a topic that is used no more": {"topics/old.yaml": "topic: shop/web/old\nschema: {type: STRING}\n"},
    "a strategy of a namespace": {
        "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL_TRANSITIVE\n"
    },
    "the project file": {"schemactl.yaml": PROJECT + "defaults: {schema_compatibility_strategy: FULL}\n"},
    "no topic": {"notes.txt": "Nothing.\n"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_site_after_a_change_is_as_a_new_one(shop: Scratch, tmp_path: Path, change: str) -> None:
    write_site(shop, tmp_path / "site")
    shop.commit(CHANGES[change])
    shop.flush()
    assert write_site(shop, tmp_path / "site") == write_site(shop, tmp_path / "new")


def test_a_moved_target_changes_the_pages(shop: Scratch, tmp_path: Path) -> None:
    shop.commit(CHANGES["a version"])
    shop.flush()
    write_site(shop, tmp_path / "site")
    shop.git("tag", "--force", "prod")
    assert write_site(shop, tmp_path / "site") == write_site(shop, tmp_path / "new")


def test_pages_of_unchanged_topics_are_not_written(shop: Scratch, tmp_path: Path) -> None:
    write_site(shop, tmp_path / "site")
    times = read_times(tmp_path / "site")
    shop.commit(CHANGES["a version"])
    shop.flush()
    write_site(shop, tmp_path / "site")
    later_times = read_times(tmp_path / "site")
    changed = {path for path, time in later_times.items() if times.get(path) != time}
    assert {path for path in changed if path.startswith("topics/")} == {
        "topics/shop/sales/refunds.html",
        "topics/shop/sales/refunds.v0.html",
    }


@pytest.mark.parametrize("has_change", [False, True])
def test_edited_and_removed_pages_are_repaired(shop: Scratch, tmp_path: Path, *, has_change: bool) -> None:
    files = write_site(shop, tmp_path / "site")
    (tmp_path / "site/topics/shop/sales/orders.html").write_text("edited")
    (tmp_path / "site/topics/shop/sales/refunds.v0.html").unlink()
    (tmp_path / "site/index.html").write_text("edited")
    if has_change:
        shop.commit(CHANGES["no topic"])
        shop.flush()
        files = write_site(shop, tmp_path / "new")
    assert write_site(shop, tmp_path / "site") == files


def test_a_site_of_fewer_topics_has_their_files_alone(shop: Scratch, tmp_path: Path) -> None:
    write_site(shop, tmp_path / "site")
    selection = ("--namespace", "shop/sales")
    assert write_site(shop, tmp_path / "site", *selection) == write_site(shop, tmp_path / "new", *selection)


def test_the_pages_of_an_interrupted_run_are_removed_by_the_next_one(shop: Scratch, tmp_path: Path) -> None:
    write_site(shop, tmp_path / "site", "--namespace", "shop/web")
    # The run ends where this folder is to be a file, after the pages of topics.
    (tmp_path / "site/search.js").unlink()
    (tmp_path / "site/search.js/folder").mkdir(parents=True)
    command = [sys.executable, "-m", "schemactl", "site", "--out", str(tmp_path / "site")]
    assert subprocess.run(command, cwd=shop.path, check=False, capture_output=True).returncode == 1
    assert (tmp_path / "site/topics/shop/sales/orders.html").exists()
    shutil.rmtree(tmp_path / "site/search.js")
    selection = ("--namespace", "shop/web")
    assert write_site(shop, tmp_path / "site", *selection) == write_site(shop, tmp_path / "new", *selection)
