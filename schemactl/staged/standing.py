"""What the complete check leaves for the next one: for which state of the index, against what, and what it said.

It is left only by a check that did not fail. The next check of the same index has the same answer; and where
the index has changed further, it need only look at what that concerns.
"""

from __future__ import annotations

import os

from schemactl.history import kept
from schemactl.history.folders import Folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

SUFFIXES = (b".yaml", b".yml", b".avsc", b".json", b".proto", b".binpb")
"""How the names of all files end that declarations can consist of (declare.files.SUFFIXES)."""

_PROJECT_FILE = b"schemactl.yaml"
_ATTRIBUTES = b".gitattributes"
_FILES = (b"100644", b"100755")

_KIND = "staged"
"""What it is kept as."""

_MAGIC = b"schemactl staged 1"
_NAMES = (
    *(
        "program",
        "prefix",
        "approved",
        "ref",
        "defaults",
        "stamp",
        "tip",
        "base",
        "roots",
        "outside",
        "numbers",
        "records",
    ),
    *(
        "plain",
        "colored",
        "release",
        "label",
        "checked",
        "notes",
        "history",
        "derivation",
        "topics",
        "tables",
    ),
)


class Standing:
    """The last check that did not fail. All texts are bytes as they come from Git.

    Attributes:
        program: see `staged.program`.
        prefix: the folder below the top of the working tree where it ran.
        approved: the ref that the project names, b"" for none; `ref`: the one that was read.
        defaults: the remotes' default branches, one a line.
        stamp: see `folders.stamp`.
        tip: the id of the newest approved commit; `base`: of the one where the work left it.
        roots: the folders of declarations, `outside`: the files beside them that definitions are made of; NUL between.
        numbers: the places of numbers files and foreign definitions, and the folders around them; NUL between. They are in
            `outside`, too, and what changes there is worked out.
        records: what of the index concerned the project, as `diff-index` told it against `base`.
        plain: the report; `colored`: for a terminal.
        release, label, checked, notes: of the report.
        history, derivation: where the history is kept, and what of.
        topics: every declared topic, see `TopicLine`; nothing where there was a warning.
        tables: something where what becomes of tables is told as well.
    """

    __slots__ = _NAMES

    program: bytes
    prefix: bytes
    approved: bytes
    ref: bytes
    defaults: bytes
    stamp: bytes
    tip: bytes
    base: bytes
    roots: bytes
    outside: bytes
    numbers: bytes
    records: bytes
    plain: bytes
    colored: bytes
    release: bytes
    label: bytes
    checked: bytes
    notes: bytes
    history: bytes
    derivation: bytes
    topics: bytes
    tables: bytes

    @classmethod
    def read(cls, folders: Folders) -> Self | None:
        """What was left in this working tree; None: nothing, or nothing of ours.

        Raises:
            ValueError: something else was.
        """
        data = bytes(kept.read(_path(folders), _KIND) or b"")
        head, _, rest = data.partition(b"\n")
        if not head.startswith(_MAGIC):
            return None
        sizes = [int(size) for size in head[len(_MAGIC) :].split()]
        if len(sizes) != len(cls.__slots__) or sum(sizes) != len(rest):
            return None
        found = cls()
        at = 0
        for name, size in zip(cls.__slots__, sizes, strict=True):
            setattr(found, name, rest[at : at + size])
            at += size
        return found

    def write(self, folders: Folders) -> None:
        """It is left in this working tree, or what was there before is: where nothing can be written, nothing is lost."""
        fields = [getattr(self, name) for name in self.__slots__]
        sizes = _MAGIC + b"".join(b" %d" % len(field) for field in fields) + b"\n"
        kept.write(_path(folders), _KIND, sizes + b"".join(fields))

    def topics_of(self, path: bytes) -> list[TopicLine]:
        """The topics that the file `path` declares, or that have a definition made of it."""
        found = []
        wanted = b"\0" + path + b"\0"
        at = self.topics.find(wanted)
        while at >= 0:
            start, end = self.topics.rfind(b"\n", 0, at) + 1, self.topics.find(b"\n", at)
            found.append(TopicLine(*self.topics[start:end].decode().split("\0")[1:-1]))
            at = self.topics.find(wanted, end)
        return found


class TopicLine:
    """A topic as a line of `Standing.topics`.

    Attributes:
        name: of the topic; `declaration`: the file that declares it.
        strategy: the one in force; "" where the topic is nothing to be judged on sight.
        type: its schema's; `definition`: the file that holds it, "" where the declaration does.
        files: all that the definition is made of, besides the declaration.
    """

    __slots__ = ("declaration", "definition", "files", "name", "strategy", "type")

    def __init__(
        self, name: str, declaration: str, strategy: str, type_: str, definition: str, *files: str
    ) -> None:
        self.name = name
        self.declaration = declaration
        self.strategy = strategy
        self.type = type_
        self.definition = definition
        self.files = files

    @property
    def schema(self) -> str:
        """The topic's key in a registry."""
        return self.name.partition("://")[2]

    def line(self) -> bytes:
        """Itself, with its line end; nothing where a name cannot be printed."""
        fields = (self.name, self.declaration, self.strategy, self.type, self.definition, *self.files)
        return ("\0" + "\0".join(fields) + "\0\n").encode() if all(map(str.isprintable, fields)) else b""


def _path(folders: Folders) -> str:
    return os.path.join(folders.own, "schemactl", "staged")


def concerning(told: bytes, *, roots: bytes, outside: bytes) -> list[bytes]:
    """The facts and paths, in turn, of those raw records of `git diff-index -z` that may make a difference to a check.

    Args:
        told: what git said.
        roots: the folders of declarations, b"" for the top, with NUL between them.
        outside: the files beside them that definitions are made of, with NUL between them.
    """
    folders = tuple(root + b"/" if root else b"" for root in roots.split(b"\0"))
    others = set(outside.split(b"\0"))
    tokens = told.split(b"\0")
    found = []
    for facts, path in zip(tokens[::2], tokens[1::2], strict=False):
        before, after, _, _, status = facts[1:].split(b" ")
        if path.startswith(folders):
            # Another kind of file, say a link, may stand in the way; and of a root the last file may go.
            other = (status != b"A" and before not in _FILES) or after not in _FILES
            concerns = other or path.endswith(SUFFIXES)
        else:
            concerns = path in others or path.endswith(_PROJECT_FILE)
        if concerns or path.endswith(_ATTRIBUTES):
            found += [facts, path]
    return found
