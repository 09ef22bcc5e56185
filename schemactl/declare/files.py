"""Access the files of a repository through one interface, with the working tree as an implementation.

Paths to anything but a plain file of the repository (an outer folder, a link, another repository, a Git LFS pointer) are rejected
here, so that all readers get plain files.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, Literal, Protocol

from schemactl.core.atomic_files import is_git_folder_name
from schemactl.core.errors import DeclarationError, Problem, Source, find_close_match
from schemactl.core.escaping import escape_path
from schemactl.declare.source_location import place

MAX_BYTES: Final = 5 * 1024 * 1024
"""The largest file that is read. A broker accepts definitions of at most 5,242,710 bytes."""

_MAX_LISTED_FILES: Final = 50_000
"""How many files are listed to name the folders of a project, so that a large repository does not delay the message."""

_MAX_NAMED_FOLDERS: Final = 10

MAX_PROBLEMS: Final = 100
"""The maximum number of reported problems of a file."""

YAML_SUFFIXES: Final = (".yaml", ".yml")
AVRO_SUFFIXES: Final = (".avsc", ".json")
PROTO_SUFFIX: Final = ".proto"
DESCRIPTOR_SUFFIX: Final = ".binpb"
TEXT_SUFFIX: Final = ".txt"
EXTERNAL_SUFFIXES: Final = (TEXT_SUFFIX, ".json", PROTO_SUFFIX)
"""The suffixes of definitions of type EXTERNAL. `fmt` formats every `.avsc` file, which would change the bytes that a broker compares."""

SAMPLE_SUFFIXES: Final = (".bin", ".jsonl")
"""The suffixes of files of sample messages."""

SUFFIXES: Final = (*YAML_SUFFIXES, *AVRO_SUFFIXES, PROTO_SUFFIX, DESCRIPTOR_SUFFIX, TEXT_SUFFIX)
"""The suffixes of all files of declarations."""

Kind = Literal["file", "symlink", "submodule", "missing"]


class Files(Protocol):
    """The files of one state of a repository: a commit, the index, or the working tree.

    Paths are relative to the repository's top, with `/`, and only name files: the kind of a folder is `missing`, unless it is a
    link or another repository.
    """

    def paths(self) -> Iterable[str]:
        """Return all files in any order, perhaps including links and submodules."""
        ...

    def below(self, folder: str) -> Iterable[str]:
        """Return all files below a folder, including files that `paths` omits. For another path the result may be the path itself."""
        ...

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: if it cannot be read.
            DeclarationError: if it is too large.
        """
        ...

    def kind(self, path: str) -> Kind:
        """Return the kind of the file at `path`."""
        ...


