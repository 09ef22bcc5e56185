"""What of the index differs from a tree, as git tells it and as it would tell it of another tree.

The hook reads here, so this module imports next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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


def after(first: Mapping[str, Difference], then: Mapping[str, Difference]) -> dict[str, Difference]:
    """The differences of what `then` leads to, from what `first` comes from."""
    both = dict(first)
    for path, (before, now) in then.items():
        both[path] = (first[path][0] if path in first else before, now)
    return {path: sides for path, sides in both.items() if sides[0] != sides[1]}


def told(found: Mapping[str, Difference], id_digits: int) -> bytes:
    """Differences as git tells them, whose ids have so many digits."""
    records = []
    for name, path in sorted((path.encode("utf-8", "surrogateescape"), path) for path in found):
        sides = [side or (_NOTHING, "0" * id_digits) for side in found[path]]
        (before, old), (now, new) = sides
        # Files, symlinks and submodules are different types (diff-format, T).
        kinds = {mode[:3] for mode, _ in sides}
        status = "A" if before == _NOTHING else "D" if now == _NOTHING else "T" if len(kinds) > 1 else "M"
        records.append(f":{before} {now} {old} {new} {status}".encode() + b"\0" + name + b"\0")
    return b"".join(records)
