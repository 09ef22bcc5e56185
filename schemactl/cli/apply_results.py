"""The result file of an apply: it says what was done at any moment, even after the apply was killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from schemactl.cli.selection import output_file, relative_path
from schemactl.core import atomic_files
from schemactl.core.environment import ci_run
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import Json, json_text
from schemactl.deploy.plan_file import write_json
from schemactl.report.plan import result_document, started_document

if TYPE_CHECKING:
    from schemactl.cli.ready_plan import ReadyPlan
    from schemactl.deploy.apply import Result
    from schemactl.deploy.status import LastApply
    from schemactl.registry.interface import Registry

FOLDER: Final = ".schemactl/results"
"""The folder of the last result of each target, in the project's folder."""

_END: Final = b"]\n}\n"
_SYNC_EVERY_S: Final = 1.0


def result_path(folder: Path, target: str, results: str = FOLDER) -> Path:
    """Return the path of the result of a target's last apply, in `results` below the folder of the project file."""
    return folder / results / f"{quote(target, safe='')}.json"


def read_result(path: Path, target: str) -> tuple[LastApply, Json] | None:
    """Return the last apply to `target` from the file at `path`, and the file's JSON; None: there is no such file.

    Raise ValueError if it is not such a file.
    """
    from schemactl.deploy.status import LastApply

    try:
        result = json.loads(path.read_bytes())
        return LastApply.of(result, target), result
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not the result of an apply to {target}: {error!r}") from error


class ApplyRecord:
    """The result file of one apply: that of `--result`, with all version numbers; or else the target's own, without them.

    While the apply runs, the numbers of steps are appended to `done`, the last list of the file, so that it is always valid
    JSON. Nothing is lost if the process is killed, and at most the last second if the machine fails.

    Args:
        ready: the plan that is carried out.
        result: what `--result` names; None: write the target's own file, if possible.

    Raises:
        SchemactlError: the named file cannot be written.
    """

    def __init__(self, ready: ReadyPlan, result: str | None) -> None:
        context, plan, place = ready.target.context, ready.plan, ready.target.place
        self._context = context
        self._run = ci_run()
        if result:
            self._path = output_file(result, context, name="result.json")
            self._numbers = _numbers(ready)
        else:
            self._path = relative_path(str(result_path(place.folder, place.target.name)), context)
            self._numbers = lambda _: None
        text = json_text(started_document(plan, self._run)).encode().removesuffix(b"]\n}")
        self._at = len(text)
        self._separator = b""
        self._synced_s = time.monotonic()
        self._file: int | None = None
        try:
            atomic_files.write(
                self._path, text + _END, below=context.top, mode=atomic_files.OWN, make_folders=not result
            )
            self._file = atomic_files.reopen(self._path, below=context.top)
        except OSError as error:
            what = f"{self._path} cannot be written: {error.strerror}"
            if result:
                raise SchemactlError(what, fix="name a file in a folder you may write") from error
            context.say(f"warning: what this apply does is not recorded: {what}")

    def add(self, number: int) -> None:
        """Add a step that was carried out."""
        if self._file is not None:
            piece = self._separator + str(number).encode()
            # Only the end is written over, so that there is no moment at which the file says less.
            os.pwrite(self._file, piece + _END, self._at)
            self._at += len(piece)
            self._separator = b", "

    def sync(self) -> None:
        """Flush what was added to the disk, once a second."""
        if self._file is not None and time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
            os.fsync(self._file)
            self._synced_s = time.monotonic()

    def end(self, result: Result, registry: Registry) -> None:
        """Write the final result."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            document = result_document(result, self._run, self._numbers(registry))
            write_json(document, self._path, below=self._context.top)


def _numbers(ready: ReadyPlan) -> Callable[[Registry], list[Json] | None]:
    """Return a function that returns the numbers a registry gave to Git's versions; None if it cannot be read."""
    from schemactl.core.catalog import Catalog
    from schemactl.deploy.planner import renamed
    from schemactl.deploy.version_numbers import topic_values

    scope, then, target = ready.plan.scope, ready.then, ready.target
    named = renamed(then.catalog, target.names) if then else Catalog()
    git = Catalog(topics={name: named.topics[name] for name in scope.topics & named.topics.keys()})

    def values(registry: Registry) -> list[Json] | None:
        try:
            held = registry.read(scope)
        except SchemactlError:
            return None
        known = replace(target, approved=then).with_held(git, held) if then else git
        return topic_values(git=known, registry=held)

    return values
