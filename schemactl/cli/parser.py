"""The table of commands, the argument parser that suggests corrections, and the options that commands share."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

from schemactl.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from schemactl.cli.context import Context


class CommandEntry(NamedTuple):
    """A command: its group in `--help`, the module of `schemactl.cli` that has its functions, and one line of help."""

    group: str
    module: str
    summary: str


_MOST_DIGITS: Final = 18

GROUPS: Final = {
    "author": "write schemas and look at their versions",
    "deploy": "bring a registry and the approved history together",
    "use": "read messages",
    "tools": "everything else",
}

COMMANDS: Final[dict[str, CommandEntry]] = {
    "init": CommandEntry("author", "init", "start a project in this repository"),
    "new": CommandEntry("author", "init", "write the files of a new topic or namespace"),
    "check": CommandEntry("author", "check", "compare files with the approved history: the hook and the pull-request check"),
    "lint": CommandEntry("author", "lint", "find likely mistakes that break nothing yet"),
    "fmt": CommandEntry("author", "lint", "lay out YAML files and Avro definitions, without changing what they declare"),
    "waive": CommandEntry("author", "check", "approve one finding, with a reason, an owner and a last day"),
    "list": CommandEntry("author", "list_", "list the declared topics: type, version, strategy, owner, pending change"),
    "log": CommandEntry("author", "show", "list the versions of a topic, with their commits"),
    "targets": CommandEntry("author", "list_", "list the targets: registry, release, names, what differs there"),
    "show": CommandEntry("author", "show", "print a definition: of a version, a commit, or the files here"),
    "diff": CommandEntry("author", "diff", "show what changed: in the files here, between versions, between commits"),
    "changelog": CommandEntry("author", "diff", "tell what changed from one commit to another, for release notes"),
    "graph": CommandEntry("author", "export", "show who uses which type and file: topics, files and shared types"),
    "extract": CommandEntry("author", "extract", "print the definition that a Python class stands for, or write it beside a declaration"),
    "explain": CommandEntry("author", "check", "explain a rule: what, why, example, fix"),
    "plan": CommandEntry("deploy", "plan", "show what apply would do, with the registry's predicted answer for every step"),
    "apply": CommandEntry("deploy", "apply", "carry out a plan"),
    "promote": CommandEntry("deploy", "promote", "move a target along the approved history, showing what comes with it"),
    "rollout": CommandEntry("deploy", "promote", "tell in which order a change goes to consumers, registries and producers"),
    "drift": CommandEntry("deploy", "drift", "show where a registry differs from what Git approved"),
    "status": CommandEntry("deploy", "status", "show one or many targets on one screen: pending, drift, accepted, last apply"),
    "clients": CommandEntry("deploy", "list_", "list who is declared to read and write topics, beside who is connected"),
    "import": CommandEntry("deploy", "import_", "write declarations for what a registry has and the files do not declare"),
    "rebuild": CommandEntry("deploy", "apply", "restore the version numbers of a registry that lost its schemas"),
    "generate": CommandEntry("use", "generate", "write StructTypes and codec modules for every approved version"),
    "site": CommandEntry("use", "export", "write a static catalogue of the topics, with search, versions and who reads whom"),
    "export": CommandEntry("use", "export", "print the schemas for other tools: AsyncAPI, JSON Schema, SQL, Avro"),
    "decode": CommandEntry("use", "decode", "print one message as JSON, and the commit that introduced its schema"),
    "sample": CommandEntry("use", "decode", "make plausible messages of a version, or read some of a real topic"),
    "spark": CommandEntry("use", "spark", "verify that stored messages of every version are readable, or land them in tables"),
    "registry": CommandEntry("tools", "registry", "manage one topic of a registry by hand: get, list, put, delete, test"),
    "serve": CommandEntry("tools", "registry", "serve the embedded registry behind Pulsar's admin REST paths"),
    "compare": CommandEntry("tools", "compare", "judge definitions on JSON lines"),
    "struct": CommandEntry("tools", "compare", "print Spark's types for definitions on JSON lines"),
    "admit": CommandEntry("tools", "admit", "predict whether a broker lets a client in, and what it does to the registry"),
    "demo": CommandEntry("tools", "init", "play through the main job, on the embedded registry and a local Spark"),
    "verify-client": CommandEntry("tools", "extract", "check whether a service's class reads and writes what is approved"),
    "completion": CommandEntry("tools", "completion", "print a completion script for bash, zsh or fish"),
}  # fmt: skip
"""Every command, in the order of `--help`."""

_EXIT_CODES = """\
exit codes:
  0    fine: nothing to do, or done
  1    an error: the message says why
  2    there are changes, only with --detailed-exitcode
  3    partly applied
  4    stale plan
  64   wrong usage
  100  findings, and every other "no"

