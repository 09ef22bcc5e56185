"""Compute both verdicts on a proposed schema: the answer of a broker, and the effect on data.

A strategy names the pairs of reader and writer that must work:

    BACKWARD               the new schema reads the messages of the latest version
    FORWARD                the latest version reads the messages of the new schema
    FULL                   both
    ..._TRANSITIVE         the same, with every live version
    ALWAYS_COMPATIBLE, ALWAYS_INCOMPATIBLE    no pair
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import NamedTuple

from schemactl import formats
from schemactl.broker.upload import VersionList
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, DataState, Direction, Incompatibility, Verdict, order_sides
from schemactl.core.policies import READ_BY_OLD, READS_OLD, TRANSITIVE, CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion, get_live_versions


class DataVerdict(NamedTuple):
    """The effect of a proposed schema on data, with the attributes that `Verdict` describes."""

    state: DataState
    data: tuple[Breakage, ...] = ()
    misread: tuple[Breakage, ...] = ()
    approved: tuple[Breakage, ...] = ()


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
    >>> [(item.incompatibility.rule, item.incompatibility.pointer, item.direction) for item in verdict.data]
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
        existing: every version of the topic, oldest first, including tombstones (`info` is None): only the versions after the last
            tombstone count, for the broker and for data.
        new: the proposed definition. There is a verdict for any bytes.
        strategy: the strategy in force. UNDEFINED is not a topic's strategy; a broker that is configured with it rejects.
        release: the release whose answers the broker's verdict predicts. The data verdict depends on it only for names that the
            newest release rejects.
        checkers: the class names of the broker's optional checkers, and after a `!` of the default checkers that it does not have.
        by_any_release: whether to judge data also if neither the newest release nor `release` accepts a definition's names.
        in_force: the number of the version that is declared now, if it is not the latest (after a return to older content): data is
            compared with both.
    """
    versions = VersionList(existing, release, checker_changes=checkers)
    return Verdict(
        versions.put(new, strategy),
        versions.test(new, strategy),
        *judge_data(existing, new, strategy, release, by_any_release=by_any_release, in_force=in_force),
    )


def judge_data(
    existing: Sequence[SchemaVersion],
    new: SchemaInfo,
    strategy: CompatibilityStrategy,
    release: Release,
    *,
    by_any_release: bool = False,
    in_force: int | None = None,
) -> DataVerdict:
    """Return the effect of `new` on data; see `judge` for the arguments."""
    verdict = _compare_versions(existing, new, strategy, release=None if by_any_release else release, in_force=in_force)
    if strategy not in TRANSITIVE:
        return verdict
    breakages = (*verdict.data, *verdict.misread)
    return verdict._replace(approved=_select_approved(breakages, existing, new, _list_directions(strategy)))


def find_breakages(
    existing: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy
) -> tuple[Breakage, ...]:
    """Return every way in which `new` breaks a reader that `strategy` protects; empty if a definition does not parse.

    The newest version comes first; for each version, new_reads_old precedes old_reads_new. A definition parses if any release accepts
    its names.
    """
    return _compare_versions(existing, new, strategy).data


def find_changed_values(
    existing: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, *, language: str = ""
) -> tuple[Breakage, ...]:
    """Return every way in which a reader that `strategy` protects fails or gets another value than the written one.

    These are the results of `find_breakages`, then the misreadings that the latest version does not have as well, in the same order; empty if a
    definition does not parse. With a `language` whose client has separate rules, readers are these clients.
    """
    if formats.spec(new).has_client_rules(language):
        return _find_client_breakages(existing, new, strategy, language)
    verdict = _compare_versions(existing, new, strategy)
    approved: tuple[Breakage, ...] = ()
    if strategy in TRANSITIVE:
        approved = _select_approved(verdict.misread, existing, new, _list_directions(strategy))
    return (*verdict.data, *(breakage for breakage in verdict.misread if breakage not in approved))


def _find_client_breakages(
    existing: Sequence[SchemaVersion], new: SchemaInfo, strategy: CompatibilityStrategy, language: str
) -> tuple[Breakage, ...]:
    """Return the values that clients of a language do not read.

    Breakages with earlier versions are left out if the latest version has them as well.
    """

    def identify(breakage: Breakage) -> tuple[str, str, Direction]:
        return breakage.incompatibility.pointer, breakage.incompatibility.message, breakage.direction

    find = partial(formats.find_client_misreadings, language=language)
    directions = _list_directions(strategy)
    versions = _select_protected(existing, strategy, None)
    latest = versions[0][1] if versions else None
    client_breakages: list[Breakage] = []
    try:
        for number, old in versions:
            new_misreadings = [*_find_misreadings([(number, old)], new, directions, find)]
            if latest is not None and old is not latest:
                latest_misreadings = _find_misreadings([(number, old)], latest, directions, find)
                approved = {identify(misreading) for misreading in latest_misreadings}
                new_misreadings = [misreading for misreading in new_misreadings if identify(misreading) not in approved]
            client_breakages += new_misreadings
    except InvalidSchema:
        return ()
    return tuple(client_breakages)


