"""The generated package: the module of each topic, its row types, and the files as a folder, a zip or a wheel.

Wheels: packaging.python.org/specifications/binary-distribution-format.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import itertools
import json
import keyword
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.codegen.class_module import topic_classes
from schemactl.codegen.spark_types import (
    PYTHON_TYPES,
    Atomic,
    Decimal,
    SparkArray,
    SparkField,
    SparkMap,
    SparkType,
    Struct,
    UnsupportedBySpark,
    columns_ddl,
    literal,
    to_block_literal,
)
from schemactl.codegen.topic_struct import StructOptions, former_names, struct_of, value_of
from schemactl.codegen.topics import CLASSES, RUNTIME, SCHEMAS, Approved, info_of, is_importable, module_paths
from schemactl.core import atomic_files, environment
from schemactl.core.environment import DISTRIBUTION
from schemactl.core.errors import InvalidSchema, SchemactlError, UsageError
from schemactl.core.json_values import laid_out
from schemactl.core.project import Generate
from schemactl.core.schema import Commit, Release, SchemaInfo
from schemactl.formats import pair_of, spec
from schemactl.formats.avro import json_text as avro_text
from schemactl.formats.primitive import CHARSET

# Row types: a TypedDict for each record, as `decode_one` gives them and `encode_one` takes them


_MODULES: Final = {
    "datetime": ("date", "datetime", "time", "timedelta"),
    "decimal": ("Decimal",),
    "typing": ("Any", "Literal", "TypedDict"),
}
"""Where the types come from that need an import."""

_TAKEN: Final = {
    *PYTHON_TYPES.values(),
    *("Any", "Decimal", "Literal", "TypedDict", "dict", "list", "annotations"),
    *("KeyValue", "Numbers", "Options", "SCHEMA", "Schema", "Topic"),
}
"""Names of a module that no record takes."""


class RowTypes:
    """The types of one module.

    Attributes:
        definitions: the text of each record's TypedDict, in an order in which all that one uses stands before it.
    """

    def __init__(self, taken: str) -> None:
        """Leave out the name `taken`, which the module gives something else."""
        self.definitions: list[str] = []
        self._names: dict[str, str] = {}
        self._used: set[str] = set()
        self._taken = {*_TAKEN, taken}

    def of(self, spark_type: SparkType, *, nullable: bool, place: str = "Row") -> str:
        """Return the type of a value; `place` names a record that has no name of its own."""
        found = self._of(spark_type, place)
        return f"{found} | None" if nullable and found != "None" else found

    def imports(self) -> str:
        """Return the lines that import what the types need."""
        used = {*self._used, *(["TypedDict"] if self.definitions else [])}
        chosen = {module: [name for name in names if name in used] for module, names in _MODULES.items()}
        return "".join(f"from {module} import {', '.join(names)}\n" for module, names in chosen.items() if names)

    def use(self, name: str) -> str:
        """Return `name`, which will be imported."""
        self._used.add(name)
        return name

    def _of(self, spark_type: SparkType, place: str) -> str:
        match spark_type:
            case Atomic(symbols=symbols) if symbols:
                return f"{self.use('Literal')}[{', '.join(map(literal, symbols))}]"
            case Atomic(name):
                return self.use(PYTHON_TYPES[name])
            case Decimal(is_int=is_int):
                return self.use("int" if is_int else "Decimal")
            case SparkArray(element, contains_null):
                return f"list[{self.of(element, nullable=contains_null, place=place)}]"
            case SparkMap(value, contains_null, key):
                return f"dict[{self._of(key, place)}, {self.of(value, nullable=contains_null, place=place)}]"
            case Struct(fields):
                return self._record(spark_type, fields, place)

    def _record(self, record: Struct, fields: tuple[SparkField, ...], place: str) -> str:
        # Records are equal whatever they are called; here names count, at every depth.
        key = repr(record)
        if key not in self._names:
            name = self._new_name(record.name or place)
            types = {
                each.name: self.of(each.type, nullable=each.nullable, place=f"{name}_{each.name}") for each in fields
            }
            self._names[key] = name
            self.definitions.append(self._definition(name, types))
        return self._names[key]

    def _new_name(self, wanted: str) -> str:
        parts = re.sub(r"\W", "_", wanted, flags=re.ASCII).split("_")
        name = "".join(part[:1].upper() + part[1:] for part in parts) or "Record"
        name = f"_{name}" if name[0].isdigit() else name
        names = itertools.chain([name], (f"{name}{number}" for number in itertools.count(2)))
        found = next(each for each in names if each not in self._taken and not keyword.iskeyword(each))
        self._taken.add(found)
        return found

    def _definition(self, name: str, types: dict[str, str]) -> str:
        if all(map(self._is_plain, types)):
            return f"class {name}(TypedDict):\n" + (
                "".join(f"    {each}: {types[each]}\n" for each in types) or "    pass\n"
            )
        lines = "".join(f"        {literal(each)}: {kind},\n" for each, kind in types.items())
        return f'{name} = TypedDict(\n    "{name}",\n    {{\n{lines}    }},\n)\n'

    def _is_plain(self, name: str) -> bool:
        """Whether a class may have an attribute of that name that takes the place of no type, and is not mangled."""
        return (
            name.isascii()
            and name.isidentifier()
            and not keyword.iskeyword(name)
            and not name.startswith("__")
            and name not in self._taken
        )


# The module of a topic, and its schema files


MARK: Final = "# Generated by schemactl"
"""What the first line of every generated file of Python begins with; nothing else is overwritten or removed."""

HEADER: Final = f"""\
{MARK}: do not edit, run `schemactl generate` instead.
# ruff: noqa
# fmt: off
"""

_WIDTH: Final = 88


class TopicModule(NamedTuple):
    """A module's text, and the schemas beside it by the names of their files."""

    text: str
    schemas: Mapping[str, str]


