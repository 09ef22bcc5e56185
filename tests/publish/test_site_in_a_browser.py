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
from browser import SERIOUS, chromium, inspect_page, require_browser
from command import schemactl
from scratch import Scratch, write_declaration

from schemactl.publish.site_pages import slug

pytestmark = [pytest.mark.live, pytest.mark.browser]

WIDTHS = (400, 800, 1400)
LARGE = int(os.environ.get("SCHEMACTL_SITE_TOPICS", "300"))
PAGES = {
    "index": "index.html",
    "namespace": "namespaces/shop/sales.html",
    "topic": "topics/shop/sales/orders.html",
    "version": "topics/shop/sales/orders.v0.html",
    "types": "types.html",
    "type": f"types/{slug('com.example.shop.Money')}.html",
    "owner": "owners/team-orders.html",
    "changes": "changes.html",
    "clients": "clients.html",
    "health": "health.html",
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
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_browser()
    folder = tmp_path_factory.mktemp("site")
    repository = shop.make(folder)
    schemactl(repository, "site", "--out", str(folder / "site"))
    return folder / "site"


def inline_page(site: Path, path: str) -> str:
    """The page with its style and its scripts inside: in a frame it has no address to load them from."""
    page = (site / path).read_text("utf-8")
    style, code, script = ((site / name).read_text("utf-8") for name in ("site.css", "code.js", "site.js"))
    page = re.sub(r"<link rel=stylesheet[^>]*>", lambda _: f"<style>{style}</style>", page)
    page = re.sub(r"<script src[^>]*></script>", "", page)
    return f"{page}<script>{code}{script}</script>"


@pytest.mark.parametrize(("width", "dark"), [(400, False), (800, True), (1400, False)])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_overlaps_and_everybody_can_read_it(
    site_folder: Path, tmp_path: Path, name: str, width: int, *, dark: bool
) -> None:
    measured = inspect_page(tmp_path, inline_page(site_folder, PAGES[name]), width=width, dark=dark)
    assert measured["width"] == width
    assert (measured["wide"], measured["over"], measured["cut"]) == ([], [], [])
    assert measured["scroll"] <= width
    assert [violation for violation in measured["axe"] if violation[0] in SERIOUS] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index", "topic", "version"])
def test_it_can_be_looked_at(site_folder: Path, tmp_path: Path, name: str, width: int) -> None:
    """SCHEMACTL_SCREENSHOTS names the folder that keeps the pictures."""
    picture = Path(os.environ.get("SCHEMACTL_SCREENSHOTS") or tmp_path) / f"site-{name}-{width}.png"
    chromium(f"--window-size={width},2400", f"--screenshot={picture}", f"file://{site_folder / PAGES[name]}")
    assert picture.stat().st_size > 10_000


def search_page(site: Path, *words: str, at: str = "topics/shop/sales/orders.html") -> dict[str, Any]:
    """Return the results of the search on a page in nested folders."""
    return run_script(site / at, SEARCH.replace("WORDS", json.dumps(words)))


def test_the_search_finds_topics_fields_types_and_words_of_the_documentation(site_folder: Path) -> None:
    seen = search_page(site_folder, "orders", "channel", "money", "written each time", "team-orders", "zzz")
    assert seen["orders"][0][1] == "../../../topics/shop/sales/orders.html"
    (field,) = (address for text, address in seen["channel"] if text.startswith("field channel"))
    path, _, row = field.partition("#")
    assert path == "../../../topics/shop/sales/orders.html"
    assert row == "f-channel"
    assert f"<tr id={row}><th scope=row><a href=#{row}>channel</a>" in (
        site_folder / "topics/shop/sales" / path
    ).read_text("utf-8")
    assert seen["team-orders"][0] == ["owner team-orders owns 5 topics ", "../../../owners/team-orders.html"]
    assert any(address.startswith("../../../types/com.example.shop.money") for _, address in seen["money"])
    assert seen["written each time"][0][1] == "../../../topics/shop/sales/orders.html"
    assert seen["zzz"] == []
    for text, address in (result for words in ("orders", "channel", "money") for result in seen[words]):
        assert (site_folder / "topics/shop/sales" / address.partition("#")[0]).resolve().is_file(), text


WALK = """
addEventListener("load", async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const key = (name, more = {}) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true, ...more}));
  const answers = {};
  for (const [words, pick] of WORDS) {
    key("k", {ctrlKey: true});
    const field = document.activeElement;
    field.value = words;
    field.dispatchEvent(new Event("input"));
    for (let tries = 0; tries < 100 && !document.querySelector("#found a"); tries++) await wait(20);
    for (let step = 0; step <= pick; step++) key("ArrowDown");
    answers[words] = [document.activeElement.textContent, document.activeElement.getAttribute("href")];
    key("Escape");
  }
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(answers);
  document.body.append(out);
});
"""


def test_seven_questions_are_answered_from_the_start_page_by_keyboard(site_folder: Path) -> None:
    words = [
        ["orders", 0],
        ["channel", 0],
        ["chanel", 0],
        ["Money", 0],
        ["checkout", 0],
        ["customer_id", 0],
        ["SHIPPED", 0],
    ]
    answers = run_script(site_folder / "index.html", WALK.replace("WORDS", json.dumps(words)))
    # Who owns orders?
    text, address = answers["orders"]
    assert (text.split(" ")[:2], address) == (["topic", "shop/sales/orders"], "topics/shop/sales/orders.html")
    assert "owner team-orders" in text
    address_of_orders = address
    orders = open_page(site_folder, address)
    # Since which commit does `channel` exist? Also with a typing error.
    for word in ("channel", "chanel"):
        text, address = answers[word]
        assert (text.startswith("field channel "), address) == (True, "topics/shop/sales/orders.html#f-channel")
        assert "since v5, 73de7ff0f" in text
    # Who uses Money, and who is affected if it changes?
    money = (
        open_page(site_folder, answers["Money"][1]).partition("<h2>Used by 2 topics</h2>")[2].partition("</table>")[0]
    )
    assert re.findall(r">(shop/[^<]+)<", money) == ["shop/sales/orders", "shop/sales/payments"]
    assert re.findall(r"#f-([\w.]+)", money) == ["total", "lines.price", "amount"]
    assert "6 clients" in money
    for client in ("checkout", "till", "billing", "loader", "ledger", "fraud-check"):
        assert f">{client}</a>" in money
    # Can v2 readers read what checkout writes today?
    text, address = answers["checkout"]
    assert (text.startswith("client checkout"), address) == (True, "clients/checkout.html")
    assert "<td data-head=Writes class=mono>v5" in open_page(site_folder, address)
    assert "<strong class=bad>v0\u2013v3 cannot</strong>: Order.customer_id is gone" in orders
    # Question: the last breaking change.
    changes = open_page(site_folder, "changes.html")
    assert re.findall(r"<a href=changes.html", open_page(site_folder, "index.html"))
    assert re.search(r"March 2026 <small>2 breaking changes: 2 broke older readers", changes)
    # How is it read in Spark and in Java?
    panels = run_script(site_folder / address_of_orders, PANELS)
    assert "rows, rejected = ORDERS.split(ORDERS.decode(messages))" in panels["Spark"]
    assert "Schema.AUTO_CONSUME()" in panels["Java"]
    assert '.topic("persistent://shop/sales/orders")' in panels["Java"]
    assert "schemactl show shop/sales/orders" in panels["Go"]
    assert "FROM orders" in panels["SQL"]
    # Previous names and symbols lead to their field.
    assert answers["customer_id"][1] == "topics/shop/sales/orders.html#f-customer_id"
    assert answers["SHIPPED"][1] == "topics/shop/sales/orders.html#f-status"


PANELS = """
addEventListener("load", async () => {
  for (let tries = 0; tries < 100 && !document.querySelector(".panel"); tries++) await new Promise((done) => setTimeout(done, 20));
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(Object.fromEntries([...document.querySelectorAll(".panel")].map((panel) => [panel.dataset.name, panel.textContent])));
  document.body.append(out);
});
"""


GEOMETRY = """
addEventListener("load", async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  document.documentElement.style.scrollBehavior = "auto";
  const places = {};
  for (const id of WORDS) {
    location.hash = id;
    await wait(100);
    const row = document.getElementById(id).getBoundingClientRect();
    places[id] = [Math.round(row.top - document.querySelector(".top").getBoundingClientRect().bottom), Math.round(innerHeight - row.bottom)];
  }
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(places);
  document.body.append(out);
});
"""


def test_the_place_of_a_link_is_below_the_header(site_folder: Path) -> None:
    ids = ["f-order_id", "f-total.amount", "f-channel", "f-customer_id", "v2", "fields"]
    places = run_script(site_folder / "topics/shop/sales/orders.html", GEOMETRY.replace("WORDS", json.dumps(ids)))
    assert {name: above >= 0 for name, (above, _) in places.items()} == dict.fromkeys(ids, True)
    assert {name: places[name][1] > 0 for name in ids[:-1]} == dict.fromkeys(ids[:-1], True)


COMPARE = """
addEventListener("load", async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const shown = [];
  for (const [old, now] of WORDS) {
    for (let tries = 0; tries < 100 && !document.querySelector("#to option"); tries++) await wait(20);
    document.getElementById("from").value = old;
    document.getElementById("to").value = now;
    document.querySelector(".compare button").click();
    await wait(100);
    shown.push([...document.querySelectorAll("#difference .come, #difference .gone")].map((line) => line.textContent.replace(/\\s+/g, " ")));
  }
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify({shown, hash: location.hash});
  document.body.append(out);
});
"""


def test_any_two_versions_are_compared_from_the_disk(site_folder: Path) -> None:
    pairs = [[0, 1], [1, 0], [3, 4], [2, 2]]
    seen = run_script(site_folder / "topics/shop/sales/orders.html", COMPARE.replace("WORDS", json.dumps(pairs)))
    added, removed, renamed, equal = seen["shown"]
    assert '+ "name": "note",' in added
    assert '- "name": "note",' in removed
    assert {'- "name": "customer_id",', '+ "name": "customer",'} < {*renamed}
    assert (equal, seen["hash"]) == ([], "#compare=2..2")


def run_script(page: Path, script: str) -> dict[str, Any]:
    """Run a script in the page, and return the JSON that it puts into the element `seen`."""
    path = page.with_name("scripted.html")
    path.write_text(page.read_text("utf-8") + f"<script>{script}</script>", "utf-8")
    out = chromium("--virtual-time-budget=30000", "--window-size=1280,900", "--dump-dom", f"file://{path}")
    match = re.search(r'<pre id="seen">(.*?)</pre>', out, re.DOTALL)
    assert match, out[-2_000:]
    seen: dict[str, Any] = json.loads(html.unescape(match[1]))
    return seen


def open_page(site: Path, address: str) -> str:
    """The page at an address of the start page."""
    return html.unescape((site / address.partition("#")[0]).read_text("utf-8"))


def test_the_keyboard_is_enough(site_folder: Path) -> None:
    seen = search_page(site_folder, "orders")
    assert seen["focused"] == "../../../topics/shop/sales/orders.html"
    assert (seen["closed"], seen["slash"]) == (True, True)
    assert seen["theme"] in ("dark", "light")


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalogue of a topic whose texts are long, without blanks, and try to be code; its records are nested six deep."""
    require_browser()
    folder = tmp_path_factory.mktemp("hostile")
    repository = Scratch(folder / "repository")
    evil, word = "</script><img src=x onerror=\"document.title='taken'\">{{7*7}} ", "x" * 90
    inner: Any = {"type": "enum", "name": "E", "symbols": ["A", "B"], "doc": evil}
    for depth in range(6):
        fields = [
            {"name": f"level_{depth}_of_many", "type": inner, "doc": evil},
            {"name": "word", "type": "string", "default": evil + word},
        ]
        inner = {"type": "record", "name": f"acme.Level{depth}", "fields": fields, "doc": word}
    metadata = {
        "description": evil + word,
        "owner": word,
        "labels": {word: evil},
        "links": {evil: "https://example.com/"},
        "deprecated": {"since": "2026-01-01"},
    }
    files: dict[str, str | bytes | None] = {
        "schemactl.yaml": "version: 1\nroots: [topics]\n",
        "topics/space.yaml": json.dumps({"namespace": "acme/odd", "owner": word, "description": evil + word}),
        "topics/odd.yaml": json.dumps(
            {"topic": f"acme/odd/{word}", "schema": {"type": "AVRO", "definition": "odd.avsc"}, **metadata}
        ),
        "topics/odd.avsc": json.dumps(inner),
    }
    repository.commit(files, evil)
    repository.flush()
    schemactl(repository.path, "site", "--out", str(folder / "site"), "--title", evil)
    return folder / "site"


@pytest.mark.parametrize("width", [400, 800, 1100])
def test_no_text_is_cut_off_or_taken_for_code(hostile_site: Path, tmp_path: Path, width: int) -> None:
    paths = [path.relative_to(hostile_site) for path in sorted(hostile_site.rglob("*.html"))]
    # One of each kind.
    for path in {(path.parts[0], ".v0" in path.name): path for path in paths}.values():
        measured = inspect_page(tmp_path, inline_page(hostile_site, path.as_posix()), width=width, dark=False)
        assert (measured["wide"], measured["over"], measured["cut"], measured["images"]) == ([], [], [], 0)
        assert measured["scroll"] <= width


@pytest.fixture(scope="module")
def large_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalogue of many topics, some of them with several versions."""
    require_browser()
    folder = tmp_path_factory.mktemp("large")
    repository = Scratch(folder / "repository")

    def make_definition(number: int, version: int) -> str:
        fields = [{"name": f"field_{at}", "type": "long", "doc": f"What {at} is of {number}."} for at in range(12)]
        more = [{"name": f"more_{at}", "type": ["null", "string"], "default": None} for at in range(version)]
        return json.dumps({"type": "record", "name": f"acme.Event{number}", "fields": fields + more})

    def make_path(number: int, suffix: str) -> str:
        return f"topics/ns{number % 20}/event-{number}{suffix}"

    files: dict[str, str | bytes | None] = {"schemactl.yaml": "version: 1\nroots: [topics]\n"}
    for number in range(LARGE):
        name = f"acme/ns{number % 20}/event-{number}"
        files[make_path(number, ".yaml")] = write_declaration(
            name, f"event-{number}.avsc", f"owner: team-{number % 30}\n"
        )
        files[make_path(number, ".avsc")] = make_definition(number, 0)
    repository.commit(files)
    for version in (1, 2):
        repository.commit(
            {make_path(number, ".avsc"): make_definition(number, version) for number in range(0, LARGE, 3)}
        )
    repository.flush()
    schemactl(repository.path, "site", "--out", str(folder / "site"))
    return folder / "site"


def test_a_large_catalogue_is_searched_and_its_pages_stay_small(large_site: Path, tmp_path: Path) -> None:
    topic = f"event-{LARGE - 1}"
    place = f"topics/acme/ns{(LARGE - 1) % 20}/event_{LARGE - 1}.html"
    seen = search_page(large_site, topic, f"what 7 is of {LARGE - 1}", "team-7", at=place)
    assert seen[topic][0][1].endswith(place)
    assert [address.endswith(f"{place}#f-field_7") for _, address in seen[f"what 7 is of {LARGE - 1}"]] == [True]
    assert len(seen["team-7"]) > 0
    for page in large_site.rglob("*.html"):
        assert page.stat().st_size < 100_000
    namespace = "namespaces/acme/ns0.html"
    for name in ("index.html", namespace, place, "types.html", "changes.html"):
        measured = inspect_page(tmp_path, inline_page(large_site, name), width=400, dark=False)
        assert (measured["wide"], measured["over"]) == ([], [])
        assert [violation for violation in measured["axe"] if violation[0] in SERIOUS] == []
