"""The files as they are after each step of the record, their contents read ahead in one stream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from posixpath import dirname

from schemactl.declare.files import SUFFIXES
from schemactl.history.commits import Change, LoggedCommit
from schemactl.history.files import FILE_MODES, Entry, GitFiles, entry
from schemactl.history.journal import Journal
from schemactl.history.repository import Blob, Repository

_AHEAD = 400
"""So many contents are asked for at once."""

_KEPT_BYTES = 16 << 20
"""So much is kept of what was read: definitions that many topics share are asked for again and again."""


class RecordFiles(GitFiles):
    """The files after the changes that the journal was told of."""

    def __init__(self, repository: Repository, journal: Journal) -> None:
        super().__init__(repository)
        self._journal = journal
        # A plain dict would look for its oldest key among all that were taken out before.
        self._contents: OrderedDict[str, Blob] = OrderedDict()
        self._kept_bytes = 0
        # In a partial clone: what was not fetched, by folder.
        self._elsewhere: dict[str, list[str]] = {}

    def paths(self) -> Iterable[str]:
        """Every path, links and submodules among them."""
        return self._journal.paths()

    def entry(self, path: str) -> Entry | None:
        """What is at `path`."""
        return self._journal.entry(path)

    def revision(self, path: str) -> str | None:
        """The id of the blob at `path`; None where there is no plain file."""
        found = self._journal.entry(path)
        return found.blob if found and found.kind == "file" else None

    def ahead(
        self, steps: Iterable[LoggedCommit], is_wanted: Callable[[str], bool]
    ) -> Iterator[LoggedCommit]:
        """The same steps; the contents that they bring to wanted paths are read many at a time."""
        if self.repository.promisor:
            steps = list(steps)
            self.repository.fetch_missing(_wanted(steps, is_wanted))
            self._elsewhere = _elsewhere(steps, is_wanted)
        waiting: list[LoggedCommit] = []
        wanted: dict[str, None] = {}
        for step in steps:
            waiting.append(step)
            wanted |= dict.fromkeys(_wanted([step], is_wanted))
            if len(wanted) >= _AHEAD:
                yield from self._with_contents(waiting, wanted)
                waiting, wanted = [], {}
        yield from self._with_contents(waiting, wanted)

    def change(self, change: Change) -> bool:
        """Whether the change makes a difference to what declarations can see; it has been made."""
        found = entry(change.mode, change.blob)
        if found and found.kind == "file" and not change.path.endswith(SUFFIXES):
            found = None
        if found == self.entry(change.path):
            return False
        self._journal.put(change.path, found)
        return True

    def read(self, path: str) -> bytes:
        """The content of the file; where one definition is fetched, those beside it and older ones are, too."""
        if self._elsewhere:
            self.repository.fetch_missing(self._elsewhere.pop(dirname(path), ()))
        return super().read(path)

    def blob(self, blob_id: str) -> Blob:
        """The blob with this id, from what was read before where possible."""
        found = self._contents.get(blob_id)
        if found is None:
            (found,) = self.repository.blobs([blob_id])
            self._keep(found)
        return found

    def read_ahead(self, paths: Iterable[str]) -> None:
        """The contents of the files at `paths` have been read."""
        ids = dict.fromkeys(found for path in paths if (found := self.revision(path)))
        for blob in self.repository.blobs([blob_id for blob_id in ids if blob_id not in self._contents]):
            self._keep(blob)

    def _with_contents(self, steps: list[LoggedCommit], blob_ids: Iterable[str]) -> Iterator[LoggedCommit]:
        unread = [blob_id for blob_id in blob_ids if blob_id not in self._contents]
        for blob in self.repository.blobs(unread):
            self._keep(blob)
        yield from steps

    def _keep(self, blob: Blob) -> None:
        self._contents[blob.id] = blob
        self._kept_bytes += len(blob.content)
        while self._kept_bytes > _KEPT_BYTES and len(self._contents) > 1:
            _, oldest = self._contents.popitem(last=False)
            self._kept_bytes -= len(oldest.content)


def is_read(change: Change) -> bool:
    """Whether the change brings a file that may be a declaration or a definition."""
    return change.mode in FILE_MODES and change.path.endswith(SUFFIXES)


def _wanted(steps: Iterable[LoggedCommit], is_wanted: Callable[[str], bool]) -> Iterator[str]:
    """The ids of the contents that `steps` bring to wanted paths."""
    for step in steps:
        for change in step.changes:
            if change.mode in FILE_MODES and is_wanted(change.path):
                yield change.blob


def _elsewhere(steps: Iterable[LoggedCommit], is_wanted: Callable[[str], bool]) -> dict[str, list[str]]:
    """The ids of the contents of all other files that may be definitions, by folder."""
    found: dict[str, list[str]] = {}
    for step in steps:
        for change in step.changes:
            if is_read(change) and not is_wanted(change.path):
                found.setdefault(dirname(change.path), []).append(change.blob)
    return found
