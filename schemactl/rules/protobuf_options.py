"""buf's rules on a file's syntax and options, which decide what is generated from it."""

from __future__ import annotations

from typing import Final

from schemactl.rules import Rule
from schemactl.rules.protobuf_wire import BUF


def _option(option: str, before: str, after: str, why: str) -> Rule:
    """The rule that `option` keeps its value; `before` and `after` as a `.proto` writes values, "" where unset."""
    lines = [f"option {option} = {value};" if value else "// not set" for value in (before, after)]
    return Rule(
        id=f"FILE_SAME_{option.upper()}",
        verdict="declaration",
        severity="warning",
        summary=f"A file's option `{option}` changed.",
        why=f"{why} Bytes are not affected.",
        example=f"""
// before
{lines[0]}

// after
{lines[1]}
""",
        fix=f"Keep `{option}` as it was.",
        link=f"{BUF}#file_same_{option}",
    )


_GENERIC: Final = "Abstract service classes that code may derive from are generated, or no longer are."

RULES: Final = (
    Rule(
        id="FILE_SAME_SYNTAX",
        verdict="declaration",
        severity="warning",
        summary="A file changed between proto2, proto3 and editions.",
        why="The syntax decides about presence, packing, open enums and UTF-8 checks unless features say otherwise. What of it "
        "readers of bytes meet is told by the rules of the data verdict.",
        example="""
// before
syntax = "proto2";

// after
syntax = "proto3";
""",
        fix="Keep the syntax; an edition can spell out the old one's behaviour as features.",
        link=f"{BUF}#file_same_syntax",
    ),
    _option("java_package", '"com.shop"', '"com.shop.v1"', "Generated Java classes move to another package."),
    _option(
        "java_outer_classname",
        '"Clicks"',
        '"ClickProto"',
        "The Java class around the generated ones has another name.",
    ),
    _option(
        "java_multiple_files",
        "",
        "true",
        "Generated Java classes move out of the class around them, or into it.",
    ),
    _option(
        "go_package", '"shop.dev/clicks"', '"shop.dev/click"', "Generated Go code has another import path."
    ),
    _option("csharp_namespace", '"Shop"', '"Shop.V1"', "Generated C# classes move to another namespace."),
    _option("objc_class_prefix", '"SHP"', '"SHX"', "Generated Objective-C classes have other names."),
    _option("php_class_prefix", '"Shop"', "", "Generated PHP classes have other names."),
    _option("php_namespace", "'Shop'", "'Shop\\\\V1'", "Generated PHP classes move to another namespace."),
    _option(
        "php_metadata_namespace",
        "'Shop\\\\Meta'",
        "'Meta'",
        "Generated PHP metadata classes move to another namespace.",
    ),
    _option("ruby_package", '"Shop"', '"Shop::V1"', "Generated Ruby classes move to another module."),
    _option("swift_prefix", '"Shop"', '"SHP"', "Generated Swift types have other names."),
    _option(
        "optimize_for",
        "SPEED",
        "LITE_RUNTIME",
        "Generated C++ and Java classes derive from another one; those of LITE_RUNTIME have no descriptors and no "
        "reflection.",
    ),
    _option("cc_generic_services", "true", "", _GENERIC),
    _option("java_generic_services", "true", "", _GENERIC),
    _option("py_generic_services", "true", "", _GENERIC),
    _option(
        "cc_enable_arenas",
        "true",
        "false",
        "Code that allocates generated C++ messages on arenas no longer compiles.",
    ),
)
