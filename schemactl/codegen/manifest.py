"""Record the files of a package on disk by topic, so that a later run generates only changed topics.

The record is in the user's cache, not in the package, so it never conflicts in a merge. It names the approved commit from which the
files were generated; the history lists the topics that later commits change. A file counts as unchanged while its inode, size and
times equal the recorded ones, as in Git's index.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.codegen.package import PackageFiles, TopicFiles, walk_files
from schemactl.codegen.topics import module_paths
from schemactl.core.names import TopicName

_CLOCK_TICK_S: Final = 0.02
"""More than the resolution of the times of files, within which a second write may leave the same times."""

_Stamp = tuple[int, int, int, int]
"""The inode, size in bytes, and times of modification and change in ns of a file."""


class RecordedTopic(NamedTuple):
    """The record of a topic of a package.

    Attributes:
        module: the importable name of its module.
        numbers: a description of its version numbers on targets, or "" if no target has its own.
        stamps: the stamps of its files by path.
    """

    module: str
    numbers: str
    stamps: Mapping[str, _Stamp]


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
                    module, numbers, {file: tuple(stamp) for file, stamp in stamps.items()}
                )
                for name, (module, numbers, stamps) in topics.items()
            },
        )

    def encode(self) -> bytes:
        """Encode the manifest as JSON."""
        return json.dumps([self.tip, {str(name): topic for name, topic in self.topics.items()}]).encode()

    def select_unchanged(
        self, names: Collection[TopicName], numbers: Mapping[TopicName, str], out: Path, package: str
    ) -> dict[TopicName, TopicFiles]:
        """Return the topics whose files are on disk as they were generated.

        Args:
            names: all topics of the package, which decide on the modules.
            numbers: a description of the numbers of targets for each topic that has some.
            out: the folder of the package.
            package: the importable name of the package.
        """
        stamps = _read_stamps(out, package)
        paths = module_paths(sorted(names))
        return {
            name: TopicFiles(topic.module, tuple(topic.stamps))
            for name, topic in self.topics.items()
            if name in paths
            and topic.module == ".".join((package, *paths[name]))
            and topic.numbers == numbers.get(name, "")
            and all(stamps.get(file) == stamp for file, stamp in topic.stamps.items())
        }


def make_manifest(
    tip: str, files: PackageFiles, names: Iterable[TopicName], numbers: Mapping[TopicName, str], out: Path, package: str
) -> Manifest:
    """Return the manifest of a package that was written.

    Args:
        tip: the id of the approved commit.
        files: the files of the package.
        names: the topics to record, whose files depend only on approved commits.
        numbers: a description of the numbers of targets for each topic that has some.
        out: the folder of the package.
        package: the importable name of the package.
    """
    # A later write must not leave the times that are read here.
    time.sleep(_CLOCK_TICK_S)
    stamps = _read_stamps(out, package)
    topics = {
        name: RecordedTopic(
            files.topics[name].module, numbers.get(name, ""), {file: stamps[file] for file in files.topics[name].names}
        )
        for name in names
        if name in files.topics and all(file in stamps for file in files.topics[name].names)
    }
    return Manifest(tip, topics)


def _read_stamps(out: Path, package: str) -> dict[str, _Stamp]:
    """Return the stamps of all files of the package by path, without links."""
    stamps = {}
    for name, entry in walk_files(out, package.partition(".")[0]):
        if entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            stamps[name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamps
