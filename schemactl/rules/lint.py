"""The rules about what is fine today and hurts later, which `lint` looks for."""

from __future__ import annotations

from functools import partial
from typing import Final

from schemactl.rules import BROKER_SOURCE, Rule

_AVRO: Final = "https://avro.apache.org/docs/1.12.0/specification/"

_rule = partial(Rule, verdict="lint", severity="warning")

RULES: Final = (
    _rule(
        "KEY_IGNORED",
        summary="A key of a definition is nearly one that Avro knows, or stands at the wrong level.",
        why="Avro keeps every key that it does not know as a property and reads nothing into it, so `defualt` is no default and "
        "`aliasess` are no aliases. It shows when a reader needs the default or the alias. Properties also count in Pulsar's "
        "equality: the correction makes a new version.",
        example="""
# before
{"name": "channel", "type": "string", "defualt": "web"}

# after
{"name": "channel", "type": "string", "default": "web"}""",
        fix="Write the key that is meant; `schemactl lint --fix` does it for `default`, `aliases`, `doc` and `order`. A property of your "
        "own gets a name that is not nearly one of Avro's.",
        link=f"{_AVRO}#schema-declaration",
    ),
    _rule(
        "LOGICAL_TYPE_UNKNOWN",
        summary="The name of a logical type is nearly one that Avro knows.",
        why="Avro ignores a logical type that it does not know, without a word: a `timestamp-milis` is a plain long to every reader, "
        "and its column a bigint.",
        example="""
# before
{"name": "placed", "type": {"type": "long", "logicalType": "timestamp-milis"}}

# after
{"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}}""",
        fix="Write the name that is meant. The bytes of messages stay the same; columns and generated classes get another type, so "
        "`--fix` leaves it to you.",
        link=f"{_AVRO}#logical-types",
    ),
    _rule(
        "LOGICAL_TYPE_IGNORED",
        summary="Avro ignores a logical type, because it stands at a place or on a type where it means nothing.",
        why="A decimal without precision is plain bytes, a date on a long a plain number, a logical type beside the `type` of a field "
        "nothing at all. Java, Python and Spark all ignore it without a word, and whoever reads the column finds numbers and bytes.",
        example="""
# before
{"name": "price", "type": {"type": "bytes", "logicalType": "decimal"}}

# after
{"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}}""",
        fix="Write what the logical type asks for, or remove it. The bytes of messages stay the same; columns get another type.",
        link=f"{_AVRO}#logical-types",
    ),
    _rule(
        "TIMESTAMP_NANOS",
        summary="A timestamp is in nanoseconds, which few readers know.",
        why="The logical types in nanoseconds came with Avro 1.12: clients of Pulsar 4.0 (Avro 1.11) and Spark before 4.3 read a plain "
        "long, and one who takes it for microseconds is off by a factor of a thousand. A long of nanoseconds also ends in the year 2262.",
        example="""
# before
{"name": "placed", "type": {"type": "long", "logicalType": "timestamp-nanos"}}

# after
{"name": "placed", "type": {"type": "long", "logicalType": "timestamp-micros"}}""",
        fix="Use `timestamp-micros` in a new field, unless nanoseconds are really measured.",
        link=f"{_AVRO}#timestamps",
    ),
    _rule(
        "DECIMAL_DEFAULT_EMPTY",
        summary="The default of a decimal has no bytes.",
        why="Java makes no number of no bytes. Avro and the brokers accept the default, a text as any default of bytes; but a Java client whose "
        "class has a BigDecimal throws a NumberFormatException (Zero length BigInteger) on each message that lacks the field, and a generated "
        "package rejects such messages. Readers that leave decimals as bytes read them.",
        example="""
# before
{"name": "discount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "default": ""}

# after
{"name": "discount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "default": "\\u0000"}""",
        fix='Write "default": "\\u0000": the byte 0 is the number 0. The change makes a new version, with which such messages are read.',
        link=f"{_AVRO}#decimal",
    ),
    _rule(
        "OPTIONAL_WITHOUT_DEFAULT",
        summary="A field may be null, and has no default.",
        why="A union with null is read as an optional field, but without a default every writer has to set it, and readers break when "
        "it is removed, or read messages from before it was added.",
        example="""
# before
{"name": "coupon", "type": ["null", "string"]}

# after
{"name": "coupon", "type": ["null", "string"], "default": null}""",
        fix='Add `"default": null`, with `"null"` as the first branch; `schemactl lint --fix` does it where that is first already. '
        "Readers and writers of both versions understand each other.",
        link=f"{_AVRO}#schema-record",
    ),
    _rule(
        "RECURSION_UNBOUNDED",
        summary="A record holds itself again, to any depth.",
        why="Avro and the brokers take it, and so do clients. Spark has no type for it: `generate` rejects the topic unless it is given a depth, "
        "below which values are dropped, and a table cannot hold it.",
        example="""
{"type": "record", "name": "Category", "fields": [
  {"name": "name", "type": "string"},
  {"name": "parent", "type": ["null", "Category"], "default": null}
]}""",
        fix="Refer to the other by its id, or keep a list of all on the way: `path: [{...}, {...}]`.",
        link=f"{_AVRO}#schema-record",
    ),
    _rule(
        "RELEASE_REJECTS",
        summary="Brokers of another Pulsar release reject the definition.",
        why="Releases bring another Avro, and with it other rules for names: 4.0 takes a namespace with a hyphen, later ones do not; 4.2 and "
        "5.0 take `$`, 4.0 does not. After an upgrade of the cluster the schema is rejected when it is uploaded to a new topic or a producer brings "
        "it. `check` says so of what changes (OTHER_RELEASE_DIFFERS), this rule of everything.",
        example="""
# pulsar: "4.0" takes it; 4.2 and 5.0 reject the namespace
{"type": "record", "name": "Order", "namespace": "shop.my-team", "fields": [{"name": "id", "type": "long"}]}""",
        fix="Write letters, digits and `_`. A name is part of the version: rename it with the next change, and see what `check` says.",
        link=f"{BROKER_SOURCE}/validator/StructSchemaDataValidator.java",
    ),
    _rule(
        "DEFAULT_OF_OTHER_BRANCH",
        summary="The default of a field belongs to a later branch of its union.",
        why="Avro's specification has it that a default is of the first branch. Avro from 1.12 on, and so Pulsar from 4.2 on, takes one of any; "
        "4.0 rejects it (there it is an error of the declaration), as other languages' readers do.",
        example="""
# before
{"name": "note", "type": ["string", "null"], "default": null}

# after
{"name": "note", "type": ["null", "string"], "default": null}""",
        fix="Put the branch that the default belongs to first. Messages that are there already are read by their own schema.",
        link=f"{_AVRO}#unions",
    ),
    _rule(
        "NAMESPACE_UNLIKE_SIBLINGS",
        summary="The type of a topic is in another namespace than nearly all types of its Pulsar namespace.",
        why="A namespace is part of every name: classes that are generated get another package, and the type is another one wherever a union "
        "lists it. It is mostly left over from a copy, and can be changed for free only as long as nobody uses it.",
        example="""
# orders.avsc, invoices.avsc and payments.avsc have "namespace": "com.example.shop"
{"type": "record", "name": "Refund", "namespace": "com.example.web", "fields": []}""",
        fix="Give it the namespace that the others have; or turn the rule off for that namespace if they differ on purpose.",
        link=f"{_AVRO}#names",
    ),
    _rule(
        "NAME_STYLE",
        severity="off",
        summary="A field, a type or a symbol is not written as the project says.",
        why="Names become columns, classes and constants, and are there for ever: a second way of writing them is a second thing to remember. "
        "Without `names` in the project file fields are snake_case, types PascalCase and symbols UPPER_CASE.",
        example="""
# before
{"name": "orderId", "type": "string"}

# after
{"name": "order_id", "type": "string"}""",
        fix="In a new field write the name as the others are. A field that is there keeps its name, unless an alias has the old one.",
        link=f"{_AVRO}#names",
    ),
    _rule(
        "DOC_MISSING",
        severity="off",
        summary="A type or a field has no doc.",
        why="A doc is not stored with an old version again: Pulsar does not compare it. What a field means is best written when it is new.",
        example="""
# before
{"name": "total", "type": "double"}

# after
{"name": "total", "type": "double", "doc": "With tax, in the currency of the shop."}""",
        fix='Add `"doc"`. It makes no version.',
        link=f"{_AVRO}#schema-record",
    ),
    _rule(
        "FIELD_ORDER",
        severity="off",
        summary="A field without default stands behind one with a default.",
        why="Generated constructors, such as those of Python's dataclasses, take what must be given first, and some generators reject the other order. "
        "In binary Avro the order is that of the bytes, so only a new type gets it for free.",
        example="""
# before
{"name": "note", "type": ["null", "string"], "default": null},
{"name": "id", "type": "long"}

# after
{"name": "id", "type": "long"},
{"name": "note", "type": ["null", "string"], "default": null}""",
        fix="Put fields without default first.",
        link=f"{_AVRO}#schema-record",
    ),
)
