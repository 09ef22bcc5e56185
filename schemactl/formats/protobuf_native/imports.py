"""Which files a `.proto` imports, and which of the repository's files these names mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from schemactl.formats.protobuf_native.compile import Proto
from schemactl.formats.protobuf_native.wrapper import is_shipped

_TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | (?P<text>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*') | (?P<word>\w+) | (?P<end>[;{}])""",
    re.DOTALL | re.VERBOSE,
)


def imports_of(text: bytes) -> Iterator[str]:
    """The names a `.proto` imports, in its order. What does not parse imports nothing that can be made out."""
    words: list[str] = []
    name = ""
    for token in _TOKEN.finditer(text.decode(errors="replace")):
        if token["word"]:
            words.append(token["word"])
        elif token["text"]:
            name += token["text"][1:-1]
        elif token["end"]:
            if words[:1] == ["import"] and name:
                yield name
            words, name = [], ""


def gather(message: str, path: str, texts: Mapping[str, bytes]) -> Proto:
    """The definition whose root `message` is declared by the file at `path`.

    `texts` are the files it may be made of, by path in the repository. An import means the file with that path, else
    the one whose path ends so, the shortest first; a file that nothing imports is left out, and one that cannot be found
    is for protoc to miss.
    """
    paths: dict[str, str] = {}
    todo = list(imports_of(texts[path]))
    while todo:
        name = todo.pop()
        found = _meant(name, texts)
        if found is not None and name not in paths:
            paths[name] = found
            todo.extend(imports_of(texts[found]))
    parts = PurePosixPath(path).parts
    # A name of its own that does not change when the file moves.
    tails = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
    imported_as = next((name for name, other in paths.items() if other == path), None)
    entry = imported_as or next(tail for tail in tails if tail not in paths)
    paths[entry] = path
    return Proto(message, entry, {name: texts[found] for name, found in paths.items()}, paths)


def _meant(name: str, texts: Mapping[str, bytes]) -> str | None:
    if name in texts:
        return name
    if is_shipped(name):
        return None
    ending = [path for path in texts if path.endswith(f"/{name}")]
    return min(ending, key=lambda path: (len(path), path), default=None)
