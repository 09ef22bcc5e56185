"""ANSI styles, used only where the context says that colours are welcome."""

from __future__ import annotations

import os
import sys

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def paint(text: str, style: str, *, color: bool) -> str:
    """`text` in `style` (a name of `_CODES`), or as it is without colour."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if color else text


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """The rows with their columns aligned, two blanks between them; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def is_welcome(choice: str) -> bool:
    """Whether standard output is to have colours: `always`, `never`, or `auto`, which honours NO_COLOR (no-color.org)."""
    if choice == "auto":
        terminal = sys.stdout is not None and sys.stdout.isatty()
        return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return choice == "always"
