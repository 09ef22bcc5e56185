"""Write the module of a topic: its versions, its reader's columns and row types, and the numbers of targets."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from textwrap import indent
from typing import Final, NamedTuple

from schemactl.codec.avro_schema import blank_comments
from schemactl.codegen.generated_text import HEADER
from schemactl.codegen.row_types import RowTypes
from schemactl.codegen.spark_types import Struct, columns_ddl, literal, to_block_literal
from schemactl.codegen.topic_struct import StructOptions, former_names, struct_of, value_of
from schemactl.codegen.topics import NO_VERSION, PackageTopic, VersionsOnTarget, get_version_schema, mark_other_kinds
from schemactl.core.errors import InvalidSchema
from schemactl.core.json_values import format_json
from schemactl.core.schema import NANOSECOND_TYPES, Release, SchemaInfo, SchemaType, SchemaVersion, find_by_number
from schemactl.formats import get_pair, get_parts, protobuf, spec
from schemactl.formats.avro import json_text as avro_text
from schemactl.formats.primitive import CHARSET

_WIDTH: Final = 88

KINDS_ATTRIBUTES: Final = frozenset(
    {
        *("codec", "commit", "decode", "decode_batch", "decode_one", "for_target", "kinds", "land", "land_stream"),
        *("name", "numbers", "properties", "replay", "sink", "split", "struct", "validate", "view"),
    }
)
"""The attributes of `generated.Kinds`. A kind with such a key is the attribute with a `_` at the end."""


class VersionCode(NamedTuple):
    """The code of an approved version in the module of its topic, which later commits do not change.

    Attributes:
        kind: the key of its kind, if it is another kind than the reader's.
        call: the call of a constructor with its schema.
        properties: its SchemaInfo properties.
        files: the names of its schema files.
    """

    kind: str
    call: str
    properties: Mapping[str, str]
    files: tuple[str, ...]


class ModuleSettings(NamedTuple):
    """The settings of a topic's module.

    Attributes:
        runtime: the module from which it imports its run-time.
        options: the settings of the columns.
        release: the Pulsar release whose Avro parses the definitions.
        json_defaults: whether a field that a JSON payload lacks is read as its default.
        wire_options: see `get_wire_options`.
    """

    runtime: str
    options: StructOptions
    release: Release
    json_defaults: bool
    wire_options: Mapping[str, str]


class TopicModule(NamedTuple):
    """The module of a topic.

    Attributes:
        text: its text.
        schemas: the texts of its schema files by name.
        unchanged: the names of its other schema files, which are the files of known versions.
        versions: the code of each version that later commits do not change.
    """

    text: str
    schemas: Mapping[str, str]
    unchanged: Collection[str]
    versions: Mapping[int, VersionCode]


def make_topic_module(
    approved: PackageTopic, name: str, settings: ModuleSettings, known_versions: Mapping[int, VersionCode]
) -> TopicModule:
    """Generate the module of a topic.

    Args:
        approved: the topic.
        name: the module's name.
        settings: the settings of the module.
        known_versions: the code of versions whose definitions are not read again.

    Raises:
        InvalidSchema: if a definition does not parse.
        UnsupportedBySpark: if Spark has no type for the reader's schema.
    """
    if approved.kinds:
        return _make_kinds_module(approved, name, settings, known_versions)
    number, reader = approved.reader
    variable, types, schemas = name.upper(), RowTypes(name.upper()), _SchemaFiles(name)
    options = settings.options
    value, columns = value_of(reader, options, settings.release), struct_of(reader, options, settings.release)
    row = types.use("Any") if value is None else types.render(value.type, nullable=value.nullable, place=name)
    marked_versions = mark_other_kinds(approved.versions, approved.topic, reader)
    versions = _make_versions(marked_versions, schemas, known_versions)
    arguments = versions.arguments
    arguments |= _make_reader_arguments(approved, "reader", schemas, columns, settings)

    # The numbers of targets, and the options of the codec.
    if approved.on_targets:
        marked_targets = [
            replace(on_target, versions=mark_other_kinds(on_target.versions, approved.topic, reader))
            for on_target in approved.on_targets
        ]
        arguments["targets"] = _make_targets(marked_targets, schemas)
    if set_options := _make_options(reader, settings):
        arguments["options"] = set_options

    # The text.
    argument_lines = "".join(f"    {argument}={text},\n" for argument, text in arguments.items())
    topic_call = f"Topic(\n    {literal(str(approved.topic.name))},\n    __name__,\n{argument_lines})\n"
    imports = [
        class_ for class_ in ("KeyValue", "Options", "Schema", "TargetNumbers") if f"{class_}(" in argument_lines
    ]
    summary = _summarize(approved, number, reader, has_columns=columns is not None)
    ddl = f"\n{columns_ddl(columns)}\n" if columns is not None else ""
    blocks = [
        f"{HEADER}{to_block_literal(summary)}\n\nfrom __future__ import annotations\n",
        f"{types.make_imports()}\nfrom {settings.runtime} import {', '.join([*imports, 'Topic'])}\n".lstrip("\n"),
        *(f"\n{definition}" for definition in types.definitions),
        *([f"\nSCHEMA = {to_block_literal(ddl)}\n"] if ddl else []),
        f"{variable}: Topic[{row}] = {topic_call}",
    ]
    return TopicModule("\n".join(blocks), schemas.texts, versions.unchanged, versions.codes)


def _make_kinds_module(
    approved: PackageTopic, name: str, settings: ModuleSettings, known_versions: Mapping[int, VersionCode]
) -> TopicModule:
    """Generate the module of a topic with several kinds of events; arguments and errors are as for `make_topic_module`."""
    variable, types, schemas = name.upper(), RowTypes(name.upper()), _SchemaFiles(name)
    options = settings.options
    class_name = types.reserve_name(f"{name}_kinds")
    attributes, kinds, lines, schema_texts = "", {}, [], []
    for part in approved.kinds:
        key = part.topic.kind
        number, reader = part.reader
        value, columns = value_of(reader, options, settings.release), struct_of(reader, options, settings.release)
        row = types.use("Any") if value is None else types.render(value.type, nullable=value.nullable, place=key)
        attributes += f"    {key}_: Topic[{row}]\n" if key in KINDS_ATTRIBUTES else f"    {key}: Topic[{row}]\n"
        arguments = _make_reader_arguments(part, f"{key}.reader", schemas, columns, settings)
        if columns is not None:
            arguments["schema"] = f"SCHEMA_{key.upper()}"
            ddl = to_block_literal(f"\n{columns_ddl(columns)}\n")
            schema_texts.append(f"SCHEMA_{key.upper()} = {ddl}\n")
        if part.on_targets:
            readers = {literal(on_target.target): str(on_target.reader) for on_target in part.on_targets}
            arguments["targets"] = _make_dict(dict(sorted(readers.items())))
        if set_options := _make_options(reader, settings):
            arguments["options"] = set_options
        argument_lines = "".join(f"    {argument}={text},\n" for argument, text in arguments.items())
        kinds[literal(key)] = f"Kind(\n{indent(argument_lines, ' ' * 8)}        )"
        is_removed = approved.topic.get_kind(key) is None
        lines.append(f"* {key}{' (removed)' if is_removed else ''}: {reader.type.name}, read as version {number}")
    versions = _make_versions(approved.versions, schemas, known_versions)
    topic_arguments = versions.arguments
    topic_arguments["kinds"] = _make_dict(kinds)
    if approved.on_targets:
        topic_arguments["targets"] = _make_targets(approved.on_targets, schemas)
    argument_lines = "".join(f"    {argument}={text},\n" for argument, text in topic_arguments.items())

    # The text.
    first, last = approved.versions[0].number, approved.versions[-1].number
    version_range = f"version {first}" if first == last else f"versions {first} to {last}"
    summary = "\n".join([f"{approved.topic.name}: {len(kinds)} kinds of events, {version_range}.", "", *lines, ""])
    imports = [class_ for class_ in ("Options", "Schema", "TargetNumbers") if f"{class_}(" in argument_lines]
    blocks = [
        f"{HEADER}{to_block_literal(summary)}\n\nfrom __future__ import annotations\n",
        f"{types.make_imports()}\nfrom {settings.runtime} import {', '.join(sorted([*imports, 'Kind', 'Kinds', 'Topic']))}\n".lstrip(
            "\n"
        ),
        *(f"\n{definition}" for definition in types.definitions),
        *(f"\n{text}" for text in schema_texts),
        f'\nclass {class_name}(Kinds):\n    """The kinds of events."""\n\n{attributes}\n',
        f"{variable} = {class_name}(\n    {literal(str(approved.topic.name))},\n    __name__,\n{argument_lines})\n",
    ]
    return TopicModule("\n".join(blocks), schemas.texts, versions.unchanged, versions.codes)


class _Versions(NamedTuple):
    """The versions of a module.

    Attributes:
        arguments: the arguments of the topic for its versions, and for their SchemaInfo properties if a version has some.
        unchanged: the names of the schema files of known versions.
        codes: the code of each version that later commits do not change.
    """

    arguments: dict[str, str]
    unchanged: list[str]
    codes: dict[int, VersionCode]


def _make_versions(
    versions: Iterable[SchemaVersion], schemas: _SchemaFiles, known_versions: Mapping[int, VersionCode]
) -> _Versions:
    """Return the code of the versions, and add the files of the other versions than `known_versions` to `schemas`."""
    calls: dict[str, str] = {}
    properties: dict[int, Mapping[str, str]] = {}
    unchanged: list[str] = []
    codes: dict[int, VersionCode] = {}
    for version in versions:
        code = known_versions.get(version.number)
        if code and code.kind == version.kind:
            unchanged += code.files
            codes[version.number] = code
        else:
            info = get_version_schema(version)
            version_files = _SchemaFiles(schemas.module)
            call = version_files.make_call(info, f"v{version.number}", kind=version.kind)
            schemas.texts |= version_files.texts
            code = VersionCode(version.kind, call, info.properties, tuple(version_files.texts))
            # The form of a protobuf definition follows from the current declaration.
            if all(spec(part).language != "protobuf" and part.proto is None for part in get_parts(info).values()):
                codes[version.number] = code
        calls[str(version.number)] = code.call
        properties[version.number] = code.properties
    arguments = {"versions": _make_dict(calls)}
    if any(properties.values()):
        arguments["properties"] = _make_properties(properties)
    return _Versions(arguments, unchanged, codes)


def _make_reader_arguments(
    approved: PackageTopic, file: str, schemas: _SchemaFiles, columns: Struct | None, settings: ModuleSettings
) -> dict[str, str]:
    """Return the arguments for the reader's schema, which is the number of a version with the same schema or the file `file`."""
    number, reader = approved.reader
    reader_version = find_by_number(approved.versions, number)
    has_reader_version = reader_version is not None and (
        reader_version.info == reader
        or _list_schema_files(get_version_schema(reader_version)) == _list_schema_files(reader)
    )
    arguments = {"reader": str(number) if has_reader_version else schemas.make_call(reader, file)}

    # The columns, and their former names.
    if columns is not None:
        arguments["schema"] = "SCHEMA"
        older = [get_version_schema(version) for version in reversed(approved.versions) if version.number < number]
        names_by_path = former_names(reader, older, settings.options, settings.release)
        if names_by_path:
            arguments["former_names"] = _make_dict(
                {
                    literal(
                        ".".join(path)
                    ): f"({''.join(f'{literal(former_name)}, ' for former_name in names).rstrip()})"
                    for path, names in names_by_path.items()
                }
            )
    return arguments


