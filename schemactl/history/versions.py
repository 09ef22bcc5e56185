"""The derivation of versions from the changes of each commit, by fingerprints of content.

The fingerprint of an Avro definition is a hash over the sorted list of what it is made of: its root, and every named type,
each spelled out by itself (see `formats.avro.schema`). So a definition with references need not be written out: its
own file and each file that it takes types of are parsed by themselves, once for each revision.

A commit costs what it changed. A declaration file is read when it changes; a topic's definition is read again when its
declaration, or a file that the definition is made of, changes. So the whole is linear in the record, however many topics
there are.

What a commit breaks stays as it was: a file that cannot be read still declares what it declared before, and a topic whose
definition cannot be read keeps the one it had.
"""

from __future__ import annotations

import gc
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, InvalidSchema, Problem, Source
from schemactl.core.project import Project
from schemactl.core.schema import Commit, SchemaInfo, SchemaType
from schemactl.declare.definition import AvroFileCache, Definitions, depth_of, read_json
from schemactl.declare.document import Documents, NamespaceDocument, SchemaDeclaration, TopicDocument, read_documents
from schemactl.declare.files import AVRO_SUFFIXES, SUFFIXES, YAML_SUFFIXES, check_bytes, decode, read_bytes, resolve
from schemactl.declare.project import PROJECT_FILE, read_project
from schemactl.declare.reader import in_roots, read_clients
from schemactl.declare.references import among, files_of, folder_of, folders_above, is_pattern
from schemactl.declare.source_location import MAX_DEPTH, JsonText
from schemactl.formats import SPECS, avro, identity
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.schema import Composition, composition
from schemactl.formats.protobuf import protoc_process
from schemactl.history.cache import DOMAINS, Cache, CacheWriter, DeclarationRow, StateRow
from schemactl.history.commit_files import FILE_MODES, Entry, GitFiles, content, entry
from schemactl.history.git import ChangedFile, LoggedCommit, Repository, log
from schemactl.history.store import Store

# Fingerprints: equal exactly when `formats.identity` is


_BYTES: Final = 20

_MAX_TEXT: Final = 1 << 20
"""Longer definitions, which may be too long for a broker, are always written out."""

_FEW_BRACKETS: Final = 60

_REVISIONS: Final = 4096
"""For so many revisions of files that others take types of, what they define is remembered."""


class SharedTypes(NamedTuple):
    """What a file defines for others.

    Attributes:
        reached: by a type's full name, the hashes of the type and of all types that it leads to.
        depth: how deep all of them may nest, one inside the other.
        size: characters.
    """

    reached: dict[str, frozenset[bytes]]
    depth: int
    size: int


class DefinitionParts(NamedTuple):
    """A definition that may take types of other files.

    Attributes:
        own: the hashes of its root and of its own types.
        depth: how deep its own text nests; `size`: its characters.
        taken: by file, the names of all types that it defines, and of those that are taken.
        paths: every file that it is made of.
    """

    own: frozenset[bytes]
    depth: int
    size: int
    taken: dict[str, tuple[frozenset[str], tuple[str, ...]]]
    paths: frozenset[str]


class Inspected(NamedTuple):
    """What a declared schema was found to be.

    Attributes:
        fingerprint: None where there are problems.
        type: the schema's.
        paths: every file that the definition is made of, read or missed.
        parts: where a change of the files it takes types of may not take another inspection.
    """

    fingerprint: bytes | None
    type: SchemaType
    paths: frozenset[str]
    parts: DefinitionParts | None = None
    problems: tuple[Problem, ...] = ()


