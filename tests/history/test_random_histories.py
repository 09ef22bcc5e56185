"""Random histories: the streamed fold gives the versions that checking out every commit gives."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import Scratch

from schemactl import history
from schemactl.core.errors import DeclarationError, InvalidSchema
from schemactl.core.project import Project
from schemactl.declare.definition import Definitions
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import YAML_SUFFIXES, WorktreeFiles, read_bytes
from schemactl.declare.reader import in_roots
from schemactl.formats import identity

pytestmark = pytest.mark.slow

PROJECT = Project(roots=("topics",), previous_roots=("before",))

Tree = dict[str, str]
Versions = dict[str, tuple[list[tuple[bytes, str] | None], int | None, bool]]
"""By topic: text and commit of every version (None: a tombstone), the number in force, and whether the topic is gone."""


@dataclass
class Slow:
    """The obvious way: for every commit, look at every file of its working tree anew."""

    documents: dict[str, list[TopicDocument]] = field(default_factory=dict)
    numbers: dict[str, dict[Hashable, int]] = field(default_factory=dict)
    versions: dict[str, list[tuple[bytes, str] | None]] = field(default_factory=dict)
    current: dict[str, int | None] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def look(self, files: WorktreeFiles, commit: str) -> None:
        """One more commit is checked out."""
        before, self.documents = self.documents, {}
        for path in files.paths():
            if path.endswith(YAML_SUFFIXES) and in_roots(path, PROJECT, previous=True):
                self.documents[path] = self._declared(files, path, before.get(path, []))
        places: dict[str, list[tuple[bool, TopicDocument]]] = {}
        for path, documents in self.documents.items():
            for document in documents:
                places.setdefault(str(document.topic.name), []).append((in_roots(path, PROJECT), document))
        for topic in {*places, *self.current}:
            found = [document for today, document in places.get(topic, ()) if today]
            found = found or [document for _, document in places.get(topic, ())]
            if not found and topic in self.current:
                self.current[topic] = None
                self.gone.add(topic)
            if len(found) == 1:
                self._declare(topic, found[0], files, commit)

    def _declared(self, files: WorktreeFiles, path: str, before: list[TopicDocument]) -> list[TopicDocument]:
        try:
            read = read_documents(path, read_bytes(files, path))
        except DeclarationError:
            return before
        now = [document for document in read.documents if isinstance(document, TopicDocument)]
        if read.problems:
            names = {document.topic.name for document in now}
            now += [document for document in before if document.topic.name not in names]
        return now

    def _declare(self, topic: str, document: TopicDocument, files: WorktreeFiles, commit: str) -> None:
        if document.schema is None:
            self.current[topic] = None
            self.versions.setdefault(topic, [])
            self.gone.discard(topic)
            return
        info = Definitions(files).read(document.schema).info
        if info is None:
            return
        try:
            key = identity(info)
        except InvalidSchema:
            return
        numbers = self.numbers.setdefault(topic, {})
        versions = self.versions.setdefault(topic, [])
        while versions.count(None) < document.topic.generation - 1:
            versions.append(None)
            numbers.clear()
        if key not in numbers:
            numbers[key] = len(versions)
            versions.append((info.schema, commit))
        self.current[topic] = numbers[key]
        self.gone.discard(topic)

    def result(self) -> Versions:
        """What was seen; a topic that only a former root declares is gone."""
        today = {
            str(document.topic.name)
            for path, documents in self.documents.items()
            if in_roots(path, PROJECT)
            for document in documents
        }
        declared = today - self.gone
        return {
            topic: (self.versions[topic], self.current[topic] if topic in declared else None, topic not in declared)
            for topic in self.versions
        }


def slowly(scratch: Scratch) -> Versions:
    """Every commit of main's first-parent line is checked out and looked at."""
    commits = scratch.git("rev-list", "--first-parent", "--reverse", "main").split()
    with tempfile.TemporaryDirectory() as folder:
        scratch.git("worktree", "add", "-q", "--detach", f"{folder}/all", commits[0])
        slow = Slow()
        for commit in commits:
            scratch.git("-C", f"{folder}/all", "checkout", "-q", "--force", "--detach", commit)
            slow.look(WorktreeFiles(f"{folder}/all"), commit)
    return slow.result()


