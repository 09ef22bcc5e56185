"""Every command that can contact a registry has a time limit for the whole command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from schemactl.cli.parser import COMMANDS, build_parser


def iterate_parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parser of each command and subcommand with its name."""
    subparsers = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in subparsers:
        for word, subparser in action.choices.items():
            yield from iterate_parsers(subparser, f"{name} {word}".strip())
    if not subparsers:
        yield name, parser


def list_options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


PARSERS = dict(iterate_parsers(build_parser([*COMMANDS], [])))
ON_TARGETS = [name for name, parser in PARSERS.items() if list_options(parser) & {"--target", "--all-targets"}]


def test_commands_on_targets_are_known() -> None:
    expected = {
        "plan",
        "apply",
        "drift",
        "status",
        "import",
        "rebuild",
        "show",
        "log",
        "clients",
        "sample",
        "registry get",
    }
    assert expected <= {*ON_TARGETS}


@pytest.mark.parametrize("name", ON_TARGETS)
def test_command_on_targets_has_a_time_limit(name: str) -> None:
    [timeout] = [action for action in PARSERS[name]._actions if "--timeout" in action.option_strings]
    assert (timeout.help or "").startswith("give up after this many seconds, with exit code 1")
