"""Read one YAML file of topic and namespace documents, and word the problems in it. Definitions are not read here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from schemactl.core.catalog import Client, Metadata, Namespace, Topic
from schemactl.core.errors import DeclarationError, Problem, Source, meant
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SETTINGS, Policies
from schemactl.core.schema import EMPTY, Release, SchemaType
from schemactl.core.wording import found, shortened
from schemactl.declare.files import AVRO_SUFFIXES, DESCRIPTOR_SUFFIX, MAX_PROBLEMS, PROTO_SUFFIX, shown
from schemactl.declare.source_location import Tokens, key_node, node_at, node_place, tokens
from schemactl.declare.yaml_parser import YamlDocument, YamlText, read_yaml
from schemactl.formats import SPECS

if TYPE_CHECKING:
    from schemactl.declare.models import Mismatch


RESERVED_PROPERTIES: Final = ("schemactl.",)
"""What the names of declared properties do not start with: `apply` stamps uploads with such."""

PROTO_FILES: Final = (PROTO_SUFFIX, DESCRIPTOR_SUFFIX)
_ONE_FILE: Final = ("avro", "protobuf")
"""How a topic's schema is declared of which a client may have a definition of its own, besides a `.proto`."""

_KEY_VALUE_PROPERTIES: Final = ("key.schema.", "value.schema.", "kv.encoding.type")


@dataclass(frozen=True, slots=True)
class SchemaDeclaration:
    """A `schema:`, or a half of one, as it is written.

    Attributes:
        source: where it stands.
        text, document, parts: the file, the number of the document, and the place of the schema in it.
        definition: the path of a file as written, or the definition itself (text, or the value of YAML).
        definition_source: where that stands.
        encoding, key, value: of a KEY_VALUE schema.
        proto, message: of a PROTOBUF schema; PROTOBUF_NATIVE has `message` alone.
    """

    type: SchemaType
    source: Source
    text: YamlText
    document: int
    parts: Tokens
    definition_source: Source
    definition: Any = None
    references: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    encoding: str = "INLINE"
    key: SchemaDeclaration | None = None
    value: SchemaDeclaration | None = None
    proto: str | None = None
    message: str = ""

    @property
    def is_proto(self) -> bool:
        """Whether `definition` names a `.proto`, or a descriptor set."""
        return SPECS[self.type].declared_as == "proto"

    @property
    def is_inline(self) -> bool:
        """Whether `definition` is JSON text, and not the path of a file."""
        return isinstance(self.definition, str) and self.definition.lstrip().startswith(("{", "[", '"'))

    def locate(self, *parts: str) -> Source:
        """Return the nearest place to `parts` of this schema in the YAML file."""
        return self.text.locate(self.document, self.parts + parts)


@dataclass(frozen=True, slots=True)
class TopicDocument:
    """A declared topic (its `schema` is still None), and the declaration of its schema."""

    topic: Topic
    schema: SchemaDeclaration | None
    source: Source
    clients: Mapping[str, SchemaDeclaration] = field(default_factory=dict)
    """The definitions of their own that clients are built with, by the clients' names."""


@dataclass(frozen=True, slots=True)
class NamespaceDocument:
    """A declared namespace."""

    namespace: Namespace
    source: Source


@dataclass(frozen=True, slots=True)
class Documents:
    """What one YAML file declares, and what is wrong with it. A document with problems of its own is left out.

    Of the schemas of such documents `unread` has the files they name.
    """

    path: str
    documents: tuple[TopicDocument | NamespaceDocument, ...] = ()
    problems: tuple[Problem, ...] = ()
    unread: tuple[SchemaDeclaration, ...] = ()


