"""`schemactl lsp`, with a real client: diagnostics while typing, quick fixes, hover, definitions and completion."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from command import schemactl
from scratch import ENVIRONMENT, Scratch

if "CI" not in os.environ:
    pytest.importorskip("pygls", reason="pygls, of the extra `lsp`, is not installed")
from lsprotocol import types
from pygls.lsp.client import LanguageClient

pytestmark = pytest.mark.slow

T = TypeVar("T")

LIMIT_S = 60.0
"""The time after which an answer is missing."""


class Editor:
    """A client of one server. Positions are written as `(line, character)`, counted from 0."""

    def __init__(self, folder: Path, runner: asyncio.Runner, client: LanguageClient) -> None:
        self.folder = folder
        self._runner = runner
        self._client = client
        self._versions: dict[str, int] = {}
        self._diagnostics: dict[str, list[types.Diagnostic]] = {}
        self._published = asyncio.Event()

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def on_diagnostics(params: types.PublishDiagnosticsParams) -> None:
            self._diagnostics[params.uri] = list(params.diagnostics)
            self._published.set()

        @client.feature(types.WINDOW_LOG_MESSAGE)  # type: ignore[untyped-decorator]
        def on_log(params: types.LogMessageParams) -> None:
            self.log.append(params.message)

        self.log: list[str] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end."""
        return self._runner.run(asyncio.wait_for(work, LIMIT_S))

    def make_uri(self, path: str) -> str:
        return (self.folder / path).as_uri()

    def open(self, path: str) -> None:
        """Open a file, and wait for its diagnostics if it has any."""
        text = (self.folder / path).read_bytes().decode()
        item = types.TextDocumentItem(self.make_uri(path), "text", 0, text)
        self._versions[path] = 0
        self.run(self._notify("text_document_did_open", types.DidOpenTextDocumentParams(item)))

    def write(self, path: str, text: str) -> None:
        """Replace the text of an open document, without saving it."""
        self._versions[path] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[path], self.make_uri(path))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.run(self._notify("text_document_did_change", types.DidChangeTextDocumentParams(document, [change])))

    async def _notify(self, name: str, params: object) -> None:
        getattr(self._client, name)(params)

    def wait_for_diagnostics(self, path: str, *rules: str) -> list[types.Diagnostic]:
        """Wait until the diagnostics of a file have exactly these codes, and return them."""

        async def wait() -> list[types.Diagnostic]:
            while sorted(str(item.code) for item in self._diagnostics.get(self.make_uri(path), [])) != sorted(rules):
                self._published.clear()
                await self._published.wait()
            return self._diagnostics.get(self.make_uri(path), [])

        try:
            return self.run(wait())
        except TimeoutError:
            raise AssertionError((rules, self._diagnostics, self.log)) from None

    def get_fixes(self, path: str, diagnostic: types.Diagnostic) -> dict[str, types.CodeAction]:
        """Return the quick fixes at a diagnostic, by title."""
        context = types.CodeActionContext([diagnostic])
        params = types.CodeActionParams(types.TextDocumentIdentifier(self.make_uri(path)), diagnostic.range, context)
        actions = self.run(self._client.text_document_code_action_async(params)) or []
        return {action.title: action for action in actions if isinstance(action, types.CodeAction)}

    def get_hover(self, path: str, line: int, character: int) -> str:
        """Return the text of a hover, or ""."""
        params = types.HoverParams(types.TextDocumentIdentifier(self.make_uri(path)), types.Position(line, character))
        hover = self.run(self._client.text_document_hover_async(params))
        return hover.contents.value if hover and isinstance(hover.contents, types.MarkupContent) else ""

    def find_definition(self, path: str, line: int, character: int) -> tuple[str, int, int] | None:
        """Return the path, line and character of a definition, or None."""
        params = types.DefinitionParams(
            types.TextDocumentIdentifier(self.make_uri(path)), types.Position(line, character)
        )
        location = self.run(self._client.text_document_definition_async(params))
        if not isinstance(location, types.Location):
            return None
        start = location.range.start
        target = Path(location.uri.removeprefix("file://")).relative_to(self.folder.resolve())
        return target.as_posix(), start.line, start.character

    def get_completions(self, path: str, line: int, character: int) -> dict[str, types.CompletionItem]:
        """Return the completions, by label."""
        params = types.CompletionParams(
            types.TextDocumentIdentifier(self.make_uri(path)), types.Position(line, character)
        )
        answer = self.run(self._client.text_document_completion_async(params))
        items = answer.items if isinstance(answer, types.CompletionList) else answer or []
        return {item.label: item for item in items}


