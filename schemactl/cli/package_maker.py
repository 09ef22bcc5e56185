"""Make the generated package of a project from the history and the files, with the manifest of the last run."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.reading_setup import view_versions
from schemactl.cli.states import merge_working_tree
from schemactl.cli.target_selection import format_target_option
from schemactl.core.errors import InvalidSchema
from schemactl.core.names import TopicName, select_known_topics

if TYPE_CHECKING:
    from schemactl.checks.project_files import CheckCache
    from schemactl.codegen.manifest import Manifest
    from schemactl.codegen.package import PackageFiles, TopicFiles
    from schemactl.codegen.package_folder import MergePredicate
    from schemactl.codegen.topic_module import VersionCode
    from schemactl.codegen.topics import PackageTopic
    from schemactl.core.catalog import Topic
    from schemactl.core.project import Generate, Project
    from schemactl.declare.target_numbers import TargetNumbers, TargetVersion
    from schemactl.history.approved_history import History
    from schemactl.history.merge import Merged
    from schemactl.history.store import Store


_MANIFEST: Final = "package"
"""The kind of the manifest's file in the cache."""


@dataclass(frozen=True, slots=True)
class GeneratedPackage:
    """A generated package.

    Attributes:
        merged: the merge of the working tree into the approved history, or None for the package of the approved history alone.
        history: the history with the versions of the package.
        records: the recorded version numbers of all targets by name, None for a target without a record.
        target: the target whose numbers count where none is chosen, or None for Git's.
        topics: its topics, without those whose files are unchanged on disk.
        numbers: for each topic with recorded numbers of targets, a digest of them.
        files: the text of each file, by path below the folder of the package.
    """

    merged: Merged | None
    history: History
    records: Mapping[str, TargetNumbers | None]
    target: str | None
    topics: list[PackageTopic]
    numbers: Mapping[TopicName, str]
    files: PackageFiles

    @property
    def approved(self) -> History:
        """The approved history, without the merge."""
        return self.merged.approved_history if self.merged else self.history


@dataclass(frozen=True, slots=True)
class PackageMaker:
    """Makes the package for different states of the topics, with the arguments of one run."""

    args: argparse.Namespace
    context: Context
    project: Project
    top: str
    generate: Generate
    check_cache: CheckCache

    @property
    def out(self) -> Path:
        """The folder of the package."""
        args = self.args
        return Path(self.top, self.generate.out) if args.out is None else Path(self.context.directory, args.out)

    def merge(self, *, by_commit: bool) -> Merged | None:
        """Merge the working tree, or with --staged the index, into the approved history (see `merge_working_tree`)."""
        return merge_working_tree(
            self.context,
            self.project,
            self.top,
            by_commit=by_commit,
            staged=self.args.staged,
            check_cache=self.check_cache,
        )

    @property
    def store(self) -> Store:
        """The cache with the manifest of the package; its facts are all inputs of a topic's files besides Git's objects and numbers."""
        from schemactl.history.store import Store
        from schemactl.history.versions import encode_inputs

        project, depth = self.project, self.args.recursion_depth
        settings = (self.generate, project.release, project.rendering, depth, encode_inputs(project))
        directory = self.context.repository.common_directory
        return Store(directory, project.path, os.path.realpath(self.out), *map(repr, settings))

    def read_manifest(self) -> Manifest | None:
        """Return the manifest that the last run saved, or None."""
        from schemactl.codegen.manifest import Manifest

        content = self.store.read(_MANIFEST)
        return None if content is None else Manifest.decode(content)

    def save_manifest(self, manifest: Manifest) -> None:
        """Save the manifest for the next run."""
        self.store.write(_MANIFEST, manifest.encode())

    def make_manifest(self, package: GeneratedPackage, earlier: Manifest | None) -> Manifest | None:
        """Return the manifest of a written package, with the approved topics; None if nothing was approved yet.

        `earlier` is the manifest of the files before.
        """
        from schemactl.codegen.manifest import make_manifest

        tip = package.approved.tip
        if tip is None:
            return None
        changed = package.history.find_changed_topics(tip.id, with_namespaces=True)
        if changed is None:
            return None
        approved_topics = package.approved.catalog.topics
        pending = {
            name: {version.number for version in approved_topics[name].versions} if name in approved_topics else set()
            for name in package.files.topics
            if name.schema_id in changed
        }
        new_topics = {approved.topic.name for approved in package.topics}
        unchanged = {
            name: topic
            for name, topic in (earlier.topics if earlier else {}).items()
            if name in package.files.topics and name not in new_topics
        }
        return make_manifest(tip.id, package.files, unchanged, pending, package.numbers, self.out)

    def make_package(self, merged: Merged | None, manifest: Manifest | None = None) -> GeneratedPackage:
        """Return the package of the merged history, or of the approved history without a merge.

        Topics whose files on disk are as in the manifest, and that no later commit or file concerns, are not made again.
        """
        from schemactl.codegen.package import package_files
        from schemactl.declare.numbers_file import read_numbers
        from schemactl.declare.project import choose_target
        from schemactl.history.approved_history import read_history
        from schemactl.history.commit_files import CommitFiles

        args, project = self.args, self.project
        target = args.target or self.generate.target
        if target is not None:
            choose_target(project, target, format_target_option(target))
        # The files and targets after the merge count, so that the merge does not change the package.
        if merged:
            approved, files = merged.history, merged.files
        else:
            repository = self.context.repository
            approved = read_history(repository, project, progress=self.context.reading_history())
            files = CommitFiles(repository, approved.tip)
        records = {name: read_numbers(files, project, place) for name, place in project.targets.items()}
        numbers = _digest_numbers(records)
        unchanged: Mapping[TopicName, TopicFiles] = {}
        known_versions: Mapping[TopicName, Mapping[int, VersionCode]] = {}
        changed = approved.find_changed_topics(manifest.tip, with_namespaces=True) if manifest else None
        if manifest is None or changed is None:
            names = _select_names(args, approved, ())
        else:
            changed |= approved.undecided.keys()
            candidates = [
                name for name, topic in manifest.topics.items() if topic.is_complete and name.schema_id not in changed
            ]
            names = _select_names(args, approved, frozenset(candidates))
            unchanged, known_versions = manifest.select_unchanged(
                names, numbers, changed, self.out, self.generate.package
            )
        topics = _select_topics([name for name in names if name not in unchanged], approved, records)
        package = package_files(
            topics,
            self.generate,
            release=project.release,
            targets=records,
            target=target,
            recursion_depth=args.recursion_depth,
            unchanged=unchanged,
            known_versions=known_versions,
            read_ahead=approved.read_ahead,
        )
        return GeneratedPackage(merged, approved, records, target, topics, numbers, package)

    def make_merge_predicate(self, merged: Merged | None) -> MergePredicate:
        """Return a function that tells whether the merge adds a file with this text, or removes it (None)."""
        top = Path(self.top)

        def is_from_merge(path: Path, text: str | None) -> bool:
            if merged is None or not path.is_relative_to(top):
                return False
            data = None if text is None else text.encode()
            return merged.brought.has(path.relative_to(top).as_posix(), data)

        return is_from_merge