def _make_targets(on_targets: Iterable[VersionsOnTarget], schemas: _SchemaFiles) -> str:
    """Return the text of a dict with the numbers of each target."""
    return _make_dict(
        {
            literal(on_target.target): _make_target_numbers(on_target, schemas)
            for on_target in sorted(on_targets, key=lambda on_target: on_target.target)
        }
    )


def _make_options(reader: SchemaInfo, settings: ModuleSettings) -> str:
    """Return the call of Options, or "" if all are the default."""
    options, wire_options, parts = settings.options, settings.wire_options, get_parts(reader).values()
    has_json = any(spec(part).payload == "json" for part in parts)
    has_nanoseconds = any(part.type in NANOSECOND_TYPES for part in parts)
    codec_options = {
        "time_type": options.has_time,
        "recursion_depth": max(options.recursive_field_max_depth, 0),
        "json_defaults": settings.json_defaults and has_json,
        "json_times": has_json and "json_times" in wire_options and literal(wire_options["json_times"]),
        "integers": "integers" in wire_options and literal(wire_options["integers"]),
        "nanoseconds": options.nanoseconds == "bigint" and has_nanoseconds and literal("bigint"),
    }
    set_options = ", ".join(f"{option}={setting}" for option, setting in codec_options.items() if setting)
    return f"Options({set_options})" if set_options else ""


