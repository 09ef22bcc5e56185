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
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import COMMANDS, Parser, build_parser, command_of, global_options
from schemactl.core.errors import SchemactlError
from schemactl.core.terminal import uncleaned

if TYPE_CHECKING:
    from schemactl.core.project import Project

_SCRIPTS = {
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

_PLAIN = re.compile(r"[-=:.\w/]+", re.ASCII)
"""Names that no shell takes for anything else; others are not completed."""

_TOPIC_LINE = re.compile(r"""(?:^|[{,])\s*["']?topic["']?\s*:\s*["']?([^\s"',}#]+)""", re.MULTILINE)
_NAMESPACE_LINE = re.compile(r"""(?:^|[{,])\s*["']?namespace["']?\s*:\s*["']?([^\s"',}#]+)""", re.MULTILINE)
_LONGEST_S = 1.0
_MOST_BYTES = 1 << 20
"""Longer files are not looked at."""


def configure_completion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    parser.description = (
        "Print a completion script for your shell. It completes commands, options and their values, rules, and the project's "
        "topics, namespaces and targets, as the files at hand name them."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl completion bash > ~/.local/share/bash-completion/completions/schemactl\n"
        "  schemactl completion zsh > ~/.zsh/completions/_schemactl\n"
        "  schemactl completion fish > ~/.config/fish/completions/schemactl.fish\n"
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS), metavar="SHELL", help=", ".join(_SCRIPTS))


def run_completion(args: argparse.Namespace, context: Context) -> int:  # noqa: ARG001  every command has this shape
    """Return 0 after the script is printed."""
    print(_SCRIPTS[args.shell], end="", file=uncleaned(sys.stdout))
    return 0


def print_words(words: Sequence[str]) -> int:
    """Print the candidates for the last of `words`, one a line, some followed by a tab and a description; return 0."""
    # Nobody reads the reason while completing.
    with suppress(SchemactlError, OSError, ValueError, SystemExit):
        for name, text in candidates(words):
            print(f"{name}\t{text}" if text else name)
    return 0


def candidates(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the candidates for the last of `words`, each with a description that may be empty."""
    # bash splits `--option=value` into three words.
    *before, current = [word for word in words[:-1] if word != "="] + [words[-1].removeprefix("=") if words else ""]
    prefix = ""
    if current.startswith("--") and "=" in current:
        option, _, current = current.partition("=")
        before, prefix = [*before, option], f"{option}="
    given = global_options(before)
    command = command_of(before)
    parser: Parser = build_parser([command] if command else [])
    arguments = list(given.words)
    while arguments and arguments[0] in parser.subcommands:
        parser = parser.subcommands[arguments.pop(0)]
    found = _values(parser, before, arguments, current, given)
    for name, text in found:
        if name.startswith(current):
            yield prefix + name, text


def _values(
    parser: Parser, before: Sequence[str], arguments: Sequence[str], current: str, given: argparse.Namespace
) -> Iterable[tuple[str, str]]:
    last = parser.option(before[-1]) if before else None
    if last is not None and last.nargs != 0:
        return _value_of(last, current, given)
    if current.startswith("-"):
        return parser.long_options()
    if parser.subcommands:
        summaries = {name: entry.summary for name, entry in COMMANDS.items()}
        return [(name, summaries.get(name, "")) for name in parser.subcommands]
    positionals = parser.positionals()
    # Values of options are among the words; then the last positional is offered too early, which does no harm.
    at = sum(1 for word in arguments if not word.startswith("-"))
    return _value_of(positionals[min(at, len(positionals) - 1)], current, given) if positionals else ()


def _value_of(action: argparse.Action, current: str, given: argparse.Namespace) -> Iterable[tuple[str, str]]:
    """Return the candidates for the value of an option or of a positional argument."""
    if action.choices is not None:
        return [(str(each), "") for each in action.choices]
    if action.dest in ("topic", "old", "new", "node", "of", "allow_delete", "force_delete"):
        return [(name, "") for name in _spelled(_declared(given, _TOPIC_LINE), current)]
    if action.dest == "namespace":
        return [
            (name, "")
            for name in sorted(_declared(given, _NAMESPACE_LINE))
            if re.fullmatch(r"[-=:.\w]+/[-=:.\w]+", name)
        ]
    if action.dest == "target":
        targets = _project(given)[0].targets
        return [(name, "") for name in targets if _PLAIN.fullmatch(name)]
    if action.dest == "rule":
        from schemactl.core.rules import rules

        return [(rule.id, rule.summary) for rule in rules().values()]
    if action.dest == "format" and action.metavar == "FORMAT[=FILE]":
        # Its help begins with them.
        return [(name, "") for name in (action.help or "").partition(";")[0].split(", ")]
    return ()


def _spelled(names: set[str], current: str) -> list[str]:
    """Return the names of topics to offer: as short as the word typed so far and the other names allow."""
    from schemactl.core.names import TopicName

    topics = set()
    for name in names:
        with suppress(ValueError):
            topics.add(TopicName.parse(name))
    if "://" in current:
        return sorted(str(topic) for topic in topics if _PLAIN.fullmatch(str(topic)))
    found = set()
    for topic in topics:
        parts = topic.schema_id.split("/")
        for count in (1, 2, 3):
            text = "/".join(parts[-count:])
            is_unique = sum(f"/{each.schema_id}".endswith(f"/{text}") for each in topics) == 1
            if text.startswith(current) and (is_unique or count == 3) and _PLAIN.fullmatch(text):
                found.add(text)
                break
    return sorted(found)


def _project(given: argparse.Namespace) -> tuple[Project, str]:
    from schemactl.declare import project as declare_project

    return declare_project.load_project(str(Path(given.directory).absolute()), given.config)


def _declared(given: argparse.Namespace, line: re.Pattern[str]) -> set[str]:
    """Return the matches of `line` in the YAML files below the roots, found within a second and without following links."""
    project, top = _project(given)
    end_s = time.monotonic() + _LONGEST_S
    found: set[str] = set()
    for root in project.roots:
        for folder, _, names in os.walk(Path(top, root)):
            for name in names:
                if time.monotonic() > end_s:
                    return found
                if name.endswith((".yaml", ".yml")):
                    found.update(line.findall(_text(Path(folder, name))))
    return found


def _text(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(file, "rb") as stream:
        return stream.read(_MOST_BYTES).decode(errors="replace")