examples:
  schemactl init                       start a project here
  schemactl check                      would my change break a reader?
  schemactl plan --target local        what would change in the registry?
  schemactl explain NAME_MISMATCH      what does this rule mean?
"""


class Command(NamedTuple):
    """The two functions of a command: `configure` adds its arguments, `run` prints its report and returns its exit code."""

    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Context], int]


def load(name: str) -> Command:
    """Return the functions of the command `name`; `verify-client` has `configure_verify_client` and `run_verify_client`."""
    module = import_module(f"schemactl.cli.{COMMANDS[name].module}")
    suffix = name.replace("-", "_")
    return Command(getattr(module, f"configure_{suffix}"), getattr(module, f"run_{suffix}"))


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs to the terminal; of indented lines, such as examples, only a remark at the end is wrapped."""

    def _example_lines(self, block: str, width: int) -> Iterator[str]:
        """Yield the lines of a block: a subcommand's examples are its own; a remark that does not fit is on lines of its own."""
        is_nested = self._prog.count(" ") > 1
        for line in block.splitlines():
            if is_nested and line.startswith("  schemactl ") and not line.startswith(f"  {self._prog} "):
                continue
            remark = re.fullmatch(r"(( +\S.*?\S) {2,})(\S.*)", line)
            if remark is None or len(line) <= width:
                yield line
            elif line.startswith("  schemactl "):
                yield remark[2]
                yield textwrap.fill(remark[3], width, initial_indent=" " * 6, subsequent_indent=" " * 6)
            else:
                below = " " * len(remark[1])
                yield textwrap.fill(remark[3], width, initial_indent=remark[1], subsequent_indent=below)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        def filled(paragraph: str) -> str:
            # Single lines with an indented rest are headings of a list.
            blocks = re.split(r"(?m)((?:^[ \t].*\n?)+)", paragraph)
            return "".join(
                "".join(f"{line}\n" for line in self._example_lines(block, width))
                if at % 2
                else textwrap.fill(" ".join(block.split()), width) + ("\n" if block else "")
                for at, block in enumerate(blocks)
            ).rstrip("\n")

        return textwrap.indent("\n\n".join(filled(part) for part in text.strip("\n").split("\n\n")), indent) + "\n"


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations, with suggestions for mistyped words and the exit code 64 of `sysexits.h`.

    Attributes:
        renamed: former options and subcommands, with what replaced them.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": HelpFormatter, **kwargs})
        self.renamed: Mapping[str, str] = {}

    def error(self, message: str) -> NoReturn:
        """Print the usage and `message` to standard error and exit."""
        self.print_usage(sys.stderr)
        self.exit(UsageError.exit_code, f"{self.prog}: error: {message}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse `args`; report an unknown option before any other error."""
        self._reject_unknown_options(args)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # A word that is no option is most often a topic.
            option = "--registry" if re.match("[a-z]+://", unknown[0]) else "--topic"
            meant = f"; did you mean {option} {unknown[0]}?" if self.option(option) else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return parsed, unknown

    def _reject_unknown_options(self, args: Sequence[str]) -> None:
        """Report an unknown long option before argparse reports what it therefore misses."""
        for word in args:
            # What follows a subcommand is for that one's parser.
            if word == "--" or (not word.startswith("-") and self.subcommands):
                return
            option = word.partition("=")[0]
            if word.startswith("--") and " " not in word and option not in self._option_string_actions:
                self.error(f"unknown option {option}{self._without(option)}")

    def _without(self, option: str) -> str:
        """Return what to write instead of an unknown option."""
        name = option.removeprefix("--").upper()
        if name in (action.metavar for action in self.positionals()):
            return f"; give the {name} without it"
        return self.instead_of(option, self._option_string_actions)

    @property
    def subcommands(self) -> Mapping[str, Parser]:
        """The parsers of the subcommands, by name."""
        subparsers = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001  its only name
        return next((cast("Mapping[str, Parser]", action.choices) for action in subparsers), {})

    def option(self, word: str) -> argparse.Action | None:
        """Return the option that is written `word`."""
        return self._option_string_actions.get(word)

    def long_options(self) -> list[tuple[str, str]]:
        """Return the long options with their help."""
        return [
            (name, "" if action.help in (None, argparse.SUPPRESS) else str(action.help))
            for name, action in self._option_string_actions.items()
            if name.startswith("--")
        ]

    def positionals(self) -> list[argparse.Action]:
        """Return the arguments that are no options."""
        return self._get_positional_actions()

    def instead_of(self, word: str, known: Iterable[str]) -> str:
        """Return what was probably meant by `word`, as the end of a message; "" if unknown."""
        if word in self.renamed:
            return f"; did you mean `{self.renamed[word]}`?"
        return did_you_mean(word, [each for each in known if len(each) > 2 or not each.startswith("-")])

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(each) for each in action.choices]
        near = self.instead_of(str(value), known)
        listed = near or f"; choose from {', '.join(known)}"
        raise argparse.ArgumentError(action, f"{value!r} is unknown{listed}")


