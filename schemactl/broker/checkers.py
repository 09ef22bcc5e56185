"""The compatibility checkers of a broker, one for each schema type (`schemaRegistryCompatibilityCheckers`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Final, Protocol

from schemactl.broker import validation
from schemactl.broker.exceptions import IO, NULL_POINTER, PARSE, VALIDATION, incompatible, is_error, shown
from schemactl.broker.validation import (
    SchemaData,
    advanced_violation,
    halves,
    never_readable,
    parse_avro,
    require_readable,
    root_message,
)
from schemactl.core.environment import of_other_packages
from schemactl.core.errors import UsageError
from schemactl.core.policies import _S, READ_BY_OLD, READS_OLD, TRANSITIVE, CompatibilityStrategy
from schemactl.core.project import OPTIONAL_CHECKERS
from schemactl.core.schema import Release, SchemaType
from schemactl.formats import SPECS
from schemactl.formats.avro.schema import JavaException, Schema

ENTRY_POINTS: Final = "schemactl.checkers"
"""The entry point group for checkers of other packages: a SchemaType's name, and a `Checker` class."""


class Checker(Protocol):
    """Whether a definition may follow others of its type (SchemaCompatibilityCheck)."""

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Raise JavaException unless `new` may follow `existing` (oldest first) under `strategy`.

        Args:
            existing: the latest version alone, or all live ones.
            new: the proposed definition.
            strategy: the one in force.
            listed: the registry passes a list (transitive strategies, some consumers, halves of KEY_VALUE), not
                one version.

        Raises:
            JavaException: IncompatibleSchemaException where it may not; anything else where the check itself fails.
        """
        ...


class DefaultChecker:
    """For every type without a checker of its own: PROTOBUF and the primitives pass (SchemaCompatibilityCheck.DEFAULT)."""

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Raise JavaException under ALWAYS_INCOMPATIBLE only."""
        del existing, new, listed
        if strategy is _S.ALWAYS_INCOMPATIBLE:
            raise incompatible("Schema compatibility strategy is ALWAYS_INCOMPATIBLE")


@dataclass(frozen=True)
class AvroChecker:
    """Avro's SchemaValidator over the grammar of reader and writer (AvroSchemaBasedCompatibilityCheck)."""

    release: Release

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Compare with the newest version first; BACKWARD, FORWARD and FULL look at that one only."""
        del listed
        try:
            olds = [parse_avro(old, self.release) for old in existing]
            schema = parse_avro(new, self.release)
            self._validate(schema, olds[::-1], strategy)
        except JavaException as thrown:
            if thrown.exception == PARSE:
                raise incompatible(shown(thrown)) from thrown
            if thrown.exception == VALIDATION:
                message = f"Error during schema compatibility check with strategy {strategy}: {shown(thrown)}"
                raise incompatible(message) from thrown
            raise

    def _validate(self, new: Schema, olds: Sequence[Schema], strategy: CompatibilityStrategy) -> None:
        if strategy is _S.ALWAYS_COMPATIBLE or not olds:
            return
        if strategy not in READS_OLD | READ_BY_OLD:
            raise never_readable(new)
        for old in olds if strategy in TRANSITIVE else olds[:1]:
            if strategy in READ_BY_OLD:
                require_readable(reader=old, writer=new, release=self.release)
            if strategy in READS_OLD:
                require_readable(reader=new, writer=old, release=self.release)


class StrictJsonChecker(AvroChecker):
    """JSON from 4.2 on: Avro text on both sides (JsonSchemaCompatibilityCheck after PIP-464)."""

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Compare as AVRO does; a single version that is no Avro text is rejected by name."""
        if not listed:
            # Of what the parser throws only a java.lang.Error goes on.
            if not _parses(existing[0], self.release, is_error):
                raise incompatible(
                    "Incompatible schema: existing schema is not in valid Avro format for SchemaType.JSON"
                )
            if not _parses(new, self.release, is_error):
                raise incompatible("Incompatible schema: expected Avro schema format for SchemaType.JSON")
        super().check(existing, new, strategy, listed=listed)


class LegacyJsonChecker(AvroChecker):
    """JSON before 4.2: Avro text and Jackson's legacy text pass each other unchecked (JsonSchemaCompatibilityCheck)."""

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Compare as AVRO does, but for a single version where either side is legacy text; the list form knows no legacy text."""
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
            _check_ids(old, new)

    def _is_avro(self, data: SchemaData) -> bool:
        return _parses(data, self.release, lambda thrown: thrown.exception != PARSE)


def _parses(data: SchemaData, release: Release, goes_on: Callable[[JavaException], bool]) -> bool:
    """Return whether it is an Avro definition. Raise what the parser throws where that `goes_on`."""
    try:
        parse_avro(data, release)
    except JavaException as thrown:
        if goes_on(thrown):
            raise
        return False
    return True


def _is_legacy(data: SchemaData) -> bool:
    try:
        validation.read(data.data or b"")
    except JavaException as thrown:
        if thrown.exception != IO:
            raise
        return False
    return True


def _check_ids(old: SchemaData, new: SchemaData) -> None:
    before, after = validation.read(old.data or b""), validation.read(new.data or b"")
    if before is None or before.id is None or after is None:
        raise JavaException(
            NULL_POINTER,
            'Cannot invoke "String.equals(Object)" because the return value of '
            '"com.fasterxml.jackson.module.jsonSchema.JsonSchema.getId()" is null',
        )
    if before.id != after.id:
        raise incompatible(f"Incompatible Schema from {old.text} + to {new.text}")


class NativeChecker:
    """PROTOBUF_NATIVE: the root message keeps its full name (ProtobufNativeSchemaCompatibilityCheck)."""

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Compare with the oldest version first; any directional strategy asks the same."""
        del listed
        for old in existing:
            before, after = root_message(old), root_message(new)
            if strategy is _S.ALWAYS_COMPATIBLE:
                continue
            if strategy not in READS_OLD | READ_BY_OLD:
                raise incompatible("Unknown SchemaCompatibilityStrategy.")
            if before != after:
                raise incompatible(
                    f"Protobuf root message change is not allowed under the '{strategy}' strategy. "
                    f"Original message name: '{before}', new message name: '{after}'."
                )


