"""File systems on which a process dies between two changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from typing import Any

from pyarrow import fs
from pyspark import TaskContext, cloudpickle


class Killed(BaseException):
    """The process is no more."""


class FragileFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """Files that allow `changes` changes: the next one, and all later ones, raise `Killed`.

    They are local, or on an object store.
    """

    def __init__(self, changes: int, store: fs.FileSystem | None = None) -> None:
        self.changes = changes
        self.store = store
        self.files = fs.LocalFileSystem() if store is None else store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FragileFiles)

    def __hash__(self) -> int:
        return 0

    def _change(self) -> None:
        if self.changes <= 0:
            self._kill_process()
            raise Killed
        self.changes -= 1

    def _kill_process(self) -> None:
        """End the process; by default, `Killed` is enough."""

    def get_type_name(self) -> str:
        return "fragile"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self.files.get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> Any:
        return self.files.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: FBT001  pyarrow's signature
        self._change()
        self.files.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._change()
        self.files.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:  # noqa: FBT001, FBT002  same
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._change()
        self.files.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self._change()
        if self.store is None:
            self.files.move(src, dest)
        else:
            self.files.copy_file(src, dest)
            self._change()
            self.files.delete_file(src)

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def open_input_stream(self, path: str) -> Any:
        return self.files.open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self.files.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002  same
        try:
            self._change()
        except Killed:
            # Dead after the file was made and before anything stood in it.
            if self.store is None:
                self.files.open_output_stream(path).close()
            raise
        return self.files.open_output_stream(path)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError


class OvertakenFiles(FragileFiles):
    """Local files that call `meanwhile` just before change number `changes`."""

    def __init__(self, changes: int, meanwhile: Callable[[], None]) -> None:
        super().__init__(changes)
        self.meanwhile = meanwhile

    def _change(self) -> None:
        self.changes -= 1
        if self.changes == 0:
            self.meanwhile()
        self.changes = max(self.changes, 0)


class BusyFiles(FragileFiles):
    """Local files. Just before an empty folder is removed, another writer puts a file into it."""

    def __init__(self) -> None:
        super().__init__(sys.maxsize)

    def delete_dir(self, path: str) -> None:
        self.files.delete_dir_contents(path)
        Path(path, "late").touch()
        Path(path).rmdir()


class Deadly(FragileFiles):
    """Files that kill with SIGKILL, once: the first who makes `mark` kills.

    Args:
        changes: the changes that one process of Spark makes before it is killed.
        mark: a file that says that it happened.
        victims: who is killed: "worker" (the process that writes) or "executor" (the JVM it works for) in a task;
            "committer" (the process that commits), and others by their numbers, in a commit.
        store: where they are.
    """

    def __init__(self, changes: int, mark: str, *victims: int | str, store: fs.FileSystem | None = None) -> None:
        super().__init__(changes, store)
        self.mark = mark
        self.victims = victims
        self.starter = os.getpid()

    def _change(self) -> None:
        in_task = TaskContext.get() is not None
        concerned = in_task == (self.victims[0] in ("worker", "executor")) and os.getpid() != self.starter
        if concerned and not Path(self.mark).exists():
            super()._change()

    def _kill_process(self) -> None:
        Path(self.mark).touch(exist_ok=False)
        for victim in self.victims:
            if victim == "executor":
                # Of which the daemon is a child that started this process.
                os.kill(int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]), SIGKILL)
            elif isinstance(victim, int):
                os.kill(victim, SIGKILL)
        os.kill(os.getpid(), SIGKILL)


# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
