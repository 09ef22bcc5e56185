"""What was changed since the last check, judged on sight: definitions of the plain kind that nobody minds."""

from __future__ import annotations

import os
import posixpath
from types import SimpleNamespace

from schemactl.staged.avro import Definition, NotPlain, Outline, joined, known, parse
from schemactl.staged.standing import Standing, TopicLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from schemactl.history.cache import Cache
    from schemactl.staged.git import Git

MAX_TOPICS = 20
"""So many topics are judged on sight; more are a change that may take its time."""

MAX_BYTES = 1 << 18
"""So large may a file be."""

_YAML = (b".yaml", b".yml")
_AVRO = (b".avsc", b".json")
_SCHEMA_KEYS = frozenset(("type", "definition", "references", "properties"))

# Which versions a strategy looks at, and who must read whom (compat).
_NEW_READS_OLD = frozenset(("BACKWARD", "FULL", "BACKWARD_TRANSITIVE", "FULL_TRANSITIVE"))
_OLD_READS_NEW = frozenset(("FORWARD", "FULL", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"))


def judged(standing: Standing, records: Sequence[bytes], git: Git, *, color: bool) -> str | None:
    """The report on what `records` say of the index; None: work it out. `git` reads objects."""
    changes = dict(zip(records[1::2], records[::2], strict=True))
    before = standing.records.split(b"\0")[1::2]
    # What was changed at the last check and is no longer was never looked at as it is now.
    if not changes.keys() >= set(before) or not all(map(_is_edit, changes.values(), changes)):
        return None
    judge = _Judge(standing, git)
    try:
        topics = judge.topics(changes)
    except NotPlain:
        return None
    return _report(standing, topics, judge.findings, color=color)


def _is_edit(facts: bytes, path: bytes) -> bool:
    """Whether a plain file of a usual name was edited."""
    before, after, _, _, _ = facts[1:].split(b" ")
    return (
        before == after == b"100644"
        and path.endswith((*_YAML, *_AVRO))
        and path.isascii()
        and b"\n" not in path
    )


class _Said:
    """What a declaration says of a schema: its type, the path of its definition ("": `value` is it), those of its references."""

    __slots__ = ("definition", "references", "type", "value")

    def __init__(self, kind: str, definition: str, value: Any, references: list[str]) -> None:
        self.type = kind
        self.definition = definition
        self.value = value
        self.references = references


def _said(documents: list[Any], schema: str, folder: str) -> _Said:
    """What the documents of a file in that folder say of the topic's schema."""
    for document in documents:
        if isinstance(document, dict) and _full_name(document).partition("://")[2] == schema:
            said = document.get("schema")
            break
    else:
        raise NotPlain
    if not isinstance(said, dict) or not said.keys() <= _SCHEMA_KEYS:
        raise NotPlain
    references = [posixpath.normpath(posixpath.join(folder, each)) for each in said.get("references", ())]
    written = said["definition"]
    if not isinstance(written, str):
        return _Said(said["type"], "", written, references)
    if written.lstrip().startswith(("{", "[", '"')):
        return _Said(said["type"], "", parse(written), references)
    return _Said(said["type"], posixpath.normpath(posixpath.join(folder, written)), None, references)


class _Judge:
    """One look at what was changed."""

    def __init__(self, standing: Standing, git: Git) -> None:
        self.standing = standing
        self.git = git
        self.findings: list[SimpleNamespace] = []
        self._contents: dict[str, bytes] = {}
        self._documents: dict[str, list[Any]] = {}
        self._values: dict[str, Any] = {}
        self._outlines: dict[tuple[str, frozenset[str]], Outline] = {}
        # By the file, its blob, and the topic's key in a registry.
        self._said: dict[tuple[str, str, str], _Said] = {}

    def topics(self, changes: Mapping[bytes, bytes]) -> list[SimpleNamespace]:
        """The topics whose definition changed, each fine.

        Raises:
            NotPlain: something has to be worked out.
        """
        edits = {path: tuple(facts.decode().split(" ")[2:4]) for path, facts in changes.items()}
        self._read(blob for edit in edits.values() for blob in edit)
        affected: dict[str, TopicLine] = {}
        for path, (before, after) in edits.items():
            if path.endswith(_YAML):
                names = self._redefined(before, after)
                lines = [
                    line
                    for line in self.standing.topics_of(path)
                    if line.declaration == path.decode() and line.name in names
                ]
                if len(lines) != len(names):
                    raise NotPlain
            elif repr(self._value(before)) == repr(self._value(after)):
                continue
            else:
                lines = [line for line in self.standing.topics_of(path) if path.decode() in line.files]
            affected |= {line.name: line for line in lines}
        if not affected:
            return []
        if len(affected) > MAX_TOPICS:
            raise NotPlain
        history = self._history()
        return [
            self._topic(line, edits, history)
            for _, line in sorted(affected.items(), key=lambda each: _order(each[0]))
        ]

    def _redefined(self, before: str, after: str) -> set[str]:
        """The names of the topics of a declaration file whose definitions, and nothing else, differ."""
        names = set()
        for old, new in zip(self._file(before), self._file(after), strict=True):
            if repr(old) != repr(new):
                name = _full_name(new)
                if name in names or repr(_without_definition(old)) != repr(_without_definition(new)):
                    raise NotPlain
                names.add(name)
        return names

    def _topic(
        self, line: TopicLine, edits: Mapping[bytes, tuple[str, ...]], history: Cache
    ) -> SimpleNamespace:
        if not line.strategy:
            raise NotPlain
        step = history.step_of(self.standing.base.decode())
        if step is None:
            raise NotPlain
        # What was not edited is as it was where work began.
        left = history.at(step)
        here = {
            path: edits[path.encode()][1] if path.encode() in edits else _blob(left.entry(path))
            for path in (line.declaration, *line.files)
        }
        if line.definition and line.declaration.encode() not in edits:
            references = [path for path in line.files if path != line.definition]
            said = _Said(line.type, line.definition, None, references)
            self._said[line.declaration, here[line.declaration], line.schema] = said
        self._read(here.values())
        kind, new = self._definition(line.schema, line.declaration, here)
        versions = self._versions(line.schema, kind, history, left)
        number = len(versions)
        if new in versions or not all(
            _suits(new, old, line.strategy) for old in _protected(versions, line.strategy)
        ):
            raise NotPlain
        fine = SimpleNamespace(broker=SimpleNamespace(outcome=SimpleNamespace(value="ok")), data=())
        return SimpleNamespace(
            topic=line.name,
            change="new version",
            strategy=SimpleNamespace(value=line.strategy),
            version=number,
            latest=number - 1,
            stepwise=None,
            verdict=fine,
            tables=self._tables(line, new, versions, left, here),
        )

    def _tables(
        self,
        line: TopicLine,
        new: Definition,
        versions: Sequence[Definition],
        left: Cache,
        here: Mapping[str, str],
    ) -> SimpleNamespace | None:
        """What becomes of tables that the topic feeds, also in `findings`; None: it feeds none."""
        if not self.standing.tables:
            return None
        from schemactl.staged import tables

        there = _place(left, line.schema, line.declaration)
        self._read(there.values())
        _, old = self._definition(line.schema, line.declaration, there)
        found = tables.changes(old, new, versions)
        if found:
            if not line.definition:
                raise NotPlain
            text = self._contents[here[line.definition]]
            self.findings.append(tables.finding(line.name, found, line.definition, text))
        return tables.cell(found)

    def _versions(self, schema: str, kind: str, history: Cache, left: Cache) -> list[Definition]:
        """The approved versions, which all are of that type; nothing became of the topic since work began at `left`."""
        rows = history.version_rows(schema)
        if not rows or any(type_ != kind for _, _, type_, _, _ in rows):
            raise NotPlain
        _, newest, _, declaration, _ = rows[-1]
        if left.step != history.step and (
            newest > left.step or _place(left, schema, declaration) != _place(history, schema, declaration)
        ):
            # Both would have to be merged.
            raise NotPlain
        places = []
        for _, step, _, path, _ in rows:
            then = history.at(step)
            here = _place(then, schema, path)
            said_before = (path, here[path], schema) in self._said
            if not said_before and any(each.blob for each in then.declarations(schema)):
                # The file could not be read then; what it had said before counted.
                raise NotPlain
            places.append((path, here))
        self._read({blob for _, here in places for blob in here.values()})
        found = [self._definition(schema, path, here) for path, here in places]
        if any(each != kind for each, _ in found):
            raise NotPlain
        return [each for _, each in found]

    def _definition(self, schema: str, declaration: str, here: Mapping[str, str]) -> tuple[str, Definition]:
        """The type and the definition that the file `declaration` declares for the topic, where paths have these blobs."""
        key = declaration, here[declaration], schema
        if key not in self._said:
            self._said[key] = _said(self._file(here[declaration]), schema, posixpath.dirname(declaration))
        said = self._said[key]
        references = [self._outline(here.get(path, "")) for path in said.references]
        if said.definition:
            own = self._outline(here.get(said.definition, ""), known(references))
        else:
            own = Outline(said.value, known(references))
        return said.type, joined(own, references)

    def _outline(self, blob: str, elsewhere: frozenset[str] = frozenset()) -> Outline:
        """What a file of JSON defines."""
        if (blob, elsewhere) not in self._outlines:
            self._outlines[blob, elsewhere] = Outline(self._value(blob), elsewhere)
        return self._outlines[blob, elsewhere]

    def _history(self) -> Cache:
        """The kept history, at the tip."""
        from schemactl.history.cache import Cache

        kept = Cache.open(os.fsdecode(self.standing.history), self.standing.derivation.decode())
        step = kept.step_of(self.standing.tip.decode()) if kept else None
        if kept is None or step is None:
            raise NotPlain
        return kept.at(step)

    def _read(self, blobs: Iterable[str]) -> None:
        """The contents of `blobs` are known."""
        wanted = [blob for blob in dict.fromkeys(blobs) if blob not in self._contents]
        for each in self.git.objects(wanted):
            self._keep(each)

    def _keep(self, found: tuple[str, bytes] | None) -> str:
        if found is None or len(found[1]) > MAX_BYTES:
            raise NotPlain
        self._contents[found[0]] = found[1]
        return found[0]

    def _file(self, blob: str) -> list[Any]:
        """The documents of a YAML file."""
        if blob not in self._documents:
            try:
                from schemactl.staged.documents import documents
            except ImportError:
                # PyYAML without libyaml.
                raise NotPlain from None
            self._documents[blob] = documents(self._contents[blob])
        return self._documents[blob]

    def _value(self, blob: str) -> Any:
        """The value of a file of JSON."""
        if blob not in self._values:
            if blob not in self._contents:
                raise NotPlain
            self._values[blob] = parse(self._contents[blob])
        return self._values[blob]


def _place(history: Cache, schema: str, declaration: str) -> dict[str, str]:
    """The files that a topic's definition was made of at that step, the declaration first, with their blobs."""
    paths = (declaration, *history.made_of(schema))
    return {path: _blob(history.entry(path)) for path in paths}


def _blob(entry: tuple[str, str] | None) -> str:
    if entry is None or entry[0] != "file":
        raise NotPlain
    return entry[1]


def _full_name(document: Any) -> str:
    name = document.get("topic") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise NotPlain
    return name if "://" in name else f"persistent://{name}"


def _without_definition(document: dict[str, Any]) -> dict[str, Any]:
    schema = document.get("schema")
    if not isinstance(schema, dict):
        raise NotPlain
    return {**document, "schema": {**schema, "definition": None}}


def _order(name: str) -> tuple[str, ...]:
    """As topics stand in a report."""
    domain, _, schema = name.partition("://")
    return *schema.split("/", 2), domain


def _protected(versions: list[Definition], strategy: str) -> Iterator[Definition]:
    """The versions that the strategy looks at."""
    if strategy == "ALWAYS_COMPATIBLE":
        return
    yield from versions if strategy.endswith("_TRANSITIVE") else versions[-1:]


def _suits(new: Definition, old: Definition, strategy: str) -> bool:
    """Whether those who must read the other do; False: perhaps not."""
    return (
        strategy in _NEW_READS_OLD | _OLD_READS_NEW
        and (strategy not in _NEW_READS_OLD or new.reads(old))
        and (strategy not in _OLD_READS_NEW or old.reads(new))
    )


def _report(
    standing: Standing, topics: list[SimpleNamespace], findings: list[SimpleNamespace], *, color: bool
) -> str:
    from schemactl.report.check_text import render

    left = standing.base.decode()
    report: Any = SimpleNamespace(
        findings=findings,
        topics=topics,
        notes=[each for each in standing.notes.decode().split("\n") if each],
        release=standing.release.decode(),
        base=standing.label.decode(),
        merge_base=SimpleNamespace(short=left[:9]) if left != standing.tip.decode() else None,
        checked=int(standing.checked),
        count=lambda _severity: 0,
    )
    return render(report, color=color)
