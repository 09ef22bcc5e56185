"""The messages for mistyped lines of files that `schemactl new` wrote, all in `mistakes.txt`; run this file to update it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from test_messages import render_screen

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import SchemaType
from schemactl.declare.new_declarations import Start, namespace_files, new_topic_files

MISTAKES = Path(__file__).with_name("mistakes.txt")
FOLDER = "namespaces/sales"
TOPICS = {
    "orders": SchemaType.AVRO,
    "views": SchemaType.JSON,
    "clicks": SchemaType.PROTOBUF_NATIVE,
    "rides": SchemaType.PROTOBUF,
    "carts": SchemaType.KEY_VALUE,
    "notes": SchemaType.STRING,
    "flags": SchemaType.BOOLEAN,
    "counts": SchemaType.INT64,
    "prices": SchemaType.DOUBLE,
    "days": SchemaType.LOCAL_DATE,
    "moments": SchemaType.INSTANT,
    "pings": None,
}


def make_topics() -> dict[str, str]:
    """Make the files of a project with twelve topics of all types, and a shared type."""
    files = {
        "schemactl.yaml": 'version: 1\nroots: [namespaces]\npulsar: "4.0"\n',
        "namespaces/common/money.avsc": '{"type": "record", "name": "Money", "namespace": "shop.common", "fields": []}\n',
        **namespace_files(NamespaceName("shop", "sales"), FOLDER, "BACKWARD", {}),
    }
    for name, type_ in TOPICS.items():
        topic = TopicName("shop", "sales", name)
        files |= new_topic_files(topic, f"{FOLDER}/{name}", Start(type_), {"partitions": 4}, {})
    return files


class Mistake(NamedTuple):
    """A mistake in the file `path`: `right` became `wrong`; and the expected output."""

    name: str
    path: str
    right: str
    wrong: str
    screen: str

    def write_files(self) -> dict[str, str]:
        files = make_topics()
        assert self.right in files[self.path]
        return {**files, self.path: files[self.path].replace(self.right, self.wrong, 1)}


_MISTAKE = re.compile(r"(?P<name>.*)\n-- (?P<path>\S+) --\n(?P<edit>(?:[-+].*\n)+)-- screen --\n(?P<screen>[^\0]*)")


def read_mistakes(text: str) -> tuple[str, list[Mistake]]:
    """Read the head of the file and its mistakes."""
    head, *parts = re.split(r"^== ", text, flags=re.MULTILINE)
    mistakes = []
    for part in parts:
        match = _MISTAKE.fullmatch(part)
        assert match, part
        right, wrong = ("\n".join(line[1:] for line in match["edit"].splitlines() if line[0] == sign) for sign in "-+")
        mistakes.append(Mistake(match["name"], match["path"], right, wrong, match["screen"].rstrip("\n")))
    return head, mistakes


HEAD, CASES = read_mistakes(MISTAKES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_gets_its_place_and_the_right_thing_to_type(case: Mistake) -> None:
    assert render_screen(case.write_files()) == case.screen
    first, *others = case.screen.splitlines()
    assert re.match(rf"{FOLDER}/\w+\.\w+:\d+:\d+: |schemactl\.yaml:\d+:\d+: ", first)
    assert any(line.startswith("  Fix: ") for line in others)


def test_without_a_mistake_nothing_is_said() -> None:
    assert render_screen(make_topics()) == ""
    assert len(CASES) >= 40


if __name__ == "__main__":
    written = [HEAD.rstrip("\n")]
    for case in CASES:
        edit = "".join(
            f"{sign}{line}\n" for sign, text in zip("-+", case[2:4], strict=True) for line in text.split("\n")
        )
        written.append(f"== {case.name}\n-- {case.path} --\n{edit}-- screen --\n{render_screen(case.write_files())}")
    MISTAKES.write_text("\n\n".join(written) + "\n", encoding="utf-8")
