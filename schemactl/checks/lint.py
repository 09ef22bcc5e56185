"""Check valid declarations for problems that they cause later (`lint`), and edit files to fix them (`lint --fix`).

Rules check the written definition instead of the result of Avro's parser, which drops unknown keys.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final, Literal, Protocol

from schemactl.checks.check_report import ORDER, CheckReport
from schemactl.checks.proposal import Comparison
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.edits import AddKey, DefinitionEdit, RenameKey, TextEdit, apply_edits
from schemactl.core.environment import list_entry_points
from schemactl.core.errors import Source, find_close_match
from schemactl.core.findings import Finding
from schemactl.core.json_pointer import join_pointer, split_pointer
from schemactl.core.names import NamespaceName, TopicName, format_kind_name
from schemactl.core.project import Project
from schemactl.core.rules import LINT_RULES, Rule, get_all_rules
from schemactl.core.schema import Release, SchemaInfo
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count
from schemactl.declare.files import Files, decode, read_bytes
from schemactl.declare.reader import Declared
from schemactl.declare.references import AvroFile, own_names
from schemactl.declare.rewriting import select_harmless_rewrites
from schemactl.declare.source_location import Tokens
from schemactl.declare.text_edits import make_text_edit
from schemactl.formats import find_misreadings, get_parts, identity, resolve, spec
from schemactl.formats.avro.go_definitions import find_changes
from schemactl.formats.avro.parser import find_problems as find_avro_problems
from schemactl.formats.avro.schema import LOGICAL_TYPES, PRIMITIVE_TYPES, qualify
from schemactl.formats.native_definitions import find_variants, list_native_parts

_NAMED_KINDS = ("record", "enum", "fixed")

_NAMED_TYPE_KEYS: Final = ("type", "name", "namespace", "doc", "aliases")

_LOGICAL_TYPE_KEYS: Final = ("logicalType", "precision", "scale")

Kind = Literal["record", "enum", "fixed", "array", "map", "union", "primitive", "reference", "field"]

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
"""The keys that Avro knows, by the kind of the part."""

_HARMLESS_KEYS: Final = frozenset({"default", "aliases", "doc", "order"})
"""Keys whose spelling can be corrected without changing names, bytes or columns."""

_FIXED_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "duration": 12}
"""The size of a fixed with a logical type, in bytes."""

_STYLES: Final = {
    "snake_case": re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*"),
    "camelCase": re.compile(r"_?[a-z][a-zA-Z0-9]*"),
    "PascalCase": re.compile(r"[A-Z][a-zA-Z0-9]*"),
    "UPPER_CASE": re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*"),
    "any": re.compile(r".*", re.DOTALL),
}

_MIN_SIBLINGS: Final = 3
"""Minimum number of topics that establish a convention."""

_MAX_TRIED_EDITS: Final = 20
"""Maximum number of edits that are tried one by one, because each reads all declarations again."""


@dataclass(frozen=True, slots=True)
class Linted:
    """A remark on a definition, and its finding for one topic."""

    finding: Finding
    file: AvroFile
    remark: Remark


def lint(declared: Declared, project: Project, selected: frozenset[TopicName]) -> tuple[CheckReport, list[Linted]]:
    """Check declarations against all enabled lint rules.

    Args:
        declared: the declarations.
        project: the project with the settings of the rules.
        selected: the topics to check.

    Returns:
        The report, and the remarks on definitions with their findings, which `apply_harmless_edits` can fix.

    Raises:
        SchemactlError: if a rule from another package is not valid.
    """
    known_rules = get_all_rules()
    functions_by_rule = {
        **_DEFINITION_RULES,
        **{entry.name: entry.load()().look for entry in list_entry_points(LINT_RULES)},
    }
    comparison = Comparison(declared.catalog, Catalog(), project, known_rules)

    # A type that topics share is checked once.
    @cache
    def read_definition(file: AvroFile) -> LintedDefinition:
        return LintedDefinition.of(file, project)

    @cache
    def list_remarks(rule: str, file: AvroFile) -> list[Remark]:
        return list(functions_by_rule[rule](read_definition(file)))

    linted_remarks = []
    for name in sorted(selected):
        enabled_rules = [rule for rule in functions_by_rule if comparison.is_enabled(rule, name)]
        for file in declared.avro_files.get(name, ()):
            for rule in enabled_rules:
                for remark in list_remarks(rule, file):
                    locate = file.text.locate_key if remark.of_key else file.text.locate
                    edit = make_text_edit(file, remark.edit) if remark.edit else None
                    findings_of_remark = _make_finding(comparison, rule, name, locate(remark.parts), remark, edit)
                    linted_remarks += [Linted(finding, file, remark) for finding in findings_of_remark]
    findings_of_topics = [
        finding
        for check in _TOPIC_RULES
        for rule, name, source, remark in check(declared, project, dict.fromkeys(sorted(selected)))
        for finding in _make_finding(comparison, rule, name, source, remark)
    ]

    def make_sort_key(finding: Finding) -> tuple[int, str]:
        source = finding.source
        return ORDER[finding.severity], f"{source.path}:{source.line:9}:{source.column:9}" if source else ""

    findings = sorted((*(linted.finding for linted in linted_remarks), *findings_of_topics), key=make_sort_key)
    report = CheckReport(project.release, "", len(selected), findings=tuple(findings), settings=project.path)
    return report, linted_remarks


def _make_finding(
    comparison: Comparison,
    rule: str,
    name: TopicName,
    source: Source | None,
    remark: Remark,
    edit: TextEdit | None = None,
) -> Iterator[Finding]:
    # A rule that is off by default gets the severity that the project sets.
    severity = comparison.get_severity(rule, name, comparison.rules[rule].severity)
    return comparison.make_finding(
        rule,
        comparison.declared.topics[name],
        remark.message,
        source=source,
        fix=remark.fix,
        field=remark.field,
        pointer=join_pointer(remark.parts),
        severity=None if severity == "off" else severity,
        edit=edit,
    )


# Definitions, rules and remarks


class LintRule(Protocol):
    """A rule on definitions. Other packages add rules with the entry point group `schemactl.lint_rules`."""

    rule: Rule

    def look(self, definition: LintedDefinition) -> Iterator[Remark]:
        """Yield the remarks of the rule on one definition."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LintedDefinition:
    """A definition, split into the parts that rules check.

    Attributes:
        file: the file with the definition and its value.
        parts: the types and fields of the definition, in document order.
        project: the project with the settings of the rules.
    """

    file: AvroFile
    parts: tuple[DefinitionPart, ...]
    project: Project

    @classmethod
    def of(cls, file: AvroFile, project: Project) -> LintedDefinition:
        """Split the definition in `file`, which Avro's parser accepts, into its parts."""
        return cls(file, tuple(_walk_type(file.value, (), "", None, ())), project)

    def of_kind(self, *kinds: Kind) -> Iterator[DefinitionPart]:
        """Yield the parts of these kinds."""
        return (part for part in self.parts if part.kind in kinds)


