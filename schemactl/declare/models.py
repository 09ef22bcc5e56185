"""Read the keys and values of every document into frozen pydantic models, and derive the JSON Schemas for editors from them.

A model has the values in the types of `core`: names, days, strategies. pydantic is slow to import, so other
modules import this module when a file is read.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    ValidationError,
    create_model,
)
from pydantic.json_schema import JsonSchemaValue, models_json_schema
from pydantic_core import CoreSchema, core_schema

from schemactl.core.catalog import parse_day
from schemactl.core.errors import find_close_match
from schemactl.core.findings import Severity
from schemactl.core.names import NamespaceName, TopicName, parse_tenant
from schemactl.core.policies import (
    SCHEMA_POLICIES,
    SETTINGS,
    BooleanValue,
    ChoiceValue,
    CompatibilityStrategy,
    IntegerValue,
    MappingValue,
    NameListValue,
    Policies,
    Setting,
)
from schemactl.core.project import (
    CHECKER_PACKAGE,
    DEFAULT_CHECKERS,
    OPTIONAL_CHECKERS,
    ByteOrder,
    ClassKind,
    JsonTimes,
    NameStyle,
    Nanoseconds,
    ProtoCategory,
    ProtoRendering,
)
from schemactl.core.schema import SchemaType, describe_older_release
from schemactl.core.wording import describe_value, shorten
from schemactl.declare.files import AVRO_SUFFIXES, DESCRIPTOR_SUFFIX, PROTO_SUFFIX
from schemactl.declare.source_location import Tokens
from schemactl.declare.target_numbers import MAX_NUMBER
from schemactl.formats import SPECS
from schemactl.registry import url

# Scalar values and lists

MAX_ITEMS: Final = 1_000
"""Lists, and mappings with free keys, have at most this many entries."""


NOT_BLANK: Final = r"\S"
"""The pattern of text with at least one character that is not blank."""

_MOST: Final = 2**31 - 1
"""The largest integer: Pulsar uses Java's int."""


class MappingShape(BaseModel):
    """A mapping with these keys and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class _NotNull:
    """The annotation that rejects null: `None` is only the value of a missing key."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(get_args(source)[0])


T = TypeVar("T")

Key = Annotated[T | None, _NotNull()]
"""The annotation of an optional key. A key without a value (`key:`) is rejected, like any wrong type."""


def optional(description: str, **options: Any) -> Any:
    """Return the field of an optional key, which is None without the key, or the result of `default_factory`."""
    if "default_factory" not in options:
        options["default"] = None
    return Field(description=description, **options)


@dataclass(frozen=True, eq=False)
class ValueShape:
    """The annotation of a value that `parse` converts; it raises ValueError(message) or ValueError(message, fix)."""

    parse: Callable[[Any], Any]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _core: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.schema)


def text(expected: str, pattern: str = NOT_BLANK, *, fix: str = "", unquoted: str = "") -> ValueShape:
    """Return the annotation of text that matches `pattern`.

    Args:
        expected: the noun of the message.
        pattern: a JSON Schema pattern, searched in the text; "" accepts every text.
        fix: what to write instead.
        unquoted: what to write instead of a value that is not text, if this differs from `fix`.
    """
    # The `$` of a JSON Schema matches only at the end of the text, and not before a final line end.
    search = re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern).search

    def parse(value: object) -> str:
        if isinstance(value, str) and search(value):
            return value
        advice = fix if isinstance(value, str) else unquoted or fix
        if value is None:
            advice = "write it, or remove the key"
        raise ValueError(f"expected {expected}, found {describe_value(value)}", advice)

    return ValueShape(parse, {"type": "string", "pattern": pattern} if pattern else {"type": "string"})


def choice(noun: str, choices: tuple[str, ...], convert: Callable[[str], Any] = str) -> ValueShape:
    """Return the annotation of one of `choices`; the message for a misspelled choice suggests the right one.

    Args:
        noun: the noun of the message.
        choices: the valid texts.
        convert: converts a valid text to the value.
    """

    def parse(value: object) -> object:
        if isinstance(value, str) and value in choices:
            return convert(value)
        if not isinstance(value, str):
            raise ValueError(f"expected a {noun}, found {describe_value(value)}", f"write one of {', '.join(choices)}")  # noqa: TRY004  see ValueShape
        near = find_close_match(value, choices)
        raise ValueError(
            f"`{value[:60]}` is not a valid {noun}", f"write {near}" if near else f"write one of {', '.join(choices)}"
        )

    return ValueShape(parse, {"enum": list(choices)})


def named(
    parse: Callable[[str], Any], expected: str, pattern: str, advice: Callable[[str], str] = lambda _: ""
) -> ValueShape:
    """Return the annotation of a name that `parse` accepts and converts.

    Args:
        parse: raises ValueError(message) or ValueError(message, fix).
        expected: the noun of the message for a value that is not text.
        pattern: the JSON Schema pattern for editors; `parse` accepts every text that matches it.
        advice: returns the fix for a name without one.
    """

    def parse_name(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"expected {expected}, found {describe_value(value)}")  # noqa: TRY004  see ValueShape
        try:
            return parse(value)
        except ValueError as error:
            raise ValueError(error.args[0], error.args[1] if len(error.args) > 1 else advice(value)) from None

    return ValueShape(parse_name, {"type": "string", "pattern": pattern})


def _suggest_topic(text: str) -> str:
    """Return the fix for an invalid topic name, or "" if none is likely."""
    rest = re.sub(r"-partition-\d+$", "", text.partition("://")[2] or text)
    missing = ("TENANT", "NAMESPACE")[: max(2 - rest.count("/"), 0)]
    with suppress(ValueError):
        domain = "topic://" if text.startswith("topic://") else ""
        return f"write {TopicName.parse(domain + '/'.join([*missing, rest]))}"
    return ""


def _suggest_namespace(text: str) -> str:
    """Return the fix for an invalid namespace name, or "" if none is likely."""
    parts = (text.partition("://")[2] or text).split("/")
    with suppress(ValueError):
        return f"write {NamespaceName.parse('/'.join(parts[:2]) if len(parts) > 1 else f'TENANT/{parts[0]}')}"
    return ""


def integer(expected: str, least: int, *others: str, most: int = _MOST) -> ValueShape:
    """Return the annotation of an integer from `least` to `most`, or one of the texts `others`."""

    def parse(value: object) -> object:
        is_in_range = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        if is_in_range or value in others:
            return value
        fix = f"write {others[0]}, or a number" if others else ""
        if isinstance(value, int) and value < least:
            fix = f"write {least} or more"
        if isinstance(value, str) and value.isdecimal():
            fix = f"write {value} without quotes"
        raise ValueError(f"expected {expected}, found {describe_value(value)}", fix)

    number = {"type": "integer", "minimum": least, "maximum": most}
    return ValueShape(parse, {"oneOf": [number, {"enum": list(others)}]} if others else number)


_FLAG_FIXES: Final = {
    **dict.fromkeys(("yes", "on", "1"), "write true"),
    **dict.fromkeys(("no", "off", "0"), "write false"),
}


def _parse_flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    fix = _FLAG_FIXES.get(str(value).lower(), "")
    raise ValueError(f"expected true or false, found {describe_value(value)}", fix)


