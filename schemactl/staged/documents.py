"""YAML of the plain kind, as values: what people write, read without all that is needed to explain what they should not.

What this reads `declare.yaml_text` reads, too, as the same values. What it does not read may still be fine.
"""

from __future__ import annotations

from yaml import YAMLError
from yaml._yaml import CParser

from schemactl.staged.avro import NotPlain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from yaml import Node

MAX_DEPTH = 60

_UNUSUAL = ("\ufeff", "\t", "\r", "&", "<<<<<<< ", ">>>>>>> ")
"""Marks of byte order, tabs, other line ends, anchors, merge conflicts: rare, and each with rules of its own."""
_CONSTANTS = {"null": None, "true": True, "false": False}
_TEXT_STARTS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/")


class _Composer(CParser):
    """Nodes of a text, their tags only where they are written; it gives up on what is deep, before libyaml's calls are."""

    depth = 0

    def descend_resolver(self, _parent: Node | None, _index: object) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotPlain

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, _kind: type[Node], _value: str | None, _implicit: object) -> None:
        return


def documents(data: bytes) -> list[Any]:
    """The values of the documents of a YAML file.

    Raises:
        NotPlain: it may be right, or wrong.
    """
    try:
        text = data.decode()
        if any(unusual in text for unusual in _UNUSUAL):
            raise NotPlain
        composer = _Composer(text)
        found = []
        while composer.check_node():
            found.append(_value(composer.get_node()))
    except (UnicodeDecodeError, YAMLError) as error:
        raise NotPlain from error
    return found


def _value(node: Any) -> Any:
    if node.tag is not None:
        raise NotPlain
    value = node.value
    if node.id == "scalar":
        return value if node.style else _plain(value)
    if node.id == "sequence":
        return [_value(item) for item in value]
    built = {_key(key): _value(item) for key, item in value}
    if len(built) != len(value):
        raise NotPlain
    return built


def _key(node: Any) -> str:
    key = _value(node) if node.id == "scalar" else None
    if not isinstance(key, str):
        raise NotPlain
    return key


def _plain(text: str) -> Any:
    """The value of an unquoted scalar, where nobody could take it for something else."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.isascii() and text.isdigit() and len(text) < 16 and (text[0] != "0" or text == "0"):
        return int(text)
    if text.startswith(("./", "../")) or (text[:1] in _TEXT_STARTS and text.lower() not in _CONSTANTS):
        return text
    raise NotPlain
