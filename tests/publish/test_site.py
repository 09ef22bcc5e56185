"""The catalog site shows the approved state of Git, page by page, without external links."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

import html5lib
import pytest
from command import schemactl
from lxml import etree
from scratch import Scratch, record, write_declaration

from schemactl.publish.site_definitions import pack_lines
from schemactl.publish.site_pages import slug

pytestmark = pytest.mark.slow

EVIL = '<script>alert("x")</script>\u202e'
MONEY = {"type": "record", "name": "acme.Money", "fields": [{"name": "amount", "type": "long"}]}


def order(*fields: object) -> str:
    return json.dumps(
        {"type": "record", "name": "acme.Order", "doc": EVIL, "fields": [{"name": "id", "type": "string"}, *fields]}
    )


TOTAL = {"name": "total", "type": MONEY, "doc": "What was paid."}
CHANNEL = {
    "name": "channel",
    "type": {"type": "enum", "name": "acme.Channel", "symbols": ["WEB", "SHOP"]},
    "default": "WEB",
}
SVG = "{http://www.w3.org/2000/svg}"
MONEY_TOPIC = "schema: {type: JSON, definition: money.avsc}\n"


@pytest.fixture(scope="module")
def site_shop(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Make orders with three versions, two of them on prod, a deleted topic, and topics of several types with hostile texts."""
    shop = Scratch(tmp_path_factory.mktemp("site") / "shop")
    targets = 'targets: {stage: {registry: "sqlite:s.db"}, prod: {registry: "sqlite:p.db", promoted: refs/tags/prod, exclude: [carts]}, '
    shop.commit(
        {
            "schemactl.yaml": f"version: 1\nroots: [topics]\n{targets}next: {{registry: 'sqlite:n.db', promoted: refs/tags/none}}}}\n"
            "generate: {package: shop_schemas, out: generated}\n",
            "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\nowner: team-sales\n"
            "description: All that is sold.\n",
            "topics/orders.yaml": write_declaration(
                more="links: {wiki: 'https://example.com/a?b=1&c=2'}\nlabels: {tier: gold}\n"
                "clients:\n  - {name: billing, role: consumer, schema: 0, team: payments, targets: [prod]}\n"
            ),
            "topics/orders.avsc": order(),
            "topics/money.yaml": f"topic: shop/sales/money\n{MONEY_TOPIC}",
            "topics/coins.yaml": f"topic: shop/sales/Money\ndescription: '{EVIL.replace(chr(0x202E), '')}'\n"
            f"deprecated: {{since: 2026-01-01, use: shop/sales/money}}\n{MONEY_TOPIC}",
            "topics/money.avsc": json.dumps(MONEY),
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
            "topics/refunds.avsc": record("id", name="Refund"),
            "topics/carts.yaml": "topic: shop/web/carts\nschema: {type: STRING}\n",
            "topics/clicks.yaml": "topic: shop/web/clicks\n"
            "schema: {type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click}\n",
            "topics/click.proto": 'syntax = "proto3";\npackage web;\nmessage Click { string url = 1; map<string, Click> more = 2; repeated Click path = 3; }\n',
            "topics/pairs.yaml": "topic: shop/web/pairs\nschema: {type: KEY_VALUE, encoding: SEPARATED, key: {type: STRING}, "
            "value: {type: JSON, definition: money.avsc}}\n",
            "topics/pings.yaml": "topic: shop/web/pings\n",
        }
    )
    shop.commit({"topics/orders.avsc": order(TOTAL)}, message=f"Orders have a total {EVIL}")
    shop.flush()
    shop.git("tag", "prod")
    shop.commit(
        {"topics/orders.avsc": order(TOTAL, CHANNEL), "topics/refunds.yaml": None},
        message="Orders say whence they came",
    )
    shop.flush()
    return shop


