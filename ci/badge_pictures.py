"""The README's badges, from the project's own files: `python ci/badge_pictures.py docs/pictures`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from schemactl.core.schema import Release  # noqa: E402  of this checkout

CHARACTER: Final = 6.6
HEIGHT: Final = 20


def read_badges() -> dict[str, tuple[str, str]]:
    """Return label and value of each badge, by the name of its file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    spark = re.search(r"[\d.]+ to [\d.]+", (ROOT / "README.md").read_text("utf-8").partition("PySpark [")[2])
    return {
        "python": ("python", project["requires-python"].replace(">=", "≥ ")),
        "pulsar": ("pulsar", " | ".join(Release)),
        "spark": ("spark", spark[0] if spark else ""),
        "license": ("license", project["license"]),
    }


def draw_badge(label: str, value: str) -> str:
    """Return the SVG of a badge."""
    left, right = (round(len(text) * CHARACTER + 12) for text in (label, value))
    text = '<text y="14" x="{}" textLength="{:.0f}" lengthAdjust="spacingAndGlyphs">{}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img" aria-label="{label}: {value}">'
        f'<clipPath id="r"><rect width="{left + right}" height="{HEIGHT}" rx="4"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="{HEIGHT}" fill="#4e5564"/><rect x="{left}" width="{right}" height="{HEIGHT}" fill="#204ec3"/></g>'
        '<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">'
        + text.format(6, left - 12, label)
        + text.format(left + 6, right - 12, value)
        + "</g></svg>\n"
    )


def main() -> None:
    """Write the badges into the folder on the command line."""
    for name, (label, value) in read_badges().items():
        Path(sys.argv[1], f"badge-{name}.svg").write_text(draw_badge(label, value), "utf-8")


if __name__ == "__main__":
    main()
