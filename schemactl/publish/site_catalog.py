"""The content of the catalog site's pages: topics, versions, fields, named types and the graph around a type."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeVar

from schemactl.codegen.spark_types import SparkArray, SparkField, SparkMap, SparkType, Struct, type_ddl
from schemactl.codegen.topic_struct import StructOptions, decoded_options, message_doc, protobuf_of, value_of
from schemactl.core.catalog import Catalog, Metadata, Topic
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
from schemactl.core.terminal import on_one_line
from schemactl.formats import pair_of, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import parts
from schemactl.formats.type_spec import PartChange, part_changes
from schemactl.history import History

# Fields, as rows of a table


MAX_ROWS: Final = 200
"""So many fields of a definition have a row, so that pages stay small."""


class Piece(NamedTuple):
    """A part of a type's text; `name` is the full name of the type that it names, or ""."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field.

    Attributes:
        depth: 0 for a field of the message itself.
        name: without those above it.
        type: as its language spells it, in pieces: named types by their names, each with its full name.
        logical: the logical type, with its parameters.
        default: as JSON; "": there is none.
        doc: what the definition says of it, and of its type where that is spelled out here alone.
        aliases: former names.
        holder: the full name of the record or message that has the field; "": the message is no record.
        spark: the type of its column, as Spark's DDL has it; "": there is none.
        symbols: of an enum.
        branch: the name of the record that has the field, where a union has several records.
    """

    depth: int
    name: str
    type: tuple[Piece, ...]
    logical: str = ""
    default: str = ""
    doc: str = ""
    aliases: tuple[str, ...] = ()
    holder: str = ""
    spark: str = ""
    symbols: tuple[str, ...] = ()
    branch: str = ""

    @property
    def types(self) -> list[str]:
        """The full names of the named types in it."""
        return [piece.name for piece in self.type if piece.name]

    @property
    def type_text(self) -> str:
        """The type as one text."""
        return "".join(piece.text for piece in self.type)


def field_rows(info: SchemaInfo, release: Release, options: StructOptions | None = None) -> list[FieldRow]:
    """Return the fields of a topic's messages, at most MAX_ROWS of them; a message that is no record is one row, `value`.

    Args:
        info: the definition.
        release: whose Avro reads it.
        options: for the Spark types; None: the rows have none.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    return [*islice(_rows(info, release, options), MAX_ROWS)]


def type_docs(info: SchemaInfo, release: Release) -> dict[str, str]:
    """Return by full name what the definition says of its named types, of those of which it says something. Raises as `field_rows`."""
    if both := pair_of(info):
        key, value = (type_docs(half, release) for half in both.halves.values())
        return key | value
    if native := protobuf_of(info):
        said = native.comments().items()
        places = ((re.fullmatch("/(?:messages|enums)/([^/]+)", pointer), text) for pointer, text in said)
        return {place[1]: text for place, text in places if place}
    if spec(info).language != "avro":
        return {}
    return {
        each.full_name: each.doc
        for each in parts(parse(info.schema, release))
        if isinstance(each, avro.Named) and each.doc
    }


def message_types(rows: Sequence[FieldRow]) -> set[str]:
    """Return the full names of the types that a topic's messages are of: one, or of a KEY_VALUE those of its halves."""
    found: set[str] = set()
    is_within = False
    for row in rows:
        if row.depth == 0:
            is_within = not row.holder
            found.update([row.holder] if row.holder else row.types)
        elif row.depth == 1 and is_within:
            found.add(row.holder)
    return found


