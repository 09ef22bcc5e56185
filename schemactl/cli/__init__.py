"""The command line: knows every command, imports each on use."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, TextIO, cast

from schemactl.errors import DeclarationError, SchemactlError, UsageError
from schemactl.printing import CleanStream, on_one_line, uncleaned
from schemactl.report.style import is_welcome

if TYPE_CHECKING:
    from schemactl.history import History
    from schemactl.model import Project

COMMANDS: dict[str, str] = {
    "init": "start a project in this repository",
    "check": "files against the approved history: the hook and the pull-request check",
    "log": "the versions of a topic, with their commits",
    "show": "one version's definition",
    "diff": "what changed between two versions, and who can read whom",
    "plan": "what apply would do, with the registry's predicted answer for every step",
    "apply": "carry out a plan",
    "drift": "what a registry holds otherwise than Git approved",
    "import": "write declarations of what a registry holds and nobody declares",
    "rebuild": "give a registry that lost its schemas the same version numbers back",
    "registry": "one topic of a registry by hand: get, list, put, delete, test",
    "admit": "would this client be let in, and what would the broker do to the registry",
    "serve": "the embedded registry behind Pulsar's admin REST paths",
    "generate": "write StructTypes and codec modules for every approved version",
    "spark": "stored messages of every version: verify that they are read, land them as Parquet",
    "decode": "one message as JSON, and which commit brought its schema",
    "compare": "the engine on JSON lines: definitions in, verdicts out",
    "struct": "Spark's types on JSON lines: definitions in, StructTypes out",
    "explain": "a rule: what, why, example, fix",
    "completion": "print a completion script for your shell",
}
"""Command to one-line help. The module `schemactl.cli.<command>` is a `Command`; where that is a word of Python, with a `_`."""

EXIT_CODES = """\
exit codes: 0 fine · 1 could not decide (the message says why) · 2 there are changes (only with --detailed-exitcode)
            3 partly applied · 4 stale plan · 64 wrong usage · 100 findings, and every other "no"
"""


@dataclass(frozen=True, slots=True)
class Context:
    """What the global options say: where to work and how to speak.

    Attributes:
        directory: absolute path of the folder to work in.
        config: path of the project file, or None to look for `schemactl.yaml` upwards from `directory`.
        quiet: no progress and no warnings on standard error.
        color: the report may use ANSI colours.
        trust_working_tree: targets may be taken from the project file here, as nobody has approved it.
    """

    directory: str
    config: str | None = None
    quiet: bool = False
    color: bool = False
    trust_working_tree: bool = False

    def say(self, text: str) -> None:
        """`text` is on standard error, unless the user asked for quiet."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def progress(self, what: str, of: str) -> Callable[[int, int | None], None]:
        """What, told of "so many of so many", keeps a line on the terminal; on no terminal, or in quiet, nothing is shown."""
        return Progress(what, of) if not self.quiet and sys.stderr.isatty() else lambda _done, _total: None

    def note(self, notes: Iterable[object]) -> None:
        """Each is on standard error, as a note."""
        for note in notes:
            self.say(f"note: {note}")

    @property
    def top(self) -> str:
        """The real path of the repository to work in: below it, no link leads to what is written."""
        from schemactl.output import top_of

        return top_of(self.directory)

    def approved(self, project: Project | None = None) -> History:
        """The approved history of `project`, or of the project that the folder belongs to.

        Raises:
            SchemactlError: there is no project, or Git cannot say which schemas were approved.
        """
        from schemactl import history

        if project is None:
            return history.read_here(self.directory, self.config, progress=self.reading_history())
        with history.Repository.open(self.directory) as repository:
            return history.read(repository, project, progress=self.reading_history())

    def reading_history(self) -> Callable[[int, int | None], None]:
        """The progress of reading the approved history, which takes long where little of it is known yet."""
        return self.progress("reading the approved history", "commits")


class Progress:
    """One line on standard error that is written over as work goes on, and is gone when it is done.

    Work that is done in half a second never shows it.
    """

    def __init__(self, what: str, of: str) -> None:
        self._what = on_one_line(what)
        self._of = of
        self._next_s = 0.0
        self._shown = False

    def __call__(self, done: int, total: int | None) -> None:
        """So many of so many are done; None: of how many is not known yet."""
        now_s = time.monotonic()
        if done <= 1:
            self._next_s = now_s + 0.5
        elif done == total and self._shown:
            print("\r\x1b[K", end="", file=uncleaned(sys.stderr), flush=True)
            self._shown = False
        elif now_s >= self._next_s and done != total:
            number = f"{done}" if total is None else f"{done} of {total}"
            print(
                f"\r\x1b[K{self._what}: {number} {self._of}", end="", file=uncleaned(sys.stderr), flush=True
            )
            self._next_s, self._shown = now_s + 0.1, True


