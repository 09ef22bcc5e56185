"""Judge PROTOBUF topics that replace or remove `proto:`: readers still have the approved `.proto`, so it judges as well."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from schemactl.checks.checked_files import CheckedFiles
from schemactl.checks.kinds import find_approved_kind
from schemactl.checks.proposal import KindKey
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.rules import get_builtin_rules
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.declare.definition import Definitions, Include
from schemactl.declare.document import SchemaDeclaration, TopicDocument, read_documents
from schemactl.declare.files import Files, read_bytes
from schemactl.history.approved_history import History


class ChangedProto(NamedTuple):
    """A PROTOBUF topic or kind that replaces or removes `proto:`.

    Attributes:
        approved_declaration: the approved declaration.
        schema: the new schema with the current content of the approved `.proto`, or None if that no longer exists.
    """

    approved_declaration: SchemaDeclaration
    schema: SchemaInfo | None


def find_changed_protos(
    checked: CheckedFiles, proposed_catalog: Catalog, approved_history: History, *, unchanged: Collection[TopicName]
) -> dict[KindKey, ChangedProto]:
    """Find the PROTOBUF topics and kinds that replace or remove `proto:`.

    Args:
        checked: the checked files.
        proposed_catalog: their declarations.
        approved_history: the approved history at its tip.
        unchanged: the topics that the branch did not change.
    """
    definitions = Definitions(checked.files, include=Include.of(checked.proposed_project))
    changed_protos: dict[KindKey, ChangedProto] = {}
    for name, topic in proposed_catalog.topics.items():
        for part in topic.split():
            if part.schema is None or part.schema.type is not SchemaType.PROTOBUF or name in unchanged:
                continue
            approved_topic = approved_history.catalog.topics.get(name)
            approved_kind = find_approved_kind(approved_topic, part) if approved_topic else None
            approved_declaration = approved_history.read_declaration(name, approved_kind.key if approved_kind else "")
            declaration = _read_declaration(checked.files, part)
            is_changed = declaration is None or (
                approved_declaration and _get_proto(declaration) != _get_proto(approved_declaration)
            )
            if approved_declaration and approved_declaration.proto and is_changed:
                approved_schema = definitions.read(approved_declaration).info
                proto = approved_schema.proto if approved_schema else None
                schema = replace(part.schema.load(), proto=proto) if proto else None
                changed_protos[name, part.kind] = ChangedProto(approved_declaration, schema)
    return changed_protos


def check_changed_protos(
    changed_protos: Mapping[KindKey, ChangedProto], checked: CheckedFiles, proposed_catalog: Catalog
) -> Iterator[Finding]:
    """Yield a warning for each topic that replaces or removes `proto:`, because the file judges its messages."""
    for (name, kind), (approved_declaration, schema) in changed_protos.items():
        whole = proposed_catalog.topics[name]
        topic = next(part for part in whole.split() if part.kind == kind)
        declaration = _read_declaration(checked.files, topic)
        path, message = _get_proto(approved_declaration)
        if declaration is None or declaration.proto is None:
            effect = f"{name} no longer declares `proto:`, so its messages are no longer checked"
        else:
            effect = f"{name} declares `proto: {declaration.proto}` and `message: {declaration.message}`"
        judged = (
            "This change is also checked against that message"
            if schema
            else "The file no longer exists, so its messages are not compared"
        )
        yield Finding(
            rule="GATE_CHANGED",
            severity="warning",
            verdict="declaration",
            topic=name,
            source=topic.locate("/schema/proto"),
            kind=kind,
            message=f"{name} was approved with messages of type {message} from {path}. {judged}.\nAfter the merge: {effect}.",
            fix=get_builtin_rules()["GATE_CHANGED"].fix,
        )


def _read_declaration(files: Files, topic: Topic) -> SchemaDeclaration | None:
    """Return the declaration of a topic's schema, or of its kind, in `files`, or None if the files do not declare it."""
    path = topic.source.path if topic.source else ""
    for document in read_documents(path, read_bytes(files, path)).documents:
        if isinstance(document, TopicDocument) and document.topic.name == topic.name:
            return document.kinds.get(topic.kind) if topic.kind else document.schema
    return None


def _get_proto(declaration: SchemaDeclaration) -> tuple[str, str]:
    """Return the `.proto` path from the repository's top and the message of a declaration, or empty texts without `proto:`."""
    if declaration.proto is None:
        return "", ""
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(declaration.text.path), declaration.proto)
    ), declaration.message
