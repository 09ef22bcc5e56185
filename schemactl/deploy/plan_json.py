"""A plan as JSON, for reports and results, and its digest. The fields of `PlanDocument` are the keys, in their order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.comparison.revision_diff import VersionEffect
from schemactl.core import atomic_files
from schemactl.core.environment import get_version
from schemactl.core.errors import SchemactlError
from schemactl.core.findings import Direction, UpgradeFirst
from schemactl.core.json_values import (
    OPTIONAL,
    AnswerView,
    Json,
    WaiverView,
    json_pieces,
    list_members,
    make_view,
    to_json,
)
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit, Release
from schemactl.core.wording import get_name_type
from schemactl.deploy.broker_configuration import BrokerComparisonView
from schemactl.deploy.plan import Plan, PlanNoteKind, PlanRefusal, UnreadableDeclaration
from schemactl.deploy.steps.step import Step
from schemactl.deploy.version_lists import ListedTopic
from schemactl.deploy.version_numbers import MismatchView, list_mismatch_views

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT_VERSION = 1
"""The version of the format. Changes that readers must handle raise it; new keys do not."""

_NOT_IN_DIGEST: Final = frozenset(
    {
        "schemactl",
        "registry_version",
        "approved",
        "proposed",
        "unreadable",
        "brokers",
        "upgrade_first",
        "effects",
        "digest",
    }
)
"""The keys about the making of a plan and its commit; `left_out` also has the topics of unreadable declarations."""

_NOT_IN_DIGEST_OF_ENTRIES: Final = {
    "steps": {"commit"},
    "notes": {"message"},
    # Both name the commit of a version that is rejected.
    "left_out": {"reason", "fix"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    """A plan, format_version 1.

    Attributes:
        schemactl: the version of schemactl.
        registry_version: the release that the registry reports, or "".
        upgrade_first: the clients to upgrade first, for each topic (or `TOPIC#KIND`) with a version to register.
        effects: the effects of the versions to register on readers and clients.
        numbers_apart: the version numbers that will not be Git's after all steps.
        numbers_apart_now: whether the registry already has such a number that is not recorded.
        whole: whether it was made for all topics.
        lists: the version lists that a rebuild restores.
        digest: the digest for the approval of the plan.
    """

    format_version: int = FORMAT_VERSION
    schemactl: str
    target: str
    registry: str
    pulsar: Release
    registry_version: str
    approved: ApprovedView
    proposed: bool
    state: Json
    scope: ScopeEntry
    steps: tuple[Step, ...]
    notes: tuple[NoteEntry, ...]
    left_out: tuple[SkippedName | SkippedDeclaration, ...]
    unreadable: tuple[UnreadableView, ...]
    upgrade_first: Mapping[str, UpgradeFirst]
    effects: tuple[EffectEntry, ...]
    brokers: BrokerComparisonView | None
    numbers_apart: tuple[MismatchView, ...]
    numbers_apart_now: bool
    whole: bool
    lists: tuple[ListedTopic, ...] | None = field(default=None, metadata=OPTIONAL)
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ApprovedView:
    """The ref of the approved history or position, and its commit; null if nothing was approved yet."""

    ref: str
    commit: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeEntry:
    """The namespaces and topics that a plan covers; `settings` are the managed settings of each name that has some."""

    namespaces: list[str]
    topics: list[str]
    settings: Mapping[str, Sequence[str]] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A difference that remains after the plan."""

    topic: TopicName
    kind: PlanNoteKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedName:
    """A topic or namespace that the plan leaves out; it has one of the keys `topic` and `namespace`.

    Attributes:
        version: Git's number of the version that would be rejected.
        answer: the expected answer of the registry.
        wedged_by: the registry's version after which its brokers store nothing.
        allow: the address of the setting that could lose messages, which the user can allow.
    """

    topic: TopicName | None = field(default=None, metadata=OPTIONAL)
    namespace: NamespaceName | None = field(default=None, metadata=OPTIONAL)
    version: int | None
    answer: AnswerView | None
    reason: str
    fix: str
    wedged_by: int | None
    allow: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedDeclaration:
    """A declaration that cannot be read, with the keys of `SkippedName`; `topic` is null for a whole file."""

    topic: TopicName | None
    version: None = None
    answer: None = None
    reason: str
    fix: str
    wedged_by: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableView:
    """An approved declaration that cannot be read, in JSON."""

    topic: TopicName | None
    file: str
    line: int
    column: int
    problem: str
    commit: Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectEntry:
    """The effect of a version on readers and clients."""

    topic: TopicName
    version: int
    changes: tuple[PartEntry, ...]
    breaks: tuple[BreakEntry, ...]
    clients: tuple[ClientEntry, ...]


@dataclass(frozen=True, slots=True)
class PartEntry:
    """A changed part of a definition; `change` is the kind of change."""

    change: str
    sign: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEntry:
    """A reason why readers fail or get other values; `against` are the versions that break."""

    rule: str
    direction: Direction
    against: tuple[int, ...]
    reason: str
    is_error: bool
    waiver: WaiverView | None


@dataclass(frozen=True, slots=True)
class ClientEntry:
    """A declared client, whether it does not break, and the reason if it breaks."""

    client: str
    fine: bool
    reason: str | None


def make_plan_document(plan: Plan) -> PlanDocument:
    """Return the document of a plan, with its digest."""
    document = _make_document(plan)
    return replace(document, digest=_compute_digest(document))


