"""Find the judging files that a change edits, and describe the effects of its merge on later checks.

Nothing here decides whether a setting is weaker or stronger than another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from schemactl.checks.judging_files import JudgingFiles, is_below
from schemactl.checks.proposal import Comparison, Proposal, get_declared_topic, is_rejected
from schemactl.core.catalog import Namespace, Topic, select_target_topics
from schemactl.core.errors import DeclarationError, Source, join_first
from schemactl.core.findings import Finding
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies, find_strategy
from schemactl.core.project import Project, Target
from schemactl.core.rules import get_builtin_rules
from schemactl.core.schema import get_live_versions
from schemactl.core.wording import format_count, shorten
from schemactl.declare.files import Files, read_bytes
from schemactl.declare.numbers_file import numbers_path
from schemactl.declare.project import read_project
from schemactl.declare.reader import NO_OVERLAYS
from schemactl.declare.source_location import Tokens
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.declare.yaml_parser import YamlText, read_yaml
from schemactl.history.commit_files import CommitFiles, HashedFiles

_Kind = Literal["project", "overlay", "numbers", "definition"]

_EXEMPT_KEYS: Final = frozenset({("repository",), ("generate", "package"), ("generate", "out")})
"""Keys of the project file that cannot affect a verdict. All other keys count, so that a new key judges by default."""

_MAX_EFFECTS: Final = 8
"""Maximum number of listed effects of one file."""


# The changed files


@dataclass(frozen=True, slots=True)
class _JudgingFile:
    """A changed judging file.

    Attributes:
        path: the path from the repository's top.
        kind: `project`, `overlay`, `numbers`, or `definition` (of a version in a numbers file).
        targets: the targets that use the file; empty for the project file.
        old_values: the parsed values at the merge base (see `_read_values`).
        new_values: the parsed values of the checked file.
    """

    path: str
    kind: _Kind
    targets: tuple[str, ...]
    old_values: object
    new_values: object


def find_changed_files(
    projects: Sequence[Project],
    numbers: Iterable[TargetNumbers],
    old_files: CommitFiles,
    new_files: CommitFiles | HashedFiles,
) -> list[_JudgingFile]:
    """Return the judging files of `projects` whose parsed values differ from the merge base.

    Args:
        projects: the approved and the proposed project.
        numbers: the numbers records of both, which name definitions.
        old_files: the files at the merge base.
        new_files: the checked files.
    """
    # The inner dictionary is an ordered set of target names.
    targets_by_file: dict[tuple[str, _Kind], dict[str, None]] = {}
    for project in projects:
        targets_by_file[project.path, "project"] = {}
        for target in project.targets.values():
            for path in target.overlays:
                targets_by_file.setdefault((path, "overlay"), {})[target.name] = None
            try:
                targets_by_file.setdefault((numbers_path(project, target), "numbers"), {})[target.name] = None
            except ValueError:
                # The target's name is not a valid file name, so it has no numbers file.
                continue
    for record in numbers:
        for entry in (entry for topic in record.topics.values() for entry in topic.entries.values()):
            if entry.path:
                targets_by_file.setdefault((entry.path, "definition"), {})[record.target] = None
    changed_files = []
    for (path, kind), targets in targets_by_file.items():
        if old_files.entry(path) != new_files.entry(path):
            old_values, new_values = _read_values(old_files, path), _read_values(new_files, path)
            if old_values != new_values:
                changed_files.append(_JudgingFile(path, kind, tuple(targets), old_values, new_values))
    return changed_files


def _read_values(files: Files, path: str) -> object:
    """Return the parsed values of a judging file, its bytes if it cannot be parsed, or None if it does not exist."""
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
    return [_remove_exempt_keys(value) for value in values] or None


def _remove_exempt_keys(value: Any, key_path: Tokens = ()) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _remove_exempt_keys(child, (*key_path, key))
        for key, child in value.items()
        if (*key_path, key) not in _EXEMPT_KEYS
    }


# The effects of a merge


def check_gate(
    changed: Sequence[_JudgingFile],
    approved: JudgingFiles,
    proposed: JudgingFiles,
    new_files: CommitFiles | HashedFiles,
    comparison: Comparison,
) -> Iterator[Finding]:
    """Yield a warning for each changed judging file that describes the effects of the merge.

    Args:
        changed: the changed judging files.
        approved: the approved judging files.
        proposed: the change's own judging files.
        new_files: the checked files.
        comparison: the declarations and the approved history.
    """
    for file in changed:
        effects: list[str] = []
        key: Tokens = ()
        if file.kind == "project":
            differences = [
                *_compare_values(_get_single_document(file.old_values), _get_single_document(file.new_values))
            ]
            key = next((tokens for tokens, _ in differences), ())
            effects = [sentence for _, sentence in differences]
            effects += _describe_removed_roots(approved.project, proposed.project, new_files, comparison)
        elif file.kind == "overlay":
            effects = [*_describe_overlay_effects(file, approved, proposed)]
        elif file.kind == "numbers":
            effects = [*_describe_numbers_effects(file, approved, proposed)]
        if file.kind in ("project", "overlay"):
            effects += _describe_strategy_effects(file, approved, proposed, comparison)
        verb = "is removed" if file.new_values is None else "is added" if file.old_values is None else "changes"
        listed_effects = [
            *effects[:_MAX_EFFECTS],
            *([f"{len(effects) - _MAX_EFFECTS} further effects"] if len(effects) > _MAX_EFFECTS else []),
        ]
        source = Source(file.path)
        if new_files.kind(file.path) == "file" and file.kind != "definition":
            source = YamlText(file.path, read_bytes(new_files, file.path)).locate(0, key)
        message = f"{file.path} {verb}, and later changes are checked with it. This change is checked with it, and with the approved files."
        yield Finding(
            rule="GATE_CHANGED",
            severity="warning",
            verdict="declaration",
            topic=None,
            source=source,
            message="\n".join([message, *(f"After the merge: {effect}." for effect in listed_effects)]),
            fix=get_builtin_rules()["GATE_CHANGED"].fix,
            targets=tuple(name for name in file.targets if name in proposed.project.targets),
        )


def _get_single_document(value: object) -> object:
    """Return the value of a file with one document, or an empty mapping for any other file."""
    return value[0] if isinstance(value, list) and len(value) == 1 else {}


def _compare_values(old: object, new: object, key_path: Tokens = ()) -> Iterator[tuple[Tokens, str]]:
    """Yield the path of each key of the project file whose value differs, with a description of the difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*new, *old]):
            # A mapping that only one side has counts as empty on the other, so that each of its keys is named.
            absent: object = {} if not key_path and isinstance(old.get(key, new.get(key)), dict) else None
            yield from _compare_values(old.get(key, absent), new.get(key, absent), (*key_path, str(key)))
    elif old != new:
        name = (
            f"the target {key_path[1]}"
            if len(key_path) == 2 and key_path[0] == "targets"
            else f"`{'.'.join(key_path)}`"
        )
        if new is None:
            yield key_path, f"{name} is no longer set (was {_format_value(old)})"
        elif old is None:
            yield key_path, f"{name} is {_format_value(new)} (was not set)"
        else:
            yield key_path, f"{name} is {_format_value(new)} (was {_format_value(old)})"


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shorten(text)


