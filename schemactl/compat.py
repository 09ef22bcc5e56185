"""Both verdicts on a proposed schema: what the broker answers, and what happens to data.

A strategy names the pairs of reader and writer that must work:

    BACKWARD               the new schema reads what the latest version wrote
    FORWARD                the latest version reads what the new schema writes
    FULL                   both
    ..._TRANSITIVE         the same, with every live version
    ALWAYS_COMPATIBLE, ALWAYS_INCOMPATIBLE    protect nobody
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schemactl import broker, formats
from schemactl.broker.checkers import READ_BY_OLD, READS_OLD, TRANSITIVE
from schemactl.errors import InvalidSchema
from schemactl.model import (
    Breakage,
    CompatibilityStrategy,
    Direction,
    Incompatibility,
    Release,
    SchemaInfo,
    SchemaVersion,
    Verdict,
)


def compare(
    existing: Sequence[SchemaInfo | None],
    new: SchemaInfo,
    strategy: CompatibilityStrategy = CompatibilityStrategy.FULL,
    release: Release = Release.R4_0,
) -> Verdict:
    """Both verdicts on `new` after `existing`, oldest first, numbered from 0; None is a tombstone (see `judge`).

    >>> from schemactl import SchemaInfo, SchemaType, compare
    >>> old = SchemaInfo(SchemaType.AVRO, b'{"type": "enum", "name": "Status", "symbols": ["PAID", "OPEN"]}')
    >>> new = SchemaInfo(SchemaType.AVRO, b'{"type": "enum", "name": "Status", "symbols": ["PAID"]}')
    >>> verdict = compare([old], new)
    >>> verdict.broker.outcome.value, verdict.broker.version  # Pulsar never compares symbols
    ('ok', 1)
    >>> [(each.incompatibility.rule, each.incompatibility.pointer, each.direction) for each in verdict.data]
    [('MISSING_ENUM_SYMBOLS', '/symbols', 'new_reads_old')]
    """
    versions = [SchemaVersion(number, info) for number, info in enumerate(existing)]
    return judge(versions, new, strategy, release)


def judge(
    existing: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> Verdict:
    """Both verdicts on `new` as the next version of a topic.

    Args:
        existing: every version of the topic, oldest first, tombstones (`info` None) among them: only those after the
            last tombstone count, for the broker and for data.
        new: the proposed definition. Whatever its bytes are, there is a verdict.
        strategy: the one in force. UNDEFINED is no strategy of a topic; a broker set to it refuses.
        release: whose answers the broker's verdict predicts. The data verdict does not depend on it.
    """
    return Verdict(
        broker=broker.put(existing, new, strategy, release),
        test=broker.test(existing, new, strategy, release),
        data=breakages(existing, new, strategy),
    )


def breakages(
    existing: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy
) -> tuple[Breakage, ...] | None:
    """Every way in which `new` breaks a reader that `strategy` protects: () none; None: a definition does not parse.

    Newest version first; for each, new_reads_old before old_reads_new.
    """
    try:
        formats.identity(new)
        return tuple(_breakages(existing, new, strategy))
    except InvalidSchema:
        return None


def _breakages(
    existing: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy
) -> Iterator[Breakage]:
    versions = broker.live(existing)
    directions = _directions(strategy)
    if not directions:
        return
    for version in reversed(versions if strategy in TRANSITIVE else versions[-1:]):
        old = version.info
        if old is None:
            continue
        if old.type is not new.type:
            changed = Incompatibility(
                "SCHEMA_TYPE_CHANGED", "", f"schema type {old.type.name} became {new.type.name}"
            )
            yield Breakage(changed, "both" if len(directions) > 1 else directions[0], version.number)
            continue
        for direction in directions:
            reader, writer = (new, old) if direction == "new_reads_old" else (old, new)
            for found in formats.resolve(reader=reader, writer=writer):
                yield Breakage(found, direction, version.number)


def _directions(strategy: CompatibilityStrategy) -> list[Direction]:
    directions: list[Direction] = []
    if strategy in READS_OLD:
        directions.append("new_reads_old")
    if strategy in READ_BY_OLD:
        directions.append("old_reads_new")
    return directions