def _parse_definition(value: object) -> object:
    """Return a path or a definition."""
    if isinstance(value, dict | list) or (isinstance(value, str) and value.strip()):
        return value
    raise ValueError(f"expected a file's path, or the definition itself, found {describe_value(value)}")


_STRATEGIES = tuple(strategy.value for strategy in CompatibilityStrategy)

_PART = "[-=:.A-Za-z0-9_]+"

TopicText = Annotated[
    TopicName,
    named(
        TopicName.parse,
        "a topic such as persistent://tenant/namespace/topic",
        rf"^((non-)?persistent://|topic://)?{_PART}/{_PART}/(?!.*-partition-\d+$)[^\s/\x00-\x1f\x7f]([^/\x00-\x1f\x7f]*[^\s/\x00-\x1f\x7f])?$",
        _suggest_topic,
    ),
]
NamespaceText = Annotated[
    NamespaceName,
    named(NamespaceName.parse, "a namespace such as tenant/namespace", f"^{_PART}/{_PART}$", _suggest_namespace),
]
TenantText = Annotated[str, named(parse_tenant, "a tenant's name", f"^{_PART}$")]
Strategy = Annotated[CompatibilityStrategy, choice("compatibility strategy", _STRATEGIES, CompatibilityStrategy)]
BrokerStrategy = Annotated[
    CompatibilityStrategy,
    choice(
        "compatibility strategy of a broker", tuple(s for s in _STRATEGIES if s != "UNDEFINED"), CompatibilityStrategy
    ),
]
Flag = Annotated[bool, ValueShape(_parse_flag, {"type": "boolean"})]
FilePath = Annotated[str, text("a file's path")]
FolderPath = Annotated[str, text("a folder's path")]
Definition = Annotated[
    Any, ValueShape(_parse_definition, {"type": ["string", "object", "array"], "pattern": NOT_BLANK})
]
MessageName = Annotated[
    str, text("a message's full name, such as package.Message", r"^(\S.*\.)?[A-Za-z_][A-Za-z0-9_]*$")
]
PropertyText = Annotated[str, text("text", "", fix="put it in quotes: Pulsar's properties are text")]


def _annotate_release(product: str) -> ValueShape:
    shape = text(
        'a release such as "4.0"',
        r"^[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?$",
        fix='write "4.0", for example',
        unquoted='write "4.0" with quotes, for example',
    )

    def parse(value: Any) -> str:
        release: str = shape.parse(value)
        if int(release.partition(".")[0]) < 4:
            differences = describe_older_release(release) if product == "Pulsar" else ""
            message = f"{product} {release} is older than the supported releases"
            message += f", and its brokers differ: {differences}" if differences else ""
            raise ValueError(message, 'write "4.0" or newer')
        return release

    return ValueShape(parse, {**shape.schema, "pattern": r"^([4-9]|[1-9][0-9]{1,3})(\.[0-9]{1,4}){1,2}$"})


PulsarRelease = Annotated[str, _annotate_release("Pulsar")]
SparkRelease = Annotated[str, _annotate_release("Spark")]
Variable = Annotated[str, text("the name of an environment variable", r"^[A-Za-z_][A-Za-z0-9_]*$")]
SeverityText = Annotated[Severity | Literal["off"], choice("severity", ("error", "warning", "off"))]

Properties = Annotated[dict[str, PropertyText], Field(max_length=MAX_ITEMS)]
References = Annotated[list[FilePath], Field(max_length=MAX_ITEMS)]


def _tag_of(shape: type[MappingShape]) -> str:
    """Return the name of a union branch in pydantic's locations, which differs from every key."""
    return f"<{shape.__name__}>"


# Reserved names of packages

_STANDARD_MODULES: Final = frozenset(name.lower() for name in sys.stdlib_module_names) | {
    "annotationlib",
    "compression",
    # Missing in `sys.stdlib_module_names`, or imported when Python starts.
    "test",
    "sitecustomize",
    "usercustomize",
}
"""The modules of the standard library, including the modules of Python 3.14."""

_IMPORTED_PACKAGES: Final = frozenset(
    [
        "pyspark",
        "py4j",
        "pandas",
        "pyarrow",
        "numpy",
        "google",
        "protobuf",
        "ptars",
        "fastavro",
        "pydantic",
        "pulsar",
        "pulsar_client",
        "schemactl",
        "pulsar_schemactl",
    ]
)
"""The packages that generated code and its runtime import, and their distributions: a wheel has the name of its package."""


def _describe_owner(package: str) -> str:
    """Describe the owner of the name `package`, or return "" if it is free. Only the first part of a dotted name counts.

    Names of distributions ignore case, and treat runs of `-`, `_` and `.` as equal (PEP 503); a wheel has the name of its
    package.
    """
    name = re.sub("[-_.]+", "_", package.lower())
    first = package.partition(".")[0].lower()
    if first.startswith("_"):
        return "a name of the kind that Python and generated packages reserve for internal parts"
    if first in _STANDARD_MODULES:
        return "a module of Python's own"
    if {name, first} & _IMPORTED_PACKAGES:
        return "a package that generated code imports"
    return ""


# The project file


_MODULE = rf"^(?!(?:{'|'.join(keyword.kwlist)})$)[A-Za-z_][A-Za-z0-9_]*$"
_REF = r"^(?!-)[^\s~^:?*\[\\\x00-\x20]+$"
_WORD = "[A-Za-z_][A-Za-z0-9_]*"
_REGISTRY = rf"^(https?://[^@\s]+|sqlite:.*\S.*|memory:|(?!pulsar:){_WORD}(\.{_WORD})*:{_WORD}(\?.*)?)$"

CATEGORIES = ("WIRE", "WIRE_JSON")
"""buf's categories of rules about messages."""

_CHECKERS = tuple(prefix + name for prefix in ("", CHECKER_PACKAGE) for name in OPTIONAL_CHECKERS)
"""The optional values of `schemaRegistryCompatibilityCheckers` in broker.conf, with or without their package."""

_DEFAULT_CHECKERS = tuple(prefix + name for prefix in ("", CHECKER_PACKAGE) for name in DEFAULT_CHECKERS)
"""The default values of the same setting."""

_REQUIRED_CHECKERS = frozenset({*DEFAULT_CHECKERS, "KeyValueSchemaCompatibilityCheck"})


def _parse_format_version(value: object) -> int:
    """Return the format version that this release reads."""
    if value != 1 or isinstance(value, bool):
        raise ValueError(f"expected the format's version, 1, found {describe_value(value)}", "write version: 1")
    return 1


def _parse_module(name: str) -> str:
    """Return the name of a generated package."""
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"`{name[:60]}` cannot be imported in Python", "write letters, digits and _, a letter first")
    if owner := _describe_owner(name):
        message = f"`{shorten(name)}` is {owner}: a generated package of that name would replace it"
        first, dot, rest = name.lower().partition(".")
        other_name = f"{first.strip('_') or 'pulsar'}_schemas{dot}{rest}"
        raise ValueError(message, f"write another name, such as {shorten(other_name)}")
    return name


