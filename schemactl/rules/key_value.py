"""What a registry cannot see because it sits in the properties: the encoding and half types of KEY_VALUE, and charsets."""

from __future__ import annotations

from schemactl.rules import Rule

_CLIENT = "https://github.com/apache/pulsar/blob/master/pulsar-client/src/main/java/org/apache/pulsar/client/impl/schema"
_COMMON = "https://github.com/apache/pulsar/blob/master/pulsar-common/src/main/java/org/apache/pulsar/client/impl/schema"

RULES = (
    Rule(
        id="KEY_VALUE_ENCODING_CHANGED",
        verdict="data",
        severity="error",
        summary="A KEY_VALUE schema moved its key between the payload and the message's own key.",
        why=(
            "INLINE puts key and value into the payload, each after its length; SEPARATED makes the key the message's key and "
            "leaves the value alone in the payload. A consumer decodes by the encoding of its own schema, so it takes the "
            "other's payload for something it is not. The encoding is a property (`kv.encoding.type`), and the registry "
            "compares no properties: it answers the old version's number and stores nothing. No message can be shown where a "
            "half is PROTOBUF: its definition does not tell its bytes."
        ),
        example=(
            "schema: {type: KEY_VALUE, encoding: INLINE, key: {type: STRING}, value: {type: INT64}}        # before\n"
            "schema: {type: KEY_VALUE, encoding: SEPARATED, key: {type: STRING}, value: {type: INT64}}     # after"
        ),
        fix="Keep the encoding, or declare a new topic for messages in the new one.",
        link=f"{_CLIENT}/KeyValueSchemaImpl.java",
    ),
    Rule(
        id="KEY_VALUE_TYPE_CHANGED",
        verdict="data",
        severity="error",
        summary="The key or the value of a KEY_VALUE schema is of another type than before.",
        why=(
            "The types of the halves are properties (`key.schema.type`, `value.schema.type`), and the registry compares the "
            "definitions' bytes alone: from STRING to INT32, or from AVRO to JSON with one text, nothing differs for it. It "
            "answers the old version's number and checks nothing, and every consumer reads the other type's bytes as its own. "
            "No message can be shown where the half is or was PROTOBUF, whose definition does not tell its bytes, nor from "
            "DATE to TIMESTAMP and back, which are the same moment in milliseconds."
        ),
        example=(
            "schema: {type: KEY_VALUE, key: {type: STRING}, value: {type: STRING}}     # before\n"
            "schema: {type: KEY_VALUE, key: {type: INT32}, value: {type: STRING}}      # after"
        ),
        fix="Keep the type of the half, or declare a new topic for the new messages.",
        link=f"{_COMMON}/KeyValueSchemaInfo.java",
    ),
    Rule(
        id="STRING_CHARSET_CHANGED",
        verdict="data",
        severity="error",
        summary="A STRING schema names another charset than before.",
        why=(
            "The charset is a property (`__charset`; UTF-8 where there is none), and the registry compares no properties: it "
            "answers the old version's number and stores nothing. A consumer decodes with the charset of its own schema, so "
            "characters outside ASCII come out wrong, and nobody is told."
        ),
        example=(
            "schema: {type: STRING}                                            # before: UTF-8\n"
            "schema: {type: STRING, properties: {__charset: ISO-8859-1}}       # after"
        ),
        fix="Keep the charset, or declare a new topic for texts in the new one.",
        link=f"{_CLIENT}/StringSchema.java",
    ),
)
