"""The interface to a repository's files, and the working tree as one implementation.

Whatever a path may lead to (a folder outside, a link, another repository, a pointer to large-file storage) is rejected
here, so that the parts that read content meet plain files of the repository alone.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, Protocol

from schemactl.core.atomic_files import is_git_s_own
from schemactl.core.errors import DeclarationError, Problem, Source, meant
from schemactl.declare.source_location import place

MAX_BYTES: Final = 5 * 1024 * 1024
"""The largest file that is read: a broker rejects larger definitions (5,242,710 bytes were the most it took)."""

MAX_PROBLEMS: Final = 100
"""At most this many problems of one file are shown."""

YAML_SUFFIXES: Final = (".yaml", ".yml")
AVRO_SUFFIXES: Final = (".avsc", ".json")
PROTO_SUFFIX: Final = ".proto"
DESCRIPTOR_SUFFIX: Final = ".binpb"

SAMPLE_SUFFIXES: Final = (".bin", ".jsonl")
"""Of files of sample messages."""

SUFFIXES: Final = (*YAML_SUFFIXES, *AVRO_SUFFIXES, PROTO_SUFFIX, DESCRIPTOR_SUFFIX)
"""How the names of all files end that declarations can consist of."""

Kind = Literal["file", "symlink", "submodule", "missing"]


class Files(Protocol):
    """The files of one state of a repository: a commit, the index, or the working tree.

    Paths are relative to the repository's top, with `/`, and name files alone: for a folder `kind` says `missing`,
    unless it is a link or another repository.
    """

    def paths(self) -> Iterable[str]:
        """Every file, in any order; links and submodules may be among them."""
        ...

    def below(self, folder: str) -> Iterable[str]:
        """Every file below a folder, whether `paths` gives it or not; of a path that is no folder perhaps itself."""
        ...

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: it cannot be read.
            DeclarationError: it is too large to be one of ours.
        """
        ...

    def kind(self, path: str) -> Kind:
        """Return what is at `path`."""
        ...


class ChangedFiles:
    """Files with these contents, by path, in place of those of another state of a repository, or by themselves."""

    def __init__(self, contents: Mapping[str, bytes], over: Files | None = None) -> None:
        self._contents = contents
        self._over = over

    def paths(self) -> Iterable[str]:
        """See `Files`."""
        return {*self._contents, *(self._over.paths() if self._over else ())}

    def below(self, folder: str) -> Iterable[str]:
        """See `Files`."""
        here = {path for path in self._contents if path.startswith(f"{folder}/" if folder else "")}
        return {*here, *(self._over.below(folder) if self._over else ())}

    def read(self, path: str) -> bytes:
        """See `Files`."""
        if self._over and path not in self._contents:
            return self._over.read(path)
        return self._contents[path]

    def kind(self, path: str) -> Kind:
        """See `Files`."""
        return "file" if path in self._contents else self._over.kind(path) if self._over else "missing"


