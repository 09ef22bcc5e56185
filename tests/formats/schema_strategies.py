"""Hypothesis strategies for Avro schemas, values of them, and the ways in which teams change schemas.

Schemas are JSON values. They use every type, logical types, namespaces, aliases, enum and field defaults (valid in every
release, that is, of a union's first branch), and recursive records.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Json = Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
FIELDS = ("id", "name", "amount", "status", "tags", "next", "note")
SYMBOLS = ("NEW", "PAID", "SENT", "LOST", "BACK")
NAMESPACES = ("", "shop", "shop.billing")
LOGICAL: tuple[Json, ...] = (
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
)
PROMOTED = {"int": "long", "long": "float", "float": "double", "string": "bytes", "bytes": "string"}


@st.composite
def draw_schema(draw: DrawFn) -> Json:
    """Draw the definition of a record."""
    return _Maker(draw).record("", depth=3)


@st.composite
def draw_evolution(draw: DrawFn) -> tuple[Json, Json]:
    """Draw a definition, and the same after one to three changes; either may be the reader."""
    before = draw(draw_schema())
    after = copy.deepcopy(before)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)):
        step(draw, after)
    return before, after


class _Maker:
    """The generation of a definition, top down; finished and unfinished types can be referenced by full name."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.types: dict[str, Json] = {}
        self.open: list[str] = []
        self.count = 0

    def draw_type(self, namespace: str, depth: int) -> Json:
        kinds: list[Callable[[], Json]] = [
            lambda: self.draw(st.sampled_from(PRIMITIVES)),
            lambda: self.draw(st.sampled_from(PRIMITIVES)),
            lambda: dict(self.draw(st.sampled_from(LOGICAL))),
            lambda: self.draw_enum(namespace),
            lambda: self.named_type("fixed", namespace) | {"size": self.draw(st.integers(0, 4))},
        ]
        # From inside a namespace, Avro 1.12.1 does not find an unfinished type of the null namespace.
        usable_names = sorted(name for name in self.types if "." in name or not namespace)
        if usable_names:
            kinds.append(lambda: self.draw_reference(self.draw(st.sampled_from(usable_names))))
        if depth:
            kinds += [
                lambda: {"type": "array", "items": self.draw_type(namespace, depth - 1)},
                lambda: {"type": "map", "values": self.draw_type(namespace, depth - 1)},
                lambda: self.draw_union(namespace, depth - 1),
                lambda: self.draw_union(namespace, depth - 1),
                lambda: self.record(namespace, depth - 1),
            ]
        type_ = self.draw(st.sampled_from(kinds))()
        if isinstance(type_, dict) and "name" in type_:
            self.types[type_["name"]] = type_
        return type_

    def draw_reference(self, full_name: str) -> Json:
        """Return a reference that never makes a record contain itself."""
        return ["null", full_name] if full_name in self.open else full_name

    def named_type(self, kind: str, namespace: str) -> Json:
        space = self.draw(st.sampled_from((namespace, namespace, *NAMESPACES)))
        self.count += 1
        definition: Json = {"type": kind, "name": f"{space}.T{self.count}" if space else f"T{self.count}"}
        if not space and namespace:
            definition["namespace"] = ""
        if self.draw(st.integers(0, 9)) == 0:
            definition["aliases"] = [self.draw(st.sampled_from(("Old", "shop.Old")))]
        return definition

    def draw_enum(self, namespace: str) -> Json:
        symbols = self.draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
        definition = self.named_type("enum", namespace) | {"symbols": symbols}
        if self.draw(st.booleans()):
            definition["default"] = self.draw(st.sampled_from(symbols))
        return definition

    def draw_union(self, namespace: str, depth: int) -> Json:
        branches: dict[str, Json] = {}
        for _ in range(self.draw(st.integers(1, 3))):
            types_before = dict(self.types)
            branch = self.draw_type(namespace, depth)
            named = {branch_name(inner): inner for inner in (branch if isinstance(branch, list) else [branch])}
            if named.keys() & branches.keys():
                self.types = types_before  # the types of the dropped branch
            else:
                branches |= named
        return list(branches.values()) or ["null"]

    def record(self, namespace: str, depth: int) -> Json:
        definition = self.named_type("record", namespace)
        self.open.append(definition["name"])
        self.types[definition["name"]] = definition
        definition["fields"] = []
        space = definition["name"].rpartition(".")[0]
        for name in self.draw(st.lists(st.sampled_from(FIELDS), max_size=4, unique=True)):
            field = {"name": name, "type": self.draw_type(space, depth)}
            if self.draw(st.booleans()):
                field["default"] = draw_value(self.draw, field["type"], self.types)
            definition["fields"].append(field)
        self.open.remove(definition["name"])
        return definition


def branch_name(branch: Json) -> str:
    """Return the name by which a union distinguishes a branch."""
    if isinstance(branch, str):
        return branch
    return str(branch.get("name", branch["type"]))


EIGHTHS = st.integers(-(2**20), 2**20).map(lambda number: number / 8)
"""Doubles that every Java prints alike: before Java 19 others may come with more digits than they need."""

VALUES: dict[str, st.SearchStrategy[Json]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": EIGHTHS,
    "double": EIGHTHS,
    "bytes": st.text(st.characters(max_codepoint=255), max_size=3),
    "string": st.text(max_size=3),
}


