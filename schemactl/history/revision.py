"""Declaration files of which only the definition at their end has changed: most changes of declarations are such."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from schemactl.declare import Documents, TopicDocument
from schemactl.declare.yaml_text import YamlText

_MAX_BYTES: Final = 1 << 20

_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\n"


class Revised(NamedTuple):
    """A file that declares one topic, whose definition is the literal text that ends the file.

    Attributes:
        head: the file up to the first line of that text.
        indent: what each line of the text starts with.
        document: what the file declares, without the text.
    """

    head: bytes
    indent: bytes
    document: TopicDocument

    @classmethod
    def of(cls, read: Documents, data: bytes) -> Revised | None:
        """What stays of the file with content `data` while its definition changes; None where that is not so simple."""
        if read.problems or len(read.documents) != 1:
            return None
        [document] = read.documents
        if not isinstance(document, TopicDocument) or document.schema is None:
            return None
        declaration = document.schema
        source = declaration.definition_source
        lines = data.split(b"\n", source.line)
        if declaration.parts != ("schema",) or len(lines) <= source.line or not lines[-2].endswith(b": |"):
            return None
        rest = lines[-1]
        text = rest.lstrip(b" ")
        indent = rest[: len(rest) - len(text)]
        head = data[: len(data) - len(rest)]
        bare = replace(declaration, definition="", text=YamlText(declaration.text.path, head))
        made = cls(head, indent, replace(document, schema=bare))
        # The reading above and the one below agree, or this is no such file.
        again = made.read(data)
        if again is None or again.documents != (document,):
            return None
        return made

    def read(self, data: bytes) -> Documents | None:
        """What the file declares when its content is `data`; None: more than the definition has changed."""
        head, indent = self.head, self.indent
        if not data.startswith(head) or not data.endswith(b"\n") or len(data) > _MAX_BYTES:
            return None
        text = data[len(head) :]
        lines = text.count(b"\n")
        if (
            text.translate(None, _PRINTABLE)
            or not indent
            or not text.startswith(indent)
            or text[len(indent) : len(indent) + 1] in (b" ", b"\n", b"")
            or text.endswith(b"\n" + indent + b"\n")
        ):
            return None
        definition = text[len(indent) :].replace(b"\n" + indent, b"\n")
        schema = self.document.schema
        # Every line starts with the indent.
        if len(text) - len(definition) != lines * len(indent) or schema is None:
            return None
        path = schema.text.path
        declaration = schema.with_definition(definition.decode(), YamlText(path, data))
        return Documents(path, (TopicDocument(self.document.topic, declaration, self.document.source),))
