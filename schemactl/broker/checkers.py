"""The compatibility checkers of a broker, one for each schema type (`schemaRegistryCompatibilityCheckers`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Final, Protocol

from schemactl.broker.exceptions import IO, NULL_POINTER, PARSE, VALIDATION, describe_exception, incompatible, is_error
from schemactl.broker.legacy_json import read_legacy_definition
from schemactl.broker.validation import (
    SchemaData,
    find_advanced_violation,
    get_root_name,
    make_never_readable,
    parse_avro,
    require_readable,
    split_key_value,
)
from schemactl.core.environment import list_entry_points
from schemactl.core.errors import UsageError
from schemactl.core.policies import READ_BY_OLD, READS_OLD, TRANSITIVE, CompatibilityStrategy
from schemactl.core.project import DEFAULT_CHECKERS, EXCLUDED, OPTIONAL_CHECKERS
from schemactl.core.schema import Release, SchemaType
from schemactl.formats import SPECS
from schemactl.formats.avro.schema import JavaException

ENTRY_POINTS: Final = "schemactl.checkers"
"""The entry point group for checkers of other packages: the name is a SchemaType, the value a `Checker` class."""


class Checker(Protocol):
    """A check whether a definition may follow others of its type (SchemaCompatibilityCheck)."""

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Check that `new` may follow `existing` under `strategy`.

        Args:
            existing: the latest version alone, or all live versions, oldest first.
            new: the proposed definition.
            strategy: the strategy in force.
            listed: whether the registry passes a list instead of one version (transitive strategies, some consumers, keys and values
                of KEY_VALUE).

        Raises:
            JavaException: IncompatibleSchemaException if it may not; another exception if the check itself fails.
        """
        ...


class DefaultChecker:
    """The checker of PROTOBUF and the primitives, which accepts every definition (SchemaCompatibilityCheck.DEFAULT)."""

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Raise JavaException under ALWAYS_INCOMPATIBLE only."""
        del existing, new, listed
        if strategy is CompatibilityStrategy.ALWAYS_INCOMPATIBLE:
            raise incompatible("Schema compatibility strategy is ALWAYS_INCOMPATIBLE")


@dataclass(frozen=True)
class AvroChecker:
    """Avro's SchemaValidator over the grammar of reader and writer (AvroSchemaBasedCompatibilityCheck)."""

    release: Release

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Compare with the newest version first; BACKWARD, FORWARD and FULL compare with this version only."""
        del listed
        try:
            olds = [parse_avro(old, self.release) for old in existing]
            schema = parse_avro(new, self.release)
            if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE or not olds:
                return
            if strategy not in READS_OLD | READ_BY_OLD:
                raise make_never_readable(schema)
            newest_first = olds[::-1]
            for old in newest_first if strategy in TRANSITIVE else newest_first[:1]:
                if strategy in READ_BY_OLD:
                    require_readable(reader=old, writer=schema, release=self.release)
                if strategy in READS_OLD:
                    require_readable(reader=schema, writer=old, release=self.release)
        except JavaException as thrown:
            if thrown.exception == PARSE:
                raise incompatible(describe_exception(thrown)) from thrown
            if thrown.exception == VALIDATION:
                message = (
                    f"Error during schema compatibility check with strategy {strategy}: {describe_exception(thrown)}"
                )
                raise incompatible(message) from thrown
            raise


class StrictJsonChecker(AvroChecker):
    """The checker of JSON since 4.2, for Avro definitions only (JsonSchemaCompatibilityCheck after PIP-464)."""

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Compare like the checker of AVRO; a single version that is not an Avro definition has its own message."""
        if not listed:
            # The broker catches every exception of the parser except a java.lang.Error.
            if not _is_avro_definition(existing[0], self.release, is_error):
                raise incompatible(
                    "Incompatible schema: existing schema is not in valid Avro format for SchemaType.JSON"
                )
            if not _is_avro_definition(new, self.release, is_error):
                raise incompatible("Incompatible schema: expected Avro schema format for SchemaType.JSON")
        super().check(existing, new, strategy, listed=listed)


