"""Plans as JSON: what `plan --out` writes, `plan --format json` prints and `apply` reads back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Final

from schemactl.core import atomic_files
from schemactl.core.environment import version
from schemactl.core.errors import SchemactlError
from schemactl.core.findings import Answer, Outcome
from schemactl.core.json_values import (
    WAIVER,
    Json,
    commit_value,
    json_text,
    read_commit,
    read_document,
    read_schema,
    read_waiver,
    schema_value,
    shape_error,
    waiver_value,
)
from schemactl.core.names import NamespaceName, TopicName, parse_name
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import Release, SchemaVersion
from schemactl.deploy.registry_state import POLICIES_SHAPE, STATE_SHAPE
from schemactl.deploy.steps import (
    CreateNamespace,
    CreateTenant,
    CreateTopic,
    DeleteSchema,
    GrowPartitions,
    Origin,
    Plan,
    PlanNote,
    PlanNoteKind,
    PlanRefusal,
    PlanStep,
    RegisterVersion,
    RelaxStrategy,
    RestoreStrategy,
    SetPolicies,
    TakeNumber,
)
from schemactl.deploy.version_numbers import apart_values, read_apart
from schemactl.registry.interface import Scope

FORMAT_VERSION = 1
"""Raised with any change that a reader of the file must know of. New keys alone do not raise it."""


_COMMIT: Final = ({"id": str, "time_s": int, "subject": str}, NoneType)
_SCHEMA: Final = ({"type": str, "schema": str | None, "schema_b64": str | None, "properties": {"*": str}}, NoneType)
_ANSWER: Final = {"answer": str, "version": int | None, "message": str, "exception": str}
_LISTED: Final = {
    "registry": int | None,
    "git": int | None,
    "state": str,
    "type": str | None,
    "time_ms": int | None,
    "commit": _COMMIT,
    "stamp": str | None,
    "schema": _SCHEMA,
}
_REFUSAL: Final = {
    "topic": str | None,
    "namespace": str | None,
    "version": int | None,
    "answer": (_ANSWER, NoneType),
    "reason": str,
    "fix": str,
    "wedged_by": int | None,
    "allow": str | None,
}
_APART: Final = {"topic": str, "registry": int, "git": int | None, "state": str, "recorded": bool}
_PLAN: Final = {
    "format_version": int,
    "schemactl": str,
    "target": str,
    "registry": str,
    "pulsar": str,
    "registry_version": str,
    "approved": {"ref": str, "commit": _COMMIT},
    "proposed": bool,
    "state": STATE_SHAPE,
    "scope": {"namespaces": [str], "topics": [str], "settings": ({"*": [str]}, NoneType)},
    "steps": [{"action": str}],
    "notes": [{"topic": str, "kind": str, "message": str}],
    "left_out": [_REFUSAL],
    "numbers_apart": [_APART],
    "numbers_apart_now": bool,
    "whole": bool,
    "digest": str,
    "lists": ([{"topic": str, "versions": [_LISTED]}], NoneType),
}
"""The shape of a plan (see `shape_error`). Other keys may follow in later formats."""

_OF_ITS_MAKING: Final = frozenset({"schemactl", "registry_version", "approved", "proposed"})

_NOT_IN_DIGEST: Final = {
    "steps": {"commit"},
    "notes": {"message"},
    # Both name the commit of a version that is rejected.
    "left_out": {"reason", "fix"},
}

_INHERITED: Final = ({"namespace": POLICIES_SHAPE, "default": POLICIES_SHAPE}, NoneType)
_SIDES: Final = {"before": POLICIES_SHAPE, "after": POLICIES_SHAPE, "inherited": _INHERITED, "loses": str | None}


def document(plan: Plan) -> Json:
    """Return `plan` as JSON values: after what it says its digest, and the checksum of all of that."""
    settings = {str(name): sorted(plan.scope.asked(name)) for name in sorted(plan.scope.settings, key=str)}
    values: Json = {
        "format_version": FORMAT_VERSION,
        "schemactl": version(),
        "target": plan.origin.target,
        "registry": plan.origin.registry,
        "pulsar": plan.origin.release.value,
        "registry_version": plan.origin.version,
        "approved": {"ref": plan.origin.ref, "commit": commit_value(plan.origin.tip)},
        "proposed": plan.origin.proposed,
        "state": plan.state,
        "scope": {
            "namespaces": sorted(map(str, plan.scope.namespaces)),
            "topics": sorted(map(str, plan.scope.topics)),
            **({"settings": settings} if settings else {}),
        },
        "steps": [step_document(step) for step in plan.steps],
        "notes": [{"topic": str(note.name), "kind": note.kind.value, "message": note.message} for note in plan.notes],
        "left_out": [_refusal(refusal) for refusal in plan.refusals],
        "numbers_apart": apart_values(plan.apart),
        "numbers_apart_now": plan.apart_now,
        "whole": plan.whole,
    }
    if plan.lists is not None:
        values["lists"] = [*plan.lists]
    values["digest"] = _digest(values)
    return {**values, "checksum": _checksum(values)}


def plan_digest(plan: Plan) -> str:
    """Return the digest by which a plan is approved: equal for two plans exactly when both do the same to the same registry.

    Contents and the target count, not commits: a squash makes another one of what was reviewed.
    """
    digest: str = document(plan)["digest"]
    return digest


def step_document(step: PlanStep) -> Json:
    """Return one step as JSON values."""
    facts: Json
    match step:
        case CreateTenant() | CreateNamespace():
            action, facts = f"create_{'tenant' if isinstance(step, CreateTenant) else 'namespace'}", {}
        case SetPolicies(name):
            action, facts = (f"set_{'topic' if isinstance(name, TopicName) else 'namespace'}_policies", _sides(step))
        case CreateTopic(_, partitions):
            action, facts = "create_topic", {"partitions": partitions}
        case GrowPartitions(_, before, after):
            action, facts = "grow_partitions", {"before": before, "after": after}
        case RegisterVersion(_, git, answer):
            action, facts = "register_version", {"version": git.number, "commit": commit_value(git.commit)}
            facts |= {"schema": schema_value(git.info), "answer": _answer(answer)}
        case RelaxStrategy(_, strategy, updates, waiver):
            action, facts = "relax_strategy", {"strategy": strategy.value, "updates": updates}
            facts |= {"waiver": None if waiver is None else waiver_value(waiver)}
        case RestoreStrategy(_, strategy, latest):
            action, facts = "restore_strategy", {"strategy": strategy.value, "latest": latest}
        case DeleteSchema(_, versions, force):
            action, facts = "delete_schema", {"versions": list(versions), "force": force}
        case TakeNumber(_, number, versions):
            action, facts = "take_number", {"number": number, "versions": list(versions)}
    return {"action": action, **_named(step.name), **facts}


def _named(name: NamespaceName | TopicName) -> Json:
    return {"topic" if isinstance(name, TopicName) else "namespace": str(name)}


def write(plan: Plan, path: Path, *, below: str | None = None) -> None:
    """Write `plan` to the file at `path`, whole, and follow no link below `below` (`atomic_files.write`)."""
    write_json(document(plan), path, below=below)


def write_json(value: Json, path: Path, *, below: str | None = None) -> None:
    """Write `value` to the file at `path` as indented JSON, as `write` does; raise SchemactlError where that is impossible."""
    text = json_text(value) + "\n"
    try:
        atomic_files.write(path, text.encode(), below=below, mode=atomic_files.OWN, make_folders=False)
    except OSError as error:
        raise SchemactlError(
            f"{path} cannot be written: {error.strerror}", fix="name a file in a folder you may write"
        ) from error


def read(path: Path) -> Plan:
    """Read the plan that `write` put into the file at `path`.

    Raises:
        SchemactlError: there is no such file, it is not a plan, has another format, or was changed since.
    """
    again = f"make it again: schemactl plan --out {path}"
    value = read_document(path, what="a plan of schemactl", keys={"checksum"}, version=FORMAT_VERSION, fix=again)
    checksum = value.pop("checksum")
    try:
        fits = checksum == _checksum(value)
    except RecursionError as error:
        raise SchemactlError(f"{path} is not a plan: it nests too deep", fix=again) from error
    if not fits:
        raise SchemactlError(f"{path} was changed after it was written: its checksum does not fit", fix=again)
    if wrong := _mismatch(value):
        raise SchemactlError(f"{path} is not a plan of schemactl: {wrong}", fix=again)
    try:
        return _plan(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemactlError(f"{path} is not a plan of schemactl: {error!r}", fix=again) from error


def _mismatch(plan: Json) -> str:
    """Return what has a wrong type in a plan's JSON value, or is missing; "" when nothing has."""
    if wrong := shape_error(plan, _PLAN):
        return wrong
    for number, step in enumerate(plan["steps"]):
        if wrong := shape_error(step, _STEPS[step["action"]][0] if step["action"] in _STEPS else {}):
            return wrong.replace("`", f"`steps[{number}].", 1)
    return ""


