"""Read one YAML file of topic and namespace documents, and describe its problems. Definitions are not read here."""

from __future__ import annotations

import keyword
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import yaml

from schemactl.core.catalog import Client, Deprecated, Metadata, Namespace, Topic
from schemactl.core.errors import DeclarationError, Problem, Source, find_close_match
from schemactl.core.escaping import escape_path
from schemactl.core.json_pointer import split_pointer
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SCHEMA_POLICIES, SETTINGS, CompatibilityStrategy, Policies
from schemactl.core.schema import EMPTY, NANOSECOND_TYPES, Release, SchemaType
from schemactl.core.wording import describe_value, shorten
from schemactl.declare.files import AVRO_SUFFIXES, DESCRIPTOR_SUFFIX, MAX_BYTES, MAX_PROBLEMS, PROTO_SUFFIX
from schemactl.declare.payload import WHY_NO_NAME, find_name_problem
from schemactl.declare.source_location import Tokens, find_key_node, find_node, locate_node
from schemactl.declare.yaml_parser import YamlDocument, YamlText, read_yaml
from schemactl.formats import SPECS
from schemactl.formats.primitive import CHARSET

if TYPE_CHECKING:
    from schemactl.declare.models import (
        ClientShape,
        MappingShape,
        MetadataShape,
        Mismatch,
        NamespaceShape,
        TopicOverlayShape,
        TopicShape,
    )


RESERVED_PROPERTIES: Final = ("schemactl.",)
"""The prefixes that declared properties must not have: `apply` writes properties of uploads with them."""

PROTO_FILES: Final = (PROTO_SUFFIX, DESCRIPTOR_SUFFIX)
_AVRO_KINDS: Final = ("avro", "protobuf")
"""The values of `TypeSpec.declared_as` for which a client may have its own Avro definition."""

KEY_VALUE_PROPERTIES: Final = ("key.schema.", "value.schema.", "kv.encoding.type")
"""The prefixes of the properties that a KEY_VALUE has from its key, its value and its encoding."""

_INTEGERS: Final[tuple[SchemaType, ...]] = (SchemaType.INT16, SchemaType.INT32, SchemaType.INT64)
"""The types whose byte order differs between clients."""

SMALL_DOCUMENT_BYTES: Final = 1_000
"""Size up to which read files stay cached: a declaration without a definition is small, and needed when its definition changes."""

MAX_CACHED_DOCUMENTS: Final = 8_192
"""Number of small files, and of files without their definition, that stay cached."""

_KIND_KEY: Final = re.compile("[A-Za-z][A-Za-z0-9_]*")
"""The keys of kinds: names that Python and Spark can use without quotes."""

_NAME_LINE: Final = re.compile(
    r"""^[\s{"']*(?P<key>topic|namespace)["']?\s*:\s*["']?(?P<name>[^\s"',{}#]+)""", re.MULTILINE
)
"""A line that begins a declaration with its name."""


def is_inline(definition: str) -> bool:
    """Return whether a declared definition is JSON text, and not the path of a file."""
    return definition.lstrip().startswith(("{", "[", '"'))


class SchemaDeclaration(NamedTuple):
    """The value of `schema:`, or its key or value.

    Attributes:
        source: its place.
        text, document, parts: the file, the number of the document, and the place of the schema in it.
        definition: the path of a file as written, or the definition itself (text, or the value of YAML).
        definition_source: the place of the definition.
        encoding, key, value: only for KEY_VALUE.
        proto, message: only for PROTOBUF; PROTOBUF_NATIVE has only `message`.
        file_name: the import name of a `.proto` definition, or "" to find it by its imports.
        payload: the path of a payload file as written, or None. The file has the type; `type` is NONE.
        topic: the declared topic, to check a name in the payload; None for a key or value.
    """

    type: SchemaType
    source: Source
    text: YamlText
    document: int
    parts: Tokens
    definition_source: Source
    definition: Any = None
    references: tuple[str, ...] = ()
    properties: Mapping[str, str] = EMPTY
    encoding: str = "INLINE"
    key: SchemaDeclaration | None = None
    value: SchemaDeclaration | None = None
    proto: str | None = None
    message: str = ""
    file_name: str = ""
    payload: str | None = None
    topic: TopicName | None = None

    def with_file_name(self, name: str) -> SchemaDeclaration:
        """Return the declaration with the import name `name` of its `.proto` definitions."""
        key, value = (half and half.with_file_name(name) for half in (self.key, self.value))
        return self._replace(key=key, value=value, file_name=name)

    @property
    def is_proto(self) -> bool:
        """Whether `definition` names a `.proto` file or a descriptor set."""
        return SPECS[self.type].declared_as == "proto"

    @property
    def is_inline(self) -> bool:
        """Whether `definition` is JSON text, and not the path of a file."""
        return isinstance(self.definition, str) and is_inline(self.definition)

    def locate(self, *parts: str) -> Source:
        """Return the nearest place to `parts` of this schema in the YAML file."""
        return self.text.locate(self.document, self.parts + parts)

    def with_default_properties(self, defaults: Mapping[str, str]) -> SchemaDeclaration:
        """Return the declaration with the default properties of its namespace; its own properties win.

        A KEY_VALUE gets them inside its key and its value of type AVRO: the properties of the pair itself are its types and encoding.
        """
        if not defaults:
            return self
        if self.type is SchemaType.KEY_VALUE:
            key, value = (
                half and half.with_default_properties(defaults if half.type is SchemaType.AVRO else EMPTY)
                for half in (self.key, self.value)
            )
            return self._replace(key=key, value=value)
        return self._replace(properties={**defaults, **self.properties})