class WorktreeFiles:
    """The working tree below `top`, without `.git`. Links are never followed.

    `paths` walks `folders` alone, so that a large repository costs no more than its declarations; `read` and `kind`
    answer for every path.
    """

    def __init__(self, top: str, *, folders: Sequence[str] = ("",)) -> None:
        self.top = Path(top)
        self.folders = tuple(folders)
        self._folders: dict[str, Kind] = {}

    def paths(self) -> Iterator[str]:
        """Every file below the folders, sorted within each folder; links and submodules among them."""
        seen: set[str] = set()
        for folder in self.folders:
            if folder not in seen:
                seen.add(folder)
                yield from self._walk(folder)

    def below(self, folder: str) -> Iterator[str]:
        """Every file below a folder, as `paths` gives them."""
        return self._walk(folder)

    def read(self, path: str) -> bytes:
        """Return the content of the file.

        Raises:
            OSError: it cannot be read.
            DeclarationError: it is larger than MAX_BYTES.
        """
        # Whoever swaps the file for a link or a pipe in between gets an error, not another file's content.
        descriptor = os.open(f"{self.top}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            size_bytes = os.fstat(descriptor).st_size
            if size_bytes > MAX_BYTES:
                raise DeclarationError([too_large(path, size_bytes)])
            return file.read()

    def kind(self, path: str) -> Kind:
        """Return what is at `path`, or the first link or submodule on the way to it."""
        folder, _, _ = path.rpartition("/")
        if folder and (above := self._folder(folder)) != "missing":
            return above
        mode = self._mode(path)
        if stat.S_ISDIR(mode):
            return self._folder(path)
        return "symlink" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "missing"

    def _folder(self, path: str) -> Kind:
        """Return the first link or submodule on the way to a folder, itself included; `missing` for a plain one."""
        found = self._folders.get(path)
        if found is None:
            above, _, _ = path.rpartition("/")
            found = self._folder(above) if above else "missing"
            if found == "missing":
                mode = self._mode(path)
                if stat.S_ISLNK(mode):
                    found = "symlink"
                elif stat.S_ISDIR(mode) and self._mode(path + "/.git"):
                    found = "submodule"
            self._folders[path] = found
        return found

    def _mode(self, path: str) -> int:
        """As lstat gives it; 0 where nothing is."""
        try:
            return os.lstat(f"{self.top}/{path}").st_mode
        except (OSError, ValueError):
            return 0

    def _walk(self, folder: str) -> Iterator[str]:
        start = self.top / folder
        if folder and self.kind(folder) != "missing":
            yield folder
            return
        for here, folders, names in os.walk(start):
            within = Path(here).relative_to(self.top).as_posix()
            prefix = "" if within == "." else within + "/"
            apart = [name for name in folders if self._apart(here, name)]
            yield from (prefix + name for name in sorted([*names, *apart]))
            folders[:] = sorted(name for name in folders if name != ".git" and name not in apart)

    def _apart(self, here: str, name: str) -> bool:
        """Whether a folder is a link or another repository: named, never entered."""
        path = os.path.join(here, name)  # noqa: PTH118  a Path for every folder of a large tree is slow
        return name != ".git" and (os.path.islink(path) or os.path.lexists(os.path.join(path, ".git")))  # noqa: PTH114, PTH118  same


def too_large(path: str, size_bytes: int) -> Problem:
    """Return the problem that a file is larger than what is read."""
    return Problem(
        Source(shown(path)),
        f"the file has {size_bytes:,} bytes; a declaration, definition or file of samples has at most {MAX_BYTES:,}",
        "split it: a broker rejects larger definitions, too",
    )


def shown(path: str) -> str:
    """`path` as it can be printed: line breaks, and bytes that are no UTF-8 (surrogate escapes), become escapes."""
    if path.isprintable():
        return path
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in path)


