"""Render owners as a CODEOWNERS file of GitHub or GitLab."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_OWNER: Final = re.compile(r"@[A-Za-z0-9][\w-]*(/[\w.-]+)*|[^\s@#]+@[^\s@#]+\.[^\s@#]+", re.ASCII)
"""A CODEOWNERS owner: a user, a team or an e-mail address."""

_CODEOWNERS_HEAD: Final = "# Written by `schemactl list --format codeowners`.\n"

_PATTERN_CHARACTERS: Final = re.compile(r"[#*?\[\]\\!\t]")
"""Special characters of a CODEOWNERS pattern or comment that not every part of GitHub lets a backslash escape."""


def render_codeowners(owners: Mapping[str, Collection[str]]) -> tuple[str, list[str]]:
    """Return the CODEOWNERS file, and the owners that GitHub does not accept.

    Syntax: https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners

    Args:
        owners: the owners of each file, by its path from the root of the repository.
    """
    unaccepted = set()
    lines: list[tuple[bool, str, str]] = []
    for path, names in owners.items():
        accepted = dict.fromkeys(name for owner in sorted(names) for name in owner.split() if _OWNER.fullmatch(name))
        unaccepted |= {owner for owner in names if not all(map(_OWNER.fullmatch, owner.split()))}
        if accepted:
            # `?` matches any character, so exact patterns follow: the last matching line decides.
            pattern = "/" + _PATTERN_CHARACTERS.sub("?", path).replace(" ", r"\ ")
            lines.append(("?" not in pattern, pattern, " ".join(accepted)))
    return _CODEOWNERS_HEAD + "".join(f"{pattern} {accepted}\n" for _, pattern, accepted in sorted(lines)), sorted(
        unaccepted
    )
