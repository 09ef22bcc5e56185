"""Texts of a repository or a registry are only texts in generated modules: names, docs, defaults, reasons, properties, targets."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from topics_to_generate import GENERATE, ODD_TEXTS, make_approved, make_odd_info

from schemactl.codegen.package import package_files
from schemactl.codegen.spark_types import to_block_literal
from schemactl.codegen.topics import PackageTopic, VersionsOnTarget
from schemactl.core.errors import SchemactlError
from schemactl.core.project import ClassKind
from schemactl.core.schema import Release

STATEMENTS = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.ClassDef,
    ast.Expr,
    ast.If,
    ast.FunctionDef,
    ast.Return,
)
CALLS = {
    *(
        "Topic",
        "Schema",
        "KeyValue",
        "TargetNumbers",
        "Options",
        "TypedDict",
        "Avro",
        "finder",
        "dataclass",
        "field",
        "Field",
    ),
    *("ConfigDict", "Decimal", "date", "datetime", "time", "timedelta", "UUID"),
}
CODE = """a\"\"\";from __future__ import annotations;open("ran","w");dict(a=dict({0:'''"""
hostile_texts = st.one_of(
    st.sampled_from((*ODD_TEXTS, CODE, "'''}))#", '\\"""', "\\N", "\\x", "{x}", "#\nimport os")),
    st.text(st.sampled_from("\"'\\\n{}()#;:=abN0 \u2028\x00\ufeff"), max_size=20),
)


def make_hostile_topic(name: str, text: str, *, on_target: bool) -> PackageTopic:
    topic = make_approved("t", (make_odd_info(text),))
    hostile = replace(topic.topic, name=replace(topic.topic.name, topic=name))
    target = VersionsOnTarget(text, topic.topic.versions, {}, {1: text, 3: text}, 0)
    return replace(topic, topic=hostile, on_targets=(target,) if on_target else ())


@example(name=CODE, text="'''}))#", on_target=True, classes="dataclass")
@given(
    name=hostile_texts,
    text=hostile_texts,
    on_target=st.booleans(),
    classes=st.sampled_from([None, "dataclass", "pydantic"]),
)
def test_a_generated_module_has_only_the_statements_of_the_generator(
    *, name: str, text: str, on_target: bool, classes: ClassKind | None
) -> None:
    assume("\ud800" not in name + text)  # not a text: no file has it
    settings = replace(GENERATE, classes=classes)
    topic = make_hostile_topic(f"x{name}", text, on_target=on_target)
    try:
        files = package_files([topic], settings, release=Release.R4_0, targets=[text, name], target=text)
    except SchemactlError:
        return
    for path, source in files.items():
        if not path.endswith(".py"):
            continue
        tree = ast.parse(source)
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        assert [ast.dump(node) for node in statements if not isinstance(node, STATEMENTS)] == []
        assert [
            ast.dump(node)
            for node in statements
            if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
        ] == []
        calls = {ast.unparse(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert calls <= CALLS


@pytest.mark.parametrize("text", [*ODD_TEXTS, CODE, "", '"', "\\", "two\nlines\n", "\x0c"])
def test_a_block_of_text_is_that_text(text: str) -> None:
    assert ast.literal_eval(to_block_literal(text)) == text
    assert to_block_literal(text).count("\n") == text.count("\n")


@given(st.text())
def test_any_block_of_text_is_one_constant(text: str) -> None:
    (statement,) = ast.parse(to_block_literal(text)).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)
    assert statement.value.value == text
