"""The judging files (project file, overlays, numbers files): by which of them a change is judged, and what it does to them.

A change that touches a judging file is judged twice: under the files of the approved tip, and under its own as they will be after
the merge. Nothing here decides whether a setting is weaker or stronger than another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from schemactl.checks.environments import Judge, ProjectFiles
from schemactl.checks.proposal import Proposal, Run, declared, is_rejected
from schemactl.core.catalog import Catalog, Namespace, Topic, chosen_topics
from schemactl.core.errors import DeclarationError, Problem, Source, first_of
from schemactl.core.findings import Finding
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies, strategy_of
from schemactl.core.project import Project, Target
from schemactl.core.rules import rules
from schemactl.core.schema import live
from schemactl.core.wording import counted, shortened
from schemactl.declare.files import Files, read_bytes
from schemactl.declare.numbers_file import judge_files, numbers_path, read_numbers
from schemactl.declare.project import read_project
from schemactl.declare.reader import NO_OVERLAYS, read_overlays
from schemactl.declare.source_location import Tokens
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.declare.yaml_parser import YamlText, read_yaml
from schemactl.history import CommitFiles
from schemactl.history.approved_history import JudgingProject, newest_readable
from schemactl.history.merge import FilesAfterMerge

if TYPE_CHECKING:
    from schemactl.core.schema import Commit
    from schemactl.history import HashedFiles, Repository

_EXEMPT: Final = frozenset({("repository",), ("generate", "package"), ("generate", "out")})
"""Keys of the project file that cannot affect a verdict. Every other key counts, so that a new one does by default."""

_SHOWN: Final = 8
"""The most effects of one file that are listed."""


# The two judges


def with_all_roots(project: Project, proposed: Project, approved: Project) -> Project:
    """Return `project` with the paths of `proposed`, and with the declarations under the roots of both: none goes missing."""
    roots = {*proposed.roots, *approved.roots}
    former = {*proposed.previous_roots, *approved.previous_roots, *approved.roots}
    return replace(
        project,
        folder=proposed.folder,
        path=proposed.path,
        roots=tuple(sorted(root for root in roots if not any(_is_below(root, other) for other in roots - {root}))),
        previous_roots=tuple(sorted(former - {*proposed.roots})),
        approved=approved.approved,
        waivers=proposed.waivers,
    )


def _is_below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def approved_judge(
    repository: Repository, found: JudgingProject, project: Project, proposed: ProjectFiles, approved: Catalog
) -> Judge:
    """Return the judge that was approved: the judging files of the tip, each in its newest readable version.

    Args:
        repository: has the approved files.
        found: the approved project.
        project: the same, with the paths of the files that are checked.
        proposed: the files that are checked. Only what they set for names that the change adds counts.
        approved: the approved history.
    """
    unreadable: list[Finding] = []
    if found.unreadable:
        unreadable.append(_unreadable(found.project.path, found.ref, *found.unreadable))
    overlays = {}
    numbers = []
    for target in found.project.targets.values():
        read = partial(read_overlays, project=found.project, target=target, may_miss=True)
        newest = newest_readable(repository, found.tip, target.overlays, read)
        if newest.problem:
            unreadable.append(_unreadable(newest.problem.source.path, found.ref, newest.problem, newest.commit))
        added = _of_added_names(proposed.overlays.get(target.name, NO_OVERLAYS), approved)
        of_target = newest.content or NO_OVERLAYS
        overlays[target.name] = _of_renamed_topics(
            Catalog({**added.namespaces, **of_target.namespaces}, {**added.topics, **of_target.topics}),
            of_target,
            proposed.declared.catalog,
            approved,
        )
        try:
            path = numbers_path(found.project, target)
        except ValueError:
            # A name that makes no file's name has no numbers file.
            continue
        record = newest_readable(
            repository, found.tip, [path], partial(read_numbers, project=found.project, target=target)
        )
        if record.problem:
            unreadable.append(_unreadable(record.problem.source.path, found.ref, record.problem, record.commit))
        if record.content:
            numbers.append(record.content)
    return Judge(project, overlays, tuple(numbers), tuple(unreadable))


def _unreadable(path: str, ref: str, problem: Problem, commit: Commit) -> Finding:
    return Finding(
        rule="GATE_UNREADABLE",
        severity="warning",
        verdict="declaration",
        topic=None,
        source=Source(path),
        message=f"{path} of {ref} cannot be read: {problem}.\nThe version of commit {commit.short} judges this change instead.",
        fix=rules()["GATE_UNREADABLE"].fix,
    )


def _of_added_names(overlays: Catalog, approved: Catalog) -> Catalog:
    """Return the overlays of names that the change adds: those that the approved history has never had."""
    # The names alone: an approved topic is read when it is looked at.
    known = {*approved.topics}
    spaces = {*approved.namespaces, *(name.namespace_name for name in known)}
    return Catalog(
        {name: overlay for name, overlay in overlays.namespaces.items() if name not in spaces},
        {name: overlay for name, overlay in overlays.topics.items() if name not in known},
    )


def _of_renamed_topics(overlays: Catalog, of_tip: Catalog, proposed: Catalog, approved: Catalog) -> Catalog:
    """Return `overlays` where a renamed topic has the approved overlay of its old name, and no other."""
    known = {*approved.topics}
    topics = dict(overlays.topics)
    for name, topic in proposed.topics.items():
        if topic.renamed_from in known and name not in known:
            topics.pop(name, None)
            if topic.renamed_from and (former := of_tip.topics.get(topic.renamed_from)):
                topics[name] = replace(former, name=name)
    return replace(overlays, topics=topics)


def proposed_judge(
    project: Project, read: ProjectFiles, files: FilesAfterMerge | None = None, approved: Project | None = None
) -> Judge:
    """Return the judge of a change's own judging files, as they will be after the merge.

    Args:
        project: as the files that are checked have it.
        read: the content of the files that are checked.
        files: as the merge leaves them; None: nothing has been approved.
        approved: the approved project, whose roots count, too.

    Raises:
        DeclarationError: what the merge leaves cannot be read.
    """
    if files is None or approved is None:
        return Judge(project, read.overlays, read.numbers.records)
    merged = project
    if files.kind(project.path) == "file":
        merged = read_project(project.path, read_bytes(files, project.path))
    overlays = {target.name: read_overlays(files, merged, target) for target in merged.targets.values()}
    numbers = judge_files(files, merged)
    if numbers.problems:
        raise DeclarationError(numbers.problems)
    return Judge(with_all_roots(merged, project, approved), overlays, numbers.records)


# The changed files


@dataclass(frozen=True, slots=True)
class _JudgingFile:
    """A judging file.

    Attributes:
        path: from the repository's top.
        targets: the targets whose overlays or numbers file it is; (): it is the project file, or a definition.
        kind: what it is.
    """

    path: str
    kind: str
    targets: tuple[str, ...] = ()


def changed_files(
    projects: Sequence[Project], numbers: Iterable[TargetNumbers], before: CommitFiles, here: CommitFiles | HashedFiles
) -> list[_JudgingFile]:
    """Return the judging files of `projects` whose parsed values differ between the merge base and the files that are checked.

    Args:
        projects: the approved, and the proposed one.
        numbers: the records of both, which name definitions.
        before: the files at the merge base.
        here: the files that are checked.
    """
    named: dict[tuple[str, str], dict[str, None]] = {}
    for project in projects:
        named[project.path, "project"] = {}
        for target in project.targets.values():
            for path in target.overlays:
                named.setdefault((path, "overlay"), {})[target.name] = None
            try:
                named.setdefault((numbers_path(project, target), "numbers"), {})[target.name] = None
            except ValueError:
                # A name that makes no file's name has no numbers file.
                continue
    for record in numbers:
        for entry in (entry for topic in record.topics.values() for entry in topic.entries.values()):
            if entry.path:
                named.setdefault((entry.path, "definition"), {})[record.target] = None
    return [
        _JudgingFile(path, kind, tuple(targets))
        for (path, kind), targets in named.items()
        if before.entry(path) != here.entry(path) and _values(before, path) != _values(here, path)
    ]


def _values(files: Files, path: str) -> object:
    """Return what a judging file says, without comments and layout; its bytes where it cannot be parsed; None: there is no file."""
    if files.kind(path) != "file":
        return None if files.kind(path) == "missing" else files.kind(path)
    data = read_bytes(files, path)
    try:
        documents, problems = read_yaml(path, data, number_keys=True)
    except DeclarationError:
        return data
    if problems:
        return data
    values = [document.value for document in documents if document.value is not None]
    return [_without_exempt(value) for value in values] or None


def _without_exempt(value: Any, at: Tokens = ()) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_exempt(below, (*at, key)) for key, below in value.items() if (*at, key) not in _EXEMPT}


# The effects of a merge


def gate_findings(
    changed: Sequence[_JudgingFile],
    approved: Judge | None,
    proposed: Judge,
    before: CommitFiles,
    here: CommitFiles | HashedFiles,
    run: Run,
) -> Iterator[Finding]:
    """Yield a warning for each changed judging file, which describes the effect of the merge.

    Args:
        changed: the files.
        approved: the approved judge; None: nothing has been approved.
        proposed: the change's own.
        before: the files at the merge base.
        here: the files that are checked.
        run: the declarations, and the approved history.
    """
    if approved is None:
        return
    for file in changed:
        was, now = _values(before, file.path), _values(here, file.path)
        effects: list[str] = []
        key: Tokens = ()
        if file.kind == "project":
            differences = [*_differences(_only(was), _only(now))]
            key = next((tokens for tokens, _ in differences), ())
            effects = [sentence for _, sentence in differences]
            effects += _lost_roots(approved.project, proposed.project, here, run)
        elif file.kind == "overlay":
            effects = [*_overlay_effects(file, approved, proposed)]
        elif file.kind == "numbers":
            effects = [*_numbers_effects(file, approved, proposed)]
        if file.kind in ("project", "overlay"):
            effects += _strategy_effects(file, approved, proposed, run)
        verb = "is removed" if now is None else "is added" if was is None else "changes"
        shown = [*effects[:_SHOWN], *([f"{len(effects) - _SHOWN} further effects"] if len(effects) > _SHOWN else [])]
        message = f"{file.path} {verb}, which judges later changes. This change is judged under it, and under the approved files."
        yield Finding(
            rule="GATE_CHANGED",
            severity="warning",
            verdict="declaration",
            topic=None,
            source=_place(here, file, key),
            message="\n".join([message, *(f"After the merge: {effect}." for effect in shown)]),
            fix=rules()["GATE_CHANGED"].fix,
            targets=tuple(name for name in file.targets if name in proposed.project.targets),
        )


def _place(here: Files, file: _JudgingFile, key: Tokens) -> Source:
    if here.kind(file.path) != "file" or file.kind == "definition":
        return Source(file.path)
    return YamlText(file.path, read_bytes(here, file.path)).locate(0, key)


def _only(value: object) -> object:
    """Return the value of a file with one document."""
    return value[0] if isinstance(value, list) and len(value) == 1 else {}


def _differences(was: object, now: object, at: Tokens = ()) -> Iterator[tuple[Tokens, str]]:
    """Yield each key of the project file whose value differs, and what becomes of it."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*now, *was]):
            # Of a mapping that only one of the two has, each key is named.
            absent: object = {} if not at and isinstance(was.get(key, now.get(key)), dict) else None
            yield from _differences(was.get(key, absent), now.get(key, absent), (*at, str(key)))
    elif was != now:
        name = f"the target {at[1]}" if len(at) == 2 and at[0] == "targets" else f"`{'.'.join(at)}`"
        if now is None:
            yield at, f"{name} is no longer set (was {_written(was)})"
        elif was is None:
            yield at, f"{name} is {_written(now)} (was not set)"
        else:
            yield at, f"{name} is {_written(now)} (was {_written(was)})"


