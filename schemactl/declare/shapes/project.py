"""The shape of the project file."""

from __future__ import annotations

import keyword
from typing import Annotated, Any, get_args

from pydantic import Discriminator, Field, Tag

from schemactl.core.project import OPTIONAL_CHECKERS, ClassKind
from schemactl.core.wording import found, shortened
from schemactl.declare.package_names import advised, owner
from schemactl.declare.shapes.leaf import (
    MAX_ITEMS,
    NOT_BLANK,
    BrokerStrategy,
    FilePath,
    Flag,
    FolderPath,
    MappingShape,
    NamespaceText,
    PulsarRelease,
    SeverityText,
    SparkRelease,
    TenantText,
    ValueShape,
    Variable,
    choice,
    named,
    optional,
    text,
)
from schemactl.registry import url


def check_format_version(value: object) -> None:
    """ValueError: not the version that this program reads."""
    if value != 1 or isinstance(value, bool):
        raise ValueError(f"expected the format's version, 1, found {found(value)}", "write version: 1")


def check_module(name: str) -> None:
    """ValueError: Python cannot import it."""
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            f"`{name[:60]}` cannot be imported in Python", "write letters, digits and _, a letter first"
        )
    if whose := owner(name):
        what = f"`{shortened(name)}` is {whose}: a generated package of that name would take its place"
        raise ValueError(what, f"write another name, such as {shortened(advised(name))}")


_MODULE = rf"^(?!(?:{'|'.join(keyword.kwlist)})$)[A-Za-z_][A-Za-z0-9_]*$"
_REF = r"^(?!-)[^\s~^:?*\[\\\x00-\x20]+$"
_WORD = "[A-Za-z_][A-Za-z0-9_]*"
_REGISTRY = rf"^(https?://[^@\s]+|sqlite:.*\S.*|memory:|(?!pulsar:){_WORD}(\.{_WORD})*:{_WORD}(\?.*)?)$"


CATEGORIES = ("WIRE", "WIRE_JSON")
"""buf's categories of rules about messages."""

_PACKAGE = "org.apache.pulsar.broker.service.schema."
_CHECKERS = tuple(prefix + name for prefix in ("", _PACKAGE) for name in OPTIONAL_CHECKERS)
"""As `schemaRegistryCompatibilityCheckers` of broker.conf has them, with or without their package."""


_OF_EVERY_BROKER = frozenset(
    f"{language}SchemaCompatibilityCheck"
    for language in ("Avro", "Json", "ProtobufNative", "External", "KeyValue")
)


def check_category(value: object) -> None:
    """Raise ValueError unless `value` is one of CATEGORIES."""
    if value in ("FILE", "PACKAGE"):
        raise ValueError(
            f"buf's category {value} is about generated code",
            f"run `buf breaking` for that, and write one of {', '.join(CATEGORIES)} here",
        )
    choice("category of buf's rules", CATEGORIES).check(value)


def check_checker(value: object) -> None:
    """Raise ValueError unless `value` is one of Pulsar's optional checkers."""
    if isinstance(value, str) and value.rpartition(".")[2] in _OF_EVERY_BROKER:
        raise ValueError(f"`{value}` is not optional: every broker has this checker", "remove it")
    choice("optional checker of Pulsar", _CHECKERS).check(value)


class DefaultsShape(MappingShape):
    """What the brokers are configured with."""

    schema_compatibility_strategy: BrokerStrategy = optional("Pulsar's own is FULL.")
    is_allow_auto_update_schema: Flag = optional("Pulsar's own is true.")
    schema_validation_enforced: Flag = optional("Pulsar's own is false.")


class ProtobufRulesShape(MappingShape):
    """What is asked of protobuf definitions beyond the data verdict."""

    rules: Annotated[Any, ValueShape(check_category, {"enum": list(CATEGORIES)})] = optional(
        "buf's category whose rules `check` looks for, too (default: none)."
    )
    checkers: Annotated[
        list[Annotated[Any, ValueShape(check_checker, {"enum": list(_CHECKERS)})]],
        Field(max_length=MAX_ITEMS),
    ] = optional("The optional checkers that the brokers are configured with (default: none).")


