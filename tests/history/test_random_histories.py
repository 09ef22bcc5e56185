"""Random histories: the derivation has the same versions as a check-out of every commit."""

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

from schemactl.core.errors import DeclarationError, InvalidSchema
from schemactl.core.project import Project
from schemactl.declare.definition import Definitions
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import YAML_SUFFIXES, WorktreeFiles, read_bytes
from schemactl.declare.reader import in_roots
from schemactl.formats import identity
from schemactl.history.approved_history import History, read_history
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow

PROJECT = Project(roots=("topics",), previous_roots=("before",))

Tree = dict[str, str]
Versions = dict[str, tuple[list[tuple[bytes, str] | None], int | None, bool]]
"""By topic: text and commit of every version (None: a tombstone), the number in force, and whether the topic is gone."""


@dataclass
class SlowDerivation:
    """The obvious derivation: for every commit, read every file of its working tree."""

    documents: dict[str, list[TopicDocument]] = field(default_factory=dict)
    numbers: dict[str, dict[Hashable, int]] = field(default_factory=dict)
    versions: dict[str, list[tuple[bytes, str] | None]] = field(default_factory=dict)
    current: dict[str, int | None] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def add_commit(self, files: WorktreeFiles, commit: str) -> None:
        """Read the working tree of one more commit."""
        old_documents, self.documents = self.documents, {}
        for path in files.paths():
            if path.endswith(YAML_SUFFIXES) and in_roots(path, PROJECT, previous=True):
                self.documents[path] = self._read_declarations(files, path, old_documents.get(path, []))
        places: dict[str, list[tuple[bool, TopicDocument]]] = {}
        for path, documents in self.documents.items():
            for document in documents:
                places.setdefault(str(document.topic.name), []).append((in_roots(path, PROJECT), document))
        for topic in {*places, *self.current}:
            documents = [document for is_in_current_root, document in places.get(topic, ()) if is_in_current_root]
            documents = documents or [document for _, document in places.get(topic, ())]
            if not documents and topic in self.current:
                self.current[topic] = None
                self.gone.add(topic)
            if len(documents) == 1:
                self._declare(topic, documents[0], files, commit)

    def _read_declarations(
        self, files: WorktreeFiles, path: str, old_documents: list[TopicDocument]
    ) -> list[TopicDocument]:
        try:
            read = read_documents(path, read_bytes(files, path))
        except DeclarationError:
            return old_documents
        documents = [document for document in read.documents if isinstance(document, TopicDocument)]
        if read.problems:
            names = {document.topic.name for document in documents}
            documents += [document for document in old_documents if document.topic.name not in names]
        return documents

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

    def list_versions(self) -> Versions:
        """List the versions; a topic that only a previous root declares is deleted."""
        in_current_roots = {
            str(document.topic.name)
            for path, documents in self.documents.items()
            if in_roots(path, PROJECT)
            for document in documents
        }
        declared = in_current_roots - self.gone
        return {
            topic: (self.versions[topic], self.current[topic] if topic in declared else None, topic not in declared)
            for topic in self.versions
        }


def derive_slowly(scratch: Scratch) -> Versions:
    """Check out and read every commit of main's first-parent line."""
    commits = scratch.git("rev-list", "--first-parent", "--reverse", "main").split()
    with tempfile.TemporaryDirectory() as folder:
        scratch.git("worktree", "add", "-q", "--detach", f"{folder}/all", commits[0])
        slow = SlowDerivation()
        for commit in commits:
            scratch.git("-C", f"{folder}/all", "checkout", "-q", "--force", "--detach", commit)
            slow.add_commit(WorktreeFiles(f"{folder}/all"), commit)
    return slow.list_versions()


def read(scratch: Scratch) -> History:
    """Read the history, from the cache if there is one."""
    with Repository.open(scratch.path) as repository:
        approved = read_history(repository, PROJECT)
        approved.catalog.load()
        return approved


def forget(scratch: Scratch) -> None:
    """Remove the cache."""
    shutil.rmtree(scratch.cache, ignore_errors=True)


def list_versions(approved: History) -> Versions:
    """List the parts of a history that `SlowDerivation` derives as well."""
    return {
        str(name): (
            [
                (version.info.schema, version.commit.id) if version.info and version.commit else None
                for version in topic.versions
            ],
            approved.find_current_number(name),
            topic.deleted,
        )
        for name, topic in approved.catalog.topics.items()
    }


def list_all_parts(approved: History) -> object:
    """List all parts of a history."""
    return (
        list_versions(approved),
        dict(approved.catalog.namespaces),
        dict(approved.catalog.topics),
        {name: (topic.source, topic.schema) for name, topic in approved.catalog.topics.items()},
        {
            name: (approved.find_current_number(name), approved.find_commit_of_state(name))
            for name in approved.catalog.topics
        },
        approved.tip,
        approved.notes,
        approved.repaired,
    )


NAMES = ("one", "two", "three")
COMMON = "common/money.avsc"


def write_definition(name: str, version: int, *, indent: int | None, doc: str, shared: bool) -> str:
    """Write a record that differs by `version`, and in details that make no version."""
    fields: list[dict[str, Any]] = [{"name": f"f{version}", "type": "string", "doc": doc}]
    if shared:
        fields.append({"name": "money", "type": "Money"})
    return json.dumps({"type": "record", "name": f"R{name}", "fields": fields}, indent=indent)


def write_money(version: int, doc: str) -> str:
    """Write the shared definition."""
    fields = [{"name": f"m{version}", "type": "int", "default": 0}]
    return json.dumps({"type": "record", "name": "Money", "doc": doc, "fields": fields})