def read_documents(path: str, data: bytes) -> Documents:
    """Return what the YAML file `path` with content `data` declares. The result depends on these two alone."""
    try:
        found, problems = read_yaml(path, data)
    except DeclarationError as error:
        return Documents(path, (), error.problems)
    if not found:
        problems = [Problem(Source(shown(path)), "the file is empty", "declare a topic or a namespace, or delete it")]
    text = YamlText(path, data)
    documents = []
    unread = []
    # What is wrong with a key or value as such needs no second word about its shape.
    places = {problem.source for problem in problems}
    for number, document in enumerate(found):
        errors = _problems(document, shown(path))
        problems += [problem for problem in errors if problem.source not in places]
        if not errors:
            documents.append(to_document(document, text, number))
        elif isinstance(document.value, dict) and (named := _files_named(document.value.get("schema"))):
            unread.append(_schema(named, document.node, text, number, ("schema",)))
    return Documents(path, tuple(documents), capped(problems), tuple(unread))


def capped(problems: list[Problem]) -> tuple[Problem, ...]:
    """Return the problems of one file by place, at most MAX_PROBLEMS."""
    first = sorted(set(problems))
    if len(first) > MAX_PROBLEMS:
        more = len(first) - MAX_PROBLEMS
        first[MAX_PROBLEMS:] = [
            Problem(first[MAX_PROBLEMS].source, f"{more:,} more problems in this file from here on")
        ]
    return tuple(first)


def _problems(document: YamlDocument, path: str) -> list[Problem]:
    value, root = document.value, document.node
    if not isinstance(value, dict):
        what = "this document is empty" if value is None else f"expected a mapping, found {found(value)}"
        return [Problem(node_place(path, root), what, "declare a topic or a namespace: `topic: ...`")]
    if "topic" not in value and "namespace" not in value:
        what = "this document has neither `topic` nor `namespace`, so it declares nothing"
        near = ((key, meant(key, ("topic", "namespace"))) for key in value)
        fixes = (f"write `{right}` for `{key}`" for key, right in near if right)
        fix = next(fixes, "add one of the two keys")
        return [Problem(node_place(path, root), what, fix)]
    kind, between = ("topic", _between) if "topic" in value else ("namespace", _in_namespace)
    return problems_of(kind, value, root, path, between)