class AdvancedNativeChecker:
    """PROTOBUF_NATIVE, field by field: opt-in from 5.0 on (ProtobufNativeSchemaAdvancedCompatibilityCheck)."""

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Compare with the oldest version first: whether the new schema reads it, then whether it reads the new schema."""
        del listed
        if strategy is _S.ALWAYS_COMPATIBLE:
            return
        if strategy not in READS_OLD | READ_BY_OLD:
            rule = "ALWAYS_INCOMPATIBLE" if strategy is _S.ALWAYS_INCOMPATIBLE else "UNKNOWN_STRATEGY"
            raise incompatible(f"{rule}: strategy={strategy}")
        for old in existing:
            for direction, asked, reader, writer in (
                ("BACKWARD", READS_OLD, new, old),
                ("FORWARD", READ_BY_OLD, old, new),
            ):
                refusal = advanced_violation(reader=reader, writer=writer) if strategy in asked else None
                if refusal:
                    rule, path = refusal
                    digest = sha256(old.data or b"").hexdigest()
                    where = f"direction={direction}, existingSchemaSha256={digest}, path={path}"
                    raise incompatible(f"{rule}: strategy={strategy}, {where}")


class ExternalChecker:
    """EXTERNAL, from 4.2 on: any definition may follow another (ExternalSchemaCompatibilityCheck)."""

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Accept everything: the registry has rejected another type before."""


class KeyValueChecker:
    """KEY_VALUE: the halves keep their types, and each passes the checker of its type (KeyValueSchemaCompatibilityCheck)."""

    def __init__(self, checkers: Mapping[SchemaType, Checker], release: Release) -> None:
        self._checkers = checkers
        self._release = release

    def check(self, existing: Sequence[SchemaData], new: SchemaData, strategy: _S, *, listed: bool) -> None:
        """Compare the types of every version, oldest first; then the keys, then the values. The encoding is not looked at."""
        del listed
        if strategy is _S.ALWAYS_COMPATIBLE:
            return
        key, value = halves(new, self._release)
        olds = []
        for old in existing:
            old_key, old_value = halves(old, self._release)
            if old_key.type is not key.type or old_value.type is not value.type:
                raise incompatible(
                    "Key schemas or Value schemas are different schema type, "
                    f"from key schema type is {old_key.type.name} and to key schema is {key.type.name}, "
                    f"from value schema is {old_value.type.name} and to value schema is {value.type.name}"
                )
            olds.append((old_key, old_value))
        # The halves arrive newest first, so a checker that turns its list round names the oldest failure.
        olds.reverse()
        for old_halves, half in (([k for k, _ in olds], key), ([v for _, v in olds], value)):
            self._checkers.get(half.type, DEFAULT).check(old_halves, half, strategy, listed=True)


DEFAULT: Final = DefaultChecker()


_CHECKERS: Final[Mapping[str, Callable[[Release], Checker]]] = {
    "avro": AvroChecker,
    "json": lambda release: LegacyJsonChecker(release) if release is Release.R4_0 else StrictJsonChecker(release),
    "proto": lambda _release: NativeChecker(),
    "external": lambda _release: ExternalChecker(),
}
"""The default ones, by `TypeSpec.checker`."""

_OPTIONAL: Final[Mapping[str, tuple[SchemaType, Callable[[Release], Checker]]]] = {
    "ProtobufNativeSchemaAdvancedCompatibilityCheck": (
        SchemaType.PROTOBUF_NATIVE,
        lambda _release: AdvancedNativeChecker(),
    ),
    "ProtobufSchemaCompatibilityCheck": (SchemaType.PROTOBUF, AvroChecker),
}
"""The type that each of OPTIONAL_CHECKERS is for, and ours."""


def known_to(release: Release, optional: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the `optional` checkers that a broker of `release` can be configured with."""
    return tuple(name for name in optional if OPTIONAL_CHECKERS[name] <= release)


@cache
def checkers(release: Release, optional: tuple[str, ...] = ()) -> Mapping[SchemaType, Checker]:
    """Return the checkers of a broker of `release`: its default ones, those of other packages, and the `optional` ones named.

    Raises:
        UsageError: an optional checker is unknown, or that release has not got it.
    """
    known = {type_: each for type_, each in SPECS.items() if release >= each.first_release}
    found = {type_: _CHECKERS[each.checker](release) for type_, each in known.items() if each.checker in _CHECKERS}
    for entry in of_other_packages(ENTRY_POINTS):
        found[SchemaType[entry.name]] = entry.load()()
    for name in optional:
        if name not in OPTIONAL_CHECKERS or release < OPTIONAL_CHECKERS[name]:
            raise UsageError(f"a broker of Pulsar {release} has no checker {name!r}")
        type_, make = _OPTIONAL[name]
        found[type_] = make(release)
    pairs = KeyValueChecker(found, release)
    return found | {type_: pairs for type_, each in known.items() if each.checker == "pair"}