class TopicDocument(NamedTuple):
    """A declared topic (its `schema` is still None, and it is without kinds), and the declarations of its definitions.

    Attributes:
        schema: the value of `schema`, or None.
        clients: the own definitions of clients, by the names of the clients.
        kinds: the values under `schemas`, by their keys, in order.
        readers: the readers of the kinds, by their keys.
    """

    topic: Topic
    schema: SchemaDeclaration | None
    source: Source
    clients: Mapping[str, SchemaDeclaration] = MappingProxyType({})
    kinds: Mapping[str, SchemaDeclaration] = MappingProxyType({})
    readers: Mapping[str, int | Literal["latest"]] = MappingProxyType({})

    @property
    def declarations(self) -> list[SchemaDeclaration]:
        """The declarations of its schema or of its kinds."""
        return [self.schema] if self.schema else [*self.kinds.values()]

    def with_default_properties(self, defaults: Mapping[str, str]) -> TopicDocument:
        """Return the document whose schemas have the default properties of its namespace."""
        if not defaults:
            return self
        schema = self.schema and self.schema.with_default_properties(defaults)
        clients = {name: client.with_default_properties(defaults) for name, client in self.clients.items()}
        kinds = {key: kind.with_default_properties(defaults) for key, kind in self.kinds.items()}
        return self._replace(schema=schema, clients=clients, kinds=kinds)


@dataclass(frozen=True, slots=True)
class _Locator:
    """The locator of a document of a file that has these keys; `source` is the place of other keys."""

    text: YamlText
    document: int
    keys: frozenset[str]
    source: Source

    def __call__(self, pointer: str) -> Source:
        parts = split_pointer(pointer)
        return self.text.locate(self.document, parts) if self.keys.intersection(parts[:1]) else self.source


@dataclass(frozen=True, slots=True)
class BrokenDocument:
    """A document with problems.

    Attributes:
        name: the topic or namespace that it declares, or None if that cannot be read either.
        problems: its problems.
        number: its position in the file, or None if the file is not YAML.
    """

    name: TopicName | NamespaceName | None
    problems: tuple[Problem, ...]
    number: int | None = None


class Documents(NamedTuple):
    """The documents of one YAML file without problems, and all problems of the file.

    Attributes:
        unread: the schemas of documents with problems, with only the keys that name files.
        broken: the documents with problems. A document in which one key is wrong may also be among `documents`.
    """

    path: str
    documents: tuple[TopicDocument | Namespace, ...] = ()
    problems: tuple[Problem, ...] = ()
    unread: tuple[SchemaDeclaration, ...] = ()
    broken: tuple[BrokenDocument, ...] = ()


def read_documents(path: str, data: bytes) -> Documents:
    """Read the YAML file `path` with the content `data`. The result depends only on these two."""
    read = _read_small_file if len(data) <= SMALL_DOCUMENT_BYTES else _read_file
    return _read_with_known_frame(path, data) or read(path, data)


def _read_file(path: str, data: bytes) -> Documents:
    try:
        yaml_documents, problems = read_yaml(path, data)
    except DeclarationError as error:
        # In a file that is not YAML, each line that begins with a name is a document. Without such a line, there is one.
        matches = _NAME_LINE.finditer(data.decode(errors="replace"))
        names = [*dict.fromkeys(_parse_name({match["key"]: match["name"]}) for match in matches)] or [None]
        return Documents(path, (), error.problems, broken=tuple(BrokenDocument(name, error.problems) for name in names))
    if not yaml_documents:
        problems = [
            Problem(Source(escape_path(path)), "the file is empty", "declare a topic or a namespace, or delete it")
        ]
    text = YamlText(path, data)
    documents = []
    unread = []
    # A key or value that the YAML reader rejected gets no second problem from validation.
    places = {problem.source for problem in problems}
    for number, document in enumerate(yaml_documents):
        shape, errors = _validate_document(document, escape_path(path))
        problems += [problem for problem in errors if problem.source not in places]
        if not errors:
            documents.append(_build_document(shape, document, text, number))
        elif isinstance(document.value, dict):
            kinds = document.value.get("schemas")
            schemas: dict[Tokens, Any] = {("schema",): document.value.get("schema")}
            schemas |= {("schemas", key): kind for key, kind in kinds.items()} if isinstance(kinds, dict) else {}
            unread += [
                _build_schema(file_keys, document.node, text, number, parts)
                for parts, schema in schemas.items()
                if (file_keys := _keep_file_keys(schema))
            ]
    if not problems:
        return Documents(path, tuple(documents))
    broken = _group_by_document(yaml_documents, path, problems)
    return Documents(path, tuple(documents), limit_problems(problems), tuple(unread), broken)


