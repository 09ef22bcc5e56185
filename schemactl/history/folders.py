"""Git's folders, and what they tell without git: nothing here starts a process, or imports anything to speak of.

What is not laid out in the usual way is left for git to tell.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOVED = (
    *("GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE"),
    *("GIT_CEILING_DIRECTORIES", "GIT_REF_STORAGE", "GIT_TEST_ASSUME_DIFFERENT_OWNER"),
)
"""Variables that say where git finds something of a repository, or whether it does."""

USUAL = ("refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master")
"""What the approved ref is looked for under, besides the remotes' default branches."""

_HARMLESS = frozenset(("objectformat", "partialclone", "preciousobjects", "noop"))
"""Extensions of a repository (git-config, extensions.*) that leave everything where it is."""


class Folders:
    """The folders of a repository, as absolute paths.

    Attributes:
        top: of the working tree.
        own: Git's folder for this working tree, where HEAD is.
        common: Git's folder that all linked working trees share, where refs are.
        prefix: the folder of work below `top`, "" for the top itself.
    """

    __slots__ = ("common", "own", "prefix", "top")

    def __init__(self, top: str, own: str, common: str, prefix: str) -> None:
        self.top = top
        self.own = own
        self.common = common
        self.prefix = prefix


class Facts:
    """What is true of a repository that has a working tree.

    Attributes:
        shallow: its history ends where a depth-limited clone was cut off.
        object_format: `sha1` or `sha256`.
        default_branches: full names of the branches that remotes call their default.
        promisors: the remotes that have what a partial clone lacks, with the filters they were cloned by.
    """

    __slots__ = ("default_branches", "object_format", "promisors", "shallow")

    def __init__(
        self, *, shallow: bool, object_format: str, default_branches: list[str], promisors: dict[str, str]
    ) -> None:
        self.shallow = shallow
        self.object_format = object_format
        self.default_branches = default_branches
        self.promisors = promisors


def find(here: str) -> Folders | None:
    """The folders of the repository that the folder `here`, where git would run, is in; None: ask git itself.

    They are told only where git, asked here, would find just these, and would trust them: whatever is started on them
    afterwards takes them as given.
    """
    if any(name in os.environ for name in _MOVED):
        return None
    top = here
    given = os.environ.get("GIT_DIR")
    if given is not None:
        # A hook runs at the top of the working tree, and its GIT_DIR is absolute or counts from there.
        own = os.path.join(here, given)
    else:
        while not os.path.lexists(own := os.path.join(top, ".git")):
            above = os.path.dirname(top)
            if above == top or os.path.lexists(os.path.join(top, "HEAD")):
                # Nothing, or a bare repository.
                return None
            top = above
    git = own
    if os.path.isfile(own):
        # A linked working tree, or a submodule.
        pointer = read(own)
        if not pointer.startswith(b"gitdir: "):
            return None
        own = os.path.join(top, os.fsdecode(pointer[8:].rstrip(b"\n")))
    shared = read(os.path.join(own, "commondir"))
    common = os.path.join(own, os.fsdecode(shared.rstrip(b"\n"))) if shared else own
    if not read(os.path.join(own, "HEAD")):
        return None
    if given is None and not _is_trusted(here, git, top, own, common):
        return None
    return Folders(top, own, common, here[len(top) :].strip("/"))


def _is_trusted(here: str, git: str, *places: str) -> bool:
    """Whether all belongs to who runs this (safe.directory), and lies on one device, so that git looks for it."""
    devices = {os.stat(here).st_dev, os.stat(places[0]).st_dev}
    owners = {os.lstat(git).st_uid, *(os.stat(place).st_uid for place in places)}
    return len(devices) == 1 and owners == {os.geteuid()}


def enclosing(here: str) -> str | None:
    """The nearest folder with `.git`, from the absolute path `here` upwards; None: there is none."""
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above
    return here


def embedded(here: str, top: str) -> str | None:
    """The nearest folder from `here` up to `top`, itself left out, that git would take for a repository; None: there is none.

    A commit can hold such a folder, with settings that name programs; `.git` itself, however it is spelled, no commit can
    hold, nor anything that belongs to a project.
    """
    while len(here) > len(top):
        # Refs and objects are beside HEAD, or where `commondir` says.
        inside = [os.path.lexists(os.path.join(here, name)) for name in ("commondir", "objects", "refs")]
        is_git = os.path.lexists(os.path.join(here, "HEAD")) and (inside[0] or all(inside[1:]))
        if is_git or os.path.basename(here).lower() == ".git":
            return here
        here = os.path.dirname(here)
    return None


