"""Define the exceptions and their exit codes, source locations, and suggestions for misspelled names.

Findings are values, problems are exceptions, bugs are tracebacks:

    SchemactlError                  a problem that the user can repair
    ├── UsageError                  the command line is not valid
    ├── DeclarationError            the problems in the user's files, all of a run together
    ├── InvalidSchema               a schema definition that does not parse
    │   └── DependsOnProtoc         a definition that another release of protoc may accept
    ├── MissingProject              there is no project file
    ├── HistoryError                Git does not show which schemas were approved
    ├── RegistryError               the registry did not respond, or not as expected
    │   ├── UnusableCredentials     the credentials of a target are rejected, or cannot be fetched
    │   │   └── MissingCredentials  they are missing
    │   ├── NotPermitted            the role does not have the permission
    │   └── SchemaRejected          the registry rejected an upload or a connection
    ├── StalePlan                   the registry has changed since the plan was made
    └── PartlyApplied               a step failed after others were applied
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Self

from schemactl.core.terminal import on_one_line


class ExitCode(IntEnum):
    """The exit codes, the worst first, each with its `meaning`: of several results of a command, the worst counts."""

    meaning: str

    WRONG_USAGE = 64, "wrong usage"
    ERROR = 1, "an error: the message says why"
    PARTLY_APPLIED = 3, "partly applied"
    STALE_PLAN = 4, "stale plan"
    NEGATIVE = 100, "findings, and every other negative result"
    CHANGES = 2, "there are changes, only with --detailed-exitcode"
    SUCCESS = 0, "fine: nothing to do, or done"

    def __new__(cls, code: int, meaning: str) -> Self:
        """Make the member of a row above."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A location in a text file.

    Attributes:
        path: relative to the top level of the repository.
        line: counted from 1.
        column: counted from 1, in code points.
        end_column: the column after the last character on the line, or None if unknown.
    """

    path: str
    line: int = 1
    column: int = 1
    end_column: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{on_one_line(self.path)}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem in the user's files.

    Attributes:
        message: one sentence with the actual and the expected text.
        fix: the text to write instead, or "".
        missing: the path of a file that does not exist, from the repository's top, or "".
    """

    source: Source
    message: str
    fix: str = ""
    missing: str = ""

    def __str__(self) -> str:
        fix = f"\n  Fix: {on_one_line(self.fix)}" if self.fix else ""
        return f"{self.source}: {on_one_line(self.message)}{fix}"


class SchemactlError(Exception):
    """A problem that the user can repair: one sentence, and the next step in `fix`, or ""."""

    exit_code: int = ExitCode.ERROR

    def __init__(self, message: str, *, fix: str = "", source: Source | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.source = source

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        return f"{where}{self.message}" + (f"\n  Fix: {self.fix}" if self.fix else "")


class UsageError(SchemactlError):
    """The command line is not valid."""

    exit_code = ExitCode.WRONG_USAGE


class DeclarationError(SchemactlError):
    """The declared files have `problems`, ordered by location."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InvalidSchema(SchemactlError):
    """A schema definition does not parse; `pointer` is the JSON pointer of the invalid part, "" for the root."""

    def __init__(self, message: str, *, pointer: str = "", fix: str = "", source: Source | None = None) -> None:
        super().__init__(message, fix=fix, source=source)
        self.pointer = pointer


class DependsOnProtoc(InvalidSchema):
    """The installed protoc rejects a definition, or did not respond, and another installation may accept the definition."""


class HistoryError(SchemactlError):
    """Git does not show which schemas were approved: a shallow clone, a missing ref, no repository."""


class RegistryError(SchemactlError):
    """The registry did not respond, or not as expected."""


class MissingProject(SchemactlError):
    """There is no project file in a folder or above it; `is_restorable` if the fix is the command that restores it from Git."""

    is_restorable = False


class UnusableCredentials(RegistryError):
    """The credentials of a target are rejected or cannot be fetched, so no request of this target can succeed."""


class MissingCredentials(UnusableCredentials):
    """The credentials that a target names are missing."""


class NotPermitted(RegistryError):
    """The role of the credentials does not have the permission."""


class SchemaRejected(RegistryError):
    """The registry rejected an upload or a connection; `outcome` is `incompatible`, `invalid` or `error`."""

    def __init__(self, outcome: str, message: str, *, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.outcome = outcome


class StalePlan(SchemactlError):
    """The registry has changed since the plan was made."""

    exit_code = ExitCode.STALE_PLAN


class PartlyApplied(SchemactlError):
    """A step of a plan failed after others were applied."""

    exit_code = ExitCode.PARTLY_APPLIED


def find_close_match(text: str, known: Iterable[str], *, likeness: float = 0.65) -> str | None:
    """Return the name in `known` that is most similar to `text`, ignoring case, or None.

    `likeness` is the smallest similarity, as difflib's ratio.
    """
    return next(iter(_find_similar(text, known, 1, likeness)), None)


def did_you_mean(text: str, known: Iterable[str], *, shown: Mapping[str, str] | None = None, most: int = 1) -> str:
    """Return `; did you mean X?` if names in `known` are similar to `text`, otherwise "".

    Args:
        text: the misspelled name.
        known: the valid names.
        shown: the texts to print instead of names in `known`.
        most: the most names to print.
    """
    matches = _find_similar(text, known, most, likeness=0.6)
    return f"; {ask_for_name(*((shown or {}).get(name, name) for name in matches))}" if matches else ""


def ask_for_name(*names: str) -> str:
    """Return the question whether the user meant one of these names."""
    return f"did you mean {' or '.join(names)}?"


def _find_similar(text: str, known: Iterable[str], most: int, likeness: float) -> list[str]:
    # The import takes some milliseconds, and is needed only for mistakes.
    from difflib import get_close_matches

    names_by_folded = {name.casefold(): name for name in known}
    return [names_by_folded[name] for name in get_close_matches(text[:100].casefold(), names_by_folded, most, likeness)]


def join_first(names: Sequence[object], most: int = 5) -> str:
    """Join the first `most` names with commas, and add the number of the rest."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
