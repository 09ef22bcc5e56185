"""Explain an Avro incompatibility (reason and fix), and outline a definition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from schemactl.core.edits import AddAlias, AddKey, DefinitionEdit, SetType
from schemactl.core.findings import Breakage
from schemactl.formats.avro.compatibility import AmbiguousAlias, Case, find_incompatibilities, is_writer_branch
from schemactl.formats.avro.defaults import MAX_DEFAULT_VALUES
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.sample_messages import ZEROS, can_be_written
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

_ALIASES_UNUSED = (
    "Java looks for fields by their aliases only in a record that it knows by name: it reads their defaults, or throws."
)

_PLAIN_TYPES = PRIMITIVE_TYPES | {"fixed"}

_WIDER_TYPES = frozenset({("int", "long"), ("int", "double"), ("float", "double")})
"""Pairs of types, of which the second has every value of the first without loss."""

_MAX_LEVELS = 10
"""The number of nested unions into which a reason is followed."""

_MAX_CAUSES = 100
"""The number of problems in nested unions that are listed."""

_MAX_RENAMES = 400
"""The number of pairs of fields among which a renamed field is searched."""

_MAX_NAMES = 10
"""The number of names that a list shows."""


def explain(breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool = False) -> Explanation:
    """Explain the difference, its effect on messages, and the fix in the new schema; readers of plain JSON know no aliases."""
    case = Case.from_breakage(breakage, new=new, old=old, plain_json=plain_json)
    reason, fix, edit, alternatives = _SENTENCES[case.incompatibility.rule](case)
    if case.incompatibility.strict_only:
        reason += " Pulsar's Java reader decodes such messages; readers that follow the specification reject them."
    if not can_be_written(case.writer):
        reason += (
            " No message can be shown: none can be written, because a record must contain itself or an enum is empty."
        )
    explanation = case.explain(reason, fix)
    causes = frozenset(islice(_list_causes(case), _MAX_CAUSES))
    if not case.is_upgraded:
        return replace(explanation, causes=causes)
    ends_in_branch = any(is_writer_branch(token) for token in case.trace[-1:])
    older = case.counterpart[0] if ends_in_branch else None
    return replace(explanation, older=older, edit=edit, alternatives=alternatives, causes=causes)


class _Advice(NamedTuple):
    """The reason and the fix of an incompatibility, and the edit that makes the fix, or the edits to choose from."""

    reason: str
    fix: str
    edit: DefinitionEdit | None = None
    alternatives: tuple[DefinitionEdit, ...] = ()


def _explain_missing_default(case: Case) -> _Advice:
    field = case.walk.field
    default = suggest_default(field.schema if field else case.walk.schema)
    suggestion = f'"default": {json.dumps(default, ensure_ascii=False)}' if default is not NO_DEFAULT else ""
    renamed = _find_renamed_field(case)
    if case.is_upgraded:
        reason = (
            f"{case.place} is new and has no default; messages of {case.older} do not carry it, and reading one throws."
        )
        edit: DefinitionEdit | None = None
        if suggestion:
            fix = f"give the field a default, for example {suggestion}"
            edit = AddKey(case.walk.pointer.removesuffix("/type"), ("type", "name"), "default", default)
        else:
            fix = 'make it a union with null first, and "default": null'
        if renamed is None or field is None:
            return _Advice(reason, f"{fix}.", edit if field else None)
        fix = f"{fix}, which loses the values of {renamed}."
        if case.plain_json:
            pair = f"keep {renamed} next to it, give both a default and write both, because readers of JSON know no aliases"
            return _Advice(reason, f"if {field.name} is {renamed} under a new name, {pair}; otherwise {fix}")
        edits: tuple[DefinitionEdit, ...] = (
            AddAlias(case.walk.pointer.removesuffix("/type"), renamed),
            *([edit] if edit else []),
        )
        return _Advice(
            reason,
            f'if {field.name} is {renamed} under a new name, add "aliases": ["{renamed}"] to it; otherwise {fix}',
            alternatives=edits,
        )
    first = f" (publish {suggestion} first)" if suggestion else ""
    fix = f"keep the field; it can be removed once every reader's schema has a default for it{first}."
    if renamed is not None and field is not None:
        fix = (
            f"if {renamed} is {field.name} under a new name, keep {field.name} next to it and write both, because "
            f"an alias helps new readers only; otherwise {fix}"
        )
    return _Advice(
        f"{case.place} is gone, but readers of {case.older} need it and have no default for it: they throw on every new message.",
        fix,
    )


def _find_renamed_field(case: Case) -> str | None:
    """Return the only field of the writer's record that the reader's missing field may be under another name, or None.

    Both are without a counterpart in the other record, and no other field without a counterpart fits either of them.
    """
    records = [part for part in case.walk.parts if isinstance(part, Record)]
    field, writer = case.walk.field, case.counterpart[1]
    if field is None or not records or not isinstance(writer, Record):
        return None
    reader = records[-1]
    known_names = {name for reader_field in reader.fields for name in (reader_field.name, *reader_field.aliases)}
    added = [
        reader_field
        for reader_field in reader.fields
        if not {reader_field.name, *reader_field.aliases} & writer.fields_by_name.keys()
    ]
    removed = [writer_field for writer_field in writer.fields if writer_field.name not in known_names]
    if field not in added or len(added) * len(removed) > _MAX_RENAMES:
        return None
    matches = [writer_field for writer_field in removed if _can_become(field, writer_field)]
    if len(matches) != 1 or any(_can_become(other, matches[0]) for other in added if other is not field):
        return None
    return matches[0].name


def _can_become(reader_field: Field, writer_field: Field) -> bool:
    try:
        return not find_incompatibilities(reader=reader_field.schema, writer=writer_field.schema)
    except AmbiguousAlias:
        return False


def _explain_type_mismatch(case: Case) -> _Advice:
    # Java's message names both types: `reader type: INT not compatible with writer type: STRING`.
    message = case.incompatibility.message.lower().removeprefix("reader type: ")
    reader_type, _, writer_type = message.partition(" not compatible with writer type: ")
    field, writer_schema = case.walk.field, case.counterpart[1]
    if reader_type == "enum" and field and isinstance(writer_schema, Record):
        is_in_record = {field.name, *field.aliases} & writer_schema.fields_by_name.keys()
        if writer_type == "record" and not is_in_record:
            # Java's check takes the enum's default for the field's, and compares the enum with the whole record.
            return _explain_missing_default(case)
    read, written = _add_article(reader_type), _add_article(writer_type)
    who = "the new schema expects" if case.is_upgraded else f"readers of {case.older} expect"
    reason = f"{case.place}: {written} is written, {who} {read}, and Avro promotes neither to the other."
    ends_in_branch = any(is_writer_branch(token) for token in case.trace[-1:])
    if case.is_upgraded and not ends_in_branch and _can_be_widened(case.walk.schema, writer_schema):
        fix = f"keep {written}, which has every value of {read}."
        return _Advice(reason, fix, SetType(case.walk.pointer, written))
    if case.is_upgraded:
        wider = {"int": "long", "float": "double"}.get(written)
        hint = f" ({written} may become {wider})" if wider else ""
        return _Advice(reason, f"keep {written}{hint}, or add a field of the new type with a default next to it.")
    fix = f"keep {read} for as long as {case.older} is read, or add a field of the new type next to it."
    return _Advice(reason, fix)


def _can_be_widened(reader: Schema, writer: Schema) -> bool:
    """Return whether the writer's type has all values of the reader's type, and more."""
    is_plain = not reader.properties.get("logicalType") and not writer.properties.get("logicalType")
    return is_plain and (reader.type, writer.type) in _WIDER_TYPES


def _explain_missing_symbols(case: Case) -> _Advice:
    missing_symbols = case.incompatibility.message.strip("[]").split(", ")
    symbols, enum = _list_names(missing_symbols), case.walk.schema
    name = enum.name if isinstance(enum, Enum) else case.place
    if case.is_upgraded:
        suggestion = enum.symbols[0] if isinstance(enum, Enum) and enum.symbols else "OTHER"
        # Readers of JSON use no enum default.
        is_usable = isinstance(enum, Enum) and enum.symbols and not case.plain_json
        edit = (
            AddKey(case.walk.pointer.removesuffix("/symbols"), ("symbols", "name", "type"), "default", suggestion)
            if is_usable
            else None
        )
        return _Advice(
            f"{case.place}: messages may hold {symbols}, which {name} no longer lists, and {name} has no default: reading one throws.",
            f'list {symbols} again, or give {name} a default, for example "default": "{suggestion}".',
            edit,
        )
    are, them = ("are", "them") if len(missing_symbols) > 1 else ("is", "it")
    unknown = f"Readers of {case.older} do not know {them} and have no enum default"
    fix = (
        f"in two changes. First give {name} a default, together with an edit that Pulsar stores (to Pulsar, a default alone is not a "
        f"new version), such as a new field with a default; once every reader has that version, list {symbols}."
    )
    return _Advice(f"{case.place}: {symbols} {are} new in {name}. {unknown}: they throw on such a message.", fix)


def _explain_missing_branch(case: Case) -> _Advice:
    """Explain that no branch reads the value, and why the branch with its name or type does not, through nested unions."""
    advice = _explain_no_branch(case)
    innermost = case
    for _ in range(_MAX_LEVELS):
        inner_cases = _list_cases_in_branch(innermost)
        if not inner_cases:
            break
        innermost = inner_cases[0]
    if innermost is case:
        return advice
    is_missing_branch = innermost.incompatibility.rule == "MISSING_UNION_BRANCH"
    explain_innermost = _explain_no_branch if is_missing_branch else _SENTENCES[innermost.incompatibility.rule]
    inner_advice = explain_innermost(innermost)
    return inner_advice._replace(reason=f"{advice.reason} {inner_advice.reason}")


def _explain_no_branch(case: Case) -> _Advice:
    kind = case.incompatibility.message.rpartition(" ")[2].lower()
    writer_schema = case.counterpart[1]
    name = f"{kind} {writer_schema.name}" if isinstance(writer_schema, Named) else kind
    whose = "the new schema" if case.is_upgraded else f"{case.older}"
    union = next(part for part in reversed(case.walk.parts) if isinstance(part, Union))
    branches = _list_names(
        [branch.full_name if isinstance(branch, Named) else branch.type for branch in union.branches]
    )
    reason = f"{case.place}: {_choose_article(name)} {name} may be written, and "
    if len(union.branches) > 1:
        reason += f"no branch of {whose} ({branches}) reads it."
    else:
        reason += f"the only branch of {whose} ({branches or 'none'}) does not read it."
    if case.is_upgraded:
        narrower = [
            (index, branch) for index, branch in enumerate(union.branches) if _can_be_widened(branch, writer_schema)
        ]
        if len(narrower) == 1 and case.walk.parts[-1] is union:
            [(index, branch)] = narrower
            fix = f"write {kind} in place of the branch {branch.type}, which has all its values."
            return _Advice(reason, fix, SetType(f"{case.walk.pointer}/{index}", kind))
        return _Advice(reason, f"put a branch that reads the {name} back into the union.")
    return _Advice(reason, f"write the {name} only when every reader's union has a branch for it.")


def _list_causes(case: Case, levels: int = _MAX_LEVELS) -> Iterator[str]:
    """Yield the written type that no branch of a union reads, and each problem in the branch with its name or type."""
    if case.incompatibility.rule != "MISSING_UNION_BRANCH":
        return
    writer_schema = case.counterpart[1]
    yield f"{case.place}: {writer_schema.full_name if isinstance(writer_schema, Named) else writer_schema.type}"
    for inner in _list_cases_in_branch(case) if levels else ():
        yield f"{inner.place}: {inner.incompatibility.rule} {inner.incompatibility.message}"
        yield from _list_causes(inner, levels - 1)


def _list_cases_in_branch(case: Case) -> list[Case]:
    """Return the problems in the branch with the name or type of the written value, or [] if there is no such branch."""
    branch = case.walk.schema
    is_missing_branch = case.incompatibility.rule == "MISSING_UNION_BRANCH"
    if not is_missing_branch or isinstance(branch, Union) or case.incompatibility.trace is None:
        return []
    try:
        inner = find_incompatibilities(reader=branch, writer=case.counterpart[1], location=case.incompatibility.trace)
    except AmbiguousAlias:
        return []
    return [replace(case, incompatibility=incompatibility) for incompatibility in inner]


def _explain_name_mismatch(case: Case) -> _Advice:
    writer_name = case.incompatibility.message.removeprefix("expected: ")
    named = case.walk.schema
    # If Java reads the record anyway, none of its fields gets values by an alias.
    lost = f" {_ALIASES_UNUSED}" if isinstance(named, Record) and not case.incompatibility.strict_only else ""
    if case.is_upgraded:
        return _Advice(
            f"{case.place}: the {named.type} was called {writer_name} in {case.older} and is called {named.full_name} now.{lost}",
            f'add "aliases": ["{writer_name}"] to {named.full_name}, or keep the name.',
            alternatives=(AddAlias(case.walk.pointer.removesuffix("/name"), writer_name),),
        )
    return _Advice(
        f"{case.place}: the {named.type} is called {writer_name} now; readers of {case.older} know it as {named.full_name} only.{lost}",
        "keep the name: an alias helps new readers only.",
    )


def _explain_size_mismatch(case: Case) -> _Advice:
    # Java's message has the sizes of writer and reader: `expected: 8, found: 4`.
    written, read = (part.partition(": ")[2] for part in case.incompatibility.message.split(", "))
    name = case.walk.schema.full_name
    return _Advice(
        f"{case.place}: {name} has {written} bytes in the messages, and {read} for the reader.",
        f"keep {written if case.is_upgraded else read} bytes, or add a fixed of another name next to it.",
    )


def _explain_ambiguous_alias(case: Case) -> _Advice:
    return _Advice(
        f"{case.place}: its name and its aliases match several fields of the messages, and Java throws.",
        "remove the alias that is also the name of a field.",
    )


def _explain_changed_logical_type(case: Case) -> _Advice:
    written, read = case.incompatibility.written, case.incompatibility.read
    whose = "the new schema" if case.is_upgraded else f"a reader of {case.older}"
    written_scale, read_scale = (text.rpartition(", ")[2] for text in (written, read))
    if not case.incompatibility.is_warning:
        is_same_scale = written.startswith("decimal(") and read.startswith("decimal(") and written_scale == read_scale
        effect = "it has not enough digits" if is_same_scale else "another value, without an error"
        reason = f"{case.place} is written as {written}, and {whose} reads the same bytes as {read}: {effect}."
        return _Advice(reason, _keep_type(case, written, read))
    if "timestamp" in written and "timestamp" in read:
        difference = "one is a moment, the other a local time"
    else:
        difference = f"only one side declares the logical type {written if read in _PLAIN_TYPES else read}"
    return _Advice(
        f"{case.place} is written as {written}, and {whose} reads the same bytes as {read}: {difference}.",
        f"if producers mean the same value either way, waive this; otherwise {_keep_type(case, written, read)}",
    )


def _explain_narrower_type(case: Case) -> _Advice:
    written, read = case.incompatibility.written, case.incompatibility.read
    if read == "string":
        loss = "bytes that are not UTF-8 are replaced"
    else:
        loss = f"a number of more than {'24' if read == 'float' else '53'} bits loses its last digits"
    whose = "the new schema" if case.is_upgraded else f"a reader of {case.older}"
    reason = f"{case.place} is written as {written}, and {whose} reads it as {read}: {loss}."
    return _Advice(reason, _keep_type(case, written, read))


def _keep_type(case: Case, written: str, read: str) -> str:
    if case.is_upgraded:
        return f"keep {written}, and add a field of the type {read} with a default next to it."
    return f"keep {read} for as long as {case.older} is read, and add a field of the type {written} next to it."


_SENTENCES = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": _explain_missing_default,
    "TYPE_MISMATCH": _explain_type_mismatch,
    "MISSING_ENUM_SYMBOLS": _explain_missing_symbols,
    "MISSING_UNION_BRANCH": _explain_missing_branch,
    "NAME_MISMATCH": _explain_name_mismatch,
    "FIXED_SIZE_MISMATCH": _explain_size_mismatch,
    "AMBIGUOUS_ALIAS": _explain_ambiguous_alias,
    "LOGICAL_TYPE_CHANGED": _explain_changed_logical_type,
    "NARROWER_TYPE": _explain_narrower_type,
}


def suggest_default(schema: Schema) -> JsonValue:
    """Suggest a default that every release accepts for `schema`, or return NO_DEFAULT if it is large or endless."""
    try:
        return _make_default(schema, iter(range(MAX_DEFAULT_VALUES)))
    except StopIteration:
        return NO_DEFAULT


def _make_default(schema: Schema, remaining: Iterator[int]) -> JsonValue:
    """Return the default; StopIteration if it has more values than `remaining`."""
    next(remaining)
    match schema:
        case Union():
            return _make_default(schema.branches[0], remaining) if schema.branches else None
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
                field.name: _make_default(field.schema, remaining)
                for field in schema.fields
                if field.default is NO_DEFAULT
            }
        case Primitive():
            if schema.type == "bytes":
                # Java cannot make a number of no bytes: the default of a decimal is the byte 0.
                return "\0" if schema.properties.get("logicalType") == "decimal" else ""
            return ZEROS[schema.type]


def _list_names(names: Sequence[str]) -> str:
    """Return the names, or the first names and the number of the others."""
    text = ", ".join(names[:_MAX_NAMES])
    return text if len(names) <= _MAX_NAMES else f"{text} and {len(names) - _MAX_NAMES:,} more"


def _choose_article(noun: str) -> str:
    return "an" if noun[:1] in "aeiou" else "a"


def _add_article(kind: str) -> str:
    return kind if kind in PRIMITIVE_TYPES else f"{_choose_article(kind)} {kind}"


# Outline of a definition


def list_parts(root: Schema) -> Iterator[tuple[str, str]]:
    """Yield the parts of a definition (see TypeSpec.list_parts)."""
    types, names = _name_types(root)
    if not isinstance(root, Named):
        yield "", _type_text(root, names)
    for named in types:
        name, properties = names[named.full_name], _properties_text(named)
        if isinstance(named, Record):
            yield name, f"record {named.full_name}{properties}"
            for field in named.fields:
                default = "" if field.default is NO_DEFAULT else f" = {canonical_json(field.default)}"
                order = "" if field.order == "ascending" else f", order {field.order}"
                description = f"{_type_text(field.schema, names)}{default}{order}{_properties_text(field)}"
                yield f"{name}.{field.name}", description
        elif isinstance(named, Enum):
            default = f", default {named.default}" if named.default is not None else ""
            yield name, f"enum {named.full_name}{default}{properties}"
            yield from ((f"{name}.{symbol}", "symbol") for symbol in named.symbols)
        else:
            yield name, f"fixed {named.full_name} of {named.size} bytes{properties}"


def list_notes(root: Schema) -> Iterator[tuple[str, Note]]:
    """Yield the docs and aliases of types and fields (see TypeSpec.list_notes)."""
    types, names = _name_types(root)
    for named in types:
        name = names[named.full_name]
        holders: list[tuple[str, NamedSchema | Field]] = [(name, named)]
        if isinstance(named, Record):
            holders += [(f"{name}.{field.name}", field) for field in named.fields]
        for part, holder in holders:
            if holder.doc or holder.aliases:
                yield part, Note(holder.doc or "", holder.aliases)


def file_lines(text: str) -> list[str]:
    """Return the outline of one file's definition with its docs and aliases; types of other files appear by name only.

    Raises:
        InvalidSchema: if the text does not parse even with the types of other files.
    """
    root, missing_types = parse_file(text)
    hidden_parts = {name.rpartition(".")[2] for name in missing_types} | {*missing_types}
    notes = dict(list_notes(root))
    lines = []
    for part, description in list_parts(root):
        if part in hidden_parts:
            continue
        lines.append(f"{part}: {description}" if part else description)
        note = notes.get(part, Note())
        lines += [f"    alias {alias}" for alias in note.aliases]
        lines += [f"    {line}" for line in note.doc.splitlines()]
    return lines


def _name_types(root: Schema) -> tuple[list[NamedSchema], dict[str, str]]:
    """Return the named types, and their display names by full name: without namespace unless two types share this name."""
    types = [part for part in parts(root) if isinstance(part, Named)]
    uses = Counter(named.name for named in types)
    return types, {named.full_name: named.name if uses[named.name] == 1 else named.full_name for named in types}


def _type_text(schema: Schema, names: Mapping[str, str]) -> str:
    """Return a type as an expression, with named types by their display name."""
    match schema:
        case Union():
            return " | ".join(_type_text(branch, names) for branch in schema.branches)
        case Array():
            return f"array<{_type_text(schema.items, names)}>{_properties_text(schema)}"
        case Map():
            return f"map<{_type_text(schema.values, names)}>{_properties_text(schema)}"
        case Named():
            return names[schema.full_name]
    return schema.type + _properties_text(schema)


def _properties_text(holder: Schema | Field) -> str:
    """Return the custom properties, such as ` (decimal, precision 10, scale 2)`."""
    properties = dict(holder.properties)
    if not properties:
        return ""
    logical_type = properties.pop("logicalType", None)
    words = [str(logical_type)] if logical_type is not None else []
    words += [f"{name} {value}" for name, value in properties.items()]
    return f" ({', '.join(words)})"
