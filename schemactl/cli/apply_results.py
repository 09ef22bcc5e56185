"""Plans that are ready to be applied, and the result files of applies."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from schemactl.cli.topic_selection import resolve_output_file, resolve_relative_path
from schemactl.core import atomic_files
from schemactl.core.catalog import Catalog
from schemactl.core.environment import get_ci_run
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import Json

if TYPE_CHECKING:
    from schemactl.cli.context import Context
    from schemactl.cli.target_selection import OpenTarget
    from schemactl.deploy.apply import ApplyResult
    from schemactl.deploy.plan import Plan
    from schemactl.deploy.status import LastApply
    from schemactl.deploy.version_lists import ListedTopic
    from schemactl.registry.interface import Registry


@dataclass(frozen=True, slots=True)
class ReadyPlan:
    """A plan that can be carried out.

    Attributes:
        plan: the plan.
        target: its target, with the approved history that the plan was made from.
        is_current: whether the registry was just read for the plan, so that it need not be compared again.
    """

    plan: Plan
    target: OpenTarget
    is_current: bool = False


FOLDER: Final = ".schemactl/results"
"""The folder of the last result of each target, in the project's folder."""

_END: Final = b"]\n}\n"

_SYNC_EVERY_S: Final = 1.0


def result_path(folder: Path, target: str, results: str = FOLDER) -> Path:
    """Return the path of the result of a target's last apply, in `results` below the folder of the project file."""
    return folder / results / f"{quote(target, safe='')}.json"


def read_result(path: Path, target: str) -> tuple[LastApply, Json] | None:
    """Return the last apply to `target` from the file at `path` with its JSON, or None if the file does not exist.

    Raises:
        ValueError: if the file is not the result of an apply to `target`.
        ResultOfOtherTarget: if it is the result of an apply to another target.
    """
    from schemactl.deploy.status import LastApply, ResultOfOtherTarget

    try:
        result = json.loads(path.read_bytes())
        return LastApply.of(result, target), result
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        kind = (
            ResultOfOtherTarget
            if isinstance(error, ResultOfOtherTarget) and isinstance(result["target"], str)
            else ValueError
        )
        raise kind(f"{path} is not the result of an apply to {target}: {error!r}") from error


@dataclass(frozen=True, slots=True)
class NamedResults:
    """The results that `--results` names, for the setting `after`.

    Attributes:
        files: the result files, each of one target.
        folders: the folders with a file `TARGET.json` for each target.
    """

    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()

    @classmethod
    def from_paths(cls, texts: Sequence[str], context: Context) -> NamedResults:
        """Return the files and folders at the paths `texts`.

        Raises:
            SchemactlError: if a path does not exist, or Git tracks it, so that anyone who changes the repository could write it.
        """
        paths = [resolve_relative_path(text, context) for text in texts]
        for text, path in zip(texts, paths, strict=True):
            if not path.exists():
                raise SchemactlError(f"--results {text}: no such file or folder")
        folders = tuple(path for path in paths if path.is_dir())
        files = tuple(path for path in paths if not path.is_dir())
        for path in (*files, *(file for folder in folders for file in sorted(folder.glob("*.json")))):
            if _is_tracked(path, context):
                raise SchemactlError(
                    f"--results: Git tracks {path}, so it is not evidence of an apply",
                    fix="name the file that `schemactl apply --result FILE` wrote, outside of the repository or ignored by Git",
                )
        return cls(files, folders)

    def find(self, target: str) -> tuple[LastApply, Json]:
        """Return the newest result of a target.

        Raises:
            ValueError: if no file is a result of this target.
        """
        results: list[tuple[LastApply, Json]] = []
        errors: list[str] = []
        for path in (*self.files, *(result_path(folder, target, "") for folder in self.folders)):
            try:
                result = read_result(path, target)
            except ValueError as error:
                errors.append(str(error))
            else:
                if result is None:
                    errors.append(f"there is no {path}")
                else:
                    results.append(result)
        if not results:
            raise ValueError("; ".join(errors) or "--results names no result of its last apply")
        return max(results, key=lambda result: result[0].time_s)


