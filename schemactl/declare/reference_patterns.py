"""References by glob, and to whole folders: which files they mean.

What is listed that way is a choice: a definition takes from it the types it needs, and whatever else is there makes no difference.
So a definition is made of the files it takes types of, and of the folder itself, which is written with a `/` at its end.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from itertools import takewhile

from schemactl.core.names import glob_expression
from schemactl.declare.files import AVRO_SUFFIXES, PROTO_SUFFIX, Files, resolve


def is_pattern(written: str) -> bool:
    """Return whether an entry of `references` is a glob or a folder, and no file's path."""
    return written.endswith("/") or "*" in written or "?" in written


def folder_of(here: str, written: str) -> str:
    """Return the folder, with `/` at its end, below which a pattern in a file of the folder `here` finds all its files.

    Raises:
        ValueError: it leads out of the repository, or means all of it; says why.
    """
    path = resolve(here, written)
    fixed = (
        path
        if written.endswith("/")
        else "/".join(takewhile(lambda part: not is_pattern(part), path.split("/")))
    )
    if not fixed:
        raise ValueError(f"`{written}` is the top folder of the repository; name a folder in it")
    return f"{fixed}/"


def files_of(files: Files, here: str, written: str, *, proto: bool = False) -> list[str]:
    """Return the files that a pattern means, sorted: `.avsc`, or `.json` where it says so; or `.proto`.

    Hidden files are left out, and so are links and other repositories, which are not followed. Raise ValueError as
    `folder_of`, and for a range that runs backwards.
    """
    folder = folder_of(here, written)
    # What is written before the first `*` or `?` is a folder's name, brackets included.
    glob = "**" if written.endswith("/") else resolve(here, written).removeprefix(folder)
    try:
        expression = glob_expression(glob, of_files=True)
    except re.error as error:
        raise ValueError(f"`{written}` has a range that runs backwards") from error
    suffixes = (PROTO_SUFFIX,) if proto else AVRO_SUFFIXES if written.endswith(".json") else AVRO_SUFFIXES[:1]
    return sorted(
        path
        for path in files.below(folder.removesuffix("/"))
        if path.endswith(suffixes)
        and path.isprintable()
        and not any(part.startswith(".") for part in path.removeprefix(folder).split("/"))
        and expression.fullmatch(path.removeprefix(folder))
        and files.kind(path) == "file"
    )


def is_folder(path: str) -> bool:
    """Return whether what a definition is made of is a folder: any file below it may be."""
    return path.endswith("/")


def folders_above(path: str) -> list[str]:
    """Return the folders that the file at `path` is in, each with `/` at its end."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) + "/" for depth in range(1, len(parts))]


def is_among(path: str, made_of: Collection[str]) -> bool:
    """Return whether the file at `path` is one of the files `made_of`, or in one of the folders."""
    return path in made_of or any(each in made_of for each in folders_above(path))


def among(paths: AbstractSet[str], made_of: Collection[str]) -> set[str]:
    """Return those of the files at `paths` that are `made_of`, or in one of its folders: quick where few files are among many."""
    folders = tuple(filter(is_folder, made_of))
    found = {path for path in paths if path.startswith(folders)} if folders else set[str]()
    return found | {path for path in made_of if path in paths}


def written_out(made_of: Iterable[str], files: Files) -> set[str]:
    """Return the files `made_of`, with those in the folders in place of the folders."""
    found: set[str] = set()
    for path in made_of:
        found.update(files.below(path.removesuffix("/")) if is_folder(path) else [path])
    return found


def said_instead(files: Files, here: str, written: str) -> str:
    """Return what to write in place of a path that is a folder's; "" where it is none."""
    try:
        path = resolve(here, written)
    except ValueError:
        return ""
    is_there = path and next(iter(files.below(path)), path) != path
    return f"write `{posixpath.normpath(written)}/` for all files of the folder" if is_there else ""
