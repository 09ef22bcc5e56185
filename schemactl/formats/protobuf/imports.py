"""Find the imports of `.proto` texts without compiling them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_IMPORT: Final = re.compile(rb"""import\s*+(?:\b(?:public|weak|option)\b\s*+)?["']([^"'\n]+)["']""")


@lru_cache(maxsize=1_024)
def find_imports(text: bytes) -> tuple[str, ...]:
    """Return the names of the imports that start a line or follow `;`, `}` or `*/`; some may be inside comments."""
    names = []
    start = 0
    while match := _IMPORT.search(text, start):
        # The text before a match is checked here: a pattern that starts with spaces would try each of them as its start.
        between = text[start : match.start()]
        preceding = between.rstrip()
        if (
            (not preceding and start == 0)
            or b"\n" in between[len(preceding) :]
            or preceding.endswith((b";", b"}", b"*/"))
        ):
            names.append(match[1].decode("utf-8", "replace"))
            start = match.end()
        else:
            start = match.start() + len(b"import")
    return tuple(names)