def _describe_removed_roots(
    approved_project: Project, proposed_project: Project, new_files: Files, comparison: Comparison
) -> Iterator[str]:
    """Yield the roots that the change removes although topics are declared below them."""
    # The proposed project has the roots of both sides, so the remaining roots are read from the file itself.
    try:
        roots = read_project(proposed_project.path, read_bytes(new_files, proposed_project.path)).roots
    except DeclarationError:
        return
    for root in (root for root in approved_project.roots if not any(is_below(root, other) for other in roots)):
        topics = [
            name
            for name, topic in comparison.declared.topics.items()
            if topic.source
            and is_below(topic.source.path, root)
            and not any(is_below(topic.source.path, other) for other in roots)
        ]
        if topics:
            yield (
                f"`{root or '.'}` is not a root, so that {_name_topics(topics)} declared there "
                f"{'is' if len(topics) == 1 else 'are'} removed"
            )


def _name_topics(names: Sequence[TopicName]) -> str:
    return f"{format_count(len(names), 'topic')} ({join_first(names, 3)})"


def _describe_overlay_effects(file: _JudgingFile, approved: JudgingFiles, proposed: JudgingFiles) -> Iterator[str]:
    """Yield each policy that an overlay file changes, for each of its targets."""
    for target in file.targets:
        old_overlays, new_overlays = (
            judging_files.overlays.get(target, NO_OVERLAYS) for judging_files in (approved, proposed)
        )
        names: list[NamespaceName | TopicName] = [*{**old_overlays.namespaces, **new_overlays.namespaces}]
        names += dict.fromkeys([*old_overlays.topics, *new_overlays.topics])
        for name in names:
            old_entry, new_entry = old_overlays.get(name), new_overlays.get(name)
            if file.path in {entry.source.path for entry in (old_entry, new_entry) if entry and entry.source}:
                old_settings, new_settings = _get_settings(old_entry), _get_settings(new_entry)
                for policy in dict.fromkeys([*old_settings, *new_settings]):
                    if old_settings.get(policy) != new_settings.get(policy):
                        new_text, old_text = (
                            "not set" if value is None else _format_value(value)
                            for value in (new_settings.get(policy), old_settings.get(policy))
                        )
                        yield f"{policy} of {name} on {target} is {new_text} (was {old_text})"


