"""Complete a package with its run-time, and describe it as a wheel.

Wheels follow packaging.python.org/specifications/binary-distribution-format.
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

from schemactl.codegen.generated_text import HEADER, render_runtime_import
from schemactl.codegen.module_paths import CLASSES, RUNTIME
from schemactl.codegen.topics import PackageTopic
from schemactl.core import environment
from schemactl.core.environment import DISTRIBUTION
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.schema import Commit
from schemactl.formats import get_parts, spec

LICENSE: Final = "LICENSE"

_TAG: Final = "py3-none-any"

_VERSION: Final = re.compile(r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?")
"""The normal form of packaging.python.org/specifications/version-specifiers, the only form allowed in a file's name."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._]*[A-Za-z0-9])?")

_COPY: Final = f"# A copy, under the licence in {RUNTIME}/{LICENSE}.\n"

_PAYLOADS_BY_PREFIX: Final = {"json": "json", "proto": "protobuf"}
"""Prefixes of the codec's modules for one kind of payload, with the payload."""


class Wheel(NamedTuple):
    """A wheel: the name of its file, and the texts of the files in it by path, in order."""

    name: str
    files: Mapping[str, str]


def complete(files: Mapping[str, str], package: str, topics: Iterable[PackageTopic]) -> Mapping[str, str]:
    """Return the files of the package with the modules of schemactl that it uses, and their license.

    Args:
        files: the files of the package.
        package: its importable name.
        topics: the topics of the package, whose kinds of payloads decide on the modules.

    Raises:
        SchemactlError: if the license is missing in this installation.
    """
    root = f"{package.replace('.', '/')}/{RUNTIME}"
    modules = read_runtime_modules("generated.py", payloads=_list_payloads(topics))
    runtime = {f"{root}/{path}": f"{HEADER}{_COPY if text else ''}{text}" for path, text in modules.items()}
    runtime[f"{root}/__init__.py"] = render_runtime_import(f"{package}.{RUNTIME}.generated")
    license_text = metadata.distribution(DISTRIBUTION).read_text(f"licenses/{LICENSE}")
    if license_text is None:
        raise SchemactlError(
            "this installation of schemactl lacks its license file, which a copy of the run-time must include",
            fix=f"pip install --force-reinstall {DISTRIBUTION}",
        )
    runtime[f"{root}/{LICENSE}"] = license_text
    others = {name: text for name, text in files.items() if name != f"{root}.py"}
    return dict(sorted((others | runtime).items()))


def render_commits(topics: Iterable[PackageTopic]) -> str:
    """Return `versions.json`: for each version of each topic, the commit that introduced it, and its time in UTC."""
    commits_by_topic = {
        str(topic.topic.name): {
            str(version.number): {"commit": version.commit.id, "time": _to_utc(version.commit).isoformat()}
            for version in topic.versions
            if version.commit
        }
        for topic in topics
    }
    return json.dumps(commits_by_topic, indent=2, sort_keys=True) + "\n"


def version_at(tip: Commit) -> str:
    """Return the version of a package generated from the history up to `tip`: the commit's date and time in UTC.

    A later commit has a newer version: 22:05:09 on the first of March 2026 makes 2026.3.1.220509.
    """
    when = _to_utc(tip)
    return f"{when.year}.{when.month}.{when.day}.{int(when.strftime('%H%M%S'))}"


