"""Plans that are ready to be applied, the result files of applies, and the setting `after`, which reads these files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from schemactl.cli.topic_selection import resolve_output_file, resolve_relative_path
from schemactl.core import atomic_files
from schemactl.core.environment import get_ci_run
from schemactl.core.errors import HistoryError, SchemactlError
from schemactl.core.json_values import Json, json_text
from schemactl.core.wording import format_time, format_version_numbers

if TYPE_CHECKING:
    from schemactl.cli.context import Context
    from schemactl.cli.target_selection import ChosenTarget, OpenTarget
    from schemactl.core.catalog import Catalog
    from schemactl.core.names import TopicName
    from schemactl.core.schema import SchemaVersion
    from schemactl.deploy.apply import ApplyResult
    from schemactl.deploy.refusals import Awaited
    from schemactl.deploy.status import LastApply
    from schemactl.deploy.steps import Plan
    from schemactl.registry.interface import Registry, Scope

    Ask = Callable[[ChosenTarget, Scope], Catalog]


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


# Result files.


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
    def of(cls, texts: Sequence[str], context: Context) -> NamedResults:
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
        from schemactl.report.plan import make_started_document

        context, plan, place = ready.target.context, ready.plan, ready.target.place
        self._context = context
        self._run = get_ci_run()
        if result:
            self._path = resolve_output_file(result, context, name="result.json")
            self._numbers = _make_numbers_reader(ready)
        else:
            self._path = resolve_relative_path(str(result_path(place.folder, place.target.name)), context)
            self._numbers = lambda _: None
        text = json_text(make_started_document(plan, self._run)).encode().removesuffix(b"]\n}")
        self._end_offset = len(text)
        self._separator = b""
        self._synced_s = time.monotonic()
        self._file: int | None = None
        try:
            atomic_files.write(
                self._path, text + _END, below=context.top, mode=atomic_files.PRIVATE_MODE, make_folders=not result
            )
            self._file = atomic_files.reopen(self._path, below=context.top)
        except OSError as error:
            message = f"{self._path} cannot be written: {error.strerror}"
            if result:
                raise SchemactlError(message, fix="name a file in a folder you may write") from error
            context.say(f"warning: the steps of this apply are not recorded: {message}")

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
        from schemactl.report.plan import make_result_document

        if self._file is not None:
            os.close(self._file)
            self._file = None
            document = make_result_document(result, self._run, self._numbers(registry))
            write_json(document, self._path, below=self._context.top)


def _make_numbers_reader(ready: ReadyPlan) -> Callable[[Registry], list[Json] | None]:
    """Return a function that reads the numbers that a registry gave to Git's versions, or returns None if it cannot be read."""
    from schemactl.core.catalog import Catalog
    from schemactl.deploy.target_catalog import rename_catalog
    from schemactl.deploy.version_lists import topic_values

    scope, target = ready.plan.scope, ready.target
    named = rename_catalog(target.approved.catalog, target.names)
    git = Catalog(topics={name: named.topics[name] for name in scope.topics & named.topics.keys()})

    def read_numbers(registry: Registry) -> list[Json] | None:
        try:
            registered = registry.read(scope)
        except SchemactlError:
            return None
        return topic_values(git=target.add_registered_versions(git, registered), registry=registered)

    return read_numbers


# The setting `after` of a target.


