"""A check on a terminal states who breaks, where, by which message, and how to repair it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import shop
from command import process, schemactl
from scratch import Scratch

from schemactl.checks.check_report import CheckReport, TopicCheck
from schemactl.core.findings import Counterexample
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release
from schemactl.core.terminal import clean, paint_link, supports_links, wrap_text
from schemactl.report.headline import shorten_topic
from schemactl.report.message_parts import list_message_parts

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"
CLIENTS = """\
clients:
  - {name: billing, team: payments, role: consumer, contact: "@acme/payments"}
  - {name: till, team: stores, role: producer, schema: 0}
  - {name: desk, team: care, role: consumer, schema: 0}
"""
TOPIC = "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n"
STATUS = """\
{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "string"},
  {"name": "status", "type": {
    "type": "enum", "name": "Status",
    "symbols": SYMBOLS}}EXTRA
]}
"""


def make_status(symbols: str, extra: str = "") -> str:
    return STATUS.replace("SYMBOLS", json.dumps(symbols.split())).replace("EXTRA", extra)


@pytest.fixture
def client_repository(tmp_path: Path) -> Scratch:
    """Two versions, whose second has a symbol that `desk` does not know; the third drops a symbol that `till` writes."""
    repository = Scratch(tmp_path / "shop")
    files = {"schemactl.yaml": PROJECT, "topics/orders.yaml": TOPIC + CLIENTS}
    repository.commit({**files, "topics/orders.avsc": make_status("PAID SHIPPED")})
    repository.commit({"topics/orders.avsc": make_status("PAID SHIPPED CANCELED")})
    repository.write({"topics/orders.avsc": make_status("PAID CANCELED")})
    return repository


def test_the_whole_screen(client_repository: Scratch) -> None:
    printed = schemactl(client_repository, "check", code=100).out
    blocks = printed.split("\n\n")
    assert blocks[0] == "✗ 1 consumer breaks: billing (team payments). The broker accepts orders v2."
    [block] = [block for block in blocks if block.startswith("error[MISSING_ENUM_SYMBOLS]")]
    lines = [line for line in block.splitlines() if not line.startswith(("      = rule", "      = waive"))]
    assert lines == [
        "error[MISSING_ENUM_SYMBOLS]: orders v2 cannot read v1",
        "  --> topics/orders.avsc:5:16",
        "      |",
        '    4 |     "type": "enum", "name": "Status",',
        '   v1 | - "SHIPPED",',
        '    5 |     "symbols": ["PAID", "CANCELED"]}}',
        "      |                ^^^^^^^^^^^^^^^^^^^^",
        "      = why      Order.status: messages may hold SHIPPED, which Status no longer lists, and Status has no default: reading one throws.",
        "      = breaks   billing (team payments), @acme/payments, once built with orders v2",
        "      = written  by till (team stores) with version 0",
        '      = message  {"id": "", "status": "SHIPPED"} (2 bytes)',
        "      = result   AvroTypeException: No match for SHIPPED",
        '      = fix      list SHIPPED again, or give Status a default, for example "default": "PAID".',
        "      = edit     `schemactl check --fix` makes it",
        "      = more     schemactl explain MISSING_ENUM_SYMBOLS",
    ]


def test_notes_and_older_problems_are_one_line_each_without_the_option(client_repository: Scratch) -> None:
    folded = "1 older problem, which the change does not cause: CLIENT_BREAKS (orders) for desk (team care). `--notes` shows it."
    printed = schemactl(client_repository, "check", code=100).out
    assert folded in printed
    assert "note[CLIENT_BREAKS]" not in printed
    printed = schemactl(client_repository, "check", "--notes", code=100).out
    assert folded not in printed
    assert "note[CLIENT_BREAKS]: The consumer desk (team care) is built with version 0" in printed


def test_concise_has_one_line_for_each_finding(client_repository: Scratch) -> None:
    lines = schemactl(client_repository, "check", "--format", "concise", code=100).out.splitlines()
    assert lines[0].startswith(
        "topics/orders.avsc:5:16: error MISSING_ENUM_SYMBOLS orders v2 cannot read v1: Order.status: "
    )
    assert [line.split()[2] for line in lines] == ["MISSING_ENUM_SYMBOLS", "CLIENT_BREAKS", "CLIENT_BREAKS"]


@pytest.mark.parametrize(
    ("change", "code", "headline"),
    [
        (None, 0, "✓ No schema changed."),
        (make_status("PAID SHIPPED CANCELED", ',\n  {"name": "note", "type": "string", "default": ""}'), 0, "✓ No reader breaks. The broker accepts orders v2."),
        # The broker compares types and fields, and no symbols.
        (make_status("PAID SHIPPED CANCELED").replace('"string"', '"int"'), 100, "✗ 2 consumers break: desk (team care), billing (team payments). The broker rejects orders v2."),
    ],
)  # fmt: skip
def test_the_first_line_states_who_breaks(
    client_repository: Scratch, change: str | None, code: int, headline: str
) -> None:
    client_repository.write({"topics/orders.avsc": change or make_status("PAID SHIPPED CANCELED")})
    assert schemactl(client_repository, "check", code=code).out.splitlines()[0] == headline


def test_without_clients_the_first_line_names_the_schemas(client_repository: Scratch) -> None:
    client_repository.commit({"topics/orders.yaml": TOPIC, "topics/orders.avsc": make_status("PAID SHIPPED CANCELED")})
    client_repository.write({"topics/orders.avsc": make_status("PAID CANCELED")})
    first, *_ = schemactl(client_repository, "check", code=100).out.splitlines()
    assert first == "✗ 1 schema breaks readers: orders v2. The broker accepts orders v2."


@pytest.mark.parametrize(
    ("line", "excerpt"),
    [
        # Tabs take one column, so that the caret is below its text.
        ('\t{"name": "id", "type": "long"},', ['    2 |  {"name": "id", "type": "long"},', "      |                         ^^^^^^"]),
        # A wide character takes two columns.
        ('  {"name": "id", "doc": "日本", "type": "long"},', ['    2 |   {"name": "id", "doc": "日本", "type": "long"},', "      |                                         ^^^^^^"]),
        # A control character is shown as text, and the caret moves with it.
        ('  {"name": "\\u001b", "type": "long"},', None),
        (f'  {{"name": "id", "doc": "{"x" * 300}", "type": "long"}},', ["…"]),
    ],
)  # fmt: skip
def test_the_caret_is_below_the_place(client_repository: Scratch, line: str, excerpt: list[str] | None) -> None:
    text = make_status("PAID SHIPPED CANCELED").replace('  {"name": "id", "type": "string"},', line)
    client_repository.write({"topics/orders.avsc": text})
    printed = schemactl(client_repository, "check", code=100 if excerpt else 1).out
    for expected in excerpt or ():
        assert expected in printed
    rows = printed.splitlines()
    for number, row in enumerate(rows):
        if row.startswith("      | ") and "^" in row:
            start, end = row.index("^"), row.rindex("^") + 1
            assert rows[number - 1][start:end].strip()
            assert len(row) <= 170


@pytest.mark.parametrize(
    ("message", "field", "parts"),
    [
        ('{"id": "", "status": "SHIPPED"}', "Order.status", ["{", '"id": "", ', '"status": ', '*"SHIPPED"', "}"]),
        ('{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}', "R.d", ["{", '"a": 1, "b": 2, ', "..., ", '"d": ', "*4", ", ...}"]),
        ('{"lines": [{"price": 1}, {"price": 2}]}', "Order.lines[].price", ["{", '"lines": ', "[", "{", '"price": ', "*1", "}", ", ...]", "}"]),
        ('{"id": ""}', "Order.iban", ["{", '"id": "", ', "*no iban", "}"]),
        ('{"id": ""}', "", ['{"id": ""}']),
        ("{", "Order.id", ["{"]),
        ('{"value": {"a": 1, "b": 2}}', "value.Cart.b", ["{", '"value": ', "{", '"a": 1, ', '"b": ', "*2", "}", "}"]),
        ('{"key": 7, "value": {"a": 1}}', "key", ["{", '"key": ', "*7", ", ...}"]),
        ('{"value": {"value": 1}, "a": 2}', "R.value", ["{", '"value": ', '*{"value": 1}', ", ...}"]),
        ('{"id": "\\u001b[31m"}', "Order.id", ["{", '"id": ', '*"\\u001b[31m"', "}"]),
        (json.dumps({"big": ["x" * 90], "id": 1}), "R.id", ["{", '"big": [...], ', '"id": ', "*1", "}"]),
    ],
)  # fmt: skip
def test_the_guilty_value_of_a_message_is_marked(message: str, field: str, parts: list[str]) -> None:
    shown_parts = list_message_parts(Counterexample(message, b"", ""), field)
    assert [f"{'*' * part.is_guilty}{part.text}" for part in shown_parts] == parts


@pytest.mark.parametrize("width", [60, 120])
def test_tables_fit_the_terminal_without_cut_cells(client_repository: Scratch, width: int) -> None:
    printed = _run_on_terminal(client_repository.path, width, "check")
    rows = printed[printed.index("topic ") :].splitlines()
    lines = printed.splitlines()
    # A command is one line, so that it can be pasted.
    assert any(re.search(r" schemactl waive \w+ --reason .* --owner .+", line) for line in lines)
    assert max(len(line) for line in lines if " schemactl " not in line) <= width
    assert "…" not in printed
    assert any(row.startswith("shop/sales/orders  v1 → v2") for row in rows)
    assert ("BACKWARD" in rows[1]) is (width == 120)


def test_short_names_of_many_topics_take_no_time() -> None:
    """The time grows with the topics, and not with their square."""
    names = [TopicName.parse(f"persistent://shop/n{number % 50}/t{number // 2}") for number in range(20_000)]
    checks = tuple(TopicCheck(name, "added", CompatibilityStrategy.FULL, "namespace") for name in names)
    report = CheckReport(Release.R4_0, "main", len(checks), checks)
    started_s = time.monotonic()
    assert {shorten_topic(name, report) for name in names[:2]} == {"shop/n0/t0", "shop/n1/t0"}
    assert len({shorten_topic(name, report) for name in names}) == len(names)
    assert time.monotonic() - started_s < 5


def _run_on_terminal(folder: Path, width: int, *arguments: str) -> str:
    """Return the output of a command on a terminal of that many columns, without colors."""
    code = (
        "import sys; from schemactl.core import terminal; terminal.get_terminal_width = lambda: int(sys.argv.pop(1));"
        "from schemactl.cli import report_files; report_files.get_terminal_width = terminal.get_terminal_width;"
        "from schemactl.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code.replace("sys.argv.pop(1)", str(width)), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_a_link_of_a_foreign_text_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    link = paint_link("place", "https://code.example/a b", color=True)
    assert clean(link, styled=True) == link
    assert "https://code.example/a%20b" in link
    assert wrap_text(f"{link} end", 9) == f"{link} end"
    foreign = "\x1b]8;id=1;https://evil.example\x1b\\place"
    assert "\x1b]8;id" not in clean(foreign, styled=True)
    assert "\x1b" not in clean(link)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"FORCE_HYPERLINK": "1"}, True),
        ({"FORCE_HYPERLINK": "0", "TERM_PROGRAM": "iTerm.app"}, False),
        ({"TERM_PROGRAM": "iTerm.app"}, False),  # Standard output of a test is not a terminal.
    ],
)
def test_links_are_for_terminals_that_show_them(environment: dict[str, str], expected: bool) -> None:  # noqa: FBT001
    assert supports_links(environment) is expected


def test_a_passing_check_and_help_do_not_import_rich(client_repository: Scratch) -> None:
    client_repository.write({"topics/orders.avsc": make_status("PAID SHIPPED CANCELED")})
    for arguments in (["check"], ["--help"]):
        code = f"import sys; sys.argv = ['schemactl', *{arguments!r}]\nfrom schemactl.cli import main\ntry: main()\nexcept SystemExit: pass\nprint('rich' in sys.modules)"
        printed = subprocess.run(
            [sys.executable, "-c", code], cwd=client_repository.path, capture_output=True, text=True, check=False
        ).stdout
        assert printed.splitlines()[-1] == "False"


def test_the_summary_is_last(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    shop.edit(folder / shop.ORDERS, shop.STATUS, shop.WITHOUT_SHIPPED)
    assert process(folder, "check").out.splitlines()[-1].endswith("1 changed, 1 failed (1 error).")


def test_comment_begins_with_the_verdict_and_links_files_on_the_host(
    client_repository: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "1" * 40
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://code.example",
        "GITHUB_REPOSITORY": "acme/shop",
        "GITHUB_SHA": commit,
    }.items():
        monkeypatch.setenv(name, value)
    printed = schemactl(client_repository, "check", "--format", "markdown", code=100).out
    blocks = printed.split("\n\n")
    assert blocks[
        1
    ] == "### ❌ 1 consumer breaks: billing &#40;team payments&#41;. The broker accepts orders v2.".replace(
        "&#40;", "("
    ).replace("&#41;", ")")
    assert blocks[2].splitlines()[0] == "| team | client of | role | built with | after this change |"
    assert blocks[2].splitlines()[-1].endswith("| broken before |")
    page = f"https://code.example/acme/shop/blob/{commit}/topics"
    assert f"]({page}/orders.yaml#L1) | v1 → v2 |" in blocks[3]
    head = client_repository.git("rev-parse", "HEAD").strip()
    assert f"]({page}/orders.avsc#L5), rule [MISSING_ENUM_SYMBOLS](" in printed
    assert "/page/rules/MISSING_ENUM_SYMBOLS.html)" in printed
    assert f"version 1 from [{head[:9]}](https://code.example/acme/shop/commit/{head})" in printed
    assert (
        '```diff\n  {"id": "",\n- "status": "SHIPPED"\n  }\n! AvroTypeException: No match for SHIPPED\n```' in printed
    )
    assert "<summary>⚠️ 1 older problem, unchanged by this change</summary>" in printed


def test_a_page_has_the_verdict_and_the_tables_before_the_causes(client_repository: Scratch) -> None:
    schemactl(client_repository, "check", "--format", "html=check.html", code=100)
    page = (client_repository.path / "check.html").read_text(encoding="utf-8")
    places = [page.index(text) for text in ("1 consumer breaks: billing", ">Changed topics<", ">Clients<", ">Causes<")]
    assert places == sorted(places)
    assert "<mark>&quot;SHIPPED&quot;</mark>" in page


def test_sarif_leads_to_the_page_of_the_rule_and_to_the_older_definition(client_repository: Scratch) -> None:
    schemactl(client_repository, "check", "--format", "sarif=check.sarif", code=100)
    [run] = json.loads((client_repository.path / "check.sarif").read_text(encoding="utf-8"))["runs"]
    for rule in run["tool"]["driver"]["rules"]:
        assert rule["helpUri"].endswith(f"/page/rules/{rule['id']}.html")
    assert run["tool"]["driver"]["informationUri"] in run["tool"]["driver"]["rules"][0]["helpUri"]
    for result in run["results"]:
        [place] = result["relatedLocations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "topics/orders.avsc"
        assert place["message"]["text"].startswith("In the older definition (version")


@pytest.mark.parametrize("is_on_host", [True, False])
def test_places_and_rules_are_links(client_repository: Scratch, *, is_on_host: bool) -> None:
    commit = "2" * 40
    host = {"GITLAB_CI": "1", "CI_PROJECT_URL": "https://code.example/acme/shop", "CI_COMMIT_SHA": commit}
    address = f"{client_repository.path.resolve().as_uri()}/topics/orders.avsc"
    if is_on_host:
        address = f"https://code.example/acme/shop/-/blob/{commit}/topics/orders.avsc#L5"
    variables = {"FORCE_HYPERLINK": "1", **(host if is_on_host else {})}
    printed = process(client_repository, "check", "--color", "always", **variables).out
    links = re.findall(r"\x1b\]8;id=\w+;(.+?)\x1b\\(.*?)\x1b\]8;;\x1b\\", printed)
    texts_by_address = {link: re.sub(r"\x1b\[[0-9;]*m", "", text) for link, text in links}
    assert texts_by_address.pop(address) == "topics/orders.avsc:5:16"
    assert {*texts_by_address.values()} == {"MISSING_ENUM_SYMBOLS", "CLIENT_BREAKS"}
    assert "\x1b]8" not in process(client_repository, "check", "--color", "never", **variables).out