class Command(Protocol):
    """A module `schemactl.cli.<command>`."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The command's own arguments, description and examples are in `parser` afterwards."""
        ...

    def run(self, args: argparse.Namespace, context: Context) -> int:
        """The command's exit code, after its report went to standard output."""
        ...


class Parser(argparse.ArgumentParser):
    """argparse, but wrong usage exits with 64, as `sysexits.h` has it (argparse's own 2 means "changes" here)."""

    def error(self, message: str) -> NoReturn:
        """The usage and the message are on standard error, and the process ends."""
        self.print_usage(sys.stderr)
        self.exit(UsageError.exit_code, f"{self.prog}: error: {message}\n")


class _Version(argparse.Action):
    """Shows which version is installed, and whether something else was installed over it; looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from schemactl import installation

        print(f"schemactl {installation.version()}")
        if installation.is_shared():
            print(
                f"schemactl: another distribution, `{installation.OTHER}`, is installed here, too, with a package and a command "
                "of the same names: each has overwritten files of the other\n"
                f"  Fix: pip uninstall {installation.OTHER} {installation.DISTRIBUTION} && pip install "
                f"{installation.DISTRIBUTION}, or install the two in virtual environments of their own",
                file=sys.stderr,
            )
        parser.exit()


def build_parser(commands: Sequence[str] = tuple(COMMANDS)) -> Parser:
    """The parser of the whole command line, with the arguments of `commands`; the others have only their help line."""
    parser = Parser(
        prog="schemactl",
        description="Schemas as code for Apache Pulsar: declared in Git, checked before the merge, applied to the "
        "registry, read by Spark.",
        epilog="examples:\n"
        "  schemactl init                       start a project here\n"
        "  schemactl check                      is what I changed compatible with what was approved?\n"
        "  schemactl plan --target local        what would change in the registry?\n"
        "  schemactl explain NAME_MISMATCH      what does this rule mean?\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_global_options(parser)
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show the version of this installation and exit"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = subparsers.add_parser(
            name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name in commands:
            load(name).configure(command)
            # People write them behind the command, too; there they have no defaults, so as not to undo what stands before.
            _add_global_options(command.add_argument_group("global options"), default=argparse.SUPPRESS)
    return parser


def _add_global_options(parser: argparse._ActionsContainer, default: str | None = None) -> None:
    """The options that every command has."""
    suppressed = default is not None
    parser.add_argument(
        "-C", dest="directory", metavar="DIR", default=default or ".", help="work as if started in DIR"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=default,
        help="the project file (default: schemactl.yaml, looked for upwards)",
    )
    parser.add_argument(
        "--quiet",
        "-q",
        action="store_true",
        default=default if suppressed else False,
        help="no progress and no warnings on standard error",
    )
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default=default or "auto",
        help="colours in reports (auto: on a terminal)",
    )


def load(name: str) -> Command:
    """The module of the command `name`."""
    return cast("Command", import_module(f"schemactl.cli.{'import_' if name == 'import' else name}"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name), and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with _cleaned_output():
        return _run(arguments)


@contextmanager
def _cleaned_output() -> Iterator[None]:
    """Meanwhile nothing reaches standard output or error that a terminal or a build server would obey."""
    before = sys.stdout, sys.stderr
    # A process may have been started without them.
    sys.stdout, sys.stderr = (cast("TextIO", CleanStream(stream)) if stream else stream for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _run(arguments: list[str]) -> int:
    if isinstance(stream := uncleaned(sys.stdout), io.TextIOWrapper):
        # A path that is not UTF-8 goes out as it would be escaped.
        stream.reconfigure(errors="backslashreplace")
    # Only the named command's module is imported: the hook must not pay for the others.
    named = [word for word in arguments if word in COMMANDS][:1]
    try:
        args = build_parser(named).parse_args(arguments)
        directory = Path(args.directory).absolute()
        if not directory.is_dir():
            raise UsageError(f"-C {args.directory}: there is no such folder")
        context = Context(
            str(directory),
            args.config,
            args.quiet,
            is_welcome(args.color),
            getattr(args, "trust_working_tree", False),
        )
        if isinstance(sys.stdout, CleanStream):
            sys.stdout.styled = context.color
        code = load(args.command).run(args, context)
        print(end="", flush=True)
    except SchemactlError as error:
        # A line that starts with its place can be clicked in most terminals and editors.
        placed = error.source is not None or isinstance(error, DeclarationError)
        print(error if placed else f"schemactl: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone (`schemactl log | head`): nothing left to say, and no traceback at exit.
        _forget_output()
        return 1
    except OSError as error:
        # Commands turn the trouble they expect into errors of their own; a full disk can meet any of them.
        where = f"{error.filename}: " if error.filename else ""
        print(f"schemactl: {where}{error.strerror or error}", file=sys.stderr)
        _forget_output()
        return 1
    return code


def _forget_output() -> None:
    """What is still buffered for standard output goes nowhere, instead of failing once more when Python ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
