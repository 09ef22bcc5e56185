"""The README's picture, recorded from the real tool: `python ci/terminal_picture.py docs/terminal.svg`."""

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
TYPED_S: Final = 0.7
SHOWN_S: Final = 2.2

Span = tuple[str, str, bool]
"""Text, colour, and whether it is bold."""


def printed(folder: Path, *arguments: str) -> list[list[Span]]:
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
    lines = [[*_spans(screen, row)] for row in range(screen.cursor.y + 1)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _spans(screen: pyte.Screen, row: int) -> Iterator[Span]:
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


def recorded() -> list[tuple[str, list[list[Span]]]]:
    """Return what somebody types who drops an enum symbol, and what is printed."""
    sys.path.insert(0, str(ROOT))
    from examples.shop import history

    with tempfile.TemporaryDirectory() as kept:
        shop = Path(kept, "shop")
        history.make(shop)
        path = shop / ORDERS
        text = path.read_text("utf-8").replace('"SHIPPED", ', "").replace(BEFORE, AFTER)
        path.write_text(text, "utf-8")
        refused = printed(shop, "check")
        path.write_text(text.replace(AFTER, BEFORE), "utf-8")
        return [
            ("schemactl check     # an enum lost a symbol, and its default", refused),
            ("schemactl check     # with the default back", printed(shop, "check")),
            ("schemactl log orders", printed(shop, "log", "orders")),
        ]


def picture(scenes: list[tuple[str, list[list[Span]]]]) -> str:
    """Return the recording as an SVG in which each command appears after the one before it."""
    rows: list[str] = []
    at_s = 0.0
    y = 56
    for command, lines in scenes:
        rows.append(_row([("$ ", "green", True), (command, "default", True)], y, at_s))
        at_s += TYPED_S
        y += LINE
        for line in lines:
            if line:
                rows.append(_row(line, y, at_s))
            y += LINE
        at_s += SHOWN_S
        y += LINE // 2
    width = round(COLUMNS * WIDTH) + 32
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}" role="img" aria-labelledby="title">',
            '<title id="title">schemactl check fails a change that the broker would accept, with reason, counterexample and fix</title>',
            "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#e6edf3}",
            # What shows no animation shows everything.
            ".r{animation:s .01s backwards}@keyframes s{from{opacity:0}}",
            "@media (prefers-reduced-motion:reduce){.r{animation:none}}@media print{.r{animation:none}}</style>",
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


def _row(spans: list[Span], y: int, at_s: float) -> str:
    parts, column = [], 0
    for text, color, bold in spans:
        style = f' fill="{COLORS[color]}"' if color in COLORS else ""
        style += ' font-weight="700"' if bold else ""
        # Each part has its place: fonts differ in how wide they are.
        parts.append(
            f'<tspan x="{16 + column * WIDTH:.1f}" textLength="{len(text) * WIDTH:.1f}"{style}>{escape(text, quote=False)}</tspan>'
        )
        column += len(text)
    return f'<text class="r" y="{y}" style="animation-delay:{at_s:.1f}s">{"".join(parts)}</text>'


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(recorded()), "utf-8")
