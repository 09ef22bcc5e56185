"""The rules about a broker's answer to an upload, and about a change of the schema type."""

from __future__ import annotations

from functools import partial

from schemactl.rules import BROKER_SOURCE, Rule

_rule = partial(Rule, verdict="broker", severity="error")

RULES = (
    _rule(
        "BROKER_INCOMPATIBLE",
        summary="The registry will reject the upload: the schema may not follow the versions it holds.",
        why="An upload is compared with the latest version, or with every live one under a transitive strategy, by the "
        "checker of its type. When it is rejected, `apply` stops there (HTTP 409), and a producer that brings the schema "
        "cannot connect. The checker is not the specification: it never compares enum symbols, reads defaults strictly, and of "
        "PROTOBUF_NATIVE it looks at the root message's name alone, so it can reject what every reader can read.",
        example="# namespace: schema_compatibility_strategy: FORWARD\n"
        '# before: {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}\n'
        '# after:  {"type": "record", "name": "Order", "fields": []}     id has no default to fall back on',
        fix="By cause: where a data finding names this version, change the schema as it says. A root message with another name: "
        "keep the full name. An alias of a type of another kind: remove it. An enum or fixed that moved to another "
        "namespace while its union got another branch: do one of the two. ALWAYS_INCOMPATIBLE: set another strategy. A rule "
        "of the advanced checker: see the page of that rule.",
        link=f"{BROKER_SOURCE}/SchemaRegistryServiceImpl.java",
    ),
    _rule(
        "BROKER_INVALID",
        summary="The registry will reject the upload: the definition is not valid for its type.",
        why="Before it compares anything, the registry validates the definition (HTTP 422): Avro text must parse with the "
        "broker's own Avro, an AVRO schema must not be a union at the top, a primitive type has no definition, a "
        "PROTOBUF_NATIVE definition must hold its root message. Releases differ: 4.0 rejects `$` in names, 4.2 and 5.0 "
        "reject namespaces such as `a-b` and the JSON definitions of clients before 2.1. In declared files this is an "
        "error with its place, before anything is compared; it is a finding only in catalogs that are read from elsewhere.",
        example="schema:\n"
        "  type: AVRO\n"
        '  definition: ["null", {type: record, name: Order, fields: []}]     # a union at the top',
        fix="Write a definition that the release of your brokers reads.",
        link=f"{BROKER_SOURCE}/validator/SchemaDataValidator.java",
    ),
    _rule(
        "BROKER_ERROR",
        summary="The registry will fail on the upload with an internal error.",
        why="Something among the live versions, or in the new definition, throws an exception that the registry does not catch "
        "(HTTP 500). The usual cause is a default that is no value of its field's type: as a topic's first version it is "
        "accepted, and from then on every upload and every producer with a schema fails, whatever it brings and whatever "
        "the strategy, while the compatibility endpoint still says yes. A JSON definition from a client before 2.1 among "
        "the versions does the same.",
        example='# accepted as version 0, and the topic is stuck: {"name": "note", "type": "string", "default": null}\n'
        '# write: {"name": "note", "type": ["null", "string"], "default": null}',
        fix="If the new definition is at fault, give the field a default of its type. If a stored version is, no upload can "
        "repair it: delete the topic's schema (a tombstone, then numbering goes on) and upload again.",
        link=f"{BROKER_SOURCE}/SchemaRegistryServiceImpl.java",
    ),
    _rule(
        "OTHER_RELEASE_DIFFERS",
        severity="warning",
        summary="Brokers of another Pulsar release would answer otherwise than those of the release that the project names.",
        why="Releases bring another Avro, and with it other rules for names and defaults. What is accepted today may be rejected "
        "by the same cluster after its upgrade, when the schema is uploaded to a new topic or a producer brings it; what is "
        "rejected today may pass elsewhere.",
        example="""
# pulsar: "4.0" takes it; 4.2 and 5.0 reject the namespace
{"type": "record", "name": "Order", "namespace": "shop.my-team", "fields": [{"name": "id", "type": "long"}]}""",
        fix="Write the definition so that every release you run or will run accepts it. If no such broker ever sees it, set "
        "the rule to `off` under `severities`.",
        link=f"{BROKER_SOURCE}/validator/StructSchemaDataValidator.java",
    ),
    _rule(
        "SCHEMA_TYPE_CHANGED",
        verdict="data",
        severity="error",
        summary="The schema type is another one than before.",
        why="The bytes of an AVRO, a JSON and a STRING message have nothing in common, and a topic keeps its old messages. A "
        "consumer decodes every message by its own type: what the other type wrote is garbage to it or an exception. The "
        "registry rejects a change of type under every strategy but ALWAYS_COMPATIBLE. No message can be shown where the "
        "definition does not say what its bytes are (PROTOBUF without its `.proto`, EXTERNAL), nor where both types read them "
        "alike: DATE and TIMESTAMP are the same moment in milliseconds.",
        example="schema: {type: JSON, definition: order.avsc}     # before\nschema: {type: AVRO, definition: order.avsc}     # after",
        fix="Keep the type, or declare a new topic for the new messages and move the consumers over.",
        link=f"{BROKER_SOURCE}/SchemaRegistryServiceImpl.java",
    ),
)
