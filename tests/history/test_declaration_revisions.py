"""A declaration of which only the definition at its end has changed is read as the whole would be, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scratch import record

from schemactl.declare import read_documents
from schemactl.history.revision import Revised

HEAD = "# Orders\ntopic: shop/sales/orders\nschema:\n  type: AVRO\n  definition: |\n"
PATH = "topics/orders.yaml"


def written(text: str, head: str = HEAD) -> bytes:
    return (head + "".join(f"    {line}\n" for line in text.splitlines())).encode()


def revised() -> Revised:
    """What stays of a file while its definition changes."""
    data = written(record("id", indent=2))
    found = Revised.of(read_documents(PATH, data), data)
    assert found
    return found


def test_another_definition_is_read_as_the_whole_file_would_be() -> None:
    data = written(record("id", "more", doc="A # and: a |, * and & and {", indent=4))
    found = revised().read(data)
    assert found
    assert found == read_documents(PATH, data)


@given(
    st.lists(st.text(st.sampled_from(' {}[]":,#|-*&!\t\n\ré<'), max_size=6), max_size=5), st.integers(3, 5)
)
def test_any_text_in_its_place_is_read_as_the_whole_file_would_be(lines: list[str], indent: int) -> None:
    data = (HEAD + "".join(f"{' ' * indent}{line}\n" for line in lines)).encode()
    found = revised().read(data)
    assert found is None or found == read_documents(PATH, data)


@pytest.mark.parametrize(
    "data",
    [
        written(record("id")).replace(b"AVRO", b"JSON"),
        written(record("id")) + b"partitions: 4\n",
        written(record("id")) + b"---\ntopic: a/b/c\n",
        written(record("id")) + b"\n",
        written(record("id")).rstrip(),
        written(record("id", doc="é").encode().decode("unicode_escape")),
        HEAD.encode(),
        b"",
    ],
    ids=["type", "key", "document", "empty line", "no line end", "beyond ASCII", "nothing there", "nothing"],
)
def test_more_than_another_definition_is_left_to_the_reading_of_the_whole(data: bytes) -> None:
    assert revised().read(data) is None


@pytest.mark.parametrize(
    "text",
    [
        "topic: shop/sales/orders\n",
        "namespace: shop/sales\n",
        HEAD.replace("|", "orders.avsc"),
        HEAD.replace("|", ">") + "    {}\n",
        HEAD.replace("|", "|-") + "    {}\n",
        HEAD + "    {}\npartitions: 4\n",
        HEAD + "    {}\n---\ntopic: a/b/c\n",
        "",
        "topic: [",
    ],
)
def test_files_of_another_form_are_always_read_as_a_whole(text: str) -> None:
    assert Revised.of(read_documents(PATH, text.encode()), text.encode()) is None