def _parse_category(value: object) -> str:
    """Return one of CATEGORIES."""
    if value in ("FILE", "PACKAGE"):
        raise ValueError(
            f"buf's category {value} is about generated code",
            f"run `buf breaking` for that, and write one of {', '.join(CATEGORIES)} here",
        )
    category: str = choice("category of buf's rules", CATEGORIES).parse(value)
    return category


def _parse_checker(value: object) -> str:
    """Return the class name, without its package, of one of Pulsar's optional checkers."""
    if isinstance(value, str) and value.rpartition(".")[2] in _REQUIRED_CHECKERS:
        raise ValueError(
            f"`{value}` is not optional: brokers have this checker unless `excluded_checkers` of `defaults` lists it",
            "remove it",
        )
    checker: str = choice("optional checker of Pulsar", _CHECKERS).parse(value)
    return checker.rpartition(".")[2]


def _parse_excluded_checker(value: object) -> str:
    """Return the class name, without its package, of one of Pulsar's default checkers that a broker can be without."""
    if isinstance(value, str) and value.rpartition(".")[2] == "KeyValueSchemaCompatibilityCheck":
        raise ValueError(f"`{value}` cannot be excluded: brokers always have it", "remove it")
    checker: str = choice("default checker of Pulsar", _DEFAULT_CHECKERS).parse(value)
    return checker.rpartition(".")[2]


class DefaultsShape(MappingShape):
    """The configuration of the brokers."""

    schema_compatibility_strategy: Key[BrokerStrategy] = optional("Pulsar's own is FULL.")
    is_allow_auto_update_schema: Key[Flag] = optional("Pulsar's own is true.")
    schema_validation_enforced: Key[Flag] = optional("Pulsar's own is false.")
    excluded_checkers: Annotated[
        list[Annotated[str, ValueShape(_parse_excluded_checker, {"enum": list(_DEFAULT_CHECKERS)})]],
        Field(max_length=MAX_ITEMS),
    ] = optional(
        "Pulsar's default checkers that `schemaRegistryCompatibilityCheckers` of broker.conf leaves out (default: none).",
        default_factory=list,
    )


_Rendering = Annotated[ProtoRendering, choice("rendering", get_args(ProtoRendering))]


class TopicProtobufShape(MappingShape):
    """The registered form of the protobuf definition of a topic."""

    rendering: Key[_Rendering] = optional(
        "The client language in whose form its .proto definition is registered (default: as in the project)."
    )
    file: Key[
        Annotated[
            str, text("an import name such as web/click.proto", r"^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*\.proto$")
        ]
    ] = optional(
        "The name under which producers compile its .proto file: clients send it (default: its path from the folder "
        "in which the imports begin, else its base name).",
        examples=["web/click.proto"],
    )


class ProtobufRulesShape(MappingShape):
    """The reading of protobuf definitions, and rules beyond the data verdict."""

    rules: Key[Annotated[ProtoCategory, ValueShape(_parse_category, {"enum": list(CATEGORIES)})]] = optional(
        "buf's category whose rules `check` looks for, too (default: none)."
    )
    checkers: Annotated[
        list[Annotated[str, ValueShape(_parse_checker, {"enum": list(_CHECKERS)})]], Field(max_length=MAX_ITEMS)
    ] = optional("The optional checkers that the brokers are configured with (default: none).", default_factory=list)
    rendering: Key[_Rendering] = optional(
        "The client language in whose form .proto definitions are registered (default: the language of the declared producers, else java)."
    )
    include: Annotated[dict[str, FolderPath], Field(max_length=MAX_ITEMS)] = optional(
        "The folder of each prefix of imports in .proto files, relative to this file's folder: with {etcd: .}, the "
        "import etcd/api/kv.proto is api/kv.proto.",
        default_factory=dict,
    )


class OAuth2Shape(MappingShape):
    """OAuth 2.0 client credentials."""

    issuer: Annotated[str, text("an https:// URL", r"^https?://\S+$")] = Field(
        description="The URL of the server that gives tokens."
    )
    audience: Annotated[str, text("an audience")] = Field(
        description="The audience of the tokens, as the server names it."
    )
    client_id: Annotated[str, text("a client's id")] = Field(description="The id of the client.")
    client_secret_env: Variable = Field(description="The environment variable that holds the secret.")


def _parse_files(value: object) -> object:
    """Return a file's path, or a list of them."""
    paths = value if isinstance(value, list) else [value]
    for path in paths or [None]:
        if not isinstance(path, str) or not path.strip():
            actual = describe_value(path) if paths else "an empty list"
            raise ValueError(f"expected a file's path, or a list of them, found {actual}")
    return value


def _parse_glob(value: object) -> str:
    """Return a glob of topics without the exclusion mark `!`."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected topics such as 'shop/sales/*', found {describe_value(value)}")
    if value.startswith("!"):
        raise ValueError(f"`{shorten(value)}` excludes topics", "write it under `exclude`, without the !")
    return value


_FILE_OR_FILES = {"oneOf": [{"type": "string", "pattern": NOT_BLANK}, {"type": "array", "items": {"type": "string"}}]}
_GLOB = {"type": "string", "pattern": r"^[^!]"}
Globs = Annotated[list[Annotated[str, ValueShape(_parse_glob, _GLOB)]], Field(min_length=1, max_length=MAX_ITEMS)]


def _parse_registry(text: str) -> str:
    """Return the URL of a registry as written."""
    url.parse(text)
    return text


class TargetShape(MappingShape):
    """A registry to plan against, with its differences from the declarations."""

    registry: Annotated[str, named(_parse_registry, "a registry's URL", _REGISTRY)] = Field(
        description="sqlite:PATH for the embedded registry, http(s)://HOST:PORT for Pulsar's admin API.",
        examples=["sqlite:.schemactl/registry.db", "https://pulsar.example.com:8443"],
    )
    pulsar: Key[PulsarRelease] = optional("Its release, where it is not the project's.")
    token_env: Key[Variable] = optional("The environment variable that holds the bearer token.")
    token_file: Key[FilePath] = optional("The file that holds the bearer token.")
    cert_file: Key[FilePath] = optional("The client certificate for mutual TLS.")
    key_file: Key[FilePath] = optional("The private key for mutual TLS.")
    oauth2: Key[OAuth2Shape] = optional("OAuth 2.0 client credentials.")
    ca_file: Key[FilePath] = optional("The certificate authority to trust.")
    tenants: Annotated[dict[str, TenantText], Field(max_length=MAX_ITEMS)] = optional(
        "Declared tenant to its name on this target. With it or `namespaces`, a name that both omit is an error.",
        default_factory=dict,
    )
    namespaces: Annotated[dict[str, NamespaceText], Field(max_length=MAX_ITEMS)] = optional(
        "Declared namespace to its name on this target; it goes before `tenants`.", default_factory=dict
    )
    overlays: Key[Annotated[str | list[str], ValueShape(_parse_files, _FILE_OR_FILES)]] = optional(
        "The file, or files, of namespace and topic documents with the policies and partitions that differ on this "
        "target. The last file that sets a value wins."
    )
    include: Globs = optional(
        "Only these topics are on this target: 'shop/sales/*', 'shop/**' (default: all).", default_factory=list
    )
    exclude: Globs = optional("These topics are not on this target.", default_factory=list)
    labels: Annotated[dict[str, Annotated[str, text("text", fix="put it in quotes")]], Field(max_length=MAX_ITEMS)] = (
        optional("Name to text, shown by `targets`.", default_factory=dict)
    )
    properties: Properties = optional(
        "Text stored with each upload to this target; a schema's own properties win. It makes no version.",
        examples=[{"env": "prod"}],
        default_factory=dict,
    )
    cluster: Key[Annotated[str, text("the name of a cluster", r"^\S+$")]] = optional(
        "The cluster's name in Pulsar, as in `replication_clusters`: versions are compared with the other clusters."
    )
    numbers: Key[FilePath] = optional(
        "The file that records where its version numbers are not Git's (default: numbers/<target>.yaml)."
    )
    promoted: Key[Annotated[str, text("a branch or tag such as origin/promoted/prod", _REF)]] = optional(
        "The branch or tag at the target's position, a commit of the approved history (default: its tip)."
    )
    after: Annotated[list[Annotated[str, text("the name of a target")]], Field(min_length=1, max_length=MAX_ITEMS)] = (
        optional("The targets that must have a version before it is planned for this target.", default_factory=list)
    )


_RecursionDepth = Annotated[int, integer("a number of levels, 0 or more", 0)]
_JsonTimes = Annotated[JsonTimes, choice("form of times", get_args(JsonTimes))]
_ByteOrder = Annotated[ByteOrder, choice("byte order", get_args(ByteOrder))]
_Nanoseconds = Annotated[Nanoseconds, choice("column of nanoseconds", get_args(Nanoseconds))]


class TopicGenerateShape(MappingShape):
    """The package of one topic, where it differs from the project's `generate`."""

    recursion_depth: Key[_RecursionDepth] = optional(
        "How often a record may contain itself in the columns before the field is dropped (default: as in the "
        "project; 0: the topic is skipped)."
    )
    json_times: Key[_JsonTimes] = optional(
        "The form in which times are written into JSON: number, whole numbers in the unit of their type; java, the form of Java's classes "
        "(default: as in the project)."
    )
    integers: Key[_ByteOrder] = optional(
        "The byte order of INT16, INT32 and INT64: big, as in Pulsar's Java client; little, as in its Go client (default: big)."
    )
    nanoseconds: Key[_Nanoseconds] = optional(
        "The columns of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME: truncated, Spark's types, which have microseconds; bigint, the number of "
        "nanoseconds (default: as in the project)."
    )