def facts(folders: Folders) -> Facts | None:
    """The facts of the repository with these folders; None: ask git itself, which may also refuse to read it."""
    settings = _settings(os.path.join(folders.common, "config"))
    branches = default_branches(folders)
    if settings is None or branches is None:
        return None
    worktree = settings.get("core.worktree")
    extensions = {name.partition(".")[2] for name in settings if name.startswith("extensions.")}
    if (
        settings.get("core.bare", "false").lower() != "false"
        or (worktree and not os.path.samefile(os.path.join(folders.own, worktree), folders.top))
        or not extensions <= _HARMLESS
    ):
        return None
    promisors = [
        name.removeprefix("remote.").removesuffix(".promisor")
        for name, value in settings.items()
        if name.startswith("remote.") and name.endswith(".promisor") and value == "true"
    ]
    return Facts(
        shallow=is_shallow(folders),
        object_format=settings.get("extensions.objectformat", "sha1"),
        default_branches=branches,
        promisors={each: settings.get(f"remote.{each}.partialclonefilter", "") for each in promisors},
    )


def is_shallow(folders: Folders) -> bool:
    """Whether the history ends where a depth-limited clone was cut off."""
    return os.path.lexists(os.path.join(folders.common, "shallow"))


def default_branches(folders: Folders) -> list[str] | None:
    """Full names of the branches that remotes call their default, by remote; None: ask git itself."""
    found = []
    packed = None
    if os.path.lexists(os.path.join(folders.common, "reftable")):
        return None
    for head in sorted(_remote_heads(folders.common, "refs/remotes")):
        target = read(os.path.join(folders.common, head))
        if not target.startswith(b"ref: "):
            return None
        name = target[5:].strip()
        if not read(os.path.join(folders.common, os.fsdecode(name))):
            if packed is None:
                packed = _whole(os.path.join(folders.common, "packed-refs"))
            if b" " + name + b"\n" not in packed:
                # The branch is gone.
                continue
        found.append(os.fsdecode(name))
    return found


def spellings(name: str) -> list[list[str]]:
    """What a ref's name as people write it stands for, best first; where one of a group exists, no later one counts.

    Other than git has it, a remote's branch, or its default branch where the remote alone is named, comes first: it is what
    is read here, and nobody's tag or branch of the same name takes its place. Several of one group make the name ambiguous.
    """
    if name.startswith("refs/") or name == "HEAD":
        return [[name]]
    local = [f"refs/heads/{name}", f"refs/tags/{name}", f"refs/{name}"]
    return [[f"refs/remotes/{name}"], [f"refs/remotes/{name}/HEAD"], local, [name]]


def read(path: str) -> bytes:
    """The content of a small file; nothing where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _settings(path: str) -> dict[str, str] | None:
    """What a repository's own settings say, sections and keys in lower case; None where that takes git to read.

    Only what git writes there itself is read: a section or a setting a line. Git, too, takes what is asked of here from
    this file alone, without what it includes.
    """
    found: dict[str, str] = {}
    section = ""
    for line in _whole(path).decode("utf-8", "surrogateescape").split("\n"):
        text = line.strip()
        if text.startswith("["):
            if not text.endswith("]"):
                return None
            name, quote, rest = text[1:-1].partition(' "')
            if quote and (not rest.endswith('"') or "\\" in rest):
                return None
            section = f"{name.lower()}.{rest[:-1]}" if quote else name.lower()
        elif text and text[0] not in "#;":
            key, separator, value = text.partition("=")
            value = value.strip() if separator else "true"
            if text.endswith("\\") or any(mark in value for mark in '"\\#;'):
                if section in ("core", "extensions") or section.startswith("remote."):
                    return None
                continue
            found[f"{section}.{key.strip().lower()}"] = value
    return found


def _remote_heads(common: str, folder: str) -> Iterator[str]:
    """The refs HEAD of all remotes, however their names are nested, from Git's folder on."""
    try:
        with os.scandir(os.path.join(common, folder)) as listed:
            entries = sorted((each.name, each.is_dir()) for each in listed)
    except OSError:
        return
    for name, is_folder in entries:
        path = f"{folder}/{name}"
        if is_folder:
            yield from _remote_heads(common, path)
        elif name == "HEAD" and folder != "refs/remotes":
            yield path


def _whole(path: str) -> bytes:
    """The content of a file; nothing where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
