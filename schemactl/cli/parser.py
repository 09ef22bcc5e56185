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

from schemactl.core.deadline import MAX_PARALLEL, PARALLEL
from schemactl.core.errors import ExitCode, SchemactlError, ask_for_name, did_you_mean

if TYPE_CHECKING:
    from schemactl.cli.context import Context
    from schemactl.core.project import Project


class CommandEntry(NamedTuple):
    """A command: its group in `--help`, and one line of help."""

    group: str
    summary: str


GROUPS: Final = {
    "author": "write schemas and look at their versions",
    "deploy": "bring a registry and the approved history together",
    "use": "read messages",
    "tools": "everything else",
}

COMMANDS: Final[dict[str, CommandEntry]] = {
    "init": CommandEntry("author", "start a project in this repository"),
    "new": CommandEntry("author", "write the files of a new topic or namespace"),
    "check": CommandEntry("author", "compare files with the approved history: the hook and the pull-request check"),
    "lint": CommandEntry("author", "find likely mistakes that break nothing yet"),
    "fmt": CommandEntry("author", "format YAML files and Avro definitions, without changing any declaration"),
    "waive": CommandEntry("author", "approve one finding, with a reason, an owner and a last day"),
    "list": CommandEntry("author", "list the declared topics: type, version, strategy, owner, pending change"),
    "log": CommandEntry("author", "list the versions of a topic, with their commits"),
    "targets": CommandEntry("author", "list the targets: registry, release, names, differences"),
    "show": CommandEntry("author", "print a definition: of a version, a commit, or the files here"),
    "diff": CommandEntry("author", "show what changed: in the files here, between versions, between commits"),
    "changelog": CommandEntry("author", "list the changes from one commit to another, for release notes"),
    "graph": CommandEntry("author", "show who uses which type and file: topics, files and shared types"),
    "extract": CommandEntry("author", "print the definition of a Python or Java class, or write it next to a declaration"),
    "explain": CommandEntry("author", "explain a rule: meaning, reason, example, fix"),
    "plan": CommandEntry("deploy", "show what apply would do, with the registry's predicted answer for every step"),
    "apply": CommandEntry("deploy", "carry out a plan"),
    "promote": CommandEntry("deploy", "move a target along the approved history, and show the changes this includes"),
    "rollout": CommandEntry("deploy", "show the order in which a change goes to consumers, registries and producers"),
    "drift": CommandEntry("deploy", "show where a registry differs from the approved state"),
    "status": CommandEntry("deploy", "show one or many targets on one screen: pending, drift, accepted, last apply"),
    "clients": CommandEntry("deploy", "list the declared clients of topics, and the connected clients"),
    "import": CommandEntry("deploy", "write declarations of everything in a registry that the files do not declare"),
    "rebuild": CommandEntry("deploy", "restore the version numbers of a registry that lost its schemas"),
    "generate": CommandEntry("use", "write StructTypes and codec modules for every approved version"),
    "site": CommandEntry("use", "write a static catalog of the topics, with search, versions and who reads whom"),
    "export": CommandEntry("use", "print the schemas for other tools: AsyncAPI, JSON Schema, SQL, Avro"),
    "decode": CommandEntry("use", "print one message as JSON, and the commit that introduced its schema"),
    "sample": CommandEntry("use", "make plausible messages of a version, or read some of a real topic"),
    "spark": CommandEntry("use", "verify that stored messages of every version are readable, or land them in tables"),
    "registry": CommandEntry("tools", "manage one topic of a registry by hand: get, list, put, delete, test"),
    "serve": CommandEntry("tools", "serve the embedded registry behind Pulsar's admin REST paths"),
    "compare": CommandEntry("tools", "judge definitions on JSON lines"),
    "struct": CommandEntry("tools", "print Spark's types for definitions on JSON lines"),
    "admit": CommandEntry("tools", "predict whether a broker accepts a client, and the effect on the registry"),
    "demo": CommandEntry("tools", "run the main job on the embedded registry and a local Spark"),
    "verify-client": CommandEntry("tools", "check whether a service's class can read and write a topic's messages"),
    "docs": CommandEntry("tools", "show a page of the documentation, or find pages by words"),
    "lsp": CommandEntry("tools", "serve an editor: findings while typing, quick fixes, hover, definitions, completion"),
    "completion": CommandEntry("tools", "print a completion script for bash, zsh or fish"),
}  # fmt: skip
"""Every command, in the order of `--help`."""

