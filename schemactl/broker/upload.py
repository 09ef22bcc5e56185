"""Answer uploads and compatibility tests like a broker's schema registry (SchemaRegistryServiceImpl with its data validator).

An upload is validated, then searched for among the live versions, then compared. The compatibility endpoint omits the search, and a
consumer's check also the validation, so the three often disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Final

from schemactl.broker.checkers import DEFAULT, create_checkers, select_existing_checkers
from schemactl.broker.exceptions import (
    INCOMPATIBLE,
    NOT_EXIST,
    NULL_POINTER,
    describe_exception,
    incompatible,
    is_error,
    to_answer,
)
from schemactl.broker.validation import SchemaData, identify_avro, read_stored, read_upload, validate
from schemactl.codec.avro_schema import blank_comments
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Answer, Outcome
from schemactl.core.policies import TRANSITIVE, CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions, get_next_number
from schemactl.formats import SPECS
from schemactl.formats.avro.json_text import read
from schemactl.formats.avro.plain import is_plain
from schemactl.formats.avro.schema import JavaException
from schemactl.formats.digest import compute_digest, get_known_digest, is_known_plain

NOT_FOUND: Final = -1
"""The number of a version that does not exist."""

_CONSUMER_READS_LATEST: Final = frozenset(
    {
        CompatibilityStrategy.BACKWARD,
        CompatibilityStrategy.FORWARD,
        CompatibilityStrategy.FORWARD_TRANSITIVE,
        CompatibilityStrategy.FULL,
    }
)


def find_version(versions: Sequence[SchemaVersion], info: SchemaInfo) -> int:
    """Return the number of the oldest live version with the same type and bytes (findSchemaVersion), or NOT_FOUND."""
    content = read_upload(info).content
    return next(
        (
            version.number
            for version in get_live_versions(versions)
            if version.info and read_stored(version.info).content == content
        ),
        NOT_FOUND,
    )


def find_unreadable_version(
    versions: Sequence[SchemaVersion], new: SchemaInfo, release: Release
) -> SchemaVersion | None:
    """Return the live version on which the search for an equal version fails, so that no upload can follow it.

    Return None without such a version, or if `new` itself does not parse.
    """
    data = read_upload(new)

    def has_failure(version: SchemaVersion) -> bool:
        try:
            VersionList([version], release).find_equal(data)
        except JavaException:
            return True
        return False

    if has_failure(SchemaVersion(0, new)):
        return None
    return next((version for version in get_live_versions(versions) if has_failure(version)), None)


def find_blocking_version(versions: Sequence[SchemaVersion], release: Release) -> SchemaVersion | None:
    """Return the live version that blocks every later upload of an AVRO, JSON or PROTOBUF definition, or None."""
    return find_unreadable_version(versions, _PROBE, release)


def would_block_uploads(versions: Sequence[SchemaVersion], new: SchemaInfo, release: Release) -> bool:
    """Return whether a broker would store `new` after `versions` under some strategy, and then fail on every later upload."""
    answer = VersionList(versions, release).put(new, CompatibilityStrategy.ALWAYS_COMPATIBLE)
    return answer.outcome is Outcome.OK and find_blocking_version([SchemaVersion(0, new)], release) is not None


_PROBE: Final = SchemaInfo(SchemaType.AVRO, b'"string"')
"""A valid definition: the search for an equal version parses the definitions of all three types before it compares types."""


class _Search:
    """A search for the oldest version with a key, which computes the keys of further versions only until one matches."""

    def __init__(self) -> None:
        self._number_by_key: dict[Hashable, int] = {}
        self._searched = 0

    def find(
        self, versions: Sequence[SchemaVersion], keys: Sequence[Hashable], key_of: Callable[[SchemaVersion], Hashable]
    ) -> int:
        """Return the number of the oldest version whose key is one of `keys`, or NOT_FOUND; versions may have been added since."""
        while self._searched < len(versions) and not any(key in self._number_by_key for key in keys):
            version = versions[self._searched]
            self._number_by_key.setdefault(key_of(version), version.number)
            self._searched += 1
        return min((self._number_by_key[key] for key in keys if key in self._number_by_key), default=NOT_FOUND)


class VersionList:
    """The versions of one topic as a broker has them, with its answers to uploads.

    Every stored definition is read once for all uploads, so that the answers to n uploads one after the other take n searches.

    Attributes:
        versions: every stored version, oldest first, including tombstones (`info` None).
        release: the broker's release.
    """

    def __init__(
        self, versions: Sequence[SchemaVersion], release: Release, *, checker_changes: tuple[str, ...] = ()
    ) -> None:
        """Create the list; `checker_changes`, as for `create_checkers`, may name checkers that the release does not have."""
        self.versions: list[SchemaVersion] = []
        self.release = release
        self._checkers = create_checkers(release, select_existing_checkers(release, checker_changes))
        self._clear()
        for version in versions:
            self.append(version)

    def append(self, version: SchemaVersion) -> None:
        """Add a version, or a tombstone, that the broker has stored after all others."""
        self.versions.append(version)
        if version.info is None:
            self._clear()
        else:
            self._live.append(version)
            self._known_plain_count += is_known_plain(version.info)

    def _clear(self) -> None:
        """Start without live versions, as after a tombstone."""
        self._live: list[SchemaVersion] = []
        # Stored definitions are read when an answer needs them: a plain one is found by the digest that the history of Git knows.
        self._data_by_number: dict[int, SchemaData] = {}
        self._known_plain_count = 0
        self._contents = _Search()
        self._identities = _Search()
        self._digests = _Search()

    def _read(self, version: SchemaVersion) -> SchemaData:
        data = self._data_by_number.get(version.number)
        if data is None:
            assert version.info  # noqa: S101  only live versions are read
            data = self._data_by_number[version.number] = read_stored(version.info)
        return data

    def put(self, new: SchemaInfo, strategy: CompatibilityStrategy) -> Answer:
        """Answer an upload, or the connect of a producer with the schema `new` if auto-update is on (putSchemaIfAbsent).

        Returns:
            OK with the number of the new version; UNCHANGED with the number of an equal version.
        """
        data = read_upload(new)
        try:
            validate(data, self.release)
            number = self.find_equal(data, get_known_digest(new) if is_known_plain(new) else None)
            if number != NOT_FOUND:
                return Answer(Outcome.UNCHANGED, number)
            if self._live:
                self._check(data, strategy)
            if data.data is None:
                raise _make_hash_error()
        except JavaException as thrown:
            return to_answer(thrown)
        return Answer(Outcome.OK, get_next_number(self.versions))

    def test(self, new: SchemaInfo, strategy: CompatibilityStrategy) -> Answer:
        """Answer like the compatibility endpoint (checkCompatible): never UNCHANGED, never with a version."""
        data = read_upload(new)
        try:
            validate(data, self.release)
            self._check(data, strategy)
        except JavaException as thrown:
            return to_answer(thrown)
        return Answer(Outcome.OK)

    def check_consumer(self, consumer: SchemaInfo, strategy: CompatibilityStrategy) -> Answer:
        """Answer the connect of a consumer with a schema to an active topic (checkConsumerCompatibility)."""
        if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
            return Answer(Outcome.OK)
        if not self._live:
            return to_answer(JavaException(NOT_EXIST, "Topic does not have schema to check"))
        data = read_upload(consumer)
        try:
            if strategy in _CONSUMER_READS_LATEST:
                self._check_latest(data, CompatibilityStrategy.BACKWARD)
            else:
                self._check_all(data, strategy)
        except JavaException as thrown:
            return to_answer(thrown)
        return Answer(Outcome.OK)

    def find_equal(self, new: SchemaData, plain_digest: bytes | None = None) -> int:
        """Return the number of the oldest live version that equals `new` (getSchemaVersionBySchemaData), or NOT_FOUND.

        Every AVRO, JSON and PROTOBUF definition up to that version is parsed, and its defaults are validated.

        Args:
            new: the definition.
            plain_digest: the digest of `new` if it is known to be plain.

        Raises:
            JavaException: if one of these definitions is invalid.
        """
        if not self._live:
            return NOT_FOUND
        if SPECS[new.type].language != "avro":
            if new.data is None:
                raise _make_hash_error()
            if SPECS[new.type].language == "protobuf":
                return self._find_protobuf(new)
            return self._contents.find(self._live, [new.content], lambda version: self._read(version).content)
        if plain_digest is not None and self._known_plain_count == len(self._live):
            return self._digests.find(self._live, [plain_digest], self._identify_by_digest)
        identity = identify_avro(new, self.release)
        if not self._known_plain_count or blank_comments(new.text) != new.text or not is_plain(read(new.text)):
            return self._identities.find(self._live, [identity], self._identify)
        plain_digest = compute_digest(SchemaInfo(new.type, new.data or b""))
        return self._digests.find(self._live, [plain_digest, identity], self._identify_by_digest)

    def _find_protobuf(self, new: SchemaData) -> int:
        """Return the number of the oldest live version with the type and bytes of a protobuf definition, or NOT_FOUND.

        Equal bytes have equal digests, so a `.proto` of the history with another digest is not compiled.
        """
        known_digests: set[bytes | None] = {None}
        with suppress(InvalidSchema):
            known_digests.add(compute_digest(SchemaInfo(new.type, new.data or b"")))
        for version in self._live:
            is_candidate = version.info is not None and get_known_digest(version.info) in known_digests
            if is_candidate and self._read(version).content == new.content:
                return version.number
        return NOT_FOUND

    def _identify(self, version: SchemaVersion) -> Hashable:
        """Return the identity of an Avro definition, and None for a definition of another language."""
        old = self._read(version)
        # Parsed before the types are compared, like in the broker, which throws for an invalid definition of either type.
        return identify_avro(old, self.release) if SPECS[old.type].language == "avro" else None

    def _identify_by_digest(self, version: SchemaVersion) -> Hashable:
        """Return the digest of a definition that is known to be plain, and else its identity.

        Plain definitions parse in every release, and are equal exactly if their digests are.
        """
        if version.info and is_known_plain(version.info):
            return get_known_digest(version.info)
        return self._identify(version)

    def _check(self, new: SchemaData, strategy: CompatibilityStrategy) -> None:
        if strategy in TRANSITIVE:
            self._check_all(new, strategy)
        else:
            self._check_latest(new, strategy)

    def _check_latest(self, new: SchemaData, strategy: CompatibilityStrategy) -> None:
        if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE or not self._live:
            return
        latest = self._read(self._live[-1])
        _require_type(new, latest)
        if latest.content != new.content:
            self._checkers.get(new.type, DEFAULT).check([latest], new, strategy, listed=False)

    def _check_all(self, new: SchemaData, strategy: CompatibilityStrategy) -> None:
        if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
            return
        existing = [self._read(version) for version in self._live]
        for old in existing:
            _require_type(new, old)
        try:
            self._checkers.get(new.type, DEFAULT).check(existing, new, strategy, listed=True)
        except JavaException as thrown:
            # Only here does the broker turn every exception into "incompatible".
            if thrown.exception == INCOMPATIBLE or is_error(thrown):
                raise
            raise incompatible(describe_exception(thrown)) from thrown


def _require_type(new: SchemaData, old: SchemaData) -> None:
    if old.type is not new.type:
        raise incompatible(f"Incompatible schema: exists schema type {old.type.name}, new schema type {new.type.name}")


def _make_hash_error() -> JavaException:
    return JavaException(NULL_POINTER, 'Cannot read the array length because "input" is null')
