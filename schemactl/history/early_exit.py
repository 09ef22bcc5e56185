"""Exit early from `check --staged` if no schema file is staged, which is true for most commits.

A complete check that passed records HEAD, the user's attributes and the paths that concern schemas. If the index is the same at
these paths as that commit and as HEAD, and the attributes are the same, there is nothing to check. Anything unusual needs the
complete check.

This runs before every commit, so it imports next to nothing: no `subprocess`, `pathlib`, `typing` or `argparse`.
"""

from __future__ import annotations

import os

from schemactl.history import git_environment, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MESSAGE = "no staged file concerns a schema"

_KIND = "staged"

_MAX_ATTRIBUTES_BYTES = 16_000
"""Size limit of an attributes file; a longer one needs the complete check."""

_USUAL_VARIABLES = (
    *("GIT_INDEX_FILE", "GIT_PREFIX", "GIT_EXEC_PATH", "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_REFLOG_ACTION"),
    *("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT", "GIT_TRACE"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_SSL_", "GIT_SSH", "GIT_HTTP_", "GIT_MERGE_AUTOEDIT"),
)
"""Prefixes of variables that do not redirect git to another repository: git sets some for its hooks, users set others."""


def is_nothing_staged() -> bool:
    """Return whether the schemas at HEAD have passed a check and none of their files is staged; else a complete check is needed."""
    if in_ci() or not _is_usual():
        return False
    commit, _, rest = bytes(_open_store().read(_KIND) or b"").partition(b"\0")
    attributes, *watched = rest.split(b"\0")
    is_known = bool(watched) and attributes == _read_user_attributes()
    return is_known and all(_is_index_as_in(revision, watched) for revision in ("HEAD", commit.decode()))


def record(head: str, watched: Iterable[str], changed: Iterable[str]) -> None:
    """Record that the index passed a complete check, started at the top of the working tree, if it is as in HEAD.

    Args:
        head: the id of HEAD's commit.
        watched: the files and folders that declarations read, including paths that do not exist yet.
        changed: the files at which the checked index differs from HEAD.
    """
    paths = sorted(map(os.fsencode, watched))
    if not _is_usual() or _has_watched_path(map(os.fsencode, changed), paths):
        return
    if (attributes := _read_user_attributes()) is not None:
        _open_store().write(_KIND, b"\0".join([head.encode(), attributes, *paths]))


def in_ci() -> bool:
    """Return whether this runs on a build server, whose checkout does not tell which base to compare with."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def _open_store() -> store.Store:
    return store.Store(".git", identify_code=store.installation)


def _is_usual() -> bool:
    """Return whether this is the top of a plain working tree without `.git/info/attributes`, and no variable redirects git."""
    is_plain = os.path.isdir(".git") and not os.path.islink(".git") and not os.path.lexists(".git/info/attributes")
    return is_plain and all(name.startswith(_USUAL_VARIABLES) for name in os.environ if name.startswith("GIT_"))


def _is_index_as_in(commit: str, watched: Collection[bytes]) -> bool:
    """Return whether the index equals a commit in the watched paths and in attributes files."""
    differences = _run_git(*git_environment.DIFF_INDEX, commit)
    return differences is not None and not _has_watched_path(differences.split(b"\0")[1::2], watched)


def _has_watched_path(paths: Iterable[bytes], watched: Collection[bytes]) -> bool:
    """Return whether one of the paths is watched, or is an attributes file, by which Git converts contents."""
    return any(
        path.endswith(b".gitattributes")
        or any(path == other or path.startswith(other + b"/") or other.startswith(path + b"/") for other in watched)
        for path in paths
    )


def _read_user_attributes() -> bytes | None:
    """Read the user's and the system's attributes files, or return None if they are unusual or git failed."""
    configured = _run_git("config", "--type=path", "--default=", "core.attributesFile")
    if configured is None:
        return None
    config_folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    user_path = os.fsdecode(configured).removesuffix("\n") or f"{config_folder}/git/attributes"
    contents = []
    for path in (user_path, "/etc/gitattributes"):
        content = b""
        try:
            with open(path, "rb") as file:
                content = file.read(_MAX_ATTRIBUTES_BYTES)
        except OSError:
            pass  # Git ignores a missing file as well.
        if len(content) == _MAX_ATTRIBUTES_BYTES or b"\0" in content:
            return None
        contents.append(content)
    return b"\1".join(contents)


def _run_git(*arguments: str) -> bytes | None:
    """Run git and return its standard output, or None if it failed; the complete check will report that."""
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
            stdout = output.readall()
        except BaseException:
            os.kill(process, 9)
            raise
        finally:
            status = os.waitpid(process, 0)[1]
    return None if status else stdout