EVERYDAY: Final = ("init", "new", "check", "diff", "log", "plan", "apply", "drift", "generate", "explain")
"""The commands of the first help; `--help --all` has every command."""

_MOST_LISTED_CHOICES: Final = 4
"""A list of choices up to this length is also printed next to a suggestion."""

_MAX_DIGITS: Final = 18

_MAX_TIMEOUT_S: Final = 1_000_000.0

_EXIT_CODES: Final = "\n".join(f"  {code:<5}{code.meaning}" for code in sorted(ExitCode))

_EPILOG: Final = f"""\
exit codes:
{_EXIT_CODES}

examples:
  schemactl init                       start a project here
  schemactl check                      would my change break a reader?
  schemactl plan --target local        what would change in the registry?
  schemactl explain NAME_MISMATCH      what does this rule mean?
"""


class Command(NamedTuple):
    """The two functions of a command: `configure` adds its arguments, `run` prints its report and returns its exit code."""

    configure: Callable[[Parser], None]
    run: Callable[[argparse.Namespace, Context], int]


def load_command(name: str) -> Command:
    """Import the functions of the command `name` from its module: of `verify-client`, `configure_verify_client` and `run_verify_client`."""
    suffix = name.replace("-", "_")
    # `import` is a keyword, and a module `list` would replace the built-in function in this package.
    module_name = f"{suffix}_" if suffix in ("import", "list") else suffix
    module = import_module(f"schemactl.cli.{module_name}")
    return Command(getattr(module, f"configure_{suffix}"), getattr(module, f"run_{suffix}"))


def build_parser(commands: Sequence[str], arguments: Sequence[str] = ()) -> Parser:
    """Return the parser of the command line with `commands`, or, if that is empty, with all commands but without their arguments.

    `arguments` is the command line that will be parsed: help and messages depend on it.
    """
    parser = _CommandLine(prog="schemactl", usage="%(prog)s [OPTION]... COMMAND [ARGUMENT]...", epilog=_EPILOG)
    parser.shows_all = not commands and "--all" in arguments
    add_global_options(parser)
    parser.add_argument("--all", action="store_true", help="with --help: list every command")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version of this installation and exit")
    subparsers = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        help=argparse.SUPPRESS,
        prog="schemactl",
        # Otherwise the help of every command would list all commands.
        parser_class=Parser,
    )
    for name in commands or COMMANDS:
        command = subparsers.add_parser(name, description=COMMANDS[name].summary)
        if name in commands:
            load_command(name).configure(command)
            # Global options may also follow the command; defaults there would replace the options before it.
            for subparser in (command, *command.subcommands.values()):
                subparser.arguments = arguments
                add_global_options(subparser.add_argument_group("global options"), default=argparse.SUPPRESS)
    return parser


