"""The data verdict of AVRO, JSON and PROTOBUF by the names of Java's SchemaCompatibility; of KEY_VALUE and STRING by ours.

The encoding and half types of KEY_VALUE and the charset of STRING are properties, which a registry does not compare.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from schemactl.rules import Rule

_RESOLUTION = "https://avro.apache.org/docs/1.12.0/specification/#schema-resolution"
_ALIASES = "https://avro.apache.org/docs/1.12.0/specification/#aliases"
_JAVA = "https://github.com/apache/avro/blob/main/lang/java/avro/src/main/java/org/apache/avro/SchemaCompatibility.java"
_CLIENT = "https://github.com/apache/pulsar/blob/master/pulsar-client/src/main/java/org/apache/pulsar/client/impl/schema"
_COMMON = "https://github.com/apache/pulsar/blob/master/pulsar-common/src/main/java/org/apache/pulsar/client/impl/schema"


_rule = partial(Rule, verdict="data", severity="error")

RULES: Final = (
    _rule(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        summary="The reader has a field that the writer's messages do not carry, and no default to put in its place.",
        why="Messages hold the writer's fields alone. For a field that is only in its own schema a reader takes the default; "
        "without one it cannot make a record and throws, for every single message. Which side that is depends on who "
        "reads whom: a new field breaks readers that upgrade first, a removed one those that still use the old schema.",
        example='{"name": "channel", "type": "string"}                          # throws on older messages\n'
        '{"name": "channel", "type": "string", "default": "WEB"}        # reads them as WEB',
        fix="Give the field a default; a new optional field is a union with null first and `null` as its default.",
        link=_RESOLUTION,
    ),
    _rule(
        "TYPE_MISMATCH",
        summary="The reader expects another type than the one that was written, and Avro cannot promote one to the other.",
        why="A reader may only widen: int to long, float or double; long to float or double; float to double; string and "
        "bytes to each other. Anything else (long to int, string to int, a union to one of its branches) is an exception "
        "when such a value is met.",
        example='{"name": "quantity", "type": "long"}       # written\n'
        '{"name": "quantity", "type": "int"}        # cannot read it; the other way round is fine',
        fix="Keep the type, widen it where only readers upgrade first, or add a field of the new type with a default.",
        link=_RESOLUTION,
    ),
    _rule(
        "MISSING_ENUM_SYMBOLS",
        summary="The writer's enum has symbols that the reader does not list, and the reader has no enum default.",
        why="The message carries the symbol's number in the writer's list. A reader that does not know the symbol takes the "
        "enum's own default if it has one, and throws otherwise. The broker never compares symbols, so it accepts the "
        "schema, and the first message with such a symbol stops the consumer.",
        example='{"type": "enum", "name": "Status", "symbols": ["PAID", "SHIPPED"]}                          # written\n'
        '{"type": "enum", "name": "Status", "symbols": ["PAID"]}                                     # throws on SHIPPED\n'
        '{"type": "enum", "name": "Status", "symbols": ["PAID", "OTHER"], "default": "OTHER"}        # reads it as OTHER',
        fix="List the symbols again, or give the reader's enum a default (next to `symbols`, not the field's). A symbol that older "
        "readers must survive takes two changes: first the enum's default, beside an edit that Pulsar stores (it takes a default "
        "alone for no new version), such as a new field with a default; once every reader has that version, the symbol.",
        link=_RESOLUTION,
    ),
    _rule(
        "MISSING_UNION_BRANCH",
        summary="A type that may have been written fits none of the branches of the reader's union.",
        why="A reader with a union takes the branch that matches what was written. Where none does it throws. That happens "
        "when a branch is removed, and when the type inside a branch was changed so that it can no longer be read.",
        example='["null", "string", "long"]       # written\n'
        '["null", "string"]               # throws when it meets a long',
        fix="Put the branch back, or one that the type can be promoted to.",
        link=_RESOLUTION,
    ),
    _rule(
        "NAME_MISMATCH",
        summary="A record, enum or fixed has another name than the one that was written, and no alias for it.",
        why="Named types match by name. Java's reader, which Pulsar's clients use, does not compare the names of records: for "
        "a renamed record it decodes all the same, so that is a warning, and no message can prove it wrong. Readers that "
        "follow the specification to the letter reject it. A renamed enum or fixed is rejected by all of them. Where a field "
        "of the renamed record has its values by an alias of its own only, Java does not find them, nor whatever else was "
        "wrong with them: it reads the field's default, nothing is thrown, and what was written is lost. That is an error, "
        "and the message shown is one that loses a value.",
        example='{"type": "enum", "name": "Status", "symbols": ["PAID"]}                                     # written\n'
        '{"type": "enum", "name": "State", "symbols": ["PAID"]}                                      # rejected\n'
        '{"type": "enum", "name": "State", "aliases": ["Status"], "symbols": ["PAID"]}               # reads it',
        fix="Add the old full name to `aliases` of the type. That helps readers of the new schema; old readers know no alias.",
        link=_ALIASES,
    ),
    _rule(
        "FIXED_SIZE_MISMATCH",
        summary="A fixed has another size than the one that was written.",
        why="A fixed is exactly so many bytes, without a length in the message: a reader cannot cut or pad it, and throws.",
        example='{"type": "fixed", "name": "Hash", "size": 16}       # written\n'
        '{"type": "fixed", "name": "Hash", "size": 32}       # throws',
        fix="Keep the size, or add a field with a fixed of another name and a default next to it.",
        link=_RESOLUTION,
    ),
    _rule(
        "AMBIGUOUS_ALIAS",
        summary="A field's name and its aliases name several fields of the writer's record.",
        why="Aliases say which of the writer's fields a reader takes the value from. Where two of them match, Java does not "
        "choose: the check itself throws, the broker answers with an error, and a reader cannot be made. Where a field is "
        "given its own name as an alias, and between two schemas that are the same, the check throws as well, but readers "
        "do not: no message can be shown.",
        example='[{"name": "id", "type": "long"}, {"name": "order_id", "type": "long"}]       # written\n'
        '[{"name": "order_id", "aliases": ["id"], "type": "long"}]                    # which of the two?',
        fix="Remove the alias, or add it only when no version that must be read has both fields.",
        link=_JAVA,
    ),
    _rule(
        "UNPROTECTED_READERS_BREAK",
        severity="off",
        summary="The topic's strategy protects no reader, and readers of the latest version or of the new one fail.",
        why="Under ALWAYS_COMPATIBLE and ALWAYS_INCOMPATIBLE the data verdict is not judged: the strategy says that nobody depends "
        "on it. The registry takes whatever comes, and consumers that do read the topic throw. With this rule the new "
        "definition and the latest version are judged in both directions, as under FULL. `check --strict` does the same for "
        "one run, as a warning, which fails.",
        example="# schemactl.yaml\n"
        "severities:\n"
        "  UNPROTECTED_READERS_BREAK: warning                 # everywhere\n"
        "  shop/sales: {UNPROTECTED_READERS_BREAK: error}     # or in one namespace",
        fix="Change the schema as the rule that the message names says; or set a strategy that says who is protected.",
        link="https://pulsar.apache.org/docs/next/schema-understand/#schema-compatibility-check-strategy",
    ),
    _rule(
        "KEY_VALUE_ENCODING_CHANGED",
        summary="A KEY_VALUE schema moved its key between the payload and the message's own key.",
        why="INLINE puts key and value into the payload, each after its length; SEPARATED makes the key the message's key and "
        "leaves the value alone in the payload. A consumer decodes by the encoding of its own schema, so it takes the "
        "other's payload for something it is not. The encoding is a property (`kv.encoding.type`), and the registry "
        "compares no properties: it answers the old version's number and stores nothing. No message can be shown where a "
        "half is PROTOBUF: its definition does not say what its bytes are.",
        example="schema: {type: KEY_VALUE, encoding: INLINE, key: {type: STRING}, value: {type: INT64}}        # before\n"
        "schema: {type: KEY_VALUE, encoding: SEPARATED, key: {type: STRING}, value: {type: INT64}}     # after",
        fix="Keep the encoding, or declare a new topic for messages in the new one.",
        link=f"{_CLIENT}/KeyValueSchemaImpl.java",
    ),
    _rule(
        "KEY_VALUE_TYPE_CHANGED",
        summary="The key or the value of a KEY_VALUE schema is of another type than before.",
        why="The types of the halves are properties (`key.schema.type`, `value.schema.type`), and the registry compares the "
        "definitions' bytes alone: from STRING to INT32, or from AVRO to JSON with one text, nothing differs for it. It "
        "answers the old version's number and checks nothing, and every consumer reads the other type's bytes as its own. "
        "No message can be shown where the half is or was PROTOBUF, whose definition does not say what its bytes are, nor from "
        "DATE to TIMESTAMP and back, which are the same moment in milliseconds.",
        example="schema: {type: KEY_VALUE, key: {type: STRING}, value: {type: STRING}}     # before\n"
        "schema: {type: KEY_VALUE, key: {type: INT32}, value: {type: STRING}}      # after",
        fix="Keep the type of the half, or declare a new topic for the new messages.",
        link=f"{_COMMON}/KeyValueSchemaInfo.java",
    ),
    _rule(
        "STRING_CHARSET_CHANGED",
        summary="A STRING schema names another charset than before.",
        why="The charset is a property (`__charset`; UTF-8 where there is none), and the registry compares no properties: it "
        "answers the old version's number and stores nothing. A consumer decodes with the charset of its own schema, so "
        "characters outside ASCII come out wrong, without any error.",
        example="schema: {type: STRING}                                            # before: UTF-8\n"
        "schema: {type: STRING, properties: {__charset: ISO-8859-1}}       # after",
        fix="Keep the charset, or declare a new topic for texts in the new one.",
        link=f"{_CLIENT}/StringSchema.java",
    ),
    _rule(
        "SAMPLE_UNREADABLE",
        summary="A recorded message cannot be read with the schema that is declared now.",
        why="Files in a folder `samples` beside a declaration are messages that have to stay readable: recorded ones, or those of "
        "`schemactl sample`. Each is read by its version into the schema that the change declares, with the codec of generated "
        "packages, as `schemactl spark verify` does. It looks at the samples of topics whose schema changes, and at samples that the change "
        "adds or edits. Where the schema approved last cannot read a message either, the finding says so.",
        example="""
# samples/orders.jsonl, beside orders.yaml; `channel` got no default
{"version": 3, "payload_b64": "AgRFVVI="}""",
        fix="Change the schema so that the message is read, or correct the sample: its version, or its bytes.",
        link="https://avro.apache.org/docs/1.12.0/specification/#schema-resolution",
    ),
)
