"""A partial clone: what it lacks is fetched at once, where git by itself would start a process for each object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from schemactl.errors import HistoryError
from schemactl.history.process import GitFailed
from schemactl.history.stock import Stock


class Fetch(Protocol):
    """Runs `git fetch`."""

    def __call__(self, *arguments: str, standard_input: bytes) -> bytes:
        """Its standard output with these arguments; GitFailed when it ends with another status than 0."""


class PartialClone:
    """What a clone that was made with `--filter` has, and where the rest comes from.

    Attributes:
        remote: has what this clone lacks.
        filter: what was left out: `blob:none`, `tree:0`.
    """

    def __init__(self, remote: str, filter_: str, stock: Stock, fetch: Fetch) -> None:
        self.remote = remote
        self.filter = filter_
        self._fetch = fetch
        self._stock = stock
        self._fetched: set[str] = set()
        self._wanted: set[str] = set()

    @classmethod
    def of(
        cls,
        common_directory: Path,
        *,
        object_format: str,
        promisors: Callable[[], Mapping[str, str]],
        fetch: Fetch,
    ) -> PartialClone | None:
        """The facts of a clone; None: nothing was left out of it.

        Args:
            common_directory: Git's folder.
            object_format: `sha1` or `sha256`.
            promisors: tells the remotes that promise to have the rest, with their filters.
            fetch: runs `git fetch`.
        """
        objects = common_directory / "objects"
        if not any((objects / "pack").glob("*.promisor")):
            return None
        found = promisors()
        if not found:
            return None
        remote, filter_ = next(iter(found.items()))
        return cls(remote, filter_, Stock(objects, object_format), fetch)

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
            self._fetch(
                *("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
                "--recurse-submodules=no",
                *("--filter=blob:none", "--stdin", self.remote),
                standard_input="".join(f"{blob_id}\n" for blob_id in sorted(missing)).encode(),
            )
        except GitFailed as failure:
            raise HistoryError(
                f"this partial clone lacks {len(missing)} files of the approved history, and {self.remote} does not give them: "
                f"{' '.join(failure.words.split())}",
                fix="name the protocol to fetch by in GIT_ALLOW_PROTOCOL, or use a whole clone"
                if "not allowed" in failure.words
                else f"see to it that `git fetch {self.remote}` works, or use a whole clone",
            ) from failure
        self._fetched |= missing


SETTINGS = ("config", "--null", "--get-regexp", r"^remote\..*\.(promisor|partialclonefilter)$")
"""The git command whose answer `promisors` reads."""


def promisors(told: bytes) -> dict[str, str]:
    """The remotes that promise to have what is missing, with their filters."""
    filters: dict[str, str] = {}
    promisors = []
    for entry in told.decode().split("\0"):
        key, _, value = entry.partition("\n")
        remote, _, name = key.removeprefix("remote.").rpartition(".")
        if name == "partialclonefilter":
            filters[remote] = value
        elif value == "true":
            promisors.append(remote)
    return {remote: filters.get(remote, "") for remote in promisors}