def fingerprint(info: SchemaInfo) -> bytes:
    """Return the fingerprint of a definition.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    if _is_avro(info.type):
        found = composition(avro.parsed_by_any(info.schema))
        return _combined(info.type, frozenset(_hashes(found).values()))
    return _hash(info.type.name.encode(), _encoded(repr(identity(info))))


class Fingerprints:
    """Fingerprints of declared schemas in files that change.

    An Avro definition is put together from its parts where that can be: written out as a whole, those of the medium
    repository of benchmarks/history.py take five times as long, 38 s of CPU in place of 7.
    """

    def __init__(self, files: GitFiles) -> None:
        self._files = files
        self._shared: dict[str, SharedTypes | None] = {}

    def inspect(self, declaration: SchemaDeclaration, definitions: Definitions) -> Inspected:
        """Return which definition `declaration` declares now; `definitions` reads the same files."""
        if _is_avro(declaration.type) and not declaration.proto and isinstance(declaration.definition, str):
            parts = self._parts(declaration, declaration.definition)
            if parts and (found := self.refreshed(declaration.type, parts)):
                return Inspected(found, declaration.type, parts.paths, parts)
        read = definitions.read(declaration)
        if read.info is None:
            return Inspected(None, declaration.type, read.paths, problems=read.problems)
        try:
            return Inspected(fingerprint(read.info), declaration.type, read.paths)
        except InvalidSchema as error:
            source = read.info.locate(error.pointer) or declaration.source
            problem = Problem(source, error.what, error.fix)
            return Inspected(None, declaration.type, read.paths, problems=(problem,))

    def refreshed(self, type_: SchemaType, parts: DefinitionParts) -> bytes | None:
        """Return the fingerprint with the files it takes types of as they are now; None: it takes an inspection."""
        hashes, depth, size = parts.own, parts.depth, parts.size
        for path, (names, taken) in parts.taken.items():
            found = self._shared_types(path)
            if found is None or found.reached.keys() != names:
                return None
            hashes = hashes.union(*[found.reached[name] for name in taken])
            depth += found.depth
            size += found.size
        return _combined(type_, hashes) if depth <= MAX_DEPTH and size <= _MAX_TEXT else None

    def _parts(self, declaration: SchemaDeclaration, written: str) -> DefinitionParts | None:
        """Return what a definition is made of; None: it is unusual, or has problems."""
        folder = posixpath.dirname(declaration.text.path)
        try:
            references = [resolve(folder, each) for each in declaration.references if not is_pattern(each)]
            paths = references if declaration.is_inline else [resolve(folder, written), *references]
            patterns = [each for each in declaration.references if is_pattern(each)]
            folders = [folder_of(folder, each) for each in patterns]
            offered = {path for each in patterns for path in files_of(self._files, folder, each)}
        except ValueError:
            return None
        if len(set(paths)) < len(paths) or not all(map(self._is_usual, paths)) or (patterns and not offered):
            return None
        shared: dict[str, SharedTypes] = {}
        names: set[str] = set()
        for path in (*references, *sorted(offered.difference(paths))):
            found = self._shared_types(path)
            if found is None or not names.isdisjoint(found.reached):
                return None
            shared[path] = found
            names.update(found.reached)
        text = written if declaration.is_inline else self._text(paths[0])
        read = _composed(text, names) if text is not None else None
        if text is None or read is None:
            return None
        made, used, depth = read
        own = frozenset(value for name, value in _hashes(made).items() if name not in used)
        taken = {
            path: (frozenset(each.reached), (*used.intersection(each.reached),))
            for path, each in shared.items()
            # What is there for others makes no difference, as long as it is as it is.
            if path in references or not used.isdisjoint(each.reached)
        }
        return DefinitionParts(own, depth, len(text), taken, frozenset([*paths, *folders, *taken]))

    def _shared_types(self, path: str) -> SharedTypes | None:
        """Return what the file at `path` defines for others; None: it is unusual, or has problems."""
        entry = self._files.entry(path)
        if entry is None or not self._is_usual(path):
            return None
        if entry.blob not in self._shared:
            text = self._text(path)
            found = _composed(text, frozenset()) if text is not None else None
            self._shared[entry.blob] = _defined(found[0], found[2], len(text)) if text and found else None
            if len(self._shared) > _REVISIONS:
                del self._shared[next(iter(self._shared))]
        return self._shared[entry.blob]

    def _is_usual(self, path: str) -> bool:
        return path.endswith(AVRO_SUFFIXES) and self._files.kind(path) == "file"

    def _text(self, path: str) -> str | None:
        try:
            return decode(path, read_bytes(self._files, path))
        except DeclarationError:
            return None


def _composed(text: str, elsewhere: AbstractSet[str]) -> tuple[Composition, frozenset[str], int] | None:
    """Return what a definition is made of, which of the names `elsewhere` it takes, and how deep it nests.

    None where it has problems by itself, or takes other types, too: it is read as a whole then.
    """
    try:
        value = read_json(JsonText(text, lambda _: Source("")))
        schema, taken = parse_file(text, value)
    except (DeclarationError, InvalidSchema):
        return None
    made = composition(schema)
    # A name without namespace could be taken for another where types are defined in another order.
    simple = {name.rpartition(".")[2] for name in elsewhere}
    own = {name.rpartition(".")[2] for name in made.types.keys() - taken}
    if not taken <= elsewhere or not simple.isdisjoint(own):
        return None
    return made, taken, _depth(text, value)


def _defined(made: Composition, depth: int, size: int) -> SharedTypes:
    hashes = _hashes(made)
    reached: dict[str, frozenset[bytes]] = {}
    for name in made.types:
        names, todo = {name}, [name]
        while todo:
            used = made.types[todo.pop()].uses - names
            names |= used
            todo += used
        reached[name] = frozenset(hashes[each] for each in names)
    # Each type is written out once, inside of any other.
    return SharedTypes(reached, depth * (len(reached) + 1), size)


def _hashes(made: Composition) -> dict[str, bytes]:
    """Return the hashes of the root, by "", and of each named type."""
    types = {name: _hash(b"type", _encoded(name), _encoded(each.text)) for name, each in made.types.items()}
    return {"": _hash(b"root", _encoded(made.root.text)), **types}


def _combined(type_: SchemaType, hashes: frozenset[bytes]) -> bytes:
    return _hash(type_.name.encode(), *sorted(hashes))


def _hash(*parts: bytes) -> bytes:
    """Return the hash of a list: of each part its length, then the part."""
    return blake2b(b"".join([b"%d:%b" % (len(each), each) for each in parts]), digest_size=_BYTES).digest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _depth(text: str, value: Any) -> int:
    """Return how deep objects and arrays nest, at most: in a text of few brackets, how many there are."""
    brackets = text.count("{") + text.count("[")
    return brackets if brackets <= _FEW_BRACKETS else depth_of(value)


def _is_avro(type_: SchemaType) -> bool:
    return SPECS[type_].language == "avro"


# Versions from the changes of each commit


_KEPT_DOCUMENTS: Final = 8_192
_KEPT_DOCUMENT_BYTES: Final = 1_000
"""Declarations that leave their definitions to other files are small, and asked for when those change."""

_GROUP: Final = 100
"""So many commits have their files read at once."""

_GROWTH: Final = 1.01
"""What is kept is written anew when it has grown by a hundredth: a long history takes longer to write than some commits to read."""

Progress = Callable[[int, int | None], None]
"""Called, while commits are read, with how many have been; of how many is known at the end."""


def no_progress(_done: int, _total: int | None) -> None:
    """Report no progress."""


def derived_from(project: Project) -> str:
    """Return all that versions depend on besides the commits."""
    return json.dumps([project.path, project.waivers, project.roots, project.previous_roots])


class Derivation:
    """What is known of a project's history, from the cache as far as it reaches, and from Git.

    The cache is for the ref that the project approves by. Another line of history gets a copy that goes on from the last
    commit that both have.
    """

    def __init__(self, repository: Repository, project: Project, progress: Progress = no_progress) -> None:
        self._repository = repository
        self._project = project
        self._progress = progress
        self._store = Store(repository.common_directory, project.path)

    def at(self, tip: Commit, *, keep: bool) -> Cache:
        """Return the state after `tip`; with `keep` it is kept for the next time, where that can be and pays."""
        facts = derived_from(self._project)
        found, kept_steps = None, 0
        known = Cache.open(self._store, facts)
        if known:
            if (step := known.step_of(tip.id)) is not None:
                return known.at(step)
            listed = log(self._repository, tip.id, known.commit(known.last).id)
            first = next(listed, None)
            join = known.step_of(first.parents[0]) if first and first.parents else None
            if first and join is not None:
                # What followed that commit was rewritten, if there was anything, and is forgotten. Whether a registry holds
                # any of it is seen when the two are compared.
                kept_steps = join + 1 if join == known.last else 0
                found = self._extended(known.cut(join), chain([first], listed))
        if found is None:
            self._repository.require_all_commits()
            found = self._extended(Cache.new(facts), log(self._repository, tip.id))
        lacks_objects = self._repository.shallow or self._repository.promisor
        if keep and (lacks_objects or found.last >= kept_steps * _GROWTH):
            found.keep(self._store)
        return found

    def followed_by(self, known: Cache, commits: Iterable[LoggedCommit]) -> Cache:
        """Return the state as it would be if `commits` followed; nothing of it is kept."""
        return self._extended(known.copy(), commits)

    def _extended(self, known: Cache, commits: Iterable[LoggedCommit]) -> Cache:
        writer = CacheWriter(known)
        with protoc_process.kept(), _without_garbage_collection():
            VersionDerivation(self._repository, self._project, writer).follow(commits, self._progress)
        return writer.finish()


class StepFiles(GitFiles):
    """The files after a step."""

    def __init__(self, repository: Repository, state: Cache | CacheWriter) -> None:
        super().__init__(repository)
        self._state = state

    def paths(self) -> Iterable[str]:
        """Return every path, links and submodules among them."""
        return self._state.paths()

    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""
        return self._state.below(folder)

    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`."""
        return self._state.entry(path)

    def blob(self, path: str) -> str:
        """Return the blob id of the file at `path`, or "" if there is none."""
        entry = self.entry(path)
        return entry.blob if entry and entry.kind == "file" else ""