# Files that differ only in the definition at their end
#
# In most commits, a topic changes only its inline definition. If that is a literal block at the end of the file, nothing else in the
# file depends on it, so the rest (the frame) is read once for all definitions. All of them share the topic of the frame, whose
# places are the same in every such file.

_BLOCK_KEY: Final = b"definition: |\n"
_BLOCK_BYTES: Final = bytes(range(0x20, 0x7F)) + b"\n"
_STAND_IN: Final = b'{"the definition": "that a frame is read with"}\n'


def _read_with_known_frame(path: str, data: bytes) -> Documents | None:
    """Read a file that ends with an inline definition in a literal block, or return None for another file, or one with problems."""
    block_start = data.rfind(_BLOCK_KEY) + len(_BLOCK_KEY)
    if block_start < len(_BLOCK_KEY) or len(data) > MAX_BYTES:
        return None
    block = data[block_start:]
    indent = len(block) - len(block.lstrip(b" "))
    line_start = b"\n" + b" " * indent
    # All lines have the indent of the first one, and an end without spaces, so none is blank.
    is_regular = block.endswith(b"\n") and block.count(b"\n") == block.count(line_start) + 1 and b" \n" not in block
    if not indent or not is_regular or block.translate(None, _BLOCK_BYTES):
        return None
    definition = block[indent:].replace(line_start, b"\n").decode()
    document = _read_frame(path, data[:block_start], indent) if is_inline(definition) else None
    if document is None or document.schema is None:
        return None
    schema = document.schema._replace(text=YamlText(path, data), definition=definition)
    return Documents(path, (TopicDocument(document.topic, schema, document.source),))


@lru_cache(MAX_CACHED_DOCUMENTS)
def _read_frame(path: str, head: bytes, indent: int) -> TopicDocument | None:
    """Read a file that begins with `head` and ends with _STAND_IN; return None if that is not the definition of its only document."""
    if _STAND_IN.rstrip() in head:
        return None
    data = head + b" " * indent + _STAND_IN
    documents = _read_file(path, data)
    document = documents.documents[0] if len(documents.documents) == 1 and not documents.problems else None
    if not isinstance(document, TopicDocument) or document.schema is None or document.clients or document.kinds:
        return None
    return document if document.schema.definition == _STAND_IN.decode() else None


# A first check reads each declaration twice: in the history, and in the working tree.
_read_small_file = lru_cache(MAX_CACHED_DOCUMENTS)(_read_file)


def _group_by_document(
    documents: Sequence[YamlDocument], path: str, problems: Iterable[Problem]
) -> tuple[BrokenDocument, ...]:
    """Group the problems of a file by the document that they are in; of many problems, the last is their number."""
    problems = list(problems)
    limited_problems = limit_problems(problems)
    first_lines = [locate_node(escape_path(path), document.node).line for document in documents]

    def find_number(problem: Problem) -> int:
        return max(bisect_right(first_lines, problem.source.line) - 1, 0)

    problems_by_number: dict[int, list[Problem]] = {number: [] for number in sorted({*map(find_number, problems)})}
    for problem in limited_problems:
        problems_by_number[find_number(problem)].append(problem)
    return tuple(
        BrokenDocument(
            _parse_name(documents[number].value) if documents else None,
            tuple(document_problems) or limited_problems[-1:],
            number,
        )
        for number, document_problems in problems_by_number.items()
    )


def _parse_name(value: object) -> TopicName | NamespaceName | None:
    """Return the name that a document declares, or None if it is missing or wrong."""
    if isinstance(value, dict):
        with suppress(ValueError):
            if "topic" in value:
                return TopicName.parse(str(value["topic"]))
            if "namespace" in value:
                return NamespaceName.parse(str(value["namespace"]))
    return None


def limit_problems(problems: list[Problem]) -> tuple[Problem, ...]:
    """Sort the problems of one file by place, and replace those after MAX_PROBLEMS by their number."""
    first = sorted(set(problems))
    if len(first) > MAX_PROBLEMS:
        omitted_count = len(first) - MAX_PROBLEMS
        first[MAX_PROBLEMS:] = [
            Problem(first[MAX_PROBLEMS].source, f"{omitted_count:,} more problems in this file from here on")
        ]
    return tuple(first)


def _validate_document(document: YamlDocument, path: str) -> tuple[Any, list[Problem]]:
    """Return the model of a document, and its problems; with problems, the model does not count."""
    value, root = document.value, document.node
    if not isinstance(value, dict):
        message = "this document is empty" if value is None else f"expected a mapping, found {describe_value(value)}"
        return None, [Problem(locate_node(path, root), message, "declare a topic or a namespace: `topic: ...`")]
    if "topic" in value:
        return read_shape("topic", value, root, path, _check_topic)
    if "namespace" in value:
        return read_shape("namespace", value, root, path, _check_namespace)
    message = "this document has neither `topic` nor `namespace`, so it declares nothing"
    matches = ((key, find_close_match(key, ("topic", "namespace"))) for key in value)
    fixes = (f"write `{match}` for `{key}`" for key, match in matches if match)
    return None, [Problem(locate_node(path, root), message, next(fixes, "add one of the two keys"))]