def make_wheel(
    files: Mapping[str, str], package: str, topics: Iterable[PackageTopic], *, tip: Commit | None, version: str = ""
) -> Wheel:
    """Return the package's files and metadata as a wheel; equal input makes equal text.

    Args:
        files: the files of the complete package.
        package: its importable name, which is also the distribution's.
        topics: the topics of the package.
        tip: the newest approved commit, or None without one or if the package has versions that are not approved yet.
        version: the distribution's version, by default `version_at(tip)`.

    Raises:
        UsageError: if `version` is not a version in its normal form, or there is no commit for the default.
        SchemactlError: if the package's name cannot be the name of a distribution.
    """
    if not version:
        if tip is None:
            raise UsageError(
                "the wheel's version would be the time of the approved tip, and the files here add content that is not approved yet",
                fix="merge it first, or give --wheel-version, such as 1.4.0.dev1",
            )
        version = version_at(tip)
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a version of a Python package: write it as 1.4.0 or 2026.3.1")
    if not _NAME.fullmatch(package):
        raise SchemactlError(
            f"generate.package is {package!r}, which is not a valid name for a wheel",
            fix="begin and end it with an ASCII letter or digit, and use only letters, digits, `_` and `.` in between",
        )
    stem = f"{re.sub('[._]+', '_', package).lower()}-{version}"
    info = f"{stem}.dist-info"
    has_models = any(f"/{CLASSES}/" in path and "\nfrom pydantic import " in text for path, text in files.items())
    metadata_files = {
        f"{info}/METADATA": _make_metadata(package, version, topics, has_models=has_models),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: schemactl {environment.get_version()}\nRoot-Is-Purelib: true\nTag: {_TAG}\n"
        ),
    }
    all_files = {**files, **metadata_files}
    record = ""
    for path, text in all_files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    return Wheel(f"{stem}-{_TAG}.whl", {**all_files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"})


def read_runtime_modules(
    *modules: str, payloads: Collection[str] = tuple(_PAYLOADS_BY_PREFIX.values())
) -> Mapping[str, str]:
    """Return the texts of modules of schemactl and of the modules that they import, directly or not.

    A package without a needed `__init__.py` gets an empty one.

    Args:
        modules: paths below schemactl, such as `spark/landing.py`; the keys of the result are such paths as well.
        payloads: the kinds of payloads; modules for other kinds are left out.
    """
    source = Path(__file__).parent.parent
    texts: dict[str, str] = {}
    pending = [*modules]
    while pending:
        path = pending.pop()
        payload = _PAYLOADS_BY_PREFIX.get(Path(path).name.partition("_")[0])
        if path in texts or (payload and payload not in payloads):
            continue
        texts[path] = (source / path).read_text(encoding="utf-8")
        pending += _find_imports(source, path, texts[path])
    folders = {Path(path).parent.as_posix() for path in texts} - {"."}
    return dict.fromkeys((f"{folder}/__init__.py" for folder in folders), "") | texts


def _find_imports(source: Path, path: str, text: str) -> Iterator[str]:
    """Yield the files that a module imports, at its start or on use, as paths below `source`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = Path(path).parents[node.level - 1] / (node.module or "").replace(".", "/")
            files = [folder.with_suffix(".py"), *(folder / f"{alias.name}.py" for alias in node.names)]
            # A name that is not a module comes from the package's `__init__`, which modules below it do not need.
            if any(not (source / file).is_file() for file in files[1:]):
                files.append(folder / "__init__.py")
            yield from (file.as_posix() for file in files if file.name != ".py" and (source / file).is_file())


def _make_metadata(package: str, version: str, topics: Iterable[PackageTopic], *, has_models: bool) -> str:
    topics = sorted(topics, key=lambda topic: topic.topic.name)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {re.sub('[._]+', '-', package).lower()}",
        f"Version: {version}",
        "Summary: Codecs and Spark types of Pulsar topics",
        f"Requires-Python: {metadata.metadata(DISTRIBUTION)['Requires-Python']}",
    ]
    requirements, extras = _list_requirements("codec"), ["spark"]
    requirements += [name for name in _list_requirements("") if has_models and name.startswith("pydantic")]
    if "protobuf" in _list_payloads(topics):
        # Reading does not need the compiler, which the extra includes for declarations.
        requirements += [name for name in _list_requirements("proto") if re.match(r"protobuf\b", name)]
        extras.append("ptars")
    lines += [f"Requires-Dist: {name}" for name in requirements]
    for extra in extras:
        lines.append(f"Provides-Extra: {extra}")
        of_extra = (name for name in _list_requirements(extra) if not name.startswith(DISTRIBUTION))
        lines += [f'Requires-Dist: {name}; extra == "{extra}"' for name in of_extra]
    return "\n".join(lines) + "\n\n" + "".join(f"* {topic.topic.name}\n" for topic in topics)


def _list_requirements(extra: str) -> list[str]:
    """Return the requirements of an extra of schemactl, or of schemactl itself for ""."""
    requirements = (text.partition(";") for text in metadata.requires(DISTRIBUTION) or ())
    extra_marker = f'extra == "{extra}"' if extra else ""
    return [name.strip() for name, _, marker in requirements if marker.replace("'", '"').strip() == extra_marker]


def _list_payloads(topics: Iterable[PackageTopic]) -> set[str]:
    """Return the kinds of payloads of all versions of the topics."""
    payloads: set[str] = set()
    for topic in topics:
        for version in (
            *topic.versions,
            *(version for on_target in topic.on_targets for version in on_target.versions),
        ):
            if version.info:
                payloads |= {spec(part).payload for part in get_parts(version.info).values()}
    return payloads


def _to_utc(commit: Commit) -> datetime:
    return datetime.fromtimestamp(commit.time_s, UTC)
