"""Check the project of an editor: the files on disk, with the contents of open documents in place of the saved ones."""

from __future__ import annotations

import gc
import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final

from schemactl.checks.checked_files import CheckRequest
from schemactl.checks.lint import lint
from schemactl.checks.project_check import check_project
from schemactl.checks.project_files import CheckCache
from schemactl.core.atomic_files import find_top_folder
from schemactl.core.catalog import Catalog
from schemactl.core.deadline import run_within
from schemactl.core.edits import TextEdit
from schemactl.core.errors import DeclarationError, HistoryError, Problem, SchemactlError, Source
from schemactl.core.findings import Finding, Severity
from schemactl.core.names import TopicName
from schemactl.core.rules import get_all_rules
from schemactl.core.wording import format_count
from schemactl.declare import project as declare_project
from schemactl.declare import reader
from schemactl.declare.document import read_documents
from schemactl.declare.files import (
    AVRO_SUFFIXES,
    SUFFIXES,
    YAML_SUFFIXES,
    ChangedFiles,
    Files,
    WorktreeFiles,
    decode,
    read_bytes,
)
from schemactl.declare.reader import Declared
from schemactl.declare.references import AvroFile
from schemactl.declare.source_location import JsonText
from schemactl.declare.strict_json import read_json
from schemactl.declare.yaml_parser import YamlPart, YamlText, locate_in_scalar, read_yaml
from schemactl.history.approved_history import read_history
from schemactl.history.git import Repository
from schemactl.lsp.cursor import Cursor, get_value

if TYPE_CHECKING:
    from schemactl.core.project import Project

TIMEOUT_S: Final = 120.0
"""The time after which a check gives up."""

UNDECIDED: Final = "NOT_DECIDED"
"""The code of a problem because of which something is not checked."""

_NEEDS_ALL_TOPICS: Final = "NAMESPACE_UNLIKE_SIBLINGS"
"""The lint rule that compares a topic with all others, and is left to `schemactl lint`."""

_USED_BY_FINDINGS: Final = ("schemactl.formats.avro.counterexample", "schemactl.formats.avro.explanation")
"""Modules that only a finding imports."""

_WRITE: Final = re.compile(r"write `([^`\n]+)`")
"""The fix of a problem that replaces the text at its place."""