def find_waiting_topics(
    target: OpenTarget, plan: Plan, results: NamedResults, ask: Ask | None = None
) -> dict[TopicName, Awaited]:
    """Return the topics for which `plan` registers versions that some target in `after` does not have yet.

    Only these topics are read from each of these targets. If its registry does not respond, the result of its last apply counts,
    if `results` names one.

    Args:
        target: the target that the plan is for.
        plan: the plan, made without other targets.
        results: the results that the user names.
        ask: reads the topics of another target, or raises SchemactlError; by default its registry is opened and read.

    Raises:
        SchemactlError: if a topic has no name on another target.
    """
    from schemactl.core.catalog import select_target_topics
    from schemactl.deploy.refusals import Awaited
    from schemactl.deploy.steps import RegisterVersion

    versions_by_topic: dict[TopicName, list[SchemaVersion]] = {}
    for step in plan.steps:
        if isinstance(step, RegisterVersion):
            versions_by_topic.setdefault(step.name, []).append(step.version)
    declared = {declared_name: name for name in versions_by_topic if (declared_name := target.names.declared(name))}
    waiting: dict[TopicName, Awaited] = {}
    for other in target.place.target.after if versions_by_topic else ():
        place = replace(target.place, target=target.place.project.targets[other])
        # Topics that another target never gets do not wait for it.
        expected_names = select_target_topics(declared, place.target)
        registered, source = _read_versions_elsewhere(place, expected_names, target, results, ask)
        for declared_name in sorted(expected_names):
            name = declared[declared_name]
            if missing := _find_missing_numbers(versions_by_topic[name], registered.versions(declared_name)):
                waiting.setdefault(
                    name, Awaited(other, f"{other} does not have Git's {format_version_numbers(missing)} yet: {source}")
                )
    return waiting


def _find_missing_numbers(expected: Iterable[SchemaVersion], registered: tuple[SchemaVersion, ...]) -> list[int]:
    from schemactl.comparison.changes import VersionIndex

    contents = VersionIndex(registered)
    return [version.number for version in expected if version.info and not contents.find(version.info.load())]


def _read_versions_elsewhere(
    place: ChosenTarget, topics: Iterable[TopicName], target: OpenTarget, results: NamedResults, ask: Ask | None
) -> tuple[Catalog, str]:
    """Return the versions of `topics` that the target at `place` has, by declared names, and their source as a clause."""
    from schemactl.core.catalog import Catalog
    from schemactl.registry.interface import Scope

    names = {place.target.names.to_target(name): name for name in topics}
    try:
        scope = Scope(frozenset(), frozenset(names))
        answer = ask(place, scope) if ask else place.read(scope, target.context)
    except SchemactlError as error:
        return _read_recorded_versions(place, names, target, results, error.message)
    topics = {declared_name: answer.topics[name] for name, declared_name in names.items() if name in answer.topics}
    return Catalog(topics=topics), "according to its registry"


def _read_recorded_versions(
    place: ChosenTarget, names: Mapping[TopicName, TopicName], target: OpenTarget, results: NamedResults, problem: str
) -> tuple[Catalog, str]:
    """Return the result of `_read_versions_elsewhere` according to the last apply that `results` names."""
    from schemactl.core.catalog import Catalog

    reason = f"its registry did not respond ({problem})"
    try:
        last, result = results.find(place.target.name)
        is_complete = _make_completeness_check(result)
        history = target.approved.full_history
        catalog = history.until(history.position(last.commit, "in another result")).catalog
    except (HistoryError, ValueError, LookupError, TypeError, AttributeError) as error:
        return Catalog(), f"{reason}, and no result of an apply can be used ({error})"
    topics = {
        declared_name: catalog.topics[declared_name]
        for name, declared_name in names.items()
        if declared_name in catalog.topics
        and is_complete(str(name))
        and catalog.topics[declared_name].lifecycle == "stable"
    }
    return Catalog(
        topics=topics
    ), f"according to the result of its last apply ({format_time(last.time_s * 1000)}); {reason}"


def _make_completeness_check(result: Json) -> Callable[[str], bool]:
    """Return a predicate for a topic's name on the target: whether it had everything approved after the apply."""
    done = {*result["done"]}
    touched = {step.get("topic") for step in result["steps"]}
    incomplete = {step.get("topic") for number, step in enumerate(result["steps"], 1) if number not in done}
    incomplete |= {entry.get("topic") for entry in result["left_out"]}
    is_whole = result["whole"]
    return lambda name: name not in incomplete and (is_whole or name in touched)