class _CommandLine(Parser):
    """The parser of the command line; its help lists all commands by group."""

    def format_help(self) -> str:
        """Return the help."""
        self.description = (
            "Schemas as code for Apache Pulsar: declared in Git, checked before the merge, applied to the registry, "
            "read by Spark.\n\n" + "\n".join(_overview())
        )
        return super().format_help()


def build_parser(commands: Sequence[str]) -> Parser:
    """Return the parser of the command line, for `commands`; where none is given, for all of them, without their arguments."""
    parser = _CommandLine(prog="schemactl", usage="%(prog)s [OPTION]... COMMAND [ARGUMENT]...", epilog=_EXIT_CODES)
    add_global_options(parser)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version of this installation and exit")
    subparsers = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        help=argparse.SUPPRESS,
        prog="schemactl",
        # Else every command's help would have all commands, too.
        parser_class=Parser,
    )
    for name in commands or COMMANDS:
        command = subparsers.add_parser(name, description=COMMANDS[name].summary)
        if name in commands:
            load(name).configure(command)
            # Global options may follow the command, too; there they have no defaults, to keep what stands before.
            for each in (command, *command.subcommands.values()):
                add_global_options(each.add_argument_group("global options"), default=argparse.SUPPRESS)
    return parser


def add_options(to: argparse._ActionsContainer, *options: str, **settings: Any) -> None:
    """Add options, each with its help: `--strict: HELP` is a flag, `--out FILE: HELP` takes a value, `--topic GLOB...: HELP` any number.

    `settings` are argparse's, for each of them.
    """
    for option in options:
        written, _, text = option.partition(": ")
        *names, last = written.split(", ")
        last, _, metavar = last.partition(" ")
        more: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
        if metavar.endswith("..."):
            more = {"metavar": metavar.removesuffix("..."), "action": "append", "default": []}
        to.add_argument(*names, last, help=text, **more, **settings)


