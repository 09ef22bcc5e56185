"""The two states that `diff` and `changelog` compare, as the command line names them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING

from schemactl.cli.states import WORK, States
from schemactl.core.errors import UsageError
from schemactl.core.names import matching

if TYPE_CHECKING:
    from schemactl.comparison.revision_diff import Revision
    from schemactl.core.findings import Waiver
    from schemactl.core.names import NamespaceName
    from schemactl.core.schema import Commit
    from schemactl.history import History, Repository


def is_range(text: str, states: States) -> bool:
    """Return whether `text` names two states, `FROM..TO`, and no topic."""
    return ".." in text and not matching(text.rpartition("@")[0] or text, states.approved.catalog.topics)


def read_revision(
    states: States, text: str | None, topics: Sequence[str] = (), namespaces: Collection[str] = ()
) -> Revision:
    """Return what changed between the states that `text` names; None: what a merge of the files here changes.

    Args:
        states: of the project.
        text: `FROM..TO`, or `FROM...TO`, which starts from their merge base; an omitted end is HEAD.
        topics: globs of the topics to look at; none: all.
        namespaces: to look at; none: all.

    Raises:
        UsageError: there is no such state, or no such topic.
        DeclarationError: the files at hand have problems.
    """
    from schemactl import history
    from schemactl.comparison.revision_diff import NOT_APPROVED, Revision, find_subjects
    from schemactl.core.catalog import only
    from schemactl.core.names import TopicName, select_known

    before, after = _named(text, states)
    older, newer = (states.approved if each is None else states.at(each) for each in (before, after))
    names = {*older.catalog.topics, *newer.catalog.topics}
    chosen = select_known(names, topics, [*namespaces], where="the two states")
    spaces = {name.namespace_name for name in chosen} if topics or namespaces else None
    if (concerned := newer.concerned_since(older)) is not None:
        # What no commit between the two concerns need not be read.
        chosen = frozenset(name for name in chosen if name.schema_id in concerned)
    former = (topic.renamed_from for name in chosen if (topic := newer.catalog.topics.get(name)))
    told = chosen.union(filter(None, former))

    def is_told(name: NamespaceName | TopicName) -> bool:
        return name in told if isinstance(name, TopicName) else spaces is None or name in spaces

    one, other = (only(each.catalog, is_told).load() for each in (older, newer))
    repository = states.context.repository

    @cache
    def waivers(commit: Commit) -> Sequence[Waiver]:
        return () if commit.id == NOT_APPROVED else history.waivers_at(repository, states.project, commit)

    subjects = tuple(find_subjects(one, other, states.project.defaults, waivers, newer.since))
    ids = {each.version.commit.id for subject in subjects for each in subject.versions if each.version.commit}
    ids |= {subject.since.id for subject in subjects if subject.since}
    commits, authors = _between(repository, older, newer)
    return Revision(
        older.ref if before is None else before,
        "the files here" if after == WORK else newer.ref if after is None else after,
        older.tip,
        None if after == WORK else newer.tip,
        subjects,
        commits,
        authors,
        authors_of(repository, ids - {NOT_APPROVED}),
    )


def _named(text: str | None, states: States) -> tuple[str | None, str | None]:
    """Return the names of both states; None: the approved history."""
    if text is None:
        return None, WORK

    dots = "..." if "..." in text else ".."
    before, _, after = text.partition(dots)
    before, after = before or "HEAD", after or "HEAD"
    if dots == "..." and after != WORK:
        repository = states.context.repository
        head, tip = (_commit(repository, each) for each in (before, after))
        found = repository.merge_base(head, tip)
        if found is None:
            raise UsageError(f"{before} and {after} have no commit in common", fix=f"write {before}..{after}")
        before = found.id
    return before, after


def _commit(repository: Repository, name: str) -> Commit:
    from schemactl import history

    found = history.resolve_shared(repository, name)
    if found is None:
        raise UsageError(
            f"there is no ref or commit {name!r} in this repository", fix="`git branch --all` lists them"
        )
    return found[1]


def _between(repository: Repository, older: History, newer: History) -> tuple[int, tuple[str, ...]]:
    """Return the number of commits that only the newer state has, and their authors."""
    from schemactl.comparison.revision_diff import NOT_APPROVED

    end = newer.tip
    if end and end.id == NOT_APPROVED:
        end = repository.commit("HEAD")
    if end is None:
        return 0, ()
    without = [f"^{older.tip.id}"] if older.tip else []
    listed = (
        repository.run("log", "--format=%aN", end.id, *without, "--").decode("utf-8", "replace").splitlines()
    )
    return len(listed), tuple(sorted({*listed}))


def authors_of(repository: Repository, ids: Collection[str]) -> dict[str, str]:
    """Return the author of each of these commits, by its id."""
    if not ids:
        return {}
    given = "".join(f"{each}\n" for each in sorted(ids)).encode()
    listed = repository.run("log", "--no-walk=unsorted", "--format=%H %aN", "--stdin", standard_input=given)
    rows = (line.partition(" ") for line in listed.decode("utf-8", "replace").splitlines())
    return {commit: name for commit, _, name in rows}