class Parser(argparse.ArgumentParser):
    """An argument parser without abbreviations, with suggestions for mistyped words and the exit code 64 of `sysexits.h`.

    Attributes:
        renamed: former options and subcommands, with their replacements.
        arguments: the whole command line.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": HelpFormatter, **kwargs})
        self.renamed: Mapping[str, str] = {}
        self.arguments: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Print one line on the usage, and `message`, to standard error and exit."""
        names = [
            f"[{action.metavar or action.dest}]" if action.nargs in ("?", "*") else str(action.metavar or action.dest)
            for action in self.list_positionals()
        ]
        usage = self.usage or " ".join(("%(prog)s [OPTION]...", *names))
        sys.stderr.write(f"usage: {usage % {'prog': self.prog}}, see `{self.prog} --help`\n")
        self.exit(ExitCode.WRONG_USAGE, f"{self.prog}: error: {message}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse `args`; report an unknown option before argparse reports the arguments that are missing because of it."""
        for word in args:
            # The parser of a subcommand handles the arguments after it.
            if word == "--" or (not word.startswith("-") and self.subcommands):
                break
            option = word.partition("=")[0]
            if word.startswith("--") and " " not in word and option not in self._option_string_actions:
                name = option.removeprefix("--")
                if name.upper() in (action.metavar for action in self.list_positionals()):
                    suggestion = f"; give the {name.upper()} without it"
                elif option in self.renamed:
                    suggestion = self._suggest_word(option, ())
                else:
                    # Without the hyphens, which all options have in common.
                    options = {
                        long_option.removeprefix("--"): long_option for long_option, _ in self.list_long_options()
                    }
                    suggestion = did_you_mean(name, options, shown=options)
                self.error(f"unknown option {option}{suggestion}")
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # A word is the name of a target if the project file has such a target, and most often a topic.
            word, names = unknown[0], ["--topic"]
            if re.match("[a-z]+://", word):
                names.insert(0, "--registry")
            if self.find_option("--target"):
                with suppress(SchemactlError, OSError):
                    if word in load_named_project(parse_global_options(self.arguments))[0].targets:
                        names = ["--target"]
            suggested_option = next(filter(self.find_option, names), None)
            suggestion = f"; {ask_for_name(f'{suggested_option} {word}')}" if suggested_option else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{suggestion}")
        return parsed, unknown

    @property
    def subcommands(self) -> Mapping[str, Parser]:
        """The parsers of the subcommands, by name."""
        subparsers = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001  its only name
        return next((cast("Mapping[str, Parser]", action.choices) for action in subparsers), {})

    def find_option(self, word: str) -> argparse.Action | None:
        """Return the option `word`, such as `--out`, or None if the parser does not have it."""
        return self._option_string_actions.get(word)

    def list_long_options(self) -> list[tuple[str, str]]:
        """Return the long options, each with its help."""
        return [
            (name, "" if action.help in (None, argparse.SUPPRESS) else str(action.help))
            for name, action in self._option_string_actions.items()
            if name.startswith("--")
        ]

    def list_positionals(self) -> list[argparse.Action]:
        """Return the positional arguments."""
        return self._get_positional_actions()

    def _suggest_word(self, word: str, choices: Iterable[str]) -> str:
        """Return the end of a message that suggests a replacement for `word`, or "" without one."""
        if word in self.renamed:
            return f"; {ask_for_name(f'`{self.renamed[word]}`')}"
        return did_you_mean(word, choices)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return the values of an option or argument; `--` in `--topic=--` is a value, which Python 3.11 removes as a separator."""
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return the value of an option or argument; one of `choices` may be written in other letter cases and with hyphens."""
        value = super()._get_value(action, arg_string)
        if action.choices is None or value in action.choices or not isinstance(value, str):
            return value
        folded = value.casefold().replace("-", "_")
        return next((choice for choice in action.choices if str(choice).casefold().replace("-", "_") == folded), value)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        if action.dest == "command":
            # The word may be a subcommand, such as `land` of `spark`.
            parents = []
            for name in COMMANDS:
                command = Parser(prog=name)
                load_command(name).configure(command)
                if value in command.subcommands:
                    parents.append(f"`schemactl {name} {value}`")
            suggestion = f"; {ask_for_name(*parents)}" if parents else self._suggest_word(str(value), choices)
            suggestion = suggestion or "; `schemactl --help --all` lists the commands"
        else:
            # A similar word may be a coincidence: `orders` is as similar to `reader` as many a slip.
            suggestion = self._suggest_word(str(value), choices)
            if not suggestion or len(choices) <= _MOST_LISTED_CHOICES:
                suggestion += f"{';' if not suggestion else ''} choose from {', '.join(choices)}"
        raise argparse.ArgumentError(action, f"{value!r} is unknown{suggestion}")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that wraps paragraphs to the terminal, and of indented lines, such as examples, only the remark at their end."""

    def _example_lines(self, block: str, width: int) -> Iterator[str]:
        """Yield the lines of a block, with long remarks on separate lines, and for a subcommand only its own examples."""
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
        def fill_paragraph(paragraph: str) -> str:
            # Blocks of text and of indented lines alternate; a line of text before an indented block is its heading.
            lines: list[str] = []
            for position, block in enumerate(re.split(r"(?m)((?:^[ \t].*\n?)+)", paragraph)):
                is_indented = position % 2 == 1
                if is_indented:
                    lines += self._example_lines(block, width)
                elif block:
                    lines.append(textwrap.fill(" ".join(block.split()), width))
            return "\n".join(lines).rstrip("\n")

        paragraphs = text.strip("\n").split("\n\n")
        return textwrap.indent("\n\n".join(map(fill_paragraph, paragraphs)), indent) + "\n"


class _CommandLine(Parser):
    """The parser of the command line; its help lists the everyday commands, or every command by group."""

    shows_all = False

    def format_help(self) -> str:
        """Return the help with the everyday commands, or, if `shows_all`, with every command by group."""
        commands = []
        if self.shows_all:
            for group, purpose in GROUPS.items():
                names = [name for name, entry in COMMANDS.items() if entry.group == group]
                commands += [f"{group}: {purpose}", *map(_format_command, names), ""]
        else:
            commands += [
                "everyday commands:",
                *map(_format_command, EVERYDAY),
                f"\nschemactl COMMAND --help explains a command; schemactl --help --all lists all {len(COMMANDS)}.",
            ]
        self.description = (
            "Schemas as code for Apache Pulsar: declared in Git, checked before the merge, applied to the registry, "
            "read by Spark.\n\n" + "\n".join(commands)
        )
        return super().format_help()


def _format_command(name: str) -> str:
    """Return a command with its summary, wrapped to the terminal."""
    columns = int(os.environ.get("COLUMNS") or 0) or shutil.get_terminal_size().columns
    indent = " " * 16
    summary = textwrap.fill(
        COMMANDS[name].summary, max(columns - 2, 40), initial_indent=indent, subsequent_indent=indent
    )
    return f"  {name:<14}{summary[16:]}"


class _Version(argparse.Action):
    """Prints the installed version, and a warning if another distribution has overwritten files."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from schemactl.core import environment

        print(f"schemactl {environment.get_version()}")
        if environment.has_conflicting_distribution():
            print(
                f"schemactl: another distribution, `{environment.CONFLICTING_DISTRIBUTION}`, is also installed here, "
                "with a package and a command "
                "of the same names: each has overwritten files of the other\n"
                f"  Fix: pip uninstall {environment.CONFLICTING_DISTRIBUTION} {environment.DISTRIBUTION} && pip install "
                f"{environment.DISTRIBUTION}, or install the two in separate virtual environments",
                file=sys.stderr,
            )
        parser.exit()


def add_options(to: argparse._ActionsContainer, *options: str, **settings: Any) -> None:
    """Add options, each with its help: `--strict: HELP` is a flag, `--out FILE: HELP` takes a value, `--topic GLOB...: HELP` any number.

    `settings` are the arguments of argparse's `add_argument` for all these options.
    """
    for option in options:
        syntax, _, text = option.partition(": ")
        *names, last = syntax.split(", ")
        last_name, _, metavar = last.partition(" ")
        arguments: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
        if metavar.endswith("..."):
            arguments = {"metavar": metavar.removesuffix("..."), "action": "append", "default": []}
        to.add_argument(*names, last_name, help=text, **arguments, **settings)


def make_number_type(first: int, last: int | None = None) -> Callable[[str], int]:
    """Return an argparse type for numbers from `first` to `last`, without a `last` one for all numbers from `first` on."""
    allowed = f"from {first} on" if last is None else f"from {first} to {last}"

    def parse(text: str) -> int:
        # Python refuses to read numbers with thousands of digits.
        value = int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else -1
        if value < first or (last is not None and value > last):
            raise argparse.ArgumentTypeError(f"expected a number {allowed}, found {text[:_MAX_DIGITS]!r}")
        return value

    return parse


def add_format(to: argparse._ActionsContainer, *formats: str, option: str = "--format") -> None:
    """Add the option `--format` with the given formats, or text and JSON; the first one is the default."""
    choices = formats or ("text", "json")
    to.add_argument(option, choices=choices, default=choices[0], help=f"(default: {choices[0]})")


def add_global_options(parser: argparse._ActionsContainer, default: str | None = None) -> None:
    """Add the options that every command has."""
    add_options(parser, "-C DIR: work as if started in DIR", dest="directory", default=default or ".")
    add_options(
        parser, "--config FILE: the project file (default: schemactl.yaml, looked for upwards)", default=default
    )
    add_options(
        parser,
        "--quiet, -q: only results and errors: no progress, no warnings, no summary of written files",
        "--verbose, -v: print details of the work to standard error",
        "--debug: the same, with every git command and every request to a registry, their times, and tracebacks",
        default=default or False,
    )
    parser.add_argument(
        "--progress",
        choices=("text", "json"),
        default=default or "text",
        help="the progress of long work on standard error: text, or json, one object a line; --quiet takes precedence (default: text)",
    )
    colors = ("auto", "always", "never")
    text = "colors in reports (auto: on a terminal)"
    parser.add_argument("--color", choices=colors, default=default or "auto", help=text)


def parse_global_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the global options before the command; `words` of the result is the rest of the command line."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_global_options(parser)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    try:
        return parser.parse_known_args(arguments)[0]
    except argparse.ArgumentError:
        return argparse.Namespace(words=[], directory=".", config=None)


def load_named_project(options: argparse.Namespace) -> tuple[Project, str]:
    """Return the project that the global options name, and the folder that its relative paths start from."""
    from pathlib import Path

    from schemactl.declare.project import load_project

    return load_project(str(Path(options.directory).absolute()), options.config)


def expand_help(arguments: Sequence[str]) -> list[str]:
    """Return a command line with `help` and `help COMMAND` written as the option --help, as is a line without a command."""
    words = parse_global_options(arguments).words
    before = list(arguments[: len(arguments) - len(words)])
    if words[:1] == ["help"]:
        return [*before, *words[1:], "--help"]
    if not words and not {"--version", "--help", "-h"}.intersection(before):
        return [*before, "--help"]
    return list(arguments)


def find_command(arguments: Sequence[str]) -> str | None:
    """Return the command of a command line, or None if its first word after the global options is not a command."""
    words = parse_global_options(arguments).words
    return words[0] if words and words[0] in COMMANDS else None


def add_parallel(parser: argparse.ArgumentParser) -> None:
    """Add the option --parallel. Several targets are always processed at once."""
    add_options(
        parser,
        f"--parallel N: the number of topics of a target that are processed at once (default: {PARALLEL})",
        type=make_number_type(1, MAX_PARALLEL),
        default=PARALLEL,
    )


def add_timeout(parser: argparse.ArgumentParser, default: float | None = None) -> None:
    """Add the option --timeout, with which `main` limits the time of the command; a default of None means no limit."""
    default_text = "no limit" if default is None else f"{default:g}"
    add_options(
        parser,
        f"--timeout SECONDS: give up after this many seconds, with exit code 1 (default: {default_text})",
        type=parse_seconds,
        default=default,
    )


def parse_seconds(text: str) -> float:
    """Parse an option's number of seconds; raise ArgumentTypeError if it is not a number, not positive, or too large."""
    with suppress(ValueError):
        value = float(text)
        if 0 < value < _MAX_TIMEOUT_S:
            return value
    raise argparse.ArgumentTypeError(f"expected a number of seconds between 0 and {_MAX_TIMEOUT_S:g}")
