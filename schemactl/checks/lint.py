"""The lint rules, the edits that fix a finding, and the rewriting of files by `lint --fix`.

Rules look at what people wrote, not at what Avro's parser returns, which drops what it does not know.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, Protocol

import yaml

from schemactl.checks.check_report import ORDER, CheckReport
from schemactl.checks.proposal import Run
from schemactl.core.catalog import Catalog
from schemactl.core.environment import of_other_packages
from schemactl.core.errors import InvalidSchema, Source, meant
from schemactl.core.findings import Finding
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project
from schemactl.core.rules import LINT_RULES, Rule, every_rule
from schemactl.core.schema import Release, SchemaInfo
from schemactl.core.wording import counted
from schemactl.declare.files import AVRO_SUFFIXES, Files, decode, read_bytes
from schemactl.declare.formatter import proved
from schemactl.declare.reader import Declared
from schemactl.declare.references import AvroFile, own_names
from schemactl.declare.source_location import JsonText, Tokens, key_node, nearest, pointer, tokens
from schemactl.declare.yaml_parser import YamlPart, scalar
from schemactl.formats import identity, pair_of, resolve, spec
from schemactl.formats.avro.parser import problems as avro_problems
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify

_NAMED_KINDS = ("record", "enum", "fixed")


_NAMED_TYPE_KEYS: Final = ("type", "name", "namespace", "doc", "aliases")


_LOGICAL_TYPE_KEYS: Final = ("logicalType", "precision", "scale")


Kind = Literal["record", "enum", "fixed", "array", "map", "union", "primitive", "reference", "field"]


Replacement = tuple[int, int, str]
"""Start and end in a text, and what stands between them afterwards."""


KNOWN_KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "record": (*_NAMED_TYPE_KEYS, "fields", "logicalType"),
    "enum": (*_NAMED_TYPE_KEYS, "symbols", "default", "logicalType"),
    "fixed": (*_NAMED_TYPE_KEYS, "size", *_LOGICAL_TYPE_KEYS),
    "array": ("type", "items", "logicalType"),
    "map": ("type", "values", "logicalType"),
    "primitive": ("type", *_LOGICAL_TYPE_KEYS),
    "reference": ("type",),
    "field": ("name", "type", "doc", "default", "order", "aliases"),
}
"""The keys that Avro knows, by where they stand."""


_HARMLESS_KEYS: Final = frozenset({"default", "aliases", "doc", "order"})
"""What may be spelt right without changing the name, the bytes or the column of anything."""


_LOGICAL_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "decimal": ("bytes", "fixed"),
    "big-decimal": ("bytes",),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}
"""The types that each may stand on."""


_FIXED_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "duration": 12}
"""Of a fixed, in bytes."""


_STYLES: Final = {
    "snake_case": re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*"),
    "camelCase": re.compile(r"_?[a-z][a-zA-Z0-9]*"),
    "PascalCase": re.compile(r"[A-Z][a-zA-Z0-9]*"),
    "UPPER_CASE": re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*"),
    "any": re.compile(r".*", re.DOTALL),
}


_MIN_SIBLINGS: Final = 3
"""So many topics make a custom."""


_MAX_TRIED_EDITS: Final = 20
"""Edits that are tried one by one: for each, everything is read once more."""


@dataclass(frozen=True, slots=True)
class Linted:
    """A remark on a definition, and the finding that it makes for a topic."""

    finding: Finding
    file: AvroFile
    remark: Remark


def lint(declared: Declared, project: Project, only: frozenset[TopicName]) -> tuple[CheckReport, list[Linted]]:
    """Return all findings about what is declared, and apart those remarks that are about one place in a definition.

    Raises:
        SchemactlError: a rule from another package is no rule.
    """
    known = every_rule()
    looks = {**_DEFINITION_RULES, **{entry.name: entry.load()().look for entry in of_other_packages(LINT_RULES)}}
    run = Run(declared.catalog, Catalog(), project, known)

    # A type that topics share is looked at once.
    @cache
    def definition(file: AvroFile) -> LintedDefinition:
        return LintedDefinition.of(file, project)

    @cache
    def remarks(rule: str, file: AvroFile) -> list[Remark]:
        return list(looks[rule](definition(file)))

    linted = []
    for name in sorted(only):
        rules = [rule for rule in looks if run.is_enabled(rule, name)]
        for file in declared.written.get(name, ()):
            for rule in rules:
                for remark in remarks(rule, file):
                    locate = file.text.locate_key if remark.of_key else file.text.locate
                    found = _make_finding(run, rule, name, locate(remark.parts), remark)
                    linted += [Linted(each, file, remark) for each in found]
    found_of_topics = [
        finding
        for look in _TOPIC_RULES
        for rule, name, source, remark in look(declared, project, dict.fromkeys(sorted(only)))
        for finding in _make_finding(run, rule, name, source, remark)
    ]
    findings = sorted((*(each.finding for each in linted), *found_of_topics), key=_make_sort_key)
    report = CheckReport(project.release, "", len(only), findings=tuple(findings), settings=project.path)
    return report, linted


def _make_finding(run: Run, rule: str, name: TopicName, source: Source | None, remark: Remark) -> Iterator[Finding]:
    # A rule that is off by itself is found where the project gives it a severity.
    severity = run.get_severity(rule, name)
    return run.make_finding(
        rule,
        run.target.topics[name],
        remark.message,
        source=source,
        fix=remark.fix,
        field=remark.field,
        pointer=pointer(remark.parts),
        severity=None if severity == "off" else severity,
    )


def _make_sort_key(finding: Finding) -> tuple[int, str]:
    place = finding.source
    return ORDER[finding.severity], f"{place.path}:{place.line:9}:{place.column:9}" if place else ""


# Definitions, rules and remarks


class LintRule(Protocol):
    """A rule on definitions. Other packages bring theirs by the entry point group `schemactl.lint_rules`."""

    rule: Rule

    def look(self, definition: LintedDefinition) -> Iterator[Remark]:
        """Yield the rule's remarks on one definition."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LintedDefinition:
    """A definition as rules look at it.

    Attributes:
        file: where it stands, and its whole value.
        parts: its types and fields, in document order.
        project: whose settings count.
    """

    file: AvroFile
    parts: tuple[DefinitionPart, ...]
    project: Project

    @classmethod
    def of(cls, file: AvroFile, project: Project) -> LintedDefinition:
        """Return the definition in `file`, which Avro's parser accepts."""
        return cls(file, tuple(_walk_type(file.value, (), "", None, ())), project)

    def of_kind(self, *kinds: Kind) -> Iterator[DefinitionPart]:
        """Yield the parts of these kinds."""
        return (part for part in self.parts if part.kind in kinds)


