"""Write numbers files and their foreign definitions, and compute the record of a registry."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from schemactl.comparison.changes import Generations, content_identity, last_tombstone, unstamped
from schemactl.core import atomic_files
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.core.wording import policy_words
from schemactl.declare.files import WorktreeFiles, shown
from schemactl.declare.yaml_text import scalar
from schemactl.formats import spec
from schemactl.target_numbers.acceptance import Acceptance, AcceptanceReason
from schemactl.target_numbers.mapping import NumberEntry, TargetNumbers, TopicNumbers

_HEAD: Final = """\
# Which version each number of {target} stands for, where the two differ, and what else of it is accepted. `schemactl drift
# --target {target} --accept` writes this file; what counts is the one at the tip of the approved ref.
"""
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")


def write_numbers(numbers: TargetNumbers, top: Path) -> list[str]:
    """Write the numbers file, and missing foreign definitions, below `top`; return their paths, relative to `top`.

    The definitions come first, so that the file never names what does not exist. Raise SchemactlError if a path leads through a
    link, or cannot be written.
    """
    files = WorktreeFiles(str(top))
    top = top.resolve()
    topics = {
        name: TopicNumbers(
            {number: _placed(numbers, name, entry) for number, entry in recorded.entries.items()}
        )
        for name, recorded in sorted(numbers.topics.items())
    }
    written = []
    for recorded in topics.values():
        for entry in recorded.entries.values():
            if entry.foreign and entry.path:
                data = _content(entry.foreign, entry.path)
                if files.kind(entry.path) != "file" or files.read(entry.path) != data:
                    _write(top, entry.path, data)
                    written.append(entry.path)
    text = numbers_text(replace(numbers, topics=topics))
    _write(top, numbers.path, text.encode())
    return [*written, numbers.path]


def numbers_text(numbers: TargetNumbers) -> str:
    """Return the file's text: a line for each number."""
    lines = [_HEAD.format(target=shown(numbers.target))]
    folder = posixpath.dirname(numbers.path)
    for name in sorted({*numbers.topics, *numbers.accepted}, key=str):
        lines.append(f"{scalar(str(name))}:\n")
        recorded = numbers.topics.get(name) if isinstance(name, TopicName) else None
        for number, entry in recorded.entries.items() if recorded else ():
            lines.append(f"  {number}: {{{', '.join(_parts(entry, folder))}}}\n")
        if accepted := numbers.accepted.get(name):
            lines += [f"  {line}\n" for line in _accepted(accepted)]
    return "".join(lines)


def _accepted(acceptance: Acceptance) -> Iterator[str]:
    if acceptance.unmanaged:
        yield "unmanaged: true"
    if acceptance.undeclarable:
        yield f"undeclarable: {acceptance.undeclarable}"
    if acceptance.fingerprint:
        yield f'fingerprint: "{acceptance.fingerprint}"'
    if policies := policy_words(acceptance.policies):
        yield f"policies: {{{', '.join(f'{policy}: {value}' for policy, value in policies.items())}}}"
    yield from _decision(acceptance.decision)


def _decision(decision: AcceptanceReason) -> Iterator[str]:
    if decision.reason:
        yield f"reason: {_quoted(decision.reason)}"
    if decision.owner:
        yield f"owner: {_quoted(decision.owner)}"
    if decision.accepted:
        yield f"accepted: {decision.accepted.isoformat()}"
    if decision.until:
        yield f"until: {decision.until.isoformat()}"


def _parts(entry: NumberEntry, folder: str) -> Iterator[str]:
    if entry.git is not None:
        yield f"git: {entry.git}"
    if entry.foreign and entry.path:
        yield f"foreign: {scalar(entry.path.removeprefix(f'{folder}/' if folder else ''))}"
        yield f"type: {entry.foreign.type.name}"
        if entry.foreign.properties:
            written = sorted(entry.foreign.properties.items())
            yield f"properties: {{{', '.join(f'{_quoted(key)}: {_quoted(value)}' for key, value in written)}}}"
    if entry.deleted:
        yield "deleted: true"
    yield from _decision(entry.decision)


def _quoted(text: str) -> str:
    """Return a text in quotes; half a surrogate pair, which has no UTF-8, becomes a question mark."""
    plain = text.encode(errors="replace").decode()
    written = scalar(plain)
    return written if written.startswith('"') else f'"{written}"'


