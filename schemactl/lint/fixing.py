"""`lint --fix`: makes the edits that rules propose where old and new schema read each other's messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo
from schemactl.declare.files import Files, decode, read_bytes
from schemactl.declare.formatter import proved
from schemactl.declare.reader import Declared
from schemactl.formats import identity, resolve
from schemactl.lint import Linted
from schemactl.lint.edits import Replacement, replaced, replacement

_MOST_TRIED: Final = 20
"""Edits that are tried one by one: for each, everything is read once more."""


def fixed(files: Files, project: Project, declared: Declared, linted: Iterable[Linted]) -> dict[str, bytes]:
    """Return the new contents of the files that the harmless edits of `linted` change.

    Args:
        files: in which the definitions stand.
        project: whose files they are.
        declared: what they declare.
        linted: what was found there.
    """
    edits: dict[str, set[Replacement]] = {}
    for each in linted:
        done = replacement(each.file, each.remark.edit) if each.remark.edit else None
        if done:
            edits.setdefault(each.file.path, set()).add(done)

    def contents(chosen: Mapping[str, Iterable[Replacement]]) -> dict[str, bytes]:
        return {
            path: replaced(decode(path, read_bytes(files, path)), changes).encode()
            for path, changes in chosen.items()
        }

    kept = proved(files, project, declared, contents(edits), is_harmless)
    good = {path: edits[path] for path in kept}
    # One edit of these files does harm: which one it is, only trying shows.
    left = [(path, edit) for path in sorted(edits.keys() - kept.keys()) for edit in sorted(edits[path])]
    for path, edit in left[:_MOST_TRIED]:
        tried = {**good, path: {*good.get(path, ()), edit}}
        if (one := proved(files, project, declared, contents(tried), is_harmless)).keys() == tried.keys():
            good, kept = tried, one
    return kept


def is_harmless(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Return whether each of two schemas reads all messages of the other."""
    if identity(one) == identity(other):
        return True
    return not (any(resolve(reader=one, writer=other)) or any(resolve(reader=other, writer=one)))
