"""The exceptions with their exit codes, the place of a problem, and suggestions for near misses; exit codes 2 and 100 come from `cli/context`.

Findings are values, problems are exceptions, bugs are tracebacks:

    SchemactlError               exit 1   something the user can repair
    ├── UsageError               exit 64  the command line is wrong
    ├── DeclarationError         exit 1   one or more problems in the user's files, all of a run together
    ├── InvalidSchema            exit 1   a schema definition that does not parse
    ├── HistoryError             exit 1   Git cannot say which schemas were approved
    ├── RegistryError            exit 1   the registry did not answer as it must
    │   ├── NotPermitted          exit 1   the registry knows who asks, and does not allow it
    │   └── SchemaRejected        exit 1   the registry's own "no" to an upload or a connect
    ├── StalePlan                exit 4   the registry is no longer as it was when the plan was made
    └── PartlyApplied            exit 3   some steps were carried out, then one failed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemactl.core.terminal import on_one_line


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A place in a text file: path relative to the repository, line and column from 1, in code points.

    `end_column` is the column after its last character on the line; None if unknown.
    """

    path: str
    line: int = 1
    column: int = 1
    end_column: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{on_one_line(self.path)}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something wrong in the user's files: where, what, and what to write instead.

    `what` is one sentence that names what was found and what was expected; `fix` (may be empty) says what to write.
    """

    source: Source
    what: str
    fix: str = ""

    def __str__(self) -> str:
        fix = f"\n  Fix: {on_one_line(self.fix)}" if self.fix else ""
        return f"{self.source}: {on_one_line(self.what)}{fix}"


class SchemactlError(Exception):
    """A problem the user can repair: one sentence, and the next step in `fix` (may be empty)."""

    exit_code = 1

    def __init__(self, what: str, *, fix: str = "", source: Source | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.source = source

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        return f"{where}{self.what}" + (f"\n  Fix: {self.fix}" if self.fix else "")


class UsageError(SchemactlError):
    """The command line cannot be understood."""

    exit_code = 64


class DeclarationError(SchemactlError):
    """The declared files have problems; `problems` holds all of them, ordered by place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InvalidSchema(SchemactlError):
    """A schema definition does not parse; `pointer` is the JSON pointer of the offending part ("" for the whole)."""

    def __init__(self, what: str, *, pointer: str = "", fix: str = "", source: Source | None = None) -> None:
        super().__init__(what, fix=fix, source=source)
        self.pointer = pointer


class HistoryError(SchemactlError):
    """Git cannot say which schemas were approved: shallow clone, missing ref, not a repository."""


class RegistryError(SchemactlError):
    """The registry could not be reached, or did not answer as it must."""


class MissingCredentials(RegistryError):
    """The credentials that a target names are missing."""


class NotPermitted(RegistryError):
    """The registry knows who asks, and does not allow it."""


class SchemaRejected(RegistryError):
    """The registry answered an upload or a connect with a refusal; `outcome` is `incompatible`, `invalid` or `error`."""

    def __init__(self, outcome: str, what: str, *, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.outcome = outcome


class StalePlan(SchemactlError):
    """The registry has changed since the plan was made."""

    exit_code = 4


class PartlyApplied(SchemactlError):
    """Some steps of a plan were carried out, then one failed."""

    exit_code = 3


def meant(text: str, known: Iterable[str], *, likeness: float = 0.65) -> str | None:
    """Return the one of `known` that was probably meant by `text`, whatever its case; None if none is alike.

    `likeness` is difflib's ratio.
    """
    return next(iter(_alike(text, known, 1, likeness)), None)


def did_you_mean(text: str, known: Iterable[str], *, shown: Mapping[str, str] | None = None, most: int = 1) -> str:
    """Return `; did you mean X?` if some of `known` are close to `text`, otherwise "".

    Args:
        text: what was written.
        known: what could have been written.
        shown: what to print instead of a name of `known`.
        most: how many names to print.
    """
    near = _alike(text, known, most, likeness=0.6)
    return f"; did you mean {' or '.join((shown or {}).get(name, name) for name in near)}?" if near else ""


def _alike(text: str, known: Iterable[str], most: int, likeness: float) -> list[str]:
    # Costs some milliseconds to import, and is needed for mistakes only.
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in known}
    return [folded[name] for name in get_close_matches(text[:100].casefold(), folded, most, likeness)]


def first_of(names: Sequence[object], most: int = 5) -> str:
    """Return the first `most` of some names with commas between them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


CHANGES = 2
NEGATIVE = 100
"""Exit codes: there are changes, where --detailed-exitcode asks; and every "no" of a command that could decide."""
