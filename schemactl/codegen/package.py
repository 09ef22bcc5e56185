"""Generate the files of the package of a project."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from schemactl.codegen.class_module import topic_classes
from schemactl.codegen.codecs import get_wire_options
from schemactl.codegen.generated_text import HEADER, render_runtime_import
from schemactl.codegen.module_paths import CLASSES, RUNTIME, SCHEMAS, is_importable, module_paths
from schemactl.codegen.spark_types import UnboundedColumns, UnsupportedBySpark, literal
from schemactl.codegen.topic_module import ModuleSettings, VersionCode, make_topic_module
from schemactl.codegen.topic_struct import decoded_options
from schemactl.codegen.topics import PackageTopic
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.project import Generate
from schemactl.core.schema import Release

_READ_AHEAD: Final = 50
"""The number of topics whose definitions are read from Git at once."""

_PACKAGE: Final = '''\
"""Pulsar topics, one module each: the columns of their messages, and functions to decode and encode them."""

from __future__ import annotations

from {runtime} import finder

TARGETS: tuple[str, ...] = {targets}
"""The targets whose version numbers the package has: `for_target`, or the variable SCHEMACTL_TARGET, selects one."""

TARGET: str | None = {target}
"""The target whose numbers count if no target is selected. None means Git's numbers, without those with other content on a target."""

TOPICS: dict[str, str] = {{
{topics}}}
"""Topics, and the modules for them."""