class VersionDerivation:
    """Adds commits of the record to what is known."""

    def __init__(self, repository: Repository, project: Project, writer: CacheWriter) -> None:
        self._repository = repository
        self._project = project
        self._writer = writer
        self._files = StepFiles(repository, writer)
        self._fingerprints = Fingerprints(self._files)
        self._avro_files = AvroFileCache()
        # Definitions as they were read last, in this run and without problems.
        self._inspected: dict[str, Inspected] = {}
        self._documents: dict[tuple[str, str], Documents] = {}
        # Those of larger files, for the step in which they change.
        self._large: dict[tuple[str, str], Documents] = {}
        self._is_today = cache(lambda path: in_roots(path, project))
        self._is_within = cache(lambda path: path.endswith(SUFFIXES) and in_roots(path, project, previous=True))

    def follow(self, commits: Iterable[LoggedCommit], progress: Progress) -> None:
        """Go through `commits`; `progress` is called for each, and at the end, whatever ends it."""
        done = 0
        try:
            for each in self._read_ahead(self._fetched(commits) if self._repository.promisor else commits):
                self._writer.begin(each.commit)
                self._apply(each)
                self._large.clear()
                done += 1
                progress(done, None)
        finally:
            progress(done, done)

    def _fetched(self, commits: Iterable[LoggedCommit]) -> list[LoggedCommit]:
        """Return the commits, after what a partial clone lacks of their declarations was fetched at once."""
        found = list(commits)
        changes = [change for each in found for change in each.changes if is_read(change)]
        self._repository.fetch_missing(change.blob for change in changes if self._is_wanted(change.path))
        # Should a definition outside of the roots be needed, all others come with it.
        self._repository.fetch_later(change.blob for change in changes)
        return found

    def _read_ahead(self, commits: Iterable[LoggedCommit]) -> Iterator[LoggedCommit]:
        """Yield the commits, some at a time, after git was asked for their declarations at once: one by one takes it longer."""
        remaining = iter(commits)
        while group := [*islice(remaining, _GROUP)]:
            changes = chain.from_iterable(each.changes for each in group)
            self._repository.read_ahead(
                change.blob for change in changes if is_read(change) and self._is_wanted(change.path)
            )
            yield from group

    def _apply(self, logged: LoggedCommit) -> None:
        before: dict[str, Entry | None] = {}
        changed: list[str] = []
        for change in logged.changes:
            if self._declares(change.path) or change.path.endswith(PROJECT_FILE):
                before[change.path] = self._files.entry(change.path)
            if self._change(change):
                changed.append(change.path)
        self._compare_moved(logged.commit, before)
        touched: set[str] = set()
        used: set[str] = set()
        for path in changed:
            if path == self._project.path:
                with suppress(DeclarationError):
                    own = read_bytes(self._files, path)
                    self._compare_roots(f"{path} of {logged.commit.short}", path, own)
            elif self._declares(path):
                touched |= self._read(path, before[path])
            used |= self._users(path)
        differs = {*changed}
        touched |= {schema for schema in used - touched if not self._only_shared(schema, differs)}
        # Files that several topics share are read once for all of them.
        definitions = Definitions(self._files, shared=self._avro_files, blob=self._files.blob)
        for schema in sorted(touched):
            self._record(schema, definitions)

    def _change(self, change: ChangedFile) -> bool:
        """Make the change; return whether it makes a difference to what declarations can see."""
        found = entry(change.mode, change.blob)
        seen = change.path == self._project.path or change.path.endswith(SUFFIXES)
        if found and found.kind == "file" and not seen:
            found = None
        if found == self._files.entry(change.path):
            return False
        self._writer.put(change.path, found)
        return True

    def _declares(self, path: str) -> bool:
        return path.endswith(YAML_SUFFIXES) and self._is_within(path)

    def _is_wanted(self, path: str) -> bool:
        """Return whether the content at `path` will be asked for, as far as can be told before it is fetched."""
        return (
            self._is_within(path) or path == self._project.path or (path.endswith(SUFFIXES) and bool(self._users(path)))
        )

    def _users(self, path: str) -> set[str]:
        """Return the schemas whose definition is made of `path` among others, or of a folder that it is in."""
        return set().union(*(self._writer.users(each) for each in (path, *folders_above(path))))

    def _compare_moved(self, commit: Commit, before: dict[str, Entry | None]) -> None:
        """As `_compare_roots`, for the project files that `commit` took away when it brought ours, as a move of the folder does."""
        if self._project.path not in before or before[self._project.path]:
            return
        for path, found in before.items():
            if posixpath.basename(path) != PROJECT_FILE or self._files.kind(path) != "missing":
                continue
            if found and found.kind == "file":
                then = self._repository.blob(found.blob).content
                self._compare_roots(f"{path} before {commit.short}", path, then)

    def _compare_roots(self, whose: str, path: str, data: bytes) -> None:
        """Raise HistoryError where a former project file looked for declarations where nobody looks today."""
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
                    "topics that were declared there would be counted again",
                    fix=f"add `{written}` to `previous_roots` in {self._project.path}",
                )

    def _read(self, path: str, before: Entry | None) -> set[str]:
        """Return the topics that the declaration file at `path` declared or declares, after it changed from `before`."""
        held = self._writer.declared(path)
        now: list[tuple[str, str | None, str | None]] = []
        problems: tuple[Problem, ...] = ()
        found = self._files.entry(path)
        if found:
            read = self._documents_at(path, found.blob if found.kind == "file" else None)
            problems = read.problems
            for document in read.documents:
                if isinstance(document, NamespaceDocument):
                    self._writer.set_policies(str(document.namespace.name), document.namespace.policies)
            now = [(*_name(document), None) for document in read.documents]
            if problems:
                # What cannot be read now still counts as it was declared before.
                named_now = {name for name, _, _ in now}
                now += [
                    (each.name, each.schema, each.blob or (before.blob if before else None))
                    for each in held
                    if each.name not in named_now
                ]
        self._writer.note(path, [(None, problem) for problem in problems])
        self._writer.declare(path, now)
        schemas = [*(each.schema for each in held), *(schema for _, schema, _ in now)]
        return {schema for schema in schemas if schema}

    def _documents_at(self, path: str, blob: str | None) -> Documents:
        """Return what the file at `path` declares, or declared when it was `blob`; None: what is there is no file."""
        key = (path, blob or "")
        known = self._documents.get(key) or self._large.get(key)
        if known is None:
            try:
                if blob is None:
                    read_bytes(self._files, path)
                data = content(path, self._repository.blob(blob or ""))
                check_bytes(path, data)
            except DeclarationError as error:
                return Documents(path, (), error.problems)
            known = read_documents(path, data)
            if len(data) <= _KEPT_DOCUMENT_BYTES:
                self._documents[key] = known
                if len(self._documents) > _KEPT_DOCUMENTS:
                    del self._documents[next(iter(self._documents))]
            else:
                self._large[key] = known
        return known

    def _document(self, held: DeclarationRow) -> TopicDocument:
        """Return the topic that is declared there."""
        found = self._files.entry(held.path)
        blob = found.blob if found and found.kind == "file" else None
        return named(self._documents_at(held.path, held.blob or blob).documents, held)

    def _only_shared(self, schema: str, changed: AbstractSet[str]) -> bool:
        """Return whether nothing but files that the definition takes types of has changed; then the topic is up to date."""
        inspected = self._inspected.get(schema)
        if inspected is None or inspected.parts is None:
            return False
        made_of, taken = self._writer.made_of(schema), inspected.parts.taken
        if not among(changed, made_of) <= taken.keys():
            return False
        found = self._fingerprints.refreshed(inspected.type, inspected.parts)
        if found is None:
            return False
        for domain in DOMAINS:
            state = self._writer.state(schema, domain)
            if state and not state.deleted:
                self._writer.set_definition(schema, domain, state.path, (inspected.type.name, found))
        return True

    def _record(self, schema: str, definitions: Definitions) -> None:
        """Record the topics of that tenant/namespace/topic as they are declared now."""
        self._inspected.pop(schema, None)
        places = self._writer.declarations(schema)
        if len(places) > 1:
            # While files move from a former root to today's, both may hold the topic; today's counts.
            places = [place for place in places if self._is_today(place.path)] or places
        documents = [self._document(place) for place in places]
        problems = [_declared_twice(document, documents[0]) for document in documents[1:]]
        definition = None
        if len(documents) == 1 and (declaration := documents[0].schema):
            inspected = self._fingerprints.inspect(declaration, definitions)
            self._writer.depend(schema, inspected.paths | read_clients(documents[0], definitions).paths)
            problems += [(documents[0], problem) for problem in inspected.problems]
            if inspected.fingerprint:
                self._inspected[schema] = inspected
                definition = (inspected.type.name, inspected.fingerprint)
        self._writer.note(schema, [(str(each.topic.name), problem) for each, problem in problems], is_topic=True)
        # Only one is left where there is no problem.
        declared = documents[0].topic.name.domain if documents else None
        for domain in DOMAINS:
            state = self._writer.state(schema, domain)
            if not problems and domain == declared:
                topic = documents[0].topic
                self._writer.set_definition(schema, domain, places[0].path, definition, topic.generation)
                self._writer.set_policies(str(topic.name), topic.policies)
            elif state is None or state.deleted:
                continue
            elif not problems:
                gone = StateRow(deleted=True, number=None, since=self._writer.step, path=state.path)
                self._writer.set_state(schema, domain, gone)
            elif state.as_of is None:
                # What the topic was before this step still counts.
                self._writer.set_state(schema, domain, state._replace(as_of=self._writer.step - 1))


def is_read(change: ChangedFile) -> bool:
    """Return whether the change brings a file that may be a declaration or a definition."""
    return change.mode in FILE_MODES and change.path.endswith(SUFFIXES)


def named(documents: Sequence[TopicDocument | NamespaceDocument], held: DeclarationRow) -> TopicDocument:
    """Return of a file's documents the one that declares the topic, by its position where several do."""
    ordered = [*documents[held.position : held.position + 1], *documents]
    return next(each for each in ordered if isinstance(each, TopicDocument) and str(each.topic.name) == held.name)


def _name(document: TopicDocument | NamespaceDocument) -> tuple[str, str | None]:
    if isinstance(document, TopicDocument):
        return str(document.topic.name), document.topic.name.schema_id
    return str(document.namespace.name), None


def _declared_twice(document: TopicDocument, first: TopicDocument) -> tuple[TopicDocument, Problem]:
    what = f"{document.topic.name} is declared twice, first at {first.source}"
    return document, Problem(document.source, what, "keep one of the two")


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Collect no cycles, of which a derivation makes none: looking for them takes an eighth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