def _digest(values: Json) -> str:
    """Return the digest of a plan's values without what says who made it, and at which commit, and without words for people."""
    rest = {key: value for key, value in values.items() if key not in _OF_ITS_MAKING}
    for entries, left_out in _NOT_IN_DIGEST.items():
        rest[entries] = [
            {key: value for key, value in entry.items() if key not in left_out} for entry in values[entries]
        ]
    return _checksum(rest)


def _checksum(values: Json) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _sides(step: SetPolicies) -> Json:
    """Return the policies that are set, as the namespace file spells them, and of those that are reset what they inherit."""
    before, after = step.before, step.after.managed()
    sides: Json = {"before": {policy: before.get(policy) for policy in after}, "after": after}
    if step.loses:
        sides["loses"] = step.loses
    inherited = {"namespace": step.from_namespace.managed(), "default": step.from_default.managed()}
    return sides | {"inherited": inherited} if any(inherited.values()) else sides


def _answer(answer: Answer) -> Json:
    text = {"message": answer.message, "exception": answer.exception}
    return {"answer": answer.outcome.value, "version": answer.version, **text}


def _refusal(refusal: PlanRefusal) -> Json:
    return {
        **_named(refusal.name),
        "version": refusal.number,
        "answer": None if refusal.answer is None else _answer(refusal.answer),
        "reason": refusal.message,
        "fix": refusal.fix,
        "wedged_by": refusal.wedged_by,
        **({"allow": refusal.allow} if refusal.allow else {}),
    }