def draw_value(draw: DrawFn, type_: Json, types: dict[str, Json], depth: int = 3) -> Json:
    """Draw a valid default for a type; `types` are the definitions that it can reference."""
    if isinstance(type_, list):
        return draw_value(draw, type_[0], types, depth)
    kind = type_ if isinstance(type_, str) else type_["type"]
    if kind in types:
        return draw_value(draw, types[kind], types, depth)
    if kind in VALUES:
        return draw(VALUES[kind])
    if kind == "record":
        return {field["name"]: draw_value(draw, field["type"], types, depth) for field in type_["fields"]}
    if kind in ("array", "map") and not (depth and draw(st.booleans())):
        return [] if kind == "array" else {}
    if kind == "array":
        return [draw_value(draw, type_["items"], types, depth - 1)]
    if kind == "map":
        return {"k": draw_value(draw, type_["values"], types, depth - 1)}
    return draw(st.sampled_from(type_["symbols"])) if kind == "enum" else "x" * int(type_["size"])


def list_places(definition: Json) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a type in `definition`, as a container and its key or index."""
    holder = {"type": definition}
    pending: list[tuple[Any, Any]] = [(holder, "type")]
    while pending:
        container, key = pending.pop()
        yield container, key
        type_ = container[key]
        if isinstance(type_, list):
            pending += [(type_, index) for index in range(len(type_))]
        elif isinstance(type_, dict):
            pending += [(type_, inner) for inner in ("items", "values") if inner in type_]
            pending += [(field, "type") for field in type_.get("fields", ())]


def _list_types(definition: Json, kind: str) -> list[Json]:
    types = [container[key] for container, key in list_places(definition)]
    return [type_ for type_ in types if isinstance(type_, dict) and type_["type"] == kind]


def _pick(draw: DrawFn, candidates: list[Any]) -> Any:
    return draw(st.sampled_from(candidates)) if candidates else None


def _add_field(draw: DrawFn, definition: Json) -> None:
    fields = _pick(draw, _list_types(definition, "record"))["fields"]
    name = draw(st.sampled_from(FIELDS))
    if any(field["name"] == name for field in fields):
        return
    type_ = draw(st.sampled_from([*PRIMITIVES, ["null", "string"], {"type": "array", "items": "int"}]))
    field = {"name": name, "type": type_}
    if draw(st.booleans()):
        field["default"] = draw_value(draw, type_, {})
    fields.insert(draw(st.integers(0, len(fields))), field)


def _remove_field(draw: DrawFn, definition: Json) -> None:
    record = _pick(draw, [record for record in _list_types(definition, "record") if record["fields"]])
    # Types that are defined in a field may be referenced elsewhere, so only fields without definitions are removed.
    plain = [field for field in record["fields"] if isinstance(field["type"], str)] if record else []
    if plain:
        record["fields"].remove(_pick(draw, plain))


def _reorder_fields(draw: DrawFn, definition: Json) -> None:
    record = _pick(draw, _list_types(definition, "record"))
    if all(isinstance(field["type"], str) and field["type"] in PRIMITIVES for field in record["fields"]):
        record["fields"] = draw(st.permutations(record["fields"]))


def _rename_field(draw: DrawFn, definition: Json) -> None:
    record = _pick(draw, [record for record in _list_types(definition, "record") if record["fields"]])
    if record:
        field = _pick(draw, record["fields"])
        old, field["name"] = field["name"], f"{field['name']}_2"
        if draw(st.booleans()):
            field["aliases"] = [old]


def _rename_root(draw: DrawFn, definition: Json) -> None:
    old = definition["name"]
    if any(container[key] == old for container, key in list_places(definition)):
        return  # it refers to itself
    definition["name"] = draw(st.sampled_from((f"{old}_2", "moved.Root")))
    # An alias in the null namespace would not survive being printed inside another one.
    if draw(st.booleans()) and ("." in old or definition["name"] != "moved.Root"):
        definition["aliases"] = [old]


def _change_primitive(draw: DrawFn, definition: Json) -> None:
    candidates = []
    for container, key in list_places(definition):
        promoted = PROMOTED.get(container[key]) if isinstance(container[key], str) else None
        if promoted and not (isinstance(container, list) and promoted in map(branch_name, container)):
            candidates.append((container, key, promoted))
    if candidates:
        container, key, promoted = _pick(draw, candidates)
        container[key] = promoted


def _make_optional(draw: DrawFn, definition: Json) -> None:
    records = _list_types(definition, "record")
    fields = [field for record in records for field in record["fields"] if "default" not in field]
    field = _pick(draw, [field for field in fields if not isinstance(field["type"], list)])
    if field and field["type"] != "null":
        field["type"] = ["null", field["type"]]


def _change_union(draw: DrawFn, definition: Json) -> None:
    types = [container[key] for container, key in list_places(definition)]
    union = _pick(draw, [type_ for type_ in types if isinstance(type_, list)])
    if not union:
        return
    new = draw(st.sampled_from(("double", "bytes", "boolean")))
    if new not in map(branch_name, union) and draw(st.booleans()):
        union.append(new)
    elif len(union) > 1 and isinstance(union[-1], str):
        union.pop()


def _change_symbols(draw: DrawFn, definition: Json) -> None:
    enum = _pick(draw, _list_types(definition, "enum"))
    if enum:
        defaults = {enum.get("default")} - {None}
        added = draw(st.lists(st.sampled_from(SYMBOLS), unique=True))
        # A field default is valid even if it is not a symbol, so any symbol can be removed.
        enum["symbols"] = sorted(defaults | set(added)) or ["NEW"]


def _change_size(draw: DrawFn, definition: Json) -> None:
    fixed = _pick(draw, _list_types(definition, "fixed"))
    if fixed:
        fixed["size"] += 1


STEPS: tuple[Callable[[DrawFn, Json], None], ...] = (
    _add_field,
    _add_field,
    _remove_field,
    _reorder_fields,
    _rename_field,
    _rename_root,
    _change_primitive,
    _make_optional,
    _change_union,
    _change_symbols,
    _change_size,
)