class GenerateShape(MappingShape):
    """The package that `schemactl generate` writes."""

    package: Annotated[str, named(_parse_module, "the name of a Python package", _MODULE)] = Field(
        description="The name to import it by."
    )
    out: Key[FolderPath] = optional("The folder it goes to (default: generated).")
    spark: Key[SparkRelease] = optional('The Spark release of the package (default: "4.1").')
    json_defaults: Key[Flag] = optional(
        "Whether a field that a JSON payload lacks is read as its default (default: false, it is null)."
    )
    target: Key[Annotated[str, text("the name of a target")]] = optional(
        "The target whose version numbers count where a program selects none (default: Git's numbers)."
    )
    classes: Key[Annotated[ClassKind, choice("kind of classes", get_args(ClassKind))]] = optional(
        "Which classes the package has for records, to be encoded and decoded (default: none)."
    )
    recursion_depth: Key[_RecursionDepth] = optional(
        "How often a record may contain itself in the columns before the field is dropped (default: 0, recursive topics are skipped)."
    )
    json_times: Key[_JsonTimes] = optional(
        "The form in which times are written into JSON: number, whole numbers in the unit of their type; java, the form of Java's classes "
        "(default: number)."
    )
    nanoseconds: Key[_Nanoseconds] = optional(
        "The columns of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME: truncated, Spark's types, which have microseconds; bigint, the number of "
        "nanoseconds (default: truncated)."
    )


_Style = Annotated[NameStyle, choice("style of names", ("snake_case", "camelCase", "PascalCase", "UPPER_CASE", "any"))]


class NameStylesShape(MappingShape):
    """The case of names in definitions."""

    fields: Key[_Style] = optional("The names of fields (default: snake_case).")
    types: Key[_Style] = optional("The names of records, enums and fixed types (default: PascalCase).")
    symbols: Key[_Style] = optional("The symbols of enums (default: UPPER_CASE).")


SEVERITY_TAGS = ("<rule>", "<namespace>")
"""The tags of rules and namespaces under `severities` in pydantic's locations."""


class RepositoryShape(MappingShape):
    """The web pages of the repository."""

    url: Annotated[str, text("an https:// URL", r"^https?://\S+$")] = Field(
        description="The address of the repository on its host, for links to commits and files.",
        examples=["https://github.com/acme/schemas"],
    )


class ProjectShape(MappingShape):
    """The project file, schemactl.yaml."""

    version: Annotated[int, ValueShape(_parse_format_version, {"const": 1})] = Field(
        description="The version of this file's format: 1."
    )
    roots: Annotated[list[FolderPath], Field(min_length=1, max_length=MAX_ITEMS)] = optional(
        "The folders that hold declarations (default: namespaces).", default_factory=list
    )
    previous_roots: Annotated[list[FolderPath], Field(max_length=MAX_ITEMS)] = optional(
        "Where they were in older commits.", default_factory=list
    )
    approved: Key[Annotated[str, text("a branch or tag such as origin/main", _REF)]] = optional(
        "The ref whose first-parent history is the record of approved schemas."
    )
    adopted: Key[Annotated[str, text("the id of a commit, of at least 7 hexadecimal digits", r"^[0-9a-f]{7,64}$")]] = (
        optional("The commit whose content is version 0; earlier commits do not count (default: the first commit).")
    )
    pulsar: Key[PulsarRelease] = optional('The Pulsar release whose answers are predicted (default: "4.0").')
    defaults: DefaultsShape = optional("The configuration of the brokers.", default_factory=DefaultsShape)
    protobuf: ProtobufRulesShape = optional(
        "The reading of protobuf definitions, and rules beyond the data verdict.", default_factory=ProtobufRulesShape
    )
    severities: Annotated[
        dict[
            str,
            Annotated[
                Annotated[dict[str, SeverityText], Tag("<namespace>")] | Annotated[SeverityText, Tag("<rule>")],
                Discriminator(lambda value: SEVERITY_TAGS[isinstance(value, dict)]),
            ],
        ],
        Field(max_length=MAX_ITEMS),
    ] = optional("Rule to error, warning or off; or a namespace to such a mapping.", default_factory=dict)
    require_declared_namespaces: Key[Flag] = optional(
        "Whether a topic whose namespace no file declares is an error (default: false, a new one is a warning)."
    )
    names: NameStylesShape = optional(
        "How names are written, where NAME_STYLE has a severity.", default_factory=NameStylesShape
    )
    repository: Key[RepositoryShape] = optional(
        "The repository's web pages, for links (default: the address of the remote `origin`)."
    )
    waivers: Key[FilePath] = optional("The waiver file (default: waivers.yaml).")
    targets: Annotated[dict[str, TargetShape], Field(max_length=MAX_ITEMS)] = optional(
        "The registries to plan against, by name.", default_factory=dict
    )
    generate: Key[GenerateShape] = optional("The package that `schemactl generate` writes.")