def _written(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shortened(text)


def _lost_roots(approved: Project, proposed: Project, here: Files, run: Run) -> Iterator[str]:
    """Yield the roots that the change removes, with the topics that are declared there all the same."""
    # The roots of both judge, so what is left is read from the file itself.
    try:
        roots = read_project(proposed.path, read_bytes(here, proposed.path)).roots
    except DeclarationError:
        return
    for root in (root for root in approved.roots if not any(_is_below(root, other) for other in roots)):
        topics = [
            name
            for name, topic in run.target.topics.items()
            if topic.source
            and _is_below(topic.source.path, root)
            and not any(_is_below(topic.source.path, other) for other in roots)
        ]
        if topics:
            yield f"`{root or '.'}` is no root, so that {_topics(topics)} declared there {'is' if len(topics) == 1 else 'are'} removed"


def _topics(names: Sequence[TopicName]) -> str:
    return f"{counted(len(names), 'topic')} ({first_of(names, 3)})"


def _overlay_effects(file: _JudgingFile, approved: Judge, proposed: Judge) -> Iterator[str]:
    """Yield each policy that an overlay file sets otherwise than before, for its targets."""
    for target in file.targets:
        before, after = (judge.overlays.get(target, NO_OVERLAYS) for judge in (approved, proposed))
        names: list[NamespaceName | TopicName] = [*{**before.namespaces, **after.namespaces}]
        names += dict.fromkeys([*before.topics, *after.topics])
        for name in names:
            was, now = before.get(name), after.get(name)
            if file.path in {entry.source.path for entry in (was, now) if entry and entry.source}:
                settings, others = _settings(was), _settings(now)
                for policy in dict.fromkeys([*settings, *others]):
                    if settings.get(policy) != others.get(policy):
                        value, old = (
                            "not set" if each is None else _written(each)
                            for each in (others.get(policy), settings.get(policy))
                        )
                        yield f"{policy} of {name} on {target} is {value} (was {old})"


def _settings(entry: Namespace | Topic | None) -> dict[str, Any]:
    if entry is None:
        return {}
    partitions = {"partitions": entry.partitions} if isinstance(entry, Topic) and entry.partitions else {}
    return {policy: value for policy, value in entry.policies.managed().items() if value is not None} | partitions


def _numbers_effects(file: _JudgingFile, approved: Judge, proposed: Judge) -> Iterator[str]:
    """Yield the topics whose recorded version numbers differ, for each target of a numbers file."""
    for target in file.targets:
        before, after = (
            next((record.topics for record in judge.numbers if record.target == target), {})
            for judge in (approved, proposed)
        )
        if names := [name for name in {**before, **after} if before.get(name) != after.get(name)]:
            yield f"other version numbers are recorded of {_topics(names)} on {target}"


def _strategy_effects(file: _JudgingFile, approved: Judge, proposed: Judge, run: Run) -> Iterator[str]:
    """Yield how many approved topics get another strategy, and the approved versions that do not satisfy it."""
    names = sorted(name for name in run.approved.topics if declared(run.approved, name))
    targets = file.targets or (*{**approved.project.targets, **proposed.project.targets},) or ("",)
    for target in targets:
        before, after = (_strategies(judge, target, run, names) for judge in (approved, proposed))
        changes = Counter((before[name], after[name]) for name in names if name in before and name in after)
        where = f" on {target}" if target else ""
        for (old, new), count in changes.items():
            if old is new:
                continue
            topics = [name for name in names if (before.get(name), after.get(name)) == (old, new)]
            yield f"{_topics(topics)}{where} {'is' if count == 1 else 'are'} {new}, no longer {old}"
            failing = [name for name in topics if _fails(run, proposed, name, new)]
            if failing:
                yield f"approved versions of {_topics(failing)}{where} do not satisfy {new}"
        for what, some, others in (("has", after, before), ("no longer has", before, after)):
            if target and (gained := [name for name in names if name in some and name not in others]):
                yield f"{target} {what} {_topics(gained)}"


def _strategies(
    judge: Judge, name: str, run: Run, topics: Sequence[TopicName]
) -> dict[TopicName, CompatibilityStrategy]:
    """Return the strategy of each approved topic that a target has; of an unknown target, those of no target."""
    target: Target | None = judge.project.targets.get(name)
    overlays = judge.overlays.get(name, NO_OVERLAYS)
    chosen = chosen_topics(topics, target) if target else topics
    return {topic: _strategy(topic, overlays, judge.project, run) for topic in chosen}


def _strategy(name: TopicName, overlays: Catalog, project: Project, run: Run) -> CompatibilityStrategy:
    def policies(entry: NamespaceName | TopicName) -> Policies:
        below, above = run.approved.get(entry), overlays.get(entry)
        return (below.policies if below else Policies()).overlaid(above.policies if above else Policies())

    found = strategy_of(policies(name), policies(name.namespace_name))
    return found or project.defaults.schema_compatibility_strategy


def _fails(run: Run, judge: Judge, name: TopicName, strategy: CompatibilityStrategy) -> bool:
    """Return whether the newest approved version of a topic would be rejected under another strategy."""
    topic = run.approved.topics[name]
    versions = live(topic.versions)
    if len(versions) < 2 or versions[-1].info is None:
        return False
    proposal = Proposal.of(topic, versions[-1].info, versions[:-1], strategy, "topic")
    return is_rejected(proposal.verdict(judge.project))


def drafts_again(run: Run) -> Iterator[Finding]:
    """Yield the warning that a stable topic becomes a draft: it is judged as a stable one in this change."""
    rule = rules()["DRAFT_AGAIN"]
    for name in sorted(run.target.topics):
        topic = run.target.topics[name]
        if topic.lifecycle == "draft" and not topic.deleted and not run.is_draft(topic):
            yield Finding(
                rule=rule.id,
                severity="warning",
                verdict=rule.verdict,
                topic=name,
                source=topic.locate("/lifecycle"),
                message=f"{name} becomes a draft, and was stable. This change is judged as one of a stable topic; later ones are not.",
                fix=rule.fix,
            )
