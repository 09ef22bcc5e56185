"""Find the field or named type that a definition has under a new name."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.core.edits import AddAlias
from schemactl.formats.avro.schema import Named, NamedSchema, Record, Schema, locate_parts, parts, pointer
from schemactl.formats.type_spec import Rename


def find_renames(new: Schema, old: Schema, *, old_name: str, new_name: str) -> Iterator[Rename]:
    """Yield the fields and types of `new` called `new_name` for which `old` has `old_name`, unless one of the definitions has both names.

    Args:
        new: the definition with the new name.
        old: the definition with the old name.
        old_name: a name, or `Record.field`, with the name of the record now.
        new_name: a name, or `Record.field`.
    """
    old_types = {part.full_name: part for part in parts(old) if isinstance(part, Named)}
    new_types = {pointer(path): part for part, path in locate_parts(new).items() if isinstance(part, Named)}
    new_names = {named.full_name for named in new_types.values()}
    for type_pointer, named in new_types.items():
        for old_type in old_types.values():
            is_renamed = new_name in _get_names(named) and old_name in _get_names(old_type)
            if is_renamed and named.full_name not in old_types and old_type.full_name not in new_names:
                alias = old_type.name if old_type.namespace == named.namespace else old_type.full_name
                yield Rename(AddAlias(type_pointer, alias), is_done=old_type.full_name in named.aliases)
        # The old record that this type continues: by its name or an alias, or because both are whole definitions.
        candidates: list[Schema | None] = [old_types.get(name) for name in (named.full_name, *named.aliases)]
        candidates.append(old if named is new else None)
        old_record = next((candidate for candidate in candidates if isinstance(candidate, Record)), None)
        if not isinstance(named, Record) or old_record is None:
            continue
        old_field_name, new_field_name = (_get_field_name(name, named) for name in (old_name, new_name))
        if old_field_name not in old_record.fields_by_name or old_field_name in named.fields_by_name:
            continue
        for index, field in enumerate(named.fields):
            if field.name == new_field_name and field.name not in old_record.fields_by_name:
                edit = AddAlias(f"{type_pointer}/fields/{index}", old_field_name)
                yield Rename(edit, is_done=old_field_name in field.aliases)


def _get_names(named: NamedSchema) -> tuple[str, str]:
    return named.name, named.full_name


def _get_field_name(name: str, record: Record) -> str:
    """Return the name of a field without the name of its record; "" if another record is named."""
    record_name, _, field_name = name.rpartition(".")
    return field_name if not record_name or record_name in _get_names(record) else ""