# The waiver file

_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def _parse_day(value: object) -> date:
    """Return a day in ISO 8601 format."""
    with suppress(ValueError):
        if isinstance(value, str):
            return parse_day(value)
    raise ValueError(
        f"expected a day such as 2027-01-31, found {describe_value(value)}", "write year, month and day: 2027-01-31"
    )


Day = Annotated[date, ValueShape(_parse_day, {"type": "string", "pattern": _DAY})]


class WaiverShape(MappingShape):
    """One finding on one change that is approved in spite of it."""

    rule: Annotated[str, text("a rule such as MISSING_ENUM_SYMBOLS")] = Field(description="The finding's rule.")
    topic: TopicText = Field(description="The finding's topic.")
    field: Key[Annotated[str, text("the path of a field, such as Order.status")]] = optional(
        "The field it is about, for people."
    )
    fingerprint: Annotated[
        str, text("a fingerprint such as sha256:0f3a...", r"^sha256:[0-9a-f]{64}$", fix="`schemactl waive` writes it")
    ] = Field(description="The fingerprint of the approved change, as `check` prints it.")
    reason: Annotated[str, text("the reason, a text")] = Field(
        description="Why the change is right in spite of the finding."
    )
    owner: Annotated[str, text("a person or a team")] = Field(description="Who is responsible for it.")
    until: Day = Field(description="The last day, in UTC, on which it approves anything.")


# The numbers file of a target


def recorded_value(
    expected: str, fits: Callable[[Any], bool], convert: Callable[[Any], Any] | None = None
) -> ValueShape:
    """Return the annotation of a value of the numbers file, which editors have no schema for.

    Args:
        expected: the noun of the message.
        fits: returns whether a value is valid.
        convert: converts a valid value.
    """

    def parse(value: object) -> object:
        if not fits(value):
            raise ValueError(f"expected {expected}, found {describe_value(value)}")
        return convert(value) if convert else value

    return ValueShape(parse, {})


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_day(value: object) -> bool:
    with suppress(ValueError):
        return isinstance(value, str) and bool(parse_day(value))
    return False


def _are_policies(value: object) -> bool:
    if not isinstance(value, dict) or not value or not value.keys() <= {*Policies.names()}:
        return False
    strategy = value.get("schema_compatibility_strategy", "FULL")
    others = [value[name] for name in SCHEMA_POLICIES[1:] if name in value]
    fits = all(row.shape.fits(value[name]) for name, row in SETTINGS.items() if name in value)
    return fits and strategy in _STRATEGIES and all(isinstance(policy, bool) for policy in others)


_RecordedReason = Annotated[str, recorded_value("the reason, a text", _is_text)]
_RecordedOwner = Annotated[str, recorded_value("a person or a team", _is_text)]
_Accepted = Annotated[date, recorded_value("a day such as 2026-11-22", _is_day, parse_day)]
_Until = Annotated[date, recorded_value("a day such as 2027-01-31", _is_day, parse_day)]
_True = Annotated[bool, recorded_value("true", lambda value: value is True)]


class NumberShape(MappingShape):
    """The meaning of a version number of a target."""

    git: Key[
        Annotated[int, recorded_value("the number of one of Git's versions", IntegerValue("", 0, MAX_NUMBER).fits)]
    ] = None
    foreign: Key[Annotated[str, recorded_value("a file's path", _is_text)]] = None
    type: Key[
        Annotated[
            SchemaType,
            recorded_value(
                "a schema type such as AVRO",
                lambda value: isinstance(value, str) and value in SchemaType.__members__,
                SchemaType.__getitem__,
            ),
        ]
    ] = None
    properties: Annotated[
        dict[str, str],
        recorded_value(
            "texts by their names",
            lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
        ),
    ] = Field({})
    deleted: _True = False
    reason: _RecordedReason = ""
    accepted: Key[_Accepted] = None
    owner: _RecordedOwner = ""


class AcceptanceShape(MappingShape):
    """The accepted drift of a namespace or topic."""

    unmanaged: _True = False
    undeclarable: Annotated[
        str,
        recorded_value(
            "a schema type that no file can declare, such as BYTES",
            lambda value: (
                isinstance(value, str)
                and value in SchemaType.__members__
                and SPECS[SchemaType[value]].undeclarable is not None
            ),
        ),
    ] = ""
    policies: Annotated[
        Policies,
        recorded_value(
            "values by their policies, such as {schema_validation_enforced: true}", _are_policies, Policies.of
        ),
    ] = Policies()
    fingerprint: Annotated[
        str,
        recorded_value(
            "a fingerprint such as sha256:0f3a..., as `schemactl drift --accept` writes it",
            lambda value: isinstance(value, str) and bool(re.fullmatch("sha256:[0-9a-f]{64}", value)),
        ),
    ] = ""
    reason: _RecordedReason = ""
    owner: _RecordedOwner = ""
    accepted: Key[_Accepted] = None
    until: Key[_Until] = None


class BrokersShape(MappingShape):
    """The accepted settings of the brokers."""

    policies: Annotated[
        Policies,
        recorded_value(
            f"values by their policies, of {', '.join(SCHEMA_POLICIES)}",
            lambda value: _are_policies(value) and value.keys() <= {*SCHEMA_POLICIES},
            Policies.of,
        ),
    ] = Policies()
    checkers: Annotated[
        dict[str, bool],
        recorded_value(
            "true (listed) or false by class names, such as {AvroSchemaCompatibilityCheck: false}",
            lambda value: (
                isinstance(value, dict) and bool(value) and all(isinstance(item, bool) for item in value.values())
            ),
        ),
    ] = Field({})
    reason: _RecordedReason = ""
    owner: _RecordedOwner = ""
    accepted: Key[_Accepted] = None
    until: Key[_Until] = None


# Topics, namespaces and schemas

_AVRO = "An .avsc file (its path starts at this file's folder), or the Avro schema itself as YAML or JSON."
_TYPES = (
    "Files whose named types the definition may use; inlined at first use. A glob, or a folder with / at its end, "
    "makes all its files available."
)
_PROPERTIES = "Text stored with the schema. Pulsar never compares it."
DEFINITION_SUFFIXES: Final = (*AVRO_SUFFIXES, PROTO_SUFFIX, DESCRIPTOR_SUFFIX)
_BUILD_PATTERN: Final = r"^latest$|^[0-9]{1,9}\.\.[0-9]{1,9}$|\.(avsc|json|proto|binpb)$"
_STRATEGY = "Which readers a new version must not break. UNDEFINED or absent: the value of the level above."


def _annotate_type(declared_as: str, *, half: bool = False) -> Any:
    """Return the annotation of `type` for these schema types. It accepts every value: the union has selected the model by `type`."""
    types = sorted(
        type_.name
        for type_, spec in SPECS.items()
        if spec.declared_as == declared_as and not (spec.unfit_half if half else spec.undeclarable)
    )
    return Annotated[
        SchemaType, ValueShape(SchemaType.__getitem__, {"enum": types, "description": "Pulsar's schema type."})
    ]


