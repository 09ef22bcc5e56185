"""The sentences about an Avro incompatibility (reason and fix), and the outline of a definition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from schemactl.core.findings import Breakage, Incompatibility
from schemactl.formats.avro.compatibility import (
    AmbiguousAlias,
    Walk,
    find_counterpart,
    incompatibilities,
    is_writer_branch,
    trace_of,
    walk,
)
from schemactl.formats.avro.counterexample import ZEROS, can_be_written
from schemactl.formats.avro.defaults import MAX_DEFAULT_VALUES
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PRIMITIVE_TYPES,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    Named,
    NamedSchema,
    Primitive,
    Record,
    Schema,
    Union,
    canonical_json,
    parts,
)
from schemactl.formats.type_spec import Explanation, Note

# Incompatibilities in words.


def explain(breakage: Breakage, *, new: Schema, old: Schema) -> Explanation:
    """Return what differs, what becomes of the messages, and what to write in the new schema."""
    found = breakage.incompatibility
    upgraded = breakage.direction != "old_reads_new"
    reader, writer = breakage.sides(new=new, old=old)
    case = _Case(found, reader, writer, upgraded=upgraded, older=breakage.older_name)
    reason, fix = _SENTENCES[found.rule](case)
    if found.strict_only:
        reason += (
            " Pulsar's Java reader decodes such messages all the same; readers that follow the specification refuse."
        )
    if not can_be_written(writer):
        reason += (
            " No message can be shown: nothing can be written, for a record must contain itself or an enum is empty."
        )
    here, there = case.trace.pointer, case.written[0]
    if not upgraded:
        return Explanation(case.place, reason, fix, there, here)
    ends_in_branch = any(is_writer_branch(token) for token in trace_of(found)[-1:])
    return Explanation(case.place, reason, fix, here, there if ends_in_branch else None)


@dataclass(frozen=True)
class _Case:
    """One incompatibility.

    Attributes:
        upgraded: the reader is the new schema; else it is the old one, whose consumers cannot be changed here.
        older: what the old schema is called.
        trace: what leads to it in the reader's schema.
        place: the path of the field, or the schema's name, or what kind of schema it is.
        written: the pointer to what the writer's schema has there, and that schema.
    """

    found: Incompatibility
    reader: Schema
    writer: Schema
    upgraded: bool
    older: str

    @cached_property
    def trace(self) -> Walk:
        return walk(self.reader, trace_of(self.found))

    @cached_property
    def place(self) -> str:
        return self.trace.path or getattr(self.trace.schema, "name", self.trace.schema.type)

    @cached_property
    def written(self) -> tuple[str, Schema]:
        return find_counterpart(trace_of(self.found), reader=self.reader, writer=self.writer)


def _missing_default(case: _Case) -> tuple[str, str]:
    field = case.trace.field
    default = default_for(field.schema if field else case.trace.schema)
    suggestion = f'"default": {json.dumps(default, ensure_ascii=False)}' if default is not NO_DEFAULT else ""
    if case.upgraded:
        fix = f"give the field a default, for example {suggestion}."
        return (
            f"{case.place} is new and has no default; messages of {case.older} do not carry it, and reading one throws.",
            fix if suggestion else 'make it a union with null first, and "default": null.',
        )
    first = f" (publish {suggestion} first)" if suggestion else ""
    lost = f"{case.place} is gone, but readers of {case.older} need it and have no default for it"
    return (
        f"{lost}: they throw on every new message.",
        f"keep the field; it can go once every reader's schema has a default for it{first}.",
    )


def _type_mismatch(case: _Case) -> tuple[str, str]:
    read, written = _types(case.found.message)
    field = case.trace.field
    if field and read == "enum" and written == "record" and _lacks(case.written[1], field):
        # Java's check takes the enum's default for the field's, and compares the enum with the whole record.
        return _missing_default(case)
    read, written = map(_with_article, (read, written))
    who = "the new schema expects" if case.upgraded else f"readers of {case.older} expect"
    reason = f"{case.place}: {written} is written, {who} {read}, and Avro promotes neither to the other."
    if case.upgraded:
        wider = {"int": "long", "float": "double"}.get(written)
        hint = f" ({written} may become {wider})" if wider else ""
        return reason, f"keep {written}{hint}, or add a field of the new type with a default next to it."
    fix = f"keep {read} for as long as {case.older} is read, or add a field of the new type next to it."
    return reason, fix


def _missing_symbols(case: _Case) -> tuple[str, str]:
    every = case.found.message.strip("[]").split(", ")
    symbols, enum = _listed(every), case.trace.schema
    name = enum.name if isinstance(enum, Enum) else case.place
    if case.upgraded:
        suggestion = enum.symbols[0] if isinstance(enum, Enum) and enum.symbols else "OTHER"
        return (
            f"{case.place}: messages may hold {symbols}, which {name} no longer lists, and {name} has no default: reading one throws.",
            f'list {symbols} again, or give {name} a default, for example "default": "{suggestion}".',
        )
    are, them = ("are", "them") if len(every) > 1 else ("is", "it")
    unknown = f"Readers of {case.older} do not know {them} and have no enum default"
    fix = (
        f"in two changes. First give {name} a default, beside an edit that Pulsar stores (it takes a default alone for no new "
        f"version), such as a new field with a default; once every reader has that version, list {symbols}."
    )
    return (f"{case.place}: {symbols} {are} new in {name}. {unknown}: they throw on such a message.", fix)


def _missing_branch(case: _Case) -> tuple[str, str]:
    """Return why no branch reads it; and why the branch that is meant for it does not, if there is one.

    Where that is a union again, what is the matter with its branch, and so on.
    """
    reason, fix = _no_branch(case)
    nearest = case
    for _ in range(_MAX_LEVELS):
        inner = _within(nearest) if nearest.found.rule == "MISSING_UNION_BRANCH" else None
        if inner is None:
            break
        nearest = inner
    if nearest is case:
        return reason, fix
    sentences = _no_branch if nearest.found.rule == "MISSING_UNION_BRANCH" else _SENTENCES[nearest.found.rule]
    because, fix = sentences(nearest)
    return f"{reason} {because}", fix


def _no_branch(case: _Case) -> tuple[str, str]:
    place, trace = case.place, case.trace
    kind, written = case.found.message.rpartition(" ")[2].lower(), case.written[1]
    name = f"{kind} {written.name}" if isinstance(written, Named) else kind
    whose = "the new schema" if case.upgraded else f"{case.older}"
    union = next(part for part in reversed(trace.parts) if isinstance(part, Union))
    branches = _listed([_short(branch) for branch in union.branches])
    reason = f"{place}: {_article(name)} {name} may be written, and "
    if len(union.branches) > 1:
        reason += f"no branch of {whose} ({branches}) reads it."
    else:
        reason += f"the only branch of {whose} ({branches or 'none'}) does not read it."
    if case.upgraded:
        return reason, f"put a branch that reads the {name} back into the union."
    return reason, f"write the {name} only when every reader's union has a branch for it."


def _within(case: _Case) -> _Case | None:
    branch = case.trace.schema
    if isinstance(branch, Union) or case.found.trace is None:
        return None
    try:
        reasons = incompatibilities(reader=branch, writer=case.written[1], location=case.found.trace)
    except AmbiguousAlias:
        return None
    return replace(case, found=reasons[0]) if reasons else None


def _name_mismatch(case: _Case) -> tuple[str, str]:
    written = case.found.message.removeprefix("expected: ")
    named = case.trace.schema
    kind = named.type
    name = named.full_name
    # Else Java would read it all the same: a record, some field of which has its values by an alias.
    lost = f" {_UNNAMED}" if isinstance(named, Record) and not case.found.strict_only else ""
    if case.upgraded:
        return (
            f"{case.place}: the {kind} was called {written} in {case.older} and is called {name} now.{lost}",
            f'add "aliases": ["{written}"] to {name}, or keep the name.',
        )
    return (
        f"{case.place}: the {kind} is called {written} now; readers of {case.older} know it as {name} only.{lost}",
        "keep the name: an alias helps new readers only.",
    )


def _size_mismatch(case: _Case) -> tuple[str, str]:
    written, read = (part.partition(": ")[2] for part in case.found.message.split(", "))
    name = case.trace.schema.full_name
    return (
        f"{case.place}: {name} has {written} bytes in the messages, and {read} for the reader.",
        f"keep {written if case.upgraded else read} bytes, or add a fixed of another name next to it.",
    )


def _ambiguous(case: _Case) -> tuple[str, str]:
    return (
        f"{case.place}: its name and its aliases match several fields of the messages, and Java refuses to choose.",
        "remove the alias that names a field of its own.",
    )


_SENTENCES = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": _missing_default,
    "TYPE_MISMATCH": _type_mismatch,
    "MISSING_ENUM_SYMBOLS": _missing_symbols,
    "MISSING_UNION_BRANCH": _missing_branch,
    "NAME_MISMATCH": _name_mismatch,
    "FIXED_SIZE_MISMATCH": _size_mismatch,
    "AMBIGUOUS_ALIAS": _ambiguous,
}


def default_for(schema: Schema) -> JsonValue:
    """Return a default that fits `schema` in every release, for people to start from; NO_DEFAULT where it is large or endless."""
    try:
        return _default_for(schema, iter(range(MAX_DEFAULT_VALUES)))
    except StopIteration:
        return NO_DEFAULT


def _default_for(schema: Schema, values: Iterator[int]) -> JsonValue:
    """Return the default; StopIteration where it consists of more than `values`."""
    next(values)
    match schema:
        case Union():
            return _default_for(schema.branches[0], values) if schema.branches else None
        case Array():
            return []
        case Map():
            return {}
        case Enum():
            return schema.symbols[0] if schema.symbols else ""
        case Fixed():
            return "\0" * schema.size
        case Record():
            return {
                field.name: _default_for(field.schema, values) for field in schema.fields if field.default is NO_DEFAULT
            }
        case Primitive():
            if schema.type == "bytes":
                # Java makes no number of no bytes: a decimal's default is the byte 0.
                return "\0" if schema.properties.get("logicalType") == "decimal" else ""
            return ZEROS[schema.type]


_UNNAMED = (
    "Java looks for fields by their aliases only in a record that it knows by name: it reads their defaults, or throws."
)

_MAX_LEVELS = 10
"""Of unions inside one another, to the bottom of which a reason is followed."""

_SHOWN = 10
"""Of many names, so many are listed."""


def _listed(names: Sequence[str]) -> str:
    """Return the names, or the first of them and how many there are besides."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"


