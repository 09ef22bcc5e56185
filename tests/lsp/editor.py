"""An editor: pygls's client of language servers, and `schemactl lsp` in another process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from scratch import ENVIRONMENT

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
