"""A file that ends with an inline definition is read alike after files with any other definition at their end."""

from __future__ import annotations

import pytest

from schemactl.declare.document import Documents, TopicDocument, read_documents

HEAD = """# Orders
topic: persistent://acme/sales/orders
partitions: 2
schema:
  type: AVRO
  properties: {owner: sales}
  definition: |
"""

DEFINITION = '{\n  "type": "record",\n  "name": "Order",\n  "fields": []\n}\n'


def indent(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}" for line in text.splitlines(keepends=True))


FILES = {
    "usual": HEAD + indent(DEFINITION, 4),
    "one line": HEAD + '    {"type": "record", "name": "Order", "fields": []}\n',
    "a primitive type": HEAD + '    "string"\n',
    "deeper": HEAD + indent(DEFINITION, 9),
    "blank lines": HEAD + indent(DEFINITION, 4).replace("[]\n", "[]\n\n") + "\n",
    "a blank line first": HEAD + "\n" + indent(DEFINITION, 4),
    "spaces at the end of a line": HEAD + indent(DEFINITION, 4).replace("[]\n", "[] \n"),
    "a line of spaces": HEAD + indent(DEFINITION, 4) + "    \n",
    "a line that is indented too little": HEAD + indent(DEFINITION, 4) + "   x\n",
    "a key after it": HEAD + indent(DEFINITION, 4) + "reader: latest\n",
    "a path": HEAD + "    orders.avsc\n",
    "a tab": HEAD + indent(DEFINITION, 4).replace('  "name"', '\t"name"'),
    "letters outside of ASCII": HEAD + indent(DEFINITION, 4).replace("Order", "Größe"),
    "a comment in the block": HEAD + "    # comment\n" + indent(DEFINITION, 4),
    "windows line ends": (HEAD + indent(DEFINITION, 4)).replace("\n", "\r\n"),
    "in a comment": HEAD.replace("  definition", "  # definition") + indent(DEFINITION, 4),
    "in another block": HEAD.replace("  definition", "  text: |\n    definition") + indent(DEFINITION, 8),
    "in quotes": HEAD.replace("  definition", "  text: 'definition") + indent(DEFINITION, 4) + "'\n",
    "an unknown key": HEAD.replace("partitions", "partition") + indent(DEFINITION, 4),
    "a wrong value": HEAD.replace("partitions: 2", "partitions: two") + indent(DEFINITION, 4),
    "a second definition": HEAD.replace("  definition", "  definition: x\n  definition") + indent(DEFINITION, 4),
    "an anchor": HEAD.replace("{owner: sales}", "&a {owner: sales}") + indent(DEFINITION, 4),
    "two documents": f"namespace: acme/sales\n---\n{HEAD}{indent(DEFINITION, 4)}",
    "a client": HEAD.replace("schema:", "clients: [{name: web, role: reader, schema: a.avsc}]\nschema:")
    + indent(DEFINITION, 4),
    "kinds": HEAD.replace("schema:", "schemas:\n  created:").replace("\n  ", "\n    ") + indent(DEFINITION, 8),
    "a KEY_VALUE": HEAD.replace("AVRO", "KEY_VALUE").replace("  definition", "  key: {type: STRING}\n  definition")
    + indent(DEFINITION, 4),
    "a merge conflict": HEAD + indent(DEFINITION, 4) + "<<<<<<< ours\n",
    "no block": HEAD,
}


def describe(documents: Documents) -> list[object]:
    """Return everything about the documents that does not depend on the end of the file."""
    values: list[object] = [documents.problems, documents.unread != (), documents.broken]
    for document in documents.documents:
        if isinstance(document, TopicDocument):
            places = [
                document.topic.locate(f"/{key}") for key in ("topic", "partitions", "reader", "schema/definition")
            ]
            for declaration in (*document.declarations, *document.clients.values()):
                places += [declaration.locate("definition"), declaration.locate("properties", "owner")]
                values += [declaration.source, declaration.definition_source, declaration.definition]
                values += [declaration.type, declaration.parts, declaration.properties, declaration.text.path]
            values += [document.topic, document.source, *document.clients, *document.kinds, places]
        else:
            values += [document, document.source]
    return values


@pytest.mark.parametrize("name", FILES)
def test_same_documents_with_and_without_text_after_definition(name: str) -> None:
    # A definition is read by itself only at the end of a file.
    data, with_comment = FILES[name].encode(), f"{FILES[name]}# The end.\n".encode()
    for _ in range(2):
        actual, expected = read_documents("orders.yaml", data), read_documents("orders.yaml", with_comment)
        assert describe(actual) == describe(expected)


def test_definition_without_line_end_has_none() -> None:
    [document] = read_documents("orders.yaml", (HEAD + indent(DEFINITION, 4)).rstrip().encode()).documents
    assert isinstance(document, TopicDocument)
    assert document.schema is not None
    assert document.schema.definition == DEFINITION.rstrip()


def test_definition_is_the_one_of_this_file() -> None:
    for name in ("first", "second"):
        data = (HEAD + indent(DEFINITION.replace("Order", name), 4)).encode()
        [document] = read_documents("orders.yaml", data).documents
        assert isinstance(document, TopicDocument)
        assert document.schema is not None
        assert document.schema.definition == DEFINITION.replace("Order", name)
        assert document.schema.text.data == data
