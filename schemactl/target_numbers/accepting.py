"""What a target holds, as its record should say it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from schemactl.changes import Contents, identity, unstamped
from schemactl.model import SchemaVersion, live
from schemactl.target_numbers.values import Entry, TopicNumbers


def accept(
    git: Sequence[SchemaVersion],
    entries: Sequence[SchemaVersion],
    before: TopicNumbers | None,
    *,
    reason: str,
    today: date,
) -> TopicNumbers | None:
    """The record of a topic that says what its registry holds; None: its numbers are Git's, so nothing is to be recorded.

    Every number whose meaning is not Git's own is listed, and with any of these the last number of all, so that what comes
    later is counted from there. Of a number that the registry does not show, the record says only that it was deleted: the list may
    have been lost and begun anew since it was looked at last, so that what stood there before need not be what was deleted.
    An entry that says the same as before stays as it is, and so does what somebody recorded of a deleted number.

    Args:
        git: Git's versions.
        entries: the registry's list, in order of number, tombstones among them.
        before: the record so far.
        reason: why it is accepted.
        today: the day on which it is.
    """
    old = before.entries if before else {}
    known = Contents(git)
    readable = {entry.number for entry in live(entries)}
    found: dict[int, Entry] = {}
    for entry in entries:
        number = entry.number
        new = Entry(number, deleted=number not in readable, reason=reason, accepted=today)
        if entry.info:
            version = known.find(entry.info)
            new = _saying(new, version.number if version else None, entry)
        still = number in old and old[number].deleted == new.deleted and _holds(old[number], entry, known)
        found[number] = old[number] if still else new
    listed = {number: each for number, each in found.items() if each.git != number or each.deleted}
    if not listed:
        return None
    last = max(found)
    return TopicNumbers(dict(sorted({**listed, last: found[last]}.items())))


def _saying(entry: Entry, git: int | None, held: SchemaVersion) -> Entry:
    """`entry` with what its number stands for: Git's version, else the definition that is held."""
    foreign = unstamped(held.info) if git is None and held.info else None
    return Entry(
        entry.number,
        git=git,
        foreign=foreign,
        deleted=entry.deleted,
        reason=entry.reason,
        accepted=entry.accepted,
    )


def _holds(old: Entry, entry: SchemaVersion, known: Contents) -> bool:
    """Whether what was recorded of a number is still so; what was foreign may have been approved since."""
    if entry.info is None:
        return True
    if old.foreign:
        return identity(old.foreign) == identity(entry.info)
    found = known.find(entry.info)
    return found is not None and found.number == old.git
