"""PROTOBUF_NATIVE: descriptors of protobuf messages, compared by their wire format.

The modules of this package need protobuf's runtime from the extra `proto`, so `load` imports them on use.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.project import ProtoCategory
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats.part_changes import outline
from schemactl.formats.type_spec import Explanation, ReaderFailure, TypeSpec, Wire


def load(module: str) -> Any:
    """Import a module of this package by its short name.

    Raises:
        SchemactlError: if protobuf is not installed.
    """
    try:
        return import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "google":
            raise
        raise SchemactlError(
            "PROTOBUF_NATIVE schemas need protobuf, which is not installed", fix='pip install "pulsar-schemactl[proto]"'
        ) from error


@dataclass(frozen=True, kw_only=True)
class ProtobufNativeSpec(TypeSpec):
    """PROTOBUF_NATIVE, whose definition is a set of descriptors."""

    language: Literal["protobuf"] = "protobuf"
    payload: Literal["protobuf"] = "protobuf"
    declared_as: Literal["proto"] = "proto"
    validation: Literal["proto"] = "proto"
    checker: Literal["proto"] = "proto"
    suffix: str = ".json"

    def find_problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield the reason why brokers of every release reject it, if they do, or each message that must contain itself.

        Brokers store a definition with such a message, but it can never be written.
        """
        del release
        try:
            root = _parse(info.schema).root
        except InvalidSchema as error:
            yield error
            return
        for cycle in load("definition").find_required_cycles(root):
            path = ".".join([cycle[0].message.full_name, *(field.proto.name for field in cycle)])
            noun = "field" if len(cycle) == 1 else "fields"
            yield InvalidSchema(
                f"{cycle[0].message.full_name} must contain itself by the required {noun} {path}: it can never be written",
                pointer=cycle[0].pointer,
                fix="make a field in this chain optional or repeated",
            )

    def identity(self, info: SchemaInfo) -> Hashable:
        """Return a key of the root's name and the declarations; the names of files and the origin of the descriptors do not count."""
        return info.type, _parse(info.schema).identity

    def get_record_name(self, info: SchemaInfo) -> str:
        """Return the full name of the root message."""
        name: str = _parse(info.schema).root.full_name
        return name

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield every reason why `reader` may fail on the bytes of `writer` or read them wrongly (see `compatibility`)."""
        yield from load("compatibility").find_incompatibilities(
            reader=_parse(reader.schema).root, writer=_parse(writer.schema).root
        )

    def find_misreadings(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the names with swapped numbers, and the integers that become smaller."""
        yield from load("compatibility").find_misreadings(
            reader=_parse(reader.schema).root, writer=_parse(writer.schema).root
        )

    def find_buf_violations(
        self, category: ProtoCategory, *, new: SchemaInfo, old: SchemaInfo
    ) -> Iterator[Incompatibility]:
        """Yield the violations that `buf breaking` prints, in its order."""
        if old.type is not new.type:
            return
        images = {"old": _parse(old.schema).image, "new": _parse(new.schema).image}
        for violation in load("buf_rules").find_violations(category=category, **images):
            yield Incompatibility(violation.rule, violation.pointer, violation.message)

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Explain which field changed, the effect on messages, and the fix."""
        explanation: Explanation = load("counterexample").explain(breakage, new=new, old=old)
        return explanation

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
        """Return a message that proves `breakage`, read by protobuf's own parser, or None if none was found."""
        reader, writer = breakage.sides(new=new, old=old)
        counterexample: Counterexample | None = load("counterexample").counterexample(
            breakage.incompatibility, reader=_parse(reader.schema), writer=_parse(writer.schema)
        )
        return counterexample

    def list_parts(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield the messages with their fields, and the enums with their numbers."""
        parts: Iterator[tuple[str, str]] = load("counterexample").list_parts(info)
        return parts

    def list_direct_references(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Map each message and enum, and "" for the definition (its root message), to the types that it references directly."""
        uses: dict[str, frozenset[str]] = load("counterexample").list_direct_references(info)
        return uses

    def format_lines(self, info: SchemaInfo) -> list[str]:
        """Return the outline, because the stored definition is a descriptor set in Base64."""
        try:
            return [f"{part}: {description}" for part, description in outline(info).items()]
        except InvalidSchema:
            return super().format_lines(info)

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield small messages."""
        yield from map(Wire, load("counterexample").list_messages(info.schema))

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the message as protobuf's own parser reads it."""
        counterexample = load("counterexample")
        message = counterexample.make_message_class(_parse(info.schema))
        try:
            text: str = counterexample.json_text(counterexample.parse_message(wire.payload or b"", message))
        except ValueError as error:
            raise ReaderFailure(f"the message is rejected: {error}") from None
        return text


def _parse(schema: bytes) -> Any:
    return load("definition").parse(schema)
