"""Avro's schema resolution: the data verdict of AVRO, JSON and PROTOBUF, by the names of Java's SchemaCompatibility."""

from __future__ import annotations

from schemactl.rules import Rule

_RESOLUTION = "https://avro.apache.org/docs/1.12.0/specification/#schema-resolution"
_ALIASES = "https://avro.apache.org/docs/1.12.0/specification/#aliases"
_JAVA = "https://github.com/apache/avro/blob/main/lang/java/avro/src/main/java/org/apache/avro/SchemaCompatibility.java"

RULES = (
    Rule(
        id="READER_FIELD_MISSING_DEFAULT_VALUE",
        verdict="data",
        severity="error",
        summary="The reader has a field that the writer's messages do not carry, and no default to put in its place.",
        why=(
            "Messages hold the writer's fields alone. For a field that is only in its own schema a reader takes the default; "
            "without one it cannot make a record and throws, for every single message. Which side that is depends on who "
            "reads whom: a new field breaks readers that upgrade first, a removed one those that still use the old schema."
        ),
        example=(
            '{"name": "channel", "type": "string"}                          # throws on older messages\n'
            '{"name": "channel", "type": "string", "default": "WEB"}        # reads them as WEB'
        ),
        fix="Give the field a default; a new optional field is a union with null first and `null` as its default.",
        link=_RESOLUTION,
    ),
    Rule(
        id="TYPE_MISMATCH",
        verdict="data",
        severity="error",
        summary="The reader expects another type than the one that was written, and Avro cannot promote one to the other.",
        why=(
            "A reader may only widen: int to long, float or double; long to float or double; float to double; string and "
            "bytes to each other. Anything else (long to int, string to int, a union to one of its branches) is an exception "
            "when such a value is met."
        ),
        example=(
            '{"name": "quantity", "type": "long"}       # written\n'
            '{"name": "quantity", "type": "int"}        # cannot read it; the other way round is fine'
        ),
        fix="Keep the type, widen it where only readers upgrade first, or add a field of the new type with a default beside it.",
        link=_RESOLUTION,
    ),
    Rule(
        id="MISSING_ENUM_SYMBOLS",
        verdict="data",
        severity="error",
        summary="The writer's enum has symbols that the reader does not list, and the reader has no enum default.",
        why=(
            "The message carries the symbol's number in the writer's list. A reader that does not know the symbol takes the "
            "enum's own default if it has one, and throws otherwise. The broker never compares symbols, so it accepts the "
            "schema, and the first message with such a symbol stops the consumer."
        ),
        example=(
            '{"type": "enum", "name": "Status", "symbols": ["PAID", "SHIPPED"]}                          # written\n'
            '{"type": "enum", "name": "Status", "symbols": ["PAID"]}                                     # throws on SHIPPED\n'
            '{"type": "enum", "name": "Status", "symbols": ["PAID", "OTHER"], "default": "OTHER"}        # reads it as OTHER'
        ),
        fix="List the symbols again, or give the reader's enum a default (beside `symbols`, not the field's).",
        link=_RESOLUTION,
    ),
    Rule(
        id="MISSING_UNION_BRANCH",
        verdict="data",
        severity="error",
        summary="A type that may have been written fits none of the branches of the reader's union.",
        why=(
            "A reader with a union takes the branch that matches what was written. Where none does it throws. That happens "
            "when a branch is removed, and when the type inside a branch was changed so that it can no longer be read."
        ),
        example=(
            '["null", "string", "long"]       # written\n'
            '["null", "string"]               # throws when it meets a long'
        ),
        fix="Put the branch back, or one that the type can be promoted to.",
        link=_RESOLUTION,
    ),
    Rule(
        id="NAME_MISMATCH",
        verdict="data",
        severity="error",
        summary="A record, enum or fixed has another name than the one that was written, and no alias for it.",
        why=(
            "Named types match by name. Java's reader, which Pulsar's clients use, does not compare the names of records: for "
            "a renamed record it decodes all the same, so that is a warning, and no message can prove it wrong. Readers that "
            "follow the specification to the letter refuse it. A renamed enum or fixed is refused by all of them. Where a field "
            "of the renamed record has its values by an alias of its own only, Java does not find them, nor whatever else was "
            "wrong with them: it reads the field's default, nothing is thrown, and what was written is lost. That is an error, "
            "and the message shown is one that loses a value."
        ),
        example=(
            '{"type": "enum", "name": "Status", "symbols": ["PAID"]}                                     # written\n'
            '{"type": "enum", "name": "State", "symbols": ["PAID"]}                                      # refused\n'
            '{"type": "enum", "name": "State", "aliases": ["Status"], "symbols": ["PAID"]}               # reads it'
        ),
        fix="Add the old full name to `aliases` of the type. That helps readers of the new schema; old readers know no alias.",
        link=_ALIASES,
    ),
    Rule(
        id="FIXED_SIZE_MISMATCH",
        verdict="data",
        severity="error",
        summary="A fixed has another size than the one that was written.",
        why="A fixed is exactly so many bytes, without a length in the message: a reader cannot cut or pad it, and throws.",
        example=(
            '{"type": "fixed", "name": "Hash", "size": 16}       # written\n'
            '{"type": "fixed", "name": "Hash", "size": 32}       # throws'
        ),
        fix="Keep the size, or add a field with a fixed of another name and a default beside it.",
        link=_RESOLUTION,
    ),
    Rule(
        id="AMBIGUOUS_ALIAS",
        verdict="data",
        severity="error",
        summary="A field's name and its aliases name several fields of the writer's record.",
        why=(
            "Aliases say which of the writer's fields a reader takes the value from. Where two of them match, Java does not "
            "choose: the check itself throws, the broker answers with an error, and a reader cannot be made. Where a field is "
            "given its own name as an alias, and between two schemas that are the same, the check throws as well, but readers "
            "do not: no message can be shown."
        ),
        example=(
            '[{"name": "id", "type": "long"}, {"name": "order_id", "type": "long"}]       # written\n'
            '[{"name": "order_id", "aliases": ["id"], "type": "long"}]                    # which of the two?'
        ),
        fix="Remove the alias, or add it only when no version that must be read has both fields.",
        link=_JAVA,
    ),
)
