"""Trees, read object by object: the files of one, and what differs between two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemactl.errors import HistoryError
from schemactl.history.process import FSCK
from schemactl.history.raw import Difference, Leaf
from schemactl.history.repository import Blob, Repository

_TREE = "40000"


class Tree:
    """The files of a tree and of all below it; folders are read when they are asked for.

    Attributes:
        id: of the tree; None: the one without entries.
    """

    def __init__(self, repository: Repository, tree_id: str | None) -> None:
        self.id = tree_id
        self._repository = repository
        self._folders: dict[str, dict[str, Leaf]] = {}

    @classmethod
    def of(cls, repository: Repository, commit_id: str | None) -> Tree:
        """The tree of a commit; None: the one without entries."""
        if commit_id is None:
            return cls(repository, None)
        [found] = repository.objects([f"{commit_id}^{{tree}}"])
        return cls(repository, _checked(found, f"of the commit {commit_id}").id)

    def leaf(self, path: str) -> Leaf | None:
        """What is at `path`; None for a folder, too."""
        folder, slash, name = path.rpartition("/")
        found = self._folder(folder + slash).get(name)
        return None if _folder(found) else found

    def leaves(self, folder: str = "") -> Iterator[str]:
        """Every path below a folder ("" is the top) at which something else than a folder is; or the folder's, if it is none."""
        if folder and self.leaf(folder):
            yield folder
            return
        prefix = f"{folder}/" if folder else ""
        yield from (prefix + path for path in differences(self._repository, None, self._folder_id(prefix)))

    def _folder(self, prefix: str) -> dict[str, Leaf]:
        """What is in a folder, "" or with a slash at its end; nothing where none is."""
        if prefix not in self._folders:
            tree_id = self._folder_id(prefix)
            [self._folders[prefix]] = _read(self._repository, [tree_id] if tree_id else []).values() or [{}]
        return self._folders[prefix]

    def _folder_id(self, prefix: str) -> str | None:
        if not prefix:
            return self.id
        above, slash, name = prefix[:-1].rpartition("/")
        return _folder(self._folder(above + slash).get(name))


def differences(repository: Repository, before: str | None, after: str | None) -> dict[str, Difference]:
    """What differs between two trees with these ids, by path; None is the tree without entries."""
    found: dict[str, Difference] = {}
    pairs = [("", before, after)] if before != after else []
    while pairs:
        # All folders of one depth are read together.
        trees = _read(repository, {each for _, *both in pairs for each in both if each})
        below = []
        for prefix, one, other in pairs:
            old, new = trees[one] if one else {}, trees[other] if other else {}
            for name in old | new:
                was, now = old.get(name), new.get(name)
                if was == now:
                    continue
                old_folder, new_folder = _folder(was), _folder(now)
                if old_folder or new_folder:
                    below.append((f"{prefix}{name}/", old_folder, new_folder))
                leaves = None if old_folder else was, None if new_folder else now
                if leaves != (None, None):
                    found[prefix + name] = leaves
        pairs = below
    return found


def _read(repository: Repository, ids: Iterable[str]) -> dict[str, dict[str, Leaf]]:
    """What is in the trees with these ids, by id and name."""
    wanted = list(ids)
    return {
        tree_id: _entries(_checked(found, tree_id))
        for tree_id, found in zip(wanted, repository.objects(wanted), strict=True)
    }


def _entries(tree: Blob) -> dict[str, Leaf]:
    """The entries of a tree: `<mode> <name>`, NUL, id in binary, one behind the other."""
    content, id_bytes, at = tree.content, len(tree.id) // 2, 0
    found = {}
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, name = content[at:end].partition(b" ")
        at = end + 1 + id_bytes
        found[name.decode("utf-8", "surrogateescape")] = (_mode(mode), content[end + 1 : at].hex())
    return found


def _folder(entry: Leaf | None) -> str | None:
    """The id of a tree's entry that is a tree; None for another."""
    return entry[1] if entry and entry[0] == _TREE else None


def _mode(raw: bytes) -> str:
    """As git tells it; long ago it kept more of what a file's permissions were."""
    mode = raw.decode()
    return mode if not mode.startswith("100") else "100755" if int(mode, 8) & 0o100 else "100644"


def _checked(found: Blob | None, name: str) -> Blob:
    if found is None or found.type != "tree":
        raise HistoryError(f"the repository has no tree {name}", fix=FSCK)
    return found