class OAuth2Shape(MappingShape):
    """OAuth 2.0 client credentials."""

    issuer: Annotated[Any, text("an https:// URL", r"^https?://\S+$")] = Field(
        description="The URL of the server that gives tokens."
    )
    audience: Annotated[Any, text("an audience")] = Field(
        description="Whom the tokens are for, as the server knows it."
    )
    client_id: Annotated[Any, text("a client's id")] = Field(description="The id of the client.")
    client_secret_env: Variable = Field(description="The environment variable that holds the secret.")


def check_files(value: object) -> None:
    """Raise ValueError unless `value` is a file's path, or a list of them."""
    paths = value if isinstance(value, list) else [value]
    for each in paths or [None]:
        if not isinstance(each, str) or not each.strip():
            what = found(each) if paths else "an empty list"
            raise ValueError(f"expected a file's path, or a list of them, found {what}")


def check_glob(value: object) -> None:
    """Raise ValueError unless `value` is a glob of topics to be taken, not to be left out."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected topics such as 'shop/sales/*', found {found(value)}")
    if value.startswith("!"):
        raise ValueError(f"`{shortened(value)}` leaves topics out", "write it under `exclude`, without the !")


_FILES = {"oneOf": [{"type": "string", "pattern": NOT_BLANK}, {"type": "array", "items": {"type": "string"}}]}
_GLOB = {"type": "string", "pattern": r"^[^!]"}
Globs = Annotated[
    list[Annotated[Any, ValueShape(check_glob, _GLOB)]], Field(min_length=1, max_length=MAX_ITEMS)
]


class TargetShape(MappingShape):
    """A registry to plan against, and what differs there."""

    registry: Annotated[Any, named(url.parse, "a registry's URL", _REGISTRY)] = Field(
        description="sqlite:PATH for the embedded registry, http(s)://HOST:PORT for Pulsar's admin API.",
        examples=["sqlite:.schemactl/registry.db", "https://pulsar.example.com:8443"],
    )
    pulsar: PulsarRelease = optional("Its release, where it is not the project's.")
    token_env: Variable = optional("The environment variable that holds the bearer token.")
    token_file: FilePath = optional("The file that holds the bearer token.")
    cert_file: FilePath = optional("The client certificate for mutual TLS.")
    key_file: FilePath = optional("The private key for mutual TLS.")
    oauth2: OAuth2Shape = optional("OAuth 2.0 client credentials.")
    ca_file: FilePath = optional("The certificate authority to trust.")
    tenants: Annotated[dict[str, TenantText], Field(max_length=MAX_ITEMS)] = optional(
        "Declared tenant to its name on this target. With it or `namespaces`, what neither names is an error."
    )
    namespaces: Annotated[dict[str, NamespaceText], Field(max_length=MAX_ITEMS)] = optional(
        "Declared namespace to its name on this target; it goes before `tenants`."
    )
    overlays: Annotated[Any, ValueShape(check_files, _FILES)] = optional(
        "The file, or files, of namespace and topic documents with the policies and partitions that differ on this target."
    )
    include: Globs = optional(
        "Only these topics are on this target: 'shop/sales/*', 'shop/**' (default: all)."
    )
    exclude: Globs = optional("These topics are not on this target.")
    labels: Annotated[
        dict[str, Annotated[Any, text("text", fix="put it in quotes")]], Field(max_length=MAX_ITEMS)
    ] = optional("Name to text, shown by `targets`.")
    cluster: Annotated[Any, text("the name of a cluster", r"^\S+$")] = optional(
        "What Pulsar calls this cluster, as in `replication_clusters`: versions are compared with those of the other clusters."
    )
    numbers: FilePath = optional(
        "The file that records where its version numbers are not Git's (default: numbers/<target>.yaml)."
    )
    promoted: Annotated[Any, text("a branch or tag such as origin/promoted/prod", _REF)] = optional(
        "The branch or tag that says how far it is, a commit of the approved history (default: its tip)."
    )
    after: Annotated[
        list[Annotated[Any, text("the name of a target")]], Field(min_length=1, max_length=MAX_ITEMS)
    ] = optional("The targets that have to hold a version before it is planned here.")


class GenerateShape(MappingShape):
    """What `schemactl generate` writes."""

    package: Annotated[Any, named(check_module, "the name of a Python package", _MODULE)] = Field(
        description="The name to import it by."
    )
    out: FolderPath = optional("The folder it goes to (default: generated).")
    spark: SparkRelease = optional('The Spark it is for (default: "4.1").')
    json_defaults: Flag = optional(
        "Whether a field that a JSON payload lacks is read as its default (default: false, it is null)."
    )
    target: Annotated[Any, text("the name of a target")] = optional(
        "The target whose messages are read, by the numbers that its registry gave (default: by Git's numbers)."
    )
    classes: Annotated[Any, choice("kind of classes", get_args(ClassKind))] = optional(
        "Which classes the package has for records, to be encoded and decoded (default: none)."
    )


_Style = Annotated[
    Any, choice("style of names", ("snake_case", "camelCase", "PascalCase", "UPPER_CASE", "any"))
]


class NameStylesShape(MappingShape):
    """How names in definitions are written."""

    fields: _Style = optional("The names of fields (default: snake_case).")
    types: _Style = optional("The names of records, enums and fixed types (default: PascalCase).")
    symbols: _Style = optional("The symbols of enums (default: UPPER_CASE).")


SEVERITY_TAGS = ("<rule>", "<namespace>")
"""The names that the two kinds of entries under `severities` have in pydantic's locations."""


