"""The fold: from what each commit changed to the versions of every topic.

A commit costs what it changed. A declaration file is read when it changes; a topic is looked at again when its declaration,
or a file that its definition is made of, changes. So the whole is linear in the record, however many topics there are.

What a commit breaks stays as it was: a file that cannot be read still declares what it declared before, and a topic whose
definition cannot be read keeps the one it had.
"""

from __future__ import annotations

import posixpath
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from schemactl.declare import (
    PROJECT_FILE,
    Definitions,
    Documents,
    NamespaceDocument,
    TopicDocument,
    in_roots,
    read_documents,
    read_project,
)
from schemactl.declare.files import SUFFIXES, YAML_SUFFIXES, check_bytes, read_bytes
from schemactl.errors import DeclarationError, HistoryError, Problem
from schemactl.history.cache import NEWEST, NON_PERSISTENT, PERSISTENT
from schemactl.history.commits import LoggedCommit
from schemactl.history.contents import RecordFiles
from schemactl.history.distinct import Looks, Seen, Shared
from schemactl.history.files import Entry, content
from schemactl.history.journal import Journal, Line
from schemactl.history.repository import Repository
from schemactl.history.revision import Revised
from schemactl.history.rows import Standing
from schemactl.model import Commit, Project, TopicName

_KEPT_DOCUMENTS: Final = 8_192
_KEPT_DOCUMENT_BYTES: Final = 1_000
"""Declarations that leave their definitions to other files are small, and asked for when those change."""


_MANY: Final = 10
_TOGETHER: Final = 400
"""If many topics are looked at in one step, what that takes is read together, for so many of them."""


Progress = Callable[[int, int | None], None]
"""Told, while steps of the record are followed, how many have been; of how many is known at the end."""


def untold(_done: int, _total: int | None) -> None:
    """Nobody is told of progress."""


class Place(NamedTuple):
    """A document that declares something: its file, and its number among what that file declares."""

    path: str
    number: int


