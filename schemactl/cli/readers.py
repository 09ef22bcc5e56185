"""Who can read whom among the versions of a topic, and since when not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.wording import cite, versions

if TYPE_CHECKING:
    from schemactl.model import SchemaInfo, SchemaVersion
    from schemactl.verdicts import Direction, Incompatibility

Role = Literal["reader", "writer"]

_SHOWN: Final = 20
"""So many reasons are told in words."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Versions in a row that a definition cannot read, or that cannot read it.

    Attributes:
        numbers: of those versions, ascending.
        border: the one of them nearest to the definition: where it begins, seen from there.
        found: the reasons at the border.
        told: the same in words.
    """

    numbers: tuple[int, ...]
    border: SchemaVersion
    found: tuple[Incompatibility, ...]
    told: tuple[str, ...]

    @property
    def strict_only(self) -> bool:
        """Whether Pulsar's Java readers get through all the same."""
        return _is_strict(self.found)

    def value(self) -> dict[str, Any]:
        """For other programs."""
        commit = self.border.commit
        return {
            "versions": list(self.numbers),
            "border": self.border.number,
            "commit": {"id": commit.id, "time_s": commit.time_s, "subject": commit.subject}
            if commit
            else None,
            "strict_readers_only": self.strict_only,
            "reasons": [
                {**reason_value(each), "told": told} for each, told in zip(self.found, self.told, strict=True)
            ],
        }

    def lines(self) -> Iterator[str]:
        """In words, the first reasons indented: `versions 5-6, from version 5 (9f2c1abcd, 2026-03-02) "Count the orders"`."""
        end = "from" if self.border.number == self.numbers[0] else "up to"
        row = f"{versions(self.numbers)}, {end} " if len(self.numbers) > 1 else ""
        subject = f' "{self.border.commit.subject}"' if self.border.commit else ""
        aside = "; Java can, strict readers cannot" if self.strict_only else ""
        yield f"{row}{cite(self.border)}{subject}{aside}"
        for each, told in zip(self.found[:_SHOWN], self.told[:_SHOWN], strict=True):
            yield f"  {each.rule}: {told}"
        left = len(self.found) - _SHOWN
        if left > 0:
            yield f"  and {left:,} {'reason' if left == 1 else 'reasons'} more: `--format json` has them all"


def reason_value(each: Incompatibility) -> dict[str, Any]:
    """An incompatibility for other programs."""
    return {
        "rule": each.rule,
        "pointer": each.pointer,
        "message": each.message,
        "strict_only": each.strict_only,
    }


def incompatibilities(*, reader: SchemaInfo, writer: SchemaInfo) -> list[Incompatibility]:
    """Every reason why `reader` may fail on a message of `writer`."""
    from schemactl.formats import resolve
    from schemactl.verdicts import Incompatibility

    if reader.type is not writer.type:
        return [
            Incompatibility("SCHEMA_TYPE_CHANGED", "", f"{reader.type.name} cannot read {writer.type.name}")
        ]
    return list(resolve(reader=reader, writer=writer))


def gaps(info: SchemaInfo, at: int, line: Sequence[SchemaVersion], *, role: Role) -> list[Gap]:
    """The versions of `line` that `info` cannot read as the reader, or that cannot read it as the writer.

    `at` is the number of the version that `info` is a text of.
    """
    found: list[list[tuple[SchemaVersion, list[Incompatibility]]]] = []
    for version in line:
        if version.info is None:
            continue
        other = version.info
        pair = (info, other) if role == "reader" else (other, info)
        bad = incompatibilities(reader=pair[0], writer=pair[1])
        if not bad:
            continue
        # A row ends where a version in between can be read, where it is another sort of reader that cannot, and here.
        last, before = found[-1][-1] if found else (None, [])
        if (
            last
            and last.number == version.number - 1
            and not last.number <= at < version.number
            and _is_strict(before) == _is_strict(bad)
        ):
            found[-1].append((version, bad))
        else:
            found.append([(version, bad)])
    result = []
    for row in found:
        border, bad = row[0] if row[0][0].number > at else row[-1]
        told = tuple(_told(each, info, at, border, role) for each in bad)
        result.append(Gap(tuple(version.number for version, _ in row), border, tuple(bad), told))
    return result


def _is_strict(found: Sequence[Incompatibility]) -> bool:
    return all(each.strict_only for each in found)


def _told(found: Incompatibility, info: SchemaInfo, at: int, border: SchemaVersion, role: Role) -> str:
    """Why, in words; whichever of the two is newer is told as what has changed."""
    from schemactl.formats import explain
    from schemactl.verdicts import Breakage

    if border.info is None:
        return found.message
    is_newer = border.number <= at
    new, old = (info, border.info) if is_newer else (border.info, info)
    is_new_reading = is_newer == (role == "reader")
    direction: Direction = "new_reads_old" if is_new_reading else "old_reads_new"
    return explain(Breakage(found, direction, min(at, border.number)), new=new, old=old).reason
