"""Answer uploads and compatibility tests like a broker's schema registry (SchemaRegistryServiceImpl with its data validator).

An upload is validated, then searched for among the live versions, then compared. The compatibility endpoint omits the search, and a
consumer's check also the validation, so the three often disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from schemactl.broker.checkers import DEFAULT, Checker, checkers
from schemactl.broker.exceptions import INCOMPATIBLE, NOT_EXIST, NULL_POINTER, incompatible, is_error, shown, to_answer
from schemactl.broker.validation import SchemaData, parse_avro_strictly, read_stored, read_upload, validate
from schemactl.core.findings import Answer, Outcome
from schemactl.core.policies import TRANSITIVE, CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, live, next_number
from schemactl.formats import SPECS
from schemactl.formats.avro.schema import JavaException, equal

_S = CompatibilityStrategy

NOT_FOUND: Final = -1
"""The number of a version that does not exist."""

_CONSUMER_READS_LATEST: Final = frozenset({_S.BACKWARD, _S.FORWARD, _S.FORWARD_TRANSITIVE, _S.FULL})


def put(
    versions: Sequence[SchemaVersion],
    new: SchemaInfo,
    strategy: CompatibilityStrategy,
    release: Release,
    *,
    optional: tuple[str, ...] = (),
) -> Answer:
    """Answer an upload, or the connect of a producer with the schema `new` if auto-update is on (putSchemaIfAbsent).

    Args:
        versions: every stored version, oldest first, including tombstones (`info` None).
        new: the definition.
        strategy: the strategy in force for the topic.
        release: the broker's release.
        optional: the class names of the optional checkers that the broker is configured with (`OPTIONAL_CHECKERS`).

    Returns:
        OK with the number of the new version; UNCHANGED with the number of an equal version.
    """
    return _call(_Request(versions, read_upload(new), strategy, release, checkers(release, optional)).put)


def test(
    versions: Sequence[SchemaVersion],
    new: SchemaInfo,
    strategy: CompatibilityStrategy,
    release: Release,
    *,
    optional: tuple[str, ...] = (),  # noqa: PT028  named after the endpoint, not a test of pytest
) -> Answer:
    """Answer like the compatibility endpoint (checkCompatible): never UNCHANGED, never with a version. Arguments as for `put`."""
    return _call(_Request(versions, read_upload(new), strategy, release, checkers(release, optional)).test)


def check_consumer(
    versions: Sequence[SchemaVersion],
    consumer: SchemaInfo,
    strategy: CompatibilityStrategy,
    release: Release,
    *,
    optional: tuple[str, ...] = (),
) -> Answer:
    """Answer the connect of a consumer with a schema to an active topic (checkConsumerCompatibility). Arguments as for `put`."""
    return _call(
        _Request(versions, read_upload(consumer), strategy, release, checkers(release, optional)).check_consumer
    )


def find_version(versions: Sequence[SchemaVersion], info: SchemaInfo) -> int:
    """Return the number of the oldest live version with the same type and bytes (findSchemaVersion), or NOT_FOUND."""
    content = read_upload(info).content
    return next(
        (version.number for version in live(versions) if version.info and read_stored(version.info).content == content),
        NOT_FOUND,
    )


def find_equal(versions: Sequence[SchemaVersion], new: SchemaData, release: Release) -> int:
    """Return the number of the oldest of the live `versions` that equals `new` (getSchemaVersionBySchemaData), or NOT_FOUND.

    Every AVRO, JSON and PROTOBUF definition up to that version is parsed, and its defaults are validated.

    Raises:
        JavaException: if one of them is invalid.
    """
    if not versions:
        return NOT_FOUND
    is_avro = SPECS[new.type].language == "avro"
    if is_avro:
        schema = parse_avro_strictly(new, release)
    elif new.data is None:
        raise _make_hash_error()
    for version in versions:
        if version.info is None:
            continue
        old = read_stored(version.info)
        if is_avro and SPECS[old.type].language == "avro":
            # Parsed before the types are compared, like in the broker, which throws for an invalid definition of either type.
            is_equal = equal(parse_avro_strictly(old, release), schema) and old.type is new.type
        else:
            is_equal = old.content == new.content
        if is_equal:
            return version.number
    return NOT_FOUND


def unreadable_version(versions: Sequence[SchemaVersion], new: SchemaInfo, release: Release) -> SchemaVersion | None:
    """Return the live version on which the search for an equal version fails, so that no upload can follow it.

    Return None without such a version, or if `new` itself does not parse.
    """
    data = read_upload(new)

    def fails(version: SchemaVersion) -> bool:
        try:
            find_equal([version], data, release)
        except JavaException:
            return True
        return False

    if fails(SchemaVersion(0, new)):
        return None
    return next((version for version in live(versions) if fails(version)), None)


def find_wedge(versions: Sequence[SchemaVersion], release: Release) -> SchemaVersion | None:
    """Return the live version that makes every later upload of an AVRO, JSON or PROTOBUF definition fail, or None."""
    return unreadable_version(versions, _PROBE, release)


def would_wedge(versions: Sequence[SchemaVersion], new: SchemaInfo, release: Release) -> bool:
    """Return whether a broker would store `new` after `versions` under some strategy, and then fail on every later upload."""
    answer = put(versions, new, CompatibilityStrategy.ALWAYS_COMPATIBLE, release)
    return answer.outcome is Outcome.OK and find_wedge([SchemaVersion(0, new)], release) is not None


_PROBE: Final = SchemaInfo(SchemaType.AVRO, b'"string"')
"""A valid definition: the search for an equal version parses the definitions of all three types before it compares types."""


def _call(request: Callable[[], Answer]) -> Answer:
    try:
        return request()
    except JavaException as thrown:
        return to_answer(thrown)


@dataclass(frozen=True, slots=True)
class _Request:
    """A definition for one topic of one broker. The methods raise JavaException where the broker throws."""

    versions: Sequence[SchemaVersion]
    new: SchemaData
    strategy: CompatibilityStrategy
    release: Release
    checkers: Mapping[SchemaType, Checker]

    def put(self) -> Answer:
        validate(self.new, self.release)
        number = find_equal(live(self.versions), self.new, self.release)
        if number != NOT_FOUND:
            return Answer(Outcome.UNCHANGED, number)
        existing = self._read_existing()
        if existing:
            self._check(existing)
        if self.new.data is None:
            raise _make_hash_error()
        return Answer(Outcome.OK, next_number(self.versions))

    def test(self) -> Answer:
        validate(self.new, self.release)
        self._check(self._read_existing())
        return Answer(Outcome.OK)

    def check_consumer(self) -> Answer:
        existing = self._read_existing()
        if self.strategy is _S.ALWAYS_COMPATIBLE:
            return Answer(Outcome.OK)
        if not existing:
            raise JavaException(NOT_EXIST, "Topic does not have schema to check")
        if self.strategy in _CONSUMER_READS_LATEST:
            self._check_latest(existing, _S.BACKWARD)
        else:
            self._check_all(existing)
        return Answer(Outcome.OK)

    def _read_existing(self) -> list[SchemaData]:
        return [read_stored(version.info) for version in live(self.versions) if version.info]

    def _check(self, existing: Sequence[SchemaData]) -> None:
        if self.strategy in TRANSITIVE:
            self._check_all(existing)
        else:
            self._check_latest(existing, self.strategy)

    def _check_latest(self, existing: Sequence[SchemaData], strategy: CompatibilityStrategy) -> None:
        if strategy is _S.ALWAYS_COMPATIBLE or not existing:
            return
        latest = existing[-1]
        self._require_type(latest)
        if latest.content != self.new.content:
            self._checker.check([latest], self.new, strategy, listed=False)

    def _check_all(self, existing: Sequence[SchemaData]) -> None:
        if self.strategy is _S.ALWAYS_COMPATIBLE:
            return
        for old in existing:
            self._require_type(old)
        try:
            self._checker.check(existing, self.new, self.strategy, listed=True)
        except JavaException as thrown:
            # Only here does the broker turn every exception into "incompatible".
            if thrown.exception == INCOMPATIBLE or is_error(thrown):
                raise
            raise incompatible(shown(thrown)) from thrown

    @property
    def _checker(self) -> Checker:
        return self.checkers.get(self.new.type, DEFAULT)

    def _require_type(self, old: SchemaData) -> None:
        if old.type is not self.new.type:
            raise incompatible(
                f"Incompatible schema: exists schema type {old.type.name}, new schema type {self.new.type.name}"
            )


def _make_hash_error() -> JavaException:
    return JavaException(NULL_POINTER, 'Cannot read the array length because "input" is null')