def _rows(info: SchemaInfo, release: Release, options: StructOptions | None) -> Iterator[FieldRow]:
    if both := pair_of(info):
        for name, half in both.halves.items():
            inner = [*_rows(half, release, options)]
            if [row.name for row in inner] == ["value"]:
                yield replace(inner[0], name=name)
                continue
            yield FieldRow(0, name, (Piece(half.type.name),))
            for row in inner:
                yield replace(row, depth=row.depth + 1)
        return
    found = _spark(info, release, options)
    kind = spec(info)
    native = protobuf_of(info)
    if native is not None:
        root = protobuf.load("definition").parse(native.schema).root
        yield from _message(root, found, 0, frozenset(), native.comments())
    elif kind.language == "avro":
        root = parse(info.schema, release)
        if isinstance(root, avro.Record):
            yield from _record(root, found, 0, frozenset())
        else:
            yield from _value("value", root, found, 0, frozenset(), doc=avro.doc_of(root))
    else:
        yield FieldRow(0, "value", (Piece(info.type.name),), spark=_ddl(found))


def _spark(info: SchemaInfo, release: Release, options: StructOptions | None) -> SparkType | None:
    if options is None:
        return None
    try:
        found = value_of(info, options, release)
    except SchemactlError:
        return None
    return found.type if found else None


def _record(record: avro.Record, spark: SparkType | None, depth: int, above: frozenset[str]) -> Iterator[FieldRow]:
    columns = _columns(spark)
    for avro_field in record.fields:
        column = columns.get(avro_field.name)
        yield from _value(
            avro_field.name,
            avro_field.schema,
            column.type if column else None,
            depth,
            above | {record.full_name},
            default="" if avro_field.default is avro.NO_DEFAULT else json.dumps(avro_field.default, ensure_ascii=False),
            doc=avro_field.doc or avro.doc_of(avro_field.schema),
            aliases=avro_field.aliases,
            holder=record.full_name,
        )


def _columns(spark: SparkType | None) -> dict[str, SparkField]:
    return {field.name: field for field in spark.fields} if isinstance(spark, Struct) else {}


def _value(
    name: str, schema: avro.Schema, spark: SparkType | None, depth: int, above: frozenset[str], **said: Any
) -> Iterator[FieldRow]:
    """Yield the row of a value, and below it those of the records that it holds, unless they hold it."""
    named = [*_named(schema)]
    enums = [each for each, _ in named if isinstance(each, avro.Enum)]
    records = [(each, path) for each, path in named if isinstance(each, avro.Record)]
    yield FieldRow(
        depth,
        name,
        tuple(_type(schema)),
        _logical(schema),
        spark="" if records else _ddl(spark),
        symbols=enums[0].symbols if len(enums) == 1 else (),
        **said,
    )
    for each, path in records:
        if each.full_name not in above:
            for row in _record(each, _at(spark, path), depth + 1, above):
                is_branch = len(records) > 1 and row.depth == depth + 1
                yield replace(row, branch=each.name) if is_branch else row


def _named(schema: avro.Schema, path: tuple[str, ...] = ()) -> Iterator[tuple[avro.NamedSchema, tuple[str, ...]]]:
    """Yield the named types that a value holds itself, with the way to each in Spark's type."""
    match schema:
        case avro.Array():
            yield from _named(schema.items, (*path, "[]"))
        case avro.Map():
            yield from _named(schema.values, (*path, "{}"))
        case avro.Union():
            branches = [each for each in schema.branches if each.type != "null"]
            for number, each in enumerate(branches):
                yield from _named(each, path if len(branches) == 1 else (*path, f"member{number}"))
        case avro.Record() | avro.Enum() | avro.Fixed():
            yield schema, path


def _at(spark: SparkType | None, path: tuple[str, ...]) -> SparkType | None:
    for step in path:
        match spark:
            case SparkArray():
                spark = spark.element
            case SparkMap():
                spark = spark.value
            case Struct():
                field = _columns(spark).get(step)
                spark = field.type if field else None
    return spark


def _type(schema: avro.Schema) -> Iterator[Piece]:
    match schema:
        case avro.Array() | avro.Map():
            yield Piece(f"{schema.type}<")
            yield from _type(schema.items if isinstance(schema, avro.Array) else schema.values)
            yield Piece(">")
        case avro.Union():
            for number, branch in enumerate(schema.branches):
                if number:
                    yield Piece(" | ")
                yield from _type(branch)
        case avro.Primitive():
            yield Piece(schema.type)
        case _:
            yield Piece(schema.name, schema.full_name)