def _article(noun: str) -> str:
    return "an" if noun[:1] in "aeiou" else "a"


def _with_article(kind: str) -> str:
    return kind if kind in PRIMITIVE_TYPES else f"{_article(kind)} {kind}"


def _lacks(written: Schema, field: Field) -> bool:
    return isinstance(written, Record) and not {field.name, *field.aliases} & written.fields_by_name.keys()


def _types(message: str) -> tuple[str, str]:
    """Return the reader's and the writer's type in Java's message."""
    read, _, written = message.removeprefix("reader type: ").partition(" not compatible with writer type: ")
    return read.lower(), written.lower()


def _short(schema: Schema) -> str:
    return schema.type if isinstance(schema, Primitive | Array | Map | Union) else schema.full_name


# Outline of a definition.


def avro_parts(root: Schema) -> Iterator[tuple[str, str]]:
    """Yield the parts of a definition (see TypeSpec.outline)."""
    types, names = _named(root)
    if not isinstance(root, Named):
        yield "", _type(root, names)
    for named in types:
        name, properties = names[named.full_name], _properties(named)
        if isinstance(named, Record):
            yield name, f"record {named.full_name}{properties}"
            for field in named.fields:
                yield f"{name}.{field.name}", _field(field, names)
        elif isinstance(named, Enum):
            default = f", default {named.default}" if named.default is not None else ""
            yield name, f"enum {named.full_name}{default}{properties}"
            yield from ((f"{name}.{symbol}", "symbol") for symbol in named.symbols)
        else:
            yield name, f"fixed {named.full_name} of {named.size} bytes{properties}"


