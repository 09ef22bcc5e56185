"""Topics by the numbers of a target, with the versions that Git does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from schemactl import formats
from schemactl.core.catalog import Catalog, Client, LazyMapping, Topic
from schemactl.core.errors import DeclarationError, InvalidSchema
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion
from schemactl.declare.numbers_file import contradictions
from schemactl.declare.reader import Declared
from schemactl.declare.target_numbers import TargetNumbers, TargetVersion, target_number, target_versions
from schemactl.history import Forked, History


def expect_agreement(records: Iterable[TargetNumbers], declared: Catalog, forked: Forked) -> None:
    """Raise DeclarationError where a numbers file contradicts Git."""
    histories = [forked.approved.catalog, *([forked.stepwise.catalog] if forked.stepwise else [])]
    if problems := contradictions(records, declared, histories):
        raise DeclarationError(problems)


def numbered(
    record: TargetNumbers, declared: Declared, forked: Forked, note: Callable[[object], None]
) -> tuple[Declared, Forked]:
    """Return the declarations and the history with the version numbers of a target, as its numbers file records them.

    `note` is called for versions that cannot be compared.
    """
    git = forked.approved.catalog
    for name, number in _incomparable(record):
        note(
            f"{record.target}'s version {number} of {name} is not compared with: its definition does not parse"
        )

    def seen(history: History) -> History:
        return history.with_catalog(on_target(history.catalog, record, git))

    approved = seen(forked.approved)
    base = approved if forked.base is forked.approved else seen(forked.base)
    stepwise = seen(forked.stepwise) if forked.stepwise else None
    return (
        replace(declared, catalog=on_target(declared.catalog, record, git)),
        forked._replace(approved=approved, base=base, stepwise=stepwise),
    )


def on_target(catalog: Catalog, numbers: TargetNumbers, approved: Catalog) -> Catalog:
    """Return `catalog` with the lists of versions that the target of `numbers` has once everything approved is applied.

    A number taken by a deletion is a tombstone. The versions that readers are pinned to, and clients are built with, get the
    target's numbers, too. A definition that does not parse is left out.
    """

    def topic(name: TopicName) -> Topic | None:
        found = catalog.topics.get(name)
        if found is None or name not in numbers.topics:
            return found
        git = approved.versions(name)
        meant = target_versions(replace(found, versions=git), numbers)
        return replace(
            found,
            versions=tuple(_versions(found, numbers)),
            reader=found.reader if found.reader == "latest" else _number(found.reader, meant, git),
            clients=tuple(_client(each, meant, git) for each in found.clients),
        )

    return replace(catalog, topics=LazyMapping(lambda: [*catalog.topics], topic))


def _incomparable(numbers: TargetNumbers) -> Iterator[tuple[TopicName, int]]:
    for name, recorded in sorted(numbers.topics.items()):
        for entry in recorded.entries.values():
            if entry.foreign and not entry.deleted and not _is_comparable(entry.foreign):
                yield name, entry.number


def _versions(topic: Topic, numbers: TargetNumbers) -> list[SchemaVersion]:
    entries = numbers.topics[topic.name].entries
    found = []
    for each in target_versions(topic, numbers):
        entry = entries.get(each.number)
        info = each.info or (entry.foreign if entry else None)
        if each.deleted or (each.git and each.git.info is None):
            found.append(SchemaVersion(each.number, None))
        elif info and (each.git or _is_comparable(info)):
            found.append(SchemaVersion(each.number, info, each.commit))
    return found


def _client(client: Client, meant: Sequence[TargetVersion], versions: Sequence[SchemaVersion]) -> Client:
    """Return the client as it is built by the target's numbers."""
    if client.versions is None:
        return client
    first, last = (_number(each, meant, versions) for each in client.versions)
    return replace(client, versions=(first, last))


def _number(git: int, meant: Sequence[TargetVersion], versions: Sequence[SchemaVersion]) -> int:
    """Return the target's number for Git's version `git`, which may be one that comes after all of these."""
    if not meant:
        return git
    known = target_number(meant, git)
    return meant[-1].number + 1 + git - len(versions) if known is None else known


def _is_comparable(info: SchemaInfo) -> bool:
    try:
        formats.identity(info)
    except InvalidSchema:
        return False
    return True
