"""The shapes of scalar values and lists, each with its error message."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from schemactl.core.errors import meant
from schemactl.core.names import NamespaceName, TopicName, parse_tenant
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.wording import found

MAX_ITEMS: Final = 1_000
"""Lists, and mappings with free keys, have at most this many entries."""


def regular(pattern: str) -> re.Pattern[str]:
    """Return a JSON Schema's `pattern` for `search`: its `$` is the very end of the text, not also before a last line end."""
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)


NOT_BLANK: Final = r"\S"
"""The pattern of text that says something."""

_MOST: Final = 2**31 - 1
"""The largest whole number: Pulsar's are Java's int."""


class MappingShape(BaseModel):
    """A mapping with these keys and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


def optional(description: str, **more: Any) -> Any:
    """Return a key that may be absent. Without a value (`key:`) it is rejected, as every wrong type is."""
    return Field(default=None, description=description, **more)


@dataclass(frozen=True, eq=False)
class ValueShape:
    """A value judged as a whole: `check` raises ValueError (what is wrong, and perhaps a fix) where it does not fit."""

    check: Callable[[Any], None]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(
        self, _core: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return dict(self.schema)

    def _validate(self, value: object) -> object:
        try:
            self.check(value)
        except ValueError as error:
            what, fix = (*error.args, "")[:2]
            raise PydanticCustomError("own", "{what}", {"what": what, "fix": fix}) from None
        return value


def text(expected: str, pattern: str = NOT_BLANK, *, fix: str = "", unquoted: str = "") -> ValueShape:
    """Text in which `pattern` is found; `unquoted` is the fix for what is no text, where that is another one."""
    found_in = regular(pattern).search

    def check(value: object) -> None:
        if not isinstance(value, str) or not found_in(value):
            way_out = fix if isinstance(value, str) else unquoted or fix
            if value is None:
                way_out = "write it, or remove the key"
            raise ValueError(f"expected {expected}, found {found(value)}", way_out)

    return ValueShape(check, {"type": "string", "pattern": pattern} if pattern else {"type": "string"})


def choice(noun: str, choices: tuple[str, ...]) -> ValueShape:
    """Return one of `choices`; the message for a near miss names it."""

    def check(value: object) -> None:
        if value in choices:
            return
        if not isinstance(value, str):
            raise ValueError(f"expected a {noun}, found {found(value)}", f"write one of {', '.join(choices)}")  # noqa: TRY004  see ValueShape
        near = meant(value, choices)
        raise ValueError(
            f"`{value[:60]}` is no {noun}", f"write {near}" if near else f"write one of {', '.join(choices)}"
        )

    return ValueShape(check, {"enum": list(choices)})


def named(
    parse: Callable[[str], object], expected: str, pattern: str, advice: Callable[[str], str] = lambda _: ""
) -> ValueShape:
    """Return a name that `parse` accepts: at least every text in which `pattern` is found; `advice` is the fix for others."""

    def check(value: object) -> None:
        if not isinstance(value, str):
            raise ValueError(f"expected {expected}, found {found(value)}")  # noqa: TRY004  see ValueShape
        try:
            parse(value)
        except ValueError as error:
            raise ValueError(error.args[0], error.args[1] if len(error.args) > 1 else advice(value)) from None

    return ValueShape(check, {"type": "string", "pattern": pattern})


def _topic_advice(text: str) -> str:
    """Return what to write for a name that is no topic's; "": that cannot be told."""
    rest = re.sub(r"-partition-\d+$", "", text.partition("://")[2] or text)
    missing = ("TENANT", "NAMESPACE")[: max(2 - rest.count("/"), 0)]
    with suppress(ValueError):
        return f"write {TopicName.parse('/'.join([*missing, rest]))}"
    return ""


def _namespace_advice(text: str) -> str:
    """Return what to write for a name that is no namespace's; "": that cannot be told."""
    parts = (text.partition("://")[2] or text).split("/")
    with suppress(ValueError):
        return f"write {NamespaceName.parse('/'.join(parts[:2]) if len(parts) > 1 else f'TENANT/{parts[0]}')}"
    return ""


