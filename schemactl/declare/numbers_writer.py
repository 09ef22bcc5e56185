"""Record the version numbers of a target, and write its numbers file."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from schemactl.comparison.changes import Generations, content_identity, last_tombstone, remove_upload_properties
from schemactl.core import atomic_files
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.escaping import escape_path
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions
from schemactl.core.wording import format_policies
from schemactl.declare.files import WorktreeFiles
from schemactl.declare.numbers_file import BROKERS
from schemactl.declare.target_numbers import Acceptance, AcceptanceReason, NumberEntry, TargetNumbers, TopicNumbers
from schemactl.declare.yaml_parser import scalar
from schemactl.formats import spec

_HEADER: Final = """\
# The version that each number of {target} means, where it differs from Git's, and other accepted differences. `schemactl drift
# --target {target} --accept` writes this file; the file at the tip of the approved ref counts.
"""
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")


def write_numbers(numbers: TargetNumbers, top: Path) -> list[str]:
    """Write the numbers file, and missing foreign definitions, below `top`; return their paths, relative to `top`.

    The definitions are written first, so that the file never names a missing definition.

    Raises:
        SchemactlError: if a path leads through a link, or cannot be written.
    """
    files = WorktreeFiles(str(top))
    top = top.resolve()
    topics = {
        name: TopicNumbers({number: _add_path(numbers, name, entry) for number, entry in recorded.entries.items()})
        for name, recorded in sorted(numbers.topics.items())
    }
    written_paths = []
    for recorded in topics.values():
        for entry in recorded.entries.values():
            if entry.foreign and entry.path:
                is_text = spec(entry.foreign).language == "pair" and not entry.path.endswith(".bin")
                data = _encode_pair_text(entry.foreign) if is_text else entry.foreign.schema
                if files.kind(entry.path) != "file" or files.read(entry.path) != data:
                    _write(top, entry.path, data)
                    written_paths.append(entry.path)
    text = numbers_text(replace(numbers, topics=topics))
    _write(top, numbers.path, text.encode())
    return [*written_paths, numbers.path]


def numbers_text(numbers: TargetNumbers) -> str:
    """Render the numbers file, with a line for each number."""
    lines = [_HEADER.format(target=escape_path(numbers.target))]
    folder = posixpath.dirname(numbers.path)
    if numbers.brokers:
        lines += [f"{BROKERS}:\n", *(f"  {line}\n" for line in _format_acceptance(numbers.brokers))]
    for name in sorted({*numbers.topics, *numbers.accepted}, key=str):
        lines.append(f"{scalar(str(name))}:\n")
        recorded = numbers.topics.get(name) if isinstance(name, TopicName) else None
        for number, entry in recorded.entries.items() if recorded else ():
            lines.append(f"  {number}: {{{', '.join(_format_entry(entry, folder))}}}\n")
        if accepted := numbers.accepted.get(name):
            lines += [f"  {line}\n" for line in _format_acceptance(accepted)]
    return "".join(lines)


def _format_acceptance(acceptance: Acceptance) -> Iterator[str]:
    if acceptance.unmanaged:
        yield "unmanaged: true"
    if acceptance.undeclarable:
        yield f"undeclarable: {acceptance.undeclarable}"
    if acceptance.schemas_digest:
        yield f'fingerprint: "{acceptance.schemas_digest}"'
    if policies := format_policies(acceptance.policies):
        yield f"policies: {{{', '.join(f'{policy}: {value}' for policy, value in policies.items())}}}"
    if acceptance.checkers:
        checkers = (f"{scalar(name)}: {str(is_listed).lower()}" for name, is_listed in acceptance.checkers.items())
        yield f"checkers: {{{', '.join(checkers)}}}"
    yield from _format_reason(acceptance.decision)


def _format_reason(decision: AcceptanceReason) -> Iterator[str]:
    if decision.reason:
        yield f"reason: {_quote_yaml(decision.reason)}"
    if decision.owner:
        yield f"owner: {_quote_yaml(decision.owner)}"
    if decision.accepted:
        yield f"accepted: {decision.accepted.isoformat()}"
    if decision.until:
        yield f"until: {decision.until.isoformat()}"


def _format_entry(entry: NumberEntry, folder: str) -> Iterator[str]:
    if entry.git is not None:
        yield f"git: {entry.git}"
    if entry.foreign and entry.path:
        yield f"foreign: {scalar(entry.path.removeprefix(f'{folder}/' if folder else ''))}"
        yield f"type: {entry.foreign.type.name}"
        if entry.foreign.properties:
            properties = sorted(entry.foreign.properties.items())
            yield f"properties: {{{', '.join(f'{_quote_yaml(key)}: {_quote_yaml(value)}' for key, value in properties)}}}"
    if entry.deleted:
        yield "deleted: true"
    yield from _format_reason(entry.decision)


def _quote_yaml(text: str) -> str:
    """Quote a text. A lone surrogate, which UTF-8 cannot encode, becomes a question mark."""
    written = scalar(text.encode(errors="replace").decode())
    return written if written.startswith('"') else f'"{written}"'


def _add_path(numbers: TargetNumbers, name: TopicName, entry: NumberEntry) -> NumberEntry:
    """Return the entry with a path for its foreign definition, if it has one without a path."""
    if entry.foreign is None or entry.path:
        return entry
    parts = (numbers.target, name.tenant, name.namespace, name.topic)
    label = ".".join(parts[1:])
    if not all(map(_PLAIN.fullmatch, parts[1:])) or name.domain != "persistent":
        # A file system may reject such names, or treat two of them as equal.
        label = (
            f"{re.sub('[^A-Za-z0-9_-]+', '_', name.topic)[:60]}-{hashlib.sha256(str(name).encode()).hexdigest()[:12]}"
        )
    target = (
        numbers.target if _PLAIN.fullmatch(numbers.target) else hashlib.sha256(numbers.target.encode()).hexdigest()[:12]
    )
    content = hashlib.sha256(entry.foreign.schema).hexdigest()[:8]
    is_binary = spec(entry.foreign).language == "pair" and not _encode_pair_text(entry.foreign)
    suffix = ".bin" if is_binary else spec(entry.foreign).suffix
    file = f"foreign/{target}/{label}-{entry.number}-{content}{suffix}"
    return replace(entry, path=posixpath.join(posixpath.dirname(numbers.path), file))


def _encode_pair_text(info: SchemaInfo) -> bytes:
    """Return the admin API's text of a definition, or b"" if reading this text would give other bytes."""
    try:
        text = spec(info).to_text(info) or ""
        restores_bytes = spec(info).from_text(info.type, text, info.properties).schema == info.schema
        return text.encode() if restores_bytes else b""
    except (InvalidSchema, ValueError):
        return b""


