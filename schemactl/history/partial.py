"""A partial clone: what it lacks is fetched at once, where git by itself would start a process for each object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from schemactl.errors import HistoryError
from schemactl.history.process import GitFailed, run
from schemactl.history.stock import Stock


class PartialClone:
    """What a clone that was made with `--filter` has, and where the rest comes from.

    Attributes:
        remote: has what this clone lacks.
        filter: what was left out: `blob:none`, `tree:0`.
    """

    def __init__(self, directory: Path, remote: str, filter_: str, stock: Stock) -> None:
        self.remote = remote
        self.filter = filter_
        self._directory = directory
        self._stock = stock
        self._fetched: set[str] = set()
        self._wanted: set[str] = set()

    @classmethod
    def of(
        cls,
        directory: Path,
        common_directory: Path,
        *,
        object_format: str,
        promisors: Mapping[str, str] | None,
    ) -> PartialClone | None:
        """The facts of the clone around `directory`; None: nothing was left out of it.

        `promisors` are the remotes that promise to have the rest, with their filters; None: git is asked.
        """
        objects = common_directory / "objects"
        if not any((objects / "pack").glob("*.promisor")):
            return None
        found = promisors or _promisors(directory)
        if not found:
            return None
        remote, filter_ = next(iter(found.items()))
        return cls(directory, remote, filter_, Stock(objects, object_format))

    def refuse_without_trees(self) -> None:
        """The clone has the names of every commit's files: only contents are fetched when needed.

        Raises:
            HistoryError: it has not; says the command that brings them.
        """
        if "tree:" in self.filter or "object:type=" in self.filter:
            raise HistoryError(
                f"this partial clone was made without the file names of older commits (filter {self.filter}): reading its "
                "history would fetch them one commit at a time",
                fix=f"`git config remote.{self.remote}.partialclonefilter blob:none && git fetch --refetch {self.remote}`",
            )

    def want(self, blob_ids: Iterable[str]) -> None:
        """The blobs with these ids come with what is fetched next."""
        self._wanted.update(blob_ids)

    def fetch(self, blob_ids: Iterable[str]) -> None:
        """The blobs with these ids are here: one `git fetch` brings all that were not.

        Raises:
            HistoryError: git cannot fetch them.
        """
        missing = self._stock.lacks({*blob_ids} - self._fetched)
        if not missing:
            return
        missing |= self._stock.lacks(self._wanted - self._fetched)
        self._wanted.clear()
        try:
            # As git itself fetches one object that is missing (promisor-remote.c), but for all of them.
            run(
                *(self._directory, "-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
                *("--no-write-fetch-head", "--no-auto-maintenance", "--recurse-submodules=no"),
                *("--filter=blob:none", "--stdin", self.remote),
                standard_input="".join(f"{blob_id}\n" for blob_id in sorted(missing)).encode(),
            )
        except GitFailed as failure:
            raise HistoryError(
                f"this partial clone lacks {len(missing)} files of the approved history, and {self.remote} does not give them: "
                f"{' '.join(failure.words.split())}",
                fix=f"see to it that `git fetch {self.remote}` works, or use a whole clone",
            ) from failure
        self._fetched |= missing


def _promisors(directory: Path) -> dict[str, str]:
    """The remotes that promise to have what is missing, with their filters."""
    keys = r"^remote\..*\.(promisor|partialclonefilter)$"
    filters: dict[str, str] = {}
    promisors = []
    for entry in run(directory, "config", "--null", "--get-regexp", keys).decode().split("\0"):
        key, _, value = entry.partition("\n")
        remote, _, name = key.removeprefix("remote.").rpartition(".")
        if name == "partialclonefilter":
            filters[remote] = value
        elif value == "true":
            promisors.append(remote)
    return {remote: filters.get(remote, "") for remote in promisors}