@dataclass(frozen=True, slots=True, eq=False)
class DefinitionPart:
    """A type, or a field, of a definition.

    Attributes:
        kind: such as `record` or `field`; `reference` is the name of a type that is defined elsewhere.
        value: as it is written: an object, a list (of a union), or a name.
        parts: its place in the definition.
        field: its path for people: `Order.lines[].price`.
        full_name: of a named type, or of the type that a reference names; "" for anything else.
        inside: the full names of the records around it, the outermost first.
    """

    kind: Kind
    value: Any
    parts: Tokens
    field: str
    full_name: str = ""
    inside: tuple[str, ...] = ()

    @property
    def keys(self) -> Mapping[str, Any]:
        """Its keys and values; empty for a name or a list."""
        return self.value if isinstance(self.value, dict) else {}


def _walk_type(
    value: Any, parts: Tokens, field: str, namespace: str | None, inside: tuple[str, ...]
) -> Iterator[DefinitionPart]:
    """Yield the type in `value`, then its parts."""
    if isinstance(value, list):
        yield DefinitionPart("union", value, parts, field, "", inside)
        for index, branch in enumerate(value):
            yield from _walk_type(branch, (*parts, str(index)), field, namespace, inside)
        return
    kind: Any = value.get("type") if isinstance(value, dict) else value
    kind = "record" if kind == "error" else kind
    if isinstance(value, dict) and kind in _NAMED_KINDS:
        name = str(value.get("name"))
        full_name, within = own_names(value, namespace)
        yield DefinitionPart(kind, value, parts, field or name, full_name, inside)
        fields = value.get("fields") if kind == "record" else None
        for index, each in enumerate(fields if isinstance(fields, list) else ()):
            # Nobody has parsed the types of a shared file that no topic uses.
            if isinstance(each, dict) and "type" in each:
                at, path = (*parts, "fields", str(index)), f"{field or name}.{each.get('name')}"
                yield DefinitionPart("field", each, at, path, "", (*inside, full_name))
                yield from _walk_type(each["type"], (*at, "type"), path, within, (*inside, full_name))
    elif isinstance(value, dict) and kind in ("array", "map"):
        yield DefinitionPart(kind, value, parts, field, "", inside)
        key, mark = ("items", "[]") if kind == "array" else ("values", "{}")
        yield from _walk_type(value.get(key), (*parts, key), f"{field}{mark}", namespace, inside)
    elif isinstance(kind, str) and kind in PRIMITIVE_TYPES:
        yield DefinitionPart("primitive", value, parts, field, "", inside)
    elif isinstance(kind, str):
        yield DefinitionPart("reference", value, parts, field, qualify(kind, namespace)[0], inside)