def _severity_tag(value: object) -> str:
    return SEVERITY_TAGS[isinstance(value, dict)]


class ProjectShape(MappingShape):
    """The project file, schemactl.yaml."""

    version: Annotated[Any, ValueShape(check_format_version, {"const": 1})] = Field(
        description="The version of this file's format: 1."
    )
    roots: Annotated[list[FolderPath], Field(min_length=1, max_length=MAX_ITEMS)] = optional(
        "The folders that hold declarations (default: namespaces)."
    )
    previous_roots: Annotated[list[FolderPath], Field(max_length=MAX_ITEMS)] = optional(
        "Where they were in older commits."
    )
    approved: Annotated[Any, text("a branch or tag such as origin/main", _REF)] = optional(
        "The ref whose first-parent history is the record of approved schemas."
    )
    pulsar: PulsarRelease = optional('Whose answers to predict (default: "4.0").')
    defaults: DefaultsShape = optional("What the brokers are configured with.")
    protobuf: ProtobufRulesShape = optional("What is asked of protobuf definitions beyond the data verdict.")
    severities: Annotated[
        dict[
            str,
            Annotated[
                Annotated[dict[str, SeverityText], Tag("<namespace>")]
                | Annotated[SeverityText, Tag("<rule>")],
                Discriminator(_severity_tag),
            ],
        ],
        Field(max_length=MAX_ITEMS),
    ] = optional("Rule to error, warning or off; or a namespace to such a mapping.")
    require_declared_namespaces: Flag = optional(
        "Whether a topic whose namespace no file declares is an error (default: false, a new one is a warning)."
    )
    names: NameStylesShape = optional("How names are written, where NAME_STYLE has a severity.")
    waivers: FilePath = optional("The waiver file (default: waivers.yaml).")
    targets: Annotated[dict[str, TargetShape], Field(max_length=MAX_ITEMS)] = optional(
        "The registries to plan against, by name."
    )
    generate: GenerateShape = optional("What `schemactl generate` writes.")