def _ddl(spark: SparkType | None) -> str:
    """Return the type as Spark's DDL has it, without NOT NULL, which the definition says."""
    return re.sub(r" /\* NOT NULL \*/| NOT NULL", "", type_ddl(spark)) if spark else ""


def _logical(schema: avro.Schema) -> str:
    """Return the logical type of a value, or of the one thing it is if it is not null."""
    if isinstance(schema, avro.Union):
        others = [each for each in schema.branches if each.type != "null"]
        return _logical(others[0]) if len(others) == 1 else ""
    if isinstance(schema, avro.Array):
        return _logical(schema.items)
    if isinstance(schema, avro.Map):
        return _logical(schema.values)
    name = schema.properties.get("logicalType")
    if name == "decimal":
        return f"decimal({schema.properties.get('precision')},{schema.properties.get('scale', 0)})"
    return name if isinstance(name, str) else ""


def _message(
    message: Any, spark: SparkType | None, depth: int, above: frozenset[str], comments: Mapping[str, str]
) -> Iterator[FieldRow]:
    kinds, wrapper, places = (protobuf.load("descriptor"), protobuf.load("definition"), protobuf.load("definition"))
    columns = _columns(spark)
    above |= {message.full_name}
    for number, proto_field in sorted(message.fields().items()):
        value = proto_field.value
        name = value.type_name or kinds.KIND_NAMES[value.kind]
        short = name.rpartition(".")[2]
        column = columns.get(proto_field.name)
        held = value.message_type if value.is_message else None
        if held is not None and wrapper.is_shipped(held.file.name):
            held = None
        yield FieldRow(
            depth,
            proto_field.name,
            (*_proto_type(proto_field, Piece(short, value.type_name), kinds), Piece(f" = {number}")),
            doc="\n".join(
                filter(
                    None, (places.doc_of(proto_field, comments), proto_field.oneof and f"One of {proto_field.oneof}.")
                )
            ),
            holder=message.full_name,
            spark=_ddl(column.type) if column and not isinstance(_inner(column.type), Struct) else "",
            symbols=tuple(value.enum.numbers()) if value.kind == kinds.ENUM else (),
        )
        if held is not None and held.full_name not in above:
            inner = _inner(column.type) if column else None
            yield from _message(held, inner, depth + 1, above, comments)


def _proto_type(field: Any, value: Piece, kinds: Any) -> Iterator[Piece]:
    """Yield a field's type; `value` names the type of one value."""
    if field.cardinality == kinds.MAP:
        yield Piece(f"map<{kinds.KIND_NAMES[field.message_type.fields()[1].kind]}, ")
    elif field.is_repeated:
        yield Piece(f"{field.cardinality} ")
    yield value
    if field.cardinality == kinds.MAP:
        yield Piece(">")


def _inner(spark: SparkType) -> SparkType:
    match spark:
        case SparkArray():
            return spark.element
        case SparkMap():
            return spark.value
    return spark


# The graph around a named type, as SVG: its users to the left, its parts to the right


_MAX_DISTANCE: Final = 4
_MAX_ROWS: Final = 10
"""So many nodes stand in a column, and below them how many more there are."""

_MAX_LETTERS: Final = 26
_WIDTH: Final = 220
_HEIGHT: Final = 44
_COLUMN: Final = _WIDTH + 56
_ROW: Final = _HEIGHT + 12


class Box(NamedTuple):
    """A topic or a type: its name, and the address of its page."""

    name: str
    page: str
    kind: Literal["topic", "type"] = "type"


Edges = Mapping[Box, Sequence[Box]]


