"""What Java's client may be told about the definition of a class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JavaOptions:
    """The options of Java's `SchemaDefinition` that change a definition.

    Attributes:
        always_allow_null: `withAlwaysAllowNull`: what is an object in Java may be null, with null for its default.
        jsr310: `withJSR310ConversionEnabled`: moments are `timestamp-millis`, and times of day, as always in Java, `time-millis`.
    """

    always_allow_null: bool = False
    jsr310: bool = False