def _check_topic(topic: TopicShape) -> Iterator[Misfit]:
    """Yield contradictions between the values of a topic, each of which is valid by itself."""
    from schemactl.declare.models import KeyValueShape, PayloadShape

    yield from check_settings(topic)
    if topic.renamed_from == topic.topic:
        fix = "write its previous name, or remove the key"
        yield Misfit(("renamed_from",), "the topic is renamed from itself", fix)
    yield from _check_metadata(topic, "topic", topic.topic)
    names: set[str] = set()
    for index, client in enumerate(topic.clients):
        if client.name in names:
            parts = ("clients", str(index), "name")
            yield Misfit(parts, f"duplicate client name `{client.name}`", "give it another name")
        names.add(client.name)
    yield from check_scalable_topic(topic)
    schema = topic.schema_
    for problem in find_name_problem(schema.name or "", topic.topic, Source("")) if schema else ():
        yield Misfit(("schema", "name"), problem.message, problem.fix)
    yield from _check_kinds(topic)
    if isinstance(schema, PayloadShape):
        return
    yield from _check_client_definitions(topic)
    if schema is None:
        return
    schemas: dict[Tokens, Any] = {("schema",): schema}
    if isinstance(schema, KeyValueShape):
        schemas |= {("schema", "key"): schema.key, ("schema", "value"): schema.value}
    for schema_parts, part in schemas.items():
        yield from _check_properties(part, schema_parts)
    types = {part.type for part in schemas.values()}
    settings = {
        "integers": (topic.generate.integers, "byte order", _INTEGERS),
        "nanoseconds": (topic.generate.nanoseconds, "column", NANOSECOND_TYPES),
    }
    for key, (setting, subject, setting_types) in settings.items():
        if setting is not None and types.isdisjoint(setting_types):
            type_names = ", ".join(type_.name for type_ in setting_types)
            message = f"`{key}` is the {subject} of {type_names}, but the schema is {schema.type.name}"
            yield Misfit(("generate", key), message, "remove it", of_key=True)
    yield from _check_proto(schema, ("schema",))


def _check_proto(schema: MappingShape, parts: Tokens) -> Iterator[Misfit]:
    """Yield `proto` without `message`, or the other way around, in a schema of type PROTOBUF."""
    from schemactl.declare.models import ProtobufShape

    if isinstance(schema, ProtobufShape) and (schema.proto is None) != (schema.message is None):
        present, missing = ("proto", "message") if schema.proto else ("message", "proto")
        fix = f"add `{missing}`, or remove `{present}`"
        yield Misfit((*parts, present), f"`{present}` needs `{missing}`", fix)


def _check_kinds(topic: TopicShape) -> Iterator[Misfit]:
    """Yield contradictions between the kinds of events of a topic and its other keys."""
    kinds = topic.schemas
    if not kinds:
        if topic.kinds_compatibility:
            message = "`kinds_compatibility` needs `schemas`: it is the strategy of each kind of events"
            fix = "remove it, or write `schema_compatibility_strategy` for a topic with one schema"
            yield Misfit(("kinds_compatibility",), message, fix, of_key=True)
        for index, client in enumerate(topic.clients):
            if client.kind:
                parts = ("clients", str(index), "kind")
                yield Misfit(parts, "`kind` needs a topic with `schemas`", "remove it", of_key=True)
        return
    if topic.schema_:
        message = "a topic has either `schema` or `schemas`"
        yield Misfit(("schema",), message, "move it below `schemas`, with a key for its kind", of_key=True)
    if topic.reader is not None:
        fix = "write `reader` into the kind, below `schemas`"
        yield Misfit(("reader",), "`reader` of a topic with `schemas` is set for each kind", fix, of_key=True)
    if file := topic.protobuf.file:
        message = f"`file` names the .proto file of one schema, and this topic has several: {shorten(file)}"
        yield Misfit(("protobuf", "file"), message, "remove it, or move the kinds to separate topics", of_key=True)
    keys_by_folded_key: dict[str, str] = {}
    for key, kind in kinds.items():
        first = keys_by_folded_key.setdefault(key.casefold(), key)
        if not _KIND_KEY.fullmatch(key) or keyword.iskeyword(key):
            suggestion = re.sub(r"\W+", "_", key, flags=re.ASCII).strip("_").lower()
            is_usable = _KIND_KEY.fullmatch(suggestion) and not keyword.iskeyword(suggestion)
            message = f"`{shorten(key)}` cannot be the key of a kind: packages use it as a name in Python"
            fix = f"write `{suggestion}`" if is_usable else "write letters, digits and `_`, a letter first"
            yield Misfit(("schemas", key), message, fix, of_key=True)
        elif first != key:
            message = f"`{first}` and `{key}` differ only in case, and Spark's columns do not"
            yield Misfit(("schemas", key), message, "give one another key", of_key=True)
        yield from _check_properties(kind, ("schemas", key))
        yield from _check_proto(kind, ("schemas", key))
    for index, client in enumerate(topic.clients):
        if client.kind and client.kind not in kinds:
            near = find_close_match(client.kind, kinds)
            fix = f"write {near}" if near else f"the kinds are {', '.join(kinds)}"
            message = f"the topic declares no kind `{shorten(client.kind)}`"
            yield Misfit(("clients", str(index), "kind"), message, fix)


