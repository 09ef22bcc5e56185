"""Look up keys of YAML files in the JSON Schemas that validate them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, Final

from schemactl.declare.models import editor_schemas
from schemactl.declare.source_location import Tokens
from schemactl.lsp.cursor import Cursor
from schemactl.lsp.workspace import Workspace

_JsonSchema = dict[str, Any]

_CHOICES: Final = ("oneOf", "anyOf", "allOf")


_get_schemas = cache(editor_schemas)


def find_kind(workspace: Workspace, path: str) -> str:
    """Return the kind of a YAML file: project, declarations, overlays or waivers."""
    _, project = workspace.open_files()
    if path == project.path:
        return "project"
    if path == project.waivers:
        return "waivers"
    is_overlay = any(path in target.overlays for target in project.targets.values())
    return "overlays" if is_overlay else "declarations"


def describe_key(workspace: Workspace, cursor: Cursor) -> str:
    """Return the description of the key at the cursor as Markdown, or ""."""
    kind = find_kind(workspace, cursor.path)
    keys = list_keys(kind, cursor.parts[:-1])
    description = keys.get(cursor.parts[-1], {}).get("description", "")
    return f"**{cursor.parts[-1]}**\n\n{description}" if description else ""


def list_keys(
    kind: str, parents: Tokens, schema_type: str = "", siblings: Collection[str] = ()
) -> dict[str, _JsonSchema]:
    """Return the schema of each key that an object may have.

    Args:
        kind: the kind of the file.
        parents: the place of the object.
        schema_type: the value of its key `type`, or "".
        siblings: the keys that it has already.
    """
    keys: dict[str, _JsonSchema] = {}
    all_shapes = _find_shapes(kind, parents)
    shapes = [shape for shape in all_shapes if shape["properties"].keys() >= {*siblings}] or all_shapes
    for shape in shapes:
        properties = shape.get("properties", {})
        types = properties.get("type", {})
        allowed_types = types.get("enum", [types["const"]] if "const" in types else [])
        if not schema_type or not allowed_types or schema_type in allowed_types:
            for name, schema in properties.items():
                keys.setdefault(name, {}).update(schema)
    if not schema_type and "type" in keys:
        types = [value for shape in shapes for value in list_values(shape["properties"].get("type", {}))]
        keys["type"] = {**keys["type"], "enum": [*dict.fromkeys(types)]}
    return keys


def list_values(schema: _JsonSchema) -> list[str]:
    """Return the values that a schema lists."""
    values = [*schema.get("enum", ())]
    values += [schema["const"]] if "const" in schema else []
    values += ["true", "false"] if schema.get("type") == "boolean" else []
    for choice in _CHOICES:
        values += [value for option in schema.get(choice, ()) for value in list_values(option)]
    return [value for value in values if isinstance(value, str)]


def _find_shapes(kind: str, parents: Tokens) -> list[_JsonSchema]:
    """Return the schemas of objects that a value at `parents` may have."""
    root = _get_schemas()[kind]
    schemas = [*_expand(root, root)]
    for part in parents:
        children: list[_JsonSchema] = []
        for schema in schemas:
            if part in schema.get("properties", {}):
                children.append(schema["properties"][part])
            elif isinstance(schema.get("items"), dict) and part.isdecimal():
                children.append(schema["items"])
            elif isinstance(schema.get("additionalProperties"), dict):
                children.append(schema["additionalProperties"])
        schemas = [expanded for child in children for expanded in _expand(child, root)]
    return [schema for schema in schemas if "properties" in schema]


def _expand(schema: _JsonSchema, root: _JsonSchema, visited: Collection[str] = ()) -> Iterator[_JsonSchema]:
    """Yield the schema, or the schemas that it refers to or chooses from."""
    reference = schema.get("$ref")
    if reference is not None:
        if reference not in visited:
            yield from _expand(root["$defs"][reference.rpartition("/")[2]], root, (*visited, reference))
        return
    options = [option for choice in _CHOICES for option in schema.get(choice, ())]
    if not options:
        yield schema
    for option in options:
        yield from _expand(option, root, visited)
