"""A generated package as a wheel (packaging.python.org/specifications/binary-distribution-format), without a build backend."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Final, NamedTuple

from schemactl import installation
from schemactl.codegen.approved import Approved
from schemactl.codegen.topic_struct import protobuf_of
from schemactl.errors import SchemactlError, UsageError
from schemactl.formats import pair_of
from schemactl.installation import DISTRIBUTION
from schemactl.model import Commit, SchemaInfo

_TAG: Final = "py3-none-any"

_VERSION: Final = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)
"""The normal form of packaging.python.org/specifications/version-specifiers: nothing else may stand in a file's name."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._]*[A-Za-z0-9])?")

_OPTIONAL: Final = ("spark", "pulsar", "ptars")
"""Extras of schemactl that parts of the run-time need, which the wheel has, too."""


class Wheel(NamedTuple):
    """A wheel: its file's name, and the text of each file in it by its path, in order."""

    name: str
    files: Mapping[str, str]


def version_at(tip: Commit) -> str:
    """Return the version of a package generated from the history up to `tip`: the commit's date and time in UTC, so that later is newer.

    22:05:09 on the first of March 2026 makes 2026.3.1.220509.
    """
    when = datetime.fromtimestamp(tip.time_s, UTC)
    return f"{when.year}.{when.month}.{when.day}.{int(when.strftime('%H%M%S'))}"


def wheel(
    files: Mapping[str, str],
    package: str,
    topics: Iterable[Approved],
    *,
    tip: Commit,
    version: str = "",
    vendor: bool,
) -> Wheel:
    """Return the package's files with what makes a wheel of them; the same input, the same text.

    Args:
        files: of the package.
        package: its importable name; the distribution has the same.
        topics: what the package has modules for.
        tip: the newest commit that counts.
        version: of the distribution; by default `version_at(tip)`.
        vendor: the package carries the run-time with it.

    Raises:
        UsageError: `version` is no version in its normal form.
        SchemactlError: the package's name cannot be a distribution's.
    """
    version = version or version_at(tip)
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a version of a Python package: write it as 1.4.0 or 2026.3.1")
    if not _NAME.fullmatch(package):
        raise SchemactlError(
            f"generate.package is {package!r}, which is not a valid name for a wheel",
            fix="begin and end it with an ASCII letter or digit, with only `_` and `.` between such",
        )
    stem = f"{re.sub('[._]+', '_', package).lower()}-{version}"
    info = f"{stem}.dist-info"
    described = {
        f"{info}/METADATA": _metadata(package, version, topics, tip, vendor=vendor),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: schemactl {installation.version()}\n"
            f"Root-Is-Purelib: true\nTag: {_TAG}\n"
        ),
    }
    held = {**files, **described}
    record = "".join(f"{path},{_digest(text)},{len(text.encode())}\n" for path, text in held.items())
    return Wheel(f"{stem}-{_TAG}.whl", {**held, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"})


def _metadata(package: str, version: str, topics: Iterable[Approved], tip: Commit, *, vendor: bool) -> str:
    approved = sorted(topics, key=lambda one: one.topic.name)
    own = metadata.metadata(DISTRIBUTION)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {re.sub('[._]+', '-', package).lower()}",
        f"Version: {version}",
        "Summary: Codecs and Spark types of Pulsar topics",
        f"Requires-Python: {own['Requires-Python']}",
    ]
    needed = _required("codec") if vendor else [f"{DISTRIBUTION}[codec]>={own['Version']}"]
    if any(_is_protobuf(found.info) for one in approved for found in (*one.versions, *one.read)):
        # Reading needs no compiler, which the extra has for declarations.
        needed += [name for name in _required("proto") if re.match(r"protobuf\b", name)]
    lines += [f"Requires-Dist: {name}" for name in needed]
    for extra in _OPTIONAL:
        lines.append(f"Provides-Extra: {extra}")
        wanted = _required(extra) if vendor else [f"{DISTRIBUTION}[{extra}]"]
        lines += [f'Requires-Dist: {name}; extra == "{extra}"' for name in wanted if name not in needed]
    body = "".join(f"* {one.topic.name}\n" for one in approved)
    return "\n".join(lines) + f"\n\nAs of commit {tip.id}:\n\n{body}"


def _required(extra: str) -> list[str]:
    """Return what an extra of schemactl asks for."""
    found = (text.partition(";") for text in metadata.requires(DISTRIBUTION) or ())
    return [
        name.strip() for name, _, marker in found if marker.replace("'", '"').strip() == f'extra == "{extra}"'
    ]


def _is_protobuf(info: SchemaInfo | None) -> bool:
    if info is None:
        return False
    if both := pair_of(info):
        return _is_protobuf(both.key) or _is_protobuf(both.value)
    return protobuf_of(info) is not None


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