def graph(middle: Box, users: Edges, parts: Edges) -> str:
    """Return the graph around a type; "" where nothing has it and it has nothing.

    Args:
        middle: the type.
        users: of each node those that have it.
        parts: of each node those that it has.
    """
    levels = _levels(middle, parts) | {node: -level for node, level in _levels(middle, users).items()}
    if len(levels) == 1:
        return ""
    # Topics are left of all types, so that each line leads to the right.
    first = min(level for node, level in levels.items() if node.kind == "type") - 1
    columns: dict[int, list[Box]] = defaultdict(list)
    for node in sorted(levels):
        columns[first if node.kind == "topic" else levels[node]].append(node)
    height = _ROW * max(min(len(nodes), _MAX_ROWS + 1) for nodes in columns.values())
    places: dict[Box, tuple[int, int]] = {}
    boxes = ""
    for column, level in enumerate(sorted(columns)):
        shown, hidden = columns[level][:_MAX_ROWS], len(columns[level]) - _MAX_ROWS
        x = 2 + column * _COLUMN
        y = (height - _ROW * (len(shown) + (hidden > 0))) // 2 + 6
        for node in shown:
            places[node] = x, y
            boxes += _box(node, x, y, is_middle=node == middle)
            y += _ROW
        if hidden > 0:
            boxes += f'<text class="more" x="{x + 12}" y="{y + 27}">and {hidden} more</text>'
    lines = "".join(
        _line(place, places[part])
        for node, place in places.items()
        for part in parts.get(node, ())
        if part in places and place[0] < places[part][0]
    )
    size = f'width="{len(columns) * _COLUMN - 52}" height="{height}"'
    return f'<svg class="graph" role="group" aria-label="Graph" {size}>{lines}{boxes}</svg>'


def _levels(middle: Box, edges: Edges) -> dict[Box, int]:
    """Return how many steps each node is away, by the longest way; types that hold each other end it."""
    found = {middle: 0}
    left = deque([middle])
    while left:
        node = left.popleft()
        level = found[node] + 1
        for each in edges.get(node, ()):
            if level <= _MAX_DISTANCE and each not in (node, middle) and found.get(each, 0) < level:
                found[each] = level
                left.append(each)
    return found


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (to_x, to_y) = start, end
    x, y, to_y = x + _WIDTH, y + _HEIGHT // 2, to_y + _HEIGHT // 2
    return f'<path d="M{x} {y}C{x + 28} {y} {to_x - 28} {to_y} {to_x} {to_y}"/>'


def _box(node: Box, x: int, y: int, *, is_middle: bool) -> str:
    full_name = on_one_line(node.name)
    space, _, name = full_name.rpartition("/" if node.kind == "topic" else ".")
    shape = (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="{x + 12}" y="{y + 18}">{_short(name)}</text>'
        f'<text class="space" x="{x + 12}" y="{y + 34}">{_short(space)}</text>'
    )
    title = f"<title>{node.kind} {escape(full_name)}</title>"
    if is_middle:
        return f'<g class="middle">{title}{shape}</g>'
    return f'<a class="{node.kind}" href="{escape(node.page)}">{title}{shape}</a>'


def _short(text: str) -> str:
    return escape(text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 1]}…")


# Topics and their versions


MAX_COMPARED: Final = 12
"""So many of the newest versions stand in the table of who can read whom."""


_Said = TypeVar("_Said")


@dataclass(frozen=True, slots=True)
class TopicOnTarget:
    """What a target has of a topic, as far as Git says it: the version in force at its position; None: it does not have the topic."""

    target: str
    number: int | None
    strategy: str
    level: str


@dataclass(frozen=True)
class VersionEntry:
    """A version of a topic, and what it changed.

    Attributes:
        author: of the commit that brought it; "": not known.
        before: the version before it that has a definition.
    """

    version: SchemaVersion
    author: str
    before: SchemaVersion | None

    @cached_property
    def changes(self) -> list[PartChange]:
        """What it changed of the one before, in parts; all of it, if it is the first."""
        if self.version.info is None or self.before is None:
            return []
        try:
            return [*part_changes(old=self.before.info, new=self.version.info)]
        except InvalidSchema:
            return []