@dataclass(frozen=True, slots=True)
class Remark:
    """A rule's remark on one place: a finding for each topic with the definition.

    Attributes:
        parts: the place in the definition; with `of_key` the key is meant, not its value.
        message: the trouble, when it comes and for whom, in full sentences.
        fix: what to write instead; "" for the rule's own fix.
        field: the path of the part for people.
        edit: what `--fix` does.
    """

    parts: Tokens
    message: str
    fix: str = ""
    field: str = ""
    of_key: bool = False
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class RenameKey:
    """The key at `parts` is called `to`."""

    parts: Tokens
    to: str


@dataclass(frozen=True, slots=True)
class AddKey:
    """Adds a key to the object at `parts`, after the first of the keys `behind` that shares its lines with no other key."""

    parts: Tokens
    behind: Sequence[str]
    key: str
    value: Any


Edit = RenameKey | AddKey


_RuleFunction = Callable[[LintedDefinition], Iterator[Remark]]


_TopicRemark = tuple[str, TopicName, Source | None, Remark]
"""A rule, and what it says of a topic, at which place."""


# Unknown and misplaced keys


def check_keys(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the keys that are nearly one that Avro knows, and defaults that stand inside a type."""
    for part in definition.parts:
        for key, near in find_misspelled_keys(part):
            at = (*part.parts, key)
            yield Remark(
                at,
                f"Avro does not know `{key}`, and keeps it as a property: {part.field} has no `{near}`.",
                f"Write `{near}`.",
                part.field,
                of_key=True,
                edit=RenameKey(at, near) if near in _HARMLESS_KEYS else None,
            )
        if "default" in part.keys and "default" not in KNOWN_KEYS.get(part.kind, ()):
            yield Remark(
                (*part.parts, "default"),
                f"A default inside a type is kept as a property: {part.field} has none.",
                "Write it beside the `type` of the field.",
                part.field,
                of_key=True,
            )


def find_misspelled_keys(part: DefinitionPart) -> Iterator[tuple[str, str]]:
    """Yield each key of `part` that Avro does not know, with the one that was probably meant."""
    known = KNOWN_KEYS.get(part.kind, ())
    for key in part.keys:
        if key not in known:
            near = find_misspelling(key, (each for each in known if each not in part.keys))
            if near:
                yield key, near


def find_misspelling(name: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` of which `name` is surely a misspelling, ignoring case; None if none is that near.

    In a short name two swapped letters are a large part, so the same letters in any order count as near.
    """
    choices = list(known)
    swapped = (each for each in choices if sorted(each.lower()) == sorted(name.lower()))
    return next(swapped, None) or meant(name, choices, likeness=0.8)


# Logical types


def check_logical_type_names(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the logical types that are nearly one of Avro's; others are somebody's own."""
    for part, name in _list_logical_types(definition):
        near = None if name in _LOGICAL_TYPES else find_misspelling(name.replace("_", "-"), _LOGICAL_TYPES)
        if near:
            yield Remark(
                (*part.parts, "logicalType"),
                f"Avro does not know the logical type `{name}`: {part.field} is a plain {_get_type_name(part)}.",
                f"Write `{near}`. Columns made of the field get another type.",
                part.field,
            )


def check_logical_types(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the logical types that Avro knows, and ignores where or as they stand."""
    for part in definition.of_kind("field"):
        if "logicalType" in part.keys and isinstance(part.keys["type"], str):
            yield Remark(
                (*part.parts, "logicalType"),
                f"A logical type beside the `type` of a field is kept as a property: {part.field} is a plain {part.keys['type']}.",
                f'Write it inside: "type": {{"type": "{part.keys["type"]}", "logicalType": "{part.keys["logicalType"]}"}}.',
                part.field,
                of_key=True,
            )
    for part, name in _list_logical_types(definition):
        if name in _LOGICAL_TYPES and (why := _explain_ignored_type(part, name)):
            yield Remark(
                (*part.parts, "logicalType"),
                f"Avro ignores `{name}` here, and {part.field} is a plain {_get_type_name(part)}: {why[0]}.",
                why[1],
                part.field,
            )


def check_nanoseconds(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the timestamps in nanoseconds."""
    for part, name in _list_logical_types(definition):
        if name in ("timestamp-nanos", "local-timestamp-nanos"):
            yield Remark(
                (*part.parts, "logicalType"),
                f"Only Avro from 1.12 on knows `{name}`: {part.field} is a plain long for the clients of Pulsar 4.0, and for Spark before 4.3.",
                field=part.field,
            )


def check_decimal_defaults(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the defaults that are decimals of no bytes."""
    for part in definition.of_kind("field"):
        kind = part.keys["type"]
        branches = kind if isinstance(kind, list) else [kind]
        types = [each.get("type") if isinstance(each, dict) else each for each in branches]
        # A text is of the first branch that holds one.
        text = next((at for at, name in enumerate(types) if name in ("string", "bytes")), None)
        if part.keys.get("default") != "" or text is None or types[text] != "bytes":
            continue
        match branches[text]:
            case {"logicalType": "decimal"} as keys if not _explain_invalid_decimal(keys, None):
                yield Remark(
                    (*part.parts, "default"),
                    f"The default of {part.field} is a decimal of no bytes: a reader that makes a number of it fails on each message that lacks the field.",
                    field=part.field,
                )


def _list_logical_types(definition: LintedDefinition) -> Iterator[tuple[DefinitionPart, str]]:
    """Yield each type with a logical type."""
    for part in definition.parts:
        if part.kind != "field" and isinstance(name := part.keys.get("logicalType"), str):
            yield part, name


def _get_type_name(part: DefinitionPart) -> str:
    return str(part.keys["type"])


def _explain_ignored_type(part: DefinitionPart, name: str) -> tuple[str, str] | None:
    """Return why a logical type has no effect, and what to write; None: it has one."""
    kind, of = _get_type_name(part), _LOGICAL_TYPES[name]
    if kind not in of:
        return f"it stands on {' or '.join(of)}", f"Write it on {' or '.join(of)}, or remove it."
    size = part.keys.get("size") if kind == "fixed" else None
    if size is not None and size != _FIXED_SIZES.get(name, size):
        return f"it stands on {_FIXED_SIZES[name]} bytes, not on {size}", f'Write "size": {_FIXED_SIZES[name]}.'
    return _explain_invalid_decimal(part.keys, size) if name == "decimal" else None


def _explain_invalid_decimal(keys: Mapping[str, Any], size: int | None) -> tuple[str, str] | None:
    precision, scale = keys.get("precision"), keys.get("scale", 0)
    if type(precision) is not int or precision < 1:
        return "it has no precision", 'Write the most digits that a value has: "precision": 18, "scale": 2.'
    if type(scale) is not int or not 0 <= scale <= precision:
        return "its scale is no number up to its precision", f'Write "scale": 0 to {precision}.'
    digits = math.floor(math.log10(2) * (8 * size - 1)) if size else precision
    if precision > digits:
        return f"{size} bytes hold {digits} digits", f'Write "precision": {digits}, or a larger size.'
    return None


# Conventions: names, docs, the order of fields


def check_name_style(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the names of fields, types and symbols that are not in the project's style."""
    names = definition.project.names
    for part in definition.of_kind("field"):
        yield from _check_name(part.keys.get("name"), names.fields, (*part.parts, "name"), part.field)
    for part in definition.of_kind("record", "enum", "fixed"):
        yield from _check_name(part.full_name.rpartition(".")[2], names.types, (*part.parts, "name"), part.field)
    for part in definition.of_kind("enum"):
        symbols = part.keys.get("symbols")
        for index, symbol in enumerate(symbols if isinstance(symbols, list) else ()):
            yield from _check_name(symbol, names.symbols, (*part.parts, "symbols", str(index)), part.field)


def _check_name(name: object, style: str, parts: Tokens, field: str) -> Iterator[Remark]:
    if isinstance(name, str) and not _STYLES[style].fullmatch(name):
        yield Remark(parts, f"`{name}` is not written in {style}.", field=field)


def check_docs(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the types and fields without a doc."""
    for part in definition.of_kind("record", "enum", "fixed", "field"):
        if not part.keys.get("doc"):
            what = "field" if part.kind == "field" else part.kind
            yield Remark(part.parts, f"The {what} {part.full_name or part.field} has no doc.", field=part.field)


def check_field_order(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the fields without default that stand behind one with a default."""
    for record in definition.of_kind("record"):
        fields = record.keys.get("fields")
        first = None
        for index, each in enumerate(fields if isinstance(fields, list) else ()):
            if not isinstance(each, dict):
                continue
            if "default" in each:
                first = first or each.get("name")
            elif first:
                at = (*record.parts, "fields", str(index))
                message = f"{record.field}.{each.get('name')} has no default, and stands behind {first}, which has one."
                yield Remark(at, message, field=f"{record.field}.{each.get('name')}")


# Fields that are hard to change later


def check_recursion(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the places where a record refers to one that it stands in."""
    for part in definition.of_kind("reference"):
        written = part.keys.get("type", part.value)
        for name in {part.full_name, written} & {*part.inside}:
            yield Remark(
                part.parts,
                f"{part.field} holds {name} again, to any depth: `generate` rejects that without --recursion-depth, and Spark has no such column.",
                field=part.field,
            )


def check_optional_fields(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the fields that may be null, and have no default."""
    for part in definition.of_kind("field"):
        branches = part.keys["type"]
        if not isinstance(branches, list) or "default" in part.keys:
            continue
        names = [each.get("type") if isinstance(each, dict) else each for each in branches]
        # One that is misspelt is a remark of its own.
        if "null" not in names or "default" in dict(find_misspelled_keys(part)).values():
            continue
        is_first = names[0] == "null"
        yield Remark(
            part.parts,
            f"{part.field} may be null, and has no default: every writer must set it, and it cannot be removed or have been added "
            "without breaking readers.",
            'Add "default": null.' if is_first else 'Put "null" first, and add "default": null.',
            part.field,
            edit=AddKey(part.parts, ("type", "name"), "default", None) if is_first else None,
        )


# Topics, alone and next to others


def check_other_releases(declared: Declared, project: Project, only: Collection[TopicName]) -> Iterator[_TopicRemark]:
    """Yield what brokers of other releases reject; the defaults of a later branch of a union apart."""
    others = [release for release in Release if release is not project.release]
    for name in only:
        info = declared.catalog.topics[name].schema
        found: dict[InvalidSchema, list[Release]] = defaultdict(list)
        same: dict[tuple[str, str], InvalidSchema] = {}
        for release in others:
            for each in _find_problems(info, release) if info else ():
                found[same.setdefault((each.pointer, each.what), each)].append(release)
        for each, releases in found.items():
            rule = "DEFAULT_OF_OTHER_BRANCH" if each.pointer.endswith("/default") else "RELEASE_REJECTS"
            named = " and ".join(release.value for release in releases)
            message = f"Pulsar {named} would reject {name}, which {project.release} accepts: {each.what}."
            fix = each.fix and f"{each.fix[0].upper()}{each.fix[1:]}."
            source = info.locate(each.pointer) if info else None
            yield rule, name, source, Remark(tokens(each.pointer), message, fix)


def _find_problems(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
    """Yield why Avro in that release rejects the definition, or a half of it. What only uploads meet is `check`'s to say."""
    pair = pair_of(info)
    for half, each in pair.halves.items() if pair else [("", info)]:
        for problem in avro_problems(each.schema, release) if spec(each).language == "avro" else ():
            at = f"/{half}{problem.pointer}" if half else problem.pointer
            yield InvalidSchema(problem.what, pointer=at, fix=problem.fix)


def check_sibling_namespaces(
    declared: Declared, _project: Project, only: Collection[TopicName]
) -> Iterator[_TopicRemark]:
    """Yield the topics whose type has another namespace than nearly all types of its Pulsar namespace."""
    found: dict[NamespaceName, dict[TopicName, str]] = defaultdict(dict)
    for name, files in declared.written.items():
        schema = declared.catalog.topics[name].schema if name in declared.catalog.topics else None
        if files and schema and schema.type.name != "KEY_VALUE":
            space = _get_namespace(files[0].value)
            if space is not None:
                found[name.namespace_name][name] = space
    for spaces in found.values():
        (custom, followers), *_ = Counter(spaces.values()).most_common(1)
        if followers < max(_MIN_SIBLINGS, len(spaces) * 3 // 4):
            continue
        for name, space in spaces.items():
            if space != custom and name in only:
                file = declared.written[name][0]
                parts = ("namespace",) if "namespace" in file.value else ("name",)
                message = (
                    f"The type of {name} is in {f'the namespace {space}' if space else 'no namespace'}; those of "
                    f"{counted(followers, 'other topic')} in {name.namespace_name} are in {custom or 'none'}."
                )
                fix = f'Write "namespace": "{custom}", before anybody generates classes of it.' if custom else ""
                yield "NAMESPACE_UNLIKE_SIBLINGS", name, file.locate(parts), Remark(parts, message, fix)


def _get_namespace(value: Any) -> str | None:
    """Return the namespace of a named type, "" if it has none; None if it is no named type."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    return own_names(value, None)[1] or ""


# Tables of the rules


_DEFINITION_RULES: Final[Mapping[str, _RuleFunction]] = {
    "KEY_IGNORED": check_keys,
    "LOGICAL_TYPE_UNKNOWN": check_logical_type_names,
    "LOGICAL_TYPE_IGNORED": check_logical_types,
    "TIMESTAMP_NANOS": check_nanoseconds,
    "DECIMAL_DEFAULT_EMPTY": check_decimal_defaults,
    "OPTIONAL_WITHOUT_DEFAULT": check_optional_fields,
    "RECURSION_UNBOUNDED": check_recursion,
    "NAME_STYLE": check_name_style,
    "DOC_MISSING": check_docs,
    "FIELD_ORDER": check_field_order,
}
"""What each rule on definitions looks for."""


_TOPIC_RULES: Final = (check_other_releases, check_sibling_namespaces)
"""The same of rules on topics."""


# `lint --fix`


def fixed(files: Files, project: Project, declared: Declared, linted: Iterable[Linted]) -> dict[str, bytes]:
    """Return the new contents of the files that the harmless edits of `linted` change.

    Args:
        files: in which the definitions stand.
        project: whose files they are.
        declared: what they declare.
        linted: what was found there.
    """
    edits: dict[str, set[Replacement]] = {}
    for each in linted:
        done = make_replacement(each.file, each.remark.edit) if each.remark.edit else None
        if done:
            edits.setdefault(each.file.path, set()).add(done)

    def contents(chosen: Mapping[str, Iterable[Replacement]]) -> dict[str, bytes]:
        return {
            path: apply_replacements(decode(path, read_bytes(files, path)), changes).encode()
            for path, changes in chosen.items()
        }

    kept = proved(files, project, declared, contents(edits), is_harmless)
    good = {path: edits[path] for path in kept}
    # One edit of these files does harm: which one it is, only trying shows.
    left = [(path, edit) for path in sorted(edits.keys() - kept.keys()) for edit in sorted(edits[path])]
    for path, edit in left[:_MAX_TRIED_EDITS]:
        tried = {**good, path: {*good.get(path, ()), edit}}
        if (one := proved(files, project, declared, contents(tried), is_harmless)).keys() == tried.keys():
            good, kept = tried, one
    return kept


def is_harmless(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Return whether each of two schemas reads all messages of the other."""
    if identity(one) == identity(other):
        return True
    return not (any(resolve(reader=one, writer=other)) or any(resolve(reader=other, writer=one)))


def make_replacement(file: AvroFile, edit: Edit) -> Replacement | None:
    """Return the edit as a replacement in the file's text; None if it can be made only by hand."""
    if isinstance(file.text, YamlPart):
        return _make_yaml_replacement(file.text, edit)
    if file.path.endswith(AVRO_SUFFIXES):
        return _make_json_replacement(file.text, edit)
    # JSON in a text of YAML.
    return None


def _make_json_replacement(text: JsonText, edit: Edit) -> Replacement | None:
    scan = text.scan()
    if isinstance(edit, RenameKey):
        number = nearest(0, edit.parts, scan.child)
        return scan.keys[number], scan.key_end(number), json.dumps(edit.to)
    number = nearest(0, (*edit.parts, edit.behind[0]), scan.child)
    key, end = scan.keys[number], scan.stops[number]
    line = text.text.rfind("\n", 0, key) + 1
    margin = text.text[line:key]
    gap = f"\n{margin}" if line and not margin.strip() else " "
    gap = gap.replace("\n", "\r\n") if text.text[line - 2 : line] == "\r\n" else gap
    return end, end, f",{gap}{json.dumps(edit.key)}: {json.dumps(edit.value)}"


def _make_yaml_replacement(part: YamlPart, edit: Edit) -> Replacement | None:
    if isinstance(edit, RenameKey):
        key = key_node(part.node(edit.parts[:-1]), edit.parts[-1])
        if key is None:
            return None
        quote = (isinstance(key, yaml.ScalarNode) and key.style) or ""
        return key.start_mark.index, key.end_mark.index, f"{quote}{edit.to}{quote}"
    node, text = part.node(edit.parts), part.text.data.decode()
    added = f"{scalar(edit.key)}: {json.dumps(edit.value)}"
    for name in edit.behind:
        key, value = key_node(node, name), part.node((*edit.parts, name))
        if key is None or not isinstance(node, yaml.MappingNode):
            continue
        end = value.end_mark.index
        if node.flow_style:
            return end, end, f", {added}"
        if key.start_mark.line == value.end_mark.line and not _is_block_scalar(value):
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end
            line_end -= text[line_end - 1 : line_end] == "\r"
            return line_end, line_end, f"\n{' ' * key.start_mark.column}{added}"
    return None


def _is_block_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def apply_replacements(text: str, replacements: Iterable[Replacement]) -> str:
    """Return the text after `replacements`, none of which overlap."""
    for start, end, new in sorted(set(replacements), reverse=True):
        text = text[:start] + new + text[end:]
    return text