@dataclass(frozen=True, slots=True)
class QuickFix:
    """A fix that a person may choose.

    Attributes:
        title: its effect, as an imperative.
        edit: the edit that makes it.
        is_preferred: whether it is the only one.
    """

    title: str
    edit: TextEdit
    is_preferred: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding or a problem at a place in a file.

    Attributes:
        code: the id of its rule.
        link: the page of the rule, or "".
        fixes: the fixes to choose from.
    """

    source: Source
    severity: Severity
    code: str
    message: str
    link: str = ""
    fixes: tuple[QuickFix, ...] = ()


@dataclass(slots=True)
class Workspace:
    """A project in an editor.

    Attributes:
        directory: the absolute path of a folder of the project.
        config: the path of the project file, or None for the nearest one.
        buffers: the contents of the open documents, by path from the repository's top.
        failure: the reason why the files cannot be compared with the approved history, or "".
    """

    directory: str
    config: str | None = None
    buffers: dict[str, bytes] = field(default_factory=dict)
    failure: str = ""
    _cache: CheckCache = field(default_factory=CheckCache)
    _checked: dict[str, bytes] | None = None
    _types: dict[str, tuple[bytes, dict[str, Source]]] = field(default_factory=dict)

    @property
    def top(self) -> str:
        """The real path of the repository's top folder."""
        return find_top_folder(self.directory)

    @property
    def declared(self) -> Declared:
        """The declarations, with the contents of open documents."""
        if self._cache.declared is None or self._checked is not self.buffers:
            # A check reads only what has changed.
            list(self._check())
        return self._cache.declared or Declared(Catalog())

    def open_files(self) -> tuple[Files, Project]:
        """Return the files with the contents of open documents, and their project.

        Raises:
            SchemactlError: if there is no project, or its file has problems.
        """
        changed = ChangedFiles(self._list_changes(), WorktreeFiles(self.top))
        project, top = declare_project.load_project(self.directory, self.config, files=changed)
        worktree = WorktreeFiles(top, folders=project.roots)
        return ChangedFiles(self._list_changes(), worktree), project

    def _list_changes(self) -> dict[str, bytes]:
        return {path: data for path, data in self.buffers.items() if path.endswith(SUFFIXES)}

    def reread_files(self) -> None:
        """Read the files that changed on disk again, at the next check."""
        self._cache.files.forget()

    def diagnose(self) -> dict[str, list[Diagnostic]]:
        """Check all topics, lint the topics of open documents, and return the diagnostics by path."""
        if self._checked is None:
            # Load everything now, so that no edit has to wait for it. The first check reads the files, and the second one keeps
            # their declarations in memory.
            for _ in range(2):
                list(self._check())
            for module in _USED_BY_FINDINGS:
                import_module(module)
            # Thousands of declarations stay in memory: a garbage collection does not traverse frozen objects.
            gc.collect()
            gc.freeze()
        diagnostics = [*self._check(), *self._lint()]
        diagnostics_by_path: dict[str, list[Diagnostic]] = {}
        for diagnostic in dict.fromkeys(diagnostics):
            diagnostics_by_path.setdefault(diagnostic.source.path, []).append(diagnostic)
        return diagnostics_by_path

    def _check(self) -> Iterator[Diagnostic]:
        request = CheckRequest(
            self.directory, self.config, edited_contents=self._list_changes(), check_cache=self._cache
        )
        self.failure = ""
        self._checked = self.buffers
        try:
            report = run_within(TIMEOUT_S, lambda deadline: check_project(request, deadline))
        except DeclarationError as error:
            yield from map(self._diagnose_problem, error.problems)
        except HistoryError as error:
            self.failure = str(error)
            files, project = self.open_files()
            self._cache.declared = reader.read(files, project)
            yield from map(self._diagnose_problem, self._cache.declared.problems)
        except SchemactlError as error:
            self.failure = str(error)
        else:
            yield from self._diagnose_findings(report.findings)

    def _lint(self) -> Iterator[Diagnostic]:
        """Yield the findings of `lint` in open documents. Of the topics that share a definition, one is linted."""
        declared = self._cache.declared
        if declared is None:
            return
        try:
            files, project = self.open_files()
        except SchemactlError:
            # The check has reported it.
            return
        for path in self.buffers:
            topics = sorted(declared.find_topics_at([path]))
            sources = [declared.catalog.topics[name].source for name in topics if name in declared.catalog.topics]
            paths = dict.fromkeys(source.path for source in sources if source)
            yaml_paths = [path] if path.endswith(YAML_SUFFIXES) and path in paths else [*paths][:1]
            for yaml_path in yaml_paths:
                with suppress(DeclarationError):
                    documents = read_documents(yaml_path, read_bytes(files, yaml_path))
                    read = reader.build([documents], files, project)
                    report, _ = lint(read, project, frozenset(read.catalog.topics))
                    findings = [
                        finding
                        for finding in report.findings
                        if finding.rule != _NEEDS_ALL_TOPICS and finding.source and finding.source.path == path
                    ]
                    yield from self._diagnose_findings(findings)

    def _diagnose_problem(self, problem: Problem) -> Diagnostic:
        """Return the diagnostic of a problem; if its fix is a word to write at its place, with the edit."""
        source, match = problem.source, _WRITE.fullmatch(problem.fix)
        fixes: tuple[QuickFix, ...] = ()
        if match and source.end_column and (content := self.read_text(source.path)) is not None:
            line_start = sum(len(line) + 1 for line in content.split("\n")[: source.line - 1])
            start, end = line_start + source.column - 1, line_start + source.end_column - 1
            quote = content[start] if content[start : start + 1] in ("'", '"') else ""
            edit = TextEdit(source.path, start, end, f"{quote}{match[1].strip(quote or None)}{quote}", content)
            fixes = (QuickFix(f"Write {match[1]}", edit),)
        message = f"{problem.message}\nFix: {problem.fix}" if problem.fix else problem.message
        return Diagnostic(source, "error", UNDECIDED, message, fixes=fixes)

    def _diagnose_findings(self, findings: Iterable[Finding]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each finding with a place in the files; topics that share the place have one."""
        rules = get_all_rules()
        groups: dict[Hashable, list[Finding]] = {}
        for finding in findings:
            if finding.place and finding.rule == UNDECIDED:
                yield self._diagnose_problem(Problem(finding.place, finding.message, finding.fix))
            elif finding.place:
                key = finding.rule, finding.severity, finding.place, finding.pointer.rpartition("/")[2]
                groups.setdefault(key, []).append(finding)
        for first, *others in groups.values():
            if first.place is None:
                continue
            lines = [first.message]
            other_count = len({finding.topic for finding in others} - {first.topic})
            lines += [f"Likewise for {format_count(other_count, 'more topic')}."] if other_count else []
            lines += [f"Fix: {first.fix}"] if first.fix else []
            edits = dict.fromkeys(finding.edit for finding in (first, *others) if finding.edit)
            edits |= dict.fromkeys(edit for finding in (first, *others) for edit in finding.alternatives)
            fixes = []
            for edit in edits:
                # The title is the last line that the edit writes.
                new_lines = [line.strip().strip(",").strip() for line in edit.text.split("\n")]
                last_line = next((line for line in reversed(new_lines) if line), "")
                fixes.append(QuickFix(f"Write {last_line}", edit, is_preferred=len(edits) == 1))
            link = rules[first.rule].link if first.rule in rules else ""
            yield Diagnostic(first.place, first.severity, first.rule, "\n".join(lines), link, tuple(fixes))

    def read_definition(self, cursor: Cursor) -> AvroFile | None:
        """Return the Avro definition that the cursor is in, or None outside of one."""
        text = self.read_text(cursor.path)
        if cursor.avro is None or text is None:
            return None
        if not cursor.path.endswith(YAML_SUFFIXES):
            return AvroFile.parse(cursor.path, text.encode())
        yaml_text = YamlText(cursor.path, text.encode())
        documents, _ = read_yaml(cursor.path, yaml_text.data)
        value = get_value(documents[cursor.document].value, cursor.parts)
        if not isinstance(value, str):
            return AvroFile(cursor.path, value, YamlPart(yaml_text, cursor.document, cursor.parts))
        node = yaml_text.node(cursor.document, cursor.parts)
        json_text = JsonText(value, lambda offset: locate_in_scalar(cursor.path, yaml_text.data, node, offset))
        return AvroFile(cursor.path, read_json(json_text), json_text)

    def find_topics(self, cursor: Cursor) -> list[TopicName]:
        """Return the declared topics of the YAML document that the cursor is in, or that use the file."""
        declared, names = self.declared, set[TopicName]()
        text = self.read_text(cursor.path)
        if not cursor.path.endswith(YAML_SUFFIXES):
            names = {*declared.find_topics_at([cursor.path])}
        elif text is not None:
            with suppress(DeclarationError, ValueError, IndexError):
                documents, _ = read_yaml(cursor.path, text.encode())
                names = {TopicName.parse(str(get_value(documents[cursor.document].value, ("topic",))))}
        return sorted(name for name in names if name in declared.catalog.topics)

    def list_topic_names(self) -> list[TopicName]:
        """Return the names of the declared and of the approved topics."""
        names = {*self.declared.catalog.topics}
        _, project = self.open_files()
        with suppress(SchemactlError), Repository.open(self.directory) as repository:
            names |= {*read_history(repository, project).catalog.topics}
        return sorted(names)

    def list_types(self) -> dict[str, Source]:
        """Return the place of each named type that an Avro file of the project defines, by full name."""
        files, _ = self.open_files()
        sources: dict[str, Source] = {}
        for path in files.paths():
            if not path.endswith(AVRO_SUFFIXES[0]):
                continue
            with suppress(DeclarationError, OSError):
                data = files.read(path)
                if self._types.get(path, (b"", {}))[0] != data:
                    file = AvroFile.parse(path, data)
                    types = {type_.full_name: file.locate((*type_.parts, "name")) for type_ in file.types}
                    self._types[path] = data, types
                for name, source in self._types[path][1].items():
                    sources.setdefault(name, source)
        return sources

    def read_text(self, path: str) -> str | None:
        """Return the text of a file or an open document, or None if it cannot be read."""
        try:
            return decode(path, read_bytes(ChangedFiles(self.buffers, WorktreeFiles(self.top)), path))
        except SchemactlError:
            return None