@dataclass(frozen=True)
class TopicEntry:
    """A topic that has had a schema.

    Attributes:
        number: of the version in force; None: the topic has no schema any more.
        info: the definition in force, as it reads now, else the last one.
        doc: what the definition says of the message.
        type_docs: by the full name of each named type what the definition says of it.
        since: the version since which each field is there, by its holder and name.
        no_columns: why it has none in Spark; "": it has.
        environments: what the targets have of it.
        latest_first: its versions.
    """

    topic: Topic
    metadata: Metadata
    number: int | None
    info: SchemaInfo
    doc: str
    type_docs: Mapping[str, str]
    strategy: str
    level: str
    rows: Sequence[FieldRow]
    since: Mapping[tuple[str, str], SchemaVersion]
    no_columns: str
    environments: Sequence[TopicOnTarget]
    latest_first: Sequence[VersionEntry]

    @property
    def name(self) -> TopicName:
        """The topic's name."""
        return self.topic.name

    @cached_property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """By the full name of each named type of the definition those that it uses."""
        try:
            return spec(self.info).uses(self.info)
        except InvalidSchema:
            return {}

    @cached_property
    def compared(self) -> list[SchemaVersion]:
        """The newest versions that have a definition, oldest first."""
        found = [each.version for each in self.latest_first if each.version.info is not None]
        return found[:MAX_COMPARED][::-1]


class TargetHistory(NamedTuple):
    """A target, and the approved history up to its position; None: its position is not known here."""

    name: str
    history: History | None


@dataclass(frozen=True)
class Catalogue:
    """The approved history as a catalogue.

    Attributes:
        history: what was approved.
        authors: of commits, by their ids.
        targets: in the order of the project file.
    """

    history: History
    project: Project
    authors: Mapping[str, str]
    targets: Sequence[TargetHistory] = field(default=())

    @property
    def catalog(self) -> Catalog:
        """What was approved."""
        return self.history.catalog

    def topics(self, names: Sequence[TopicName]) -> Iterator[TopicEntry]:
        """Yield these topics, each read when its turn comes; those that never had a schema are left out."""
        options = decoded_options(self.project.generate)
        for name in names:
            topic = self.catalog.topics[name].load()
            versions = [version.load() for version in topic.versions]
            last = next((each for each in reversed(versions) if each.info is not None), None)
            if last is None or last.info is None:
                continue
            number = self.history.current(name)
            info = topic.schema.load() if topic.schema and number is not None else last.info
            strategy, level = self.catalog.strategy(name, self.project.defaults)
            yield TopicEntry(
                topic,
                self.catalog.metadata(name),
                number,
                info,
                self._read(message_doc, info) or "",
                self._read(type_docs, info) or {},
                strategy.value,
                level,
                self._rows(info, options),
                self._since(versions, number),
                self._no_columns(info, options),
                [*self._environments(name)],
                [*self._versions(versions)][::-1],
            )

    def without_schema(self, names: Sequence[TopicName]) -> list[TopicName]:
        """Return those of the topics that are declared and never had a schema."""
        topics = {name: self.catalog.topics[name] for name in names}
        return [name for name, topic in topics.items() if not topic.versions and not topic.deleted]

    def namespaces(self) -> list[NamespaceName]:
        """Return the namespaces that are declared, or have topics."""
        return sorted({*self.catalog.namespaces, *(name.namespace_name for name in self.catalog.topics)})

    def _rows(self, info: SchemaInfo, options: StructOptions | None = None) -> list[FieldRow]:
        return self._read(partial(field_rows, options=options), info) or []

    def _no_columns(self, info: SchemaInfo, options: StructOptions) -> str:
        try:
            found = value_of(info, options, self.project.release)
        except SchemactlError as error:
            return f"{error.what} ({error.fix})" if error.fix else error.what
        return "" if found else f"{info.type.name} does not say what the bytes of a message are"

    def _read(self, read: Callable[[SchemaInfo, Release], _Said], info: SchemaInfo) -> _Said | None:
        """Return what the definition says; None: it does not parse."""
        try:
            return read(info, self.project.release)
        except InvalidSchema:
            return None

    def _since(self, versions: Sequence[SchemaVersion], number: int | None) -> dict[tuple[str, str], SchemaVersion]:
        """Return since which version each field is there without a gap, up to version `number`."""
        found: dict[tuple[str, str], SchemaVersion] = {}
        for version in versions:
            if version.info is None or (number is not None and version.number > number):
                continue
            there = {(row.holder, row.name) for row in self._rows(version.info)}
            found = {key: found.get(key, version) for key in there}
        return found

    def _environments(self, name: TopicName) -> Iterator[TopicOnTarget]:
        for target, history in self.targets:
            topic = history.catalog.topics.get(name) if history else None
            if history is None or topic is None or topic.deleted:
                yield TopicOnTarget(target, None, "", "")
                continue
            strategy, level = history.catalog.strategy(name, self.project.defaults)
            yield TopicOnTarget(target, history.current(name), strategy.value, level)

    def _versions(self, versions: Sequence[SchemaVersion]) -> Iterator[VersionEntry]:
        before = None
        for version in versions:
            author = self.authors.get(version.commit.id, "") if version.commit else ""
            yield VersionEntry(version, author, before)
            before = version if version.info is not None else before