SchemaName = Annotated[str, text("text", "")]
_NAME = "The name in a SchemaInfo: checked against the topic's name, from which brokers derive it."


class PayloadShape(MappingShape):
    """A schema in the file that `pulsar-admin schemas upload` takes."""

    payload: FilePath = Field(
        description="A JSON file with the keys type, schema (the definition as a text) and properties.",
        examples=["orders.json"],
    )
    name: Key[SchemaName] = optional(_NAME)


class AvroShape(MappingShape):
    """A schema whose definition is an Avro schema."""

    type: _annotate_type("avro")  # type: ignore[valid-type]
    definition: Definition = Field(description=_AVRO, examples=["orders.avsc"])
    references: References = optional(_TYPES, examples=[["../common/money.avsc"]], default_factory=list)
    properties: Properties = optional(_PROPERTIES, default_factory=dict)


class AvroTopicShape(AvroShape):
    """A schema of a topic whose definition is an Avro schema."""

    name: Key[SchemaName] = optional(_NAME)


class ProtobufHalfShape(AvroShape):
    """Protobuf messages that an Avro schema describes (Pulsar's older support), as a half of a KEY_VALUE."""

    type: _annotate_type("protobuf", half=True)  # type: ignore[valid-type]


class ProtobufShape(AvroShape):
    """Protobuf messages that an Avro schema describes (Pulsar's older support)."""

    type: _annotate_type("protobuf")  # type: ignore[valid-type]
    name: Key[SchemaName] = optional(_NAME)
    proto: Key[FilePath] = optional("The .proto that describes the payloads, used only for wire rules and codecs.")
    message: Key[MessageName] = optional("The root message in `proto`: package.Message.")


class ProtobufNativeShape(MappingShape):
    """Protobuf messages that their own descriptor describes."""

    type: _annotate_type("proto")  # type: ignore[valid-type]
    definition: FilePath = Field(description="A .proto file, or a descriptor set with its imports (.binpb).")
    message: MessageName = Field(description="The root message: package.Message.")
    references: References = optional(
        "The .proto files that the definition imports; or globs, or folders with / at their end.", default_factory=list
    )
    properties: Properties = optional(_PROPERTIES, default_factory=dict)


class ProtobufNativeTopicShape(ProtobufNativeShape):
    """Protobuf messages of a topic that their own descriptor describes."""

    name: Key[SchemaName] = optional(_NAME)


class ExternalShape(MappingShape):
    """A schema in the language of another registry, which brokers store without reading it."""

    type: _annotate_type("text")  # type: ignore[valid-type]
    definition: Key[FilePath] = optional(
        "A .txt, .json or .proto file whose bytes are the definition; absent: an empty one.", examples=["orders.txt"]
    )
    properties: Properties = optional(_PROPERTIES, default_factory=dict)
    name: Key[SchemaName] = optional(_NAME)


class PlainShape(MappingShape):
    """A schema without definition: its wire form is fixed by Pulsar."""

    type: _annotate_type("plain")  # type: ignore[valid-type]
    properties: Properties = optional(_PROPERTIES, default_factory=dict)


class PlainTopicShape(PlainShape):
    """A schema of a topic without definition: its wire form is fixed by Pulsar."""

    name: Key[SchemaName] = optional(_NAME)


class PlainHalfShape(PlainShape):
    """A half without definition: its wire form is fixed by Pulsar, or plain bytes."""

    type: _annotate_type("plain", half=True)  # type: ignore[valid-type]


def _annotate_schema(shapes: dict[str, type[MappingShape]], *, half: bool) -> Any:
    """Return the annotation of a schema: the union of `shapes`, keyed by `TypeSpec.declared_as` and selected by `type`.

    A type without a shape is rejected like an unknown type.
    """

    def tag(value: object) -> str | None:
        if not half and isinstance(value, dict) and "payload" in value:
            return _tag_of(PayloadShape)
        name = value.get("type") if isinstance(value, dict) else None
        type_ = SchemaType.__members__.get(name) if isinstance(name, str) else None
        # For None, pydantic reports an error of the union.
        if type_ is None or (SPECS[type_].unfit_half if half else SPECS[type_].undeclarable):
            return None
        shape = shapes.get(SPECS[type_].declared_as)
        return _tag_of(shape) if shape else None

    tagged = tuple(Annotated[shape, Tag(_tag_of(shape))] for shape in shapes.values())
    return Annotated[Union[tagged], Discriminator(tag)]  # noqa: UP007  a union of a tuple


_HALF_SCHEMAS: Final[dict[str, type[MappingShape]]] = {
    "avro": AvroShape,
    "protobuf": ProtobufHalfShape,
    "proto": ProtobufNativeShape,
    "plain": PlainHalfShape,
}


class KeyValueShape(MappingShape):
    """Two schemas in one: a key and a value."""

    type: _annotate_type("pair")  # type: ignore[valid-type]
    encoding: Key[Annotated[str, choice("encoding", ("INLINE", "SEPARATED"))]] = optional(
        "SEPARATED: the key travels as the message's key. INLINE (default): in the payload."
    )
    key: _annotate_schema(_HALF_SCHEMAS, half=True) = Field(description="The schema of the key.")  # type: ignore[valid-type]
    value: _annotate_schema(_HALF_SCHEMAS, half=True) = Field(description="The schema of the value.")  # type: ignore[valid-type]
    properties: Properties = optional(_PROPERTIES, default_factory=dict)
    name: Key[SchemaName] = optional(_NAME)


_TOPIC_SCHEMAS: Final[dict[str, type[MappingShape]]] = {
    "avro": AvroTopicShape,
    "protobuf": ProtobufShape,
    "proto": ProtobufNativeTopicShape,
    "pair": KeyValueShape,
    "text": ExternalShape,
    "plain": PlainTopicShape,
    "payload": PayloadShape,
}

_Reader = Annotated[int, integer("`latest` or a version's number", 0, "latest")]
_READER: Final = "The version that generated readers use: latest (default) or a number."


class _OfKinds(MappingShape):
    """The keys of a kind of events that a topic with one schema has itself."""

    reader: Key[_Reader] = optional(_READER)


class AvroKindShape(AvroShape, _OfKinds):
    """A kind of events whose definition is an Avro schema."""


class ProtobufKindShape(ProtobufShape, _OfKinds):
    """A kind of events of Protobuf messages that an Avro schema describes (Pulsar's older support)."""


class ProtobufNativeKindShape(ProtobufNativeShape, _OfKinds):
    """A kind of events of Protobuf messages that their own descriptor describes."""


_KIND_SCHEMAS: Final[dict[str, type[MappingShape]]] = {
    "avro": AvroKindShape,
    "protobuf": ProtobufKindShape,
    "proto": ProtobufNativeKindShape,
}

BRANCHES: Final = {
    _tag_of(shape): shape for shape in (*_TOPIC_SCHEMAS.values(), *_HALF_SCHEMAS.values(), *_KIND_SCHEMAS.values())
}
"""The models of schemas by their tags in pydantic's locations."""


_NUMBER: Final = integer("`latest`, a version's number, a range such as 3..5, or a definition's file", 0, "latest")


