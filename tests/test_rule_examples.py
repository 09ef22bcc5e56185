"""What the catalogue shows as an example of a rule fires that rule."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from schemactl.errors import InvalidSchema
from schemactl.formats import resolve
from schemactl.formats.protobuf_native.advanced import advanced_violations
from schemactl.formats.protobuf_native.breaking import CATEGORIES, proto_rules
from schemactl.formats.protobuf_native.compile import Proto, compile_all
from schemactl.formats.protobuf_native.wrapper import parse
from schemactl.model import SchemaInfo, SchemaType
from schemactl.rules import Rule, rules

AVRO = [
    "READER_FIELD_MISSING_DEFAULT_VALUE",
    "TYPE_MISMATCH",
    "MISSING_ENUM_SYMBOLS",
    "MISSING_UNION_BRANCH",
    "NAME_MISMATCH",
    "FIXED_SIZE_MISMATCH",
    "AMBIGUOUS_ALIAS",
]
HEADS = ('syntax = "proto3";', 'syntax = "proto2";', 'edition = "2023";', "")


def fits(rule: Rule) -> bool:
    """Whether the example is two texts of one file."""
    return rule.example.startswith("\n// before\n")


@pytest.mark.parametrize("rule", [rule for rule in rules().values() if fits(rule)], ids=lambda rule: rule.id)
def test_the_example_of_a_rule_on_protobuf_fires_it(rule: Rule) -> None:
    before, after = re.split(r"^// after.*\n", rule.example, flags=re.MULTILINE)
    texts = [whole(side, head, rule.example) for head in HEADS for side in (before, after)]
    infos = compile_all([Proto(root(text), "a.proto", {"a.proto": text.encode()}) for text in texts])
    pairs = zip(infos[::2], infos[1::2], strict=True)
    assert any(rule.id in found(old, new) for old, new in pairs)


def whole(text: str, head: str, example: str) -> str:
    """The excerpt as a file that may compile under `head`: with the types that it only names, and a root for its enums."""
    text = re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^rpc .*$", r"service S { \g<0> }", text, flags=re.MULTILINE)
    named = set(re.findall(r"\b[A-Z][a-z]\w*", re.sub(r'"[^"]*"', "", example)))
    declared = set(re.findall(r"\b(?:message|enum|service) (\w+)", example))
    ranges = "extensions 100 to 199;" if "extend" in text else ""
    stubs = "".join(f"message {name} {{ {ranges} }}\n" for name in sorted(named - declared))
    enums = re.findall(r"\benum (\w+)", text)
    label = "" if "edition" in head + text else "optional"
    fields = "".join(f" {label} {name} f{number} = {number};" for number, name in enumerate(enums, start=2))
    return f"{head}\n{text}\n{stubs}message Zoo {{ {label} string url = 1;{fields} }}\n"


def root(text: str) -> str:
    """The full name of the first message that is no stub of an enum's."""
    package = re.search(r"^package (.*);", text, re.MULTILINE)
    message = re.search(r"^message (\w+)", text, re.MULTILINE)
    assert message
    name = "Zoo" if re.search(r"^enum", text, re.MULTILINE) else message[1]
    return f"{package[1]}.{name}" if package else name


def found(old: SchemaInfo | InvalidSchema, new: SchemaInfo | InvalidSchema) -> Iterator[str]:
    """Every rule that anybody finds."""
    if isinstance(old, InvalidSchema) or isinstance(new, InvalidSchema):
        return
    yield from (each.rule for each in resolve(reader=new, writer=old))
    before, after = parse(old.schema), parse(new.schema)
    for category in CATEGORIES:
        yield from (each.rule for each in proto_rules(old=before.image, new=after.image, category=category))
    yield from (each.rule for each in advanced_violations(reader=after.root, writer=before.root))


@pytest.mark.parametrize("rule", [rules()[name] for name in AVRO], ids=lambda rule: rule.id)
def test_the_example_of_a_rule_on_avro_fires_it_where_it_says_so(rule: Rule) -> None:
    first, *others = rule.example.splitlines()
    if rule.id == "READER_FIELD_MISSING_DEFAULT_VALUE":
        first, others = "[]  # written", [first, *others]
    for line in others:
        definition, _, comment = line.partition("  #")
        reasons = {
            each.rule for each in resolve(reader=info(definition), writer=info(first.partition("  #")[0]))
        }
        assert reasons == (set() if "reads" in comment else {rule.id}), line


def info(definition: str) -> SchemaInfo:
    """The definition of a type, of a field, or of fields."""
    value = json.loads(definition)
    fields = value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else [value]
    if all(
        isinstance(each, dict) and "type" in each and each["type"] not in ("enum", "fixed") for each in fields
    ):
        value = {"type": "record", "name": "Order", "fields": fields}
    return SchemaInfo(SchemaType.AVRO, json.dumps(value).encode())