@contextmanager
def run_editor(folder: Path, **variables: str) -> Iterator[Editor]:
    """Start an editor in a folder, with more variables in its environment, and end it afterwards."""
    with asyncio.Runner() as runner:
        client = LanguageClient("editor", "1")
        editor = Editor(folder, runner, client)

        async def start() -> None:
            arguments = (sys.executable, "-m", "schemactl", "lsp", "--stdio")
            await client.start_io(*arguments, cwd=str(folder), env=ENVIRONMENT | variables)
            parameters = types.InitializeParams(
                capabilities=types.ClientCapabilities(), root_uri=folder.as_uri(), process_id=None
            )
            await client.initialize_async(parameters)
            client.initialized(types.InitializedParams())

        async def stop() -> None:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()  # type: ignore[no-untyped-call]

        editor.run(start())
        try:
            yield editor
        finally:
            editor.run(stop())


def apply(text: str, action: types.CodeAction) -> str:
    """Return the text of the only file that a quick fix edits, after the edit. The text has no characters beyond U+FFFF."""
    assert action.edit is not None
    assert action.edit.changes is not None
    [[edit]] = action.edit.changes.values()
    lines = text.split("\n")
    start, end = (
        sum(len(line) + 1 for line in lines[: place.line]) + place.character
        for place in (edit.range.start, edit.range.end)
    )
    return text[:start] + edit.new_text + text[end:]


PROJECT = "version: 1\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"
YAML = "namespaces/orders.yaml"
AVSC = "namespaces/orders.avsc"
MONEY = "namespaces/money.avsc"
PROTO = "namespaces/click.proto"
TOPIC = """\
topic: shop/sales/orders
description: What customers buy
clients:
  - {name: billing, role: consumer, team: finance, schema: 0}
  - {name: shop, role: producer}
schema:
  type: AVRO
  definition: orders.avsc
  references: [money.avsc]
---
topic: shop/sales/refunds
renamed_from: shop/sales/orders
schema: {type: STRING}
"""
ORDER = """\
{
  "type": "record",
  "name": "Order",
  "namespace": "shop",
  "fields": [
    {"name": "id", "type": "long"},
    {"name": "price", "type": "Money"}
  ]
}
"""
NOTED = ORDER.replace('"long"},\n', '"long"},\n    {"name": "note", "type": "string", "default": ""},\n')
MONEY_TEXT = '{"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}\n'
WEB = "namespaces/web.yaml"
CLICK = """\
syntax = "proto3";
package web;

message Click {
  string url = 1;
  Place place = 2;
}

message Place {
  int32 x = 1;
}
"""


MISSING_DEFAULT = ("READER_FIELD_MISSING_DEFAULT_VALUE", "BROKER_INCOMPATIBLE")
"""The codes of a new field without a default."""


INLINE = "namespaces/inline.yaml"
INLINE_TEXT = """\
topic: shop/inline/a
schema:
  type: AVRO
  definition:
    type: record
    name: A
    fields:
      - {name: first, type: {type: enum, name: Kind, symbols: [X]}}
      - name: second
        type: Kind
---
topic: shop/inline/b
schema:
  type: KEY_VALUE
  encoding: INLINE
  key: {type: STRING}
  value:
    type: AVRO
    definition: |
      {"type": "record", "name": "B", "fields": [
        {"name": "third", "type": "long"}
      ]}
"""


PATHS = (YAML, AVSC, MONEY, WEB, PROTO, INLINE)