topic = finder(TOPICS)
'''


class TopicFiles(NamedTuple):
    """The files of a topic in a package.

    Attributes:
        module: the importable name of its module.
        names: the paths of its files.
        versions: the code of each version that later commits do not change; empty if the topic itself is unchanged.
    """

    module: str
    names: tuple[str, ...]
    versions: Mapping[int, VersionCode]


def list_schema_files(module: str, version: VersionCode) -> list[str]:
    """Return the paths of the schema files of a version, given the importable name of the module."""
    folder = module.rpartition(".")[0].replace(".", "/")
    return [f"{folder}/{SCHEMAS}/{file}" for file in version.files]


class PackageFiles(dict[str, str]):
    """The texts of the files of a package, by path.

    Attributes:
        skipped: the reason for each topic without a module: its columns are endless or too many.
        unchanged: the paths of the other files of the package, which stay unchanged on disk.
        topics: the files of each topic with a module.
    """

    def __init__(
        self,
        files: Iterable[tuple[str, str]],
        skipped: Mapping[TopicName, str],
        unchanged: frozenset[str],
        topics: Mapping[TopicName, TopicFiles],
    ) -> None:
        super().__init__(files)
        self.skipped = skipped
        self.unchanged = unchanged
        self.topics = topics

    @property
    def count(self) -> int:
        """The number of all files of the package."""
        return len(self) + len(self.unchanged)


def package_files(
    topics: Iterable[PackageTopic],
    generate: Generate,
    *,
    release: Release,
    targets: Collection[str] = (),
    target: str | None = None,
    recursion_depth: int | None = None,
    unchanged: Mapping[TopicName, TopicFiles] = MappingProxyType({}),
    known_versions: Mapping[TopicName, Mapping[int, VersionCode]] = MappingProxyType({}),
    read_ahead: Callable[[Sequence[TopicName]], None] = lambda _: None,
) -> PackageFiles:
    """Generate the files of the package, by path below `generate.out`; equal input makes equal bytes.

    The package imports the installed schemactl; `complete` adds a run-time to it.

    Args:
        topics: the topics that get modules.
        generate: the settings of the package, such as its name and the Spark release.
        release: the Pulsar release whose Avro parses the definitions.
        targets: the names of all targets.
        target: the target whose version numbers count where none is chosen, or None for Git's.
        recursion_depth: the recursion depth of all topics (see `Generate`), or None for the depth in the settings of each.
        unchanged: further topics of the package, whose files on disk stay (see `select_unchanged`).
        known_versions: the code of versions of `topics` whose files on disk stay (see `select_unchanged`).
        read_ahead: reads the definitions of some topics from Git at once, before they are used. The definitions of a topic are freed
            after its module is made, because all of them would take most of the memory.

    Raises:
        SchemactlError: if the package's name cannot be imported, or a part of some topics has no type in Spark. They are all named.
    """
    if not is_importable(generate.package):
        raise SchemactlError(
            f"generate.package is {generate.package!r}, which Python cannot import",
            fix="write identifiers with dots between them, such as shop_schemas",
        )
    topics_by_name = {topic.topic.name: topic for topic in sorted(topics, key=lambda topic: topic.topic.name)}
    paths = module_paths(sorted([*topics_by_name, *unchanged]))
    root, runtime = generate.package.replace(".", "/"), f"{generate.package}.{RUNTIME}"
    files = {f"{root}/{RUNTIME}.py": render_runtime_import("schemactl.generated"), f"{root}/py.typed": ""}
    failures = []
    skipped = {}
    topic_files = dict(unchanged)
    unchanged_names = {file for topic in unchanged.values() for file in topic.names}
    names_to_read = [name for name in paths if name in topics_by_name and name not in known_versions]
    batches = {
        names_to_read[start]: names_to_read[start : start + _READ_AHEAD]
        for start in range(0, len(names_to_read), _READ_AHEAD)
    }
    for name, path in paths.items():
        if name in batches:
            read_ahead(batches[name])
        if name in unchanged:
            continue
        approved = topics_by_name[name]
        options = decoded_options(generate, approved.topic)
        if recursion_depth is not None:
            options = replace(options, recursive_field_max_depth=recursion_depth)
        try:
            settings = ModuleSettings(
                runtime, options, release, generate.json_defaults, get_wire_options(approved.topic, generate)
            )
            module = make_topic_module(approved, path[-1], settings, known_versions.get(name, {}))
        except UnboundedColumns as error:
            skipped[name] = error.message
            continue
        except RecursionError:
            skipped[name] = "it is nested too deeply"
            continue
        except (InvalidSchema, UnsupportedBySpark) as error:
            failures.append(f"{name}: {error.message}" + (f" ({error.fix})" if error.fix else ""))
            continue
        folder = f"{root}/{'/'.join(path[:2])}"
        own_files = {f"{folder}/{path[-1]}.py": module.text}
        own_files |= {f"{folder}/{SCHEMAS}/{file}": text for file, text in module.schemas.items()}
        for part in approved.kinds or (approved,):
            number, reader = part.reader
            if generate.classes and (text := topic_classes(name, number, reader, generate.classes, options, release)):
                class_path = f"{folder}/{CLASSES}/{path[-1]}"
                own_files[f"{folder}/{CLASSES}/__init__.py"] = HEADER
                if part.topic.kind:
                    # The kinds of a topic may have different records of the same name.
                    own_files[f"{class_path}/__init__.py"] = HEADER
                    class_path += f"/{part.topic.kind}"
                own_files[f"{class_path}.py"] = HEADER + text
        approved.topic.unload()
        files |= own_files
        unchanged_files = {f"{folder}/{SCHEMAS}/{file}" for file in module.unchanged}
        unchanged_names |= unchanged_files
        module_name = ".".join((generate.package, *path))
        topic_files[name] = TopicFiles(module_name, (*own_files, *unchanged_files), module.versions)
    if failures:
        raise SchemactlError(
            "\n".join(["these topics have no columns in Spark:", *failures]),
            fix="change the definitions, or exclude the topics with --topic",
        )
    entries = ""
    for name, path in paths.items():
        if name in topic_files:
            entries += f"    {literal(str(name))}: {literal(topic_files[name].module)},\n"
            for length in (1, 2):
                files[f"{root}/{'/'.join(path[:length])}/__init__.py"] = HEADER
    target_names = "".join(f"{literal(name)}, " for name in sorted(targets)).rstrip()
    package = _PACKAGE.format(
        runtime=runtime,
        targets=f"({target_names.removesuffix(',') if len(targets) > 1 else target_names})",
        target=None if target is None else literal(target),
        topics=entries,
    )
    files[f"{root}/__init__.py"] = HEADER + package
    return PackageFiles(sorted(files.items()), skipped, frozenset(unchanged_names - files.keys()), topic_files)
