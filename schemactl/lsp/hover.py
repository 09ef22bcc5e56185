"""Describe the part at the cursor: the versions of a topic, the first version with a field and its readers, or a key of a declaration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from schemactl.checks.lint import DefinitionPart, LintedDefinition
from schemactl.core.errors import DeclarationError, InvalidSchema, SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count
from schemactl.declare.files import YAML_SUFFIXES
from schemactl.formats.part_changes import outline
from schemactl.history.approved_history import read_history
from schemactl.history.git import Repository
from schemactl.lsp.cursor import Cursor, find_cursor
from schemactl.lsp.declaration_keys import describe_key
from schemactl.lsp.workspace import Workspace

_MAX_TOPICS: Final = 5
"""The maximum number of topics that are described for a shared type."""

_MAX_VERSIONS: Final = 10
"""The maximum number of versions of a topic that are listed."""


def describe(workspace: Workspace, path: str, text: str, offset: int) -> str:
    """Return Markdown about the part at `offset` of a file with this text, or "".

    Raises:
        SchemactlError: if the files or the approved history cannot be read.
    """
    cursor = find_cursor(path, text, offset)
    if cursor is None:
        return ""
    if cursor.avro is not None:
        return _describe_part(workspace, cursor)
    if cursor.path.endswith(YAML_SUFFIXES):
        if cursor.parts == ("topic",) or (cursor.parts[-1:] in (("use",), ("renamed_from",)) and not cursor.is_key):
            with suppress(ValueError):
                return _describe_topic(workspace, TopicName.parse(cursor.value))
        return describe_key(workspace, cursor) if cursor.parts else ""
    if cursor.message and cursor.is_key:
        # A field of protobuf is its number.
        uses = _describe_uses(workspace, cursor, [f"{cursor.message} {cursor.number}"])
        return "\n".join([f"**{cursor.message}.{cursor.value}**", "", *uses])
    return ""


# Parts of definitions


def _describe_part(workspace: Workspace, cursor: Cursor) -> str:
    with suppress(DeclarationError):
        part = find_part(workspace, cursor)
        if part is None:
            return ""
        # The names that the outline of a definition may have for the part.
        if part.kind == "field":
            record, name = part.inside[-1], str(part.keys.get("name"))
            keys = [f"{record}.{name}", f"{record.rpartition('.')[2]}.{name}"]
            title = f"**{part.field}**"
        else:
            keys = [part.full_name, part.full_name.rpartition(".")[2]]
            title = f"**{part.full_name or part.kind}**"
        doc = part.keys.get("doc")
        lines = [title, *(["", on_one_line(doc)] if isinstance(doc, str) else []), ""]
        return "\n".join([*lines, *_describe_uses(workspace, cursor, keys)])
    return ""


def find_part(workspace: Workspace, cursor: Cursor) -> DefinitionPart | None:
    """Return the innermost field or named type of the definition around the cursor, or the type that it refers to."""
    file = workspace.read_definition(cursor)
    if file is None or cursor.avro is None:
        return None
    _, project = workspace.open_files()
    tokens = cursor.avro
    around = [
        part
        for part in LintedDefinition.of(file, project).parts
        if part.kind in ("field", "record", "enum", "fixed", "reference") and tokens[: len(part.parts)] == part.parts
    ]
    return max(around, key=lambda part: len(part.parts), default=None)


def _describe_uses(workspace: Workspace, cursor: Cursor, keys: Sequence[str]) -> Iterator[str]:
    """Yield lines about each topic that uses the definition: the first version with the part, and its readers."""
    names = workspace.find_topics(cursor)
    versions_by_topic = _read_versions(workspace, names[:_MAX_TOPICS])
    for name, versions in versions_by_topic.items():
        topic = workspace.declared.catalog.topics[name]
        # Search the version since which all versions have the part.
        since = None
        for version in reversed(versions):
            if version.info is None or not _has_part(version.info, keys):
                break
            since = version
        latest = f"; the latest version is {versions[-1].number}" if versions else ""
        yield f"* `{name}`: {f'since {_describe_version(since)}' if since else 'new in this change'}{latest}"
        for client in topic.clients:
            if client.reads:
                has_part = all(_has_part(build.info, keys) for build in client.builds(versions))
                suffix = "" if has_part else ", which does not have it"
                yield f"  * read by {on_one_line(client.display_name)}, built with {client.built}{suffix}"
    if len(names) > _MAX_TOPICS:
        yield f"* and {format_count(len(names) - _MAX_TOPICS, 'more topic')}"


def _has_part(schema: SchemaInfo, keys: Sequence[str]) -> bool:
    try:
        names = outline(schema.load())
    except InvalidSchema:
        return False
    # The parts of a key and of a value have its name in front.
    return any(name.rpartition(": ")[2] in keys for name in names)


# Declarations


def _describe_topic(workspace: Workspace, name: TopicName) -> str:
    topic = workspace.declared.catalog.topics.get(name)
    versions = _read_versions(workspace, [name])[name]
    lines = [f"**{name}**", ""]
    if topic and topic.metadata.description:
        lines += [on_one_line(topic.metadata.description), ""]
    lines += [f"* {_describe_version(version)}" for version in reversed(versions[-_MAX_VERSIONS:])]
    if len(versions) > _MAX_VERSIONS:
        lines.append(f"* {format_count(len(versions) - _MAX_VERSIONS, 'older version')}")
    if not versions:
        lines.append("* no version is approved yet")
    if topic and topic.clients:
        lines.append("")
        lines += [
            f"* {client.role} {on_one_line(client.display_name)}, built with {client.built}" for client in topic.clients
        ]
    return "\n".join(lines)


def _describe_version(version: SchemaVersion) -> str:
    if version.commit is None:
        return f"version {version.number}"
    day = datetime.fromtimestamp(version.commit.time_s, UTC).date()
    return f"version {version.number} (`{version.commit.short}` {on_one_line(version.commit.subject)}, {day})"


def _read_versions(workspace: Workspace, names: Sequence[TopicName]) -> dict[TopicName, tuple[SchemaVersion, ...]]:
    """Return the approved versions of each topic, or () without an approved history."""
    _, project = workspace.open_files()
    try:
        with Repository.open(workspace.directory) as repository:
            catalog = read_history(repository, project).catalog
            topics = {name: catalog.topics.get(name) for name in names}
            return {
                name: tuple(version.load() for version in get_live_versions(topic.versions)) if topic else ()
                for name, topic in topics.items()
            }
    except SchemactlError:
        return dict.fromkeys(names, ())