def _check_client_definitions(topic: TopicShape) -> Iterator[Misfit]:
    """Yield clients whose own definition does not fit the schema type of the topic, or of its kind."""
    for index, client in enumerate(topic.clients):
        file = client.schema_.file
        if not file:
            continue
        schema = topic.schema_
        if topic.schemas:
            if client.kind is None:
                message = (
                    f"a client that is built with `{file[:60]}` needs `kind`, the kind of events that this file defines"
                )
                yield Misfit(("clients", str(index), "schema"), message, f"add `kind`: {' or '.join(topic.schemas)}")
            # An unknown kind is reported by itself.
            if client.kind not in topic.schemas:
                continue
            schema = topic.schemas[client.kind]
        declared_as = SPECS[schema.type].declared_as if schema else ""
        suffixes = PROTO_FILES if declared_as == "proto" else AVRO_SUFFIXES if declared_as in _AVRO_KINDS else ()
        if not file.endswith(suffixes):
            kind = f"whose schema is {schema.type.name}" if schema else "without schema"
            fix = f"name a file that ends with {' or '.join(suffixes)}" if suffixes else "write a version's number"
            message = f"a client of a topic {kind} cannot be built with `{file[:60]}`"
            yield Misfit(("clients", str(index), "schema"), message, fix)


def _check_namespace(namespace: NamespaceShape) -> Iterator[Misfit]:
    """Yield contradictions between the values of a namespace, each of which is valid by itself."""
    yield from check_settings(namespace)
    yield from _check_metadata(namespace, "namespace")
    for name in namespace.schema_properties:
        parts = ("schema_properties", name)
        if name.startswith(RESERVED_PROPERTIES):
            yield Misfit(parts, f"schemactl sets the property `{name}` itself", "give it another name")
        elif name == CHARSET:
            fix = "write it under `properties` of each schema of type STRING"
            yield Misfit(parts, f"the property `{name}` determines the bytes of messages", fix)
        elif name.startswith(KEY_VALUE_PROPERTIES):
            yield Misfit(parts, f"the property `{name}` belongs to one KEY_VALUE", "remove it")


def _check_metadata(metadata: MetadataShape, kind: str, topic: TopicName | None = None) -> Iterator[Misfit]:
    """Yield contradictions in the metadata of a topic or namespace; `topic` is the name of a topic."""
    deprecated = metadata.deprecated
    if deprecated is None:
        return
    if deprecated.since and deprecated.remove_after and deprecated.since > deprecated.remove_after:
        message = f"the {kind} is deprecated since {deprecated.since}, but `remove_after` is an earlier day"
        yield Misfit(("deprecated", "remove_after"), message, "write a later day")
    if topic and deprecated.use == topic:
        fix = "write another topic, or remove the key"
        yield Misfit(("deprecated", "use"), "the topic is to be replaced by itself", fix)


def check_settings(shape: MappingShape) -> Iterator[Misfit]:
    """Yield settings of a namespace or topic that fit the model, but that Pulsar rejects."""
    for name in SETTINGS.keys() & shape.model_fields_set:
        if message := SETTINGS[name].wrong(getattr(shape, name)):
            yield Misfit((name,), message, "write -1 for no limit, or 0 for both")


def check_scalable_topic(topic: TopicOverlayShape) -> Iterator[Misfit]:
    """Yield the keys of a scalable topic, or of its overlay, that the admin API of scalable topics has no endpoint for."""
    if not topic.topic.is_scalable:
        return
    reasons = {
        "partitions": "brokers split its segments themselves",
        **dict.fromkeys(SCHEMA_POLICIES, "only its namespace has schema policies"),
        **dict.fromkeys(SETTINGS, "the admin API of scalable topics sets no policies"),
    }
    for key, reason in reasons.items():
        if key in topic.model_fields_set:
            message = f"a scalable topic has no `{key}`: {reason}"
            fix = "set it for the namespace, or remove it" if key in SCHEMA_POLICIES else "remove it"
            yield Misfit((key,), message, fix, of_key=True)


def _check_properties(schema: Any, parts: Tokens) -> Iterator[Misfit]:
    """Yield properties that a declared schema must not have."""
    for name in schema.properties:
        property_parts = (*parts, "properties", name)
        if name.startswith(RESERVED_PROPERTIES):
            message = f"schemactl sets the property `{name}` itself"
            yield Misfit(property_parts, message, "give it another name")
        elif schema.type is SchemaType.KEY_VALUE and name.startswith(KEY_VALUE_PROPERTIES):
            message = f"the property `{name}` follows from `key`, `value` and `encoding`"
            yield Misfit(property_parts, message, "remove it")