def _placed(numbers: TargetNumbers, name: TopicName, entry: NumberEntry) -> NumberEntry:
    """Return the entry with the path of its foreign definition, a new one where it has none yet."""
    if entry.foreign is None or entry.path:
        return entry
    parts = (numbers.target, name.tenant, name.namespace, name.topic)
    label = ".".join(parts[1:])
    if not all(map(_PLAIN.fullmatch, parts[1:])) or name.domain != "persistent":
        # Names that a file system may take for one another, or not take at all.
        label = f"{re.sub('[^A-Za-z0-9_-]+', '_', name.topic)[:60]}-{hashlib.sha256(str(name).encode()).hexdigest()[:12]}"
    target = (
        numbers.target
        if _PLAIN.fullmatch(numbers.target)
        else hashlib.sha256(numbers.target.encode()).hexdigest()[:12]
    )
    content = hashlib.sha256(entry.foreign.schema).hexdigest()[:8]
    file = f"foreign/{target}/{label}-{entry.number}-{content}{_suffix(entry.foreign)}"
    return replace(entry, path=posixpath.join(posixpath.dirname(numbers.path), file))


def _suffix(info: SchemaInfo) -> str:
    return ".bin" if spec(info).language == "pair" and not _pair_text(info) else spec(info).suffix


def _content(info: SchemaInfo, path: str) -> bytes:
    if spec(info).language == "pair" and not path.endswith(".bin"):
        return _pair_text(info)
    return info.schema


def _pair_text(info: SchemaInfo) -> bytes:
    """Return the admin API's text of a definition; nothing where that would not restore its bytes."""
    try:
        text = spec(info).text(info) or ""
        same = spec(info).from_text(info.type, text, info.properties).schema == info.schema
        return text.encode() if same else b""
    except (InvalidSchema, ValueError):
        return b""


def _write(top: Path, path: str, data: bytes) -> None:
    try:
        atomic_files.write(top / path, data, below=str(top))
    except OSError as error:
        raise SchemactlError(
            f"{shown(path)} cannot be written: {error.strerror}", fix="run it again once it can be"
        ) from error


def accept(
    git: Sequence[SchemaVersion],
    entries: Sequence[SchemaVersion],
    before: TopicNumbers | None,
    decision: AcceptanceReason,
) -> TopicNumbers | None:
    """Return the record of what a registry holds of a topic; None if its numbers are Git's.

    The record lists every number that is not Git's, and the last number, so that later ones count from there. A number that the
    registry does not show is recorded as deleted, without its meaning so far: the list may have begun anew. An entry that is
    still right stays as it is.

    Args:
        git: Git's versions.
        entries: the registry's list, in order of number, tombstones among them.
        before: the record so far.
        decision: why it is accepted; it does not expire.
    """
    old = before.entries if before else {}
    known, ended = Generations(git), last_tombstone(git)
    readable = {entry.number for entry in live(entries)}
    found: dict[int, NumberEntry] = {}
    for entry in entries:
        number = entry.number
        version = known.find(entry)
        # Of an earlier generation in Git, too.
        has_ended = number <= ended and number not in readable and number not in old
        new = NumberEntry(
            number,
            git=number if has_ended else version.number if version else None,
            foreign=unstamped(entry.info) if entry.info and not version and not has_ended else None,
            deleted=number not in readable and not has_ended,
            reason=decision.reason,
            accepted=decision.accepted,
            owner=decision.owner,
        )
        still = number in old and old[number].deleted == new.deleted and _holds(old[number], entry, known)
        found[number] = old[number] if still else new
    listed = {number: each for number, each in found.items() if each.git != number or each.deleted}
    if not listed:
        return None
    last = max(found)
    return TopicNumbers(dict(sorted({**listed, last: found[last]}.items())))


def _holds(old: NumberEntry, entry: SchemaVersion, known: Generations) -> bool:
    """Return whether the recorded meaning of a number is still right; a foreign version may have been approved since."""
    if entry.info is None:
        return True
    if old.foreign:
        return content_identity(old.foreign) == content_identity(entry.info)
    found = known.find(entry)
    return found is not None and found.number == old.git
