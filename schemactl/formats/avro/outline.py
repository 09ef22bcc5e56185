"""An Avro definition for people (see `schemactl.formats.outline`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from schemactl.formats.avro.equality import canonical_json, parts
from schemactl.formats.avro.parse import parse_file
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Map,
    Named,
    NamedSchema,
    Record,
    Schema,
    Union,
)
from schemactl.formats.base import Note


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
    return types, {
        named.full_name: named.name if short[named.name] == 1 else named.full_name for named in types
    }


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
