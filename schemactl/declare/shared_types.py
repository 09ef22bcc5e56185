"""Find the definitions that several topics share: named Avro types, each in a file, and `.proto` files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.json_values import json_text
from schemactl.core.names import TopicName
from schemactl.core.schema import WITHOUT_SCHEMA, SchemaInfo
from schemactl.declare.json_formatter import format_json
from schemactl.declare.references import NAMED, AvroFile, add_namespace, named_types, own_names
from schemactl.declare.source_location import JsonText
from schemactl.formats import get_pair, spec
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify
from schemactl.formats.protobuf import load

_NO_FILE: Final = AvroFile("", None, JsonText("", lambda _: Source("")))


@dataclass(slots=True)
class _TypeUsage:
    """One named type or `.proto` file, with its definitions in all versions.

    Attributes:
        texts: the different definitions, as texts of a file that refers to other types by name. The keys are equal for
            definitions that differ only in the order of keys.
        topics: the topics that use it.
        uses: the other types that it refers to.
    """

    texts: dict[str, str] = field(default_factory=dict)
    topics: set[TopicName] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)

    @property
    def is_shared(self) -> bool:
        """Whether two or more topics use it, all with the same definition."""
        return len(self.topics) > 1 and len(self.texts) == 1

    @property
    def text(self) -> str:
        """Its only definition."""
        (text,) = self.texts.values()
        return text


class CommonTypes:
    """The named Avro types and imported `.proto` files that two or more topics use with one definition in all their versions.

    A type is shared only if it has a namespace and all types that it refers to are shared. Types that refer to each other are not
    shared, because files cannot reference each other.

    Attributes:
        files: the text of each file, by path.
    """

    def __init__(self, versions: Iterable[tuple[TopicName, SchemaInfo]], free_path: Callable[[str], str]) -> None:
        """Find the shared definitions among `versions`.

        Args:
            versions: the topics and definitions to declare.
            free_path: returns an unused path, without suffix, for a name below the folder of shared files.
        """
        types: dict[str, _TypeUsage] = {}
        imported: dict[str, _TypeUsage] = {}
        for topic, info in versions:
            for half in _split_definition(info):
                for name, value, uses in _find_inner_types(half):
                    if "." not in name:
                        # Topics that have nothing in common often use the same name without a namespace.
                        continue
                    usage = types.setdefault(name, _TypeUsage())
                    usage.texts.setdefault(json.dumps(value, sort_keys=True), format_json(json_text(value)))
                    usage.topics.add(topic)
                    usage.uses |= uses
                for name, text in print_imports(half).items():
                    usage = imported.setdefault(name, _TypeUsage())
                    usage.texts[text] = text
                    usage.topics.add(topic)
        self._needs: dict[str, set[str]] = {}
        while shared_names := [
            name
            for name, usage in types.items()
            if name not in self._needs and usage.is_shared and usage.uses <= self._needs.keys()
        ]:
            for name in shared_names:
                uses = types[name].uses
                self._needs[name] = uses.union(*(self._needs[used_name] for used_name in uses))
        self._paths = {name: f"{free_path(name.replace('.', '/'))}.avsc" for name in sorted(self._needs)}
        self.files = {path: types[name].text.encode() for name, path in self._paths.items()}
        self._imports: dict[str, str] = {}
        for name, usage in sorted(imported.items()):
            # An import means the file whose path ends with its name.
            path = f"{free_path(name.removesuffix('.proto'))}.proto"
            if usage.is_shared and path.endswith(f"/{name}"):
                self._imports[name] = path
                self.files[path] = usage.text.encode()

    def extract(self, value: Any) -> tuple[Any, dict[str, bytes]]:
        """Replace the shared types in a definition by their names, and return it with the files that it then needs."""
        used_names: set[str] = set()

        def is_shared(name: str) -> bool:
            if name in self._needs:
                used_names.update((name,), self._needs[name])
            return name in self._needs

        definition = _replace_types(value, None, is_shared)
        paths = sorted(self._paths[name] for name in used_names)
        return definition, {path: self.files[path] for path in paths}

    def import_path(self, name: str) -> str | None:
        """Return the path of the shared `.proto` file with this import name, or None."""
        return self._imports.get(name)


def print_imports(info: SchemaInfo) -> dict[str, str]:
    """Print the `.proto` files that a protobuf definition imports, by import name, without the files that protoc ships."""
    if spec(info).language != "protobuf":
        return {}
    try:
        definition = load("definition").parse(info.schema)
        return {
            name: load("definition").proto_text(definition.image.files[name].proto)
            for name in definition.reachable
            if name != definition.root.file.name and not load("definition").is_shipped(name)
        }
    except InvalidSchema:
        return {}


def _split_definition(info: SchemaInfo) -> Iterator[SchemaInfo]:
    """Yield a definition, or the key and value of a KEY_VALUE; nothing for a schema without definition."""
    if both := get_pair(info):
        yield from _split_definition(both.key)
        yield from _split_definition(both.value)
    elif info.type not in WITHOUT_SCHEMA:
        yield info


def _find_inner_types(info: SchemaInfo) -> Iterator[tuple[str, Any, set[str]]]:
    """Yield the name, the standalone definition and the used type names of each named type inside an Avro definition.

    A definition that is not JSON, is nested too deep, or has numbers that JSON does not have yields nothing.
    """
    if spec(info).language == "avro":
        try:
            value = read(decode(info.schema))
            json_text(value)
        except (ValueError, InvalidSchema):
            return
        for named in named_types(_NO_FILE, value):
            if named.value is not value:
                uses: set[str] = set()
                alone = _replace_types(named.value, named.around, lambda _: True, uses, is_whole=True)
                yield named.full_name, add_namespace(alone, named.around), uses - {named.full_name}


def _replace_types(
    value: Any,
    namespace: str | None,
    is_taken: Callable[[str], bool],
    uses: set[str] | None = None,
    *,
    is_whole: bool = False,
) -> Any:
    """Replace each inner type for which `is_taken` is true by its name.

    Args:
        value: the definition as JSON.
        namespace: the enclosing namespace.
        is_taken: called with the full name of each named type inside the definition.
        uses: receives the full name of every named type that the result refers to.
        is_whole: whether `value` is the whole definition, which is not replaced itself.
    """
    uses = set() if uses is None else uses
    match value:
        case str() if value not in PRIMITIVE_TYPES:
            uses.add(qualify(value, namespace)[0])
        case [*branches]:
            return [_replace_types(branch, namespace, is_taken, uses) for branch in branches]
        case {"type": ("array" | "map") as kind}:
            key = "items" if kind == "array" else "values"
            if key in value:
                return {**value, key: _replace_types(value[key], namespace, is_taken, uses)}
        case {"type": str(kind), "name": str()} if kind in NAMED:
            full_name, within = own_names(value, namespace)
            if not is_whole and is_taken(full_name):
                uses.add(full_name)
                around, _, name = full_name.rpartition(".")
                return name if around == (namespace or "") else full_name
            if isinstance(fields := value.get("fields"), list):
                return {
                    **value,
                    "fields": [
                        {**part, "type": _replace_types(part["type"], within, is_taken, uses)}
                        if isinstance(part, dict) and "type" in part
                        else part
                        for part in fields
                    ],
                }
        case {"type": str(name)} if name not in PRIMITIVE_TYPES:
            uses.add(qualify(name, namespace)[0])
    return value