def number(first: int, last: int | None = None) -> Callable[[str], int]:
    """Return the type of an option whose value is a number from `first` to `last`; None: without end."""
    allowed = f"from {first} on" if last is None else f"from {first} to {last}"

    def parsed(text: str) -> int:
        # Python reads no number of very many digits.
        found = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else -1
        if found < first or (last is not None and found > last):
            raise argparse.ArgumentTypeError(f"expected a number {allowed}, found {text[:_MOST_DIGITS]!r}")
        return found

    return parsed


def add_format(to: argparse._ActionsContainer, *formats: str, option: str = "--format") -> None:
    """Add `--format`, by default text for people or JSON; the first of `formats` is the default."""
    choices = formats or ("text", "json")
    to.add_argument(option, choices=choices, default=choices[0], help=f"(default: {choices[0]})")


def _overview() -> Iterator[str]:
    """Yield the groups of commands, as `--help` shows them."""
    columns = int(os.environ.get("COLUMNS") or 0) or shutil.get_terminal_size().columns
    for group, purpose in GROUPS.items():
        yield f"{group}: {purpose}"
        for name, entry in COMMANDS.items():
            if entry.group == group:
                indent = " " * 16
                filled = textwrap.fill(
                    entry.summary, max(columns - 2, 40), initial_indent=indent, subsequent_indent=indent
                )
                yield f"  {name:<14}{filled[16:]}"
        yield ""


def add_global_options(parser: argparse._ActionsContainer, default: str | None = None) -> None:
    """Add the options that every command has."""
    add_options(parser, "-C DIR: work as if started in DIR", dest="directory", default=default or ".")
    add_options(
        parser, "--config FILE: the project file (default: schemactl.yaml, looked for upwards)", default=default
    )
    add_options(
        parser,
        "--quiet, -q: no progress and no warnings on standard error",
        "--verbose, -v: say on standard error what is being done",
        "--debug: the same, with every git command and its time, and with tracebacks",
        default=default or False,
    )
    colors = ("auto", "always", "never")
    text = "colours in reports (auto: on a terminal)"
    parser.add_argument("--color", choices=colors, default=default or "auto", help=text)


def global_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the global options in front of the command; `words` is what follows them."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_global_options(parser)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    try:
        return parser.parse_known_args(arguments)[0]
    except argparse.ArgumentError:
        return argparse.Namespace(words=[], directory=".", config=None)


def command_of(arguments: Sequence[str]) -> str | None:
    """Return the command of a command line: its first word that is no global option and not the value of one."""
    words = global_options(arguments).words
    return words[0] if words and words[0] in COMMANDS else None


class _Version(argparse.Action):
    """Prints the installed version, and whether its files were overwritten; looked up only when it is needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from schemactl.core import environment

        print(f"schemactl {environment.version()}")
        if environment.is_shared():
            print(
                f"schemactl: another distribution, `{environment.OTHER}`, is installed here, too, with a package and a command "
                "of the same names: each has overwritten files of the other\n"
                f"  Fix: pip uninstall {environment.OTHER} {environment.DISTRIBUTION} && pip install "
                f"{environment.DISTRIBUTION}, or install the two in virtual environments of their own",
                file=sys.stderr,
            )
        parser.exit()


_LONGEST_S = 1_000_000.0


def add_timeout(parser: argparse.ArgumentParser, default: float | None = None) -> None:
    """Add the option; None: without it there is no limit."""
    known = "no limit" if default is None else f"{default:g}"
    add_options(
        parser,
        f"--timeout SECONDS: give up after this many seconds, with exit code 1 (default: {known})",
        type=seconds,
        default=default,
    )


def seconds(text: str) -> float:
    """Return what an option's text says. Raise ArgumentTypeError: it is no number of seconds, or too large a one."""
    with suppress(ValueError):
        if 0 < (found := float(text)) < _LONGEST_S:
            return found
    raise argparse.ArgumentTypeError(f"expected a number of seconds between 0 and {_LONGEST_S:g}")