def whole(expected: str, least: int, *others: str, most: int = _MOST) -> ValueShape:
    """Return a whole number from `least` to `most`, or one of `others`."""

    def check(value: object) -> None:
        whole = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        if not whole and value not in others:
            is_quoted = isinstance(value, str) and value.isdecimal()
            fix = f"write {others[0]}, or a number" if others else ""
            if isinstance(value, int) and value < least:
                fix = f"write {least} or more"
            if is_quoted:
                fix = f"write {value} without quotes"
            raise ValueError(f"expected {expected}, found {found(value)}", fix)

    number = {"type": "integer", "minimum": least, "maximum": most}
    return ValueShape(check, {"oneOf": [number, {"enum": list(others)}]} if others else number)


_TRUTHS: Final = {
    **dict.fromkeys(("yes", "on", "1"), "write true"),
    **dict.fromkeys(("no", "off", "0"), "write false"),
}


def check_flag(value: object) -> None:
    """ValueError: not a boolean."""
    if not isinstance(value, bool):
        fix = _TRUTHS.get(str(value).lower(), "")
        raise ValueError(f"expected true or false, found {found(value)}", fix)  # noqa: TRY004  see ValueShape


def check_definition(value: object) -> None:
    """ValueError: neither a path nor a definition."""
    if not isinstance(value, dict | list) and not (isinstance(value, str) and value.strip()):
        raise ValueError(f"expected a file's path, or the definition itself, found {found(value)}")


_STRATEGIES = tuple(strategy.value for strategy in CompatibilityStrategy)

_PART = "[-=:.A-Za-z0-9_]+"

TopicText = Annotated[
    Any,
    named(
        TopicName.parse,
        "a topic such as persistent://tenant/namespace/topic",
        rf"^((non-)?persistent://)?{_PART}/{_PART}/(?!.*-partition-\d+$)[^\s/\x00-\x1f\x7f]([^/\x00-\x1f\x7f]*[^\s/\x00-\x1f\x7f])?$",
        _topic_advice,
    ),
]
NamespaceText = Annotated[
    Any,
    named(
        NamespaceName.parse, "a namespace such as tenant/namespace", f"^{_PART}/{_PART}$", _namespace_advice
    ),
]
TenantText = Annotated[Any, named(parse_tenant, "a tenant's name", f"^{_PART}$")]
Strategy = Annotated[Any, choice("compatibility strategy", _STRATEGIES)]
BrokerStrategy = Annotated[
    Any, choice("compatibility strategy of a broker", tuple(s for s in _STRATEGIES if s != "UNDEFINED"))
]
Flag = Annotated[Any, ValueShape(check_flag, {"type": "boolean"})]
FilePath = Annotated[Any, text("a file's path")]
FolderPath = Annotated[Any, text("a folder's path")]
Definition = Annotated[
    Any, ValueShape(check_definition, {"type": ["string", "object", "array"], "pattern": NOT_BLANK})
]
MessageName = Annotated[
    Any,
    text(
        "a message's full name, such as package.Message",
        r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$",
    ),
]
PropertyText = Annotated[Any, text("text", "", fix="put it in quotes: Pulsar's properties are text")]


def _release_of(product: str) -> ValueShape:
    shape = text(
        'a release such as "4.0"',
        r"^[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?$",
        fix='write "4.0", for example',
        unquoted='write "4.0" with quotes, for example',
    )

    def check(value: Any) -> None:
        shape.check(value)
        if int(value.partition(".")[0]) < 4:
            what = f"{product} {value} is older than the supported releases"
            raise ValueError(what, 'write "4.0" or newer')

    return ValueShape(check, {**shape.schema, "pattern": r"^([4-9]|[1-9][0-9]{1,3})(\.[0-9]{1,4}){1,2}$"})


PulsarRelease = Annotated[Any, _release_of("Pulsar")]
SparkRelease = Annotated[Any, _release_of("Spark")]
Variable = Annotated[Any, text("the name of an environment variable", r"^[A-Za-z_][A-Za-z0-9_]*$")]
SeverityText = Annotated[Any, choice("severity", ("error", "warning", "off"))]

Properties = Annotated[dict[str, PropertyText], Field(max_length=MAX_ITEMS)]
References = Annotated[list[FilePath], Field(max_length=MAX_ITEMS)]


def tag_of(shape: type[MappingShape]) -> str:
    """Return the name of a union's branch in pydantic's locations; no key of ours looks like it."""
    return f"<{shape.__name__}>"
