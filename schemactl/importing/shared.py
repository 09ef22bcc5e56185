"""The definitions that several topics of a registry share: named Avro types, one in a file, and `.proto` files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.json_values import json_text
from schemactl.core.names import TopicName
from schemactl.core.schema import WITHOUT_SCHEMA, SchemaInfo
from schemactl.declare.references import NAMED, AvroFile, named_types, own_names, qualified
from schemactl.formats import pair_of, spec
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify
from schemactl.formats.protobuf import load
from schemactl.layout.json_layout import laid_out
from schemactl.source import JsonText


@dataclass(slots=True)
class _FoundType:
    """One type or file as the definitions of a registry have it.

    Attributes:
        texts: the ways it is defined, as a file would have it, with the types inside it by their names; by what is the
            same for two that differ in the order of keys alone.
        topics: the topics that have it.
        uses: the other types that it needs.
    """

    texts: dict[str, str] = field(default_factory=dict)
    topics: set[TopicName] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)

    @property
    def is_shared(self) -> bool:
        """Whether two or more topics define it, all in the same way."""
        return len(self.topics) > 1 and len(self.texts) == 1

    @property
    def text(self) -> str:
        """The one way in which it is defined."""
        (text,) = self.texts.values()
        return text


class CommonTypes:
    """The named Avro types and imported `.proto` files that two or more topics have, alike in all their versions.

    A type that needs another one is shared only together with it, and types that need each other are not: files cannot.

    Attributes:
        files: the text of each file, by path.
    """

    def __init__(
        self, versions: Iterable[tuple[TopicName, SchemaInfo]], free_path: Callable[[str], str]
    ) -> None:
        """Find them among `versions`, which are all to declare.

        Args:
            versions: topics and their definitions.
            free_path: returns an unused path without suffix, for a name below the folder of shared files.
        """
        found: dict[str, _FoundType] = {}
        imported: dict[str, _FoundType] = {}
        for topic, info in versions:
            for half in _halves(info):
                for name, value, uses in _inner_types(half):
                    each = found.setdefault(name, _FoundType())
                    each.texts.setdefault(json.dumps(value, sort_keys=True), laid_out(json_text(value)))
                    each.topics.add(topic)
                    each.uses |= uses
                for name, text in imports(half).items():
                    each = imported.setdefault(name, _FoundType())
                    each.texts[text] = text
                    each.topics.add(topic)
        self._needs: dict[str, set[str]] = {}
        while more := [
            name
            for name, each in found.items()
            if name not in self._needs and each.is_shared and each.uses <= self._needs.keys()
        ]:
            for name in more:
                uses = found[name].uses
                self._needs[name] = uses.union(*(self._needs[each] for each in uses))
        self._paths = {name: f"{free_path(name.replace('.', '/'))}.avsc" for name in sorted(self._needs)}
        self.files = {path: found[name].text.encode() for name, path in self._paths.items()}
        self._imports: dict[str, str] = {}
        for name, each in sorted(imported.items()):
            # An import finds the file whose path ends in its name, so that any other path is of no use.
            path = f"{free_path(name.removesuffix('.proto'))}.proto"
            if each.is_shared and path.endswith(f"/{name}"):
                self._imports[name] = path
                self.files[path] = each.text.encode()

    def outside(self, value: Any) -> tuple[Any, dict[str, bytes]]:
        """Return a definition with the shared types taken out, and the files that it then needs."""
        taken: set[str] = set()

        def is_shared(name: str) -> bool:
            if name in self._needs:
                taken.update((name,), self._needs[name])
            return name in self._needs

        short = _without(value, None, is_shared)
        paths = sorted(self._paths[name] for name in taken)
        return short, {path: self.files[path] for path in paths}

    def import_path(self, name: str) -> str | None:
        """Return the path of the `.proto` file that is imported by this name; None if it is not shared."""
        return self._imports.get(name)


def imports(info: SchemaInfo) -> dict[str, str]:
    """Return the `.proto` files that a protobuf definition imports, printed, by name; not those that protoc ships."""
    if spec(info).language != "protobuf":
        return {}
    try:
        definition = load("definition").parse(info.schema)
        return {
            each: load("definition").proto_text(definition.image.files[each].proto)
            for each in definition.reachable
            if each != definition.root.file.name and not load("definition").is_shipped(each)
        }
    except InvalidSchema:
        return {}


def _halves(info: SchemaInfo) -> Iterator[SchemaInfo]:
    """Yield a definition, or the two of a KEY_VALUE, unless it has none."""
    if both := pair_of(info):
        yield from _halves(both.key)
        yield from _halves(both.value)
    elif info.type not in WITHOUT_SCHEMA:
        yield info


def _inner_types(info: SchemaInfo) -> Iterator[tuple[str, Any, set[str]]]:
    """Yield the name of each named type inside a definition, its definition in a file of its own, and what it needs.

    Nothing for a definition that is no JSON, is nested too deeply, or has numbers that JSON does not have.
    """
    if spec(info).language == "avro":
        try:
            value = read(decode(info.schema))
            json_text(value)
        except (ValueError, InvalidSchema):
            return
        for named in named_types(_FILE, value):
            if named.value is not value:
                uses: set[str] = set()
                alone = _without(named.value, named.around, lambda _: True, uses, is_whole=True)
                yield named.full_name, qualified(alone, named.around), uses - {named.full_name}


def _without(
    value: Any,
    namespace: str | None,
    is_taken: Callable[[str], bool],
    uses: set[str] | None = None,
    *,
    is_whole: bool = False,
) -> Any:
    """Return a definition in which each type for which `is_taken` holds is replaced by its name.

    Args:
        value: the definition as JSON.
        namespace: the namespace in force around it.
        is_taken: asked with the full name of each named type inside it.
        uses: gets the full name of every named type that the result refers to.
        is_whole: `value` itself is not replaced, whatever its name.
    """
    uses = set() if uses is None else uses
    match value:
        case str() if value not in PRIMITIVE_TYPES:
            uses.add(qualify(value, namespace)[0])
        case [*branches]:
            return [_without(each, namespace, is_taken, uses) for each in branches]
        case {"type": ("array" | "map") as kind}:
            key = "items" if kind == "array" else "values"
            if key in value:
                return {**value, key: _without(value[key], namespace, is_taken, uses)}
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
                        {**each, "type": _without(each["type"], within, is_taken, uses)}
                        if isinstance(each, dict) and "type" in each
                        else each
                        for each in fields
                    ],
                }
        case {"type": str(name)} if name not in PRIMITIVE_TYPES:
            uses.add(qualify(name, namespace)[0])
    return value


_FILE: Final = AvroFile("", None, JsonText("", lambda _: Source("")))