def _digest_numbers(records: Mapping[str, TargetNumbers | None]) -> dict[TopicName, str]:
    """Return a digest of the recorded numbers of all targets for each topic that has some."""
    texts: dict[TopicName, list[str]] = {}
    for target, record in sorted(records.items()):
        for name, topic in record.topics.items() if record else ():
            for number, entry in sorted(topic.entries.items()):
                text = repr((target, number, replace(entry, source=None, foreign=None)))
                for info in filter(None, [entry.foreign, entry.foreign and entry.foreign.proto]):
                    text += repr((info.type, info.schema, sorted(info.properties.items())))
                texts.setdefault(name, []).append(text)
    return {name: hashlib.sha256("\n".join(lines).encode()).hexdigest() for name, lines in texts.items()}


def _select_names(args: argparse.Namespace, history: History, declared: Collection[TopicName]) -> list[TopicName]:
    """Return the names of the declared topics that --topic and --namespace select.

    A topic that no longer declares a schema is left out: its old messages have versions. The topics in `declared` are known to be
    declared, so they are not read.
    """
    topics = history.catalog.topics
    names = [name for name in topics if name in declared or _is_in_package(history, topics[name])]
    selected = select_known_topics(names, args.topic, args.namespace, where="the declared files")
    return [name for name in names if name in selected]


def _is_in_package(history: History, topic: Topic) -> bool:
    name = topic.name
    return not topic.deleted and (
        _is_without_schema(topic)
        or name.schema_id in history.undecided
        or history.find_current_number(name) is not None
    )


def _select_topics(
    names: Sequence[TopicName], history: History, records: Mapping[str, TargetNumbers | None]
) -> list[PackageTopic]:
    """Return topics with the recorded numbers of all targets; their definitions are read on use."""
    from schemactl.codegen.topics import NO_VERSION, PackageTopic, list_kinds
    from schemactl.declare.target_numbers import target_versions

    topics = []
    for name in names:
        if _is_without_schema(history.catalog.topics[name]):
            topics.append(PackageTopic(history.catalog.topics[name], NO_VERSION))
        elif (current := history.find_current_number(name)) is not None:
            topic = history.catalog.topics[name]
            approved = PackageTopic(topic, current)
            versions_by_target = {
                target: target_versions(topic, record)
                for target, record in records.items()
                if record and name in record.topics and record.topics[name].entries
            }
            kinds = list_kinds(topic) if topic.kinds else ()
            topics.append(
                replace(
                    _add_targets(approved, topic, versions_by_target),
                    kinds=tuple(_add_targets(kind, topic, versions_by_target) for kind in kinds),
                )
            )
    return topics


def _add_targets(
    approved: PackageTopic, topic: Topic, versions_by_target: Mapping[str, tuple[TargetVersion, ...]]
) -> PackageTopic:
    """Return the topic, or the part of `topic` for one kind, with the version numbers of targets."""
    try:
        reader_number: int | None = approved.reader[0]
    except InvalidSchema:
        # The declaration pins a missing version; `package_files` reports all such topics together.
        reader_number = None
    return replace(
        approved,
        on_targets=tuple(
            view_versions(target, versions, reader_number, topic) for target, versions in versions_by_target.items()
        ),
    )


def _is_without_schema(topic: Topic) -> bool:
    """Return whether a topic never declared a schema, so that its messages are plain bytes."""
    return topic.schema is None and not topic.versions