class Build(NamedTuple):
    """The schema that a client is built with: the first and last version, or the path of a file; neither is the latest version."""

    versions: tuple[int, int] | None = None
    file: str = ""


def _parse_build(value: object) -> Build:
    """Return the build for `latest`, a version, a range of versions or the path of a definition."""
    if isinstance(value, str):
        if range_ := re.fullmatch(r"([0-9]{1,9})\.\.([0-9]{1,9})", value):
            first, last = int(range_[1]), int(range_[2])
            if first > last:
                raise ValueError(f"the range {value} ends before it begins", f"write {range_[2]}..{range_[1]}")
            return Build((first, last))
        if value.endswith(DEFINITION_SUFFIXES):
            return Build(file=value)
    number = _NUMBER.parse(value)
    return Build() if number == "latest" else Build((number, number))


_BUILD: Final = ValueShape(
    _parse_build, {"oneOf": [_NUMBER.schema["oneOf"][0], {"type": "string", "pattern": _BUILD_PATTERN}]}
)


class ClientShape(MappingShape):
    """A producer or consumer of the topic: who it is, and which version of the schema it is built with."""

    name: Annotated[str, text("a client's name", r"^\S(.*\S)?$")] = Field(description="Its name, for people.")
    role: Annotated[
        Literal["producer", "consumer", "reader"], choice("role of a client", ("producer", "consumer", "reader"))
    ] = Field(description="Whether it writes or reads; a reader has no subscription.")
    schema_: Annotated[Build, _BUILD] = optional(
        "The schema that it is built with: latest (default), a version, a range of running versions, or its own definition's file.",
        alias="schema",
        default_factory=Build,
    )
    team: Key[Annotated[str, text("a team")]] = optional("Who is responsible for it.")
    language: Key[Annotated[str, text("a language")]] = optional("Its programming language.")
    contact: Key[Annotated[str, text("where to find the team")]] = optional(
        "Where to find the team: a finding about the client names it.", examples=["@acme/payments"]
    )
    kind: Key[Annotated[str, text("the key of a kind of events")]] = optional(
        "The kind of events that it is built for, a key of `schemas` (default: the kind of its version)."
    )
    targets: Annotated[list[Annotated[str, text("a target's name")]], Field(min_length=1, max_length=MAX_ITEMS)] = (
        optional("The targets on which it runs; absent: all that have the topic.", default_factory=list)
    )


class DeprecatedShape(MappingShape):
    """The end of a topic's use."""

    since: Key[Day] = optional("The day since when.")
    remove_after: Key[Day] = optional("The last day, in UTC, on which it may still exist.")
    use: Key[TopicText] = optional("The topic to use instead.")


class MetadataShape(MappingShape):
    """Facts about a topic or namespace for people."""

    owner: Key[Annotated[str, text("a person or a team")]] = optional(
        "The owner of the topic, or of all topics of a namespace; also the owner of its waivers.",
        examples=["team-orders", "@acme/orders"],
    )
    description: Key[Annotated[str, text("a text")]] = optional("Its purpose.")
    labels: Annotated[dict[str, Annotated[str, text("text", fix="put it in quotes")]], Field(max_length=MAX_ITEMS)] = (
        optional(
            "Name to text, to find it by (`list --label`). Topics have the labels of their namespace as well.",
            examples=[{"tier": "gold"}],
            default_factory=dict,
        )
    )
    links: Annotated[
        dict[str, Annotated[str, text("a URL", r"^(https?://|mailto:)\S+$", fix="begin it with https://")]],
        Field(max_length=MAX_ITEMS),
    ] = optional("Name to URL.", examples=[{"dashboard": "https://grafana.example.com/d/orders"}], default_factory=dict)
    deprecated: Key[DeprecatedShape] = optional(
        "The end of its use: the dates, and the replacement.",
        examples=[{"since": "2026-11-01", "remove_after": "2027-05-01", "use": "shop/sales/orders-v2"}],
    )


Partitions = Annotated[int, integer("a number of partitions, 1 or more", 1)]


def _annotate_setting(
    name: str, shape: IntegerValue | BooleanValue | ChoiceValue | NameListValue | MappingValue
) -> Any:
    """Return the annotation of a setting, or of a part of one, with this shape."""
    match shape:
        case IntegerValue(expected, least, most):
            return Annotated[int, integer(expected, least, most=most)]
        case BooleanValue():
            return Flag
        case ChoiceValue(noun, names):
            return Annotated[str, choice(noun, names)]
        case NameListValue(noun, pattern):
            item = Annotated[str, text(noun, pattern)]
            return Annotated[list[item], Field(min_length=1, max_length=MAX_ITEMS)]
        case MappingValue(parts, about):
            fields: dict[str, Any] = {
                key: (_annotate_setting(key, part), Field(description=about[key])) for key, part in parts.items()
            }
            words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
            return Annotated[create_model(f"{words}Shape", __base__=MappingShape, **fields), AfterValidator(dict)]


def _create_settings_model(name: str, rows: Iterable[Setting]) -> Any:
    """Create the model `name` with a key for each of these rows of the table of settings."""
    fields: dict[str, Any] = {}
    for row in rows:
        annotation = _annotate_setting(row.name, row.shape)
        fields[row.name] = Key[annotation], optional(row.about)  # type: ignore[misc, valid-type]
    return create_model(name, __base__=MappingShape, **fields)


_NamespaceSettings = _create_settings_model("NamespaceSettings", SETTINGS.values())
_TopicSettings = _create_settings_model("TopicSettings", (row for row in SETTINGS.values() if row.topic_path))


class _OfTopics(MappingShape):
    """The parts of a topic that may differ on a target, without settings."""

    topic: TopicText = Field(description="The declared topic.")
    partitions: Key[Partitions] = optional("Its partitions there. May only grow.")
    schema_compatibility_strategy: Key[Strategy] = optional(_STRATEGY)
    schema_validation_enforced: Key[Flag] = optional(
        "Whether clients without a schema are rejected if the topic has one; absent: the value of its namespace."
    )


class TopicOverlayShape(_TopicSettings, _OfTopics):  # type: ignore[misc, valid-type]
    """The differences of a topic on a target."""


class _OfNamespaces(MappingShape):
    """The parts of a namespace that may differ on a target, without settings."""

    namespace: NamespaceText = Field(description="tenant/namespace", examples=["shop/sales"])
    schema_compatibility_strategy: Key[Strategy] = optional(_STRATEGY)
    is_allow_auto_update_schema: Key[Flag] = optional("Whether a producer may register a new version by connecting.")
    schema_validation_enforced: Key[Flag] = optional(
        "Whether clients without a schema are rejected where the topic has one."
    )


class NamespaceOverlayShape(_NamespaceSettings, _OfNamespaces):  # type: ignore[misc, valid-type]
    """The differences of a namespace on a target."""


class NamespaceShape(MetadataShape, NamespaceOverlayShape):
    """A namespace and its policies. A policy that was never declared is not managed. A policy that is no longer declared is reset."""

    schema_properties: Properties = optional(
        "Defaults of the properties of its topics' schemas, and of the AVRO key and value of a KEY_VALUE; a schema's own properties win.",
        examples=[{"__jsr310ConversionEnabled": "true"}],
        default_factory=dict,
    )


