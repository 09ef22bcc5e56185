"""Diagrams of the explanation pages: `python ci/diagram_pictures.py docs/pictures`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from schemactl.publish.drawings import render_document, render_text  # noqa: E402  of this checkout

VERDICTS: Final = (
    ("The broker verdict", "Does the broker accept the upload?", "ok, unchanged, incompatible, invalid, error"),
    ("The data verdict", "Can readers decode every message?", "compatible, breaking (with a message), not judged"),
)
COMMITS: Final = (
    ("A", "first content", "v0"),
    ("B", "formatted", ""),
    ("M", "a field more", "v1"),
    ("D", "content of A again", ""),
    ("E", "two fields more", "v2"),
)


def draw_verdicts() -> str:
    """Return the two verdicts on a change, and the check that needs both."""
    parts = [
        '<path class="edge" d="M380 52V76M210 76H550M210 76V92M550 76V92M210 186V206M550 186V206M210 206H550M380 206V222"/>',
        '<rect class="box" x="120" y="10" width="520" height="42" rx="8"/>',
        render_text(140, 36, "The changed definition, and the versions that the topic's strategy protects", "strong"),
    ]
    for x, (title, question, answers) in zip((20, 390), VERDICTS, strict=True):
        parts += [
            f'<rect class="box" x="{x}" y="92" width="360" height="94" rx="8"/>',
            render_text(x + 16, 120, title, "strong"),
            render_text(x + 16, 144, question),
            render_text(x + 16, 168, answers, "soft"),
        ]
    parts += [
        '<rect class="box middle" x="250" y="222" width="260" height="42" rx="8"/>',
        render_text(270, 248, "check fails if either is bad", "strong"),
    ]
    return render_document(
        "Two verdicts",
        "Each change gets the broker's verdict and the data verdict; check fails if either is bad.",
        770,
        274,
        parts,
    )


def draw_history() -> str:
    """Return a first-parent history with a merged branch, and the versions that its commits make."""
    parts = [
        '<path class="life" d="M90 40H650"/>',
        '<path class="edge" d="M230 40C260 84 270 84 290 84H340C356 84 362 70 370 40"/>',
        render_text(4, 45, "main", "strong"),
        render_text(4, 89, "branch", "soft"),
    ]
    parts += [
        f'<circle class="dot" cx="{x}" cy="84" r="6"/>{render_text(x - 4, 106, name, "soft")}'
        for x, name in ((290, "x"), (340, "y"))
    ]
    parts += [render_text(4, 140, "orders", "soft"), render_text(4, 166, "version", "strong")]
    for index, (name, content, version) in enumerate(COMMITS):
        x = 90 + index * 140
        parts += [
            f'<circle class="dot" cx="{x}" cy="40" r="8"/>',
            render_text(x - 4, 22, name, "strong"),
            render_text(x - 14, 140, content),
        ]
        parts.append(render_text(x - 14, 166, version or "-", "strong" if version else "soft"))
    return render_document(
        "Versions from a first-parent history",
        "Commits A, M and E make versions 0, 1 and 2; B and D have no new content; x and y were never in force.",
        790,
        180,
        parts,
    )


def main() -> None:
    """Write the diagrams into the folder on the command line."""
    Path(sys.argv[1], "two-verdicts.svg").write_text(draw_verdicts(), "utf-8")
    Path(sys.argv[1], "versions-from-git.svg").write_text(draw_history(), "utf-8")


if __name__ == "__main__":
    main()
