"""Fields whose next change hurts."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.lint.definition import LintedDefinition, Remark
from schemactl.lint.edits import AddKey
from schemactl.lint.keys import misspelt


def recursive(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the places where a record refers to one that it stands in."""
    for part in definition.of_kind("reference"):
        written = part.keys.get("type", part.value)
        for name in {part.full_name, written} & {*part.inside}:
            yield Remark(
                part.parts,
                f"{part.field} holds {name} again, to any depth: `generate` rejects that without --recursion-depth, and Spark has no such column.",
                field=part.field,
            )


def optional_without_default(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the fields that may be null, and have no default."""
    for part in definition.of_kind("field"):
        branches = part.keys["type"]
        if not isinstance(branches, list) or "default" in part.keys:
            continue
        names = [each.get("type") if isinstance(each, dict) else each for each in branches]
        # One that is misspelt is a remark of its own.
        if "null" not in names or "default" in dict(misspelt(part)).values():
            continue
        is_first = names[0] == "null"
        yield Remark(
            part.parts,
            f"{part.field} may be null, and has no default: every writer must set it, and it cannot be removed or have been added "
            "without breaking readers.",
            'Add "default": null.' if is_first else 'Put "null" first, and add "default": null.',
            part.field,
            edit=AddKey(part.parts, ("type", "name"), "default", None) if is_first else None,
        )