class ChangedFiles:
    """Contents by path that replace or extend the files of another state of a repository, if there is one."""

    def __init__(self, contents: Mapping[str, bytes], over: Files | None = None) -> None:
        self._contents = contents
        self._over = over

    def paths(self) -> Iterable[str]:
        """See `Files`."""
        return {*self._contents, *(self._over.paths() if self._over else ())}

    def below(self, folder: str) -> Iterable[str]:
        """See `Files`."""
        changed = {path for path in self._contents if path.startswith(f"{folder}/" if folder else "")}
        return {*changed, *(self._over.below(folder) if self._over else ())}

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

    `paths` walks only `folders`, so that the time does not depend on the rest of a large repository; `read` and `kind` accept
    every path.
    """

    def __init__(self, top: str, *, folders: Sequence[str] = ("",)) -> None:
        self.top = Path(top)
        self.folders = tuple(folders)
        self._folder_kinds: dict[str, Kind] = {}

    def paths(self) -> Iterator[str]:
        """Yield all files below the folders, sorted within each folder, including links and submodules."""
        for folder in dict.fromkeys(self.folders):
            yield from self._walk(folder)

    def below(self, folder: str) -> Iterator[str]:
        """Yield all files below a folder in the order of `paths`."""
        return self._walk(folder)

    def read(self, path: str) -> bytes:
        """Return the content of the file.

        Raises:
            OSError: if it cannot be read.
            DeclarationError: if it is larger than MAX_BYTES.
        """
        # If the file is replaced by a link or a pipe after the check of its kind, this fails instead of reading another file.
        descriptor = os.open(f"{self.top}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            size_bytes = os.fstat(descriptor).st_size
            if size_bytes > MAX_BYTES:
                raise DeclarationError([too_large(path, size_bytes)])
            return file.read()

    def kind(self, path: str) -> Kind:
        """Return the kind of the file at `path`, or of the first link or submodule in its path."""
        folder, _, _ = path.rpartition("/")
        if folder and (folder_kind := self._get_folder_kind(folder)) != "missing":
            return folder_kind
        mode = self._get_mode(path)
        if stat.S_ISDIR(mode):
            return self._get_folder_kind(path)
        return "symlink" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "missing"

    def _get_folder_kind(self, path: str) -> Kind:
        """Return the kind of the first link or submodule in a folder's path, including the folder; `missing` for a plain folder."""
        kind = self._folder_kinds.get(path)
        if kind is None:
            parent, _, _ = path.rpartition("/")
            kind = self._get_folder_kind(parent) if parent else "missing"
            if kind == "missing":
                mode = self._get_mode(path)
                if stat.S_ISLNK(mode):
                    kind = "symlink"
                elif stat.S_ISDIR(mode) and self._get_mode(path + "/.git"):
                    kind = "submodule"
            self._folder_kinds[path] = kind
        return kind

    def _get_mode(self, path: str) -> int:
        """Return the mode from `lstat`, or 0 if the path does not exist."""
        try:
            return os.lstat(f"{self.top}/{path}").st_mode
        except (OSError, ValueError):
            return 0

    def _walk(self, folder: str) -> Iterator[str]:
        start = self.top / folder
        if folder and self.kind(folder) != "missing":
            yield folder
            return
        for parent, folders, names in os.walk(start):
            relative_path = Path(parent).relative_to(self.top).as_posix()
            prefix = "" if relative_path == "." else relative_path + "/"
            # A link or another repository is listed but not entered.
            separate = []
            for name in folders:
                path = os.path.join(parent, name)  # noqa: PTH118  a Path for every folder of a large tree is slow
                if name != ".git" and (os.path.islink(path) or os.path.lexists(os.path.join(path, ".git"))):  # noqa: PTH114, PTH118  same
                    separate.append(name)
            yield from (prefix + name for name in sorted([*names, *separate]))
            folders[:] = sorted(name for name in folders if name != ".git" and name not in separate)


def too_large(path: str, size_bytes: int) -> Problem:
    """Return the problem of a file that is larger than MAX_BYTES."""
    return Problem(
        Source(escape_path(path)),
        f"the file has {size_bytes:,} bytes; a declaration, definition or file of samples has at most {MAX_BYTES:,}",
        "split it: a broker also rejects larger definitions",
    )


