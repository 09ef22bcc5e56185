"""An Avro definition as it is written in a file, part by part, and a lint rule's remark on a part.

Rules look at what people wrote, not at what Avro's parser returns, which drops what it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from schemactl.core.errors import meant
from schemactl.core.project import Project
from schemactl.core.rules import Rule
from schemactl.declare.references import AvroFile, own_names
from schemactl.declare.source_location import Tokens
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify
from schemactl.lint.edits import Edit

Kind = Literal["record", "enum", "fixed", "array", "map", "union", "primitive", "reference", "field"]

_NAMED = ("record", "enum", "fixed")


@dataclass(frozen=True, slots=True, eq=False)
class DefinitionPart:
    """A type, or a field, of a definition.

    Attributes:
        kind: such as `record` or `field`; `reference` is the name of a type that is defined elsewhere.
        value: as it is written: an object, a list (of a union), or a name.
        parts: its place in the definition.
        field: its path for people: `Order.lines[].price`.
        full_name: of a named type, or of the type that a reference names; "" for anything else.
        inside: the full names of the records around it, the outermost first.
    """

    kind: Kind
    value: Any
    parts: Tokens
    field: str
    full_name: str = ""
    inside: tuple[str, ...] = ()

    @property
    def keys(self) -> Mapping[str, Any]:
        """Its keys and values; empty for a name or a list."""
        return self.value if isinstance(self.value, dict) else {}


@dataclass(frozen=True, slots=True)
class Remark:
    """A rule's remark on one place: a finding for each topic with the definition.

    Attributes:
        parts: the place in the definition; with `of_key` the key is meant, not its value.
        message: the trouble, when it comes and for whom, in full sentences.
        fix: what to write instead; "" for the rule's own fix.
        field: the path of the part for people.
        edit: what `--fix` does.
    """

    parts: Tokens
    message: str
    fix: str = ""
    field: str = ""
    of_key: bool = False
    edit: Edit | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LintedDefinition:
    """A definition as rules look at it.

    Attributes:
        file: where it stands, and its whole value.
        parts: its types and fields, in document order.
        project: whose settings count.
    """

    file: AvroFile
    parts: tuple[DefinitionPart, ...]
    project: Project

    @classmethod
    def of(cls, file: AvroFile, project: Project) -> LintedDefinition:
        """Return the definition in `file`, which Avro's parser accepts."""
        return cls(file, tuple(_parts(file.value, (), "", None, ())), project)

    def of_kind(self, *kinds: Kind) -> Iterator[DefinitionPart]:
        """Yield the parts of these kinds."""
        return (part for part in self.parts if part.kind in kinds)


class LintRule(Protocol):
    """A rule on definitions. Other packages bring theirs by the entry point group `schemactl.lint_rules`."""

    rule: Rule

    def look(self, definition: LintedDefinition) -> Iterator[Remark]:
        """Yield the rule's remarks on one definition."""
        ...


def surely_meant(name: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` of which `name` is surely a misspelling, ignoring case; None if none is that near.

    In a short name two swapped letters are a large part, so the same letters in any order count as near.
    """
    choices = list(known)
    swapped = (each for each in choices if sorted(each.lower()) == sorted(name.lower()))
    return next(swapped, None) or meant(name, choices, likeness=0.8)


def _parts(
    value: Any, parts: Tokens, field: str, namespace: str | None, inside: tuple[str, ...]
) -> Iterator[DefinitionPart]:
    """Yield the type in `value`, then its parts."""
    if isinstance(value, list):
        yield DefinitionPart("union", value, parts, field, "", inside)
        for index, branch in enumerate(value):
            yield from _parts(branch, (*parts, str(index)), field, namespace, inside)
        return
    kind: Any = value.get("type") if isinstance(value, dict) else value
    kind = "record" if kind == "error" else kind
    if isinstance(value, dict) and kind in _NAMED:
        name = str(value.get("name"))
        full_name, within = own_names(value, namespace)
        yield DefinitionPart(kind, value, parts, field or name, full_name, inside)
        fields = value.get("fields") if kind == "record" else None
        for index, each in enumerate(fields if isinstance(fields, list) else ()):
            # Nobody has parsed the types of a shared file that no topic uses.
            if isinstance(each, dict) and "type" in each:
                at, path = (*parts, "fields", str(index)), f"{field or name}.{each.get('name')}"
                yield DefinitionPart("field", each, at, path, "", (*inside, full_name))
                yield from _parts(each["type"], (*at, "type"), path, within, (*inside, full_name))
    elif isinstance(value, dict) and kind in ("array", "map"):
        yield DefinitionPart(kind, value, parts, field, "", inside)
        key, mark = ("items", "[]") if kind == "array" else ("values", "{}")
        yield from _parts(value.get(key), (*parts, key), f"{field}{mark}", namespace, inside)
    elif isinstance(kind, str) and kind in PRIMITIVE_TYPES:
        yield DefinitionPart("primitive", value, parts, field, "", inside)
    elif isinstance(kind, str):
        yield DefinitionPart("reference", value, parts, field, qualify(kind, namespace)[0], inside)
