"""Topics and versions as people name them on a command line: `orders`, `sales/orders`, `shop/sales/orders@3`."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NamedTuple

from schemactl.errors import UsageError
from schemactl.model import Catalog, SchemaInfo, SchemaVersion, Topic, TopicName

HELP = "topic's name, as much of it as is unambiguous: orders, sales/orders, shop/sales/orders"


class Chosen(NamedTuple):
    """A topic, and the version asked for; None: the definition in force."""

    topic: Topic
    version: SchemaVersion | None

    @property
    def info(self) -> SchemaInfo | None:
        """The definition: of the version, else the one in force, else (no longer declared) of the last version."""
        if self.version:
            return self.version.info
        if self.topic.schema is None and self.topic.versions:
            return self.topic.versions[-1].info
        return self.topic.schema


def choose(text: str, catalog: Catalog) -> Chosen:
    """The topic of `catalog`, and its version, that `text` names as TOPIC or TOPIC@N.

    Raises:
        UsageError: there is none, or several; says which come near.
    """
    name, at, number = text.rpartition("@")
    if not at or _candidates(text, catalog):
        return Chosen(find(text, catalog), None)
    topic = find(name, catalog)
    if not number.isdecimal():
        raise UsageError(
            f"{text}: expected the number of a version after the @, found {number!r}: {_numbers(topic)}"
        )
    return Chosen(topic, version_of(topic, int(number)))


def version_of(topic: Topic, number: int) -> SchemaVersion:
    """The topic's version of that number.

    Raises:
        UsageError: there is none; says which there are.
    """
    found = numbered(topic, number)
    if found is None:
        raise UsageError(f"{topic.name} has no version {number}: {_numbers(topic)}")
    return found


def numbered(topic: Topic, number: int | None) -> SchemaVersion | None:
    """The topic's version of that number, if it has one."""
    return next((version for version in topic.versions if version.number == number), None)


def number_of(version_bytes: str) -> int:
    """The version number in a message's `schema_version`, written in hex: 8 bytes, big-endian.

    Clients before 2.4.0 sent 64 bytes, of which the first 8 count (BookkeeperSchemaStorage.versionFromBytes).

    Raises:
        UsageError: the text is not that.
    """
    text = version_bytes.removeprefix("0x").replace(" ", "").replace(":", "")
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise UsageError(f"--version-bytes {version_bytes}: expected 16 hex digits") from None
    if not data:
        raise UsageError("--version-bytes is empty: a message without them was written without a schema")
    if len(data) not in (8, 64):
        raise UsageError(f"--version-bytes {version_bytes}: expected 8 bytes, found {len(data)}")
    return int.from_bytes(data[:8], "big", signed=True)


def find(text: str, catalog: Catalog) -> Topic:
    """The topic of `catalog` that `text` names, in full or by its last parts.

    Raises:
        UsageError: there is none, or several; says which come near.
    """
    candidates = _candidates(text, catalog)
    if len(candidates) == 1:
        return catalog.topics[candidates[0]]
    if candidates:
        raise UsageError(f"{text!r} may be {' or '.join(map(str, candidates))}: write more of its name")
    if not catalog.topics:
        raise UsageError(f"there is no topic {text!r}: the approved history declares none yet")
    name, at, _ = text.rpartition("@")
    if at and _candidates(name, catalog):
        raise UsageError(f"{text!r}: expected a topic alone, without a version: write {name}")
    # What was left out should not count as a difference: the name is compared with as many parts as it has.
    parts = text.count("/") + 1
    spelled = {"/".join(name.schema_id.split("/")[-parts:]): name for name in catalog.topics}
    near = get_close_matches(text, spelled, n=3)
    hint = f"did you mean {' or '.join(str(spelled[name]) for name in near)}?" if near else _some(catalog)
    raise UsageError(f"there is no topic {text!r} in the approved history: {hint}")


def _candidates(text: str, catalog: Catalog) -> list[TopicName]:
    """The topics that `text` names: the one of exactly that name, else those whose name ends so. A partition is its topic."""
    text = re.sub("-partition-[0-9]+$", "", text)
    exact = [name for name in catalog.topics if text in (str(name), name.schema_id)]
    if exact:
        return sorted(exact)
    return sorted(name for name in catalog.topics if f"/{name.schema_id}".endswith(f"/{text}"))


def _numbers(topic: Topic) -> str:
    known = f"0 to {topic.versions[-1].number}" if topic.versions else "none"
    return f"the approved history knows {known}"


def _some(catalog: Catalog) -> str:
    names = sorted(map(str, catalog.topics))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"it knows {', '.join(names[:5])}{more}"
