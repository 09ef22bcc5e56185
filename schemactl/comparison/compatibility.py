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

from schemactl import formats
from schemactl.broker import upload
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, DataState, Direction, Incompatibility, Verdict
from schemactl.core.policies import READ_BY_OLD, READS_OLD, TRANSITIVE, CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion, live


def compare(
    existing: Sequence[SchemaInfo | None],
    new: SchemaInfo,
    strategy: CompatibilityStrategy = CompatibilityStrategy.FULL,
    release: Release = Release.R4_0,
) -> Verdict:
    """Return both verdicts on `new` after `existing`, oldest first, numbered from 0; None is a tombstone (see `judge`).

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
    existing: Sequence[SchemaVersion],
    new: SchemaInfo,
    strategy: CompatibilityStrategy,
    release: Release,
    *,
    checkers: tuple[str, ...] = (),
    by_any_release: bool = False,
    in_force: int | None = None,
) -> Verdict:
    """Return both verdicts on `new` as the next version of a topic.

    Args:
        existing: every version of the topic, oldest first, tombstones (`info` None) among them: only those after the
            last tombstone count, for the broker and for data.
        new: the proposed definition. Whatever its bytes are, there is a verdict.
        strategy: the one in force. UNDEFINED is no strategy of a topic; a broker set to it refuses.
        release: whose answers the broker's verdict predicts. The data verdict does not depend on it.
        checkers: class names of Pulsar's optional checkers that the broker is configured with.
        by_any_release: data is judged also where only an older release accepts a definition's names.
        in_force: the number of the version that is declared now. After a return to older content that is not the latest, and
            data is compared with both. None: it is the latest.
    """
    new.load()
    for version in existing:
        version.load()
    state, found = _judge_data(existing, new, strategy, by_any_release=by_any_release, in_force=in_force)
    return Verdict(
        broker=upload.put(existing, new, strategy, release, optional=checkers),
        test=upload.test(existing, new, strategy, release, optional=checkers),
        state=state,
        data=found,
    )


def breakages(
    existing: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, *, by_any_release: bool = False
) -> tuple[Breakage, ...]:
    """Return every way in which `new` breaks a reader that `strategy` protects; none where a definition does not parse.

    Newest version first; for each, new_reads_old before old_reads_new. The newest release's rules on names decide what
    parses, unless any release's do.
    """
    return _judge_data(existing, new, strategy, by_any_release=by_any_release)[1]


def _judge_data(
    existing: Sequence[SchemaVersion],
    new: SchemaInfo,
    strategy: CompatibilityStrategy,
    *,
    by_any_release: bool,
    in_force: int | None = None,
) -> tuple[DataState, tuple[Breakage, ...]]:
    versions = _protected(existing, strategy, in_force)
    try:
        alike = [old for _, old in versions if old.type is new.type]
        if not by_any_release:
            for info in (new, *alike):
                formats.spec(info).require_newest(info)
        if not alike:
            # It has to parse, also where there is nothing to compare it with.
            next(formats.resolve(reader=new, writer=new), None)
        found = tuple(_breakages(versions, new, _directions(strategy)))
    except InvalidSchema:
        return DataState.UNPARSABLE, ()
    if found:
        return DataState.BREAKING, found
    return (DataState.COMPATIBLE if _directions(strategy) else DataState.NOT_JUDGED), ()


def _protected(
    existing: Sequence[SchemaVersion], strategy: CompatibilityStrategy, in_force: int | None
) -> list[tuple[int, SchemaInfo]]:
    """Return the versions whose readers or messages `strategy` looks at, newest first."""
    if not _directions(strategy):
        return []
    versions = live(existing)
    if strategy not in TRANSITIVE:
        versions = tuple(version for version in versions if version is versions[-1] or version.number == in_force)
    return [(version.number, version.info) for version in reversed(versions) if version.info]


def _breakages(
    versions: Sequence[tuple[int, SchemaInfo]], new: SchemaInfo, directions: Sequence[Direction]
) -> Iterator[Breakage]:
    for number, old in versions:
        if old.type is not new.type:
            what = f"schema type {old.type.name} became {new.type.name}"
            changed = Incompatibility("SCHEMA_TYPE_CHANGED", "", what)
            yield Breakage(changed, "both" if len(directions) > 1 else directions[0], number)
            continue
        for direction in directions:
            reader, writer = (new, old) if direction == "new_reads_old" else (old, new)
            for found in formats.resolve(reader=reader, writer=writer):
                yield Breakage(found, direction, number)


def _directions(strategy: CompatibilityStrategy) -> list[Direction]:
    directions: list[Direction] = []
    if strategy in READS_OLD:
        directions.append("new_reads_old")
    if strategy in READ_BY_OLD:
        directions.append("old_reads_new")
    return directions
