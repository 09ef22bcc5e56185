"""The page and the comment fit phones and desktops in Chromium, and axe-core finds no barriers."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pull_request
import pytest
from browser import SERIOUS, chromium, inspect_page, require_browser
from command import schemactl
from markdown_it import MarkdownIt
from scratch import Scratch

pytestmark = [pytest.mark.live, pytest.mark.browser]

WIDTHS = (400, 1400)


@pytest.fixture(scope="module")
def rendered_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The page of a check, of a plan and of drift, and the comment as a code host renders it."""
    require_browser()
    path = tmp_path_factory.mktemp("pages") / "repository"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        repository = pull_request.make(path)
        schemactl(path, "check", "--base=main", "--format=html=../check.html", "--format=markdown=../a.md", code=100)
        _plan_and_drift(repository)
    comment = MarkdownIt("gfm-like", {"html": True}).render((path.parent / "a.md").read_text(encoding="utf-8"))
    # Markdown cannot make a wide block of code focusable: the host does.
    comment = comment.replace("<pre>", '<pre tabindex="0">')
    style = "body { font: 16px/1.5 sans-serif; overflow-wrap: anywhere } table { display: block; overflow-x: auto; width: 100% } pre { overflow-x: auto }"
    pages = {name: (path.parent / f"{name}.html").read_text(encoding="utf-8") for name in ("check", "plan", "drift")}
    head = f'<!DOCTYPE html><html lang="en"><head><title>Comment</title><style>{style}</style></head>'
    return {**pages, "comment": f"{head}<body><main><h1>Comment</h1>{comment}</main></body></html>"}


def _plan_and_drift(repository: Scratch) -> None:
    target = 'targets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'
    project = (repository.path / "schemactl.yaml").read_text(encoding="utf-8")
    repository.git("checkout", "-q", "main")
    repository.commit({"schemactl.yaml": project + target})
    schemactl(repository, "plan", "--format=html=../plan.html")
    schemactl(repository, "drift", "--format=html=../drift.html")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["check", "plan", "drift", "comment"])
def test_nothing_overlaps_and_everybody_can_read_it(
    rendered_pages: dict[str, str], tmp_path: Path, name: str, width: int, *, dark: bool
) -> None:
    measured = inspect_page(tmp_path, rendered_pages[name], width=width, dark=dark)
    assert measured["width"] == width
    assert (measured["wide"], measured["over"]) == ([], [])
    assert measured["scroll"] <= width
    assert [violation for violation in measured["axe"] if violation[0] in SERIOUS] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["check", "plan", "drift", "comment"])
def test_it_can_be_looked_at(rendered_pages: dict[str, str], tmp_path: Path, name: str, width: int) -> None:
    """SCHEMACTL_SCREENSHOTS names the folder that keeps the pictures."""
    folder = Path(os.environ.get("SCHEMACTL_SCREENSHOTS") or tmp_path)
    (tmp_path / "page.html").write_text(rendered_pages[name], encoding="utf-8")
    picture = folder / f"{name}-{width}.png"
    chromium(f"--window-size={width},2400", f"--screenshot={picture}", f"file://{tmp_path}/page.html")
    assert picture.stat().st_size > 10_000


def test_the_page_asks_nobody_for_anything_and_its_script_runs(rendered_pages: dict[str, str], tmp_path: Path) -> None:
    """The policy lets its own script run: that shows the tools. Nothing else has an address that is loaded."""
    (tmp_path / "page.html").write_text(rendered_pages["check"], encoding="utf-8")
    out = chromium("--virtual-time-budget=5000", "--dump-dom", f"file://{tmp_path}/page.html")
    assert '<div class="tools" role="search">' in out
    assert re.findall(r'\b(?:src|srcset|poster|action)="', rendered_pages["check"]) == []
    assert "url(" not in rendered_pages["check"]
    assert "@import" not in rendered_pages["check"]