def _summarize(approved: PackageTopic, number: int, reader: SchemaInfo, *, has_columns: bool) -> str:
    if number == NO_VERSION:
        return f"{approved.topic.name}: no schema, each message is bytes."
    first, last = approved.versions[0].number, approved.versions[-1].number
    version_range = f"version {first}" if first == last else f"versions {first} to {last}"
    lines = [f"{approved.topic.name}: {reader.type.name}, {version_range}, read as version {number}."]
    if approved.on_targets:
        names = ", ".join(sorted(on_target.target for on_target in approved.on_targets))
        lines.append(f"These are Git's numbers. Targets with other numbers: {names} (see `targets` below).")
    if not has_columns:
        lines.append("Nothing describes the payloads: functions that read or write them raise CodecUnavailable.")
    return "\n\n".join(lines) + ("\n" if lines[1:] else "")


def _make_target_numbers(on_target: VersionsOnTarget, schemas: _SchemaFiles) -> str:
    """Return the call of TargetNumbers, and add the files of the target's foreign versions to `schemas`."""
    meanings = {number: literal(reason) for number, reason in on_target.unreadable.items()}
    for version in on_target.versions:
        git = on_target.git.get(version.number)
        if git is None:
            # Named for its content, because targets may have any names, and often the same foreign version.
            info = get_version_schema(version)
            digest = hashlib.sha256(repr(_list_schema_files(info)).encode()).hexdigest()[:12]
            meanings[version.number] = schemas.make_call(info, f"foreign-{digest}", kind=version.kind)
        else:
            meanings[version.number] = str(git)
    lines = "".join(f"                {number}: {meaning},\n" for number, meaning in sorted(meanings.items()))
    foreign_properties = {
        version.number: get_version_schema(version).properties
        for version in on_target.versions
        if version.number not in on_target.git
    }
    properties = ""
    if any(foreign_properties.values()):
        entries = _make_properties(foreign_properties).replace("\n", "\n        ")
        properties = f"            properties={entries},\n"
    versions = f"            versions={{\n{lines}            }},\n"
    return f"TargetNumbers(\n            reader={on_target.reader},\n{versions}{properties}        )"


