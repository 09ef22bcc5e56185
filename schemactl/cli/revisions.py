"""Read the revision between two states of the declarations: `FROM..TO`, or the approved history and the files here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING

from schemactl.cli.states import WORK, States
from schemactl.core.catalog import filter_catalog
from schemactl.core.errors import UsageError
from schemactl.core.names import NamespaceName, TopicName, find_matching_topics, select_known_topics

if TYPE_CHECKING:
    from schemactl.comparison.revision_diff import Revision
    from schemactl.core.findings import Waiver
    from schemactl.core.schema import Commit
    from schemactl.history.git import Repository


def is_range(text: str, states: States) -> bool:
    """Return whether `text` names two states, `FROM..TO`, and not a topic."""
    return ".." in text and not find_matching_topics(text.rpartition("@")[0] or text, states.approved.catalog.topics)


def read_revision(states: States, text: str | None, topics: Sequence[str], namespaces: Collection[str]) -> Revision:
    """Return the changes between two states of the declarations.

    Args:
        states: the states of the project.
        text: `FROM..TO`, or `FROM...TO`, which starts from their merge base; an omitted end is HEAD. Without a text, the
            states are the approved history and a merge of the working tree into it.
        topics: globs of the topics to compare, by default all.
        namespaces: the namespaces to compare, by default all.

    Raises:
        UsageError: if there is no such state or topic.
        DeclarationError: if the working tree has problems.
    """
    from schemactl.comparison.revision_diff import NOT_APPROVED, Revision, find_subjects
    from schemactl.history.approved_history import read_waivers_of_commit
    from schemactl.history.git import list_authors, read_authors

    old_name, new_name = _parse_range(text, states)
    older, newer = (states.approved if name is None else states.read_history(name) for name in (old_name, new_name))
    all_names = {*older.catalog.topics, *newer.catalog.topics}
    selected = select_known_topics(all_names, topics, [*namespaces], where="the two states")
    selected_namespaces = {name.namespace_name for name in selected} if topics or namespaces else None
    if (changed_ids := newer.find_changed_topics(older.tip.id if older.tip else None)) is not None:
        # Topics that no commit between the two states changes need not be read.
        selected = frozenset(name for name in selected if name.schema_id in changed_ids)
    former_names = (topic.renamed_from for name in selected if (topic := newer.catalog.topics.get(name)))
    compared_topics = selected.union(filter(None, former_names))

    def is_compared(name: NamespaceName | TopicName) -> bool:
        if isinstance(name, TopicName):
            return name in compared_topics
        return selected_namespaces is None or name in selected_namespaces

    old_catalog, new_catalog = (filter_catalog(state.catalog, is_compared) for state in (older, newer))
    repository = states.context.repository

    @cache
    def read_waivers(commit: Commit) -> Sequence[Waiver]:
        return () if commit.id == NOT_APPROVED else read_waivers_of_commit(repository, states.project, commit)

    subjects = tuple(
        find_subjects(old_catalog, new_catalog, states.project.defaults, read_waivers, newer.find_commit_of_state)
    )
    commit_ids = {
        change.version.commit.id for subject in subjects for change in subject.versions if change.version.commit
    }
    commit_ids |= {subject.since.id for subject in subjects if subject.since}
    end = newer.tip
    if end and end.id == NOT_APPROVED:
        end = repository.commit("HEAD")
    authors = list_authors(repository, older.tip, end) if end else []
    new_label = newer.ref if new_name is None else new_name
    return Revision(
        older.ref if old_name is None else old_name,
        "the files here" if new_name == WORK else new_label,
        older.tip,
        None if new_name == WORK else newer.tip,
        subjects,
        len(authors),
        tuple(sorted({*authors})),
        read_authors(repository, commit_ids - {NOT_APPROVED}),
    )


def _parse_range(text: str | None, states: States) -> tuple[str | None, str | None]:
    """Return the names of both states; None is the approved history."""
    if text is None:
        return None, WORK
    dots = "..." if "..." in text else ".."
    old_name, _, new_name = text.partition(dots)
    old_name, new_name = old_name or "HEAD", new_name or "HEAD"
    if dots == "..." and new_name != WORK:
        repository = states.context.repository
        merge_base = repository.merge_base(_find_commit(repository, old_name), _find_commit(repository, new_name))
        if merge_base is None:
            raise UsageError(f"{old_name} and {new_name} have no commit in common", fix=f"write {old_name}..{new_name}")
        old_name = merge_base.id
    return old_name, new_name


def _find_commit(repository: Repository, name: str) -> Commit:
    from schemactl.history.approved_history import resolve_shared

    resolved = resolve_shared(repository, name)
    if resolved is None:
        raise UsageError(f"this repository has no ref or commit {name!r}", fix="`git branch --all` lists them")
    _, commit = resolved
    return commit
