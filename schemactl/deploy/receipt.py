"""The receipt of a plan: the file that `plan --out` writes, from which `apply` makes the plan again.

It has no steps: the steps of an apply always come from Git and the registry, so a step cannot be added to the file.
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

from schemactl.core.environment import get_version
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import Json, commit_value, read_document, shape_error
from schemactl.core.terminal import clean
from schemactl.deploy.plan import Plan
from schemactl.deploy.plan_json import plan_digest, write_json
from schemactl.deploy.steps.step import name_value

FORMAT_VERSION: Final = 2
"""The format of the file. Format 1 had the steps."""

MAX_SIZE_BYTES: Final = 1 << 28
"""A larger file is not read."""

OPTIONS_SHAPE: Final = {
    "allow_delete": [str],
    "force_delete": [str],
    "allow_data_loss": [str],
    "allow_unreadable_messages": [str],
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
    """The origin of a plan, its digest and its text. The names of the attributes are the keys of the file.

    Attributes:
        target: the name of the target.
        registry: the URL that the target had.
        approved: the `ref` of the approved history or position, and the `commit`, null if nothing was approved yet.
        proposed: whether the plan was for a merge that is not approved yet.
        scope: the globs of `--topic` (and, after a `!`, of `--skip`) as `topics`, and the names of `--namespace` as `namespaces`.
        options: the permissions, by the keys of `OPTIONS_SHAPE`.
        lists: the version lists that a rebuild restores, as `version_lists.topic_value` writes them; None for other plans.
        steps: the number of steps.
        left_out: the topics and namespaces that the plan leaves out, each with the reason.
        misread: the topics whose messages would be misread.
        digest: the digest of the plan.
        text: the report on the plan, without colors.
    """

    target: str
    registry: str
    approved: Json
    proposed: bool
    scope: Json
    options: Json
    lists: Sequence[Json] | None
    steps: int
    left_out: Sequence[Json]
    misread: Sequence[str]
    digest: str
    text: str

    @classmethod
    def of(cls, plan: Plan, text: str, *, scope: Json, options: Json) -> Receipt:
        """Return the receipt of a plan that was made for this scope with these options."""
        origin = plan.origin
        return cls(
            origin.target,
            origin.registry,
            {"ref": origin.ref, "commit": commit_value(origin.tip)},
            origin.proposed,
            scope,
            options,
            plan.lists,
            len(plan.steps),
            [
                *({**name_value(refusal.name), "reason": refusal.message} for refusal in plan.refusals),
                *(
                    {"topic": str(declaration.topic) if declaration.topic else None, "reason": declaration.message}
                    for declaration in plan.unreadable
                ),
            ],
            [str(topic.name) for topic in plan.misread],
            plan_digest(plan),
            text,
        )

    @property
    def command(self) -> str:
        """The command that made the plan: `plan`, or `rebuild`, whose plans have lists."""
        return "plan" if self.lists is None else "rebuild"

    def write(self, path: Path, *, below: str) -> None:
        """Write the receipt to the file at `path`, atomically, and follow no link below `below`."""
        values = {key: getattr(self, key) for key in _SHAPE}
        write_json({"format_version": FORMAT_VERSION, "schemactl": get_version(), **values}, path, below=below)


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
    value = read_document(path, kind="a plan of schemactl", keys={"digest"}, version=FORMAT_VERSION, fix=fix)
    problem = shape_error(value, _SHAPE)
    if not problem and (commit := value["approved"]["commit"]) and not re.fullmatch("[0-9a-f]{40,64}", commit["id"]):
        problem = "`approved.commit.id` is not the full id of a commit"
    if problem:
        raise SchemactlError(f"{path} is not a plan of schemactl: {problem}", fix=fix)
    values: Json = {key: value.get(key) for key in _SHAPE}
    return Receipt(**{**values, "text": clean(value["text"])})
