"""What the cache of the version derivation answers with."""

from __future__ import annotations

from typing import NamedTuple

from schemactl.errors import Problem


class VersionRow(NamedTuple):
    """A version: its number, the step that brought it, its schema type's name, the file that declared it, its fingerprint."""

    number: int
    step: int
    type: str
    path: str
    fingerprint: bytes


class StateRow(NamedTuple):
    """How a topic stands (see the table)."""

    deleted: bool
    number: int | None
    since: int
    path: str
    as_of: int | None = None


class DeclarationRow(NamedTuple):
    """A declaration in a file: a topic of that `schema`, or (None) a namespace.

    `blob` holds the declaration where the file's own cannot be read.
    """

    path: str
    position: int
    name: str
    schema: str | None
    blob: str | None


class NoteRow(NamedTuple):
    """What cannot be read since a step, or could not: of the file or, `is_topic`, of the schema that is called `name`."""

    name: str
    is_topic: bool
    step: int
    topic: str | None
    problem: Problem
