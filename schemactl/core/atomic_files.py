"""The writer of all output files: atomic, never into Git's own folder or through a symbolic link of the repository."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SHARED = 0o666
"""The permissions of a new file, from which the process's umask takes some away."""

OWN = 0o600
"""The permissions of a file that concerns nobody else."""

_UNSEEN = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""Characters that HFS+ does not see in a name."""


def is_git_s_own(name: str) -> bool:
    """Whether the name is `.git` on some file system, by git's own rules (core.protectHFS, core.protectNTFS)."""
    return name.translate(_UNSEEN).partition(":")[0].rstrip(" .").lower() in (".git", "git~1")


def top_of(directory: str) -> str:
    """Return the real path of the repository around `directory`; of the folder itself if there is no repository."""
    start = folder = os.path.realpath(directory)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return start
        folder = above
    return folder


def write(
    path: str | os.PathLike[str],
    data: bytes | Iterable[bytes],
    *,
    below: str | None,
    mode: int = _SHARED,
    is_new: bool = False,
    make_folders: bool = True,
) -> None:
    """Write `data` to the file at `path` atomically: readers see the old file or the new one.

    Args:
        path: a relative one starts in the folder of the process.
        data: what the file holds.
        below: a real path; below it no link is followed, and Git's own folder is rejected; outside of it a device or a pipe is
            written to as it is. None: links are followed on the way to the file's folder, which may be Git's.
        mode: the file's permissions, before the umask.
        is_new: a file that is there already is left alone.
        make_folders: the folders on the way are made where they are missing.

    Raises:
        FileExistsError: it is there already, with `is_new`.
        SchemactlError: below `below` a link or Git's own folder is on the way to it, or it is one, a pipe or a device.
        OSError: the file cannot be written; its `filename` is `path`.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        place = _open(path, below, make=make_folders)
        try:
            place.is_file()
            # What somebody names outside of `below` may be one, and to replace it would take it away from everybody. In Git's
            # folder it was put there, to be waited for.
            if below is not None and place.is_device():
                descriptor = os.open(place.name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=place.folder)
                with os.fdopen(descriptor, "wb") as file:
                    file.writelines(pieces)
            else:
                _replace(place, pieces, mode, is_new=is_new)
        finally:
            os.close(place.folder)
    except OSError as error:
        # What failed may have been a folder or the temporary file, known by a name that means nothing to the user.
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def _replace(place: _FilePlace, pieces: Iterable[bytes], mode: int, *, is_new: bool) -> None:
    temporary = f".schemactl.{os.urandom(12).hex()}.part"
    descriptor = os.open(temporary, _NEW, mode, dir_fd=place.folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
        if is_new:
            _take_free_place(temporary, place)
        else:
            os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        _unlink(temporary, place)
        raise


def read(path: str | os.PathLike[str], *, below: str | None) -> bytes | None:
    """Return the content of the file at `path`; None if there is none. For the arguments see `write`.

    Raises:
        SchemactlError: below `below` a link or Git's own folder is on the way to it, or it is one, a pipe or a device.
        OSError: it cannot be read.
    """
    try:
        place = _open(path, below)
    except FileNotFoundError:
        return None
    try:
        if not place.is_file():
            return None
        kept = 0 if place.inside is None else os.O_NOFOLLOW
        descriptor = os.open(place.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | kept, dir_fd=place.folder)
    except FileNotFoundError:
        return None
    finally:
        os.close(place.folder)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def reopen(path: str | os.PathLike[str], *, below: str | None) -> int:
    """Return a descriptor with which the file at `path`, which `write` has written, is changed in place. For the arguments see `write`.

    Raises:
        SchemactlError: below `below` a link or Git's own folder is on the way to it, or it is one, a pipe or a device.
        OSError: it cannot be opened.
    """
    place = _open(path, below)
    try:
        place.is_file()
        kept = 0 if place.inside is None else os.O_NOFOLLOW
        return os.open(place.name, os.O_WRONLY | os.O_CLOEXEC | kept, dir_fd=place.folder)
    finally:
        os.close(place.folder)


def remove(path: str | os.PathLike[str], *, below: str | None) -> None:
    """Remove the file at `path`; of a link, the link itself. For the arguments see `write`.

    Raises:
        SchemactlError: below `below` a link or Git's own folder is on the way to it.
        OSError: it cannot be removed.
    """
    place = _open(path, below)
    try:
        os.unlink(place.name, dir_fd=place.folder)
    finally:
        os.close(place.folder)


def reject_links(path: str | os.PathLike[str], *, below: str) -> None:
    """Reject a `path` that is, or leads through, a link below `below` or Git's own folder: for what somebody else writes there.

    Raises:
        SchemactlError: something is.
    """
    start, names = _split(os.path.join(os.getcwd(), path), below)
    _reject_git_s_own(names)
    for at in range(1, len(names) + 1):
        if os.path.islink(os.path.join(start, *names[:at])):
            _reject("/".join(names[:at]), "a symbolic link")


class _FilePlace:
    """Where a file is or will be.

    Attributes:
        folder: the descriptor of its folder.
        name: its name there.
        inside: the parts of the way to its folder from where links are no longer followed; None: it lies outside.
    """

    __slots__ = ("folder", "inside", "name")

    def __init__(self, folder: int, name: str, inside: list[str] | None) -> None:
        self.folder = folder
        self.name = name
        self.inside = inside

    def is_file(self) -> bool:
        """Whether something is there that may be a file; outside it is not asked for, and may be a link."""
        if self.inside is None:
            return True
        try:
            found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return False
        if not (stat.S_ISREG(found) or stat.S_ISDIR(found)):
            kind = "a symbolic link" if stat.S_ISLNK(found) else "a pipe or a device"
            _reject("/".join([*self.inside, self.name]), kind)
        return True

    def is_device(self) -> bool:
        """Whether it lies outside, and is neither a file nor a folder: a device such as /dev/null, or a pipe."""
        if self.inside is not None:
            return False
        try:
            found = os.stat(self.name, dir_fd=self.folder).st_mode
        except FileNotFoundError:
            return False
        return not (stat.S_ISREG(found) or stat.S_ISDIR(found))


def _open(path: str | os.PathLike[str], below: str | None, *, make: bool = False) -> _FilePlace:
    """Open the place of `path`; with `make`, its folders are made.

    Each folder in `below` is opened from the one before it, so that nobody puts a link in between.
    """
    before, name = os.path.split(os.path.join(os.getcwd(), path))
    start, names = (before, []) if below is None else _split(before, below)
    if start != below:
        if make:
            os.makedirs(start, exist_ok=True)
        return _FilePlace(os.open(start, _FOLDER), name, None)
    _reject_git_s_own([*names, name])
    folder = os.open(start, _FOLDER)
    for at in range(len(names)):
        try:
            inner = _enter(folder, names[: at + 1], make=make)
        finally:
            os.close(folder)
        folder = inner
    return _FilePlace(folder, name, names)


def _split(path: str, below: str) -> tuple[str, list[str]]:
    """Where an absolute path leads: `below` and the parts of the way from there; or a real path outside, and none."""
    inside = below.rstrip("/") + "/"
    reached = "/"
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            reached = os.path.dirname(reached)
        elif reached == below or reached.startswith(inside):
            reached = os.path.join(reached, part)
        else:
            reached = os.path.realpath(os.path.join(reached, part))
    if not f"{reached}/".startswith(inside):
        return reached, []
    return below, reached[len(inside) :].split("/") if len(reached) > len(inside) else []


def _enter(folder: int, names: list[str], *, make: bool) -> int:
    """Open the last of `names`, which is in `folder`."""
    name = names[-1]
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
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
        # Somebody else made it, or a link, meanwhile.
        pass
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)


def _take_free_place(temporary: str, place: _FilePlace) -> None:
    """Rename the file `temporary` to the place's name, unless something has that name."""
    try:
        os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no second names. What is there is looked for, then.
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


def _reject_git_s_own(names: list[str]) -> None:
    """Raise SchemactlError if the parts of a path below the repository's top lead through Git's own folder."""
    if any(map(is_git_s_own, names)):
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