class TopicShape(MetadataShape, TopicOverlayShape):
    """A topic and its schema."""

    topic: TopicText = Field(
        description="persistent://tenant/namespace/topic, where the domain may be omitted, or a scalable topic (Pulsar 5.0): "
        "topic://tenant/namespace/topic.",
        examples=["persistent://shop/sales/orders"],
    )
    partitions: Key[Partitions] = optional("Absent: not partitioned. May only grow.")
    generation: Key[Annotated[int, integer("a number of generations, 1 or more", 1)]] = optional(
        "Raised by one: the versions so far are deleted, on a topic that retains no message, and later versions are not compared with them."
    )
    renamed_from: Key[TopicText] = optional("Check against the versions of that topic as well.")
    reader: Key[_Reader] = optional(_READER)
    generate: TopicGenerateShape = optional(
        "Its package, where it differs from the project's `generate`.", default_factory=TopicGenerateShape
    )
    protobuf: TopicProtobufShape = optional(
        "How its protobuf definition is registered.", default_factory=TopicProtobufShape
    )
    lifecycle: Key[Annotated[Literal["stable", "draft"], choice("lifecycle", ("stable", "draft"))]] = optional(
        "draft: may still break; stable is the default."
    )
    clients: Annotated[list[ClientShape], Field(max_length=MAX_ITEMS)] = optional(
        "Known producers and consumers: a change must not break the schemas that they are built with.",
        examples=[[{"name": "billing", "team": "payments", "role": "consumer", "schema": 3}]],
        default_factory=list,
    )
    # pydantic's own BaseModel has a deprecated method of that name.
    schema_: Key[_annotate_schema(_TOPIC_SCHEMAS, half=False)] = optional(  # type: ignore[valid-type]
        "Absent: a topic without schema.", alias="schema", examples=[{"type": "AVRO", "definition": "orders.avsc"}]
    )
    schemas: Annotated[
        dict[str, _annotate_schema(_KIND_SCHEMAS, half=False)],  # type: ignore[valid-type]
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = optional(
        "The kinds of events in the topic, by their keys, in place of `schema`. Each has a record of another name.",
        examples=[{"user_created": {"type": "AVRO", "definition": "user-created.avsc"}}],
        default_factory=dict,
    )
    kinds_compatibility: Key[Strategy] = optional(
        "Which readers of a kind a new version of this kind must not break (default: the strategy of the project's `defaults`)."
    )


# All documents

KINDS: Final[dict[str, type[MappingShape]]] = {
    "topic": TopicShape,
    "namespace": NamespaceShape,
    "topic overlay": TopicOverlayShape,
    "namespace overlay": NamespaceOverlayShape,
    "project": ProjectShape,
    "waiver": WaiverShape,
}


_RECORDS: Final[dict[str, type[MappingShape]]] = {
    "number": NumberShape,
    "acceptance": AcceptanceShape,
    "brokers": BrokersShape,
}
"""The models of the parts of a numbers file."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A part of a document that does not fit its model.

    Attributes:
        parts: the keys and indexes that lead to it.
        kind: pydantic's type of the error; `value_error` for a ValueError of this module.
        value: the value that does not fit.
        context: pydantic's details of the error; `error` for `value_error`.
        keys: the allowed keys of the mapping around it, with their descriptions.
        schema_type: the schema type if the mapping around it is a schema, or "".
    """

    parts: Tokens
    kind: str
    value: Any
    context: dict[str, Any]
    keys: Mapping[str, str]
    schema_type: str = ""


def read_model(kind: str, value: object) -> MappingShape | list[Mismatch]:
    """Read `value` as a document of the kind `kind`, or a part of a numbers file, and return its model, or all its mismatches."""
    shape = KINDS.get(kind) or _RECORDS[kind]
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        return [
            Mismatch(
                tuple(str(part) for part in detail["loc"] if part not in BRANCHES and part not in SEVERITY_TAGS),
                detail["type"],
                detail["input"],
                detail.get("ctx", {}),
                {
                    field.alias or name: field.description or ""
                    for name, field in _find_shape(shape, detail["loc"][:-1]).model_fields.items()
                },
                _find_schema_type(value, detail["loc"]),
            )
            for detail in error.errors(include_url=False)
        ]


def _find_schema_type(value: Any, location: tuple[str | int, ...]) -> str:
    """Return the type of the schema around pydantic's `location`, or "" if that mapping is not a schema."""
    if len(location) < 2 or location[-2] not in BRANCHES:
        return ""
    for part in location[:-1]:
        value = value if part in BRANCHES else value[part]
    return str(value.get("type", ""))


def _find_shape(shape: type[MappingShape], location: tuple[str | int, ...]) -> type[MappingShape]:
    """Return the model of the mapping at pydantic's `location`, or the last model in that path."""
    is_free_key = False
    for part in location:
        if is_free_key:
            is_free_key = False
        elif part in BRANCHES:
            shape = BRANCHES[str(part)]
        else:
            annotation = next(
                (field.annotation for name, field in shape.model_fields.items() if part in (name, field.alias)), None
            )
            inner = _find_inner_shape(annotation)
            shape = inner or shape
            is_free_key = inner is not None and get_origin(annotation) in (dict, list)
    return shape


def _find_inner_shape(annotation: object) -> type[MappingShape] | None:
    """Return the model in an annotation, or None without a model, or a union whose tag follows."""
    if isinstance(annotation, type) and issubclass(annotation, MappingShape):
        return annotation
    arguments = get_args(annotation)
    if get_origin(annotation) in (dict, list):
        return _find_inner_shape(arguments[-1])
    is_optional = type(None) in arguments
    return _find_inner_shape(arguments[0]) if is_optional or get_origin(annotation) is Annotated else None


_EDITOR_SCHEMAS: Final = {
    "project": ("schemactl.yaml", ("project",)),
    "declarations": ("a namespace or a topic", ("namespace", "topic")),
    "overlays": ("the differences of a namespace or a topic on a target", ("namespace overlay", "topic overlay")),
    "waivers": ("the waiver file", ("waiver",)),
}
"""The title and the kinds of documents of each kind of file."""


def editor_schemas() -> dict[str, dict[str, Any]]:
    """Build the JSON Schemas for editors by kind of file: project, declarations, overlays, waivers."""
    schemas: dict[str, dict[str, Any]] = {}
    for name, (title, kinds) in _EDITOR_SCHEMAS.items():
        _, schema = models_json_schema([(KINDS[kind], "validation") for kind in kinds], by_alias=True)
        _remove_defaults(schema)
        refs = [{"$ref": f"#/$defs/{KINDS[kind].__name__}"} for kind in kinds]
        schemas[name] = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": f"schemactl: {title}",
            **({"type": "array", "items": refs[0]} if kinds == ("waiver",) else {"oneOf": refs}),
            "$defs": schema["$defs"],
        }
    return schemas


def _remove_defaults(schema: Any) -> None:
    """Remove pydantic's additions that no editor needs: titles made from names, `default: null`."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        if "default" in schema and schema["default"] is None:
            del schema["default"]
        for value in schema.values():
            _remove_defaults(value)
    elif isinstance(schema, list):
        for value in schema:
            _remove_defaults(value)