def _write(top: Path, path: str, data: bytes) -> None:
    try:
        atomic_files.write(top / path, data, below=str(top))
    except OSError as error:
        raise SchemactlError(
            f"{escape_path(path)} cannot be written: {error.strerror}", fix="run it again once it can be"
        ) from error


def record_versions(
    git: Sequence[SchemaVersion],
    entries: Sequence[SchemaVersion],
    before: TopicNumbers | None,
    decision: AcceptanceReason,
) -> TopicNumbers | None:
    """Record the versions that a registry has of a topic, or return None if its numbers equal Git's.

    The record lists every number that differs from Git's, and the last number, so that later ones count from there. A number that
    the registry does not show is recorded as deleted, without its earlier meaning, because the list may have restarted. An entry
    that is still right does not change.

    Args:
        git: Git's versions.
        entries: the registry's list in order of number, including tombstones.
        before: the current record.
        decision: why it is accepted; it does not expire.
    """
    old = before.entries if before else {}
    generations, last_tombstone_number = Generations(git), last_tombstone(git)
    readable = {entry.number for entry in get_live_versions(entries)}
    new_entries: dict[int, NumberEntry] = {}
    for entry in entries:
        number = entry.number
        version = generations.find(entry)
        # The version belongs to an earlier generation in the registry and in Git.
        has_ended = number <= last_tombstone_number and number not in readable and number not in old
        new = NumberEntry(
            number,
            git=number if has_ended else version.number if version else None,
            foreign=remove_upload_properties(entry.info) if entry.info and not version and not has_ended else None,
            deleted=number not in readable and not has_ended,
            reason=decision.reason,
            accepted=decision.accepted,
            owner=decision.owner,
        )
        is_still_right = (
            number in old and old[number].deleted == new.deleted and _has_same_meaning(old[number], entry, generations)
        )
        new_entries[number] = old[number] if is_still_right else new
    listed = {number: entry for number, entry in new_entries.items() if entry.git != number or entry.deleted}
    if not listed:
        return None
    last = max(new_entries)
    return TopicNumbers(dict(sorted({**listed, last: new_entries[last]}.items())))


def _has_same_meaning(old: NumberEntry, entry: SchemaVersion, generations: Generations) -> bool:
    """Return whether the recorded meaning of a number is still right; a foreign version may have been approved since."""
    if entry.info is None:
        return True
    if old.foreign:
        return content_identity(old.foreign) == content_identity(entry.info)
    version = generations.find(entry)
    return version is not None and version.number == old.git
