"""The registry's answers to uploads and compatibility tests (SchemaRegistryServiceImpl behind its data validator).

An upload is validated, then looked for among the live versions, then compared; the compatibility endpoint leaves the
look-up out, and a consumer's check the validation, too. That is why the three often disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from schemactl.broker.checkers import DEFAULT, Checker, checkers
from schemactl.broker.exceptions import INCOMPATIBLE, NOT_EXIST, NULL_POINTER, answer, incompatible, is_error, shown
from schemactl.broker.validation import SchemaData, parse_avro_strictly, stored, uploaded, validate
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
    """Return the answer to an upload, or to a producer that brings `new` where schemas update themselves (putSchemaIfAbsent).

    Args:
        versions: every stored version, oldest first, tombstones (`info` None) among them.
        new: the definition.
        strategy: the one in force for the topic.
        release: of the broker.
        optional: the class names of checkers that it is configured with beyond its default ones (`checkers.OPTIONAL`).

    Returns:
        OK with the number of the version that is appended; UNCHANGED with the number of an equal one.
    """
    return _answer(_Inquiry(versions, uploaded(new), strategy, release, checkers(release, optional)).put)


def test(
    versions: Sequence[SchemaVersion],
    new: SchemaInfo,
    strategy: CompatibilityStrategy,
    release: Release,
    *,
    optional: tuple[str, ...] = (),  # noqa: PT028  it is the endpoint's name, and no test of pytest's
) -> Answer:
    """Return the answer of the compatibility endpoint (checkCompatible): never UNCHANGED, never a version."""
    return _answer(_Inquiry(versions, uploaded(new), strategy, release, checkers(release, optional)).test)


def check_consumer(
    versions: Sequence[SchemaVersion],
    consumer: SchemaInfo,
    strategy: CompatibilityStrategy,
    release: Release,
    *,
    optional: tuple[str, ...] = (),
) -> Answer:
    """Return the answer to a consumer that brings a schema to an active topic (checkConsumerCompatibility)."""
    return _answer(_Inquiry(versions, uploaded(consumer), strategy, release, checkers(release, optional)).consumer)


def find_version(versions: Sequence[SchemaVersion], info: SchemaInfo) -> int:
    """Return the number of the oldest live version with the same type and bytes (findSchemaVersion); -1: there is none."""
    wanted = uploaded(info).content
    return next(
        (version.number for version in live(versions) if version.info and stored(version.info).content == wanted),
        NOT_FOUND,
    )


def find_equal(versions: Sequence[SchemaVersion], new: SchemaData, release: Release) -> int:
    """Return the number of the oldest of the live `versions` that equals `new` (getSchemaVersionBySchemaData), or -1.

    Every AVRO, JSON and PROTOBUF definition on the way is parsed with its defaults validated.

    Raises:
        JavaException: one of them does not parse so.
    """
    if not versions:
        return NOT_FOUND
    is_avro = SPECS[new.type].language == "avro"
    if is_avro:
        schema = parse_avro_strictly(new, release)
    elif new.data is None:
        raise _no_bytes_to_hash()
    for version in versions:
        if version.info is None:
            continue
        old = stored(version.info)
        if is_avro and SPECS[old.type].language == "avro":
            # Read before the types are compared, as the broker does: what does not parse throws whatever its type.
            same = equal(parse_avro_strictly(old, release), schema) and old.type is new.type
        else:
            same = old.content == new.content
        if same:
            return version.number
    return NOT_FOUND


def unreadable_version(versions: Sequence[SchemaVersion], new: SchemaInfo, release: Release) -> SchemaVersion | None:
    """Return the live version on which the search for one that equals `new` fails, so that no upload can follow it.

    None: there is no such version, or `new` itself does not parse.
    """
    wanted = uploaded(new)

    def fails(version: SchemaVersion) -> bool:
        try:
            find_equal([version], wanted, release)
        except JavaException:
            return True
        return False

    if fails(SchemaVersion(0, new)):
        return None
    return next((version for version in live(versions) if fails(version)), None)


def _answer(question: Callable[[], Answer]) -> Answer:
    try:
        return question()
    except JavaException as thrown:
        return answer(thrown)


@dataclass(frozen=True, slots=True)
class _Inquiry:
    """One definition brought to one topic of one broker. Its questions raise JavaException where the broker does."""

    versions: Sequence[SchemaVersion]
    new: SchemaData
    strategy: CompatibilityStrategy
    release: Release
    checkers: Mapping[SchemaType, Checker]

    def put(self) -> Answer:
        validate(self.new, self.release)
        known = find_equal(live(self.versions), self.new, self.release)
        if known != NOT_FOUND:
            return Answer(Outcome.UNCHANGED, known)
        existing = self._existing()
        if existing:
            self._check(existing)
        if self.new.data is None:
            raise _no_bytes_to_hash()
        return Answer(Outcome.OK, next_number(self.versions))

    def test(self) -> Answer:
        validate(self.new, self.release)
        self._check(self._existing())
        return Answer(Outcome.OK)

    def consumer(self) -> Answer:
        existing = self._existing()
        if self.strategy is _S.ALWAYS_COMPATIBLE:
            return Answer(Outcome.OK)
        if not existing:
            raise JavaException(NOT_EXIST, "Topic does not have schema to check")
        if self.strategy in _CONSUMER_READS_LATEST:
            self._check_latest(existing, _S.BACKWARD)
        else:
            self._check_all(existing)
        return Answer(Outcome.OK)

    def _existing(self) -> list[SchemaData]:
        return [stored(version.info) for version in live(self.versions) if version.info]

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
            # Here, and here only, every exception counts as "incompatible".
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


def _no_bytes_to_hash() -> JavaException:
    return JavaException(NULL_POINTER, 'Cannot read the array length because "input" is null')
