"""What is read from the cache, row by row."""

from __future__ import annotations

from typing import NamedTuple


class Version(NamedTuple):
    """A version: its number, the step that brought it, its schema type's name, the file that declared it, its `key`."""

    number: int
    step: int
    type: str
    path: str
    digest: bytes


class Standing(NamedTuple):
    """How a topic stands (see the table)."""

    deleted: bool
    number: int | None
    since: int
    path: str
    as_of: int | None


class Declared(NamedTuple):
    """A declaration in a file, since a step (see the table); `schema` is a topic's tenant/namespace/topic."""

    path: str
    position: int
    name: str
    schema: str | None
    blob: str | None
    step: int


class Note(NamedTuple):
    """What cannot be read, or could not (see the table); `path` and `schema` are numbers."""

    number: int
    path: int | None
    schema: int | None
    step: int
    topic: str | None
    file: str
    line: int
    column: int
    what: str
    fix: str


class Step(NamedTuple):
    """A commit of the first-parent line."""

    number: int
    commit_id: str
    time_s: int
    subject: str