@dataclass(frozen=True, slots=True, eq=False)
class DefinitionPart:
    """A type or a field of a definition.

    Attributes:
        kind: such as `record` or `field`; `reference` is the name of a type that is defined elsewhere.
        value: the written value: an object, a list (of a union), or a name.
        parts: the location in the definition, as tokens of a JSON pointer.
        field: the path in messages, such as `Order.lines[].price`.
        full_name: the full name of a named or referenced type; empty for other kinds.
        inside: the full names of the enclosing records, the outermost first.
    """

    kind: Kind
    value: Any
    parts: Tokens
    field: str
    full_name: str = ""
    inside: tuple[str, ...] = ()

    @property
    def keys(self) -> Mapping[str, Any]:
        """The keys and values of an object; empty for a name or a list."""
        return self.value if isinstance(self.value, dict) else {}


def _walk_type(
    value: Any, parts: Tokens, field: str, namespace: str | None, enclosing_records: tuple[str, ...]
) -> Iterator[DefinitionPart]:
    """Yield the type in `value`, then its parts."""
    if isinstance(value, list):
        yield DefinitionPart("union", value, parts, field, "", enclosing_records)
        for index, branch in enumerate(value):
            yield from _walk_type(branch, (*parts, str(index)), field, namespace, enclosing_records)
        return
    kind: Any = value.get("type") if isinstance(value, dict) else value
    kind = "record" if kind == "error" else kind
    if isinstance(value, dict) and kind in _NAMED_KINDS:
        name = str(value.get("name"))
        full_name, inner_namespace = own_names(value, namespace)
        yield DefinitionPart(kind, value, parts, field or name, full_name, enclosing_records)
        fields = value.get("fields") if kind == "record" else None
        for index, field_value in enumerate(fields if isinstance(fields, list) else ()):
            # Types of a shared file that no topic uses have not been parsed.
            if isinstance(field_value, dict) and "type" in field_value:
                field_parts, field_path = (*parts, "fields", str(index)), f"{field or name}.{field_value.get('name')}"
                yield DefinitionPart("field", field_value, field_parts, field_path, "", (*enclosing_records, full_name))
                yield from _walk_type(
                    field_value["type"],
                    (*field_parts, "type"),
                    field_path,
                    inner_namespace,
                    (*enclosing_records, full_name),
                )
    elif isinstance(value, dict) and kind in ("array", "map"):
        yield DefinitionPart(kind, value, parts, field, "", enclosing_records)
        child_key, suffix = ("items", "[]") if kind == "array" else ("values", "{}")
        yield from _walk_type(
            value.get(child_key), (*parts, child_key), f"{field}{suffix}", namespace, enclosing_records
        )
    elif isinstance(kind, str) and kind in PRIMITIVE_TYPES:
        yield DefinitionPart("primitive", value, parts, field, "", enclosing_records)
    elif isinstance(kind, str):
        yield DefinitionPart("reference", value, parts, field, qualify(kind, namespace)[0], enclosing_records)


