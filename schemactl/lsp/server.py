"""Serve the Language Server Protocol on standard input and output, on pygls.

One thread does all work on projects, because a repository and its caches can be used by one thread only. A document is checked a
moment after the last keystroke. The result is not published if the document has changed again by then.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Final, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from schemactl.core.edits import TextEdit
from schemactl.core.environment import get_version
from schemactl.core.errors import SchemactlError, Source
from schemactl.declare.project import PROJECT_FILE
from schemactl.lsp.completion import Completion, complete
from schemactl.lsp.definition import find_definition
from schemactl.lsp.hover import describe
from schemactl.lsp.workspace import Diagnostic, QuickFix, Workspace

T = TypeVar("T")

_DELAY_S: Final = 0.2
"""The time without a keystroke after which a document is checked."""

_REREAD_INTERVAL_S: Final = 10.0
"""The time after which files are read again, if the editor does not tell which files change on disk."""

_SEVERITIES: Final = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}

_COMPLETION_KINDS: Final = {
    "key": types.CompletionItemKind.Property,
    "type": types.CompletionItemKind.Class,
    "topic": types.CompletionItemKind.Reference,
    "file": types.CompletionItemKind.File,
    "value": types.CompletionItemKind.EnumMember,
}

_WATCHED: Final = ("**/*.yaml", "**/*.yml", "**/*.avsc", "**/*.json", "**/*.proto")


@dataclass(slots=True, eq=False)
class _Project:
    """A project that has an open document.

    Attributes:
        workspace: its files.
        diagnostics: the published diagnostics, by path.
        edits: the number of changes so far, by which an outdated check is recognized.
        failure: the last message about the approved history.
        last_read_s: the time at which the files on disk were read last, by the monotonic clock.
    """

    workspace: Workspace
    diagnostics: dict[str, list[Diagnostic]] = field(default_factory=dict)
    edits: int = 0
    failure: str = ""
    last_read_s: float = field(default_factory=time.monotonic)


def serve(directory: str, config: str | None) -> None:
    """Serve an editor until it disconnects.

    Args:
        directory: the folder of the project, unless the editor names one.
        config: the path of the project file, or None for the nearest one.
    """
    server = LanguageServer("schemactl", get_version(), text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
    projects: dict[str, _Project] = {}
    # The projects take turns in one thread.
    executor = ThreadPoolExecutor(1, "schemactl")

    @server.feature(types.INITIALIZED)
    async def on_initialized(_params: types.InitializedParams) -> None:
        if _is_watching(server):
            # Ask the editor to tell about changed files.
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            registration = types.Registration("schemactl-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            await server.client_register_capability_async(types.RegistrationParams([registration]))
        folders = [to_fs_path(uri) for uri in server.workspace.folders] or [server.workspace.root_path or directory]
        for folder in filter(None, folders):
            if config or _find_project_folder(folder) is not None:
                await check(open_project(folder), at_once=True)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def on_open(params: types.DidOpenTextDocumentParams) -> None:
        if project := update_buffer(params.text_document.uri):
            await check(project, at_once=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def on_change(params: types.DidChangeTextDocumentParams) -> None:
        if project := update_buffer(params.text_document.uri):
            await check(project)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def on_save(_params: types.DidSaveTextDocumentParams) -> None:
        await reread_files()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def on_close(params: types.DidCloseTextDocumentParams) -> None:
        if place := find_place(params.text_document.uri):
            project, path = place
            buffers = project.workspace.buffers
            project.workspace.buffers = {other: data for other, data in buffers.items() if other != path}
        await reread_files()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def on_watched_files(_params: types.DidChangeWatchedFilesParams) -> None:
        await reread_files()

    async def reread_files() -> None:
        """Read the files on disk again, and check every project."""
        for project in projects.values():
            project.workspace.reread_files()
            project.last_read_s = time.monotonic()
        await asyncio.gather(*(check(project) for project in projects.values()))

    async def run(work: Callable[[], T]) -> T:
        """Run `work` in the thread of the projects."""
        return await asyncio.get_running_loop().run_in_executor(executor, work)

    def open_project(folder: str) -> _Project:
        """Return the project that a folder belongs to."""
        project_folder = (None if config else _find_project_folder(folder)) or directory
        if project_folder not in projects:
            projects[project_folder] = _Project(Workspace(project_folder, config))
        return projects[project_folder]

    def find_place(uri: str) -> tuple[_Project, str] | None:
        """Return the project of a document, and its path from the repository's top; None outside of a repository."""
        file = to_fs_path(uri) if uri.startswith("file:") else None
        if file is None:
            return None
        project = open_project(os.path.dirname(file))  # noqa: PTH120  as `relpath` below
        path = os.path.relpath(os.path.realpath(file), project.workspace.top).replace(os.sep, "/")
        return None if path.startswith("../") else (project, path)

    def update_buffer(uri: str) -> _Project | None:
        """Take over the text of a document, and return its project."""
        place = find_place(uri)
        if place is None:
            return None
        project, path = place
        # Each check gets another mapping, because the checks share the files that they have read.
        data = read_buffer(uri).encode("utf-8", "replace")
        project.workspace.buffers = {**project.workspace.buffers, path: data}
        return project

    def read_buffer(uri: str) -> str:
        """Return the text of an open document."""
        return server.workspace.get_text_document(uri).source

    async def check(project: _Project, *, at_once: bool = False) -> None:
        """Check all documents of a project, unless another change comes first, and publish what has changed."""
        workspace = project.workspace
        project.edits += 1
        edits = project.edits
        if not at_once:
            await asyncio.sleep(_DELAY_S)
        if edits != project.edits:
            return
        if not _is_watching(server) and time.monotonic() - project.last_read_s > _REREAD_INTERVAL_S:
            workspace.reread_files()
            project.last_read_s = time.monotonic()
        try:
            diagnostics = await run(workspace.diagnose)
        except SchemactlError as error:
            show_failure(project, str(error))
            return
        if edits != project.edits:
            return
        show_failure(project, workspace.failure)
        for path in project.diagnostics.keys() | diagnostics.keys():
            if diagnostics.get(path) != project.diagnostics.get(path):
                publish(workspace, path, diagnostics.get(path, []))
        project.diagnostics = diagnostics

    def show_failure(project: _Project, message: str) -> None:
        """Tell the editor once why the files are not compared with the approved history."""
        if message and message != project.failure:
            server.window_log_message(types.LogMessageParams(types.MessageType.Warning, message))
        project.failure = message

    def publish(workspace: Workspace, path: str, diagnostics: list[Diagnostic]) -> None:
        text = workspace.read_text(path) or ""
        server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                make_uri(workspace, path), [to_diagnostic(text, diagnostic) for diagnostic in diagnostics]
            )
        )

    def to_diagnostic(text: str, diagnostic: Diagnostic) -> types.Diagnostic:
        return types.Diagnostic(
            range=to_range(text, diagnostic.source),
            message=diagnostic.message,
            severity=_SEVERITIES[diagnostic.severity],
            code=diagnostic.code,
            code_description=types.CodeDescription(diagnostic.link) if "://" in diagnostic.link else None,
            source="schemactl",
        )

    def make_uri(workspace: Workspace, path: str) -> str:
        return from_fs_path(str(Path(workspace.top, path))) or ""

    def to_range(text: str, source: Source) -> types.Range:
        lines = text.split("\n")
        line = lines[source.line - 1].removesuffix("\r") if source.line <= len(lines) else ""
        end = source.end_column or max(source.column, len(line) + 1)
        start_units, end_units = (count_units(line[: column - 1]) for column in (source.column, end))
        return types.Range(types.Position(source.line - 1, start_units), types.Position(source.line - 1, end_units))

    def to_position(text: str, offset: int) -> types.Position:
        start = text.rfind("\n", 0, offset) + 1
        return types.Position(text.count("\n", 0, offset), count_units(text[start:offset]))

    def to_offset(text: str, position: types.Position) -> int:
        lines = text.split("\n")
        if position.line >= len(lines):
            return len(text)
        start = sum(len(line) + 1 for line in lines[: position.line])
        line = lines[position.line]
        if line.isascii():
            return start + min(position.character, len(line))
        ends = takewhile(lambda end: end <= position.character, accumulate(map(count_units, line)))
        return start + sum(1 for _ in ends)

    def count_units(text: str) -> int:
        """Count the units of the position encoding that client and server agreed on."""
        if text.isascii():
            # pygls counts a line of a megabyte in Python.
            return len(text)
        units: int = server.workspace.position_codec.client_num_units(text)
        return units

    def to_text_edit(text_edit: TextEdit) -> types.TextEdit:
        start, end = (to_position(text_edit.content, offset) for offset in (text_edit.start, text_edit.end))
        return types.TextEdit(types.Range(start, end), text_edit.text)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    async def on_code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        place = find_place(params.text_document.uri)
        if place is None:
            return []
        project, path = place
        text = read_buffer(params.text_document.uri)
        actions = []
        for diagnostic in project.diagnostics.get(path, []):
            lsp_diagnostic = to_diagnostic(text, diagnostic)
            is_inside = (
                lsp_diagnostic.range.start <= params.range.end and params.range.start <= lsp_diagnostic.range.end
            )
            if is_inside:
                actions += [to_action(project.workspace, lsp_diagnostic, fix) for fix in diagnostic.fixes]
        return actions

    def to_action(workspace: Workspace, diagnostic: types.Diagnostic, fix: QuickFix) -> types.CodeAction:
        uri = make_uri(workspace, fix.edit.path)
        return types.CodeAction(
            title=fix.title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            is_preferred=fix.is_preferred,
            edit=types.WorkspaceEdit(changes={uri: [to_text_edit(fix.edit)]}),
        )

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: types.HoverParams) -> types.Hover | None:
        markdown = await ask(params, describe, "")
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, markdown)) if markdown else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def on_definition(params: types.DefinitionParams) -> types.Location | None:
        place = find_place(params.text_document.uri)
        if place is None:
            return None
        project, path = place
        # The document may change before the answer comes.
        document = read_buffer(params.text_document.uri)
        source = await ask(params, find_definition, None)
        if source is None:
            return None
        text = document if source.path == path else project.workspace.read_text(source.path)
        return types.Location(make_uri(project.workspace, source.path), to_range(text or "", source))

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=['"', ":", " ", "/", "-"])
    )
    async def on_completion(params: types.CompletionParams) -> types.CompletionList:
        items = [
            types.CompletionItem(
                label=completion.label,
                kind=_COMPLETION_KINDS[completion.kind],
                detail=completion.detail or None,
                insert_text=completion.insert or None,
            )
            for completion in await ask(params, complete, list[Completion]())
        ]
        return types.CompletionList(is_incomplete=False, items=items)

    async def ask(
        params: types.HoverParams | types.DefinitionParams | types.CompletionParams,
        answer: Callable[[Workspace, str, str, int], T],
        otherwise: T,
    ) -> T:
        """Return the answer about the text at a position, or `otherwise` outside of a repository or if files cannot be read."""
        place = find_place(params.text_document.uri)
        if place is None:
            return otherwise
        project, path = place
        text = read_buffer(params.text_document.uri)
        try:
            return await run(partial(answer, project.workspace, path, text, to_offset(text, params.position)))
        except SchemactlError as error:
            show_failure(project, str(error))
            return otherwise

    server.start_io()


def _find_project_folder(folder: str) -> str | None:
    """Return the nearest folder with a project file, from `folder` upwards, or None."""
    path = Path(folder)
    return next((str(parent) for parent in (path, *path.parents) if (parent / PROJECT_FILE).is_file()), None)


def _is_watching(server: LanguageServer) -> bool:
    """Return whether the editor tells about files that change on disk."""
    capabilities = server.client_capabilities.workspace
    watched = capabilities.did_change_watched_files if capabilities else None
    return bool(watched and watched.dynamic_registration)
