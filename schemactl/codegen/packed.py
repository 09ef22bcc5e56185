"""A generated package that needs no schemactl: with its run-time and licence, as a zip or as a wheel without a build backend.

Wheels: packaging.python.org/specifications/binary-distribution-format.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.codegen.approved import Approved
from schemactl.codegen.names import CLASSES, RUNTIME
from schemactl.codegen.package import exports
from schemactl.codegen.topic_module import HEADER
from schemactl.core import environment
from schemactl.core.environment import DISTRIBUTION
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.schema import Commit
from schemactl.formats import pair_of, spec

LICENSE: Final = "LICENSE"

_TAG: Final = "py3-none-any"

_VERSION: Final = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)
"""The normal form of packaging.python.org/specifications/version-specifiers: nothing else may stand in a file's name."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._]*[A-Za-z0-9])?")

_COPY: Final = f"# A copy, under the licence in {RUNTIME}/{LICENSE}.\n"

_ONLY_FOR: Final = {"json": "json", "proto": "protobuf"}
"""How names of the codec's modules begin that are for one kind of payload alone."""


class Wheel(NamedTuple):
    """A wheel: its file's name, and the text of each file in it by its path, in order."""

    name: str
    files: Mapping[str, str]


def complete(files: Mapping[str, str], package: str, topics: Iterable[Approved]) -> Mapping[str, str]:
    """Return the files of the package with the modules of schemactl that it uses, and their licence.

    Raises SchemactlError: somebody took away the licence that this installation came with.
    """
    root = f"{package.replace('.', '/')}/{RUNTIME}"
    modules = run_time("generated.py", payloads=_payloads(topics))
    runtime = {f"{root}/{path}": f"{HEADER}{_COPY if text else ''}{text}" for path, text in modules.items()}
    runtime[f"{root}/__init__.py"] = exports(f"{package}.{RUNTIME}.generated")
    runtime[f"{root}/{LICENSE}"] = _license()
    return dict(sorted({**{name: files[name] for name in files if name != f"{root}.py"}, **runtime}.items()))


def commits(topics: Iterable[Approved]) -> str:
    """Return `versions.json`: of every version of every topic the commit that brought it, and its time in UTC."""
    found = {
        str(one.topic.name): {
            str(each.number): {"commit": each.commit.id, "time": _utc(each.commit).isoformat()}
            for each in one.read
            if each.commit
        }
        for one in topics
    }
    return json.dumps(found, indent=2, sort_keys=True) + "\n"


def version_at(tip: Commit) -> str:
    """Return the version of a package generated from the history up to `tip`: the commit's date and time in UTC, so that later is newer.

    22:05:09 on the first of March 2026 makes 2026.3.1.220509.
    """
    when = _utc(tip)
    return f"{when.year}.{when.month}.{when.day}.{int(when.strftime('%H%M%S'))}"


