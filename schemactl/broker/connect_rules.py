"""The rows of Pulsar's rules on clients that connect: `admit` names the one behind each decision.

docs/reference/connects.md has them, which this module reads. ServerCnx.handleProducer, ServerCnx.handleSubscribe and AbstractTopic are
their source; tests compare the rows with real brokers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_ROW: Final = re.compile(r"^\| ([PCJ]\d+) \| (.+?) \| (.+?) \| \[\w+\]\((\S+)\) \|$", re.MULTILINE)


class ConnectRule(NamedTuple):
    """A row: which client connects where, what the broker does, and the address of the class that decides it."""

    when: str
    then: str
    source: str


@cache
def connect_rules() -> Mapping[str, ConnectRule]:
    """Return the rows by their ids: of producers, of consumers and readers, and of Java's client."""
    # In a wheel the page lies beside this module.
    page = Path(__file__).with_name("_connects.md")
    if not page.is_file():
        page = Path(__file__).parents[2] / "docs" / "reference" / "connects.md"
    return {row: ConnectRule(*cells) for row, *cells in _ROW.findall(page.read_text(encoding="utf-8"))}