class LegacyJsonChecker(AvroChecker):
    """The checker of JSON before 4.2, which accepts legacy definitions after Avro ones and vice versa (JsonSchemaCompatibilityCheck)."""

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Compare like the checker of AVRO, except a single version if either side is a legacy definition."""
        if listed:
            super().check(existing, new, strategy, listed=True)
            return
        old = existing[0]
        if self._is_avro(old):
            if self._is_avro(new):
                super().check(existing, new, strategy, listed=False)
            elif not _is_legacy(new):
                raise incompatible("Unknown schema format")
        elif _is_legacy(old) and not self._is_avro(new):
            if not _is_legacy(new):
                raise incompatible("Unknown schema format")
            old_schema, new_schema = read_legacy_definition(old.data or b""), read_legacy_definition(new.data or b"")
            if old_schema is None or old_schema.id is None or new_schema is None:
                raise JavaException(
                    NULL_POINTER,
                    'Cannot invoke "String.equals(Object)" because the return value of '
                    '"com.fasterxml.jackson.module.jsonSchema.JsonSchema.getId()" is null',
                )
            if old_schema.id != new_schema.id:
                raise incompatible(f"Incompatible Schema from {old.text} + to {new.text}")

    def _is_avro(self, data: SchemaData) -> bool:
        return _is_avro_definition(data, self.release, lambda thrown: thrown.exception != PARSE)


def _is_avro_definition(data: SchemaData, release: Release, is_fatal: Callable[[JavaException], bool]) -> bool:
    """Return whether `data` is an Avro definition; exceptions of the parser that are fatal are raised."""
    try:
        parse_avro(data, release)
    except JavaException as thrown:
        if is_fatal(thrown):
            raise
        return False
    return True


def _is_legacy(data: SchemaData) -> bool:
    try:
        read_legacy_definition(data.data or b"")
    except JavaException as thrown:
        if thrown.exception != IO:
            raise
        return False
    return True


class NativeChecker:
    """The checker of PROTOBUF_NATIVE: the root message keeps its full name (ProtobufNativeSchemaCompatibilityCheck)."""

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Compare with the oldest version first; all strategies with a direction are the same."""
        del listed
        for old in existing:
            old_name, new_name = get_root_name(old), get_root_name(new)
            if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
                continue
            if strategy not in READS_OLD | READ_BY_OLD:
                raise incompatible("Unknown SchemaCompatibilityStrategy.")
            if old_name != new_name:
                raise incompatible(
                    f"Protobuf root message change is not allowed under the '{strategy}' strategy. "
                    f"Original message name: '{old_name}', new message name: '{new_name}'."
                )


class AdvancedNativeChecker:
    """The optional checker of PROTOBUF_NATIVE since 5.0, field by field (ProtobufNativeSchemaAdvancedCompatibilityCheck)."""

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Compare with the oldest version first: whether the new schema can read it, then whether it can read the new schema."""
        del listed
        if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
            return
        if strategy not in READS_OLD | READ_BY_OLD:
            rule = (
                "ALWAYS_INCOMPATIBLE" if strategy is CompatibilityStrategy.ALWAYS_INCOMPATIBLE else "UNKNOWN_STRATEGY"
            )
            raise incompatible(f"{rule}: strategy={strategy}")
        for old in existing:
            for direction, strategies, reader, writer in (
                ("BACKWARD", READS_OLD, new, old),
                ("FORWARD", READ_BY_OLD, old, new),
            ):
                violation = find_advanced_violation(reader=reader, writer=writer) if strategy in strategies else None
                if violation:
                    rule, path = violation
                    digest = sha256(old.data or b"").hexdigest()
                    location = f"direction={direction}, existingSchemaSha256={digest}, path={path}"
                    raise incompatible(f"{rule}: strategy={strategy}, {location}")


class ExternalChecker:
    """The checker of EXTERNAL since 4.2, which accepts every definition (ExternalSchemaCompatibilityCheck)."""

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Accept every definition: the registry has already rejected other types."""


class KeyValueChecker:
    """The checker of KEY_VALUE: key and value keep their types and pass the checkers of these types (KeyValueSchemaCompatibilityCheck)."""

    def __init__(self, checkers: Mapping[SchemaType, Checker], release: Release) -> None:
        self._checkers = checkers
        self._release = release

    def check(
        self, existing: Sequence[SchemaData], new: SchemaData, strategy: CompatibilityStrategy, *, listed: bool
    ) -> None:
        """Compare the types of every version, oldest first; then the keys, then the values. The encoding is not compared."""
        del listed
        if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
            return
        key, value = split_key_value(new, self._release)
        old_keys, old_values = [], []
        for old in existing:
            old_key, old_value = split_key_value(old, self._release)
            if old_key.type is not key.type or old_value.type is not value.type:
                raise incompatible(
                    "Key schemas or Value schemas are different schema type, "
                    f"from key schema type is {old_key.type.name} and to key schema is {key.type.name}, "
                    f"from value schema is {old_value.type.name} and to value schema is {value.type.name}"
                )
            old_keys.append(old_key)
            old_values.append(old_value)
        # The broker passes the newest first, so a checker that reverses its list reports the oldest failure.
        self._checkers.get(key.type, DEFAULT).check(old_keys[::-1], key, strategy, listed=True)
        self._checkers.get(value.type, DEFAULT).check(old_values[::-1], value, strategy, listed=True)


DEFAULT: Final = DefaultChecker()


_CHECKERS: Final[Mapping[str, Callable[[Release], Checker]]] = {
    "avro": AvroChecker,
    "json": lambda release: LegacyJsonChecker(release) if release is Release.R4_0 else StrictJsonChecker(release),
    "proto": lambda _release: NativeChecker(),
    "external": lambda _release: ExternalChecker(),
}
"""The default checkers, by `TypeSpec.checker`."""