def wheel(
    files: Mapping[str, str],
    package: str,
    topics: Iterable[Approved],
    *,
    tip: Commit | None,
    version: str = "",
) -> Wheel:
    """Return the package's files with what makes a wheel of them; the same input, the same text.

    Args:
        files: of the complete package.
        package: its importable name; the distribution has the same.
        topics: what the package has modules for.
        tip: the newest commit that counts; None: there is none, or the package has what is not approved yet.
        version: of the distribution; by default `version_at(tip)`.

    Raises:
        UsageError: `version` is no version in its normal form, or there is no commit to make one of.
        SchemactlError: the package's name cannot be a distribution's.
    """
    if not version:
        if tip is None:
            raise UsageError(
                "the wheel's version would be the time of the approved tip, and the files here bring what is not approved yet",
                fix="merge it first, or give --wheel-version, such as 1.4.0.dev1",
            )
        version = version_at(tip)
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a version of a Python package: write it as 1.4.0 or 2026.3.1")
    if not _NAME.fullmatch(package):
        raise SchemactlError(
            f"generate.package is {package!r}, which is not a valid name for a wheel",
            fix="begin and end it with an ASCII letter or digit, with only `_` and `.` between such",
        )
    stem = f"{re.sub('[._]+', '_', package).lower()}-{version}"
    info = f"{stem}.dist-info"
    has_models = any(
        f"/{CLASSES}/" in path and "\nfrom pydantic import " in text for path, text in files.items()
    )
    described = {
        f"{info}/METADATA": _metadata(package, version, topics, has_models=has_models),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: schemactl {environment.version()}\n"
            f"Root-Is-Purelib: true\nTag: {_TAG}\n"
        ),
    }
    held = {**files, **described}
    record = "".join(f"{path},{_digest(text)},{len(text.encode())}\n" for path, text in held.items())
    return Wheel(f"{stem}-{_TAG}.whl", {**held, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"})


def run_time(*modules: str, payloads: Collection[str] = tuple(_ONLY_FOR.values())) -> Mapping[str, str]:
    """Return those modules of schemactl and what they import, directly or not, for those kinds of payloads.

    Both have paths below schemactl, such as `spark/landing.py`. A package has an empty `__init__.py`, if nothing needs its own.
    """
    source = Path(__file__).parent.parent
    found: dict[str, str] = {}
    waiting = [*modules]
    while waiting:
        path = waiting.pop()
        kind = _ONLY_FOR.get(Path(path).name.partition("_")[0])
        if path in found or (kind and kind not in payloads):
            continue
        found[path] = (source / path).read_text(encoding="utf-8")
        waiting += _imports(source, path, found[path])
    folders = {Path(path).parent.as_posix() for path in found} - {"."}
    return dict.fromkeys((f"{folder}/__init__.py" for folder in folders), "") | found


def _imports(source: Path, path: str, text: str) -> Iterator[str]:
    """Yield the files from which a module imports something, also on use, as paths below `source`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = Path(path).parents[node.level - 1] / (node.module or "").replace(".", "/")
            files = [folder.with_suffix(".py"), *(folder / f"{each.name}.py" for each in node.names)]
            # What the name of a package itself imports is that package's `__init__`; a module below it does without.
            if any(not (source / file).is_file() for file in files[1:]):
                files.append(folder / "__init__.py")
            yield from (file.as_posix() for file in files if file.name != ".py" and (source / file).is_file())


def _license() -> str:
    """Return the licence that this installation came with. Raises SchemactlError: somebody took it away."""
    text = metadata.distribution(DISTRIBUTION).read_text(f"licenses/{LICENSE}")
    if text is None:
        raise SchemactlError(
            "this installation of schemactl lacks its licence file, which a copy of the run-time must include",
            fix=f"pip install --force-reinstall {DISTRIBUTION}",
        )
    return text


def _metadata(package: str, version: str, topics: Iterable[Approved], *, has_models: bool) -> str:
    approved = sorted(topics, key=lambda one: one.topic.name)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {re.sub('[._]+', '-', package).lower()}",
        f"Version: {version}",
        "Summary: Codecs and Spark types of Pulsar topics",
        f"Requires-Python: {metadata.metadata(DISTRIBUTION)['Requires-Python']}",
    ]
    needed, extras = _required("codec"), ["spark"]
    needed += [name for name in _required("") if has_models and name.startswith("pydantic")]
    if "protobuf" in _payloads(approved):
        # Reading needs no compiler, which the extra has for declarations.
        needed += [name for name in _required("proto") if re.match(r"protobuf\b", name)]
        extras.append("ptars")
    lines += [f"Requires-Dist: {name}" for name in needed]
    for extra in extras:
        lines.append(f"Provides-Extra: {extra}")
        wanted = (name for name in _required(extra) if not name.startswith(DISTRIBUTION))
        lines += [f'Requires-Dist: {name}; extra == "{extra}"' for name in wanted]
    return "\n".join(lines) + "\n\n" + "".join(f"* {one.topic.name}\n" for one in approved)


def _required(extra: str) -> list[str]:
    """Return what an extra of schemactl asks for; "": schemactl itself."""
    found = (text.partition(";") for text in metadata.requires(DISTRIBUTION) or ())
    wanted = f'extra == "{extra}"' if extra else ""
    return [name.strip() for name, _, marker in found if marker.replace("'", '"').strip() == wanted]


def _payloads(topics: Iterable[Approved]) -> set[str]:
    """Return the kinds of payloads of all versions of the topics."""
    infos = [each.info for one in topics for each in (*one.versions, *one.read) if each.info]
    pairs = [(info, pair_of(info)) for info in infos]
    return {spec(half).payload for info, both in pairs for half in (both.halves.values() if both else [info])}


def _utc(commit: Commit) -> datetime:
    return datetime.fromtimestamp(commit.time_s, UTC)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
