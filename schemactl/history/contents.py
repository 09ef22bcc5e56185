"""The files as they are after each step of the record, their contents read ahead in one stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from schemactl.declare.files import SUFFIXES
from schemactl.history.files import Entry, TreeFiles, entry
from schemactl.history.record import Change, Step
from schemactl.history.repository import Blob, Repository

_AHEAD = 400
"""So many contents are asked for at once."""

_KEPT_BYTES = 32 << 20
"""So much is kept of what was read: definitions that many topics share are asked for again and again."""


class RecordFiles(TreeFiles):
    """The files after the changes that it was told of."""

    def __init__(self, repository: Repository) -> None:
        self._entries: dict[str, Entry] = {}
        super().__init__(repository, self._entries)
        self._contents: dict[str, Blob] = {}
        self._kept_bytes = 0

    def ahead(self, steps: Iterable[Step], is_wanted: Callable[[str], bool]) -> Iterator[Step]:
        """The same steps; the contents that they bring to wanted paths are read many at a time."""
        waiting: list[Step] = []
        wanted: dict[str, None] = {}
        for step in steps:
            waiting.append(step)
            for change in step.changes:
                found = entry(change.mode, change.blob)
                if found and found.kind == "file" and is_wanted(change.path):
                    wanted[found.blob] = None
            if len(wanted) >= _AHEAD:
                yield from self._with_contents(waiting, wanted)
                waiting, wanted = [], {}
        yield from self._with_contents(waiting, wanted)

    def change(self, change: Change) -> bool:
        """Whether the change makes a difference to what declarations can see; it has been made."""
        found = entry(change.mode, change.blob)
        if found is None or (found.kind == "file" and not change.path.endswith(SUFFIXES)):
            return self._entries.pop(change.path, None) is not None
        before = self._entries.get(change.path)
        self._entries[change.path] = found
        return before != found

    def blob(self, blob_id: str) -> Blob:
        """The blob with this id, from what was read before where possible."""
        found = self._contents.get(blob_id)
        if found is None:
            (found,) = self.repository.blobs([blob_id])
            self._keep(found)
        return found

    def _with_contents(self, steps: list[Step], blob_ids: Iterable[str]) -> Iterator[Step]:
        unread = [blob_id for blob_id in blob_ids if blob_id not in self._contents]
        for blob in self.repository.blobs(unread):
            self._keep(blob)
        yield from steps

    def _keep(self, blob: Blob) -> None:
        self._contents[blob.id] = blob
        self._kept_bytes += len(blob.content)
        while self._kept_bytes > _KEPT_BYTES and len(self._contents) > 1:
            oldest = next(iter(self._contents))
            self._kept_bytes -= len(self._contents.pop(oldest).content)