def read(scratch: Scratch) -> history.History:
    """What the tool itself says, from its cache where there is one."""
    with history.Repository.open(scratch.path) as repository:
        found = history.read(repository, PROJECT)
        found.catalog.load()
        return found


def forget(scratch: Scratch) -> None:
    """There is no cache."""
    shutil.rmtree(scratch.cache, ignore_errors=True)


def versions(approved: history.History) -> Versions:
    """Of what the tool says, as much as checking out every commit shows."""
    return {
        str(name): (
            [
                (version.info.schema, version.commit.id) if version.info and version.commit else None
                for version in topic.versions
            ],
            approved.current(name),
            topic.deleted,
        )
        for name, topic in approved.catalog.topics.items()
    }


def everything(approved: history.History) -> object:
    """All that the tool says."""
    return (
        versions(approved),
        dict(approved.catalog.namespaces),
        dict(approved.catalog.topics),
        {name: (topic.source, topic.schema) for name, topic in approved.catalog.topics.items()},
        {name: (approved.current(name), approved.since(name)) for name in approved.catalog.topics},
        approved.tip,
        approved.notes,
        approved.repaired,
    )


NAMES = ("one", "two", "three")
COMMON = "common/money.avsc"


def definition(name: str, version: int, *, indent: int | None, doc: str, shared: bool) -> str:
    """A record that differs with `version`, and in what makes no version."""
    fields: list[dict[str, Any]] = [{"name": f"f{version}", "type": "string", "doc": doc}]
    if shared:
        fields.append({"name": "money", "type": "Money"})
    return json.dumps({"type": "record", "name": f"R{name}", "fields": fields}, indent=indent)


def money(version: int, doc: str) -> str:
    """The shared definition."""
    fields = [{"name": f"m{version}", "type": "int", "default": 0}]
    return json.dumps({"type": "record", "name": "Money", "doc": doc, "fields": fields})


def declaration(name: str, folder: str, *, shared: bool, comment: str, generation: int = 1) -> str:
    """A topic's declaration; its definition lies in `schemas`."""
    references = f"  references: [../{COMMON}]\n" if shared else ""
    up = "../" * folder.count("/")
    text = f"# {comment}\ntopic: a/b/{name}\ngeneration: {generation}\nschema:\n  type: AVRO\n  definition: ../{up}schemas/{name}.avsc\n"
    return text + references.replace("../", f"../{up}")


@st.composite
def edited(draw: st.DrawFn, name: str, path: str) -> Tree:
    """What a change of one topic's files writes: its declaration, its definition, or both."""
    folder = path.rpartition("/")[0]
    shared = draw(st.booleans())
    comment = draw(st.sampled_from(["", "x", "y"]))
    written = definition(
        name, draw(st.integers(0, 3)), indent=draw(st.sampled_from([None, 2])), doc=comment, shared=shared
    )
    generation = draw(st.sampled_from([1, 1, 2, 2, 4]))
    mine = declaration(name, folder, shared=shared, comment=comment, generation=generation)
    broken = st.sampled_from(["{", "", "topic: a/b/one\nmore: 1\n", '{"type": "x"}'])
    return draw(
        st.sampled_from(
            [
                {path: mine, f"schemas/{name}.avsc": written},
                {path: mine, f"schemas/{name}.avsc": written},
                {f"schemas/{name}.avsc": written},
                {COMMON: money(draw(st.integers(0, 2)), comment)},
                {draw(st.sampled_from([path, f"schemas/{name}.avsc", COMMON])): draw(broken)},
                {"topics/again.yaml": declaration(name, "topics", shared=shared, comment=comment)},
                {path: f"topic: a/b/{name}\nschema: {{type: STRING}}\n---\ntopic: a/b/other\n"},
                {path: f"topic: a/b/{name}\n"},
            ]
        )
    )


