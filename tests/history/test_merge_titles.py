"""A version that a merge commit brought has the title of its pull request, as `log` shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from estate import Estate
from scratch import record

from schemactl.history.git import Repository, log

TITLES = [
    ("Merge pull request #12 from acme/orders", "Orders have an owner", "Orders have an owner (#12)"),
    ("Merge pull request #12 from acme/orders", "Orders have an owner\n\nLong text.\n", "Orders have an owner (#12)"),
    ("Merge pull request #12 from acme/orders", "Orders have an owner (#12)", "Orders have an owner (#12)"),
    ("Merge pull request #12 from acme/orders", "", "Merge pull request #12 from acme/orders"),
    (
        "Merge branch 'orders' into 'main'",
        "Orders have an owner\n\nCloses #7\n\nSee merge request acme/schemas!34",
        "Orders have an owner (!34)",
    ),
    ("Merge branch 'orders' into 'main'", "Orders have an owner", "Orders have an owner"),
    ("Merge branch 'orders' into 'main'", "See merge request acme/schemas!34", "Merge branch 'orders' into 'main'"),
    ("Merge branch 'orders'", "", "Merge branch 'orders'"),
    ("Merge branch 'orders'", "* orders:\n  One\n  Two", "Merge branch 'orders'"),
    ("Merge branch 'orders'", "# Conflicts:\n#\torders.avsc", "Merge branch 'orders'"),
    ("Merge branch 'orders'", "Signed-off-by: Ada <ada@example.com>", "Merge branch 'orders'"),
    ("Merge remote-tracking branch 'origin/orders'", "Ümlaut \u2603", "Ümlaut \u2603"),
    (
        "Merged in orders (pull request #5)",
        "Orders have an owner\n\nApproved-by: Grace Hopper",
        "Orders have an owner (#5)",
    ),
    ("Merged PR 8: Orders have an owner", "Related work items: #3", "Merged PR 8: Orders have an owner"),
    ("Orders have an owner", "Merge pull request #1 from a/b", "Orders have an owner"),
    ("Merge the owner into orders", "It was separate.", "Merge the owner into orders"),
]


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.scratch.flush()
    estate.scratch.configure_author()
    git = estate.scratch.git
    git("checkout", "-q", "-b", "orders")
    estate.scratch.write({"namespaces/orders.avsc": record("id", owner=0)})
    git("commit", "-q", "-a", "-m", "wip")
    git("checkout", "-q", "main")
    return estate


@pytest.mark.parametrize(("subject", "body", "title"), TITLES)
def test_a_merge_has_the_title_of_its_pull_request(
    module_estate: Estate, tmp_path: Path, subject: str, body: str, title: str
) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    estate.scratch.git("merge", "-q", "--no-ff", "--cleanup=verbatim", "-m", f"{subject}\n\n{body}", "orders")
    with Repository.open(estate.scratch.path) as repository:
        head = repository.commit("HEAD")
        assert head is not None
        assert head.subject == title
        logged = [*log(repository, head.id)]
        assert [entry.commit.subject for entry in logged] == ["Declare orders", title]
        assert logged[-1].commit == head
        assert [change.path for change in logged[-1].changes] == ["namespaces/orders.avsc"]


def test_a_commit_with_one_parent_keeps_its_subject(module_estate: Estate, tmp_path: Path) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    message = "Merge pull request #12 from acme/orders\n\nOrders have an owner"
    estate.scratch.git("merge", "-q", "--squash", "orders")
    estate.scratch.git("commit", "-q", "-m", message)
    with Repository.open(estate.scratch.path) as repository:
        head = repository.commit("HEAD")
        assert head is not None
        assert head.subject == "Merge pull request #12 from acme/orders"


def test_log_shows_the_title(module_estate: Estate, tmp_path: Path) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    message = "Merge pull request #12 from acme/orders\n\nOrders have an owner"
    estate.scratch.git("merge", "-q", "--no-ff", "-m", message, "orders")
    assert "Orders have an owner (#12)" in estate.run("log", "orders").out
    assert "Orders have an owner" in estate.run("changelog", "HEAD^..HEAD").out
    # The second time from the cache.
    assert "Orders have an owner (#12)" in estate.run("log", "orders").out