def _make_properties(properties_by_number: Mapping[int, Mapping[str, str]]) -> str:
    """Return the text of a dict with the SchemaInfo properties of the versions that have some."""
    dicts = {}
    for number, properties in properties_by_number.items():
        if properties:
            entries = ", ".join(f"{literal(name)}: {literal(text)}" for name, text in sorted(properties.items()))
            dicts[str(number)] = f"{{{entries}}}"
    return _make_dict(dicts)


class _SchemaFiles:
    """The schema files of a module.

    Attributes:
        module: the name of the module.
        texts: the texts of the files by name.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self.texts: dict[str, str] = {}

    def make_call(self, info: SchemaInfo, version: str, *, kind: str = "") -> str:
        """Add the files of a schema, and return the call of a constructor with their names.

        Args:
            info: the schema.
            version: the part of the names for the version: `v0`, `reader`.
            kind: the key of its kind of events, if it has one.
        """
        if pair := get_pair(info):
            key, value = (self.make_call(part, f"{version}.{name}") for name, part in pair.halves.items())
            return f"KeyValue({key}, {value}, {literal(pair.encoding)})"
        arguments = [literal(info.type.name)]
        if text := _format_definition(info):
            arguments.append(self._add(f"{version}.{'avsc' if spec(info).language == 'avro' else 'json'}", text))
        charset = info.properties.get(CHARSET) if spec(info).spark == "string" else None
        if charset is not None:
            arguments.append(f"charset={literal(charset)}")
        if info.proto is not None:
            arguments.append(f"proto={self._add(f'{version}.proto.json', _format_definition(info.proto))}")
        if kind:
            arguments.append(f"kind={literal(kind)}")
        return f"Schema({', '.join(arguments)})"

    def _add(self, suffix: str, text: str) -> str:
        name = f"{self.module}.{suffix}"
        self.texts[name] = text
        return literal(name)


def _list_schema_files(info: SchemaInfo) -> tuple[str, dict[str, str]]:
    """Return the call and the files of one schema, which are equal for schemas without a difference in a module."""
    schemas = _SchemaFiles("")
    return schemas.make_call(info, ""), schemas.texts


def _format_definition(info: SchemaInfo) -> str:
    """Return the definition as JSON on several lines, without comments, or "" if the type has no definition."""
    if spec(info).language not in ("avro", "protobuf"):
        return ""
    schema = info.schema
    if info.type is SchemaType.PROTOBUF_NATIVE:
        # A package does not depend on the form that is registered.
        with suppress(InvalidSchema):
            schema = protobuf.load("rendering").normalize(schema)
    value = avro_text.read(blank_comments(avro_text.decode(schema)))
    return format_json(value, _WIDTH) + "\n"


def _make_dict(entries: Mapping[str, str]) -> str:
    """Return the text of a dict whose keys and values are expressions, one entry on each line."""
    lines = "".join(f"        {key}: {value},\n" for key, value in entries.items())
    return f"{{\n{lines}    }}" if lines else "{}"