@lru_cache(maxsize=16_384)  # reading the history resolves the same paths many times
def resolve(folder: str, written: str) -> str:
    """Resolve the path `written` in a file of `folder` to a path in the repository.

    Raises:
        ValueError: with the reason, if it leads out of the repository or is not a portable relative path.
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
    if any(is_git_folder_name(part) for part in path.split("/")):
        raise ValueError(f"`{written}` leads into Git's own folder")
    return "" if path == "." else path


def make_relative(path: str, folder: str) -> str:
    """Return the path that a file of `folder` writes for a path of the repository: the reverse of `resolve`."""
    return posixpath.relpath(path, folder or ".")


def obstacle(files: Files, path: str) -> str | None:
    """Return the reason why `path` cannot be read as a file of this repository, or None if it can."""
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
        return f"`{escape_path(path)}` is a folder, not a file"
    return f"there is no file `{escape_path(path)}`"


def suggestion(files: Files, path: str, suffixes: tuple[str, ...]) -> str | None:
    """Return the file that `path` probably means: one with the same name in another folder, or a similar name in the same folder.

    A file with a similar name that a declaration in this folder names belongs to another topic.
    """
    folder, name = posixpath.split(path)
    candidates = [candidate for candidate in files.paths() if candidate.endswith(suffixes) and candidate != path]
    namesakes = [candidate for candidate in candidates if posixpath.basename(candidate).casefold() == name.casefold()]
    if namesakes:
        return min(namesakes, key=lambda namesake: (posixpath.dirname(namesake) != folder, len(namesake), namesake))
    siblings = {Path(candidate).stem: candidate for candidate in candidates if posixpath.dirname(candidate) == folder}
    stem = find_close_match(Path(name).stem, siblings)
    if stem is None:
        return None
    sibling = siblings[stem]
    if stem != Path(name).stem:
        sibling_name = re.compile(rf"(?<![\w.-]){re.escape(posixpath.basename(sibling))}(?![\w.-])".encode())
        for declaration in files.paths():
            if declaration.endswith(YAML_SUFFIXES) and posixpath.dirname(declaration) == folder:
                with suppress(OSError, DeclarationError):
                    if sibling_name.search(files.read(declaration).replace(name.encode(), b"")):
                        return None
    return sibling


def list_folders_with_yaml(files: Files, folder: str) -> list[str]:
    """Return the paths of the direct subfolders of `folder` that contain YAML files at any depth."""
    if isinstance(files, WorktreeFiles):
        with suppress(OSError):
            names = [entry.name for entry in os.scandir(files.top / folder) if entry.is_dir(follow_symlinks=False)]
            files = WorktreeFiles(str(files.top), folders=[posixpath.join(folder, name) for name in names[:100]])
    prefix = f"{folder}/" if folder else ""
    inner_paths = (
        path.removeprefix(prefix) for path in files.paths() if path.startswith(prefix) and path.endswith(YAML_SUFFIXES)
    )
    return sorted({prefix + path.partition("/")[0] for path in inner_paths if "/" in path and not path.startswith(".")})


def describe_folders(files: Files, folder: str) -> str:
    """Return the direct subfolders of `folder` as the end of a message, those with YAML files if there are any; "" without folders."""
    prefix = f"{folder}/" if folder else ""
    paths = [path.removeprefix(prefix) for path in islice(files.below(folder), _MAX_LISTED_FILES)]
    inner_paths = [path for path in paths if "/" in path and not path.startswith(".")]
    yaml_paths = [path for path in inner_paths if path.endswith(YAML_SUFFIXES)]
    names = sorted({path.partition("/")[0] for path in yaml_paths or inner_paths})
    if not names:
        return ""
    more = f" and {len(names) - _MAX_NAMED_FOLDERS} more" if len(names) > _MAX_NAMED_FOLDERS else ""
    kind = "folders with YAML files" if yaml_paths else "existing folders"
    return f"{kind}: {', '.join(map(escape_path, names[:_MAX_NAMED_FOLDERS]))}{more}"


def read_bytes(files: Files, path: str) -> bytes:
    """Return the content of a file.

    Raises:
        DeclarationError: if it cannot be read, is too large, or is a Git LFS pointer.
    """
    try:
        data = files.read(path)
    except OSError as error:
        raise _build_error(
            Source(escape_path(path)), f"the file cannot be read: {error.strerror or error}", ""
        ) from None
    check_bytes(path, data)
    return data


_LFS_HEADER: Final = b"version https://git-lfs.github.com/spec/v1"


def check_bytes(path: str, data: bytes) -> None:
    """Check that `data` is the content of a file of allowed size.

    Raises:
        DeclarationError: if it is too large, or a Git LFS pointer.
    """
    if len(data) > MAX_BYTES:
        raise DeclarationError([too_large(path, len(data))])
    if data.startswith(_LFS_HEADER):
        raise DeclarationError(
            [
                Problem(
                    Source(escape_path(path)),
                    "this is a Git LFS pointer, not the file itself: history could not be read from it",
                    "take it out of LFS: `git lfs untrack` its pattern, then add and commit the file again",
                )
            ]
        )


_CONFLICT_MARKER: Final = re.compile(r"^(?:<{7} |>{7} |={7}$)", re.MULTILINE)


def decode(path: str, data: bytes) -> str:
    """Decode the content of a file.

    Raises:
        DeclarationError: with one problem, if it is too large, a Git LFS pointer, binary, not UTF-8, or has conflict markers.
    """
    check_bytes(path, data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        valid_text = data[: error.start].decode()
        raise _build_error(
            place(escape_path(path), valid_text, len(valid_text)),
            f"byte 0x{data[error.start]:02X} is not UTF-8" + (" (the file is binary)" if b"\0" in data else ""),
            "save the file as UTF-8",
        ) from None
    if text.startswith("\ufeff"):
        raise _build_error(
            Source(escape_path(path)), "the file starts with a byte order mark", "save it as UTF-8 without BOM"
        )
    if "\0" in text:
        raise _build_error(
            place(escape_path(path), text, text.index("\0")),
            "the file is binary: it contains a zero byte",
            "save it as UTF-8 text",
        )
    # Searching one character is much faster than searching several, and most files have neither.
    if ("<" in text or ">" in text) and ("<<<<<<< " in text or ">>>>>>> " in text):
        marker = _CONFLICT_MARKER.search(text)
        if marker:
            raise _build_error(
                place(escape_path(path), text, marker.start()),
                f"`{marker[0].strip()}` is the marker of a merge conflict",
                "resolve the conflict, then stage the file",
            )
    return text


def _build_error(source: Source, message: str, fix: str) -> DeclarationError:
    return DeclarationError([Problem(source, message, fix)])