def _is_tracked(path: Path, context: Context) -> bool:
    """Return whether Git tracks the file at `path`, the file that a link leads to, or the submodule that contains it."""
    repository = context.repository
    if repository.top is None:
        return False
    top = os.path.realpath(repository.top)
    listed = repository.run("-C", top, "ls-files", "-z")
    if head := repository.commit("HEAD"):
        listed += repository.run("-C", top, "ls-tree", "-r", "-z", "--name-only", "--full-tree", head.id)
    # A file system may ignore case.
    tracked = {os.fsdecode(name).casefold() for name in listed.split(b"\0") if name}
    for place in (Path(os.path.realpath(path.parent), path.name), Path(os.path.realpath(path))):
        if place.is_relative_to(top):
            inside = place.relative_to(top)
            if not tracked.isdisjoint(str(part).casefold() for part in (inside, *inside.parents)):
                return True
    return False


class ApplyRecord:
    """The result file of one apply: the file of `--result` with all version numbers, or the target's own file without them.

    While the apply runs, the numbers of steps are appended to `done`, the last list of the file, so that it is always valid
    JSON. Nothing is lost if the process is killed, and at most the last second if the machine fails.

    Args:
        ready: the plan that is carried out.
        result: the path of `--result`, or None for the target's own file, which is written if possible.

    Raises:
        SchemactlError: if the file of `--result` cannot be written.
    """

    def __init__(self, ready: ReadyPlan, result: str | None) -> None:
        from schemactl.deploy.plan_json import encode_lines
        from schemactl.deploy.target_catalog import rename_catalog
        from schemactl.report.apply_result import make_started_document

        context, plan, place = ready.target.context, ready.plan, ready.target.place
        self._context = context
        self._run = get_ci_run()
        if result:
            self._path = resolve_output_file(result, context, name="result.json")
        else:
            self._path = resolve_relative_path(str(result_path(place.folder, place.target.name)), context)
        self._ready = ready
        # The approved topics whose numbers the file of `--result` has, by the target's names.
        self._git: Catalog | None = None
        if result:
            named = rename_catalog(ready.target.approved.catalog, ready.target.names)
            planned_names = plan.scope.topics & named.topics.keys()
            self._git = Catalog(topics={name: named.topics[name] for name in planned_names})
        # The file ends with _END, which is overwritten.
        self._end_offset = -len(_END)
        content = self._measure(encode_lines(make_started_document(plan, self._run)))
        self._separator = b""
        self._synced_s = time.monotonic()
        self._file: int | None = None
        try:
            atomic_files.write(
                self._path, content, below=context.top, mode=atomic_files.PRIVATE_MODE, make_folders=not result
            )
            self._file = atomic_files.reopen(self._path, below=context.top)
        except OSError as error:
            message = f"{self._path} cannot be written: {error.strerror}"
            if result:
                raise SchemactlError(message, fix="name a file in a folder you may write") from error
            context.say(f"warning: the steps of this apply are not recorded: {message}")

    def _measure(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of the file, and count their bytes."""
        for piece in pieces:
            self._end_offset += len(piece)
            yield piece

    def add(self, number: int) -> None:
        """Add a completed step."""
        if self._file is not None:
            piece = self._separator + str(number).encode()
            # Only the end is overwritten, so that the file never loses a step.
            os.pwrite(self._file, piece + _END, self._end_offset)
            self._end_offset += len(piece)
            self._separator = b", "

    def sync(self) -> None:
        """Flush what was added to the disk, once a second."""
        if self._file is not None and time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
            os.fsync(self._file)
            self._synced_s = time.monotonic()

    def end(self, result: ApplyResult, registry: Registry) -> None:
        """Write the final result."""
        from schemactl.deploy.plan_json import write_json
        from schemactl.deploy.version_lists import list_topics
        from schemactl.report.apply_result import make_result_document

        if self._file is None:
            return
        os.close(self._file)
        self._file = None
        numbers: tuple[ListedTopic, ...] | None = None
        if self._git is not None:
            registered = None
            # The file has no numbers if the registry cannot be read.
            with suppress(SchemactlError):
                registered = registry.read(self._ready.plan.scope)
            if registered is not None:
                git = self._ready.target.add_registered_versions(self._git, registered)
                numbers = list_topics(git=git, registry=registered)
        write_json(make_result_document(result, self._run, numbers), self._path, below=self._context.top)
