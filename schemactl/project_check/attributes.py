"""Git attributes (gitattributes) that change a file's bytes; they are an error for files that a check reads.

Git's history would hold another text than whoever reviews the file sees. What git would store is never asked for: that runs
programs. Line ends, which `text`, `eol` and the older `crlf` convert, make no difference to declarations that are text; of a
binary definition they are content like all else.
"""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, Problem, Source
from schemactl.declare.files import DESCRIPTOR_SUFFIX, Files, shown
from schemactl.history.files import GitFiles, IndexFiles, content
from schemactl.history.repository import Repository

CONVERTING: Final = ("filter", "ident", "working-tree-encoding")
"""The attributes by which the two differ in more than line ends."""

_LINE_ENDS: Final = ("text", "crlf", "eol")
"""The attributes by which they differ in line ends."""

_FILE: Final = ".gitattributes"
_MACRO: Final = "[attr]"
_WITHOUT: Final = ("unspecified", "unset")
_READ: Final = ("file", "symlink")
"""What git reads as a file of attributes in a commit or index: of a link, where it leads."""

_STRANGE: Final = [bytes([each]) for each in (*range(0x20), 0x7F) if each not in b"\b\t\n\f\r\x1b"]
"""The bytes that git takes for a sign that something is no text."""

_ALL: Final = (*CONVERTING, *_LINE_ENDS)


def problems(repository: Repository, files: Files, paths: Iterable[str]) -> list[Problem]:
    """Return a problem for each such attribute of `paths`, the files that are judged.

    Attributes are read from the judged state: a commit, the index, or the working tree and, where it lacks one, the index.
    """
    judged = sorted(set(paths))
    has_binary = any(path.endswith(DESCRIPTOR_SUFFIX) for path in judged)
    names = _ALL if has_binary else CONVERTING
    attributes = _values(repository, files, judged, names) if judged else {}
    if all(value in _WITHOUT for values in attributes.values() for value in values.values()):
        return []
    written = [*_written(repository, files, judged)]
    found = []
    for path, values in attributes.items():
        converting = [name for name in CONVERTING if values[name] not in _WITHOUT]
        if path.endswith(DESCRIPTOR_SUFFIX) and (name := _line_ends(values, files, path, written)):
            converting.append(name)
        found += [_problem(path, name, values[name], written) for name in converting]
    return found