def _build_document(shape: Any, document: YamlDocument, text: YamlText, number: int) -> TopicDocument | Namespace:
    """Build the declaration of a document without problems; `number` is its position in the file."""
    source, locate = _find_places(document, text, number)
    if "namespace" in document.value:
        return Namespace(
            shape.namespace,
            Policies.of(vars(shape)),
            _build_metadata(shape),
            source,
            locate,
            schema_properties=shape.schema_properties or EMPTY,
        )
    strategy = shape.kinds_compatibility
    topic = Topic(
        shape.topic,
        policies=Policies.of(vars(shape)),
        partitions=shape.partitions,
        generation=shape.generation or 1,
        renamed_from=shape.renamed_from,
        reader="latest" if shape.reader is None else shape.reader,
        recursion_depth=shape.generate.recursion_depth,
        json_times=shape.generate.json_times,
        integers=shape.generate.integers,
        nanoseconds=shape.generate.nanoseconds,
        rendering=shape.protobuf.rendering,
        lifecycle=shape.lifecycle or "stable",
        metadata=_build_metadata(shape),
        clients=tuple(map(_build_client, shape.clients)),
        kinds_compatibility=None if strategy is CompatibilityStrategy.UNDEFINED else strategy,
        source=source,
        locator=locate,
    )
    schema = None
    if shape.schema_:
        schema = _build_schema(vars(shape.schema_), document.node, text, number, ("schema",), topic=topic.name)
        if shape.protobuf.file:
            schema = schema.with_file_name(shape.protobuf.file)
    kinds = {
        key: _build_schema(vars(kind), document.node, text, number, ("schemas", key))
        for key, kind in shape.schemas.items()
    }
    readers = {key: kind.reader for key, kind in shape.schemas.items() if kind.reader is not None}
    client_definitions = {}
    for index, client in enumerate(topic.clients):
        if client.file and (declaration := kinds.get(client.kind, schema)):
            client_source = locate_node(
                escape_path(text.path), find_node(document.node, ("clients", str(index), "schema"))
            )
            client_definitions[client.name] = declaration._replace(
                parts=("clients", str(index)),
                source=client_source,
                definition_source=client_source,
                definition=client.file,
                proto=None,
                topic=None,
            )
    return TopicDocument(topic, schema, source, client_definitions, kinds, readers)


def build_overlay(shape: Any, document: YamlDocument, text: YamlText, number: int) -> Topic | Namespace:
    """Build the namespace or topic of an overlay document without problems; `number` is its position in the file."""
    source, locate = _find_places(document, text, number)
    policies = Policies.of(vars(shape))
    if "namespace" in document.value:
        return Namespace(shape.namespace, policies, source=source, locator=locate)
    return Topic(shape.topic, policies=policies, partitions=shape.partitions, source=source, locator=locate)


def _find_places(document: YamlDocument, text: YamlText, number: int) -> tuple[Source, Callable[[str], Source]]:
    """Return the place of the name of a declaration, and its locator, which returns this place for keys that it does not have."""
    name_key = "topic" if "topic" in document.value else "namespace"
    source = locate_node(escape_path(text.path), find_node(document.node, (name_key,)))
    return source, _Locator(text, number, frozenset(document.value), source)


def _build_metadata(shape: MetadataShape) -> Metadata:
    deprecated = None
    if shape.deprecated:
        deprecated = Deprecated(shape.deprecated.since, shape.deprecated.remove_after, shape.deprecated.use)
    return Metadata(shape.owner or "", shape.description or "", shape.labels or EMPTY, shape.links or EMPTY, deprecated)


def _build_client(client: ClientShape) -> Client:
    return Client(
        client.name,
        client.role,
        client.schema_.versions,
        client.schema_.file,
        team=client.team or "",
        language=client.language or "",
        contact=client.contact or "",
        targets=tuple(client.targets),
        kind=client.kind or "",
    )


def _build_schema(
    values: Mapping[str, Any],
    root: yaml.Node,
    text: YamlText,
    number: int,
    parts: Tokens,
    *,
    topic: TopicName | None = None,
) -> SchemaDeclaration:
    """Build the declaration of a schema from the values of its model, or of a part of its keys."""
    halves = {
        half: _build_schema(vars(part) if type(part) is not dict else part, root, text, number, (*parts, half))
        for half in ("key", "value")
        if (part := values.get(half))
    }
    return SchemaDeclaration(
        values.get("type", SchemaType.NONE),
        locate_node(escape_path(text.path), find_node(root, parts)),
        text,
        number,
        parts,
        locate_node(escape_path(text.path), find_node(root, (*parts, "definition"))),
        definition=values.get("definition"),
        references=tuple(values.get("references", ())),
        properties=values.get("properties") or EMPTY,
        encoding=values.get("encoding") or "INLINE",
        key=halves.get("key"),
        value=halves.get("value"),
        proto=values.get("proto"),
        message=values.get("message") or "",
        payload=values.get("payload"),
        topic=topic,
    )


def _keep_file_keys(schema: object) -> dict[str, Any]:
    """Reduce a schema with problems to its type and the keys that name files; {} if it names none."""
    if isinstance(schema, dict) and _is_path(schema.get("payload")):
        return {"payload": schema["payload"]}
    type_ = SchemaType.__members__.get(str(schema.get("type"))) if isinstance(schema, dict) else None
    if type_ is None or not isinstance(schema, dict) or SPECS[type_].declared_as == "plain":
        return {}
    file_keys: dict[str, Any]
    if SPECS[type_].declared_as == "pair":
        file_keys = {half: part for half in ("key", "value") if (part := _keep_file_keys(schema.get(half)))}
    else:
        keys = ("definition", "proto") if SPECS[type_].declared_as == "protobuf" else ("definition",)
        file_keys = {key: schema[key] for key in keys if _is_path(schema.get(key))}
        references = schema.get("references")
        file_keys["references"] = list(filter(_is_path, references)) if isinstance(references, list) else []
    return {"type": type_, **file_keys}


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


