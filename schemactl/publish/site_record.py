"""Record the pages of a site on disk by topic, so that a later run makes only the pages that change.

The record is in the user's cache. It names the approved commit from which the pages were made; the history lists the topics that later
commits change. A file counts as unchanged while its inode, size and times equal the recorded ones, as in the manifest of a package.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from schemactl.codegen.manifest import CLOCK_TICK_S, Stamp, read_stamp
from schemactl.core.names import TopicName
from schemactl.publish import restricted_pickle
from schemactl.publish.site_pages import WrittenTopic


class SiteRecord(NamedTuple):
    """The files of a site on disk.

    Attributes:
        tip: the id of the approved commit from which they were made.
        inputs: a digest of the inputs of all pages besides the approved history and the project.
        topic_count: the number of topics that are not deleted.
        topics: the topics with pages.
        stamps: the stamps of all files by path.
    """

    tip: str
    inputs: str
    topic_count: int
    topics: Mapping[TopicName, WrittenTopic]
    stamps: Mapping[str, Stamp]

    @classmethod
    def decode(cls, content: bytes | memoryview) -> SiteRecord | None:
        """Decode the result of `encode`, or return None if the content is anything else."""
        try:
            tip, inputs, topic_count, topics, stamps = restricted_pickle.loads(content)
        except pickle.UnpicklingError:
            return None
        return cls(
            tip,
            inputs,
            topic_count,
            {TopicName.parse(name): WrittenTopic(*topic) for name, topic in topics.items()},
            stamps,
        )

    def encode(self) -> bytes:
        """Encode the record with pickle."""
        topics = {str(name): tuple(topic) for name, topic in self.topics.items()}
        return pickle.dumps((self.tip, self.inputs, self.topic_count, topics, self.stamps))

    def is_unchanged(self, out: Path, paths: Collection[str]) -> bool:
        """Return whether these files in the folder `out` are as they were written."""
        return all(path in self.stamps and read_stamp(out / path) == self.stamps[path] for path in paths)

    def select_unchanged(self, out: Path, changed: Collection[str]) -> dict[TopicName, WrittenTopic]:
        """Return the topics that are not in `changed` (tenant/namespace/topic), and whose files are as they were written."""
        return {
            name: topic
            for name, topic in self.topics.items()
            if name.schema_id not in changed and self.is_unchanged(out, topic.paths)
        }


def make_record(
    tip: str, inputs: str, topic_count: int, topics: Mapping[TopicName, WrittenTopic], out: Path, paths: Collection[str]
) -> SiteRecord:
    """Return the record of a site that was written to the folder `out`, with files at `paths`."""
    # A later write must not leave the times that are read here.
    time.sleep(CLOCK_TICK_S)
    stamps = {path: stamp for path in paths if (stamp := read_stamp(out / path))}
    return SiteRecord(tip, inputs, topic_count, topics, stamps)
