"""Rewrite declared files, after a proof that they still declare the same."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from schemactl.core import atomic_files
from schemactl.core.catalog import Topic
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo
from schemactl.declare import reader
from schemactl.declare.files import ChangedFiles, Files
from schemactl.declare.reader import Declared


def select_harmless_rewrites(
    files: Files,
    project: Project,
    before: Declared,
    contents: Mapping[str, bytes],
    is_allowed: Callable[[SchemaInfo, SchemaInfo], bool],
    *,
    is_allowed_for_client: Callable[[SchemaInfo, SchemaInfo], bool] = operator.eq,
) -> dict[str, bytes]:
    """Return the rewrites in `contents` that do not change any declaration, apart from changes of schemas that `is_allowed` allows.

    Args:
        files: the files before the change.
        project: the project.
        before: the declarations of `files`. A file with problems must not be among `contents`.
        contents: the new contents by path.
        is_allowed: returns whether the first schema of a topic may become the second; nothing else may change.
        is_allowed_for_client: the same for the schema that a client is built with, which is a fact about the client.
    """
    remaining = dict(contents)
    broken_paths = {problem.source.path for problem in before.problems}
    while remaining:
        after = reader.read(ChangedFiles(remaining, files), project)
        new_broken_paths = {problem.source.path for problem in after.problems} - broken_paths
        rejected = new_broken_paths & remaining.keys()
        if new_broken_paths and not rejected:
            return {}
        for name, old_topic in before.catalog.topics.items():
            new_topic = after.catalog.topics.get(name)
            if new_topic is None or not _is_unchanged(old_topic, new_topic, is_allowed, is_allowed_for_client):
                rejected |= {*before.dependencies.get(name, ())} & remaining.keys()
                rejected |= {old_topic.source.path} & remaining.keys() if old_topic.source else set()
        if not rejected:
            return {} if before.catalog.namespaces != after.catalog.namespaces else remaining
        remaining = {path: content for path, content in remaining.items() if path not in rejected}
    return remaining


def _is_unchanged(
    old: Topic,
    new: Topic,
    is_allowed: Callable[[SchemaInfo, SchemaInfo], bool],
    is_allowed_for_client: Callable[[SchemaInfo, SchemaInfo], bool],
) -> bool:
    def are_allowed(old_part: Topic, new_part: Topic) -> bool:
        schemas = [(old_part.schema, new_part.schema, is_allowed)]
        for old_client, new_client in zip(old_part.clients, new_part.clients, strict=True):
            schemas.append((old_client.schema, new_client.schema, is_allowed_for_client))
        return all(
            allows(old_schema, new_schema) if old_schema and new_schema else old_schema is new_schema
            for old_schema, new_schema, allows in schemas
        )

    old_parts, new_parts = old.split(), new.split()
    return len(old_parts) == len(new_parts) and all(
        _without_schemas(old_part) == _without_schemas(new_part) and are_allowed(old_part, new_part)
        for old_part, new_part in zip(old_parts, new_parts, strict=True)
    )


def _without_schemas(topic: Topic) -> Topic:
    return replace(topic, schema=None, clients=tuple(replace(client, schema=None) for client in topic.clients))


def write_files(top: str, contents: Mapping[str, bytes]) -> None:
    """Write each file atomically below the repository's `top`; its permissions stay, as far as the umask allows."""
    below = atomic_files.find_top_folder(top)
    for path, content in contents.items():
        file = Path(top, path)
        atomic_files.write(file, content, below=below, mode=file.stat().st_mode & 0o777)