def _compare_versions(
    existing: Sequence[SchemaVersion],
    new: SchemaInfo,
    strategy: CompatibilityStrategy,
    *,
    release: Release | None = None,
    in_force: int | None = None,
) -> DataVerdict:
    """Compare `new` with the versions that `strategy` protects, without regard to earlier approvals of its breakages.

    A definition parses if the newest release or `release` accepts its names, or any release if `release` is None.
    """
    directions = _list_directions(strategy)
    versions = _select_protected(existing, strategy, in_force)
    try:
        same_type = [old for _, old in versions if old.type is new.type]
        if release is not None:
            for info in (new, *same_type):
                formats.spec(info).require_newest(info, or_release=release)
        if not same_type:
            # It has to parse even without a definition to compare it with.
            next(formats.resolve(reader=new, writer=new), None)
        data = tuple(_find_breakages(versions, new, directions))
        misread = tuple(_find_misreadings(versions, new, directions))
    except InvalidSchema:
        return DataVerdict(DataState.UNPARSABLE)
    if data:
        return DataVerdict(DataState.BREAKING, data, misread)
    return DataVerdict(DataState.COMPATIBLE if directions else DataState.NOT_JUDGED, misread=misread)


def _select_protected(
    existing: Sequence[SchemaVersion], strategy: CompatibilityStrategy, in_force: int | None
) -> list[tuple[int, SchemaInfo]]:
    """Return the versions whose readers or messages `strategy` protects, newest first."""
    if not _list_directions(strategy):
        return []
    versions = get_live_versions(existing)
    if strategy not in TRANSITIVE:
        versions = tuple(version for version in versions if version is versions[-1] or version.number == in_force)
    return [(version.number, version.info) for version in reversed(versions) if version.info]


def _list_directions(strategy: CompatibilityStrategy) -> list[Direction]:
    directions: list[Direction] = []
    if strategy in READS_OLD:
        directions.append("new_reads_old")
    if strategy in READ_BY_OLD:
        directions.append("old_reads_new")
    return directions


def _find_breakages(
    versions: Sequence[tuple[int, SchemaInfo]], new: SchemaInfo, directions: Sequence[Direction]
) -> Iterator[Breakage]:
    for number, old in versions:
        if old.type is not new.type:
            message = f"schema type {old.type.name} became {new.type.name}"
            incompatibility = Incompatibility("SCHEMA_TYPE_CHANGED", "", message)
            yield Breakage(incompatibility, "both" if len(directions) > 1 else directions[0], number)
            continue
        for direction in directions:
            reader, writer = order_sides(direction, new=new, old=old)
            for incompatibility in formats.resolve(reader=reader, writer=writer):
                yield Breakage(incompatibility, direction, number)


def _find_misreadings(
    versions: Sequence[tuple[int, SchemaInfo]],
    new: SchemaInfo,
    directions: Sequence[Direction],
    find: Callable[..., Iterable[Incompatibility]] = formats.find_misreadings,
) -> Iterator[Breakage]:
    for number, old in versions:
        for direction in directions:
            reader, writer = order_sides(direction, new=new, old=old)
            for misreading in find(reader=reader, writer=writer):
                yield Breakage(misreading, direction, number)


def _select_approved(
    breakages: Sequence[Breakage], existing: Sequence[SchemaVersion], new: SchemaInfo, directions: Sequence[Direction]
) -> tuple[Breakage, ...]:
    """Return the breakages with earlier versions that the latest version has as well, at the same field in the same direction."""
    *earlier_versions, latest = get_live_versions(existing) or (None,)
    if latest is None or latest.info is None:
        return ()
    earlier = {version.number: version.info for version in earlier_versions if version and version.info}

    approved = []
    by_version = groupby((breakage for breakage in breakages if breakage.against in earlier), lambda item: item.against)
    for number, breakages_of_version in by_version:
        old_info = earlier[number]
        old_version = [(number, old_info)]
        latest_breakages = chain(
            _find_breakages(old_version, latest.info, directions),
            _find_misreadings(old_version, latest.info, directions),
        )
        try:
            approved_keys = {
                formats.identify_breakage(breakage, new=latest.info, old=old_info) for breakage in latest_breakages
            }
        except InvalidSchema:
            # A latest version that does not parse has another type than the new definition.
            continue
        approved += [
            breakage
            for breakage in breakages_of_version
            if formats.identify_breakage(breakage, new=new, old=old_info) in approved_keys
        ]
    return tuple(approved)
