"""Chromium without a window, and axe-core, which says who cannot read a page."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

AXE = Path(os.environ.get("SCHEMACTL_AXE") or Path(__file__).parents[1] / ".axe/node_modules/axe-core/axe.min.js")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SERIOUS = ("serious", "critical")
"""The impacts of axe-core findings that keep a reader from reading."""

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
  const cut = [...page.querySelectorAll(".wide")].filter((each) => each.scrollWidth > each.clientWidth + 1 && each.querySelector(".rows"))
    .map((each) => each.outerHTML.slice(0, 200));
  const found = await inside.axe.run(page);
  const said = found.violations.map((each) => [each.impact, each.id, each.nodes[0].html.slice(0, 200)]);
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify({width: inside.innerWidth, scroll: page.documentElement.scrollWidth, wide, over, cut, images: page.images.length, axe: said});
  document.body.append(out);
});
"""


def require_browser() -> None:
    """Skip the test where Chromium or axe-core is missing."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    if not AXE.exists():
        pytest.skip("needs axe-core: make axe")


def inspect_page(folder: Path, page: str, *, width: int, dark: bool) -> dict[str, Any]:
    """Return Chromium's results for the page in a frame of that width, which can be narrower than a desktop window."""
    axe = AXE.read_text(encoding="utf-8")
    # axe-core is not a script of the page, so the page's own policy would not let it run.
    page = re.sub(r'<meta http-equiv="?Content-Security-Policy"?[^>]*>', "", page)
    page = re.sub(r"<html lang=\S+?(?=>)", rf'\g<0> data-theme="{"dark" if dark else "light"}"', page)
    page += f"<script>{axe}</script>"
    frame = f'<iframe style="border: 0; width: {width}px; height: 900px" srcdoc="{html.escape(page)}"></iframe>'
    (folder / "judge.html").write_text(f"<!DOCTYPE html><body>{frame}<script>{JUDGE}</script></body>", encoding="utf-8")
    out = chromium("--virtual-time-budget=60000", "--dump-dom", f"file://{folder}/judge.html")
    match = re.search(r'<pre id="found">(.*?)</pre>', out, re.DOTALL)
    assert match, out[-2_000:]
    result: dict[str, Any] = json.loads(html.unescape(match[1]))
    return result


def chromium(*options: str) -> str:
    """Run Chromium, and return its output."""
    assert CHROMIUM
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout
