"""The early exit of `check --staged` for a commit that stages no schema file, as most commits do.

A complete check that passed records HEAD, the user's attributes, and which paths concern schemas. While the index has the same
there as that commit and as HEAD, and the attributes are the same, there is nothing to check. Anything unusual is left to the complete check. This runs before every commit, so the
module imports next to nothing: no `subprocess`, `pathlib`, `typing` or `argparse`.
"""

from __future__ import annotations

import os

from schemactl.history import git_environment, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MESSAGE = "nothing that concerns a schema is staged"

_KIND = "staged"
_MAX_BYTES = 16_000
"""Of a file of attributes; a longer one is left to the complete check."""

_USUAL = (
    *("GIT_INDEX_FILE", "GIT_PREFIX", "GIT_EXEC_PATH", "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_REFLOG_ACTION"),
    *("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT", "GIT_TRACE"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_SSL_", "GIT_SSH", "GIT_HTTP_", "GIT_MERGE_AUTOEDIT"),
)
"""Variables that do not move the repository: git sets some for its hooks, users set others."""


def in_ci() -> bool:
    """Return whether this runs on a build server, whose checkout does not say which base to compare with."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def is_nothing_staged() -> bool:
    """Return whether the schemas at HEAD have passed a check and none of their files is staged; False: check completely."""
    if in_ci() or not _is_usual():
        return False
    commit, _, rest = bytes(_store().read(_KIND) or b"").partition(b"\0")
    attributes, *watched = rest.split(b"\0")
    is_known = bool(watched) and attributes == _own_attributes()
    return is_known and all(_is_index_as_in(each, watched) for each in ("HEAD", commit.decode()))


def record(head: str, watched: Iterable[str]) -> None:
    """Record that the index passed a complete check, started at the top of the working tree, if it is as in HEAD.

    Args:
        head: the id of HEAD's commit.
        watched: the files and folders that declarations are made of, also those that do not exist yet.
    """
    paths = sorted(map(os.fsencode, watched))
    if not _is_usual() or (attributes := _own_attributes()) is None:
        return
    if _is_index_as_in(head, paths):
        _store().write(_KIND, b"\0".join([head.encode(), attributes, *paths]))


def _store() -> store.Store:
    return store.Store(".git", identify_code=store.installation)


def _is_usual() -> bool:
    """Return whether this is the top of a plain working tree without attributes of its own, and no variable redirects git."""
    is_plain = os.path.isdir(".git") and not os.path.islink(".git") and not os.path.lexists(".git/info/attributes")
    return is_plain and all(name.startswith(_USUAL) for name in os.environ if name.startswith("GIT_"))


def _is_index_as_in(commit: str, watched: Collection[bytes]) -> bool:
    """Return whether the index differs from a commit in none of the watched paths, nor in attributes, by which Git changes files."""
    differences = _git(*git_environment.DIFF_INDEX, commit)
    return differences is not None and not any(
        path.endswith(b".gitattributes")
        or any(path == each or path.startswith(each + b"/") or each.startswith(path + b"/") for each in watched)
        for path in differences.split(b"\0")[1::2]
    )


def _own_attributes() -> bytes | None:
    """Return the attributes from the user's and the system's files; None if they are unusual, or git failed."""
    named = _git("config", "--type=path", "--default=", "core.attributesFile")
    if named is None:
        return None
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    own = os.fsdecode(named).removesuffix("\n") or f"{settings}/git/attributes"
    found = []
    for path in (own, "/etc/gitattributes"):
        content = b""
        try:
            with open(path, "rb") as file:
                content = file.read(_MAX_BYTES)
        except OSError:
            pass  # There is none, as for git.
        if len(content) == _MAX_BYTES or b"\0" in content:
            return None
        found.append(content)
    return b"\1".join(found)


def _git(*arguments: str) -> bytes | None:
    """Return the standard output of a git command; None if it failed: the complete check will explain that."""
    command = ("git", *git_environment.OPTIONS, *arguments)
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as output:
        try:
            process = os.posix_spawnp(
                "git",
                command,
                {**os.environ, **git_environment.VARIABLES},
                file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)],
            )
        except OSError:
            return None
        finally:
            os.close(writer)
        try:
            answer = output.readall()
        except BaseException:
            os.kill(process, 9)
            raise
        finally:
            status = os.waitpid(process, 0)[1]
    return None if status else answer