# Problems of values that do not fit

Message = tuple[str, str]
"""The problem, and the fix or ""."""


class Misfit(NamedTuple):
    """A part of a document that does not fit.

    Attributes:
        parts: the keys and indexes that lead to it.
        of_key: whether the problem is the key, not its value.
    """

    parts: Tokens
    message: str
    fix: str = ""
    of_key: bool = False


def locate_misfits(misfits: Iterable[Misfit], root: yaml.Node, path: str) -> list[Problem]:
    """Convert the misfits of a document to problems, sorted by place."""
    problems = [
        Problem(_locate_part(misfit.parts, root, path, of_key=misfit.of_key), misfit.message, misfit.fix)
        for misfit in misfits
    ]
    return sorted(problems, key=attrgetter("source"))


def _locate_part(parts: Tokens, root: yaml.Node, path: str, *, of_key: bool) -> Source:
    node = find_node(root, parts)
    if of_key:
        node = find_key_node(find_node(root, parts[:-1]), parts[-1]) or node
    return locate_node(path, node)


def read_shape(
    kind: str, value: Any, node: yaml.Node, path: str, check: Callable[[Any], Iterable[Misfit]]
) -> tuple[Any, list[Problem]]:
    """Read a value as the model of the kind `kind` (see `models.KINDS`), and return it with its problems.

    The problems are the mismatches with the model or, if the value fits, the misfits that `check` yields for the model. With
    problems, the model does not count. After MAX_PROBLEMS, all mismatches have the same message, because they are only counted
    and finding similar names is slow.
    """
    # Importing pydantic is slow, and only needed here.
    from schemactl.declare.models import read_model

    shape = read_model(kind, value)
    if not isinstance(shape, list):
        return shape, locate_misfits(check(shape), node, path)
    located_mismatches: list[tuple[Source, Mismatch]] = []
    for mismatch in shape:
        parts = (*mismatch.parts, "type") if mismatch.kind.startswith("union_tag") else mismatch.parts
        source = _locate_part(parts, node, path, of_key=mismatch.kind == "extra_forbidden")
        located_mismatches.append((source, mismatch))
    located_mismatches.sort(key=itemgetter(0))
    problems = [
        Problem(source, *_describe_mismatch(mismatch)) for source, mismatch in located_mismatches[:MAX_PROBLEMS]
    ]
    problems += [Problem(source, "this does not belong here") for source, _ in located_mismatches[MAX_PROBLEMS:]]
    return shape, problems


def describe_unknown_rule(name: str, known: Iterable[str]) -> Message:
    """Return the message for a rule that is not among the rules `known`."""
    near = find_close_match(name, known)
    fix = f"write {near}" if near else "`schemactl explain --all` lists the rules"
    return f"`{shorten(name)}` is not a rule", fix


def _describe_mismatch(mismatch: Mismatch) -> Message:
    """Return the message for a mismatch by pydantic's type of the error."""
    value = mismatch.value
    match mismatch.kind:
        case "value_error":
            message, fix = (*mismatch.context["error"].args, "")[:2]
            return message, fix
        case "extra_forbidden":
            return _describe_unknown_key(mismatch.parts[-1], mismatch)
        case "missing":
            key = mismatch.parts[-1]
            purpose = mismatch.keys[key]
            return f"the key `{key}` is missing", f"add `{key}`" + (f": {purpose}" if purpose else "")
        case "union_tag_not_found" | "union_tag_invalid":
            if mismatch.parts[0] == "schemas" and (message := _describe_unfit_kind(value)):
                return message
            return _describe_type(value, is_half=len(mismatch.parts) > 1 and mismatch.parts[0] != "schemas")
        case "list_type":
            fix = f"write [{value}]" if isinstance(value, str) and len(value) < 40 else ""
            return f"expected a list, found {describe_value(value)}", fix
        case "too_long":
            return f"at most {mismatch.context['max_length']:,} entries are allowed here", ""
        case "too_short":
            return f"expected at least one entry, found an empty {'mapping' if isinstance(value, dict) else 'list'}", ""
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"expected a mapping, found {describe_value(value)}", ""
    raise AssertionError(f"no message for {mismatch}")