def topic_module(
    approved: Approved,
    name: str,
    *,
    runtime: str,
    options: StructOptions,
    release: Release,
    json_defaults: bool = False,
) -> TopicModule:
    """Return the module `name` of a topic, which imports its run-time from the module `runtime`; `options` are those of its columns.

    Raises:
        InvalidSchema: a definition does not parse.
        UnsupportedBySpark: Spark has no type for the reader's schema.
    """
    number, reader = approved.reader
    variable, types, schemas = name.upper(), RowTypes(name.upper()), _SchemaFiles(name)
    value, columns = value_of(reader, options, release), struct_of(reader, options, release)
    row = types.use("Any") if value is None else types.of(value.type, nullable=value.nullable, place=name)
    on_target = approved.on_target
    own = on_target.reader if on_target else number
    versions = {each.number: schemas.of(info_of(each), f"v{each.number}") for each in approved.read}
    known = next((each for each in approved.read if each.number == own), None)
    as_known = known is not None and (
        known.info == reader or _SchemaFiles("").read(info_of(known)) == _SchemaFiles("").read(reader)
    )
    arguments = {
        "versions": _table({str(each): call for each, call in versions.items()}),
        "reader": str(own) if as_known else schemas.of(reader, "reader"),
    }
    if columns is not None:
        arguments["schema"] = "SCHEMA"
        older = [info_of(each) for each in reversed(approved.versions) if each.number < number]
        former = former_names(reader, older, options, release)
        if former:
            arguments["former_names"] = _table(
                {
                    literal(".".join(path)): f"({''.join(f'{literal(each)}, ' for each in names).rstrip()})"
                    for path, names in former.items()
                }
            )
    if on_target is not None:
        reasons = {str(at): literal(why) for at, why in sorted(on_target.unreadable.items())}
        arguments["numbers"] = f"Numbers({literal(on_target.target)}, {on_target.reader}, {_table(reasons)})"
        if on_target.foreign:
            arguments["foreign"] = repr(sorted(on_target.foreign))
    if chosen := _codec_options(options, json_defaults=json_defaults and _has_json(reader)):
        arguments["options"] = f"Options({chosen})"
    calls = "".join(f"    {each}={value},\n" for each, value in arguments.items())
    made = f"{variable}: Topic[{row}] = Topic(\n    {literal(str(approved.topic.name))},\n    __name__,\n{calls})\n"
    imported = [each for each in ("KeyValue", "Numbers", "Options", "Schema") if f"{each}(" in calls]
    summary = _summary(approved, number, reader, has_columns=columns is not None)
    ddl = f"\n{columns_ddl(columns)}\n" if columns is not None else ""
    parts = [
        f"{HEADER}{to_block_literal(summary)}\n\nfrom __future__ import annotations\n",
        f"{types.imports()}\nfrom {runtime} import {', '.join([*imported, 'Topic'])}\n".lstrip("\n"),
        *(f"\n{each}" for each in types.definitions),
        *([f"\nSCHEMA = {to_block_literal(ddl)}\n"] if ddl else []),
        made,
    ]
    return TopicModule("\n".join(parts), schemas.texts)


