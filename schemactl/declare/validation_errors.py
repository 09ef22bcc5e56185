"""Messages for documents whose values do not fit their shape, at the place in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from schemactl.core.errors import Problem, Source, meant
from schemactl.core.policies import SETTINGS
from schemactl.core.schema import Release, SchemaType
from schemactl.core.wording import found, shortened
from schemactl.declare.files import MAX_PROBLEMS
from schemactl.formats import SPECS
from schemactl.source import Tokens, key_node, node_at, node_place

if TYPE_CHECKING:
    from schemactl.declare.shapes import Mismatch

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
    """Yield everything in `value` that does not fit the shape of `kind` (see `shapes.KINDS`)."""
    # pydantic is imported when something is read.
    from schemactl.declare.shapes import mismatches

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
        is_half = (
            SPECS[SchemaType[mismatch.schema_type]].declared_as == "protobuf" and len(mismatch.parts) > 2
        )
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
        return (
            (spec.unfit_half, "write AVRO, JSON, STRING, ...") if is_half else spec.undeclarable or ("", "")
        )
    allowed = [
        type_.name
        for type_, spec in SPECS.items()
        if not spec.undeclarable and spec.first_release is Release.R4_0
    ]
    near = meant(name, allowed)
    return f"`{shortened(name)}` is not a schema type", f"write {near or 'one of ' + ', '.join(allowed)}"
