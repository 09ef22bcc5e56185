"""Read and write files atomically, but never in Git's own folder or through a symbolic link in the repository."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DEFAULT_MODE = 0o666
"""The permissions of a new file, before the umask."""

PRIVATE_MODE = 0o600
"""The permissions of a private file."""

TEMPORARY_PREFIX, TEMPORARY_SUFFIX = ".schemactl.", ".part"
"""The name of a file until its content is complete; a process that is killed leaves it."""

_IGNORED_CHARACTERS = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""Characters that HFS+ ignores in a name."""


def is_git_folder_name(name: str) -> bool:
    """Return whether the name is `.git` on some file system, by Git's rules (core.protectHFS, core.protectNTFS)."""
    return name.translate(_IGNORED_CHARACTERS).partition(":")[0].rstrip(" .").lower() in (".git", "git~1")


def find_top_folder(directory: str) -> str:
    """Return the real path of the repository around a folder, or of the folder itself without repository."""
    start = folder = os.path.realpath(directory)
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return start
        folder = parent
    return folder


def write(
    path: str | os.PathLike[str],
    data: bytes | Iterable[bytes],
    *,
    below: str | None,
    mode: int = _DEFAULT_MODE,
    is_new: bool = False,
    make_folders: bool = True,
) -> None:
    """Write `data` to the file at `path` atomically: readers see the old file or the new one.

    Args:
        path: the path of the file, absolute or relative to the working directory.
        data: the content.
        below: a real path. Below it, links and Git's own folder are rejected; outside of it, a device or a pipe is written
            to directly. With None, links to the folder of the file are followed, and the folder may be Git's own.
        mode: the permissions, before the umask.
        is_new: whether the file must not exist.
        make_folders: whether to create missing folders.

    Raises:
        FileExistsError: if the file exists, with `is_new`.
        SchemactlError: if the path leads through a link or Git's own folder below `below`, or to a link, a pipe or a device.
        OSError: if the file cannot be written; its `filename` is `path`.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        place = _open(path, below, make=make_folders)
        try:
            place.is_file()
            # Outside of `below`, the user may name a device or a pipe, which must not be replaced. In Git's folder, it would be
            # an attack that makes this process wait.
            if below is not None and place.is_device():
                descriptor = os.open(place.name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=place.folder)
                with os.fdopen(descriptor, "wb") as file:
                    file.writelines(pieces)
            else:
                _replace(place, pieces, mode, is_new=is_new)
        finally:
            os.close(place.folder)
    except OSError as error:
        # The error may name a folder or the temporary file, whose names mean nothing to the user.
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def _replace(place: _FilePlace, pieces: Iterable[bytes], mode: int, *, is_new: bool) -> None:
    temporary = f"{TEMPORARY_PREFIX}{os.urandom(12).hex()}{TEMPORARY_SUFFIX}"
    descriptor = os.open(temporary, _NEW_FILE_FLAGS, mode, dir_fd=place.folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
        if is_new:
            _rename_to_new(temporary, place)
        else:
            os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        _unlink(temporary, place)
        raise


def read(path: str | os.PathLike[str], *, below: str | None) -> bytes | None:
    """Return the content of the file at `path`, or None if it does not exist. For the arguments see `write`.

    Raises:
        SchemactlError: if the path leads through a link or Git's own folder below `below`, or to a link, a pipe or a device.
        OSError: if it cannot be read.
    """
    try:
        place = _open(path, below)
    except FileNotFoundError:
        return None
    try:
        if not place.is_file():
            return None
        no_follow = 0 if place.inside is None else os.O_NOFOLLOW
        descriptor = os.open(place.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | no_follow, dir_fd=place.folder)
    except FileNotFoundError:
        return None
    finally:
        os.close(place.folder)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def reopen(path: str | os.PathLike[str], *, below: str | None) -> int:
    """Open the file at `path`, which `write` has written, to change it in place, and return its descriptor.

    For the arguments see `write`.

    Raises:
        SchemactlError: if the path leads through a link or Git's own folder below `below`, or to a link, a pipe or a device.
        OSError: if it cannot be opened.
    """
    place = _open(path, below)
    try:
        place.is_file()
        no_follow = 0 if place.inside is None else os.O_NOFOLLOW
        return os.open(place.name, os.O_WRONLY | os.O_CLOEXEC | no_follow, dir_fd=place.folder)
    finally:
        os.close(place.folder)


def remove(path: str | os.PathLike[str], *, below: str | None) -> None:
    """Remove the file or link at `path`. For the arguments see `write`.

    Raises:
        SchemactlError: if the path leads through a link or Git's own folder below `below`.
        OSError: if it cannot be removed.
    """
    place = _open(path, below)
    try:
        os.unlink(place.name, dir_fd=place.folder)
    finally:
        os.close(place.folder)


def reject_links(path: str | os.PathLike[str], *, below: str) -> None:
    """Reject a path that another program will write to, if it leads through a link or Git's own folder below `below`.

    Raises:
        SchemactlError: if the path is rejected.
    """
    start, names = _split(os.path.join(os.getcwd(), path), below)
    _reject_git_folder(names)
    for count in range(1, len(names) + 1):
        if os.path.islink(os.path.join(start, *names[:count])):
            _reject("/".join(names[:count]), "a symbolic link")


class _FilePlace:
    """The location of a file, which may not exist yet.

    Attributes:
        folder: the descriptor of its folder.
        name: its name in the folder.
        inside: the path of its folder below the protected folder, in parts, or None if it is outside.
    """

    __slots__ = ("folder", "inside", "name")

    def __init__(self, folder: int, name: str, inside: list[str] | None) -> None:
        self.folder = folder
        self.name = name
        self.inside = inside

    def is_file(self) -> bool:
        """Return whether the file exists; raise SchemactlError for a link, a pipe or a device. True outside, where all is allowed."""
        if self.inside is None:
            return True
        try:
            mode = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return False
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe or a device"
            _reject("/".join([*self.inside, self.name]), kind)
        return True

    def is_device(self) -> bool:
        """Return whether it is a pipe or a device like /dev/null outside of the protected folder."""
        if self.inside is not None:
            return False
        try:
            mode = os.stat(self.name, dir_fd=self.folder).st_mode
        except FileNotFoundError:
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _open(path: str | os.PathLike[str], below: str | None, *, make: bool = False) -> _FilePlace:
    """Open the folder of `path`; with `make`, create missing folders.

    Each folder in `below` is opened relative to its parent, so that no link can be inserted in the meantime.
    """
    parent, name = os.path.split(os.path.join(os.getcwd(), path))
    start, names = (parent, []) if below is None else _split(parent, below)
    if start != below:
        if make:
            os.makedirs(start, exist_ok=True)
        return _FilePlace(os.open(start, _FOLDER_FLAGS), name, None)
    _reject_git_folder([*names, name])
    folder = os.open(start, _FOLDER_FLAGS)
    for index in range(len(names)):
        try:
            subfolder = _open_subfolder(folder, names[: index + 1], make=make)
        finally:
            os.close(folder)
        folder = subfolder
    return _FilePlace(folder, name, names)


def _split(path: str, below: str) -> tuple[str, list[str]]:
    """Split an absolute path into `below` and the parts below it, or into a real path outside and []."""
    prefix = below.rstrip("/") + "/"
    current = "/"
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(current)
        elif current == below or current.startswith(prefix):
            current = os.path.join(current, part)
        else:
            # `current` is a real path.
            path = os.path.join(current, part)
            current = os.path.realpath(path) if os.path.islink(path) else path
    if not f"{current}/".startswith(prefix):
        return current, []
    return below, current[len(prefix) :].split("/") if len(current) > len(prefix) else []


def _open_subfolder(folder: int, names: list[str], *, make: bool) -> int:
    """Open the folder with the last of `names` in `folder`."""
    name = names[-1]
    try:
        return os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            _reject("/".join(names), "a symbolic link")
        raise
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        # Another process created it, or a link, in the meantime.
        pass
    return os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)


def _rename_to_new(temporary: str, place: _FilePlace) -> None:
    """Rename the temporary file to the final name, unless that exists."""
    try:
        os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems do not support hard links; there, check and rename.
        try:
            os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place.name) from None
    _unlink(temporary, place)


def _unlink(name: str, place: _FilePlace) -> None:
    try:
        os.unlink(name, dir_fd=place.folder)
    except OSError:
        pass


def _reject_git_folder(names: list[str]) -> None:
    """Raise SchemactlError if the parts of a path in the repository include Git's own folder."""
    if any(map(is_git_folder_name, names)):
        from schemactl.core.errors import SchemactlError

        raise SchemactlError(
            f"{'/'.join(names)} leads into Git's own folder: schemactl does not read or write files there",
            fix="name another file or folder",
        )


def _reject(place: str, kind: str) -> NoReturn:
    from schemactl.core.errors import SchemactlError

    raise SchemactlError(
        f"{place} is {kind}: schemactl neither reads nor writes its own files through it",
        fix="remove it, or name another file or folder",
    )
