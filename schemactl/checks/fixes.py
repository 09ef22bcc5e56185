"""Fix findings of a check by editing files (`check --fix`): fixes for which only one edit is possible, and aliases that the user requests.

The edited files are checked again before anything is written, because an edit may make the next one possible, or show what it
breaks. So either all files are written or none.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from schemactl.checks.check_report import CheckReport
from schemactl.checks.checked_files import CheckRequest, find_checked_files
from schemactl.checks.environments import Note
from schemactl.checks.project_check import check_project
from schemactl.core import atomic_files
from schemactl.core.deadline import Deadline
from schemactl.core.edits import TextEdit, edit_contents
from schemactl.core.errors import DeclarationError, InvalidSchema, SchemactlError, Source, UsageError
from schemactl.core.escaping import escape_path
from schemactl.core.schema import get_live_versions
from schemactl.declare.rewriting import write_files
from schemactl.formats import find_renames
from schemactl.history.git import Repository
from schemactl.history.versions import Progress, no_progress

MAX_PASSES: Final = 10
"""The maximum number of times that the edited files are checked again."""


@dataclass(frozen=True, slots=True)
class Fixes:
    """The edits that a check offers.

    Attributes:
        before: the report on the files before the edits.
        after: the report on the edited files.
        old_texts: the checked text of each file to edit, by path from the repository's top.
        new_texts: its text after all edits.
    """

    before: CheckReport
    after: CheckReport
    old_texts: Mapping[str, str]
    new_texts: Mapping[str, str]

    @property
    def count(self) -> int:
        """The number of errors and warnings that the edits fix, although others may take their place."""
        return (_count_problems(self.before) - _count_problems(self.after)).total()


def _count_problems(report: CheckReport) -> Counter[Hashable]:
    """Count the causes of errors and warnings by rule, file and part of the definition; an edit moves other lines of its file."""
    findings = [cause.primary_finding for cause in report.causes if cause.severity != "note"]
    return Counter(
        (finding.rule, finding.source.path if finding.source else finding.topic, finding.pointer.rpartition("/")[2])
        for finding in findings
    )


def find_fixes(
    request: CheckRequest,
    deadline: Deadline,
    *,
    repository: Repository,
    renames: Sequence[str] = (),
    progress: Progress = no_progress,
    note: Note = lambda _: None,
) -> Fixes:
    """Check the files, make the edits in memory, and check again until no edit is left.

    Args:
        request: what to check.
        deadline: the time limit.
        repository: the open repository of the request's folder.
        renames: `OLD=NEW` for each field or type that the change renames: NEW gets the alias OLD.
        progress: see `check_project`.
        note: see `check_project`.

    Raises:
        UsageError: if a rename is not in the change.
        DeclarationError: if the files have problems.
        SchemactlError: if the check cannot be completed.
    """
    pairs = []
    for rename in renames:
        old_name, separator, new_name = rename.partition("=")
        if not separator or not old_name or not new_name or "=" in new_name:
            raise UsageError(
                f"--rename {rename}: expected OLD=NEW, the name in the approved version and the name now",
                fix="write it like --rename amount=total; a field of one record is Order.total",
            )
        pairs.append((old_name, new_name))
    before = after = check_project(request, deadline, progress=progress, note=note, repository=repository)
    alias_edits = tuple(edit for pair in pairs for edit in _find_alias_edits(before, *pair))
    merged_paths: list[str] = []
    if judged_texts := {edit.path: edit.content for edit in (*alias_edits, *before.edits)}:
        # Where both sides changed a file, the check judged the text as it will be after the merge.
        files = find_checked_files(request, repository).files
        merged_paths = sorted(path for path, text in judged_texts.items() if files.read(path) != text.encode())
    for path in merged_paths:
        note(
            f"{escape_path(path)} was not edited, because the approved branch has also changed it since the merge base: "
            "merge the approved branch first"
        )
    old_texts: dict[str, str] = {}
    new_texts: dict[str, str] = {}
    for number in range(MAX_PASSES):
        possible_edits = alias_edits if number == 0 and alias_edits else after.edits
        edits = [edit for edit in possible_edits if edit.path not in merged_paths]
        texts = {**new_texts, **edit_contents(edits)}
        if texts == new_texts:
            break
        contents = {path: text.encode() for path, text in texts.items()}
        try:
            after = check_project(
                replace(request, edited_contents=contents), deadline, progress=progress, repository=repository
            )
        except DeclarationError:
            if possible_edits is alias_edits:
                raise
            # An edit that makes a file invalid is not made.
            break
        for edit in edits:
            old_texts.setdefault(edit.path, edit.content)
        new_texts = texts
    return Fixes(before, after, old_texts, new_texts)


# Aliases


def _find_alias_edits(report: CheckReport, old_name: str, new_name: str) -> Iterator[TextEdit]:
    """Yield the edits that give `new_name` the alias `old_name` in every changed definition.

    Raises:
        UsageError: if no changed definition has `new_name` in place of `old_name`, or none of their readers knows aliases.
    """
    option = f"--rename {old_name}={new_name}"
    has_match, unusable_topics, uneditable = False, [], []
    for topic_check in report.topics:
        versions = get_live_versions(topic_check.versions)
        new, old = topic_check.schema, topic_check.before or (versions[-1].info if versions else None)
        if not new or not old:
            continue
        old = old.load()
        try:
            renames = list(find_renames(new=new, old=old, old_name=old_name, new_name=new_name))
        except InvalidSchema:
            continue
        for rename in renames:
            if not rename.is_usable:
                unusable_topics.append(str(topic_check.topic))
                continue
            has_match = True
            if not rename.is_done and (edit := new.edit(rename.edit)):
                yield edit
            elif not rename.is_done:
                uneditable.append(new.locate(rename.edit.pointer))
    if not has_match and unusable_topics:
        raise UsageError(
            f"{option}: {unusable_topics[0]} is a JSON topic, whose readers know no aliases",
            fix=f"keep {old_name} next to {new_name}, and write both until no reader needs {old_name}",
        )
    if not has_match:
        raise UsageError(
            f"{option}: no changed definition has {new_name} now and had {old_name} before",
            fix="name a field or type that this change removes, and the new field or type for it",
        )
    if uneditable:
        raise SchemactlError(
            f"{option}: this text cannot be edited here",
            fix=f'write "aliases": ["{old_name.rpartition(".")[2]}"] yourself',
            source=uneditable[0],
        )


# Files


def write_fixes(fixes: Fixes, request: CheckRequest, top: str) -> list[str]:
    """Write the edited files to the working tree, and return their paths.

    Args:
        fixes: the edits.
        request: the check that offered them.
        top: the real path of the repository's top folder.

    Raises:
        SchemactlError: if a file of the working tree is not the checked one; then nothing is written.
    """
    contents = {}
    for path in sorted(fixes.new_texts):
        old_text, new_text = fixes.old_texts[path], fixes.new_texts[path]
        data = atomic_files.read(Path(top, path), below=top) or b""
        if data != old_text.encode():
            has_other_line_ends = b"\r\n" in data and "\r\n" not in old_text
            if not has_other_line_ends or data.replace(b"\r\n", b"\n") != old_text.encode():
                raise _explain_other_text(path, request)
            # Git converts line ends between the index and the working tree.
            new_text = new_text.replace("\n", "\r\n")
        contents[path] = new_text.encode()
    write_files(top, contents)
    return list(contents)


def _explain_other_text(path: str, request: CheckRequest) -> SchemactlError:
    source = Source(escape_path(path))
    name = posixpath.basename(path)
    if request.staged:
        return SchemactlError(
            f"{name} has unstaged changes, and --fix edits the staged text; no file was written",
            fix="stage them with `git add`, or stash them with `git stash --keep-index`",
            source=source,
        )
    if request.approved_ref:
        return SchemactlError(
            f"{name} has uncommitted changes, and --fix with --base edits the text of HEAD; no file was written",
            fix="commit them, or leave --base out",
            source=source,
        )
    return SchemactlError(
        f"{name} was changed while it was checked; no file was written", fix="run it again", source=source
    )
