"""The files of recorded messages beside declarations: `samples/orders.v3.bin` and `samples/orders.jsonl`."""

from __future__ import annotations

import base64
import json
import posixpath
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from schemactl.core.catalog import Catalog
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.names import TopicName
from schemactl.declare.files import Files, shown
from schemactl.samples.messages import SampleMessage

_VERSION: Final = re.compile(r"\.v([0-9]{1,9})(\.[^/]*)?\.bin$")
_SHAPE: Final = 'write `{"version": 3, "payload_b64": "..."}`, and `key_b64` beside them for SEPARATED pairs'


class Sample(NamedTuple):
    """A message, and where it stands."""

    source: Source
    message: SampleMessage


class SampleFiles(NamedTuple):
    """The files of samples by topic, and those whose names begin like no topic's."""

    by_topic: dict[TopicName, list[str]]
    unassigned: list[str]


def assign(paths: Iterable[str], catalog: Catalog) -> SampleFiles:
    """Return the files by topic: `samples/orders.v3.bin` is of the topic `orders` that is declared in the folder around.

    Where the names of several topics fit, the longest counts. Raise DeclarationError if two topics that are declared there have that name.
    """
    declared: dict[str, list[TopicName]] = {}
    for topic in catalog.topics.values():
        if topic.source:
            declared.setdefault(posixpath.dirname(topic.source.path), []).append(topic.name)
    found = SampleFiles({}, [])
    for path in paths:
        folder, _, inside = f"/{path}".rpartition("/samples/")
        fitting = [name for name in declared.get(folder[1:], ()) if inside.startswith(f"{name.topic}.")]
        longest = max((len(name.topic) for name in fitting), default=0)
        named = [name for name in fitting if len(name.topic) == longest]
        if len(named) > 1:
            raise DeclarationError(
                [
                    Problem(
                        Source(shown(path)),
                        f"two topics that are declared in this folder have that name: {named[0]} and {named[1]}",
                        "declare one of them in another folder, with its samples",
                    )
                ]
            )
        if named:
            found.by_topic.setdefault(named[0], []).append(path)
        else:
            found.unassigned.append(path)
    return found


def read(path: str, files: Files) -> list[Sample]:
    """Return the messages in a file. Raise DeclarationError with the problems of all its lines."""
    content, source = files.read(path), Source(shown(path))
    if path.endswith(".bin"):
        version = _VERSION.search(path)
        if version is None:
            what = "the name of the file does not say which version the payload is of"
            fix = "call it by topic and version, such as orders.v3.bin or orders.v3.refund.bin"
            raise DeclarationError([Problem(source, what, fix)])
        return [Sample(source, SampleMessage(content, int(version[1])))]
    found, problems = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            at = Source(shown(path), number, 1)
            try:
                found.append(Sample(at, _message(line)))
            except ValueError as error:
                problems.append(Problem(at, str(error), _SHAPE))
    if problems:
        raise DeclarationError(problems[:100])
    return found


def _message(line: bytes) -> SampleMessage:
    """Return the message of a line. Raise ValueError unless it is one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("this line is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("this line is not a JSON object")  # noqa: TRY004  of a file, not of a caller
    strange = value.keys() - {"version", "payload_b64", "key_b64", "value"}
    if strange:
        raise ValueError(f"a sample has no {shown(min(strange))!r}")
    version = value.get("version")
    is_number = isinstance(version, int) and not isinstance(version, bool) and 0 <= version < 2**63
    if version is not None and not is_number:
        raise ValueError("`version` is not the number of a version, or null for none")
    return SampleMessage(_bytes(value, "payload_b64"), version, _bytes(value, "key_b64"))


def _bytes(value: dict[str, object], key: str) -> bytes | None:
    text = value.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"`{key}` is not a text in base64")  # noqa: TRY004  of a file, not of a caller
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # also of letters outside ASCII
        raise ValueError(f"`{key}` is not base64") from None
