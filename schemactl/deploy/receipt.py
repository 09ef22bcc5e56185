"""The receipt of a plan: the file that `plan --out` writes, from which `apply` makes the plan again.

It has no steps: the steps of an apply always come from Git and the registry, so a step cannot be added to the file.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Final

from schemactl.core.environment import get_version
from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import from_json, make_view, read_document
from schemactl.core.terminal import clean
from schemactl.core.wording import get_name_type
from schemactl.deploy.plan import Plan
from schemactl.deploy.plan_json import ApprovedView, plan_digest, write_json
from schemactl.deploy.version_lists import ListedTopic

FORMAT_VERSION: Final = 2
"""The format of the file. Format 1 had the steps."""

MAX_SIZE_BYTES: Final = 1 << 28
"""A larger file is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSelection:
    """The globs of `--topic` (and, after a `!`, of `--skip`), and the names of `--namespace`."""

    topics: list[str]
    namespaces: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of `plan` and `rebuild` that permit something, as the command line names them."""

    allow_delete: list[str]
    force_delete: list[str]
    allow_data_loss: list[str]
    allow_unreadable_messages: list[str]
    relax_while_replaying: bool
    create_tenants: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The origin of a plan, its digest and its text. The fields are the keys of the file, in their order.

    Attributes:
        schemactl: the version of schemactl.
        target: the name of the target.
        registry: the URL that the target had.
        proposed: whether the plan was for a merge that is not approved yet.
        lists: the version lists that a rebuild restores; None for other plans.
        steps: the number of steps.
        left_out: the topics and namespaces that the plan leaves out, each with the key `topic` or `namespace` and the `reason`.
        misread: the topics whose messages would be misread.
        digest: the digest of the plan.
        text: the report on the plan, without colors.
    """

    format_version: int = FORMAT_VERSION
    schemactl: str = ""
    target: str
    registry: str
    approved: ApprovedView
    proposed: bool
    scope: PlanSelection
    options: PlanOptions
    lists: tuple[ListedTopic, ...] | None = None
    steps: int
    left_out: tuple[dict[str, str | None], ...]
    misread: tuple[str, ...]
    digest: str
    text: str

    @classmethod
    def of(cls, plan: Plan, text: str, *, scope: PlanSelection, options: PlanOptions) -> Receipt:
        """Return the receipt of a plan that was made for this scope with these options."""
        return make_view(
            cls,
            plan.origin,
            schemactl=get_version(),
            approved=ApprovedView(plan.origin.ref, plan.origin.tip),
            scope=scope,
            options=options,
            lists=plan.lists,
            steps=len(plan.steps),
            left_out=(
                *(
                    {get_name_type(refusal.name): str(refusal.name), "reason": refusal.message}
                    for refusal in plan.refusals
                ),
                *(
                    {"topic": str(declaration.topic) if declaration.topic else None, "reason": declaration.message}
                    for declaration in plan.unreadable
                ),
            ),
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
        write_json(self, path, below=below)


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
    try:
        receipt = from_json(Receipt, value)
    except ValueError as error:
        raise SchemactlError(f"{path} is not a plan of schemactl: {error}", fix=fix) from error
    if (commit := receipt.approved.commit) and not re.fullmatch("[0-9a-f]{40,64}", commit.id):
        raise SchemactlError(
            f"{path} is not a plan of schemactl: `approved.commit.id` is not the full id of a commit", fix=fix
        )
    return replace(receipt, text=clean(receipt.text))
