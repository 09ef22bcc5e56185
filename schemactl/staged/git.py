"""Git for the hook: its folders and refs where they can be told without it, its commands started as cheaply as can be.

`subprocess` and `pathlib` each take as long to import as the hook may take as a whole.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CHUNK_BYTES = 1 << 16
_ASKED_BYTES = 4096
"""What every pipe holds."""

_USUAL = ("refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master")
"""What the approved ref is looked for under, besides the remotes' default branches."""


class Git:
    """A git command that runs in this folder, with the caller's environment. Close it.

    Its standard error goes nowhere: whoever asks here gives up on any trouble, and the complete way tells of it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, *arguments: str, asks: bool = False) -> None:
        answers, out = os.pipe()
        into, requests = os.pipe() if asks else (os.open(os.devnull, os.O_RDONLY), -1)
        try:
            # Replace refs are one clone's private view of history.
            environment = {**os.environ, "GIT_NO_REPLACE_OBJECTS": "1"}
            self._process = os.posix_spawnp(
                "git",
                ["git", *arguments],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, into, 0),
                    (os.POSIX_SPAWN_DUP2, out, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
            )
        except OSError:
            os.close(answers)
            if asks:
                os.close(requests)
            raise
        finally:
            os.close(into)
            os.close(out)
        self._answers = answers
        self._requests = requests
        self._rest = b""

    def output(self) -> bytes | None:
        """All of its standard output; None when it did not end well. It is closed."""
        chunks = [self._rest]
        while chunk := os.read(self._answers, _CHUNK_BYTES):
            chunks.append(chunk)
        return b"".join(chunks) if self.close() == 0 else None

    def objects(self, names: Sequence[str]) -> list[tuple[str, bytes] | None]:
        """The objects called `names` with their ids, from `cat-file --batch`; None for each that is missing.

        Raises:
            OSError: it has gone.
        """
        found: list[tuple[str, bytes] | None] = []
        lines = [os.fsencode(name) + b"\n" for name in reversed(names)]
        while lines:
            # So little is asked at once that it never has to wait for its reader.
            group = [lines.pop()]
            while lines and sum(map(len, group)) + len(lines[-1]) <= _ASKED_BYTES:
                group.append(lines.pop())
            os.write(self._requests, b"".join(group))
            found += [self._object() for _ in group]
        return found

    def _object(self) -> tuple[str, bytes] | None:
        header = self._until_newline()
        if header.endswith((b" missing", b" ambiguous")):
            return None
        object_id, _, size = header.split(b" ")
        return object_id.decode(), self._take(int(size) + 1)[:-1]

    def close(self) -> int:
        """Its exit status; it has ended, and its pipes are closed."""
        os.close(self._answers)
        if self._requests >= 0:
            os.close(self._requests)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])

    def _until_newline(self) -> bytes:
        while b"\n" not in self._rest:
            self._read()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _take(self, count: int) -> bytes:
        while len(self._rest) < count:
            self._read()
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def _read(self) -> None:
        chunk = os.read(self._answers, _CHUNK_BYTES)
        if not chunk:
            raise OSError("git has gone")
        self._rest += chunk


DIFF_INDEX = (
    *("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-relative"),
    *("--ignore-submodules=none", "--ita-invisible-in-index", "-O/dev/null"),
)
"""What of the index differs from a tree, whatever the user's settings. What `git add -N` noted is not in the index yet."""


class Folders:
    """The folders of a repository, as absolute paths.

    Attributes:
        top: of the working tree.
        own: Git's folder for this working tree, where HEAD is.
        common: Git's folder that all linked working trees share, where refs are.
        prefix: the folder of work below `top`, "" for the top itself.
    """

    __slots__ = ("common", "own", "prefix", "top")

    def __init__(self, top: str, own: str, common: str, prefix: str) -> None:
        self.top = top
        self.own = own
        self.common = common
        self.prefix = prefix


def find(here: str) -> Folders | None:
    """The folders of the repository that the folder `here`, where git would run, is in; None: ask git itself."""
    if any(
        name in os.environ for name in ("GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_GRAFT_FILE")
    ):
        return None
    top = here
    given = os.environ.get("GIT_DIR")
    if given is not None:
        # A hook runs at the top of the working tree, and its GIT_DIR is absolute or counts from there.
        own = os.path.join(here, given)
    else:
        while not os.path.lexists(own := os.path.join(top, ".git")):
            above = os.path.dirname(top)
            if above == top:
                return None
            top = above
    if os.path.isfile(own):
        # A linked working tree, or a submodule.
        pointer = read(own)
        if not pointer.startswith(b"gitdir: "):
            return None
        own = os.path.join(top, os.fsdecode(pointer[8:].rstrip(b"\n")))
    shared = read(os.path.join(own, "commondir"))
    common = os.path.join(own, os.fsdecode(shared.rstrip(b"\n"))) if shared else own
    if not read(os.path.join(own, "HEAD")):
        return None
    return Folders(top, own, common, here[len(top) :].strip("/"))


def stamp(folders: Folders, approved: str) -> bytes:
    """Something that stays equal as long as HEAD and the approved ref, and which ref that is, stay as they are.

    `approved` is the ref that the project names; "": none, so that the remotes' default branches count.
    """
    own = [read(os.path.join(folders.own, "HEAD"))]
    # As git looks for a short name (gitrevisions).
    names = [
        approved,
        *(f"refs/{kind}{approved}" for kind in ("", "tags/", "heads/", "remotes/")),
        f"refs/remotes/{approved}/HEAD",
    ]
    if not approved:
        names = [
            *(f"refs/remotes/{remote}/HEAD" for remote in _listed(folders.common, "refs/remotes")),
            *_USUAL,
        ]
    parts = [*own, *(read(os.path.join(folders.common, name)) for name in names)]
    # Symbolic refs: what they lead to.
    parts += [
        read(os.path.join(folders.common, os.fsdecode(part[5:].strip())))
        for part in parts
        if part.startswith(b"ref: ")
    ]
    parts.append(read(os.path.join(folders.common, "reftable", "tables.list")))
    parts += [_seen(os.path.join(folders.common, name)) for name in ("packed-refs", "shallow", "info/grafts")]
    return b"\n".join([*map(os.fsencode, names), *parts])


def read(path: str) -> bytes:
    """The content of a small file; nothing where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _listed(*parts: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return []


def _seen(path: str) -> bytes:
    """What tells a file from the one that replaces it."""
    try:
        found = os.stat(path)
    except OSError:
        return b""
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}".encode()
