"""Attributes by which Git stores other bytes than a file in the working tree has (gitattributes): refused on what is judged.

Git's history would hold another text than whoever reviews the file sees. What git would store is never asked for: that runs
programs. Line ends, which `text` and `eol` convert, make no difference to declarations.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.declare.files import Files, shown
from schemactl.errors import DeclarationError, Problem, Source
from schemactl.history.files import GitFiles
from schemactl.history.repository import Repository

CONVERTING: Final = ("filter", "ident", "working-tree-encoding")
"""The attributes by which the two differ in more than line ends."""

_FILE: Final = ".gitattributes"
_MACRO: Final = "[attr]"
_WITHOUT: Final = ("unspecified", "unset")


def problems(repository: Repository, files: Files, paths: Iterable[str]) -> list[Problem]:
    """One for each such attribute of `paths`, the files that are judged.

    Attributes are those of the working tree; where `files` are Git's, those of the index. git is asked only if some are written
    that can be meant.
    """
    judged = sorted(set(paths))
    written = [*_written(repository, files, judged)]
    if not _names_outside(repository) and not any(each.names_one for each in written):
        return []
    here = repository.directory.relative_to(repository.top).as_posix() if repository.top else "."
    names = b"".join(
        posixpath.relpath(path, here).encode("utf-8", "surrogateescape") + b"\0" for path in judged
    )
    where = ("--cached",) if isinstance(files, GitFiles) else ()
    told = repository.run("check-attr", "-z", "--stdin", *where, *CONVERTING, standard_input=names)
    answers = told.decode("utf-8", "surrogateescape").split("\0")
    # Path, attribute, value; for each path all attributes.
    values = zip(answers[1::3], answers[2::3], strict=False)
    asked = (path for path in judged for _ in CONVERTING)
    return [
        _problem(path, name, value, written)
        for path, (name, value) in zip(asked, values, strict=False)
        if value not in _WITHOUT
    ]


class _Line(NamedTuple):
    """A line of attributes: its place, what it is about, the attributes it sets, and whether its file names one of ours."""

    source: Source
    folder: str
    pattern: str
    sets: frozenset[str]

    def is_about(self, path: str) -> bool:
        """Whether it probably is what git goes by for `path`."""
        within = posixpath.relpath(path, self.folder or ".")
        if "/" in self.pattern.rstrip("/"):
            return fnmatchcase(within, self.pattern.lstrip("/").replace("**/", "*"))
        return fnmatchcase(posixpath.basename(path), self.pattern)


class _Written(NamedTuple):
    """A file of attributes: where it is, the folder it counts from, its text."""

    path: str
    folder: str
    text: str

    @property
    def names_one(self) -> bool:
        """Whether it names any of ours."""
        return any(name in self.text for name in CONVERTING)

    def lines(self) -> Iterator[tuple[int, str, list[str]]]:
        """Its lines from the last: number, pattern or macro, attributes."""
        numbered = [*enumerate(self.text.split("\n"), 1)]
        for number, line in reversed(numbered):
            text = line.strip(" \t\r")
            if text.startswith('"') and '"' in text[1:]:
                pattern, _, rest = text[1:].partition('"')
            else:
                pattern, _, rest = text.replace("\t", " ").partition(" ")
            if pattern and not text.startswith("#"):
                yield number, pattern, rest.replace("\t", " ").split()


def _problem(path: str, name: str, value: str, written: Iterable[_Written]) -> Problem:
    """What git says of an attribute of that file, at the line that says so."""
    macros = {
        pattern.removeprefix(_MACRO): _names(words, {})
        for each in written
        for _, pattern, words in each.lines()
        if pattern.startswith(_MACRO)
    }
    lines = [
        _Line(Source(shown(each.path), number), each.folder, pattern, _names(words, macros))
        for each in written
        for number, pattern, words in each.lines()
        if not pattern.startswith(_MACRO)
    ]
    setting = [line for line in lines if name in line.sets]
    found = next((line for line in setting if line.is_about(path)), None) or next(iter(setting), None)
    said = name if value == "set" else f"{name}={shown(value)}"
    return Problem(
        found.source if found else Source(shown(path)),
        f"the attribute `{said}` of {shown(path)} has Git store other bytes than the file here holds, so that what is reviewed "
        "would not be what is recorded",
        f"take it off that file: `{shown(path)} !{name}` in a later line of {_FILE}",
    )


def _names(words: Iterable[str], macros: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The attributes of ours that are set by those words of a line."""
    plain = {word.partition("=")[0] for word in words if word[:1] not in ("-", "!")}
    return frozenset(plain.intersection(CONVERTING).union(*(macros.get(word, frozenset()) for word in plain)))


def _written(repository: Repository, files: Files, judged: Iterable[str]) -> Iterator[_Written]:
    """The files of attributes that may be about `judged`, those that count most first."""
    own = repository.common_directory / "info" / "attributes"
    yield from _outside([own])
    folders = {posixpath.dirname(path) for path in judged}
    for folder in [*folders]:
        while folder and (folder := posixpath.dirname(folder)) not in folders:
            folders.add(folder)
    for folder in sorted(folders | {""}, key=lambda each: (-each.count("/"), each == "", each)):
        path = posixpath.join(folder, _FILE)
        if files.kind(path) == "file":
            try:
                yield _Written(path, folder, files.read(path).decode("utf-8", "surrogateescape"))
            except (OSError, DeclarationError):
                # Too large to look into: git is asked.
                yield _Written(path, folder, " ".join(CONVERTING))
    yield from _outside(_of_the_user())


def _outside(paths: Iterable[Path]) -> Iterator[_Written]:
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            continue
        yield _Written(str(path), "", text)


def _of_the_user() -> list[Path]:
    """The files of attributes that git reads for every repository, unless a setting names others."""
    return [_settings_folder() / "attributes", Path("/etc/gitattributes")]


def _settings_folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    return Path(base) / "git"


def _names_outside(repository: Repository) -> bool:
    """Whether settings may name further files of attributes."""
    if any(name in os.environ for name in ("GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_SYSTEM")):
        return True
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    own = (
        [Path(named)]
        if named is not None
        else [Path("~/.gitconfig").expanduser(), _settings_folder() / "config"]
    )
    own += [repository.common_directory / "config", Path("/etc/gitconfig")]
    texts = (each.text.lower() for each in _outside(own))
    return any("attributesfile" in text or "[include" in text for text in texts)
