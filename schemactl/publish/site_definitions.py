"""Write definitions as the text of pages and scripts: the lines of a definition, and the differences of two versions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from itertools import accumulate, groupby, takewhile
from typing import Final

from markupsafe import Markup

from schemactl.core.schema import SchemaInfo
from schemactl.core.wording import format_count
from schemactl.formats import spec
from schemactl.publish.site_catalog import VersionEntry
from schemactl.publish.site_text import clean_value, escape_code

_CONTEXT: Final = 2
"""The number of unchanged lines around a difference."""

_MAX_DIFF_LINES: Final = 80
"""The maximum number of lines of a difference on a page of versions; the comparison of two versions has all."""

_MAX_DEFINITION: Final = 12_000
"""The maximum number of characters of a definition that a page shows, in whole lines."""

_SHORT_LIST: Final = re.compile(r'\[(\n +(?:"[\w. -]*"|[\w.+-]+)(?:,\n +(?:"[\w. -]*"|[\w.+-]+))*\n +)\]')
"""A list of words or numbers in the uniform layout, one on each line."""

_MAX_LIST: Final = 80
"""The maximum number of characters of a list that takes one line."""

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"

_SWAPPED_QUOTES: Final = str.maketrans("\"'", "'\"")


def list_compact_lines(info: SchemaInfo) -> list[str]:
    """Return the clean lines of a definition in a uniform layout, in which a short list of words or numbers takes one line."""
    lines = spec(info).format_lines(info)
    if spec(info).language == "avro":
        lines = _SHORT_LIST.sub(_join_list, "\n".join(lines)).split("\n")
    return [*map(clean_value, lines)]


def _join_list(match: re.Match[str]) -> str:
    text = f"[{', '.join(line.strip(' ,') for line in match[1].strip().split(chr(10)))}]"
    return text if len(text) <= _MAX_LIST else match[0]


def cut_definition(lines: Sequence[str]) -> tuple[str, int]:
    """Return the lines of a definition that a page shows, and the number of the rest."""
    lengths = accumulate(len(line) + 1 for line in lines)
    count = sum(1 for _ in takewhile(_MAX_DEFINITION.__ge__, lengths))
    return "\n".join(lines[:count]), len(lines) - count


def render_difference(entry: VersionEntry, lines_by_number: Mapping[int, Sequence[str]], *, is_short: bool) -> Markup:
    """Return the difference of the text to the version before, or the definition of the first version.

    Args:
        entry: the version.
        lines_by_number: the lines of each definition of the topic, by the number of its version.
        is_short: whether the page has no room for it.
    """
    if entry.version.info is None:
        return Markup()
    lines = lines_by_number[entry.version.number]
    if entry.before is None:
        if is_short:
            return Markup()
        text, more = cut_definition(lines)
        rest = f"<p>{format_count(more, 'line')} more.</p>" if more else ""
        html = f"<details><summary>Definition</summary><div class=inside><pre tabindex=0><code>{escape_code(text)}</code></pre>{rest}</div></details>"
        return Markup(html)  # noqa: S704  the text is escaped
    old_lines = lines_by_number[entry.before.number]
    # difflib sees the lines between the equal ends alone.
    head, tail = count_common(old_lines, lines)
    start, end = max(head - _CONTEXT, 0), max(tail - _CONTEXT, 0)
    diff = unified_diff(
        old_lines[start : len(old_lines) - end], lines[start : len(lines) - end], n=_CONTEXT, lineterm=""
    )
    rows = ["@@" if row.startswith("@@") else row for row in [*diff][2:]]
    if not rows:
        return Markup('<p class="soft small">Only formatting or metadata changed.</p>')
    if is_short:
        return Markup('<p class="soft small">The comparison of two versions shows the lines.</p>')
    # All lines have this indentation, which follows a sign.
    depth = min(len(row) - 1 - len(row[1:].lstrip(" ")) for row in rows if row != "@@")
    rows = [row[:1] + row[1 + depth :] if row != "@@" else row for row in rows]
    tags = {"+": "ins", "-": "del", "@": "i"}
    html = ""
    for tag, tagged_rows in groupby(rows[:_MAX_DIFF_LINES], lambda row: tags.get(row[:1], "span")):
        text = "\n".join(tagged_rows)
        html += f"<{tag}>{escape_code(text)}</{tag}>"
    if len(rows) > _MAX_DIFF_LINES:
        html += f"<i>{format_count(len(rows) - _MAX_DIFF_LINES, 'line')} more</i>"
    return Markup(f"<pre class=diff tabindex=0>{html}</pre>")  # noqa: S704  the text is escaped


def count_common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal lines at the start, and at the end after it."""
    most = min(len(old), len(new))
    head = next((index for index in range(most) if old[index] != new[index]), most)
    most -= head
    tail = next((index for index in range(most) if old[-1 - index] != new[-1 - index]), most)
    return head, tail


def pack_lines(lines: Sequence[str]) -> str:
    """Return lines as the text that `unpack` of site.js reads, which takes three fifths of the room of a JSON list.

    Each line starts with a digit of base 36, the number of its pairs of leading spaces. Single and double quotes change places,
    because definitions have many double quotes, which JSON escapes.
    """
    packed = []
    for line in lines:
        depth = min((len(line) - len(line.lstrip(" "))) // 2, 35)
        packed.append(_DIGITS[depth] + line[2 * depth :])
    return "\n".join(packed).translate(_SWAPPED_QUOTES)
