"""The early exit of `check --staged` for a commit that stages no schema file, as most commits do.

A complete check of the index that passed records which paths concern schemas, and what HEAD has there. While HEAD has the same there
and nothing of it is staged, there is nothing to check. Anything unusual is left to the complete check. This runs before every
commit, so the module imports next to nothing: no `subprocess`, `pathlib`, `typing` or `argparse`.
"""

from __future__ import annotations

import os

from schemactl.history import confined, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MESSAGE = "nothing that concerns a schema is staged"

_RECORD = ".git/schemactl/staged"
_KIND = "staged"
_MAX_BYTES = 16_000
"""A pipe holds this much on every system, so that writing a request never waits for git to read it."""

_OPTIONS = ("-c", "safe.bareRepository=explicit", "-c", "index.threads=1")
"""Threads read a large index sooner, with more of the CPU."""

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
    asked, _, known = bytes(store.read(_RECORD, _KIND) or b"").partition(b"\0")
    return bool(asked) and _state(asked) == known


def record(watched: Iterable[str]) -> None:
    """Record that the index passed a complete check, started at the top of the working tree.

    Args:
        watched: the files and folders that declarations are made of, also those that do not exist yet.
    """
    paths = {os.fsencode(path) for path in watched}
    for path in [*paths]:
        # Attributes of the folders around it may have Git store other bytes than the file shows.
        parts = path.split(b"/")
        paths |= {b"/".join([*parts[:depth], b".gitattributes"]) for depth in range(len(parts))}
    asked = b"".join(b"HEAD:%s\n" % path for path in sorted(paths))
    if not _is_usual() or b"\0" in asked or asked.count(b"\n") > len(paths) or len(asked) > _MAX_BYTES:
        return
    if (known := _state(asked)) is not None:
        store.write(_RECORD, _KIND, asked + b"\0" + known)


def _is_usual() -> bool:
    """Return whether this is the top of a plain working tree without own attributes, and no variable redirects git."""
    return (
        hasattr(os, "posix_spawnp")
        and os.path.isdir(".git")
        and not os.path.islink(".git")
        and not os.path.lexists(".git/info/attributes")
        and all(name.startswith(_USUAL) for name in os.environ if name.startswith("GIT_"))
    )


def _state(asked: bytes) -> bytes | None:
    """Return the state of the watched paths at HEAD, and the attributes of files; None if git failed, or one is staged."""
    differences = _git(*confined.DIFF_INDEX, "HEAD")
    if differences is None:
        return None
    watched = [line.removeprefix(b"HEAD:") for line in asked.splitlines()]
    tokens = differences.split(b"\0")
    for facts, path in zip(tokens[::2], tokens[1::2], strict=False):
        is_watched = any(
            path == each or path.startswith(each + b"/") or each.startswith(path + b"/") for each in watched
        )
        if is_watched or facts.endswith(b"U"):
            return None
    attributes, held = _own_attributes(), _git("cat-file", "--batch-check", request=asked)
    return None if attributes is None or held is None else held + attributes


def _own_attributes() -> bytes | None:
    """Return the attributes from the user's and the system's files; None if there are too many, or git failed."""
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
        if len(content) == _MAX_BYTES:
            return None
        found.append(content)
    return b"\0".join(found)


def _git(*arguments: str, request: bytes = b"") -> bytes | None:
    """Return the standard output of a git command; None if it failed: the complete check will explain that."""
    answers, answers_end = os.pipe()
    request_end, requests = os.pipe()
    try:
        os.write(requests, request)
        actions = [
            (os.POSIX_SPAWN_DUP2, request_end, 0),
            (os.POSIX_SPAWN_DUP2, answers_end, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        environment = {**os.environ, **confined.VARIABLES}
        command = ["git", *_OPTIONS, *confined.OPTIONS, *arguments]
        process = os.posix_spawnp("git", command, environment, file_actions=actions)
    except OSError:
        os.close(answers)
        return None
    finally:
        for each in (answers_end, request_end, requests):
            os.close(each)
    try:
        with open(answers, "rb", buffering=0) as output:
            answer = output.readall()
    except BaseException:
        os.kill(process, 9)
        raise
    finally:
        status = os.waitpid(process, 0)[1]
    return None if status else answer
