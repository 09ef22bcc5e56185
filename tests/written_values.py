"""Whether a reader got the values that were written: the values of both sides as the codec decodes them, compared by their schemas."""

from __future__ import annotations

from typing import Any

from random_avro import JsonValue

_ENUM = 14
"""FieldDescriptorProto.TYPE_ENUM."""


def find_difference(*, writer: JsonValue, reader: JsonValue, written: Any, read: Any, path: str = "") -> str:
    """Describe the first value of an Avro message that the reader got differently, or return "" if all values are equal.

    Fields that only one side has do not count, and an enum default of the reader counts as the written symbol.
    """
    if isinstance(writer, list):
        writer, written = choose_branch(writer, written)
    if isinstance(reader, list):
        reader, read = choose_branch(reader, read)
    if writer == "null" or reader == "null":
        return "" if writer == reader else f"{path}: {writer} is read as {reader}"
    writer_kind, reader_kind = (side if isinstance(side, str) else side["type"] for side in (writer, reader))
    if writer_kind == reader_kind == "record":
        return _find_record_difference(writer, reader, written, read, path)
    if writer_kind == reader_kind == "array":
        pairs = [*zip(written, read, strict=False)] if len(written) == len(read) else [(written, read)]
        writer, reader = writer["items"], reader["items"]
    elif writer_kind == reader_kind == "map":
        written_map, read_map = dict(written), dict(read)
        if written_map.keys() != read_map.keys():
            return f"{path}: the keys {[*written_map]} are read as {[*read_map]}"
        pairs = [(value, read_map[key]) for key, value in written_map.items()]
        writer, reader = writer["values"], reader["values"]
    else:
        if writer_kind == reader_kind == "enum" and written not in reader["symbols"]:
            written = reader.get("default", written)
        if isinstance(written, str) and isinstance(read, bytes):
            written = written.encode()
        if isinstance(written, bytes) and isinstance(read, str):
            read = read.encode()
        is_same_kind = type(written) is type(read) or {type(written), type(read)} <= {int, float}
        return "" if is_same_kind and written == read else f"{path}: {written!r} is read as {read!r}"
    differences = (
        find_difference(writer=writer, reader=reader, written=one, read=other, path=f"{path}[]") for one, other in pairs
    )
    return next(filter(None, differences), "")


def choose_branch(branches: list[JsonValue], value: Any) -> tuple[JsonValue, Any]:
    """Return the branch of a decoded value of a union, and the value in it."""
    others = [branch for branch in branches if branch != "null"]
    if value is None:
        return "null", None
    if len(others) == 1:
        return others[0], value
    members = [
        (branch, value[f"member{number}"])
        for number, branch in enumerate(others)
        if value[f"member{number}"] is not None
    ]
    return members[0] if members else ("null", None)


def _find_record_difference(writer: JsonValue, reader: JsonValue, written: Any, read: Any, path: str) -> str:
    writer_types = {part["name"]: part["type"] for part in writer["fields"]}
    for part in reader["fields"]:
        source = next((name for name in (part["name"], *part.get("aliases", ())) if name in writer_types), None)
        if source is not None:
            difference = find_difference(
                writer=writer_types[source],
                reader=part["type"],
                written=written[source],
                read=read[part["name"]],
                path=f"{path}.{part['name']}",
            )
            if difference:
                return difference
    return ""


def find_proto_difference(
    *, writer_file: Any, reader_file: Any, message: str, written: Any, read: Any, path: str = ""
) -> str:
    """Describe the first value of a protobuf message that the reader got differently, or return "" if all values are equal.

    A name that both sides know has to have the value that was written under it, unless the number of either side is free on the
    other: such a field was removed, and another one was added. Other fields are compared by their numbers.
    """
    writer_fields, reader_fields = (_index_fields(file, message) for file in (writer_file, reader_file))
    writer_numbers = {field.name: number for number, field in writer_fields.items()}
    for number, field in reader_fields.items():
        source_number = writer_numbers.get(field.name, number)
        if source_number not in reader_fields and number not in writer_fields:
            continue
        if source_number not in writer_fields:
            continue
        source = writer_fields[source_number]
        if source.name not in written or field.name not in read:
            # Recursion ends before it.
            continue
        difference = _find_field_difference(
            writer_file, reader_file, source, field, written[source.name], read[field.name], f"{path}.{field.name}"
        )
        if difference:
            return difference
    return ""


def _find_field_difference(
    writer_file: Any, reader_file: Any, source: Any, field: Any, written: Any, read: Any, path: str
) -> str:
    pairs = [(written, read)]
    if isinstance(written, list):
        pairs = [*zip(written, read, strict=False)] if len(written) == len(read) else [([], [0])]
    elif source.type_name.endswith("Entry"):
        # The values of a map are in its entry's second field.
        source, field = (
            _index_fields(file, side.type_name.removeprefix(".r."))[2]
            for file, side in ((writer_file, source), (reader_file, field))
        )
        pairs = [(value, read[key]) for key, value in written.items()] if written.keys() == read.keys() else [([], [0])]
    for written_item, read_item in pairs:
        plain_item = (
            written_item.encode() if isinstance(read_item, bytes) and isinstance(written_item, str) else written_item
        )
        # As text, NaN equals itself.
        is_kept = plain_item == read_item or repr(plain_item) == repr(read_item)
        if plain_item is None or read_item is None:
            # A field that is not set has its default or none, which can differ in how it is declared.
            is_kept = plain_item in (None, False, 0, "", b"") and read_item in (None, False, 0, "", b"")
        difference = "" if is_kept else f"{path}: {written!r} is read as {read!r}"
        if written_item is not None and read_item is not None and source.type == field.type:
            if field.type == _ENUM:
                difference = _find_enum_difference(writer_file, reader_file, written_item, read_item, path)
            elif field.type_name.startswith(".r."):
                difference = find_proto_difference(
                    writer_file=writer_file,
                    reader_file=reader_file,
                    message=field.type_name.removeprefix(".r."),
                    written=written_item,
                    read=read_item,
                    path=path,
                )
        if difference:
            return difference
    return ""


def _find_enum_difference(writer_file: Any, reader_file: Any, written: str, read: str, path: str) -> str:
    writer_numbers, reader_numbers = (
        {value.name: value.number for value in file.enum_type[0].value} for file in (writer_file, reader_file)
    )
    # The codec has the number of an unknown value as its name; several names can have one number.
    is_same_number = writer_numbers.get(written, written) == reader_numbers.get(read, read)
    is_kept = is_same_number and reader_numbers.get(written) in (None, writer_numbers.get(written))
    return "" if is_kept else f"{path}: {written} is read as {read}"


def _index_fields(file: Any, message: str) -> dict[int, Any]:
    """Map the fields of a message of the package `r`, or of a map's entry in it, by number."""
    name, _, entry = message.partition(".")
    descriptor = next(candidate for candidate in file.message_type if candidate.name == name)
    if entry:
        descriptor = next(nested for nested in descriptor.nested_type if nested.name == entry)
    return {field.number: field for field in descriptor.field}