def _escaped(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()


@lru_cache(maxsize=16_384)  # a history resolves the same ones again and again
def resolve(folder: str, written: str) -> str:
    """Return the path in the repository that `written` means in a file of `folder`.

    Raises:
        ValueError: it leads out of the repository, or is no path that works everywhere; says why.
    """
    if not written.isprintable() or not written.strip():
        raise ValueError(f"{written!r} is not a path")
    if "\\" in written:
        raise ValueError(f"`{written}` has a backslash: folders are separated by `/`")
    if written.startswith(("/", "~")) or re.match(r"[A-Za-z]:", written):
        raise ValueError(f"`{written}` is not relative: a path starts at the folder of the file that names it")
    path = posixpath.normpath(posixpath.join(folder, written))
    if path == ".." or path.startswith("../"):
        raise ValueError(f"`{written}` leads out of the repository")
    if any(is_git_s_own(part) for part in path.split("/")):
        raise ValueError(f"`{written}` leads into Git's own folder")
    return "" if path == "." else path


def obstacle(files: Files, path: str) -> str | None:
    """Return why `path` cannot be read as a file of this repository; None: it can."""
    if not path:
        return "that is the top folder of the repository, not a file"
    if files.kind(path) == "file":
        return None
    parts = path.split("/")
    for length in range(1, len(parts) + 1):
        part = "/".join(parts[:length])
        kind = files.kind(part)
        if kind == "symlink":
            return f"`{part}` is a symbolic link; links are not followed"
        if kind == "submodule":
            return f"`{part}` is another repository (a submodule); its files are not part of this one"
    if next(iter(files.below(path)), None) is not None:
        return f"`{shown(path)}` is a folder, not a file"
    return f"there is no file `{shown(path)}`"


def suggestion(files: Files, path: str, suffixes: tuple[str, ...]) -> str | None:
    """Return the file that was probably meant by `path`: of the same name in another folder, or of nearly that name in this one."""
    folder, name = posixpath.split(path)
    candidates = [each for each in files.paths() if each.endswith(suffixes) and each != path]
    same = [each for each in candidates if posixpath.basename(each).casefold() == name.casefold()]
    if same:
        return min(same, key=lambda each: (posixpath.dirname(each) != folder, len(each), each))
    neighbours = {Path(each).stem: each for each in candidates if posixpath.dirname(each) == folder}
    near = meant(Path(name).stem, neighbours)
    return neighbours[near] if near else None


def folders_with_yaml(files: Files, folder: str) -> list[str]:
    """Return the paths of the folders right below `folder` that have YAML files below them."""
    if isinstance(files, WorktreeFiles):
        with suppress(OSError):
            inside = [entry.name for entry in os.scandir(files.top / folder) if entry.is_dir(follow_symlinks=False)]
            files = WorktreeFiles(str(files.top), folders=[posixpath.join(folder, name) for name in inside[:100]])
    prefix = f"{folder}/" if folder else ""
    inner = (
        path.removeprefix(prefix) for path in files.paths() if path.startswith(prefix) and path.endswith(YAML_SUFFIXES)
    )
    return sorted({prefix + path.partition("/")[0] for path in inner if "/" in path and not path.startswith(".")})


def read_bytes(files: Files, path: str) -> bytes:
    """Return the content of a file.

    Raises:
        DeclarationError: it cannot be read, is too large, or is a pointer to large-file storage.
    """
    try:
        data = files.read(path)
    except OSError as error:
        raise _unreadable(Source(shown(path)), f"the file cannot be read: {error.strerror or error}", "") from None
    check_bytes(path, data)
    return data


_LFS: Final = b"version https://git-lfs.github.com/spec/v1"
_CONFLICT: Final = re.compile(r"^(?:<{7} |>{7} |={7}$)", re.MULTILINE)


def check_bytes(path: str, data: bytes) -> None:
    """Raise DeclarationError unless `data` is small enough, and the file's own content.

    Raises:
        DeclarationError: it is too large, or a pointer to large-file storage.
    """
    if len(data) > MAX_BYTES:
        raise DeclarationError([too_large(path, len(data))])
    if data.startswith(_LFS):
        raise DeclarationError(
            [
                Problem(
                    Source(shown(path)),
                    "this is a Git LFS pointer, not the file itself: history could not be read from it",
                    "take it out of LFS: `git lfs untrack` its pattern, then add and commit the file again",
                )
            ]
        )


def decode(path: str, data: bytes) -> str:
    """Return the text of a file.

    Raises:
        DeclarationError: one problem: it is too large, a pointer, binary, no UTF-8, or has conflict markers.
    """
    check_bytes(path, data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        raise _unreadable(
            place(shown(path), before, len(before)),
            f"byte 0x{data[error.start]:02X} is not UTF-8" + (" (the file is binary)" if b"\0" in data else ""),
            "save the file as UTF-8",
        ) from None
    if text.startswith("\ufeff"):
        raise _unreadable(Source(shown(path)), "the file starts with a byte order mark", "save it as UTF-8 without BOM")
    if "\0" in text:
        raise _unreadable(
            place(shown(path), text, text.index("\0")),
            "the file is binary: it contains a zero byte",
            "save it as UTF-8 text",
        )
    # One character is looked for much faster than several, and most files have neither.
    if ("<" in text or ">" in text) and ("<<<<<<< " in text or ">>>>>>> " in text):
        marker = _CONFLICT.search(text)
        if marker:
            raise _unreadable(
                place(shown(path), text, marker.start()),
                f"`{marker[0].strip()}` is the marker of a merge conflict",
                "resolve the conflict, then stage the file",
            )
    return text


def _unreadable(source: Source, what: str, fix: str) -> DeclarationError:
    return DeclarationError([Problem(source, what, fix)])
