"""The shape of an entry of the waiver file."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Final

from pydantic import Field

from schemactl.core.catalog import parse_day
from schemactl.core.wording import found
from schemactl.declare.shapes.leaf import MappingShape, TopicText, ValueShape, optional, text

_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def check_day(value: object) -> None:
    """Raise ValueError unless `value` is a day of the calendar, as ISO 8601 writes it."""
    with suppress(ValueError):
        if isinstance(value, str):
            parse_day(value)
            return
    raise ValueError(
        f"expected a day such as 2027-01-31, found {found(value)}", "write year, month and day: 2027-01-31"
    )


Day = Annotated[Any, ValueShape(check_day, {"type": "string", "pattern": _DAY})]


class WaiverShape(MappingShape):
    """One finding on one change that is approved all the same."""

    rule: Annotated[Any, text("a rule such as MISSING_ENUM_SYMBOLS")] = Field(
        description="The finding's rule."
    )
    topic: TopicText = Field(description="The finding's topic.")
    field: Annotated[Any, text("the path of a field, such as Order.status")] = optional(
        "The field it is about, for people."
    )
    fingerprint: Annotated[
        Any,
        text(
            "a fingerprint such as sha256:0f3a...",
            r"^sha256:[0-9a-f]{64}$",
            fix="`schemactl waive` writes it",
        ),
    ] = Field(description="Which change it is, as `check` prints it.")
    reason: Annotated[Any, text("the reason, a text")] = Field(
        description="Why the change is right all the same."
    )
    owner: Annotated[Any, text("a person or a team")] = Field(description="Who answers for it.")
    until: Day = Field(description="The last day, in UTC, on which it approves anything.")
