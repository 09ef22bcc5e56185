"""What is raised for an argument that does not fit, and for another writer."""

from __future__ import annotations


class WrongArgument(ValueError):
    """An argument does not fit the messages, the folder or the other arguments; says what to give instead."""


class Conflict(RuntimeError):
    """Another writer changed the table so that a commit can no longer be made, and was not; says what to do."""