HOMES: Final = {
    "is_allow_auto_update_schema": "a namespace",
    "schema_validation_enforced": "a namespace or a topic",
    **dict.fromkeys(
        (
            *("partitions", "generation", "renamed_from", "reader", "lifecycle", "clients", "schema"),
            *("schemas", "kinds_compatibility"),
        ),
        "a topic",
    ),
    **dict.fromkeys(("owner", "description", "labels", "links", "deprecated"), "a topic or a namespace"),
    **dict.fromkeys(("type", "definition", "references", "properties", "payload"), "`schema`"),
    **dict.fromkeys(("encoding", "key", "value"), "`schema`, with the type KEY_VALUE"),
    **dict.fromkeys(SETTINGS, "a namespace or a topic"),
    **dict.fromkeys(("recursion_depth", "json_times", "nanoseconds"), "`generate`"),
    "integers": "`generate` of a topic",
    "schema_properties": "the declaration of a namespace",
    "rendering": "`protobuf`",
    "proto": "`schema`, with the type PROTOBUF",
    "message": "`schema`, with the type PROTOBUF_NATIVE (or PROTOBUF with `proto`)",
}
"""The mapping that each key belongs to, for keys in the wrong mapping."""


_INFO_KEYS: Final = {
    **dict.fromkeys(("schema", "data"), "write `definition`"),
    **dict.fromkeys(("timestamp", "version"), "remove it"),
}
"""Keys of a SchemaInfo, or of a response of the admin API, with the fix."""


def _describe_unknown_key(key: str, mismatch: Mismatch) -> Message:
    home = HOMES.get(key, "")
    if "payload" in mismatch.keys:
        return f"`{shorten(key)}` belongs in the file that `payload` names", "remove it here, or remove `payload`"
    if mismatch.schema_type and key in _INFO_KEYS:
        fix = f"{_INFO_KEYS[key]}, or write the whole object into a file: `schema: {{payload: FILE.json}}`"
        return f"`{key}` is a key of pulsar-admin's SchemaInfo", fix
    if "topic" in mismatch.keys and key == "name":
        return "`name` does not belong here", f"the topic's name is the key `topic`. {WHY_NO_NAME}"
    if mismatch.schema_type and "`schema`" in home:
        is_half = (
            SPECS[SchemaType[mismatch.schema_type]].declared_as == "protobuf"
            and mismatch.parts[0] == "schema"
            and len(mismatch.parts) > 2
        )
        where = " as the key or value of a KEY_VALUE" if is_half else ""
        return f"{mismatch.schema_type} has no {key}{where}", "remove it"
    # A key of another mapping is not misspelled.
    if home:
        return f"`{key}` does not belong here", f"it belongs to {home}"
    near = find_close_match(key, mismatch.keys)
    if near:
        return f"unknown key `{shorten(key)}`", f"write `{near}`"
    return f"unknown key `{shorten(key)}`", f"the keys here are {', '.join(mismatch.keys)}"


def _describe_unfit_kind(schema: Any) -> Message | None:
    """Return the message for a kind of events that is a payload or whose type has no record, or None for another reason."""
    if isinstance(schema, dict) and "payload" in schema:
        return "a kind of events cannot be a payload", "write `type` and `definition` in place of `payload`"
    name = schema.get("type") if isinstance(schema, dict) else None
    type_ = SchemaType.__members__.get(name) if isinstance(name, str) else None
    if type_ is None or SPECS[type_].undeclarable:
        return None
    message = f"{name} cannot be a kind of events: a version belongs to a kind by the name of its record, and {name} has no record"
    return message, "write AVRO, JSON, PROTOBUF or PROTOBUF_NATIVE; or declare a separate topic for it"


_WRITE_PAYLOAD: Final = "put the object under it into a file, and write {payload: FILE.json}"


def _describe_type(schema: Any, *, is_half: bool) -> Message:
    """Return the message for a `type` that selects no model."""
    if not isinstance(schema, dict):
        fix = "write {type: STRING}, for example"
        if isinstance(schema, str) and schema.lstrip().startswith("{"):
            return (
                "this text is a definition without its type",
                "write {type: AVRO, definition: ...}; a SchemaInfo of pulsar-admin goes into a file: {payload: FILE.json}",
            )
        if isinstance(schema, str) and schema in SchemaType.__members__:
            fix = f"write {{type: {schema}}}"
        elif isinstance(schema, str) and re.fullmatch(r"[\w./-]+", schema):
            if schema.endswith(AVRO_SUFFIXES):
                fix = f"write {{type: AVRO, definition: {schema}}}"
            elif schema.endswith(PROTO_FILES):
                fix = f"write {{type: PROTOBUF_NATIVE, definition: {schema}, message: PACKAGE.NAME}}"
        return f"expected a mapping with a `type`, found {describe_value(schema)}", fix
    if "schemaInfo" in schema:
        return "`schemaInfo` is a key of the output of `pulsar-admin schemas get`", _WRITE_PAYLOAD
    if "type" not in schema:
        return "the key `type` is missing", "write the schema's type: AVRO, JSON, STRING, ..."
    name = schema["type"]
    if not isinstance(name, str):
        return f"expected a schema type, found {describe_value(name)}", "write AVRO, JSON, STRING, ..."
    if name in SchemaType.__members__:
        spec = SPECS[SchemaType[name]]
        return (spec.unfit_half, "write AVRO, JSON, STRING, ...") if is_half else spec.undeclarable or ("", "")
    allowed = [
        type_.name for type_, spec in SPECS.items() if not spec.undeclarable and spec.first_release is Release.R4_0
    ]
    near = find_close_match(name, allowed)
    return f"`{shorten(name)}` is not a schema type", f"write {near or 'one of ' + ', '.join(allowed)}"
