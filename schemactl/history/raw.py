"""What of the index differs from a tree, as git tells it."""

from __future__ import annotations

DIFF_INDEX = (
    *("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-relative"),
    *(
        "--ignore-submodules=none",
        "--ita-invisible-in-index",
        "-O/dev/null",
        "--no-ext-diff",
        "--no-textconv",
    ),
)
"""What of the index differs from a tree, whatever the user's settings. What `git add -N` noted is not in the index yet."""

Leaf = tuple[str, str]
"""What a tree has at a path: Git's mode (100644 and 100755 are files, 120000 is a symlink, 160000 a submodule), and the id."""

Difference = tuple["Leaf | None", "Leaf | None"]
"""What is at a path on one side and on the other; None: nothing."""

_NOTHING = "000000"


def differences(told: bytes) -> tuple[dict[str, Difference], list[str]]:
    """The differences that git told, by path, and the paths that have a merge conflict."""
    tokens = told.split(b"\0")
    found: dict[str, Difference] = {}
    unmerged = []
    for facts, name in zip(tokens[::2], tokens[1::2], strict=False):
        before, after, old, new, status = facts[1:].decode().split(" ")
        path = name.decode("utf-8", "surrogateescape")
        if status == "U":
            unmerged.append(path)
        else:
            found[path] = (
                None if before == _NOTHING else (before, old),
                None if after == _NOTHING else (after, new),
            )
    return found, unmerged
