"""Draw the producers, the versions and the consumers of a topic as SVG, with a verdict for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from schemactl.core.catalog import Client
from schemactl.publish.site_text import shorten_label
from schemactl.publish.site_verdicts import Pair

MAX_CLIENTS: Final = 8
"""The maximum number of producers, and of consumers, in a picture; the table of pairs has all."""

_ROW: Final = 76
_BOX_HEIGHT: Final = 60
_WIDTH: Final = 920
_MAX_LETTERS: Final = 20


def draw_flow(title: str, pairs: Sequence[Pair]) -> str:
    """Return the picture of a topic's clients, or "" if it has too many of them."""
    producers = list({(pair.producer.name if pair.producer else ""): pair for pair in pairs}.values())
    consumers = list({pair.consumer.name: pair for pair in pairs}.values())
    if not pairs or max(len(producers), len(consumers)) > MAX_CLIENTS:
        return ""
    texts = sorted({text for pair in pairs for text in pair.written_texts}, key=_order_version, reverse=True)
    rows = max(len(producers), len(consumers), len(texts), 2)
    height = rows * _ROW + 40
    producer_y = _spread_rows(len(producers), height)
    version_y = dict(zip(texts, _spread_rows(len(texts), height - 20, top=34), strict=True))
    consumer_y = _spread_rows(len(consumers), height)
    lines = boxes = ""
    for pair, y in zip(producers, producer_y, strict=True):
        for text in pair.written_texts:
            lines += _draw_line(200, y, 346, version_y[text])
        name = pair.producer.name if pair.producer else "Producers"
        boxes += _draw_box(0, y, name, _describe(pair.producer), pair.written)
    for consumer_pair, y in zip(consumers, consumer_y, strict=True):
        own_pairs = [pair for pair in pairs if pair.consumer.name == consumer_pair.consumer.name]
        broken = {pair_break.writer_text for pair in own_pairs for pair_break in pair.breaks}
        read = dict.fromkeys(text for pair in own_pairs for text in pair.written_texts)
        offset = -4 * (len(read) - 1)
        for text in sorted(read, key=lambda version: version_y[version]):
            is_broken = text in broken
            lines += _draw_line(574, version_y[text], 720, y + offset, style="cut" if is_broken else "edge")
            mark = "M-3.5-3.5l7 7M3.5-3.5l-7 7" if is_broken else "M-4 0l3 3.2 5.2-6.4"
            lines += f'<path class="{"no" if is_broken else "ok"}" transform="translate(730 {y + offset})" d="{mark}"/>'
            offset += 18
        boxes += _draw_box(
            720,
            y,
            consumer_pair.consumer.name,
            _describe(consumer_pair.consumer),
            consumer_pair.read,
            is_broken=bool(broken),
        )
    core = f'<rect class="core" x="330" y="6" width="260" height="{height - 12}" rx="10"/><text class="b" x="350" y="32">{shorten_label(title, 28)}</text>'
    for text, y in version_y.items():
        core += f'<rect class="box" x="346" y="{y - 18}" width="228" height="36" rx="18"/><text class="v" x="366" y="{y + 5}">{escape(text)}</text>'
    return (
        f'<svg class="flow" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Producers, versions and consumers; the table below has each pair">'
        f"{core}{boxes}{lines}</svg>"
    )


def _order_version(text: str) -> tuple[int, str]:
    digits = text.removeprefix("v")
    return (int(digits) if digits.isdecimal() else -1, text)


def _spread_rows(count: int, height: int, top: int = 0) -> list[int]:
    """Return the middles of `count` rows in the space from `top` to `height`."""
    space = (height - top) // max(count, 1)
    return [top + space * index + space // 2 for index in range(count)]


def _draw_line(x: int, y: int, to_x: int, to_y: int, style: str = "edge") -> str:
    middle = (x + to_x) // 2
    return f'<path class="{style}" d="M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"/>'


def _draw_box(x: int, y: int, name: str, about: str, versions: str, *, is_broken: bool = False) -> str:
    shift = 28 if x else 16
    return (
        f'<rect class="box{" sick" if is_broken else ""}" x="{x + 0.5}" y="{y - _BOX_HEIGHT // 2}" width="199" height="{_BOX_HEIGHT}" rx="8"/>'
        f'<text class="b" x="{x + shift}" y="{y - 4}">{shorten_label(name, 15)}</text>'
        f'<text class="f" x="{x + shift}" y="{y + 16}">{shorten_label(about, _MAX_LETTERS)}</text>'
        f'<text class="v" x="{x + 188}" y="{y - 4}" text-anchor="end">{shorten_label(versions, 8)}</text>'
    )


def _describe(client: Client | None) -> str:
    if client is None:
        return "none is declared"
    return ", ".join(filter(None, (client.team and f"team {client.team}", client.language)))