@dataclass(frozen=True, slots=True)
class Remark:
    """A problem that a rule reports for one place of a definition; each topic with the definition gets a finding.

    Attributes:
        parts: the location in the definition, as tokens of a JSON pointer.
        message: the problem, and when and whom it affects, in full sentences.
        fix: the correction to write, or empty for the default fix of the rule.
        field: the path of the part in messages.
        of_key: whether the location is the key instead of its value.
        edit: the edit that `--fix` makes, or None if it makes none.
    """

    parts: Tokens
    message: str
    fix: str = ""
    field: str = ""
    of_key: bool = False
    edit: DefinitionEdit | None = None


_RuleFunction = Callable[[LintedDefinition], Iterator[Remark]]

_TopicRemark = tuple[str, TopicName, Source | None, Remark]
"""The id of a rule, with a topic, the location of the problem and the remark."""


# Unknown and misplaced keys


def check_keys(definition: LintedDefinition) -> Iterator[Remark]:
    """Report misspelled keys, and defaults inside a type."""
    for part in definition.parts:
        for key, suggestion in find_misspelled_keys(part):
            key_parts = (*part.parts, key)
            yield Remark(
                key_parts,
                f"Avro does not know `{key}`, and keeps it as a property: {part.field} has no `{suggestion}`.",
                f"Write `{suggestion}`.",
                part.field,
                of_key=True,
                edit=RenameKey(join_pointer(key_parts), suggestion) if suggestion in _HARMLESS_KEYS else None,
            )
        if "default" in part.keys and "default" not in KNOWN_KEYS.get(part.kind, ()):
            yield Remark(
                (*part.parts, "default"),
                f"A default inside a type is kept as a property: {part.field} has no default.",
                "Write it next to the `type` of the field.",
                part.field,
                of_key=True,
            )


def find_misspelled_keys(part: DefinitionPart) -> Iterator[tuple[str, str]]:
    """Yield each misspelled key of `part` with its correction."""
    known_keys = KNOWN_KEYS.get(part.kind, ())
    for key in part.keys:
        if key not in known_keys:
            suggestion = find_misspelling(key, (known_key for known_key in known_keys if known_key not in part.keys))
            if suggestion:
                yield key, suggestion


