"""The receipt of a plan: the file that `plan --out` writes, from which `apply` makes the plan again.

It has no steps: the steps of an apply always come from Git and the registry, and nobody can add one to the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from types import NoneType
from typing import Final

from schemactl.core.environment import version
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import Json, commit_value, read_commit, read_document, shape_error
from schemactl.core.schema import Commit
from schemactl.core.terminal import clean
from schemactl.deploy.plan_json import name_value, plan_digest, write_json
from schemactl.deploy.steps import Plan

FORMAT_VERSION: Final = 2
"""The format of the file. Format 1 had the steps."""

MAX_SIZE_BYTES: Final = 1 << 28
"""A larger file is not read."""

OPTIONS_SHAPE: Final = {
    "allow_delete": [str],
    "force_delete": [str],
    "allow_data_loss": [str],
    "relax_while_replaying": bool,
    "create_tenants": bool,
}
"""The options of `plan` and `rebuild` that permit something, as the command line stores them."""

_COMMIT_SHAPE: Final = ({"id": str, "time_s": int, "subject": str}, NoneType)
_VERSION_SHAPE: Final = {
    "registry": int | None,
    "git": int | None,
    "state": str,
    "time_ms": int | None,
    "commit": _COMMIT_SHAPE,
    "schema": ({"type": str, "schema": str | None, "schema_b64": str | None, "properties": {"*": str}}, NoneType),
}
_SHAPE: Final = {
    "target": str,
    "registry": str,
    "approved": {"ref": str, "commit": _COMMIT_SHAPE},
    "proposed": bool,
    "scope": {"topics": [str], "namespaces": [str]},
    "options": OPTIONS_SHAPE,
    "lists": ([{"topic": str, "versions": [_VERSION_SHAPE]}], NoneType),
    "steps": int,
    "left_out": [{"topic": str | None, "namespace": str | None, "reason": str}],
    "misread": [str],
    "digest": str,
    "text": str,
}
"""The shape of the file (see `shape_error`)."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The origin of a plan, its digest and its text.

    Attributes:
        target: the name of the target.
        registry: the URL that the target had.
        ref: the approved ref, or the name of the position.
        commit: the approved commit of the plan, or None if nothing was approved yet.
        proposed: whether the plan was for a merge that is not approved yet.
        topics: the globs of `--topic` and, after a `!`, the globs of `--skip`, in their order.
        namespaces: the names of `--namespace`.
        options: the permissions, by the keys of `OPTIONS_SHAPE`.
        lists: the version lists that a rebuild restores, as `version_numbers.topic_value` writes them; None for other plans.
        steps: the number of steps.
        left_out: the topics and namespaces that the plan leaves out, each with the reason.
        misread: the topics whose messages would be misread.
        digest: the digest of the plan.
        text: the report on the plan, without colors.
    """

    target: str
    registry: str
    ref: str
    commit: Commit | None
    proposed: bool
    topics: tuple[str, ...]
    namespaces: tuple[str, ...]
    options: Json
    lists: tuple[Json, ...] | None
    steps: int
    left_out: tuple[Json, ...]
    misread: tuple[str, ...]
    digest: str
    text: str

    @classmethod
    def of(cls, plan: Plan, text: str, *, topics: Sequence[str], namespaces: Sequence[str], options: Json) -> Receipt:
        """Return the receipt of a plan that was made for this scope with these options."""
        origin = plan.origin
        return cls(
            target=origin.target,
            registry=origin.registry,
            ref=origin.ref,
            commit=origin.tip,
            proposed=origin.proposed,
            topics=tuple(topics),
            namespaces=tuple(namespaces),
            options=options,
            lists=plan.lists,
            steps=len(plan.steps),
            left_out=tuple({**name_value(refusal.name), "reason": refusal.message} for refusal in plan.refusals),
            misread=tuple(str(topic.name) for topic in plan.misread),
            digest=plan_digest(plan),
            text=text,
        )

    @property
    def command(self) -> str:
        """The command that made the plan: `plan`, or `rebuild`, whose plans have lists."""
        return "plan" if self.lists is None else "rebuild"

    def write(self, path: Path, *, below: str) -> None:
        """Write the receipt to the file at `path`, atomically, and follow no link below `below`."""
        value: Json = {
            "format_version": FORMAT_VERSION,
            "schemactl": version(),
            "target": self.target,
            "registry": self.registry,
            "approved": {"ref": self.ref, "commit": commit_value(self.commit)},
            "proposed": self.proposed,
            "scope": {"topics": [*self.topics], "namespaces": [*self.namespaces]},
            "options": self.options,
        }
        if self.lists is not None:
            value["lists"] = [*self.lists]
        value |= {
            "steps": self.steps,
            "left_out": [*self.left_out],
            "misread": [*self.misread],
            "digest": self.digest,
            "text": self.text,
        }
        write_json(value, path, below=below)


def read_receipt(path: Path) -> Receipt:
    """Read the file that `plan --out` or `rebuild --out` wrote.

    Control characters in its text are escaped.

    Raises:
        SchemactlError: if the file is missing, too large or not a receipt, or if it has another format.
    """
    fix = f"make it again: schemactl plan --out {quote(str(path))}"
    with suppress(OSError):
        if path.stat().st_size > MAX_SIZE_BYTES:
            raise SchemactlError(
                f"{path} is not a plan of schemactl: it is larger than {MAX_SIZE_BYTES >> 20} MiB", fix=fix
            )
    value = read_document(path, what="a plan of schemactl", keys={"digest"}, version=FORMAT_VERSION, fix=fix)
    problem = shape_error(value, _SHAPE)
    if not problem:
        commit = read_commit(value["approved"]["commit"])
        if commit and not re.fullmatch("[0-9a-f]{40,64}", commit.id):
            problem = "`approved.commit.id` is not the full id of a commit"
    if problem:
        raise SchemactlError(f"{path} is not a plan of schemactl: {problem}", fix=fix)
    return Receipt(
        target=value["target"],
        registry=value["registry"],
        ref=value["approved"]["ref"],
        commit=commit,
        proposed=value["proposed"],
        topics=tuple(value["scope"]["topics"]),
        namespaces=tuple(value["scope"]["namespaces"]),
        options={name: value["options"][name] for name in OPTIONS_SHAPE},
        lists=tuple(value["lists"]) if value.get("lists") is not None else None,
        steps=value["steps"],
        left_out=tuple(value["left_out"]),
        misread=tuple(value["misread"]),
        digest=value["digest"],
        text=clean(value["text"]),
    )
