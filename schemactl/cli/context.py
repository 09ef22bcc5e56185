"""The context of a command: the global options, its output, and the repository."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from schemactl.core.deadline import PARALLEL, Deadline
from schemactl.core.errors import DeclarationError, HistoryError, MissingProject, SchemactlError
from schemactl.core.terminal import get_raw_stream, get_terminal_width, on_one_line, wrap_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from schemactl.core.project import Project, Target
    from schemactl.declare.files import WorktreeFiles
    from schemactl.history.approved_history import History, HistoryNote
    from schemactl.history.git import Repository


_JSON_INTERVAL_S: Final = 0.5

_FIRST_LINE_S: Final = 0.3
"""The time after which a terminal shows progress."""

_PLAIN_INTERVAL_S: Final = 10.0
"""The interval of progress lines without a terminal."""

_RATE_AFTER_S: Final = 2.0
"""The time after which a rate is meaningful."""

BAR_COLUMNS: Final = 24
"""The width of a bar of progress."""


@dataclass(frozen=True, slots=True)
class Context:
    """The global options: where to work, and what to print.

    Attributes:
        directory: absolute path of the folder to work in.
        config: path of the project file, or None to look for `schemactl.yaml` upwards from `directory`.
        quiet: print no progress and no warnings to standard error.
        verbose: print details of the work to standard error.
        color: the report may use ANSI colours.
        trust_working_tree: use the targets of the working tree's project file, which is not approved.
        subject: the target that messages are about, or "" if the command has only one.
        words: the arguments of the command line.
        is_json_progress: print progress as JSON Lines.
        parallel: the number of topics of a registry to process in parallel.
        deadline: the time limit of the command.
        opened: the repository, once it is open.
        printed_reports: the formats of the reports on standard output.
        result: the facts that the command has reported, for `--format json` (see `command_result`).
    """

    directory: str
    config: str | None = None
    quiet: bool = False
    verbose: bool = False
    color: bool = False
    trust_working_tree: bool = False
    subject: str = ""
    words: tuple[str, ...] = ()
    is_json_progress: bool = False
    parallel: int = PARALLEL
    deadline: Deadline = field(default_factory=lambda: Deadline(float("inf"), "starting"), repr=False, compare=False)
    opened: list[Repository] = field(default_factory=list, repr=False, compare=False)
    printed_reports: list[str] = field(default_factory=list, repr=False, compare=False)
    result: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def repository(self) -> Repository:
        """The repository to work in, opened once for the whole command. Raise HistoryError outside of a repository."""
        if not self.opened:
            from schemactl.history.git import Repository

            self.opened.append(Repository.open(self.directory))
        return self.opened[0]

    @property
    def folder_name(self) -> str:
        """The name of the repository's folder."""
        return Path(self.repository.top or self.directory).resolve().name

    def end_git(self) -> None:
        """End the git process that reads objects of the repository; a later query starts a new one."""
        for repository in self.opened:
            repository.close()

    def close(self) -> None:
        """End the git process, and name a cache that could not be written."""
        from schemactl.history.store import VARIABLE, write_errors

        self.end_git()
        while write_errors:
            folder, reason = write_errors.popitem()
            # If the terminal is closed, the error that ends the command counts.
            with suppress(OSError):
                self.detail(f"the cache {folder} cannot be written: {reason}; name another folder as {VARIABLE}")

    def about(self, subject: str) -> Context:
        """Return a context whose messages start with `subject`, the name of a target."""
        return replace(self, subject=subject)

    def command_with(self, *options: str) -> str:
        """Return the command line with `options` at its end."""
        return shlex.join(["schemactl", *self.words, *options])

    def say(self, text: str) -> None:
        """Print `text` to standard error, unless the user asked for quiet."""
        if not self.quiet:
            # Both streams may go to one file. A closed pipe is reported at the end of the command.
            with suppress(OSError):
                print(end="", flush=True)
            if sys.stderr.isatty():
                # Erase a line of progress.
                print("\r\x1b[K", end="", file=get_raw_stream(sys.stderr))
            print(f"{self.subject}: {text}" if self.subject else text, file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        """Print `text` to standard error if the user asked for details."""
        if self.verbose:
            self.say(text)

    def summarize(self, text: str) -> None:
        """Print to standard output what a command has written, unless the user asked for quiet."""
        if not self.quiet:
            print(text)

    def advise_restoring(self, error: SchemactlError) -> None:
        """Change the fix of a missing project file to the command that restores it, if Git has it."""
        if not isinstance(error, MissingProject) or error.is_restorable:
            return
        from schemactl.declare.project import PROJECT_FILE

        folder = Path(self.directory).resolve()
        with suppress(HistoryError):
            top = self.repository.top
            head = self.repository.commit("HEAD")
            for parent in (folder, *folder.parents) if top else ():
                name = Path(os.path.relpath(parent / PROJECT_FILE, folder)).as_posix()
                is_indexed = bool(self.repository.run("-C", str(folder), "ls-files", "--", name))
                path = (parent / PROJECT_FILE).relative_to(top or parent).as_posix()
                is_committed = bool(head and self.repository.run("ls-tree", "--full-tree", head.id, "--", path))
                if is_indexed or is_committed:
                    options = "" if is_indexed else "--staged --worktree "
                    git = "git" if folder == Path.cwd() else f"git -C {shlex.quote(str(folder))}"
                    error.is_restorable = True
                    error.message = f"{error.message} any more: it was deleted, but Git still has it"
                    error.fix = f"{git} restore {options}{shlex.quote(name)}"
                    return
                if parent == top:
                    return

    def report(self, text: str) -> None:
        """Print a text report to standard output, within the terminal's width."""
        print(wrap_text(text, get_terminal_width()))

    def record(self, **facts: Any) -> None:
        """Add facts to the result of the command, which `--format json` prints (see `command_result`)."""
        self.result.update(facts)

    def report_json(self, **values: Any) -> None:
        """Print a JSON report to standard output."""
        from schemactl.core.json_values import json_text, to_json

        print(json_text(to_json({"format_version": 1, **values})))

    def report_view(self, view: DataclassInstance) -> None:
        """Print a JSON report to standard output whose keys are the fields of `view`, in their order."""
        from schemactl.core.json_values import list_members

        self.report_json(**dict(list_members(view)))

    def json_progress(self, phase: str, unit: str) -> JsonProgress | None:
        """Return the progress of work as JSON Lines, or None without `--progress json`."""
        return JsonProgress(phase, unit, self.subject) if self.is_json_progress and not self.quiet else None

    def progress(self, work: str, unit: str) -> Callable[[int, int | None], None]:
        """Return a function that shows the progress of work: a bar on a terminal, elsewhere a line every ten seconds.

        With `--progress json` it prints JSON Lines instead. `work` is its name, and `unit` the unit that it counts, such as
        `topics`.
        """
        if json_progress := self.json_progress(work, unit):
            return json_progress
        if not self.quiet and not self.subject and sys.stderr.isatty():
            return Progress(work, unit)
        return PlainProgress(self, work, unit)

    @contextmanager
    def show_work(self, work: str) -> Iterator[None]:
        """Show the name of work that has no count on a terminal, and erase it at the end."""
        is_shown = not (self.quiet or self.subject or self.is_json_progress) and sys.stderr.isatty()
        if is_shown:
            print(f"\r\x1b[K{on_one_line(work)} ...", end="", file=get_raw_stream(sys.stderr), flush=True)
        try:
            yield
        finally:
            if is_shown:
                print("\r\x1b[K", end="", file=get_raw_stream(sys.stderr), flush=True)

    def note(self, *notes: object) -> None:
        """Print the notes to standard error."""
        for note in notes:
            self.say(f"note: {note}")

    @property
    def top(self) -> str:
        """The real path of the repository's top folder; files are not written through links below it."""
        from schemactl.core.atomic_files import find_top_folder

        return find_top_folder(self.directory)

    def project(self) -> tuple[Project, str]:
        """Return the project that the folder belongs to, and the folder that its relative paths start from.

        Raises:
            SchemactlError: if there is no project.
            DeclarationError: if its file has problems.
        """
        from schemactl.history.approved_history import load_project

        return load_project(self.directory, self.config)

    def approved(
        self,
        project: Project | None = None,
        target: Target | None = None,
        *,
        at: str | None = None,
        topics: Iterable[str] = (),
        namespaces: Collection[str] = (),
        prints_notes: bool = True,
    ) -> History:
        """Read the approved history of `project`, by default of the project that the folder belongs to, and print its notes.

        With `target`, a target of the project, read the history of that target, up to its position or up to `at`. The patterns
        `topics` and the `namespaces` are the selection of the command: notes on other topics are not printed.

        Raises:
            SchemactlError: if there is no project, or the approved history or the position of the target cannot be read.
        """
        from schemactl.history.target_history import read_effective

        project = project or self.project()[0]
        progress = self.reading_history()
        history = read_effective(self.repository, project, target, at=at, progress=progress)
        tip = history.tip.short if history.tip else "without commits"
        self.detail(f"approved history: {history.ref} ({tip}), {len(history.catalog.topics)} topics")
        if prints_notes:
            self.note(*select_notes(history.notes, history, [*topics], [*namespaces]))
        return history

    def open_working_tree(self) -> tuple[WorktreeFiles, Project, str]:
        """Return the files of the working tree, their project, and the folder that its relative paths start from.

        The folder may be outside of a Git repository.

        Raises:
            HistoryError: if a sparse checkout omits files of the project.
            SchemactlError: if there is no project, or its file has problems.
        """
        from schemactl.declare.project import load_project

        project, top = load_project(self.directory, self.config)
        return self.open_files(project, top), project, top

    def open_files(self, project: Project, top: str) -> WorktreeFiles:
        """Return the files of `project` in the working tree `top`, which may be outside of a Git repository.

        Raises:
            HistoryError: if a sparse checkout omits files of the project.
        """
        from schemactl.declare.files import WorktreeFiles
        from schemactl.history.sparse_checkout import require_complete_checkout

        try:
            repository = self.repository
        except HistoryError:
            pass
        else:
            require_complete_checkout(repository, project)
        return WorktreeFiles(top, folders=project.roots)

    def reading_history(self) -> Callable[[int, int | None], None]:
        """Return a function that shows the progress of reading the approved history, which is slow while little is cached."""
        return self.progress("reading the approved history", "commits")


def select_notes(
    notes: Sequence[HistoryNote], history: History, topics: Sequence[str], namespaces: Sequence[str]
) -> Sequence[HistoryNote]:
    """Return the notes on the topics that a command selects, or all notes if it selects none.

    Args:
        notes: notes of the history.
        history: the approved history, which has the names of all topics.
        topics: patterns of topics; the `@` of a version or ref and the text after it do not count.
        namespaces: names of namespaces.
    """
    if not notes or not (topics or namespaces):
        return notes
    from schemactl.core.names import select_topics

    names = {*history.catalog.topics, *(note.topic for note in notes if note.topic)}
    patterns = {text for topic in topics for text in (topic, topic.partition("@")[0], topic.rpartition("@")[0]) if text}
    schema_ids = {name.schema_id for name in select_topics(names, [*patterns], namespaces)}
    if not schema_ids:
        # The command fails because the topic is unknown, and a file that cannot be read may declare it.
        return notes
    return [note for note in notes if note.topic and note.topic.schema_id in schema_ids]


class JsonProgress:
    """Prints the progress of work to standard error as JSON Lines: at most two objects a second, and one at the end.

    Args:
        phase: the name of the work.
        unit: the unit that it counts, such as `topics`.
        target: the name of the target if there are several, or "".
    """

    def __init__(self, phase: str, unit: str, target: str = "") -> None:
        self._phase = phase
        self._unit = unit
        self._target = target
        self._began_s = time.monotonic()
        self._next_s = self._began_s + _JSON_INTERVAL_S
        self._is_over = False

    def __call__(self, done: int, total: int | None) -> None:
        """Print how many of `total` are done, unless the last object is recent; `total` is None until it is known."""
        import json

        now_s = time.monotonic()
        if self._is_over or (done != total and now_s < self._next_s):
            return
        self._is_over = done == total
        self._next_s = now_s + _JSON_INTERVAL_S
        value = {
            "phase": self._phase,
            "target": self._target or None,
            "done": done,
            "total": total,
            "unit": self._unit,
            "elapsed_s": round(now_s - self._began_s, 3),
        }
        if sys.stderr is not None:
            # Several threads print, so a line is one call.
            sys.stderr.write(json.dumps(value) + "\n")
            sys.stderr.flush()


def print_error(error: SchemactlError) -> int:
    """Print an error to standard error and return its exit code."""
    # A line that starts with its location can be clicked in most terminals and editors.
    has_location = error.source is not None or isinstance(error, DeclarationError)
    print(error if has_location else f"schemactl: {error}", file=sys.stderr)
    return error.exit_code


class Progress:
    """A line of progress with a bar on a terminal's standard error, which is erased at the end of the work.

    It appears a third of a second after the first call.

    Args:
        work: the name of the work.
        unit: the unit that it counts, such as `topics`.
    """

    def __init__(self, work: str, unit: str) -> None:
        self._work = on_one_line(work)
        self._unit = unit
        self._began_s: float | None = None
        self._next_s = 0.0
        self._is_shown = False

    def __call__(self, done: int, total: int | None) -> None:
        """Show how many of `total` are done; `total` is None until it is known."""
        now_s = time.monotonic()
        if done <= 1 or self._began_s is None:
            self._began_s, self._next_s = now_s, now_s + _FIRST_LINE_S
        elif done == total and self._is_shown:
            print("\r\x1b[K", end="", file=get_raw_stream(sys.stderr), flush=True)
            self._is_shown = False
        elif now_s >= self._next_s and done != total:
            text = f"{self._work}: {describe_progress(done, total, self._unit, now_s - self._began_s)}"
            line = f"{render_bar(done, total)} {text}" if total else text
            columns = shutil.get_terminal_size().columns
            visible = line if len(text) + BAR_COLUMNS < columns else text[: columns - 1]
            print(f"\r\x1b[K{visible}", end="", file=get_raw_stream(sys.stderr), flush=True)
            self._next_s, self._is_shown = now_s + 0.1, True


class PlainProgress:
    """Prints a line about work that takes long, where standard error is not a terminal.

    Args:
        context: prints the lines.
        work: the name of the work.
        unit: the unit that it counts, such as `topics`.
    """

    def __init__(self, context: Context, work: str, unit: str) -> None:
        self._context = context
        self._work = on_one_line(work)
        self._unit = unit
        self._began_s = time.monotonic()
        self._next_s = self._began_s + _PLAIN_INTERVAL_S

    def __call__(self, done: int, total: int | None) -> None:
        """Print how many of `total` are done if the interval has passed, and with --verbose the total at the end."""
        now_s = time.monotonic()
        if done == total:
            self._context.detail(f"{self._work}: {done} {self._unit}")
        elif now_s >= self._next_s:
            self._next_s = now_s + _PLAIN_INTERVAL_S
            self._context.say(f"{self._work}: {describe_progress(done, total, self._unit, now_s - self._began_s)}")


def describe_progress(done: int, total: int | None, unit: str, elapsed_s: float) -> str:
    """Return how much is done and, after two seconds, how many are done in a second and the time that is left."""
    text = f"{done:,} {unit}" if total is None else f"{done:,} of {total:,} {unit}"
    if not done or elapsed_s < _RATE_AFTER_S:
        return text
    rate = done / elapsed_s
    left = "" if total is None else f", about {(total - done) / rate:.0f} s left"
    return f"{text}, {rate:.1f} a second{left}"


def render_bar(done: int, total: int) -> str:
    """Return a bar of BAR_COLUMNS columns for a terminal."""
    from io import StringIO

    from rich.console import Console
    from rich.progress_bar import ProgressBar

    console = Console(
        file=StringIO(), force_terminal=True, color_system="standard", width=BAR_COLUMNS, legacy_windows=False
    )
    with console.capture() as capture:
        console.print(
            ProgressBar(total=total, completed=done, width=BAR_COLUMNS, complete_style="green", finished_style="green"),
            end="",
        )
    return capture.get()
