"""A Git repository, read by git itself: few processes, one long-lived where many objects are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from io import BufferedReader
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from schemactl.declare.files import MAX_BYTES
from schemactl.errors import HistoryError
from schemactl.history import confined, folders
from schemactl.history.ancestry import committed_s
from schemactl.history.partial import SETTINGS, PartialClone, promisors
from schemactl.history.process import CHUNK_BYTES, FSCK, GitFailed, GitStopped, Process, run
from schemactl.model import Commit

_GROUP_BYTES = 4096
"""How much is asked of `git cat-file` at once: what every pipe holds (PIPE_BUF), so that neither side ever waits for the
other to read first."""

_BETWEEN = "--schemactl-next"
"""Stands between two answers of `git rev-parse`, which repeats options that it does not know."""


class Blob(NamedTuple):
    """An object as `git cat-file` gives it: full hex id, type (blob, tree, commit, tag), size, content.

    The content of a blob that is larger than MAX_BYTES is left out: nothing of ours is.
    """

    id: str
    type: str
    size_bytes: int
    content: bytes


class Repository:
    """An open repository. Close it, or use it in a `with`: it may keep a git process.

    The environment goes to git as given, so that a hook sees what git wants it to see (GIT_DIR, GIT_INDEX_FILE, which are
    relative to the folder the hook runs in); which repository is read was settled when it was opened. Replace refs are
    ignored: they are one clone's private view of history.

    Attributes:
        directory: where git runs.
        own: absolute path of Git's folder for this working tree.
        top: absolute path of the working tree's top level; None in a bare repository.
        common_directory: absolute path of what all linked worktrees share.
        default_branches: full names of the branches that remotes call their default, `refs/remotes/origin/main`.
        shallow: the history ends where a depth-limited clone was cut off.
        object_format: `sha1` or `sha256`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        own: Path,
        top: Path | None,
        common_directory: Path,
        default_branches: Sequence[str],
        shallow: bool,
        object_format: str,
        promisors: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.own = own
        self.top = top
        self.common_directory = common_directory
        self.default_branches = tuple(default_branches)
        self.shallow = shallow
        self.object_format = object_format
        self._promisors = promisors
        self._pinned = confined.pinned(str(own), str(top) if top else None)
        self._variables = {**confined.VARIABLES, **self._pinned}
        self._objects: Process | None = None

    @classmethod
    def open(cls, directory: str | os.PathLike[str] = ".") -> Repository:
        """The repository that `directory` is in.

        Raises:
            HistoryError: there is none, git refuses to read it (another owner's), with git's own advice, it has grafts, or
                `directory` lies in a folder that git would take for a repository inside of it.
        """
        path = Path(directory).resolve()
        found = folders.find(str(path))
        facts = folders.facts(found) if found else None
        opened = cls._told(path, found, facts) if found and facts else cls._asked(path)
        opened.refuse_embedded([path])
        grafts = Path(os.environ.get("GIT_GRAFT_FILE") or opened.common_directory / "info" / "grafts")
        if grafts.is_file() and grafts.read_bytes().strip():
            raise HistoryError(
                f"{grafts} gives commits other parents than they have, so this clone sees another history than the rest",
                fix=f"remove it: `rm {grafts}`",
            )
        return opened

    @classmethod
    def _told(cls, path: Path, found: folders.Folders, facts: folders.Facts) -> Repository:
        """What its folders tell of the repository that `path` is in."""
        return cls(
            path,
            own=Path(found.own).resolve(),
            top=Path(found.top).resolve(),
            common_directory=Path(found.common).resolve(),
            default_branches=facts.default_branches,
            shallow=facts.shallow,
            object_format=facts.object_format,
            promisors=facts.promisors,
        )

    @classmethod
    def _asked(cls, path: Path) -> Repository:
        """What git says of the repository that `path` is in, which it finds and trusts by its own rules.

        Raises:
            HistoryError: as `open`.
        """
        top = folders.enclosing(str(path)) if "GIT_DIR" not in os.environ else None
        if top and (inner := folders.embedded(str(path), top)):
            raise _embedded(inner, top)
        # Older Git knows nothing of this setting, and is kept from what it forbids by the lines above.
        strict = ("-c", "safe.bareRepository=explicit") if top else ()
        facts = ("--is-shallow-repository", "--is-bare-repository", "--show-object-format", "--show-cdup")
        remotes = ("--symbolic-full-name", "--glob=refs/remotes/*/HEAD")
        try:
            # The answers that may hold a newline come last.
            answer = run(
                *(path, *strict, "rev-parse", *facts, *remotes),
                *("--absolute-git-dir", _BETWEEN, "--git-common-dir"),
            )
        except GitFailed as failure:
            raise _cannot_open(path, failure.words) from failure
        answered, _, common = answer.decode("utf-8", "surrogateescape").partition(f"\n{_BETWEEN}\n")
        shallow, is_bare, object_format, up, *lines = answered.split("\n")
        branches = list(takewhile(lambda line: line.startswith("refs/"), lines))
        own = Path("\n".join(lines[len(branches) :]))
        if not top and "GIT_DIR" not in os.environ and is_bare != "true":
            # Without `.git` it has no files of its own, whatever its settings say.
            raise _embedded(str(own), str((path / up).resolve()))
        return cls(
            path,
            own=own,
            top=None if is_bare == "true" else (path / up).resolve(),
            common_directory=(path / common.removesuffix("\n")).resolve(),
            default_branches=branches,
            shallow=shallow == "true",
            object_format=object_format,
        )

    def refuse_embedded(self, paths: Iterable[Path]) -> None:
        """None of `paths`, in the working tree, lies in a folder that git would take for another repository.

        Raises:
            HistoryError: one does.
        """
        for path in paths if self.top else ():
            if inner := folders.embedded(str(path), str(self.top)):
                raise _embedded(inner, str(self.top))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """No git process of this repository runs any more."""
        if self._objects:
            self._objects.close()
            self._objects = None

    def run(
        self, *arguments: str, standard_input: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> bytes:
        """The standard output of one git command, with these `variables` besides; GitFailed when its status is not 0."""
        given = {**self._variables, **(variables or {})}
        return run(self.directory, *arguments, standard_input=standard_input, variables=given)

    def fetch(self, *arguments: str, standard_input: bytes = b"") -> bytes:
        """As `run`, for `git fetch` with these arguments: the one command that may reach a remote."""
        return run(
            self.directory,
            *arguments,
            standard_input=standard_input,
            options=confined.FETCH if self.top else confined.BARE_FETCH,
            variables={**confined.fetch_variables(os.environ), **self._pinned},
        )

    def start(self, *arguments: str) -> Process:
        """One git command that runs beside us."""
        return Process(self.directory, *arguments, variables=self._variables)

    def stream(self, *arguments: str) -> Iterator[bytes]:
        """The NUL-terminated records of one git command's standard output, while it runs."""
        process = self.start(*arguments)
        try:
            rest = b""
            while chunk := process.answers.read1(CHUNK_BYTES):
                *records, rest = (rest + chunk).split(b"\0")
                yield from records
            process.wait()
            if rest:
                yield rest
        finally:
            process.close()

    def objects(self, names: Sequence[str]) -> Iterator[Blob | None]:
        """The objects called `names` (ids, or anything git can resolve), in order; None for each that does not exist.

        All come from one `git cat-file --batch`, kept open. A name is a line on its standard input, so it can never
        become an option. Ask for anything else only when all answers have been taken.
        """
        lines = [name.encode("utf-8", "surrogateescape") + b"\n" for name in names]
        if any(line.count(b"\n") > 1 or b"\0" in line for line in lines):
            raise HistoryError("a name of a Git object cannot hold a newline or NUL")
        start = 0
        while start < len(lines):
            end, size = start + 1, len(lines[start])
            while end < len(lines) and size + len(lines[end]) <= _GROUP_BYTES:
                size += len(lines[end])
                end += 1
            # A group is read to its end before any of it is handed out: whoever stops early leaves the stream in step.
            yield from self._ask(lines[start:end])
            start = end

    @cached_property
    def partial(self) -> PartialClone | None:
        """What was left out of the clone; None: nothing."""
        return PartialClone.of(
            self.common_directory,
            object_format=self.object_format,
            promisors=lambda: self._promisors or promisors(self.run(*SETTINGS)),
            fetch=self.fetch,
        )

    def blobs(self, ids: Sequence[str]) -> Iterator[Blob]:
        """The blobs with these ids, in order; those that a partial clone lacks are fetched together.

        Raises:
            HistoryError: the repository does not have one of them.
        """
        if self.partial:
            self.partial.fetch(ids)
        for blob_id, blob in zip(ids, self.objects(ids), strict=True):
            if blob is None or blob.type != "blob":
                raise HistoryError(f"the repository has no blob {blob_id}", fix=FSCK)
            yield blob

    def commit(self, ref: str) -> Commit | None:
        """The commit that `ref` names, tags followed; None when there is none."""
        if not ref or "\n" in ref or "\0" in ref:
            return None
        try:
            (found,) = self.objects([f"{ref}^{{commit}}"])
        except GitStopped:
            # Some names stop git itself, `@{upstream}` of a branch without one for example.
            return None
        return _commit(found) if found else None

    def _ask(self, lines: Sequence[bytes]) -> list[Blob | None]:
        if self._objects is None:
            self._objects = self.start("cat-file", "--batch")
        try:
            self._objects.requests.write(b"".join(lines))
            self._objects.requests.flush()
            return [_answer(self._objects.answers) for _ in lines]
        except (BrokenPipeError, EOFError) as error:
            self.close()
            # Perhaps git does not read this repository at all.
            self._asked(self.directory)
            raise GitStopped(
                "git stopped while it read objects; its own words are above", fix=FSCK
            ) from error


def _answer(answers: BufferedReader) -> Blob | None:
    """The next answer of `git cat-file --batch`: `<id> <type> <size>`, newline, content, newline; or `<name> missing`."""
    header = answers.readline()
    if not header.endswith(b"\n"):
        raise EOFError
    if header.endswith((b" missing\n", b" ambiguous\n")):
        return None
    object_id, kind, size = header.split()
    size_bytes = int(size)
    if size_bytes <= MAX_BYTES or kind != b"blob":
        # With the newline in one call: there are many answers.
        content = answers.read(size_bytes + 1)
        if len(content) != size_bytes + 1 or content[-1:] != b"\n":
            raise EOFError
        return Blob(object_id.decode(), kind.decode(), size_bytes, content[:-1])
    rest = size_bytes + 1
    while rest and (skipped := answers.read(min(rest, CHUNK_BYTES))):
        rest -= len(skipped)
    if rest:
        raise EOFError
    return Blob(object_id.decode(), kind.decode(), size_bytes, b"")


def _commit(found: Blob) -> Commit:
    """The commit in a commit object: committer time and subject, as `git log` prints them."""
    head, _, body = found.content.partition(b"\n\n")
    time_s, encoding = 0, "utf-8"
    for line in head.decode("utf-8", "replace").split("\n"):
        if line.startswith("committer "):
            time_s = committed_s(line.encode())
        elif line.startswith("encoding "):
            encoding = line.removeprefix("encoding ")
    try:
        message = body.decode(encoding, "replace")
    except (LookupError, ValueError):
        # No encoding that Python has, or one that it does not replace wrong bytes in.
        message = body.decode("utf-8", "replace")
    # The subject is the first paragraph, its lines joined (git-log, %s).
    paragraph = message.lstrip("\n").split("\n\n", 1)[0]
    return Commit(found.id, time_s, " ".join(line.strip() for line in paragraph.split("\n")).strip())


def _embedded(inner: str, top: str) -> HistoryError:
    if Path(inner).name.lower() == ".git":
        return HistoryError(
            f"{inner} is Git's own folder, where no project can be", fix=f"work in {top}, or name it with -C"
        )
    return HistoryError(
        f"{inner} is laid out as a Git directory inside the working tree of {top}: git would obey settings in it that a commit "
        "may have brought",
        fix="remove its files HEAD, objects and refs; for a bare repository of your own that is kept there, set GIT_DIR to it",
    )


def _cannot_open(directory: Path, words: str) -> HistoryError:
    said = words.strip().removeprefix("fatal: ")
    if "safe.directory" in said:
        what, _, advice = said.partition("\n")
        return HistoryError(f"git refuses to read this repository: {what}", fix=" ".join(advice.split()))
    if "safe.bareRepository" in said:
        return HistoryError(
            f"git refuses to read this repository: {said}", fix=f"set GIT_DIR={directory}, if you trust it"
        )
    if said.startswith("not a git repository"):
        return HistoryError(
            f"{directory} is not in a Git repository, and versions come from its history",
            fix="work inside a repository, or name one with -C DIR; `git init` makes one",
        )
    return HistoryError(f"git cannot open a repository at {directory}: {said}")
