"""The catalogue in Chromium: it is searched, read on a phone and on a desk, and everybody can read it."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import shop
from browser import SERIOUS, chromium, judged, require_browser
from command import schemactl

pytestmark = pytest.mark.live

WIDTHS = (400, 800, 1400)
PAGES = {
    "index": "index.html",
    "namespace": "namespaces/shop/sales.html",
    "topic": "topics/shop/sales/orders.html",
    "version": "topics/shop/sales/orders.v5.html",
    "types": "types.html",
    "changes": "changes.html",
}

SEARCH = """
addEventListener("load", async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const field = document.getElementById("find");
  const seen = {};
  for (const words of WORDS) {
    field.focus();
    field.value = words;
    field.dispatchEvent(new Event("input"));
    for (let tries = 0; tries < 50 && !document.querySelector("#found li"); tries++) await wait(20);
    seen[words] = [...document.querySelectorAll("#found a")].map((each) => [each.textContent, each.getAttribute("href")]);
    field.value = "";
    field.dispatchEvent(new Event("input"));
  }
  const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  field.value = "orders";
  field.dispatchEvent(new Event("input"));
  await wait(100);
  press("ArrowDown");
  seen.focused = document.activeElement.getAttribute("href");
  press("Escape");
  seen.closed = document.getElementById("found").hidden && document.activeElement === field;
  field.blur();
  press("/");
  seen.slash = document.activeElement === field;
  document.querySelector("[data-do=theme]").click();
  seen.theme = document.documentElement.dataset.theme;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_browser()
    folder = tmp_path_factory.mktemp("site")
    repository = shop.make(folder)
    schemactl(repository, "site", "--out", str(folder / "site"))
    return folder / "site"


def whole(site: Path, path: str) -> str:
    """The page with its style and its script inside: in a frame it has no address to load them from."""
    page = (site / path).read_text("utf-8")
    style, script = ((site / name).read_text("utf-8") for name in ("site.css", "site.js"))
    page = re.sub(r'<link rel="stylesheet"[^>]*>', lambda _: f"<style>{style}</style>", page)
    page = re.sub(r"<script src[^>]*></script>", "", page)
    return page.replace("</body>", f"<script>{script}</script></body>")


@pytest.mark.parametrize(("width", "dark"), [(400, False), (800, True), (1400, False)])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_overlaps_and_everybody_can_read_it(
    site: Path, tmp_path: Path, name: str, width: int, *, dark: bool
) -> None:
    found = judged(tmp_path, whole(site, PAGES[name]), width=width, dark=dark)
    assert found["width"] == width
    assert (found["wide"], found["over"]) == ([], [])
    assert found["scroll"] <= width
    assert [each for each in found["axe"] if each[0] in SERIOUS] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index", "topic", "version"])
def test_it_can_be_looked_at(site: Path, tmp_path: Path, name: str, width: int) -> None:
    """SCHEMACTL_SCREENSHOTS names the folder that keeps the pictures."""
    picture = Path(os.environ.get("SCHEMACTL_SCREENSHOTS") or tmp_path) / f"site-{name}-{width}.png"
    chromium(f"--window-size={width},2400", f"--screenshot={picture}", f"file://{site / PAGES[name]}")
    assert picture.stat().st_size > 10_000


def searched(site: Path, *words: str) -> dict[str, Any]:
    """What the search finds, from a page that lies in folders."""
    path = site / "topics/shop/sales/orders.html"
    script = SEARCH.replace("WORDS", json.dumps(words))
    path.with_name("searched.html").write_text(
        path.read_text("utf-8").replace("</body>", f"<script>{script}</script></body>"), "utf-8"
    )
    out = chromium("--virtual-time-budget=20000", "--dump-dom", f"file://{path.with_name('searched.html')}")
    found = re.search(r'<pre id="seen">(.*?)</pre>', out, re.DOTALL)
    assert found, out[-2_000:]
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen


def test_the_search_finds_topics_fields_types_and_words_of_the_documentation(site: Path) -> None:
    seen = searched(site, "orders", "channel", "money", "written each time", "zzz")
    assert seen["orders"][0][1] == "../../../topics/shop/sales/orders.html"
    assert any(text.startswith("channel") and "shop/sales/orders" in text for text, _ in seen["channel"])
    assert any(address.startswith("../../../types/com.example.shop.money") for _, address in seen["money"])
    assert seen["written each time"][0][1] == "../../../topics/shop/sales/orders.html"
    assert seen["zzz"] == []
    for text, address in (each for words in ("orders", "channel", "money") for each in seen[words]):
        assert (site / "topics/shop/sales" / address).resolve().is_file(), text


def test_the_keyboard_is_enough(site: Path) -> None:
    seen = searched(site, "orders")
    assert seen["focused"] == "../../../topics/shop/sales/orders.html"
    assert (seen["closed"], seen["slash"]) == (True, True)
    assert seen["theme"] in ("dark", "light")
