"""The README's first picture, drawn from the answers of the real tool: `python ci/hero_picture.py docs/pictures`.

It shows a change of the example shop, its verdict, and messages of all versions in one table. Each width has a light and a dark file.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from difflib import unified_diff
from html import escape
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from examples.shop import history, messages  # noqa: E402  the examples are not installed

ORDERS: Final = Path("namespaces/sales/orders/orders.avsc")
TOPIC: Final = "persistent://shop/sales/orders"

SEED: Final = 4880
"""A seed whose messages have all kinds of values."""

MONO: Final = (
    "ui-monospace,SFMono-Regular,'SF Mono','Cascadia Mono','JetBrains Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
)
SANS: Final = "-apple-system,BlinkMacSystemFont,'Segoe UI',Inter,system-ui,'Noto Sans',Helvetica,Arial,sans-serif"
SCHEMES: Final = {
    "light": {
        "paper": "#ffffff", "line": "#d5d9e0", "ink": "#141822", "soft": "#4e5564", "faint": "#616a78", "accent": "#204ec3", "bad": "#b30f2b",
        "solid": "#c8102e", "bad_band": "#ffeef0", "bad_line": "#eeb0b9", "good": "#166b43", "added": "#dff3e6", "removed": "#ffe6e9",
        "word": "#ffb9c1", "key": "#1f4e9e",
    },
    "dark": {
        "paper": "#0d1117", "line": "#2f3643", "ink": "#e8ebf1", "soft": "#a8aeba", "faint": "#939aa7", "accent": "#89b0ff", "bad": "#ff8b96",
        "solid": "#d4213c", "bad_band": "#35141b", "bad_line": "#7b2c38", "good": "#6fcf98", "added": "#10291b", "removed": "#371319",
        "word": "#74222f", "key": "#8fb6ff",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """The contents of the picture.

    Attributes:
        diff: the lines of the enum before and after the change, each with a sign: " ", "-" or "+".
        release: the release of Pulsar.
        broker_accepts: whether the broker accepts the changed definition.
        client: the name of the first consumer that breaks.
        team: its team.
        broken_count: the number of consumers that break.
        guilty_key: the key in the counterexample whose value the consumer cannot read.
        witness: the counterexample.
        exception: the error on reading the counterexample.
        fix: the advice of the finding.
        rows: a decoded message of each version: version, customer, status, channel, and whether the channel comes from the default.
    """

    diff: list[tuple[str, str]]
    release: str
    broker_accepts: bool
    client: str
    team: str
    broken_count: int
    guilty_key: str
    witness: dict[str, Any]
    exception: str
    fix: str
    rows: list[tuple[int, int, str, str, bool]]


def collect_facts() -> Facts:
    """Return the tool's answers on the change of the example shop that removes a symbol."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder, "shop")
        history.make(shop)
        rows = decode_versions(shop)

        # The change: one symbol and the default go.
        old_text = (shop / ORDERS).read_text("utf-8")
        new_text = old_text.replace('"SHIPPED", ', "").replace(
            '"CANCELLED"],\n        "default": "PLACED"', '"CANCELLED"]'
        )
        (shop / ORDERS).write_text(new_text, "utf-8")
        command = [sys.executable, "-m", "schemactl", "check", "--format", "json"]
        report = json.loads(subprocess.run(command, cwd=shop, capture_output=True, check=False).stdout)  # noqa: S603  the project's own command

    finding = next(finding for finding in report["findings"] if finding["rule"] == "MISSING_ENUM_SYMBOLS")
    topic = next(topic for topic in report["topics"] if topic["topic"] == TOPIC)
    # A new version that cannot read older messages breaks the consumers that are built with it.
    if finding["direction"] != "new_reads_old":
        raise SystemExit(f"the change breaks {finding['direction']}: the picture shows consumers of the new version")
    consumers = [
        client
        for client in topic["clients"]
        if client["role"] != "producer" and (not client["fine"] or client["built"].startswith("latest"))
    ]
    before, after = (json.loads(text)["fields"][2]["type"] for text in (old_text, new_text))
    lines = [*unified_diff(render_enum(before), render_enum(after), n=99, lineterm="")][3:]
    return Facts(
        diff=[(line[0], line[1:]) for line in lines],
        release=report.get("pulsar") or "4.0",
        broker_accepts=topic["broker"]["answer"] == "ok",
        client=consumers[0]["name"],
        team=consumers[0]["team"] or "",
        broken_count=len(consumers),
        guilty_key=finding["field"].rpartition(".")[2],
        witness=json.loads(finding["witness"]["message"]),
        exception=finding["witness"]["result"],
        fix=finding["fix"].splitlines()[0].partition(", for example")[0].rstrip("."),
        rows=rows,
    )  # fmt: skip


