"""How the page and the comment look in Chromium, on a phone and on a desk; axe-core judges whether everybody can read them."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pull_request
import pytest
from command import schemactl
from markdown_it import MarkdownIt
from scratch import Scratch

pytestmark = pytest.mark.live

AXE = Path(
    os.environ.get("SCHEMACTL_AXE") or Path(__file__).parents[2] / ".axe/node_modules/axe-core/axe.min.js"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (400, 1400)
SERIOUS = ("serious", "critical")

JUDGE = """
const frame = document.querySelector("iframe");
frame.addEventListener("load", async () => {
  const inside = frame.contentWindow, page = frame.contentDocument;
  page.querySelectorAll("details").forEach((each) => { each.open = true; });
  const boxes = [...page.querySelectorAll("header > *, section > *, .tools > *, table, details > .inside > *")]
    .filter((each) => !each.closest(".wide table, .unseen") && each.getClientRects().length);
  const wide = boxes.filter((each) => each.getBoundingClientRect().right > inside.innerWidth + 1).map((each) => each.outerHTML.slice(0, 200));
  const over = [];
  for (const each of boxes) {
    const next = each.nextElementSibling;
    if (!next || !boxes.includes(next)) continue;
    const a = each.getBoundingClientRect(), b = next.getBoundingClientRect();
    if (a.bottom > b.top + 1 && a.right > b.left + 1 && b.bottom > a.top + 1 && b.right > a.left + 1) over.push(each.outerHTML.slice(0, 200));
  }
  const found = await inside.axe.run(page);
  const said = found.violations.map((each) => [each.impact, each.id, each.nodes[0].html.slice(0, 200)]);
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify({width: inside.innerWidth, scroll: page.documentElement.scrollWidth, wide, over, axe: said});
  document.body.append(out);
});
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The page of a check, of a plan and of drift, and the comment as a code host renders it."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    if not AXE.exists():
        pytest.skip("needs axe-core: npm install --prefix .axe axe-core")
    path = tmp_path_factory.mktemp("pages") / "repository"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        repository = pull_request.make(path)
        schemactl(
            path, "check", "--base=main", "--format=html=../check.html", "--format=markdown=../a.md", code=100
        )
        _plan_and_drift(repository)
    comment = MarkdownIt("gfm-like", {"html": True}).render(
        (path.parent / "a.md").read_text(encoding="utf-8")
    )
    style = "body { font: 16px/1.5 sans-serif; overflow-wrap: anywhere } table { display: block; overflow-x: auto; width: 100% } pre { overflow-x: auto }"
    found = {
        name: (path.parent / f"{name}.html").read_text(encoding="utf-8")
        for name in ("check", "plan", "drift")
    }
    head = f'<!DOCTYPE html><html lang="en"><head><title>Comment</title><style>{style}</style></head>'
    return {**found, "comment": f"{head}<body><main><h1>Comment</h1>{comment}</main></body></html>"}


def _plan_and_drift(repository: Scratch) -> None:
    target = 'targets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'
    project = (repository.path / "schemactl.yaml").read_text(encoding="utf-8")
    repository.git("checkout", "-q", "main")
    repository.commit({"schemactl.yaml": project + target})
    repository.flush()
    schemactl(repository.path, "plan", "--format=html=../plan.html")
    schemactl(repository.path, "drift", "--format=html=../drift.html")


def _judged(folder: Path, page: str, *, width: int, dark: bool) -> dict[str, Any]:
    """What Chromium says of the page in a frame of that width; the window of a desk is never that narrow."""
    axe = AXE.read_text(encoding="utf-8")
    # axe-core is no script of the page, so the page's own policy would not let it run.
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    page = page.replace("</body>", f"<script>{axe}</script></body>")
    page = page.replace('<html lang="en"', f'<html lang="en" data-theme="{"dark" if dark else "light"}"')
    frame = (
        f'<iframe style="border: 0; width: {width}px; height: 900px" srcdoc="{html.escape(page)}"></iframe>'
    )
    (folder / "judge.html").write_text(
        f"<!DOCTYPE html><body>{frame}<script>{JUDGE}</script></body>", encoding="utf-8"
    )
    out = _chromium("--virtual-time-budget=60000", "--dump-dom", f"file://{folder}/judge.html")
    found = re.search(r'<pre id="found">(.*?)</pre>', out, re.DOTALL)
    assert found, out[-2_000:]
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    return result


def _chromium(*options: str) -> str:
    assert CHROMIUM
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["check", "plan", "drift", "comment"])
def test_nothing_overlaps_and_everybody_can_read_it(
    pages: dict[str, str], tmp_path: Path, name: str, width: int, *, dark: bool
) -> None:
    found = _judged(tmp_path, pages[name], width=width, dark=dark)
    assert found["width"] == width
    assert (found["wide"], found["over"]) == ([], [])
    assert found["scroll"] <= width
    assert [each for each in found["axe"] if each[0] in SERIOUS] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["check", "plan", "drift", "comment"])
def test_it_can_be_looked_at(pages: dict[str, str], tmp_path: Path, name: str, width: int) -> None:
    """SCHEMACTL_SCREENSHOTS names the folder that keeps the pictures."""
    folder = Path(os.environ.get("SCHEMACTL_SCREENSHOTS") or tmp_path)
    (tmp_path / "page.html").write_text(pages[name], encoding="utf-8")
    picture = folder / f"{name}-{width}.png"
    _chromium(f"--window-size={width},2400", f"--screenshot={picture}", f"file://{tmp_path}/page.html")
    assert picture.stat().st_size > 10_000


def test_the_page_asks_nobody_for_anything_and_its_script_runs(pages: dict[str, str], tmp_path: Path) -> None:
    """The policy lets its own script run: that shows the tools. Nothing else has an address that is loaded."""
    (tmp_path / "page.html").write_text(pages["check"], encoding="utf-8")
    out = _chromium("--virtual-time-budget=5000", "--dump-dom", f"file://{tmp_path}/page.html")
    assert '<div class="tools" role="search">' in out
    assert re.findall(r'\b(?:src|srcset|poster|action)="', pages["check"]) == []
    assert "url(" not in pages["check"]
    assert "@import" not in pages["check"]