def _values(
    repository: Repository, files: Files, paths: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Ask git: return for each of `paths` the attributes `names` and their values."""
    here = repository.directory.relative_to(repository.top).as_posix() if repository.top else "."
    named = paths if here == "." else [posixpath.relpath(path, here) for path in paths]
    asked = "".join(f"{path}\0" for path in named).encode("utf-8", "surrogateescape")
    ask = ("check-attr", "-z", "--stdin")
    if not isinstance(files, GitFiles):
        answer = repository.run(*ask, *names, standard_input=asked)
    elif isinstance(files, IndexFiles):
        answer = repository.run(*ask, "--cached", *names, standard_input=asked)
    else:
        # git has no way to ask for a commit's attributes before 2.40: they are put into an index of their own.
        with tempfile.TemporaryDirectory(prefix="schemactl-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            entries = ((path, files.entry(path)) for path, _ in _places(paths))
            records = "".join(
                f"100644 {entry.blob}\t{path}\0" for path, entry in entries if entry and entry.kind in _READ
            ).encode("utf-8", "surrogateescape")
            make = ("-c", "core.splitIndex=false", "update-index", "-z", "--index-info")
            repository.run(*make, standard_input=records, variables=index)
            answer = repository.run(*ask, "--cached", *names, standard_input=asked, variables=index)
    # Path, attribute, value; for each path all attributes.
    values = iter(answer.decode("utf-8", "surrogateescape").split("\0")[2::3])
    return {path: {name: next(values) for name in names} for path in paths}


def _line_ends(values: Mapping[str, str], files: Files, path: str, written: Sequence[_Line]) -> str | None:
    """Return the attribute of these by which git converts line ends in that binary file, by git's own rules; None: it does not."""
    for name in ("text", "crlf"):
        # git tells of `-text` and of `text=unset`, which turns nothing off, in the same word.
        if values[name] == "unset" and not any(f"{name}=unset" in each.words for each in written):
            return None
        if values[name] in ("set", "input"):
            return name
        if values[name] == "auto":
            try:
                return name if _looks_like_text(files.read(path)) else None
            except (OSError, DeclarationError):
                return name
    return "eol" if values["eol"] in ("lf", "crlf") else None


def _looks_like_text(data: bytes) -> bool:
    """Return whether git takes that for text with line ends, where it is to find out itself."""
    if b"\0" in data or b"\n" not in data or b"\r" in data.replace(b"\r\n", b""):
        return False
    strange = sum(map(data.count, _STRANGE))
    ends = data.count(b"\n") + data.count(b"\r")
    # A last Ctrl-Z was the end of a text once.
    strange -= data.endswith(b"\x1a")
    return (len(data) - ends - strange) >> 7 >= strange


class _Line(NamedTuple):
    """A line of attributes: its place, its words, and its macro or else about which paths, with "/" in front, it probably is."""

    source: Source
    words: list[str]
    macro: str
    glob: str


def _problem(path: str, name: str, value: str, written: Sequence[_Line]) -> Problem:
    """Return the problem of an attribute of that file, at the line that sets it."""
    macros = {line.macro: _names(line.words, {}) for line in written if line.macro}
    setting = [line for line in written if not line.macro and name in _names(line.words, macros)]
    about = [line for line in setting if fnmatchcase(f"/{path}", line.glob)] or setting
    written_as = name if value == "set" else f"{name}={shown(value)}"
    return Problem(
        about[0].source if about else Source(shown(path)),
        f"the attribute `{written_as}` of {shown(path)} has Git store other bytes than the file here holds, so that what is "
        "reviewed would not be what is recorded",
        f"take it off that file: `{shown(path)} {'-text' if name in _LINE_ENDS else f'!{name}'}` in a later line of {_FILE}",
    )


def _names(words: Iterable[str], macros: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the attributes of ours that are set by those words of a line."""
    plain = {word.partition("=")[0] for word in words if word[:1] not in ("-", "!")}
    return frozenset(plain.intersection(_ALL).union(*(macros.get(word, frozenset()) for word in plain)))


def _written(repository: Repository, files: Files, judged: Iterable[str]) -> Iterator[_Line]:
    """Yield the lines of attributes that may be about `judged`, those that count most first."""
    yield from _outside(repository.common_directory / "info" / "attributes")
    for path, folder in _places(judged):
        # What is too large or of an odd name is not looked into.
        with suppress(OSError, DeclarationError, HistoryError):
            yield from _lines(path, folder, _read(repository, files, path) or b"")
    # What git reads for every repository, unless a setting names others.
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    yield from _outside(settings / "git" / "attributes")
    yield from _outside(Path("/etc/gitattributes"))


def _lines(path: str, folder: str, data: bytes) -> list[_Line]:
    """Return the lines of a file of attributes from the last."""
    found = []
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").split("\n"), 1):
        text = line.strip(" \t\r").replace("\t", " ")
        if text.startswith('"') and '"' in text[1:]:
            pattern, _, rest = text[1:].partition('"')
        else:
            pattern, _, rest = text.partition(" ")
        if not text or text.startswith("#"):
            continue
        macro = pattern.removeprefix(_MACRO) if pattern.startswith(_MACRO) else ""
        glob = f"*/{pattern}"
        if "/" in pattern.rstrip("/"):
            glob = f"/{posixpath.join(folder, pattern.lstrip('/').replace('**/', '*'))}"
        found.append(_Line(Source(shown(path), number), rest.split(), macro, glob))
    return found[::-1]


def _places(judged: Iterable[str]) -> list[tuple[str, str]]:
    """Return where files of attributes may be that are about `judged`, each with its folder, those that count most first."""
    folders = {posixpath.dirname(path) for path in judged}
    for folder in [*folders]:
        while folder and (folder := posixpath.dirname(folder)) not in folders:
            folders.add(folder)
    ordered = sorted(folders | {""}, key=lambda each: (-each.count("/"), each == "", each))
    return [(posixpath.join(folder, _FILE), folder) for folder in ordered]


def _read(repository: Repository, files: Files, path: str) -> bytes | None:
    """Return what git reads as the file of attributes `path`; None: there is none."""
    if isinstance(files, GitFiles):
        entry = files.entry(path)
        return content(path, files.repository.blob(entry.blob)) if entry and entry.kind in _READ else None
    if files.kind(path) == "file":
        return files.read(path)
    # As committed, or in a merge with conflicts as ours.
    staged = repository.objects([f":0:{path}", f":2:{path}"])
    found = next((blob for blob in staged if blob and blob.type == "blob"), None)
    return content(path, found) if found else None


def _outside(path: Path) -> list[_Line]:
    try:
        return _lines(str(path), "", path.read_bytes())
    except OSError:
        return []
