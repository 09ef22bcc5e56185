"""What callers ask for and cannot have."""

from __future__ import annotations


class WrongArgument(ValueError):
    """An argument does not fit the messages, the folder or the other arguments; says what to give instead."""


class EngineUnavailable(RuntimeError):
    """The engine cannot decode these messages; the text says why, and what to do."""