_OPTIONAL: Final[Mapping[str, tuple[SchemaType, Callable[[Release], Checker]]]] = {
    "ProtobufNativeSchemaAdvancedCompatibilityCheck": (
        SchemaType.PROTOBUF_NATIVE,
        lambda _release: AdvancedNativeChecker(),
    ),
    "ProtobufSchemaCompatibilityCheck": (SchemaType.PROTOBUF, AvroChecker),
}
"""The schema type and the class of each of OPTIONAL_CHECKERS."""

_DEFAULT_TYPES: Final[Mapping[str, SchemaType]] = {
    "AvroSchemaCompatibilityCheck": SchemaType.AVRO,
    "JsonSchemaCompatibilityCheck": SchemaType.JSON,
    "ProtobufNativeSchemaCompatibilityCheck": SchemaType.PROTOBUF_NATIVE,
    "ExternalSchemaCompatibilityCheck": SchemaType.EXTERNAL,
}
"""The schema type of each of DEFAULT_CHECKERS."""


_FIRST_RELEASES: Final[Mapping[str, Release]] = {
    **OPTIONAL_CHECKERS,
    **{EXCLUDED + name: release for name, release in DEFAULT_CHECKERS.items()},
}
"""The first release with each optional checker, and with each default checker that can be excluded."""


def select_existing_checkers(release: Release, checker_changes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the optional and the excluded checkers in `checker_changes` that exist in `release`."""
    return tuple(name for name in checker_changes if _FIRST_RELEASES[name] <= release)


def list_classes(release: Release, checker_changes: tuple[str, ...]) -> frozenset[str]:
    """Return the class names in `schemaRegistryCompatibilityCheckers` of brokers with these optional and excluded checkers."""
    default_names = {name for name, first_release in DEFAULT_CHECKERS.items() if first_release <= release}
    excluded = {name.removeprefix(EXCLUDED) for name in checker_changes if name.startswith(EXCLUDED)}
    return frozenset(default_names - excluded) | {
        name for name in select_existing_checkers(release, checker_changes) if name in OPTIONAL_CHECKERS
    }


def parse_checker_classes(release: Release, classes: Iterable[str]) -> tuple[str, ...] | None:
    """Return the optional and excluded checkers of brokers with these classes, or None if a class is not Pulsar's own."""
    names = frozenset(classes)
    if names - OPTIONAL_CHECKERS.keys() - DEFAULT_CHECKERS.keys():
        return None
    excluded = list_classes(release, ()) - names
    return (*sorted(names & OPTIONAL_CHECKERS.keys()), *(EXCLUDED + name for name in sorted(excluded)))


def find_checked_type(name: str) -> SchemaType | None:
    """Return the schema type whose definitions the checker with this class name compares, or None if it is not Pulsar's own."""
    return _OPTIONAL[name][0] if name in _OPTIONAL else _DEFAULT_TYPES.get(name)


@cache
def create_checkers(release: Release, checker_changes: tuple[str, ...] = ()) -> Mapping[SchemaType, Checker]:
    """Create the checkers of a broker of `release`: its default checkers, checkers of other packages, and optional ones.

    A type without a checker has `DEFAULT` (SchemaRegistryServiceImpl). A checker of another package counts although the default one is
    excluded.

    Args:
        release: the broker's release.
        checker_changes: the class names of the optional checkers that the broker has (`OPTIONAL_CHECKERS`), and after a `!` of the default
            checkers that it does not have (`DEFAULT_CHECKERS`).

    Raises:
        UsageError: if an optional checker is unknown, or does not exist in the release.
    """
    specs = {schema_type: spec for schema_type, spec in SPECS.items() if release >= spec.first_release}
    checkers_by_type = {
        schema_type: _CHECKERS[spec.checker](release)
        for schema_type, spec in specs.items()
        if spec.checker in _CHECKERS
    }
    for name in checker_changes:
        if name.startswith(EXCLUDED):
            checkers_by_type.pop(_DEFAULT_TYPES[name.removeprefix(EXCLUDED)], None)
    for entry_point in list_entry_points(ENTRY_POINTS):
        checkers_by_type[SchemaType[entry_point.name]] = entry_point.load()()
    for name in checker_changes:
        if name.startswith(EXCLUDED):
            continue
        if name not in OPTIONAL_CHECKERS or release < OPTIONAL_CHECKERS[name]:
            raise UsageError(f"a broker of Pulsar {release} has no checker {name!r}")
        schema_type, make_checker = _OPTIONAL[name]
        checkers_by_type[schema_type] = make_checker(release)
    pair_checker = KeyValueChecker(checkers_by_type, release)
    pair_types = [schema_type for schema_type, spec in specs.items() if spec.checker == "pair"]
    return checkers_by_type | dict.fromkeys(pair_types, pair_checker)