def _plan(value: Json) -> Plan:
    origin = Origin(
        value["target"],
        value["registry"],
        Release(value["pulsar"]),
        value["approved"]["ref"],
        read_commit(value["approved"]["commit"]),
        value["registry_version"],
        proposed=value["proposed"],
    )
    scope = Scope(
        frozenset(map(NamespaceName.parse, value["scope"]["namespaces"])),
        frozenset(map(TopicName.parse, value["scope"]["topics"])),
        {parse_name(name): frozenset(names) for name, names in (value["scope"].get("settings") or {}).items()},
    )
    return Plan(
        origin=origin,
        scope=scope,
        state=value["state"],
        steps=tuple(_STEPS[step["action"]][1](step) for step in value["steps"]),
        notes=tuple(
            PlanNote(TopicName.parse(note["topic"]), PlanNoteKind(note["kind"]), note["message"])
            for note in value["notes"]
        ),
        refusals=tuple(_read_refusal(refusal) for refusal in value["left_out"]),
        lists=tuple(value["lists"]) if "lists" in value else None,
        apart=read_apart(value["numbers_apart"]),
        apart_now=value["numbers_apart_now"],
        whole=value["whole"],
    )


def _read_answer(value: Json) -> Answer:
    return Answer(Outcome(value["answer"]), value["version"], value["message"], value["exception"])


def _read_refusal(value: Json) -> PlanRefusal:
    answer = None if value["answer"] is None else _read_answer(value["answer"])
    name = _topic(value) if "topic" in value else _namespace(value)
    wedged_by, allow = value.get("wedged_by"), value.get("allow") or ""
    return PlanRefusal(name, value["reason"], value["fix"], value["version"], answer, wedged_by, allow=allow)


def _topic(step: Json) -> TopicName:
    return TopicName.parse(step["topic"])


def _namespace(step: Json) -> NamespaceName:
    return NamespaceName.parse(step["namespace"])


def _strategy(step: Json) -> CompatibilityStrategy:
    return CompatibilityStrategy(step["strategy"])


def _version(step: Json) -> SchemaVersion:
    return SchemaVersion(step["version"], read_schema(step["schema"]), read_commit(step["commit"]))


def _set_policies(name: NamespaceName | TopicName, step: Json) -> SetPolicies:
    sides = [step["before"], step["after"]]
    inherited = step.get("inherited") or {}
    sides += [inherited.get("namespace", {}), inherited.get("default", {})]
    return SetPolicies(name, *map(Policies.of, sides), loses=step.get("loses") or "")


_STEPS: Final[dict[str, tuple[Json, Callable[[Json], PlanStep]]]] = {
    "create_tenant": ({"namespace": str}, lambda step: CreateTenant(_namespace(step))),
    "create_namespace": ({"namespace": str}, lambda step: CreateNamespace(_namespace(step))),
    "set_namespace_policies": ({"namespace": str, **_SIDES}, lambda step: _set_policies(_namespace(step), step)),
    "set_topic_policies": ({"topic": str, **_SIDES}, lambda step: _set_policies(_topic(step), step)),
    "create_topic": (
        {"topic": str, "partitions": int | None},
        lambda step: CreateTopic(_topic(step), step["partitions"]),
    ),
    "grow_partitions": (
        {"topic": str, "before": int, "after": int},
        lambda step: GrowPartitions(_topic(step), step["before"], step["after"]),
    ),
    "register_version": (
        {"topic": str, "version": int, "commit": _COMMIT, "schema": _SCHEMA, "answer": _ANSWER},
        lambda step: RegisterVersion(_topic(step), _version(step), _read_answer(step["answer"])),
    ),
    "relax_strategy": (
        {"topic": str, "strategy": str, "updates": bool, "waiver": (WAIVER, NoneType)},
        lambda step: RelaxStrategy(_topic(step), _strategy(step), step["updates"], read_waiver(step["waiver"])),
    ),
    "restore_strategy": (
        {"topic": str, "strategy": str, "latest": int | None},
        lambda step: RestoreStrategy(_topic(step), _strategy(step), step["latest"]),
    ),
    "take_number": (
        {"topic": str, "number": int, "versions": [int]},
        lambda step: TakeNumber(_topic(step), step["number"], tuple(step["versions"])),
    ),
    "delete_schema": (
        {"topic": str, "versions": [int], "force": bool},
        lambda step: DeleteSchema(_topic(step), tuple(step["versions"]), step["force"]),
    ),
}
"""By its action, the shape of a step, and what reads it."""
