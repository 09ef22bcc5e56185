"""The README's picture of a terminal, recorded from the real tool: `python ci/terminal_picture.py docs/pictures`."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

import pyte

ROOT: Final = Path(__file__).resolve().parent.parent
COLUMNS: Final = 104
ORDERS: Final = "namespaces/sales/orders/orders.avsc"
BEFORE: Final = '"CANCELLED"],\n        "default": "PLACED"\n'
AFTER: Final = '"CANCELLED"]\n'

# A dark terminal, whose colours can be told apart on it.
COLORS: Final = {
    "red": "#ff8a8f",
    "green": "#63d285",
    "brown": "#e8b64c",
    "blue": "#79b8ff",
    "cyan": "#6fd3e0",
    "magenta": "#bfa6ff",
}
LINE: Final = 18
WIDTH: Final = 8.43

Span = tuple[str, str, bool]
"""Text, colour, and whether it is bold."""


def print_command(folder: Path, *arguments: str) -> list[list[Span]]:
    """Return the lines that the command prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, COLUMNS, 0, 0))
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") and name not in ("CI", "NO_COLOR")
    }
    with subprocess.Popen(  # noqa: S603  our own
        [sys.executable, "-m", "schemactl", *arguments],
        cwd=folder, stdout=theirs, stderr=subprocess.DEVNULL, env=environment | {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        os.close(theirs)
        screen = pyte.Screen(COLUMNS, 200)
        stream = pyte.ByteStream(screen)
        while True:
            try:
                data = os.read(ours, 65_536)
            except OSError:
                break
            if not data:
                break
            stream.feed(data)
        process.wait()
    os.close(ours)
    lines = [[*_list_spans(screen, row)] for row in range(screen.cursor.y + 1)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _list_spans(screen: pyte.Screen, row: int) -> Iterator[Span]:
    text, style = "", ("default", False)
    for column in range(COLUMNS):
        cell = screen.buffer[row][column]
        if (cell.fg, cell.bold) != style and text:
            yield text, *style
            text = ""
        style = (cell.fg, cell.bold)
        text += cell.data
    if text.rstrip():
        yield text.rstrip(), *style


def record_check() -> tuple[str, list[list[Span]]]:
    """Return the command after an enum lost a symbol and its default, and the lines that it prints."""
    sys.path.insert(0, str(ROOT))
    from examples.shop import history

    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder, "shop")
        history.make(shop)
        path = shop / ORDERS
        text = path.read_text("utf-8").replace('"SHIPPED", ', "").replace(BEFORE, AFTER)
        path.write_text(text, "utf-8")
        return "schemactl check", print_command(shop, "check")


def draw_terminal(command: str, lines: list[list[Span]]) -> str:
    """Return the SVG of a terminal with the command and its output."""
    rows = [_render_row([("$ ", "green", True), (command, "default", True)], 56)]
    y = 56
    for line in lines:
        y += LINE
        if line:
            rows.append(_render_row(line, y))
    y += LINE
    width = round(COLUMNS * WIDTH) + 32
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}" role="img" aria-labelledby="title">',
            '<title id="title">schemactl check fails a change that the broker would accept, with reason, counterexample and fix</title>',
            "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#e6edf3}</style>",
            f'<rect width="{width}" height="{y}" rx="8" fill="#0f1419"/>',
            *(
                f'<circle cx="{20 + 18 * number}" cy="20" r="5.5" fill="{color}"/>'
                for number, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
            ),
            *rows,
            "</svg>",
            "",
        ]
    )


def _render_row(spans: list[Span], y: int) -> str:
    parts, column = [], 0
    for text, color, bold in spans:
        style = f' fill="{COLORS[color]}"' if color in COLORS else ""
        style += ' font-weight="700"' if bold else ""
        # Each part has its place: fonts differ in how wide they are.
        parts.append(
            f'<tspan x="{16 + column * WIDTH:.1f}" textLength="{len(text) * WIDTH:.1f}"{style}>{escape(text, quote=False)}</tspan>'
        )
        column += len(text)
    return f'<text y="{y}">{"".join(parts)}</text>'


if __name__ == "__main__":
    Path(sys.argv[1], "terminal-check.svg").write_text(draw_terminal(*record_check()), "utf-8")
