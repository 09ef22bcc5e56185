"""What a registry answers, in its own order (SchemaRegistryServiceImpl behind its data validator).

An upload is validated, then looked for among the live versions, then compared; the compatibility endpoint leaves the
look-up out, and a consumer's check the validation, too. That is why the three often disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from schemactl.broker import avro
from schemactl.broker.checkers import DEFAULT, TRANSITIVE, checkers
from schemactl.broker.data import SchemaData, stored, uploaded
from schemactl.broker.exceptions import (
    INCOMPATIBLE,
    NOT_EXIST,
    NULL_POINTER,
    answer,
    incompatible,
    is_error,
    shown,
)
from schemactl.broker.validation import validate
from schemactl.formats.avro.equality import equal
from schemactl.formats.avro.java import Thrown
from schemactl.model import (
    AVRO_DESCRIBED,
    Answer,
    CompatibilityStrategy,
    Outcome,
    Release,
    SchemaInfo,
    SchemaVersion,
)

_S = CompatibilityStrategy

NOT_FOUND: Final = -1
"""The number of a version that does not exist."""

_CONSUMER_READS_LATEST: Final = frozenset({_S.BACKWARD, _S.FORWARD, _S.FORWARD_TRANSITIVE, _S.FULL})


def put(
    versions: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> Answer:
    """The answer to an upload, or to a producer that brings `new` where schemas update themselves (putSchemaIfAbsent).

    Args:
        versions: every stored version, oldest first, tombstones (`info` None) among them.
        new: the definition.
        strategy: the one in force for the topic.
        release: of the broker.

    Returns:
        OK with the number of the version that is appended; UNCHANGED with the number of an equal one.
    """
    return _answered(_put, versions, uploaded(new), strategy, release)


def test(
    versions: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> Answer:
    """The answer of the compatibility endpoint (checkCompatible): never UNCHANGED, never a version."""
    return _answered(_test, versions, uploaded(new), strategy, release)


def check_consumer(
    versions: Sequence[SchemaVersion], consumer: SchemaInfo, strategy: CompatibilityStrategy, release: Release
) -> Answer:
    """The answer to a consumer that brings a schema to an active topic (checkConsumerCompatibility)."""
    return _answered(_check_consumer, versions, uploaded(consumer), strategy, release)


def find_version(versions: Sequence[SchemaVersion], info: SchemaInfo) -> int:
    """The number of the oldest live version with the same type and bytes (findSchemaVersion); -1: there is none."""
    wanted = uploaded(info).hash
    return next(
        (
            version.number
            for version in live(versions)
            if version.info and stored(version.info).hash == wanted
        ),
        NOT_FOUND,
    )


def live(versions: Sequence[SchemaVersion]) -> tuple[SchemaVersion, ...]:
    """The versions after the last tombstone: all that a broker compares with (trimDeletedSchemaAndGetList)."""
    deleted = [position for position, version in enumerate(versions) if version.info is None]
    return tuple(versions[deleted[-1] + 1 :] if deleted else versions)


def find_equal(versions: Sequence[SchemaVersion], new: SchemaData, release: Release) -> int:
    """The number of the oldest of the live `versions` that equals `new` (getSchemaVersionBySchemaData), or -1.

    Every AVRO, JSON and PROTOBUF definition on the way is parsed with its defaults validated.

    Raises:
        Thrown: one of them does not parse so.
    """
    if not versions:
        return NOT_FOUND
    if new.type in AVRO_DESCRIBED:
        schema = avro.parse_strictly(new, release)
    elif new.data is None:
        raise _no_bytes_to_hash()
    for version in versions:
        if version.info is None:
            continue
        old = stored(version.info)
        if new.type in AVRO_DESCRIBED and old.type in AVRO_DESCRIBED:
            # Read before the types are compared, as the broker does: what does not parse throws whatever its type.
            same = equal(avro.parse_strictly(old, release), schema) and old.type is new.type
        else:
            same = old.hash == new.hash
        if same:
            return version.number
    return NOT_FOUND


Question = Callable[[Sequence[SchemaVersion], SchemaData, CompatibilityStrategy, Release], Answer]


def _answered(
    question: Question,
    versions: Sequence[SchemaVersion],
    data: SchemaData,
    strategy: CompatibilityStrategy,
    release: Release,
) -> Answer:
    try:
        return question(versions, data, strategy, release)
    except Thrown as thrown:
        return answer(thrown)


def _put(
    versions: Sequence[SchemaVersion], new: SchemaData, strategy: CompatibilityStrategy, release: Release
) -> Answer:
    validate(new, release)
    known = find_equal(live(versions), new, release)
    if known != NOT_FOUND:
        return Answer(Outcome.UNCHANGED, known)
    existing = _live_data(versions)
    if existing:
        _check(existing, new, strategy, release)
    if new.data is None:
        raise _no_bytes_to_hash()
    return Answer(Outcome.OK, versions[-1].number + 1 if versions else 0)


def _test(
    versions: Sequence[SchemaVersion], new: SchemaData, strategy: CompatibilityStrategy, release: Release
) -> Answer:
    validate(new, release)
    _check(_live_data(versions), new, strategy, release)
    return Answer(Outcome.OK)


def _check_consumer(
    versions: Sequence[SchemaVersion], new: SchemaData, strategy: CompatibilityStrategy, release: Release
) -> Answer:
    existing = _live_data(versions)
    if strategy is _S.ALWAYS_COMPATIBLE:
        return Answer(Outcome.OK)
    if not existing:
        raise Thrown(NOT_EXIST, "Topic does not have schema to check")
    if strategy in _CONSUMER_READS_LATEST:
        _check_latest(existing, new, _S.BACKWARD, release)
    else:
        _check_all(existing, new, strategy, release)
    return Answer(Outcome.OK)


def _live_data(versions: Sequence[SchemaVersion]) -> list[SchemaData]:
    return [stored(version.info) for version in live(versions) if version.info]


def _check(
    existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, release: Release
) -> None:
    if strategy in TRANSITIVE:
        _check_all(existing, new, strategy, release)
    else:
        _check_latest(existing, new, strategy, release)


def _check_latest(
    existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, release: Release
) -> None:
    if strategy is _S.ALWAYS_COMPATIBLE or not existing:
        return
    latest = existing[-1]
    if latest.type is not new.type:
        raise _other_type(latest, new)
    if latest.hash != new.hash:
        checkers(release).get(new.type, DEFAULT).check([latest], new, strategy, listed=False)


def _check_all(
    existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, release: Release
) -> None:
    if strategy is _S.ALWAYS_COMPATIBLE:
        return
    for old in existing:
        if old.type is not new.type:
            raise _other_type(old, new)
    try:
        checkers(release).get(new.type, DEFAULT).check(existing, new, strategy, listed=True)
    except Thrown as thrown:
        # Here, and here only, every exception counts as "incompatible".
        if thrown.exception == INCOMPATIBLE or is_error(thrown):
            raise
        raise incompatible(shown(thrown)) from thrown


def _other_type(old: SchemaData, new: SchemaData) -> Thrown:
    return incompatible(
        f"Incompatible schema: exists schema type {old.type.name}, new schema type {new.type.name}"
    )


def _no_bytes_to_hash() -> Thrown:
    return Thrown(NULL_POINTER, 'Cannot read the array length because "input" is null')
