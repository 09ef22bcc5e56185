"""What a numbers file says, and what follows from it: frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from schemactl.errors import Source
from schemactl.model import Commit, SchemaInfo, SchemaVersion, TopicName


@dataclass(frozen=True, slots=True)
class Entry:
    """What one number of a target is recorded to stand for.

    Attributes:
        number: the target's, as a message carries it.
        git: Git's version with the same content; None: Git has none, or nobody knows the content.
        foreign: the definition of a version that Git does not have, with the place of its file.
        deleted: the registry no longer shows it. With `git` or `foreign` its messages can be read all the same.
        reason: why that was accepted, in somebody's words.
        accepted: the day (UTC).
        source: its place in the numbers file.
        path: of the file with the foreign definition, relative to the repository's top level.
    """

    number: int
    git: int | None = None
    foreign: SchemaInfo | None = None
    deleted: bool = False
    reason: str = ""
    accepted: date | None = None
    source: Source | None = field(default=None, compare=False)
    path: str | None = None


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """What is recorded of one topic, by number, and its place in the numbers file."""

    entries: Mapping[int, Entry] = field(default_factory=dict)
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TargetNumbers:
    """What a numbers file records.

    Attributes:
        target: the target's name.
        path: of the file, relative to the repository's top level.
        topics: by the names that Git declares, never the target's own.
    """

    target: str
    path: str
    topics: Mapping[TopicName, TopicNumbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetVersion:
    """What messages of one number of a target are read with.

    Attributes:
        number: the target's, as a message carries it.
        git: Git's version that it stands for; None: none.
        info: the definition that wrote the messages; None: they are rejected.
        commit: the one that brought `git`.
        unreadable: why messages are rejected, a clause without full stop; "": they are not.
        deleted: the registry no longer shows the number: nothing new is written with it.
    """

    number: int
    git: SchemaVersion | None
    info: SchemaInfo | None
    commit: Commit | None = None
    unreadable: str = ""
    deleted: bool = False