def _summary(approved: Approved, number: int, reader: SchemaInfo, *, has_columns: bool) -> str:
    first, last = approved.versions[0].number, approved.versions[-1].number
    spans = f"version {first}" if first == last else f"versions {first} to {last}"
    lines = [f"{approved.topic.name}: {reader.type.name}, {spans}, read as version {number}."]
    if approved.on_target is not None:
        target = approved.on_target.target
        lines.append(f"These are Git's numbers. Messages are those of the target {target}, whose numbers are below.")
    if not has_columns:
        lines.append("Nothing describes the payloads: what reads or writes them raises CodecUnavailable.")
    return "\n\n".join(lines) + ("\n" if lines[1:] else "")


class _SchemaFiles:
    """The files of a module's schemas, and how the module names each."""

    def __init__(self, module: str) -> None:
        self.texts: dict[str, str] = {}
        self._module = module

    def of(self, info: SchemaInfo, version: str) -> str:
        """Return the text of the call that names the schema's files, which are added."""
        if both := pair_of(info):
            key, value = (self.of(half, f"{version}.{name}") for name, half in both.halves.items())
            return f"KeyValue({key}, {value}, {literal(both.encoding)})"
        arguments = [literal(info.type.name)]
        if found := _text(info):
            arguments.append(self._add(f"{version}.{'avsc' if spec(info).language == 'avro' else 'json'}", found))
        charset = info.properties.get(CHARSET) if spec(info).spark == "string" else None
        if charset is not None:
            arguments.append(f"charset={literal(charset)}")
        if info.proto is not None:
            arguments.append(f"proto={self._add(f'{version}.proto.json', _text(info.proto))}")
        return f"Schema({', '.join(arguments)})"

    def read(self, info: SchemaInfo) -> tuple[str, dict[str, str]]:
        """Return all that a module has of one schema."""
        return self.of(info, ""), self.texts

    def _add(self, ending: str, content: str) -> str:
        name = f"{self._module}.{ending}"
        self.texts[name] = content
        return literal(name)


def _text(info: SchemaInfo) -> str:
    """Return the definition as people read it: JSON over several lines, without comments; "" if it has none."""
    if spec(info).language not in ("avro", "protobuf"):
        return ""
    value = avro_text.read(avro_text.without_comments(avro_text.decode(info.schema)))
    return laid_out(value, _WIDTH) + "\n"


def _table(entries: Mapping[str, str]) -> str:
    """Return a dict of literals, one entry a line."""
    lines = "".join(f"        {key}: {value},\n" for key, value in entries.items())
    return f"{{\n{lines}    }}" if lines else "{}"


def _has_json(info: SchemaInfo) -> bool:
    if both := pair_of(info):
        return any(map(_has_json, both.halves.values()))
    return spec(info).payload == "json"


def _codec_options(options: StructOptions, *, json_defaults: bool) -> str:
    chosen = {
        "time_type": options.has_time,
        "recursion_depth": max(options.recursive_field_max_depth, 0),
        "json_defaults": json_defaults,
    }
    return ", ".join(f"{name}={value}" for name, value in chosen.items() if value)


# All files of the package


_PACKAGE: Final = '''\
"""Pulsar topics, one module each: what their messages are, and how they are decoded and encoded."""

from __future__ import annotations

from {runtime} import finder

TARGET: str | None = {target}
"""Whose version numbers these are; None: Git's, which every target has unless a record says otherwise."""

TOPICS: dict[str, str] = {{
{topics}}}
"""Topics, and the modules for them."""

topic = finder(TOPICS)
'''


