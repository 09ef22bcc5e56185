"""Who reviews which file, as GitHub's and GitLab's CODEOWNERS.

https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_OWNER: Final = re.compile(r"@[A-Za-z0-9][\w-]*(/[\w.-]+)*|[^\s@#]+@[^\s@#]+\.[^\s@#]+", re.ASCII)
"""A user, a team or an e-mail address."""

_HEAD: Final = "# Written by `schemactl list --format codeowners`.\n"

_UNWRITABLE: Final = re.compile(r"[#*?\[\]\\!\t]")
"""Characters that mean something in a pattern, or begin a comment, and that a backslash does not help in all of GitHub."""


def render(owners: Mapping[str, Collection[str]]) -> tuple[str, list[str]]:
    """Return the lines of files, by path from the repository's top, with their owners; and the owners that are none to GitHub."""
    unknown = set()
    lines: list[tuple[bool, str, str]] = []
    for path, names in owners.items():
        known = dict.fromkeys(
            name for owner in sorted(names) for name in owner.split() if _OWNER.fullmatch(name)
        )
        unknown |= {owner for owner in names if not all(map(_OWNER.fullmatch, owner.split()))}
        if known:
            # `?` is any one character: what else it finds may have a line of its own, and the last one counts.
            pattern = "/" + _UNWRITABLE.sub("?", path).replace(" ", r"\ ")
            lines.append(("?" not in pattern, pattern, " ".join(known)))
    return _HEAD + "".join(f"{pattern} {known}\n" for _, pattern, known in sorted(lines)), sorted(unknown)