def find_misspelling(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name of which `name` is surely a misspelling, ignoring case, or None.

    Two swapped letters are a large part of a short name, so the same letters in any order count as a misspelling.
    """
    names = list(known_names)
    anagrams = (known_name for known_name in names if sorted(known_name.lower()) == sorted(name.lower()))
    return next(anagrams, None) or find_close_match(name, names, likeness=0.8)


# Logical types


def check_logical_type_names(definition: LintedDefinition) -> Iterator[Remark]:
    """Report misspelled logical types. Names without a similar one in Avro are custom logical types."""
    for part, name in _list_logical_types(definition):
        suggestion = None if name in LOGICAL_TYPES else find_misspelling(name.replace("_", "-"), LOGICAL_TYPES)
        if suggestion:
            yield Remark(
                (*part.parts, "logicalType"),
                f"Avro does not know the logical type `{name}`: {part.field} is a plain {part.keys['type']}.",
                f"Write `{suggestion}`. Columns made of the field get another type.",
                part.field,
            )


def check_logical_types(definition: LintedDefinition) -> Iterator[Remark]:
    """Report logical types that Avro ignores, because of their place or their type."""
    for part in definition.of_kind("field"):
        if "logicalType" in part.keys and isinstance(part.keys["type"], str):
            yield Remark(
                (*part.parts, "logicalType"),
                f"A logical type next to the `type` of a field is kept as a property: {part.field} is a plain {part.keys['type']}.",
                f'Write it inside: "type": {{"type": "{part.keys["type"]}", "logicalType": "{part.keys["logicalType"]}"}}.',
                part.field,
                of_key=True,
            )
    for part, name in _list_logical_types(definition):
        if name in LOGICAL_TYPES and (reason := _explain_ignored_type(part, name)):
            yield Remark(
                (*part.parts, "logicalType"),
                f"Avro ignores `{name}` here, and {part.field} is a plain {part.keys['type']}: {reason[0]}.",
                reason[1],
                part.field,
            )


def check_nanoseconds(definition: LintedDefinition) -> Iterator[Remark]:
    """Report timestamps in nanoseconds, which older readers do not know."""
    for part, name in _list_logical_types(definition):
        if name in ("timestamp-nanos", "local-timestamp-nanos"):
            yield Remark(
                (*part.parts, "logicalType"),
                f"Only Avro from 1.12 on knows `{name}`: {part.field} is a plain long for the clients of Pulsar 4.0, "
                "and for Spark before 4.3.",
                field=part.field,
            )


def check_decimal_defaults(definition: LintedDefinition) -> Iterator[Remark]:
    """Report defaults that are decimals without bytes."""
    for part in definition.of_kind("field"):
        field_type = part.keys["type"]
        branches = field_type if isinstance(field_type, list) else [field_type]
        type_names = [branch.get("type") if isinstance(branch, dict) else branch for branch in branches]
        # A string default belongs to the first branch that accepts a string.
        string_branch = next((index for index, name in enumerate(type_names) if name in ("string", "bytes")), None)
        if part.keys.get("default") != "" or string_branch is None or type_names[string_branch] != "bytes":
            continue
        match branches[string_branch]:
            case {"logicalType": "decimal"} as keys if not _explain_invalid_decimal(keys, None):
                yield Remark(
                    (*part.parts, "default"),
                    f"The default of {part.field} is a decimal of no bytes: a reader that converts it to a number "
                    "fails on each message without the field.",
                    field=part.field,
                )


def _list_logical_types(definition: LintedDefinition) -> Iterator[tuple[DefinitionPart, str]]:
    """Yield each type with a logical type."""
    for part in definition.parts:
        if part.kind != "field" and isinstance(name := part.keys.get("logicalType"), str):
            yield part, name


def _explain_ignored_type(part: DefinitionPart, name: str) -> tuple[str, str] | None:
    """Return the reason why a logical type has no effect, and the fix, or None if it has an effect."""
    kind, allowed_types = part.keys["type"], LOGICAL_TYPES[name]
    if kind not in allowed_types:
        return f"it belongs on {' or '.join(allowed_types)}", f"Write it on {' or '.join(allowed_types)}, or remove it."
    size = part.keys.get("size") if kind == "fixed" else None
    if size is not None and size != _FIXED_SIZES.get(name, size):
        return f"it needs {_FIXED_SIZES[name]} bytes, not {size}", f'Write "size": {_FIXED_SIZES[name]}.'
    return _explain_invalid_decimal(part.keys, size) if name == "decimal" else None


def _explain_invalid_decimal(keys: Mapping[str, Any], size: int | None) -> tuple[str, str] | None:
    precision, scale = keys.get("precision"), keys.get("scale", 0)
    if type(precision) is not int or precision < 1:
        return "it has no precision", 'Write the largest number of digits of a value: "precision": 18, "scale": 2.'
    if type(scale) is not int or not 0 <= scale <= precision:
        return "its scale is not a number up to its precision", f'Write "scale": 0 to {precision}.'
    digits = math.floor(math.log10(2) * (8 * size - 1)) if size else precision
    if precision > digits:
        return f"{size} bytes have room for {digits} digits", f'Write "precision": {digits}, or a larger size.'
    return None


# Conventions: names, docs, the order of fields


def check_name_style(definition: LintedDefinition) -> Iterator[Remark]:
    """Report names of fields, types and symbols that are not in the project's style."""
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
    """Report types and fields without a doc."""
    for part in definition.of_kind("record", "enum", "fixed", "field"):
        if not part.keys.get("doc"):
            yield Remark(part.parts, f"The {part.kind} {part.full_name or part.field} has no doc.", field=part.field)


def check_field_order(definition: LintedDefinition) -> Iterator[Remark]:
    """Report fields without a default after a field with a default."""
    for record in definition.of_kind("record"):
        fields = record.keys.get("fields")
        first_with_default = None
        for index, field in enumerate(fields if isinstance(fields, list) else ()):
            if not isinstance(field, dict):
                continue
            if "default" in field:
                first_with_default = first_with_default or field.get("name")
            elif first_with_default:
                field_parts = (*record.parts, "fields", str(index))
                message = f"{record.field}.{field.get('name')} has no default, but comes after {first_with_default}, which has one."
                yield Remark(field_parts, message, field=f"{record.field}.{field.get('name')}")


# Fields that are hard to change later


def check_recursion(definition: LintedDefinition) -> Iterator[Remark]:
    """Report references of a record to an enclosing record."""
    for part in definition.of_kind("reference"):
        written_name = part.keys.get("type", part.value)
        for name in {part.full_name, written_name} & {*part.inside}:
            yield Remark(
                part.parts,
                f"{part.field} contains {name} again, to any depth. Spark has no recursive columns, so `generate` "
                "skips the topic unless `recursion_depth` is set.",
                field=part.field,
            )


def check_optional_fields(definition: LintedDefinition) -> Iterator[Remark]:
    """Report nullable fields without a default."""
    for part in definition.of_kind("field"):
        branches = part.keys["type"]
        if not isinstance(branches, list) or "default" in part.keys:
            continue
        branch_names = [branch.get("type") if isinstance(branch, dict) else branch for branch in branches]
        # A misspelled default has its own remark.
        if "null" not in branch_names or "default" in dict(find_misspelled_keys(part)).values():
            continue
        is_null_first = branch_names[0] == "null"
        yield Remark(
            part.parts,
            f"{part.field} may be null, but has no default: every writer must set it, and adding or removing it breaks readers.",
            'Add "default": null.' if is_null_first else 'Put "null" first, and add "default": null.',
            part.field,
            edit=AddKey(join_pointer(part.parts), ("type", "name"), "default", None) if is_null_first else None,
        )


# Whole schemas, alone and compared with other topics


def check_other_releases(
    declared: Declared, project: Project, selected: Collection[TopicName]
) -> Iterator[_TopicRemark]:
    """Report schemas that another Pulsar release would reject. A separate rule covers defaults of later union branches."""
    other_releases = [release for release in Release if release is not project.release]
    for topic in _list_parts(declared, selected):
        name, schema = topic.name, topic.schema
        if schema is None:
            continue
        # Only problems that Avro has with a definition: `check` reports problems of uploads.
        avro_parts = {prefix: part for prefix, part in get_parts(schema).items() if spec(part).language == "avro"}
        fixes: dict[tuple[str, str], str] = {}
        releases_by_problem: dict[tuple[str, str], list[Release]] = defaultdict(list)
        for release, (prefix, part) in product(other_releases, avro_parts.items()):
            for problem in find_avro_problems(part.schema, release):
                key = f"{prefix}{problem.pointer}", problem.message
                fixes.setdefault(key, problem.fix)
                releases_by_problem[key].append(release)
        for (pointer, problem_message), releases in releases_by_problem.items():
            rule = "DEFAULT_OF_OTHER_BRANCH" if pointer.endswith("/default") else "RELEASE_REJECTS"
            release_names = " and ".join(release.value for release in releases)
            message = f"Pulsar {release_names} would reject {name}, which {project.release} accepts: {problem_message}."
            fix = fixes[pointer, problem_message]
            fix = fix and f"{fix[0].upper()}{fix[1:]}."
            yield rule, name, schema.locate(pointer), Remark(split_pointer(pointer), message, fix)


def check_client_forms(declared: Declared, project: Project, selected: Collection[TopicName]) -> Iterator[_TopicRemark]:
    """Report producers whose client may send another text than the form of its language."""
    for topic in _list_parts(declared, selected):
        name = topic.name
        if topic.schema is None or not list_native_parts(topic.schema):
            continue
        languages = {
            f"/clients/{index}/language": (client.client_language, f"The producer {client.name}")
            for index, client in enumerate(topic.clients)
            if client.role == "producer"
        }
        if not languages and (rendering := topic.rendering or project.rendering):
            pointer = "/protobuf/rendering" if topic.rendering else "/schema/definition"
            languages = {pointer: (rendering, "A producer")}
        for pointer, (language, subject) in languages.items():
            for variant in find_variants(topic.schema, language) if language else ():
                message = (
                    f"{subject} may send another definition of {name} than the form of Pulsar's client of "
                    f"{(language or '').capitalize()}: {variant}. "
                    "A broker compares bytes."
                )
                yield "CLIENT_FORM_VARIES", name, topic.locate(pointer), Remark(split_pointer(pointer), message)


def _list_parts(declared: Declared, selected: Collection[TopicName]) -> Iterator[Topic]:
    """Yield the topics `selected`, once for each of their kinds of events."""
    for name in selected:
        yield from declared.catalog.topics[name].split()


def check_sibling_namespaces(
    declared: Declared, _project: Project, selected: Collection[TopicName]
) -> Iterator[_TopicRemark]:
    """Report topics whose type is in another namespace than most types of their Pulsar namespace."""
    namespaces_by_pulsar_namespace: dict[NamespaceName, dict[TopicName, str]] = defaultdict(dict)
    for name, files in declared.avro_files.items():
        schema = declared.catalog.topics[name].schema if name in declared.catalog.topics else None
        if files and schema and schema.type.name != "KEY_VALUE":
            value = files[0].value
            if isinstance(value, dict) and isinstance(value.get("name"), str):
                namespaces_by_pulsar_namespace[name.namespace_name][name] = own_names(value, None)[1] or ""
    for namespaces in namespaces_by_pulsar_namespace.values():
        (usual_namespace, topic_count), *_ = Counter(namespaces.values()).most_common(1)
        if topic_count < max(_MIN_SIBLINGS, len(namespaces) * 3 // 4):
            continue
        for name, namespace in namespaces.items():
            if namespace != usual_namespace and name in selected:
                file = declared.avro_files[name][0]
                parts = ("namespace",) if "namespace" in file.value else ("name",)
                message = (
                    f"The type of {name} is in {f'the namespace {namespace}' if namespace else 'no namespace'}; those of "
                    f"{format_count(topic_count, 'other topic')} in {name.namespace_name} are in {usual_namespace or 'none'}."
                )
                fix = (
                    f'Write "namespace": "{usual_namespace}", before classes are generated from it.'
                    if usual_namespace
                    else ""
                )
                yield "NAMESPACE_UNLIKE_SIBLINGS", name, file.locate(parts), Remark(parts, message, fix)


# Languages of declared clients

_TYPES_BY_LANGUAGE: Final[Mapping[str, frozenset[str]]] = {
    "go": frozenset(
        {
            *("STRING", "JSON", "PROTOBUF", "AVRO", "PROTOBUF_NATIVE"),
            *("INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE"),
        }
    ),
    "python": frozenset({"STRING", "JSON", "AVRO", "PROTOBUF_NATIVE"}),
}
"""The schema types that Pulsar's clients in a language have."""


def _find_unsupported_types(topic: Topic) -> Iterator[_TopicRemark]:
    """Yield a declared client for each language whose client has no schema of the topic's type; `topic` may be one kind of events."""
    languages = {client.known_language: index for index, client in reversed([*enumerate(topic.clients)])}
    for language, index in languages.items():
        types = _TYPES_BY_LANGUAGE.get(language)
        if types and topic.schema and topic.schema.type.name not in types:
            client = on_one_line(topic.clients[index].name)
            message = (
                f"{language.capitalize()}'s client has no {topic.schema.type.name} schema: {client} connects to "
                f"{format_kind_name(topic.name, topic.kind)} without a schema, and reads and writes bytes."
            )
            yield "CLIENT_TYPE_UNSUPPORTED", topic.name, topic.locate(f"/clients/{index}/language"), Remark((), message)


def check_client_languages(
    declared: Declared, project: Project, selected: Collection[TopicName]
) -> Iterator[_TopicRemark]:
    """Report schemas that the client of a declared language lacks, registers in another form, or writes differently."""
    for name in selected:
        topic = declared.catalog.topics[name]
        languages = {client.known_language: index for index, client in reversed([*enumerate(topic.clients)])}
        schema = topic.schema
        if schema is None:
            continue
        for topic_part in topic.split():
            yield from _find_unsupported_types(topic_part)
        is_number = schema.type.name in ("INT16", "INT32", "INT64")
        other_languages = languages.keys() - {"go", ""}
        has_other_order = bool(other_languages) if topic.integers == "little" else "go" in languages
        if is_number and has_other_order:
            message = (
                f"Go's client writes and reads the {schema.type.name} of {name} with the least significant byte "
                "first, all other clients with the most significant byte first, so each side reads wrong numbers "
                "from the other."
            )
            if topic.integers == "little":
                message += (
                    " The topic has `generate: {integers: little}`, so that packages read what Go's client writes."
                )
            yield "GO_BYTE_ORDER", name, topic.locate("/schema/type"), Remark(("schema", "type"), message)
        if "go" in languages and schema.type.name in ("AVRO", "JSON", "PROTOBUF"):
            for file in declared.avro_files.get(name, ()):
                for change in find_changes(file.value):
                    message = (
                        f"Go's client registers another definition of {name} than the declared one: {change.message}."
                    )
                    remark = Remark(change.parts, message, change.fix)
                    yield "GO_DEFINITION_DIFFERS", name, file.locate(change.parts), remark
        if "python" in languages and schema.type.name == "JSON":
            for file in declared.avro_files.get(name, ()):
                for part in LintedDefinition.of(file, project).of_kind("primitive"):
                    if (part.keys.get("type") or part.value) == "bytes" and "logicalType" not in part.keys:
                        message = (
                            f"{part.field} is bytes: the JsonSchema of Python's client writes and reads them as text, "
                            "all other clients and readers as base64."
                        )
                        yield (
                            "PYTHON_JSON_BYTES",
                            name,
                            file.locate(part.parts),
                            Remark(part.parts, message, "", part.field),
                        )


# The functions of the rules


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
"""The function of each rule on definitions."""

_TOPIC_RULES: Final = (check_other_releases, check_client_forms, check_sibling_namespaces, check_client_languages)
"""The functions of the rules on topics."""


# The edits of `lint --fix`


def apply_harmless_edits(
    files: Files, project: Project, declared: Declared, linted: Iterable[Linted]
) -> dict[str, bytes]:
    """Return the contents of the files after the harmless edits of `linted`, by path.

    An edit is harmless if old and new schema can read each other's messages.

    Args:
        files: the files with the definitions.
        project: the project of the files.
        declared: the declarations in the files.
        linted: the remarks, of which some have edits.
    """
    edits: dict[str, set[TextEdit]] = {}
    for item in linted:
        if item.finding.edit:
            edits.setdefault(item.file.path, set()).add(item.finding.edit)

    def edit_files(edits_by_path: Mapping[str, Iterable[TextEdit]]) -> dict[str, bytes]:
        return {
            path: apply_edits(decode(path, read_bytes(files, path)), file_edits).encode()
            for path, file_edits in edits_by_path.items()
        }

    contents_by_path = select_harmless_rewrites(files, project, declared, edit_files(edits), is_harmless)
    accepted = {path: edits[path] for path in contents_by_path}
    # At least one edit of each remaining file is harmful, so try the edits one by one.
    remaining_edits = [
        (path, edit) for path in sorted(edits.keys() - contents_by_path.keys()) for edit in sorted(edits[path])
    ]
    for path, edit in remaining_edits[:_MAX_TRIED_EDITS]:
        candidate = {**accepted, path: {*accepted.get(path, ()), edit}}
        new_contents = select_harmless_rewrites(files, project, declared, edit_files(candidate), is_harmless)
        if new_contents.keys() == candidate.keys():
            accepted, contents_by_path = candidate, new_contents
    return contents_by_path


def is_harmless(old_schema: SchemaInfo, new_schema: SchemaInfo) -> bool:
    """Return whether each schema reads all messages of the other as they were written."""
    if identity(old_schema) == identity(new_schema):
        return True
    pairs = ((old_schema, new_schema), (new_schema, old_schema))
    return not any(
        any(find_problems(reader=reader, writer=writer))
        for reader, writer in pairs
        for find_problems in (resolve, find_misreadings)
    )
