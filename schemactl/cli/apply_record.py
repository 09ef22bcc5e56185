"""The result file of an apply, which says at any moment what was done: also if the apply is killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from schemactl import output
from schemactl.cli.selection import output_file, relative_path, with_held
from schemactl.errors import SchemactlError
from schemactl.json_values import Json, json_text
from schemactl.plan.file import write_json
from schemactl.report.build_server import ci_run
from schemactl.report.plan_json import result_document, started_document

if TYPE_CHECKING:
    from schemactl.apply import Result
    from schemactl.cli.plan import ReadyPlan
    from schemactl.registry import Registry
    from schemactl.status import LastApply

FOLDER: Final = ".schemactl/results"
"""Where the last result of each target is, in the project's folder."""

_END: Final = b"]\n}\n"
_SYNC_EVERY_S: Final = 1.0


def result_path(folder: Path, target: str, results: str = FOLDER) -> Path:
    """Return where the result of the last apply to a target is: in `results` of the folder of the project file."""
    return folder / results / f"{quote(target, safe='')}.json"


def read_result(path: Path, target: str) -> tuple[LastApply, Json] | None:
    """Return the last apply to `target` as the file at `path` records it, and all of that; None: there is no such file.

    Raise ValueError, which says so, where the file is something else.
    """
    from schemactl.status import LastApply

    try:
        result = json.loads(path.read_bytes())
        return LastApply.of(result, target), result
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not the result of an apply to {target}: {error!r}") from error


class ApplyRecord:
    """The file that `--result` names, with all version numbers at the end; or the target's own, without them.

    While the apply runs, numbers of steps are appended to `done`, its last list, so that it is JSON at any moment. A kill of the
    process loses none of them, one of the machine those of the last second.

    Args:
        ready: what is to be done, and where.
        result: what `--result` names; None: the target's own file is written, where it can be.

    Raises:
        SchemactlError: the named file cannot be written.
    """

    def __init__(self, ready: ReadyPlan, result: str | None) -> None:
        context, plan, place = ready.context, ready.plan, ready.place
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
            output.write(self._path, text + _END, below=context.top, mode=output.OWN, make_folders=not result)
            self._file = output.reopen(self._path, below=context.top)
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
        """Have what was added survive the machine, once a second."""
        if self._file is not None and time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
            os.fsync(self._file)
            self._synced_s = time.monotonic()

    def end(self, result: Result, registry: Registry) -> None:
        """Write how it ended."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            document = result_document(result, self._run, self._numbers(registry))
            write_json(document, self._path, below=self._context.top)


def _numbers(ready: ReadyPlan) -> Callable[[Registry], list[Json] | None]:
    """Return what asks a registry which numbers it gave to Git's versions; None where it cannot be read."""
    from schemactl.model import Catalog
    from schemactl.plan import renamed
    from schemactl.target_numbers.pairs import topic_values

    scope, then, target = ready.plan.scope, ready.then, ready.place.target
    named = renamed(then.catalog, target.names) if then else Catalog()
    git = Catalog(topics={name: named.topics[name] for name in scope.topics & named.topics.keys()})

    def values(registry: Registry) -> list[Json] | None:
        try:
            held = registry.read(scope)
        except SchemactlError:
            return None
        return topic_values(git=with_held(git, held, then, target) if then else git, registry=held)

    return values