def _make_document(plan: Plan) -> PlanDocument:
    """Return the document of a plan without its digest."""
    scope = plan.scope
    settings = {str(name): sorted(scope.get_settings(name)) for name in sorted(scope.settings, key=str)}
    return PlanDocument(
        schemactl=get_version(),
        target=plan.origin.target,
        registry=plan.origin.registry,
        pulsar=plan.origin.release,
        registry_version=plan.origin.version,
        approved=ApprovedView(plan.origin.ref, plan.origin.tip),
        proposed=plan.origin.proposed,
        state=plan.state,
        scope=ScopeEntry(
            namespaces=sorted(map(str, scope.namespaces)),
            topics=sorted(map(str, scope.topics)),
            settings=settings or None,
        ),
        steps=tuple(plan.steps),
        notes=tuple(NoteEntry(note.name, note.kind, note.message) for note in plan.notes),
        left_out=(*map(_make_skipped_name, plan.refusals), *map(_make_skipped_declaration, plan.unreadable)),
        unreadable=list_unreadable_views(plan.unreadable),
        upgrade_first=plan.upgrade_first,
        effects=tuple(_make_effect_entry(name, effect) for (name, _), effect in plan.effects.items()),
        brokers=BrokerComparisonView.from_comparison(plan.brokers),
        numbers_apart=list_mismatch_views(plan.number_mismatches),
        numbers_apart_now=plan.has_unrecorded_mismatch_now,
        whole=plan.whole,
        lists=plan.lists,
    )


def _make_skipped_name(refusal: PlanRefusal) -> SkippedName:
    return make_view(
        SkippedName,
        refusal,
        **{get_name_type(refusal.name): refusal.name},
        version=refusal.number,
        answer=AnswerView.from_answer(refusal.answer) if refusal.answer else None,
        reason=refusal.message,
        wedged_by=refusal.blocked_by,
    )


def _make_skipped_declaration(declaration: UnreadableDeclaration) -> SkippedDeclaration:
    return SkippedDeclaration(topic=declaration.topic, reason=declaration.message, fix=declaration.problem.fix)


def _make_effect_entry(name: TopicName, effect: VersionEffect) -> EffectEntry:
    change = effect.change
    return EffectEntry(
        topic=name,
        version=change.version.number,
        changes=tuple(PartEntry(part.kind, part.sign, part.text) for part in change.parts),
        breaks=tuple(
            make_view(BreakEntry, breakage, waiver=breakage.waiver and make_view(WaiverView, breakage.waiver))
            for breakage in change.breaks
        ),
        clients=(
            *(ClientEntry(client=client, fine=False, reason=reason) for client, reason in effect.broken),
            *(ClientEntry(client=client, fine=True, reason=None) for client in effect.safe),
        ),
    )


def plan_digest(plan: Plan) -> str:
    """Return the digest for the approval of a plan: equal for two plans if and only if they change the same registry in the same way.

    It covers contents and the target, not commits, so that a squash does not change it, and not whether a tenant exists: the plan of another
    namespace of the tenant may create it first. A declared namespace, or `--create-tenants`, permits that.
    """
    return _compute_digest(_make_document(plan))


def _compute_digest(document: PlanDocument) -> str:
    """Return the SHA-256 of a plan's document, without the keys about its making, commits and messages.

    The hashed text is JSON with sorted keys and without spaces. It is hashed member by member, because it can be large.
    """
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    digest = hashlib.sha256()
    members = sorted((key, member) for key, member in list_members(document) if key not in _NOT_IN_DIGEST)
    for index, (key, member) in enumerate(members):
        digest.update(f"{',' if index else '{'}{encode(key)}:".encode())
        if key == "state":
            digest.update(encode({**to_json(member), "missing_tenants": []}).encode())
            continue
        if key not in _NOT_IN_DIGEST_OF_ENTRIES:
            digest.update(encode(to_json(member)).encode())
            continue
        left_out, separator = _NOT_IN_DIGEST_OF_ENTRIES[key], "["
        for entry in member:
            values = to_json(entry)
            if values.get("action") == "create_tenant":
                continue
            digested = {name: value for name, value in values.items() if name not in left_out}
            digest.update(f"{separator}{encode(digested)}".encode())
            separator = ","
        digest.update(b"[]" if separator == "[" else b"]")
    digest.update(b"}")
    return f"sha256:{digest.hexdigest()}"


def list_unreadable_views(declarations: Iterable[UnreadableDeclaration]) -> tuple[UnreadableView, ...]:
    """Return approved declarations that cannot be read."""
    return tuple(
        UnreadableView(
            topic=declaration.topic,
            file=declaration.problem.source.path,
            line=declaration.problem.source.line,
            column=declaration.problem.source.column,
            problem=declaration.problem.message,
            commit=declaration.commit,
        )
        for declaration in declarations
    )


def encode_lines(document: DataclassInstance) -> Iterator[bytes]:
    """Yield the content of a file with a document as indented JSON, in pieces."""
    yield from (piece.encode() for piece in json_pieces(document))
    yield b"\n"


def write_json(document: DataclassInstance, path: Path, *, below: str | None = None) -> None:
    """Write a document to the file at `path` as indented JSON, atomically, without following links below `below`.

    Only the owner may read the file.

    Raises:
        SchemactlError: if the file cannot be written.
    """
    pieces = encode_lines(document)
    try:
        atomic_files.write(path, pieces, below=below, mode=atomic_files.PRIVATE_MODE, make_folders=False)
    except OSError as error:
        raise SchemactlError(
            f"{path} cannot be written: {error.strerror}", fix="name a file in a folder you may write"
        ) from error
