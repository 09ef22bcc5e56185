"""What a newcomer sees who mistypes a line of what `schemactl new` wrote, all in `mistakes.txt`; run this file to write that one anew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from test_messages import screen

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import SchemaType
from schemactl.declare.writer import Start, namespace_files, new_topic_files

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


def twelve_topics() -> dict[str, str]:
    """The files of a project with twelve topics of all types, and of a type that several may use."""
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
    """What is mistyped: in the file `path`, `right` became `wrong`; and what is to be seen."""

    name: str
    path: str
    right: str
    wrong: str
    screen: str

    def files(self) -> dict[str, str]:
        files = twelve_topics()
        assert self.right in files[self.path]
        return {**files, self.path: files[self.path].replace(self.right, self.wrong, 1)}


_MISTAKE = re.compile(r"(?P<name>.*)\n-- (?P<path>\S+) --\n(?P<edit>(?:[-+].*\n)+)-- screen --\n(?P<screen>[^\0]*)")


def read_mistakes(text: str) -> tuple[str, list[Mistake]]:
    """What stands before the mistakes, and the mistakes."""
    head, *parts = re.split(r"^== ", text, flags=re.MULTILINE)
    mistakes = []
    for part in parts:
        found = _MISTAKE.fullmatch(part)
        assert found, part
        right, wrong = ("\n".join(line[1:] for line in found["edit"].splitlines() if line[0] == sign) for sign in "-+")
        mistakes.append(Mistake(found["name"], found["path"], right, wrong, found["screen"].rstrip("\n")))
    return head, mistakes


HEAD, CASES = read_mistakes(MISTAKES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_gets_its_place_and_the_right_thing_to_type(case: Mistake) -> None:
    assert screen(case.files()) == case.screen
    first, *others = case.screen.splitlines()
    assert re.match(rf"{FOLDER}/\w+\.\w+:\d+:\d+: |schemactl\.yaml:\d+:\d+: ", first)
    assert any(line.startswith("  Fix: ") for line in others)


def test_without_a_mistake_nothing_is_said() -> None:
    assert screen(twelve_topics()) == ""
    assert len(CASES) >= 40


if __name__ == "__main__":
    written = [HEAD.rstrip("\n")]
    for each in CASES:
        edit = "".join(
            f"{sign}{line}\n" for sign, text in zip("-+", each[2:4], strict=True) for line in text.split("\n")
        )
        written.append(f"== {each.name}\n-- {each.path} --\n{edit}-- screen --\n{screen(each.files())}")
    MISTAKES.write_text("\n\n".join(written) + "\n", encoding="utf-8")
