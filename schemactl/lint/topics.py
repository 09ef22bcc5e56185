"""Rules about a topic's whole schema, alone or next to those of other topics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import Any, Final

from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Release, SchemaInfo
from schemactl.core.wording import counted
from schemactl.declare.reader import Declared
from schemactl.declare.references import own_names
from schemactl.declare.source_location import tokens
from schemactl.formats import pair_of, spec
from schemactl.formats.avro.parser import problems as avro_problems
from schemactl.lint.definition import Remark

TopicRemark = tuple[str, TopicName, Source | None, Remark]
"""A rule, and what it says of a topic, at which place."""

_SIBLINGS: Final = 3
"""So many topics make a custom."""


def rejected_elsewhere(
    declared: Declared, project: Project, only: Collection[TopicName]
) -> Iterator[TopicRemark]:
    """Yield what brokers of other releases reject; the defaults of a later branch of a union apart."""
    others = [release for release in Release if release is not project.release]
    for name in only:
        info = declared.catalog.topics[name].schema
        found: dict[InvalidSchema, list[Release]] = defaultdict(list)
        same: dict[tuple[str, str], InvalidSchema] = {}
        for release in others:
            for each in _rejections(info, release) if info else ():
                found[same.setdefault((each.pointer, each.what), each)].append(release)
        for each, releases in found.items():
            rule = "DEFAULT_OF_OTHER_BRANCH" if each.pointer.endswith("/default") else "RELEASE_REJECTS"
            named = " and ".join(release.value for release in releases)
            message = f"Pulsar {named} would reject {name}, which {project.release} accepts: {each.what}."
            fix = each.fix and f"{each.fix[0].upper()}{each.fix[1:]}."
            source = info.locate(each.pointer) if info else None
            yield rule, name, source, Remark(tokens(each.pointer), message, fix)


def _rejections(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
    """Yield why Avro in that release rejects the definition, or a half of it. What only uploads meet is `check`'s to say."""
    pair = pair_of(info)
    for half, each in pair.halves.items() if pair else [("", info)]:
        for problem in avro_problems(each.schema, release) if spec(each).language == "avro" else ():
            at = f"/{half}{problem.pointer}" if half else problem.pointer
            yield InvalidSchema(problem.what, pointer=at, fix=problem.fix)


def unlike_siblings(
    declared: Declared, _project: Project, only: Collection[TopicName]
) -> Iterator[TopicRemark]:
    """Yield the topics whose type has another namespace than nearly all types of its Pulsar namespace."""
    found: dict[NamespaceName, dict[TopicName, str]] = defaultdict(dict)
    for name, files in declared.written.items():
        schema = declared.catalog.topics[name].schema if name in declared.catalog.topics else None
        if files and schema and schema.type.name != "KEY_VALUE":
            space = _namespace(files[0].value)
            if space is not None:
                found[name.namespace_name][name] = space
    for spaces in found.values():
        (custom, followers), *_ = Counter(spaces.values()).most_common(1)
        if followers < max(_SIBLINGS, len(spaces) * 3 // 4):
            continue
        for name, space in spaces.items():
            if space != custom and name in only:
                file = declared.written[name][0]
                parts = ("namespace",) if "namespace" in file.value else ("name",)
                message = (
                    f"The type of {name} is in {f'the namespace {space}' if space else 'no namespace'}; those of "
                    f"{counted(followers, 'other topic')} in {name.namespace_name} are in {custom or 'none'}."
                )
                fix = (
                    f'Write "namespace": "{custom}", before anybody generates classes of it.'
                    if custom
                    else ""
                )
                yield "NAMESPACE_UNLIKE_SIBLINGS", name, file.locate(parts), Remark(parts, message, fix)


def _namespace(value: Any) -> str | None:
    """Return the namespace of a named type, "" if it has none; None if it is no named type."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    return own_names(value, None)[1] or ""