@pytest.fixture(scope="module")
def orders_repository(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Approve two versions of a topic."""
    scratch = Scratch(tmp_path_factory.mktemp("editor") / "shop")
    topic = TOPIC.replace("renamed_from: shop/sales/orders\n", "")
    scratch.commit({"schemactl.yaml": PROJECT, YAML: topic, AVSC: ORDER, MONEY: MONEY_TEXT}, "Orders")
    scratch.commit({AVSC: NOTED}, "Add a note")
    scratch.commit(
        {
            WEB: "topic: shop/web/clicks\nschema: {type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click}\n",
            PROTO: CLICK,
        },
        "Clicks",
    )
    scratch.commit({INLINE: INLINE_TEXT}, "Definitions in YAML")
    scratch.flush()
    return scratch


@pytest.fixture(scope="module")
def running_editor(orders_repository: Scratch) -> Iterator[Editor]:
    with run_editor(orders_repository.path) as editor:
        for path in PATHS:
            editor.open(path)
        yield editor


@pytest.fixture(autouse=True)
def _saved_texts(running_editor: Editor, orders_repository: Scratch) -> Iterator[None]:
    yield
    for path in PATHS:
        running_editor.write(path, (orders_repository.path / path).read_text())
    for path in PATHS:
        assert running_editor.wait_for_diagnostics(path) == []


def test_definition_is_checked_while_it_is_typed(running_editor: Editor, orders_repository: Scratch) -> None:
    broken = NOTED.replace('"type": "long"}', '"type": "long"},\n    {"name": "total", "type": "double"}')
    running_editor.write(AVSC, broken)
    diagnostics = running_editor.wait_for_diagnostics(AVSC, *MISSING_DEFAULT)
    [diagnostic] = [diagnostic for diagnostic in diagnostics if diagnostic.code == MISSING_DEFAULT[0]]
    assert (diagnostic.range.start.line, diagnostic.range.start.character) == (6, 4)
    assert "Order.total is new and has no default" in diagnostic.message
    [fix] = running_editor.get_fixes(AVSC, diagnostic).values()
    assert (fix.title, fix.is_preferred) == ('Write "default": 0.0', True)
    running_editor.write(AVSC, apply(broken, fix))
    assert running_editor.wait_for_diagnostics(AVSC) == []
    assert (orders_repository.path / AVSC).read_text() == NOTED


def test_rename_has_two_quick_fixes(running_editor: Editor) -> None:
    renamed = NOTED.replace('"name": "note", "type": "string", "default": ""', '"name": "remark", "type": "string"')
    running_editor.write(AVSC, renamed)
    diagnostics = running_editor.wait_for_diagnostics(AVSC, *MISSING_DEFAULT)
    [diagnostic] = [diagnostic for diagnostic in diagnostics if diagnostic.code == MISSING_DEFAULT[0]]
    fixes = running_editor.get_fixes(AVSC, diagnostic)
    assert {*fixes} == {'Write "aliases": ["note"]', 'Write "default": ""'}
    assert not any(fix.is_preferred for fix in fixes.values())


PROBLEMS = [
    (YAML, "description:", "descripton:", ["NOT_DECIDED"], (1, 0), "Write description"),
    (AVSC, '"default": ""', '"defualt": ""', ["KEY_IGNORED"], (6, 39), 'Write "default"'),
    (AVSC, '"long"}', '"long"', ["NOT_DECIDED"], (6, 4), None),
    (PROTO, "string url = 1;", "string url = ;", ["NOT_DECIDED"], (4, 15), None),
    (PROTO, "string url", "int32 url", ["FIELD_WIRE_COMPATIBLE_TYPE"], (4, 2), None),
]


@pytest.mark.parametrize(("path", "old", "new", "codes", "place", "title"), PROBLEMS)
def test_problem_is_shown_at_its_place(
    running_editor: Editor,
    orders_repository: Scratch,
    path: str,
    old: str,
    new: str,
    codes: list[str],
    place: tuple[int, int],
    title: str | None,
) -> None:
    text = (orders_repository.path / path).read_text()
    running_editor.write(path, text.replace(old, new, 1))
    [diagnostic] = [
        diagnostic for diagnostic in running_editor.wait_for_diagnostics(path, *codes) if diagnostic.code == codes[0]
    ]
    assert (diagnostic.range.start.line, diagnostic.range.start.character) == place
    assert title is None or title in running_editor.get_fixes(path, diagnostic)


def test_position_counts_utf_16(running_editor: Editor) -> None:
    text = TOPIC.replace("renamed_from: shop/sales/orders\n", "").replace("What customers buy", "🛒")
    running_editor.write(
        YAML, text.replace("role: producer", "role: producer, tem: shop").replace("name: shop,", "name: 🛒,")
    )
    [diagnostic] = running_editor.wait_for_diagnostics(YAML, "NOT_DECIDED")
    start, end = diagnostic.range.start, diagnostic.range.end
    assert (start.line, start.character, end.character) == (4, 31, 34)


def test_hover_says_since_when_a_field_exists_and_who_reads_it(running_editor: Editor) -> None:
    line = NOTED.split("\n").index('    {"name": "note", "type": "string", "default": ""},')
    text = running_editor.get_hover(AVSC, line, 14)
    assert text.startswith("**Order.note**")
    assert "* `persistent://shop/sales/orders`: since version 1 (" in text
    assert "Add a note" in text
    assert "read by billing (team finance), built with 0, which does not have it" in text
    assert "since version 0" in running_editor.get_hover(AVSC, line - 1, 14)
    assert "`persistent://shop/sales/orders`: since version 0" in running_editor.get_hover(
        MONEY, 0, MONEY_TEXT.index("cents")
    )
    assert "since version 0" in running_editor.get_hover(PROTO, 4, 10)


@pytest.mark.parametrize(("field", "topic", "name"), [("second", "a", "A.second"), ("third", "b", "B.third")])
def test_hover_in_yaml_is_about_its_document(running_editor: Editor, field: str, topic: str, name: str) -> None:
    lines = INLINE_TEXT.split("\n")
    [(number, character)] = [(number, line.index(field)) for number, line in enumerate(lines) if field in line]
    text = running_editor.get_hover(INLINE, number, character)
    assert text.startswith(f"**{name}**")
    assert [line for line in text.split("\n") if "since version 0" in line and f"shop/inline/{topic}" in line]
    assert text.count("persistent://") == 1


def test_quick_fix_edits_json_in_a_block_of_yaml(running_editor: Editor) -> None:
    broken = INLINE_TEXT.replace('"long"}\n', '"long"},\n        {"name": "new", "type": "string"}\n')
    running_editor.write(INLINE, broken)
    diagnostics = running_editor.wait_for_diagnostics(INLINE, *MISSING_DEFAULT)
    [diagnostic] = [diagnostic for diagnostic in diagnostics if diagnostic.code == MISSING_DEFAULT[0]]
    [fix] = running_editor.get_fixes(INLINE, diagnostic).values()
    assert apply(broken, fix) == broken.replace('"type": "string"}', '"type": "string", "default": ""}')


def test_hover_of_a_topic_lists_its_versions(running_editor: Editor) -> None:
    text = running_editor.get_hover(YAML, 0, 10)
    assert text.index("version 1") < text.index("version 0")
    assert "What customers buy" in text
    assert "consumer billing (team finance), built with 0" in text
    assert "Pulsar's schema type" in running_editor.get_hover(YAML, 6, 4)
    assert running_editor.get_hover(YAML, 9, 1) == ""


@pytest.mark.parametrize(
    ("path", "text", "target"),
    [
        (AVSC, "Money", (MONEY, 0, MONEY_TEXT.index('"Money"'))),
        (YAML, "orders.avsc", (AVSC, 0, 0)),
        (YAML, "money.avsc", (MONEY, 0, 0)),
        (WEB, "click.proto", (PROTO, 0, 0)),
        (PROTO, "Place place", (PROTO, 8, 8)),
        (AVSC, '"long"', None),
        (INLINE, "Kind\n", (INLINE, 7, 47)),
    ],
)
def test_name_leads_to_its_definition(
    running_editor: Editor, orders_repository: Scratch, path: str, text: str, target: tuple[str, int, int] | None
) -> None:
    before = (orders_repository.path / path).read_text().partition(text)[0]
    line, character = before.count("\n"), len(before) - before.rfind("\n") - 1
    assert running_editor.find_definition(path, line, character + 1) == target


def test_topic_leads_to_its_declaration(running_editor: Editor) -> None:
    running_editor.write(YAML, TOPIC)
    assert running_editor.find_definition(YAML, 11, 20) == (YAML, 0, 7)


COMPLETIONS = [
    (YAML, "topic: shop/web/a\nsch", {"schema", "schema_compatibility_strategy"}, {"topic", "tenants"}),
    (YAML, "topic: shop/web/a\nschema:\n  ty", {"type", "definition", "references"}, {"schema"}),
    (YAML, "topic: shop/web/a\nschema:\n  type: A", {"AVRO", "JSON", "STRING", "KEY_VALUE"}, set()),
    (YAML, "topic: shop/web/a\nschema: {type: PROTOBUF_NATIVE, ", {"definition", "message"}, {"type", "encoding"}),
    (YAML, "topic: shop/web/a\nschema: {type: KEY_VALUE, encoding: ", {"INLINE", "SEPARATED"}, set()),
    (YAML, "topic: shop/web/a\nschema_compatibility_strategy: ", {"FULL_TRANSITIVE", "UNDEFINED"}, set()),
    (YAML, "topic: shop/web/a\nrenamed_from: ", {"persistent://shop/sales/orders"}, set()),
    (YAML, "topic: shop/web/a\nclients:\n  - name: a\n    ", {"role", "team", "schema"}, {"name", "topic"}),
    (YAML, "topic: shop/web/a\nclients:\n  - name: a\n    role: ", {"producer", "consumer", "reader"}, set()),
    (YAML, "topic: shop/web/a\nschema:\n  type: AVRO\n  definition: ", {"orders.avsc", "money.avsc"}, set()),
    (YAML, "topic: shop/web/a\nschema:\n  type: AVRO\n  references:\n    - ", {"money.avsc"}, set()),
    (YAML, "namespace: shop/web\n", {"schema_validation_enforced"}, {"schema", "partitions"}),
    (AVSC, '{"type": "record", "name": "A", "', {"fields", "doc", "namespace"}, {"type", "symbols"}),
    (
        AVSC,
        '{"type": "record", "name": "A", "fields": [{"name": "a", ',
        {"type", "default", "aliases"},
        {"name", "fields"},
    ),
    (
        AVSC,
        '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "',
        {"long", "shop.Money", "array"},
        set(),
    ),
    (
        AVSC,
        '{"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "',
        {"string", "shop.Money"},
        set(),
    ),
    (AVSC, '{"type": "array", "items": ', {"string", "shop.Money"}, set()),
    (AVSC, '{"type": "long", "logicalType": "', {"timestamp-millis", "decimal"}, set()),
    (PROTO, 'syntax = "proto3";\nmessage A {}\nmessage B {\n  ', {"string", "A", "optional"}, set()),
]


@pytest.mark.parametrize(("path", "text", "offered", "missing"), COMPLETIONS)
def test_text_that_does_not_parse_is_completed(
    running_editor: Editor, path: str, text: str, offered: set[str], missing: set[str]
) -> None:
    running_editor.write(path, text)
    lines = text.split("\n")
    labels = {*running_editor.get_completions(path, len(lines) - 1, len(lines[-1]))}
    assert offered <= labels
    assert not missing & labels


def test_key_is_inserted_with_its_colon(running_editor: Editor) -> None:
    running_editor.write(AVSC, '{"type": "record", ')
    assert running_editor.get_completions(AVSC, 0, 19)["fields"].insert_text == '"fields": '
    running_editor.write(AVSC, '{"type": "record", "')
    assert running_editor.get_completions(AVSC, 0, 20)["fields"].insert_text == "fields"


def test_folder_without_repository_still_shows_problems(tmp_path: Path) -> None:
    (tmp_path / "namespaces").mkdir()
    (tmp_path / "schemactl.yaml").write_text("version: 1\n")
    (tmp_path / "namespaces/a.yaml").write_text("topic: a/b/c\npartition: 3\n")
    with run_editor(tmp_path) as editor:
        editor.open("namespaces/a.yaml")
        editor.wait_for_diagnostics("namespaces/a.yaml", "NOT_DECIDED")
        assert any("repository" in message for message in editor.log)


def test_each_document_belongs_to_the_nearest_project(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "monorepo")
    files = {"namespaces/orders.yaml": "topic: shop/sales/orders\nschema: {type: STRING}\n", "schemactl.yaml": PROJECT}
    repository.commit({f"{name}/{path}": text for name in ("a", "b") for path, text in files.items()})
    repository.flush()
    with run_editor(repository.path) as editor:
        for name in ("a", "b"):
            editor.open(f"{name}/namespaces/orders.yaml")
            editor.write(f"{name}/namespaces/orders.yaml", "topic: shop/sales/orders\npartitons: 1\n")
            editor.wait_for_diagnostics(f"{name}/namespaces/orders.yaml", "NOT_DECIDED")
        editor.open("a/schemactl.yaml")
        editor.write("a/schemactl.yaml", PROJECT + "rotos: [namespaces]\n")
        [diagnostic] = editor.wait_for_diagnostics("a/schemactl.yaml", "NOT_DECIDED")
        assert "Write roots" in editor.get_fixes("a/schemactl.yaml", diagnostic)


def test_ci_is_ignored(orders_repository: Scratch) -> None:
    with run_editor(orders_repository.path, CI="true") as editor:
        editor.open(AVSC)
        editor.write(AVSC, NOTED.replace('"type": "long"', '"type": "int"'))
        editor.wait_for_diagnostics(AVSC, "TYPE_MISMATCH", "BROKER_INCOMPATIBLE")


def test_missing_extra_is_named_with_the_line_to_type(tmp_path: Path) -> None:
    with patch.dict(sys.modules, {"pygls.lsp.server": None, "schemactl.lsp.server": None}):
        sys.modules.pop("schemactl.lsp.server")
        printed = schemactl(tmp_path, "lsp", code=1)
    assert 'pip install "pulsar-schemactl[lsp]"' in printed.err
