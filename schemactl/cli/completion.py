"""`schemactl completion`: completion for bash, zsh and fish, from the same grammar as the command line.

The scripts call `schemactl completion --words WORD...` for the candidates for the last word. That reads the project
file and the names in the declarations at hand; it starts no other program, opens no registry and executes nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from schemactl.cli.context import Context
from schemactl.cli.parser import COMMANDS, Parser, build_parser, find_command, load_named_project, parse_global_options
from schemactl.core.errors import SchemactlError
from schemactl.core.terminal import get_raw_stream

_SCRIPTS: Final = {
    "bash": r"""_schemactl() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <(command schemactl completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _schemactl schemactl
""",
    "zsh": r"""#compdef schemactl
_schemactl() {
    local -a names shown
    local line
    for line in "${(@f)$(command schemactl completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        names+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  }")
    done
    if (( $#names )); then compadd -d shown -a names; else _files; fi
}
if [[ $funcstack[1] == _schemactl ]]; then _schemactl "$@"; else compdef _schemactl schemactl; fi
""",
    "fish": r"""function __schemactl_finds_words
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -g __schemactl_words (command schemactl completion --words $words[2..-1] "$current" 2>/dev/null)
    set -q __schemactl_words[1]
end
complete -c schemactl -n __schemactl_finds_words -f -a '$__schemactl_words'
""",
}

_PLAIN_NAME: Final = re.compile(r"[-=:.\w/]+", re.ASCII)
"""A name without special characters of a shell; other names are not completed."""

_TOPIC_LINE = re.compile(r"""(?:^|[{,])\s*["']?topic["']?\s*:\s*["']?([^\s"',}#]+)""", re.MULTILINE)
_NAMESPACE_LINE = re.compile(r"""(?:^|[{,])\s*["']?namespace["']?\s*:\s*["']?([^\s"',}#]+)""", re.MULTILINE)

_MAX_SEARCH_S: Final = 1.0

_MAX_BYTES: Final = 1 << 20
"""How much of each file is searched."""


def configure_completion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    parser.description = (
        "Print a completion script for your shell. It completes commands, options and their values, rules, and the project's "
        "topics, namespaces and targets, as the working tree defines them."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl completion bash > ~/.local/share/bash-completion/completions/schemactl\n"
        "  schemactl completion zsh > ~/.zsh/completions/_schemactl\n"
        "  schemactl completion fish > ~/.config/fish/completions/schemactl.fish\n"
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS), metavar="SHELL", help=", ".join(_SCRIPTS))


def run_completion(args: argparse.Namespace, context: Context) -> int:  # noqa: ARG001  every command has this shape
    """Print the script."""
    print(_SCRIPTS[args.shell], end="", file=get_raw_stream(sys.stdout))
    return 0


def print_words(words: Sequence[str]) -> int:
    """Print the candidates for the last of `words`, one a line, some followed by a tab and a description; return 0."""
    # A shell discards error messages during completion.
    with suppress(SchemactlError, OSError, ValueError, SystemExit):
        for name, text in list_candidates(words):
            print(f"{name}\t{text}" if text else name)
    return 0


def list_candidates(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the candidates for the last of `words`, each with a description that may be empty."""
    # bash splits `--option=value` into three words.
    previous = [word for word in words[:-1] if word != "="]
    current = words[-1].removeprefix("=") if words else ""
    prefix = ""
    if current.startswith("--") and "=" in current:
        option, _, current = current.partition("=")
        previous.append(option)
        prefix = f"{option}="
    options = parse_global_options(previous)
    command = find_command(previous)
    parser: Parser = build_parser([command] if command else [])
    arguments = list(options.words)
    while arguments and arguments[0] in parser.subcommands:
        parser = parser.subcommands[arguments.pop(0)]
    for name, text in _list_words(parser, previous, arguments, current, options):
        if name.startswith(current):
            yield prefix + name, text


def _list_words(
    parser: Parser, previous: Sequence[str], arguments: Sequence[str], current: str, options: argparse.Namespace
) -> Iterable[tuple[str, str]]:
    """Return all words that may follow the `previous` ones: values of an option, options, subcommands or arguments."""
    last_option = parser.find_option(previous[-1]) if previous else None
    if last_option is not None and last_option.nargs != 0:
        return _list_values(last_option, current, options)
    if current.startswith("-"):
        return parser.list_long_options()
    if parser.subcommands:
        summaries = {name: entry.summary for name, entry in COMMANDS.items()}
        return [(name, summaries.get(name, "")) for name in parser.subcommands]
    positionals = parser.list_positionals()
    if not positionals:
        return ()
    # Values of options count as well, so the last positional may be offered too early, which does no harm.
    position = sum(1 for word in arguments if not word.startswith("-"))
    return _list_values(positionals[min(position, len(positionals) - 1)], current, options)


def _list_values(action: argparse.Action, current: str, options: argparse.Namespace) -> Iterable[tuple[str, str]]:
    """Return the candidates for the value of an option or of a positional argument."""
    from schemactl.cli.permission_options import PERMISSION_OPTIONS

    if action.choices is not None:
        return [(str(choice), "") for choice in action.choices]
    if action.dest in (
        "topic",
        "old",
        "new",
        "node",
        "of",
        *(option.name for option in PERMISSION_OPTIONS if option.takes_topics),
    ):
        return [(name, "") for name in _shorten_names(_search_declarations(options, _TOPIC_LINE), current)]
    if action.dest == "namespace":
        return [
            (name, "")
            for name in sorted(_search_declarations(options, _NAMESPACE_LINE))
            if re.fullmatch(r"[-=:.\w]+/[-=:.\w]+", name)
        ]
    if action.dest == "target":
        project, _ = load_named_project(options)
        return [(name, "") for name in project.targets if _PLAIN_NAME.fullmatch(name)]
    if action.dest == "rule":
        from schemactl.core.rules import get_builtin_rules

        return [(rule.id, rule.summary) for rule in get_builtin_rules().values()]
    if action.dest == "format" and action.metavar == "FORMAT[=FILE]":
        # The help of the option starts with the formats.
        return [(name, "") for name in (action.help or "").partition(";")[0].split(", ")]
    return ()


def _shorten_names(names: set[str], current: str) -> list[str]:
    """Return the shortest unambiguous form of each topic's name that starts with the current word."""
    from schemactl.core.names import TopicName

    topics = set()
    for name in names:
        with suppress(ValueError):
            topics.add(TopicName.parse(name))
    if "://" in current:
        return sorted(str(topic) for topic in topics if _PLAIN_NAME.fullmatch(str(topic)))
    short_names = set()
    for topic in topics:
        parts = topic.schema_id.split("/")
        for count in (1, 2, 3):
            short_name = "/".join(parts[-count:])
            is_unique = sum(f"/{other.schema_id}".endswith(f"/{short_name}") for other in topics) == 1
            if short_name.startswith(current) and (is_unique or count == 3) and _PLAIN_NAME.fullmatch(short_name):
                short_names.add(short_name)
                break
    return sorted(short_names)


def _search_declarations(options: argparse.Namespace, pattern: re.Pattern[str]) -> set[str]:
    """Return the matches of `pattern` in the YAML files below the roots; search for a second, and do not follow links."""
    project, top = load_named_project(options)
    deadline = time.monotonic() + _MAX_SEARCH_S
    matches: set[str] = set()
    for root in project.roots:
        for folder, _, names in os.walk(Path(top, root)):
            for name in names:
                if time.monotonic() > deadline:
                    return matches
                if name.endswith((".yaml", ".yml")):
                    matches.update(pattern.findall(_read_text(Path(folder, name))))
    return matches


def _read_text(path: Path) -> str:
    """Return the beginning of a regular file, or "" if it cannot be opened or is a link."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(file, "rb") as stream:
        return stream.read(_MAX_BYTES).decode(errors="replace")