@pytest.fixture(scope="module")
def site_folder(site_shop: Scratch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "site"
    done = schemactl(site_shop.path, "site", "--out", str(out), "--title", "Acme & Co")
    assert "7 topics" in done.out
    return out


def read_page(path: Path) -> Element:
    """The page, read as strictly as the standard has it."""
    root: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(path.read_text("utf-8"))
    return root


def read_text(element: Element) -> str:
    return " ".join(" ".join(element.itertext()).split())


def read_table(root: Element, label: str) -> list[list[str]]:
    """Return the rows of the table with this label."""
    (element,) = (div for div in root.iter("div") if div.get("aria-label") == label)
    return [[read_text(cell) for cell in row] for body in element.iter("tbody") for row in body]


def orders_page(site: Path) -> Element:
    return read_page(site / "topics/shop/sales/orders.html")


@pytest.fixture(scope="module")
def odd_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with types that contain each other, differ by topic, were removed, are shipped with protoc, or are large."""
    odd = Scratch(tmp_path_factory.mktemp("odd") / "odd")
    wide = [
        {"name": f"field_number_{number}", "type": ["null", "string"], "default": None, "doc": "What it is. " * 4}
        for number in range(310)
    ]
    other = {**MONEY, "fields": [{"name": "cents", "type": "int"}]}
    line = {"type": "record", "name": "acme.Line", "fields": [TOTAL]}
    topics: dict[str, dict[str, Any]] = {
        "bills": {"name": "acme.Bill", "fields": [{"name": "lines", "type": line}, {**TOTAL, "type": "acme.Money"}]},
        "fees": {"name": "acme.Fee", "fields": [{"name": "fee", "type": other}]},
        "trees": {
            "name": "acme.Tree",
            "fields": [
                {"name": "left", "type": ["null", "acme.Tree"], "default": None},
                {"name": "leaf", "type": {"type": "fixed", "name": "acme.Leaf", "size": 2}},
            ],
        },
        "wide": {"name": "acme.Wide", "doc": "As the scanner sees it.", "fields": wide},
        "past": {"name": "acme.Past", "fields": [CHANNEL]},
        "paid": {
            "name": "acme.Paid",
            "fields": [
                {
                    "name": "by",
                    "type": [
                        {"type": "record", "name": "acme.Card", "fields": [{"name": "number", "type": "string"}]},
                        {"type": "record", "name": "acme.Cash", "fields": [{"name": "number", "type": "int"}]},
                    ],
                }
            ],
        },
    }
    files = {f"topics/{name}.yaml": write_declaration(f"shop/web/{name}", f"{name}.avsc") for name in topics}
    files["topics/wide.yaml"] += "description: Everything.\n"
    files |= {
        f"topics/{name}.avsc": json.dumps({"type": "record", **attributes}) for name, attributes in topics.items()
    }
    odd.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            **files,
            "topics/clicks.yaml": "topic: shop/web/clicks\n"
            "schema: {type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click}\n",
            "topics/click.proto": 'syntax = "proto3"; package web; import "google/protobuf/timestamp.proto";\n'
            "// A press on\n// a button.\nmessage Click { google.protobuf.Timestamp at = 1; Inner inner = 2; map<string, Inner> more = 3; }\n"
            "// Ends,\n// or goes on.\nmessage Inner {\n  // Where from.\n  oneof one {\n    Click back = 1; // The one before.\n    string end = 2;\n  }\n}\n",
        }
    )
    odd.commit({"topics/past.yaml": None})
    odd.flush()
    out = tmp_path_factory.mktemp("out") / "odd"
    schemactl(odd.path, "site", "--out", str(out))
    return out


@pytest.mark.parametrize(
    ("which", "links"), [("site_folder", {"https://example.com/a?b=1&c=2"}), ("odd_site", set[str]())]
)
def test_every_link_leads_to_a_page_of_the_site(which: str, links: set[str], request: pytest.FixtureRequest) -> None:
    site: Path = request.getfixturevalue(which)
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    outside = set()
    for path in pages:
        for element in read_page(path).iter():
            for attribute in ("href", "src"):
                address = element.get(attribute)
                if address is None:
                    continue
                parts = urlsplit(address)
                if parts.scheme:
                    assert element.tag == "a"
                    outside.add(address)
                elif parts.path:
                    assert (path.parent / unquote(parts.path)).resolve().is_file(), (path, address)
    assert outside == links


def test_hostile_words_stay_words(site_folder: Path) -> None:
    for path in site_folder.rglob("*.html"):
        content = path.read_text("utf-8")
        assert "<script>" not in content
        assert "\u202e" not in content
    index = (site_folder / "search.js").read_text("utf-8")
    search_index = json.loads(index.removeprefix("window.schemactlIndex=").removesuffix(";\n"))
    assert ["types/acme.money-", "acme.Money", 4, []] in [[path[:17], *more] for path, *more in search_index["types"]]
    assert [row[1] for row in search_index["clients"]] == ["billing"]
    assert search_index["owners"] == [["owners/team-sales.html", "team-sales", 4]]
    assert index.isascii()


def test_the_page_of_a_topic_answers_what_newcomers_ask(site_folder: Path) -> None:
    root = orders_page(site_folder)
    content = read_text(root)
    assert "Owner team-sales" in content
    assert "BACKWARD set by the namespace" in content
    assert "Type AVRO In force v2 since 2023-11-14" in content
    assert read_table(root, "Clients") == [["billing", "consumer", "", "payments", "prod"]]
    assert "schemactl decode shop/sales/orders --version 2 --base64 PAYLOAD" in content
    fields = {row[0]: row[1:] for row in read_table(root, "Fields")}
    assert fields["total"] == ["Money", "", "", "v1", "What was paid."]
    assert fields["amount"] == ["long", "BIGINT", "", "v1", ""]
    assert fields["channel"] == ["Channel", "STRING", '"WEB"', "v2", "WEB SHOP"]
    versions = read_table(root, "Versions")
    assert [row[:2] for row in versions] == [["v2", "safe"], ["v1", "cannot read v0"], ["v0", "first version"]]
    assert versions[0][3].startswith('added: Order.channel: Channel = "WEB"')


def test_the_code_to_paste_is_shared_by_the_topics_of_a_type(site_folder: Path) -> None:
    (tabs,) = (element for element in orders_page(site_folder).iter("div") if element.get("data-code"))
    script = (site_folder / "code.js").read_text()
    code = json.loads(script.removeprefix("window.schemactlCode=").removesuffix(";\n"))
    snippets = {label: (install, blocks) for label, install, blocks in code[tabs.get("data-code")]}
    assert (tabs.get("data-topic"), tabs.get("data-module")) == ("persistent://shop/sales/orders", "shop.sales.orders")
    assert [*snippets] == ["Python", "Spark", "SQL", "Java", "Go", "Node"]
    assert "from shop_schemas.$module$ import $constant$" in snippets["Python"][1][0][1]
    assert "spark.dataSource.register(PulsarSource)" in snippets["Spark"][1][0][1]


def test_the_page_says_who_can_read_whom(site_folder: Path) -> None:
    rows = read_table(orders_page(site_folder), "Who can read whom")
    # A version without a default for `total` reads no older message.
    assert [row[1:] for row in rows] == [["yes", "yes", "yes"], ["no", "yes", "yes"], ["no", "yes", "yes"]]
    content = read_text(orders_page(site_folder))
    assert "v0 and v1 Order.total is new and has no default; messages of version 0 do not carry it" in content


def test_the_page_says_who_can_read_today_s_messages(site_folder: Path) -> None:
    content = read_text(orders_page(site_folder))
    assert "Today's messages are of version 2. Readers built with any version read them." in content
    assert "v0 cannot" not in content


def test_a_deprecated_topic_leads_to_the_one_to_use(site_folder: Path) -> None:
    (path,) = (path for path in (site_folder / "topics/shop/sales").glob("money_*.html") if ".v" not in path.name)
    root = read_page(path)
    assert "Deprecated since 2026-01-01. Use shop/sales/money instead." in read_text(root)
    (link,) = (element.get("href", "") for element in root.iter("a") if read_text(element) == "shop/sales/money")
    assert "Deprecated" not in read_text(read_page(path.parent / link))


def test_an_owner_has_a_page_of_topics(site_folder: Path) -> None:
    rows = read_table(read_page(site_folder / "owners/team-sales.html"), "Topics")
    assert [row[0].partition("<")[0].strip() for row in rows] == [
        "shop/sales/ Money",
        "shop/sales/ money",
        "shop/sales/ orders",
        "shop/sales/ refunds",
    ]
    (link,) = (
        element.get("href", "") for element in orders_page(site_folder).iter("a") if read_text(element) == "team-sales"
    )
    assert (site_folder / "topics/shop/sales" / link).resolve() == site_folder / "owners/team-sales.html"


def test_the_page_says_what_each_target_has(site_folder: Path) -> None:
    rows = {row[0]: row[1] for row in read_table(orders_page(site_folder), "Environments")}
    assert rows == {"stage": "2", "prod": "1", "next": "not there"}
    carts = read_page(site_folder / "topics/shop/web/carts.html")
    assert {row[0]: row[1] for row in read_table(carts, "Environments")}["prod"] == "not there"


def test_a_version_says_what_it_changed(site_folder: Path) -> None:
    (section,) = (
        element
        for element in read_page(site_folder / "topics/shop/sales/orders.v0.html").iter("section")
        if element.get("id") == "v2"
    )
    content = read_text(section)
    assert content.startswith("v2 safe in force since 2023-11-14 Orders say whence they came")
    assert 'added: Order.channel: Channel = "WEB"' in content
    assert '+ "default": "WEB"' in content


def test_the_script_of_a_topic_has_every_version(site_folder: Path) -> None:
    script = (site_folder / "topics/shop/sales/orders.js").read_text()
    value = json.loads(script.removeprefix("window.schemactlTopic=").removesuffix(";\n"))
    lines: list[str] = []
    texts = []
    for _, _, head, removed, added in value["versions"]:
        # Each line starts with the number of its pairs of leading spaces, and quotes are swapped.
        packed_lines = added.translate(str.maketrans("\"'", "'\"")).split("\n") if added else []
        added_lines = ["  " * int(line[0], 36) + line[1:] for line in packed_lines]
        lines = [*lines[:head], *added_lines, *lines[head + removed :]]
        texts.append("\n".join(lines))
    assert value["force"] == 2
    assert [json.loads(text)["fields"][-1]["name"] for text in texts] == ["id", "total", "channel"]
    assert '"symbols": ["WEB", "SHOP"]' in texts[2]
    assert script.isascii()
    assert "<" not in script


@pytest.mark.parametrize("page", ["orders.html", "orders.v0.html"])
def test_the_tree_of_namespaces_marks_the_topic_of_the_page(site_folder: Path, page: str) -> None:
    (tree,) = (
        element
        for element in read_page(site_folder / "topics/shop/sales" / page).iter("nav")
        if element.get("class") == "tree"
    )
    links = [*tree.iter("a")]
    assert [link.get("href") for link in links if link.get("aria-current")] == ["orders.html"]
    assert "../../../namespaces/shop/sales.html" in [link.get("href") for link in links]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], ""),
        ([""], "0"),
        (["", ""], "0\n0"),
        (['  "it\'s": 1,', "   x"], "1'it\"s': 1,\n1 x"),
        ([" " * 74 + "x"], "z" + " " * 4 + "x"),
    ],
)
def test_lines_of_a_script_are_packed_without_loss(lines: list[str], text: str) -> None:
    assert pack_lines(lines) == text
    unpacked = text.translate(str.maketrans("\"'", "'\"")).split("\n") if text else []
    assert ["  " * int(line[0], 36) + line[1:] for line in unpacked] == lines


def test_a_topic_without_schema_is_listed_and_found(site_folder: Path) -> None:
    rows = {row[0]: row[1:3] for row in read_table(read_page(site_folder / "namespaces/shop/web.html"), "Topics")}
    assert rows["pings"] == ["", ""]
    assert '"namespaces/shop/web.html","persistent://shop/web/pings"' in (site_folder / "search.js").read_text()
    assert not (site_folder / "topics/shop/web/pings.html").exists()


def test_a_topic_that_is_gone_says_so(site_folder: Path) -> None:
    assert "Deleted : no file declares" in read_text(read_page(site_folder / "topics/shop/sales/refunds.html"))
    rows = {row[0]: row for row in read_table(read_page(site_folder / "namespaces/shop/sales.html"), "Topics")}
    assert rows["refunds"][1:3] == ["", "deleted"]
    assert "3 topics" in read_text(read_page(site_folder / "namespaces/shop/sales.html"))
    assert "Code to paste" not in read_text(read_page(site_folder / "topics/shop/sales/refunds.html"))


def test_types_know_their_users(site_folder: Path) -> None:
    money = read_page(site_folder / f"types/{slug('acme.Money')}.html")
    content = read_text(money)
    assert "Used by 4 topics" in content
    assert "shop/sales/orders" in content
    assert "Part of Order " in content
    # Columns that would be empty are not there.
    assert read_table(money, "Fields") == [["amount", "long", "BIGINT", ""]]
    first = read_table(read_page(site_folder / "types.html"), "Types")[0]
    assert first[:3] == ["Money acme", "record", "4"]
    assert [row[:2] for row in read_table(money, "Used by")][2:] == [
        ["shop/sales/orders", "total"],
        ["shop/web/pairs", "the message itself"],
    ]


def read_graph(site: Path, name: str) -> list[tuple[int, str]]:
    """Return the nodes of the graph of a type, each with its column."""
    (graph,) = read_page(site / f"types/{slug(name)}.html").iter(f"{SVG}svg")
    nodes = []
    for node in graph:
        title, box = (next(node.iter(f"{SVG}{tag}"), None) for tag in ("title", "rect"))
        if title is not None and box is not None:
            nodes.append((int(box.get("x", "")), read_text(title)))
    places = sorted({x for x, _ in nodes})
    return sorted((places.index(x), name) for x, name in nodes)


def test_the_graph_of_a_type_leads_from_topics_to_what_it_is_made_of(site_folder: Path, odd_site: Path) -> None:
    # The messages of three topics are of it, one of them as the value of a pair.
    assert read_graph(site_folder, "acme.Money") == [
        (0, "topic shop/sales/Money"),
        (0, "topic shop/sales/money"),
        (0, "topic shop/sales/orders"),
        (0, "topic shop/web/pairs"),
        (1, "type acme.Order"),
        (2, "type acme.Money"),
    ]
    # Bills hold it themselves, and by their lines.
    assert read_graph(odd_site, "acme.Money") == [
        (0, "topic shop/web/bills"),
        (0, "topic shop/web/fees"),
        (1, "type acme.Bill"),
        (2, "type acme.Fee"),
        (2, "type acme.Line"),
        (3, "type acme.Money"),
    ]


def test_a_type_that_holds_itself_stands_between_its_topics_and_its_parts(odd_site: Path) -> None:
    nodes = [(0, "topic shop/web/trees"), (1, "type acme.Tree"), (2, "type acme.Leaf")]
    for name in ("acme.Tree", "acme.Leaf"):
        assert read_graph(odd_site, name) == nodes
        lines = [*read_page(odd_site / f"types/{slug(name)}.html").iter(f"{SVG}path")]
        assert len(lines) == 2


def test_the_graph_of_messages_that_hold_each_other_ends(odd_site: Path) -> None:
    assert read_graph(odd_site, "web.Click") == [
        (0, "topic shop/web/clicks"),
        (1, "type web.Inner"),
        (2, "type web.Click"),
    ]
    assert [name for _, name in read_graph(odd_site, "web.Inner")] == [
        "topic shop/web/clicks",
        "type web.Click",
        "type web.Inner",
    ]


def test_many_users_of_a_type_are_counted(tmp_path: Path) -> None:
    many = Scratch(tmp_path / "many")
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/money.avsc": json.dumps(MONEY)}
    files |= {f"topics/{number}.yaml": f"topic: shop/web/t{number}\n{MONEY_TOPIC}" for number in range(15)}
    many.commit(files)
    many.flush()
    schemactl(many.path, "site", "--out", str(tmp_path / "site"))
    assert len(read_graph(tmp_path / "site", "acme.Money")) == 11
    assert len([*read_page(tmp_path / f"site/types/{slug('acme.Money')}.html").iter(f"{SVG}path")]) == 11
    assert "and 5 more" in read_text(read_page(tmp_path / f"site/types/{slug('acme.Money')}.html"))


def test_a_start_page_of_many_namespaces_and_owners_leaves_the_rest_to_the_search(tmp_path: Path) -> None:
    many = Scratch(tmp_path / "many")
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n"}
    for number in range(310):
        files[f"topics/{number}.yaml"] = (
            f"topic: shop/space{number}/t\nowner: team-{number}\nschema: {{type: STRING}}\n"
        )
    many.commit({**files})
    many.flush()
    schemactl(many.path, "site", "--out", str(tmp_path / "site"))
    start = tmp_path / "site/index.html"
    assert start.stat().st_size < 100_000
    content = read_text(read_page(start))
    assert "And 210 namespaces more, which the search finds. And 210 owners more, which the search finds." in content
    index = json.loads((tmp_path / "site/search.js").read_text().removeprefix("window.schemactlIndex=").rstrip(";\n"))
    assert (len(index["namespaces"]), len(index["owners"])) == (310, 310)


def test_a_type_that_topics_define_differently_says_so(odd_site: Path) -> None:
    content = read_text(read_page(odd_site / f"types/{slug('acme.Money')}.html"))
    assert "Shown as shop/web/bills defines it; otherwise in shop/web/fees ." in content
    assert "Not the same" not in read_text(read_page(odd_site / f"types/{slug('acme.Bill')}.html"))


def test_messages_that_hold_each_other_have_rows_though_spark_has_no_such_column(odd_site: Path) -> None:
    rows = read_table(read_page(odd_site / "topics/shop/web/clicks.html"), "Fields")
    assert [row[0] for row in rows] == ["at", "inner", "back", "end", "more", "back", "end"]
    assert not [path.name for path in odd_site.rglob("*.html") if "moreentry" in path.name]


def test_the_fields_of_several_records_of_a_union_say_whose_they_are(odd_site: Path) -> None:
    rows = read_table(read_page(odd_site / "topics/shop/web/paid.html"), "Fields")
    assert [row[:3] for row in rows] == [
        ["by", "Card | Cash", ""],
        ["Card. number", "string", "STRING"],
        ["Cash. number", "int", "INT"],
    ]


def test_a_message_that_holds_itself_has_its_rows_once_and_no_columns(site_folder: Path) -> None:
    root = read_page(site_folder / "topics/shop/web/clicks.html")
    assert [row[0] for row in read_table(root, "Fields")] == ["url", "more", "path"]
    assert "Spark has no columns for it: the message web.Click is recursive" in read_text(root)
    assert "Read it in Spark" not in read_text(root)


def test_comments_of_proto_files_are_documentation(odd_site: Path) -> None:
    root = read_page(odd_site / "topics/shop/web/clicks.html")
    assert "A press on a button." in read_text(root)
    rows = {row[0]: row[-1] for row in read_table(root, "Fields")}
    assert rows["inner"] == "Ends, or goes on."
    assert (rows["back"], rows["end"]) == ("The one before. One of one.", "One of one.")
    assert "The one before." in (odd_site / "search.js").read_text()
    assert "Ends, or goes on." in read_text(read_page(odd_site / f"types/{slug('web.Inner')}.html"))
    assert "As the scanner sees it." in read_text(read_page(odd_site / "topics/shop/web/wide.html"))
    # The page of a message leads to its topic.
    assert "../topics/shop/web/wide.html#fields" in (odd_site / f"types/{slug('acme.Wide')}.html").read_text("utf-8")


def test_what_the_definition_says_is_shown_and_found_beside_the_description(odd_site: Path) -> None:
    content = read_text(read_page(odd_site / "topics/shop/web/wide.html"))
    assert "Everything. From the definition: As the scanner sees it." in content
    assert '"Everything. As the scanner sees it."' in (odd_site / "search.js").read_text()


def test_a_page_of_many_fields_says_what_it_leaves_out(odd_site: Path) -> None:
    path = odd_site / "topics/shop/web/wide.html"
    assert path.stat().st_size < 100_000
    content = read_text(read_page(path))
    assert "Not more than 150 fields are shown here." in content
    assert re.search(r"And [\d,]+ lines more: schemactl show shop/web/wide prints all\.", content)


def test_older_versions_have_pages_of_their_own(tmp_path: Path) -> None:
    old = Scratch(tmp_path / "old")
    settled = {"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/orders.yaml": write_declaration()}
    for number in range(120):
        definition = order({"name": f"in_version_{number}", "type": "int", "default": 0})
        old.commit({**settled, "topics/orders.avsc": definition}, message="Orders change. " * 10)
    old.flush()
    schemactl(old.path, "site", "--out", str(tmp_path / "site"))
    folder = tmp_path / "site/topics/shop/sales"
    assert len(read_table(read_page(folder / "orders.html"), "Versions")) == 10
    names = [f"orders.v{start}.html" for start in range(0, 120, 20)]
    listed = [
        [element.get("id", "") for element in read_page(folder / name).iter("section") if element.get("id")]
        for name in names
    ]
    assert listed[0] == [f"v{number}" for number in range(19, -1, -1)]
    assert [len(ids) for ids in listed] == [20] * 6
    (pages, _) = (nav for nav in read_page(folder / "orders.v40.html").iter("nav") if nav.get("aria-label") == "Pages")
    assert [link.get("href") for link in pages.iter("a")] == [name for name in names[::-1] if name != "orders.v40.html"]
    assert (folder / "orders.html").stat().st_size < 77_000


def test_names_that_differ_in_case_alone_have_pages_of_their_own(site_folder: Path) -> None:
    files = [path.relative_to(site_folder).as_posix() for path in site_folder.rglob("*.html")]
    assert len({name.lower() for name in files}) == len(files)
    assert slug("acme.Money") != slug("acme.money")
    assert slug("acme.money") == "acme.money"


def feed_of(site: Path) -> Any:
    """The feed, which has the form that RFC 4287 asks for, and whose links lead to pages."""
    feed = etree.parse(site / "feed.xml")
    etree.RelaxNG(etree.parse(Path(__file__).parent / "atom.rng")).assertValid(feed)
    for link in feed.iterfind(".//{*}link"):
        assert (site / link.get("href").partition("#")[0]).is_file()
    for name, least in (("link[@rel='alternate']", 1), ("link[@rel='self']", 0)):
        assert len(feed.findall(f"./{{*}}{name}")) == 1
        assert {len(entry.findall(f"{{*}}{name}")) for entry in feed.iterfind("{*}entry")} <= {least}
    return feed


def test_feed_readers_get_each_version_once(site_folder: Path) -> None:
    feed = feed_of(site_folder)
    ids = feed.xpath("//*[local-name()='id']/text()")
    assert len(ids) == len({*ids}) == 10
    days = [entry.findtext("{*}updated") for entry in feed.iterfind("{*}entry")]
    assert days == sorted(days, reverse=True)
    assert feed.findtext("{*}updated") == days[0]
    assert feed.xpath("//*[local-name()='title']/text()").count("orders v2: safe (shop/sales)") == 1


def test_ids_in_the_feed_stay_when_the_catalogue_is_called_otherwise(site_shop: Scratch, tmp_path: Path) -> None:
    texts = []
    for title in ("One", "Another"):
        schemactl(site_shop.path, "site", "--out", str(tmp_path / title), "--title", title)
        texts.append((tmp_path / title / "feed.xml").read_text("utf-8"))
    assert texts[0].replace("One", "Another") == texts[1]


def test_the_feed_of_a_repository_without_versions_is_empty(tmp_path: Path) -> None:
    empty = Scratch(tmp_path / "empty")
    empty.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/a.yaml": "topic: shop/web/a\n"})
    empty.flush()
    schemactl(empty.path, "site", "--out", str(tmp_path / "out"))
    assert feed_of(tmp_path / "out").find("{*}entry") is None


def test_what_is_printed_is_dark_on_white(site_folder: Path) -> None:
    _, _, printed = (site_folder / "site.css").read_text("utf-8").partition("@media print")
    assert ":root { color-scheme: light; --paper: #fff;" in printed


def test_pages_are_small_and_ask_nobody_for_anything(site_folder: Path) -> None:
    for path in site_folder.rglob("*"):
        if path.suffix in (".html", ".css", ".js"):
            content = path.read_text("utf-8")
            assert len(content) < 100_000
            assert not re.search(r"@import|url\((?!\"data:)|fetch\(|XMLHttpRequest", content)


def test_a_theme_follows_the_style_of_the_site(site_shop: Scratch, tmp_path: Path) -> None:
    (tmp_path / "theme.css").write_text(":root { --theme-hue: 150; }\n")
    schemactl(site_shop.path, "site", "--out", str(tmp_path / "site"), "--theme", str(tmp_path / "theme.css"))
    assert (tmp_path / "site/site.css").read_text().endswith(":root { --theme-hue: 150; }\n")
    missing = schemactl(site_shop.path, "site", "--out", str(tmp_path / "site"), "--theme", "none.css", code=64)
    assert "--theme none.css" in missing.err


def test_a_further_run_writes_only_what_changed(site_shop: Scratch, tmp_path: Path) -> None:
    def read_times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}

    out = tmp_path / "site"
    schemactl(site_shop.path, "site", "--out", str(out))
    before = read_times()
    schemactl(site_shop.path, "site", "--out", str(out))
    assert read_times() == before
    (out / "topics/shop/sales/orders.html").write_text("changed by hand")
    schemactl(site_shop.path, "site", "--out", str(out))
    assert {path.name for path, time_ns in read_times().items() if before[path] != time_ns} == {"orders.html"}


def test_what_is_no_longer_part_of_it_is_removed_and_nothing_else(site_shop: Scratch, tmp_path: Path) -> None:
    out = tmp_path / "site"
    schemactl(site_shop.path, "site", "--out", str(out))
    (out / "CNAME").write_text("schemas.example.com\n")
    schemactl(site_shop.path, "site", "--out", str(out), "--namespace", "shop/web")
    assert not (out / "topics/shop/sales/orders.html").exists()
    assert (out / "topics/shop/web/carts.html").exists()
    assert (out / "CNAME").exists()


def test_a_folder_of_other_files_is_left_alone(site_shop: Scratch, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    assert "has files and is not a catalog" in schemactl(site_shop.path, "site", "--out", str(tmp_path), code=64).err
    assert "is a file" in schemactl(site_shop.path, "site", "--out", str(tmp_path / "thesis.tex"), code=64).err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_list_that_somebody_forged_removes_nothing_outside(site_shop: Scratch, tmp_path: Path) -> None:
    out, saved_site = tmp_path / "site", tmp_path / "kept"
    saved_site.touch()
    out.mkdir()
    (out / ".schemactl-site").write_text(f"../kept\n{saved_site}\nindex.html/../../kept\n")
    schemactl(site_shop.path, "site", "--out", str(out), "--namespace", "shop/web")
    assert saved_site.exists()