# Named types and their uses


@dataclass(frozen=True, slots=True)
class TypeUse:
    """A named type, as the first topic that uses it defines it.

    Attributes:
        topics: all that use it.
        otherwise: those of them that define it otherwise.
        uses, used_by: types.
    """

    name: str
    doc: str
    rows: Sequence[FieldRow]
    symbols: tuple[str, ...] = ()
    topics: list[TopicName] = field(default_factory=list)
    otherwise: list[TopicName] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    used_by: set[str] = field(default_factory=set)

    def is_like(self, other: TypeUse) -> bool:
        """Whether both say the same of what readers meet."""
        one, two = ([(row.name, row.type_text, row.logical) for row in each.rows] for each in (self, other))
        return (one, self.symbols) == (two, other.symbols)


class TypeUses(dict[str, TypeUse]):
    """The types of all topics that were added, by full name."""

    def __init__(self) -> None:
        super().__init__()
        self._of_messages: dict[TopicName, set[str]] = {}

    def add(self, entry: TopicEntry) -> None:
        """Add the types of a topic's definition in force."""
        rows: dict[str, dict[str, FieldRow]] = defaultdict(dict)
        for row in entry.rows:
            rows[row.holder].setdefault(row.name, replace(row, depth=0))
        symbols = {name: row.symbols for row in entry.rows if row.symbols for name in row.types if name not in rows}
        self._of_messages[entry.name] = message_types(entry.rows)
        for name, used in entry.uses.items():
            if not name:
                continue
            doc, fields = entry.type_docs.get(name, ""), [*rows.get(name, {}).values()]
            found = TypeUse(name, doc, fields, symbols.get(name, ()))
            use = self.setdefault(name, found)
            use.topics.append(entry.name)
            use.uses.update(used)
            if len(entry.rows) < MAX_ROWS and not use.is_like(found):
                use.otherwise.append(entry.name)

    def connect(self) -> None:
        """Let each type know the types that use it, once all topics are added."""
        for use in self.values():
            for name in use.uses & self.keys():
                self[name].used_by.add(use.name)

    def edges(self, type_box: Callable[[str], Box], topic_box: Callable[[TopicName], Box]) -> tuple[Edges, Edges]:
        """Return by box the boxes of its users, and those of its parts: topics have the types of their messages."""
        parts = {
            type_box(use.name): [type_box(name) for name in sorted(use.uses & self.keys())] for use in self.values()
        }
        for topic, types in self._of_messages.items():
            parts[topic_box(topic)] = [type_box(name) for name in sorted(types & self.keys())]
        users: dict[Box, list[Box]] = defaultdict(list)
        for user, boxes in parts.items():
            for box in boxes:
                users[box].append(user)
        return users, parts
