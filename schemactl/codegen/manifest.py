"""Record the files of a package on disk by topic, so that a later run generates only changed topics.

The record is in the user's cache, not in the package, so it never conflicts in a merge. It names the approved commit from which the
files were generated; the history lists the topics that later commits change. A file counts as unchanged while its inode, size and
times equal the recorded ones, as in Git's index.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.codegen.module_paths import module_paths
from schemactl.codegen.package import PackageFiles, TopicFiles, list_schema_files
from schemactl.codegen.package_folder import walk_files
from schemactl.codegen.topic_module import VersionCode
from schemactl.core.names import TopicName

CLOCK_TICK_S: Final = 0.02
"""More than the resolution of the times of files, within which a second write may leave the same times."""

Stamp = tuple[int, int, int, int]
"""The inode, size in bytes, and times of modification and change in ns of a file."""


class RecordedTopic(NamedTuple):
    """The record of a topic of a package.

    Attributes:
        module: the importable name of its module.
        numbers: a description of its version numbers on targets, or "" if no target has its own.
        is_complete: whether the record has all files of the topic, not only the schema files of its approved versions.
        stamps: the stamps of its files by path.
        versions: the code of its approved versions by number, as JSON, which is decoded only if the topic changes.
    """

    module: str
    numbers: str
    is_complete: bool
    stamps: Mapping[str, Stamp]
    versions: str

    def decode_versions(self) -> dict[int, VersionCode]:
        """Return the code of its approved versions by number."""
        return {
            int(number): VersionCode(kind, call, properties, tuple(files))
            for number, (kind, call, properties, files) in json.loads(self.versions).items()
        }


class Manifest(NamedTuple):
    """The topics of a package on disk.

    Attributes:
        tip: the id of the approved commit from which their files were generated.
        topics: the recorded topics by name.
    """

    tip: str
    topics: Mapping[TopicName, RecordedTopic]

    @classmethod
    def decode(cls, content: bytes | memoryview) -> Manifest:
        """Decode the result of `encode`."""
        tip, topics = json.loads(bytes(content))
        return cls(
            tip,
            {
                TopicName.parse(name): RecordedTopic(
                    module, numbers, is_complete, {file: tuple(stamp) for file, stamp in stamps.items()}, versions
                )
                for name, (module, numbers, is_complete, stamps, versions) in topics.items()
            },
        )

    def encode(self) -> bytes:
        """Encode the manifest as JSON."""
        return json.dumps([self.tip, {str(name): topic for name, topic in self.topics.items()}]).encode()

    def select_unchanged(
        self,
        names: Collection[TopicName],
        numbers: Mapping[TopicName, str],
        changed: Collection[str],
        out: Path,
        package: str,
    ) -> tuple[dict[TopicName, TopicFiles], dict[TopicName, dict[int, VersionCode]]]:
        """Return the topics whose files are on disk as they were generated, and such versions of the other topics.

        Args:
            names: all topics of the package, which decide on the modules.
            numbers: a description of the numbers of targets for each topic that has some.
            changed: tenant/namespace/topic of the topics that may have changed since.
            out: the folder of the package.
            package: the importable name of the package.
        """
        stamps = {
            file: _make_stamp(entry.stat(follow_symlinks=False))
            for file, entry in walk_files(out, package.partition(".")[0])
            if entry.is_file(follow_symlinks=False)
        }
        topics: dict[TopicName, TopicFiles] = {}
        versions_by_topic: dict[TopicName, dict[int, VersionCode]] = {}
        for name, path in module_paths(sorted(names)).items():
            topic = self.topics.get(name)
            if topic is None or topic.module != ".".join((package, *path)):
                continue
            if (
                topic.is_complete
                and name.schema_id not in changed
                and topic.numbers == numbers.get(name, "")
                and all(stamps.get(file) == stamp for file, stamp in topic.stamps.items())
            ):
                topics[name] = TopicFiles(topic.module, tuple(topic.stamps), {})
                continue
            versions = {
                number: version
                for number, version in topic.decode_versions().items()
                if all(stamps.get(file) == topic.stamps[file] for file in list_schema_files(topic.module, version))
            }
            if versions:
                versions_by_topic[name] = versions
        return topics, versions_by_topic


def make_manifest(
    tip: str,
    files: PackageFiles,
    unchanged: Mapping[TopicName, RecordedTopic],
    pending: Mapping[TopicName, Collection[int]],
    numbers: Mapping[TopicName, str],
    out: Path,
) -> Manifest:
    """Return the manifest of a package that was written.

    Args:
        tip: the id of the approved commit.
        files: the files of the package.
        unchanged: the records of topics whose files were not made again.
        pending: the topics whose files depend on more than approved commits, with the numbers of their approved versions.
        numbers: a description of the numbers of targets for each topic that has some.
        out: the folder of the package.
    """
    # A later write must not leave the times that are read here.
    time.sleep(CLOCK_TICK_S)
    topics = dict(unchanged)
    for name, topic in files.topics.items():
        if name in unchanged:
            continue
        names, versions = topic.names, topic.versions
        if name in pending:
            versions = {number: version for number, version in versions.items() if number in pending[name]}
            names = tuple(file for version in versions.values() for file in list_schema_files(topic.module, version))
        stamps = {file: stamp for file in names if (stamp := read_stamp(out / file))}
        if len(stamps) == len({*names}):
            versions_text = json.dumps(
                {
                    number: (*version[:2], dict(version.properties), version.files)
                    for number, version in versions.items()
                }
            )
            topics[name] = RecordedTopic(
                topic.module, numbers.get(name, ""), name not in pending, stamps, versions_text
            )
    return Manifest(tip, topics)


def read_stamp(path: Path) -> Stamp | None:
    """Return the stamp of a file, or None if it does not exist or is a link."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return _make_stamp(status) if stat.S_ISREG(status.st_mode) else None


def _make_stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
