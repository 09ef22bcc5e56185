"""Find where a name is defined: a type, a topic, or a file that a declaration names."""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress

from schemactl.core.errors import DeclarationError, Source
from schemactl.core.names import TopicName
from schemactl.declare.files import PROTO_SUFFIX, YAML_SUFFIXES
from schemactl.declare.source_location import place
from schemactl.formats.avro.schema import PRIMITIVE_TYPES
from schemactl.lsp.cursor import Cursor, find_cursor
from schemactl.lsp.hover import find_part
from schemactl.lsp.workspace import Workspace


def find_definition(workspace: Workspace, path: str, text: str, offset: int) -> Source | None:
    """Return the place of the definition of the name at `offset` of a file with this text, or None if the project does not define it.

    Raises:
        SchemactlError: if the project cannot be read.
    """
    cursor = find_cursor(path, text, offset)
    if cursor is None:
        return None
    if path.endswith(PROTO_SUFFIX):
        line_start = text.rfind("\n", 0, offset) + 1
        return _find_message(workspace, cursor, text[line_start:].partition("\n")[0])
    if cursor.avro is not None:
        return _find_type(workspace, cursor)
    if path.endswith(YAML_SUFFIXES) and cursor.value and not cursor.is_key:
        with suppress(ValueError):
            topic = workspace.declared.catalog.topics.get(TopicName.parse(cursor.value))
            if topic and topic.source:
                return topic.source
        files, _ = workspace.open_files()
        named_path = posixpath.normpath(posixpath.join(posixpath.dirname(path), cursor.value))
        if files.kind(named_path) == "file":
            return Source(named_path)
    return None


def _find_type(workspace: Workspace, cursor: Cursor) -> Source | None:
    """Return the place of the name of an Avro type: in the same definition, or in another file of the project."""
    with suppress(DeclarationError):
        file, part = workspace.read_definition(cursor), find_part(workspace, cursor)
        if file is None or not cursor.value or cursor.value in PRIMITIVE_TYPES or cursor.is_key:
            return None
        names = (part.full_name, cursor.value) if part and part.kind == "reference" else (cursor.value,)
        types = {type_.full_name: file.locate((*type_.parts, "name")) for type_ in file.types}
        others = workspace.list_types()
        return next((place for name in names for place in (types.get(name), others.get(name)) if place), None)
    return None


def _find_message(workspace: Workspace, cursor: Cursor, line: str) -> Source | None:
    """Return the place of a message or enum, or of an imported file, by the end of its name."""
    files, _ = workspace.open_files()
    paths = [
        cursor.path,
        *sorted(path for path in files.paths() if path.endswith(PROTO_SUFFIX) and path != cursor.path),
    ]
    imported = re.match(r"""\s*import\s+(?:public\s+|weak\s+)?["']([^"']+)["']""", line)
    if imported:
        return next((Source(path) for path in paths if f"/{path}".endswith(f"/{imported[1]}")), None)
    pattern = re.compile(rf"\b(?:message|enum)\s+({re.escape(cursor.value.rpartition('.')[2])})\b")
    for path in paths:
        text = workspace.read_text(path)
        match = pattern.search(text) if text else None
        if text and match:
            return place(path, text, match.start(1))
    return None
