"""List the messages of the package, read from its source: errors, problems, findings and notes, each with its fix.

A message is a template: `{name}` is a value, and `[a | b]` are alternatives. `python tests/message_list.py` writes `messages.txt`, which
reads like a manual: read it in one go after you have changed a message.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "schemactl"
GOLDEN = Path(__file__).parent / "messages.txt"

ERRORS = {"SchemactlError", "OutOfTime"}
"""The base classes of errors whose messages users see."""

RECORDS = {
    "Problem",
    "Misfit",
    "ValidationProblem",
    "Finding",
    "ValueError",
    "Refusal",
    "PlanRefusal",
    "PlanNote",
    "DriftItem",
}
"""Other classes whose texts users see."""

PRINTERS = {"say", "note", "warn", "report", "print"}
"""Functions and methods that print a text."""

MESSAGE_KEYWORDS = {"message", "what", "cause", "reason"}
FIX_KEYWORDS = {"fix", "advice", "hint"}
_CONTROL_SEQUENCE = re.compile(r"\r|\x1b\[\w*")
_MIN_LENGTH = 12
"""Shorter texts are keys or parts of a message."""


def render_messages() -> str:
    """Return all messages, by module."""
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
        if "_vendor" not in path.parts
    }
    classes = RECORDS | _find_error_classes(trees.values())
    sections = []
    for path, tree in trees.items():
        entries = list(dict.fromkeys(_Reader(tree, classes).list_entries()))
        if entries:
            sections.append("\n".join([f"# {path.relative_to(PACKAGE.parent).as_posix()}", "", *entries]))
    return "\n\n".join(sections) + "\n"


def _find_error_classes(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of the classes that inherit from ERRORS, directly or indirectly."""
    bases_by_class = {
        node.name: {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    errors = set(ERRORS)
    while more := {name for name, bases in bases_by_class.items() if bases & errors} - errors:
        errors |= more
    return errors


class _Reader:
    """Reads the messages of a module."""

    def __init__(self, tree: ast.Module, classes: set[str]) -> None:
        self._tree = tree
        self._classes = classes
        self._constants = _list_assigned_texts(tree.body)
        self._listed: set[int] = set()

    def list_entries(self) -> Iterator[str]:
        """Yield the messages in the order of the source, each with its fix on the next lines."""
        yield from self._read(self._tree, self._constants)

    def _read(self, node: ast.AST, texts: dict[str, list[ast.expr]]) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = {**texts, **_list_assigned_texts(node.body)}
        if isinstance(node, ast.Call):
            yield from self._read_call(node, texts)
        if isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            yield from self._render_entry(node.value.elts, [], texts)
        for child in ast.iter_child_nodes(node):
            yield from self._read(child, texts)

    def _read_call(self, call: ast.Call, texts: dict[str, list[ast.expr]]) -> Iterator[str]:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        has_fix = any(keyword.arg in FIX_KEYWORDS for keyword in call.keywords)
        if not (name in self._classes or name in PRINTERS or has_fix):
            return
        values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in MESSAGE_KEYWORDS)]
        fixes = [keyword.value for keyword in call.keywords if keyword.arg in FIX_KEYWORDS]
        yield from self._render_entry(values, fixes, texts)

    def _render_entry(
        self, values: list[ast.expr], fixes: list[ast.expr], texts: dict[str, list[ast.expr]]
    ) -> Iterator[str]:
        """Yield a message and its fix; without `fixes`, the fix is the second text of `values`."""
        groups = [
            [text for text in self._render(value, texts) if " " in text and len(text) >= _MIN_LENGTH]
            for value in values
        ]
        groups = [group for group in groups if group]
        fix_texts = [text for fix in fixes for text in self._render(fix, texts) if text]
        if not fixes and len(groups) == 2:
            fix_texts = groups.pop()
        lines = [text for group in groups for text in group]
        if lines or fix_texts:
            yield "\n".join([*lines, *(f"  Fix: {fix}" for fix in fix_texts)])

    def _render(self, value: ast.expr, texts: dict[str, list[ast.expr]]) -> list[str]:
        """Return the templates of an expression: several for a variable with several values, none if it is not a text."""
        if not isinstance(value, ast.Name):
            template = _render_template(value)
            return [template] if template is not None else []
        values = texts.get(value.id, [])
        if len(values) > 2 and id(values[0]) in self._listed:
            return []  # The values were listed with an earlier message.
        self._listed.update(map(id, values[:1]))
        others = {name: assigned for name, assigned in texts.items() if name != value.id}
        return [template for text in values for template in self._render(text, others)]


def _list_assigned_texts(body: list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Return the texts that are assigned to each variable of a body, also in nested statements."""
    texts: dict[str, list[ast.expr]] = {}
    for node in (inner for statement in body for inner in ast.walk(statement)):
        value = getattr(node, "value", None)
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) or value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            for part, text in pairs:
                if isinstance(part, ast.Name) and isinstance(
                    text, ast.Constant | ast.JoinedStr | ast.IfExp | ast.BinOp
                ):
                    texts.setdefault(part.id, []).append(text)
    return texts


def _render_template(value: ast.expr) -> str | None:
    match value:
        case ast.Constant(str(text)):
            return _CONTROL_SEQUENCE.sub("", text.strip("\n")).replace("\n", "\n  ")
        case ast.JoinedStr(parts):
            return "".join(
                _render_template(part) or "" if isinstance(part, ast.Constant) else _render_placeholder(part)
                for part in parts
            )
        case ast.BinOp(left, ast.Add(), right):
            sides = _render_template(left), _render_template(right)
            if sides == (None, None):
                return None
            return "".join(
                side if side is not None else _render_placeholder(part)
                for side, part in zip(sides, (left, right), strict=True)
            )
        case ast.IfExp(_, body, orelse):
            choices = [_render_template(body), _render_template(orelse)]
            if choices == [None, None]:
                return None
            return f"[{' | '.join(choice or '' for choice in choices)}]"
    return None


def _render_placeholder(part: ast.expr) -> str:
    """Return `{name}` for a value, by its last name, or the alternatives of a condition."""
    value = part.value if isinstance(part, ast.FormattedValue) else part
    if isinstance(value, ast.IfExp) and (template := _render_template(value)) is not None:
        return template
    if isinstance(value, ast.Constant | ast.JoinedStr) and (template := _render_template(value)) is not None:
        return template
    while isinstance(value, ast.Subscript | ast.Starred | ast.Await):
        value = value.value
    if isinstance(value, ast.Call):
        join = value.func
        if isinstance(join, ast.Attribute) and join.attr == "join" and value.args:
            names = [node for node in ast.walk(value.args[0]) if isinstance(node, ast.Name)]
            return f"{{{names[-1].id if names else 'names'}}}"
        arguments = [argument for argument in value.args if not isinstance(argument, ast.Constant)]
        return _render_placeholder(arguments[0]) if arguments else _render_placeholder(value.func)
    if isinstance(value, ast.Attribute):
        return f"{{{value.attr}}}"
    return f"{{{value.id}}}" if isinstance(value, ast.Name) else "{value}"


if __name__ == "__main__":
    GOLDEN.write_text(render_messages(), encoding="utf-8")