def package_files(
    topics: Iterable[Approved],
    generate: Generate,
    *,
    release: Release,
    target: str | None = None,
    recursion_depth: int = 0,
) -> Mapping[str, str]:
    """Every file of the package that `generate` names, by its path below `generate.out`; the same input, the same bytes.

    It imports the installed schemactl; `package.complete` gives it a run-time of its own.

    Args:
        topics: what to generate modules for.
        generate: the package's name, and for which Spark.
        release: whose Avro reads the definitions.
        target: whose version numbers the package has; None: Git's.
        recursion_depth: how often a record may hold itself before the field is dropped; 0: recursion is refused.

    Raises:
        SchemactlError: the package's name cannot be imported, or the columns of some topics cannot be made; all of a run
            are named.
    """
    if not is_importable(generate.package):
        raise SchemactlError(
            f"generate.package is {generate.package!r}, which Python cannot import",
            fix="write identifiers with dots between them, such as shop_schemas",
        )
    options = StructOptions(generate.spark, recursion_depth, as_decoded=True)
    approved = {one.topic.name: one for one in sorted(topics, key=lambda one: one.topic.name)}
    paths = module_paths(approved)
    root, runtime = generate.package.replace(".", "/"), f"{generate.package}.{RUNTIME}"
    rows = "".join(
        f"    {literal(str(name))}: {literal('.'.join((generate.package, *path)))},\n" for name, path in paths.items()
    )
    files = {
        f"{root}/__init__.py": HEADER
        + _PACKAGE.format(runtime=runtime, target=target and literal(target), topics=rows),
        f"{root}/{RUNTIME}.py": exports("schemactl.generated"),
        f"{root}/py.typed": "",
    }
    failed = []
    for name, path in paths.items():
        for length in (1, 2):
            files[f"{root}/{'/'.join(path[:length])}/__init__.py"] = HEADER
        try:
            module = topic_module(
                approved[name],
                path[-1],
                runtime=runtime,
                options=options,
                release=release,
                json_defaults=generate.json_defaults,
            )
        except (InvalidSchema, UnsupportedBySpark) as error:
            failed.append(f"{name}: {error.what}" + (f" ({error.fix})" if error.fix else ""))
            continue
        folder = f"{root}/{'/'.join(path[:2])}"
        files[f"{folder}/{path[-1]}.py"] = module.text
        files |= {f"{folder}/{SCHEMAS}/{file}": text for file, text in module.schemas.items()}
        number, reader = approved[name].reader
        if generate.classes and (text := topic_classes(name, number, reader, generate.classes, options, release)):
            files[f"{folder}/{CLASSES}/__init__.py"] = HEADER
            files[f"{folder}/{CLASSES}/{path[-1]}.py"] = HEADER + text
    if failed:
        raise SchemactlError(
            "\n".join(["there are no columns for every topic:", *failed]),
            fix="change the definitions, or exclude the topics with --topic; for recursion give --recursion-depth",
        )
    return dict(sorted(files.items()))


def exports(source: str) -> str:
    """Return the module from which a package imports its run-time; `source` says where that is."""
    return f"{HEADER}from {source} import *\n"


# The package on disk


_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip file can hold; all of ours have it, so that equal content makes equal bytes."""

_SCHEMA: Final = re.compile(rf"(.+/{SCHEMAS}/.+)\.(?:v([0-9]+)|reader)(?:\.\w+)?\.(?:avsc|json)")
"""The path of a schema's file, which has no room for a mark: its topic's, and the version."""

Brought = Callable[[Path, str | None], bool]
"""Says whether a merge brings that text (None: no file) to that place without anybody's doing."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What separates a folder from the files it should have; paths below the folder, sorted.

    Attributes:
        changed: files that are missing or say something else.
        extra: files that were generated once and no longer are.
        foreign: files that were not generated and stand in the way of one that is.
    """

    changed: tuple[str, ...]
    extra: tuple[str, ...]
    foreign: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.extra or self.foreign)


class NumberedSchema(NamedTuple):
    """Of which topic's module a file has a schema, as a path, and of which version."""

    module: str
    version: int


def numbered(name: str) -> NumberedSchema | None:
    """Return what the path of a file says; None: it has no version's schema."""
    if (found := _SCHEMA.fullmatch(name)) and found[2]:
        return NumberedSchema(found[1].replace(f"/{SCHEMAS}/", "/"), int(found[2]))
    return None