@st.composite
def changed(draw: st.DrawFn, tree: Tree, former: list[Tree]) -> Tree:
    """The tree after one change of some kind."""
    tree = dict(tree)
    name = draw(st.sampled_from(NAMES))
    path = next((path for path in tree if path.endswith(f"/{name}.yaml")), f"topics/{name}.yaml")
    kind = draw(st.sampled_from(["edit"] * 8 + ["rename", "delete", "revert"]))
    if kind == "edit":
        tree |= draw(edited(name, path))
    elif kind == "delete":
        for gone in draw(st.sampled_from([(path,), (f"schemas/{name}.avsc",), (COMMON,), (path, COMMON)])):
            tree.pop(gone, None)
    elif kind == "revert":
        tree = dict(draw(st.sampled_from(former)))
    elif path in tree:
        del tree[path]
        folder = draw(st.sampled_from(["topics", "before", "topics/deep", "topics/.hidden"]))
        tree[f"{folder}/{name}.yaml"] = declaration(name, folder, shared=draw(st.booleans()), comment="")
    return tree


@st.composite
def repositories(draw: st.DrawFn) -> list[list[Tree]]:
    """For every step of main its trees: one for a commit, or those of a branch, of which the last is the merge's."""
    tree: Tree = {}
    former: list[Tree] = [tree]
    steps = []
    for _ in range(draw(st.integers(1, 12))):
        branch = []
        for _ in range(draw(st.sampled_from([1, 1, 1, 1, 2, 3]))):
            tree = draw(changed(tree, former))
            former.append(tree)
            branch.append(tree)
        steps.append(branch)
    return steps


def difference(old: Tree, new: Tree) -> dict[str, str | None]:
    """What a commit from one tree to the other changes."""
    return {path: new.get(path) for path in {*old, *new} if old.get(path) != new.get(path)}


def made(folder: str, steps: list[list[Tree]], *, squash: bool) -> Scratch:
    """A repository with that history."""
    scratch = Scratch(Path(folder) / "r")
    before: Tree = {}
    tip = scratch.commit({"README.md": "x"}, "root")
    for branch in steps:
        side = tip
        old = before
        for tree in branch[:-1] if squash else branch:
            side = scratch.commit(difference(old, tree), "side", branch="side", start=side)
            old = tree
        merge = side if len(branch) > 1 and not squash else None
        tip = scratch.commit(difference(before, branch[-1]), "main", merge=merge)
        before = branch[-1]
    scratch.flush()
    return scratch


@REPOSITORIES
@given(steps=repositories(), squash=st.booleans())
def test_any_history_has_the_versions_that_checking_out_every_commit_gives(
    *, steps: list[list[Tree]], squash: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = made(folder, steps, squash=squash)
        assert versions(read(scratch)) == slowly(scratch)


@REPOSITORIES
@given(steps=repositories(), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_what_is_kept_and_followed_up_is_what_is_derived_anew(*, steps: list[list[Tree]], cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = made(folder, steps, squash=False)
        commits = scratch.git("rev-list", "--first-parent", "--reverse", "main").split()
        anew = {}
        for at in {*(min(cut, len(commits) - 1) for cut in cuts), len(commits) - 1}:
            forget(scratch)
            scratch.git("update-ref", "refs/heads/main", commits[at])
            anew[at] = everything(read(scratch))
        forget(scratch)
        # Forwards, and where the cuts go back: what is known reaches beyond the tip then.
        for cut in (*cuts, len(commits)):
            at = min(cut, len(commits) - 1)
            scratch.git("update-ref", "refs/heads/main", commits[at])
            assert everything(read(scratch)) == anew[at]
            assert everything(read(scratch)) == anew[at]
