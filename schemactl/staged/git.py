"""Git for the hook: its commands, started as cheaply as can be.

`subprocess` and `pathlib` each take as long to import as the hook may take as a whole.
"""

from __future__ import annotations

import os

from schemactl.history import confined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemactl.history.folders import Folders

_CHUNK_BYTES = 1 << 16
_ASKED_BYTES = 4096
"""What every pipe holds."""


class Git:
    """A git command on the repository with these folders, with the caller's environment. Close it.

    Its standard error goes nowhere: whoever asks here gives up on any trouble, and the complete way tells of it.

    Attributes:
        id: of the process.
        answers: the pipe that its answers come from; `requests`: the one that it is asked through, -1 where it is not.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, folders: Folders, *arguments: str, asks: bool = False) -> None:
        answers, out = os.pipe()
        into, requests = os.pipe() if asks else (os.open(os.devnull, os.O_RDONLY), -1)
        try:
            pinned = confined.pinned(folders.own, folders.top)
            environment = {**os.environ, **confined.VARIABLES, **pinned}
            self.id = os.posix_spawnp(
                "git",
                ["git", *confined.OPTIONS, *arguments],
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
        self.answers = answers
        self.requests = requests
        self._rest = b""

    def output(self) -> bytes | None:
        """All of its standard output; None when it did not end well. It is closed."""
        chunks = [self._rest]
        try:
            while chunk := os.read(self.answers, _CHUNK_BYTES):
                chunks.append(chunk)
        except BaseException:
            self.kill()
            raise
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
            os.write(self.requests, b"".join(group))
            found += [self._object() for _ in group]
        return found

    def _object(self) -> tuple[str, bytes] | None:
        header = self._until_newline()
        if header.endswith((b" missing", b" ambiguous")):
            return None
        object_id, _, size = header.split(b" ")
        return object_id.decode(), self._take(int(size) + 1)[:-1]

    def kill(self) -> None:
        """It has ended, however far it had come, and its pipes are closed."""
        os.kill(self.id, 9)
        self.close()

    def close(self) -> int:
        """Its exit status; it has ended, and its pipes are closed."""
        os.close(self.answers)
        if self.requests >= 0:
            os.close(self.requests)
        return os.waitstatus_to_exitcode(os.waitpid(self.id, 0)[1])

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
        chunk = os.read(self.answers, _CHUNK_BYTES)
        if not chunk:
            raise OSError("git has gone")
        self._rest += chunk