def write_declaration(name: str, folder: str, *, shared: bool, comment: str, generation: int = 1) -> str:
    """Write a topic's declaration; its definition is in `schemas`."""
    references = f"  references: [../{COMMON}]\n" if shared else ""
    up = "../" * folder.count("/")
    text = f"# {comment}\ntopic: a/b/{name}\ngeneration: {generation}\nschema:\n  type: AVRO\n  definition: ../{up}schemas/{name}.avsc\n"
    return text + references.replace("../", f"../{up}")


@st.composite
def draw_edit(draw: st.DrawFn, name: str, path: str) -> Tree:
    """Draw a change of one topic's files: its declaration, its definition, or both."""
    folder = path.rpartition("/")[0]
    shared = draw(st.booleans())
    comment = draw(st.sampled_from(["", "x", "y"]))
    written = write_definition(
        name, draw(st.integers(0, 3)), indent=draw(st.sampled_from([None, 2])), doc=comment, shared=shared
    )
    generation = draw(st.sampled_from([1, 1, 2, 2, 4]))
    mine = write_declaration(name, folder, shared=shared, comment=comment, generation=generation)
    broken = st.sampled_from(["{", "", "topic: a/b/one\nmore: 1\n", '{"type": "x"}'])
    return draw(
        st.sampled_from(
            [
                {path: mine, f"schemas/{name}.avsc": written},
                {path: mine, f"schemas/{name}.avsc": written},
                {f"schemas/{name}.avsc": written},
                {COMMON: write_money(draw(st.integers(0, 2)), comment)},
                {draw(st.sampled_from([path, f"schemas/{name}.avsc", COMMON])): draw(broken)},
                {"topics/again.yaml": write_declaration(name, "topics", shared=shared, comment=comment)},
                {path: f"topic: a/b/{name}\nschema: {{type: STRING}}\n---\ntopic: a/b/other\n"},
                {path: f"topic: a/b/{name}\n"},
            ]
        )
    )


@st.composite
def draw_change(draw: st.DrawFn, tree: Tree, former: list[Tree]) -> Tree:
    """Draw a change of any kind, and return the tree after it."""
    tree = dict(tree)
    name = draw(st.sampled_from(NAMES))
    path = next((path for path in tree if path.endswith(f"/{name}.yaml")), f"topics/{name}.yaml")
    kind = draw(st.sampled_from(["edit"] * 8 + ["rename", "delete", "revert"]))
    if kind == "edit":
        tree |= draw(draw_edit(name, path))
    elif kind == "delete":
        for gone in draw(st.sampled_from([(path,), (f"schemas/{name}.avsc",), (COMMON,), (path, COMMON)])):
            tree.pop(gone, None)
    elif kind == "revert":
        tree = dict(draw(st.sampled_from(former)))
    elif path in tree:
        del tree[path]
        folder = draw(st.sampled_from(["topics", "before", "topics/deep", "topics/.hidden"]))
        tree[f"{folder}/{name}.yaml"] = write_declaration(name, folder, shared=draw(st.booleans()), comment="")
    return tree


@st.composite
def draw_repositories(draw: st.DrawFn) -> list[list[Tree]]:
    """Draw the trees of every step of main: one for a commit, or several for a branch, the last one for its merge."""
    tree: Tree = {}
    former: list[Tree] = [tree]
    steps = []
    for _ in range(draw(st.integers(1, 12))):
        branch = []
        for _ in range(draw(st.sampled_from([1, 1, 1, 1, 2, 3]))):
            tree = draw(draw_change(tree, former))
            former.append(tree)
            branch.append(tree)
        steps.append(branch)
    return steps


def compare_trees(old: Tree, new: Tree) -> dict[str, str | None]:
    """Return the changes of a commit from one tree to the other."""
    return {path: new.get(path) for path in {*old, *new} if old.get(path) != new.get(path)}


def create_repository(folder: str, steps: list[list[Tree]], *, squash: bool) -> Scratch:
    """Create a repository with a history."""
    scratch = Scratch(Path(folder) / "r")
    before: Tree = {}
    tip = scratch.commit({"README.md": "x"}, "root")
    for branch in steps:
        side = tip
        old = before
        for tree in branch[:-1] if squash else branch:
            side = scratch.commit(compare_trees(old, tree), "side", branch="side", start=side)
            old = tree
        merge = side if len(branch) > 1 and not squash else None
        tip = scratch.commit(compare_trees(before, branch[-1]), "main", merge=merge)
        before = branch[-1]
    scratch.flush()
    return scratch


@REPOSITORIES
@given(steps=draw_repositories(), squash=st.booleans())
def test_any_history_has_the_versions_that_checking_out_every_commit_gives(
    *, steps: list[list[Tree]], squash: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = create_repository(folder, steps, squash=squash)
        assert list_versions(read(scratch)) == derive_slowly(scratch)


@REPOSITORIES
@given(steps=draw_repositories(), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_what_is_kept_and_followed_up_is_what_is_derived_anew(*, steps: list[list[Tree]], cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = create_repository(folder, steps, squash=False)
        commits = scratch.git("rev-list", "--first-parent", "--reverse", "main").split()
        anew = {}
        for at in {*(min(cut, len(commits) - 1) for cut in cuts), len(commits) - 1}:
            forget(scratch)
            scratch.git("update-ref", "refs/heads/main", commits[at])
            anew[at] = list_all_parts(read(scratch))
        forget(scratch)
        # Forwards, and backwards, where the cache contains more commits than the tip.
        for cut in (*cuts, len(commits)):
            at = min(cut, len(commits) - 1)
            scratch.git("update-ref", "refs/heads/main", commits[at])
            assert list_all_parts(read(scratch)) == anew[at]
            assert list_all_parts(read(scratch)) == anew[at]