def compare(
    files: Mapping[str, str], out: Path, *, below: str | None = None, brought: Brought = lambda _path, _text: False
) -> Difference:
    """Return how the folder `out` differs from `files`.

    Args:
        files: what should be there.
        out: the folder.
        below: a real path; no link below it is followed (`atomic_files.write`).
        brought: what it says yes to is no difference.

    Raises:
        SchemactlError: a file cannot be read, or a link is in its place or on the way to it.
    """
    changed: list[str] = []
    foreign: list[str] = []
    for name, text in files.items():
        found = _read(out / name, below)
        if found != text and not brought(out / name, text):
            # An empty file (py.typed, an __init__.py made by hand) holds nothing that could be lost.
            (foreign if found and not _is_ours(name, found) else changed).append(name)
    extra = (name for name in _generated(files, out, below) if not brought(out / name, None))
    return Difference(tuple(changed), tuple(sorted(extra)), tuple(foreign))


def write(files: Mapping[str, str], out: Path, difference: Difference, *, below: str | None = None) -> None:
    """Make `out` hold exactly `files` among what was generated, by the `difference` that `compare` found.

    Raises:
        SchemactlError: a file that was not generated, or a link, stands in the way (nothing is written then), or the
            folder cannot be written.
    """
    if difference.foreign:
        raise SchemactlError(
            f"these files were not generated and are left alone: {', '.join(difference.foreign)}",
            fix="move them away, or choose another folder for generate.out",
        )
    try:
        for name in difference.changed:
            atomic_files.write(out / name, files[name].encode(), below=below)
        for name in difference.extra:
            atomic_files.remove(out / name, below=below)
            _remove_if_empty((out / name).parent, out)
    except OSError as error:
        raise SchemactlError(f"{error.filename} cannot be written: {error.strerror}") from None


def pack(files: Mapping[str, str], path: Path, *, below: str | None = None) -> None:
    """Write the files, in their order, as a zip that Python imports from, as `spark-submit --py-files` takes it.

    Equal files make equal bytes. For `below` see `compare`.

    Raises:
        SchemactlError: it cannot be written.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text.encode(), zipfile.ZIP_DEFLATED, compresslevel=9)
    try:
        atomic_files.write(path, packed.getvalue(), below=below)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be written: {error.strerror}") from None


def _generated(files: Mapping[str, str], out: Path, below: str | None) -> Iterator[str]:
    """Yield the files in the folder that were generated once and are none of `files`."""
    for root in {name.split("/")[0] for name in files}:
        for path in (out / root).rglob("*"):
            name = path.relative_to(out).as_posix()
            is_file = name not in files and not path.is_symlink() and path.is_file()
            if is_file and _is_ours(name, (_read(path, below) or "") if path.suffix == ".py" else ""):
                yield name


def _is_ours(name: str, text: str) -> bool:
    return text.startswith(MARK) or bool(_SCHEMA.fullmatch(name))


def _read(path: Path, below: str | None) -> str | None:
    """Return the text of a file, None if there is none."""
    try:
        found = atomic_files.read(path, below=below)
    except OSError as error:
        raise SchemactlError(f"{path} cannot be read: {error}") from None
    return None if found is None else found.decode(errors="replace")


def _remove_if_empty(folder: Path, out: Path) -> None:
    """Remove folders that hold nothing but what Python compiled, up to `out`."""
    while folder != out:
        compiled = folder / "__pycache__"
        if compiled.is_symlink() or any(path != compiled for path in folder.iterdir()):
            return
        for path in compiled.glob("*.pyc"):
            path.unlink()
        if compiled.is_dir():
            compiled.rmdir()
        folder.rmdir()
        folder = folder.parent


# The complete package, which needs no schemactl, and the wheel


LICENSE: Final = "LICENSE"

_TAG: Final = "py3-none-any"

_VERSION: Final = re.compile(r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?")
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
    files: Mapping[str, str], package: str, topics: Iterable[Approved], *, tip: Commit | None, version: str = ""
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
    has_models = any(f"/{CLASSES}/" in path and "\nfrom pydantic import " in text for path, text in files.items())
    described = {
        f"{info}/METADATA": _metadata(package, version, topics, has_models=has_models),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: schemactl {environment.version()}\nRoot-Is-Purelib: true\nTag: {_TAG}\n"
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