def render_enum(definition: dict[str, Any]) -> list[str]:
    """Return the lines of an enum, one symbol a line."""
    return [line[2:] for line in json.dumps(definition, indent=2).splitlines()[2:-1]]


def decode_versions(shop: Path) -> list[tuple[int, int, str, str, bool]]:
    """Return a message of each version of orders, decoded by the shop's generated package."""
    sys.path.insert(0, str(shop / "generated"))
    from shop_schemas.shop.sales.orders import ORDERS as orders  # noqa: N811  generated in the shop

    rows = []
    for version in orders.codec.versions:
        written = messages.order(random.Random(SEED + version.number), version.number)  # noqa: S311  an example
        row = orders.decode_one(orders.encode_one(written, version.number), version.number)
        rows.append((version.number, row["customer"], row["status"], row["channel"], "channel" not in written))
    return rows


class Picture:
    """Collects the elements of one SVG."""

    def __init__(self, width: int, colors: dict[str, str], size: float, facts: Facts) -> None:
        self.width, self.height, self.colors, self.size, self.facts = width, 0, colors, size, facts
        self.advance = size * 0.6
        self.parts: list[str] = []

    def add_box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "paper",
        line: str = "line",
        radius: float = 10,
    ) -> None:
        """Add a filled box with round corners, with a line around it unless `line` is empty."""
        stroke = f' stroke="{self.colors[line]}"' if line else ""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" fill="{self.colors[fill]}"{stroke}/>'
        )

    def add_line(self, x: float, y: float, width: float, color: str = "line") -> None:
        """Add a horizontal line."""
        self.parts.append(f'<path d="M{x} {y}h{width}" stroke="{self.colors[color]}"/>')

    def add_text(self, x: float, y: float, text: str, *, fill: str = "ink", weight: int = 400, size: float = 0) -> None:
        """Add prose."""
        color = self.colors.get(fill, fill)
        bold = f' font-weight="{weight}"' if weight != 400 else ""
        self.parts.append(
            f'<text x="{x}" y="{y}" font-size="{size or self.size + 1}" fill="{color}"{bold}>{escape(text, quote=False)}</text>'
        )

    def add_code(self, x: float, y: float, text: str, fill: str = "soft", weight: int = 400) -> float:
        """Add code whose length is fixed, so that marks stay below the value that they mark. Return the x of its end."""
        stripped = text.strip(" ")
        if stripped:
            start = round(x + (len(text) - len(text.lstrip(" "))) * self.advance, 1)
            bold = f' font-weight="{weight}"' if weight != 400 else ""
            length = round(len(stripped) * self.advance, 1)
            self.parts.append(
                f'<text class="m" x="{start}" y="{y}" textLength="{length}" lengthAdjust="spacingAndGlyphs" '
                f'fill="{self.colors[fill]}"{bold}>{escape(stripped, quote=False)}</text>'
            )
        return round(x + len(text) * self.advance, 1)

    def add_stroke(self, path: str, color: str, width: float = 2) -> None:
        """Add a drawn line: a tick, a cross, an arrow or a wave."""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{self.colors.get(color, color)}" stroke-width="{width}" stroke-linecap="round" stroke-linejoin="round"/>'
        )

    def render(self) -> str:
        """Return the SVG."""
        facts = self.facts
        verb = "accepts" if facts.broker_accepts else "rejects"
        description = (
            f"A pull request removes a symbol from an enum. The Pulsar broker {verb} the schema. The consumer {facts.client} of team {facts.team} "
            f"breaks on a message: {facts.exception}. After the fix, messages of versions 0 to {facts.rows[-1][0]} are read as one table."
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" '
            f'role="img" aria-labelledby="t d">\n<title id="t">A change, its verdict before the merge, and the table after it</title>\n'
            f'<desc id="d">{escape(description, quote=False)}</desc>\n'
            f"<style>text{{font-family:{SANS};letter-spacing:-.005em}}.m{{font-family:{MONO};font-size:{self.size}px;letter-spacing:0}}</style>\n"
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def draw_change(picture: Picture, x: float, y: float, width: float, step: float) -> float:
    """Draw the pull request. Return the height."""
    diff = picture.facts.diff
    height = 64 + len(diff) * step + 14
    picture.add_box(x, y, width, height)
    picture.add_text(x + 16, y + 27, "Remove an unused symbol", weight=600)
    picture.add_text(x + 16, y + 46, ORDERS.name, fill="faint")
    picture.add_line(x, y + 58, width)
    top = y + 64
    for sign, text in diff:
        base = round(top + step / 2 + picture.size * 0.36, 1)
        if sign != " ":
            picture.add_box(x + 1, top, width - 2, step, fill="removed" if sign == "-" else "added", line="", radius=0)
            picture.add_code(x + 14, base, sign, "bad" if sign == "-" else "good", 700)
        is_symbol = sign == "-" and re.fullmatch(r'\s*"\w+",', text) is not None
        start = x + 16 + 2 * picture.advance
        if is_symbol:
            left = start + (len(text) - len(text.lstrip())) * picture.advance
            length = len(text.strip().rstrip(",")) * picture.advance
            picture.add_box(
                round(left - 2, 1), round(top + 2, 1), round(length + 4, 1), step - 4, fill="word", line="", radius=3
            )
        picture.add_code(start, base, text, "ink" if sign != " " else "soft", 600 if is_symbol else 400)
        top += step
    return height


def draw_verdict(picture: Picture, x: float, y: float, width: float, height: float) -> None:
    """Draw the verdict card: the broker's answer, the consumer that breaks, the message that proves it, and the fix."""
    facts = picture.facts
    picture.add_box(x, y, width, height)

    # The broker.
    picture.add_text(x + 16, y + 28, f"Pulsar {facts.release} broker")
    if facts.broker_accepts:
        picture.add_stroke(f"M{x + width - 94} {y + 23.5}l3.4 3.6 6.4 -7.6", "good")
    picture.add_text(
        x + width - 78,
        y + 28,
        "accepts" if facts.broker_accepts else "rejects",
        fill="good" if facts.broker_accepts else "bad",
        weight=600,
    )
    picture.add_line(x + 16, y + 42, width - 32)

    # The consumers.
    picture.add_text(x + 16, y + 67, "Your consumers")
    picture.add_box(x + width - 104, y + 50, 88, 26, fill="solid", line="", radius=5)
    picture.add_stroke(f"M{x + width - 93} {y + 59.4}l7.4 7.4m0 -7.4l-7.4 7.4", "#ffffff")
    picture.add_text(
        x + width - 78,
        y + 67.6,
        f"{facts.broken_count} {'breaks' if facts.broken_count == 1 else 'break'}",
        fill="#ffffff",
        weight=600,
    )
    picture.add_line(x, y + 86, width, "bad_line")
    corner = f"a9.5 9.5 0 0 1 -9.5 9.5h-{width - 20}a9.5 9.5 0 0 1 -9.5 -9.5z"
    picture.parts.append(
        f'<path d="M{x + 0.5} {y + 86.5}h{width - 1}v{height - 97}{corner}" fill="{picture.colors["bad_band"]}"/>'
    )
    picture.add_text(x + 16, y + 114, facts.client, weight=700, size=picture.size + 4)
    picture.add_text(x + 24 + 8 * len(facts.client), y + 114, f"team {facts.team}", fill="soft")
    picture.add_text(x + 16, y + 136, "throws on messages such as this one:", fill="soft")

    # The message, with the value that cannot be read.
    picture.add_box(x + 14, y + 149, width - 28, 84, fill="paper", line="bad_line", radius=6)
    line = y + 172
    first_key = next(iter(facts.witness))
    end = picture.add_code(x + 24, line, "{", "faint")
    end = picture.add_code(end, line, json.dumps(first_key), "key")
    picture.add_code(end, line, f": {json.dumps(facts.witness[first_key])}, ...", "faint")
    line += 22
    end = picture.add_code(x + 24, line, f" {json.dumps(facts.guilty_key)}", "key")
    start = picture.add_code(end, line, ": ", "faint")
    end = picture.add_code(start, line, json.dumps(facts.witness[facts.guilty_key]), "bad", 700)
    picture.add_code(end, line, ", ...}", "faint")
    picture.add_stroke(f"M{start} {line + 6}" + "q1.5 -3 3 0t3 0" * int((end - start) // 6), "solid", 1.6)
    picture.add_code(x + 24, line + 26, facts.exception, "bad")

    # The fix, in two lines.
    words = facts.fix[0].upper() + facts.fix[1:] + "."
    cut = words.rfind(" ", 0, 30)
    picture.add_text(x + 16, y + 262, "Fix", weight=700)
    picture.add_text(x + 46, y + 262, words[:cut])
    picture.add_text(x + 46, y + 282, words[cut + 1 :])


def draw_table(picture: Picture, x: float, y: float, width: float, height: float, step: float) -> None:
    """Draw a message of each version under one schema."""
    picture.add_box(x, y, width, height)
    gap = (width - 32 - 33 * picture.advance) / 3
    names = ("v", "customer", "status", "channel")
    columns = [
        round(x + 16 + start * picture.advance + index * gap, 1) for index, start in enumerate((0, 4.4, 14.8, 25.8))
    ]
    for column, name in zip(columns, names, strict=True):
        picture.add_code(column, y + 28, name, "ink", 700)
    picture.add_line(x, y + 42, width)
    top = y + 46
    for version, customer, status, channel, is_default in picture.facts.rows:
        base = round(top + step / 2 + picture.size * 0.36, 1)
        if version:
            picture.add_line(x + 16, top, width - 32)
        picture.add_code(columns[0], base, str(version), "accent", 700)
        picture.add_code(columns[1], base, str(customer).rjust(8), "ink")
        picture.add_code(columns[2], base, status, "ink")
        picture.add_code(columns[3], base, channel, "faint" if is_default else "ink")
        top += step
    picture.add_line(x, top + 2, width)
    picture.add_text(x + 16, top + 25, "customer was customer_id until v3.", fill="faint")
    picture.add_text(x + 16, top + 44, "Gray: from the default.", fill="faint")


def draw_wide(colors: dict[str, str], facts: Facts) -> Picture:
    """Draw the three panels in a row, for 900 px."""
    picture = Picture(900, colors, 12, facts)
    versions = {6: "six"}.get(len(facts.rows), str(len(facts.rows)))
    for x, title in (
        (0, "A pull request"),
        (268, "The verdict, before the merge"),
        (630, f"Merged: {versions} versions, one table"),
    ):
        picture.add_text(x, 15, title, weight=650, size=14.5)
    height = draw_change(picture, 0.5, 30, 236, 25.6)
    height = max(height, 308.4)
    picture.add_stroke("M245 180h14m-5 -5l5 5 -5 5", "faint", 1.6)
    draw_verdict(picture, 268.5, 30, 331, height)
    picture.add_stroke("M608 180h14m-5 -5l5 5 -5 5", "faint", 1.6)
    draw_table(picture, 630.5, 30, 269, height, 33.4)
    picture.height = round(30 + height + 10)
    return picture


def draw_narrow(colors: dict[str, str], facts: Facts) -> Picture:
    """Draw the three panels one below the other, for 390 px."""
    picture = Picture(390, colors, 13, facts)
    y = 18.0
    picture.add_text(0, y, "A pull request", weight=650, size=16)
    y += 14 + draw_change(picture, 0.5, y + 14, 389, 26)
    picture.add_stroke(f"M195 {y + 9}v14m-5 -5l5 5 5 -5", "faint", 1.6)
    y += 52
    picture.add_text(0, y, "The verdict, before the merge", weight=650, size=16)
    draw_verdict(picture, 0.5, y + 14, 389, 302)
    y += 14 + 302
    picture.add_stroke(f"M195 {y + 9}v14m-5 -5l5 5 5 -5", "faint", 1.6)
    y += 52
    picture.add_text(0, y, "Merged: all versions, one table", weight=650, size=16)
    draw_table(picture, 0.5, y + 14, 389, 298, 32)
    picture.height = round(y + 14 + 298 + 1)
    return picture


def main() -> None:
    """Write the four files into the folder on the command line."""
    folder = Path(sys.argv[1])
    facts = collect_facts()
    for scheme, colors in SCHEMES.items():
        (folder / f"hero-{scheme}.svg").write_text(draw_wide(colors, facts).render(), "utf-8")
        (folder / f"hero-narrow-{scheme}.svg").write_text(draw_narrow(colors, facts).render(), "utf-8")


if __name__ == "__main__":
    main()