def _between(topic: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield contradictions between the values of a topic, each of which is valid by itself."""
    yield from settings_misfits(topic)
    if "renamed_from" in topic and TopicName.parse(topic["renamed_from"]) == TopicName.parse(topic["topic"]):
        fix = "write its former name, or remove the key"
        yield Misfit.of(("renamed_from",), "the topic is renamed from itself", fix)
    yield from _in_metadata(topic)
    names: set[str] = set()
    for index, client in enumerate(topic.get("clients", ())):
        if client["name"] in names:
            at = ("clients", str(index), "name")
            yield Misfit.of(at, f"a second client is called `{client['name']}`", "give it another name")
        names.add(client["name"])
    schema = topic.get("schema", {})
    yield from _in_builds(topic.get("clients", ()), schema)
    yield from _in_properties(schema, ("schema",))
    for half in ("key", "value"):
        yield from _in_properties(schema.get(half, {}), ("schema", half))
    if ("proto" in schema) != ("message" in schema) and SPECS[SchemaType[schema["type"]]].declared_as == "protobuf":
        given, missing = ("proto", "message") if "proto" in schema else ("message", "proto")
        fix = f"add `{missing}`, or remove `{given}`"
        yield Misfit.of(("schema", given), f"`{given}` needs `{missing}`", fix)


def _in_builds(clients: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield clients with a definition of their own that does not fit the topic's schema type."""
    declared_as = SPECS[SchemaType[schema["type"]]].declared_as if schema else ""
    for index, client in enumerate(clients):
        file = Client.parse(client["name"], client["role"], client.get("schema", "latest")).file
        if not file:
            continue
        fits = PROTO_FILES if declared_as == "proto" else AVRO_SUFFIXES if declared_as in _ONE_FILE else ()
        if not file.endswith(fits):
            kind = f"whose schema is {schema['type']}" if schema else "without schema"
            fix = f"name a file that ends with {' or '.join(fits)}" if fits else "write a version's number"
            what = f"a client of a topic {kind} cannot be built with `{file[:60]}`"
            yield Misfit.of(("clients", str(index), "schema"), what, fix)


def _in_namespace(values: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield contradictions between the values of a namespace, each of which is valid by itself."""
    yield from settings_misfits(values)
    yield from _in_metadata(values)


def _in_metadata(values: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield contradictions in the metadata of a topic or namespace."""
    said = {"since": "", "remove_after": "", **values.get("deprecated", {})}
    if said["since"] > said["remove_after"] != "":
        kind = "topic" if "topic" in values else "namespace"
        what = f"the {kind} is deprecated since {said['since']}, and would be removed before that"
        yield Misfit.of(("deprecated", "remove_after"), what, "write a later day")
    if "use" in said and "topic" in values and TopicName.parse(said["use"]) == TopicName.parse(values["topic"]):
        fix = "write another topic, or remove the key"
        yield Misfit.of(("deprecated", "use"), "the topic is to be replaced by itself", fix)


def settings_misfits(holder: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield settings of a namespace or topic that have the right shape, but that Pulsar rejects."""
    for name, row in SETTINGS.items():
        if name in holder and (wrong := row.wrong(holder[name])):
            yield Misfit.of((name,), wrong, "write -1 for no limit, or 0 for both")


def _in_properties(schema: Mapping[str, Any], at: Tokens) -> Iterator[Misfit]:
    """Yield properties that a declared schema must not have."""
    for name in schema.get("properties", ()):
        here = (*at, "properties", name)
        if name.startswith(RESERVED_PROPERTIES):
            what = f"the property `{name}` is written by schemactl itself"
            yield Misfit.of(here, what, "give it another name")
        elif "key" in schema and name.startswith(_KEY_VALUE_PROPERTIES):
            what = f"the property `{name}` follows from `key`, `value` and `encoding`"
            yield Misfit.of(here, what, "remove it")


def to_document(document: YamlDocument, text: YamlText, number: int) -> TopicDocument | NamespaceDocument:
    """Return what a document without problems declares."""
    value = document.value
    named_by = "topic" if "topic" in value else "namespace"
    source = node_place(shown(text.path), node_at(document.node, (named_by,)))
    keys = frozenset(value)

    def locate(pointer: str) -> Source:
        parts = tokens(pointer)
        return text.locate(number, parts) if keys.intersection(parts[:1]) else source

    if named_by == "namespace":
        name = NamespaceName.parse(value["namespace"])
        return NamespaceDocument(Namespace(name, Policies.of(value), Metadata.parse(value), source, locate), source)
    topic = Topic(
        TopicName.parse(value["topic"]),
        policies=Policies.of(value),
        partitions=value.get("partitions"),
        generation=value.get("generation", 1),
        renamed_from=TopicName.parse(value["renamed_from"]) if "renamed_from" in value else None,
        reader=value.get("reader", "latest"),
        lifecycle=value.get("lifecycle", "stable"),
        metadata=Metadata.parse(value),
        clients=tuple(map(_client, value.get("clients", ()))),
        source=source,
        locator=locate,
    )
    schema = _schema(value["schema"], document.node, text, number, ("schema",)) if "schema" in value else None
    own = {}
    for index, client in enumerate(topic.clients):
        if client.file and schema:
            at = node_place(shown(text.path), node_at(document.node, ("clients", str(index), "schema")))
            own[client.name] = replace(
                schema,
                parts=("clients", str(index)),
                source=at,
                definition_source=at,
                definition=client.file,
                proto=None,
            )
    return TopicDocument(topic, schema, source, own)


def _client(value: Mapping[str, Any]) -> Client:
    said = {key: value[key] for key in ("team", "language", "contact") if key in value}
    known = Client.parse(value["name"], value["role"], value.get("schema", "latest"))
    return replace(known, targets=tuple(value.get("targets", ())), **said)


def _schema(value: Mapping[str, Any], root: yaml.Node, text: YamlText, number: int, parts: Tokens) -> SchemaDeclaration:
    halves = {
        half: _schema(value[half], root, text, number, (*parts, half)) for half in ("key", "value") if half in value
    }
    return SchemaDeclaration(
        SchemaType[value["type"]],
        node_place(shown(text.path), node_at(root, parts)),
        text,
        number,
        parts,
        node_place(shown(text.path), node_at(root, (*parts, "definition"))),
        definition=value.get("definition"),
        references=tuple(value.get("references", ())),
        properties=value.get("properties", EMPTY),
        encoding=value.get("encoding", "INLINE"),
        key=halves.get("key"),
        value=halves.get("value"),
        proto=value.get("proto"),
        message=value.get("message", ""),
    )


def _files_named(schema: object) -> dict[str, Any]:
    """Return the type of a schema and its keys that name files, whatever else is wrong with it; {} if it names none."""
    type_ = SchemaType.__members__.get(str(schema.get("type"))) if isinstance(schema, dict) else None
    if type_ is None or not isinstance(schema, dict) or SPECS[type_].declared_as == "plain":
        return {}
    named: dict[str, Any]
    if SPECS[type_].declared_as == "pair":
        named = {half: found for half in ("key", "value") if (found := _files_named(schema.get(half)))}
    else:
        keys = ("definition", "proto") if SPECS[type_].declared_as == "protobuf" else ("definition",)
        named = {key: schema[key] for key in keys if _is_path(schema.get(key))}
        references = schema.get("references")
        named["references"] = [each for each in references if _is_path(each)] if isinstance(references, list) else []
    return {"type": type_.name, **named}


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


# Messages for values that do not fit

Message = tuple[str, str]
"""What is wrong, and what to write ("" where nothing is known)."""


class Misfit(NamedTuple):
    """A part of a document that does not fit.

    Attributes:
        parts: the keys and indexes that lead to it.
        message: makes its message.
        of_key: it is the key that is wrong, not its value.
    """

    parts: Tokens
    message: Callable[[], Message]
    of_key: bool = False

    @classmethod
    def of(cls, parts: Tokens, what: str, fix: str = "", *, of_key: bool = False) -> Misfit:
        """Return one whose message is known already."""
        return cls(parts, lambda: (what, fix), of_key)


def located(misfits: Iterable[Misfit], root: yaml.Node, path: str) -> list[Problem]:
    """Return misfits of a document as problems, by place.

    After MAX_PROBLEMS of them the rest have no messages of their own; they are only counted.
    """
    placed = sorted(((_place(root, each, path), each) for each in misfits), key=itemgetter(0))
    # No more of one file are shown, and looking for near misses takes longer than all else.
    shown = [Problem(place, *misfit.message()) for place, misfit in placed[:MAX_PROBLEMS]]
    return shown + [Problem(place, "this does not belong here") for place, _ in placed[MAX_PROBLEMS:]]


def _place(root: yaml.Node, misfit: Misfit, path: str) -> Source:
    node = node_at(root, misfit.parts)
    if misfit.of_key:
        node = key_node(node_at(root, misfit.parts[:-1]), misfit.parts[-1]) or node
    return node_place(path, node)


def validation_errors(kind: str, value: object) -> Iterator[Misfit]:
    """Yield everything in `value` that does not fit the shape of `kind` (see `models.KINDS`)."""
    # pydantic is imported when something is read.
    from schemactl.declare.models import mismatches

    for each in mismatches(kind, value):
        of_type = ("type",) if each.kind.startswith("union_tag") else ()
        yield Misfit((*each.parts, *of_type), partial(_message, each), each.kind == "extra_forbidden")


def problems_of(
    kind: str, value: Any, node: yaml.Node, path: str, between: Callable[[Any], Iterable[Misfit]]
) -> list[Problem]:
    """Return the problems of a value: where it does not fit the shape of `kind`, or else the contradictions that `between` finds."""
    return located(validation_errors(kind, value), node, path) or located(between(value), node, path)


def unknown_rule(name: str, known: Iterable[str]) -> Message:
    """Return the message for the name of a rule that is not among `known`."""
    near = meant(name, known)
    fix = f"write {near}" if near else "`schemactl explain --all` lists the rules"
    return f"`{shortened(name)}` is not a rule", fix


def _message(mismatch: Mismatch) -> Message:
    """Return the message, by pydantic's name of what is wrong."""
    value = mismatch.value
    match mismatch.kind:
        case "own":
            return mismatch.context["what"], mismatch.context["fix"]
        case "extra_forbidden":
            return _unknown_key(mismatch.parts[-1], mismatch)
        case "missing":
            key = mismatch.parts[-1]
            purpose = mismatch.keys[key]
            return f"the key `{key}` is missing", f"add `{key}`" + (f": {purpose}" if purpose else "")
        case "union_tag_not_found" | "union_tag_invalid":
            return _type_message(value, is_half=len(mismatch.parts) > 1)
        case "list_type":
            fix = f"write [{value}]" if isinstance(value, str) and len(value) < 40 else ""
            return f"expected a list, found {found(value)}", fix
        case "too_long":
            return f"at most {mismatch.context['max_length']:,} entries can stand here", ""
        case "too_short":
            return "expected at least one entry, found an empty list", ""
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"expected a mapping, found {found(value)}", ""
    raise AssertionError(f"no message for {mismatch}")


HOMES: Final = {
    **dict.fromkeys(("is_allow_auto_update_schema", "schema_validation_enforced"), "a namespace"),
    **dict.fromkeys(
        ("partitions", "generation", "renamed_from", "reader", "lifecycle", "clients", "schema"), "a topic"
    ),
    **dict.fromkeys(("owner", "description", "labels", "links", "deprecated"), "a topic or a namespace"),
    **dict.fromkeys(("type", "definition", "references", "properties"), "`schema`"),
    **dict.fromkeys(("encoding", "key", "value"), "`schema`, with the type KEY_VALUE"),
    **dict.fromkeys(SETTINGS, "a namespace or a topic"),
    "proto": "`schema`, with the type PROTOBUF",
    "message": "`schema`, with the type PROTOBUF_NATIVE (or PROTOBUF with `proto`)",
}
"""Where a key belongs that stands in the wrong mapping."""


def _unknown_key(key: str, mismatch: Mismatch) -> Message:
    home = HOMES.get(key, "")
    if mismatch.schema_type and "`schema`" in home:
        is_half = SPECS[SchemaType[mismatch.schema_type]].declared_as == "protobuf" and len(mismatch.parts) > 2
        where = " as a half of a KEY_VALUE schema" if is_half else ""
        return f"{mismatch.schema_type} has no {key}{where}", "remove it"
    # A key that is right elsewhere is not misspelt.
    if home:
        return f"`{key}` does not belong here", f"it belongs to {home}"
    near = meant(key, mismatch.keys)
    if near:
        return f"unknown key `{shortened(key)}`", f"write `{near}`"
    return f"unknown key `{shortened(key)}`", f"the keys here are {', '.join(mismatch.keys)}"


def _type_message(schema: Any, *, is_half: bool) -> Message:
    """Return the message for the `type` of a schema that selects no shape."""
    if not isinstance(schema, dict):
        return f"expected a mapping with a `type`, found {found(schema)}", "write {type: STRING}, for example"
    if "type" not in schema:
        return "the key `type` is missing", "write the schema's type: AVRO, JSON, STRING, ..."
    name = schema["type"]
    if not isinstance(name, str):
        return f"expected a schema type, found {found(name)}", "write AVRO, JSON, STRING, ..."
    if name in SchemaType.__members__:
        spec = SPECS[SchemaType[name]]
        return (spec.unfit_half, "write AVRO, JSON, STRING, ...") if is_half else spec.undeclarable or ("", "")
    allowed = [
        type_.name for type_, spec in SPECS.items() if not spec.undeclarable and spec.first_release is Release.R4_0
    ]
    near = meant(name, allowed)
    return f"`{shortened(name)}` is not a schema type", f"write {near or 'one of ' + ', '.join(allowed)}"
