"""The rules about what is fine today and hurts later, which `lint` looks for."""

from __future__ import annotations

from functools import partial
from typing import Final

from schemactl.rules import Rule

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
)