def _get_settings(entry: Namespace | Topic | None) -> dict[str, Any]:
    if entry is None:
        return {}
    partitions = {"partitions": entry.partitions} if isinstance(entry, Topic) and entry.partitions else {}
    return {policy: value for policy, value in entry.policies.managed().items() if value is not None} | partitions


def _describe_numbers_effects(file: _JudgingFile, approved: JudgingFiles, proposed: JudgingFiles) -> Iterator[str]:
    """Yield the topics whose recorded version numbers differ, for each target of a numbers file."""
    for target in file.targets:
        old_topics, new_topics = (
            next((record.topics for record in judging_files.numbers if record.target == target), {})
            for judging_files in (approved, proposed)
        )
        if names := [name for name in {**old_topics, **new_topics} if old_topics.get(name) != new_topics.get(name)]:
            yield f"other version numbers are recorded of {_name_topics(names)} on {target}"


def _describe_strategy_effects(
    file: _JudgingFile, approved: JudgingFiles, proposed: JudgingFiles, comparison: Comparison
) -> Iterator[str]:
    """Yield the approved topics that get another strategy, enter or leave a target, or do not satisfy the new strategy."""
    names = sorted(name for name in comparison.approved.topics if get_declared_topic(comparison.approved, name))
    targets = file.targets or (*{**approved.project.targets, **proposed.project.targets},) or ("",)
    for target in targets:
        old_strategies, new_strategies = (
            _get_strategies(judging_files, target, comparison, names) for judging_files in (approved, proposed)
        )
        changes = Counter(
            (old_strategies[name], new_strategies[name])
            for name in names
            if name in old_strategies and name in new_strategies
        )
        where = f" on {target}" if target else ""
        for (old_strategy, new_strategy), count in changes.items():
            if old_strategy is new_strategy:
                continue
            topics = [
                name
                for name in names
                if (old_strategies.get(name), new_strategies.get(name)) == (old_strategy, new_strategy)
            ]
            yield f"{_name_topics(topics)}{where} {'is' if count == 1 else 'are'} {new_strategy}, no longer {old_strategy}"
            failing = [name for name in topics if _is_latest_rejected(comparison, proposed, name, new_strategy)]
            if failing:
                yield f"approved versions of {_name_topics(failing)}{where} do not satisfy {new_strategy}"
        for verb, having, lacking in (
            ("has", new_strategies, old_strategies),
            ("no longer has", old_strategies, new_strategies),
        ):
            if target and (gained := [name for name in names if name in having and name not in lacking]):
                yield f"{target} {verb} {_name_topics(gained)}"


def _get_strategies(
    judging_files: JudgingFiles, target_name: str, comparison: Comparison, topics: Sequence[TopicName]
) -> dict[TopicName, CompatibilityStrategy]:
    """Return the strategy of each approved topic on a target; for an unknown target, the strategies without overlays."""
    target: Target | None = judging_files.project.targets.get(target_name)
    overlays = judging_files.overlays.get(target_name, NO_OVERLAYS)

    def get_policies(name: NamespaceName | TopicName) -> Policies:
        approved, overlay = comparison.approved.get(name), overlays.get(name)
        policies = approved.policies if approved else Policies()
        return policies.override_with(overlay.policies if overlay else Policies())

    default = judging_files.project.defaults.schema_compatibility_strategy
    return {
        name: find_strategy(get_policies(name), get_policies(name.namespace_name)) or default
        for name in (select_target_topics(topics, target) if target else topics)
    }


def _is_latest_rejected(
    comparison: Comparison, judging_files: JudgingFiles, name: TopicName, strategy: CompatibilityStrategy
) -> bool:
    """Return whether `strategy` would have rejected the latest approved version of a topic."""
    topic = comparison.approved.topics[name]
    versions = get_live_versions(topic.versions)
    if len(versions) < 2 or versions[-1].info is None:
        return False
    proposal = Proposal.create(topic, versions[-1].info, versions[:-1], strategy, "topic")
    return is_rejected(proposal.judge(judging_files.project))


def check_drafts(comparison: Comparison) -> Iterator[Finding]:
    """Yield a warning for each stable topic that becomes a draft: this change is still judged as one to a stable topic."""
    rule = get_builtin_rules()["DRAFT_AGAIN"]
    for name in sorted(comparison.declared.topics):
        topic = comparison.declared.topics[name]
        if topic.lifecycle == "draft" and not topic.deleted and not comparison.is_draft(topic):
            yield Finding(
                rule=rule.id,
                severity="warning",
                verdict=rule.verdict,
                topic=name,
                source=topic.locate("/lifecycle"),
                message=f"{name} becomes a draft, but was stable. This change is still checked as a change of a stable "
                "topic; later changes are not.",
                fix=rule.fix,
            )