class Fold:
    """Adds steps of the record to a journal."""

    def __init__(self, repository: Repository, project: Project, journal: Journal) -> None:
        self._project = project
        self._journal = journal
        self._files = RecordFiles(repository, journal)
        self._looks = Looks(self._files)
        self._documents: OrderedDict[tuple[str, str], Documents] = OrderedDict()
        # What files that topics take types of define, in the step that is looked at.
        self._shared: dict[str, Shared | None] = {}
        self._revised: dict[str, Revised | None] = {}
        # Those of larger files, for the step in which they change.
        self._large: dict[tuple[str, str], Documents] = {}
        self._is_declaration: dict[str, bool] = {}
        self._is_within: dict[str, bool] = {}
        self._today: dict[str, bool] = {}

    def follow(self, steps: Iterable[LoggedCommit], progress: Progress) -> None:
        """Goes through `steps`; `progress` is told of each, and of the end, whatever ends it.

        Raises:
            HistoryError: git stopped; or an older project file had a root that today's does not know.
        """
        done = 0
        try:
            for step in self._files.ahead(steps, self._is_wanted):
                self._journal.begin(step.commit)
                self._take(step)
                self._large.clear()
                done += 1
                progress(done, None)
        finally:
            progress(done, done)

    def _take(self, step: LoggedCommit) -> None:
        self._shared.clear()
        before: dict[str, Entry | None] = {}
        changed: list[str] = []
        for change in step.changes:
            if self._declares(change.path) or change.path.endswith(PROJECT_FILE):
                before[change.path] = self._files.entry(change.path)
            if self._files.change(change):
                changed.append(change.path)
        self._compare_moved(step.commit, before)
        touched: set[str] = set()
        used: dict[str, list[str]] = {}
        for path in changed:
            if path == self._project.path:
                with suppress(DeclarationError):
                    own = read_bytes(self._files, path)
                    self._compare_roots(f"{path} of {step.commit.short}", path, own)
            elif self._declares(path):
                touched |= self._read(path, before[path])
            for schema in self._journal.users(path):
                used.setdefault(schema, []).append(path)
        self._settle_all(
            [
                schema
                for schema in sorted(touched | used.keys())
                if schema in touched or not self._follows(schema, used[schema])
            ]
        )

    def _settle_all(self, schemas: list[str]) -> None:
        # Files that several topics share are read once for all of them.
        definitions = Definitions(self._files)
        for start in range(0, len(schemas), _TOGETHER):
            some = schemas[start : start + _TOGETHER]
            if len(some) > _MANY:
                self._files.read_ahead(path for schema in some for path in self._made_of(schema))
            for schema in some:
                self._settle(schema, definitions)

    def _declares(self, path: str) -> bool:
        known = self._is_declaration.get(path)
        if known is None:
            known = path.endswith(YAML_SUFFIXES) and in_roots(path, self._project, previous=True)
            self._is_declaration[path] = known
        return known

    def _is_today(self, path: str) -> bool:
        known = self._today.get(path)
        if known is None:
            known = self._today[path] = in_roots(path, self._project)
        return known

    def _is_wanted(self, path: str) -> bool:
        """Whether the content at `path` will be asked for, as far as can be told before."""
        if self._declares(path) or path == self._project.path:
            return True
        within = self._is_within.get(path)
        if within is None:
            within = path.endswith(SUFFIXES) and in_roots(path, self._project, previous=True)
            self._is_within[path] = within
        return within or (path.endswith(SUFFIXES) and bool(self._journal.users(path)))

    def _compare_moved(self, commit: Commit, before: dict[str, Entry | None]) -> None:
        """As `_compare_roots`, for the project files that `commit` took away when it brought ours, as a move of the folder does."""
        if self._project.path not in before or before[self._project.path]:
            return
        for path, entry in before.items():
            if posixpath.basename(path) != PROJECT_FILE or self._files.kind(path) != "missing":
                continue
            if entry and entry.kind == "file":
                then = self._files.blob(entry.blob).content
                self._compare_roots(f"{path} before {commit.short}", path, then)

    def _compare_roots(self, whose: str, path: str, data: bytes) -> None:
        """Refuses to go on when a former project file looked for declarations where nobody looks today."""
        try:
            then = read_project(path, data)
        except DeclarationError:
            return
        known = {*self._project.roots, *self._project.previous_roots}
        for root in then.roots:
            if root not in known and not in_roots(f"{root}/x".lstrip("/"), self._project, previous=True):
                written = posixpath.relpath(root or ".", self._project.folder or ".")
                raise HistoryError(
                    f"{whose} had the root `{root}`, which today's {self._project.path} does not know: the versions of "
                    "topics that were declared there would be counted anew",
                    fix=f"add `{written}` to `previous_roots` in {self._project.path}",
                )

    def _read(self, path: str, before: Entry | None) -> set[str]:
        """The topics that the declaration file at `path` declared or declares, after it changed from `before`."""
        held = self._journal.declared(path)
        now: list[tuple[str, str | None, str | None]] = []
        problems: tuple[Problem, ...] = ()
        if self._files.kind(path) != "missing":
            read = self._documents_at(path, self._files.revision(path))
            problems = read.problems
            now = [(*_name(document), None) for document in read.documents]
            if problems:
                told = {name for name, _, _ in now}
                now += [
                    (each.name, each.schema, each.blob or (before.blob if before else None))
                    for each in held
                    if each.name not in told
                ]
        self._journal.note(path, None, [(None, problem) for problem in problems])
        self._journal.declare(path, now)
        schemas = [*(each.schema for each in held), *(schema for _, schema, _ in now)]
        return {schema for schema in schemas if schema}

    def _documents_at(self, path: str, blob: str | None) -> Documents:
        """What the file at `path` declares, or declared when it was `blob`."""
        if blob is None:
            try:
                read_bytes(self._files, path)
            except DeclarationError as error:
                return Documents(path, (), error.problems)
        known = self._documents.get((path, blob or "")) or self._large.get((path, blob or ""))
        if known is None:
            try:
                data = content(path, self._files.blob(blob or ""))
                check_bytes(path, data)
            except DeclarationError as error:
                return Documents(path, (), error.problems)
            revised = self._revised.get(path)
            known = revised and revised.read(data)
            if known is None:
                known = read_documents(path, data)
                self._revised[path] = Revised.of(known, data)
            if len(data) <= _KEPT_DOCUMENT_BYTES:
                self._documents[path, blob or ""] = known
                while len(self._documents) > _KEPT_DOCUMENTS:
                    self._documents.popitem(last=False)
            else:
                self._large[path, blob or ""] = known
        return known

    def _document(self, place: Place) -> TopicDocument:
        """The topic that is declared there."""
        held = self._journal.declared(place.path)[place.number]
        documents = self._documents_at(place.path, held.blob or self._files.revision(place.path)).documents
        if held.blob is None and isinstance(found := documents[place.number], TopicDocument):
            return found
        return named(documents, held.name, place.number)

    def _follows(self, schema: str, changed: list[str]) -> bool:
        """Whether the topic needed no new look after `changed`, files that its definition takes types of; it is up to date."""
        line = self._journal.line(schema)
        outline = line.outline
        if outline is None:
            return False
        for path in changed:
            if not outline.fits(path, self._shared_now):
                return False
        digest = outline.digest(self._shared_now)
        for domain, standing in line.standings.items():
            if not standing.deleted:
                number = self._journal.version(line, outline.type_name, standing.path, digest)
                if standing.number != NEWEST or number != len(line.numbers) - 1:
                    self._declare(line, domain, number, standing.path)
        return True

    def _made_of(self, schema: str) -> Iterator[str]:
        """The files that will be read for a topic, as far as can be told before."""
        yield from (path for path, _ in self._journal.places(schema))
        yield from self._journal.line(schema).made_of

    def _shared_now(self, path: str) -> Shared | None:
        if path not in self._shared:
            self._shared[path] = self._looks.shared(path)
        return self._shared[path]

    def _settle(self, schema: str, definitions: Definitions) -> None:
        """The topics of that tenant/namespace/topic stand as is declared now."""
        line = self._journal.line(schema)
        self._journal.outline(line, None)
        places = [Place(*each) for each in self._journal.places(schema)]
        if len(places) > 1:
            places.sort()
            # While files move from a former root to today's, both may hold the topic; today's counts.
            places = [place for place in places if self._is_today(place.path)] or places
        documents = [self._document(place) for place in places]
        problems = [_twice(document, documents[0]) for document in documents[1:]]
        seen: Seen | None = None
        if len(documents) == 1 and (declaration := documents[0].schema):
            seen = self._looks.look(declaration, definitions)
            self._journal.depend(line, seen.paths)
            problems += [(documents[0], problem) for problem in seen.problems]
        self._journal.note(None, schema, [(str(each.topic.name), problem) for each, problem in problems])
        if problems:
            self._keep(line)
            return
        declared = set()
        for place, document in zip(places, documents, strict=True):
            domain = domain_of(document.topic.name)
            declared.add(domain)
            number = None
            if seen and seen.digest:
                number = self._journal.version(line, seen.type_name, place.path, seen.digest)
                self._journal.outline(line, seen.outline)
            self._declare(line, domain, number, place.path)
        for domain, standing in line.standings.items():
            if domain not in declared and not standing.deleted:
                gone = Standing(
                    deleted=True, number=None, since=self._journal.number, path=standing.path, as_of=None
                )
                self._journal.stand(line, domain, gone)

    def _declare(self, line: Line, domain: int, number: int | None, path: str) -> None:
        """The topic is declared by the file at `path`, with the definition of that number."""
        before = line.standings.get(domain)
        if number == len(line.numbers) - 1:
            number = NEWEST
        is_new = before is None or before.deleted or before.number != number
        since = self._journal.number if is_new or before is None else before.since
        now = Standing(deleted=False, number=number, since=since, path=path, as_of=None)
        self._journal.stand(line, domain, now)

    def _keep(self, line: Line) -> None:
        """What the topic was before this step still counts."""
        for domain, standing in line.standings.items():
            if not standing.deleted and standing.as_of is None:
                self._journal.stand(line, domain, standing._replace(as_of=self._journal.number - 1))


def named(documents: Sequence[TopicDocument | NamespaceDocument], name: str, number: int) -> TopicDocument:
    """Of a file's documents the one that declares the topic `name`, by its number where several do."""
    places = [number, *range(len(documents))] if number < len(documents) else range(len(documents))
    found = (documents[place] for place in places)
    return next(each for each in found if isinstance(each, TopicDocument) and str(each.topic.name) == name)


def domain_of(name: TopicName) -> int:
    """The number of a topic's domain."""
    return PERSISTENT if name.domain == "persistent" else NON_PERSISTENT


def _name(document: TopicDocument | NamespaceDocument) -> tuple[str, str | None]:
    if isinstance(document, TopicDocument):
        return str(document.topic.name), document.topic.name.schema_id
    return str(document.namespace.name), None


def _twice(document: TopicDocument, first: TopicDocument) -> tuple[TopicDocument, Problem]:
    what = f"{document.topic.name} is declared twice, first at {first.source}"
    return document, Problem(document.source, what, "keep one of the two")
