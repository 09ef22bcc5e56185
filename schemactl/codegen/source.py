"""Python source text, laid out as `ruff format` would at its default width, so that generated files stay untouched."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 88
_INDENT = 4


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands as it is."""

    text: str

    @classmethod
    def of(cls, value: str) -> Literal:
        """Return a string literal in double quotes, ASCII only."""
        return cls(quote(value))


@dataclass(frozen=True, slots=True)
class Call:
    """A call with positional arguments, then keyword arguments."""

    name: str
    arguments: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or a tuple."""

    items: tuple[Expression, ...]
    brackets: str = "[]"


@dataclass(frozen=True, slots=True)
class Mapping:
    """A dict literal; its keys are strings, or literals of another kind."""

    entries: tuple[tuple[str | Literal, Expression], ...]


Expression = Literal | Call | Items | Mapping


def quote(value: str) -> str:
    """Return a Python string literal in double quotes, ASCII only, as the formatter leaves it.

    The formatter prefers the quotes that need fewer escapes, so a text with more double than single quotes has single.
    """
    mark = "'" if value.count('"') > value.count("'") else '"'
    return mark + "".join(_escaped(character, mark) for character in value) + mark


def render(expression: Expression, *, indent: int = 0, before: int = 0, after: int = 0) -> str:
    """Return the expression as text: on one line if it fits, else one argument or item a line.

    Args:
        expression: what to write.
        indent: of the line it starts on, in columns.
        before: columns taken on that line already, with the indentation.
        after: columns that what follows on its last line takes.
    """
    flat = _flat(expression)
    if isinstance(expression, Literal) or (
        max(before, indent) + len(flat) + after <= WIDTH and "\n" not in flat
    ):
        return flat
    opening, parts, closing = _parts(expression)
    if not parts:
        return flat
    inner = indent + _INDENT
    lone = isinstance(expression, Call) and len(parts) == 1
    lines = [opening]
    for prefix, part in parts:
        # A sole argument that has brackets of its own stands without a trailing comma, as the formatter has it.
        comma = "" if lone and not isinstance(part, Literal) else ","
        text = render(part, indent=inner, before=inner + len(prefix), after=len(comma))
        lines.append(f"{' ' * inner}{prefix}{text}{comma}")
    lines.append(" " * indent + closing)
    return "\n".join(lines)


def _escaped(character: str, mark: str) -> str:
    if character in ("\\", mark):
        return "\\" + character
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if named:
        return named
    code = ord(character)
    if 0x20 <= code < 0x7F:
        return character
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _flat(expression: Expression) -> str:
    if isinstance(expression, Literal):
        return expression.text
    opening, parts, closing = _parts(expression)
    inside = ", ".join(prefix + _flat(part) for prefix, part in parts)
    if isinstance(expression, Items) and expression.brackets == "()" and len(parts) == 1:
        inside += ","
    return f"{opening}{inside}{closing}"


def _parts(expression: Call | Items | Mapping) -> tuple[str, list[tuple[str, Expression]], str]:
    if isinstance(expression, Call):
        parts = [("", argument) for argument in expression.arguments]
        parts += [(f"{name}=", value) for name, value in expression.keywords]
        return f"{expression.name}(", parts, ")"
    if isinstance(expression, Items):
        return expression.brackets[0], [("", item) for item in expression.items], expression.brackets[1]
    keys = (key.text if isinstance(key, Literal) else quote(key) for key, _ in expression.entries)
    return "{", [(f"{key}: ", value) for key, (_, value) in zip(keys, expression.entries, strict=True)], "}"
