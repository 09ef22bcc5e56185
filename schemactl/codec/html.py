"""Show a topic in a notebook: its columns since their first version, and its versions with their changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from .definition import CodecError

if TYPE_CHECKING:
    import pyarrow as pa

    from .topic import Codec

_CELL: Final = 'style="text-align: left; vertical-align: top; padding: 2px 12px 2px 0"'
_MAX_LETTERS: Final = 80
"""The maximum number of letters of a type or of a list of changes that are shown."""

_MAX_VERSIONS: Final = 50
"""The maximum number of versions that are shown, the newest."""


def render_topic(title: str, codec: Codec, former_names: Mapping[str, tuple[str, ...]]) -> str:
    """Return the HTML of a topic: two tables, columns and versions.

    Args:
        title: the topic's name.
        codec: the codec of its messages.
        former_names: the names of columns in older versions, by path (see `GeneratedTopic`).
    """
    columns_by_version: dict[int, pa.Schema | None] = {}
    unreadable = codec.numbers.unreadable if codec.numbers else {}
    numbers = sorted({version.number for version in codec.versions} | unreadable.keys())
    for number in numbers[-_MAX_VERSIONS:]:
        try:
            columns_by_version[number] = codec.columns_of(number)
        except CodecError:
            columns_by_version[number] = None
    try:
        columns = codec.columns
    except CodecError as error:
        return f"<p><b>{escape(title)}</b>: {escape(str(error))}</p>"

    # A column exists since the oldest version in an unbroken row of versions with it, under any of its names.
    rows = []
    for column in columns:
        names = {column.name, *former_names.get(column.name, ())}
        first: int | None = None
        for number, schema in reversed(columns_by_version.items()):
            if schema is None or not names & {*schema.names}:
                break
            first = number
        previous = ", ".join(former_names.get(column.name, ()))
        rows.append((column.name, _truncate(str(column.type)), "" if first is None else f"v{first}", previous))
    fields = _render_table(("column", "type", "since", "previous names"), rows)

    changes = []
    older: pa.Schema | None = None
    renamed = {old: new for new, names in former_names.items() for old in names}
    for number, schema in columns_by_version.items():
        verdict = f"✗ {unreadable[number]}" if number in unreadable else "✓" if schema is not None else "✗ no columns"
        changes.append((f"v{number}", verdict, _truncate(_describe_changes(older, schema, renamed))))
        older = schema
    count = len(numbers)
    caption = f"{count} version{'s' * (count != 1)}" + (
        f", the newest {_MAX_VERSIONS} below" if count > _MAX_VERSIONS else ""
    )
    versions = _render_table(("version", "readable", "columns"), changes[::-1])
    return f"<div><p><b>{escape(title)}</b>, {caption}</p>{fields}<br>{versions}</div>"


def _describe_changes(older: pa.Schema | None, newer: pa.Schema | None, renamed: Mapping[str, str]) -> str:
    """Return the columns that a version adds (+), removes (-), renames (old → new) or changes (~), or their number in the first version."""
    if newer is None:
        return ""
    if older is None:
        return f"{len(newer)} column{'s' * (len(newer) != 1)}"
    added = [name for name in newer.names if name not in older.names]
    removed = [name for name in older.names if name not in newer.names]
    renames = {old: new for old in removed for new in added if renamed.get(old, old) == renamed.get(new, new)}
    return ", ".join(
        [
            *(f"+{name}" for name in added if name not in renames.values()),
            *(f"-{name}" for name in removed if name not in renames),
            *(f"{old} → {new}" for old, new in renames.items()),
            *(
                f"~{name}"
                for name in newer.names
                if name in older.names and newer.field(name).type != older.field(name).type
            ),
        ]
    )


def _render_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    cells = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in header)
    lines = ("".join(f"<td {_CELL}>{escape(cell)}</td>" for cell in row) for row in rows)
    return (
        f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
    )


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 1]}…"
