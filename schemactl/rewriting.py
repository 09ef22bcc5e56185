"""Rewriting of declared files that keeps what they declare, for `lint --fix` and `fmt`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from schemactl.core import atomic_files
from schemactl.core.catalog import Topic
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo
from schemactl.declare import catalog
from schemactl.declare.catalog import Declared
from schemactl.declare.files import ChangedFiles, Files


def proved(
    files: Files,
    project: Project,
    before: Declared,
    contents: Mapping[str, bytes],
    holds: Callable[[SchemaInfo, SchemaInfo], bool],
) -> dict[str, bytes]:
    """Return those of `contents` that keep everything declared as it is, except for changes of schemas that `holds` allows.

    Args:
        files: the files before the change.
        project: whose files they are.
        before: what they declare; without problems.
        contents: the new contents of some of them.
        holds: whether a topic's schema may change into another; nothing else of a topic may change.
    """
    kept = dict(contents)
    while kept:
        after = catalog.read(ChangedFiles(kept, files), project)
        wrong = {problem.source.path for problem in after.problems} & kept.keys()
        if after.problems and not wrong:
            return {}
        for name, topic in before.catalog.topics.items():
            now = after.catalog.topics.get(name)
            if now is None or not _is_kept(topic, now, holds):
                wrong |= {*before.dependencies.get(name, ())} & kept.keys()
                wrong |= {topic.source.path} & kept.keys() if topic.source else set()
        if not wrong:
            return {} if before.catalog.namespaces != after.catalog.namespaces else kept
        kept = {path: content for path, content in kept.items() if path not in wrong}
    return kept


def _is_kept(topic: Topic, now: Topic, holds: Callable[[SchemaInfo, SchemaInfo], bool]) -> bool:
    one, other = topic.schema, now.schema
    if one is None or other is None:
        return topic == now
    return replace(topic, schema=None) == replace(now, schema=None) and holds(one, other)


def write(top: str, contents: Mapping[str, bytes]) -> None:
    """Write each file whole, with the permissions it has as far as the umask leaves them, below the repository's `top`."""
    below = atomic_files.top_of(top)
    for path, content in contents.items():
        place = Path(top, path)
        atomic_files.write(place, content, below=below, mode=place.stat().st_mode & 0o777)