def file_lines(text: str) -> list[str]:
    """Return the outline of one file's definition with its docs and aliases, a line for each; types of other files are left as names.

    Raises:
        InvalidSchema: it does not parse, even so.
    """
    root, missing = parse_file(text)
    hidden = {name.rpartition(".")[2] for name in missing} | {*missing}
    notes = dict(avro_notes(root))
    lines = []
    for part, what in avro_parts(root):
        if part in hidden:
            continue
        lines.append(f"{part}: {what}" if part else what)
        note = notes.get(part, Note())
        lines += [f"    alias {alias}" for alias in note.aliases]
        lines += [f"    {line}" for line in note.doc.splitlines()]
    return lines


def avro_notes(root: Schema) -> Iterator[tuple[str, Note]]:
    """Yield the docs and aliases of types and fields (see TypeSpec.notes)."""
    types, names = _named(root)
    for named in types:
        name = names[named.full_name]
        said: list[tuple[str, NamedSchema | Field]] = [(name, named)]
        if isinstance(named, Record):
            said += [(f"{name}.{field.name}", field) for field in named.fields]
        for part, holder in said:
            if holder.doc or holder.aliases:
                yield part, Note(holder.doc or "", holder.aliases)


def _named(root: Schema) -> tuple[list[NamedSchema], dict[str, str]]:
    """Return the named types, and what each is called: its name alone where no two share it."""
    types = [part for part in parts(root) if isinstance(part, Named)]
    short = Counter(named.name for named in types)
    return types, {named.full_name: named.name if short[named.name] == 1 else named.full_name for named in types}


def _field(field: Field, names: Mapping[str, str]) -> str:
    default = "" if field.default is NO_DEFAULT else f" = {canonical_json(field.default)}"
    order = "" if field.order == "ascending" else f", order {field.order}"
    return f"{_type(field.schema, names)}{default}{order}{_properties(field)}"


def _type(schema: Schema, names: Mapping[str, str]) -> str:
    """Return the type as a reader would say it, named types by their name alone."""
    match schema:
        case Union():
            return " | ".join(_type(branch, names) for branch in schema.branches)
        case Array():
            return f"array<{_type(schema.items, names)}>{_properties(schema)}"
        case Map():
            return f"map<{_type(schema.values, names)}>{_properties(schema)}"
        case Named():
            return names[schema.full_name]
    return schema.type + _properties(schema)


def _properties(holder: Schema | Field) -> str:
    """Return the custom properties: ` (decimal, precision 10, scale 2)`."""
    properties = dict(holder.properties)
    if not properties:
        return ""
    logical = properties.pop("logicalType", None)
    words = [str(logical)] if logical is not None else []
    words += [f"{name} {value}" for name, value in properties.items()]
    return f" ({', '.join(words)})"
